//! The rows of a statement on their way out.
//!
//! The statement runs on the database's threads and waits when the client does not read. A client that
//! goes away ends it, and so do one that cancels it, one that does not read for too long, and a limit of its own.

use std::sync::Arc;
use std::time::{Duration, Instant};

use arrow_flight::FlightData;
use arrow_flight::encode::FlightDataEncoderBuilder;
use arrow_flight::error::FlightError;
use coload_types::{Error, Result};
use datafusion::arrow::datatypes::SchemaRef;
use datafusion::arrow::record_batch::RecordBatch;
use datafusion::execution::memory_pool::MemoryConsumer;
use futures::stream::BoxStream;
use futures::{Stream, StreamExt, TryStreamExt};
use tonic::Status;

use super::limits::ServeLimits;
use super::metrics::{Ended, Metrics};
use super::outgoing::{NotSent, Outgoing, Receiver, Sender, queue};
use super::running::Place;
use super::status::{cancelled, shown, status};
use super::turns::Turn;
use super::wire_types::{wire_parts, wire_schema};
use crate::database::Database;
use crate::statement::Planned;

/// Share of the database's memory for the batches between a statement and its client.
const QUEUE_SHARE: usize = 256;
/// Bounds of these: few batches of a usual size, and one of a large one.
const QUEUE_BYTES: std::ops::RangeInclusive<usize> = 256 << 10..=8 << 20;
/// Share of the memory for one Flight message: one or two of each stream wait to be sent.
const MESSAGE_SHARE: usize = 512;
/// Bounds of these: what the encoder takes by itself is the most.
const MESSAGE_BYTES: std::ops::RangeInclusive<usize> = 128 << 10..=2 << 20;

/// A statement about to run, and what it holds while it does.
pub(crate) struct Running {
    pub planned: Planned,
    pub text: String,
    pub user: String,
    pub turn: Turn,
    pub place: Place,
}

/// Runs a statement; its rows come as Flight messages.
///
/// # Errors
/// `Unavailable` when there are no threads for it.
pub(crate) fn run(
    database: &Database,
    metrics: &Arc<Metrics>,
    limits: &ServeLimits,
    running: Running,
) -> Result<BoxStream<'static, std::result::Result<FlightData, Status>>> {
    let schema = wire_schema(running.planned.schema());
    let memory = database.options().memory;
    let receiver = rows(database, metrics, limits, running)?;
    let encoder = FlightDataEncoderBuilder::new().with_max_flight_data_size(share(
        memory,
        MESSAGE_SHARE,
        MESSAGE_BYTES,
    ));
    Ok(encode_with(encoder, schema, until_end(receiver)))
}

fn share(memory: usize, of: usize, bounds: std::ops::RangeInclusive<usize>) -> usize {
    (memory / of).clamp(*bounds.start(), *bounds.end())
}

/// Runs a statement; its rows come in [`wire_schema`].
///
/// # Errors
/// `Unavailable` when there are no threads for it.
pub(crate) fn rows(
    database: &Database,
    metrics: &Arc<Metrics>,
    limits: &ServeLimits,
    running: Running,
) -> Result<Receiver> {
    let wire = wire_schema(running.planned.schema());
    let queue_bytes = share(database.options().memory, QUEUE_SHARE, QUEUE_BYTES);
    let reservation = MemoryConsumer::new("answers to be sent").register(&database.memory_pool());
    let (sender, receiver) = queue(queue_bytes, limits.stall_time, reservation);
    let (database_there, metrics) = (database.clone(), Arc::clone(metrics));
    let limits = *limits;
    let user = running.user.clone();
    drop(database.spawn_of(&user, async move {
        let started = Instant::now();
        let counted = metrics.statement_started();
        let Running { planned, text, user, turn, mut place } = running;
        let mut sent = Sent { limits, sender: &sender, rows: 0, bytes: 0 };
        let ended = tokio::select! {
            done = sent.all(&database_there, planned, &wire) => done.map(|()| Ended::Done),
            () = sender.left() => Ok(Ended::Left),
            () = place.cancelled() => Ok(Ended::Cancelled),
            error = out_of_time(limits.statement_time) => Err(error),
        };
        let rows = sent.rows;
        metrics.statement_ended(ended.as_ref().copied(), started.elapsed(), rows);
        metrics.query_took(started.elapsed());
        log(&user, &text, &ended, started, rows);
        drop((turn, counted, place));
        let end = match ended {
            Ok(Ended::Done) => Outgoing::End,
            Ok(Ended::Cancelled) => Outgoing::Failed(cancelled()),
            Ok(Ended::Left) => return,
            Err(error) => Outgoing::Failed(status(error)),
        };
        sender.end(end).await;
    })?);
    Ok(receiver)
}

/// Done when a statement has run for too long.
pub(super) async fn out_of_time(limit: Option<Duration>) -> Error {
    let Some(limit) = limit else { return futures::future::pending().await };
    tokio::time::sleep(limit).await;
    Error::Limit(format!(
        "the statement ran for {} s and was ended (--statement-time of the server)",
        limit.as_secs_f64()
    ))
}

/// One line a statement.
fn log(user: &str, text: &str, ended: &Result<Ended>, started: Instant, rows: u64) {
    let text = &*shown(text);
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

/// What a statement has sent so far.
struct Sent<'a> {
    limits: ServeLimits,
    sender: &'a Sender,
    rows: u64,
    bytes: u64,
}

impl Sent<'_> {
    /// Runs the statement and sends its rows.
    async fn all(
        &mut self,
        database: &Database,
        planned: Planned,
        schema: &SchemaRef,
    ) -> Result<()> {
        let mut answer = planned.run(database).await?;
        while let Some(batch) = answer.next().await? {
            self.rows += batch.num_rows() as u64;
            self.check_rows()?;
            for part in wire_parts(batch, schema) {
                let part = part?;
                self.bytes += part.get_array_memory_size() as u64;
                self.check_bytes()?;
                match self.sender.rows(part).await {
                    Ok(()) => {}
                    Err(NotSent::Left) => return Ok(()),
                    Err(NotSent::Stalled) => return Err(self.stalled()),
                }
            }
        }
        Ok(())
    }

    fn check_rows(&self) -> Result<()> {
        match self.limits.answer_rows {
            Some(limit) if self.rows > limit => Err(Error::Limit(format!(
                "the answer has over {limit} rows (--max-answer-rows of the server)"
            ))),
            _ => Ok(()),
        }
    }

    fn check_bytes(&self) -> Result<()> {
        match self.limits.answer_bytes {
            Some(limit) if self.bytes > limit => Err(Error::Limit(format!(
                "the answer has over {limit} bytes (--max-answer of the server)"
            ))),
            _ => Ok(()),
        }
    }

    fn stalled(&self) -> Error {
        // Nobody may ever read the words, but the log has them.
        self.sender.give_up();
        Error::Limit(format!(
            "the client did not read its rows for {} s (--stall-time of the server)",
            self.limits.stall_time.as_secs_f64()
        ))
    }
}

fn until_end(
    receiver: Receiver,
) -> impl Stream<Item = std::result::Result<RecordBatch, FlightError>> + Send {
    futures::stream::unfold(Some(receiver), |receiver| async move {
        let mut receiver = receiver?;
        match receiver.next().await {
            Some(Outgoing::Rows(batch)) => Some((Ok(batch), Some(receiver))),
            Some(Outgoing::End) => None,
            Some(Outgoing::Failed(status)) => Some((Err(status.into()), None)),
            None => Some((Err(Status::internal("the statement broke off").into()), None)),
        }
    })
}

/// Batches as Flight messages, the schema first.
pub(crate) fn encode(
    schema: SchemaRef,
    batches: impl Stream<Item = std::result::Result<RecordBatch, FlightError>> + Send + 'static,
) -> BoxStream<'static, std::result::Result<FlightData, Status>> {
    encode_with(FlightDataEncoderBuilder::new(), schema, batches)
}

fn encode_with(
    encoder: FlightDataEncoderBuilder,
    schema: SchemaRef,
    batches: impl Stream<Item = std::result::Result<RecordBatch, FlightError>> + Send + 'static,
) -> BoxStream<'static, std::result::Result<FlightData, Status>> {
    encoder
        .with_schema(schema)
        .build(batches)
        .map_err(|error| match error {
            FlightError::Tonic(status) => *status,
            other => Status::internal(other.to_string()),
        })
        .boxed()
}
