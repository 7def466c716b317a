//! Whether the first record is a header, and the names of the columns.

use coload_ddl::Schema;
use coload_types::{DataType, Error, Result, parse_value};

use crate::dialect::Header;
use crate::field::FieldRules;
use crate::infer::{has_form, has_form_in, infer_columns, is_null};
use crate::names::score_names;
use crate::sample::{Field, SampleEnd};
use crate::units::is_units;

/// Longest field, in bytes, that looks like a name.
const NAME_BYTES_MAX: usize = 64;

/// Odds for names, as a logarithm, below which they are a guess.
const GUESS: f64 = 2.0;
/// Fewer rows than this tell little.
const FEW_ROWS: usize = 12;
/// Years that name columns, and how many at least.
const YEARS: std::ops::RangeInclusive<i32> = 1500..=2999;
const YEARS_MIN: usize = 3;
/// Columns that are numbered, at least: fewer numbers may be a row.
const COUNTED_MIN: usize = 3;
/// Numbers of a scale, at least: a row of as many is in order once in 720 times.
const SCALE_MIN: usize = 6;

/// What may enclose names alone.
const QUOTES_OF_NAMES: [char; 3] = ['\'', '`', '"'];

/// Where names come from.
#[derive(Debug, Clone, Copy)]
pub enum Names<'a> {
    /// The fields of the header.
    Header(&'a [Field<'a>]),
    /// Nowhere: `c1`, `c2`, ...
    None,
}

/// One name for each column, no two alike: what is missing becomes `c` and its number, what comes
/// again gets a number behind it.
pub fn unique_names(names: Names<'_>, columns: usize) -> Vec<String> {
    let own_quote = match names {
        Names::Header(fields) => quote_of_names(fields),
        Names::None => None,
    };
    unique_texts((0..columns).map(|index| match names {
        Names::Header(fields) => {
            let name = fields.get(index).map(name_text).unwrap_or_default();
            match own_quote {
                Some(quote) => name.trim_matches(quote).to_owned(),
                None => name,
            }
        }
        Names::None => String::new(),
    }))
}

/// The same of names as they are. A name that is written keeps the place where it is written first: what is made up gives way.
pub fn unique_texts(names: impl Iterator<Item = String>) -> Vec<String> {
    let written: Vec<String> = names.collect();
    let mut taken = std::collections::HashSet::new();
    let first: Vec<bool> =
        written.iter().map(|name| !name.is_empty() && taken.insert(name.to_lowercase())).collect();
    let mut unique = Vec::with_capacity(written.len());
    for (index, (written, first)) in written.into_iter().zip(first).enumerate() {
        let base = if written.is_empty() { format!("c{}", index + 1) } else { written };
        let mut name = base.clone();
        let mut number = 2;
        while !first && !taken.insert(name.to_lowercase()) {
            name = format!("{base}_{number}");
            number += 1;
        }
        unique.push(name);
    }
    unique
}

/// What encloses each name that is written, as some programs enclose names and nothing else.
fn quote_of_names(fields: &[Field<'_>]) -> Option<char> {
    let enclosed = |field: &Field<'_>, quote: char| {
        let name = name_text(field);
        let inner = name.strip_prefix(quote).and_then(|rest| rest.strip_suffix(quote));
        inner.is_some_and(|inner| !inner.is_empty() && !inner.contains(quote))
    };
    let written = || fields.iter().filter(|field| !field.text.trim_ascii().is_empty());
    let enclose = |quote: &char| written().all(|field| enclosed(field, *quote));
    QUOTES_OF_NAMES.into_iter().find(enclose).filter(|_| written().count() > 0)
}

fn name_text(field: &Field<'_>) -> String {
    // A mark of UTF-8 that stands twice is none of a name.
    let text = String::from_utf8_lossy(&field.text);
    text.trim_matches(|c: char| c.is_whitespace() || c == '\u{feff}').to_owned()
}

/// Decides whether the first record is a header; says why.
pub fn detect_header(
    records: &[Vec<Field<'_>>],
    columns: usize,
    rules: &FieldRules,
    end: SampleEnd,
    schema: Option<&Schema>,
    evidence: &mut Vec<String>,
) -> Header {
    let Some((first, rows)) = records.split_first() else {
        return Header::Absent;
    };
    let (header, why) = match schema {
        Some(schema) => by_schema(first, rules, schema),
        None => by_rows(first, rows, columns, rules, end),
    };
    evidence.push(match header {
        Header::Present => format!("header: {why} (--no-header says otherwise)"),
        Header::Absent => format!("no header: {why} (--header says otherwise)"),
    });
    header
}

/// Refuses a header that has the schema's names in another order: values would land in the wrong
/// columns, as columns are taken by position.
///
/// # Errors
/// `Invalid` that names the first such column.
pub fn check_header_order(name: &str, first: &[Field<'_>], schema: &Schema) -> Result<()> {
    if repeats_names(first, schema) {
        return Ok(());
    }
    // As the columns are named where they are found out, so that names which come twice are in order.
    let names = unique_names(Names::Header(first), first.len());
    for (index, (written, column)) in names.iter().zip(schema.columns()).enumerate() {
        match schema.position(written) {
            Some(position) if position != index => {
                return Err(Error::Invalid(format!(
                    "the header of {name} has {written} as column {}, and the table has {} there (try \
                     --by-name to take fields by their names; --skip 1 --no-header to take them by position)",
                    index + 1,
                    column.name
                )));
            }
            _ => {}
        }
    }
    Ok(())
}

/// Whether a record has the names of all columns as they are, with the spaces and quotes that are part of them.
fn repeats_names(first: &[Field<'_>], schema: &Schema) -> bool {
    let names = schema.columns().iter().map(|column| column.name.as_bytes());
    first.len() == schema.len() && first.iter().zip(names).all(|(field, name)| *field.text == *name)
}

/// With a schema: a header repeats its names, or does not fit its types.
fn by_schema(first: &[Field<'_>], rules: &FieldRules, schema: &Schema) -> (Header, &'static str) {
    let columns = schema.columns();
    // In whatever order: see check_header_order.
    let named = first.iter().filter(|field| schema.position(&name_text(field)).is_some()).count();
    if named * 2 >= columns.len() || repeats_names(first, schema) {
        return (Header::Present, "the first record repeats the names of the columns");
    }
    let types: Vec<DataType> = columns.iter().map(|column| column.data_type).collect();
    let (fit, misfit) = count_fits(first, &types, rules);
    if misfit > 0 && misfit >= fit && looks_like_names(first) {
        return (Header::Present, "the first record does not fit the types of the columns");
    }
    (Header::Absent, "the first record does not name the columns")
}

/// Without a schema: a header does not fit the types of the rows below it.
fn by_rows(
    first: &[Field<'_>],
    rows: &[Vec<Field<'_>>],
    columns: usize,
    rules: &FieldRules,
    end: SampleEnd,
) -> (Header, &'static str) {
    if rows.is_empty() {
        return match looks_like_names(&first[..columns.min(first.len())]) {
            true => (Header::Present, "the only record looks like names"),
            false => (Header::Absent, "the only record does not look like names"),
        };
    }
    if counts_years(first, rows) {
        return (Header::Present, "the first record counts years, and the others do not");
    }
    if names_a_scale(first, rows) {
        return (Header::Present, "the first record is a scale of numbers, and the others are not");
    }
    if counts_columns(first, rows) {
        return (Header::Present, "the first record counts the columns, and the others do not");
    }
    // Names that come again whole are those of another table behind the first.
    let is_row = |row: &&Vec<Field<'_>>| {
        row.len() != first.len() || row.iter().zip(first).any(|(a, b)| a.text != b.text)
    };
    let others: Vec<Vec<Field<'_>>> = match recurs(first, rows) {
        true => rows.iter().filter(is_row).cloned().collect(),
        false => Vec::new(),
    };
    let sure = if rows.len() < FEW_ROWS { GUESS + GUESS } else { GUESS };
    let score =
        score_names(first, if others.is_empty() { rows } else { &others }, columns, rules, end);
    match (score.misfits, score.fits) {
        // A row that comes again whole is one, unless much says that it is names.
        (0, 0) if !others.is_empty() && score.total < GUESS + GUESS => {
            (Header::Absent, "the first record comes again")
        }
        (0, 0) if score.total > 0.0 && score.total < sure => (
            Header::Present,
            "a guess: all columns are text, and the first record looks like names",
        ),
        (0, 0) if score.total > 0.0 => {
            (Header::Present, "the first record is unlike the others, and looks like names")
        }
        (0, 0) if score.total > -sure => (
            Header::Absent,
            "a guess: all columns are text, and the first record looks like the others",
        ),
        (0, 0) => (Header::Absent, "the first record looks like the others"),
        (misfits, fits) if misfits >= fits && score.total > 0.0 => {
            (Header::Present, "the first record does not fit the types of the others")
        }
        (0, _) => (Header::Absent, "the first record fits the types of the others"),
        _ => (Header::Absent, "the first record looks more like the others than like names"),
    }
}

/// How many fields of the first record fit the types of columns that are not text, and how many
/// do not. NULLs say nothing.
fn count_fits(first: &[Field<'_>], types: &[DataType], rules: &FieldRules) -> (usize, usize) {
    let (mut fit, mut misfit) = (0, 0);
    for (field, data_type) in first.iter().zip(types) {
        let says_nothing =
            matches!(data_type, DataType::Char(_) | DataType::Varchar(_) | DataType::Binary(_));
        if says_nothing || is_null(field, rules) {
            continue;
        }
        // 1.5 in a column of integers is no name, though it does not fit.
        let plain = rules.formats.rewrite(&field.text, *data_type);
        if plain.is_some_and(|plain| parse_value(&plain, *data_type).is_ok())
            || has_form_in(&field.text, &rules.formats)
        {
            fit += 1;
        } else {
            misfit += 1;
        }
    }
    (fit, misfit)
}

/// How many columns of `rows` are not text, if each of the records in `names` fits none of them. Units below the names may be
/// alike, and some may be absent.
pub fn misfits_all(
    names: &[Vec<Field<'_>>],
    rows: &[Vec<Field<'_>>],
    columns: usize,
    rules: &FieldRules,
    end: SampleEnd,
) -> Option<usize> {
    let may_name = |record: &Vec<Field<'_>>| {
        record.len() == columns && record.iter().all(starts_like_a_name) && are_unlike(record)
    };
    let has_units = |(at, record): (usize, &Vec<Field<'_>>)| {
        at > 0 && record.len() == columns && is_units(record)
    };
    // Types are what costs.
    if !names.iter().enumerate().all(|named| may_name(named.1) || has_units(named)) {
        return None;
    }
    let forms = infer_columns(rows, columns, rules);
    let types: Vec<DataType> = forms.iter().map(|forms| forms.data_type(end)).collect();
    let told = types.iter().filter(|t| !matches!(t, DataType::Varchar(_))).count();
    let misfits = |named: (usize, &Vec<Field<'_>>)| match count_fits(named.1, &types, rules) {
        (0, misfits) => misfits == told || misfits > 0 && has_units(named),
        _ => false,
    };
    (told > 0 && names.iter().enumerate().all(misfits)).then_some(told)
}

/// Whether a field of the first record comes again below it.
pub fn recurs(first: &[Field<'_>], rows: &[Vec<Field<'_>>]) -> bool {
    rows.iter().any(|row| row.iter().zip(first).any(|(field, name)| field.text == name.text))
}

/// Whether all fields look like names, no two alike.
pub fn looks_like_names(fields: &[Field<'_>]) -> bool {
    are_unlike(fields) && fields.iter().all(looks_like_name)
}

fn are_unlike(fields: &[Field<'_>]) -> bool {
    let mut names: Vec<String> = fields.iter().map(|f| name_text(f).to_lowercase()).collect();
    names.sort_unstable();
    names.windows(2).all(|pair| pair[0] != pair[1])
}

fn looks_like_name(field: &Field<'_>) -> bool {
    let inner = |c: char| c.is_alphanumeric() || " _-.()#%/$[]:".contains(c);
    starts_like_a_name(field) && name_text(field).chars().all(inner)
}

/// Whether a field may be a name, if something else says that it is one.
fn starts_like_a_name(field: &Field<'_>) -> bool {
    let name = name_text(field);
    name.len() <= NAME_BYTES_MAX
        && name.starts_with(|c: char| c.is_alphabetic() || c == '_')
        && !has_form(name.as_bytes())
}

/// Whether a record counts years, as the names of some columns do, and most of the records below it do not.
pub fn counts_years(record: &[Field<'_>], rows: &[Vec<Field<'_>>]) -> bool {
    let year = |field: &Field<'_>| {
        let text = std::str::from_utf8(field.text.trim_ascii()).ok()?;
        let plain = text.len() == 4 && text.bytes().all(|byte| byte.is_ascii_digit());
        text.parse().ok().filter(|year: &i32| plain && YEARS.contains(year))
    };
    let years = |record: &[Field<'_>]| record.iter().filter_map(year).collect::<Vec<_>>();
    let own = years(record);
    let step = |pair: &[i32]| pair[1] - pair[0];
    let steady = own.len() >= YEARS_MIN
        && own.windows(2).all(|pair| step(pair) == step(&own) && step(pair) != 0);
    let others = record.iter().filter(|field| year(field).is_none());
    let named = |field: &Field<'_>| field.text.is_empty() || starts_like_a_name(field);
    let like_it = || rows.iter().filter(|row| years(row).len() >= own.len().div_ceil(2)).count();
    steady && others.clone().all(named) && others.count() > 0 && like_it() * 2 < rows.len()
}

/// Whether a name and numbers stand in a record, each larger than the one before, as they name the steps of a scale, and in no record
/// below it.
fn names_a_scale(record: &[Field<'_>], rows: &[Vec<Field<'_>>]) -> bool {
    let number = |field: &Field<'_>| -> Option<f64> {
        std::str::from_utf8(field.text.trim_ascii()).ok()?.parse().ok()
    };
    let rises = |record: &[Field<'_>]| {
        let steps: Option<Vec<f64>> =
            record.get(1..).unwrap_or_default().iter().map(number).collect();
        steps.is_some_and(|steps| {
            steps.len() >= SCALE_MIN && steps.windows(2).all(|pair| pair[0] < pair[1])
        })
    };
    record.first().is_some_and(starts_like_a_name)
        && rises(record)
        && rows.len() > 1
        && !rows.iter().any(|row| rises(row))
}

/// Whether a record numbers the columns from 0 or 1, all of them or all but the first, as programs name columns that have no names,
/// and no record below it does.
fn counts_columns(record: &[Field<'_>], rows: &[Vec<Field<'_>>]) -> bool {
    let filled = |row: &Vec<Field<'_>>| row.first().is_some_and(|index| !index.text.is_empty());
    let indexed = rows.len() > 1 && rows.iter().all(filled);
    let counts = |record: &[Field<'_>]| {
        let number = |field: &Field<'_>| -> Option<u64> {
            let text = std::str::from_utf8(field.text.trim_ascii()).ok()?;
            text.parse().ok().filter(|number: &u64| number.to_string() == text)
        };
        let counted = |fields: &[Field<'_>]| {
            let from = fields.first().and_then(number).filter(|from| *from < 2);
            // Behind an index without a name two say enough; without any name, 1, 2, 3 may be a row.
            let behind_index = record.first().is_some_and(|index| index.text.is_empty())
                && fields.len() < record.len();
            let least = match (from, fields.len() == record.len()) {
                // One is enough where each row has an index.
                (Some(0), false) if behind_index && indexed => 1,
                (Some(0), false) if behind_index => COUNTED_MIN - 1,
                (Some(1), true) => COUNTED_MIN + 1,
                _ => COUNTED_MIN,
            };
            fields.len() >= least
                && from.is_some_and(|from| (from..).zip(fields).all(|(n, f)| number(f) == Some(n)))
        };
        let named = |first: &Field<'_>| first.text.is_empty() || !has_form(&first.text);
        counted(record)
            || record.split_first().is_some_and(|(first, rest)| named(first) && counted(rest))
    };
    !rows.is_empty() && counts(record) && !rows.iter().any(|row| counts(row))
}
