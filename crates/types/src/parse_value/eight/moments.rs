//! Days and instants of the forms that most files have; others are left to the parser of one field.
//!
//! ```text
//!   2026-11-23 20:56:07.25       xor "0000-00-00 00:00:00.000000", and what is behind the end to zeros
//!   -> digits where digits stand, zeros where not
//!   -> year month day, hour minute second, microseconds -> tables of days before a month and in a month
//! ```

use std::arch::x86_64::*;

use super::MomentForm;
use super::avx512::{all_digits, eight_digits};
use crate::calendar::DAY_MICROS;

/// Characters of a day, of an instant with seconds, of one with microseconds.
const DAY_LENGTH: i64 = 10;
const SECOND_LENGTH: i64 = 19;
const MICRO_LENGTH: i64 = 26;

/// Days from 0000-03-01 to 1970-01-01; years start in March so that the leap day comes last.
const EPOCH_FROM_MARCH: i64 = 719_468;
/// Days from the first of March to the first of a month, less the 1 that days are counted from.
static DAYS_BEFORE: [i32; 16] =
    [0, 305, 336, -1, 30, 60, 91, 121, 152, 183, 213, 244, 274, 0, 0, 0];
/// Days of a month, 0 for one that does not exist.
static DAYS_OF: [i32; 16] = [0, 31, 28, 31, 30, 31, 30, 31, 31, 30, 31, 30, 31, 0, 0, 0];

/// Fields of 32 characters, those of the words behind each other, and how many are the field's: ordinals, and which were read.
#[inline]
#[target_feature(enable = "avx512f,avx512bw,avx512vl,avx512dq,avx512cd")]
pub(super) fn moments(
    words: [__m512i; 4],
    lengths: __m512i,
    form: MomentForm,
) -> (__m512i, __mmask8) {
    let word = |text: &[u8; 8]| _mm512_set1_epi64(i64::from_le_bytes(*text));
    let head = _mm512_xor_si512(words[0], word(b"0000-00-"));
    let middle = _mm512_xor_si512(words[1], word(b"00 00:00"));
    let is_length = |length: i64| _mm512_cmpeq_epi64_mask(lengths, _mm512_set1_epi64(length));
    let separators = |word: __m512i, at: i64| _mm512_testn_epi64_mask(word, _mm512_set1_epi64(at));
    // "-00-" and the like are behind the digits of the year.
    let mut read = all_digits(head) & separators(head, 0xff00_00ff_0000_0000_u64 as i64);
    let mut clocks = None;
    match form {
        MomentForm::Day => read &= is_length(DAY_LENGTH),
        MomentForm::Instant => {
            let is_long = _mm512_cmpgt_epi64_mask(lengths, _mm512_set1_epi64(SECOND_LENGTH + 1))
                & _mm512_cmple_epi64_mask(lengths, _mm512_set1_epi64(MICRO_LENGTH));
            read &= is_length(DAY_LENGTH) | is_length(SECOND_LENGTH) | is_long;
            // A T in the place of the space.
            let t = _mm512_set1_epi64(i64::from(b' ' ^ b'T') << 16);
            let is_t =
                _mm512_cmpeq_epi64_mask(_mm512_and_si512(middle, _mm512_set1_epi64(0xff_0000)), t);
            let middle =
                first_characters(_mm512_mask_xor_epi64(middle, is_t, middle, t), lengths, 8);
            let late = _mm512_xor_si512(words[2], word(b":00.0000"));
            let late = first_characters(late, lengths, 16);
            let last = _mm512_xor_si512(words[3], word(b"00000000"));
            let last = first_characters(last, lengths, 24);
            read &= all_digits(middle)
                & all_digits(late)
                & all_digits(last)
                & separators(middle, 0x0000_00ff_0000_00ff_i64 << 16)
                & separators(late, 0xff00_00ff);
            clocks = Some((middle, late, last));
        }
    }

    // "YYYYMMDD"
    let bytes = |word: __m512i, mask: i64| _mm512_and_si512(word, _mm512_set1_epi64(mask));
    let day = bytes(head, 0xffff_ffff);
    let day = _mm512_or_si512(day, bytes(_mm512_srli_epi64::<8>(head), 0xffff_0000_0000));
    let day = _mm512_or_si512(day, _mm512_slli_epi64::<48>(middle));
    read &= all_digits(day);
    let pairs = _mm512_maddubs_epi16(day, _mm512_set1_epi16(0x010a));
    let pair = |pairs: __m512i, shift: u32| {
        let moved = _mm512_srlv_epi64(pairs, _mm512_set1_epi64(i64::from(shift)));
        _mm512_and_si512(moved, _mm512_set1_epi64(0xff))
    };
    let years = _mm512_madd_epi16(pairs, _mm512_set1_epi64(0x0001_0064));
    let years = _mm512_and_si512(years, _mm512_set1_epi64(0xffff_ffff));
    let (days, exist) = days(years, pair(pairs, 32), pair(pairs, 48));
    read &= exist;
    let Some((middle, late, last)) = clocks else {
        return (days, read);
    };

    // "00HHMMSS"
    let hours = bytes(_mm512_srli_epi64::<8>(middle), 0xffff_0000);
    let minutes = bytes(_mm512_srli_epi64::<16>(middle), 0xffff_0000_0000);
    let seconds = _mm512_slli_epi64::<48>(_mm512_srli_epi64::<8>(late));
    let clock = _mm512_or_si512(_mm512_or_si512(hours, minutes), seconds);
    let pairs = _mm512_maddubs_epi16(clock, _mm512_set1_epi16(0x010a));
    let limits = _mm512_set1_epi64(59 << 48 | 59 << 32 | 23 << 16 | 99);
    let over = _mm512_subs_epu16(pairs, limits);
    read &= _mm512_testn_epi64_mask(over, over);
    // Seconds of an hour, and of a day.
    let hour = _mm512_mul_epu32(pair(pairs, 16), _mm512_set1_epi64(3600));
    let minute = _mm512_mul_epu32(pair(pairs, 32), _mm512_set1_epi64(60));
    let seconds = _mm512_add_epi64(_mm512_add_epi64(hour, minute), pair(pairs, 48));
    // "00ffffff"
    let fraction = _mm512_or_si512(
        _mm512_slli_epi64::<16>(_mm512_srli_epi64::<32>(late)),
        _mm512_slli_epi64::<48>(last),
    );
    let micros = _mm512_mul_epu32(seconds, _mm512_set1_epi64(1_000_000));
    let micros = _mm512_add_epi64(micros, eight_digits(fraction));
    let midnights = _mm512_mullo_epi64(days, _mm512_set1_epi64(DAY_MICROS));
    (_mm512_add_epi64(midnights, micros), read)
}

/// The characters of a word that has `before` others before it, zeros behind the end of the field.
#[inline]
#[target_feature(enable = "avx512f,avx512bw,avx512vl,avx512dq,avx512cd")]
fn first_characters(word: __m512i, lengths: __m512i, before: i64) -> __m512i {
    let own = _mm512_sub_epi64(lengths, _mm512_set1_epi64(before));
    let own = _mm512_max_epi64(own, _mm512_setzero_si512());
    let dropped = _mm512_sllv_epi64(_mm512_set1_epi64(-1), _mm512_slli_epi64::<3>(own));
    _mm512_andnot_si512(dropped, word)
}

/// Days since 1970-01-01, and which of them there are; years have four digits, months and days two.
#[inline]
#[target_feature(enable = "avx512f,avx512bw,avx512vl,avx512dq,avx512cd")]
fn days(years: __m512i, months: __m512i, days: __m512i) -> (__m512i, __mmask8) {
    // SAFETY: each table has sixteen numbers.
    let (before, lengths) = unsafe {
        (
            _mm512_loadu_si512(DAYS_BEFORE.as_ptr().cast()),
            _mm512_loadu_si512(DAYS_OF.as_ptr().cast()),
        )
    };
    let one = _mm512_set1_epi64(1);
    let century_of = |years: __m512i| {
        // Right below 43,699.
        let product = _mm512_mul_epu32(years, _mm512_set1_epi64(5243));
        _mm512_srli_epi64::<19>(product)
    };
    let century = century_of(years);
    let is_century =
        _mm512_cmpeq_epi64_mask(years, _mm512_mul_epu32(century, _mm512_set1_epi64(100)));
    // Divisible by 100 and by 16 is divisible by 400.
    let leap = _mm512_testn_epi64_mask(years, _mm512_set1_epi64(3))
        & (!is_century | _mm512_testn_epi64_mask(years, _mm512_set1_epi64(15)));
    let february = _mm512_cmpeq_epi64_mask(months, _mm512_set1_epi64(2));
    // The upper half of a lane looks up month 0, which has nothing.
    let length = _mm512_permutexvar_epi32(months, lengths);
    let length = _mm512_mask_add_epi64(length, leap & february, length, one);
    let exist = _mm512_cmpge_epi64_mask(days, one)
        & _mm512_cmple_epi64_mask(days, length)
        & _mm512_cmplt_epi64_mask(months, _mm512_set1_epi64(13))
        & _mm512_cmpge_epi64_mask(years, one);

    let early = _mm512_cmplt_epi64_mask(months, _mm512_set1_epi64(3));
    let years = _mm512_mask_sub_epi64(years, early, years, one);
    let century = century_of(years);
    let of_years = _mm512_srli_epi64::<2>(_mm512_mul_epu32(years, _mm512_set1_epi64(1461)));
    let of_centuries = _mm512_sub_epi64(_mm512_srli_epi64::<2>(century), century);
    // Signed, as days before March are one less than none.
    let of_months = _mm512_permutexvar_epi32(months, before);
    let of_months = _mm512_srai_epi64::<32>(_mm512_slli_epi64::<32>(of_months));
    let sum = _mm512_add_epi64(_mm512_add_epi64(of_years, of_centuries), of_months);
    let sum = _mm512_add_epi64(sum, days);
    (_mm512_sub_epi64(sum, _mm512_set1_epi64(EPOCH_FROM_MARCH)), exist)
}
