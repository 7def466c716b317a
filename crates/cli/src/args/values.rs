//! Values of flags, and how they are read.

use std::path::PathBuf;

use clap::ValueEnum;
use coload_source::{Aligned, byte_from_flag, delimiter_from_flag, optional_byte_from_flag};
use coload_space::SpaceSpec;

use crate::size::parse_size;

/// Value of `--dictionaries`.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub enum Dictionaries {
    /// For columns where they take less than the values
    Auto,
    /// For all columns
    Always,
}

/// An encoding of text, or that it is to be found out.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Encoding {
    /// To be found out.
    Auto,
    /// An encoding of text.
    Text(coload_input::Encoding),
}

/// Form of what was found out.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub enum SniffForm {
    /// A text for people
    Text,
    /// JSON for programs
    Json,
    /// A CREATE TABLE, and in comments the flags and the evidence
    Sql,
    /// Of JSON, which values the columns are, for --mapping
    Mapping,
}

/// Form of a report.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub enum ReportForm {
    /// A text for people
    Text,
    /// For programs; docs/loading.md lists the fields
    Json,
}

/// Form of the pages of the manual.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub enum ManualForm {
    /// For man
    Roff,
    /// For the site of the documentation
    Markdown,
}

/// Value of `--line-end`.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub enum LineEndForm {
    /// A line ends at LF or CRLF
    Lf,
    /// LF, CRLF and CR
    #[value(alias = "cr")]
    Any,
    /// LF, and any number of CR before it
    #[value(alias = "crcrlf")]
    Returns,
}

/// Value of `--quote` of `coload export`.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub enum ExportQuotes {
    /// Around all texts: the file loads as the same table
    Texts,
    /// Around fields that hold delimiters, quotes or line ends: texts may load as numbers
    Needed,
}

/// `quoted`, `anywhere` or `letters`.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub enum EscapesForm {
    /// Within quotes only
    Quoted,
    /// In all fields: what follows is text
    Anywhere,
    /// In all fields, and letters have a meaning: \t, \n, \r, \b, \f, \v, \0, \x41
    Letters,
}

/// Columns with their types, as `--types` names them.
#[derive(Debug, Clone, PartialEq)]
pub struct GivenColumns(pub Vec<coload_types::Column>);

/// `reject`, `pad` or `truncate`.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub enum RaggedPolicy {
    /// Set the record aside
    Reject,
    /// Fill missing fields with NULL, leave out empty ones too many, set others aside
    Pad,
    /// Fill missing fields with NULL, leave out those too many
    Truncate,
}

/// Value of `--quotes`.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub enum QuotesPolicy {
    /// Set the record aside
    Strict,
    /// Take the quotes for text that make the number of fields right
    Lenient,
}

/// Value of `--format`.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub enum FormatName {
    /// Delimited text, whatever it looks like
    Text,
    /// Documents of JSON behind each other, or lists of records
    Json,
    /// A record of JSON on each line
    JsonLines,
}

/// Value of `--unknown-keys`.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub enum KeysPolicy {
    /// Set the record aside
    Reject,
    /// Leave them out
    Ignore,
}

/// Value of `--invalid-bytes`.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub enum BytesPolicy {
    /// Set the record aside
    Reject,
    /// Put U+FFFD in their place
    Replace,
}

/// Where records that are set aside go: the value of `--rejects`.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum RejectsTo {
    /// A file of CSV.
    File(PathBuf),
    /// A table of the store.
    Table(String),
}

/// What stands between two fields.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Delimiter {
    /// One or several bytes.
    Bytes(Vec<u8>),
    /// Blanks, or bars with blanks around.
    Aligned(Aligned),
}

impl Delimiter {
    /// The bytes, if it has any.
    pub fn bytes(&self) -> Option<&[u8]> {
        match self {
            Delimiter::Bytes(bytes) => Some(bytes),
            Delimiter::Aligned(_) => None,
        }
    }

    /// How columns are drawn, if no bytes delimit them.
    pub fn aligned(&self) -> Option<Aligned> {
        match self {
            Delimiter::Bytes(_) => None,
            Delimiter::Aligned(aligned) => Some(*aligned),
        }
    }
}

/// A byte of a dialect that may be absent.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct OptionalByte(pub Option<u8>);

pub(super) fn delimiter(text: &str) -> coload::Result<Delimiter> {
    match Aligned::of_name(text) {
        Some(aligned) => Ok(Delimiter::Aligned(aligned)),
        None => delimiter_from_flag(text).map(Delimiter::Bytes),
    }
}

pub(super) fn given_columns(text: &str) -> coload::Result<GivenColumns> {
    let columns = coload::parse_columns(text)?;
    Ok(GivenColumns(columns.columns().to_vec()))
}

/// Value of `--unnest`.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct UnnestPath(pub Vec<String>);

pub(super) fn unnest_path(text: &str) -> coload::Result<UnnestPath> {
    crate::json_mapping::parse_path(text).map(UnnestPath)
}

pub(super) fn decimal(text: &str) -> coload::Result<u8> {
    byte_from_flag("--decimal-separator", text)
}

pub(super) fn thousands(text: &str) -> coload::Result<u8> {
    byte_from_flag("--thousands-separator", text)
}

pub(super) fn quote(text: &str) -> coload::Result<OptionalByte> {
    optional_byte_from_flag("--quote", text).map(OptionalByte)
}

pub(super) fn escape(text: &str) -> coload::Result<OptionalByte> {
    optional_byte_from_flag("--escape", text).map(OptionalByte)
}

pub(super) fn comment(text: &str) -> coload::Result<OptionalByte> {
    optional_byte_from_flag("--comment", text).map(OptionalByte)
}

pub(super) fn encoding(text: &str) -> coload::Result<Encoding> {
    match text {
        "auto" => Ok(Encoding::Auto),
        label => coload_input::Encoding::from_label(label).map(Encoding::Text),
    }
}

pub(super) fn rejects_to(text: &str) -> Result<RejectsTo, String> {
    match text.strip_prefix("table:") {
        Some("") => Err("expected a file, or table:NAME".to_owned()),
        Some(table) => Ok(RejectsTo::Table(table.to_owned())),
        None => Ok(RejectsTo::File(text.into())),
    }
}

pub fn sample_size(text: &str) -> Result<usize, String> {
    match text {
        "all" => Ok(usize::MAX),
        _ => parse_size(text),
    }
}

pub fn at_least_one(text: &str) -> Result<usize, String> {
    match text.parse() {
        Ok(0) | Err(_) => Err("expected a whole number, at least 1".to_owned()),
        Ok(number) => Ok(number),
    }
}

pub(super) fn space(text: &str) -> Result<SpaceSpec, String> {
    SpaceSpec::parse(text, parse_size).map_err(|e| e.to_string())
}

pub(super) fn chunk_size(text: &str) -> Result<usize, String> {
    let range = coload_wire::CHUNK_BYTES_MIN..=coload_wire::CHUNK_BYTES_MAX;
    let bytes = parse_size(text)?;
    match range.contains(&bytes) {
        true => Ok(bytes),
        false => Err(format!("expected {} bytes to {} bytes", range.start(), range.end())),
    }
}

#[cfg(feature = "sql")]
pub(super) fn cores(text: &str) -> Result<f64, String> {
    match text.parse() {
        Ok(cores) if (0.01..=4096.0).contains(&cores) => Ok(cores),
        _ => Err("expected a number from 0.01 to 4096".to_owned()),
    }
}

#[cfg(feature = "sql")]
pub(super) fn scale(text: &str) -> Result<f64, String> {
    match text.parse() {
        Ok(factor) if (0.001..=1000.0).contains(&factor) => Ok(factor),
        _ => Err("expected a number from 0.001 to 1000".to_owned()),
    }
}

#[cfg(feature = "sql")]
/// Form of a log.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub enum LogForm {
    /// A text for people
    Text,
    /// A JSON object a line
    Json,
}

#[cfg(feature = "sql")]
/// Priority of loads at a server.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub enum PriorityName {
    /// Statements go before: loads get what these leave, and rest when they become slow
    Low,
    /// Both compete for the cores
    Normal,
}

#[cfg(feature = "sql")]
/// How severe a line of the log is.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub enum LogLevel {
    /// What failed for good
    Error,
    /// What failed, statements and logins among it
    Warn,
    /// Statements that are done, too
    Info,
    /// What libraries tell too
    Debug,
}

/// Refuses a password or token on the command line.
#[cfg(feature = "sql")]
pub fn no_secret(_: &str) -> Result<String, String> {
    Err("the list of processes would show it to everybody on this machine: give --password-file or \
         --token-file, or set COLOAD_PASSWORD or COLOAD_TOKEN"
        .into())
}
