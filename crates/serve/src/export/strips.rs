//! Rows as strips for a file, in order.
//!
//! ```text
//!   partition 0   strip strip strip --\
//!   partition 1   strip strip ..       >-- taken in order        a plan whose partitions are in order
//!   ...                               --/
//!   one stream    batch batch .. --> a task makes a strip of each --> taken in order     any other
//! ```
//!
//! Tasks run on the threads of the statement. Memory: [`Room::strips`] strips of [`STRIP_BYTES`], and a row more each.

use std::collections::VecDeque;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use coload_types::{Error, Result};
use datafusion::arrow::record_batch::RecordBatch;
use datafusion::common::runtime::SpawnedTask;
use datafusion::execution::memory_pool::{MemoryConsumer, MemoryReservation};
use datafusion::execution::{SendableRecordBatchStream, TaskContext};
use datafusion::physical_plan::{ExecutionPlan, ExecutionPlanProperties};
use futures::TryStreamExt;
use futures::channel::mpsc::{Receiver, channel};
use futures::{SinkExt, StreamExt};

use super::CsvOptions;
use super::lines::{parts, push_lines};
use crate::database::Database;
use crate::error::from_datafusion;
use crate::memory::{sliced_bytes, taken_over};

/// Bytes of a strip: large enough for one write, small enough for a cache.
const STRIP_BYTES: usize = 512 << 10;
/// Strips for each thread at most: the text of a part of a table that a partition reads.
const STRIPS_OF_THREAD: usize = 24;
/// Tasks for each thread where each makes one strip: one runs, and one waits for it to end.
const TASKS_OF_THREAD: usize = 2;
/// Share of the memory of statements that strips may take.
const MEMORY_SHARE: usize = 16;

/// A part of the rows, for the file.
pub(super) enum Strip {
    Rows(RecordBatch),
    Lines { text: Vec<u8>, rows: usize },
}

/// What tasks make of rows.
#[derive(Clone)]
pub(super) enum Make {
    /// The rows stay as they are.
    Rows,
    Lines(Arc<Lines>),
}

/// How lines are made.
pub(super) struct Lines {
    pub options: CsvOptions,
    /// Whether no row is wanted as it is any more, for the line of names.
    pub has_names: AtomicBool,
}

impl Make {
    /// Parts of a batch, each of which makes a strip.
    fn parts(&self, batch: RecordBatch) -> Vec<RecordBatch> {
        match self {
            Make::Rows => vec![batch],
            Make::Lines(_) => parts(&batch, STRIP_BYTES),
        }
    }

    /// What becomes of a part.
    fn strip(&self, part: RecordBatch) -> Result<Strip> {
        match self {
            Make::Lines(lines) if lines.has_names.load(Ordering::Relaxed) => {
                let mut text = Vec::with_capacity(STRIP_BYTES);
                push_lines(&part, &lines.options, &mut text)?;
                Ok(Strip::Lines { text, rows: part.num_rows() })
            }
            _ => Ok(Strip::Rows(part)),
        }
    }
}

/// How many strips there may be that the file has not taken.
pub(super) struct Room {
    threads: usize,
    strips: usize,
    _held: MemoryReservation,
}

impl Room {
    /// As much as threads can use, and memory has.
    pub fn of(database: &Database) -> Self {
        let (threads, memory) = (database.options().threads, database.options().memory);
        let held = MemoryConsumer::new("what COPY writes").register(&database.memory_pool());
        let most = (memory / MEMORY_SHARE / STRIP_BYTES).min(threads * STRIPS_OF_THREAD);
        let mut strips = most.max(1);
        while strips > 1 && held.try_grow(strips * STRIP_BYTES).is_err() {
            strips /= 2;
        }
        Room { threads: threads.min(strips), strips, _held: held }
    }
}

/// The strips of all rows.
pub(super) struct Strips {
    from: From,
    make: Make,
    room: Room,
}

enum From {
    /// The next partition, and those that are read.
    Partitions {
        plan: Arc<dyn ExecutionPlan>,
        context: Arc<TaskContext>,
        next: usize,
        read: VecDeque<Partition>,
    },
    /// Rows, `None` at their end; parts of the last batch, and what tasks make of those before.
    Stream {
        rows: Option<SendableRecordBatchStream>,
        parts: VecDeque<RecordBatch>,
        made: VecDeque<SpawnedTask<Result<Strip>>>,
    },
}

/// A partition that is read by a task.
struct Partition {
    task: SpawnedTask<()>,
    strips: Receiver<Result<Strip>>,
}

impl Strips {
    /// Of a plan whose partitions are in order.
    pub fn of_partitions(
        plan: Arc<dyn ExecutionPlan>,
        context: Arc<TaskContext>,
        make: Make,
        room: Room,
    ) -> Self {
        let from = From::Partitions { plan, context, next: 0, read: VecDeque::new() };
        Strips { from, make, room }
    }

    /// The strips of rows in the order in which a stream brings them.
    pub fn of_stream(rows: SendableRecordBatchStream, make: Make, room: Room) -> Self {
        let (parts, made) = (VecDeque::new(), VecDeque::new());
        let from = From::Stream { rows: Some(rows), parts, made };
        Strips { from, make, room }
    }

    /// The next strip; `None` at the end.
    ///
    /// # Errors
    /// What goes wrong with the rows.
    pub async fn next(&mut self) -> Result<Option<Strip>> {
        match &mut self.from {
            From::Partitions { .. } => self.next_of_partitions().await,
            From::Stream { .. } => self.next_of_stream().await,
        }
    }

    async fn next_of_partitions(&mut self) -> Result<Option<Strip>> {
        let Strips { from: From::Partitions { plan, context, next, read }, make, room } = self
        else {
            return Ok(None);
        };
        loop {
            while read.len() < room.threads && *next < plan.output_partitioning().partition_count()
            {
                let rows = plan.execute(*next, Arc::clone(context)).map_err(from_datafusion)?;
                read.push_back(Partition::start(rows, make.clone(), room.strips / room.threads));
                *next += 1;
            }
            let Some(first) = read.front_mut() else { return Ok(None) };
            if let Some(strip) = first.strips.next().await {
                return strip.map(Some);
            }
            if let Some(ended) = read.pop_front() {
                ended.task.join().await.map_err(ended_early)?;
            }
        }
    }

    async fn next_of_stream(&mut self) -> Result<Option<Strip>> {
        let Strips { from: From::Stream { rows, parts, made }, make, room } = self else {
            return Ok(None);
        };
        while made.len() < room.strips.min(TASKS_OF_THREAD * room.threads) {
            if let Some(part) = parts.pop_front() {
                let make = make.clone();
                made.push_back(SpawnedTask::spawn(async move { make.strip(part) }));
            } else if let Some(stream) = rows {
                match stream.try_next().await.map_err(from_datafusion)? {
                    Some(batch) => {
                        taken_over(sliced_bytes(&batch));
                        parts.extend(make.parts(batch));
                    }
                    None => *rows = None,
                }
            } else {
                break;
            }
        }
        let Some(first) = made.pop_front() else { return Ok(None) };
        first.join().await.map_err(ended_early)?.map(Some)
    }
}

impl Partition {
    fn start(mut rows: SendableRecordBatchStream, make: Make, strips: usize) -> Self {
        // One more stands in the channel for its sender.
        let (mut send, strips) = channel(strips.saturating_sub(1));
        let task = SpawnedTask::spawn(async move {
            loop {
                let batch = match rows.try_next().await {
                    Ok(Some(batch)) => batch,
                    Ok(None) => return,
                    Err(error) => {
                        // Nobody waits for it where the statement was ended.
                        let _ = send.send(Err(from_datafusion(error))).await;
                        return;
                    }
                };
                for part in make.parts(batch) {
                    let strip = make.strip(part);
                    let is_last = strip.is_err();
                    if send.send(strip).await.is_err() || is_last {
                        return;
                    }
                }
            }
        });
        Partition { task, strips }
    }
}

fn ended_early(error: impl std::fmt::Display) -> Error {
    Error::Refused(format!("internal error: a task that wrote rows ended early: {error}"))
}
