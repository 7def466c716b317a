//! An input of Arrow: which of its fields the columns are, and what is told when it is damaged.

use coload_arrow::{ArrowSchema, ArrowType, Fault};
use coload_types::{Error, Place, Result};

use crate::typed::{Asked, BATCH_SHARE, batch_bytes_max, fields_of_columns};

/// The fields of an input, and which of them are read.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct FieldsRead {
    /// All of them.
    pub schema: ArrowSchema,
    /// For each column that is read its field; `None` where the input lacks it.
    pub of_column: Vec<Option<usize>>,
}

impl FieldsRead {
    /// Finds the fields of an input, by its number.
    ///
    /// # Errors
    /// As [`fields_of_columns`].
    pub fn new(schema: ArrowSchema, number: usize, asked: Asked<'_>) -> Result<Self> {
        let of_column =
            fields_of_columns(number, schema.fields.len(), asked, |index| {
                match &schema.fields[index] {
                    field if matches!(field.values, ArrowType::Other(..)) => {
                        Err(format!("field {} is {field}, which no column holds", field.name))
                    }
                    _ => Ok(()),
                }
            })?;
        Ok(FieldsRead { of_column, schema })
    }
}

/// What is told of a message that stands at a byte of an input.
pub fn fault(asked: Asked<'_>, file: usize, byte: u64, fault: Fault) -> Error {
    let name = asked.request.inputs.name(file);
    match fault {
        Fault::Damaged(_) => Error::Input {
            place: Box::new(Place { file: name, line: 0, byte, field: 0 }),
            text: format!("{fault}; nothing was loaded"),
        },
        Fault::Unknown(what) => Error::Invalid(format!("{name}: {what}")),
        Fault::TooLarge(bytes) => Error::Limit(format!(
            "{name} (byte {byte}): a record batch takes {bytes} bytes at once, and one may take {} of what --memory \
             gives (try --memory {}MiB, or write batches of fewer rows)",
            batch_bytes_max(asked),
            (bytes.saturating_mul(BATCH_SHARE as u64)).div_ceil(1 << 20)
        )),
        Fault::Read(error) => error,
    }
}
