//! Lists, maps and groups as texts of JSON, whatever format has them.
//!
//! Items and fields have a comma and a space between them, and names a colon and a space behind them: `[1, null]`, `{"k": 1}`.

use coload_types::write_json_string;

use crate::fault::{Fault, Result};
use crate::slice::{Bits, Slice, SliceValues};
use crate::strings::Strings;
use crate::value::{Scalar, write_scalar};

/// A text of JSON that is being written.
#[derive(Debug)]
pub struct JsonText {
    out: Vec<u8>,
    /// Most bytes that it may have.
    bytes_max: u64,
}

/// What stands around items or fields.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Brackets {
    /// Around the items of a list.
    Square,
    /// Around names and values.
    Curly,
}

impl Brackets {
    fn pair(self) -> [u8; 2] {
        match self {
            Brackets::Square => *b"[]",
            Brackets::Curly => *b"{}",
        }
    }
}

impl JsonText {
    /// Writes NULL.
    pub fn null(&mut self) {
        self.out.extend_from_slice(b"null");
    }

    /// Writes a value.
    pub fn value(&mut self, value: Scalar<'_>) {
        write_json(value, &mut self.out);
    }

    /// Writes what is JSON already.
    pub fn json(&mut self, json: &[u8]) {
        self.out.extend_from_slice(json);
    }

    /// Begins items or fields.
    pub fn open(&mut self, brackets: Brackets) {
        self.out.push(brackets.pair()[0]);
    }

    /// Ends them.
    pub fn close(&mut self, brackets: Brackets) {
        self.out.push(brackets.pair()[1]);
    }

    /// Another item or field comes.
    ///
    /// # Errors
    /// `TooLarge` when the text has more bytes than it may.
    pub fn next(&mut self, is_first: bool) -> Result<()> {
        if !is_first {
            self.out.extend_from_slice(b", ");
        }
        self.check()
    }

    /// Writes the name of a field, which is JSON already.
    pub fn name(&mut self, name: &str) {
        self.out.extend_from_slice(name.as_bytes());
        self.out.extend_from_slice(b": ");
    }

    /// Where the key of a map starts that is written next.
    pub fn begin_key(&self) -> usize {
        self.out.len()
    }

    /// What was written since `start` is a key, which is a string, whatever it is.
    pub fn end_key(&mut self, start: usize) {
        if self.out.get(start) != Some(&b'"') {
            let key = self.out.split_off(start);
            write_json_string(&key, &mut self.out);
        }
        self.out.extend_from_slice(b": ");
    }

    fn check(&self) -> Result<()> {
        match self.out.len() as u64 {
            bytes if bytes > self.bytes_max => Err(Fault::TooLarge(bytes)),
            _ => Ok(()),
        }
    }
}

/// Rows of a column of texts of JSON that are being written.
#[derive(Debug)]
pub struct JsonRows {
    /// The text of all rows, to which that of the next is added.
    pub text: JsonText,
    /// Where each row starts, and the last one ends.
    places: Vec<usize>,
    valid: Vec<u8>,
    has_nulls: bool,
}

impl JsonRows {
    /// No rows yet, of so many; their texts may have `bytes_max` bytes.
    pub fn new(rows: usize, bytes_max: u64) -> Self {
        let mut places = Vec::with_capacity(rows + 1);
        places.push(0);
        // A text has no more bytes than its columns of rows have.
        let text = JsonText { out: Vec::new(), bytes_max: bytes_max.min(u32::MAX.into()) };
        JsonRows { text, places, valid: vec![0; rows.div_ceil(8)], has_nulls: false }
    }

    /// What was written since the last row is a row: one that is nothing but `null` is NULL.
    ///
    /// # Errors
    /// `TooLarge` when the text has more bytes than it may.
    pub fn end_row(&mut self) -> Result<()> {
        self.text.check()?;
        let row = self.places.len() - 1;
        let start = self.places[row];
        if self.text.out[start..] == *b"null" {
            self.text.out.truncate(start);
            self.has_nulls = true;
        } else if let Some(byte) = self.valid.get_mut(row / 8) {
            *byte |= 1 << (row % 8);
        }
        self.places.push(self.text.out.len());
        Ok(())
    }

    /// The rows.
    pub fn finish(self) -> Slice<'static> {
        let JsonRows { text, places, valid, has_nulls } = self;
        let rows = places.len() - 1;
        let bits = has_nulls.then(|| Bits::new(valid));
        Slice::new(
            rows,
            bits,
            SliceValues::Strings(Strings::Ends { places, bytes: text.out.into() }),
        )
    }
}

/// A name as a key of JSON.
pub fn json_name(name: &str) -> String {
    let mut out = Vec::new();
    write_json_string(name.as_bytes(), &mut out);
    String::from_utf8_lossy(&out).into_owned()
}

/// Appends a value as JSON: numbers with all of their digits, truths as such; texts, dates, times, UUIDs and bytes as strings, bytes in
/// hexadecimal digits; floats that are no numbers, which JSON has not, as the strings `NaN`, `Infinity`, `-Infinity`.
pub fn write_json(value: Scalar<'_>, out: &mut Vec<u8>) {
    match value {
        Scalar::Bool(_) | Scalar::Number(..) | Scalar::Long(..) => write_scalar(value, out),
        Scalar::Single(float) if float.is_finite() => write_scalar(value, out),
        Scalar::Double(float) if float.is_finite() => write_scalar(value, out),
        Scalar::Single(float) => write_no_number(f64::from(float), out),
        Scalar::Double(float) => write_no_number(float, out),
        Scalar::Text(text) => write_json_string(text, out),
        Scalar::Bytes(bytes) => {
            const DIGITS: &[u8; 16] = b"0123456789abcdef";
            out.push(b'"');
            out.extend(
                bytes
                    .iter()
                    .flat_map(|b| [DIGITS[usize::from(b >> 4)], DIGITS[usize::from(b & 15)]]),
            );
            out.push(b'"');
        }
        other => {
            out.push(b'"');
            write_scalar(other, out);
            out.push(b'"');
        }
    }
}

fn write_no_number(float: f64, out: &mut Vec<u8>) {
    out.extend_from_slice(match (float.is_nan(), float > 0.0) {
        (true, _) => b"\"NaN\"",
        (false, true) => b"\"Infinity\"",
        (false, false) => b"\"-Infinity\"",
    });
}
