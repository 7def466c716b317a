//! One NaN, and zeros that are equal.
//!
//! Stored floats keep every bit and stand in total order: -NaN, -inf, .., -0, 0, .., inf, NaN. SQL compares numbers: -0 is 0,
//! and a NaN is equal to itself and greater than all else, whatever its sign bit says. [`canonical_f64`] maps a float to the
//! one that stands for all of its equals, so that the total order of the mapped ones is SQL's.

use std::sync::Arc;

use datafusion::arrow::array::cast::AsArray;
use datafusion::arrow::array::{Array, ArrayRef, make_array};
use datafusion::arrow::datatypes::{DataType as ArrowType, Float32Type, Float64Type};
use datafusion::common::ScalarValue;
use datafusion::error::{DataFusionError, Result};
use datafusion::logical_expr::expr::ScalarFunction;
use datafusion::logical_expr::{
    ColumnarValue, Expr, ScalarFunctionArgs, ScalarUDF, ScalarUDFImpl, Signature, Volatility,
};

use super::call;

/// The float that stands for all equal to this one.
pub(crate) fn canonical_f64(value: f64) -> f64 {
    // -0 + 0 is 0; all else stays.
    if value.is_nan() { f64::NAN } else { value + 0.0 }
}

/// The same as [`canonical_f64`], of 32 bits.
pub(crate) fn canonical_f32(value: f32) -> f32 {
    if value.is_nan() { f32::NAN } else { value + 0.0 }
}

/// Whether a type is one of floats that are stored.
pub(super) fn is_float(data_type: &ArrowType) -> bool {
    matches!(data_type, ArrowType::Float32 | ArrowType::Float64)
}

/// Whether values are such floats, or lists of them.
pub(super) fn has_floats(data_type: &ArrowType) -> bool {
    match data_type {
        ArrowType::List(item)
        | ArrowType::LargeList(item)
        | ArrowType::FixedSizeList(item, _)
        | ArrowType::ListView(item)
        | ArrowType::LargeListView(item) => has_floats(item.data_type()),
        other => is_float(other),
    }
}

/// Floats with one NaN, and zeros as they are.
pub(super) fn canonical_nans(array: ArrayRef) -> ArrayRef {
    match array.data_type() {
        ArrowType::Float64 => Arc::new(
            array
                .as_primitive::<Float64Type>()
                .unary::<_, Float64Type>(|v| if v.is_nan() { f64::NAN } else { v }),
        ),
        ArrowType::Float32 => Arc::new(
            array
                .as_primitive::<Float32Type>()
                .unary::<_, Float32Type>(|v| if v.is_nan() { f32::NAN } else { v }),
        ),
        _ => array,
    }
}

/// The floats that stand for those of an array; of lists, lists of them.
pub(super) fn canonical(array: ArrayRef) -> ArrayRef {
    match array.data_type() {
        ArrowType::Float64 => {
            Arc::new(array.as_primitive::<Float64Type>().unary::<_, Float64Type>(canonical_f64))
        }
        ArrowType::Float32 => {
            Arc::new(array.as_primitive::<Float32Type>().unary::<_, Float32Type>(canonical_f32))
        }
        list if has_floats(list) => of_lists(&array),
        _ => array,
    }
}

/// Lists, which are the same but for their elements.
fn of_lists(array: &ArrayRef) -> ArrayRef {
    let lists = array.to_data();
    let items = lists.child_data().iter().map(|items| canonical(make_array(items.clone())));
    let items = items.map(|items| items.to_data()).collect();
    match lists.into_builder().child_data(items).build() {
        Ok(lists) => make_array(lists),
        // There are as many elements, of the same type.
        Err(_) => Arc::clone(array),
    }
}

/// An operand as the float that stands for it; a literal at once.
pub(super) fn canonical_of(expr: Expr) -> Expr {
    match expr {
        Expr::Literal(ScalarValue::Float64(Some(v)), metadata) => {
            Expr::Literal(ScalarValue::Float64(Some(canonical_f64(v))), metadata)
        }
        Expr::Literal(ScalarValue::Float32(Some(v)), metadata) => {
            Expr::Literal(ScalarValue::Float32(Some(canonical_f32(v))), metadata)
        }
        // One zero includes one NaN, not the other way round.
        Expr::ScalarFunction(mut f) if is_canonical(&f) => {
            f.func = Arc::new(ScalarUDF::from(Canonical::new(Zeros::One)));
            Expr::ScalarFunction(f)
        }
        other => call(ScalarUDF::from(Canonical::new(Zeros::One)), vec![other]),
    }
}

fn is_canonical(function: &ScalarFunction) -> bool {
    function.func.inner().is::<Canonical>()
}

/// The result of a function with one NaN.
pub(super) fn one_nan(expr: Expr) -> Expr {
    call(ScalarUDF::from(Canonical::new(Zeros::Two)), vec![expr])
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
enum Zeros {
    One,
    Two,
}

/// [`canonical_f64`] as a function.
#[derive(Debug, PartialEq, Eq, Hash)]
struct Canonical {
    zeros: Zeros,
    signature: Signature,
}

impl Canonical {
    fn new(zeros: Zeros) -> Self {
        Canonical { zeros, signature: Signature::any(1, Volatility::Immutable) }
    }
}

impl ScalarUDFImpl for Canonical {
    fn name(&self) -> &str {
        match self.zeros {
            Zeros::One => "canonical_float",
            Zeros::Two => "canonical_nan",
        }
    }

    fn display_name(&self, args: &[Expr]) -> Result<String> {
        Ok(args.first().map_or_else(|| self.name().to_owned(), ToString::to_string))
    }

    fn signature(&self) -> &Signature {
        &self.signature
    }

    fn return_type(&self, types: &[ArrowType]) -> Result<ArrowType> {
        types.first().cloned().ok_or_else(|| DataFusionError::Internal("no argument".into()))
    }

    fn is_strict(&self) -> bool {
        true
    }

    fn invoke_with_args(&self, mut args: ScalarFunctionArgs) -> Result<ColumnarValue> {
        let map = match self.zeros {
            Zeros::One => canonical,
            Zeros::Two => canonical_nans,
        };
        match args.args.pop() {
            Some(ColumnarValue::Array(array)) => Ok(ColumnarValue::Array(map(array))),
            Some(ColumnarValue::Scalar(scalar)) => {
                let array = map(scalar.to_array()?);
                Ok(ColumnarValue::Scalar(ScalarValue::try_from_array(&array, 0)?))
            }
            None => Err(DataFusionError::Internal("no argument".into())),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn equal_floats_have_the_same_bits_and_others_keep_theirs() {
        assert_eq!(canonical_f64(-0.0).to_bits(), 0);
        assert_eq!(canonical_f64(-f64::NAN).to_bits(), f64::NAN.to_bits());
        assert_eq!(canonical_f32(-0.0).to_bits(), 0);
        for value in [f64::MIN, -1.5, f64::MIN_POSITIVE, f64::INFINITY, f64::NEG_INFINITY] {
            assert_eq!(canonical_f64(value).to_bits(), value.to_bits());
        }
    }
}
