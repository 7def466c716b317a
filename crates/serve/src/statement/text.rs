//! The text of a statement as tokens and as a tree, within limits.
//!
//! Cost: linear in the text. What the parser nests by recursion is bounded by the depth; what it nests by loops, such as
//! the terms of a sum, by the tokens between two commas or brackets, so that every tree can be walked and dropped on
//! the stack of a planning thread.

use coload_types::{Error, Result};
use datafusion::sql::sqlparser::ast::{Expr, SelectItem, Statement};
use datafusion::sql::sqlparser::keywords::Keyword;
use datafusion::sql::sqlparser::parser::{Parser, ParserError};
use datafusion::sql::sqlparser::tokenizer::{Token, TokenWithSpan, Tokenizer};

use super::dialect::Grammar;
use super::limits::StatementLimits;

/// Most parameters of a statement.
pub(crate) const PARAMETERS_MAX: usize = 65_535;

/// Tokens between two commas or brackets: 40,000 terms of AND. The tree of so many drops within some 60 MB of stack.
const RUN_TOKENS_MAX: usize = 200_000;

/// Parses the only statement of a text.
///
/// # Errors
/// `Invalid` when it is not one statement, `Limit` when it is larger than allowed.
pub(crate) fn parse_statement(text: &str, limits: &StatementLimits) -> Result<Statement> {
    let mut statements = parse(text, limits, |parser| parser.parse_statements())?;
    match (statements.pop(), statements.is_empty()) {
        (Some(statement), true) => Ok(statement),
        (Some(_), false) => {
            Err(Error::Invalid("several statements at once: send one after the other".into()))
        }
        (None, _) => Err(Error::Invalid("no statement".into())),
    }
}

/// Parses one expression.
///
/// # Errors
/// As [`parse_statement`].
pub(crate) fn parse_expression(text: &str, limits: &StatementLimits) -> Result<Expr> {
    parse(text, limits, |parser| {
        let expr = parser.parse_expr()?;
        expect_end(parser, "one condition")?;
        Ok(expr)
    })
}

/// Parses the items of a SELECT.
///
/// # Errors
/// As [`parse_statement`].
pub(crate) fn parse_items(text: &str, limits: &StatementLimits) -> Result<Vec<SelectItem>> {
    parse(text, limits, |parser| {
        let items = parser.parse_comma_separated(Parser::parse_select_item)?;
        expect_end(parser, "a comma")?;
        Ok(items)
    })
}

fn expect_end(parser: &Parser<'_>, wanted: &str) -> std::result::Result<(), ParserError> {
    match parser.peek_token().token {
        Token::EOF => Ok(()),
        other => Err(ParserError::ParserError(format!("expected {wanted}, found {other}"))),
    }
}

/// Runs a parser on a text.
pub(crate) fn parse<T>(
    text: &str,
    limits: &StatementLimits,
    read: impl FnOnce(&mut Parser<'_>) -> std::result::Result<T, ParserError>,
) -> Result<T> {
    let tokens = tokens(text, limits)?;
    let grammar = Grammar::new(tokens.len());
    let parser = Parser::new(&grammar).with_recursion_limit(limits.depth);
    let mut parser = parser.with_tokens_with_locations(tokens);
    read(&mut parser).map_err(|error| match error {
        ParserError::ParserError(text) | ParserError::TokenizerError(text) => Error::Invalid(text),
        ParserError::RecursionLimitExceeded if grammar.is_exhausted() => Error::Limit(
            "the statement is nested in a way that takes too long to read: nest fewer calls".into(),
        ),
        ParserError::RecursionLimitExceeded => too_deep(limits.depth),
    })
}

/// The error for a statement that is nested too deep.
pub(crate) fn too_deep(max: usize) -> Error {
    Error::Limit(format!(
        "the statement is nested deeper than {max} levels (--max-statement-depth)"
    ))
}

/// The tokens of a text, with parameters numbered.
fn tokens(text: &str, limits: &StatementLimits) -> Result<Vec<TokenWithSpan>> {
    if text.len() > limits.text_bytes {
        let (length, max) = (text.len(), limits.text_bytes);
        return Err(Error::Limit(format!(
            "a statement of {length} bytes, over {max} (--max-statement-text)"
        )));
    }
    // Before there are tokens, which are some hundred bytes each.
    if count_terms(text) > limits.terms {
        return Err(Error::Limit(format!(
            "a statement of more than {} terms (--max-statement-terms): many values load faster with `coload load`, \
             or bind them as parameters",
            limits.terms
        )));
    }
    let mut tokens = Vec::new();
    let grammar = Grammar::new(0);
    Tokenizer::new(&grammar, text)
        .tokenize_with_location_into_buf(&mut tokens)
        .map_err(|e| Error::Invalid(e.to_string()))?;
    // Blanks mean nothing from here on, but between a number and a word.
    check_numbers(&tokens)?;
    tokens.retain(|token| !matches!(token.token, Token::Whitespace(_)));
    check_nesting(&tokens, limits)?;
    number_parameters(&mut tokens)?;
    Ok(tokens)
}

/// Words, numbers, texts and signs of a text, or more: those in comments count too.
pub(super) fn count_terms(text: &str) -> usize {
    let (mut count, mut in_word, mut quote) = (0, false, None);
    for byte in text.bytes() {
        if let Some(end) = quote {
            if byte == end {
                quote = None;
            }
            continue;
        }
        let is_word = byte.is_ascii_alphanumeric() || byte == b'_' || !byte.is_ascii();
        let goes_on = byte.is_ascii_whitespace() || (is_word && in_word);
        count += usize::from(!goes_on);
        if matches!(byte, b'\'' | b'"' | b'`') {
            quote = Some(byte);
        }
        in_word = is_word;
    }
    count
}

/// Refuses `1_000_` and `10abc`, of which the parser makes a number with a name.
fn check_numbers(tokens: &[TokenWithSpan]) -> Result<()> {
    for pair in tokens.windows(2) {
        let (Token::Number(digits, _), Token::Word(word)) = (&pair[0].token, &pair[1].token) else {
            continue;
        };
        if word.quote_style.is_none() && pair[0].span.end == pair[1].span.start {
            return Err(Error::Invalid(format!(
                "{digits}{} is no number; where a name is meant, put a blank before it",
                word.value
            )));
        }
    }
    Ok(())
}

/// Bounds what the parser would nest without counting: brackets of types and patterns, `INTERVAL INTERVAL`, and runs
/// of operators.
fn check_nesting(tokens: &[TokenWithSpan], limits: &StatementLimits) -> Result<()> {
    // Tokens since the last comma, of each bracket that is open.
    let (mut outer, mut run, mut types) = (Vec::new(), 0usize, 0usize);
    let mut before = Keyword::NoKeyword;
    for token in tokens {
        run += 1;
        let mut keyword = Keyword::NoKeyword;
        match &token.token {
            Token::LParen | Token::LBracket | Token::LBrace => {
                outer.push(run);
                run = 0;
            }
            Token::RParen | Token::RBracket | Token::RBrace => run = outer.pop().unwrap_or(run),
            Token::Comma | Token::SemiColon => run = 0,
            Token::Lt if matches!(before, Keyword::ARRAY | Keyword::STRUCT) => types += 1,
            Token::Word(word) if word.quote_style.is_none() => {
                keyword = word.keyword;
                if keyword == Keyword::INTERVAL && before == Keyword::INTERVAL {
                    return Err(Error::Invalid("INTERVAL INTERVAL is no interval".into()));
                }
            }
            _ => {}
        }
        before = keyword;
        if outer.len().max(types) > limits.depth {
            return Err(too_deep(limits.depth));
        }
        if run > RUN_TOKENS_MAX {
            return Err(Error::Limit(format!(
                "an expression of more than {RUN_TOKENS_MAX} words and signs"
            )));
        }
    }
    Ok(())
}

/// Makes `$1`, `$2` and so on of `?`, as JDBC writes parameters.
fn number_parameters(tokens: &mut [TokenWithSpan]) -> Result<()> {
    let (mut count, mut numbered) = (0, false);
    for token in tokens {
        let Token::Placeholder(name) = &mut token.token else { continue };
        if name == "?" {
            count += 1;
            *name = format!("${count}");
            continue;
        }
        let number = name.strip_prefix('$').and_then(|n| n.parse::<usize>().ok());
        match number {
            Some(1..=PARAMETERS_MAX) => numbered = true,
            _ => {
                return Err(Error::Invalid(format!(
                    "parameter {name} is not supported: write ? or $1 to ${PARAMETERS_MAX}"
                )));
            }
        }
    }
    if count > 0 && numbered {
        return Err(Error::Invalid("parameters are either all ? or all numbered as in $1".into()));
    }
    if count > PARAMETERS_MAX {
        return Err(Error::Limit(format!("{count} parameters, over {PARAMETERS_MAX}")));
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]
    use std::time::{Duration, Instant};

    use super::*;

    fn parsed(text: &str) -> Result<String> {
        parse_statement(text, &StatementLimits::default()).map(|s| s.to_string())
    }

    #[test]
    fn question_marks_outside_quotes_are_numbered() {
        let text = "SELECT '?', \"?\" /* ? */ FROM t WHERE a = ? AND b IN (?, ?) -- ?";
        let expected = "SELECT '?', \"?\" FROM t WHERE a = $1 AND b IN ($2, $3)";
        assert_eq!(parsed(text).unwrap(), expected);
        assert_eq!(parsed("SELECT $2 + $1").unwrap(), "SELECT $2 + $1");
        assert_eq!(parsed("SELECT 'a:b@c$d'").unwrap(), "SELECT 'a:b@c$d'");
    }

    #[test]
    fn parameters_that_have_no_number_are_refused() {
        for text in ["SELECT ?, $1", "SELECT $0", "SELECT $name", "SELECT $70000"] {
            assert!(matches!(parsed(text), Err(Error::Invalid(_))), "{text}");
        }
    }

    /// At a1bdeed `SELECT 1_000_000` was 1, named _000_000, and `SELECT 1e5x` a number with a name.
    #[test]
    fn numbers_are_one_token_or_refused() {
        for text in ["SELECT 1_000_", "SELECT 10abc", "SELECT 1e5x"] {
            assert!(matches!(parsed(text), Err(Error::Invalid(_))), "{text}: {:?}", parsed(text));
        }
        assert!(parsed("SELECT 1_000_000, 10 abc, 1e5 x").is_ok());
    }

    /// The parser goes back over nested calls: `position(` of 12 levels took 39 s at a1bdeed.
    #[test]
    fn nested_calls_that_fail_end_soon() {
        for call in ["position(", "cast(", "substring(", "ceil(", "array[", "convert(", "overlay("]
        {
            let text = format!("SELECT {}1 ! ", call.repeat(30));
            let began = Instant::now();
            assert!(parsed(&text).is_err(), "{call}");
            assert!(began.elapsed() < Duration::from_secs(20), "{call}: {:?}", began.elapsed());
        }
    }
}
