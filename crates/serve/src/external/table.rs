//! Inputs as a table of one statement.

use std::collections::HashMap;
use std::sync::Arc;
use std::sync::atomic::Ordering;

use async_trait::async_trait;
use coload_ddl::Schema;
use coload_load::{LoadRequest, Widened, WiderColumns};
use coload_scan::Predicate;
use datafusion::arrow::datatypes::{DataType, Field, Fields, Schema as ArrowSchema, SchemaRef};
use datafusion::catalog::{Session, TableProvider};
use datafusion::common::DFSchema;
use datafusion::error::Result;
use datafusion::logical_expr::utils::conjunction;
use datafusion::logical_expr::{Expr, TableProviderFilterPushDown, TableType};
use datafusion::physical_plan::ExecutionPlan;

use super::scan::{ExternalScanExec, Wanted};
use super::{Experience, Learned};
use crate::filter::tests_of;
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
        let arrow = with_refused(folded_schema(&request.schema), &request);
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

    /// Remembers types that its columns need, and why.
    pub fn learn(&self, columns: WiderColumns, told: &[Widened]) {
        self.learned.learn(&self.name, &self.request.inputs, columns, told);
        self.experience.has_learned.store(true, Ordering::Relaxed);
    }
}

/// Key in the metadata of a column of which nothing can be read: what the field is.
const REFUSED_KEY: &str = "coload.refused";

/// What the field of a column is of which nothing can be read; `None` for others.
pub(crate) fn refused_kind(field: &Field) -> Option<&str> {
    field.metadata().get(REFUSED_KEY).map(String::as_str)
}

/// The columns with those of which nothing can be read told apart. NULL is beside values of all types, so that a statement
/// which names one gets as far as to be told why it cannot be read.
fn with_refused(columns: SchemaRef, request: &LoadRequest) -> SchemaRef {
    if request.refused.is_empty() {
        return columns;
    }
    let field = |(number, field): (usize, &Arc<Field>)| match request.refused(number) {
        None => Arc::clone(field),
        Some(refused) => {
            let kind = HashMap::from([(REFUSED_KEY.to_owned(), refused.kind.clone())]);
            Arc::new(Field::new(field.name(), DataType::Null, true).with_metadata(kind))
        }
    };
    let fields: Fields = columns.fields().iter().enumerate().map(field).collect();
    Arc::new(ArrowSchema::new(fields))
}

#[async_trait]
impl TableProvider for ExternalTable {
    fn schema(&self) -> SchemaRef {
        Arc::clone(&self.arrow)
    }

    fn table_type(&self) -> TableType {
        TableType::Temporary
    }

    /// Filters that are tests of values are the scan's, exactly; others stand above it.
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
        let projection = match projection {
            Some(columns) => columns.clone(),
            None => (0..self.columns().len()).collect(),
        };
        let threads = state.config().target_partitions();
        let tests = filters.iter().filter_map(|filter| tests_of(filter, self.columns())).flatten();
        let tests: Vec<Predicate> = tests.collect();
        let mut read = projection.clone();
        for test in &tests {
            if !read.contains(&test.column) {
                read.push(test.column);
            }
        }
        if read.is_empty() {
            // Records are counted by a field, one that can be read.
            let columns = 0..self.columns().len();
            read.push(
                columns.into_iter().find(|at| self.request.refused(*at).is_none()).unwrap_or(0),
            );
        }
        let filter = match conjunction(filters.iter().cloned()) {
            Some(filter) => {
                let of_read = DFSchema::try_from(self.arrow.project(&read)?)?;
                Some(state.create_physical_expr(filter, &of_read)?)
            }
            None => None,
        };
        let wanted = Wanted { read, columns: projection.len(), tests, filter, limit };
        Ok(Arc::new(ExternalScanExec::new(self, wanted, threads)?))
    }
}
