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
        // SAFETY: as above.
        unsafe { is_same(a, b) }
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

/// Whether two texts are the same, of which most have tens of bytes.
#[inline]
#[target_feature(enable = "avx2")]
fn is_same(a: &[u8], b: &[u8]) -> bool {
    const LOADED: usize = 32;
    if a.len() != b.len() {
        return false;
    }
    let (Some(last_a), Some(last_b)) = (a.last_chunk::<16>(), b.last_chunk::<16>()) else {
        return a == b;
    };
    let short = |bytes: *const u8| {
        // SAFETY: there are sixteen bytes.
        unsafe { _mm_loadu_si128(bytes.cast()) }
    };
    let long = |bytes: *const u8| {
        // SAFETY: there are 32 bytes.
        unsafe { _mm256_loadu_si256(bytes.cast()) }
    };
    if a.len() <= LOADED {
        // The two overlap; bytes that are compared twice are as they are.
        let first = _mm_xor_si128(short(a.as_ptr()), short(b.as_ptr()));
        let last = _mm_xor_si128(short(last_a.as_ptr()), short(last_b.as_ptr()));
        let differ = _mm_or_si128(first, last);
        return _mm_testz_si128(differ, differ) == 1;
    }
    let (whole_a, whole_b) = (a.as_chunks::<LOADED>().0, b.as_chunks::<LOADED>().0);
    let differs = |a: *const u8, b: *const u8| {
        let differ = _mm256_xor_si256(long(a), long(b));
        _mm256_testz_si256(differ, differ) == 0
    };
    let last = a.len() - LOADED;
    !whole_a.iter().zip(whole_b).any(|(a, b)| differs(a.as_ptr(), b.as_ptr()))
        && !differs(a[last..].as_ptr(), b[last..].as_ptr())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn texts_of_all_lengths_are_compared() {
        let Some(finder) = Avx2::new() else { return };
        let text: Vec<u8> = (0..140_u32).map(|i| (i * 7 % 251) as u8).collect();
        for length in 0..text.len() {
            let (a, mut b) = (&text[..length], text[..length].to_vec());
            assert!(finder.is_same(a, &b));
            for at in 0..length {
                b[at] ^= 1;
                assert!(!finder.is_same(a, &b), "byte {at} of {length}");
                b[at] ^= 1;
            }
            assert!(!finder.is_same(&text, a));
        }
    }
}
