//! The names of an answer's columns, as they were written in the table or the statement.
//!
//! The plan has folded names. Each column of the answer is followed to where it comes from: a column of a table has the
//! table's spelling, an alias that of the statement. Only names change here, never the columns.

use std::sync::Arc;

use coload_ddl::Schema;
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
    match plan {
        LogicalPlan::Projection(node) => of_expr(node.expr.get(index)?, &node.input, names),
        LogicalPlan::Aggregate(node) => of_expr(node.group_expr.get(index)?, &node.input, names),
        LogicalPlan::Window(node) => match index < node.input.schema().fields().len() {
            true => spelling(&node.input, index, names),
            false => None,
        },
        LogicalPlan::Filter(node) => spelling(&node.input, index, names),
        LogicalPlan::Sort(node) => spelling(&node.input, index, names),
        LogicalPlan::Limit(node) => spelling(&node.input, index, names),
        LogicalPlan::Repartition(node) => spelling(&node.input, index, names),
        LogicalPlan::Distinct(Distinct::All(input)) => spelling(input, index, names),
        LogicalPlan::Distinct(Distinct::On(node)) => {
            of_expr(node.select_expr.get(index)?, &node.input, names)
        }
        LogicalPlan::SubqueryAlias(node) => spelling(&node.input, index, names),
        LogicalPlan::Subquery(node) => spelling(&node.subquery, index, names),
        LogicalPlan::RecursiveQuery(node) => spelling(&node.static_term, index, names),
        LogicalPlan::Union(node) => spelling(node.inputs.first()?, index, names),
        LogicalPlan::Join(node) => {
            let left = node.left.schema().fields().len();
            match node.schema.fields().len() {
                both if both > left && index >= left => spelling(&node.right, index - left, names),
                _ => spelling(&node.left, index, names),
            }
        }
        LogicalPlan::TableScan(scan) => {
            let source = scan.source.downcast_ref::<DefaultTableSource>()?;
            let columns = columns_of(&*source.table_provider)?;
            let column = match &scan.projection {
                Some(columns) => *columns.get(index)?,
                None => index,
            };
            Some(columns.columns().get(column)?.name.clone())
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

fn of_expr(expr: &Expr, input: &LogicalPlan, names: &Names) -> Option<String> {
    match expr {
        Expr::Column(column) => {
            spelling(input, input.schema().maybe_index_of_column(column)?, names)
        }
        Expr::Alias(alias) => {
            let written = names.alias(&alias.name).map(str::to_owned);
            // A list of columns after a table keeps names that it does not change.
            written.or_else(|| of_expr(&alias.expr, input, names))
        }
        _ => None,
    }
}
