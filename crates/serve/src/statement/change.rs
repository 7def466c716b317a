//! DELETE, UPDATE and MERGE: rows of a table are found by a plan that tells their places, and go in one version in which the rows
//! that take their place, and new ones, come.
//!
//! ```text
//!   DELETE FROM t WHERE c       -->  SELECT 1 FROM t WHERE c                                --> places
//!   UPDATE t SET a = e WHERE c  -->  INSERT INTO t (a, b) SELECT e AS a, b FROM t WHERE c   --> places, rows
//!   MERGE INTO t USING s ON c   -->  SELECT e, .. FROM s LEFT JOIN t ON c                   --> places, rows, actions
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

mod in_cluster;
mod merge;
mod merged;
mod places_above;
mod shape;
mod upsert;

use coload_store::{Basis, Deletions, LoadKind, LoadMode, LoadTarget, Snapshot, TableEntry};
use coload_types::{Error, Result};
use datafusion::arrow::record_batch::RecordBatch;
use datafusion::execution::memory_pool::{MemoryConsumer, MemoryReservation};
use datafusion::execution::session_state::SessionState;
use datafusion::logical_expr::{LogicalPlan, WriteOp, dml::InsertOp};
use datafusion::sql::sqlparser::ast::{ObjectName, Statement as SqlStatement};
use futures::TryStreamExt;

use self::merge::{MergeQuery, MergeShape, Spelling};
use self::merged::{Actions, Merged, with_actions};
use self::places_above::with_places;
use self::shape::{Kind, insert_of, new_values, query_of, shape};
use super::columns::table_name;
use super::insert::with_nullable_values;
use super::on_conflict::upsert_of;
use super::{Parameters, Planning, count, nodes, stream, tree, unsupported};
use crate::Answer;
use crate::database::Database;
use crate::error::from_datafusion;
use crate::names::{find_table, missing_table};
use crate::places::add_places;
use crate::rights::{Rights, Role};
use crate::write::{RowWriter, delete_rows};

/// How often a statement is run whose rows others change meanwhile.
const ATTEMPTS_MAX: usize = 20;

/// A statement of these that was planned.
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
    work: Work,
    /// The places of the rows, and what takes their place before them.
    rows: LogicalPlan,
}

/// What is done with the rows of the plan.
enum Work {
    Rows(Kind),
    Merge {
        spelling: Spelling,
        actions: Actions,
        /// Whether rows are added that match none of the table.
        adds: bool,
    },
}

/// Whether a statement is a change of rows that are there.
pub(crate) fn is_change(statement: &SqlStatement, snapshot: &Snapshot, rights: &Rights) -> bool {
    match statement {
        SqlStatement::Delete(_) | SqlStatement::Update(_) | SqlStatement::Merge(_) => true,
        other => upsert_of(other, snapshot, rights).is_some(),
    }
}

/// Plans a DELETE, UPDATE or MERGE, or an INSERT that changes rows.
pub(crate) async fn plan(planning: Planning, statement: Box<SqlStatement>) -> Result<Change> {
    let planned = planned(planning, &statement).await?;
    Ok(Change { statement, parameters: Parameters::default(), planned })
}

async fn planned(mut planning: Planning, statement: &SqlStatement) -> Result<PlannedChange> {
    if let SqlStatement::Merge(merge) = statement {
        return planned_merge(planning, MergeShape::of(merge, Spelling::Merge)?).await;
    }
    if let Some(upsert) = upsert_of(statement, &planning.snapshot, &planning.rights) {
        let table = target(upsert.table, &planning.snapshot, &planning.rights, Role::Admin)?;
        let TableEntry { name, schema, .. } = &planning.snapshot.tables()[table];
        let (key, schema) = (upsert.key_of(name, schema)?, schema.clone());
        let merge = upsert::as_merge(&mut planning, upsert, (&schema, &key)).await?;
        return planned_merge(planning, MergeShape::of(&merge, Spelling::OnConflict)?).await;
    }
    let shape = shape(statement)?;
    let kind = shape.kind;
    let table = target(&shape.name, &planning.snapshot, &planning.rights, Role::Admin)?;
    let schema = &planning.snapshot.tables()[table].schema;
    let rows = match kind {
        Kind::Delete | Kind::DeleteAll => planning.query(query_of(shape, Vec::new())?).await?.0,
        Kind::Update => {
            let (columns, items) = new_values(&shape, schema)?;
            planned_insert(&mut planning, insert_of(shape, columns, items)?).await?
        }
    };
    let id = planning.snapshot.tables()[table].id;
    let rows = with_places(rows, id, kind).map_err(from_datafusion)?.map_err(not_a_row)?;
    let Planning { session, snapshot, .. } = planning;
    Ok(PlannedChange { session, snapshot, table, work: Work::Rows(kind), rows })
}

async fn planned_merge(mut planning: Planning, shape: MergeShape) -> Result<PlannedChange> {
    // Who only adds rows takes none away.
    let role = if shape.only_adds() { Role::Load } else { Role::Admin };
    let spelling = shape.spelling;
    let table = target(&shape.name, &planning.snapshot, &planning.rights, role)?;
    let MergeQuery { query, clauses } = shape.query(&planning.snapshot.tables()[table].schema)?;
    let (rows, _) = planning.query(query).await?;
    let id = planning.snapshot.tables()[table].id;
    let planned = with_actions(rows, id, &clauses).map_err(from_datafusion)?;
    let (rows, actions) = planned.map_err(|what| {
        let instead = match spelling {
            Spelling::Merge => "have the query of USING compute what is needed",
            Spelling::OnConflict => "have the SELECT of the INSERT compute what is needed",
        };
        unsupported(&format!("{} with {what}", spelling.of_statement()), instead)
    })?;
    let adds = clauses.iter().any(|clause| !clause.is_matched);
    let work = Work::Merge { spelling, actions, adds };
    let Planning { session, snapshot, .. } = planning;
    Ok(PlannedChange { session, snapshot, table, work, rows })
}

/// Plans the rows that an UPDATE makes as those of an INSERT, cast to the columns of the table.
async fn planned_insert(planning: &mut Planning, mut insert: SqlStatement) -> Result<LogicalPlan> {
    let limits = planning.limits();
    let names = planning.look(|scope| tree::check_insert(&mut insert, &limits, scope))?;
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
    with_nullable_values(&dml.input).map_err(from_datafusion)
}

/// The number of the table in a snapshot, which the caller must be allowed to change.
fn target(name: &ObjectName, snapshot: &Snapshot, rights: &Rights, role: Role) -> Result<usize> {
    let last = &table_name(name)?;
    let readable = |index: &usize| rights.may_read(&snapshot.tables()[*index].name);
    match find_table(snapshot, last).filter(readable) {
        Some(index) => {
            rights.require(role, &snapshot.tables()[index].name)?;
            Ok(index)
        }
        None => Err(missing_table(snapshot, rights, last)),
    }
}

/// Why the rows of a plan are not those of the table.
fn not_a_row(what: &'static str) -> Error {
    unsupported(
        &format!("UPDATE with {what} in SET"),
        "each row gets its own values; write a subquery: SET a = (SELECT ..)",
    )
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
        if let Some(cluster) = database.options().cluster.clone() {
            return self.run_in_cluster(database, rights, &cluster).await;
        }
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
        match &self.work {
            Work::Rows(Kind::DeleteAll) => {
                let mut all = Deletions::default();
                for segment in &table.segments {
                    let deleted = self.snapshot.deleted_rows(segment)?;
                    all.insert_all(segment, deleted.as_deref())?;
                }
                delete_rows(database, Basis::Rows(table), &all)
            }
            Work::Rows(Kind::Delete) => {
                let mut found = Found::new(database, table);
                let mut rows = stream(database, user, &self.session, &self.rows).await?;
                while let Some(batch) = rows.try_next().await.map_err(from_datafusion)? {
                    found.add(&batch, found_twice)?;
                }
                drop(rows);
                delete_rows(database, Basis::Rows(table), &found.rows)
            }
            Work::Rows(Kind::Update) => self.update(database, user).await,
            Work::Merge { spelling, actions, adds } => {
                self.merge((database, user), *spelling, actions, *adds).await
            }
        }
    }

    async fn update(&self, database: &Database, user: &str) -> Result<Option<u64>> {
        let table = self.table();
        let mut found = Found::new(database, table);
        let mut rows = stream(database, user, &self.session, &self.rows).await?;
        let mut writer = NewRows::of(table);
        while let Some(batch) = rows.try_next().await.map_err(from_datafusion)? {
            if batch.num_rows() == 0 {
                continue;
            }
            found.add(&batch, found_twice)?;
            let columns: Vec<usize> = (0..batch.num_columns() - 1).collect();
            let new = batch.project(&columns).map_err(|e| from_datafusion(e.into()))?;
            writer.append(database, new).await?;
        }
        drop(rows);
        writer.publish(database, Basis::Rows(table), &found.rows).await
    }

    async fn merge(
        &self,
        (database, user): (&Database, &str),
        spelling: Spelling,
        actions: &Actions,
        adds: bool,
    ) -> Result<Option<u64>> {
        let table = self.table();
        let mut found = Found::new(database, table);
        let mut rows = stream(database, user, &self.session, &self.rows).await?;
        let mut writer = NewRows::of(table);
        let mut count = 0;
        while let Some(batch) = rows.try_next().await.map_err(from_datafusion)? {
            if batch.num_rows() == 0 {
                continue;
            }
            count += batch.num_rows() as u64;
            let Merged { new, gone } = actions.split(&batch)?;
            found.add(&gone, || matched_twice(spelling, &table.name))?;
            writer.append(database, new).await?;
        }
        drop(rows);
        // Rows that were not there when the source was compared may be those that would match now.
        let basis = if adds { Basis::Table(table) } else { Basis::Rows(table) };
        let done = writer.publish(database, basis, &found.rows).await?;
        Ok(done.map(|_| count))
    }
}

/// Rows that a statement writes, if it writes any.
struct NewRows {
    target: LoadTarget,
    writer: Option<RowWriter>,
}

impl NewRows {
    fn of(table: &TableEntry) -> Self {
        let (name, schema) = (table.name.clone(), table.schema.clone());
        NewRows { target: LoadTarget { name, schema, mode: LoadMode::Append }, writer: None }
    }

    async fn append(&mut self, database: &Database, rows: RecordBatch) -> Result<()> {
        if rows.num_rows() == 0 || rows.num_columns() == 0 {
            return Ok(());
        }
        let writer = match &mut self.writer {
            Some(writer) => writer,
            None => self.writer.insert(RowWriter::begin(database, self.target.clone().into())?),
        };
        writer.append(rows).await
    }

    /// Makes the rows visible in the version in which others go, and tells how many there are.
    async fn publish(
        self,
        database: &Database,
        basis: Basis<'_>,
        gone: &Deletions,
    ) -> Result<Option<u64>> {
        match self.writer {
            None => delete_rows(database, basis, gone),
            Some(writer) => writer.publish_deleting(database, LoadKind::Update, basis, gone).await,
        }
    }
}

fn matched_twice(spelling: Spelling, table: &str) -> Error {
    let what = match spelling {
        Spelling::Merge => format!("MERGE INTO {table}: several rows of the source match one row"),
        Spelling::OnConflict => {
            format!("INSERT INTO {table}: several of the new rows have the key of one row")
        }
    };
    Error::Invalid(format!(
        "{what} of the table, which cannot be changed twice; nothing was changed"
    ))
}

fn found_twice() -> Error {
    Error::Refused("internal error: a statement found a row of its table twice".into())
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
    fn add(&mut self, batch: &RecordBatch, twice: impl FnOnce() -> Error) -> Result<()> {
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
        match add_places(self.table, places, &mut self.rows)? == batch.num_rows() as u64 {
            true => Ok(()),
            false => Err(twice()),
        }
    }
}
