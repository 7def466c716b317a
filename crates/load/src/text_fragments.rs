//! Fragments that come as text, in a partition of which others come parsed: the server's part.
//!
//! ```text
//!   text -> fragment: pages of columns that never get codes     -> final at once
//!                     codes, values                              -> kept; compressed when the partition is complete
//! ```
//!
//! A text is read as the client would read it, each partition by a plan from its first text. It is taken if all of its
//! records become rows, as many as the client counted; else nothing of it is kept, and the client, who knows the place
//! of each record in its input, parses it.
//!
//! Memory: codes and values of the partition; while a text is parsed, at most [`TextFragmentParser::bytes_max`].

use std::collections::BTreeMap;
use std::sync::{Arc, Mutex};

use coload_assemble::Assembly;
use coload_source::{ChunkParser, ColumnParser, ColumnRules, Lexicon, Mended, RecordRules};
use coload_threads::{StepClock, lock, thread_cpu_ns};
use coload_transform::{
    DictionaryLimit, DictionaryPolicy, FinalPage, PartitionColumn, Symbols, dictionary_limit,
    encoders,
};
use coload_types::{Error, Physical, Result};
use coload_wire::{ColumnsAre, LoadDescription, TextFragment};

use crate::format::Parser;
use crate::grain::ColumnRoom;
use crate::partition::{PartitionPlan, SealedPartition, Waiting};
use crate::request::LoadRequest;
use crate::text::{Measure, TextPiece, WindowReader, column_rules, sample_bytes};

/// Most bytes that a value takes besides those of its text.
const VALUE_BYTES_MAX: usize = 16;

/// How the texts of a load are read.
#[derive(Debug)]
pub struct TextFragmentParser {
    rules: RecordRules,
    columns: Vec<ColumnRules>,
    physicals: Vec<Physical>,
    policy: DictionaryPolicy,
    limit: DictionaryLimit,
    encoders: usize,
}

impl TextFragmentParser {
    /// A parser for a load; `None` if its fragments may not go as text.
    pub fn new(description: &LoadDescription) -> Option<Self> {
        let LoadDescription { table, schema, dialect, .. } = description;
        let mut request =
            LoadRequest::new(Vec::new(), table.clone(), schema.clone(), dialect.clone());
        request.derivation.clone_from(&description.rows.derivation);
        request.fields.clone_from(&description.rows.fields);
        request.fields_by_input.clone_from(&description.rows.by_input);
        let other =
            description.rows.program.is_some() || description.columns_are == ColumnsAre::Inferred;
        if other || !request.may_go_as_text() {
            return None;
        }
        Some(TextFragmentParser {
            rules: dialect.record_rules(request.field_count()),
            columns: column_rules(&request),
            physicals: schema.columns().iter().map(|c| c.data_type.physical()).collect(),
            policy: description.dictionaries,
            limit: DictionaryLimit::default(),
            encoders: usize::MAX,
        })
    }

    /// The parser with dictionaries that share so much memory.
    pub fn with_memory(self, memory: usize) -> Self {
        let limit = dictionary_limit(memory, self.physicals.len());
        TextFragmentParser { limit, encoders: encoders(memory), ..self }
    }

    /// Bytes that the values of a text may take at most.
    pub fn bytes_max(&self, sent: &TextFragment<'_>) -> u64 {
        let values = sent.rows as u64 * (self.columns.len() * VALUE_BYTES_MAX) as u64;
        values.saturating_add(sent.text.len() as u64)
    }

    fn new_parser(&self, plan: &PartitionPlan) -> ChunkParser {
        let column = |(rules, plan): (&ColumnRules, &coload_source::ColumnPlan)| {
            let lexicon = Lexicon::new(rules.data_type.physical()).with_limit(self.limit);
            ColumnParser::new(rules.clone(), plan.clone(), lexicon)
        };
        let columns = self.columns.iter().zip(&plan.read).map(column).collect();
        ChunkParser::new(self.rules.clone(), columns, thread_cpu_ns)
    }
}

/// What came of a text.
#[derive(Debug)]
pub enum ParsedText {
    /// Its rows: pages that are final, and bytes that are kept of the other columns.
    Taken(Vec<FinalPage>, u64),
    /// Some record is no row, or the client counted others.
    HandedBack,
}

/// The fragments of a partition that came as text.
#[derive(Debug, Default)]
pub struct TextFragments {
    parsing: Mutex<Parsing>,
}

#[derive(Debug, Default)]
struct Parsing {
    plan: Option<Arc<PartitionPlan>>,
    /// The parsers; `None` while one is in use. Its place is the number of its dictionaries.
    parsers: Vec<Option<ChunkParser>>,
    /// Columns that met too many values for codes.
    plain_columns: Vec<usize>,
    fragments: BTreeMap<u32, Option<Waiting>>,
    /// Dictionaries have values of texts that were handed back.
    stale: bool,
    sealed: Option<Arc<Sealed>>,
}

#[derive(Debug)]
struct Sealed {
    numbers: Vec<u32>,
    partition: SealedPartition,
}

impl TextFragments {
    /// Parses a text.
    ///
    /// # Errors
    /// `Corrupt` when its fragment came before, `Limit` when a page is too large.
    pub fn parse(&self, by: &TextFragmentParser, sent: &TextFragment<'_>) -> Result<ParsedText> {
        let (plan, number, mut parser) = self.begin(by, sent)?;
        let part =
            TextPiece { file: 0, text: sent.text, end: sent.text.len(), offset: 0, frame: None };
        let span = WindowReader::of_frame().parse_text(&part, &mut parser, &|_, _| Ok(()))?;
        let fragment = parser.finish(number)?;
        let whole = span.rows == u64::from(sent.rows) && span.end == sent.text.len() as u64;
        let as_it_stands = span.rejects.is_empty() && span.mended == Mended::default();
        let taken = whole && as_it_stands;
        let mut waiting = Waiting { rows: fragment.rows, columns: Vec::new() };
        let mut pages = Vec::new();
        if taken {
            for (index, column) in fragment.columns.into_iter().enumerate() {
                match by.policy == DictionaryPolicy::Auto && plan.is_early(index) {
                    true => pages.push(plan.final_page(index, column)?),
                    false => waiting.columns.push((index, column)),
                }
            }
        }
        let kept = waiting.columns.iter().map(|(_, column)| column.bytes() as u64).sum();
        let mut parsing = lock(&self.parsing);
        parsing.plain_columns.extend(parser.take_plain_now());
        parsing.parsers[number as usize] = Some(parser);
        match taken {
            true => {
                parsing.fragments.insert(sent.fragment, Some(waiting));
            }
            false => {
                parsing.stale = true;
                parsing.fragments.remove(&sent.fragment);
            }
        }
        Ok(if taken { ParsedText::Taken(pages, kept) } else { ParsedText::HandedBack })
    }

    /// The plan and a parser for a text whose fragment did not come before.
    fn begin(
        &self,
        by: &TextFragmentParser,
        sent: &TextFragment<'_>,
    ) -> Result<(Arc<PartitionPlan>, u32, ChunkParser)> {
        let mut parsing = lock(&self.parsing);
        if parsing.sealed.is_some() {
            return Err(Error::Corrupt("a text of a partition that is complete".into()));
        }
        if parsing.fragments.insert(sent.fragment, None).is_some() {
            return Err(Error::Corrupt(format!(
                "the text of fragment {} came twice",
                sent.fragment
            )));
        }
        let plan = parsing.plan.get_or_insert_with(|| {
            let room = ColumnRoom { encoders: by.encoders, dictionary: by.limit };
            let (rules, columns) = (by.rules.clone(), &by.columns);
            Arc::new(sample_bytes(sent.text, rules, columns, (room, &[]), Measure::No))
        });
        let plan = Arc::clone(plan);
        let free = parsing.parsers.iter().position(Option::is_some);
        let number = free.unwrap_or_else(|| {
            parsing.parsers.push(None);
            parsing.parsers.len() - 1
        });
        let parser = parsing.parsers[number].take();
        let mut parser = parser.unwrap_or_else(|| by.new_parser(&plan));
        for column in &parsing.plain_columns {
            parser.columns_mut()[*column].leave_codes();
        }
        Ok((plan, number as u32, parser))
    }

    /// Compresses what was kept of a column, with the numbers of its fragments; no text comes after that.
    ///
    /// # Errors
    /// `Limit` when a dictionary or a page is too large.
    pub fn compress(
        &self,
        by: &TextFragmentParser,
        column: usize,
    ) -> Result<Option<(Vec<u32>, PartitionColumn)>> {
        let Some(sealed) = self.seal()? else { return Ok(None) };
        if !sealed.partition.waits(column) {
            return Ok(None);
        }
        let waiting = sealed.partition.waiting(column);
        let numbers = waiting.iter().map(|index| sealed.numbers[*index as usize]).collect();
        let clock = StepClock::default();
        let assembly = Assembly {
            physical: by.physicals[column],
            policy: by.policy,
            limit: by.limit,
            symbols: Symbols::Train,
        };
        let compressed = sealed.partition.compress(column, assembly, &clock, None)?;
        Ok(Some((numbers, compressed)))
    }

    fn seal(&self) -> Result<Option<Arc<Sealed>>> {
        let mut parsing = lock(&self.parsing);
        if let Some(sealed) = &parsing.sealed {
            return Ok(Some(Arc::clone(sealed)));
        }
        let Some(plan) = parsing.plan.clone() else { return Ok(None) };
        let parsers = std::mem::take(&mut parsing.parsers).into_iter().collect::<Option<Vec<_>>>();
        let Some(mut parsers) = parsers else {
            return Err(Error::Corrupt("a partition is complete before its texts are".into()));
        };
        let fragments = std::mem::take(&mut parsing.fragments);
        let (numbers, fragments) = fragments
            .into_iter()
            .filter_map(|(number, fragment)| Some((number, fragment?)))
            .unzip();
        if parsing.stale {
            parsers.iter_mut().for_each(Parser::mark_stale);
        }
        let dictionaries = parsers.into_iter().map(Parser::into_dictionaries).collect();
        let partition = SealedPartition::new(0, plan, fragments, dictionaries);
        let sealed = Arc::new(Sealed { numbers, partition });
        parsing.sealed = Some(Arc::clone(&sealed));
        Ok(Some(sealed))
    }
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]
    use super::*;
    use coload_ddl::parse_columns;
    use coload_source::Dialect;
    use coload_store::{LoadMode, OnConflict};
    use coload_wire::RejectLimit;
    use coload_wire::{Again, RowSource, Work};
    use proptest::prelude::*;

    fn description(columns: &str) -> LoadDescription {
        LoadDescription {
            table: "t".into(),
            mode: LoadMode::Append,
            on_conflict: OnConflict::Error,
            delete_where: None,
            schema: parse_columns(columns).unwrap(),
            rows: RowSource::default(),
            began_us: None,
            origin: None,
            columns_are: ColumnsAre::Given,
            inputs: Default::default(),
            dialect: Dialect::default(),
            chunk_bytes: 1 << 20,
            fragments_per_partition: 5,
            dictionaries: DictionaryPolicy::Auto,
            max_rejects: RejectLimit::Count(0),
            work: Work::Partitions,
            salt: 0,
            again: Again::No,
            share: None,
        }
    }

    /// Rows of the texts that were taken, and of each column of the partition.
    fn take(parser: &TextFragmentParser, texts: &[Vec<u8>]) -> (u32, Vec<u32>) {
        let partition = TextFragments::default();
        let mut taken = 0;
        let mut rows = vec![0; parser.columns.len()];
        for (fragment, text) in texts.iter().enumerate() {
            let lines = text.iter().filter(|byte| **byte == b'\n').count() as u32;
            let sent = TextFragment { partition: 0, fragment: fragment as u32, rows: lines, text };
            if let ParsedText::Taken(pages, _) = partition.parse(parser, &sent).unwrap() {
                taken += lines;
                pages.iter().for_each(|page| rows[page.column] += page.page.rows);
            }
        }
        for (column, rows) in rows.iter_mut().enumerate() {
            let compressed = partition.compress(parser, column).unwrap();
            let pages = compressed.iter().flat_map(|(_, compressed)| &compressed.pages);
            *rows += pages.map(|page| page.rows).sum::<u32>();
        }
        (taken, rows)
    }

    #[test]
    fn types_that_may_change_and_rows_that_are_made_have_no_texts() {
        assert!(TextFragmentParser::new(&description("a BIGINT")).is_some());
        let inferred =
            LoadDescription { columns_are: ColumnsAre::Inferred, ..description("a BIGINT") };
        assert!(TextFragmentParser::new(&inferred).is_none());
    }

    proptest! {
        #[test]
        fn any_text_is_taken_whole_or_not_at_all(
            texts in proptest::collection::vec(
                proptest::collection::vec(
                    prop_oneof![
                        8 => "[0-9]{1,3},[a-z]{0,3},[0-9.]{0,4}\n".prop_map(String::into_bytes),
                        1 => "[0-9a-z,\"\n\\-]{0,12}\n".prop_map(String::into_bytes),
                        1 => proptest::collection::vec(any::<u8>(), 0..20),
                    ],
                    1..8,
                ),
                1..5,
            )
        ) {
            let parser = TextFragmentParser::new(&description("a BIGINT NOT NULL, b VARCHAR, c DECIMAL(9,2)"));
            let parser = parser.unwrap();
            let whole = |records: &Vec<Vec<u8>>| {
                let mut text = records.concat();
                text.push(b'\n');
                text
            };
            let clean = |records: &Vec<Vec<u8>>| records.concat();
            for texts in [texts.iter().map(whole).collect::<Vec<_>>(), texts.iter().map(clean).collect()] {
                let texts: Vec<_> = texts.into_iter().filter(|text| text.last() == Some(&b'\n')).collect();
                let (taken, rows) = take(&parser, &texts);
                prop_assert!(rows.iter().all(|rows| *rows == taken), "{taken} {rows:?}");
            }
        }
    }
}
