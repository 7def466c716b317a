//! INSERT and CREATE TABLE AS: the rows of a plan into new segments.

use coload_format::{Error, Result};
use coload_load::merge_small;
use coload_store::{LoadKind, LoadMode, LoadTarget, OnExisting, Snapshot};
use datafusion::arrow::datatypes::Schema as ArrowSchema;
use datafusion::execution::session_state::SessionState;
use datafusion::logical_expr::{LogicalPlan, WriteOp, dml::InsertOp};
use datafusion::sql::parser::Statement;
use datafusion::sql::sqlparser::ast::{CreateTable, Statement as SqlStatement};
use futures::TryStreamExt;

use super::columns::table_name;
use super::ddl::{check_kind, on_existing};
use super::{count, done, stream, unsupported};
use crate::Answer;
use crate::database::Database;
use crate::error::from_datafusion;
use crate::types::table_schema;
use crate::write::RowWriter;

/// Share of a statement's memory that its writing side may hold.
const WRITER_SHARE: usize = 4;

/// INSERT INTO table [(columns)] VALUES .. or SELECT ...
pub(crate) async fn insert(
    database: &Database,
    session: &SessionState,
    snapshot: &Snapshot,
    statement: Box<SqlStatement>,
) -> Result<Answer> {
    if let SqlStatement::Insert(insert) = statement.as_ref() {
        if insert.on.is_some() || insert.or.is_some() || insert.ignore {
            return Err(unsupported("ON CONFLICT", "tables have no keys"));
        }
        if insert.returning.is_some() {
            return Err(unsupported("RETURNING", "SELECT from the table afterwards"));
        }
    }
    let plan = session
        .statement_to_plan(Statement::Statement(statement))
        .await
        .map_err(from_datafusion)?;
    let LogicalPlan::Dml(dml) = plan else {
        return Err(Error::Invalid("not an INSERT of rows".into()));
    };
    if dml.op != WriteOp::Insert(InsertOp::Append) {
        return Err(unsupported("INSERT OVERWRITE", "TRUNCATE the table first"));
    }
    let name = dml.table_name.table();
    // Of the snapshot that was planned on: a table that changed since is refused when the load begins.
    let table = snapshot.require_table(name)?;
    let target = LoadTarget {
        name: table.name.clone(),
        schema: table.schema.clone(),
        mode: LoadMode::Append,
    };
    let answer = write(database, session, target, LoadKind::Insert, &dml.input).await?;
    // The rows are published: whatever becomes of the merge, the INSERT has not failed. What it
    // could not read or write, the next statement that needs it says.
    let _ = merge_small(database.store(), &table.name);
    Ok(answer)
}

/// CREATE TABLE .. AS SELECT.
pub(crate) async fn create_as(
    database: &Database,
    session: &SessionState,
    table: CreateTable,
) -> Result<Answer> {
    check_kind(&table)?;
    if !table.columns.is_empty() || !table.constraints.is_empty() {
        return Err(unsupported(
            "CREATE TABLE with columns and AS",
            "name the columns in the SELECT",
        ));
    }
    let Some(query) = &table.query else {
        return Err(Error::Invalid("CREATE TABLE without columns".into()));
    };
    let name = table_name(&table.name)?;
    let exists = database.store().snapshot()?.table(&name).is_some();
    let mode = match on_existing(&table)? {
        OnExisting::Keep if exists => return Ok(done()),
        OnExisting::Replace => LoadMode::Replace,
        OnExisting::Keep | OnExisting::Fail => LoadMode::Create,
    };
    if exists && mode == LoadMode::Create {
        return Err(Error::Invalid(format!("table {name} exists already")));
    }
    let query = SqlStatement::Query(query.clone());
    let plan = session
        .statement_to_plan(Statement::Statement(Box::new(query)))
        .await
        .map_err(from_datafusion)?;
    let arrow: &ArrowSchema = plan.schema().as_arrow();
    let target = LoadTarget { name, schema: table_schema(arrow)?, mode };
    write(database, session, target, LoadKind::Create, &plan).await
}

/// Runs a plan whose columns are the target's, and publishes its rows.
async fn write(
    database: &Database,
    session: &SessionState,
    target: LoadTarget,
    kind: LoadKind,
    plan: &LogicalPlan,
) -> Result<Answer> {
    let memory = database.options().memory / WRITER_SHARE;
    let mut rows = stream(session, plan).await?;
    let mut writer = RowWriter::begin(database.store(), target, memory)?;
    while let Some(batch) = rows.try_next().await.map_err(from_datafusion)? {
        writer.append(&batch)?;
    }
    count(writer.publish(kind)?)
}
