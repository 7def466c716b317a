//! The text of fields, from Arrow arrays.
//!
//! It is the text that [`ArrayFormatter`] makes, which writes through three layers of formatting; what is common is written
//! here, and the rest there. The two are compared in the tests. Lists are written here only, as JSON, which loads read.

use std::ops::Range;
use std::sync::LazyLock;

use coload_types::calendar::{DATE_DAYS, DAY_MICROS};
use coload_types::delimited::push_quoted;
use coload_types::display::{write_date, write_int, write_micros, write_seconds};
use coload_types::{DataType, Error, Result, write_json_string};
use datafusion::arrow::array::{
    Array, AsArray, BooleanArray, OffsetSizeTrait, StringArray, StringViewArray,
};
use datafusion::arrow::buffer::NullBuffer;
use datafusion::arrow::datatypes::{
    DataType as ArrowType, Date32Type, Decimal128Type, Int16Type, Int32Type, Int64Type,
    Time64MicrosecondType, TimeUnit, TimestampMicrosecondType,
};
use datafusion::arrow::util::display::{ArrayFormatter, FormatOptions};

use super::{CsvOptions, Texts, is_bytes, is_text, text_options};
use crate::types::UTC;

/// Bytes that occur in the texts of numbers, truth values and times.
const OF_VALUES: &[u8] = b"+-.: ";
/// The largest scale of a decimal that is written here.
const SCALE_MAX: i8 = 18;
/// Microseconds of a second.
const SECOND: i64 = 1_000_000;

/// A column of a batch.
pub(super) struct Fields<'a> {
    values: Values<'a>,
    nulls: Option<NullBuffer>,
    quotes: Quotes,
}

/// The texts of a column's values, without quotes.
pub(crate) struct ColumnTexts<'a> {
    values: Values<'a>,
    nulls: Option<NullBuffer>,
}

impl<'a> ColumnTexts<'a> {
    /// Of an array.
    ///
    /// # Errors
    /// `Invalid` when it has no text form.
    pub fn new(array: &'a dyn Array) -> Result<Self> {
        static FORMAT: LazyLock<FormatOptions<'static>> = LazyLock::new(text_options);
        Ok(ColumnTexts { values: Values::of(array, &FORMAT)?, nulls: array.logical_nulls() })
    }

    /// Appends the text of a row's value, unless it is NULL; whether it is not.
    ///
    /// # Errors
    /// `Invalid` when the value has no text.
    pub fn push(&self, row: usize, out: &mut Vec<u8>) -> Result<bool> {
        match self.nulls.as_ref().is_some_and(|nulls| nulls.is_null(row)) {
            true => Ok(false),
            false => self.values.push(row, out).map(|()| true),
        }
    }
}

/// When fields of a column are in quotes.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Quotes {
    Always,
    /// No value of the type can be read as something else.
    Never,
    /// Those that would be read as something else.
    AsNeeded,
}

enum Values<'a> {
    Int16(&'a [i16]),
    Int32(&'a [i32]),
    Int64(&'a [i64]),
    Boolean(&'a BooleanArray),
    Decimal(&'a [i128], u8),
    Date(&'a [i32]),
    Time(&'a [i64]),
    /// What stands behind the time is its zone.
    Timestamp(&'a [i64], &'static str),
    Text(&'a StringArray),
    View(&'a StringViewArray),
    /// Where the elements of each list are, their texts, and whether these are bare.
    List(Vec<Range<usize>>, Box<ColumnTexts<'a>>, Elements),
    Other(ArrayFormatter<'a>, Prefix),
}

/// How JSON has the elements of a list.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Elements {
    Bare,
    /// Bare where there are digits: infinities and what is no number are strings.
    Floats,
    Strings,
    /// They are lists themselves.
    Lists,
}

/// What stands before the text that the formatter makes.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Prefix {
    None,
    /// Bytes in hex have one.
    Hex,
}

impl<'a> Fields<'a> {
    /// Of an array.
    ///
    /// # Errors
    /// `Invalid` when it has no text form.
    pub fn new(
        array: &'a dyn Array,
        options: &CsvOptions,
        format: &'a FormatOptions<'_>,
    ) -> Result<Self> {
        let values = Values::of(array, format)?;
        let is_any = matches!(
            values,
            Values::Text(_) | Values::View(_) | Values::List(..) | Values::Other(..)
        );
        let quotes = match is_any {
            _ if options.texts == Texts::Quoted && is_text(array.data_type()) => Quotes::Always,
            false if !may_be_special(options) => Quotes::Never,
            _ => Quotes::AsNeeded,
        };
        Ok(Fields { values, nulls: array.logical_nulls(), quotes })
    }

    /// Appends the field of a row.
    ///
    /// # Errors
    /// `Invalid` when a value has no text.
    #[inline]
    pub fn push(&self, row: usize, options: &CsvOptions, out: &mut Vec<u8>) -> Result<()> {
        if self.nulls.as_ref().is_some_and(|nulls| nulls.is_null(row)) {
            out.extend_from_slice(options.null.as_bytes());
            return Ok(());
        }
        match (self.quotes, &self.values) {
            (Quotes::Never, values) => values.push(row, out),
            (Quotes::Always, Values::View(views)) => {
                push_quoted(out, views.value(row).as_bytes(), options.quote);
                Ok(())
            }
            (quotes, values) => {
                let start = out.len();
                values.push(row, out)?;
                let text = &out[start..];
                if quotes == Quotes::Always || needs_quotes(text, options) {
                    let text = text.to_vec();
                    out.truncate(start);
                    push_quoted(out, &text, options.quote);
                }
                Ok(())
            }
        }
    }
}

/// The values of an array of a type that is written here. A day or a time that is none, also where it is NULL, leaves its array
/// to the formatter.
fn known(array: &dyn Array) -> Option<Values<'_>> {
    Some(match array.data_type() {
        ArrowType::Int16 => Values::Int16(array.as_primitive::<Int16Type>().values()),
        ArrowType::Int32 => Values::Int32(array.as_primitive::<Int32Type>().values()),
        ArrowType::Int64 => Values::Int64(array.as_primitive::<Int64Type>().values()),
        ArrowType::Boolean => Values::Boolean(array.as_boolean()),
        ArrowType::Decimal128(_, scale @ 1..=SCALE_MAX) => {
            Values::Decimal(array.as_primitive::<Decimal128Type>().values(), *scale as u8)
        }
        ArrowType::Date32 => {
            let days = array.as_primitive::<Date32Type>().values();
            let is_known = days.iter().all(|day| DATE_DAYS.contains(&i64::from(*day)));
            return is_known.then_some(Values::Date(days));
        }
        ArrowType::Time64(TimeUnit::Microsecond) => {
            let times = array.as_primitive::<Time64MicrosecondType>().values();
            let is_known = times.iter().all(|time| (0..DAY_MICROS).contains(time));
            return is_known.then_some(Values::Time(times));
        }
        ArrowType::Timestamp(TimeUnit::Microsecond, zone) => {
            let zone = match zone.as_deref() {
                None => "",
                Some(UTC) => UTC,
                Some(_) => return None,
            };
            let moments = array.as_primitive::<TimestampMicrosecondType>().values();
            let is_known =
                moments.iter().all(|moment| DATE_DAYS.contains(&moment.div_euclid(DAY_MICROS)));
            return is_known.then_some(Values::Timestamp(moments, zone));
        }
        ArrowType::Utf8 => Values::Text(array.as_string()),
        ArrowType::Utf8View => Values::View(array.as_string_view()),
        _ => return None,
    })
}

impl<'a> Values<'a> {
    fn of(array: &'a dyn Array, format: &'a FormatOptions<'_>) -> Result<Self> {
        if let Some(values) = known(array) {
            return Ok(values);
        }
        let lists = match array.data_type() {
            ArrowType::List(_) => {
                let lists = array.as_list::<i32>();
                Some((ranges(lists.value_offsets()), lists.values()))
            }
            ArrowType::LargeList(_) => {
                let lists = array.as_list::<i64>();
                Some((ranges(lists.value_offsets()), lists.values()))
            }
            _ => None,
        };
        if let Some((ranges, elements)) = lists {
            let written = match elements.data_type() {
                ArrowType::Boolean => Elements::Bare,
                ArrowType::Float16 | ArrowType::Float32 | ArrowType::Float64 => Elements::Floats,
                of if of.is_numeric() => Elements::Bare,
                ArrowType::List(_) | ArrowType::LargeList(_) => Elements::Lists,
                _ => Elements::Strings,
            };
            let texts = ColumnTexts {
                values: Values::of(elements.as_ref(), format)?,
                nulls: elements.logical_nulls(),
            };
            return Ok(Values::List(ranges, Box::new(texts), written));
        }
        let prefix = if is_bytes(array.data_type()) { Prefix::Hex } else { Prefix::None };
        Ok(Values::Other(ArrayFormatter::try_new(array, format).map_err(invalid)?, prefix))
    }

    /// Appends the text of a value.
    #[inline]
    fn push(&self, row: usize, out: &mut Vec<u8>) -> Result<()> {
        match self {
            Values::Int16(values) => write_int(values[row].into(), DataType::BigInt, out),
            Values::Int32(values) => write_int(values[row].into(), DataType::BigInt, out),
            Values::Int64(values) => write_int(values[row], DataType::BigInt, out),
            Values::Boolean(values) => {
                out.extend_from_slice(if values.value(row) { b"true" } else { b"false" });
            }
            Values::Decimal(values, scale) => {
                let precision = coload_types::DECIMAL_PRECISION_MAX;
                let data_type = DataType::Decimal { precision, scale: *scale };
                coload_types::display::write_wide(values[row], data_type, out);
            }
            Values::Date(values) => write_date(values[row].into(), out),
            Values::Time(values) => push_clock(values[row], out),
            Values::Timestamp(values, zone) => {
                write_date(values[row].div_euclid(DAY_MICROS), out);
                out.push(b' ');
                push_clock(values[row].rem_euclid(DAY_MICROS), out);
                out.extend_from_slice(zone.as_bytes());
            }
            Values::Text(values) => out.extend_from_slice(values.value(row).as_bytes()),
            Values::View(values) => out.extend_from_slice(values.value(row).as_bytes()),
            Values::List(ranges, elements, written) => {
                push_list(ranges[row].clone(), elements, *written, out)?;
            }
            Values::Other(formatter, prefix) => {
                let text = formatter.value(row).try_to_string().map_err(invalid)?;
                if *prefix == Prefix::Hex {
                    out.extend_from_slice(b"\\x");
                }
                out.extend_from_slice(text.as_bytes());
            }
        }
        Ok(())
    }
}

fn ranges<O: OffsetSizeTrait>(offsets: &[O]) -> Vec<Range<usize>> {
    offsets.windows(2).map(|pair| pair[0].as_usize()..pair[1].as_usize()).collect()
}

fn push_list(
    range: Range<usize>,
    elements: &ColumnTexts<'_>,
    written: Elements,
    out: &mut Vec<u8>,
) -> Result<()> {
    let mut text = Vec::new();
    out.push(b'[');
    for element in range.clone() {
        if element > range.start {
            out.extend_from_slice(b", ");
        }
        text.clear();
        let is_bare = match elements.push(element, &mut text)? {
            false => {
                out.extend_from_slice(b"null");
                continue;
            }
            true if written == Elements::Floats => text.last().is_some_and(u8::is_ascii_digit),
            true => written != Elements::Strings,
        };
        match is_bare {
            true => out.extend_from_slice(&text),
            false => write_json_string(&text, out),
        }
    }
    out.push(b']');
    Ok(())
}

/// `HH:MM:SS`, and a fraction of three or six digits if there is one.
fn push_clock(micros: i64, out: &mut Vec<u8>) {
    /// Digits of a fraction that are left out together.
    const GROUP: usize = 3;
    write_seconds(micros / SECOND, out);
    let fraction = micros % SECOND;
    if fraction == 0 {
        return;
    }
    write_micros(fraction, out);
    if fraction % 10_i64.pow(GROUP as u32) == 0 {
        out.truncate(out.len() - GROUP);
    }
}

/// Whether a number, a truth value or a time could be read as something else.
fn may_be_special(options: &CsvOptions) -> bool {
    let of_values = |byte: &u8| byte.is_ascii_alphanumeric() || OF_VALUES.contains(byte);
    let is_null = !options.null.is_empty() && options.null.bytes().all(|byte| of_values(&byte));
    is_null || of_values(&options.delimiter) || of_values(&options.quote)
}

/// Whether a text would be read as something else.
pub(super) fn needs_quotes(text: &[u8], options: &CsvOptions) -> bool {
    let CsvOptions { delimiter, quote, .. } = *options;
    let special = |b: &u8| *b == delimiter || *b == quote || *b == b'\n' || *b == b'\r';
    text == options.null.as_bytes() || text.iter().any(special)
}

pub(super) fn invalid(error: impl std::fmt::Display) -> Error {
    Error::Invalid(error.to_string())
}
