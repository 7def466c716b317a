//! Batches of long texts are cut before functions work on them.
//!
//! The engine's batches have 8,192 rows. A function of a text of 100 KB in each would make 800 MB in one step, before anybody
//! looks. So what functions are given has few bytes of text at once, at least a row; batches of usual texts pass as they are.
//!
//! A join puts a row of one input beside many of the other. Views do not take more by that; lists and texts that are none,
//! such as what `array_agg` and `string_agg` make, are copied for each. Where a join has such columns its batches have few
//! rows ([`super::batch_rows`]), and a value that is too long even so is an error.
//!
//! A window whose frame has no end holds all of its rows, which the engine does not count.

use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll, ready};

use coload_types::Error;
use datafusion::arrow::array::{Array, ArrayRef, AsArray};
use datafusion::arrow::datatypes::{DataType, Schema, SchemaRef};
use datafusion::arrow::record_batch::RecordBatch;
use datafusion::common::tree_node::{TreeNode, TreeNodeRecursion};
use datafusion::error::Result;
use datafusion::execution::memory_pool::MemoryConsumer;
use datafusion::execution::{RecordBatchStream, SendableRecordBatchStream, TaskContext};
use datafusion::physical_expr::{PhysicalExpr, ScalarFunctionExpr};
use datafusion::physical_plan::ExecutionPlan;
use datafusion::physical_plan::execution_plan::{ChildrenPropertiesMode, ReplaceChildrenOptions};
use datafusion::physical_plan::stream::RecordBatchStreamAdapter;
use datafusion::physical_plan::windows::WindowAggExec;
use futures::{Stream, StreamExt};

use super::{Watch, rows_share, sliced_bytes};
use crate::error::to_datafusion;
use crate::physical_rules::{Replaced, is_join};
use crate::through::{Through, ThroughExec};

/// What a window over all rows takes of the memory for each of their bytes: it holds them, puts them into one batch, and adds
/// its columns.
const TIMES_IN_WINDOW: usize = 3;
/// Share of the memory for a batch of a join in which each row has the longest value.
const JOINED_SHARE: usize = 8;

/// Bytes of the texts of an array, each counted in each row where it stands.
pub(crate) fn text_bytes(array: &dyn Array) -> usize {
    match array.data_type() {
        DataType::Utf8View => array.as_string_view().total_bytes_len(),
        DataType::BinaryView => array.as_binary_view().total_bytes_len(),
        DataType::Utf8 => array.as_string::<i32>().offsets().lengths().sum(),
        DataType::LargeUtf8 => array.as_string::<i64>().offsets().lengths().sum(),
        DataType::Binary => array.as_binary::<i32>().offsets().lengths().sum(),
        DataType::LargeBinary => array.as_binary::<i64>().offsets().lengths().sum(),
        _ => 0,
    }
}

/// Bytes of the texts of a batch.
fn texts_bytes(batch: &RecordBatch) -> usize {
    batch.columns().iter().map(text_bytes_of).sum()
}

fn text_bytes_of(array: &Arc<dyn Array>) -> usize {
    text_bytes(array.as_ref())
}

/// Whether values of a type are copied where a row is repeated, and may be long.
pub(crate) fn is_copied(data_type: &DataType) -> bool {
    use DataType as T;
    matches!(
        data_type,
        T::Utf8 | T::LargeUtf8 | T::Binary | T::LargeBinary | T::List(_) | T::LargeList(_)
    )
}

/// Bytes of the longest of values that are copied; of lists, about.
fn longest(array: &dyn Array) -> usize {
    let max = |lengths: &mut dyn Iterator<Item = usize>| lengths.max().unwrap_or(0);
    let of_lists = |items: &ArrayRef, most: usize| {
        let bytes = items.to_data().get_slice_memory_size().unwrap_or(0) + text_bytes(items);
        most.saturating_mul(bytes.div_ceil(items.len().max(1)))
    };
    match array.data_type() {
        DataType::Utf8 => max(&mut array.as_string::<i32>().offsets().lengths()),
        DataType::LargeUtf8 => max(&mut array.as_string::<i64>().offsets().lengths()),
        DataType::Binary => max(&mut array.as_binary::<i32>().offsets().lengths()),
        DataType::LargeBinary => max(&mut array.as_binary::<i64>().offsets().lengths()),
        DataType::List(_) => {
            let lists = array.as_list::<i32>();
            of_lists(lists.values(), max(&mut lists.offsets().lengths()))
        }
        DataType::LargeList(_) => {
            let lists = array.as_list::<i64>();
            of_lists(lists.values(), max(&mut lists.offsets().lengths()))
        }
        _ => 0,
    }
}

fn has_texts(schema: &Schema) -> bool {
    use DataType as T;
    schema.fields().iter().any(|field| {
        matches!(
            field.data_type(),
            T::Utf8View | T::BinaryView | T::Utf8 | T::LargeUtf8 | T::Binary | T::LargeBinary
        )
    })
}

/// A node that calls functions, or a join, or a window, with [`Does`] below it.
pub(crate) fn narrow_inputs(node: &Arc<dyn ExecutionPlan>) -> Result<Replaced> {
    let is_window = node.downcast_ref::<WindowAggExec>().is_some();
    let does = match (is_join(node), is_window) {
        (true, _) => Does::Check,
        (_, true) => Does::Reserve,
        _ => Does::Cut,
    };
    let wide = |child: &&Arc<dyn ExecutionPlan>| match does {
        Does::Cut => has_texts(&child.schema()),
        Does::Check => child.schema().fields().iter().any(|f| is_copied(f.data_type())),
        Does::Reserve => true,
    };
    let children = node.children();
    let is_of_use = !matches!(does, Does::Cut) || calls_functions(node)?;
    if !is_of_use || !children.iter().any(wide) {
        return Ok(None);
    }
    let children = children.into_iter().map(|child| match wide(&child) {
        true => ThroughExec::above(Arc::clone(child), Arc::new(does)),
        false => Arc::clone(child),
    });
    let children = children.collect();
    let recompute = ReplaceChildrenOptions::new(ChildrenPropertiesMode::Recompute);
    Arc::clone(node).replace_children(children, recompute).map(Some)
}

fn calls_functions(plan: &Arc<dyn ExecutionPlan>) -> Result<bool> {
    let mut found = false;
    plan.apply_expressions(&mut |expr| {
        expr.apply(|part: &Arc<dyn PhysicalExpr>| {
            found |= part.downcast_ref::<ScalarFunctionExpr>().is_some();
            Ok(if found { TreeNodeRecursion::Stop } else { TreeNodeRecursion::Continue })
        })
    })?;
    Ok(found)
}

/// What is done with batches that have too many bytes.
#[derive(Debug, Clone, Copy)]
enum Does {
    /// They are cut into batches of fewer rows.
    Cut,
    /// Values so long that a batch full of them is too large are an error.
    Check,
    /// They are reserved until the end.
    Reserve,
}

impl Through for Does {
    fn name(&self) -> &'static str {
        "NarrowExec"
    }

    fn pass(
        &self,
        input: SendableRecordBatchStream,
        context: &TaskContext,
    ) -> Result<SendableRecordBatchStream> {
        let watch = context.session_config().get_extension::<Watch>();
        let memory = watch.map_or(usize::MAX, |watch| watch.memory());
        let schema = input.schema();
        Ok(match self {
            Does::Cut => {
                Box::pin(Narrow { input, rest: Vec::new(), bytes_max: rows_share(memory) })
            }
            Does::Check => {
                let rows = context.session_config().batch_size();
                let bytes_max = memory / JOINED_SHARE / rows.max(1);
                let checked = input.map(move |batch| check_longest(batch?, bytes_max));
                Box::pin(RecordBatchStreamAdapter::new(schema, checked))
            }
            Does::Reserve => {
                let held =
                    MemoryConsumer::new("the rows of a window").register(context.memory_pool());
                let reserved = input.map(move |batch| {
                    let batch = batch?;
                    held.try_grow(TIMES_IN_WINDOW * sliced_bytes(&batch))?;
                    Ok(batch)
                });
                Box::pin(RecordBatchStreamAdapter::new(schema, reserved))
            }
        })
    }
}

fn check_longest(batch: RecordBatch, bytes_max: usize) -> Result<RecordBatch> {
    match batch.columns().iter().map(|array| longest(array)).max() {
        Some(bytes) if bytes > bytes_max => Err(to_datafusion(Error::Limit(format!(
            "a list or an aggregated text of {bytes} bytes is in a row that is joined, where it may stand in many \
             rows; {bytes_max} are the most (join first, and aggregate then; or raise --memory)"
        )))),
        _ => Ok(batch),
    }
}

struct Narrow {
    input: SendableRecordBatchStream,
    /// What is left of a batch, the next last.
    rest: Vec<RecordBatch>,
    bytes_max: usize,
}

impl Narrow {
    /// The first rows of what is left.
    fn cut(&mut self) -> Option<RecordBatch> {
        let mut batch = self.rest.pop()?;
        while batch.num_rows() > 1 && texts_bytes(&batch) > self.bytes_max {
            let half = batch.num_rows() / 2;
            self.rest.push(batch.slice(half, batch.num_rows() - half));
            batch = batch.slice(0, half);
        }
        Some(batch)
    }
}

impl Stream for Narrow {
    type Item = Result<RecordBatch>;

    fn poll_next(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<Option<Self::Item>> {
        if let Some(batch) = self.cut() {
            return Poll::Ready(Some(Ok(batch)));
        }
        match ready!(self.input.poll_next_unpin(context)) {
            Some(Ok(batch)) => {
                self.rest.push(batch);
                Poll::Ready(self.cut().map(Ok))
            }
            other => Poll::Ready(other),
        }
    }
}

impl RecordBatchStream for Narrow {
    fn schema(&self) -> SchemaRef {
        self.input.schema()
    }
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]
    use super::*;
    use datafusion::arrow::array::StringViewArray;

    #[tokio::test]
    async fn long_texts_come_in_few_rows_and_short_ones_as_they_are() {
        let long = "x".repeat(1_000);
        let texts = [vec!["short"; 100], vec![long.as_str(); 7], vec!["short"; 2]].concat();
        let texts: ArrayRef = Arc::new(StringViewArray::from(texts));
        let batch = RecordBatch::try_from_iter([("t", texts)]).unwrap();
        let cut = |batch: RecordBatch, bytes_max: usize| async move {
            let rows = futures::stream::iter([Ok(batch.clone())]);
            let input = Box::pin(RecordBatchStreamAdapter::new(batch.schema(), rows));
            let narrow = Narrow { input, rest: Vec::new(), bytes_max };
            narrow.map(Result::unwrap).collect::<Vec<_>>().await
        };
        assert_eq!(cut(batch.clone(), 10_000).await, std::slice::from_ref(&batch));
        let parts = cut(batch.clone(), 2_500).await;
        assert!(parts.iter().all(|part| texts_bytes(part) <= 2_500));
        assert!(parts.len() <= 12, "{}", parts.len());
        let whole = datafusion::arrow::compute::concat_batches(&batch.schema(), &parts).unwrap();
        assert_eq!(whole, batch);
        // A text that is too long by itself is a row by itself.
        assert_eq!(cut(batch.slice(99, 3), 10).await.len(), 3);
    }
}
