//! A statement that runs on other threads, and whose rows are taken here as they come.
//!
//! ```text
//!   task: plan --Schema--> run --Rows--Rows--> End        channel: ROWS_AHEAD batches
//!                                                         taken by AnswerRows, ended by Canceller
//! ```
//!
//! Memory: `ROWS_AHEAD` batches and what the statement itself holds, whatever the size of the answer.

use std::fmt;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use coload_types::{Error, Result};
use datafusion::arrow::array::{ArrayRef, UInt64Array};
use datafusion::arrow::datatypes::SchemaRef;
use datafusion::arrow::record_batch::RecordBatch;
use tokio::runtime::Handle;
use tokio::sync::{Notify, mpsc};
use tokio::task::AbortHandle;

use crate::error::from_datafusion;
use crate::statement::count_schema;

/// Batches that may wait to be taken.
const ROWS_AHEAD: usize = 2;

/// What a statement says, in this order.
#[derive(Debug)]
enum Said {
    Schema(SchemaRef),
    Rows(RecordBatch),
    End,
    Failed(Error),
}

/// How somebody's waiting ended.
enum Waited {
    Said(Said),
    Cancelled,
    BrokenOff,
}

/// The way by which a statement says its answer.
#[derive(Debug, Clone)]
pub(crate) struct Teller {
    said: mpsc::Sender<Said>,
}

impl Teller {
    /// Says the columns. `None` when nobody listens any more.
    pub async fn schema(&self, schema: SchemaRef) -> Option<()> {
        self.said.send(Said::Schema(schema)).await.ok()
    }

    /// Says rows, once there is room. `None` when nobody listens any more.
    pub async fn rows(&self, rows: RecordBatch) -> Option<()> {
        self.said.send(Said::Rows(rows)).await.ok()
    }

    /// Says a number of rows, as statements do that write.
    pub async fn count(&self, rows: u64) -> Result<()> {
        let schema = count_schema();
        let column: ArrayRef = Arc::new(UInt64Array::from(vec![rows]));
        let batch = RecordBatch::try_new(Arc::clone(&schema), vec![column]);
        let batch = batch.map_err(|error| from_datafusion(error.into()))?;
        if self.schema(schema).await.is_some() {
            self.rows(batch).await;
        }
        Ok(())
    }
}

/// Ends a statement from any thread.
#[derive(Debug, Clone)]
pub struct Canceller {
    task: AbortHandle,
    cancelled: Arc<Cancelled>,
}

#[derive(Debug, Default)]
struct Cancelled {
    is_so: AtomicBool,
    told: Notify,
}

impl Canceller {
    /// Ends the statement: who waits for its rows gets an error at once. What it has published stays.
    pub fn cancel(&self) {
        self.cancelled.is_so.store(true, Ordering::Release);
        self.cancelled.told.notify_one();
        self.task.abort();
    }

    /// Whether [`Self::cancel`] was called.
    pub fn is_cancelled(&self) -> bool {
        self.cancelled.is_so.load(Ordering::Acquire)
    }
}

/// Rows of a statement, taken as they come: an iterator of record batches. Dropped, it ends the statement.
///
/// Its methods wait, so that they must not be called within a tokio runtime.
pub struct AnswerRows {
    said: mpsc::Receiver<Said>,
    /// What was said while somebody only waited for it.
    heard: Option<Said>,
    runtime: Handle,
    schema: Option<SchemaRef>,
    has_ended: bool,
    canceller: Canceller,
}

impl fmt::Debug for AnswerRows {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("AnswerRows").field("schema", &self.schema).finish_non_exhaustive()
    }
}

impl AnswerRows {
    /// Starts what says an answer on a runtime.
    pub(crate) fn start<F>(runtime: &Handle, answer: impl FnOnce(Teller) -> F) -> Self
    where
        F: Future<Output = Result<()>> + Send + 'static,
    {
        let (sender, said) = mpsc::channel(ROWS_AHEAD);
        let answer = answer(Teller { said: sender.clone() });
        let task = runtime.spawn(async move {
            let last = match answer.await {
                Ok(()) => Said::End,
                Err(error) => Said::Failed(error),
            };
            let _ = sender.send(last).await;
        });
        let canceller = Canceller { task: task.abort_handle(), cancelled: Arc::default() };
        let runtime = runtime.clone();
        AnswerRows { said, heard: None, runtime, schema: None, has_ended: false, canceller }
    }

    /// What ends the statement from another thread.
    pub fn canceller(&self) -> Canceller {
        self.canceller.clone()
    }

    /// Columns of the answer; waits until the statement has started, and one that writes is done.
    ///
    /// # Errors
    /// `Invalid` when it is not SQL, names what does not exist, or is not supported; `Unavailable` when it was
    /// cancelled; those of a server.
    pub fn schema(&mut self) -> Result<SchemaRef> {
        if let Some(schema) = &self.schema {
            return Ok(Arc::clone(schema));
        }
        match self.hear()? {
            Said::Schema(schema) => {
                self.schema = Some(Arc::clone(&schema));
                Ok(schema)
            }
            Said::Failed(error) => Err(self.ended(error)),
            Said::Rows(_) | Said::End => {
                let error = Error::Refused("internal error: rows before their columns".into());
                Err(self.ended(error))
            }
        }
    }

    /// Whether the next rows, or the end, are still being made.
    pub fn is_waiting(&self) -> bool {
        !self.has_ended && self.heard.is_none() && self.said.is_empty()
    }

    /// Waits until there is something to take, or for so long; whether there is.
    pub fn wait(&mut self, time_max: Duration) -> bool {
        if self.has_ended || self.heard.is_some() || self.canceller.is_cancelled() {
            return true;
        }
        let (said, cancelled) = (&mut self.said, &self.canceller.cancelled);
        let heard = async {
            tokio::select! {
                biased;
                () = cancelled.told.notified() => Waited::Cancelled,
                heard = said.recv() => heard.map_or(Waited::BrokenOff, Waited::Said),
            }
        };
        let _clock = self.runtime.enter();
        match futures::executor::block_on(async { tokio::time::timeout(time_max, heard).await }) {
            Err(_) => false,
            Ok(Waited::Said(said)) => {
                self.heard = Some(said);
                true
            }
            // Whoever takes the rows is told.
            Ok(Waited::Cancelled | Waited::BrokenOff) => true,
        }
    }

    /// The next rows; `None` at the end.
    ///
    /// # Errors
    /// What goes wrong while the statement runs; `Unavailable` when it was cancelled.
    pub fn next_rows(&mut self) -> Result<Option<RecordBatch>> {
        if self.has_ended {
            return Ok(None);
        }
        self.schema()?;
        match self.hear()? {
            Said::Rows(rows) => Ok(Some(rows)),
            Said::Failed(error) => Err(self.ended(error)),
            Said::Schema(_) | Said::End => {
                self.has_ended = true;
                Ok(None)
            }
        }
    }

    fn hear(&mut self) -> Result<Said> {
        if self.canceller.is_cancelled() {
            return Err(self.ended(Error::Unavailable("the statement was cancelled".into())));
        }
        if let Some(said) = self.heard.take() {
            return Ok(said);
        }
        let (said, cancelled) = (&mut self.said, &self.canceller.cancelled);
        let heard = futures::executor::block_on(async {
            tokio::select! {
                biased;
                () = cancelled.told.notified() => None,
                heard = said.recv() => heard,
            }
        });
        match heard {
            _ if self.canceller.is_cancelled() => {
                Err(self.ended(Error::Unavailable("the statement was cancelled".into())))
            }
            Some(said) => Ok(said),
            None => {
                Err(self.ended(Error::Refused("internal error: the statement broke off".into())))
            }
        }
    }

    fn ended(&mut self, error: Error) -> Error {
        self.has_ended = true;
        error
    }
}

impl Iterator for AnswerRows {
    type Item = Result<RecordBatch>;

    fn next(&mut self) -> Option<Self::Item> {
        self.next_rows().transpose()
    }
}

impl Drop for AnswerRows {
    fn drop(&mut self) {
        self.canceller.task.abort();
    }
}
