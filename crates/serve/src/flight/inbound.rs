//! Batches that a client sends.
//!
//! What a client sends is hostile: arrays are validated, and an end that the client did not say is no
//! end, so that a connection which breaks never leaves half of the rows.

use std::panic::AssertUnwindSafe;
use std::sync::Arc;

use arrow_flight::decode::{DecodedPayload, FlightDataDecoder};
use arrow_flight::error::FlightError;
use arrow_flight::sql::server::PeekableFlightDataStream;
use coload_types::{Error, Result};
use datafusion::arrow::datatypes::SchemaRef;
use datafusion::arrow::record_batch::RecordBatch;
use datafusion::error::DataFusionError;
use datafusion::execution::SendableRecordBatchStream;
use datafusion::execution::memory_pool::{MemoryConsumer, MemoryReservation};
use datafusion::physical_plan::stream::RecordBatchStreamAdapter;
use futures::{FutureExt, StreamExt};
use tokio::sync::mpsc;

use super::{arrow_message, status};
use crate::database::Database;
use crate::error::{from_datafusion, to_datafusion};
use crate::memory::{held_bytes, taken_over};

/// Batches between the network and what uses them: one is made while the other is used.
const BATCHES_WAITING_MAX: usize = 1;

/// The batches of a `DoPut`.
pub(crate) struct Inbound {
    decoder: FlightDataDecoder,
    schema: SchemaRef,
}

impl Inbound {
    /// Reads up to the schema.
    ///
    /// # Errors
    /// `Invalid` when it is not Arrow, or ends before its schema.
    pub async fn open(messages: PeekableFlightDataStream) -> Result<Self> {
        let messages = messages.map(|message| {
            let message = message.map_err(|status| FlightError::Tonic(Box::new(status)))?;
            let checked = arrow_message::check(&message.data_header);
            checked.map_err(|error| FlightError::ExternalError(Box::new(error)))?;
            Ok(message)
        });
        let mut decoder = FlightDataDecoder::new(messages);
        loop {
            match next(&mut decoder).await? {
                Some(DecodedPayload::None) => {}
                Some(DecodedPayload::Schema(schema)) => return Ok(Inbound { decoder, schema }),
                Some(DecodedPayload::RecordBatch(_)) => {
                    return Err(Error::Invalid("the client sent rows before their schema".into()));
                }
                None => return Err(Error::Invalid("the client sent no schema".into())),
            }
        }
    }

    /// Columns of the batches.
    pub fn schema(&self) -> &SchemaRef {
        &self.schema
    }

    /// The next batch; `None` when the client said that it was the last.
    ///
    /// # Errors
    /// `Invalid` when it is none, `Unavailable` when the connection breaks.
    pub async fn next(&mut self) -> Result<Option<RecordBatch>> {
        loop {
            match next(&mut self.decoder).await? {
                Some(DecodedPayload::None) => {}
                Some(DecodedPayload::RecordBatch(batch)) => return Ok(Some(batch)),
                Some(DecodedPayload::Schema(_)) => {
                    return Err(Error::Invalid("the client sent a second schema".into()));
                }
                None => return Ok(None),
            }
        }
    }

    /// Hands the batches to `work` on the threads of a user, and waits for what comes of it.
    ///
    /// # Errors
    /// Those of `work` and of [`Self::next`].
    pub async fn feed<T, F>(
        mut self,
        database: &Database,
        user: &str,
        work: impl FnOnce(Database, SendableRecordBatchStream) -> F,
    ) -> Result<T>
    where
        T: Send + 'static,
        F: Future<Output = Result<T>> + Send + 'static,
    {
        let (sender, receiver) = mpsc::channel(BATCHES_WAITING_MAX);
        let rows = until_end(Arc::clone(&self.schema), receiver);
        let work = work(database.clone(), rows);
        let watched = database.clone();
        let done =
            database.spawn_owned_of(user, async move { watched.watch().work(work).await })?;
        let pool = database.memory_pool();
        loop {
            let item = self.next().await.and_then(|batch| {
                let reservation = MemoryConsumer::new("rows that a client sends").register(&pool);
                let bytes = batch.as_ref().map_or(0, held_bytes);
                reservation.try_grow(bytes).map_err(from_datafusion)?;
                Ok(batch.map(|batch| Held { batch, bytes, _reservation: reservation }))
            });
            let item = item.transpose();
            let is_last = !matches!(item, Some(Ok(_)));
            // One who does not take it any more has an error to tell.
            if sender.send(item).await.is_err() || is_last {
                break;
            }
        }
        done.await.map_err(|e| Error::Refused(format!("internal error: {e}")))?
    }
}

/// A batch and its bytes.
struct Held {
    batch: RecordBatch,
    bytes: usize,
    _reservation: MemoryReservation,
}

/// A stream that ends with the `None` that was sent; a channel that closes before is an error. The bytes of a
/// batch are held until the next is asked for.
fn until_end(
    schema: SchemaRef,
    receiver: mpsc::Receiver<Option<Result<Held>>>,
) -> SendableRecordBatchStream {
    let rows = futures::stream::unfold(Some((receiver, None)), |state| async move {
        let (mut receiver, before) = state?;
        drop::<Option<MemoryReservation>>(before);
        let failed =
            |error| Some((Err::<RecordBatch, DataFusionError>(to_datafusion(error)), None));
        match receiver.recv().await {
            Some(Some(Ok(Held { batch, bytes, _reservation: held }))) => {
                // The network's threads have taken it, and it is freed here.
                taken_over(bytes);
                Some((Ok(batch), Some((receiver, Some(held)))))
            }
            Some(Some(Err(error))) => failed(error),
            Some(None) => None,
            None => failed(Error::Unavailable("the client went away before the last row".into())),
        }
    });
    Box::pin(RecordBatchStreamAdapter::new(schema, rows))
}

async fn next(decoder: &mut FlightDataDecoder) -> Result<Option<DecodedPayload>> {
    // Messages were looked at, but the decoder indexes by numbers of them before it has checked all.
    let decoded = AssertUnwindSafe(decoder.next()).catch_unwind().await;
    match decoded {
        Ok(None) => Ok(None),
        Ok(Some(Ok(data))) => Ok(Some(data.payload)),
        Ok(Some(Err(FlightError::Tonic(said)))) => Err(match status::error(&said) {
            Error::Unavailable(text) => Error::Unavailable(format!("the client broke off: {text}")),
            other => other,
        }),
        Ok(Some(Err(FlightError::ExternalError(error)))) => {
            Err(error.downcast().map_or_else(|other| Error::Invalid(other.to_string()), |own| *own))
        }
        Ok(Some(Err(error))) => Err(Error::Invalid(format!("the client sent no rows: {error}"))),
        Err(_) => Err(Error::Invalid("the client sent a message that is not Arrow".into())),
    }
}
