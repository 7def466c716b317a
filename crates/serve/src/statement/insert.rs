//! INSERT and CREATE TABLE AS: the rows of a plan into new segments.

use coload_format::{Error, Result};
use coload_store::{LoadKind, LoadMode, LoadTarget, OnExisting, Snapshot};
use datafusion::arrow::datatypes::Schema as ArrowSchema;
use datafusion::execution::session_state::SessionState;
use datafusion::logical_expr::{LogicalPlan, WriteOp, dml::InsertOp};
use datafusion::sql::parser::Statement;
use datafusion::sql::sqlparser::ast::{CreateTable, Statement as SqlStatement};

use super::columns::table_name;
use super::ddl::{check_kind, on_existing, require_create};
use super::{count, stream, unsupported};
use crate::Answer;
use crate::database::Database;
use crate::error::from_datafusion;
use crate::rights::{Rights, Role};
use crate::types::table_schema;
use crate::write::write_rows;

/// An INSERT INTO table [(columns)] VALUES .. or SELECT .. that was planned.
pub(crate) struct Insert {
    session: SessionState,
    target: LoadTarget,
    rows: LogicalPlan,
}

/// Plans an INSERT. The table is that of the snapshot it was planned on: one that changed since is
/// refused when the load begins.
pub(crate) async fn plan(
    session: SessionState,
    snapshot: &Snapshot,
    rights: &Rights,
    statement: Box<SqlStatement>,
) -> Result<Insert> {
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
    let table = snapshot.require_table(dml.table_name.table())?;
    rights.require(Role::Load, &table.name)?;
    let target = LoadTarget {
        name: table.name.clone(),
        schema: table.schema.clone(),
        mode: LoadMode::Append,
    };
    Ok(Insert { session, target, rows: dml.input.as_ref().clone() })
}

impl Insert {
    /// The plan of its rows, whose columns are the table's.
    pub fn rows(&self) -> &LogicalPlan {
        &self.rows
    }

    /// The same with other rows.
    pub fn with_rows(mut self, rows: LogicalPlan) -> Self {
        self.rows = rows;
        self
    }

    /// Its session and where it goes.
    pub fn into_parts(self) -> (SessionState, LoadTarget, LogicalPlan) {
        (self.session, self.target, self.rows)
    }

    /// Runs it.
    pub async fn run(self, database: &Database) -> Result<Answer> {
        let rows = stream(&self.session, &self.rows).await?;
        count(write_rows(database, self.target, LoadKind::Insert, rows).await?)
    }
}

/// CREATE TABLE .. AS SELECT.
pub(crate) async fn create_as(
    database: &Database,
    session: &SessionState,
    rights: &Rights,
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
    require_create(rights, on_existing(&table)?, &name)?;
    let mode = match on_existing(&table)? {
        OnExisting::Keep if exists => return count(0),
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
    let rows = stream(session, &plan).await?;
    count(write_rows(database, target, LoadKind::Create, rows).await?)
}
