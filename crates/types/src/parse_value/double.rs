//! Whether a DOUBLE is the number that a text says, or one that a program printed of a DOUBLE.
//!
//! ```text
//!   0.1, 1e300                     the DOUBLE's shortest form              yes
//!   0.10000000000000001            the same DOUBLE, printed with 17 digits  yes
//!   0.12, 0.1200                   15 digits or fewer                       yes
//!   0.12345678901234567890         more than 17 digits: no program means a DOUBLE by it   no
//!   9007199254740993, 1e-400       the nearest DOUBLE is another number     no
//! ```
//!
//! A text of n significant digits, at most 17, is taken if the nearest DOUBLE, rounded to n digits, is the text again.
//! That holds for all texts of 15 digits, and for what Python, R, C (`%.17g`) and others print.
//!
//! Cost: what [`is_slowly_as_written`] does, printing the DOUBLE and comparing digits, is left to numbers that a quick look does not settle.

use super::number::{Exact, exact, slow_double};
use super::text::trim;
use crate::f64_from_ordinal;

/// Digits that tell any two DOUBLEs apart.
const PRINTED_DIGITS_MAX: i64 = 17;
/// 10 to the number of digits that are looked at quickly.
const QUICK_END: u64 = 100_000_000_000_000_000;
/// Powers of ten whose product with 53 bits is below 2^127.
const QUICK_SCALE_MAX: usize = 22;

/// Whether the number that `field` is, which is written as SQL writes it, is not changed by becoming the DOUBLE of this
/// ordinal. Words such as NaN are not changed.
#[inline]
pub fn is_double_as_written(field: &[u8], ordinal: i64) -> bool {
    is_quickly_as_written(field, ordinal) || is_slowly_as_written(field)
}

/// [`is_double_as_written`] of the nearest DOUBLE, without help.
#[inline(never)]
pub fn is_slowly_as_written(field: &[u8]) -> bool {
    let Ok(number) = trim(field).and_then(exact) else {
        return slow_double(field).is_ok();
    };
    if number.count == 0 {
        return true;
    }
    let Ok(ordinal) = slow_double(field) else { return false };
    let value = f64_from_ordinal(ordinal).abs();
    number.count <= PRINTED_DIGITS_MAX && value > 0.0 && is_printed(&number, value)
}

/// Whether `value`, rounded to as many digits as the number has, is the number.
fn is_printed(number: &Exact, value: f64) -> bool {
    let after_point = (number.count - 1) as usize;
    let printed = format!("{value:.after_point$e}");
    let Some((mantissa, exponent)) = printed.split_once('e') else { return false };
    let digits = mantissa.bytes().filter(u8::is_ascii_digit);
    let digits = digits.fold(0, |sum: i128, digit| sum * 10 + i128::from(digit - b'0'));
    let last_exponent = exponent.parse::<i64>().map(|first| first - after_point as i64);
    digits == number.digits && last_exponent == Ok(number.exponent)
}

/// Says yes to most fields that are as they are written: digits and a point, at most 17 of them.
#[inline]
fn is_quickly_as_written(field: &[u8], ordinal: i64) -> bool {
    let (mut digits, mut scale, mut after_point) = (0u64, 0, 0);
    let unsigned = field.strip_prefix(b"-").unwrap_or(field);
    for byte in unsigned {
        match byte {
            b'0'..=b'9' if digits < QUICK_END / 10 => {
                digits = digits * 10 + u64::from(byte - b'0');
                scale += after_point;
            }
            b'.' if after_point == 0 => after_point = 1,
            _ => return false,
        }
    }
    // Value = mantissa * 2^-shift; value * 10^scale, rounded, are the digits.
    let bits = f64_from_ordinal(ordinal).to_bits();
    let (mantissa, exponent) = (bits & ((1 << 52) - 1) | 1 << 52, (bits >> 52 & 0x7ff) as u32);
    let shift = 1075u32.wrapping_sub(exponent);
    if digits == 0 || scale > QUICK_SCALE_MAX || !(1..127).contains(&shift) {
        return digits == 0 && ordinal == 0 && !unsigned.is_empty();
    }
    let scaled = u128::from(mantissa) * 10u128.pow(scale as u32);
    (scaled + (1 << (shift - 1))) >> shift == u128::from(digits)
}
