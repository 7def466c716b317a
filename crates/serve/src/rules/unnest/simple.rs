//! The forms of correlated subqueries that the engine makes the right joins of.
//!
//! | what is asked | the form |
//! |---|---|
//! | EXISTS, IN | a list of columns of a filter of anything |
//! | a value | a list of columns of aggregates without GROUP BY and DISTINCT of a filter of anything |
//!
//! Only the filter names outer columns, and only of the next query around; for a value, in conditions `column = outer
//! column`, joined by AND. No two columns of these have one name.

use std::collections::HashMap;

use datafusion::common::Column;
use datafusion::common::tree_node::TreeNode;
use datafusion::logical_expr::utils::split_conjunction;
use datafusion::logical_expr::{BinaryExpr, Expr, LogicalPlan, Operator};

use super::{is_subquery, subquery_of};

/// Whether a subquery of a node has such a form.
pub(super) fn is_simple(expr: &Expr, node: &LogicalPlan) -> bool {
    if !subquery_of(expr).is_some_and(|query| has_own_names(&query.subquery)) {
        return false;
    }
    match expr {
        Expr::Exists(exists) => {
            !matches!(node, LogicalPlan::Sort(_)) && is_filter(listed(&exists.subquery.subquery))
        }
        Expr::InSubquery(within) => {
            matches!(node, LogicalPlan::Filter(_))
                && !within.negated
                && is_filter(listed(&within.subquery.subquery))
        }
        Expr::ScalarSubquery(subquery) => {
            let is_place = matches!(node, LogicalPlan::Filter(_) | LogicalPlan::Projection(_));
            match listed(&subquery.subquery) {
                LogicalPlan::Aggregate(aggregate) if is_place => {
                    aggregate.group_expr.is_empty()
                        && aggregate
                            .aggr_expr
                            .iter()
                            .all(|expr| is_plain(expr) && !is_distinct(expr))
                        && is_filter(&aggregate.input)
                        && is_filter_of_keys(&aggregate.input)
                }
                _ => false,
            }
        }
        _ => false,
    }
}

/// What is below lists of columns that are nothing but that.
fn listed(plan: &LogicalPlan) -> &LogicalPlan {
    match plan {
        LogicalPlan::Projection(list) if list.expr.iter().all(is_plain) => listed(&list.input),
        other => other,
    }
}

/// Whether an expression has neither outer columns nor subqueries.
fn is_plain(expr: &Expr) -> bool {
    !expr.contains_outer() && !expr.exists(|part| Ok(is_subquery(part))).unwrap_or(true)
}

fn is_distinct(expr: &Expr) -> bool {
    let is = |part: &Expr| matches!(part, Expr::AggregateFunction(of) if of.params.distinct);
    expr.exists(|part| Ok(is(part))).unwrap_or(true)
}

fn is_filter(plan: &LogicalPlan) -> bool {
    let LogicalPlan::Filter(filter) = plan else { return false };
    let is_correlated = |part: &Expr| {
        subquery_of(part).is_some_and(|query| !query.subquery.all_out_ref_exprs().is_empty())
    };
    let has_nested = filter.predicate.exists(|part| Ok(is_correlated(part))).unwrap_or(true);
    !has_nested && filter.input.all_out_ref_exprs().is_empty()
}

/// Whether no two columns of the lists, and of the conditions that name outer columns, have the same name: the engine gives all
/// one qualifier.
fn has_own_names(plan: &LogicalPlan) -> bool {
    let mut named: HashMap<String, Option<Column>> = HashMap::new();
    let mut is_own = |name: String, column: Option<&Column>| {
        let known = named.insert(name, column.cloned());
        known.is_none_or(|known| known.is_some() && known.as_ref() == column)
    };
    let mut node = plan;
    loop {
        let (exprs, input) = match node {
            LogicalPlan::Projection(list) => (&list.expr, &list.input),
            LogicalPlan::Aggregate(aggregate) => (&aggregate.aggr_expr, &aggregate.input),
            LogicalPlan::Filter(filter) => {
                let conditions = split_conjunction(&filter.predicate);
                let mut named = conditions
                    .into_iter()
                    .filter(|condition| condition.contains_outer())
                    .flat_map(Expr::column_refs);
                return named.all(|column| is_own(column.name.clone(), Some(column)));
            }
            _ => return false,
        };
        let is_aggregate = matches!(node, LogicalPlan::Aggregate(_));
        let are_own = exprs.iter().all(|expr| match expr {
            // The list above aggregates gives them under the names that they have.
            Expr::Column(_) if matches!(input.as_ref(), LogicalPlan::Aggregate(_)) => true,
            Expr::Column(column) if !is_aggregate => is_own(column.name.clone(), Some(column)),
            other => is_own(other.schema_name().to_string(), None),
        });
        if !are_own {
            return false;
        }
        node = input;
    }
}

fn is_filter_of_keys(plan: &LogicalPlan) -> bool {
    let LogicalPlan::Filter(filter) = plan else { return false };
    split_conjunction(&filter.predicate).into_iter().filter(|part| part.contains_outer()).all(
        |part| match part {
            Expr::BinaryExpr(BinaryExpr { left, op: Operator::Eq, right }) => {
                let is_pair = |one: &Expr, other: &Expr| {
                    matches!(one, Expr::Column(_))
                        && matches!(other, Expr::OuterReferenceColumn(..))
                };
                is_pair(left, right) || is_pair(right, left)
            }
            _ => false,
        },
    )
}
