//! Where the table starts in a text, and which of its records name its columns.

use std::borrow::Cow;

use coload_format::Schema;

use crate::dialect::{Dialect, GivenDialect, Header};
use crate::field::FieldRules;
use crate::header::{counts_years, detect_header, misfits_all, recurs};
use crate::rules::Trailing;
use crate::sample::{Field, SampleEnd};

/// Records before the table that are looked for.
const PREAMBLE_MAX: usize = 32;
/// Records that may name the columns together.
const HEADER_ROWS_MAX: usize = 4;

/// The parts of a text.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Shape {
    /// The first record of the table, a header or a row.
    pub first: usize,
    /// Records that name the columns.
    pub header_rows: usize,
    /// Whether a delimiter ends each record.
    pub trailing: Trailing,
    /// Columns.
    pub columns: usize,
}

/// Finds the parts of a text whose records usually have `fields` fields.
#[allow(clippy::too_many_arguments)]
pub(super) fn find_shape(
    records: &[Vec<Field<'_>>],
    lines: &[u64],
    fields: usize,
    dialect: &Dialect,
    given: &GivenDialect,
    end: SampleEnd,
    schema: Option<&Schema>,
    evidence: &mut Vec<String>,
) -> Shape {
    let mut found = Vec::new();
    let first = match given.skip {
        Some(_) => 0,
        None => preamble(records, fields),
    };
    let table = |first: usize, evidence: &mut Vec<String>| {
        let records = &records[first..];
        let delimiter = match dialect.long_delimiter {
            Some(_) => b',',
            None => dialect.delimiter,
        };
        let trailing =
            given.trailing.unwrap_or_else(|| detect_trailing(records, fields, delimiter, schema));
        let columns = match trailing {
            Trailing::Delimiter if fields > 1 => fields - 1,
            _ => fields,
        };
        if trailing == Trailing::Delimiter {
            evidence.push("a delimiter ends each record".to_owned());
        }
        let header_rows = header_rows(records, columns, dialect, given, end, schema, evidence);
        Shape { first, header_rows, trailing, columns }
    };
    let mut shape = table(first, &mut found);
    // Mostly empty rows are rows, unless names follow them. Lines of another shape are none.
    let other_shape = records[..first].iter().all(|record| record.len() != fields);
    if first > 0 && shape.header_rows == 0 && !other_shape {
        found.clear();
        shape = table(0, &mut found);
    }
    debug_assert_eq!(records.len(), lines.len());
    evidence.append(&mut found);
    shape
}

/// Records before the table: titles, which have one field that says anything; and above names, records of another
/// width that fill half of the columns at most.
pub(super) fn preamble(records: &[Vec<Field<'_>>], fields: usize) -> usize {
    if fields < 3 {
        return 0;
    }
    let filled = |record: &Vec<Field<'_>>| record.iter().filter(|f| !f.text.is_empty()).count();
    let is_title = |record: &Vec<Field<'_>>| filled(record) <= 1;
    let first_but = |is_before: &dyn Fn(&Vec<Field<'_>>) -> bool| {
        let first = records.iter().take(PREAMBLE_MAX + 1).position(|record| !is_before(record))?;
        (first <= PREAMBLE_MAX && filled(&records[first]) * 2 > fields).then_some(first)
    };
    let is_other = |record: &Vec<Field<'_>>| {
        is_title(record) || record.len() != fields && filled(record) * 2 <= fields
    };
    match first_but(&is_other) {
        Some(first) if names_follow(&records[first..], fields) => first,
        _ => first_but(&is_title).unwrap_or(0),
    }
}

/// Whether the first record names the columns of all others: nothing in it is a number, and some column has numbers
/// below it; or it counts years.
fn names_follow(records: &[Vec<Field<'_>>], fields: usize) -> bool {
    let Some((names, rows)) = records.split_first() else { return false };
    let usual = |record: &&Vec<Field<'_>>| record.len() == fields;
    if names.len() != fields || rows.iter().filter(usual).count() * 10 < rows.len() * 9 {
        return false;
    }
    if counts_years(names, rows) {
        return true;
    }
    let is_number = |field: &Field<'_>| {
        let text = field.text.trim_ascii();
        text.strip_prefix(b"-").unwrap_or(text).first().is_some_and(u8::is_ascii_digit)
    };
    let has_numbers = |column: usize| {
        let fields =
            || rows.iter().filter_map(|row| row.get(column)).filter(|f| !f.text.is_empty());
        fields().count() > 0 && fields().all(is_number)
    };
    let written: Vec<_> = names.iter().filter(|name| !name.text.is_empty()).collect();
    let recurs = rows.iter().flatten().any(|field| written.iter().any(|n| n.text == field.text));
    !names.iter().any(is_number) && !recurs && (0..fields).any(has_numbers)
}

/// How many records name the columns.
fn header_rows(
    records: &[Vec<Field<'_>>],
    columns: usize,
    dialect: &Dialect,
    given: &GivenDialect,
    end: SampleEnd,
    schema: Option<&Schema>,
    evidence: &mut Vec<String>,
) -> usize {
    if let Some(header) = given.header {
        return if header == Header::Present { given.header_rows.unwrap_or(1) as usize } else { 0 };
    }
    if schema.is_none() {
        let several =
            (2..=HEADER_ROWS_MAX.min(records.len().saturating_sub(1))).rev().find(|rows| {
                names_together(
                    &records[..*rows],
                    &records[*rows..],
                    columns,
                    &dialect.field_rules(),
                    end,
                )
            });
        if let Some(rows) = several {
            evidence.push(format!(
                "header: the first {rows} records do not fit the types of the others (--header-rows N \
                 says otherwise)"
            ));
            return rows;
        }
    }
    let Some((names, rows)) = records.split_first() else { return 0 };
    let fitted = without_empty_surplus(names, columns);
    let mut all = vec![fitted];
    all.extend(rows.iter().map(|row| row.to_vec()));
    match detect_header(&all, columns, &dialect.field_rules(), end, schema, evidence) {
        Header::Present => 1,
        Header::Absent => 0,
    }
}

/// Whether several records are names: none fits the types of the rows, and each repeats the first or
/// there are two types to tell by.
fn names_together(
    names: &[Vec<Field<'_>>],
    rows: &[Vec<Field<'_>>],
    columns: usize,
    rules: &FieldRules,
    end: SampleEnd,
) -> bool {
    let Some((first, others)) = names.split_first() else { return false };
    let Some(types) = misfits_all(names, rows, columns, rules, end) else { return false };
    let same = |a: &[Field<'_>], b: &[Field<'_>]| {
        a.len() == b.len() && a.iter().zip(b).all(|(a, b)| a.text == b.text)
    };
    others.iter().all(|other| types > 1 || same(first, other))
}

/// The names of the header, a field for each column as far as there are: of several records joined
/// by a space.
pub(super) fn fit_header<'a>(
    header: &[Vec<Field<'a>>],
    columns: usize,
    evidence: &mut Vec<String>,
) -> Option<Vec<Field<'a>>> {
    let (first, others) = header.split_first()?;
    let mut names = without_empty_surplus(first, columns);
    for other in others {
        for (name, more) in names.iter_mut().zip(without_empty_surplus(other, columns)) {
            let joined = [name.text.as_ref(), more.text.as_ref()].join(&b' ');
            name.text = Cow::Owned(joined.trim_ascii().to_vec());
        }
    }
    if first.len() != columns && first.len() != columns + 1 {
        evidence
            .push(format!("the header has {} fields, and the records have {columns}", first.len()));
    }
    Some(names)
}

/// The names without as many empty ones as there are too many: an empty name names nothing.
fn without_empty_surplus<'a>(names: &[Field<'a>], columns: usize) -> Vec<Field<'a>> {
    let empty = names.iter().filter(|name| name.text.is_empty()).count();
    let surplus = names.len().saturating_sub(columns);
    if surplus == 0 || empty != surplus {
        return names.to_vec();
    }
    names.iter().filter(|name| !name.text.is_empty()).cloned().collect()
}

/// Whether the last field of all records is there only because a delimiter ends them. Without a
/// header that says so too it may as well be an empty column, which is kept, but for the `|` that
/// ends the records of database dumps.
pub(super) fn detect_trailing(
    records: &[Vec<Field<'_>>],
    fields: usize,
    delimiter: u8,
    schema: Option<&Schema>,
) -> Trailing {
    let expected = schema.is_none_or(|schema| fields == schema.len() + 1);
    let usual = |record: &&Vec<Field<'_>>| record.len() == fields;
    let all_empty = records
        .iter()
        .filter(usual)
        .all(|record| record.last().is_some_and(|last| last.text.is_empty() && !last.quoted));
    let named = records
        .first()
        .is_some_and(|names| names.len() == fields && looks_like_header(names, &records[1..]));
    let sure = schema.is_some() || delimiter == b'|' || named;
    if fields > 1 && expected && all_empty && sure {
        Trailing::Delimiter
    } else {
        Trailing::Newline
    }
}

/// Whether a record has no field that comes again below it, and nothing but names before its end.
fn looks_like_header(names: &[Field<'_>], rows: &[Vec<Field<'_>>]) -> bool {
    let Some((_, names)) = names.split_last() else { return false };
    !rows.is_empty() && crate::header::looks_like_names(names) && !recurs(names, rows)
}
