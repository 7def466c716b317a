//! Answers as text: a table for people, CSV and JSON for programs.

use std::io::Write;
use std::sync::Arc;

use coload_format::{Error, Result};
use datafusion::arrow::array::RecordBatch;
use datafusion::arrow::datatypes::SchemaRef;
use datafusion::arrow::json::ArrayWriter;
use datafusion::arrow::util::pretty::pretty_format_batches_with_options;

use crate::export::{CsvLines, CsvOptions, Texts, text_options};

/// Form of an answer.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum OutputFormat {
    /// A table with a frame, and the count of rows below; NULL is `NULL`.
    #[default]
    Table,
    /// A header and lines; NULL is an empty field, the empty text is quoted.
    Csv,
    /// An array of objects; NULL is `null`.
    Json,
}

impl std::str::FromStr for OutputFormat {
    type Err = Error;

    fn from_str(name: &str) -> Result<Self> {
        match name {
            "table" => Ok(OutputFormat::Table),
            "csv" => Ok(OutputFormat::Csv),
            "json" => Ok(OutputFormat::Json),
            _ => Err(Error::Invalid(format!("--output {name:?} is not table, csv or json"))),
        }
    }
}

/// Writes the rows of an answer. An answer without columns writes nothing.
///
/// # Errors
/// `Unavailable` when `out` does not take it, `Invalid` when a column has no text form.
pub fn write_answer(
    schema: &SchemaRef,
    batches: &[RecordBatch],
    format: OutputFormat,
    out: &mut dyn Write,
) -> Result<()> {
    if schema.fields().is_empty() {
        return Ok(());
    }
    match format {
        OutputFormat::Table => write_table(schema, batches, out),
        OutputFormat::Csv => {
            let mut lines =
                CsvLines::new(CsvOptions { texts: Texts::AsNeeded, ..CsvOptions::default() });
            out.write_all(lines.header(schema)).map_err(failed)?;
            for batch in batches {
                lines.rows(batch, |line| out.write_all(line).map_err(failed))?;
            }
            Ok(())
        }
        OutputFormat::Json => {
            let mut json = ArrayWriter::new(&mut *out);
            for batch in batches {
                json.write(batch).map_err(|e| Error::Invalid(e.to_string()))?;
            }
            json.finish().map_err(|e| Error::Invalid(e.to_string()))?;
            out.write_all(b"\n").map_err(failed)
        }
    }
}

fn write_table(schema: &SchemaRef, batches: &[RecordBatch], out: &mut dyn Write) -> Result<()> {
    let options = text_options().with_null("NULL");
    // Without a batch there would be no names.
    let empty = [RecordBatch::new_empty(Arc::clone(schema))];
    let shown = if batches.is_empty() { &empty } else { batches };
    let table = pretty_format_batches_with_options(shown, &options)
        .map_err(|e| Error::Invalid(e.to_string()))?;
    let rows: usize = batches.iter().map(RecordBatch::num_rows).sum();
    let noun = if rows == 1 { "row" } else { "rows" };
    writeln!(out, "{table}\n({rows} {noun})").map_err(failed)
}

fn failed(error: std::io::Error) -> Error {
    Error::Unavailable(format!("cannot write the answer: {error}"))
}
