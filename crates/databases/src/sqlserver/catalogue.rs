//! Types of SQL Server and ours, both ways.

use coload_types::{DataType, Value};

use super::cells::{BYTES_MAX, UNITS_MAX};
use crate::engine::{Cell, TableColumn, TextCell};

/// The type of SQL Server that holds all values of ours, but for texts that are longer in UTF-16.
pub fn type_name(data_type: DataType) -> String {
    match data_type {
        DataType::Boolean => "bit".to_owned(),
        DataType::SmallInt => "smallint".to_owned(),
        DataType::Integer => "int".to_owned(),
        DataType::BigInt => "bigint".to_owned(),
        DataType::Decimal { precision, scale } => format!("decimal({precision},{scale})"),
        DataType::Real => "real".to_owned(),
        DataType::Double => "float".to_owned(),
        DataType::Date => "date".to_owned(),
        DataType::Time => "time(6)".to_owned(),
        DataType::Timestamp => "datetime2(6)".to_owned(),
        DataType::TimestampTz => "datetimeoffset(6)".to_owned(),
        // Char is not padded by us, and would be by the server.
        DataType::Char(n) | DataType::Varchar(Some(n)) if (1..=UNITS_MAX).contains(&n) => {
            format!("nvarchar({n})")
        }
        DataType::Char(_) | DataType::Varchar(_) => "nvarchar(max)".to_owned(),
        DataType::Binary(Some(n)) if (1..=BYTES_MAX).contains(&n) => format!("varbinary({n})"),
        DataType::Binary(_) => "varbinary(max)".to_owned(),
        DataType::Uuid => "uniqueidentifier".to_owned(),
        // As JSON, whose functions read it.
        DataType::List(_) => "nvarchar(max)".to_owned(),
    }
}

/// A default as SQL Server reads it.
pub fn default_sql(value: &Value, data_type: DataType) -> String {
    let literal = coload_ddl::literal_sql(value, data_type);
    match data_type {
        DataType::Boolean => u8::from(literal.eq_ignore_ascii_case("true")).to_string(),
        DataType::Binary(_) => {
            format!("0x{}", literal.trim_matches('\'').trim_start_matches("\\x"))
        }
        _ if literal.starts_with('\'') => format!("N{literal}"),
        _ => literal,
    }
}

/// Asks for the columns of a table, whose quoted name follows.
pub const COLUMNS_SQL: &str = "\
SELECT c.name, COALESCE(t.name, TYPE_NAME(c.user_type_id)), CAST(c.max_length AS int), CAST(c.precision AS int),
       CAST(c.scale AS int), CAST(c.is_nullable AS int), CAST(c.is_identity AS int), CAST(c.is_computed AS int),
       CASE WHEN c.default_object_id <> 0 THEN 1 ELSE 0 END,
       CAST(COLLATIONPROPERTY(c.collation_name, 'CodePage') AS int),
       CAST(COLUMNPROPERTY(c.object_id, c.name, 'GeneratedAlwaysType') AS int)
FROM sys.columns AS c LEFT JOIN sys.types AS t ON t.user_type_id = c.system_type_id
WHERE c.object_id = OBJECT_ID(@P1) ORDER BY c.column_id";

/// A column as [`COLUMNS_SQL`] tells it; `None` when the answer is none.
pub fn column_of(row: &[TextCell]) -> Option<TableColumn> {
    let cell = |at: usize| row.get(at).and_then(Option::as_deref);
    let number = |at: usize| cell(at).and_then(|text| text.parse::<i64>().ok());
    let base = cell(1)?.to_lowercase();
    let (length, precision, scale) = (number(2)?, number(3)?, number(4)?);
    let is_set = |at| number(at).is_some_and(|value| value != 0);
    let digits = |number: i64| u8::try_from(number).unwrap_or(0);
    let characters = |bytes: i64| {
        let length = u32::try_from(length).ok()?;
        Some(length / bytes as u32).filter(|length| *length > 0)
    };
    let text = DataType::Varchar(None);
    let of_type = |data_type: DataType, name: String| (data_type, Cell::OfType, name);
    let with = |length: Option<u32>| match length {
        Some(length) => format!("{base}({length})"),
        None => format!("{base}(max)"),
    };
    let (data_type, how, name) = match base.as_str() {
        "bit" => of_type(DataType::Boolean, base.clone()),
        "tinyint" | "smallint" => of_type(DataType::SmallInt, base.clone()),
        "int" => of_type(DataType::Integer, base.clone()),
        "bigint" => of_type(DataType::BigInt, base.clone()),
        "decimal" | "numeric" => {
            let (precision, scale) = (digits(precision), digits(scale));
            let name = format!("{base}({precision},{scale})");
            of_type(DataType::Decimal { precision, scale }, name)
        }
        "money" => of_type(DataType::Decimal { precision: 19, scale: 4 }, base.clone()),
        "smallmoney" => of_type(DataType::Decimal { precision: 10, scale: 4 }, base.clone()),
        "real" => of_type(DataType::Real, base.clone()),
        "float" => of_type(DataType::Double, base.clone()),
        "date" => of_type(DataType::Date, base.clone()),
        "time" => of_type(DataType::Time, format!("{base}({scale})")),
        "datetime2" => of_type(DataType::Timestamp, format!("{base}({scale})")),
        "datetimeoffset" => of_type(DataType::TimestampTz, format!("{base}({scale})")),
        "datetime" | "smalldatetime" => of_type(DataType::Timestamp, base.clone()),
        "nchar" => of_type(characters(2).map_or(text, DataType::Char), with(characters(2))),
        "char" => of_type(characters(1).map_or(text, DataType::Char), with(characters(1))),
        "nvarchar" => of_type(DataType::Varchar(characters(2)), with(characters(2))),
        "varchar" => of_type(DataType::Varchar(characters(1)), with(characters(1))),
        "text" | "ntext" | "xml" | "json" => of_type(text, base.clone()),
        "binary" | "varbinary" => of_type(DataType::Binary(None), with(characters(1))),
        "image" => of_type(DataType::Binary(None), base.clone()),
        "uniqueidentifier" => of_type(DataType::Uuid, base.clone()),
        // Its values are the server's.
        "timestamp" | "rowversion" => of_type(DataType::Binary(None), base.clone()),
        _ => (text, Cell::Rounds, base.clone()),
    };
    let is_version = matches!(base.as_str(), "timestamp" | "rowversion");
    Some(TableColumn {
        name: cell(0)?.to_owned(),
        type_name: name,
        data_type,
        cell: how,
        nullable: is_set(5),
        is_generated: is_set(6) || is_set(7) || is_set(10) || is_version,
        has_default: is_set(8),
        // The code page, of which text that is not Unicode is.
        type_number: number(9).and_then(|page| u32::try_from(page).ok()).unwrap_or(0),
        array_number: 0,
    })
}
