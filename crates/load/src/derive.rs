//! Columns whose values no field of a record tells: a constant, a default, the name of the input.
//!
//! ```text
//!   record   a b         read:   a, b
//!   table    a b c d     c is a constant, d the name of the input: a code for the rows of each piece
//! ```
//!
//! Cost: no look at any row; a byte a row to hold its code.

mod partition;

use std::collections::{HashMap, hash_map::Entry};

use coload_input::Inputs;
use coload_transform::{
    CODES_PROVISIONAL_MAX, Fragment, FragmentColumn, NULL_CODE, ProvisionalCodes,
    TemporaryDictionary,
};
use coload_types::{Column, Error, Plain, Result, Strings, Value, Values};
use coload_wire::{ColumnFrom, load_time};

use crate::format::PieceSpan;
use crate::request::LoadRequest;
pub(crate) use partition::Partition;
pub use partition::check_partition;

/// What a column is made of, once it is known when the load began.
#[derive(Debug)]
enum Made {
    OfRead(usize),
    Constant(Option<Value>),
    InputName,
    Partition(Partition),
}

impl Made {
    fn new(column: &Column, from: &ColumnFrom, request: &LoadRequest) -> Result<Self> {
        let began_us = request.began_us;
        Ok(match from {
            ColumnFrom::Read(index) => Made::OfRead(*index),
            ColumnFrom::Constant(value) => Made::Constant(value.clone()),
            ColumnFrom::InputName => Made::InputName,
            ColumnFrom::Partition(key) => {
                Made::Partition(Partition::new(column, key, request.inputs.names())?)
            }
            ColumnFrom::LoadTime => match load_time(began_us, column.data_type) {
                Some(time) => Made::Constant(Some(time)),
                None => {
                    return Err(Error::Invalid(format!(
                        "column {} is {}, which does not hold the load's time",
                        column.name, column.data_type
                    )));
                }
            },
        })
    }
}

/// Makes the columns of a table of those that were read.
#[derive(Debug)]
pub struct Deriver {
    columns: Vec<Made>,
    /// The columns read that the columns are.
    read: Vec<Option<usize>>,
    /// Of the columns that are not read.
    dictionaries: Vec<Option<TemporaryDictionary>>,
    names: InputNames,
}

impl Deriver {
    /// For a load that reads other columns than the table has.
    ///
    /// # Errors
    /// `Invalid` when a column does not hold the time of the load.
    pub fn new(request: &LoadRequest) -> Result<Option<Self>> {
        let Some(derivation) = &request.derivation else { return Ok(None) };
        let columns = request.schema.columns().iter().zip(&derivation.columns);
        let made = columns.map(|(column, from)| Made::new(column, from, request));
        let made = made.collect::<Result<Vec<_>>>()?;
        let asked = made.iter().any(|made| matches!(made, Made::InputName));
        let names = InputNames::new(if asked { request.inputs.clone() } else { Inputs::default() });
        let dictionary = |(column, made): (&Column, &Made)| match made {
            Made::OfRead(_) => None,
            Made::InputName => names.dictionary(),
            Made::Partition(partition) => Some(partition.dictionary.clone()),
            Made::Constant(value) => {
                let mut dictionary = TemporaryDictionary::empty(column.data_type.physical());
                value.iter().for_each(|value| dictionary.values.push(value));
                Some(dictionary)
            }
        };
        let dictionaries = request.schema.columns().iter().zip(&made).map(dictionary).collect();
        let read = |from: &ColumnFrom| match (from, &request.program) {
            (ColumnFrom::Read(index), Some(program)) => program.sources()[*index],
            (ColumnFrom::Read(index), None) => Some(*index),
            _ => None,
        };
        let read = derivation.columns.iter().map(read).collect();
        Ok(Some(Deriver { columns: made, read, dictionaries, names }))
    }

    /// Columns of the table.
    pub fn width(&self) -> usize {
        self.columns.len()
    }

    /// The column read that a column of the table is.
    pub fn read(&self, column: usize) -> Option<usize> {
        self.read[column]
    }

    /// The rows of the table; `spans` tell from which inputs they come, in order.
    pub fn derive(&self, read: Fragment, spans: &[PieceSpan]) -> Fragment {
        let rows = read.rows;
        let mut read: Vec<Option<FragmentColumn>> = read.columns.into_iter().map(Some).collect();
        let column = |made: &Made| match made {
            Made::OfRead(index) => {
                read.get_mut(*index).and_then(Option::take).unwrap_or_else(|| constant(None, rows))
            }
            Made::Constant(value) => constant(value.as_ref(), rows),
            Made::InputName => self.names.column(spans, rows),
            Made::Partition(partition) => partition.column(spans, rows),
        };
        Fragment { rows, columns: self.columns.iter().map(column).collect() }
    }

    /// The dictionary of a column that is not read.
    pub fn dictionary(&self, column: usize) -> Option<&TemporaryDictionary> {
        self.dictionaries[column].as_ref()
    }
}

fn constant(value: Option<&Value>, rows: u32) -> FragmentColumn {
    let code = if value.is_some() { 0 } else { NULL_CODE };
    let codes = ProvisionalCodes::of_runs(&[code], &[0], rows, 1);
    FragmentColumn::Codes { codes, dictionary: 0, nulls: value.is_none() }
}

/// The names of a load's inputs, each once.
#[derive(Debug)]
struct InputNames {
    inputs: Inputs,
    /// Empty if they are too many to have codes.
    names: Strings,
    /// The name of each input.
    of_input: Vec<u32>,
}

impl InputNames {
    fn new(inputs: Inputs) -> Self {
        let mut names = Strings::default();
        if inputs.len() > CODES_PROVISIONAL_MAX {
            return InputNames { inputs, names, of_input: Vec::new() };
        }
        let mut numbers: HashMap<String, u32> = HashMap::new();
        let number = |name: String| {
            let next = numbers.len() as u32;
            match numbers.entry(name) {
                Entry::Occupied(entry) => *entry.get(),
                Entry::Vacant(entry) => {
                    names.push(entry.key().as_bytes());
                    *entry.insert(next)
                }
            }
        };
        let of_input = inputs.names().iter().map(number).collect();
        InputNames { inputs, names, of_input }
    }

    fn dictionary(&self) -> Option<TemporaryDictionary> {
        let values = Values::Bytes(self.names.clone());
        // A partition has rows of some of the inputs only.
        self.are_few().then_some(TemporaryDictionary { values, stale: true })
    }

    fn are_few(&self) -> bool {
        self.inputs.len() <= CODES_PROVISIONAL_MAX
    }

    fn column(&self, spans: &[PieceSpan], rows: u32) -> FragmentColumn {
        let spans = spans.iter().filter(|span| span.rows > 0);
        if !self.are_few() {
            let mut strings = Strings::default();
            for span in spans {
                let name = self.inputs.name(span.file);
                (0..span.rows).for_each(|_| strings.push(name.as_bytes()));
            }
            return FragmentColumn::Plain(Plain { values: Values::Bytes(strings), nulls: None });
        }
        let (codes, starts) = runs_of(spans, |input| self.of_input[input] as u16);
        let codes = ProvisionalCodes::of_runs(&codes, &starts, rows, self.names.len());
        FragmentColumn::Codes { codes, dictionary: 0, nulls: false }
    }
}

/// Codes that belong to inputs as runs of the rows of a fragment, and where each begins.
fn runs_of<'a>(
    spans: impl Iterator<Item = &'a PieceSpan>,
    code_of: impl Fn(usize) -> u16,
) -> (Vec<u16>, Vec<u32>) {
    let (mut codes, mut starts, mut start) = (Vec::new(), Vec::new(), 0);
    for span in spans {
        let code = code_of(span.file);
        if codes.last() != Some(&code) {
            codes.push(code);
            starts.push(start);
        }
        start += span.rows as u32;
    }
    (codes, starts)
}
