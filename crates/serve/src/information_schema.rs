//! The views of the catalog: those of the query engine, but for the columns, whose types are those of CREATE TABLE.

use std::sync::Arc;

use async_trait::async_trait;
use coload_ddl::{Index, Key, literal_sql};
use coload_store::TableEntry;
use coload_types::{Column, DataType};
use datafusion::arrow::array::{ArrayRef, StringArray, UInt64Array};
use datafusion::arrow::datatypes::{DataType as ArrowType, Field, Schema as ArrowSchema};
use datafusion::arrow::record_batch::RecordBatch;
use datafusion::catalog::information_schema::InformationSchemaProvider;
use datafusion::catalog::{MemTable, SchemaProvider, TableProvider};
use datafusion::error::Result;

use crate::catalog::{CATALOG, SCHEMA};

/// The views that are made here: the first in place of the engine's, the others beside them.
const COLUMNS: &str = "columns";
const CONSTRAINTS: &str = "table_constraints";
const STATISTICS: &str = "statistics";

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
        let mut names = self.engine.table_names();
        names.extend([CONSTRAINTS.to_owned(), STATISTICS.to_owned()]);
        names
    }

    async fn table(&self, name: &str) -> Result<Option<Arc<dyn TableProvider>>> {
        Ok(match &name.to_ascii_lowercase()[..] {
            COLUMNS => Some(Arc::new(columns(&self.tables)?)),
            CONSTRAINTS => Some(Arc::new(constraints(&self.tables)?)),
            STATISTICS => Some(Arc::new(statistics(&self.tables)?)),
            _ => self.engine.table(name).await?,
        })
    }

    fn table_exist(&self, name: &str) -> bool {
        let is_own = [CONSTRAINTS, STATISTICS].iter().any(|own| name.eq_ignore_ascii_case(own));
        is_own || self.engine.table_exist(name)
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

/// The keys and UNIQUE constraints of the tables.
fn constraints(tables: &[TableEntry]) -> Result<MemTable> {
    let mut all: Vec<(&TableEntry, String, &str)> = Vec::new();
    for table in tables {
        if table.schema.key().is_some_and(Key::is_unique) {
            all.push((table, format!("{}_pkey", table.name), "PRIMARY KEY"));
        }
        let unique = table.schema.indexes().iter().filter(|index| index.is_unique());
        all.extend(unique.map(|index| (table, index.name.clone(), "UNIQUE")));
    }
    let text = |of: &dyn Fn(&(&TableEntry, String, &str)) -> String| -> ArrayRef {
        Arc::new(all.iter().map(|row| Some(of(row))).collect::<StringArray>())
    };
    view(vec![
        ("constraint_catalog", text(&|_| CATALOG.into())),
        ("constraint_schema", text(&|_| SCHEMA.into())),
        ("constraint_name", text(&|(_, name, _)| name.clone())),
        ("table_catalog", text(&|_| CATALOG.into())),
        ("table_schema", text(&|_| SCHEMA.into())),
        ("table_name", text(&|(table, ..)| table.name.clone())),
        ("constraint_type", text(&|(_, _, kind)| (*kind).to_owned())),
    ])
}

/// The indexes of the tables, a row for each of their columns.
fn statistics(tables: &[TableEntry]) -> Result<MemTable> {
    let mut all: Vec<(&TableEntry, &Index, usize)> = Vec::new();
    for table in tables {
        for index in table.schema.indexes() {
            all.extend((0..index.columns().len()).map(|place| (table, index, place)));
        }
    }
    type Row<'a> = (&'a TableEntry, &'a Index, usize);
    let text = |of: &dyn Fn(&Row<'_>) -> String| -> ArrayRef {
        Arc::new(all.iter().map(|row| Some(of(row))).collect::<StringArray>())
    };
    let number = |of: &dyn Fn(&Row<'_>) -> u64| -> ArrayRef {
        Arc::new(all.iter().map(|row| Some(of(row))).collect::<UInt64Array>())
    };
    let column = |(table, index, place): &Row<'_>| {
        table.schema.columns()[index.columns()[*place]].name.clone()
    };
    view(vec![
        ("table_catalog", text(&|_| CATALOG.into())),
        ("table_schema", text(&|_| SCHEMA.into())),
        ("table_name", text(&|(table, ..)| table.name.clone())),
        ("non_unique", number(&|(_, index, _)| u64::from(!index.is_unique()))),
        ("index_name", text(&|(_, index, _)| index.name.clone())),
        ("seq_in_index", number(&|(_, _, place)| *place as u64 + 1)),
        ("column_name", text(&column)),
    ])
}

/// A view of these columns, none of which has NULL.
fn view(columns: Vec<(&str, ArrayRef)>) -> Result<MemTable> {
    let field =
        |(name, array): &(&str, ArrayRef)| Field::new(*name, array.data_type().clone(), false);
    let schema = Arc::new(ArrowSchema::new(columns.iter().map(field).collect::<Vec<_>>()));
    let arrays = columns.into_iter().map(|(_, array)| array).collect();
    let batch = RecordBatch::try_new(Arc::clone(&schema), arrays)?;
    MemTable::try_new(schema, vec![vec![batch]])
}
