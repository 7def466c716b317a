//! Scans in the order of a table's key, so that what asks for that order sorts nothing.
//!
//! ```text
//!   segments by their first keys   [1 .. 7] [3 .. 5] [7 .. 9] [8 .. 20]
//!   runs                           [1 .. 7] [7 .. 9]   and   [3 .. 5] [8 .. 20]
//!   one run                        partitions take its pages in turn, each in order
//!   several                        a partition each; what stands above merges them
//! ```
//!
//! Rows of a segment are in the order of the key: of values, text by bytes, NULL last, as the engine has them. Not of floats, of
//! which the engine has -0 before 0: the order ends before the first of these. Deleted rows are left out, which changes no order.
//!
//! Only where a sort stands: a scan that nobody wants sorted gives its pages to whichever partition is free.

use std::cmp::Ordering;
use std::sync::Arc;

use coload_ddl::KEY_COLUMNS_MAX;
use coload_scan::{Predicate, equal_columns};
use coload_store::SegmentEntry;
use coload_types::{DataType, Result as StoreResult, Value};
use datafusion::arrow::compute::SortOptions;
use datafusion::arrow::datatypes::SchemaRef;
use datafusion::error::Result;
use datafusion::physical_expr::expressions::Column;
use datafusion::physical_expr::{
    ConstExpr, EquivalenceProperties, LexOrdering, Partitioning, PhysicalExpr, PhysicalSortExpr,
};
use datafusion::physical_plan::coalesce_partitions::CoalescePartitionsExec;
use datafusion::physical_plan::execution_plan::{ChildrenPropertiesMode, ReplaceChildrenOptions};
use datafusion::physical_plan::filter::FilterExec;
use datafusion::physical_plan::limit::LocalLimitExec;
use datafusion::physical_plan::projection::ProjectionExec;
use datafusion::physical_plan::repartition::RepartitionExec;
use datafusion::physical_plan::sorts::sort::SortExec;
use datafusion::physical_plan::sorts::sort_preserving_merge::SortPreservingMergeExec;
use datafusion::physical_plan::{ExecutionPlan, ExecutionPlanProperties};

use crate::error::to_datafusion;
use crate::physical_rules::Replaced;
use crate::scan::StoreScanExec;
use crate::table::StoreTable;

/// Runs that are merged at most: each holds a page. More of them are sorted, as if they had no order.
const RUNS_MAX: usize = 32;

/// What a table's key says of the rows of a scan.
#[derive(Debug, Clone)]
pub(crate) struct KeyOrder {
    /// Columns of the table by which rows are ordered, from the first of the key on.
    columns: Vec<usize>,
    /// Those of them of which all rows have one value.
    equal: Vec<usize>,
}

impl KeyOrder {
    /// Of a table with a key; `None` when the rows have no order that a plan could use.
    pub fn of(table: &StoreTable, projection: &[usize], predicates: &[Predicate]) -> Option<Self> {
        let schema = table.columns();
        let equal = equal_columns(predicates);
        let is_float = |column: usize| {
            matches!(schema.columns()[column].data_type, DataType::Real | DataType::Double)
        };
        let is_seen = |column: &&usize| {
            !is_float(**column) && (projection.contains(column) || equal.contains(column))
        };
        let columns: Vec<usize> =
            schema.key()?.columns().iter().take_while(is_seen).copied().collect();
        let equal: Vec<usize> = columns.iter().filter(|c| equal.contains(c)).copied().collect();
        (columns.len() > equal.len()).then_some(KeyOrder { columns, equal })
    }

    /// Columns of the table that say the order.
    pub fn columns(&self) -> impl Iterator<Item = usize> {
        self.columns.iter().copied().filter(|column| !self.equal.contains(column))
    }

    /// Columns before the first in which these segments have NULL: there it is first as well as last.
    pub fn without_nulls(&self, segments: &[&SegmentEntry]) -> usize {
        let has_nulls = |column: usize| {
            segments.iter().any(|s| s.columns.get(column).is_none_or(|stats| stats.nulls > 0))
        };
        self.columns().take_while(|column| !has_nulls(*column)).count()
    }

    /// The same as the engine has it, for the columns of a scan. Of so many columns NULL is said to be first, as they have none: of
    /// several ways to say an order the engine looks at one.
    pub fn properties(
        &self,
        schema: SchemaRef,
        projection: &[usize],
        nulls_first: usize,
    ) -> Result<EquivalenceProperties> {
        let place = |column: usize| projection.iter().position(|known| *known == column);
        let expr = |place: usize| Arc::new(Column::new(schema.field(place).name(), place));
        let sort = |(index, place): (usize, usize)| {
            let options = SortOptions { descending: false, nulls_first: index < nulls_first };
            PhysicalSortExpr::new(expr(place), options)
        };
        let ordering: Vec<_> = self.columns().filter_map(place).enumerate().map(sort).collect();
        let mut properties =
            EquivalenceProperties::new_with_orderings(Arc::clone(&schema), [ordering]);
        let equal = self.equal.iter().copied().filter_map(place);
        properties.add_constants(equal.map(|place| ConstExpr::from(expr(place) as Arc<_>)))?;
        Ok(properties)
    }

    /// Segments in runs: those of a run are in order one after the other. `None` when there are too many runs.
    ///
    /// # Errors
    /// `Corrupt` when a segment is damaged.
    pub fn runs(
        &self,
        table: &StoreTable,
        segments: &[usize],
    ) -> StoreResult<Option<Vec<Vec<usize>>>> {
        if segments.len() <= 1 {
            return Ok(Some(segments.iter().map(|index| vec![*index]).collect()));
        }
        let (entry, snapshot) = (table.entry(), table.snapshot());
        let mut ends = Vec::with_capacity(segments.len());
        for index in segments {
            let file = snapshot.segment(entry, &entry.segments[*index])?;
            if let Some(of_segment) = file.end_values(&self.columns)? {
                ends.push((of_segment, *index));
            }
        }
        ends.sort_by(|([a, _], _), ([b, _], _)| compare(a, b));
        let mut runs: Vec<(Vec<Option<Value>>, Vec<usize>)> = Vec::new();
        for ([first, last], index) in ends {
            match runs.iter().position(|(end, _)| compare(end, &first).is_le()) {
                Some(place) => {
                    let (end, run) = &mut runs[place];
                    run.push(index);
                    *end = last;
                }
                None if runs.len() == RUNS_MAX => return Ok(None),
                None => runs.push((last, vec![index])),
            }
        }
        Ok(Some(runs.into_iter().map(|(_, run)| run).collect()))
    }
}

/// The order of two rows, NULL last.
fn compare(a: &[Option<Value>], b: &[Option<Value>]) -> Ordering {
    fn key(value: &Option<Value>) -> (bool, Option<&Value>) {
        (value.is_none(), value.as_ref())
    }
    a.iter().map(key).cmp(b.iter().map(key))
}

/// What takes the place of a sort whose rows a scan can give in order.
pub(crate) fn without_sort(node: &Arc<dyn ExecutionPlan>) -> Result<Replaced> {
    let Some(sort) = node.downcast_ref::<SortExec>() else { return Ok(None) };
    let is_sorted = |plan: &Arc<dyn ExecutionPlan>| {
        plan.equivalence_properties().ordering_satisfy(sort.expr().clone())
    };
    if is_sorted(sort.input())? {
        return Ok(Some(in_place_of(sort, Arc::clone(sort.input()))));
    }
    if !sort.expr().iter().all(|by| is_column_of_scan(&by.expr, sort.input())) {
        return Ok(None);
    }
    // As many as a key has columns, and none.
    for nulls_first in 0..=KEY_COLUMNS_MAX {
        let claim = |scan: &StoreScanExec| scan.in_key_order(nulls_first);
        let Some(claimed) = with_scan(sort.input(), &claim)? else { return Ok(None) };
        if !is_sorted(&claimed)? {
            continue;
        }
        // What the order is made of is found out only where it is wanted.
        let in_runs = |scan: &StoreScanExec| scan.in_runs().map_err(to_datafusion);
        let made = with_scan(&claimed, &in_runs)?;
        return Ok(made.map(|input| in_place_of(sort, input)));
    }
    Ok(None)
}

/// Whether a column of a plan is one of the scan below, as it is stored. Of what is computed the engine may say an order that it does
/// not have: it takes each cast of a time to a time for one that keeps the order.
fn is_column_of_scan(expr: &Arc<dyn PhysicalExpr>, plan: &Arc<dyn ExecutionPlan>) -> bool {
    let Some(column) = expr.downcast_ref::<Column>() else { return false };
    if let Some(projection) = plan.downcast_ref::<ProjectionExec>() {
        let below = projection.expr().get(column.index());
        return below.is_some_and(|below| is_column_of_scan(&below.expr, projection.input()));
    }
    if let Some(filter) = plan.downcast_ref::<FilterExec>()
        && let Some(kept) = filter.projection()
    {
        let Some(index) = kept.get(column.index()) else { return false };
        let below: Arc<dyn PhysicalExpr> = Arc::new(Column::new(column.name(), *index));
        return is_column_of_scan(&below, filter.input());
    }
    // Others have the columns of their input.
    match plan.children()[..] {
        [input] => is_column_of_scan(expr, input),
        _ => plan.downcast_ref::<StoreScanExec>().is_some(),
    }
}

/// Rows that are sorted in each partition, with the limit and in the partitions of a sort.
fn in_place_of(sort: &SortExec, input: Arc<dyn ExecutionPlan>) -> Arc<dyn ExecutionPlan> {
    let is_one = input.output_partitioning().partition_count() == 1;
    if !sort.preserve_partitioning() && !is_one {
        let expr: LexOrdering = sort.expr().clone();
        return Arc::new(SortPreservingMergeExec::new(expr, input).with_fetch(sort.fetch()));
    }
    match sort.fetch() {
        Some(rows) => Arc::new(LocalLimitExec::new(input, rows)),
        None => input,
    }
}

/// What a scan becomes; `None` where it stays.
type OfScan<'a> = dyn Fn(&StoreScanExec) -> Result<Option<StoreScanExec>> + 'a;

/// The plan with another scan, where only nodes that keep the order of rows stand above.
fn with_scan(plan: &Arc<dyn ExecutionPlan>, change: &OfScan<'_>) -> Result<Replaced> {
    if let Some(scan) = plan.downcast_ref::<StoreScanExec>() {
        return Ok(change(scan)?.map(|scan| Arc::new(scan) as Arc<dyn ExecutionPlan>));
    }
    let [input] = plan.children()[..] else { return Ok(None) };
    let repartition = plan.downcast_ref::<RepartitionExec>();
    let only_spreads = plan.downcast_ref::<CoalescePartitionsExec>().is_some()
        || repartition.is_some_and(|node| !matches!(node.partitioning(), Partitioning::Hash(..)));
    let keeps = plan.downcast_ref::<ProjectionExec>().is_some()
        || plan.downcast_ref::<FilterExec>().is_some()
        || repartition.is_some()
        || only_spreads;
    // A limit is one of all rows.
    if !keeps || plan.fetch().is_some() {
        return Ok(None);
    }
    let Some(input) = with_scan(input, change)? else { return Ok(None) };
    if only_spreads {
        return Ok(Some(input));
    }
    if let Some(repartition) = repartition {
        let spread = RepartitionExec::try_new(input, repartition.partitioning().clone())?;
        return Ok(Some(Arc::new(spread.with_preserve_order())));
    }
    let options = ReplaceChildrenOptions::new(ChildrenPropertiesMode::Recompute);
    Arc::clone(plan).replace_children(vec![input], options).map(Some)
}
