//! A segment of a load whose rows are in the order of the table's key, for the manifest.

use std::borrow::Cow;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use coload_space::Space;
use coload_types::{Physical, Result};

use super::Keyed;
use super::order::{sort_segment, write_in_order};
use super::origin::{LoadRows, Origin, RowNumbers, order_path, write_load_order, write_order};
use super::sorting::SortWith;
use crate::{ColumnStats, FinishedColumn, SegmentEntry, SegmentFile, SegmentWriter};

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
    from: &Path,
    (new_name, writer): (String, impl FnOnce() -> Result<(SegmentWriter, PathBuf)>),
    (origin, space, with): (&mut Origin, &dyn Space, SortWith),
) -> Result<OrderedSegment> {
    let file = Arc::new(SegmentFile::open(from)?);
    let order = sort_segment(&file, of, (origin, with))?;
    let mut columns = None;
    if let Some(rows) = order.rows {
        let (writer, to) = writer()?;
        let sources = std::slice::from_ref(&file);
        let (summary, new_columns) = write_in_order(sources, &rows, &writer, (space, with))?;
        if of.key.is_unique() || of.tells_rows {
            let numbers = numbers_of(origin, &file, &rows)?;
            origin.order = Some((order_path(&to), RowNumbers::OfSegment));
            write_order(&order_path(&to), &numbers)?;
        }
        if summary.rows < entry.rows {
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
    set_first_stats(&mut entry, of, order.first_stats);
    Ok(OrderedSegment { entry, columns })
}

/// Which rows of a segment, as it was first written, some rows of it are.
///
/// # Errors
/// `Unavailable` when the file with them cannot be read.
pub(super) fn numbers_of<'a>(
    origin: &Origin,
    segment: &SegmentFile,
    rows: &'a [u32],
) -> Result<Cow<'a, [u32]>> {
    let Some(numbers) = origin.numbers(segment.rows())? else { return Ok(Cow::Borrowed(rows)) };
    Ok(rows.iter().map(|row| numbers[*row as usize]).collect())
}

/// Writes which rows of the load the rows of a segment were, and says where.
pub(super) fn put_load_order(path: &Path, rows: &[u32], of: &LoadRows) -> Result<Origin> {
    let path = order_path(path);
    write_load_order(&path, rows, of)?;
    let numbers = match of {
        // Rows of the load are counted as those of a segment that begins with it.
        LoadRows::Short(_) => RowNumbers::OfSegment,
        LoadRows::Long(_) => RowNumbers::OfLoad,
    };
    Ok(Origin { before: 0, order: Some((path, numbers)) })
}

/// Sets the bounds of the first column of the key, if they are known.
pub(super) fn set_first_stats(entry: &mut SegmentEntry, of: Keyed<'_>, stats: Option<ColumnStats>) {
    let first = entry.columns.get_mut(of.key.columns()[0]);
    if let (Some(stats), Some(known)) = (stats, first) {
        *known = stats;
    }
}

/// Makes the statistics of a column those of a part of its rows.
fn left_out(known: &mut ColumnStats, part: &FinishedColumn) {
    match part.physical {
        Physical::Bytes => known.nulls = part.stats.nulls,
        Physical::Int | Physical::Wide => known.clone_from(&part.stats),
    }
}
