//! How the rows of a load are made of its records, as bytes.
//!
//! ```text
//!   u8 texts  1 a filter, 2 expressions; then each that is there, as text
//!   columns that are read as they stand in CREATE TABLE, then a source for each column of the table:
//!     u8 kind  0 column read (varint), 1 NULL, 2 value (bytes), 3 name of the input, 4 when the load began
//!   varint fields of a record, varint field of each column that is read
//!   where inputs have different fields, in its place: u8 64, varint ways, for each of them varint fields of a record and for each
//!     column that is read varint 0 if it is absent, else 1 + its field; then varint inputs, varint way of each
//! ```

use std::sync::Arc;

use coload_ddl::Schema;
use coload_source::InputFields;
use coload_types::bytes::{ByteReader, put_bytes, put_varint};
use coload_types::{Column, DataType, Error, Physical, Result, Value, is_list};

use crate::legs::{put_columns, read_columns};
use crate::{ColumnFrom, Derivation, FieldMap, FieldsByInput, read_text};

/// Flag of a description: columns are derived.
const DERIVED: u8 = 2;
/// Flag of a description: fields are mapped.
const MAPPED: u8 = 4;

/// Flag of a description: there is a filter, or expressions.
const PROGRAM: u8 = 8;
/// Flag of a description: inputs have different fields.
const BY_INPUT: u8 = 64;
/// Flags of a program: what it has.
const FILTER: u8 = 1;
const SELECT: u8 = 2;

/// Most fields of a record.
const FIELDS_MAX: usize = 1 << 20;

/// What `--where` and `--select` say.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct RowSql {
    /// Rows for which this is true are kept.
    pub filter: Option<String>,
    /// Expressions with their names, separated by commas; the columns as they are if there are none.
    pub select: Option<String>,
}

/// How rows are made of records.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct RowSource {
    /// A filter and expressions over the columns that are read.
    pub program: Option<RowSql>,
    /// How rows are made of the columns that are read, or that the expressions make, if these are others.
    pub derivation: Option<Derivation>,
    /// Which fields the columns are that are read, if not one after the other.
    pub fields: Option<FieldMap>,
    /// The same of each input, where they have different fields.
    pub by_input: Option<Arc<FieldsByInput>>,
}

impl RowSource {
    /// In what the filter and the expressions differ from those of an earlier load.
    pub(crate) fn differences(&self, begun: &RowSource) -> Vec<String> {
        let none = RowSql::default();
        let [now, then] = [self, begun].map(|rows| rows.program.as_ref().unwrap_or(&none));
        let texts =
            [("--where", &now.filter, &then.filter), ("--select", &now.select, &then.select)];
        let told = |text: &Option<String>| match text {
            Some(text) => format!("\"{text}\""),
            None => "not given".to_owned(),
        };
        let differing = texts.into_iter().filter(|(_, now, then)| now != then);
        differing
            .map(|(flag, now, then)| format!("{flag} is {} and was {}", told(now), told(then)))
            .collect()
    }

    /// Flags of a description that say which parts follow.
    pub(crate) fn flags(&self) -> u8 {
        let flag = |there: bool, flag| if there { flag } else { 0 };
        flag(self.derivation.is_some(), DERIVED)
            | flag(self.fields.is_some(), MAPPED)
            | flag(self.by_input.is_some(), BY_INPUT)
            | flag(self.program.is_some(), PROGRAM)
    }

    /// Appends what is there.
    pub(crate) fn put(&self, out: &mut Vec<u8>) {
        if let Some(program) = &self.program {
            put_program(out, program);
        }
        if let Some(derivation) = &self.derivation {
            put_columns(out, &derivation.read);
            derivation.columns.iter().for_each(|from| put_source(out, from));
        }
        if let Some(FieldMap { count, of_column }) = &self.fields {
            put_varint(out, *count as u64);
            of_column.iter().for_each(|field| put_varint(out, *field as u64));
        }
        if let Some(fields) = &self.by_input {
            put_by_input(out, fields);
        }
    }

    /// Reads what [`Self::put`] wrote, for a table and so many inputs; `flags` are those of [`Self::flags`].
    ///
    /// # Errors
    /// `Corrupt` when it is none, `Invalid` when it does not fit the table.
    pub(crate) fn read(
        reader: &mut ByteReader<'_>,
        flags: u8,
        table: &Schema,
        inputs: usize,
    ) -> Result<Self> {
        if flags & !(DERIVED | MAPPED | PROGRAM | BY_INPUT) != 0 {
            return Err(Error::Corrupt(format!("flags {flags} of the rows of a load")));
        }
        let mut rows = RowSource::default();
        if flags & PROGRAM != 0 {
            rows.program = Some(read_program(reader)?);
        }
        if flags & DERIVED != 0 {
            let derivation = read_derivation(reader, table)?;
            // Only the client, who runs it, knows the columns that a program makes.
            if rows.program.is_none() {
                derivation.check(table, None)?;
            }
            rows.derivation = Some(derivation);
        }
        let read = rows.derivation.as_ref().map_or(table.len(), |d| d.read.len());
        if flags & MAPPED != 0 {
            rows.fields = Some(read_fields(reader, read)?);
        }
        if flags & BY_INPUT != 0 {
            rows.by_input = Some(Arc::new(read_by_input(reader, inputs, read)?));
        }
        Ok(rows)
    }
}

fn put_program(out: &mut Vec<u8>, RowSql { filter, select }: &RowSql) {
    let texts = [(filter, FILTER), (select, SELECT)];
    let there = || texts.iter().filter_map(|(text, flag)| Some((text.as_ref()?, flag)));
    out.push(there().map(|(_, flag)| flag).sum());
    there().for_each(|(text, _)| put_bytes(out, text.as_bytes()));
}

fn read_program(reader: &mut ByteReader<'_>) -> Result<RowSql> {
    let flags = reader.u8()?;
    if flags & !(FILTER | SELECT) != 0 {
        return Err(Error::Corrupt(format!("texts {flags} of the rows of a load")));
    }
    let mut text = |flag| (flags & flag != 0).then(|| read_text(reader)).transpose();
    Ok(RowSql { filter: text(FILTER)?, select: text(SELECT)? })
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
        ColumnFrom::LoadTime => out.push(4),
        ColumnFrom::Partition(key) => {
            out.push(5);
            put_bytes(out, key.as_bytes());
        }
    }
}

fn read_derivation(reader: &mut ByteReader<'_>, table: &Schema) -> Result<Derivation> {
    let read = read_columns(reader)?;
    let source = |column| read_source(reader, column);
    let columns = table.columns().iter().map(source).collect::<Result<_>>()?;
    Ok(Derivation { read, columns })
}

fn read_source(reader: &mut ByteReader<'_>, column: &Column) -> Result<ColumnFrom> {
    Ok(match reader.u8()? {
        0 => ColumnFrom::Read(reader.varint_u32()? as usize),
        1 => ColumnFrom::Constant(None),
        2 => ColumnFrom::Constant(Some(read_value(reader.bytes()?, column.data_type)?)),
        3 => ColumnFrom::InputName,
        4 => ColumnFrom::LoadTime,
        5 => ColumnFrom::Partition(read_text(reader)?.into()),
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
        Physical::Bytes => match data_type {
            DataType::List(element) if !is_list(bytes, element) => {
                return Err(Error::Corrupt(format!("bytes that are no {data_type}")));
            }
            _ => Value::Bytes(bytes.into()),
        },
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

fn put_by_input(out: &mut Vec<u8>, FieldsByInput { ways, of_input }: &FieldsByInput) {
    // What tells a load from others has no flags: this byte stands for one.
    out.push(BY_INPUT);
    put_varint(out, ways.len() as u64);
    for way in ways {
        put_varint(out, way.count as u64);
        let fields = way.of_column.iter().map(|field| field.map_or(0, |field| field as u64 + 1));
        fields.for_each(|field| put_varint(out, field));
    }
    put_varint(out, of_input.len() as u64);
    of_input.iter().for_each(|way| put_varint(out, u64::from(*way)));
}

fn read_by_input(
    reader: &mut ByteReader<'_>,
    inputs: usize,
    columns: usize,
) -> Result<FieldsByInput> {
    let wrong = |what: String| Error::Corrupt(format!("{what} of inputs with different fields"));
    let mark = reader.u8()?;
    if mark != BY_INPUT {
        return Err(wrong(format!("mark {mark}")));
    }
    // A way has its count, and a field for each column.
    let ways = reader.count(1 + columns)?;
    let way = |_| {
        let count = reader.varint_u32()? as usize;
        let field = |_| Ok((reader.varint_u32()? as usize).checked_sub(1));
        let of_column = (0..columns).map(field).collect::<Result<_>>()?;
        match count <= FIELDS_MAX {
            true => Ok(InputFields { count, of_column }),
            false => Err(wrong(format!("{count} fields"))),
        }
    };
    let ways = (0..ways).map(way).collect::<Result<_>>()?;
    let count = reader.count(1)?;
    let of_input = (0..count).map(|_| reader.varint_u32()).collect::<Result<_>>()?;
    let fields = FieldsByInput { ways, of_input };
    match fields.check(inputs, columns) {
        Ok(()) => Ok(fields),
        Err(_) => Err(wrong(format!("fields of {columns} columns and {inputs} inputs"))),
    }
}
