//! One statement, from text to answer.
//!
//! ```text
//!   text --parse, plan--> Planned --run--> Answer
//!
//!   query, EXPLAIN, SHOW, DESCRIBE --> DataFusion
//!   CREATE, DROP, TRUNCATE TABLE   --> store           (ddl)
//!   INSERT, CREATE TABLE AS        --> plan --> store  (insert; bind for many rows of parameters)
//!   COPY .. TO                     --> plan --> file   (copy)
//! ```

pub(crate) mod bind;
mod columns;
mod copy;
pub(crate) mod ddl;
mod identifiers;
pub(crate) mod insert;
mod limits;
mod numbers;
mod parameters;
mod placeholders;
mod split;

use std::fmt;
use std::sync::Arc;

use coload_format::{Error, Result};
use coload_store::Snapshot;
use datafusion::arrow::array::{ArrayRef, UInt64Array};
use datafusion::arrow::datatypes::{
    DataType as ArrowType, Field, Schema as ArrowSchema, SchemaRef,
};
use datafusion::arrow::record_batch::RecordBatch;
use datafusion::execution::SendableRecordBatchStream;
use datafusion::execution::session_state::SessionState;
use datafusion::logical_expr::LogicalPlan;
use datafusion::physical_plan::stream::RecordBatchStreamAdapter;
use datafusion::physical_plan::{ExecutionPlan, execute_stream};
use datafusion::sql::parser::Statement;
use datafusion::sql::sqlparser::ast::{CreateTable, Statement as SqlStatement};

use crate::Answer;
use crate::database::Database;
use crate::error::from_datafusion;
use crate::rights::Rights;

pub use columns::{parse_columns, parse_create_table};
pub use limits::StatementLimits;
pub use parameters::Parameters;
pub use split::{Statements, split_statements};

/// A statement that was looked at and has not run.
pub struct Planned {
    work: Work,
    rights: Rights,
    schema: SchemaRef,
    parameters: ArrowSchema,
}

/// What is to be done.
enum Work {
    Query {
        session: Box<SessionState>,
        plan: Arc<dyn ExecutionPlan>,
    },
    Insert(Box<insert::Insert>),
    CreateAs {
        session: Box<SessionState>,
        table: Box<CreateTable>,
    },
    Ddl(Box<SqlStatement>),
    Copy(copy::Copy),
    /// Its parameters have no values yet.
    Open(Opened),
}

/// What a statement is whose parameters have no values yet.
enum Opened {
    Query,
    Insert,
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
        self.counts_rows() || matches!(self.work, Work::Ddl(_))
    }

    /// Whether its answer is the number of rows it has written.
    pub fn counts_rows(&self) -> bool {
        let open = matches!(self.work, Work::Open(Opened::Insert));
        open || matches!(self.work, Work::Insert(_) | Work::CreateAs { .. } | Work::Copy(_))
    }

    /// Starts it. Must be called within a tokio runtime.
    ///
    /// # Errors
    /// `Invalid` when parameters have no values, and what goes wrong at once.
    pub async fn run(self, database: &Database) -> Result<Answer> {
        match self.work {
            Work::Query { session, plan } => {
                execute_stream(plan, session.task_ctx()).map_err(from_datafusion).map(Answer::new)
            }
            Work::Insert(insert) => insert.run(database).await,
            Work::CreateAs { session, table } => {
                insert::create_as(database, &session, &self.rights, *table).await
            }
            Work::Ddl(statement) => ddl::run(database.store(), &self.rights, &statement),
            Work::Copy(copy) => copy::run(database, &self.rights, copy).await,
            Work::Open(_) => Err(Error::Invalid(format!(
                "the statement has {} parameters, and none has a value",
                self.parameters.fields().len()
            ))),
        }
    }
}

/// Looks at one statement.
pub(crate) async fn plan(
    database: &Database,
    rights: &Rights,
    text: &str,
    parameters: Parameters,
) -> Result<Planned> {
    let planned =
        |work, schema, parameters| Ok(Planned { work, rights: rights.clone(), schema, parameters });
    if let Some(copy) = copy::parse(text)? {
        return planned(Work::Copy(copy), count_schema(), ArrowSchema::empty());
    }
    let snapshot = database.store().snapshot()?;
    let session = database.session_of(&snapshot, rights, None);
    let none = || Arc::new(ArrowSchema::empty());
    let statement = match parse(&session, text, &snapshot)? {
        Statement::Statement(sql) => match *sql {
            SqlStatement::CreateTable(table) if table.query.is_some() => {
                let work = Work::CreateAs { session: Box::new(session), table: Box::new(table) };
                return planned(work, count_schema(), ArrowSchema::empty());
            }
            SqlStatement::CreateTable(_)
            | SqlStatement::Drop { .. }
            | SqlStatement::Truncate(_) => {
                return planned(Work::Ddl(sql), none(), ArrowSchema::empty());
            }
            SqlStatement::Insert(_) => {
                let insert = insert::plan(session, &snapshot, rights, sql).await?;
                let fields = parameters::fields_of(insert.rows())?;
                let work = match parameters.bind(insert.rows(), &fields)? {
                    Some(rows) => Work::Insert(Box::new(insert.with_rows(rows))),
                    None => Work::Open(Opened::Insert),
                };
                return planned(work, count_schema(), fields);
            }
            _ => {
                check_supported(&sql)?;
                Statement::Statement(sql)
            }
        },
        other @ Statement::Explain(_) => other,
        Statement::CreateExternalTable(_) => {
            return Err(unsupported(
                "CREATE EXTERNAL TABLE",
                "`coload load` brings files into a table",
            ));
        }
        Statement::Reset(_) => {
            return Err(unsupported("RESET", "each statement starts with the defaults"));
        }
        Statement::CopyTo(_) => return Err(unsupported("COPY here", "it must come first")),
    };
    let logical = session.statement_to_plan(statement).await.map_err(from_datafusion)?;
    let fields = parameters::fields_of(&logical)?;
    match parameters.bind(&logical, &fields)? {
        Some(bound) => {
            let plan = session.create_physical_plan(&bound).await.map_err(from_datafusion)?;
            let schema = plan.schema();
            planned(Work::Query { session: Box::new(session), plan }, schema, fields)
        }
        None => planned(
            Work::Open(Opened::Query),
            Arc::new(logical.schema().as_arrow().clone()),
            fields,
        ),
    }
}

/// Parses one statement and puts in the stored spelling of names.
fn parse(session: &SessionState, text: &str, snapshot: &Snapshot) -> Result<Statement> {
    let dialect = session.config_options().sql_parser.dialect;
    let text = identifiers::resolve(text, snapshot);
    let text = numbers::resolve(&text);
    let text = placeholders::resolve(&text)?;
    session.sql_to_statement(&text, &dialect).map_err(from_datafusion)
}

/// Lets through what reads only.
fn check_supported(statement: &SqlStatement) -> Result<()> {
    match statement {
        SqlStatement::Query(_)
        | SqlStatement::Explain { .. }
        | SqlStatement::ExplainTable { .. }
        | SqlStatement::ShowTables { .. }
        | SqlStatement::ShowColumns { .. }
        | SqlStatement::ShowVariable { .. }
        | SqlStatement::ShowFunctions { .. } => Ok(()),
        SqlStatement::Update { .. } | SqlStatement::Delete(_) | SqlStatement::Merge { .. } => {
            Err(unsupported(
                &first_words(statement),
                "stored rows are not changed; load the table anew with `coload load --replace`",
            ))
        }
        SqlStatement::StartTransaction { .. }
        | SqlStatement::Commit { .. }
        | SqlStatement::Rollback { .. } => {
            Err(unsupported(&first_words(statement), "each statement is a transaction of its own"))
        }
        other => Err(unsupported(
            &first_words(other),
            "there is SELECT, EXPLAIN, SHOW, DESCRIBE, CREATE/DROP/TRUNCATE TABLE, INSERT and COPY .. TO",
        )),
    }
}

fn unsupported(what: &str, instead: &str) -> Error {
    Error::Invalid(format!("{what} is not supported: {instead}"))
}

/// The keywords that a statement starts with.
fn first_words(statement: &SqlStatement) -> String {
    const WORDS: usize = 2;
    let text = statement.to_string();
    let is_keyword = |w: &&str| w.bytes().all(|b| b.is_ascii_uppercase() || b == b'_');
    let words: Vec<&str> = text.split_whitespace().take(WORDS).take_while(is_keyword).collect();
    words.join(" ")
}

/// Plans and starts a logical plan. The stream holds the snapshot through its scans.
async fn stream(session: &SessionState, plan: &LogicalPlan) -> Result<SendableRecordBatchStream> {
    let physical = session.create_physical_plan(plan).await.map_err(from_datafusion)?;
    execute_stream(physical, session.task_ctx()).map_err(from_datafusion)
}

/// The answer of a statement that changed something and has nothing to tell.
fn done() -> Answer {
    let schema = Arc::new(ArrowSchema::empty());
    Answer::new(Box::pin(RecordBatchStreamAdapter::new(schema, futures::stream::empty())))
}

/// The answer of a statement that tells how many rows it wrote.
fn count(rows: u64) -> Result<Answer> {
    let stream = futures::stream::iter([Ok(count_batch(rows)?)]);
    Ok(Answer::new(Box::pin(RecordBatchStreamAdapter::new(count_schema(), stream))))
}

/// The one row of such an answer.
pub(crate) fn count_batch(rows: u64) -> Result<RecordBatch> {
    let column: ArrayRef = Arc::new(UInt64Array::from(vec![rows]));
    RecordBatch::try_new(count_schema(), vec![column])
        .map_err(|e| Error::Refused(format!("internal error: {e}")))
}

fn count_schema() -> SchemaRef {
    Arc::new(ArrowSchema::new(vec![Field::new("count", ArrowType::UInt64, false)]))
}
