//! Floats: digits with a point among them, as the nearest float.
//!
//! ```text
//!   123.45678901234567  ->  n = 12345678901234567 = high + low, p = 10^14      sums of doubles, exact
//!                       ->  n / p = quotient + rest, rest = (high - quotient * p + low) / p
//! ```
//!
//! Powers of ten are exact doubles up to 10^22, and a fused multiply leaves `high - quotient * p` without an error, so that
//! `rest` is off by less than 2^-51 of itself. If `quotient + rest` rounds to the same double when `rest` is larger and when
//! it is smaller by 2^-48, that double is the nearest one, as rounding keeps order. Otherwise, once in some 2^40 random
//! numbers and where two doubles are equally near, the field is left to the parser of one field.
//!
//! Source: Dekker, "A floating-point technique for extending the available precision", Numerische Mathematik 18, 1971.

use std::arch::x86_64::*;

use super::avx512::{
    POINT, Tails, all_digits, eight_digits, sixteen_digits, without_minus, zeros_lead,
};
use super::{Doubtful, FloatForm};
use crate::parse_value::swar::POW10;

/// Most digits behind a point: larger powers of ten are no doubles.
const FRACTION_MAX: i64 = 22;
/// Digits before the last sixteen are less than this, so that nothing overflows 64 bits.
const FIRST_END: i64 = 1000;
/// No program means a DOUBLE by a number that is not below this, of more than 17 digits.
const PRINTED_END: i64 = 100_000_000_000_000_000;

/// Powers of ten that are exact, and one to fill a vector.
static POWERS: [f64; 24] = [
    1e0, 1e1, 1e2, 1e3, 1e4, 1e5, 1e6, 1e7, 1e8, 1e9, 1e10, 1e11, 1e12, 1e13, 1e14, 1e15, 1e16,
    1e17, 1e18, 1e19, 1e20, 1e21, 1e22, 0.0,
];

/// Ordinals of floats, and which of them were read. Where codes are left out, so are numbers that their DOUBLE is not
/// printed as.
#[inline]
#[target_feature(enable = "avx512f,avx512bw,avx512vl,avx512dq,avx512cd")]
pub(super) fn floats(tails: Tails, form: FloatForm, doubtful: Doubtful) -> (__m512i, __mmask8) {
    let (tails, minus) = without_minus(tails);
    let (digits, has_point, fraction) = without_point(tails);
    let points = _mm512_maskz_set1_epi64(has_point, 1);
    let mut read = all_digits(digits.low)
        & all_digits(digits.high)
        & _mm512_cmpgt_epi64_mask(tails.lengths, points)
        & _mm512_cmple_epi64_mask(tails.lengths, _mm512_set1_epi64(24))
        & _mm512_cmple_epi64_mask(fraction, _mm512_set1_epi64(FRACTION_MAX));
    let mut number = sixteen_digits(digits.low, digits.high);
    if _mm512_test_epi64_mask(digits.first, digits.first) != 0 {
        let first = eight_digits(digits.first);
        read &=
            all_digits(digits.first) & _mm512_cmplt_epu64_mask(first, _mm512_set1_epi64(FIRST_END));
        let first = _mm512_mullo_epi64(first, _mm512_set1_epi64(POW10[16] as i64));
        number = _mm512_add_epi64(number, first);
    }

    let high = _mm512_cvtepu64_pd(number);
    let low = _mm512_cvtepi64_pd(_mm512_sub_epi64(number, _mm512_cvtpd_epu64(high)));
    let power = power_of_ten(fraction);
    let quotient = _mm512_div_pd(high, power);
    let mut double = quotient;
    let wide = _mm512_cmp_pd_mask::<_CMP_NEQ_OQ>(low, _mm512_setzero_pd());
    if wide != 0 {
        let left = _mm512_add_pd(_mm512_fnmadd_pd(quotient, power, high), low);
        let rest = _mm512_div_pd(left, power);
        let nearest = |share: f64| {
            let share = _mm512_set1_pd(share);
            _mm512_add_pd(quotient, _mm512_mul_pd(rest, share))
        };
        let doubt = 1.0 / (1u64 << 48) as f64;
        let (more, less) = (nearest(1.0 + doubt), nearest(1.0 - doubt));
        read &= !wide | _mm512_cmp_pd_mask::<_CMP_EQ_OQ>(more, less);
        double = _mm512_mask_mov_pd(double, wide, more);
    }

    if doubtful == Doubtful::LeftOut {
        let behind = _mm512_add_epi64(fraction, points);
        read &= !zeros_lead(tails, _mm512_sub_epi64(tails.lengths, behind));
        if form == FloatForm::Double {
            let back = _mm512_mul_pd(double, power);
            let below = _mm512_fmsub_pd(double, power, back);
            let off = _mm512_add_pd(_mm512_sub_pd(back, high), _mm512_sub_pd(below, low));
            let near = _mm512_set1_pd(0.49);
            read &= _mm512_cmp_pd_mask::<_CMP_LT_OQ>(_mm512_abs_pd(off), near)
                & _mm512_cmplt_epu64_mask(number, _mm512_set1_epi64(PRINTED_END));
        }
    }
    let ordinals = match form {
        FloatForm::Double => _mm512_castpd_si512(double),
        FloatForm::Real => {
            // A double in the middle between two REALs may stand for a number on either side of it.
            let cut =
                _mm512_and_si512(_mm512_castpd_si512(double), _mm512_set1_epi64((1 << 29) - 1));
            read &= _mm512_cmpneq_epi64_mask(cut, _mm512_set1_epi64(1 << 28));
            _mm512_cvtepu32_epi64(_mm256_castps_si256(_mm512_cvtpd_ps(double)))
        }
    };
    // The ordinal of a negative float is the complement of that of the positive one.
    let complement = _mm512_xor_si512(ordinals, _mm512_set1_epi64(-1));
    (_mm512_mask_mov_epi64(ordinals, minus, complement), read)
}

/// The characters without the last point, which lanes had one, and the characters behind it.
#[inline]
#[target_feature(enable = "avx512f,avx512bw,avx512vl,avx512dq,avx512cd")]
fn without_point(tails: Tails) -> (Tails, __mmask8, __m512i) {
    let Tails { first, low, high, lengths } = tails;
    let (in_high, of_high) = last_point(high);
    let (in_low, of_low) = last_point(low);
    let (in_first, of_first) = last_point(first);
    let in_low = in_low & !in_high;
    let in_first = in_first & !in_high & !in_low;
    let behind = |point: __m512i, behind: i64| {
        let above = _mm512_srli_epi64::<3>(_mm512_lzcnt_epi64(point));
        _mm512_add_epi64(above, _mm512_set1_epi64(behind))
    };
    let fraction = _mm512_maskz_mov_epi64(in_high, behind(of_high, 0));
    let fraction = _mm512_mask_mov_epi64(fraction, in_low, behind(of_low, 8));
    let fraction = _mm512_mask_mov_epi64(fraction, in_first, behind(of_first, 16));
    // What is before the point moves up by a character, over it.
    let moved = |word: __m512i, before: __m512i| {
        _mm512_or_si512(_mm512_slli_epi64::<8>(word), _mm512_srli_epi64::<56>(before))
    };
    let closed = |word: __m512i, point: __m512i, before: __m512i| {
        let below = _mm512_sub_epi64(point, _mm512_set1_epi64(1));
        let at_or_below = _mm512_or_si512(_mm512_slli_epi64::<8>(below), _mm512_set1_epi64(0xff));
        let below = moved(_mm512_and_si512(word, below), before);
        _mm512_or_si512(_mm512_andnot_si512(at_or_below, word), below)
    };
    let zero = _mm512_setzero_si512();
    let before_high = _mm512_mask_mov_epi64(low, in_low, closed(low, of_low, first));
    let before_low = _mm512_mask_mov_epi64(first, in_first, closed(first, of_first, zero));
    let digits = Tails {
        first: _mm512_mask_mov_epi64(before_low, in_high | in_low, moved(first, zero)),
        low: _mm512_mask_mov_epi64(before_high, in_high, moved(low, first)),
        high: _mm512_mask_mov_epi64(high, in_high, closed(high, of_high, low)),
        lengths,
    };
    (digits, in_high | in_low | in_first, fraction)
}

/// Which lanes have a point, and the lowest bit of its character.
#[inline]
#[target_feature(enable = "avx512f,avx512bw,avx512vl,avx512dq,avx512cd")]
fn last_point(word: __m512i) -> (__mmask8, __m512i) {
    let points = _mm512_movm_epi8(_mm512_cmpeq_epi8_mask(word, _mm512_set1_epi8(POINT)));
    let lowest = _mm512_and_si512(points, _mm512_sub_epi64(_mm512_setzero_si512(), points));
    (_mm512_test_epi64_mask(points, points), lowest)
}

/// Powers of ten, of exponents up to [`FRACTION_MAX`].
#[inline]
#[target_feature(enable = "avx512f,avx512bw,avx512vl,avx512dq,avx512cd")]
fn power_of_ten(exponents: __m512i) -> __m512d {
    // SAFETY: the table has 24 doubles.
    let (low, middle, high) = unsafe {
        let table = POWERS.as_ptr();
        (_mm512_loadu_pd(table), _mm512_loadu_pd(table.add(8)), _mm512_loadu_pd(table.add(16)))
    };
    let few = _mm512_permutex2var_pd(low, exponents, middle);
    let many = _mm512_cmpge_epi64_mask(exponents, _mm512_set1_epi64(16));
    _mm512_mask_permutexvar_pd(few, many, exponents, high)
}
