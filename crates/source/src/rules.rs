//! What the parser of records has to know.

use std::sync::Arc;

use crate::aligned::Aligned;
use crate::dialect::{Escapes, InvalidBytes, LineEnd, LongDelimiter, Policies, Quotes, Ragged};
use crate::fixed::FixedWidths;
use crate::json::JsonRules;
use crate::tokenise::Separators;

/// What delimits records and fields.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct RecordRules {
    /// Bytes with a meaning.
    pub separators: Separators,
    /// Fields of a record.
    pub fields: usize,
    /// Whether a delimiter ends each record.
    pub trailing: Trailing,
    /// First byte of a line that is no record.
    pub comment: Option<u8>,
    /// In place of the delimiter of `separators`, where it has several bytes.
    pub long_delimiter: Option<LongDelimiter>,
    /// Where fields stand, if no delimiter tells.
    pub fixed: Option<FixedWidths>,
    /// What sets columns apart that are drawn with blanks, if no delimiter does.
    pub aligned: Option<Aligned>,
    /// What ends a line.
    pub line_end: LineEnd,
    /// What becomes of dirty records.
    pub policies: Policies,
    /// What stands for a field that is missing.
    pub padding: Padding,
    /// Takes the meaning of the byte behind it, outside quotes too.
    pub outside_escape: Option<u8>,
    /// What it makes of that byte.
    pub escapes: Escapes,
    /// How records of JSON are read; `None` of delimited text.
    pub json: Option<Arc<JsonRules>>,
}

/// What stands behind escapes.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Escaped {
    /// The text has no escapes.
    Nothing,
    /// Bytes that separate nothing.
    Others,
    /// Delimiters, quotes or line ends.
    Separators,
}

/// Whether a delimiter follows the last field of a record.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Trailing {
    /// No: a newline follows.
    Newline,
    /// Yes, as in TPC-H's files; a record without it is taken too.
    Delimiter,
}

/// The bytes of a field that is missing from a record: NULL, or the empty text where there is no
/// NULL.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Padding {
    bytes: [u8; Padding::BYTES_MAX],
    length: u8,
}

impl Padding {
    const BYTES_MAX: usize = 16;

    /// The shortest of the fields that are NULL, if it has at most 16 bytes; else nothing.
    pub fn of(nulls: &[Vec<u8>]) -> Self {
        let mut bytes = [0; Padding::BYTES_MAX];
        let null = nulls.iter().min_by_key(|null| null.len()).map_or(&[][..], Vec::as_slice);
        let length = match bytes.get_mut(..null.len()) {
            Some(target) => {
                target.copy_from_slice(null);
                null.len()
            }
            None => 0,
        };
        Padding { bytes, length: length as u8 }
    }

    /// Bytes of the field, at most 16.
    pub fn bytes(&self) -> &[u8] {
        &self.bytes[..usize::from(self.length)]
    }
}

impl RecordRules {
    /// Whether the tokeniser does not know the delimiter or the line ends.
    pub fn is_exotic(&self) -> bool {
        self.fixed.is_some()
            || self.aligned.is_some()
            || self.long_delimiter.is_some()
            || self.line_end != LineEnd::Newline
    }

    /// What the escapes of a text outside quotes hide from the tokeniser.
    pub fn escaped_in(&self, text: &[u8]) -> Escaped {
        let Some(escape) = self.outside_escape else { return Escaped::Nothing };
        let mut found = Escaped::Nothing;
        let mut at = 0;
        while let Some(next) = memchr::memchr(escape, text.get(at..).unwrap_or_default()) {
            let special = |byte: &u8| {
                matches!(byte, b'\n' | b'\r')
                    || *byte == self.separators.delimiter
                    || self.separators.quote == Some(*byte)
            };
            if text.get(at + next + 1).is_none_or(special) {
                return Escaped::Separators;
            }
            found = Escaped::Others;
            at += next + 2;
        }
        found
    }

    /// Whether some dirty records become rows.
    pub fn is_forgiving(&self) -> bool {
        let Policies { ragged, quotes, invalid_bytes } = self.policies;
        (ragged, quotes, invalid_bytes) != (Ragged::Reject, Quotes::Strict, InvalidBytes::Reject)
    }

    /// Whether a record of `found` fields fits.
    pub fn takes(&self, found: usize) -> bool {
        found == self.fields || self.trailing == Trailing::Delimiter && found == self.fields + 1
    }

    /// Fields of a record as most are written.
    pub fn fields_written(&self) -> u32 {
        (self.fields + usize::from(self.trailing == Trailing::Delimiter)) as u32
    }
}
