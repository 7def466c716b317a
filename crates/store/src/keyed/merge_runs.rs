//! Merges runs into segments: each segment is a range of the key, and one order goes through all of them.
//!
//! ```text
//!   cuts       segment 1             | segment 2         | ...     about as many rows each
//!   within     part 1 | part 2 | ..                                keys of a part are sorted by one thread
//!   then       rows of the segment in order -> each column gathered from the pages of all runs, by all threads
//! ```
//!
//! Rows with the same key come in the order of the input, as runs do and as rows of a run do; which of them stays is decided
//! here. What a segment becomes does not depend on the threads.
//!
//! Memory: the keys of a segment and the numbers of its rows; of its columns as many as there are threads, whole, with the pages of
//! runs that begin or end within it.

use std::ops::Range;
use std::sync::OnceLock;

use coload_page::{PageDetail, PageView};
use coload_threads::in_order;
use coload_transform::{KeyOrder, PartitionColumn, merge_dictionaries, sort_keys};
use coload_types::{Bitmap, Dictionary, Error, Physical, Plain, Result, Values};

use super::conflicts::{Keyed, twice_among};
use super::fields::{Field, for_each_codes, greatest_of};
use super::gather::{Form, Gather, GivenColumns, gather_columns};
use super::given::GivenPages;
use super::keys::{float, key_text};
use super::order::{Newest, choose_rows, cut_pages};
use super::ranges::Cut;
use super::run::{OpenColumn, Run};
use crate::{ColumnStats, FinishedColumn, SegmentSummary, SegmentWriter, failpoints};

/// Parts of a segment whose keys are sorted at once.
pub(super) const PARTS_OF_SEGMENT: usize = 8;

/// Rows of a run that go into a segment.
#[derive(Debug)]
struct Slice<'a> {
    run: &'a Run,
    /// Rows of the load before those of the run.
    before: u64,
    rows: Range<u64>,
    /// The pages that they are in.
    pages: Range<usize>,
    /// The first row of the first page, counted through the pages of all slices.
    base: u64,
}

/// A segment that is merged.
pub(super) struct Merged {
    pub summary: SegmentSummary,
    pub columns: Vec<FinishedColumn>,
    /// The bounds of the first column of the key, if they are known.
    pub first_stats: Option<ColumnStats>,
    /// The rows of the load that the rows were, if they were asked for.
    pub numbers: Option<Vec<u64>>,
}

/// Runs, each with the rows of the load before it.
pub(super) struct Runs<'a> {
    pub runs: &'a [Run],
    pub before: &'a [u64],
}

/// Merges what is between the first and the last of some cuts into a segment. Rows that give way are left out. `None` when no row
/// is there.
///
/// # Errors
/// `Invalid` when a key comes twice and may not; `Corrupt` when a run is not what was written; `Limit` when there are too many rows;
/// those of the disk.
pub(super) fn merge_segment(
    given: &Runs<'_>,
    cuts: &[Cut],
    of: Keyed<'_>,
    open: impl FnOnce() -> Result<SegmentWriter>,
    threads: usize,
) -> Result<Option<Merged>> {
    let slices = slice(given, cuts);
    if slices.is_empty() {
        return Ok(None);
    }
    failpoints::hit("store::run::merge")
        .map_err(|e| Error::Unavailable(format!("cannot merge runs: {e}")))?;
    let (order, keys) = sort_slices(&slices, cuts, given, threads)?;
    let rows = stay(&slices, of, (order, &keys))?;
    let first_stats = first_key_stats(&slices, of, (&rows, &keys));
    drop(keys);
    let page_rows = cut_rows(&slices, rows.len());
    let space = coload_space::Dram::new("dram", u64::MAX);
    let (form, places) = (Form::Segment, &OnceLock::new());
    let gather =
        Gather { rows: &rows, page_rows: &page_rows, form, space: &space, places, threads };
    let (writer, first) = (open()?, slices[0].run);
    let mut columns = Vec::with_capacity(first.width());
    gather_columns(&Slices(&slices), gather, |column, made| {
        columns.push(writer.write_column(made, first.physical(column))?);
        Ok(())
    })?;
    let summary = writer.finish(columns.clone(), page_rows)?;
    let wants = of.key.is_unique() && of.on_conflict.tells_rows();
    let numbers = if wants { Some(numbers_of(&slices, &rows)?) } else { None };
    Ok(Some(Merged { summary, columns, first_stats, numbers }))
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
        let all = run.start(pages.end) - run.start(pages.start);
        slices.push(Slice { run, before: given.before[number], rows, pages, base });
        base += all;
    }
    slices
}

/// The keys of each slice, all rows of its pages.
type SliceKeys = Vec<Vec<Plain>>;

/// Sorts the rows of slices by their keys, each part by a thread. Rows are counted through the pages of all slices.
fn sort_slices(
    slices: &[Slice<'_>],
    cuts: &[Cut],
    given: &Runs<'_>,
    threads: usize,
) -> Result<(KeyOrder, SliceKeys)> {
    let mut keys = Vec::with_capacity(slices.len());
    let decode = |number: usize| {
        let Slice { run, pages, .. } = &slices[number];
        run.open_key(pages.clone())?.decode(pages.clone())
    };
    in_order(slices.len(), threads, decode, |_, key| {
        keys.push(key);
        Ok(())
    })?;
    let parts: Vec<&[Cut]> = cuts.windows(2).collect();
    let (mut rows, mut repeated) = (Vec::new(), Vec::new());
    let sort = |part: usize| sort_part(slices, &keys, (given, parts[part]));
    in_order(parts.len(), threads, sort, |_, (part, again): (Vec<u32>, Vec<u32>)| {
        let before = rows.len() as u32;
        repeated.extend(again.into_iter().map(|place| before + place));
        rows.extend(part);
        Ok(())
    })?;
    Ok((KeyOrder { rows: Some(rows), repeated }, keys))
}

/// Sorts what is between two cuts.
fn sort_part(
    slices: &[Slice<'_>],
    keys: &SliceKeys,
    (given, cuts): (&Runs<'_>, &[Cut]),
) -> Result<(Vec<u32>, Vec<u32>)> {
    let mut columns: Vec<Plain> = Vec::new();
    let mut numbers: Vec<u32> = Vec::new();
    for (slice, keys) in slices.iter().zip(keys) {
        let run = given.runs.iter().position(|run| std::ptr::eq(run, slice.run)).unwrap_or(0);
        let start = slice.run.start(slice.pages.start);
        let rows = cuts[0][run].max(slice.rows.start)..cuts[1][run].min(slice.rows.end);
        if rows.is_empty() {
            continue;
        }
        let rows = (rows.start - start) as usize..(rows.end - start) as usize;
        for (place, key) in keys.iter().enumerate() {
            if columns.len() <= place {
                columns.push(Plain::empty(key.values.physical()));
            }
            append_rows(&mut columns[place], key, rows.clone())?;
        }
        let number = |row: usize| u32::try_from(slice.base + row as u64);
        let counted = rows.map(number).collect::<std::result::Result<Vec<u32>, _>>();
        numbers.extend(counted.map_err(|_| {
            Error::Limit("over 4,294,967,295 rows are to be merged at once; lower --memory".into())
        })?);
    }
    if numbers.is_empty() {
        return Ok((Vec::new(), Vec::new()));
    }
    let order = sort_keys(&columns)?;
    let rows = match order.rows {
        None => numbers,
        Some(rows) => rows.into_iter().map(|row| numbers[row as usize]).collect(),
    };
    Ok((rows, order.repeated))
}

/// Appends rows of a column to another.
fn append_rows(to: &mut Plain, from: &Plain, rows: Range<usize>) -> Result<()> {
    let before = to.len();
    match (&mut to.values, &from.values) {
        (Values::Int(to), Values::Int(from)) => to.extend_from_slice(&from[rows.clone()]),
        (Values::Wide(to), Values::Wide(from)) => to.extend_from_slice(&from[rows.clone()]),
        (Values::Bytes(to), Values::Bytes(from)) => {
            for row in rows.clone() {
                let text = from.get(row);
                if !to.has_room(text.len() as u64) {
                    return Err(Error::Limit(
                        "keys of a segment over 4 GiB; lower --memory".into(),
                    ));
                }
                to.push(text);
            }
        }
        _ => return Err(Error::Corrupt("runs with a column of two shapes".into())),
    }
    match (&mut to.nulls, &from.nulls) {
        (None, None) => {}
        (Some(nulls), None) => nulls.extend_zeros(rows.len()),
        (nulls, Some(from)) => {
            let nulls = nulls.get_or_insert_with(|| Bitmap::zeros(before));
            rows.for_each(|row| nulls.push(from.get(row)));
        }
    }
    Ok(())
}

/// The slice that a row is in, and the row of its pages.
fn place_of(slices: &[Slice<'_>], row: u32) -> (usize, usize) {
    let number = slices.partition_point(|slice| slice.base <= u64::from(row)).saturating_sub(1);
    (number, (u64::from(row) - slices[number].base) as usize)
}

/// The rows that stay, in order.
fn stay(
    slices: &[Slice<'_>],
    of: Keyed<'_>,
    (order, keys): (KeyOrder, &SliceKeys),
) -> Result<Vec<u32>> {
    let Some(place) = order.repeated.first().filter(|_| of.key.is_unique()) else {
        return Ok(order.rows.unwrap_or_default());
    };
    let newest = |column| newest(slices, of, column);
    let count = order.rows.as_ref().map_or(0, Vec::len);
    match choose_rows(count, of.on_conflict, &order, newest)? {
        Some(chosen) => Ok(chosen),
        None => {
            let place = *place as usize;
            let (first, row) = (order.row(place - 1) as u32, order.row(place) as u32);
            let (number, at) = place_of(slices, row);
            let text = key_text(&keys[number], at, of.schema, of.key);
            let numbers = numbers_of(slices, &[first, row])?;
            let number = |place: usize| numbers.get(place).map(|row| row + 1);
            let numbers = (number(0), number(1));
            Err(twice_among((of.table, of.schema, of.key), &text, numbers))
        }
    }
}

/// The column that says which of two rows is newer.
fn newest(slices: &[Slice<'_>], of: Keyed<'_>, column: usize) -> Result<Newest> {
    let mut plain = Plain::empty(slices[0].run.physical(column));
    for slice in slices {
        let open = slice.run.open_column(column, slice.pages.clone())?;
        slice.pages.clone().try_for_each(|page| open.decode(page, &mut plain))?;
    }
    Ok((plain, float(of.schema, column)))
}

/// The bounds of the first column of the key, which are known where the rows are in order. Floats are there as what stands
/// for them, which is no bound.
fn first_key_stats(
    slices: &[Slice<'_>],
    of: Keyed<'_>,
    (rows, keys): (&[u32], &SliceKeys),
) -> Option<ColumnStats> {
    if float(of.schema, of.key.columns()[0]).is_some() {
        return None;
    }
    let is_null = |row: &&u32| {
        let (slice, at) = place_of(slices, **row);
        keys[slice][0].is_null(at)
    };
    let nulls = match keys.iter().any(|key| key[0].nulls.is_some()) {
        true => rows.iter().filter(is_null).count(),
        false => 0,
    };
    let value = |row: &u32| {
        let (slice, at) = place_of(slices, *row);
        keys[slice][0].get(at)
    };
    let valued = &rows[..rows.len() - nulls];
    let (min, max) = (valued.first().and_then(value), valued.last().and_then(value));
    Some(ColumnStats::new(min, max, nulls as u64))
}

/// The rows of the load that rows were.
fn numbers_of(slices: &[Slice<'_>], rows: &[u32]) -> Result<Vec<u64>> {
    let mut numbers = Vec::with_capacity(read_rows(slices));
    for slice in slices {
        let of_run = slice.run.numbers(slice.pages.clone())?;
        numbers.extend(of_run.into_iter().map(|number| slice.before + u64::from(number)));
    }
    Ok(rows.iter().map(|row| numbers[*row as usize]).collect())
}

/// Rows of the pages of the segment.
fn cut_rows(slices: &[Slice<'_>], rows: usize) -> Vec<u32> {
    let all = read_rows(slices) as u64;
    let bytes = |column: usize| -> u64 {
        slices.iter().map(|slice| slice.run.bytes(column, slice.pages.clone())).sum()
    };
    let widest = (0..slices[0].run.width()).map(bytes).max().unwrap_or(0);
    cut_pages(rows, all, widest)
}

/// Rows of the pages of slices, those that are not theirs among them.
fn read_rows(slices: &[Slice<'_>]) -> usize {
    let rows =
        |slice: &Slice<'_>| slice.run.start(slice.pages.end) - slice.run.start(slice.pages.start);
    slices.iter().map(rows).sum::<u64>() as usize
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
        Ok(RunPages { open, pages: pages.collect(), physical: self.0[0].run.physical(column) })
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
        let rows = (0..pages.count()).map(|page| pages.page_rows(page)).collect();
        let blocks = move |page: usize, take: &mut dyn FnMut(&[u64]) -> Result<()>| {
            let translation = &translations[pages.pages[page].0];
            let translate = |code: u32| {
                translation.get(code as usize).map_or(null, |translated| u64::from(translated.0))
            };
            pages.with_view(page, &mut |view| for_each_codes(view, translate, take))
        };
        Ok(Some(Field::of_codes(merged, rows, blocks)))
    }

    fn values(&self, column: usize, gather: Gather<'_>) -> Result<PartitionColumn> {
        gather.values(&self.open(column)?)
    }
}

/// Pages of a column of runs, those of one run after those of the one before.
struct RunPages<'a> {
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

    fn page_rows(&self, page: usize) -> u32 {
        let (open, page) = self.page(page);
        open.meta(page).rows
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
}
