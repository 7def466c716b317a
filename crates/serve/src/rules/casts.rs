//! Casts that round.
//!
//! A number cast to an integer becomes the nearest one, as it does in PostgreSQL and DuckDB: halves of a DECIMAL go away from
//! zero, halves of a float to the even neighbour. The engine cuts the digits off. INSERT casts by the same [`convert`].
//!
//! A DECIMAL cast to one of fewer digits after the point is rounded by a function as well: the engine takes a cast beside a
//! literal away (`CAST(x AS DECIMAL(9,1)) = 0` becomes `x = 0`) as if nothing were lost by it. A TRY_CAST, which may make NULL of
//! a value, is kept from it by a function that does nothing.

use std::sync::Arc;

use datafusion::arrow::array::cast::AsArray;
use datafusion::arrow::array::{Array, ArrayRef};
use datafusion::arrow::compute::{CastOptions, cast_with_options};
use datafusion::arrow::datatypes::{
    DECIMAL128_MAX_PRECISION, DataType as ArrowType, Decimal128Type, Float32Type, Float64Type,
};
use datafusion::arrow::error::ArrowError;
use datafusion::common::DFSchema;
use datafusion::common::config::ConfigOptions;
use datafusion::common::tree_node::Transformed;
use datafusion::error::{DataFusionError, Result};
use datafusion::logical_expr::{
    ColumnarValue, Expr, ExprSchemable, LogicalPlan, ScalarFunctionArgs, ScalarUDF, ScalarUDFImpl,
    Signature, Volatility,
};
use datafusion::optimizer::AnalyzerRule;

use super::moments::{read_texts, write_texts};
use super::{call, map_values, only, rewrite_expressions};

/// The rule.
#[derive(Debug)]
pub(super) struct RoundedCasts;

impl AnalyzerRule for RoundedCasts {
    fn analyze(&self, plan: LogicalPlan, _: &ConfigOptions) -> Result<LogicalPlan> {
        rewrite_expressions(plan, &rewrite)
    }

    fn name(&self) -> &str {
        "rounded_casts"
    }
}

fn rewrite(mut expr: Expr, schema: &DFSchema) -> Result<Transformed<Expr>> {
    let (inner, to) = match &mut expr {
        Expr::Cast(cast) => (&mut cast.expr, &cast.field),
        Expr::TryCast(cast) => (&mut cast.expr, &cast.field),
        _ => return Ok(Transformed::no(expr)),
    };
    let places = places_left(&inner.get_type(schema)?, to.data_type());
    if let Some(places) = places {
        let operand = std::mem::take(inner.as_mut());
        **inner = call(ScalarUDF::from(Nearest::new(places)), vec![operand]);
    }
    Ok(match expr {
        Expr::TryCast(_) => Transformed::yes(call(ScalarUDF::from(Kept::default()), vec![expr])),
        expr if places.is_some() => Transformed::yes(expr),
        expr => Transformed::no(expr),
    })
}

/// The digits after the point that a cast leaves, if it takes any away.
fn places_left(from: &ArrowType, to: &ArrowType) -> Option<i8> {
    let left = match to {
        ArrowType::Decimal128(_, scale) => *scale,
        other if other.is_integer() => 0,
        _ => return None,
    };
    match from {
        ArrowType::Decimal128(_, scale) => (*scale > left).then_some(left),
        // The engine rounds floats to a DECIMAL.
        other => (other.is_floating() && to.is_integer()).then_some(0),
    }
}

/// Values in another type, as a CAST gives them.
///
/// # Errors
/// When one does not fit, or is not written as the type wants.
pub(crate) fn convert(array: &ArrayRef, to: &ArrowType) -> Result<ArrayRef, ArrowError> {
    if let Some(converted) = read_texts(array, to).or_else(|| write_texts(array, to)) {
        return converted;
    }
    let options = CastOptions { safe: false, ..CastOptions::default() };
    let rounded;
    let array = match places_left(array.data_type(), to) {
        Some(places) => {
            rounded = nearest(array, places)?;
            &rounded
        }
        None => array,
    };
    cast_with_options(array, to, &options)
}

/// The nearest numbers of so many digits after the point, of which floats have none.
fn nearest(array: &ArrayRef, places: i8) -> Result<ArrayRef, ArrowError> {
    Ok(match array.data_type() {
        ArrowType::Decimal128(_, scale) => {
            let unit = 10i128.pow(u32::try_from(*scale - places).unwrap_or(0));
            let whole = array.as_primitive::<Decimal128Type>().unary::<_, Decimal128Type>(|v| {
                let (quotient, rest) = (v / unit, v % unit);
                // At most 10^38 - 1, whose double fits.
                if rest.abs() * 2 >= unit { quotient + v.signum() } else { quotient }
            });
            Arc::new(whole.with_precision_and_scale(DECIMAL128_MAX_PRECISION, places)?)
        }
        ArrowType::Float64 => Arc::new(
            array.as_primitive::<Float64Type>().unary::<_, Float64Type>(f64::round_ties_even),
        ),
        ArrowType::Float32 => Arc::new(
            array.as_primitive::<Float32Type>().unary::<_, Float32Type>(f32::round_ties_even),
        ),
        _ => Arc::clone(array),
    })
}

/// Its argument, in which the engine does not look for a cast.
#[derive(Debug, PartialEq, Eq, Hash)]
struct Kept {
    signature: Signature,
}

impl Default for Kept {
    fn default() -> Self {
        Kept { signature: Signature::any(1, Volatility::Immutable) }
    }
}

impl ScalarUDFImpl for Kept {
    fn name(&self) -> &str {
        "kept"
    }

    fn display_name(&self, args: &[Expr]) -> Result<String> {
        Ok(args.first().map_or_else(|| self.name().to_owned(), ToString::to_string))
    }

    fn signature(&self) -> &Signature {
        &self.signature
    }

    fn return_type(&self, types: &[ArrowType]) -> Result<ArrowType> {
        types
            .first()
            .cloned()
            .ok_or_else(|| DataFusionError::Internal("kept: no argument".to_owned()))
    }

    fn invoke_with_args(&self, args: ScalarFunctionArgs) -> Result<ColumnarValue> {
        Ok(only(&args.args)?.clone())
    }
}

/// [`nearest`] as a function.
#[derive(Debug, PartialEq, Eq, Hash)]
struct Nearest {
    places: i8,
    signature: Signature,
}

impl Nearest {
    fn new(places: i8) -> Self {
        Nearest { places, signature: Signature::any(1, Volatility::Immutable) }
    }
}

impl ScalarUDFImpl for Nearest {
    fn name(&self) -> &str {
        "nearest"
    }

    fn signature(&self) -> &Signature {
        &self.signature
    }

    fn return_type(&self, types: &[ArrowType]) -> Result<ArrowType> {
        match types {
            [ArrowType::Decimal128(..)] => {
                Ok(ArrowType::Decimal128(DECIMAL128_MAX_PRECISION, self.places))
            }
            [other] => Ok(other.clone()),
            _ => Err(DataFusionError::Internal("one number is rounded".into())),
        }
    }

    fn is_strict(&self) -> bool {
        true
    }

    fn invoke_with_args(&self, args: ScalarFunctionArgs) -> Result<ColumnarValue> {
        map_values(only(&args.args)?, |array| Ok(nearest(array, self.places)?))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use datafusion::arrow::array::{Decimal128Array, Float64Array, Int64Array};

    #[test]
    fn halves_of_decimals_go_away_from_zero_and_of_floats_to_even() {
        let decimals: ArrayRef = Arc::new(
            Decimal128Array::from(vec![25, -25, 24, 26, -4, 5])
                .with_precision_and_scale(3, 1)
                .expect("a type"),
        );
        let expected: ArrayRef = Arc::new(Int64Array::from(vec![3, -3, 2, 3, 0, 1]));
        assert_eq!(&convert(&decimals, &ArrowType::Int64).expect("fits"), &expected);
        let floats: ArrayRef = Arc::new(Float64Array::from(vec![2.5, -2.5, 3.5, 0.5, 1.6]));
        let expected: ArrayRef = Arc::new(Int64Array::from(vec![2, -2, 4, 0, 2]));
        assert_eq!(&convert(&floats, &ArrowType::Int64).expect("fits"), &expected);
    }

    #[test]
    fn what_is_no_integer_is_an_error() {
        for wrong in [f64::NAN, f64::INFINITY, 1e19] {
            let floats: ArrayRef = Arc::new(Float64Array::from(vec![wrong]));
            assert!(convert(&floats, &ArrowType::Int64).is_err(), "{wrong}");
        }
    }
}
