//! Which fields of the records of each input the columns are, where inputs have different ones.
//!
//! ```text
//!   a.csv   id,name        columns   id 0   name 1   note -
//!   b.csv   note,id                  id 1   name -   note 0        - is NULL, or the default of the column
//!   c.csv   id,name                  as a.csv
//! ```
//!
//! Cost: a number for each input, and a map for each different header.

use coload_source::InputFields;
use coload_types::{Error, Result};

use crate::options::{FieldMap, LoadOptions};

/// The fields of all inputs.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct FieldsByInput {
    /// Each different way in which inputs have them, once.
    pub ways: Vec<InputFields>,
    /// For each input its way; all have the first if it is empty.
    pub of_input: Vec<u32>,
}

impl FieldsByInput {
    /// The fields of the inputs of a load.
    pub(crate) fn of_load(options: &LoadOptions) -> Self {
        if let Some(fields) = &options.fields_by_input {
            return FieldsByInput::clone(fields);
        }
        let way = match &options.fields {
            Some(FieldMap { count, of_column }) => InputFields {
                count: *count,
                of_column: of_column.iter().map(|field| Some(*field)).collect(),
            },
            None => {
                let count = options.read_schema().len();
                InputFields { count, of_column: (0..count).map(Some).collect() }
            }
        };
        FieldsByInput { ways: vec![way], of_input: Vec::new() }
    }

    /// The number of an input's way.
    pub(crate) fn way(&self, file: usize) -> usize {
        self.of_input.get(file).map_or(0, |way| *way as usize)
    }

    /// The fields of an input.
    pub(crate) fn of(&self, file: usize) -> &InputFields {
        &self.ways[self.way(file)]
    }

    /// Whether inputs have different fields.
    pub(crate) fn differ(&self) -> bool {
        self.ways.len() > 1
    }

    /// The same of some of the columns.
    pub(crate) fn of_columns(&self, columns: &[usize]) -> Self {
        let select = |way: &InputFields| InputFields {
            count: way.count,
            of_column: columns.iter().map(|column| way.of_column[*column]).collect(),
        };
        FieldsByInput {
            ways: self.ways.iter().map(select).collect(),
            of_input: self.of_input.clone(),
        }
    }

    /// Checks that they are those of so many inputs and columns.
    ///
    /// # Errors
    /// `Invalid` when they are not.
    pub(crate) fn check(&self, inputs: usize, columns: usize) -> Result<()> {
        let fits = |way: &InputFields| {
            way.of_column.len() == columns
                && way.of_column.iter().flatten().all(|field| *field < way.count)
        };
        let known = |way: &u32| (*way as usize) < self.ways.len();
        let right = !self.ways.is_empty()
            && self.ways.iter().all(fits)
            && (self.of_input.len() == inputs || !self.differ() && self.of_input.is_empty())
            && self.of_input.iter().all(known);
        match right {
            true => Ok(()),
            false => Err(Error::Invalid(format!(
                "{columns} columns are read from {inputs} inputs, whose fields are {self:?}"
            ))),
        }
    }
}
