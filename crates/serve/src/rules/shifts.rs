//! `<<` and `>>` that are right or an error.
//!
//! The engine takes the count of bits modulo the width of the number, and drops the bits that leave it: `1 << 64` is 1 there.

use std::sync::Arc;

use datafusion::arrow::array::cast::AsArray;
use datafusion::arrow::array::{ArrayRef, Int64Array};
use datafusion::arrow::compute::{CastOptions, cast_with_options};
use datafusion::arrow::datatypes::{DataType as ArrowType, Int64Type};
use datafusion::common::tree_node::Transformed;
use datafusion::common::{DFSchema, ScalarValue};
use datafusion::error::{DataFusionError, Result};
use datafusion::logical_expr::expr::BinaryExpr;
use datafusion::logical_expr::{
    ColumnarValue, Expr, ExprSchemable, Operator, ScalarFunctionArgs, ScalarUDF, ScalarUDFImpl,
    Signature, Volatility,
};

use super::call;

/// Counts of bits are below this.
const BITS: i64 = 64;

pub(super) fn rewrite(expr: Expr, schema: &DFSchema) -> Result<Transformed<Expr>> {
    let Expr::BinaryExpr(BinaryExpr { left, op, right }) = expr else {
        return Ok(Transformed::no(expr));
    };
    let to = match op {
        Operator::BitwiseShiftLeft => To::Left,
        Operator::BitwiseShiftRight => To::Right,
        _ => return Ok(Transformed::no(Expr::BinaryExpr(BinaryExpr { left, op, right }))),
    };
    let output = left.get_type(schema)?;
    Ok(Transformed::yes(call(ScalarUDF::from(Shift::new(to, output)), vec![*left, *right])))
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
enum To {
    Left,
    Right,
}

#[derive(Debug, PartialEq, Eq, Hash)]
struct Shift {
    to: To,
    output: ArrowType,
    signature: Signature,
}

impl Shift {
    fn new(to: To, output: ArrowType) -> Self {
        Shift { to, output, signature: Signature::any(2, Volatility::Immutable) }
    }

    fn sign(&self) -> &'static str {
        match self.to {
            To::Left => "<<",
            To::Right => ">>",
        }
    }

    fn shift(&self, value: i64, bits: i64) -> Result<i64> {
        let wrong = || {
            let sign = self.sign();
            DataFusionError::Execution(format!("Overflow happened on: {value} {sign} {bits}"))
        };
        if !(0..BITS).contains(&bits) {
            return Err(wrong());
        }
        match self.to {
            To::Left => i64::try_from(i128::from(value) << bits).map_err(|_| wrong()),
            To::Right => Ok(value >> bits),
        }
    }
}

impl ScalarUDFImpl for Shift {
    fn name(&self) -> &str {
        match self.to {
            To::Left => "checked_shift_left",
            To::Right => "checked_shift_right",
        }
    }

    fn display_name(&self, args: &[Expr]) -> Result<String> {
        let [value, bits] = args else { return Ok(self.name().to_owned()) };
        Ok(format!("{value} {} {bits}", self.sign()))
    }

    fn signature(&self) -> &Signature {
        &self.signature
    }

    fn return_type(&self, _: &[ArrowType]) -> Result<ArrowType> {
        Ok(self.output.clone())
    }

    fn is_strict(&self) -> bool {
        true
    }

    fn invoke_with_args(&self, args: ScalarFunctionArgs) -> Result<ColumnarValue> {
        let [values, bits] = args.args.as_slice() else {
            return Err(DataFusionError::Internal("a shift has two arguments".into()));
        };
        let is_scalar = [values, bits].iter().all(|v| matches!(v, ColumnarValue::Scalar(_)));
        let rows = if is_scalar { 1 } else { args.number_rows };
        let strict = CastOptions { safe: false, ..CastOptions::default() };
        let wide = |value: &ColumnarValue| -> Result<ArrayRef> {
            Ok(cast_with_options(&value.to_array(rows)?, &ArrowType::Int64, &strict)?)
        };
        let (values, bits) = (wide(values)?, wide(bits)?);
        let pairs = values.as_primitive::<Int64Type>().iter().zip(bits.as_primitive::<Int64Type>());
        let shifted = pairs
            .map(|(value, bits)| value.zip(bits).map(|(v, b)| self.shift(v, b)).transpose())
            .collect::<Result<Int64Array>>()?;
        let shifted: ArrayRef = Arc::new(shifted);
        let shifted = cast_with_options(&shifted, &self.output, &strict)?;
        if is_scalar {
            return Ok(ColumnarValue::Scalar(ScalarValue::try_from_array(&shifted, 0)?));
        }
        Ok(ColumnarValue::Array(shifted))
    }
}
