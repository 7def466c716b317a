//! Columns, types and values of a manifest to bytes and back; see `codec`.

use std::sync::Arc;

use coload_ddl::{CHECKS_MAX, COLUMNS_MAX, Check, KEY_COLUMNS_MAX, Key, KeyKind, Schema};
use coload_types::bytes::{ByteReader, put_bytes, put_signed, put_varint};
use coload_types::{Column, DataType, ElementType, Error, Physical, Result, Value};

use super::{SegmentEntry, StoredColumn};

const IS_NULLABLE: u8 = 1;
const HAS_DEFAULT: u8 = 2;

pub(super) fn corrupt(what: String) -> Error {
    Error::Corrupt(what)
}

/// A byte each: length of the name, type, flags.
const COLUMN_BYTES_MIN: usize = 3;

pub(super) fn put_column(out: &mut Vec<u8>, column: &Column) {
    put_bytes(out, column.name.as_bytes());
    put_type(out, column.data_type);
    let nullable = if column.nullable { IS_NULLABLE } else { 0 };
    let default = if column.default.is_some() { HAS_DEFAULT } else { 0 };
    out.push(nullable | default);
    if let Some(value) = &column.default {
        put_value(out, value);
    }
}

pub(super) fn read_schema(reader: &mut ByteReader<'_>) -> Result<Schema> {
    let count = reader.count(COLUMN_BYTES_MIN)?;
    if count > COLUMNS_MAX {
        return Err(corrupt(format!("{count} columns, over {COLUMNS_MAX}")));
    }
    let mut columns = Vec::with_capacity(count);
    for _ in 0..count {
        let name = read_text(reader)?;
        let data_type = read_type(reader)?;
        let flags = reader.u8()?;
        if flags & !(IS_NULLABLE | HAS_DEFAULT) != 0 {
            return Err(corrupt(format!("flags {flags} of column {name}")));
        }
        let default = match flags & HAS_DEFAULT {
            0 => None,
            _ => Some(read_value(reader, data_type.physical(), usize::MAX)?),
        };
        columns.push(Column { name, data_type, nullable: flags & IS_NULLABLE != 0, default });
    }
    Schema::new(columns).map_err(|e| corrupt(e.to_string()))
}

/// The file has the columns of the table, in their order.
const AS_TABLE: u8 = 0;
/// Where it has each column follows.
const BY_COLUMN: u8 = 1;
/// The column is one of the file.
const AT: u8 = 0;
/// All rows have NULL in it.
const ALL_NULL: u8 = 1;
/// All rows have the value that follows.
const ALL_SAME: u8 = 2;

pub(super) fn put_stored(out: &mut Vec<u8>, segment: &SegmentEntry, width: usize) -> Result<()> {
    let Some(stored) = &segment.stored else {
        out.push(AS_TABLE);
        return Ok(());
    };
    if stored.len() != width {
        return Err(Error::Invalid(format!(
            "segment {} says where {} columns are, its table has {width}",
            segment.file,
            stored.len()
        )));
    }
    out.push(BY_COLUMN);
    for column in stored.iter() {
        match column {
            StoredColumn::At(index) => {
                out.push(AT);
                put_varint(out, u64::from(*index));
            }
            StoredColumn::Constant(None) => out.push(ALL_NULL),
            StoredColumn::Constant(Some(value)) => {
                out.push(ALL_SAME);
                put_value(out, value);
            }
        }
    }
    Ok(())
}

pub(super) fn read_stored(
    reader: &mut ByteReader<'_>,
    schema: &Schema,
) -> Result<Option<Arc<[StoredColumn]>>> {
    match reader.u8()? {
        AS_TABLE => return Ok(None),
        BY_COLUMN => {}
        other => return Err(corrupt(format!("mark {other} of columns"))),
    }
    let mut stored = Vec::with_capacity(schema.len());
    for column in schema.columns() {
        let physical = column.data_type.physical();
        stored.push(match reader.u8()? {
            AT => StoredColumn::At(reader.varint_u32()?),
            ALL_NULL => StoredColumn::Constant(None),
            ALL_SAME => StoredColumn::Constant(Some(read_value(reader, physical, usize::MAX)?)),
            other => return Err(corrupt(format!("mark {other} of a column"))),
        });
    }
    Ok(Some(stored.into()))
}

/// A byte each: lengths of the name and of the condition.
const CHECK_BYTES_MIN: usize = 2;

pub(super) fn put_checks(out: &mut Vec<u8>, checks: &[Check]) {
    put_varint(out, checks.len() as u64);
    for check in checks {
        put_bytes(out, check.name.as_deref().unwrap_or_default().as_bytes());
        put_bytes(out, check.text().as_bytes());
    }
}

pub(super) fn read_checks(reader: &mut ByteReader<'_>, schema: &Schema) -> Result<Vec<Check>> {
    let count = reader.count(CHECK_BYTES_MIN)?;
    if count > CHECKS_MAX {
        return Err(corrupt(format!("{count} checks, over {CHECKS_MAX}")));
    }
    let mut checks = Vec::with_capacity(count);
    for _ in 0..count {
        let name = Some(read_text(reader)?).filter(|name| !name.is_empty());
        let check = Check::parse(name, &read_text(reader)?, schema.columns());
        checks.push(check.map_err(|e| corrupt(e.to_string()))?);
    }
    Ok(checks)
}

const NO_KEY: u8 = 0;
const PRIMARY_KEY: u8 = 1;
const CLUSTER_BY: u8 = 2;

pub(super) fn put_key(out: &mut Vec<u8>, key: Option<&Key>) {
    let Some(key) = key else { return out.push(NO_KEY) };
    out.push(match key.kind() {
        KeyKind::Primary => PRIMARY_KEY,
        KeyKind::Cluster => CLUSTER_BY,
    });
    put_varint(out, key.columns().len() as u64);
    key.columns().iter().for_each(|column| put_varint(out, *column as u64));
}

pub(super) fn read_key(reader: &mut ByteReader<'_>) -> Result<Option<Key>> {
    let kind = match reader.u8()? {
        NO_KEY => return Ok(None),
        PRIMARY_KEY => KeyKind::Primary,
        CLUSTER_BY => KeyKind::Cluster,
        tag => return Err(corrupt(format!("kind of key {tag} is unknown"))),
    };
    let count = reader.count(1)?;
    if count > KEY_COLUMNS_MAX {
        return Err(corrupt(format!("a key of {count} columns, over {KEY_COLUMNS_MAX}")));
    }
    let mut columns = Vec::with_capacity(count);
    for _ in 0..count {
        columns.push(reader.varint_u32()? as usize);
    }
    Key::new(kind, columns).map(Some).map_err(|e| corrupt(e.to_string()))
}

fn put_type(out: &mut Vec<u8>, data_type: DataType) {
    match data_type {
        DataType::Boolean => out.push(0),
        DataType::SmallInt => out.push(1),
        DataType::Integer => out.push(2),
        DataType::BigInt => out.push(3),
        DataType::Decimal { precision, scale } => out.extend_from_slice(&[4, precision, scale]),
        DataType::Real => out.push(5),
        DataType::Double => out.push(6),
        DataType::Date => out.push(7),
        DataType::Time => out.push(8),
        DataType::Timestamp => out.push(9),
        DataType::TimestampTz => out.push(10),
        DataType::Char(length) => put_length(out, 11, Some(length)),
        DataType::Varchar(length) => put_length(out, 12, length),
        DataType::Binary(length) => put_length(out, 13, length),
        DataType::Uuid => out.push(14),
        DataType::List(element) => {
            out.push(15);
            put_type(out, element.data_type());
        }
    }
}

/// A length is written plus one; 0 is none.
fn put_length(out: &mut Vec<u8>, tag: u8, length: Option<u32>) {
    out.push(tag);
    put_varint(out, length.map_or(0, |n| u64::from(n) + 1));
}

fn read_type(reader: &mut ByteReader<'_>) -> Result<DataType> {
    match reader.u8()? {
        15 => {
            let tag = reader.u8()?;
            let data_type = read_flat_type(reader, tag)?;
            let element = ElementType::of(data_type);
            let element = element.ok_or_else(|| corrupt(format!("a list of {data_type}")))?;
            Ok(DataType::List(element))
        }
        tag => read_flat_type(reader, tag),
    }
}

/// A type that is no list.
fn read_flat_type(reader: &mut ByteReader<'_>, tag: u8) -> Result<DataType> {
    Ok(match tag {
        0 => DataType::Boolean,
        1 => DataType::SmallInt,
        2 => DataType::Integer,
        3 => DataType::BigInt,
        4 => {
            let [precision, scale] = reader.array()?;
            DataType::decimal(precision, scale).map_err(|e| corrupt(e.to_string()))?
        }
        5 => DataType::Real,
        6 => DataType::Double,
        7 => DataType::Date,
        8 => DataType::Time,
        9 => DataType::Timestamp,
        10 => DataType::TimestampTz,
        11 => {
            let length = read_length(reader)?;
            DataType::Char(length.ok_or_else(|| corrupt("CHAR without length".into()))?)
        }
        12 => DataType::Varchar(read_length(reader)?),
        13 => DataType::Binary(read_length(reader)?),
        14 => DataType::Uuid,
        tag => return Err(corrupt(format!("type {tag} is unknown"))),
    })
}

fn read_length(reader: &mut ByteReader<'_>) -> Result<Option<u32>> {
    match reader.varint()?.checked_sub(1) {
        None => Ok(None),
        Some(length) => match u32::try_from(length) {
            Ok(length) => Ok(Some(length)),
            Err(_) => Err(corrupt(format!("length {length} of a type"))),
        },
    }
}

/// The shape is the column's; it is not written again.
pub(crate) fn put_value(out: &mut Vec<u8>, value: &Value) {
    match value {
        Value::Int(v) => put_signed(out, *v),
        Value::Wide(v) => out.extend_from_slice(&v.to_le_bytes()),
        Value::Bytes(v) => put_bytes(out, v),
    }
}

pub(crate) fn read_value(
    reader: &mut ByteReader<'_>,
    physical: Physical,
    bytes_max: usize,
) -> Result<Value> {
    Ok(match physical {
        Physical::Int => Value::Int(reader.signed()?),
        Physical::Wide => Value::Wide(reader.i128()?),
        Physical::Bytes => {
            let bytes = reader.bytes()?;
            if bytes.len() > bytes_max {
                return Err(corrupt(format!("value of {} bytes", bytes.len())));
            }
            Value::Bytes(bytes.into())
        }
    })
}

pub(super) fn read_text(reader: &mut ByteReader<'_>) -> Result<String> {
    match std::str::from_utf8(reader.bytes()?) {
        Ok(text) => Ok(text.to_owned()),
        Err(_) => Err(corrupt("a name is not UTF-8".into())),
    }
}
