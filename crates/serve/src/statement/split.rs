//! A text of several statements.

use datafusion::sql::sqlparser::tokenizer::{Location, Token, Tokenizer};

use super::dialect::Grammar;

/// What a text holds, up to its end.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Statements {
    /// Statements that end with a semicolon, without it.
    pub complete: Vec<String>,
    /// What follows the last semicolon, blank if nothing does: a statement that a shell waits for
    /// the rest of.
    pub rest: String,
    /// The line of the text, from 1, on which each of `complete` starts, and `rest` if it is not blank.
    pub lines: Vec<usize>,
}

/// Cuts a text at the semicolons that are not in quotes or comments.
///
/// A text with a quote or comment that does not end has all of it from the last semicolon before as
/// `rest`.
pub fn split_statements(text: &str) -> Statements {
    let mut tokens = Vec::new();
    // On an error the tokens before it are there.
    let _ = Tokenizer::new(&Grammar::new(0), text).tokenize_with_location_into_buf(&mut tokens);
    let mut found = Statements::default();
    let (mut cursor, mut start, mut line) = (Cursor::new(text), 0, 1);
    for token in tokens.iter().filter(|token| token.token == Token::SemiColon) {
        let end = cursor.advance_to(token.span.start);
        let statement = text[start..end].trim();
        if !statement.is_empty() {
            found.complete.push(statement.to_owned());
            found.lines.push(line + blank_lines(&text[start..end]));
        }
        start = cursor.advance_to(token.span.end);
        line = cursor.at.line as usize;
    }
    found.rest = text[start..].trim().to_owned();
    if !found.rest.is_empty() {
        found.lines.push(line + blank_lines(&text[start..]));
    }
    found
}

/// Line ends before the first character that is not blank.
fn blank_lines(text: &str) -> usize {
    let blank = &text[..text.len() - text.trim_start().len()];
    blank.matches('\n').count()
}

/// A place in a text that goes forward, by bytes and as the tokeniser counts: lines and columns from 1, columns in
/// characters. All places of a text take one walk.
struct Cursor<'a> {
    text: &'a str,
    byte: usize,
    at: Location,
}

impl<'a> Cursor<'a> {
    fn new(text: &'a str) -> Self {
        Cursor { text, byte: 0, at: Location { line: 1, column: 1 } }
    }

    /// Goes on to a place and says at which byte it is.
    fn advance_to(&mut self, place: Location) -> usize {
        let rest = &self.text[self.byte..];
        for c in rest.chars() {
            if (self.at.line, self.at.column) >= (place.line, place.column) {
                break;
            }
            self.byte += c.len_utf8();
            match c {
                '\n' => self.at = Location { line: self.at.line + 1, column: 1 },
                _ => self.at.column += 1,
            }
        }
        self.byte
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn check(text: &str, complete: &[&str], rest: &str) {
        let found = split_statements(text);
        assert_eq!(found.complete, complete, "{text}");
        assert_eq!(found.rest, rest, "{text}");
    }

    #[test]
    fn semicolons_end_statements_but_not_in_quotes_and_comments() {
        check("select 1; select 2", &["select 1"], "select 2");
        check("select ';';\nselect \"a;b\" -- ; \n;", &["select ';'", "select \"a;b\" -- ;"], "");
        check("/* ; */ select 'é;é' ;x", &["/* ; */ select 'é;é'"], "x");
        check(";; ", &[], "");
        check("select 'open ; ", &[], "select 'open ;");
        check("a; select 'open ; ", &["a"], "select 'open ;");
        check("a;\n\nb\r\n;é; 日;c", &["a", "b", "é", "日"], "c");
    }

    #[test]
    fn each_statement_is_found_on_its_line() {
        let text = "select 1;\n\n  select\n2; select 3;;\n\nselect 'a\nb';\n rest\n";
        let found = split_statements(text);
        assert_eq!(found.complete.len(), 4);
        assert_eq!(found.lines, [1, 3, 4, 6, 8]);
        assert_eq!(split_statements(" \n").lines, [0; 0]);
    }
}
