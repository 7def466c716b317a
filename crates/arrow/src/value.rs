//! One value, whatever its array: for messages, and for what is not converted array by array.

use std::io::Write;

use coload_types::display::{write_bytes, write_date, write_int, write_seconds, write_wide};
use coload_types::{DataType, ordinal_from_f32, ordinal_from_f64, wide_from_uuid};

use crate::schema::IntType;
use crate::slice::{Slice, SliceValues, int_at};
use crate::types::ArrowType;

/// Nanoseconds of a second and of a day.
const SECOND_NANOS: i128 = 1_000_000_000;
const DAY_NANOS: i128 = 86_400 * SECOND_NANOS;
/// The number of 1970-01-01 where days are counted from 4713 BC.
const JULIAN_DAY_OF_1970: i128 = 2_440_588;
/// Milliseconds of a day.
const DAY_MILLIS: i64 = 86_400_000;

/// A value that is no NULL.
#[derive(Debug, Clone, Copy, PartialEq)]
pub enum Scalar<'a> {
    /// True or false.
    Bool(bool),
    /// An exact number: the digits, and how many of them are after the point.
    Number(i128, i8),
    /// An exact number of more digits than 128 bits hold: its 32 bytes, the last one first.
    Long([u8; 32], i8),
    /// A float of 32 bits, or of 16.
    Single(f32),
    /// A float of 64 bits.
    Double(f64),
    /// Days since 1970-01-01, and nanoseconds beyond the last of them.
    Day(i64, i128),
    /// Nanoseconds since midnight.
    Clock(i128),
    /// Nanoseconds since 1970-01-01 without zone.
    Moment(i128),
    /// Nanoseconds since 1970-01-01 in UTC.
    Instant(i128),
    /// Text, if it is UTF-8.
    Text(&'a [u8]),
    /// Bytes.
    Bytes(&'a [u8]),
    /// The 16 bytes of a UUID.
    Uuid([u8; 16]),
}

impl<'a> Slice<'a> {
    /// The value of a row; `None` for NULL, and for keys of a dictionary, which is elsewhere.
    pub fn get(&self, values: &ArrowType, row: usize) -> Option<Scalar<'_>> {
        if row >= self.rows || self.is_null(row) {
            return None;
        }
        match &self.values {
            SliceValues::Nothing | SliceValues::Keys(..) => None,
            SliceValues::Bits(bits) => Some(Scalar::Bool(bits.get(row))),
            SliceValues::Indexed(keys, of) => of.get(values, *keys.get(row)? as usize),
            SliceValues::Strings(strings) => Some(match values {
                ArrowType::Text(_) | ArrowType::TextView => Scalar::Text(strings.get(row)),
                _ => Scalar::Bytes(strings.get(row)),
            }),
            SliceValues::Fixed(width, bytes) => {
                fixed(values, bytes.get(row * width..(row + 1) * width)?)
            }
        }
    }
}

/// A value of fixed width.
fn fixed<'a>(values: &ArrowType, raw: &'a [u8]) -> Option<Scalar<'a>> {
    let int = |signed| int_at(raw, 0, IntType { width: raw.len().min(8), signed });
    Some(match values {
        ArrowType::Int { signed, .. } => Scalar::Number(int(*signed), 0),
        ArrowType::Float(2) => Scalar::Single(f32_from_half(int(false) as u16)),
        ArrowType::Float(4) => Scalar::Single(f32::from_le_bytes(raw.try_into().ok()?)),
        ArrowType::Float(_) => Scalar::Double(f64::from_le_bytes(raw.try_into().ok()?)),
        ArrowType::Decimal { width: 4 | 8, scale, .. } => Scalar::Number(int(true), *scale),
        ArrowType::Decimal { width: 16, scale, .. } => {
            Scalar::Number(i128::from_le_bytes(raw.try_into().ok()?), *scale)
        }
        ArrowType::Decimal { scale, .. } => {
            let low = i128::from_le_bytes(raw.get(..16)?.try_into().ok()?);
            let high = i128::from_le_bytes(raw.get(16..)?.try_into().ok()?);
            match high == low >> 127 {
                true => Scalar::Number(low, *scale),
                false => Scalar::Long(raw.try_into().ok()?, *scale),
            }
        }
        ArrowType::Date { width: 4 } => Scalar::Day(int(true) as i64, 0),
        ArrowType::Date { .. } => {
            let millis = int(true) as i64;
            let rest = i128::from(millis.rem_euclid(DAY_MILLIS)) * 1_000_000;
            Scalar::Day(millis.div_euclid(DAY_MILLIS), rest)
        }
        ArrowType::Time { unit, .. } => Scalar::Clock(int(true) * i128::from(unit.nanos())),
        ArrowType::Timestamp { unit, zone } => {
            let nanos = int(true) * i128::from(unit.nanos());
            if zone.is_none() { Scalar::Moment(nanos) } else { Scalar::Instant(nanos) }
        }
        ArrowType::Int96 => int96(raw.try_into().ok()?)?,
        ArrowType::FixedBinary(_) => Scalar::Bytes(raw),
        ArrowType::Uuid => Scalar::Uuid(raw.try_into().ok()?),
        ArrowType::Null
        | ArrowType::Bool
        | ArrowType::Text(_)
        | ArrowType::TextView
        | ArrowType::Binary(_)
        | ArrowType::BinaryView
        | ArrowType::Composite(_)
        | ArrowType::Other(..) => return None,
    })
}

/// The moment of 12 bytes of [`ArrowType::Int96`].
pub fn int96(raw: [u8; 12]) -> Option<Scalar<'static>> {
    let (nanos, day) = raw.split_first_chunk::<8>()?;
    let day = i128::from(u32::from_le_bytes(day.try_into().ok()?)) - JULIAN_DAY_OF_1970;
    Some(Scalar::Moment(day * DAY_NANOS + i128::from(i64::from_le_bytes(*nanos))))
}

/// A float of 16 bits, all of which are floats of 32.
fn f32_from_half(half: u16) -> f32 {
    let sign = u32::from(half >> 15) << 31;
    let (exponent, fraction) = (u32::from(half >> 10 & 31), u32::from(half & 0x3ff));
    let magnitude = match exponent {
        0 => return f32::from_bits(sign | (fraction as f32 * 2_f32.powi(-24)).to_bits()),
        31 => 0xff << 23 | fraction << 13,
        _ => (exponent + 112) << 23 | fraction << 13,
    };
    f32::from_bits(sign | magnitude)
}

/// Appends a value as SQL writes it, without quotes; text as its bytes.
pub fn write_scalar(value: Scalar<'_>, out: &mut Vec<u8>) {
    match value {
        Scalar::Bool(value) => write_int(i64::from(value), DataType::Boolean, out),
        Scalar::Number(digits, scale) => write_number(&digits.to_string(), scale, out),
        Scalar::Long(bytes, scale) => write_number(&long_digits(bytes), scale, out),
        Scalar::Single(value) => write_int(ordinal_from_f32(value), DataType::Real, out),
        Scalar::Double(value) => write_int(ordinal_from_f64(value), DataType::Double, out),
        Scalar::Day(day, 0) => write_date(day, out),
        Scalar::Day(day, rest) => write_moment(i128::from(day) * DAY_NANOS + rest, out),
        Scalar::Clock(nanos) => write_clock(nanos, out),
        Scalar::Moment(nanos) => write_moment(nanos, out),
        Scalar::Instant(nanos) => {
            write_moment(nanos, out);
            out.extend_from_slice(b"+00");
        }
        Scalar::Text(text) => out.extend_from_slice(text),
        Scalar::Bytes(bytes) => write_bytes(bytes, DataType::Binary(None), out),
        Scalar::Uuid(bytes) => write_wide(wide_from_uuid(bytes), DataType::Uuid, out),
    }
}

/// Digits with the point put in.
fn write_number(digits: &str, scale: i8, out: &mut Vec<u8>) {
    let (sign, digits) = match digits.strip_prefix('-') {
        Some(digits) => ("-", digits),
        None => ("", digits),
    };
    out.extend_from_slice(sign.as_bytes());
    let places = usize::from(scale.unsigned_abs());
    if scale <= 0 {
        out.extend_from_slice(digits.as_bytes());
        if digits != "0" {
            out.extend(std::iter::repeat_n(b'0', places));
        }
        return;
    }
    let width = places + 1;
    let padded = format!("{digits:0>width$}");
    let (whole, fraction) = padded.split_at(padded.len() - places);
    // Writing to a Vec cannot fail.
    let _ = write!(out, "{whole}.{fraction}");
}

/// The digits of a number of 256 bits, which is slow and seldom.
fn long_digits(bytes: [u8; 32]) -> String {
    let mut words = [0_u32; 8];
    for (word, raw) in words.iter_mut().zip(bytes.chunks_exact(4)) {
        *word = raw.iter().rev().fold(0, |word, byte| word << 8 | u32::from(*byte));
    }
    let is_negative = words[7] >> 31 == 1;
    if is_negative {
        let mut carry = true;
        for word in &mut words {
            (*word, carry) = (!*word).overflowing_add(u32::from(carry));
        }
    }
    let mut digits = Vec::new();
    while words.iter().any(|word| *word != 0) {
        let mut rest = 0_u64;
        for word in words.iter_mut().rev() {
            let value = rest << 32 | u64::from(*word);
            (*word, rest) = ((value / 10) as u32, value % 10);
        }
        digits.push(char::from(b'0' + rest as u8));
    }
    digits.extend(is_negative.then_some('-'));
    digits.iter().rev().collect()
}

/// `HH:MM:SS`, and the fraction without trailing zeros if there is one.
fn write_clock(nanos: i128, out: &mut Vec<u8>) {
    // A clock that is none, which is told as it is, has any number of hours.
    write_seconds(nanos.div_euclid(SECOND_NANOS) as i64, out);
    let fraction = nanos.rem_euclid(SECOND_NANOS);
    if fraction != 0 {
        let text = format!(".{fraction:09}");
        out.extend_from_slice(text.trim_end_matches('0').as_bytes());
    }
}

fn write_moment(nanos: i128, out: &mut Vec<u8>) {
    write_date(nanos.div_euclid(DAY_NANOS) as i64, out);
    out.push(b' ');
    write_clock(nanos.rem_euclid(DAY_NANOS), out);
}
