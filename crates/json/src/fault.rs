//! What is wrong with a record, and where.

/// A rule of JSON, or of its records, that bytes break.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Rule {
    /// No value begins so.
    NoValue,
    /// A number that is none of JSON's.
    Number,
    /// A control character in a string.
    Control,
    /// A backslash before what no escape is.
    Escape,
    /// Half of a character of UTF-16.
    Surrogate,
    /// Bytes that are not UTF-8.
    NotUtf8,
    /// Something else than a key.
    NoKey,
    /// Something else than a colon behind a key.
    NoColon,
    /// Something else than a comma or the end behind a value.
    NoComma,
    /// A comma before the end of a list or an object.
    TrailingComma,
    /// A key that its object has already.
    TwiceTheKey,
    /// More lists and objects in each other than are read.
    TooDeep,
    /// The record does not end.
    Open,
    /// The line ends before the record.
    OpenLine,
    /// Something behind the record, on its line.
    Behind,
    /// A record that is no object.
    NoObject,
    /// A value where the others have an object.
    NoObjectHere,
    /// A key of no column.
    UnknownKey,
    /// No comma between two records.
    NoCommaBetween,
    /// A list of records that does not end.
    OpenList,
    /// More text than one window holds.
    TooLong,
    /// A value where the list is that is unnested.
    NoListHere,
    /// A list whose rows are more than are read at once.
    TooManyItems,
}

/// What is wrong, and the byte where it shows.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Fault {
    /// The rule that is broken.
    pub rule: Rule,
    /// Position in the text.
    pub at: usize,
}

impl Fault {
    /// A rule that is broken at a position.
    pub fn new(rule: Rule, at: usize) -> Self {
        Fault { rule, at }
    }
}

impl Rule {
    /// What is wrong, to follow the value.
    pub fn text(self) -> &'static str {
        match self {
            Rule::NoValue => "is no JSON: no value begins so",
            Rule::Number => "is no JSON: no number is written so",
            Rule::Control => "is no JSON: a control character stands in a string",
            Rule::Escape => "is no JSON: the backslash has no escape behind it",
            Rule::Surrogate => "is no JSON: it is half of a character",
            Rule::NotUtf8 => "is no JSON: it is not UTF-8",
            Rule::NoKey => "is no JSON: a key in quotes is expected",
            Rule::NoColon => "is no JSON: a colon is expected",
            Rule::NoComma => "is no JSON: a comma or the end is expected",
            Rule::TrailingComma => "is no JSON: a comma stands before the end",
            Rule::TwiceTheKey => "is a key that its object has twice",
            Rule::TooDeep => "is deeper than 512 lists and objects in each other",
            Rule::Open => "begins a record that does not end",
            Rule::OpenLine => "begins a record that does not end on its line",
            Rule::Behind => "stands behind the record on its line",
            Rule::NoObject => "is a record that is no object",
            Rule::NoObjectHere => "is no object, and other records have one here",
            Rule::UnknownKey => "is a key of no column",
            Rule::NoCommaBetween => "is no JSON: a comma is expected between two records",
            Rule::OpenList => "ends the input within a list of records",
            Rule::TooLong => "is longer than what is read at once",
            Rule::NoListHere => "is no list, and --unnest takes one here",
            Rule::TooManyItems => {
                "is a list whose rows, each with the values beside it, have over 64 MiB"
            }
        }
    }

    /// What helps.
    pub fn advice(self) -> &'static str {
        match self {
            Rule::UnknownKey => {
                "a larger --sample to find it, a column for it in --columns, or --unknown-keys ignore to leave such keys out"
            }
            Rule::TooManyItems => {
                "--columns or --mapping with the keys that are needed, and --unknown-keys ignore; or --max-rejects N to set such records aside"
            }
            Rule::OpenLine | Rule::Behind => {
                "--format json if records do not stand on lines of their own, or --max-rejects N to set such records aside"
            }
            _ => "--max-rejects N to set such records aside",
        }
    }
}
