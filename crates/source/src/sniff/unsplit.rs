//! Text that is no table: reports, logs, several tables in one file. What splits some of its lines alike fails at the others, and the load
//! would refuse them; as one column nothing of it is lost.

use super::delimiter::DELIMITERS;
use crate::dialect::{Dialect, GivenDialect, Header, Ragged};
use crate::rules::Trailing;
use crate::sample::Field;

/// Of so many records at most one may be unlike the others, where signs that are seldom delimiters split them.
const ALIKE_FOR_EACH_OTHER_UNUSUAL: usize = 30;
/// The same of two columns: a sign may stand once in many lines.
const ALIKE_FOR_EACH_OTHER_TWO: usize = 10;
/// The same of more columns.
const ALIKE_FOR_EACH_OTHER: usize = 4;
/// Records, at least, that tell anything.
const RECORDS_MIN: usize = 4;
/// Control characters that no text has, for a text in which all delimiters stand.
const ABSENT: [u8; 3] = [0x1f, 0x1e, 0x1d];

/// How to read the text as one column, if so many rows are unlike the others that there is no table.
pub(super) fn as_one_column(
    text: &[u8],
    header: &[Vec<Field<'_>>],
    rows: &[Vec<Field<'_>>],
    columns: usize,
    dialect: &Dialect,
    given: &GivenDialect,
) -> Option<GivenDialect> {
    let policies = given.policies;
    let is_told = given.delimiter.is_some()
        || given.fixed.is_some()
        || given.aligned.is_some()
        || given.quote.is_some()
        || given.skip.is_some()
        || given.header.is_some()
        || given.comment.is_some()
        || given.escapes.is_some()
        || policies.ragged.is_some()
        || policies.quotes.is_some()
        || !given.columns.is_empty();
    if is_told || columns < 2 || rows.len() < RECORDS_MIN {
        return None;
    }
    let pads = dialect.policies.ragged == Ragged::Pad;
    let written = columns + usize::from(dialect.trailing == Trailing::Delimiter);
    let is_refused = |row: &&Vec<Field<'_>>| match row.get(columns..) {
        Some(more) => row.len() > written && (!pads || more.iter().any(|f| !f.text.is_empty())),
        None => !pads,
    };
    let refused = rows.iter().filter(is_refused).count();
    let delimiter = dialect.delimiter;
    let is_usual = dialect.long_delimiter.is_none()
        && dialect.aligned.is_none()
        && DELIMITERS.contains(&delimiter);
    let alike_for_each = match columns {
        _ if !is_usual => ALIKE_FOR_EACH_OTHER_UNUSUAL,
        2 => ALIKE_FOR_EACH_OTHER_TWO,
        _ => ALIKE_FOR_EACH_OTHER,
    };
    // Names that are as many tell a table of dirty rows, unless most of them are.
    let is_named = is_usual && header.first().is_some_and(|names| names.len() == columns);
    if refused * alike_for_each <= rows.len() || is_named && refused * 2 <= rows.len() {
        return None;
    }
    let absent = DELIMITERS
        .into_iter()
        .chain(ABSENT)
        .find(|delimiter| memchr::memchr(*delimiter, text).is_none())?;
    Some(GivenDialect {
        delimiter: Some(vec![absent]),
        quote: Some(None),
        skip: Some(0),
        header: Some(Header::Absent),
        comment: Some(None),
        ..given.clone()
    })
}
