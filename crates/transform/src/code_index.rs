//! Values to provisional codes: the code that a value has already, or the next one.
//!
//! ```text
//!   numbers that lie near each other   a table, by the value less the least: code + 1
//!   other numbers, texts               slots, by a hash of the value: [16 bits of the hash | code + 1]
//! ```
//!
//! Cost: a load for a number from a table; a hash, a slot and one comparison for each other value.

use coload_types::{Bitmap, Plain, Strings, Values};

use crate::{CODES_PROVISIONAL_MAX, DictionaryLimit, HyperLogLog, NULL_CODE, TemporaryDictionary};

/// Slots for each value that they may hold, so that a free one is near.
const SLOTS_PER_VALUE: usize = 2;
/// Slots at first: most statements that insert have few rows.
const SLOTS_MIN: usize = 64;
/// Numbers between the least and the greatest that a table is made for: 128 KiB, which the second-level cache holds.
const TABLE_MAX: u64 = 1 << 16;
/// A table is made when it is at most so many times as long as there are rows: of few rows it would cost more than it saves.
const TABLE_PER_ROW: u64 = 4;

/// Finds the codes of the values of a temporary dictionary.
#[derive(Debug, Default)]
pub(crate) struct CodeIndex {
    /// Codes of numbers, if they lie near each other.
    table: Option<Table>,
    /// Code plus 1 of the value in each slot, below 16 bits of its hash; 0 where there is none. Empty while there is a table.
    slots: Vec<u32>,
}

/// Codes of numbers by how far these are above the least.
#[derive(Debug)]
struct Table {
    least: i64,
    /// Code plus 1; 0 of numbers that were not met.
    codes: Vec<u16>,
}

impl CodeIndex {
    /// Codes of the rows; `None` when the dictionary, to which new values are added, would hold more than it may.
    pub fn encode(
        &mut self,
        plain: &Plain,
        limit: DictionaryLimit,
        temporary: &mut TemporaryDictionary,
    ) -> Option<Vec<u16>> {
        let nulls = plain.nulls.as_ref();
        let mut new = New { limit, stale: &mut temporary.stale };
        match (&plain.values, &mut temporary.values) {
            (Values::Int(rows), Values::Int(known)) => self.ints(rows, nulls, known, &mut new),
            (Values::Wide(rows), Values::Wide(known)) => {
                self.hashed(&rows[..], nulls, known, &mut new)
            }
            (Values::Bytes(rows), Values::Bytes(known)) => {
                self.hashed(rows, nulls, known, &mut new)
            }
            _ => None,
        }
    }

    /// Bytes of what finds the values.
    pub fn bytes(&self) -> usize {
        let table = self.table.as_ref().map_or(0, |table| table.codes.capacity());
        table * size_of::<u16>() + self.slots.capacity() * size_of::<u32>()
    }

    fn ints(
        &mut self,
        rows: &[i64],
        nulls: Option<&Bitmap>,
        known: &mut Vec<i64>,
        new: &mut New<'_>,
    ) -> Option<Vec<u16>> {
        // Values that were met in slots stay there.
        let bytes_max = new.limit.bytes as u64;
        let Some((least, table)) = self.table_of(rows, nulls, known, bytes_max) else {
            return self.hashed(rows, nulls, known, new);
        };
        codes_of(rows.len(), nulls, |row| {
            let value = rows[row];
            let place = &mut table[value.wrapping_sub(least) as usize];
            if *place == 0 {
                *place = new.code(known.len(), 0)? + 1;
                known.push(value);
            }
            Some(*place - 1)
        })
    }

    /// The table with room for the rows, if they lie near each other and near the values that are known.
    fn table_of(
        &mut self,
        rows: &[i64],
        nulls: Option<&Bitmap>,
        known: &[i64],
        bytes_max: u64,
    ) -> Option<(i64, &mut [u16])> {
        if !self.slots.is_empty() {
            return None;
        }
        let bounds = bounds_of(rows, nulls);
        let (mut least, mut greatest) = bounds.or(known.first().map(|v| (*v, *v)))?;
        if let Some(table) = &self.table {
            let last = table.least.wrapping_add(table.codes.len() as i64 - 1);
            (least, greatest) = (least.min(table.least), greatest.max(last));
        }
        let span = greatest.wrapping_sub(least) as u64;
        let pays = TABLE_PER_ROW * (rows.len() + known.len()) as u64;
        if span >= TABLE_MAX.min(pays).min(bytes_max / size_of::<u16>() as u64) {
            self.table = None;
            return None;
        }
        let is_wider = |t: &Table| t.least != least || t.codes.len() as u64 != span + 1;
        if self.table.as_ref().is_none_or(is_wider) {
            let mut codes = vec![0; span as usize + 1];
            for (code, value) in known.iter().enumerate() {
                codes[value.wrapping_sub(least) as usize] = code as u16 + 1;
            }
            self.table = Some(Table { least, codes });
        }
        self.table.as_mut().map(|table| (table.least, &mut table.codes[..]))
    }

    fn hashed<R: Rows + ?Sized>(
        &mut self,
        rows: &R,
        nulls: Option<&Bitmap>,
        known: &mut R::Known,
        new: &mut New<'_>,
    ) -> Option<Vec<u16>> {
        codes_of(rows.count(), nulls, |row| {
            if R::known_count(known) * SLOTS_PER_VALUE >= self.slots.len() {
                self.grow::<R>(known);
            }
            let hash = rows.hash(row);
            let (mask, tag) = (self.slots.len() - 1, tag_of(hash));
            let mut at = hash as usize & mask;
            loop {
                let slot = self.slots[at];
                if slot == 0 {
                    break;
                }
                let code = (slot & CODE_MASK) - 1;
                if slot & !CODE_MASK == tag && rows.is_known(row, known, code as usize) {
                    return Some(code as u16);
                }
                at = (at + 1) & mask;
            }
            let code = new.code(R::known_count(known), rows.text_bytes(row, known))?;
            rows.add_to(row, known);
            self.slots[at] = tag | (u32::from(code) + 1);
            Some(code)
        })
    }

    /// Makes more slots, with those of all values that are known.
    fn grow<R: Rows + ?Sized>(&mut self, known: &R::Known) {
        let count = R::known_count(known);
        let wanted = (count + 1) * SLOTS_PER_VALUE * 2;
        self.slots = vec![0; wanted.next_power_of_two().max(SLOTS_MIN)];
        let mask = self.slots.len() - 1;
        for code in 0..count {
            let hash = R::known_hash(known, code);
            let mut at = hash as usize & mask;
            while self.slots[at] != 0 {
                at = (at + 1) & mask;
            }
            self.slots[at] = tag_of(hash) | (code as u32 + 1);
        }
    }
}

/// The part of a slot that holds a code plus 1.
const CODE_MASK: u32 = 0xFFFF;

/// The part of a slot that holds bits of the hash: others than those that find the slot.
#[inline]
fn tag_of(hash: u64) -> u32 {
    (hash >> 32) as u32 & !CODE_MASK
}

/// What is said of values that are new.
struct New<'a> {
    limit: DictionaryLimit,
    stale: &'a mut bool,
}

impl New<'_> {
    /// The code of the next value, with which all texts have so many bytes; `None` when there may not be one more.
    #[inline]
    fn code(&mut self, known: usize, text_bytes: usize) -> Option<u16> {
        if !self.limit.holds(known + 1, text_bytes) {
            // A fragment that is given up half way leaves values of no row.
            *self.stale = true;
            return None;
        }
        *self.stale |= known + 1 == CODES_PROVISIONAL_MAX;
        Some(known as u16)
    }
}

/// A code for each row, which is that of NULL or what `code` gives; `None` when it gives none.
#[inline(always)]
fn codes_of(
    rows: usize,
    nulls: Option<&Bitmap>,
    mut code: impl FnMut(usize) -> Option<u16>,
) -> Option<Vec<u16>> {
    let mut codes = Vec::with_capacity(rows);
    match nulls {
        None => {
            for row in 0..rows {
                codes.push(code(row)?);
            }
        }
        Some(nulls) => {
            for row in 0..rows {
                codes.push(if nulls.get(row) { NULL_CODE } else { code(row)? });
            }
        }
    }
    Some(codes)
}

/// The least and the greatest of the numbers that are not NULL; `None` when all are.
fn bounds_of(rows: &[i64], nulls: Option<&Bitmap>) -> Option<(i64, i64)> {
    let widen = |(low, high): (i64, i64), value: &i64| (low.min(*value), high.max(*value));
    let none = (i64::MAX, i64::MIN);
    let (low, high) = match nulls {
        None => rows.iter().fold(none, widen),
        Some(nulls) => {
            let values = rows.iter().enumerate().filter(|(row, _)| !nulls.get(*row));
            values.map(|(_, value)| value).fold(none, widen)
        }
    };
    (low <= high).then_some((low, high))
}

/// Values that slots find.
trait Rows {
    /// The values that have codes.
    type Known;
    fn count(&self) -> usize;
    fn hash(&self, row: usize) -> u64;
    fn is_known(&self, row: usize, known: &Self::Known, code: usize) -> bool;
    /// Bytes of the texts that are known and of this row.
    fn text_bytes(&self, row: usize, known: &Self::Known) -> usize;
    fn add_to(&self, row: usize, known: &mut Self::Known);
    fn known_count(known: &Self::Known) -> usize;
    fn known_hash(known: &Self::Known, code: usize) -> u64;
}

macro_rules! number_rows {
    ($number:ty, $hash:ident) => {
        impl Rows for [$number] {
            type Known = Vec<$number>;
            fn count(&self) -> usize {
                self.len()
            }
            #[inline]
            fn hash(&self, row: usize) -> u64 {
                $hash(self[row])
            }
            #[inline]
            fn is_known(&self, row: usize, known: &Self::Known, code: usize) -> bool {
                known[code] == self[row]
            }
            fn text_bytes(&self, _: usize, _: &Self::Known) -> usize {
                0
            }
            fn add_to(&self, row: usize, known: &mut Self::Known) {
                known.push(self[row]);
            }
            #[inline]
            fn known_count(known: &Self::Known) -> usize {
                known.len()
            }
            fn known_hash(known: &Self::Known, code: usize) -> u64 {
                $hash(known[code])
            }
        }
    };
}

number_rows!(i64, int_hash);
number_rows!(i128, wide_hash);

impl Rows for Strings {
    type Known = Strings;
    fn count(&self) -> usize {
        self.len()
    }
    #[inline]
    fn hash(&self, row: usize) -> u64 {
        text_hash(self.get(row))
    }
    #[inline]
    fn is_known(&self, row: usize, known: &Strings, code: usize) -> bool {
        is_same_text(known.get(code), self.get(row))
    }
    fn text_bytes(&self, row: usize, known: &Strings) -> usize {
        known.bytes.len() + self.get(row).len()
    }
    fn add_to(&self, row: usize, known: &mut Strings) {
        known.push(self.get(row));
    }
    #[inline]
    fn known_count(known: &Strings) -> usize {
        known.len()
    }
    fn known_hash(known: &Strings, code: usize) -> u64 {
        text_hash(known.get(code))
    }
}

/// The hashes of the first rows of a column, to be counted.
pub(crate) fn hashes(values: &Values, rows: usize, mut take: impl FnMut(u64)) {
    match values {
        Values::Int(v) => v[..rows].iter().for_each(|value| take(int_hash(*value))),
        Values::Wide(v) => v[..rows].iter().for_each(|value| take(wide_hash(*value))),
        Values::Bytes(v) => (0..rows).for_each(|row| take(text_hash(v.get(row)))),
    }
}

#[inline]
fn int_hash(value: i64) -> u64 {
    HyperLogLog::mix(value as u64)
}

#[inline]
fn wide_hash(value: i128) -> u64 {
    HyperLogLog::mix(value as u64 ^ HyperLogLog::mix((value >> 64) as u64))
}

#[inline]
fn text_hash(text: &[u8]) -> u64 {
    let (words, rest) = text.as_chunks::<8>();
    let mut hash = text.len() as u64;
    for word in words {
        hash = HyperLogLog::mix(hash ^ u64::from_le_bytes(*word));
    }
    HyperLogLog::mix(hash ^ short_word(rest))
}

/// Fewer than 8 bytes as a number: texts of one length that differ have different numbers.
#[inline]
fn short_word(text: &[u8]) -> u64 {
    if let (Some(first), Some(last)) = (text.first_chunk::<4>(), text.last_chunk::<4>()) {
        return u64::from(u32::from_le_bytes(*first)) << 32 | u64::from(u32::from_le_bytes(*last));
    }
    match text {
        [] => 0,
        [a] => u64::from(*a),
        [a, b] => u64::from(*a) << 8 | u64::from(*b),
        [a, b, c, ..] => u64::from(*a) << 16 | u64::from(*b) << 8 | u64::from(*c),
    }
}

/// Whether two texts are the same; short ones without a call.
#[inline]
fn is_same_text(a: &[u8], b: &[u8]) -> bool {
    if a.len() != b.len() {
        return false;
    }
    match (a.first_chunk::<8>(), b.first_chunk::<8>(), a.last_chunk::<8>(), b.last_chunk::<8>()) {
        (Some(a_first), Some(b_first), Some(a_last), Some(b_last)) if a.len() <= 16 => {
            a_first == b_first && a_last == b_last
        }
        (Some(_), ..) => a == b,
        _ => short_word(a) == short_word(b),
    }
}

#[cfg(test)]
mod tests;
