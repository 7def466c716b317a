//! What happens to keys that are there, in the description of a load.

use coload_ddl::Schema;
use coload_store::OnConflict;
use coload_types::bytes::{ByteReader, put_varint};
use coload_types::{Error, Result};

/// What happens to keys that are there.
const IGNORE: u8 = 1;
const REPLACE: u8 = 2;
const NEWEST: u8 = 3;

/// Appends the rule; nothing where such keys are an error.
pub(crate) fn put_on_conflict(out: &mut Vec<u8>, on_conflict: OnConflict) {
    match on_conflict {
        OnConflict::Error => {}
        OnConflict::Ignore | OnConflict::Reject => out.push(IGNORE),
        OnConflict::Replace | OnConflict::ReplaceOnce => out.push(REPLACE),
        OnConflict::Newest(column) => {
            out.push(NEWEST);
            put_varint(out, column as u64);
        }
    }
}

/// Reads a rule that is there.
pub(crate) fn read_on_conflict(reader: &mut ByteReader<'_>, schema: &Schema) -> Result<OnConflict> {
    Ok(match reader.u8()? {
        IGNORE => OnConflict::Ignore,
        REPLACE => OnConflict::Replace,
        NEWEST => match reader.varint_u32()? as usize {
            column if column < schema.len() => OnConflict::Newest(column),
            column => {
                let text = format!("the newest row by column {column} of {}", schema.len());
                return Err(Error::Corrupt(text));
            }
        },
        other => return Err(Error::Corrupt(format!("rule {other} for keys that are there"))),
    })
}
