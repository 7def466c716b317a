//! Fields that stand for NULL.
//!
//! The empty field does, and `\N`, which is nothing else. `NA` and `-` may be text: they are NULL in columns of other types only,
//! where they can be nothing else.

use coload_types::DataType;

use super::formats::Among;
use crate::dialect::{Dialect, GivenDialect};
use crate::field::FieldRules;
use crate::infer::{has_form, infer_columns};
use crate::sample::{Field, SampleEnd};

/// The NULL of PostgreSQL's and MySQL's exports, which is nothing else.
pub(super) const BACKSLASH_N: &[u8] = b"\\N";
/// What stands for NULL among numbers and dates.
const MARKERS: [&str; 18] = [
    "", "NA", "N/A", "n/a", "na", "#N/A", "NULL", "Null", "null", "None", "none", "-", "--", "?",
    ".", "..", ":", "*",
];

/// Whether a text is one that often stands for NULL.
pub(crate) fn is_marker(text: &[u8]) -> bool {
    !text.is_empty() && MARKERS.iter().any(|marker| marker.as_bytes() == text.trim_ascii())
}

/// The given NULLs; else the empty field, or none where all is text.
pub(super) fn default_nulls(given: &GivenDialect) -> Vec<Vec<u8>> {
    match &given.nulls {
        Some(nulls) => nulls.clone(),
        None if given.all_text => Vec::new(),
        None => Dialect::default().nulls,
    }
}

/// The given NULLs; else the empty field, and `\N` where it occurs.
pub(super) fn choose_nulls(
    records: &[Vec<Field<'_>>],
    given: &GivenDialect,
    evidence: &mut Vec<String>,
) -> Vec<Vec<u8>> {
    let mut nulls = default_nulls(given);
    if given.nulls.is_some() || given.all_text {
        return nulls;
    }
    if records.iter().flatten().any(|field| !field.quoted && *field.text == *BACKSLASH_N) {
        evidence.push("\\N is NULL, and so is an empty field (--null says otherwise)".to_owned());
        nulls.push(BACKSLASH_N.to_vec());
    }
    nulls
}

/// Markers of columns that have numbers and dates besides, and nothing else.
pub(super) fn find_typed_nulls(among: &Among<'_>, nulls: &[Vec<u8>]) -> Vec<Vec<u8>> {
    let mut found = Vec::new();
    for column in (0..among.columns).filter(|column| among.may_be_typed(*column)) {
        found.extend(markers_of(among, column, nulls).into_iter().flatten());
    }
    found.sort_unstable();
    found.dedup();
    found
}

/// The markers of a column; `None` where it has something else, or no numbers.
fn markers_of(among: &Among<'_>, column: usize, nulls: &[Vec<u8>]) -> Option<Vec<Vec<u8>>> {
    let (mut markers, mut typed) = (Vec::new(), false);
    for row in among.rows().iter().filter(|row| row.len() == among.columns) {
        let text = row[column].text.trim_ascii();
        if !row[column].quoted && nulls.iter().any(|null| *null == *row[column].text) {
            continue;
        }
        if MARKERS.iter().any(|marker| marker.as_bytes() == text) {
            if !markers.iter().any(|marker: &Vec<u8>| marker == text) {
                markers.push(text.to_vec());
            }
        } else if may_be_typed(text) {
            typed = true;
        } else {
            return None;
        }
    }
    typed.then_some(markers)
}

/// Whether a field is a number or a date in some form.
fn may_be_typed(text: &[u8]) -> bool {
    let written = |byte: &u8| byte.is_ascii_digit() || b"+-.,'/: TZeE".contains(byte);
    has_form(text) || text.iter().any(u8::is_ascii_digit) && text.iter().all(written)
}

/// Those of the markers without which some column would be text.
pub(super) fn keep_typed_nulls(
    among: &Among<'_>,
    rules: &FieldRules,
    evidence: &mut Vec<String>,
) -> Vec<Vec<u8>> {
    let forms = infer_columns(among.rows(), among.columns, rules);
    let mut kept = Vec::new();
    for (column, forms) in forms.iter().enumerate() {
        let is_typed = forms.data_type(SampleEnd::Whole) != DataType::Varchar(None);
        if is_typed && among.may_be_typed(column) {
            kept.extend(markers_of(among, column, &rules.nulls).into_iter().flatten());
        }
    }
    kept.sort_unstable();
    kept.dedup();
    if !kept.is_empty() {
        let shown = |text: &Vec<u8>| format!("'{}'", String::from_utf8_lossy(text));
        evidence.push(format!(
            "{} {} NULL among numbers and dates, and text elsewhere (--typed-null says otherwise)",
            kept.iter().map(shown).collect::<Vec<_>>().join(", "),
            if kept.len() == 1 { "is" } else { "are" },
        ));
    }
    kept
}
