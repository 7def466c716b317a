//! Parameters written `?`, as JDBC does, become `$1`, `$2` and so on, which DataFusion knows.

use std::borrow::Cow;

use coload_format::{Error, Result};
use datafusion::sql::sqlparser::tokenizer::Token;

use super::split::Tokens;

/// Most parameters of a statement.
pub(crate) const PARAMETERS_MAX: usize = 65_535;

/// The statement with numbered parameters.
///
/// # Errors
/// `Invalid` when it has `?` and `$1` both, or names parameters; `Limit` when it has too many.
pub(crate) fn resolve(text: &str) -> Result<Cow<'_, str>> {
    if !text.contains(['?', '$', ':', '@']) {
        return Ok(Cow::Borrowed(text));
    }
    let tokens = Tokens::of(text);
    let mut changed = String::with_capacity(text.len() + 16);
    let (mut copied, mut count, mut numbered) = (0, 0, false);
    for (index, token) in tokens.all() {
        let Token::Placeholder(name) = token else { continue };
        if name != "?" {
            let number = name.strip_prefix('$').and_then(|n| n.parse::<usize>().ok());
            match number {
                Some(1..=PARAMETERS_MAX) => numbered = true,
                _ => {
                    return Err(Error::Invalid(format!(
                        "parameter {name} is not supported: write ? or $1 to ${PARAMETERS_MAX}"
                    )));
                }
            }
            continue;
        }
        let Some((start, end)) = tokens.range(index) else { continue };
        count += 1;
        changed.push_str(&text[copied..start]);
        changed.push_str(&format!("${count}"));
        copied = end;
    }
    if count > 0 && numbered {
        return Err(Error::Invalid("parameters are either all ? or all numbered as in $1".into()));
    }
    if count > PARAMETERS_MAX {
        return Err(Error::Limit(format!("{count} parameters, over {PARAMETERS_MAX}")));
    }
    changed.push_str(&text[copied..]);
    Ok(Cow::Owned(changed))
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]
    use super::*;

    #[test]
    fn question_marks_outside_quotes_are_numbered() {
        assert_eq!(
            resolve("SELECT '?', \"?\" /* ? */ FROM t WHERE a = ? AND b IN (?,?) -- ?").unwrap(),
            "SELECT '?', \"?\" /* ? */ FROM t WHERE a = $1 AND b IN ($2,$3) -- ?"
        );
        assert_eq!(resolve("SELECT $2 + $1").unwrap(), "SELECT $2 + $1");
        assert_eq!(resolve("SELECT 'a:b@c$d'").unwrap(), "SELECT 'a:b@c$d'");
    }

    #[test]
    fn parameters_that_have_no_number_are_refused() {
        for text in ["SELECT ?, $1", "SELECT $0", "SELECT $name", "SELECT $70000"] {
            assert!(matches!(resolve(text), Err(Error::Invalid(_))), "{text}");
        }
    }
}
