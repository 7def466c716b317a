//! Answers as text: a table for people, CSV and JSON for programs.

use std::io::Write;
use std::sync::Arc;

use coload_types::{Error, Result};
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

/// Writes the rows of an answer as they come; those of a table when all are there, as its columns are as wide as the widest
/// value. An answer without columns writes nothing.
pub struct AnswerWriter<W: Write> {
    schema: SchemaRef,
    form: Form<W>,
}

enum Form<W: Write> {
    Table(Vec<RecordBatch>, W),
    Csv(CsvLines, W),
    Json(ArrayWriter<W>),
    Nothing,
}

impl<W: Write> AnswerWriter<W> {
    /// Begins an answer of these columns.
    ///
    /// # Errors
    /// `Unavailable` when `out` does not take it.
    pub fn new(schema: SchemaRef, format: OutputFormat, mut out: W) -> Result<Self> {
        let form = match format {
            _ if schema.fields().is_empty() => Form::Nothing,
            OutputFormat::Table => Form::Table(Vec::new(), out),
            OutputFormat::Csv => {
                let options = CsvOptions { texts: Texts::AsNeeded, ..CsvOptions::default() };
                let mut lines = CsvLines::new(options, &schema);
                lines.start(|line| out.write_all(line).map_err(failed))?;
                Form::Csv(lines, out)
            }
            OutputFormat::Json => Form::Json(ArrayWriter::new(out)),
        };
        Ok(AnswerWriter { schema, form })
    }

    /// Writes rows.
    ///
    /// # Errors
    /// `Unavailable` when they are not taken, `Invalid` when a column has no text form.
    pub fn write(&mut self, rows: RecordBatch) -> Result<()> {
        match &mut self.form {
            Form::Table(all, _) => all.push(rows),
            Form::Csv(lines, out) => {
                lines.rows(&rows, |line| out.write_all(line).map_err(failed))?;
            }
            Form::Json(json) => json.write(&rows).map_err(|e| Error::Invalid(e.to_string()))?,
            Form::Nothing => {}
        }
        Ok(())
    }

    /// Ends the answer.
    ///
    /// # Errors
    /// As [`Self::write`].
    pub fn finish(self) -> Result<()> {
        let flushed = match self.form {
            Form::Table(rows, mut out) => {
                write_table(&self.schema, &rows, &mut out)?;
                out.flush()
            }
            Form::Csv(_, mut out) => out.flush(),
            Form::Json(mut json) => {
                json.finish().map_err(|e| Error::Invalid(e.to_string()))?;
                let mut out = json.into_inner();
                out.write_all(b"\n").and_then(|()| out.flush())
            }
            Form::Nothing => Ok(()),
        };
        flushed.map_err(failed)
    }
}

/// Writes all rows of an answer, see [`AnswerWriter`].
///
/// # Errors
/// As [`AnswerWriter::write`].
pub fn write_answer(
    schema: &SchemaRef,
    batches: &[RecordBatch],
    format: OutputFormat,
    out: &mut dyn Write,
) -> Result<()> {
    let mut writer = AnswerWriter::new(Arc::clone(schema), format, out)?;
    batches.iter().try_for_each(|batch| writer.write(batch.clone()))?;
    writer.finish()
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
