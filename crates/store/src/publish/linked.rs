//! Loads whose segments lie, durable, in journals: they are published as those that were written here, and the journals stay as they are until
//! they are removed.

use std::path::PathBuf;

use coload_types::{Error, Result};

use super::{LoadDir, ReadyLoad};
use crate::change::LoadTarget;
use crate::keyed::{SortWith, put_row_numbers};
use crate::load_record::{LoadId, LoadRecord};
use crate::manifest::SegmentEntry;
use crate::on_conflict::{DeleteWhere, OnConflict};
use crate::store::Store;

/// Where a load goes that lies in journals, and how it is put in order.
#[derive(Debug, Clone)]
pub struct PublishedAs<'a> {
    /// Where it goes.
    pub target: &'a LoadTarget,
    /// What happens to keys that are there already.
    pub on_conflict: OnConflict,
    /// Which rows say that their keys go.
    pub delete_where: Option<DeleteWhere>,
    /// What its rows are put in order with.
    pub sort_with: SortWith,
}

/// A segment and the file in a journal that it is.
pub(crate) type Linked = (SegmentEntry, PathBuf);

impl PublishedAs<'_> {
    /// Begins to publish segments as the load of an id, whose table had an id when it began.
    pub(crate) fn begin(
        &self,
        store: &Store,
        (id, begun_on): (LoadId, Option<u64>),
        segments: &[Linked],
    ) -> Result<LoadDir> {
        let mut load = LoadDir::of_links(
            &store.sorting_with(self.sort_with),
            id,
            (self.target, begun_on),
            segments,
        )?;
        load.set_on_conflict(self.on_conflict)?;
        if let Some(delete_where) = &self.delete_where {
            load.set_delete_where(delete_where.clone())?;
        }
        Ok(load)
    }

    /// Puts the rows of its segments in order, of which `gave_way` are not there any more.
    pub(crate) fn order(
        &self,
        mut load: LoadDir,
        segments: Vec<Linked>,
        (record, gave_way): (LoadRecord, u64),
    ) -> Result<ReadyLoad> {
        let segments = segments.into_iter().map(|(segment, _)| segment).collect();
        let segments = match load.key() {
            None => segments,
            Some(_) => {
                let sorting = load.sorting_with(self.sort_with)?;
                let ordered = load.put_in_order(segments, &sorting)?;
                ordered.into_iter().map(|segment| segment.entry).collect()
            }
        };
        load.dropped += gave_way;
        load.ready(segments, record)
    }
}

impl LoadDir {
    /// Says which rows of the input the rows of a segment are, which were put in order before it came here.
    pub(crate) fn put_row_numbers(&self, segment: &SegmentEntry, rows: &[u32]) -> Result<()> {
        let path = self.work.join(&segment.file);
        if rows.len() as u64 != segment.rows {
            let what = format!("numbers of {} rows for {}", rows.len(), segment.rows);
            return Err(Error::corrupt(&path, what));
        }
        put_row_numbers(&path, rows)
    }
}
