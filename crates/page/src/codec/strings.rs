//! Strings in blocks, as the codecs of whole strings have them: lengths, and where the bytes of each block end.
//!
//! ```text
//!   [null bits]  ends: u32 per block  widths: u8 per block  blocks of lengths  bytes of each block
//! ```

use coload_types::bytes::ByteReader;
use coload_types::{Error, Result};

use super::{PackedBlocks, take_nulls};
use crate::bitpack::{BLOCK, pack_block, unpack_block, width_of};
use crate::page::PageMeta;

/// Bytes of a block before the lengths: where it ends, and the width of its lengths.
const HEAD_BYTES: usize = 5;

/// The strings of a page, read in place.
#[derive(Debug)]
pub(super) struct Strings<'a> {
    lengths: PackedBlocks<'a>,
    bytes: &'a [u8],
}

impl<'a> Strings<'a> {
    /// The null bits and the strings of a page.
    pub(super) fn open(bytes: &'a [u8], meta: &PageMeta) -> Result<(Option<&'a [u8]>, Self)> {
        let mut reader = ByteReader::new(bytes);
        let nulls = take_nulls(&mut reader, meta)?;
        let lengths = PackedBlocks::read(&mut reader, meta.rows as usize, 4, 32)?;
        let strings = Strings { lengths, bytes: reader.take(reader.remaining())? };
        if strings.end((meta.rows as usize).div_ceil(BLOCK)) != strings.bytes.len() {
            return Err(Error::Corrupt("page: text after the last row".into()));
        }
        Ok((nulls, strings))
    }

    /// The bytes of all blocks.
    pub(super) fn bytes(&self) -> &'a [u8] {
        self.bytes
    }

    /// Where the bytes of the first so many blocks end.
    fn end(&self, blocks: usize) -> usize {
        match blocks {
            0 => 0,
            _ => u32::from_le_bytes(self.lengths.head(blocks - 1)) as usize,
        }
    }

    /// The bytes of a block.
    pub(super) fn stored(&self, block: usize) -> Result<&'a [u8]> {
        let range = self.end(block)..self.end(block + 1);
        self.bytes.get(range).ok_or_else(|| Error::Corrupt("page: a block out of its page".into()))
    }

    /// Sets where the strings of a block end among each other; how many they are, and their bytes. Ends mean nothing where
    /// these are over 4 GiB.
    pub(super) fn ends(&self, block: usize, ends: &mut [u32; BLOCK]) -> (usize, u64) {
        let (packed, width, count) = self.lengths.block(block);
        let mut lengths = [0; BLOCK];
        unpack_block(packed, count, width, &mut lengths);
        let mut at = 0u64;
        for (end, length) in ends.iter_mut().zip(&lengths[..count]) {
            at += *length;
            *end = at as u32;
        }
        (count, at)
    }
}

/// The start of a page of strings that is being written: all but the bytes of its blocks.
pub(super) struct Heads {
    at: usize,
    blocks: usize,
}

impl Heads {
    /// Makes room for the heads of so many rows behind what `out` has.
    pub(super) fn begin(rows: usize, out: &mut Vec<u8>) -> Self {
        let (at, blocks) = (out.len(), rows.div_ceil(BLOCK));
        out.resize(at + blocks * HEAD_BYTES, 0);
        Heads { at, blocks }
    }

    /// Writes the head of the next block, `block`, whose bytes end at `end`, and appends its lengths.
    pub(super) fn put(&self, block: usize, end: u32, lengths: &[u64], out: &mut Vec<u8>) {
        let width = width_of(lengths.iter().copied().max().unwrap_or(0));
        out[self.at + block * 4..][..4].copy_from_slice(&end.to_le_bytes());
        out[self.at + self.blocks * 4 + block] = width;
        pack_block(lengths, width, out);
    }
}
