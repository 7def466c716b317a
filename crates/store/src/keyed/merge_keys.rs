//! The order of rows of runs that become a segment.
//!
//! Keys that are numbers are packed page by page, and sorted in buckets by all threads. Others are bytes ([`super::byte_order`]).

use std::ops::Range;

use coload_page::PageView;
use coload_threads::relieve;
use coload_transform::{Divided, KeyOrder, PackedKeys, SORTED_ROWS_MAX};
use coload_types::{Bitmap, Dictionary, Error, Plain, Result, Values};

use super::bounds::bounds;
use super::byte_order::{KeyForm, KeyRows, KeysAre, order_by_bytes};
use super::fields::{for_each_codes, for_each_distances};
use super::merge_runs::Slice;
use super::row_order::sort_divided;
use super::run::{OpenColumn, OpenKey};
use super::sorting::SortWith;

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
pub(super) fn sort_slices(slices: &[Slice<'_>], with: SortWith) -> Result<SortedSlices> {
    let rows: u64 = slices.iter().map(|slice| slice.rows.end - slice.rows.start).sum();
    if rows > SORTED_ROWS_MAX as u64 {
        return Err(Error::Limit(format!(
            "{rows} rows are to be merged at once, over {SORTED_ROWS_MAX}; lower --memory"
        )));
    }
    relieve();
    if let Some(keys) = pack_keys(slices, rows as usize)? {
        let order = match keys.divide() {
            Divided::InOrder(order) => order,
            Divided::Buckets(buckets) => sort_divided(&buckets, rows as usize, with.threads)?,
        };
        return Ok(SortedSlices { order, nulls: 0 });
    }
    let keys = SliceKeys::open(slices)?;
    Ok(SortedSlices { order: order_by_bytes(&keys, with)?, nulls: keys.nulls()? })
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

/// The keys of slices, those of one after those of the one before.
struct SliceKeys<'s, 'r> {
    slices: &'s [Slice<'r>],
    open: Vec<OpenKey<'s>>,
    /// The slice of each page, and which page of its run it is.
    pages: Vec<(usize, usize)>,
    form: KeyForm,
}

impl<'s, 'r> SliceKeys<'s, 'r> {
    fn open(slices: &'s [Slice<'r>]) -> Result<Self> {
        let open = slices.iter().map(|slice| slice.run.open_key(slice.pages.clone()));
        let numbered = slices.iter().enumerate();
        let pages = numbered
            .flat_map(|(number, slice)| slice.pages.clone().map(move |page| (number, page)));
        let columns = slices.first().map_or(0, |slice| slice.run.key.len());
        let nulls_in = |column: usize| {
            slices.iter().any(|slice| slice.run.nulls_of_key(column, slice.pages.clone()))
        };
        Ok(SliceKeys {
            slices,
            open: open.collect::<Result<_>>()?,
            pages: pages.collect(),
            form: KeyForm {
                nullable: (0..columns).map(nulls_in).collect(),
                keys_are: KeysAre::Compared,
            },
        })
    }

    /// Rows whose first column is NULL.
    fn nulls(&self) -> Result<usize> {
        let mut nulls = 0;
        for (number, page) in &self.pages {
            let slice = &self.slices[*number];
            if slice.run.nulls_of_key(0, *page..page + 1) {
                let columns = self.open[*number].decode(*page..page + 1)?;
                let is_null = |row: &usize| columns.first().is_some_and(|c| c.is_null(*row));
                nulls += slice.rows_of(*page).filter(is_null).count();
            }
        }
        Ok(nulls)
    }
}

impl KeyRows for SliceKeys<'_, '_> {
    fn pages(&self) -> usize {
        self.pages.len()
    }

    fn rows_of(&self, page: usize) -> usize {
        let (slice, page) = self.pages[page];
        self.slices[slice].rows_of(page).len()
    }

    fn bytes(&self) -> u64 {
        let of = |slice: &Slice<'_>| -> u64 {
            let columns = slice.run.key.iter();
            columns.map(|(column, _)| slice.run.bytes(*column, slice.pages.clone())).sum()
        };
        self.slices.iter().map(of).sum()
    }

    fn for_each_key(&self, page: usize, each: &mut dyn FnMut(&[u8]) -> Result<()>) -> Result<()> {
        let (slice, page) = self.pages[page];
        let columns = self.open[slice].decode(page..page + 1)?;
        self.form.for_each(&columns, self.slices[slice].rows_of(page), each)
    }
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
