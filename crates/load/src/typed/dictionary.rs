//! Dictionaries of Arrow: values that keys of batches name.

use std::sync::Arc;

use coload_arrow::{ArrowType, Scalar, Slice, SliceValues};
use coload_source::FieldError;
use coload_types::{DataType, Plain, Values};

use super::convert::{Converted, convert};

/// The values of a dictionary, in one or more parts.
#[derive(Debug, Clone)]
pub struct Dictionary {
    values: ArrowType,
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

    /// Number of values.
    pub fn len(&self) -> usize {
        self.parts.iter().map(|part| part.rows).sum()
    }

    /// Bytes of memory that the values take.
    pub fn bytes(&self) -> usize {
        self.parts.iter().map(|part| part.bytes()).sum()
    }

    /// The value of a key; `None` for NULL.
    pub fn get(&self, key: usize) -> Option<Scalar<'_>> {
        let mut first = 0;
        for part in &self.parts {
            if key < first + part.rows {
                return part.get(&self.values, key - first);
            }
            first += part.rows;
        }
        None
    }

    /// All values, as those of a column.
    pub fn convert(&self, target: DataType) -> Converted {
        let mut all = Converted { plain: Plain::empty(target.physical()), bad: Vec::new() };
        for part in &self.parts {
            let first = all.plain.len() as u32;
            let converted = convert(part, &self.values, target);
            let bad = |(row, error): (u32, FieldError)| (first + row, error);
            all.bad.extend(converted.bad.into_iter().map(bad));
            append(&mut all.plain, converted.plain);
        }
        all
    }
}

/// Appends a column to another.
pub fn append(to: &mut Plain, from: Plain) {
    if to.is_empty() {
        *to = from;
        return;
    }
    let before = to.len();
    if to.nulls.is_some() || from.nulls.is_some() {
        let nulls = to.nulls.get_or_insert_with(|| coload_types::Bitmap::zeros(before));
        (0..from.len()).for_each(|row| nulls.push(from.is_null(row)));
    }
    match (&mut to.values, from.values) {
        (Values::Int(to), Values::Int(from)) => to.extend(from),
        (Values::Wide(to), Values::Wide(from)) => to.extend(from),
        (Values::Bytes(to), Values::Bytes(from)) => from.iter().for_each(|s| to.push(s)),
        (to, from) => (0..from.len()).for_each(|row| to.push(&from.get(row))),
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
