//! Tables whose names are underlined, as SQL*Plus, sqlcmd and db2 print them: the dashes tell where the columns stand.
//!
//! ```text
//!   SQL> select * from t;
//!
//!      ID NAME       PAID_ON
//!   ----- ---------- ---------
//!       1 Ann Lee    18-SEP-21
//!
//!   1 row selected.
//! ```
//!
//! It is text of fixed widths below the line of dashes, if all rows keep to it; else it is what other forms make of it.

use std::borrow::Cow;

use coload_ddl::Schema;
use coload_types::Result;

use super::exported::leaves_all_open;
use super::{Sniffed, lines_stand, sniff_utf8};
use crate::dialect::{GivenDialect, Header};
use crate::fixed::FixedWidths;
use crate::header::{check_header_order, unique_texts};
use crate::sample::{Field, SampleEnd};

/// Lines before the rows that are looked at.
const LINES_BEFORE_MAX: usize = 40;
/// Fewest dashes under a name that stands alone.
const DASHES_MIN: usize = 3;
/// Most lines after the table.
const FOOTER_MAX: usize = 8;

/// Dialect and columns of a text whose names are underlined; `None` of any other.
///
/// # Errors
/// Those of [`sniff_utf8`].
pub(super) fn sniff_underlined(
    name: &str,
    text: &[u8],
    end: SampleEnd,
    given: &GivenDialect,
    schema: Option<&Schema>,
) -> Result<Option<Sniffed>> {
    let given_else = given.types.is_some() || given.all_text || !given.columns.is_empty();
    let Some(found) = std::str::from_utf8(text).ok().and_then(|text| find(text, end)) else {
        return Ok(None);
    };
    if !leaves_all_open(given) && !given_else {
        return Ok(None);
    }
    if schema.is_some_and(|schema| schema.len() != found.names.len()) {
        return Ok(None);
    }
    let widths = FixedWidths::parse(&found.widths)?;
    let told = GivenDialect {
        fixed: Some(widths),
        skip: Some(found.before),
        footer: Some(found.footer),
        header: Some(Header::Absent),
        columns: Vec::new(),
        ..given.clone()
    };
    let mut sniffed = sniff_utf8(name, text, end, &told, schema)?;
    match schema {
        Some(schema) => check_header_order(name, &fields_of(&found.names), schema)?,
        None => {
            let names = unique_texts(found.names.into_iter());
            let typed = super::given_types(&names, &given.columns)?;
            let columns = sniffed.schema.columns().iter().zip(names).zip(typed);
            let columns = columns.map(|((column, name), typed)| {
                let mut column = typed.unwrap_or_else(|| column.clone());
                column.name = name;
                column
            });
            sniffed.schema = Schema::new(columns.collect())?;
        }
    }
    let lines = lines_stand("first", found.before);
    sniffed.evidence.insert(
        0,
        format!(
            "columns of fixed widths {} under their names, as the dashes tell (--delimiter or --fixed-width say \
             otherwise): {lines} before the rows, and {} after them",
            found.widths, found.footer
        ),
    );
    Ok(Some(sniffed))
}

fn fields_of(names: &[String]) -> Vec<Field<'_>> {
    names.iter().map(|name| Field { text: Cow::Borrowed(name.as_bytes()), quoted: false }).collect()
}

/// A table whose names are underlined.
struct Underlined {
    /// Widths of the columns, each with the blank before it, as the flag has them.
    widths: String,
    names: Vec<String>,
    /// Lines before the rows.
    before: u64,
    /// Lines after the rows.
    footer: u64,
}

fn find(text: &str, end: SampleEnd) -> Option<Underlined> {
    let lines: Vec<&str> = text.lines().collect();
    let at = (1..lines.len().min(LINES_BEFORE_MAX))
        .find(|at| is_rule(lines[*at]) && is_of_names(lines[at - 1]))?;
    let ends = ends_of_runs(lines[at]);
    let cuts: Vec<(usize, usize)> =
        std::iter::once(0).chain(ends.iter().copied()).zip(ends.iter().copied()).collect();
    // A longer first name may stand over fewer dashes in other forms.
    let names: Vec<char> = lines[at - 1].trim_end().chars().collect();
    let gaps = &ends[..ends.len() - 1];
    let keeps = |line: &[char]| {
        gaps.iter().all(|gap| line.get(*gap).is_none_or(|c| *c == ' '))
            && line.len() <= ends.last().copied().unwrap_or(0)
    };
    if !keeps(&names) {
        return None;
    }
    let rows = &lines[at + 1..];
    let blank = rows.iter().position(|line| line.trim().is_empty()).unwrap_or(rows.len());
    let footer = rows.len() - blank;
    // Behind rows that go on after a blank line is another table.
    if blank == 0 || footer > FOOTER_MAX || footer > 0 && end == SampleEnd::Cut {
        return None;
    }
    let (last, whole) = rows[..blank].split_last()?;
    let kept = |line: &&str| keeps(&line.trim_end().chars().collect::<Vec<_>>());
    // The sample may end within a line.
    let all = whole.iter().all(kept) && (end == SampleEnd::Cut || kept(last));
    let name = |(from, to): &(usize, usize)| -> String {
        let cut = names.get(*from..names.len().min(*to)).unwrap_or_default();
        cut.iter().collect::<String>().trim().to_owned()
    };
    all.then(|| Underlined {
        widths: cuts.iter().map(|(from, to)| (to - from).to_string()).collect::<Vec<_>>().join(","),
        names: cuts.iter().map(name).collect(),
        before: at as u64 + 1,
        footer: footer as u64,
    })
}

/// Whether a line may be names: those between bars have another form.
fn is_of_names(line: &str) -> bool {
    line.contains(char::is_alphanumeric) && !line.contains('|')
}

/// Whether a line has nothing but runs of dashes, one blank between two.
fn is_rule(line: &str) -> bool {
    let line = line.trim_end();
    let inner = line.trim_start();
    let runs: Vec<&str> = inner.split(' ').collect();
    let dashes = |run: &&str| !run.is_empty() && run.bytes().all(|byte| byte == b'-');
    runs.iter().all(dashes) && runs.iter().any(|run| run.len() >= DASHES_MIN)
}

/// Where each run of dashes ends, in characters.
fn ends_of_runs(rule: &str) -> Vec<usize> {
    let rule: Vec<char> = rule.trim_end().chars().collect();
    let is_end = |at: &usize| rule[at - 1] == '-' && rule.get(*at).is_none_or(|c| *c == ' ');
    (1..=rule.len()).filter(is_end).collect()
}
