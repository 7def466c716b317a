//! Rows of statements and of clients into a table of a cluster: this node is a client of its leaves, as `coload load` is.
//!
//! ```text
//!   stream of batches --two wait--> the input of a load --> pipeline --> routed to leaves --> one version of the map
//! ```
//!
//! Each statement is a load whose input comes once. One that fails, or whose node ends, is given up: none of its rows is
//! ever seen. A table that is made with rows is seen from the version of the map that commits them.
//!
//! Memory: a share of what statements may hold; a small one where the rows are few.

use std::collections::VecDeque;
use std::sync::Arc;

use coload_ddl::Schema;
use coload_load::{ArrowRows, Destination, InputForm, Leaves, Load, LoadReport, LoadRequest};
use coload_receive::Member;
use coload_source::Dialect;
use coload_store::LoadMode;
use coload_types::{Error, Result};
use datafusion::arrow::datatypes::{Field, Schema as ArrowSchema, SchemaRef};
use datafusion::arrow::record_batch::{RecordBatch, RecordBatchOptions};
use datafusion::error::DataFusionError;
use datafusion::execution::memory_pool::{MemoryConsumer, MemoryReservation};
use futures::{Stream, TryStreamExt};
use tokio::sync::mpsc::{Receiver, Sender, channel};

use super::{Cluster, refuse, shard_by};
use crate::database::Database;
use crate::error::from_datafusion;
use crate::external::{hold, run_load_into};
use crate::memory::sliced_bytes;
use crate::rules::convert;
use crate::types::arrow_type;
use crate::write::RowTarget;

/// Batches between who makes the rows and who loads them.
const BATCHES_WAITING: usize = 2;
/// Bytes of rows up to which a load of them takes little memory.
const FEW_BYTES: usize = 1 << 20;
/// What such a load takes, and what of the memory of statements at most.
const FEW_MEMORY: usize = 32 << 20;
const FEW_MEMORY_SHARE: usize = 16;

/// The table of a cluster as the destination of a load that this node was asked for.
pub(crate) struct IntoLeaves {
    member: Arc<Member>,
    mode: LoadMode,
}

impl IntoLeaves {
    /// Finds the leaves, and makes the table if it is to be made.
    fn leaves(&self, request: &LoadRequest) -> Result<Leaves> {
        match self.mode {
            LoadMode::Append => self.member.leaves_of(&request.table),
            LoadMode::Create => {
                let by = shard_by(&request.schema, None)?;
                self.member.make_table(&request.table, &request.schema, &by)
            }
            LoadMode::Replace => Err(refuse("to replace a table by its new rows")),
        }
    }
}

impl Destination for IntoLeaves {
    fn take(&self, load: Load<'_>) -> Result<LoadReport> {
        let leaves = self.leaves(load.request)?;
        // A table that is made is there for its leaves.
        let request = LoadRequest { mode: LoadMode::Append, ..load.request.clone() };
        let taken = leaves.take(Load { request: &request, ..load });
        if self.mode == LoadMode::Create && taken.is_err() {
            // What was committed, whatever the error says, is no longer being made.
            let _ = self.member.drop_unmade(leaves.table);
        }
        taken
    }
}

impl Cluster {
    /// Where a load into a table goes.
    pub(crate) fn leaves_for(&self, mode: LoadMode) -> IntoLeaves {
        IntoLeaves { member: Arc::clone(self.member()), mode }
    }
}

/// Adds a stream of rows whose columns are the target's, all or none; says how many.
///
/// # Errors
/// Those of the rows, and of a load.
pub(crate) async fn add_rows(
    database: &Database,
    target: RowTarget,
    rows: impl Stream<Item = std::result::Result<RecordBatch, DataFusionError>> + Unpin,
) -> Result<u64> {
    add_rows_to(database, None, target, rows).await
}

/// The same, to leaves that are known, if they are.
///
/// # Errors
/// As [`add_rows`].
pub(crate) async fn add_rows_to(
    database: &Database,
    into: Option<Leaves>,
    target: RowTarget,
    mut rows: impl Stream<Item = std::result::Result<RecordBatch, DataFusionError>> + Unpin,
) -> Result<u64> {
    let RowTarget { load: target, on_conflict } = target;
    let wanted = wanted(&target.schema);
    let (mut first, mut bytes, mut ended) = (VecDeque::new(), 0, false);
    while !ended && bytes <= FEW_BYTES {
        match rows.try_next().await.map_err(from_datafusion)? {
            Some(batch) => {
                bytes += sliced_bytes(&batch);
                first.push_back(as_table(&batch, &target.schema, &wanted)?);
            }
            None => ended = true,
        }
    }
    let held = hold_for(database, ended)?;
    let (sender, receiver) = channel(BATCHES_WAITING);
    let (name, schema) = (target.name.clone(), target.schema.clone());
    let input = Came { first, receiver: (!ended).then_some(receiver) };
    let arrow = Arc::clone(&wanted);
    let request = move || {
        let rows = ArrowRows::new("the statement", arrow, Box::new(input))?;
        let inputs = vec![rows.input(&name)];
        let mut request = LoadRequest::new(inputs, name, schema, Dialect::default());
        request.form = InputForm::Rows;
        request.source = Some(Arc::new(rows));
        (request.mode, request.on_conflict) = (target.mode, on_conflict);
        Ok(request)
    };
    let load = run_load_into(database, into, request, held);
    let feed = async {
        if ended {
            return Ok(());
        }
        let fed = feed(&mut rows, (&target.schema, &wanted), &sender).await;
        // Without an end what came is not taken for all.
        if fed.is_ok() {
            let _ = sender.send(None).await;
        }
        drop(sender);
        fed
    };
    let (loaded, fed) = tokio::join!(load, feed);
    // Why there were no more rows comes before what the load says of it.
    fed?;
    loaded
}

/// Memory for the load of a statement's rows.
fn hold_for(database: &Database, few: bool) -> Result<MemoryReservation> {
    if few {
        let held = MemoryConsumer::new("rows for leaves").register(&database.memory_pool());
        let bytes = FEW_MEMORY.min(database.options().memory / FEW_MEMORY_SHARE);
        held.try_grow(bytes).map_err(from_datafusion)?;
        return Ok(held);
    }
    hold(database).ok_or_else(|| {
        Error::Limit(
            "there is not enough memory for a load now: try again, or raise --memory of the server"
                .into(),
        )
    })
}

/// Hands the rows on until they end; a load that takes no more says itself why.
async fn feed(
    rows: &mut (impl Stream<Item = std::result::Result<RecordBatch, DataFusionError>> + Unpin),
    (schema, wanted): (&Schema, &SchemaRef),
    to: &Sender<Option<RecordBatch>>,
) -> Result<()> {
    while let Some(batch) = rows.try_next().await.map_err(from_datafusion)? {
        if to.send(Some(as_table(&batch, schema, wanted)?)).await.is_err() {
            return Ok(());
        }
    }
    Ok(())
}

/// Batches that came before the load began, and those that come while it runs.
struct Came {
    first: VecDeque<RecordBatch>,
    receiver: Option<Receiver<Option<RecordBatch>>>,
}

impl Iterator for Came {
    type Item = Result<RecordBatch>;

    fn next(&mut self) -> Option<Self::Item> {
        if let Some(batch) = self.first.pop_front() {
            return Some(Ok(batch));
        }
        match self.receiver.as_mut()?.blocking_recv() {
            Some(Some(batch)) => Some(Ok(batch)),
            Some(None) => {
                self.receiver = None;
                None
            }
            None => {
                self.receiver = None;
                Some(Err(Error::Unavailable("the statement ended before its last row".into())))
            }
        }
    }
}

/// Fields of batches that have a table's columns; that a column must not be NULL is said with the row.
fn wanted(schema: &Schema) -> SchemaRef {
    let field = |c: &coload_types::Column| Field::new(&c.name, arrow_type(c.data_type), true);
    Arc::new(ArrowSchema::new(schema.columns().iter().map(field).collect::<Vec<_>>()))
}

/// Rows in the types of the table, as an INSERT into a store makes them.
fn as_table(batch: &RecordBatch, schema: &Schema, wanted: &SchemaRef) -> Result<RecordBatch> {
    let columns = batch.columns().iter().zip(schema.columns()).zip(wanted.fields());
    let columns = columns.map(|((array, column), field)| {
        if array.data_type() == field.data_type() {
            return Ok(Arc::clone(array));
        }
        convert(array, field.data_type()).map_err(|e| {
            Error::Invalid(format!("column {} is {}: {e}", column.name, column.data_type))
        })
    });
    let columns = columns.collect::<Result<Vec<_>>>()?;
    let options = RecordBatchOptions::new().with_row_count(Some(batch.num_rows()));
    RecordBatch::try_new_with_options(Arc::clone(wanted), columns, &options)
        .map_err(|e| Error::Invalid(e.to_string()))
}
