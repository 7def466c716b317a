//! A column whose values stand in the paths of the inputs: a code for the rows of each.

use std::collections::HashMap;

use coload_input::Names;
use coload_transform::{
    CODES_PROVISIONAL_MAX, FragmentColumn, NULL_CODE, ProvisionalCodes, TemporaryDictionary,
};
use coload_types::{Column, Error, Result, Value, parse_value};
use coload_wire::partition_value;

use super::runs_of;
use crate::format::PieceSpan;

/// The values of a key in the paths of a load's inputs.
#[derive(Debug)]
pub struct Partition {
    /// Each value once. A partition has rows of some of the inputs only.
    pub dictionary: TemporaryDictionary,
    /// The code of each input.
    of_input: Vec<u16>,
}

/// Checks that the paths of all inputs have a key, and that a column holds its values.
///
/// # Errors
/// `Invalid` when it is not so, `Limit` when there are too many values.
pub fn check_partition(column: &Column, key: &str, names: &Names) -> Result<()> {
    Partition::new(column, key, names).map(drop)
}

impl Partition {
    /// Finds the values of a key for a column.
    ///
    /// # Errors
    /// `Invalid` when an input has no such key, or the column does not hold its value; `Limit` when there are too many.
    pub fn new(column: &Column, key: &str, names: &Names) -> Result<Self> {
        let mut dictionary = TemporaryDictionary::empty(column.data_type.physical());
        dictionary.stale = true;
        let mut codes: HashMap<String, u16> = HashMap::new();
        let mut of_input = Vec::with_capacity(names.len());
        for name in names.iter() {
            let Some(value) = partition_value(&name, key) else {
                return Err(Error::Invalid(format!("{name} has no {key}= in its path")));
            };
            let Some(text) = value else {
                if !column.nullable {
                    return Err(Error::Invalid(format!(
                        "{name}: {key}= is NULL, and column {} is NOT NULL",
                        column.name
                    )));
                }
                of_input.push(NULL_CODE);
                continue;
            };
            if let Some(code) = codes.get(&*text) {
                of_input.push(*code);
                continue;
            }
            let value = parse_value(text.as_bytes(), column.data_type).map_err(|rule| {
                let (data_type, why) = (column.data_type, rule.text());
                Error::Invalid(format!("{name}: {key}={text} is not {data_type}: {why}"))
            })?;
            if codes.len() >= CODES_PROVISIONAL_MAX {
                return Err(Error::Limit(format!(
                    "the paths have over {CODES_PROVISIONAL_MAX} values of {key}= (load them in parts)"
                )));
            }
            let code = codes.len() as u16;
            dictionary.values.push(&value);
            codes.insert(text.into_owned(), code);
            of_input.push(code);
        }
        Ok(Partition { dictionary, of_input })
    }

    /// The value of an input, by its number; `None` for NULL.
    pub fn value(&self, input: usize) -> Option<Value> {
        let code = usize::from(self.of_input[input]);
        (code < self.dictionary.values.len()).then(|| self.dictionary.values.get(code))
    }

    /// The column of rows of which `spans` tell from which inputs they come.
    pub fn column(&self, spans: &[PieceSpan], rows: u32) -> FragmentColumn {
        let spans = spans.iter().filter(|span| span.rows > 0);
        let (codes, starts) = runs_of(spans, |input| self.of_input[input]);
        let nulls = codes.contains(&NULL_CODE);
        let codes = ProvisionalCodes::of_runs(&codes, &starts, rows, self.dictionary.values.len());
        FragmentColumn::Codes { codes, dictionary: 0, nulls }
    }
}
