//! Where the table starts in a text, and which of its records name its columns.

use std::borrow::Cow;

use coload_ddl::Schema;

use crate::dialect::{Dialect, GivenDialect, Header};
use crate::field::FieldRules;
use crate::header::{counts_years, detect_header, misfits_all, recurs};
use crate::infer::has_form;
use crate::names::score_names;
use crate::rules::Trailing;
use crate::sample::{Field, SampleEnd};

/// Records before the table that are looked for.
const PREAMBLE_MAX: usize = 32;
/// Rows alike, at least, below lines that are none of the table and above no names.
const ROWS_BELOW_MIN: usize = 4;
/// Full records of the width of the table above its names, at most: more are a table too, of which nothing may be lost.
const ROWS_ABOVE_MAX: usize = 1;
/// Odds for names, as a logarithm, from which they are sure: 50 to 1.
const SURE: f64 = 4.0;
/// Names of a column that counts the rows.
const NAMES_OF_COUNTS: [&str; 10] =
    ["id", "nr", "nr.", "no", "no.", "num", "row", "index", "#", "number"];
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
    /// Columns of the table, and fields of a record.
    pub columns: usize,
    /// Whether the names lack that of a first column, which names the rows.
    pub row_names: RowNames,
}

/// Whether a column that names the rows has a name itself.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum RowNames {
    /// There is none, or it has.
    Named,
    /// It has not, as R writes it.
    Unnamed,
}

/// Finds the parts of a text whose records usually have `fields` fields.
#[allow(clippy::too_many_arguments)]
pub(super) fn find_shape(
    records: &[Vec<Field<'_>>],
    lines: &[u64],
    fields: usize,
    leading: usize,
    dialect: &Dialect,
    given: &GivenDialect,
    end: SampleEnd,
    schema: Option<&Schema>,
    evidence: &mut Vec<String>,
) -> Shape {
    let mut found = Vec::new();
    // Lines that are drawn, and comments, leave gaps too.
    let set_apart_by_blanks = dialect.aligned.is_none() && dialect.comment.is_none();
    let first = match given.skip {
        Some(_) => 0,
        None => preamble(records, fields)
            .max(above_names(
                records,
                if set_apart_by_blanks { lines } else { &[] },
                fields,
                &dialect.field_rules(),
                end,
            ))
            .max(leading),
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
        let row_names = match given.header.is_none() && schema.is_none() {
            true => find_row_names(records, columns, &dialect.field_rules(), end),
            false => RowNames::Named,
        };
        let header_rows = match row_names {
            RowNames::Unnamed => {
                evidence.push("header: the first record does not fit the types of the others (--no-header says otherwise)".to_owned());
                1
            }
            RowNames::Named => header_rows(records, columns, dialect, given, end, schema, evidence),
        };
        let named = records.first().filter(|_| header_rows == 1 && schema.is_none());
        let columns = named.map_or(columns, |names| columns_named(names, columns));
        Shape { first, header_rows, trailing, columns, row_names }
    };
    let mut shape = table(first, &mut found);
    // Mostly empty rows are rows, unless names follow them. Lines of another shape are none.
    // A blank line may be written with its delimiters.
    let is_blank = |record: &Vec<Field<'_>>| record.iter().all(|field| field.text.is_empty());
    let other_shape = first == leading
        || records[..first].iter().all(|record| record.len() != fields)
        || records[..first].last().is_some_and(is_blank);
    // Who says that there is no header says that it begins with a row: one of NULL.
    let is_row = |record: &Vec<Field<'_>>| is_blank(record) && record.len() == fields;
    let are_rows = given.header == Some(Header::Absent)
        && first > leading
        && fields > 1
        && records[..first].iter().all(is_row);
    if are_rows || first > 0 && shape.header_rows == 0 && !other_shape {
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
        is_title(record)
            || record.len() != fields && filled(record) * 2 <= fields
            || is_short(record, fields)
    };
    match first_but(&is_other) {
        Some(first) if names_follow(&records[first..], fields) => first,
        Some(first) if only_rows_follow(records, first, fields) => first,
        _ => match first_but(&|record| is_other(record) || is_long(record, fields)) {
            Some(first) if only_values_follow(records, first, fields) => first,
            _ => first_but(&is_title).unwrap_or(0),
        },
    }
}

/// Whether a record has more fields than the table, and is no names: it has a number or a date.
fn is_long(record: &[Field<'_>], fields: usize) -> bool {
    record.len() > fields && record.iter().any(|field| has_form(field.text.trim_ascii()))
}

/// Whether all records from `first` on have as many fields, half of their columns values alone, and none before it is names.
fn only_values_follow(records: &[Vec<Field<'_>>], first: usize, fields: usize) -> bool {
    let (before, rows) = records.split_at(first);
    let has_values = |column: &usize| {
        let texts = rows.iter().filter_map(|row| row.get(*column)).map(|f| f.text.trim_ascii());
        let mut filled = texts.filter(|text| !text.is_empty()).peekable();
        filled.peek().is_some() && filled.all(has_form)
    };
    rows.len() >= ROWS_BELOW_MIN
        && rows.iter().all(|record| record.len() == fields)
        && before.iter().all(|record| is_short(record, fields) || is_long(record, fields))
        && (0..fields).filter(has_values).count() * 2 >= fields
}

/// Whether all records from `first` on have as many fields, and none before it is names.
fn only_rows_follow(records: &[Vec<Field<'_>>], first: usize, fields: usize) -> bool {
    let (before, rows) = records.split_at(first);
    rows.len() >= ROWS_BELOW_MIN
        && rows.len() > before.len()
        && rows.iter().all(|record| record.len() == fields)
        && before.iter().all(|record| is_short(record, fields))
}

/// Whether a record lacks fields, and is no names: it has half of the fields at most, or a number or a date.
fn is_short(record: &[Field<'_>], fields: usize) -> bool {
    let has_value = || record.iter().any(|field| has_form(field.text.trim_ascii()));
    record.len() * 2 <= fields || record.len() < fields && has_value()
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

/// Whether the first of some records names the columns of the others.
pub(super) fn names_the_columns(records: &[Vec<Field<'_>>], fields: usize) -> bool {
    let Some((first, rows)) = records.split_first() else { return false };
    let score =
        score_names(first, rows, fields, &Dialect::default().field_rules(), SampleEnd::Whole);
    score.total > SURE && score.misfits >= score.fits
}

/// Records above names that are sure to be names: those of another width before the first of the usual one.
fn above_names(
    records: &[Vec<Field<'_>>],
    lines: &[u64],
    fields: usize,
    rules: &FieldRules,
    end: SampleEnd,
) -> usize {
    let usual = |record: &Vec<Field<'_>>| record.len() == fields;
    if let Some(first) = after_blank(records, lines, fields, rules, end) {
        return first;
    }
    // What a blank line sets apart is no part of the table if none of it has its width.
    if !lines.is_empty() {
        let apart = last_blank(records, lines, fields);
        if apart > 0 && !records[..apart].iter().any(usual) && records[apart..].iter().all(usual) {
            return apart;
        }
    }
    let Some(first) = records.iter().take(PREAMBLE_MAX + 1).position(usual) else { return 0 };
    let rows = &records[first..];
    let alike = rows.iter().filter(|record| usual(record)).count();
    if first == 0 || fields < 2 || rows.len() < 3 || alike * 10 < rows.len() * 9 {
        return 0;
    }
    let score = score_names(&rows[0], &rows[1..], fields, rules, end);
    // Names that are more or fewer than the fields stand right above rows.
    let above = score_names(&records[first - 1], rows, fields, rules, end);
    let better = above.misfits < score.misfits || above.misfits == 0 && score.total > above.total;
    if score.fits == 0 && score.total > SURE && better { first } else { 0 }
}

/// The first record behind a blank line that is sure to name the columns of all that follow.
fn after_blank(
    records: &[Vec<Field<'_>>],
    lines: &[u64],
    fields: usize,
    rules: &FieldRules,
    end: SampleEnd,
) -> Option<usize> {
    let one_line = |record: &[Field<'_>]| record.iter().all(|field| !field.text.contains(&b'\n'));
    // Rows above are a table, and no lines of another form.
    let is_row = |record: &&Vec<Field<'_>>| {
        record.len() == fields && record.iter().all(|field| !field.text.is_empty())
    };
    let is_names = |at: &usize| {
        if records[..*at].iter().filter(is_row).count() > ROWS_ABOVE_MAX {
            return false;
        }
        let rows = &records[*at..];
        let alike = rows.iter().filter(|record| record.len() == fields).count();
        let score = || score_names(&rows[0], &rows[1..], fields, rules, end);
        lines[*at] > lines[at - 1] + 1
            && one_line(&records[at - 1])
            && rows[0].len() == fields
            && rows.len() > 1
            && alike * 10 >= rows.len() * 9
            && Some(score()).is_some_and(|score| score.total > SURE && score.fits == 0)
    };
    (1..lines.len().min(PREAMBLE_MAX + 1)).filter(|_| fields > 1).find(is_names)
}

/// The first record behind the last blank line near the start, if nearly all from there on have as many fields: lines before it may be of
/// another form.
pub(super) fn last_blank(records: &[Vec<Field<'_>>], lines: &[u64], fields: usize) -> usize {
    let one_line = |record: &[Field<'_>]| record.iter().all(|field| !field.text.contains(&b'\n'));
    let starts = |at: &usize| {
        let rows = &records[*at..];
        let alike = rows.iter().filter(|record| record.len() == fields).count();
        lines[*at] > lines[at - 1] + 1
            && one_line(&records[at - 1])
            && rows.len() > 2
            && alike * 10 >= rows.len() * 9
    };
    (1..records.len().min(PREAMBLE_MAX + 1)).rev().find(starts).unwrap_or(0)
}

/// Columns, as many as there are names, if those are more than the fields and none is empty: the records lack the last.
fn columns_named(names: &[Field<'_>], columns: usize) -> usize {
    let all_named = names.iter().all(|name| !name.text.trim_ascii().is_empty());
    if names.len() > columns && all_named && columns > 1 { names.len() } else { columns }
}

/// The names with an empty one before them.
pub(super) fn shifted<'a>(names: &[Field<'a>]) -> Vec<Field<'a>> {
    let unnamed = Field { text: Cow::Borrowed(&b""[..]), quoted: false };
    std::iter::once(unnamed).chain(names.iter().cloned()).collect()
}

/// Whether the names are those of all columns but the first, which names the rows: shifted by one they fit better, or the rows are
/// counted.
fn find_row_names(
    records: &[Vec<Field<'_>>],
    columns: usize,
    rules: &FieldRules,
    end: SampleEnd,
) -> RowNames {
    let Some((names, rows)) = records
        .split_first()
        .filter(|(names, rows)| names.len() + 1 == columns && !rows.is_empty())
    else {
        return RowNames::Named;
    };
    let own = score_names(names, rows, columns, rules, end);
    let moved = score_names(&shifted(names), rows, columns, rules, end);
    let mut labels: Vec<&[u8]> =
        rows.iter().filter_map(|row| row.first()).map(|f| f.text.as_ref()).collect();
    let counted =
        labels.iter().enumerate().all(|(row, label)| **label == *(row + 1).to_string().as_bytes());
    labels.sort_unstable();
    let unlike = labels.windows(2).all(|pair| pair[0] != pair[1])
        && labels.iter().all(|label| !label.is_empty());
    let last_filled =
        rows.iter().filter_map(|row| row.get(columns - 1)).any(|field| !field.text.is_empty());
    // R encloses texts only: what names its rows is in quotes, and numbers behind it are not.
    let bare = |field: &Field<'_>| !field.quoted && !field.text.is_empty();
    let labelled = names.iter().all(|name| name.quoted)
        && rows.iter().filter_map(|row| row.first()).all(|field| field.quoted)
        && rows.iter().any(|row| row.iter().skip(1).any(bare));
    let better =
        // The count fits no name either: a column of numbers more speaks for names that are not moved.
        moved.misfits > own.misfits || (counted || labelled) && moved.misfits + 1 >= own.misfits && rows.len() > 1;
    // Who counts rows in a column of their own has quotes for the count, or a name that is none of a count.
    let quoted = rows.iter().filter_map(|row| row.first()).all(|field| field.quoted);
    let count_is_named = names.first().is_some_and(|name| {
        let name = String::from_utf8_lossy(name.text.trim_ascii()).to_lowercase();
        NAMES_OF_COUNTS.contains(&name.as_str())
    });
    let told = moved.misfits > 0 || counted && (quoted || !count_is_named);
    match unlike && last_filled && moved.fits == 0 && told && better {
        true => RowNames::Unnamed,
        false => RowNames::Named,
    }
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
