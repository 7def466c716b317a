//! The scan of a table: pages are taken by whichever partition is free, tested on codes, and only
//! the rows that pass are decoded.
//!
//! ```text
//!   segments --bounds of the manifest--> pages --PageQueue--> partition 0, 1, ...
//!                                                             select, decode, batch
//! ```
//!
//! Cost: one page's selection (a bit a row) and one batch a partition.

use std::fmt;
use std::ops::Range;
use std::sync::{Arc, OnceLock};

use coload_scan::{
    Filter, PageQueue, Predicate, Stretch, bound_by_index, bound_columns, may_match, stretches,
};
use coload_store::{DeletedRows, SegmentEntry, SegmentFile};
use coload_types::{DataType, Result as StoreResult};
use datafusion::arrow::datatypes::SchemaRef;
use datafusion::common::Statistics;
use datafusion::common::tree_node::TreeNodeRecursion;
use datafusion::error::Result;
use datafusion::execution::{SendableRecordBatchStream, TaskContext};
use datafusion::physical_expr::{EquivalenceProperties, PhysicalExpr};
use datafusion::physical_plan::coop::cooperative;
use datafusion::physical_plan::execution_plan::{Boundedness, EmissionType, SchedulingType};
use datafusion::physical_plan::metrics::{ExecutionPlanMetricsSet, MetricsSet};
use datafusion::physical_plan::statistics::StatisticsArgs;
use datafusion::physical_plan::{
    ChildrenPropertiesMode, DisplayAs, DisplayFormatType, ExecutionPlan, Partitioning,
    PlanProperties, ReplaceChildrenOptions,
};

use crate::error::to_datafusion;
use crate::filter::describe;
use crate::key_order::KeyOrder;
use crate::scan_stream::ScanStream;
use crate::selectivity::selectivity;
use crate::table::StoreTable;

/// Rows of a page of an ordinary load; tells how many partitions are worth having.
const PAGE_ROWS: u64 = 1 << 16;

/// Reads a table of a snapshot. Its predicates are exact: no filter needs to stand above it.
#[derive(Debug, Clone)]
pub struct StoreScanExec {
    table: StoreTable,
    projection: Arc<[usize]>,
    predicates: Arc<[Predicate]>,
    limit: Option<usize>,
    /// Segments that the manifest's bounds leave, by index in the table.
    segments: Arc<[usize]>,
    properties: Arc<PlanProperties>,
    metrics: ExecutionPlanMetricsSet,
    pages: Pages,
    /// The order in which each partition gives its rows, and of how many runs that is made.
    order: Option<(Arc<KeyOrder>, usize)>,
    work: Arc<OnceLock<Work>>,
}

/// What the partitions of one run of a scan share.
#[derive(Debug)]
pub(crate) struct Work {
    /// Pages not taken yet, of all partitions or of each, and which of their blocks are read; `segment` is an index into
    /// `segments`.
    queues: Vec<(PageQueue, Range<usize>)>,
    /// Open segments with the predicates prepared for them.
    pub segments: Vec<ScanSegment>,
}

/// A segment of a scan.
#[derive(Debug)]
pub(crate) struct ScanSegment {
    pub file: Arc<SegmentFile>,
    pub filter: Filter,
    /// Its place among the segments of its table.
    pub index: usize,
    /// First row of each page, where rows are told by their places.
    pub starts: Vec<u64>,
}

/// A segment that is read, open.
#[derive(Debug)]
pub(crate) struct OpenedSegment {
    pub file: Arc<SegmentFile>,
    /// Rows that no scan gives.
    pub deleted: Option<Arc<DeletedRows>>,
    /// Its place among the segments of its table.
    pub index: usize,
}

impl Work {
    /// Where a partition takes its pages, and which blocks of them it reads.
    pub fn queue(&self, partition: usize) -> Option<&(PageQueue, Range<usize>)> {
        self.queues.get(partition).or(self.queues.first())
    }
}

/// A column of a scan's output.
#[derive(Debug, Clone, Copy)]
pub(crate) enum ScanColumn {
    /// One of the table, by its place and type.
    Stored(usize, DataType),
    /// The places of rows ([`crate::places`]).
    Place,
}

/// Which partition reads a page.
#[derive(Debug, Clone)]
enum Pages {
    /// The one that takes it first.
    Any,
    /// Those of each partition.
    Own(Arc<[Stretch]>),
}

impl StoreScanExec {
    /// A scan of `projection`'s columns of the rows that pass all `predicates`, and of at least
    /// `limit` of them, spread over at most `partitions` partitions.
    ///
    /// # Errors
    /// When a column is not of the table.
    pub fn new(
        table: StoreTable,
        projection: Vec<usize>,
        predicates: Vec<Predicate>,
        limit: Option<usize>,
        partitions: usize,
    ) -> Result<Self> {
        let schema = Arc::new(table.arrow().project(&projection)?);
        let entry = table.entry();
        let segments: Arc<[usize]> = (0..entry.segments.len())
            .filter(|s| segment_may_match(&entry.segments[*s], &predicates))
            .collect();
        let rows: u64 = segments.iter().map(|s| entry.segments[*s].rows).sum();
        // The first rows of a table come from one partition, in order.
        let in_order = limit.is_some() && predicates.is_empty();
        let useful = if in_order { 1 } else { rows.div_ceil(PAGE_ROWS).max(1) as usize };
        let properties = PlanProperties::new(
            EquivalenceProperties::new(schema),
            Partitioning::UnknownPartitioning(partitions.clamp(1, useful)),
            EmissionType::Incremental,
            Boundedness::Bounded,
        )
        .with_scheduling_type(SchedulingType::Cooperative);
        Ok(StoreScanExec {
            table,
            projection: projection.into(),
            predicates: predicates.into(),
            limit,
            segments,
            properties: Arc::new(properties),
            metrics: ExecutionPlanMetricsSet::new(),
            pages: Pages::Any,
            order: None,
            work: Arc::default(),
        })
    }

    /// The same in the order of the table's key, which it says to the planner, once [`Self::in_runs`] has put its segments so.
    /// NULL is said to be first in so many columns. `None` when there is no such order that can be said, or a number of rows is
    /// enough.
    ///
    /// # Errors
    /// When the planner cannot say it.
    pub fn in_key_order(&self, nulls_first: usize) -> Result<Option<Self>> {
        let order = KeyOrder::of(&self.table, &self.projection, &self.predicates);
        let Some(order) = order.filter(|_| self.limit.is_none()) else { return Ok(None) };
        let entries = &self.table.entry().segments;
        let of_scan: Vec<_> = self.segments.iter().map(|index| &entries[*index]).collect();
        if nulls_first > order.without_nulls(&of_scan) {
            return Ok(None);
        }
        let mut properties = self.properties.as_ref().clone();
        let said = order.properties(self.schema(), &self.projection, nulls_first)?;
        properties.set_eq_properties(said);
        Ok(Some(StoreScanExec {
            properties: Arc::new(properties),
            order: Some((Arc::new(order), 1)),
            work: Arc::default(),
            ..self.clone()
        }))
    }

    /// A scan in the order of the key with its segments in that order; of several runs each is a partition. `None` when there are
    /// too many.
    ///
    /// # Errors
    /// `Corrupt` when a segment is damaged.
    pub fn in_runs(&self) -> StoreResult<Option<Self>> {
        let Some((order, _)) = &self.order else { return Ok(None) };
        let Some(runs) = order.runs(&self.table, &self.segments)? else { return Ok(None) };
        let mut properties = self.properties.as_ref().clone();
        let mut pages = Pages::Any;
        if runs.len() > 1 {
            pages = Pages::Own(self.run_pages(&runs)?.into());
            properties.partitioning = Partitioning::UnknownPartitioning(runs.len());
        }
        Ok(Some(StoreScanExec {
            segments: runs.concat().into(),
            properties: Arc::new(properties),
            pages,
            order: Some((Arc::clone(order), runs.len().max(1))),
            work: Arc::default(),
            ..self.clone()
        }))
    }

    /// The pages of each run, among those of all one after the other.
    fn run_pages(&self, runs: &[Vec<usize>]) -> StoreResult<Vec<Stretch>> {
        let (entry, snapshot) = (self.table.entry(), self.table.snapshot());
        let mut start = 0;
        let mut pages = Vec::with_capacity(runs.len());
        for run in runs {
            let mut end = start;
            for index in run {
                end += snapshot.segment(entry, &entry.segments[*index])?.page_rows().len();
            }
            pages.push(Stretch { pages: start..end, blocks: 0..usize::MAX });
            start = end;
        }
        Ok(pages)
    }

    /// Whether the partitions of [`Self::by_pages`] are in the order of the key, one after the other.
    pub fn is_one_run(&self) -> bool {
        self.order.as_ref().is_some_and(|(_, runs)| *runs == 1)
    }

    /// The same with partitions that have pages of their own: one after the other they are the rows in the table's order.
    /// `None` when a number of rows is enough.
    ///
    /// # Errors
    /// `Corrupt` when a segment is damaged.
    pub fn by_pages(&self) -> StoreResult<Option<Self>> {
        let is_merged = self.order.is_some() && !self.is_one_run();
        if self.limit.is_some() || is_merged {
            return Ok(None);
        }
        let segments = self.open_segments()?;
        let pages = segments.iter().flat_map(|segment| segment.file.page_rows());
        let own = stretches(pages.copied(), self.projection.len());
        let mut properties = self.properties.as_ref().clone();
        properties.partitioning = Partitioning::UnknownPartitioning(own.len());
        Ok(Some(StoreScanExec {
            pages: Pages::Own(own.into()),
            properties: Arc::new(properties),
            work: Arc::default(),
            ..self.clone()
        }))
    }

    /// The same, of which nothing was read.
    pub(crate) fn fresh(&self) -> Self {
        StoreScanExec { work: Arc::default(), ..self.clone() }
    }

    /// The table that is read, in its version.
    pub fn table(&self) -> &StoreTable {
        &self.table
    }

    /// Columns of the table that are read, in the order of the output.
    pub fn projection(&self) -> &[usize] {
        &self.projection
    }

    /// Tests that each row passes.
    pub fn predicates(&self) -> &[Predicate] {
        &self.predicates
    }

    /// Number of rows that are enough; `None` for all.
    pub fn limit(&self) -> Option<usize> {
        self.limit
    }

    /// The segments that can hold rows, open.
    ///
    /// # Errors
    /// `Corrupt` when a segment is damaged.
    pub(crate) fn open_segments(&self) -> StoreResult<Vec<OpenedSegment>> {
        let (entry, snapshot) = (self.table.entry(), self.table.snapshot());
        let open = |index: &usize| {
            let segment = &entry.segments[*index];
            let file = snapshot.segment(entry, segment)?;
            let deleted = snapshot.deleted_rows(segment)?;
            Ok(OpenedSegment { file, deleted, index: *index })
        };
        self.segments.iter().map(open).collect()
    }

    /// How many segments the manifest's bounds rule out.
    pub fn segments_pruned(&self) -> usize {
        self.table.entry().segments.len() - self.segments.len()
    }

    fn work(&self) -> StoreResult<&Work> {
        if let Some(work) = self.work.get() {
            return Ok(work);
        }
        let segments = self
            .open_segments()?
            .into_iter()
            .map(|OpenedSegment { file, deleted, index }| {
                let filter = Filter::new(&file, deleted.as_ref(), &self.predicates)?;
                let starts = if self.tells_places() { page_starts(&file) } else { Vec::new() };
                Ok(ScanSegment { file, filter, index, starts })
            })
            .collect::<StoreResult<Vec<_>>>()?;
        let pages = segments.iter().map(|s| s.file.page_rows().len());
        let queues = match &self.pages {
            Pages::Any => vec![(PageQueue::new(pages), 0..usize::MAX)],
            Pages::Own(own) => {
                let all = PageQueue::new(pages);
                own.iter().map(|part| (all.part(part.pages.clone()), part.blocks.clone())).collect()
            }
        };
        Ok(self.work.get_or_init(|| Work { queues, segments }))
    }

    fn estimated_statistics(&self) -> Statistics {
        let statistics = self.table.statistics_of(&self.projection);
        let mut statistics = if self.predicates.is_empty() {
            statistics
        } else {
            let entry = self.table.entry();
            let share = self.predicates.iter().map(|p| selectivity(p, entry)).product();
            let rows = statistics.num_rows.with_estimated_selectivity(share);
            let mut inexact = statistics.to_inexact();
            inexact.num_rows = rows;
            inexact
        };
        if let (Some(limit), Some(rows)) = (self.limit, statistics.num_rows.get_value().copied())
            && limit < rows
        {
            statistics = statistics.to_inexact();
            statistics.num_rows = statistics.num_rows.map(|_| limit);
        }
        statistics
    }
}

/// First row of each page.
fn page_starts(segment: &SegmentFile) -> Vec<u64> {
    let rows = segment.page_rows().iter();
    rows.scan(0, |next, rows| {
        let start = *next;
        *next += u64::from(*rows);
        Some(start)
    })
    .collect()
}

fn segment_may_match(segment: &SegmentEntry, predicates: &[Predicate]) -> bool {
    predicates.iter().all(|p| match segment.columns.get(p.column) {
        Some(stats) => {
            may_match(&p.test, segment.rows, stats.nulls, stats.min.as_ref(), stats.max.as_ref())
        }
        None => true,
    })
}

impl DisplayAs for StoreScanExec {
    fn fmt_as(&self, format: DisplayFormatType, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let entry = self.table.entry();
        let columns = self.table.columns();
        let name = |c: &usize| columns.columns().get(*c).map_or("row", |c| c.name.as_str());
        let names: Vec<&str> = self.projection.iter().map(name).collect();
        let tests: Vec<String> = self.predicates.iter().map(|p| describe(p, columns)).collect();
        let separator = match format {
            DisplayFormatType::TreeRender => "\n",
            _ => ", ",
        };
        let mut parts =
            vec![format!("table={}", entry.name), format!("columns=[{}]", names.join(", "))];
        if !tests.is_empty() {
            parts.push(format!("predicates=[{}]", tests.join(" AND ")));
        }
        if let Some(key) = columns.key().filter(|key| key.is_unique()) {
            let bound = bound_columns(key.columns(), &self.predicates);
            if bound > 0 {
                let names: Vec<&str> = key.columns()[..bound].iter().map(name).collect();
                parts.push(format!("rows_by_key=[{}]", names.join(", ")));
            }
        }
        for index in columns.indexes() {
            // Several floats are equal that are stored as others.
            let is_float = |column: &usize| {
                matches!(columns.columns()[*column].data_type, DataType::Real | DataType::Double)
            };
            let asked = index.columns().iter().position(is_float).unwrap_or(index.columns().len());
            let bound = bound_by_index(&index.columns()[..asked], &self.predicates);
            if bound > 0 {
                let names: Vec<&str> = index.columns()[..bound].iter().map(name).collect();
                parts.push(format!("rows_by_index={}[{}]", index.name, names.join(", ")));
            }
        }
        if let Some((order, runs)) = &self.order {
            let names: Vec<&str> = order.columns().map(|column| name(&column)).collect();
            parts.push(format!("order=[{}]", names.join(", ")));
            if *runs > 1 {
                parts.push(format!("runs={runs}"));
            }
        }
        if let Some(limit) = self.limit {
            parts.push(format!("limit={limit}"));
        }
        parts.push(format!("segments={}/{}", self.segments.len(), entry.segments.len()));
        match format {
            DisplayFormatType::TreeRender => f.write_str(&parts.join(separator)),
            _ => write!(f, "StoreScanExec: {}", parts.join(separator)),
        }
    }
}

impl ExecutionPlan for StoreScanExec {
    fn name(&self) -> &'static str {
        "StoreScanExec"
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

    fn reset_state(self: Arc<Self>) -> Result<Arc<dyn ExecutionPlan>> {
        Ok(Arc::new(self.fresh()))
    }

    fn execute(
        &self,
        partition: usize,
        context: Arc<TaskContext>,
    ) -> Result<SendableRecordBatchStream> {
        self.work().map_err(to_datafusion)?;
        let batch_rows = context.session_config().batch_size();
        Ok(Box::pin(cooperative(ScanStream::new(
            Arc::clone(&self.work),
            self.schema(),
            self.projected_columns(),
            self.limit,
            batch_rows,
            (&self.metrics, partition),
        ))))
    }

    fn metrics(&self) -> Option<MetricsSet> {
        Some(self.metrics.clone_inner())
    }

    fn statistics_from_inputs(
        &self,
        _: &[Arc<Statistics>],
        args: &StatisticsArgs,
    ) -> Result<Arc<Statistics>> {
        // Which pages a partition gets is known only when they are read.
        Ok(Arc::new(match args.partition() {
            None => self.estimated_statistics(),
            Some(_) => Statistics::new_unknown(&self.schema()),
        }))
    }

    fn supports_limit_pushdown(&self) -> bool {
        false
    }

    fn fetch(&self) -> Option<usize> {
        None
    }
}

impl StoreScanExec {
    /// The projected columns.
    fn projected_columns(&self) -> Vec<ScanColumn> {
        let columns = self.table.columns().columns();
        let column = |index: &usize| match columns.get(*index) {
            Some(column) => ScanColumn::Stored(*index, column.data_type),
            None => ScanColumn::Place,
        };
        self.projection.iter().map(column).collect()
    }

    /// Whether the places of rows are asked for.
    fn tells_places(&self) -> bool {
        let columns = self.table.columns().len();
        self.projection.iter().any(|column| *column >= columns)
    }
}
