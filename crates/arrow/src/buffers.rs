//! The buffers of a batch, decompressed.

use std::borrow::Cow;
use std::cell::Cell;
use std::io::Read;

use coload_types::Result as IoResult;

use crate::batch::{Batch, Codec};
use crate::fault::{Fault, Result};

/// Bytes before a compressed buffer: its length without compression.
const LENGTH_BYTES: u64 = 8;
/// In place of that length: the buffer is as it is.
const AS_IT_IS: i64 = -1;

/// The body of a message.
pub trait Body {
    /// Bytes from a place of the body on, all of them.
    ///
    /// # Errors
    /// Those of reading.
    fn read(&self, from: u64, bytes: usize) -> IoResult<Cow<'_, [u8]>>;

    /// The same bytes, which are looked at and will be read then.
    ///
    /// # Errors
    /// As [`Body::read`].
    fn peek(&self, from: u64, bytes: usize) -> IoResult<Cow<'_, [u8]>> {
        self.read(from, bytes)
    }
}

impl Body for Vec<u8> {
    fn read(&self, from: u64, bytes: usize) -> IoResult<Cow<'_, [u8]>> {
        let start = usize::try_from(from).ok();
        let range = start.and_then(|start| Some(start..start.checked_add(bytes)?));
        let found = range.and_then(|range| self.get(range));
        found.map(Cow::Borrowed).ok_or_else(|| {
            let text = format!("{bytes} bytes at byte {from} of a body of {}", self.len());
            coload_types::Error::Corrupt(text)
        })
    }
}

/// Reads the buffers of a batch.
pub struct Buffers<'a> {
    batch: &'a Batch,
    body: &'a dyn Body,
    /// Bytes that may still be read.
    left: Cell<u64>,
    bytes_max: u64,
}

impl<'a> Buffers<'a> {
    /// Reads the buffers of a batch, so many bytes at most.
    pub fn new(batch: &'a Batch, body: &'a dyn Body, bytes_max: u64) -> Self {
        Buffers { batch, body, left: Cell::new(bytes_max), bytes_max }
    }

    /// The batch that the buffers are of.
    pub fn batch(&self) -> &'a Batch {
        self.batch
    }

    /// Bytes of all buffers, decompressed.
    ///
    /// # Errors
    /// `Damaged` when a length is none; those of reading.
    pub fn total_bytes(&self) -> Result<u64> {
        (0..self.batch.buffers.len())
            .try_fold(0_u64, |sum, buffer| Ok(sum.saturating_add(self.bytes(buffer)?)))
    }

    /// Bytes of a buffer, decompressed.
    pub(crate) fn bytes(&self, buffer: usize) -> Result<u64> {
        let (start, stored) = self.place(buffer)?;
        if self.batch.codec.is_none() || stored == 0 {
            return Ok(stored);
        }
        self.length(start, stored)
    }

    /// The length that stands before a compressed buffer.
    fn length(&self, start: u64, stored: u64) -> Result<u64> {
        if stored < LENGTH_BYTES {
            return Err(Fault::damaged("a compressed buffer without its length"));
        }
        let prefix = self.body.read(start, LENGTH_BYTES as usize)?;
        let prefix = <[u8; 8]>::try_from(&prefix[..]).unwrap_or_default();
        match i64::from_le_bytes(prefix) {
            AS_IT_IS => Ok(stored - LENGTH_BYTES),
            length => u64::try_from(length)
                .map_err(|_| Fault::damaged(format!("a compressed buffer of {length} bytes"))),
        }
    }

    fn place(&self, buffer: usize) -> Result<(u64, u64)> {
        let found = self.batch.buffers.get(buffer).copied();
        found.ok_or_else(|| Fault::damaged("a buffer that is not there"))
    }

    /// Bytes `from..to` of a buffer.
    ///
    /// # Errors
    /// `Damaged` when it has fewer, `TooLarge` when more are read than may be.
    pub(crate) fn read(&self, buffer: usize, from: u64, to: u64) -> Result<Cow<'a, [u8]>> {
        if from >= to {
            return Ok(Cow::Borrowed(&[]));
        }
        let bytes = self.bytes(buffer)?;
        if to > bytes {
            return Err(Fault::damaged(format!("a buffer of {bytes} bytes, and {to} are needed")));
        }
        let (start, stored) = self.place(buffer)?;
        let Some(codec) = self.batch.codec else {
            self.take(to - from)?;
            return Ok(self.body.read(start + from, (to - from) as usize)?);
        };
        let data = start + LENGTH_BYTES;
        let as_it_is = self.body.read(start, LENGTH_BYTES as usize)?[..] == AS_IT_IS.to_le_bytes();
        if as_it_is {
            self.take(to - from)?;
            return Ok(self.body.read(data + from, (to - from) as usize)?);
        }
        self.take(bytes.saturating_add(stored))?;
        let compressed = self.body.read(data, (stored - LENGTH_BYTES) as usize)?;
        let mut all = decompress(&compressed, codec, bytes as usize)?;
        all.truncate(to as usize);
        all.drain(..from as usize);
        Ok(Cow::Owned(all))
    }

    /// Bytes that may still be read.
    pub(crate) fn left(&self) -> u64 {
        self.left.get()
    }

    /// So many bytes are taken, whatever of the buffers they are made of.
    ///
    /// # Errors
    /// `TooLarge` when these are more than are left.
    pub(crate) fn take(&self, bytes: u64) -> Result<()> {
        match self.left.get().checked_sub(bytes) {
            Some(left) => {
                self.left.set(left);
                Ok(())
            }
            None => Err(Fault::TooLarge(bytes.saturating_add(self.bytes_max - self.left.get()))),
        }
    }
}

/// Decompresses a buffer that has so many bytes.
fn decompress(compressed: &[u8], codec: Codec, bytes: usize) -> Result<Vec<u8>> {
    let mut out = Vec::with_capacity(bytes);
    let other = |found: String| Fault::damaged(format!("a compressed buffer ({codec:?}): {found}"));
    match codec {
        Codec::Lz4 => {
            // One byte more than it may have tells that it has more.
            let decoder = lz4_flex::frame::FrameDecoder::new(compressed);
            decoder
                .take(bytes as u64 + 1)
                .read_to_end(&mut out)
                .map_err(|e| other(e.to_string()))?;
        }
        Codec::Zstd => {
            zstd_safe::decompress(&mut out, compressed)
                .map_err(|code| other(zstd_safe::get_error_name(code).to_owned()))?;
        }
    }
    match out.len() == bytes {
        true => Ok(out),
        false => Err(other(format!("its bytes are not the {bytes} that it says"))),
    }
}
