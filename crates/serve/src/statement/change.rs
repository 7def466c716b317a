//! DELETE and UPDATE: rows of a table are found by a plan that tells their places, and go in one version in which the rows that
//! take their place come.
//!
//! ```text
//!   DELETE FROM t WHERE c       -->  SELECT 1 FROM t WHERE c                                --> places
//!   UPDATE t SET a = e WHERE c  -->  INSERT INTO t (a, b) SELECT e AS a, b FROM t WHERE c   --> places, rows
//! ```
//!
//! So that names, subqueries, types, defaults and rules are those of queries and of INSERT: the statement is written anew as
//! one of these before it is checked and planned, and the scan of its table then gets a column more, the place of each row, which is passed up
//! to the top of the plan.
//!
//! A statement reads one version. Where another writer has changed the same rows before it is published, it is planned and
//! run again on the newest version (decision 0071).
//!
//! Memory: the places as sets, at most an eighth of a byte for each row of the table, taken from what statements may hold; the new rows as
//! those of an INSERT.

use std::sync::Arc;

use coload_store::{Basis, Deletions, LoadKind, LoadMode, LoadTarget, Snapshot, TableEntry};
use coload_types::{Error, Result};
use datafusion::arrow::datatypes::Field;
use datafusion::catalog::default_table_source::{DefaultTableSource, provider_as_source};
use datafusion::common::{Column, DFSchema};
use datafusion::execution::memory_pool::{MemoryConsumer, MemoryReservation};
use datafusion::execution::session_state::SessionState;
use datafusion::logical_expr::{
    Expr, Filter, LogicalPlan, LogicalPlanBuilder, Projection, SubqueryAlias, TableScan, WriteOp,
    dml::InsertOp,
};
use datafusion::sql::sqlparser::ast::{
    Assignment, AssignmentTarget, Delete, Expr as SqlExpr, FromTable, Ident, ObjectName,
    ObjectNamePart, Query, Select, SelectItem, SetExpr, Statement as SqlStatement, TableAlias,
    TableFactor, TableObject, TableWithJoins, Update,
};
use futures::TryStreamExt;

use super::limits::StatementLimits;
use super::{Parameters, Planning, count, nodes, stream, text, tree, unsupported};
use crate::Answer;
use crate::database::Database;
use crate::error::from_datafusion;
use crate::names::{find_table, fold, missing_table, planned_column, quote};
use crate::places::{PLACE, add_places};
use crate::rights::{Rights, Role};
use crate::table::StoreTable;
use crate::write::{RowWriter, delete_rows};

/// How often a statement is run whose rows others change meanwhile.
const ATTEMPTS_MAX: usize = 20;

/// A DELETE or UPDATE that was planned.
pub(crate) struct Change {
    /// What it is planned from again.
    statement: Box<SqlStatement>,
    parameters: Parameters,
    planned: PlannedChange,
}

/// One on a version of its table.
struct PlannedChange {
    session: SessionState,
    snapshot: Snapshot,
    /// Number of the table in the snapshot.
    table: usize,
    kind: Kind,
    /// The places of the rows, and what takes their place before them.
    rows: LogicalPlan,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Kind {
    /// All rows.
    DeleteAll,
    Delete,
    Update,
}

/// What a statement says.
struct Shape {
    name: ObjectName,
    alias: Option<TableAlias>,
    assignments: Vec<Assignment>,
    selection: Option<SqlExpr>,
    kind: Kind,
}

/// Plans a DELETE or UPDATE.
pub(crate) async fn plan(planning: Planning, statement: Box<SqlStatement>) -> Result<Change> {
    let planned = planned(planning, &statement).await?;
    Ok(Change { statement, parameters: Parameters::default(), planned })
}

async fn planned(planning: Planning, statement: &SqlStatement) -> Result<PlannedChange> {
    let shape = shape(statement)?;
    let kind = shape.kind;
    let table = target(&shape.name, &planning.snapshot, &planning.rights)?;
    let schema = &planning.snapshot.tables()[table].schema;
    let rows = match kind {
        Kind::Delete | Kind::DeleteAll => planning.query(query_of(shape, Vec::new())?).await?.0,
        Kind::Update => {
            let (columns, items) = new_values(&shape, schema)?;
            planned_insert(&planning, insert_of(shape, columns, items)?).await?
        }
    };
    let id = planning.snapshot.tables()[table].id;
    let rows = with_places(rows, id, kind).map_err(from_datafusion)?.map_err(not_a_row)?;
    let Planning { session, snapshot, .. } = planning;
    Ok(PlannedChange { session, snapshot, table, kind, rows })
}

/// Plans the rows that an UPDATE makes as those of an INSERT, cast to the columns of the table.
async fn planned_insert(planning: &Planning, mut insert: SqlStatement) -> Result<LogicalPlan> {
    let (snapshot, rights) = (&planning.snapshot, &planning.rights);
    let names = tree::check_insert(&mut insert, &planning.limits(), snapshot, rights)?;
    let plan = planning.unchecked(insert, &names).await.map_err(|error| match error {
        // The engine speaks of a SELECT that nobody wrote.
        Error::Invalid(text) if text.contains("must be in GROUP BY") => not_a_row("an aggregate"),
        other => other,
    })?;
    let LogicalPlan::Dml(dml) = plan else {
        return Err(Error::Refused("internal error: an UPDATE planned no rows".into()));
    };
    if dml.op != WriteOp::Insert(InsertOp::Append) {
        return Err(Error::Refused("internal error: an UPDATE planned another change".into()));
    }
    nodes::check_nodes(&dml.input)?;
    Ok(dml.input.as_ref().clone())
}

/// Takes a statement apart. Every field is named, so that none is dropped silently.
fn shape(statement: &SqlStatement) -> Result<Shape> {
    match statement {
        SqlStatement::Delete(delete) => shape_of_delete(delete),
        SqlStatement::Update(update) => shape_of_update(update),
        _ => Err(Error::Invalid("not a DELETE or UPDATE".into())),
    }
}

fn shape_of_delete(delete: &Delete) -> Result<Shape> {
    let Delete {
        delete_token: _,
        optimizer_hints,
        tables,
        from,
        using,
        selection,
        returning,
        output,
        order_by,
        limit,
    } = delete;
    refuse_any(
        "DELETE",
        &[
            (!tables.is_empty(), "from several tables", "delete from one after the other"),
            (using.is_some(), "with USING", "write WHERE column IN (SELECT ..)"),
            (returning.is_some() || output.is_some(), "with RETURNING", "SELECT the rows before"),
            (!order_by.is_empty() || limit.is_some(), "with ORDER BY or LIMIT", "write WHERE"),
            (!optimizer_hints.is_empty(), "with hints", "leave them out"),
        ],
    )?;
    let (FromTable::WithFromKeyword(from) | FromTable::WithoutKeyword(from)) = from;
    let [table] = &from[..] else {
        return Err(unsupported("DELETE from several tables", "delete from one after the other"));
    };
    let (name, alias) = table_of("DELETE", table)?;
    let kind = if selection.is_some() { Kind::Delete } else { Kind::DeleteAll };
    Ok(Shape { name, alias, assignments: Vec::new(), selection: selection.clone(), kind })
}

fn shape_of_update(update: &Update) -> Result<Shape> {
    let Update {
        update_token: _,
        optimizer_hints,
        table,
        assignments,
        from,
        selection,
        returning,
        output,
        or,
        order_by,
        limit,
    } = update;
    refuse_any(
        "UPDATE",
        &[
            (
                from.is_some(),
                "with FROM",
                "write SET column = (SELECT ..) and WHERE .. IN (SELECT ..)",
            ),
            (
                returning.is_some() || output.is_some(),
                "with RETURNING",
                "SELECT the rows afterwards",
            ),
            (or.is_some(), "OR", "leave OR out"),
            (!order_by.is_empty() || limit.is_some(), "with ORDER BY or LIMIT", "write WHERE"),
            (!optimizer_hints.is_empty(), "with hints", "leave them out"),
        ],
    )?;
    let (name, alias) = table_of("UPDATE", table)?;
    let (assignments, selection) = (assignments.clone(), selection.clone());
    Ok(Shape { name, alias, assignments, selection, kind: Kind::Update })
}

fn refuse_any(statement: &str, parts: &[(bool, &str, &str)]) -> Result<()> {
    match parts.iter().find(|(is_there, ..)| *is_there) {
        Some((_, what, instead)) => Err(unsupported(&format!("{statement} {what}"), instead)),
        None => Ok(()),
    }
}

/// The one table that a statement changes.
fn table_of(statement: &str, table: &TableWithJoins) -> Result<(ObjectName, Option<TableAlias>)> {
    let TableWithJoins { relation, joins } = table;
    match relation {
        TableFactor::Table {
            name,
            alias,
            args: None,
            with_hints,
            version: None,
            with_ordinality: false,
            partitions,
            json_path: None,
            sample: None,
            index_hints,
        } if joins.is_empty()
            && with_hints.is_empty()
            && partitions.is_empty()
            && index_hints.is_empty() =>
        {
            Ok((name.clone(), alias.clone()))
        }
        _ => Err(unsupported(
            &format!("{statement} of anything but one table"),
            "name the table, and read others in subqueries",
        )),
    }
}

/// The number of the table in a snapshot, which the caller must be allowed to change.
fn target(name: &ObjectName, snapshot: &Snapshot, rights: &Rights) -> Result<usize> {
    let last = match name.0.last() {
        Some(ObjectNamePart::Identifier(last)) => last.value.as_str(),
        _ => return Err(unsupported("a function as the name of a table", "write the name")),
    };
    let readable = |index: &usize| rights.may_read(&snapshot.tables()[*index].name);
    match find_table(snapshot, last).filter(readable) {
        Some(index) => {
            rights.require(Role::Admin, &snapshot.tables()[index].name)?;
            Ok(index)
        }
        None => Err(missing_table(snapshot, rights, last)),
    }
}

/// The columns that rows are made of, and what becomes of each: those that get their DEFAULT are left out.
fn new_values(shape: &Shape, schema: &coload_ddl::Schema) -> Result<(Vec<Ident>, Vec<SelectItem>)> {
    let mut values: Vec<Option<&SqlExpr>> = vec![None; schema.len()];
    for Assignment { target, value } in &shape.assignments {
        let index = assigned(target, shape, schema)?;
        if values[index].replace(value).is_some() {
            let name = quote(&schema.columns()[index].name);
            return Err(Error::Invalid(format!("UPDATE sets column {name} twice")));
        }
    }
    let (mut names, mut items) = (Vec::new(), Vec::new());
    for (column, value) in schema.columns().iter().zip(values) {
        let name = Ident::with_quote('"', column.name.clone());
        let expr = match value {
            Some(SqlExpr::Identifier(ident)) if is_default(ident) => continue,
            Some(value) => value.clone(),
            None => SqlExpr::Identifier(name.clone()),
        };
        names.push(name.clone());
        items.push(SelectItem::ExprWithAlias { expr, alias: name });
    }
    if names.is_empty() {
        return Err(unsupported(
            "UPDATE that sets all columns to DEFAULT",
            "write the value of one of them",
        ));
    }
    Ok((names, items))
}

fn is_default(ident: &Ident) -> bool {
    ident.quote_style.is_none() && ident.value.eq_ignore_ascii_case("default")
}

/// The column that an assignment is to.
fn assigned(
    target: &AssignmentTarget,
    shape: &Shape,
    schema: &coload_ddl::Schema,
) -> Result<usize> {
    let AssignmentTarget::ColumnName(name) = target else {
        return Err(unsupported("UPDATE .. SET (a, b) = ..", "write SET a = .., b = .."));
    };
    let parts: Vec<&Ident> = name.0.iter().filter_map(ObjectNamePart::as_ident).collect();
    let is_target = |ident: &Ident| {
        let of_table = shape.name.0.last().and_then(ObjectNamePart::as_ident);
        let known = shape.alias.as_ref().map(|alias| &alias.name).or(of_table);
        known.is_some_and(|known| fold(&known.value) == fold(&ident.value))
    };
    let column = match parts[..] {
        [column] if name.0.len() == 1 => column,
        [table, column] if name.0.len() == 2 && is_target(table) => column,
        _ => {
            return Err(unsupported(
                &format!("UPDATE .. SET {name}"),
                "name a column of the table",
            ));
        }
    };
    planned_column(schema, &fold(&column.value)).ok_or_else(|| {
        let there: Vec<String> = schema.columns().iter().map(|c| quote(&c.name)).collect();
        Error::Invalid(format!(
            "no field named {}; there is {}",
            quote(&column.value),
            there.join(", ")
        ))
    })
}

/// SELECT items FROM table WHERE condition.
fn query_of(shape: Shape, items: Vec<SelectItem>) -> Result<Box<Query>> {
    let SqlStatement::Query(mut query) = template("SELECT 1")? else { return Err(no_template()) };
    let SetExpr::Select(select) = query.body.as_mut() else { return Err(no_template()) };
    let Select { projection, from, selection, .. } = select.as_mut();
    if !items.is_empty() {
        *projection = items;
    }
    let relation = TableFactor::Table {
        name: shape.name,
        alias: shape.alias,
        args: None,
        with_hints: Vec::new(),
        version: None,
        with_ordinality: false,
        partitions: Vec::new(),
        json_path: None,
        sample: None,
        index_hints: Vec::new(),
    };
    *from = vec![TableWithJoins { relation, joins: Vec::new() }];
    *selection = shape.selection;
    Ok(query)
}

/// INSERT INTO table (columns) SELECT items FROM table WHERE condition.
fn insert_of(shape: Shape, names: Vec<Ident>, items: Vec<SelectItem>) -> Result<SqlStatement> {
    let SqlStatement::Insert(mut insert) = template("INSERT INTO t SELECT 1")? else {
        return Err(no_template());
    };
    insert.table = TableObject::TableName(shape.name.clone());
    insert.columns = names.into_iter().map(|name| vec![name].into()).collect();
    insert.source = Some(query_of(shape, items)?);
    Ok(SqlStatement::Insert(insert))
}

fn template(sql: &str) -> Result<SqlStatement> {
    text::parse_statement(sql, &StatementLimits::default())
}

fn no_template() -> Error {
    Error::Refused("internal error: a statement has another form".into())
}

/// Why the rows of a plan are not those of the table.
fn not_a_row(what: &'static str) -> Error {
    unsupported(
        &format!("UPDATE with {what} in SET"),
        "each row gets its own values; write a subquery: SET a = (SELECT ..)",
    )
}

type Placed<T> = datafusion::error::Result<std::result::Result<T, &'static str>>;

/// The plan with the places of the rows of a table after its columns; of a DELETE, with the places only.
fn with_places(plan: LogicalPlan, table: u64, kind: Kind) -> Placed<LogicalPlan> {
    let LogicalPlan::Projection(Projection { expr, input, schema, .. }) = plan else {
        return Ok(Err("an aggregate or a window"));
    };
    let mut input = input.as_ref().clone();
    if let LogicalPlan::Projection(values) = &mut input {
        values.expr.iter_mut().for_each(|value| give_type(value, &schema));
    }
    let (input, place) = match place_below(input, table)? {
        Ok(found) => found,
        Err(what) => return Ok(Err(what)),
    };
    let mut exprs = if kind == Kind::Update { expr } else { Vec::new() };
    exprs.push(Expr::Column(place).alias(PLACE));
    Ok(Ok(LogicalPlan::Projection(Projection::try_new(exprs, Arc::new(input))?)))
}

/// Gives a parameter that is assigned as it is the type of its column, as INSERT does.
fn give_type(value: &mut Expr, columns: &DFSchema) {
    let Expr::Alias(value) = value else { return };
    let Expr::Placeholder(parameter) = value.expr.as_mut() else { return };
    if parameter.field.is_none()
        && let Ok(column) = columns.field_with_unqualified_name(&value.name)
    {
        let data_type = column.data_type().clone();
        parameter.field = Some(Arc::new(Field::new(&parameter.id, data_type, true)));
    }
}

/// A part of the plan whose rows are those of the table, and the column that tells their places.
fn place_below(plan: LogicalPlan, table: u64) -> Placed<(LogicalPlan, Column)> {
    macro_rules! below {
        ($input:expr) => {
            match place_below($input.as_ref().clone(), table)? {
                Ok(found) => found,
                Err(what) => return Ok(Err(what)),
            }
        };
    }
    match plan {
        LogicalPlan::TableScan(scan) => scan_with_places(scan, table),
        LogicalPlan::Filter(filter) => {
            let (input, place) = below!(filter.input);
            let filter = Filter::try_new(filter.predicate, Arc::new(input))?;
            Ok(Ok((LogicalPlan::Filter(filter), place)))
        }
        LogicalPlan::SubqueryAlias(alias) => {
            let (input, place) = below!(alias.input);
            let relation = alias.alias.clone();
            let alias = SubqueryAlias::try_new(Arc::new(input), alias.alias)?;
            Ok(Ok((LogicalPlan::SubqueryAlias(alias), Column::new(Some(relation), place.name))))
        }
        LogicalPlan::Projection(Projection { mut expr, input, .. }) => {
            let (input, place) = below!(input);
            expr.push(Expr::Column(place).alias(PLACE));
            let projection = Projection::try_new(expr, Arc::new(input))?;
            Ok(Ok((LogicalPlan::Projection(projection), Column::new_unqualified(PLACE))))
        }
        _ => Ok(Err("an aggregate or a window")),
    }
}

fn scan_with_places(scan: TableScan, table: u64) -> Placed<(LogicalPlan, Column)> {
    let source = scan.source.downcast_ref::<DefaultTableSource>();
    let stored = source.and_then(|source| source.table_provider.downcast_ref::<StoreTable>());
    let Some(stored) = stored.filter(|stored| stored.entry().id == table) else {
        return Ok(Err("a table that is not of the store"));
    };
    let source = provider_as_source(Arc::new(stored.with_places()));
    let name = scan.table_name;
    let plan = LogicalPlanBuilder::scan(name.clone(), source, None)?.build()?;
    Ok(Ok((plan, Column::new(Some(name), PLACE))))
}

impl Change {
    /// The plan of what it finds, with its parameters.
    pub fn rows(&self) -> &LogicalPlan {
        &self.planned.rows
    }

    /// The same with the values of its parameters.
    pub fn bound(mut self, rows: LogicalPlan, parameters: Parameters) -> Self {
        self.planned.rows = rows;
        self.parameters = parameters;
        self
    }

    /// Changes the rows, and answers how many they were.
    ///
    /// # Errors
    /// `Invalid` when a new value does not fit its column or breaks a rule, `Unavailable` when others changed the same rows
    /// again and again.
    pub async fn run(self, database: &Database, rights: &Rights) -> Result<Answer> {
        let Change { statement, parameters, mut planned } = self;
        for _ in 0..ATTEMPTS_MAX {
            if let Some(rows) = planned.run(database, rights.user()).await? {
                return count(rows);
            }
            // Nothing is held of the version that was too old.
            drop(planned);
            planned = plan_again(database, rights, &statement, &parameters).await?;
        }
        let table = &planned.snapshot.tables()[planned.table].name;
        Err(Error::Unavailable(format!(
            "rows of table {table} were changed by others while the statement ran, {ATTEMPTS_MAX} times; nothing was changed \
             by it (try again)"
        )))
    }
}

/// Plans a statement on the newest version, on a thread for planning.
async fn plan_again(
    database: &Database,
    rights: &Rights,
    statement: &SqlStatement,
    parameters: &Parameters,
) -> Result<PlannedChange> {
    let (own, caller) = (database.clone(), rights.clone());
    let (statement, parameters) = (statement.clone(), parameters.clone());
    let work = move || async move {
        let planned = planned(Planning::begin(&own, &caller)?, &statement).await?;
        let fields = super::parameters::fields_of(&planned.rows)?;
        let Some(rows) = parameters.bind(&planned.rows, &fields)? else {
            return Err(Error::Invalid("the parameters have no values".into()));
        };
        Ok(PlannedChange { rows, ..planned })
    };
    database.planner().run(rights.user(), work).await
}

impl PlannedChange {
    fn table(&self) -> &TableEntry {
        &self.snapshot.tables()[self.table]
    }

    /// Does it; `None` when others were faster, and nothing was changed.
    async fn run(&self, database: &Database, user: &str) -> Result<Option<u64>> {
        let table = self.table();
        match self.kind {
            Kind::DeleteAll => {
                let mut all = Deletions::default();
                for segment in &table.segments {
                    let deleted = self.snapshot.deleted_rows(segment)?;
                    all.insert_all(segment, deleted.as_deref())?;
                }
                delete_rows(database, Basis::Rows(table), &all)
            }
            Kind::Delete => {
                let mut found = Found::new(database, table);
                let mut rows = stream(database, user, &self.session, &self.rows).await?;
                while let Some(batch) = rows.try_next().await.map_err(from_datafusion)? {
                    found.add(&batch)?;
                }
                drop(rows);
                delete_rows(database, Basis::Rows(table), &found.rows)
            }
            Kind::Update => self.update(database, user).await,
        }
    }

    async fn update(&self, database: &Database, user: &str) -> Result<Option<u64>> {
        let table = self.table();
        let mut found = Found::new(database, table);
        let mut rows = stream(database, user, &self.session, &self.rows).await?;
        let target = LoadTarget {
            name: table.name.clone(),
            schema: table.schema.clone(),
            mode: LoadMode::Append,
        };
        let mut writer = None;
        while let Some(batch) = rows.try_next().await.map_err(from_datafusion)? {
            if batch.num_rows() == 0 {
                continue;
            }
            found.add(&batch)?;
            let columns: Vec<usize> = (0..batch.num_columns() - 1).collect();
            let new = batch.project(&columns).map_err(|e| from_datafusion(e.into()))?;
            let writer = match &mut writer {
                Some(writer) => writer,
                None => writer.insert(RowWriter::begin(database, target.clone())?),
            };
            RowWriter::append(writer, new).await?;
        }
        drop(rows);
        match writer {
            None => Ok(Some(0)),
            Some(writer) => {
                let basis = Basis::Rows(table);
                writer.publish_deleting(database, LoadKind::Update, basis, &found.rows).await
            }
        }
    }
}

/// The rows that a statement found.
struct Found<'a> {
    table: &'a TableEntry,
    rows: Deletions,
    count: u64,
    held: MemoryReservation,
}

impl<'a> Found<'a> {
    fn new(database: &Database, table: &'a TableEntry) -> Self {
        let held = MemoryConsumer::new("rows to delete").register(&database.memory_pool());
        Found { table, rows: Deletions::default(), count: 0, held }
    }

    /// Adds the rows of a batch, whose places are its last column.
    fn add(&mut self, batch: &datafusion::arrow::record_batch::RecordBatch) -> Result<()> {
        /// Bytes of a row in a set of few, and rows that share a byte in one of many.
        const ROW_BYTES: u64 = 2;
        const ROWS_OF_BYTE: u64 = 8;
        let Some(places) = batch.columns().last() else {
            return Err(Error::Refused("internal error: rows without places".into()));
        };
        self.count += batch.num_rows() as u64;
        let all = (self.table.rows() + self.table.deleted_rows()) / ROWS_OF_BYTE;
        let bytes = (self.count * ROW_BYTES).min(all);
        self.held.try_resize(bytes as usize).map_err(from_datafusion)?;
        let added = add_places(self.table, places, &mut self.rows)?;
        if added != batch.num_rows() as u64 {
            return Err(Error::Refused(
                "internal error: a statement found a row of its table twice".into(),
            ));
        }
        Ok(())
    }
}
