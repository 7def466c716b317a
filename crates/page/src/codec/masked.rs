//! Wide numbers of which only some bits differ: UUIDs of version 4 have six bits that are the same in all.
//!
//! ```text
//!   [null bits]  mask: u128  base: u128
//!   blocks of the bits of the mask's low half, next to each other, each followed by that of the high half
//! ```
//!
//! Cost: a shift and two bit operations a row for each run of ones in the mask.

use std::sync::Arc;

use super::{Codec, Content, Sample, take_nulls};
use crate::bitpack::{BLOCK, block_bytes, pack_block, unpack_block};
use crate::page::{PageMeta, block_rows};
use crate::view::{PageView, ValuesPage, WideBlocks, WidePage};
use coload_types::bytes::ByteReader;
use coload_types::{Error, Result};

/// Most runs of ones in half a mask: with more, reading takes long.
const RUNS_MAX: usize = 8;

/// Wide numbers as the bits in which they differ.
#[derive(Debug)]
pub(super) struct Masked;

impl Codec for Masked {
    fn name(&self) -> &'static str {
        "masked"
    }

    fn content(&self) -> Content {
        Content::Wide
    }

    fn open<'a>(&self, bytes: &'a [u8], meta: &PageMeta) -> Result<PageView<'a>> {
        let rows = meta.rows as usize;
        let mut reader = ByteReader::new(bytes);
        let nulls = take_nulls(&mut reader, meta)?;
        let mask = u128::from_le_bytes(reader.array()?);
        let base = u128::from_le_bytes(reader.array()?);
        let Some(halves) = Halves::of(mask) else {
            return Err(Error::Corrupt("page with a mask of too many runs".into()));
        };
        if base & mask != 0 {
            return Err(Error::Corrupt("page whose base has bits of its mask".into()));
        }
        let blocks = rows.div_ceil(BLOCK);
        let packed = reader.take((0..blocks).map(|b| halves.bytes(block_rows(rows, b))).sum())?;
        reader.finish()?;
        let blocks = Blocks { halves, base, rows, packed };
        Ok(PageView::Wide(ValuesPage::new(meta, nulls, Arc::new(blocks))))
    }

    fn estimate(&self, sample: &Sample) -> Option<usize> {
        let Sample::Wide { values, nulls, rows } = sample else { return None };
        let (mask, _) = mask_of(values.iter().copied())?;
        Halves::of(mask)?;
        let null_bytes = if *nulls > 0 { rows / 8 } else { 0 };
        Some(mask.count_ones() as usize * rows / 8 + null_bytes)
    }

    fn encode(&self, page: &PageView<'_>) -> Result<Option<Vec<u8>>> {
        let PageView::Wide(page) = page else { return Ok(None) };
        let Some((mask, base)) = mask_of_page(page) else { return Ok(None) };
        let Some(halves) = Halves::of(mask) else { return Ok(None) };
        let mut bytes = page.null_bits().unwrap_or(&[]).to_vec();
        bytes.extend(mask.to_le_bytes());
        bytes.extend(base.to_le_bytes());
        let (mut values, mut packed) = ([0; BLOCK], [0; BLOCK]);
        for b in 0..page.rows().div_ceil(BLOCK) {
            let count = page.unpack_wide(b, &mut values);
            for half in &halves.0 {
                let bits = |value: i128| (value as u128 >> half.shift) as u64;
                for (to, value) in packed.iter_mut().zip(&values[..count]) {
                    *to = half.runs.iter().fold(0, |all, run| all | run.gather(bits(*value)));
                }
                pack_block(&packed[..count], half.width, &mut bytes);
            }
        }
        Ok(Some(bytes))
    }
}

/// The bits in which values differ, and the others.
fn mask_of(values: impl IntoIterator<Item = i128>) -> Option<(u128, u128)> {
    let mut values = values.into_iter().map(|value| value as u128);
    let first = values.next()?;
    let mask = values.fold(0, |mask, value| mask | value ^ first);
    Some((mask, first & !mask))
}

fn mask_of_page(page: &WidePage<'_>) -> Option<(u128, u128)> {
    let mut block = [0; BLOCK];
    let mut found: Option<(u128, u128)> = None;
    for b in 0..page.rows().div_ceil(BLOCK) {
        let count = page.unpack_wide(b, &mut block);
        let is_value = |row: &usize| !page.is_null(b * BLOCK + row);
        let values = (0..count).filter(is_value).map(|row| block[row]);
        let Some((mask, base)) = mask_of(values) else { continue };
        // Blocks may differ in bits that are the same within each.
        let (before, first) = *found.get_or_insert((mask, base));
        let mask = mask | before | (base ^ first);
        found = Some((mask, first & !mask));
    }
    found
}

/// Bits of a mask next to each other, and how far they move when all are put next to each other.
#[derive(Debug, Clone, Copy)]
struct Run {
    mask: u64,
    by: u32,
}

impl Run {
    #[inline(always)]
    fn gather(self, value: u64) -> u64 {
        (value & self.mask) >> self.by
    }

    #[inline(always)]
    fn spread(self, bits: u64) -> u64 {
        bits << self.by & self.mask
    }
}

/// One half of a mask.
#[derive(Debug)]
struct Half {
    /// Where it stands in the whole.
    shift: u32,
    runs: Vec<Run>,
    /// Its ones.
    width: u8,
}

/// The low half of a mask, and the high one.
#[derive(Debug)]
struct Halves([Half; 2]);

impl Halves {
    /// `None` if there are too many runs.
    fn of(mask: u128) -> Option<Self> {
        let half = |shift: u32| {
            let mut left = (mask >> shift) as u64;
            let width = left.count_ones() as u8;
            let (mut runs, mut before) = (Vec::new(), 0);
            while left != 0 {
                let start = left.trailing_zeros();
                let ones = (left >> start).trailing_ones();
                let run = u64::MAX >> (u64::BITS - ones) << start;
                runs.push(Run { mask: run, by: start - before });
                before += ones;
                left &= !run;
            }
            (runs.len() <= RUNS_MAX).then_some(Half { shift, runs, width })
        };
        Some(Halves([half(0)?, half(64)?]))
    }

    /// Bytes of a block of so many rows.
    fn bytes(&self, rows: usize) -> usize {
        self.0.iter().map(|half| block_bytes(rows, half.width)).sum()
    }
}

#[derive(Debug)]
struct Blocks<'a> {
    halves: Halves,
    base: u128,
    rows: usize,
    packed: &'a [u8],
}

impl WideBlocks for Blocks<'_> {
    fn unpack(&self, block: usize, out: &mut [i128; BLOCK]) {
        let count = block_rows(self.rows, block);
        let mut packed = &self.packed[block * self.halves.bytes(BLOCK)..];
        let mut bits = [0; BLOCK];
        out.fill(self.base as i128);
        for half in &self.halves.0 {
            unpack_block(packed, count, half.width, &mut bits);
            packed = &packed[block_bytes(count, half.width)..];
            for (o, bits) in out.iter_mut().zip(&bits) {
                let spread = half.runs.iter().fold(0, |all, run| all | run.spread(*bits));
                *o |= (u128::from(spread) << half.shift) as i128;
            }
        }
    }
}
