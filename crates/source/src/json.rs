//! Records of JSON, read as fields: which paths the fields are, and what separates records.

use std::borrow::Cow;
use std::fmt;
use std::sync::Arc;

pub use coload_json::UnknownKeys;
use coload_json::{
    Holds, Json, Keys, LineBreaks, ListReader, PADDING, Path, Rule, parse_tree, path_at,
};
use coload_types::{Column, DataType, Error, Result};

use crate::formats::Formats;
use crate::infer::ColumnForms;
use crate::sample::SampleEnd;

/// What is told in place of a path where a record as a whole is at fault.
pub(crate) const WHOLE: &str = "(record)";
/// Bytes of a value that are told.
const TOLD_BYTES_MAX: usize = 256;

/// What `--format` says that an input is.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum InputFormat {
    /// Delimited text, whatever it looks like.
    Text,
    /// Documents of JSON, of any shape.
    Json,
    /// A record of JSON on each line.
    JsonLines,
    /// The lines that are made of the cells of a sheet; no flag says so.
    Sheet,
}

/// What separates records of JSON.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum JsonForm {
    /// Each stands on a line of its own.
    Lines,
    /// Brackets: documents behind each other, or in lists.
    Documents,
}

impl fmt::Display for JsonForm {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            JsonForm::Lines => "json-lines",
            JsonForm::Documents => "json",
        })
    }
}

/// Which values of JSON the columns are, as a user says it.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct JsonMapping {
    /// Path of the list whose items are the rows.
    pub unnest: Option<Vec<String>>,
    /// The columns, in their order.
    pub columns: Vec<MappedColumn>,
    /// Paths of values that may be there and are columns of other tables.
    pub elsewhere: Vec<Vec<String>>,
}

/// A column and where its values are.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct MappedColumn {
    /// Keys, the outermost first; at least one.
    pub path: Vec<String>,
    /// Name and, if it is given, type.
    pub name: String,
    /// The type; inferred if not given.
    pub given: Option<Column>,
    /// Whether it takes JSON as it is written; found out if not given.
    pub holds: Option<Holds>,
}

/// How records of JSON become records of fields.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct JsonRules {
    /// What separates records.
    pub form: JsonForm,
    /// The paths of the fields.
    pub keys: Arc<Keys>,
    /// What becomes of other keys.
    pub unknown: UnknownKeys,
    /// Path of the list whose items are the rows; records are the rows if it is not given.
    pub unnest: Option<Vec<String>>,
}

impl JsonRules {
    /// Checks that the paths are those of records, or of items of the list.
    ///
    /// # Errors
    /// `Invalid` when one clashes with the list.
    pub fn check(&self) -> Result<()> {
        let Some(list) = &self.unnest else { return Ok(()) };
        match ListReader::new(&self.keys, list, self.unknown) {
            Ok(_) => Ok(()),
            Err(text) => Err(Error::Invalid(format!("--unnest {}: {text}", list.join(".")))),
        }
    }

    /// Whether line breaks may stand within records.
    pub fn breaks(&self) -> LineBreaks {
        match self.form {
            JsonForm::Lines => LineBreaks::EndRecords,
            JsonForm::Documents => LineBreaks::AreSpace,
        }
    }

    /// What each field of a record tells of the type of its column; `None` where it is NULL, or the record is none.
    pub fn evidence(&self, record: &[u8], formats: &Formats) -> Vec<Option<Vec<u8>>> {
        let mut padded = record.to_vec();
        padded.extend([0; PADDING]);
        let Ok((tree, _)) = parse_tree(&padded, 0, self.breaks()) else { return Vec::new() };
        self.keys.paths().iter().map(|path| evidence_at(&tree, path, formats)).collect()
    }
}

fn evidence_at(tree: &Json<'_>, path: &Path, formats: &Formats) -> Option<Vec<u8>> {
    let mut value = tree;
    for key in &path.keys {
        let Json::Object(entries, _) = value else { return None };
        value = &entries.iter().find(|(name, _)| **name == *key.as_bytes())?.1;
    }
    evidence_of(value, path.holds, formats).map(Cow::into_owned)
}

/// What a value tells of the type of its column; `None` if it is NULL. A string is text, unless it is written as a date or a
/// time; a list is what it is.
pub fn evidence_of<'a>(
    value: &'a Json<'_>,
    holds: Holds,
    formats: &Formats,
) -> Option<Cow<'a, [u8]>> {
    const TEXT: &[u8] = b"\"";
    match (value, holds) {
        (Json::Null, _) => None,
        (Json::Bool(true), Holds::Value) => Some(Cow::Borrowed(b"true")),
        (Json::Bool(false), Holds::Value) => Some(Cow::Borrowed(b"false")),
        (Json::Number(number), Holds::Value) => Some(Cow::Borrowed(number)),
        (Json::Text(text), Holds::Value) if tells_date(text, formats) => Some(Cow::Borrowed(text)),
        (Json::List(list), _) => Some(Cow::Borrowed(list)),
        _ => Some(Cow::Borrowed(TEXT)),
    }
}

/// Whether a string is a date, a time, or both, as inference has it.
pub(crate) fn tells_date(text: &[u8], formats: &Formats) -> bool {
    use DataType::{Date, Time, Timestamp, TimestampTz};
    let mut forms = ColumnForms::default();
    forms.add(text, formats);
    let data_type = forms.data_type(SampleEnd::Whole);
    matches!(data_type, Date | Time | Timestamp | TimestampTz)
}

/// The path and the value that are told of a record in which a rule is broken at a place.
pub(crate) fn tell_fault(record: &[u8], at: usize, rule: Rule) -> (String, Vec<u8>) {
    let at = at.min(record.len());
    let path = path_at(record, at);
    let is_whole = matches!(rule, Rule::NoObject | Rule::Behind | Rule::Open);
    let column = if is_whole || path.is_empty() { WHOLE.to_owned() } else { path };
    // Where a record ends too early there is nothing to tell but how it begins.
    let value = match rule {
        Rule::OpenLine => record[..record.len().min(TOLD_BYTES_MAX)].to_vec(),
        _ => told_value(&record[at..]),
    };
    (column, value)
}

/// What is told of the text at fault: a string without its quotes, else up to what ends a value.
pub(crate) fn told_value(text: &[u8]) -> Vec<u8> {
    let text = &text[..text.len().min(TOLD_BYTES_MAX)];
    if let Some(inner) = text.strip_prefix(b"\"")
        && let Some(end) = string_end(inner)
    {
        return inner[..end].to_vec();
    }
    let is_end = |byte: &u8| matches!(byte, b',' | b'}' | b']' | b'\n' | b' ' | b':');
    let length = text.iter().skip(1).position(is_end).map_or(text.len(), |length| length + 1);
    text[..length].to_vec()
}

/// The quote that closes a string.
fn string_end(text: &[u8]) -> Option<usize> {
    let mut is_escaped = false;
    text.iter().position(|byte| {
        let is_end = *byte == b'"' && !is_escaped;
        is_escaped = *byte == b'\\' && !is_escaped;
        is_end
    })
}
