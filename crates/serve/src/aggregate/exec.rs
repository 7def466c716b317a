//! Runs an aggregate on codes.
//!
//! ```text
//!   a table   threads take pages from one queue, each into a state of its own
//!   inputs    the workers of a load make a segment in memory of each partition, and add it to the groups
//! ```
//!
//! Of inputs it is not known before whether their columns have codes. Where one has none, which mostly the first partition
//! tells, the plan that stood here before is run instead: nothing was answered yet.

use std::fmt;
use std::sync::Arc;

use coload_scan::PageQueue;
use coload_scan::aggregate::{
    GroupRow, Grouped, Groups, PageWork, Program, Query, SegmentScan, State, supports,
};
use coload_store::SegmentFile;
use coload_types::{Error, Physical, Result as StoreResult};
use datafusion::arrow::array::{Array, AsArray, BinaryArray};
use datafusion::arrow::datatypes::{
    DataType as ArrowType, Field, Schema as ArrowSchema, SchemaRef,
};
use datafusion::arrow::record_batch::RecordBatch;
use datafusion::common::runtime::SpawnedTask;
use datafusion::common::tree_node::TreeNodeRecursion;
use datafusion::error::{DataFusionError, Result};
use datafusion::execution::{SendableRecordBatchStream, TaskContext};
use datafusion::physical_expr::{EquivalenceProperties, PhysicalExpr};
use datafusion::physical_plan::execution_plan::{Boundedness, EmissionType, SchedulingType};
use datafusion::physical_plan::metrics::{
    BaselineMetrics, Count, ExecutionPlanMetricsSet, MetricBuilder, MetricsSet,
};
use datafusion::physical_plan::stream::RecordBatchStreamAdapter;
use datafusion::physical_plan::{
    ChildrenPropertiesMode, DisplayAs, DisplayFormatType, Distribution, ExecutionPlan,
    Partitioning, PlanProperties, ReplaceChildrenOptions,
};
use futures::{StreamExt, TryStreamExt, stream};

use super::answer::make_batch;
use super::inputs::aggregate_inputs;
use super::lower::Output;
use crate::cluster::{Aggregates, ClusterScanExec, decode_group, encode_group};
use crate::error::to_datafusion;
use crate::external::ExternalScanExec;
use crate::scan::{OpenedSegment, StoreScanExec};

/// An aggregate over a scan that decodes nothing but its result.
#[derive(Debug, Clone)]
pub struct AggregateOnCodesExec {
    rows: RowsOf,
    query: Arc<Query>,
    program: Arc<Program>,
    form: Form,
    outputs: Arc<[Output]>,
    properties: Arc<PlanProperties>,
    metrics: ExecutionPlanMetricsSet,
}

/// Whose rows are aggregated.
#[derive(Debug, Clone)]
pub(super) enum RowsOf {
    /// Those of a table.
    Store(StoreScanExec),
    /// Those of inputs.
    Inputs {
        scan: ExternalScanExec,
        /// The same aggregate without codes.
        otherwise: Arc<dyn ExecutionPlan>,
    },
    /// Those of a table of a cluster: each leaf makes groups of its own, which are joined here.
    Leaves {
        scan: ClusterScanExec,
        /// The same aggregate of rows, if a leaf has some without codes.
        otherwise: Arc<dyn ExecutionPlan>,
    },
}

/// What becomes of the groups.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Form {
    /// The columns of the aggregate.
    Columns,
    /// Bytes for the node that joins them with those of other leaves.
    Encoded,
}

/// What leaves are asked of a query; its tests go with the scan.
pub(super) fn asked_of(query: &Query) -> Aggregates {
    Aggregates { groups: query.groups.clone(), aggregates: query.aggregates.clone() }
}

/// Whether all segments of a scan can answer a query.
pub(super) fn is_supported(scan: &StoreScanExec, query: &Query) -> StoreResult<bool> {
    for segment in scan.open_segments()? {
        if !supports(&segment.file, query)? {
            return Ok(false);
        }
    }
    Ok(true)
}

/// The groups of a leaf's rows, for the node that asked.
///
/// # Errors
/// `Invalid` when what was asked is none of these aggregates.
pub(crate) fn groups_on_codes(
    scan: StoreScanExec,
    asked: Aggregates,
) -> StoreResult<Arc<dyn ExecutionPlan>> {
    let Aggregates { groups, aggregates } = asked;
    let query = Query { predicates: scan.predicates().to_vec(), groups, aggregates };
    let program = Program::new(&query.aggregates)?;
    let schema = Arc::new(ArrowSchema::new(vec![Field::new("group", ArrowType::Binary, false)]));
    let rows = RowsOf::Store(scan);
    let exec = AggregateOnCodesExec::new(rows, query, program, Vec::new(), schema);
    Ok(Arc::new(AggregateOnCodesExec { form: Form::Encoded, ..exec }))
}

impl AggregateOnCodesExec {
    /// Runs `query` over `rows`. `schema` is that of the aggregate: grouping columns, then
    /// `outputs`.
    pub(super) fn new(
        rows: RowsOf,
        query: Query,
        program: Program,
        outputs: Vec<Output>,
        schema: SchemaRef,
    ) -> Self {
        let properties = PlanProperties::new(
            EquivalenceProperties::new(schema),
            Partitioning::UnknownPartitioning(1),
            EmissionType::Final,
            Boundedness::Bounded,
        )
        .with_scheduling_type(SchedulingType::Cooperative);
        AggregateOnCodesExec {
            rows,
            query: Arc::new(query),
            program: Arc::new(program),
            form: Form::Columns,
            outputs: outputs.into(),
            properties: Arc::new(properties),
            metrics: ExecutionPlanMetricsSet::new(),
        }
    }

    async fn run(self, context: Arc<TaskContext>) -> Result<Answer> {
        let (rows, columns) = match &self.rows {
            RowsOf::Store(scan) if self.form == Form::Encoded => {
                // An empty one says that there are rows without codes.
                let groups = match is_supported(scan, &self.query).map_err(to_datafusion)? {
                    true => self.rows_of_store(scan).await?.iter().map(encode_group).collect(),
                    false => vec![Vec::new()],
                };
                let groups = BinaryArray::from_iter_values(groups);
                let batch = RecordBatch::try_new(self.schema(), vec![Arc::new(groups)])?;
                return Ok(Answer::Groups(batch));
            }
            RowsOf::Leaves { scan, otherwise } => match self.rows_of_leaves(scan).await? {
                Some(rows) => (rows, scan.columns()),
                None => return otherwise.execute(0, context).map(Answer::Otherwise),
            },
            RowsOf::Store(scan) => (self.rows_of_store(scan).await?, scan.table().columns()),
            RowsOf::Inputs { scan, otherwise } => {
                let (query, program) = (Arc::clone(&self.query), Arc::clone(&self.program));
                let counts = Counts::new(&self.metrics);
                match aggregate_inputs(scan.reading(&context)?, query, program, counts).await? {
                    Some(rows) => (rows, scan.columns()),
                    None => return otherwise.execute(0, context).map(Answer::Otherwise),
                }
            }
        };
        let groups = self.query.groups.iter().map(|c| columns.columns()[*c].data_type);
        let groups: Vec<_> = groups.collect();
        make_batch(&rows, &groups, &self.outputs, &self.schema()).map(Answer::Groups)
    }

    /// The groups of all leaves; `None` when one of them has rows without codes.
    async fn rows_of_leaves(&self, scan: &ClusterScanExec) -> Result<Option<Vec<GroupRow>>> {
        let columns = scan.columns().columns();
        let shapes = self.query.groups.iter().map(|column| columns[*column].data_type.physical());
        let shapes: Vec<Physical> = shapes.collect();
        // The others work meanwhile.
        let asked = scan.ask_groups(&asked_of(&self.query));
        let mut groups = Groups::default();
        if let Some(own) = scan.own() {
            if !is_supported(own, &self.query).map_err(to_datafusion)? {
                return Ok(None);
            }
            let rows = self.rows_of_store(own).await?;
            groups.add_rows(rows, &self.program).map_err(to_datafusion)?;
        }
        for mut leaf in asked {
            while let Some(batch) = leaf.next().await {
                let batch = batch.map_err(to_datafusion)?;
                let column = batch.columns().first();
                let Some(rows) = column.and_then(|column| column.as_binary_opt::<i32>()) else {
                    return Err(to_datafusion(Error::Corrupt("a leaf gave no groups".into())));
                };
                let mut decoded = Vec::with_capacity(rows.len());
                for bytes in rows.iter().map(Option::unwrap_or_default) {
                    if bytes.is_empty() {
                        return Ok(None);
                    }
                    let row = decode_group(bytes, &shapes, &self.query.aggregates);
                    decoded.push(row.map_err(to_datafusion)?);
                }
                groups.add_rows(decoded, &self.program).map_err(to_datafusion)?;
            }
        }
        let grouped = if self.query.groups.is_empty() { Grouped::No } else { Grouped::Yes };
        Ok(Some(groups.finish(&self.program, grouped)))
    }

    async fn rows_of_store(&self, scan: &StoreScanExec) -> Result<Vec<GroupRow>> {
        let threads = scan.properties().output_partitioning().partition_count();
        let work = Arc::new(Work::open(self, scan).map_err(to_datafusion)?);
        let others: Vec<_> = (1..threads.min(work.queue.len()))
            .map(|_| SpawnedTask::spawn(Arc::clone(&work).take_pages()))
            .collect();
        let mut all = Arc::clone(&work).take_pages().await.map_err(to_datafusion)?;
        for other in others {
            let state = other
                .join()
                .await
                .map_err(|e| DataFusionError::External(Box::new(e)))?
                .map_err(to_datafusion)?;
            all.merge(state).map_err(to_datafusion)?;
        }
        work.finish(all, &self.query, &self.program).map_err(to_datafusion)
    }
}

/// What a run gives.
enum Answer {
    /// All groups.
    Groups(RecordBatch),
    /// The groups as the plan without codes makes them.
    Otherwise(SendableRecordBatchStream),
}

/// What the threads of one run share.
struct Work {
    queue: PageQueue,
    segments: Vec<(Arc<SegmentFile>, SegmentScan)>,
    counts: Counts,
}

/// Counts how much of pages had to be looked at.
#[derive(Debug, Clone)]
pub(super) struct Counts {
    /// What they are of.
    pub metrics: ExecutionPlanMetricsSet,
    pages_scanned: Count,
    pages_pruned: Count,
    rows_tested: Count,
}

impl Counts {
    fn new(metrics: &ExecutionPlanMetricsSet) -> Self {
        let counter = |name| MetricBuilder::new(metrics).counter(name, 0);
        Counts {
            metrics: metrics.clone(),
            pages_scanned: counter("pages_scanned"),
            pages_pruned: counter("pages_pruned"),
            rows_tested: counter("rows_tested"),
        }
    }

    /// Counts a page of so many rows.
    pub fn add(&self, work: PageWork, rows: u32) {
        if work == PageWork::Pruned {
            return self.pages_pruned.add(1);
        }
        self.pages_scanned.add(1);
        if work == PageWork::Tested {
            self.rows_tested.add(rows as usize);
        }
    }
}

impl Work {
    fn open(exec: &AggregateOnCodesExec, scan: &StoreScanExec) -> StoreResult<Self> {
        let segments = scan
            .open_segments()?
            .into_iter()
            .map(|OpenedSegment { file, deleted, .. }| {
                let program = Arc::clone(&exec.program);
                let scan = SegmentScan::new(&file, deleted.as_ref(), &exec.query, program)?;
                Ok((file, scan))
            })
            .collect::<StoreResult<Vec<_>>>()?;
        let queue = PageQueue::new(segments.iter().map(|(s, _)| s.page_rows().len()));
        Ok(Work { queue, segments, counts: Counts::new(&exec.metrics) })
    }

    /// One thread's part. A cancelled statement ends where the task yields.
    async fn take_pages(self: Arc<Self>) -> StoreResult<State> {
        let mut state = State::default();
        while let Some(page) = self.queue.take() {
            let (segment, scan) = &self.segments[page.segment];
            let work = scan.aggregate_page(segment, page.page, page.segment, &mut state)?;
            self.counts.add(work, segment.page_rows()[page.page]);
            tokio::task::consume_budget().await;
        }
        Ok(state)
    }

    fn finish(&self, state: State, query: &Query, program: &Program) -> StoreResult<Vec<GroupRow>> {
        let grouped = if query.groups.is_empty() { Grouped::No } else { Grouped::Yes };
        let segments: Vec<_> = self.segments.iter().map(|(s, scan)| (&**s, scan)).collect();
        state.finish(program, grouped, &segments)
    }
}

impl DisplayAs for AggregateOnCodesExec {
    fn fmt_as(&self, format: DisplayFormatType, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let schema = self.schema();
        let names: Vec<&str> = schema.fields().iter().map(|f| f.name().as_str()).collect();
        let (groups, outputs) = names.split_at(self.query.groups.len());
        let (groups, outputs) = (groups.join(", "), outputs.join(", "));
        match format {
            DisplayFormatType::TreeRender => write!(f, "gby=[{groups}]\naggr=[{outputs}]"),
            _ => {
                write!(f, "AggregateOnCodesExec: gby=[{groups}], aggr=[{outputs}], over ")?;
                match &self.rows {
                    RowsOf::Store(scan) => scan.fmt_as(format, f),
                    RowsOf::Inputs { scan, .. } => scan.fmt_as(format, f),
                    RowsOf::Leaves { scan, .. } => scan.fmt_as(format, f),
                }
            }
        }
    }
}

impl ExecutionPlan for AggregateOnCodesExec {
    fn name(&self) -> &'static str {
        "AggregateOnCodesExec"
    }

    fn schema(&self) -> SchemaRef {
        Arc::clone(self.properties.eq_properties.schema())
    }

    fn properties(&self) -> &Arc<PlanProperties> {
        &self.properties
    }

    fn children(&self) -> Vec<&Arc<dyn ExecutionPlan>> {
        match &self.rows {
            RowsOf::Store(_) => Vec::new(),
            RowsOf::Inputs { otherwise, .. } | RowsOf::Leaves { otherwise, .. } => vec![otherwise],
        }
    }

    fn required_input_distribution(&self) -> Vec<Distribution> {
        vec![Distribution::SinglePartition; self.children().len()]
    }

    fn benefits_from_input_partitioning(&self) -> Vec<bool> {
        vec![false; self.children().len()]
    }

    fn apply_expressions(
        &self,
        _: &mut dyn FnMut(&Arc<dyn PhysicalExpr>) -> Result<TreeNodeRecursion>,
    ) -> Result<TreeNodeRecursion> {
        Ok(TreeNodeRecursion::Continue)
    }

    fn replace_children(
        self: Arc<Self>,
        children: Vec<Arc<dyn ExecutionPlan>>,
        _: ReplaceChildrenOptions,
    ) -> Result<Arc<dyn ExecutionPlan>> {
        let Some(otherwise) = children.first().map(Arc::clone) else { return Ok(self) };
        let rows = match &self.rows {
            RowsOf::Store(_) => return Ok(self),
            RowsOf::Inputs { scan, .. } => RowsOf::Inputs { scan: scan.clone(), otherwise },
            RowsOf::Leaves { scan, .. } => RowsOf::Leaves { scan: scan.clone(), otherwise },
        };
        Ok(Arc::new(AggregateOnCodesExec { rows, ..self.as_ref().clone() }))
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
        let metrics = BaselineMetrics::new(&self.metrics, partition);
        let batch_rows = context.session_config().batch_size().max(1);
        let run = self.clone().run(context);
        let batches = stream::once(async move {
            let timer = metrics.elapsed_compute().timer();
            let answer = run.await?;
            timer.done();
            let batch = match answer {
                Answer::Groups(batch) => batch,
                Answer::Otherwise(batches) => return Ok(batches.boxed()),
            };
            metrics.record_output(batch.num_rows());
            let rows = batch.num_rows();
            let slices = (0..rows)
                .step_by(batch_rows)
                .map(move |at| Ok(batch.slice(at, batch_rows.min(rows - at))));
            Ok::<_, DataFusionError>(stream::iter(slices).boxed())
        })
        .try_flatten();
        Ok(Box::pin(RecordBatchStreamAdapter::new(self.schema(), batches.boxed())))
    }

    fn metrics(&self) -> Option<MetricsSet> {
        Some(self.metrics.clone_inner())
    }
}
