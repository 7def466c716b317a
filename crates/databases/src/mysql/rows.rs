//! Rows for MySQL: lines for LOAD DATA, and cells for INSERT. Both have values as text, which the server reads in its strict
//! mode.

use coload_ddl::CheckedColumn;
use coload_load::RowBytes;
use coload_types::display::{write_int, write_wide};
use coload_types::{DataType, Result, Values, write_list};

use crate::engine::{Cell, RowForm, TableColumn};
use crate::row_maker::{
    CellForm, Frame, NULL_LENGTH, make_rows, put_escaped, put_hex, put_with_length,
};

/// Lines with tabs between cells.
#[derive(Debug)]
pub struct LineRows {
    forms: Vec<LineCell>,
    frame: Frame,
}

/// Cells with their lengths before them.
#[derive(Debug)]
pub struct CellRows {
    forms: Vec<ParameterCell>,
    frame: Frame,
}

#[derive(Debug)]
struct LineCell(DataType);

#[derive(Debug)]
struct ParameterCell(DataType);

fn types(columns: &[TableColumn]) -> Result<Vec<DataType>> {
    let data_type = |column: &TableColumn| match column.cell {
        Cell::Rounds => Err(column.rounds()),
        _ => Ok(column.data_type),
    };
    columns.iter().map(data_type).collect()
}

impl LineRows {
    /// For rows of these columns.
    ///
    /// # Errors
    /// `Invalid` when the server would round the values of one.
    pub fn new(columns: &[TableColumn]) -> Result<Self> {
        let frame = Frame { start: Vec::new(), between: b"\t", end: b"\n", null: b"\\N" };
        Ok(LineRows { forms: types(columns)?.into_iter().map(LineCell).collect(), frame })
    }
}

impl CellRows {
    /// For rows of these columns.
    ///
    /// # Errors
    /// `Invalid` when the server would round the values of one.
    pub fn new(columns: &[TableColumn]) -> Result<Self> {
        let start = (columns.len() as u16).to_be_bytes().to_vec();
        let frame = Frame { start, between: b"", end: b"", null: NULL_LENGTH };
        Ok(CellRows { forms: types(columns)?.into_iter().map(ParameterCell).collect(), frame })
    }
}

/// Appends a number, a day or a time as MySQL reads it.
fn put_number(values: &Values, row: usize, data_type: DataType, out: &mut Vec<u8>) {
    match (values, data_type) {
        (Values::Int(values), DataType::Boolean) => out.push(b'0' + u8::from(values[row] != 0)),
        // A moment has no zone there: it is that of UTC.
        (Values::Int(values), DataType::TimestampTz) => {
            write_int(values[row], DataType::Timestamp, out);
        }
        (Values::Int(values), data_type) => write_int(values[row], data_type, out),
        (Values::Wide(values), data_type) => write_wide(values[row], data_type, out),
        (Values::Bytes(values), DataType::List(element)) => {
            write_list(values.get(row), element, out);
        }
        (Values::Bytes(values), _) => out.extend_from_slice(values.get(row)),
    }
}

impl CellForm for LineCell {
    fn put(&self, values: &Values, row: usize, out: &mut Vec<u8>) {
        match (values, self.0) {
            (Values::Bytes(values), DataType::Binary(_)) => put_hex(values.get(row), out),
            (Values::Bytes(values), DataType::List(element)) => {
                let mut text = Vec::new();
                write_list(values.get(row), element, &mut text);
                put_escaped(&text, out);
            }
            (Values::Bytes(values), _) => put_escaped(values.get(row), out),
            (values, data_type) => put_number(values, row, data_type, out),
        }
    }
}

impl CellForm for ParameterCell {
    fn put(&self, values: &Values, row: usize, out: &mut Vec<u8>) {
        put_with_length(out, |out| put_number(values, row, self.0, out));
    }
}

impl RowForm for LineRows {
    fn make_rows(&self, columns: &[CheckedColumn<'_>], rows: usize) -> Result<RowBytes> {
        make_rows(&self.forms, &self.frame, columns, rows)
    }
}

impl RowForm for CellRows {
    fn make_rows(&self, columns: &[CheckedColumn<'_>], rows: usize) -> Result<RowBytes> {
        make_rows(&self.forms, &self.frame, columns, rows)
    }
}
