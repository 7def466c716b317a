//! A table of a snapshot, as DataFusion sees it.

use std::sync::Arc;

use async_trait::async_trait;
use coload_ddl::Schema;
use coload_store::{Snapshot, TableEntry};
use coload_types::{DataType, Value, f32_from_ordinal, f64_from_ordinal};
use datafusion::arrow::datatypes::SchemaRef;
use datafusion::catalog::{Session, TableProvider};
use datafusion::common::stats::Precision;
use datafusion::common::{ColumnStatistics, Statistics};
use datafusion::error::Result;
use datafusion::logical_expr::{Expr, TableProviderFilterPushDown, TableType};
use datafusion::physical_plan::ExecutionPlan;
use datafusion::scalar::ScalarValue;

use crate::error::to_datafusion;
use crate::filter::{simplify, tests_of};
use crate::lists::Lists;
use crate::places::with_place_column;
use crate::scan::StoreScanExec;
use crate::types::{UTC, arrow_type};

/// One table of one version.
#[derive(Debug, Clone)]
pub struct StoreTable {
    snapshot: Snapshot,
    index: usize,
    arrow: SchemaRef,
    defaults: Arc<[Option<Expr>]>,
}

impl StoreTable {
    /// The table at `index` of a snapshot's tables, with its Arrow schema.
    pub(crate) fn new(snapshot: Snapshot, index: usize, arrow: SchemaRef) -> Self {
        let defaults = snapshot.tables()[index]
            .schema
            .columns()
            .iter()
            .map(|c| Some(Expr::Literal(scalar(c.default.as_ref()?, c.data_type), None)))
            .collect();
        StoreTable { snapshot, index, arrow, defaults }
    }

    /// The snapshot that it is of.
    pub fn snapshot(&self) -> &Snapshot {
        &self.snapshot
    }

    /// What the manifest says of it.
    pub fn entry(&self) -> &TableEntry {
        &self.snapshot.tables()[self.index]
    }

    /// Columns of the table, in its order.
    pub fn columns(&self) -> &Schema {
        &self.entry().schema
    }

    /// Its columns as Arrow fields, under the names that the planner knows.
    pub fn arrow(&self) -> &SchemaRef {
        &self.arrow
    }

    /// The same with a column after all others that tells the places of rows ([`crate::places`]).
    pub(crate) fn with_places(&self) -> Self {
        StoreTable { arrow: with_place_column(&self.arrow), ..self.clone() }
    }

    /// Counts and bounds of these columns, exact except for bounds of text and of tables with deleted rows.
    pub(crate) fn statistics_of(&self, columns: &[usize]) -> Statistics {
        let entry = self.entry();
        let column_statistics = columns.iter().map(|c| column_statistics(entry, *c)).collect();
        Statistics {
            num_rows: Precision::Exact(entry.rows() as usize),
            total_byte_size: Precision::Absent,
            column_statistics,
        }
    }
}

fn column_statistics(entry: &TableEntry, column: usize) -> ColumnStatistics {
    let mut statistics = ColumnStatistics::new_unknown();
    let Some(data_type) = entry.schema.columns().get(column).map(|c| c.data_type) else {
        return statistics;
    };
    let stats = || entry.segments.iter().filter_map(|s| s.columns.get(column));
    statistics.null_count = Precision::Exact(stats().map(|s| s.nulls as usize).sum());
    // Bounds of text may be cut; a comparison of NaN has its own rules.
    let has_bounds = !matches!(
        data_type,
        DataType::Char(_)
            | DataType::Varchar(_)
            | DataType::Binary(_)
            | DataType::List(_)
            | DataType::Uuid
            | DataType::Real
            | DataType::Double
    );
    if has_bounds {
        let bound = |value: Option<&Value>| match value {
            Some(value) => Precision::Exact(scalar(value, data_type)),
            None => Precision::Absent,
        };
        statistics.min_value = bound(stats().filter_map(|s| s.min.as_ref()).min());
        statistics.max_value = bound(stats().filter_map(|s| s.max.as_ref()).max());
    }
    if entry.deleted_rows() > 0 {
        // They are of deleted rows too.
        return statistics.to_inexact();
    }
    statistics
}

/// A stored value as one of DataFusion.
pub(crate) fn scalar(value: &Value, data_type: DataType) -> ScalarValue {
    let text = |bytes: &[u8]| String::from_utf8_lossy(bytes).into_owned();
    match (data_type, value) {
        (DataType::Boolean, Value::Int(v)) => ScalarValue::Boolean(Some(*v != 0)),
        (DataType::SmallInt, Value::Int(v)) => ScalarValue::Int16(Some(*v as i16)),
        (DataType::Integer, Value::Int(v)) => ScalarValue::Int32(Some(*v as i32)),
        (DataType::BigInt, Value::Int(v)) => ScalarValue::Int64(Some(*v)),
        (DataType::Decimal { precision, scale }, Value::Int(v)) => {
            ScalarValue::Decimal128(Some((*v).into()), precision, scale as i8)
        }
        (DataType::Decimal { precision, scale }, Value::Wide(v)) => {
            ScalarValue::Decimal128(Some(*v), precision, scale as i8)
        }
        (DataType::Real, Value::Int(v)) => ScalarValue::Float32(Some(f32_from_ordinal(*v))),
        (DataType::Double, Value::Int(v)) => ScalarValue::Float64(Some(f64_from_ordinal(*v))),
        (DataType::Date, Value::Int(v)) => ScalarValue::Date32(Some(*v as i32)),
        (DataType::Time, Value::Int(v)) => ScalarValue::Time64Microsecond(Some(*v)),
        (DataType::Timestamp, Value::Int(v)) => ScalarValue::TimestampMicrosecond(Some(*v), None),
        (DataType::TimestampTz, Value::Int(v)) => {
            ScalarValue::TimestampMicrosecond(Some(*v), Some(UTC.into()))
        }
        (DataType::Char(_) | DataType::Varchar(_), Value::Bytes(v)) => {
            ScalarValue::Utf8View(Some(text(v)))
        }
        (DataType::Binary(_), Value::Bytes(v)) => ScalarValue::BinaryView(Some(v.to_vec())),
        (DataType::Uuid, value) => ScalarValue::Utf8View(Some(value.display(data_type))),
        (DataType::List(element), Value::Bytes(v)) => {
            let mut lists = Lists::new(element);
            let array = lists.push(Some(v)).and_then(|()| lists.into_array());
            let scalar = array.ok().and_then(|array| ScalarValue::try_from_array(&array, 0).ok());
            scalar.unwrap_or(ScalarValue::Null)
        }
        // A default or a bound of another shape is refused before it gets here.
        (other, _) => ScalarValue::try_from(&arrow_type(other)).unwrap_or(ScalarValue::Null),
    }
}

#[async_trait]
impl TableProvider for StoreTable {
    fn schema(&self) -> SchemaRef {
        Arc::clone(&self.arrow)
    }

    fn table_type(&self) -> TableType {
        TableType::Base
    }

    fn get_column_default(&self, column: &str) -> Option<&Expr> {
        let index = self.columns().position(column)?;
        self.defaults[index].as_ref()
    }

    fn supports_filters_pushdown(
        &self,
        filters: &[&Expr],
    ) -> Result<Vec<TableProviderFilterPushDown>> {
        let of = |filter: &&Expr| match tests_of(filter, self.columns()) {
            Some(_) => TableProviderFilterPushDown::Exact,
            None => TableProviderFilterPushDown::Unsupported,
        };
        Ok(filters.iter().map(of).collect())
    }

    async fn scan(
        &self,
        state: &dyn Session,
        projection: Option<&Vec<usize>>,
        filters: &[Expr],
        limit: Option<usize>,
    ) -> Result<Arc<dyn ExecutionPlan>> {
        let mut predicates = Vec::new();
        for filter in filters {
            let tests = tests_of(filter, self.columns()).ok_or_else(|| {
                to_datafusion(coload_types::Error::Refused(format!(
                    "internal error: filter {filter} was pushed into a scan that cannot test it"
                )))
            })?;
            predicates.extend(tests);
        }
        let projection = match projection {
            Some(columns) => columns.clone(),
            None => (0..self.columns().len()).collect(),
        };
        let partitions = state.config().target_partitions();
        let scan =
            StoreScanExec::new(self.clone(), projection, simplify(predicates), limit, partitions)?;
        Ok(Arc::new(scan))
    }

    fn statistics(&self) -> Option<Statistics> {
        let all: Vec<usize> = (0..self.columns().len()).collect();
        Some(self.statistics_of(&all))
    }
}
