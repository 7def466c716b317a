//! The arithmetic: a field in each lane of a vector.

use std::arch::x86_64::*;

use super::floats::floats;
use super::moments::moments;
use super::{Doubtful, EightFields, Form, LANES};
use crate::parse_value::swar::POW10;

/// Bytes before the end of a field, or from its start on, that are loaded.
const LOADED: u32 = 32;
/// What a minus and a point are once '0' is taken off by exclusive or.
const MINUS: i64 = (b'-' ^ b'0') as i64;
pub(super) const POINT: i8 = (b'.' ^ b'0') as i8;

/// The characters of eight fields, right aligned, '0' taken off; zeros in front of them.
#[derive(Clone, Copy)]
pub(super) struct Tails {
    /// The characters before the last sixteen.
    pub(super) first: __m512i,
    /// The eight before the last eight.
    pub(super) low: __m512i,
    pub(super) high: __m512i,
    pub(super) lengths: __m512i,
}

#[target_feature(enable = "avx512f,avx512bw,avx512vl,avx512dq,avx512cd,lzcnt,bmi1,bmi2")]
pub(super) fn read(
    fields: EightFields,
    chunk: &[u8],
    starts: &[u32],
    ends: &[u32],
    values: &mut Vec<i64>,
    missed: &mut Vec<u32>,
) {
    let (start_groups, start_rest) = starts.as_chunks::<LANES>();
    let (end_groups, _) = ends.as_chunks::<LANES>();
    values.reserve(starts.len());
    for (group, (starts, ends)) in start_groups.iter().zip(end_groups).enumerate() {
        let mut read = [0; LANES];
        let mut left = 0xff;
        if let Some((found, is_read)) = read_group(fields, chunk, starts, ends) {
            // SAFETY: the array has eight words.
            unsafe { _mm512_storeu_si512(read.as_mut_ptr().cast(), found) };
            left = !is_read;
        }
        values.extend_from_slice(&read);
        while left != 0 {
            missed.push((group * LANES) as u32 + left.trailing_zeros());
            left &= left - 1;
        }
    }
    let rest = starts.len() - start_rest.len();
    missed.extend(rest as u32..starts.len() as u32);
    values.resize(values.len() + start_rest.len(), 0);
}

/// Values of eight fields, and which of them were read; `None` where the chunk ends too near to them.
#[inline]
#[target_feature(enable = "avx512f,avx512bw,avx512vl,avx512dq,avx512cd")]
fn read_group(
    fields: EightFields,
    chunk: &[u8],
    starts: &[u32; LANES],
    ends: &[u32; LANES],
) -> Option<(__m512i, __mmask8)> {
    let least = |places: &[u32; LANES]| places.iter().fold(u32::MAX, |a, b| a.min(*b));
    let most = |places: &[u32; LANES]| places.iter().fold(0, |a, b| a.max(*b)) as usize;
    if let Form::Moment(form) = fields.form {
        if most(starts) + LOADED as usize > chunk.len() {
            return None;
        }
        // SAFETY: so many bytes are behind each start.
        let words = unsafe { load(chunk, starts.map(|start| start as usize)) };
        return Some(moments(words, lengths_of(starts, ends), form));
    }
    if least(ends) < LOADED || most(ends) > chunk.len() {
        return None;
    }
    // SAFETY: so many bytes are before each end.
    let tails = unsafe { tails(chunk, starts, ends) };
    Some(match fields.form {
        Form::Integer { min, max } => integers(tails, min, max, fields.doubtful),
        Form::Decimal { precision, scale } => decimals(tails, precision, scale, fields.doubtful),
        Form::Float(form) => floats(tails, form, fields.doubtful),
        Form::Moment(_) => return None,
    })
}

/// 32 bytes of each place: four words, the first bytes of all places in the first.
///
/// # Safety
/// The chunk has 32 bytes from each place on.
#[inline]
#[target_feature(enable = "avx512f,avx512bw,avx512vl,avx512dq,avx512cd")]
unsafe fn load(chunk: &[u8], places: [usize; LANES]) -> [__m512i; 4] {
    // A gather takes longer than to load each field and to change rows and columns.
    let pair = |a: usize, b: usize| {
        let at = |i: usize| chunk.as_ptr().wrapping_add(places[i]).cast();
        // SAFETY: as the caller says.
        let (a, b) = unsafe { (_mm256_loadu_si256(at(a)), _mm256_loadu_si256(at(b))) };
        _mm512_inserti64x4::<1>(_mm512_castsi256_si512(a), b)
    };
    let (a, b, c, d) = (pair(0, 2), pair(1, 3), pair(4, 6), pair(5, 7));
    let (left, right) = (_mm512_unpacklo_epi64(a, b), _mm512_unpacklo_epi64(c, d));
    let (left_odd, right_odd) = (_mm512_unpackhi_epi64(a, b), _mm512_unpackhi_epi64(c, d));
    [
        _mm512_shuffle_i64x2::<0x88>(left, right),
        _mm512_shuffle_i64x2::<0x88>(left_odd, right_odd),
        _mm512_shuffle_i64x2::<0xdd>(left, right),
        _mm512_shuffle_i64x2::<0xdd>(left_odd, right_odd),
    ]
}

/// Bytes of each field.
#[inline]
#[target_feature(enable = "avx512f,avx512bw,avx512vl,avx512dq,avx512cd")]
fn lengths_of(starts: &[u32; LANES], ends: &[u32; LANES]) -> __m512i {
    // SAFETY: the arrays have eight words of 32 bits.
    let (starts, ends) = unsafe {
        (_mm256_loadu_si256(starts.as_ptr().cast()), _mm256_loadu_si256(ends.as_ptr().cast()))
    };
    _mm512_cvtepu32_epi64(_mm256_sub_epi32(ends, starts))
}

/// The last 24 characters before each end.
///
/// # Safety
/// Each end is in the chunk, or the chunk's, and at least [`LOADED`].
#[inline]
#[target_feature(enable = "avx512f,avx512bw,avx512vl,avx512dq,avx512cd")]
unsafe fn tails(chunk: &[u8], starts: &[u32; LANES], ends: &[u32; LANES]) -> Tails {
    // SAFETY: as the caller says.
    let [_, first, low, high] = unsafe { load(chunk, ends.map(|end| (end - LOADED) as usize)) };
    let zeros = _mm512_set1_epi8(b'0' as i8);
    let lengths = lengths_of(starts, ends);
    let tails = Tails {
        first: _mm512_xor_si512(first, zeros),
        low: _mm512_xor_si512(low, zeros),
        high: _mm512_xor_si512(high, zeros),
        lengths,
    };
    cut(tails, lengths)
}

/// The last `lengths` characters.
#[inline]
#[target_feature(enable = "avx512f,avx512bw,avx512vl,avx512dq,avx512cd")]
fn cut(tails: Tails, lengths: __m512i) -> Tails {
    // Of each word the characters that are behind the first `n` are kept: a shift by 64 or more leaves none.
    let bits = _mm512_slli_epi64::<3>(lengths);
    let keep = |word: __m512i, behind: i64| {
        let own = _mm512_max_epi64(
            _mm512_sub_epi64(bits, _mm512_set1_epi64(behind)),
            _mm512_setzero_si512(),
        );
        let dropped = _mm512_srlv_epi64(_mm512_set1_epi64(-1), own);
        _mm512_andnot_si512(dropped, word)
    };
    Tails {
        first: keep(tails.first, 128),
        low: keep(tails.low, 64),
        high: keep(tails.high, 0),
        lengths,
    }
}

/// The first character of each in the lowest byte; what is above it are others.
#[inline]
#[target_feature(enable = "avx512f,avx512bw,avx512vl,avx512dq,avx512cd")]
fn first_characters(tails: Tails) -> __m512i {
    let bits = _mm512_slli_epi64::<3>(tails.lengths);
    // Shifts by less than 0 are by more than 64, and leave nothing.
    let shifted = |word: __m512i, size: i64| {
        _mm512_srlv_epi64(word, _mm512_sub_epi64(_mm512_set1_epi64(size), bits))
    };
    let (high, low) = (shifted(tails.high, 64), shifted(tails.low, 128));
    _mm512_or_si512(_mm512_or_si512(high, low), shifted(tails.first, 192))
}

/// The tails without the minus, and which had one.
#[inline]
#[target_feature(enable = "avx512f,avx512bw,avx512vl,avx512dq,avx512cd")]
pub(super) fn without_minus(tails: Tails) -> (Tails, __mmask8) {
    let byte = _mm512_and_si512(first_characters(tails), _mm512_set1_epi64(0xff));
    let minus = _mm512_cmpeq_epi64_mask(byte, _mm512_set1_epi64(MINUS));
    if minus == 0 {
        return (tails, 0);
    }
    let one = _mm512_set1_epi64(1);
    let lengths = _mm512_mask_sub_epi64(tails.lengths, minus, tails.lengths, one);
    (cut(tails, lengths), minus)
}

/// Which lanes hold digits only.
#[inline]
#[target_feature(enable = "avx512f,avx512bw,avx512vl,avx512dq,avx512cd")]
pub(super) fn all_digits(word: __m512i) -> __mmask8 {
    let over = _mm512_or_si512(_mm512_add_epi64(word, _mm512_set1_epi8(0x76)), word);
    _mm512_testn_epi64_mask(over, _mm512_set1_epi8(i8::MIN))
}

/// The number of eight digits in each lane.
#[inline]
#[target_feature(enable = "avx512f,avx512bw,avx512vl,avx512dq,avx512cd")]
pub(super) fn eight_digits(word: __m512i) -> __m512i {
    let twos = _mm512_maddubs_epi16(word, _mm512_set1_epi16(0x010a));
    let fours = _mm512_madd_epi16(twos, _mm512_set1_epi32(0x0001_0064));
    let left = _mm512_mul_epu32(fours, _mm512_set1_epi64(10_000));
    _mm512_add_epi64(left, _mm512_srli_epi64::<32>(fours))
}

/// The number of sixteen digits in each lane.
#[inline]
#[target_feature(enable = "avx512f,avx512bw,avx512vl,avx512dq,avx512cd")]
pub(super) fn sixteen_digits(low: __m512i, high: __m512i) -> __m512i {
    let left = _mm512_mul_epu32(eight_digits(low), _mm512_set1_epi64(POW10[8] as i64));
    _mm512_add_epi64(left, eight_digits(high))
}

#[inline]
#[target_feature(enable = "avx512f,avx512bw,avx512vl,avx512dq,avx512cd")]
fn negated(values: __m512i, minus: __mmask8) -> __m512i {
    _mm512_mask_sub_epi64(values, minus, _mm512_setzero_si512(), values)
}

/// Which lanes start with a zero that another digit follows; `digits` are those before the point.
#[inline]
#[target_feature(enable = "avx512f,avx512bw,avx512vl,avx512dq,avx512cd")]
pub(super) fn zeros_lead(tails: Tails, digits: __m512i) -> __mmask8 {
    let zero = _mm512_testn_epi64_mask(first_characters(tails), _mm512_set1_epi64(0xff));
    zero & _mm512_cmpgt_epi64_mask(digits, _mm512_set1_epi64(1))
}

#[inline]
#[target_feature(enable = "avx512f,avx512bw,avx512vl,avx512dq,avx512cd")]
fn integers(tails: Tails, min: i64, max: i64, doubtful: Doubtful) -> (__m512i, __mmask8) {
    let (tails, minus) = without_minus(tails);
    let Tails { first, low, high, lengths } = tails;
    // Nineteen digits at most, so that nothing overflows 64 bits.
    let mut read = all_digits(low)
        & all_digits(high)
        & _mm512_cmpgt_epi64_mask(lengths, _mm512_setzero_si512())
        & _mm512_cmple_epi64_mask(lengths, _mm512_set1_epi64(19));
    let mut values = sixteen_digits(low, high);
    if _mm512_cmpgt_epi64_mask(lengths, _mm512_set1_epi64(16)) != 0 {
        read &= all_digits(first);
        let left = _mm512_set1_epi64(POW10[16] as i64);
        values = _mm512_add_epi64(values, _mm512_mullo_epi64(eight_digits(first), left));
        read &= _mm512_cmpge_epi64_mask(values, _mm512_setzero_si512());
    }
    let values = negated(values, minus);
    read &= _mm512_cmpge_epi64_mask(values, _mm512_set1_epi64(min))
        & _mm512_cmple_epi64_mask(values, _mm512_set1_epi64(max));
    if doubtful == Doubtful::LeftOut {
        read &= !zeros_lead(tails, lengths);
    }
    (values, read)
}

#[inline]
#[target_feature(enable = "avx512f,avx512bw,avx512vl,avx512dq,avx512cd")]
fn decimals(tails: Tails, precision: u8, scale: u8, doubtful: Doubtful) -> (__m512i, __mmask8) {
    let (tails, minus) = without_minus(tails);
    let Tails { low, high, lengths, .. } = tails;
    let (zero, one) = (_mm512_setzero_si512(), _mm512_set1_epi64(1));
    let mut read = _mm512_cmpgt_epi64_mask(lengths, zero)
        & _mm512_cmple_epi64_mask(lengths, _mm512_set1_epi64(16));
    // The lowest bit of the first point among the last eight characters; a second one is no digit.
    let points = _mm512_movm_epi8(_mm512_cmpeq_epi8_mask(high, _mm512_set1_epi8(POINT)));
    let has_point = _mm512_test_epi64_mask(points, points);
    let point = _mm512_and_si512(points, _mm512_sub_epi64(zero, points));
    let below = _mm512_maskz_sub_epi64(has_point, point, one);
    // What is at the point and below it moves up by a character, over the point.
    let at_or_below = _mm512_or_si512(_mm512_slli_epi64::<8>(below), _mm512_set1_epi64(0xff));
    let moved = _mm512_or_si512(
        _mm512_slli_epi64::<8>(_mm512_and_si512(high, below)),
        _mm512_srli_epi64::<56>(low),
    );
    let joined = _mm512_or_si512(_mm512_andnot_si512(at_or_below, high), moved);
    let high = _mm512_mask_mov_epi64(high, has_point, joined);
    let low = _mm512_mask_slli_epi64::<8>(low, has_point, low);
    read &= all_digits(low) & all_digits(high);
    // Characters above the point.
    let above = _mm512_srli_epi64::<3>(_mm512_lzcnt_epi64(point));
    let fraction = _mm512_maskz_mov_epi64(has_point, above);
    let zeros = _mm512_sub_epi64(_mm512_set1_epi64(i64::from(scale)), fraction);
    read &= _mm512_cmpge_epi64_mask(zeros, zero)
        & _mm512_cmplt_epi64_mask(zeros, _mm512_set1_epi64(16));
    let digits = sixteen_digits(low, high);
    // A point without digits is none.
    read &= !has_point | _mm512_cmpgt_epi64_mask(lengths, one);
    let room = _mm512_sub_epi64(_mm512_set1_epi64(i64::from(precision)), zeros);
    // Sixteen digits are always less than ten to the power of sixteen.
    read &= _mm512_cmplt_epi64_mask(digits, power_of_ten(room))
        | _mm512_cmpge_epi64_mask(room, _mm512_set1_epi64(16));
    let values = match _mm512_test_epi64_mask(zeros, zeros) {
        0 => digits,
        _ => _mm512_mullo_epi64(digits, power_of_ten(zeros)),
    };
    if doubtful == Doubtful::LeftOut {
        let behind = _mm512_maskz_add_epi64(has_point, fraction, one);
        read &= !zeros_lead(tails, _mm512_sub_epi64(lengths, behind));
    }
    (negated(values, minus), read)
}

/// Powers of ten, of exponents below sixteen.
#[inline]
#[target_feature(enable = "avx512f,avx512bw,avx512vl,avx512dq,avx512cd")]
fn power_of_ten(exponents: __m512i) -> __m512i {
    // SAFETY: the table has twenty words.
    let (low, high) = unsafe {
        let table = POW10.as_ptr();
        (_mm512_loadu_si512(table.cast()), _mm512_loadu_si512(table.add(8).cast()))
    };
    _mm512_permutex2var_epi64(low, exponents, high)
}
