//! Writes a run: its columns one after the other, and what its index is made of.

use std::path::Path;

use coload_ddl::{Key, Schema};
use coload_page::{Page, PageMeta};
use coload_space::{ExtentWriter, Space};
use coload_transform::PartitionColumn;
use coload_types::bytes::checksum;
use coload_types::{Dictionary, Error, Physical, Plain, Result};

use super::given::plain_page;
use super::run::{
    KeyColumns, Mark, Run, RunColumn, canonical, key_bytes, key_columns, open_symbols,
};
use crate::segment_writer::encode_dictionary;
use crate::{append_page, failpoints};

/// Most rows of a page: of the pages in which a range begins and ends the other rows are decoded in vain.
pub(super) const RUN_PAGE_ROWS_MAX: u32 = 1 << 13;
/// Marks of a page: keys that are looked for are found within a quarter of one.
const MARKS_OF_PAGE: u32 = 4;
/// Longest mark; of longer keys it is the beginning.
const MARK_BYTES_MAX: usize = 8 << 10;
/// Bytes of the marks of a run; beyond it every second goes.
const MARKS_BYTES_MAX: usize = 4 << 20;

/// A run that is written.
pub(crate) struct RunWriter {
    space: String,
    extent: Box<dyn ExtentWriter>,
    end: u64,
    columns: Vec<RunColumn>,
    key: KeyColumns,
    starts: Vec<u64>,
    numbers: Option<Vec<PageMeta>>,
    /// Rows that are marked.
    marked: Vec<u64>,
    /// Their keys, column by column.
    marks: Vec<Option<Plain>>,
}

impl RunWriter {
    /// Makes a run with pages of so many rows.
    ///
    /// # Errors
    /// Those of the space.
    pub fn create(
        space: &dyn Space,
        (schema, key): (&Schema, &Key),
        page_rows: &[u32],
    ) -> Result<Self> {
        let (mut starts, mut marked) = (vec![0], Vec::new());
        for rows in page_rows {
            let start = starts.last().copied().unwrap_or(0);
            let step = rows.div_ceil(MARKS_OF_PAGE).max(1) as usize;
            marked.extend((start..start + u64::from(*rows)).step_by(step));
            starts.push(start + u64::from(*rows));
        }
        let last = starts.last().and_then(|rows| rows.checked_sub(1));
        marked.extend(last.filter(|last| marked.last() != Some(last)));
        let key = key_columns(schema, key);
        let (marks, columns) = (vec![None; key.len()], Vec::new());
        let (extent, space) = (space.create()?, space.name().to_owned());
        Ok(RunWriter { space, extent, end: 0, columns, key, starts, numbers: None, marked, marks })
    }

    fn put(&mut self, page: Page) -> Result<PageMeta> {
        failpoints::hit("store::run::write")
            .map_err(|e| Error::io("write a run in", Path::new(&self.space), &e))?;
        let meta = page.meta(self.end);
        self.end += meta.bytes;
        self.extent.append(page.bytes)?;
        Ok(meta)
    }

    /// Writes a part of a column: of the last one, or the first part of the next, which has its dictionary and symbols.
    ///
    /// # Errors
    /// Those of the space.
    pub fn put_part(
        &mut self,
        column: usize,
        part: PartitionColumn,
        physical: Physical,
    ) -> Result<()> {
        let PartitionColumn { dictionary, symbols, pages } = part;
        if column == self.columns.len() {
            let place = dictionary.as_ref().map(encode_dictionary).transpose()?;
            let place = place.map(|page| self.put(page)).transpose()?;
            self.columns.push(RunColumn {
                physical,
                dictionary: place,
                symbols,
                pages: Vec::new(),
            });
        }
        self.mark(column, dictionary.as_ref(), &pages)?;
        for page in pages {
            let page = match page.runs {
                Some(_) => plain_page(&page)?.into_owned(),
                None => page,
            };
            let meta = self.put(page)?;
            self.columns[column].pages.push(meta);
        }
        Ok(())
    }

    /// Keeps the values of the rows of pages that are marked, if the column is one of the key.
    fn mark(
        &mut self,
        column: usize,
        dictionary: Option<&Dictionary>,
        pages: &[Page],
    ) -> Result<()> {
        let Some(place) = self.key.iter().position(|(of_key, _)| *of_key == column) else {
            return Ok(());
        };
        let RunColumn { physical, symbols, pages: before, .. } = &self.columns[column];
        let marks = self.marks[place].get_or_insert_with(|| Plain::empty(*physical));
        let mut marked = self.marked[marks.len()..].iter().peekable();
        let decoders = open_symbols(symbols)?;
        for (page, ends) in pages.iter().zip(self.starts[before.len()..].windows(2)) {
            let mut plain = Plain::empty(*physical);
            append_page(&plain_page(page)?.view()?, dictionary, &decoders, &mut plain)?;
            canonical(&mut plain, self.key[place].1);
            while let Some(row) = marked.next_if(|row| **row < ends[1]) {
                marks.push(plain.get((row - ends[0]) as usize).as_ref());
            }
        }
        Ok(())
    }

    /// Writes which rows of their segment the rows were.
    ///
    /// # Errors
    /// Those of the space.
    pub fn put_numbers(&mut self, rows: &[u32]) -> Result<()> {
        let any = self.columns.iter().find_map(|column| column.pages.first().cloned());
        let Some(any) = any else { return Ok(()) };
        let mut numbers = Vec::with_capacity(self.starts.len());
        for ends in self.starts.clone().windows(2) {
            let rows = &rows[ends[0] as usize..ends[1] as usize];
            let mut bytes = vec![0; size_of_val(rows)];
            let (places, _) = bytes.as_chunks_mut();
            places.iter_mut().zip(rows).for_each(|(place, row)| *place = row.to_le_bytes());
            let (offset, checksum) = (self.end, checksum(&bytes));
            numbers.push(PageMeta { offset, bytes: bytes.len() as u64, checksum, ..any.clone() });
            self.end += bytes.len() as u64;
            self.extent.append(bytes)?;
        }
        self.numbers = Some(numbers);
        Ok(())
    }

    /// Ends the run, of which all columns were written.
    ///
    /// # Errors
    /// Those of the space.
    pub fn finish(self) -> Result<Run> {
        let RunWriter { extent, columns, key, starts, numbers, marked, marks, .. } = self;
        let marks: Option<Vec<Plain>> = marks.into_iter().collect();
        let marks = marks.ok_or_else(|| Error::Corrupt("a run without its key".into()))?;
        let last = marked.len().saturating_sub(1);
        let ends = match marked.is_empty() {
            true => (Vec::new(), Vec::new()),
            false => (key_bytes(&marks, 0), key_bytes(&marks, last)),
        };
        let mark = |(place, row): (usize, &u64)| {
            let mut key = key_bytes(&marks, place);
            let is_whole = key.len() <= MARK_BYTES_MAX;
            key.truncate(MARK_BYTES_MAX);
            Mark { key: key.into(), is_whole, row: *row }
        };
        let mut marks: Vec<Mark> = marked.iter().enumerate().map(mark).collect();
        while marks.len() > 1 && marks.iter().map(|m| m.key.len()).sum::<usize>() > MARKS_BYTES_MAX
        {
            let mut number = 0;
            marks.retain(|_| {
                number += 1;
                number % 2 == 1
            });
        }
        Ok(Run { extent: extent.finish()?, starts, columns, key, numbers, marks, ends })
    }
}
