//! One version of the map of a cluster.
//!
//! ```text
//!   version  nodes: id, address          who takes loads and statements
//!            tables: id, columns         and for each shard which node has it
//!            events after the horizon    which loads were committed or given up, each with its version
//! ```
//!
//! Events up to the **horizon** are known to all nodes and are no longer told. A version is never changed: the next one
//! takes its place.

mod codec;

use std::fmt;

use coload_ddl::Schema;
use coload_store::LoadId;
use coload_types::{Error, Result, same_name};

use crate::holds::Holder;
use crate::moves::Moving;
use crate::shards::assign_shards;

/// Most shards of a table.
pub const SHARDS_MAX: u32 = 4096;
/// Shards of a table that names no number.
pub const SHARDS_DEFAULT: u32 = 64;
/// Most nodes of a cluster.
pub(crate) const NODES_MAX: usize = 1024;

/// The id of a node, random, which its store keeps.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct NodeId(u128);

impl NodeId {
    /// A new random id.
    ///
    /// # Errors
    /// `Unavailable` when the operating system gives no random bytes.
    pub fn random() -> Result<Self> {
        Ok(NodeId(LoadId::random()?.as_u128()))
    }

    /// The id with these bits.
    pub const fn from_u128(bits: u128) -> Self {
        NodeId(bits)
    }

    /// All 128 bits as a number.
    pub const fn as_u128(self) -> u128 {
        self.0
    }
}

impl fmt::Display for NodeId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{:032x}", self.0)
    }
}

impl fmt::Debug for NodeId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "NodeId({self})")
    }
}

/// A process that serves a store.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Node {
    /// What it is known by.
    pub id: NodeId,
    /// Where others reach it, as `coload://host:port`.
    pub address: String,
    /// The version in which it joined: it owes nothing of those before.
    pub joined: u64,
}

/// What tells the shard of a row.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum ShardBy {
    /// The values of these columns, in this order.
    Columns(Vec<usize>),
    /// Nothing: rows are dealt in turn.
    InTurn,
    /// Nothing: each row is on each leaf. There is one shard then.
    Everywhere,
}

/// A table, spread over leaves.
#[derive(Debug, Clone, PartialEq)]
pub struct Table {
    /// Never used again for another table, whatever its name.
    pub id: u64,
    /// Name of the table, as it was written.
    pub name: String,
    /// Columns, rules and key.
    pub schema: Schema,
    /// What tells the shard of a row.
    pub shard_by: ShardBy,
    /// The nodes that have shards of it.
    pub leaves: Vec<NodeId>,
    /// For each shard the place of its leaf among `leaves`.
    pub shards: Vec<u16>,
    /// The node that makes it with its first rows, until these are committed: nobody else is told of it before that. When they
    /// are given up, or the node starts again, it is gone.
    pub making: Option<NodeId>,
    /// Shards that are on their way to other leaves; no rows are committed meanwhile.
    pub moving: Option<Moving>,
    /// The load that it is held for, if it is: no other is committed into it.
    pub holder: Option<Holder>,
    /// The version in which shards went elsewhere last: what was routed before does not fit.
    pub since: u64,
}

impl Table {
    /// Number of shards.
    pub fn shard_count(&self) -> u32 {
        self.shards.len() as u32
    }

    /// Whether each leaf has each row.
    pub fn is_everywhere(&self) -> bool {
        self.shard_by == ShardBy::Everywhere
    }

    /// The place of a node among the leaves of the table.
    pub fn place_of(&self, node: NodeId) -> Option<usize> {
        self.leaves.iter().position(|leaf| *leaf == node)
    }
}

/// Something that all nodes have to do once.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Event {
    /// The version of the map that brought it.
    pub version: u64,
    /// What was decided.
    pub what: What,
}

/// What was decided.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum What {
    /// The rows of a load are in its table.
    Loaded {
        /// The load.
        load: LoadId,
        /// Id of its table.
        table: u64,
    },
    /// A load that was prepared is given up.
    Aborted {
        /// The load.
        load: LoadId,
    },
    /// Shards of a table are on other leaves.
    Moved {
        /// The load that brought their rows there.
        load: LoadId,
        /// Id of the table.
        table: u64,
    },
}

/// One version of the map.
#[derive(Debug, Clone, PartialEq)]
pub struct Map {
    /// Number of the version, from 1.
    pub version: u64,
    /// What tells this cluster from others.
    pub cluster: u128,
    /// All nodes, in the order in which they joined.
    pub nodes: Vec<Node>,
    /// All tables.
    pub tables: Vec<Table>,
    /// What was decided, in order, after the horizon.
    pub events: Vec<Event>,
    /// Events up to this version are known to all nodes.
    pub horizon: u64,
    /// Id of the next table.
    pub next_table: u64,
}

impl Map {
    /// The first version, of nothing.
    pub fn new(cluster: u128) -> Self {
        Map {
            version: 1,
            cluster,
            nodes: Vec::new(),
            tables: Vec::new(),
            events: Vec::new(),
            horizon: 0,
            next_table: 1,
        }
    }

    /// The table of a name, in any case; one that is being made is not there yet.
    pub fn table(&self, name: &str) -> Option<&Table> {
        self.tables.iter().find(|table| same_name(&table.name, name) && table.making.is_none())
    }

    /// The table of an id, also one that is being made.
    pub fn table_of(&self, id: u64) -> Option<&Table> {
        self.tables.iter().find(|table| table.id == id)
    }

    /// A node.
    pub fn node(&self, id: NodeId) -> Option<&Node> {
        self.nodes.iter().find(|node| node.id == id)
    }

    /// The version that committed a load of a table, if it is after the horizon.
    pub fn loaded(&self, load: LoadId, table: u64) -> Option<u64> {
        let is = |event: &&Event| event.what == What::Loaded { load, table };
        self.events.iter().find(is).map(|event| event.version)
    }

    /// The version in which a load brought shards of a table elsewhere, if it is after the horizon.
    pub fn moved(&self, load: LoadId, table: u64) -> Option<u64> {
        let is = |event: &&Event| event.what == What::Moved { load, table };
        self.events.iter().find(is).map(|event| event.version)
    }

    /// The last version in which a load was given up, if it is after the horizon.
    pub fn aborted(&self, load: LoadId) -> Option<u64> {
        let is = |event: &&Event| event.what == What::Aborted { load };
        self.events.iter().rfind(is).map(|event| event.version)
    }

    /// Adds an event of this version.
    pub fn decide(&mut self, what: What) {
        self.events.push(Event { version: self.version, what });
    }

    /// Adds a table, spread over all nodes.
    ///
    /// # Errors
    /// `Invalid` when a table has its name, or there are too many shards or no nodes.
    pub fn add_table(
        &mut self,
        name: &str,
        schema: Schema,
        shard_by: ShardBy,
        shards: u32,
    ) -> Result<u64> {
        if let Some(known) = self.tables.iter().find(|table| same_name(&table.name, name)) {
            let being = if known.making.is_some() { " (it is being made)" } else { "" };
            return Err(Error::Invalid(format!("table {} exists already{being}", known.name)));
        }
        let shards = if shard_by == ShardBy::Everywhere { 1 } else { shards };
        if shards == 0 || shards > SHARDS_MAX {
            return Err(Error::Invalid(format!(
                "SHARDS {shards}: a table has 1 to {SHARDS_MAX} shards"
            )));
        }
        check_shard_columns(&schema, &shard_by)?;
        let leaves: Vec<NodeId> = self.nodes.iter().map(|node| node.id).collect();
        if leaves.is_empty() {
            return Err(Error::Invalid("the cluster has no nodes yet".into()));
        }
        let id = self.next_table;
        self.next_table += 1;
        let shards = match shard_by {
            ShardBy::Everywhere => vec![0],
            _ => assign_shards(id, shards, &leaves),
        };
        let name = name.to_owned();
        let (making, moving, holder, since) = (None, None, None, self.version);
        self.tables.push(Table {
            id,
            name,
            schema,
            shard_by,
            leaves,
            shards,
            making,
            moving,
            holder,
            since,
        });
        Ok(id)
    }
}

/// Rows with the same key must be on one leaf, or nobody sees that the key came twice.
fn check_shard_columns(schema: &Schema, shard_by: &ShardBy) -> Result<()> {
    let columns: &[usize] = match shard_by {
        ShardBy::Columns(columns) => columns,
        ShardBy::InTurn => &[],
        ShardBy::Everywhere => return Ok(()),
    };
    if let Some(column) = columns.iter().find(|column| **column >= schema.len()) {
        return Err(Error::Invalid(format!("SHARD BY column {column} of {}", schema.len())));
    }
    let Some(key) = schema.key().filter(|key| key.is_unique()) else { return Ok(()) };
    let within = columns.iter().all(|column| key.columns().contains(column));
    match within && !columns.is_empty() {
        true => Ok(()),
        false => Err(Error::Invalid(format!(
            "SHARD BY needs columns of the {}, so that rows of one key are on one leaf",
            key.sql(schema.columns())
        ))),
    }
}
