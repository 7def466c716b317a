//! The rows of one column, from Arrow arrays to fragments.

use std::ops::Range;

use coload_types::calendar::{DATE_DAYS, DAY_MICROS};
use coload_types::parse_value::check_text;
use coload_types::{
    Bitmap, Column, DataType, Error, Plain, Result, Strings, Value, Values, ordinal_from_f32,
    ordinal_from_f64, parse_value,
};
use datafusion::arrow::array::cast::AsArray;
use datafusion::arrow::array::{
    Array, ArrayRef, ArrowPrimitiveType, GenericStringArray, OffsetSizeTrait, PrimitiveArray,
};
use datafusion::arrow::buffer::NullBuffer;
use datafusion::arrow::datatypes::{
    DataType as ArrowType, Date32Type, Decimal128Type, Float32Type, Float64Type, Int16Type,
    Int32Type, Int64Type, Time64MicrosecondType, TimestampMicrosecondType,
};

use crate::lists::append_lists;
use crate::rules::convert;
use crate::types::arrow_type;
use crate::write::bad_value;

/// Microseconds of the days that there are.
const CALENDAR_MICROS: Range<i64> =
    *DATE_DAYS.start() * DAY_MICROS..(*DATE_DAYS.end() + 1) * DAY_MICROS;

/// Rows of the fragment that is being filled.
pub(crate) struct ColumnRows {
    column: Column,
    plain: Plain,
}

impl ColumnRows {
    pub fn new(column: &Column) -> Self {
        let physical = column.data_type.physical();
        ColumnRows { column: column.clone(), plain: Plain::empty(physical) }
    }

    /// The rows, all of them.
    pub fn into_plain(self) -> Plain {
        self.plain
    }

    /// The rows of the fragment.
    pub fn plain(&self) -> &Plain {
        &self.plain
    }

    /// Rows of the fragment.
    pub fn len(&self) -> usize {
        self.plain.len()
    }

    /// Bytes that the fragment's rows take.
    pub fn bytes(&self) -> usize {
        match &self.plain.values {
            Values::Int(v) => v.capacity() * size_of::<i64>(),
            Values::Wide(v) => v.capacity() * size_of::<i128>(),
            Values::Bytes(v) => v.bytes.capacity() + v.ends.capacity() * size_of::<u32>(),
        }
    }

    /// Adds the rows of an array.
    ///
    /// # Errors
    /// `Invalid` when a value does not fit the column.
    pub fn append(&mut self, array: &ArrayRef) -> Result<()> {
        if !self.column.nullable && array.logical_null_count() > 0 {
            return Err(Error::Invalid(format!(
                "NULL in column {}, which is NOT NULL",
                self.column.name
            )));
        }
        let wanted = arrow_type(self.column.data_type);
        let cast;
        let array = if *array.data_type() == wanted || is_text_as_sent(array, self.column.data_type)
        {
            array
        } else {
            cast = convert(array, &wanted).map_err(|e| {
                Error::Invalid(format!(
                    "column {} is {}: {e}",
                    self.column.name, self.column.data_type
                ))
            })?;
            &cast
        };
        self.append_values(array)?;
        append_nulls(&mut self.plain, array.len(), array.logical_nulls().as_ref());
        Ok(())
    }

    fn append_values(&mut self, array: &ArrayRef) -> Result<()> {
        let column = &self.column;
        match (&mut self.plain.values, column.data_type) {
            (Values::Int(out), DataType::Boolean) => {
                out.extend(array.as_boolean().iter().map(|v| i64::from(v == Some(true))));
            }
            (Values::Int(out), DataType::SmallInt) => {
                all_numbers::<Int16Type, _>(array, out, i64::from);
            }
            (Values::Int(out), DataType::Integer) => {
                all_numbers::<Int32Type, _>(array, out, i64::from);
            }
            (Values::Int(out), DataType::BigInt) => all_numbers::<Int64Type, _>(array, out, |v| v),
            (Values::Int(out), DataType::Real) => {
                all_numbers::<Float32Type, _>(array, out, |v| {
                    ordinal_from_f32(if v.is_nan() { f32::NAN } else { v })
                });
            }
            (Values::Int(out), DataType::Double) => {
                all_numbers::<Float64Type, _>(array, out, |v| {
                    ordinal_from_f64(if v.is_nan() { f64::NAN } else { v })
                });
            }
            (Values::Int(out), DataType::Date) => {
                let is_date = |v: i32| DATE_DAYS.contains(&i64::from(v));
                numbers::<Date32Type, _>(array, out, is_date, i64::from)
                    .map_err(|v| not_in_calendar(column, v.into()))?;
            }
            (Values::Int(out), DataType::Time) => {
                numbers::<Time64MicrosecondType, _>(
                    array,
                    out,
                    |v| (0..DAY_MICROS).contains(&v),
                    |v| v,
                )
                .map_err(|v| not_in_day(column, v))?;
            }
            (Values::Int(out), DataType::Timestamp | DataType::TimestampTz) => {
                numbers::<TimestampMicrosecondType, _>(
                    array,
                    out,
                    |v| CALENDAR_MICROS.contains(&v),
                    |v| v,
                )
                .map_err(|v| not_in_calendar(column, v))?;
            }
            // Precision at most 18 fits.
            (Values::Int(out), DataType::Decimal { precision, .. }) => {
                let above = 10_u128.pow(u32::from(precision));
                numbers::<Decimal128Type, _>(
                    array,
                    out,
                    |v| v.unsigned_abs() < above,
                    |v| v as i64,
                )
                .map_err(|v| too_many_digits(column, v))?;
            }
            (Values::Wide(out), DataType::Decimal { precision, .. }) => {
                let above = 10_u128.pow(u32::from(precision));
                numbers::<Decimal128Type, _>(array, out, |v| v.unsigned_abs() < above, |v| v)
                    .map_err(|v| too_many_digits(column, v))?;
            }
            (Values::Wide(out), DataType::Uuid) => {
                for text in array.as_string_view() {
                    out.push(text.map_or(Ok(0), |text| parse_uuid(column, text))?);
                }
            }
            (Values::Bytes(out), DataType::Binary(limit)) => {
                for bytes in array.as_binary_view() {
                    let bytes = bytes.unwrap_or_default();
                    if limit.is_some_and(|l| bytes.len() > l as usize) {
                        let value = Value::Bytes(bytes.into()).display(column.data_type);
                        return Err(bad_value(column, &value, "too long"));
                    }
                    push_bytes(out, bytes)?;
                }
            }
            (Values::Bytes(out), DataType::List(element)) => {
                append_lists(array, column, element, out)?;
            }
            (Values::Bytes(out), _) => match array.data_type() {
                ArrowType::Utf8 => append_texts(array.as_string::<i32>(), column, out)?,
                ArrowType::LargeUtf8 => append_texts(array.as_string::<i64>(), column, out)?,
                _ => array
                    .as_string_view()
                    .iter()
                    .try_for_each(|text| push_text(column, text, out))?,
            },
            (_, other) => {
                return Err(Error::Invalid(format!("column of {other} in a wrong shape")));
            }
        }
        Ok(())
    }

    /// The rows of the fragment; the next one has none.
    pub fn take(&mut self) -> Plain {
        let empty = Plain::empty(self.plain.values.physical());
        std::mem::replace(&mut self.plain, empty)
    }
}

/// Appends numbers, each mapped, all of which fit; NULL is 0.
fn all_numbers<T: ArrowPrimitiveType, N: Default>(
    array: &ArrayRef,
    out: &mut Vec<N>,
    map: impl Fn(T::Native) -> N,
) {
    // Nothing is refused.
    let _ = numbers::<T, N>(array, out, |_| true, map);
}

/// Appends numbers, each mapped; NULL is 0, whatever stands there. Gives the first number that does not fit.
///
/// Cost: two passes over the numbers, without a branch for each where there is no NULL.
fn numbers<T: ArrowPrimitiveType, N: Default>(
    array: &ArrayRef,
    out: &mut Vec<N>,
    fits: impl Fn(T::Native) -> bool,
    map: impl Fn(T::Native) -> N,
) -> std::result::Result<(), T::Native> {
    let array: &PrimitiveArray<T> = array.as_primitive();
    if array.null_count() > 0 {
        out.reserve(array.len());
        for value in array {
            match value {
                Some(value) if !fits(value) => return Err(value),
                value => out.push(value.map_or_else(N::default, &map)),
            }
        }
        return Ok(());
    }
    let values = array.values();
    if values.iter().fold(true, |all, value| all & fits(*value)) {
        out.extend(values.iter().map(|value| map(*value)));
        return Ok(());
    }
    values.iter().find(|value| !fits(**value)).map_or(Ok(()), |value| Err(*value))
}

/// Appends texts: all at once where nothing is to be said of one of them.
fn append_texts<O: OffsetSizeTrait>(
    array: &GenericStringArray<O>,
    column: &Column,
    out: &mut Strings,
) -> Result<()> {
    let offsets = array.value_offsets();
    let (first, last) = (offsets[0].as_usize(), offsets[array.len()].as_usize());
    let bytes = &array.value_data()[first..last];
    let length = |row: usize| offsets[row + 1].as_usize() - offsets[row].as_usize();
    let is_short = column.data_type.length_max().is_none_or(|limit| {
        (0..array.len()).fold(0, |longest, row| length(row).max(longest)) <= limit as usize
    });
    // NULL is the empty text here, and Arrow lets anything stand there.
    let is_empty = |row: usize| array.is_valid(row) || length(row) == 0;
    let has_empty_nulls = array.null_count() == 0 || (0..array.len()).all(is_empty);
    let is_whole = is_short && has_empty_nulls && check_text(bytes, None).is_ok();
    if !is_whole || !out.has_room(bytes.len() as u64) {
        return array.iter().try_for_each(|text| push_text(column, text, out));
    }
    let before = out.bytes.len();
    out.bytes.extend_from_slice(bytes);
    out.ends.extend(offsets[1..].iter().map(|end| (before + end.as_usize() - first) as u32));
    Ok(())
}

fn push_text(column: &Column, text: Option<&str>, out: &mut Strings) -> Result<()> {
    let text = text.unwrap_or_default();
    check_text(text.as_bytes(), column.data_type.length_max())
        .map_err(|rule| bad_value(column, text, rule.text()))?;
    push_bytes(out, text.as_bytes())
}

fn push_bytes(out: &mut Strings, bytes: &[u8]) -> Result<()> {
    if !out.has_room(bytes.len() as u64) {
        return Err(Error::Limit("text of one column in the rows of a page is over 4 GiB".into()));
    }
    out.push(bytes);
    Ok(())
}

fn not_in_calendar(column: &Column, value: i64) -> Error {
    let text = Value::Int(value).display(column.data_type);
    bad_value(column, &text, "years are 0001 to 9999")
}

fn not_in_day(column: &Column, value: i64) -> Error {
    let text = format!("{value} microseconds");
    bad_value(column, &text, "a time of day is less than 24 hours")
}

fn too_many_digits(column: &Column, value: i128) -> Error {
    let text = Value::Wide(value).display(column.data_type);
    bad_value(column, &text, "too many digits before the point")
}

/// Whether an array is text of a column of text, in a form that clients send: it is copied from there.
fn is_text_as_sent(array: &ArrayRef, data_type: DataType) -> bool {
    data_type.is_text() && matches!(array.data_type(), ArrowType::Utf8 | ArrowType::LargeUtf8)
}

fn parse_uuid(column: &Column, text: &str) -> Result<i128> {
    match parse_value(text.as_bytes(), DataType::Uuid) {
        Ok(Value::Wide(value)) => Ok(value),
        Ok(_) => Err(bad_value(column, text, "not a UUID")),
        Err(rule) => Err(bad_value(column, text, rule.text())),
    }
}

/// Notes which of the last `count` rows are NULL.
fn append_nulls(plain: &mut Plain, count: usize, nulls: Option<&NullBuffer>) {
    let before = plain.values.len() - count;
    match (nulls.filter(|nulls| nulls.null_count() > 0), &mut plain.nulls) {
        (None, None) => {}
        (None, Some(all)) => all.extend_zeros(count),
        (Some(nulls), all) => {
            let all = all.get_or_insert_with(|| Bitmap::zeros(before));
            nulls.iter().for_each(|is_valid| all.push(!is_valid));
        }
    }
}

#[cfg(test)]
mod tests;
