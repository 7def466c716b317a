//! The views of the catalog: those of the query engine, but for the columns, whose types are those of CREATE TABLE, and for the
//! tables, of which they tell rows and bytes by the names that MySQL gives these.

use std::sync::Arc;

use async_trait::async_trait;
use coload_ddl::literal_sql;
use coload_store::TableEntry;
use coload_types::{Column, DataType};
use datafusion::arrow::array::{ArrayRef, StringArray, UInt64Array};
use datafusion::arrow::datatypes::{Field, Schema as ArrowSchema};
use datafusion::arrow::record_batch::RecordBatch;
use datafusion::catalog::information_schema::{INFORMATION_SCHEMA, InformationSchemaProvider};
use datafusion::catalog::{MemTable, SchemaProvider, TableProvider};
use datafusion::error::Result;

use crate::catalog::{CATALOG, SCHEMA};

/// Names of the views that are made here.
const COLUMNS: &str = "columns";
const TABLES: &str = "tables";

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
        let own = self.engine.table_names();
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
        self.engine.table_names()
    }

    async fn table(&self, name: &str) -> Result<Option<Arc<dyn TableProvider>>> {
        match name.to_ascii_lowercase().as_str() {
            COLUMNS => Ok(Some(Arc::new(columns(&self.tables)?))),
            TABLES => Ok(Some(Arc::new(self.tables()?))),
            _ => self.engine.table(name).await,
        }
    }

    fn table_exist(&self, name: &str) -> bool {
        self.engine.table_exist(name)
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
