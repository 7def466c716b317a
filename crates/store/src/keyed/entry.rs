//! A segment of a load whose rows are in the order of the table's key, for the manifest.

use std::path::Path;
use std::sync::Arc;

use coload_types::{Physical, Result};

use super::origin::{Origin, write_order};
use super::{Keyed, Put, order_segment};
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
    let file = Arc::new(SegmentFile::open(from)?);
    let rows_before = entry.rows;
    let Put { anew, first_stats } = order_segment(&file, of, origin, to, threads)?;
    let mut columns = None;
    if let Some((summary, new_columns, rows)) = anew {
        if of.key.is_unique() {
            let path = to.with_extension(ORDER_EXTENSION);
            write_order(&path, &rows)?;
            origin.order = Some(path);
        }
        if summary.rows < rows_before {
            entry.columns.iter_mut().zip(&new_columns).for_each(|(old, new)| left_out(old, new));
        }
        entry = SegmentEntry {
            file: new_name,
            rows: summary.rows,
            deleted: None,
            bytes: summary.bytes,
            seal: Some(summary.seal),
            // Pages of plain text keep no bounds, and those of the segment may be known.
            ..entry
        };
        columns = Some(new_columns);
    }
    let first = entry.columns.get_mut(of.key.columns()[0]);
    if let (Some(stats), Some(known)) = (first_stats, first) {
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
