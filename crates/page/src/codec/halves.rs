//! Numbers whose high bits take few values, as those of floats do: sign, exponent, and the first digits.
//!
//! ```text
//!   [null bits]  right bits u8  index bits u8  first i64  entries: u16, one for each index
//!   exceptions: u16 per block
//!   for each block: blocks of indexes, blocks of right halves
//!   exceptions of each block: rows of the block u16, then left halves u16
//! ```
//!
//! A value is `(first + entry) << right bits`, and its right half below that. A left half that is none of the entries is an
//! exception.
//!
//! Cost: two unpacks and a look-up in a table of at most 128 entries a value.
//!
//! Source: Afroozeh, Kuffo and Boncz, "ALP: Adaptive Lossless floating-Point Compression", SIGMOD 2023, section 3.4.

use std::sync::Arc;

use super::decimals::Form;
use super::{Codec, Content, Sample, take_nulls};
use crate::bitpack::{BLOCK, block_bytes, pack_block, unpack_block, width_of};
use crate::page::{PageMeta, block_rows};
use crate::view::{IntBlocks, IntPage, PageView, ValuesPage};
use coload_types::bytes::ByteReader;
use coload_types::{Error, Result};

/// Most bits of an index.
const INDEX_BITS_MAX: u8 = 7;
/// Bits of a left half.
const LEFT_BITS: u8 = 16;
/// Bytes of an exception.
const EXCEPTION_BYTES: usize = 4;
/// Values of a sample that cuts are tried on.
const TRIED: usize = 512;
/// Numbers of fewer bits have no halves worth a table.
const BITS_MIN: u8 = 20;

/// Where values are cut, and which left halves have an index.
#[derive(Debug, Clone, PartialEq, Eq)]
struct Cut {
    right_bits: u8,
    index_bits: u8,
    first: i64,
    /// Left halves less `first`, the most frequent first; as many as indexes.
    entries: Vec<u16>,
}

impl Cut {
    /// The best cut for values like these, sorted, of a page from `low` to `high`, and the bits it takes for them.
    fn best(tried: &[i64], low: i64, high: i64) -> Option<(Self, usize)> {
        let bits = width_of(high.wrapping_sub(low) as u64);
        if bits < BITS_MIN || tried.is_empty() {
            return None;
        }
        let cuts = bits.saturating_sub(LEFT_BITS - 1)..bits.min(63);
        cuts.filter_map(|right| Cut::at(right, tried, low, high)).min_by_key(|(_, bits)| *bits)
    }

    fn at(right_bits: u8, tried: &[i64], low: i64, high: i64) -> Option<(Self, usize)> {
        let first = low >> right_bits;
        if (high >> right_bits).wrapping_sub(first) > i64::from(u16::MAX) {
            return None;
        }
        let left = |value: &i64| (value >> right_bits).wrapping_sub(first) as u16;
        let alike = tried.chunk_by(|a, b| a >> right_bits == b >> right_bits);
        let mut counts: Vec<(usize, u16)> =
            alike.map(|alike| (alike.len(), left(&alike[0]))).collect();
        counts.sort_unstable_by(|a, b| b.0.cmp(&a.0).then(a.1.cmp(&b.1)));
        // Those that a sample has once tell how many there are that it has not (Good and Turing).
        let unseen = counts.iter().filter(|(count, _)| *count == 1).count();
        let cost = |index_bits: &u8| {
            let known: usize = counts.iter().take(1 << index_bits).map(|(count, _)| count).sum();
            tried.len() * usize::from(right_bits + index_bits)
                + (tried.len() - known + unseen) * EXCEPTION_BYTES * 8
        };
        let index_bits = (0..=INDEX_BITS_MAX).min_by_key(cost)?;
        let mut entries: Vec<u16> = counts.iter().map(|(_, left)| *left).collect();
        entries.resize(1 << index_bits, 0);
        Some((Cut { right_bits, index_bits, first, entries }, cost(&index_bits)))
    }

    fn left(&self, value: i64) -> u16 {
        (value >> self.right_bits).wrapping_sub(self.first) as u16
    }

    fn right_mask(&self) -> u64 {
        (1 << self.right_bits) - 1
    }
}

/// Some of the values of a sample, sorted; `None` if they are no floats: other numbers are as likely of one size as of
/// another, and to try all cuts takes time.
fn thin(stretches: &[Vec<i64>]) -> Option<Vec<i64>> {
    let count: usize = stretches.iter().map(Vec::len).sum();
    let values = stretches.iter().flatten().copied();
    Form::guess(values.clone())?;
    let mut values: Vec<i64> = values.step_by(count.div_ceil(TRIED).max(1)).collect();
    values.sort_unstable();
    Some(values)
}

/// The range of the values that are not NULL.
fn range(page: &IntPage<'_>) -> Option<(i64, i64)> {
    let mut block = [0; BLOCK];
    let (mut low, mut high) = (i64::MAX, i64::MIN);
    for b in 0..page.rows().div_ceil(BLOCK) {
        let count = page.unpack_int(b, &mut block);
        for (row, value) in block[..count].iter().enumerate() {
            if !page.is_null(b * BLOCK + row) {
                (low, high) = (low.min(*value), high.max(*value));
            }
        }
    }
    (low <= high).then_some((low, high))
}

/// Numbers cut into two halves, of which the left ones are few.
#[derive(Debug)]
pub(super) struct Halves;

impl Codec for Halves {
    fn name(&self) -> &'static str {
        "halves"
    }

    fn content(&self) -> Content {
        Content::Int
    }

    fn open<'a>(&self, bytes: &'a [u8], meta: &PageMeta) -> Result<PageView<'a>> {
        let rows = meta.rows as usize;
        let mut reader = ByteReader::new(bytes);
        let nulls = take_nulls(&mut reader, meta)?;
        let (right_bits, index_bits) = (reader.u8()?, reader.u8()?);
        if right_bits > 63 || index_bits > INDEX_BITS_MAX {
            return Err(Error::Corrupt("page of halves of other widths".into()));
        }
        let first = i64::from_le_bytes(reader.array()?);
        let entries = reader.take(2 << index_bits)?.as_chunks().0;
        let entries = entries.iter().map(|entry| u16::from_le_bytes(*entry)).collect();
        let cut = Cut { right_bits, index_bits, first, entries };
        let blocks = rows.div_ceil(BLOCK);
        let (mut starts, mut count) = (Vec::new(), 0);
        for exceptions in reader.take(blocks * 2)?.as_chunks().0 {
            let exceptions = usize::from(u16::from_le_bytes(*exceptions));
            starts.push((count, exceptions));
            count += exceptions;
        }
        let bytes_of = |block| {
            let count = block_rows(rows, block);
            block_bytes(count, index_bits) + block_bytes(count, right_bits)
        };
        let packed = reader.take((0..blocks).map(bytes_of).sum())?;
        let exceptions = reader.take(count * EXCEPTION_BYTES)?;
        reader.finish()?;
        let blocks = Blocks { cut, rows, starts, packed, exceptions };
        Ok(PageView::Int(ValuesPage::new(meta, nulls, Arc::new(blocks))))
    }

    fn estimate(&self, sample: &Sample) -> Option<usize> {
        let Sample::Int { stretches, nulls, rows } = sample else { return None };
        let tried = thin(stretches)?;
        let (low, high) = (*tried.first()?, *tried.last()?);
        let (_, bits) = Cut::best(&tried, low, high)?;
        let null_bytes = if *nulls > 0 { rows / 8 } else { 0 };
        Some(bits * rows / tried.len() / 8 + rows.div_ceil(BLOCK) * 2 + null_bytes)
    }

    fn encode(&self, page: &PageView<'_>) -> Result<Option<Vec<u8>>> {
        let PageView::Int(page) = page else { return Ok(None) };
        let Some((low, high)) = range(page) else { return Ok(None) };
        let tried = thin(&Sample::stretches(page)).unwrap_or_default();
        let Some((cut, _)) = Cut::best(&tried, low, high) else { return Ok(None) };
        let mut bytes = page.null_bits().unwrap_or(&[]).to_vec();
        bytes.extend([cut.right_bits, cut.index_bits]);
        bytes.extend(cut.first.to_le_bytes());
        bytes.extend(cut.entries.iter().flat_map(|entry| entry.to_le_bytes()));
        let (at, blocks) = (bytes.len(), page.rows().div_ceil(BLOCK));
        bytes.resize(at + blocks * 2, 0);
        // The index of each left half; one more than there are for those that have none.
        let mut index_of = vec![u8::MAX; 1 << LEFT_BITS];
        for (index, entry) in cut.entries.iter().enumerate().rev() {
            index_of[usize::from(*entry)] = index as u8;
        }
        let (mut exceptions, mut values) = (Vec::new(), [0; BLOCK]);
        let (mut indexes, mut rights) = ([0; BLOCK], [0; BLOCK]);
        for b in 0..blocks {
            let count = page.unpack_int(b, &mut values);
            let (mut rows, mut lefts): (Vec<u16>, Vec<u16>) = (Vec::new(), Vec::new());
            for (row, value) in values[..count].iter().enumerate() {
                let left = cut.left(*value);
                let index = index_of[usize::from(left)];
                rights[row] = *value as u64 & cut.right_mask();
                indexes[row] = u64::from(index);
                if index == u8::MAX {
                    indexes[row] = 0;
                    if !page.is_null(b * BLOCK + row) {
                        rows.push(row as u16);
                        lefts.push(left);
                    }
                }
            }
            bytes[at + b * 2..][..2].copy_from_slice(&(rows.len() as u16).to_le_bytes());
            pack_block(&indexes[..count], cut.index_bits, &mut bytes);
            pack_block(&rights[..count], cut.right_bits, &mut bytes);
            exceptions.extend(rows.iter().chain(&lefts).flat_map(|half| half.to_le_bytes()));
        }
        bytes.extend(exceptions);
        Ok(Some(bytes))
    }
}

#[derive(Debug)]
struct Blocks<'a> {
    cut: Cut,
    rows: usize,
    /// Exceptions before those of each block, and how many it has.
    starts: Vec<(usize, usize)>,
    packed: &'a [u8],
    exceptions: &'a [u8],
}

impl<'a> IntBlocks<'a> for Blocks<'a> {
    fn unpack(&self, block: usize, out: &mut [i64; BLOCK]) {
        let Cut { right_bits, index_bits, first, entries } = &self.cut;
        let count = block_rows(self.rows, block);
        let full = block_bytes(BLOCK, *index_bits) + block_bytes(BLOCK, *right_bits);
        let packed = &self.packed[block * full..];
        let (indexes, rights) = packed.split_at(block_bytes(count, *index_bits));
        let (mut left, mut right) = ([0; BLOCK], [0; BLOCK]);
        unpack_block(indexes, count, *index_bits, &mut left);
        unpack_block(rights, count, *right_bits, &mut right);
        let mut table = [0; 1 << INDEX_BITS_MAX];
        let value =
            |left: u16| first.wrapping_add(i64::from(left)).wrapping_shl(u32::from(*right_bits));
        for (t, entry) in table.iter_mut().zip(entries) {
            *t = value(*entry);
        }
        for (o, (l, r)) in out.iter_mut().zip(left.iter().zip(&right)) {
            *o = table[(*l as usize) % table.len()] | *r as i64;
        }
        let (start, exceptions) = self.starts[block];
        let all = &self.exceptions[start * EXCEPTION_BYTES..][..exceptions * EXCEPTION_BYTES];
        let (rows, lefts) = all.split_at(exceptions * 2);
        for (row, left) in rows.as_chunks().0.iter().zip(lefts.as_chunks().0) {
            let row = usize::from(u16::from_le_bytes(*row));
            if let (Some(out), Some(right)) = (out.get_mut(row), right.get(row)) {
                *out = value(u16::from_le_bytes(*left)) | *right as i64;
            }
        }
    }
}
