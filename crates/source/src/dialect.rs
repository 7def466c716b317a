//! How delimited text is written: delimiter, quote, header and so on.

use std::sync::Arc;

use coload_input::{Encoding, TextEncoding};
use coload_types::{Column, Error, Result};

use crate::aligned::Aligned;
use crate::field::FieldRules;
use crate::fixed::FixedWidths;
use crate::formats::{DateFormat, Formats, TimestampFormat};
use crate::json::{InputFormat, JsonMapping, JsonRules, UnknownKeys};
use crate::rules::{Padding, RecordRules, Trailing};
use crate::tokenise::Separators;
use crate::type_order::TypeOrder;

/// Whether the first record names the columns.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum Header {
    /// The first record names the columns; it is no row.
    Present,
    /// The first record is a row.
    #[default]
    Absent,
}

/// A delimiter of several bytes, such as `, ` or a character that is not ASCII.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct LongDelimiter {
    bytes: [u8; LongDelimiter::BYTES_MAX],
    length: u8,
}

impl LongDelimiter {
    /// Most bytes of a delimiter.
    pub const BYTES_MAX: usize = 8;

    /// A delimiter of 2 to 8 bytes; `None` for any other length.
    pub fn new(text: &[u8]) -> Option<Self> {
        let mut bytes = [0; LongDelimiter::BYTES_MAX];
        if text.len() < 2 {
            return None;
        }
        bytes.get_mut(..text.len())?.copy_from_slice(text);
        Some(LongDelimiter { bytes, length: text.len() as u8 })
    }

    /// Bytes of the delimiter, two to eight.
    pub fn bytes(&self) -> &[u8] {
        &self.bytes[..usize::from(self.length)]
    }
}

/// What ends a line.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum LineEnd {
    /// LF, with or without a CR before it.
    #[default]
    Newline,
    /// LF, CRLF, and CR alone.
    Any,
    /// LF, and any number of CR before it: text whose LF became CRLF twice.
    Returns,
}

/// Where an escape is one.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum Escapes {
    /// Within quotes, before a quote or itself.
    #[default]
    Quoted,
    /// In all fields: the byte that follows is text.
    Anywhere,
    /// In all fields, and letters behind it mean what they mean to MySQL and PostgreSQL: `\t` a tab, `\n` a newline.
    Letters,
}

/// Which fields the texts for NULL are compared with.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum NullsAre {
    /// Fields without quotes only.
    #[default]
    Unquoted,
    /// All fields, those in quotes too.
    AlsoQuoted,
}

/// What becomes of records with too few or too many fields.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum Ragged {
    /// They are rejected, with the count of their fields.
    #[default]
    Reject,
    /// Missing fields are NULL, fields too many that are empty are left out, others are rejected:
    /// nothing is lost.
    Pad,
    /// Missing fields are NULL, fields too many are left out.
    Truncate,
}

/// What becomes of quotes that do not enclose a field.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum Quotes {
    /// The record is rejected.
    #[default]
    Strict,
    /// They are text; which of them, the number of fields tells.
    Lenient,
}

/// What becomes of bytes that are not UTF-8 in columns of text.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum InvalidBytes {
    /// The record is rejected.
    #[default]
    Reject,
    /// U+FFFD takes their place.
    Replace,
}

/// What becomes of dirty records.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Policies {
    /// Too few or too many fields.
    pub ragged: Ragged,
    /// What becomes of quotes that do not enclose a field.
    pub quotes: Quotes,
    /// Bytes that are not UTF-8.
    pub invalid_bytes: InvalidBytes,
}

/// The policies that the user gave.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct GivenPolicies {
    /// What `--ragged` says; `None` without it.
    pub ragged: Option<Ragged>,
    /// What `--quotes` says; `None` without it.
    pub quotes: Option<Quotes>,
    /// What `--invalid-bytes` says; `None` without it.
    pub invalid_bytes: Option<InvalidBytes>,
}

/// How a delimited text is written.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Dialect {
    /// Byte between two fields.
    pub delimiter: u8,
    /// In place of `delimiter`, where it has several bytes.
    pub long_delimiter: Option<LongDelimiter>,
    /// Where fields stand, if no delimiter tells; `delimiter` is then one that no text has.
    pub fixed: Option<FixedWidths>,
    /// What sets columns apart that are drawn with blanks; `delimiter` is then one that no text has.
    pub aligned: Option<Aligned>,
    /// Around a field that may hold delimiters and newlines; none when no byte is special.
    pub quote: Option<u8>,
    /// Before a quote, or itself, inside a quoted field; `None` when a quote is doubled instead.
    pub escape: Option<u8>,
    /// Where the escape is one.
    pub escapes: Escapes,
    /// Whether names come first.
    pub header: Header,
    /// Fields that stand for NULL, whatever the type of the column.
    pub nulls: Vec<Vec<u8>>,
    /// Whether they do so in quotes too.
    pub nulls_are: NullsAre,
    /// Fields, quoted or not, that stand for NULL in columns of other types than text.
    pub typed_nulls: Vec<Vec<u8>>,
    /// Lines before the header, or before the first record, that are read over.
    pub skip: u64,
    /// A line that starts with it is read over.
    pub comment: Option<u8>,
    /// Whether records end with a delimiter.
    pub trailing: Trailing,
    /// What ends a line.
    pub line_end: LineEnd,
    /// Records that name the columns, if there is a header: their names are joined by a space.
    pub header_rows: u64,
    /// Lines at the end that are not read.
    pub footer: u64,
    /// What becomes of dirty records.
    pub policies: Policies,
    /// How characters are written. The rest of the dialect is that of the text in UTF-8.
    pub encoding: TextEncoding,
    /// How numbers and dates are written.
    pub formats: Formats,
    /// Types that inference takes, in order.
    pub types: TypeOrder,
    /// Numbers of the columns whose types were given beside inferred ones: what does not fit these is a reject.
    pub typed: Vec<u32>,
    /// How records of JSON are read, whose fields are then written as this dialect has them; `None` of delimited text.
    pub json: Option<Arc<JsonRules>>,
}

impl Default for Dialect {
    /// RFC 4180 without a header: commas, double quotes; the empty unquoted field is NULL, and the
    /// empty quoted one is the empty text.
    fn default() -> Self {
        Dialect {
            delimiter: b',',
            long_delimiter: None,
            fixed: None,
            aligned: None,
            quote: Some(b'"'),
            escape: None,
            escapes: Escapes::Quoted,
            header: Header::Absent,
            nulls: vec![Vec::new()],
            nulls_are: NullsAre::Unquoted,
            typed_nulls: Vec::new(),
            skip: 0,
            comment: None,
            trailing: Trailing::Newline,
            line_end: LineEnd::Newline,
            header_rows: 1,
            footer: 0,
            policies: Policies::default(),
            encoding: TextEncoding::default(),
            formats: Formats::default(),
            types: TypeOrder::default(),
            typed: Vec::new(),
            json: None,
        }
    }
}

impl Dialect {
    /// Checks that no byte has two meanings.
    ///
    /// # Errors
    /// `Invalid` that names the two flags and the byte.
    pub fn check(&self) -> Result<()> {
        let has_delimiter = self.long_delimiter.is_none() && self.fixed.is_none();
        if self.escapes != Escapes::Quoted && self.outside_escape().is_none() {
            return Err(Error::Invalid(
                "--escapes anywhere and letters need an --escape that is not --quote, such as \\"
                    .to_owned(),
            ));
        }
        let parts = [
            ("--delimiter", has_delimiter.then_some(self.delimiter)),
            ("--quote", self.quote),
            ("--escape", self.escape.filter(|escape| Some(*escape) != self.quote)),
            ("--comment", self.comment),
        ];
        for (index, (flag, byte)) in parts.iter().enumerate() {
            let Some(byte) = byte else { continue };
            // The dialect of JSON has no delimiter: its own is a byte that none is.
            if !(self.json.is_some() && index == 0) {
                check_special(flag, *byte)?;
            }
            if let Some((other, _)) = parts[..index].iter().find(|(_, b)| *b == Some(*byte)) {
                return Err(Error::Invalid(format!(
                    "{other} and {flag} are both {}: each needs its own character",
                    describe_byte(*byte)
                )));
            }
        }
        if let Some(long) = &self.long_delimiter {
            let special = |byte: &&u8| {
                matches!(byte, b'\n' | b'\r' | 0)
                    || parts[1..].iter().any(|(_, b)| *b == Some(**byte))
            };
            if let Some(byte) = long.bytes().iter().find(special) {
                return Err(Error::Invalid(format!(
                    "--delimiter \"{}\" holds {}, which has another meaning",
                    long.bytes().escape_ascii(),
                    describe_byte(*byte)
                )));
            }
        }
        if self.formats.thousands == Some(self.formats.decimal) {
            return Err(Error::Invalid(format!(
                "--decimal-separator and --thousands-separator are both {}",
                describe_byte(self.formats.decimal)
            )));
        }
        if let Some(null) = self.nulls.iter().find(|null| {
            null.iter().any(|byte| matches!(byte, b'\n' | b'\r')) || self.holds_delimiter(null)
        }) {
            return Err(Error::Invalid(format!(
                "--null \"{}\" holds a delimiter or a line end, so that no field can be it",
                null.escape_ascii()
            )));
        }
        Ok(())
    }

    fn holds_delimiter(&self, text: &[u8]) -> bool {
        match &self.long_delimiter {
            Some(long) => memchr::memmem::find(text, long.bytes()).is_some(),
            None => text.contains(&self.delimiter),
        }
    }

    /// Records of the header; 0 when there is none.
    pub fn header_records(&self) -> u64 {
        if self.header == Header::Present { self.header_rows } else { 0 }
    }

    /// How records of `columns` fields are found.
    pub fn record_rules(&self, columns: usize) -> RecordRules {
        RecordRules {
            separators: Separators {
                delimiter: self.delimiter,
                // Of JSON no byte between records is a quote.
                quote: self.quote.filter(|_| self.json.is_none()),
                escape: self.own_escape(),
            },
            fields: columns,
            trailing: self.trailing,
            comment: self.comment,
            long_delimiter: self.long_delimiter,
            fixed: self.fixed,
            aligned: self.aligned,
            line_end: self.line_end,
            policies: self.policies,
            padding: Padding::of(&self.nulls),
            outside_escape: self.outside_escape(),
            escapes: self.escapes,
            json: self.json.clone(),
        }
    }

    /// How a field is read.
    pub fn field_rules(&self) -> FieldRules {
        FieldRules {
            quote: self.quote,
            escape: self.own_escape(),
            escapes: self.escapes,
            nulls: self.nulls.clone(),
            nulls_are: self.nulls_are,
            typed_nulls: self.typed_nulls.clone(),
            formats: self.formats,
            types: self.types,
        }
    }

    /// The escape if it says more than that quotes are doubled.
    fn own_escape(&self) -> Option<u8> {
        let has_place = self.quote.is_some() || self.escapes != Escapes::Quoted;
        self.escape.filter(|escape| has_place && self.quote != Some(*escape))
    }

    /// The escape if it is one outside quotes too.
    fn outside_escape(&self) -> Option<u8> {
        self.own_escape().filter(|_| self.escapes != Escapes::Quoted)
    }
}

/// Refuses bytes that can have no meaning besides the one they have.
fn check_special(flag: &str, byte: u8) -> Result<()> {
    let why = match byte {
        b'\n' | b'\r' => "cannot be a line end",
        0 => "cannot be NUL, which no text has (is the input UTF-16? try --encoding utf-16)",
        _ => return Ok(()),
    };
    Err(Error::Invalid(format!("{flag} {why}")))
}

/// The parts of a dialect that the user gave; the sniffer decides the rest.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct GivenDialect {
    /// `--delimiter`: one byte, or several.
    pub delimiter: Option<Vec<u8>>,
    /// What `--fixed-width` says, which excludes `--delimiter`.
    pub fixed: Option<FixedWidths>,
    /// `--delimiter spaces` and the like, without another delimiter.
    pub aligned: Option<Aligned>,
    /// `--quote`; `Some(None)` is no quote.
    pub quote: Option<Option<u8>>,
    /// `--escape`; `Some(None)` is a doubled quote.
    pub escape: Option<Option<u8>>,
    /// What `--escapes` says; `None` without it.
    pub escapes: Option<Escapes>,
    /// What `--header` or `--no-header` says; `None` without either.
    pub header: Option<Header>,
    /// Texts that `--null` names; `None` without it.
    pub nulls: Option<Vec<Vec<u8>>>,
    /// What `--quoted-null` says.
    pub nulls_are: NullsAre,
    /// Texts that `--typed-null` names; `None` without it.
    pub typed_nulls: Option<Vec<Vec<u8>>>,
    /// Lines that `--skip` names; `None` without it.
    pub skip: Option<u64>,
    /// `--comment`; `Some(None)` is no comments.
    pub comment: Option<Option<u8>>,
    /// Whether records end with a delimiter; no flag says so yet.
    pub trailing: Option<Trailing>,
    /// What `--line-end` says; `None` without it.
    pub line_end: Option<LineEnd>,
    /// `--header-rows`; it counts where there is a header.
    pub header_rows: Option<u64>,
    /// Lines that `--footer` names; `None` without it.
    pub footer: Option<u64>,
    /// What `--ragged`, `--quotes` and `--invalid-bytes` say.
    pub policies: GivenPolicies,
    /// Whether somebody says what all columns are, and not only the table that is there: then a record that does not fit is a reject,
    /// unless a policy says otherwise.
    pub columns_are_given: bool,
    /// Byte that `--decimal-separator` names; `None` without it.
    pub decimal: Option<u8>,
    /// Byte that `--thousands-separator` names; `None` without it.
    pub thousands: Option<u8>,
    /// What `--date-format` says; `None` without it.
    pub date: Option<DateFormat>,
    /// What `--timestamp-format` says; `None` without it.
    pub timestamp: Option<TimestampFormat>,
    /// What `--type-order` says; `None` without it.
    pub types: Option<TypeOrder>,
    /// `--types`: columns whose types are not inferred.
    pub columns: Vec<Column>,
    /// What `--encoding` says of characters; `None` without it.
    pub encoding: Option<Encoding>,
    /// `--all-text`: inferred columns are VARCHAR, and no field is NULL unless `--null` says so.
    pub all_text: bool,
    /// What `--format` says; `None` without it.
    pub format: Option<InputFormat>,
    /// What `--unknown-keys` says.
    pub unknown_keys: UnknownKeys,
    /// Path that `--unnest` names; `None` without it.
    pub unnest: Option<Vec<String>>,
    /// What `--mapping` says; `None` without it.
    pub mapping: Option<Arc<JsonMapping>>,
}

impl GivenDialect {
    /// Path of the list whose items are the rows of JSON, if somebody says so.
    pub fn list(&self) -> Option<&Vec<String>> {
        let mapped = self.mapping.as_ref().and_then(|mapping| mapping.unnest.as_ref());
        self.unnest.as_ref().or(mapped)
    }

    /// The escape outside quotes: a backslash unless another one is given.
    pub fn own_escape(&self) -> Option<u8> {
        match self.escapes {
            Some(Escapes::Anywhere | Escapes::Letters) => self.escape.unwrap_or(Some(b'\\')),
            _ => None,
        }
    }
}

/// The one byte that a flag such as `--delimiter` names: a character, `tab` or `\t`, `space`,
/// `\xHH`.
///
/// # Errors
/// `Invalid` that names the flag and what it takes.
pub fn byte_from_flag(flag: &str, text: &str) -> Result<u8> {
    let hex = text.strip_prefix("\\x").filter(|hex| hex.len() == 2);
    match (text, text.as_bytes()) {
        ("tab" | "TAB" | "\\t", _) => Ok(b'\t'),
        ("space", _) => Ok(b' '),
        ("\\\\", _) => Ok(b'\\'),
        (_, [byte]) => Ok(*byte),
        _ => hex.and_then(|hex| u8::from_str_radix(hex, 16).ok()).ok_or_else(|| {
            Error::Invalid(format!(
                "{flag} \"{text}\": expected one ASCII character, tab, space or \\xHH"
            ))
        }),
    }
}

/// The bytes of `--delimiter`: as [`byte_from_flag`], or 2 to 8 bytes as they are written.
///
/// # Errors
/// `Invalid` that names the flag and what it takes.
pub fn delimiter_from_flag(text: &str) -> Result<Vec<u8>> {
    if let Ok(byte) = byte_from_flag("--delimiter", text) {
        return Ok(vec![byte]);
    }
    let text = text.replace("\\t", "\t");
    if LongDelimiter::new(text.as_bytes()).is_none() || text.contains(['\n', '\r']) {
        return Err(Error::Invalid(format!(
            "--delimiter \"{text}\": expected a character, 2 to 8 bytes of text, tab, space or \\xHH"
        )));
    }
    Ok(text.into_bytes())
}

/// A delimiter for a message.
pub fn describe_delimiter(delimiter: &[u8]) -> String {
    match delimiter {
        [byte] => describe_byte(*byte),
        _ => format!("'{}'", String::from_utf8_lossy(delimiter).escape_debug()),
    }
}

/// [`byte_from_flag`] for a part that a dialect may lack: `none` or nothing is none.
///
/// # Errors
/// As [`byte_from_flag`].
pub fn optional_byte_from_flag(flag: &str, text: &str) -> Result<Option<u8>> {
    if text.is_empty() || text.eq_ignore_ascii_case("none") {
        return Ok(None);
    }
    byte_from_flag(flag, text).map(Some)
}

/// A byte for a message.
pub fn describe_byte(byte: u8) -> String {
    match byte {
        b'\t' => "tab".to_owned(),
        b' ' => "space".to_owned(),
        b'!'..=b'~' => format!("'{}'", byte as char),
        _ => format!("\\x{byte:02x}"),
    }
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]
    use super::*;

    #[test]
    fn flags_name_bytes() {
        for (text, byte) in [(",", b','), ("\\t", 9), ("tab", 9), ("\\x01", 1), ("\\", b'\\')] {
            assert_eq!(byte_from_flag("--delimiter", text), Ok(byte), "{text}");
        }
        assert_eq!(optional_byte_from_flag("--quote", "none"), Ok(None));
        assert_eq!(optional_byte_from_flag("--quote", "'"), Ok(Some(b'\'')));
        for text in ["", "ab", "\u{a7}", "\\x1"] {
            let error = byte_from_flag("--delimiter", text).unwrap_err().to_string();
            assert!(error.starts_with(&format!("--delimiter \"{text}\": expected one")), "{error}");
        }
    }

    #[test]
    fn an_escape_that_doubles_quotes_is_none() {
        for (quote, escape, expected) in [
            (Some(b'"'), Some(b'"'), None),
            (Some(b'"'), Some(b'\\'), Some(b'\\')),
            (None, Some(b'\\'), None),
        ] {
            let dialect = Dialect { quote, escape, ..Dialect::default() };
            assert_eq!(dialect.record_rules(1).separators.escape, expected);
            assert_eq!(dialect.field_rules().escape, expected);
        }
    }

    #[test]
    fn a_byte_has_one_meaning() {
        Dialect::default().check().unwrap();
        let same_escape = Dialect { escape: Some(b'"'), ..Dialect::default() };
        same_escape.check().unwrap();
        for (dialect, expected) in [
            (
                Dialect { delimiter: b'"', ..Dialect::default() },
                "--delimiter and --quote are both '\"'",
            ),
            (Dialect { comment: Some(b','), ..Dialect::default() }, "--delimiter and --comment"),
            (Dialect { delimiter: b'\n', ..Dialect::default() }, "cannot be a line end"),
            (Dialect { nulls: vec![b"a,b".to_vec()], ..Dialect::default() }, "--null \"a,b\""),
        ] {
            let error = dialect.check().unwrap_err().to_string();
            assert!(error.contains(expected), "{error}");
        }
    }
}
