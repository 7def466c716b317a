//! The order of intervals.
//!
//! An interval has months, days and nanoseconds, and the engine compares them one after the other, so that 30 hours are less
//! than a day. SQL compares lengths, with months of 30 days and days of 24 hours. [`key_of`] is that length.

use std::sync::Arc;

use datafusion::arrow::array::cast::AsArray;
use datafusion::arrow::array::{Array, ArrayRef};
use datafusion::arrow::datatypes::{
    DECIMAL128_MAX_PRECISION, DataType as ArrowType, Decimal128Type, DurationMicrosecondType,
    IntervalMonthDayNanoType, TimeUnit,
};
use datafusion::common::DFSchema;
use datafusion::error::{DataFusionError, Result};
use datafusion::logical_expr::{Expr, ExprSchemable, cast as cast_expr};

use super::arithmetic::INTERVAL;
use super::unary::Unary;

const DAY_NANOS: i128 = 86_400_000_000_000;
const MONTH_DAYS: i128 = 30;
const MICRO_NANOS: i128 = 1_000;

/// Nanoseconds, as a number in which each interval fits.
const KEY: ArrowType = ArrowType::Decimal128(DECIMAL128_MAX_PRECISION, 0);

/// An interval or duration as a number that compares as it does.
///
/// # Errors
/// When the expression has no type.
pub(super) fn key_of(expr: Expr, schema: &DFSchema) -> Result<Expr> {
    let operand = match expr {
        // The engine makes intervals of durations, and not all are one.
        Expr::Cast(cast) if matches!(cast.expr.get_type(schema)?, ArrowType::Duration(_)) => {
            *cast.expr
        }
        other => other,
    };
    let operand = match operand.get_type(schema)? {
        ArrowType::Duration(_) => cast_expr(operand, ArrowType::Duration(TimeUnit::Microsecond)),
        _ => cast_expr(operand, INTERVAL),
    };
    Ok(LENGTH.of(operand))
}

/// Whether values of a type are intervals with months, days and nanoseconds.
pub(super) fn is_interval(data_type: &ArrowType) -> bool {
    matches!(data_type, ArrowType::Interval(_))
}

/// The length of an interval as a function.
static LENGTH: Unary =
    Unary { name: "interval_length", is_hidden: false, returns: |_| KEY, map: lengths };

fn lengths(array: &ArrayRef) -> Result<ArrayRef> {
    if let Some(durations) = array.as_primitive_opt::<DurationMicrosecondType>() {
        let lengths = durations.unary::<_, Decimal128Type>(|v| i128::from(v) * MICRO_NANOS);
        return Ok(Arc::new(lengths.with_data_type(KEY)));
    }
    let intervals = array.as_primitive_opt::<IntervalMonthDayNanoType>().ok_or_else(|| {
        DataFusionError::Internal(format!("{} is no interval", array.data_type()))
    })?;
    let lengths = intervals.unary::<_, Decimal128Type>(|i| {
        (i128::from(i.months) * MONTH_DAYS + i128::from(i.days)) * DAY_NANOS
            + i128::from(i.nanoseconds)
    });
    Ok(Arc::new(lengths.with_data_type(KEY)))
}

#[cfg(test)]
mod tests {
    use super::*;
    use datafusion::arrow::array::IntervalMonthDayNanoArray;
    use datafusion::arrow::datatypes::IntervalMonthDayNano;

    #[test]
    fn a_month_is_thirty_days_and_a_day_is_24_hours() {
        let of = |months, days, nanos| Some(IntervalMonthDayNano::new(months, days, nanos));
        let array: ArrayRef = Arc::new(IntervalMonthDayNanoArray::from(vec![
            of(1, 0, 0),
            of(0, 30, 0),
            of(0, 29, 86_400_000_000_000),
            of(i32::MIN, i32::MIN, i64::MIN),
        ]));
        let lengths = lengths(&array).expect("intervals");
        let lengths = lengths.as_primitive::<Decimal128Type>();
        assert_eq!(lengths.value(0), lengths.value(1));
        assert_eq!(lengths.value(1), lengths.value(2));
        assert!(lengths.value(3) < 0);
    }
}
