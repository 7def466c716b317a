//! `CREATE TABLE .. AS SELECT` of all rows of inputs: it is a load, and runs as one.
//!
//! Types become wider while it goes on, fragments are not made batches and then columns again, and all threads write.

use std::collections::HashSet;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use coload_ddl::Schema;
use coload_load::{Destination, Hooks, Leaves, LoadRequest, Resources, load, project};
use coload_store::LoadTarget;
use coload_threads::spawn;
use coload_types::{Column, Error, Result};
use datafusion::catalog::default_table_source::DefaultTableSource;
use datafusion::execution::memory_pool::{MemoryConsumer, MemoryReservation};
use datafusion::logical_expr::{Expr, LogicalPlan};

use super::table::ExternalTable;
use crate::database::Database;

/// Share of the memory of all statements that such a load takes.
const MEMORY_SHARE: usize = 4;

/// The load that a CREATE TABLE AS is; `None` when its rows are others than those of inputs.
pub(crate) fn load_of(rows: &LogicalPlan, target: &LoadTarget) -> Option<LoadRequest> {
    let (table, columns) = source(rows)?;
    let mut seen = HashSet::new();
    if columns.is_empty() || !columns.iter().all(|column| seen.insert(*column)) {
        return None;
    }
    let mut request = project(table.request(), &columns).ok()?;
    let pairs = target.schema.columns().iter().zip(request.schema.columns());
    // What the statement makes of a column is what the load makes of it.
    let named = pairs.map(|(wanted, own)| {
        let fits = wanted.data_type == own.data_type && (wanted.nullable || !own.nullable);
        fits.then(|| Column { name: wanted.name.clone(), nullable: wanted.nullable, ..own.clone() })
    });
    let schema = Schema::new(named.collect::<Option<Vec<_>>>()?).ok()?;
    (request.schema, request.table, request.mode) = (schema, target.name.clone(), target.mode);
    Some(request)
}

/// The inputs that rows are those of, all of them, and which columns they are.
fn source(plan: &LogicalPlan) -> Option<(&ExternalTable, Vec<usize>)> {
    match plan {
        LogicalPlan::SubqueryAlias(node) => source(&node.input),
        LogicalPlan::Projection(node) => {
            let (table, columns) = source(&node.input)?;
            let column = |expr: &Expr| {
                let name = match expr {
                    Expr::Column(name) => name,
                    Expr::Alias(alias) => match alias.expr.as_ref() {
                        Expr::Column(name) => name,
                        _ => return None,
                    },
                    _ => return None,
                };
                columns.get(node.input.schema().maybe_index_of_column(name)?).copied()
            };
            let chosen = node.expr.iter().map(column).collect::<Option<Vec<_>>>()?;
            Some((table, chosen))
        }
        LogicalPlan::TableScan(scan) if scan.filters.is_empty() && scan.fetch.is_none() => {
            let source = scan.source.downcast_ref::<DefaultTableSource>()?;
            let table = source.table_provider.downcast_ref::<ExternalTable>()?;
            let all = || (0..table.columns().len()).collect();
            Some((table, scan.projection.clone().unwrap_or_else(all)))
        }
        _ => None,
    }
}

/// Memory for such a load; `None` when there is not so much.
pub(crate) fn hold(database: &Database) -> Option<MemoryReservation> {
    let held = MemoryConsumer::new("CREATE TABLE AS of inputs").register(&database.memory_pool());
    held.try_grow(database.options().memory / MEMORY_SHARE).ok().map(|()| held)
}

/// Runs a load into the store, or into the leaves of the cluster that it is in, and tells how many rows it made. `request` is
/// called on the thread of the load, and may wait for the first rows. It ends when nobody waits for it any more.
///
/// # Errors
/// Those of a load.
pub(crate) async fn run_load(
    database: &Database,
    request: impl FnOnce() -> Result<LoadRequest> + Send + 'static,
    held: MemoryReservation,
) -> Result<u64> {
    run_load_into(database, None, request, held).await
}

/// The same, into leaves that are known, if they are.
///
/// # Errors
/// Those of a load.
pub(crate) async fn run_load_into(
    database: &Database,
    into: Option<Leaves>,
    request: impl FnOnce() -> Result<LoadRequest> + Send + 'static,
    held: MemoryReservation,
) -> Result<u64> {
    let resources = Resources {
        threads: database.options().threads,
        memory: held.size(),
        ..Resources::default()
    };
    let hooks = Hooks::default();
    let ended = EndOnDrop::new(&hooks);
    let (store, cluster) = (database.store().clone(), database.options().cluster.clone());
    let (tell, told) = tokio::sync::oneshot::channel();
    let work = move || {
        let loaded = request().and_then(|request| {
            let into: Box<dyn Destination> = match (into, cluster) {
                (Some(leaves), _) => Box::new(leaves),
                (None, Some(cluster)) => Box::new(cluster.leaves_for(request.mode)),
                (None, None) => Box::new(store),
            };
            load(&request, &resources, &hooks, &*into)
        });
        let loaded = loaded.map(|report| report.rows());
        drop(held);
        // Whoever waited may have gone.
        let _ = tell.send(loaded);
    };
    let thread = std::thread::Builder::new().name("coload-create-as".to_owned());
    spawn(thread, work).map_err(|e| Error::Unavailable(format!("cannot start a thread: {e}")))?;
    let loaded = told.await;
    drop(ended);
    loaded
        .map_err(|_| Error::Unavailable("the thread of a load has ended without a word".into()))?
}

/// Cancels a load when nobody waits for it any more.
pub(crate) struct EndOnDrop(Arc<AtomicBool>);

impl EndOnDrop {
    pub fn new(hooks: &Hooks) -> Self {
        EndOnDrop(Arc::clone(&hooks.cancel))
    }
}

impl Drop for EndOnDrop {
    fn drop(&mut self) {
        self.0.store(true, Ordering::Relaxed);
    }
}
