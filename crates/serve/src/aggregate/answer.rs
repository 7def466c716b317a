//! Groups and their numbers as a batch, in the types that DataFusion gives.

use std::sync::Arc;

use coload_scan::aggregate::{AggregateValue, GroupRow};
use coload_types::{DataType, Error, Physical, Result as StoreResult, Value};
use datafusion::arrow::array::ArrayRef;
use datafusion::arrow::datatypes::{DataType as ArrowType, SchemaRef};
use datafusion::arrow::record_batch::{RecordBatch, RecordBatchOptions};
use datafusion::error::Result;
use datafusion::scalar::ScalarValue;

use super::lower::{Output, OutputKind};
use crate::error::to_datafusion;
use crate::rules::{canonical_f64, divide_rounded};
use crate::table::scalar;
use crate::types::arrow_type;

/// The batch of all groups: `groups` are the types of the grouping columns.
pub fn make_batch(
    rows: &[GroupRow],
    groups: &[DataType],
    outputs: &[Output],
    schema: &SchemaRef,
) -> Result<RecordBatch> {
    let mut arrays: Vec<ArrayRef> = Vec::with_capacity(schema.fields().len());
    for (at, data_type) in groups.iter().enumerate() {
        let key = |row: &GroupRow| match &row.key[at] {
            Some(value) => Ok(scalar(value, *data_type)),
            None => ScalarValue::try_from(&arrow_type(*data_type)),
        };
        arrays.push(array(rows.iter().map(key), &arrow_type(*data_type))?);
    }
    for output in outputs {
        let values = rows.iter().map(|row| value(row, output));
        arrays.push(array(values, &output.arrow)?);
    }
    let options = RecordBatchOptions::new().with_row_count(Some(rows.len()));
    Ok(RecordBatch::try_new_with_options(Arc::clone(schema), arrays, &options)?)
}

fn array(values: impl Iterator<Item = Result<ScalarValue>>, arrow: &ArrowType) -> Result<ArrayRef> {
    let values = values.collect::<Result<Vec<_>>>()?;
    if values.is_empty() {
        return Ok(datafusion::arrow::array::new_empty_array(arrow));
    }
    ScalarValue::iter_to_array(values)
}

fn value(row: &GroupRow, output: &Output) -> Result<ScalarValue> {
    let counted = row.rows - row.nulls[output.aggregate];
    let found = match row.values[output.aggregate] {
        AggregateValue::Count(count) => Some(Ok(ScalarValue::Int64(Some(count as i64)))),
        AggregateValue::Exact(exact) => exact.map(|v| exact_value(v, counted, output)),
        AggregateValue::Float(sum) => sum.map(|sum| {
            let value = match output.kind {
                OutputKind::FloatAverage => sum / counted as f64,
                _ => sum,
            };
            Ok(ScalarValue::Float64(Some(canonical_f64(value))))
        }),
    };
    match found {
        Some(value) => value.map_err(to_datafusion),
        None => ScalarValue::try_from(&output.arrow),
    }
}

fn exact_value(value: i128, counted: u64, output: &Output) -> StoreResult<ScalarValue> {
    let overflow = || Error::Invalid(format!("an aggregate is too large for {}", output.arrow));
    match &output.kind {
        OutputKind::Stored(data_type) => {
            let stored = match data_type.physical() {
                Physical::Wide => Value::Wide(value),
                _ => Value::Int(i64::try_from(value).map_err(|_| overflow())?),
            };
            Ok(scalar(&stored, *data_type))
        }
        OutputKind::DecimalAverage(factor) => {
            let scaled = value.checked_mul(*factor).ok_or_else(overflow)?;
            let average = divide_rounded(scaled, i128::from(counted.max(1)));
            number(average, &output.arrow).ok_or_else(overflow)
        }
        OutputKind::IntegerAverage => Ok(ScalarValue::Float64(Some(value as f64 / counted as f64))),
        _ => number(value, &output.arrow).ok_or_else(overflow),
    }
}

/// A number in a type; `None` when it does not fit.
fn number(value: i128, arrow: &ArrowType) -> Option<ScalarValue> {
    Some(match arrow {
        ArrowType::Int16 => ScalarValue::Int16(Some(i16::try_from(value).ok()?)),
        ArrowType::Int32 => ScalarValue::Int32(Some(i32::try_from(value).ok()?)),
        ArrowType::Int64 => ScalarValue::Int64(Some(i64::try_from(value).ok()?)),
        ArrowType::Decimal128(precision, scale) => {
            let limit = 10u128.checked_pow(u32::from(*precision))?;
            (value.unsigned_abs() < limit).then_some(ScalarValue::Decimal128(
                Some(value),
                *precision,
                *scale,
            ))?
        }
        _ => return None,
    })
}
