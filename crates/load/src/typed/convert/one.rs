//! One value of a typed input to one of a column.

use coload_arrow::{Scalar, write_scalar};
use coload_types::calendar::{DATE_DAYS, DAY_MICROS};
use coload_types::parse_value::check_text;
use coload_types::{
    DataType, Rule, Value, ordinal_from_f32, ordinal_from_f64, parse_value, wide_from_uuid,
};

/// Nanoseconds of a microsecond.
const MICRO_NANOS: i128 = 1_000;

/// Whether bytes are texts, wherever these end: ASCII, and no NUL.
pub(super) fn are_texts(bytes: &[u8]) -> bool {
    bytes.is_ascii() && memchr::memchr(0, bytes).is_none()
}

/// Checks a string for a column of text or bytes, which keeps it as it is.
pub(super) fn check_string(
    string: &[u8],
    is_text: bool,
    target: DataType,
    limit: Option<u32>,
) -> Result<(), Rule> {
    if target.is_text() || is_text {
        // Bytes of text are as many as are declared, characters of a text too.
        check_text(string, limit.filter(|_| target.is_text()))?;
    }
    match limit {
        Some(limit) if !target.is_text() && string.len() > limit as usize => Err(Rule::TooLong),
        _ => Ok(()),
    }
}

/// A decimal of so many digits at most.
pub(super) fn fits(value: i128, precision: u8) -> Result<i128, Rule> {
    match value.unsigned_abs() < 10_u128.pow(u32::from(precision)) {
        true => Ok(value),
        false => Err(Rule::TooManyDigits),
    }
}

/// All that are no number are one.
pub(super) fn real(value: f32) -> i64 {
    ordinal_from_f32(if value.is_nan() { f32::NAN } else { value })
}

/// The same of 64 bits.
pub(super) fn double(value: f64) -> i64 {
    ordinal_from_f64(if value.is_nan() { f64::NAN } else { value })
}

/// Microseconds of the day.
pub(super) fn clock(nanos: i128) -> Result<i64, Rule> {
    match (nanos % MICRO_NANOS, i64::try_from(nanos / MICRO_NANOS)) {
        (_, Ok(micros)) if !(0..DAY_MICROS).contains(&micros) || nanos < 0 => Err(Rule::NoSuchTime),
        (0, Ok(micros)) => Ok(micros),
        (_, Err(_)) => Err(Rule::NoSuchTime),
        (_, Ok(_)) => Err(Rule::TooFine),
    }
}

/// Microseconds since 1970.
pub(super) fn moment(nanos: i128) -> Result<i64, Rule> {
    let micros = i64::try_from(nanos.div_euclid(MICRO_NANOS)).map_err(|_| Rule::NoSuchDate)?;
    match in_calendar(micros)? {
        _ if nanos.rem_euclid(MICRO_NANOS) != 0 => Err(Rule::TooFine),
        micros => Ok(micros),
    }
}

/// Microseconds of a year that a column holds.
pub(super) fn in_calendar(micros: i64) -> Result<i64, Rule> {
    match DATE_DAYS.contains(&micros.div_euclid(DAY_MICROS)) {
        true => Ok(micros),
        false => Err(Rule::NoSuchDate),
    }
}

/// What a value becomes in a column.
///
/// # Errors
/// The rule that it breaks.
pub(super) fn convert_scalar(value: Scalar<'_>, target: DataType) -> Result<Value, Rule> {
    Ok(match (value, target) {
        (Scalar::Text(text), DataType::Char(_) | DataType::Varchar(_) | DataType::Binary(_)) => {
            check_string(text, true, target, target.length_max())?;
            Value::Bytes(text.into())
        }
        (Scalar::Bytes(bytes), DataType::Char(_) | DataType::Varchar(_) | DataType::Binary(_)) => {
            check_string(bytes, false, target, target.length_max())?;
            Value::Bytes(bytes.into())
        }
        (Scalar::Text(text), target) => parse_value(text, target)?,
        (Scalar::Bytes(bytes), DataType::Uuid) if bytes.len() == 16 => {
            let mut raw = [0; 16];
            raw.copy_from_slice(bytes);
            Value::Wide(wide_from_uuid(raw))
        }
        (Scalar::Uuid(bytes), DataType::Uuid) => Value::Wide(wide_from_uuid(bytes)),
        (Scalar::Single(value), DataType::Real) => Value::Int(real(value)),
        (Scalar::Single(value), DataType::Double) => Value::Int(double(f64::from(value))),
        (Scalar::Double(value), DataType::Double) => Value::Int(double(value)),
        (Scalar::Double(value), DataType::Real) => {
            let single = value as f32;
            match f64::from(single) == value || value.is_nan() {
                true => Value::Int(real(single)),
                false if single.is_infinite() => return Err(Rule::OutOfRange),
                false => return Err(Rule::TooManyFractionDigits),
            }
        }
        (Scalar::Day(day, 0), DataType::Date) => match DATE_DAYS.contains(&day) {
            true => Value::Int(day),
            false => return Err(Rule::NoSuchDate),
        },
        (Scalar::Clock(nanos), DataType::Time) => Value::Int(clock(nanos)?),
        (Scalar::Moment(nanos), DataType::Timestamp)
        | (Scalar::Instant(nanos), DataType::TimestampTz) => Value::Int(moment(nanos)?),
        (Scalar::Instant(_), DataType::Timestamp) => return Err(Rule::HasZone),
        (other, target) => {
            let mut text = Vec::new();
            write_scalar(other, &mut text);
            parse_value(&text, target)?
        }
    })
}
