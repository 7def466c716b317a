//! Finds the codes of few texts, eight fields at a time.
//!
//! ```text
//!   field -> 16-byte key -> packed key, 8 bytes -> two places: [packed key, ...] [code, ...]
//! ```
//!
//! Keys are packed exactly, as in [`super::buckets`], but by turning their second word so that the bits in which any two keys
//! differ do not meet those of the first: eight keys are packed by a few instructions. A key stands at one of two places, and
//! both are looked at, so that nothing depends on what is there. Where no turn does it, or there are more keys than the
//! caches hold, buckets are better.
//!
//! Cost: 22 to 44 bytes a key; about 10 cycles a field that is read from its record.
//!
//! Source: Pagh and Rodler, "Cuckoo hashing", ESA 2001; Ross, "Efficient hash probes on modern processors", ICDE 2007.

use super::GROUP;
use super::buckets::Known;
use super::key::{GOLDEN, IS_LONG, Key, key_of};
use crate::rows::Rows;

/// Places of a table that is new.
const PLACES_START: usize = 32;
/// Most places: 160 KB with the codes.
const PLACES_MAX: usize = 1 << 14;
/// Keys that may be moved for one more, before the table grows.
const MOVES_MAX: usize = 64;
/// Bits between the halves of a packed key that are mixed; not those of a character.
const MIX: u32 = 29;

/// The keys of some fields of one column.
#[derive(Debug, Clone, Copy)]
pub(super) enum Fields<'a> {
    /// Of fields that were read.
    Made(&'a [Key]),
    /// Of a field of `count` records from `first` on, not the last of a record.
    OfRecords { rows: &'a Rows<'a>, field: usize, first: usize, count: usize },
}

/// Packed keys, and the places where they may stand.
#[derive(Debug)]
pub(super) struct Packed {
    keys: [u64; GROUP],
    places: [[u32; GROUP]; 2],
}

impl Default for Packed {
    fn default() -> Self {
        Packed { keys: [0; GROUP], places: [[0; GROUP]; 2] }
    }
}

/// Codes by keys.
#[derive(Debug)]
pub(super) struct Cuckoo {
    /// An empty place holds a key that stands elsewhere.
    keys: Vec<u64>,
    codes: Vec<u16>,
    used: Vec<bool>,
    count: usize,
    /// Bits in which keys differ.
    varying: Key,
    /// Some key: all have its other bits.
    base: Key,
    /// Bits by which the second word is turned.
    turn: u32,
}

impl Cuckoo {
    /// Holds nothing.
    pub(super) fn new() -> Self {
        let mut new = Cuckoo {
            keys: Vec::new(),
            codes: Vec::new(),
            used: Vec::new(),
            count: 0,
            varying: [0; 2],
            base: [0; 2],
            turn: 0,
        };
        new.clear(PLACES_START);
        new
    }

    /// The code of a key.
    pub(super) fn find(&self, key: Key) -> Option<u16> {
        if self.count == 0 || self.is_other(key) {
            return None;
        }
        let packed = self.pack(key);
        let places = self.places(packed);
        let place = places.into_iter().find(|at| self.used[*at] && self.keys[*at] == packed)?;
        Some(self.codes[place])
    }

    /// The codes of the fields, and a bit for each that is not known.
    pub(super) fn find_each(&self, fields: Fields<'_>, found: &mut [u16; GROUP]) -> u64 {
        let mut missing = 0;
        let mut note = |i: usize, key: Key| match self.find(key) {
            Some(code) => found[i] = code,
            None => missing |= 1 << i,
        };
        match fields {
            Fields::Made(keys) => keys.iter().enumerate().for_each(|(i, key)| note(i, *key)),
            Fields::OfRecords { rows, field, first, count } => (0..count).for_each(|i| {
                let (start, end) = rows.span(first + i, field);
                note(i, key_of(rows.text, start, end));
            }),
        }
        missing
    }

    /// Adds a text that is not there; `all` are those that are. Whether the table holds them: if not, it is of no more use.
    pub(super) fn add(&mut self, new: Known, all: impl Iterator<Item = Known> + Clone) -> bool {
        if new.key[1] & IS_LONG != 0 {
            return false;
        }
        if self.count == 0 {
            self.base = new.key;
        }
        let mut places = self.keys.len();
        if self.is_other(new.key) {
            for ((varying, base), key) in self.varying.iter_mut().zip(self.base).zip(new.key) {
                *varying |= base ^ key;
            }
            let [first, second] = self.varying;
            let Some(turn) = (0..u64::BITS).find(|turn| first & second.rotate_left(*turn) == 0)
            else {
                return false;
            };
            self.turn = turn;
        } else if (self.count + 1) * 2 <= places && self.put(new) {
            return true;
        } else {
            places *= 2;
        }
        // Half of the places are used at most: with more, keys would be moved often.
        while places <= PLACES_MAX {
            self.clear(places);
            if all.clone().chain([new]).all(|known| self.put(known)) {
                return true;
            }
            places *= 2;
        }
        false
    }

    fn clear(&mut self, places: usize) {
        self.keys.clear();
        self.keys.resize(places, 0);
        self.codes.clear();
        self.codes.resize(places, 0);
        self.used.clear();
        self.used.resize(places, false);
        self.count = 0;
        for place in self.places(0) {
            self.empty(place);
        }
    }

    /// Leaves a key at a place where nobody looks for it.
    fn empty(&mut self, place: usize) {
        self.used[place] = false;
        // Each key has two places, so that one of two dozen stands elsewhere but in the smallest tables, which have more.
        self.keys[place] = (0..).find(|key| !self.places(*key).contains(&place)).unwrap_or(0);
    }

    fn is_other(&self, key: Key) -> bool {
        let differs = |i: usize| (key[i] ^ self.base[i]) & !self.varying[i];
        differs(0) | differs(1) != 0
    }

    fn pack(&self, key: Key) -> u64 {
        key[0] ^ key[1].rotate_left(self.turn)
    }

    fn bits(&self) -> u32 {
        self.keys.len().trailing_zeros()
    }

    fn places(&self, packed: u64) -> [usize; 2] {
        let hash = (packed ^ packed >> MIX).wrapping_mul(GOLDEN);
        let shift = u64::BITS - self.bits();
        [(hash >> shift) as usize, (hash << self.bits() >> shift) as usize]
    }

    /// Whether there was a place.
    fn put(&mut self, known: Known) -> bool {
        let (mut packed, mut code) = (self.pack(known.key), known.code);
        let mut place = self.places(packed)[0];
        for _ in 0..MOVES_MAX {
            let [first, second] = self.places(packed);
            if let Some(free) = [first, second].into_iter().find(|at| !self.used[*at]) {
                (self.keys[free], self.codes[free], self.used[free]) = (packed, code, true);
                self.count += 1;
                return true;
            }
            // The one that is in the way goes where it can, but not back.
            place = if place == first { second } else { first };
            std::mem::swap(&mut self.keys[place], &mut packed);
            std::mem::swap(&mut self.codes[place], &mut code);
        }
        false
    }
}

#[cfg(target_arch = "x86_64")]
mod avx512 {
    use std::arch::x86_64::*;

    use super::*;

    /// Keys that are packed at once.
    const LANES: usize = 8;

    impl Cuckoo {
        /// The codes of the fields, and a bit for each that is not known.
        ///
        /// Keys are packed by vectors, and looked up one by one: instructions that gather take longer than as many loads.
        ///
        /// # Safety
        /// The instructions are there. Fields of records are in the text.
        #[inline]
        #[target_feature(
            enable = "avx512f,avx512bw,avx512vl,avx512dq,avx2,bmi1,bmi2,popcnt,lzcnt,sse4.2"
        )]
        pub(in crate::lexicon) unsafe fn find_all(
            &self,
            fields: Fields<'_>,
            packed: &mut Packed,
            found: &mut [u16; GROUP],
        ) -> u64 {
            if self.count == 0 {
                return u64::MAX;
            }
            let mut missing = 0;
            let count = match fields {
                Fields::Made(keys) => {
                    let (whole, rest) = keys.as_chunks::<LANES>();
                    let mut last = [[0; 2]; LANES];
                    last[..rest.len()].copy_from_slice(rest);
                    let last = (!rest.is_empty()).then_some(&last);
                    for (i, keys) in whole.iter().chain(last).enumerate() {
                        let other = self.pack_eight(made(keys), packed, i * LANES);
                        missing |= u64::from(other) << (i * LANES);
                    }
                    keys.len()
                }
                Fields::OfRecords { rows, field, first, count } => {
                    let behind = (first + count - 1) * rows.stride + field + 1;
                    assert!(count <= GROUP && field + 1 < rows.stride && behind < rows.ends.len());
                    for i in (0..count).step_by(LANES) {
                        let at = |lane: usize| {
                            // Behind the last record stands none; it is looked at again.
                            let record = first + (i + lane).min(count - 1);
                            record * rows.stride + field
                        };
                        // SAFETY: the places are before `behind`; the text is as the caller says.
                        let keys = unsafe { of_records(rows, at) };
                        missing |= u64::from(self.pack_eight(keys, packed, i)) << i;
                    }
                    count
                }
            };
            let Packed { keys, places: [here, there] } = packed;
            let ways = keys[..count].iter().zip(&here[..count]).zip(&there[..count]);
            for (i, (((key, here), there), found)) in ways.zip(found).enumerate() {
                // SAFETY: places have as many bits as the number of keys, and there are as many codes.
                unsafe {
                    // Volatile, as the compiler would gather them.
                    let key_at =
                        |place: u32| self.keys.as_ptr().add(place as usize).read_volatile();
                    let is_here = key_at(*here) == *key;
                    let is_there = key_at(*there) == *key;
                    // Which of the two it is cannot be predicted: no branch.
                    let place = std::hint::select_unpredictable(is_here, *here, *there);
                    *found = *self.codes.get_unchecked(place as usize);
                    missing |= u64::from(!(is_here | is_there)) << i;
                }
            }
            missing
        }

        /// Packs keys number `at` and following, and tells which cannot be known.
        #[inline]
        #[target_feature(
            enable = "avx512f,avx512bw,avx512vl,avx512dq,avx2,bmi1,bmi2,popcnt,lzcnt,sse4.2"
        )]
        fn pack_eight(&self, [first, second]: [__m512i; 2], to: &mut Packed, at: usize) -> u8 {
            let word = |word: u64| _mm512_set1_epi64(word as i64);
            // (key ^ base) & !varying
            let other = |key: __m512i, i: usize| {
                _mm512_ternarylogic_epi64::<0x06>(word(self.varying[i]), key, word(self.base[i]))
            };
            let other = _mm512_or_si512(other(first, 0), other(second, 1));
            let turned = _mm512_rolv_epi64(second, word(u64::from(self.turn)));
            let packed = _mm512_xor_si512(first, turned);
            let mixed = _mm512_xor_si512(packed, _mm512_srli_epi64::<MIX>(packed));
            let hash = _mm512_mullo_epi64(mixed, word(GOLDEN));
            let bits = _mm_cvtsi64_si128(i64::from(self.bits()));
            let shift = _mm_cvtsi64_si128(i64::from(u64::BITS - self.bits()));
            let here = _mm512_srl_epi64(hash, shift);
            let there = _mm512_srl_epi64(_mm512_sll_epi64(hash, bits), shift);
            let keys = &mut to.keys[at..at + LANES];
            let [heres, theres] = &mut to.places;
            let (heres, theres) = (&mut heres[at..at + LANES], &mut theres[at..at + LANES]);
            // SAFETY: each slice has eight numbers.
            unsafe {
                _mm512_storeu_si512(keys.as_mut_ptr().cast(), packed);
                _mm256_storeu_si256(heres.as_mut_ptr().cast(), _mm512_cvtepi64_epi32(here));
                _mm256_storeu_si256(theres.as_mut_ptr().cast(), _mm512_cvtepi64_epi32(there));
            }
            _mm512_test_epi64_mask(other, other)
        }
    }

    /// The words of eight keys.
    #[inline]
    #[target_feature(enable = "avx512f")]
    fn made(keys: &[Key; LANES]) -> [__m512i; 2] {
        // SAFETY: the loads are of the sixteen words.
        let (low, high) = unsafe {
            let keys: *const __m512i = keys.as_ptr().cast();
            (_mm512_loadu_si512(keys), _mm512_loadu_si512(keys.add(1)))
        };
        words(low, high)
    }

    /// The first and the second words of eight keys, four in each vector.
    #[inline]
    #[target_feature(enable = "avx512f")]
    fn words(low: __m512i, high: __m512i) -> [__m512i; 2] {
        let firsts = _mm512_setr_epi64(0, 2, 4, 6, 8, 10, 12, 14);
        let seconds = _mm512_setr_epi64(1, 3, 5, 7, 9, 11, 13, 15);
        [
            _mm512_permutex2var_epi64(low, firsts, high),
            _mm512_permutex2var_epi64(low, seconds, high),
        ]
    }

    /// The keys of eight fields, by the places of the separators before them. Long ones are keys that no text has.
    ///
    /// # Safety
    /// There are separators at the places and behind them, in the text, which has 64 bytes more.
    #[inline]
    #[target_feature(enable = "avx512f,avx512bw,avx512vl,avx512dq")]
    unsafe fn of_records(rows: &Rows<'_>, at: impl Fn(usize) -> usize) -> [__m512i; 2] {
        let mut lengths = [0; LANES];
        let mut load = |lane: usize| {
            let at = at(lane);
            // SAFETY: as the caller says.
            unsafe {
                let start = rows.ends.get_unchecked(at).wrapping_add(1);
                lengths[lane] = rows.ends.get_unchecked(at + 1).wrapping_sub(start);
                _mm_loadu_si128(rows.text.as_ptr().add(start as usize).cast())
            }
        };
        let mut four = |lane: usize| {
            let all = _mm512_castsi128_si512(load(lane));
            let all = _mm512_inserti32x4::<1>(all, load(lane + 1));
            let all = _mm512_inserti32x4::<2>(all, load(lane + 2));
            _mm512_inserti32x4::<3>(all, load(lane + 3))
        };
        let (low, high) = (four(0), four(4));
        let [first, second] = words(low, high);
        // SAFETY: the load is of the eight lengths.
        let lengths = unsafe { _mm256_loadu_si256(lengths.as_ptr().cast()) };
        let length = _mm512_cvtepu32_epi64(_mm256_min_epu32(lengths, _mm256_set1_epi32(255)));
        let ones = _mm512_set1_epi64(-1);
        let bits = _mm512_slli_epi64::<3>(length);
        // Bytes behind the end go; a shift by 64 and more leaves none of them.
        let first = _mm512_andnot_si512(_mm512_sllv_epi64(ones, bits), first);
        let bits =
            _mm512_max_epi64(_mm512_sub_epi64(bits, _mm512_set1_epi64(64)), _mm512_setzero_si512());
        let second = _mm512_andnot_si512(_mm512_sllv_epi64(ones, bits), second);
        // Of sixteen bytes and more the last would meet the length.
        let is_short = _mm512_cmple_epi64_mask(length, _mm512_set1_epi64(15));
        let tag = _mm512_slli_epi64::<56>(length);
        [first, _mm512_mask_or_epi64(tag, is_short, second, tag)]
    }
}

#[cfg(test)]
mod tests;
