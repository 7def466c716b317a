//! A statement that was looked at: what is to be done, and doing it.

use std::fmt;
use std::sync::Arc;

use coload_types::{Error, Result};
use datafusion::arrow::array::AsArray;
use datafusion::arrow::datatypes::{Schema as ArrowSchema, SchemaRef, UInt64Type};
use datafusion::execution::session_state::SessionState;
use datafusion::logical_expr::LogicalPlan;
use datafusion::physical_plan::ExecutionPlan;
use datafusion::physical_plan::stream::RecordBatchStreamAdapter;
use datafusion::sql::sqlparser::ast::Statement as SqlStatement;
use futures::StreamExt;

use super::answers::done;
use super::{alter, change, copy, ddl, insert, shard, spelling, view};
use crate::Answer;
use crate::cluster::{self, ShardFilter};
use crate::database::Database;
use crate::error::to_datafusion;
use crate::external::Experience;
use crate::memory::execute;
use crate::rights::Rights;

/// A statement that was looked at and has not run.
pub struct Planned {
    pub(super) work: Work,
    pub(super) rights: Rights,
    pub(super) schema: SchemaRef,
    pub(super) parameters: ArrowSchema,
    pub(super) experience: Arc<Experience>,
}

/// What is to be done.
pub(super) enum Work {
    Query {
        session: Box<SessionState>,
        /// What the plan was made of; it is planned again where memory is short.
        logical: Box<LogicalPlan>,
        plan: Arc<dyn ExecutionPlan>,
    },
    Insert(Box<insert::Insert>),
    CreateAs(Box<insert::CreateAs>),
    Change(Box<change::Change>),
    Ddl(Box<SqlStatement>),
    /// What only names the schema that there is.
    Nothing,
    View(Box<view::NewView>),
    Copy(Box<copy::Export>),
    /// Rows of the store for another node of the cluster.
    Scan {
        session: Box<SessionState>,
        plan: Arc<dyn ExecutionPlan>,
        /// The shards whose rows are asked for, if not all are.
        filter: Option<ShardFilter>,
    },
    /// ALTER CLUSTER.
    Move(cluster::Step),
    /// CREATE TABLE .. SHARD BY.
    Shard(Box<shard::NewTable>),
    /// Its parameters have no values yet.
    Open(Opened),
}

/// What a statement is whose parameters have no values yet.
pub(super) enum Opened {
    Query,
    /// One whose answer is a count of rows.
    Counting,
}

impl fmt::Debug for Planned {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Planned").field("schema", &self.schema).finish_non_exhaustive()
    }
}

impl Planned {
    /// Columns of the answer.
    pub fn schema(&self) -> &SchemaRef {
        &self.schema
    }

    /// A field for each parameter. The type is what the place of the parameter asks for, and text
    /// where that may be anything.
    pub fn parameters(&self) -> &ArrowSchema {
        &self.parameters
    }

    /// Whether it changes something, or writes a file.
    pub fn writes(&self) -> bool {
        self.counts_rows() || matches!(self.work, Work::Ddl(_) | Work::View(_) | Work::Shard(_))
    }

    /// Whether its answer is the number of rows it has written, deleted or changed.
    pub fn counts_rows(&self) -> bool {
        let open = matches!(self.work, Work::Open(Opened::Counting));
        let counts = matches!(
            self.work,
            Work::Insert(_) | Work::CreateAs(_) | Work::Change(_) | Work::Copy(_)
        );
        open || counts
    }

    /// What it will have met in inputs when it has run.
    pub(crate) fn experience(&self) -> Arc<Experience> {
        Arc::clone(&self.experience)
    }

    /// Rows of the store that another node of the cluster asks for.
    pub(crate) fn of_scan(
        database: &Database,
        rights: &Rights,
        (plan, filter): (Arc<dyn ExecutionPlan>, Option<ShardFilter>),
    ) -> Self {
        let session = Box::new(database.session_of_plan());
        Planned {
            schema: plan.schema(),
            work: Work::Scan { session, plan, filter },
            rights: rights.clone(),
            parameters: ArrowSchema::empty(),
            experience: Arc::default(),
        }
    }

    /// Runs it, and tells how many rows it counts.
    ///
    /// # Errors
    /// As [`Self::run`].
    pub(crate) async fn counted(self, database: &Database) -> Result<u64> {
        let counts = self.counts_rows();
        let mut answer = Box::pin(self.run(database)).await?;
        let mut rows = 0;
        while let Some(batch) = answer.next().await? {
            if counts {
                rows += batch.column(0).as_primitive::<UInt64Type>().iter().flatten().sum::<u64>();
            }
        }
        Ok(rows)
    }

    /// Starts it. Must be called within a tokio runtime.
    ///
    /// # Errors
    /// `Invalid` when parameters have no values, and what goes wrong at once.
    pub async fn run(self, database: &Database) -> Result<Answer> {
        let user = self.rights.user();
        match self.work {
            Work::Query { session, logical, plan } => {
                let rows = execute(&session, Some(&logical), plan)?;
                Ok(Answer::new(spelling::renamed(rows, &self.schema)))
            }
            Work::Scan { session, plan, filter } => {
                let rows = execute(&session, None, plan)?;
                let Some(filter) = filter else { return Ok(Answer::new(rows)) };
                let kept = rows.map(move |batch| filter.apply(&batch?).map_err(to_datafusion));
                Ok(Answer::new(Box::pin(RecordBatchStreamAdapter::new(self.schema, kept))))
            }
            Work::Move(step) => step.run(database, &self.rights).await,
            Work::Insert(insert) => insert.run(database, user).await,
            Work::CreateAs(table) => table.run(database, user).await,
            Work::Change(change) => change.run(database, &self.rights).await,
            Work::View(view) => view.run(database.own_store("CREATE VIEW")?),
            Work::Nothing => Ok(done()),
            Work::Shard(table) => table.run(database, &self.rights),
            Work::Ddl(statement) => match &*statement {
                SqlStatement::AlterTable(change) => {
                    let limits = database.options().statements;
                    let store = database.own_store("ALTER TABLE")?;
                    alter::run(store, &self.rights, change, &limits)
                }
                SqlStatement::Truncate(truncate) => {
                    ddl::truncate_tables(database, &self.rights, truncate).await
                }
                other => ddl::run(database, &self.rights, other),
            },
            Work::Copy(copy) => copy.run(database, user).await,
            Work::Open(_) => Err(Error::Invalid(format!(
                "the statement has {} parameters, and none has a value",
                self.parameters.fields().len()
            ))),
        }
    }
}
