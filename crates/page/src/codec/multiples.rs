//! Numbers by frame of reference whose distances have a common divisor: moments of whole seconds, amounts without cents.
//!
//! ```text
//!   [null bits]  step: u64  bases: i64 per block  widths: u8 per block  blocks of (value - base) / step
//! ```
//!
//! Moments are kept in microseconds, and few clocks tell those: whole seconds take 20 bits less a row. Tests are made
//! on the packed offsets, as on a frame of reference.
//!
//! Cost: a division a row to find the divisor, and one to write it; a multiplication to read it.

use std::sync::Arc;

use super::{Codec, Content, PackedBlocks, Sample, take_nulls};
use crate::bitpack::{BLOCK, pack_block, unpack_block, width_of};
use crate::page::PageMeta;
use crate::view::{Frame, IntBlocks, IntPage, PageView, ValuesPage};
use coload_types::bytes::ByteReader;
use coload_types::{Error, Result};

/// Numbers as multiples of a step from the least of their block.
#[derive(Debug)]
pub(super) struct Multiples;

impl Codec for Multiples {
    fn name(&self) -> &'static str {
        "multiples"
    }

    fn content(&self) -> Content {
        Content::Int
    }

    fn open<'a>(&self, bytes: &'a [u8], meta: &PageMeta) -> Result<PageView<'a>> {
        let mut reader = ByteReader::new(bytes);
        let nulls = take_nulls(&mut reader, meta)?;
        let step = u64::from_le_bytes(reader.array()?);
        if step == 0 {
            return Err(Error::Corrupt("page of multiples of 0".into()));
        }
        let blocks = PackedBlocks::read(&mut reader, meta.rows as usize, 8, 64)?;
        reader.finish()?;
        Ok(PageView::Int(ValuesPage::new(meta, nulls, Arc::new(Blocks { step, blocks }))))
    }

    fn estimate(&self, sample: &Sample) -> Option<usize> {
        let Sample::Int { stretches, nulls, rows } = sample else { return None };
        let step = step_of(stretches.iter().flatten().copied())?;
        let mut bits = 0;
        for stretch in stretches {
            let (low, high) = (stretch.iter().min()?, stretch.iter().max()?);
            bits += usize::from(width_of(high.abs_diff(*low) / step)) * stretch.len();
        }
        let seen: usize = stretches.iter().map(Vec::len).sum();
        let null_bytes = if *nulls > 0 { rows / 8 } else { 0 };
        let bytes = bits * rows / seen.max(1) / 8 + rows.div_ceil(BLOCK) * 9 + null_bytes;
        // An eighth more than it is, as a row more is to be read with a multiplication.
        Some(bytes + bytes / 8)
    }

    fn encode(&self, page: &PageView<'_>) -> Result<Option<Vec<u8>>> {
        let PageView::Int(page) = page else { return Ok(None) };
        let Some(step) = step_of_page(page) else { return Ok(None) };
        let mut bytes = page.null_bits().unwrap_or(&[]).to_vec();
        bytes.extend(step.to_le_bytes());
        let (at, blocks) = (bytes.len(), page.rows().div_ceil(BLOCK));
        bytes.resize(at + blocks * 9, 0);
        let (mut values, mut offsets) = ([0; BLOCK], [0; BLOCK]);
        for b in 0..blocks {
            let count = page.unpack_int(b, &mut values);
            let is_value = |row: &usize| !page.is_null(b * BLOCK + row);
            let least = (0..count).filter(is_value).map(|row| values[row]).min().unwrap_or(0);
            for (row, offset) in offsets[..count].iter_mut().enumerate() {
                let distance = if is_value(&row) { values[row].abs_diff(least) } else { 0 };
                *offset = distance / step;
            }
            let most = offsets[..count].iter().max().copied().unwrap_or(0);
            bytes[at + b * 8..][..8].copy_from_slice(&least.to_le_bytes());
            bytes[at + blocks * 8 + b] = width_of(most);
            pack_block(&offsets[..count], width_of(most), &mut bytes);
        }
        Ok(Some(bytes))
    }
}

/// The greatest common divisor of the distances of values; `None` if it is 1, or there are no distances.
fn step_of(values: impl IntoIterator<Item = i64>) -> Option<u64> {
    let mut values = values.into_iter();
    let first = values.next()?;
    let mut step = 0;
    for value in values {
        step = common_divisor(step, value.abs_diff(first));
        if step == 1 {
            return None;
        }
    }
    (step > 1).then_some(step)
}

fn step_of_page(page: &IntPage<'_>) -> Option<u64> {
    let mut values = [0; BLOCK];
    // The first value, and what divides its distance to all others so far.
    let mut found: Option<(i64, u64)> = None;
    for b in 0..page.rows().div_ceil(BLOCK) {
        let count = page.unpack_int(b, &mut values);
        let is_value = |row: &usize| !page.is_null(b * BLOCK + row);
        for row in (0..count).filter(is_value) {
            let (first, step) = found.get_or_insert((values[row], 0));
            *step = common_divisor(*step, values[row].abs_diff(*first));
            if *step == 1 {
                return None;
            }
        }
    }
    found.map(|(_, step)| step).filter(|step| *step > 1)
}

/// The greatest common divisor of two numbers, of which every number divides 0. One division where `step` is it.
fn common_divisor(mut step: u64, mut distance: u64) -> u64 {
    while step != 0 {
        (step, distance) = (distance % step, step);
    }
    distance
}

#[derive(Debug)]
struct Blocks<'a> {
    step: u64,
    blocks: PackedBlocks<'a>,
}

impl<'a> IntBlocks<'a> for Blocks<'a> {
    fn frame(&self, block: usize) -> Option<Frame<'a>> {
        let (packed, width, count) = self.blocks.block(block);
        let base = i64::from_le_bytes(self.blocks.head(block));
        Some(Frame { packed, width, count, base, step: self.step })
    }

    fn unpack(&self, block: usize, out: &mut [i64; BLOCK]) {
        let (packed, width, count) = self.blocks.block(block);
        let base = i64::from_le_bytes(self.blocks.head(block));
        let mut offsets = [0; BLOCK];
        unpack_block(packed, count, width, &mut offsets);
        for (o, offset) in out.iter_mut().zip(&offsets) {
            *o = base.wrapping_add(offset.wrapping_mul(self.step) as i64);
        }
    }
}
