//! The sort step for columns that come plain, one fragment after the other: what the server does for
//! the columns that the client left to it.
//!
//! ```text
//!   plain fragment  ->  codes of a temporary dictionary, while the values are few
//!                   ->  a plain page, encoded at once, when they are many
//! ```
//!
//! It is the parse step's choice, made from values instead of text. The first fragment decides, by an
//! estimate of its distinct values; a column that meets too many later goes on plain.
//!
//! Cost: a look-up for each value of few ([`CodeIndex`]), encoding for each of many; the fragment's plain
//! values are gone when it returns.
//!
//! Source: seed 000, section 4.2 (sort step of the server).

use std::sync::Arc;

use coload_page::SymbolEncoder;
use coload_types::{Dictionary, Physical, Plain, Result, Values};

use crate::code_index::{CodeIndex, hashes};
use crate::compress::encode_column;
use crate::merge::merge_column;
use crate::{
    CODES_PROVISIONAL_MAX, DictionaryLimit, DictionaryPolicy, FragmentColumn, HyperLogLog,
    PartitionColumn, ProvisionalCodes, TemporaryDictionary, compress_column, sort_temporaries,
};

/// Rows of the first fragment that are looked at.
const SAMPLE_ROWS: usize = 1 << 16;

/// Whether text that is plain is shortened by symbols.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Symbols {
    /// By those of the first fragment, which take memory until the partition is complete.
    Train,
    /// It stays as it is.
    Omit,
}

/// Sorts the plain fragments of one column of one partition.
#[derive(Debug)]
pub struct PlainSorter {
    physical: Physical,
    policy: DictionaryPolicy,
    limit: DictionaryLimit,
    trains: Symbols,
    form: Form,
    temporary: TemporaryDictionary,
    index: CodeIndex,
    encoder: Option<Arc<SymbolEncoder>>,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Form {
    Undecided,
    Codes,
    Plain,
}

impl PlainSorter {
    /// A sorter for a column of this shape.
    pub fn new(physical: Physical, policy: DictionaryPolicy) -> Self {
        PlainSorter {
            physical,
            policy,
            limit: DictionaryLimit::default(),
            trains: Symbols::Train,
            form: Form::Undecided,
            temporary: TemporaryDictionary::empty(physical),
            index: CodeIndex::default(),
            encoder: None,
        }
    }

    /// The sorter with a dictionary that may hold less.
    pub fn with_limit(self, limit: DictionaryLimit) -> Self {
        PlainSorter { limit, ..self }
    }

    /// The sorter, with symbols for text or without.
    pub fn with_symbols(self, trains: Symbols) -> Self {
        PlainSorter { trains, ..self }
    }

    /// Takes a fragment's column.
    ///
    /// # Errors
    /// `Limit` when text is over 4 GiB.
    ///
    /// # Panics
    /// When the values have another shape: a bug of the caller.
    pub fn push(&mut self, plain: Plain) -> Result<FragmentColumn> {
        assert_eq!(plain.values.physical(), self.physical);
        if self.form == Form::Undecided {
            self.form = if is_few(&plain) { Form::Codes } else { Form::Plain };
        }
        if self.form == Form::Codes {
            match self.encode(&plain) {
                Some(column) => return Ok(column),
                None => self.form = Form::Plain,
            }
        }
        if self.policy == DictionaryPolicy::Always {
            return Ok(FragmentColumn::Plain(plain));
        }
        if let (Values::Bytes(strings), None) = (&plain.values, &self.encoder)
            && self.trains == Symbols::Train
        {
            self.encoder = Some(Arc::new(SymbolEncoder::train_strings(&[strings])));
        }
        Ok(FragmentColumn::Page(encode_column(&plain, self.encoder.as_deref())?))
    }

    /// The symbol table that the pages of text made so far name as table 1.
    pub fn symbols(&self) -> Option<Vec<u8>> {
        self.encoder.as_deref().map(SymbolEncoder::table)
    }

    /// Codes of a fragment; `None` when there are too many values.
    fn encode(&mut self, plain: &Plain) -> Option<FragmentColumn> {
        let codes = self.index.encode(plain, self.limit, &mut self.temporary)?;
        let nulls = plain.nulls.is_some();
        let codes = ProvisionalCodes::new(&codes, self.temporary.values.len());
        Some(FragmentColumn::Codes { codes, dictionary: 0, nulls })
    }

    /// Bytes of the values so far and of what finds them.
    pub fn bytes(&self) -> usize {
        self.temporary.bytes() + self.index.bytes()
    }

    /// The compress step for all fragments that were pushed, in the order given.
    ///
    /// # Errors
    /// `Limit` when a dictionary has too many values.
    pub fn finish(self, columns: Vec<FragmentColumn>) -> Result<PartitionColumn> {
        let temporaries = [self.temporary];
        let sorted = sort_temporaries(&columns, &temporaries, self.physical, self.limit)?;
        let encoder = self.encoder.as_deref();
        compress_column(columns, &temporaries, sorted, encoder, self.physical, self.policy)
    }
}

/// Whether the values of a fragment are few enough for codes, as far as its first rows tell.
fn is_few(plain: &Plain) -> bool {
    let rows = plain.len().min(SAMPLE_ROWS);
    let mut sketch = HyperLogLog::default();
    hashes(&plain.values, rows, |hash| sketch.insert(hash));
    let distinct = sketch.estimate();
    distinct <= CODES_PROVISIONAL_MAX as f64 / 4.0 && (rows < 4096 || distinct <= rows as f64 / 4.0)
}

/// Joins the parts of one column of a partition, each with the numbers of its fragments: some were
/// transformed here, some elsewhere (seed 000, figure 2c).
///
/// # Errors
/// `Limit` when the dictionary would hold too many values, `Corrupt` when a page does not fit its
/// dictionary.
pub fn join_parts(
    parts: Vec<(Vec<u32>, PartitionColumn)>,
    physical: Physical,
) -> Result<PartitionColumn> {
    let mut numbers = Vec::new();
    let mut columns = Vec::with_capacity(parts.len());
    for (fragments, column) in parts {
        assert_eq!(fragments.len(), column.pages.len());
        numbers.extend(fragments);
        columns.push(column);
    }
    let mut joined = merge_column(columns, physical)?;
    let mut pages: Vec<_> = numbers.into_iter().zip(std::mem::take(&mut joined.pages)).collect();
    pages.sort_by_key(|(number, _)| *number);
    joined.pages = pages.into_iter().map(|(_, page)| page).collect();
    if joined.dictionary.as_ref().is_some_and(Dictionary::is_empty) && joined.pages.is_empty() {
        joined.dictionary = None;
    }
    Ok(joined)
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]
    use super::*;
    use coload_page::PageDetail;
    use coload_page::SymbolDecoder;
    use coload_page::runs::expand_runs;
    use coload_types::{Code, Value};
    use proptest::prelude::*;

    /// The rows of a column, the slow way.
    fn rows(column: &PartitionColumn, physical: Physical) -> Vec<Option<Value>> {
        let decoders: Vec<SymbolDecoder> =
            column.symbols.iter().map(|s| SymbolDecoder::open(s).unwrap()).collect();
        let mut rows = Vec::new();
        for page in &column.pages {
            let page = expand_runs(page).unwrap();
            if let (PageDetail::Codes { .. }, Some(dictionary)) = (&page.detail, &column.dictionary)
            {
                let coload_page::PageView::Codes(view) = page.view().unwrap() else { panic!() };
                let mut block = [0; 1024];
                for b in 0..view.rows.div_ceil(1024) {
                    let count = view.unpack(b, &mut block);
                    rows.extend(block[..count].iter().map(|c| dictionary.get(Code(*c))));
                }
                continue;
            }
            let plain = crate::compress::decode_page(&page, &decoders, physical).unwrap();
            rows.extend((0..plain.len()).map(|i| plain.get(i)));
        }
        rows
    }

    fn plain(physical: Physical, values: &[Option<u16>]) -> Plain {
        let mut plain = Plain::empty(physical);
        for value in values {
            plain.push(
                value
                    .map(|v| match physical {
                        Physical::Int => Value::Int(i64::from(v) - 9),
                        Physical::Wide => Value::Wide(i128::from(v) << 80),
                        Physical::Bytes => Value::Bytes(format!("text {v}").into_bytes().into()),
                    })
                    .as_ref(),
            );
        }
        plain
    }

    #[test]
    fn few_values_get_a_dictionary_and_many_do_not() {
        let few: Vec<Option<u16>> = (0..9000).map(|i| Some(i % 7)).collect();
        let many: Vec<Option<u16>> = (0..30_000).map(Some).collect();
        for (values, coded) in [(few, true), (many, false)] {
            let plain = plain(Physical::Int, &values);
            let mut sorter = PlainSorter::new(Physical::Int, DictionaryPolicy::Auto);
            let column = sorter.push(plain).unwrap();
            assert_eq!(matches!(column, FragmentColumn::Codes { .. }), coded);
            assert_eq!(sorter.finish(vec![column]).unwrap().dictionary.is_some(), coded);
        }
    }

    #[test]
    fn a_column_that_meets_too_many_values_goes_on_plain_and_keeps_its_rows() {
        let mut sorter = PlainSorter::new(Physical::Bytes, DictionaryPolicy::Auto);
        let mut columns = Vec::new();
        let mut expected = Vec::new();
        for f in 0..12u16 {
            let values: Vec<Option<u16>> = (0..5000u16)
                .map(|i| if f == 0 { Some(i % 10) } else { Some(f * 5000 + i) })
                .collect();
            let plain = plain(Physical::Bytes, &values);
            expected.extend((0..plain.len()).map(|i| plain.get(i)));
            columns.push(sorter.push(plain).unwrap());
        }
        assert!(matches!(columns[0], FragmentColumn::Codes { .. }));
        assert!(matches!(columns[11], FragmentColumn::Page(_)));
        assert_eq!(rows(&sorter.finish(columns).unwrap(), Physical::Bytes), expected);
    }

    proptest! {
        #[test]
        fn joined_parts_hold_the_rows_of_all_fragments_in_order(
            fragments in proptest::collection::vec(
                (proptest::collection::vec(proptest::option::of(0u16..6), 1..40), 0usize..2), 1..6),
            shape in 0usize..3,
            policy in prop_oneof![Just(DictionaryPolicy::Auto), Just(DictionaryPolicy::Always)],
        ) {
            let physical = [Physical::Int, Physical::Wide, Physical::Bytes][shape];
            let mut parts: [(Vec<u32>, Vec<FragmentColumn>, PlainSorter); 2] = std::array::from_fn(
                |_| (Vec::new(), Vec::new(), PlainSorter::new(physical, policy)));
            let mut expected = Vec::new();
            for (number, (values, part)) in fragments.iter().enumerate() {
                let plain = plain(physical, values);
                expected.extend((0..plain.len()).map(|i| plain.get(i)));
                let (numbers, columns, sorter) = &mut parts[*part];
                numbers.push(number as u32);
                columns.push(sorter.push(plain).unwrap());
            }
            let parts = parts.into_iter().filter(|p| !p.0.is_empty())
                .map(|(numbers, columns, sorter)| (numbers, sorter.finish(columns).unwrap()))
                .collect();
            let joined = join_parts(parts, physical).unwrap();
            prop_assert_eq!(joined.pages.len(), fragments.len());
            prop_assert_eq!(rows(&joined, physical), expected);
        }
    }
}
