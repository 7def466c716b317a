//! Makes loads visible, and tells before that which of their rows are rejects.
//!
//! ```text
//!   find_rejects      rows whose keys are in the newest version, or came before in the load
//!   the caller        tells them by their places in the input, and counts them against its limit
//!   publish_settled   nothing if a newer version leaves other rows out: they are to be told again
//! ```
//!
//! Rows of the load that are not in its segments gave way to earlier ones: their numbers are those that no row that is stored has.

use coload_ddl::Key;
use coload_types::{Error, Result};
use roaring::RoaringTreemap;

use super::{ReadyLoad, Shown, commit};
use crate::addition::{Addition, added_to, new_segments, with_dropped, without_lost};
use crate::change::Outcome;
use crate::index::{Checking, GivingWay};
use crate::keyed::Origin;
use crate::manifest::SegmentEntry;
use crate::on_conflict::OnConflict;
use crate::snapshot::pin_newest;

/// What has the key of a row that is left out.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum MeetsKey {
    /// A row of the table.
    InTable,
    /// A row of the load that comes before it.
    Earlier,
}

/// A row of a load that is left out for its key.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct ConflictingRow {
    /// Its number among the rows of the load, in the order of the input and from 0 on.
    pub number: u64,
    /// What has its key.
    pub meets: MeetsKey,
}

/// What became of loads that were to be published.
#[derive(Debug)]
pub enum Settled {
    /// Everybody sees them.
    Shown(Shown),
    /// Nothing was published: others changed the table meanwhile, and the first load has other rejects now.
    Moved(Box<ReadyLoad>, Vec<ReadyLoad>),
}

impl ReadyLoad {
    /// The rows that are rejects if the load is added to the newest version, in the order of the input. None where they are not to be
    /// told ([`OnConflict::Reject`]).
    ///
    /// # Errors
    /// `Corrupt` when a segment is not what was written, `Unavailable` when a disk fails.
    pub fn find_rejects(&mut self) -> Result<Vec<ConflictingRow>> {
        let ReadyLoad { dir, segments, record, conflicts } = self;
        let Some(conflicts) = conflicts.as_mut().filter(|_| dir.on_conflict == OnConflict::Reject)
        else {
            return Ok(Vec::new());
        };
        let base = pin_newest(&dir.store)?;
        let lost = conflicts.tell_lost(added_to(&base.manifest, &dir.target))?;
        let mut found = Vec::new();
        let mut stored = RoaringTreemap::new();
        let origins = dir.origins.as_deref().unwrap_or_default();
        for ((segment, origin), lost) in segments.iter().zip(origins).zip(lost) {
            if dir.dropped == 0 && lost.is_empty() {
                continue;
            }
            origin.for_each(segment.rows, |row, number| {
                if u32::try_from(row).is_ok_and(|row| lost.contains(row)) {
                    found.push(ConflictingRow { number, meets: MeetsKey::InTable });
                }
                if dir.dropped > 0 {
                    stored.insert(number);
                }
            })?;
        }
        if dir.dropped > 0 {
            let mut stored = stored.into_iter().peekable();
            for number in 0..record.rows {
                if stored.next_if_eq(&number).is_none() {
                    found.push(ConflictingRow { number, meets: MeetsKey::Earlier });
                }
            }
        }
        found.sort_unstable_by_key(|row| row.number);
        Ok(found)
    }

    /// The segments that become visible, in order.
    pub fn segments(&self) -> &[SegmentEntry] {
        &self.segments
    }

    /// The key of the table, if it has one.
    pub fn key(&self) -> Option<&Key> {
        self.dir.key()
    }

    /// Sets what is remembered of the number of rejects.
    pub fn set_rejects(&mut self, rejects: u64) {
        self.record.rejects = rejects;
    }

    /// Makes the load visible, and others of the same store in the same version.
    ///
    /// # Errors
    /// As [`super::LoadDir::publish`]; all are visible, or none. `Unavailable` when rows are to be rejects that were not told.
    pub fn publish(self, others: impl IntoIterator<Item = ReadyLoad>) -> Result<Shown> {
        match self.publish_settled(others)? {
            Settled::Shown(shown) => Ok(shown),
            Settled::Moved(..) => Err(Error::Unavailable(
                "keys of the load came into the table meanwhile; nothing was loaded".into(),
            )),
        }
    }

    /// Makes the load visible, and others of the same store in the same version, if its rejects are those that were told.
    ///
    /// # Errors
    /// As [`super::LoadDir::publish`]; all are visible, or none.
    pub fn publish_settled(self, others: impl IntoIterator<Item = ReadyLoad>) -> Result<Settled> {
        let store = self.dir.store.clone();
        let on_conflict = self.dir.on_conflict;
        let mut loads: Vec<ReadyLoad> = [self].into_iter().chain(others).collect();
        let mut giving_way: Vec<GivingWay> = loads.iter().filter_map(giving_way).collect();
        let first_gives = loads.first().is_some_and(|load| load.dir.ignores_unique());
        let (mut works, mut changes) = (Vec::new(), Vec::new());
        for ReadyLoad { dir, segments, record, conflicts } in &mut loads {
            let change = Addition::of(&dir.target, (dir.begun_on, dir.keys.key.as_ref()), record);
            works.push(&mut dir.work);
            changes.push((change, &dir.target, segments, conflicts));
        }
        let mut keys = None;
        let checking = Checking::GivingWay(&mut giving_way);
        let version = commit(&store, &mut works, checking, |manifest| {
            for (_, target, _, conflicts) in &mut changes {
                if let Some(conflicts) = conflicts
                    && !conflicts.is_as_told(added_to(manifest, target))?
                {
                    return Ok(Outcome::Unchanged);
                }
            }
            for (number, (change, _, segments, conflicts)) in changes.iter_mut().enumerate() {
                let counts = change.apply(&store, manifest, segments, conflicts.as_mut())?;
                if number == 0 {
                    keys = counts;
                }
            }
            Ok(Outcome::Changed)
        })?;
        let Some(version) = version else {
            let mut loads = loads.into_iter();
            let Some(first) = loads.next() else {
                return Err(Error::Invalid("a load changed nothing".into()));
            };
            return Ok(Settled::Moved(Box::new(first), loads.collect()));
        };
        let rows = loads.first().map_or(0, |load| load.record.rows - load.dir.dropped);
        let keys = match giving_way.first().filter(|_| first_gives) {
            Some(first) => Some(without_lost(keys, rows, first.lost())),
            None => keys,
        };
        let keys =
            with_dropped(keys, loads.first().map_or(0, |load| load.dir.dropped), on_conflict);
        drop(loads);
        let _ = store.clean();
        Ok(Settled::Shown(Shown { version, keys }))
    }
}

/// What has rows of a load give way to others with the same values of UNIQUE, if it says so.
fn giving_way(load: &ReadyLoad) -> Option<GivingWay> {
    let ReadyLoad { dir, segments, .. } = load;
    if !dir.ignores_unique() {
        return None;
    }
    let new = match &dir.origins {
        Some(origins) => new_segments(segments, origins),
        None => {
            let mut before = 0;
            let origins = segments.iter().map(|segment| {
                let origin = Origin { before, order: None };
                before += segment.rows;
                origin
            });
            new_segments(segments, &origins.collect::<Vec<_>>())
        }
    };
    let only = match dir.on_conflict {
        OnConflict::IgnoreUnique(index) => dir.target.schema.indexes().get(index),
        _ => None,
    };
    let only = only.map(|index| index.columns().to_vec());
    Some(GivingWay::new((&dir.target.name, dir.id()), only, new))
}
