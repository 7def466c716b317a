//! Subqueries that name columns from outside, as joins.
//!
//! The engine makes a join of such a subquery by taking the conditions that name outer columns out of it. That is right
//! for few forms, which [`simple`] lists. All others are computed here for all values of the outer columns at once:
//!
//! ```text
//!   domain   = the distinct values of the outer columns in the rows around the subquery
//!   pushed   = the subquery for each row of the domain, with the domain's columns as further columns
//!   answer   = pushed grouped by them: a count of rows for EXISTS, of rows that fit for ANY and ALL, the value of a scalar
//!   result   = rows around LEFT JOIN answer ON the outer columns IS NOT DISTINCT FROM the domain's
//! ```
//!
//! Subqueries within subqueries come first. Columns from two levels out are then outer columns of the domain of the inner
//! one, so that it is a plan like others when the one around it has its turn.

mod along;
mod domain;
mod empty;
mod lateral;
mod on;
mod only;
mod push;
mod simple;

use datafusion::common::config::ConfigOptions;
use datafusion::common::tree_node::{Transformed, TreeNode, TreeNodeRecursion};
use datafusion::common::{Column, ScalarValue};
use datafusion::error::Result;
use datafusion::functions_aggregate::expr_fn::count;
use datafusion::functions_aggregate::first_last::first_value_udaf;
use datafusion::logical_expr::expr::{
    AggregateFunction, Exists, InSubquery, SetComparison, SetQuantifier,
};
use datafusion::logical_expr::expr_rewriter::NamePreserver;
use datafusion::logical_expr::{
    BinaryExpr, Expr, ExprFunctionExt, JoinType, LogicalPlan, LogicalPlanBuilder, Operator,
    Subquery, lit, not, when,
};
use datafusion::optimizer::AnalyzerRule;

use super::{has_expression, has_node, refused};
use domain::{Domain, Names};

/// The rule. It runs when operands have their types and before expressions are mapped, as it makes expressions itself.
#[derive(Debug)]
pub(super) struct Unnest;

impl AnalyzerRule for Unnest {
    fn analyze(&self, plan: LogicalPlan, _: &ConfigOptions) -> Result<LogicalPlan> {
        // Most statements have none.
        let has_work = |node: &LogicalPlan| {
            Ok(matches!(node, LogicalPlan::Subquery(_)) || has_expression(node, is_subquery)?)
        };
        if !has_node(&plan, has_work)? {
            return Ok(plan);
        }
        plan.apply_with_subqueries(|node| {
            lateral::check(node)?;
            Ok(TreeNodeRecursion::Continue)
        })?;
        let names = Names::default();
        Ok(plan.transform_up_with_subqueries(|node| unnested(node, &names))?.data)
    }

    fn name(&self) -> &str {
        "unnest"
    }
}

fn unnested(node: LogicalPlan, names: &Names) -> Result<Transformed<LogicalPlan>> {
    if let LogicalPlan::Join(join) = node {
        return match lateral::side(&join) {
            true => lateral::joined(join, names),
            false => on::replaced(join, names),
        };
    }
    let is_for_us = |node: &LogicalPlan| has_expression(node, |part| needs(part, node));
    match &node {
        LogicalPlan::Projection(_)
        | LogicalPlan::Filter(_)
        | LogicalPlan::Aggregate(_)
        | LogicalPlan::Window(_)
        | LogicalPlan::Sort(_)
            if is_for_us(&node)? =>
        {
            replaced(node, names).map(Transformed::yes)
        }
        _ => Ok(Transformed::no(node)),
    }
}

fn is_subquery(expr: &Expr) -> bool {
    subquery_of(expr).is_some()
}

fn subquery_of(expr: &Expr) -> Option<&Subquery> {
    match expr {
        Expr::Exists(Exists { subquery, .. })
        | Expr::InSubquery(InSubquery { subquery, .. })
        | Expr::SetComparison(SetComparison { subquery, .. })
        | Expr::ScalarSubquery(subquery) => Some(subquery),
        _ => None,
    }
}

/// Whether an expression is a subquery of a node that the engine would have no plan for, or a wrong one.
fn needs(expr: &Expr, node: &LogicalPlan) -> bool {
    let Some(subquery) = subquery_of(expr) else { return false };
    let outer = subquery.subquery.all_out_ref_exprs();
    if outer.is_empty() {
        return match expr {
            Expr::ScalarSubquery(query) => empty::is_wrongly_never_null(&query.subquery),
            _ => matches!(node, LogicalPlan::Sort(_) | LogicalPlan::Join(_)),
        };
    }
    let [input] = node.inputs()[..] else { return true };
    let is_local = outer.iter().all(|expr| match expr {
        Expr::OuterReferenceColumn(_, column) => input.schema().has_column(column),
        _ => false,
    });
    !is_local || !simple::is_simple(expr, node)
}

/// A node with columns in the place of its subqueries.
fn replaced(node: LogicalPlan, names: &Names) -> Result<LogicalPlan> {
    let [input] = node.inputs()[..] else { return Ok(node) };
    let (mut rows, columns) = (Rows::new(input.clone()), node.schema().columns());
    let saver = NamePreserver::new(&node);
    let mut exprs = Vec::new();
    for expr in node.expressions() {
        let name = saver.save(&expr);
        let expr = expr.transform_up(|part| match needs(&part, &node) {
            false => Ok(Transformed::no(part)),
            true => attached(&mut rows, part, names).map(Transformed::yes),
        })?;
        exprs.push(name.restore(expr.data));
    }
    let node = node.with_new_exprs(exprs, vec![rows.plan])?;
    // Filters, sorts and windows give the columns of their input as well.
    restricted(node, columns)
}

/// The rows around subqueries, to which a column is joined for each subquery that is replaced.
struct Rows {
    /// The rows with the columns that stand for subqueries so far.
    plan: LogicalPlan,
    /// The rows before any was joined: domains are taken from them.
    base: LogicalPlan,
}

impl Rows {
    fn new(plan: LogicalPlan) -> Self {
        Self { base: plan.clone(), plan }
    }
}

/// A plan with some of its columns.
fn restricted(plan: LogicalPlan, columns: Vec<Column>) -> Result<LogicalPlan> {
    if plan.schema().fields().len() == columns.len() {
        return Ok(plan);
    }
    LogicalPlanBuilder::from(plan).project(columns.into_iter().map(Expr::Column))?.build()
}

/// The value of a subquery for each of some rows, which get further columns.
fn attached(rows: &mut Rows, subquery: Expr, names: &Names) -> Result<Expr> {
    match subquery {
        Expr::Exists(Exists { subquery, negated }) => {
            let counts = joined(rows, &subquery, None, names, |_, _| Ok(vec![count(lit(1_i64))]))?;
            let exists = known(&counts[0])?;
            Ok(if negated { not(exists) } else { exists })
        }
        Expr::InSubquery(InSubquery { expr, subquery, negated }) => {
            let any = compared(rows, *expr, Operator::Eq, SetQuantifier::Any, &subquery, names)?;
            Ok(if negated { not(any) } else { any })
        }
        Expr::SetComparison(SetComparison { expr, subquery, op, quantifier }) => {
            compared(rows, *expr, op, quantifier, &subquery, names)
        }
        Expr::ScalarSubquery(subquery) => {
            if subquery.subquery.max_rows().is_some_and(|rows| rows <= 1) {
                let value = joined(rows, &subquery, None, names, |_, _| Ok(Vec::new()))?;
                return Ok(Expr::Column(value[0].clone()));
            }
            let value = joined(rows, &subquery, None, names, |value, _| {
                let first = AggregateFunction::new_udf(
                    first_value_udaf(),
                    vec![value],
                    false,
                    None,
                    Vec::new(),
                    None,
                );
                Ok(vec![Expr::AggregateFunction(first), count(lit(1_i64))])
            })?;
            Ok(only::only(Expr::Column(value[0].clone()), Expr::Column(value[1].clone())))
        }
        other => Ok(other),
    }
}

/// Whether a count that an outer join adds is above 0.
fn known(count: &Column) -> Result<Expr> {
    when(Expr::Column(count.clone()).gt(lit(0_i64)), lit(true)).otherwise(lit(false))
}

/// `x op ANY (S)` and `x op ALL (S)`, with three values.
fn compared(
    rows: &mut Rows,
    expr: Expr,
    op: Operator,
    quantifier: SetQuantifier,
    subquery: &Subquery,
    names: &Names,
) -> Result<Expr> {
    let is_constant = expr.column_refs().is_empty() && !expr.contains_outer();
    // What is looked for is a column of the rows and of the domain.
    let (sought, constant) = match expr {
        constant if is_constant => (None, Some(constant)),
        Expr::Column(column) => (Some((column.clone(), Expr::Column(column))), None),
        other => {
            let name = names.next();
            let columns = rows.plan.schema().columns().into_iter().map(Expr::Column);
            let exprs: Vec<Expr> = columns.chain([other.clone().alias(&name)]).collect();
            rows.plan = LogicalPlanBuilder::from(rows.plan.clone()).project(exprs)?.build()?;
            (Some((Column::new_unqualified(name), other)), None)
        }
    };
    let decides = quantifier == SetQuantifier::Any;
    let counts = joined(rows, subquery, sought, names, |value, sought| {
        let Some(sought) = sought.map(Expr::Column).or(constant) else {
            return Err(refused("a comparison has two sides"));
        };
        let compare = |value: Expr| {
            let left = Box::new(sought.clone());
            Expr::BinaryExpr(BinaryExpr { left, op, right: Box::new(value) })
        };
        let decided = match decides {
            true => compare(value.clone()),
            false => not(compare(value.clone())),
        };
        Ok(vec![
            count(lit(1_i64)).filter(decided).build()?,
            count(lit(1_i64)).filter(compare(value).is_null()).build()?,
        ])
    })?;
    let above = |column: &Column| Expr::Column(column.clone()).gt(lit(0_i64));
    when(above(&counts[0]), lit(decides))
        .when(above(&counts[1]), Expr::Literal(ScalarValue::Boolean(None), None))
        .otherwise(lit(!decides))
}

/// Joins a subquery to rows: the columns of what `aggregates` says of its rows, or of its first column if that is nothing.
/// The rows are given as the first column and the domain's copy of what is `sought`.
fn joined(
    rows: &mut Rows,
    subquery: &Subquery,
    sought: Option<(Column, Expr)>,
    names: &Names,
    aggregates: impl FnOnce(Expr, Option<Column>) -> Result<Vec<Expr>>,
) -> Result<Vec<Column>> {
    let plan = subquery.subquery.as_ref();
    let domain = Domain::new(plan, rows, sought.as_ref(), names)?;
    let first = plan.schema().columns().into_iter().next();
    let (pushed, columns) = push::push(plan.clone(), &domain)?;
    let first = first.map_or_else(|| lit(true), Expr::Column);
    let copy = sought.is_some().then(|| columns.last().cloned()).flatten();
    let values = aggregates(first.clone(), copy)?;
    let keys: Vec<Expr> = columns.iter().cloned().map(Expr::Column).collect();
    let (answer, values) = match values.is_empty() {
        true => (pushed, vec![first]),
        false => {
            let named: Vec<String> = values.iter().map(|_| names.next()).collect();
            let values: Vec<Expr> =
                values.into_iter().zip(&named).map(|(value, name)| value.alias(name)).collect();
            let answer =
                LogicalPlanBuilder::from(pushed).aggregate(keys.clone(), values)?.build()?;
            let columns = named.into_iter().map(|name| Expr::Column(Column::new_unqualified(name)));
            (answer, columns.collect())
        }
    };
    let alias = names.next();
    let named = |prefix: &str, exprs: Vec<Expr>| -> Vec<Expr> {
        exprs
            .into_iter()
            .enumerate()
            .map(|(at, expr)| expr.alias(format!("{prefix}{at}")))
            .collect()
    };
    let (key, value) = (names.next(), names.next());
    let (key_count, value_count) = (keys.len(), values.len());
    let list: Vec<Expr> = named(&key, keys).into_iter().chain(named(&value, values)).collect();
    let answer = LogicalPlanBuilder::from(answer).project(list)?.alias(alias.as_str())?.build()?;
    let column =
        |prefix: &str, at: usize| Column::new(Some(alias.as_str()), format!("{prefix}{at}"));
    let equal = (0..key_count).map(|at| domain.outer(at).equal_or_both_null(column(&key, at)));
    let on = match key_count {
        0 => vec![lit(true)],
        _ => equal.collect(),
    };
    rows.plan =
        LogicalPlanBuilder::from(rows.plan.clone()).join_on(answer, JoinType::Left, on)?.build()?;
    Ok((0..value_count).map(|at| column(&value, at)).collect())
}

/// `expr IS NOT DISTINCT FROM column`.
trait NotDistinct {
    fn equal_or_both_null(self, column: Column) -> Expr;
}

impl NotDistinct for Expr {
    fn equal_or_both_null(self, column: Column) -> Expr {
        let right = Box::new(Expr::Column(column));
        Expr::BinaryExpr(BinaryExpr {
            left: Box::new(self),
            op: Operator::IsNotDistinctFrom,
            right,
        })
    }
}
