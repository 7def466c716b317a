//! The order of the rows of a segment by its key.
//!
//! Numbers and codes are packed page by page as they are read, and sorted in buckets by all threads; other keys are read whole.

use std::sync::Arc;

use coload_ddl::{Key, Schema};
use coload_page::PageView;
use coload_threads::in_order;
use coload_transform::{Divided, KeyBuckets, KeyOrder, PackedKeys, SORTED_ROWS_MAX, sort_keys};
use coload_types::{Error, Plain, Result, Values};

use super::bounds::bounds;
use super::fields::{for_each_codes, for_each_distances};
use super::given::{GivenPages, StoredPages};
use super::keys::float;
use super::pages::read_codes;
use super::read_keys;
use crate::SegmentFile;

/// Sorts the rows of a segment by a key.
///
/// # Errors
/// `Invalid` when a PRIMARY KEY has NULL, `Corrupt` when the segment is not what was written, `Limit` when it has too many rows.
pub(super) fn order_rows(
    segment: &Arc<SegmentFile>,
    (schema, key): (&Schema, &Key),
    threads: usize,
) -> Result<KeyOrder> {
    let Some(packed) = pack_keys(segment, schema, key)? else {
        return sort_keys(&read_sort_keys(segment, schema, key)?);
    };
    let buckets = match packed.divide() {
        Divided::InOrder(order) => return Ok(order),
        Divided::Buckets(buckets) => buckets,
    };
    sort_divided(&buckets, segment.rows() as usize, threads)
}

/// The order of so many rows that were divided.
pub(super) fn sort_divided(buckets: &KeyBuckets, rows: usize, threads: usize) -> Result<KeyOrder> {
    let mut order = KeyOrder { rows: Some(Vec::with_capacity(rows)), repeated: Vec::new() };
    let sort = |bucket: usize| Ok(buckets.sort(bucket));
    in_order(buckets.count(), threads, sort, |_, bucket| {
        order.append(bucket);
        Ok::<(), Error>(())
    })?;
    Ok(order)
}

/// The keys of all rows as numbers; `None` where they are none, or have too many bits.
fn pack_keys(segment: &SegmentFile, schema: &Schema, key: &Key) -> Result<Option<PackedKeys>> {
    let rows = segment.rows() as usize;
    if rows > SORTED_ROWS_MAX {
        return Ok(None);
    }
    let (mut ranges, mut columns) = (Vec::new(), Vec::new());
    for column in key.columns() {
        let given = StoredPages::open(segment, *column)?;
        let has_nulls = segment.column(*column)?.index().pages.iter().any(|page| page.nulls > 0);
        let mut details = (0..given.count()).map(|page| given.detail(page));
        let is_coded = details.clone().all(|detail| detail.is_codes());
        let range = match segment.dictionary(*column)? {
            _ if float(schema, *column).is_some() => None,
            // NULL has the code after the last, and is last.
            Some(dictionary) if is_coded && !(has_nulls && key.is_unique()) => {
                Some((0, dictionary.len() as i64))
            }
            _ if has_nulls => None,
            _ => bounds(details.by_ref()),
        };
        let Some(range) = range else { return Ok(None) };
        ranges.push(range);
        columns.push(given);
    }
    let Some(mut keys) = PackedKeys::new(rows, &ranges) else { return Ok(None) };
    for (column, (given, range)) in columns.iter().zip(&ranges).enumerate() {
        let mut row = 0;
        let mut put = |distances: &[u64]| {
            keys.put(column, row, distances);
            row += distances.len();
            Ok(())
        };
        for page in 0..given.count() {
            let within = given.rows_of(page);
            given.with_view(page, &mut |view| match view {
                PageView::Codes(_) => for_each_codes(view, within.clone(), u64::from, &mut put),
                _ => for_each_distances(view, within.clone(), (range.0, None), &mut put),
            })?;
        }
    }
    segment.check()?;
    Ok(Some(keys))
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
