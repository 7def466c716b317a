//! Numbers of fields with AVX2, two at once.

use std::arch::x86_64::*;

use super::{KEY_BYTES, Numbers, PLACES};
use crate::lexicon::packing::{Fields, Packed};

/// What the places of a text are, twice.
struct Each {
    least: __m256i,
    range: __m256i,
    optional: __m256i,
    of_places: __m256i,
    of_pairs: __m256i,
    of_fours: __m256i,
    length_min: __m256i,
    /// The most that a length may be above the least.
    longer: __m256i,
    /// Numbers before the first, and that of the empty text.
    before: u32,
    empty: u32,
}

impl Packed {
    /// The numbers of fields, at most the greatest, and a bit for each that has none; bits behind them mean nothing. `None`
    /// where a field ends so near the start of the text that it cannot be read.
    ///
    /// # Safety
    /// The instructions are there. Fields of records are in the text.
    #[inline]
    #[target_feature(enable = "avx2,bmi1,bmi2,popcnt,lzcnt")]
    pub(in crate::lexicon) unsafe fn number_avx2(
        &mut self,
        numbers: &Numbers,
        fields: Fields<'_>,
    ) -> Option<u64> {
        let each = Each::new(numbers);
        let (to, _) = self.numbers.as_chunks_mut::<2>();
        let mut missing = 0;
        match fields {
            Fields::Made(keys) => {
                for (i, (keys, to)) in keys.chunks(2).zip(to).enumerate() {
                    let keys = [keys[0], keys[keys.len() - 1]];
                    // SAFETY: the load is of the two keys.
                    let keys = unsafe { _mm256_loadu_si256(keys.as_ptr().cast()) };
                    let (characters, lengths) = right_aligned(keys);
                    missing |= each.number(characters, lengths, to) << (2 * i);
                }
            }
            Fields::OfRecords { rows, field, first, count } => {
                // Fields of later records end behind the first.
                if rows.span(first, field).1 < PLACES {
                    return None;
                }
                let from = first * rows.stride + field;
                let ends = &rows.ends[from..=from + (count - 1) * rows.stride + 1];
                // A macro, as what loads must become a part of the loop: results of a call would go through memory.
                macro_rules! load {
                    ($n:expr) => {{
                        // SAFETY: record `n` is one of them, and its field has a separator on either side.
                        let (before, end) = unsafe {
                            let at = ends.as_ptr().add($n * rows.stride);
                            (*at, *at.add(1))
                        };
                        // SAFETY: the field ends in the text, and 16 bytes of it are before that.
                        let characters = unsafe {
                            _mm_loadu_si128(rows.text.as_ptr().add(end as usize - PLACES).cast())
                        };
                        let length = end.wrapping_sub(before).wrapping_sub(1).min(255);
                        (characters, _mm_set1_epi8((length as u8).cast_signed()))
                    }};
                }
                for (i, to) in to.iter_mut().enumerate().take(count.div_ceil(2)) {
                    // After the last field come none, and it is read again.
                    let (low, high) = (load!(2 * i), load!((2 * i + 1).min(count - 1)));
                    let characters = _mm256_set_m128i(high.0, low.0);
                    let lengths = _mm256_set_m128i(high.1, low.1);
                    missing |= each.number(characters, lengths, to) << (2 * i);
                }
            }
        }
        Some(missing)
    }
}

impl Each {
    #[inline]
    #[target_feature(enable = "avx2")]
    fn new(numbers: &Numbers) -> Self {
        let each = |places: *const __m128i| {
            // SAFETY: all are sixteen bytes.
            _mm256_broadcastsi128_si256(unsafe { _mm_loadu_si128(places) })
        };
        let byte = |byte: u8| _mm256_set1_epi8(byte.cast_signed());
        Each {
            least: each(numbers.least.as_ptr().cast()),
            range: each(numbers.range.as_ptr().cast()),
            optional: each(numbers.optional.as_ptr().cast()),
            of_places: each(numbers.of_places.as_ptr().cast()),
            of_pairs: each(numbers.of_pairs.as_ptr().cast()),
            of_fours: each(numbers.of_fours.as_ptr().cast()),
            length_min: byte(numbers.length_min),
            longer: byte(numbers.length_max.wrapping_sub(numbers.length_min)),
            before: numbers.before,
            empty: numbers.empty,
        }
    }

    /// Numbers two fields, of which there are the characters, right aligned, and the length in each byte. A bit for each that
    /// has no number.
    #[inline]
    #[target_feature(enable = "avx2")]
    fn number(&self, characters: __m256i, lengths: __m256i, to: &mut [u32; 2]) -> u64 {
        let zero = _mm256_setzero_si256();
        let behind = _mm256_broadcastsi128_si256(_mm_setr_epi8(
            15, 14, 13, 12, 11, 10, 9, 8, 7, 6, 5, 4, 3, 2, 1, 0,
        ));
        // A byte is the text's if no more than its length are behind it. What is less becomes zero.
        let others = _mm256_cmpeq_epi8(_mm256_subs_epu8(lengths, behind), zero);
        let digits = _mm256_sub_epi8(characters, self.least);
        let beyond = _mm256_andnot_si256(others, _mm256_subs_epu8(digits, self.range));
        let is_empty = _mm256_cmpeq_epi8(lengths, zero);
        let too_long = _mm256_subs_epu8(_mm256_sub_epi8(lengths, self.length_min), self.longer);
        let wrong = _mm256_or_si256(beyond, _mm256_andnot_si256(is_empty, too_long));
        let digits = _mm256_andnot_si256(others, _mm256_add_epi8(digits, self.optional));
        let pairs = _mm256_maddubs_epi16(digits, self.of_places);
        let fours = _mm256_madd_epi16(pairs, self.of_pairs);
        let parts = _mm256_mullo_epi32(fours, self.of_fours);
        let halves = _mm256_add_epi32(parts, _mm256_shuffle_epi32::<0x4e>(parts));
        let sums = _mm256_add_epi32(halves, _mm256_shuffle_epi32::<0xb1>(halves));
        let number = |number: u32| _mm256_set1_epi32(number.cast_signed());
        let behind_first = _mm256_sub_epi32(sums, number(self.before));
        let of_each = _mm256_blendv_epi8(behind_first, number(self.empty), is_empty);
        // What has no number must not lead out of the table.
        let all = _mm256_min_epu32(of_each, number(self.empty + 1));
        *to = [
            _mm256_extract_epi32::<0>(all).cast_unsigned(),
            _mm256_extract_epi32::<4>(all).cast_unsigned(),
        ];
        let right = _mm256_movemask_epi8(_mm256_cmpeq_epi8(wrong, zero)).cast_unsigned();
        u64::from(right & 0xffff != 0xffff) | u64::from(right >> 16 != 0xffff) << 1
    }
}

/// The characters of two keys and their lengths.
#[inline]
#[target_feature(enable = "avx2")]
fn right_aligned(keys: __m256i) -> (__m256i, __m256i) {
    let lengths = _mm256_shuffle_epi8(keys, _mm256_set1_epi8(KEY_BYTES as i8));
    let ahead = _mm256_broadcastsi128_si256(_mm_setr_epi8(
        -16, -15, -14, -13, -12, -11, -10, -9, -8, -7, -6, -5, -4, -3, -2, -1,
    ));
    // What is before the first character is negative, and becomes nothing.
    (_mm256_shuffle_epi8(keys, _mm256_add_epi8(lengths, ahead)), lengths)
}
