//! The grammar of statements: what the parser may accept at all, and how much it may try.
//!
//! It is the parser's generic grammar without what nothing here could mean (hints, settings, formats, patterns, XML,
//! maps). What is left and still means nothing is refused by `statement::tree`.
//!
//! The parser tries forms and goes back where they do not fit, nested ones within each attempt: `position(position(...`
//! of twelve levels takes half a minute. [`Grammar`] counts its attempts, and ends it where they are too many.

use std::any::TypeId;
use std::cell::Cell;

use datafusion::sql::sqlparser::ast::Expr;
use datafusion::sql::sqlparser::dialect::{Dialect, GenericDialect};
use datafusion::sql::sqlparser::parser::{Parser, ParserError};

/// Expressions that the parser may begin for each token of a statement: one, and some for forms that are tried.
const ATTEMPTS_PER_TOKEN: usize = 32;
/// Attempts of short statements.
const ATTEMPTS_MIN: usize = 10_000;

/// The grammar for one text.
#[derive(Debug)]
pub(crate) struct Grammar {
    attempts_left: Cell<usize>,
}

impl Grammar {
    /// For a text of so many tokens.
    pub fn new(tokens: usize) -> Self {
        let attempts = tokens.saturating_mul(ATTEMPTS_PER_TOKEN).max(ATTEMPTS_MIN);
        Grammar { attempts_left: Cell::new(attempts) }
    }

    /// Whether the parser was ended because it tried too much.
    pub fn is_exhausted(&self) -> bool {
        self.attempts_left.get() == 0
    }
}

impl Dialect for Grammar {
    fn dialect(&self) -> TypeId {
        TypeId::of::<GenericDialect>()
    }

    /// Parses nothing, but counts.
    fn parse_prefix(&self, _: &mut Parser<'_>) -> Option<Result<Expr, ParserError>> {
        let left = self.attempts_left.get().saturating_sub(1);
        self.attempts_left.set(left);
        // This error is the one that the parser does not try to go on from.
        (left == 0).then_some(Err(ParserError::RecursionLimitExceeded))
    }

    fn is_delimited_identifier_start(&self, ch: char) -> bool {
        ch == '"' || ch == '`'
    }

    fn is_identifier_start(&self, ch: char) -> bool {
        ch.is_alphabetic() || ch == '_' || ch == '#' || ch == '@'
    }

    fn is_identifier_part(&self, ch: char) -> bool {
        ch.is_alphanumeric() || matches!(ch, '@' | '$' | '#' | '_')
    }

    fn supports_numeric_literal_underscores(&self) -> bool {
        true
    }

    fn supports_array_typedef_with_brackets(&self) -> bool {
        true
    }

    fn supports_unicode_string_literal(&self) -> bool {
        true
    }

    fn supports_string_escape_constant(&self) -> bool {
        true
    }

    fn supports_nested_comments(&self) -> bool {
        true
    }

    fn supports_partition_by_after_order_by(&self) -> bool {
        true
    }

    fn supports_group_by_expr(&self) -> bool {
        true
    }

    fn supports_left_associative_joins_without_parens(&self) -> bool {
        true
    }

    fn supports_window_function_null_treatment_arg(&self) -> bool {
        true
    }

    fn supports_window_clause_named_window_reference(&self) -> bool {
        true
    }

    fn supports_filter_during_aggregation(&self) -> bool {
        true
    }

    fn supports_select_wildcard_except(&self) -> bool {
        true
    }

    fn supports_select_wildcard_exclude(&self) -> bool {
        true
    }

    fn supports_select_wildcard_replace(&self) -> bool {
        true
    }

    fn supports_select_wildcard_ilike(&self) -> bool {
        true
    }

    fn supports_projection_trailing_commas(&self) -> bool {
        true
    }

    fn supports_from_first_select(&self) -> bool {
        true
    }

    fn supports_parens_around_table_factor(&self) -> bool {
        true
    }

    fn supports_values_as_table_factor(&self) -> bool {
        true
    }

    fn supports_limit_comma(&self) -> bool {
        true
    }

    fn allow_extract_custom(&self) -> bool {
        true
    }

    fn allow_extract_single_quotes(&self) -> bool {
        true
    }

    fn supports_extract_comma_syntax(&self) -> bool {
        true
    }

    fn supports_comma_separated_trim(&self) -> bool {
        true
    }

    fn supports_bitwise_shift_operators(&self) -> bool {
        true
    }

    fn supports_constraint_keyword_without_name(&self) -> bool {
        true
    }

    fn supports_key_column_option(&self) -> bool {
        true
    }
}
