//! Windows that hold the texts of the rows that they need, and no others.
//!
//! ```text
//!   sorted rows --texts as bytes and offsets--> window --texts as views--> rows with the window's columns
//! ```
//!
//! A window keeps the rows that it may still need, and puts each new batch behind them. The engine does so by joining their
//! views, and the joined array has the buffers of both: it keeps the texts of all rows that ever passed. Bytes and offsets are
//! copied when they are joined, and those of rows that are gone go with them.
//!
//! Only the way through the window has other types: its functions get views of what it holds, and what comes out is as it
//! was. Left as they are: windows whose keys are computed of texts, aggregates with a FILTER, and windows over rows that are
//! not sorted by their partitions.
//!
//! Cost: each text is copied three times.

use std::sync::Arc;

use datafusion::arrow::array::RecordBatch;
use datafusion::arrow::compute::cast;
use datafusion::arrow::datatypes::{DataType, FieldRef, Schema, SchemaRef};
use datafusion::common::tree_node::{Transformed, TransformedResult, TreeNode, TreeNodeRecursion};
use datafusion::error::Result;
use datafusion::execution::{SendableRecordBatchStream, TaskContext};
use datafusion::logical_expr::{LimitEffect, PartitionEvaluator};
use datafusion::physical_expr::expressions::{CastExpr, Column};
use datafusion::physical_expr::window::{
    PlainAggregateWindowExpr, SlidingAggregateWindowExpr, StandardWindowExpr,
    StandardWindowFunctionExpr, WindowExpr,
};
use datafusion::physical_expr::{EquivalenceProperties, PhysicalExpr, PhysicalSortExpr};
use datafusion::physical_plan::stream::RecordBatchStreamAdapter;
use datafusion::physical_plan::windows::BoundedWindowAggExec;
use datafusion::physical_plan::{ExecutionPlan, InputOrderMode, PlanProperties};
use futures::StreamExt;

use crate::physical_rules::Replaced;
use crate::through::{Through, ThroughExec};

/// A window that holds texts as bytes, in the place of one that can.
pub(crate) fn fit_window(node: &Arc<dyn ExecutionPlan>) -> Result<Replaced> {
    node.downcast_ref::<BoundedWindowAggExec>().map_or(Ok(None), fitted)
}

/// The window over texts of another type; `None` where it is left as it is.
fn fitted(window: &BoundedWindowAggExec) -> Result<Replaced> {
    let input = window.input();
    let views = input.schema();
    let is_sorted = matches!(window.input_order_mode, InputOrderMode::Sorted);
    if !is_sorted || !views.fields().iter().any(|field| is_view(field.data_type())) {
        return Ok(None);
    }
    let Some(orderings) = orderings(input, &views)? else { return Ok(None) };
    let mut exprs = Vec::with_capacity(window.window_expr().len());
    for expr in window.window_expr() {
        match on_views(expr.as_ref(), &views)? {
            Some(expr) => exprs.push(expr),
            None => return Ok(None),
        }
    }
    let bytes = in_bytes(&views);
    let below = properties_of(
        input,
        EquivalenceProperties::new_with_orderings(Arc::clone(&bytes), orderings),
    );
    let input = ThroughExec::between(Arc::clone(input), Arc::new(Retype { to: bytes }), below);
    let can_repartition = !window.partition_keys().is_empty();
    let mode = window.input_order_mode.clone();
    let Ok(held) = BoundedWindowAggExec::try_new(exprs, input, mode, can_repartition) else {
        return Ok(None);
    };
    // The keys of the partitions are among those of the order; else the window would not run.
    if held.partition_by_sort_keys().is_err() {
        return Ok(None);
    }
    let retype = Arc::new(Retype { to: window.schema() });
    Ok(Some(ThroughExec::between(Arc::new(held), retype, Arc::clone(window.properties()))))
}

fn is_view(data_type: &DataType) -> bool {
    matches!(data_type, DataType::Utf8View | DataType::BinaryView)
}

/// The schema with texts as bytes and offsets.
fn in_bytes(schema: &Schema) -> SchemaRef {
    let fields = schema.fields().iter().map(|field| {
        let data_type = match field.data_type() {
            DataType::Utf8View => DataType::LargeUtf8,
            DataType::BinaryView => DataType::LargeBinary,
            _ => return Arc::clone(field),
        };
        Arc::new(field.as_ref().clone().with_data_type(data_type))
    });
    Arc::new(Schema::new_with_metadata(fields.collect::<Vec<_>>(), schema.metadata().clone()))
}

fn properties_of(
    plan: &Arc<dyn ExecutionPlan>,
    equivalences: EquivalenceProperties,
) -> Arc<PlanProperties> {
    Arc::new(plan.properties().as_ref().clone().with_eq_properties(equivalences))
}

/// The orders of a plan, of which each key is a column or has no text in it; `None` where one has.
fn orderings(
    plan: &Arc<dyn ExecutionPlan>,
    views: &Schema,
) -> Result<Option<Vec<Vec<PhysicalSortExpr>>>> {
    let mut orderings = Vec::new();
    for ordering in plan.properties().equivalence_properties().oeq_class().iter() {
        for key in ordering.iter() {
            if !is_plain(&key.expr, views)? {
                return Ok(None);
            }
        }
        orderings.push(ordering.iter().cloned().collect());
    }
    Ok(Some(orderings))
}

/// Whether an expression means the same over texts of another type: a column by itself, or nothing of texts.
fn is_plain(expr: &Arc<dyn PhysicalExpr>, views: &Schema) -> Result<bool> {
    Ok(expr.downcast_ref::<Column>().is_some() || !names_views(expr, views)?)
}

fn names_views(expr: &Arc<dyn PhysicalExpr>, views: &Schema) -> Result<bool> {
    let mut found = false;
    expr.apply(|part| {
        found |= column_of_views(part, views).is_some();
        Ok(if found { TreeNodeRecursion::Stop } else { TreeNodeRecursion::Continue })
    })?;
    Ok(found)
}

/// The type of a column of views.
fn column_of_views<'a>(expr: &Arc<dyn PhysicalExpr>, views: &'a Schema) -> Option<&'a DataType> {
    let column = expr.downcast_ref::<Column>()?;
    let field = views.fields().get(column.index())?;
    is_view(field.data_type()).then(|| field.data_type())
}

/// Arguments that are views of what the window holds.
fn args_on_views(
    args: Vec<Arc<dyn PhysicalExpr>>,
    views: &Schema,
) -> Result<Vec<Arc<dyn PhysicalExpr>>> {
    let of_column = |part: Arc<dyn PhysicalExpr>| match column_of_views(&part, views).cloned() {
        Some(data_type) => {
            let cast = CastExpr::new(part, data_type, None);
            Ok(Transformed::yes(Arc::new(cast) as Arc<dyn PhysicalExpr>))
        }
        None => Ok(Transformed::no(part)),
    };
    args.into_iter().map(|arg| arg.transform_up(of_column).data()).collect()
}

/// A function of a window whose arguments are views of what it holds; `None` where that cannot be said.
fn on_views(expr: &dyn WindowExpr, views: &Schema) -> Result<Option<Arc<dyn WindowExpr>>> {
    let keys = expr.all_expressions();
    for key in keys.partition_by_exprs.iter().chain(&keys.order_by_exprs) {
        if !is_plain(key, views)? {
            return Ok(None);
        }
    }
    let args = args_on_views(keys.args, views)?;
    let (partition_by, order_by) = (expr.partition_by(), expr.order_by());
    let frame = Arc::clone(expr.get_window_frame());
    let any = expr.as_any();
    if let Some(standard) = any.downcast_ref::<StandardWindowExpr>() {
        let inner = Arc::clone(standard.get_standard_func_expr());
        let function = Arc::new(OnViews { inner, args });
        return Ok(Some(Arc::new(StandardWindowExpr::new(
            function,
            partition_by,
            order_by,
            frame,
        ))));
    }
    // What stands in a FILTER cannot be asked for.
    if !format!("{expr:?}").contains(NO_FILTER) {
        return Ok(None);
    }
    if let Some(plain) = any.downcast_ref::<PlainAggregateWindowExpr>() {
        let aggregate = plain.get_aggregate_expr().with_new_expressions(args, Vec::new());
        return Ok(aggregate.map(|aggregate| {
            let aggregate = Arc::new(aggregate);
            let plain =
                PlainAggregateWindowExpr::new(aggregate, partition_by, order_by, frame, None);
            Arc::new(plain) as Arc<dyn WindowExpr>
        }));
    }
    if any.downcast_ref::<SlidingAggregateWindowExpr>().is_some() {
        return Ok(expr.with_new_expressions(args, keys.partition_by_exprs, keys.order_by_exprs));
    }
    Ok(None)
}

/// How an aggregate without a FILTER is written.
const NO_FILTER: &str = "filter: None";

/// A function of a window with other arguments.
#[derive(Debug)]
struct OnViews {
    inner: Arc<dyn StandardWindowFunctionExpr>,
    args: Vec<Arc<dyn PhysicalExpr>>,
}

impl StandardWindowFunctionExpr for OnViews {
    fn as_any(&self) -> &dyn std::any::Any {
        self
    }

    fn field(&self) -> Result<FieldRef> {
        self.inner.field()
    }

    fn expressions(&self) -> Vec<Arc<dyn PhysicalExpr>> {
        self.args.clone()
    }

    fn name(&self) -> &str {
        self.inner.name()
    }

    fn create_evaluator(&self) -> Result<Box<dyn PartitionEvaluator>> {
        self.inner.create_evaluator()
    }

    fn get_result_ordering(&self, schema: &SchemaRef) -> Option<PhysicalSortExpr> {
        self.inner.get_result_ordering(schema)
    }

    fn limit_effect(&self) -> LimitEffect {
        self.inner.limit_effect()
    }
}

/// Brings columns to other types.
#[derive(Debug)]
struct Retype {
    to: SchemaRef,
}

impl Through for Retype {
    fn name(&self) -> &'static str {
        "RetypeExec"
    }

    fn pass(
        &self,
        rows: SendableRecordBatchStream,
        _: &TaskContext,
    ) -> Result<SendableRecordBatchStream> {
        let to = Arc::clone(&self.to);
        let retyped = rows.map(move |batch| retype(&batch?, &to));
        Ok(Box::pin(RecordBatchStreamAdapter::new(Arc::clone(&self.to), retyped)))
    }
}

fn retype(batch: &RecordBatch, to: &SchemaRef) -> Result<RecordBatch> {
    let columns = batch.columns().iter().zip(to.fields()).map(|(array, field)| {
        match array.data_type() == field.data_type() {
            true => Ok(Arc::clone(array)),
            false => cast(array, field.data_type()),
        }
    });
    let columns = columns.collect::<Result<Vec<_>, _>>()?;
    Ok(RecordBatch::try_new(Arc::clone(to), columns)?)
}
