//! The tables of PostgreSQL's catalogue that tools ask for, over the tables that their reader may see.
//!
//! Tables have the numbers from 16384 on, those of users in PostgreSQL. What there is nothing of here, such as triggers, has
//! its table without rows, so that a tool which joins it finds nothing and no error.

use std::sync::Arc;

use async_trait::async_trait;
use coload_ddl::literal_sql;
use coload_store::{Snapshot, TableEntry};
use coload_types::{Column, DataType};
use datafusion::arrow::array::{
    ArrayRef, BooleanArray, Float32Array, Int32Array, Int64Array, StringArray,
};
use datafusion::arrow::datatypes::{Field, Schema as ArrowSchema};
use datafusion::arrow::record_batch::RecordBatch;
use datafusion::catalog::{MemTable, SchemaProvider, TableProvider};
use datafusion::error::Result;

use super::kinds::{Facts, Kind, MODIFIER_ADDED, Scalar, decimal_modifier};
use super::settings::Settings;
use crate::catalog::{CATALOG, SCHEMA};
use crate::rights::Rights;
use crate::types::arrow_type;

/// Number of the first table of a user.
const TABLES_FROM: i64 = 16_384;
/// Number of the first view.
const VIEWS_FROM: i64 = 1 << 30;
/// The schemas.
const NAMESPACES: [(i64, &str); 3] =
    [(11, "pg_catalog"), (2_200, SCHEMA), (13_000, "information_schema")];
/// Whoever owns the store.
const OWNER: i64 = 10;
/// The way in which tables are kept.
const HEAP: i64 = 2;
/// Types of texts with a length, which answers have as text.
const CHAR: i64 = 1_042;
const NAME: i64 = 19;
const VARCHAR: i64 = 1_043;

/// Tables of the catalogue with their own numbers.
const TABLES: [(i64, &str); 28] = [
    (1_247, "pg_type"),
    (1_249, "pg_attribute"),
    (1_255, "pg_proc"),
    (1_259, "pg_class"),
    (1_260, "pg_authid"),
    (1_262, "pg_database"),
    (2_601, "pg_am"),
    (2_604, "pg_attrdef"),
    (2_606, "pg_constraint"),
    (2_609, "pg_description"),
    (2_610, "pg_index"),
    (2_611, "pg_inherits"),
    (2_615, "pg_namespace"),
    (2_618, "pg_rewrite"),
    (2_620, "pg_trigger"),
    (3_079, "pg_extension"),
    (3_256, "pg_policy"),
    (3_456, "pg_collation"),
    (3_501, "pg_enum"),
    (3_541, "pg_range"),
    (2_224, "pg_sequence"),
    (12_001, "pg_roles"),
    (12_002, "pg_user"),
    (12_003, "pg_tables"),
    (12_004, "pg_views"),
    (12_005, "pg_settings"),
    (2_608, "pg_depend"),
    (2_396, "pg_shdescription"),
];

/// The catalogue of one snapshot.
#[derive(Debug)]
pub(crate) struct PgCatalog {
    snapshot: Snapshot,
    rights: Rights,
}

/// A table as columns.
type Columns = Vec<(&'static str, ArrayRef)>;

fn texts<'a>(values: impl IntoIterator<Item = &'a str>) -> ArrayRef {
    Arc::new(StringArray::from_iter_values(values))
}

fn numbers(values: impl IntoIterator<Item = i64>) -> ArrayRef {
    Arc::new(Int64Array::from_iter_values(values))
}

fn small(values: impl IntoIterator<Item = i32>) -> ArrayRef {
    Arc::new(Int32Array::from_iter_values(values))
}

fn truths(values: impl IntoIterator<Item = bool>) -> ArrayRef {
    Arc::new(BooleanArray::from_iter(values.into_iter().map(Some)))
}

/// Columns that have the same in each row.
struct Same(usize);

impl Same {
    fn number(&self, value: i64) -> ArrayRef {
        numbers(vec![value; self.0])
    }

    fn small(&self, value: i32) -> ArrayRef {
        small(vec![value; self.0])
    }

    fn truth(&self, value: bool) -> ArrayRef {
        truths(vec![value; self.0])
    }

    fn text(&self, value: &str) -> ArrayRef {
        texts(vec![value; self.0])
    }

    fn null(&self) -> ArrayRef {
        Arc::new(StringArray::new_null(self.0))
    }
}

/// A relation of the catalogue.
struct Relation<'a> {
    oid: i64,
    name: &'a str,
    namespace: i64,
    kind: &'static str,
    columns: usize,
    rows: f32,
    checks: usize,
}

/// The type of a column, its bytes, and its modifier.
fn type_of(data_type: DataType) -> (i64, i16, i32) {
    let scalar = |scalar: Scalar| {
        let Facts { oid, bytes, .. } = scalar.facts();
        (i64::from(oid), bytes, -1)
    };
    let length = |oid, n: u32| {
        (oid, -1, i32::try_from(n).unwrap_or(i32::MAX - MODIFIER_ADDED) + MODIFIER_ADDED)
    };
    match data_type {
        DataType::Boolean => scalar(Scalar::Boolean),
        DataType::SmallInt => scalar(Scalar::SmallInt),
        DataType::Integer => scalar(Scalar::Integer),
        DataType::BigInt => scalar(Scalar::BigInt),
        DataType::Decimal { precision, scale } => {
            let modifier = decimal_modifier(precision, scale);
            (i64::from(Scalar::Numeric.facts().oid), -1, modifier)
        }
        DataType::Real => scalar(Scalar::Real),
        DataType::Double => scalar(Scalar::Double),
        DataType::Date => scalar(Scalar::Date),
        DataType::Time => scalar(Scalar::Time),
        DataType::Timestamp => scalar(Scalar::Timestamp),
        DataType::TimestampTz => scalar(Scalar::TimestampTz),
        DataType::Char(n) => length(CHAR, n),
        DataType::Varchar(Some(n)) => length(VARCHAR, n),
        // A UUID is text in answers.
        DataType::Varchar(None) | DataType::Uuid => scalar(Scalar::Text),
        DataType::Binary(_) => scalar(Scalar::Bytes),
        DataType::List(element) => {
            let of = Kind::of(&arrow_type(element.data_type()));
            (i64::from(Kind { is_array: true, ..of }.oid()), -1, -1)
        }
    }
}

impl PgCatalog {
    pub fn new(snapshot: Snapshot, rights: Rights) -> Self {
        PgCatalog { snapshot, rights }
    }

    /// Whether there is a table of a name.
    pub fn has(name: &str) -> bool {
        TABLES.iter().any(|(_, known)| *known == name)
    }

    /// The tables that the reader may see, with their numbers.
    fn tables(&self) -> Vec<(i64, &TableEntry)> {
        let seen = self.snapshot.tables().iter().filter(|table| self.rights.may_read(&table.name));
        seen.map(|table| (TABLES_FROM + i64::try_from(table.id).unwrap_or(i64::MAX >> 1), table))
            .collect()
    }

    fn views(&self) -> impl Iterator<Item = (i64, &coload_store::ViewEntry)> {
        let numbered = (VIEWS_FROM..).zip(self.snapshot.views());
        numbered.filter(|(_, view)| self.rights.may_read(&view.name))
    }

    fn relations(&self) -> Vec<Relation<'_>> {
        let of_catalog = TABLES.iter().map(|(oid, name)| Relation {
            oid: *oid,
            name,
            namespace: NAMESPACES[0].0,
            kind: "r",
            columns: 0,
            rows: 0.0,
            checks: 0,
        });
        let tables = self.tables().into_iter().map(|(oid, table)| Relation {
            oid,
            name: &table.name,
            namespace: NAMESPACES[1].0,
            kind: "r",
            columns: table.schema.len(),
            rows: table.segments.iter().map(|segment| segment.rows as f32).sum(),
            checks: table.schema.checks().len(),
        });
        let views = self.views().map(|(oid, view)| Relation {
            oid,
            name: &view.name,
            namespace: NAMESPACES[1].0,
            kind: "v",
            columns: view.columns.len(),
            rows: 0.0,
            checks: 0,
        });
        of_catalog.chain(tables).chain(views).collect()
    }

    fn pg_class(&self) -> Columns {
        let all = self.relations();
        let same = Same(all.len());
        vec![
            ("oid", numbers(all.iter().map(|r| r.oid))),
            ("relname", texts(all.iter().map(|r| r.name))),
            ("relnamespace", numbers(all.iter().map(|r| r.namespace))),
            ("reltype", same.number(0)),
            ("reloftype", same.number(0)),
            ("relowner", same.number(OWNER)),
            ("relam", numbers(all.iter().map(|r| if r.kind == "r" { HEAP } else { 0 }))),
            ("relfilenode", same.number(0)),
            ("reltablespace", same.number(0)),
            ("relpages", same.small(0)),
            ("reltuples", Arc::new(Float32Array::from_iter_values(all.iter().map(|r| r.rows)))),
            ("relallvisible", same.small(0)),
            ("reltoastrelid", same.number(0)),
            // Keys are not listed in pg_index.
            ("relhasindex", same.truth(false)),
            ("relisshared", same.truth(false)),
            ("relpersistence", same.text("p")),
            ("relkind", texts(all.iter().map(|r| r.kind))),
            ("relnatts", small(all.iter().map(|r| r.columns as i32))),
            ("relchecks", small(all.iter().map(|r| r.checks as i32))),
            ("relhasrules", truths(all.iter().map(|r| r.kind == "v"))),
            ("relhastriggers", same.truth(false)),
            ("relhassubclass", same.truth(false)),
            ("relrowsecurity", same.truth(false)),
            ("relforcerowsecurity", same.truth(false)),
            ("relispopulated", same.truth(true)),
            ("relreplident", same.text("n")),
            ("relispartition", same.truth(false)),
            ("relacl", same.null()),
            ("reloptions", same.null()),
            ("relpartbound", same.null()),
        ]
    }

    /// Each column with the number of its table and its own.
    fn columns(&self) -> Vec<(i64, i32, &Column)> {
        let mut all = Vec::new();
        for (oid, table) in self.tables() {
            all.extend(
                (1..).zip(table.schema.columns()).map(|(number, column)| (oid, number, column)),
            );
        }
        all
    }

    fn pg_attribute(&self) -> Columns {
        let all = self.columns();
        let same = Same(all.len());
        let facts: Vec<_> = all.iter().map(|(_, _, column)| type_of(column.data_type)).collect();
        vec![
            ("attrelid", numbers(all.iter().map(|(table, ..)| *table))),
            ("attname", texts(all.iter().map(|(_, _, column)| column.name.as_str()))),
            ("atttypid", numbers(facts.iter().map(|(oid, ..)| *oid))),
            ("attstattarget", same.small(-1)),
            ("attlen", small(facts.iter().map(|(_, bytes, _)| i32::from(*bytes)))),
            ("attnum", small(all.iter().map(|(_, number, _)| *number))),
            ("attndims", same.small(0)),
            ("atttypmod", small(facts.iter().map(|(_, _, modifier)| *modifier))),
            ("attnotnull", truths(all.iter().map(|(_, _, column)| !column.nullable))),
            ("atthasdef", truths(all.iter().map(|(_, _, column)| column.default.is_some()))),
            ("attidentity", same.text("")),
            ("attgenerated", same.text("")),
            ("attisdropped", same.truth(false)),
            ("attislocal", same.truth(true)),
            ("attinhcount", same.small(0)),
            ("attcollation", same.number(0)),
            ("attacl", same.null()),
            ("attoptions", same.null()),
            ("attfdwoptions", same.null()),
        ]
    }

    fn pg_attrdef(&self) -> Columns {
        let all = self.columns().into_iter();
        let all = all.filter_map(|(table, number, column)| {
            let value = column.default.as_ref()?;
            Some((table, number, literal_sql(value, column.data_type)))
        });
        let all: Vec<(i64, i32, String)> = all.collect();
        vec![
            ("oid", numbers(all.iter().map(|(table, number, _)| table << 11 | i64::from(*number)))),
            ("adrelid", numbers(all.iter().map(|(table, ..)| *table))),
            ("adnum", small(all.iter().map(|(_, number, _)| *number))),
            ("adbin", texts(all.iter().map(|(_, _, text)| text.as_str()))),
        ]
    }

    fn pg_tables(&self) -> Columns {
        let names: Vec<&str> =
            self.tables().into_iter().map(|(_, table)| table.name.as_str()).collect();
        let same = Same(names.len());
        vec![
            ("schemaname", same.text(SCHEMA)),
            ("tablename", texts(names)),
            ("tableowner", same.text(CATALOG)),
            ("tablespace", same.null()),
            ("hasindexes", same.truth(false)),
            ("hasrules", same.truth(false)),
            ("hastriggers", same.truth(false)),
            ("rowsecurity", same.truth(false)),
        ]
    }

    fn pg_views(&self) -> Columns {
        let (names, texts_of): (Vec<&str>, Vec<&str>) =
            self.views().map(|(_, view)| (view.name.as_str(), view.sql.as_str())).unzip();
        let same = Same(names.len());
        vec![
            ("schemaname", same.text(SCHEMA)),
            ("viewname", texts(names)),
            ("viewowner", same.text(CATALOG)),
            ("definition", texts(texts_of)),
        ]
    }

    fn columns_of(&self, name: &str) -> Option<Columns> {
        Some(match name {
            "pg_class" => self.pg_class(),
            "pg_attribute" => self.pg_attribute(),
            "pg_attrdef" => self.pg_attrdef(),
            "pg_tables" => self.pg_tables(),
            "pg_views" => self.pg_views(),
            "pg_type" => pg_type(),
            "pg_namespace" => pg_namespace(),
            "pg_database" => pg_database(),
            "pg_roles" | "pg_authid" => pg_roles(),
            "pg_user" => pg_user(),
            "pg_am" => vec![
                ("oid", numbers([HEAP])),
                ("amname", texts(["heap"])),
                ("amtype", texts(["t"])),
            ],
            "pg_settings" => pg_settings(),
            other => nothing(other)?,
        })
    }
}

fn pg_type() -> Columns {
    let of_facts = |facts: Facts| {
        let array = (
            i64::from(facts.array_oid),
            format!("_{}", facts.name),
            -1_i16,
            "A",
            i64::from(facts.oid),
            0_i64,
        );
        let own = (
            i64::from(facts.oid),
            facts.name.to_owned(),
            facts.bytes,
            facts.category,
            0,
            i64::from(facts.array_oid),
        );
        [own, array]
    };
    let mut all: Vec<_> =
        Scalar::ALL.into_iter().flat_map(|scalar| of_facts(scalar.facts())).collect();
    // That of names in the catalogue, which answers have as text.
    all.push((NAME, "name".to_owned(), 64, "S", 0, 1_003));
    all.push((CHAR, "bpchar".to_owned(), -1, "S", 0, 1_014));
    all.push((VARCHAR, "varchar".to_owned(), -1, "S", 0, 1_015));
    let same = Same(all.len());
    vec![
        ("oid", numbers(all.iter().map(|t| t.0))),
        ("typname", texts(all.iter().map(|t| t.1.as_str()))),
        ("typnamespace", same.number(NAMESPACES[0].0)),
        ("typowner", same.number(OWNER)),
        ("typlen", small(all.iter().map(|t| i32::from(t.2)))),
        ("typbyval", truths(all.iter().map(|t| t.2 > 0 && t.2 <= 8))),
        ("typtype", same.text("b")),
        ("typcategory", texts(all.iter().map(|t| t.3))),
        ("typispreferred", same.truth(false)),
        ("typisdefined", same.truth(true)),
        ("typdelim", same.text(",")),
        ("typrelid", same.number(0)),
        ("typelem", numbers(all.iter().map(|t| t.4))),
        ("typarray", numbers(all.iter().map(|t| t.5))),
        ("typnotnull", same.truth(false)),
        ("typbasetype", same.number(0)),
        ("typtypmod", same.small(-1)),
        ("typndims", same.small(0)),
        ("typcollation", same.number(0)),
        ("typdefault", same.null()),
    ]
}

fn pg_namespace() -> Columns {
    let same = Same(NAMESPACES.len());
    vec![
        ("oid", numbers(NAMESPACES.map(|(oid, _)| oid))),
        ("nspname", texts(NAMESPACES.map(|(_, name)| name))),
        ("nspowner", same.number(OWNER)),
        ("nspacl", same.null()),
    ]
}

fn pg_database() -> Columns {
    let same = Same(1);
    vec![
        ("oid", same.number(1)),
        ("datname", same.text(CATALOG)),
        ("datdba", same.number(OWNER)),
        // That of UTF-8.
        ("encoding", same.small(6)),
        ("datlocprovider", same.text("c")),
        ("datistemplate", same.truth(false)),
        ("datallowconn", same.truth(true)),
        ("datconnlimit", same.small(-1)),
        ("dattablespace", same.number(0)),
        ("datcollate", same.text("C")),
        ("datctype", same.text("C")),
        ("daticulocale", same.null()),
        ("datacl", same.null()),
    ]
}

fn pg_roles() -> Columns {
    let same = Same(1);
    vec![
        ("oid", same.number(OWNER)),
        ("rolname", same.text(CATALOG)),
        ("rolsuper", same.truth(false)),
        ("rolinherit", same.truth(true)),
        ("rolcreaterole", same.truth(false)),
        ("rolcreatedb", same.truth(false)),
        ("rolcanlogin", same.truth(true)),
        ("rolreplication", same.truth(false)),
        ("rolconnlimit", same.small(-1)),
        ("rolvaliduntil", same.null()),
        ("rolbypassrls", same.truth(false)),
    ]
}

fn pg_user() -> Columns {
    let same = Same(1);
    vec![
        ("usename", same.text(CATALOG)),
        ("usesysid", same.number(OWNER)),
        ("usecreatedb", same.truth(false)),
        ("usesuper", same.truth(false)),
    ]
}

fn pg_settings() -> Columns {
    let settings = Settings::default();
    let (names, values): (Vec<&str>, Vec<&str>) = settings.all().into_iter().unzip();
    let same = Same(names.len());
    vec![
        ("name", texts(names)),
        ("setting", texts(values)),
        ("unit", same.null()),
        ("category", same.text("")),
        ("short_desc", same.text("")),
        ("context", same.text("user")),
        ("vartype", same.text("string")),
    ]
}

/// Tables of what there is nothing of: numbers, and texts that begin with a star.
fn nothing(name: &str) -> Option<Columns> {
    let columns: &[&'static str] = match name {
        "pg_proc" => &[
            "oid",
            "*proname",
            "pronamespace",
            "proowner",
            "prorettype",
            "*prokind",
            "*proargnames",
            "*proargtypes",
            "*proargmodes",
            "*proallargtypes",
        ],
        "pg_constraint" => &[
            "oid",
            "*conname",
            "connamespace",
            "*contype",
            "conrelid",
            "conindid",
            "conparentid",
            "confrelid",
            "*confupdtype",
            "*confdeltype",
            "*confmatchtype",
            "*conkey",
            "*confkey",
            "*conbin",
        ],
        "pg_description" => &["objoid", "classoid", "objsubid", "*description"],
        "pg_shdescription" => &["objoid", "classoid", "*description"],
        "pg_index" => &[
            "indexrelid",
            "indrelid",
            "indnatts",
            "indnkeyatts",
            "*indisunique",
            "*indisprimary",
            "*indisclustered",
            "*indisvalid",
            "*indkey",
            "*indoption",
            "*indexprs",
            "*indpred",
        ],
        "pg_inherits" => &["inhrelid", "inhparent", "inhseqno", "*inhdetachpending"],
        "pg_rewrite" => &["oid", "*rulename", "ev_class", "*ev_type", "*ev_enabled"],
        "pg_trigger" => &[
            "oid",
            "tgrelid",
            "tgparentid",
            "*tgname",
            "*tgenabled",
            "*tgisinternal",
            "tgconstraint",
        ],
        "pg_extension" => &["oid", "*extname", "extowner", "extnamespace", "*extversion"],
        "pg_policy" => &["oid", "*polname", "polrelid", "*polcmd"],
        "pg_collation" => &["oid", "*collname", "collnamespace", "collowner", "*collprovider"],
        "pg_enum" => &["oid", "enumtypid", "enumsortorder", "*enumlabel"],
        "pg_range" => &["rngtypid", "rngsubtype", "rngmultitypid"],
        "pg_sequence" => &["seqrelid", "seqtypid", "seqstart", "seqincrement"],
        "pg_depend" => {
            &["classid", "objid", "objsubid", "refclassid", "refobjid", "refobjsubid", "*deptype"]
        }
        _ => return None,
    };
    let column = |name: &&'static str| match name.strip_prefix('*') {
        Some(text) => (text, texts([])),
        None => (*name, numbers([])),
    };
    Some(columns.iter().map(column).collect())
}

#[async_trait]
impl SchemaProvider for PgCatalog {
    fn table_names(&self) -> Vec<String> {
        TABLES.iter().map(|(_, name)| (*name).to_owned()).collect()
    }

    async fn table(&self, name: &str) -> Result<Option<Arc<dyn TableProvider>>> {
        let Some(columns) = self.columns_of(&name.to_lowercase()) else { return Ok(None) };
        let fields =
            columns.iter().map(|(name, array)| Field::new(*name, array.data_type().clone(), true));
        let schema = Arc::new(ArrowSchema::new(fields.collect::<Vec<_>>()));
        let arrays = columns.into_iter().map(|(_, array)| array).collect();
        let batch = RecordBatch::try_new(Arc::clone(&schema), arrays)?;
        Ok(Some(Arc::new(MemTable::try_new(schema, vec![vec![batch]])?)))
    }

    fn table_exist(&self, name: &str) -> bool {
        PgCatalog::has(name)
    }
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]
    use super::*;

    #[test]
    fn every_table_of_the_list_has_columns() {
        let folder = tempfile::tempdir().unwrap();
        let store = coload_store::Store::create_or_open(folder.path().join("store")).unwrap();
        let catalog = PgCatalog::new(store.snapshot().unwrap(), Rights::all());
        for (_, name) in TABLES {
            let columns = catalog.columns_of(name).unwrap();
            let rows = columns[0].1.len();
            assert!(columns.iter().all(|(_, array)| array.len() == rows), "{name}");
        }
    }
}
