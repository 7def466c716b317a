//! Dictionaries, and columns whose keys lead to their values.

use std::sync::Arc;

use crate::fault::Result;
use crate::slice::{Slice, SliceValues};
use crate::types::ArrowType;
use crate::value::Scalar;

/// Who has dictionaries, by their numbers.
pub type DictionariesOf<'d> = &'d dyn Fn(i64) -> Result<Arc<Dictionary>>;

/// The values of a dictionary, in one or more parts.
#[derive(Debug, Clone)]
pub struct Dictionary {
    /// The type of the values.
    pub values: ArrowType,
    parts: Vec<Arc<Slice<'static>>>,
}

impl Dictionary {
    /// A dictionary of these values.
    pub fn new(values: ArrowType, part: Slice<'static>) -> Self {
        Dictionary { values, parts: vec![Arc::new(part)] }
    }

    /// The dictionary with values after those that it has.
    pub fn with(&self, part: Slice<'static>) -> Self {
        let parts = self.parts.iter().cloned().chain([Arc::new(part)]).collect();
        Dictionary { values: self.values.clone(), parts }
    }

    /// The values, in parts.
    pub fn parts(&self) -> impl Iterator<Item = &Slice<'static>> {
        self.parts.iter().map(|part| &**part)
    }

    /// Number of values.
    pub fn len(&self) -> usize {
        self.parts().map(|part| part.rows).sum()
    }

    /// Whether there are none.
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// Bytes of memory that the values take.
    pub fn bytes(&self) -> usize {
        self.parts().map(Slice::bytes).sum()
    }

    /// The value of a key; `None` for NULL.
    pub fn get(&self, key: usize) -> Option<Scalar<'_>> {
        let mut first = 0;
        for part in self.parts() {
            if key < first + part.rows {
                return part.get(&self.values, key - first);
            }
            first += part.rows;
        }
        None
    }
}

/// A column of some rows of a batch, with the dictionary that its keys are of.
#[derive(Debug)]
pub struct Column<'a> {
    /// The type of its values.
    pub values: ArrowType,
    /// Its rows.
    pub slice: Slice<'a>,
    /// Values of its keys, if it has some.
    pub dictionary: Option<Arc<Dictionary>>,
}

impl Column<'_> {
    /// Whether its dictionary has a value for each key.
    pub fn has_all_keys(&self) -> bool {
        let SliceValues::Keys(keys, _) = &self.slice.values else { return true };
        let count = self.dictionary.as_ref().map_or(0, |dictionary| dictionary.len());
        let mut rows = keys.iter().enumerate();
        rows.all(|(row, key)| (*key as usize) < count || self.slice.is_null(row))
    }

    /// The value of a row; `None` for NULL.
    pub fn get(&self, row: usize) -> Option<Scalar<'_>> {
        match (&self.slice.values, &self.dictionary) {
            (SliceValues::Keys(keys, _), Some(dictionary)) if !self.slice.is_null(row) => {
                dictionary.get(*keys.get(row)? as usize)
            }
            _ => self.slice.get(&self.values, row),
        }
    }
}
