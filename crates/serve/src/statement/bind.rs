//! A statement with many rows of parameters, as JDBC's batches are.
//!
//! ```text
//!   INSERT INTO t VALUES ($1, $2 + 1)  -->  INSERT INTO t SELECT "$1", "$2" + 1 FROM rows
//! ```
//!
//! So the statement is planned once, and all rows become visible at once. An INSERT of another form is
//! planned for each row; its rows become visible at once too. DELETE, UPDATE, MERGE and an INSERT that changes rows run for each row.

use std::ops::ControlFlow;
use std::sync::{Arc, Mutex};

use coload_store::LoadKind;
use coload_threads::lock;
use coload_types::{Error, Result};
use datafusion::arrow::{
    datatypes::{Field, Schema as ArrowSchema, SchemaRef},
    record_batch::RecordBatch,
};
use datafusion::catalog::{TableProvider, streaming::StreamingTable};
use datafusion::error::{DataFusionError, Result as DataFusionResult};
use datafusion::execution::session_state::SessionState;
use datafusion::execution::{SendableRecordBatchStream, TaskContext};
use datafusion::logical_expr::LogicalPlan;
use datafusion::physical_plan::{stream::RecordBatchStreamAdapter, streaming::PartitionStream};
use datafusion::sql::sqlparser::ast::{
    Expr, Ident, Insert, SelectItem, SetExpr, Statement as SqlStatement, TableFactor,
    TableWithJoins, Value, visit_expressions_mut,
};
use futures::{StreamExt, TryStreamExt};

use super::limits::StatementLimits;
use super::{Parameters, Planning, insert, parameters, stream, text};
use crate::database::Database;
use crate::error::{from_datafusion, to_datafusion};
use crate::rights::Rights;
use crate::rules::check_years;
use crate::write::write_rows;

/// Name of the table of parameters: a control character, so that no statement can mean it.
const ROWS: &str = "\u{1}rows";

/// Runs an INSERT, DELETE, UPDATE or MERGE for each row of parameters and tells how many rows it wrote or changed.
///
/// # Errors
/// `Invalid` when the text is none of these, or the parameters do not fit it.
pub(crate) async fn insert_rows(
    database: &Database,
    rights: &Rights,
    text: &str,
    rows: SendableRecordBatchStream,
) -> Result<u64> {
    let (own, caller, sql) = (database.clone(), rights.clone(), text.to_owned());
    let work = move || async move { prepare(&own, &caller, &sql).await };
    let PreparedInsert { by_row, fields, bound } =
        match database.planner().run(rights.user(), work).await? {
            Prepared::Insert(insert) => *insert,
            Prepared::Change => return change_each(database, rights, text, rows).await,
        };
    let (wanted, given) = (fields.fields().len(), rows.schema().fields().len());
    if wanted != given {
        return Err(Error::Invalid(format!(
            "the statement has {wanted} parameters, and {given} values were given"
        )));
    }
    let Some(bound) = bound else {
        return insert_each(database, rights.user(), by_row, &fields, rows).await;
    };
    let table = rows_table(rows)?;
    let (own, caller) = (database.clone(), rights.clone());
    let work = move || async move {
        let mut planning = Planning::with_tables(&own, &caller, vec![(ROWS.into(), table)])?;
        // Several streams would mix the order of the rows.
        planning.session.config_mut().options_mut().execution.target_partitions = 1;
        insert::plan(planning, bound).await
    };
    let insert = database.planner().run(rights.user(), work).await?;
    let (session, target, plan) = insert.into_parts();
    let rows = stream(database, rights.user(), &session, &plan).await?;
    write_rows(database, target.in_order(), LoadKind::Insert, rows).await
}

/// A statement before its rows of parameters.
enum Prepared {
    Insert(Box<PreparedInsert>),
    /// A change of rows that are there, which runs for each row.
    Change,
}

/// An INSERT before its rows of parameters.
struct PreparedInsert {
    by_row: insert::Insert,
    fields: ArrowSchema,
    /// The INSERT that reads its values from the table of parameters, where there is one.
    bound: Option<Box<SqlStatement>>,
}

async fn prepare(database: &Database, rights: &Rights, text: &str) -> Result<Prepared> {
    let _held = super::hold(database, text)?;
    let mut planning = Planning::begin(database, rights)?;
    let sql = Box::new(planning.parse(text)?);
    if super::change::is_change(&sql, &planning.snapshot, &planning.rights) {
        return Ok(Prepared::Change);
    }
    if !matches!(*sql, SqlStatement::Insert(_)) {
        return Err(Error::Invalid("not an INSERT, UPDATE, DELETE or MERGE".into()));
    }
    let mut bound = sql.clone();
    let by_row = insert::plan(planning, sql).await?;
    let fields = parameters::fields_of(by_row.rows())?;
    let bound = read_from_rows(&mut bound).then_some(bound);
    Ok(Prepared::Insert(Box::new(PreparedInsert { by_row, fields, bound })))
}

/// Makes the statement read its values from the table of parameters; `false` when it is not of the
/// form for which that is the same.
fn read_from_rows(statement: &mut SqlStatement) -> bool {
    let SqlStatement::Insert(Insert { source: Some(source), .. }) = statement else { return false };
    let SetExpr::Values(values) = source.body.as_ref() else { return false };
    let [row] = &values.rows[..] else { return false };
    let mut exprs = row.content.clone();
    for expr in &mut exprs {
        let _ = visit_expressions_mut(expr, |part| {
            if let Expr::Value(value) = part
                && let Value::Placeholder(name) = &value.value
            {
                *part = Expr::Identifier(Ident::with_quote('"', name.clone()));
            }
            ControlFlow::<()>::Continue(())
        });
    }
    let names = TableFactor::Table {
        name: vec![Ident::with_quote('"', ROWS)].into(),
        alias: None,
        args: None,
        with_hints: Vec::new(),
        version: None,
        with_ordinality: false,
        partitions: Vec::new(),
        json_path: None,
        sample: None,
        index_hints: Vec::new(),
    };
    let Ok(mut query) = text::parse_statement("SELECT 1", &StatementLimits::default()) else {
        return false;
    };
    let SqlStatement::Query(query) = &mut query else { return false };
    let SetExpr::Select(select) = query.body.as_mut() else { return false };
    select.projection = exprs.into_iter().map(SelectItem::UnnamedExpr).collect();
    select.from = vec![TableWithJoins { relation: names, joins: Vec::new() }];
    *source = query.clone();
    true
}

/// Runs a change for each row, one after the other: each sees what those before have done, so each is a version.
async fn change_each(
    database: &Database,
    rights: &Rights,
    text: &str,
    mut rows: SendableRecordBatchStream,
) -> Result<u64> {
    let mut changed = 0;
    while let Some(batch) = rows.try_next().await.map_err(from_datafusion)? {
        for row in 0..batch.num_rows() {
            let parameters = Parameters::of_row(&batch, row)?;
            let planned = super::plan(database, rights, text, parameters).await?;
            changed += planned.counted(database).await?;
        }
    }
    Ok(changed)
}

/// Plans the INSERT for each row.
async fn insert_each(
    database: &Database,
    user: &str,
    insert: insert::Insert,
    fields: &ArrowSchema,
    rows: SendableRecordBatchStream,
) -> Result<u64> {
    let (session, target, plan) = insert.into_parts();
    let each = EachRow {
        database: database.clone(),
        user: user.to_owned(),
        session,
        plan,
        fields: fields.clone(),
        rows,
        batch: None,
        made: None,
    };
    let made = futures::stream::unfold(each, |mut each| async move {
        let next = each.next().await.map_err(to_datafusion).transpose()?;
        Some((next, each))
    });
    write_rows(database, target.in_order(), LoadKind::Insert, Box::pin(made)).await
}

/// What an INSERT makes of rows of parameters, one after the other.
struct EachRow {
    database: Database,
    user: String,
    session: SessionState,
    plan: LogicalPlan,
    fields: ArrowSchema,
    rows: SendableRecordBatchStream,
    /// Parameters, and which row of them is next.
    batch: Option<(RecordBatch, usize)>,
    /// What is made of the row before.
    made: Option<SendableRecordBatchStream>,
}

impl EachRow {
    async fn next(&mut self) -> Result<Option<RecordBatch>> {
        loop {
            if let Some(made) = &mut self.made {
                match made.try_next().await.map_err(from_datafusion)? {
                    Some(batch) => return Ok(Some(batch)),
                    None => self.made = None,
                }
            }
            let Some((batch, row)) = self.batch.take().filter(|(b, row)| *row < b.num_rows())
            else {
                match self.rows.try_next().await.map_err(from_datafusion)? {
                    Some(batch) => self.batch = Some((batch, 0)),
                    None => return Ok(None),
                }
                continue;
            };
            let bound = Parameters::of_row(&batch, row)?.bind(&self.plan, &self.fields)?;
            self.batch = Some((batch, row + 1));
            if let Some(plan) = bound {
                let made = stream(&self.database, &self.user, &self.session, &plan).await?;
                self.made = Some(made);
            }
        }
    }
}

/// The parameters as a table with the columns `$1`, `$2` and so on, that can be read once.
fn rows_table(rows: SendableRecordBatchStream) -> Result<Arc<dyn TableProvider>> {
    let given = rows.schema();
    let fields = given.fields().iter().enumerate();
    let fields: Vec<Field> = fields
        .map(|(i, f)| Field::new(format!("${}", i + 1), f.data_type().clone(), true))
        .collect();
    let schema = Arc::new(ArrowSchema::new(fields));
    let renamed = Arc::clone(&schema);
    let rows = rows.map(move |batch| {
        let batch = batch?;
        batch.columns().iter().try_for_each(|array| check_years(array.as_ref()))?;
        RecordBatch::try_new(Arc::clone(&renamed), batch.columns().to_vec())
            .map_err(DataFusionError::from)
    });
    let stream = RecordBatchStreamAdapter::new(Arc::clone(&schema), rows);
    let once = Once { schema: Arc::clone(&schema), stream: Mutex::new(Some(Box::pin(stream))) };
    let table = StreamingTable::try_new(schema, vec![Arc::new(once)]).map_err(from_datafusion)?;
    Ok(Arc::new(table))
}

struct Once {
    schema: SchemaRef,
    stream: Mutex<Option<SendableRecordBatchStream>>,
}

impl std::fmt::Debug for Once {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Once").field("schema", &self.schema).finish_non_exhaustive()
    }
}

impl PartitionStream for Once {
    fn schema(&self) -> &SchemaRef {
        &self.schema
    }

    fn execute(&self, _: Arc<TaskContext>) -> SendableRecordBatchStream {
        match lock(&self.stream).take() {
            Some(stream) => stream,
            None => {
                let again = Error::Invalid("rows of parameters can be read once".into());
                let failed = futures::stream::iter([DataFusionResult::Err(to_datafusion(again))]);
                Box::pin(RecordBatchStreamAdapter::new(Arc::clone(&self.schema), failed))
            }
        }
    }
}
