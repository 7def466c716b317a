//! COPY .. FROM STDIN, which is a load, and COPY .. TO STDOUT.
//!
//! ```text
//!   COPY t (b, a) FROM STDIN (FORMAT csv, HEADER, DELIMITER ';', NULL 'NULL')
//!   COPY t FROM STDIN WITH CSV HEADER          the older form of options
//!   COPY (SELECT ..) TO STDOUT
//! ```

use bytes::{BufMut, BytesMut};
use coload_ddl::Schema;
use coload_load::LoadRequest;
use coload_source::{Dialect, Escapes, Header};
use coload_types::{Error, Result, same_name};
use coload_wire::{ColumnFrom, Derivation};
use datafusion::sql::sqlparser::tokenizer::Token;

use super::command::{Command, Words, behind_word, unexpected};
use super::fault::{Fault, code};

/// The formats of a COPY.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum CopyFormat {
    Text,
    Csv,
    /// Rows that come are read as the text that they become ([`super::copy_binary`]).
    Binary,
}

/// How rows of a COPY are written.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct CopyForm {
    pub format: CopyFormat,
    pub delimiter: u8,
    pub null: String,
    pub header: bool,
    pub quote: u8,
    pub escape: u8,
}

/// Rows that a client sends.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct CopyIn {
    pub table: String,
    /// Columns of the rows; those of the table if empty.
    pub columns: Vec<String>,
    pub form: CopyForm,
}

/// Rows that a client wants.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct CopyOut {
    pub query: String,
    pub form: CopyForm,
}

/// Reads a COPY behind its first word; `None` when it is one of a file, which is the engine's.
///
/// # Errors
/// When it is neither.
pub(super) fn parse(words: &mut Words, text: &str) -> std::result::Result<Option<Command>, Fault> {
    if words.peek() == Some(&Token::LParen) {
        let query = in_brackets(behind_word(text, "COPY").unwrap_or_default())
            .ok_or_else(|| Fault::error(code::INVALID, "a bracket of COPY does not end"))?;
        skip_brackets(words);
        if !words.skip("TO") || !words.skip("STDOUT") {
            // A file at the server, or what the engine has words for.
            return Ok(None);
        }
        let form = options(words)?;
        return Ok(Some(Command::CopyOut(CopyOut { query: query.to_owned(), form })));
    }
    let mut table = words.name()?;
    while words.skip_sign(&Token::Period) {
        // There is one schema.
        let schema = std::mem::replace(&mut table, words.name()?);
        if !crate::catalog::is_schema(&schema) {
            return Err(Fault::error(code::NO_TABLE, format!("schema {schema} does not exist")));
        }
    }
    let mut columns = Vec::new();
    if words.skip_sign(&Token::LParen) {
        loop {
            columns.push(words.name()?);
            if !words.skip_sign(&Token::Comma) {
                break;
            }
        }
        if !words.skip_sign(&Token::RParen) {
            return Err(unexpected(words.peek(), ")"));
        }
    }
    if words.skip("FROM") {
        if !words.skip("STDIN") {
            return Ok(None);
        }
        let form = options(words)?;
        return Ok(Some(Command::CopyIn(CopyIn { table, columns, form })));
    }
    if !words.skip("TO") {
        return Err(unexpected(words.peek(), "FROM or TO"));
    }
    if !words.skip("STDOUT") {
        return Ok(None);
    }
    let form = options(words)?;
    let quoted = |name: &String| format!("\"{}\"", name.replace('"', "\"\""));
    let listed: Vec<String> = columns.iter().map(quoted).collect();
    let listed = if listed.is_empty() { "*".to_owned() } else { listed.join(", ") };
    let query = format!("SELECT {listed} FROM {}", quoted(&table));
    Ok(Some(Command::CopyOut(CopyOut { query, form })))
}

/// What stands in the first brackets of a text.
fn in_brackets(text: &str) -> Option<&str> {
    let start = text.find('(')? + 1;
    let (mut depth, mut quote) = (1, None);
    for (at, c) in text[start..].char_indices() {
        match (quote, c) {
            (Some(open), c) if c == open => quote = None,
            (Some(_), _) => {}
            (None, '\'' | '"') => quote = Some(c),
            (None, '(') => depth += 1,
            (None, ')') => depth -= 1,
            _ => {}
        }
        if depth == 0 {
            return Some(&text[start..start + at]);
        }
    }
    None
}

fn skip_brackets(words: &mut Words) {
    let mut depth = 0;
    while let Some(token) = words.next() {
        match token {
            Token::LParen => depth += 1,
            Token::RParen => depth -= 1,
            _ => {}
        }
        if depth == 0 {
            return;
        }
    }
}

/// What was said of the form, before the defaults are known.
#[derive(Default)]
struct Said {
    format: Option<String>,
    delimiter: Option<String>,
    null: Option<String>,
    header: bool,
    quote: Option<String>,
    escape: Option<String>,
}

/// Reads the options in either form, up to the end.
fn options(words: &mut Words) -> std::result::Result<CopyForm, Fault> {
    let mut said = Said::default();
    words.skip("WITH");
    if words.skip_sign(&Token::LParen) {
        loop {
            option(words, &mut said)?;
            if !words.skip_sign(&Token::Comma) {
                break;
            }
        }
        if !words.skip_sign(&Token::RParen) {
            return Err(unexpected(words.peek(), ")"));
        }
    } else {
        older_options(words, &mut said)?;
    }
    words.end()?;
    said.form()
}

fn option(words: &mut Words, said: &mut Said) -> std::result::Result<(), Fault> {
    let name = words.name()?;
    let value = match words.peek() {
        Some(Token::Comma | Token::RParen) | None => None,
        _ => match words.next() {
            Some(Token::Word(word)) => Some(word.value),
            Some(Token::SingleQuotedString(text) | Token::EscapedStringLiteral(text)) => Some(text),
            Some(Token::Number(digits, _)) => Some(digits),
            other => return Err(unexpected(other.as_ref(), "a value")),
        },
    };
    let word = value.as_deref().unwrap_or("true").to_ascii_lowercase();
    let truth = match &*word {
        "true" | "on" | "1" => Some(true),
        "false" | "off" | "0" => Some(false),
        _ => None,
    };
    match (&*name, truth) {
        ("format", _) => said.format = Some(word),
        ("delimiter", _) => said.delimiter = value,
        ("null", _) => said.null = Some(value.unwrap_or_default()),
        ("quote", _) => said.quote = value,
        ("escape", _) => said.escape = value,
        ("header", Some(truth)) => said.header = truth,
        ("encoding", _) if matches!(&*word, "utf8" | "utf-8" | "unicode") => {}
        // Rows of a load are frozen from the start.
        ("freeze", Some(_)) => {}
        _ => {
            let shown = value.map_or(String::new(), |value| format!(" {value}"));
            return Err(Fault::error(
                code::UNSUPPORTED,
                format!("COPY with {}{shown}", name.to_uppercase()),
            ));
        }
    }
    Ok(())
}

fn older_options(words: &mut Words, said: &mut Said) -> std::result::Result<(), Fault> {
    fn text(words: &mut Words) -> std::result::Result<Option<String>, Fault> {
        words.skip("AS");
        match words.next() {
            Some(Token::SingleQuotedString(text) | Token::EscapedStringLiteral(text)) => {
                Ok(Some(text))
            }
            other => Err(unexpected(other.as_ref(), "a text in quotes")),
        }
    }
    loop {
        if words.skip("CSV") {
            said.format = Some("csv".into());
        } else if words.skip("BINARY") {
            said.format = Some("binary".into());
        } else if words.skip("HEADER") {
            said.header = true;
        } else if words.skip("DELIMITER") || words.skip("DELIMITERS") {
            said.delimiter = text(words)?;
        } else if words.skip("NULL") {
            said.null = text(words)?;
        } else if words.skip("QUOTE") {
            said.quote = text(words)?;
        } else if words.skip("ESCAPE") {
            said.escape = text(words)?;
        } else {
            return Ok(());
        }
    }
}

impl Said {
    fn form(self) -> std::result::Result<CopyForm, Fault> {
        let format = match self.format.as_deref() {
            None | Some("text") => CopyFormat::Text,
            Some("csv") => CopyFormat::Csv,
            Some("binary") => CopyFormat::Binary,
            Some(other) => {
                let text = format!("COPY in the format {other}: use text, csv or binary");
                return Err(Fault::error(code::UNSUPPORTED, text));
            }
        };
        let is_csv = format == CopyFormat::Csv;
        let is_said = self.delimiter.is_some() || self.null.is_some() || self.header;
        if format == CopyFormat::Binary && is_said {
            let text = "DELIMITER, NULL and HEADER are of the formats text and csv";
            return Err(Fault::error(code::PARAMETER, text));
        }
        let one = |said: Option<String>, otherwise: u8, what: &str| match said
            .as_deref()
            .map(str::as_bytes)
        {
            None => Ok(otherwise),
            Some([byte]) if byte.is_ascii() && !matches!(byte, b'\n' | b'\r' | 0) => Ok(*byte),
            Some(_) => {
                let text = format!("{what} of COPY is one character of ASCII");
                Err(Fault::error(code::PARAMETER, text))
            }
        };
        if !is_csv && (self.quote.is_some() || self.escape.is_some()) {
            return Err(Fault::error(code::PARAMETER, "QUOTE and ESCAPE are of the format csv"));
        }
        let quote = one(self.quote, b'"', "QUOTE")?;
        let null = self.null.unwrap_or_else(|| if is_csv { String::new() } else { "\\N".into() });
        Ok(CopyForm {
            format,
            delimiter: one(self.delimiter, if is_csv { b',' } else { b'\t' }, "DELIMITER")?,
            null,
            header: self.header,
            quote,
            escape: one(self.escape, if is_csv { quote } else { b'\\' }, "ESCAPE")?,
        })
    }
}

impl CopyForm {
    /// The format text, with nothing said.
    #[cfg(test)]
    pub fn text() -> Self {
        CopyForm {
            format: CopyFormat::Text,
            delimiter: b'\t',
            null: "\\N".into(),
            header: false,
            quote: b'"',
            escape: b'\\',
        }
    }

    /// The same as a dialect of loads.
    fn dialect(&self) -> Dialect {
        let common = Dialect {
            delimiter: self.delimiter,
            header: if self.header { Header::Present } else { Header::Absent },
            nulls: vec![self.null.clone().into_bytes()],
            ..Dialect::default()
        };
        match self.format == CopyFormat::Csv {
            true => Dialect {
                quote: Some(self.quote),
                escape: (self.escape != self.quote).then_some(self.escape),
                ..common
            },
            false => Dialect {
                quote: None,
                escape: Some(self.escape),
                escapes: Escapes::Letters,
                ..common
            },
        }
    }

    /// Appends a field, with what stands before it.
    pub fn put(&self, is_first: bool, field: Option<&[u8]>, out: &mut BytesMut) {
        if !is_first {
            out.put_u8(self.delimiter);
        }
        match field {
            None => out.put_slice(self.null.as_bytes()),
            Some(text) if self.format == CopyFormat::Csv => self.put_csv(text, out),
            Some(text) => text.iter().for_each(|byte| self.put_escaped(*byte, out)),
        }
    }

    fn put_csv(&self, text: &[u8], out: &mut BytesMut) {
        let special =
            |b: &u8| *b == self.delimiter || *b == self.quote || matches!(b, b'\n' | b'\r');
        // `\.` alone in a line would be the end.
        if text != self.null.as_bytes() && text != b"\\." && !text.iter().any(special) {
            return out.put_slice(text);
        }
        out.put_u8(self.quote);
        for byte in text {
            if *byte == self.quote || *byte == self.escape {
                out.put_u8(self.escape);
            }
            out.put_u8(*byte);
        }
        out.put_u8(self.quote);
    }

    fn put_escaped(&self, byte: u8, out: &mut BytesMut) {
        let letter = match byte {
            b'\x08' => b'b',
            b'\t' => b't',
            b'\n' => b'n',
            b'\x0b' => b'v',
            b'\x0c' => b'f',
            b'\r' => b'r',
            b'\\' => b'\\',
            other if other == self.delimiter => other,
            other => return out.put_u8(other),
        };
        out.put_slice(&[b'\\', letter]);
    }
}

impl CopyIn {
    /// The load that it is, into a table with these columns.
    ///
    /// # Errors
    /// `Invalid` when a column is none of the table's, or comes twice.
    pub fn request(&self, table: &str, schema: &Schema) -> Result<LoadRequest> {
        let names = std::sync::Arc::new(coload_input::Names::from_iter(["STDIN"]));
        let inputs = coload_input::Inputs::streams(names, "STDIN".into());
        let dialect = self.form.dialect();
        dialect.check().map_err(|e| Error::Invalid(format!("COPY: {e}")))?;
        let mut request = LoadRequest::new(inputs, table, schema.clone(), dialect);
        if self.columns.is_empty() {
            return Ok(request);
        }
        let mut read = Vec::new();
        for name in &self.columns {
            let column = schema.columns().iter().find(|column| same_name(&column.name, name));
            let column = column.ok_or_else(|| {
                Error::Invalid(format!("column {name} of table {table} does not exist"))
            })?;
            read.push(column.clone());
        }
        let read = Schema::new(read)?;
        let from = |column: &coload_types::Column| {
            let index = read.columns().iter().position(|c| c.name == column.name);
            index.map_or_else(|| ColumnFrom::Constant(column.default.clone()), ColumnFrom::Read)
        };
        let columns = schema.columns().iter().map(from).collect();
        let derivation = Derivation { read, columns };
        derivation.check(schema, None)?;
        request.derivation = Some(derivation);
        Ok(request)
    }
}

/// Rows of a COPY up to the line `\.`, which some clients send behind them.
#[derive(Debug, Default)]
pub(super) struct Rows {
    /// Bytes that may be the start of that line.
    held: Vec<u8>,
    is_within_line: bool,
    is_over: bool,
}

impl Rows {
    /// What of the bytes is rows.
    ///
    /// # Errors
    /// When rows follow the end.
    pub fn take(&mut self, bytes: &[u8]) -> std::result::Result<Vec<u8>, Fault> {
        if self.is_over {
            return match bytes.is_empty() {
                true => Ok(Vec::new()),
                false => {
                    Err(Fault::error(code::VALUE, "COPY: rows behind the line \\. that ends them"))
                }
            };
        }
        let mut all = std::mem::take(&mut self.held);
        all.extend_from_slice(bytes);
        let starts = (!self.is_within_line).then_some(0);
        let behind = memchr::memmem::find_iter(&all, b"\n\\").map(|at| at + 1);
        for at in starts.into_iter().chain(behind) {
            match &all[at..] {
                [b'\\', b'.', b'\n', rest @ ..] | [b'\\', b'.', b'\r', b'\n', rest @ ..] => {
                    self.is_over = true;
                    let has_rest = !rest.is_empty();
                    all.truncate(at);
                    return match has_rest {
                        true => self.take(b"x"),
                        false => Ok(all),
                    };
                }
                [b'\\'] | [b'\\', b'.'] | [b'\\', b'.', b'\r'] => {
                    self.held = all.split_off(at);
                    self.is_within_line = false;
                    return Ok(all);
                }
                _ => {}
            }
        }
        if let Some(last) = all.last() {
            self.is_within_line = *last != b'\n';
        }
        Ok(all)
    }

    /// What was held when nothing follows.
    pub fn end(self) -> Vec<u8> {
        match &self.held[..] {
            b"\\." | b"\\.\r" => Vec::new(),
            _ => self.held,
        }
    }
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]
    use super::super::command::parse as parse_command;
    use super::*;

    fn copied(text: &str) -> Option<Command> {
        parse_command(text, |_| false).unwrap()
    }

    fn text_form() -> CopyForm {
        let form = Said::default().form().unwrap();
        assert_eq!(form, CopyForm::text());
        form
    }

    #[test]
    fn both_forms_of_options_are_read() {
        let Some(Command::CopyIn(copy)) = copied(
            "COPY public.\"T\" (b, a) FROM STDIN WITH CSV HEADER DELIMITER ';' NULL AS 'NULL'",
        ) else {
            panic!()
        };
        assert_eq!((&*copy.table, &copy.columns[..]), ("T", &["b".to_owned(), "a".to_owned()][..]));
        let expected = CopyForm {
            format: CopyFormat::Csv,
            delimiter: b';',
            null: "NULL".into(),
            header: true,
            quote: b'"',
            escape: b'"',
        };
        assert_eq!(copy.form, expected);
        let Some(Command::CopyIn(copy)) =
            copied("copy t from stdin (format csv, header, delimiter ';', null 'NULL')")
        else {
            panic!()
        };
        assert_eq!(copy.form, expected);
        let Some(Command::CopyOut(copy)) = copied("COPY (SELECT ')' FROM t) TO STDOUT;") else {
            panic!()
        };
        assert_eq!((&*copy.query, copy.form), ("SELECT ')' FROM t", text_form()));
        for text in [
            "COPY t FROM STDIN (FORMAT binary, HEADER)",
            "COPY t FROM STDIN (DELIMITER '||')",
            "COPY t FROM STDIN QUOTE 'x'",
            "COPY t FROM STDIN (FORCE_NULL (a))",
        ] {
            assert!(parse_command(text, |_| false).is_err(), "{text}");
        }
        assert_eq!(copied("COPY (SELECT 1) TO 'f.csv'"), None);
    }

    #[test]
    fn rows_end_with_their_mark_wherever_it_is_cut() {
        let text = b"a\\.\tb\n\\.c\n\\.\n";
        for cut in 0..text.len() {
            let mut rows = Rows::default();
            let mut taken = rows.take(&text[..cut]).unwrap();
            taken.extend(rows.take(&text[cut..]).unwrap());
            taken.extend(rows.end());
            assert_eq!(taken, b"a\\.\tb\n\\.c\n", "{cut}");
        }
        let mut rows = Rows::default();
        assert!(rows.take(b"\\.\nmore\n").is_err());
    }

    #[test]
    fn fields_are_written_so_that_they_are_read_back() {
        let mut out = BytesMut::new();
        text_form().put(true, Some(b"a\tb\\\n"), &mut out);
        text_form().put(false, None, &mut out);
        assert_eq!(&out[..], b"a\\tb\\\\\\n\t\\N");
        let csv = CopyForm {
            format: CopyFormat::Csv,
            delimiter: b',',
            null: String::new(),
            header: false,
            quote: b'"',
            escape: b'"',
        };
        out.clear();
        csv.put(true, Some(b""), &mut out);
        csv.put(false, Some(b"a\"b"), &mut out);
        csv.put(false, None, &mut out);
        assert_eq!(&out[..], b"\"\",\"a\"\"b\",");
    }
}
