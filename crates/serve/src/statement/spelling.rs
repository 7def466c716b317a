//! The names of an answer's columns, as they were written in the table or the statement.
//!
//! The plan has folded names. Each column of the answer is followed to where it comes from: a column of a table has the
//! table's spelling, an alias that of the statement. Only names change here, never the columns.

use std::sync::Arc;

use coload_ddl::Schema;
use coload_types::{Column, DataType};
use datafusion::arrow::datatypes::{Schema as ArrowSchema, SchemaRef};
use datafusion::arrow::record_batch::{RecordBatch, RecordBatchOptions};
use datafusion::catalog::TableProvider;
use datafusion::catalog::default_table_source::DefaultTableSource;
use datafusion::error::DataFusionError;
use datafusion::execution::SendableRecordBatchStream;
use datafusion::logical_expr::{Distinct, Expr, LogicalPlan};
use datafusion::physical_plan::stream::RecordBatchStreamAdapter;
use futures::StreamExt;

use super::tree::Names;
use crate::cluster::ClusterTable;
use crate::external::ExternalTable;
use crate::names::fold;
use crate::table::StoreTable;

/// The schema of a plan's answer with names as they were written.
pub(super) fn spelled_schema(plan: &LogicalPlan, names: &Names, planned: &SchemaRef) -> SchemaRef {
    let fields = planned.fields().iter().enumerate().map(|(index, field)| {
        let is_same = |name: &String| {
            fold(name) == fold(field.name()) || names.alias(field.name()) == Some(name)
        };
        match spelling(plan, index, names).filter(is_same) {
            Some(name) => Arc::new(field.as_ref().clone().with_name(name)),
            None => Arc::clone(field),
        }
    });
    Arc::new(ArrowSchema::new_with_metadata(fields.collect::<Vec<_>>(), planned.metadata().clone()))
}

/// The schema of the plan that runs, with the names of the one that was spelled.
pub(super) fn respelled(running: &SchemaRef, spelled: &SchemaRef) -> SchemaRef {
    if running.fields().len() != spelled.fields().len() {
        return Arc::clone(running);
    }
    let names: Vec<String> = spelled.fields().iter().map(|f| f.name().clone()).collect();
    rename(running, &names)
}

/// The same rows under other names.
pub(super) fn renamed(
    stream: SendableRecordBatchStream,
    schema: &SchemaRef,
) -> SendableRecordBatchStream {
    if stream.schema() == *schema || stream.schema().fields().len() != schema.fields().len() {
        return stream;
    }
    let names: Vec<String> = schema.fields().iter().map(|f| f.name().clone()).collect();
    let renamed = rename(&stream.schema(), &names);
    let to = Arc::clone(&renamed);
    let rows = stream.map(move |batch| -> Result<RecordBatch, DataFusionError> {
        let batch = batch?;
        let to = match batch
            .schema()
            .fields()
            .iter()
            .zip(to.fields())
            .all(|(a, b)| a.data_type() == b.data_type())
        {
            true => Arc::clone(&to),
            false => rename(&batch.schema(), &names),
        };
        let options = RecordBatchOptions::new().with_row_count(Some(batch.num_rows()));
        Ok(RecordBatch::try_new_with_options(to, batch.columns().to_vec(), &options)?)
    });
    Box::pin(RecordBatchStreamAdapter::new(renamed, rows))
}

fn rename(schema: &SchemaRef, names: &[String]) -> SchemaRef {
    let fields = schema.fields().iter().zip(names);
    let fields: Vec<_> = fields.map(|(f, name)| f.as_ref().clone().with_name(name)).collect();
    Arc::new(ArrowSchema::new_with_metadata(fields, schema.metadata().clone()))
}

/// How the column at `index` of a plan was written.
fn spelling(plan: &LogicalPlan, index: usize, names: &Names) -> Option<String> {
    let alias = |alias: &str| names.alias(alias).map(str::to_owned);
    match origin(plan, index, &Asked::Name(&alias))? {
        Origin::Alias(name) => Some(name),
        Origin::Column(column) => Some(column.name.clone()),
    }
}

/// The type that a table declares for the column at `index` of a plan, whatever it is called; `None` where it is an expression.
pub(super) fn declared(plan: &LogicalPlan, index: usize) -> Option<DataType> {
    match origin(plan, index, &Asked::Type)? {
        Origin::Alias(_) => None,
        Origin::Column(column) => Some(column.data_type),
    }
}

/// What is asked of a column.
enum Asked<'a> {
    /// Its name, which may be an alias: how that was written, if it was.
    Name(&'a dyn Fn(&str) -> Option<String>),
    /// Its type.
    Type,
}

/// Where a column of a plan comes from.
enum Origin<'p> {
    /// It has the name of an alias.
    Alias(String),
    /// It is a column of a table.
    Column(&'p Column),
}

/// Where the column at `index` of a plan comes from.
fn origin<'p>(plan: &'p LogicalPlan, index: usize, asked: &Asked<'_>) -> Option<Origin<'p>> {
    match plan {
        LogicalPlan::Projection(node) => of_expr(node.expr.get(index)?, &node.input, asked),
        LogicalPlan::Aggregate(node) => of_expr(node.group_expr.get(index)?, &node.input, asked),
        LogicalPlan::Window(node) => match index < node.input.schema().fields().len() {
            true => origin(&node.input, index, asked),
            false => None,
        },
        LogicalPlan::Filter(node) => origin(&node.input, index, asked),
        LogicalPlan::Sort(node) => origin(&node.input, index, asked),
        LogicalPlan::Limit(node) => origin(&node.input, index, asked),
        LogicalPlan::Repartition(node) => origin(&node.input, index, asked),
        LogicalPlan::Distinct(Distinct::All(input)) => origin(input, index, asked),
        LogicalPlan::Distinct(Distinct::On(node)) => {
            of_expr(node.select_expr.get(index)?, &node.input, asked)
        }
        LogicalPlan::SubqueryAlias(node) => origin(&node.input, index, asked),
        LogicalPlan::Subquery(node) => origin(&node.subquery, index, asked),
        LogicalPlan::RecursiveQuery(node) => match asked {
            Asked::Name(_) => origin(&node.static_term, index, asked),
            Asked::Type => None,
        },
        LogicalPlan::Union(node) => match asked {
            Asked::Name(_) => origin(node.inputs.first()?, index, asked),
            Asked::Type => {
                let mut types = node.inputs.iter().map(|input| declared(input, index));
                let first = types.next().flatten();
                match types.all(|other| other == first) {
                    true => origin(node.inputs.first()?, index, asked),
                    false => None,
                }
            }
        },
        LogicalPlan::Join(node) => {
            let left = node.left.schema().fields().len();
            match node.schema.fields().len() {
                both if both > left && index >= left => origin(&node.right, index - left, asked),
                _ => origin(&node.left, index, asked),
            }
        }
        LogicalPlan::TableScan(scan) => {
            let source = scan.source.downcast_ref::<DefaultTableSource>()?;
            let columns = columns_of(&*source.table_provider)?;
            let column = match &scan.projection {
                Some(columns) => *columns.get(index)?,
                None => index,
            };
            columns.columns().get(column).map(Origin::Column)
        }
        _ => None,
    }
}

/// The columns of a table, as they are written there.
fn columns_of(table: &dyn TableProvider) -> Option<&Schema> {
    let stored = table.downcast_ref::<StoreTable>().map(StoreTable::columns);
    let stored = stored.or_else(|| table.downcast_ref::<ClusterTable>().map(ClusterTable::columns));
    stored.or_else(|| table.downcast_ref::<ExternalTable>().map(ExternalTable::columns))
}

fn of_expr<'p>(expr: &Expr, input: &'p LogicalPlan, asked: &Asked<'_>) -> Option<Origin<'p>> {
    match expr {
        Expr::Column(column) => origin(input, input.schema().maybe_index_of_column(column)?, asked),
        Expr::Alias(alias) => {
            let written = match asked {
                Asked::Name(written) => written(&alias.name),
                Asked::Type => None,
            };
            // A list of columns after a table keeps names that it does not change.
            written.map(Origin::Alias).or_else(|| of_expr(&alias.expr, input, asked))
        }
        _ => None,
    }
}
