//! Rows of cells, whatever the form of a cell is.
//!
//! Of a column with codes each value's cell is made once a fragment, and copied for each row.

use coload_ddl::CheckedColumn;
use coload_load::RowBytes;
use coload_types::{Error, Plain, Result, Values};

/// The form of the cells of a column.
pub trait CellForm {
    /// Appends the cell of a value.
    fn put(&self, values: &Values, row: usize, out: &mut Vec<u8>);
}

/// What stands around cells.
#[derive(Debug, Clone)]
pub struct Frame {
    /// Before the first.
    pub start: Vec<u8>,
    /// Between two.
    pub between: &'static [u8],
    /// Behind the last.
    pub end: &'static [u8],
    /// A cell that is NULL.
    pub null: &'static [u8],
}

/// Bytes that a cell takes at a guess.
const CELL_BYTES: usize = 10;
/// Rows after which it is known what a row takes.
const ROWS_MEASURED: usize = 1024;
/// Bytes of a cell that is copied as if it had so many: a copy of a known length is one or two instructions.
const SHORT_BYTES: usize = 32;

/// Makes rows, of columns in the order of the forms.
///
/// # Errors
/// `Corrupt` when there are more or fewer columns.
pub fn make_rows<F: CellForm>(
    forms: &[F],
    frame: &Frame,
    columns: &[CheckedColumn<'_>],
    rows: usize,
) -> Result<RowBytes> {
    if forms.len() != columns.len() {
        return Err(Error::Corrupt(format!("{} columns of {}", columns.len(), forms.len())));
    }
    let pairs = forms.iter().zip(columns);
    let sources: Vec<Source<'_, F>> =
        pairs.map(|(form, column)| Source::new(form, column, frame.null)).collect();
    let measured = rows.min(ROWS_MEASURED);
    let mut bytes = Vec::with_capacity(measured * (2 + CELL_BYTES * sources.len()) + SHORT_BYTES);
    let mut ends = Vec::with_capacity(rows);
    for row in 0..rows {
        if row == ROWS_MEASURED {
            // What the others take, so that the buffer does not grow by a copy.
            let mean = bytes.len() / row + 1;
            bytes.reserve((rows - row) * (mean + mean / 16));
        }
        bytes.extend_from_slice(&frame.start);
        for (number, source) in sources.iter().enumerate() {
            if number > 0 {
                bytes.extend_from_slice(frame.between);
            }
            source.put(row, frame.null, &mut bytes);
        }
        bytes.extend_from_slice(frame.end);
        ends.push(bytes.len());
    }
    Ok(RowBytes { bytes, ends })
}

/// What the cells of a column are made of.
enum Source<'a, F> {
    /// A cell for each code, that of NULL last.
    Cells { codes: &'a [u16], bytes: Vec<u8>, ends: Vec<u32>, values: usize },
    /// The same where all cells are short: bytes behind each are of no meaning.
    Short { codes: &'a [u16], cells: Vec<([u8; SHORT_BYTES], u8)> },
    /// A value for each row.
    Plain { form: &'a F, plain: &'a Plain },
}

impl<'a, F: CellForm> Source<'a, F> {
    fn new(form: &'a F, column: &CheckedColumn<'a>, null: &[u8]) -> Self {
        match *column {
            CheckedColumn::Plain(plain) => Source::Plain { form, plain },
            CheckedColumn::Coded { codes, values } => {
                let mut bytes = Vec::with_capacity(values.len() * CELL_BYTES);
                let mut ends = Vec::with_capacity(values.len() + 2);
                ends.push(0);
                for code in 0..values.len() {
                    form.put(values, code, &mut bytes);
                    ends.push(bytes.len() as u32);
                }
                bytes.extend_from_slice(null);
                ends.push(bytes.len() as u32);
                if ends.windows(2).any(|pair| (pair[1] - pair[0]) as usize > SHORT_BYTES) {
                    return Source::Cells { codes, bytes, ends, values: values.len() };
                }
                let short = |pair: &[u32]| {
                    let cell = &bytes[pair[0] as usize..pair[1] as usize];
                    let mut padded = [0; SHORT_BYTES];
                    padded[..cell.len()].copy_from_slice(cell);
                    (padded, cell.len() as u8)
                };
                Source::Short { codes, cells: ends.windows(2).map(short).collect() }
            }
        }
    }

    #[inline]
    fn put(&self, row: usize, null: &[u8], out: &mut Vec<u8>) {
        match self {
            Source::Cells { codes, bytes, ends, values } => {
                let code = usize::from(codes[row]).min(*values);
                out.extend_from_slice(&bytes[ends[code] as usize..ends[code + 1] as usize]);
            }
            Source::Short { codes, cells } => {
                let (cell, length) = &cells[usize::from(codes[row]).min(cells.len() - 1)];
                let end = out.len() + usize::from(*length);
                out.extend_from_slice(cell);
                out.truncate(end);
            }
            Source::Plain { plain, .. } if plain.is_null(row) => out.extend_from_slice(null),
            Source::Plain { form, plain } => form.put(&plain.values, row, out),
        }
    }
}

/// Appends a cell with its length before it, as [`cells`] reads it.
#[inline]
pub fn put_with_length(out: &mut Vec<u8>, put: impl FnOnce(&mut Vec<u8>)) {
    let start = out.len();
    out.extend_from_slice(&[0; 4]);
    put(out);
    let length = (out.len() - start - 4) as u32;
    out[start..start + 4].copy_from_slice(&length.to_be_bytes());
}

/// Length of a cell that is NULL, where lengths stand before cells.
pub const NULL_LENGTH: &[u8] = &[0xff; 4];

/// Cells of a row that has a count of two bytes and lengths before them: the bytes of each that is not NULL.
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

/// Appends text whose tabs, line ends and backslashes do not end the cell, as COPY and LOAD DATA read it.
pub fn put_escaped(text: &[u8], out: &mut Vec<u8>) {
    let mut rest = text;
    let special = |byte: &u8| matches!(byte, b'\\' | b'\t' | b'\n' | b'\r' | 0);
    while let Some(at) = rest.iter().position(special) {
        out.extend_from_slice(&rest[..at]);
        out.extend_from_slice(match rest[at] {
            b'\\' => b"\\\\",
            b'\t' => b"\\t",
            b'\n' => b"\\n",
            b'\r' => b"\\r",
            // LOAD DATA knows it; PostgreSQL has no such character, and says so.
            _ => b"\\0",
        });
        rest = &rest[at + 1..];
    }
    out.extend_from_slice(rest);
}

/// Appends bytes as hexadecimal digits.
pub fn put_hex(bytes: &[u8], out: &mut Vec<u8>) {
    const DIGITS: &[u8; 16] = b"0123456789abcdef";
    for byte in bytes {
        out.extend_from_slice(&[DIGITS[usize::from(byte >> 4)], DIGITS[usize::from(byte & 15)]]);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn cells_are_those_that_were_put() {
        let mut row = vec![0, 3];
        put_with_length(&mut row, |out| out.extend_from_slice(b"ab"));
        row.extend_from_slice(NULL_LENGTH);
        put_with_length(&mut row, |_| {});
        let read: Vec<_> = cells(&row).collect();
        assert_eq!(read, [Some(&b"ab"[..]), None, Some(&b""[..])]);
        assert_eq!(cells(&[0]).count(), 0);
        assert_eq!(cells(&[0, 1, 0, 0, 0, 9, 1]).count(), 0);
    }

    #[test]
    fn text_does_not_end_its_cell() {
        let mut out = Vec::new();
        put_escaped(b"a\tb\\N\r\n\0z", &mut out);
        assert_eq!(out, b"a\\tb\\\\N\\r\\n\\0z");
    }
}
