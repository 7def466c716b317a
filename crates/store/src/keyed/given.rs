//! The pages of a column whose rows get another order, wherever they are.

use std::borrow::Cow;
use std::ops::Range;

use coload_page::runs::expand_runs;
use coload_page::{ColumnIndex, Page, PageDetail, PageView, SymbolDecoder};
use coload_transform::PartitionColumn;
use coload_types::{Physical, Plain, Result};

use super::run::open_symbols;
use crate::{ExpandedPages, SegmentFile, append_page};

/// The pages of a column as it is.
pub(super) trait GivenPages {
    /// Shape of the values.
    fn physical(&self) -> Physical;

    /// How many pages there are.
    fn count(&self) -> usize;

    /// Rows that are given of all pages.
    fn rows(&self) -> usize {
        (0..self.count()).map(|page| self.rows_of(page).len()).sum()
    }

    /// Bytes of all pages.
    fn all_bytes(&self) -> u64 {
        (0..self.count()).map(|page| self.bytes(page)).sum()
    }

    /// What a page holds.
    fn detail(&self, page: usize) -> &PageDetail;

    /// Which rows of a page are given: all, but where a range of a key begins or ends within it.
    fn rows_of(&self, page: usize) -> Range<usize>;

    /// How many rows of a page are NULL.
    fn nulls(&self, page: usize) -> u32;

    /// Bytes of a page.
    fn bytes(&self, page: usize) -> u64;

    /// The tables of symbols that pages name.
    fn tables(&self, page: usize) -> &[Vec<u8>];

    /// Calls with a page.
    ///
    /// # Errors
    /// `Corrupt` when it is not what was written; those of the call.
    fn with_view(
        &self,
        page: usize,
        take: &mut dyn FnMut(&PageView<'_>) -> Result<()>,
    ) -> Result<()>;

    /// Says that a page was read: if it is part of a mapped file, this need not be in the memory of the process any more.
    fn leave(&self, _page: usize) {}

    /// Bytes of each text as it is stored; of other values none.
    ///
    /// # Errors
    /// `Corrupt` when a page is not what was written.
    fn lengths(&self) -> Result<Vec<u32>> {
        let mut lengths = Vec::with_capacity(self.rows());
        for page in 0..self.count() {
            let within = self.rows_of(page);
            self.with_view(page, &mut |view| {
                let PageView::Text(view) = view else {
                    lengths.extend(within.clone().map(|_| 0));
                    return Ok(());
                };
                let (_, ends) = view.all_strings()?;
                let start = |row: usize| row.checked_sub(1).map_or(0, |before| ends[before]);
                lengths.extend(within.clone().map(|row| ends[row] - start(row)));
                Ok(())
            })?;
            self.leave(page);
        }
        Ok(lengths)
    }

    /// Appends all values of a page.
    ///
    /// # Errors
    /// `Corrupt` when it is not what was written.
    fn decode(&self, page: usize, out: &mut Plain) -> Result<()>;

    /// The table of the symbols that the texts of a page are in; `None` where they are as they are, or are no texts.
    fn table(&self, page: usize) -> Option<&[u8]> {
        let number = self.detail(page).symbols() as usize;
        self.tables(page).get(number.checked_sub(1)?).map(Vec::as_slice)
    }
}

/// Pages of a column of a segment, read where they lie.
pub(super) struct StoredPages<'a> {
    segment: &'a SegmentFile,
    column: usize,
    index: &'a ColumnIndex,
}

impl<'a> StoredPages<'a> {
    /// Opens a column.
    ///
    /// # Errors
    /// `Corrupt` when its index is damaged.
    pub fn open(segment: &'a SegmentFile, column: usize) -> Result<Self> {
        Ok(StoredPages { segment, column, index: segment.column(column)?.index() })
    }
}

impl GivenPages for StoredPages<'_> {
    fn physical(&self) -> Physical {
        self.segment.physical(self.column)
    }

    fn count(&self) -> usize {
        self.index.pages.len()
    }

    fn detail(&self, page: usize) -> &PageDetail {
        &self.index.pages[page].detail
    }

    fn rows_of(&self, page: usize) -> Range<usize> {
        0..self.index.pages[page].rows as usize
    }

    fn nulls(&self, page: usize) -> u32 {
        self.index.pages[page].nulls
    }

    fn bytes(&self, page: usize) -> u64 {
        self.index.pages[page].bytes
    }

    fn tables(&self, _: usize) -> &[Vec<u8>] {
        &self.index.symbols
    }

    fn with_view(
        &self,
        page: usize,
        take: &mut dyn FnMut(&PageView<'_>) -> Result<()>,
    ) -> Result<()> {
        let expanded = ExpandedPages::default();
        take(&self.segment.page(self.column, page, &expanded)?)
    }

    fn decode(&self, page: usize, out: &mut Plain) -> Result<()> {
        self.segment.decode_page(self.column, page, out)
    }

    fn leave(&self, page: usize) {
        self.segment.leave_page(&self.index.pages[page]);
    }
}

/// Pages of a column that is in memory.
pub(super) struct JoinedPages<'a> {
    column: &'a PartitionColumn,
    physical: Physical,
    decoders: Vec<SymbolDecoder>,
}

impl<'a> JoinedPages<'a> {
    /// Opens a column of a shape.
    ///
    /// # Errors
    /// `Corrupt` when its symbols are none.
    pub fn open(column: &'a PartitionColumn, physical: Physical) -> Result<Self> {
        Ok(JoinedPages { column, physical, decoders: open_symbols(&column.symbols)? })
    }
}

impl GivenPages for JoinedPages<'_> {
    fn physical(&self) -> Physical {
        self.physical
    }

    fn count(&self) -> usize {
        self.column.pages.len()
    }

    fn detail(&self, page: usize) -> &PageDetail {
        &self.column.pages[page].detail
    }

    fn rows_of(&self, page: usize) -> Range<usize> {
        0..self.column.pages[page].rows as usize
    }

    fn nulls(&self, page: usize) -> u32 {
        self.column.pages[page].nulls
    }

    fn bytes(&self, page: usize) -> u64 {
        self.column.pages[page].bytes.len() as u64
    }

    fn tables(&self, _: usize) -> &[Vec<u8>] {
        &self.column.symbols
    }

    fn with_view(
        &self,
        page: usize,
        take: &mut dyn FnMut(&PageView<'_>) -> Result<()>,
    ) -> Result<()> {
        take(&plain_page(&self.column.pages[page])?.view()?)
    }

    fn decode(&self, page: usize, out: &mut Plain) -> Result<()> {
        let dictionary = self.column.dictionary.as_ref();
        self.with_view(page, &mut |view| append_page(view, dictionary, &self.decoders, out))
    }
}

/// A page that is no run of values.
pub(super) fn plain_page(page: &Page) -> Result<Cow<'_, Page>> {
    Ok(match page.runs {
        Some(_) => Cow::Owned(expand_runs(page)?),
        None => Cow::Borrowed(page),
    })
}
