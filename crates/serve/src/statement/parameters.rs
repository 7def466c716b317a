//! Values for the parameters of a statement.

use std::sync::Arc;

use coload_types::{DECIMAL_PRECISION_MAX, Error, Result};
use datafusion::arrow::array::ArrayRef;
use datafusion::arrow::datatypes::{DataType as ArrowType, Field, Schema as ArrowSchema, TimeUnit};
use datafusion::arrow::record_batch::{RecordBatch, RecordBatchOptions};
use datafusion::common::ParamValues;
use datafusion::logical_expr::LogicalPlan;
use datafusion::scalar::ScalarValue;

use super::text::PARAMETERS_MAX;
use crate::error::from_datafusion;
use crate::rules::{check_years, convert};

/// One value for each parameter of a statement, in order.
#[derive(Debug, Clone, Default)]
pub struct Parameters {
    values: Vec<ScalarValue>,
}

impl Parameters {
    /// A row of a batch: a column for each parameter.
    ///
    /// # Errors
    /// `Invalid` when there is no such row, a column has a type without values, or a time has digits beyond microseconds or is of a year
    /// beyond 0001 to 9999.
    pub fn of_row(batch: &RecordBatch, row: usize) -> Result<Self> {
        if row >= batch.num_rows() {
            return Err(Error::Invalid("parameters without a row of values".into()));
        }
        let columns = batch.columns().iter();
        let values = columns
            .map(|array| {
                let value = array.slice(row, 1);
                let value = match in_micros(array.data_type()) {
                    Some(micros) => convert(&value, &micros)?,
                    None => value,
                };
                check_years(value.as_ref())?;
                ScalarValue::try_from_array(&value, 0)
            })
            .map(|value| value.map_err(from_datafusion))
            .collect::<Result<_>>()?;
        Ok(Parameters { values })
    }

    /// Bytes that the values take.
    pub(crate) fn bytes(&self) -> usize {
        self.values.iter().map(ScalarValue::size).sum()
    }

    /// Rows of values as a batch, with a column for each parameter. Decimals of a parameter get the scale of the longest.
    ///
    /// # Errors
    /// `Invalid` when values of a parameter have no common type.
    pub(crate) fn batch(rows: &[Parameters]) -> Result<RecordBatch> {
        let width = rows.first().map_or(0, |row| row.values.len());
        let column = |at: usize| {
            let values: Vec<ScalarValue> = rows.iter().map(|row| row.values[at].clone()).collect();
            ScalarValue::iter_to_array(in_one_scale(values)?).map_err(from_datafusion)
        };
        let columns: Vec<ArrayRef> = (0..width).map(column).collect::<Result<_>>()?;
        let fields = columns.iter().enumerate();
        let fields: Vec<Field> = fields
            .map(|(at, array)| Field::new(format!("${}", at + 1), array.data_type().clone(), true))
            .collect();
        let options = RecordBatchOptions::new().with_row_count(Some(rows.len()));
        RecordBatch::try_new_with_options(Arc::new(ArrowSchema::new(fields)), columns, &options)
            .map_err(|e| Error::Refused(format!("internal error: {e}")))
    }

    /// The plan with its parameters' values; `None` when it has parameters and there are no values.
    pub(crate) fn bind(
        &self,
        plan: &LogicalPlan,
        fields: &ArrowSchema,
    ) -> Result<Option<LogicalPlan>> {
        let wanted = fields.fields().len();
        if self.values.is_empty() && wanted > 0 {
            return Ok(None);
        }
        if self.values.len() != wanted {
            return Err(Error::Invalid(format!(
                "the statement has {wanted} parameters, and {} values were given",
                self.values.len()
            )));
        }
        if wanted == 0 {
            return Ok(Some(plan.clone()));
        }
        let values = ParamValues::from(self.values.clone());
        plan.clone().with_param_values(values).map(Some).map_err(from_datafusion)
    }
}

/// Decimals with as many digits behind the point as the one that has most; other values as they are.
fn in_one_scale(mut values: Vec<ScalarValue>) -> Result<Vec<ScalarValue>> {
    let scales = values.iter().filter_map(|value| match value {
        ScalarValue::Decimal128(_, _, scale) => Some(*scale),
        _ => None,
    });
    let Some(longest) = scales.max() else { return Ok(values) };
    for value in &mut values {
        let ScalarValue::Decimal128(unscaled, precision, scale) = value else { continue };
        let shift = 10_i128.checked_pow((longest - *scale).unsigned_abs().into());
        *unscaled = match (*unscaled, shift) {
            (None, _) => None,
            (Some(number), Some(shift)) if number.checked_mul(shift).is_some_and(fits_decimal) => {
                Some(number * shift)
            }
            _ => {
                return Err(Error::Invalid(
                    "numbers of a batch whose digits do not fit into one DECIMAL".into(),
                ));
            }
        };
        (*precision, *scale) = (DECIMAL_PRECISION_MAX, longest);
    }
    Ok(values)
}

/// Whether a number has no more digits than a decimal.
fn fits_decimal(unscaled: i128) -> bool {
    unscaled.unsigned_abs() < 10_u128.pow(DECIMAL_PRECISION_MAX.into())
}

/// The type in which a time is computed with; `None` for what is no time in another unit.
fn in_micros(data_type: &ArrowType) -> Option<ArrowType> {
    match data_type {
        ArrowType::Timestamp(unit, zone) if *unit != TimeUnit::Microsecond => {
            Some(ArrowType::Timestamp(TimeUnit::Microsecond, zone.clone()))
        }
        ArrowType::Time32(_) | ArrowType::Time64(TimeUnit::Nanosecond) => {
            Some(ArrowType::Time64(TimeUnit::Microsecond))
        }
        _ => None,
    }
}

/// A field for each parameter of a plan, named `$1` and so on.
///
/// # Errors
/// `Invalid` when a number is left out.
pub(crate) fn fields_of(plan: &LogicalPlan) -> Result<ArrowSchema> {
    let known = plan.get_parameter_fields().map_err(from_datafusion)?;
    let number = |name: &str| name.strip_prefix('$').and_then(|n| n.parse::<usize>().ok());
    let count = known.keys().filter_map(|name| number(name)).max().unwrap_or(0);
    if count > PARAMETERS_MAX || known.len() != count {
        return Err(Error::Invalid("parameters are numbered from $1 on, without a gap".into()));
    }
    let field = |n: usize| {
        let name = format!("${n}");
        let asked = known.get(&name).and_then(Option::as_ref).map(|f| f.data_type().clone());
        let data_type = asked.filter(|t| *t != ArrowType::Null).unwrap_or(ArrowType::Utf8);
        Arc::new(Field::new(name, data_type, true))
    };
    Ok(ArrowSchema::new((1..=count).map(field).collect::<Vec<_>>()))
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]
    use datafusion::arrow::array::{
        Date32Array, Time32MillisecondArray, TimestampMillisecondArray, TimestampNanosecondArray,
    };

    use super::*;

    #[test]
    fn times_of_any_unit_are_the_same_times() {
        let time: ArrayRef = Arc::new(Time32MillisecondArray::from(vec![43_200_000]));
        let instant: ArrayRef = Arc::new(TimestampMillisecondArray::from(vec![1_700_000_000_000]));
        let batch = RecordBatch::try_from_iter([("$1", time), ("$2", instant)]).unwrap();
        let expected = vec![
            ScalarValue::Time64Microsecond(Some(43_200_000_000)),
            ScalarValue::TimestampMicrosecond(Some(1_700_000_000_000_000), None),
        ];
        assert_eq!(Parameters::of_row(&batch, 0).unwrap().values, expected);
    }

    /// Symptom: a client's day of the year 10000 was computed with and exported.
    #[test]
    fn times_are_in_the_years_that_tables_hold() {
        let days: ArrayRef = Arc::new(Date32Array::from(vec![2_932_896, 2_932_897]));
        let batch = RecordBatch::try_from_iter([("$1", days)]).unwrap();
        assert!(Parameters::of_row(&batch, 0).is_ok());
        let text = Parameters::of_row(&batch, 1).unwrap_err().to_string();
        assert!(text.contains("the year 10000"), "{text}");
    }

    /// Symptom: `ts = ?` with 1,500 nanoseconds found the row of 1 microsecond.
    #[test]
    fn nothing_is_cut_off_a_time() {
        let instant: ArrayRef = Arc::new(TimestampNanosecondArray::from(vec![1_000, 1_500]));
        let batch = RecordBatch::try_from_iter([("$1", instant)]).unwrap();
        let expected = vec![ScalarValue::TimestampMicrosecond(Some(1), None)];
        assert_eq!(Parameters::of_row(&batch, 0).unwrap().values, expected);
        assert!(Parameters::of_row(&batch, 1).is_err());
    }
}
