//! Statements about the session: they are answered here, and all others by the engine.
//!
//! ```text
//!   BEGIN, COMMIT, ROLLBACK             SET, RESET, SHOW name, DISCARD, UNLISTEN
//!   DECLARE .. CURSOR, FETCH, CLOSE     DEALLOCATE, COPY .. FROM STDIN, COPY .. TO STDOUT
//! ```

use std::iter::Peekable;
use std::vec::IntoIter;

use datafusion::sql::sqlparser::dialect::PostgreSqlDialect;
use datafusion::sql::sqlparser::tokenizer::{Token, Tokenizer};

use super::copy::{CopyIn, CopyOut};
use super::fault::{Fault, code};

/// Statements about the session are short.
const TEXT_BYTES_MAX: usize = 64 << 10;

/// What a statement asks of the session.
#[derive(Debug, PartialEq, Eq)]
pub(super) enum Command {
    Begin {
        is_read_only: bool,
    },
    Commit,
    Rollback,
    Savepoint(String),
    Release(String),
    RollbackTo(String),
    Set(String, String),
    Reset(String),
    ResetAll,
    Show(String),
    ShowAll,
    DiscardAll,
    Nothing(&'static str),
    Deallocate(Option<String>),
    Declare {
        name: String,
        query: String,
        /// Whether it outlives its transaction.
        is_held: bool,
    },
    Fetch {
        name: String,
        rows_max: Option<u64>,
        moves: bool,
    },
    CloseCursor(Option<String>),
    CopyIn(CopyIn),
    CopyOut(CopyOut),
}

/// Settings that `SHOW` has; what else it shows is the engine's.
pub(super) type IsSetting = fn(&str) -> bool;

/// A text from its first word on: without the blanks, comments and semicolons before it. Nothing is left of a comment that does not
/// end.
pub(super) fn without_blanks(text: &str) -> &str {
    let mut rest = text;
    loop {
        rest = rest.trim_start_matches(|c: char| c.is_whitespace() || c == ';');
        if let Some(comment) = rest.strip_prefix("--") {
            rest = comment.split_once('\n').map_or("", |(_, behind)| behind);
        } else if rest.starts_with("/*") {
            rest = comment_end(rest).map_or("", |end| &rest[end..]);
        } else {
            return rest;
        }
    }
}

/// The word that a text begins with, in upper case.
pub(super) fn first_word(text: &str) -> String {
    let text = without_blanks(text);
    let end = text.find(|c: char| !c.is_ascii_alphabetic()).unwrap_or(text.len());
    text[..end].to_ascii_uppercase()
}

/// Where a comment ends that a text begins with; comments may hold others.
fn comment_end(text: &str) -> Option<usize> {
    let (mut depth, mut at, bytes) = (0, 0, text.as_bytes());
    while at + 1 < bytes.len() {
        match &bytes[at..at + 2] {
            b"/*" => depth += 1,
            b"*/" => depth -= 1,
            _ => {
                at += 1;
                continue;
            }
        }
        at += 2;
        if depth == 0 {
            return Some(at);
        }
    }
    None
}

/// What a statement asks of the session; `None` when it is one for the engine.
///
/// # Errors
/// When it is a statement about the session that there is not here.
pub(super) fn parse(text: &str, is_setting: IsSetting) -> Result<Option<Command>, Fault> {
    let word = first_word(text);
    const OURS: [&str; 20] = [
        "BEGIN",
        "START",
        "COMMIT",
        "END",
        "ROLLBACK",
        "ABORT",
        "SAVEPOINT",
        "RELEASE",
        "SET",
        "RESET",
        "SHOW",
        "DISCARD",
        "UNLISTEN",
        "LISTEN",
        "DEALLOCATE",
        "DECLARE",
        "FETCH",
        "MOVE",
        "CLOSE",
        "COPY",
    ];
    if !OURS.contains(&&*word) || text.len() > TEXT_BYTES_MAX {
        return Ok(None);
    }
    let tokens = Tokenizer::new(&PostgreSqlDialect {}, text).tokenize_with_location();
    let Ok(tokens) = tokens else { return Ok(None) };
    let tokens: Vec<Token> = tokens.into_iter().map(|token| token.token).collect();
    let mut words = Words::new(tokens);
    words.next();
    let command = match &*word {
        "BEGIN" | "START" => begin(&mut words)?,
        "COMMIT" | "END" => ended(&mut words, Command::Commit)?,
        "ROLLBACK" | "ABORT" => ended(&mut words, Command::Rollback)?,
        "SAVEPOINT" => Command::Savepoint(words.name()?),
        "RELEASE" => {
            words.skip("SAVEPOINT");
            Command::Release(words.name()?)
        }
        "SET" => set(&mut words)?,
        "RESET" => match words.name()? {
            all if all == "all" => Command::ResetAll,
            name => Command::Reset(name),
        },
        "SHOW" => match show(&mut words, is_setting) {
            Some(show) => show,
            None => return Ok(None),
        },
        "DISCARD" => match &*words.name()? {
            "all" => Command::DiscardAll,
            // There are none of these.
            "plans" | "sequences" | "temp" | "temporary" => Command::Nothing("DISCARD"),
            other => return Err(Fault::error(code::INVALID, format!("DISCARD {other}"))),
        },
        "UNLISTEN" => {
            let _ = words.skip_sign(&Token::Mul) || words.name().is_ok();
            Command::Nothing("UNLISTEN")
        }
        "LISTEN" => return Err(Fault::error(code::UNSUPPORTED, "LISTEN: nobody notifies here")),
        "DEALLOCATE" => {
            words.skip("PREPARE");
            let name = words.name()?;
            Command::Deallocate((name != "all").then_some(name))
        }
        "DECLARE" => declare(&mut words, text)?,
        "FETCH" => fetch(&mut words, false)?,
        "MOVE" => fetch(&mut words, true)?,
        "CLOSE" => {
            let name = words.name()?;
            Command::CloseCursor((name != "all").then_some(name))
        }
        _ => match super::copy::parse(&mut words, text)? {
            Some(copy) => return Ok(Some(copy)),
            None => return Ok(None),
        },
    };
    words.end()?;
    Ok(Some(command))
}

/// Words, texts and signs of a statement, one after the other.
pub(super) struct Words {
    tokens: Peekable<IntoIter<Token>>,
}

impl Words {
    fn new(tokens: Vec<Token>) -> Self {
        let kept: Vec<Token> =
            tokens.into_iter().filter(|token| !matches!(token, Token::Whitespace(_))).collect();
        Words { tokens: kept.into_iter().peekable() }
    }

    pub fn next(&mut self) -> Option<Token> {
        self.tokens.next()
    }

    pub fn peek(&mut self) -> Option<&Token> {
        self.tokens.peek()
    }

    /// Goes over a word without quotes, if it is the next.
    pub fn skip(&mut self, word: &str) -> bool {
        let is_next = matches!(self.tokens.peek(), Some(Token::Word(w))
            if w.quote_style.is_none() && w.value.eq_ignore_ascii_case(word));
        if is_next {
            self.tokens.next();
        }
        is_next
    }

    /// Goes over a sign, if it is the next.
    pub fn skip_sign(&mut self, sign: &Token) -> bool {
        let is_next = self.tokens.peek() == Some(sign);
        if is_next {
            self.tokens.next();
        }
        is_next
    }

    /// A name: in lower case unless it is in quotes.
    pub fn name(&mut self) -> Result<String, Fault> {
        match self.tokens.next() {
            Some(Token::Word(word)) if word.quote_style.is_none() => Ok(word.value.to_lowercase()),
            Some(Token::Word(word)) => Ok(word.value),
            other => Err(unexpected(other.as_ref(), "a name")),
        }
    }

    /// The only thing that is left: nothing.
    pub fn end(&mut self) -> Result<(), Fault> {
        while self.skip_sign(&Token::SemiColon) {}
        match self.tokens.next() {
            None | Some(Token::EOF) => Ok(()),
            other => Err(unexpected(other.as_ref(), "the end")),
        }
    }
}

/// The fault for what stands where something else should.
pub(super) fn unexpected(found: Option<&Token>, wanted: &str) -> Fault {
    let found = found.map_or_else(|| "the end".to_owned(), ToString::to_string);
    Fault::error(code::INVALID, format!("expected {wanted}, found {found}"))
}

fn begin(words: &mut Words) -> Result<Command, Fault> {
    let _ = words.skip("TRANSACTION") || words.skip("WORK");
    Ok(Command::Begin { is_read_only: modes(words)?.unwrap_or(false) })
}

/// The modes of a transaction: whether it may only read, if that is said.
fn modes(words: &mut Words) -> Result<Option<bool>, Fault> {
    let mut is_read_only = None;
    loop {
        if words.skip("READ") {
            match words.name()?.as_str() {
                "only" => is_read_only = Some(true),
                "write" => is_read_only = Some(false),
                _ => return Err(Fault::error(code::INVALID, "expected READ ONLY or READ WRITE")),
            }
        } else if words.skip("ISOLATION") {
            let _ = words.skip("LEVEL");
            isolation(words)?;
        } else if words.skip("NOT") || words.skip("DEFERRABLE") {
        } else if !words.skip_sign(&Token::Comma) {
            return Ok(is_read_only);
        }
    }
}

/// A level of isolation: what holds is that each statement sees one version of all tables.
fn isolation(words: &mut Words) -> Result<(), Fault> {
    let first = words.name()?;
    let second = match &*first {
        "read" | "repeatable" => words.name()?,
        _ => String::new(),
    };
    match (&*first, &*second) {
        ("read", "committed" | "uncommitted") => Ok(()),
        ("repeatable", _) | ("serializable", _) => {
            let level = format!("{first} {second}");
            Err(Fault::error(
                code::UNSUPPORTED,
                format!(
                    "isolation level {}: each statement sees the newest version of all tables (READ COMMITTED)",
                    level.trim()
                ),
            ))
        }
        _ => Err(Fault::error(code::INVALID, "no such isolation level")),
    }
}

fn ended(words: &mut Words, command: Command) -> Result<Command, Fault> {
    let _ = words.skip("TRANSACTION") || words.skip("WORK");
    if words.skip("TO") {
        words.skip("SAVEPOINT");
        return Ok(Command::RollbackTo(words.name()?));
    }
    if words.skip("AND") {
        words.skip("NO");
        words.skip("CHAIN");
    }
    Ok(command)
}

fn set(words: &mut Words) -> Result<Command, Fault> {
    let is_session = words.skip("SESSION");
    words.skip("LOCAL");
    if words.skip("TIME") {
        words.skip("ZONE");
        return Ok(Command::Set("timezone".into(), value(words)?));
    }
    if words.skip("NAMES") {
        return Ok(Command::Set("client_encoding".into(), value(words)?));
    }
    if (is_session && words.skip("CHARACTERISTICS")) || words.skip("TRANSACTION") {
        words.skip("AS");
        words.skip("TRANSACTION");
        let value = if modes(words)?.unwrap_or(false) { "on" } else { "off" };
        return Ok(Command::Set("default_transaction_read_only".into(), value.into()));
    }
    let mut name = words.name()?;
    while words.skip_sign(&Token::Period) {
        name = format!("{name}.{}", words.name()?);
    }
    if !words.skip("TO") && !words.skip_sign(&Token::Eq) {
        return Err(unexpected(words.peek(), "TO or ="));
    }
    Ok(match value(words)? {
        default if default.eq_ignore_ascii_case("default") => Command::Reset(name),
        value => Command::Set(name, value),
    })
}

/// The value of a setting: words, numbers and texts with commas between them.
fn value(words: &mut Words) -> Result<String, Fault> {
    let mut parts = Vec::new();
    loop {
        let sign = if words.skip_sign(&Token::Minus) { "-" } else { "" };
        match words.next() {
            Some(Token::Word(word)) => parts.push(word.value),
            Some(Token::SingleQuotedString(text)) => parts.push(text),
            Some(Token::Number(digits, _)) => parts.push(format!("{sign}{digits}")),
            other => return Err(unexpected(other.as_ref(), "a value")),
        }
        if !words.skip_sign(&Token::Comma) {
            return Ok(parts.join(", "));
        }
    }
}

fn show(words: &mut Words, is_setting: IsSetting) -> Option<Command> {
    if words.skip("TIME") {
        return words.skip("ZONE").then(|| Command::Show("timezone".into()));
    }
    if words.skip("TRANSACTION") {
        words.skip("ISOLATION");
        words.skip("LEVEL");
        return Some(Command::Show("transaction_isolation".into()));
    }
    let name = words.name().ok()?;
    match is_setting(&name) {
        true => Some(Command::Show(name)),
        false => (name == "all").then_some(Command::ShowAll),
    }
}

fn declare(words: &mut Words, text: &str) -> Result<Command, Fault> {
    let name = words.name()?;
    let (mut is_held, mut before) = (false, String::new());
    loop {
        match words.next() {
            Some(Token::Word(word)) => match &*word.value.to_ascii_uppercase() {
                "BINARY" => return Err(Fault::error(code::UNSUPPORTED, "BINARY cursors")),
                "SCROLL" => {
                    return Err(Fault::error(
                        code::UNSUPPORTED,
                        "SCROLL cursors: rows are read once, forward",
                    ));
                }
                "NO" => {
                    words.skip("SCROLL");
                }
                "FOR" => break,
                "HOLD" => is_held = before == "WITH",
                other => before = other.to_owned(),
            },
            other => return Err(unexpected(other.as_ref(), "FOR")),
        }
    }
    // The query as it is written, behind the first FOR that stands alone.
    let query = behind_word(text, "FOR").unwrap_or_default().to_owned();
    while words.next().is_some() {}
    Ok(Command::Declare { name, query, is_held })
}

/// What stands in a text behind the first of such words.
pub(super) fn behind_word<'a>(text: &'a str, word: &str) -> Option<&'a str> {
    let is_part = |c: char| c.is_alphanumeric() || c == '_';
    let mut from = 0;
    while let Some(at) = text[from..].to_ascii_uppercase().find(word).map(|at| from + at) {
        let (before, behind) = (&text[..at], &text[at + word.len()..]);
        if !before.ends_with(is_part) && !behind.starts_with(is_part) {
            return Some(behind);
        }
        from = at + word.len();
    }
    None
}

fn fetch(words: &mut Words, moves: bool) -> Result<Command, Fault> {
    let mut rows_max = Some(1);
    words.skip("FORWARD");
    if words.skip("ALL") {
        rows_max = None;
    } else if words.skip("NEXT") {
    } else if let Some(Token::Number(digits, _)) = words.peek() {
        let count =
            digits.parse().map_err(|_| Fault::error(code::INVALID, "no such count of rows"))?;
        rows_max = Some(count);
        words.next();
    } else if ["PRIOR", "FIRST", "LAST", "ABSOLUTE", "RELATIVE", "BACKWARD"]
        .iter()
        .any(|word| words.skip(word))
    {
        return Err(Fault::error(
            code::UNSUPPORTED,
            "rows of a cursor are read once, forward: FETCH [count | ALL] FROM name",
        ));
    }
    let _ = words.skip("FROM") || words.skip("IN");
    Ok(Command::Fetch { name: words.name()?, rows_max, moves })
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]
    use super::*;

    fn parsed(text: &str) -> Option<Command> {
        parse(text, |name| name == "server_version").unwrap()
    }

    fn set(name: &str, value: &str) -> Option<Command> {
        Some(Command::Set(name.into(), value.into()))
    }

    #[test]
    fn statements_about_the_session_are_told_from_others() {
        let begun = |is_read_only| Some(Command::Begin { is_read_only });
        assert_eq!(parsed("/* a /* b */ */ -- c\n begin;"), begun(false));
        assert_eq!(
            parsed("START TRANSACTION ISOLATION LEVEL READ COMMITTED, READ ONLY"),
            begun(true)
        );
        assert_eq!(parsed("END WORK"), Some(Command::Commit));
        assert_eq!(parsed("SET SESSION extra_float_digits = 3"), set("extra_float_digits", "3"));
        assert_eq!(
            parsed("set search_path to public, \"$user\""),
            set("search_path", "public, $user")
        );
        assert_eq!(parsed("SET TIME ZONE 'UTC'"), set("timezone", "UTC"));
        assert_eq!(parsed("SET x.y = -1"), set("x.y", "-1"));
        assert_eq!(parsed("SET a TO DEFAULT"), Some(Command::Reset("a".into())));
        assert_eq!(parsed("SHOW server_version"), Some(Command::Show("server_version".into())));
        let declared = Command::Declare {
            name: "c".into(),
            query: " SELECT 'FOR' FROM t".into(),
            is_held: false,
        };
        assert_eq!(
            parsed("DECLARE c NO SCROLL CURSOR WITHOUT HOLD FOR SELECT 'FOR' FROM t"),
            Some(declared)
        );
        let fetched = |rows_max| Some(Command::Fetch { name: "c".into(), rows_max, moves: false });
        assert_eq!(parsed("FETCH FORWARD 100 FROM c"), fetched(Some(100)));
        assert_eq!(parsed("fetch all in c"), fetched(None));
        assert_eq!(parsed("FETCH c"), fetched(Some(1)));
        for engines in
            ["SELECT 1", "SHOW TABLES", "beginning", "COPY t TO 'file.csv'", "", "/* open"]
        {
            assert_eq!(parsed(engines), None, "{engines}");
        }
    }

    #[test]
    fn what_would_not_hold_is_refused() {
        for text in [
            "BEGIN ISOLATION LEVEL SERIALIZABLE",
            "SAVEPOINT",
            "ROLLBACK TO",
            "LISTEN a",
            "DECLARE c SCROLL CURSOR FOR SELECT 1",
            "FETCH PRIOR FROM c",
            "SET a",
            "COMMIT now",
        ] {
            assert!(parse(text, |_| false).is_err(), "{text}");
        }
    }
}
