//! Keys of 16 bytes packed into 8, by vectors.
//!
//! ```text
//!   field -> key, two words -> first ^ (second turned)
//! ```
//!
//! The second word is turned so that the bits in which any two keys differ do not meet those of the first, and the other bits
//! are compared with those that all keys share: two packed keys are the same only if the keys are.

use super::GROUP;
use super::key::{Key, key_of};
use crate::rows::Rows;

/// The fields of one column that are looked up together.
#[derive(Debug, Clone, Copy)]
pub(super) enum Fields<'a> {
    /// Their keys.
    Made(&'a [Key]),
    /// Of `count` records from `first` on, and not the last of a record.
    OfRecords { rows: &'a Rows<'a>, field: usize, first: usize, count: usize },
}

/// How keys are packed.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Turn {
    /// Bits in which keys differ.
    varying: Key,
    /// Some key: all have its other bits.
    base: Key,
    /// Bits by which the second word is turned.
    turn: u32,
}

impl Turn {
    /// For one key.
    pub(super) fn of(key: Key) -> Self {
        Turn { varying: [0; 2], base: key, turn: 0 }
    }

    /// With one more key, if there is a turn for all.
    pub(super) fn with(self, key: Key) -> Option<Self> {
        let varying = [0, 1].map(|i| self.varying[i] | self.base[i] ^ key[i]);
        let meets = |turn: u32| varying[0] & varying[1].rotate_left(turn) != 0;
        let turn = (self.turn..u64::BITS).chain(0..self.turn).find(|turn| !meets(*turn))?;
        Some(Turn { varying, turn, ..self })
    }

    /// The packed key, unless the key is none of those that this packs.
    pub(super) fn pack(&self, key: Key) -> Option<u64> {
        let (packed, other) = self.pack_any(key);
        (other == 0).then_some(packed)
    }

    /// The packed key, and something but zero if the key is none of those that this packs.
    #[inline(always)]
    fn pack_any(&self, key: Key) -> (u64, u64) {
        let differs = |i: usize| (key[i] ^ self.base[i]) & !self.varying[i];
        (key[0] ^ key[1].rotate_left(self.turn), differs(0) | differs(1))
    }
}

impl Fields<'_> {
    pub(super) fn count(&self) -> usize {
        match self {
            Fields::Made(keys) => keys.len(),
            Fields::OfRecords { count, .. } => *count,
        }
    }

    /// The key of a field; of a long one with a hash.
    pub(super) fn key(&self, i: usize) -> Key {
        match self {
            Fields::Made(keys) => keys[i],
            Fields::OfRecords { rows, field, first, .. } => {
                let (start, end) = rows.span(first + i, *field);
                key_of(rows.text, start, end)
            }
        }
    }
}

/// Packed keys, or numbers.
#[derive(Debug)]
pub(super) struct Packed {
    pub(super) keys: [u64; GROUP],
    pub(super) numbers: [u32; GROUP],
}

impl Default for Packed {
    fn default() -> Self {
        Packed { keys: [0; GROUP], numbers: [0; GROUP] }
    }
}

impl Packed {
    /// Packs the keys of fields, and tells with a bit for each which cannot be known.
    #[inline(always)]
    pub(super) fn pack_each(&mut self, turn: &Turn, fields: Fields<'_>) -> u64 {
        let mut others = 0;
        let mut pack = |i: usize, key: Key, packed: &mut u64| {
            let other;
            (*packed, other) = turn.pack_any(key);
            others |= u64::from(other != 0) << i;
        };
        match fields {
            Fields::Made(keys) => {
                for (i, (key, packed)) in keys.iter().zip(&mut self.keys).enumerate() {
                    pack(i, *key, packed);
                }
            }
            Fields::OfRecords { rows, field, first, count } => {
                for (i, packed) in self.keys.iter_mut().enumerate().take(count) {
                    let (start, end) = rows.span(first + i, field);
                    pack(i, key_of(rows.text, start, end), packed);
                }
            }
        }
        others
    }
}

#[cfg(target_arch = "x86_64")]
pub(super) mod avx512 {
    use std::arch::x86_64::*;

    use super::*;

    /// Fields that are read at once.
    pub(in crate::lexicon) const LANES: usize = 8;

    impl Packed {
        /// Packs the keys of fields, and tells with a bit for each which cannot be known; bits behind them mean nothing.
        ///
        /// # Safety
        /// The instructions are there. Fields of records are in the text.
        #[inline]
        #[target_feature(enable = "avx512f,avx512bw,avx512vl,avx512dq,avx2,bmi1,bmi2,popcnt,lzcnt")]
        pub(in crate::lexicon) unsafe fn pack(&mut self, turn: &Turn, fields: Fields<'_>) -> u64 {
            let mut others = 0;
            match fields {
                Fields::Made(keys) => {
                    let (packed, _) = self.keys.as_chunks_mut::<LANES>();
                    let (whole, rest) = keys.as_chunks::<LANES>();
                    let mut last = [[0; 2]; LANES];
                    last[..rest.len()].copy_from_slice(rest);
                    let last = (!rest.is_empty()).then_some(&last);
                    for (i, (keys, packed)) in whole.iter().chain(last).zip(packed).enumerate() {
                        others |= u64::from(turn.pack_eight(made(keys), packed)) << (i * LANES);
                    }
                }
                Fields::OfRecords { rows, field, first, count } => {
                    let (packed, _) = self.keys.as_chunks_mut::<LANES>();
                    for (i, packed) in packed.iter_mut().enumerate().take(count.div_ceil(LANES)) {
                        let eight = Eight::new(rows, field, first, count, i);
                        // SAFETY: the text is as the caller says.
                        let keys = unsafe { read(rows.text, &eight) };
                        others |= u64::from(turn.pack_eight(keys, packed)) << (i * LANES);
                    }
                }
            }
            others
        }
    }

    impl Turn {
        /// Packs keys, and tells which cannot be known.
        #[inline]
        #[target_feature(enable = "avx512f,avx512bw,avx512vl,avx512dq")]
        fn pack_eight(&self, [first, second]: [__m512i; 2], to: &mut [u64; LANES]) -> u8 {
            let word = |word: u64| _mm512_set1_epi64(word as i64);
            // (key ^ base) & !varying
            let other = |key: __m512i, i: usize| {
                _mm512_ternarylogic_epi64::<0x06>(word(self.varying[i]), key, word(self.base[i]))
            };
            let other = _mm512_or_si512(other(first, 0), other(second, 1));
            let turned = _mm512_rolv_epi64(second, word(u64::from(self.turn)));
            // SAFETY: there are eight words.
            unsafe {
                _mm512_storeu_si512(to.as_mut_ptr().cast(), _mm512_xor_si512(first, turned));
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

    /// Eight fields of records that follow each other.
    #[derive(Debug, Clone, Copy)]
    pub(in crate::lexicon) struct Eight<'a> {
        /// The separators before the first field, and on.
        ends: &'a [u32],
        stride: usize,
        /// The last field; after it come none, and it is read again.
        last: usize,
    }

    impl<'a> Eight<'a> {
        /// Of fields of `count` records from `first` on, eight number `i`.
        #[inline(always)]
        pub(in crate::lexicon) fn new(
            rows: &Rows<'a>,
            field: usize,
            first: usize,
            count: usize,
            i: usize,
        ) -> Self {
            let last = (count - 1 - i * LANES).min(LANES - 1);
            let start = (first + i * LANES) * rows.stride + field;
            let ends = &rows.ends[start..=start + last * rows.stride + 1];
            Eight { ends, stride: rows.stride, last }
        }

        #[inline(always)]
        fn separators(&self, lane: usize) -> *const u32 {
            // SAFETY: the last field's separators are in the slice.
            unsafe { self.ends.as_ptr().add(lane.min(self.last) * self.stride) }
        }

        /// Where a field starts. Volatile, here and below, as the compiler would load vectors and take them apart.
        #[inline(always)]
        pub(in crate::lexicon) fn start(&self, lane: usize) -> usize {
            // SAFETY: as above.
            unsafe { self.separators(lane).read_volatile().wrapping_add(1) as usize }
        }

        /// Where a field ends.
        #[inline(always)]
        pub(in crate::lexicon) fn end(&self, lane: usize) -> usize {
            // SAFETY: as above; each field has a separator behind it.
            unsafe { self.separators(lane).add(1).read_volatile() as usize }
        }

        /// The lengths of the fields, at most 255.
        #[inline]
        #[target_feature(enable = "avx512f,avx512bw,avx512vl,avx512dq")]
        pub(in crate::lexicon) fn lengths(&self) -> __m512i {
            let two = |lane: usize| {
                // SAFETY: there are two separators at each place.
                let [a, b] = [lane, lane + 1]
                    .map(|lane| unsafe { _mm_loadl_epi64(self.separators(lane).cast()) });
                _mm_unpacklo_epi64(a, b)
            };
            let four = |lane: usize| {
                _mm256_inserti128_si256::<1>(_mm256_castsi128_si256(two(lane)), two(lane + 2))
            };
            let around = _mm512_inserti64x4::<1>(_mm512_castsi256_si512(four(0)), four(4));
            let end = _mm512_srli_epi64::<32>(around);
            let start = _mm512_maskz_add_epi32(0x5555, around, _mm512_set1_epi64(1));
            _mm512_min_epu64(_mm512_sub_epi64(end, start), _mm512_set1_epi64(255))
        }
    }

    /// Four times sixteen bytes of the text.
    ///
    /// # Safety
    /// The places are in the text, 16 bytes before its end.
    #[inline]
    #[target_feature(enable = "avx512f")]
    pub(in crate::lexicon) unsafe fn load_four(
        text: &[u8],
        at: impl Fn(usize) -> usize,
    ) -> __m512i {
        // SAFETY: as the caller says.
        let load = |lane: usize| unsafe { _mm_loadu_si128(text.as_ptr().add(at(lane)).cast()) };
        let all = _mm512_castsi128_si512(load(0));
        let all = _mm512_inserti32x4::<1>(all, load(1));
        let all = _mm512_inserti32x4::<2>(all, load(2));
        _mm512_inserti32x4::<3>(all, load(3))
    }

    /// The keys of eight fields. Long ones are keys that no text has.
    ///
    /// # Safety
    /// The fields start in the text, 16 bytes before its end.
    #[inline]
    #[target_feature(enable = "avx512f,avx512bw,avx512vl,avx512dq")]
    unsafe fn read(text: &[u8], eight: &Eight<'_>) -> [__m512i; 2] {
        // SAFETY: as the caller says.
        let (low, high) = unsafe {
            (load_four(text, |i| eight.start(i)), load_four(text, |i| eight.start(i + 4)))
        };
        let [first, second] = words(low, high);
        let length = eight.lengths();
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
