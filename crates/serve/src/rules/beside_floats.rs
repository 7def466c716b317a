//! Decimals beside floats.
//!
//! Where a float and a decimal become one type, that is the float in SQL. DataFusion makes DECIMAL(30, 15) of both, which
//! fails for large floats and makes 0 of small ones. These rules make floats of the decimals before types are coerced: in
//! comparisons, among the values of a CASE, in lists, in the columns of a UNION or of VALUES, and in the keys of a join.
//! A literal, `0.5` is a decimal here (see `database`), becomes the float nearest to it.
//!
//! A decimal that is compared with a constant float stays one where the answer is the same, so that statistics and codes
//! answer: numbers of up to 15 digits have the order of the floats nearest to them, and no two the same float.

use std::sync::Arc;

use datafusion::arrow::datatypes::{DECIMAL128_MAX_PRECISION, DataType as ArrowType, Field};
use datafusion::common::tree_node::Transformed;
use datafusion::common::{DFSchema, ScalarValue};
use datafusion::error::Result;
use datafusion::logical_expr::{
    Cast, Expr, ExprSchemable, LogicalPlan, LogicalPlanBuilder, Subquery, Union, Values,
};

use super::microseconds::CHOOSING;

/// The function that a list is written by.
const LIST: &str = "make_array";

/// Decimal numbers of so many digits have the order of the floats nearest to them (`DBL_DIG` of C).
const DIGITS_IN_ORDER: u8 = f64::DIGITS as u8;

/// An expression, with the columns that it can name.
type Operand<'a> = (&'a mut Expr, &'a DFSchema);

/// Makes floats of the decimals that stand beside a float in an expression.
pub(super) fn rewrite(mut expr: Expr, schema: &DFSchema) -> Result<Transformed<Expr>> {
    let changed = match &mut expr {
        Expr::BinaryExpr(e) if e.op.supports_propagation() => {
            compared([e.left.as_mut(), e.right.as_mut()], schema)
        }
        Expr::Between(e) => compared([e.expr.as_mut(), e.low.as_mut(), e.high.as_mut()], schema),
        Expr::InList(e) => compared(std::iter::once(e.expr.as_mut()).chain(&mut e.list), schema),
        Expr::ScalarFunction(f) if CHOOSING.contains(&f.name()) || f.name() == LIST => {
            of_one_schema(&mut f.args, schema)
        }
        Expr::InSubquery(e) => of_subquery(&mut e.expr, &mut e.subquery, schema)?,
        Expr::SetComparison(e) => of_subquery(&mut e.expr, &mut e.subquery, schema)?,
        Expr::Case(case) => {
            let whens = case.when_then_expr.iter_mut().map(|(when, _)| when.as_mut());
            let has_compared = match &mut case.expr {
                Some(base) => compared(std::iter::once(base.as_mut()).chain(whens), schema),
                None => false,
            };
            let thens = case.when_then_expr.iter_mut().map(|(_, then)| then.as_mut());
            has_compared | of_one_schema(thens.chain(case.else_expr.as_deref_mut()), schema)
        }
        _ => false,
    };
    Ok(if changed { Transformed::yes(expr) } else { Transformed::no(expr) })
}

/// Makes floats of the decimals that stand beside a float in what nodes bring to one type themselves.
pub(super) fn rewrite_node(plan: LogicalPlan) -> Result<Transformed<LogicalPlan>> {
    match plan {
        LogicalPlan::Union(union) => of_union(union),
        LogicalPlan::Values(values) => of_values(values),
        LogicalPlan::Join(mut join) => {
            let mut changed = false;
            for (left, right) in &mut join.on {
                changed |=
                    become_floats(vec![(left, join.left.schema()), (right, join.right.schema())]);
            }
            let join = LogicalPlan::Join(join);
            Ok(if changed { Transformed::yes(join) } else { Transformed::no(join) })
        }
        other => Ok(Transformed::no(other)),
    }
}

/// A UNION; EXCEPT and INTERSECT are joins.
fn of_union(mut union: Union) -> Result<Transformed<LogicalPlan>> {
    let columns = union.schema.fields().len();
    // The columns that have floats on one side and decimals on another; the engine refuses sides of several widths.
    let same_width = union.inputs.iter().all(|input| input.schema().fields().len() == columns);
    let types = |at: usize| union.inputs.iter().map(move |i| i.schema().field(at).data_type());
    let mixed: Vec<bool> = (0..columns)
        .map(|at| {
            same_width && types(at).any(is_float) && types(at).any(|t| float_for(t).is_some())
        })
        .collect();
    if !mixed.contains(&true) {
        return Ok(Transformed::no(LogicalPlan::Union(union)));
    }
    for input in &mut union.inputs {
        *input = Arc::new(with_floats(input, |at| mixed[at])?);
    }
    Ok(Transformed::yes(LogicalPlan::Union(union)))
}

/// A plan in which those columns of decimals that are wanted are floats.
fn with_floats(plan: &Arc<LogicalPlan>, wanted: impl Fn(usize) -> bool) -> Result<LogicalPlan> {
    let schema = plan.schema();
    let columns = schema.columns().into_iter().enumerate().map(|(at, column)| {
        let float = float_for(schema.field(at).data_type()).filter(|_| wanted(at));
        let (relation, name) = (column.relation.clone(), column.name.clone());
        match float {
            Some(float) => cast(Expr::Column(column), float).alias_qualified(relation, name),
            None => Expr::Column(column),
        }
    });
    let columns: Vec<Expr> = columns.collect();
    LogicalPlanBuilder::from(Arc::clone(plan)).project(columns)?.build()
}

/// A value that is looked for among those of a subquery, and whether one of the two has changed.
fn of_subquery(value: &mut Expr, subquery: &mut Subquery, schema: &DFSchema) -> Result<bool> {
    let Ok(data_type) = value.get_type(schema) else { return Ok(false) };
    let [field] = subquery.subquery.schema().fields().as_ref() else { return Ok(false) };
    match (float_for(&data_type), float_for(field.data_type())) {
        (Some(float), None) if is_float(field.data_type()) => {
            *value = to_float(std::mem::take(value), &float);
            Ok(true)
        }
        (None, Some(_)) if is_float(&data_type) => {
            subquery.subquery = Arc::new(with_floats(&subquery.subquery, |_| true)?);
            Ok(true)
        }
        _ => Ok(false),
    }
}

/// VALUES, which the planner has cast to a decimal already.
fn of_values(mut values: Values) -> Result<Transformed<LogicalPlan>> {
    let mut fields: Vec<_> =
        values.schema.iter().map(|(q, f)| (q.cloned(), Arc::clone(f))).collect();
    let mut changed = false;
    for (at, (_, field)) in fields.iter_mut().enumerate() {
        let Some(float) = float_for(field.data_type()) else { continue };
        let is_cast_float = |row: &Vec<Expr>| match &row[at] {
            Expr::Cast(cast) => cast.expr.get_type(&DFSchema::empty()).is_ok_and(|t| is_float(&t)),
            _ => false,
        };
        if !values.values.iter().any(is_cast_float) {
            continue;
        }
        changed = true;
        for row in &mut values.values {
            let value = match std::mem::take(&mut row[at]) {
                Expr::Cast(cast) => *cast.expr,
                other => other,
            };
            row[at] = to_float(value, &float);
        }
        *field = Arc::new(Field::clone(field).with_data_type(float));
    }
    if changed {
        let metadata = values.schema.metadata().clone();
        values.schema = Arc::new(DFSchema::new_with_metadata(fields, metadata)?);
    }
    let plan = LogicalPlan::Values(values);
    Ok(if changed { Transformed::yes(plan) } else { Transformed::no(plan) })
}

fn of_one_schema<'a>(values: impl IntoIterator<Item = &'a mut Expr>, schema: &'a DFSchema) -> bool {
    become_floats(values.into_iter().map(|value| (value, schema)).collect())
}

/// Whether numbers that are compared have become decimals, or else floats.
fn compared<'a>(values: impl IntoIterator<Item = &'a mut Expr>, schema: &'a DFSchema) -> bool {
    let mut values: Vec<&mut Expr> = values.into_iter().collect();
    constants_become_decimals(&mut values, schema) || of_one_schema(values, schema)
}

/// Whether constant floats among values that are compared are decimals now: where all others are decimals, and all are of
/// so few digits that floats have the same order.
fn constants_become_decimals(values: &mut [&mut Expr], schema: &DFSchema) -> bool {
    let (mut whole, mut places) = (0, 0);
    let mut decimals = Vec::with_capacity(values.len());
    for value in values.iter() {
        let decimal = constant_of(value).and_then(decimal_of);
        let data_type = match &decimal {
            Some(decimal) => Some(decimal.data_type()),
            None => value.get_type(schema).ok(),
        };
        match data_type {
            Some(ArrowType::Decimal128(digits, scale))
                if decimal.is_some() || (digits <= DIGITS_IN_ORDER && scale >= 0) =>
            {
                whole = whole.max(i32::from(digits) - i32::from(scale));
                places = places.max(i32::from(scale));
            }
            _ => return false,
        }
        decimals.push(decimal);
    }
    // The type of all, in which they are compared.
    if whole + places > i32::from(DECIMAL128_MAX_PRECISION) {
        return false;
    }
    let mut changed = false;
    for (value, decimal) in values.iter_mut().zip(decimals) {
        if let Some(decimal) = decimal {
            **value = Expr::Literal(decimal, None);
            changed = true;
        }
    }
    changed
}

/// The value of a constant float: a parameter, `1e3` or `0.5::DOUBLE`, perhaps with a minus before it.
fn constant_of(expr: &Expr) -> Option<f64> {
    match expr {
        Expr::Literal(ScalarValue::Float64(float), _) => *float,
        Expr::Cast(cast) if *cast.field.data_type() == ArrowType::Float64 => match &*cast.expr {
            Expr::Literal(ScalarValue::Utf8(Some(text)), _) => text.parse().ok(),
            other => float_of(other),
        },
        Expr::Negative(inner) => constant_of(inner).map(|float| -float),
        _ => None,
    }
}

/// The decimal with the digits of the shortest text of a float, if there are few.
fn decimal_of(float: f64) -> Option<ScalarValue> {
    let text = format!("{float:e}");
    let (mantissa, exponent) = text.split_once('e')?;
    let (whole, fraction) = mantissa.split_once('.').unwrap_or((mantissa, ""));
    let unscaled: i128 = format!("{whole}{fraction}").parse().ok()?;
    let digits = i32::try_from(fraction.len() + 1).ok()?;
    let places = digits - 1 - exponent.parse::<i32>().ok()?;
    // Digits before the point that are zeros are written out, and so are those after it.
    let zeros = u32::try_from(-places).unwrap_or(0);
    let scale = u8::try_from(places.max(0)).ok()?;
    let precision = u8::try_from((digits - places.min(0)).max(places)).ok()?;
    let fits = digits <= i32::from(DIGITS_IN_ORDER) && precision <= DECIMAL128_MAX_PRECISION;
    let unscaled = unscaled.checked_mul(10_i128.checked_pow(zeros)?)?;
    fits.then_some(ScalarValue::Decimal128(Some(unscaled), precision, scale.cast_signed()))
}

/// Whether decimals among values that become one type are floats now, as one of the others is.
fn become_floats(mut values: Vec<Operand<'_>>) -> bool {
    // A type that cannot be told yet is an error that planning will report.
    let types: Vec<Option<ArrowType>> =
        values.iter().map(|(value, schema)| value.get_type(*schema).ok()).collect();
    if !types.iter().flatten().any(is_float) {
        return false;
    }
    let mut changed = false;
    for ((value, _), data_type) in values.iter_mut().zip(types) {
        if let Some(float) = data_type.as_ref().and_then(float_for) {
            **value = to_float(std::mem::take(*value), &float);
            changed = true;
        }
    }
    changed
}

/// Whether values of a type are floats, or lists of floats.
fn is_float(data_type: &ArrowType) -> bool {
    match data_type {
        ArrowType::List(item) => item.data_type().is_floating(),
        other => other.is_floating(),
    }
}

/// The type that decimals have beside a float, and lists of decimals.
fn float_for(data_type: &ArrowType) -> Option<ArrowType> {
    match data_type {
        ArrowType::List(item) => {
            let float = float_for(item.data_type())?;
            Some(ArrowType::List(Arc::new(Field::clone(item).with_data_type(float))))
        }
        ArrowType::Decimal128(..) => Some(ArrowType::Float64),
        _ => None,
    }
}

fn to_float(expr: Expr, data_type: &ArrowType) -> Expr {
    match float_of(&expr) {
        Some(float) => Expr::Literal(ScalarValue::Float64(Some(float)), None),
        None => cast(expr, data_type.clone()),
    }
}

fn cast(expr: Expr, data_type: ArrowType) -> Expr {
    Expr::Cast(Cast::new(Box::new(expr), data_type))
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

    #[test]
    fn a_float_of_few_digits_becomes_the_decimal_of_its_text() {
        let decimal =
            |unscaled, digits, scale| Some(ScalarValue::Decimal128(Some(unscaled), digits, scale));
        for (float, expected) in [
            (0.5, decimal(5, 1, 1)),
            (-12.25, decimal(-1225, 4, 2)),
            (500.0, decimal(500, 3, 0)),
            (0.0, decimal(0, 1, 0)),
            (-0.0, decimal(0, 1, 0)),
            (1e-20, decimal(1, 20, 20)),
            (1.5e-3, decimal(15, 4, 4)),
            (1e37, decimal(10_i128.pow(37), 38, 0)),
            (1e38, None),
            (1e300, None),
            (1e-300, None),
            (0.1 + 0.2, None),
            (f64::NAN, None),
            (f64::NEG_INFINITY, None),
        ] {
            assert_eq!(decimal_of(float), expected, "{float}");
        }
    }
}
