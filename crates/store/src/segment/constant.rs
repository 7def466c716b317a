//! Columns that were added after a segment was written: no file has them, and all rows have one value.

use std::sync::OnceLock;
use std::sync::atomic::AtomicBool;

use coload_page::{ColumnIndex, Page, encode_codes_u32, encode_plain};
use coload_types::{Dictionary, Physical, Plain, Result, Value};

use super::SegmentColumn;

/// A column of which all rows have one value, as codes of it.
pub(super) fn constant_column(
    value: &Option<Value>,
    physical: Physical,
    page_rows: &[u32],
) -> Result<SegmentColumn> {
    let mut values = Plain::empty(physical);
    value.iter().for_each(|value| values.push(Some(value)));
    let mut index =
        ColumnIndex { dictionary: Some(encode_plain(&values)?.meta(0)), ..ColumnIndex::default() };
    let mut column = Vec::with_capacity(page_rows.len());
    // All pages but the last have as many rows.
    let mut last: Option<(u32, Page)> = None;
    for rows in page_rows {
        let page = match last.take().filter(|(known, _)| known == rows) {
            Some((_, page)) => page,
            // NULL is the code after the last.
            None => encode_codes_u32(&vec![0; *rows as usize], values.len() as u32),
        };
        index.pages.push(page.meta(0));
        column.push(OnceLock::from(page.clone()));
        last = Some((*rows, page));
    }
    Ok(SegmentColumn {
        verified: index.pages.iter().map(|_| AtomicBool::new(true)).collect(),
        index,
        decoders: Vec::new(),
        dictionary: OnceLock::from(Dictionary::new(values.values)?),
        expanded: column,
        is_made: true,
        ends: OnceLock::new(),
    })
}
