//! Conditions that an expression equals a column, such as `abs(a) = a`.
//!
//! From such a filter on the engine takes both for the same, and may sort by either. A window over partitions of `a` then
//! finds rows in the order of `abs(a)`, and planning ends in an internal error. So such a condition is told as one that
//! the engine draws no conclusions from: `(abs(a) = a) IS NOT DISTINCT FROM true`. Columns that equal columns or
//! constants stay as they are.

use std::sync::Arc;

use datafusion::error::Result;
use datafusion::logical_expr::Operator;
use datafusion::physical_expr::expressions::{BinaryExpr, Column, Literal, lit};
use datafusion::physical_expr::utils::{conjunction, split_conjunction};
use datafusion::physical_plan::filter::{FilterExec, FilterExecBuilder};
use datafusion::physical_plan::{ExecutionPlan, PhysicalExpr};

use crate::physical_rules::Replaced;

/// A filter whose conditions name no expression that equals a column.
pub(crate) fn hide_equalities(node: &Arc<dyn ExecutionPlan>) -> Result<Replaced> {
    let Some(filter) = node.downcast_ref::<FilterExec>() else { return Ok(None) };
    let conditions = split_conjunction(filter.predicate());
    if !conditions.iter().any(|condition| is_of_expression(condition)) {
        return Ok(None);
    }
    let hidden = conditions.into_iter().map(|condition| match is_of_expression(condition) {
        true => hide(Arc::clone(condition)),
        false => Arc::clone(condition),
    });
    let predicate = conjunction(hidden);
    let filter = FilterExecBuilder::from(filter).with_predicate(predicate).build()?;
    Ok(Some(Arc::new(filter)))
}

fn is_of_expression(condition: &Arc<dyn PhysicalExpr>) -> bool {
    let Some(equality) = condition.downcast_ref::<BinaryExpr>() else { return false };
    let is_column = |side: &Arc<dyn PhysicalExpr>| side.downcast_ref::<Column>().is_some();
    let is_plain = |side| is_column(side) || side.downcast_ref::<Literal>().is_some();
    let (left, right) = (equality.left(), equality.right());
    *equality.op() == Operator::Eq
        && (is_column(left) && !is_plain(right) || is_column(right) && !is_plain(left))
}

fn hide(condition: Arc<dyn PhysicalExpr>) -> Arc<dyn PhysicalExpr> {
    Arc::new(BinaryExpr::new(condition, Operator::IsNotDistinctFrom, lit(true)))
}
