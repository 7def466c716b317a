//! Deletions as part of a change: what they were computed from must be there still.
//!
//! ```text
//!   computed on version v     rows of segments to delete, and new segments
//!   published on version w    w is v, or nothing that counts has changed (`Basis`): both appear in one version
//!                             else nothing appears, and the caller is told (`Changed::Moved`) and computes again
//! ```
//!
//! Two writers that touch the same rows: the first to publish wins, and the other finds these rows gone or deleted. So
//! no row is deleted or replaced twice. A background merge that came between moves rows, and counts as a writer of them.

use std::sync::Arc;

use coload_types::{Error, Result};
use roaring::RoaringBitmap;

use crate::change::missing_table_id;
use crate::deleted::{DeletedEntry, Deletions, Place, read_set};
use crate::directory::Layout;
use crate::manifest::{Manifest, SegmentEntry, TableEntry};

/// What a change was computed from, and has to find when it is published.
#[derive(Debug, Clone, Copy)]
pub enum Basis<'a> {
    /// The rows that are deleted. Others may have come, and others may have gone.
    Rows(&'a TableEntry),
    /// All rows of the table: no row came, none went, and none was moved by a merge.
    Table(&'a TableEntry),
}

impl<'a> Basis<'a> {
    /// The table, in the version that was read.
    pub fn table(self) -> &'a TableEntry {
        match self {
            Basis::Rows(table) | Basis::Table(table) => table,
        }
    }
}

/// What became of a change.
#[derive(Debug)]
pub enum Changed<T> {
    /// It is in this version, whole.
    Published(u64),
    /// There was nothing to change, and no version was published.
    Nothing,
    /// What it was computed from has changed: nothing is visible of it. Compute it on a new snapshot, and publish that.
    Moved(T),
}

/// Whether a change still fits.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Fit {
    Fits,
    Moved,
}

/// Marks rows as deleted. Segments of which no row is left are taken out.
///
/// # Errors
/// `Corrupt` when deleted rows cannot be read, `Invalid` when the table is gone.
pub(crate) fn apply_deletions(
    layout: &Layout,
    manifest: &mut Manifest,
    basis: Basis<'_>,
    deletions: &Deletions,
) -> Result<Fit> {
    let was = basis.table();
    let Some(table) = manifest.tables.iter_mut().find(|table| table.id == was.id) else {
        return Err(missing_table_id(was));
    };
    if matches!(basis, Basis::Table(_)) && table.segments != was.segments {
        return Ok(Fit::Moved);
    }
    delete_rows_of(layout, table, deletions)
}

/// Marks rows of a table as deleted, as [`apply_deletions`] does.
///
/// # Errors
/// `Corrupt` when deleted rows cannot be read.
pub(crate) fn delete_rows_of(
    layout: &Layout,
    table: &mut TableEntry,
    deletions: &Deletions,
) -> Result<Fit> {
    for (file, rows) in deletions.by_segment() {
        let Some(index) = table.segments.iter().position(|segment| segment.file == file) else {
            return Ok(Fit::Moved);
        };
        match delete_from(layout, &mut table.segments[index], rows)? {
            Left::Some => {}
            Left::None => {
                table.segments.remove(index);
            }
            Left::Moved => return Ok(Fit::Moved),
        }
    }
    Ok(Fit::Fits)
}

/// What deletions leave of a segment.
enum Left {
    Some,
    None,
    /// Some of the rows are deleted already.
    Moved,
}

fn delete_from(layout: &Layout, segment: &mut SegmentEntry, rows: &RoaringBitmap) -> Result<Left> {
    if rows.max().is_some_and(|last| u64::from(last) >= segment.rows) {
        return Err(Error::Invalid(format!(
            "cannot delete row {} of segment {}: it has {} rows",
            rows.max().unwrap_or_default(),
            segment.file,
            segment.rows
        )));
    }
    let mut all = match &segment.deleted {
        None => RoaringBitmap::new(),
        Some(entry) => read_set(layout, segment, entry)?,
    };
    if !all.is_disjoint(rows) {
        return Ok(Left::Moved);
    }
    all |= rows;
    Ok(set_deleted(segment, all))
}

/// Gives a segment its deleted rows.
fn set_deleted(segment: &mut SegmentEntry, rows: RoaringBitmap) -> Left {
    let count = rows.len();
    if count >= segment.rows {
        return Left::None;
    }
    let place = Place::Unwritten(Arc::new(rows));
    segment.deleted = (count > 0).then_some(DeletedEntry { rows: count, place });
    Left::Some
}

/// Carries what was deleted from `old` segments, since a merge began to read them, over to the `new` ones that it made of the
/// rows that were left then. `there` are the old segments as they are now.
///
/// # Errors
/// `Corrupt` when deleted rows cannot be read.
pub(crate) fn carry_over(
    layout: &Layout,
    old: &[SegmentEntry],
    there: &[SegmentEntry],
    new: &mut Vec<SegmentEntry>,
) -> Result<()> {
    // Row numbers among the rows that are left, of all old segments one after the other.
    let (mut gone, mut before) = (Vec::new(), 0);
    for (old, there) in old.iter().zip(there) {
        if let Some(entry) = there.deleted.as_ref().filter(|_| there.deleted != old.deleted) {
            let known = match &old.deleted {
                Some(entry) => read_set(layout, old, entry)?,
                None => RoaringBitmap::new(),
            };
            let since = read_set(layout, there, entry)? - &known;
            gone.extend(since.iter().map(|row| before + u64::from(row) - known.rank(row)));
        }
        before += old.live_rows();
    }
    let (mut gone, mut before) = (gone.into_iter().peekable(), 0);
    let mut left = Vec::with_capacity(new.len());
    for mut segment in new.drain(..) {
        let mut rows = RoaringBitmap::new();
        while let Some(row) = gone.next_if(|row| *row < before + segment.rows) {
            rows.insert(u32::try_from(row - before).map_err(|_| too_many(&segment))?);
        }
        before += segment.rows;
        if let Left::Some = set_deleted(&mut segment, rows) {
            left.push(segment);
        }
    }
    *new = left;
    Ok(())
}

fn too_many(segment: &SegmentEntry) -> Error {
    Error::Limit(format!("segment {} has too many rows to have deleted ones", segment.file))
}
