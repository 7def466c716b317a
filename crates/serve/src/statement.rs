//! One statement, from text to answer.
//!
//! ```text
//!   parse --> query, EXPLAIN, SHOW, DESCRIBE --> DataFusion
//!        \--> CREATE, DROP, TRUNCATE TABLE   --> store           (ddl)
//!         \-> INSERT, CREATE TABLE AS        --> plan --> store  (insert)
//!          \> COPY .. TO                     --> plan --> file   (copy)
//! ```

mod columns;
mod copy;
pub(crate) mod ddl;
mod identifiers;
mod insert;
mod numbers;
mod split;

use std::sync::Arc;

use coload_format::{Error, Result};
use coload_store::Snapshot;
use datafusion::arrow::array::{ArrayRef, UInt64Array};
use datafusion::arrow::datatypes::{DataType as ArrowType, Field, Schema as ArrowSchema};
use datafusion::arrow::record_batch::RecordBatch;
use datafusion::execution::SendableRecordBatchStream;
use datafusion::execution::session_state::SessionState;
use datafusion::logical_expr::LogicalPlan;
use datafusion::physical_plan::execute_stream;
use datafusion::physical_plan::stream::RecordBatchStreamAdapter;
use datafusion::sql::parser::Statement;
use datafusion::sql::sqlparser::ast::Statement as SqlStatement;

use crate::Answer;
use crate::database::Database;
use crate::error::from_datafusion;

pub use columns::{parse_columns, parse_create_table};
pub use split::{Statements, split_statements};

/// Runs one statement.
pub(crate) async fn run(database: &Database, text: &str) -> Result<Answer> {
    if let Some(copy) = copy::parse(text)? {
        return copy::run(database, copy).await;
    }
    let snapshot = database.store().snapshot()?;
    let session = database.session_of(&snapshot);
    match parse(&session, text, &snapshot)? {
        Statement::Statement(sql) => match *sql {
            SqlStatement::CreateTable(table) if table.query.is_some() => {
                insert::create_as(database, &session, table).await
            }
            SqlStatement::CreateTable(table) => ddl::create_table(database.store(), &table),
            SqlStatement::Drop { .. } => ddl::drop(database.store(), &sql),
            SqlStatement::Truncate(truncate) => ddl::truncate(database.store(), &truncate),
            SqlStatement::Insert(_) => insert::insert(database, &session, &snapshot, sql).await,
            _ => {
                check_supported(&sql)?;
                query(&session, Statement::Statement(sql)).await
            }
        },
        other @ Statement::Explain(_) => query(&session, other).await,
        Statement::CreateExternalTable(_) => {
            Err(unsupported("CREATE EXTERNAL TABLE", "`coload load` brings files into a table"))
        }
        Statement::Reset(_) => Err(unsupported("RESET", "each statement starts with the defaults")),
        Statement::CopyTo(_) => Err(unsupported("COPY here", "it must come first")),
    }
}

/// Parses one statement and puts in the stored spelling of names.
fn parse(session: &SessionState, text: &str, snapshot: &Snapshot) -> Result<Statement> {
    let dialect = session.config_options().sql_parser.dialect;
    let text = identifiers::resolve(text, snapshot);
    let text = numbers::resolve(&text);
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

/// Plans and starts what DataFusion does by itself.
async fn query(session: &SessionState, statement: Statement) -> Result<Answer> {
    let plan = session.statement_to_plan(statement).await.map_err(from_datafusion)?;
    stream(session, &plan).await.map(Answer::new)
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
    let schema = Arc::new(ArrowSchema::new(vec![Field::new("count", ArrowType::UInt64, false)]));
    let column: ArrayRef = Arc::new(UInt64Array::from(vec![rows]));
    let batch = RecordBatch::try_new(Arc::clone(&schema), vec![column])
        .map_err(|e| Error::Refused(format!("internal error: {e}")))?;
    let stream = futures::stream::iter([Ok(batch)]);
    Ok(Answer::new(Box::pin(RecordBatchStreamAdapter::new(schema, stream))))
}
