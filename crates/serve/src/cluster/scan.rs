//! The scan of a table of a cluster: a partition of the node's own rows each, and one for each other leaf.

use std::fmt;
use std::sync::Arc;

use coload_ddl::Schema;
use coload_scan::Predicate;
use coload_types::Result as StoreResult;
use datafusion::arrow::array::ArrayRef;
use datafusion::arrow::compute::cast;
use datafusion::arrow::datatypes::SchemaRef;
use datafusion::arrow::record_batch::{RecordBatch, RecordBatchOptions};
use datafusion::common::tree_node::TreeNodeRecursion;
use datafusion::error::Result;
use datafusion::execution::{SendableRecordBatchStream, TaskContext};
use datafusion::physical_expr::{EquivalenceProperties, PhysicalExpr};
use datafusion::physical_plan::execution_plan::{Boundedness, EmissionType, SchedulingType};
use datafusion::physical_plan::stream::RecordBatchStreamAdapter;
use datafusion::physical_plan::{
    ChildrenPropertiesMode, DisplayAs, DisplayFormatType, ExecutionPlan, Partitioning,
    PlanProperties, ReplaceChildrenOptions,
};

use futures::StreamExt;

use super::Cluster;
use super::groups::Aggregates;
use super::links::LeafRows;
use super::question::Question;
use crate::error::to_datafusion;
use crate::filter::describe;
use crate::places::places_on;
use crate::scan::StoreScanExec;
use crate::table::StoreTable;

/// Another leaf that is read.
#[derive(Debug, Clone)]
pub(crate) struct OfLeaf {
    /// Where it is reached.
    pub address: String,
    /// Shards of the table that it has.
    pub shards: usize,
    /// Its number among the leaves of the table.
    pub place: usize,
}

/// Reads a table of a cluster. Its tests are exact: no filter needs to stand above it.
#[derive(Debug, Clone)]
pub(crate) struct ClusterScanExec {
    cluster: Cluster,
    /// For its columns; its rows are those of `own`.
    table: StoreTable,
    projection: Vec<usize>,
    own: Option<Arc<StoreScanExec>>,
    /// The number of this node among the leaves of the table, if it is read.
    own_place: usize,
    others: Arc<[OfLeaf]>,
    question: Question,
    schema: SchemaRef,
    properties: Arc<PlanProperties>,
}

impl ClusterScanExec {
    pub fn new(
        cluster: Cluster,
        (table, own): (StoreTable, Option<(StoreScanExec, usize)>),
        others: Vec<OfLeaf>,
        (question, projection): (Question, Vec<usize>),
        schema: SchemaRef,
    ) -> Self {
        let own_place = own.as_ref().map_or(0, |(_, place)| *place);
        let own = own.map(|(scan, _)| scan);
        let count = own.as_ref().map_or(0, partitions) + others.len();
        let properties = PlanProperties::new(
            EquivalenceProperties::new(Arc::clone(&schema)),
            // No leaf may have rows: there is a partition of none then.
            Partitioning::UnknownPartitioning(count.max(1)),
            EmissionType::Incremental,
            Boundedness::Bounded,
        )
        .with_scheduling_type(SchedulingType::Cooperative);
        ClusterScanExec {
            cluster,
            table,
            projection,
            own: own.map(Arc::new),
            own_place,
            others: others.into(),
            question,
            schema,
            properties: Arc::new(properties),
        }
    }

    /// Columns of the table.
    pub fn columns(&self) -> &Schema {
        self.table.columns()
    }

    /// Which of them are read, in the order of the output.
    pub fn projection(&self) -> &[usize] {
        &self.projection
    }

    /// Tests that each row passes.
    pub fn tests(&self) -> &[Predicate] {
        &self.question.tests
    }

    /// Whether a number of rows is enough.
    pub fn is_limited(&self) -> bool {
        self.question.limit.is_some()
    }

    /// The scan of the node's own rows, if it has some.
    pub fn own(&self) -> Option<&StoreScanExec> {
        self.own.as_deref()
    }

    /// Number of leaves that are read.
    pub fn leaves(&self) -> usize {
        usize::from(self.own.is_some()) + self.others.len()
    }

    /// Where the places of rows are in the output, if they are there.
    fn place_column(&self) -> Option<usize> {
        let place = self.columns().len();
        self.projection.iter().position(|column| *column == place)
    }

    /// Asks the other leaves for groups.
    pub fn ask_groups(&self, aggregates: &Aggregates) -> Vec<GroupsOfLeaf> {
        let aggregates = Some(aggregates.clone());
        let question = Question { aggregates, ..self.question.clone() };
        let handle = self.cluster.handle();
        let ask = |leaf: &OfLeaf| {
            let rows = self.cluster.inner.links.ask(&handle, &leaf.address, question.clone());
            GroupsOfLeaf { rows, leaf: leaf.clone(), table: question.name.clone() }
        };
        self.others.iter().map(ask).collect()
    }
}

/// The groups of a leaf that was asked.
pub(crate) struct GroupsOfLeaf {
    rows: LeafRows,
    leaf: OfLeaf,
    table: String,
}

impl GroupsOfLeaf {
    /// The next of them, a binary value each; `None` at the end.
    pub async fn next(&mut self) -> Option<StoreResult<RecordBatch>> {
        let next = self.rows.next().await?;
        Some(next.map_err(|error| without_leaf(error, &self.leaf, &self.table)))
    }
}

fn partitions(scan: &StoreScanExec) -> usize {
    scan.properties().output_partitioning().partition_count()
}

impl DisplayAs for ClusterScanExec {
    fn fmt_as(&self, _: DisplayFormatType, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(
            f,
            "ClusterScanExec: table={}, version={}",
            self.question.name, self.question.version
        )?;
        let own = usize::from(self.own.is_some());
        write!(f, ", leaves={}", own + self.others.len())?;
        let tests = self.question.tests.iter().map(|test| describe(test, self.columns()));
        let tests = tests.collect::<Vec<_>>();
        if !tests.is_empty() {
            write!(f, ", tests=[{}]", tests.join(" AND "))?;
        }
        match self.question.limit {
            Some(limit) => write!(f, ", limit={limit}"),
            None => Ok(()),
        }
    }
}

impl ExecutionPlan for ClusterScanExec {
    fn name(&self) -> &'static str {
        "ClusterScanExec"
    }

    fn properties(&self) -> &Arc<PlanProperties> {
        &self.properties
    }

    fn schema(&self) -> SchemaRef {
        Arc::clone(&self.schema)
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
        let own = self.own.as_ref().map(|own| Arc::new(own.as_ref().fresh()));
        Ok(Arc::new(ClusterScanExec { own, ..self.as_ref().clone() }))
    }

    fn execute(
        &self,
        partition: usize,
        context: Arc<TaskContext>,
    ) -> Result<SendableRecordBatchStream> {
        let own = self.own.as_deref().map_or(0, partitions);
        if let Some(scan) = self.own.as_ref().filter(|_| partition < own) {
            let rows = scan.execute(partition, context)?;
            let Some(column) = self.place_column() else { return Ok(rows) };
            let leaf = self.own_place;
            let placed = rows.map(move |batch| with_leaf(batch?, column, leaf));
            let schema = Arc::clone(&self.schema);
            return Ok(Box::pin(RecordBatchStreamAdapter::new(schema, placed)));
        }
        let schema = Arc::clone(&self.schema);
        let column = self.place_column();
        let Some(leaf) = self.others.get(partition - own) else {
            let none = futures::stream::empty();
            return Ok(Box::pin(RecordBatchStreamAdapter::new(schema, none)));
        };
        let links = &self.cluster.inner.links;
        let rows = links.ask(&self.cluster.handle(), &leaf.address, self.question.clone());
        let of = (rows, leaf.clone(), self.question.name.clone(), Arc::clone(&schema));
        let batches =
            futures::stream::try_unfold(of, move |(mut rows, leaf, table, schema)| async move {
                match rows.next().await {
                    None => Ok(None),
                    Some(Ok(batch)) => {
                        let batch = as_wanted(batch, &schema)?;
                        let batch = match column {
                            None => batch,
                            Some(column) => with_leaf(batch, column, leaf.place)?,
                        };
                        Ok(Some((batch, (rows, leaf, table, schema))))
                    }
                    Some(Err(error)) => Err(to_datafusion(without_leaf(error, &leaf, &table))),
                }
            });
        Ok(Box::pin(RecordBatchStreamAdapter::new(schema, batches)))
    }
}

/// Rows of a leaf with places that tell it.
fn with_leaf(batch: RecordBatch, column: usize, leaf: usize) -> Result<RecordBatch> {
    let mut columns = batch.columns().to_vec();
    columns[column] = places_on(leaf, &columns[column]).map_err(to_datafusion)?;
    Ok(RecordBatch::try_new(batch.schema(), columns)?)
}

/// An error that says which shards are not there.
fn without_leaf(error: coload_types::Error, leaf: &OfLeaf, table: &str) -> coload_types::Error {
    use coload_types::Error;
    match error {
        Error::Unavailable(text) => Error::Unavailable(format!(
            "{text} ({} shards of table {table} are there)",
            leaf.shards
        )),
        other => other,
    }
}

/// Rows of a leaf in the types of the plan: texts come in another form over the network.
fn as_wanted(batch: RecordBatch, schema: &SchemaRef) -> Result<RecordBatch> {
    let rows = batch.num_rows();
    if schema.fields().is_empty() {
        let options = RecordBatchOptions::new().with_row_count(Some(rows));
        return Ok(RecordBatch::try_new_with_options(Arc::clone(schema), Vec::new(), &options)?);
    }
    let pairs = batch.columns().iter().zip(schema.fields());
    let columns: Vec<ArrayRef> = pairs
        .map(|(column, field)| match column.data_type() == field.data_type() {
            true => Ok(Arc::clone(column)),
            false => cast(column, field.data_type()),
        })
        .collect::<std::result::Result<_, _>>()?;
    // What a leaf sends is checked here: columns, their number, and NULL where there must be none.
    Ok(RecordBatch::try_new(Arc::clone(schema), columns)?)
}
