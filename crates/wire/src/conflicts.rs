//! Rows that delete, in the description of a load.

use coload_ddl::Schema;
use coload_store::DeleteWhere;
use coload_types::bytes::{ByteReader, put_bytes, put_varint};
use coload_types::{Column, Error, Result, parse_value};

use crate::read_text;

/// A column of the table, and what it is in records that are no rows and take those with their keys away, as text.
pub type DeleteText = (usize, String);

/// Which rows delete in a table of these columns.
///
/// # Errors
/// `Invalid` when the text is no value of the column, or there is no such column.
pub fn parse_delete_where(schema: &Schema, (column, text): &DeleteText) -> Result<DeleteWhere> {
    let Some(Column { name, data_type, .. }) = schema.columns().get(*column) else {
        return Err(Error::Invalid(format!(
            "--delete-where of column {} of {}",
            column + 1,
            schema.len()
        )));
    };
    match parse_value(text.as_bytes(), *data_type) {
        Ok(value) => Ok(DeleteWhere { column: *column, value }),
        Err(_) => Err(Error::Invalid(format!(
            "--delete-where {name}={text}: {text:?} is not {data_type}, which column {name} is"
        ))),
    }
}

/// Appends what [`read_delete_text`] reads.
pub(crate) fn put_delete_text(out: &mut Vec<u8>, (column, text): &DeleteText) {
    put_varint(out, *column as u64);
    put_bytes(out, text.as_bytes());
}

pub(crate) fn read_delete_text(reader: &mut ByteReader<'_>, columns: usize) -> Result<DeleteText> {
    let column = reader.varint_u32()? as usize;
    if column >= columns {
        return Err(Error::Corrupt(format!("rows that delete by column {column} of {columns}")));
    }
    Ok((column, read_text(reader)?))
}
