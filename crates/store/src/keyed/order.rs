//! Rows of segments into a segment in the order of their keys.

use std::sync::{Arc, OnceLock};

use coload_ddl::{Key, Schema};
use coload_space::Space;
use coload_transform::{KeyOrder, PartitionColumn};
use coload_types::{Error, Physical, Plain, Result};

use super::conflicts::{Keyed, twice_among};
use super::fields::{Field, gather_fields, greatest_of};
use super::gather::{Form, Gather, GivenColumns, TakePart, gather_columns};
use super::given::{GivenPages, JoinedPages, StoredPages};
use super::keys::{Float, float, key_of_row, value_of_row};
use super::new_pages::{NewPages, SEGMENT_PAGE_ROWS_MAX};
use super::newest::newness;
use super::origin::Origin;
use super::row_order::order_rows;
use super::run_writer::{RUN_PAGE_ROWS_MAX, RunWriter};
use super::sorting::{SortWith, Sorting};
use super::tree::parts_are_of;
use crate::join::{Source, group_pages, join_column};
use crate::on_conflict::OnConflict;
use crate::segment_writer::ColumnParts;
use crate::{ColumnStats, FinishedColumn, SegmentFile, SegmentSummary, SegmentWriter};

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
    (origin, with): (&Origin, SortWith),
) -> Result<RowOrder> {
    if parts_are_of(segment, of.key) {
        // Its tree was built of keys in order, each once.
        let order = KeyOrder { rows: None, repeated: Vec::new() };
        return Ok(RowOrder { rows: None, first_stats: first_key_stats(segment, of, &order)? });
    }
    let order = order_rows(segment, (of.schema, of.key), with)?;
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
        OnConflict::Error | OnConflict::ReplaceOnce | OnConflict::IgnoreUnique(_) => {
            return Ok(None);
        }
        OnConflict::Ignore | OnConflict::IgnoreKey => None,
        OnConflict::Reject | OnConflict::Replace => None,
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
    (space, with): (&dyn Space, SortWith),
) -> Result<(SegmentSummary, Vec<FinishedColumn>)> {
    let (columns, pages) = match sources {
        [only] => write_columns(&**only, rows, writer, (space, with))?,
        all => write_columns(&Joined(all), rows, writer, (space, with))?,
    };
    sources.iter().try_for_each(|source| source.check())?;
    let summary = writer.finish(columns.clone(), pages)?;
    Ok((summary, columns))
}

/// Writes rows of columns, in the order given, into a segment; gives its columns and the rows of its pages.
pub(super) fn write_columns(
    given: &(impl GivenColumns + Sync),
    rows: &[u32],
    writer: &SegmentWriter,
    (space, SortWith { threads, memory }): (&dyn Space, SortWith),
) -> Result<(Vec<FinishedColumn>, Vec<u32>)> {
    let pages = &NewPages::cut(given, rows, (SEGMENT_PAGE_ROWS_MAX, memory))?;
    let (form, places) = (Form::Segment, &OnceLock::new());
    let gather = Gather { rows, pages, form, space, places, threads };
    let mut columns = ColumnParts::new(writer);
    gather_columns(given, gather, |column, part| columns.put(column, part, given.shape(column)))?;
    Ok((columns.finish(), pages.rows.clone()))
}

/// Writes rows of a segment, in the order given, as a run.
///
/// # Errors
/// As those of [`order_segment`]; those of the spaces.
pub(crate) fn write_run_in_order(
    segment: &Arc<SegmentFile>,
    rows: &[u32],
    (schema, key): (&Schema, &Key),
    Sorting { spaces, with, .. }: &Sorting,
) -> Result<RunWriter> {
    let pages = &NewPages::cut(&**segment, rows, (RUN_PAGE_ROWS_MAX.into(), with.memory))?;
    let mut run = RunWriter::create(&*spaces.runs, (schema, key), &pages.rows)?;
    let (form, space, places) = (Form::Run, &*spaces.sort, &OnceLock::new());
    let gather = Gather { rows, pages, form, space, places, threads: with.threads };
    gather_columns(&**segment, gather, |column, part| {
        run.put_part(column, part, segment.physical(column))
    })?;
    segment.check()?;
    Ok(run)
}

/// The columns of a segment; pages are read where they lie.
impl GivenColumns for SegmentFile {
    fn width(&self) -> usize {
        self.column_count()
    }

    fn greatest(&self, column: usize) -> Result<Option<u64>> {
        let values = self.dictionary(column)?.map(|dictionary| dictionary.len() as u64);
        Ok(greatest_of(&StoredPages::open(self, column)?, values))
    }

    fn field(&self, column: usize) -> Result<Option<Field<'_>>> {
        Ok(Field::of(StoredPages::open(self, column)?, self.dictionary(column)?))
    }

    fn values(&self, column: usize, gather: Gather<'_>, take: TakePart<'_>) -> Result<()> {
        gather.values(&StoredPages::open(self, column)?, take)
    }

    fn bytes(&self, column: usize) -> Result<(u64, u64)> {
        Ok((StoredPages::open(self, column)?.all_bytes(), self.rows()))
    }

    fn lengths(&self, column: usize) -> Result<Vec<u32>> {
        StoredPages::open(self, column)?.lengths()
    }

    fn shape(&self, column: usize) -> Physical {
        self.physical(column)
    }
}

/// The columns of some segments, one after the other.
struct Joined<'a>(&'a [Arc<SegmentFile>]);

impl GivenColumns for Joined<'_> {
    fn width(&self) -> usize {
        self.0[0].column_count()
    }

    fn greatest(&self, _: usize) -> Result<Option<u64>> {
        Ok(None)
    }

    fn field(&self, _: usize) -> Result<Option<Field<'_>>> {
        Ok(None)
    }

    fn bytes(&self, column: usize) -> Result<(u64, u64)> {
        self.0.iter().try_fold((0, 0), |(bytes, rows), segment| {
            let (more, more_rows) = GivenColumns::bytes(&**segment, column)?;
            Ok((bytes + more, rows + more_rows))
        })
    }

    fn lengths(&self, column: usize) -> Result<Vec<u32>> {
        let lengths = self.0.iter().map(|segment| segment.lengths(column));
        Ok(lengths.collect::<Result<Vec<_>>>()?.concat())
    }

    fn shape(&self, column: usize) -> Physical {
        self.0[0].physical(column)
    }

    fn values(&self, column: usize, gather: Gather<'_>, take: TakePart<'_>) -> Result<()> {
        let whole = self.0.iter().map(|file| Source::whole(Arc::clone(file)));
        let whole: Vec<Source> = whole.collect();
        let joined = join_column(&whole, &group_pages(&whole)?, column)?;
        reorder(&joined, self.0[0].physical(column), gather, take)
    }
}

/// Gives a column with other rows, in parts.
pub(super) fn reorder(
    joined: &PartitionColumn,
    physical: Physical,
    gather: Gather<'_>,
    take: TakePart<'_>,
) -> Result<()> {
    let pages = JoinedPages::open(joined, physical)?;
    let Some(field) = Field::of(pages, joined.dictionary.as_ref()) else {
        return gather.values(&JoinedPages::open(joined, physical)?, take);
    };
    gather_fields(&[field], gather)?.into_iter().try_for_each(take)
}
