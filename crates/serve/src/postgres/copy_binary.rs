//! Rows of COPY in the format binary. Those that come become rows of the format text, which is what a load reads; a load reads
//! the values of that text again, so what it says of a wrong one names the row and the field.
//!
//! ```text
//!   PGCOPY\n\xff\r\n\0, flags (4 bytes), length of what follows (4)     header
//!   fields (2), then of each its length (4; -1 for NULL) and bytes      a row
//!   -1 (2)                                                              the end
//! ```
//!
//! Memory: the bytes of a row that has not come whole.

use bytes::BytesMut;
use coload_types::display::{write_int, write_value};
use coload_types::postgres_numeric::{Number, read_numeric};
use coload_types::{DECIMAL_PRECISION_MAX, DataType, Value, ordinal_from_f32, ordinal_from_f64};

use super::copy::CopyForm;
use super::fault::{Fault, code};
use super::parameters::uuid_text;
use super::values::{EPOCH_DAYS, EPOCH_MICROS};

const SIGNATURE: &[u8] = b"PGCOPY\n\xff\r\n\0";
/// Bytes before what the header may have besides.
const HEADER_BYTES: usize = SIGNATURE.len() + 8;
/// Bytes of a row that are held until it is whole.
const ROW_BYTES_MAX: usize = 64 << 20;
/// The flag of rows with numbers of their own, which PostgreSQL has given up.
const WITH_OIDS: u32 = 1 << 16;

/// What stands before the rows of an answer.
pub(super) fn put_header(out: &mut BytesMut) {
    out.extend_from_slice(SIGNATURE);
    out.extend_from_slice(&[0; 8]);
}

/// What stands behind them.
pub(super) fn put_trailer(out: &mut BytesMut) {
    out.extend_from_slice(&(-1_i16).to_be_bytes());
}

/// Where in the rows a client is.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum At {
    Header,
    Rows,
    End,
}

/// Rows that a client sends.
#[derive(Debug)]
pub(super) struct BinaryRows {
    types: Vec<DataType>,
    /// The text that they become.
    form: CopyForm,
    held: Vec<u8>,
    at: At,
    rows: u64,
}

impl BinaryRows {
    /// Rows with columns of these types.
    pub fn new(types: Vec<DataType>, form: CopyForm) -> Self {
        BinaryRows { types, form, held: Vec::new(), at: At::Header, rows: 0 }
    }

    /// The text of the rows that are whole by now.
    ///
    /// # Errors
    /// When they are no such rows.
    pub fn take(&mut self, bytes: &[u8]) -> Result<Vec<u8>, Fault> {
        let mut held = std::mem::take(&mut self.held);
        held.extend_from_slice(bytes);
        let (mut rest, mut out) = (&held[..], BytesMut::new());
        while let Some(taken) = self.take_one(rest, &mut out)? {
            rest = &rest[taken..];
        }
        if rest.len() > ROW_BYTES_MAX {
            let text = format!("COPY: row {} has over {ROW_BYTES_MAX} bytes", self.rows + 1);
            return Err(Fault::error(code::LIMIT, text));
        }
        self.held = rest.to_vec();
        Ok(out.to_vec())
    }

    /// Checks that they were whole when nothing follows.
    ///
    /// # Errors
    /// When a row was begun.
    pub fn end(self) -> Result<(), Fault> {
        match self.held.is_empty() && self.at != At::Header {
            true => Ok(()),
            false => Err(wrong(format!("the rows ended within row {}", self.rows + 1))),
        }
    }

    /// Takes the header or a row off the bytes, if it is there whole; how many bytes it has.
    fn take_one(&mut self, bytes: &[u8], out: &mut BytesMut) -> Result<Option<usize>, Fault> {
        match self.at {
            At::Header => {
                let known = bytes.len().min(SIGNATURE.len());
                if bytes[..known] != SIGNATURE[..known] {
                    return Err(wrong("they do not begin with PGCOPY: is this text?".into()));
                }
                let Some(flags) = number(bytes, SIGNATURE.len()) else { return Ok(None) };
                if flags as u32 & WITH_OIDS != 0 {
                    return Err(wrong("rows with OIDs".into()));
                }
                let Some(more) = number(bytes, SIGNATURE.len() + 4) else { return Ok(None) };
                let more =
                    usize::try_from(more).map_err(|_| wrong("a header of no length".into()))?;
                let all = HEADER_BYTES.saturating_add(more);
                if all > ROW_BYTES_MAX {
                    return Err(wrong(format!("a header of {all} bytes")));
                }
                if bytes.len() < all {
                    return Ok(None);
                }
                self.at = At::Rows;
                Ok(Some(all))
            }
            At::Rows => self.take_row(bytes, out),
            At::End if bytes.is_empty() => Ok(None),
            At::End => Err(wrong("rows behind the mark that ends them".into())),
        }
    }

    fn take_row(&mut self, bytes: &[u8], out: &mut BytesMut) -> Result<Option<usize>, Fault> {
        let Some(fields) = bytes.first_chunk::<2>().map(|two| i16::from_be_bytes(*two)) else {
            return Ok(None);
        };
        if fields == -1 {
            self.at = At::End;
            return Ok(Some(2));
        }
        let row = self.rows + 1;
        if usize::try_from(fields) != Ok(self.types.len()) {
            let wanted = self.types.len();
            return Err(wrong(format!(
                "row {row} has {fields} fields, and there are {wanted} columns"
            )));
        }
        // Not a byte is written of a row that is not there.
        let mut places = Vec::with_capacity(self.types.len());
        let mut at = 2;
        for field in 1..=self.types.len() {
            let Some(length) = number(bytes, at) else { return Ok(None) };
            at += 4;
            if length == -1 {
                places.push(None);
                continue;
            }
            let length = usize::try_from(length).map_err(|_| {
                wrong(format!("field {field} of row {row} has the length {length}"))
            })?;
            let end = at.saturating_add(length);
            places.push(Some(at..end));
            at = end;
        }
        if bytes.len() < at {
            return Ok(None);
        }
        let mut text = Vec::new();
        for (index, (place, data_type)) in places.into_iter().zip(&self.types).enumerate() {
            let field = match place {
                None => None,
                Some(place) => {
                    text.clear();
                    put_text(&bytes[place], *data_type, &mut text).ok_or_else(|| {
                        wrong(format!("field {} of row {row} is no binary {data_type}", index + 1))
                    })?;
                    Some(&text[..])
                }
            };
            self.form.put(index == 0, field, out);
        }
        out.extend_from_slice(b"\n");
        self.rows = row;
        Ok(Some(at))
    }
}

fn wrong(what: String) -> Fault {
    Fault::error(code::BINARY_VALUE, format!("COPY in binary: {what}"))
}

/// The number of four bytes at a place.
fn number(bytes: &[u8], at: usize) -> Option<i32> {
    bytes.get(at..)?.first_chunk().map(|four| i32::from_be_bytes(*four))
}

/// Appends the text of a value; `None` when the bytes are no value of the type, or one beyond the years 0001 to 9999.
fn put_text(bytes: &[u8], data_type: DataType, out: &mut Vec<u8>) -> Option<()> {
    /// Days from 1970-01-01 to 0001-01-01 and to 9999-12-31.
    const DAYS: std::ops::RangeInclusive<i64> = -719_162..=2_932_896;
    const DAY_MICROS: i64 = 86_400_000_000;
    let eight = || bytes.try_into().ok().map(i64::from_be_bytes);
    match data_type {
        DataType::Boolean => match bytes {
            [byte @ (0 | 1)] => write_int((*byte).into(), data_type, out),
            _ => return None,
        },
        // Clients send the type that they have, and the load looks whether it fits.
        DataType::SmallInt | DataType::Integer | DataType::BigInt => {
            let value = match bytes.len() {
                2 => i16::from_be_bytes(bytes.try_into().ok()?).into(),
                4 => i32::from_be_bytes(bytes.try_into().ok()?).into(),
                _ => eight()?,
            };
            write_int(value, DataType::BigInt, out);
        }
        DataType::Real => {
            let value = f32::from_be_bytes(bytes.try_into().ok()?);
            write_int(ordinal_from_f32(value), data_type, out);
        }
        DataType::Double => {
            let value = match bytes.len() {
                4 => f32::from_be_bytes(bytes.try_into().ok()?).into(),
                _ => f64::from_be_bytes(bytes.try_into().ok()?),
            };
            write_int(ordinal_from_f64(value), data_type, out);
        }
        DataType::Decimal { .. } => {
            // Digits behind the point, which stand in the fourth field.
            let scale = u16::from_be_bytes(*bytes.get(6..8)?.first_chunk()?);
            let scale = u8::try_from(scale).ok().filter(|scale| *scale <= DECIMAL_PRECISION_MAX)?;
            match read_numeric(bytes, scale)? {
                Number::Exact(digits) => {
                    let as_sent = DataType::Decimal { precision: DECIMAL_PRECISION_MAX, scale };
                    write_value(&Value::Wide(digits), as_sent, out);
                }
                Number::Told(text) => out.extend_from_slice(text.as_bytes()),
            }
        }
        DataType::Date => {
            let days =
                i64::from(i32::from_be_bytes(bytes.try_into().ok()?)) + i64::from(EPOCH_DAYS);
            write_int(Some(days).filter(|days| DAYS.contains(days))?, data_type, out);
        }
        DataType::Time => {
            let micros = eight().filter(|micros| (0..DAY_MICROS).contains(micros))?;
            write_int(micros, data_type, out);
        }
        DataType::Timestamp | DataType::TimestampTz => {
            let micros = eight()?.checked_add(EPOCH_MICROS)?;
            let is_known = DAYS.contains(&micros.div_euclid(DAY_MICROS));
            write_int(Some(micros).filter(|_| is_known)?, data_type, out);
        }
        DataType::Binary(_) => {
            out.extend_from_slice(b"\\x");
            for byte in bytes {
                out.extend_from_slice(format!("{byte:02x}").as_bytes());
            }
        }
        DataType::Uuid if bytes.len() == 16 => {
            out.extend_from_slice(uuid_text(bytes.try_into().ok()?).as_bytes());
        }
        DataType::Uuid | DataType::Char(_) | DataType::Varchar(_) => out.extend_from_slice(bytes),
        DataType::List(element) => put_array(bytes, element.data_type(), out)?,
    }
    Some(())
}

/// Appends the text of an array of one dimension, or of none, which has no elements.
fn put_array(bytes: &[u8], element: DataType, out: &mut Vec<u8>) -> Option<()> {
    /// The number of dimensions, whether there are NULLs, and the type of the elements.
    const HEAD_BYTES: usize = 12;
    let mut rest = bytes.get(HEAD_BYTES..)?;
    let count = match number(bytes, 0)? {
        0 => 0,
        1 => {
            // The least subscript, which a list has not, follows.
            let count = number(rest, 0)?;
            rest = rest.get(8..)?;
            u32::try_from(count).ok()?
        }
        _ => return None,
    };
    out.push(b'{');
    let mut text = Vec::new();
    for item in 0..count {
        if item > 0 {
            out.push(b',');
        }
        let length = number(rest, 0)?;
        rest = &rest[4..];
        if length == -1 {
            out.extend_from_slice(b"NULL");
            continue;
        }
        let (value, after) = rest.split_at_checked(usize::try_from(length).ok()?)?;
        rest = after;
        text.clear();
        put_text(value, element, &mut text)?;
        coload_types::write_postgres_element(&text, out);
    }
    out.push(b'}');
    rest.is_empty().then_some(())
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]
    use super::*;

    fn rows() -> BinaryRows {
        let types = vec![DataType::Integer, DataType::Varchar(None), DataType::Date];
        BinaryRows::new(types, CopyForm::text())
    }

    fn sent() -> Vec<u8> {
        let mut bytes = BytesMut::new();
        put_header(&mut bytes);
        for row in [
            [Some(&7_i32.to_be_bytes()[..]), Some(b"a\tb\\".as_slice()), None],
            [None, Some(b""), Some(&(-1_i32).to_be_bytes())],
        ] {
            bytes.extend_from_slice(&3_i16.to_be_bytes());
            for field in row {
                let length = field.map_or(-1, |field| field.len() as i32);
                bytes.extend_from_slice(&length.to_be_bytes());
                bytes.extend_from_slice(field.unwrap_or_default());
            }
        }
        put_trailer(&mut bytes);
        bytes.to_vec()
    }

    #[test]
    fn rows_become_text_however_they_are_cut() {
        let sent = sent();
        for step in 1..=sent.len() {
            let (mut rows, mut text) = (rows(), Vec::new());
            for piece in sent.chunks(step) {
                text.extend(rows.take(piece).unwrap());
            }
            rows.end().unwrap();
            assert_eq!(
                String::from_utf8(text).unwrap(),
                "7\ta\\tb\\\\\t\\N\n\\N\t\t1999-12-31\n",
                "{step}"
            );
        }
    }

    #[test]
    fn what_is_not_whole_or_none_of_them_is_refused() {
        let sent = sent();
        for cut in 0..sent.len() - 2 {
            let mut rows = rows();
            let at_row =
                rows.take(&sent[..cut]).map(|_| rows.held.is_empty() && rows.at == At::Rows);
            let is_whole = at_row.unwrap();
            assert_eq!(rows.end().is_ok(), is_whole, "{cut}");
        }
        for (at, byte) in [(0, b'x'), (12, 1), (20, 9), (21, 0xf0), (24, 3)] {
            let mut wrong = sent.clone();
            wrong[at] = byte;
            let mut rows = rows();
            let taken = rows.take(&wrong);
            assert!(taken.is_err() || rows.end().is_err(), "{at}");
        }
        let mut behind = sent.clone();
        behind.push(0);
        assert!(rows().take(&behind).is_err());
    }

    #[test]
    fn values_of_every_type_become_what_a_load_reads() {
        let decimal = DataType::Decimal { precision: 9, scale: 2 };
        let number = [0, 2, 0, 0, 0x40, 0, 0, 3, 0, 1, 0x13, 0x88];
        for (bytes, data_type, text) in [
            (&[1][..], DataType::Boolean, "true"),
            (&300_i16.to_be_bytes(), DataType::BigInt, "300"),
            (&i64::MIN.to_be_bytes(), DataType::SmallInt, "-9223372036854775808"),
            (&1.5_f32.to_be_bytes(), DataType::Double, "1.5"),
            (&number, decimal, "-1.500"),
            (&0_i64.to_be_bytes(), DataType::Timestamp, "2000-01-01 00:00:00"),
            (&[0xde, 0xad], DataType::Binary(None), "\\xdead"),
            (&[0xa0; 16], DataType::Uuid, "a0a0a0a0-a0a0-a0a0-a0a0-a0a0a0a0a0a0"),
        ] {
            let mut out = Vec::new();
            put_text(bytes, data_type, &mut out).unwrap();
            assert_eq!(String::from_utf8(out).unwrap(), text, "{data_type}");
        }
        for (bytes, data_type) in [
            (&[2][..], DataType::Boolean),
            (&[1, 2, 3], DataType::Integer),
            (&i32::MAX.to_be_bytes(), DataType::Date),
            (&i64::MAX.to_be_bytes(), DataType::Timestamp),
            (&[0, 1], decimal),
        ] {
            assert!(put_text(bytes, data_type, &mut Vec::new()).is_none(), "{data_type}");
        }
    }
}
