//! A block of rows that were read, and the row that is too large for one.

use coload_load::{TypedBlock, TypedColumn};
use coload_types::{Error, Result};

use super::ColumnBuilder;

/// Rows that were read.
#[derive(Debug)]
pub struct ReadRows {
    rows: usize,
    bytes: usize,
    columns: Vec<TypedColumn<'static>>,
}

impl ReadRows {
    /// So many rows of these columns, which take so many bytes.
    pub fn new(columns: Vec<ColumnBuilder>, rows: usize, bytes: usize) -> Self {
        let columns = columns.into_iter().map(ColumnBuilder::finish).collect();
        // A row of NULL, or of no columns, takes some memory too.
        ReadRows { rows, bytes: bytes.max(rows), columns }
    }
}

impl TypedBlock for ReadRows {
    fn bytes(&self) -> usize {
        self.bytes
    }

    fn columns(&self, _wanted: usize) -> Result<(usize, Vec<TypedColumn<'_>>)> {
        let copy = |column: &TypedColumn<'static>| TypedColumn {
            values: column.values.clone(),
            slice: column.slice.clone(),
            dictionary: None,
        };
        Ok((self.rows, self.columns.iter().map(copy).collect()))
    }
}

/// What to do about a row, or a value of one, that is larger than the memory that a block may take.
pub fn too_large(what: &str, bytes: u64, bytes_max: u64) -> Error {
    Error::Limit(format!(
        "{what} takes {bytes} bytes, and {bytes_max} of what --memory gives may be (try a larger --memory, or leave the long \
         column out: --by-name with --columns)"
    ))
}
