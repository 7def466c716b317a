//! Joins that give others a turn.
//!
//! A query is cancelled when it gives up its thread, and DataFusion sees to that where rows come from. A join that makes
//! thousand millions of rows of one batch would not come back there for minutes, so that nobody could cancel it.

use std::sync::Arc;

use datafusion::physical_plan::ExecutionPlan;
use datafusion::physical_plan::coop::CooperativeExec;

use crate::physical_rules::{Replaced, is_join};

/// A join that counts what it makes as work that was done.
pub(crate) fn yielding(node: &Arc<dyn ExecutionPlan>) -> Replaced {
    is_join(node).then(|| Arc::new(CooperativeExec::new(Arc::clone(node))) as _)
}
