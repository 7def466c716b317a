//! Numbers by frame of reference: each block has a base and the bits of its largest offset from it.
//!
//! ```text
//!   [null bits]  bases: i64 per block  widths: u8 per block  blocks of value - base
//! ```

use super::{Codec, CodecId, Content, PackedBlocks, put_nulls, take_nulls};
use crate::bitpack::{BLOCK, pack_block, unpack_block, width_of};
use crate::page::{Page, PageDetail, PageMeta};
use crate::view::{Frame, IntBlocks, PageView, ValuesPage};
use coload_types::bytes::ByteReader;
use coload_types::{Bitmap, Result};

/// Numbers as offsets from the least of their block.
#[derive(Debug)]
pub(super) struct Frames;

impl Codec for Frames {
    fn name(&self) -> &'static str {
        "frame of reference"
    }

    fn content(&self) -> Content {
        Content::Int
    }

    fn open<'a>(&self, bytes: &'a [u8], meta: &PageMeta) -> Result<PageView<'a>> {
        let mut reader = ByteReader::new(bytes);
        let nulls = take_nulls(&mut reader, meta)?;
        let blocks = PackedBlocks::read(&mut reader, meta.rows as usize, 8, 64)?;
        Ok(PageView::Int(ValuesPage::new(meta, nulls, std::sync::Arc::new(IntFrames(blocks)))))
    }
}

#[derive(Debug)]
struct IntFrames<'a>(PackedBlocks<'a>);

impl<'a> IntBlocks<'a> for IntFrames<'a> {
    fn frame(&self, block: usize) -> Option<Frame<'a>> {
        let (packed, width, count) = self.0.block(block);
        let base = i64::from_le_bytes(self.0.head(block));
        Some(Frame { packed, width, count, base, step: 1 })
    }

    fn unpack(&self, block: usize, out: &mut [i64; BLOCK]) {
        let (packed, width, count) = self.0.block(block);
        let base = i64::from_le_bytes(self.0.head(block));
        let mut offsets = [0; BLOCK];
        unpack_block(packed, count, width, &mut offsets);
        for (o, v) in out.iter_mut().zip(&offsets) {
            *o = base.wrapping_add(*v as i64);
        }
    }
}

/// Encodes numbers by frame of reference. `nulls`, if given, has a bit for each value.
pub fn encode_int(values: &[i64], nulls: Option<&Bitmap>) -> Page {
    let mut bytes = Vec::with_capacity(values.len() * 4 + 64);
    let null_count = put_nulls(nulls, values.len(), &mut bytes);
    let nulls = nulls.filter(|_| null_count > 0);
    let blocks = values.len().div_ceil(BLOCK);
    let bases_at = bytes.len();
    bytes.resize(bases_at + blocks * 9, 0);
    let (mut min, mut max) = (i64::MAX, i64::MIN);
    let mut offsets = [0u64; BLOCK];
    for (b, block) in values.chunks(BLOCK).enumerate() {
        let is_null = |i: usize| nulls.is_some_and(|n| n.get(b * BLOCK + i));
        let (low, high) = match nulls {
            None => block.iter().fold((i64::MAX, i64::MIN), |(l, h), v| (l.min(*v), h.max(*v))),
            Some(_) => block
                .iter()
                .enumerate()
                .filter(|(i, _)| !is_null(*i))
                .fold((i64::MAX, i64::MIN), |(l, h), (_, v)| (l.min(*v), h.max(*v))),
        };
        if low > high {
            continue; // all NULL: width 0
        }
        (min, max) = (min.min(low), max.max(high));
        for (o, v) in offsets.iter_mut().zip(block) {
            *o = v.wrapping_sub(low) as u64;
        }
        if nulls.is_some() {
            for (i, o) in offsets[..block.len()].iter_mut().enumerate() {
                if is_null(i) {
                    *o = 0;
                }
            }
        }
        let width = width_of(high.wrapping_sub(low) as u64);
        bytes[bases_at + b * 8..][..8].copy_from_slice(&low.to_le_bytes());
        bytes[bases_at + blocks * 8 + b] = width;
        pack_block(&offsets[..block.len()], width, &mut bytes);
    }
    if min > max {
        (min, max) = (0, 0);
    }
    // Pages wait in memory; what was reserved too much would wait with them.
    bytes.shrink_to_fit();
    Page {
        codec: CodecId::FRAMES,
        detail: PageDetail::Int { min, max },
        rows: values.len() as u32,
        nulls: null_count,
        bytes,
        runs: None,
    }
}
