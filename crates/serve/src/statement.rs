//! One statement, from text to answer.
//!
//! ```text
//!   text --parse (text), check and fold names (tree), plan, check again (nodes)--> Planned --run--> Answer
//!
//!   query, EXPLAIN, SHOW, DESCRIBE --> DataFusion
//!   CREATE, DROP, TRUNCATE TABLE   --> store           (ddl)
//!   ALTER TABLE                    --> store           (alter)
//!   CREATE VIEW, EXTERNAL TABLE    --> plan --> store  (view)
//!   INSERT, CREATE TABLE AS        --> plan --> store  (insert; bind for many rows of parameters)
//!   DELETE, UPDATE, MERGE          --> plan --> store  (change)
//!   COPY .. TO                     --> plan --> file   (copy)
//! ```

mod alter;
mod answers;
pub(crate) mod bind;
pub(crate) mod change;
mod columns;
mod copy;
pub(crate) mod ddl;
mod describe;
mod dialect;
pub(crate) mod hints;
mod index;
pub(crate) mod insert;
mod limits;
mod nodes;
mod on_conflict;
mod parameters;
mod pivot;
mod planned;
mod refusal;
mod schemas;
mod shard;
mod spelling;
mod split;
pub(crate) mod text;
pub(crate) mod tree;
mod view;

use std::sync::Arc;

use coload_store::Snapshot;
use coload_types::{Error, Result};
use datafusion::arrow::datatypes::{Schema as ArrowSchema, SchemaRef};
use datafusion::catalog::TableProvider;
use datafusion::error::Result as DataFusionResult;
use datafusion::execution::SendableRecordBatchStream;
use datafusion::execution::memory_pool::{MemoryConsumer, MemoryReservation};
use datafusion::execution::session_state::SessionState;
use datafusion::logical_expr::LogicalPlan;
use datafusion::physical_plan::ExecutionPlan;
use datafusion::sql::parser::Statement;
use datafusion::sql::sqlparser::ast::{Query, ShowCreateObject, Statement as SqlStatement};

use crate::catalog::ExtraTable;
use crate::cluster::{Reading, Step};
use crate::database::Database;
use crate::error::from_datafusion;
use crate::external::Externals;
use crate::memory::{batch_rows, execute};
use crate::names::find_table;
use crate::rights::Rights;
use crate::rules::physical_plan_fitted;
use answers::{count, done};
use refusal::{first_words, refusal};
use tree::{Names, Scope};

pub(crate) use answers::{count_batch, count_schema};
pub use columns::{parse_columns, parse_create_table};
pub use limits::StatementLimits;
pub use parameters::Parameters;
pub use planned::Planned;
use planned::{Opened, Work};
pub(crate) use refusal::unsupported;
pub use split::{Statements, split_statements};

/// Looks at one statement, on a thread for planning. Of one that has a PIVOT the values that become columns are asked for first.
pub(crate) async fn plan(
    database: &Database,
    rights: &Rights,
    text: &str,
    parameters: Parameters,
) -> Result<Planned> {
    if !pivot::is_named(text) {
        return plan_written(database, rights, text, parameters).await;
    }
    let text = pivot::written_anew(database, rights, text).await?;
    plan_written(database, rights, &text, parameters).await
}

/// Looks at a statement as it is written.
async fn plan_written(
    database: &Database,
    rights: &Rights,
    text: &str,
    parameters: Parameters,
) -> Result<Planned> {
    let (own, caller, text) = (database.clone(), rights.clone(), text.to_owned());
    let work = move || async move { plan_here(&own, &caller, &text, parameters).await };
    database.planner().run(rights.user(), work).await
}

async fn plan_here(
    database: &Database,
    rights: &Rights,
    text: &str,
    parameters: Parameters,
) -> Result<Planned> {
    let _held = hold(database, text)?;
    let planning = Planning::begin(database, rights)?;
    let experience = planning.externals.experience();
    let planned = plan_begun(planning, database, text, parameters.clone()).await;
    let Err(Error::Invalid(why)) = &planned else { return planned };
    let Some(error) = experience.too_wide(why) else { return planned };
    // Other mistakes are none of the inputs.
    let mut planning = Planning::begin(database, rights)?;
    planning.externals.forget();
    match plan_begun(planning, database, text, parameters).await {
        Ok(_) => Err(error),
        Err(_) => planned,
    }
}

async fn plan_begun(
    mut planning: Planning,
    database: &Database,
    text: &str,
    parameters: Parameters,
) -> Result<Planned> {
    let rights = planning.rights.clone();
    let experience = planning.externals.experience();
    let planned = |work, schema, parameters| {
        let (rights, experience) = (rights.clone(), Arc::clone(&experience));
        Ok(Planned { work, rights, schema, parameters, experience })
    };
    if let Some(copy) = copy::parse(text, &planning.limits())? {
        let copy = planning.copy(copy).await?;
        return planned(Work::Copy(Box::new(copy)), count_schema(), ArrowSchema::empty());
    }
    let none = || Arc::new(ArrowSchema::empty());
    if let Some(step) = Step::parse(text)? {
        return planned(Work::Move(step), Step::schema(), ArrowSchema::empty());
    }
    if let Some(table) = shard::parse_sharded(text, &planning.limits())? {
        let work = Work::Shard(Box::new(table));
        return planned(work, Arc::new(ArrowSchema::empty()), ArrowSchema::empty());
    }
    let mut sql = planning.parse(text)?;
    match schemas::instead(&sql)? {
        None => {}
        Some(schemas::Instead::Nothing) => {
            return planned(Work::Nothing, none(), ArrowSchema::empty());
        }
        Some(schemas::Instead::Query(query)) => sql = SqlStatement::Query(query),
    }
    if matches!(sql, SqlStatement::CreateView(_)) {
        database.own_store("CREATE VIEW")?;
    }
    let (statement, names) = match sql {
        SqlStatement::CreateTable(mut table) => {
            ddl::check_create(&mut table, &planning.limits())?;
            if table.query.is_none() {
                let work = Work::Ddl(Box::new(SqlStatement::CreateTable(table)));
                return planned(work, none(), ArrowSchema::empty());
            }
            let table = insert::plan_create_as(planning, table).await?;
            return planned(Work::CreateAs(Box::new(table)), count_schema(), ArrowSchema::empty());
        }
        SqlStatement::CreateView(view) => {
            let view = view::plan(planning, view).await?;
            return planned(Work::View(Box::new(view)), none(), ArrowSchema::empty());
        }
        sql @ (SqlStatement::Drop { .. }
        | SqlStatement::CreateIndex(_)
        | SqlStatement::Truncate(_)
        | SqlStatement::AlterTable(_)) => {
            return planned(Work::Ddl(Box::new(sql)), none(), ArrowSchema::empty());
        }
        sql if change::is_change(&sql, &planning.snapshot, &planning.rights) => {
            let change = change::plan(planning, Box::new(sql)).await?;
            let fields = parameters::fields_of(change.rows())?;
            let work = match parameters.bind(change.rows(), &fields)? {
                Some(rows) => Work::Change(Box::new(change.bound(rows, parameters))),
                None => Work::Open(Opened::Counting),
            };
            return planned(work, count_schema(), fields);
        }
        sql @ SqlStatement::Insert(_) => {
            let insert = insert::plan(planning, Box::new(sql)).await?;
            let fields = parameters::fields_of(insert.rows())?;
            let work = match parameters.bind(insert.rows(), &fields)? {
                Some(rows) => Work::Insert(Box::new(insert.with_rows(rows))),
                None => Work::Open(Opened::Counting),
            };
            return planned(work, count_schema(), fields);
        }
        other => planning.check_reading(other)?,
    };
    let logical = match describe::described(statement) {
        describe::Described::Query(query) => {
            let query = planning.logical(SqlStatement::Query(query), &names).await?;
            describe::columns_of_query(&query, &names).map_err(from_datafusion)?
        }
        describe::Described::Other(statement) => {
            match planning.logical(*statement, &names).await? {
                LogicalPlan::DescribeTable(described) => {
                    let columns = describe::columns_of_table(&described.schema, &names);
                    columns.map_err(from_datafusion)?
                }
                other => other,
            }
        }
    };
    let fields = parameters::fields_of(&logical)?;
    let unspelled = Arc::new(logical.schema().as_arrow().clone());
    let schema = spelling::spelled_schema(&logical, &names, &unspelled);
    match parameters.bind(&logical, &fields)? {
        Some(bound) => {
            let memory = database.options().memory;
            let made = plan_rows(planning.session, &bound, memory).await;
            let (session, plan) = made.map_err(from_datafusion)?;
            let schema = spelling::respelled(&plan.schema(), &schema);
            let (session, logical) = (Box::new(session), Box::new(bound));
            planned(Work::Query { session, logical, plan }, schema, fields)
        }
        None => planned(Work::Open(Opened::Query), schema, fields),
    }
}

/// Takes the memory that a text needs while it is planned from what statements may hold together.
pub(crate) fn hold(database: &Database, text: &str) -> Result<Option<MemoryReservation>> {
    /// Texts that are too short to count.
    const FREE_BYTES: usize = 16 << 10;
    /// Tokens, a tree and a plan, as measured with lists of numbers.
    const BYTES_PER_TERM: usize = 400;
    let limits = database.options().statements;
    // Larger ones are refused by their limit.
    if text.len() < FREE_BYTES || text.len() > limits.text_bytes {
        return Ok(None);
    }
    let held = MemoryConsumer::new("the text of a statement").register(&database.memory_pool());
    let terms = text::count_terms(text).min(limits.terms);
    let bytes = terms.saturating_mul(BYTES_PER_TERM);
    held.try_grow(bytes.saturating_add(3 * text.len())).map_err(from_datafusion)?;
    Ok(Some(held))
}

/// What a statement is planned with.
pub(crate) struct Planning {
    database: Database,
    rights: Rights,
    snapshot: Snapshot,
    /// The version of the cluster that the snapshot is of.
    reading: Option<Reading>,
    session: SessionState,
    /// Tables beside those of the snapshot.
    extra: Vec<ExtraTable>,
    externals: Externals,
}

impl Planning {
    /// On the newest version of the store.
    pub fn begin(database: &Database, rights: &Rights) -> Result<Self> {
        Self::with_tables(database, rights, Vec::new())
    }

    /// The same with tables beside those of the store.
    pub fn with_tables(
        database: &Database,
        rights: &Rights,
        extra: Vec<ExtraTable>,
    ) -> Result<Self> {
        let (snapshot, reading) = database.newest()?;
        Ok(Planning {
            session: database.session_of((&snapshot, reading.as_ref()), rights, &extra),
            database: database.clone(),
            rights: rights.clone(),
            snapshot,
            reading,
            extra,
            externals: database.externals(rights),
        })
    }

    /// Looks at a tree and at what it names; inputs are tables of the session then.
    fn look<T>(&mut self, look: impl FnOnce(Scope<'_>) -> Result<T>) -> Result<T> {
        let before = self.externals.len();
        let Planning { snapshot, rights, externals, .. } = self;
        let seen = look(Scope { snapshot, rights, externals })?;
        if self.externals.len() > before {
            let extra = [&self.extra[..], &self.externals.tables()].concat();
            let of = (&self.snapshot, self.reading.as_ref());
            self.database.show_tables(&mut self.session, of, &self.rights, &extra);
        }
        Ok(seen)
    }

    /// Adds a table beside those of the snapshot.
    fn add_table(&mut self, name: &str, table: Arc<dyn TableProvider>) {
        self.extra.push((name.to_owned(), table));
        let extra = [&self.extra[..], &self.externals.tables()].concat();
        let of = (&self.snapshot, self.reading.as_ref());
        self.database.show_tables(&mut self.session, of, &self.rights, &extra);
    }

    fn limits(&self) -> StatementLimits {
        self.database.options().statements
    }

    fn parse(&mut self, text: &str) -> Result<SqlStatement> {
        // The parser knows other forms of it, and would say what it expects.
        if let Some(view) = view::external_table(text, &self.limits())? {
            return Ok(view);
        }
        if let Some(table) = describe::summarized(text)? {
            let query = self.look(|scope| describe::summarize(&table, scope))?;
            return Ok(SqlStatement::Query(query));
        }
        text::parse_statement(text, &self.limits())
            .map_err(|error| hints::parser_error(error, text, &self.snapshot, &self.rights))
    }

    fn check_query(&mut self, query: &mut Query) -> Result<Names> {
        let limits = self.limits();
        self.look(|scope| tree::check_query(query, &limits, scope))
    }

    /// Plans what was checked, and checks the plan.
    async fn logical(&self, statement: SqlStatement, names: &Names) -> Result<LogicalPlan> {
        let plan = self.unchecked(statement, names).await?;
        nodes::check_nodes(&plan)?;
        Ok(plan)
    }

    async fn unchecked(&self, statement: SqlStatement, names: &Names) -> Result<LogicalPlan> {
        let statement = Statement::Statement(Box::new(statement));
        let planned = self.session.statement_to_plan(statement).await;
        planned.map_err(|error| hints::planning_error(error, names, &self.snapshot, &self.rights))
    }

    /// Plans a query. The second is its schema with names as they were written.
    async fn query(&mut self, mut query: Box<Query>) -> Result<(LogicalPlan, SchemaRef)> {
        let names = self.check_query(&mut query)?;
        let plan = self.logical(SqlStatement::Query(query), &names).await?;
        let schema = Arc::new(plan.schema().as_arrow().clone());
        let schema = spelling::spelled_schema(&plan, &names, &schema);
        Ok((plan, schema))
    }

    async fn copy(mut self, copy: copy::Copy) -> Result<copy::Export> {
        copy::check_right(&self.rights)?;
        let (rows, schema) = self.query(copy.query.clone()).await?;
        copy::Export::new(self.session, rows, schema, &copy)
    }

    /// Lets through what reads only, with names folded.
    fn check_reading(&mut self, statement: SqlStatement) -> Result<(SqlStatement, Names)> {
        match statement {
            SqlStatement::Query(mut query) => {
                let names = self.check_query(&mut query)?;
                Ok((SqlStatement::Query(query), names))
            }
            SqlStatement::Explain {
                describe_alias,
                analyze,
                verbose,
                query_plan: false,
                estimate: false,
                mut statement,
                format,
                options: None,
            } => {
                let SqlStatement::Query(query) = &mut *statement else {
                    return Err(unsupported(
                        &format!("EXPLAIN {}", first_words(&statement)),
                        "it shows how a query runs",
                    ));
                };
                let names = self.check_query(query)?;
                let explain = SqlStatement::Explain {
                    describe_alias,
                    analyze,
                    verbose,
                    query_plan: false,
                    estimate: false,
                    statement,
                    format,
                    options: None,
                };
                Ok((explain, names))
            }
            SqlStatement::ExplainTable {
                describe_alias,
                hive_format: None,
                has_table_keyword,
                mut table_name,
            } => {
                if view::find(&table_name, (&self.snapshot, &self.rights)).is_some() {
                    let query = format!("DESCRIBE SELECT * FROM {table_name}");
                    return self.check_reading(text::parse_statement(&query, &self.limits())?);
                }
                let names = self.look(|scope| tree::name_of_table(&mut table_name, scope))?;
                let describe = SqlStatement::ExplainTable {
                    describe_alias,
                    hive_format: None,
                    has_table_keyword,
                    table_name,
                };
                Ok((describe, names))
            }
            SqlStatement::ShowColumns { extended, full, mut show_options } => {
                if let Some(within) = &mut show_options.show_in
                    && let Some(name) = &mut within.parent_name
                {
                    self.stored_name(name);
                    name.0.iter().try_for_each(|part| check_plain(&part.to_string()))?;
                }
                let show = SqlStatement::ShowColumns { extended, full, show_options };
                Ok((show, Names::default()))
            }
            SqlStatement::ShowTables { show_options, .. } => {
                let mut query = describe::tables(&show_options)?;
                let names = self.check_query(&mut query)?;
                Ok((SqlStatement::Query(query), names))
            }
            SqlStatement::ShowCreate {
                obj_type: ShowCreateObject::Table | ShowCreateObject::View,
                obj_name,
            } => {
                let mut query = describe::create(&obj_name, &self.snapshot, &self.rights)?;
                let names = self.check_query(&mut query)?;
                Ok((SqlStatement::Query(query), names))
            }
            SqlStatement::ShowVariable { variable } => {
                variable.iter().try_for_each(|part| check_plain(&part.value))?;
                Ok((SqlStatement::ShowVariable { variable }, Names::default()))
            }
            SqlStatement::ShowFunctions { filter } => {
                let mut query = describe::functions(filter.as_ref())?;
                let names = self.check_query(&mut query)?;
                Ok((SqlStatement::Query(query), names))
            }
            other => Err(refusal(&other)),
        }
    }

    /// Gives a table its stored name, by which the views of the catalog know it.
    fn stored_name(&self, name: &mut datafusion::sql::sqlparser::ast::ObjectName) {
        use datafusion::sql::sqlparser::ast::{Ident, ObjectNamePart};
        let Some(ObjectNamePart::Identifier(last)) = name.0.last_mut() else { return };
        let Some(index) = find_table(&self.snapshot, &last.value) else { return };
        let stored = &self.snapshot.tables()[index].name;
        if self.rights.may_read(stored) {
            *last = Ident::with_quote('"', stored);
        }
    }
}

/// Refuses what would end a text: the planner puts these names and patterns into statements of its own, which nothing
/// looks at.
fn check_plain(text: &str) -> Result<()> {
    /// Longest name or pattern.
    const BYTES_MAX: usize = 1_000;
    match text.len() > BYTES_MAX || text.contains(['\'', '\\', ';']) {
        false => Ok(()),
        true => Err(unsupported("SHOW with such a name", "query information_schema")),
    }
}

/// Plans and starts a logical plan. The stream holds the snapshot through its scans.
async fn stream(
    database: &Database,
    user: &str,
    session: &SessionState,
    plan: &LogicalPlan,
) -> Result<SendableRecordBatchStream> {
    let (session, physical) = plan_of(database, user, session, plan).await?;
    execute(&session, Some(plan), physical)
}

/// Plans a logical plan, on a thread for planning.
async fn plan_of(
    database: &Database,
    user: &str,
    session: &SessionState,
    plan: &LogicalPlan,
) -> Result<(SessionState, Arc<dyn ExecutionPlan>)> {
    let (own, logical) = (session.clone(), plan.clone());
    let memory = database.options().memory;
    let work =
        move || async move { plan_rows(own, &logical, memory).await.map_err(from_datafusion) };
    database.planner().run(user, work).await
}

/// Plans a statement, and has its batches so small that functions of its literals do not become large.
async fn plan_rows(
    session: SessionState,
    logical: &LogicalPlan,
    memory: usize,
) -> DataFusionResult<(SessionState, Arc<dyn ExecutionPlan>)> {
    let fit = |optimized: &LogicalPlan, session: &mut SessionState| {
        let rows = batch_rows(optimized, session.config().batch_size(), memory)?;
        *session.config_mut() = session.config().clone().with_batch_size(rows);
        Ok(())
    };
    physical_plan_fitted(session, logical, fit).await
}
