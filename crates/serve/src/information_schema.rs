//! The views of the catalog: those of the query engine, but for the columns, whose types are those of CREATE TABLE, and for the
//! tables, of which they tell rows and bytes by the names that MySQL gives these.

use std::sync::Arc;

use async_trait::async_trait;
use coload_ddl::{Index, literal_sql};
use coload_store::TableEntry;
use coload_types::{Column, DataType};
use datafusion::arrow::array::{ArrayRef, Int32Array, StringArray, UInt64Array};
use datafusion::arrow::datatypes::{Field, Schema as ArrowSchema};
use datafusion::arrow::record_batch::RecordBatch;
use datafusion::catalog::information_schema::{INFORMATION_SCHEMA, InformationSchemaProvider};
use datafusion::catalog::{MemTable, SchemaProvider, TableProvider};
use datafusion::error::Result;

use crate::catalog::{CATALOG, SCHEMA};
use crate::statement::tree::PG_CATALOG;

/// Names of the views that are made here.
const COLUMNS: &str = "columns";
const TABLES: &str = "tables";
const SCHEMATA: &str = "schemata";
/// Those that the engine does not have.
const KEYS: &str = "key_column_usage";
const CONSTRAINTS: &str = "table_constraints";
const STATISTICS: &str = "statistics";

/// The views over some tables.
#[derive(Debug)]
pub(crate) struct Views {
    engine: InformationSchemaProvider,
    tables: Vec<TableEntry>,
    /// Names of the store's views.
    views: Vec<String>,
}

impl Views {
    /// Of the tables and views that the caller may see.
    pub fn new(
        engine: InformationSchemaProvider,
        tables: Vec<TableEntry>,
        views: Vec<String>,
    ) -> Self {
        Views { engine, tables, views }
    }

    /// A row for each table and view.
    fn tables(&self) -> Result<MemTable> {
        let of_tables = self.tables.iter().map(|table| {
            (SCHEMA, table.name.clone(), "BASE TABLE", Some((table.rows(), table.bytes())))
        });
        let of_views = self.views.iter().map(|name| (SCHEMA, name.clone(), "VIEW", None));
        let own = self.table_names();
        let own = own.into_iter().map(|name| (INFORMATION_SCHEMA, name, "VIEW", None));
        let all: Vec<_> = of_tables.chain(of_views).chain(own).collect();
        let text = |of: &dyn Fn(&(&str, String, &str, _)) -> String| -> ArrayRef {
            Arc::new(StringArray::from_iter_values(all.iter().map(of)))
        };
        let number = |of: fn((u64, u64)) -> u64| -> ArrayRef {
            Arc::new(all.iter().map(|(.., size)| size.map(of)).collect::<UInt64Array>())
        };
        table_of(
            vec![
                ("table_catalog", text(&|_| CATALOG.into())),
                ("table_schema", text(&|(schema, ..)| (*schema).into())),
                ("table_name", text(&|(_, name, ..)| name.clone())),
                ("table_type", text(&|(_, _, kind, _)| (*kind).into())),
                ("table_rows", number(|(rows, _)| rows)),
                ("data_length", number(|(_, bytes)| bytes)),
            ],
            |name| matches!(name, "table_rows" | "data_length"),
        )
    }
}

#[async_trait]
impl SchemaProvider for Views {
    fn table_names(&self) -> Vec<String> {
        let more = [KEYS, CONSTRAINTS, STATISTICS].map(str::to_owned);
        self.engine.table_names().into_iter().chain(more).collect()
    }

    async fn table(&self, name: &str) -> Result<Option<Arc<dyn TableProvider>>> {
        match name.to_ascii_lowercase().as_str() {
            COLUMNS => Ok(Some(Arc::new(columns(&self.tables)?))),
            TABLES => Ok(Some(Arc::new(self.tables()?))),
            SCHEMATA => Ok(Some(Arc::new(schemata()?))),
            KEYS => Ok(Some(Arc::new(keys(&self.tables)?))),
            CONSTRAINTS => Ok(Some(Arc::new(constraints(&self.tables)?))),
            STATISTICS => Ok(Some(Arc::new(statistics(&self.tables)?))),
            _ => self.engine.table(name).await,
        }
    }

    fn table_exist(&self, name: &str) -> bool {
        self.table_names().iter().any(|known| known == name)
    }
}

/// A number that a type has, such as its digits.
type Fact = fn(DataType) -> Option<u64>;

/// Numbers of a type, by the names of their columns.
const FACTS: [(&str, Fact); 6] = [
    ("character_maximum_length", |data_type| match data_type {
        DataType::Char(length) => Some(length.into()),
        DataType::Varchar(length) => length.map(u64::from),
        _ => None,
    }),
    ("character_octet_length", |data_type| match data_type {
        DataType::Binary(length) => length.map(u64::from),
        _ => None,
    }),
    ("numeric_precision", |data_type| match data_type {
        DataType::SmallInt => Some(16),
        DataType::Integer => Some(32),
        DataType::BigInt => Some(64),
        DataType::Real => Some(24),
        DataType::Double => Some(53),
        DataType::Decimal { precision, .. } => Some(precision.into()),
        _ => None,
    }),
    ("numeric_precision_radix", |data_type| match data_type {
        DataType::Decimal { .. } => Some(10),
        DataType::SmallInt | DataType::Integer | DataType::BigInt => Some(2),
        DataType::Real | DataType::Double => Some(2),
        _ => None,
    }),
    ("numeric_scale", |data_type| match data_type {
        DataType::Decimal { scale, .. } => Some(scale.into()),
        DataType::SmallInt | DataType::Integer | DataType::BigInt => Some(0),
        _ => None,
    }),
    ("datetime_precision", |data_type| match data_type {
        DataType::Date => Some(0),
        DataType::Time | DataType::Timestamp | DataType::TimestampTz => Some(6),
        _ => None,
    }),
];

/// The schemas, those of the catalog among them.
fn schemata() -> Result<MemTable> {
    let schemas = [INFORMATION_SCHEMA, PG_CATALOG, SCHEMA];
    let none = || -> ArrayRef { Arc::new(StringArray::new_null(schemas.len())) };
    table_of(
        vec![
            ("catalog_name", Arc::new(StringArray::from(vec![CATALOG; schemas.len()]))),
            ("schema_name", Arc::new(StringArray::from(schemas.to_vec()))),
            ("schema_owner", none()),
            ("default_character_set_catalog", none()),
            ("default_character_set_schema", none()),
            ("default_character_set_name", none()),
            ("sql_path", none()),
        ],
        |name| !matches!(name, "catalog_name" | "schema_name"),
    )
}

/// What PostgreSQL calls a key without a name.
fn key_name(table: &TableEntry) -> String {
    format!("{}_pkey", table.name)
}

/// The columns of primary keys and of what is UNIQUE.
fn keys(tables: &[TableEntry]) -> Result<MemTable> {
    let mut all: Vec<(&TableEntry, String, i32, usize)> = Vec::new();
    for table in tables {
        let primary = table.schema.key().filter(|key| key.is_unique());
        let primary = primary.map(|key| (key_name(table), key.columns()));
        let unique = table.schema.indexes().iter().filter(|index| index.is_unique());
        let unique = unique.map(|index| (index.name.clone(), index.columns()));
        for (name, columns) in primary.into_iter().chain(unique) {
            let numbered = (1..).zip(columns);
            all.extend(numbered.map(|(number, column)| (table, name.clone(), number, *column)));
        }
    }
    let names: ArrayRef = Arc::new(StringArray::from_iter_values(all.iter().map(|row| &row.1)));
    let text = |of: &dyn Fn(&TableEntry, usize) -> String| -> ArrayRef {
        Arc::new(StringArray::from_iter_values(
            all.iter().map(|(table, _, _, column)| of(table, *column)),
        ))
    };
    let same = |value: &str| text(&|_, _| value.to_owned());
    let positions: ArrayRef =
        Arc::new(all.iter().map(|(_, _, number, _)| Some(*number)).collect::<Int32Array>());
    table_of(
        vec![
            ("constraint_catalog", same(CATALOG)),
            ("constraint_schema", same(SCHEMA)),
            ("constraint_name", names),
            ("table_catalog", same(CATALOG)),
            ("table_schema", same(SCHEMA)),
            ("table_name", text(&|table, _| table.name.clone())),
            ("column_name", text(&|table, column| table.schema.columns()[column].name.clone())),
            ("ordinal_position", positions),
            ("position_in_unique_constraint", Arc::new(Int32Array::new_null(all.len()))),
        ],
        |name| name == "position_in_unique_constraint",
    )
}

/// Primary keys, what is UNIQUE, and checks.
fn constraints(tables: &[TableEntry]) -> Result<MemTable> {
    let mut all: Vec<(&TableEntry, String, &str)> = Vec::new();
    for table in tables {
        if table.schema.key().is_some_and(coload_ddl::Key::is_unique) {
            all.push((table, key_name(table), "PRIMARY KEY"));
        }
        let unique = table.schema.indexes().iter().filter(|index| index.is_unique());
        all.extend(unique.map(|index| (table, index.name.clone(), "UNIQUE")));
        for (number, check) in (1..).zip(table.schema.checks()) {
            let name = check.name.clone();
            let name = name.unwrap_or_else(|| format!("{}_check{number}", table.name));
            all.push((table, name, "CHECK"));
        }
    }
    let text = |of: &dyn Fn(&(&TableEntry, String, &str)) -> String| -> ArrayRef {
        Arc::new(StringArray::from_iter_values(all.iter().map(of)))
    };
    let same = |value: &str| text(&|_| value.to_owned());
    table_of(
        vec![
            ("constraint_catalog", same(CATALOG)),
            ("constraint_schema", same(SCHEMA)),
            ("constraint_name", text(&|(_, name, _)| name.clone())),
            ("table_catalog", same(CATALOG)),
            ("table_schema", same(SCHEMA)),
            ("table_name", text(&|(table, ..)| table.name.clone())),
            ("constraint_type", text(&|(_, _, kind)| (*kind).to_owned())),
            ("is_deferrable", same("NO")),
            ("initially_deferred", same("NO")),
            ("enforced", same("YES")),
        ],
        |_| false,
    )
}

/// The columns of the tables.
fn columns(tables: &[TableEntry]) -> Result<MemTable> {
    let all: Vec<(&TableEntry, usize, &Column)> = tables
        .iter()
        .flat_map(|table| {
            table.schema.columns().iter().enumerate().map(move |(index, c)| (table, index, c))
        })
        .collect();
    let text = |of: &dyn Fn(&TableEntry, &Column) -> Option<String>| -> ArrayRef {
        Arc::new(all.iter().map(|(table, _, column)| of(table, column)).collect::<StringArray>())
    };
    let position = |(_, index, _): &(_, usize, _)| Some(*index as u64 + 1);
    let positions: ArrayRef = Arc::new(all.iter().map(position).collect::<UInt64Array>());
    let mut made: Vec<(&str, ArrayRef)> = vec![
        ("table_catalog", text(&|_, _| Some(CATALOG.into()))),
        ("table_schema", text(&|_, _| Some(SCHEMA.into()))),
        ("table_name", text(&|table, _| Some(table.name.clone()))),
        ("column_name", text(&|_, column| Some(column.name.clone()))),
        ("ordinal_position", positions),
        (
            "column_default",
            text(&|_, column| {
                column.default.as_ref().map(|value| literal_sql(value, column.data_type))
            }),
        ),
        ("is_nullable", text(&|_, column| Some(if column.nullable { "YES" } else { "NO" }.into()))),
        ("data_type", text(&|_, column| Some(column.data_type.to_string()))),
    ];
    for (name, fact) in FACTS {
        let numbers: UInt64Array =
            all.iter().map(|(_, _, column)| fact(column.data_type)).collect();
        made.push((name, Arc::new(numbers)));
    }
    made.push(("interval_type", text(&|_, _| None)));
    let is_fact = |name: &str| FACTS.iter().any(|(fact, _)| *fact == name);
    table_of(made, |name| is_fact(name) || matches!(name, "column_default" | "interval_type"))
}

/// The indexes of the tables, a row for each of their columns.
fn statistics(tables: &[TableEntry]) -> Result<MemTable> {
    type Row<'a> = (&'a TableEntry, &'a Index, usize);
    let mut all: Vec<Row<'_>> = Vec::new();
    for table in tables {
        for index in table.schema.indexes() {
            all.extend((0..index.columns().len()).map(|place| (table, index, place)));
        }
    }
    let text = |of: &dyn Fn(&Row<'_>) -> String| -> ArrayRef {
        Arc::new(StringArray::from_iter_values(all.iter().map(of)))
    };
    let number = |of: &dyn Fn(&Row<'_>) -> u64| -> ArrayRef {
        Arc::new(all.iter().map(|row| Some(of(row))).collect::<UInt64Array>())
    };
    let column = |(table, index, place): &Row<'_>| {
        table.schema.columns()[index.columns()[*place]].name.clone()
    };
    table_of(
        vec![
            ("table_catalog", text(&|_| CATALOG.into())),
            ("table_schema", text(&|_| SCHEMA.into())),
            ("table_name", text(&|(table, ..)| table.name.clone())),
            ("non_unique", number(&|(_, index, _)| u64::from(!index.is_unique()))),
            ("index_name", text(&|(_, index, _)| index.name.clone())),
            ("seq_in_index", number(&|(_, _, place)| *place as u64 + 1)),
            ("column_name", text(&column)),
        ],
        |_| false,
    )
}

/// A table of columns, of which some may be NULL.
fn table_of(
    columns: Vec<(&str, ArrayRef)>,
    may_be_null: impl Fn(&str) -> bool,
) -> Result<MemTable> {
    let field = |(name, array): &(&str, ArrayRef)| {
        Field::new(*name, array.data_type().clone(), may_be_null(name))
    };
    let fields = columns.iter().map(field);
    let schema = Arc::new(ArrowSchema::new(fields.collect::<Vec<_>>()));
    let arrays = columns.into_iter().map(|(_, array)| array).collect();
    let batch = RecordBatch::try_new(Arc::clone(&schema), arrays)?;
    MemTable::try_new(schema, vec![vec![batch]])
}
