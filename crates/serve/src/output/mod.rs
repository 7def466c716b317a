//! Answers as text and files: each form is a file of its own, behind [`Output`] and in the table [`FORMATS`].
//!
//! ```text
//!   batches --AnswerWriter--> Output: csv, json, table, ... --> out
//! ```
//!
//! Invariant: rows are written as they come. What a form holds does not grow with the answer: the table holds the rows that
//! its frame is measured by, or those that it shows; Parquet holds a row group.

mod arrow_ipc;
mod cells;
mod csv;
mod expanded;
mod html;
mod json;
mod markdown;
mod parquet;
mod table;
mod tsv;

use std::fmt;
use std::io::Write;
use std::path::Path;
use std::sync::Arc;

use coload_types::{Error, Result};
use datafusion::arrow::array::RecordBatch;
use datafusion::arrow::datatypes::SchemaRef;

/// A form of answers.
pub struct OutputFormat {
    /// Its name, as `--output` and `\output` take it.
    pub name: &'static str,
    /// What it is, in a line of help.
    pub about: &'static str,
    /// Endings of files that are in it, without the dot.
    pub endings: &'static [&'static str],
    /// Whether it is text, several answers of which can follow each other.
    pub is_text: bool,
    begin: for<'a> fn(Begin<'a>) -> Result<Box<dyn Output + 'a>>,
}

/// The forms by name; the first is the default.
pub static FORMATS: &[&OutputFormat] = &[
    &table::TABLE,
    &csv::CSV,
    &tsv::TSV,
    &json::JSON,
    &json::JSON_LINES,
    &markdown::MARKDOWN,
    &html::HTML,
    &expanded::EXPANDED,
    &parquet::PARQUET,
    &arrow_ipc::ARROW,
    &arrow_ipc::ARROW_STREAM,
];

impl fmt::Debug for OutputFormat {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "OutputFormat({})", self.name)
    }
}

impl PartialEq for OutputFormat {
    fn eq(&self, other: &Self) -> bool {
        self.name == other.name
    }
}

impl OutputFormat {
    /// A table for people, the default.
    pub fn table() -> &'static Self {
        &table::TABLE
    }

    /// Each row as lines of a name and a value.
    pub fn expanded() -> &'static Self {
        &expanded::EXPANDED
    }

    /// The form of this name.
    ///
    /// # Errors
    /// `Invalid` when there is none; it names those that there are.
    pub fn of_name(name: &str) -> Result<&'static Self> {
        FORMATS.iter().find(|format| format.name == name).copied().ok_or_else(|| {
            let names: Vec<&str> = FORMATS.iter().map(|format| format.name).collect();
            Error::Invalid(format!("output {name:?} is not one of {}", names.join(", ")))
        })
    }

    /// The form of a file by the ending of its name.
    ///
    /// # Errors
    /// `Invalid` when no form has that ending; it names those that have one.
    pub fn of_file(path: &Path) -> Result<&'static Self> {
        let ending = path.extension().unwrap_or_default().to_string_lossy().to_lowercase();
        let found = FORMATS.iter().find(|format| format.endings.contains(&&*ending)).copied();
        found.ok_or_else(|| {
            let endings: Vec<String> =
                FORMATS.iter().flat_map(|f| f.endings).map(|ending| format!(".{ending}")).collect();
            Error::Invalid(format!(
                "{} does not end in one of {}: rename it, or give --output",
                path.display(),
                endings.join(", ")
            ))
        })
    }
}

/// How much room an answer has.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Layout {
    /// Columns of the terminal; without it lines are as long as they are.
    pub width: Option<usize>,
    /// Rows of a table that are shown, the first and the last; without it all are.
    pub max_rows: Option<usize>,
}

/// What an answer begins with.
struct Begin<'a> {
    schema: SchemaRef,
    layout: Layout,
    out: Box<dyn Write + Send + 'a>,
}

/// Takes the rows of one answer.
trait Output {
    /// Writes rows, or keeps what it must know first.
    ///
    /// # Errors
    /// `Unavailable` when they are not taken, `Invalid` when a column has no such form.
    fn write(&mut self, rows: &RecordBatch) -> Result<()>;

    /// Lets those who read see what was written so far.
    ///
    /// # Errors
    /// `Unavailable` when it is not taken.
    fn flush(&mut self) -> Result<()>;

    /// Ends the answer.
    ///
    /// # Errors
    /// As [`Self::write`].
    fn finish(self: Box<Self>) -> Result<()>;
}

/// Writes the rows of an answer as they come. An answer without columns writes nothing.
pub struct AnswerWriter<'a> {
    output: Option<Box<dyn Output + 'a>>,
}

impl<'a> AnswerWriter<'a> {
    /// Begins an answer of these columns.
    ///
    /// # Errors
    /// `Unavailable` when `out` does not take it, `Invalid` when a column has no such form.
    pub fn new(
        schema: SchemaRef,
        format: &OutputFormat,
        layout: Layout,
        out: impl Write + Send + 'a,
    ) -> Result<Self> {
        let output = match schema.fields().is_empty() {
            true => None,
            false => Some((format.begin)(Begin { schema, layout, out: Box::new(out) })?),
        };
        Ok(AnswerWriter { output })
    }

    /// Writes rows.
    ///
    /// # Errors
    /// `Unavailable` when they are not taken, `Invalid` when a column has no such form.
    pub fn write(&mut self, rows: &RecordBatch) -> Result<()> {
        self.output.as_mut().map_or(Ok(()), |output| output.write(rows))
    }

    /// Lets those who read see what was written so far.
    ///
    /// # Errors
    /// `Unavailable` when it is not taken.
    pub fn flush(&mut self) -> Result<()> {
        self.output.as_mut().map_or(Ok(()), |output| output.flush())
    }

    /// Ends the answer.
    ///
    /// # Errors
    /// As [`Self::write`].
    pub fn finish(self) -> Result<()> {
        self.output.map_or(Ok(()), |output| output.finish())
    }
}

/// Writes all rows of an answer, see [`AnswerWriter`].
///
/// # Errors
/// As [`AnswerWriter::write`].
pub fn write_answer(
    schema: &SchemaRef,
    batches: &[RecordBatch],
    format: &OutputFormat,
    out: &mut (dyn Write + Send),
) -> Result<()> {
    let mut writer = AnswerWriter::new(Arc::clone(schema), format, Layout::default(), out)?;
    batches.iter().try_for_each(|batch| writer.write(batch))?;
    writer.finish()
}

fn failed(error: std::io::Error) -> Error {
    Error::Unavailable(format!("cannot write the answer: {error}"))
}

#[cfg(test)]
mod tests;
