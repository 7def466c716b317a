//! `date_trunc` of timestamps in all years.
//!
//! The engine's goes by nanoseconds for most units, which end in the year 2262.

use std::sync::Arc;

use coload_types::calendar::{DAY_MICROS, date_from_days, days_in_month};
use datafusion::arrow::array::ArrayRef;
use datafusion::arrow::array::cast::AsArray;
use datafusion::arrow::datatypes::{
    DataType as ArrowType, FieldRef, TimeUnit, TimestampMicrosecondType,
};
use datafusion::error::{DataFusionError, Result};
use datafusion::functions::datetime::date_trunc::DateTruncFunc;
use datafusion::logical_expr::sort_properties::{ExprProperties, SortProperties};
use datafusion::logical_expr::{
    ColumnarValue, ReturnFieldArgs, ScalarFunctionArgs, ScalarUDFImpl, Signature,
};

use super::{map_values, refused};
use crate::types::UTC;

#[derive(Debug, Default, PartialEq, Eq, Hash)]
pub(super) struct DateTrunc {
    engine: DateTruncFunc,
}

/// What has a start.
#[derive(Debug, Clone, Copy)]
enum Span {
    Micros(i64),
    Week,
    Months(u32),
}

const SECOND_MICROS: i64 = 1_000_000;

impl Span {
    fn of(name: &str) -> Option<Self> {
        Some(match name.to_ascii_lowercase().as_str() {
            "microsecond" => Span::Micros(1),
            "millisecond" => Span::Micros(SECOND_MICROS / 1_000),
            "second" => Span::Micros(SECOND_MICROS),
            "minute" => Span::Micros(60 * SECOND_MICROS),
            "hour" => Span::Micros(3_600 * SECOND_MICROS),
            "day" => Span::Micros(DAY_MICROS),
            "week" => Span::Week,
            "month" => Span::Months(1),
            "quarter" => Span::Months(3),
            "year" => Span::Months(12),
            _ => return None,
        })
    }

    /// The start of the span in which a time lies, both since the epoch; `None` when it is beyond all times.
    fn start(self, micros: i64) -> Option<i64> {
        match self {
            Span::Micros(unit) => micros.div_euclid(unit).checked_mul(unit),
            Span::Week | Span::Months(_) => {
                self.first_day(micros.div_euclid(DAY_MICROS)).checked_mul(DAY_MICROS)
            }
        }
    }

    /// The first day of the span in which a day lies, both since the epoch, which was a Thursday.
    fn first_day(self, day: i64) -> i64 {
        const MONDAY_BEFORE_EPOCH: i64 = 3;
        const WEEK_DAYS: i64 = 7;
        match self {
            Span::Micros(_) => day,
            Span::Week => day - (day + MONDAY_BEFORE_EPOCH).rem_euclid(WEEK_DAYS),
            Span::Months(months) => {
                let (year, month, day_of_month) = date_from_days(day);
                // The calendar repeats after 400 years.
                let like = year.rem_euclid(400) as u32 + 400;
                let first = month - (month - 1) % months;
                let before: u32 = (first..month).map(|m| days_in_month(like, m)).sum();
                day - i64::from(day_of_month - 1 + before)
            }
        }
    }
}

impl ScalarUDFImpl for DateTrunc {
    fn name(&self) -> &str {
        self.engine.name()
    }

    fn aliases(&self) -> &[String] {
        self.engine.aliases()
    }

    fn signature(&self) -> &Signature {
        self.engine.signature()
    }

    fn return_type(&self, types: &[ArrowType]) -> Result<ArrowType> {
        self.engine.return_type(types)
    }

    fn return_field_from_args(&self, args: ReturnFieldArgs) -> Result<FieldRef> {
        self.engine.return_field_from_args(args)
    }

    fn output_ordering(&self, input: &[ExprProperties]) -> Result<SortProperties> {
        self.engine.output_ordering(input)
    }

    fn invoke_with_args(&self, args: ScalarFunctionArgs) -> Result<ColumnarValue> {
        let span = match args.args.first() {
            Some(ColumnarValue::Scalar(name)) => name.try_as_str().flatten().and_then(Span::of),
            _ => None,
        };
        match (span, args.args.get(1)) {
            (Some(span), Some(value)) if is_micros(&value.data_type()) => {
                map_values(value, |array| truncated(array, span))
            }
            _ => self.engine.invoke_with_args(args),
        }
    }
}

fn is_micros(data_type: &ArrowType) -> bool {
    match data_type {
        ArrowType::Timestamp(TimeUnit::Microsecond, zone) => {
            zone.as_deref().is_none_or(|zone| zone == UTC)
        }
        _ => false,
    }
}

fn truncated(array: &ArrayRef, span: Span) -> Result<ArrayRef> {
    let times = array.as_primitive::<TimestampMicrosecondType>();
    let starts = times.try_unary::<_, TimestampMicrosecondType, DataFusionError>(|v| {
        span.start(v).ok_or_else(|| refused("date_trunc: the start is beyond all times"))
    })?;
    Ok(Arc::new(starts.with_data_type(array.data_type().clone())))
}

#[cfg(test)]
mod tests {
    use super::*;
    use coload_types::calendar::days_from_date;

    #[test]
    fn spans_start_on_their_first_day() {
        let day = |y, m, d| days_from_date(y, m, d).expect("a date");
        assert_eq!(Span::Week.first_day(0), -3);
        assert_eq!(Span::Week.first_day(-3), -3);
        assert_eq!(Span::Week.first_day(-4), -10);
        assert_eq!(Span::Months(1).first_day(day(2024, 2, 29)), day(2024, 2, 1));
        assert_eq!(Span::Months(3).first_day(day(2024, 3, 31)), day(2024, 1, 1));
        assert_eq!(Span::Months(12).first_day(day(9999, 12, 31)), day(9999, 1, 1));
        assert_eq!(Span::Months(12).first_day(day(1, 12, 31)), day(1, 1, 1));
    }

    #[test]
    fn a_start_is_beyond_no_time() {
        assert_eq!(Span::Micros(SECOND_MICROS).start(-1), Some(-SECOND_MICROS));
        for span in [Span::Micros(DAY_MICROS), Span::Week, Span::Months(12)] {
            assert_eq!(span.start(i64::MIN), None);
            assert!(span.start(i64::MAX).is_some());
        }
    }
}
