//! An input of Parquet: which of its fields the columns are, and what is told when it is damaged.

use coload_arrow::Fault;
use std::sync::Arc;

use coload_parquet::{Nested, ParquetField, Stored};
use coload_types::{Error, Place, Result};

use crate::typed::{Asked, BATCH_SHARE, batch_bytes_max, fields_of_columns};

/// The fields of an input, and which of them are read.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct FieldsRead {
    /// For each column that is read its field; `None` where the input lacks it.
    pub of_column: Vec<Option<FieldRead>>,
    /// Numbers of the column chunks that are kept, which rise.
    pub leaves: Vec<usize>,
}

/// A field that is read.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct FieldRead {
    /// How its values are stored.
    pub stored: Stored,
    /// Its column chunk in what is kept of a row group.
    pub chunk: usize,
    /// What it is made of, if it is a list or a map.
    pub nested: Option<NestedRead>,
}

/// A list or a map that is read.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct NestedRead {
    /// What it is made of.
    pub nested: Arc<Nested>,
    /// For each of its leaves the column chunk in what is kept of a row group.
    pub chunks: Vec<usize>,
}

impl FieldsRead {
    /// Finds the fields of an input, by its number.
    ///
    /// # Errors
    /// As [`fields_of_columns`].
    pub fn new(fields: &[ParquetField], number: usize, asked: Asked<'_>) -> Result<Self> {
        let found = fields_of_columns(number, fields.len(), asked, |index| {
            let ParquetField { name, kind, stored, .. } = &fields[index];
            match stored {
                Some(_) => Ok(()),
                None => Err(format!("field {name} is a {kind}, which no column holds")),
            }
        })?;
        let all = found.iter().flatten().flat_map(|index| fields[*index].leaves());
        let mut leaves: Vec<usize> = all.map(|stored| stored.leaf).collect();
        leaves.sort_unstable();
        leaves.dedup();
        let place = |stored: &Stored| leaves.partition_point(|leaf| *leaf < stored.leaf);
        let of_column = found.iter().map(|index| {
            let field = &fields[(*index)?];
            let stored = field.stored.clone()?;
            let nested = field.nested.as_ref().map(|nested| NestedRead {
                nested: Arc::clone(nested),
                chunks: nested.leaves.iter().map(place).collect(),
            });
            Some(FieldRead { chunk: place(&stored), stored, nested })
        });
        let of_column = of_column.collect();
        Ok(FieldsRead { of_column, leaves })
    }
}

/// Where something stands in an input.
#[derive(Debug, Clone, Copy)]
pub struct Spot<'a> {
    /// Number of the input.
    pub file: usize,
    /// Byte of it.
    pub byte: u64,
    /// Number of the row group in it, if it is within one.
    pub group: Option<u32>,
    /// Name of the column, if it is of one.
    pub column: Option<&'a str>,
}

/// What is told of a part of an input.
pub fn fault(asked: Asked<'_>, spot: Spot<'_>, fault: Fault) -> Error {
    let name = asked.request.inputs.name(spot.file);
    let mut part = String::new();
    if let Some(group) = spot.group {
        part = format!("row group {}: ", group + 1);
    }
    if let Some(column) = spot.column {
        part = format!("{}, column {column}: ", part.trim_end_matches(": "));
    }
    match fault {
        Fault::Damaged(_) => Error::Input {
            place: Box::new(Place { file: name, line: 0, byte: spot.byte, field: 0 }),
            text: format!("{part}{fault}; nothing was loaded"),
        },
        Fault::Unknown(what) => Error::Invalid(format!("{name}: {part}{what}")),
        Fault::TooLarge(bytes) => Error::Limit(format!(
            "{name} (byte {}): {part}{bytes} bytes are needed at once, and {} of what --memory gives may be (try --memory \
             {}MiB, or write smaller pages)",
            spot.byte,
            batch_bytes_max(asked),
            (bytes.saturating_mul(BATCH_SHARE as u64)).div_ceil(1 << 20)
        )),
        Fault::Read(error) => error,
    }
}
