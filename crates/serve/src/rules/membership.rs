//! ANY, ALL and IN over subqueries.
//!
//! `x > ANY (SELECT y ..)` becomes a search for rows of the subquery in which the comparison is true, and the engine
//! confuses the columns of the two sides when they have the same name; the subquery gets a name of its own here.
//!
//! `x IN (SELECT y ..)` is true, false or NULL. The engine tells NULL from false only where the IN is a condition by itself,
//! joined to others by AND; else it says false. Where the difference shows (under NOT, IS NULL, CASE, a comparison), IN
//! becomes `x = ANY`, which has all three.
//!
//! `x IN (a, y)` with columns in the list becomes `x = a OR x = y`: the engine joins two lists by what they have in common, as if
//! expressions that are written differently had different values. `x IN (a, NULL)` becomes `x IN (a) OR NULL`, as it takes NULL for
//! a value there.

use std::cell::Cell;
use std::sync::Arc;

use datafusion::common::ScalarValue;
use datafusion::common::config::ConfigOptions;
use datafusion::common::tree_node::{Transformed, TreeNode};
use datafusion::error::Result;
use datafusion::logical_expr::expr::{
    BinaryExpr, InList, InSubquery, SetComparison, SetQuantifier,
};
use datafusion::logical_expr::expr_rewriter::NamePreserver;
use datafusion::logical_expr::{
    Expr, Filter, LogicalPlan, LogicalPlanBuilder, Operator, Subquery, lit, not,
};
use datafusion::optimizer::AnalyzerRule;

use super::{has_expression, has_node, refused};

#[derive(Debug)]
pub(super) struct Membership;

impl AnalyzerRule for Membership {
    fn analyze(&self, plan: LogicalPlan, _: &ConfigOptions) -> Result<LogicalPlan> {
        // Names cost more than looking.
        if !has_node(&plan, has_work)? {
            return Ok(plan);
        }
        let names = Names(Cell::new(0));
        let plan = plan.transform_up_with_subqueries(|plan| {
            if let LogicalPlan::Filter(Filter { predicate, input, .. }) = plan {
                let predicate = condition(predicate, Place::Conjunct)?;
                let filter = Filter::try_new(name_subqueries(predicate, &names)?, input)?;
                return Ok(Transformed::yes(LogicalPlan::Filter(filter)));
            }
            let saver = NamePreserver::new(&plan);
            plan.map_expressions(|e| {
                let (name, (relation, text)) = (saver.save(&e), e.qualified_name());
                let mapped = name.restore(name_subqueries(condition(e, Place::Value)?, &names)?);
                // The optimizer makes another expression of ANY, and keeps no name.
                let is_any = |part: &Expr| Ok(matches!(part, Expr::SetComparison(_)));
                let is_named = matches!(mapped, Expr::Alias(_)) || !mapped.exists(is_any)?;
                Ok(Transformed::yes(match is_named {
                    true => mapped,
                    false => mapped.alias_qualified(relation, text),
                }))
            })
        })?;
        Ok(plan.data)
    }

    fn name(&self) -> &str {
        "membership"
    }
}

/// Whether a node has subqueries or lists.
fn has_work(node: &LogicalPlan) -> Result<bool> {
    let has_work = |expr: &Expr| {
        matches!(
            expr,
            Expr::Exists(_)
                | Expr::InSubquery(_)
                | Expr::InList(_)
                | Expr::ScalarSubquery(_)
                | Expr::SetComparison(_)
        )
    };
    Ok(matches!(node, LogicalPlan::Subquery(_)) || has_expression(node, has_work)?)
}

/// Where a condition stands, which says what the difference of false and NULL makes there.
#[derive(Debug, Clone, Copy, PartialEq)]
enum Place {
    /// By itself or joined to others by AND, at the top of a filter.
    Conjunct,
    /// Joined to others by OR as well; false and NULL are the same there too.
    Disjunct,
    /// Anywhere else, where NULL and false differ.
    Value,
}

/// Numbers the names of subqueries.
struct Names(Cell<usize>);

impl Names {
    fn next(&self) -> String {
        let number = self.0.get() + 1;
        self.0.set(number);
        format!("\u{1}any{number}")
    }
}

/// Replaces IN where the engine would take its NULL for false.
fn condition(expr: Expr, place: Place) -> Result<Expr> {
    Ok(match expr {
        Expr::BinaryExpr(BinaryExpr { left, op: Operator::And, right }) => {
            condition(*left, place)?.and(condition(*right, place)?)
        }
        Expr::BinaryExpr(BinaryExpr { left, op: Operator::Or, right }) => {
            let inner = if place == Place::Value { place } else { Place::Disjunct };
            condition(*left, inner)?.or(condition(*right, inner)?)
        }
        Expr::Not(inner) => match *inner {
            Expr::InSubquery(within) => {
                let negated = !within.negated;
                in_subquery(InSubquery { negated, ..within }, place)?
            }
            other => not(condition(other, Place::Value)?),
        },
        Expr::InSubquery(within) => in_subquery(within, place)?,
        Expr::InList(list) if list.list.iter().any(is_null) => {
            let InList { expr, list, negated } = list;
            let rest: Vec<Expr> = list.into_iter().filter(|value| !is_null(value)).collect();
            let unknown = Expr::Literal(ScalarValue::Boolean(None), None);
            let found = match rest.is_empty() {
                true => unknown,
                false => condition(expr.in_list(rest, false), Place::Value)?.or(unknown),
            };
            if negated { not(found) } else { found }
        }
        Expr::InList(list) if list.list.iter().any(has_columns) => {
            let InList { expr, list, negated } = list;
            let expr = condition(*expr, Place::Value)?;
            let mut equal = Vec::with_capacity(list.len());
            for value in list {
                equal.push(expr.clone().eq(condition(value, Place::Value)?));
            }
            let found = one_of(equal);
            if negated { not(found) } else { found }
        }
        other => other.map_children(|e| Ok(Transformed::yes(condition(e, Place::Value)?)))?.data,
    })
}

/// Whether an expression is NULL as it is written.
fn is_null(expr: &Expr) -> bool {
    match expr {
        Expr::Literal(value, _) => value.is_null(),
        Expr::Cast(cast) => is_null(&cast.expr),
        Expr::TryCast(cast) => is_null(&cast.expr),
        _ => false,
    }
}

/// Whether an expression names columns.
fn has_columns(expr: &Expr) -> bool {
    !expr.column_refs().is_empty() || expr.contains_outer()
}

/// Whether one of some conditions is true, as a tree that is no deeper than it must be.
fn one_of(mut conditions: Vec<Expr>) -> Expr {
    while conditions.len() > 1 {
        let mut pairs = conditions.into_iter();
        let mut joined = Vec::new();
        while let Some(left) = pairs.next() {
            joined.push(match pairs.next() {
                Some(right) => left.or(right),
                None => left,
            });
        }
        conditions = joined;
    }
    conditions.pop().unwrap_or_else(|| lit(false))
}

/// The engine's anti join for NOT IN knows of NULLs, but not where the subquery names columns outside of it.
fn in_subquery(within: InSubquery, place: Place) -> Result<Expr> {
    // The anti join needs a column to join by, and looks for NULLs only in columns that may be NULL themselves.
    let is_column = match within.expr.as_ref() {
        Expr::Cast(cast) => matches!(cast.expr.as_ref(), Expr::Column(_)),
        other => matches!(other, Expr::Column(_)),
    };
    let is_told = match place {
        Place::Conjunct => {
            !within.negated || is_column && within.subquery.outer_ref_columns.is_empty()
        }
        Place::Disjunct => !within.negated,
        Place::Value => false,
    };
    if is_told {
        let InSubquery { expr, subquery, negated } = within;
        let expr = Box::new(condition(*expr, Place::Value)?);
        return Ok(Expr::InSubquery(InSubquery { expr, subquery, negated }));
    }
    Ok(any_of(within))
}

/// `x IN (S)` as `x = ANY (S)`, and `x NOT IN (S)` as its opposite.
fn any_of(within: InSubquery) -> Expr {
    let InSubquery { expr, subquery, negated } = within;
    let any = Expr::SetComparison(SetComparison {
        expr,
        subquery,
        op: Operator::Eq,
        quantifier: SetQuantifier::Any,
    });
    if negated { not(any) } else { any }
}

/// The rows of a subquery without its columns, at which EXISTS does not look. The engine finds that late, and the rule that
/// leaves out what nobody asks for may then count columns of a join that it has emptied before.
fn of_nothing(Subquery { subquery, outer_ref_columns, spans }: Subquery) -> Result<Subquery> {
    let plan =
        LogicalPlanBuilder::from(Arc::unwrap_or_clone(subquery)).project([lit(1)])?.build()?;
    Ok(Subquery { subquery: Arc::new(plan), outer_ref_columns, spans })
}

/// Gives the columns of subqueries names of their own, and those of EXISTS none.
fn name_subqueries(expr: Expr, names: &Names) -> Result<Expr> {
    let named = expr.transform_up(|e| {
        let mut comparison = match e {
            Expr::SetComparison(comparison) => comparison,
            Expr::Exists(mut exists) => {
                exists.subquery = of_nothing(exists.subquery)?;
                return Ok(Transformed::yes(Expr::Exists(exists)));
            }
            other => return Ok(Transformed::no(other)),
        };
        let Subquery { subquery, outer_ref_columns, spans } = comparison.subquery;
        let columns = subquery.schema().columns();
        let [column] = columns.as_slice() else {
            return Err(refused("a subquery beside ANY, ALL or IN has one column"));
        };
        // A projection, since the engine finds what is outside of a subquery through it.
        let named = Expr::Column(column.clone()).alias(names.next());
        let plan =
            LogicalPlanBuilder::from(Arc::unwrap_or_clone(subquery)).project([named])?.build()?;
        comparison.subquery = Subquery { subquery: Arc::new(plan), outer_ref_columns, spans };
        Ok(Transformed::yes(Expr::SetComparison(comparison)))
    })?;
    Ok(named.data)
}
