//! Numbers with an exponent are floats: `1e300` has no place among decimals, as which DataFusion
//! would read it here.

use std::borrow::Cow;

use datafusion::sql::sqlparser::tokenizer::Token;

use super::split::Tokens;

/// The statement with each `1e3` as `CAST('1e3' AS DOUBLE)`.
pub(crate) fn resolve(text: &str) -> Cow<'_, str> {
    let may_have =
        text.as_bytes().windows(2).any(|pair| matches!(pair, [b'0'..=b'9' | b'.', b'e' | b'E']));
    if !may_have {
        return Cow::Borrowed(text);
    }
    let tokens = Tokens::of(text);
    let mut changed = String::with_capacity(text.len() + 32);
    let mut copied = 0;
    for (index, token) in tokens.all() {
        let Token::Number(digits, _) = token else { continue };
        if !digits.contains(['e', 'E']) {
            continue;
        }
        let Some((start, end)) = tokens.range(index) else { continue };
        changed.push_str(&text[copied..start]);
        changed.push_str(&format!("CAST('{digits}' AS DOUBLE)"));
        copied = end;
    }
    changed.push_str(&text[copied..]);
    Cow::Owned(changed)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_numbers_with_an_exponent_change() {
        assert_eq!(resolve("SELECT 1.5, '2e3', t3e FROM a1e2"), "SELECT 1.5, '2e3', t3e FROM a1e2");
        assert_eq!(
            resolve("SELECT -1e300, 2.5E-3+x"),
            "SELECT -CAST('1e300' AS DOUBLE), CAST('2.5E-3' AS DOUBLE)+x"
        );
    }
}
