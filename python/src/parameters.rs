//! Values of Python as the parameters of statements: a column for each parameter, a row for each run of the statement.
//!
//! Values of a column are of one kind: integers among floats and decimals are these, all else that is mixed is an error. Nothing
//! is rounded: what a type does not hold is an error.

use std::sync::Arc;

use coload::arrow::array::{
    ArrayRef, BinaryArray, BooleanArray, Date32Array, Decimal128Array, Float64Array, Int64Array,
    IntervalMonthDayNanoArray, NullArray, StringArray, Time64MicrosecondArray,
    TimestampMicrosecondArray,
};
use coload::arrow::datatypes::{Field, IntervalMonthDayNano, Schema};
use coload::arrow::record_batch::{RecordBatch, RecordBatchOptions};
use pyo3::exceptions::{PyTypeError, PyValueError};
use pyo3::prelude::*;
use pyo3::types::{PyBool, PyByteArray, PyBytes, PyFloat, PyInt, PyString};

use crate::classes::Classes;
use crate::errors::named;
use crate::times::{DAY_MICROS, ORDINAL_OF_1970, SECOND_MICROS};

/// Digits of the numbers that fit a DECIMAL.
const DIGITS_MAX: i64 = 38;

/// A value.
#[derive(Debug, Clone, PartialEq)]
enum Given {
    Null,
    Bool(bool),
    Int(i128),
    Float(f64),
    /// Digits, and how many of them are after the point.
    Decimal(i128, i64),
    Text(String),
    Bytes(Vec<u8>),
    Date(i32),
    Time(i64),
    Timestamp(i64),
    Instant(i64),
    Interval(i32, i32, i64),
}

/// The parameters of rows; `None` when there are no parameters.
pub fn batch(rows: &[Bound<'_, PyAny>]) -> PyResult<Option<RecordBatch>> {
    let mut columns: Vec<Vec<Given>> = Vec::new();
    for (number, row) in rows.iter().enumerate() {
        let values = values_of(row)?;
        if number == 0 {
            columns.resize_with(values.len(), Vec::new);
        }
        if columns.len() != values.len() {
            return Err(PyValueError::new_err(format!(
                "row {number} has {} values, and row 0 has {}",
                values.len(),
                columns.len()
            )));
        }
        columns.iter_mut().zip(values).for_each(|(column, value)| column.push(value));
    }
    if columns.is_empty() {
        return Ok(None);
    }
    let numbered = columns.into_iter().enumerate();
    let arrays = numbered.map(|(number, column)| array_of(number + 1, column));
    let arrays = arrays.collect::<PyResult<Vec<ArrayRef>>>()?;
    let fields = arrays.iter().enumerate();
    let fields = fields
        .map(|(number, array)| {
            Field::new(format!("${}", number + 1), array.data_type().clone(), true)
        })
        .collect::<Vec<_>>();
    let options = RecordBatchOptions::new().with_row_count(Some(rows.len()));
    RecordBatch::try_new_with_options(Arc::new(Schema::new(fields)), arrays, &options)
        .map(Some)
        .map_err(|error| PyValueError::new_err(error.to_string()))
}

/// The values of a row, which is a sequence.
fn values_of(row: &Bound<'_, PyAny>) -> PyResult<Vec<Given>> {
    let is_text = row.is_instance_of::<PyString>() || row.is_instance_of::<PyBytes>();
    if is_text || row.hasattr("keys")? {
        return Err(PyTypeError::new_err(
            "parameters are a list or tuple of values, in the order of the ? or $1, $2 of the statement",
        ));
    }
    row.try_iter()?.map(|value| given(&value?)).collect()
}

fn given(value: &Bound<'_, PyAny>) -> PyResult<Given> {
    let py = value.py();
    let classes = Classes::get(py)?;
    let class = value.get_type().name()?;
    let class = class.to_cow()?;
    if value.is_none() || matches!(&*class, "NAType" | "NaTType") {
        return Ok(Given::Null);
    }
    if let Ok(value) = value.cast::<PyBool>() {
        return Ok(Given::Bool(value.is_true()));
    }
    if value.is_instance_of::<PyInt>() {
        let too_large =
            || PyValueError::new_err(format!("{value} has more than {DIGITS_MAX} digits"));
        return value.extract::<i128>().map(Given::Int).map_err(|_| too_large());
    }
    if value.is_instance_of::<PyFloat>() {
        return Ok(Given::Float(value.extract()?));
    }
    if value.is_instance_of::<PyString>() {
        return Ok(Given::Text(value.extract()?));
    }
    if value.is_instance_of::<PyBytes>() || value.is_instance_of::<PyByteArray>() {
        return Ok(Given::Bytes(value.extract()?));
    }
    if let Some(known) = of_class(value, classes)? {
        return Ok(known);
    }
    // Scalars of numpy tell what they are.
    if value.hasattr("item")? && value.hasattr("dtype")? {
        let item = value.call_method0("item")?;
        if !item.get_type().is(value.get_type()) {
            return given(&item);
        }
    }
    Err(PyTypeError::new_err(format!("a {class} is no value of a statement")))
}

/// A value of a class of Python's library.
fn of_class(value: &Bound<'_, PyAny>, classes: &Classes) -> PyResult<Option<Given>> {
    let is = |class: &Py<PyAny>| value.is_instance(class.bind(value.py()));
    if is(&classes.decimal)? {
        return decimal(value).map(Some);
    }
    // A datetime is a date too.
    if is(&classes.datetime)? {
        return timestamp(value, classes).map(Some);
    }
    if is(&classes.date)? {
        let day = value.call_method0("toordinal")?.extract::<i64>()? - ORDINAL_OF_1970;
        return Ok(Some(Given::Date(day as i32)));
    }
    if is(&classes.time)? {
        return time(value).map(Some);
    }
    if is(&classes.timedelta)? {
        let (days, micros) = parts(value)?;
        check_nanos(value)?;
        return Ok(Some(Given::Interval(0, i32::try_from(days)?, micros * 1000)));
    }
    if is(&classes.interval)? {
        let (months, days, nanos) = value.extract()?;
        return Ok(Some(Given::Interval(months, days, nanos)));
    }
    if is(&classes.uuid)? {
        return Ok(Some(Given::Text(value.str()?.to_cow()?.into_owned())));
    }
    Ok(None)
}

fn decimal(value: &Bound<'_, PyAny>) -> PyResult<Given> {
    let (sign, digits, exponent): (u8, Vec<u8>, Bound<'_, PyAny>) =
        value.call_method0("as_tuple")?.extract()?;
    let wrong = || PyValueError::new_err(format!("{value} is no DECIMAL of {DIGITS_MAX} digits"));
    let exponent: i64 = exponent.extract().map_err(|_| wrong())?;
    let zeros = exponent.max(0);
    if !(-DIGITS_MAX..=DIGITS_MAX).contains(&exponent) || digits.len() as i64 + zeros > DIGITS_MAX {
        return Err(wrong());
    }
    let digits = digits.into_iter().chain(std::iter::repeat_n(0, zeros as usize));
    let number = digits.fold(0_i128, |number, digit| number * 10 + i128::from(digit));
    Ok(Given::Decimal(if sign == 1 { -number } else { number }, (-exponent).max(0)))
}

/// Days and microseconds of a timedelta.
fn parts(value: &Bound<'_, PyAny>) -> PyResult<(i64, i64)> {
    let of = |name: &str| value.getattr(name)?.extract::<i64>();
    Ok((of("days")?, of("seconds")? * SECOND_MICROS + of("microseconds")?))
}

/// Refuses the nanoseconds that classes of pandas have.
fn check_nanos(value: &Bound<'_, PyAny>) -> PyResult<()> {
    for name in ["nanosecond", "nanoseconds"] {
        if value.hasattr(name)? && value.getattr(name)?.extract::<i64>()? != 0 {
            return Err(PyValueError::new_err(format!(
                "{value} has nanoseconds, and times have microseconds: round it"
            )));
        }
    }
    Ok(())
}

fn timestamp(value: &Bound<'_, PyAny>, classes: &Classes) -> PyResult<Given> {
    let py = value.py();
    check_nanos(value)?;
    let has_zone = !value.call_method0("utcoffset")?.is_none();
    let zone = has_zone.then(|| classes.utc.clone_ref(py));
    let epoch = classes.datetime.bind(py).call1((1970, 1, 1, 0, 0, 0, 0, zone))?;
    let (days, micros) = parts(&value.sub(epoch)?)?;
    let micros = days * DAY_MICROS + micros;
    Ok(if has_zone { Given::Instant(micros) } else { Given::Timestamp(micros) })
}

fn time(value: &Bound<'_, PyAny>) -> PyResult<Given> {
    if !value.getattr("tzinfo")?.is_none() {
        return Err(PyValueError::new_err(format!("{value} has a zone, and a TIME has none")));
    }
    let of = |name: &str| value.getattr(name)?.extract::<i64>();
    let seconds = of("hour")? * 3600 + of("minute")? * 60 + of("second")?;
    Ok(Given::Time(seconds * SECOND_MICROS + of("microsecond")?))
}

/// Collects the values of one kind; an error says which parameter has others.
macro_rules! column {
    ($number:expr, $values:expr, $($kind:pat => $value:expr),+) => {
        $values
            .into_iter()
            .map(|value| match value {
                Given::Null => Ok(None),
                $($kind => Ok(Some($value)),)+
                other => Err(mixed($number, &other)),
            })
            .collect::<PyResult<Vec<Option<_>>>>()?
    };
}

fn mixed(number: usize, other: &Given) -> PyErr {
    PyTypeError::new_err(format!(
        "values of parameter {number} are of different kinds: {other:?} among others"
    ))
}

fn array_of(number: usize, values: Vec<Given>) -> PyResult<ArrayRef> {
    let rows = values.len();
    let has = |is: fn(&Given) -> bool| values.iter().any(is);
    let of_numbers = [
        has(|value| matches!(value, Given::Float(_))),
        has(|value| matches!(value, Given::Decimal(..))),
        has(|value| matches!(value, Given::Int(n) if i64::try_from(*n).is_err())),
    ];
    match of_numbers {
        [true, true, _] => {
            return Err(PyTypeError::new_err(format!(
                "values of parameter {number} are of different kinds: floats and decimals"
            )));
        }
        [true, false, _] => return floats(number, values),
        [false, true, _] | [false, false, true] => return decimals(number, values),
        [false, false, false] => {}
    }
    Ok(match values.iter().find(|value| **value != Given::Null) {
        None => Arc::new(NullArray::new(rows)),
        Some(Given::Bool(_)) => {
            Arc::new(BooleanArray::from(column!(number, values, Given::Bool(v) => v)))
        }
        Some(Given::Text(_)) => {
            Arc::new(StringArray::from(column!(number, values, Given::Text(v) => v)))
        }
        Some(Given::Bytes(_)) => {
            let bytes = column!(number, values, Given::Bytes(v) => v);
            Arc::new(BinaryArray::from_iter(bytes))
        }
        Some(Given::Date(_)) => {
            Arc::new(Date32Array::from(column!(number, values, Given::Date(v) => v)))
        }
        Some(Given::Time(_)) => {
            Arc::new(Time64MicrosecondArray::from(column!(number, values, Given::Time(v) => v)))
        }
        Some(Given::Timestamp(_)) => {
            let micros = column!(number, values, Given::Timestamp(v) => v);
            Arc::new(TimestampMicrosecondArray::from(micros))
        }
        Some(Given::Instant(_)) => {
            let micros = column!(number, values, Given::Instant(v) => v);
            Arc::new(TimestampMicrosecondArray::from(micros).with_timezone("+00:00"))
        }
        Some(Given::Interval(..)) => {
            let parts = column!(number, values, Given::Interval(months, days, nanos) => {
                IntervalMonthDayNano::new(months, days, nanos)
            });
            Arc::new(IntervalMonthDayNanoArray::from(parts))
        }
        Some(_) => {
            let ints = column!(number, values, Given::Int(v) => i64::try_from(v).unwrap_or(0));
            Arc::new(Int64Array::from(ints))
        }
    })
}

fn floats(number: usize, values: Vec<Given>) -> PyResult<ArrayRef> {
    let inexact = |value: &Given| matches!(value, Given::Int(n) if (*n as f64) as i128 != *n);
    if let Some(Given::Int(value)) = values.iter().find(|value| inexact(value)) {
        return Err(PyValueError::new_err(format!(
            "values of parameter {number} are floats, and {value} is none"
        )));
    }
    let floats = column!(number, values, Given::Float(v) => v, Given::Int(v) => v as f64);
    Ok(Arc::new(Float64Array::from(floats)))
}

fn decimals(number: usize, values: Vec<Given>) -> PyResult<ArrayRef> {
    let scales =
        values.iter().map(|value| if let Given::Decimal(_, scale) = value { *scale } else { 0 });
    let scale = scales.max().unwrap_or(0);
    let wrong = || {
        PyValueError::new_err(format!(
            "values of parameter {number} need more than the {DIGITS_MAX} digits of a DECIMAL"
        ))
    };
    let most = 10_i128.pow(DIGITS_MAX as u32);
    let scaled = |digits: i128, from: i64| {
        let digits = digits.checked_mul(10_i128.checked_pow((scale - from) as u32)?)?;
        (digits.abs() < most).then_some(digits)
    };
    let digits = column!(
        number, values,
        Given::Decimal(digits, from) => scaled(digits, from).ok_or_else(wrong)?,
        Given::Int(digits) => scaled(digits, 0).ok_or_else(wrong)?
    );
    Decimal128Array::from(digits)
        .with_precision_and_scale(DIGITS_MAX as u8, scale as i8)
        .map(|array| Arc::new(array) as ArrayRef)
        .map_err(|error| PyValueError::new_err(error.to_string()))
}

/// Says that there is no row.
pub fn no_rows(py: Python<'_>) -> PyErr {
    named(py, "UsageError", "rows without values: give a sequence for each")
}
