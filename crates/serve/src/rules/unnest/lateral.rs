//! LATERAL: a table that is a subquery over the tables before it.

use std::sync::Arc;

use datafusion::common::tree_node::Transformed;
use datafusion::error::Result;
use datafusion::logical_expr::{
    Expr, Join, JoinType, LogicalPlan, LogicalPlanBuilder, SubqueryAlias, lit,
};

use super::domain::{Domain, Names};
use super::{NotDistinct, Rows, along, push, restricted};
use crate::rules::refused;

/// Whether the right side of a join names columns of the left.
pub(super) fn side(join: &Join) -> bool {
    join.right.all_out_ref_exprs().iter().any(|expr| match expr {
        Expr::OuterReferenceColumn(_, column) => join.left.schema().has_column(column),
        _ => false,
    })
}

/// Checks that a table in FROM that is not LATERAL names no column of a query around that a table before it has as well: such a
/// column would be taken for that table's.
///
/// # Errors
/// A refusal that asks for another alias, if it does.
pub(super) fn check(node: &LogicalPlan) -> Result<()> {
    let LogicalPlan::Join(join) = node else { return Ok(()) };
    let mut plan = join.right.as_ref();
    while let LogicalPlan::SubqueryAlias(alias) = plan {
        plan = &alias.input;
    }
    if side(join) && !matches!(plan, LogicalPlan::Subquery(_)) {
        return Err(refused(
            "a subquery in FROM names a column of a query around it that a table before it has too: give one of the two another alias",
        ));
    }
    Ok(())
}

/// The join, with the rows of the right side for each row of the domain.
pub(super) fn joined(join: Join, names: &Names) -> Result<Transformed<LogicalPlan>> {
    if !matches!(join.join_type, JoinType::Inner | JoinType::Left) {
        return Err(refused("LATERAL stands behind a comma, CROSS JOIN, JOIN or LEFT JOIN"));
    }
    let columns = join.schema.columns();
    let plan = without_mark(&join.right)?;
    if let Some(along) = along::joined(&join, &plan, names)? {
        return Ok(Transformed::yes(along));
    }
    let domain = Domain::new(&plan, &Rows::new(join.left.as_ref().clone()), None, names)?;
    let (pushed, keys) = push::push(plan, &domain)?;
    let mut on: Vec<Expr> = join.on.iter().map(|(l, r)| l.clone().eq(r.clone())).collect();
    on.extend(join.filter.clone());
    on.extend(
        keys.into_iter().enumerate().map(|(at, key)| domain.outer(at).equal_or_both_null(key)),
    );
    on.push(lit(true));
    let joined = LogicalPlanBuilder::from(Arc::unwrap_or_clone(join.left));
    let joined = joined.join_on(pushed, join.join_type, on)?.build()?;
    restricted(joined, columns).map(Transformed::yes)
}

/// The plan of the right side without the node that says that it is LATERAL.
fn without_mark(plan: &LogicalPlan) -> Result<LogicalPlan> {
    Ok(match plan {
        LogicalPlan::SubqueryAlias(alias) => {
            let input = Arc::new(without_mark(&alias.input)?);
            LogicalPlan::SubqueryAlias(SubqueryAlias::try_new(input, alias.alias.clone())?)
        }
        LogicalPlan::Subquery(query) => query.subquery.as_ref().clone(),
        other => other.clone(),
    })
}
