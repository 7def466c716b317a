//! Lines of a stretch of a table, from codes.
//!
//! ```text
//!   codes    3 1 3 0 ..      texts, made once for each value: "AIR" "MAIL" "RAIL" "TRUCK"   --\
//!   numbers  17 4 1000 ..                                                                     >-- line after line
//!   texts    decoded, in quotes, one after the other                                        --/
//! ```
//!
//! Cost: a copy for each field, digits for each number that has no code.

use std::ops::Range;
use std::sync::{Arc, OnceLock};

use coload_page::bitpack::BLOCK;
use coload_store::{DeletedRows, ExpandedPages, SegmentFile};
use coload_types::delimited::push_quoted;
use coload_types::display::{write_bytes, write_int, write_value, write_wide};
use coload_types::{Code, DataType, Dictionary, Error, Physical, Result, Value, write_list};

use crate::column_page::{ColumnPage, NullBits};
use crate::filter::Filter;
use crate::mask::Selection;
use crate::stretches::Stretch;

const QUOTE: u8 = b'"';
/// Values whose texts are made once: those of a column stay in a cache. Of more, the texts are made row by row.
const TEXTS_MAX: usize = 1 << 14;
/// Bytes of these: values may be long.
const TEXTS_BYTES_MAX: usize = 1 << 20;
/// Fields of which the lines are made at once, or those of one block: they stay in a cache.
const FIELDS_TOGETHER: usize = 32 << 10;

/// What is in quotes.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Quotes {
    /// All texts, so that they load again as texts and not as numbers or NULL.
    Texts,
    /// Fields that would be read as something else.
    Needed,
}

/// How fields are written.
#[derive(Debug, Clone, Copy)]
pub struct Style {
    /// Byte between two fields of a line.
    pub delimiter: u8,
    /// What is in quotes.
    pub quotes: Quotes,
}

impl Style {
    /// Separates a field from the one before.
    pub fn separate(self, line: &mut Vec<u8>, index: usize) {
        if index > 0 {
            line.push(self.delimiter);
        }
    }

    /// Appends a text in quotes.
    pub fn push_in_quotes(line: &mut Vec<u8>, text: &[u8]) {
        push_quoted(line, text, QUOTE);
    }

    /// Appends a field, in quotes where it would be read as something else; NULL is nothing, and the
    /// empty text a pair of quotes.
    pub fn push_as_needed(self, line: &mut Vec<u8>, text: &[u8]) {
        let special = |byte: &u8| *byte == self.delimiter || matches!(byte, b'"' | b'\n' | b'\r');
        match text.is_empty() || text.iter().any(special) {
            true => push_quoted(line, text, QUOTE),
            false => line.extend_from_slice(text),
        }
    }

    /// Appends a text or bytes.
    fn push_bytes(self, line: &mut Vec<u8>, value: &[u8], data_type: DataType) {
        match data_type {
            DataType::List(element) => {
                let mut text = Vec::new();
                write_list(value, element, &mut text);
                self.push_as_needed(line, &text);
            }
            _ if !data_type.is_text() => {
                // Hex needs no quotes.
                write_bytes(value, data_type, line);
            }
            _ if self.quotes == Quotes::Texts => push_quoted(line, value, QUOTE),
            _ => self.push_as_needed(line, value),
        }
    }

    fn push_value(self, line: &mut Vec<u8>, value: &Value, data_type: DataType) {
        match value {
            Value::Bytes(bytes) => self.push_bytes(line, bytes, data_type),
            _ => write_value(value, data_type, line),
        }
    }
}

/// Fields one after the other.
#[derive(Debug, Default)]
struct Texts {
    bytes: Vec<u8>,
    ends: Vec<usize>,
}

impl Texts {
    fn get(&self, index: usize) -> &[u8] {
        let start = if index == 0 { 0 } else { self.ends[index - 1] };
        &self.bytes[start..self.ends[index]]
    }

    fn clear(&mut self) {
        self.bytes.clear();
        self.ends.clear();
    }
}

/// The lines of a segment: its columns, and the texts of their dictionaries as far as they were made.
#[derive(Debug)]
pub struct SegmentLines {
    segment: Arc<SegmentFile>,
    /// Leaves deleted rows out.
    filter: Filter,
    types: Arc<[DataType]>,
    /// `None` where there are too many.
    texts: Vec<OnceLock<Option<Texts>>>,
}

/// The fields of some rows of a column.
#[derive(Default)]
struct Fields {
    codes: Vec<u32>,
    ints: Vec<i64>,
    wides: Vec<i128>,
    texts: Texts,
    nulls: NullBits,
    kind: Kind,
}

/// Which of them there are.
#[derive(Debug, Default, Clone, Copy, PartialEq, Eq)]
enum Kind {
    Codes,
    #[default]
    Ints,
    Wides,
    Texts,
}

impl SegmentLines {
    /// Of the rows of a segment that are not deleted, of a table with columns of these types.
    ///
    /// # Errors
    /// `Corrupt` when the segment is damaged.
    pub fn new(
        segment: Arc<SegmentFile>,
        deleted: Option<&Arc<DeletedRows>>,
        types: Arc<[DataType]>,
    ) -> Result<Self> {
        let texts = types.iter().map(|_| OnceLock::new()).collect();
        let filter = Filter::new(&segment, deleted, &[])?;
        Ok(SegmentLines { segment, filter, types, texts })
    }

    /// Makes the lines of a stretch, and hands them to `sink`, some at a time; `false` of it ends that.
    ///
    /// # Errors
    /// `Corrupt` when a page is damaged.
    pub fn lines(
        &self,
        stretch: &Stretch,
        style: Style,
        mut sink: impl FnMut(&mut Vec<u8>) -> bool,
    ) -> Result<()> {
        let together = (FIELDS_TOGETHER / BLOCK / self.types.len().max(1)).max(1);
        let mut fields: Vec<Fields> = self.types.iter().map(|_| Fields::default()).collect();
        let mut lines = Vec::new();
        for page in stretch.pages.clone() {
            let (mut selection, expanded) = (Selection::default(), ExpandedPages::default());
            self.filter.select(&self.segment, page, &mut selection)?;
            let columns = (0..self.types.len())
                .map(|column| ColumnPage::open(&self.segment, column, page, &expanded))
                .collect::<Result<Vec<_>>>()?;
            let end = selection.block_count().min(stretch.blocks.end);
            for first in (stretch.blocks.start..end).step_by(together) {
                let blocks = first..end.min(first + together);
                let count = blocks.clone().map(|block| selection.block(block).1).sum();
                for (index, (page, fields)) in columns.iter().zip(&mut fields).enumerate() {
                    let texts = self.texts_of(index, page.dictionary(), style);
                    let at = (&selection, blocks.clone());
                    fields.read(page, at, (self.types[index], style, texts.is_some()))?;
                }
                self.segment.check()?;
                self.push_lines(&fields, count, style, &mut lines);
                if !sink(&mut lines) {
                    return Ok(());
                }
            }
        }
        Ok(())
    }

    /// The texts of a column's dictionary, if they are few.
    fn texts_of(
        &self,
        column: usize,
        dictionary: Option<&Dictionary>,
        style: Style,
    ) -> Option<&Texts> {
        let dictionary = dictionary?;
        self.texts[column]
            .get_or_init(|| {
                let is_small =
                    dictionary.len() <= TEXTS_MAX && dictionary.bytes() <= TEXTS_BYTES_MAX;
                is_small.then(|| texts_of(dictionary, self.types[column], style))
            })
            .as_ref()
    }

    fn push_lines(&self, fields: &[Fields], rows: usize, style: Style, out: &mut Vec<u8>) {
        let columns: Vec<_> = fields
            .iter()
            .enumerate()
            .map(|(index, fields)| {
                let texts = self.texts[index].get().and_then(Option::as_ref);
                (fields, texts, self.types[index])
            })
            .collect();
        for row in 0..rows {
            for (index, (fields, texts, data_type)) in columns.iter().enumerate() {
                style.separate(out, index);
                match (fields.kind, texts) {
                    (Kind::Codes, Some(texts)) => {
                        out.extend_from_slice(texts.get(fields.codes[row] as usize));
                    }
                    (Kind::Texts, _) => out.extend_from_slice(fields.texts.get(row)),
                    _ if fields.nulls.bitmap().is_some_and(|nulls| nulls.get(row)) => {}
                    (Kind::Wides, _) => write_wide(fields.wides[row], *data_type, out),
                    _ => write_int(fields.ints[row], *data_type, out),
                }
            }
            out.push(b'\n');
        }
    }
}

/// The text of each value of a dictionary, and that of NULL.
fn texts_of(dictionary: &Dictionary, data_type: DataType, style: Style) -> Texts {
    let mut texts = Texts::default();
    for code in 0..dictionary.len() {
        if let Some(value) = dictionary.get(Code(code as u32)) {
            style.push_value(&mut texts.bytes, &value, data_type);
        }
        texts.ends.push(texts.bytes.len());
    }
    texts.ends.push(texts.bytes.len());
    texts
}

impl Fields {
    /// Reads the fields of some blocks of a page.
    fn read(
        &mut self,
        page: &ColumnPage<'_>,
        (selection, blocks): (&Selection, Range<usize>),
        (data_type, style, has_texts): (DataType, Style, bool),
    ) -> Result<()> {
        self.codes.clear();
        self.ints.clear();
        self.wides.clear();
        self.texts.clear();
        self.nulls.take();
        if has_texts {
            self.kind = Kind::Codes;
            return page.decode_codes(selection, blocks, &mut self.codes);
        }
        let (nulls, texts) = (&mut self.nulls, &mut self.texts);
        match data_type.physical() {
            Physical::Int => {
                self.kind = Kind::Ints;
                page.decode_ints(selection, blocks, |value| value, &mut self.ints, nulls)
            }
            Physical::Wide => {
                self.kind = Kind::Wides;
                page.decode_wides(selection, blocks, |value| value, &mut self.wides, nulls)
            }
            Physical::Bytes => {
                self.kind = Kind::Texts;
                page.decode_strings(selection, blocks, |value| {
                    if let Some(value) = value {
                        style.push_bytes(&mut texts.bytes, value, data_type);
                    }
                    texts.ends.push(texts.bytes.len());
                    Ok::<(), Error>(())
                })
            }
        }
    }
}
