//! A column of the segment that is being filled.

use coload_assemble::{Assembly, ColumnBuilder};
use coload_ddl::Schema;
use coload_page::{Page, PageMeta};
use coload_store::{FinishedColumn, SegmentWriter};
use coload_threads::StepClock;
use coload_transform::{DictionaryPolicy, PartitionColumn, Symbols, dictionary_limit, encoders};
use coload_types::{Column, Physical, Result};

use crate::rows::ColumnRows;

/// A column: rows of the fragment that is filled, and the fragments before of the segment.
pub(super) struct WriterColumn {
    pub rows: ColumnRows,
    assembly: Assembly,
    builder: Option<ColumnBuilder>,
    /// Final pages that are not in the file yet, by fragment.
    pending: Vec<(u32, Page)>,
    /// Pages in the file.
    written: Vec<(u32, PageMeta)>,
    /// Bytes of the values of the fragment before: a measure of how long the next will take.
    weight: usize,
}

/// Columns without rows, whose dictionaries and symbols share so much memory.
pub(super) fn writer_columns(schema: &Schema, memory: usize) -> Vec<WriterColumn> {
    let (limit, encoders) = (dictionary_limit(memory, schema.len()), encoders(memory));
    let column = |(index, column): (usize, &Column)| {
        let symbols = if index < encoders { Symbols::Train } else { Symbols::Omit };
        let physical = column.data_type.physical();
        let assembly = Assembly { physical, policy: DictionaryPolicy::Auto, limit, symbols };
        WriterColumn {
            rows: ColumnRows::new(column),
            assembly,
            builder: None,
            pending: Vec::new(),
            written: Vec::new(),
            // Texts take longest, also of the first fragment.
            weight: usize::from(physical == Physical::Bytes),
        }
    };
    schema.columns().iter().enumerate().map(column).collect()
}

impl WriterColumn {
    /// Bytes that are held of it.
    pub fn bytes(&self) -> usize {
        let kept = self.builder.as_ref().map_or(0, ColumnBuilder::values_bytes);
        self.rows.bytes() + kept + self.pending_bytes()
    }

    /// Bytes of final pages that are not in the file yet.
    pub fn pending_bytes(&self) -> usize {
        self.pending.iter().map(|(_, page)| page.bytes.len()).sum()
    }

    /// Larger for columns that take longer.
    pub fn weight(&self) -> usize {
        self.weight
    }

    /// Makes a fragment of the rows, with a number in the segment.
    ///
    /// # Errors
    /// `Limit` when text is over 4 GiB.
    pub fn end_fragment(&mut self, number: u32) -> Result<()> {
        let builder = self.builder.get_or_insert_with(|| ColumnBuilder::new(self.assembly));
        let values = self.rows.take();
        self.weight = values.values.bytes();
        self.pending.extend(builder.take_values(number, values)?.pages);
        Ok(())
    }

    /// The final pages that are not in the file yet, to be written.
    pub fn take_pending(&mut self) -> (Vec<u32>, Vec<Page>) {
        std::mem::take(&mut self.pending).into_iter().unzip()
    }

    /// Notes where pages are that were written.
    pub fn note_written(&mut self, fragments: Vec<u32>, pages: impl Iterator<Item = PageMeta>) {
        self.written.extend(fragments.into_iter().zip(pages));
    }

    /// Turns what was kept of the fragments into the last pages of the column; the next fragment is the first of
    /// another segment.
    ///
    /// # Errors
    /// `Limit` when a dictionary or a page is too large.
    pub fn end_segment(&mut self) -> Result<PartitionColumn> {
        let builder = self.builder.take().unwrap_or_else(|| ColumnBuilder::new(self.assembly));
        let (numbers, mut column) = builder.finish(&StepClock::default(), None)?;
        self.pending.extend(numbers.into_iter().zip(std::mem::take(&mut column.pages)));
        self.pending.sort_by_key(|(number, _)| *number);
        Ok(column)
    }

    /// Writes what is left of the column after [`Self::end_segment`], which gave `column`.
    ///
    /// # Errors
    /// `Unavailable` when the disk is full or broken.
    pub fn write(
        &mut self,
        column: PartitionColumn,
        writer: &SegmentWriter,
    ) -> Result<FinishedColumn> {
        let PartitionColumn { dictionary, symbols, .. } = column;
        let place = dictionary.as_ref().map(|d| writer.write_dictionary(d)).transpose()?;
        let (fragments, pages) = self.take_pending();
        let metas = writer.write_pages(writer.reserve(&pages), &pages)?;
        self.note_written(fragments, metas.into_iter());
        self.written.sort_by_key(|(number, _)| *number);
        let pages = std::mem::take(&mut self.written).into_iter().map(|(_, meta)| meta).collect();
        let dictionary = dictionary.as_ref().zip(place);
        Ok(FinishedColumn::new(self.assembly.physical, dictionary, symbols, pages))
    }
}
