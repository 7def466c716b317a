//! Statements that change rows of a table of a cluster: the table is held while they are found, and one version of the map has them gone and
//! the new ones come.
//!
//! ```text
//!   hold the table -> plan: rows and their places, on all leaves -> new rows are routed as a load is, places go to their leaves
//!   all leaves have prepared both, and have said that they fit: one version commits, and frees the table
//! ```
//!
//! While the table is held its rows are the same in all versions and stand where they stood: no load is committed into it, and leaves merge
//! nothing of it. So a statement never runs twice, and waits for others.
//!
//! Memory: the places as sets, counted as two bytes for each row that goes.

use std::collections::BTreeMap;
use std::sync::{Arc, Mutex};

use coload_cluster::Table;
use coload_load::{Gone, Leaves};
use coload_receive::{HeldTable, Member};
use coload_store::{LoadId, LoadMode, LoadTarget, OnConflict, PlacedRows};
use coload_threads::{drop_elsewhere, lock};
use coload_types::{Error, Result};
use datafusion::arrow::array::{ArrayRef, BooleanArray};
use datafusion::arrow::record_batch::RecordBatch;
use datafusion::error::DataFusionError;
use datafusion::execution::memory_pool::{MemoryConsumer, MemoryReservation};
use futures::Stream;

use super::{Cluster, add_rows_to};
use crate::database::Database;
use crate::error::from_datafusion;
use crate::places::{numbers, place_on_leaf};
use crate::write::RowTarget;

/// A table that is held for a statement.
pub(crate) struct Changing {
    held: Option<HeldTable>,
    leaves: Leaves,
    table: Table,
    found: Arc<Found>,
}

impl Drop for Changing {
    fn drop(&mut self) {
        // To let go of it waits for the place of the map.
        if let Some(held) = self.held.take() {
            drop_elsewhere(held);
        }
    }
}

/// The rows that a statement found, and that go.
pub(crate) struct Found {
    gone: Arc<Gone>,
    table: Table,
    /// How many there are on each leaf.
    counts: Mutex<Vec<u64>>,
    memory: MemoryReservation,
}

impl Changing {
    /// Holds a table for a statement; what is planned from then on reads the rows that it changes.
    ///
    /// # Errors
    /// `Unavailable` when others hold it for too long, `Invalid` when it is gone.
    pub async fn begin(database: &Database, cluster: &Cluster, name: &str) -> Result<Self> {
        let (member, name) = (Arc::clone(cluster.member()), name.to_owned());
        let held = tokio::task::spawn_blocking(move || hold(&member, &name)).await;
        let (held, leaves, table) =
            held.map_err(|e| Error::Refused(format!("internal error: {e}")))??;
        let memory = MemoryConsumer::new("rows to delete").register(&database.memory_pool());
        // Each leaf is told, also of no rows: it says whether its share fits.
        let none = table.leaves.iter().map(|leaf| (*leaf, PlacedRows::default()));
        let gone: Arc<Gone> = Arc::new(Mutex::new(none.collect::<BTreeMap<_, _>>()));
        let counts = Mutex::new(vec![0; table.leaves.len()]);
        let found = Arc::new(Found { gone, table: table.clone(), counts, memory });
        Ok(Changing { held: Some(held), leaves, table, found })
    }

    /// Where the rows are noted that go.
    pub fn found(&self) -> &Arc<Found> {
        &self.found
    }

    /// Whether each leaf has all rows.
    pub fn is_everywhere(&self) -> bool {
        self.table.is_everywhere()
    }

    /// Has the rows that were found go, and new ones come, in one version.
    ///
    /// # Errors
    /// Those of the rows, and of a load; then nothing is changed.
    pub async fn commit(
        self,
        database: &Database,
        rows: impl Stream<Item = std::result::Result<RecordBatch, DataFusionError>> + Unpin,
    ) -> Result<()> {
        let target = RowTarget {
            load: LoadTarget {
                name: self.table.name.clone(),
                schema: self.table.schema.clone(),
                mode: LoadMode::Append,
            },
            on_conflict: OnConflict::Error,
        };
        let leaves = Leaves {
            map: Arc::clone(&self.leaves.map),
            node: self.leaves.node.clone(),
            gone: Some(Arc::clone(&self.found.gone)),
            ..self.leaves
        };
        add_rows_to(database, Some(leaves), target, rows).await.map(|_| ())
    }
}

fn hold(member: &Arc<Member>, name: &str) -> Result<(HeldTable, Leaves, Table)> {
    let missing = || Error::Invalid(format!("table {name} does not exist in the cluster"));
    let id = member.look()?.map.table(name).map(|table| table.id).ok_or_else(missing)?;
    let load = LoadId::random()?;
    let held = member.hold(id, load)?;
    // As of this version or a newer one the statement is planned.
    let map = member.look()?.map;
    let table = map.table(name).filter(|table| table.id == id).cloned().ok_or_else(missing)?;
    let leaves = Leaves { id: Some(load), ..member.leaves_at(&map, id) };
    Ok((held, leaves, table))
}

impl Found {
    /// Adds rows by their places; those that are NULL are of no row.
    ///
    /// # Errors
    /// That of `twice` when a row was found before; `Limit` when there is no memory.
    pub fn add(&self, places: &ArrayRef, twice: impl Fn() -> Error) -> Result<()> {
        /// Bytes of a row in a set of few.
        const ROW_BYTES: usize = 2;
        let places = numbers(places)?;
        self.memory.try_grow(places.len() * ROW_BYTES).map_err(from_datafusion)?;
        let (mut gone, mut counts) = (lock(&self.gone), lock(&self.counts));
        for place in places.iter().flatten() {
            let (leaf, segment, row) = place_on_leaf(place);
            let rows = self.table.leaves.get(leaf).and_then(|leaf| gone.get_mut(leaf));
            let rows = rows.ok_or_else(|| {
                Error::Refused(format!("internal error: a row of leaf {leaf}, which is none"))
            })?;
            if !rows.insert(segment, row) {
                return Err(twice());
            }
            counts[leaf] += 1;
        }
        Ok(())
    }

    /// Of a table that is everywhere, the rows that count: those of the first leaf, and those that are not in the table. `None` where all
    /// count.
    pub fn first_copies(&self, places: &ArrayRef) -> Result<Option<BooleanArray>> {
        if !self.table.is_everywhere() {
            return Ok(None);
        }
        let of_first =
            |place: Option<i64>| Some(place.is_none_or(|place| place_on_leaf(place).0 == 0));
        Ok(Some(numbers(places)?.iter().map(of_first).collect()))
    }

    /// Rows that go; of a table that is everywhere, on each leaf.
    ///
    /// # Errors
    /// `Corrupt` when leaves of a table that is everywhere have found other rows.
    pub fn count(&self) -> Result<u64> {
        let counts = lock(&self.counts);
        if !self.table.is_everywhere() {
            return Ok(counts.iter().sum());
        }
        match counts.iter().all(|count| *count == counts[0]) {
            true => Ok(counts.first().copied().unwrap_or(0)),
            false => Err(Error::Corrupt(format!(
                "the leaves of table {} found {counts:?} rows to change, and each should have all of them; nothing was changed",
                self.table.name
            ))),
        }
    }
}

/// Takes all rows of a table away.
///
/// # Errors
/// As [`Changing::begin`] and [`Changing::commit`].
pub(crate) async fn truncate(database: &Database, cluster: &Cluster, name: &str) -> Result<()> {
    let changing = Changing::begin(database, cluster, name).await?;
    lock(&changing.found.gone).values_mut().for_each(|rows| *rows = PlacedRows::All);
    changing.commit(database, futures::stream::empty()).await
}
