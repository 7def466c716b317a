//! The scan of inputs: a load of the columns that are asked for, whose rows are batches.
//!
//! It has one partition, in the order of the inputs, so that `LIMIT` gives the first rows; the pipeline behind it has the
//! threads of the statement, and what stands above is spread over them again by the engine.

use std::fmt;
use std::sync::Arc;

use coload_load::{InputForm, LoadRequest, Resources, project};
use coload_transform::MEMORY_MIN;
use datafusion::arrow::datatypes::SchemaRef;
use datafusion::catalog::TableProvider;
use datafusion::common::tree_node::TreeNodeRecursion;
use datafusion::error::Result;
use datafusion::execution::memory_pool::{MemoryConsumer, MemoryLimit};
use datafusion::execution::{SendableRecordBatchStream, TaskContext};
use datafusion::physical_expr::{EquivalenceProperties, PhysicalExpr};
use datafusion::physical_plan::coop::cooperative;
use datafusion::physical_plan::execution_plan::{Boundedness, EmissionType, SchedulingType};
use datafusion::physical_plan::metrics::{ExecutionPlanMetricsSet, MetricsSet};
use datafusion::physical_plan::{
    ChildrenPropertiesMode, DisplayAs, DisplayFormatType, ExecutionPlan, Partitioning,
    PlanProperties, ReplaceChildrenOptions,
};

use super::rows::{Reading, read};
use super::table::ExternalTable;
use crate::error::to_datafusion;

/// Share of the memory of all statements that one scan takes.
const MEMORY_SHARE: usize = 8;
/// Most that a scan takes.
const MEMORY_MAX: usize = 512 << 20;

/// Reads inputs.
#[derive(Debug, Clone)]
pub(crate) struct ExternalScanExec {
    table: Arc<ExternalTable>,
    projection: Arc<[usize]>,
    /// The load of the columns that are read: at least one, so that rows are counted.
    request: Arc<LoadRequest>,
    limit: Option<usize>,
    threads: usize,
    properties: Arc<PlanProperties>,
    metrics: ExecutionPlanMetricsSet,
}

impl ExternalScanExec {
    /// A scan of these columns, and of at least `limit` rows.
    ///
    /// # Errors
    /// When a column is not of the table.
    pub fn new(
        table: &ExternalTable,
        projection: Vec<usize>,
        limit: Option<usize>,
        threads: usize,
    ) -> Result<Self> {
        let schema = Arc::new(table.schema().project(&projection)?);
        let read = if projection.is_empty() { &[0][..] } else { &projection };
        let request = project(table.request(), read).map_err(to_datafusion)?;
        let properties = PlanProperties::new(
            EquivalenceProperties::new(schema),
            Partitioning::UnknownPartitioning(1),
            EmissionType::Incremental,
            Boundedness::Bounded,
        )
        .with_scheduling_type(SchedulingType::Cooperative);
        Ok(ExternalScanExec {
            table: Arc::new(table.clone()),
            projection: projection.into(),
            request: Arc::new(request),
            limit,
            threads,
            properties: Arc::new(properties),
            metrics: ExecutionPlanMetricsSet::new(),
        })
    }
}

impl DisplayAs for ExternalScanExec {
    fn fmt_as(&self, format: DisplayFormatType, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let columns = self.table.columns().columns();
        let names: Vec<&str> = self.projection.iter().map(|c| columns[*c].name.as_str()).collect();
        let form = match self.request.form {
            InputForm::Text if self.request.dialect.json.is_some() => "json",
            InputForm::Text => "text",
            InputForm::Arrow => "arrow",
            InputForm::Parquet => "parquet",
            InputForm::Rows => "rows",
        };
        let mut parts = vec![
            format!("inputs={}", self.table.name()),
            format!("files={}", self.request.inputs.len()),
            format!("format={form}"),
            format!("columns=[{}]", names.join(", ")),
        ];
        if let Some(limit) = self.limit {
            parts.push(format!("limit={limit}"));
        }
        match format {
            DisplayFormatType::TreeRender => f.write_str(&parts.join("\n")),
            _ => write!(f, "ExternalScanExec: {}", parts.join(", ")),
        }
    }
}

impl ExecutionPlan for ExternalScanExec {
    fn name(&self) -> &'static str {
        "ExternalScanExec"
    }

    fn schema(&self) -> SchemaRef {
        Arc::clone(self.properties.eq_properties.schema())
    }

    fn properties(&self) -> &Arc<PlanProperties> {
        &self.properties
    }

    fn children(&self) -> Vec<&Arc<dyn ExecutionPlan>> {
        Vec::new()
    }

    fn apply_expressions(
        &self,
        _: &mut dyn FnMut(&Arc<dyn PhysicalExpr>) -> Result<TreeNodeRecursion>,
    ) -> Result<TreeNodeRecursion> {
        Ok(TreeNodeRecursion::Continue)
    }

    fn replace_children(
        self: Arc<Self>,
        _: Vec<Arc<dyn ExecutionPlan>>,
        _: ReplaceChildrenOptions,
    ) -> Result<Arc<dyn ExecutionPlan>> {
        Ok(self)
    }

    fn with_new_children(
        self: Arc<Self>,
        children: Vec<Arc<dyn ExecutionPlan>>,
    ) -> Result<Arc<dyn ExecutionPlan>> {
        self.replace_children(
            children,
            ReplaceChildrenOptions::new(ChildrenPropertiesMode::Recompute),
        )
    }

    fn execute(
        &self,
        partition: usize,
        context: Arc<TaskContext>,
    ) -> Result<SendableRecordBatchStream> {
        let pool = context.memory_pool();
        let memory = match pool.memory_limit() {
            MemoryLimit::Finite(bytes) => (bytes / MEMORY_SHARE).clamp(MEMORY_MIN, MEMORY_MAX),
            MemoryLimit::Infinite | MemoryLimit::Unknown => MEMORY_MAX,
        };
        let held = MemoryConsumer::new(format!("the scan of {}", self.table.name())).register(pool);
        held.try_grow(memory)?;
        let resources = Resources { threads: self.threads.max(1), memory, ..Resources::default() };
        let reading = Reading {
            table: Arc::clone(&self.table),
            request: Arc::clone(&self.request),
            resources,
            schema: self.schema(),
            batch_rows: context.session_config().batch_size(),
            limit: self.limit,
            held,
        };
        let rows = read(reading, (&self.metrics, partition)).map_err(to_datafusion)?;
        Ok(Box::pin(cooperative(rows)))
    }

    fn metrics(&self) -> Option<MetricsSet> {
        Some(self.metrics.clone_inner())
    }

    fn supports_limit_pushdown(&self) -> bool {
        false
    }

    fn fetch(&self) -> Option<usize> {
        None
    }
}
