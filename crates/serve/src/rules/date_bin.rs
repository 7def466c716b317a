//! `date_bin` in all years.
//!
//! The engine's counts nanoseconds, which end in the year 2262: beyond it fails, or is NULL.

use std::sync::Arc;

use coload_types::calendar::{DAY_MICROS, date_from_days, days_from_date, days_in_month};
use datafusion::arrow::array::cast::AsArray;
use datafusion::arrow::array::{ArrayRef, Int64Array};
use datafusion::arrow::compute::cast;
use datafusion::arrow::datatypes::{
    DataType as ArrowType, Int64Type, IntervalMonthDayNano, IntervalMonthDayNanoType, TimeUnit,
};
use datafusion::common::ScalarValue;
use datafusion::error::{DataFusionError, Result};
use datafusion::logical_expr::sort_properties::{ExprProperties, SortProperties};
use datafusion::logical_expr::{
    ColumnarValue, ScalarFunctionArgs, ScalarUDFImpl, Signature, Volatility,
};

use super::arithmetic::INTERVAL;
use super::calendar::check_years;
use super::microseconds::TIMESTAMP;
use super::refused;

const MICRO_NANOS: i64 = 1_000;
const YEAR_MONTHS: i64 = 12;

#[derive(Debug, PartialEq, Eq, Hash)]
pub(super) struct DateBin {
    signature: Signature,
}

impl Default for DateBin {
    fn default() -> Self {
        DateBin { signature: Signature::user_defined(Volatility::Immutable) }
    }
}

/// How wide a bin is.
#[derive(Debug, Clone, Copy)]
enum Width {
    Months(i64),
    Micros(i64),
}

impl Width {
    fn of(interval: IntervalMonthDayNano) -> Result<Self> {
        let IntervalMonthDayNano { months, days, nanoseconds } = interval;
        if nanoseconds % MICRO_NANOS != 0 {
            return Err(refused("a bin of date_bin is whole microseconds wide"));
        }
        let micros = i64::from(days) * DAY_MICROS + nanoseconds / MICRO_NANOS;
        match (months, micros) {
            (1.., 0) => Ok(Width::Months(i64::from(months))),
            (0, 1..) => Ok(Width::Micros(micros)),
            (0, _) | (..=-1, 0) => Err(refused("a bin of date_bin is wider than nothing")),
            _ => Err(refused("a bin of date_bin is months or a time, not both")),
        }
    }

    /// The start of the bin of a value; `None` when there is no such time.
    fn start(self, value: i64, origin: i64) -> Option<i64> {
        match self {
            Width::Micros(width) => {
                let (value, origin) = (i128::from(value), i128::from(origin));
                let width = i128::from(width);
                i64::try_from(origin + (value - origin).div_euclid(width) * width).ok()
            }
            Width::Months(width) => {
                let months = month_of(value) - month_of(origin);
                let months = months.div_euclid(width) * width;
                let start = months_later(origin, months)?;
                if start > value { months_later(origin, months - width) } else { Some(start) }
            }
        }
    }
}

/// Months since the year 0.
fn month_of(micros: i64) -> i64 {
    let (year, month, _) = date_from_days(micros.div_euclid(DAY_MICROS));
    year * YEAR_MONTHS + i64::from(month) - 1
}

/// The same day and time in another month, or its last day.
fn months_later(micros: i64, months: i64) -> Option<i64> {
    let (_, _, day) = date_from_days(micros.div_euclid(DAY_MICROS));
    let month = month_of(micros) + months;
    let year = u32::try_from(month.div_euclid(YEAR_MONTHS)).ok()?;
    let month = u32::try_from(month.rem_euclid(YEAR_MONTHS)).ok()? + 1;
    let days = days_from_date(year, month, day.min(days_in_month(year, month)))?;
    Some(days * DAY_MICROS + micros.rem_euclid(DAY_MICROS))
}

fn is_binned(data_type: &ArrowType) -> bool {
    matches!(
        data_type,
        ArrowType::Timestamp(TimeUnit::Microsecond, _) | ArrowType::Time64(TimeUnit::Microsecond)
    )
}

impl ScalarUDFImpl for DateBin {
    fn name(&self) -> &str {
        "date_bin"
    }

    fn signature(&self) -> &Signature {
        &self.signature
    }

    fn coerce_types(&self, types: &[ArrowType]) -> Result<Vec<ArrowType>> {
        let ([_, value] | [_, value, _]) = types else {
            return Err(refused("date_bin takes an interval, a time, and perhaps an origin"));
        };
        let value = match value {
            t if is_binned(t) => t.clone(),
            ArrowType::Timestamp(_, zone) => {
                ArrowType::Timestamp(TimeUnit::Microsecond, zone.clone())
            }
            ArrowType::Date32
            | ArrowType::Utf8
            | ArrowType::LargeUtf8
            | ArrowType::Utf8View
            | ArrowType::Null => TIMESTAMP,
            other => return Err(refused(format!("date_bin takes a time, not {other}"))),
        };
        let mut coerced = vec![INTERVAL];
        coerced.resize(types.len(), value);
        Ok(coerced)
    }

    fn return_type(&self, types: &[ArrowType]) -> Result<ArrowType> {
        Ok(self.coerce_types(types)?.swap_remove(1))
    }

    fn is_strict(&self) -> bool {
        true
    }

    fn output_ordering(&self, input: &[ExprProperties]) -> Result<SortProperties> {
        let [width, value, origin @ ..] = input else { return Ok(SortProperties::Unordered) };
        let is_one = |e: &ExprProperties| e.sort_properties == SortProperties::Singleton;
        let is_fixed = is_one(width) && origin.iter().all(is_one);
        Ok(if is_fixed { value.sort_properties } else { SortProperties::Unordered })
    }

    fn invoke_with_args(&self, args: ScalarFunctionArgs) -> Result<ColumnarValue> {
        let ([widths, values] | [widths, values, _]) = args.args.as_slice() else {
            return Err(DataFusionError::Internal("date_bin takes two or three arguments".into()));
        };
        let is_scalar = args.args.iter().all(|v| matches!(v, ColumnarValue::Scalar(_)));
        let rows = if is_scalar { 1 } else { args.number_rows };
        let output = values.data_type();
        let counts = |value: &ColumnarValue| -> Result<ArrayRef> {
            Ok(cast(&value.to_array(rows)?, &ArrowType::Int64)?)
        };
        let origins = match args.args.get(2) {
            Some(origin) => counts(origin)?,
            None => Arc::new(Int64Array::from(vec![0; rows])),
        };
        let (widths, values) = (widths.to_array(rows)?, counts(values)?);
        let starts = starts(&widths, &values, &origins, &output)?;
        let starts = cast(&starts, &output)?;
        check_years(starts.as_ref())?;
        if is_scalar {
            return Ok(ColumnarValue::Scalar(ScalarValue::try_from_array(&starts, 0)?));
        }
        Ok(ColumnarValue::Array(starts))
    }
}

fn starts(
    widths: &ArrayRef,
    values: &ArrayRef,
    origins: &ArrayRef,
    output: &ArrowType,
) -> Result<Int64Array> {
    let is_time = matches!(output, ArrowType::Time64(_));
    let widths = widths.as_primitive::<IntervalMonthDayNanoType>().iter();
    let times = values.as_primitive::<Int64Type>().iter().zip(origins.as_primitive::<Int64Type>());
    // Mostly one width for all rows.
    let mut last = None;
    widths
        .zip(times)
        .map(|(width, (value, origin))| {
            let (Some(width), Some(value), Some(origin)) = (width, value, origin) else {
                return Ok(None);
            };
            let width = match last {
                Some((known, made)) if known == width => made,
                _ => {
                    let made = Width::of(width)?;
                    last = Some((width, made));
                    made
                }
            };
            let start = match width {
                Width::Months(_) if is_time => {
                    return Err(refused("a bin of times of day is not months wide"));
                }
                width => width.start(value, origin),
            };
            let is_there = |start: &i64| !is_time || (0..DAY_MICROS).contains(start);
            let start = start.filter(is_there);
            start.map(Some).ok_or_else(|| refused("date_bin: the bin starts at no such time"))
        })
        .collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn at(year: u32, month: u32, day: u32, micros: i64) -> i64 {
        days_from_date(year, month, day).expect("a date") * DAY_MICROS + micros
    }

    #[test]
    fn bins_start_before_their_values_in_all_years() {
        let hour = Width::Micros(DAY_MICROS / 24);
        for year in [1, 1600, 1969, 1970, 2263, 9999] {
            let midnight = at(year, 3, 1, 0);
            assert_eq!(hour.start(midnight + 1, 0), Some(midnight));
            assert_eq!(hour.start(midnight, 0), Some(midnight));
        }
        assert_eq!(hour.start(-1, 0), Some(-DAY_MICROS / 24));
        assert_eq!(hour.start(i64::MIN, 1), None);
    }

    #[test]
    fn bins_of_months_start_on_the_day_of_their_origin() {
        let month = Width::Months(1);
        let origin = at(2000, 1, 31, 5);
        assert_eq!(month.start(at(2024, 2, 29, 4), origin), Some(at(2024, 1, 31, 5)));
        assert_eq!(month.start(at(2024, 2, 29, 5), origin), Some(at(2024, 2, 29, 5)));
        assert_eq!(month.start(at(9999, 12, 31, 5), origin), Some(at(9999, 12, 31, 5)));
        assert_eq!(Width::Months(12).start(at(1, 1, 1, 0), at(1, 2, 1, 0)), None);
    }

    #[test]
    fn a_width_is_months_or_a_time() {
        let of = |months, days, nanos| Width::of(IntervalMonthDayNano::new(months, days, nanos));
        assert!(of(1, 0, 0).is_ok() && of(0, 1, -1_000).is_ok());
        for wrong in [of(1, 1, 0), of(0, 0, 0), of(-1, 0, 0), of(0, -1, 0), of(0, 0, 1)] {
            assert!(wrong.is_err());
        }
    }
}
