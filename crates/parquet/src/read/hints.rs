//! What a file says of values without its pages being read: bounds of column chunks and of pages, and Bloom filters.
//!
//! ```text
//!   row group  bounds of each column chunk                         in the footer
//!   page       first row, bounds          page index: two structures for each column chunk, before the footer
//!   value      may be there or is not     Bloom filter: blocks of 32 bytes, of which a value sets 8 bits in one
//! ```
//!
//! A hint leaves out rows, and whoever wrote a wrong one has lost them. One that contradicts itself is not believed.
//!
//! Source: parquet.apache.org: page index, Bloom filter; the latter's reference is that of Putze, Sanders and Singler, 2009.

use coload_arrow::{Body, Result};
use twox_hash::XxHash64;

use super::thrift::{Compact, Kind, Result as ThriftResult, Wrong, expect};

/// Longest bound of a text that is kept. Some writers do not cut them.
const TEXT_BYTES_MAX: usize = 1 << 10;
/// Most bytes of a part of the page index.
const INDEX_BYTES_MAX: u64 = 16 << 20;
/// Bytes in which the head of a Bloom filter ends.
const BLOOM_HEAD_BYTES: usize = 64;
/// Bytes of a block of a Bloom filter.
const BLOOM_BLOCK_BYTES: usize = 32;
/// What the words of a block multiply a hash with.
const BLOOM_SALT: [u32; 8] = [
    0x47b6_137b,
    0x4497_4d91,
    0x8824_ad5b,
    0xa2b7_289d,
    0x7054_95c7,
    0x2df1_424b,
    0x9efc_4947,
    0x5c6b_fb31,
];

/// Numbers of the types of 32 and 64 bits, and of texts and bytes.
const INT32: i32 = 1;
const INT64: i32 = 2;
const BYTE_ARRAY: i32 = 6;

/// The least and the greatest of some values, or what is not above and not below them.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum ValueBounds {
    /// Of integers, as they are stored.
    Ints(i64, i64),
    /// Of texts or bytes, in the order of bytes.
    Texts(Box<[u8]>, Box<[u8]>),
}

impl ValueBounds {
    /// Bounds as they are written for values of a type; `None` for types whose order is another, and where they contradict
    /// each other.
    pub(super) fn new(physical: i32, least: &[u8], greatest: &[u8]) -> Option<Self> {
        let ints = |width: usize| {
            let both = least.len() == width && greatest.len() == width;
            both.then(|| integer(least).zip(integer(greatest))).flatten()
        };
        match physical {
            INT32 | INT64 => {
                let (least, greatest) = ints(if physical == INT32 { 4 } else { 8 })?;
                (least <= greatest).then_some(ValueBounds::Ints(least, greatest))
            }
            BYTE_ARRAY => {
                let short = least.len().max(greatest.len()) <= TEXT_BYTES_MAX;
                (short && least <= greatest)
                    .then(|| ValueBounds::Texts(least.into(), greatest.into()))
            }
            _ => None,
        }
    }
}

/// An integer of 4 or 8 bytes, as values of such types are written.
fn integer(bytes: &[u8]) -> Option<i64> {
    match bytes.len() {
        4 => Some(i32::from_le_bytes(bytes.try_into().ok()?).into()),
        8 => Some(i64::from_le_bytes(bytes.try_into().ok()?)),
        _ => None,
    }
}

/// Where something is in a file.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct PlaceAt {
    /// Where it starts; 0 where it is not.
    pub start: u64,
    /// Its bytes; 0 where they are not told.
    pub bytes: u64,
}

impl PlaceAt {
    /// Whether it is there, and within the bytes before `end`.
    fn is_within(&self, end: u64) -> bool {
        self.start > 0 && self.start.checked_add(self.bytes).is_some_and(|at| at <= end)
    }
}

/// What a footer says of the values of a column chunk.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct ColumnHints {
    /// Bounds of all values.
    pub bounds: Option<ValueBounds>,
    /// The part of the page index with the bounds of pages.
    pub column_index: PlaceAt,
    /// The part of the page index with the first rows of pages.
    pub offset_index: PlaceAt,
    /// The Bloom filter.
    pub bloom: PlaceAt,
    /// Number of the type of the values.
    pub(super) physical: i32,
}

/// What the page index says of a page.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct PageHint {
    /// Its first row in the row group.
    pub first_row: u64,
    /// Whether it has NULL only.
    pub is_null: bool,
    /// Bounds of its values.
    pub bounds: Option<ValueBounds>,
}

impl ColumnHints {
    /// Bytes of memory that they take beside themselves.
    pub(super) fn bytes(&self) -> usize {
        match &self.bounds {
            Some(ValueBounds::Texts(least, greatest)) => least.len() + greatest.len(),
            _ => 0,
        }
    }

    /// Whether there is a page index within the bytes before `end`.
    pub fn has_page_index(&self, end: u64) -> bool {
        [self.column_index, self.offset_index]
            .iter()
            .all(|part| part.is_within(end) && (1..=INDEX_BYTES_MAX).contains(&part.bytes))
    }

    /// The pages of the column chunk, of a row group of so many rows; `None` when the index is not believed.
    ///
    /// # Errors
    /// Those of reading.
    pub fn pages(&self, rows: u64, body: &dyn Body) -> Result<Option<Vec<PageHint>>> {
        let read = |part: &PlaceAt| body.read(part.start, part.bytes as usize);
        let (offsets, columns) = (read(&self.offset_index)?, read(&self.column_index)?);
        let first_rows = first_rows(&offsets).ok();
        let bounds = PageBounds::decode(&columns).ok();
        let Some((first_rows, bounds)) = first_rows.zip(bounds) else { return Ok(None) };
        let count = first_rows.len();
        let fits = bounds.is_null.len() == count
            && bounds.least.len() == count
            && bounds.greatest.len() == count;
        let rises = first_rows.windows(2).all(|rows| rows[0] < rows[1]);
        let is_whole = first_rows.first() == Some(&0) && first_rows.last() < Some(&rows);
        if !(fits && rises && is_whole) {
            return Ok(None);
        }
        let page = |(number, first_row): (usize, u64)| {
            let is_null = bounds.is_null[number];
            let (least, greatest) = (bounds.least[number], bounds.greatest[number]);
            let bounds = ValueBounds::new(self.physical, least, greatest);
            PageHint { first_row, is_null, bounds: bounds.filter(|_| !is_null) }
        };
        Ok(Some(first_rows.into_iter().enumerate().map(page).collect()))
    }

    /// Whether the Bloom filter has one of these hashes, or there is none that can be read within the bytes before `end`.
    ///
    /// # Errors
    /// Those of reading.
    pub fn may_have(&self, hashes: &[u64], end: u64, body: &dyn Body) -> Result<bool> {
        let at = self.bloom.start;
        if at == 0 || at >= end {
            return Ok(true);
        }
        let head = body.read(at, BLOOM_HEAD_BYTES.min((end - at) as usize))?;
        let Ok((head_bytes, bytes)) = bloom_head(&head) else { return Ok(true) };
        let blocks = bytes / BLOOM_BLOCK_BYTES as u64;
        let start = at + head_bytes as u64;
        if blocks == 0
            || bytes % BLOOM_BLOCK_BYTES as u64 > 0
            || start.checked_add(bytes).is_none_or(|last| last > end)
        {
            return Ok(true);
        }
        for hash in hashes {
            let block = (u128::from(hash >> 32) * u128::from(blocks)) >> 32;
            let place = start + block as u64 * BLOOM_BLOCK_BYTES as u64;
            if has_bits(&body.read(place, BLOOM_BLOCK_BYTES)?, *hash as u32) {
                return Ok(true);
            }
        }
        Ok(false)
    }

    /// Adds the hash of an integer to those that a Bloom filter is asked for, if its type holds the value. False where the values are
    /// no integers: nothing can be asked then.
    pub fn push_hash_of_int(&self, value: i64, hashes: &mut Vec<u64>) -> bool {
        match self.physical {
            INT32 => {
                let value = i32::try_from(value).ok();
                hashes.extend(value.map(|value| XxHash64::oneshot(0, &value.to_le_bytes())));
            }
            INT64 => hashes.push(XxHash64::oneshot(0, &value.to_le_bytes())),
            _ => return false,
        }
        true
    }

    /// The same of a text.
    pub fn push_hash_of_text(&self, text: &[u8], hashes: &mut Vec<u64>) -> bool {
        let is_text = self.physical == BYTE_ARRAY;
        if is_text {
            hashes.push(XxHash64::oneshot(0, text));
        }
        is_text
    }
}

/// Whether a block has the bits of a hash.
fn has_bits(block: &[u8], hash: u32) -> bool {
    let words = block.as_chunks::<4>().0.iter().map(|word| u32::from_le_bytes(*word));
    let bits = BLOOM_SALT.iter().map(|salt| 1_u32 << (hash.wrapping_mul(*salt) >> 27));
    block.len() == BLOOM_BLOCK_BYTES && words.zip(bits).all(|(word, bit)| word & bit != 0)
}

/// Bytes of the head of a Bloom filter, and of its blocks. There is one kind of each of its parts.
fn bloom_head(bytes: &[u8]) -> ThriftResult<(usize, u64)> {
    let mut filter_bytes = 0;
    let mut known = [false; 3];
    let mut from = Compact::new(bytes);
    from.structure(|from, field, kind| {
        match field {
            1 => filter_bytes = u64::from(from.u32(kind)?),
            2..=4 => {
                expect(kind, Kind::Struct)?;
                let known = &mut known[field as usize - 2];
                from.structure(|_, field, kind| {
                    *known = field == 1 && kind == Kind::Struct;
                    Ok(false)
                })?;
            }
            _ => return Ok(false),
        }
        Ok(true)
    })?;
    match known {
        [true, true, true] => Ok((from.read_bytes(), filter_bytes)),
        _ => Err(Wrong::Bad("a Bloom filter of another kind")),
    }
}

/// The first rows of the pages that an offset index tells.
fn first_rows(bytes: &[u8]) -> ThriftResult<Vec<u64>> {
    let mut rows = Vec::new();
    Compact::new(bytes).structure(|from, field, kind| {
        if field != 1 {
            return Ok(false);
        }
        from.list(kind, Kind::Struct, |from| {
            let mut row = None;
            from.structure(|from, field, kind| {
                if field == 3 {
                    row = Some(from.u64(kind)?);
                }
                Ok(field == 3)
            })?;
            rows.push(row.ok_or(Wrong::Bad("a page without its first row"))?);
            Ok(())
        })?;
        Ok(true)
    })?;
    Ok(rows)
}

/// What a column index tells of pages.
#[derive(Default)]
struct PageBounds<'a> {
    is_null: Vec<bool>,
    least: Vec<&'a [u8]>,
    greatest: Vec<&'a [u8]>,
}

impl<'a> PageBounds<'a> {
    fn decode(bytes: &'a [u8]) -> ThriftResult<Self> {
        let mut found = PageBounds::default();
        Compact::new(bytes).structure(|from, field, kind| {
            let texts = match field {
                1 => {
                    from.truths(kind, &mut found.is_null)?;
                    return Ok(true);
                }
                2 => &mut found.least,
                3 => &mut found.greatest,
                _ => return Ok(false),
            };
            from.list(kind, Kind::Binary, |from| {
                texts.push(from.binary(Kind::Binary)?);
                Ok(())
            })?;
            Ok(true)
        })?;
        Ok(found)
    }
}

#[cfg(test)]
mod tests;
