//! A node of a cluster: what the map has decided is done to its store, once and in order.
//!
//! ```text
//!   PLACE/map/<n>.map --look--> tables made and dropped, shares published, loads given up --> STORE/cluster: applied n
//!                                                     |
//!                                         snapshots by versions of the map, for readers
//! ```
//!
//! Invariants: what is prepared here stays until the map decides on it. Rows of a load are visible here from the version
//! of the map that committed it, and not before: a reader names a version, and gets the snapshot of that one. Each event
//! is done once: it is noted in the store when it is done, and the one that a crash came after is known to be done.
//!
//! Who looks first does the work, and others wait for it: a version that is read must be whole.

mod held;
mod holds;
mod moves;
mod state;

use std::collections::{BTreeMap, HashSet};
use std::sync::{Arc, Mutex, OnceLock};

use coload_cluster::{
    Change, Map, Maps, Node, NodeId, Prepared, SHARDS_DEFAULT, ShardBy, Table, What, hit,
};
use coload_ddl::Schema;
use coload_load::{Leaves, RemoteOptions};
use coload_store::{
    LoadId, LoadJournal, OnExisting, OnMissing, ReadyShare, ShareOf, SharesAre, Snapshot, SortWith,
    Store, merge_small_within,
};
use coload_threads::lock;
use coload_types::{Error, Result};
use coload_wire::{LoadDescription, Share, journal_of_share, share_of_leaf};

use held::HeldVersions;
use holds::Fitting;
pub use holds::HeldTable;
use state::State;

/// What drops the journal of a share, whoever works on it, who is told the error.
type DropShare = Box<dyn Fn(LoadId, &Error) -> Result<()> + Send + Sync>;

/// A node of a cluster. It is shared by all who serve its store.
pub struct Member {
    store: Store,
    maps: Maps,
    id: NodeId,
    sort_with: SortWith,
    /// Held while what the map decided is done.
    state: Mutex<Doing>,
    drop_share: OnceLock<DropShare>,
    /// Loads that this node works on, and for which it holds tables.
    holds: Mutex<HashSet<LoadId>>,
    /// How this node calls leaves, and itself.
    calls: RemoteOptions,
}

impl std::fmt::Debug for Member {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Member").field("id", &self.id).finish_non_exhaustive()
    }
}

#[derive(Debug)]
struct Doing {
    state: State,
    held: HeldVersions,
    /// The version that was come to last.
    last: Option<At>,
    /// Shares of which was said whether they fit, by the ids of the tables that are held for their loads.
    fitting: BTreeMap<u64, Fitting>,
}

/// A version of the cluster, as a node has it.
#[derive(Debug, Clone)]
pub struct At {
    /// The map.
    pub map: Arc<Map>,
    /// The node's own rows and all tables, as of the map's version, without those that are being made.
    pub snapshot: Snapshot,
}

impl Member {
    /// Joins the cluster of a place with a store, which others reach at an address, and this node itself in the same way as it
    /// calls others.
    ///
    /// # Errors
    /// `Invalid` when the store is in another cluster, or has tables and was in none; `Unavailable` when the place is away.
    pub fn join(
        store: Store,
        maps: Maps,
        (address, calls): (&str, RemoteOptions),
        sort_with: SortWith,
    ) -> Result<Arc<Self>> {
        let map = maps.open_or_create()?;
        let cluster = map.cluster;
        let known = store.membership()?.map(|bytes| State::decode(&bytes)).transpose()?;
        let is_removed = |state: &State| state.cluster == cluster && map.node(state.node).is_none();
        if let Some(removed) = known.as_ref().filter(|state| is_removed(state)) {
            moves::drop_all(&store, removed)?;
        }
        let state = match known {
            Some(state) if !is_removed(&state) => state,
            _ => {
                if let Some(table) = store.snapshot()?.tables().first() {
                    return Err(Error::Invalid(format!(
                        "{} has tables already (such as {}), and a node of a cluster begins with an empty store (load what it has into \
                         the cluster)",
                        store.path().display(),
                        table.name
                    )));
                }
                // The id is kept before the map has it, so that it is the same when this is tried again.
                let state =
                    State { cluster, node: NodeId::random()?, applied: 0, tables: BTreeMap::new() };
                store.put_membership(state.encode())?;
                state
            }
        };
        if state.cluster != cluster {
            return Err(Error::Invalid(format!(
                "{} is of another cluster than that of {}",
                store.path().display(),
                maps.place().shown()
            )));
        }
        let id = state.node;
        maps.change(|map| {
            let joined = map.version;
            match map.nodes.iter_mut().find(|node| node.id == id) {
                Some(node) if node.address == address => return Ok(Change::Same(())),
                Some(node) => address.clone_into(&mut node.address),
                None => map.nodes.push(Node { id, address: address.to_owned(), joined }),
            }
            Ok(Change::Changed(()))
        })?;
        // Whoever made them here has gone, and whoever moved shards.
        maps.drop_unmade(|table| table.making == Some(id))?;
        maps.let_go(|_, holder| holder.node == id)?;
        let moves = |table: &Table| table.moving.as_ref().filter(|m| m.node == id).map(|m| m.load);
        for load in maps.current()?.tables.iter().filter_map(moves) {
            maps.abort(load, None)?;
        }
        let state = Mutex::new(Doing {
            state,
            held: HeldVersions::default(),
            last: None,
            fitting: BTreeMap::new(),
        });
        let drop_share = OnceLock::new();
        Ok(Arc::new(Member {
            store,
            maps,
            id,
            sort_with,
            state,
            drop_share,
            holds: Mutex::default(),
            calls,
        }))
    }

    /// The leaves of a table, for who loads into it through this node.
    ///
    /// # Errors
    /// `Invalid` when there is none of the name; `Unavailable` when the place is away.
    pub fn leaves_of(&self, table: &str) -> Result<Leaves> {
        let map = self.look()?.map;
        let Some(id) = map.table(table).map(|table| table.id) else {
            return Err(Error::Invalid(format!("table {table} does not exist in the cluster")));
        };
        Ok(self.leaves_at(&map, id))
    }

    /// The leaves of a table of this id, at a version of the map.
    pub fn leaves_at(&self, map: &Arc<Map>, table: u64) -> Leaves {
        Leaves { map: Arc::clone(map), table, node: self.calls.clone(), id: None, gone: None }
    }

    /// The leaves of a table that is new, and is there when rows are committed into it; [`Self::drop_unmade`] when they are not.
    ///
    /// # Errors
    /// `Invalid` when there is one of its name; `Unavailable` when the place is away.
    pub fn make_table(&self, name: &str, schema: &Schema, shard_by: &ShardBy) -> Result<Leaves> {
        let (_, id) = self.maps.change(|map| {
            let id = map.add_table(name, schema.clone(), shard_by.clone(), SHARDS_DEFAULT)?;
            if let Some(table) = map.tables.last_mut() {
                table.making = Some(self.id);
            }
            Ok(Change::Changed(id))
        })?;
        Ok(self.leaves_at(&self.look()?.map, id))
    }

    /// Drops a table that was to be made with rows, if these were not committed.
    ///
    /// # Errors
    /// `Unavailable` when the place is away; it is dropped when this node starts then.
    pub fn drop_unmade(&self, table: u64) -> Result<()> {
        self.maps.drop_unmade(|of| of.id == table)?;
        self.look().map(|_| ())
    }

    /// Has the journals of loads that are given up dropped by who may work on them.
    pub(crate) fn drop_shares_with(&self, drop_share: DropShare) {
        let _ = self.drop_share.set(drop_share);
    }

    /// The node's id.
    pub fn id(&self) -> NodeId {
        self.id
    }

    /// The map in its place.
    pub fn maps(&self) -> &Maps {
        &self.maps
    }

    /// Does what the map has decided, and gives its newest version.
    ///
    /// # Errors
    /// `Unavailable` when the place is away or the disk fails; `Corrupt` when the store lacks what it had prepared.
    pub fn look(&self) -> Result<At> {
        self.catch_up(&mut lock(&self.state))
    }

    /// The newest version for who reads. While the place is away it is the last that was known: reads go on.
    ///
    /// # Errors
    /// As [`Self::look`].
    pub fn read(&self) -> Result<At> {
        let mut doing = lock(&self.state);
        match (self.catch_up(&mut doing), &doing.last) {
            (Err(Error::Unavailable(_)), Some(last)) => Ok(last.clone()),
            (newest, _) => newest,
        }
    }

    /// The node's rows of a table, by its id, as of a version of the map.
    ///
    /// # Errors
    /// `Unavailable` when it is a version that the node has left behind.
    pub fn at(&self, version: u64, table: u64) -> Result<(Snapshot, String)> {
        let mut doing = lock(&self.state);
        if doing.state.applied < version {
            self.catch_up(&mut doing)?;
        }
        doing.held.find(version, table).ok_or_else(|| {
            Error::Unavailable(format!(
                "version {version} of the cluster is over at this node, which is at {} (run the statement again)",
                doing.state.applied
            ))
        })
    }

    /// Does what the map has decided up to its newest version, which others may change meanwhile.
    fn catch_up(&self, doing: &mut Doing) -> Result<At> {
        const ROUNDS_MAX: usize = 1_000;
        for _ in 0..ROUNDS_MAX {
            let map = self.maps.current()?;
            if map.version != doing.state.applied {
                self.apply(doing, &map)?;
                continue;
            }
            self.say_what_fits(doing, &map)?;
            // Merges made newer versions of the store, with the same rows.
            let snapshot = self.store.snapshot()?;
            doing.held.hold(map.version, snapshot.clone(), &doing.state.tables);
            let is_making = |name: &str| {
                map.tables
                    .iter()
                    .any(|t| t.making.is_some() && coload_types::same_name(&t.name, name))
            };
            let snapshot = snapshot.without(is_making);
            let at = At { map, snapshot };
            doing.last = Some(at.clone());
            return Ok(at);
        }
        Err(Error::Unavailable(
            "the map of the cluster changes faster than this node follows".into(),
        ))
    }

    fn apply(&self, doing: &mut Doing, map: &Map) -> Result<()> {
        let joined = map.node(self.id).map_or(map.version, |node| node.joined);
        if doing.state.applied > map.version || doing.state.applied.max(joined) < map.horizon {
            return Err(Error::Corrupt(format!(
                "{} is at version {} of the cluster, which is at {} and remembers from {} on: the store or the map was put back to an \
                 older state",
                self.store.path().display(),
                doing.state.applied,
                map.version,
                map.horizon
            )));
        }
        if map.node(self.id).is_none() {
            return Err(Error::Refused(format!(
                "this node was removed from the cluster of {} (when it starts again, it joins anew)",
                self.maps.place().shown()
            )));
        }
        self.make_tables(&mut doing.state, map)?;
        // Rows go by where shards are now: if the table has moved more than once, versions between are not what they were.
        let applied = doing.state.applied;
        let is_skipping = map.events.iter().filter(|event| event.version > applied).any(|event| {
            let What::Moved { table, .. } = event.what else { return false };
            map.table_of(table).is_some_and(|table| table.since > event.version)
        });
        let mut merged = Vec::new();
        for event in map.events.iter().filter(|event| event.version > applied) {
            match event.what {
                What::Loaded { load, table } => {
                    let of = map.table_of(table);
                    if let Some((of, share)) = of.and_then(|of| Some((of, self.share(of, load)?))) {
                        let ready = doing.fitting.remove(&table).and_then(|f| f.ready_of(load));
                        self.publish(of, share, ready)?;
                        // Rows of a table that is held stay where they are.
                        if of.holder.is_none() {
                            merged.push(of.name.clone());
                        }
                    }
                    self.maps.forget_prepared(load, self.id)?;
                }
                What::Moved { load, table } => self.end_move(map, load, table)?,
                What::Aborted { load } => {
                    let given_up = Error::Refused(format!("load {load} was aborted"));
                    self.drop_shares(|share| share.of.load == load, &given_up)?;
                    // Also one whose journal went before a crash: it must not count when the load is tried again.
                    self.maps.forget_prepared(load, self.id)?;
                }
            }
            doing.state.applied = event.version;
            self.store.put_membership(doing.state.encode())?;
            if !is_skipping {
                doing.held.hold(event.version, self.store.snapshot()?, &doing.state.tables);
            }
        }
        if is_skipping {
            doing.held.forget();
        }
        if doing.state.applied < map.version {
            doing.state.applied = map.version;
            self.store.put_membership(doing.state.encode())?;
        }
        // It only says what may be forgotten: the next look says it again.
        let _ = self.maps.put_applied(self.id, doing.state.applied);
        merged.sort_unstable();
        merged.dedup();
        for table in merged {
            // The rows are there, whatever becomes of it.
            let _ = merge_small_within(&self.store, &table, self.sort_with.memory as usize);
        }
        Ok(())
    }

    /// Makes the tables that the map has and the store has not, and drops those that it has no longer.
    fn make_tables(&self, state: &mut State, map: &Map) -> Result<()> {
        let gone: Vec<u64> = state
            .tables
            .keys()
            .copied()
            .filter(|id| map.tables.iter().all(|t| t.id != *id))
            .collect();
        for id in gone {
            let dropped = Error::Refused("the table was dropped".into());
            self.drop_shares(|share| share.plan.cluster_table() == Some(id), &dropped)?;
            if let Some(name) = state.tables.get(&id) {
                self.store.drop_table(name, OnMissing::Ignore)?;
            }
            state.tables.remove(&id);
            self.store.put_membership(state.encode())?;
        }
        for table in &map.tables {
            if state.tables.contains_key(&table.id) {
                continue;
            }
            // One that a crash left before it was noted is empty.
            self.store.drop_table(&table.name, OnMissing::Ignore)?;
            self.store.create_table(&table.name, &table.schema, OnExisting::Fail)?;
            state.tables.insert(table.id, table.name.clone());
            self.store.put_membership(state.encode())?;
        }
        Ok(())
    }

    /// This node's share of a load into a table, if it has shards of it.
    fn share(&self, table: &Table, load: LoadId) -> Option<ShareOf> {
        let place = table.place_of(self.id)?;
        Some(share_of_leaf(load, place, table.leaves.len()))
    }

    fn publish(&self, table: &Table, share: ShareOf, ready: Option<ReadyShare>) -> Result<()> {
        let published = match ready {
            Some(ready) => self.store.publish_ready_share(ready).map(SharesAre::Published)?,
            None => self.store.publish_own_share(share, &table.name, self.sort_with)?,
        };
        hit("cluster::leaf::published");
        match published {
            SharesAre::Published(_) | SharesAre::Known(_) => Ok(()),
            SharesAre::Incomplete(_) | SharesAre::Misread(_) => Err(Error::Corrupt(format!(
                "load {} of table {} is committed, and {} has lost its rows of it",
                share.load,
                table.name,
                self.store.path().display()
            ))),
        }
    }

    /// Drops the journals of shares that nobody may commit any more.
    fn drop_shares(&self, is_gone: impl Fn(&Share) -> bool, why: &Error) -> Result<()> {
        for entry in self.store.list_journals()? {
            let Ok(description) = LoadDescription::decode(&entry.description) else { continue };
            let share = description.share.filter(|share| share.plan.cluster_table().is_some());
            let Some(share) = share.filter(|share| is_gone(share)) else { continue };
            let dropped = match self.drop_share.get() {
                Some(drop_share) => drop_share(entry.id, why),
                None => match self.store.open_journal(entry.id) {
                    Ok(journal) => journal.map_or(Ok(()), LoadJournal::remove),
                    Err(error) => Err(error),
                },
            };
            // Somebody makes it complete at the moment, and is told when he comes to prepare it.
            dropped.map_err(|error| {
                Error::Unavailable(format!(
                    "load {} was given up, and is not dropped yet: {error}",
                    share.of.load
                ))
            })?;
            self.maps.forget_prepared(share.of.load, self.id)?;
        }
        Ok(())
    }

    /// The table of the cluster that a share of a load goes into, if the share is this node's.
    ///
    /// # Errors
    /// `Invalid` or `Refused` when it is not, or the table is another one.
    pub(crate) fn check_share(
        &self,
        description: &LoadDescription,
        share: &Share,
    ) -> Result<Table> {
        let map = self.look()?.map;
        let Some(id) = share.plan.cluster_table() else {
            return Err(Error::Invalid(
                "--worker: a cluster takes no shares of a load yet; give all inputs to one load"
                    .into(),
            ));
        };
        let table = map.table_of(id);
        let Some(table) =
            table.filter(|table| coload_types::same_name(&table.name, &description.table))
        else {
            return Err(Error::Invalid(format!(
                "table {} of the cluster is another one now; nothing was loaded",
                description.table
            )));
        };
        // Rows of a move come before the shards are here.
        let (table, place) = match &table.moving {
            None => (table.clone(), self.share(table, share.of.load)),
            Some(moving) if moving.load == share.of.load => {
                let receiving = table.receiving().unwrap_or_else(|| table.clone());
                (table.moved(), self.share(&receiving, share.of.load))
            }
            Some(_) => {
                return Err(Error::Unavailable(format!(
                    "shards of table {} are on their way to other leaves, and loads into it wait",
                    table.name
                )));
            }
        };
        if share.plan.routed_since() != table.since {
            return Err(Error::Unavailable(format!(
                "shards of table {} are on other leaves than the client knew",
                table.name
            )));
        }
        if place != Some(share.of) {
            return Err(Error::Refused(format!(
                "share {} of load {} is not that of this leaf",
                share.shown(),
                share.of.load
            )));
        }
        Ok(table)
    }

    /// Says that this node's share of a load is complete, and stays until the map decides.
    ///
    /// # Errors
    /// `Refused` when the load was given up meanwhile; `Unavailable` when the place is away.
    pub(crate) fn prepare(&self, share: &Share, rows: u64) -> Result<()> {
        let table = share.plan.cluster_table().unwrap_or(0);
        let doing = lock(&self.state);
        // What was given up up to this version is dropped, so what is there was prepared after it.
        let Some(complete) = self.store.complete_share(journal_of_share(share.of))? else {
            return Err(Error::Refused(format!("load {} was given up", share.of.load)));
        };
        let fits = holds::fits(&complete);
        let mark = Prepared { version: doing.state.applied, table, rows, fits };
        self.maps.put_prepared(share.of.load, self.id, mark)
    }

    /// Gives up a load into a table.
    ///
    /// # Errors
    /// As [`Maps::abort`].
    pub fn abort(&self, load: LoadId, table: Option<u64>) -> Result<()> {
        self.maps.abort(load, table)?;
        self.look().map(|_| ())
    }

    /// Makes a table on all nodes; `None` when one of its name is there and is to be kept.
    ///
    /// # Errors
    /// `Invalid` when it is there and must not be.
    pub fn create_table(
        &self,
        name: &str,
        schema: &Schema,
        (shard_by, shards): (&ShardBy, u32),
        on_existing: OnExisting,
    ) -> Result<Option<u64>> {
        if on_existing == OnExisting::Replace {
            return Err(Error::Invalid(
                "CREATE OR REPLACE TABLE is not for a cluster (drop it first)".into(),
            ));
        }
        let (_, id) = self.maps.change(|map| {
            if on_existing == OnExisting::Keep && map.table(name).is_some() {
                return Ok(Change::Same(None));
            }
            let id = map.add_table(name, schema.clone(), shard_by.clone(), shards)?;
            Ok(Change::Changed(Some(id)))
        })?;
        self.look()?;
        Ok(id)
    }

    /// Drops a table on all nodes.
    ///
    /// # Errors
    /// `Invalid` when there is none and one is wanted.
    pub fn drop_table(&self, name: &str, on_missing: OnMissing) -> Result<()> {
        self.maps.change(|map| {
            let before = map.tables.len();
            map.tables.retain(|table| !coload_types::same_name(&table.name, name));
            match (before == map.tables.len(), on_missing) {
                (false, _) => Ok(Change::Changed(())),
                (true, OnMissing::Ignore) => Ok(Change::Same(())),
                (true, OnMissing::Fail) => {
                    Err(Error::Invalid(format!("table {name} does not exist in the cluster")))
                }
            }
        })?;
        self.look().map(|_| ())
    }
}
