//! Fields of text to physical values, strictly: what does not fit is an error, never rounded,
//! cut or replaced.
//!
//! A field comes without its quotes. NULL is the caller's: each function is given a field that
//! stands for a value. Numbers, days, times, UUIDs and truth values may have spaces and tabs
//! around them; text and bytes are kept as they are.
//!
//! Cost: 1 to 5 ns for an integer, decimal or day as files have them; no allocation but for
//! BINARY in hexadecimal.

mod double;
mod many;
mod moment;
mod number;
mod swar;
mod text;

use std::borrow::Cow;
use std::fmt;

use moment::{Zone, parse_date, parse_time, parse_timestamp};
use number::Quick;
use text::{check_binary, parse_boolean, parse_uuid};

pub use double::{is_double_as_written, is_slowly_as_written};
pub use many::{Doubtful, ManyFields};
pub use moment::half_of_day;
pub use text::check_text;

use crate::{DataType, Physical, Value, parse_list};

/// The rule that a field breaks.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Rule {
    /// Empty or blank, and the type has no such value.
    Empty,
    /// Not of the form of a number.
    NotANumber,
    /// A value that can be read, though the type was inferred from others that were written otherwise.
    NotAsInferred,
    /// A number, but written with an exponent where an integer is expected.
    NotAnInteger,
    /// Outside what the type holds.
    OutOfRange,
    /// Digits after the point, other than zeros, that the scale has no room for.
    TooManyFractionDigits,
    /// More digits before the point than precision minus scale.
    TooManyDigits,
    /// Not written as the formats say that numbers or dates are.
    NotOfTheForm,
    /// Not of the form of a date.
    NotADate,
    /// Of the form of a date, but not in the calendar.
    NoSuchDate,
    /// Not of the form of a time of day.
    NotATime,
    /// Of the form of a time, but not on the clock.
    NoSuchTime,
    /// Finer than a microsecond.
    TooFine,
    /// Not of the form of a timestamp.
    NotATimestamp,
    /// A zone in a timestamp without zone.
    HasZone,
    /// An offset from UTC that no place has.
    NoSuchZone,
    /// No word for true or false.
    NotABoolean,
    /// Not of the form of a UUID.
    NotAUuid,
    /// Bytes that are not UTF-8.
    NotUtf8,
    /// A NUL byte in text.
    NulByte,
    /// More characters, or bytes, than declared.
    TooLong,
    /// `\x` not followed by pairs of hexadecimal digits.
    NotHex,
    /// Not of the form of a list.
    NotAList,
    /// A list or an object within a list.
    ListInList,
    /// A string of JSON where the elements of a list are numbers.
    ElementInQuotes,
}

impl Rule {
    /// What is wrong, to follow "... is not BIGINT: ".
    pub fn text(self) -> &'static str {
        match self {
            Rule::Empty => "it is empty",
            Rule::NotANumber => "not a number",
            Rule::NotAsInferred => {
                "not written as the sample was, from which the type was inferred"
            }
            Rule::NotAnInteger => "an integer has no exponent",
            Rule::OutOfRange => "out of range",
            Rule::TooManyFractionDigits => {
                "too many digits after the point, and nothing is rounded"
            }
            Rule::TooManyDigits => "too many digits before the point",
            Rule::NotOfTheForm => "not written as numbers or dates are",
            Rule::NotADate => "not of the form YYYY-MM-DD",
            Rule::NoSuchDate => "no such date",
            Rule::NotATime => "not of the form HH:MM:SS",
            Rule::NoSuchTime => "no such time of day",
            Rule::TooFine => "finer than a microsecond, and nothing is rounded",
            Rule::NotATimestamp => "not of the form YYYY-MM-DD HH:MM:SS",
            Rule::HasZone => "it has a time zone, which would be lost",
            Rule::NoSuchZone => "no such time zone offset",
            Rule::NotABoolean => "neither true, t, yes, y, on, 1 nor false, f, no, n, off, 0",
            Rule::NotAUuid => "not 32 hexadecimal digits",
            Rule::NotUtf8 => "not valid UTF-8",
            Rule::NulByte => "text with a NUL byte",
            Rule::TooLong => "too long",
            Rule::NotHex => "\\x is not followed by pairs of hexadecimal digits",
            Rule::NotAList => {
                "neither a list of JSON, as [1, null], nor one of PostgreSQL, as {1,NULL}"
            }
            Rule::ListInList => "an element is a list or an object itself",
            Rule::ElementInQuotes => "an element is in quotes, which numbers and truths are not",
        }
    }

    /// What helps: a flag of `coload load`, to follow "try ".
    pub fn advice(self) -> &'static str {
        match self {
            Rule::Empty => "a column without NOT NULL, or --null TEXT for what stands for NULL",
            Rule::NotAsInferred => "its type in --columns, VARCHAR to keep it as written",
            Rule::NotANumber
            | Rule::NotADate
            | Rule::NotATime
            | Rule::NotATimestamp
            | Rule::NotABoolean
            | Rule::NotAUuid => "--null TEXT if it stands for NULL, or another type in --columns",
            Rule::NotAnInteger => "DECIMAL or DOUBLE in --columns",
            Rule::OutOfRange | Rule::TooManyDigits => "a wider type in --columns",
            Rule::TooManyFractionDigits => "a larger scale, or DOUBLE, in --columns",
            Rule::NoSuchDate | Rule::NoSuchTime | Rule::NoSuchZone => {
                "--max-rejects N to set such records aside, or VARCHAR in --columns"
            }
            Rule::NotOfTheForm => {
                "another --decimal-separator, --thousands-separator or --date-format"
            }
            Rule::TooFine => "VARCHAR in --columns",
            Rule::HasZone => "TIMESTAMP WITH TIME ZONE in --columns",
            Rule::NotUtf8 => {
                "--encoding, --invalid-bytes replace, BINARY in --columns, or --max-rejects N to set such \
                 records aside"
            }
            Rule::NulByte => "BINARY in --columns, or --max-rejects N to set such records aside",
            Rule::TooLong => "a longer type in --columns",
            Rule::NotHex | Rule::NotAList | Rule::ListInList => "VARCHAR in --columns",
            Rule::ElementInQuotes => "VARCHAR[] in --columns",
        }
    }
}

impl fmt::Display for Rule {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.text())
    }
}

/// The `Int` of a field.
///
/// # Panics
/// When the type is of another shape: a bug of the caller.
#[inline]
pub fn parse_int(field: &[u8], data_type: DataType) -> Result<i64, Rule> {
    quick_int(Quick::from_field(field), data_type)
}

/// [`parse_int`] of `chunk[start..end]`, quicker for numbers: the bytes before the field are
/// loaded with it, so that its length does not matter.
///
/// # Panics
/// When the field is not in the chunk, or the type is of another shape: a bug of the caller.
#[inline]
pub fn parse_int_in(
    chunk: &[u8],
    start: usize,
    end: usize,
    data_type: DataType,
) -> Result<i64, Rule> {
    quick_int(Quick::from_chunk(chunk, start, end), data_type)
}

#[inline(always)]
fn quick_int(number: Quick<'_>, data_type: DataType) -> Result<i64, Rule> {
    match data_type {
        DataType::SmallInt | DataType::Integer | DataType::BigInt => {
            let (min, max) = data_type.facts().limits;
            number::parse_integer(number, min, max)
        }
        DataType::Decimal { precision, scale } => number::parse_decimal(number, precision, scale),
        DataType::Date => parse_date(number.field()),
        DataType::Timestamp => parse_timestamp(number.field(), Zone::Absent),
        DataType::TimestampTz => parse_timestamp(number.field(), Zone::Utc),
        DataType::Time => parse_time(number.field()),
        DataType::Double => number::parse_double(number),
        DataType::Real => number::parse_real(number),
        DataType::Boolean => parse_boolean(number.field()),
        DataType::Char(_)
        | DataType::Varchar(_)
        | DataType::Binary(_)
        | DataType::Uuid
        | DataType::List(_) => {
            panic!("{data_type} is not an Int")
        }
    }
}

/// The `Wide` of a field.
///
/// # Panics
/// When the type is of another shape: a bug of the caller.
#[inline]
pub fn parse_wide(field: &[u8], data_type: DataType) -> Result<i128, Rule> {
    quick_wide(Quick::from_field(field), data_type)
}

/// [`parse_wide`] of `chunk[start..end]`; see [`parse_int_in`].
///
/// # Panics
/// When the field is not in the chunk, or the type is of another shape: a bug of the caller.
#[inline]
pub fn parse_wide_in(
    chunk: &[u8],
    start: usize,
    end: usize,
    data_type: DataType,
) -> Result<i128, Rule> {
    quick_wide(Quick::from_chunk(chunk, start, end), data_type)
}

#[inline(always)]
fn quick_wide(number: Quick<'_>, data_type: DataType) -> Result<i128, Rule> {
    match data_type {
        DataType::Decimal { precision, scale } => {
            number::parse_wide_decimal(number, precision, scale)
        }
        DataType::Uuid => parse_uuid(number.field()),
        other => panic!("{other} is not a Wide"),
    }
}

/// The `Bytes` of a field; owned only for lists and BINARY in hexadecimal.
///
/// # Panics
/// When the type is of another shape: a bug of the caller.
#[inline]
pub fn check_bytes(field: &[u8], data_type: DataType) -> Result<Cow<'_, [u8]>, Rule> {
    let limit = match data_type {
        DataType::Char(limit) => Some(limit),
        DataType::Varchar(limit) => limit,
        DataType::Binary(limit) => return check_binary(field, limit),
        DataType::List(element) => return parse_list(field, element).map(Cow::Owned),
        other => panic!("{other} is not Bytes"),
    };
    check_text(field, limit)?;
    Ok(Cow::Borrowed(field))
}

/// The value of a field.
pub fn parse_value(field: &[u8], data_type: DataType) -> Result<Value, Rule> {
    Ok(match data_type.physical() {
        Physical::Int => Value::Int(parse_int(field, data_type)?),
        Physical::Wide => Value::Wide(parse_wide(field, data_type)?),
        Physical::Bytes => Value::Bytes(check_bytes(field, data_type)?.into()),
    })
}

#[cfg(test)]
mod tests;
