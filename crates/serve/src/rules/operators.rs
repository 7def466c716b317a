//! Operators whose result has another type here than in the engine.
//!
//! | operator | here | the engine alone |
//! |---|---|---|
//! | DECIMAL / DECIMAL or integer | DOUBLE | DECIMAL cut to four more digits |
//! | DATE + or - INTERVAL | TIMESTAMP | DATE without the interval's hours |
//! | DATE + or - integer | days, all years | 106,751 days |
//! | DATE + TIME, DATE - TIMESTAMP | in microseconds, all years | nanoseconds, years 1677 to 2262 |
//! | unsigned numbers, such as `row_number()` | as BIGINT | wrap below 0 |

use datafusion::arrow::array::cast::AsArray;
use datafusion::arrow::array::{Array, ArrayRef, Float64Array};
use datafusion::arrow::compute::cast;
use datafusion::arrow::datatypes::{DataType as ArrowType, Decimal128Type, Float64Type, TimeUnit};
use datafusion::arrow::error::ArrowError;
use datafusion::common::{DFSchema, ScalarValue};
use datafusion::error::{DataFusionError, Result};
use datafusion::logical_expr::planner::{ExprPlanner, PlannerResult, RawBinaryExpr};
use datafusion::logical_expr::{
    ColumnarValue, Expr, ExprSchemable, ScalarFunctionArgs, ScalarUDF, ScalarUDFImpl, Signature,
    Volatility, cast as cast_expr,
};
use datafusion::sql::sqlparser::ast::BinaryOperator;
use std::sync::Arc;

use super::call;
use super::days::{Sign, shifted};
use super::microseconds::TIMESTAMP;

/// Gives operators their types.
#[derive(Debug)]
pub(super) struct Operators;

impl ExprPlanner for Operators {
    fn plan_binary_op(
        &self,
        raw: RawBinaryExpr,
        schema: &DFSchema,
    ) -> Result<PlannerResult<RawBinaryExpr>> {
        use BinaryOperator as B;
        if !matches!(raw.op, B::Plus | B::Minus | B::Multiply | B::Divide | B::Modulo) {
            return Ok(PlannerResult::Original(raw));
        }
        let RawBinaryExpr { op, left, right } = raw;
        let (left, right) = (signed(left, schema), signed(right, schema));
        let of = |e: &Expr| known_type(e, schema);
        let (left_type, right_type) = (of(&left), of(&right));
        let original = |left, right| {
            Ok(PlannerResult::Original(RawBinaryExpr { op: op.clone(), left, right }))
        };
        use ArrowType as T;
        match (&op, &left_type, &right_type) {
            (B::Divide, Some(l), Some(r))
                if is_exact(l) && is_exact(r) && (is_decimal(l) || is_decimal(r)) =>
            {
                Ok(PlannerResult::Planned(call(
                    ScalarUDF::from(Quotient::default()),
                    vec![left, right],
                )))
            }
            // A parameter has no type yet, and gets that of the other side.
            (B::Divide, Some(l), None) if is_decimal(l) => {
                original(cast_expr(left, T::Float64), right)
            }
            (B::Divide, None, Some(r)) if is_decimal(r) => {
                original(left, cast_expr(right, T::Float64))
            }
            (B::Plus | B::Minus, Some(T::Date32), Some(T::Interval(_) | T::Duration(_))) => {
                original(cast_expr(left, TIMESTAMP), right)
            }
            (B::Plus, Some(T::Date32), Some(days)) if days.is_integer() => {
                Ok(PlannerResult::Planned(shifted(left, right, Sign::Plus)))
            }
            (B::Minus, Some(T::Date32), Some(days)) if days.is_integer() => {
                Ok(PlannerResult::Planned(shifted(left, right, Sign::Minus)))
            }
            (B::Plus, Some(days), Some(T::Date32)) if days.is_integer() => {
                Ok(PlannerResult::Planned(shifted(right, left, Sign::Plus)))
            }
            (B::Plus, Some(T::Interval(_) | T::Duration(_)), Some(T::Date32)) => {
                original(left, cast_expr(right, TIMESTAMP))
            }
            (B::Plus | B::Minus, Some(T::Date32), Some(T::Time32(_) | T::Time64(_))) => {
                original(cast_expr(left, TIMESTAMP), since_midnight(right))
            }
            (B::Plus, Some(T::Time32(_) | T::Time64(_)), Some(T::Date32)) => {
                original(since_midnight(left), cast_expr(right, TIMESTAMP))
            }
            (B::Plus | B::Minus, Some(T::Timestamp(..)), Some(T::Time32(_) | T::Time64(_))) => {
                original(left, since_midnight(right))
            }
            (B::Minus, Some(T::Date32), Some(T::Timestamp(_, zone))) => {
                let date = T::Timestamp(TimeUnit::Microsecond, zone.clone());
                original(cast_expr(left, date), right)
            }
            (B::Minus, Some(T::Timestamp(_, zone)), Some(T::Date32)) => {
                let date = T::Timestamp(TimeUnit::Microsecond, zone.clone());
                original(left, cast_expr(right, date))
            }
            _ => original(left, right),
        }
    }
}

/// The type of an operand; none for a parameter that has none yet, and for what is in error, as planning will tell.
fn known_type(expr: &Expr, schema: &DFSchema) -> Option<ArrowType> {
    expr.get_type(schema).ok().filter(|t| !t.is_null())
}

/// Counts of the engine are unsigned.
fn signed(expr: Expr, schema: &DFSchema) -> Expr {
    match known_type(&expr, schema) {
        Some(t) if t.is_unsigned_integer() => cast_expr(expr, ArrowType::Int64),
        _ => expr,
    }
}

fn since_midnight(time: Expr) -> Expr {
    let time = cast_expr(time, ArrowType::Time64(TimeUnit::Microsecond));
    cast_expr(cast_expr(time, ArrowType::Int64), ArrowType::Duration(TimeUnit::Microsecond))
}

fn is_decimal(data_type: &ArrowType) -> bool {
    matches!(data_type, ArrowType::Decimal128(..))
}

fn is_exact(data_type: &ArrowType) -> bool {
    is_decimal(data_type) || data_type.is_integer()
}

/// The quotient of exact numbers as a DOUBLE: what a fixed number of digits holds of a quotient may be none.
#[derive(Debug, PartialEq, Eq, Hash)]
pub(super) struct Quotient {
    signature: Signature,
}

impl Default for Quotient {
    fn default() -> Self {
        Quotient { signature: Signature::any(2, Volatility::Immutable) }
    }
}

impl ScalarUDFImpl for Quotient {
    fn name(&self) -> &str {
        "quotient"
    }

    fn display_name(&self, args: &[Expr]) -> Result<String> {
        let [left, right] = args else { return Ok(self.name().to_owned()) };
        Ok(format!("{left} / {right}"))
    }

    fn schema_name(&self, args: &[Expr]) -> Result<String> {
        let [left, right] = args else { return Ok(self.name().to_owned()) };
        Ok(format!("{} / {}", left.schema_name(), right.schema_name()))
    }

    fn signature(&self) -> &Signature {
        &self.signature
    }

    fn return_type(&self, _: &[ArrowType]) -> Result<ArrowType> {
        Ok(ArrowType::Float64)
    }

    fn is_strict(&self) -> bool {
        true
    }

    fn invoke_with_args(&self, args: ScalarFunctionArgs) -> Result<ColumnarValue> {
        let [left, right] = args.args.as_slice() else {
            return Err(DataFusionError::Internal("a quotient has two arguments".into()));
        };
        let is_scalar =
            matches!((left, right), (ColumnarValue::Scalar(_), ColumnarValue::Scalar(_)));
        let rows = if is_scalar { 1 } else { args.number_rows };
        let (left, right) = (floats(left, rows)?, floats(right, rows)?);
        let (left, right) =
            (left.as_primitive::<Float64Type>(), right.as_primitive::<Float64Type>());
        let quotients = left
            .iter()
            .zip(right)
            .map(|pair| match pair {
                (Some(_), Some(0.0)) => Err(ArrowError::DivideByZero),
                (Some(l), Some(r)) => Ok(Some(l / r)),
                _ => Ok(None),
            })
            .collect::<Result<Float64Array, _>>()?;
        if is_scalar {
            return Ok(ColumnarValue::Scalar(ScalarValue::try_from_array(&quotients, 0)?));
        }
        Ok(ColumnarValue::Array(Arc::new(quotients)))
    }
}

/// Exact numbers as the floats nearest to them.
fn floats(value: &ColumnarValue, rows: usize) -> Result<ArrayRef> {
    let array = value.to_array(rows)?;
    match array.data_type() {
        ArrowType::Decimal128(_, scale) => {
            let unit = 10f64.powi(i32::from(*scale));
            let values = array.as_primitive::<Decimal128Type>();
            Ok(Arc::new(values.unary::<_, Float64Type>(|v| v as f64 / unit)))
        }
        _ => Ok(cast(&array, &ArrowType::Float64)?),
    }
}
