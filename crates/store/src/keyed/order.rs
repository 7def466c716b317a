//! Rows of segments into a segment in the order of their keys.

use std::path::Path;
use std::sync::Arc;

use coload_ddl::{Key, Schema};
use coload_page::bitpack::BLOCK;
use coload_page::runs::expand_runs;
use coload_page::{Page, PageView, SymbolDecoder, SymbolEncoder, encode_codes_u32, shrink_page};
use coload_transform::{KeyOrder, PartitionColumn, encode_column, sort_keys};
use coload_types::{Bitmap, Error, Physical, Plain, Result, Strings, Values};

use super::conflicts::Keyed;
use super::keys::{Float, float};
use super::newest::newness;
use super::read_keys;
use crate::join::{Source, group_pages, join_column};
use crate::on_conflict::OnConflict;
use crate::retype::{copy_column, drop_unused};
use crate::{ColumnStats, FinishedColumn, SegmentFile, SegmentSummary, SegmentWriter, append_page};

/// Most rows of a page.
const PAGE_ROWS_MAX: u64 = 1 << 16;
/// Bytes that the pages of a column should have at most.
const PAGE_BYTES: u64 = 16 << 20;
/// Texts that symbols are made of.
const TRAINED_ROWS: usize = 1 << 14;

/// What became of a segment whose rows were to be in order.
pub(crate) enum Put {
    /// They were: the file is as it was.
    AsItIs,
    /// They are in another file: those of the order, or only some of them, if these are given.
    Anew(SegmentSummary, Vec<FinishedColumn>, Option<Vec<u32>>),
}

/// Puts the rows of a segment in order, if need be into a file at `path`, and leaves those out that give way to others of the
/// segment. Gives the keys in the order of the rows as they were, and that order.
///
/// Where keys that come twice are an error nothing is written: the caller refuses them.
///
/// # Errors
/// `Corrupt` when the segment is not what was written, `Limit` when it has too many rows, `Unavailable` when the disk fails.
pub(crate) fn order_segment(
    segment: &Arc<SegmentFile>,
    of: Keyed<'_>,
    path: &Path,
    threads: usize,
) -> Result<(Put, Vec<Plain>, KeyOrder)> {
    let sources = [Arc::clone(segment)];
    let keys = read_keys(&sources, of.schema, of.key)?;
    let order = sort_keys(&keys)?;
    let chosen = match of.key.is_unique() && !order.repeated.is_empty() {
        true => match choose_rows(segment, of, &order)? {
            None => return Ok((Put::AsItIs, keys, order)),
            chosen => chosen,
        },
        false => None,
    };
    let Some(rows) = chosen.as_deref().or(order.rows.as_deref()) else {
        return Ok((Put::AsItIs, keys, order));
    };
    let (summary, columns) = write_in_order(&sources, rows, path, threads)?;
    Ok((Put::Anew(summary, columns, chosen), keys, order))
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

/// The bounds of the first column of a key, which are known where the rows are in order. Floats are there as what stands
/// for them, which is no bound.
pub(crate) fn first_key_stats(
    (schema, key): (&Schema, &Key),
    keys: &[Plain],
    order: &KeyOrder,
) -> Option<ColumnStats> {
    let first = keys.first().filter(|_| float(schema, key.columns()[0]).is_none())?;
    let nulls = first.null_count();
    let valued = first.len() - nulls;
    let value = |place: usize| first.get(order.row(place));
    let (min, max) = match valued {
        0 => (None, None),
        _ => (value(0), value(valued - 1)),
    };
    Some(ColumnStats::new(min, max, nulls as u64))
}

/// Writes rows of segments, in the order given, as one segment: `rows` counts through all of them, and may leave some out.
///
/// # Errors
/// As those of [`order_segment`].
pub(crate) fn write_in_order(
    sources: &[Arc<SegmentFile>],
    rows: &[u32],
    path: &Path,
    threads: usize,
) -> Result<(SegmentSummary, Vec<FinishedColumn>)> {
    let all: u64 = sources.iter().map(|segment| segment.rows()).sum();
    let page_rows = cut_pages(sources, rows.len(), all)?;
    let writer = SegmentWriter::create(path)?;
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

fn pick_nulls(nulls: Option<&Bitmap>, rows: &[u32]) -> Option<Bitmap> {
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
fn plain_page(page: &Page) -> Result<std::borrow::Cow<'_, Page>> {
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

/// Texts of a whole column, which may be more than 4 GiB.
struct Texts {
    bytes: Vec<u8>,
    ends: Vec<usize>,
    nulls: Option<Bitmap>,
}

impl Texts {
    fn decode(given: &PartitionColumn, decoders: &[SymbolDecoder]) -> Result<Self> {
        let mut texts = Texts { bytes: Vec::new(), ends: Vec::new(), nulls: None };
        for page in &given.pages {
            let mut plain = Plain::empty(Physical::Bytes);
            let dictionary = given.dictionary.as_ref();
            append_page(&plain_page(page)?.view()?, dictionary, decoders, &mut plain)?;
            let Plain { values: Values::Bytes(strings), nulls } = plain else {
                return Err(Error::Corrupt("numbers in a column of text".into()));
            };
            let (before, rows) = (texts.bytes.len(), texts.ends.len());
            texts.bytes.extend_from_slice(&strings.bytes);
            texts.ends.extend(strings.ends.iter().map(|end| before + *end as usize));
            if let Some(nulls) = &nulls {
                let all = texts.nulls.get_or_insert_with(|| Bitmap::zeros(rows));
                (0..nulls.len()).for_each(|row| all.push(nulls.get(row)));
            } else if let Some(all) = &mut texts.nulls {
                all.extend_zeros(strings.len());
            }
        }
        Ok(texts)
    }

    fn get(&self, row: usize) -> &[u8] {
        let start = row.checked_sub(1).map_or(0, |before| self.ends[before]);
        &self.bytes[start..self.ends[row]]
    }

    fn pick<'a>(&self, rows: impl Iterator<Item = &'a u32>) -> Result<Strings> {
        let mut strings = Strings::default();
        for row in rows {
            let text = self.get(*row as usize);
            if !strings.has_room(text.len() as u64) {
                return Err(Error::Limit("text of one page over 4 GiB".into()));
            }
            strings.push(text);
        }
        Ok(strings)
    }

    /// Symbols made of some texts from everywhere.
    fn train(&self, rows: &[u32]) -> Option<SymbolEncoder> {
        let step = rows.len().div_ceil(TRAINED_ROWS).max(1);
        let sample = self.pick(rows.iter().step_by(step)).ok()?;
        (!sample.bytes.is_empty()).then(|| SymbolEncoder::train_strings(&[&sample]))
    }

    fn page(&self, rows: &[u32], encoder: Option<&SymbolEncoder>) -> Result<Page> {
        let values = Values::Bytes(self.pick(rows.iter())?);
        let nulls = pick_nulls(self.nulls.as_ref(), rows);
        shrink_page(encode_column(&Plain { values, nulls }, encoder)?)
    }
}
