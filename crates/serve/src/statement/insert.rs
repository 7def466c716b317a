//! INSERT and CREATE TABLE AS: the rows of a plan into new segments.

use std::sync::Arc;

use coload_store::{LoadKind, LoadMode, LoadTarget, OnExisting};
use coload_types::{Error, Result};
use datafusion::arrow::datatypes::{FieldRef, Schema as ArrowSchema, SchemaRef};
use datafusion::common::tree_node::{Transformed, TreeNode};
use datafusion::common::{DFSchema, TableReference};
use datafusion::error::Result as DataFusionResult;
use datafusion::execution::session_state::SessionState;
use datafusion::logical_expr::{LogicalPlan, Values, WriteOp, dml::InsertOp};
use datafusion::sql::sqlparser::ast::{CreateTable, Statement as SqlStatement};

use super::columns::table_name;
use super::ddl::{on_existing, require_create};
use super::on_conflict::take_said;
use super::spelling::renamed;
use super::{Planning, count, nodes, stream, tree, unsupported};
use crate::Answer;
use crate::database::Database;
use crate::error::from_datafusion;
use crate::external::{hold, load_of, run_load};
use crate::names::{find_table, missing_table};
use crate::rights::Role;
use crate::types::table_schema;
use crate::write::{RowTarget, write_rows};

/// An INSERT INTO table [(columns)] VALUES .. or SELECT .. that was planned.
pub(crate) struct Insert {
    session: SessionState,
    target: RowTarget,
    rows: LogicalPlan,
}

/// Plans an INSERT. The table is that of the snapshot it was planned on: one that changed since is
/// refused when the load begins.
pub(crate) async fn plan(
    mut planning: Planning,
    mut statement: Box<SqlStatement>,
) -> Result<Insert> {
    let said = take_said(&mut statement)?;
    let limits = planning.limits();
    let names = planning.look(|scope| tree::check_insert(&mut statement, &limits, scope))?;
    let (snapshot, rights) = (&planning.snapshot, &planning.rights);
    let plan = planning.unchecked(*statement, &names).await?;
    let LogicalPlan::Dml(dml) = plan else {
        return Err(Error::Invalid("not an INSERT of rows".into()));
    };
    if dml.op != WriteOp::Insert(InsertOp::Append) {
        return Err(unsupported("INSERT OVERWRITE", "TRUNCATE the table first"));
    }
    nodes::check_nodes(&dml.input)?;
    let name = dml.table_name.table();
    let table = match find_table(snapshot, name) {
        Some(index) => &snapshot.tables()[index],
        None => return Err(missing_table(snapshot, rights, name)),
    };
    let on_conflict = said.for_table(&table.name, &table.schema)?;
    // Who replaces rows takes some away, as UPDATE does.
    let role = if on_conflict.only_adds() { Role::Load } else { Role::Admin };
    rights.require(role, &table.name)?;
    let load = LoadTarget {
        name: table.name.clone(),
        schema: table.schema.clone(),
        mode: LoadMode::Append,
    };
    let target = RowTarget { load, on_conflict };
    let rows = with_nullable_values(&dml.input).map_err(from_datafusion)?;
    Ok(Insert { session: planning.session, target, rows })
}

/// The rows of an INSERT, whose VALUES may be NULL wherever they stand: who writes them says which column may not.
pub(super) fn with_nullable_values(rows: &LogicalPlan) -> DataFusionResult<LogicalPlan> {
    if !rows.exists(|node| Ok(matches!(node, LogicalPlan::Values(_))))? {
        return Ok(rows.clone());
    }
    let made = rows.clone().transform_up(|node| match node {
        LogicalPlan::Values(Values { schema, values }) => {
            let nullable = |(table, field): (Option<&TableReference>, &FieldRef)| {
                let field = field.as_ref().clone().with_nullable(true);
                (table.cloned(), Arc::new(field))
            };
            let fields = schema.iter().map(nullable).collect();
            let schema = DFSchema::new_with_metadata(fields, schema.metadata().clone())?;
            Ok(Transformed::yes(LogicalPlan::Values(Values { schema: Arc::new(schema), values })))
        }
        node => node.recompute_schema().map(Transformed::yes),
    })?;
    Ok(made.data)
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

    /// The session, the table that gets the rows, and the plan that makes them.
    pub fn into_parts(self) -> (SessionState, RowTarget, LogicalPlan) {
        (self.session, self.target, self.rows)
    }

    /// Writes and publishes the rows, and answers their count.
    pub async fn run(self, database: &Database, user: &str) -> Result<Answer> {
        let rows = stream(database, user, &self.session, &self.rows).await?;
        count(write_rows(database, self.target, LoadKind::Insert, rows).await?)
    }
}

/// A CREATE TABLE .. AS SELECT that was planned.
pub(crate) struct CreateAs {
    session: SessionState,
    target: LoadTarget,
    rows: LogicalPlan,
    /// The columns of the rows by the names that the table gives them.
    columns: SchemaRef,
    /// Whether the table is there and is to stay.
    is_kept: bool,
}

/// Plans a CREATE TABLE .. AS SELECT.
pub(crate) async fn plan_create_as(mut planning: Planning, table: CreateTable) -> Result<CreateAs> {
    if !table.columns.is_empty() || !table.constraints.is_empty() {
        return Err(unsupported(
            "CREATE TABLE with columns and AS",
            "name the columns in the SELECT",
        ));
    }
    let on_existing = on_existing(&table)?;
    let name = table_name(&table.name)?;
    require_create(&planning.rights, on_existing, &name)?;
    let Some(query) = table.query else {
        return Err(Error::Invalid("CREATE TABLE without columns".into()));
    };
    let exists = planning.snapshot.table(&name).is_some();
    let mode = match on_existing {
        OnExisting::Replace => LoadMode::Replace,
        OnExisting::Keep | OnExisting::Fail => LoadMode::Create,
    };
    let is_kept = exists && on_existing == OnExisting::Keep;
    if exists && mode == LoadMode::Create && !is_kept {
        return Err(Error::Invalid(format!("table {name} exists already")));
    }
    let (rows, columns) = planning.query(query).await?;
    let arrow: &ArrowSchema = &columns;
    let target = LoadTarget { name, schema: table_schema(arrow)?, mode };
    Ok(CreateAs { session: planning.session, target, rows, columns, is_kept })
}

impl CreateAs {
    /// Makes the table with its rows, and answers their count.
    pub async fn run(self, database: &Database, user: &str) -> Result<Answer> {
        if self.is_kept {
            return count(0);
        }
        // Where types may become wider the rows are read again, which leaves do not wait for.
        if database.options().cluster.is_none()
            && let Some(load) = load_of(&self.rows, &self.target)
            && let Some(held) = hold(database)
        {
            return count(run_load(database, || Ok(load), held).await?);
        }
        let rows = stream(database, user, &self.session, &self.rows).await?;
        let rows = renamed(rows, &self.columns);
        count(write_rows(database, self.target.into(), LoadKind::Create, rows).await?)
    }
}
