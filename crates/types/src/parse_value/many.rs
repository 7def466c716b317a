//! Numbers, days and instants of many fields at once.
//!
//! ```text
//!   64 fields -> Group: four words of each, and its length -> values, and which were read
//! ```
//!
//! The arithmetic is that of [`super::swar`] without a branch that depends on a field, in loops over the words of a group,
//! which the compiler turns into vectors: fields of one column are alike, but not of one length. What is not of the
//! plain form of its type is left to the parsers of one field, which also say what is wrong with it.

mod floats;
mod moments;
mod numbers;

use super::swar::{ABOVE_NINE, HIGHS};
use crate::{DECIMAL_INT_PRECISION_MAX, DataType};

/// Fields that are read at once.
const FIELDS: usize = 64;
/// Bytes of a field that are loaded.
const LOADED: usize = 32;
/// All bits of a word: yes; none: no.
const YES: u64 = u64::MAX;

/// What becomes of numbers with zeros before their first digit, which may be codes, and of those that are not what their
/// DOUBLE is printed as.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Doubtful {
    /// They are read as any others.
    Read,
    /// They are left out.
    LeftOut,
}

/// Reads many fields of a type of numbers, days or instants.
#[derive(Debug, Clone, Copy)]
pub struct ManyFields {
    form: Form,
    doubtful: Doubtful,
}

#[derive(Debug, Clone, Copy)]
enum Form {
    Integer { min: i64, max: i64 },
    Decimal { precision: u8, scale: u8 },
    Double,
    Real,
    Day,
    Instant,
}

impl ManyFields {
    /// `None` where the type has no such fields, or they are read faster one by one.
    pub fn new(data_type: DataType, doubtful: Doubtful) -> Option<Self> {
        let form = match data_type {
            DataType::SmallInt | DataType::Integer | DataType::BigInt => {
                let (min, max) = data_type.facts().limits;
                Form::Integer { min, max }
            }
            DataType::Decimal { precision, scale } if precision <= DECIMAL_INT_PRECISION_MAX => {
                Form::Decimal { precision, scale }
            }
            // Without an instruction a fused multiply takes longer than the parser of one field.
            DataType::Double | DataType::Real if !floats::are_fast() => return None,
            DataType::Double => Form::Double,
            DataType::Real => Form::Real,
            DataType::Date => Form::Day,
            // Inference takes only those that name their zone.
            DataType::TimestampTz if doubtful == Doubtful::LeftOut => return None,
            DataType::Timestamp | DataType::TimestampTz => Form::Instant,
            _ => return None,
        };
        Some(ManyFields { form, doubtful })
    }

    /// Appends a value for each field `chunk[starts[i]..ends[i]]` to `values`, and the numbers of those that were not read to
    /// `missed`; their values are 0.
    ///
    /// # Panics
    /// When there are not as many starts as ends, or one of them is not in the chunk.
    pub fn read(
        &self,
        chunk: &[u8],
        starts: &[u32],
        ends: &[u32],
        values: &mut Vec<i64>,
        missed: &mut Vec<u32>,
    ) {
        assert_eq!(starts.len(), ends.len());
        values.reserve(starts.len());
        let mut group = Group::default();
        for (n, (starts, ends)) in starts.chunks(FIELDS).zip(ends.chunks(FIELDS)).enumerate() {
            match self.form {
                Form::Day | Form::Instant => group.load_heads(chunk, starts, ends),
                _ => group.load_tails(chunk, starts, ends),
            }
            match self.form {
                Form::Integer { min, max } => numbers::integers(&mut group, min, max),
                Form::Decimal { precision, scale } => {
                    numbers::decimals(&mut group, precision, scale);
                }
                Form::Double => floats::doubles(&mut group, self.doubtful),
                Form::Real => floats::reals(&mut group),
                Form::Day => moments::days(&mut group),
                Form::Instant => moments::instants(&mut group),
            }
            let is_number = !matches!(self.form, Form::Day | Form::Instant);
            if is_number && self.doubtful == Doubtful::LeftOut {
                group.leave_codes();
            }
            for (i, (value, read)) in group.values.iter().zip(&group.read).enumerate() {
                if i == starts.len() {
                    break;
                }
                values.push((value & read) as i64);
                if *read == 0 {
                    missed.push((n * FIELDS + i) as u32);
                }
            }
        }
    }
}

/// Fields of one column on their way to values.
struct Group {
    /// The bytes of each field: the last of them last, or the first first. What is no byte of the field is any.
    words: [[u64; FIELDS]; LOADED / 8],
    /// Bytes of each, without a minus.
    lengths: [u64; FIELDS],
    /// Whether a minus leads.
    minus: [u64; FIELDS],
    /// The first character behind the minus; any if there is none.
    first: [u64; FIELDS],
    /// Digits behind the point, and one more for the point.
    behind: [u64; FIELDS],
    values: [u64; FIELDS],
    /// Whether each was read.
    read: [u64; FIELDS],
}

impl Default for Group {
    fn default() -> Self {
        let none = [0; FIELDS];
        Group {
            words: [none; LOADED / 8],
            lengths: none,
            minus: none,
            first: none,
            behind: none,
            values: none,
            read: none,
        }
    }
}

impl Group {
    /// The bytes at the end of each field. A field that does not have so many bytes of the chunk before its end is as one
    /// without bytes, and so are those that are missing.
    #[inline(always)]
    fn load_tails(&mut self, chunk: &[u8], starts: &[u32], ends: &[u32]) {
        for (i, (start, end)) in starts.iter().zip(ends).enumerate().take(FIELDS) {
            let (start, end) = (*start as usize, *end as usize);
            let bytes = chunk[..end].last_chunk::<LOADED>();
            self.load(i, bytes);
            let minus = end > start && chunk[start] == b'-';
            let first = start + usize::from(minus);
            self.minus[i] = u64::from(minus).wrapping_neg();
            self.first[i] = u64::from(chunk.get(first).copied().unwrap_or(0));
            self.lengths[i] = if bytes.is_some() { (end - first) as u64 } else { 0 };
        }
        self.lengths[starts.len()..].fill(0);
    }

    /// As [`Self::load_tails`], the bytes from the start of each field on.
    #[inline(always)]
    fn load_heads(&mut self, chunk: &[u8], starts: &[u32], ends: &[u32]) {
        for (i, (start, end)) in starts.iter().zip(ends).enumerate().take(FIELDS) {
            let (start, end) = (*start as usize, *end as usize);
            let bytes = chunk[start..].first_chunk::<LOADED>();
            self.load(i, bytes);
            self.lengths[i] = if bytes.is_some() { (end - start) as u64 } else { 0 };
        }
        self.lengths[starts.len()..].fill(0);
    }

    #[inline(always)]
    fn load(&mut self, i: usize, bytes: Option<&[u8; LOADED]>) {
        let (words, _) = bytes.unwrap_or(&[0; LOADED]).as_chunks::<8>();
        for (to, word) in self.words.iter_mut().zip(words) {
            to[i] = u64::from_le_bytes(*word);
        }
    }

    /// Leaves out numbers that start with a zero that another digit follows.
    fn leave_codes(&mut self) {
        for i in 0..FIELDS {
            let is_code = self.first[i] == u64::from(b'0') && self.lengths[i] > self.behind[i] + 1;
            self.read[i] &= if is_code { 0 } else { YES };
        }
    }
}

/// All bits if so.
#[inline(always)]
fn yes_if(condition: bool) -> u64 {
    u64::from(condition).wrapping_neg()
}

/// The characters of a word that belong to a field, zeros for others: `length` of the characters before the end of the field
/// are its own, and `behind` of them behind the word.
#[inline(always)]
fn own_of_tail(word: u64, length: u64, behind: i64) -> u64 {
    let own = (length as i64 - behind).max(0) as u64 * 8;
    let others = if own < 64 { u64::MAX >> own } else { 0 };
    word & !others
}

/// As [`own_of_tail`], of a field that has `before` characters before the word.
#[inline(always)]
fn own_of_head(word: u64, length: u64, before: i64) -> u64 {
    let own = (length as i64 - before).max(0) as u64 * 8;
    let others = if own < 64 { u64::MAX << own } else { 0 };
    word & !others
}

/// Something but zero if a byte of the word is above nine.
#[inline(always)]
fn above_nine(word: u64) -> u64 {
    (word.wrapping_add(ABOVE_NINE) | word) & HIGHS
}

/// The numbers 0 to 99 of pairs of digits, in 16 bits each. Shifts and sums, as few processors multiply vectors of 64 bits.
#[inline(always)]
fn pairs(word: u64) -> u64 {
    let tens = (word << 3).wrapping_add(word << 1);
    tens.wrapping_add(word >> 8) & 0x00ff_00ff_00ff_00ff
}

/// The number of eight digits, the first in the lowest byte.
#[inline(always)]
fn eight_digits(word: u64) -> u64 {
    let pairs = pairs(word);
    let hundreds = (pairs << 6).wrapping_add(pairs << 5).wrapping_add(pairs << 2);
    let fours = hundreds.wrapping_add(pairs >> 16) & 0x0000_ffff_0000_ffff;
    (fours & 0xffff) * 10_000 + (fours >> 32)
}

#[cfg(test)]
mod tests;
