//! Loads of a server that is a node of a cluster.
//!
//! A client that begins a load is told the map, and begins a share of it at each leaf. A share that is complete is
//! prepared, and is published when the map has committed its load.

use std::sync::{Arc, Weak};
use std::time::Duration;

use coload_cluster::{Map, Table, hit};
use coload_link::Message;
use coload_store::{LoadId, LoadMode, OnConflict};
use coload_types::bytes::put_varint;
use coload_types::{Error, Result, same_name};
use coload_wire::{COMMITTED, Commit, Committed, LOOKED, LoadDescription, MAP, Share};

use super::{Inner, Need, Permission};
use crate::member::Member;

/// How often a node looks at the map by itself.
const LOOK_INTERVAL: Duration = Duration::from_millis(500);

/// Why a table with a key takes no load that may fail for its keys.
const KEYS_IN_CLUSTER: &str = "whether a key is there already would be known when the load is committed on all leaves, and it could no \
                               longer fail (give --on-conflict ignore or replace)";

/// Where a load begins.
pub(super) enum BeginsAt {
    /// Here, and all of it.
    Server,
    /// Here, of the table of a cluster, the share of the leaf with this place among its leaves.
    Leaf(Box<Table>, usize),
    /// At the leaves that the client is told.
    Leaves(Message),
}

fn not_in_cluster() -> Error {
    Error::Invalid("this server is in no cluster (coload serve --cluster)".into())
}

impl Inner {
    /// Does what the map decides, from now on and while this lives.
    pub(super) fn join_cluster(self: &Arc<Self>) -> Result<()> {
        let Some(member) = &self.options.cluster else { return self.store.check_alone() };
        let inner: Weak<Inner> = Arc::downgrade(self);
        member.drop_shares_with(Box::new(move |journal: LoadId| {
            inner.upgrade().map_or(Ok(()), |inner| inner.abort_one(journal))
        }));
        let (member, alive) = (Arc::clone(member), Arc::downgrade(self));
        let look = move || {
            while alive.strong_count() > 0 {
                // What fails is done by the next look, and told to whoever reads or loads meanwhile.
                let _ = member.look();
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
            // The client may load into this table, and is told of no other.
            let mut map = Map::clone(&*member.look()?.map);
            map.tables.retain(|table| same_name(&table.name, &description.table));
            map.events.clear();
            return Ok(BeginsAt::Leaves(Message::new(MAP, map.encode())));
        };
        let table = member.check_share(description, share)?;
        let LoadDescription { mode, on_conflict, delete_where, .. } = description;
        if *mode != LoadMode::Append {
            return Err(Error::Invalid(format!(
                "--replace and --create are not for a cluster yet (CREATE TABLE {} there, and DROP TABLE)",
                table.name
            )));
        }
        let has_key = table.schema.key().is_some_and(|key| key.is_unique());
        if has_key && matches!(on_conflict, OnConflict::Error | OnConflict::Reject) {
            return Err(Error::Invalid(format!(
                "table {} has a PRIMARY KEY: {KEYS_IN_CLUSTER}",
                table.name
            )));
        }
        match delete_where {
            None => Ok(BeginsAt::Leaf(Box::new(table), share.of.number as usize - 1)),
            Some(_) => Err(Error::Invalid("--delete-where is not for a cluster yet".into())),
        }
    }

    /// The map with the tables that a client may know of.
    pub fn map_seen(&self, permission: &Permission) -> Result<Message> {
        let mut map = Map::clone(&*self.require_member()?.look()?.map);
        map.tables.retain(|table| permission(&table.name, Need::See).is_ok());
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
        let table = map.tables.iter().find(|table| table.id == commit.table);
        table.map(|table| table.name.clone()).ok_or_else(|| {
            Error::Invalid(format!(
                "the table of load {} was dropped meanwhile; nothing was loaded",
                commit.load
            ))
        })
    }

    /// Commits a load that all leaves have prepared.
    pub fn commit(&self, commit: &Commit) -> Result<Message> {
        let member = self.require_member()?;
        let done = member.commit(commit.load, commit.table)?;
        let committed = Committed { version: done.version, rows: done.rows, already: done.already };
        Ok(Message::new(COMMITTED, committed.encode()))
    }

    /// Does what the map has decided; its version, for a client.
    pub fn look(&self) -> Result<Message> {
        let version = self.require_member()?.look()?.map.version;
        let mut bytes = Vec::new();
        put_varint(&mut bytes, version);
        Ok(Message::new(LOOKED, bytes))
    }
}
