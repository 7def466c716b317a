//! A run: rows in the order of their key, in the intermediate space, until they are merged.
//!
//! ```text
//!   extent   dictionary and pages of a column | those of the next | ...  | numbers of the rows in the input
//!   memory   where each page stands, its checksum; marks
//!   marks    the keys of some rows, as bytes that are ordered as keys are
//! ```
//!
//! Nothing of a run outlives the process, so its index is in memory and not in the extent. Each page is compared with its checksum
//! whenever it is read.
//!
//! Memory: 100 bytes a page, and marks of at most [`MARKS_BYTES_MAX`].

use std::ops::Range;
use std::path::Path;

use coload_ddl::{Key, Schema};
use coload_page::{Page, PageMeta, PageView, SymbolDecoder};
use coload_space::{Extent, ExtentWriter, Piece, Space};
use coload_transform::{PartitionColumn, put_key};
use coload_types::bytes::checksum;
use coload_types::{Dictionary, Error, Physical, Plain, Result, Values};

use super::keys::{Float, float};
use super::order::plain_page;
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

/// The columns of a key and what their values are compared by.
pub(super) type KeyColumns = Vec<(usize, Option<Float>)>;

/// The columns of a key.
pub(super) fn key_columns(schema: &Schema, key: &Key) -> KeyColumns {
    key.columns().iter().map(|column| (*column, float(schema, *column))).collect()
}

/// Makes floats what stands for all that are equal.
pub(super) fn canonical(plain: &mut Plain, float: Option<Float>) {
    if let (Some(float), Values::Int(values)) = (float, &mut plain.values) {
        values.iter_mut().for_each(|value| *value = float.key_of(*value));
    }
}

/// The key of a row as bytes that are ordered as keys are, of whatever run or segment.
pub(super) fn key_bytes(columns: &[Plain], row: usize) -> Vec<u8> {
    let mut bytes = Vec::new();
    put_key(columns, &vec![true; columns.len()], row, &mut bytes);
    bytes
}

/// The key of a row of a run, or its beginning.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
pub(super) struct Mark {
    pub key: Box<[u8]>,
    /// Whether it is the whole key.
    pub is_whole: bool,
    pub row: u64,
}

/// A column of a run.
#[derive(Debug)]
struct RunColumn {
    physical: Physical,
    dictionary: Option<PageMeta>,
    symbols: Vec<Vec<u8>>,
    pages: Vec<PageMeta>,
}

/// A run that is whole.
#[derive(Debug)]
pub(crate) struct Run {
    extent: Box<dyn Extent>,
    /// First row of each page, and the rows of all.
    starts: Vec<u64>,
    columns: Vec<RunColumn>,
    key: KeyColumns,
    /// The rows as numbers of the segment that they were in; `None` where they stood in order.
    numbers: Option<Vec<PageMeta>>,
    pub marks: Vec<Mark>,
    /// The keys of the first row and the last one.
    pub ends: (Vec<u8>, Vec<u8>),
}

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

    /// Writes the next column.
    ///
    /// # Errors
    /// Those of the space.
    pub fn put_column(&mut self, column: PartitionColumn, physical: Physical) -> Result<()> {
        let PartitionColumn { dictionary, symbols, pages } = column;
        self.mark(self.columns.len(), physical, (dictionary.as_ref(), &symbols, &pages))?;
        let place = match &dictionary {
            Some(dictionary) => Some(self.put(encode_dictionary(dictionary)?)?),
            None => None,
        };
        let mut metas = Vec::with_capacity(pages.len());
        for page in pages {
            let page = match page.runs {
                Some(_) => plain_page(&page)?.into_owned(),
                None => page,
            };
            metas.push(self.put(page)?);
        }
        self.columns.push(RunColumn { physical, dictionary: place, symbols, pages: metas });
        Ok(())
    }

    /// Keeps the values of the rows that are marked, if the column is one of the key.
    fn mark(
        &mut self,
        column: usize,
        physical: Physical,
        (dictionary, symbols, pages): (Option<&Dictionary>, &[Vec<u8>], &[Page]),
    ) -> Result<()> {
        let Some(place) = self.key.iter().position(|(of_key, _)| *of_key == column) else {
            return Ok(());
        };
        let mut marks = Plain::empty(physical);
        let mut marked = self.marked.iter().peekable();
        let decoders = open_symbols(symbols)?;
        for (page, ends) in pages.iter().zip(self.starts.windows(2)) {
            let mut plain = Plain::empty(physical);
            append_page(&plain_page(page)?.view()?, dictionary, &decoders, &mut plain)?;
            while let Some(row) = marked.next_if(|row| **row < ends[1]) {
                marks.push(plain.get((row - ends[0]) as usize).as_ref());
            }
        }
        canonical(&mut marks, self.key[place].1);
        self.marks[place] = Some(marks);
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
            let bytes: Vec<u8> = rows.iter().flat_map(|row| row.to_le_bytes()).collect();
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

fn open_symbols(symbols: &[Vec<u8>]) -> Result<Vec<SymbolDecoder>> {
    symbols.iter().map(|table| SymbolDecoder::open(table)).collect()
}

impl Run {
    /// Rows of the run.
    pub fn rows(&self) -> u64 {
        self.starts.last().copied().unwrap_or(0)
    }

    /// Columns of the run.
    pub fn width(&self) -> usize {
        self.columns.len()
    }

    /// Shape of a column.
    pub fn physical(&self, column: usize) -> Physical {
        self.columns[column].physical
    }

    /// The page that a row is in, or would be.
    pub fn page_of(&self, row: u64) -> usize {
        self.starts.partition_point(|start| *start <= row).saturating_sub(1)
    }

    /// First row of a page; of the one after the last, the rows.
    pub fn start(&self, page: usize) -> u64 {
        self.starts[page]
    }

    /// Bytes of some pages of a column.
    pub fn bytes(&self, column: usize, pages: Range<usize>) -> u64 {
        self.columns[column].pages[pages].iter().map(|page| page.bytes).sum()
    }

    /// Whether all of some pages of a column are codes.
    pub fn is_coded(&self, column: usize, mut pages: Range<usize>) -> bool {
        let column = &self.columns[column];
        column.dictionary.is_some() && pages.all(|page| column.pages[page].detail.is_codes())
    }

    /// Calls with a page as it was written, which may have been read with others.
    fn with_page<T>(
        &self,
        meta: &PageMeta,
        window: Option<&(u64, Piece<'_>)>,
        take: impl FnOnce(&[u8]) -> Result<T>,
    ) -> Result<T> {
        let read;
        let bytes = match window {
            Some((first, window)) => {
                let start = (meta.offset - first) as usize;
                &window[start..start + meta.bytes as usize]
            }
            None => {
                read = self.extent.read(meta.offset, meta.bytes)?;
                &*read
            }
        };
        if checksum(bytes) != meta.checksum {
            return Err(self.damaged(meta));
        }
        let taken = take(bytes)?;
        self.extent.check()?;
        Ok(taken)
    }

    fn damaged(&self, meta: &PageMeta) -> Error {
        Error::Corrupt(format!(
            "{}: a run is not what was written there ({} bytes at byte {} have another checksum); the table is as it was, and the \
             load can be run again",
            self.extent.name(),
            meta.bytes,
            meta.offset
        ))
    }

    /// The dictionary of a column.
    fn dictionary(&self, column: usize) -> Result<Option<Dictionary>> {
        let RunColumn { physical, dictionary, .. } = &self.columns[column];
        let Some(meta) = dictionary else { return Ok(None) };
        let mut plain = Plain::empty(*physical);
        self.with_page(meta, None, |bytes| {
            append_page(&PageView::open(bytes, meta)?, None, &[], &mut plain)
        })?;
        Dictionary::new(plain.values).map(Some)
    }

    /// Opens some pages of a column, and its dictionary.
    ///
    /// # Errors
    /// `Corrupt` when that is not what was written; those of the space.
    pub fn open_column(&self, column: usize, pages: Range<usize>) -> Result<OpenColumn<'_>> {
        let (dictionary, symbols) = (self.dictionary(column)?, &self.columns[column].symbols);
        let metas = &self.columns[column].pages[pages];
        let window = match (metas.first(), metas.last()) {
            (Some(first), Some(last)) => {
                let bytes = last.offset + last.bytes - first.offset;
                self.extent.read_many(first.offset, bytes)?.map(|piece| (first.offset, piece))
            }
            _ => None,
        };
        Ok(OpenColumn { run: self, column, dictionary, decoders: open_symbols(symbols)?, window })
    }

    /// Opens some pages of the columns of the key.
    ///
    /// # Errors
    /// As [`Self::open_column`].
    pub fn open_key(&self, pages: Range<usize>) -> Result<OpenKey<'_>> {
        let column = |(column, float): &(usize, Option<Float>)| {
            Ok((self.open_column(*column, pages.clone())?, *float))
        };
        Ok(OpenKey { columns: self.key.iter().map(column).collect::<Result<_>>()? })
    }

    /// Which rows of their segment the rows of some pages were.
    ///
    /// # Errors
    /// `Corrupt` when that is not what was written.
    pub fn numbers(&self, pages: Range<usize>) -> Result<Vec<u32>> {
        let Some(metas) = &self.numbers else {
            let rows = self.starts[pages.start]..self.starts[pages.end];
            return Ok(rows.map(|row| row as u32).collect());
        };
        let mut numbers = Vec::new();
        for meta in &metas[pages] {
            self.with_page(meta, None, |bytes| {
                let number = |bytes: &[u8; 4]| u32::from_le_bytes(*bytes);
                numbers.extend(bytes.as_chunks().0.iter().map(number));
                Ok(())
            })?;
        }
        Ok(numbers)
    }
}

/// Pages of a column of a run, to be decoded.
pub(super) struct OpenColumn<'a> {
    run: &'a Run,
    column: usize,
    /// The values of codes.
    pub dictionary: Option<Dictionary>,
    decoders: Vec<SymbolDecoder>,
    /// The pages, if they were read at once, and where the first begins.
    window: Option<(u64, Piece<'a>)>,
}

impl OpenColumn<'_> {
    /// Appends the values of a page.
    ///
    /// # Errors
    /// `Corrupt` when it is not what was written.
    pub fn decode(&self, page: usize, out: &mut Plain) -> Result<()> {
        self.with_view(page, |view| {
            append_page(view, self.dictionary.as_ref(), &self.decoders, out)
        })
    }

    /// Calls with the view of a page.
    ///
    /// # Errors
    /// Those of the call; `Corrupt` when the page is not what was written.
    pub fn with_view(
        &self,
        page: usize,
        take: impl FnOnce(&PageView<'_>) -> Result<()>,
    ) -> Result<()> {
        let meta = &self.run.columns[self.column].pages[page];
        let read = |bytes: &[u8]| take(&PageView::open(bytes, meta)?);
        self.run.with_page(meta, self.window.as_ref(), read)
    }
}

/// Pages of the key of a run, to be decoded.
pub(super) struct OpenKey<'a> {
    columns: Vec<(OpenColumn<'a>, Option<Float>)>,
}

impl OpenKey<'_> {
    /// The keys of some of the pages, as they are sorted.
    ///
    /// # Errors
    /// `Corrupt` when a page is not what was written.
    pub fn decode(&self, pages: Range<usize>) -> Result<Vec<Plain>> {
        let column = |(open, float): &(OpenColumn<'_>, Option<Float>)| {
            let mut plain = Plain::empty(open.run.physical(open.column));
            pages.clone().try_for_each(|page| open.decode(page, &mut plain))?;
            canonical(&mut plain, *float);
            Ok(plain)
        };
        self.columns.iter().map(column).collect()
    }
}
