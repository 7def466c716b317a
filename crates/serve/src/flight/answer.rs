//! The rows of a statement on their way out.
//!
//! The statement runs on the database's threads and waits when the client does not read. A client that
//! goes away ends it, and so does one that cancels it.

use std::sync::Arc;
use std::time::Instant;

use arrow_flight::FlightData;
use arrow_flight::encode::FlightDataEncoderBuilder;
use arrow_flight::error::FlightError;
use coload_format::Result;
use datafusion::arrow::datatypes::SchemaRef;
use datafusion::arrow::record_batch::RecordBatch;
use futures::stream::BoxStream;
use futures::{Stream, StreamExt, TryStreamExt};
use tokio::sync::{OwnedSemaphorePermit, mpsc};
use tonic::Status;

use super::metrics::{Ended, Metrics};
use super::running::Place;
use super::status::{cancelled, status};
use super::wire_types::{wire_batches, wire_schema};
use crate::database::Database;
use crate::statement::Planned;

/// Batches between a statement and the network.
const BATCHES_WAITING_MAX: usize = 4;

/// What comes from a statement. One that stops without `End` has failed, and its client must not take
/// the rows before for all of them.
enum Message {
    Rows(RecordBatch),
    End,
    Failed(Status),
}

/// A statement about to run, and what it holds while it does.
pub(crate) struct Running {
    pub planned: Planned,
    pub text: String,
    pub user: String,
    pub permit: OwnedSemaphorePermit,
    pub place: Place,
}

/// Runs a statement; its rows come as Flight messages.
pub(crate) fn run(
    database: &Database,
    metrics: &Arc<Metrics>,
    running: Running,
) -> BoxStream<'static, std::result::Result<FlightData, Status>> {
    let schema = wire_schema(running.planned.schema());
    let (sender, receiver) = mpsc::channel(BATCHES_WAITING_MAX);
    let (database_there, metrics, wire) =
        (database.clone(), Arc::clone(metrics), Arc::clone(&schema));
    drop(database.spawn(async move {
        let started = Instant::now();
        let counted = metrics.statement_started();
        let Running { planned, text, user, permit, mut place } = running;
        let mut rows = 0;
        let work = send_rows(&database_there, planned, &wire, &sender, &mut rows);
        let ended = tokio::select! {
            done = work => done.map(|()| Ended::Done),
            () = sender.closed() => Ok(Ended::Left),
            () = place.cancelled() => Ok(Ended::Cancelled),
        };
        metrics.statement_ended(ended.as_ref().copied(), started.elapsed(), rows);
        metrics.query_took(started.elapsed());
        log(&user, &text, &ended, started, rows);
        drop((permit, counted, place));
        let message = match ended {
            Ok(Ended::Done) => Message::End,
            Ok(Ended::Cancelled) => Message::Failed(cancelled()),
            Ok(Ended::Left) => return,
            Err(error) => Message::Failed(status(error)),
        };
        // Nobody is there to be told if this fails.
        let _ = sender.send(message).await;
    }));
    encode(schema, until_end(receiver))
}

/// One line a statement.
fn log(user: &str, text: &str, ended: &Result<Ended>, started: Instant, rows: u64) {
    let ms = started.elapsed().as_millis() as u64;
    match ended {
        Ok(Ended::Done) => tracing::info!(user, statement = text, rows, ms, "statement done"),
        Ok(Ended::Left) => {
            tracing::info!(user, statement = text, rows, ms, "statement left by its client")
        }
        Ok(Ended::Cancelled) => {
            tracing::info!(user, statement = text, rows, ms, "statement cancelled")
        }
        Err(e) => tracing::warn!(user, statement = text, rows, ms, error = %e, "statement failed"),
    }
}

async fn send_rows(
    database: &Database,
    planned: Planned,
    schema: &SchemaRef,
    sender: &mpsc::Sender<Message>,
    rows: &mut u64,
) -> Result<()> {
    let mut answer = planned.run(database).await?;
    let mut parts = Vec::new();
    while let Some(batch) = answer.next().await? {
        *rows += batch.num_rows() as u64;
        wire_batches(&batch, schema, &mut parts)?;
        for part in parts.drain(..) {
            if sender.send(Message::Rows(part)).await.is_err() {
                return Ok(());
            }
        }
    }
    Ok(())
}

fn until_end(
    receiver: mpsc::Receiver<Message>,
) -> impl Stream<Item = std::result::Result<RecordBatch, FlightError>> + Send {
    futures::stream::unfold(Some(receiver), |receiver| async move {
        let mut receiver = receiver?;
        match receiver.recv().await {
            Some(Message::Rows(batch)) => Some((Ok(batch), Some(receiver))),
            Some(Message::End) => None,
            Some(Message::Failed(status)) => Some((Err(status.into()), None)),
            None => Some((Err(Status::internal("the statement broke off").into()), None)),
        }
    })
}

/// Batches as Flight messages, the schema first.
pub(crate) fn encode(
    schema: SchemaRef,
    batches: impl Stream<Item = std::result::Result<RecordBatch, FlightError>> + Send + 'static,
) -> BoxStream<'static, std::result::Result<FlightData, Status>> {
    FlightDataEncoderBuilder::new()
        .with_schema(schema)
        .build(batches)
        .map_err(|error| match error {
            FlightError::Tonic(status) => *status,
            other => Status::internal(other.to_string()),
        })
        .boxed()
}
