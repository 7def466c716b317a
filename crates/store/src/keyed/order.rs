//! Rows of segments into a segment in the order of their keys.

use std::path::Path;
use std::sync::Arc;

use coload_ddl::{Key, Schema};
use coload_page::bitpack::BLOCK;
use coload_page::runs::expand_runs;
use coload_page::{
    KeyPart, Page, PageView, SymbolDecoder, SymbolEncoder, encode_codes_u32, shrink_page,
};
use coload_transform::{KeyOrder, PartitionColumn, encode_column, sort_keys};
use coload_types::{Bitmap, Error, Physical, Plain, Result, Values};

use super::conflicts::{Keyed, twice_among};
use super::keys::{Float, float, key_of_row, value_of_row};
use super::newest::newness;
use super::origin::Origin;
use super::pages::read_codes;
use super::read_keys;
use super::texts::Texts;
use super::tree::TreeKey;
use crate::join::{Source, group_pages, join_column};
use crate::on_conflict::OnConflict;
use crate::retype::{copy_column, drop_unused};
use crate::{ColumnStats, FinishedColumn, SegmentFile, SegmentSummary, SegmentWriter, append_page};

/// Most rows of a page.
const PAGE_ROWS_MAX: u64 = 1 << 16;
/// Bytes that the pages of a column should have at most.
const PAGE_BYTES: u64 = 4 << 20;

/// What became of a segment whose rows were to be in order.
pub(crate) struct Put {
    /// The other file that they are in, and the rows of the first one that they were; `None` where they stayed.
    pub anew: Option<(SegmentSummary, Vec<FinishedColumn>, Vec<u32>)>,
    /// The bounds of the first column of the key, where they are known.
    pub first_stats: Option<ColumnStats>,
}

/// Puts the rows of a segment in order, if need be into a file at `path`, and leaves those out that give way to others of the
/// segment.
///
/// # Errors
/// `Invalid` when a key comes twice and may not, `Corrupt` when the segment is not what was written, `Limit` when it has too many
/// rows, `Unavailable` when the disk fails.
pub(crate) fn order_segment(
    segment: &Arc<SegmentFile>,
    of: Keyed<'_>,
    origin: &Origin,
    path: &Path,
    threads: usize,
) -> Result<Put> {
    let of_key = |part: (&KeyPart, &usize)| part.0.column as usize == *part.1;
    if segment.tree_parts().is_some_and(|parts| {
        parts.len() == of.key.columns().len() && parts.iter().zip(of.key.columns()).all(of_key)
    }) {
        // Its tree was built of keys in order, each once.
        let order = KeyOrder { rows: None, repeated: Vec::new() };
        return Ok(Put { anew: None, first_stats: first_key_stats(segment, of, &order)? });
    }
    let keys = read_sort_keys(segment, of.schema, of.key)?;
    let order = sort_keys(&keys)?;
    // They may be most of the segment.
    drop(keys);
    let first_stats = first_key_stats(segment, of, &order)?;
    let rows = match order.repeated.first().filter(|_| of.key.is_unique()) {
        None => order.rows,
        Some(place) => match choose_rows(segment, of, &order)? {
            None => return Err(comes_twice(segment, of, origin, (&order, *place as usize))?),
            chosen => chosen,
        },
    };
    let Some(rows) = rows else { return Ok(Put { anew: None, first_stats }) };
    let key = TreeKey::of(of.schema, Some(of.key));
    let (summary, columns) = write_in_order(&[Arc::clone(segment)], &rows, (path, key), threads)?;
    Ok(Put { anew: Some((summary, columns, rows)), first_stats })
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

/// One row of each key, in order, by what is to happen to keys that come twice; `None` when they are an error.
fn choose_rows(segment: &SegmentFile, of: Keyed<'_>, order: &KeyOrder) -> Result<Option<Vec<u32>>> {
    let mut values = None;
    match of.on_conflict {
        OnConflict::Error | OnConflict::ReplaceOnce => return Ok(None),
        OnConflict::Ignore | OnConflict::Replace => {}
        OnConflict::Newest(column) => {
            let mut plain = Plain::empty(segment.physical(column));
            for page in 0..segment.page_rows().len() {
                segment.decode_page(column, page, &mut plain)?;
            }
            segment.check()?;
            values = Some((plain, float(of.schema, column)));
        }
    }
    let value = |(plain, float): &(Plain, Option<Float>), row: u32| {
        plain.get(row as usize).map(|value| newness(value, *float))
    };
    let takes_place = |last: u32, row: u32| match &values {
        Some(values) => value(values, row) >= value(values, last),
        None => of.on_conflict == OnConflict::Replace,
    };
    let count = segment.rows() as usize;
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
    (path, key): (&Path, Option<TreeKey>),
    threads: usize,
) -> Result<(SegmentSummary, Vec<FinishedColumn>)> {
    let all: u64 = sources.iter().map(|segment| segment.rows()).sum();
    let page_rows = cut_pages(sources, rows.len(), all)?;
    let writer = SegmentWriter::create(path)?.with_key(key);
    let width = sources[0].column_count();
    let mut columns = Vec::with_capacity(width);
    let numbers: Vec<usize> = (0..width).collect();
    let make = |column: usize| -> Result<PartitionColumn> {
        let made = reorder_column(sources, column, rows, &page_rows)?;
        // Values that no row has any more are none of the dictionary.
        if (rows.len() as u64) < all { drop_unused(made) } else { Ok(made) }
    };
    for batch in numbers.chunks(threads.max(1)) {
        // The places of columns in the file follow their order, whoever made them.
        let made: Vec<Result<PartitionColumn>> = std::thread::scope(|scope| {
            let make = &make;
            let (last, others) = match batch.split_last() {
                Some((last, others)) => (*last, others),
                None => return Vec::new(),
            };
            let others: Vec<_> =
                others.iter().map(|column| scope.spawn(move || make(*column))).collect();
            let last = make(last);
            let joined = others.into_iter().map(|made| {
                made.join().unwrap_or_else(|_| {
                    Err(Error::Unavailable("a thread that orders a column failed".into()))
                })
            });
            joined.chain([last]).collect()
        });
        for (column, made) in batch.iter().zip(made) {
            columns.push(writer.write_column(made?, sources[0].physical(*column))?);
        }
    }
    sources.iter().try_for_each(|source| source.check())?;
    let summary = writer.finish(columns.clone(), page_rows)?;
    Ok((summary, columns))
}

/// Rows of the pages of so many rows: whole blocks, and no page over [`PAGE_BYTES`] by much.
fn cut_pages(sources: &[Arc<SegmentFile>], rows: usize, all: u64) -> Result<Vec<u32>> {
    let mut widest = 0;
    for column in 0..sources[0].column_count() {
        let bytes = |segment: &Arc<SegmentFile>| -> Result<u64> {
            Ok(segment.column(column)?.index().pages.iter().map(|page| page.bytes).sum())
        };
        let bytes: Result<Vec<u64>> = sources.iter().map(bytes).collect();
        widest = bytes?.iter().sum::<u64>().max(widest);
    }
    let block = BLOCK as u64;
    let fitting = (PAGE_BYTES * all.max(1) / widest.max(1)).min(PAGE_ROWS_MAX) / block * block;
    let page = fitting.max(block) as usize;
    let starts = (0..rows).step_by(page);
    Ok(starts.map(|start| page.min(rows - start) as u32).collect())
}

/// A column of some segments with other rows.
fn reorder_column(
    sources: &[Arc<SegmentFile>],
    column: usize,
    rows: &[u32],
    page_rows: &[u32],
) -> Result<PartitionColumn> {
    let physical = sources[0].physical(column);
    let given = match sources {
        [only] => copy_column(only, column)?,
        _ => {
            let whole = sources.iter().map(|file| Source::whole(Arc::clone(file)));
            let whole: Vec<Source> = whole.collect();
            join_column(&whole, &group_pages(&whole)?, column)?
        }
    };
    let coded = given.dictionary.is_some() && given.pages.iter().all(|p| p.detail.is_codes());
    if coded {
        return reorder_codes(given, rows, page_rows);
    }
    let decoders =
        given.symbols.iter().map(|table| SymbolDecoder::open(table)).collect::<Result<Vec<_>>>()?;
    let values = match physical {
        Physical::Bytes => {
            let texts = Texts::decode(&given, &decoders)?;
            // The pages are not needed any more, and may be large.
            drop(given);
            let encoder = texts.train(rows);
            let pages = cut(rows, page_rows).map(|rows| texts.page(rows, encoder.as_ref()));
            let pages = pages.collect::<Result<_>>()?;
            let symbols = encoder.iter().map(SymbolEncoder::table).collect();
            return Ok(PartitionColumn { dictionary: None, symbols, pages });
        }
        Physical::Int | Physical::Wide => decode_numbers(&given, &decoders, physical)?,
    };
    let pages = cut(rows, page_rows).map(|rows| {
        let picked = match &values.values {
            Values::Int(from) => Values::Int(rows.iter().map(|row| from[*row as usize]).collect()),
            Values::Wide(from) => {
                Values::Wide(rows.iter().map(|row| from[*row as usize]).collect())
            }
            Values::Bytes(_) => return Err(Error::Corrupt("text in a column of numbers".into())),
        };
        let nulls = pick_nulls(values.nulls.as_ref(), rows);
        shrink_page(encode_column(&Plain { values: picked, nulls }, None)?)
    });
    let pages = pages.collect::<Result<_>>()?;
    Ok(PartitionColumn { dictionary: None, symbols: Vec::new(), pages })
}

/// The rows of each page.
fn cut<'a>(rows: &'a [u32], page_rows: &'a [u32]) -> impl Iterator<Item = &'a [u32]> {
    page_rows.iter().scan(0, move |start, count| {
        let page = *start..*start + *count as usize;
        *start = page.end;
        Some(&rows[page])
    })
}

pub(super) fn pick_nulls(nulls: Option<&Bitmap>, rows: &[u32]) -> Option<Bitmap> {
    let nulls = nulls?;
    let mut picked = Bitmap::zeros(rows.len());
    let mut any = false;
    for (place, row) in rows.iter().enumerate() {
        if nulls.get(*row as usize) {
            picked.set(place);
            any = true;
        }
    }
    any.then_some(picked)
}

/// A page that is no run of values.
pub(super) fn plain_page(page: &Page) -> Result<std::borrow::Cow<'_, Page>> {
    Ok(match page.runs {
        Some(_) => std::borrow::Cow::Owned(expand_runs(page)?),
        None => std::borrow::Cow::Borrowed(page),
    })
}

fn reorder_codes(
    given: PartitionColumn,
    rows: &[u32],
    page_rows: &[u32],
) -> Result<PartitionColumn> {
    let null = given.dictionary.as_ref().map_or(0, |dictionary| dictionary.len() as u32);
    let mut codes: Vec<u32> = Vec::with_capacity(given.pages.iter().map(|p| p.rows as usize).sum());
    let mut block = [0; BLOCK];
    for page in &given.pages {
        let page = plain_page(page)?;
        let PageView::Codes(view) = page.view()? else {
            return Err(Error::Corrupt("values in a column of codes".into()));
        };
        for b in 0..view.rows.div_ceil(BLOCK) {
            let count = view.unpack(b, &mut block);
            codes.extend_from_slice(&block[..count]);
        }
    }
    let mut picked = Vec::with_capacity(PAGE_ROWS_MAX as usize);
    let pages = cut(rows, page_rows).map(|rows| {
        picked.clear();
        picked.extend(rows.iter().map(|row| codes[*row as usize]));
        shrink_page(encode_codes_u32(&picked, null))
    });
    let pages = pages.collect::<Result<_>>()?;
    Ok(PartitionColumn { dictionary: given.dictionary, symbols: Vec::new(), pages })
}

fn decode_numbers(
    given: &PartitionColumn,
    decoders: &[SymbolDecoder],
    physical: Physical,
) -> Result<Plain> {
    let mut plain = Plain::empty(physical);
    for page in &given.pages {
        append_page(&plain_page(page)?.view()?, given.dictionary.as_ref(), decoders, &mut plain)?;
    }
    Ok(plain)
}
