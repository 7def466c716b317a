//! How the rows of a load are made of its records, as bytes.
//!
//! ```text
//!   columns that are read as they stand in CREATE TABLE, then a source for each column of the table:
//!     u8 kind  0 column read (varint), 1 NULL, 2 value (bytes), 3 name of the input
//!   varint fields of a record, varint field of each column that is read
//! ```

use coload_format::bytes::{ByteReader, put_bytes, put_varint};
use coload_format::ddl::column_sql;
use coload_format::{Column, DataType, Error, Physical, Result, Schema, Value, parse_columns};

use super::read_text;
use crate::derive::{ColumnFrom, Derivation};
use crate::options::FieldMap;

/// Flag of a description: columns are derived.
const DERIVED: u8 = 2;
/// Flag of a description: fields are mapped.
const MAPPED: u8 = 4;

/// Most fields of a record.
const FIELDS_MAX: usize = 1 << 20;

/// Which of both are there.
pub fn row_flags(derivation: Option<&Derivation>, fields: Option<&FieldMap>) -> u8 {
    let derived = if derivation.is_some() { DERIVED } else { 0 };
    derived | if fields.is_some() { MAPPED } else { 0 }
}

/// Appends both, where they are there; nothing where neither is.
pub fn put_rows(out: &mut Vec<u8>, derivation: Option<&Derivation>, fields: Option<&FieldMap>) {
    if let Some(derivation) = derivation {
        let read: Vec<String> = derivation.read.columns().iter().map(column_sql).collect();
        put_bytes(out, read.join(", ").as_bytes());
        derivation.columns.iter().for_each(|from| put_source(out, from));
    }
    if let Some(FieldMap { count, of_column }) = fields {
        put_varint(out, *count as u64);
        of_column.iter().for_each(|field| put_varint(out, *field as u64));
    }
}

fn put_source(out: &mut Vec<u8>, from: &ColumnFrom) {
    match from {
        ColumnFrom::Read(index) => {
            out.push(0);
            put_varint(out, *index as u64);
        }
        ColumnFrom::Constant(None) => out.push(1),
        ColumnFrom::Constant(Some(value)) => {
            out.push(2);
            match value {
                Value::Int(value) => put_bytes(out, &value.to_le_bytes()),
                Value::Wide(value) => put_bytes(out, &value.to_le_bytes()),
                Value::Bytes(value) => put_bytes(out, value),
            }
        }
        ColumnFrom::InputName => out.push(3),
    }
}

/// Reads what [`put_rows`] wrote, for a table; `flags` are those of [`row_flags`].
///
/// # Errors
/// `Corrupt` when it is none, `Invalid` when it does not fit the table.
pub fn read_rows(
    reader: &mut ByteReader<'_>,
    flags: u8,
    table: &Schema,
) -> Result<(Option<Derivation>, Option<FieldMap>)> {
    if flags & !(DERIVED | MAPPED) != 0 {
        return Err(Error::Corrupt(format!("flags {flags} of the rows of a load")));
    }
    let derivation = match flags & DERIVED {
        0 => None,
        _ => Some(read_derivation(reader, table)?),
    };
    let read = derivation.as_ref().map_or(table.len(), |derivation| derivation.read.len());
    let fields = match flags & MAPPED {
        0 => None,
        _ => Some(read_fields(reader, read)?),
    };
    Ok((derivation, fields))
}

fn read_derivation(reader: &mut ByteReader<'_>, table: &Schema) -> Result<Derivation> {
    let read = parse_columns(&read_text(reader)?)?;
    let source = |column| read_source(reader, column);
    let columns = table.columns().iter().map(source).collect::<Result<_>>()?;
    let derivation = Derivation { read, columns };
    derivation.check(table, None)?;
    Ok(derivation)
}

fn read_source(reader: &mut ByteReader<'_>, column: &Column) -> Result<ColumnFrom> {
    Ok(match reader.u8()? {
        0 => ColumnFrom::Read(reader.varint_u32()? as usize),
        1 => ColumnFrom::Constant(None),
        2 => ColumnFrom::Constant(Some(read_value(reader.bytes()?, column.data_type)?)),
        3 => ColumnFrom::InputName,
        other => return Err(Error::Corrupt(format!("source {other} of a column"))),
    })
}

fn read_value(bytes: &[u8], data_type: DataType) -> Result<Value> {
    let wrong = |_| Error::Corrupt(format!("a {data_type} of {} bytes", bytes.len()));
    Ok(match data_type.physical() {
        Physical::Int => Value::Int(i64::from_le_bytes(bytes.try_into().map_err(wrong)?)),
        Physical::Wide => Value::Wide(i128::from_le_bytes(bytes.try_into().map_err(wrong)?)),
        Physical::Bytes if data_type.is_text() && std::str::from_utf8(bytes).is_err() => {
            return Err(Error::Corrupt("a text that is not UTF-8".into()));
        }
        Physical::Bytes => Value::Bytes(bytes.into()),
    })
}

fn read_fields(reader: &mut ByteReader<'_>, columns: usize) -> Result<FieldMap> {
    let count = reader.varint_u32()? as usize;
    let field = |_| Ok(reader.varint_u32()? as usize);
    let of_column: Vec<usize> = (0..columns).map(field).collect::<Result<_>>()?;
    if count > FIELDS_MAX || of_column.iter().any(|field| *field >= count) {
        return Err(Error::Corrupt(format!("columns of {count} fields")));
    }
    Ok(FieldMap { count, of_column })
}
