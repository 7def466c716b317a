//! A column of the fragments of a partition: values as they are, or codes of those that dictionaries bring.
//!
//! Cost: a value of a dictionary of Arrow is looked up once a partition and worker, a row of it costs a copy of its code.

use std::collections::HashMap;
use std::sync::Arc;

use coload_arrow::{Column, Dictionary, SliceValues};
use coload_source::{ColumnForm, ColumnPlan, FieldError};
use coload_transform::{
    DictionaryLimit, DistinctSketch, FragmentColumn, NULL_CODE, ProvisionalCodes,
    TemporaryDictionary,
};
use coload_types::{DataType, Plain, Value, Values};

use super::convert::{Converted, convert, error_of, gather};
use super::dictionary::{append, convert_dictionary};

/// The code of a key that was not looked up yet; no dictionary has so many values.
const UNKNOWN: u16 = NULL_CODE - 1;
/// The key of a row that is NULL; no dictionary has so many values.
const NO_KEY: u32 = u32::MAX;

/// Values of rows, before it is known which of them are kept.
pub enum Made {
    /// A value for each row.
    Plain(Converted),
    /// For each row a key of converted values, or [`NO_KEY`].
    Keys(Vec<u32>, Arc<Keyed>),
}

/// A dictionary of Arrow or the values of runs, converted.
#[derive(Debug)]
pub struct Keyed {
    /// What it was made of; of runs nothing that comes again.
    of: Option<Arc<Dictionary>>,
    converted: Converted,
}

impl Made {
    /// What is wrong with a row, if something is.
    pub fn error(&self, row: usize) -> Option<FieldError> {
        match self {
            Made::Plain(converted) => error_of(&converted.bad, row),
            Made::Keys(keys, keyed) => error_of(&keyed.converted.bad, keys[row] as usize),
        }
    }

    /// Whether some row may be wrong.
    pub fn has_errors(&self) -> bool {
        match self {
            Made::Plain(converted) => !converted.bad.is_empty(),
            Made::Keys(_, keyed) => !keyed.converted.bad.is_empty(),
        }
    }

    /// Whether a row is NULL.
    pub fn is_null(&self, row: usize) -> bool {
        match self {
            Made::Plain(converted) => converted.plain.is_null(row),
            Made::Keys(keys, keyed) => {
                keys[row] == NO_KEY || keyed.converted.plain.is_null(keys[row] as usize)
            }
        }
    }

    /// Whether some row may be NULL.
    pub fn may_be_null(&self) -> bool {
        match self {
            Made::Plain(converted) => converted.plain.nulls.is_some(),
            Made::Keys(keys, keyed) => {
                keyed.converted.plain.nulls.is_some() || keys.contains(&NO_KEY)
            }
        }
    }

    /// Bytes of text that the rows would have as values of their own, and have not yet.
    fn text_bytes(&self) -> u64 {
        match self {
            Made::Plain(_) => 0,
            Made::Keys(keys, keyed) => {
                let Values::Bytes(strings) = &keyed.converted.plain.values else { return 0 };
                let some = keys.iter().filter(|key| **key != NO_KEY);
                some.map(|key| strings.get(*key as usize).len() as u64).sum()
            }
        }
    }
}

/// One column of the fragments that a worker makes of a partition.
#[derive(Debug)]
pub struct ColumnRows {
    data_type: DataType,
    plan: ColumnPlan,
    form: ColumnForm,
    /// Whether there were too many values for codes.
    left_codes: bool,
    plain: Plain,
    codes: Vec<u16>,
    dictionary: TemporaryDictionary,
    limit: DictionaryLimit,
    text_bytes: usize,
    known: HashMap<Value, u16, foldhash::fast::RandomState>,
    /// The dictionary of Arrow that was met last, and the codes of its keys.
    keyed: Option<(Arc<Keyed>, Vec<u16>)>,
    distinct: Option<Arc<DistinctSketch>>,
}

impl ColumnRows {
    /// No rows yet.
    pub fn new(
        data_type: DataType,
        plan: ColumnPlan,
        limit: DictionaryLimit,
        distinct: Option<Arc<DistinctSketch>>,
    ) -> Self {
        let physical = data_type.physical();
        ColumnRows {
            data_type,
            plan,
            form: ColumnForm::Planned,
            left_codes: false,
            plain: Plain::empty(physical),
            codes: Vec::new(),
            dictionary: TemporaryDictionary::empty(physical),
            limit,
            text_bytes: 0,
            known: HashMap::default(),
            keyed: None,
            distinct,
        }
    }

    fn is_planned_codes(&self) -> bool {
        matches!(self.plan, ColumnPlan::Codes)
    }

    /// Whether its next rows become codes.
    pub fn makes_codes(&self) -> bool {
        self.is_planned_codes() && !self.left_codes && self.form == ColumnForm::Planned
    }

    /// How its next rows are given.
    pub fn read_as(&mut self, form: ColumnForm) {
        self.form = form;
    }

    /// There are too many values for codes.
    pub fn leave_codes(&mut self) {
        self.left_codes = true;
    }

    /// The values of its codes; `None` where it never has codes.
    pub fn dictionary(&self) -> Option<&TemporaryDictionary> {
        self.is_planned_codes().then_some(&self.dictionary)
    }

    /// The same, when nothing more comes.
    pub fn into_dictionary(self) -> TemporaryDictionary {
        self.dictionary
    }

    /// Some values of the dictionary may stand in no row.
    pub fn mark_stale(&mut self) {
        self.dictionary.stale = true;
    }

    /// Converts rows.
    pub fn convert(&mut self, column: &Column<'_>) -> Made {
        let (keys, keyed) = match (&column.slice.values, &column.dictionary) {
            (SliceValues::Keys(keys, _), Some(dictionary)) => (keys, self.keyed_by(dictionary)),
            (SliceValues::Indexed(keys, of), _) => {
                let converted = convert(of, &column.values, self.data_type);
                (keys, self.keep_keyed(Keyed { of: None, converted }))
            }
            _ => return Made::Plain(convert(&column.slice, &column.values, self.data_type)),
        };
        if column.slice.has_no_nulls() {
            return Made::Keys(keys.clone(), keyed);
        }
        let key = |(row, key): (usize, &u32)| if column.slice.is_null(row) { NO_KEY } else { *key };
        Made::Keys(keys.iter().enumerate().map(key).collect(), keyed)
    }

    /// A dictionary, converted: the one that was met last, or another.
    fn keyed_by(&mut self, dictionary: &Arc<Dictionary>) -> Arc<Keyed> {
        let same =
            |keyed: &Arc<Keyed>| keyed.of.as_ref().is_some_and(|of| Arc::ptr_eq(of, dictionary));
        match &self.keyed {
            Some((keyed, _)) if same(keyed) => Arc::clone(keyed),
            _ => {
                let converted = convert_dictionary(dictionary, self.data_type);
                self.keep_keyed(Keyed { of: Some(Arc::clone(dictionary)), converted })
            }
        }
    }

    fn keep_keyed(&mut self, keyed: Keyed) -> Arc<Keyed> {
        let codes = vec![UNKNOWN; keyed.converted.plain.len()];
        let keyed = Arc::new(keyed);
        self.keyed = Some((Arc::clone(&keyed), codes));
        keyed
    }

    /// Bytes of text that the fragment has if these rows have values of their own.
    fn bytes_with(&self, made: &Made) -> u64 {
        let texts = |values: &Values, codes: &[u16]| -> u64 {
            let Values::Bytes(strings) = values else { return 0 };
            let known = codes.iter().filter(|code| **code != NULL_CODE);
            known.map(|code| strings.get(usize::from(*code)).len() as u64).sum()
        };
        let plain = self.plain.values.bytes() as u64;
        plain + texts(&self.dictionary.values, &self.codes) + made.text_bytes()
    }

    /// Adds rows, those of `kept` if not all; their values may take `bytes_max` where they are no codes.
    ///
    /// # Errors
    /// The bytes that they would take, if these are more.
    pub fn add(&mut self, made: Made, kept: Option<&[u32]>, bytes_max: u64) -> Result<Added, u64> {
        let mut added = Added::AsPlanned;
        if self.makes_codes() {
            let before = self.codes.len();
            if self.add_codes(&made, kept) {
                return Ok(added);
            }
            self.codes.truncate(before);
            added = Added::LeftCodes;
        }
        match self.bytes_with(&made) {
            bytes if bytes > bytes_max => return Err(bytes),
            _ if added == Added::LeftCodes => self.give_up_codes(),
            _ => {}
        }
        let converted = match made {
            Made::Plain(converted) => converted,
            Made::Keys(keys, keyed) => gather(&keys, |row| keys[row] == NO_KEY, &keyed.converted),
        };
        append(
            &mut self.plain,
            match kept {
                None => converted.plain,
                Some(kept) => pick(converted.plain, kept),
            },
        );
        Ok(added)
    }

    /// The codes of rows; false when there are too many values, with some codes added.
    fn add_codes(&mut self, made: &Made, kept: Option<&[u32]>) -> bool {
        match made {
            Made::Keys(keys, of) => {
                // Of keys that others took the place of the codes are not known.
                let (keyed, mut codes) = match self.keyed.take() {
                    Some((keyed, codes)) if Arc::ptr_eq(&keyed, of) => (keyed, codes),
                    _ => (Arc::clone(of), vec![UNKNOWN; of.converted.plain.len()]),
                };
                let values = &keyed.converted.plain;
                let fits = match kept {
                    None => self.add_keys(keys.iter().copied(), values, &mut codes),
                    Some(kept) => {
                        let kept = kept.iter().map(|row| keys[*row as usize]);
                        self.add_keys(kept, values, &mut codes)
                    }
                };
                self.keyed = Some((keyed, codes));
                fits
            }
            Made::Plain(converted) => {
                let rows = converted.plain.len();
                let mut add = |row: usize| match self.code(converted.plain.get(row)) {
                    Some(code) => {
                        self.codes.push(code);
                        true
                    }
                    None => false,
                };
                match kept {
                    None => (0..rows).all(add),
                    Some(kept) => kept.iter().all(|row| add(*row as usize)),
                }
            }
        }
    }

    /// The codes of keys, each looked up once.
    fn add_keys(
        &mut self,
        keys: impl ExactSizeIterator<Item = u32> + Clone,
        values: &Plain,
        codes: &mut [u16],
    ) -> bool {
        // Mostly the chunks before had all values.
        if codes.contains(&UNKNOWN) {
            for key in keys.clone().filter(|key| *key != NO_KEY) {
                if codes[key as usize] == UNKNOWN {
                    match self.code(values.get(key as usize)) {
                        Some(code) => codes[key as usize] = code,
                        None => return false,
                    }
                }
            }
        }
        let codes = &codes[..];
        let code = |key: u32| if key == NO_KEY { NULL_CODE } else { codes[key as usize] };
        self.codes.extend(keys.map(code));
        true
    }

    /// The code of a value; `None` when there is no room for it.
    fn code(&mut self, value: Option<Value>) -> Option<u16> {
        let Some(value) = value else { return Some(NULL_CODE) };
        if let Some(code) = self.known.get(&value) {
            return Some(*code);
        }
        let text_bytes = match &value {
            Value::Bytes(bytes) => bytes.len(),
            Value::Int(_) | Value::Wide(_) => 0,
        };
        let code = self.dictionary.values.len();
        if code + 1 > self.limit.values_max()
            || !self.limit.holds(code + 1, self.text_bytes + text_bytes)
        {
            return None;
        }
        self.text_bytes += text_bytes;
        self.dictionary.values.push(&value);
        self.known.insert(value, code as u16);
        Some(code as u16)
    }

    /// Makes values of the codes of this fragment; those of others stay what they are.
    fn give_up_codes(&mut self) {
        self.left_codes = true;
        // What came of rows that are plain now may stand nowhere.
        self.dictionary.stale = true;
        for code in std::mem::take(&mut self.codes) {
            let value = (code != NULL_CODE).then(|| self.dictionary.values.get(usize::from(code)));
            self.plain.push(value.as_ref());
        }
    }

    /// The rows, as a column of a fragment; `number` is that of the dictionary.
    pub fn finish(&mut self, number: u32) -> FragmentColumn {
        if self.makes_codes() {
            let codes = std::mem::take(&mut self.codes);
            return FragmentColumn::Codes {
                codes: ProvisionalCodes::new(&codes, self.dictionary.values.len()),
                dictionary: number,
                nulls: codes.contains(&NULL_CODE),
            };
        }
        let empty = Plain::empty(self.data_type.physical());
        let plain = std::mem::replace(&mut self.plain, empty);
        if let Some(distinct) = &self.distinct {
            match &plain.values {
                Values::Int(values) => distinct.add_ints(values),
                Values::Wide(values) => distinct.add_wides(values),
                Values::Bytes(strings) => distinct.add_strings(strings),
            }
        }
        FragmentColumn::Plain(plain)
    }
}

/// How rows were added.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Added {
    /// As the column's plan has it.
    AsPlanned,
    /// There are too many values for codes: the column is plain from now on.
    LeftCodes,
}

/// Some rows of a column.
fn pick(plain: Plain, kept: &[u32]) -> Plain {
    let of = Converted { plain, bad: Vec::new() };
    gather(kept, |_| false, &of).plain
}
