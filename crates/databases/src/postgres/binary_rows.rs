//! Rows as COPY takes them in the format binary: a count of cells, then each with its length before it.
//!
//! ```text
//!   00 03 | 00 00 00 04  00 00 00 2a | ff ff ff ff | 00 00 00 02  68 69
//!   cells   4 bytes      42            NULL          2 bytes      hi
//! ```
//!
//! The cells are those that INSERT takes as parameters, and arrays as elements, too.

use coload_ddl::CheckedColumn;
use coload_load::RowBytes;
use coload_types::{DataType, Error, Result, Values, f32_from_ordinal, f64_from_ordinal};

use crate::engine::{Cell, RowForm, TableColumn};
use crate::row_maker::{CellForm, Frame, NULL_LENGTH, make_rows};
use coload_types::postgres_numeric::put_numeric;

/// Days from 1970-01-01 to 2000-01-01, from which PostgreSQL counts.
const EPOCH_DAYS: i64 = 10_957;
/// Microseconds of the same.
const EPOCH_MICROS: i64 = EPOCH_DAYS * 86_400_000_000;
/// Most columns of a row.
const COLUMNS_MAX: usize = i16::MAX as usize;

/// Makes rows of cells in binary.
#[derive(Debug)]
pub struct BinaryRows {
    kinds: Vec<Kind>,
    frame: Frame,
}

/// How a value becomes a cell.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Kind {
    Bool,
    Int2,
    Int4,
    Int8,
    Numeric { scale: u8 },
    Float4,
    Float8,
    Date,
    Time,
    Timestamp,
    Uuid,
    Bytes,
    Jsonb,
}

impl BinaryRows {
    /// For rows of these columns.
    ///
    /// # Errors
    /// `Invalid` when only the server can read the text of one.
    pub fn new(columns: &[TableColumn]) -> Result<Self> {
        if columns.len() > COLUMNS_MAX {
            return Err(Error::Limit(format!(
                "{} columns of at most {COLUMNS_MAX}",
                columns.len()
            )));
        }
        let kinds = columns.iter().map(Kind::of).collect::<Result<Vec<_>>>()?;
        let start = (kinds.len() as u16).to_be_bytes().to_vec();
        let frame = Frame { start, between: b"", end: b"", null: NULL_LENGTH };
        Ok(BinaryRows { kinds, frame })
    }
}

impl Kind {
    fn of(column: &TableColumn) -> Result<Self> {
        Ok(match (column.cell, column.data_type) {
            (Cell::Rounds, _) => return Err(column.rounds()),
            (Cell::TextOnly, _) => return Err(column.text_only()),
            (Cell::Jsonb, _) => Kind::Jsonb,
            (Cell::OfType | Cell::Hex, DataType::Boolean) => Kind::Bool,
            (Cell::OfType | Cell::Hex, DataType::SmallInt) => Kind::Int2,
            (Cell::OfType | Cell::Hex, DataType::Integer) => Kind::Int4,
            (Cell::OfType | Cell::Hex, DataType::BigInt) => Kind::Int8,
            (Cell::OfType | Cell::Hex, DataType::Decimal { scale, .. }) => Kind::Numeric { scale },
            (Cell::OfType | Cell::Hex, DataType::Real) => Kind::Float4,
            (Cell::OfType | Cell::Hex, DataType::Double) => Kind::Float8,
            (Cell::OfType | Cell::Hex, DataType::Date) => Kind::Date,
            (Cell::OfType | Cell::Hex, DataType::Time) => Kind::Time,
            (Cell::OfType | Cell::Hex, DataType::Timestamp | DataType::TimestampTz) => {
                Kind::Timestamp
            }
            (Cell::OfType | Cell::Hex, DataType::Uuid) => Kind::Uuid,
            (
                Cell::OfType | Cell::Hex,
                DataType::Char(_) | DataType::Varchar(_) | DataType::Binary(_),
            ) => Kind::Bytes,
            (Cell::OfType | Cell::Hex, DataType::List(_)) => return Err(column.text_only()),
        })
    }

    #[inline]
    fn put_int(self, value: i64, out: &mut Vec<u8>) {
        match self {
            Kind::Bool => out.extend_from_slice(&[0, 0, 0, 1, u8::from(value != 0)]),
            Kind::Int2 => put_fixed::<6>(&(value as i16).to_be_bytes(), out),
            Kind::Int4 => put_fixed::<8>(&(value as i32).to_be_bytes(), out),
            Kind::Int8 | Kind::Time => put_fixed::<12>(&value.to_be_bytes(), out),
            Kind::Numeric { scale } => put_numeric(i128::from(value), scale, out),
            Kind::Float4 => put_fixed::<8>(&f32_from_ordinal(value).to_be_bytes(), out),
            Kind::Float8 => put_fixed::<12>(&f64_from_ordinal(value).to_be_bytes(), out),
            Kind::Date => put_fixed::<8>(&((value - EPOCH_DAYS) as i32).to_be_bytes(), out),
            Kind::Timestamp => put_fixed::<12>(&(value - EPOCH_MICROS).to_be_bytes(), out),
            Kind::Uuid | Kind::Bytes | Kind::Jsonb => out.extend_from_slice(NULL_LENGTH),
        }
    }

    #[inline]
    fn put_wide(self, value: i128, out: &mut Vec<u8>) {
        match self {
            // The top bit is flipped so that numbers are in the order of the identifiers.
            Kind::Uuid => put_fixed::<20>(&(value as u128 ^ (1 << 127)).to_be_bytes(), out),
            Kind::Numeric { scale } => put_numeric(value, scale, out),
            _ => out.extend_from_slice(NULL_LENGTH),
        }
    }

    #[inline]
    fn put_bytes(self, value: &[u8], out: &mut Vec<u8>) {
        let version: &[u8] = if self == Kind::Jsonb { &[1] } else { &[] };
        out.extend_from_slice(&((value.len() + version.len()) as u32).to_be_bytes());
        out.extend_from_slice(version);
        out.extend_from_slice(value);
    }
}

/// Appends a cell of `N - 4` bytes with its length, at once: room is asked for once.
#[inline]
fn put_fixed<const N: usize>(bytes: &[u8], out: &mut Vec<u8>) {
    let mut cell = [0; N];
    cell[3] = (N - 4) as u8;
    cell[4..].copy_from_slice(bytes);
    out.extend_from_slice(&cell);
}

impl CellForm for Kind {
    #[inline]
    fn put(&self, values: &Values, row: usize, out: &mut Vec<u8>) {
        match values {
            Values::Int(values) => self.put_int(values[row], out),
            Values::Wide(values) => self.put_wide(values[row], out),
            Values::Bytes(values) => self.put_bytes(values.get(row), out),
        }
    }
}

impl RowForm for BinaryRows {
    fn make_rows(&self, columns: &[CheckedColumn<'_>], rows: usize) -> Result<RowBytes> {
        make_rows(&self.kinds, &self.frame, columns, rows)
    }
}
