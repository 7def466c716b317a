//! Rows of segments into a segment in the order of their keys.

use std::borrow::Cow;
use std::sync::Arc;

use coload_ddl::{Key, Schema};
use coload_page::bitpack::BLOCK;
use coload_page::runs::expand_runs;
use coload_page::{Page, SymbolDecoder};
use coload_space::Space;
use coload_threads::in_order;
use coload_transform::{KeyOrder, PartitionColumn, sort_keys};
use coload_types::{Error, Physical, Plain, Result, Values};

use super::conflicts::{Keyed, twice_among};
use super::gather::{Codes, Form, Gather, Given};
use super::keys::{Float, float, key_of_row, value_of_row};
use super::narrow::bounds;
use super::newest::newness;
use super::origin::Origin;
use super::pages::read_codes;
use super::read_keys;
use super::run_writer::{RUN_PAGE_ROWS_MAX, RunWriter};
use super::sorting::SortSpaces;
use super::tree::parts_are_of;
use crate::join::{Source, group_pages, join_column};
use crate::on_conflict::OnConflict;
use crate::{
    ColumnStats, ExpandedPages, FinishedColumn, SegmentFile, SegmentSummary, SegmentWriter,
    append_page,
};

/// Most rows of a page.
const PAGE_ROWS_MAX: u64 = 1 << 16;
/// Bytes that the pages of a column should have at most.
const PAGE_BYTES: u64 = 4 << 20;

/// The order that the rows of a segment are to have.
pub(crate) struct RowOrder {
    /// The rows in it, without those that give way to others of the segment; `None` where all stay as they stand.
    pub rows: Option<Vec<u32>>,
    /// The bounds of the first column of the key, where they are known.
    pub first_stats: Option<ColumnStats>,
}

/// Sorts the rows of a segment by its key, and leaves those out that give way to others of the segment.
///
/// # Errors
/// `Invalid` when a key comes twice and may not, `Corrupt` when the segment is not what was written, `Limit` when it has too many
/// rows.
pub(crate) fn sort_segment(
    segment: &Arc<SegmentFile>,
    of: Keyed<'_>,
    origin: &Origin,
) -> Result<RowOrder> {
    if parts_are_of(segment, of.key) {
        // Its tree was built of keys in order, each once.
        let order = KeyOrder { rows: None, repeated: Vec::new() };
        return Ok(RowOrder { rows: None, first_stats: first_key_stats(segment, of, &order)? });
    }
    let keys = read_sort_keys(segment, of.schema, of.key)?;
    let order = sort_keys(&keys)?;
    // They may be most of the segment.
    drop(keys);
    let first_stats = first_key_stats(segment, of, &order)?;
    let rows = match order.repeated.first().filter(|_| of.key.is_unique()) {
        None => order.rows,
        Some(place) => {
            let newest = |column| read_newest(segment, of, column);
            match choose_rows(segment.rows() as usize, of.on_conflict, &order, newest)? {
                None => return Err(comes_twice(segment, of, origin, (&order, *place as usize))?),
                chosen => chosen,
            }
        }
    };
    Ok(RowOrder { rows, first_stats })
}

/// The error for a key that is at a place of the order and at the one before.
fn comes_twice(
    segment: &SegmentFile,
    of: Keyed<'_>,
    origin: &Origin,
    (order, place): (&KeyOrder, usize),
) -> Result<Error> {
    let (first, row) = (order.row(place - 1) as u64, order.row(place) as u64);
    let text = key_of_row(segment, (of.schema, of.key), row)?;
    let numbers = (origin.number(first), origin.number(row));
    Ok(twice_among((of.table, of.schema, of.key), &text, numbers))
}

/// The columns of the key, as they are sorted: codes of a sorted dictionary are as good as its values.
fn read_sort_keys(segment: &Arc<SegmentFile>, schema: &Schema, key: &Key) -> Result<Vec<Plain>> {
    let mut columns = Vec::with_capacity(key.columns().len());
    for column in key.columns() {
        let pages = &segment.column(*column)?.index().pages;
        let is_coded = pages.iter().all(|page| page.detail.is_codes());
        let is_valued = !key.is_unique() || pages.iter().all(|page| page.nulls == 0);
        if !(is_coded && is_valued && float(schema, *column).is_none()) {
            let one = Key::new(key.kind(), vec![*column])?;
            columns.append(&mut read_keys(std::slice::from_ref(segment), schema, &one)?);
            continue;
        }
        let mut codes = Vec::with_capacity(segment.rows() as usize);
        for page in 0..pages.len() {
            // NULL has the code after the last, and is last.
            codes.extend(read_codes(segment, *column, page)?.into_iter().map(i64::from));
        }
        segment.check()?;
        columns.push(Plain { values: Values::Int(codes), nulls: None });
    }
    Ok(columns)
}

/// The bounds of the first column of a key, which are known where the rows are in order. Floats are there as what stands
/// for them, which is no bound.
fn first_key_stats(
    segment: &SegmentFile,
    of: Keyed<'_>,
    order: &KeyOrder,
) -> Result<Option<ColumnStats>> {
    let column = of.key.columns()[0];
    if float(of.schema, column).is_some() {
        return Ok(None);
    }
    let pages = &segment.column(column)?.index().pages;
    let nulls: u64 = pages.iter().map(|page| u64::from(page.nulls)).sum();
    let Some(last) = (segment.rows() - nulls).checked_sub(1) else {
        return Ok(Some(ColumnStats::new(None, None, nulls)));
    };
    let value = |place: u64| value_of_row(segment, column, order.row(place as usize) as u64);
    Ok(Some(ColumnStats::new(value(0)?, value(last)?, nulls)))
}

/// The column that says which of two rows is newer.
fn read_newest(segment: &SegmentFile, of: Keyed<'_>, column: usize) -> Result<Newest> {
    let mut plain = Plain::empty(segment.physical(column));
    for page in 0..segment.page_rows().len() {
        segment.decode_page(column, page, &mut plain)?;
    }
    segment.check()?;
    Ok((plain, float(of.schema, column)))
}

/// Values of a column that says which of two rows is newer.
pub(super) type Newest = (Plain, Option<Float>);

/// One row of each key, in order, by what is to happen to keys that come twice; `None` when they are an error.
pub(super) fn choose_rows(
    count: usize,
    on_conflict: OnConflict,
    order: &KeyOrder,
    newest: impl FnOnce(usize) -> Result<Newest>,
) -> Result<Option<Vec<u32>>> {
    let values = match on_conflict {
        OnConflict::Error | OnConflict::ReplaceOnce => return Ok(None),
        OnConflict::Ignore | OnConflict::Reject | OnConflict::Replace => None,
        OnConflict::Newest(column) => Some(newest(column)?),
    };
    let value = |(plain, float): &Newest, row: u32| {
        plain.get(row as usize).map(|value| newness(value, *float))
    };
    let takes_place = |last: u32, row: u32| match &values {
        Some(values) => value(values, row) >= value(values, last),
        None => on_conflict == OnConflict::Replace,
    };
    let mut chosen: Vec<u32> = Vec::with_capacity(count - order.repeated.len());
    let mut repeated = order.repeated.iter().peekable();
    for place in 0..count {
        let row = order.row(place) as u32;
        let is_repeated = repeated.next_if(|repeated| **repeated as usize == place).is_some();
        match chosen.last_mut().filter(|_| is_repeated) {
            Some(last) if takes_place(*last, row) => *last = row,
            Some(_) => {}
            None => chosen.push(row),
        }
    }
    Ok(Some(chosen))
}

/// Writes rows of segments, in the order given, as one segment: `rows` counts through all of them, and may leave some out.
///
/// # Errors
/// As those of [`order_segment`].
pub(crate) fn write_in_order(
    sources: &[Arc<SegmentFile>],
    rows: &[u32],
    writer: &SegmentWriter,
    (space, threads): (&dyn Space, usize),
) -> Result<(SegmentSummary, Vec<FinishedColumn>)> {
    let page_rows = cut_segments(sources, rows.len())?;
    let gather = Gather { rows, page_rows: &page_rows, form: Form::Segment, space };
    let width = sources[0].column_count();
    let mut columns = Vec::with_capacity(width);
    let make = |column: usize| reorder_column(sources, column, gather);
    in_order(width, threads, make, |column, made| {
        columns.push(writer.write_column(made, sources[0].physical(column))?);
        Ok(())
    })?;
    sources.iter().try_for_each(|source| source.check())?;
    let summary = writer.finish(columns.clone(), page_rows)?;
    Ok((summary, columns))
}

/// Writes rows of a segment, in the order given, as a run.
///
/// # Errors
/// As those of [`order_segment`]; those of the spaces.
pub(crate) fn write_run_in_order(
    segment: &Arc<SegmentFile>,
    rows: &[u32],
    (schema, key): (&Schema, &Key),
    (spaces, threads): (&SortSpaces, usize),
) -> Result<RunWriter> {
    let sources = std::slice::from_ref(segment);
    let page_rows = cut_run_pages(cut_segments(sources, rows.len())?);
    let mut run = RunWriter::create(&*spaces.runs, (schema, key), &page_rows)?;
    let gather = Gather { rows, page_rows: &page_rows, form: Form::Run, space: &*spaces.sort };
    let make = |column: usize| reorder_column(sources, column, gather);
    in_order(segment.column_count(), threads, make, |column, made| {
        run.put_column(made, segment.physical(column))
    })?;
    segment.check()?;
    Ok(run)
}

/// Cuts pages into those of runs.
fn cut_run_pages(page_rows: Vec<u32>) -> Vec<u32> {
    let cut = |rows: u32| {
        let starts = (0..rows).step_by(RUN_PAGE_ROWS_MAX as usize);
        starts.map(move |start| RUN_PAGE_ROWS_MAX.min(rows - start))
    };
    page_rows.into_iter().flat_map(cut).collect()
}

/// Rows of the pages of so many rows of segments.
fn cut_segments(sources: &[Arc<SegmentFile>], rows: usize) -> Result<Vec<u32>> {
    let all: u64 = sources.iter().map(|segment| segment.rows()).sum();
    let mut widest = 0;
    for column in 0..sources[0].column_count() {
        let bytes = |segment: &Arc<SegmentFile>| -> Result<u64> {
            Ok(segment.column(column)?.index().pages.iter().map(|page| page.bytes).sum())
        };
        let bytes: Result<Vec<u64>> = sources.iter().map(bytes).collect();
        widest = bytes?.iter().sum::<u64>().max(widest);
    }
    Ok(cut_pages(rows, all, widest))
}

/// Rows of the pages of so many rows: whole blocks, and no page over [`PAGE_BYTES`] by much, where a column takes at most so many
/// bytes in so many rows.
pub(super) fn cut_pages(rows: usize, all: u64, widest: u64) -> Vec<u32> {
    let block = BLOCK as u64;
    let fitting = (PAGE_BYTES * all.max(1) / widest.max(1)).min(PAGE_ROWS_MAX) / block * block;
    let page = fitting.max(block) as usize;
    let starts = (0..rows).step_by(page);
    starts.map(|start| page.min(rows - start) as u32).collect()
}

/// A column of some segments with other rows.
fn reorder_column(
    sources: &[Arc<SegmentFile>],
    column: usize,
    gather: Gather<'_>,
) -> Result<PartitionColumn> {
    if let [only] = sources {
        return reorder_stored(only, column, gather);
    }
    let physical = sources[0].physical(column);
    let whole = sources.iter().map(|file| Source::whole(Arc::clone(file)));
    let whole: Vec<Source> = whole.collect();
    reorder(join_column(&whole, &group_pages(&whole)?, column)?, physical, gather)
}

/// A column with other rows.
pub(super) fn reorder(
    joined: PartitionColumn,
    physical: Physical,
    gather: Gather<'_>,
) -> Result<PartitionColumn> {
    let PartitionColumn { dictionary, symbols, pages } = joined;
    let details = pages.iter().map(|page| &page.detail);
    let rows = pages.iter().map(|page| page.rows as usize).sum();
    let given = Given { physical, pages: pages.len(), rows, bounds: bounds(details) };
    let coded = pages.iter().all(|page| page.detail.is_codes());
    if let Some(dictionary) = dictionary.as_ref().filter(|_| coded) {
        let mut codes = Codes::of(dictionary, rows);
        for page in &pages {
            codes.append(&plain_page(page)?.view()?, |code| code)?;
        }
        // The pages are not needed any more, and may be large.
        drop(pages);
        return gather.codes(codes, dictionary.clone());
    }
    let decoders =
        symbols.iter().map(|table| SymbolDecoder::open(table)).collect::<Result<Vec<_>>>()?;
    gather.values(given, |page, out| {
        append_page(&plain_page(&pages[page])?.view()?, dictionary.as_ref(), &decoders, out)
    })
}

/// A column of a segment with other rows; pages are read where they lie.
pub(super) fn reorder_stored(
    segment: &SegmentFile,
    column: usize,
    gather: Gather<'_>,
) -> Result<PartitionColumn> {
    let (pages, rows) = (&segment.column(column)?.index().pages, segment.rows() as usize);
    let coded = pages.iter().all(|page| page.detail.is_codes());
    if let Some(dictionary) = segment.dictionary(column)?.filter(|_| coded) {
        let mut codes = Codes::of(dictionary, rows);
        for page in 0..pages.len() {
            let expanded = ExpandedPages::default();
            codes.append(&segment.page(column, page, &expanded)?, |code| code)?;
        }
        return gather.codes(codes, dictionary.clone());
    }
    let bounds = bounds(pages.iter().map(|page| &page.detail));
    let given = Given { physical: segment.physical(column), pages: pages.len(), rows, bounds };
    gather.values(given, |page, out| segment.decode_page(column, page, out))
}

/// A page that is no run of values.
pub(super) fn plain_page(page: &Page) -> Result<Cow<'_, Page>> {
    Ok(match page.runs {
        Some(_) => Cow::Owned(expand_runs(page)?),
        None => Cow::Borrowed(page),
    })
}
