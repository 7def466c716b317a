//! Words of statements, and types as they are declared.

use super::types::{SqlError, Type, error};

#[derive(Debug, Clone, PartialEq)]
pub enum Token {
    Word(String),
    /// In brackets or quotes.
    Name(String),
    Text(String),
    Number(String),
    Bytes(Vec<u8>),
    Variable(String),
    Sign(String),
}

/// The words of a statement as a text.
pub fn text_of(tokens: &[Token]) -> String {
    let word = |token: &Token| match token {
        Token::Word(word) | Token::Number(word) | Token::Sign(word) => word.clone(),
        Token::Variable(name) => format!("@{name}"),
        Token::Name(name) => format!("[{}]", name.replace(']', "]]")),
        Token::Text(text) => format!("N'{}'", text.replace('\'', "''")),
        Token::Bytes(bytes) => {
            format!("0x{}", bytes.iter().map(|b| format!("{b:02x}")).collect::<String>())
        }
    };
    tokens.iter().map(word).collect::<Vec<_>>().join(" ")
}

pub fn tokens(sql: &str) -> Result<Vec<Token>, SqlError> {
    let chars: Vec<char> = sql.chars().collect();
    let mut out = Vec::new();
    let mut at = 0;
    let quoted = |at: &mut usize, close: char| {
        let mut text = String::new();
        loop {
            match chars.get(*at) {
                None => return error(105, "Unclosed quotation mark after the character string."),
                Some(c) if *c == close && chars.get(*at + 1) == Some(&close) => {
                    text.push(close);
                    *at += 2;
                }
                Some(c) if *c == close => {
                    *at += 1;
                    return Ok(text);
                }
                Some(c) => {
                    text.push(*c);
                    *at += 1;
                }
            }
        }
    };
    while let Some(&c) = chars.get(at) {
        let next = chars.get(at + 1).copied().unwrap_or(' ');
        at += 1;
        match c {
            _ if c.is_whitespace() => {}
            '-' if next == '-' => {
                while chars.get(at).is_some_and(|c| *c != '\n') {
                    at += 1
                }
            }
            '[' => out.push(Token::Name(quoted(&mut at, ']')?)),
            '"' => out.push(Token::Name(quoted(&mut at, '"')?)),
            '\'' => out.push(Token::Text(quoted(&mut at, '\'')?)),
            'N' | 'n' if next == '\'' => {
                at += 1;
                out.push(Token::Text(quoted(&mut at, '\'')?));
            }
            '0' if next == 'x' || next == 'X' => {
                let start = at + 1;
                at = start;
                while chars.get(at).is_some_and(char::is_ascii_hexdigit) {
                    at += 1
                }
                let digits: String = chars[start..at].iter().collect();
                out.push(Token::Bytes(
                    (0..digits.len() / 2)
                        .map(|n| u8::from_str_radix(&digits[2 * n..2 * n + 2], 16).unwrap())
                        .collect(),
                ));
            }
            _ if c.is_ascii_digit() => {
                let start = at - 1;
                while chars.get(at).is_some_and(|c| c.is_ascii_alphanumeric() || *c == '.') {
                    at += 1
                }
                out.push(Token::Number(chars[start..at].iter().collect()));
            }
            _ if c.is_alphabetic() || c == '_' || c == '@' || c == '#' => {
                let start = at - 1;
                while chars.get(at).is_some_and(|c| c.is_alphanumeric() || "_@#$".contains(*c)) {
                    at += 1
                }
                let word: String = chars[start..at].iter().collect();
                out.push(match word.strip_prefix('@') {
                    Some(name) => Token::Variable(name.to_lowercase()),
                    None => Token::Word(word),
                });
            }
            '<' | '>' | '!' if next == '=' || (c == '<' && next == '>') => {
                at += 1;
                out.push(Token::Sign(format!("{c}{next}")));
            }
            _ => out.push(Token::Sign(c.to_string())),
        }
    }
    Ok(out)
}

pub fn is_word(token: Option<&Token>, word: &str) -> bool {
    matches!(token, Some(Token::Word(other)) if other.eq_ignore_ascii_case(word))
}

pub fn is_sign(token: Option<&Token>, sign: &str) -> bool {
    matches!(token, Some(Token::Sign(other)) if other == sign)
}

pub fn type_at(tokens: &[Token], at: &mut usize) -> Result<Type, SqlError> {
    let name = match tokens.get(*at) {
        Some(Token::Word(word)) => word.to_lowercase(),
        other => return error(102, format!("Incorrect syntax near {other:?}: a type is wanted.")),
    };
    *at += 1;
    let mut numbers = Vec::new();
    if is_sign(tokens.get(*at), "(") {
        *at += 1;
        loop {
            match tokens.get(*at) {
                Some(Token::Number(number)) => numbers.push(number.parse().unwrap_or(0)),
                Some(Token::Word(word)) if word.eq_ignore_ascii_case("max") => numbers.push(0xffff),
                _ => {}
            }
            *at += 1;
            if is_sign(tokens.get(*at), ")") {
                *at += 1;
                break;
            }
            if *at >= tokens.len() {
                return error(102, "Incorrect syntax: a type does not end.");
            }
            *at += 1;
        }
    }
    let mut utf8 = false;
    if is_word(tokens.get(*at), "COLLATE") {
        utf8 = matches!(tokens.get(*at + 1), Some(Token::Word(name)) if name.ends_with("UTF8"));
        *at += 2;
    }
    // 8,000 bytes are the most that is declared.
    let most = if name.starts_with('n') { 4000 } else { 8000 };
    if numbers.first().is_some_and(|n| *n > most && *n != 0xffff)
        && (name.contains("char") || name.contains("binary"))
    {
        return error(
            131,
            format!(
                "The size given to the type '{name}' exceeds the maximum allowed for any data type (8000)."
            ),
        );
    }
    match Type::declared(&name, &numbers, utf8) {
        Some(of) => Ok(of),
        None => error(2715, format!("Cannot find data type {name}.")),
    }
}
