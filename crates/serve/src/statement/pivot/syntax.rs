//! Where a PIVOT or UNPIVOT stands in a text, and what it says.

use std::ops::Range;

use coload_types::{Error, Result};
use datafusion::sql::sqlparser::ast::{Expr, Ident, SelectItem, TableFactor};
use datafusion::sql::sqlparser::keywords::Keyword;
use datafusion::sql::sqlparser::parser::{Parser, ParserError};
use datafusion::sql::sqlparser::tokenizer::{Location, Token, TokenWithSpan};

use super::super::limits::StatementLimits;
use super::super::text::{parse, too_deep};

/// One that was found.
pub(super) struct Found {
    /// Its bytes in the text.
    pub place: Range<usize>,
    /// Bytes from the start of the text that have the common table expressions which it sees.
    pub scope: usize,
    /// Whether it is in a view, so that its columns stay.
    pub is_kept: bool,
    pub form: Form,
}

pub(super) enum Form {
    Pivot(Pivot),
    Unpivot(Unpivot),
}

/// PIVOT from ON on USING aggregates GROUP BY groups.
pub(super) struct Pivot {
    pub from: String,
    pub on: Vec<On>,
    /// Each with its alias; `count(*)` if there is none.
    pub aggregates: Vec<(Expr, Option<Ident>)>,
    pub groups: Option<Vec<Expr>>,
    /// ORDER BY and LIMIT.
    pub tail: String,
}

/// An expression whose values become columns.
pub(super) struct On {
    pub expr: Expr,
    pub values: Option<Vec<Expr>>,
}

/// UNPIVOT from ON columns INTO NAME name VALUE value.
pub(super) struct Unpivot {
    pub from: String,
    pub columns: Unpivoted,
    pub name: Ident,
    pub value: Ident,
    pub keeps_nulls: bool,
    pub tail: String,
}

pub(super) enum Unpivoted {
    These(Vec<Ident>),
    AllBut(Vec<Ident>),
}

type Parsed<T> = std::result::Result<T, ParserError>;

/// What a text begins with.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Beginning {
    View,
    Ctes,
    Other,
}

/// What the parser saw: where a form begins and ends, if something follows.
struct Seen {
    form: Parsed<Form>,
    start: Location,
    end: Option<Location>,
    beginning: Beginning,
    /// Whether it stands in brackets.
    is_nested: bool,
}

/// The first of them in a text.
///
/// # Errors
/// `Invalid` when it is not whole.
pub(super) fn find(text: &str, limits: &StatementLimits) -> Result<Option<Found>> {
    let Some(seen) = parse(text, limits, look)? else { return Ok(None) };
    let form = seen.form.map_err(|error| match error {
        ParserError::ParserError(what) | ParserError::TokenizerError(what) => {
            Error::Invalid(format!("{what}; write {FORMS}"))
        }
        ParserError::RecursionLimitExceeded => too_deep(limits.depth),
    })?;
    let start = offset(text, seen.start);
    let end = seen.end.map_or(text.len(), |end| offset(text, end));
    // Blanks before what follows stay.
    let end = start + text[start..end].trim_end().len();
    let has_ctes = seen.beginning == Beginning::Ctes && !seen.is_nested;
    Ok(Some(Found {
        place: start..end,
        scope: if has_ctes { start } else { 0 },
        is_kept: seen.beginning == Beginning::View,
        form,
    }))
}

const FORMS: &str =
    "PIVOT t ON c [IN (1, 2)] USING sum(x) [GROUP BY y], or UNPIVOT t ON a, b INTO NAME n VALUE v";

/// The byte of a text at a line and a character of it.
fn offset(text: &str, at: Location) -> usize {
    let (mut line, mut column) = (1, 1);
    for (index, c) in text.char_indices() {
        if (line, column) == (at.line, at.column) {
            return index;
        }
        (line, column) = if c == '\n' { (line + 1, 1) } else { (line, column + 1) };
    }
    text.len()
}

/// Goes from token to token until one begins a form.
fn look(parser: &mut Parser<'_>) -> Parsed<Option<Seen>> {
    let beginning = beginning_of(parser);
    let (mut depth, mut before) = (0_usize, None);
    loop {
        let token = parser.peek_token();
        let may_begin = match &before {
            None | Some(Token::LParen) => true,
            Some(Token::RParen) => beginning == Beginning::Ctes && depth == 0,
            Some(Token::Word(word)) => matches!(
                word.keyword,
                Keyword::AS
                    | Keyword::EXPLAIN
                    | Keyword::ANALYZE
                    | Keyword::VERBOSE
                    | Keyword::DESCRIBE
            ),
            Some(_) => false,
        };
        if may_begin && is_keyword(&token, &[Keyword::PIVOT, Keyword::UNPIVOT]) {
            // One that is the name of something does not come to its ON.
            if let Some(form) = parser.maybe_parse(form)? {
                let behind = parser.peek_token();
                let end = (behind.token != Token::EOF).then_some(behind.span.start);
                let (start, is_nested) = (token.span.start, depth > 0);
                return Ok(Some(Seen { form, start, end, beginning, is_nested }));
            }
        }
        match &token.token {
            Token::EOF => return Ok(None),
            Token::LParen => depth += 1,
            Token::RParen => depth = depth.saturating_sub(1),
            _ => {}
        }
        before = Some(parser.next_token().token);
    }
}

fn is_keyword(token: &TokenWithSpan, keywords: &[Keyword]) -> bool {
    matches!(&token.token, Token::Word(word) if word.quote_style.is_none() && keywords.contains(&word.keyword))
}

fn beginning_of(parser: &Parser<'_>) -> Beginning {
    // CREATE OR REPLACE VIEW.
    let first: Vec<TokenWithSpan> = (0..4).map(|n| parser.peek_nth_token(n)).collect();
    if is_keyword(&first[0], &[Keyword::WITH]) {
        return Beginning::Ctes;
    }
    let is_view = is_keyword(&first[0], &[Keyword::CREATE])
        && first.iter().any(|token| is_keyword(token, &[Keyword::VIEW]));
    if is_view { Beginning::View } else { Beginning::Other }
}

/// A form up to its ON, and then what is behind it or what is wrong with that.
fn form(parser: &mut Parser<'_>) -> Parsed<Parsed<Form>> {
    if parser.parse_keyword(Keyword::PIVOT) {
        let from = parser.parse_table_and_joins()?.to_string();
        parser.expect_keyword(Keyword::ON)?;
        return Ok(pivot(parser, from).map(Form::Pivot));
    }
    parser.expect_keyword(Keyword::UNPIVOT)?;
    let nulls = [Keyword::INCLUDE, Keyword::NULLS];
    let before = parser.parse_keywords(&nulls);
    let mut from = parser.parse_table_and_joins()?;
    let keeps_nulls = takes_include_off(parser, &mut from.relation) || before;
    parser.expect_keyword(Keyword::ON)?;
    Ok(unpivot(parser, from.to_string(), keeps_nulls).map(Form::Unpivot))
}

/// Whether INCLUDE NULLS follows a table, of which the parser takes INCLUDE for an alias.
fn takes_include_off(parser: &mut Parser<'_>, table: &mut TableFactor) -> bool {
    let (TableFactor::Table { alias, .. } | TableFactor::Derived { alias, .. }) = table else {
        return false;
    };
    let is_it = alias.as_ref().is_some_and(|alias| {
        !alias.explicit
            && alias.name.quote_style.is_none()
            && alias.name.value.eq_ignore_ascii_case("include")
    });
    if !is_it || !parser.parse_keyword(Keyword::NULLS) {
        return false;
    }
    *alias = None;
    true
}

fn pivot(parser: &mut Parser<'_>, from: String) -> Parsed<Pivot> {
    let on = parser.parse_comma_separated(|parser| {
        Ok(match parser.parse_expr()? {
            Expr::InList { expr, list, negated: false } => On { expr: *expr, values: Some(list) },
            expr => On { expr, values: None },
        })
    })?;
    let mut aggregates = Vec::new();
    if parser.parse_keyword(Keyword::USING) {
        aggregates =
            parser.parse_comma_separated(|parser| match parser.parse_select_item()? {
                SelectItem::UnnamedExpr(expr) => Ok((expr, None)),
                SelectItem::ExprWithAlias { expr, alias } => Ok((expr, Some(alias))),
                other => Err(ParserError::ParserError(format!(
                    "USING takes aggregates, and not {other}"
                ))),
            })?;
    }
    let mut groups = None;
    if parser.parse_keywords(&[Keyword::GROUP, Keyword::BY]) {
        groups = Some(parser.parse_comma_separated(Parser::parse_expr)?);
    }
    Ok(Pivot { from, on, aggregates, groups, tail: tail(parser)? })
}

fn unpivot(parser: &mut Parser<'_>, from: String, keeps_nulls: bool) -> Parsed<Unpivot> {
    let columns = unpivoted(parser)?;
    let (mut name, mut value) = (Ident::new("name"), Ident::new("value"));
    if parser.parse_keyword(Keyword::INTO) {
        expect_word(parser, "name")?;
        name = parser.parse_identifier()?;
        expect_word(parser, "value")?;
        value = parser.parse_identifier()?;
    }
    Ok(Unpivot { from, columns, name, value, keeps_nulls, tail: tail(parser)? })
}

/// `a, b`, `*` and `COLUMNS(* EXCLUDE (a, b))`.
fn unpivoted(parser: &mut Parser<'_>) -> Parsed<Unpivoted> {
    if parser.consume_token(&Token::Mul) {
        return Ok(Unpivoted::AllBut(Vec::new()));
    }
    let is_call = parser.peek_nth_token(1).token == Token::LParen;
    if !(is_call && is_keyword(&parser.peek_token(), &[Keyword::COLUMNS])) {
        let these = parser.parse_comma_separated(Parser::parse_identifier)?;
        return Ok(Unpivoted::These(these));
    }
    parser.expect_keyword(Keyword::COLUMNS)?;
    parser.expect_token(&Token::LParen)?;
    parser.expect_token(&Token::Mul)?;
    let mut but = Vec::new();
    if parser.parse_keyword(Keyword::EXCLUDE) {
        let in_brackets = parser.consume_token(&Token::LParen);
        but = match in_brackets {
            true => parser.parse_comma_separated(Parser::parse_identifier)?,
            false => vec![parser.parse_identifier()?],
        };
        if in_brackets {
            parser.expect_token(&Token::RParen)?;
        }
    }
    parser.expect_token(&Token::RParen)?;
    Ok(Unpivoted::AllBut(but))
}

fn expect_word(parser: &mut Parser<'_>, word: &str) -> Parsed<()> {
    match parser.next_token() {
        TokenWithSpan { token: Token::Word(found), .. }
            if found.value.eq_ignore_ascii_case(word) =>
        {
            Ok(())
        }
        other => parser.expected(&word.to_uppercase(), other),
    }
}

/// ORDER BY, LIMIT and OFFSET of the answer.
fn tail(parser: &mut Parser<'_>) -> Parsed<String> {
    let mut tail = String::new();
    if let Some(order) = parser.parse_optional_order_by()? {
        tail.push_str(&format!(" {order}"));
    }
    if parser.parse_keyword(Keyword::LIMIT) {
        tail.push_str(&format!(" LIMIT {}", parser.parse_expr()?));
    }
    if parser.parse_keyword(Keyword::OFFSET) {
        tail.push_str(&format!(" {}", parser.parse_offset()?));
    }
    Ok(tail)
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]
    use super::*;

    fn found(text: &str) -> Option<Found> {
        find(text, &StatementLimits::default()).unwrap()
    }

    #[test]
    fn one_is_found_where_a_query_stands() {
        for (text, place) in [
            ("PIVOT t ON c", "PIVOT t ON c"),
            (
                "  pivot t ON c USING sum(x) GROUP BY y ORDER BY y LIMIT 3",
                "pivot t ON c USING sum(x) GROUP BY y ORDER BY y LIMIT 3",
            ),
            ("-- \u{e9}\n/* \u{1f600} */ PIVOT 'a b.csv' ON c;", "PIVOT 'a b.csv' ON c"),
            ("WITH a AS (SELECT 1) PIVOT a ON c", "PIVOT a ON c"),
            ("SELECT * FROM (PIVOT t ON c IN (1, 2)) AS p", "PIVOT t ON c IN (1, 2)"),
            ("CREATE TABLE x AS PIVOT (SELECT 1) ON c", "PIVOT (SELECT 1) ON c"),
            (
                "CREATE TABLE x AS UNPIVOT t INCLUDE NULLS ON a, b INTO NAME n VALUE v",
                "UNPIVOT t INCLUDE NULLS ON a, b INTO NAME n VALUE v",
            ),
            (
                "EXPLAIN UNPIVOT t ON COLUMNS(* EXCLUDE (a, b))",
                "UNPIVOT t ON COLUMNS(* EXCLUDE (a, b))",
            ),
            ("PIVOT a JOIN b ON a.x = b.x ON c", "PIVOT a JOIN b ON a.x = b.x ON c"),
        ] {
            let found = found(text).unwrap();
            assert_eq!(&text[found.place], place, "{text}");
        }
        let ctes = "WITH a AS (SELECT 1) PIVOT a ON c";
        assert_eq!(&ctes[..found(ctes).unwrap().scope], "WITH a AS (SELECT 1) ");
        assert!(found("CREATE OR REPLACE VIEW v AS PIVOT t ON c").unwrap().is_kept);
        assert!(!found("CREATE TABLE v AS PIVOT t ON c").unwrap().is_kept);
    }

    #[test]
    fn names_are_none() {
        for text in [
            "SELECT a AS pivot FROM t",
            "SELECT (pivot) FROM unpivot",
            "SELECT \"PIVOT\" FROM t AS pivot",
            "SELECT * FROM t AS pivot JOIN u ON pivot.a = u.a",
            "SELECT 'PIVOT t ON c'",
            "SELECT 1 -- PIVOT t ON c",
            "CREATE TABLE pivot (a INT)",
        ] {
            assert!(found(text).is_none(), "{text}");
        }
    }

    #[test]
    fn what_is_not_whole_is_told() {
        for text in [
            "PIVOT t ON",
            "PIVOT t ON c USING",
            "UNPIVOT t ON a INTO VALUE v",
            "PIVOT t ON c GROUP BY",
        ] {
            let error = find(text, &StatementLimits::default()).err().unwrap().to_string();
            assert!(error.contains("write PIVOT t ON c"), "{text}: {error}");
        }
    }
}
