//! An input of Arrow: which of its fields the columns are, and what is told when it is damaged.

use coload_arrow::{ArrowColumn, ArrowSchema, BatchLayout, Buffers, Fault, written_bytes};
use coload_transform::CODES_PROVISIONAL_MAX;
use coload_types::{Error, Place, Result};

use crate::typed::{Asked, BATCH_SHARE, batch_bytes_max, fields_of_columns};

/// The fields of an input, and which of them are read.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct FieldsRead {
    /// All of them.
    pub schema: ArrowSchema,
    /// The columns that they become.
    columns: Vec<ArrowColumn>,
    /// For each column that is read that which it is of these; `None` where the input lacks it.
    of_column: Vec<Option<usize>>,
}

impl FieldsRead {
    /// Finds the fields of an input, by its number.
    ///
    /// # Errors
    /// As [`fields_of_columns`], and [`ArrowSchema::columns`].
    pub fn new(schema: ArrowSchema, number: usize, asked: Asked<'_>) -> Result<Self> {
        let columns = schema.columns().map_err(|error| fault(asked, number, 0, error))?;
        let of_column =
            fields_of_columns(number, columns.len(), asked, |index| match &columns[index] {
                column if !column.is_readable() => {
                    let ArrowColumn { name, kind, .. } = column;
                    Err(format!("field {name} is {kind}, which no column holds"))
                }
                _ => Ok(()),
            })?;
        Ok(FieldsRead { schema, columns, of_column })
    }

    /// A column that is read; `None` where the input lacks it.
    pub fn column(&self, number: usize) -> Option<&ArrowColumn> {
        self.of_column[number].map(|column| &self.columns[column])
    }

    /// The columns that are read and there, in their order.
    pub fn read(&self) -> impl Iterator<Item = &ArrowColumn> {
        self.of_column.iter().flatten().map(|column| &self.columns[*column])
    }

    /// Whether a column that is read is one of lists or maps, whose rows are written as texts.
    pub fn has_written(&self) -> bool {
        self.read().any(|column| column.is_written(&self.schema))
    }

    /// Bytes of a row's texts in dictionaries of more values than codes have; `of` tells the values of a dictionary, and bytes of each.
    pub fn key_bytes(&self, of: impl Fn(i64) -> Option<(u64, u64)>) -> u64 {
        let of_column = |column: &ArrowColumn| {
            let [id] = column.dictionaries[..] else { return None };
            let (values, each) = of(id).filter(|_| !column.is_written(&self.schema))?;
            (values > CODES_PROVISIONAL_MAX as u64).then_some(each)
        };
        self.read().filter_map(of_column).fold(0, u64::saturating_add)
    }

    /// Bytes that the texts of lists and maps of a batch take, about; `of_key` tells those of a value of a dictionary.
    ///
    /// # Errors
    /// `Damaged` when the batch has not its fields; those of reading.
    pub fn written_bytes(
        &self,
        buffers: &Buffers<'_>,
        of_key: &dyn Fn(i64) -> u64,
    ) -> std::result::Result<u64, Fault> {
        if !self.has_written() {
            return Ok(0);
        }
        let layout = BatchLayout::new(&self.schema.fields, buffers.batch())?;
        let of = |column| written_bytes((&self.schema, column), &layout, buffers, of_key);
        self.read().map(of).try_fold(0, |sum: u64, bytes| Ok(sum.saturating_add(bytes?)))
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

/// What is wrong with a stream whose dictionary is not there when it is needed.
pub fn no_dictionary(id: i64) -> Fault {
    Fault::Damaged(format!(
        "dictionary {id} does not come before the rows that need it (a file may have it later: decompress it, and load it \
         as a file)"
    ))
}
