//! Where keys stand in a segment: by its B+ tree, or by its pages where it has none.

use std::cmp::Ordering;

use coload_ddl::{Key, Schema};
use coload_types::{Result, Value};

use super::keys::float;
use super::pages::KeyPages;
use super::tree::KeySide;
use crate::{ColumnStats, SegmentEntry, SegmentFile};

/// How many rows of a segment, which is in the order of a PRIMARY KEY, come before a side of the keys that begin with these values
/// ([`super::key_values`]), deleted ones among them.
///
/// # Errors
/// `Corrupt` when the segment is not what was written.
pub fn rows_before_key(
    segment: &SegmentFile,
    (schema, key): (&Schema, &Key),
    values: &[Value],
    side: KeySide,
) -> Result<u64> {
    if let Some(rows) = segment.rows_before(values, side)? {
        return Ok(rows);
    }
    let is_before = |pages: &KeyPages<'_>, row: usize| match pages.compare_values(row, values) {
        Ordering::Less => true,
        Ordering::Equal => side == KeySide::After,
        Ordering::Greater => false,
    };
    let mut pages = KeyPages::new(segment, schema, key);
    // The first page whose first row is not before; the rows of the page before it are looked at.
    let (mut low, mut high) = (0, segment.page_rows().len());
    while low < high {
        let middle = low + (high - low) / 2;
        let is_there = pages.open_page(middle)?;
        if !is_there || is_before(&pages, 0) { low = middle + 1 } else { high = middle }
    }
    while let Some(page) = low.checked_sub(1) {
        if pages.open_page(page)? {
            let (mut first, mut last) = (0, pages.rows());
            while first < last {
                let middle = first + (last - first) / 2;
                if is_before(&pages, middle) { first = middle + 1 } else { last = middle }
            }
            return Ok(pages.first_row() + first as u64);
        }
        low = page;
    }
    Ok(0)
}

/// The row that has a key, deleted or not.
///
/// # Errors
/// As [`rows_before_key`].
pub fn row_of_key(
    segment: &SegmentFile,
    of: (&Schema, &Key),
    values: &[Value],
) -> Result<Option<u64>> {
    if segment.tree_parts().is_some() {
        return segment.row_of_key(values);
    }
    let before = rows_before_key(segment, of, values, KeySide::Before)?;
    let after = rows_before_key(segment, of, values, KeySide::After)?;
    Ok((before < after).then_some(before))
}

/// Whether a segment may have keys whose first values are between two; bounds that are not known hold anything.
pub fn may_have_keys(
    entry: &SegmentEntry,
    (schema, key): (&Schema, &Key),
    (low, high): (Option<&Value>, Option<&Value>),
) -> bool {
    let column = key.columns()[0];
    if float(schema, column).is_some() {
        return true;
    }
    let Some(ColumnStats { min, max, .. }) = entry.columns.get(column) else { return true };
    let is_above = low.zip(max.as_ref()).is_some_and(|(low, max)| low > max);
    let is_below = high.zip(min.as_ref()).is_some_and(|(high, min)| high < min);
    !is_above && !is_below
}
