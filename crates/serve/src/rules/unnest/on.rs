//! Subqueries in conditions of joins: that of an inner join is a filter; of an outer one, the subquery's value is a column of
//! the side that it names.

use std::sync::Arc;

use datafusion::common::Column;
use datafusion::common::tree_node::{Transformed, TreeNode};
use datafusion::error::Result;
use datafusion::logical_expr::{Expr, Filter, Join, JoinType, LogicalPlan};

use super::domain::Names;
use super::{Rows, attached, needs, restricted, subquery_of, unnested};
use crate::rules::refused;

/// A join with columns in the place of the subqueries of its condition.
///
/// # Errors
/// When one names columns of both sides of an outer join.
pub(super) fn replaced(mut join: Join, names: &Names) -> Result<Transformed<LogicalPlan>> {
    let node = LogicalPlan::Join(join.clone());
    let is_for_us = |part: &Expr| needs(part, &node);
    let Some(condition) = join.filter.clone() else { return Ok(Transformed::no(node)) };
    if !condition.exists(|part| Ok(is_for_us(part)))? {
        return Ok(Transformed::no(node));
    }
    let columns = node.schema().columns();
    if join.join_type == JoinType::Inner {
        join.filter = None;
        let filter = Filter::try_new(condition, Arc::new(LogicalPlan::Join(join)))?;
        return unnested(LogicalPlan::Filter(filter), names)
            .map(|filter| Transformed::yes(filter.data));
    }
    let mut left = Rows::new(join.left.as_ref().clone());
    let mut right = Rows::new(join.right.as_ref().clone());
    let condition = condition.transform_up(|part| {
        if !is_for_us(&part) {
            return Ok(Transformed::no(part));
        }
        let named = named_by(&part);
        let is_in = |side: &Rows| named.iter().all(|column| side.plan.schema().has_column(column));
        let side = match (is_in(&left), is_in(&right)) {
            (true, _) => &mut left,
            (_, true) => &mut right,
            _ => {
                return Err(refused(
                    "a subquery in the ON of an outer join names columns of one of its sides only: compute it in a subquery in FROM",
                ));
            }
        };
        attached(side, part, names).map(Transformed::yes)
    })?;
    join.filter = Some(condition.data);
    let join = Join::try_new(
        Arc::new(left.plan),
        Arc::new(right.plan),
        join.on,
        join.filter,
        join.join_type,
        join.join_constraint,
        join.null_equality,
        join.null_aware,
    )?;
    restricted(LogicalPlan::Join(join), columns).map(Transformed::yes)
}

/// The columns that a subquery and what it is compared with name.
fn named_by(expr: &Expr) -> Vec<Column> {
    let mut columns: Vec<Column> = expr.column_refs().into_iter().cloned().collect();
    let outer = subquery_of(expr).map(|query| query.subquery.all_out_ref_exprs());
    for expr in outer.unwrap_or_default() {
        if let Expr::OuterReferenceColumn(_, column) = expr {
            columns.push(column);
        }
    }
    columns
}
