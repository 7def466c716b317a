//! Rows into a CSV or Parquet file, which appears under its name when it is whole.
//!
//! ```text
//!   plan --in_order--> rows of page 0, 1, ...  --strips--> text, by tasks, in order   --file--> CSV
//!                      or of one stream        ----------> row groups, column by task --------> Parquet
//! ```
//!
//! Memory: what tasks have made and the file has not taken, a share of what statements may hold (`strips`, `parquet`).

mod fields;
mod file;
mod in_order;
mod lines;
mod parquet;
mod strips;

use ::parquet::basic::{Compression, ZstdLevel};
use coload_types::{Error, Result};
use datafusion::arrow::datatypes::DataType as ArrowType;
use datafusion::arrow::util::display::FormatOptions;

pub(crate) use fields::ColumnTexts;
pub(crate) use file::Rows;
pub(crate) use in_order::in_order;
pub(crate) use lines::CsvLines;

/// How rows are written.
#[derive(Debug, Clone)]
pub(crate) enum Export {
    Csv(CsvOptions),
    Parquet(ParquetOptions),
}

/// Form of delimited text.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct CsvOptions {
    /// Whether the first line has the names.
    pub header: bool,
    /// Byte between two fields.
    pub delimiter: u8,
    /// Around fields that need it, and doubled inside.
    pub quote: u8,
    /// Stands for NULL; text that is the same is quoted, so that both are read back.
    pub null: String,
    /// Which fields are in quotes.
    pub texts: Texts,
}

/// Whether texts are in quotes.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Texts {
    /// All, so that a load tells them from other values.
    Quoted,
    /// Those that would be read as something else.
    AsNeeded,
}

impl Default for CsvOptions {
    fn default() -> Self {
        CsvOptions {
            header: true,
            delimiter: b',',
            quote: b'"',
            null: String::new(),
            texts: Texts::Quoted,
        }
    }
}

impl CsvOptions {
    /// Whether the line of names tells them from rows, so that a load finds all out: of files as they are written where
    /// nothing else is asked for, but for the delimiters that a load finds out.
    fn names_tell(&self) -> bool {
        let CsvOptions { header, delimiter, quote, ref null, texts } = *self;
        let is_usual = b",\t;|".contains(&delimiter) && quote == b'"' && null.is_empty();
        header && is_usual && texts == Texts::Quoted
    }
}

/// How a file of Parquet is written.
#[derive(Debug, Clone)]
pub(crate) struct ParquetOptions {
    compression: Compression,
}

impl Default for ParquetOptions {
    fn default() -> Self {
        ParquetOptions { compression: Compression::SNAPPY }
    }
}

impl ParquetOptions {
    /// Sets the compression by name.
    pub fn set_compression(&mut self, name: &str) -> Result<()> {
        self.compression = match name.to_lowercase().as_str() {
            "snappy" => Compression::SNAPPY,
            "zstd" => Compression::ZSTD(ZstdLevel::default()),
            "none" | "uncompressed" => Compression::UNCOMPRESSED,
            _ => {
                return Err(Error::Invalid(format!(
                    "COMPRESSION {name} is not supported: there is snappy, zstd and none"
                )));
            }
        };
        Ok(())
    }
}

/// Moments as `coload load` reads them.
pub(crate) fn text_options() -> FormatOptions<'static> {
    FormatOptions::new()
        .with_timestamp_format(Some("%Y-%m-%d %H:%M:%S%.f"))
        .with_timestamp_tz_format(Some("%Y-%m-%d %H:%M:%S%.f%:z"))
}

/// Whether values may be any text: all but those of types that a load finds out. Lengths of time are none of them.
fn is_text(arrow: &ArrowType) -> bool {
    let is_length = matches!(arrow, ArrowType::Interval(_) | ArrowType::Duration(_));
    !(arrow.is_numeric()
        || arrow.is_temporal() && !is_length
        || is_bytes(arrow)
        || matches!(arrow, ArrowType::Boolean | ArrowType::Null))
}

fn is_bytes(arrow: &ArrowType) -> bool {
    matches!(
        arrow,
        ArrowType::Binary
            | ArrowType::LargeBinary
            | ArrowType::BinaryView
            | ArrowType::FixedSizeBinary(_)
    )
}
