//! IS TRUE and its like as comparisons that know NULL.
//!
//! The engine's plans say that `x IS TRUE` is never NULL, and then compute `x IS NOT DISTINCT FROM true`, of which they say that
//! it may be: an aggregate over it is an internal error. Here it is that comparison from the start.

use datafusion::common::tree_node::{Transformed, TreeNode};
use datafusion::error::Result;
use datafusion::logical_expr::expr_rewriter::NamePreserver;
use datafusion::logical_expr::{Expr, LogicalPlan, Operator, binary_expr, lit};

use super::has_expression;

/// Conditions of WHERE stay: scans know them, and whether they may be NULL shows nowhere.
pub(super) fn rewrite_node(node: LogicalPlan) -> Result<Transformed<LogicalPlan>> {
    // Names cost more than looking.
    if matches!(node, LogicalPlan::Filter(_)) || !has_expression(&node, is_truth)? {
        return Ok(Transformed::no(node));
    }
    let names = NamePreserver::new(&node);
    node.map_expressions(|expr| {
        let name = names.save(&expr);
        Ok(expr.transform_up(|e| Ok(rewrite(e)))?.update_data(|e| name.restore(e)))
    })
}

fn is_truth(expr: &Expr) -> bool {
    matches!(
        expr,
        Expr::IsTrue(_)
            | Expr::IsNotTrue(_)
            | Expr::IsFalse(_)
            | Expr::IsNotFalse(_)
            | Expr::IsUnknown(_)
            | Expr::IsNotUnknown(_)
    )
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
