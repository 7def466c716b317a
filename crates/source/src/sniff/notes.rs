//! Lines that are no records: comments, drawn lines, notes after the table.

use super::SPLIT_SAMPLE_BYTES;
use super::delimiter::usual_field_count;
use crate::dialect::{GivenDialect, LineEnd, describe_byte};
use crate::sample::{Field, line_len};

/// What begins a comment.
pub(super) const COMMENT: u8 = b'#';
/// Fewest bytes of a line that is drawn.
const RULE_BYTES_MIN: usize = 5;
/// Records after a table that are looked for.
const FOOTER_MAX: usize = 8;

/// Takes the lines that clients of databases draw below the names, and around the table, for comments: all rows begin with
/// a space or a bar then, so that none is taken for one.
pub(super) fn with_rules_as_comments(
    body: &[u8],
    given: &GivenDialect,
    evidence: &mut Vec<String>,
) -> GivenDialect {
    let mut given = given.clone();
    if given.comment.is_some() || given.fixed.is_some() {
        return given;
    }
    let head = &body[..body.len().min(SPLIT_SAMPLE_BYTES)];
    let lines = head.split(|byte| *byte == b'\n').filter(|line| !line.trim_ascii().is_empty());
    let is_rule = |line: &[u8]| {
        let drawn = line.trim_ascii_end();
        drawn.len() >= RULE_BYTES_MIN
            && matches!(drawn[0], b'+' | b'-')
            && drawn.iter().all(|byte| matches!(byte, b'-' | b'+' | b'|'))
            && drawn.contains(&b'+')
    };
    let (rules, others): (Vec<&[u8]>, Vec<&[u8]>) = lines.partition(|line| is_rule(line));
    let Some(first) = rules.first().map(|rule| rule[0]) else { return given };
    let rows = others.iter().filter(|line| matches!(line[0], b' ' | b'|')).count();
    let same = rules.iter().all(|rule| rule[0] == first);
    if !same || others.iter().any(|line| line[0] == first) || rows + FOOTER_MAX < others.len() {
        return given;
    }
    evidence.push(format!(
        "lines of {} are drawn: comments (--comment none says otherwise)",
        describe_byte(first)
    ));
    given.comment = Some(Some(first));
    given
}

/// Whether lines among the rows begin with `#`, and none of them is like a row. Those before the table are read over anyway.
pub(super) fn has_comments(records: &[Vec<Field<'_>>], given: &GivenDialect) -> bool {
    let Some(fields) = usual_field_count(records).filter(|fields| *fields > 1) else {
        return false;
    };
    let is_comment = |record: &Vec<Field<'_>>| {
        record.first().is_some_and(|field| !field.quoted && field.text.first() == Some(&COMMENT))
    };
    let comments = || records.iter().filter(|record| is_comment(record));
    let first = records.iter().position(|record| record.len() == fields);
    let last = records.iter().rposition(is_comment);
    given.comment.is_none()
        && last > first
        && comments().all(|record| record.len() != fields)
        && comments().count() * 2 < records.len()
}

/// Lines after the table: the last records, if they are one field each and stand after a blank line, or count rows.
pub(super) fn find_footer(
    body: &[u8],
    line_end: LineEnd,
    records: &[Vec<Field<'_>>],
    lines: &[u64],
    fields: usize,
) -> Option<(usize, u64)> {
    let is_note = |record: &Vec<Field<'_>>| {
        let written = record.iter().filter(|field| !field.text.is_empty());
        record.len() != fields && written.count() == 1
    };
    let table = records.iter().rposition(|record| !is_note(record))? + 1;
    let first = records.get(table)?;
    let before = &records[table - 1];
    let one_line = before.iter().all(|f| memchr::memchr2(b'\n', b'\r', &f.text).is_none());
    let after_blank = one_line && lines[table] > lines[table - 1] + 1;
    let text = first[0].text.trim_ascii();
    let counts = text.starts_with(b"(") && (text.ends_with(b" rows)") || text.ends_with(b" row)"))
        || memchr::memmem::find(text, b" rows in set").is_some();
    let few = records.len() - table <= FOOTER_MAX && table > 1;
    if fields < 3 || !few || !(after_blank || counts) {
        return None;
    }
    Some((table, count_lines(body, line_end) - lines[table]))
}

/// Lines, the last of which need no end.
fn count_lines(mut text: &[u8], line_end: LineEnd) -> u64 {
    let mut lines = 0;
    while !text.is_empty() {
        text = &text[line_len(text, line_end)..];
        lines += 1;
    }
    lines
}
