//! Columns of the text that is made of the cells of a sheet.
//!
//! How it is written is known: what is found out is where the table begins, which rows name its columns, and the types. Cells tell what
//! they hold by their quotes: a text is text, unless it is written as a date or a time, and what is bare is what the cell holds.

use coload_ddl::Schema;
use coload_input::Encoding;
use coload_types::{Column, DataType, Result};

use super::head::{after_skipped, without_last};
use super::{Sniffed, bom_len, given_formats, sniff_utf8};
use crate::dialect::{Dialect, Escapes, GivenDialect, GivenPolicies, LineEnd, Quotes, Ragged};
use crate::infer::{ColumnForms, is_null};
use crate::json::tells_date;
use crate::rules::Trailing;
use crate::sample::{Field, SampleEnd, split_as_loaded};

/// As [`sniff`](super::sniff), of the lines of a sheet.
///
/// # Errors
/// As [`sniff`](super::sniff).
pub(super) fn sniff_sheet(
    name: &str,
    sample: &[u8],
    end: SampleEnd,
    given: &GivenDialect,
    schema: Option<&Schema>,
) -> Result<Sniffed> {
    let as_written = as_written(given);
    let mut sniffed = sniff_utf8(name, sample, end, &as_written, schema)?;
    // How the lines are written nobody chose.
    sniffed.evidence.retain(|line| !line.starts_with("delimiter "));
    sniffed.dialect.formats = given_formats(given);
    if given.typed_nulls.is_none() {
        sniffed.evidence.push(
            "errors such as #N/A are NULL in columns that are not text (--typed-null says otherwise)".to_owned(),
        );
    }
    if schema.is_none() && !given.all_text {
        let forms = cell_forms(&sample[bom_len(sample)..], end, &sniffed);
        let columns = sniffed.schema.columns().iter().zip(&mut sniffed.forms).zip(forms);
        let columns = columns.map(|((column, known), found)| {
            if known.is_given() {
                return column.clone();
            }
            *known = found;
            Column { data_type: found.data_type(end), ..column.clone() }
        });
        sniffed.schema = Schema::new(columns.collect())?;
    }
    Ok(sniffed)
}

/// How the lines of a sheet are written, with what is given of the rest.
fn as_written(given: &GivenDialect) -> GivenDialect {
    let errors =
        || coload_input::CELL_ERRORS.iter().map(|error| error.as_bytes().to_vec()).collect();
    GivenDialect {
        delimiter: Some(b",".to_vec()),
        fixed: None,
        aligned: None,
        quote: Some(Some(b'"')),
        escape: Some(Some(b'\\')),
        escapes: Some(Escapes::Letters),
        comment: Some(None),
        trailing: Some(Trailing::Newline),
        line_end: Some(LineEnd::Newline),
        encoding: Some(Encoding::Utf8),
        nulls: Some(given.nulls.clone().unwrap_or_else(|| vec![Vec::new()])),
        typed_nulls: Some(given.typed_nulls.clone().unwrap_or_else(errors)),
        policies: GivenPolicies {
            ragged: Some(Ragged::Reject),
            quotes: Some(Quotes::Strict),
            invalid_bytes: given.policies.invalid_bytes,
        },
        ..given.clone()
    }
}

/// What the cells of each column have in common.
fn cell_forms(text: &[u8], end: SampleEnd, sniffed: &Sniffed) -> Vec<ColumnForms> {
    let dialect: &Dialect = &sniffed.dialect;
    let mut forms = vec![ColumnForms::trying(dialect.types); sniffed.schema.len()];
    let mut body = after_skipped(text, dialect.skip, LineEnd::Newline);
    if dialect.footer > 0 && end == SampleEnd::Whole {
        body = without_last(body, dialect.footer, LineEnd::Newline);
    }
    let records = split_as_loaded(body, end, &dialect.record_rules(forms.len()), usize::MAX);
    let rules = dialect.field_rules();
    let names = usize::try_from(dialect.header_records()).unwrap_or(usize::MAX);
    for record in records.records.iter().skip(names) {
        for (column, field) in forms.iter_mut().zip(record) {
            if !is_null(field, &rules) {
                add_cell(column, field, &rules.formats);
            }
        }
    }
    forms
}

fn add_cell(column: &mut ColumnForms, field: &Field<'_>, formats: &crate::formats::Formats) {
    /// What has no form but that of text.
    const TEXT: &[u8] = b"\"";
    if field.quoted && !tells_date(&field.text, formats) {
        return column.add(TEXT, formats);
    }
    column.add(&field.text, formats);
    let of_number = |data_type: DataType| data_type.is_number();
    let mut alone = ColumnForms::default();
    alone.add(&field.text, formats);
    if !field.quoted && of_number(alone.data_type(SampleEnd::Whole)) {
        column.note_number();
    }
}
