//! Compares a block of unpacked numbers with a range and makes a mask of the result.
//!
//! `value - low <= span` in unsigned arithmetic tests both ends at once. AVX-512 compares straight
//! into mask registers; the portable code makes bytes of 0 and 1 (which the compiler vectorises) and
//! gathers eight of them at a time into bits with one multiplication.

use coload_page::bitpack::{BLOCK, lane_bits, unpack_u64};
use coload_types::{SimdLevel, simd_dispatch, simd_level};

use crate::mask::MASK_WORDS;
use crate::unpack::{unpack_to_8, unpack_to_16, unpack_to_32};

/// Moves the lowest bit of each of eight bytes to the top byte, in order.
const GATHER_BITS: u64 = 0x0102_0408_1020_4080;

macro_rules! compare {
    ($ty:ident, $lanes:literal, $mask:ident, $portable_inner:ident, $portable:ident, $avx512:ident,
     $set:ident as $signed:ident, $sub:ident, $compare:ident) => {
        #[inline(always)]
        fn $portable_inner(
            values: &[$ty; BLOCK],
            low: $ty,
            span: $ty,
            out: &mut [u64; MASK_WORDS],
        ) {
            for (word, chunk) in out.iter_mut().zip(values.chunks_exact(64)) {
                let mut bytes = [0u8; 64];
                for (b, v) in bytes.iter_mut().zip(chunk) {
                    *b = u8::from(v.wrapping_sub(low) <= span);
                }
                for (i, eight) in bytes.chunks_exact(8).enumerate() {
                    let mut raw = [0; 8];
                    raw.copy_from_slice(eight);
                    let bits = u64::from_le_bytes(raw).wrapping_mul(GATHER_BITS) >> 56;
                    *word |= bits << (i * 8);
                }
            }
        }

        simd_dispatch! {
            fn $portable(
                values: &[$ty; BLOCK], low: $ty, span: $ty, out: &mut [u64; MASK_WORDS],
            ) = $portable_inner;
        }

        #[cfg(target_arch = "x86_64")]
        #[target_feature(enable = "avx512f,avx512bw,avx512vl,avx512dq")]
        fn $avx512(values: &[$ty; BLOCK], low: $ty, span: $ty, out: &mut [u64; MASK_WORDS]) {
            use std::arch::x86_64::*;
            let (low, span) = ($set(low as $signed), $set(span as $signed));
            for (word, chunk) in out.iter_mut().zip(values.chunks_exact(64)) {
                for (i, lanes) in chunk.chunks_exact($lanes).enumerate() {
                    // SAFETY: the chunk is 64 bytes long.
                    let v = unsafe { _mm512_loadu_si512(lanes.as_ptr().cast()) };
                    *word |= u64::from($compare($sub(v, low), span)) << (i * $lanes % 64);
                }
            }
        }

        /// Adds to `out` the rows with `value - low <= span`.
        pub fn $mask(values: &[$ty; BLOCK], low: $ty, span: $ty, out: &mut [u64; MASK_WORDS]) {
            #[cfg(target_arch = "x86_64")]
            if simd_level() == SimdLevel::Avx512 {
                // SAFETY: the level says that the processor has these instructions.
                return unsafe { $avx512(values, low, span, out) };
            }
            $portable(values, low, span, out);
        }
    };
}

compare!(
    u8,
    64,
    mask_u8,
    mask_u8_inner,
    mask_u8_portable,
    mask_u8_avx512,
    _mm512_set1_epi8 as i8,
    _mm512_sub_epi8,
    _mm512_cmple_epu8_mask
);
compare!(
    u16,
    32,
    mask_u16,
    mask_u16_inner,
    mask_u16_portable,
    mask_u16_avx512,
    _mm512_set1_epi16 as i16,
    _mm512_sub_epi16,
    _mm512_cmple_epu16_mask
);
compare!(
    u32,
    16,
    mask_u32,
    mask_u32_inner,
    mask_u32_portable,
    mask_u32_avx512,
    _mm512_set1_epi32 as i32,
    _mm512_sub_epi32,
    _mm512_cmple_epu32_mask
);
compare!(
    u64,
    8,
    mask_u64,
    mask_u64_inner,
    mask_u64_portable,
    mask_u64_avx512,
    _mm512_set1_epi64 as i64,
    _mm512_sub_epi64,
    _mm512_cmple_epu64_mask
);

/// The largest number of `width` bits.
pub fn max_of_width(width: u8) -> u64 {
    if width >= 64 { u64::MAX } else { (1 << width) - 1 }
}

/// Room to unpack a block into, kept because clearing it would cost as much as the test.
#[derive(Debug, Clone)]
pub struct Scratch {
    lanes_8: Box<[u8; BLOCK]>,
    lanes_16: Box<[u16; BLOCK]>,
    /// Also for callers that look codes up.
    pub lanes_32: Box<[u32; BLOCK]>,
    lanes_64: Box<[u64; BLOCK]>,
}

impl Default for Scratch {
    fn default() -> Self {
        Scratch {
            lanes_8: Box::new([0; BLOCK]),
            lanes_16: Box::new([0; BLOCK]),
            lanes_32: Box::new([0; BLOCK]),
            lanes_64: Box::new([0; BLOCK]),
        }
    }
}

/// The rows of a packed block whose number lies in one of `ranges`, which are inclusive and within
/// `width` bits. Bits past `count` are unspecified.
pub fn mask_packed(
    packed: &[u8],
    count: usize,
    width: u8,
    ranges: &[(u64, u64)],
    scratch: &mut Scratch,
) -> [u64; MASK_WORDS] {
    let mut out = [0; MASK_WORDS];
    macro_rules! test {
        ($ty:ident, $mask:ident, $values:expr) => {{
            for (low, high) in ranges {
                $mask($values, *low as $ty, (high - low) as $ty, &mut out);
            }
        }};
    }
    match (width, lane_bits(width)) {
        (0, _) if ranges.iter().any(|r| r.0 == 0) => out = [u64::MAX; MASK_WORDS],
        (0, _) => {}
        (_, 8) => {
            unpack_to_8(packed, width, &mut scratch.lanes_8);
            test!(u8, mask_u8, &scratch.lanes_8);
        }
        (_, 16) => {
            unpack_to_16(packed, width, &mut scratch.lanes_16);
            test!(u16, mask_u16, &scratch.lanes_16);
        }
        (_, 32) => {
            unpack_to_32(packed, width, &mut scratch.lanes_32);
            test!(u32, mask_u32, &scratch.lanes_32);
        }
        _ => {
            unpack_u64(packed, count, width, &mut scratch.lanes_64);
            test!(u64, mask_u64, &scratch.lanes_64);
        }
    }
    out
}

#[cfg(test)]
mod tests {
    use super::*;
    use coload_page::bitpack::pack_block;

    #[test]
    fn packed_ranges_agree_with_comparing_each_value() {
        let mut state = 11u64;
        for width in 0..=64u8 {
            let max = max_of_width(width);
            let values: Vec<u64> = (0..BLOCK)
                .map(|_| {
                    state = state.wrapping_mul(6364136223846793005).wrapping_add(99991);
                    (state ^ state >> 29) & max
                })
                .collect();
            let mut packed = Vec::new();
            pack_block(&values, width, &mut packed);
            for ranges in [vec![(0, max)], vec![(max / 3, max / 2)], vec![(0, max / 9), (max, max)]]
            {
                let mask = mask_packed(&packed, BLOCK, width, &ranges, &mut Scratch::default());
                for (i, v) in values.iter().enumerate() {
                    let expected = ranges.iter().any(|r| r.0 <= *v && *v <= r.1);
                    assert_eq!(
                        mask[i / 64] >> (i % 64) & 1 == 1,
                        expected,
                        "width {width} row {i}"
                    );
                }
            }
        }
    }

    #[test]
    fn portable_masks_agree_with_the_fast_ones() {
        let values: [u16; BLOCK] = std::array::from_fn(|i| (i * 7919 % 5000) as u16);
        let (mut a, mut b) = ([0; MASK_WORDS], [0; MASK_WORDS]);
        mask_u16(&values, 700, 2000, &mut a);
        mask_u16_portable(&values, 700, 2000, &mut b);
        assert_eq!(a, b);
    }
}
