//! Rows of SQL statements into segments: batches are checked, cut into fragments and compressed, as
//! those of a load are.
//!
//! Memory: a partition's fragments and dictionaries, at most a share of the budget, and what is made of them while they
//! are written. It is taken from what statements may hold together; where that is used up, segments become
//! smaller.

use coload_assemble::{Assembly, ColumnBuilder};
use coload_ddl::{CheckedColumn, Schema};
use coload_page::Page;
use coload_store::merge_small_within;
use coload_store::{LoadDir, LoadKind, LoadRecord, LoadTarget, SegmentEntry, SegmentWriter};
use coload_threads::{StepClock, epoch_us, for_each_parallel};
use coload_transform::{DictionaryPolicy, PartitionColumn, Symbols, dictionary_limit, encoders};
use coload_types::{Column, Error, Result};
use datafusion::arrow::record_batch::RecordBatch;
use datafusion::error::DataFusionError;
use datafusion::execution::memory_pool::{MemoryConsumer, MemoryReservation};
use futures::{Stream, TryStreamExt};
use tokio::runtime::{Handle, RuntimeFlavor};

use crate::database::Database;
use crate::error::from_datafusion;
use crate::memory::sliced_bytes;
use crate::rows::ColumnRows;

/// Rows of a fragment.
const FRAGMENT_ROWS: usize = 1 << 16;
/// Fragments of a segment.
const FRAGMENTS_MAX: usize = 50;
/// Values below which one thread is faster than several, which take some 100 us to start.
const PARALLEL_VALUES: usize = 1 << 17;

/// Share of a database's memory that one writing statement may hold.
const WRITER_SHARE: usize = 4;
/// Parts of what a writer may hold in which it takes the rows of a batch: there has to be room for the next.
const PARTS: usize = 4;
/// What is taken of the memory for what is held: itself and what it grows into, its dictionary, this sorted, and the pages.
const TIMES_HELD: usize = 6;

/// Held even when other statements leave no memory, so that segments do not become tiny.
const HELD_ALWAYS_BYTES: usize = 4 << 20;
/// Share of the memory that this is at most.
const HELD_ALWAYS_SHARE: usize = 256;

/// Share of the memory for merging small segments: a column of them, and what becomes of it.
const MERGE_SHARE: usize = 4;

/// Writes a stream of rows whose columns are the target's, publishes them, and merges small segments.
///
/// # Errors
/// `Invalid` when a value does not fit its column or the table changed meanwhile.
pub(crate) async fn write_rows(
    database: &Database,
    target: LoadTarget,
    kind: LoadKind,
    mut rows: impl Stream<Item = std::result::Result<RecordBatch, DataFusionError>> + Unpin,
) -> Result<u64> {
    let mut writer = RowWriter::begin(database, target)?;
    while let Some(batch) = rows.try_next().await.map_err(from_datafusion)? {
        blocking(|| writer.append(&batch))?;
    }
    blocking(|| writer.publish_and_merge(database, kind))
}

/// Runs what computes or waits for the disk. On a runtime of several threads the others go on with
/// what this one had to do.
fn blocking<T>(work: impl FnOnce() -> T) -> T {
    match Handle::try_current().map(|handle| handle.runtime_flavor()) {
        Ok(RuntimeFlavor::MultiThread) => tokio::task::block_in_place(work),
        _ => work(),
    }
}

/// Writes the rows of one statement; nothing is seen of them until [`Self::publish`].
pub(crate) struct RowWriter {
    load: LoadDir,
    table: String,
    schema: Schema,
    threads: usize,
    columns: Vec<WriterColumn>,
    /// Rows of the fragments of the segment.
    page_rows: Vec<u32>,
    bytes_max: usize,
    held_always: usize,
    reservation: MemoryReservation,
    segments: Vec<SegmentEntry>,
    started_us: i64,
}

impl RowWriter {
    /// Begins; what it holds counts as memory of the database.
    ///
    /// # Errors
    /// `Invalid` when the table does not fit the target.
    pub fn begin(database: &Database, target: LoadTarget) -> Result<Self> {
        let (schema, memory) = (target.schema.clone(), database.options().memory);
        Ok(RowWriter {
            table: target.name.clone(),
            load: database.store().begin_load(target)?,
            columns: writer_columns(&schema, memory / WRITER_SHARE),
            schema,
            threads: database.options().threads,
            page_rows: Vec::new(),
            bytes_max: memory / WRITER_SHARE / TIMES_HELD,
            held_always: HELD_ALWAYS_BYTES.min(memory / HELD_ALWAYS_SHARE),
            reservation: MemoryConsumer::new("rows to write").register(&database.memory_pool()),
            segments: Vec::new(),
            started_us: epoch_us(),
        })
    }

    /// Adds the rows of a batch whose columns are the table's, in order.
    ///
    /// # Errors
    /// `Invalid` when a value does not fit its column.
    pub fn append(&mut self, batch: &RecordBatch) -> Result<()> {
        let mut start = 0;
        let row_bytes = sliced_bytes(batch) / batch.num_rows().max(1);
        let rows_max = (self.bytes_max / PARTS / row_bytes.max(1)).max(1);
        while start < batch.num_rows() {
            let room = FRAGMENT_ROWS - self.columns.first().map_or(0, |column| column.rows.len());
            let count = room.min(batch.num_rows() - start).min(rows_max);
            let rows = batch.slice(start, count);
            self.make_room(sliced_bytes(&rows))?;
            self.for_each_column(count, |index, column| column.rows.append(rows.column(index)))?;
            start += count;
            let is_full = !self.reserve(self.held());
            if count == room || is_full {
                self.end_fragment()?;
            }
            if self.page_rows.len() >= FRAGMENTS_MAX || is_full {
                self.end_segment()?;
                self.reservation.free();
            }
        }
        Ok(())
    }

    /// Makes the rows visible and says how many there are.
    ///
    /// # Errors
    /// `Invalid` when the table was changed meanwhile, `Unavailable` when the disk fails.
    pub fn publish(mut self, kind: LoadKind) -> Result<u64> {
        self.end_fragment()?;
        self.end_segment()?;
        let mut record = LoadRecord::new(self.load.id(), kind);
        record.started_us = self.started_us;
        record.finished_us = epoch_us();
        record.rows = self.segments.iter().map(|s| s.rows).sum();
        let rows = record.rows;
        self.load.publish(self.segments, record)?;
        Ok(rows)
    }

    /// Makes the rows visible, then merges small segments of the table.
    ///
    /// # Errors
    /// As [`Self::publish`].
    pub fn publish_and_merge(self, database: &Database, kind: LoadKind) -> Result<u64> {
        let table = self.table.clone();
        let rows = self.publish(kind)?;
        merge_within(database, &table);
        Ok(rows)
    }

    /// Sees to it that rows of so many bytes fit, if need be by writing what is held.
    ///
    /// # Errors
    /// `Limit` when there is not even memory for these rows.
    fn make_room(&mut self, bytes: usize) -> Result<()> {
        if self.reserve(self.held() + bytes) {
            return Ok(());
        }
        self.end_fragment()?;
        self.end_segment()?;
        self.reservation.free();
        let needed = TIMES_HELD.saturating_mul(bytes);
        match bytes <= self.held_always {
            true => Ok(()),
            false => self.reservation.try_resize(needed).map_err(from_datafusion),
        }
    }

    /// Bytes of all rows that are not written yet.
    fn held(&self) -> usize {
        self.columns.iter().map(WriterColumn::bytes).sum()
    }

    /// Takes so much of what statements may hold together; `false` when that is too much, and what is
    /// held should be written.
    fn reserve(&mut self, bytes: usize) -> bool {
        let is_granted = self.reservation.try_resize(TIMES_HELD * bytes).is_ok();
        bytes <= self.held_always || (is_granted && bytes <= self.bytes_max)
    }

    fn end_fragment(&mut self) -> Result<()> {
        let rows = self.columns.first().map_or(0, |column| column.rows.len());
        if rows == 0 {
            return Ok(());
        }
        self.keep_rules(rows)?;
        let number = self.page_rows.len() as u32;
        self.for_each_column(rows, |_, column| column.end_fragment(number))?;
        self.page_rows.push(rows as u32);
        Ok(())
    }

    /// Does something for all columns; on several threads where it takes long enough.
    fn for_each_column(
        &mut self,
        rows: usize,
        work: impl Fn(usize, &mut WriterColumn) -> Result<()> + Sync,
    ) -> Result<()> {
        let threads = if rows * self.columns.len() < PARALLEL_VALUES { 1 } else { self.threads };
        for_each_parallel(threads, &mut self.columns, work)?;
        Ok(())
    }

    /// Refuses rows that break a rule of the table.
    fn keep_rules(&self, rows: usize) -> Result<()> {
        let columns: Vec<_> = self
            .columns
            .iter()
            .map(|column| Some(CheckedColumn::Plain(column.rows.plain())))
            .collect();
        for check in self.schema.checks() {
            let Some(row) = check.broken(&columns, rows).first().copied() else { continue };
            let shown = |column: &usize| {
                let Column { name, data_type, .. } = &self.schema.columns()[*column];
                let value = self.columns[*column].rows.plain().get(row as usize);
                let value = value.map_or("NULL".to_owned(), |value| value.display(*data_type));
                format!("{name} is {}", shorten(&value))
            };
            let values: Vec<String> = check.columns().iter().map(shown).collect();
            return Err(Error::Invalid(format!(
                "a row breaks {}: {}",
                check.sql(),
                values.join(", ")
            )));
        }
        Ok(())
    }

    fn end_segment(&mut self) -> Result<()> {
        if self.page_rows.is_empty() {
            return Ok(());
        }
        let number = self.segments.len() as u32;
        let page_rows = std::mem::take(&mut self.page_rows);
        let rows = page_rows.iter().map(|rows| *rows as usize).sum::<usize>();
        let threads = if rows * self.columns.len() < PARALLEL_VALUES { 1 } else { self.threads };
        let assembled =
            for_each_parallel(threads, &mut self.columns, |_, column| column.end_segment())?;
        let writer = SegmentWriter::create(&self.load.segment_path(number))?;
        let mut finished = Vec::with_capacity(assembled.len());
        for (column, assembled) in self.schema.columns().iter().zip(assembled) {
            finished.push(writer.write_column(assembled, column.data_type.physical())?);
        }
        let summary = writer.finish(finished, page_rows)?;
        self.segments.push(summary.entry(self.load.id(), number));
        Ok(())
    }
}

/// Columns without rows, whose dictionaries and symbols share so much memory.
fn writer_columns(schema: &Schema, memory: usize) -> Vec<WriterColumn> {
    let (limit, encoders) = (dictionary_limit(memory, schema.len()), encoders(memory));
    let column = |(index, column): (usize, &Column)| {
        let symbols = if index < encoders { Symbols::Train } else { Symbols::Omit };
        let physical = column.data_type.physical();
        let assembly = Assembly { physical, policy: DictionaryPolicy::Auto, limit, symbols };
        let rows = ColumnRows::new(column);
        WriterColumn { rows, assembly, builder: None, pages: Vec::new(), page_bytes: 0 }
    };
    schema.columns().iter().enumerate().map(column).collect()
}

/// A column of a writer: rows of the fragment that is filled, and the fragments before of the segment.
struct WriterColumn {
    rows: ColumnRows,
    assembly: Assembly,
    builder: Option<ColumnBuilder>,
    /// Pages that are final.
    pages: Vec<(u32, Page)>,
    page_bytes: usize,
}

impl WriterColumn {
    fn bytes(&self) -> usize {
        let kept = self.builder.as_ref().map_or(0, ColumnBuilder::values_bytes);
        self.rows.bytes() + kept + self.page_bytes
    }

    fn end_fragment(&mut self, number: u32) -> Result<()> {
        let builder = self.builder.get_or_insert_with(|| ColumnBuilder::new(self.assembly));
        let taken = builder.take_values(number, self.rows.take())?;
        self.page_bytes += taken.pages.iter().map(|(_, page)| page.bytes.len()).sum::<usize>();
        self.pages.extend(taken.pages);
        Ok(())
    }

    fn end_segment(&mut self) -> Result<PartitionColumn> {
        self.page_bytes = 0;
        let builder = self.builder.take().unwrap_or_else(|| ColumnBuilder::new(self.assembly));
        builder.finish_with(std::mem::take(&mut self.pages), &StepClock::default())
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

/// The error for a value that breaks its column's declaration.
pub(crate) fn bad_value(column: &Column, value: &str, why: &str) -> Error {
    let shown = shorten(value);
    Error::Invalid(format!("{shown:?} is not {} (column {}): {why}", column.data_type, column.name))
}

/// The start of a value, for messages.
fn shorten(value: &str) -> String {
    const SHOWN_MAX: usize = 60;
    let mut shown: String = value.chars().take(SHOWN_MAX).collect();
    if shown.len() < value.len() {
        shown.push_str("...");
    }
    shown
}
