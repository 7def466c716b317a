//! Places of rows: where a row of a table's version stands, as a number that goes through a plan like any column.
//!
//! ```text
//!   32 bits  number of the segment in the table's version
//!   32 bits  number of the row in the segment
//! ```
//!
//! In a cluster the 10 highest bits below the sign tell the leaf, by its number among those of the table, and the segment has 21.
//!
//! DELETE, UPDATE and MERGE ask a scan for them. No statement can name the column: it is not in the catalog.

use std::ops::Range;
use std::sync::Arc;

use coload_page::bitpack::BLOCK;
use coload_scan::Selection;
use coload_store::{Deletions, TableEntry};
use coload_types::{Error, Result};
use datafusion::arrow::array::{ArrayRef, AsArray, Int64Array};
use datafusion::arrow::datatypes::{DataType, Field, Int64Type, Schema, SchemaRef};

/// Name of the column: one that no table has, as the planner knows names in lower case only.
pub(crate) const PLACE: &str = "Place of the row";
/// Bits of a row's number.
const ROW_BITS: u32 = 32;
/// Bits of a place in a cluster that are of the leaf's own; those above tell the leaf.
const LEAF_BITS: u32 = 53;

/// Adds the column to those of a table.
pub(crate) fn with_place_column(schema: &SchemaRef) -> SchemaRef {
    let place = Arc::new(Field::new(PLACE, DataType::Int64, false));
    let fields = schema.fields().iter().cloned().chain([place]);
    Arc::new(Schema::new(fields.collect::<Vec<_>>()))
}

/// The places of the selected rows of some blocks of a page. `place` is the segment's number and the page's first row.
///
/// # Errors
/// `Limit` when they have more than 32 bits.
pub(crate) fn places_of(
    (segment, start): (usize, u64),
    selection: &Selection,
    blocks: Range<usize>,
) -> Result<ArrayRef> {
    let end = start + selection.rows() as u64;
    if i64::try_from(segment).is_ok_and(|s| s < 1 << (63 - ROW_BITS)) && end <= 1 << ROW_BITS {
        let mut places = Vec::with_capacity(blocks.clone().map(|b| selection.block(b).1).sum());
        let first = ((segment as i64) << ROW_BITS) + start as i64;
        for block in blocks {
            let first = first + (block * BLOCK) as i64;
            selection.block(block).0.for_each(|row| places.push(first + row as i64));
        }
        return Ok(Arc::new(Int64Array::from(places)));
    }
    Err(Error::Limit(format!(
        "cannot change rows of segment {segment} of the table: its rows go to {end}, and only the first 2^32 of a segment \
         can be changed (load with a smaller --segment-rows)"
    )))
}

/// Adds rows by their places; how many of them were not there yet.
///
/// # Errors
/// `Limit` when a segment has too many rows.
pub(crate) fn add_places(
    table: &TableEntry,
    places: &ArrayRef,
    out: &mut Deletions,
) -> Result<u64> {
    let places = numbers(places)?;
    let (mut added, mut rest) = (0, places.values().as_ref());
    while let Some(first) = rest.first() {
        let segment = first >> ROW_BITS;
        let count = rest.iter().take_while(|place| *place >> ROW_BITS == segment).count();
        let (same, after) = rest.split_at(count);
        let entry = usize::try_from(segment).ok().and_then(|s| table.segments.get(s));
        let entry = entry.ok_or_else(|| {
            Error::Refused(format!("internal error: there is no segment {segment}"))
        })?;
        let row = |place: &i64| (place & ((1 << ROW_BITS) - 1)) as u64;
        added += out.extend(entry, same.iter().map(row))?;
        rest = after;
    }
    Ok(added)
}

/// The places of rows of a leaf, told from those of other leaves.
///
/// # Errors
/// `Limit` when the leaf has too many segments, or the table too many leaves.
pub(crate) fn places_on(leaf: usize, places: &ArrayRef) -> Result<ArrayRef> {
    let places = numbers(places)?;
    let fits = |place: &i64| (0..1 << LEAF_BITS).contains(place);
    if leaf >= 1 << (63 - LEAF_BITS) || !places.values().iter().all(fits) {
        return Err(Error::Limit(format!(
            "rows of leaf {leaf} of the table are in too many segments to be changed"
        )));
    }
    let of_leaf = (leaf as i64) << LEAF_BITS;
    Ok(Arc::new(Int64Array::from_iter_values(places.values().iter().map(|place| place | of_leaf))))
}

/// The leaf of a row, and its segment and number there.
pub(crate) fn place_on_leaf(place: i64) -> (usize, u32, u32) {
    let within = place & ((1 << LEAF_BITS) - 1);
    ((place >> LEAF_BITS) as usize, (within >> ROW_BITS) as u32, within as u32)
}

/// Places as numbers.
pub(crate) fn numbers(places: &ArrayRef) -> Result<&Int64Array> {
    places
        .as_primitive_opt::<Int64Type>()
        .ok_or_else(|| Error::Refused("internal error: places of rows are no numbers".into()))
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]
    use super::*;

    #[test]
    fn a_place_on_a_leaf_comes_back_and_one_that_is_too_large_is_refused() {
        let of = |segment: i64, row: i64| (segment << ROW_BITS) + row;
        let places: ArrayRef = Arc::new(Int64Array::from(vec![
            of(0, 0),
            of((1 << 21) - 1, u32::MAX.into()),
            of(7, 9),
        ]));
        for leaf in [0, 5, 1023] {
            let placed = places_on(leaf, &places).unwrap();
            let found: Vec<_> =
                numbers(&placed).unwrap().values().iter().map(|p| place_on_leaf(*p)).collect();
            assert_eq!(found, [(leaf, 0, 0), (leaf, (1 << 21) - 1, u32::MAX), (leaf, 7, 9)]);
        }
        assert!(places_on(1024, &places).is_err());
        let large: ArrayRef = Arc::new(Int64Array::from(vec![of(1 << 21, 0)]));
        assert!(places_on(0, &large).is_err());
    }
}
