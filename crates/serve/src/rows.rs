//! The rows of one column, from Arrow arrays to fragments.

use coload_types::calendar::{DATE_DAYS, DAY_MICROS};
use coload_types::parse_value::check_text;
use coload_types::{
    Bitmap, Column, DataType, Error, Plain, Result, Value, Values, ordinal_from_f32,
    ordinal_from_f64, parse_value,
};
use datafusion::arrow::array::cast::AsArray;
use datafusion::arrow::array::{Array, ArrayRef, ArrowPrimitiveType, PrimitiveArray};
use datafusion::arrow::datatypes::{
    DataType as ArrowType, Date32Type, Decimal128Type, Float32Type, Float64Type, Int16Type,
    Int32Type, Int64Type, Time64MicrosecondType, TimestampMicrosecondType,
};

use crate::rules::convert;
use crate::types::arrow_type;
use crate::write::bad_value;

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
        let nulls = array.logical_nulls();
        append_nulls(&mut self.plain, array.len(), |i| {
            nulls.as_ref().is_some_and(|n| n.is_null(i))
        });
        Ok(())
    }

    fn append_values(&mut self, array: &ArrayRef) -> Result<()> {
        let column = &self.column;
        match (&mut self.plain.values, column.data_type) {
            (Values::Int(out), DataType::Boolean) => {
                out.extend(array.as_boolean().iter().map(|v| i64::from(v == Some(true))));
            }
            (Values::Int(out), DataType::SmallInt) => {
                numbers::<Int16Type, _>(array, out, |v| Ok(v.into()))?;
            }
            (Values::Int(out), DataType::Integer) => {
                numbers::<Int32Type, _>(array, out, |v| Ok(v.into()))?;
            }
            (Values::Int(out), DataType::BigInt) => numbers::<Int64Type, _>(array, out, Ok)?,
            (Values::Int(out), DataType::Real) => {
                numbers::<Float32Type, _>(array, out, |v| {
                    Ok(ordinal_from_f32(if v.is_nan() { f32::NAN } else { v }))
                })?;
            }
            (Values::Int(out), DataType::Double) => {
                numbers::<Float64Type, _>(array, out, |v| {
                    Ok(ordinal_from_f64(if v.is_nan() { f64::NAN } else { v }))
                })?;
            }
            (Values::Int(out), DataType::Date) => {
                numbers::<Date32Type, _>(array, out, |v| in_calendar(column, v.into(), 1))?;
            }
            (Values::Int(out), DataType::Time) => {
                numbers::<Time64MicrosecondType, _>(array, out, |v| in_day(column, v))?;
            }
            (Values::Int(out), DataType::Timestamp | DataType::TimestampTz) => {
                numbers::<TimestampMicrosecondType, _>(array, out, |v| {
                    in_calendar(column, v, DAY_MICROS)
                })?;
            }
            // Precision at most 18, which the cast has checked, fits.
            (Values::Int(out), DataType::Decimal { precision, .. }) => {
                let above = 10_u128.pow(u32::from(precision));
                numbers::<Decimal128Type, _>(array, out, |v| {
                    in_precision(column, v, above).map(|v| v as i64)
                })?;
            }
            (Values::Wide(out), DataType::Decimal { precision, .. }) => {
                let above = 10_u128.pow(u32::from(precision));
                numbers::<Decimal128Type, _>(array, out, |v| in_precision(column, v, above))?;
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
            (Values::Bytes(out), _) => {
                let limit = column.data_type.length_max();
                let mut push = |text: Option<&str>| {
                    let text = text.unwrap_or_default();
                    check_text(text.as_bytes(), limit)
                        .map_err(|rule| bad_value(column, text, rule.text()))?;
                    push_bytes(out, text.as_bytes())
                };
                match array.data_type() {
                    ArrowType::Utf8 => array.as_string::<i32>().iter().try_for_each(&mut push)?,
                    ArrowType::LargeUtf8 => {
                        array.as_string::<i64>().iter().try_for_each(&mut push)?;
                    }
                    _ => array.as_string_view().iter().try_for_each(&mut push)?,
                }
            }
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

/// Appends numbers, each mapped; NULL is 0.
fn numbers<T: ArrowPrimitiveType, N: Default>(
    array: &ArrayRef,
    out: &mut Vec<N>,
    map: impl Fn(T::Native) -> Result<N>,
) -> Result<()> {
    let array: &PrimitiveArray<T> = array.as_primitive();
    out.reserve(array.len());
    for value in array {
        out.push(value.map_or_else(|| Ok(N::default()), &map)?);
    }
    Ok(())
}

fn push_bytes(out: &mut coload_types::Strings, bytes: &[u8]) -> Result<()> {
    if !out.has_room(bytes.len() as u64) {
        return Err(Error::Limit("text of one column in 65,536 rows is over 4 GiB".into()));
    }
    out.push(bytes);
    Ok(())
}

fn in_calendar(column: &Column, value: i64, units_per_day: i64) -> Result<i64> {
    if DATE_DAYS.contains(&value.div_euclid(units_per_day)) {
        return Ok(value);
    }
    let text = Value::Int(value).display(column.data_type);
    Err(bad_value(column, &text, "years are 0001 to 9999"))
}

fn in_day(column: &Column, value: i64) -> Result<i64> {
    if (0..DAY_MICROS).contains(&value) {
        return Ok(value);
    }
    let text = format!("{value} microseconds");
    Err(bad_value(column, &text, "a time of day is less than 24 hours"))
}

/// A decimal that is nearer to 0 than `above`, the least number with a digit more than the column has.
fn in_precision(column: &Column, value: i128, above: u128) -> Result<i128> {
    if value.unsigned_abs() < above {
        return Ok(value);
    }
    let text = Value::Wide(value).display(column.data_type);
    Err(bad_value(column, &text, "too many digits before the point"))
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
fn append_nulls(plain: &mut Plain, count: usize, is_null: impl Fn(usize) -> bool) {
    let before = plain.values.len() - count;
    if plain.nulls.is_none() && !(0..count).any(&is_null) {
        return;
    }
    let nulls = plain.nulls.get_or_insert_with(|| Bitmap::zeros(before));
    (0..count).for_each(|i| nulls.push(is_null(i)));
}
