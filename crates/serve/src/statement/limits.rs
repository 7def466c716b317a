//! How large a statement may be, and how long looking at it may take.
//!
//! What a statement costs before it runs grows with its text, its terms and its depth; each is bounded, so that
//! planning ends whatever was sent, also after its caller was told that it takes too long.

use std::time::Duration;

/// Bounds of one statement, and of the planning of all.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct StatementLimits {
    /// Bytes of the text. An INSERT of some MB of values fits.
    pub text_bytes: usize,
    /// Words, numbers, texts and signs of the text: each takes some hundred bytes while it is planned.
    pub terms: usize,
    /// Levels of nesting: parentheses, subqueries, function calls, terms of a sum. AND and OR do not count.
    pub depth: usize,
    /// Time until a statement is planned. Its caller has an error then, whatever planning still does.
    pub planning: Duration,
    /// Statements that are planned at the same time; one user has at most half of them.
    pub plannings: usize,
}

impl Default for StatementLimits {
    /// 16 MiB, 1,000,000 terms, 500 levels, 10 s, 16 statements.
    fn default() -> Self {
        StatementLimits {
            text_bytes: 16 << 20,
            terms: 1_000_000,
            depth: 500,
            planning: Duration::from_secs(10),
            plannings: 16,
        }
    }
}
