//! Batches of Arrow in memory as an input: those of a data frame, of another library, or of a program that makes them.
//!
//! ```text
//!   stream -> batch -> blocks of some hundred KiB, which share the batch's bytes -> columns, parsed by all workers
//! ```
//!
//! Batches are taken one at a time, by one worker at a time. Nothing of them is copied before it is parsed but the values of
//! dictionaries, once for each dictionary.

use std::collections::HashMap;
use std::fmt;
use std::iter::Peekable;
use std::sync::{Arc, Mutex};

use arrow_array::{Array, RecordBatch};
use arrow_data::ArrayData;
use arrow_schema::SchemaRef;
use coload_arrow::{
    ArrayDictionary, ArrowColumn, ArrowSchema, Encoding, Fault, array_bytes, dictionaries_of,
    read_array, read_array_column, schema_of,
};
use coload_input::{InputFile, InputSource};
use coload_threads::lock;
use coload_types::{Error, Result};

use crate::arrow_ipc::field_of_column;
use crate::typed::{Column, Dictionary, TypedField};
use crate::typed_source::{PartBytes, SourceParts, TypedBlock, TypedReader, TypedSource, Wanted};

/// Bytes of a block, unless one row has more.
const BLOCK_BYTES: usize = 512 << 10;

/// Bytes that the values of a dictionary take at most which are texts of lists.
const DICTIONARY_BYTES_MAX: u64 = 64 << 20;

/// Batches of the same fields, taken as they come. They are taken on threads of the load.
pub type Batches = Box<dyn Iterator<Item = Result<RecordBatch>> + Send>;

/// Batches of Arrow as the rows of an input. They can be read once.
pub struct ArrowRows {
    name: String,
    schema: SchemaRef,
    arrow: ArrowSchema,
    /// The columns that its fields become.
    columns: Vec<ArrowColumn>,
    fields: Vec<TypedField>,
    /// Until they are read.
    batches: Mutex<Option<Peekable<Batches>>>,
    row_bytes: Option<usize>,
    rows: Option<u64>,
}

impl fmt::Debug for ArrowRows {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("ArrowRows").field("name", &self.name).finish_non_exhaustive()
    }
}

impl ArrowRows {
    /// The rows of batches, under a name that messages and reports have. Takes the first batch to see how large a row is.
    ///
    /// # Errors
    /// `Invalid` when the schema is none that is read.
    pub fn new(name: &str, schema: SchemaRef, batches: Batches) -> Result<Self> {
        let wrong = |fault: Fault| Error::Invalid(format!("{name}: {fault}"));
        let arrow = schema_of(&schema).map_err(wrong)?;
        let columns = arrow.columns().map_err(wrong)?;
        let fields = columns.iter().map(field_of_column).collect();
        let mut batches = batches.peekable();
        let row_bytes = match batches.peek() {
            Some(Ok(batch)) if batch.num_rows() > 0 => {
                let of = |column: &ArrowColumn| {
                    let array = batch.columns().get(column.field());
                    array.map_or(0, |array| array_bytes((&arrow, column), &array.to_data()))
                };
                Some((columns.iter().map(of).sum::<usize>() / batch.num_rows()).max(1))
            }
            _ => None,
        };
        let (name, batches) = (name.to_owned(), Mutex::new(Some(batches)));
        Ok(ArrowRows { name, schema, arrow, columns, fields, batches, row_bytes, rows: None })
    }

    /// The same, of which it is known how many rows come.
    pub fn of_rows(self, rows: u64) -> Self {
        ArrowRows { rows: Some(rows), ..self }
    }

    /// The rows as the input of a load; `table` is the name of a table that is made of them.
    pub fn input(&self, table: &str) -> InputFile {
        let source = InputSource::Rows { table: table.to_owned(), again: false };
        InputFile { name: self.name.clone(), source }
    }
}

impl TypedSource for ArrowRows {
    fn engine(&self) -> &'static str {
        "Arrow (in memory)"
    }

    fn fields(&self) -> &[TypedField] {
        &self.fields
    }

    fn has_dictionary(&self, field: usize) -> bool {
        self.columns[field].encoding != Encoding::Plain
    }

    fn row_bytes(&self) -> Option<usize> {
        self.row_bytes
    }

    fn rows(&self) -> Option<u64> {
        self.rows
    }

    fn cut(&self, _part: PartBytes) -> Result<SourceParts> {
        Ok(SourceParts::Whole)
    }

    fn read(self: Arc<Self>, _part: usize, wanted: &Wanted) -> Result<Box<dyn TypedReader>> {
        let Some(batches) = lock(&self.batches).take() else {
            return Err(Error::Invalid(format!(
                "{}: its batches were read already, and cannot be read again",
                self.name
            )));
        };
        let (wanted, dictionaries) = (wanted.clone(), HashMap::new());
        Ok(Box::new(Reader { rows: self, batches, wanted, dictionaries, left: None }))
    }
}

/// Takes batches, and cuts them.
struct Reader {
    rows: Arc<ArrowRows>,
    batches: Peekable<Batches>,
    wanted: Wanted,
    /// Of each dictionary, by its number, the one that came last, and the array that it was made of.
    dictionaries: HashMap<i64, (ArrayData, Arc<Dictionary>)>,
    left: Option<Left>,
}

/// What is left of a batch.
struct Left {
    arrays: Arc<Vec<WantedArray>>,
    next: usize,
    rows: usize,
    rows_of_block: usize,
    bytes_of_row: usize,
}

/// The array of a wanted field.
#[derive(Debug)]
struct WantedArray {
    data: ArrayData,
    /// The dictionaries within it, by their numbers.
    dictionaries: Vec<(i64, Arc<Dictionary>)>,
}

impl Reader {
    fn take(&mut self, batch: &RecordBatch) -> Result<Left> {
        self.check(batch)?;
        let (rows, mut bytes) = (batch.num_rows(), 0);
        let mut arrays = Vec::with_capacity(self.wanted.fields.len());
        for wanted in &self.wanted.fields {
            let column = &self.rows.columns[*wanted];
            let of = (&self.rows.arrow, column);
            let data = batch.column(column.field()).to_data();
            bytes += array_bytes(of, &data);
            let mut dictionaries = Vec::new();
            for found in dictionaries_of(of, &data) {
                let made = self.rows.dictionary(&found, &dictionaries, &mut self.dictionaries)?;
                dictionaries.push((found.id, made));
            }
            arrays.push(WantedArray { data, dictionaries });
        }
        let bytes_of_row = (bytes / rows.max(1)).max(1);
        let rows_of_block = (BLOCK_BYTES / bytes_of_row).clamp(1, rows.max(1));
        Ok(Left { arrays: Arc::new(arrays), next: 0, rows, rows_of_block, bytes_of_row })
    }

    /// Checks that a batch has the fields that were told.
    fn check(&self, batch: &RecordBatch) -> Result<()> {
        let told = self.rows.schema.fields();
        let schema = batch.schema();
        let types = |(a, b): (&arrow_schema::FieldRef, &arrow_schema::FieldRef)| {
            a.data_type() == b.data_type()
        };
        match told.len() == schema.fields().len() && told.iter().zip(schema.fields()).all(types) {
            true => Ok(()),
            false => Err(Error::Invalid(format!(
                "{}: a batch has other fields than the schema of its stream",
                self.rows.name
            ))),
        }
    }
}

impl TypedReader for Reader {
    fn next(&mut self) -> Result<Option<Box<dyn TypedBlock>>> {
        loop {
            if let Some(left) = self.left.as_mut().filter(|left| left.next < left.rows) {
                let first = left.next;
                left.next = (first + left.rows_of_block).min(left.rows);
                return Ok(Some(Box::new(Block {
                    source: Arc::clone(&self.rows),
                    wanted: self.wanted.clone(),
                    arrays: Arc::clone(&left.arrays),
                    rows: first..left.next,
                    bytes: (left.next - first) * left.bytes_of_row,
                })));
            }
            match self.batches.next().transpose()? {
                Some(batch) => self.left = Some(self.take(&batch)?),
                None => return Ok(None),
            }
        }
    }
}

impl ArrowRows {
    /// A dictionary: the one that is known, if it was made of the same array. Those within it were made before.
    fn dictionary(
        &self,
        found: &ArrayDictionary<'_>,
        inner: &[(i64, Arc<Dictionary>)],
        known: &mut HashMap<i64, (ArrayData, Arc<Dictionary>)>,
    ) -> Result<Arc<Dictionary>> {
        let ArrayDictionary { id, field, data } = found;
        if let Some((of, dictionary)) = known.get(id)
            && of.ptr_eq(data)
        {
            return Ok(Arc::clone(dictionary));
        }
        let values = read_array(field, data, DICTIONARY_BYTES_MAX, &|id| dictionary_in(inner, id));
        let values = values.map_err(|fault| self.told(fault))?;
        let dictionary = Arc::new(Dictionary::new(values.values, values.slice.into_owned()));
        known.insert(*id, ((*data).clone(), Arc::clone(&dictionary)));
        Ok(dictionary)
    }

    fn told(&self, fault: Fault) -> Error {
        let name = &self.name;
        match fault {
            Fault::Read(error) => error,
            Fault::TooLarge(bytes) => Error::Limit(format!(
                "{name}: lists of some rows take {bytes} bytes as text (try more memory, or batches of fewer rows)"
            )),
            fault => Error::Invalid(format!("{name}: {fault}")),
        }
    }
}

/// A dictionary by its number.
fn dictionary_in(
    all: &[(i64, Arc<Dictionary>)],
    id: i64,
) -> std::result::Result<Arc<Dictionary>, Fault> {
    let found = all.iter().find(|(number, _)| *number == id);
    let found = found.map(|(_, dictionary)| Arc::clone(dictionary));
    found.ok_or_else(|| Fault::Damaged(format!("dictionary {id} is not there")))
}

/// Rows of a batch.
#[derive(Debug)]
struct Block {
    source: Arc<ArrowRows>,
    wanted: Wanted,
    arrays: Arc<Vec<WantedArray>>,
    rows: std::ops::Range<usize>,
    bytes: usize,
}

impl Block {
    fn column<'a>(
        &'a self,
        (array, wanted): (&'a WantedArray, usize),
        rows: std::ops::Range<usize>,
    ) -> Result<Column<'a>> {
        let of = (&self.source.arrow, &self.source.columns[wanted]);
        let dictionaries = |id| dictionary_in(&array.dictionaries, id);
        read_array_column(of, &array.data, rows, self.wanted.bytes_max, &dictionaries)
            .map_err(|fault| self.source.told(fault))
    }
}

impl TypedBlock for Block {
    fn bytes(&self) -> usize {
        self.bytes
    }

    fn columns(&self, wanted: usize) -> Result<(usize, Vec<Column<'_>>)> {
        let rows = self.rows.start..self.rows.start + self.rows.len().min(wanted);
        let arrays = self.arrays.iter().zip(self.wanted.fields.iter().copied());
        let columns = arrays.map(|of| self.column(of, rows.clone()));
        Ok((rows.len(), columns.collect::<Result<_>>()?))
    }
}
