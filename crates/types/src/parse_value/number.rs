//! Integers, decimals and floats.
//!
//! Each has a quick path that takes plain digits with a sign or a point and refuses the rest, and
//! a slow one (`exact`) that takes every accepted form and finds the rule that was broken.

use super::Rule;
use super::swar::{POW10, POW10_WIDE, Tail, many_digits};
use super::text::trim;
use crate::{DECIMAL_INT_PRECISION_MAX, ordinal_from_f32, ordinal_from_f64};

/// Most significant digits that the slow path keeps: those of the largest DECIMAL.
const SIGNIFICANT_MAX: i64 = 38;

/// A number's characters, read once: the quick paths work on this.
#[derive(Debug, Clone, Copy)]
pub struct Quick<'a> {
    chunk: &'a [u8],
    start: usize,
    end: usize,
    /// Whether a minus leads.
    minus: bool,
    /// What follows the minus, unless it is empty or long.
    tail: Option<Tail>,
}

impl<'a> Quick<'a> {
    /// From a field of its own.
    #[inline(always)]
    pub fn from_field(field: &'a [u8]) -> Self {
        let minus = field.first() == Some(&b'-');
        let tail = Tail::from_field(&field[usize::from(minus)..]);
        Quick { chunk: field, start: 0, end: field.len(), minus, tail }
    }

    /// From `chunk[start..end]`, quicker: the bytes before `start` may be read too.
    #[inline(always)]
    pub fn from_chunk(chunk: &'a [u8], start: usize, end: usize) -> Self {
        // An empty field may see a minus that follows it; there is no tail then.
        let minus = chunk.get(start) == Some(&b'-');
        let tail = Tail::from_chunk(chunk, start + usize::from(minus), end);
        Quick { chunk, start, end, minus, tail }
    }

    /// Bytes of the field, without those that the chunk has around it.
    #[inline(always)]
    pub fn field(self) -> &'a [u8] {
        &self.chunk[self.start..self.end]
    }

    /// All digits, none of them after a point.
    #[inline(always)]
    fn digits(self) -> Option<u64> {
        match self.tail {
            Some(tail) => tail.digits(),
            None => many_digits(self.field().get(usize::from(self.minus)..)?),
        }
    }
}

/// `value`, negated when `minus`.
#[inline(always)]
fn signed(minus: bool, value: u64) -> i64 {
    let mask = -i64::from(minus);
    ((value as i64) ^ mask).wrapping_sub(mask)
}

/// SMALLINT, INTEGER or BIGINT.
#[inline(always)]
pub fn parse_integer(number: Quick<'_>, min: i64, max: i64) -> Result<i64, Rule> {
    if let Some(value) = number.digits()
        && value <= i64::MAX as u64
    {
        let value = signed(number.minus, value);
        if (min..=max).contains(&value) {
            return Ok(value);
        }
    }
    slow_integer(number.field(), min, max)
}

/// Reads what the short way of [`parse_integer`] does not know, and says what is wrong with it.
#[cold]
#[inline(never)]
pub fn slow_integer(field: &[u8], min: i64, max: i64) -> Result<i64, Rule> {
    let number = exact(trim(field)?)?;
    if number.has_exponent {
        return Err(Rule::NotAnInteger);
    }
    let value = match number.scaled(19, 0) {
        Ok(value) => value,
        Err(Rule::TooManyDigits) => return Err(Rule::OutOfRange),
        Err(rule) => return Err(rule),
    };
    if value < i128::from(min) || value > i128::from(max) {
        return Err(Rule::OutOfRange);
    }
    Ok(value as i64)
}

/// DECIMAL of up to 18 digits: the unscaled number. `scale <= precision <= 18`.
#[inline(always)]
pub fn parse_decimal(number: Quick<'_>, precision: u8, scale: u8) -> Result<i64, Rule> {
    debug_assert!(scale <= precision && precision <= DECIMAL_INT_PRECISION_MAX);
    // Most columns of decimals have their point at one place.
    if (1..8).contains(&scale)
        && let Some(value) = number.tail.and_then(|tail| tail.point_before(usize::from(scale)))
        && value < POW10[usize::from(precision)]
    {
        return Ok(signed(number.minus, value));
    }
    if let Some((value, fraction)) = number.tail.and_then(Tail::point)
        && fraction <= usize::from(scale)
    {
        let zeros = usize::from(scale) - fraction;
        if value < POW10[usize::from(precision) - zeros] {
            return Ok(signed(number.minus, value * POW10[zeros]));
        }
    }
    slow_decimal(number.field(), precision, scale).map(|value| value as i64)
}

/// DECIMAL of up to 38 digits: the unscaled number. `scale <= precision <= 38`.
#[inline(always)]
pub fn parse_wide_decimal(number: Quick<'_>, precision: u8, scale: u8) -> Result<i128, Rule> {
    debug_assert!(scale <= precision && precision <= 38);
    if let Some((value, fraction)) = number.tail.and_then(Tail::point)
        && fraction <= usize::from(scale)
    {
        let zeros = usize::from(scale) - fraction;
        let value = i128::from(value);
        if value < POW10_WIDE[usize::from(precision) - zeros] {
            let value = value * POW10_WIDE[zeros];
            return Ok(if number.minus { -value } else { value });
        }
    }
    slow_decimal(number.field(), precision, scale)
}

/// [`parse_decimal`] and [`parse_wide_decimal`] in full.
#[cold]
#[inline(never)]
pub fn slow_decimal(field: &[u8], precision: u8, scale: u8) -> Result<i128, Rule> {
    exact(trim(field)?)?.scaled(precision, scale)
}

/// DOUBLE, as its ordinal.
#[inline(always)]
pub fn parse_double(number: Quick<'_>) -> Result<i64, Rule> {
    // Both operands are exact, so that one division rounds correctly (Clinger, PLDI 1990).
    const POWERS: [f64; 17] = [
        1e0, 1e1, 1e2, 1e3, 1e4, 1e5, 1e6, 1e7, 1e8, 1e9, 1e10, 1e11, 1e12, 1e13, 1e14, 1e15, 1e16,
    ];
    if let Some((value, fraction)) = number.tail.and_then(Tail::point)
        && value <= 1 << f64::MANTISSA_DIGITS
    {
        let value = value as f64 / POWERS[fraction];
        return Ok(ordinal_from_f64(if number.minus { -value } else { value }));
    }
    slow_double(number.field())
}

/// Reads what the short way of [`parse_double`] does not know, and says what is wrong with it.
#[cold]
#[inline(never)]
pub fn slow_double(field: &[u8]) -> Result<i64, Rule> {
    let text = float_text(field)?;
    let value: f64 = text.parse().map_err(|_| Rule::NotANumber)?;
    if value.is_infinite() && !is_infinity(text) {
        return Err(Rule::OutOfRange);
    }
    Ok(ordinal_from_f64(if value.is_nan() { f64::NAN } else { value }))
}

/// REAL, as its ordinal.
#[inline(always)]
pub fn parse_real(number: Quick<'_>) -> Result<i64, Rule> {
    const POWERS: [f32; 11] = [1e0, 1e1, 1e2, 1e3, 1e4, 1e5, 1e6, 1e7, 1e8, 1e9, 1e10];
    if let Some((value, fraction)) = number.tail.and_then(Tail::point)
        && value <= 1 << f32::MANTISSA_DIGITS
        && fraction < POWERS.len()
    {
        let value = value as f32 / POWERS[fraction];
        return Ok(ordinal_from_f32(if number.minus { -value } else { value }));
    }
    slow_real(number.field())
}

/// Reads what the short way of [`parse_real`] does not know, and says what is wrong with it.
#[cold]
#[inline(never)]
pub fn slow_real(field: &[u8]) -> Result<i64, Rule> {
    let text = float_text(field)?;
    let value: f32 = text.parse().map_err(|_| Rule::NotANumber)?;
    if value.is_infinite() && !is_infinity(text) {
        return Err(Rule::OutOfRange);
    }
    Ok(ordinal_from_f32(if value.is_nan() { f32::NAN } else { value }))
}

/// The trimmed field, for the parser of the standard library.
fn float_text(field: &[u8]) -> Result<&str, Rule> {
    std::str::from_utf8(trim(field)?).map_err(|_| Rule::NotANumber)
}

/// Whether infinity was asked for; else an infinite result is an overflow.
fn is_infinity(text: &str) -> bool {
    text.trim_start_matches(['+', '-']).starts_with(['i', 'I'])
}

/// A number as written: `digits * 10^exponent`, trailing zeros taken off `digits`.
pub(super) struct Exact {
    minus: bool,
    /// The significant digits; meaningless when there are more than [`SIGNIFICANT_MAX`].
    pub digits: i128,
    /// How many significant digits there are; 0 is the number zero.
    pub count: i64,
    pub exponent: i64,
    has_exponent: bool,
}

impl Exact {
    /// The number times `10^scale`, if that is an integer of at most `precision` digits.
    fn scaled(&self, precision: u8, scale: u8) -> Result<i128, Rule> {
        if self.count == 0 {
            return Ok(0);
        }
        let zeros = self.exponent.saturating_add(i64::from(scale));
        if self.count.saturating_add(zeros) > i64::from(precision) {
            return Err(Rule::TooManyDigits);
        }
        if zeros < 0 {
            return Err(Rule::TooManyFractionDigits);
        }
        // count + zeros <= precision <= 38, so that this cannot overflow.
        let value = self.digits * POW10_WIDE[zeros as usize];
        Ok(if self.minus { -value } else { value })
    }
}

/// `[+-] digits [. digits] [e [+-] digits]`, with a digit on one side of the point at least.
pub(super) fn exact(field: &[u8]) -> Result<Exact, Rule> {
    let mut rest = field;
    let mut number = Exact { minus: false, digits: 0, count: 0, exponent: 0, has_exponent: false };
    if let [sign @ (b'+' | b'-'), tail @ ..] = rest {
        number.minus = *sign == b'-';
        rest = tail;
    }
    rest = mantissa(rest, &mut number)?;
    if let [b'e' | b'E', tail @ ..] = rest {
        number.has_exponent = true;
        number.exponent = number.exponent.saturating_add(exponent(tail)?);
    } else if !rest.is_empty() {
        return Err(Rule::NotANumber);
    }
    Ok(number)
}

/// Reads digits and point into `number`; the rest of the field.
fn mantissa<'a>(field: &'a [u8], number: &mut Exact) -> Result<&'a [u8], Rule> {
    let (mut point, mut any, mut zeros) = (false, false, 0i64);
    for (index, byte) in field.iter().enumerate() {
        match byte {
            b'.' if !point => point = true,
            b'0'..=b'9' => {
                any = true;
                number.exponent -= i64::from(point);
                if *byte == b'0' {
                    // Counts only once another digit follows; before the first it is nothing.
                    zeros += i64::from(number.count > 0);
                    continue;
                }
                number.count += zeros + 1;
                if number.count <= SIGNIFICANT_MAX {
                    let digit = i128::from(byte - b'0');
                    number.digits = number.digits * POW10_WIDE[zeros as usize + 1] + digit;
                }
                zeros = 0;
            }
            _ if any => {
                number.exponent += zeros;
                return Ok(&field[index..]);
            }
            _ => return Err(Rule::NotANumber),
        }
    }
    number.exponent += zeros;
    if any { Ok(&[]) } else { Err(Rule::NotANumber) }
}

/// The digits after `e`. Far ones saturate: they are out of any range.
fn exponent(field: &[u8]) -> Result<i64, Rule> {
    let (minus, digits) = match field {
        [sign @ (b'+' | b'-'), tail @ ..] => (*sign == b'-', tail),
        _ => (false, field),
    };
    if digits.is_empty() || !digits.iter().all(u8::is_ascii_digit) {
        return Err(Rule::NotANumber);
    }
    let value = digits.iter().fold(0i64, |value, digit| {
        value.saturating_mul(10).saturating_add(i64::from(digit - b'0'))
    });
    Ok(if minus { -value } else { value })
}
