//! What is said of statements that are not supported.

use coload_types::Error;
use datafusion::sql::sqlparser::ast::Statement as SqlStatement;

/// Why a statement is not supported, and what to do instead.
pub(super) fn refusal(statement: &SqlStatement) -> Error {
    let words = first_words(statement);
    let instead = match statement {
        SqlStatement::StartTransaction { .. }
        | SqlStatement::Commit { .. }
        | SqlStatement::Rollback { .. } => "each statement is a transaction of its own",
        SqlStatement::Set(_) | SqlStatement::Reset(_) => "each statement starts with the defaults",
        SqlStatement::Prepare { .. } | SqlStatement::Execute { .. } => {
            "drivers prepare statements by themselves; write ? for parameters"
        }
        SqlStatement::Copy { .. } => "COPY table or (query) TO 'file' must come first in the text",
        _ => {
            "there is SELECT, PIVOT, UNPIVOT, EXPLAIN, SHOW, DESCRIBE, CREATE/DROP/TRUNCATE/ALTER TABLE, CREATE/DROP VIEW, INSERT, UPDATE, DELETE, MERGE and COPY .. TO"
        }
    };
    unsupported(&words, instead)
}

pub(crate) fn unsupported(what: &str, instead: &str) -> Error {
    Error::Invalid(format!("{what} is not supported: {instead}"))
}

/// The keywords that a statement starts with.
pub(super) fn first_words(statement: &SqlStatement) -> String {
    const WORDS: usize = 2;
    let text = statement.to_string();
    let is_keyword = |w: &&str| w.bytes().all(|b| b.is_ascii_uppercase() || b == b'_');
    let words: Vec<&str> = text.split_whitespace().take(WORDS).take_while(is_keyword).collect();
    words.join(" ")
}
