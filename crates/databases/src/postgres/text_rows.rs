//! Rows as COPY takes them in the format text: cells as text with tabs between them, `\N` for NULL, and a newline.

use coload_ddl::CheckedColumn;
use coload_load::RowBytes;
use coload_types::display::{write_int, write_wide};
use coload_types::{DataType, Result, Values, write_postgres_list};

use crate::engine::{Cell, RowForm, TableColumn};
use crate::row_maker::{CellForm, Frame, make_rows, put_escaped, put_hex};

/// Makes rows of text.
#[derive(Debug)]
pub struct TextRows {
    forms: Vec<TextCell>,
    frame: Frame,
}

/// The form of the cells of a column.
#[derive(Debug)]
struct TextCell(DataType);

impl TextRows {
    /// For rows of these columns.
    ///
    /// # Errors
    /// `Invalid` when the server would round the values of one.
    pub fn new(columns: &[TableColumn]) -> Result<Self> {
        if let Some(column) = columns.iter().find(|column| column.cell == Cell::Rounds) {
            return Err(column.rounds());
        }
        let forms = columns.iter().map(|column| TextCell(column.data_type)).collect();
        let frame = Frame { start: Vec::new(), between: b"\t", end: b"\n", null: b"\\N" };
        Ok(TextRows { forms, frame })
    }
}

impl CellForm for TextCell {
    fn put(&self, values: &Values, row: usize, out: &mut Vec<u8>) {
        match (values, self.0) {
            (Values::Int(values), data_type) => write_int(values[row], data_type, out),
            (Values::Wide(values), data_type) => write_wide(values[row], data_type, out),
            (Values::Bytes(values), DataType::Binary(_)) => {
                out.extend_from_slice(b"\\\\x");
                put_hex(values.get(row), out);
            }
            (Values::Bytes(values), DataType::List(element)) => {
                let mut text = Vec::new();
                write_postgres_list(values.get(row), element, &mut text);
                put_escaped(&text, out);
            }
            (Values::Bytes(values), _) => put_escaped(values.get(row), out),
        }
    }
}

impl RowForm for TextRows {
    fn make_rows(&self, columns: &[CheckedColumn<'_>], rows: usize) -> Result<RowBytes> {
        make_rows(&self.forms, &self.frame, columns, rows)
    }
}
