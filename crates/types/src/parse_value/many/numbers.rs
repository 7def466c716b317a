//! Integers and decimals.

use super::{FIELDS, Group, above_nine, eight_digits, own_of_tail, yes_if};
use crate::parse_value::swar::{HIGHS, ONES, POW10, ZEROS};
use crate::simd_dispatch;

/// What a point is once '0' is taken off by exclusive or.
pub(super) const POINT: u64 = (b'.' ^ b'0') as u64;

simd_dispatch! {
    /// Integers of 1 to 19 digits.
    pub(super) fn integers(group: &mut Group, min: i64, max: i64) = integers_inner;
}

#[inline(always)]
fn integers_inner(group: &mut Group, min: i64, max: i64) {
    let [_, first, low, high] = &group.words;
    let mut longest = 0;
    for i in 0..FIELDS {
        let length = group.lengths[i];
        longest |= length;
        let low = own_of_tail(low[i] ^ ZEROS, length, 8);
        let high = own_of_tail(high[i] ^ ZEROS, length, 0);
        let bad = above_nine(low) | above_nine(high);
        group.values[i] = eight_digits(low) * POW10[8] + eight_digits(high);
        group.read[i] = yes_if(bad == 0) & yes_if(length > 0) & yes_if(length <= 19);
    }
    if longest > 16 {
        for i in 0..FIELDS {
            let first = own_of_tail(first[i] ^ ZEROS, group.lengths[i], 16);
            // Three digits at most, or the field is too long: nothing overflows.
            let digits = eight_digits(first) & 0x3ff;
            let value = group.values[i] + digits * POW10[16];
            group.values[i] = value;
            group.read[i] &= yes_if(above_nine(first) == 0) & yes_if(value as i64 >= 0);
        }
    }
    for i in 0..FIELDS {
        let value = signed(group.values[i], group.minus[i]);
        group.values[i] = value;
        group.behind[i] = 0;
        group.read[i] &= yes_if(value as i64 >= min) & yes_if(value as i64 <= max);
    }
}

simd_dispatch! {
    /// Decimals of up to 16 characters, with at most seven digits behind a point.
    pub(super) fn decimals(group: &mut Group, precision: u8, scale: u8) = decimals_inner;
}

#[inline(always)]
fn decimals_inner(group: &mut Group, precision: u8, scale: u8) {
    let [_, _, low, high] = &group.words;
    let (end, scale) = (POW10[usize::from(precision)], u64::from(scale));
    // Whether some have fewer digits behind the point than the type.
    let mut short = 0;
    for i in 0..FIELDS {
        let length = group.lengths[i];
        let low = own_of_tail(low[i] ^ ZEROS, length, 8);
        let high = own_of_tail(high[i] ^ ZEROS, length, 0);
        let point = last_point(high);
        let (low, high) = (before_point(low, point, 0), closed(high, point, low));
        let bad = above_nine(low) | above_nine(high);
        let behind = behind_point(point);
        let value = eight_digits(low) * POW10[8] + eight_digits(high);
        short |= (scale + 1).wrapping_sub(behind.max(1));
        group.behind[i] = behind;
        group.values[i] = value;
        // A point without digits is none.
        group.read[i] = yes_if(bad == 0)
            & yes_if(length > u64::from(point != 0))
            & yes_if(length <= 16)
            & yes_if(behind <= scale + 1)
            & yes_if(value < end);
    }
    if short != 0 {
        for i in 0..FIELDS {
            let zeros = (scale + 1).saturating_sub(group.behind[i].max(1));
            // What is left out anyway may have more.
            let end = POW10[u64::from(precision).saturating_sub(zeros).min(19) as usize];
            let value = group.values[i];
            group.read[i] &= yes_if(value < end) & yes_if(zeros < 16);
            group.values[i] = value.wrapping_mul(POW10[zeros.min(19) as usize]);
        }
    }
    for i in 0..FIELDS {
        group.values[i] = signed(group.values[i], group.minus[i]);
    }
}

/// The value, or less than zero by as much.
#[inline(always)]
fn signed(value: u64, minus: u64) -> u64 {
    (value ^ minus).wrapping_sub(minus)
}

/// The lowest bit of the character of the first point in a word, 0 if it has none; another is a character above nine.
#[inline(always)]
pub(super) fn last_point(word: u64) -> u64 {
    let other = word ^ (ONES * POINT);
    let found = other.wrapping_sub(ONES) & !other & HIGHS;
    (found & found.wrapping_neg()) >> 7
}

/// Characters behind the point in its word and the point itself; 0 without a point.
#[inline(always)]
pub(super) fn behind_point(point: u64) -> u64 {
    // A bit of each byte from the point on.
    let bytes = point.wrapping_neg() & ONES;
    bytes.wrapping_mul(ONES) >> 56
}

/// The word without its point, the characters before that moved up by one.
#[inline(always)]
pub(super) fn closed(word: u64, point: u64, before: u64) -> u64 {
    let below = point.wrapping_sub(1);
    let at_or_below = (below << 8) | 0xff;
    let moved = (word & !at_or_below) | (word & below) << 8 | before >> 56;
    if point == 0 { word } else { moved }
}

/// The word before that with a point, its characters moved up by one if there is one.
#[inline(always)]
pub(super) fn before_point(word: u64, point: u64, before: u64) -> u64 {
    if point == 0 { word } else { word << 8 | before >> 56 }
}
