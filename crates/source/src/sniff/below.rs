//! A table below lines of another form that are as many as its rows, or nearly: what a bank or an instrument says of an export stands above
//! a few rows of it, in pairs of a name and a value that the same delimiter sets apart.
//!
//! Most records then tell the lines above, and not the table. Here the table is what all records from some line on are, if that line names
//! its columns and no line above it is half as full.

use super::attempt::{SURE_SHARE, share_of_usual, usual_field_count};
use super::delimiter::DELIMITERS;
use super::notes::count_lines;
use crate::dialect::{GivenDialect, LineEnd};
use crate::infer::has_form;
use crate::sample::{Field, Records, SampleEnd, Split, split_records};

/// Bytes in which such a table begins: one with more rows tells itself.
const LOOKED_AT_BYTES: usize = 64 << 10;
/// Records above a table, at most.
const ABOVE_MAX: usize = 48;
/// Columns, at least: two are a name and a value.
const COLUMNS_MIN: usize = 3;
/// Records behind the table that lack most fields, at most: totals and notes.
const BEHIND_MAX: usize = 4;
/// Records alike above the names, from which they are a table of their own.
const ALIKE_MAX: usize = 2;
/// Longer texts are no names.
const NAME_BYTES_MAX: usize = 80;

/// Where such a table begins and ends.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Below {
    /// What sets its fields apart.
    pub delimiter: u8,
    /// Lines above its names.
    pub skip: u64,
    /// Lines behind its rows: totals and notes.
    pub footer: u64,
}

/// Whether the first line has so many fields, by one of the usual delimiters, which may end the line, too.
pub(super) fn begins_with_fields(text: &[u8], fields: usize) -> bool {
    let line = text.split(|byte| *byte == b'\n').next().unwrap_or_default();
    let delimiters = |delimiter: u8| memchr::memchr_iter(delimiter, line).count();
    fields == 1 || DELIMITERS.iter().any(|one| [fields - 1, fields].contains(&delimiters(*one)))
}

/// Finds a table below lines of another form, unless something is said of where it begins.
pub(super) fn table_below(
    text: &[u8],
    end: SampleEnd,
    given: &GivenDialect,
    line_end: LineEnd,
) -> Option<Below> {
    let is_told = given.skip.is_some()
        || given.header.is_some()
        || given.fixed.is_some()
        || given.aligned.is_some()
        || given.comment.is_some()
        || given.own_escape().is_some();
    if is_told {
        return None;
    }
    let (head, end) = match text.get(..LOOKED_AT_BYTES) {
        Some(head) => (head, SampleEnd::Cut),
        None => (text, end),
    };
    let delimiters = DELIMITERS.into_iter().filter(|delimiter| match &given.delimiter {
        Some(said) => said[..] == [*delimiter],
        None => true,
    });
    let readings: Vec<(u8, Records<'_>)> = delimiters
        .map(|delimiter| {
            let quote = given.quote.unwrap_or(Some(b'"'));
            let split = Split { delimiter, quote, line_end, ..Split::CSV };
            (delimiter, split_records(head, end, split, usize::MAX))
        })
        .collect();
    let tells_itself = |delimiter: u8| {
        readings.iter().any(|(other, reading)| *other != delimiter && is_a_table(&reading.records))
    };
    let found = readings.iter().filter_map(|(delimiter, reading)| {
        let names = find_names(reading, end).filter(|_| !tells_itself(*delimiter))?;
        let table = &reading.records[names..];
        let behind = names + 1 + rows_of(table, end)?.len();
        let footer = match reading.lines.get(behind) {
            Some(line) if has_totals(&table[..behind - names], &reading.records[behind..]) => {
                count_lines(head, line_end).saturating_sub(*line)
            }
            _ => 0,
        };
        Some((table[0].len(), Below { delimiter: *delimiter, skip: reading.lines[names], footer }))
    });
    found.max_by_key(|(columns, _)| *columns).map(|(_, below)| below)
}

/// Whether nearly all records have as many fields, the first among them.
fn is_a_table(records: &[Vec<Field<'_>>]) -> bool {
    share_of_usual(records, 2) >= SURE_SHARE
        && records.first().map(Vec::len) == usual_field_count(records)
}

/// The record that names the columns of all that follow, below others that are none of the table.
fn find_names(reading: &Records<'_>, end: SampleEnd) -> Option<usize> {
    let Records { records, lines, .. } = reading;
    if reading.faults > 0 {
        return None;
    }
    let one_line = |record: &[Field<'_>]| record.iter().all(|field| !field.text.contains(&b'\n'));
    let is_apart = |at: usize| {
        written(&records[at - 1]) == 0
            || is_section(&records[at - 1])
            || one_line(&records[at - 1]) && lines[at] > lines[at - 1] + 1
    };
    (1..records.len().min(ABOVE_MAX + 1)).find(|at| {
        let (above, table) = records.split_at(*at);
        let columns = table[0].len();
        let named = written(&table[0]);
        // A first line that is sparse may be names above names; behind a blank line it is not.
        let is_padded = above.iter().any(|record| record.len() == columns);
        columns >= COLUMNS_MIN
            && are_names(&table[0])
            && above.iter().all(|record| is_sparse(record, named))
            && !has_table(above)
            && (is_apart(*at) || !is_padded)
            && rows_of(table, end).is_some_and(|rows| {
                // A long table tells itself, unless the lines above it have its width.
                let is_few = (rows.len() + 1) * 10 < records.len() * 9;
                (is_few || is_padded) && are_named(&table[0], rows, is_apart(*at))
            })
    })
}

/// Whether a record names what follows it, as sheets of instruments do: `[Data],,`.
fn is_section(record: &[Field<'_>]) -> bool {
    let enclosed = |field: &Field<'_>| field.text.starts_with(b"[") && field.text.ends_with(b"]");
    written(record) == 1 && record.first().is_some_and(enclosed)
}

/// How many fields of a record are more than blanks.
fn written(record: &[Field<'_>]) -> usize {
    record.iter().filter(|field| !field.text.trim_ascii().is_empty()).count()
}

/// Whether a record has two thirds of the named fields at most.
fn is_sparse(record: &[Field<'_>], named: usize) -> bool {
    written(record) * 3 <= named * 2
}

/// Whether all fields but the last are texts that may be names.
fn are_names(record: &[Field<'_>]) -> bool {
    let Some((last, names)) = record.split_last() else { return false };
    let is_name = |field: &Field<'_>| {
        let text = field.text.trim_ascii();
        let has_letter = text.iter().any(|byte| byte.is_ascii_alphabetic() || !byte.is_ascii());
        has_letter && text.len() <= NAME_BYTES_MAX && !has_form(text)
    };
    names.iter().all(is_name) && (last.text.trim_ascii().is_empty() || is_name(last))
}

/// Whether some of the records above are a table of their own: several in a row of three fields or more, as many in each, with none empty
/// between them.
fn has_table(above: &[Vec<Field<'_>>]) -> bool {
    let is_row = |record: &Vec<Field<'_>>| {
        let fields = written(record);
        fields >= COLUMNS_MIN && written(&record[..fields]) == fields
    };
    above.windows(ALIKE_MAX + 1).any(|records| {
        records.iter().all(|record| is_row(record) && written(record) == written(&records[0]))
    })
}

/// The rows below the names, if all have as many fields but a few at the end that lack most. A delimiter more may end each of them.
fn rows_of<'r, 'a>(table: &'r [Vec<Field<'a>>], end: SampleEnd) -> Option<&'r [Vec<Field<'a>>]> {
    let (names, rows) = table.split_first()?;
    let columns = names.len();
    let width = rows.first()?.len();
    let is_row = |row: &&Vec<Field<'_>>| row.len() == width && written(&row[columns..]) == 0;
    if width < columns || width > columns + 1 {
        return None;
    }
    let (rows, behind) = rows.split_at(rows.iter().take_while(is_row).count());
    let is_short = |record: &Vec<Field<'_>>| record.len() < columns && is_sparse(record, columns);
    let is_end = behind.is_empty()
        || end == SampleEnd::Whole && behind.len() <= BEHIND_MAX && behind.iter().all(is_short);
    (!rows.is_empty() && is_end).then_some(rows)
}

/// Whether what stands behind the rows is none: each begins with a text, and they with a value.
fn has_totals(table: &[Vec<Field<'_>>], behind: &[Vec<Field<'_>>]) -> bool {
    let begins_with_value = |record: &Vec<Field<'_>>| {
        record.first().is_some_and(|field| is_value(field.text.trim_ascii()))
    };
    table[1..].iter().all(begins_with_value) && !behind.iter().any(begins_with_value)
}

/// Whether a record names the columns of rows: no name stands below it, and some column has values, or a blank line sets it apart.
fn are_named(names: &[Field<'_>], rows: &[Vec<Field<'_>>], is_apart: bool) -> bool {
    let recurs = |column: usize| rows.iter().any(|row| row[column].text == names[column].text);
    let has_values = |column: usize| {
        let fields = rows.iter().map(|row| row[column].text.trim_ascii());
        let mut filled = fields.filter(|text| !text.is_empty()).peekable();
        filled.peek().is_some() && filled.all(is_value)
    };
    let named = |column: &usize| !names[*column].text.trim_ascii().is_empty();
    !(0..names.len()).filter(named).any(recurs) && (is_apart || (0..names.len()).any(has_values))
}

/// Whether a text is a number or a date, however written: it has digits and no letters.
fn is_value(text: &[u8]) -> bool {
    let has_digit = text.iter().any(u8::is_ascii_digit);
    has_form(text) || has_digit && !text.iter().any(u8::is_ascii_alphabetic)
}
