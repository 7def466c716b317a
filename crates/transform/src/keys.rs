//! The sort step of rows by their key: keys become numbers that are ordered as they are, and a permutation is sorted.
//!
//! ```text
//!   columns of the key    BIGINT 1..24,000,000   SMALLINT 1..7       each from its least value on,
//!   packed                |  25 bits             |  3 bits  |  row   in as many bits as its range has
//! ```
//!
//! Packed keys of at most 64 bits with the row are sorted by radix, those of at most 128 by comparison. Keys with text, or
//! of more bits, are bytes that are compared as the keys are ([`put_key`]): their first eight move with the row, the others
//! are looked at where these are equal; long ones stay in their columns. Rows do not move. Where such keys are many they are divided
//! by a sample, and threads share them ([`Splitters`]).
//!
//! The order of keys is that of their values, column by column; NULL is last, and rows of equal keys keep their order.
//!
//! Cost: a row of a packed key 12 to 32 bytes; of one that is bytes 12, and its bytes.

use std::cmp::Ordering;

mod bytes;
mod packed;

pub use bytes::{KeyPart, KeySample, SortedKeys, Splitters, shared_bytes, sort_bucket};
pub use packed::{Divided, KeyBuckets, PackedKeys};

use coload_page::bitpack::width_of;
use coload_types::{Error, Plain, Result, Values};

/// Most rows that are sorted at once.
pub const SORTED_ROWS_MAX: usize = u32::MAX as usize;

/// Rows in the order of their keys.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct KeyOrder {
    /// The rows in order; `None` when they stand in it.
    pub rows: Option<Vec<u32>>,
    /// Places in the order at which the key is that of the place before.
    pub repeated: Vec<u32>,
}

impl KeyOrder {
    /// The row at a place of the order.
    pub fn row(&self, place: usize) -> usize {
        self.rows.as_ref().map_or(place, |rows| rows[place] as usize)
    }
}

/// Sorts rows by columns, the first being the most significant.
///
/// # Errors
/// `Limit` over [`SORTED_ROWS_MAX`] rows.
pub fn sort_keys(columns: &[Plain]) -> Result<KeyOrder> {
    let rows = columns.first().map_or(0, Plain::len);
    if rows > SORTED_ROWS_MAX {
        return Err(Error::Limit(format!(
            "{rows} rows are to be sorted at once, over {SORTED_ROWS_MAX}; lower --memory"
        )));
    }
    let packings: Option<Vec<Packing>> = columns.iter().map(Packing::of).collect();
    let Some(packings) = packings else { return Ok(sort_bytes(columns, rows)) };
    let bits: u32 = packings.iter().map(|packing| packing.bits).sum();
    Ok(match bits {
        _ if bits + u32::from(width_of(rows as u64)) <= u64::BITS => {
            PackedKeys::of(pack(columns, &packings, rows), bits).sort()
        }
        0..=64 => sort_long(&pack::<u64>(columns, &packings, rows)),
        65..=128 => sort_wide(&pack::<u128>(columns, &packings, rows)),
        _ => sort_bytes(columns, rows),
    })
}

/// How values of a column of numbers become some bits.
struct Packing {
    least: i128,
    /// What NULL becomes: one more than the greatest value.
    null: u128,
    bits: u32,
}

impl Packing {
    /// The packing of a column; `None` for text, and for a range of all numbers.
    fn of(column: &Plain) -> Option<Self> {
        let valued = |row: &usize| !column.is_null(*row);
        let rows = (0..column.len()).filter(valued);
        let bounds = match (&column.values, &column.nulls) {
            (Values::Int(values), None) => {
                let bounds = values.iter().min().zip(values.iter().max());
                bounds.map(|(min, max)| (i128::from(*min), i128::from(*max)))
            }
            (Values::Int(values), Some(_)) => range(rows.map(|row| i128::from(values[row]))),
            (Values::Wide(values), _) => range(rows.map(|row| values[row])),
            (Values::Bytes(_), _) => return None,
        };
        let (least, greatest) = bounds.unwrap_or((0, 0));
        let range = greatest.wrapping_sub(least) as u128;
        let null = range.checked_add(1)?;
        let most = if column.nulls.is_some() { null } else { range };
        Some(Packing { least, null, bits: u128::BITS - most.leading_zeros() })
    }

    fn pack(&self, column: &Plain, row: usize) -> u128 {
        if column.is_null(row) {
            return self.null;
        }
        let value = match &column.values {
            Values::Int(values) => i128::from(values[row]),
            Values::Wide(values) => values[row],
            Values::Bytes(_) => 0,
        };
        value.wrapping_sub(self.least) as u128
    }
}

fn range(values: impl Iterator<Item = i128>) -> Option<(i128, i128)> {
    values.fold(None, |bounds, value| match bounds {
        None => Some((value, value)),
        Some((min, max)) => Some((value.min(min), value.max(max))),
    })
}

/// Room for a packed key.
trait Packed: Copy + Default + Ord {
    fn append(self, bits: u32, value: u128) -> Self;
    fn append_int(self, bits: u32, offset: u64) -> Self;
}

impl Packed for u64 {
    #[inline(always)]
    fn append(self, bits: u32, value: u128) -> Self {
        self.checked_shl(bits).unwrap_or(0) | value as u64
    }

    #[inline(always)]
    fn append_int(self, bits: u32, offset: u64) -> Self {
        self.checked_shl(bits).unwrap_or(0) | offset
    }
}

impl Packed for u128 {
    #[inline(always)]
    fn append(self, bits: u32, value: u128) -> Self {
        self.checked_shl(bits).unwrap_or(0) | value
    }

    #[inline(always)]
    fn append_int(self, bits: u32, offset: u64) -> Self {
        self.checked_shl(bits).unwrap_or(0) | u128::from(offset)
    }
}

/// A packed key for each row.
fn pack<P: Packed>(columns: &[Plain], packings: &[Packing], rows: usize) -> Vec<P> {
    let mut keys = vec![P::default(); rows];
    for (column, packing) in columns.iter().zip(packings) {
        match (&column.values, &column.nulls) {
            (Values::Int(values), None) => {
                let (least, bits) = (packing.least as i64, packing.bits);
                for (key, value) in keys.iter_mut().zip(values) {
                    *key = key.append_int(bits, value.wrapping_sub(least) as u64);
                }
            }
            _ => {
                for (row, key) in keys.iter_mut().enumerate() {
                    *key = key.append(packing.bits, packing.pack(column, row));
                }
            }
        }
    }
    keys
}

/// The order of keys that stand in it, if they do.
fn in_order(rows: usize, compare: impl Fn(usize, usize) -> Ordering) -> Option<KeyOrder> {
    let mut repeated = Vec::new();
    for row in 1..rows {
        match compare(row - 1, row) {
            Ordering::Less => {}
            Ordering::Equal => repeated.push(row as u32),
            Ordering::Greater => return None,
        }
    }
    Some(KeyOrder { rows: None, repeated })
}

fn ordered(rows: Vec<u32>, is_equal: impl Fn(usize, usize) -> bool) -> KeyOrder {
    let places = 1..rows.len();
    let repeated = places
        .filter(|place| is_equal(rows[place - 1] as usize, rows[*place] as usize))
        .map(|place| place as u32)
        .collect();
    KeyOrder { rows: Some(rows), repeated }
}

/// Sorts keys of at most 64 bits, which do not fit beside the numbers of their rows.
fn sort_long(keys: &[u64]) -> KeyOrder {
    if let Some(order) = in_order(keys.len(), |a, b| keys[a].cmp(&keys[b])) {
        return order;
    }
    ordered(sort_pairs(keys), |a, b| keys[a] == keys[b])
}

fn sort_wide(keys: &[u128]) -> KeyOrder {
    if let Some(order) = in_order(keys.len(), |a, b| keys[a].cmp(&keys[b])) {
        return order;
    }
    ordered(sort_pairs(keys), |a, b| keys[a] == keys[b])
}

fn sort_pairs<P: Packed>(keys: &[P]) -> Vec<u32> {
    let mut pairs: Vec<(P, u32)> =
        keys.iter().enumerate().map(|(row, key)| (*key, row as u32)).collect();
    pairs.sort_unstable();
    pairs.into_iter().map(|(_, row)| row).collect()
}

/// Bytes of a key on average over which keys are compared where they are, and not copied as bytes first.
const COPIED_BYTES: usize = 64;

/// Sorts keys that are bytes.
fn sort_bytes(columns: &[Plain], rows: usize) -> KeyOrder {
    let text = |column: &Plain| match &column.values {
        Values::Bytes(strings) => strings.bytes.len(),
        Values::Int(_) | Values::Wide(_) => 0,
    };
    if columns.iter().map(text).sum::<usize>() > rows.saturating_mul(COPIED_BYTES) {
        return sort_in_place(columns, rows);
    }
    let (mut bytes, mut ends) = (Vec::new(), Vec::with_capacity(rows));
    let nullable: Vec<bool> = columns.iter().map(|column| column.nulls.is_some()).collect();
    for row in 0..rows {
        put_key(columns, &nullable, row, &mut bytes);
        ends.push(bytes.len());
    }
    let key = |row: usize| &bytes[row.checked_sub(1).map_or(0, |before| ends[before])..ends[row]];
    if let Some(order) = in_order(rows, |a, b| key(a).cmp(key(b))) {
        return order;
    }
    let first = |row: usize| {
        let (mut first, key) = ([0; 8], key(row));
        let count = key.len().min(8);
        first[..count].copy_from_slice(&key[..count]);
        u64::from_be_bytes(first)
    };
    let mut pairs: Vec<(u64, u32)> = (0..rows).map(|row| (first(row), row as u32)).collect();
    pairs.sort_unstable_by(|(a, row), (b, other)| {
        let whole = || key(*row as usize).cmp(key(*other as usize));
        a.cmp(b).then_with(whole).then(row.cmp(other))
    });
    let rows = pairs.into_iter().map(|(_, row)| row).collect();
    ordered(rows, |a, b| key(a) == key(b))
}

/// Sorts long keys: the first bytes of each move along, and the others are looked at in the columns.
fn sort_in_place(columns: &[Plain], rows: usize) -> KeyOrder {
    let compare = |a: usize, b: usize| compare_keys(columns, a, columns, b);
    if let Some(order) = in_order(rows, compare) {
        return order;
    }
    let nullable: Vec<bool> = columns.iter().map(|column| column.nulls.is_some()).collect();
    let mut start = Vec::new();
    let mut pairs: Vec<(u64, u32)> = (0..rows)
        .map(|row| {
            start.clear();
            put_start(columns, &nullable, row, &mut start);
            start.resize(START_BYTES, 0);
            let first = start.first_chunk().map_or(0, |first| u64::from_be_bytes(*first));
            (first, row as u32)
        })
        .collect();
    pairs.sort_unstable_by(|(a, row), (b, other)| {
        a.cmp(b).then_with(|| compare(*row as usize, *other as usize)).then(row.cmp(other))
    });
    let rows = pairs.into_iter().map(|(_, row)| row).collect();
    ordered(rows, |a, b| compare(a, b).is_eq())
}

/// Bytes of a key that move along.
const START_BYTES: usize = 8;

/// As [`put_key`], at least the first bytes.
fn put_start(columns: &[Plain], nullable: &[bool], row: usize, out: &mut Vec<u8>) {
    for (column, nullable) in columns.iter().zip(nullable) {
        if out.len() >= START_BYTES {
            return;
        }
        match &column.values {
            Values::Bytes(strings) if !column.is_null(row) => {
                if *nullable {
                    out.push(VALUE);
                }
                let text = strings.get(row);
                put_text(&text[..text.len().min(START_BYTES)], out);
            }
            _ => put_key(std::slice::from_ref(column), &[*nullable], row, out),
        }
    }
}

/// First byte of a value in a column that may be NULL, and that of NULL.
const VALUE: u8 = 0;
const NULL: u8 = 1;
/// What stands for a zero byte within text, and for its end.
const ZERO: [u8; 2] = [0, 0xff];
const END: [u8; 2] = [0, 0];

/// Appends a key as bytes that are compared as keys are: two keys of the same columns are ordered as their bytes.
///
/// Numbers are big-endian with the sign flipped, 8 bytes or 16. Text has its zero bytes as 00 ff and ends with 00 00, so
/// that what begins alike is ordered by its length. A column that may be NULL has a byte before, 0 or, for NULL, 1.
pub fn put_key(columns: &[Plain], nullable: &[bool], row: usize, out: &mut Vec<u8>) {
    for (column, nullable) in columns.iter().zip(nullable) {
        if *nullable {
            out.push(if column.is_null(row) { NULL } else { VALUE });
            if column.is_null(row) {
                continue;
            }
        }
        match &column.values {
            Values::Int(values) => put_int(values[row], out),
            Values::Wide(values) => put_wide(values[row], out),
            Values::Bytes(strings) => put_text(strings.get(row), out),
        }
    }
}

/// As [`put_key`] for keys that are only compared with each other: a text that is last has its bytes and no end.
pub fn put_compared_key(columns: &[Plain], nullable: &[bool], row: usize, out: &mut Vec<u8>) {
    let Some((last, others)) = columns.split_last() else { return };
    put_key(others, &nullable[..others.len()], row, out);
    match &last.values {
        Values::Bytes(strings) if !last.is_null(row) => {
            if nullable[others.len()] {
                out.push(VALUE);
            }
            out.extend_from_slice(strings.get(row));
        }
        _ => put_key(std::slice::from_ref(last), &nullable[others.len()..], row, out),
    }
}

fn put_int(value: i64, out: &mut Vec<u8>) {
    out.extend_from_slice(&(value ^ i64::MIN).to_be_bytes());
}

fn put_wide(value: i128, out: &mut Vec<u8>) {
    out.extend_from_slice(&(value ^ i128::MIN).to_be_bytes());
}

/// Appends a text so that what follows does not change its order: its zero bytes are 00 ff, and it ends with 00 00.
pub fn put_text(mut text: &[u8], out: &mut Vec<u8>) {
    // Most have none, and this looks at many bytes at once.
    if !text.contains(&0) {
        out.extend_from_slice(text);
        return out.extend_from_slice(&END);
    }
    while let Some(zero) = text.iter().position(|byte| *byte == 0) {
        out.extend_from_slice(&text[..zero]);
        out.extend_from_slice(&ZERO);
        text = &text[zero + 1..];
    }
    out.extend_from_slice(text);
    out.extend_from_slice(&END);
}

/// Compares the key of a row with that of a row of other columns of the same shapes.
pub fn compare_keys(a: &[Plain], row: usize, b: &[Plain], other: usize) -> Ordering {
    let column = |(a, b): (&Plain, &Plain)| match (a.is_null(row), b.is_null(other)) {
        (true, true) => Ordering::Equal,
        (true, false) => Ordering::Greater,
        (false, true) => Ordering::Less,
        (false, false) => match (&a.values, &b.values) {
            (Values::Int(a), Values::Int(b)) => a[row].cmp(&b[other]),
            (Values::Wide(a), Values::Wide(b)) => a[row].cmp(&b[other]),
            (Values::Bytes(a), Values::Bytes(b)) => a.get(row).cmp(b.get(other)),
            _ => Ordering::Equal,
        },
    };
    a.iter().zip(b).map(column).find(|order| order.is_ne()).unwrap_or(Ordering::Equal)
}

#[cfg(test)]
mod tests;
