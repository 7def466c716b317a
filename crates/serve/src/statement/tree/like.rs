//! Patterns of LIKE with an escape of their own.

use coload_types::Result;
use datafusion::sql::sqlparser::ast::{Expr, Value, ValueWithSpan};

use super::refuse;

/// Writes a pattern with another escape with backslashes, the only one that the engine has.
pub(super) fn escape_by_backslash(
    pattern: &mut Expr,
    escape: &mut Option<ValueWithSpan>,
) -> Result<()> {
    let Some(ValueWithSpan { value: Value::SingleQuotedString(text), .. }) = &*escape else {
        return Ok(());
    };
    let mut letters = text.chars();
    let (Some(sign), None) = (letters.next(), letters.next()) else {
        return refuse(&format!("ESCAPE '{text}'"), "it is one character");
    };
    if sign == '\\' {
        return Ok(());
    }
    let Expr::Value(ValueWithSpan { value: Value::SingleQuotedString(pattern), .. }) = pattern
    else {
        return refuse(&format!("ESCAPE '{text}' of a pattern that is not a text"), "write \\");
    };
    let mut written = String::with_capacity(pattern.len());
    let mut letters = pattern.chars();
    while let Some(letter) = letters.next() {
        let meant = match letter {
            letter if letter == sign => match letters.next() {
                Some(next) => next,
                None => return refuse("a LIKE pattern that ends in its escape", "double it"),
            },
            // A backslash is itself.
            '\\' => letter,
            other => {
                written.push(other);
                continue;
            }
        };
        if matches!(meant, '%' | '_' | '\\') {
            written.push('\\');
        }
        written.push(meant);
    }
    *pattern = written;
    *escape = None;
    Ok(())
}
