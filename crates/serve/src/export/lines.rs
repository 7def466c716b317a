//! Rows as lines of delimited text.

use coload_types::Result;
use coload_types::delimited::{NamesLine, names_in_quotes, push_quoted};
use datafusion::arrow::array::{Array, ArrayRef};
use datafusion::arrow::datatypes::{DataType as ArrowType, FieldRef, SchemaRef};
use datafusion::arrow::record_batch::RecordBatch;
use datafusion::arrow::util::display::{ArrayFormatter, FormatOptions};

use super::fields::ColumnTexts;
use super::fields::{Fields, invalid, needs_quotes};
use super::{CsvOptions, Texts, is_bytes, is_text, text_options};
use crate::memory::text_bytes;

/// Bytes of a field that is short, about.
const SHORT_FIELD_BYTES: usize = 12;

/// Bytes of lines that are made at once where one thread makes them: they fit into a cache.
const TOGETHER_BYTES: usize = 128 << 10;

/// Rows as lines, which begin with that of names.
#[derive(Debug)]
pub(crate) struct CsvLines {
    options: CsvOptions,
    line: Vec<u8>,
    /// The line of names, while it waits for rows that decide how it is written.
    names: Option<NamesLine>,
}

impl CsvLines {
    /// Makes lines of rows with these columns.
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
                let name = field.name().as_bytes();
                let is_quoted = options.texts == Texts::Quoted && in_quotes;
                push_field(&mut line, name, is_quoted || needs_quotes(name, &options), &options);
            }
            line.push(b'\n');
        }
        CsvLines { options, line, names }
    }

    /// How lines are written.
    pub fn options(&self) -> &CsvOptions {
        &self.options
    }

    /// Hands the line of names to `sink`, unless it waits for rows.
    ///
    /// # Errors
    /// What `sink` returns.
    pub fn start(&mut self, mut sink: impl FnMut(&[u8]) -> Result<()>) -> Result<()> {
        sink(&self.line)
    }

    /// Whether the line of names waits for rows: until then they have to come here.
    pub fn waits_for_rows(&self) -> bool {
        self.names.is_some()
    }

    /// Hands what waits to `sink`.
    ///
    /// # Errors
    /// What `sink` returns.
    pub fn finish(&mut self, mut sink: impl FnMut(&[u8]) -> Result<()>) -> Result<()> {
        self.names.take().map_or(Ok(()), |mut names| sink(&names.take()))
    }

    /// Hands a line for each row to `sink`, several together where they can be.
    ///
    /// # Errors
    /// `Invalid` when a column has no text form, and what `sink` returns.
    pub fn rows(
        &mut self,
        batch: &RecordBatch,
        mut sink: impl FnMut(&[u8]) -> Result<()>,
    ) -> Result<()> {
        let rows = self.first_rows(batch, &mut sink)?;
        let rest = batch.slice(rows, batch.num_rows() - rows);
        parts(&rest, TOGETHER_BYTES).iter().try_for_each(|part| {
            self.line.clear();
            push_lines(part, &self.options, &mut self.line)?;
            sink(&self.line)
        })
    }

    /// Hands the rows on that the line of names waits for, with it once it is decided; how many they are.
    fn first_rows(
        &mut self,
        batch: &RecordBatch,
        sink: &mut impl FnMut(&[u8]) -> Result<()>,
    ) -> Result<usize> {
        let Some(names) = &mut self.names else { return Ok(0) };
        let format = text_options();
        let formatters = formatters(batch, &format)?;
        for row in 0..batch.num_rows() {
            self.line.clear();
            let note = |column, text: &[u8]| names.note_value(column, text);
            push_line(batch, &formatters, row, &self.options, note, &mut self.line)?;
            if let Some(head) = names.push_row(&self.line) {
                self.names = None;
                sink(&head)?;
                return Ok(row + 1);
            }
        }
        Ok(batch.num_rows())
    }
}

/// What makes the texts of each column, slowly.
fn formatters<'a>(
    batch: &'a RecordBatch,
    format: &'a FormatOptions<'_>,
) -> Result<Vec<ArrayFormatter<'a>>> {
    let columns = batch.columns().iter();
    columns.map(|column| ArrayFormatter::try_new(column, format).map_err(invalid)).collect()
}

/// Appends the line of a row, and tells the texts of its values. The slow model of [`push_lines`].
fn push_line(
    batch: &RecordBatch,
    formatters: &[ArrayFormatter<'_>],
    row: usize,
    options: &CsvOptions,
    mut note: impl FnMut(usize, &[u8]),
    line: &mut Vec<u8>,
) -> Result<()> {
    for (index, formatter) in formatters.iter().enumerate() {
        if index > 0 {
            line.push(options.delimiter);
        }
        let column = batch.column(index);
        let Some(text) = field_text(column, formatter, row)? else {
            line.extend_from_slice(options.null.as_bytes());
            continue;
        };
        note(index, text.as_bytes());
        let is_text = is_text(column.data_type());
        let is_quoted = options.texts == Texts::Quoted && is_text;
        push_field(
            line,
            text.as_bytes(),
            is_quoted || needs_quotes(text.as_bytes(), options),
            options,
        );
    }
    line.push(b'\n');
    Ok(())
}

/// The text of a field, `None` for NULL.
fn field_text(
    column: &dyn Array,
    formatter: &ArrayFormatter<'_>,
    row: usize,
) -> Result<Option<String>> {
    // A column of NULLs has no marks of them.
    if column.is_null(row) || *column.data_type() == ArrowType::Null {
        return Ok(None);
    }
    if column.data_type().is_nested() {
        let mut text = Vec::new();
        ColumnTexts::new(column)?.push(row, &mut text)?;
        return String::from_utf8(text).map(Some).map_err(invalid);
    }
    let text = formatter.value(row).try_to_string().map_err(invalid)?;
    Ok(Some(if is_bytes(column.data_type()) { format!("\\x{text}") } else { text }))
}

fn push_field(line: &mut Vec<u8>, text: &[u8], in_quotes: bool, options: &CsvOptions) {
    match in_quotes {
        true => push_quoted(line, text, options.quote),
        false => line.extend_from_slice(text),
    }
}

/// Appends the lines of a batch.
///
/// # Errors
/// `Invalid` when a column has no text form.
pub(super) fn push_lines(
    batch: &RecordBatch,
    options: &CsvOptions,
    out: &mut Vec<u8>,
) -> Result<()> {
    let format = text_options();
    let columns = batch.columns().iter();
    let fields = columns
        .map(|column| Fields::new(column.as_ref(), options, &format))
        .collect::<Result<Vec<_>>>()?;
    for row in 0..batch.num_rows() {
        for (index, field) in fields.iter().enumerate() {
            if index > 0 {
                out.push(options.delimiter);
            }
            field.push(row, options, out)?;
        }
        out.push(b'\n');
    }
    Ok(())
}

/// Cuts a batch into parts of so many bytes of lines at most, or of one row.
pub(super) fn parts(batch: &RecordBatch, bytes_max: usize) -> Vec<RecordBatch> {
    let mut parts = Vec::new();
    let mut left = vec![batch.clone()];
    while let Some(part) = left.pop() {
        let rows = part.num_rows();
        match rows > 1 && lines_bytes(&part) > bytes_max {
            true => {
                left.push(part.slice(rows / 2, rows - rows / 2));
                left.push(part.slice(0, rows / 2));
            }
            false if rows > 0 => parts.push(part),
            false => {}
        }
    }
    parts
}

/// Bytes of the lines of a batch, about: quotes within texts are not counted.
fn lines_bytes(batch: &RecordBatch) -> usize {
    let column = |array: &ArrayRef| {
        let data_type = array.data_type();
        let values = match data_type.is_nested() {
            // The size of a part is that of all: lists are written row by row.
            true => array.get_array_memory_size(),
            // Two digits a byte.
            false if is_bytes(data_type) => 2 * text_bytes(array.as_ref()),
            false => text_bytes(array.as_ref()),
        };
        values + array.len() * SHORT_FIELD_BYTES
    };
    batch.columns().iter().map(column).sum()
}

#[cfg(test)]
mod tests;
