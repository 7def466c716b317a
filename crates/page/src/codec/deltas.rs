//! Numbers that go up or down by similar steps: each block has its first number, the least step, and the bits of the largest
//! step above it.
//!
//! ```text
//!   [null bits]  heads: first i64, least step i64 per block  widths: u8 per block
//!   blocks of step - least; for the first row of a block 0
//! ```
//!
//! A counter takes no bits a row. Steps wrap around, so that every block can be written so; it is where it takes a quarter
//! less than a frame of reference, on which tests are made without unpacking.
//!
//! Cost: an addition that waits for the one before, for each row.

use std::sync::Arc;

use super::{Codec, Content, PackedBlocks, Sample, take_nulls};
use crate::bitpack::{BLOCK, pack_block, unpack_block, width_of};
use crate::page::PageMeta;
use crate::view::{IntBlocks, PageView, ValuesPage};
use coload_types::Result;
use coload_types::bytes::ByteReader;

/// Bytes of a block's head.
const HEAD_BYTES: usize = 16;

/// Numbers as steps from the one before.
#[derive(Debug)]
pub(super) struct Deltas;

impl Codec for Deltas {
    fn name(&self) -> &'static str {
        "deltas"
    }

    fn content(&self) -> Content {
        Content::Int
    }

    fn open<'a>(&self, bytes: &'a [u8], meta: &PageMeta) -> Result<PageView<'a>> {
        let mut reader = ByteReader::new(bytes);
        let nulls = take_nulls(&mut reader, meta)?;
        let blocks = PackedBlocks::read(&mut reader, meta.rows as usize, HEAD_BYTES, 64)?;
        reader.finish()?;
        Ok(PageView::Int(ValuesPage::new(meta, nulls, Arc::new(Steps(blocks)))))
    }

    fn estimate(&self, sample: &Sample) -> Option<usize> {
        let Sample::Int { stretches, nulls: 0, rows } = sample else { return None };
        let mut bits = 0;
        for stretch in stretches {
            bits += usize::from(steps(stretch).1) * stretch.len();
        }
        let seen: usize = stretches.iter().map(Vec::len).sum();
        let bytes = bits * rows / seen.max(1) / 8 + rows.div_ceil(BLOCK) * (HEAD_BYTES + 1);
        // A quarter more than it is, as tests on it are slower.
        Some(bytes + bytes / 3)
    }

    fn encode(&self, page: &PageView<'_>) -> Result<Option<Vec<u8>>> {
        let PageView::Int(page) = page else { return Ok(None) };
        if page.has_nulls() {
            return Ok(None);
        }
        let blocks = page.rows().div_ceil(BLOCK);
        let mut bytes = vec![0; blocks * (HEAD_BYTES + 1)];
        let (mut values, mut offsets) = ([0; BLOCK], [0; BLOCK]);
        for b in 0..blocks {
            let count = page.unpack_int(b, &mut values);
            let (least, width) = steps(&values[..count]);
            for (offset, pair) in offsets[1..].iter_mut().zip(values[..count].windows(2)) {
                *offset = pair[1].wrapping_sub(pair[0]).wrapping_sub(least) as u64;
            }
            bytes[b * HEAD_BYTES..][..8].copy_from_slice(&values[0].to_le_bytes());
            bytes[b * HEAD_BYTES + 8..][..8].copy_from_slice(&least.to_le_bytes());
            bytes[blocks * HEAD_BYTES + b] = width;
            pack_block(&offsets[..count], width, &mut bytes);
        }
        Ok(Some(bytes))
    }
}

/// The least step, and the bits of the largest above it.
fn steps(values: &[i64]) -> (i64, u8) {
    let steps = || values.windows(2).map(|pair| pair[1].wrapping_sub(pair[0]));
    let least = steps().min().unwrap_or(0);
    let most = steps().max().unwrap_or(0);
    (least, width_of(most.wrapping_sub(least) as u64))
}

#[derive(Debug)]
struct Steps<'a>(PackedBlocks<'a>);

impl<'a> IntBlocks<'a> for Steps<'a> {
    fn unpack(&self, block: usize, out: &mut [i64; BLOCK]) {
        let (packed, width, count) = self.0.block(block);
        let head = u128::from_le_bytes(self.0.head(block));
        let (mut value, least) = (head as i64, (head >> 64) as i64);
        let mut offsets = [0; BLOCK];
        unpack_block(packed, count, width, &mut offsets);
        // The first row has no step.
        offsets[0] = 0u64.wrapping_sub(least as u64);
        for (o, offset) in out.iter_mut().zip(&offsets) {
            value = value.wrapping_add(least).wrapping_add(*offset as i64);
            *o = value;
        }
    }
}
