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

/// The function that a list is written by.
const LIST: &str = "make_array";

/// Makes floats of the decimal literals that stand beside a float: in comparisons, among the values of a CASE, and in lists.
pub(super) fn rewrite(mut expr: Expr, schema: &DFSchema) -> Result<Transformed<Expr>> {
    let changed = match &mut expr {
        Expr::BinaryExpr(e) if e.op.supports_propagation() => {
            beside_floats(vec![&mut e.left, &mut e.right], schema)
        }
        Expr::Between(e) => beside_floats(vec![&mut e.expr, &mut e.low, &mut e.high], schema),
        Expr::InList(e) => {
            beside_floats(std::iter::once(e.expr.as_mut()).chain(&mut e.list).collect(), schema)
        }
        Expr::ScalarFunction(f) if CHOOSING.contains(&f.name()) || f.name() == LIST => {
            beside_floats(f.args.iter_mut().collect(), schema)
        }
        Expr::Case(case) => {
            let whens = case.when_then_expr.iter_mut().map(|(when, _)| when.as_mut());
            let compared = match &mut case.expr {
                Some(base) => {
                    beside_floats(std::iter::once(base.as_mut()).chain(whens).collect(), schema)
                }
                None => false,
            };
            let thens = case.when_then_expr.iter_mut().map(|(_, then)| then.as_mut());
            compared | beside_floats(thens.chain(case.else_expr.as_deref_mut()).collect(), schema)
        }
        _ => false,
    };
    Ok(if changed { Transformed::yes(expr) } else { Transformed::no(expr) })
}

/// Whether decimal literals among values that become one type are floats now, as one of the others is.
fn beside_floats(mut values: Vec<&mut Expr>, schema: &DFSchema) -> bool {
    let has_decimal = values.iter().any(|e| float_of(e).is_some());
    // A type that cannot be told yet is an error that planning will report.
    let is_float = |e: &Expr| match e.get_type(schema) {
        Ok(ArrowType::List(item)) => item.data_type().is_floating(),
        Ok(other) => matches!(other, ArrowType::Float32 | ArrowType::Float64),
        Err(_) => false,
    };
    if !has_decimal || !values.iter().any(|e| is_float(e)) {
        return false;
    }
    for value in &mut values {
        if let Some(float) = float_of(value) {
            **value = Expr::Literal(ScalarValue::Float64(Some(float)), None);
        }
    }
    true
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
