//! Shards that came to this node, or went from it.
//!
//! The version of the map that moves shards is done here as one that commits a load: what came is published, and what went is
//! deleted, both known to be done by what the store has. Rows that went are told by their shard columns; so it does not
//! matter how often they are looked for.

use coload_cluster::{Map, RowHashes, ShardBy, Table};
use coload_ddl::CheckedColumn;
use coload_store::{
    Basis, Changed, Deletions, LoadId, OnMissing, SegmentEntry, Snapshot, Store, TableEntry,
};
use coload_types::{Error, Plain, Result};
use coload_wire::{LoadDescription, Share};

use super::Member;
use super::state::State;

/// How often rows may be merged by others while those are looked for that went.
const ATTEMPTS_MAX: usize = 100;

/// Drops all that a node had which was removed from its cluster: it may have been away when its shards went, and joins as one
/// that is new.
pub(super) fn drop_all(store: &Store, removed: &State) -> Result<()> {
    for entry in store.list_journals()? {
        let share = LoadDescription::decode(&entry.description).ok().and_then(|of| of.share);
        let is_of_cluster = share.is_some_and(|share| share.plan.cluster_table().is_some());
        if is_of_cluster && let Some(journal) = store.open_journal(entry.id)? {
            journal.remove()?;
        }
    }
    removed
        .tables
        .values()
        .try_for_each(|table| store.drop_table(table, OnMissing::Ignore).map(|_| ()))
}

impl Member {
    /// Does what a move of shards has decided: `load` brought the rows that came here, if any did.
    pub(super) fn end_move(&self, map: &Map, load: LoadId, table: u64) -> Result<()> {
        // Their rows were routed as the shards were before.
        let is_stale =
            |share: &Share| share.plan.cluster_table() == Some(table) && share.of.load != load;
        let moved = Error::Unavailable(
            "shards of the table have moved; the load begins anew at the leaves that have them now"
                .into(),
        );
        self.drop_shares(is_stale, &moved)?;
        if let Some(of) = map.table_of(table) {
            // Before what came is there, so that it does not matter which of its shards this node gave away earlier.
            self.delete_rows_elsewhere(of)?;
            if let Some(share) = self.own_share(load)? {
                self.publish(of, share.of, None)?;
            }
        }
        self.maps.forget_prepared(load, self.id)
    }

    /// This node's share of a load, if it is here and not published.
    fn own_share(&self, load: LoadId) -> Result<Option<Share>> {
        let of = |entry: coload_store::JournalEntry| {
            let share = LoadDescription::decode(&entry.description).ok()?.share?;
            (share.of.load == load).then_some(share)
        };
        Ok(self.store.list_journals()?.into_iter().find_map(of))
    }

    /// Deletes the rows of a table that are in shards of other leaves.
    fn delete_rows_elsewhere(&self, table: &Table) -> Result<()> {
        for _ in 0..ATTEMPTS_MAX {
            let snapshot = self.store.snapshot()?;
            let Some(entry) = snapshot.table(&table.name) else { return Ok(()) };
            let mut deletions = Deletions::default();
            for segment in &entry.segments {
                let gone = self.rows_elsewhere(&snapshot, entry, (segment, table))?;
                deletions.extend(segment, gone)?;
            }
            if deletions.rows() == 0 {
                return Ok(());
            }
            match self.store.delete_rows(Basis::Rows(entry), &deletions)? {
                Changed::Published(_) | Changed::Nothing => return Ok(()),
                // A merge has put them elsewhere.
                Changed::Moved(()) => {}
            }
        }
        Err(Error::Unavailable(format!(
            "rows of table {} are merged faster than those are deleted that went to other leaves",
            table.name
        )))
    }

    /// Numbers of the rows of a segment that are in shards of other leaves, but for those that are deleted.
    fn rows_elsewhere(
        &self,
        snapshot: &Snapshot,
        entry: &TableEntry,
        (segment, table): (&SegmentEntry, &Table),
    ) -> Result<Vec<u64>> {
        let deleted = snapshot.deleted_rows(segment)?;
        let is_there = |row: &u64| deleted.as_ref().is_none_or(|rows| !rows.contains(*row));
        let place = table.place_of(self.id);
        let ShardBy::Columns(by) = &table.shard_by else {
            // These rows have no shard: a leaf keeps all of them, or none.
            return Ok(match place {
                Some(_) => Vec::new(),
                None => (0..segment.rows).filter(is_there).collect(),
            });
        };
        let file = snapshot.segment(entry, segment)?;
        let (mut gone, mut first) = (Vec::new(), 0);
        for (page, rows) in file.page_rows().iter().enumerate() {
            let mut hashes = RowHashes::new(*rows as usize);
            for column in by {
                let mut plain = Plain::empty(file.physical(*column));
                file.decode_page(*column, page, &mut plain)?;
                let data_type = table.schema.columns()[*column].data_type;
                hashes.add(&CheckedColumn::Plain(&plain), data_type);
            }
            let shards = hashes.shards(table.shard_count()).zip(first..);
            let elsewhere = |shard: u32| Some(usize::from(table.shards[shard as usize])) != place;
            let numbers = shards.filter(|(shard, _)| elsewhere(*shard)).map(|(_, row)| row);
            gone.extend(numbers.filter(is_there));
            first += u64::from(*rows);
        }
        Ok(gone)
    }
}
