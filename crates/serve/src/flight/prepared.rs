//! Prepared statements: a text, and the values bound to its parameters.

use std::sync::Arc;
use std::time::Duration;

use arrow_flight::{IpcMessage, SchemaAsIpc};
use bytes::Bytes;
use coload_format::{Error, Result};
use datafusion::arrow::datatypes::Schema as ArrowSchema;
use datafusion::arrow::ipc::writer::IpcWriteOptions;
use datafusion::arrow::record_batch::RecordBatch;
use datafusion::execution::SendableRecordBatchStream;
use datafusion::physical_plan::stream::RecordBatchStreamAdapter;

use super::inbound::Inbound;
use super::kept::{Handle, Kept};
use super::metadata::broken;
use crate::rights::Rights;
use crate::statement::Parameters;

/// Most prepared statements of all clients.
const PREPARED_MAX: usize = 16_384;
/// One that nobody uses for so long is forgotten.
const PREPARED_IDLE_MAX: Duration = Duration::from_secs(3600);
/// Bytes of values that wait to be used by one statement. Batches of an INSERT do not wait.
const BOUND_BYTES_MAX: usize = 16 << 20;

#[derive(Debug)]
struct Prepared {
    user: Arc<str>,
    text: Arc<str>,
    bound: Arc<[RecordBatch]>,
}

/// Prepared statements by handle.
#[derive(Debug)]
pub(crate) struct PreparedStatements {
    kept: Kept<Prepared>,
}

/// A statement ready to be run.
#[derive(Debug, Clone)]
pub(crate) struct Bound {
    pub text: Arc<str>,
    batches: Arc<[RecordBatch]>,
}

impl Bound {
    /// How many rows of values there are.
    pub fn rows(&self) -> usize {
        self.batches.iter().map(RecordBatch::num_rows).sum()
    }

    /// The values of a statement that takes one row of them.
    ///
    /// # Errors
    /// `Invalid` when there are several rows.
    pub fn parameters(&self) -> Result<Parameters> {
        match (self.rows(), self.batches.iter().find(|b| b.num_rows() > 0)) {
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
            self.batches.first().map_or_else(|| ArrowSchema::empty().into(), |b| b.schema());
        let batches: Vec<_> = self.batches.iter().cloned().map(Ok).collect();
        Box::pin(RecordBatchStreamAdapter::new(schema, futures::stream::iter(batches)))
    }
}

impl PreparedStatements {
    pub fn new() -> Self {
        PreparedStatements { kept: Kept::new(PREPARED_MAX, PREPARED_IDLE_MAX) }
    }

    /// Keeps a statement.
    ///
    /// # Errors
    /// `Limit` when there are too many.
    pub fn put(&self, rights: &Rights, text: &str) -> Result<Handle> {
        let bound = Vec::new().into();
        let prepared = Prepared { user: rights.user().into(), text: text.into(), bound };
        self.kept.put(prepared)?.map_err(|_| {
            Error::Limit(format!("over {PREPARED_MAX} prepared statements; close some"))
        })
    }

    fn find<R>(
        &self,
        rights: &Rights,
        handle: &[u8],
        work: impl FnOnce(&mut Prepared) -> R,
    ) -> Result<R> {
        let found = self
            .kept
            .with(handle, |prepared| (*prepared.user == *rights.user()).then(|| work(prepared)));
        found.flatten().ok_or_else(|| {
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
            batches: Arc::clone(&p.bound),
        })
    }

    /// Binds the rows that a client sends, in place of those before.
    ///
    /// # Errors
    /// `Limit` when they are too many, and as [`Self::get`].
    pub async fn bind(&self, rights: &Rights, handle: &[u8], mut inbound: Inbound) -> Result<()> {
        self.get(rights, handle)?;
        let (mut batches, mut bytes) = (Vec::new(), 0);
        while let Some(batch) = inbound.next().await? {
            bytes += batch.get_array_memory_size();
            if bytes > BOUND_BYTES_MAX {
                return Err(Error::Limit(format!(
                    "parameters of over {BOUND_BYTES_MAX} bytes; send rows of an INSERT as an update \
                     (executemany), or with adbc_ingest"
                )));
            }
            batches.push(batch);
        }
        self.find(rights, handle, |p| p.bound = batches.into())
    }

    /// Forgets a statement; one that is gone already is no error.
    pub fn close(&self, rights: &Rights, handle: &[u8]) {
        drop(self.kept.take(handle, |p| *p.user == *rights.user()));
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
