//! A load as a change of a version: its segments come, and rows whose keys come twice give way.

use coload_ddl::Key;
use coload_types::{Error, Result};

use crate::change::{LoadMode, LoadTarget, apply_load};
use crate::index::Lost;
use crate::keyed::{KeyConflicts, NewSegment, Origin, Resolved};
use crate::load_record::LoadRecord;
use crate::manifest::{Manifest, SegmentEntry, TableEntry};
use crate::on_conflict::{KeyCounts, OnConflict};
use crate::row_change::{Fit, delete_rows_of};
use crate::store::Store;

/// The counts of a load, with the rows that gave way before its segments were written.
pub(crate) fn with_dropped(
    keys: Option<KeyCounts>,
    dropped: u64,
    on_conflict: OnConflict,
) -> Option<KeyCounts> {
    keys.map(|keys| match on_conflict {
        OnConflict::Reject => KeyCounts { rejected: keys.rejected + dropped, ..keys },
        _ => KeyCounts { twice: keys.twice + dropped, ..keys },
    })
}

/// The counts of a load whose segments have so many rows, of which some gave way for values of UNIQUE.
pub(crate) fn without_lost(keys: Option<KeyCounts>, rows: u64, lost: Lost) -> KeyCounts {
    let keys = keys.unwrap_or(KeyCounts { added: rows, ..KeyCounts::default() });
    let Lost { to_table, to_load } = lost;
    let added = keys.added.saturating_sub(to_table + to_load);
    let (ignored, twice) = (keys.ignored + to_table, keys.twice + to_load);
    KeyCounts { added, ignored, twice, ..keys }
}

/// What a load adds to a version, but for its segments.
pub(crate) struct Addition<'a> {
    target: &'a LoadTarget,
    begun: (Option<u64>, Option<&'a Key>),
    record: &'a LoadRecord,
}

impl<'a> Addition<'a> {
    pub fn of(
        target: &'a LoadTarget,
        begun: (Option<u64>, Option<&'a Key>),
        record: &'a LoadRecord,
    ) -> Self {
        Addition { target, begun, record }
    }

    /// Adds segments to a version. Rows whose keys come twice give way as `conflicts` tells.
    ///
    /// # Errors
    /// `Invalid` when the load does not fit the version, or a key comes twice that may not.
    pub fn apply(
        &self,
        store: &Store,
        manifest: &mut Manifest,
        segments: &[SegmentEntry],
        conflicts: Option<&mut KeyConflicts>,
    ) -> Result<Option<KeyCounts>> {
        let Some(conflicts) = conflicts else {
            apply_load(manifest, self.target, self.begun, segments, self.record)?;
            return Ok(None);
        };
        let Resolved { deletions, counts, .. } =
            conflicts.resolve(added_to(manifest, self.target))?;
        let record = LoadRecord { rows: counts.kept(), ..self.record.clone() };
        apply_load(manifest, self.target, self.begun, segments, &record)?;
        let Some(table) = manifest.table_mut(&self.target.name) else {
            return Err(Error::Refused("internal error: a load without its table".into()));
        };
        match delete_rows_of(store.layout(), table, &deletions)? {
            Fit::Fits => Ok(Some(counts)),
            Fit::Moved => Err(Error::Refused("internal error: rows that give way are gone".into())),
        }
    }
}

/// Segments that are added, in order, and where their rows come from.
pub(crate) fn new_segments(segments: &[SegmentEntry], origins: &[Origin]) -> Vec<NewSegment> {
    let pairs = segments.iter().zip(origins);
    pairs
        .map(|(entry, origin)| NewSegment { entry: entry.clone(), origin: origin.clone() })
        .collect()
}

/// The table whose rows stay when a load is added.
pub(crate) fn added_to<'a>(manifest: &'a Manifest, target: &LoadTarget) -> Option<&'a TableEntry> {
    match target.mode {
        LoadMode::Append => manifest.table(&target.name),
        LoadMode::Replace | LoadMode::Create => None,
    }
}
