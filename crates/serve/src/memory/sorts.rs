//! Sorts that hold no more than they reserve.
//!
//! Rows that a sort merges from many parts have views into the texts of all of these, so that one batch of them keeps some
//! of each part in memory, tens of times what its rows take. What holds a few batches, as a window or another merge does, held
//! hundreds of megabytes, none of it reserved. So texts of sorted rows are copied together before they are passed on.
//!
//! A sort of which the first rows are wanted holds these and cannot go to disk, which is for few rows. When they are many, all
//! rows are sorted, and the first taken then.

use std::sync::Arc;

use datafusion::arrow::array::{Array, ArrayRef, AsArray};
use datafusion::arrow::datatypes::{DataType, Schema};
use datafusion::arrow::record_batch::RecordBatch;
use datafusion::error::Result;
use datafusion::execution::{SendableRecordBatchStream, TaskContext};
use datafusion::physical_plan::ExecutionPlan;
use datafusion::physical_plan::limit::LocalLimitExec;
use datafusion::physical_plan::sorts::sort::SortExec;
use datafusion::physical_plan::sorts::sort_preserving_merge::SortPreservingMergeExec;
use datafusion::physical_plan::stream::RecordBatchStreamAdapter;
use futures::StreamExt;

use super::narrow::text_bytes;
use crate::physical_rules::Replaced;
use crate::through::{Through, ThroughExec};

/// Buffers may have so many times the bytes that the views of an array point to before these are copied.
const SLACK: usize = 2;
/// Buffers of so many bytes are left as they are: the copy would cost more than it gives back.
const BYTES_KEPT: usize = 64 << 10;
/// Share of the memory that the first rows of a sort may take.
const FIRST_ROWS_SHARE: usize = 16;
/// Bytes of a text, as far as a plan knows; a number or time has its own.
const TEXT_BYTES: usize = 128;
/// Bytes for a row of its keys as they are compared, and what points to it.
const ROW_BYTES: usize = 128;

/// A sort that keeps to its memory, in a statement that has so many bytes.
pub(crate) fn fit_sort(node: &Arc<dyn ExecutionPlan>, memory: usize) -> Replaced {
    let has_views = has_views(&node.schema());
    let compact = |node| ThroughExec::above(node, Arc::new(Compact));
    let Some(sort) = node.downcast_ref::<SortExec>() else {
        let merges = node.downcast_ref::<SortPreservingMergeExec>().is_some();
        return (merges && has_views).then(|| compact(Arc::clone(node)));
    };
    match sort.fetch() {
        None => has_views.then(|| compact(Arc::clone(node))),
        Some(rows) if are_many(rows, &node.schema(), memory) => {
            let all = Arc::new(sort.with_fetch(None)) as Arc<dyn ExecutionPlan>;
            let all = if has_views { compact(all) } else { all };
            Some(Arc::new(LocalLimitExec::new(all, rows)))
        }
        // The first rows are copied from what they stand in as it comes.
        Some(_) => None,
    }
}

/// Whether the first rows of a sort take too much to be held.
fn are_many(rows: usize, schema: &Schema, memory: usize) -> bool {
    let bytes = |data_type: &DataType| data_type.primitive_width().unwrap_or(TEXT_BYTES);
    let row: usize = schema.fields().iter().map(|field| bytes(field.data_type())).sum();
    rows.saturating_mul(row + ROW_BYTES) > memory / FIRST_ROWS_SHARE
}

fn has_views(schema: &Schema) -> bool {
    let is_view =
        |data_type: &DataType| matches!(data_type, DataType::Utf8View | DataType::BinaryView);
    schema.fields().iter().any(|field| is_view(field.data_type()))
}

/// Copies texts together that stand in much larger buffers.
#[derive(Debug)]
struct Compact;

impl Through for Compact {
    fn name(&self) -> &'static str {
        "CompactExec"
    }

    fn pass(
        &self,
        rows: SendableRecordBatchStream,
        _: &TaskContext,
    ) -> Result<SendableRecordBatchStream> {
        let schema = rows.schema();
        let compact = rows.map(|batch| compact(batch?));
        Ok(Box::pin(RecordBatchStreamAdapter::new(schema, compact)))
    }
}

fn compact(batch: RecordBatch) -> Result<RecordBatch> {
    let columns = batch.columns().iter().map(compact_array).collect();
    Ok(RecordBatch::try_new(batch.schema(), columns)?)
}

fn compact_array(array: &ArrayRef) -> ArrayRef {
    let buffers = match array.data_type() {
        DataType::Utf8View => array.as_string_view().data_buffers(),
        DataType::BinaryView => array.as_binary_view().data_buffers(),
        _ => return Arc::clone(array),
    };
    let held: usize = buffers.iter().map(|buffer| buffer.capacity()).sum();
    if held <= BYTES_KEPT.max(SLACK * text_bytes(array.as_ref())) {
        return Arc::clone(array);
    }
    match array.data_type() {
        DataType::Utf8View => Arc::new(array.as_string_view().gc()),
        _ => Arc::new(array.as_binary_view().gc()),
    }
}
