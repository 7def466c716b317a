//! Types of MySQL and MariaDB and ours, both ways.

use coload_types::{DECIMAL_PRECISION_MAX, DataType, Error, Result};

use crate::engine::{Cell, TableColumn, TextCell};

/// Most characters of a text that is declared with its length: longer ones would fill the 65,535 bytes of a row.
const VARCHAR_MAX: u32 = 255;
/// Most digits behind the point.
const SCALE_MAX: u8 = 30;

/// The type of MySQL that holds all values of ours.
///
/// # Errors
/// `Invalid` when there is none.
pub fn type_name(column: &str, data_type: DataType) -> Result<String> {
    Ok(match data_type {
        DataType::Boolean => "tinyint(1)".to_owned(),
        DataType::SmallInt => "smallint".to_owned(),
        DataType::Integer => "int".to_owned(),
        DataType::BigInt => "bigint".to_owned(),
        DataType::Decimal { scale, .. } if scale > SCALE_MAX => {
            return Err(Error::Invalid(format!(
                "column {column} is {data_type}, and MySQL has at most {SCALE_MAX} digits behind the point (give \
                 --columns with fewer)"
            )));
        }
        DataType::Decimal { precision, scale } => format!("decimal({precision},{scale})"),
        DataType::Real => "float".to_owned(),
        DataType::Double => "double".to_owned(),
        DataType::Date => "date".to_owned(),
        DataType::Time => "time(6)".to_owned(),
        // A timestamp of MySQL ends in 2038.
        DataType::Timestamp | DataType::TimestampTz => "datetime(6)".to_owned(),
        DataType::Char(n) | DataType::Varchar(Some(n)) if n <= VARCHAR_MAX => {
            format!("varchar({n})")
        }
        DataType::Char(_) | DataType::Varchar(_) => "longtext".to_owned(),
        DataType::Binary(Some(n)) if n <= VARCHAR_MAX => format!("varbinary({n})"),
        DataType::Binary(_) => "longblob".to_owned(),
        DataType::Uuid => "char(36) CHARACTER SET ascii".to_owned(),
        DataType::List(_) => "json".to_owned(),
    })
}

/// Asks for the columns of a table, whose schema and name follow.
pub const COLUMNS_SQL: &str = "\
SELECT column_name, column_type, data_type, is_nullable, extra, column_default, numeric_precision, numeric_scale,
       character_maximum_length, datetime_precision, generation_expression
FROM information_schema.columns WHERE table_schema = COALESCE(?, DATABASE()) AND table_name = ?
ORDER BY ordinal_position";

/// Asks for the engine of a table.
pub const ENGINE_SQL: &str = "\
SELECT engine FROM information_schema.tables WHERE table_schema = COALESCE(?, DATABASE()) AND table_name = ?";

/// A column as [`COLUMNS_SQL`] tells it; `None` when the answer is none.
pub fn column_of(row: &[TextCell]) -> Option<TableColumn> {
    let cell = |at: usize| row.get(at).and_then(Option::as_deref);
    let number = |at: usize| cell(at).and_then(|text| text.parse::<u64>().ok());
    let (type_name, base) = (cell(1)?.to_lowercase(), cell(2)?.to_lowercase());
    let nullable = cell(3)? == "YES";
    let extra = cell(4).unwrap_or_default().to_lowercase();
    let facts = TypeFacts {
        name: &type_name,
        precision: number(6),
        scale: number(7),
        length: number(8),
        fraction: number(9),
    };
    let (data_type, how) = facts.data_type(&base);
    Some(TableColumn {
        name: cell(0)?.to_owned(),
        data_type,
        cell: how,
        nullable,
        is_generated: cell(10).is_some_and(|expression| !expression.is_empty()),
        has_default: cell(5).is_some() || extra.contains("auto_increment"),
        type_number: 0,
        array_number: 0,
        type_name,
    })
}

/// What the catalogue says of a type.
struct TypeFacts<'a> {
    name: &'a str,
    precision: Option<u64>,
    scale: Option<u64>,
    length: Option<u64>,
    fraction: Option<u64>,
}

impl TypeFacts<'_> {
    /// What is read for it, and how it goes.
    fn data_type(&self, base: &str) -> (DataType, Cell) {
        let text = DataType::Varchar(None);
        let of_type = |data_type| (data_type, Cell::OfType);
        let unsigned = self.name.contains("unsigned");
        let length = self.length.and_then(|length| u32::try_from(length).ok());
        let has_micros = self.fraction == Some(6);
        match base {
            "tinyint" if self.name.starts_with("tinyint(1)") && !unsigned => {
                of_type(DataType::Boolean)
            }
            "tinyint" | "year" => of_type(DataType::SmallInt),
            "smallint" if !unsigned => of_type(DataType::SmallInt),
            "smallint" | "mediumint" => of_type(DataType::Integer),
            "int" if !unsigned => of_type(DataType::Integer),
            "int" => of_type(DataType::BigInt),
            "bigint" if !unsigned => of_type(DataType::BigInt),
            "bigint" => of_type(DataType::Decimal { precision: 20, scale: 0 }),
            "decimal" => {
                let digits = |number: Option<u64>| number.and_then(|n| u8::try_from(n).ok());
                match (digits(self.precision), digits(self.scale)) {
                    (Some(precision), Some(scale)) if precision <= DECIMAL_PRECISION_MAX => {
                        of_type(DataType::Decimal { precision, scale })
                    }
                    // More digits than a DECIMAL of ours has: its text would be rounded.
                    _ => (text, Cell::Rounds),
                }
            }
            "float" | "double" if self.name.contains('(') => (text, Cell::Rounds),
            "float" => of_type(DataType::Real),
            "double" => of_type(DataType::Double),
            "date" => of_type(DataType::Date),
            "time" if has_micros => of_type(DataType::Time),
            "datetime" if has_micros => of_type(DataType::Timestamp),
            "timestamp" if has_micros => of_type(DataType::TimestampTz),
            "time" | "datetime" | "timestamp" => (text, Cell::Rounds),
            "varchar" | "tinytext" | "text" | "mediumtext" | "longtext" => {
                of_type(DataType::Varchar(length.filter(|_| base == "varchar")))
            }
            "char" => of_type(length.map_or(text, DataType::Char)),
            "binary" | "varbinary" | "tinyblob" | "blob" | "mediumblob" | "longblob" => {
                (DataType::Binary(None), Cell::Hex)
            }
            "enum" | "set" | "json" | "uuid" | "inet4" | "inet6" => of_type(text),
            // Bits, and what is in the plane.
            _ => (text, Cell::Rounds),
        }
    }
}
