//! Joins for which memory does not suffice run again as joins of sorted inputs, which go to disk.
//!
//! A hash join holds one of its inputs, and does not know how large it becomes until it has read it. Sorted inputs
//! need little memory, and time for sorting: so the one is tried first, and the other when the first has failed. Nothing
//! was sent by then, as a join gives no row before it holds its input.

use std::sync::Arc;

use coload_types::Result;
use datafusion::arrow::record_batch::RecordBatch;
use datafusion::common::tree_node::{TreeNode, TreeNodeRecursion};
use datafusion::error::DataFusionError;
use datafusion::execution::SendableRecordBatchStream;
use datafusion::execution::session_state::SessionState;
use datafusion::logical_expr::LogicalPlan;
use datafusion::physical_plan::joins::HashJoinExec;
use datafusion::physical_plan::stream::RecordBatchStreamAdapter;
use datafusion::physical_plan::{ExecutionPlan, execute_stream};
use futures::{StreamExt, TryStreamExt};

use super::Watch;
use crate::error::from_datafusion;
use crate::rules::physical_plan;

/// By how much more sorts there are in a plan of sorted joins.
const SORTS_MORE: usize = 4;

/// Runs a plan; if its joins take too much memory, the statement is planned and run once more.
///
/// # Errors
/// What goes wrong at once.
pub(crate) fn execute(
    session: &SessionState,
    logical: Option<&LogicalPlan>,
    plan: Arc<dyn ExecutionPlan>,
) -> Result<SendableRecordBatchStream> {
    let rows = start(session, logical, plan)?;
    Ok(match session.config().get_extension::<Watch>() {
        Some(watch) => watch.rows(rows),
        None => rows,
    })
}

fn start(
    session: &SessionState,
    logical: Option<&LogicalPlan>,
    plan: Arc<dyn ExecutionPlan>,
) -> Result<SendableRecordBatchStream> {
    let has_joins = has_hash_join(&plan);
    let schema = plan.schema();
    let first = execute_stream(plan, session.task_ctx()).map_err(from_datafusion)?;
    let (true, Some(logical)) = (has_joins, logical) else { return Ok(first) };
    let again = Some((session.clone(), logical.clone()));
    let rows = futures::stream::try_unfold((first, again), |(mut rows, again)| async move {
        match (rows.next().await, again) {
            (None, _) => Ok(None),
            // Once there is a row, there is no way back.
            (Some(Ok(batch)), _) => Ok(Some((batch, (rows, None)))),
            (Some(Err(error)), Some((session, logical))) if is_out_of_memory(&error) => {
                // What it holds is given back first.
                drop(rows);
                let mut rows = sorted(session, &logical).await?;
                let first: Option<RecordBatch> = rows.try_next().await?;
                Ok(first.map(|batch| (batch, (rows, None))))
            }
            (Some(Err(error)), _) => Err(error),
        }
    });
    Ok(Box::pin(RecordBatchStreamAdapter::new(schema, rows)))
}

/// Plans and starts a statement with joins of sorted inputs.
async fn sorted(
    mut session: SessionState,
    logical: &LogicalPlan,
) -> std::result::Result<SendableRecordBatchStream, DataFusionError> {
    let options = session.config_mut().options_mut();
    options.optimizer.prefer_hash_join = false;
    // The engine sorts for joins of several partitions only.
    options.execution.target_partitions = options.execution.target_partitions.max(2);
    // There are more sorts than in a plan that sorts once.
    options.execution.sort_spill_reservation_bytes /= SORTS_MORE;
    tracing::info!(
        "joins run on sorted inputs, as they have too little memory for a table in memory"
    );
    let plan = physical_plan(&session, logical).await?;
    execute_stream(plan, session.task_ctx())
}

fn has_hash_join(plan: &Arc<dyn ExecutionPlan>) -> bool {
    let mut found = false;
    // The visitor itself does not fail.
    let _ = plan.apply(|node| {
        found |= node.downcast_ref::<HashJoinExec>().is_some();
        Ok(if found { TreeNodeRecursion::Stop } else { TreeNodeRecursion::Continue })
    });
    found
}

fn is_out_of_memory(error: &DataFusionError) -> bool {
    matches!(error.find_root(), DataFusionError::ResourcesExhausted(_))
}
