//! A store, with loads and SQL.

use std::path::Path;
#[cfg(feature = "sql")]
use std::sync::OnceLock;

use coload_input::Inputs;
use coload_load::{Hooks, LoadReport, LoadRequest, Nowhere, Resources, check_output};
use coload_scan::KeyTable;
#[cfg(feature = "sql")]
use coload_serve::{AnswerRows, Database, DatabaseOptions, arrow::record_batch::RecordBatch};
use coload_store::{Snapshot, Store};
use coload_types::{Error, Result};

use crate::plan::{LoadPlan, PlanRequest, plan};

/// An open store: plans and runs loads, and queries with the feature `sql`.
#[derive(Debug)]
pub struct Coload {
    store: Store,
    #[cfg(feature = "sql")]
    /// Its threads start with the first query.
    database: OnceLock<Database>,
}

impl Coload {
    /// Opens an existing store.
    ///
    /// # Errors
    /// `Invalid` when `path` is not a store, `Corrupt` when it is damaged.
    pub fn open(path: impl AsRef<Path>) -> Result<Self> {
        Store::open(path).map(Coload::new)
    }

    /// Opens a store, or makes one of a directory that is absent or empty.
    ///
    /// # Errors
    /// As [`Coload::open`]; `Invalid` when the directory holds something else.
    pub fn create_or_open(path: impl AsRef<Path>) -> Result<Self> {
        Store::create_or_open(path).map(Coload::new)
    }

    fn new(store: Store) -> Self {
        Coload {
            store,
            #[cfg(feature = "sql")]
            database: OnceLock::new(),
        }
    }

    /// A table with a PRIMARY KEY in the newest version, to find rows by their keys without SQL.
    ///
    /// # Errors
    /// `Invalid` when there is no such table, or it has no PRIMARY KEY.
    pub fn table(&self, name: &str) -> Result<KeyTable> {
        KeyTable::new(self.store.snapshot()?, name)
    }

    /// Looks at the inputs and decides how they are read and into what.
    ///
    /// # Errors
    /// `Invalid` when an input cannot be opened, is no delimited text, or does not tell its columns.
    pub fn plan(&self, request: &PlanRequest) -> Result<LoadPlan> {
        self.plan_unless_empty(request)?.ok_or_else(|| {
            Error::Invalid(format!(
                "{} holds no record, so that its columns cannot be told: give --columns or --schema",
                request.origin.told()
            ))
        })
    }

    /// [`Coload::plan`]; `None` when all inputs are empty, and nothing else tells the columns.
    ///
    /// # Errors
    /// As [`Coload::plan`].
    pub fn plan_unless_empty(&self, request: &PlanRequest) -> Result<Option<LoadPlan>> {
        plan(Some(&self.store), request)
    }

    /// Loads: all of it becomes visible at once, or nothing.
    ///
    /// # Errors
    /// `Input` when a record cannot be a row and no reject is left, `Invalid` when the request does
    /// not fit the store, `Unavailable` when the system fails. The store is as it was then.
    pub fn load(
        &self,
        request: &LoadRequest,
        resources: &Resources,
        hooks: &Hooks,
    ) -> Result<LoadReport> {
        if let Some(path) = &request.rejects_file {
            let store = [(self.store.path().to_owned(), "the store")];
            check_output("--rejects", path, &Inputs::default(), &store)?;
        }
        coload_load::load(request, resources, hooks, &self.store)
    }

    /// Plans a load into a store that may not be there yet, and makes none.
    ///
    /// # Errors
    /// As [`Coload::open`] and [`Coload::plan`].
    pub fn plan_dry_run(path: impl AsRef<Path>, request: &PlanRequest) -> Result<Option<LoadPlan>> {
        plan(existing(path.as_ref())?.as_ref(), request)
    }

    /// Does what a load does, but writes nothing.
    ///
    /// # Errors
    /// As [`Coload::load`], but for rejects, which are counted.
    pub fn dry_run(
        path: impl AsRef<Path>,
        request: &LoadRequest,
        resources: &Resources,
        hooks: &Hooks,
    ) -> Result<LoadReport> {
        let store = existing(path.as_ref())?;
        coload_load::load(request, resources, hooks, &Nowhere::LikeStore(store.as_ref()))
    }

    #[cfg(feature = "sql")]
    /// Runs one SQL statement on the newest version and gives its rows.
    ///
    /// # Errors
    /// `Invalid` when the statement is wrong, `Limit` when it needs too much memory.
    ///
    /// # Panics
    /// When called within a tokio runtime; use [`Coload::database`] there.
    pub fn query(&self, sql: &str) -> Result<Vec<RecordBatch>> {
        self.database(DatabaseOptions::default())?.query(sql)
    }

    #[cfg(feature = "sql")]
    /// Starts one SQL statement on the newest version; its rows are taken as they come, and memory does not depend on how many
    /// they are. Must not be called within a tokio runtime.
    ///
    /// ```
    /// # fn main() -> coload::Result<()> {
    /// # let folder = tempfile::tempdir().map_err(|e| coload::Error::Unavailable(e.to_string()))?;
    /// let store = coload::Coload::create_or_open(folder.path().join("store"))?;
    /// let mut count = 0;
    /// for rows in store.stream("SELECT value FROM range(1000000)")? {
    ///     count += rows?.num_rows();
    /// }
    /// assert_eq!(count, 1_000_000);
    /// # Ok(())
    /// # }
    /// ```
    ///
    /// # Errors
    /// `Unavailable` when threads cannot be started. What is wrong with the statement is told by its rows.
    pub fn stream(&self, sql: &str) -> Result<AnswerRows> {
        Ok(self.database(DatabaseOptions::default())?.start(sql))
    }

    #[cfg(feature = "sql")]
    /// SQL on the store; the options count the first time.
    ///
    /// # Errors
    /// `Unavailable` when its threads cannot be started.
    pub fn database(&self, options: DatabaseOptions) -> Result<&Database> {
        if let Some(database) = self.database.get() {
            return Ok(database);
        }
        let database = Database::open(self.store.clone(), options)?;
        Ok(self.database.get_or_init(|| database))
    }

    /// The newest version: tables, segments, loads.
    ///
    /// # Errors
    /// `Corrupt` when the manifest is damaged.
    pub fn snapshot(&self) -> Result<Snapshot> {
        self.store.snapshot()
    }

    /// The store itself, for what this type has no method for.
    pub fn store(&self) -> &Store {
        &self.store
    }
}

/// The store at a path; `None` where there is nothing, or an empty directory.
fn existing(path: &Path) -> Result<Option<Store>> {
    let empty = std::fs::read_dir(path).is_ok_and(|mut entries| entries.next().is_none());
    if empty || !path.exists() { Ok(None) } else { Store::open(path).map(Some) }
}
