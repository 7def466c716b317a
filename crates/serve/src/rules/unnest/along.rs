//! LATERAL unnest(): elements beside the row that has them, without a join.
//!
//! ```text
//!   t, unnest(t.x) AS u(v)   =   projection (t.*, v) of unnest of a projection (t.*, t.x AS ..) of t
//! ```
//!
//! The rows of the left side take the place of the one row that the list is unnested of.

use std::sync::Arc;

use datafusion::common::tree_node::{Transformed, TreeNode};
use datafusion::common::{Column, NullHandling, ScalarValue, TableReference};
use datafusion::error::Result;
use datafusion::logical_expr::{
    Expr, Filter, Join, JoinType, LogicalPlan, Projection, SubqueryAlias, Unnest,
};

use super::domain::Names;

/// The rows of the left side, and the names that its columns have meanwhile.
struct Left {
    rows: LogicalPlan,
    columns: Vec<(Column, String)>,
    kind: JoinType,
}

/// The join with a right side of elements; `None` where that is more, or where ON decides which rows have a partner.
pub(super) fn joined(
    join: &Join,
    right: &LogicalPlan,
    names: &Names,
) -> Result<Option<LogicalPlan>> {
    let has_condition = !join.on.is_empty() || join.filter.as_ref().is_some_and(|f| !is_true(f));
    if !is_of_elements(right) || join.join_type == JoinType::Left && has_condition {
        return Ok(None);
    }
    let columns = join.left.schema().columns().into_iter().map(|column| (column, names.next()));
    let columns: Vec<_> = columns.collect();
    let renamed = columns.iter().map(|(column, name)| Expr::Column(column.clone()).alias(name));
    let rows = Projection::try_new(renamed.collect(), Arc::clone(&join.left))?;
    let left = Left { rows: LogicalPlan::Projection(rows), columns, kind: join.join_type };
    let along = left.along(right)?;
    // The columns of the join, under their names.
    let back = left.columns.iter().map(|(column, name)| {
        let renamed = Expr::Column(Column::new_unqualified(name));
        renamed.alias_qualified(column.relation.clone(), &column.name)
    });
    let elements = right.schema().columns().into_iter().map(Expr::Column);
    let list = Projection::try_new(back.chain(elements).collect(), Arc::new(along))?;
    let mut plan = LogicalPlan::Projection(list);
    let on = join.on.iter().map(|(l, r)| l.clone().eq(r.clone()));
    for condition in on.chain(join.filter.clone().filter(|filter| !is_true(filter))) {
        plan = LogicalPlan::Filter(Filter::try_new(condition, Arc::new(plan))?);
    }
    Ok(Some(plan))
}

fn is_true(condition: &Expr) -> bool {
    matches!(condition, Expr::Literal(ScalarValue::Boolean(Some(true)), _))
}

/// Whether a plan makes elements of one row, and nothing else of them.
fn is_of_elements(plan: &LogicalPlan) -> bool {
    match plan {
        LogicalPlan::Projection(list) => is_of_elements(&list.input),
        LogicalPlan::SubqueryAlias(alias) => is_of_elements(&alias.input),
        LogicalPlan::Unnest(unnest) => match &*unnest.input {
            LogicalPlan::Projection(list) => match &*list.input {
                LogicalPlan::EmptyRelation(empty) => empty.produce_one_row,
                _ => false,
            },
            _ => false,
        },
        _ => false,
    }
}

impl Left {
    /// A plan with the columns of the left side besides.
    fn along(&self, plan: &LogicalPlan) -> Result<LogicalPlan> {
        match plan {
            LogicalPlan::EmptyRelation(_) => Ok(self.rows.clone()),
            LogicalPlan::Projection(list) => {
                let exprs = list.expr.iter().map(|expr| self.bound(expr));
                let exprs = exprs.collect::<Result<Vec<_>>>()?;
                self.listed(exprs, self.along(&list.input)?)
            }
            LogicalPlan::SubqueryAlias(SubqueryAlias { input, alias, .. }) => {
                let columns = input.schema().columns().into_iter();
                let named = columns.map(|column| {
                    let name = column.name.clone();
                    Expr::Column(column)
                        .alias_qualified(Some::<TableReference>(alias.clone()), name)
                });
                self.listed(named.collect(), self.along(input)?)
            }
            LogicalPlan::Unnest(Unnest { input, exec_columns, options, .. }) => {
                let mut options = options.clone();
                options.null_handling = match self.kind {
                    JoinType::Left => NullHandling::PreserveAndExpandEmpty,
                    _ => options.null_handling,
                };
                let input = Arc::new(self.along(input)?);
                Ok(LogicalPlan::Unnest(Unnest::try_new(input, exec_columns.clone(), options)?))
            }
            other => Ok(other.clone()),
        }
    }

    /// A list of expressions, and the columns of the left side.
    fn listed(&self, mut exprs: Vec<Expr>, input: LogicalPlan) -> Result<LogicalPlan> {
        let columns = self.columns.iter();
        exprs.extend(columns.map(|(_, name)| Expr::Column(Column::new_unqualified(name))));
        Ok(LogicalPlan::Projection(Projection::try_new(exprs, Arc::new(input))?))
    }

    /// An expression over the columns of the left side that it names, under its name.
    fn bound(&self, expr: &Expr) -> Result<Expr> {
        let (relation, name) = expr.qualified_name();
        let bound = expr.clone().transform(|part| {
            let Expr::OuterReferenceColumn(_, column) = &part else {
                return Ok(Transformed::no(part));
            };
            let known = self.columns.iter().find(|(own, _)| own == column);
            Ok(match known {
                Some((_, name)) => Transformed::yes(Expr::Column(Column::new_unqualified(name))),
                // It is one of a query around.
                None => Transformed::no(part),
            })
        })?;
        Ok(match bound.transformed {
            true => bound.data.unalias().alias_qualified(relation, name),
            false => bound.data,
        })
    }
}
