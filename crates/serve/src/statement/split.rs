//! A text of several statements.

use datafusion::sql::sqlparser::dialect::GenericDialect;
use datafusion::sql::sqlparser::tokenizer::{Location, Token, Tokenizer};

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
    let mut tokens = Vec::new();
    // On an error, such as a quote without end, the tokens before it are there.
    let _ = Tokenizer::new(&GenericDialect {}, text).tokenize_with_location_into_buf(&mut tokens);
    let mut lines = vec![0];
    lines.extend(text.match_indices('\n').map(|(at, _)| at + 1));
    let offset = |location: Location| {
        let line = location.line.saturating_sub(1) as usize;
        let start = *lines.get(line)?;
        let column = location.column.saturating_sub(1) as usize;
        text[start..].char_indices().nth(column).map(|(at, _)| start + at)
    };
    let mut found = Statements::default();
    let mut start = 0;
    for token in tokens.iter().filter(|t| t.token == Token::SemiColon) {
        let Some(end) = offset(token.span.start) else { break };
        let statement = text[start..end].trim();
        if !statement.is_empty() {
            found.complete.push(statement.to_owned());
        }
        start = end + 1;
    }
    found.rest = text[start..].trim().to_owned();
    found
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
