//! Floats: digits with a point among them, as the nearest float.
//!
//! ```text
//!   123.45678901234567  ->  n = 12345678901234567 = high + low, p = 10^14      sums of doubles, exact
//!                       ->  n / p = quotient + rest, rest = (high - quotient * p + low) / p
//! ```
//!
//! Powers of ten are exact doubles up to 10^22, and a fused multiply leaves `high - quotient * p` without an error, so that
//! `rest` is off by less than 2^-50 of itself. If `quotient + rest` rounds to the same double when `rest` is larger and when
//! it is smaller by 2^-48, that double is the nearest one, as rounding keeps order. Otherwise, once in some 2^40 random
//! numbers and where two doubles are equally near, the field is left to the parser of one field.
//!
//! Source: Dekker, "A floating-point technique for extending the available precision", Numerische Mathematik 18, 1971.

use super::numbers::{before_point, behind_point, closed, last_point};
use super::{Doubtful, FIELDS, Group, above_nine, eight_digits, own_of_tail, yes_if};
use crate::parse_value::swar::{POW10, ZEROS};
use crate::{SimdLevel, simd_dispatch, simd_level};

/// Most digits behind a point: larger powers of ten are no doubles.
const FRACTION_MAX: u64 = 22;
/// Digits before the last sixteen are less than this, so that nothing overflows 63 bits.
const FIRST_END: u64 = 922;
/// No program means a DOUBLE by a number that is not below this, of more than 17 digits.
const PRINTED_END: u64 = 100_000_000_000_000_000;
/// Integers below this are doubles, and those that are multiples of 2048 and below 2^64.
const EXACT_END: u64 = 1 << 53;
const LOW_BITS: u64 = 2047;

/// Powers of ten that are exact.
static POWERS: [f64; 1 + FRACTION_MAX as usize] = [
    1e0, 1e1, 1e2, 1e3, 1e4, 1e5, 1e6, 1e7, 1e8, 1e9, 1e10, 1e11, 1e12, 1e13, 1e14, 1e15, 1e16,
    1e17, 1e18, 1e19, 1e20, 1e21, 1e22,
];

/// Whether this processor multiplies and adds at once.
pub(super) fn are_fast() -> bool {
    cfg!(target_arch = "aarch64") || simd_level() >= SimdLevel::Avx2
}

/// DOUBLEs, as their ordinals. Where doubtful numbers are left out, so are those that their DOUBLE is not printed as.
pub(super) fn doubles(group: &mut Group, doubtful: Doubtful) {
    let mut powers = [0.0; FIELDS];
    digits(group);
    powers_of(group, &mut powers);
    nearest(group, &powers, doubtful);
    for i in 0..FIELDS {
        group.values[i] ^= group.minus[i];
    }
}

/// REALs, as their ordinals.
pub(super) fn reals(group: &mut Group) {
    let mut powers = [0.0; FIELDS];
    digits(group);
    powers_of(group, &mut powers);
    nearest(group, &powers, Doubtful::Read);
    rounded(group);
    for i in 0..FIELDS {
        group.values[i] ^= group.minus[i];
    }
}

simd_dispatch! {
    /// The digits of each field as one number, and how many stand behind the point.
    fn digits(group: &mut Group) = digits_inner;
}

#[inline(always)]
fn digits_inner(group: &mut Group) {
    let [_, first, low, high] = &group.words;
    for i in 0..FIELDS {
        let length = group.lengths[i];
        let first = own_of_tail(first[i] ^ ZEROS, length, 16);
        let low = own_of_tail(low[i] ^ ZEROS, length, 8);
        let high = own_of_tail(high[i] ^ ZEROS, length, 0);
        // The last point of all; one before it is left, and is no digit.
        let in_high = last_point(high);
        let in_low = if in_high == 0 { last_point(low) } else { 0 };
        let in_either = in_high | in_low;
        let in_first = if in_either == 0 { last_point(first) } else { 0 };
        let before_low = closed(before_point(first, in_either, 0), in_first, 0);
        let before_high = closed(before_point(low, in_high, first), in_low, first);
        let high = closed(high, in_high, low);
        let behind = behind_point(in_high)
            + behind_point(in_low)
            + behind_point(in_first)
            + if in_low != 0 { 8 } else { 0 }
            + if in_first != 0 { 16 } else { 0 };
        let first_digits = eight_digits(before_low);
        let last_digits = eight_digits(before_high) * POW10[8] + eight_digits(high);
        let bad = above_nine(before_low) | above_nine(before_high) | above_nine(high);
        let has_point = u64::from((in_either | in_first) != 0);
        group.behind[i] = behind;
        group.values[i] = (first_digits & 0x3ff) * POW10[16] + last_digits;
        group.read[i] = yes_if(bad == 0)
            & yes_if(first_digits < FIRST_END)
            & yes_if(length > has_point)
            & yes_if(length <= 24)
            & yes_if(behind <= FRACTION_MAX + 1);
    }
}

fn powers_of(group: &Group, powers: &mut [f64; FIELDS]) {
    for (power, behind) in powers.iter_mut().zip(&group.behind) {
        *power = POWERS[behind.saturating_sub(1).min(FRACTION_MAX) as usize];
    }
}

simd_dispatch! {
    /// The bits of the double nearest to each number divided by a power of ten.
    fn nearest(group: &mut Group, powers: &[f64; FIELDS], doubtful: Doubtful) = nearest_inner;
}

#[inline(always)]
fn nearest_inner(group: &mut Group, powers: &[f64; FIELDS], doubtful: Doubtful) {
    const DOUBT: f64 = 1.0 / (1u64 << 48) as f64;
    // `off` is itself off by less than 2^-40.
    const NEAR: f64 = 0.5 - 1.0 / (1u64 << 30) as f64;
    for (i, power) in powers.iter().enumerate() {
        let (number, power) = (group.values[i], *power);
        let is_exact = number < EXACT_END;
        let high = if is_exact { number } else { number & !LOW_BITS };
        let low = (number ^ high) as i64 as f64;
        let high = high as i64 as f64;
        let quotient = high / power;
        let rest = ((-quotient).mul_add(power, high) + low) / power;
        let more = quotient + rest * (1.0 + DOUBT);
        let less = quotient + rest * (1.0 - DOUBT);
        let double = if is_exact { quotient } else { more };
        let back = double * power;
        let below = double.mul_add(power, -back);
        let off = (back - high) + (below - low);
        let is_printed = yes_if(off.abs() < NEAR) & yes_if(number < PRINTED_END);
        group.values[i] = double.to_bits();
        group.read[i] &= (yes_if(is_exact) | yes_if(more == less))
            & if doubtful == Doubtful::LeftOut { is_printed } else { u64::MAX };
    }
}

simd_dispatch! {
    /// From bits of doubles, none of them negative, to those of the nearest REALs.
    fn rounded(group: &mut Group) = rounded_inner;
}

#[inline(always)]
fn rounded_inner(group: &mut Group) {
    for i in 0..FIELDS {
        let bits = group.values[i];
        // A double in the middle between two REALs may stand for a number on either side of it.
        group.read[i] &= yes_if(bits & ((1 << 29) - 1) != 1 << 28);
        group.values[i] = u64::from((f64::from_bits(bits) as f32).to_bits());
    }
}
