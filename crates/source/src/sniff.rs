//! Dialect and columns of delimited text from a sample of it.
//!
//! 1. Each delimiter is tried; the one that gives most records the same number of fields, and many
//!    of them, wins. A text without any is one column.
//! 2. Quotes are those that enclose the fields they open.
//! 3. Lines before the table, and records that name its columns, are told from its rows (`shape`).
//! 4. A few dirty records among many clean ones choose the policies that lose nothing.
//!
//! Parts that the user gave are never overridden. Whatever is decided is told in `evidence`.

mod amounts;
mod attempt;
mod below;
mod delimiter;
mod drawn;
mod encoding;
mod escapes;
mod exported;
mod foreign;
mod formats;
mod head;
mod json;
mod line_end;
mod notes;
mod nulls;
mod quotes;
mod schema;
mod shape;
mod sheet;
mod signs;
mod underlined;
mod unsplit;

use coload_ddl::Schema;
use coload_types::{Error, Result};

use crate::dialect::{
    Dialect, GivenDialect, Header, Policies, Quotes, Ragged, describe_byte, describe_delimiter,
};
use crate::end_mark::without_end_mark;
use crate::fixed::FixedWidths;
use crate::header::check_header_order;
use crate::infer::{ColumnForms, given_columns};
use crate::json::InputFormat;
use crate::rules::Trailing;
use crate::sample::{Field, Records, SampleEnd, Split, split_as_loaded, split_records};
use attempt::usual_field_count;
use below::{begins_with_fields, table_below};
use delimiter::choose_split;
use encoding::{Converted, convert_sample};
use escapes::{ESCAPES_FOUND, find_escapes};
use exported::{looks_exported, sniff_exported};
use foreign::{check_is_delimited, check_is_text};
use formats::{Among, choose_formats, given_formats};
use head::{after_skipped, separator_line, without_last};
use json::is_to_be_json;
pub use json::{JsonSample, JsonTells, json_tells, sniff_json};
use line_end::{confirm_line_end, detect_line_end};
use notes::{find_comments, find_footer, named_in_comments};
pub(crate) use nulls::is_marker;
use nulls::{BACKSLASH_N, choose_nulls, default_nulls, find_typed_nulls, keep_typed_nulls};
use schema::{given_types, infer_schema};
use shape::{RowNames, Shape, find_shape, last_blank, names_the_columns, preamble, shifted};
use sheet::sniff_sheet;
use underlined::sniff_underlined;
use unsplit::as_one_column;

/// Bytes in which the delimiter is sought: several times over, so less than the whole sample.
const SPLIT_SAMPLE_BYTES: usize = 128 << 10;
/// Bytes that are looked at where the columns are known: header and trailing delimiter show early.
const SCHEMA_SAMPLE_BYTES: usize = 64 << 10;
/// Of this many records at most one is dirty where policies are chosen by what is seen: with more of
/// them the number of columns is in doubt, unless something else tells it.
const CLEAN_FOR_EACH_DIRTY: usize = 10;

/// What was found out.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Sniffed {
    /// How the text is written.
    pub dialect: Dialect,
    /// The schema that was given, else the inferred one, in which every column is nullable.
    pub schema: Schema,
    /// What the fields of each column have in common, if the columns were inferred.
    pub forms: Vec<ColumnForms>,
    /// What was decided and why, a line each.
    pub evidence: Vec<String>,
}

/// Finds dialect and schema. `name` is the input in messages; `sample` its first bytes.
///
/// # Errors
/// `Invalid` when the input is no text, or when its columns cannot be told and were not given.
pub fn sniff(
    name: &str,
    sample: &[u8],
    end: SampleEnd,
    given: &GivenDialect,
    schema: Option<&Schema>,
) -> Result<Sniffed> {
    sniff_any(name, sample, end, given, schema).map_err(|error| of_input(name, error))
}

/// An error of an input that says which: all but those of flags.
pub fn of_input(name: &str, error: Error) -> Error {
    match error {
        Error::Invalid(text) => {
            let says = [name.to_owned(), format!("the header of {name}"), "--".to_owned()];
            match says.iter().any(|start| text.starts_with(start)) {
                true => Error::Invalid(text),
                false => Error::Invalid(format!("{name}: {text}")),
            }
        }
        error => error,
    }
}

/// As [`sniff`]; some errors do not say of which input they are.
fn sniff_any(
    name: &str,
    sample: &[u8],
    end: SampleEnd,
    given: &GivenDialect,
    schema: Option<&Schema>,
) -> Result<Sniffed> {
    if given.format == Some(InputFormat::Sheet) {
        return sniff_sheet(name, sample, end, given, schema);
    }
    let as_json = |text: &[u8]| sniff_json(name, &[(text, end)], given, schema);
    let is_utf8 = given.encoding.is_none_or(|encoding| encoding == coload_input::Encoding::Utf8);
    let has_mark = coload_input::Encoding::of_mark(sample).is_some();
    // What is JSON is UTF-8, unless somebody or a mark says otherwise.
    if is_utf8 && (!has_mark || bom_len(sample) > 0) && is_to_be_json(sample, given, schema) {
        let mut sniffed = as_json(sample)?;
        sniffed.dialect.encoding.said = match given.encoding {
            Some(_) => coload_input::Said::User,
            None => coload_input::Said::Nobody,
        };
        return Ok(sniffed);
    }
    let may_be_exported = looks_exported(sample, end, given);
    if may_be_exported
        && let Some(mut sniffed) =
            sniff_exported(name, &sample[bom_len(sample)..], end, given, schema)?
    {
        // UTF-8, whoever says so.
        sniffed.dialect.encoding.said = match given.encoding {
            Some(_) => coload_input::Said::User,
            None => coload_input::Said::Nobody,
        };
        return Ok(sniffed);
    }
    check_is_text(name, sample)?;
    let Converted { encoding, text, evidence } = convert_sample(sample, end, given);
    // The load does not read the marks of the end.
    let text = if end == SampleEnd::Whole { without_end_mark(&text) } else { &text };
    // Somebody may have written it in another encoding since.
    let exported = match may_be_exported {
        true => None,
        false => sniff_exported(name, &text[bom_len(text)..], end, given, schema)?,
    };
    let mut sniffed = match exported {
        Some(sniffed) => sniffed,
        None if is_to_be_json(text, given, schema) => as_json(text)?,
        None => sniff_utf8(name, text, end, given, schema)?,
    };
    sniffed.dialect.encoding = encoding;
    sniffed.evidence.splice(0..0, evidence);
    Ok(sniffed)
}

/// As [`sniff`], of text in UTF-8.
fn sniff_utf8(
    name: &str,
    sample: &[u8],
    end: SampleEnd,
    given: &GivenDialect,
    schema: Option<&Schema>,
) -> Result<Sniffed> {
    check_has_few_nuls(name, sample)?;
    check_is_delimited(name, sample, given, schema.is_some())?;
    let text = &sample[bom_len(sample)..];
    if let Some(sniffed) = sniff_underlined(name, text, end, given, schema)? {
        return Ok(sniffed);
    }
    let mut evidence = Vec::new();
    let own_line_end = given.line_end.unwrap_or_else(|| detect_line_end(text));
    let said;
    let given = match separator_line(text, given) {
        Some(separator) => {
            evidence.push(format!(
                "delimiter {}: the first line says so (--delimiter, --skip say otherwise)",
                describe_byte(separator)
            ));
            said =
                GivenDialect { delimiter: Some(vec![separator]), skip: Some(1), ..given.clone() };
            &said
        }
        None => given,
    };
    let line_end = own_line_end;
    let is_below;
    // Lines of the given columns from the first one on leave nothing to look for.
    let begins = schema.is_some_and(|schema| begins_with_fields(text, schema.len()));
    let below = if begins { None } else { table_below(text, end, given, line_end) };
    let given = match below {
        Some(below) => {
            let lines = lines_stand("first", below.skip);
            evidence.push(format!("{lines} before the table (--skip 0 says otherwise)"));
            let (delimiter, skip) = (Some(vec![below.delimiter]), Some(below.skip));
            let mut footer = given.footer;
            if footer.is_none() && below.footer > 0 {
                footer = Some(below.footer);
                let lines = lines_stand("last", below.footer);
                evidence.push(format!("{lines} after the table (--footer 0 says otherwise)"));
            }
            is_below = GivenDialect { delimiter, skip, footer, ..given.clone() };
            &is_below
        }
        None => given,
    };
    let body = after_skipped(text, given.skip.unwrap_or(0), line_end);
    // What is not loaded tells no types.
    let body = match (given.footer, end) {
        (Some(footer @ 1..), SampleEnd::Whole) => without_last(body, footer, line_end),
        _ => body,
    };
    let mut split = match given.fixed {
        Some(_) => Split {
            delimiter: 0,
            quote: None,
            line_end,
            comment: given.comment.flatten(),
            ..Split::CSV
        },
        None => choose_split(body, end, given, line_end, schema, &mut evidence),
    };
    if given.line_end.is_none() && given.fixed.is_none() {
        split.line_end = confirm_line_end(body, end, split, &mut evidence);
    }
    let (rows, rows_end) = rows_to_look_at(body, end, schema);
    let records = match &given.fixed {
        Some(fixed) => {
            let rules = dialect_of(split, given).record_rules(fixed.fields());
            split_as_loaded(rows, rows_end, &rules, usize::MAX)
        }
        None => split_records(rows, rows_end, split, usize::MAX),
    };
    let escaped;
    let given = match find_escapes(rows, rows_end, split, &records, given) {
        Some(escapes) => {
            evidence.push(ESCAPES_FOUND.to_owned());
            escaped = GivenDialect { escapes: Some(escapes), ..given.clone() };
            &escaped
        }
        None => given,
    };
    let records = match given.own_escape() {
        Some(_) if given.fixed.is_none() => {
            let usual = usual_field_count(&records.records).unwrap_or(1);
            let rules = dialect_of(split, given).record_rules(usual);
            split_as_loaded(rows, rows_end, &rules, usize::MAX)
        }
        _ => records,
    };
    let comments = match given.fixed {
        Some(_) => None,
        None => Some(find_comments(&records.records, given, &names_the_columns)),
    };
    // Where comments end is told as a line, as other rules find other records.
    let leading = comments.as_ref().map_or(0, |comments| comments.leading);
    let after_comments = match leading {
        0 => 0,
        _ => records.lines.get(leading).copied().unwrap_or(u64::MAX),
    };
    let records = match comments.and_then(|comments| comments.mark) {
        Some(mark) => {
            split.comment = Some(mark);
            evidence.push(format!(
                "lines that begin with {} are comments (--comment none says otherwise)",
                describe_byte(mark)
            ));
            split_records(rows, rows_end, split, usize::MAX)
        }
        None => records,
    };
    let Some(first) = records.records.first() else {
        return without_records(name, body, end, split, given, schema);
    };
    let below = records.records.get(records.at_line(after_comments)..).unwrap_or_default();
    let usual = usual_field_count(below).unwrap_or(first.len());
    let fields = given.fixed.as_ref().map_or(usual, FixedWidths::fields);
    let mut dialect = dialect_of(split, given);
    let mut records = reread(rows, rows_end, records, fields, &mut dialect, given, &mut evidence);
    let is_whole = end == SampleEnd::Whole && rows.len() == body.len();
    if is_whole && given.footer.is_none() && given.fixed.is_none() {
        let found = find_footer(body, dialect.line_end, &records, fields);
        if let Some((table, footer)) = found {
            dialect.footer = footer;
            let lines = lines_stand("last", footer);
            evidence.push(format!("{lines} after the table (--footer 0 says otherwise)"));
            records.truncate(table);
        }
    }
    let leading = records.at_line(after_comments);
    let Records { records, lines, .. } = records;
    dialect.nulls = choose_nulls(&records, given, &mut evidence);
    dialect.formats = given_formats(given);
    dialect.typed_nulls = given.typed_nulls.clone().unwrap_or_default();
    // Columns that are given say which of them can have numbers and dates; where they are not, all may.
    let before = match schema {
        Some(_) => leading,
        None => {
            // Lines that are drawn, and comments, leave gaps too.
            let set_apart = match dialect.aligned.is_none() && dialect.comment.is_none() {
                true => last_blank(&records, &lines, fields),
                false => 0,
            };
            preamble(&records, fields).max(leading).max(set_apart)
        }
    };
    let mut table = records.get(before..).unwrap_or_default();
    let whole;
    if schema.is_none_or(|schema| fields == schema.len() || fields == schema.len() + 1) {
        let among = Among { table, columns: fields, schema, header: given.header };
        // Little was looked at, as the columns are given.
        if rows.len() < body.len() && among.has_unread(&dialect.field_rules()) {
            whole = split_records(body, end, split, usize::MAX).records;
            table = whole.get(before..).unwrap_or_default();
        }
        let among = Among { table, ..among };
        find_formats(&among, &mut dialect, given, &mut evidence);
    }
    let shape =
        find_shape(&records, &lines, fields, leading, &dialect, given, end, schema, &mut evidence);
    let Shape { first, header_rows, trailing, columns, row_names } = shape;
    let records = records.get(first..).unwrap_or_default();
    if first > 0 {
        dialect.skip = lines.get(first).copied().unwrap_or(0);
        let lines = lines_stand("first", dialect.skip);
        evidence.push(format!("{lines} before the table (--skip 0 says otherwise)"));
    }
    dialect.trailing = trailing;
    dialect.header = if header_rows > 0 { Header::Present } else { Header::Absent };
    dialect.header_rows = header_rows.max(1) as u64;
    let (header, rows) = records.split_at(header_rows.min(records.len()));
    let named;
    let header = match (row_names, header) {
        (RowNames::Unnamed, [first, others @ ..]) => {
            evidence.push(
                "the names are one fewer than the fields: the first column names the rows"
                    .to_owned(),
            );
            let mut all = vec![shifted(first)];
            all.extend_from_slice(others);
            named = all;
            &named[..]
        }
        (_, []) if schema.is_none() && given.header.is_none() => {
            match named_in_comments(text, columns, split.delimiter_bytes()) {
                Some((names, why)) => {
                    evidence.push(why.to_owned());
                    named = vec![names];
                    &named[..]
                }
                None => header,
            }
        }
        _ => header,
    };
    let width = schema.map_or(columns, Schema::len);
    if !given.columns_are_given {
        choose_ragged(header, rows, width, &mut dialect, given, &mut evidence);
    }
    if schema.is_none()
        && let Some(one) = as_one_column(text, header, rows, columns, &dialect, given)
    {
        let mut sniffed = sniff_utf8(name, sample, end, &one, None)?;
        sniffed.evidence.insert(
            0,
            "one column, a guess: no delimiter splits the lines alike (--delimiter says otherwise)"
                .to_owned(),
        );
        return Ok(sniffed);
    }
    let (schema, forms) = match schema {
        Some(schema) => {
            if let Some(names) = header.first() {
                check_header_order(name, names, schema)?;
            }
            (schema.clone(), Vec::new())
        }
        None => {
            infer_schema(header, rows, columns, &dialect.field_rules(), end, given, &mut evidence)?
        }
    };
    dialect.typed = given_columns(&forms);
    dialect.check()?;
    Ok(Sniffed { dialect, schema, forms, evidence })
}

fn lines_stand(which: &str, count: u64) -> String {
    match count {
        1 => format!("the {which} line stands"),
        count => format!("the {which} {count} lines stand"),
    }
}

/// How numbers, dates and NULLs among them are written. A file is read alike whether its columns are given or not.
fn find_formats(
    among: &Among<'_>,
    dialect: &mut Dialect,
    given: &GivenDialect,
    evidence: &mut Vec<String>,
) {
    let is_told = given.typed_nulls.is_some()
        || given.nulls.is_some()
        || given.all_text
        || given.columns_are_given;
    if !is_told {
        dialect.typed_nulls = find_typed_nulls(among, &dialect.nulls);
    }
    dialect.formats = choose_formats(among, &dialect.field_rules(), given, evidence);
    if !dialect.typed_nulls.is_empty() && !is_told {
        dialect.typed_nulls = keep_typed_nulls(among, &dialect.field_rules(), evidence);
    }
}

/// What is known of the dialect once delimiter and quotes are.
fn dialect_of(split: Split, given: &GivenDialect) -> Dialect {
    Dialect {
        delimiter: split.delimiter,
        long_delimiter: split.long_delimiter,
        aligned: split.aligned,
        fixed: given.fixed,
        quote: split.quote,
        escape: split.escape.or(given.own_escape()),
        escapes: given.escapes.unwrap_or_default(),
        nulls_are: given.nulls_are,
        types: given.types.unwrap_or_default(),
        comment: split.comment,
        line_end: split.line_end,
        skip: given.skip.unwrap_or(0),
        footer: given.footer.unwrap_or(0),
        header_rows: given.header_rows.unwrap_or(1).max(1),
        policies: Policies {
            ragged: given.policies.ragged.unwrap_or_default(),
            quotes: given.policies.quotes.unwrap_or_default(),
            invalid_bytes: given.policies.invalid_bytes.unwrap_or_default(),
        },
        ..Dialect::default()
    }
}

/// Reads dirty records as the load will, and chooses how that is.
#[allow(clippy::too_many_arguments)]
fn reread<'a>(
    rows: &'a [u8],
    end: SampleEnd,
    records: Records<'a>,
    fields: usize,
    dialect: &mut Dialect,
    given: &GivenDialect,
    evidence: &mut Vec<String>,
) -> Records<'a> {
    let count = records.records.len();
    if dialect.quote.is_none() || records.faults == 0 {
        return records;
    }
    match given.policies.quotes {
        Some(Quotes::Strict) => return records,
        Some(Quotes::Lenient) => {}
        None if given.columns_are_given => return records,
        None => dialect.policies.quotes = Quotes::Lenient,
    }
    let mended = split_as_loaded(rows, end, &dialect.record_rules(fields), usize::MAX);
    if given.policies.quotes == Some(Quotes::Lenient) {
        return mended;
    }
    if mended.faults == 0 && end == SampleEnd::Cut {
        // Only the quote is open in which the sample ends: of a text that is longer than the sample.
        dialect.policies.quotes = Quotes::Strict;
        return records;
    }
    let few = records.faults * CLEAN_FOR_EACH_DIRTY <= count;
    let agree = mended.records.iter().filter(|record| record.len() == fields).count();
    let dirty = mended.records.len() - agree;
    if !few && (fields < 2 || dirty * CLEAN_FOR_EACH_DIRTY > mended.records.len()) {
        dialect.policies.quotes = Quotes::Strict;
        return records;
    }
    evidence.push(format!(
        "quotes: {} of the first {count} records have stray ones, which are text (--quotes strict says \
         otherwise)",
        mended.faults
    ));
    mended
}

/// Missing fields and empty ones too many are mended where few records have them, or a header tells how
/// many there are.
fn choose_ragged(
    header: &[Vec<Field<'_>>],
    rows: &[Vec<Field<'_>>],
    columns: usize,
    dialect: &mut Dialect,
    given: &GivenDialect,
    evidence: &mut Vec<String>,
) {
    let written = columns + usize::from(dialect.trailing == Trailing::Delimiter);
    let fits = |row: &&Vec<Field<'_>>| row.len() == columns || row.len() == written;
    let ragged = rows.len() - rows.iter().filter(fits).count();
    if given.policies.ragged.is_some() || ragged == 0 {
        return;
    }
    // Names that are as many leave no doubt about the columns.
    let named = header.first().is_some_and(|names| fits(&names) && columns > 1);
    if !named && ragged * CLEAN_FOR_EACH_DIRTY > rows.len() {
        return;
    }
    dialect.policies.ragged = Ragged::Pad;
    evidence.push(format!(
        "ragged: {ragged} of the first {} records have another number of fields than {columns}; missing \
         fields are filled, empty ones too many left out (--ragged reject says otherwise)",
        rows.len()
    ));
}

/// Bytes of a byte order mark of UTF-8 at the start.
pub fn bom_len(text: &[u8]) -> usize {
    if text.starts_with(b"\xef\xbb\xbf") { 3 } else { 0 }
}

/// The sample, or less of it where a schema leaves little to find out.
fn rows_to_look_at<'a>(
    body: &'a [u8],
    end: SampleEnd,
    schema: Option<&Schema>,
) -> (&'a [u8], SampleEnd) {
    match body.get(..SCHEMA_SAMPLE_BYTES) {
        Some(head) if schema.is_some() && memchr::memmem::find(body, BACKSLASH_N).is_none() => {
            (head, SampleEnd::Cut)
        }
        _ => (body, end),
    }
}

/// Refuses what has more NULs than any text.
fn check_has_few_nuls(name: &str, sample: &[u8]) -> Result<()> {
    let nuls = memchr::memchr_iter(0, sample).count();
    if nuls * 4 > sample.len() {
        return Err(Error::Invalid(format!(
            "{name} looks like binary data ({nuls} of its first {} bytes are NUL); if it is text, say \
             how it is written (try --encoding)",
            sample.len()
        )));
    }
    Ok(())
}

/// The names that a text begins with if it is written as `dialect` says: for each record of its header the fields, without
/// regard to case and to space around them.
pub fn read_names(
    sample: &[u8],
    end: SampleEnd,
    dialect: &Dialect,
    fields: usize,
) -> Vec<Vec<String>> {
    let encoding = Some(dialect.encoding.encoding);
    let Converted { text, .. } =
        convert_sample(sample, end, &GivenDialect { encoding, ..GivenDialect::default() });
    let body = after_skipped(&text[bom_len(&text)..], dialect.skip, dialect.line_end);
    let rows = dialect.header_records() as usize;
    let records = split_as_loaded(body, end, &dialect.record_rules(fields), rows).records;
    let name = |field: &Field<'_>| String::from_utf8_lossy(&field.text).trim().to_lowercase();
    records.iter().map(|record| record.iter().map(name).collect()).collect()
}

/// An input of which no record is known.
fn without_records(
    name: &str,
    body: &[u8],
    end: SampleEnd,
    split: Split,
    given: &GivenDialect,
    schema: Option<&Schema>,
) -> Result<Sniffed> {
    let Some(schema) = schema else {
        let why = match end {
            SampleEnd::Whole => "holds no record".to_owned(),
            SampleEnd::Cut => format!(
                "has no end of a record in its first {} bytes (is --quote right?)",
                body.len()
            ),
        };
        return Err(Error::Invalid(format!(
            "{name} {why}, so that its columns cannot be told: give --columns or --schema"
        )));
    };
    let mut dialect = dialect_of(split, given);
    dialect.nulls = default_nulls(given);
    dialect.formats = given_formats(given);
    dialect.header = given.header.unwrap_or_default();
    dialect.trailing = given.trailing.unwrap_or(Trailing::Newline);
    dialect.check()?;
    let evidence = vec!["no record to tell the dialect from".to_owned()];
    Ok(Sniffed { dialect, schema: schema.clone(), forms: Vec::new(), evidence })
}

#[cfg(test)]
mod tests;
