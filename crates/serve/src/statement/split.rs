//! A text of several statements.

use datafusion::sql::sqlparser::dialect::GenericDialect;
use datafusion::sql::sqlparser::keywords::Keyword;
use datafusion::sql::sqlparser::tokenizer::{Location, Token, TokenWithSpan, Tokenizer, Word};

/// What a text holds, up to its end.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Statements {
    /// Statements that end with a semicolon, without it.
    pub complete: Vec<String>,
    /// What follows the last semicolon, blank if nothing does: a statement that a shell waits for
    /// the rest of.
    pub rest: String,
}

/// Cuts a text at the semicolons that are not in quotes or comments.
///
/// A text with a quote or comment that does not end has all of it from the last semicolon before as
/// `rest`.
pub fn split_statements(text: &str) -> Statements {
    let tokens = Tokens::of(text);
    let mut found = Statements::default();
    let mut start = 0;
    for index in 0..tokens.tokens.len() {
        if tokens.tokens[index].token != Token::SemiColon {
            continue;
        }
        let Some((end, next)) = tokens.range(index) else { break };
        let statement = text[start..end].trim();
        if !statement.is_empty() {
            found.complete.push(statement.to_owned());
        }
        start = next;
    }
    found.rest = text[start..].trim().to_owned();
    found
}

/// The tokens of a text, and where they stand in it.
pub(crate) struct Tokens<'a> {
    text: &'a str,
    tokens: Vec<TokenWithSpan>,
    /// Where each line starts.
    lines: Vec<usize>,
}

impl<'a> Tokens<'a> {
    /// The tokens up to the end, or up to a quote or comment that does not end.
    pub fn of(text: &'a str) -> Self {
        let mut tokens = Vec::new();
        // On an error the tokens before it are there.
        let _ =
            Tokenizer::new(&GenericDialect {}, text).tokenize_with_location_into_buf(&mut tokens);
        let mut lines = vec![0];
        lines.extend(text.match_indices('\n').map(|(at, _)| at + 1));
        Tokens { text, tokens, lines }
    }

    /// All words, quoted ones too, with their index among the tokens.
    pub fn words(&self) -> impl Iterator<Item = (usize, &Word)> {
        self.tokens.iter().enumerate().filter_map(|(index, token)| match &token.token {
            Token::Word(word) => Some((index, word)),
            _ => None,
        })
    }

    /// All tokens with their index.
    pub fn all(&self) -> impl Iterator<Item = (usize, &Token)> {
        self.tokens.iter().enumerate().map(|(index, token)| (index, &token.token))
    }

    /// Where a token starts and ends.
    pub fn range(&self, index: usize) -> Option<(usize, usize)> {
        let span = self.tokens[index].span;
        Some((self.offset(span.start)?, self.offset(span.end)?))
    }

    /// Lines and columns are counted from 1, columns in characters.
    fn offset(&self, location: Location) -> Option<usize> {
        let start = *self.lines.get(location.line.checked_sub(1)? as usize)?;
        let column = location.column.checked_sub(1)? as usize;
        let line = &self.text[start..];
        line.char_indices().map(|(at, _)| at).chain([line.len()]).nth(column).map(|at| start + at)
    }

    /// The token after one, without blanks.
    pub fn after(&self, index: usize) -> Option<&Token> {
        self.tokens[index + 1..].iter().map(|t| &t.token).find(|t| !is_blank(t))
    }

    /// The token before one, without blanks.
    pub fn before(&self, index: usize) -> Option<&Token> {
        self.all_before(index).next()
    }

    /// Whether the token before is this word.
    pub fn is_word_before(&self, index: usize, keyword: Keyword) -> bool {
        self.before(index).is_some_and(|t| is_keyword(t, keyword))
    }

    /// Whether the token is the first in the parentheses after this word.
    pub fn is_call_before(&self, index: usize, keyword: Keyword) -> bool {
        let mut before = self.all_before(index);
        before.next() == Some(&Token::LParen)
            && before.next().is_some_and(|t| is_keyword(t, keyword))
    }

    fn all_before(&self, index: usize) -> impl Iterator<Item = &Token> {
        self.tokens[..index].iter().rev().map(|t| &t.token).filter(|t| !is_blank(t))
    }
}

fn is_blank(token: &Token) -> bool {
    matches!(token, Token::Whitespace(_))
}

fn is_keyword(token: &Token, keyword: Keyword) -> bool {
    matches!(token, Token::Word(word) if word.keyword == keyword && word.quote_style.is_none())
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
    }
}
