//! Decimal literals beside floats.
//!
//! `0.5` is a decimal here (see `database`). Compared with a float, DataFusion would turn the float
//! into a decimal, which fails for large ones and rounds small ones; SQL turns the literal into a
//! float. This rule does so before types are coerced.

use datafusion::arrow::datatypes::DataType as ArrowType;
use datafusion::common::DFSchema;
use datafusion::common::tree_node::Transformed;
use datafusion::error::Result;
use datafusion::logical_expr::{Expr, ExprSchemable};
use datafusion::scalar::ScalarValue;

use super::microseconds::CHOOSING;

/// Makes floats of the decimal literals of a comparison that has a float.
pub(super) fn rewrite(mut expr: Expr, schema: &DFSchema) -> Result<Transformed<Expr>> {
    let mut operands: Vec<&mut Expr> = match &mut expr {
        Expr::BinaryExpr(e) if e.op.supports_propagation() => vec![&mut e.left, &mut e.right],
        Expr::Between(e) => vec![&mut e.expr, &mut e.low, &mut e.high],
        Expr::InList(e) => std::iter::once(e.expr.as_mut()).chain(&mut e.list).collect(),
        Expr::ScalarFunction(f) if CHOOSING.contains(&f.name()) => f.args.iter_mut().collect(),
        _ => return Ok(Transformed::no(expr)),
    };
    let has_decimal = operands.iter().any(|e| float_of(e).is_some());
    // A type that cannot be told yet is an error that planning will report.
    let is_float =
        |e: &Expr| matches!(e.get_type(schema), Ok(ArrowType::Float32 | ArrowType::Float64));
    if !has_decimal || !operands.iter().any(|e| is_float(e)) {
        return Ok(Transformed::no(expr));
    }
    for operand in &mut operands {
        if let Some(float) = float_of(operand) {
            **operand = Expr::Literal(ScalarValue::Float64(Some(float)), None);
        }
    }
    Ok(Transformed::yes(expr))
}

/// The float nearest to a decimal literal, perhaps with a minus before it.
fn float_of(expr: &Expr) -> Option<f64> {
    match expr {
        Expr::Literal(value @ ScalarValue::Decimal128(Some(_), ..), _) => {
            decimal_text(value)?.parse().ok()
        }
        Expr::Negative(inner) => float_of(inner).map(|float| -float),
        _ => None,
    }
}

fn decimal_text(value: &ScalarValue) -> Option<String> {
    let ScalarValue::Decimal128(Some(unscaled), _, scale) = value else { return None };
    Some(format!("{unscaled}e{}", -i32::from(*scale)))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_decimal_becomes_the_nearest_float() {
        let literal = Expr::Literal(ScalarValue::Decimal128(Some(-1), 2, 1), None);
        assert_eq!(float_of(&literal), Some(-0.1));
        assert_eq!(float_of(&Expr::Negative(Box::new(literal))), Some(0.1));
        assert_eq!(float_of(&Expr::Literal(ScalarValue::Int64(Some(1)), None)), None);
    }
}
