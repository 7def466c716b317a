//! The order of rows of runs that become a segment.
//!
//! Keys that are numbers are packed page by page, and sorted in buckets by all threads. Others are read whole, and sorted by parts
//! that cuts made of the segment.

use std::ops::Range;

use coload_page::PageView;
use coload_threads::in_order;
use coload_transform::{Divided, KeyOrder, PackedKeys, SORTED_ROWS_MAX, sort_keys};
use coload_types::{Bitmap, Dictionary, Error, Plain, Result, Values};

use super::bounds::bounds;
use super::fields::{for_each_codes, for_each_distances};
use super::merge_runs::{Runs, Slice};
use super::ranges::Cut;
use super::row_order::sort_divided;
use super::run::OpenColumn;

/// Rows of slices in the order of their keys.
pub(super) struct SortedSlices {
    /// Rows are counted through all slices.
    pub order: KeyOrder,
    /// Rows whose first column of the key is NULL; they are last.
    pub nulls: usize,
}

/// Sorts the rows of slices by their keys.
///
/// # Errors
/// `Corrupt` when a run is not what was written; `Limit` when there are too many rows.
pub(super) fn sort_slices(
    slices: &[Slice<'_>],
    cuts: &[Cut],
    given: &Runs<'_>,
    threads: usize,
) -> Result<SortedSlices> {
    let rows: u64 = slices.iter().map(|slice| slice.rows.end - slice.rows.start).sum();
    if rows > SORTED_ROWS_MAX as u64 {
        return Err(Error::Limit(format!(
            "{rows} rows are to be merged at once, over {SORTED_ROWS_MAX}; lower --memory"
        )));
    }
    if let Some(keys) = pack_keys(slices, rows as usize)? {
        let order = match keys.divide() {
            Divided::InOrder(order) => order,
            Divided::Buckets(buckets) => sort_divided(&buckets, rows as usize, threads)?,
        };
        return Ok(SortedSlices { order, nulls: 0 });
    }
    sort_parts(slices, cuts, given, threads)
}

/// The keys of all rows as numbers; `None` where they are none, or have too many bits.
fn pack_keys(slices: &[Slice<'_>], rows: usize) -> Result<Option<PackedKeys>> {
    let Some(first) = slices.first() else { return Ok(None) };
    let (mut ranges, mut columns) = (Vec::new(), Vec::new());
    for (column, float) in &first.run.key {
        if float.is_some() {
            return Ok(None);
        }
        let (mut least, mut greatest) = (i64::MAX, i64::MIN);
        let mut open = Vec::with_capacity(slices.len());
        for slice in slices {
            let column = slice.run.open_column(*column, slice.pages.clone())?;
            let Some(bounds) = bounds_of(&column, slice) else { return Ok(None) };
            (least, greatest) = (least.min(bounds.0), greatest.max(bounds.1));
            open.push(column);
        }
        ranges.push((least, greatest));
        columns.push((least, open));
    }
    let Some(mut keys) = PackedKeys::new(rows, &ranges) else { return Ok(None) };
    for (number, (least, open)) in columns.iter().enumerate() {
        let mut row = 0;
        let mut put = |distances: &[u64]| {
            keys.put(number, row, distances);
            row += distances.len();
            Ok(())
        };
        for (slice, column) in slices.iter().zip(open) {
            let distances: Vec<u64> = match column.dictionary.as_ref().map(Dictionary::values) {
                Some(Values::Int(values)) => {
                    values.iter().map(|value| value.wrapping_sub(*least) as u64).collect()
                }
                _ => Vec::new(),
            };
            // A code of no value is one that was not written, as its page has another checksum then.
            let distance = |code: u32| distances.get(code as usize).copied().unwrap_or(0);
            for page in slice.pages.clone() {
                let within = slice.rows_of(page);
                column.with_view(page, |view| match view {
                    PageView::Codes(_) => for_each_codes(view, within, distance, &mut put),
                    _ => for_each_distances(view, within, (*least, None), &mut put),
                })?;
            }
        }
    }
    Ok(Some(keys))
}

/// The least and the greatest number of a column of a slice; `None` when it has others, or NULL.
fn bounds_of(column: &OpenColumn<'_>, slice: &Slice<'_>) -> Option<(i64, i64)> {
    let metas = || slice.pages.clone().map(|page| column.meta(page));
    if metas().any(|meta| meta.nulls > 0) {
        return None;
    }
    match column.dictionary.as_ref().map(Dictionary::values) {
        Some(Values::Int(values)) if metas().all(|meta| meta.detail.is_codes()) => {
            values.first().copied().zip(values.last().copied())
        }
        _ => bounds(metas().map(|meta| &meta.detail)),
    }
}

/// Sorts keys of any kind, each part between two cuts by a thread.
fn sort_parts(
    slices: &[Slice<'_>],
    cuts: &[Cut],
    given: &Runs<'_>,
    threads: usize,
) -> Result<SortedSlices> {
    let mut keys: Vec<Vec<Plain>> = Vec::with_capacity(slices.len());
    let decode = |number: usize| {
        let Slice { run, pages, .. } = &slices[number];
        run.open_key(pages.clone())?.decode(pages.clone())
    };
    in_order(slices.len(), threads, decode, |_, key| {
        keys.push(key);
        Ok::<(), Error>(())
    })?;
    let nulls = slices.iter().zip(&keys).map(|(slice, keys)| {
        let Some(nulls) = keys.first().and_then(|first| first.nulls.as_ref()) else { return 0 };
        slice.rows_within(slice.rows.clone()).filter(|row| nulls.get(*row)).count()
    });
    let nulls = nulls.sum();
    let parts: Vec<&[Cut]> = cuts.windows(2).collect();
    let mut order = KeyOrder { rows: Some(Vec::new()), repeated: Vec::new() };
    let sort = |part: usize| sort_part(slices, &keys, (given, parts[part]));
    in_order(parts.len(), threads, sort, |_, part| {
        order.append(part);
        Ok::<(), Error>(())
    })?;
    Ok(SortedSlices { order, nulls })
}

/// Sorts what is between two cuts.
fn sort_part(
    slices: &[Slice<'_>],
    keys: &[Vec<Plain>],
    (given, cuts): (&Runs<'_>, &[Cut]),
) -> Result<KeyOrder> {
    let mut columns: Vec<Plain> = Vec::new();
    let mut numbers: Vec<u32> = Vec::new();
    for (slice, keys) in slices.iter().zip(keys) {
        let run = given.runs.iter().position(|run| std::ptr::eq(run, slice.run)).unwrap_or(0);
        let rows = cuts[0][run].max(slice.rows.start)..cuts[1][run].min(slice.rows.end);
        if rows.is_empty() {
            continue;
        }
        let number = slice.base + (rows.start - slice.rows.start);
        numbers.extend((number..).take((rows.end - rows.start) as usize).map(|row| row as u32));
        let rows = slice.rows_within(rows);
        for (place, key) in keys.iter().enumerate() {
            if columns.len() <= place {
                columns.push(Plain::empty(key.values.physical()));
            }
            append_rows(&mut columns[place], key, rows.clone())?;
        }
    }
    let mut order = sort_keys(&columns)?;
    order.rows = Some(match order.rows {
        None => numbers,
        Some(rows) => rows.into_iter().map(|row| numbers[row as usize]).collect(),
    });
    Ok(order)
}

/// Appends rows of a column to another.
pub(super) fn append_rows(to: &mut Plain, from: &Plain, rows: Range<usize>) -> Result<()> {
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
