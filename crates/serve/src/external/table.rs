//! Inputs as a table of one statement.

use std::sync::Arc;
use std::sync::atomic::Ordering;

use async_trait::async_trait;
use coload_ddl::Schema;
use coload_load::{LoadRequest, WiderColumns};
use datafusion::arrow::datatypes::SchemaRef;
use datafusion::catalog::{Session, TableProvider};
use datafusion::error::Result;
use datafusion::logical_expr::{Expr, TableType};
use datafusion::physical_plan::ExecutionPlan;

use super::scan::ExternalScanExec;
use super::{Experience, Learned};
use crate::names::folded_schema;

/// Inputs that a statement reads.
#[derive(Debug, Clone)]
pub(crate) struct ExternalTable {
    name: String,
    request: LoadRequest,
    arrow: SchemaRef,
    learned: Arc<Learned>,
    experience: Arc<Experience>,
}

impl ExternalTable {
    pub fn new(
        name: String,
        request: LoadRequest,
        learned: Arc<Learned>,
        experience: Arc<Experience>,
    ) -> Self {
        let arrow = folded_schema(&request.schema);
        ExternalTable { name, request, arrow, learned, experience }
    }

    /// The name by which the planner knows it: as a statement writes it.
    pub fn name(&self) -> &str {
        &self.name
    }

    /// Its columns.
    pub fn columns(&self) -> &Schema {
        &self.request.schema
    }

    /// The load of all its rows.
    pub fn request(&self) -> &LoadRequest {
        &self.request
    }

    /// Remembers types that its columns need.
    pub fn learn(&self, columns: WiderColumns) {
        self.learned.learn(&self.name, &self.request.inputs, columns);
        self.experience.has_learned.store(true, Ordering::Relaxed);
    }
}

#[async_trait]
impl TableProvider for ExternalTable {
    fn schema(&self) -> SchemaRef {
        Arc::clone(&self.arrow)
    }

    fn table_type(&self) -> TableType {
        TableType::Temporary
    }

    async fn scan(
        &self,
        state: &dyn Session,
        projection: Option<&Vec<usize>>,
        _: &[Expr],
        limit: Option<usize>,
    ) -> Result<Arc<dyn ExecutionPlan>> {
        let projection = match projection {
            Some(columns) => columns.clone(),
            None => (0..self.columns().len()).collect(),
        };
        let threads = state.config().target_partitions();
        Ok(Arc::new(ExternalScanExec::new(self, projection, limit, threads)?))
    }
}
