//! Physical values as SQL text, which [`mod@crate::parse_value`] reads back to the same value.

use std::fmt;
use std::io::Write;

use crate::calendar::{DAY_MICROS, date_from_days};
use crate::digits::{SCALE_MAX, pair, push_decimal, push_signed};
use crate::{DataType, Value, f32_from_ordinal, f64_from_ordinal, uuid_from_wide, write_list};

/// The value as SQL would print it, without quotes. Text that is not UTF-8 has its bad bytes
/// replaced; [`write_value`] keeps them.
pub fn display_value(value: &Value, data_type: DataType) -> String {
    let mut text = Vec::new();
    write_value(value, data_type, &mut text);
    match String::from_utf8(text) {
        Ok(text) => text,
        Err(error) => String::from_utf8_lossy(error.as_bytes()).into_owned(),
    }
}

/// Appends the value as SQL would print it, without quotes.
///
/// A value of another shape than the type's, which only a bug or a damaged file makes, is
/// printed raw.
pub fn write_value(value: &Value, data_type: DataType, out: &mut Vec<u8>) {
    match value {
        Value::Int(value) => write_int(*value, data_type, out),
        Value::Wide(value) => write_wide(*value, data_type, out),
        Value::Bytes(value) => write_bytes(value, data_type, out),
    }
}

/// [`write_value`] for an `Int`.
pub fn write_int(value: i64, data_type: DataType, out: &mut Vec<u8>) {
    match data_type {
        DataType::Boolean => {
            out.extend_from_slice(if value == 0 { b"false" } else { b"true" });
        }
        DataType::Decimal { scale, .. } => write_decimal(i128::from(value), scale, out),
        DataType::Real => append(out, format_args!("{:?}", f32_from_ordinal(value))),
        DataType::Double => append(out, format_args!("{:?}", f64_from_ordinal(value))),
        DataType::Date => write_date(value, out),
        DataType::Time => write_clock(value, out),
        DataType::Timestamp => write_timestamp(value, out),
        DataType::TimestampTz => {
            write_timestamp(value, out);
            out.extend_from_slice(b"+00");
        }
        DataType::SmallInt | DataType::Integer | DataType::BigInt => {
            push_signed(value, out);
        }
        // Of another shape: a bug or a damaged file.
        DataType::Char(_)
        | DataType::Varchar(_)
        | DataType::Binary(_)
        | DataType::Uuid
        | DataType::List(_) => {
            push_signed(value, out);
        }
    }
}

/// [`write_value`] for a `Wide`.
pub fn write_wide(value: i128, data_type: DataType, out: &mut Vec<u8>) {
    match data_type {
        DataType::Decimal { scale, .. } => write_decimal(value, scale, out),
        DataType::Uuid => {
            for (index, byte) in uuid_from_wide(value).iter().enumerate() {
                if matches!(index, 4 | 6 | 8 | 10) {
                    out.push(b'-');
                }
                write_hex(*byte, out);
            }
        }
        other => {
            debug_assert!(other.physical() != crate::Physical::Wide, "{other} has no text form");
            append(out, format_args!("{value}"));
        }
    }
}

/// Appends a byte string as text, as [`write_value`] does for `Bytes`.
pub fn write_bytes(value: &[u8], data_type: DataType, out: &mut Vec<u8>) {
    match data_type {
        DataType::Binary(_) => {
            out.reserve(2 + 2 * value.len());
            out.extend_from_slice(b"\\x");
            value.iter().for_each(|byte| write_hex(*byte, out));
        }
        DataType::List(element) => write_list(value, element, out),
        _ => out.extend_from_slice(value),
    }
}

/// Formats to the end of `out`.
fn append(out: &mut Vec<u8>, text: fmt::Arguments<'_>) {
    // Writing to a Vec cannot fail.
    let _ = out.write_fmt(text);
}

fn write_hex(byte: u8, out: &mut Vec<u8>) {
    const DIGITS: &[u8; 16] = b"0123456789abcdef";
    out.push(DIGITS[usize::from(byte >> 4)]);
    out.push(DIGITS[usize::from(byte & 15)]);
}

/// An unscaled number with the point put in.
fn write_decimal(value: i128, scale: u8, out: &mut Vec<u8>) {
    if let Ok(value) = i64::try_from(value)
        && (1..=SCALE_MAX).contains(&scale)
    {
        return push_decimal(value, scale, out);
    }
    if scale == 0 {
        return append(out, format_args!("{value}"));
    }
    if value < 0 {
        out.push(b'-');
    }
    let start = out.len();
    // At least one digit stands before the point.
    let width = usize::from(scale) + 1;
    append(out, format_args!("{:0width$}", value.unsigned_abs()));
    let point = out.len().saturating_sub(usize::from(scale)).max(start);
    out.insert(point, b'.');
}

/// `YYYY-MM-DD`. A year that is out of range, which only a bug or a damaged file makes, takes what it takes.
pub fn write_date(days: i64, out: &mut Vec<u8>) {
    let (year, month, day) = date_from_days(days);
    match u32::try_from(year) {
        Ok(year @ 0..=9999) => {
            let ([a, b], [c, d], [e, f], [g, h]) =
                (pair(year / 100), pair(year % 100), pair(month), pair(day));
            out.extend_from_slice(&[a, b, c, d, b'-', e, f, b'-', g, h]);
        }
        _ => append(out, format_args!("{year:04}-{month:02}-{day:02}")),
    }
}

/// `HH:MM:SS` of a second of a day.
pub fn write_seconds(seconds: i64, out: &mut Vec<u8>) {
    let (hour, minute, second) = (seconds / 3600, seconds / 60 % 60, seconds % 60);
    match u32::try_from(hour) {
        Ok(hour @ 0..=99) => {
            let ([a, b], [c, d], [e, f]) = (pair(hour), pair(minute as u32), pair(second as u32));
            out.extend_from_slice(&[a, b, b':', c, d, b':', e, f]);
        }
        _ => append(out, format_args!("{hour:02}:{minute:02}:{second:02}")),
    }
}

/// `.ffffff` of microseconds below a million.
pub fn write_micros(micros: i64, out: &mut Vec<u8>) {
    let micros = micros as u32;
    let ([a, b], [c, d], [e, f]) =
        (pair(micros / 10_000), pair(micros / 100 % 100), pair(micros % 100));
    out.extend_from_slice(&[b'.', a, b, c, d, e, f]);
}

/// `HH:MM:SS`, and the fraction without trailing zeros if there is one.
fn write_clock(micros: i64, out: &mut Vec<u8>) {
    write_seconds(micros.div_euclid(1_000_000), out);
    let fraction = micros.rem_euclid(1_000_000);
    if fraction == 0 {
        return;
    }
    write_micros(fraction, out);
    while out.last() == Some(&b'0') {
        out.pop();
    }
}

fn write_timestamp(micros: i64, out: &mut Vec<u8>) {
    write_date(micros.div_euclid(DAY_MICROS), out);
    out.push(b' ');
    write_clock(micros.rem_euclid(DAY_MICROS), out);
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn values_look_like_sql() {
        let decimal = |precision, scale| DataType::Decimal { precision, scale };
        for (value, data_type, expected) in [
            (Value::Int(1), DataType::Boolean, "true"),
            (Value::Int(-7), DataType::SmallInt, "-7"),
            (Value::Int(-5), decimal(15, 2), "-0.05"),
            (Value::Int(1250), decimal(15, 2), "12.50"),
            (Value::Wide(-1), decimal(38, 38), "-0.00000000000000000000000000000000000001"),
            (Value::Int(9568), DataType::Date, "1996-03-13"),
            (Value::Int(45_296_500_000), DataType::Time, "12:34:56.5"),
            (Value::Int(-1), DataType::Timestamp, "1969-12-31 23:59:59.999999"),
            (Value::Int(0), DataType::TimestampTz, "1970-01-01 00:00:00+00"),
            (Value::Bytes(b"a\xff".as_slice().into()), DataType::Binary(None), "\\x61ff"),
            (Value::Bytes(b"a".as_slice().into()), DataType::Char(3), "a"),
        ] {
            assert_eq!(display_value(&value, data_type), expected);
        }
    }

    /// The slow model: as the standard library writes it.
    fn moment(micros: i64) -> String {
        let (year, month, day) = date_from_days(micros.div_euclid(DAY_MICROS));
        let of_day = micros.rem_euclid(DAY_MICROS);
        let (seconds, fraction) = (of_day / 1_000_000, of_day % 1_000_000);
        let (hour, minute, second) = (seconds / 3600, seconds / 60 % 60, seconds % 60);
        let whole = format!("{year:04}-{month:02}-{day:02} {hour:02}:{minute:02}:{second:02}");
        match fraction {
            0 => whole,
            _ => format!("{whole}.{}", format!("{fraction:06}").trim_end_matches('0')),
        }
    }

    #[test]
    fn moments_are_as_the_standard_library_writes_them() {
        let clocks = [0, 1, 10, 999_999, 500_000, 1_000_000, 3_599_000_000, 86_399_999_999];
        for days in (-800_000..3_000_000).step_by(997) {
            for clock in clocks {
                let micros = days * DAY_MICROS + clock;
                let text = display_value(&Value::Int(micros), DataType::Timestamp);
                assert_eq!(text, moment(micros));
            }
        }
    }

    #[test]
    fn values_of_damaged_files_do_not_panic() {
        let types = [
            DataType::Boolean,
            DataType::SmallInt,
            DataType::Decimal { precision: 18, scale: 18 },
            DataType::Decimal { precision: 255, scale: 255 },
            DataType::Real,
            DataType::Double,
            DataType::Date,
            DataType::Time,
            DataType::Timestamp,
            DataType::TimestampTz,
            DataType::Uuid,
            DataType::Varchar(None),
        ];
        for data_type in types {
            for int in [i64::MIN, -1, 0, i64::MAX] {
                display_value(&Value::Int(int), data_type);
            }
            for wide in [i128::MIN, -1, 0, i128::MAX] {
                display_value(&Value::Wide(wide), data_type);
            }
            display_value(&Value::Bytes(b"\xff".as_slice().into()), data_type);
        }
    }
}
