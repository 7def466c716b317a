//! Plans whose partitions, one after the other, are the rows of a table in its order.
//!
//! A scan gives its pages to whichever partition is free, and what merges the partitions takes what comes first. Where a plan
//! only leaves rows out and computes columns, each partition can have pages of its own; also where what merges them would keep the
//! order of the table's key, and this is that of the pages.

use std::sync::Arc;

use coload_types::Result;
use datafusion::physical_plan::ExecutionPlan;
use datafusion::physical_plan::coalesce_partitions::CoalescePartitionsExec;
use datafusion::physical_plan::coop::CooperativeExec;
use datafusion::physical_plan::execution_plan::{ChildrenPropertiesMode, ReplaceChildrenOptions};
use datafusion::physical_plan::filter::FilterExec;
use datafusion::physical_plan::projection::ProjectionExec;
use datafusion::physical_plan::repartition::RepartitionExec;
use datafusion::physical_plan::sorts::sort_preserving_merge::SortPreservingMergeExec;

use crate::error::from_datafusion;
use crate::scan::StoreScanExec;
use crate::through::ThroughExec;

/// The plan with pages of its own for each partition; `None` when its rows have another order, or none.
///
/// # Errors
/// `Corrupt` when a segment is damaged.
pub(crate) fn in_order(plan: &Arc<dyn ExecutionPlan>) -> Result<Option<Arc<dyn ExecutionPlan>>> {
    if let Some(scan) = plan.downcast_ref::<StoreScanExec>() {
        return Ok(scan.by_pages()?.map(|scan| Arc::new(scan) as Arc<dyn ExecutionPlan>));
    }
    if let Some(merge) = plan.downcast_ref::<SortPreservingMergeExec>() {
        let rows = if merge.fetch().is_none() { in_order(merge.input())? } else { None };
        return Ok(rows.filter(is_one_run));
    }
    // A limit, here as that of a filter, is one of all rows.
    let [input] = plan.children()[..] else { return Ok(None) };
    if !passes_rows_on(plan) || plan.fetch().is_some() {
        return Ok(None);
    }
    let Some(input) = in_order(input)? else { return Ok(None) };
    if only_spreads(plan) {
        return Ok(Some(input));
    }
    let options = ReplaceChildrenOptions::new(ChildrenPropertiesMode::Recompute);
    Arc::clone(plan).replace_children(vec![input], options).map(Some).map_err(from_datafusion)
}

/// Whether partitions of pages are in the order of a key, which is that of what merged them.
fn is_one_run(plan: &Arc<dyn ExecutionPlan>) -> bool {
    match (plan.downcast_ref::<StoreScanExec>(), &plan.children()[..]) {
        (Some(scan), _) => scan.is_one_run(),
        (None, [input]) => is_one_run(input),
        (None, _) => false,
    }
}

fn passes_rows_on(plan: &Arc<dyn ExecutionPlan>) -> bool {
    plan.downcast_ref::<ProjectionExec>().is_some()
        || plan.downcast_ref::<FilterExec>().is_some()
        || plan.downcast_ref::<CooperativeExec>().is_some()
        || plan.downcast_ref::<ThroughExec>().is_some()
        || only_spreads(plan)
}

/// Whether a node gives the rows to other partitions, and is not needed where these are parts of a table.
fn only_spreads(plan: &Arc<dyn ExecutionPlan>) -> bool {
    plan.downcast_ref::<CoalescePartitionsExec>().is_some()
        || plan.downcast_ref::<RepartitionExec>().is_some()
}
