//! Loads of a server that is a node of a cluster.
//!
//! A client that begins a load is told the map, and begins a share of it at each leaf. A share that is complete is
//! prepared, and is published when the map has committed its load.

use std::sync::{Arc, Weak};
use std::time::Duration;

use coload_cluster::{Map, Table, Tried, hit};
use coload_link::Message;
use coload_store::{Deletions, JournalEntry, LoadId, LoadMode, OnConflict, PlacedRows};
use coload_types::{Error, Result, same_name};
use coload_wire::{
    COMMITTED, Commit, Committed, LOOKED, LoadDescription, Look, Looked, MAP, Share, Work,
};

use super::{Inner, Need, Permission};
use crate::member::{At, Member};

/// How often a node looks at the map by itself.
const LOOK_INTERVAL: Duration = Duration::from_millis(500);

/// Looks after which it is looked for loads without clients.
const LOOKS_ALONE: u32 = 10;

/// Where a load begins.
pub(super) enum BeginsAt {
    /// Here, and all of it.
    Server,
    /// Here, of the table of a cluster, the share of the leaf with this place among its leaves.
    Leaf(Box<Table>, usize),
    /// At the leaves that the client is told.
    Leaves(Message),
}

/// Refuses what a load into a table of a cluster cannot do yet.
fn check_rules(description: &LoadDescription, table: &Table) -> Result<()> {
    let LoadDescription { mode, on_conflict, delete_where, .. } = description;
    if *mode != LoadMode::Append {
        return Err(Error::Invalid(format!(
            "--replace and --create are not for a cluster yet (CREATE TABLE {} there, and DROP TABLE)",
            table.name
        )));
    }
    if *on_conflict == OnConflict::Reject {
        return Err(Error::Invalid(
            "--on-conflict reject is not for a cluster yet (error, ignore, replace and newest are)"
                .into(),
        ));
    }
    match delete_where {
        None => Ok(()),
        Some(_) => Err(Error::Invalid("--delete-where is not for a cluster yet".into())),
    }
}

/// Gives up loads whose clients have gone, and whose inputs nobody can read again: those of a node that was asked and has
/// ended, or of a client with a stream.
///
/// Whether one is gone is looked at twice, so that a client which comes back to a leaf that has started again is waited
/// for. The map decides; one that is committed meanwhile stays.
#[derive(Default)]
struct GivenUp {
    looks: u32,
    /// Shares that were without a client the last time.
    alone: Vec<LoadId>,
}

impl GivenUp {
    fn look(&mut self, inner: &Inner, member: &Member) -> Result<()> {
        self.looks += 1;
        if !self.looks.is_multiple_of(LOOKS_ALONE) {
            return Ok(());
        }
        let mut alone = Vec::new();
        for entry in inner.store.list_journals()? {
            let Ok(description) = LoadDescription::decode(&entry.description) else { continue };
            let once = description.comes_once();
            let Some(share) = description.share.filter(|_| once) else { continue };
            if share.plan.cluster_table().is_none() || inner.has_client(entry.id) {
                continue;
            }
            match self.alone.contains(&entry.id) {
                // What fails is tried at the next look but one.
                true => drop(member.abort(share.of.load, share.plan.cluster_table())),
                false => alone.push(entry.id),
            }
        }
        self.alone = alone;
        inner.forget_clients();
        Ok(())
    }
}

fn not_in_cluster() -> Error {
    Error::Invalid("this server is in no cluster (coload serve --cluster)".into())
}

impl Inner {
    /// Does what the map decides, from now on and while this lives.
    pub(super) fn join_cluster(self: &Arc<Self>) -> Result<()> {
        let Some(member) = &self.options.cluster else { return self.store.check_alone() };
        let inner: Weak<Inner> = Arc::downgrade(self);
        member.drop_shares_with(Box::new(move |journal: LoadId, why: &Error| {
            inner.upgrade().map_or(Ok(()), |inner| inner.drop_one(journal, why))
        }));
        let (member, alive) = (Arc::clone(member), Arc::downgrade(self));
        let look = move || {
            let mut given_up = GivenUp::default();
            loop {
                // What fails is done by the next look, and told to whoever reads or loads meanwhile.
                let _ = member.look();
                let _ = member.let_go_of_ended();
                let Some(inner) = alive.upgrade() else { return };
                let _ = given_up.look(&inner, &member);
                drop(inner);
                std::thread::sleep(LOOK_INTERVAL);
            }
        };
        let builder = std::thread::Builder::new().name("coload-cluster".to_owned());
        let started = coload_threads::spawn(builder, look);
        started.map_err(|e| Error::Unavailable(format!("cannot start a thread: {e}")))?;
        Ok(())
    }

    pub(super) fn member(&self) -> Option<&Arc<Member>> {
        self.options.cluster.as_ref()
    }

    fn require_member(&self) -> Result<&Arc<Member>> {
        self.member().ok_or_else(not_in_cluster)
    }

    /// Checks that a load may begin here; the map, if its client is to begin at the leaves.
    pub(super) fn check_in_cluster(&self, description: &LoadDescription) -> Result<BeginsAt> {
        let share = description.share.as_ref();
        let Some(member) = self.member() else {
            return match share.and_then(|share| share.plan.cluster_table()) {
                None => Ok(BeginsAt::Server),
                Some(_) => Err(not_in_cluster()),
            };
        };
        let Some(share) = share else {
            if description.work != Work::Partitions {
                // It is read here, and its rows go to the leaves.
                let map = member.look()?.map;
                let Some(table) = map.table(&description.table) else {
                    return Err(Error::Invalid(format!(
                        "table {} does not exist in the cluster (CREATE TABLE there)",
                        description.table
                    )));
                };
                return check_rules(description, table).map(|()| BeginsAt::Server);
            }
            // The client may load into this table, and is told of no other.
            let mut map = Map::clone(&*member.look()?.map);
            map.tables.retain(|t| same_name(&t.name, &description.table) && t.making.is_none());
            map.events.clear();
            return Ok(BeginsAt::Leaves(Message::new(MAP, map.encode())));
        };
        let table = member.check_share(description, share)?;
        check_rules(description, &table)?;
        let place = table.place_of(member.id()).unwrap_or(usize::MAX);
        Ok(BeginsAt::Leaf(Box::new(table), place))
    }

    /// The table of a cluster that a load goes into which has begun here.
    pub(super) fn table_of_load(&self, load: LoadId) -> Result<Option<u64>> {
        let of = |entry: JournalEntry| {
            let share = LoadDescription::decode(&entry.description).ok()?.share?;
            share.plan.cluster_table().filter(|_| share.of.load == load)
        };
        Ok(self.store.list_journals()?.into_iter().find_map(of))
    }

    /// The map with the tables that a client may know of.
    pub fn map_seen(&self, permission: &Permission) -> Result<Message> {
        let mut map = Map::clone(&*self.require_member()?.look()?.map);
        map.tables.retain(|t| t.making.is_none() && permission(&t.name, Need::See).is_ok());
        map.events.clear();
        Ok(Message::new(MAP, map.encode()))
    }

    /// Says that a share is complete, if it is that of a leaf.
    pub(super) fn prepare(&self, share: &Share, rows: u64) -> Result<()> {
        if share.plan.cluster_table().is_none() {
            return Ok(());
        }
        hit("cluster::leaf::finished");
        self.require_member()?.prepare(share, rows)?;
        hit("cluster::leaf::prepared");
        Ok(())
    }

    /// Name of the table that a load is to be committed into.
    pub fn table_to_commit(&self, commit: &Commit) -> Result<String> {
        let map = self.require_member()?.look()?.map;
        map.table_of(commit.table).map(|table| table.name.clone()).ok_or_else(|| {
            Error::Invalid(format!(
                "the table of load {} was dropped meanwhile; nothing was loaded",
                commit.load
            ))
        })
    }

    /// Commits a load that all leaves have prepared.
    pub fn commit(&self, commit: &Commit) -> Result<Message> {
        let member = self.require_member()?;
        let tried = if commit.comes_once { Tried::Once } else { Tried::Again };
        let done = member.commit(commit.load, commit.table, tried)?;
        let committed = Committed { version: done.version, rows: done.rows, already: done.already };
        Ok(Message::new(COMMITTED, committed.encode()))
    }

    /// Does what the map has decided; its version, for a client.
    pub fn look(&self, look: Look) -> Result<Message> {
        let member = self.require_member()?;
        // Who asks whether a load is under way waits for nothing else.
        let (version, holds) = match look.held_for {
            Some(load) => (0, member.holds(load)),
            None => (member.look()?.map.version, false),
        };
        Ok(Message::new(LOOKED, Looked { version, holds }.encode()))
    }

    /// The rows of the table that go when those of a share come, as they lie in this store.
    pub(super) fn gone(&self, share: &Share, gone: &PlacedRows) -> Result<Deletions> {
        let At { map, snapshot } = self.require_member()?.look()?;
        let of = share.plan.cluster_table().and_then(|table| map.table_of(table));
        let held = of.filter(|of| of.holder.is_some_and(|holder| holder.load == share.of.load));
        let entry = held.and_then(|of| snapshot.table(&of.name));
        let entry = entry.ok_or_else(|| {
            Error::Refused(format!(
                "the table is not held for load {} any more; nothing was changed (try again)",
                share.of.load
            ))
        })?;
        gone.deletions(&snapshot, entry)
    }
}
