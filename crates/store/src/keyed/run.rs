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
//! Memory: 100 bytes a page, and marks of at most 4 MiB.

use std::ops::Range;
use std::sync::atomic::{AtomicBool, Ordering};

use coload_ddl::{Key, Schema};
use coload_page::{PageMeta, PageView, SymbolDecoder};
use coload_space::{Extent, Piece};
use coload_transform::put_key;
use coload_types::bytes::checksum;
use coload_types::{Dictionary, Error, Physical, Plain, Result, Values};

use super::keys::{Float, float};
use crate::append_page;

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
pub(super) struct RunColumn {
    pub physical: Physical,
    pub dictionary: Option<PageMeta>,
    pub symbols: Vec<Vec<u8>>,
    pub pages: Vec<PageMeta>,
}

/// A run that is whole.
#[derive(Debug)]
pub(crate) struct Run {
    pub(super) extent: Box<dyn Extent>,
    /// First row of each page, and the rows of all.
    pub(super) starts: Vec<u64>,
    pub(super) columns: Vec<RunColumn>,
    pub(super) key: KeyColumns,
    /// The rows as numbers of the segment that they were in; `None` where they stood in order.
    pub(super) numbers: Option<Vec<PageMeta>>,
    pub marks: Vec<Mark>,
    /// The keys of the first row and the last one.
    pub ends: (Vec<u8>, Vec<u8>),
}

pub(super) fn open_symbols(symbols: &[Vec<u8>]) -> Result<Vec<SymbolDecoder>> {
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

    /// Values of the dictionary of a column.
    pub fn values(&self, column: usize) -> u64 {
        self.columns[column].dictionary.as_ref().map_or(0, |meta| u64::from(meta.rows))
    }

    /// Whether some of some pages of a column of the key have NULL.
    pub fn nulls_of_key(&self, column: usize, mut pages: Range<usize>) -> bool {
        let column = &self.columns[self.key[column].0];
        pages.any(|page| column.pages[page].nulls > 0)
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
        let metas = &self.columns[column].pages[pages.clone()];
        let window = match (metas.first(), metas.last()) {
            (Some(first), Some(last)) => {
                let bytes = last.offset + last.bytes - first.offset;
                self.extent.read_many(first.offset, bytes)?.map(|piece| (first.offset, piece))
            }
            _ => None,
        };
        let (decoders, was_read) = (open_symbols(symbols)?, AtomicBool::new(false));
        Ok(OpenColumn { run: self, column, pages, dictionary, decoders, window, was_read })
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
///
/// Pages in a mapped file need not be in the memory of the process any more when it is closed: the next segment reads others.
pub(super) struct OpenColumn<'a> {
    run: &'a Run,
    column: usize,
    pages: Range<usize>,
    /// The values of codes.
    pub dictionary: Option<Dictionary>,
    decoders: Vec<SymbolDecoder>,
    /// The pages, if they were read at once, and where the first begins.
    window: Option<(u64, Piece<'a>)>,
    /// Set while pages were read that were not left.
    was_read: AtomicBool,
}

impl Drop for OpenColumn<'_> {
    fn drop(&mut self) {
        if *self.was_read.get_mut() {
            self.leave(self.pages.clone());
        }
    }
}

impl OpenColumn<'_> {
    /// What a page is.
    pub fn meta(&self, page: usize) -> &PageMeta {
        &self.run.columns[self.column].pages[page]
    }

    /// The tables of symbols that pages name.
    pub fn tables(&self) -> &[Vec<u8>] {
        &self.run.columns[self.column].symbols
    }

    /// Appends the values of a page.
    ///
    /// # Errors
    /// `Corrupt` when it is not what was written.
    pub fn decode(&self, page: usize, out: &mut Plain) -> Result<()> {
        self.with_view(page, |view| {
            append_page(view, self.dictionary.as_ref(), &self.decoders, out)
        })
    }

    /// Says that pages were read: if they are in a mapped file, they need not be in the memory of the process any more.
    pub fn leave(&self, pages: Range<usize>) {
        self.was_read.store(false, Ordering::Relaxed);
        let pages = &self.run.columns[self.column].pages[pages];
        if let (None, Some(first), Some(last)) = (&self.window, pages.first(), pages.last()) {
            self.run.extent.leave(first.offset, last.offset + last.bytes - first.offset);
        }
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
        self.was_read.store(true, Ordering::Relaxed);
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
