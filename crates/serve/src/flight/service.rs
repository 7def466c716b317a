//! What the calls of Flight SQL share: who calls, and how statements are planned, run and told of.

use std::sync::Arc;
use std::time::Instant;

use arrow_flight::FlightData;
use arrow_flight::error::FlightError;
use bytes::Bytes;
use coload_receive::Loads;
use coload_types::{Error, Result};
use datafusion::arrow::array::AsArray;
use datafusion::arrow::datatypes::UInt64Type;
use datafusion::arrow::record_batch::RecordBatch;
use datafusion::physical_plan::stream::RecordBatchStreamAdapter;
use futures::stream::BoxStream;
use tonic::{Request, Response, Status};

use super::answer::{self, Running, out_of_time};
use super::held::Held;
use super::limits::ServeLimits;
use super::metrics::{Ended, Metrics};
use super::outgoing::Receiver;
use super::prepared::{Bound, PreparedStatements};
use super::running::{Place, RunningStatements};
use super::status::{cancelled, shown, status};
use super::tickets::{self, Plans};
use super::turns::{Turn, TurnLimits, Turns};
use super::users::Users;
use crate::cluster::rows_of_question;
use crate::database::Database;
use crate::rights::Rights;
use crate::statement::bind::insert_rows;
use crate::statement::{Parameters, Planned};

/// Share of the memory for what sessions hold while no statement runs.
const SESSIONS_SHARE: usize = 8;

pub(super) type Served<T> = std::result::Result<T, Status>;
pub(super) type Rows = BoxStream<'static, Served<FlightData>>;

/// Flight SQL on a database. Clones share everything.
#[derive(Debug, Clone)]
pub(crate) struct Service {
    pub(super) shared: Arc<Shared>,
}

#[derive(Debug)]
pub(super) struct Shared {
    pub(super) database: Database,
    pub(super) users: Users,
    pub(super) metrics: Arc<Metrics>,
    pub(super) plans: Plans,
    pub(super) prepared: PreparedStatements,
    pub(super) limits: ServeLimits,
    /// Turns to run; planning has its own.
    statements: Turns,
    /// Turns of questions of other nodes: a statement that waits for them has one of its own at its node, and none of them waits
    /// for another.
    questions: Turns,
    pub(super) running: Arc<RunningStatements>,
    pub(super) loads: Loads,
    held: Held,
}

impl Service {
    pub fn new(
        database: Database,
        users: Users,
        metrics: Arc<Metrics>,
        limits: ServeLimits,
        loads: Loads,
    ) -> Self {
        let held = Held::new(database.options().memory / SESSIONS_SHARE);
        let statements = TurnLimits {
            total: limits.statements,
            per_user: limits.of_user(users.count()),
            wait_max: limits.queue_time,
        };
        let shared = Shared {
            users,
            metrics,
            plans: Plans::new(held.clone()),
            prepared: PreparedStatements::new(held.clone(), limits.prepared_per_user),
            held,
            statements: Turns::new(statements),
            questions: Turns::new(TurnLimits { per_user: limits.statements, ..statements }),
            running: Arc::default(),
            loads,
            limits,
            database,
        };
        Service { shared: Arc::new(shared) }
    }

    /// The database that is served.
    pub(crate) fn database(&self) -> &Database {
        &self.shared.database
    }

    /// Who may call.
    pub(crate) fn users(&self) -> &Users {
        &self.shared.users
    }

    /// What clients may have.
    pub(crate) fn limits(&self) -> &ServeLimits {
        &self.shared.limits
    }

    /// What sessions hold.
    pub(crate) fn held(&self) -> &Held {
        &self.shared.held
    }

    /// Counts a call without a known user.
    pub(crate) fn call_refused(&self) {
        self.shared.metrics.calls_refused.inc();
    }

    /// Adds a statement that can be cancelled by a key.
    pub(crate) fn running(&self, key: &[u8], rights: &Rights) -> Place {
        self.shared.running.add(Bytes::copy_from_slice(key), rights.user())
    }

    /// Cancels what runs under a key.
    pub(crate) fn cancel_key(&self, key: &[u8]) {
        self.shared.running.cancel_all(key);
    }

    /// Runs a statement whose rows come as they are made.
    pub(crate) fn rows(&self, running: Running) -> Result<Receiver> {
        let Shared { database, metrics, limits, .. } = &*self.shared;
        answer::rows(database, metrics, limits, running)
    }

    /// Runs an INSERT for each row of a batch.
    pub(crate) async fn insert_batch(
        &self,
        rights: &Rights,
        text: &str,
        rows: RecordBatch,
    ) -> Served<i64> {
        let (caller, database, own) = (rights.clone(), self.database().clone(), text.to_owned());
        let schema = rows.schema();
        let stream = futures::stream::iter([Ok(rows)]);
        let stream = Box::pin(RecordBatchStreamAdapter::new(schema, stream));
        let insert = async move { insert_rows(&database, &caller, &own, stream).await };
        let work =
            async { self.database().spawn_owned_of(rights.user(), insert)?.await.map_err(joined)? };
        self.write(rights, text, work).await
    }

    /// Forgets what nobody uses any more.
    pub fn sweep(&self) {
        self.shared.plans.sweep();
        self.shared.prepared.sweep();
        self.shared.users.sweep();
        self.shared.database.sweep();
        self.shared.metrics.prepared.set(self.shared.prepared.len() as i64);
    }

    /// Who calls, as the gate has found out.
    pub(super) fn caller<T>(&self, request: &Request<T>) -> Served<Rights> {
        let rights = request.extensions().get::<Rights>().cloned();
        rights.ok_or_else(|| Status::unauthenticated("nobody knows who calls"))
    }

    /// Waits until a statement of a user may run.
    pub(crate) async fn turn(&self, rights: &Rights) -> Served<Turn> {
        self.shared.statements.take(rights.user()).await.map_err(status)
    }

    /// Plans on the database's threads.
    pub(crate) async fn plan(
        &self,
        rights: &Rights,
        text: &str,
        values: Parameters,
    ) -> Served<Planned> {
        let (user, statement) = (rights.user().to_owned(), shown(text).into_owned());
        let (database, rights, text) =
            (self.shared.database.clone(), rights.clone(), text.to_owned());
        let plan = async move { database.plan(&rights, &text, values).await };
        let planned = self.shared.database.spawn_owned(plan);
        planned.await.map_err(broken)?.map_err(|error| {
            tracing::warn!(user, statement, %error, "statement refused");
            status(error)
        })
    }

    /// Plans a prepared statement with what is bound to it.
    pub(super) async fn plan_bound(&self, rights: &Rights, bound: &Bound) -> Served<Planned> {
        // Several rows are for an INSERT, whose columns do not depend on them.
        let several = bound.rows() > 1;
        let values = if several { Ok(Parameters::default()) } else { bound.parameters() };
        self.plan(rights, &bound.text, values.map_err(status)?).await
    }

    /// Runs a statement whose rows the client reads, until its place in the list is cancelled.
    pub(super) async fn run(
        &self,
        rights: &Rights,
        text: String,
        planned: Planned,
        mut place: Place,
    ) -> Served<Response<Rows>> {
        let turn = tokio::select! {
            turn = self.turn(rights) => turn?,
            () = place.cancelled() => return Err(cancelled()),
        };
        let user = rights.user().to_owned();
        let running = Running { planned, text, user, turn, place };
        let Shared { database, metrics, limits, .. } = &*self.shared;
        answer::run(database, metrics, limits, running).map(Response::new).map_err(status)
    }

    /// Rows of the node's own store that another node of the cluster asks for, with the rights of its user.
    pub(super) async fn rows_for_node(
        &self,
        rights: &Rights,
        question: &[u8],
    ) -> Served<Response<Rows>> {
        let Shared { database, metrics, limits, questions, .. } = &*self.shared;
        let (own, caller, question) = (database.clone(), rights.clone(), question.to_vec());
        // To come to a version of the map may take time, and reads files.
        let plan = move || rows_of_question(&own, &caller, &question);
        let planned = tokio::task::spawn_blocking(plan).await.map_err(broken)?.map_err(status)?;
        let turn = questions.take(rights.user()).await.map_err(status)?;
        let key = Bytes::from(coload_store::LoadId::random().map_err(status)?.to_string());
        let place = self.shared.running.add(key, rights.user());
        let (text, user) = ("rows for another node".to_owned(), rights.user().to_owned());
        let running = Running { planned, text, user, turn, place };
        // What bounds answers is for those who asked the other node.
        let limits = ServeLimits { answer_rows: None, answer_bytes: None, ..*limits };
        answer::run(database, metrics, &limits, running).map(Response::new).map_err(status)
    }

    /// Runs a statement to its end and tells how many rows it wrote, or -1 when it read.
    pub(crate) async fn update(
        &self,
        rights: &Rights,
        text: &str,
        planned: Planned,
    ) -> Served<i64> {
        let counts = planned.counts_rows();
        let writes = planned.writes();
        let work = |database: Database| async move {
            let mut answer = planned.run(&database).await?;
            let mut written = 0;
            while let Some(batch) = answer.next().await? {
                if counts {
                    written +=
                        batch.column(0).as_primitive::<UInt64Type>().iter().flatten().sum::<u64>();
                }
            }
            Ok(written)
        };
        let (database, user) = (self.shared.database.clone(), rights.user());
        let written = self
            .write(rights, text, async move {
                database.spawn_owned_of(user, work(database.clone()))?.await.map_err(joined)?
            })
            .await?;
        Ok(if writes { written } else { -1 })
    }

    /// Runs a statement that writes and makes the ticket that tells what it wrote.
    pub(super) async fn write_now(
        &self,
        rights: &Rights,
        text: &str,
        planned: Planned,
    ) -> Served<Bytes> {
        let counts = planned.counts_rows();
        let rows = self.update(rights, text, planned).await?;
        Ok(tickets::written(counts.then(|| rows.unsigned_abs())))
    }

    /// Runs an INSERT for each row bound to it.
    pub(super) async fn insert_bound(&self, rights: &Rights, bound: &Bound) -> Result<u64> {
        let (caller, bound) = (rights.clone(), bound.clone());
        let database = self.shared.database.clone();
        let insert =
            async move { insert_rows(&database, &caller, &bound.text, bound.stream()).await };
        self.shared.database.spawn_owned_of(rights.user(), insert)?.await.map_err(joined)?
    }

    /// Counts and logs what writes.
    pub(crate) async fn write(
        &self,
        rights: &Rights,
        what: &str,
        work: impl Future<Output = Result<u64>>,
    ) -> Served<i64> {
        let _turn = self.turn(rights).await?;
        let what = &*shown(what);
        let started = Instant::now();
        let metrics = &self.shared.metrics;
        let running = metrics.statement_started();
        let done = tokio::select! {
            done = work => done,
            error = out_of_time(self.shared.limits.statement_time) => Err(error),
        };
        drop(running);
        metrics.statement_ended(done.as_ref().map(|_| Ended::Done), started.elapsed(), 0);
        let (user, ms) = (rights.user(), started.elapsed().as_millis() as u64);
        match done {
            Ok(rows) => {
                metrics.rows_written(rows);
                tracing::info!(user, statement = what, rows, ms, "statement done");
                i64::try_from(rows).map_err(|_| Status::internal("too many rows to count"))
            }
            Err(error) => {
                tracing::warn!(user, statement = what, ms, error = %error, "statement failed");
                Err(status(error))
            }
        }
    }

    pub(super) fn catalog_rows(&self, batch: Result<RecordBatch>) -> Served<Response<Rows>> {
        let batch = batch.map_err(status)?;
        let rows = futures::stream::iter([Ok::<_, FlightError>(batch.clone())]);
        Ok(Response::new(answer::encode(batch.schema(), rows)))
    }
}

fn joined(error: tokio::task::JoinError) -> Error {
    Error::Refused(format!("internal error: {error}"))
}

fn broken(error: tokio::task::JoinError) -> Status {
    status(joined(error))
}
