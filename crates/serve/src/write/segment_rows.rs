//! Rows that become segments: all columns at once, on several threads.
//!
//! ```text
//!   batches -> rows of a fragment, by column -> rules -> codes that wait, and final pages that are written
//!   50 fragments, or no more memory          -> dictionaries and their codes, indexes, footer
//! ```
//!
//! Segments depend on the rows and on how they were divided, and not on the threads: pages are written in the order of
//! fragments and columns.

use std::cmp::Reverse;
use std::sync::Arc;

use coload_ddl::{CheckedColumn, Schema};
use coload_page::Page;
use coload_store::{LoadDir, SegmentEntry, SegmentWriter};
use coload_types::{Column, Error, Result};
use datafusion::arrow::record_batch::RecordBatch;

use super::FRAGMENT_ROWS;
use super::column::{WriterColumn, writer_columns};
use super::parallel::on_threads;

/// Fragments of a segment.
const FRAGMENTS_MAX: usize = 50;
/// Values below which one thread is faster than several, which take some 100 us to start.
pub(super) const PARALLEL_VALUES: usize = 1 << 17;
/// Final pages are written when there are so many bytes of them.
const FLUSH_BYTES: usize = 1 << 20;

/// The segment that is being filled, and those that are done.
pub(super) struct SegmentRows {
    load: LoadDir,
    schema: Schema,
    threads: usize,
    columns: Vec<WriterColumn>,
    /// Rows of the fragments of the segment.
    page_rows: Vec<u32>,
    /// The file of the segment, once something is in it.
    writer: Option<SegmentWriter>,
    segments: Vec<SegmentEntry>,
}

impl SegmentRows {
    /// No rows; dictionaries and symbols share so much memory.
    pub fn new(load: LoadDir, schema: Schema, threads: usize, memory: usize) -> Self {
        SegmentRows {
            load,
            columns: writer_columns(&schema, memory),
            schema,
            threads,
            page_rows: Vec::new(),
            writer: None,
            segments: Vec::new(),
        }
    }

    /// Number of columns of the table.
    pub fn width(&self) -> usize {
        self.columns.len()
    }

    /// Rows that are in no segment yet.
    pub fn rows(&self) -> usize {
        self.fragment_rows() + self.page_rows.iter().map(|rows| *rows as usize).sum::<usize>()
    }

    /// Bytes of what is not in a file yet.
    pub fn held_bytes(&self) -> usize {
        self.columns.iter().map(WriterColumn::bytes).sum()
    }

    /// Where the segments are, and what they are.
    pub fn into_parts(self) -> (LoadDir, Vec<SegmentEntry>) {
        (self.load, self.segments)
    }

    /// Takes rows; a fragment ends when there are enough.
    ///
    /// # Errors
    /// `Invalid` when a value does not fit its column or a row breaks a rule, `Unavailable` when the disk fails.
    pub fn take(&mut self, batches: Vec<RecordBatch>) -> Result<()> {
        let rows = batches.iter().map(RecordBatch::num_rows).sum::<usize>();
        let ends = self.fragment_rows() + rows >= FRAGMENT_ROWS;
        // Rules are about rows, so that all columns are needed before one ends.
        let ends_at_once = ends && self.schema.checks().is_empty();
        let number = self.page_rows.len() as u32;
        let end_rows = (self.fragment_rows() + rows) as u32;
        let batches = Arc::new(batches);
        self.for_each_column(rows, move |index, column| {
            batches.iter().try_for_each(|batch| column.rows.append(batch.column(index)))?;
            if ends_at_once { column.end_fragment(number) } else { Ok(()) }
        })?;
        match ends {
            true if ends_at_once => self.page_rows.push(end_rows),
            true => self.end_fragment()?,
            false => return Ok(()),
        }
        self.flush(FLUSH_BYTES)?;
        if self.page_rows.len() >= FRAGMENTS_MAX { self.end_segment() } else { Ok(()) }
    }

    /// Has the rows so far take so many bytes at most: the fragment ends, and its final pages are written; if that is not enough, the segment
    /// ends too.
    ///
    /// # Errors
    /// As [`Self::take`].
    pub fn shrink(&mut self, bytes_max: usize) -> Result<()> {
        self.end_fragment()?;
        self.flush(1)?;
        match self.held_bytes() > bytes_max || self.page_rows.len() >= FRAGMENTS_MAX {
            true => self.end_segment(),
            false => Ok(()),
        }
    }

    /// Makes a segment of the rows so far, if there are any.
    ///
    /// # Errors
    /// As [`Self::take`].
    pub fn end_segment(&mut self) -> Result<()> {
        self.end_fragment()?;
        if self.page_rows.is_empty() {
            return Ok(());
        }
        let assembled = self.for_each_column(self.rows(), |_, column| column.end_segment())?;
        let number = self.segments.len() as u32;
        let writer = self.take_writer()?;
        let mut finished = Vec::with_capacity(assembled.len());
        for (column, assembled) in self.columns.iter_mut().zip(assembled) {
            finished.push(column.write(assembled, &writer)?);
        }
        let summary = writer.finish(finished, std::mem::take(&mut self.page_rows))?;
        self.segments.push(summary.entry(self.load.id(), number));
        Ok(())
    }

    /// Rows of the fragment that is being filled.
    fn fragment_rows(&self) -> usize {
        self.columns.first().map_or(0, |column| column.rows.len())
    }

    fn end_fragment(&mut self) -> Result<()> {
        let rows = self.fragment_rows();
        if rows == 0 {
            return Ok(());
        }
        self.keep_rules(rows)?;
        let number = self.page_rows.len() as u32;
        self.for_each_column(rows, move |_, column| column.end_fragment(number))?;
        self.page_rows.push(rows as u32);
        Ok(())
    }

    /// Does something for all columns and gives what came of each, in their order; on several threads where it takes long
    /// enough, those that take longest first. After an error there are no columns left.
    fn for_each_column<R: Send + 'static>(
        &mut self,
        rows: usize,
        work: impl Fn(usize, &mut WriterColumn) -> Result<R> + Send + Sync + 'static,
    ) -> Result<Vec<R>> {
        let threads = if rows * self.columns.len() < PARALLEL_VALUES { 1 } else { self.threads };
        let mut columns: Vec<(usize, WriterColumn)> =
            std::mem::take(&mut self.columns).into_iter().enumerate().collect();
        if threads > 1 {
            columns.sort_by_key(|(_, column)| Reverse(column.weight()));
        }
        let mut done = on_threads(threads, columns, move |(index, column)| work(*index, column))?;
        done.sort_by_key(|((index, _), _)| *index);
        let (columns, results) =
            done.into_iter().map(|((_, column), result)| (column, result)).unzip();
        self.columns = columns;
        Ok(results)
    }

    /// Writes final pages, if there are so many bytes of them.
    fn flush(&mut self, bytes_min: usize) -> Result<()> {
        if self.columns.iter().map(WriterColumn::pending_bytes).sum::<usize>() < bytes_min {
            return Ok(());
        }
        let writer = self.take_writer()?;
        let (mut of, mut pages): (Vec<Vec<u32>>, Vec<Page>) = (Vec::new(), Vec::new());
        for column in &mut self.columns {
            let (fragments, own) = column.take_pending();
            of.push(fragments);
            pages.extend(own);
        }
        let mut metas = writer.write_pages(writer.reserve(&pages), &pages)?.into_iter();
        for (column, fragments) in self.columns.iter_mut().zip(of) {
            let own = metas.by_ref().take(fragments.len());
            column.note_written(fragments, own);
        }
        self.writer = Some(writer);
        Ok(())
    }

    /// The file of the segment, which is made if there is none.
    fn take_writer(&mut self) -> Result<SegmentWriter> {
        match self.writer.take() {
            Some(writer) => Ok(writer),
            None => self.load.segment_writer(self.segments.len() as u32, &self.schema),
        }
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
