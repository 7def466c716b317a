//! The rows of an area as lines of text.

use std::io::{self, Read};
use std::sync::Arc;

use coload_types::{Error, Result};

use crate::area::Area;
use crate::book::{Book, Parts, Sheet, needed};
use crate::cells::{Cell, Cells, Held, fault};
use crate::kind::Kind;
use crate::serial::append_serial;
use crate::texts::Texts;

/// Most bytes of a line.
const LINE_BYTES_MAX: usize = 64 << 20;
/// Digits that a power of ten may add to a number that is written without one.
const ZEROS_MAX: usize = 40;

/// Errors of cells, as books write them.
pub const ERRORS: [&str; 16] = [
    "#NULL!",
    "#DIV/0!",
    "#VALUE!",
    "#REF!",
    "#NAME?",
    "#NUM!",
    "#N/A",
    "#GETTING_DATA",
    "#SPILL!",
    "#CALC!",
    "#FIELD!",
    "#BLOCKED!",
    "#UNKNOWN!",
    "#CONNECT!",
    "#BUSY!",
    "#PYTHON!",
];

/// An area of a sheet as text: the first line is the first row of the area.
pub struct SheetLines {
    cells: Cells,
    sheet: String,
    book: Book,
    texts: Arc<Texts>,
    area: Area,
    /// The cell that was read last and belongs to a later row.
    next: Cell,
    state: State,
    /// The row of the line that comes next.
    row: u32,
    out: Vec<u8>,
    taken: usize,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum State {
    /// Nothing was read yet.
    Begins,
    /// `next` is a cell.
    Held,
    Done,
}

impl SheetLines {
    /// The lines of an area of a sheet; `name` is the sheet in messages.
    ///
    /// # Errors
    /// `Input` when the book is damaged, `Limit` when its texts are too many, those of reading.
    pub fn open(
        parts: &dyn Parts,
        book: Book,
        sheet: &Sheet,
        name: &str,
        area: Area,
    ) -> Result<Self> {
        let texts = book.texts(parts)?;
        let cells = Cells::new(needed(parts, &sheet.part)?, name.to_owned());
        Ok(SheetLines {
            cells,
            sheet: name.to_owned(),
            book,
            texts,
            area,
            next: Cell::default(),
            state: State::Begins,
            row: area.rows.0,
            out: Vec::new(),
            taken: 0,
        })
    }

    /// Bytes that are held for as long as it is read.
    pub fn held_bytes(&self) -> usize {
        self.texts.held_bytes()
    }

    /// Reads the next cell of the area.
    fn advance(&mut self) -> Result<()> {
        loop {
            self.state = match self.cells.read(&mut self.next)? {
                true if self.next.row > self.area.rows.1 => State::Done,
                true => State::Held,
                false => State::Done,
            };
            if self.state == State::Done || self.area.has(self.next.row, self.next.column) {
                return Ok(());
            }
        }
    }

    /// Puts the lines up to that of the next row with values into `out`; false when there are no more.
    fn next_lines(&mut self) -> Result<bool> {
        if self.state == State::Begins {
            self.advance()?;
        }
        if self.state == State::Done {
            return Ok(false);
        }
        let row = self.next.row;
        self.out.resize((row - self.row) as usize, b'\n');
        self.row = row + 1;
        let mut column = self.area.columns.0;
        while self.state == State::Held && self.next.row == row {
            self.out.resize(self.out.len() + (self.next.column - column) as usize, b',');
            column = self.next.column;
            self.append_field()?;
            if self.out.len() > LINE_BYTES_MAX {
                return Err(Error::Limit(format!(
                    "{}: row {row} has over {LINE_BYTES_MAX} bytes",
                    self.sheet
                )));
            }
            self.advance()?;
        }
        self.out.resize(self.out.len() + (self.area.columns.1 - column) as usize, b',');
        self.out.push(b'\n');
        Ok(true)
    }

    fn append_field(&mut self) -> Result<()> {
        let cell = &self.next;
        let value = cell.value.trim_ascii();
        let wrong = |what: &str| {
            let shown: String = String::from_utf8_lossy(value).chars().take(64).collect();
            fault(&self.sheet, cell, format!("{shown:?} is no {what} of a cell"))
        };
        match cell.held {
            Held::Text => append_quoted(&cell.value, &mut self.out),
            Held::SharedText => {
                let number = std::str::from_utf8(value).ok().and_then(|text| text.parse().ok());
                let text =
                    number.and_then(|number: usize| self.texts.get(number)).ok_or_else(|| {
                        wrong(&format!("text of the {} in the book", self.texts.len()))
                    })?;
                append_quoted(text, &mut self.out);
            }
            Held::Boolean => self.out.extend_from_slice(match value {
                b"1" | b"true" => b"true",
                b"0" | b"false" => b"false",
                _ => return Err(wrong("truth value")),
            }),
            Held::Error => {
                let is_plain = |byte: &u8| byte.is_ascii_alphanumeric() || b"#/!?_.".contains(byte);
                if value.first() != Some(&b'#') || !value.iter().all(is_plain) {
                    return Err(wrong("error"));
                }
                self.out.extend_from_slice(value);
            }
            Held::Date => {
                let is_plain = |byte: &u8| byte.is_ascii_digit() || b"-:.TZ+ ".contains(byte);
                if !value.iter().all(is_plain) {
                    return Err(wrong("date"));
                }
                self.out.extend_from_slice(value);
            }
            Held::Number => {
                let plain = plain_number(value).ok_or_else(|| wrong("number"))?;
                let kind = self.book.kinds.get(cell.style).copied().unwrap_or_default();
                let days =
                    std::str::from_utf8(value).ok().and_then(|text| text.parse::<f64>().ok());
                let is_told = kind != Kind::Number
                    && days.is_some_and(|days| {
                        append_serial(days, kind, self.book.epoch, &mut self.out)
                    });
                if !is_told {
                    self.out.extend_from_slice(&plain);
                }
            }
        }
        Ok(())
    }
}

impl Read for SheetLines {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        while self.taken == self.out.len() {
            self.out.clear();
            self.taken = 0;
            if !self.next_lines().map_err(io::Error::other)? {
                return Ok(0);
            }
        }
        let taken = buffer.len().min(self.out.len() - self.taken);
        buffer[..taken].copy_from_slice(&self.out[self.taken..self.taken + taken]);
        self.taken += taken;
        Ok(taken)
    }
}

/// Appends a text in quotes, without line ends.
fn append_quoted(text: &[u8], out: &mut Vec<u8>) {
    out.push(b'"');
    for byte in text {
        match byte {
            b'"' => out.extend_from_slice(b"\\\""),
            b'\\' => out.extend_from_slice(b"\\\\"),
            b'\n' => out.extend_from_slice(b"\\n"),
            b'\r' => out.extend_from_slice(b"\\r"),
            byte => out.push(*byte),
        }
    }
    out.push(b'"');
}

/// A number with all of its digits and without a power of ten, if that leaves it short; `None` when it is no number.
fn plain_number(text: &[u8]) -> Option<Vec<u8>> {
    let digits = |text: &[u8]| text.iter().take_while(|byte| byte.is_ascii_digit()).count();
    let (sign, rest) = match text.first()? {
        b'-' => (&b"-"[..], &text[1..]),
        b'+' => (&b""[..], &text[1..]),
        _ => (&b""[..], text),
    };
    let (whole, rest) = rest.split_at(digits(rest));
    let (fraction, rest) = match rest.split_first() {
        Some((b'.', rest)) => rest.split_at(digits(rest)),
        _ => (&b""[..], rest),
    };
    if whole.is_empty() && fraction.is_empty() {
        return None;
    }
    let power: Option<i32> = match rest.split_first() {
        None => Some(0),
        Some((b'e' | b'E', power)) => {
            let unsigned = power.strip_prefix(b"-").or(power.strip_prefix(b"+")).unwrap_or(power);
            if unsigned.is_empty() || digits(unsigned) < unsigned.len() {
                return None;
            }
            let power = std::str::from_utf8(power).ok()?;
            power.parse().ok().filter(|power: &i32| power.unsigned_abs() as usize <= ZEROS_MAX)
        }
        Some(_) => return None,
    };
    let Some(power) = power.filter(|_| whole.len() + fraction.len() <= ZEROS_MAX) else {
        return Some(text.to_vec());
    };
    let all = [whole, fraction].concat();
    let point = whole.len() as i64 + i64::from(power);
    let (mut before, mut after) = match point {
        ..=0 => (Vec::new(), [vec![b'0'; point.unsigned_abs() as usize], all].concat()),
        point if point as usize >= all.len() => {
            let zeros = vec![b'0'; point as usize - all.len()];
            ([all, zeros].concat(), Vec::new())
        }
        point => (all[..point as usize].to_vec(), all[point as usize..].to_vec()),
    };
    let zeros = before.iter().take_while(|byte| **byte == b'0').count();
    before.drain(..zeros);
    if before.is_empty() {
        before.push(b'0');
    }
    // What a power of ten has moved ends with the digits that were written.
    if power > 0 && after.iter().all(|byte| *byte == b'0') {
        after.clear();
    }
    let mut plain = [sign, &before].concat();
    if !after.is_empty() {
        plain.push(b'.');
        plain.extend_from_slice(&after);
    }
    Some(plain)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn numbers_keep_their_digits() {
        for (text, expected) in [
            ("7", "7"),
            ("-0.50", "-0.50"),
            ("1234567890123456789", "1234567890123456789"),
            ("1.2345678901234567E+18", "1234567890123456700"),
            ("1E-3", "0.001"),
            ("2.5e2", "250"),
            ("1.25E+1", "12.5"),
            (".5", "0.5"),
            ("5.", "5"),
            ("007", "7"),
            ("1e300", "1e300"),
            ("0", "0"),
            ("0E0", "0"),
        ] {
            let plain = plain_number(text.as_bytes())
                .map(|plain| String::from_utf8_lossy(&plain).into_owned());
            assert_eq!(plain.as_deref(), Some(expected), "{text}");
        }
        for wrong in ["", "-", ".", "1e", "1e+", "1,5", "NaN", "1 2", "0x1", "--1", "1e1.5"] {
            assert_eq!(plain_number(wrong.as_bytes()), None, "{wrong}");
        }
    }
}
