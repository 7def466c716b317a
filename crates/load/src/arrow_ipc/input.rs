//! An input of Arrow: which of its fields the columns are, and what is told when it is damaged.

use coload_arrow::{ArrowSchema, ArrowType, Fault};
use coload_types::{Error, Place, Result};

use crate::format::Leg;
use crate::request::LoadRequest;
use crate::resources::Resources;

/// Share of the memory that a batch may take which must be there as a whole.
pub const BATCH_SHARE: usize = 6;

/// What is loaded, and what may be used for it.
#[derive(Debug, Clone, Copy)]
pub struct Asked<'a> {
    /// What is loaded.
    pub request: &'a LoadRequest,
    /// What may be used.
    pub resources: &'a Resources,
}

impl<'a> Asked<'a> {
    /// Of a leg.
    pub fn of(leg: &Leg<'a>) -> Self {
        Asked { request: leg.request, resources: leg.resources }
    }
}

/// The fields of an input, and which of them are read.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct FieldsRead {
    /// All of them.
    pub schema: ArrowSchema,
    /// For each column that is read its field.
    pub of_column: Vec<usize>,
}

impl FieldsRead {
    /// Finds the fields of an input, by its number.
    ///
    /// # Errors
    /// `Invalid` when it has not the fields that the load reads, or one is of a type that no column holds.
    pub fn new(schema: ArrowSchema, number: usize, asked: Asked<'_>) -> Result<Self> {
        let name = asked.request.inputs.name(number);
        let fields = asked.request.fields_of_inputs();
        let way = fields.of(number);
        if schema.fields.len() != way.count {
            return Err(Error::Invalid(format!(
                "{name} has {} fields, and {} are read (try --by-name, or load it by itself)",
                schema.fields.len(),
                way.count
            )));
        }
        let columns = asked.request.read_schema().columns().iter().zip(&way.of_column);
        let of_column = columns.map(|(column, field)| {
            let Some(index) = *field else {
                return Err(Error::Invalid(format!("{name} has no field for column {}", column.name)));
            };
            match &schema.fields[index] {
                field if matches!(field.values, ArrowType::Other(..)) => Err(Error::Invalid(format!(
                    "{name}: field {} is {field}, which no column holds (leave it out: --by-name with --columns)",
                    field.name
                ))),
                _ => Ok(index),
            }
        });
        Ok(FieldsRead { of_column: of_column.collect::<Result<_>>()?, schema })
    }
}

/// Most bytes that are in memory of a batch.
pub fn batch_bytes_max(asked: Asked<'_>) -> u64 {
    (asked.resources.memory / BATCH_SHARE) as u64
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
