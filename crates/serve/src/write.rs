//! Rows of SQL statements into segments: batches are checked, cut into fragments and compressed, as
//! those of a load are.
//!
//! Memory: a partition's fragments, at most [`RowWriter`]'s share of the budget, and their pages
//! while they are written.

use std::time::{SystemTime, UNIX_EPOCH};

use coload_format::{ColumnIndex, Error, Physical, Result, Schema};
use coload_store::{
    FinishedColumn, LoadDir, LoadKind, LoadRecord, LoadTarget, SegmentEntry, SegmentWriter, Store,
    column_stats,
};
use coload_transform::{
    EncodingPolicy, Fragment, PartitionColumn, compress_column, sort_temporaries,
};
use datafusion::arrow::record_batch::RecordBatch;

use crate::rows::ColumnRows;

/// Rows of a fragment.
const FRAGMENT_ROWS: usize = 1 << 16;
/// Fragments of a segment.
const FRAGMENTS_MAX: usize = 50;

/// Writes the rows of one statement; nothing is seen of them until [`Self::publish`].
pub(crate) struct RowWriter {
    load: LoadDir,
    schema: Schema,
    columns: Vec<ColumnRows>,
    fragments: Vec<Fragment>,
    fragment_bytes: usize,
    bytes_max: usize,
    segments: Vec<SegmentEntry>,
    started_us: i64,
}

impl RowWriter {
    /// Begins; holds about `memory` bytes at most.
    ///
    /// # Errors
    /// `Invalid` when the table does not fit the target.
    pub fn begin(store: &Store, target: LoadTarget, memory: usize) -> Result<Self> {
        let schema = target.schema.clone();
        Ok(RowWriter {
            load: store.begin_load(target)?,
            columns: schema.columns().iter().map(ColumnRows::new).collect(),
            schema,
            fragments: Vec::new(),
            fragment_bytes: 0,
            // Fragments, and as much again for pages being made and the batches that come.
            bytes_max: memory / 3,
            segments: Vec::new(),
            started_us: now_us(),
        })
    }

    /// Adds the rows of a batch whose columns are the table's, in order.
    ///
    /// # Errors
    /// `Invalid` when a value does not fit its column.
    pub fn append(&mut self, batch: &RecordBatch) -> Result<()> {
        let mut start = 0;
        while start < batch.num_rows() {
            let room = FRAGMENT_ROWS - self.columns.first().map_or(0, ColumnRows::len);
            let count = room.min(batch.num_rows() - start);
            let rows = batch.slice(start, count);
            for (column, array) in self.columns.iter_mut().zip(rows.columns()) {
                column.append(array)?;
            }
            start += count;
            let held: usize = self.columns.iter().map(ColumnRows::bytes).sum();
            if count == room || held + self.fragment_bytes > self.bytes_max {
                self.end_fragment();
            }
            if self.fragments.len() >= FRAGMENTS_MAX || self.fragment_bytes > self.bytes_max {
                self.end_segment()?;
            }
        }
        Ok(())
    }

    /// Makes the rows visible and says how many there are.
    ///
    /// # Errors
    /// `Invalid` when the table was changed meanwhile, `Unavailable` when the disk fails.
    pub fn publish(mut self, kind: LoadKind) -> Result<u64> {
        self.end_fragment();
        self.end_segment()?;
        let mut record = LoadRecord::new(self.load.id(), kind);
        record.started_us = self.started_us;
        record.finished_us = now_us();
        record.rows = self.segments.iter().map(|s| s.rows).sum();
        let rows = record.rows;
        self.load.publish(self.segments, record)?;
        Ok(rows)
    }

    fn end_fragment(&mut self) {
        let rows = self.columns.first().map_or(0, ColumnRows::len);
        if rows == 0 {
            return;
        }
        let columns: Vec<_> = self.columns.iter_mut().map(ColumnRows::end_fragment).collect();
        self.fragment_bytes += columns.iter().map(|c| c.bytes()).sum::<usize>();
        self.fragments.push(Fragment { rows: rows as u32, columns });
    }

    fn end_segment(&mut self) -> Result<()> {
        if self.fragments.is_empty() {
            return Ok(());
        }
        let number = self.segments.len() as u32;
        let fragments = std::mem::take(&mut self.fragments);
        self.fragment_bytes = 0;
        let page_rows = fragments.iter().map(|f| f.rows).collect();
        let mut by_column: Vec<_> = self.columns.iter().map(|_| Vec::new()).collect();
        for fragment in fragments {
            for (column, part) in by_column.iter_mut().zip(fragment.columns) {
                column.push(part);
            }
        }
        let writer = SegmentWriter::create(&self.load.segment_path(number))?;
        let mut finished = Vec::with_capacity(by_column.len());
        for (index, parts) in by_column.into_iter().enumerate() {
            let physical = self.schema.columns()[index].data_type.physical();
            let dictionaries = self.columns[index].take_dictionaries();
            let sorted = sort_temporaries(&parts, &dictionaries, physical)?;
            let policy = EncodingPolicy::Auto;
            let column = compress_column(parts, &dictionaries, sorted, None, physical, policy)?;
            finished.push(write_column(&writer, column, physical)?);
        }
        let summary = writer.finish(finished, page_rows)?;
        self.segments.push(SegmentEntry {
            file: self.load.segment_name(number),
            rows: summary.rows,
            bytes: summary.bytes,
            load: self.load.id(),
            columns: summary.columns,
        });
        Ok(())
    }
}

fn write_column(
    writer: &SegmentWriter,
    column: PartitionColumn,
    physical: Physical,
) -> Result<FinishedColumn> {
    let offset = writer.reserve(&column.pages);
    let pages = writer.write_pages(offset, &column.pages)?;
    let dictionary = column.dictionary.as_ref().map(|d| writer.write_dictionary(d)).transpose()?;
    let stats = column_stats(&pages, column.dictionary.as_ref());
    let index = ColumnIndex { dictionary, symbols: column.symbols, pages };
    Ok(FinishedColumn { physical, index, stats })
}

fn now_us() -> i64 {
    SystemTime::now().duration_since(UNIX_EPOCH).map_or(0, |d| d.as_micros() as i64)
}

/// The error for a value that breaks its column's declaration.
pub(crate) fn bad_value(column: &coload_format::Column, value: &str, why: &str) -> Error {
    const SHOWN_MAX: usize = 60;
    let mut shown: String = value.chars().take(SHOWN_MAX).collect();
    if shown.len() < value.len() {
        shown.push_str("...");
    }
    Error::Invalid(format!("{shown:?} is not {} (column {}): {why}", column.data_type, column.name))
}
