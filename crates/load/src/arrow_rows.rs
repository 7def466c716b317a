//! Batches of Arrow in memory as an input: those of a data frame, of another library, or of a program that makes them.
//!
//! ```text
//!   stream -> batch -> blocks of some hundred KiB, which share the batch's bytes -> columns, parsed by all workers
//! ```
//!
//! Batches are taken one at a time, by one worker at a time. Nothing of them is copied before it is parsed but the values of
//! dictionaries, once for each dictionary.

use std::fmt;
use std::iter::Peekable;
use std::sync::{Arc, Mutex};

use arrow_array::{Array, RecordBatch};
use arrow_data::ArrayData;
use arrow_schema::SchemaRef;
use coload_arrow::{
    ArrowSchema, ArrowType, Encoding, Fault, Field, SliceValues, array_bytes, dictionary_of,
    read_array, schema_of,
};
use coload_input::{InputFile, InputSource};
use coload_threads::lock;
use coload_types::{Error, Result};

use crate::typed::{Column, Dictionary, TypedField};
use crate::typed_source::{PartBytes, SourceParts, TypedBlock, TypedReader, TypedSource, Wanted};

/// Bytes of a block, unless one row has more.
const BLOCK_BYTES: usize = 512 << 10;

/// Batches of the same fields, taken as they come. They are taken on threads of the load.
pub type Batches = Box<dyn Iterator<Item = Result<RecordBatch>> + Send>;

/// Batches of Arrow as the rows of an input. They can be read once.
pub struct ArrowRows {
    name: String,
    schema: SchemaRef,
    arrow: Arc<ArrowSchema>,
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
        let field = |field: &Field| TypedField {
            data_type: field.values.sql_type(),
            is_readable: !matches!(field.values, ArrowType::Other(..)),
            is_null: field.values == ArrowType::Null,
            kind: field.to_string(),
            name: field.name.clone(),
            nullable: field.nullable,
        };
        let fields = arrow.fields.iter().map(field).collect();
        let mut batches = batches.peekable();
        let row_bytes = match batches.peek() {
            Some(Ok(batch)) if batch.num_rows() > 0 => {
                let data = batch.columns().iter().map(|column| column.to_data());
                let bytes = data.zip(&arrow.fields).map(|(data, field)| array_bytes(field, &data));
                Some((bytes.sum::<usize>() / batch.num_rows()).max(1))
            }
            _ => None,
        };
        let (name, arrow) = (name.to_owned(), Arc::new(arrow));
        let batches = Mutex::new(Some(batches));
        Ok(ArrowRows { name, schema, arrow, fields, batches, row_bytes, rows: None })
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
        self.arrow.fields[field].encoding != Encoding::Plain
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
        let dictionaries = vec![None; wanted.fields.len()];
        let wanted = wanted.fields.clone();
        Ok(Box::new(Reader { rows: self, batches, wanted, dictionaries, left: None }))
    }
}

/// Takes batches, and cuts them.
struct Reader {
    rows: Arc<ArrowRows>,
    batches: Peekable<Batches>,
    wanted: Vec<usize>,
    /// Of each wanted field the dictionary that came last, and the array that it was made of.
    dictionaries: Vec<Option<(ArrayData, Arc<Dictionary>)>>,
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
    dictionary: Option<Arc<Dictionary>>,
}

impl Reader {
    fn take(&mut self, batch: &RecordBatch) -> Result<Left> {
        self.check(batch)?;
        let (rows, mut bytes) = (batch.num_rows(), 0);
        let mut arrays = Vec::with_capacity(self.wanted.len());
        for (number, wanted) in self.wanted.iter().enumerate() {
            let field = &self.rows.arrow.fields[*wanted];
            let data = batch.column(*wanted).to_data();
            bytes += array_bytes(field, &data);
            let dictionary = match dictionary_of(field, &data) {
                None => None,
                Some(values) => {
                    let known = &mut self.dictionaries[number];
                    Some(dictionary(&self.rows.name, field, values, known)?)
                }
            };
            arrays.push(WantedArray { data, dictionary });
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

/// The dictionary of an array of values: the one that is known, if it was made of the same.
fn dictionary(
    name: &str,
    field: &Field,
    values: &ArrayData,
    known: &mut Option<(ArrayData, Arc<Dictionary>)>,
) -> Result<Arc<Dictionary>> {
    if let Some((of, dictionary)) = known
        && of.ptr_eq(values)
    {
        return Ok(Arc::clone(dictionary));
    }
    let plain = Field { encoding: Encoding::Plain, ..field.clone() };
    let slice = read_array(&plain, values, 0..values.len());
    let slice = slice.map_err(|fault| told(name, fault))?.into_owned();
    let dictionary = Arc::new(Dictionary::new(field.values.clone(), slice));
    *known = Some((values.clone(), Arc::clone(&dictionary)));
    Ok(dictionary)
}

fn told(name: &str, fault: Fault) -> Error {
    match fault {
        Fault::Read(error) => error,
        fault => Error::Invalid(format!("{name}: {fault}")),
    }
}

/// Rows of a batch.
#[derive(Debug)]
struct Block {
    source: Arc<ArrowRows>,
    wanted: Vec<usize>,
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
        let (name, field) = (&self.source.name, &self.source.arrow.fields[wanted]);
        let slice = read_array(field, &array.data, rows);
        let slice = slice.map_err(|fault| told(name, fault))?;
        let dictionary = match &slice.values {
            SliceValues::Keys(..) => array.dictionary.clone(),
            _ => None,
        };
        let column = Column { values: field.values.clone(), slice, dictionary };
        match column.has_all_keys() {
            true => Ok(column),
            false => Err(Error::Invalid(format!(
                "{name}: field {} has keys that its dictionary has not",
                field.name
            ))),
        }
    }
}

impl TypedBlock for Block {
    fn bytes(&self) -> usize {
        self.bytes
    }

    fn columns(&self, wanted: usize) -> Result<(usize, Vec<Column<'_>>)> {
        let rows = self.rows.start..self.rows.start + self.rows.len().min(wanted);
        let arrays = self.arrays.iter().zip(self.wanted.iter().copied());
        let columns = arrays.map(|of| self.column(of, rows.clone()));
        Ok((rows.len(), columns.collect::<Result<_>>()?))
    }
}
