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

/// Which fields of a record the columns are; the others are not read.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct FieldMap {
    /// Fields of a record.
    pub count: usize,
    /// For each column its field, from 0.
    pub of_column: Vec<usize>,
}

/// The fields of all inputs.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct FieldsByInput {
    /// Each different way in which inputs have them, once.
    pub ways: Vec<InputFields>,
    /// For each input its way; all have the first if it is empty.
    pub of_input: Vec<u32>,
}

impl FieldsByInput {
    /// The number of an input's way.
    pub fn way(&self, file: usize) -> usize {
        self.of_input.get(file).map_or(0, |way| *way as usize)
    }

    /// The fields of an input.
    pub fn of(&self, file: usize) -> &InputFields {
        &self.ways[self.way(file)]
    }

    /// Whether inputs have different fields.
    pub fn differ(&self) -> bool {
        self.ways.len() > 1
    }

    /// The same of some of the columns.
    pub fn of_columns(&self, columns: &[usize]) -> Self {
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
    pub fn check(&self, inputs: usize, columns: usize) -> Result<()> {
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
