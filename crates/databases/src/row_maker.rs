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

    /// A cell that is NULL, if it is another one than that of the frame.
    fn null(&self) -> Option<&'static [u8]> {
        None
    }

    /// Whether there are values that the column does not hold, and the server would not refuse.
    fn may_refuse(&self) -> bool {
        false
    }

    /// Why the column does not hold a value, and the value as text.
    fn why_not(&self, _values: &Values, _row: usize) -> Option<(&'static str, Vec<u8>)> {
        None
    }
}

/// What a row begins with, in place of its cells, that has a value which its column does not hold: a byte with which no row
/// of such a form begins.
const REFUSED: u8 = 0;

/// Appends a row that is not sent: the number of the column, why, and the value.
fn put_refused(column: usize, (why, value): &(&str, Vec<u8>), out: &mut Vec<u8>) {
    out.push(REFUSED);
    out.extend_from_slice(&(column as u32).to_le_bytes());
    out.extend_from_slice(&(why.len() as u32).to_le_bytes());
    out.extend_from_slice(why.as_bytes());
    out.extend_from_slice(value);
}

/// Column, reason and value of a row that is not to be sent; `None` for a row that is.
pub fn refused(row: &[u8]) -> Option<(usize, String, String)> {
    let (&[REFUSED], rest) = row.split_first_chunk()? else { return None };
    let (column, rest) = rest.split_first_chunk()?;
    let (length, rest) = rest.split_first_chunk()?;
    let (why, value) = rest.split_at_checked(u32::from_le_bytes(*length) as usize)?;
    let text = |bytes: &[u8]| String::from_utf8_lossy(bytes).into_owned();
    Some((u32::from_le_bytes(*column) as usize, text(why), text(value)))
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
    let sources: Vec<Source<'_, F>> = pairs
        .map(|(form, column)| Source::new(form, column, form.null().unwrap_or(frame.null)))
        .collect();
    let measured = rows.min(ROWS_MEASURED);
    let mut bytes = Vec::with_capacity(measured * (2 + CELL_BYTES * sources.len()) + SHORT_BYTES);
    let mut ends = Vec::with_capacity(rows);
    let checks: Vec<(usize, Checks<'_, F>)> = forms
        .iter()
        .zip(columns)
        .enumerate()
        .filter_map(|(number, (form, column))| Some((number, Checks::new(form, column)?)))
        .collect();
    for row in 0..rows {
        let wrong = checks.iter().find_map(|(number, check)| Some((number, check.why_not(row)?)));
        if let Some((number, why)) = wrong {
            put_refused(*number, &why, &mut bytes);
            ends.push(bytes.len());
            continue;
        }
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
            source.put(row, forms[number].null().unwrap_or(frame.null), &mut bytes);
        }
        bytes.extend_from_slice(frame.end);
        ends.push(bytes.len());
    }
    Ok(RowBytes { bytes, ends })
}

/// What tells whether a column holds its values.
enum Checks<'a, F> {
    /// What is wrong with the value of each code, if anything is.
    Coded { codes: &'a [u16], wrong: Vec<Option<(&'static str, Vec<u8>)>> },
    /// Each value is asked for.
    Plain { form: &'a F, plain: &'a Plain },
}

impl<'a, F: CellForm> Checks<'a, F> {
    /// `None` where nothing can be wrong, or nothing is.
    fn new(form: &'a F, column: &CheckedColumn<'a>) -> Option<Self> {
        if !form.may_refuse() {
            return None;
        }
        match *column {
            CheckedColumn::Plain(plain) => Some(Checks::Plain { form, plain }),
            CheckedColumn::Coded { codes, values } => {
                let wrong: Vec<_> =
                    (0..values.len()).map(|code| form.why_not(values, code)).collect();
                let is_any = wrong.iter().any(Option::is_some);
                is_any.then_some(Checks::Coded { codes, wrong })
            }
        }
    }

    fn why_not(&self, row: usize) -> Option<(&'static str, Vec<u8>)> {
        match self {
            Checks::Coded { codes, wrong } => wrong.get(usize::from(codes[row])).cloned().flatten(),
            Checks::Plain { plain, .. } if plain.is_null(row) => None,
            Checks::Plain { form, plain } => form.why_not(&plain.values, row),
        }
    }
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
