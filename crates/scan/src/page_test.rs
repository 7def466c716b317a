//! One test on the blocks of one page.

use std::ops::Bound;

use coload_page::bitpack::BLOCK;
use coload_page::{CodesPage, Frame, IntPage, SymbolDecoder, TextPage, TextScratch, WidePage};
use coload_types::{Result, Value};

use crate::compare::{Scratch, mask_packed, max_of_width};
use crate::mask::{BlockMask, MASK_WORDS};
use crate::predicate::Test;
use crate::ranges::Ranges;
use crate::unpack::unpack_to_32;

/// Over this many ranges in a page, codes are looked up in a table instead.
pub const RANGES_MAX: usize = 8;

/// A test on one page.
pub enum PageTest<'a> {
    Codes {
        page: CodesPage<'a>,
        ranges: Vec<(u64, u64)>,
    },
    Table {
        page: CodesPage<'a>,
        table: &'a [u8],
    },
    Int {
        page: IntPage<'a>,
        ranges: &'a Ranges<i64>,
    },
    Wide {
        page: WidePage<'a>,
        ranges: &'a Ranges<i128>,
    },
    Text {
        page: TextPage<'a>,
        decoder: Option<&'a SymbolDecoder>,
        test: &'a Test,
    },
    /// Rows that are NULL, by the page's null bits.
    Nulls {
        bits: Option<&'a [u8]>,
    },
}

/// The null bits of one block, of those of its page.
pub fn null_words(bits: Option<&[u8]>, block: usize) -> Option<[u64; MASK_WORDS]> {
    let bits = bits?;
    let start = (block * BLOCK / 8).min(bits.len());
    let bytes = &bits[start..(start + BLOCK / 8).min(bits.len())];
    let mut words = [0; MASK_WORDS];
    for (word, eight) in words.iter_mut().zip(bytes.chunks(8)) {
        let mut raw = [0; 8];
        raw[..eight.len()].copy_from_slice(eight);
        *word = u64::from_le_bytes(raw);
    }
    Some(words)
}

impl PageTest<'_> {
    /// Order in which tests are made: narrow codes first, strings last.
    pub fn cost(&self) -> u32 {
        match self {
            PageTest::Nulls { .. } => 0,
            PageTest::Codes { page, ranges } => u32::from(page.width) * ranges.len() as u32,
            PageTest::Int { ranges, .. } => 40 * ranges.as_slice().len().max(1) as u32,
            PageTest::Table { .. } => 300,
            PageTest::Wide { .. } => 1_000,
            PageTest::Text { .. } => 10_000,
        }
    }

    /// Drops from `mask` the rows that do not pass.
    pub fn keep(&self, block: usize, mask: &mut BlockMask, scratch: &mut Scratch) -> Result<()> {
        match self {
            PageTest::Codes { page, ranges } => {
                let (packed, count) = page.packed(block);
                mask.keep(&mask_packed(packed, count, page.width, ranges, scratch));
            }
            PageTest::Table { page, table } => keep_listed(page, table, block, mask, scratch),
            PageTest::Int { page, ranges } => keep_int(page, ranges, block, mask, scratch),
            PageTest::Wide { page, ranges } => keep_wide(page, ranges, block, mask),
            PageTest::Text { page, decoder, test } => {
                drop_nulls(page.null_bits(), block, mask);
                keep_text(page, *decoder, test, block, mask)?;
            }
            PageTest::Nulls { bits } => {
                mask.keep(&null_words(*bits, block).unwrap_or([0; MASK_WORDS]));
            }
        }
        Ok(())
    }
}

fn drop_nulls(bits: Option<&[u8]>, block: usize, mask: &mut BlockMask) {
    if let Some(nulls) = null_words(bits, block) {
        mask.drop_rows(&nulls);
    }
}

fn keep_listed(
    page: &CodesPage<'_>,
    table: &[u8],
    block: usize,
    mask: &mut BlockMask,
    scratch: &mut Scratch,
) {
    let offsets = &mut *scratch.lanes_32;
    unpack_to_32(page.packed(block).0, page.width, offsets);
    let table = table.get(page.base as usize..).unwrap_or(&[]);
    let mut listed = [0u64; MASK_WORDS];
    for (word, chunk) in listed.iter_mut().zip(offsets.chunks_exact(64)) {
        for (i, offset) in chunk.iter().enumerate() {
            let bit = table.get(*offset as usize).copied().unwrap_or(0);
            *word |= u64::from(bit) << i;
        }
    }
    mask.keep(&listed);
}

fn keep_int(
    page: &IntPage<'_>,
    ranges: &Ranges<i64>,
    block: usize,
    mask: &mut BlockMask,
    scratch: &mut Scratch,
) {
    let Some(frame @ Frame { packed, width, count, base, step }) = page.frame(block) else {
        keep_unpacked(page, ranges, block, mask);
        return;
    };
    // A block near the end of i64 reaches past it on paper only: no stored value does.
    let most = max_of_width(width).min(i64::MAX.abs_diff(base) / step);
    let clipped = ranges.clip(base, frame.value(most));
    if clipped.as_slice().len() > RANGES_MAX {
        keep_unpacked(page, &clipped, block, mask);
        return;
    }
    // The offsets of the values in a range; between two steps there are none.
    let mut offsets = [(0, 0); RANGES_MAX];
    let mut found = 0;
    for (low, high) in clipped.as_slice() {
        let (first, last) = (low.abs_diff(base).div_ceil(step), high.abs_diff(base) / step);
        if first <= last {
            offsets[found] = (first, last);
            found += 1;
        }
    }
    match &offsets[..found] {
        [] => *mask = BlockMask::NONE,
        [(0, last)] if *last >= most => {
            drop_nulls(page.null_bits(), block, mask);
        }
        few => {
            mask.keep(&mask_packed(packed, count, width, few, scratch));
            drop_nulls(page.null_bits(), block, mask);
        }
    }
}

fn keep_unpacked(page: &IntPage<'_>, ranges: &Ranges<i64>, block: usize, mask: &mut BlockMask) {
    let mut values = [0; BLOCK];
    page.unpack_int(block, &mut values);
    keep_rows(mask, |row| ranges.contains(values[row]));
    drop_nulls(page.null_bits(), block, mask);
}

fn keep_wide(page: &WidePage<'_>, ranges: &Ranges<i128>, block: usize, mask: &mut BlockMask) {
    let mut values = [0; BLOCK];
    page.unpack_wide(block, &mut values);
    keep_rows(mask, |row| ranges.contains(values[row]));
    drop_nulls(page.null_bits(), block, mask);
}

fn keep_text(
    page: &TextPage<'_>,
    decoder: Option<&SymbolDecoder>,
    test: &Test,
    block: usize,
    mask: &mut BlockMask,
) -> Result<()> {
    let mut scratch = TextScratch::default();
    let strings = page.text_block(block, &mut scratch)?;
    let mut decoded = Vec::new();
    // One reused value for tests against values, so that no row allocates.
    keep_rows(mask, |row| {
        let stored = strings.get(row);
        let string = match decoder {
            Some(decoder) => {
                decoded.clear();
                decoder.decode(stored, &mut decoded);
                &decoded
            }
            None => stored,
        };
        accepts_bytes(test, string)
    });
    Ok(())
}

/// [`Test::matches`] for a string that is not a [`Value`].
fn accepts_bytes(test: &Test, string: &[u8]) -> bool {
    let equals = |v: &Value| matches!(v, Value::Bytes(b) if **b == *string);
    let compare = |v: &Value| match v {
        Value::Bytes(b) => string.cmp(b),
        _ => std::cmp::Ordering::Greater,
    };
    match test {
        Test::Range { low, high } => {
            (match low {
                Bound::Included(v) => compare(v).is_ge(),
                Bound::Excluded(v) => compare(v).is_gt(),
                Bound::Unbounded => true,
            }) && match high {
                Bound::Included(v) => compare(v).is_le(),
                Bound::Excluded(v) => compare(v).is_lt(),
                Bound::Unbounded => true,
            }
        }
        Test::In(values) => values.iter().any(equals),
        Test::NotIn(values) => !values.iter().any(equals),
        Test::Prefix(prefix) => string.starts_with(prefix),
        Test::Accepts(accepts) => accepts(string),
        Test::IsNull => false,
        Test::IsNotNull => true,
    }
}

/// Keeps the selected rows that pass a test made row by row.
fn keep_rows(mask: &mut BlockMask, mut passes: impl FnMut(usize) -> bool) {
    let mut kept = BlockMask::NONE;
    mask.for_each(|row| {
        if passes(row) {
            kept.set(row);
        }
    });
    *mask = kept;
}
