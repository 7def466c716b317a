//! A message: what stands before its metadata, and what they say.

use arrow_ipc as ipc;

use crate::batch::Batch;
use crate::fault::{Fault, Result};
use crate::schema::ArrowSchema;

/// Bytes of the prefix of a message: the mark of a continuation, and the length of the metadata.
pub const PREFIX_BYTES: usize = 8;
/// The mark of a continuation.
const CONTINUATION: [u8; 4] = [0xff; 4];
/// Most bytes of metadata: those of a batch of 4,096 columns have 300 KB.
const METADATA_BYTES_MAX: usize = 64 << 20;
/// Alignment that the decoder of the metadata wants.
const ALIGNMENT: usize = 8;

/// What stands before the metadata of a message.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Prefix {
    /// Nothing follows these bytes of the prefix.
    End(usize),
    /// Metadata follow.
    Metadata {
        /// Bytes of the prefix: 8, or 4 before version 0.15 of Arrow.
        prefix: usize,
        /// Bytes of the metadata.
        bytes: usize,
    },
}

impl Prefix {
    /// Reads the first bytes of a message, of which there are [`PREFIX_BYTES`] unless the input ends.
    ///
    /// # Errors
    /// `Damaged` when they are none.
    pub fn decode(bytes: &[u8]) -> Result<Self> {
        let word = |at: usize| {
            let word = bytes.get(at..at + 4).and_then(|word| <[u8; 4]>::try_from(word).ok());
            word.ok_or_else(|| Fault::damaged("they end in the middle of a message"))
        };
        let (prefix, length) = match word(0)? {
            CONTINUATION => (8, i32::from_le_bytes(word(4)?)),
            old => (4, i32::from_le_bytes(old)),
        };
        match usize::try_from(length) {
            Ok(0) => Ok(Prefix::End(prefix)),
            Ok(bytes) if bytes <= METADATA_BYTES_MAX => Ok(Prefix::Metadata { prefix, bytes }),
            _ => Err(Fault::damaged(format!("metadata of {length} bytes"))),
        }
    }
}

/// Whether an input that begins so is a stream of messages: its first one is a schema.
pub fn starts_stream(head: &[u8]) -> bool {
    if !head.starts_with(&CONTINUATION) {
        return false;
    }
    match Prefix::decode(&head[..head.len().min(PREFIX_BYTES)]) {
        Ok(Prefix::Metadata { bytes, .. }) => bytes >= METADATA_BYTES_MIN,
        _ => false,
    }
}

/// Least bytes of metadata: they are padded, and have a table at least.
const METADATA_BYTES_MIN: usize = 16;
/// A bare message starts with where its table is, which is less than this; a length of old is more, as no schema is so short.
const ROOT_OFFSET_MAX: u32 = 48;
/// Marks before which a bare schema is tried, of which a schema itself has hardly one.
const MARKS_TRIED: usize = 16;

/// Bytes of a bare schema, with the padding behind it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum BareSchema {
    /// The message has a prefix, as the format has it.
    No,
    /// So many.
    Bytes(usize),
    /// Its end is not among the bytes that are there.
    Longer,
}

/// Whether the first message of a file, which starts with these bytes, is a schema without a prefix, as polars 2 writes it.
///
/// Its own bytes do not tell where it ends: that is before the first mark of a message behind it.
///
/// # Errors
/// `Damaged` when no message is found behind it.
pub fn bare_schema(bytes: &[u8]) -> Result<BareSchema> {
    let starts_bare = |first: u32| (1..ROOT_OFFSET_MAX).contains(&first);
    let first = bytes.first_chunk::<4>().map(|first| u32::from_le_bytes(*first));
    if !first.is_some_and(starts_bare) {
        return Ok(BareSchema::No);
    }
    let is_mark = |word: &[u8]| {
        let length = <[u8; 4]>::try_from(&word[4..]).map_or(0, u32::from_le_bytes) as usize;
        let is_length = length == 0 || (METADATA_BYTES_MIN..=METADATA_BYTES_MAX).contains(&length);
        word.starts_with(&CONTINUATION) && is_length
    };
    let marks = bytes.chunks_exact(PREFIX_BYTES).enumerate().filter(|(_, word)| is_mark(word));
    let mut tried = 0;
    for (number, _) in marks {
        let end = number * PREFIX_BYTES;
        if matches!(Message::decode(&bytes[..end]), Ok((Message::Schema(_), 0))) {
            return Ok(BareSchema::Bytes(end));
        }
        tried += 1;
        if tried == MARKS_TRIED {
            break;
        }
    }
    match tried < MARKS_TRIED && bytes.len() < METADATA_BYTES_MAX {
        true => Ok(BareSchema::Longer),
        false => Err(Fault::damaged("a schema without its length, whose end is not found")),
    }
}

/// Where a message stands.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Place {
    /// Where its prefix starts.
    pub start: u64,
    /// Bytes of the prefix and the metadata.
    pub head_bytes: u32,
    /// Bytes of the body behind them.
    pub body_bytes: u64,
}

impl Place {
    /// Where the body starts.
    pub fn body(&self) -> u64 {
        self.start + u64::from(self.head_bytes)
    }

    /// Where the message ends.
    pub fn end(&self) -> u64 {
        self.body() + self.body_bytes
    }
}

/// What a message is.
#[derive(Debug, Clone)]
pub enum Message {
    /// The fields of all batches.
    Schema(ArrowSchema),
    /// Values of a dictionary.
    Dictionary(DictionaryBatch),
    /// Rows.
    Batch(Batch),
}

/// Values of a dictionary.
#[derive(Debug, Clone)]
pub struct DictionaryBatch {
    /// Number of the dictionary.
    pub id: i64,
    /// Whether the values come after those that there are; else they take their place.
    pub is_delta: bool,
    /// The values, a batch of one column.
    pub batch: Batch,
}

impl Message {
    /// Reads metadata.
    ///
    /// # Errors
    /// `Damaged` when they contradict themselves, `Unknown` when they are of no kind that is read.
    pub fn decode(metadata: &[u8]) -> Result<(Self, u64)> {
        aligned(metadata, |metadata| {
            let message = ipc::root_as_message(metadata);
            let message = message.map_err(|e| Fault::damaged(format!("metadata: {e}")))?;
            let body_bytes = u64::try_from(message.bodyLength())
                .map_err(|_| Fault::damaged("a body whose length is below 0"))?;
            let version = message.version();
            if !(ipc::MetadataVersion::V4..=ipc::MetadataVersion::V5).contains(&version) {
                return Err(Fault::Unknown(format!(
                    "the Arrow data are of version {version:?} of the format, and V4 and V5 are read"
                )));
            }
            let batch = |batch: Option<ipc::RecordBatch<'_>>| {
                let batch =
                    batch.ok_or_else(|| Fault::damaged("a batch without its description"))?;
                Batch::decode(batch, body_bytes, version)
            };
            let decoded = match message.header_type() {
                ipc::MessageHeader::Schema => {
                    let schema = message.header_as_schema();
                    let schema =
                        schema.ok_or_else(|| Fault::damaged("a message without its schema"))?;
                    Message::Schema(ArrowSchema::decode(schema)?)
                }
                ipc::MessageHeader::DictionaryBatch => {
                    let dictionary = message.header_as_dictionary_batch();
                    let dictionary = dictionary
                        .ok_or_else(|| Fault::damaged("a message without its dictionary"))?;
                    Message::Dictionary(DictionaryBatch {
                        id: dictionary.id(),
                        is_delta: dictionary.isDelta(),
                        batch: batch(dictionary.data())?,
                    })
                }
                ipc::MessageHeader::RecordBatch => {
                    Message::Batch(batch(message.header_as_record_batch())?)
                }
                other => {
                    let text = format!(
                        "the Arrow data have a message of kind {other:?}, which is no table"
                    );
                    return Err(Fault::Unknown(text));
                }
            };
            Ok((decoded, body_bytes))
        })
    }
}

/// Gives metadata where they are aligned as their decoder wants.
pub(crate) fn aligned<T>(bytes: &[u8], read: impl FnOnce(&[u8]) -> T) -> T {
    if bytes.as_ptr().align_offset(ALIGNMENT) == 0 {
        return read(bytes);
    }
    let mut copy = vec![0; bytes.len() + ALIGNMENT];
    let at = copy.as_ptr().align_offset(ALIGNMENT).min(ALIGNMENT);
    copy[at..at + bytes.len()].copy_from_slice(bytes);
    read(&copy[at..at + bytes.len()])
}
