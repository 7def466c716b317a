//! Strings of a window on their way into a fragment.

use std::sync::Arc;

use coload_page::{EncodedStrings, SOURCE_PADDING, SymbolEncoder};
use coload_transform::{DistinctSketch, FragmentColumn, page_values};
use coload_types::{Plain, Strings, Values};

use super::{ColumnParser, ColumnPlan, Fields, Mark};
use crate::column_rules::ColumnRules;
use crate::dialect::NullsAre;
use crate::rows::Rows;
use crate::tokenise::Seen;

/// Text of a window that symbols are weighed for: to encode a part of it, to see whether they suit it, is little then.
pub(super) const LONG_TEXTS_BYTES: usize = 8 << 20;

/// Where the strings of a window stand, and a copy of those that had to be changed.
#[derive(Debug, Default)]
pub(super) struct TextScratch {
    pub(super) starts: Vec<u32>,
    pub(super) lengths: Vec<u32>,
    pub(super) copy: Vec<u8>,
}

impl TextScratch {
    pub(super) fn clear(&mut self) {
        self.starts.clear();
        self.lengths.clear();
        self.copy.clear();
    }

    /// Has the strings that were copied kept, and begins anew.
    pub(super) fn keep_copy(&mut self, keep: &mut impl FnMut(&TextScratch, &[u8])) {
        let mut copy = std::mem::take(&mut self.copy);
        copy.extend([0; SOURCE_PADDING]);
        keep(self, &copy);
        self.copy = copy;
        self.clear();
    }
}

/// Copies the fields of a window in which quotes are all that is not plain, and tells `null` which are NULL. `false` where
/// some field is no value, or needs another look.
pub(super) fn copy_unquoted(
    fields: &Fields<'_>,
    rules: &ColumnRules,
    limit: u32,
    scratch: &mut TextScratch,
    mut null: impl FnMut(usize),
) -> bool {
    let Some(quote) = rules.fields.quote.filter(|_| fields.rows.bytes() < LONG_TEXTS_BYTES) else {
        return false;
    };
    let text = fields.rows.text;
    let null_if_empty = rules.nullable && rules.fields.empty_is_null();
    let refuses_empty = rules.refuses_empty();
    let mut is_plain = true;
    fields.for_each(|_, start, end| {
        let (raw, before) = (&text[start..end], scratch.copy.len());
        match raw {
            [] if null_if_empty => null(scratch.starts.len()),
            [] if refuses_empty => is_plain = false,
            [first, inner @ .., last] if *first == quote => {
                let unquoted = rules.fields.unquote_onto(inner, quote, &mut scratch.copy);
                is_plain &= *last == quote && unquoted.is_some();
            }
            [first] if *first == quote => is_plain = false,
            _ => scratch.copy.extend_from_slice(raw),
        }
        let length = scratch.copy.len() - before;
        is_plain &= length <= limit as usize;
        scratch.starts.push(before as u32);
        scratch.lengths.push(length as u32);
    });
    is_plain
}

impl ColumnRules {
    /// Whether the fields of a window, some of which are quoted, are texts as they are but for quotes.
    pub(super) fn is_quoted_plainly(&self, seen: &Seen) -> bool {
        !seen.doubtful_utf8
            && !seen.nul
            && self.data_type.is_text()
            && self.fields.nulls.iter().all(Vec::is_empty)
            && self.fields.nulls_are != NullsAre::AlsoQuoted
            && self.fields.escape.is_none()
    }
}

/// Counts the strings of a window that are gone once they are encoded.
pub(super) fn count_text(
    distinct: Option<&DistinctSketch>,
    source: &[u8],
    scratch: &TextScratch,
    encoder: Option<&SymbolEncoder>,
) {
    if let (Some(distinct), Some(_)) = (distinct, encoder) {
        distinct.add_texts(source, &scratch.starts, &scratch.lengths);
    }
}

/// Appends the strings of a window, encoded if there are symbols.
pub(super) fn keep_text(
    source: &[u8],
    scratch: &TextScratch,
    encoder: Option<&SymbolEncoder>,
    text: &mut EncodedStrings,
    strings: &mut Strings,
) {
    match encoder {
        Some(encoder) => encoder.encode(source, &scratch.starts, &scratch.lengths, text),
        None => {
            for (start, length) in scratch.starts.iter().zip(&scratch.lengths) {
                strings.push(&source[*start as usize..][..*length as usize]);
            }
        }
    }
}

impl ColumnParser {
    /// Leaves symbols for the rest of the fragment where they do not suit long texts: codes would be up to twice as long as
    /// these, and there may be no memory for that.
    pub(crate) fn weigh_symbols(&mut self, rows: &Rows<'_>) {
        let (ColumnPlan::Text { encoder, .. }, Some(field)) = (&self.plan, self.rules.field) else {
            return;
        };
        let encoder = Arc::clone(encoder);
        let text_bytes = || (0..rows.count).map(|row| rows.field(row, field).len()).sum::<usize>();
        if rows.bytes() < LONG_TEXTS_BYTES
            || text_bytes() < LONG_TEXTS_BYTES
            || encoder.shortens(rows.count, |row| rows.field(row, field))
        {
            return;
        }
        // What cannot be a page now cannot be one with what comes.
        let so_far = match self.fragment_column() {
            Ok(FragmentColumn::Page(page)) => page_values(&page, Some(&encoder)),
            _ => return,
        };
        let Ok(Plain { values: Values::Bytes(strings), nulls }) = so_far else { return };
        let rows_so_far = self.rows;
        self.truncate(Mark::default());
        self.rows = rows_so_far;
        self.text = EncodedStrings::default();
        self.strings = strings;
        self.nulls = nulls.map_or_else(Vec::new, |nulls| {
            (0..rows_so_far as u32).filter(|row| nulls.get(*row as usize)).collect()
        });
        self.planned_next = Some(std::mem::replace(&mut self.plan, ColumnPlan::PlainText));
    }
}
