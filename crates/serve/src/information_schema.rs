//! The views of the catalog: those of the query engine, but for the columns, whose types are those of CREATE TABLE.

use std::sync::Arc;

use async_trait::async_trait;
use coload_ddl::literal_sql;
use coload_store::TableEntry;
use coload_types::{Column, DataType};
use datafusion::arrow::array::{ArrayRef, StringArray, UInt64Array};
use datafusion::arrow::datatypes::{DataType as ArrowType, Field, Schema as ArrowSchema};
use datafusion::arrow::record_batch::RecordBatch;
use datafusion::catalog::information_schema::InformationSchemaProvider;
use datafusion::catalog::{MemTable, SchemaProvider, TableProvider};
use datafusion::error::Result;

use crate::catalog::{CATALOG, SCHEMA};

/// The view that is made here.
const COLUMNS: &str = "columns";

/// The views over some tables.
#[derive(Debug)]
pub(crate) struct Views {
    engine: InformationSchemaProvider,
    tables: Vec<TableEntry>,
}

impl Views {
    /// Of the tables that the caller may see.
    pub fn new(engine: InformationSchemaProvider, tables: Vec<TableEntry>) -> Self {
        Views { engine, tables }
    }
}

#[async_trait]
impl SchemaProvider for Views {
    fn table_names(&self) -> Vec<String> {
        self.engine.table_names()
    }

    async fn table(&self, name: &str) -> Result<Option<Arc<dyn TableProvider>>> {
        match name.eq_ignore_ascii_case(COLUMNS) {
            true => Ok(Some(Arc::new(columns(&self.tables)?))),
            false => self.engine.table(name).await,
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
    let may_be_null = |name: &str| name == "column_default" || name == "interval_type";
    let fields = made.iter().map(|(name, array)| {
        let is_number = *array.data_type() == ArrowType::UInt64 && *name != "ordinal_position";
        Field::new(*name, array.data_type().clone(), is_number || may_be_null(name))
    });
    let schema = Arc::new(ArrowSchema::new(fields.collect::<Vec<_>>()));
    let arrays = made.into_iter().map(|(_, array)| array).collect();
    let batch = RecordBatch::try_new(Arc::clone(&schema), arrays)?;
    MemTable::try_new(schema, vec![vec![batch]])
}
