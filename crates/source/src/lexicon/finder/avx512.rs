//! Look-ups with AVX-512.

use std::arch::x86_64::*;

use coload_types::{SimdLevel, simd_level};

use super::{Finder, bits};
use crate::lexicon::GROUP;
use crate::lexicon::few::Few;
use crate::lexicon::key::{Key, avx512};
use crate::lexicon::packing::{Fields, Packed};

/// AVX-512, and the instructions on words that come with it.
#[derive(Debug, Clone, Copy)]
pub(in crate::lexicon) struct Avx512(());

impl Avx512 {
    /// There is a value only where the instructions are.
    pub(super) fn new() -> Option<Self> {
        (simd_level() >= SimdLevel::Avx512).then_some(Avx512(()))
    }
}

impl Finder for Avx512 {
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
        #[target_feature(enable = "avx512f")]
        #[inline]
        fn matching(keys: &[u64; 8], packed: u64) -> u32 {
            // SAFETY: the load is of the eight words.
            let line = unsafe { _mm512_loadu_si512(keys.as_ptr().cast()) };
            u32::from(_mm512_cmpeq_epi64_mask(line, _mm512_set1_epi64(packed as i64)))
        }
        // SAFETY: as above.
        unsafe { matching(keys, packed) }
    }

    #[inline(always)]
    fn hash_field(self, text: &[u8], start: usize, end: usize) -> u64 {
        // SAFETY: as above.
        unsafe { avx512::hash(&text[start..end]) }
    }

    #[inline(always)]
    fn is_same(self, a: &[u8], b: &[u8]) -> bool {
        // SAFETY: as above.
        unsafe { avx512::is_same(a, b) }
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
        unsafe { few.find_all_avx512(fields, packed, found) }
    }
}
