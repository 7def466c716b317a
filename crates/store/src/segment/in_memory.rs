//! Columns that no file has: those of a segment that is made to be scanned once, and those that a table was given later.

use std::path::PathBuf;
use std::sync::{Arc, OnceLock, atomic::AtomicBool};

use coload_page::runs::expand_runs;
use coload_page::{
    ColumnEntry, ColumnIndex, Page, SegmentFooter, SymbolDecoder, encode_codes_u32, encode_plain,
};
use coload_transform::PartitionColumn;
use coload_types::{Dictionary, Error, Physical, Plain, Result, Value};

use super::{SegmentColumn, SegmentFile};
use crate::held::{HELD_BYTES_MAX, HeldBytes};

impl SegmentFile {
    /// A segment of a partition that stays in memory, without a file, an id or a key. Its pages are scanned where they are.
    ///
    /// # Errors
    /// `Corrupt` when a column does not have these rows, or has symbols that are none.
    pub fn in_memory(
        page_rows: Vec<u32>,
        columns: Vec<(Physical, PartitionColumn)>,
    ) -> Result<Self> {
        let entry = |physical| ColumnEntry { physical, offset: 0, bytes: 0, checksum: 0 };
        let entries = columns.iter().map(|(physical, _)| entry(*physical)).collect();
        let rows_of =
            |column: &PartitionColumn| column.pages.iter().map(|page| page.rows).collect();
        let mut made = Vec::with_capacity(columns.len());
        for (physical, column) in columns {
            let rows: Vec<u32> = rows_of(&column);
            if rows != page_rows {
                return Err(Error::Corrupt("a column of a partition with other rows".into()));
            }
            made.push(made_column(physical, column)?);
        }
        let footer = SegmentFooter { id: None, page_rows, columns: entries, tree: None };
        let held = HeldBytes::new(HELD_BYTES_MAX);
        let segment = Self::of_parts(&PathBuf::new(), None, (footer, 0), Arc::clone(&held));
        let columns = made.into_iter().map(OnceLock::from).collect();
        Ok(SegmentFile { columns, ..segment })
    }
}

/// A column of pages that are here.
fn made_column(physical: Physical, column: PartitionColumn) -> Result<SegmentColumn> {
    let PartitionColumn { dictionary, symbols, pages } = column;
    let mut index = ColumnIndex { symbols, ..ColumnIndex::default() };
    if let Some(dictionary) = &dictionary {
        // What is asked of the page that no file has is how many values it has.
        let rows = dictionary.len() as u32;
        let page = encode_plain(&Plain::empty(physical))?;
        index.dictionary = Some(Page { rows, ..page }.meta(0));
    }
    let mut expanded = Vec::with_capacity(pages.len());
    for page in pages {
        let page: Page = if page.runs.is_some() { expand_runs(&page)? } else { page };
        index.pages.push(page.meta(0));
        expanded.push(OnceLock::from(page));
    }
    let decoders = index.symbols.iter().map(|table| SymbolDecoder::open(table));
    Ok(SegmentColumn {
        decoders: decoders.collect::<Result<_>>()?,
        verified: index.pages.iter().map(|_| AtomicBool::new(true)).collect(),
        dictionary: dictionary.map_or_else(OnceLock::new, OnceLock::from),
        index,
        expanded,
        is_made: true,
        ends: OnceLock::new(),
    })
}

/// A column of which all rows have one value, as codes of it.
pub(super) fn constant_column(
    value: &Option<Value>,
    physical: Physical,
    page_rows: &[u32],
) -> Result<SegmentColumn> {
    let mut values = Plain::empty(physical);
    value.iter().for_each(|value| values.push(Some(value)));
    let mut pages: Vec<Page> = Vec::with_capacity(page_rows.len());
    for rows in page_rows {
        // All pages but the last have as many rows.
        pages.push(match pages.last().filter(|last| last.rows == *rows) {
            Some(same) => same.clone(),
            // NULL is the code after the last.
            None => encode_codes_u32(&vec![0; *rows as usize], values.len() as u32),
        });
    }
    let dictionary = Some(Dictionary::new(values.values)?);
    made_column(physical, PartitionColumn { dictionary, symbols: Vec::new(), pages })
}
