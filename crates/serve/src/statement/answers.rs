//! Answers of statements that change something.

use std::sync::Arc;

use coload_types::{Error, Result};
use datafusion::arrow::array::{ArrayRef, UInt64Array};
use datafusion::arrow::datatypes::{
    DataType as ArrowType, Field, Schema as ArrowSchema, SchemaRef,
};
use datafusion::arrow::record_batch::RecordBatch;
use datafusion::physical_plan::stream::RecordBatchStreamAdapter;

use crate::Answer;

/// The answer of a statement that changed something and has nothing to tell.
pub(super) fn done() -> Answer {
    let schema = Arc::new(ArrowSchema::empty());
    Answer::new(Box::pin(RecordBatchStreamAdapter::new(schema, futures::stream::empty())))
}

/// The answer of a statement that tells how many rows it wrote.
pub(super) fn count(rows: u64) -> Result<Answer> {
    let stream = futures::stream::iter([Ok(count_batch(rows)?)]);
    Ok(Answer::new(Box::pin(RecordBatchStreamAdapter::new(count_schema(), stream))))
}

/// The one row of such an answer.
pub(crate) fn count_batch(rows: u64) -> Result<RecordBatch> {
    let column: ArrayRef = Arc::new(UInt64Array::from(vec![rows]));
    RecordBatch::try_new(count_schema(), vec![column])
        .map_err(|e| Error::Refused(format!("internal error: {e}")))
}

pub(crate) fn count_schema() -> SchemaRef {
    Arc::new(ArrowSchema::new(vec![Field::new("count", ArrowType::UInt64, false)]))
}
