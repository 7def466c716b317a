//! Rows of SQL statements and of clients into segments: batches are checked, cut into fragments and compressed, as
//! those of a load are.
//!
//! ```text
//!   stream of batches   -> gathered rows   -> on threads of its own: columns -> fragments -> segments
//!                          the next rows come meanwhile
//! ```
//!
//! Memory: a partition's codes and dictionaries, the rows that are gathered, and those that are being written; at most a
//! share of the budget. It is taken from what statements may hold together; where that is used up, fragments become
//! smaller first, as their pages leave the memory, and then segments.

mod column;
mod parallel;
mod segment_rows;

use coload_store::{
    Basis, Changed, Deletions, KeyCounts, LoadDir, LoadKind, LoadRecord, LoadTarget, OnConflict,
    SegmentEntry, merge_small_within,
};
use coload_threads::epoch_us;
use coload_types::{Error, Result};
use datafusion::arrow::record_batch::RecordBatch;
use datafusion::common::runtime::SpawnedTask;
use datafusion::error::DataFusionError;
use datafusion::execution::memory_pool::{MemoryConsumer, MemoryReservation};
use futures::{Stream, TryStreamExt};
use tokio::runtime::{Handle, RuntimeFlavor};

use crate::database::Database;
use crate::error::from_datafusion;
use crate::memory::{held_bytes, sliced_bytes};
use segment_rows::{PARALLEL_VALUES, SegmentRows};

pub(crate) use segment_rows::bad_value;

/// Rows from which on a fragment ends. What a client sends at once is not divided for less than the double.
const FRAGMENT_ROWS: usize = 1 << 16;

/// Share of a database's memory that one writing statement may hold.
const WRITER_SHARE: usize = 4;
/// Parts of what a writer may hold in which it takes the rows of a batch: there has to be room for the next.
const PARTS: usize = 4;
/// Parts of it that may be left of a segment whose fragment has ended: if more is left the segment ends too, for there has to be room for the
/// rows that are gathered and for those that are written.
const LEFT_SHARE: usize = 2;
/// What is taken of the memory for what is held: itself and what it grows into, its dictionary, this sorted, and the pages.
const TIMES_HELD: usize = 6;

/// Held even when other statements leave no memory, so that segments do not become tiny.
const HELD_ALWAYS_BYTES: usize = 4 << 20;
/// Share of the memory that this is at most.
const HELD_ALWAYS_SHARE: usize = 256;

/// Share of the memory for merging small segments: a column of them, and what becomes of it.
const MERGE_SHARE: usize = 4;

/// Where rows go, and what happens to those whose keys are there already.
#[derive(Debug, Clone)]
pub(crate) struct RowTarget {
    pub load: LoadTarget,
    pub on_conflict: OnConflict,
}

impl From<LoadTarget> for RowTarget {
    /// A key that is there already is an error.
    fn from(load: LoadTarget) -> Self {
        RowTarget { load, on_conflict: OnConflict::Error }
    }
}

impl RowTarget {
    /// The same for rows that come in an order that counts: of those with one key the last is added.
    pub fn in_order(mut self) -> Self {
        if self.on_conflict == OnConflict::ReplaceOnce {
            self.on_conflict = OnConflict::Replace;
        }
        self
    }
}

/// Writes a stream of rows whose columns are the target's, publishes them, and merges small segments. Says how many rows are in
/// the table; of a table of a cluster, how many went to its leaves.
///
/// # Errors
/// `Invalid` when a value does not fit its column or the table changed meanwhile.
pub(crate) async fn write_rows(
    database: &Database,
    target: RowTarget,
    kind: LoadKind,
    mut rows: impl Stream<Item = std::result::Result<RecordBatch, DataFusionError>> + Unpin,
) -> Result<u64> {
    if database.options().cluster.is_some() {
        return crate::cluster::add_rows(database, target, rows).await;
    }
    let mut writer = RowWriter::begin(database, target)?;
    while let Some(batch) = rows.try_next().await.map_err(from_datafusion)? {
        writer.append(batch).await?;
    }
    writer.publish_and_merge(database, kind).await
}

/// Deletes rows of a table, says how many there were, and merges small segments. `None` when they have changed: none is
/// deleted then.
///
/// # Errors
/// `Invalid` when the table is gone, `Unavailable` when the disk fails.
pub(crate) fn delete_rows(
    database: &Database,
    basis: Basis<'_>,
    deletions: &Deletions,
) -> Result<Option<u64>> {
    blocking(|| {
        match database.own_store("a statement that deletes rows")?.delete_rows(basis, deletions)? {
            Changed::Moved(()) => Ok(None),
            Changed::Nothing => Ok(Some(0)),
            Changed::Published(_) => {
                merge_within(database, &basis.table().name);
                Ok(Some(deletions.rows()))
            }
        }
    })
}

/// Runs what computes or waits for the disk. On a runtime of several threads the others go on with
/// what this one had to do.
fn blocking<T>(work: impl FnOnce() -> T) -> T {
    match Handle::try_current().map(|handle| handle.runtime_flavor()) {
        Ok(RuntimeFlavor::MultiThread) => tokio::task::block_in_place(work),
        _ => work(),
    }
}

/// Writes the rows of one statement; nothing is seen of them until [`Self::publish_and_merge`].
pub(crate) struct RowWriter {
    table: String,
    gathered: Gathered,
    writing: Writing,
    /// Bytes of the rows that are being written.
    written_bytes: usize,
    /// Bytes that were held besides when they were handed over.
    held_before: usize,
    bytes_max: usize,
    held_always: usize,
    reservation: MemoryReservation,
    started_us: i64,
}

/// Rows that nothing was made of.
#[derive(Default)]
struct Gathered {
    batches: Vec<RecordBatch>,
    rows: usize,
    /// Bytes of the rows.
    bytes: usize,
    /// Bytes that are free when they are dropped, which are more where batches are parts of larger ones.
    held_bytes: usize,
}

/// Rows on their way into segments.
enum Writing {
    AtRest(Box<SegmentRows>),
    Under(SpawnedTask<Result<Box<SegmentRows>>>),
    /// A task has failed.
    Failed,
}

impl RowWriter {
    /// Begins; what it holds counts as memory of the database.
    ///
    /// # Errors
    /// `Invalid` when the table does not fit the target.
    pub fn begin(database: &Database, target: RowTarget) -> Result<Self> {
        let RowTarget { load: target, on_conflict } = target;
        let memory = database.options().memory;
        let (table, schema) = (target.name.clone(), target.schema.clone());
        let mut load = database.own_store("a statement that adds rows")?.begin_load(target)?;
        load.set_on_conflict(on_conflict)?;
        let threads = database.options().threads;
        let rows = SegmentRows::new(load, schema, threads, memory / WRITER_SHARE);
        Ok(RowWriter {
            table,
            gathered: Gathered::default(),
            writing: Writing::AtRest(Box::new(rows)),
            written_bytes: 0,
            held_before: 0,
            bytes_max: memory / WRITER_SHARE / TIMES_HELD,
            held_always: HELD_ALWAYS_BYTES.min(memory / HELD_ALWAYS_SHARE),
            reservation: MemoryConsumer::new("rows to write").register(&database.memory_pool()),
            started_us: epoch_us(),
        })
    }

    /// Adds the rows of a batch whose columns are the table's, in order.
    ///
    /// # Errors
    /// `Invalid` when a value does not fit its column, which may be told with a later batch or at the end.
    pub async fn append(&mut self, batch: RecordBatch) -> Result<()> {
        let rows = batch.num_rows();
        if rows == 0 {
            return Ok(());
        }
        // A batch of one row that is larger is taken all the same, if there is memory for it.
        let bytes_max = self.bytes_max / PARTS;
        let parts =
            sliced_bytes(&batch).div_ceil(bytes_max.max(1)).max(rows.div_ceil(FRAGMENT_ROWS));
        let part_rows = rows.div_ceil(parts.max(1));
        for start in (0..rows).step_by(part_rows) {
            let part = batch.slice(start, part_rows.min(rows - start));
            self.make_room(sliced_bytes(&part)).await?;
            self.gathered.push(part);
            if self.gathered.rows >= FRAGMENT_ROWS || self.gathered.held_bytes >= bytes_max {
                self.hand_over().await?;
            }
        }
        Ok(())
    }

    /// Makes the rows visible and says how many there are, then merges small segments of the table.
    ///
    /// # Errors
    /// `Invalid` when the table was changed meanwhile, `Unavailable` when the disk fails.
    pub async fn publish_and_merge(mut self, database: &Database, kind: LoadKind) -> Result<u64> {
        let (load, segments, record) = self.finish(kind).await?;
        let rows = record.rows;
        blocking(|| {
            let shown = load.ready(segments, record)?.publish(None)?;
            merge_within(database, &self.table);
            Ok(shown.keys.map_or(rows, KeyCounts::kept))
        })
    }

    /// Makes the rows visible in the version in which others of the table are deleted, and says how many there are, then
    /// merges small segments. `None` when what the rows were made of has changed: nothing is visible then.
    ///
    /// # Errors
    /// As [`Self::publish_and_merge`].
    pub async fn publish_deleting(
        mut self,
        database: &Database,
        kind: LoadKind,
        basis: Basis<'_>,
        deletions: &Deletions,
    ) -> Result<Option<u64>> {
        let (load, segments, record) = self.finish(kind).await?;
        let rows = record.rows;
        blocking(|| match load.ready(segments, record)?.publish_deleting(basis, deletions)? {
            Changed::Moved(_) => Ok(None),
            Changed::Published(_) | Changed::Nothing => {
                merge_within(database, &basis.table().name);
                Ok(Some(rows))
            }
        })
    }

    /// Writes what is left, and makes the record of all.
    async fn finish(&mut self, kind: LoadKind) -> Result<(LoadDir, Vec<SegmentEntry>, LoadRecord)> {
        self.hand_over().await?;
        self.end_segment().await?;
        let rows = self.at_rest().await?;
        // What merges takes it too.
        self.reservation.free();
        let (load, segments) = rows.into_parts();
        let mut record = LoadRecord::new(load.id(), kind);
        record.started_us = self.started_us;
        record.finished_us = epoch_us();
        record.rows = segments.iter().map(|s| s.rows).sum();
        Ok((load, segments, record))
    }

    /// Sees to it that rows of so many bytes fit, if need be by writing what is held.
    ///
    /// # Errors
    /// `Limit` when there is not even memory for these rows.
    async fn make_room(&mut self, bytes: usize) -> Result<()> {
        if self.reserve(self.held() + bytes) {
            return Ok(());
        }
        self.hand_over().await?;
        self.shrink().await?;
        if self.reserve(self.held() + bytes) {
            return Ok(());
        }
        self.end_segment().await?;
        self.reservation.free();
        let needed = TIMES_HELD.saturating_mul(bytes);
        match bytes <= self.held_always {
            true => Ok(()),
            false => self.reservation.try_resize(needed).map_err(from_datafusion),
        }
    }

    /// Bytes of all rows that are not in a file yet.
    fn held(&self) -> usize {
        let held = match &self.writing {
            Writing::AtRest(rows) => rows.held_bytes(),
            Writing::Under(_) | Writing::Failed => self.held_before + self.written_bytes,
        };
        held + self.gathered.bytes
    }

    /// Takes so much of what statements may hold together; `false` when that is too much, and what is
    /// held should be written.
    fn reserve(&mut self, bytes: usize) -> bool {
        let is_granted = self.reservation.try_resize(TIMES_HELD * bytes).is_ok();
        bytes <= self.held_always || (is_granted && bytes <= self.bytes_max)
    }

    /// Has the gathered rows written, when those before are.
    async fn hand_over(&mut self) -> Result<()> {
        let rows = self.at_rest().await?;
        let Gathered { batches, rows: count, bytes, .. } = std::mem::take(&mut self.gathered);
        let left = match self.reserve(rows.held_bytes() + bytes) {
            true => None,
            false => Some(self.left_bytes(bytes)),
        };
        self.held_before = left.unwrap_or(rows.held_bytes());
        self.written_bytes = bytes;
        let values = if left.is_some() { usize::MAX } else { count * rows.width() };
        self.writing = start(rows, values, move |rows| {
            if let Some(left) = left {
                rows.shrink(left)?;
            }
            rows.take(batches)
        })?;
        Ok(())
    }

    /// Bytes that may be left of a segment that has to become smaller, so that there is room for so many others.
    fn left_bytes(&mut self, others: usize) -> usize {
        let left = self.bytes_max / LEFT_SHARE;
        let fits = self.reserve(left + others);
        if fits { left } else { 0 }
    }

    /// Has the rows so far take less memory, and waits for it.
    async fn shrink(&mut self) -> Result<()> {
        let rows = self.at_rest().await?;
        let left = self.left_bytes(0);
        let values = rows.rows() * rows.width();
        self.writing = start(rows, values, move |rows| rows.shrink(left))?;
        let rows = self.at_rest().await?;
        self.writing = Writing::AtRest(rows);
        Ok(())
    }

    /// Has the rows so far made a segment, and waits for it.
    async fn end_segment(&mut self) -> Result<()> {
        let rows = self.at_rest().await?;
        let values = rows.rows() * rows.width();
        self.writing = start(rows, values, SegmentRows::end_segment)?;
        let rows = self.at_rest().await?;
        self.writing = Writing::AtRest(rows);
        Ok(())
    }

    /// The rows that were handed over, when all that was to be done with them is done.
    async fn at_rest(&mut self) -> Result<Box<SegmentRows>> {
        match std::mem::replace(&mut self.writing, Writing::Failed) {
            Writing::AtRest(rows) => Ok(rows),
            Writing::Under(task) => task
                .join_unwind()
                .await
                .map_err(|e| Error::Refused(format!("internal error: {e}")))?,
            Writing::Failed => Err(Error::Refused("internal error: rows after an error".into())),
        }
    }
}

/// Does something with rows: of many values on a thread of its own, of few here.
fn start(
    mut rows: Box<SegmentRows>,
    values: usize,
    work: impl FnOnce(&mut SegmentRows) -> Result<()> + Send + 'static,
) -> Result<Writing> {
    if values >= PARALLEL_VALUES {
        let work = move || work(&mut rows).map(|()| rows);
        return Ok(Writing::Under(SpawnedTask::spawn_blocking(work)));
    }
    blocking(|| work(&mut rows))?;
    Ok(Writing::AtRest(rows))
}

impl Gathered {
    fn push(&mut self, batch: RecordBatch) {
        self.rows += batch.num_rows();
        self.bytes += sliced_bytes(&batch);
        self.held_bytes += held_bytes(&batch);
        self.batches.push(batch);
    }
}

/// Merges small segments of a table with what memory there is. Where there is none, the next statement does.
fn merge_within(database: &Database, table: &str) {
    let bytes = database.options().memory / MERGE_SHARE;
    let held = MemoryConsumer::new("segments to merge").register(&database.memory_pool());
    if held.try_grow(bytes).is_ok() {
        // The rows are published: whatever becomes of the merge, the statement has not failed. What
        // it could not read or write, the next statement that needs it says.
        let _ = merge_small_within(database.store(), table, bytes);
    }
}
