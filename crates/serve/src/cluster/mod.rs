//! Tables of a cluster: their rows lie on several leaves, and each leaf gives those of its shards.
//!
//! ```text
//!   statement -> version of the map -> plan over ClusterTable -> ClusterScanExec: own rows by StoreScanExec
//!                                                                                the others' by do_get, a stream a leaf
//! ```
//!
//! A statement reads all leaves at one version of the map, which it takes when it is planned. Tests of rows, the columns
//! that are wanted and the number of rows that are enough go to the leaves as values, not as text. A leaf checks what it
//! is asked as it would check any client: who asks needs the right to read the table, and columns and values must fit it.

mod adding;
mod changing;
mod groups;
mod links;
mod moving;
mod question;
mod scan;
mod table;

use std::fmt;
use std::sync::{Arc, OnceLock};

use coload_cluster::{Map, ShardBy, Table};
use coload_receive::{At, Member};
use coload_store::Snapshot;
use coload_types::{Error, Result};
use datafusion::physical_plan::ExecutionPlan;
use tokio::runtime::Handle;

use crate::aggregate::groups_on_codes;
use crate::database::Database;
use crate::error::from_datafusion;
use crate::names::folded_schema;
use crate::remote::Credentials;
use crate::rights::{Rights, Role};
use crate::scan::StoreScanExec;
use crate::statement::Planned;
use crate::table::StoreTable;
use links::Links;

pub(crate) use adding::{add_rows, add_rows_to};
pub(crate) use changing::{Changing, Found, truncate};
pub(crate) use groups::{Aggregates, decode_group, encode_group};
pub(crate) use moving::{ShardFilter, Step};
pub use question::{QUESTION_TYPE, Question};
pub(crate) use scan::ClusterScanExec;
pub(crate) use table::ClusterTable;

/// The cluster that a database is part of.
#[derive(Clone)]
pub struct Cluster {
    inner: Arc<Inner>,
}

struct Inner {
    member: Arc<Member>,
    links: Arc<Links>,
    /// Threads of the network: streams of leaves outlive the threads of one user's statements.
    handle: OnceLock<Handle>,
}

impl fmt::Debug for Cluster {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Cluster").field("member", &self.inner.member).finish_non_exhaustive()
    }
}

/// A version of the cluster that a statement reads.
#[derive(Debug, Clone)]
pub(crate) struct Reading {
    cluster: Cluster,
    map: Arc<Map>,
}

impl Cluster {
    /// The cluster of a node, which calls other nodes with these credentials.
    pub fn new(member: Arc<Member>, credentials: Credentials) -> Self {
        let (links, handle) = (Arc::new(Links::new(credentials)), OnceLock::new());
        Cluster { inner: Arc::new(Inner { member, links, handle }) }
    }

    /// The node.
    pub fn member(&self) -> &Arc<Member> {
        &self.inner.member
    }

    /// Has links made on these threads.
    pub(crate) fn run_on(&self, handle: Handle) {
        let _ = self.inner.handle.set(handle);
    }

    fn handle(&self) -> Handle {
        self.inner.handle.get().cloned().unwrap_or_else(Handle::current)
    }

    /// The newest version, for a statement: the node's own snapshot, and the map.
    pub(crate) fn read(&self) -> Result<(Snapshot, Reading)> {
        let At { map, snapshot } = self.inner.member.read()?;
        Ok((snapshot, Reading { cluster: self.clone(), map }))
    }
}

impl Reading {
    /// The table of a name, if it is one of the cluster.
    pub fn table(&self, name: &str) -> Option<&Table> {
        self.map.table(name)
    }
}

/// The plan of what another node asks, of this node's own rows.
///
/// # Errors
/// `Refused` when its user may not read the table; `Corrupt` when it does not fit the table; `Unavailable` when the version
/// is over.
pub(crate) fn rows_of_question(
    database: &Database,
    rights: &Rights,
    question: &[u8],
) -> Result<Planned> {
    let Some(cluster) = &database.options().cluster else {
        return Err(Error::Invalid("this server is in no cluster".into()));
    };
    let mut found = None;
    let question = Question::decode(question, |begun| {
        let (snapshot, name) = cluster.member().at(begun.version, begun.table)?;
        // The name that the node says is none that rights are asked for.
        rights.require(Role::Read, &name)?;
        let index = snapshot.position(&name);
        let index =
            index.ok_or_else(|| Error::Corrupt(format!("table {name} is not in the store")))?;
        let schema = snapshot.tables()[index].schema.clone();
        found = Some((snapshot, index));
        Ok(schema)
    })?;
    let (snapshot, index) =
        found.ok_or_else(|| Error::Corrupt("a question without a table".into()))?;
    let arrow = folded_schema(&snapshot.tables()[index].schema);
    let has_places = question.columns.contains(&snapshot.tables()[index].schema.len());
    let table = StoreTable::new(snapshot, index, arrow);
    let table = if has_places { table.with_places() } else { table };
    let filter = match &question.shards {
        None => None,
        Some(shards) => {
            let map = cluster.member().read()?.map;
            let table = map.table_of(question.table);
            let table = table
                .ok_or_else(|| Error::Unavailable("the table was dropped meanwhile".into()))?;
            Some(ShardFilter::new(table, &question.columns, shards)?)
        }
    };
    let limit = question.limit.map(|limit| usize::try_from(limit).unwrap_or(usize::MAX));
    let threads = database.options().threads;
    let scan = StoreScanExec::new(table, question.columns, question.tests, limit, threads);
    let scan = scan.map_err(from_datafusion)?;
    let plan: Arc<dyn ExecutionPlan> = match question.aggregates {
        None => Arc::new(scan),
        Some(asked) => groups_on_codes(scan, asked)?,
    };
    Ok(Planned::of_scan(database, rights, (plan, filter)))
}

/// Refuses a statement that works on one store only.
pub(crate) fn refuse(what: &str) -> Error {
    Error::Invalid(format!(
        "{what} is not for a cluster yet (INSERT, COPY FROM, CREATE TABLE .. AS and coload load --into coload://any-node/table bring \
         rows; DROP TABLE takes them all away)"
    ))
}

/// Columns as a SHARD BY names them, of a table.
///
/// # Errors
/// `Invalid` when the table has none of such a name.
pub(crate) fn shard_by(schema: &coload_ddl::Schema, names: Option<&[String]>) -> Result<ShardBy> {
    let Some(names) = names else {
        let key = schema.key().filter(|key| key.is_unique());
        return Ok(key.map_or(ShardBy::InTurn, |key| ShardBy::Columns(key.columns().to_vec())));
    };
    let mut columns = Vec::with_capacity(names.len());
    for name in names {
        let column = schema.position(name).ok_or_else(|| {
            Error::Invalid(format!("SHARD BY {name}: the table has no such column"))
        })?;
        if columns.contains(&column) {
            return Err(Error::Invalid(format!("SHARD BY {name}: the column is named twice")));
        }
        columns.push(column);
    }
    Ok(ShardBy::Columns(columns))
}
