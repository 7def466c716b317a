//! Numbers for texts of one form: digits, dates, codes of a prefix and digits.
//!
//! ```text
//!   places from the right      5 4 3 2 1
//!   "1".."10000"               fill or 1 | fill or 0..9 | ... | 0..9       2 * 11 * 11 * 11 * 10 numbers
//!   "C-00000".."C-99999"       C | - | 0..9 | ...                          10 * 10 * 10 * 10 * 10
//! ```
//!
//! Each place has a range of characters, and the number is that of a mixed radix. Places that not all texts reach have one
//! more digit, so that two texts never have the same number. Numbers are ordered as the texts are, so that those between
//! the least and the greatest text are enough where all would be too many: the days of a lifetime are 160,000 of some
//! 1,600,000. The empty text has the number behind them, and what has none the one after that.
//!
//! Cost: about 3 cycles a field by vectors, sixteen places whatever its length.

use super::key::{KEY_BYTES, Key};
use super::packing::{Fields, Packed};

/// Places of a text, the last character at the last one.
const PLACES: usize = 16;

/// Most digits of a place, which are bytes.
const DIGITS_MAX: usize = 1 << 8;

/// Texts of one form.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Numbering {
    /// Least and greatest character of each place.
    least: [u8; PLACES],
    greatest: [u8; PLACES],
    /// Of texts that are not empty.
    length_min: u8,
    length_max: u8,
    /// The least and the greatest text, as [`order_of`] has them.
    first: [u16; PLACES],
    last: [u16; PLACES],
}

/// A numbering ready to be used.
#[derive(Debug, Clone)]
pub(super) struct Numbers {
    least: [u8; PLACES],
    /// Greatest less least character.
    range: [u8; PLACES],
    /// 1 where there is a digit for texts that do not reach a place.
    optional: [u8; PLACES],
    length_min: u8,
    length_max: u8,
    /// What the digits of each place, of pairs and of fours are multiplied with.
    of_places: [i8; PLACES],
    of_pairs: [i16; PLACES / 2],
    of_fours: [i32; PLACES / 4],
    /// What the digit of each place counts.
    weights: [u32; PLACES],
    /// What is taken off, so that the first number is 0.
    before: u32,
    /// The number of the empty text.
    empty: u32,
}

impl Numbering {
    /// Without texts.
    pub(super) const NONE: Numbering = Numbering {
        least: [u8::MAX; PLACES],
        greatest: [0; PLACES],
        length_min: 16,
        length_max: 0,
        first: [u16::MAX; PLACES],
        last: [0; PLACES],
    };

    /// With one more text, of up to 15 bytes.
    pub(super) fn with(mut self, key: Key) -> Self {
        let (bytes, length) = right_aligned(key);
        if length > 0 {
            self.length_min = self.length_min.min(length as u8);
            self.length_max = self.length_max.max(length as u8);
            let order = order_of(bytes, length);
            self.first = self.first.min(order);
            self.last = self.last.max(order);
        }
        for (place, byte) in bytes.iter().enumerate().skip(PLACES - length) {
            self.least[place] = self.least[place].min(*byte);
            self.greatest[place] = self.greatest[place].max(*byte);
        }
        self
    }

    /// Whether texts have the same ranges of characters and lengths.
    pub(super) fn has_form_of(&self, other: &Numbering) -> bool {
        let form = |n: &Numbering| (n.least, n.greatest, n.length_min, n.length_max);
        form(self) == form(other)
    }

    /// The numbers of the texts, if they are fewer than `most`.
    pub(super) fn numbers(&self, most: usize) -> Option<Numbers> {
        let mut numbers = self.all_numbers()?;
        let all = numbers.empty as usize;
        if all < most {
            return Some(numbers);
        }
        // As many again, so that texts that go on growing seldom need a table anew.
        let [first, last] = [self.first, self.last].map(|text| numbers.number_of(text));
        let span = last.checked_sub(first)? + 1;
        let wanted = 2 * span;
        if wanted >= most {
            return None;
        }
        let before = first.saturating_sub(span / 2);
        numbers.before = u32::try_from(before).ok()?;
        numbers.empty = u32::try_from(wanted.min(all - before)).ok()?;
        Some(numbers)
    }

    /// The numbers of all texts of the form, if 31 bits hold them.
    fn all_numbers(&self) -> Option<Numbers> {
        let mut numbers = Numbers {
            least: [0; PLACES],
            range: [0; PLACES],
            optional: [0; PLACES],
            length_min: self.length_min,
            length_max: self.length_max,
            of_places: [1; PLACES],
            of_pairs: [1; PLACES / 2],
            of_fours: [1; PLACES / 4],
            weights: [1; PLACES],
            before: 0,
            empty: 0,
        };
        let mut digits = [1; PLACES];
        let (shortest, longest) = (usize::from(self.length_min), usize::from(self.length_max));
        for (place, digits) in digits.iter_mut().enumerate().skip(PLACES - longest) {
            let optional = u8::from(place + shortest < PLACES);
            numbers.least[place] = self.least[place];
            numbers.range[place] = self.greatest[place] - self.least[place];
            numbers.optional[place] = optional;
            *digits = usize::from(numbers.range[place]) + 1 + usize::from(optional);
            if *digits > DIGITS_MAX {
                return None;
            }
        }
        // Of each two neighbours the left counts as many times as the right has digits; so of pairs, and of fours.
        let mut pairs = [1; PLACES / 2];
        for (pair, digits) in digits.as_chunks::<2>().0.iter().enumerate() {
            numbers.of_places[2 * pair] = i8::try_from(digits[1]).ok()?;
            pairs[pair] = digits[0] * digits[1];
        }
        let mut fours = [1; PLACES / 4];
        for (four, pairs) in pairs.as_chunks::<2>().0.iter().enumerate() {
            numbers.of_pairs[2 * four] = i16::try_from(pairs[1]).ok()?;
            i16::try_from(pairs[0]).ok()?;
            fours[four] = pairs[0] * pairs[1];
        }
        let mut count = 1_usize;
        for (of_four, four) in numbers.of_fours.iter_mut().zip(fours).rev() {
            *of_four = i32::try_from(count).ok()?;
            count = count.checked_mul(four)?;
        }
        numbers.empty = i32::try_from(count).ok()?.cast_unsigned();
        // Their product is `empty`, so that none is more.
        let mut weight = 1;
        for (of_place, digits) in numbers.weights.iter_mut().zip(digits).rev() {
            *of_place = weight;
            weight *= digits as u32;
        }
        Some(numbers)
    }
}

impl Numbers {
    /// How many numbers there are, with that of what has none.
    pub(super) fn count(&self) -> usize {
        self.empty as usize + 2
    }

    /// The number of a text, if it has one.
    pub(super) fn number(&self, key: Key) -> Option<usize> {
        let (bytes, length) = right_aligned(key);
        if length == 0 {
            return Some(self.empty as usize);
        }
        if !(usize::from(self.length_min)..=usize::from(self.length_max)).contains(&length) {
            return None;
        }
        let is_in_range =
            |place: usize| bytes[place].wrapping_sub(self.least[place]) <= self.range[place];
        if !(PLACES - length..PLACES).all(is_in_range) {
            return None;
        }
        let number = self.number_of(order_of(bytes, length)).checked_sub(self.before as usize)?;
        (number < self.empty as usize).then_some(number)
    }

    /// The number of a text of the form among those of all.
    fn number_of(&self, order: [u16; PLACES]) -> usize {
        let digit = |place: usize| match order[place] {
            0 => 0,
            byte => {
                u32::from(byte - 1) - u32::from(self.least[place]) + u32::from(self.optional[place])
            }
        };
        (0..PLACES).map(|place| digit(place) * self.weights[place]).sum::<u32>() as usize
    }
}

/// What orders texts as their numbers do: for each place 0 where the text does not reach it, or one more than its byte.
fn order_of(bytes: [u8; PLACES], length: usize) -> [u16; PLACES] {
    std::array::from_fn(|place| match place + length < PLACES {
        true => 0,
        false => u16::from(bytes[place]) + 1,
    })
}

/// The bytes of a key, the last at the last place, and how many there are; a long one has 32.
fn right_aligned(key: Key) -> ([u8; PLACES], usize) {
    let mut bytes = [0; PLACES];
    bytes[..8].copy_from_slice(&key[0].to_le_bytes());
    bytes[8..].copy_from_slice(&key[1].to_le_bytes());
    let length = usize::from(std::mem::take(&mut bytes[KEY_BYTES]));
    bytes.rotate_right(PLACES - length.min(PLACES));
    (bytes, length)
}

#[cfg(target_arch = "x86_64")]
mod avx2;

#[cfg(target_arch = "x86_64")]
mod avx512 {
    use std::arch::x86_64::*;

    use super::super::packing::avx512::{Eight, LANES, load_four};
    use super::*;

    /// The numbers of four fields, each four times; which of their bytes have no place, and which are those of no text.
    struct Four {
        numbers: __m512i,
        wrong: u64,
    }

    impl Packed {
        /// The numbers of fields, at most the greatest, and a bit for each that has none; bits behind them mean nothing. `None`
        /// where a field ends so near the start of the text that it cannot be read.
        ///
        /// # Safety
        /// The instructions are there. Fields of records are in the text.
        #[inline]
        #[target_feature(enable = "avx512f,avx512bw,avx512vl,avx512dq,avx2,bmi1,bmi2,popcnt,lzcnt")]
        pub(in crate::lexicon) unsafe fn number(
            &mut self,
            numbers: &Numbers,
            fields: Fields<'_>,
        ) -> Option<u64> {
            let mut missing = 0;
            match fields {
                Fields::Made(keys) => {
                    let (whole, rest) = keys.as_chunks::<LANES>();
                    let mut last = [[0; 2]; LANES];
                    last[..rest.len()].copy_from_slice(rest);
                    let last = (!rest.is_empty()).then_some(&last);
                    let (to, _) = self.numbers.as_chunks_mut::<LANES>();
                    for (i, (keys, to)) in whole.iter().chain(last).zip(to).enumerate() {
                        // SAFETY: the loads are of the sixteen words.
                        let (low, high) = unsafe {
                            let keys: *const __m512i = keys.as_ptr().cast();
                            (_mm512_loadu_si512(keys), _mm512_loadu_si512(keys.add(1)))
                        };
                        let wrong = numbers.eight(made(low), made(high), to);
                        missing |= u64::from(wrong) << (i * LANES);
                    }
                }
                Fields::OfRecords { rows, field, first, count } => {
                    // Fields of later records end behind the first.
                    if rows.span(first, field).1 < PLACES {
                        return None;
                    }
                    let (to, _) = self.numbers.as_chunks_mut::<LANES>();
                    for (i, to) in to.iter_mut().enumerate().take(count.div_ceil(LANES)) {
                        let eight = Eight::new(rows, field, first, count, i);
                        // SAFETY: the text is as the caller says, and 16 bytes of it are before each end.
                        let [low, high] = unsafe { read(rows.text, &eight) };
                        missing |= u64::from(numbers.eight(low, high, to)) << (i * LANES);
                    }
                }
            }
            Some(missing)
        }
    }

    impl Numbers {
        /// Numbers eight fields, of which there are the characters, right aligned, and the length in each byte.
        #[inline]
        #[target_feature(enable = "avx512f,avx512bw,avx512vl,avx512dq,bmi1,bmi2")]
        fn eight(&self, low: [__m512i; 2], high: [__m512i; 2], to: &mut [u32; LANES]) -> u8 {
            let (low, high) = (self.four(low), self.four(high));
            let first_of_each =
                _mm512_setr_epi32(0, 4, 8, 12, 16, 20, 24, 28, 0, 0, 0, 0, 0, 0, 0, 0);
            let all = _mm512_permutex2var_epi32(low.numbers, first_of_each, high.numbers);
            let before = _mm256_set1_epi32(self.before.cast_signed());
            // What has no number must not lead out of the table.
            let all = _mm256_min_epu32(
                _mm256_sub_epi32(_mm512_castsi512_si256(all), before),
                _mm256_set1_epi32(self.empty.cast_signed() + 1),
            );
            // SAFETY: there are eight numbers.
            unsafe { _mm256_storeu_si256(to.as_mut_ptr().cast(), all) };
            match low.wrong | high.wrong {
                0 => 0,
                _ => lanes(low.wrong) | lanes(high.wrong) << 4,
            }
        }

        #[inline]
        #[target_feature(enable = "avx512f,avx512bw,avx512vl,avx512dq")]
        fn four(&self, [characters, lengths]: [__m512i; 2]) -> Four {
            let each = |places: *const __m128i| {
                // SAFETY: there are sixteen bytes.
                _mm512_broadcast_i32x4(unsafe { _mm_loadu_si128(places) })
            };
            // A byte is the text's if no more than its length are behind it.
            let behind = _mm512_broadcast_i32x4(_mm_setr_epi8(
                15, 14, 13, 12, 11, 10, 9, 8, 7, 6, 5, 4, 3, 2, 1, 0,
            ));
            let reached = _mm512_cmpgt_epu8_mask(lengths, behind);
            let digits = _mm512_sub_epi8(characters, each(self.least.as_ptr().cast()));
            let beyond =
                _mm512_mask_cmpgt_epu8_mask(reached, digits, each(self.range.as_ptr().cast()));
            let least = _mm512_set1_epi8(self.length_min.cast_signed());
            let longer = self.length_max.wrapping_sub(self.length_min);
            let longer = _mm512_set1_epi8(longer.cast_signed());
            let other = _mm512_cmpgt_epu8_mask(_mm512_sub_epi8(lengths, least), longer);
            let digits =
                _mm512_maskz_add_epi8(reached, digits, each(self.optional.as_ptr().cast()));
            let pairs = _mm512_maddubs_epi16(digits, each(self.of_places.as_ptr().cast()));
            let fours = _mm512_madd_epi16(pairs, each(self.of_pairs.as_ptr().cast()));
            let parts = _mm512_mullo_epi32(fours, each(self.of_fours.as_ptr().cast()));
            let halves = _mm512_add_epi32(parts, _mm512_shuffle_epi32::<0x4e>(parts));
            let sums = _mm512_add_epi32(halves, _mm512_shuffle_epi32::<0xb1>(halves));
            let is_empty = _mm512_testn_epi32_mask(lengths, lengths);
            let empty = _mm512_set1_epi32(self.before.wrapping_add(self.empty).cast_signed());
            let numbers = _mm512_mask_mov_epi32(sums, is_empty, empty);
            Four { numbers, wrong: beyond | other & _mm512_test_epi8_mask(lengths, lengths) }
        }
    }

    /// Characters and lengths of four keys.
    #[inline]
    #[target_feature(enable = "avx512f,avx512bw")]
    fn made(keys: __m512i) -> [__m512i; 2] {
        let lengths = _mm512_shuffle_epi8(keys, _mm512_set1_epi8(KEY_BYTES as i8));
        let ahead = _mm512_broadcast_i32x4(_mm_setr_epi8(
            -16, -15, -14, -13, -12, -11, -10, -9, -8, -7, -6, -5, -4, -3, -2, -1,
        ));
        // What is before the first character is negative, and becomes nothing.
        [_mm512_shuffle_epi8(keys, _mm512_add_epi8(lengths, ahead)), lengths]
    }

    /// The last sixteen characters of eight fields, and the lengths.
    ///
    /// # Safety
    /// The fields end in the text, 16 bytes after its start.
    #[inline]
    #[target_feature(enable = "avx512f,avx512bw,avx512vl,avx512dq")]
    unsafe fn read(text: &[u8], eight: &Eight<'_>) -> [[__m512i; 2]; 2] {
        // SAFETY: as the caller says.
        let (low, high) = unsafe {
            let at = |lane: usize| eight.end(lane) - PLACES;
            (load_four(text, at), load_four(text, |lane| at(lane + 4)))
        };
        let lengths = _mm512_mullo_epi32(eight.lengths(), _mm512_set1_epi32(0x0101_0101));
        let of_low = _mm512_setr_epi32(0, 0, 0, 0, 2, 2, 2, 2, 4, 4, 4, 4, 6, 6, 6, 6);
        let of_high = _mm512_setr_epi32(8, 8, 8, 8, 10, 10, 10, 10, 12, 12, 12, 12, 14, 14, 14, 14);
        [
            [low, _mm512_permutexvar_epi32(of_low, lengths)],
            [high, _mm512_permutexvar_epi32(of_high, lengths)],
        ]
    }

    /// A bit for each lane of sixteen bytes that has one.
    #[inline]
    #[target_feature(enable = "bmi2")]
    fn lanes(bytes: u64) -> u8 {
        let any = |lane: u32| u8::from(bytes >> (16 * lane) & 0xffff != 0) << lane;
        any(0) | any(1) | any(2) | any(3)
    }
}
