//! Bulk ingest: a client's batches into a table, as `adbc_ingest` sends them.
//!
//! ```text
//!   mode           table there           table not there
//!   append         adds rows             fails
//!   create         fails                 makes it
//!   create_append  adds rows             makes it
//!   replace        replaces its rows     makes it
//! ```
//!
//! Columns are found by name; one that the client does not send gets its default or NULL. All rows
//! become visible at once.

use std::sync::Arc;

use arrow_flight::sql::CommandStatementIngest;
use arrow_flight::sql::TableDefinitionOptions;
use arrow_flight::sql::TableExistsOption as Exists;
use arrow_flight::sql::TableNotExistOption as NotExist;
use coload_ddl::Schema;
use coload_store::{LoadKind, LoadMode, LoadTarget};
use coload_types::{Error, Result, same_name};
use datafusion::arrow::datatypes::Schema as ArrowSchema;
use datafusion::arrow::record_batch::{RecordBatch, RecordBatchOptions};
use datafusion::error::DataFusionError;
use datafusion::scalar::ScalarValue;
use futures::StreamExt;

use super::inbound::Inbound;
use crate::catalog::{CATALOG, SCHEMA};
use crate::database::Database;
use crate::error::to_datafusion;
use crate::names::missing_table;
use crate::rights::{Rights, Role};
use crate::table::scalar;
use crate::types::{arrow_schema, table_schema};
use crate::write::write_rows;

/// Takes a client's batches into a table and tells how many rows there were.
///
/// # Errors
/// `Invalid` when the table is or is not there, or a column does not fit; `Refused` without the right.
pub(crate) async fn ingest(
    database: &Database,
    rights: &Rights,
    command: &CommandStatementIngest,
    inbound: Inbound,
) -> Result<u64> {
    check_place(command)?;
    let target = target(database, rights, command, inbound.schema())?;
    let columns = find_columns(&target.schema, inbound.schema())?;
    let kind = match target.mode {
        LoadMode::Append => LoadKind::Insert,
        LoadMode::Replace => LoadKind::Replace,
        LoadMode::Create => LoadKind::Create,
    };
    inbound
        .feed(database, rights.user(), move |database, rows| async move {
            let schema = Arc::new(arrange_schema(&target.schema));
            let rows = rows.map(move |batch| {
                let batch = batch?;
                arrange(&batch, &columns, &schema).map_err(to_datafusion)
            });
            write_rows(&database, target.into(), kind, rows).await
        })
        .await
}

fn check_place(command: &CommandStatementIngest) -> Result<()> {
    let fits = |given: &Option<String>, known: &str| {
        given.as_ref().is_none_or(|g| g.is_empty() || g.eq_ignore_ascii_case(known))
    };
    if !fits(&command.catalog, CATALOG) || !fits(&command.schema, SCHEMA) {
        return Err(Error::Invalid(format!("the only schema is {CATALOG}.{SCHEMA}")));
    }
    if command.temporary {
        return Err(Error::Invalid("temporary tables are not supported".into()));
    }
    if command.transaction_id.is_some() {
        return Err(Error::Invalid("transactions are not supported: an ingest is one".into()));
    }
    Ok(())
}

/// What the ingest does to which table.
fn target(
    database: &Database,
    rights: &Rights,
    command: &CommandStatementIngest,
    sent: &ArrowSchema,
) -> Result<LoadTarget> {
    let options = command.table_definition_options.unwrap_or_default();
    let TableDefinitionOptions { if_not_exist, if_exists } = options;
    let unknown = || Error::Invalid("the ingest does not say what to do with the table".into());
    let if_exists = Exists::try_from(if_exists).map_err(|_| unknown())?;
    let if_not_exist = NotExist::try_from(if_not_exist).map_err(|_| unknown())?;
    let (snapshot, _) = database.newest()?;
    let name = command.table.clone();
    rights.require(Role::Load, &name)?;
    let Some(table) = snapshot.table(&name) else {
        let mode = match (if_not_exist, if_exists) {
            (NotExist::Create, Exists::Append) => LoadMode::Append,
            (NotExist::Create, Exists::Replace) => LoadMode::Replace,
            (NotExist::Create, _) => LoadMode::Create,
            (NotExist::Fail, _) => return Err(missing_table(&snapshot, rights, &name)),
            (NotExist::Unspecified, _) => return Err(unknown()),
        };
        return Ok(LoadTarget { name, schema: table_schema(sent)?, mode });
    };
    let name = table.name.clone();
    match if_exists {
        Exists::Append => {
            Ok(LoadTarget { name, schema: table.schema.clone(), mode: LoadMode::Append })
        }
        Exists::Replace => {
            rights.require(Role::Admin, &name)?;
            Ok(LoadTarget { name, schema: table_schema(sent)?, mode: LoadMode::Replace })
        }
        Exists::Fail => Err(Error::Invalid(format!("table {name} exists already"))),
        Exists::Unspecified => Err(unknown()),
    }
}

/// Where a column of the table comes from.
enum Source {
    /// A column of the batch.
    Sent(usize),
    /// Its default or NULL.
    Default(ScalarValue),
}

fn find_columns(table: &Schema, sent: &ArrowSchema) -> Result<Vec<Source>> {
    let mut used = vec![false; sent.fields().len()];
    let mut sources = Vec::with_capacity(table.len());
    for column in table.columns() {
        let is_it = |name: &str| same_name(name, &column.name);
        match sent.fields().iter().position(|f| is_it(f.name())) {
            Some(index) => {
                used[index] = true;
                sources.push(Source::Sent(index));
            }
            None if column.default.is_none() && !column.nullable => {
                return Err(Error::Invalid(format!(
                    "column {} is NOT NULL, has no default and is not among the columns sent",
                    column.name
                )));
            }
            None => {
                let value = column.default.as_ref().map_or(Ok(ScalarValue::Null), |value| {
                    Ok::<_, Error>(scalar(value, column.data_type))
                })?;
                sources.push(Source::Default(value));
            }
        }
    }
    match used.iter().position(|used| !used) {
        None => Ok(sources),
        Some(extra) => Err(Error::Invalid(format!(
            "column {} is sent and the table has none of that name, or it is sent twice",
            sent.field(extra).name()
        ))),
    }
}

/// The table's columns; what is sent is cast later, where a value that does not fit names its column.
fn arrange_schema(table: &Schema) -> ArrowSchema {
    ArrowSchema::clone(&arrow_schema(table))
}

fn arrange(batch: &RecordBatch, sources: &[Source], table: &ArrowSchema) -> Result<RecordBatch> {
    let rows = batch.num_rows();
    let failed = |e: DataFusionError| Error::Invalid(e.to_string());
    let columns = sources
        .iter()
        .map(|source| match source {
            Source::Sent(index) => Ok(Arc::clone(batch.column(*index))),
            Source::Default(value) => value.to_array_of_size(rows).map_err(failed),
        })
        .collect::<Result<Vec<_>>>()?;
    let fields: Vec<_> = columns
        .iter()
        .zip(table.fields())
        .map(|(array, field)| {
            field.as_ref().clone().with_data_type(array.data_type().clone()).with_nullable(true)
        })
        .collect();
    let options = RecordBatchOptions::new().with_row_count(Some(rows));
    RecordBatch::try_new_with_options(Arc::new(ArrowSchema::new(fields)), columns, &options)
        .map_err(|e| Error::Invalid(e.to_string()))
}
