//! Look-ups with AVX2.

use std::arch::x86_64::*;

use coload_types::{SimdLevel, simd_level};

use super::{Finder, bits};
use crate::lexicon::GROUP;
use crate::lexicon::few::Few;
use crate::lexicon::key::{Key, hash_of, key_of};
use crate::lexicon::packing::{Fields, Packed};

/// AVX2, and the instructions on words that come with it.
#[derive(Debug, Clone, Copy)]
pub(in crate::lexicon) struct Avx2(());

impl Avx2 {
    /// There is a value only where the instructions are.
    pub(super) fn new() -> Option<Self> {
        (simd_level() >= SimdLevel::Avx2).then_some(Avx2(()))
    }
}

impl Finder for Avx2 {
    #[inline(always)]
    fn gather(self, key: Key, varying: Key) -> u64 {
        // SAFETY: the instructions are there, or there would be no value of the type.
        unsafe { bits::gather(key, varying) }
    }

    #[inline(always)]
    fn hash(self, packed: u64) -> u64 {
        // SAFETY: as above.
        unsafe { bits::hash(packed) }
    }

    #[inline(always)]
    fn fetch(self, line: *const u8) {
        bits::fetch(line);
    }

    #[inline(always)]
    fn matching(self, keys: &[u64; 8], packed: u64) -> u32 {
        #[target_feature(enable = "avx2")]
        #[inline]
        fn matching(keys: &[u64; 8], packed: u64) -> u32 {
            let packed = _mm256_set1_epi64x(packed as i64);
            let half = |first: usize| {
                // SAFETY: the load is of four of the words.
                let line = unsafe { _mm256_loadu_si256(keys[first..first + 4].as_ptr().cast()) };
                _mm256_movemask_pd(_mm256_castsi256_pd(_mm256_cmpeq_epi64(line, packed))) as u32
            };
            half(0) | half(4) << 4
        }
        // SAFETY: as above.
        unsafe { matching(keys, packed) }
    }

    #[inline(always)]
    fn hash_field(self, text: &[u8], start: usize, end: usize) -> u64 {
        hash_of(key_of(text, start, end))
    }

    #[inline(always)]
    fn is_same(self, a: &[u8], b: &[u8]) -> bool {
        a == b
    }

    #[inline(always)]
    fn find_all(
        self,
        few: &Few,
        fields: Fields<'_>,
        packed: &mut Packed,
        found: &mut [u16; GROUP],
    ) -> u64 {
        // SAFETY: as above; the fields of records are in the text.
        unsafe { few.find_all_avx2(fields, packed, found) }
    }
}
