//! The catalog of one snapshot: catalog `coload`, schema `public`.

use std::collections::HashMap;
use std::sync::{Arc, Mutex, PoisonError};

use async_trait::async_trait;
use coload_store::Snapshot;
use datafusion::arrow::datatypes::SchemaRef;
use datafusion::catalog::{CatalogProvider, CatalogProviderList, SchemaProvider, TableProvider};
use datafusion::error::Result;

use crate::error::to_datafusion;
use crate::rights::{Rights, Role};
use crate::table::StoreTable;
use crate::types::arrow_schema;

/// Name of the only catalog.
pub const CATALOG: &str = "coload";
/// Name of the only schema.
pub const SCHEMA: &str = "public";

/// Arrow schemas of tables, kept from one statement to the next. A table's columns change only with
/// `--replace`, so the stored schema is compared.
#[derive(Debug, Default)]
pub(crate) struct ArrowSchemas {
    by_table: Mutex<HashMap<u64, (coload_format::Schema, SchemaRef)>>,
}

/// Most schemas kept.
const KEPT_MAX: usize = 1_024;

impl ArrowSchemas {
    fn of(&self, id: u64, schema: &coload_format::Schema) -> SchemaRef {
        let mut known = self.by_table.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some((stored, arrow)) = known.get(&id)
            && stored == schema
        {
            return Arc::clone(arrow);
        }
        if known.len() >= KEPT_MAX {
            known.clear();
        }
        let arrow = arrow_schema(schema);
        known.insert(id, (schema.clone(), Arc::clone(&arrow)));
        arrow
    }
}

/// A table beside those of the snapshot: rows of parameters, under a name that no statement can say.
pub(crate) type ExtraTable = (String, Arc<dyn TableProvider>);

/// The tables of a snapshot that a caller may read, at each of the three levels that DataFusion asks.
#[derive(Debug, Clone)]
pub(crate) struct SnapshotCatalog {
    snapshot: Snapshot,
    schemas: Arc<ArrowSchemas>,
    rights: Rights,
    extra: Option<ExtraTable>,
}

impl SnapshotCatalog {
    pub fn new(
        snapshot: Snapshot,
        schemas: Arc<ArrowSchemas>,
        rights: Rights,
        extra: Option<ExtraTable>,
    ) -> Self {
        SnapshotCatalog { snapshot, schemas, rights, extra }
    }

    fn find(&self, name: &str) -> Option<StoreTable> {
        let index =
            self.snapshot.tables().iter().position(|t| t.name.eq_ignore_ascii_case(name))?;
        let entry = &self.snapshot.tables()[index];
        let arrow = self.schemas.of(entry.id, &entry.schema);
        Some(StoreTable::new(self.snapshot.clone(), index, arrow))
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
        name.eq_ignore_ascii_case(SCHEMA).then(|| Arc::new(self.clone()) as _)
    }
}

#[async_trait]
impl SchemaProvider for SnapshotCatalog {
    fn table_names(&self) -> Vec<String> {
        let seen = |name: &&String| self.rights.may_read(name);
        self.snapshot.tables().iter().map(|t| &t.name).filter(seen).cloned().collect()
    }

    async fn table(&self, name: &str) -> Result<Option<Arc<dyn TableProvider>>> {
        if let Some((_, extra)) = self.extra.as_ref().filter(|(known, _)| known == name) {
            return Ok(Some(Arc::clone(extra)));
        }
        // Said of names that do not exist too, so that the answer does not tell which do.
        self.rights.require(Role::Read, name).map_err(to_datafusion)?;
        Ok(self.find(name).map(|t| Arc::new(t) as _))
    }

    fn table_exist(&self, name: &str) -> bool {
        self.snapshot.table(name).is_some() && self.rights.may_read(name)
    }
}
