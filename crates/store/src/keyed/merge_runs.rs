//! Merges runs into segments: each segment is a range of the key, and one order goes through all of them.
//!
//! ```text
//!   cuts       segment 1             | segment 2         | ...     about as many rows each
//!   within     keys in buckets, which threads share
//!   then       rows of the segment in order -> each column gathered from the pages of all runs, by all threads
//! ```
//!
//! Rows with the same key come in the order of the input, as runs do and as rows of a run do; which of them stays is decided
//! here. What a segment becomes does not depend on the threads.
//!
//! Memory: the keys of a segment and the numbers of its rows; of its columns those of a word of 64 bits, or one, whole.

use std::ops::Range;
use std::path::Path;

use coload_page::{PageDetail, PageView};
use coload_transform::{KeyOrder, merge_dictionaries};
use coload_types::{Dictionary, Error, Physical, Plain, Result};

use super::conflicts::{Keyed, twice_among};
use super::entry::put_load_order;
use super::fields::{Field, for_each_codes, greatest_of};
use super::gather::{Gather, GivenColumns, TakePart};
use super::given::GivenPages;
use super::keys::{float, key_text};
use super::merge_keys::{SortedSlices, append_rows, sort_slices};
use super::order::{Newest, choose_rows, write_columns};
use super::origin::{LoadRows, Origin};
use super::ranges::Cut;
use super::run::{OpenColumn, Run};
use super::sorting::SortWith;
use crate::{ColumnStats, FinishedColumn, SegmentSummary, SegmentWriter, failpoints};

/// Rows of a run that go into a segment.
#[derive(Debug)]
pub(super) struct Slice<'a> {
    pub run: &'a Run,
    /// Rows of the load before those of the run.
    before: u64,
    pub rows: Range<u64>,
    /// The pages that they are in.
    pub pages: Range<usize>,
    /// The number of the first row, counted through all slices.
    pub base: u64,
}

impl Slice<'_> {
    /// Which rows of a page are rows of the slice.
    pub fn rows_of(&self, page: usize) -> Range<usize> {
        let (start, end) = (self.run.start(page), self.run.start(page + 1));
        let within = |row: u64| (row.clamp(start, end) - start) as usize;
        within(self.rows.start)..within(self.rows.end)
    }

    /// Rows of the run as rows of all pages of the slice.
    pub fn rows_within(&self, rows: Range<u64>) -> Range<usize> {
        let start = self.run.start(self.pages.start);
        (rows.start - start) as usize..(rows.end - start) as usize
    }
}

/// A segment that is merged.
pub(super) struct Merged {
    pub summary: SegmentSummary,
    pub columns: Vec<FinishedColumn>,
    /// The bounds of the first column of the key, if they are known.
    pub first_stats: Option<ColumnStats>,
    /// Where its rows come from.
    pub origin: Origin,
}

/// A segment whose columns are written.
pub(super) struct MergedColumns<'a> {
    slices: Vec<Slice<'a>>,
    /// The rows of the slices that it has, in order.
    rows: Vec<u32>,
    writer: SegmentWriter,
    columns: Vec<FinishedColumn>,
    page_rows: Vec<u32>,
    first_stats: Option<ColumnStats>,
}

impl MergedColumns<'_> {
    /// Builds the tree of the segment, and says beside its file, at this path, which rows of the load its rows were, if that may be asked.
    ///
    /// # Errors
    /// `Corrupt` when a run is not what was written; those of the disk.
    pub fn finish(self, of: Keyed<'_>, path: &Path) -> Result<Merged> {
        let MergedColumns { slices, rows, writer, columns, page_rows, first_stats } = self;
        let summary = writer.finish(columns.clone(), page_rows)?;
        let origin = match of.tells_rows {
            true => put_load_order(path, &rows, &load_rows(&slices)?)?,
            false => Origin { before: 0, order: None },
        };
        Ok(Merged { summary, columns, first_stats, origin })
    }
}

/// Runs, each with the rows of the load before it.
pub(super) struct Runs<'a> {
    pub runs: &'a [Run],
    pub before: &'a [u64],
}

/// Merges what is between the first and the last of some cuts into the columns of a segment. Rows that give way are left out. `None` when
/// no row is there.
///
/// # Errors
/// `Invalid` when a key comes twice and may not; `Corrupt` when a run is not what was written; `Limit` when there are too many rows;
/// those of the disk.
pub(super) fn merge_segment<'a>(
    given: &Runs<'a>,
    cuts: &[Cut],
    of: Keyed<'_>,
    open: impl FnOnce() -> Result<SegmentWriter>,
    with: SortWith,
) -> Result<Option<MergedColumns<'a>>> {
    let slices = slice(given, cuts);
    if slices.is_empty() {
        return Ok(None);
    }
    failpoints::hit("store::run::merge")
        .map_err(|e| Error::Unavailable(format!("cannot merge runs: {e}")))?;
    let SortedSlices { order, nulls } = sort_slices(&slices, with)?;
    let rows = stay(&slices, of, order)?;
    let first_stats = first_key_stats(&slices, of, (&rows, nulls))?;
    let (writer, space) = (open()?, coload_space::Dram::new("dram", u64::MAX));
    let (columns, page_rows) = write_columns(&Slices(&slices), &rows, &writer, (&space, with))?;
    Ok(Some(MergedColumns { slices, rows, writer, columns, page_rows, first_stats }))
}

/// The rows of each run between the first and the last of some cuts.
fn slice<'a>(given: &Runs<'a>, cuts: &[Cut]) -> Vec<Slice<'a>> {
    let [first, .., last] = cuts else { return Vec::new() };
    let mut slices = Vec::new();
    let mut base = 0;
    for (number, run) in given.runs.iter().enumerate() {
        let rows = first[number]..last[number];
        if rows.is_empty() {
            continue;
        }
        let pages = run.page_of(rows.start)..run.page_of(rows.end - 1) + 1;
        let count = rows.end - rows.start;
        slices.push(Slice { run, before: given.before[number], rows, pages, base });
        base += count;
    }
    slices
}

/// The slice that a row is in, and which row of its run it is.
fn place_of<'s, 'a>(slices: &'s [Slice<'a>], row: u32) -> (&'s Slice<'a>, u64) {
    let number = slices.partition_point(|slice| slice.base <= u64::from(row)).saturating_sub(1);
    let slice = &slices[number];
    (slice, slice.rows.start + (u64::from(row) - slice.base))
}

/// The key of a row.
fn key_of(slices: &[Slice<'_>], row: u32) -> Result<Vec<Plain>> {
    let (slice, row) = place_of(slices, row);
    let page = slice.run.page_of(row);
    let at = (row - slice.run.start(page)) as usize;
    let page = slice.run.open_key(page..page + 1)?.decode(page..page + 1)?;
    let value = |column: &Plain| {
        let mut value = Plain::empty(column.values.physical());
        value.push(column.get(at).as_ref());
        value
    };
    Ok(page.iter().map(value).collect())
}

/// The rows that stay, in order.
fn stay(slices: &[Slice<'_>], of: Keyed<'_>, order: KeyOrder) -> Result<Vec<u32>> {
    let Some(place) = order.repeated.first().filter(|_| of.key.is_unique()) else {
        let all = || (0..count_rows(slices) as u32).collect();
        return Ok(order.rows.unwrap_or_else(all));
    };
    let newest = |column| newest(slices, of, column);
    match choose_rows(count_rows(slices), of.on_conflict, &order, newest)? {
        Some(chosen) => Ok(chosen),
        None => {
            let place = *place as usize;
            let (first, row) = (order.row(place - 1) as u32, order.row(place) as u32);
            let text = key_text(&key_of(slices, row)?, 0, of.schema, of.key);
            let rows = load_rows(slices)?;
            let numbers = (Some(rows.get(first) + 1), Some(rows.get(row) + 1));
            Err(twice_among((of.table, of.schema, of.key), &text, numbers))
        }
    }
}

/// The column that says which of two rows is newer.
fn newest(slices: &[Slice<'_>], of: Keyed<'_>, column: usize) -> Result<Newest> {
    let mut plain = Plain::empty(slices[0].run.physical(column));
    for slice in slices {
        let open = slice.run.open_column(column, slice.pages.clone())?;
        for page in slice.pages.clone() {
            let mut whole = Plain::empty(plain.values.physical());
            open.decode(page, &mut whole)?;
            append_rows(&mut plain, &whole, slice.rows_of(page))?;
        }
    }
    Ok((plain, float(of.schema, column)))
}

/// The bounds of the first column of the key, which are known where the rows are in order. Floats are there as what stands
/// for them, which is no bound.
fn first_key_stats(
    slices: &[Slice<'_>],
    of: Keyed<'_>,
    (rows, nulls): (&[u32], usize),
) -> Result<Option<ColumnStats>> {
    if float(of.schema, of.key.columns()[0]).is_some() {
        return Ok(None);
    }
    let value = |row: Option<&u32>| match row {
        Some(row) => Ok(key_of(slices, *row)?[0].get(0)),
        None => Ok::<_, Error>(None),
    };
    let valued = &rows[..rows.len().saturating_sub(nulls)];
    let (min, max) = (value(valued.first())?, value(valued.last())?);
    Ok(Some(ColumnStats::new(min, max, nulls as u64)))
}

/// The rows of the load that the rows of slices were.
fn load_rows(slices: &[Slice<'_>]) -> Result<LoadRows> {
    let mut rows = LoadRows::with_capacity(count_rows(slices));
    for slice in slices {
        let of_run = slice.run.numbers(slice.pages.clone())?;
        let of_slice = of_run[slice.rows_within(slice.rows.clone())].iter();
        of_slice.for_each(|number| rows.push(slice.before + u64::from(*number)));
    }
    Ok(rows)
}

/// Rows of all slices.
fn count_rows(slices: &[Slice<'_>]) -> usize {
    slices.iter().map(|slice| slice.rows.end - slice.rows.start).sum::<u64>() as usize
}

/// The columns of slices, those of one after those of the one before.
struct Slices<'s, 'r>(&'s [Slice<'r>]);

impl Slices<'_, '_> {
    fn is_coded(&self, column: usize) -> bool {
        self.0.iter().all(|slice| slice.run.is_coded(column, slice.pages.clone()))
    }

    fn open(&self, column: usize) -> Result<RunPages<'_>> {
        let open = self.0.iter().map(|slice| slice.run.open_column(column, slice.pages.clone()));
        let open = open.collect::<Result<_>>()?;
        let numbered = self.0.iter().enumerate();
        let pages = numbered
            .flat_map(|(number, slice)| slice.pages.clone().map(move |page| (number, page)));
        let physical = self.0[0].run.physical(column);
        Ok(RunPages { slices: self.0, open, pages: pages.collect(), physical })
    }
}

impl GivenColumns for Slices<'_, '_> {
    fn width(&self) -> usize {
        self.0[0].run.width()
    }

    fn greatest(&self, column: usize) -> Result<Option<u64>> {
        if self.is_coded(column) {
            // Dictionaries have values in common, or none.
            return Ok(Some(self.0.iter().map(|slice| slice.run.values(column)).sum()));
        }
        Ok(greatest_of(&self.open(column)?, None))
    }

    fn field(&self, column: usize) -> Result<Option<Field<'_>>> {
        let pages = self.open(column)?;
        if !self.is_coded(column) {
            return Ok(Field::of(pages, None));
        }
        // Dictionaries are merged, and codes are those of the result.
        let dictionaries = pages.open.iter().filter_map(|open| open.dictionary.as_ref());
        let inputs: Vec<&Dictionary> = dictionaries.collect();
        let (merged, translations) = merge_dictionaries(&inputs, pages.physical)?;
        let null = merged.len() as u64;
        let rows = (0..pages.count()).map(|page| pages.rows_of(page).len() as u32).collect();
        let blocks = move |page: usize, take: &mut dyn FnMut(&[u64]) -> Result<()>| {
            let within = pages.rows_of(page);
            let translation = &translations[pages.pages[page].0];
            let translate = |code: u32| {
                translation.get(code as usize).map_or(null, |translated| u64::from(translated.0))
            };
            pages.with_view(page, &mut |view| for_each_codes(view, within.clone(), translate, take))
        };
        Ok(Some(Field::of_codes(merged, rows, blocks)))
    }

    fn values(&self, column: usize, gather: Gather<'_>, take: TakePart<'_>) -> Result<()> {
        gather.values(&self.open(column)?, take)
    }

    fn bytes(&self, column: usize) -> Result<(u64, u64)> {
        let sum = |(bytes, rows): (u64, u64), Slice { run, pages, .. }: &Slice<'_>| {
            let of_pages = run.start(pages.end) - run.start(pages.start);
            (bytes + run.bytes(column, pages.clone()), rows + of_pages)
        };
        Ok(self.0.iter().fold((0, 0), sum))
    }

    fn lengths(&self, column: usize) -> Result<Vec<u32>> {
        self.open(column)?.lengths()
    }

    fn shape(&self, column: usize) -> Physical {
        self.0[0].run.physical(column)
    }
}

/// Pages of a column of runs, those of one run after those of the one before.
struct RunPages<'a> {
    slices: &'a [Slice<'a>],
    open: Vec<OpenColumn<'a>>,
    /// The run of each page, and which of its pages it is.
    pages: Vec<(usize, usize)>,
    physical: Physical,
}

impl RunPages<'_> {
    fn page(&self, page: usize) -> (&OpenColumn<'_>, usize) {
        let (run, page) = self.pages[page];
        (&self.open[run], page)
    }
}

impl GivenPages for RunPages<'_> {
    fn physical(&self) -> Physical {
        self.physical
    }

    fn count(&self) -> usize {
        self.pages.len()
    }

    fn detail(&self, page: usize) -> &PageDetail {
        let (open, page) = self.page(page);
        &open.meta(page).detail
    }

    fn rows_of(&self, page: usize) -> Range<usize> {
        let (run, page) = self.pages[page];
        self.slices[run].rows_of(page)
    }

    fn nulls(&self, page: usize) -> u32 {
        let (open, page) = self.page(page);
        open.meta(page).nulls
    }

    fn bytes(&self, page: usize) -> u64 {
        let (open, page) = self.page(page);
        open.meta(page).bytes
    }

    fn tables(&self, page: usize) -> &[Vec<u8>] {
        self.page(page).0.tables()
    }

    fn with_view(
        &self,
        page: usize,
        take: &mut dyn FnMut(&PageView<'_>) -> Result<()>,
    ) -> Result<()> {
        let (open, page) = self.page(page);
        open.with_view(page, take)
    }

    fn decode(&self, page: usize, out: &mut Plain) -> Result<()> {
        let (open, page) = self.page(page);
        open.decode(page, out)
    }

    fn leave(&self, page: usize) {
        let (open, page) = self.page(page);
        open.leave(page..page + 1);
    }
}
