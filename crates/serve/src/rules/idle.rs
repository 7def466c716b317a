//! Rules of the engine that make a plan anew to find that there is nothing to do.
//!
//! The optimizer runs each rule twice or more for each statement. Looking whether one of these has work costs a hundredth of
//! what they cost, which for a short statement is a tenth of its planning.

use std::collections::HashSet;
use std::sync::Arc;

use datafusion::common::tree_node::Transformed;
use datafusion::error::Result;
use datafusion::logical_expr::{Expr, LogicalPlan};
use datafusion::optimizer::{ApplyOrder, OptimizerConfig, OptimizerRule};

use super::{has_expression, has_node};

/// Whether a rule has work in the plan or node that it is given.
type HasWork = fn(&LogicalPlan) -> Result<bool>;

/// Rules of the engine that are left out where they have no work, by name.
const RULES: [(&str, HasWork); 3] = [
    ("eliminate_duplicated_expr", |node| Ok(may_repeat(node))),
    ("rewrite_set_comparison", has_comparison),
    ("eliminate_join", has_join),
];

/// A rule of the engine, run where it has work.
pub(super) fn where_needed(
    engine: Arc<dyn OptimizerRule + Send + Sync>,
) -> Arc<dyn OptimizerRule + Send + Sync> {
    match RULES.iter().find(|(name, _)| *name == engine.name()) {
        Some((_, has_work)) => Arc::new(WhereNeeded { engine, has_work: *has_work }),
        None => engine,
    }
}

#[derive(Debug)]
struct WhereNeeded {
    engine: Arc<dyn OptimizerRule + Send + Sync>,
    has_work: HasWork,
}

impl OptimizerRule for WhereNeeded {
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
        match (self.has_work)(&plan)? {
            true => self.engine.rewrite(plan, config),
            false => Ok(Transformed::no(plan)),
        }
    }
}

/// Whether keys of a group may stand twice. Those of a sort may also follow from one another.
fn may_repeat(node: &LogicalPlan) -> bool {
    match node {
        LogicalPlan::Aggregate(aggregate) => {
            let different: HashSet<&Expr> = aggregate.group_expr.iter().collect();
            different.len() < aggregate.group_expr.len()
        }
        _ => true,
    }
}

fn has_comparison(plan: &LogicalPlan) -> Result<bool> {
    has_node(plan, |node| has_expression(node, |expr| matches!(expr, Expr::SetComparison(_))))
}

fn has_join(plan: &LogicalPlan) -> Result<bool> {
    has_node(plan, |node| Ok(matches!(node, LogicalPlan::Join(_))))
}

#[cfg(test)]
mod tests {
    use datafusion::optimizer::Optimizer;

    use super::*;

    /// A rule that a new version of the engine calls otherwise would run everywhere again.
    #[test]
    fn the_engine_has_the_rules() {
        let names: Vec<String> =
            Optimizer::new().rules.iter().map(|rule| rule.name().to_owned()).collect();
        for (name, _) in RULES {
            assert!(names.iter().any(|known| known == name), "{name} of {names:?}");
        }
    }
}
