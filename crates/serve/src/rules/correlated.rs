//! Subqueries that name columns from outside, where the engine would give another answer.
//!
//! The engine makes a join of such a subquery: it takes the conditions that name outer columns out of it, and compares with
//! the rows of the subquery as it is without them. That is the same only where nothing between the condition and the top of
//! the subquery asks which rows there are:
//!
//! | in the subquery, above such a condition | the engine alone | here |
//! |---|---|---|
//! | an aggregate without GROUP BY, under IN, ANY, ALL | no row where there is one of no rows | compared as a value |
//! | the same under EXISTS | false where it is true | true |
//! | the side of an outer join that may be without partner | joined first, then compared | refused |
//! | a window, DISTINCT ON, OFFSET, LIMIT within | of the rows for all outer rows together | refused |

use datafusion::common::tree_node::{Transformed, TreeNode, TreeNodeRecursion};
use datafusion::error::Result;
use datafusion::logical_expr::expr::{Exists, InSubquery, SetComparison};
use datafusion::logical_expr::{
    BinaryExpr, Distinct, Expr, JoinType, LogicalPlan, Operator, Subquery, lit, not,
};

use super::refused;

/// What a subquery is asked.
#[derive(Debug, Clone, Copy, PartialEq)]
enum Asked {
    /// Whether it has rows.
    Rows,
    Values,
}

/// An expression whose subqueries the engine makes the right joins of.
///
/// # Errors
/// When one has no right plan.
pub(super) fn right_subqueries(expr: Expr) -> Result<Expr> {
    let checked = expr.transform_up(|part| match part {
        Expr::Exists(Exists { subquery, negated }) if is_correlated(&subquery) => {
            if is_one_row(&subquery.subquery) {
                return Ok(Transformed::yes(lit(!negated)));
            }
            check(&subquery.subquery, Asked::Rows)?;
            Ok(Transformed::no(Expr::Exists(Exists { subquery, negated })))
        }
        Expr::InSubquery(within) if is_correlated(&within.subquery) => {
            let InSubquery { expr, subquery, negated } = within;
            if is_one_row(&subquery.subquery) {
                let equal = compared(expr, Operator::Eq, subquery);
                return Ok(Transformed::yes(if negated { not(equal) } else { equal }));
            }
            check(&subquery.subquery, Asked::Values)?;
            Ok(Transformed::no(Expr::InSubquery(InSubquery { expr, subquery, negated })))
        }
        Expr::SetComparison(comparison) if is_correlated(&comparison.subquery) => {
            if is_one_row(&comparison.subquery.subquery) {
                let SetComparison { expr, subquery, op, .. } = comparison;
                return Ok(Transformed::yes(compared(expr, op, subquery)));
            }
            check(&comparison.subquery.subquery, Asked::Values)?;
            Ok(Transformed::no(Expr::SetComparison(comparison)))
        }
        Expr::ScalarSubquery(subquery) if is_correlated(&subquery) => {
            check(&subquery.subquery, Asked::Values)?;
            Ok(Transformed::no(Expr::ScalarSubquery(subquery)))
        }
        other => Ok(Transformed::no(other)),
    })?;
    Ok(checked.data)
}

/// Checks the subqueries that stand behind LATERAL in a join; another plan is right.
///
/// # Errors
/// When one has no right plan.
pub(super) fn check_lateral(plan: &LogicalPlan) -> Result<()> {
    let LogicalPlan::Join(join) = plan else { return Ok(()) };
    for side in [&join.left, &join.right] {
        if let LogicalPlan::Subquery(subquery) = first_that_counts(side)
            && is_correlated(subquery)
        {
            check(&subquery.subquery, Asked::Values)?;
        }
    }
    Ok(())
}

fn is_correlated(subquery: &Subquery) -> bool {
    !subquery.outer_ref_columns.is_empty()
}

fn compared(expr: Box<Expr>, op: Operator, subquery: Subquery) -> Expr {
    Expr::BinaryExpr(BinaryExpr { left: expr, op, right: Box::new(Expr::ScalarSubquery(subquery)) })
}

/// Whether a plan is an aggregate of all its rows, which has one row of no rows as well.
fn is_one_row(plan: &LogicalPlan) -> bool {
    match plan {
        LogicalPlan::Projection(projection) => is_one_row(&projection.input),
        LogicalPlan::SubqueryAlias(alias) => is_one_row(&alias.input),
        LogicalPlan::Aggregate(aggregate) => aggregate.group_expr.is_empty(),
        _ => false,
    }
}

fn check(plan: &LogicalPlan, asked: Asked) -> Result<()> {
    let top = first_that_counts(plan);
    plan.apply(|node| {
        if node.all_out_ref_exprs().is_empty() {
            return Ok(TreeNodeRecursion::Jump);
        }
        let what = match node {
            LogicalPlan::Window(_) => "a window",
            LogicalPlan::Distinct(Distinct::On(_)) => "DISTINCT ON",
            LogicalPlan::RecursiveQuery(_) => "WITH RECURSIVE",
            LogicalPlan::Limit(limit) => {
                let has_offset = limit.skip.as_deref().is_some_and(|skip| *skip != lit(0_i64));
                match has_offset {
                    false if asked == Asked::Rows && std::ptr::eq(node, top) => {
                        return Ok(TreeNodeRecursion::Continue);
                    }
                    false => "LIMIT",
                    true => "OFFSET",
                }
            }
            LogicalPlan::Aggregate(aggregate)
                if aggregate.group_expr.is_empty() && asked == Asked::Rows =>
            {
                "HAVING without GROUP BY"
            }
            LogicalPlan::Join(join) => {
                let names_outer = |plan: &LogicalPlan| !plan.all_out_ref_exprs().is_empty();
                let in_condition = node.expressions().iter().any(Expr::contains_outer);
                let (left, right) = (names_outer(&join.left), names_outer(&join.right));
                let is_wrong = match join.join_type {
                    JoinType::Inner => false,
                    JoinType::Left
                    | JoinType::LeftSemi
                    | JoinType::LeftAnti
                    | JoinType::LeftMark => right || in_condition,
                    JoinType::Right
                    | JoinType::RightSemi
                    | JoinType::RightAnti
                    | JoinType::RightMark => left || in_condition,
                    JoinType::Full => true,
                };
                if !is_wrong {
                    return Ok(TreeNodeRecursion::Continue);
                }
                "the joined side of an outer join, INTERSECT or EXCEPT"
            }
            _ => return Ok(TreeNodeRecursion::Continue),
        };
        Err(refused(format!(
            "a subquery names columns from outside of it below {what}, where that has no plan: it may do so in conditions of \
             its own WHERE, joined by AND; else write a JOIN"
        )))
    })?;
    Ok(())
}

/// The first node of a plan that is no list of columns.
fn first_that_counts(plan: &LogicalPlan) -> &LogicalPlan {
    match plan {
        LogicalPlan::Projection(projection) => first_that_counts(&projection.input),
        LogicalPlan::SubqueryAlias(alias) => first_that_counts(&alias.input),
        other => other,
    }
}
