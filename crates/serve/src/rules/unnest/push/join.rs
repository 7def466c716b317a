//! Joins whose sides or conditions name outer columns.

use std::sync::Arc;

use datafusion::common::{Column, NullEquality};
use datafusion::error::Result;
use datafusion::functions::expr_fn::coalesce;
use datafusion::logical_expr::utils::conjunction;
use datafusion::logical_expr::{Expr, Join, JoinType, LogicalPlan, LogicalPlanBuilder};

use super::super::NotDistinct;
use super::super::domain::Domain;
use super::{Pushed, push, refuse};

/// A join for each row of a domain. The side whose rows all come out has the domain; the other one where it names outer columns,
/// and then both are joined by it as well.
pub(super) fn pushed(join: Join, domain: &Domain<'_>) -> Result<Pushed> {
    if join.null_aware {
        return refuse("NOT IN");
    }
    let (left_names, right_names) = (names_outer(&join.left), names_outer(&join.right));
    let (on_left, on_right) = match join.join_type {
        JoinType::Inner => (left_names || !right_names, right_names),
        JoinType::Left | JoinType::LeftSemi | JoinType::LeftAnti | JoinType::LeftMark => {
            (true, right_names)
        }
        JoinType::Right | JoinType::RightSemi | JoinType::RightAnti | JoinType::RightMark => {
            (left_names, true)
        }
        JoinType::Full => (true, true),
    };
    let own = join.schema.columns();
    let side =
        |plan: Arc<LogicalPlan>, is_pushed: bool| -> Result<(Arc<LogicalPlan>, Vec<Column>)> {
            if !is_pushed {
                return Ok((plan, Vec::new()));
            }
            let (plan, columns) = push(Arc::unwrap_or_clone(plan), domain)?;
            Ok((Arc::new(plan), columns))
        };
    let (left, left_columns) = side(join.left, on_left)?;
    let (right, right_columns) = side(join.right, on_right)?;
    let at_hand = if on_left { &left_columns } else { &right_columns };
    let mut on = Vec::with_capacity(join.on.len());
    for (l, r) in join.on {
        on.push((domain.bound(l, at_hand)?, domain.bound(r, at_hand)?));
    }
    let mut conditions = Vec::new();
    if let Some(filter) = join.filter {
        conditions.push(domain.bound(filter, at_hand)?);
    }
    for (l, r) in left_columns.iter().zip(&right_columns) {
        match join.null_equality {
            NullEquality::NullEqualsNull => {
                on.push((Expr::Column(l.clone()), Expr::Column(r.clone())));
            }
            NullEquality::NullEqualsNothing => {
                conditions.push(Expr::Column(l.clone()).equal_or_both_null(r.clone()));
            }
        }
    }
    let kind = join.join_type;
    let filter = conjunction(conditions);
    let joined = Join::try_new(
        left,
        right,
        on,
        filter,
        kind,
        join.join_constraint,
        join.null_equality,
        join.null_aware,
    )?;
    let plan = LogicalPlan::Join(joined);
    if !(on_left && on_right) {
        return Ok((plan, if on_left { left_columns } else { right_columns }));
    }
    let (kept, columns) = match kind {
        JoinType::LeftSemi | JoinType::LeftAnti | JoinType::LeftMark => {
            return Ok((plan, left_columns));
        }
        JoinType::RightSemi | JoinType::RightAnti | JoinType::RightMark => {
            return Ok((plan, right_columns));
        }
        JoinType::Inner | JoinType::Left => {
            (left_columns.iter().cloned().map(Expr::Column).collect(), left_columns)
        }
        JoinType::Right => {
            (right_columns.iter().cloned().map(Expr::Column).collect(), right_columns)
        }
        JoinType::Full => {
            let name = domain.name();
            let names: Vec<String> =
                (0..left_columns.len()).map(|at| format!("{name}{at}")).collect();
            let pairs = left_columns.into_iter().zip(right_columns).zip(&names);
            let either: Vec<Expr> = pairs
                .map(|((l, r), name)| coalesce(vec![Expr::Column(l), Expr::Column(r)]).alias(name))
                .collect();
            (either, names.into_iter().map(Column::new_unqualified).collect())
        }
    };
    let mut list: Vec<Expr> = own.into_iter().map(Expr::Column).collect();
    list.extend::<Vec<Expr>>(kept);
    Ok((LogicalPlanBuilder::from(plan).project(list)?.build()?, columns))
}

fn names_outer(plan: &LogicalPlan) -> bool {
    !plan.all_out_ref_exprs().is_empty()
}
