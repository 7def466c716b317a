//! EXISTS, IN, ANY and ALL over subqueries in lists of SELECT, in aggregates, windows and ORDER BY.
//!
//! The engine makes joins of such conditions in WHERE and HAVING only. Where a condition stands within another there, it
//! becomes a column that a join adds: whether a row has a partner. Here the same is done for the other places. IN, ANY and ALL
//! have become EXISTS by then, with their three values.

use std::collections::BTreeSet;

use datafusion::common::Column;
use datafusion::common::tree_node::{Transformed, TransformedResult, TreeNode};
use datafusion::error::Result;
use datafusion::logical_expr::expr::Exists;
use datafusion::logical_expr::expr_rewriter::NamePreserver;
use datafusion::logical_expr::utils::conjunction;
use datafusion::logical_expr::{Expr, JoinType, LogicalPlan, LogicalPlanBuilder, lit};
use datafusion::optimizer::decorrelate::PullUpCorrelatedExpr;
use datafusion::optimizer::decorrelate_predicate_subquery::DecorrelatePredicateSubquery;
use datafusion::optimizer::{ApplyOrder, OptimizerConfig, OptimizerRule};

use super::has_expression;

/// The engine's rule for WHERE and HAVING, and ours for the rest.
#[derive(Debug, Default)]
pub(super) struct Marks {
    engine: DecorrelatePredicateSubquery,
}

impl OptimizerRule for Marks {
    fn name(&self) -> &str {
        self.engine.name()
    }

    fn apply_order(&self) -> Option<ApplyOrder> {
        self.engine.apply_order()
    }

    fn supports_rewrite(&self) -> bool {
        true
    }

    fn rewrite(
        &self,
        plan: LogicalPlan,
        config: &dyn OptimizerConfig,
    ) -> Result<Transformed<LogicalPlan>> {
        let plan =
            plan.map_subqueries(|query| query.transform_down(|inner| self.rewrite(inner, config)))?;
        let has_list = matches!(
            plan.data,
            LogicalPlan::Projection(_)
                | LogicalPlan::Aggregate(_)
                | LogicalPlan::Window(_)
                | LogicalPlan::Sort(_)
        );
        match has_list && has_expression(&plan.data, |part| matches!(part, Expr::Exists(_)))? {
            true => Ok(Transformed::yes(marked(plan.data, config)?)),
            false => plan.transform_data(|plan| self.engine.rewrite(plan, config)),
        }
    }
}

/// A plan whose EXISTS are columns of a join below it. Those that cannot be are left, and refused later.
fn marked(plan: LogicalPlan, config: &dyn OptimizerConfig) -> Result<LogicalPlan> {
    let [input] = plan.inputs()[..] else { return Ok(plan) };
    let (mut input, columns) = (input.clone(), plan.schema().columns());
    let names = NamePreserver::new(&plan);
    let mut exprs = Vec::new();
    for expr in plan.expressions() {
        let name = names.save(&expr);
        let expr = expr.transform_down(|part| {
            let Expr::Exists(exists) = part else { return Ok(Transformed::no(part)) };
            let alias = config.alias_generator().next("\u{1}mark");
            match with_mark(&input, &exists, &alias)? {
                None => Ok(Transformed::no(Expr::Exists(exists))),
                Some(joined) => {
                    input = joined;
                    let mark = Expr::Column(Column::new(Some(alias), "mark"));
                    Ok(Transformed::yes(if exists.negated { !mark } else { mark }))
                }
            }
        })?;
        exprs.push(name.restore(expr.data));
    }
    let plan = plan.with_new_exprs(exprs, vec![input])?;
    // Sorts and windows give the columns of their input as well.
    match plan.schema().fields().len() == columns.len() {
        true => Ok(plan),
        false => {
            LogicalPlanBuilder::from(plan).project(columns.into_iter().map(Expr::Column))?.build()
        }
    }
}

/// The rows of a plan with a column that tells whether a subquery has a row for them; `None` when the subquery names columns
/// of the plan where no join can.
fn with_mark(input: &LogicalPlan, exists: &Exists, alias: &str) -> Result<Option<LogicalPlan>> {
    let mut pulled = PullUpCorrelatedExpr::new().with_exists_sub_query(true);
    let subquery = exists.subquery.subquery.as_ref().clone();
    let subquery = subquery.rewrite(&mut pulled).data()?;
    if !pulled.can_pull_up {
        return Ok(None);
    }
    let subquery = LogicalPlanBuilder::from(subquery).alias(alias)?.build()?;
    let inner: BTreeSet<Column> =
        pulled.correlated_subquery_cols_map.into_values().flatten().collect();
    let condition = match conjunction(pulled.join_filters) {
        None => lit(true),
        Some(filter) => filter
            .transform(|part| match part {
                Expr::Column(column) if inner.contains(&column) => {
                    Ok(Transformed::yes(Expr::Column(Column::new(Some(alias), column.name))))
                }
                other => Ok(Transformed::no(other)),
            })
            .data()?,
    };
    // A column of a plan further out is in neither side.
    let is_known =
        |column: &Column| input.schema().has_column(column) || subquery.schema().has_column(column);
    if !condition.column_refs().into_iter().all(is_known) {
        return Ok(None);
    }
    let subquery = match needed(&condition, &subquery) {
        columns if columns.is_empty() => subquery,
        columns => LogicalPlanBuilder::from(subquery).project(columns)?.build()?,
    };
    let joined = LogicalPlanBuilder::from(input.clone());
    joined.join_on(subquery, JoinType::LeftMark, Some(condition))?.build().map(Some)
}

/// The columns of a plan that a condition names, in their order.
fn needed(condition: &Expr, plan: &LogicalPlan) -> Vec<Expr> {
    let named = condition.column_refs();
    plan.schema().columns().into_iter().filter(|c| named.contains(c)).map(Expr::Column).collect()
}
