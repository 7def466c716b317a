//! Values of subqueries that have no row.

use datafusion::logical_expr::{Distinct, Expr, LogicalPlan};

/// Whether the engine would say that a value is never NULL, although the subquery may have no row.
pub(super) fn is_wrongly_never_null(plan: &LogicalPlan) -> bool {
    let mut rows = plan;
    while let LogicalPlan::Projection(list) = rows {
        rows = &list.input;
    }
    let has_row = match rows {
        LogicalPlan::Aggregate(aggregate) => aggregate.group_expr.is_empty(),
        LogicalPlan::EmptyRelation(relation) => relation.produce_one_row,
        _ => false,
    };
    let is_nullable = plan.schema().fields().first().is_some_and(|field| field.is_nullable());
    !has_row && (!is_nullable || is_constant(plan, 0))
}

/// Whether a column of a plan is one value, of which constants are folded later.
fn is_constant(plan: &LogicalPlan, at: usize) -> bool {
    let exprs = match plan {
        LogicalPlan::Projection(list) => &list.expr,
        LogicalPlan::Aggregate(aggregate) => &aggregate.group_expr,
        LogicalPlan::Union(union) => {
            return union.inputs.iter().any(|input| is_constant(input, at));
        }
        LogicalPlan::Filter(_)
        | LogicalPlan::Sort(_)
        | LogicalPlan::Limit(_)
        | LogicalPlan::SubqueryAlias(_)
        | LogicalPlan::Distinct(Distinct::All(_)) => {
            return plan.inputs().into_iter().any(|input| is_constant(input, at));
        }
        _ => return false,
    };
    let Some(expr) = exprs.get(at) else { return false };
    match expr.clone().unalias() {
        Expr::Column(column) => plan.inputs().into_iter().any(|input| {
            input.schema().index_of_column(&column).is_ok_and(|at| is_constant(input, at))
        }),
        other => other.column_refs().is_empty(),
    }
}
