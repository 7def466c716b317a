//! Types of PostgreSQL and ours, both ways.

use coload_types::{DECIMAL_PRECISION_MAX, DataType, ElementType};

use tokio_postgres::types::Type;

use crate::engine::{Cell, TableColumn, TextCell};
use crate::read::ReadAs;

/// Most characters that a varchar of PostgreSQL is declared with.
const VARCHAR_MAX: u32 = 10_485_760;

/// The type of PostgreSQL that holds all values of ours.
pub fn type_name(data_type: DataType) -> String {
    match data_type {
        DataType::Boolean => "boolean".to_owned(),
        DataType::SmallInt => "smallint".to_owned(),
        DataType::Integer => "integer".to_owned(),
        DataType::BigInt => "bigint".to_owned(),
        DataType::Decimal { precision, scale } => format!("numeric({precision},{scale})"),
        DataType::Real => "real".to_owned(),
        DataType::Double => "double precision".to_owned(),
        DataType::Date => "date".to_owned(),
        DataType::Time => "time".to_owned(),
        DataType::Timestamp => "timestamp".to_owned(),
        DataType::TimestampTz => "timestamptz".to_owned(),
        // A char of PostgreSQL is padded, and forgets blanks at the end.
        DataType::Char(n) | DataType::Varchar(Some(n)) if (1..=VARCHAR_MAX).contains(&n) => {
            format!("varchar({n})")
        }
        DataType::Char(_) | DataType::Varchar(_) => "text".to_owned(),
        DataType::Binary(_) => "bytea".to_owned(),
        DataType::Uuid => "uuid".to_owned(),
        DataType::List(element) => format!("{}[]", type_name(element.data_type())),
    }
}

/// Asks for the columns of a table: its schema, `null` for those of the search path, and its name.
pub const COLUMNS_SQL: &str = "\
SELECT a.attname, pg_catalog.format_type(a.atttypid, a.atttypmod), t.typname, t.typtype::text,
       a.atttypmod::text, a.attnotnull::text,
       (a.attgenerated <> '' OR a.attidentity = 'a')::text, (a.atthasdef OR a.attidentity <> '')::text,
       a.atttypid::oid::text, t.typarray::oid::text, n.nspname
FROM pg_catalog.pg_attribute a
JOIN pg_catalog.pg_class c ON c.oid = a.attrelid
JOIN pg_catalog.pg_namespace n ON n.oid = c.relnamespace
JOIN pg_catalog.pg_type t ON t.oid = a.atttypid
WHERE c.oid = pg_catalog.to_regclass($1) AND c.relkind IN ('r', 'p', 'v', 'f', 'm')
  AND a.attnum > 0 AND NOT a.attisdropped
ORDER BY a.attnum";

/// A column as [`COLUMNS_SQL`] tells it; `None` when the answer is none.
pub fn column_of(row: &[TextCell]) -> Option<TableColumn> {
    let cell = |at: usize| row.get(at).and_then(Option::as_deref);
    let (base, kind) = (cell(2)?, cell(3)?);
    let modifier: i32 = cell(4)?.parse().ok()?;
    let (data_type, how) = data_type(base, kind, modifier);
    Some(TableColumn {
        name: cell(0)?.to_owned(),
        type_name: cell(1)?.to_owned(),
        data_type,
        cell: how,
        nullable: cell(5)? == "false",
        is_generated: cell(6)? == "true",
        has_default: cell(7)? == "true",
        type_number: cell(8)?.parse().ok()?,
        array_number: cell(9)?.parse().ok()?,
    })
}

/// What is read for a type, and how it goes.
fn data_type(base: &str, kind: &str, modifier: i32) -> (DataType, Cell) {
    let text = DataType::Varchar(None);
    // Digits, or characters, behind a header of four bytes.
    let given = (modifier >= 4).then_some(modifier - 4);
    let length = given.and_then(|length| u32::try_from(length).ok());
    let fraction_is_whole = modifier < 0 || modifier == 6;
    let of_type = |data_type| (data_type, Cell::OfType);
    match (kind, base) {
        ("b", "bool") => of_type(DataType::Boolean),
        ("b", "int2") => of_type(DataType::SmallInt),
        ("b", "int4") => of_type(DataType::Integer),
        ("b", "int8") => of_type(DataType::BigInt),
        ("b", "numeric") => match given.and_then(decimal) {
            Some(decimal) => of_type(decimal),
            // Any number of digits, or zeros before the point: only the server knows.
            None => (text, Cell::TextOnly),
        },
        ("b", "float4") => of_type(DataType::Real),
        ("b", "float8") => of_type(DataType::Double),
        ("b", "date") => of_type(DataType::Date),
        ("b", "time") if fraction_is_whole => of_type(DataType::Time),
        ("b", "timestamp") if fraction_is_whole => of_type(DataType::Timestamp),
        ("b", "timestamptz") if fraction_is_whole => of_type(DataType::TimestampTz),
        ("b", "time" | "timestamp" | "timestamptz") => (text, Cell::Rounds),
        ("b", "uuid") => of_type(DataType::Uuid),
        ("b", "bytea") => of_type(DataType::Binary(None)),
        ("b", "varchar") => of_type(DataType::Varchar(length)),
        ("b", "bpchar") => of_type(length.map_or(text, DataType::Char)),
        ("b", "text" | "json" | "xml" | "citext") | ("e", _) => of_type(text),
        ("b", "jsonb") => (text, Cell::Jsonb),
        ("b", _) if base.starts_with('_') => {
            let (element, cell) = data_type(&base[1..], kind, modifier);
            // The server looks at lengths.
            let element = if element.is_text() { text } else { element };
            match ElementType::of(element).filter(|_| cell == Cell::OfType) {
                // An array goes as text, which the server reads.
                Some(element) => (DataType::List(element), Cell::TextOnly),
                None => (text, Cell::TextOnly),
            }
        }
        _ => (text, Cell::TextOnly),
    }
}

/// The type that holds what is read of a type, and how its binary form is read; `None` where the server makes text of it.
pub fn read_type(of: &Type, modifier: i32) -> (DataType, Option<ReadAs>) {
    let text = DataType::Varchar(None);
    let (data_type, _) = data_type(of.name(), "b", modifier);
    let kind = match *of {
        Type::BOOL => ReadAs::Bool,
        Type::INT2 => ReadAs::Int(2),
        Type::INT4 => ReadAs::Int(4),
        Type::INT8 => ReadAs::Int(8),
        Type::OID => return (DataType::BigInt, Some(ReadAs::Unsigned(4))),
        Type::FLOAT4 => ReadAs::Float(4),
        Type::FLOAT8 => ReadAs::Float(8),
        Type::NUMERIC => match data_type {
            DataType::Decimal { precision, scale } => ReadAs::Decimal(precision, scale),
            _ => return (text, None),
        },
        Type::DATE => ReadAs::Date,
        // Fewer digits of a second are read as they are.
        Type::TIME => return (DataType::Time, Some(ReadAs::Time)),
        Type::TIMESTAMP => return (DataType::Timestamp, Some(ReadAs::Timestamp)),
        Type::TIMESTAMPTZ => return (DataType::TimestampTz, Some(ReadAs::Instant)),
        Type::UUID => ReadAs::Uuid,
        Type::BYTEA => ReadAs::Bytes,
        Type::TEXT | Type::VARCHAR | Type::BPCHAR => ReadAs::Text,
        // An array is made text by the server, and a list of it by us.
        _ if matches!(data_type, DataType::List(_)) => return (data_type, None),
        _ => return (text, None),
    };
    (data_type, Some(kind))
}

/// A numeric of so many digits, if it is a DECIMAL.
fn decimal(modifier: i32) -> Option<DataType> {
    let precision = u8::try_from(modifier >> 16 & 0xffff).ok()?;
    // Eleven bits with a sign; negative where zeros stand before the point.
    let scale = u8::try_from(((modifier & 0x7ff) ^ 1024) - 1024).ok()?;
    (precision <= DECIMAL_PRECISION_MAX && scale <= precision)
        .then_some(DataType::Decimal { precision, scale })
}
