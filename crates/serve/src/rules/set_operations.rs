//! EXCEPT ALL and INTERSECT ALL.
//!
//! The engine plans both as a join that keeps or drops all equal rows of the left side together. SQL counts them: of rows
//! that are there m times on the left and n times on the right, EXCEPT ALL keeps m - n and INTERSECT ALL the lesser of m and
//! n. Rows that are equal are numbered on each side, and the number is one more column that must be equal.

use std::sync::Arc;

use datafusion::common::tree_node::Transformed;
use datafusion::common::{Column, NullEquality};
use datafusion::error::Result;
use datafusion::functions_window::row_number::row_number_udwf;
use datafusion::logical_expr::expr::{WindowFunction, WindowFunctionDefinition};
use datafusion::logical_expr::{
    Distinct, Expr, ExprFunctionExt, JoinType, LogicalPlan, LogicalPlanBuilder,
};

/// Name of the column of numbers, which no SQL can say.
const NUMBER: &str = "\u{1}row";

/// Before other rules have run, a join in which NULL equals NULL and one side only is answered is one of a set operation.
pub(super) fn number_rows(plan: LogicalPlan) -> Result<Transformed<LogicalPlan>> {
    let LogicalPlan::Join(join) = &plan else { return Ok(Transformed::no(plan)) };
    let is_all = matches!(join.join_type, JoinType::LeftSemi | JoinType::LeftAnti)
        && join.null_equality == NullEquality::NullEqualsNull
        && !matches!(join.left.as_ref(), LogicalPlan::Distinct(Distinct::All(_)));
    if !is_all {
        return Ok(Transformed::no(plan));
    }
    let columns = join.left.schema().columns();
    let (left, right) = (numbered(&join.left)?, numbered(&join.right)?);
    let mut keys: (Vec<Expr>, Vec<Expr>) = join.on.iter().cloned().unzip();
    keys.0.push(Expr::Column(Column::from_name(NUMBER)));
    keys.1.push(Expr::Column(Column::from_name(NUMBER)));
    let on = keys.0.into_iter().zip(keys.1).collect();
    let joined = datafusion::logical_expr::Join::try_new(
        Arc::new(left),
        Arc::new(right),
        on,
        join.filter.clone(),
        join.join_type,
        join.join_constraint,
        join.null_equality,
        join.null_aware,
    )?;
    let joined = LogicalPlanBuilder::from(LogicalPlan::Join(joined))
        .project(columns.into_iter().map(Expr::Column))?
        .build()?;
    Ok(Transformed::yes(joined))
}

/// A plan with the number of each row among its equals.
fn numbered(plan: &Arc<LogicalPlan>) -> Result<LogicalPlan> {
    let columns: Vec<Expr> = plan.schema().columns().into_iter().map(Expr::Column).collect();
    let function = WindowFunctionDefinition::WindowUDF(row_number_udwf());
    let number = Expr::from(WindowFunction::new(function, Vec::new()))
        .partition_by(columns)
        .build()?
        .alias(NUMBER);
    let name = number.clone();
    let Expr::Alias(alias) = name else { return Ok(plan.as_ref().clone()) };
    let window =
        LogicalPlanBuilder::from(Arc::clone(plan)).window([*alias.expr.clone()])?.build()?;
    let unnamed = Expr::Column(Column::from_name(alias.expr.schema_name().to_string()));
    let mut out: Vec<Expr> = plan.schema().columns().into_iter().map(Expr::Column).collect();
    out.push(unnamed.alias(NUMBER));
    LogicalPlanBuilder::from(window).project(out)?.build()
}
