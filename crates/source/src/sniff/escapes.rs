//! Escapes outside quotes: a backslash before a delimiter, without which the records do not agree.
//!
//! ```text
//!   1,Rome\, Italy,5       three fields each, if the backslash takes the meaning of the comma behind it
//!   2,Oslo,7
//! ```
//!
//! `\N` or `\t` alone tell nothing: Hive writes `\N` beside paths whose backslashes are text.

use super::attempt::usual_field_count;
use super::dialect_of;
use crate::dialect::{Escapes, GivenDialect};
use crate::sample::{Records, SampleEnd, Split, split_as_loaded};

/// What is said where they are found.
pub(super) const ESCAPES_FOUND: &str = "a backslash escapes delimiters outside quotes too: all records have as many fields then (--escapes quoted says otherwise)";

const ESCAPE: u8 = b'\\';
/// What is a letter behind the escape in dumps of MySQL and PostgreSQL.
const LETTERS: &[u8] = b"NtnrbfvZ0";

/// Where a backslash is an escape outside quotes, if without it some of the records have other fields than most, and with it none has;
/// and if each stands before something that may be escaped.
pub(super) fn find_escapes(
    rows: &[u8],
    end: SampleEnd,
    split: Split,
    records: &Records<'_>,
    given: &GivenDialect,
) -> Option<Escapes> {
    let is_open = given.escapes.is_none()
        && given.escape.is_none()
        && given.fixed.is_none()
        && split.aligned.is_none()
        && split.escape.is_none()
        && split.long_delimiter.is_none();
    if !is_open || memchr::memmem::find(rows, &[ESCAPE, split.delimiter]).is_none() {
        return None;
    }
    let usual = usual_field_count(&records.records)?;
    if records.records.iter().all(|record| record.len() == usual) {
        return None;
    }
    let escapes = meaning_of_all(rows, split)?;
    let told = GivenDialect { escapes: Some(escapes), ..given.clone() };
    let fields = |usual: usize| {
        let rules = dialect_of(split, &told).record_rules(usual);
        let escaped = split_as_loaded(rows, end, &rules, usize::MAX);
        let usual = usual_field_count(&escaped.records)?;
        let agree = escaped.faults == 0 && escaped.records.iter().all(|r| r.len() == usual);
        Some((usual, agree))
    };
    // Most records may have an escape.
    let (own, _) = fields(usual)?;
    let (own, agree) = fields(own)?;
    (agree && own > 1).then_some(escapes)
}

/// What escapes are made of: separators, or letters too; `None` if a backslash stands before something else.
fn meaning_of_all(rows: &[u8], split: Split) -> Option<Escapes> {
    let mut escapes = Escapes::Anywhere;
    let mut at = 0;
    while let Some(next) = memchr::memchr(ESCAPE, rows.get(at..).unwrap_or_default()) {
        match rows.get(at + next + 1) {
            // The sample is cut there.
            None => break,
            Some(byte) if LETTERS.contains(byte) => escapes = Escapes::Letters,
            Some(byte)
                if [split.delimiter, ESCAPE, b'\n', b'\r'].contains(byte)
                    || split.quote == Some(*byte) => {}
            Some(_) => return None,
        }
        at += next + 2;
    }
    Some(escapes)
}
