//! Rows as COPY takes them in the format text: cells as text with tabs between them, `\N` for NULL, and a newline.

use coload_ddl::CheckedColumn;
use coload_load::RowBytes;
use coload_types::{DataType, Result, Value, display::display_value};

use crate::engine::{RowForm, TableColumn};

/// Makes rows of text.
#[derive(Debug)]
pub struct TextRows {
    types: Vec<DataType>,
}

impl TextRows {
    /// For rows of these columns.
    pub fn new(columns: &[TableColumn]) -> Self {
        TextRows { types: columns.iter().map(|column| column.data_type).collect() }
    }
}

impl RowForm for TextRows {
    fn make_rows(&self, columns: &[CheckedColumn<'_>], rows: usize) -> Result<RowBytes> {
        let mut made = RowBytes::default();
        for row in 0..rows {
            for (number, (column, data_type)) in columns.iter().zip(&self.types).enumerate() {
                if number > 0 {
                    made.bytes.push(b'\t');
                }
                put_cell(column.get(row), *data_type, &mut made.bytes);
            }
            made.bytes.push(b'\n');
            made.ends.push(made.bytes.len());
        }
        Ok(made)
    }
}

fn put_cell(value: Option<Value>, data_type: DataType, out: &mut Vec<u8>) {
    match (value, data_type) {
        (None, _) => out.extend_from_slice(b"\\N"),
        (Some(Value::Bytes(bytes)), DataType::Binary(_)) => {
            const DIGITS: &[u8; 16] = b"0123456789abcdef";
            out.extend_from_slice(b"\\\\x");
            for byte in bytes.iter() {
                out.extend_from_slice(&[
                    DIGITS[usize::from(byte >> 4)],
                    DIGITS[usize::from(byte & 15)],
                ]);
            }
        }
        (Some(Value::Bytes(bytes)), _) => put_escaped(&bytes, out),
        (Some(value), _) => out.extend_from_slice(display_value(&value, data_type).as_bytes()),
    }
}

/// Text whose tabs, line ends and backslashes do not end the cell.
pub fn put_escaped(text: &[u8], out: &mut Vec<u8>) {
    for byte in text {
        match byte {
            b'\\' => out.extend_from_slice(b"\\\\"),
            b'\t' => out.extend_from_slice(b"\\t"),
            b'\n' => out.extend_from_slice(b"\\n"),
            b'\r' => out.extend_from_slice(b"\\r"),
            other => out.push(*other),
        }
    }
}
