//! The scan of inputs: a load of the columns that are asked for, whose rows are batches.
//!
//! It has one partition, in the order of the inputs, so that `LIMIT` gives the first rows; the pipeline behind it has the
//! threads of the statement, and what stands above is spread over them again by the engine.

use std::fmt;
use std::sync::Arc;

use coload_ddl::Schema;
use coload_load::{InputForm, LoadRequest, Resources, WantedRows, keep_wanted_inputs, project};
use coload_scan::Predicate;
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

use super::rows::{Reading, Rows, read};
use super::table::ExternalTable;
use crate::error::to_datafusion;
use crate::filter::describe;
use crate::names::folded_schema;

/// Share of the memory of all statements that one scan takes.
const MEMORY_SHARE: usize = 8;
/// Most that a scan takes.
const MEMORY_MAX: usize = 512 << 20;

/// What is asked of a scan.
pub(super) struct Wanted {
    /// Columns of the table that are read: those of the output in their order, then those that only tests look at.
    pub read: Vec<usize>,
    /// How many columns the output has.
    pub columns: usize,
    /// Tests that rows pass, together.
    pub tests: Vec<Predicate>,
    /// The same as an expression over the columns that are read.
    pub filter: Option<Arc<dyn PhysicalExpr>>,
    /// Number of rows that are enough.
    pub limit: Option<usize>,
}

/// Reads inputs. Its tests are exact: no filter needs to stand above it.
#[derive(Debug, Clone)]
pub(crate) struct ExternalScanExec {
    table: Arc<ExternalTable>,
    /// The load of the columns that are read.
    request: Arc<LoadRequest>,
    /// What rows must pass, by the columns that are read, as tests and as an expression.
    tests: Arc<[Predicate]>,
    filter: Option<Arc<dyn PhysicalExpr>>,
    limit: Option<usize>,
    threads: usize,
    properties: Arc<PlanProperties>,
    metrics: ExecutionPlanMetricsSet,
}

impl ExternalScanExec {
    /// A scan of what is asked for.
    ///
    /// # Errors
    /// When a column is not of the table.
    pub(super) fn new(table: &ExternalTable, wanted: Wanted, threads: usize) -> Result<Self> {
        let Wanted { read, columns, mut tests, filter, limit } = wanted;
        let schema = Arc::new(table.schema().project(&read[..columns])?);
        let mut request = project(table.request(), &read).map_err(to_datafusion)?;
        for test in &mut tests {
            let place = read.iter().position(|column| *column == test.column);
            test.column = place.unwrap_or(test.column);
        }
        request.wanted = WantedRows::new(&tests).map(Arc::new);
        keep_wanted_inputs(&mut request).map_err(to_datafusion)?;
        let properties = PlanProperties::new(
            EquivalenceProperties::new(schema),
            Partitioning::UnknownPartitioning(1),
            EmissionType::Incremental,
            Boundedness::Bounded,
        )
        .with_scheduling_type(SchedulingType::Cooperative);
        Ok(ExternalScanExec {
            table: Arc::new(table.clone()),
            request: Arc::new(request),
            tests: tests.into(),
            filter,
            limit,
            threads,
            properties: Arc::new(properties),
            metrics: ExecutionPlanMetricsSet::new(),
        })
    }

    /// Columns that are read; those of the output come first, in their order.
    pub fn columns(&self) -> &Schema {
        &self.request.schema
    }

    /// Tests that each row passes, by [`Self::columns`].
    pub fn tests(&self) -> &[Predicate] {
        &self.tests
    }

    /// Number of rows that are enough; `None` for all.
    pub fn limit(&self) -> Option<usize> {
        self.limit
    }

    /// What a run of it reads, and with what.
    ///
    /// # Errors
    /// When there is no memory for it.
    pub fn reading(&self, context: &TaskContext) -> Result<Reading> {
        let pool = context.memory_pool();
        let memory = match pool.memory_limit() {
            MemoryLimit::Finite(bytes) => (bytes / MEMORY_SHARE).clamp(MEMORY_MIN, MEMORY_MAX),
            MemoryLimit::Infinite | MemoryLimit::Unknown => MEMORY_MAX,
        };
        let held = MemoryConsumer::new(format!("the scan of {}", self.table.name())).register(pool);
        held.try_grow(memory)?;
        let resources = Resources { threads: self.threads.max(1), memory, ..Resources::default() };
        Ok(Reading {
            table: Arc::clone(&self.table),
            request: Arc::clone(&self.request),
            resources,
            held,
        })
    }
}

impl ExternalScanExec {
    /// How many files are read, of how many.
    fn files(&self) -> String {
        let (read, all) = (self.request.inputs.len(), self.table.request().inputs.len());
        if read == all { format!("files={all}") } else { format!("files={read} of {all}") }
    }
}

impl DisplayAs for ExternalScanExec {
    fn fmt_as(&self, format: DisplayFormatType, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let columns = self.columns().columns().iter().take(self.schema().fields().len());
        let names: Vec<&str> = columns.map(|column| column.name.as_str()).collect();
        let form = match self.request.form {
            InputForm::Text if self.request.dialect.json.is_some() => "json",
            InputForm::Text => "text",
            InputForm::Arrow => "arrow",
            InputForm::Parquet => "parquet",
            InputForm::Avro => "avro",
            InputForm::Rows => "rows",
        };
        let mut parts = vec![
            format!("inputs={}", self.table.name()),
            self.files(),
            format!("format={form}"),
            format!("columns=[{}]", names.join(", ")),
        ];
        if !self.tests.is_empty() {
            let tests = self.tests.iter().map(|test| describe(test, self.columns()));
            parts.push(format!("filter=[{}]", tests.collect::<Vec<_>>().join(" AND ")));
        }
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
        let rows = Rows {
            read: folded_schema(self.columns()),
            schema: self.schema(),
            filter: self.filter.clone(),
            batch_rows: context.session_config().batch_size(),
            limit: self.limit,
        };
        let reading = self.reading(&context)?;
        let rows = read(reading, rows, (&self.metrics, partition)).map_err(to_datafusion)?;
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
