//! The engine's rules for physical plans, with ours among them.

use std::fmt;
use std::sync::Arc;

use datafusion::common::config::ConfigOptions;
use datafusion::common::tree_node::{Transformed, TransformedResult, TreeNode};
use datafusion::error::Result;
use datafusion::physical_optimizer::PhysicalOptimizerRule;
use datafusion::physical_optimizer::optimizer::PhysicalOptimizer;
use datafusion::physical_plan::ExecutionPlan;
use datafusion::physical_plan::joins::{
    CrossJoinExec, HashJoinExec, NestedLoopJoinExec, SortMergeJoinExec,
};

use crate::aggregate::aggregate_on_codes;
use crate::equalities::hide_equalities;
use crate::key_order::without_sort;
use crate::memory::{fit_sort, fit_window, narrow_inputs};
use crate::yielding::yielding;

/// The rule after which aggregates are put on codes: what the manifest answers needs no scan. The rules that
/// decide on distribution and order come later, so they see the new operator as any other.
const BEFORE_AGGREGATES: &str = "aggregate_statistics";

/// Start of the names of the rules that move filters below joins once more. They find columns by name, and so move a filter on
/// one side of an outer join to the other side, where a column has the same name. Filters were moved before, by the logical
/// rules; and a scan takes none from these.
const FILTERS: &str = "FilterPushdown";

/// The rule after which no other makes sorts.
const AFTER_SORTS: &str = "PushdownSort";

/// What stands in the place of a node, if something does.
pub(crate) type Replaced = Option<Arc<dyn ExecutionPlan>>;

/// The rules for statements with so many bytes of memory.
pub(crate) fn physical_rules(memory: usize) -> Vec<Arc<dyn PhysicalOptimizerRule + Send + Sync>> {
    let mut rules = PhysicalOptimizer::new().rules;
    rules.retain(|rule| !rule.name().starts_with(FILTERS));
    let at = rules.iter().position(|rule| rule.name() == BEFORE_AGGREGATES).map_or(0, |at| at + 1);
    rules.insert(at, each_node("aggregate_on_codes", |node| Ok(aggregate_on_codes(node))));
    // Once all sorts are there, and before what asks whether the plan has what it needs.
    let at =
        rules.iter().position(|rule| rule.name() == AFTER_SORTS).map_or(rules.len(), |at| at + 1);
    rules.insert(at, each_node("order_of_keys", without_sort));
    // The first: those that come later ask filters what they make equal.
    rules.insert(0, each_node("hide_equalities", hide_equalities));
    // The last: other rules look for the nodes themselves.
    rules.push(each_node("joins_yield", |node| Ok(yielding(node))));
    rules.push(each_node("fit_windows", fit_window));
    rules.push(each_node("fit_sorts", move |node| Ok(fit_sort(node, memory))));
    rules.push(each_node("narrow_inputs", narrow_inputs));
    rules
}

/// Whether a node is a join, which can make many rows of few.
pub(crate) fn is_join(node: &Arc<dyn ExecutionPlan>) -> bool {
    node.downcast_ref::<NestedLoopJoinExec>().is_some()
        || node.downcast_ref::<CrossJoinExec>().is_some()
        || node.downcast_ref::<HashJoinExec>().is_some()
        || node.downcast_ref::<SortMergeJoinExec>().is_some()
}

/// A rule that replaces nodes, from the leaves up.
struct EachNode<F> {
    name: &'static str,
    replace: F,
}

fn each_node<F>(name: &'static str, replace: F) -> Arc<dyn PhysicalOptimizerRule + Send + Sync>
where
    F: Fn(&Arc<dyn ExecutionPlan>) -> Result<Replaced> + Send + Sync + 'static,
{
    Arc::new(EachNode { name, replace })
}

impl<F> fmt::Debug for EachNode<F> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.name)
    }
}

impl<F> PhysicalOptimizerRule for EachNode<F>
where
    F: Fn(&Arc<dyn ExecutionPlan>) -> Result<Replaced> + Send + Sync + 'static,
{
    fn optimize(
        &self,
        plan: Arc<dyn ExecutionPlan>,
        _: &ConfigOptions,
    ) -> Result<Arc<dyn ExecutionPlan>> {
        plan.transform_up(|node| {
            Ok(match (self.replace)(&node)? {
                Some(replaced) => Transformed::yes(replaced),
                None => Transformed::no(node),
            })
        })
        .data()
    }

    fn name(&self) -> &str {
        self.name
    }

    fn schema_check(&self) -> bool {
        true
    }
}
