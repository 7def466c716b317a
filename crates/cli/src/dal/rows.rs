//! Rows of cells as batches of Arrow.

use std::sync::Arc;

use arrow_array::builder::{
    BinaryBuilder, BooleanBuilder, Date32Builder, Decimal128Builder, Float32Builder,
    Float64Builder, Int16Builder, Int32Builder, Int64Builder, StringBuilder,
    Time64MicrosecondBuilder, TimestampMicrosecondBuilder,
};
use arrow_array::{Array, ArrayRef, ListArray, RecordBatch};
use arrow_buffer::{NullBuffer, OffsetBuffer};
use arrow_schema::{DataType as ArrowType, Field, Schema as ArrowSchema, SchemaRef, TimeUnit};
use coload_types::{Column, DataType, Error, Result};

use crate::Schema;

/// A value of a row.
#[derive(Debug, Clone, PartialEq)]
pub enum Cell {
    /// No value.
    Null,
    /// Of BOOLEAN.
    Bool(bool),
    /// Of SMALLINT, INTEGER and BIGINT.
    Int(i64),
    /// Of DECIMAL: as many of the last digit of the column's scale.
    Decimal(i128),
    /// Of REAL and DOUBLE.
    Float(f64),
    /// Of CHAR, VARCHAR, and UUID in its digits.
    Text(String),
    /// Of BINARY.
    Bytes(Vec<u8>),
    /// Of DATE: days since 1970-01-01.
    Date(i32),
    /// Of TIME: microseconds since midnight.
    Time(i64),
    /// Of TIMESTAMP, with time zone and without: microseconds since 1970-01-01, in UTC.
    Timestamp(i64),
    /// Of a list, such as BIGINT[]: its elements.
    List(Vec<Cell>),
}

impl From<&str> for Cell {
    fn from(text: &str) -> Self {
        Cell::Text(text.to_owned())
    }
}

impl From<i64> for Cell {
    fn from(number: i64) -> Self {
        Cell::Int(number)
    }
}

/// The fields that batches of rows of these columns have.
pub fn arrow_schema(columns: &Schema) -> ArrowSchema {
    fn arrow_type(data_type: DataType) -> ArrowType {
        match data_type {
            DataType::Boolean => ArrowType::Boolean,
            DataType::SmallInt => ArrowType::Int16,
            DataType::Integer => ArrowType::Int32,
            DataType::BigInt => ArrowType::Int64,
            DataType::Decimal { precision, scale } => {
                ArrowType::Decimal128(precision, i8::try_from(scale).unwrap_or(i8::MAX))
            }
            DataType::Real => ArrowType::Float32,
            DataType::Double => ArrowType::Float64,
            DataType::Date => ArrowType::Date32,
            DataType::Time => ArrowType::Time64(TimeUnit::Microsecond),
            DataType::Timestamp => ArrowType::Timestamp(TimeUnit::Microsecond, None),
            DataType::TimestampTz => {
                ArrowType::Timestamp(TimeUnit::Microsecond, Some("UTC".into()))
            }
            DataType::Char(_) | DataType::Varchar(_) | DataType::Uuid => ArrowType::Utf8,
            DataType::Binary(_) => ArrowType::Binary,
            DataType::List(element) => ArrowType::List(Arc::new(Field::new_list_field(
                arrow_type(element.data_type()),
                true,
            ))),
        }
    }
    let field = |column: &Column| Field::new(&column.name, arrow_type(column.data_type), true);
    ArrowSchema::new(columns.columns().iter().map(field).collect::<Vec<_>>())
}

/// A batch of rows.
///
/// # Errors
/// `Invalid` with row and column when a cell is not of its column's type, or a row has another number of cells.
pub fn batch_of(columns: &Schema, schema: SchemaRef, rows: &[Vec<Cell>]) -> Result<RecordBatch> {
    if let Some(at) = rows.iter().position(|row| row.len() != columns.len()) {
        return Err(Error::Invalid(format!(
            "row {at} has {} cells, and there are {} columns",
            rows[at].len(),
            columns.len()
        )));
    }
    let arrays = columns.columns().iter().enumerate().map(|(at, column)| array(column, at, rows));
    let arrays = arrays.collect::<Result<Vec<_>>>()?;
    RecordBatch::try_new(schema, arrays).map_err(|e| Error::Invalid(format!("rows: {e}")))
}

/// The cells of a column: `$cell` binds what `$take` makes a value of, if the cell is of the type.
macro_rules! cells {
    ($builder:expr, $rows:expr, $at:expr, $column:expr, $($cell:pat => $take:expr),+) => {{
        let mut builder = $builder;
        for (number, row) in $rows.iter().enumerate() {
            match &row[$at] {
                Cell::Null => builder.append_null(),
                $($cell => builder.append_value($take.ok_or_else(|| wrong($column, number, &row[$at]))?),)+
                #[allow(unreachable_patterns)]
                other => return Err(wrong($column, number, other)),
            }
        }
        Arc::new(builder.finish()) as ArrayRef
    }};
}

fn array(column: &Column, at: usize, rows: &[Vec<Cell>]) -> Result<ArrayRef> {
    Ok(match column.data_type {
        DataType::Boolean => {
            cells!(BooleanBuilder::new(), rows, at, column, Cell::Bool(v) => Some(*v))
        }
        DataType::SmallInt => {
            cells!(Int16Builder::new(), rows, at, column, Cell::Int(v) => i16::try_from(*v).ok())
        }
        DataType::Integer => {
            cells!(Int32Builder::new(), rows, at, column, Cell::Int(v) => i32::try_from(*v).ok())
        }
        DataType::BigInt => cells!(Int64Builder::new(), rows, at, column, Cell::Int(v) => Some(*v)),
        DataType::Decimal { precision, scale } => {
            let scale = i8::try_from(scale).unwrap_or(i8::MAX);
            let builder = Decimal128Builder::new().with_precision_and_scale(precision, scale);
            let builder = builder.map_err(|e| Error::Invalid(format!("{}: {e}", column.name)))?;
            let limit = 10_i128.checked_pow(u32::from(precision)).unwrap_or(i128::MAX);
            cells!(builder, rows, at, column, Cell::Decimal(v) => Some(*v).filter(|v| v.unsigned_abs() < limit.unsigned_abs()))
        }
        // A double that no REAL is would be rounded.
        DataType::Real => cells!(Float32Builder::new(), rows, at, column,
            Cell::Float(v) => Some(*v as f32).filter(|f| v.is_nan() || f64::from(*f) == *v)),
        DataType::Double => {
            cells!(Float64Builder::new(), rows, at, column, Cell::Float(v) => Some(*v))
        }
        DataType::Date => cells!(Date32Builder::new(), rows, at, column, Cell::Date(v) => Some(*v)),
        DataType::Time => {
            cells!(Time64MicrosecondBuilder::new(), rows, at, column, Cell::Time(v) => Some(*v))
        }
        DataType::Timestamp => {
            cells!(TimestampMicrosecondBuilder::new(), rows, at, column, Cell::Timestamp(v) => Some(*v))
        }
        DataType::TimestampTz => {
            let builder = TimestampMicrosecondBuilder::new().with_timezone("UTC");
            cells!(builder, rows, at, column, Cell::Timestamp(v) => Some(*v))
        }
        DataType::Char(_) | DataType::Varchar(_) | DataType::Uuid => {
            cells!(StringBuilder::new(), rows, at, column, Cell::Text(v) => Some(v.as_str()))
        }
        DataType::Binary(_) => {
            cells!(BinaryBuilder::new(), rows, at, column, Cell::Bytes(v) => Some(v.as_slice()))
        }
        DataType::List(element) => {
            let (mut items, mut lengths, mut valid) = (Vec::new(), Vec::new(), Vec::new());
            for (number, row) in rows.iter().enumerate() {
                let before = items.len();
                match &row[at] {
                    Cell::Null => {}
                    Cell::List(list) => items.extend(list.iter().map(|item| vec![item.clone()])),
                    other => return Err(wrong(column, number, other)),
                }
                lengths.push(items.len() - before);
                valid.push(row[at] != Cell::Null);
            }
            let item = Column { data_type: element.data_type(), ..column.clone() };
            let items = array(&item, 0, &items)?;
            let field = Arc::new(Field::new_list_field(items.data_type().clone(), true));
            let offsets = OffsetBuffer::from_lengths(lengths);
            let list = ListArray::try_new(field, offsets, items, Some(NullBuffer::from(valid)));
            Arc::new(list.map_err(|e| Error::Invalid(format!("{}: {e}", column.name)))?)
        }
    })
}

fn wrong(column: &Column, row: usize, cell: &Cell) -> Error {
    Error::Invalid(format!(
        "row {row}: {cell:?} is no value of column {}, which is {}",
        column.name, column.data_type
    ))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn cells_are_values_of_their_columns_or_are_refused() {
        let columns = crate::parse_columns(
            "b BOOLEAN, s SMALLINT, i INTEGER, l BIGINT, d DECIMAL(5,2), r REAL, f DOUBLE, t VARCHAR, x BINARY, \
             da DATE, ti TIME, ts TIMESTAMP, tz TIMESTAMP WITH TIME ZONE, u UUID",
        )
        .expect("columns");
        let good = vec![
            Cell::Bool(true),
            Cell::Int(-7),
            Cell::Int(70_000),
            Cell::Int(i64::MAX),
            Cell::Decimal(-99_999),
            Cell::Float(0.5),
            Cell::Float(0.1),
            Cell::from("a"),
            Cell::Bytes(vec![0, 255]),
            Cell::Date(1),
            Cell::Time(2),
            Cell::Timestamp(3),
            Cell::Timestamp(4),
            Cell::from("00000000-0000-0000-0000-000000000000"),
        ];
        let schema = Arc::new(arrow_schema(&columns));
        let nulls = vec![Cell::Null; columns.len()];
        let rows = [good.clone(), nulls];
        let batch = batch_of(&columns, Arc::clone(&schema), &rows).expect("a batch");
        assert_eq!((batch.num_rows(), batch.num_columns()), (2, columns.len()));
        assert!(batch.columns().iter().all(|array| array.is_valid(0) && array.is_null(1)));
        let bad = [
            (1, Cell::Int(40_000)),
            (2, Cell::Int(1 << 40)),
            (3, Cell::from("1")),
            (4, Cell::Decimal(100_000)),
            (5, Cell::Float(0.1)),
            (7, Cell::Int(1)),
        ];
        for (at, cell) in bad {
            let mut row = good.clone();
            row[at] = cell;
            let refused = batch_of(&columns, Arc::clone(&schema), &[row]);
            assert!(refused.is_err_and(|e| e.to_string().contains("row 0")), "{at}");
        }
        assert!(batch_of(&columns, schema, &[vec![Cell::Null]]).is_err());
    }
}
