//! SQL types as Arrow types.
//!
//! ```text
//!   SQL type                     Arrow type in answers
//!   BOOLEAN                      Boolean
//!   SMALLINT INTEGER BIGINT      Int16 Int32 Int64
//!   DECIMAL(p, s)                Decimal128(p, s)
//!   REAL DOUBLE                  Float32 Float64
//!   DATE                         Date32
//!   TIME                         Time64(microsecond)
//!   TIMESTAMP                    Timestamp(microsecond)
//!   TIMESTAMP WITH TIME ZONE     Timestamp(microsecond, "+00:00")
//!   CHAR VARCHAR TEXT            Utf8View
//!   BINARY                       BinaryView
//!   UUID                         Utf8View: 36 characters, lower case, with hyphens
//!   lists, such as BIGINT[]      List of the element's
//! ```
//!
//! A UUID is text in SQL, so that it compares with literals and joins with text. The order of its
//! text is the order of its stored number.

use std::sync::Arc;

use coload_ddl::Schema;
use coload_types::{Column, DataType, ElementType};
use datafusion::arrow::datatypes::{
    DataType as ArrowType, Field, Schema as ArrowSchema, SchemaRef, TimeUnit,
};

/// The zone in which instants are shown.
pub(crate) const UTC: &str = "+00:00";

/// The Arrow type in which a column of this type leaves the scan.
pub fn arrow_type(data_type: DataType) -> ArrowType {
    match data_type {
        DataType::Boolean => ArrowType::Boolean,
        DataType::SmallInt => ArrowType::Int16,
        DataType::Integer => ArrowType::Int32,
        DataType::BigInt => ArrowType::Int64,
        // A scale is at most 38, so it fits.
        DataType::Decimal { precision, scale } => ArrowType::Decimal128(precision, scale as i8),
        DataType::Real => ArrowType::Float32,
        DataType::Double => ArrowType::Float64,
        DataType::Date => ArrowType::Date32,
        DataType::Time => ArrowType::Time64(TimeUnit::Microsecond),
        DataType::Timestamp => ArrowType::Timestamp(TimeUnit::Microsecond, None),
        DataType::TimestampTz => ArrowType::Timestamp(TimeUnit::Microsecond, Some(UTC.into())),
        DataType::Char(_) | DataType::Varchar(_) | DataType::Uuid => ArrowType::Utf8View,
        DataType::Binary(_) => ArrowType::BinaryView,
        DataType::List(element) => {
            ArrowType::List(Arc::new(Field::new_list_field(arrow_type(element.data_type()), true)))
        }
    }
}

/// The Arrow schema of a table.
pub fn arrow_schema(schema: &Schema) -> SchemaRef {
    let fields = schema
        .columns()
        .iter()
        .map(|c| Field::new(&c.name, arrow_type(c.data_type), c.nullable))
        .collect::<Vec<_>>();
    Arc::new(ArrowSchema::new(fields))
}

/// The SQL type that holds every value of an Arrow type, for CREATE TABLE AS; `None` when there is
/// none.
pub fn sql_type(arrow: &ArrowType) -> Option<DataType> {
    Some(match arrow {
        ArrowType::Boolean => DataType::Boolean,
        ArrowType::Int8 | ArrowType::Int16 | ArrowType::UInt8 => DataType::SmallInt,
        ArrowType::Int32 | ArrowType::UInt16 => DataType::Integer,
        ArrowType::Int64 | ArrowType::UInt32 => DataType::BigInt,
        ArrowType::UInt64 => DataType::Decimal { precision: 20, scale: 0 },
        ArrowType::Decimal32(p, s) | ArrowType::Decimal64(p, s) | ArrowType::Decimal128(p, s) => {
            DataType::decimal(*p, u8::try_from(*s).ok()?).ok()?
        }
        ArrowType::Float16 | ArrowType::Float32 => DataType::Real,
        ArrowType::Float64 => DataType::Double,
        ArrowType::Date32 | ArrowType::Date64 => DataType::Date,
        ArrowType::Time32(_) | ArrowType::Time64(_) => DataType::Time,
        ArrowType::Timestamp(_, None) => DataType::Timestamp,
        ArrowType::Timestamp(_, Some(_)) => DataType::TimestampTz,
        ArrowType::Utf8 | ArrowType::LargeUtf8 | ArrowType::Utf8View | ArrowType::Null => {
            DataType::Varchar(None)
        }
        ArrowType::Binary
        | ArrowType::LargeBinary
        | ArrowType::BinaryView
        | ArrowType::FixedSizeBinary(_) => DataType::Binary(None),
        ArrowType::Dictionary(_, values) => sql_type(values)?,
        ArrowType::List(item)
        | ArrowType::LargeList(item)
        | ArrowType::ListView(item)
        | ArrowType::LargeListView(item)
        | ArrowType::FixedSizeList(item, _) => {
            DataType::List(ElementType::of(sql_type(item.data_type())?)?)
        }
        _ => return None,
    })
}

/// The columns of a table made from a query's answer.
///
/// # Errors
/// `Invalid` when a column has a type that a table cannot hold, or no name, or two have one name.
pub(crate) fn table_schema(arrow: &ArrowSchema) -> coload_types::Result<Schema> {
    let columns = arrow
        .fields()
        .iter()
        .map(|field| {
            check_name(field.name())?;
            let data_type = sql_type(field.data_type()).ok_or_else(|| {
                coload_types::Error::Invalid(format!(
                    "column {} of the query is {}, which a table cannot hold (use CAST)",
                    field.name(),
                    field.data_type()
                ))
            })?;
            Ok(Column::new(field.name(), data_type))
        })
        .collect::<coload_types::Result<Vec<_>>>()?;
    Schema::new(columns)
}

/// Checks that a column of a table that is made has a name.
///
/// # Errors
/// `Invalid` when it has none.
pub(crate) fn check_name(name: &str) -> coload_types::Result<()> {
    match name {
        "" => Err(coload_types::Error::Invalid(
            "a column has no name: give it one, as in SELECT 1 AS name".to_owned(),
        )),
        _ => Ok(()),
    }
}
