//! Tables as schemas of Parquet.
//!
//! ```text
//!   SQL type                     Parquet
//!   BOOLEAN                      BOOLEAN
//!   SMALLINT INTEGER BIGINT      INT32 of 16 bits, INT32, INT64
//!   DECIMAL(p, s)                INT32 to 9 digits, INT64 to 18, then as few bytes as hold p digits; DECIMAL(p, s)
//!   REAL DOUBLE                  FLOAT DOUBLE
//!   DATE                         INT32, DATE
//!   TIME                         INT64, microseconds
//!   TIMESTAMP                    INT64, microseconds, local
//!   TIMESTAMP WITH TIME ZONE     INT64, microseconds, UTC
//!   CHAR VARCHAR                 BYTE_ARRAY, STRING
//!   BINARY                       BYTE_ARRAY
//!   UUID                         BYTE_ARRAY, STRING: 36 characters, lower case, with hyphens
//!   BIGINT[] and other lists     LIST: a group of repeated groups `list` of one OPTIONAL `element`
//! ```
//!
//! These are the types that COPY writes. NOT NULL is REQUIRED. What Parquet has no word for, the length of a text, that it
//! is a UUID, a DEFAULT, is in the metadata of the file, as the list of columns in SQL.

use std::sync::Arc;

use coload_ddl::{Schema, column_sql, parse_columns};
use coload_types::{Column, DECIMAL_INT_PRECISION_MAX, DataType, ElementType, Error, Result};
use parquet::basic::{ConvertedType, LogicalType, Repetition, TimeUnit, Type as Physical};
use parquet::errors::ParquetError;
use parquet::file::metadata::FileMetaData;
use parquet::schema::types::{Type, TypePtr};

/// Key of the list of columns in the metadata of a file.
pub const COLUMNS_KEY: &str = "coload.columns";

/// What the parts of a list are called, as the format's documentation has it.
const LIST: &str = "list";
const ELEMENT: &str = "element";

/// Most digits of a DECIMAL of 32 bits.
const DECIMAL_INT32_PRECISION_MAX: u8 = 9;

/// The schema of a file of a table.
///
/// # Errors
/// `Invalid` when the library does not take a name.
pub fn file_schema(schema: &Schema) -> Result<TypePtr> {
    let fields = schema.columns().iter().map(|c| parquet_column(c).map(Arc::new));
    let fields = fields.collect::<std::result::Result<Vec<_>, _>>().map_err(refused)?;
    let group = Type::group_type_builder("schema").with_fields(fields).build();
    group.map(Arc::new).map_err(refused)
}

fn refused(error: ParquetError) -> Error {
    Error::Invalid(format!("the columns cannot be written as Parquet: {error}"))
}

fn parquet_column(column: &Column) -> std::result::Result<Type, ParquetError> {
    if let DataType::List(element) = column.data_type {
        let item = parquet_column(&Column::new(ELEMENT, element.data_type()))?;
        let repeated = Type::group_type_builder(LIST)
            .with_repetition(Repetition::REPEATED)
            .with_fields(vec![Arc::new(item)])
            .build()?;
        let repetition = if column.nullable { Repetition::OPTIONAL } else { Repetition::REQUIRED };
        return Type::group_type_builder(&column.name)
            .with_repetition(repetition)
            .with_logical_type(Some(LogicalType::List))
            .with_fields(vec![Arc::new(repeated)])
            .build();
    }
    let (physical, logical) = parquet_type(column.data_type);
    let repetition = if column.nullable { Repetition::OPTIONAL } else { Repetition::REQUIRED };
    let builder = Type::primitive_type_builder(&column.name, physical)
        .with_repetition(repetition)
        .with_logical_type(logical);
    match column.data_type {
        DataType::Decimal { precision, scale } => builder
            .with_length(match physical {
                Physical::FIXED_LEN_BYTE_ARRAY => decimal_bytes(precision) as i32,
                _ => -1,
            })
            .with_precision(i32::from(precision))
            .with_scale(i32::from(scale))
            .build(),
        _ => builder.build(),
    }
}

/// How values of a type are stored, and what they mean.
fn parquet_type(data_type: DataType) -> (Physical, Option<LogicalType>) {
    let moment = |is_utc| Some(LogicalType::timestamp(is_utc, TimeUnit::MICROS));
    match data_type {
        DataType::Boolean => (Physical::BOOLEAN, None),
        DataType::SmallInt => (Physical::INT32, Some(LogicalType::integer(16, true))),
        DataType::Integer => (Physical::INT32, None),
        DataType::BigInt => (Physical::INT64, None),
        DataType::Decimal { precision, scale } => {
            let physical = match precision {
                digits if digits <= DECIMAL_INT32_PRECISION_MAX => Physical::INT32,
                digits if digits <= DECIMAL_INT_PRECISION_MAX => Physical::INT64,
                _ => Physical::FIXED_LEN_BYTE_ARRAY,
            };
            (physical, Some(LogicalType::decimal(i32::from(scale), i32::from(precision))))
        }
        DataType::Real => (Physical::FLOAT, None),
        DataType::Double => (Physical::DOUBLE, None),
        DataType::Date => (Physical::INT32, Some(LogicalType::Date)),
        DataType::Time => (Physical::INT64, Some(LogicalType::time(false, TimeUnit::MICROS))),
        DataType::Timestamp => (Physical::INT64, moment(false)),
        DataType::TimestampTz => (Physical::INT64, moment(true)),
        DataType::Char(_) | DataType::Varchar(_) | DataType::Uuid => {
            (Physical::BYTE_ARRAY, Some(LogicalType::String))
        }
        DataType::Binary(_) => (Physical::BYTE_ARRAY, None),
        DataType::List(element) => parquet_type(element.data_type()),
    }
}

/// Bytes of a number of so many digits with its sign.
pub(crate) fn decimal_bytes(precision: u8) -> usize {
    let largest = 10_i128.pow(u32::from(precision)) - 1;
    let bits = i128::BITS - largest.leading_zeros() + 1;
    bits.div_ceil(8) as usize
}

/// The columns of a table of which a file may be: as its metadata says, if that is so, else as its types say.
///
/// # Errors
/// `Invalid` when a column has a type that a load does not write.
pub fn read_schema(file: &FileMetaData) -> Result<Schema> {
    let pairs = file.key_value_metadata().map_or(&[][..], Vec::as_slice);
    let list = pairs.iter().find(|pair| pair.key == COLUMNS_KEY).and_then(|p| p.value.as_ref());
    if let Some(schema) = list.and_then(|list| parse_columns(list).ok())
        && check_schema(file, &schema).is_ok()
    {
        return Ok(schema);
    }
    let columns = file.schema().get_fields().iter().map(|field| {
        column_of(field).ok_or_else(|| {
            Error::Invalid(format!(
                "column {} is {}, which a load does not write",
                field.name(),
                describe(field)
            ))
        })
    });
    Schema::new(columns.collect::<Result<_>>()?)
}

/// Checks that a file has the columns that a load writes: names, types, and which may be NULL.
///
/// # Errors
/// `Invalid` that names the column and both types.
pub fn check_schema(file: &FileMetaData, schema: &Schema) -> Result<()> {
    let (fields, columns) = (file.schema().get_fields(), schema.columns());
    for (field, column) in fields.iter().zip(columns) {
        let is_same = column_of(field).is_some_and(|known| {
            known.name == column.name
                && known.nullable == column.nullable
                && stored_type(known.data_type) == stored_type(column.data_type)
        });
        if !is_same {
            let there = match column_of(field) {
                Some(known) => column_sql(&known),
                None => format!("{} {}", field.name(), describe(field)),
            };
            return Err(Error::Invalid(format!(
                "it has the column {there}, and the load {}",
                column_sql(&Column { default: None, ..column.clone() })
            )));
        }
    }
    let missing = |there: &str, more: &str, name: &str| {
        Err(Error::Invalid(format!("{there} has no column {name}, which {more} has")))
    };
    match (fields.get(columns.len()), columns.get(fields.len())) {
        (Some(field), _) => missing("the load", "it", field.name()),
        (_, Some(column)) => missing("it", "the load", &column.name),
        (None, None) => Ok(()),
    }
}

/// The type of which no more is left in Parquet than of this one.
fn stored_type(data_type: DataType) -> DataType {
    match data_type {
        DataType::Char(_) | DataType::Varchar(_) | DataType::Uuid => DataType::Varchar(None),
        DataType::Binary(_) => DataType::Binary(None),
        DataType::List(ElementType::Uuid) => DataType::List(ElementType::Varchar),
        other => other,
    }
}

/// The column that a field is; `None` for what a load does not write.
fn column_of(field: &Type) -> Option<Column> {
    let info = field.get_basic_info();
    let nullable = match info.repetition() {
        Repetition::OPTIONAL => true,
        Repetition::REQUIRED => false,
        Repetition::REPEATED => return None,
    };
    let data_type = match field.is_group() {
        true => DataType::List(element_of(field)?),
        false => type_of(field, field.get_physical_type())?,
    };
    Some(Column { nullable, ..Column::new(field.name(), data_type) })
}

/// The type of the elements of a list as a load writes it.
fn element_of(field: &Type) -> Option<ElementType> {
    let only = |of: &Type, name: &str| match of.get_fields() {
        [field] if field.name() == name => Some(Arc::clone(field)),
        _ => None,
    };
    let is_list = field.get_basic_info().logical_type_ref() == Some(&LogicalType::List);
    let list = only(field, LIST).filter(|list| is_list && list.is_group())?;
    let element = only(&list, ELEMENT).and_then(|element| column_of(&element))?;
    // A UUID is written as text, and so is its element.
    ElementType::of(element.data_type).filter(|_| element.nullable)
}

fn type_of(field: &Type, physical: Physical) -> Option<DataType> {
    let info = field.get_basic_info();
    let logical = info.logical_type_ref().cloned();
    // Files of old writers have the former words for what a type means.
    let converted = if logical.is_some() { ConvertedType::NONE } else { info.converted_type() };
    let is = |wanted: &LogicalType| logical.as_ref() == Some(wanted);
    let bare = logical.is_none() && converted == ConvertedType::NONE;
    let integer = |bits| is(&LogicalType::integer(bits, true));
    Some(match physical {
        Physical::BOOLEAN if bare => DataType::Boolean,
        Physical::FLOAT if bare => DataType::Real,
        Physical::DOUBLE if bare => DataType::Double,
        Physical::INT32 if integer(16) || converted == ConvertedType::INT_16 => DataType::SmallInt,
        Physical::INT32 if bare || integer(32) || converted == ConvertedType::INT_32 => {
            DataType::Integer
        }
        Physical::INT64 if bare || integer(64) || converted == ConvertedType::INT_64 => {
            DataType::BigInt
        }
        Physical::INT32 if is(&LogicalType::Date) || converted == ConvertedType::DATE => {
            DataType::Date
        }
        Physical::INT64 if is(&LogicalType::time(false, TimeUnit::MICROS)) => DataType::Time,
        Physical::INT64 if is(&LogicalType::timestamp(false, TimeUnit::MICROS)) => {
            DataType::Timestamp
        }
        Physical::INT64 if is(&LogicalType::timestamp(true, TimeUnit::MICROS)) => {
            DataType::TimestampTz
        }
        Physical::INT32 | Physical::INT64 | Physical::FIXED_LEN_BYTE_ARRAY
            if info.converted_type() == ConvertedType::DECIMAL =>
        {
            let (precision, scale) = (field.get_precision(), field.get_scale());
            DataType::decimal(u8::try_from(precision).ok()?, u8::try_from(scale).ok()?).ok()?
        }
        Physical::BYTE_ARRAY if is(&LogicalType::String) || converted == ConvertedType::UTF8 => {
            DataType::Varchar(None)
        }
        Physical::BYTE_ARRAY if bare => DataType::Binary(None),
        _ => return None,
    })
}

/// A field that is no column, in the words of Parquet.
fn describe(field: &Type) -> String {
    if field.is_group() {
        return "nested".to_owned();
    }
    let info = field.get_basic_info();
    let meaning = match (info.logical_type_ref(), info.converted_type()) {
        (Some(logical), _) => format!(" ({logical:?})"),
        (None, ConvertedType::NONE) => String::new(),
        (None, converted) => format!(" ({converted})"),
    };
    let repeated = if info.repetition() == Repetition::REPEATED { "repeated " } else { "" };
    format!("{repeated}{}{meaning}", field.get_physical_type())
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]
    use super::*;

    use parquet::schema::parser::parse_message_type;
    use parquet::schema::types::SchemaDescriptor;

    const ALL: &str = "a BOOLEAN, b SMALLINT NOT NULL, c INTEGER, d BIGINT, e DECIMAL(1,0), f DECIMAL(9,2), \
         g DECIMAL(18,18), h DECIMAL(19,3), i DECIMAL(38,10), j REAL, k DOUBLE, l DATE, m TIME, n TIMESTAMP, \
         o TIMESTAMP WITH TIME ZONE, p CHAR(3), q VARCHAR(10), r VARCHAR, s BINARY(4), t UUID, u BIGINT[], \
         v VARCHAR[] NOT NULL, w UUID[], x DECIMAL(38,10)[]";

    fn file(schema: TypePtr) -> FileMetaData {
        FileMetaData::new(1, 0, None, None, Arc::new(SchemaDescriptor::new(schema)), None)
    }

    fn message(text: &str) -> FileMetaData {
        file(Arc::new(parse_message_type(text).unwrap()))
    }

    #[test]
    fn what_is_written_of_a_schema_is_read_as_the_same() {
        let schema = parse_columns(ALL).unwrap();
        let file = file(file_schema(&schema).unwrap());
        check_schema(&file, &schema).unwrap();
        let read = read_schema(&file).unwrap();
        for (column, known) in schema.columns().iter().zip(read.columns()) {
            assert_eq!((&column.name, column.nullable), (&known.name, known.nullable));
            assert_eq!(stored_type(column.data_type), known.data_type, "{}", column.name);
        }
    }

    #[test]
    fn columns_that_differ_are_named_with_both_types() {
        let there = file(file_schema(&parse_columns("a BIGINT, b DECIMAL(5,2)").unwrap()).unwrap());
        for (load, parts) in [
            ("a INTEGER, b DECIMAL(5,2)", &["a BIGINT", "a INTEGER"][..]),
            ("a BIGINT, b DECIMAL(6,2)", &["b DECIMAL(5,2)", "b DECIMAL(6,2)"]),
            ("a BIGINT NOT NULL, b DECIMAL(5,2)", &["a BIGINT,", "a BIGINT NOT NULL"]),
            ("b DECIMAL(5,2), a BIGINT", &["a BIGINT", "b DECIMAL(5,2)"]),
            ("a BIGINT", &["the load has no column b"]),
            ("a BIGINT, b DECIMAL(5,2), c DATE", &["it has no column c"]),
        ] {
            let error = check_schema(&there, &parse_columns(load).unwrap()).unwrap_err();
            for part in parts {
                assert!(error.to_string().contains(part), "{load}: {error}");
            }
        }
    }

    #[test]
    fn types_of_other_writers_are_known_or_refused() {
        let known = message(
            "message m { optional int64 a (INTEGER(64,true)); optional int32 b (INT_32); \
             optional binary c (UTF8); optional fixed_len_byte_array(16) d (DECIMAL(38,2)); }",
        );
        let schema = read_schema(&known).unwrap();
        let types: Vec<String> = schema.columns().iter().map(column_sql).collect();
        assert_eq!(types, ["a BIGINT", "b INTEGER", "c VARCHAR", "d DECIMAL(38,2)"]);
        for (field, part) in [
            ("optional int64 a (TIMESTAMP(MILLIS,true));", "Timestamp"),
            ("optional int32 a (INTEGER(32,false));", "Integer"),
            ("optional int32 a (UINT_32);", "UINT_32"),
            ("optional int96 a;", "INT96"),
            ("repeated int32 a;", "repeated INT32"),
            ("optional group a (LIST) { repeated group l { optional int32 e; } }", "nested"),
            ("optional fixed_len_byte_array(16) a (UUID);", "Uuid"),
        ] {
            let error = read_schema(&message(&format!("message m {{ {field} }}"))).unwrap_err();
            assert!(
                error.to_string().contains("column a") && error.to_string().contains(part),
                "{error}"
            );
        }
    }

    #[test]
    fn a_decimal_has_as_many_bytes_as_its_digits_need() {
        let sizes: Vec<usize> = [1, 2, 3, 18, 19, 28, 38].map(decimal_bytes).to_vec();
        assert_eq!(sizes, [1, 1, 2, 8, 9, 12, 16]);
    }
}
