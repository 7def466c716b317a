//! A segment of a load whose rows are in the order of the table's key, for the manifest.

use std::path::Path;
use std::sync::Arc;

use coload_types::{Physical, Result};

use super::origin::{Origin, write_order};
use super::{Keyed, Put, first_key_stats, key_text, order_segment, twice_among};
use crate::{ColumnStats, FinishedColumn, SegmentEntry, SegmentFile};

/// Extension of the file beside a segment that tells where its rows come from.
const ORDER_EXTENSION: &str = "order";

/// A segment of a load whose rows are in the order of the table's key.
#[derive(Debug)]
pub struct OrderedSegment {
    /// For the manifest.
    pub entry: SegmentEntry,
    /// Its columns, if it was written anew.
    pub columns: Option<Vec<FinishedColumn>>,
}

/// Puts the rows of a segment in order, if need be in another file of another name. The order is known to be that of the
/// table's key then, and the bounds of its first column are exact.
pub(crate) fn put_entry_in_order(
    of: Keyed<'_>,
    mut entry: SegmentEntry,
    (from, to): (&Path, &Path),
    new_name: String,
    (origin, threads): (&mut Origin, usize),
) -> Result<OrderedSegment> {
    let Keyed { table, schema, key, .. } = of;
    let file = Arc::new(SegmentFile::open(from)?);
    let (put, keys, order) = order_segment(&file, of, to, threads)?;
    if let (true, Put::AsItIs, Some(place)) = (key.is_unique(), &put, order.repeated.first()) {
        let (row, last) = (order.row(*place as usize), order.row(*place as usize - 1));
        let numbers = (origin.number(last as u64), origin.number(row as u64));
        let text = key_text(&keys, row, schema, key);
        return Err(twice_among((table, schema, key), &text, numbers));
    }
    let columns = match put {
        Put::AsItIs => None,
        Put::Anew(summary, columns, chosen) => {
            if let (true, Some(rows)) = (key.is_unique(), chosen.as_ref().or(order.rows.as_ref())) {
                let path = to.with_extension(ORDER_EXTENSION);
                write_order(&path, rows)?;
                origin.order = Some(path);
            }
            let mut old = std::mem::take(&mut entry.columns);
            if chosen.is_some() {
                old.iter_mut().zip(&columns).for_each(|(old, new)| left_out(old, new));
            }
            entry = SegmentEntry {
                file: new_name,
                rows: summary.rows,
                deleted: None,
                bytes: summary.bytes,
                load: entry.load,
                seal: Some(summary.seal),
                // Pages of plain text keep no bounds, and those of the segment may be known.
                columns: old,
            };
            Some(columns)
        }
    };
    if let (Some(stats), Some(first)) =
        (first_key_stats((schema, key), &keys, &order), key.columns().first())
        && let Some(known) = entry.columns.get_mut(*first)
    {
        *known = stats;
    }
    Ok(OrderedSegment { entry, columns })
}

/// Makes the statistics of a column those of a part of its rows.
fn left_out(known: &mut ColumnStats, part: &FinishedColumn) {
    match part.physical {
        Physical::Bytes => known.nulls = part.stats.nulls,
        Physical::Int | Physical::Wide => known.clone_from(&part.stats),
    }
}
