//! A column of a partition as a column chunk of a row group.

use std::sync::Arc;

use coload_page::runs::expand_runs;
use coload_page::{Page, PageView, SymbolDecoder, SymbolEncoder};
use coload_parquet::{ColumnChunk, ColumnPages, ColumnSums};
use coload_transform::{FinalPage, PartitionColumn, decode_page};
use coload_types::{DataType, Result};
use parquet::basic::Compression;
use parquet::schema::types::ColumnDescPtr;

/// What came of a column of a partition, in any order.
#[derive(Debug, Default)]
pub struct ColumnParts {
    /// Pages that went ahead, with the numbers of their fragments.
    pub ahead: Vec<(u32, FinalPage)>,
    /// The fragments that waited, and what they became.
    pub compressed: Option<(Vec<u32>, PartitionColumn)>,
}

/// A column of a row group.
#[derive(Debug)]
pub struct MadeColumn {
    /// Its pages.
    pub chunk: ColumnChunk,
    /// Its rows.
    pub sums: ColumnSums,
    /// Values of its dictionary.
    pub distinct: Option<u64>,
}

/// Makes the pages of a column, fragment by fragment.
///
/// # Errors
/// `Limit` when a value is too long for a page.
pub fn make_column(
    parts: ColumnParts,
    column: &ColumnDescPtr,
    data_type: DataType,
    compression: Compression,
) -> Result<MadeColumn> {
    let mut symbols = Symbols::default();
    let mut pages: Vec<(u32, Page, usize)> = Vec::new();
    for (fragment, FinalPage { page, symbols: encoder, .. }) in parts.ahead {
        pages.push((fragment, page, symbols.of_encoder(encoder)?));
    }
    let mut dictionary = None;
    if let Some((fragments, compressed)) = parts.compressed {
        let tables = symbols.of_tables(&compressed.symbols)?;
        dictionary = compressed.dictionary;
        pages
            .extend(fragments.into_iter().zip(compressed.pages).map(|(f, page)| (f, page, tables)));
    }
    pages.sort_by_key(|(fragment, ..)| *fragment);
    let (chunk, sums) = ColumnPages::make(column, data_type, compression, |out| {
        let is_put = dictionary.as_ref().is_some_and(|values| out.takes_dictionary(values));
        if let (Some(values), true) = (&dictionary, is_put) {
            out.put_dictionary(values)?;
        }
        for (_, page, tables) in pages {
            let Some(values) = dictionary.as_ref().filter(|_| page.detail.is_codes()) else {
                let decoders = &symbols.decoders[tables];
                out.put_values(&decode_page(&page, decoders, data_type.physical())?)?;
                continue;
            };
            let page = expand_runs(&page)?;
            let PageView::Codes(codes) = page.view()? else { continue };
            match is_put {
                true => out.put_codes(values, &codes.codes())?,
                false => out.put_decoded(values, &codes.codes())?,
            }
        }
        Ok(())
    })?;
    let distinct = dictionary.filter(|_| sums.rows > 0).map(|values| values.len() as u64);
    Ok(MadeColumn { chunk, sums, distinct })
}

/// The symbols of pages; most of a partition have the same.
#[derive(Default)]
struct Symbols {
    /// Those of the last page that went ahead.
    last: Option<(Arc<SymbolEncoder>, usize)>,
    decoders: Vec<Vec<SymbolDecoder>>,
}

impl Symbols {
    fn of_encoder(&mut self, encoder: Option<Arc<SymbolEncoder>>) -> Result<usize> {
        let Some(encoder) = encoder else { return self.of_tables(&[]) };
        if let Some((last, at)) = &self.last
            && Arc::ptr_eq(last, &encoder)
        {
            return Ok(*at);
        }
        let at = self.of_tables(&[encoder.table()])?;
        self.last = Some((encoder, at));
        Ok(at)
    }

    fn of_tables(&mut self, tables: &[Vec<u8>]) -> Result<usize> {
        let decoders = tables.iter().map(|table| SymbolDecoder::open(table));
        self.decoders.push(decoders.collect::<Result<_>>()?);
        Ok(self.decoders.len() - 1)
    }
}
