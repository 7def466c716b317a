//! Wide numbers by frame of reference.
//!
//! ```text
//!   [null bits]  bases: i128 per block  widths: u8 per block
//!   blocks of the low 64 bits of value - base, each followed by its block of the high bits when the width is over 64
//! ```

use super::{Codec, CodecId, Content, PackedBlocks, put_nulls, take_nulls};
use crate::bitpack::{BLOCK, block_bytes, pack_block, unpack_block};
use crate::page::{Page, PageDetail, PageMeta};
use crate::view::{PageView, ValuesPage, WideBlocks};
use coload_types::bytes::ByteReader;
use coload_types::{Bitmap, Result};

/// Wide numbers as offsets from the least of their block.
#[derive(Debug)]
pub(super) struct WideFrames;

impl Codec for WideFrames {
    fn name(&self) -> &'static str {
        "frame of reference"
    }

    fn content(&self) -> Content {
        Content::Wide
    }

    fn open<'a>(&self, bytes: &'a [u8], meta: &PageMeta) -> Result<PageView<'a>> {
        let mut reader = ByteReader::new(bytes);
        let nulls = take_nulls(&mut reader, meta)?;
        let blocks = PackedBlocks::read(&mut reader, meta.rows as usize, 16, 128)?;
        Ok(PageView::Wide(ValuesPage::new(meta, nulls, std::sync::Arc::new(Blocks(blocks)))))
    }
}

#[derive(Debug)]
struct Blocks<'a>(PackedBlocks<'a>);

impl WideBlocks for Blocks<'_> {
    fn unpack(&self, block: usize, out: &mut [i128; BLOCK]) {
        let (packed, width, count) = self.0.block(block);
        let base = i128::from_le_bytes(self.0.head(block));
        let mut part = [0; BLOCK];
        unpack_block(packed, count, width.min(64), &mut part);
        for (o, v) in out.iter_mut().zip(&part) {
            *o = base.wrapping_add(i128::from(*v));
        }
        if width > 64 {
            unpack_block(&packed[block_bytes(count, 64)..], count, width - 64, &mut part);
            for (o, v) in out.iter_mut().zip(&part) {
                *o = o.wrapping_add((u128::from(*v) << 64) as i128);
            }
        }
    }
}

/// Encodes wide numbers by frame of reference.
pub fn encode_wide(values: &[i128], nulls: Option<&Bitmap>) -> Page {
    let mut bytes = Vec::with_capacity(values.len() * 16 + 64);
    let null_count = put_nulls(nulls, values.len(), &mut bytes);
    let nulls = nulls.filter(|_| null_count > 0);
    let blocks = values.len().div_ceil(BLOCK);
    let bases_at = bytes.len();
    bytes.resize(bases_at + blocks * 17, 0);
    let (mut min, mut max) = (i128::MAX, i128::MIN);
    for (b, block) in values.chunks(BLOCK).enumerate() {
        let is_null = |i: usize| nulls.is_some_and(|n| n.get(b * BLOCK + i));
        let (low, high) = block
            .iter()
            .enumerate()
            .filter(|(i, _)| !is_null(*i))
            .fold((i128::MAX, i128::MIN), |(l, h), (_, v)| (l.min(*v), h.max(*v)));
        if low > high {
            continue;
        }
        (min, max) = (min.min(low), max.max(high));
        let offset = |i: usize| if is_null(i) { 0 } else { block[i].wrapping_sub(low) as u128 };
        let width = (128 - (high.wrapping_sub(low) as u128).leading_zeros()) as u8;
        bytes[bases_at + b * 16..][..16].copy_from_slice(&low.to_le_bytes());
        bytes[bases_at + blocks * 16 + b] = width;
        let lows: Vec<u64> = (0..block.len()).map(|i| offset(i) as u64).collect();
        pack_block(&lows, width.min(64), &mut bytes);
        if width > 64 {
            let highs: Vec<u64> = (0..block.len()).map(|i| (offset(i) >> 64) as u64).collect();
            pack_block(&highs, width - 64, &mut bytes);
        }
    }
    if min > max {
        (min, max) = (0, 0);
    }
    // Pages wait in memory; what was reserved too much would wait with them.
    bytes.shrink_to_fit();
    Page {
        codec: CodecId::WIDE_FRAMES,
        detail: PageDetail::Wide { min, max },
        rows: values.len() as u32,
        nulls: null_count,
        bytes,
        runs: None,
    }
}
