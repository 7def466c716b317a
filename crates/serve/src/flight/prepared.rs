//! Prepared statements: a text, and the values bound to its parameters.

use std::sync::Arc;
use std::time::Duration;

use arrow_flight::{IpcMessage, SchemaAsIpc};
use bytes::Bytes;
use coload_types::{Error, Result};
use datafusion::arrow::datatypes::Schema as ArrowSchema;
use datafusion::arrow::ipc::writer::IpcWriteOptions;
use datafusion::arrow::record_batch::RecordBatch;
use datafusion::execution::SendableRecordBatchStream;
use datafusion::physical_plan::stream::RecordBatchStreamAdapter;

use super::held::{Held, HeldBytes};
use super::inbound::Inbound;
use super::kept::{Handle, Kept, KeptLimits, WhenFull};
use super::metadata::broken;
use crate::rights::Rights;
use crate::statement::Parameters;

/// Most prepared statements of all clients.
const PREPARED_MAX: usize = 16_384;
/// One that nobody uses for so long is forgotten.
const PREPARED_IDLE_MAX: Duration = Duration::from_secs(3600);
/// Bytes of values that wait to be used by one statement. Batches of an INSERT do not wait.
const BOUND_BYTES_MAX: usize = 16 << 20;
/// Bytes that a statement holds beside its text.
const STATEMENT_BYTES: usize = 512;

#[derive(Debug)]
struct Prepared {
    text: Arc<str>,
    bound: Arc<BoundRows>,
    /// Counts the bytes of `text`.
    _held: HeldBytes,
}

/// Values, as long as the statement has them or a run of it reads them.
#[derive(Debug, Default)]
struct BoundRows {
    batches: Vec<RecordBatch>,
    _held: Option<HeldBytes>,
}

/// Prepared statements by handle.
#[derive(Debug)]
pub(crate) struct PreparedStatements {
    kept: Kept<Prepared>,
    held: Held,
    per_user: usize,
}

/// A statement ready to be run.
#[derive(Debug, Clone)]
pub(crate) struct Bound {
    pub text: Arc<str>,
    rows: Arc<BoundRows>,
}

impl Bound {
    /// How many rows of values there are.
    pub fn rows(&self) -> usize {
        self.rows.batches.iter().map(RecordBatch::num_rows).sum()
    }

    /// The values of a statement that takes one row of them.
    ///
    /// # Errors
    /// `Invalid` when there are several rows.
    pub fn parameters(&self) -> Result<Parameters> {
        match (self.rows(), self.rows.batches.iter().find(|b| b.num_rows() > 0)) {
            (0, _) | (_, None) => Ok(Parameters::default()),
            (1, Some(batch)) => Parameters::of_row(batch, 0),
            (rows, _) => Err(Error::Invalid(format!(
                "a query takes one row of parameters, and {rows} were given"
            ))),
        }
    }

    /// All values, for an INSERT.
    pub fn stream(&self) -> SendableRecordBatchStream {
        let schema =
            self.rows.batches.first().map_or_else(|| ArrowSchema::empty().into(), |b| b.schema());
        let rows = Arc::clone(&self.rows);
        let batches = (0..rows.batches.len()).map(move |index| Ok(rows.batches[index].clone()));
        Box::pin(RecordBatchStreamAdapter::new(schema, futures::stream::iter(batches)))
    }
}

impl PreparedStatements {
    pub fn new(held: Held, per_user: usize) -> Self {
        let limits = KeptLimits {
            total: PREPARED_MAX,
            per_user,
            idle_max: PREPARED_IDLE_MAX,
            full: WhenFull::Refuse,
        };
        PreparedStatements { kept: Kept::new(limits), held, per_user }
    }

    /// Keeps a statement.
    ///
    /// # Errors
    /// `Limit` when there are too many.
    pub fn put(&self, rights: &Rights, text: &str) -> Result<Handle> {
        let mut held = self.held.of(rights.user());
        held.add(text.len() + STATEMENT_BYTES)?;
        let prepared = Prepared { text: text.into(), bound: Arc::default(), _held: held };
        self.kept.put(rights.user(), prepared)?.map_err(|_| {
            Error::Limit(format!(
                "{} prepared statements of this user (--max-prepared), or {PREPARED_MAX} of all; close some",
                self.per_user
            ))
        })
    }

    fn find<R>(
        &self,
        rights: &Rights,
        handle: &[u8],
        work: impl FnOnce(&mut Prepared) -> R,
    ) -> Result<R> {
        self.kept.with_of(rights.user(), handle, work).ok_or_else(|| {
            Error::Invalid("the prepared statement was closed, or not used for an hour".into())
        })
    }

    /// A statement with what is bound to it.
    ///
    /// # Errors
    /// `Invalid` when it is gone or somebody else's.
    pub fn get(&self, rights: &Rights, handle: &[u8]) -> Result<Bound> {
        self.find(rights, handle, |p| Bound {
            text: Arc::clone(&p.text),
            rows: Arc::clone(&p.bound),
        })
    }

    /// Binds the rows that a client sends, in place of those before.
    ///
    /// # Errors
    /// `Limit` when they are too many, and as [`Self::get`].
    pub async fn bind(&self, rights: &Rights, handle: &[u8], mut inbound: Inbound) -> Result<()> {
        self.get(rights, handle)?;
        let (mut batches, mut bytes) = (Vec::new(), 0);
        let mut held = self.held.of(rights.user());
        while let Some(batch) = inbound.next().await? {
            // A batch without bytes takes room in the list.
            let of_batch = batch.get_array_memory_size() + STATEMENT_BYTES;
            bytes += of_batch;
            if bytes > BOUND_BYTES_MAX {
                return Err(Error::Limit(format!(
                    "parameters of over {BOUND_BYTES_MAX} bytes; send rows of an INSERT as an update \
                     (executemany), or with adbc_ingest"
                )));
            }
            held.add(of_batch)?;
            batches.push(batch);
        }
        let rows = Arc::new(BoundRows { batches, _held: Some(held) });
        self.find(rights, handle, |p| p.bound = rows)
    }

    /// Forgets a statement; one that is gone already is no error.
    pub fn close(&self, rights: &Rights, handle: &[u8]) {
        drop(self.kept.take(rights.user(), handle, |_| true));
    }

    /// Forgets what nobody uses.
    pub fn sweep(&self) {
        self.kept.sweep();
    }

    /// How many there are.
    pub fn len(&self) -> usize {
        self.kept.len()
    }
}

/// A schema as a message of its own.
pub(crate) fn schema_bytes(schema: &ArrowSchema) -> Result<Bytes> {
    let options = IpcWriteOptions::default();
    let IpcMessage(bytes) =
        SchemaAsIpc::new(schema, &options).try_into().map_err(|e| broken(&e))?;
    Ok(bytes)
}
