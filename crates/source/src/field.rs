//! What a field means before its type is looked at: NULL, or bytes without quotes.

use std::borrow::Cow;

use coload_format::parse_value::{Rule, parse_value};
use coload_format::{DataType, Physical};

use crate::formats::Formats;

/// How the bytes of a field are to be read.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct FieldRules {
    /// Around a field.
    pub quote: Option<u8>,
    /// Before a quote inside a quoted field; a quote doubles otherwise.
    pub escape: Option<u8>,
    /// Unquoted fields that are NULL.
    pub nulls: Vec<Vec<u8>>,
    /// Fields, quoted or not, that are NULL in columns of other types than text.
    pub typed_nulls: Vec<Vec<u8>>,
    /// How numbers and dates are written.
    pub formats: Formats,
}

/// Why a field is no value of its column.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum FieldError {
    /// NULL where the column is NOT NULL.
    Null,
    /// Text after a closing quote, or no closing quote.
    Quote,
    /// Not a value of the type.
    Rule(Rule),
}

impl FieldError {
    /// What is wrong, and what helps.
    pub fn texts(self) -> (&'static str, &'static str) {
        match self {
            FieldError::Null => {
                ("NULL in a NOT NULL column", "no NOT NULL in --columns, or another --null")
            }
            FieldError::Quote => (
                "its quotes do not enclose it",
                "--quotes lenient, --quote with another character or none, or --escape",
            ),
            FieldError::Rule(rule) => (rule.text(), rule.advice()),
        }
    }
}

impl FieldRules {
    /// The field's bytes, or `None` for NULL.
    pub fn read<'a>(&self, raw: &'a [u8]) -> Result<Option<Cow<'a, [u8]>>, FieldError> {
        let text = match self.quote {
            Some(quote) if raw.first() == Some(&quote) => {
                self.unquote(raw, quote).ok_or(FieldError::Quote)?
            }
            _ if self.nulls.iter().any(|n| n == raw) => return Ok(None),
            _ => Cow::Borrowed(raw),
        };
        Ok((!self.is_typed_null(&text)).then_some(text))
    }

    /// The rules of a column of a type.
    pub fn of(&self, data_type: DataType) -> Self {
        let mut rules = self.clone();
        if is_text(data_type) {
            rules.typed_nulls.clear();
        }
        rules
    }

    /// Whether a field is NULL in columns that are not text.
    pub fn is_typed_null(&self, text: &[u8]) -> bool {
        !self.typed_nulls.is_empty() && self.typed_nulls.iter().any(|n| n == text.trim_ascii())
    }

    /// Whether some text that is NULL could be read as a value of a type.
    pub fn has_nulls_of(&self, data_type: DataType) -> bool {
        let of_type = |null: &Vec<u8>| parse_value(null, data_type).is_ok();
        !is_text(data_type) && self.nulls.iter().chain(&self.typed_nulls).any(of_type)
    }

    fn unquote<'a>(&self, raw: &'a [u8], quote: u8) -> Option<Cow<'a, [u8]>> {
        let inner = raw.get(1..)?.strip_suffix(&[quote])?;
        let escape = self.escape.unwrap_or(quote);
        if memchr::memchr2(quote, escape, inner).is_none() {
            return Some(Cow::Borrowed(inner));
        }
        let mut out = Vec::with_capacity(inner.len());
        let mut rest = inner.iter();
        while let Some(byte) = rest.next() {
            if *byte == escape {
                // A doubled quote must be followed by one; an escape keeps whatever follows.
                let next = rest.next()?;
                if escape == quote && *next != quote {
                    return None;
                }
                out.push(*next);
            } else if *byte == quote {
                // Both conventions in one file: a doubled quote stands for one.
                if rest.next() != Some(&quote) {
                    return None;
                }
                out.push(quote);
            } else {
                out.push(*byte);
            }
        }
        Some(Cow::Owned(out))
    }
}

/// Whether columns of a type hold any text.
fn is_text(data_type: DataType) -> bool {
    data_type.physical() == Physical::Bytes
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]
    use super::*;

    #[test]
    fn quotes_are_removed_and_nulls_are_told_from_empty_text() {
        let rules = FieldRules {
            quote: Some(b'"'),
            nulls: vec![vec![], b"\\N".to_vec()],
            ..FieldRules::default()
        };
        let read = |raw: &'static str| rules.read(raw.as_bytes());
        assert_eq!(read("").unwrap(), None);
        assert_eq!(read("\\N").unwrap(), None);
        assert_eq!(read("\"\"").unwrap().unwrap(), &b""[..]);
        assert_eq!(read("\"a\"\"b\"").unwrap().unwrap(), &b"a\"b"[..]);
        assert_eq!(read("a\"b").unwrap().unwrap(), &b"a\"b"[..]);
        assert_eq!(read("\"a\"b").unwrap_err(), FieldError::Quote);
        assert_eq!(read("\"").unwrap_err(), FieldError::Quote);
        let escaped = FieldRules { escape: Some(b'\\'), ..rules };
        assert_eq!(escaped.read(b"\"a\\\"b\\\\\"").unwrap().unwrap(), &b"a\"b\\"[..]);
    }
}
