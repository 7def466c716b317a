//! A data access layer for programs that have records and no files: rows or batches of Arrow, of any number of threads, into
//! a table of a database.
//!
//! ```text
//!   write_rows, write (any thread) -> batches, some wait -> a load: its method, connections, journal and report
//! ```
//!
//! The load begins when it is known that all rows are there, or that these are many: few rows go by the way that is best for
//! few. Memory: [`BATCHES_WAIT`] batches, and what a load takes.
//!
//! Rows can be read only once: with one that the server refuses, the load fails and says why.

mod rows;

use std::collections::VecDeque;
use std::sync::Arc;
use std::sync::mpsc::{Receiver, SyncSender, sync_channel};
use std::thread::JoinHandle;

use arrow_array::RecordBatch;
use arrow_schema::SchemaRef;
use coload_load::{ArrowRows, Hooks, LoadReport, Resources, load};
use coload_store::LoadMode;
use coload_types::{Column, Error, Result, same_name};
use coload_wire::RejectLimit;

use crate::{DatabaseLoadOptions, DatabaseTable, Origin, PlanRequest, Rows, Schema, plan_with};
use rows::{arrow_schema, batch_of};

pub use rows::Cell;

/// Batches that wait for the load; who writes more waits.
pub const BATCHES_WAIT: usize = 4;
/// Rows after which the load begins, however many come.
const ROWS_MANY: usize = 10_000;

/// How rows are written.
#[derive(Debug, Clone)]
pub struct WriterOptions {
    /// Method, connections and the rest; what is not given is chosen.
    pub database: DatabaseLoadOptions,
    /// What happens to rows that are there.
    pub mode: LoadMode,
    /// Rows that may not fit the table's types before the load fails.
    pub max_rejects: RejectLimit,
    /// What may be used.
    pub resources: Resources,
}

impl Default for WriterOptions {
    fn default() -> Self {
        WriterOptions {
            database: DatabaseLoadOptions::default(),
            mode: LoadMode::Append,
            max_rejects: RejectLimit::Count(0),
            resources: Resources::default(),
        }
    }
}

/// Writes rows into a table of a database, of any number of threads. All are there when [`Writer::finish`] returns, or none;
/// a writer that is dropped before has written nothing.
///
/// ```no_run
/// use coload::dal::{Cell, Writer, WriterOptions};
///
/// # fn main() -> coload::Result<()> {
/// let columns = coload::parse_columns("id BIGINT NOT NULL, name VARCHAR")?;
/// let url = "postgres://loader@db.example.com/shop";
/// let writer = Writer::for_rows(url, "people", &columns, WriterOptions::default())?;
/// std::thread::scope(|scope| {
///     scope.spawn(|| writer.write_rows(&[vec![Cell::Int(1), Cell::from("Ada")]]));
///     scope.spawn(|| writer.write_rows(&[vec![Cell::Int(2), Cell::Null]]));
/// });
/// let report = writer.finish()?;
/// assert_eq!(report.rows(), 2);
/// # Ok(())
/// # }
/// ```
#[derive(Debug)]
pub struct Writer {
    schema: SchemaRef,
    columns: Option<Schema>,
    sender: SyncSender<Message>,
    load: JoinHandle<Result<LoadReport>>,
}

/// What the load is told.
enum Message {
    Batch(RecordBatch),
    /// Nothing more comes, and all of it is to be there.
    End,
}

impl Writer {
    /// Opens a writer of batches with this schema. The table is made if it is not there; otherwise its columns are matched by
    /// name.
    ///
    /// # Errors
    /// `Invalid` when the URL, the name or the schema is none; what the server says is told when rows are written.
    pub fn open(url: &str, table: &str, schema: SchemaRef, options: WriterOptions) -> Result<Self> {
        Writer::begin((url, table), schema, None, options)
    }

    fn begin(
        (url, table): (&str, &str),
        schema: SchemaRef,
        columns: Option<Schema>,
        options: WriterOptions,
    ) -> Result<Self> {
        let given = columns.clone();
        let destination = DatabaseTable::new(url, table, options.database.clone())?;
        let (sender, receiver) = sync_channel(BATCHES_WAIT);
        let task = Task {
            destination,
            table: table.to_owned(),
            schema: Arc::clone(&schema),
            columns,
            options,
        };
        let thread = std::thread::Builder::new().name("coload-dal".to_owned());
        let spawned = thread.spawn(move || task.run(receiver));
        let load =
            spawned.map_err(|e| Error::Unavailable(format!("cannot start a thread: {e}")))?;
        Ok(Writer { schema, columns: given, sender, load })
    }

    /// Opens a writer of rows with these columns.
    ///
    /// # Errors
    /// As [`Writer::open`].
    pub fn for_rows(
        url: &str,
        table: &str,
        columns: &Schema,
        options: WriterOptions,
    ) -> Result<Self> {
        let schema = Arc::new(arrow_schema(columns));
        Writer::begin((url, table), schema, Some(columns.clone()), options)
    }

    /// Writes a batch; waits where the load is slower.
    ///
    /// # Errors
    /// `Invalid` when it has other columns than the writer, `Unavailable` when the load has failed: [`Writer::finish`]
    /// says why.
    pub fn write(&self, batch: RecordBatch) -> Result<()> {
        if batch.schema().fields() != self.schema.fields() {
            return Err(Error::Invalid("the batch has other columns than the writer".into()));
        }
        self.sender
            .send(Message::Batch(batch))
            .map_err(|_| Error::Unavailable("the load has failed: Writer::finish says why".into()))
    }

    /// Writes rows, of a cell for each column; many at once cost less each.
    ///
    /// # Errors
    /// `Invalid` when a cell is not of its column's type, or the writer is one of batches; as [`Writer::write`].
    pub fn write_rows(&self, rows: &[Vec<Cell>]) -> Result<()> {
        let Some(columns) = &self.columns else {
            return Err(Error::Invalid(
                "a writer of batches takes no rows: open it by Writer::for_rows".into(),
            ));
        };
        if rows.is_empty() {
            return Ok(());
        }
        self.write(batch_of(columns, Arc::clone(&self.schema), rows)?)
    }

    /// Waits until all rows are there.
    ///
    /// # Errors
    /// Those of a load; the table is then as it was.
    pub fn finish(self) -> Result<LoadReport> {
        let Writer { sender, load, .. } = self;
        // A load that has failed hears nothing, and tells it below.
        let _ = sender.send(Message::End);
        drop(sender);
        let joined = load.join();
        joined.unwrap_or_else(|_| Err(Error::Unavailable("the thread of the load panicked".into())))
    }
}

/// The load of a writer.
struct Task {
    destination: DatabaseTable,
    table: String,
    schema: SchemaRef,
    columns: Option<Schema>,
    options: WriterOptions,
}

impl Task {
    fn run(self, receiver: Receiver<Message>) -> Result<LoadReport> {
        let came = Came::wait(receiver)?;
        let (ended, counted) = (came.ended, came.rows());
        let rows = ArrowRows::new(&self.table, Arc::clone(&self.schema), Box::new(came))?;
        let rows = if ended { rows.of_rows(counted) } else { rows };
        let mut request = PlanRequest::of(Origin::Rows(Rows {
            input: rows.input(&self.table),
            source: Arc::new(rows),
        }));
        request.table = Some(self.table.clone());
        let there = self.destination.schema()?;
        request.schema = match &there {
            Some(there) => self.columns_of(there)?,
            None => self.columns.clone(),
        };
        let Some(mut plan) = plan_with(&request, |_| Ok(there.clone()))? else {
            return Err(Error::Invalid("no row was written".into()));
        };
        plan.request.mode = self.options.mode;
        plan.request.max_rejects = self.options.max_rejects;
        load(&plan.request, &self.options.resources, &Hooks::default(), &self.destination)
    }

    /// The columns of the table that have the names of those that are written, in their order. Where one is not there, the
    /// load says so.
    fn columns_of(&self, there: &Schema) -> Result<Option<Schema>> {
        let find = |name: &str| {
            let exact = there.columns().iter().find(|column| column.name == name);
            exact.or_else(|| there.columns().iter().find(|column| same_name(&column.name, name)))
        };
        let found: Option<Vec<Column>> =
            self.schema.fields().iter().map(|field| find(field.name()).cloned()).collect();
        match found {
            Some(found) => Schema::new(found).map(Some),
            None => Ok(self.columns.clone()),
        }
    }
}

/// Batches that came, and those that come.
struct Came {
    first: VecDeque<RecordBatch>,
    ended: bool,
    receiver: Receiver<Message>,
}

impl Came {
    /// Waits until all are there, or these are many.
    fn wait(receiver: Receiver<Message>) -> Result<Self> {
        let mut came = Came { first: VecDeque::new(), ended: false, receiver };
        while !came.ended && came.rows() < ROWS_MANY as u64 {
            match came.receiver.recv() {
                Ok(Message::Batch(batch)) => came.first.push_back(batch),
                Ok(Message::End) => came.ended = true,
                Err(_) => return Err(dropped()),
            }
        }
        Ok(came)
    }

    fn rows(&self) -> u64 {
        self.first.iter().map(|batch| batch.num_rows() as u64).sum()
    }
}

fn dropped() -> Error {
    Error::Unavailable("the writer was dropped before Writer::finish".into())
}

impl Iterator for Came {
    type Item = Result<RecordBatch>;

    fn next(&mut self) -> Option<Result<RecordBatch>> {
        if let Some(batch) = self.first.pop_front() {
            return Some(Ok(batch));
        }
        if self.ended {
            return None;
        }
        match self.receiver.recv() {
            Ok(Message::Batch(batch)) => Some(Ok(batch)),
            Ok(Message::End) => {
                self.ended = true;
                None
            }
            Err(_) => {
                self.ended = true;
                Some(Err(dropped()))
            }
        }
    }
}
