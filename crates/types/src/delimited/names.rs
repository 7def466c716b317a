//! The line of names of a file that is written: it waits for the first rows, as they decide how it is written.
//!
//! ```text
//!   id,"name"      LF        "a,b"           CRLF      "a,b"           LF
//!   1,"Ada"        LF        "x"             LF                        CRLF
//!   quotes tell names        the end of their line     no rows: the end of an empty line behind them
//! ```
//!
//! Most programs that read CSV take both ends for the end of a line (DuckDB refuses files that have both unless it is told otherwise); none
//! that is known writes them so.
//!
//! Memory: [`HEAD_BYTES`] of rows, and one row.

use super::{is_plain_name, names_in_quotes, push_quoted};

/// Bytes of rows after which it is decided: a part of what a load looks at.
const HEAD_BYTES: usize = 64 << 10;
/// A first row that is longer may be longer than what a load looks at.
const FIRST_ROW_BYTES_MAX: usize = 1 << 20;
/// What texts are in.
const QUOTE: u8 = b'"';

/// Whether a name or a text is in quotes in any file, so that its quotes tell nothing.
pub fn tells_nothing(text: &[u8]) -> bool {
    text.iter().any(|byte| b",;|\t\"\r\n".contains(byte))
}

/// The line of names, and the rows that wait for it.
#[derive(Debug)]
pub struct NamesLine {
    /// For each column its name, and whether it is text.
    columns: Vec<(String, bool)>,
    delimiter: u8,
    /// Rows with their line ends.
    waiting: Vec<u8>,
    rows: Rows,
    has_values: bool,
    /// Whether a text is in quotes that it would not need.
    has_telling_text: bool,
}

/// What rows there are.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Rows {
    None,
    /// The first is longer than what a load looks at.
    Long,
    Some,
}

impl NamesLine {
    /// Of columns with these names, which are text or not.
    pub fn new(columns: Vec<(String, bool)>, delimiter: u8) -> Self {
        NamesLine {
            columns,
            delimiter,
            waiting: Vec::new(),
            rows: Rows::None,
            has_values: false,
            has_telling_text: false,
        }
    }

    /// Takes note of a value of a column.
    pub fn note_value(&mut self, column: usize, text: &[u8]) {
        self.has_values = true;
        let is_text = self.columns.get(column).is_some_and(|(_, is_text)| *is_text);
        self.has_telling_text |= is_text && !tells_nothing(text);
    }

    /// Takes a row, with its line end. What is to be written, once it is decided: then nothing waits any more.
    pub fn push_row(&mut self, line: &[u8]) -> Option<Vec<u8>> {
        if self.rows == Rows::None {
            self.rows = if line.len() > FIRST_ROW_BYTES_MAX { Rows::Long } else { Rows::Some };
        }
        self.waiting.extend_from_slice(line);
        (self.waiting.len() >= HEAD_BYTES).then(|| self.take())
    }

    /// Whether only the end of the line tells the names, as far as rows wait: some programs refuse such files.
    pub fn is_told_by_its_end(&self) -> bool {
        !self.quotes_tell(&self.in_quotes())
    }

    /// The line, and the rows that wait.
    pub fn take(&mut self) -> Vec<u8> {
        let in_quotes = self.in_quotes();
        let tells = self.quotes_tell(&in_quotes);
        let mut out = Vec::with_capacity(self.waiting.len() + 64);
        for (index, ((name, _), in_quotes)) in self.columns.iter().zip(in_quotes).enumerate() {
            if index > 0 {
                out.push(self.delimiter);
            }
            match in_quotes || !tells {
                true => push_quoted(&mut out, name.as_bytes(), QUOTE),
                false => out.extend_from_slice(name.as_bytes()),
            }
        }
        out.extend_from_slice(match (tells, self.rows) {
            (true, _) => b"\n",
            (false, Rows::None) => b"\n\r\n",
            (false, _) => b"\r\n",
        });
        out.append(&mut self.waiting);
        out
    }

    fn in_quotes(&self) -> Vec<bool> {
        names_in_quotes(self.columns.iter().map(|(name, is_text)| (&**name, *is_text)))
    }

    /// Whether quotes tell the names from rows, and texts from other values.
    fn quotes_tell(&self, in_quotes: &[bool]) -> bool {
        let names = || self.columns.iter().zip(in_quotes);
        let is_telling = |name: &str, quoted: &bool| *quoted && !tells_nothing(name.as_bytes());
        let telling = self.has_telling_text || names().any(|((name, _), q)| is_telling(name, q));
        let some_bare = in_quotes.contains(&false);
        let are_plain =
            names().all(|((name, _), quoted)| *quoted || is_plain_name(name.as_bytes()));
        let has_text = self.columns.iter().any(|(_, is_text)| *is_text);
        telling
            && match self.rows {
                Rows::None => self.columns.len() > 1 && some_bare && are_plain,
                Rows::Long => false,
                Rows::Some => some_bare || !has_text && self.has_values,
            }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_end_of_the_line_tells_names_where_quotes_do_not() {
        for (columns, rows, expected) in [
            (
                &[("id", false), ("name", true)][..],
                &["1,\"Ada\"\n"][..],
                "id,\"name\"\n1,\"Ada\"\n",
            ),
            (&[("id", false), ("name", true)], &[], "id,\"name\"\n"),
            (&[("a,b", true)], &["\"x\"\n"], "\"a,b\"\r\n\"x\"\n"),
            (&[("a,b", true)], &[], "\"a,b\"\n\r\n"),
            (&[("id", false)], &["1\n"], "\"id\"\n1\n"),
            (&[("a,b", false)], &["1\n"], "\"a,b\"\r\n1\n"),
            (&[("note", true)], &["\"x\"\n"], "note\n\"x\"\n"),
            (&[("note", true)], &["\"1,5\"\n"], "\"note\"\r\n\"1,5\"\n"),
            (&[("note", true)], &["\n"], "\"note\"\r\n\n"),
            (&[("1", true), ("2", true)], &["\"x\",\n"], "\"1\",\"2\"\r\n\"x\",\n"),
        ] {
            let columns: Vec<_> = columns.iter().map(|(n, t)| ((*n).to_owned(), *t)).collect();
            let mut line = NamesLine::new(columns, b',');
            for row in rows {
                let fields = row.trim_end().trim_matches('"').split("\",\"");
                fields.enumerate().filter(|(_, f)| !f.is_empty()).for_each(|(column, field)| {
                    line.note_value(column, field.as_bytes());
                });
                assert_eq!(line.push_row(row.as_bytes()), None);
            }
            assert_eq!(String::from_utf8_lossy(&line.take()), expected);
        }
    }
}
