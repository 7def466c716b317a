//! A table of a cluster, as DataFusion sees it.

use std::collections::BTreeSet;
use std::sync::Arc;

use async_trait::async_trait;
use coload_cluster::{ShardBy, Table, hash_row, shard_of};
use coload_ddl::Schema;
use coload_scan::{Predicate, Test};
use coload_types::Value;
use datafusion::arrow::datatypes::SchemaRef;
use datafusion::catalog::{Session, TableProvider};
use datafusion::error::Result;
use datafusion::logical_expr::{Expr, TableProviderFilterPushDown, TableType};
use datafusion::physical_plan::ExecutionPlan;

use super::Reading;
use super::question::{Question, can_be_sent};
use super::scan::{ClusterScanExec, OfLeaf};
use crate::error::to_datafusion;
use crate::filter::{simplify, tests_of};
use crate::scan::StoreScanExec;
use crate::table::StoreTable;

/// Most rows of shard columns that are looked for one by one; more are read from all leaves.
const LOOKED_UP_MAX: usize = 1_000;

/// A table of a cluster at one version.
#[derive(Debug, Clone)]
pub(crate) struct ClusterTable {
    /// The node's own rows.
    own: StoreTable,
    reading: Reading,
    table: Table,
    /// Whether it has a column more, of the places of rows.
    has_places: bool,
}

impl ClusterTable {
    pub fn new(own: StoreTable, reading: &Reading, table: &Table) -> Self {
        ClusterTable { own, reading: reading.clone(), table: table.clone(), has_places: false }
    }

    /// Columns of the table, in its order.
    pub fn columns(&self) -> &Schema {
        self.own.columns()
    }

    /// Id of the table in the node's own store.
    pub fn own_id(&self) -> u64 {
        self.own.entry().id
    }

    /// The same with a column after all others that tells the places of rows ([`crate::places`]). Of a table that is everywhere it
    /// has the rows of all leaves.
    pub fn with_places(&self) -> Self {
        ClusterTable { own: self.own.with_places(), has_places: true, ..self.clone() }
    }

    /// The places of leaves that can have rows which pass the tests.
    fn leaves_of(&self, tests: &[Predicate]) -> Vec<usize> {
        let all = || (0..self.table.leaves.len()).collect();
        let columns = match &self.table.shard_by {
            ShardBy::InTurn => return all(),
            // Its rows stand elsewhere on each leaf.
            ShardBy::Everywhere if self.has_places => return all(),
            // One has all rows: this node if it is a leaf, else one that other nodes do not all take.
            ShardBy::Everywhere => {
                let member = self.reading.cluster.member().id();
                let other = member.as_u128() % self.table.leaves.len().max(1) as u128;
                return vec![self.table.place_of(member).unwrap_or(other as usize)];
            }
            ShardBy::Columns(columns) => columns,
        };
        let mut rows: Vec<Vec<&Value>> = vec![Vec::new()];
        for column in columns {
            let values = tests.iter().find_map(|test| match &test.test {
                Test::In(values) if test.column == *column => Some(values),
                _ => None,
            });
            let Some(values) = values else { return all() };
            if rows.len().saturating_mul(values.len()) > LOOKED_UP_MAX {
                return all();
            }
            let mut longer = Vec::with_capacity(rows.len() * values.len());
            for row in &rows {
                longer.extend(values.iter().map(|value| [&row[..], &[value]].concat()));
            }
            rows = longer;
        }
        let of = self.columns().columns();
        let leaf = |row: Vec<&Value>| {
            let typed = row
                .into_iter()
                .zip(columns)
                .map(|(value, column)| (Some(value), of[*column].data_type));
            let shard = shard_of(hash_row(typed), self.table.shard_count());
            usize::from(self.table.shards[shard as usize])
        };
        rows.into_iter().map(leaf).collect::<BTreeSet<_>>().into_iter().collect()
    }
}

#[async_trait]
impl TableProvider for ClusterTable {
    fn schema(&self) -> SchemaRef {
        TableProvider::schema(&self.own)
    }

    fn table_type(&self) -> TableType {
        TableType::Base
    }

    fn get_column_default(&self, column: &str) -> Option<&Expr> {
        self.own.get_column_default(column)
    }

    fn supports_filters_pushdown(
        &self,
        filters: &[&Expr],
    ) -> Result<Vec<TableProviderFilterPushDown>> {
        let of = |filter: &&Expr| match tests_of(filter, self.columns()) {
            Some(tests) if can_be_sent(&tests) => TableProviderFilterPushDown::Exact,
            _ => TableProviderFilterPushDown::Unsupported,
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
        let mut tests = Vec::new();
        for filter in filters {
            let more = tests_of(filter, self.columns()).filter(|tests| can_be_sent(tests));
            tests.extend(more.ok_or_else(|| {
                to_datafusion(coload_types::Error::Refused(format!(
                    "internal error: filter {filter} was pushed to leaves that cannot test it"
                )))
            })?);
        }
        let tests = simplify(tests);
        let projection = match projection {
            Some(columns) => columns.clone(),
            None => (0..self.own.arrow().fields().len()).collect(),
        };
        let (map, here) = (&self.reading.map, self.reading.cluster.inner.member.id());
        let (mut own, mut others) = (None, Vec::new());
        for place in self.leaves_of(&tests) {
            let leaf = self.table.leaves[place];
            if leaf == here {
                let partitions = state.config().target_partitions();
                let (table, columns) = (self.own.clone(), projection.clone());
                let scan = StoreScanExec::new(table, columns, tests.clone(), limit, partitions)?;
                own = Some((scan, place));
                continue;
            }
            let node = map.node(leaf).ok_or_else(|| {
                to_datafusion(coload_types::Error::Corrupt(format!(
                    "leaf {leaf} is not in the map"
                )))
            })?;
            let shards =
                self.table.shards.iter().filter(|leaf| usize::from(**leaf) == place).count();
            others.push(OfLeaf { address: node.address.clone(), shards, place });
        }
        let question = Question {
            version: map.version,
            table: self.table.id,
            name: self.table.name.clone(),
            limit: limit.map(|limit| limit as u64),
            // A leaf gives at least one column; who counts rows needs none of it.
            columns: if projection.is_empty() { vec![0] } else { projection.clone() },
            tests,
            aggregates: None,
            shards: None,
        };
        let schema = Arc::new(self.own.arrow().project(&projection)?);
        let cluster = self.reading.cluster.clone();
        Ok(Arc::new(ClusterScanExec::new(
            cluster,
            (self.own.clone(), own),
            others,
            (question, projection),
            schema,
        )))
    }
}
