//! The rows of inputs as batches: who parses, who waits, and in which order.
//!
//! ```text
//!   a thread: the pipeline of a load, workers --make_rows--> a batch a fragment
//!     --take_ahead--> in the order of partitions and fragments --channel of one--> the statement's stream
//! ```
//!
//! Memory: what the load has (`Resources::memory`), and the fragments that came before their turn, of which there are as
//! many as the pipeline reads ahead. The statement that no longer reads drops the channel, and the load ends.

use std::collections::BTreeMap;
use std::fmt;
use std::pin::Pin;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::{Arc, Mutex};
use std::task::{Context, Poll, ready};

use coload_ddl::CheckedColumn;
use coload_load::{
    Ahead, AheadColumn, Hooks, Load, LoadRequest, MadeRows, OnOpened, PartsRead, Resources,
    RowsRead, TakesRows, Target, Widened, Works, read_rows,
};
use coload_source::LeftOut;
use coload_threads::{lock, spawn};
use coload_transform::PartitionColumn;
use coload_types::{DataType, Error, Result};
use coload_wire::Seal;
use datafusion::arrow::array::ArrayRef;
use datafusion::arrow::compute::filter_record_batch;
use datafusion::arrow::datatypes::SchemaRef;
use datafusion::arrow::record_batch::{RecordBatch, RecordBatchOptions};
use datafusion::common::cast::as_boolean_array;
use datafusion::error::Result as DataFusionResult;
use datafusion::execution::RecordBatchStream;
use datafusion::execution::memory_pool::MemoryReservation;
use datafusion::physical_expr::PhysicalExpr;
use datafusion::physical_plan::metrics::{BaselineMetrics, ExecutionPlanMetricsSet, MetricBuilder};
use futures::Stream;
use tokio::sync::mpsc::{Receiver, Sender, channel};

use super::table::ExternalTable;
use crate::arrays::array_of;
use crate::error::{from_datafusion, to_datafusion};

/// What is read, and with what.
#[derive(Debug)]
pub(crate) struct Reading {
    pub table: Arc<ExternalTable>,
    /// The load of the columns that are read.
    pub request: Arc<LoadRequest>,
    pub resources: Resources,
    pub held: MemoryReservation,
}

/// Which rows are wanted, and how.
pub(super) struct Rows {
    /// Columns that are read.
    pub read: SchemaRef,
    /// Columns of the batches: the first of those.
    pub schema: SchemaRef,
    /// What rows pass, over the columns that are read.
    pub filter: Option<Arc<dyn PhysicalExpr>>,
    pub batch_rows: usize,
    pub limit: Option<usize>,
}

/// What the load tells the statement.
enum Message {
    Rows(RecordBatch),
    Failed(Error),
    /// All rows came.
    End,
}

/// Begins to read.
///
/// # Errors
/// `Unavailable` when there is no thread to be had.
pub(super) fn read(
    reading: Reading,
    rows: Rows,
    (metrics, partition): (&ExecutionPlanMetricsSet, usize),
) -> Result<ExternalRows> {
    let Rows { read, schema, filter, batch_rows, limit } = rows;
    let (sender, receiver) = channel(1);
    let hooks = Hooks { opened: Some(counts_parts(metrics.clone())), ..Hooks::default() };
    let cancel = Arc::clone(&hooks.cancel);
    let Reading { table, request, resources, held } = reading;
    let batches = Batches {
        types: request.schema.columns().iter().map(|column| column.data_type).collect(),
        read,
        schema: Arc::clone(&schema),
        filter,
        order: Mutex::default(),
        sender,
        rows: AtomicU64::new(0),
    };
    let work = move || {
        let load = Load { request: &request, resources: &resources, hooks: &hooks };
        let last = match read_all(&table, load, &batches) {
            Ok(()) => batches.end(),
            Err(error) => Message::Failed(error),
        };
        // Who has gone wants no last word.
        let _ = batches.sender.blocking_send(last);
    };
    let thread = std::thread::Builder::new().name("coload-external".to_owned());
    spawn(thread, work).map_err(|e| Error::Unavailable(format!("cannot start a thread: {e}")))?;
    Ok(ExternalRows {
        schema,
        receiver,
        batch: None,
        batch_rows: batch_rows.max(1),
        left: limit.unwrap_or(usize::MAX),
        has_ended: false,
        cancel,
        metrics: BaselineMetrics::new(metrics, partition),
        _held: held,
    })
}

/// Counts what is read of inputs, and what their bounds say that nobody wants.
pub(crate) fn counts_parts(metrics: ExecutionPlanMetricsSet) -> OnOpened {
    Arc::new(move |parts: &PartsRead| {
        let counter = |name, count: u64| {
            MetricBuilder::new(&metrics).counter(name, 0).add(count as usize);
        };
        counter("bytes_read", parts.bytes);
        if let Some(groups) = &parts.row_groups {
            counter("row_groups_read", groups.read);
            counter("row_groups_pruned", groups.left_out);
            counter("rows_pruned", groups.rows_left_out);
        }
    })
}

/// Reads all rows of a table into a target. A field that its column does not hold is an error that the statement may not see:
/// the table has learned from it.
///
/// # Errors
/// Those of a load.
pub(crate) fn read_all(table: &ExternalTable, load: Load<'_>, target: &dyn Target) -> Result<()> {
    match read_rows(load, target)? {
        RowsRead::All => Ok(()),
        RowsRead::TooNarrow { wider, widened } => {
            table.learn(wider, &widened);
            Err(too_narrow(&widened))
        }
    }
}

fn too_narrow(widened: &[Widened]) -> Error {
    let Some(first @ Widened { column, from, to, place, .. }) = widened.first() else {
        return Error::Corrupt("a column without a type".into());
    };
    let shown = first.shown();
    Error::Input {
        place: Box::new(place.clone()),
        text: format!(
            "column {column} was taken for {from}, which {shown} is not, and rows were answered already: write \
             read_csv(.., types => '{column} {to}'), or sample => 'all', which looks at all of it first; in the same session or \
             server the statement can be run again as it is"
        ),
    }
}

/// Takes rows as batches, and gives them to the statement in order.
struct Batches {
    types: Vec<DataType>,
    read: SchemaRef,
    schema: SchemaRef,
    filter: Option<Arc<dyn PhysicalExpr>>,
    order: Mutex<Order>,
    sender: Sender<Message>,
    rows: AtomicU64,
}

/// Whose turn it is.
#[derive(Default)]
struct Order {
    /// The next fragment, by the numbers of its partition and within it.
    next: (usize, u32),
    waiting: BTreeMap<(usize, u32), RecordBatch>,
    /// Fragments of partitions that are whole.
    whole: BTreeMap<usize, u32>,
}

impl Order {
    /// The next batch, if it is there.
    fn take(&mut self) -> Option<RecordBatch> {
        loop {
            if let Some(batch) = self.waiting.remove(&self.next) {
                self.next.1 += 1;
                return Some(batch);
            }
            let (partition, fragment) = self.next;
            if self.whole.get(&partition) != Some(&fragment) {
                return None;
            }
            self.whole.remove(&partition);
            self.next = (partition + 1, 0);
        }
    }
}

/// A batch that a worker made, and of how many rows.
#[derive(Debug)]
struct Made {
    batch: RecordBatch,
    of: usize,
}

impl MadeRows for Made {
    fn count(&self) -> usize {
        self.of
    }
}

impl Batches {
    /// What is said at the end of all rows.
    fn end(&self) -> Message {
        match lock(&self.order).waiting.is_empty() {
            true => Message::End,
            false => Message::Failed(Error::Corrupt("rows of a partition without its end".into())),
        }
    }

    /// The rows of these columns that pass, with the columns that are wanted.
    fn batch(&self, columns: &[CheckedColumn<'_>], rows: usize) -> DataFusionResult<RecordBatch> {
        // A scan without columns reads one to count its rows.
        let schema = if self.filter.is_some() { &self.read } else { &self.schema };
        let wanted = columns.iter().zip(&self.types).take(schema.fields().len());
        let arrays = wanted.map(|(column, data_type)| array_of(*column, rows, *data_type));
        let arrays = arrays.collect::<Result<Vec<ArrayRef>>>().map_err(to_datafusion)?;
        let options = RecordBatchOptions::new().with_row_count(Some(rows));
        let batch = RecordBatch::try_new_with_options(Arc::clone(schema), arrays, &options)?;
        let Some(filter) = &self.filter else { return Ok(batch) };
        let passes = filter.evaluate(&batch)?.into_array(rows)?;
        let passes = filter_record_batch(&batch, as_boolean_array(&passes)?)?;
        let columns: Vec<usize> = (0..self.schema.fields().len()).collect();
        Ok(passes.project(&columns)?)
    }

    /// Sends what is next. The lock is held meanwhile, so that others wait behind.
    fn send(&self, mut order: std::sync::MutexGuard<'_, Order>) -> Result<()> {
        while let Some(batch) = order.take() {
            let sent = self.sender.blocking_send(Message::Rows(batch));
            sent.map_err(|_| Error::Unavailable("the statement has ended".into()))?;
        }
        Ok(())
    }
}

impl TakesRows for Batches {
    fn make_rows(&self, columns: &[CheckedColumn<'_>], rows: usize) -> Result<Box<dyn MadeRows>> {
        let batch = self.batch(columns, rows).map_err(from_datafusion)?;
        Ok(Box::new(Made { batch, of: rows }))
    }

    fn left_out(&self, _: usize) -> Vec<LeftOut> {
        Vec::new()
    }
}

impl Target for Batches {
    fn takes_rows(&self) -> Option<&dyn TakesRows> {
        Some(self)
    }

    fn take_ahead(&self, ahead: Ahead) -> Result<Works> {
        let Ahead { partition, fragment, columns } = ahead;
        let mut order = lock(&self.order);
        for column in columns {
            let AheadColumn::Rows(rows) = column else { return Err(no_rows()) };
            let Made { batch, of } = rows.into_form()?.rows;
            // Those that the filter took away were read, too.
            self.rows.fetch_add(of as u64, Ordering::Relaxed);
            order.waiting.insert((partition, fragment), batch);
        }
        self.send(order)?;
        Ok(Works::new())
    }

    fn take_column(&self, _: usize, _: usize, _: &[u32], _: PartitionColumn) -> Result<()> {
        Err(no_rows())
    }

    fn seal(&self, seal: Seal) -> Result<Works> {
        let mut order = lock(&self.order);
        order.whole.insert(seal.partition as usize, seal.page_rows.len() as u32);
        self.send(order)?;
        Ok(Works::new())
    }

    fn rows(&self) -> u64 {
        self.rows.load(Ordering::Relaxed)
    }
}

fn no_rows() -> Error {
    Error::Corrupt("columns for a statement, which takes rows".into())
}

/// The batches of inputs.
pub(super) struct ExternalRows {
    schema: SchemaRef,
    receiver: Receiver<Message>,
    /// What is left of the fragment that came last.
    batch: Option<RecordBatch>,
    batch_rows: usize,
    /// Rows that may still be asked for.
    left: usize,
    has_ended: bool,
    cancel: Arc<AtomicBool>,
    metrics: BaselineMetrics,
    _held: MemoryReservation,
}

impl fmt::Debug for ExternalRows {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("ExternalRows").field("schema", &self.schema).finish_non_exhaustive()
    }
}

impl Drop for ExternalRows {
    fn drop(&mut self) {
        self.cancel.store(true, Ordering::Relaxed);
    }
}

impl ExternalRows {
    /// The next rows of the fragment that is here.
    fn next_slice(&mut self) -> Option<RecordBatch> {
        let batch = self.batch.take()?;
        let rows = batch.num_rows().min(self.batch_rows).min(self.left);
        if rows == 0 {
            return None;
        }
        self.left -= rows;
        if rows < batch.num_rows() {
            self.batch = Some(batch.slice(rows, batch.num_rows() - rows));
        }
        Some(batch.slice(0, rows))
    }

    fn poll_rows(&mut self, context: &mut Context<'_>) -> Poll<Option<Result<RecordBatch>>> {
        loop {
            if let Some(rows) = self.next_slice() {
                return Poll::Ready(Some(Ok(rows)));
            }
            if self.has_ended || self.left == 0 {
                // Nobody needs the others.
                self.receiver.close();
                self.cancel.store(true, Ordering::Relaxed);
                return Poll::Ready(None);
            }
            match ready!(self.receiver.poll_recv(context)) {
                Some(Message::Rows(batch)) => self.batch = Some(batch),
                Some(Message::End) => self.has_ended = true,
                Some(Message::Failed(error)) => {
                    self.has_ended = true;
                    return Poll::Ready(Some(Err(error)));
                }
                // The thread has panicked.
                None => {
                    self.has_ended = true;
                    let text = "the thread that reads the inputs has ended without a word";
                    return Poll::Ready(Some(Err(Error::Unavailable(text.into()))));
                }
            }
        }
    }
}

impl Stream for ExternalRows {
    type Item = DataFusionResult<RecordBatch>;

    fn poll_next(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<Option<Self::Item>> {
        let poll = self.poll_rows(context).map(|rows| rows.map(|rows| rows.map_err(to_datafusion)));
        self.metrics.record_poll(poll)
    }
}

impl RecordBatchStream for ExternalRows {
    fn schema(&self) -> SchemaRef {
        Arc::clone(&self.schema)
    }
}
