//! A statement with many rows of parameters, as JDBC's batches are.
//!
//! ```text
//!   INSERT INTO t VALUES ($1, $2 + 1)  -->  INSERT INTO t SELECT "$1", "$2" + 1 FROM rows
//! ```
//!
//! So the statement is planned once, and all rows become visible at once. An INSERT of another form is
//! planned for each row; its rows become visible at once too.

use std::ops::ControlFlow;
use std::sync::{Arc, Mutex, PoisonError};

use coload_format::{Error, Result};
use coload_store::LoadKind;
use datafusion::arrow::datatypes::{Field, Schema as ArrowSchema, SchemaRef};
use datafusion::arrow::record_batch::RecordBatch;
use datafusion::catalog::TableProvider;
use datafusion::catalog::streaming::StreamingTable;
use datafusion::error::{DataFusionError, Result as DataFusionResult};
use datafusion::execution::{SendableRecordBatchStream, TaskContext};
use datafusion::physical_plan::stream::RecordBatchStreamAdapter;
use datafusion::physical_plan::streaming::PartitionStream;
use datafusion::sql::parser::Statement;
use datafusion::sql::sqlparser::ast::{
    Expr, Ident, Insert, SetExpr, Statement as SqlStatement, Value, visit_expressions_mut,
};
use datafusion::sql::sqlparser::dialect::GenericDialect;
use datafusion::sql::sqlparser::parser::Parser;
use futures::{StreamExt, TryStreamExt};

use super::{Parameters, insert, parameters, stream};
use crate::database::Database;
use crate::error::{from_datafusion, to_datafusion};
use crate::rights::Rights;
use crate::write::{RowWriter, write_rows};

/// Name of the table of parameters: a control character, so that no statement can mean it.
const ROWS: &str = "\u{1}rows";

/// Runs an INSERT for each row of parameters and tells how many rows it wrote.
///
/// # Errors
/// `Invalid` when the text is no INSERT, or the parameters do not fit it.
pub(crate) async fn insert_rows(
    database: &Database,
    rights: &Rights,
    text: &str,
    rows: SendableRecordBatchStream,
) -> Result<u64> {
    let snapshot = database.store().snapshot()?;
    let session = database.session_of(&snapshot, rights, None);
    let Statement::Statement(sql) = super::parse(&session, text, &snapshot)? else {
        return Err(Error::Invalid("not an INSERT".into()));
    };
    let mut bound = sql.clone();
    let by_row = insert::plan(session, &snapshot, rights, sql).await?;
    let fields = parameters::fields_of(by_row.rows())?;
    let (wanted, given) = (fields.fields().len(), rows.schema().fields().len());
    if wanted != given {
        return Err(Error::Invalid(format!(
            "the statement has {wanted} parameters, and {given} values were given"
        )));
    }
    if !read_from_rows(&mut bound) {
        return insert_each(database, by_row, &fields, rows).await;
    }
    let table = rows_table(rows)?;
    let mut session = database.session_of(&snapshot, rights, Some((ROWS.into(), table)));
    // Several streams would mix the order of the rows.
    session.config_mut().options_mut().execution.target_partitions = 1;
    let (session, target, plan) =
        insert::plan(session, &snapshot, rights, bound).await?.into_parts();
    let rows = stream(&session, &plan).await?;
    write_rows(database, target, LoadKind::Insert, rows).await
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
    let list: Vec<String> = exprs.iter().map(ToString::to_string).collect();
    let query = format!("SELECT {} FROM \"{ROWS}\"", list.join(", "));
    let parsed =
        Parser::new(&GenericDialect {}).try_with_sql(&query).and_then(|mut p| p.parse_query());
    match parsed {
        Ok(query) => {
            *source = query;
            true
        }
        Err(_) => false,
    }
}

/// Plans the INSERT for each row.
async fn insert_each(
    database: &Database,
    insert: insert::Insert,
    fields: &ArrowSchema,
    mut rows: SendableRecordBatchStream,
) -> Result<u64> {
    let (session, target, plan) = insert.into_parts();
    let mut writer = RowWriter::begin(database, target)?;
    while let Some(batch) = rows.try_next().await.map_err(from_datafusion)? {
        for row in 0..batch.num_rows() {
            let Some(plan) = Parameters::of_row(&batch, row)?.bind(&plan, fields)? else {
                continue;
            };
            let mut made = stream(&session, &plan).await?;
            while let Some(batch) = made.try_next().await.map_err(from_datafusion)? {
                writer.append(&batch)?;
            }
        }
    }
    writer.publish_and_merge(database, LoadKind::Insert)
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
        match self.stream.lock().unwrap_or_else(PoisonError::into_inner).take() {
            Some(stream) => stream,
            None => {
                let again = Error::Invalid("rows of parameters can be read once".into());
                let failed = futures::stream::iter([DataFusionResult::Err(to_datafusion(again))]);
                Box::pin(RecordBatchStreamAdapter::new(Arc::clone(&self.schema), failed))
            }
        }
    }
}
