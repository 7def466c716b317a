//! Joins that give others a turn.
//!
//! A query is cancelled when it gives up its thread, and DataFusion sees to that where rows come from. A join that makes
//! thousand millions of rows of one batch would not come back there for minutes, so that nobody could cancel it.

use std::sync::Arc;

use datafusion::common::config::ConfigOptions;
use datafusion::common::tree_node::{Transformed, TransformedResult, TreeNode};
use datafusion::error::Result;
use datafusion::physical_optimizer::PhysicalOptimizerRule;
use datafusion::physical_plan::ExecutionPlan;
use datafusion::physical_plan::coop::CooperativeExec;
use datafusion::physical_plan::joins::{
    CrossJoinExec, HashJoinExec, NestedLoopJoinExec, SortMergeJoinExec,
};

/// Has joins count what they make as work that was done.
#[derive(Debug)]
pub(crate) struct JoinsYield;

impl PhysicalOptimizerRule for JoinsYield {
    fn optimize(
        &self,
        plan: Arc<dyn ExecutionPlan>,
        _: &ConfigOptions,
    ) -> Result<Arc<dyn ExecutionPlan>> {
        plan.transform_up(|plan| {
            let multiplies = plan.downcast_ref::<NestedLoopJoinExec>().is_some()
                || plan.downcast_ref::<CrossJoinExec>().is_some()
                || plan.downcast_ref::<HashJoinExec>().is_some()
                || plan.downcast_ref::<SortMergeJoinExec>().is_some();
            Ok(match multiplies {
                true => Transformed::yes(Arc::new(CooperativeExec::new(plan)) as _),
                false => Transformed::no(plan),
            })
        })
        .data()
    }

    fn name(&self) -> &str {
        "joins_yield"
    }

    fn schema_check(&self) -> bool {
        true
    }
}
