//! SQL text to tokens with their places.

use coload_types::{Error, Result};

/// A token and the byte at which it starts.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Token {
    /// Kind of the token, with its text.
    pub kind: Kind,
    /// Byte offset in the text.
    pub at: usize,
}

/// What a token of DDL can be.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Kind {
    /// A bare word: keyword, type or name.
    Word(String),
    /// A name in double quotes, backquotes or brackets, without them.
    Name(String),
    /// A text literal, without its quotes.
    Text(String),
    /// An unsigned number as written.
    Number(String),
    /// Any other character, such as a comma or a bracket.
    Symbol(char),
    /// The end of the text.
    End,
}

impl Kind {
    /// The token for a message.
    pub fn describe(&self) -> String {
        match self {
            Kind::Word(text) | Kind::Number(text) => text.clone(),
            Kind::Name(text) => format!("\"{text}\""),
            Kind::Text(text) => format!("'{text}'"),
            Kind::Symbol(symbol) => format!("'{symbol}'"),
            Kind::End => "the end".to_owned(),
        }
    }
}

/// `Invalid` that names what is read and the place in it.
pub fn error_at(what: &str, sql: &str, at: usize, text: &str) -> Error {
    let before = sql.get(..at).unwrap_or(sql);
    let line = before.matches('\n').count() + 1;
    let column = before.rsplit('\n').next().unwrap_or("").chars().count() + 1;
    Error::Invalid(format!("{what} {line}:{column}: {text}"))
}

/// All tokens, the last of them `End`. `what` names the text in errors.
pub fn tokens(what: &str, sql: &str) -> Result<Vec<Token>> {
    let mut tokens = Vec::new();
    let mut at = 0;
    loop {
        at += skip_blank(what, sql, at)?;
        let rest = &sql[at..];
        let Some(first) = rest.chars().next() else {
            tokens.push(Token { kind: Kind::End, at });
            return Ok(tokens);
        };
        let (kind, len) = match first {
            '[' if is_list(rest, &tokens, &sql[..at]) => (Kind::Symbol(first), 1),
            '\'' | '"' | '`' | '[' => quoted(rest, first)
                .ok_or_else(|| error_at(what, sql, at, &format!("{first} is not closed")))?,
            '0'..='9' => number(rest),
            '.' if rest[1..].starts_with(|c: char| c.is_ascii_digit()) => number(rest),
            _ if first.is_alphabetic() || first == '_' => word(rest),
            _ => (Kind::Symbol(first), first.len_utf8()),
        };
        tokens.push(Token { kind, at });
        at += len;
    }
}

/// Whether a bracket makes a list of the type before it, as in `BIGINT[]` and `BIGINT[3]`, and opens no name.
fn is_list(rest: &str, tokens: &[Token], before: &str) -> bool {
    let inner = rest[1..].split(']').next().unwrap_or_default().trim();
    let follows = before.ends_with(|c: char| c.is_alphanumeric() || matches!(c, ')' | ']'))
        && !matches!(tokens.last(), Some(Token { kind: Kind::Name(_), .. }));
    inner.is_empty() || follows && inner.bytes().all(|byte| byte.is_ascii_digit())
}

/// Bytes of white space and comments at `at`.
fn skip_blank(what: &str, sql: &str, at: usize) -> Result<usize> {
    let mut rest = &sql[at..];
    loop {
        let before = rest.len();
        rest = rest.trim_start();
        if rest.starts_with("--") {
            rest = rest.find('\n').map_or("", |end| &rest[end..]);
        } else if rest.starts_with("/*") {
            let start = sql.len() - rest.len();
            let len = comment_len(rest)
                .ok_or_else(|| error_at(what, sql, start, "the comment is not closed"))?;
            rest = &rest[len..];
        }
        if rest.len() == before {
            return Ok(sql.len() - at - rest.len());
        }
    }
}

/// Bytes of a comment `/* ... */`; such comments nest.
fn comment_len(text: &str) -> Option<usize> {
    let (mut depth, mut at) = (0usize, 0);
    while let Some(pair) = text.as_bytes().get(at..at + 2) {
        match pair {
            b"/*" => (depth, at) = (depth + 1, at + 2),
            b"*/" => (depth, at) = (depth - 1, at + 2),
            _ => at += 1,
        }
        if depth == 0 {
            return Some(at);
        }
    }
    None
}

/// A quoted token and its length; a doubled closing quote stands for itself.
fn quoted(rest: &str, open: char) -> Option<(Kind, usize)> {
    let close = if open == '[' { ']' } else { open };
    let mut text = String::new();
    let mut characters = rest.char_indices().skip(1).peekable();
    while let Some((at, character)) = characters.next() {
        if character != close {
            text.push(character);
        } else if characters.peek().is_some_and(|(_, next)| *next == close) {
            text.push(close);
            characters.next();
        } else {
            let kind = if open == '\'' { Kind::Text(text) } else { Kind::Name(text) };
            return Some((kind, at + close.len_utf8()));
        }
    }
    None
}

/// Digits, points and an exponent; whether it is a number is decided with the type.
fn number(rest: &str) -> (Kind, usize) {
    let bytes = rest.as_bytes();
    let mut len = 0;
    while let Some(byte) = bytes.get(len) {
        let after_exponent = len > 0 && matches!(bytes[len - 1], b'e' | b'E');
        match byte {
            b'0'..=b'9' | b'.' | b'e' | b'E' => len += 1,
            b'+' | b'-' if after_exponent => len += 1,
            _ => break,
        }
    }
    (Kind::Number(rest[..len].to_owned()), len)
}

fn word(rest: &str) -> (Kind, usize) {
    let end = |c: char| !(c.is_alphanumeric() || c == '_' || c == '$');
    let len = rest.find(end).unwrap_or(rest.len());
    (Kind::Word(rest[..len].to_owned()), len)
}
