//! Dates and times are of the years 0001 to 9999, which is what tables hold and files are written with.
//!
//! The engine computes with the years of 64 bits: a day after 9999-12-31 it has 10000-01-01, which no table, export or client
//! reads back. Whatever makes a time here looks at it: arithmetic, `date_bin`, functions of numbers and texts, parameters.
//!
//! Cost: a comparison with two constants for each time that is made.

use datafusion::arrow::array::cast::AsArray;
use datafusion::arrow::array::{Array, ArrayRef};
use datafusion::arrow::datatypes::{
    DataType as ArrowType, Date32Type, TimeUnit, TimestampMicrosecondType,
};
use datafusion::error::{DataFusionError, Result};
use datafusion::logical_expr::Expr;

use coload_types::calendar::{DATE_DAYS, DAY_MICROS, date_from_days};

use super::unary::Unary;

/// Functions of the engine that make a time of something else.
const MAKING: [&str; 9] = [
    "make_date",
    "to_date",
    "to_timestamp",
    "to_timestamp_seconds",
    "to_timestamp_millis",
    "to_timestamp_micros",
    "to_timestamp_nanos",
    "from_unixtime",
    "to_local_time",
];

/// Whether a function of the engine may make a time of any year.
pub(super) fn makes_times(function: &str) -> bool {
    MAKING.contains(&function)
}

/// A date or timestamp, which is an error in other years.
pub(super) fn within_years(expr: Expr) -> Expr {
    WITHIN_YEARS.of(expr)
}

/// Checks dates and timestamps in microseconds; other values are let through.
///
/// # Errors
/// When one is of another year.
pub(crate) fn check_years(array: &dyn Array) -> Result<()> {
    let beyond = match array.data_type() {
        ArrowType::Date32 => {
            let mut days = array.as_primitive::<Date32Type>().iter().flatten().map(i64::from);
            days.find(|days| !DATE_DAYS.contains(days))
        }
        ArrowType::Timestamp(TimeUnit::Microsecond, _) => {
            const FIRST: i64 = *DATE_DAYS.start() * DAY_MICROS;
            const END: i64 = (*DATE_DAYS.end() + 1) * DAY_MICROS;
            let mut micros = array.as_primitive::<TimestampMicrosecondType>().iter().flatten();
            micros.find(|micros| !(FIRST..END).contains(micros)).map(|m| m.div_euclid(DAY_MICROS))
        }
        _ => None,
    };
    match beyond {
        None => Ok(()),
        Some(days) => Err(beyond_years(days)),
    }
}

/// The error for a day, counted from 1970, that is in no year of the calendar.
pub(super) fn beyond_years(days: i64) -> DataFusionError {
    let (year, ..) = date_from_days(days);
    DataFusionError::Execution(format!(
        "a time is out of range: it would be in the year {year}, and times are in the years 0001 to 9999"
    ))
}

/// [`check_years`] as a function.
static WITHIN_YEARS: Unary = Unary {
    name: "within_years",
    is_hidden: true,
    returns: ArrowType::clone,
    map: |array| {
        check_years(array.as_ref())?;
        Ok(ArrayRef::clone(array))
    },
};

#[cfg(test)]
mod tests {
    use super::*;
    use datafusion::arrow::array::{Date32Array, TimestampMicrosecondArray};

    #[test]
    fn the_first_and_the_last_time_are_the_ends() {
        let (first, last) = (-719_162, 2_932_896);
        assert!(check_years(&Date32Array::from(vec![Some(first), None, Some(last)])).is_ok());
        let text = check_years(&Date32Array::from(vec![last + 1])).expect_err("beyond").to_string();
        assert!(text.contains("the year 10000"), "{text}");
        let text =
            check_years(&Date32Array::from(vec![first - 1])).expect_err("before").to_string();
        assert!(text.contains("the year 0,"), "{text}");
        let (first, end) = (i64::from(first) * DAY_MICROS, (i64::from(last) + 1) * DAY_MICROS);
        let of = |micros: i64| check_years(&TimestampMicrosecondArray::from(vec![micros]));
        assert!(of(first).is_ok() && of(end - 1).is_ok());
        assert!(of(first - 1).is_err() && of(end).is_err());
        assert!(of(i64::MIN).is_err() && of(i64::MAX).is_err());
    }
}
