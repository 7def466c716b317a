//! One column of a chunk: fields to provisional codes, or straight to values.

use std::borrow::Cow;
use std::sync::Arc;

use coload_page::{EncodedStrings, SymbolEncoder};
use coload_transform::{DistinctSketch, NULL_CODE, TemporaryDictionary};
use coload_types::{Physical, Strings, Values};

mod absent;
mod fragment;
mod numbers;
#[cfg(test)]
mod tests;
mod text;

use crate::chunk::RejectedValue;
use crate::column_rules::ColumnRules;
use crate::field::FieldError;
use crate::lexicon::{Changes, FieldChanges, Lexicon, LookUp, TooManyValues};
use crate::row_codes::RowCodes;
use crate::rows::Rows;
use crate::tokenise::Seen;
use text::{LONG_TEXTS_BYTES, TextScratch, copy_unquoted, count_text, keep_text};

/// How a column is read; chosen for each partition from a sample of it.
#[derive(Debug, Clone)]
pub enum ColumnPlan {
    /// Few values: provisional codes, each distinct text parsed once.
    Codes,
    /// Many numbers: parsed one by one.
    Numbers {
        /// Whether fields that repeat the one above are parsed once.
        repeats: bool,
    },
    /// Texts of so many values that a dictionary does not pay.
    Text {
        /// They are shortened by these symbols.
        encoder: Arc<SymbolEncoder>,
        /// Whether fields that repeat the one above are encoded once.
        repeats: bool,
    },
    /// Many texts where few were expected: kept as they are until the partition is compressed.
    PlainText,
    /// Numbers that somebody else transforms: kept as they are.
    PlainNumbers,
}

/// How a column is read, whatever its symbols.
pub type PlanKind = (std::mem::Discriminant<ColumnPlan>, bool);

impl ColumnPlan {
    /// How the column is read: the same for columns that cost about the same.
    pub fn kind(&self) -> PlanKind {
        let repeats = match self {
            ColumnPlan::Numbers { repeats } | ColumnPlan::Text { repeats, .. } => *repeats,
            ColumnPlan::Codes | ColumnPlan::PlainText | ColumnPlan::PlainNumbers => false,
        };
        (std::mem::discriminant(self), repeats)
    }
}

/// Who transforms the next fragment's column.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum ColumnForm {
    /// This process, as the plan of the partition has it.
    Planned,
    /// Somebody else: its values are kept as they are.
    Plain,
}

/// A field that could not become a value.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct BadField {
    /// Record in the window.
    pub row: usize,
    /// Number of the column, counted from 0.
    pub column: usize,
    /// What is wrong with the field.
    pub error: FieldError,
}

/// Reads one column of one chunk after the other.
#[derive(Debug)]
pub struct ColumnParser {
    rules: ColumnRules,
    plan: ColumnPlan,
    /// The plan to go back to, while another one is followed.
    planned: Option<ColumnPlan>,
    /// The plan to go back to with the next fragment.
    planned_next: Option<ColumnPlan>,
    lexicon: Lexicon,
    rows: usize,
    /// First row of each value, where a value stands for repeated fields.
    starts: Vec<u32>,
    codes: RowCodes,
    ints: Vec<i64>,
    wides: Vec<i128>,
    text: EncodedStrings,
    strings: Strings,
    /// Values of the fragment that are NULL, where they are not codes.
    nulls: Vec<u32>,
    scratch: TextScratch,
    /// Counts distinct values that are not codes.
    distinct: Option<Arc<DistinctSketch>>,
}

/// How far a column has come, to go back there.
#[derive(Debug, Clone, Copy, Default)]
pub struct Mark {
    rows: usize,
    values: usize,
    text_bytes: usize,
    text_source_bytes: usize,
}

impl ColumnParser {
    /// A parser for a column; `lexicon` knows what earlier fragments of the partition held.
    pub fn new(rules: ColumnRules, plan: ColumnPlan, lexicon: Lexicon) -> Self {
        ColumnParser {
            rules,
            plan,
            planned: None,
            planned_next: None,
            lexicon,
            rows: 0,
            starts: Vec::new(),
            codes: RowCodes::default(),
            ints: Vec::new(),
            wides: Vec::new(),
            text: EncodedStrings::default(),
            strings: Strings::default(),
            nulls: Vec::new(),
            scratch: TextScratch::default(),
            distinct: None,
        }
    }

    /// Counts distinct values that are not codes in a sketch: of text all that is read, be it of a record that
    /// is rejected, or of a chunk that is parsed again.
    pub fn counting(mut self, distinct: Option<Arc<DistinctSketch>>) -> Self {
        self.distinct = distinct;
        self
    }

    /// The lexicon, when the partition is done with this parser.
    pub fn into_lexicon(self) -> Lexicon {
        self.lexicon
    }

    /// The values that codes stand for.
    pub fn dictionary(&self) -> &TemporaryDictionary {
        self.lexicon.dictionary()
    }

    /// A field of a record for a message: without its quotes, if they enclose it.
    pub(crate) fn shown(&self, rows: &Rows<'_>, row: usize, field: usize) -> RejectedValue {
        let raw = rows.field(row, field);
        let shown = match self.rules.fields.read(raw) {
            Ok(Some(Cow::Owned(text))) => return RejectedValue::apart(&text),
            Ok(Some(Cow::Borrowed(text))) => text,
            _ => raw,
        };
        // What was read is a part of the field, if it is not a copy.
        let start = shown.as_ptr().addr().wrapping_sub(rows.record(row).as_ptr().addr());
        RejectedValue::Within(start..start.wrapping_add(shown.len()))
    }

    /// Says what becomes of the next fragment's values; called between fragments.
    pub fn read_as(&mut self, form: ColumnForm) {
        match form {
            ColumnForm::Planned => {
                if let Some(planned) = self.planned.take() {
                    self.plan = planned;
                }
            }
            ColumnForm::Plain if self.planned.is_none() => {
                let plain = match self.rules.data_type.physical() {
                    Physical::Bytes => ColumnPlan::PlainText,
                    Physical::Int | Physical::Wide => ColumnPlan::PlainNumbers,
                };
                self.planned = Some(std::mem::replace(&mut self.plan, plain));
            }
            ColumnForm::Plain => {}
        }
    }

    /// Notes that the lexicon may hold values of no row.
    pub fn mark_stale(&mut self) {
        self.lexicon.mark_stale();
    }

    /// How its fields become values.
    pub(crate) fn rules(&self) -> &ColumnRules {
        &self.rules
    }

    /// Which field of a record it is; `None` where the input lacks it.
    pub fn field(&self) -> Option<usize> {
        self.rules.field
    }

    /// Where the column stands.
    pub fn mark(&self) -> Mark {
        let values = match (&self.plan, self.rules.data_type.physical()) {
            (ColumnPlan::Codes, _) => self.rows,
            (ColumnPlan::Text { .. }, _) => self.text.lengths.len(),
            (ColumnPlan::PlainText, _) => self.strings.len(),
            (ColumnPlan::Numbers { .. } | ColumnPlan::PlainNumbers, Physical::Int) => {
                self.ints.len()
            }
            (ColumnPlan::Numbers { .. } | ColumnPlan::PlainNumbers, _) => self.wides.len(),
        };
        Mark {
            rows: self.rows,
            values,
            text_bytes: self.text.bytes.len(),
            text_source_bytes: self.text.source_bytes,
        }
    }

    /// Goes back to a mark.
    pub fn truncate(&mut self, mark: Mark) {
        self.rows = mark.rows;
        self.starts.truncate(mark.values);
        self.codes.truncate(mark.rows);
        self.ints.truncate(mark.values);
        self.wides.truncate(mark.values);
        self.text.lengths.truncate(mark.values);
        self.text.bytes.truncate(mark.text_bytes);
        self.text.source_bytes = mark.text_source_bytes;
        self.strings.ends.truncate(mark.values);
        self.strings.bytes.truncate(self.strings.ends.last().map_or(0, |e| *e as usize));
        self.nulls.truncate(self.nulls.partition_point(|n| (*n as usize) < mark.values));
    }

    /// Reads the column's fields of a window; bad ones are told, and count as NULL until the window
    /// is read again without them.
    ///
    /// # Errors
    /// `TooManyValues` when the plan was codes and there are too many; nothing of the window is kept.
    ///
    /// # Panics
    /// When fields are compared with those above and there are more than 512 records.
    pub fn parse(
        &mut self,
        rows: &Rows<'_>,
        column: usize,
        seen: &Seen,
        bad: &mut Vec<BadField>,
    ) -> Result<(), TooManyValues> {
        if self.reads_changes() {
            let mut changes = Changes::default();
            changes.collect(rows, &[column]);
            let mut scratch = LookUp::default();
            return self.parse_changes(rows, column, seen, changes.of(0), &mut scratch, bad);
        }
        self.parse_values(&Fields { rows, column, changed: None }, seen, bad);
        Ok(())
    }

    fn parse_values(&mut self, fields: &Fields<'_>, seen: &Seen, bad: &mut Vec<BadField>) {
        let bad_before = bad.len();
        let column = fields.column;
        let mut tell = |row: usize, error: FieldError| bad.push(BadField { row, column, error });
        match &self.plan {
            ColumnPlan::Text { encoder, .. } => {
                let encoder = Arc::clone(encoder);
                self.parse_text(fields, seen, Some(&encoder), &mut tell);
            }
            ColumnPlan::Codes | ColumnPlan::PlainText => {
                self.parse_text(fields, seen, None, &mut tell);
            }
            ColumnPlan::Numbers { .. } | ColumnPlan::PlainNumbers => {
                match self.rules.data_type.physical() {
                    Physical::Wide => self.parse_wides(fields, &mut tell),
                    _ => self.parse_ints(fields, &mut tell),
                }
            }
        }
        if let Some(changed) = fields.changed {
            self.starts.extend(changed.iter().map(|row| (self.rows + usize::from(*row)) as u32));
            // Fields that repeat a bad one are as bad.
            for i in bad_before..bad.len() {
                let first = bad[i];
                let next = changed.partition_point(|row| usize::from(*row) <= first.row);
                let end = changed.get(next).map_or(fields.rows.count, |row| usize::from(*row));
                bad.extend((first.row + 1..end).map(|row| BadField { row, ..first }));
            }
        }
        self.rows += fields.rows.count;
    }

    /// Whether the column is read by [`Self::parse_changes`].
    pub(crate) fn reads_changes(&self) -> bool {
        match &self.plan {
            ColumnPlan::Codes => true,
            ColumnPlan::Numbers { repeats } | ColumnPlan::Text { repeats, .. } => *repeats,
            ColumnPlan::PlainText | ColumnPlan::PlainNumbers => false,
        }
    }

    /// Reads a column's fields of a block from those that differ from the record before.
    ///
    /// # Errors
    /// As [`Self::parse`].
    pub(crate) fn parse_changes(
        &mut self,
        rows: &Rows<'_>,
        column: usize,
        seen: &Seen,
        changes: FieldChanges<'_>,
        scratch: &mut LookUp,
        bad: &mut Vec<BadField>,
    ) -> Result<(), TooManyValues> {
        if !matches!(self.plan, ColumnPlan::Codes) {
            self.parse_values(&Fields { rows, column, changed: Some(changes.rows) }, seen, bad);
            return Ok(());
        }
        let tell = |row: usize, error: FieldError| bad.push(BadField { row, column, error });
        self.lexicon.encode(rows, changes, &self.rules, &mut self.codes, scratch, tell)?;
        self.rows += rows.count;
        Ok(())
    }

    fn parse_text(
        &mut self,
        fields: &Fields<'_>,
        seen: &Seen,
        encoder: Option<&SymbolEncoder>,
        tell: &mut impl FnMut(usize, FieldError),
    ) {
        let text = fields.rows.text;
        let first = self.mark().values;
        let scratch = &mut self.scratch;
        scratch.clear();
        let limit = self.rules.data_type.length_max().unwrap_or(u32::MAX);
        let plain = !seen.quote
            && !seen.doubtful_utf8
            && !seen.nul
            && self.rules.data_type.is_text()
            && self.rules.fields.nulls.iter().all(Vec::is_empty);
        if plain {
            let (mut longest, mut empty) = (0, false);
            fields.for_each(|_, start, end| {
                let len = (end - start) as u32;
                scratch.starts.push(start as u32);
                scratch.lengths.push(len);
                longest = longest.max(len);
                empty |= len == 0;
            });
            if longest <= limit && !(empty && self.rules.refuses_empty()) {
                let null_if_empty = self.rules.nullable && !self.rules.fields.nulls.is_empty();
                if empty && null_if_empty {
                    let empties = scratch.lengths.iter().enumerate().filter(|(_, l)| **l == 0);
                    self.nulls.extend(empties.map(|(i, _)| (first + i) as u32));
                }
                keep_text(text, scratch, encoder, &mut self.text, &mut self.strings);
                count_text(self.distinct.as_deref(), text, scratch, encoder);
                return;
            }
            scratch.clear();
        } else if seen.quote && self.rules.is_quoted_plainly(seen) {
            let nulls = self.nulls.len();
            if copy_unquoted(fields, &self.rules, limit, scratch, |i| {
                self.nulls.push((first + i) as u32);
            }) {
                scratch.keep_copy(&mut |scratch, source| {
                    keep_text(source, scratch, encoder, &mut self.text, &mut self.strings);
                    count_text(self.distinct.as_deref(), source, scratch, encoder);
                });
                return;
            }
            self.nulls.truncate(nulls);
            scratch.clear();
        }
        let mut keep = |scratch: &TextScratch, source: &[u8]| {
            keep_text(source, scratch, encoder, &mut self.text, &mut self.strings);
            count_text(self.distinct.as_deref(), source, scratch, encoder);
        };
        let mut value = first;
        fields.for_each(|row, start, end| {
            let (before, mut length) = (scratch.copy.len(), 0);
            match self.rules.bytes(&text[start..end]) {
                // A text that is very long is not copied once more, but kept after those before it.
                Ok(Some(bytes)) if bytes.len() > LONG_TEXTS_BYTES => {
                    scratch.keep_copy(&mut keep);
                    scratch.starts.push(0);
                    scratch.lengths.push(bytes.len() as u32);
                    keep(scratch, &bytes);
                    scratch.clear();
                    value += 1;
                    return;
                }
                Ok(Some(bytes)) => {
                    scratch.copy.extend_from_slice(&bytes);
                    length = bytes.len() as u32;
                }
                Ok(None) => self.nulls.push(value as u32),
                Err(error) => tell(row, error),
            }
            scratch.starts.push(before as u32);
            scratch.lengths.push(length);
            value += 1;
        });
        scratch.keep_copy(&mut keep);
    }

    /// Gives up codes for values: what the fragment has so far becomes plain.
    pub fn leave_codes(&mut self) {
        if let Some(planned @ ColumnPlan::Codes) = &mut self.planned {
            *planned = match self.rules.data_type.physical() {
                Physical::Bytes => ColumnPlan::PlainText,
                Physical::Int | Physical::Wide => ColumnPlan::Numbers { repeats: false },
            };
        }
        if !matches!(self.plan, ColumnPlan::Codes) {
            return;
        }
        let codes = std::mem::take(&mut self.codes).each();
        let nulls = codes.iter().enumerate().filter(|(_, c)| **c == NULL_CODE);
        self.nulls.extend(nulls.map(|(row, _)| row as u32));
        let value = |c: u16| (c != NULL_CODE).then_some(c as usize);
        self.plan = ColumnPlan::Numbers { repeats: false };
        match &self.lexicon.dictionary().values {
            Values::Int(v) => {
                self.ints.extend(codes.iter().map(|c| value(*c).map_or(0, |c| v[c])));
            }
            Values::Wide(v) => {
                self.wides.extend(codes.iter().map(|c| value(*c).map_or(0, |c| v[c])));
            }
            Values::Bytes(v) => {
                for code in codes {
                    self.strings.push(value(code).map_or(&[], |c| v.get(c)));
                }
                self.plan = ColumnPlan::PlainText;
            }
        }
    }
}

/// The fields of a column to read: all of some records, or those that differ from the one above.
struct Fields<'a> {
    rows: &'a Rows<'a>,
    column: usize,
    changed: Option<&'a [u16]>,
}

impl Fields<'_> {
    /// The record that field number `i` is in.
    #[inline(always)]
    fn row(&self, i: usize) -> usize {
        self.changed.map_or(i, |changed| usize::from(changed[i]))
    }

    /// Where fields from `first` on start and end.
    fn find_spans(&self, first: usize, starts: &mut [u32], ends: &mut [u32]) {
        for (i, (start, end)) in starts.iter_mut().zip(ends).enumerate() {
            let span = self.rows.span(self.row(first + i), self.column);
            (*start, *end) = (span.0 as u32, span.1 as u32);
        }
    }

    fn len(&self) -> usize {
        self.changed.map_or(self.rows.count, <[u16]>::len)
    }

    /// Calls `each` with the record, start and end of each field, in order.
    #[inline(always)]
    fn for_each(&self, mut each: impl FnMut(usize, usize, usize)) {
        // One call, so that it is inlined.
        for i in 0..self.len() {
            let row = self.row(i);
            let (start, end) = self.rows.span(row, self.column);
            each(row, start, end);
        }
    }
}
