//! The codes of few short texts.
//!
//! ```text
//!   field -> number                    -> [code, ...]                      texts of one form
//!         -> packed key -> two places  -> [packed key, ...] [code, ...]    others
//! ```
//!
//! Fields are numbered ([`super::numbering`]) or packed ([`super::packing`]) by vectors, and looked up one by one: instructions
//! that gather take longer than as many loads. A table by numbers needs one load and no comparison. Where texts have too many
//! numbers and cannot be packed, or there are more than the caches hold, buckets are better.
//!
//! Cost: 2 to 48 bytes a key; 3 to 8 cycles a field.

use super::GROUP;
use super::buckets::Known;
use super::cuckoo::Cuckoo;
use super::key::{IS_LONG, Key};
use super::numbering::{Numbering, Numbers};
use super::packing::{Fields, Packed, Turn};

/// Most codes of a table by numbers: 512 KB.
const NUMBERS_MAX: usize = 1 << 18;
/// Codes of a table by numbers that need no keys.
const NUMBERS: usize = 256;
/// Codes of a table by numbers for each key besides.
const NUMBERS_A_KEY: usize = 24;
/// Keys from one try of numbers to the next.
const KEYS_A_TRY: usize = 64;
/// Keys from which on buckets are better than packed keys.
const PACKED_MAX: usize = 5_000;
/// A code that no text has.
const NONE: u16 = u16::MAX - 1;

/// Codes by keys.
#[derive(Debug)]
pub(super) struct Few {
    /// The form of the texts, where fields are numbered fast.
    numbering: Option<Numbering>,
    /// How their keys are packed, if they can be.
    turn: Option<Turn>,
    table: Table,
    count: usize,
}

#[derive(Debug)]
enum Table {
    Numbers(Numbers, Vec<u16>),
    Packed(Turn, Cuckoo),
    Empty,
}

impl Few {
    /// Holds nothing. `numbers` says whether fields are numbered fast.
    pub(super) fn new(numbers: bool) -> Self {
        let numbering = numbers.then_some(Numbering::NONE);
        Few { numbering, turn: None, table: Table::Empty, count: 0 }
    }

    /// The code of a key.
    pub(super) fn find(&self, key: Key) -> Option<u16> {
        match &self.table {
            Table::Numbers(numbers, codes) => {
                Some(codes[numbers.number(key)?]).filter(|code| *code != NONE)
            }
            Table::Packed(turn, cuckoo) => cuckoo.find(turn.pack(key)?),
            Table::Empty => None,
        }
    }

    /// The codes of fields, and a bit for each that is not known.
    pub(super) fn find_each(&self, fields: Fields<'_>, found: &mut [u16; GROUP]) -> u64 {
        let mut missing = 0;
        for (i, found) in found.iter_mut().enumerate().take(fields.count()) {
            match self.find(fields.key(i)) {
                Some(code) => *found = code,
                None => missing |= 1 << i,
            }
        }
        missing
    }

    /// As [`Self::find_each`], by vectors; bits behind the fields mean nothing.
    ///
    /// # Safety
    /// The instructions of AVX-512 are there. Fields of records are in the text.
    #[cfg(target_arch = "x86_64")]
    #[inline]
    #[target_feature(enable = "avx512f,avx512bw,avx512vl,avx512dq,avx2,bmi1,bmi2,popcnt,lzcnt")]
    pub(super) unsafe fn find_all_avx512(
        &self,
        fields: Fields<'_>,
        scratch: &mut Packed,
        found: &mut [u16; GROUP],
    ) -> u64 {
        let count = fields.count();
        match &self.table {
            Table::Numbers(numbers, codes) => {
                // SAFETY: as the caller says.
                let Some(without) = (unsafe { scratch.number(numbers, fields) }) else {
                    return self.find_each(fields, found);
                };
                for (number, found) in scratch.numbers[..count].iter().zip(found.iter_mut()) {
                    // SAFETY: there is a code for each number. Volatile, as the compiler would take vectors of numbers apart.
                    *found = unsafe { codes.as_ptr().add(*number as usize).read_volatile() };
                }
                without | is_none(found)
            }
            Table::Packed(turn, cuckoo) => {
                // SAFETY: as the caller says.
                let others = unsafe { scratch.pack(turn, fields) };
                others | cuckoo.find_all(&scratch.keys[..count], found)
            }
            Table::Empty => u64::MAX,
        }
    }

    /// As [`Self::find_each`], by vectors; bits behind the fields mean nothing.
    ///
    /// # Safety
    /// The instructions of AVX2 are there. Fields of records are in the text.
    #[cfg(target_arch = "x86_64")]
    #[inline]
    #[target_feature(enable = "avx2,bmi1,bmi2,popcnt,lzcnt")]
    pub(super) unsafe fn find_all_avx2(
        &self,
        fields: Fields<'_>,
        scratch: &mut Packed,
        found: &mut [u16; GROUP],
    ) -> u64 {
        let count = fields.count();
        match &self.table {
            Table::Numbers(numbers, codes) => {
                // SAFETY: as the caller says.
                let Some(mut missing) = (unsafe { scratch.number_avx2(numbers, fields) }) else {
                    return self.find_each(fields, found);
                };
                let numbers = scratch.numbers[..count].iter();
                for (i, (number, found)) in numbers.zip(found.iter_mut()).enumerate() {
                    // SAFETY: there is a code for each number.
                    *found = unsafe { *codes.get_unchecked(*number as usize) };
                    missing |= u64::from(*found == NONE) << i;
                }
                missing
            }
            Table::Packed(turn, cuckoo) => {
                let others = scratch.pack_each(turn, fields);
                others | cuckoo.find_all(&scratch.keys[..count], found)
            }
            Table::Empty => u64::MAX,
        }
    }

    /// Adds a text that is not there; `all` are those that are. Whether the table holds them: if not, it is of no more use.
    pub(super) fn add(&mut self, new: Known, all: impl Iterator<Item = Known> + Clone) -> bool {
        if new.key[1] & IS_LONG != 0 {
            return false;
        }
        let before = (self.numbering, self.turn);
        self.numbering = self.numbering.map(|numbering| numbering.with(new.key));
        self.turn = match self.turn {
            None if self.count == 0 => Some(Turn::of(new.key)),
            turn => turn.and_then(|turn| turn.with(new.key)),
        };
        self.count += 1;
        let is_as_before = match &self.table {
            Table::Numbers(numbers, _) => {
                let forms = self.numbering.zip(before.0);
                forms.is_some_and(|(now, before)| now.has_form_of(&before))
                    && numbers.number(new.key).is_some()
            }
            Table::Packed(..) => self.turn == before.1,
            Table::Empty => false,
        };
        // With more keys there may be more numbers.
        let may_number =
            matches!(self.table, Table::Packed(..)) && self.count.is_multiple_of(KEYS_A_TRY);
        if is_as_before && !(may_number && self.numbers().is_some()) && self.put(new) {
            return true;
        }
        let numbers = self.numbers();
        if let Some(numbers) = numbers {
            let codes = vec![NONE; numbers.count()];
            self.table = Table::Numbers(numbers, codes);
            return all.chain([new]).all(|known| self.put(known));
        }
        let Some(turn) = self.turn.filter(|_| self.count <= PACKED_MAX) else { return false };
        // Keys for which there is no room need more of it.
        let count = self.count;
        let mut rooms = (0..4).map_while(|doublings| Cuckoo::with_room(count << doublings));
        rooms.any(|cuckoo| {
            self.table = Table::Packed(turn, cuckoo);
            all.clone().chain([new]).all(|known| self.put(known))
        })
    }

    /// The numbers of the texts, if they are not too many for so few.
    fn numbers(&self) -> Option<Numbers> {
        let most = NUMBERS_MAX.min(NUMBERS + NUMBERS_A_KEY * self.count);
        self.numbering?.numbers(most)
    }

    /// Whether there is room.
    fn put(&mut self, known: Known) -> bool {
        match &mut self.table {
            Table::Numbers(numbers, codes) => {
                let number = numbers.number(known.key);
                number.map(|number| codes[number] = known.code).is_some()
            }
            Table::Packed(turn, cuckoo) => {
                turn.pack(known.key).is_some_and(|packed| cuckoo.put(packed, known.code))
            }
            Table::Empty => false,
        }
    }
}

/// A bit for each code that no text has.
#[cfg(target_arch = "x86_64")]
#[inline]
#[target_feature(enable = "avx512f,avx512bw")]
fn is_none(codes: &[u16; GROUP]) -> u64 {
    use std::arch::x86_64::{_mm512_cmpeq_epi16_mask, _mm512_loadu_si512, _mm512_set1_epi16};
    let half = |first: usize| {
        // SAFETY: 32 codes are 64 bytes.
        let codes = unsafe { _mm512_loadu_si512(codes[first..first + 32].as_ptr().cast()) };
        u64::from(_mm512_cmpeq_epi16_mask(codes, _mm512_set1_epi16(NONE.cast_signed())))
    };
    half(0) | half(32) << 32
}

#[cfg(test)]
mod tests;
