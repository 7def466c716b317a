//! A store with SQL: each statement runs on the newest version there is when it starts.

use std::fmt;
use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll};

use coload_store::{CountedBytes, CountsMemory, Snapshot, SortWith, Store};
use coload_threads::drop_elsewhere;
use coload_types::Result;
use datafusion::arrow::datatypes::SchemaRef;
use datafusion::arrow::record_batch::RecordBatch;
use datafusion::execution::SendableRecordBatchStream;
use datafusion::execution::memory_pool::{MemoryConsumer, MemoryPool};
use datafusion::execution::object_store::ObjectStoreUrl;
use datafusion::execution::runtime_env::RuntimeEnvBuilder;
use datafusion::execution::session_state::SessionState;
use datafusion::physical_plan::stream::RecordBatchStreamAdapter;
use datafusion::prelude::SessionConfig;
use futures::{StreamExt, TryStreamExt};
use tokio::runtime::{Handle, Runtime};
use tokio::task::{JoinError, JoinHandle};

use crate::answer_rows::{AnswerRows, Teller};
use crate::catalog::{ArrowSchemas, CATALOG, ExtraTable, SCHEMA, SnapshotCatalog};
use crate::cluster::{Cluster, Reading};
use crate::error::from_datafusion;
use crate::external::{ExternalPlaces, Externals, Learned};
use crate::functions::session_builder;
use crate::lanes::{Lanes, start_threads};
use crate::memory::{self, Elsewhere, SpillFolder, SpillOptions, Watch};
use crate::physical_rules::physical_rules;
use crate::planning::Planner;
use crate::rights::Rights;
use crate::rules;
use crate::statement::bind::insert_rows;
use crate::statement::{self, Parameters, Planned, StatementLimits};

/// Stack of a thread that runs statements: expressions and plans are evaluated by functions that call themselves for each
/// level of nesting, of which there are `StatementLimits::depth`; only what is used takes memory.
pub const STACK_BYTES: usize = 64 << 20;

/// What a database may use.
#[derive(Debug, Clone)]
pub struct DatabaseOptions {
    /// Threads that a statement is spread over.
    pub threads: usize,
    /// Bytes that statements may hold together; sorts, joins and groups beyond it go to disk.
    pub memory: usize,
    /// How large a statement may be, and how long it may be planned.
    pub statements: StatementLimits,
    /// Where sorts, groups and joins go that memory does not hold.
    pub spill: SpillOptions,
    /// Who reads files and objects outside of the store for statements; none are read if `None`.
    pub external: Option<ExternalPlaces>,
    /// The cluster that the store is in.
    pub cluster: Option<Cluster>,
}

impl Default for DatabaseOptions {
    /// All threads of the machine, 1 GiB, and the limits of [`StatementLimits`].
    fn default() -> Self {
        DatabaseOptions {
            threads: std::thread::available_parallelism().map_or(1, usize::from),
            memory: 1 << 30,
            statements: StatementLimits::default(),
            spill: SpillOptions::default(),
            external: None,
            cluster: None,
        }
    }
}

/// A store with SQL. Clones share threads, memory and what is open.
#[derive(Clone)]
pub struct Database {
    inner: Arc<Inner>,
}

struct Inner {
    store: Store,
    options: DatabaseOptions,
    /// What all statements have in common.
    session: SessionState,
    schemas: Arc<ArrowSchemas>,
    learned: Arc<Learned>,
    planner: Planner,
    watch: Arc<Watch>,
    _spill: SpillFolder,
    lanes: Lanes,
    /// Only taken away when the database goes.
    runtime: Option<Runtime>,
}

impl Drop for Inner {
    /// A runtime must not wait for its threads within another one.
    fn drop(&mut self) {
        if let Some(runtime) = self.runtime.take() {
            drop_elsewhere(runtime);
        }
    }
}

impl fmt::Debug for Database {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Database").field("store", &self.inner.store.path()).finish()
    }
}

/// What a statement answers.
///
/// INSERT, COPY and CREATE TABLE AS answer one row with the column `count`; other statements that
/// change something answer no columns.
pub struct Answer {
    stream: SendableRecordBatchStream,
}

impl fmt::Debug for Answer {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Answer").field("schema", &self.stream.schema()).finish()
    }
}

impl Answer {
    pub(crate) fn new(stream: SendableRecordBatchStream) -> Self {
        Answer { stream }
    }

    /// The same when its first rows are there, or it is known that there are none.
    async fn begun(mut self) -> Result<Self> {
        let Some(first) = self.next().await? else { return Ok(self) };
        let schema = self.stream.schema();
        let rows = futures::stream::iter([Ok(first)]).chain(self.stream);
        Ok(Answer::new(Box::pin(RecordBatchStreamAdapter::new(schema, rows))))
    }

    /// Columns of the answer.
    pub fn schema(&self) -> SchemaRef {
        self.stream.schema()
    }

    /// The next rows; `None` at the end.
    ///
    /// # Errors
    /// What goes wrong while the statement runs.
    pub async fn next(&mut self) -> Result<Option<RecordBatch>> {
        self.stream.try_next().await.map_err(from_datafusion)
    }

    /// All rows.
    ///
    /// # Errors
    /// As [`Self::next`].
    pub async fn collect(self) -> Result<Vec<RecordBatch>> {
        self.stream.try_collect().await.map_err(from_datafusion)
    }
}

/// What runs until it is done or nobody waits for it any more.
#[derive(Debug)]
pub(crate) struct Owned<T>(JoinHandle<T>);

impl<T> Owned<T> {
    /// A task that ends when this is dropped.
    pub fn of(task: JoinHandle<T>) -> Self {
        Owned(task)
    }
}

impl<T> Future for Owned<T> {
    type Output = std::result::Result<T, JoinError>;

    fn poll(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<Self::Output> {
        Pin::new(&mut self.0).poll(context)
    }
}

impl<T> Drop for Owned<T> {
    fn drop(&mut self) {
        self.0.abort();
    }
}

/// Share of the memory that rows may take which are put in order, or by which an index is built.
const SORT_SHARE: usize = 2;

/// What writers of the store take counts as memory of statements.
#[derive(Debug)]
struct CountedByPool(Arc<dyn MemoryPool>);

impl CountsMemory for CountedByPool {
    fn take(&self, what: &'static str, bytes: u64) -> Result<CountedBytes> {
        let held = MemoryConsumer::new(what).register(&self.0);
        held.try_grow(usize::try_from(bytes).unwrap_or(usize::MAX)).map_err(from_datafusion)?;
        Ok(Box::new(held))
    }
}

impl Database {
    /// Puts SQL on a store.
    ///
    /// # Errors
    /// `Unavailable` when threads cannot be started, `Refused` when the store is in a cluster and the options name none.
    pub fn open(store: Store, options: DatabaseOptions) -> Result<Self> {
        let threads = options.threads.max(1);
        let runtime = start_threads(threads, "coload-sql")?;
        match &options.cluster {
            Some(cluster) => cluster.run_on(runtime.handle().clone()),
            // Its own rows are some of those of its tables.
            None => store.check_alone()?,
        }
        let spill = SpillFolder::create(&options.spill, store.path())?;
        let watch = Watch::start(options.memory);
        let session = session(&DatabaseOptions { threads, ..options.clone() }, &spill, &watch)?;
        let sort_with = SortWith { threads, memory: (options.memory / SORT_SHARE) as u64 };
        let counts = CountedByPool(Arc::clone(&session.runtime_env().memory_pool));
        let store = store.sorting_with(sort_with).counted_by(Arc::new(counts));
        let inner = Inner {
            store,
            session,
            options: DatabaseOptions { threads, ..options },
            watch,
            _spill: spill,
            schemas: Arc::default(),
            learned: Arc::default(),
            planner: Planner::new(&options.statements),
            lanes: Lanes::new(threads),
            runtime: Some(runtime),
        };
        Ok(Database { inner: Arc::new(inner) })
    }

    /// The store that the database reads and writes.
    pub fn store(&self) -> &Store {
        &self.inner.store
    }

    /// The options that the database was opened with.
    pub fn options(&self) -> &DatabaseOptions {
        &self.inner.options
    }

    /// Lets the process be larger by so much as is told, for what is not statements'.
    pub(crate) fn allow_elsewhere(&self, bytes: Elsewhere) {
        self.inner.watch.allow_elsewhere(bytes);
    }

    /// Starts one statement. Must be called within a tokio runtime; [`Self::query`] need not.
    ///
    /// # Errors
    /// `Invalid` when it is not SQL, names what does not exist, or is not supported.
    pub async fn sql(&self, text: &str) -> Result<Answer> {
        self.sql_with(text, &Parameters::default()).await
    }

    /// The same, for a statement with parameters.
    async fn sql_with(&self, text: &str, parameters: &Parameters) -> Result<Answer> {
        /// How often a statement is planned whose inputs need other types than they seemed to.
        const PLANS_MAX: usize = 100;
        let mut plans = 1;
        loop {
            let planned = self.plan(&Rights::all(), text, parameters.clone()).await?;
            let experience = planned.experience();
            if !experience.reads_inputs() {
                return planned.run(self).await;
            }
            let begun = match planned.run(self).await {
                Ok(answer) => answer.begun().await,
                Err(error) => Err(error),
            };
            match begun {
                Err(_) if experience.has_learned() && plans < PLANS_MAX => plans += 1,
                begun => return begun,
            }
        }
    }

    /// Looks at one statement of a caller: what it answers and which parameters it has. Must be
    /// called within a tokio runtime.
    ///
    /// # Errors
    /// As [`Self::sql`]; `Refused` when the caller has no right to it.
    pub async fn plan(
        &self,
        rights: &Rights,
        text: &str,
        parameters: Parameters,
    ) -> Result<Planned> {
        statement::plan(self, rights, text, parameters).await
    }

    /// Runs one statement on the database's own threads and waits for all rows.
    ///
    /// # Errors
    /// As [`Self::sql`], and what goes wrong while it runs.
    ///
    /// # Panics
    /// When called within a tokio runtime.
    pub fn query(&self, text: &str) -> Result<Vec<RecordBatch>> {
        self.block_on(async { self.sql(text).await?.collect().await })
    }

    /// Starts one statement on the database's own threads; its rows are taken as they come. What is wrong with it is told by
    /// the first look at the answer.
    pub fn start(&self, text: &str) -> AnswerRows {
        self.start_with(text, Parameters::default())
    }

    /// The same, for a statement with parameters.
    pub fn start_with(&self, text: &str, parameters: Parameters) -> AnswerRows {
        let (database, text) = (self.clone(), text.to_owned());
        let answer = |teller: Teller| async move {
            let mut answer = database.sql_with(&text, &parameters).await?;
            let mut going = teller.schema(answer.schema()).await;
            while going.is_some()
                && let Some(rows) = answer.next().await?
            {
                going = teller.rows(rows).await;
            }
            Ok(())
        };
        AnswerRows::start(&self.handle(), answer)
    }

    /// Starts an INSERT, UPDATE or DELETE for each row of a batch, whose columns are its parameters; the answer is the number of
    /// rows that were written. All rows of an INSERT become visible at once.
    pub fn start_for_each(&self, text: &str, rows: RecordBatch) -> AnswerRows {
        let (database, text) = (self.clone(), text.to_owned());
        let answer = |teller: Teller| async move {
            let schema = rows.schema();
            let stream = futures::stream::iter([Ok(rows)]);
            let stream = Box::pin(RecordBatchStreamAdapter::new(schema, stream));
            let count = insert_rows(&database, &Rights::all(), &text, stream).await?;
            teller.count(count).await
        };
        AnswerRows::start(&self.handle(), answer)
    }

    /// The database's own threads.
    fn handle(&self) -> Handle {
        match &self.inner.runtime {
            Some(runtime) => runtime.handle().clone(),
            // Only `drop` takes the runtime, and nobody can call then.
            None => Handle::current(),
        }
    }

    /// Starts a future, such as one over [`Self::sql`], on the database's own threads.
    pub fn spawn<T: Send + 'static>(
        &self,
        future: impl Future<Output = T> + Send + 'static,
    ) -> JoinHandle<T> {
        match &self.inner.runtime {
            Some(runtime) => runtime.spawn(future),
            // Only `drop` takes the runtime, and nobody can call then.
            None => tokio::spawn(future),
        }
    }

    /// As [`Self::spawn`], for a future that ends with who waits for it.
    pub(crate) fn spawn_owned<T: Send + 'static>(
        &self,
        future: impl Future<Output = T> + Send + 'static,
    ) -> Owned<T> {
        Owned(self.spawn(future))
    }

    /// Starts a statement of a user, on threads of his own.
    ///
    /// # Errors
    /// `Unavailable` when there are no threads for it.
    pub(crate) fn spawn_of<T: Send + 'static>(
        &self,
        user: &str,
        future: impl Future<Output = T> + Send + 'static,
    ) -> Result<JoinHandle<T>> {
        self.inner.lanes.spawn(user, future)
    }

    /// As [`Self::spawn_of`], for a future that ends with who waits for it.
    ///
    /// # Errors
    /// As [`Self::spawn_of`].
    pub(crate) fn spawn_owned_of<T: Send + 'static>(
        &self,
        user: &str,
        future: impl Future<Output = T> + Send + 'static,
    ) -> Result<Owned<T>> {
        self.spawn_of(user, future).map(Owned)
    }

    /// Ends what nobody has used for a while.
    pub(crate) fn sweep(&self) {
        self.inner.lanes.sweep();
    }

    /// Runs a future, such as one over [`Self::sql`], on the database's own threads.
    ///
    /// # Panics
    /// When called within a tokio runtime.
    pub fn block_on<T>(&self, future: impl Future<Output = T>) -> T {
        match &self.inner.runtime {
            Some(runtime) => runtime.block_on(future),
            // Only `drop` takes the runtime, and nobody can call then.
            None => futures::executor::block_on(future),
        }
    }

    /// Where statements are planned.
    pub(crate) fn planner(&self) -> &Planner {
        &self.inner.planner
    }

    /// What ends statements for their memory.
    pub(crate) fn watch(&self) -> &Watch {
        &self.inner.watch
    }

    /// What all statements may hold together.
    pub(crate) fn memory_pool(&self) -> Arc<dyn MemoryPool> {
        Arc::clone(&self.inner.session.runtime_env().memory_pool)
    }

    /// A session that sees of one snapshot what a caller may see.
    pub(crate) fn session_of(
        &self,
        (snapshot, reading): (&Snapshot, Option<&Reading>),
        rights: &Rights,
        extra: &[ExtraTable],
    ) -> SessionState {
        let mut session = self.inner.session.clone();
        self.show_tables(&mut session, (snapshot, reading), rights, extra);
        session.mark_start_execution();
        session
    }

    /// A session that sees no tables, for a plan that is there.
    pub(crate) fn session_of_plan(&self) -> SessionState {
        let mut session = self.inner.session.clone();
        session.mark_start_execution();
        session
    }

    /// The newest version, and that of the cluster which it is.
    pub(crate) fn newest(&self) -> Result<(Snapshot, Option<Reading>)> {
        match &self.inner.options.cluster {
            None => Ok((self.inner.store.snapshot()?, None)),
            Some(cluster) => cluster.read().map(|(snapshot, reading)| (snapshot, Some(reading))),
        }
    }

    /// The store, for a statement that changes it.
    ///
    /// # Errors
    /// `Invalid` when it is that of a node of a cluster.
    pub(crate) fn own_store(&self, what: &str) -> Result<&Store> {
        match &self.inner.options.cluster {
            None => Ok(&self.inner.store),
            Some(_) => Err(crate::cluster::refuse(what)),
        }
    }

    /// Has a session see these tables, and no other.
    pub(crate) fn show_tables(
        &self,
        session: &mut SessionState,
        (snapshot, reading): (&Snapshot, Option<&Reading>),
        rights: &Rights,
        extra: &[ExtraTable],
    ) {
        let schemas = Arc::clone(&self.inner.schemas);
        let catalog = SnapshotCatalog::new(snapshot.clone(), schemas, rights.clone(), extra);
        let catalog = catalog.with_cluster(reading.cloned());
        session.register_catalog_list(Arc::new(catalog));
    }

    /// The inputs that a statement of a caller may read.
    pub(crate) fn externals(&self, rights: &Rights) -> Externals {
        let Inner { options, learned, .. } = &*self.inner;
        Externals::new(options.external.clone(), rights.clone(), Arc::clone(learned))
    }
}

fn session(
    options: &DatabaseOptions,
    spill: &SpillFolder,
    watch: &Arc<Watch>,
) -> Result<SessionState> {
    let DatabaseOptions { threads, memory, .. } = *options;
    let mut config = SessionConfig::new()
        .with_extension(Arc::clone(watch))
        // The catalog brings its own, with the names of columns as they are stored.
        .with_information_schema(false)
        .with_default_catalog_and_schema(CATALOG, SCHEMA)
        .with_create_default_catalog_and_schema(false);
    memory::fit(&mut config, threads, memory);
    let engine = config.options_mut();
    // 0.05 is a decimal: compared with a DECIMAL column it is exact, and can be tested on codes.
    engine.sql_parser.parse_float_as_decimal = true;
    // The engine's check of types stumbles over columns that may be NULL in its physical plan and not in its logical one;
    // `rules::physical_plan` compares types.
    engine.execution.skip_physical_aggregate_schema_check = true;
    let runtime = RuntimeEnvBuilder::new()
        .with_memory_pool(memory::pool(memory))
        .with_disk_manager_builder(spill.disk_manager(&options.spill, memory))
        .build_arc()
        .map_err(from_datafusion)?;
    // No plan can reach a file, whatever became of it: the engine's own COPY and scans of files find no place.
    let files = ObjectStoreUrl::local_filesystem();
    runtime.deregister_object_store(files.as_ref()).map_err(from_datafusion)?;
    let builder = session_builder()
        .with_config(config)
        .with_runtime_env(runtime)
        .with_physical_optimizer_rules(physical_rules(options.memory));
    let mut session = rules::build(builder).map_err(from_datafusion)?;
    memory::bound_results(&mut session, memory).map_err(from_datafusion)?;
    Ok(session)
}
