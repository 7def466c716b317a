//! Rows as COPY takes them in the format binary: a count of cells, then each with its length before it.
//!
//! ```text
//!   00 03 | 00 00 00 04  00 00 00 2a | ff ff ff ff | 00 00 00 02  68 69
//!   cells   4 bytes      42            NULL          2 bytes      hi
//! ```
//!
//! The cells are those that INSERT takes as parameters, and arrays as elements, too. Of a column with codes each value's
//! cell is made once a fragment, and copied for each row.

use coload_ddl::CheckedColumn;
use coload_load::RowBytes;
use coload_types::{DataType, Error, Plain, Result, Values, f32_from_ordinal, f64_from_ordinal};

use super::numeric::put_numeric;
use crate::engine::{Cell, RowForm, TableColumn};

/// Days from 1970-01-01 to 2000-01-01, from which PostgreSQL counts.
const EPOCH_DAYS: i64 = 10_957;
/// Microseconds of the same.
const EPOCH_MICROS: i64 = EPOCH_DAYS * 86_400_000_000;
/// Length of a cell that is NULL.
const NULL: [u8; 4] = [0xff; 4];
/// Most columns of a row.
const COLUMNS_MAX: usize = i16::MAX as usize;

/// Makes rows of cells in binary.
#[derive(Debug)]
pub struct BinaryRows {
    kinds: Vec<Kind>,
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
        let kinds = columns.iter().map(Kind::of).collect::<Result<_>>()?;
        Ok(BinaryRows { kinds })
    }
}

impl Kind {
    fn of(column: &TableColumn) -> Result<Self> {
        Ok(match (column.cell, column.data_type) {
            (Cell::TextOnly, _) => {
                return Err(Error::Invalid(format!(
                    "column {} is of type {}, which only goes as text (--method copy-text)",
                    column.name, column.type_name
                )));
            }
            (Cell::Jsonb, _) => Kind::Jsonb,
            (Cell::OfType, DataType::Boolean) => Kind::Bool,
            (Cell::OfType, DataType::SmallInt) => Kind::Int2,
            (Cell::OfType, DataType::Integer) => Kind::Int4,
            (Cell::OfType, DataType::BigInt) => Kind::Int8,
            (Cell::OfType, DataType::Decimal { scale, .. }) => Kind::Numeric { scale },
            (Cell::OfType, DataType::Real) => Kind::Float4,
            (Cell::OfType, DataType::Double) => Kind::Float8,
            (Cell::OfType, DataType::Date) => Kind::Date,
            (Cell::OfType, DataType::Time) => Kind::Time,
            (Cell::OfType, DataType::Timestamp | DataType::TimestampTz) => Kind::Timestamp,
            (Cell::OfType, DataType::Uuid) => Kind::Uuid,
            (Cell::OfType, DataType::Char(_) | DataType::Varchar(_) | DataType::Binary(_)) => {
                Kind::Bytes
            }
        })
    }

    #[inline]
    fn put_int(self, value: i64, out: &mut Vec<u8>) {
        match self {
            Kind::Bool => out.extend_from_slice(&[0, 0, 0, 1, u8::from(value != 0)]),
            Kind::Int2 => put_fixed((value as i16).to_be_bytes(), out),
            Kind::Int4 => put_fixed((value as i32).to_be_bytes(), out),
            Kind::Int8 | Kind::Time => put_fixed(value.to_be_bytes(), out),
            Kind::Numeric { scale } => put_numeric(i128::from(value), scale, out),
            Kind::Float4 => put_fixed(f32_from_ordinal(value).to_be_bytes(), out),
            Kind::Float8 => put_fixed(f64_from_ordinal(value).to_be_bytes(), out),
            Kind::Date => put_fixed(((value - EPOCH_DAYS) as i32).to_be_bytes(), out),
            Kind::Timestamp => put_fixed((value - EPOCH_MICROS).to_be_bytes(), out),
            Kind::Uuid | Kind::Bytes | Kind::Jsonb => out.extend_from_slice(&NULL),
        }
    }

    #[inline]
    fn put_wide(self, value: i128, out: &mut Vec<u8>) {
        match self {
            // The top bit is flipped so that numbers are in the order of the identifiers.
            Kind::Uuid => put_fixed((value as u128 ^ (1 << 127)).to_be_bytes(), out),
            Kind::Numeric { scale } => put_numeric(value, scale, out),
            _ => out.extend_from_slice(&NULL),
        }
    }

    #[inline]
    fn put_bytes(self, value: &[u8], out: &mut Vec<u8>) {
        let version: &[u8] = if self == Kind::Jsonb { &[1] } else { &[] };
        out.extend_from_slice(&((value.len() + version.len()) as u32).to_be_bytes());
        out.extend_from_slice(version);
        out.extend_from_slice(value);
    }

    #[inline]
    fn put(self, values: &Values, row: usize, out: &mut Vec<u8>) {
        match values {
            Values::Int(values) => self.put_int(values[row], out),
            Values::Wide(values) => self.put_wide(values[row], out),
            Values::Bytes(values) => self.put_bytes(values.get(row), out),
        }
    }
}

#[inline]
fn put_fixed<const N: usize>(bytes: [u8; N], out: &mut Vec<u8>) {
    out.extend_from_slice(&(N as u32).to_be_bytes());
    out.extend_from_slice(&bytes);
}

/// What the cells of a column are made of.
enum Source<'a> {
    /// A cell for each code, that of NULL last.
    Cells { codes: &'a [u16], bytes: Vec<u8>, ends: Vec<u32>, values: usize },
    /// A value for each row.
    Plain { kind: Kind, plain: &'a Plain },
}

impl<'a> Source<'a> {
    fn new(kind: Kind, column: &CheckedColumn<'a>) -> Self {
        match *column {
            CheckedColumn::Plain(plain) => Source::Plain { kind, plain },
            CheckedColumn::Coded { codes, values } => {
                let mut bytes = Vec::with_capacity(values.len() * 12);
                let mut ends = Vec::with_capacity(values.len() + 2);
                ends.push(0);
                for code in 0..values.len() {
                    kind.put(values, code, &mut bytes);
                    ends.push(bytes.len() as u32);
                }
                bytes.extend_from_slice(&NULL);
                ends.push(bytes.len() as u32);
                Source::Cells { codes, bytes, ends, values: values.len() }
            }
        }
    }

    #[inline]
    fn put(&self, row: usize, out: &mut Vec<u8>) {
        match self {
            Source::Cells { codes, bytes, ends, values } => {
                let code = usize::from(codes[row]).min(*values);
                out.extend_from_slice(&bytes[ends[code] as usize..ends[code + 1] as usize]);
            }
            Source::Plain { plain, .. } if plain.is_null(row) => out.extend_from_slice(&NULL),
            Source::Plain { kind, plain } => kind.put(&plain.values, row, out),
        }
    }
}

/// Bytes that a row takes at a guess, so that the buffer grows seldom.
const CELL_BYTES: usize = 10;

impl RowForm for BinaryRows {
    fn make_rows(&self, columns: &[CheckedColumn<'_>], rows: usize) -> Result<RowBytes> {
        let sources: Vec<Source<'_>> = self
            .kinds
            .iter()
            .zip(columns)
            .map(|(kind, column)| Source::new(*kind, column))
            .collect();
        if sources.len() != self.kinds.len() {
            return Err(Error::Corrupt(format!("{} columns of a row", sources.len())));
        }
        let count = (sources.len() as u16).to_be_bytes();
        let mut bytes = Vec::with_capacity(rows * (2 + CELL_BYTES * sources.len()));
        let mut ends = Vec::with_capacity(rows);
        for row in 0..rows {
            bytes.extend_from_slice(&count);
            for source in &sources {
                source.put(row, &mut bytes);
            }
            ends.push(bytes.len());
        }
        Ok(RowBytes { bytes, ends })
    }
}

/// The cells of a row in binary: a length, and the bytes if it is not NULL.
pub fn cells(row: &[u8]) -> impl Iterator<Item = Option<&[u8]>> {
    let mut rest = row.get(2..).unwrap_or_default();
    std::iter::from_fn(move || {
        let (length, after) = rest.split_first_chunk::<4>()?;
        match usize::try_from(i32::from_be_bytes(*length)) {
            Err(_) => {
                rest = after;
                Some(None)
            }
            Ok(length) => {
                let (cell, after) = after.split_at_checked(length)?;
                rest = after;
                Some(Some(cell))
            }
        }
    })
}
