//! IS TRUE and its like as comparisons that know NULL.
//!
//! The engine's plans say that `x IS TRUE` is never NULL, and then compute `x IS NOT DISTINCT FROM true`, of which they say that
//! it may be: an aggregate over it is an internal error. Here it is that comparison from the start.

use datafusion::common::config::ConfigOptions;
use datafusion::common::tree_node::{Transformed, TreeNode};
use datafusion::error::Result;
use datafusion::logical_expr::expr_rewriter::NamePreserver;
use datafusion::logical_expr::{Expr, LogicalPlan, Operator, binary_expr, lit};
use datafusion::optimizer::AnalyzerRule;

use super::fresh;

/// The rule.
#[derive(Debug)]
pub(super) struct Truth;

impl AnalyzerRule for Truth {
    fn analyze(&self, plan: LogicalPlan, _: &ConfigOptions) -> Result<LogicalPlan> {
        Ok(plan.transform_up_with_subqueries(rewrite_plan)?.data)
    }

    fn name(&self) -> &str {
        "truth"
    }
}

/// Conditions of WHERE stay: scans know them, and whether they may be NULL shows nowhere.
fn rewrite_plan(plan: LogicalPlan) -> Result<Transformed<LogicalPlan>> {
    if matches!(plan, LogicalPlan::Filter(_)) {
        return Ok(Transformed::no(plan));
    }
    let names = NamePreserver::new(&plan);
    plan.map_expressions(|expr| {
        let name = names.save(&expr);
        Ok(expr.transform_up(|e| Ok(rewrite(e)))?.update_data(|e| name.restore(e)))
    })?
    .map_data(fresh)
}

fn rewrite(expr: Expr) -> Transformed<Expr> {
    use Operator::{IsDistinctFrom, IsNotDistinctFrom};
    Transformed::yes(match expr {
        Expr::IsTrue(inner) => binary_expr(*inner, IsNotDistinctFrom, lit(true)),
        Expr::IsNotTrue(inner) => binary_expr(*inner, IsDistinctFrom, lit(true)),
        Expr::IsFalse(inner) => binary_expr(*inner, IsNotDistinctFrom, lit(false)),
        Expr::IsNotFalse(inner) => binary_expr(*inner, IsDistinctFrom, lit(false)),
        Expr::IsUnknown(inner) => Expr::IsNull(inner),
        Expr::IsNotUnknown(inner) => Expr::IsNotNull(inner),
        other => return Transformed::no(other),
    })
}
