//! Views to bytes and back.

use coload_types::bytes::{ByteReader, put_bytes, put_varint};
use coload_types::{Error, Result};

use super::column_codec::{corrupt, read_text};
use super::{VIEW_BYTES_MAX, ViewEntry, check_table_name};

/// Columns of a view.
const VIEW_COLUMNS_MAX: usize = 4_096;
/// name, count of columns, text.
const VIEW_BYTES_MIN: usize = 3;

pub(super) fn put_views(out: &mut Vec<u8>, views: &[ViewEntry]) {
    put_varint(out, views.len() as u64);
    for view in views {
        put_bytes(out, view.name.as_bytes());
        put_varint(out, view.columns.len() as u64);
        view.columns.iter().for_each(|column| put_bytes(out, column.as_bytes()));
        put_bytes(out, view.sql.as_bytes());
    }
}

pub(super) fn read_views(reader: &mut ByteReader<'_>) -> Result<Vec<ViewEntry>> {
    let count = reader.count(VIEW_BYTES_MIN)?;
    let mut views = Vec::with_capacity(count);
    for _ in 0..count {
        let name = read_text(reader)?;
        let columns = reader.count(1)?;
        let columns = (0..columns).map(|_| read_text(reader)).collect::<Result<Vec<_>>>()?;
        let view = ViewEntry { name, columns, sql: read_text(reader)? };
        check_view(&view).map_err(|e| corrupt(e.to_string()))?;
        views.push(view);
    }
    Ok(views)
}

/// Refuses a view that no manifest can hold.
///
/// # Errors
/// `Invalid` for a name that no table can have, `Limit` for a long text.
pub(crate) fn check_view(view: &ViewEntry) -> Result<()> {
    check_table_name(&view.name)?;
    if view.columns.len() > VIEW_COLUMNS_MAX || view.sql.len() > VIEW_BYTES_MAX {
        return Err(Error::Limit(format!(
            "view {} has {} columns and a text of {} bytes; {VIEW_COLUMNS_MAX} and {VIEW_BYTES_MAX} may be",
            view.name,
            view.columns.len(),
            view.sql.len()
        )));
    }
    Ok(())
}
