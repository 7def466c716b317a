//! The catalog of one snapshot: catalog `coload`, schema `public`.

use std::collections::HashMap;
use std::sync::{Arc, Mutex};

use async_trait::async_trait;
use coload_store::{Snapshot, TableEntry, ViewEntry};
use coload_threads::lock;
use datafusion::arrow::datatypes::SchemaRef;
use datafusion::catalog::{
    CatalogProvider, CatalogProviderList, SchemaProvider, TableProvider,
    information_schema::{INFORMATION_SCHEMA, InformationSchemaProvider},
};
use datafusion::datasource::ViewTable;
use datafusion::error::Result;
use datafusion::logical_expr::{LogicalPlanBuilder, TableType};

use crate::cluster::{ClusterTable, Reading};
use crate::error::to_datafusion;
use crate::functions::table_functions;
use crate::information_schema::Views;
use crate::names::{find_table, folded_schema};
use crate::postgres::PgCatalog;
use crate::rights::{Rights, Role};
use crate::statement::tree::PG_CATALOG;
use crate::table::StoreTable;
use crate::types::arrow_schema;

/// Name of the only catalog.
pub const CATALOG: &str = "coload";
/// Name of the only schema.
pub const SCHEMA: &str = "public";
/// What DuckDB calls it.
const SCHEMA_TOO: &str = "main";

/// Whether a name is that of the only schema.
pub(crate) fn is_schema(name: &str) -> bool {
    name.eq_ignore_ascii_case(SCHEMA) || name.eq_ignore_ascii_case(SCHEMA_TOO)
}

/// Arrow schemas of tables with folded names, kept from one statement to the next. A table's columns change only with
/// `--replace`, so the stored schema is compared.
#[derive(Debug, Default)]
pub(crate) struct ArrowSchemas {
    by_table: Mutex<HashMap<u64, (coload_ddl::Schema, SchemaRef)>>,
}

/// Tables whose schemas are kept; when there are more, all are made anew as they are asked for.
const KEPT_MAX: usize = 1_024;

impl ArrowSchemas {
    fn of(&self, id: u64, schema: &coload_ddl::Schema) -> SchemaRef {
        let mut known = lock(&self.by_table);
        if let Some((stored, arrow)) = known.get(&id)
            && stored == schema
        {
            return Arc::clone(arrow);
        }
        if known.len() >= KEPT_MAX {
            known.clear();
        }
        let arrow = folded_schema(schema);
        known.insert(id, (schema.clone(), Arc::clone(&arrow)));
        arrow
    }
}

/// How columns are named.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum ColumnNames {
    /// Folded, as the planner sees them.
    Folded,
    /// For the views of the catalog.
    Stored,
}

/// A table beside those of the snapshot: rows of parameters, under a name that no statement can say, or inputs that a
/// statement reads where they are.
pub(crate) type ExtraTable = (String, Arc<dyn TableProvider>);

/// The tables of a snapshot that a caller may read, at each of the three levels that DataFusion asks.
#[derive(Debug, Clone)]
pub(crate) struct SnapshotCatalog {
    names: ColumnNames,
    snapshot: Snapshot,
    schemas: Arc<ArrowSchemas>,
    rights: Rights,
    extra: Arc<[ExtraTable]>,
    /// The version of the cluster that the snapshot is of, if the store is in one.
    reading: Option<Reading>,
}

impl SnapshotCatalog {
    pub fn new(
        snapshot: Snapshot,
        schemas: Arc<ArrowSchemas>,
        rights: Rights,
        extra: &[ExtraTable],
    ) -> Self {
        let extra = extra.into();
        let names = ColumnNames::Folded;
        SnapshotCatalog { names, snapshot, schemas, rights, extra, reading: None }
    }

    /// The same of a version of a cluster: rows of its tables are on all leaves.
    pub fn with_cluster(self, reading: Option<Reading>) -> Self {
        SnapshotCatalog { reading, ..self }
    }

    /// The table, if the caller may read it.
    fn find(&self, name: &str) -> Option<StoreTable> {
        let index = self.visible(name)?;
        let entry = &self.snapshot.tables()[index];
        let arrow = match self.names {
            ColumnNames::Folded => self.schemas.of(entry.id, &entry.schema),
            ColumnNames::Stored => arrow_schema(&entry.schema),
        };
        Some(StoreTable::new(self.snapshot.clone(), index, arrow))
    }

    /// The view, if the caller may read it.
    fn view(&self, name: &str) -> Option<&ViewEntry> {
        self.snapshot.view(name).filter(|view| self.rights.may_read(&view.name))
    }

    fn visible(&self, name: &str) -> Option<usize> {
        let index = find_table(&self.snapshot, name)?;
        self.rights.may_read(&self.snapshot.tables()[index].name).then_some(index)
    }

    /// The catalogue as tools of PostgreSQL know it.
    fn pg_catalog(&self) -> PgCatalog {
        PgCatalog::new(self.snapshot.clone(), self.rights.clone())
    }

    /// The views that tell what tables and columns there are.
    fn information_schema(&self) -> Arc<dyn SchemaProvider> {
        let stored = SnapshotCatalog { names: ColumnNames::Stored, ..self.clone() };
        let engine = InformationSchemaProvider::new(Arc::new(stored))
            .with_table_functions(table_functions());
        let seen = |table: &&TableEntry| self.rights.may_read(&table.name);
        let tables = self.snapshot.tables().iter().filter(seen).cloned().collect();
        let views = self.snapshot.views().iter().map(|view| &view.name);
        let views = views.filter(|name| self.rights.may_read(name)).cloned().collect();
        Arc::new(Views::new(engine, tables, views))
    }
}

impl CatalogProviderList for SnapshotCatalog {
    fn register_catalog(
        &self,
        _: String,
        _: Arc<dyn CatalogProvider>,
    ) -> Option<Arc<dyn CatalogProvider>> {
        None
    }

    fn catalog_names(&self) -> Vec<String> {
        vec![CATALOG.into()]
    }

    fn catalog(&self, name: &str) -> Option<Arc<dyn CatalogProvider>> {
        name.eq_ignore_ascii_case(CATALOG).then(|| Arc::new(self.clone()) as _)
    }
}

impl CatalogProvider for SnapshotCatalog {
    fn schema_names(&self) -> Vec<String> {
        vec![SCHEMA.into()]
    }

    fn schema(&self, name: &str) -> Option<Arc<dyn SchemaProvider>> {
        if name.eq_ignore_ascii_case(INFORMATION_SCHEMA) {
            return Some(self.information_schema());
        }
        if name.eq_ignore_ascii_case(PG_CATALOG) {
            return Some(Arc::new(self.pg_catalog()));
        }
        is_schema(name).then(|| Arc::new(self.clone()) as _)
    }
}

#[async_trait]
impl SchemaProvider for SnapshotCatalog {
    fn table_names(&self) -> Vec<String> {
        let seen = |name: &&String| self.rights.may_read(name);
        let tables = self.snapshot.tables().iter().map(|t| &t.name);
        let views = self.snapshot.views().iter().map(|view| &view.name);
        tables.chain(views).filter(seen).cloned().collect()
    }

    /// What a name is, for the views of the catalog.
    async fn table_type(&self, name: &str) -> Result<Option<TableType>> {
        if self.view(name).is_some() {
            return Ok(Some(TableType::View));
        }
        Ok(self.visible(name).map(|_| TableType::Base))
    }

    async fn table(&self, name: &str) -> Result<Option<Arc<dyn TableProvider>>> {
        if let Some((_, extra)) = self.extra.iter().find(|(known, _)| known == name) {
            return Ok(Some(Arc::clone(extra)));
        }
        let found = self.find(name);
        if let (ColumnNames::Stored, Some(view)) = (self.names, self.view(name)) {
            // Its text only: no statement reads a view by its name.
            let nothing = LogicalPlanBuilder::empty(false).build()?;
            return Ok(Some(Arc::new(ViewTable::new(nothing, Some(view.sql.clone())))));
        }
        if found.is_none() && PgCatalog::has(name) {
            return self.pg_catalog().table(name).await;
        }
        if found.is_none() {
            // Said of names that do not exist too, so that the answer does not tell which do.
            self.rights.require(Role::Read, name).map_err(to_datafusion)?;
        }
        let Some(own) = found else { return Ok(None) };
        let of_cluster = self.reading.as_ref().and_then(|reading| {
            let table = reading.table(&own.entry().name)?;
            Some(ClusterTable::new(own.clone(), reading, table))
        });
        Ok(Some(match of_cluster {
            Some(table) => Arc::new(table),
            None => Arc::new(own),
        }))
    }

    fn table_exist(&self, name: &str) -> bool {
        self.visible(name).is_some()
    }
}
