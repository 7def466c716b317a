//! A plan that is run gives the types that its statement has.
//!
//! Rules and the engine's optimizer ask for the type of an expression again and again, and an expression whose answer
//! changes (a `round` whose second argument became a constant) was once read with the wrong number of digits. The
//! optimizer compares the types of a plan before and after it, but without the digits of decimals and zones. Here drift is
//! an error: of the columns of the answer, of the columns of each projection, and of the branches and operands that
//! kernels take for one type.
//!
//! Cost: one walk over the plan.

use std::fmt;
use std::sync::Arc;

use datafusion::arrow::datatypes::{DataType as ArrowType, Schema as ArrowSchema};
use datafusion::common::ScalarValue;
use datafusion::common::tree_node::{TreeNode, TreeNodeRecursion};
use datafusion::error::{DataFusionError, Result};
use datafusion::execution::session_state::{SessionState, SessionStateBuilder};
use datafusion::logical_expr::{Expr, ExprSchemable, LogicalPlan};
use datafusion::physical_expr::PhysicalExpr;
use datafusion::physical_expr::expressions::{BinaryExpr, CaseExpr, InListExpr};
use datafusion::physical_plan::ExecutionPlan;
use datafusion::physical_plan::aggregates::AggregateExec;
use datafusion::physical_plan::projection::ProjectionExec;

use super::refused;

/// Plans how a statement runs.
///
/// # Errors
/// What planning says, and an internal error when a type is not what it was.
pub(crate) async fn physical_plan(
    session: &SessionState,
    logical: &LogicalPlan,
) -> Result<Arc<dyn ExecutionPlan>> {
    let (_, plan) = physical_plan_fitted(session.clone(), logical, |_, _| Ok(())).await?;
    Ok(plan)
}

/// As [`physical_plan`], in a session that `fit` may change once the plan is optimized; gives that session too.
///
/// # Errors
/// As [`physical_plan`].
pub(crate) async fn physical_plan_fitted(
    mut session: SessionState,
    logical: &LogicalPlan,
    fit: impl FnOnce(&LogicalPlan, &mut SessionState) -> Result<()>,
) -> Result<(SessionState, Arc<dyn ExecutionPlan>)> {
    if matches!(logical, LogicalPlan::Explain(_)) {
        let plan = session.create_physical_plan(logical).await?;
        return Ok((session, plan));
    }
    let options = session.config_options();
    // The session's own: it has the functions that count what they make besides the rules.
    let analyzed = session.analyzer().execute_and_check(logical.clone(), options, |_, _| {})?;
    let schema = Arc::clone(analyzed.schema());
    let optimized = session.optimizer().optimize(analyzed, &session, |_, _| {})?;
    refuse_unplanned(&optimized)?;
    fit(&optimized, &mut session)?;
    let plan = match session.query_planner().create_physical_plan(&optimized, &session).await {
        Err(error) if is_internal(&error) => plan_without_pushdown(&session, &optimized).await?,
        planned => planned?,
    };
    same_types(schema.as_arrow(), &plan.schema(), "the statement")?;
    plan.apply(|node| {
        check_node(node)?;
        Ok(TreeNodeRecursion::Continue)
    })?;
    Ok((session, plan))
}

fn is_internal(error: &DataFusionError) -> bool {
    match error {
        DataFusionError::Internal(_) => true,
        DataFusionError::Context(_, inner) | DataFusionError::Diagnostic(_, inner) => {
            is_internal(inner)
        }
        _ => false,
    }
}

/// The rule of the engine that moves projections below joins and filters, and is at times mistaken in the columns that
/// they have then: it notices, and fails.
const PUSHDOWN: &str = "ProjectionPushdown";

async fn plan_without_pushdown(
    session: &SessionState,
    optimized: &LogicalPlan,
) -> Result<Arc<dyn ExecutionPlan>> {
    let rules = session.physical_optimizers().iter().filter(|rule| rule.name() != PUSHDOWN);
    let session = SessionStateBuilder::new_from_existing(session.clone())
        .with_physical_optimizer_rules(rules.map(Arc::clone).collect())
        .build();
    session.query_planner().create_physical_plan(optimized, &session).await
}

/// What has no plan although it has a tree: subqueries that the optimizer has not made joins of, a place before the first.
fn refuse_unplanned(plan: &LogicalPlan) -> Result<()> {
    plan.apply(|node| {
        node.apply_expressions(|expr| {
            expr.apply(|part| match part {
                Expr::Exists(_) | Expr::InSubquery(_) | Expr::SetComparison(_) => Err(refused(
                    "EXISTS, IN, ANY and ALL over a subquery have no plan here: they stand in WHERE, HAVING and lists of SELECT, \
                     and name columns from outside of the subquery in conditions joined by AND; elsewhere write (SELECT count(*) FROM ..) > 0, \
                     or a LEFT JOIN",
                )),
                Expr::ScalarSubquery(query) if !query.outer_ref_columns.is_empty() => {
                    Err(refused(CORRELATED))
                }
                Expr::OuterReferenceColumn(..) => Err(refused(CORRELATED)),
                Expr::WindowFunction(window) if window.fun.name() == NTH => {
                    check_place(window.params.args.get(1))
                }
                Expr::WindowFunction(window) if SHIFTS.contains(&window.fun.name()) => {
                    check_distance(window.fun.name(), &window.params.args, node)
                }
                Expr::AggregateFunction(aggregate) if aggregate.func.name() == NTH => {
                    check_place(aggregate.params.args.get(1))
                }
                _ => Ok(TreeNodeRecursion::Continue),
            })
        })
    })?;
    Ok(())
}

/// A function of the place of a row, which the engine also counts from the end, and takes 0 for no row.
const NTH: &str = "nth_value";

fn check_place(place: Option<&Expr>) -> Result<TreeNodeRecursion> {
    let Some(Expr::Literal(place, _)) = place else {
        return Err(refused("nth_value(x, n) takes a number for n, the same for all rows"));
    };
    match place.cast_to(&ArrowType::Int64) {
        Ok(ScalarValue::Int64(Some(place))) if place >= 1 => Ok(TreeNodeRecursion::Continue),
        _ => Err(refused(format!("nth_value(x, n) counts from 1, and n is {place}"))),
    }
}

/// Functions of a row at a distance, for which the engine takes 0 where it is NULL.
const SHIFTS: [&str; 2] = ["lag", "lead"];

fn check_distance(name: &str, args: &[Expr], node: &LogicalPlan) -> Result<TreeNodeRecursion> {
    if let Some(Expr::Literal(distance, _)) = args.get(1)
        && distance.is_null()
    {
        return Err(refused(format!("{name}(x, n) takes a number of rows for n, and it is NULL")));
    }
    // The engine cuts digits off a default that the column cannot hold.
    let inputs = node.inputs();
    if let ([value, _, Expr::Literal(default, _)], [input]) = (args, inputs.as_slice())
        && !default.is_null()
    {
        let (own, wanted) = (default.data_type(), value.get_type(input.schema())?);
        let back = default.cast_to(&wanted).and_then(|held| held.cast_to(&own));
        if back.ok().as_ref() != Some(default) {
            return Err(refused(format!(
                "{name}: the default {default} is no value of the type of its column"
            )));
        }
    }
    Ok(TreeNodeRecursion::Continue)
}

const CORRELATED: &str = "a subquery names columns from outside of it that are not there: in ORDER BY those of the list of SELECT are (put the subquery \
     into the list, and order by its name); elsewhere write a JOIN";

fn same_types(expected: &ArrowSchema, found: &ArrowSchema, what: &str) -> Result<()> {
    for (expected, found) in expected.fields().iter().zip(found.fields()) {
        // The engine sums sums beside one DISTINCT, and a sum has more digits before the point.
        if is_same_scale(expected.data_type(), found.data_type()) {
            continue;
        }
        let name = format_args!("column {} of {what}", expected.name());
        same_type(expected.data_type(), found.data_type(), name)?;
    }
    Ok(())
}

fn is_same_scale(one: &ArrowType, other: &ArrowType) -> bool {
    match (one, other) {
        (ArrowType::Decimal128(_, one), ArrowType::Decimal128(_, other)) => one == other,
        _ => false,
    }
}

/// The forms of text hold the same. `what` is written only if it has another type: a list of 20,000 values has as many
/// operands, each of which is in its text.
fn same_type(expected: &ArrowType, found: &ArrowType, what: fmt::Arguments<'_>) -> Result<()> {
    let is_text =
        |t: &ArrowType| matches!(t, ArrowType::Utf8 | ArrowType::LargeUtf8 | ArrowType::Utf8View);
    if expected == found || is_text(expected) && is_text(found) {
        return Ok(());
    }
    Err(DataFusionError::Internal(format!("{what} was planned as {expected} and is {found}")))
}

fn check_node(node: &Arc<dyn ExecutionPlan>) -> Result<()> {
    let children = node.children();
    // Conditions of joins have a schema of their own.
    let [input] = children.as_slice() else { return Ok(()) };
    // An aggregate that ends what others began names the columns that those read.
    let schema = match node.downcast_ref::<AggregateExec>() {
        Some(aggregate) => aggregate.input_schema(),
        None => input.schema(),
    };
    if let Some(projection) = node.downcast_ref::<ProjectionExec>() {
        for (made, field) in projection.expr().iter().zip(node.schema().fields()) {
            let found = made.expr.data_type(&schema)?;
            same_type(field.data_type(), &found, format_args!("column {}", field.name()))?;
        }
    }
    node.apply_expressions(&mut |expr| {
        check_expr(expr, &schema)?;
        Ok(TreeNodeRecursion::Continue)
    })?;
    Ok(())
}

fn check_expr(expr: &Arc<dyn PhysicalExpr>, schema: &ArrowSchema) -> Result<()> {
    expr.apply(|part| {
        let Some(alike) = alike(part) else { return Ok(TreeNodeRecursion::Continue) };
        let mut first = None;
        for operand in alike {
            let found = operand.data_type(schema)?;
            match &first {
                None => first = Some(found),
                Some(first) => same_type(first, &found, format_args!("an operand of {part}"))?,
            }
        }
        Ok(TreeNodeRecursion::Continue)
    })?;
    Ok(())
}

/// The parts of an expression that its kernel takes for one type.
fn alike(expr: &Arc<dyn PhysicalExpr>) -> Option<Vec<&Arc<dyn PhysicalExpr>>> {
    if let Some(case) = expr.downcast_ref::<CaseExpr>() {
        return Some(
            case.when_then_expr().iter().map(|(_, then)| then).chain(case.else_expr()).collect(),
        );
    }
    if let Some(list) = expr.downcast_ref::<InListExpr>() {
        return Some(std::iter::once(list.expr()).chain(list.list()).collect());
    }
    let binary = expr.downcast_ref::<BinaryExpr>()?;
    binary.op().supports_propagation().then(|| vec![binary.left(), binary.right()])
}

#[cfg(test)]
mod tests {
    use super::*;
    use datafusion::arrow::datatypes::Field;
    use datafusion::logical_expr::Operator;
    use datafusion::physical_expr::expressions::{binary, case, col, lit};

    fn decimal(scale: i8) -> ArrowType {
        ArrowType::Decimal128(9, scale)
    }

    #[test]
    fn other_digits_are_another_type() {
        let of = |t| ArrowSchema::new(vec![Field::new("a", t, true)]);
        assert!(same_types(&of(decimal(2)), &of(decimal(2)), "x").is_ok());
        assert!(same_types(&of(decimal(2)), &of(decimal(1)), "x").is_err());
        assert!(same_types(&of(ArrowType::Utf8), &of(ArrowType::Utf8View), "x").is_ok());
    }

    #[test]
    fn branches_and_operands_of_several_types_are_found() {
        let schema = ArrowSchema::new(vec![
            Field::new("a", decimal(2), true),
            Field::new("b", decimal(1), true),
            Field::new("c", ArrowType::Boolean, true),
        ]);
        let column = |name| col(name, &schema).expect("a column");
        let when =
            |then, other| case(None, vec![(column("c"), then)], Some(other)).expect("a case");
        assert!(check_expr(&when(column("a"), column("a")), &schema).is_ok());
        assert!(check_expr(&when(column("a"), column("b")), &schema).is_err());
        let zero = lit(ScalarValue::Decimal128(Some(0), 9, 1));
        let equal = |left, right| binary(left, Operator::Eq, right, &schema).expect("a comparison");
        assert!(check_expr(&equal(column("b"), Arc::clone(&zero)), &schema).is_ok());
        assert!(check_expr(&equal(column("a"), zero), &schema).is_err());
    }
}
