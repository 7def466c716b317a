//! Values as texts for people, and how wide these are.

use std::borrow::Cow;

use coload_types::{Result, visible};
use datafusion::arrow::array::RecordBatch;
use datafusion::arrow::datatypes::DataType as ArrowType;
use unicode_width::UnicodeWidthStr;

use crate::export::ColumnTexts;

/// What stands for NULL.
pub(super) const NULL: &str = "NULL";

/// A text in a frame: what commands a terminal is an escape, and so are tabs, whose width nobody knows.
pub(super) fn framed(text: &str) -> String {
    visible(text).replace('\t', "\\t")
}

/// Columns that a line of text takes on a terminal.
pub(super) fn width(line: &str) -> usize {
    match line.is_ascii() {
        true => line.len(),
        false => line.width(),
    }
}

/// Whether values of a type stand at the right of their column.
pub(super) fn is_number(arrow: &ArrowType) -> bool {
    match arrow {
        ArrowType::Dictionary(_, values) => is_number(values),
        other => other.is_numeric(),
    }
}

/// The rows of a batch as texts of their values; `None` is NULL.
pub(super) struct Rows<'a> {
    columns: Vec<ColumnTexts<'a>>,
    text: Vec<u8>,
}

impl<'a> Rows<'a> {
    /// Of a batch.
    ///
    /// # Errors
    /// `Invalid` when a column has no text form.
    pub fn of(batch: &'a RecordBatch) -> Result<Self> {
        let columns = batch.columns().iter().map(|column| ColumnTexts::new(column.as_ref()));
        Ok(Rows { columns: columns.collect::<Result<_>>()?, text: Vec::new() })
    }

    /// Number of columns.
    pub fn width(&self) -> usize {
        self.columns.len()
    }

    /// The text of a value; `None` for NULL.
    ///
    /// # Errors
    /// `Invalid` when the value has no text.
    pub fn text(&mut self, row: usize, column: usize) -> Result<Option<Cow<'_, str>>> {
        self.text.clear();
        match self.columns[column].push(row, &mut self.text)? {
            true => Ok(Some(String::from_utf8_lossy(&self.text))),
            false => Ok(None),
        }
    }
}
