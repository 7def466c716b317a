//! Rows of Arrow as values of Python.
//!
//! ```text
//!   BOOLEAN bool · integers int · DECIMAL decimal.Decimal · REAL DOUBLE float · text str · BINARY bytes
//!   DATE datetime.date · TIME datetime.time · TIMESTAMP datetime.datetime, with a zone one in UTC
//!   INTERVAL coload.Interval · LIST list · STRUCT dict · MAP list of pairs · NULL None
//! ```
//!
//! Nothing is rounded: what a class of Python does not hold is an error.

use coload::arrow::array::cast::AsArray;
use coload::arrow::array::types::{
    ArrowPrimitiveType, Date32Type, Decimal32Type, Decimal64Type, Decimal128Type, Decimal256Type,
    DecimalType, Float16Type, Float32Type, Float64Type, Int8Type, Int16Type, Int32Type, Int64Type,
    IntervalDayTimeType, IntervalMonthDayNanoType, IntervalYearMonthType, Time64MicrosecondType,
    TimestampMicrosecondType, UInt8Type, UInt16Type, UInt32Type, UInt64Type,
};
use coload::arrow::array::{Array, ArrayRef};
use coload::arrow::compute::cast;
use coload::arrow::datatypes::{DataType, IntervalUnit, TimeUnit};
use coload::arrow::record_batch::RecordBatch;
use pyo3::IntoPyObjectExt;
use pyo3::prelude::*;
use pyo3::types::{PyBytes, PyDict, PyList, PyString, PyTuple};

use crate::classes::Classes;
use crate::errors::named;
use crate::times::{DAY_MICROS, ORDINAL_OF_1970, SECOND_MICROS};

/// A value, or `None`.
type Value<'py> = Bound<'py, PyAny>;

/// The rows of a batch, a tuple each.
pub fn rows_of<'py>(py: Python<'py>, batch: &RecordBatch) -> PyResult<Bound<'py, PyList>> {
    let columns = batch.columns().iter().map(|column| values_of(py, column));
    let columns: Vec<Vec<Value<'py>>> = columns.collect::<PyResult<_>>()?;
    let mut columns: Vec<_> = columns.into_iter().map(Vec::into_iter).collect();
    let rows = PyList::empty(py);
    for _ in 0..batch.num_rows() {
        let row: Vec<Value<'py>> = columns.iter_mut().filter_map(Iterator::next).collect();
        rows.append(PyTuple::new(py, row)?)?;
    }
    Ok(rows)
}

/// The values of an array.
fn values_of<'py>(py: Python<'py>, array: &ArrayRef) -> PyResult<Vec<Value<'py>>> {
    let classes = Classes::get(py)?;
    match array.data_type() {
        DataType::Null => Ok((0..array.len()).map(|_| py.None().into_bound(py)).collect()),
        DataType::Boolean => {
            let array = array.as_boolean();
            each(py, array, |row| object(py, array.value(row)))
        }
        DataType::Int8 => numbers::<Int8Type>(py, array),
        DataType::Int16 => numbers::<Int16Type>(py, array),
        DataType::Int32 => numbers::<Int32Type>(py, array),
        DataType::Int64 => numbers::<Int64Type>(py, array),
        DataType::UInt8 => numbers::<UInt8Type>(py, array),
        DataType::UInt16 => numbers::<UInt16Type>(py, array),
        DataType::UInt32 => numbers::<UInt32Type>(py, array),
        DataType::UInt64 => numbers::<UInt64Type>(py, array),
        DataType::Float16 => {
            let array = array.as_primitive::<Float16Type>();
            each(py, array, |row| object(py, array.value(row).to_f64()))
        }
        DataType::Float32 => numbers::<Float32Type>(py, array),
        DataType::Float64 => numbers::<Float64Type>(py, array),
        DataType::Decimal32(..) => decimals::<Decimal32Type>(py, array, classes),
        DataType::Decimal64(..) => decimals::<Decimal64Type>(py, array, classes),
        DataType::Decimal128(..) => decimals::<Decimal128Type>(py, array, classes),
        DataType::Decimal256(..) => decimals::<Decimal256Type>(py, array, classes),
        DataType::Utf8View => {
            let array = array.as_string_view();
            each(py, array, |row| Ok(PyString::new(py, array.value(row)).into_any()))
        }
        DataType::Utf8 => {
            let array = array.as_string::<i32>();
            each(py, array, |row| Ok(PyString::new(py, array.value(row)).into_any()))
        }
        DataType::BinaryView => {
            let array = array.as_binary_view();
            each(py, array, |row| Ok(PyBytes::new(py, array.value(row)).into_any()))
        }
        DataType::FixedSizeBinary(_) => {
            let array = array.as_fixed_size_binary();
            each(py, array, |row| Ok(PyBytes::new(py, array.value(row)).into_any()))
        }
        DataType::Date32 => {
            let array = array.as_primitive::<Date32Type>();
            each(py, array, |row| date(py, classes, i64::from(array.value(row))))
        }
        DataType::Time64(TimeUnit::Microsecond) => {
            let array = array.as_primitive::<Time64MicrosecondType>();
            each(py, array, |row| {
                let (hour, minute, second, micros) = clock(array.value(row));
                classes.time.bind(py).call1((hour, minute, second, micros))
            })
        }
        DataType::Timestamp(TimeUnit::Microsecond, zone) => {
            let array = array.as_primitive::<TimestampMicrosecondType>();
            let is_instant = zone.is_some();
            each(py, array, |row| timestamp(py, classes, array.value(row), is_instant))
        }
        DataType::Interval(unit) => intervals(py, array, *unit, classes),
        _ => nested(py, array),
    }
}

/// The values of types that are made of others, and of those that are read as another.
fn nested<'py>(py: Python<'py>, array: &ArrayRef) -> PyResult<Vec<Value<'py>>> {
    let list = |items: &ArrayRef| Ok(PyList::new(py, values_of(py, items)?)?.into_any());
    match array.data_type() {
        DataType::List(_) => {
            let array = array.as_list::<i32>();
            each(py, array, |row| list(&array.value(row)))
        }
        DataType::LargeList(_) => {
            let array = array.as_list::<i64>();
            each(py, array, |row| list(&array.value(row)))
        }
        DataType::FixedSizeList(..) => {
            let array = array.as_fixed_size_list();
            each(py, array, |row| list(&array.value(row)))
        }
        DataType::Struct(fields) => {
            let array = array.as_struct();
            let columns = array.columns().iter().map(|column| values_of(py, column));
            let columns: Vec<Vec<Value<'py>>> = columns.collect::<PyResult<_>>()?;
            each(py, array, |row| {
                let value = PyDict::new(py);
                for (field, column) in fields.iter().zip(&columns) {
                    value.set_item(field.name(), &column[row])?;
                }
                Ok(value.into_any())
            })
        }
        DataType::Map(..) => {
            let array = array.as_map();
            each(py, array, |row| {
                let entries = array.value(row);
                let keys = values_of(py, entries.column(0))?;
                let values = values_of(py, entries.column(1))?;
                Ok(PyList::new(py, keys.into_iter().zip(values))?.into_any())
            })
        }
        other => {
            let as_known = known_type(other).and_then(|known| cast(array, &known).ok());
            match as_known {
                Some(known) => values_of(py, &known),
                None => Err(named(
                    py,
                    "NotSupportedError",
                    &format!("{other} has no class in Python: use .arrow(), or a CAST"),
                )),
            }
        }
    }
}

/// A type of the same values that is read.
fn known_type(data_type: &DataType) -> Option<DataType> {
    Some(match data_type {
        DataType::LargeUtf8 => DataType::Utf8View,
        DataType::Binary | DataType::LargeBinary => DataType::BinaryView,
        DataType::Dictionary(_, values) => (**values).clone(),
        DataType::RunEndEncoded(_, values) => values.data_type().clone(),
        DataType::Date64 => DataType::Timestamp(TimeUnit::Microsecond, None),
        DataType::Time32(_) => DataType::Time64(TimeUnit::Microsecond),
        DataType::Timestamp(TimeUnit::Second | TimeUnit::Millisecond, zone) => {
            DataType::Timestamp(TimeUnit::Microsecond, zone.clone())
        }
        _ => return None,
    })
}

fn object<'py, T: IntoPyObject<'py>>(py: Python<'py>, value: T) -> PyResult<Value<'py>> {
    value.into_bound_py_any(py)
}

/// A value for each row that is no NULL.
fn each<'py>(
    py: Python<'py>,
    array: &dyn Array,
    value: impl Fn(usize) -> PyResult<Value<'py>>,
) -> PyResult<Vec<Value<'py>>> {
    let value = |row: usize| match array.is_null(row) {
        true => Ok(py.None().into_bound(py)),
        false => value(row),
    };
    (0..array.len()).map(value).collect()
}

fn numbers<'py, T>(py: Python<'py>, array: &ArrayRef) -> PyResult<Vec<Value<'py>>>
where
    T: ArrowPrimitiveType,
    T::Native: IntoPyObject<'py>,
{
    let array = array.as_primitive::<T>();
    each(py, array, |row| object(py, array.value(row)))
}

fn decimals<'py, T: DecimalType>(
    py: Python<'py>,
    array: &ArrayRef,
    classes: &Classes,
) -> PyResult<Vec<Value<'py>>> {
    let array = array.as_primitive::<T>();
    let class = classes.decimal.bind(py);
    each(py, array, |row| class.call1((array.value_as_string(row),)))
}

fn date<'py>(py: Python<'py>, classes: &Classes, days: i64) -> PyResult<Value<'py>> {
    classes.date.bind(py).call_method1("fromordinal", (days + ORDINAL_OF_1970,))
}

/// Hour, minute, second and microsecond of a day.
fn clock(micros: i64) -> (i64, i64, i64, i64) {
    let seconds = micros / SECOND_MICROS;
    (seconds / 3600, seconds / 60 % 60, seconds % 60, micros % SECOND_MICROS)
}

fn timestamp<'py>(
    py: Python<'py>,
    classes: &Classes,
    micros: i64,
    is_instant: bool,
) -> PyResult<Value<'py>> {
    let day = date(py, classes, micros.div_euclid(DAY_MICROS))?;
    let (hour, minute, second, micros) = clock(micros.rem_euclid(DAY_MICROS));
    let zone = is_instant.then(|| classes.utc.clone_ref(py));
    let (year, month, day) = (day.getattr("year")?, day.getattr("month")?, day.getattr("day")?);
    let class = classes.datetime.bind(py);
    class.call1((year, month, day, hour, minute, second, micros, zone))
}

fn intervals<'py>(
    py: Python<'py>,
    array: &ArrayRef,
    unit: IntervalUnit,
    classes: &Classes,
) -> PyResult<Vec<Value<'py>>> {
    let class = classes.interval.bind(py);
    let made = |months: i32, days: i32, nanos: i64| class.call1((months, days, nanos));
    match unit {
        IntervalUnit::YearMonth => {
            let array = array.as_primitive::<IntervalYearMonthType>();
            each(py, array, |row| made(array.value(row), 0, 0))
        }
        IntervalUnit::DayTime => {
            let array = array.as_primitive::<IntervalDayTimeType>();
            each(py, array, |row| {
                let value = array.value(row);
                made(0, value.days, i64::from(value.milliseconds) * 1_000_000)
            })
        }
        IntervalUnit::MonthDayNano => {
            let array = array.as_primitive::<IntervalMonthDayNanoType>();
            each(py, array, |row| {
                let value = array.value(row);
                made(value.months, value.days, value.nanoseconds)
            })
        }
    }
}
