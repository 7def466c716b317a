//! Dialect and columns of delimited text from a sample of it.
//!
//! 1. Each delimiter is tried; the one that gives most records the same number of fields, and many
//!    of them, wins. A text without any is one column.
//! 2. Quotes are those that enclose the fields they open.
//! 3. The first record is a header when it does not fit the types of the rest.
//!
//! Parts that the user gave are never overridden. Whatever is decided is told in `evidence`.

use coload_format::{Column, Error, Result, Schema};

use crate::chunk::Trailing;
use crate::dialect::{Dialect, GivenDialect, Header, describe_byte};
use crate::header::{Names, check_header_order, detect_header, unique_names};
use crate::infer::infer_columns;
use crate::sample::{Field, Records, SampleEnd, Split, line_len, split_records};

/// Delimiters that are tried, the likelier first.
const DELIMITERS: [u8; 4] = [b',', b';', b'\t', b'|'];
/// Bytes in which the delimiter is sought: several times over, so less than the whole sample.
const SPLIT_SAMPLE_BYTES: usize = 128 << 10;
/// Bytes that are looked at where the columns are known: header and trailing delimiter show early.
const SCHEMA_SAMPLE_BYTES: usize = 64 << 10;
/// What a text that no delimiter splits scores; two columns in nearly half of the records beat it.
const ONE_COLUMN_SCORE: f64 = 0.35;
/// The NULL of PostgreSQL's and MySQL's exports, which is nothing else.
const BACKSLASH_N: &[u8] = b"\\N";

/// What was found out.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Sniffed {
    /// How the text is written.
    pub dialect: Dialect,
    /// The schema that was given, else the inferred one, in which every column is nullable.
    pub schema: Schema,
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
    check_is_text(name, sample, end)?;
    let body = after_skipped(&sample[bom_len(sample)..], given.skip.unwrap_or(0));
    let mut evidence = Vec::new();
    let split = choose_split(body, end, given, schema, &mut evidence);
    let (rows, rows_end) = rows_to_look_at(body, end, schema);
    let records = split_records(rows, rows_end, split, usize::MAX).records;
    let Some(first) = records.first() else {
        return without_records(name, body, end, split, given, schema);
    };
    let nulls = choose_nulls(&records, given, &mut evidence);
    let fields = usual_field_count(&records).unwrap_or(first.len());
    let trailing = given.trailing.unwrap_or_else(|| detect_trailing(&records, fields, schema));
    let columns = match trailing {
        Trailing::Delimiter if fields > 1 => fields - 1,
        _ => fields,
    };
    if trailing == Trailing::Delimiter {
        evidence.push("a delimiter ends each record".to_owned());
    }
    let header = match given.header {
        Some(header) => header,
        None => detect_header(&records, columns, &nulls, end, schema, &mut evidence),
    };
    let schema = match schema {
        Some(schema) => {
            if header == Header::Present {
                check_header_order(name, first, schema)?;
            }
            schema.clone()
        }
        None => infer_schema(&records, columns, &nulls, end, header, &mut evidence)?,
    };
    finish(split, header, nulls, trailing, given, schema, evidence)
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

/// Refuses what is no delimited UTF-8 text as a whole, and says what it looks like.
fn check_is_text(name: &str, sample: &[u8], end: SampleEnd) -> Result<()> {
    const MAGIC: [(&[u8], &str, &str); 6] = [
        (b"\x1f\x8b", "gzip", "decompress it first, as in: gzip -dc FILE | coload load -"),
        (
            b"\x28\xb5\x2f\xfd",
            "Zstandard",
            "decompress it first, as in: zstd -dc FILE | coload load -",
        ),
        (b"\xfd7zXZ\0", "xz", "decompress it first, as in: xz -dc FILE | coload load -"),
        (b"BZh", "bzip2", "decompress it first, as in: bzip2 -dc FILE | coload load -"),
        (b"PK\x03\x04", "zip", "unpack it first"),
        (b"PAR1", "Parquet", "only delimited text can be loaded"),
    ];
    if let Some((_, what, help)) = MAGIC.iter().find(|(magic, ..)| sample.starts_with(magic)) {
        return Err(Error::Invalid(format!("{name} looks like {what}: {help}")));
    }
    let nuls = memchr::memchr_iter(0, sample).count();
    let utf16 = sample.starts_with(b"\xff\xfe") || sample.starts_with(b"\xfe\xff");
    if utf16 || nuls * 4 > sample.len() {
        return Err(Error::Invalid(format!(
            "{name} looks like UTF-16 or binary data ({nuls} of its first {} bytes are NUL): convert \
             it to UTF-8, as in: iconv -f UTF-16 -t UTF-8 FILE | coload load -",
            sample.len()
        )));
    }
    let returns = memchr::memchr_iter(b'\r', sample).count();
    if returns > usize::from(end == SampleEnd::Whole) && memchr::memchr(b'\n', sample).is_none() {
        return Err(Error::Invalid(format!(
            "{name} has carriage returns but no newlines: convert its line ends, as in: \
             tr '\\r' '\\n' < FILE | coload load -"
        )));
    }
    Ok(())
}

/// The text after `skip` lines.
fn after_skipped(mut text: &[u8], skip: u64) -> &[u8] {
    for _ in 0..skip {
        if text.is_empty() {
            break;
        }
        text = &text[line_len(text)..];
    }
    text
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
    let nulls = given.nulls.clone().unwrap_or_else(|| Dialect::default().nulls);
    let header = given.header.unwrap_or_default();
    let trailing = given.trailing.unwrap_or(Trailing::Newline);
    let evidence = vec!["no record to tell the dialect from".to_owned()];
    finish(split, header, nulls, trailing, given, schema.clone(), evidence)
}

fn finish(
    split: Split,
    header: Header,
    nulls: Vec<Vec<u8>>,
    trailing: Trailing,
    given: &GivenDialect,
    schema: Schema,
    evidence: Vec<String>,
) -> Result<Sniffed> {
    let dialect = Dialect {
        delimiter: split.delimiter,
        quote: split.quote,
        escape: split.escape,
        header,
        nulls,
        skip: given.skip.unwrap_or(0),
        comment: split.comment,
        trailing,
    };
    dialect.check()?;
    Ok(Sniffed { dialect, schema, evidence })
}

/// The delimiter, and the quotes that go with it.
fn choose_split(
    body: &[u8],
    end: SampleEnd,
    given: &GivenDialect,
    schema: Option<&Schema>,
    evidence: &mut Vec<String>,
) -> Split {
    let bytes = if schema.is_some() { SCHEMA_SAMPLE_BYTES } else { SPLIT_SAMPLE_BYTES };
    let (head, end) = match body.get(..bytes) {
        Some(head) => (head, SampleEnd::Cut),
        None => (body, end),
    };
    let delimiters = match given.delimiter {
        Some(delimiter) => vec![delimiter],
        None => DELIMITERS.to_vec(),
    };
    let mut best: Option<(f64, Split, Records<'_>)> = None;
    for delimiter in delimiters {
        let (split, records) = choose_quote(head, end, delimiter, given);
        let score = score(&records, schema);
        if best.as_ref().is_none_or(|(best, ..)| score > *best) {
            best = Some((score, split, records));
        }
    }
    // There is a first delimiter always.
    let Some((_, split, records)) = best else {
        return Split { delimiter: b',', quote: Some(b'"'), escape: None, comment: None };
    };
    evidence.push(split_evidence(split, &records));
    split
}

fn split_evidence(split: Split, records: &Records<'_>) -> String {
    let fields = usual_field_count(&records.records).unwrap_or(0);
    let same = records.records.iter().filter(|r| r.len() == fields).count();
    let quote = match (split.quote, split.escape) {
        (None, _) => "no quotes".to_owned(),
        (Some(quote), None) => format!("quote {}", describe_byte(quote)),
        (Some(quote), Some(escape)) => {
            format!("quote {}, escape {}", describe_byte(quote), describe_byte(escape))
        }
    };
    format!(
        "delimiter {}, {quote}: {same} of the first {} records have {fields} field{}",
        describe_byte(split.delimiter),
        records.records.len(),
        if fields == 1 { "" } else { "s" },
    )
}

/// The quotes that enclose fields if they are cut at `delimiter`.
fn choose_quote<'a>(
    head: &'a [u8],
    end: SampleEnd,
    delimiter: u8,
    given: &GivenDialect,
) -> (Split, Records<'a>) {
    let comment = given.comment.flatten();
    let given_escape = given.escape.flatten();
    let attempt = |quote: Option<u8>, escape: Option<u8>| {
        let split = Split { delimiter, quote, escape, comment };
        (split, split_records(head, end, split, usize::MAX))
    };
    if let Some(quote) = given.quote {
        return attempt(quote, given_escape);
    }
    if delimiter == b'"' {
        return attempt(None, given_escape);
    }
    let double = attempt(Some(b'"'), given_escape);
    if double.1.faults > 0 {
        if given.escape.is_none() && memchr::memmem::find(head, b"\\\"").is_some() {
            let escaped = attempt(Some(b'"'), Some(b'\\'));
            if escaped.1.faults == 0 {
                return escaped;
            }
        }
        // Quotes that enclose nothing, as in inches, are text.
        return if double.1.faults > double.1.quoted {
            attempt(None, given_escape)
        } else {
            double
        };
    }
    if double.1.quoted == 0 && delimiter != b'\'' && memchr::memchr(b'\'', head).is_some() {
        let single = attempt(Some(b'\''), given_escape);
        if single.1.faults == 0 && single.1.quoted >= single.1.records.len().max(1) {
            return single;
        }
    }
    double
}

/// How well a delimiter splits the records: by how many agree, and into how many fields.
fn score(records: &Records<'_>, schema: Option<&Schema>) -> f64 {
    let Some(fields) = usual_field_count(&records.records) else {
        return 0.0;
    };
    let count = records.records.len() as f64;
    let same = records.records.iter().filter(|r| r.len() == fields).count() as f64 / count;
    let fits = schema.is_some_and(|schema| {
        fields == schema.len()
            || (fields == schema.len() + 1
                && detect_trailing(&records.records, fields, Some(schema)) == Trailing::Delimiter)
    });
    let sound = 1.0 - (records.faults as f64 / count).min(1.0) / 2.0;
    let agreement = match fields {
        1 => ONE_COLUMN_SCORE,
        _ => same * same * (1.0 + (fields as f64).ln()),
    };
    // With the number of columns known, nothing else counts for as much.
    agreement * sound + if fits { 100.0 * same } else { 0.0 }
}

/// The number of fields that most records have; of two, the one that comes first.
fn usual_field_count(records: &[Vec<Field<'_>>]) -> Option<usize> {
    let mut counts: Vec<(usize, usize)> = Vec::new();
    for record in records {
        match counts.iter_mut().find(|(fields, _)| *fields == record.len()) {
            Some((_, count)) => *count += 1,
            None => counts.push((record.len(), 1)),
        }
    }
    let most = counts.iter().map(|(_, count)| *count).max()?;
    counts.iter().find(|(_, count)| *count == most).map(|(fields, _)| *fields)
}

/// Whether the last field of all records is there only because a delimiter ends them.
fn detect_trailing(records: &[Vec<Field<'_>>], fields: usize, schema: Option<&Schema>) -> Trailing {
    let expected = schema.is_none_or(|schema| fields == schema.len() + 1);
    let usual = |record: &&Vec<Field<'_>>| record.len() == fields;
    let all_empty = records
        .iter()
        .filter(usual)
        .all(|record| record.last().is_some_and(|last| last.text.is_empty() && !last.quoted));
    if fields > 1 && expected && all_empty { Trailing::Delimiter } else { Trailing::Newline }
}

/// The given NULLs; else the empty field, and `\N` where it occurs.
fn choose_nulls(
    records: &[Vec<Field<'_>>],
    given: &GivenDialect,
    evidence: &mut Vec<String>,
) -> Vec<Vec<u8>> {
    if let Some(nulls) = &given.nulls {
        return nulls.clone();
    }
    let mut nulls = Dialect::default().nulls;
    if records.iter().flatten().any(|field| !field.quoted && *field.text == *BACKSLASH_N) {
        evidence.push("\\N is NULL, and so is an empty field (--null says otherwise)".to_owned());
        nulls.push(BACKSLASH_N.to_vec());
    }
    nulls
}

/// Names from the header or made up; types from the records.
fn infer_schema(
    records: &[Vec<Field<'_>>],
    columns: usize,
    nulls: &[Vec<u8>],
    end: SampleEnd,
    header: Header,
    evidence: &mut Vec<String>,
) -> Result<Schema> {
    let (names, rows) = match (header, records.split_first()) {
        (Header::Present, Some((first, rows))) => (Names::Header(first), rows),
        _ => (Names::None, records),
    };
    evidence.push(format!("types: from {} records", rows.len()));
    let forms = infer_columns(rows, columns, nulls);
    let names = unique_names(names, columns);
    let columns = names.into_iter().zip(forms);
    Schema::new(columns.map(|(name, forms)| Column::new(name, forms.data_type(end))).collect())
}

#[cfg(test)]
mod tests;
