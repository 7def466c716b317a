//! Arithmetic that is right or an error.
//!
//! The engine's `+`, `-` and `*` wrap around when a number does not fit, and constants are folded so before anybody could
//! look. [`CheckedArithmetic`] puts [`Arithmetic`] in the place of each operator once operands are of one type. Nothing but
//! the behaviour at the ends of types changes:
//!
//! - what does not fit its type is an error, for DECIMAL too, whose digits are counted;
//! - a time that would be in another year than 0001 to 9999 is an error ([`super::calendar`]);
//! - the rest of a division by -1 is 0 also for the smallest integer;
//! - a NaN is the one NaN that [`super::floats`] knows.

use std::sync::Arc;

use datafusion::arrow::array::cast::AsArray;
use datafusion::arrow::array::{Array, ArrayRef, Datum, Scalar};
use datafusion::arrow::compute::cast;
use datafusion::arrow::compute::kernels::numeric::{add, div, mul, rem, sub};
use datafusion::arrow::datatypes::{
    DECIMAL128_MAX_PRECISION, DataType as ArrowType, Decimal128Type, Field, IntervalUnit, Schema,
};
use datafusion::arrow::error::ArrowError;
use datafusion::arrow::record_batch::RecordBatch;
use datafusion::common::tree_node::Transformed;
use datafusion::common::{DFSchema, ScalarValue};
use datafusion::error::{DataFusionError, Result};
use datafusion::logical_expr::binary::BinaryTypeCoercer;
use datafusion::logical_expr::expr::BinaryExpr;
use datafusion::logical_expr::{
    ColumnarValue, Expr, ExprSchemable, Operator, ScalarFunctionArgs, ScalarUDF, ScalarUDFImpl,
    Signature, Volatility,
};
use datafusion::physical_expr::{PhysicalExpr, expressions as physical};
use datafusion::physical_expr_common::datum::apply;

use super::calendar::check_years;
use super::call;
use super::floats::canonical_nans;

/// One of the five operations.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub(crate) enum Operation {
    Add,
    Subtract,
    Multiply,
    Divide,
    Remainder,
}

impl Operation {
    fn of(op: Operator) -> Option<Self> {
        Some(match op {
            Operator::Plus => Operation::Add,
            Operator::Minus => Operation::Subtract,
            Operator::Multiply => Operation::Multiply,
            Operator::Divide => Operation::Divide,
            Operator::Modulo => Operation::Remainder,
            _ => return None,
        })
    }

    fn operator(self) -> Operator {
        match self {
            Operation::Add => Operator::Plus,
            Operation::Subtract => Operator::Minus,
            Operation::Multiply => Operator::Multiply,
            Operation::Divide => Operator::Divide,
            Operation::Remainder => Operator::Modulo,
        }
    }
}

/// Checked arithmetic as a function of two arguments, whose types are those that the engine's operator takes.
#[derive(Debug, PartialEq, Eq, Hash)]
pub(crate) struct Arithmetic {
    operation: Operation,
    signature: Signature,
}

impl Arithmetic {
    fn new(operation: Operation) -> Self {
        Arithmetic { operation, signature: Signature::any(2, Volatility::Immutable) }
    }

    pub(crate) fn operation(&self) -> Operation {
        self.operation
    }
}

pub(super) fn rewrite(expr: Expr, schema: &DFSchema) -> Result<Transformed<Expr>> {
    match expr {
        Expr::BinaryExpr(BinaryExpr { left, op, right }) => {
            let Some(operation) = Operation::of(op) else {
                return Ok(Transformed::no(Expr::BinaryExpr(BinaryExpr { left, op, right })));
            };
            let function = ScalarUDF::from(Arithmetic::new(operation));
            Ok(Transformed::yes(call(function, vec![*left, *right])))
        }
        Expr::Negative(inner) => {
            let data_type = inner.get_type(schema)?;
            if !data_type.is_signed_integer() {
                return Ok(Transformed::no(Expr::Negative(inner)));
            }
            let zero = Expr::Literal(ScalarValue::new_zero(&data_type)?, None);
            let function = ScalarUDF::from(Arithmetic::new(Operation::Subtract));
            Ok(Transformed::yes(call(function, vec![zero, *inner])))
        }
        other => Ok(Transformed::no(other)),
    }
}

impl ScalarUDFImpl for Arithmetic {
    fn name(&self) -> &str {
        match self.operation {
            Operation::Add => "checked_add",
            Operation::Subtract => "checked_subtract",
            Operation::Multiply => "checked_multiply",
            Operation::Divide => "checked_divide",
            Operation::Remainder => "checked_remainder",
        }
    }

    fn display_name(&self, args: &[Expr]) -> Result<String> {
        let [left, right] = args else { return Ok(self.name().to_owned()) };
        Ok(format!("{} {} {}", part(left), self.operation.operator(), part(right)))
    }

    fn signature(&self) -> &Signature {
        &self.signature
    }

    fn return_type(&self, types: &[ArrowType]) -> Result<ArrowType> {
        let [left, right] = types else { return Err(two_arguments()) };
        BinaryTypeCoercer::new(left, &self.operation.operator(), right).get_result_type()
    }

    fn is_strict(&self) -> bool {
        true
    }

    fn invoke_with_args(&self, args: ScalarFunctionArgs) -> Result<ColumnarValue> {
        let [left, right] = args.args.as_slice() else { return Err(two_arguments()) };
        if is_time(left) || is_time(right) {
            return of_times(left, self.operation.operator(), right, args.number_rows);
        }
        let computed = match self.operation {
            Operation::Add => apply(left, right, add),
            Operation::Subtract => apply(left, right, subtract),
            Operation::Multiply => apply(left, right, mul),
            Operation::Divide => apply(left, right, div),
            Operation::Remainder => apply(left, right, remainder),
        };
        checked(computed?)
    }
}

/// Whether a value is a time of day.
fn is_time(value: &ColumnarValue) -> bool {
    matches!(value.data_type(), ArrowType::Time32(_) | ArrowType::Time64(_))
}

/// Arithmetic of times of day is the engine's, which has no overflow. It is not left to the engine's own expression: when
/// that is planned with constants, it looks for the least and largest result by kernels that know no such times, and panics.
fn of_times(
    left: &ColumnarValue,
    operator: Operator,
    right: &ColumnarValue,
    rows: usize,
) -> Result<ColumnarValue> {
    let arrays = [left.to_array(rows)?, right.to_array(rows)?];
    let field =
        |(name, array): (&str, &ArrayRef)| Field::new(name, array.data_type().clone(), true);
    let schema =
        Schema::new(["left", "right"].into_iter().zip(&arrays).map(field).collect::<Vec<_>>());
    let batch = RecordBatch::try_new(Arc::new(schema), arrays.to_vec())?;
    let column =
        |name, index| Arc::new(physical::Column::new(name, index)) as Arc<dyn PhysicalExpr>;
    physical::BinaryExpr::new(column("left", 0), operator, column("right", 1)).evaluate(&batch)
}

fn two_arguments() -> DataFusionError {
    DataFusionError::Internal("arithmetic takes two arguments".into())
}

/// An operand as it stands beside an operator.
fn part(expr: &Expr) -> String {
    let is_arithmetic =
        matches!(expr, Expr::ScalarFunction(f) if f.func.inner().is::<Arithmetic>());
    if is_arithmetic || matches!(expr, Expr::BinaryExpr(_)) {
        format!("({expr})")
    } else {
        expr.to_string()
    }
}

/// Between two dates there are days; the kernel has a duration.
fn subtract(left: &dyn Datum, right: &dyn Datum) -> Result<ArrayRef, ArrowError> {
    let ((first, first_is_scalar), (second, second_is_scalar)) = (left.get(), right.get());
    if (first.data_type(), second.data_type()) != (&ArrowType::Date32, &ArrowType::Date32) {
        return sub(left, right);
    }
    let days = |array: &dyn Array| cast(&cast(array, &ArrowType::Int32)?, &ArrowType::Int64);
    let (first, second) = (days(first)?, days(second)?);
    match (first_is_scalar, second_is_scalar) {
        (false, false) => sub(&first, &second),
        (false, true) => sub(&first, &Scalar::new(second)),
        (true, false) => sub(&Scalar::new(first), &second),
        (true, true) => sub(&Scalar::new(first), &Scalar::new(second)),
    }
}

/// The kernel fails for the smallest integer and -1, of which the rest is 0.
fn remainder(left: &dyn Datum, right: &dyn Datum) -> Result<ArrayRef, ArrowError> {
    match rem(left, right) {
        Err(ArrowError::ArithmeticOverflow(_)) => {
            let (dividend, is_scalar) = left.get();
            let wide = ArrowType::Decimal128(DECIMAL128_MAX_PRECISION, 0);
            let to_wide = |array: &dyn Array| cast(array, &wide);
            let (divisor, divisor_is_scalar) = right.get();
            let (dividend_type, dividend, divisor) =
                (dividend.data_type(), to_wide(dividend)?, to_wide(divisor)?);
            let scalar = Scalar::new;
            let rest = match (is_scalar, divisor_is_scalar) {
                (false, false) => rem(&dividend, &divisor),
                (false, true) => rem(&dividend, &scalar(divisor)),
                (true, false) => rem(&scalar(dividend), &divisor),
                (true, true) => rem(&scalar(dividend), &scalar(divisor)),
            };
            cast(&rest?, dividend_type)
        }
        other => other,
    }
}

/// Counts the digits of a DECIMAL that can have too many, looks at the years of times, and makes all NaNs one.
fn checked(value: ColumnarValue) -> Result<ColumnarValue> {
    match value {
        ColumnarValue::Scalar(scalar) => {
            let array = scalar.to_array()?;
            check_digits(&array)?;
            check_years(&array)?;
            Ok(ColumnarValue::Scalar(ScalarValue::try_from_array(&canonical_nans(array), 0)?))
        }
        ColumnarValue::Array(array) => {
            check_digits(&array)?;
            check_years(&array)?;
            Ok(ColumnarValue::Array(canonical_nans(array)))
        }
    }
}

/// A type of fewer than all digits was made wide enough for each result.
fn check_digits(array: &ArrayRef) -> Result<()> {
    if let ArrowType::Decimal128(DECIMAL128_MAX_PRECISION, _) = array.data_type() {
        array
            .as_primitive::<Decimal128Type>()
            .validate_decimal_precision(DECIMAL128_MAX_PRECISION)?;
    }
    Ok(())
}

/// The engine's type of intervals of months, days and nanoseconds.
pub(super) const INTERVAL: ArrowType = ArrowType::Interval(IntervalUnit::MonthDayNano);
