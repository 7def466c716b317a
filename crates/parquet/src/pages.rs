//! The pages of a column of a row group, one after the other.
//!
//! ```text
//!   dictionary page   the values that codes stand for           PLAIN
//!   data pages        NULL or not, a bit a row | codes          RLE_DICTIONARY
//!                     NULL or not, a bit a row | the values     PLAIN
//! ```

use bytes::Bytes;
use coload_types::{Error, Result};
use parquet::basic::{Compression, Encoding, PageType};
use parquet::column::page::{CompressedPage, Page, PageWriter};
use parquet::column::writer::ColumnCloseResult;
use parquet::errors::ParquetError;
use parquet::file::metadata::{
    ColumnChunkMetaData, ColumnIndexBuilder, OffsetIndexBuilder, PageEncodingStats,
};
use parquet::file::statistics::Statistics;
use parquet::file::writer::{SerializedPageWriter, TrackedWrite};
use parquet::schema::types::ColumnDescPtr;

use crate::hybrid::{bits_of, push_hybrid};

/// Rows of a data page, as in the library.
pub const PAGE_ROWS: usize = 20_000;

/// The pages of a column of a row group.
#[derive(Debug)]
pub struct ColumnChunk {
    /// The pages.
    pub bytes: Bytes,
    /// What the file's footer has of them.
    pub close: ColumnCloseResult,
}

/// In which order the values of a dictionary stand.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum DictionaryOrder {
    /// From the least to the largest.
    Sorted,
    /// Any.
    Unsorted,
}

/// What a data page holds at least and at most.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Bounds {
    /// All rows are NULL.
    Nulls,
    /// The values as they stand in statistics.
    Known(Vec<u8>, Vec<u8>),
    /// Nothing that readers could go by: the column then has no index of pages by values.
    Unknown,
}

/// A data page.
#[derive(Debug)]
pub struct DataPage {
    /// Rows, those that are NULL included.
    pub rows: usize,
    /// Levels: as many as there are rows but of lists, where each element has one.
    pub entries: usize,
    /// Entries that are no value.
    pub nulls: usize,
    /// How the values are written.
    pub encoding: Encoding,
    /// Levels and values.
    pub body: Vec<u8>,
    /// The least and the largest value.
    pub bounds: Bounds,
}

/// Makes a column chunk of the pages that `write` puts; it gives the statistics of the column.
///
/// # Errors
/// Those of `write`.
pub fn make_column_chunk(
    column: &ColumnDescPtr,
    compression: Compression,
    write: impl FnOnce(&mut Pages<'_>) -> Result<Statistics>,
) -> Result<ColumnChunk> {
    let mut sink = TrackedWrite::new(Vec::new());
    let mut pages = Pages {
        column,
        compressor: Compressor::new(compression)?,
        out: SerializedPageWriter::new(&mut sink),
        bytes: (0, 0),
        rows: 0,
        entries: 0,
        dictionary: None,
        data_offset: None,
        encodings: Vec::new(),
        offsets: OffsetIndexBuilder::new(),
        bounds: ColumnIndexBuilder::new(column.physical_type()),
    };
    let statistics = write(&mut pages)?;
    let close = pages.close(compression, statistics)?;
    Ok(ColumnChunk { bytes: sink.into_inner().map_err(failed)?.into(), close })
}

/// Takes the pages of a column chunk in order.
pub struct Pages<'a> {
    column: &'a ColumnDescPtr,
    compressor: Compressor,
    out: SerializedPageWriter<'a, Vec<u8>>,
    /// Of all with their heads, before they are compressed and after.
    bytes: (i64, i64),
    rows: usize,
    entries: usize,
    dictionary: Option<i64>,
    data_offset: Option<i64>,
    /// Data pages of each encoding.
    encodings: Vec<(Encoding, i32)>,
    offsets: OffsetIndexBuilder,
    bounds: ColumnIndexBuilder,
}

impl std::fmt::Debug for Pages<'_> {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Pages").field("rows", &self.rows).finish_non_exhaustive()
    }
}

impl Pages<'_> {
    /// Puts the dictionary, before all other pages: `count` values, written plain.
    ///
    /// # Errors
    /// `Limit` when it is over 2 GiB.
    pub fn put_dictionary(
        &mut self,
        values: Vec<u8>,
        count: u32,
        order: DictionaryOrder,
    ) -> Result<()> {
        self.dictionary = Some(self.bytes.1);
        let is_sorted = order == DictionaryOrder::Sorted;
        self.put(values, |buf| Page::DictionaryPage {
            buf,
            num_values: count,
            encoding: Encoding::PLAIN,
            is_sorted,
        })
    }

    /// Puts a data page.
    ///
    /// # Errors
    /// `Limit` when it is over 2 GiB.
    pub fn put_data(&mut self, page: DataPage) -> Result<()> {
        let DataPage { rows, entries, nulls, encoding, body, bounds } = page;
        let offset = self.bytes.1;
        self.data_offset.get_or_insert(offset);
        self.put(body, |buf| Page::DataPage {
            buf,
            num_values: entries as u32,
            encoding,
            def_level_encoding: Encoding::RLE,
            rep_level_encoding: Encoding::RLE,
            statistics: None,
        })?;
        self.rows += rows;
        self.entries += entries;
        match self.encodings.iter_mut().find(|(known, _)| *known == encoding) {
            Some((_, count)) => *count += 1,
            None => self.encodings.push((encoding, 1)),
        }
        self.offsets.append_row_count(rows as i64);
        self.offsets.append_offset_and_size(offset, (self.bytes.1 - offset) as i32);
        let (least, largest) = match bounds {
            Bounds::Known(least, largest) => (least, largest),
            Bounds::Nulls => (Vec::new(), Vec::new()),
            Bounds::Unknown => {
                self.bounds.to_invalid();
                return Ok(());
            }
        };
        self.bounds.append(rows == nulls, least, largest, nulls as i64);
        Ok(())
    }

    fn put(&mut self, buf: Vec<u8>, page: impl FnOnce(Bytes) -> Page) -> Result<()> {
        let uncompressed = buf.len();
        let buf = self.compressor.compress(buf)?;
        if uncompressed.max(buf.len()) > i32::MAX as usize {
            return Err(Error::Limit(format!(
                "column {}: a page of Parquet holds 2 GiB, and its values take {uncompressed} bytes",
                self.column.name()
            )));
        }
        let page = CompressedPage::new(page(buf.into()), uncompressed);
        let written = self.out.write_page(page).map_err(failed)?;
        self.bytes.0 += written.uncompressed_size as i64;
        self.bytes.1 += written.compressed_size as i64;
        Ok(())
    }

    fn close(self, compression: Compression, statistics: Statistics) -> Result<ColumnCloseResult> {
        let (uncompressed, compressed) = self.bytes;
        let data = self.encodings.iter().map(|(encoding, count)| PageEncodingStats {
            page_type: PageType::DATA_PAGE,
            encoding: *encoding,
            count: *count,
        });
        let dictionary = self.dictionary.map(|_| PageEncodingStats {
            page_type: PageType::DICTIONARY_PAGE,
            encoding: Encoding::PLAIN,
            count: 1,
        });
        let mut encodings = vec![Encoding::RLE];
        encodings.extend(dictionary.iter().map(|_| Encoding::PLAIN));
        encodings.extend(self.encodings.iter().map(|(encoding, _)| *encoding));
        encodings.sort_unstable();
        encodings.dedup();
        let metadata = ColumnChunkMetaData::builder(self.column.clone())
            .set_encodings(encodings)
            .set_page_encoding_stats(dictionary.into_iter().chain(data).collect())
            .set_compression(compression)
            .set_num_values(self.entries as i64)
            .set_total_compressed_size(compressed)
            .set_total_uncompressed_size(uncompressed)
            .set_dictionary_page_offset(self.dictionary)
            .set_data_page_offset(self.data_offset.unwrap_or(0))
            .set_statistics(statistics)
            .build()
            .map_err(failed)?;
        let bounds = self.bounds.valid().then(|| self.bounds.build()).transpose();
        Ok(ColumnCloseResult {
            bytes_written: compressed as u64,
            rows_written: self.rows as u64,
            metadata,
            bloom_filter: None,
            column_index: bounds.map_err(failed)?,
            offset_index: Some(self.offsets.build()),
        })
    }
}

/// Appends the levels of a page, of which none is over `most`, with the number of bytes before them. Of rows that are no lists
/// a level is 1 where there is a value.
pub fn push_levels(levels: &[u32], most: u32, out: &mut Vec<u8>) {
    let start = out.len();
    out.extend_from_slice(&[0; size_of::<u32>()]);
    push_hybrid(levels, bits_of(most), out);
    let bytes = (out.len() - start - size_of::<u32>()) as u32;
    out[start..start + size_of::<u32>()].copy_from_slice(&bytes.to_le_bytes());
}

/// Appends codes of a dictionary of `count` values, with their width before them.
pub fn push_codes(codes: &[u32], count: usize, out: &mut Vec<u8>) {
    let width = bits_of((count as u32).saturating_sub(1));
    out.push(width);
    push_hybrid(codes, width, out);
}

/// Compresses pages.
enum Compressor {
    None,
    Snappy(Box<snap::raw::Encoder>),
    Zstd(zstd_safe::CCtx<'static>, i32),
}

impl Compressor {
    fn new(compression: Compression) -> Result<Self> {
        Ok(match compression {
            Compression::UNCOMPRESSED => Compressor::None,
            Compression::SNAPPY => Compressor::Snappy(Box::new(snap::raw::Encoder::new())),
            Compression::ZSTD(level) => {
                let context = zstd_safe::CCtx::try_create().ok_or_else(|| {
                    Error::Unavailable("no memory for the compressor of Parquet's pages".to_owned())
                })?;
                Compressor::Zstd(context, level.compression_level())
            }
            other => {
                return Err(Error::Invalid(format!("pages of Parquet are not written in {other}")));
            }
        })
    }

    fn compress(&mut self, buf: Vec<u8>) -> Result<Vec<u8>> {
        match self {
            Compressor::None => Ok(buf),
            Compressor::Snappy(encoder) => encoder
                .compress_vec(&buf)
                .map_err(|e| Error::Limit(format!("cannot compress a page of Parquet: {e}"))),
            Compressor::Zstd(context, level) => {
                let mut out = Vec::with_capacity(zstd_safe::compress_bound(buf.len()));
                context.compress(&mut out, &buf, *level).map_err(|code| {
                    let why = zstd_safe::get_error_name(code);
                    Error::Limit(format!("cannot compress a page of Parquet: {why}"))
                })?;
                out.shrink_to_fit();
                Ok(out)
            }
        }
    }
}

/// What the library refuses of a page that is made in memory.
fn failed(error: ParquetError) -> Error {
    Error::Corrupt(format!("a page of Parquet that the library does not take: {error}"))
}
