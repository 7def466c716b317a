//! `round` of floats.
//!
//! The engine multiplies by a power of ten that it has multiplied together, and divides by it again: `round(1e308, -308)` is
//! 1.0000000000000006e308 there, and `round(1e-320, 322)` no number. Here the power is the float nearest to it, thousands are
//! divided by, and what has no digits behind the place stays as it is.

use datafusion::arrow::array::cast::AsArray;
use datafusion::arrow::array::{Array, ArrayRef, Float64Array};
use datafusion::arrow::compute::cast;
use datafusion::arrow::datatypes::{DataType as ArrowType, Float32Type, Float64Type, Int32Type};
use datafusion::common::ScalarValue;
use datafusion::error::{DataFusionError, Result};
use datafusion::logical_expr::ColumnarValue;

/// From here on, a float has no digits after the point.
const WHOLE: f64 = (1_u64 << f64::MANTISSA_DIGITS) as f64;

/// Digits after the point, or before it where negative, and the power of ten that they are.
#[derive(Debug, Clone, Copy)]
struct Place {
    digits: i32,
    power: f64,
}

impl Place {
    fn new(digits: i32) -> Result<Self> {
        let power = format!("1e{}", digits.unsigned_abs()).parse();
        let power = power.map_err(|_| DataFusionError::Internal(format!("1e{digits}")))?;
        Ok(Place { digits, power })
    }

    /// The number of that place that is nearest, of two the one away from zero. Infinite when that is no float.
    fn round(self, value: f64) -> f64 {
        if !value.is_finite() {
            return value;
        }
        if self.digits < 0 {
            // Half of an infinite power is more than any float.
            let whole = (value / self.power).round();
            return if whole == 0.0 { 0.0 } else { whole * self.power };
        }
        let scaled = value * self.power;
        if scaled.abs() < WHOLE { scaled.round() / self.power } else { value }
    }
}

/// Floats rounded to the places; `None` when the values are none.
///
/// # Errors
/// When the rounded number is too large.
pub(super) fn round(
    values: &ColumnarValue,
    places: &ColumnarValue,
    rows: usize,
) -> Option<Result<ColumnarValue>> {
    matches!(values.data_type(), ArrowType::Float32 | ArrowType::Float64).then(|| {
        let is_scalar = [values, places].iter().all(|v| matches!(v, ColumnarValue::Scalar(_)));
        let rounded = rounded(values, places, if is_scalar { 1 } else { rows })?;
        Ok(match is_scalar {
            true => ColumnarValue::Scalar(ScalarValue::try_from_array(&rounded, 0)?),
            false => ColumnarValue::Array(rounded),
        })
    })
}

fn rounded(values: &ColumnarValue, places: &ColumnarValue, rows: usize) -> Result<ArrayRef> {
    let data_type = values.data_type();
    let values = cast(&values.to_array(rows)?, &ArrowType::Float64)?;
    let values = values.as_primitive::<Float64Type>();
    let rounded: Float64Array = match places {
        ColumnarValue::Scalar(ScalarValue::Int32(Some(digits))) => {
            let place = Place::new(*digits)?;
            values.unary(|value| place.round(value))
        }
        places => {
            let places = cast(&places.to_array(rows)?, &ArrowType::Int32)?;
            let pairs = values.iter().zip(places.as_primitive::<Int32Type>());
            let round = |(value, digits): (Option<f64>, Option<i32>)| match (value, digits) {
                (Some(value), Some(digits)) => Ok(Some(Place::new(digits)?.round(value))),
                _ => Ok(None),
            };
            pairs.map(round).collect::<Result<_>>()?
        }
    };
    let rounded = cast(&rounded, &data_type)?;
    check_finite(values, &rounded)?;
    Ok(rounded)
}

/// Only what was infinite may be.
fn check_finite(values: &Float64Array, rounded: &ArrayRef) -> Result<()> {
    let beyond = |row: usize| match rounded.data_type() {
        ArrowType::Float32 => rounded.as_primitive::<Float32Type>().value(row).is_infinite(),
        _ => rounded.as_primitive::<Float64Type>().value(row).is_infinite(),
    };
    let is_wrong =
        |row: &usize| rounded.is_valid(*row) && beyond(*row) && values.value(*row).is_finite();
    match (0..rounded.len()).find(is_wrong) {
        None => Ok(()),
        Some(row) => Err(DataFusionError::Execution(format!(
            "round: {:e} rounded is out of range",
            values.value(row)
        ))),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn of(value: f64, digits: i32) -> f64 {
        Place::new(digits).expect("a place").round(value)
    }

    #[test]
    fn the_digits_that_stay_are_exact() {
        for (value, digits, expected) in [
            (1e308, -308, 1e308),
            (1.5e308, -308, f64::INFINITY),
            (4e307, -308, 0.0),
            (1e308, -309, 0.0),
            (1e-320, 322, 1e-320),
            (123_456.789, -3, 123_000.0),
            (-1_500.0, -3, -2_000.0),
            (2.5, 0, 3.0),
            (-2.5, 0, -3.0),
            (0.125, 2, 0.13),
            (123_456_789.123_456_79, 12, 123_456_789.123_456_79),
            (1e300, 300, 1e300),
            (f64::INFINITY, -3, f64::INFINITY),
            (5.0, i32::MIN, 0.0),
            (5.0, i32::MAX, 5.0),
        ] {
            assert_eq!(of(value, digits), expected, "round({value}, {digits})");
        }
        assert!(of(f64::NAN, 2).is_nan());
        assert!(of(-0.4, 0).to_bits() == 0.0_f64.to_bits() || of(-0.4, 0) == 0.0);
    }

    #[test]
    fn what_is_no_float_any_more_is_an_error() {
        let value = |v| ColumnarValue::Scalar(v);
        let places = value(ScalarValue::Int32(Some(-308)));
        let double = value(ScalarValue::Float64(Some(1.5e308)));
        assert!(round(&double, &places, 1).expect("a float").is_err());
        let real = value(ScalarValue::Float32(Some(3e38)));
        let places = value(ScalarValue::Int32(Some(-39)));
        assert!(round(&real, &places, 1).expect("a float").is_ok());
        let real = value(ScalarValue::Float32(Some(f32::MAX)));
        let places = value(ScalarValue::Int32(Some(-38)));
        assert!(round(&real, &places, 1).expect("a float").is_ok());
        let whole = value(ScalarValue::Int64(Some(7)));
        assert!(round(&whole, &places, 1).is_none());
    }
}
