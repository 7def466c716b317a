//! Rows into a CSV or Parquet file, which appears under its name when it is whole.

use std::fs::File;
use std::io::{BufWriter, Write};
use std::path::{Path, PathBuf};

use coload_load::WholeFile;
use coload_types::delimited::{NamesLine, names_in_quotes, push_quoted};
use coload_types::{Error, Result};
use datafusion::arrow::array::Array;
use datafusion::arrow::datatypes::{DataType as ArrowType, FieldRef, SchemaRef};
use datafusion::arrow::record_batch::RecordBatch;
use datafusion::arrow::util::display::{ArrayFormatter, FormatOptions};
use parquet::arrow::ArrowWriter;
use parquet::basic::{Compression, ZstdLevel};
use parquet::file::properties::WriterProperties;

/// How rows are written.
#[derive(Debug, Clone)]
pub(crate) enum Export {
    /// Delimited text.
    Csv(CsvOptions),
    /// Parquet.
    Parquet(ParquetOptions),
}

/// Form of delimited text.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct CsvOptions {
    /// Whether the first line has the names.
    pub header: bool,
    /// Between fields.
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

/// Form of Parquet.
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

/// A file that is being written. Dropped before [`Self::finish`], it leaves nothing.
pub(crate) struct ExportWriter {
    path: PathBuf,
    whole: WholeFile,
    format: Format,
}

enum Format {
    Csv(CsvWriter),
    Parquet(Box<ArrowWriter<File>>),
}

struct CsvWriter {
    lines: CsvLines,
    out: BufWriter<File>,
}

/// Rows as lines of delimited text.
#[derive(Debug)]
pub(crate) struct CsvLines {
    options: CsvOptions,
    line: Vec<u8>,
    /// The line of names, while it waits for rows that decide how it is written.
    names: Option<NamesLine>,
}

impl Export {
    /// Begins a file. One that exists is replaced at the end.
    pub fn create(self, path: &Path, schema: SchemaRef) -> Result<ExportWriter> {
        let (whole, file) = WholeFile::create(path)?;
        let format = match self {
            Export::Csv(options) => {
                let mut csv =
                    CsvWriter { lines: CsvLines::new(options, &schema), out: BufWriter::new(file) };
                csv.lines.start(|line| write_to(&mut csv.out, path, line))?;
                Format::Csv(csv)
            }
            Export::Parquet(options) => {
                let properties =
                    WriterProperties::builder().set_compression(options.compression).build();
                let parquet = ArrowWriter::try_new(file, schema, Some(properties));
                Format::Parquet(Box::new(parquet.map_err(|e| failed(path, e))?))
            }
        };
        Ok(ExportWriter { path: path.to_owned(), whole, format })
    }
}

impl ExportWriter {
    /// Writes the rows of a batch.
    pub fn write(&mut self, batch: &RecordBatch) -> Result<()> {
        match &mut self.format {
            Format::Csv(CsvWriter { lines, out }) => {
                lines.rows(batch, |line| write_to(out, &self.path, line))
            }
            Format::Parquet(parquet) => parquet.write(batch).map_err(|e| failed(&self.path, e)),
        }
    }

    /// Ends the file and gives it its name.
    pub fn finish(self) -> Result<()> {
        let ExportWriter { path, whole, format } = self;
        let file = match format {
            Format::Csv(mut csv) => {
                csv.lines.finish(|line| write_to(&mut csv.out, &path, line))?;
                csv.out.into_inner().map_err(|e| Error::io("write", &path, &e.into_error()))?
            }
            Format::Parquet(parquet) => parquet.into_inner().map_err(|e| failed(&path, e))?,
        };
        whole.finish(&file)
    }
}

fn write_to(out: &mut impl Write, path: &Path, text: &[u8]) -> Result<()> {
    out.write_all(text).map_err(|e| Error::io("write", path, &e))
}

fn failed(path: &Path, error: impl std::fmt::Display) -> Error {
    Error::Unavailable(format!("cannot write {}: {error}", path.display()))
}

impl CsvLines {
    /// Of rows with these columns.
    pub fn new(options: CsvOptions, schema: &SchemaRef) -> Self {
        let names = options.names_tell().then(|| {
            let column = |f: &FieldRef| (f.name().clone(), is_text(f.data_type()));
            NamesLine::new(schema.fields().iter().map(column).collect(), options.delimiter)
        });
        let mut line = Vec::new();
        if options.header && names.is_none() {
            let fields = || schema.fields().iter();
            let in_quotes =
                names_in_quotes(fields().map(|f| (&**f.name(), is_text(f.data_type()))));
            for (index, (field, in_quotes)) in fields().zip(in_quotes).enumerate() {
                if index > 0 {
                    line.push(options.delimiter);
                }
                match options.texts == Texts::Quoted && in_quotes {
                    true => push_quoted(&mut line, field.name().as_bytes(), options.quote),
                    false => push_field(&mut line, field.name(), &options),
                }
            }
            line.push(b'\n');
        }
        CsvLines { options, line, names }
    }

    /// Hands the line of names to `sink`, unless it waits for rows.
    ///
    /// # Errors
    /// What `sink` returns.
    pub fn start(&mut self, mut sink: impl FnMut(&[u8]) -> Result<()>) -> Result<()> {
        sink(&self.line)
    }

    /// Hands what waits to `sink`.
    ///
    /// # Errors
    /// What `sink` returns.
    pub fn finish(&mut self, mut sink: impl FnMut(&[u8]) -> Result<()>) -> Result<()> {
        self.names.take().map_or(Ok(()), |mut names| sink(&names.take()))
    }

    /// Hands a line for each row to `sink`.
    ///
    /// # Errors
    /// `Invalid` when a column has no text form, and what `sink` returns.
    pub fn rows(
        &mut self,
        batch: &RecordBatch,
        mut sink: impl FnMut(&[u8]) -> Result<()>,
    ) -> Result<()> {
        let options = text_options();
        let formatters = batch
            .columns()
            .iter()
            .map(|column| ArrayFormatter::try_new(column, &options))
            .collect::<std::result::Result<Vec<_>, _>>()
            .map_err(|e| Error::Invalid(e.to_string()))?;
        for row in 0..batch.num_rows() {
            self.line.clear();
            for (index, formatter) in formatters.iter().enumerate() {
                if index > 0 {
                    self.line.push(self.options.delimiter);
                }
                let column = batch.column(index);
                if column.is_null(row) {
                    self.line.extend_from_slice(self.options.null.as_bytes());
                    continue;
                }
                let text = formatter
                    .value(row)
                    .try_to_string()
                    .map_err(|e| Error::Invalid(e.to_string()))?;
                let text = if is_bytes(column.data_type()) { format!("\\x{text}") } else { text };
                if let Some(names) = &mut self.names {
                    names.note_value(index, text.as_bytes());
                }
                match self.options.texts == Texts::Quoted && is_text(column.data_type()) {
                    true => push_quoted(&mut self.line, text.as_bytes(), self.options.quote),
                    false => push_field(&mut self.line, &text, &self.options),
                }
            }
            self.line.push(b'\n');
            match &mut self.names {
                None => sink(&self.line)?,
                Some(names) => {
                    if let Some(head) = names.push_row(&self.line) {
                        self.names = None;
                        sink(&head)?;
                    }
                }
            }
        }
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

/// Appends a field, quoted where it would be read as something else.
fn push_field(line: &mut Vec<u8>, text: &str, options: &CsvOptions) {
    let special = |b: u8| b == options.delimiter || b == options.quote || b == b'\n' || b == b'\r';
    let quoted = text == options.null || text.bytes().any(special);
    if !quoted {
        line.extend_from_slice(text.as_bytes());
        return;
    }
    line.push(options.quote);
    for byte in text.bytes() {
        if byte == options.quote {
            line.push(byte);
        }
        line.push(byte);
    }
    line.push(options.quote);
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn fields_are_quoted_where_needed() {
        let options = CsvOptions::default();
        let mut line = Vec::new();
        for text in ["plain", "a,b", "say \"x\"", "", "two\nlines"] {
            push_field(&mut line, text, &options);
            line.push(b';');
        }
        assert_eq!(line, b"plain;\"a,b\";\"say \"\"x\"\"\";\"\";\"two\nlines\";");
    }
}
