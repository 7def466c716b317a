//! Where values are compared: floats as numbers, intervals as lengths, lists by their elements.
//!
//! The engine compares floats in total order, in which -0 is below 0, and intervals field by field. This rule maps the
//! operands of comparisons, keys of joins, groups, sorts and windows, and rows that must differ, to values that the engine
//! compares as SQL does. A float column beside a literal is left as it is, and the literal changed, so that the scan can
//! still test stored values.

use std::sync::Arc;

use datafusion::arrow::datatypes::DataType as ArrowType;
use datafusion::common::tree_node::Transformed;
use datafusion::common::{DFSchema, ScalarValue};
use datafusion::error::Result;
use datafusion::logical_expr::expr::{
    AggregateFunction, Between, BinaryExpr, Cast, InList, ScalarFunction, WindowFunctionDefinition,
};
use datafusion::logical_expr::{
    Aggregate, Distinct, Expr, ExprSchemable, Join, LogicalPlan, Operator, Projection, Sort, not,
    when,
};

use super::floats::{canonical_of, has_floats, is_float, one_nan};
use super::intervals::is_interval;
use super::{intervals, lists, refused};

const NO_GROUPS: &str = "intervals are not grouped, since some are equal that are written differently ('24 hours' and '1 day'); \
     use extract(epoch from ..)";

/// Whether the engine compares other values in the place of those of a type.
fn has_key(data_type: &ArrowType) -> bool {
    is_interval(data_type) || lists::is_list(data_type)
}

/// These values; of a type without, the values themselves.
fn key_of(expr: Expr, schema: &DFSchema) -> Result<Expr> {
    let data_type = expr.get_type(schema)?;
    match () {
        () if is_interval(&data_type) => intervals::key_of(expr, schema),
        () if lists::is_list(&data_type) => lists::key_of(expr, schema),
        () => Ok(expr),
    }
}

/// A key for comparisons of an expression's values.
fn key(expr: Expr, schema: &DFSchema) -> Result<Expr> {
    match is_float(&expr.get_type(schema)?) {
        true => Ok(canonical_of(expr)),
        false => key_of(expr, schema),
    }
}

/// A key that stands for the values in the answer.
fn group_key(expr: Expr, schema: &DFSchema) -> Result<Expr> {
    if is_interval(&expr.get_type(schema)?) {
        return Err(refused(NO_GROUPS));
    }
    // Equal lists are grouped by their elements; the key of a list stands for none.
    if !has_floats(&expr.get_type(schema)?) {
        return Ok(expr);
    }
    let name = expr.qualified_name();
    let mapped = canonical_of(expr);
    if mapped.qualified_name() == name {
        Ok(mapped)
    } else {
        Ok(mapped.alias_qualified(name.0, name.1))
    }
}

pub(super) fn map_keys(plan: LogicalPlan) -> Result<Transformed<LogicalPlan>> {
    Ok(match plan {
        LogicalPlan::Join(join) if has_mapped_keys(&join)? => {
            let (left, right) = (join.left.schema(), join.right.schema());
            let on = join
                .on
                .iter()
                .map(|(l, r)| Ok((key(l.clone(), left)?, key(r.clone(), right)?)))
                .collect::<Result<Vec<_>>>()?;
            Transformed::yes(LogicalPlan::Join(Join { on, ..join }))
        }
        LogicalPlan::Aggregate(aggregate) => {
            let schema = aggregate.input.schema();
            let exprs = aggregate.group_expr.iter();
            let groups = exprs.map(|e| map_group(e.clone(), schema)).collect::<Result<Vec<_>>>()?;
            if groups == aggregate.group_expr {
                return Ok(Transformed::no(LogicalPlan::Aggregate(aggregate)));
            }
            let mapped = Aggregate::try_new(aggregate.input, groups, aggregate.aggr_expr)?;
            Transformed::yes(LogicalPlan::Aggregate(mapped))
        }
        LogicalPlan::Distinct(Distinct::All(input)) => match canonical_rows(&input)? {
            Some(rows) => Transformed::yes(LogicalPlan::Distinct(Distinct::All(Arc::new(rows)))),
            None => Transformed::no(LogicalPlan::Distinct(Distinct::All(input))),
        },
        LogicalPlan::Sort(mut sort) => {
            map_sort(&mut sort)?;
            Transformed::yes(LogicalPlan::Sort(sort))
        }
        other => Transformed::no(other),
    })
}

fn has_mapped_keys(join: &Join) -> Result<bool> {
    for (left, _) in &join.on {
        let data_type = left.get_type(join.left.schema())?;
        if is_float(&data_type) || has_key(&data_type) {
            return Ok(true);
        }
    }
    Ok(false)
}

fn map_group(expr: Expr, schema: &DFSchema) -> Result<Expr> {
    if let Expr::GroupingSet(set) = &expr {
        let has_float = set
            .distinct_expr()
            .iter()
            .any(|e| e.get_type(schema).is_ok_and(|t| has_floats(&t) || is_interval(&t)));
        if has_float {
            return Err(refused(
                "grouping sets of floats or intervals are not supported: cast floats to a DECIMAL",
            ));
        }
        return Ok(expr);
    }
    group_key(expr, schema)
}

/// The rows of a plan with keys in the place of values; `None` when they are the same.
fn canonical_rows(input: &Arc<LogicalPlan>) -> Result<Option<LogicalPlan>> {
    let schema = input.schema();
    if !schema.fields().iter().any(|f| has_floats(f.data_type()) || is_interval(f.data_type())) {
        return Ok(None);
    }
    let columns = schema.columns().into_iter();
    let exprs = columns.map(|c| group_key(Expr::Column(c), schema)).collect::<Result<Vec<_>>>()?;
    Ok(Some(LogicalPlan::Projection(Projection::try_new(exprs, Arc::clone(input))?)))
}

/// The last float may stay as it is: its equals stand side by side, in one order or the other.
fn map_sort(sort: &mut Sort) -> Result<()> {
    let schema = sort.input.schema();
    let last = sort.expr.len().saturating_sub(1);
    for (at, sorted) in sort.expr.iter_mut().enumerate() {
        let is_last_float = at == last && is_float(&sorted.expr.get_type(schema)?);
        if !is_last_float {
            sorted.expr = key(std::mem::take(&mut sorted.expr), schema)?;
        }
    }
    Ok(())
}

pub(super) fn rewrite(expr: Expr, schema: &DFSchema) -> Result<Transformed<Expr>> {
    match expr {
        Expr::BinaryExpr(e) if e.op.supports_propagation() || is_distinct(e.op) => {
            comparison(e, schema)
        }
        Expr::Between(e) => between(e, schema),
        Expr::InList(e) => in_list(e, schema),
        Expr::Case(mut case) => {
            let Some(base) = case.expr.take() else { return Ok(Transformed::no(Expr::Case(case))) };
            let data_type = base.get_type(schema)?;
            if !is_float(&data_type) && !has_key(&data_type) {
                case.expr = Some(base);
                return Ok(Transformed::no(Expr::Case(case)));
            }
            case.expr = Some(Box::new(key(*base, schema)?));
            for (when, _) in &mut case.when_then_expr {
                **when = key(std::mem::take(when.as_mut()), schema)?;
            }
            Ok(Transformed::yes(Expr::Case(case)))
        }
        Expr::WindowFunction(mut window) => {
            if let WindowFunctionDefinition::AggregateUDF(function) = &window.fun {
                check_aggregate(function.name(), &window.params.args, schema)?;
            }
            let params = &mut window.params;
            for part in &mut params.partition_by {
                *part = key(std::mem::take(part), schema)?;
            }
            for part in &mut params.order_by {
                part.expr = key(std::mem::take(&mut part.expr), schema)?;
            }
            Ok(Transformed::yes(Expr::WindowFunction(window)))
        }
        Expr::AggregateFunction(mut aggregate) => {
            check_aggregate(aggregate.func.name(), &aggregate.params.args, schema)?;
            if !aggregate.params.distinct {
                return Ok(Transformed::no(Expr::AggregateFunction(aggregate)));
            }
            if aggregate.func.name() != "count" && has_list(&aggregate, schema) {
                return Err(refused(
                    "DISTINCT of lists is there in count only: use SELECT DISTINCT",
                ));
            }
            map_arguments(&mut aggregate, schema)?;
            Ok(Transformed::yes(Expr::AggregateFunction(aggregate)))
        }
        Expr::ScalarFunction(f) if f.name() == "nullif" => null_if(f, schema),
        Expr::ScalarFunction(f) if is_nan_maker(&f, schema) => {
            Ok(Transformed::yes(one_nan(Expr::ScalarFunction(f))))
        }
        // A NaN would get the other sign.
        Expr::Negative(inner) if is_float(&inner.get_type(schema)?) => {
            Ok(Transformed::yes(match folded(Expr::Negative(inner))? {
                Expr::Literal(ScalarValue::Float64(Some(v)), m) if v.is_nan() => {
                    Expr::Literal(ScalarValue::Float64(Some(f64::NAN)), m)
                }
                Expr::Literal(value, metadata) => Expr::Literal(value, metadata),
                other => one_nan(other),
            }))
        }
        other => Ok(Transformed::no(other)),
    }
}

fn has_list(aggregate: &AggregateFunction, schema: &DFSchema) -> bool {
    let mut arguments = aggregate.params.args.iter();
    arguments.any(|argument| argument.get_type(schema).is_ok_and(|t| lists::is_list(&t)))
}

fn is_distinct(op: Operator) -> bool {
    matches!(op, Operator::IsDistinctFrom | Operator::IsNotDistinctFrom)
}

/// `nullif` compares too: its first argument, unless the two are equal.
fn null_if(mut function: ScalarFunction, schema: &DFSchema) -> Result<Transformed<Expr>> {
    let [first, second] = function.args.as_mut_slice() else {
        return Ok(Transformed::no(Expr::ScalarFunction(function)));
    };
    let data_type = first.get_type(schema)?;
    if !is_float(&data_type) && !has_key(&data_type) {
        return Ok(Transformed::no(Expr::ScalarFunction(function)));
    }
    let (first, second) = (std::mem::take(first), std::mem::take(second));
    let are_equal = binary(key(first.clone(), schema)?, Operator::Eq, key(second, schema)?);
    let null = Expr::Literal(ScalarValue::try_from(&data_type)?, None);
    Ok(Transformed::yes(when(are_equal, null).otherwise(first)?))
}

/// A function may make NaNs of either sign, such as the root of -1.
fn is_nan_maker(function: &ScalarFunction, schema: &DFSchema) -> bool {
    let expr = Expr::ScalarFunction(function.clone());
    !function.func.short_circuits()
        && !matches!(function.name(), "canonical_float" | "canonical_nan")
        && expr.get_type(schema).is_ok_and(|t| is_float(&t))
}

fn check_aggregate(name: &str, arguments: &[Expr], schema: &DFSchema) -> Result<()> {
    if matches!(name, "count" | "first_value" | "last_value" | "nth_value" | "array_agg") {
        return Ok(());
    }
    for argument in arguments {
        if matches!(name, "min" | "max")
            && argument.get_type(schema).is_ok_and(|t| lists::is_list(&t))
        {
            return Err(refused(format!(
                "{name} of lists is not supported: use ORDER BY with LIMIT 1, or {name}(x[1])"
            )));
        }
        if argument.get_type(schema).is_ok_and(|t| is_interval(&t)) {
            return Err(refused(format!(
                "{name} of an INTERVAL is not supported: use extract(epoch from ..)"
            )));
        }
    }
    Ok(())
}

fn map_arguments(aggregate: &mut AggregateFunction, schema: &DFSchema) -> Result<()> {
    for argument in &mut aggregate.params.args {
        if is_interval(&argument.get_type(schema)?) {
            return Err(refused(NO_GROUPS));
        }
        *argument = key(std::mem::take(argument), schema)?;
    }
    Ok(())
}

fn comparison(e: BinaryExpr, schema: &DFSchema) -> Result<Transformed<Expr>> {
    let BinaryExpr { left, op, right } = e;
    let data_type = left.get_type(schema)?;
    if has_key(&data_type) || has_key(&right.get_type(schema)?) {
        let (left, right) = (key_of(*left, schema)?, key_of(*right, schema)?);
        return Ok(Transformed::yes(binary(left, op, right)));
    }
    if !is_float(&data_type) {
        return Ok(Transformed::no(Expr::BinaryExpr(BinaryExpr { left, op, right })));
    }
    let (left, right) = (Box::new(folded(*left)?), Box::new(folded(*right)?));
    let literal = |e: &Expr| float_literal(e).map(|_| ());
    Ok(match (literal(&left), literal(&right)) {
        (None, Some(())) => beside_literal(*left, op, *right)?,
        (Some(()), None) => match op.swap() {
            Some(op) => beside_literal(*right, op, *left)?,
            None => Transformed::yes(binary(canonical_of(*left), op, canonical_of(*right))),
        },
        _ => Transformed::yes(binary(canonical_of(*left), op, canonical_of(*right))),
    })
}

fn binary(left: Expr, op: Operator, right: Expr) -> Expr {
    Expr::BinaryExpr(BinaryExpr { left: Box::new(left), op, right: Box::new(right) })
}

/// A literal that was brought to another type, as a literal of that type.
fn folded(expr: Expr) -> Result<Expr> {
    match expr {
        Expr::Cast(cast) => match *cast.expr {
            Expr::Literal(value, metadata) => {
                Ok(Expr::Literal(value.cast_to(cast.field.data_type())?, metadata))
            }
            inner => Ok(Expr::Cast(Cast { expr: Box::new(inner), field: cast.field })),
        },
        Expr::Negative(inner) => Ok(match folded(*inner)? {
            Expr::Literal(ScalarValue::Float64(Some(v)), metadata) => {
                Expr::Literal(ScalarValue::Float64(Some(-v)), metadata)
            }
            inner => Expr::Negative(Box::new(inner)),
        }),
        other => Ok(other),
    }
}

/// A literal's float; a NULL has none.
fn float_literal(expr: &Expr) -> Option<f64> {
    match expr {
        Expr::Literal(ScalarValue::Float64(Some(v)), _) => Some(*v),
        Expr::Literal(ScalarValue::Float32(Some(v)), _) => Some(f64::from(*v)),
        _ => None,
    }
}

/// `operand op literal`: both zeros are named where the literal is one of them.
fn beside_literal(operand: Expr, op: Operator, literal: Expr) -> Result<Transformed<Expr>> {
    if float_literal(&literal) != Some(0.0) {
        // Columns are stored with one NaN, and functions give one.
        return Ok(Transformed::yes(binary(operand, op, canonical_of(literal))));
    }
    let (below, above) = zeros(&literal);
    let is_zero = |operand, negated| {
        Expr::Between(Between {
            expr: Box::new(operand),
            negated,
            low: Box::new(below.clone()),
            high: Box::new(above.clone()),
        })
    };
    let mapped = match op {
        Operator::Eq => is_zero(operand, false),
        Operator::NotEq => is_zero(operand, true),
        Operator::Lt | Operator::GtEq => binary(operand, op, below),
        Operator::LtEq | Operator::Gt => binary(operand, op, above),
        _ => binary(canonical_of(operand), op, above),
    };
    Ok(Transformed::yes(mapped))
}

/// -0 and 0 of a literal's type.
fn zeros(literal: &Expr) -> (Expr, Expr) {
    let of = |value| Expr::Literal(value, None);
    match literal {
        Expr::Literal(ScalarValue::Float32(_), _) => {
            (of(ScalarValue::Float32(Some(-0.0))), of(ScalarValue::Float32(Some(0.0))))
        }
        _ => (of(ScalarValue::Float64(Some(-0.0))), of(ScalarValue::Float64(Some(0.0)))),
    }
}

fn between(e: Between, schema: &DFSchema) -> Result<Transformed<Expr>> {
    let data_type = e.expr.get_type(schema)?;
    if has_key(&data_type) {
        let Between { expr, negated, low, high } = e;
        let (low, high) = (Box::new(key_of(*low, schema)?), Box::new(key_of(*high, schema)?));
        return Ok(Transformed::yes(Expr::Between(Between {
            expr: Box::new(key_of(*expr, schema)?),
            negated,
            low,
            high,
        })));
    }
    if !is_float(&data_type) {
        return Ok(Transformed::no(Expr::Between(e)));
    }
    let Between { expr, negated, low, high } = e;
    let (low, high) = (Box::new(folded(*low)?), Box::new(folded(*high)?));
    let bounds = (float_literal(&low), float_literal(&high));
    let (expr, low, high) = match bounds {
        (Some(l), Some(h)) => {
            let low = if l == 0.0 { zeros(&low).0 } else { canonical_of(*low) };
            let high = if h == 0.0 { zeros(&high).1 } else { canonical_of(*high) };
            (*expr, low, high)
        }
        _ => (canonical_of(*expr), canonical_of(*low), canonical_of(*high)),
    };
    let (expr, low, high) = (Box::new(expr), Box::new(low), Box::new(high));
    Ok(Transformed::yes(Expr::Between(Between { expr, negated, low, high })))
}

fn in_list(e: InList, schema: &DFSchema) -> Result<Transformed<Expr>> {
    let data_type = e.expr.get_type(schema)?;
    let InList { expr, list, negated } = e;
    if has_key(&data_type) {
        let key = key_of(*expr, schema)?;
        let equals = |item| Ok(binary(key.clone(), Operator::Eq, key_of(item, schema)?));
        let any = list.into_iter().map(equals).collect::<Result<Vec<_>>>()?;
        let any = any.into_iter();
        let Some(any) = any.reduce(Expr::or) else { return Err(refused("IN needs values")) };
        return Ok(Transformed::yes(if negated { not(any) } else { any }));
    }
    if !is_float(&data_type) {
        return Ok(Transformed::no(Expr::InList(InList { expr, list, negated })));
    }
    let list = list.into_iter().map(folded).collect::<Result<Vec<_>>>()?;
    if !list.iter().all(|item| matches!(item, Expr::Literal(..))) {
        let list = list.into_iter().map(canonical_of).collect();
        let expr = Box::new(canonical_of(*expr));
        return Ok(Transformed::yes(Expr::InList(InList { expr, list, negated })));
    }
    let mut named = Vec::with_capacity(list.len() + 1);
    for item in list {
        if float_literal(&item) == Some(0.0) {
            let (below, above) = zeros(&item);
            named.extend([below, above]);
        } else if item == Expr::Literal(ScalarValue::Null, None) {
            named.push(item);
        } else {
            named.push(if float_literal(&item).is_some() { canonical_of(item) } else { item });
        }
    }
    Ok(Transformed::yes(Expr::InList(InList { expr, list: named, negated })))
}
