//! What requests are made of: headers, names, types and values of parameters.

use super::types::{PARTS, kind};

/// Most UTF-16 units of a text that does not go in parts.
const SHORT_UNITS: usize = 4000;
/// Length of a value in parts of which nobody says the length.
const UNKNOWN_PARTS: u64 = u64::MAX - 1;

/// Procedures that have numbers.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Procedure {
    /// Runs a statement with parameters.
    ExecuteSql = 10,
    /// Prepares a statement, and gives its handle.
    Prepare = 11,
    /// Runs one that was prepared.
    Execute = 12,
    /// Forgets one.
    Unprepare = 15,
}

/// Appends the headers of a request: the transaction that it is in.
pub fn put_descriptor(transaction: u64, out: &mut Vec<u8>) {
    out.extend_from_slice(&22_u32.to_le_bytes());
    out.extend_from_slice(&18_u32.to_le_bytes());
    out.extend_from_slice(&2_u16.to_le_bytes());
    out.extend_from_slice(&transaction.to_le_bytes());
    // One request at a time.
    out.extend_from_slice(&1_u32.to_le_bytes());
}

/// Appends UTF-8 as UTF-16, the low byte first; how many units it has.
pub fn put_utf16(text: &[u8], out: &mut Vec<u8>) -> usize {
    let start = out.len();
    match text.is_ascii() {
        true => {
            out.resize(start + 2 * text.len(), 0);
            for (unit, byte) in out[start..].chunks_exact_mut(2).zip(text) {
                unit[0] = *byte;
            }
        }
        false => {
            let text = String::from_utf8_lossy(text);
            out.extend(text.encode_utf16().flat_map(u16::to_le_bytes));
        }
    }
    (out.len() - start) / 2
}

/// Appends a name behind its length, which is one byte.
pub fn put_name(name: &str, out: &mut Vec<u8>) {
    let at = out.len();
    out.push(0);
    // Names have 128 characters at most, as the server says.
    out[at] = put_utf16(name.as_bytes(), out).min(255) as u8;
    out.truncate(at + 1 + 2 * usize::from(out[at]));
}

/// Appends the name `@P` and a number. There is one for each value of a row, so that no text is made of it.
pub fn put_numbered_name(number: usize, out: &mut Vec<u8>) {
    let digits = number.checked_ilog10().unwrap_or(0) + 1;
    out.extend_from_slice(&[2 + digits as u8, b'@', 0, b'P', 0]);
    for place in (0..digits).rev() {
        out.extend_from_slice(&[b'0' + (number / 10_usize.pow(place) % 10) as u8, 0]);
    }
}

/// Appends bytes as a value in parts.
pub fn put_plp(bytes: &[u8], out: &mut Vec<u8>) {
    out.extend_from_slice(&UNKNOWN_PARTS.to_le_bytes());
    for part in bytes.chunks(u32::MAX as usize) {
        out.extend_from_slice(&(part.len() as u32).to_le_bytes());
        out.extend_from_slice(part);
    }
    out.extend_from_slice(&0_u32.to_le_bytes());
}

/// Appends a parameter that is a text.
pub fn put_text_parameter(name: &str, text: &str, collation: [u8; 5], out: &mut Vec<u8>) {
    put_name(name, out);
    out.push(0);
    put_text_value(text, collation, out);
}

/// Appends the type of a text and the text.
pub fn put_text_value(text: &str, collation: [u8; 5], out: &mut Vec<u8>) {
    let mut units = Vec::with_capacity(text.len() * 2);
    let count = put_utf16(text.as_bytes(), &mut units);
    out.push(kind::NVARCHAR);
    if count > SHORT_UNITS {
        out.extend_from_slice(&PARTS.to_le_bytes());
        out.extend_from_slice(&collation);
        put_plp(&units, out);
    } else {
        out.extend_from_slice(&(2 * SHORT_UNITS as u16).to_le_bytes());
        out.extend_from_slice(&collation);
        out.extend_from_slice(&(units.len() as u16).to_le_bytes());
        out.extend_from_slice(&units);
    }
}

/// Appends the beginning of a call.
pub fn put_call(procedure: Procedure, transaction: u64, out: &mut Vec<u8>) {
    put_descriptor(transaction, out);
    out.extend_from_slice(&PARTS.to_le_bytes());
    out.extend_from_slice(&(procedure as u16).to_le_bytes());
    out.extend_from_slice(&0_u16.to_le_bytes());
}

/// Appends a parameter that is a whole number of four bytes, or NULL; `given_back` says that the procedure sets it.
pub fn put_int_parameter(name: &str, value: Option<i32>, given_back: bool, out: &mut Vec<u8>) {
    put_name(name, out);
    out.push(u8::from(given_back));
    out.extend_from_slice(&[kind::INTN, 4]);
    match value {
        Some(value) => {
            out.push(4);
            out.extend_from_slice(&value.to_le_bytes());
        }
        None => out.push(0),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_text_is_in_parts_when_it_is_long() {
        let mut out = Vec::new();
        put_text_parameter("@P1", "a😀", [9, 4, 0xd0, 0, 0x34], &mut out);
        let expected = [
            3, b'@', 0, b'P', 0, b'1', 0, 0, 0xe7, 0x40, 0x1f, 9, 4, 0xd0, 0, 0x34, 6, 0, b'a', 0,
            0x3d, 0xd8, 0, 0xde,
        ];
        assert_eq!(out, expected);
        out.clear();
        put_text_value(&"x".repeat(4001), [0; 5], &mut out);
        assert_eq!(out[..3], [0xe7, 0xff, 0xff]);
        assert_eq!(out[8..16], (u64::MAX - 1).to_le_bytes());
        assert_eq!(out[16..20], 8002_u32.to_le_bytes());
        assert_eq!(out.len(), 20 + 8002 + 4);
    }

    #[test]
    fn a_numbered_name_is_as_the_same_text() {
        for number in [0, 1, 9, 10, 99, 100, 2098, usize::MAX] {
            let (mut numbered, mut written) = (Vec::new(), Vec::new());
            put_numbered_name(number, &mut numbered);
            put_name(&format!("@P{number}"), &mut written);
            assert_eq!(numbered, written);
        }
    }

    #[test]
    fn a_name_that_is_too_long_does_not_break_the_message() {
        let mut out = Vec::new();
        put_name(&"n".repeat(300), &mut out);
        assert_eq!((out[0], out.len()), (255, 511));
    }
}
