//! Joins on `IS NOT DISTINCT FROM`.
//!
//! The engine makes a join in which NULL equals NULL of it, and then puts other keys into the same join, and joins beside it into
//! one with it, whose `=` would find NULLs equal as well. Here both sides are compared by two equalities that know no NULL:
//! whether they are NULL, and their values with one in the place of NULL; by `=` where a side is never NULL.

use datafusion::common::tree_node::Transformed;
use datafusion::common::{NullEquality, ScalarValue};
use datafusion::error::Result;
use datafusion::logical_expr::expr::BinaryExpr;
use datafusion::logical_expr::utils::{
    conjunction, find_valid_equijoin_key_pair, split_conjunction_owned,
};
use datafusion::logical_expr::{Expr, ExprSchemable, Join, LogicalPlan, Operator, lit, when};
use datafusion::optimizer::extract_equijoin_predicate::ExtractEquijoinPredicate;
use datafusion::optimizer::{ApplyOrder, OptimizerConfig, OptimizerRule};

#[derive(Debug, Default)]
pub(super) struct KeysOfJoins {
    engine: ExtractEquijoinPredicate,
}

impl OptimizerRule for KeysOfJoins {
    fn name(&self) -> &str {
        self.engine.name()
    }

    fn apply_order(&self) -> Option<ApplyOrder> {
        self.engine.apply_order()
    }

    fn rewrite(
        &self,
        plan: LogicalPlan,
        config: &dyn OptimizerConfig,
    ) -> Result<Transformed<LogicalPlan>> {
        let LogicalPlan::Join(mut join) = plan else { return self.engine.rewrite(plan, config) };
        // Of a set operation: what else is compared in it is no key.
        if join.null_equality == NullEquality::NullEqualsNull {
            return Ok(Transformed::no(LogicalPlan::Join(join)));
        }
        let Some(filter) = join.filter.take() else {
            return Ok(Transformed::no(LogicalPlan::Join(join)));
        };
        let mut parts = Vec::new();
        for part in split_conjunction_owned(filter) {
            parts.extend(without_null(part, &join)?);
        }
        join.filter = conjunction(parts);
        self.engine.rewrite(LogicalPlan::Join(join), config)
    }
}

/// A condition of a join; one of both sides that takes NULLs for equal becomes two.
fn without_null(part: Expr, join: &Join) -> Result<Vec<Expr>> {
    let (left, right) = match &part {
        Expr::BinaryExpr(BinaryExpr { left, op: Operator::IsNotDistinctFrom, right }) => {
            (left, right)
        }
        _ => return Ok(vec![part]),
    };
    let (left_schema, right_schema) = (join.left.schema(), join.right.schema());
    let sides = find_valid_equijoin_key_pair(left, right, left_schema, right_schema)?;
    let Some((left, right)) = sides else { return Ok(vec![part]) };
    // Beside what is never NULL, `=` is true for the same rows. The engine also has no names for two keys that are one constant.
    if !left.nullable(left_schema)? || !right.nullable(right_schema)? {
        return Ok(vec![left.eq(right)]);
    }
    let data_type = left.get_type(left_schema)?;
    let Ok(value) = ScalarValue::new_default(&data_type) else { return Ok(vec![part]) };
    let filled =
        |side: &Expr| when(side.clone().is_null(), lit(value.clone())).otherwise(side.clone());
    Ok(vec![left.clone().is_null().eq(right.clone().is_null()), filled(&left)?.eq(filled(&right)?)])
}
