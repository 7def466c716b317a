//! What a field means before its type is looked at: NULL, or bytes without quotes.

use std::borrow::Cow;

use coload_types::parse_value::{Rule, parse_value};
use coload_types::{DataType, Physical};

use crate::dialect::{Escapes, NullsAre};
use crate::formats::Formats;
use crate::type_order::TypeOrder;

/// How the bytes of a field are to be read.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct FieldRules {
    /// Byte around fields that are quoted; `None` when no byte is a quote.
    pub quote: Option<u8>,
    /// Before a quote inside a quoted field; a quote doubles otherwise.
    pub escape: Option<u8>,
    /// Where the escape is one.
    pub escapes: Escapes,
    /// Fields that are NULL.
    pub nulls: Vec<Vec<u8>>,
    /// Whether fields in quotes can be NULL too.
    pub nulls_are: NullsAre,
    /// Fields, quoted or not, that are NULL in columns of other types than text.
    pub typed_nulls: Vec<Vec<u8>>,
    /// How numbers and dates are written.
    pub formats: Formats,
    /// Types that inference takes, in order.
    pub types: TypeOrder,
}

/// Why a field is no value of its column.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum FieldError {
    /// NULL where the column is NOT NULL.
    Null,
    /// Text after a closing quote, or no closing quote.
    Quote,
    /// An escape that nothing follows.
    Escape,
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
            FieldError::Escape => (
                "its escape has nothing behind it",
                "--escapes quoted if it is text outside quotes, or another --escape",
            ),
            FieldError::Rule(rule) => (rule.text(), rule.advice()),
        }
    }

    /// What helps with a value of an input whose values have types, where it is no flag of text.
    pub fn typed_advice(self) -> Option<&'static str> {
        let FieldError::Rule(rule) = self else {
            return Some("no NOT NULL in --columns, or --max-rejects N to set such records aside");
        };
        match rule {
            Rule::NotUtf8 | Rule::NulByte => {
                Some("BINARY in --columns, or --max-rejects N to set such records aside")
            }
            Rule::Empty
            | Rule::NotANumber
            | Rule::NotADate
            | Rule::NotATime
            | Rule::NotATimestamp
            | Rule::NotABoolean
            | Rule::NotAUuid
            | Rule::NotOfTheForm
            | Rule::NotAsInferred
            | Rule::NotHex
            | Rule::NotAList
            | Rule::ListInList
            | Rule::ElementInQuotes => {
                Some("another type in --columns, or --max-rejects N to set such records aside")
            }
            Rule::NotAnInteger
            | Rule::OutOfRange
            | Rule::TooManyFractionDigits
            | Rule::TooManyDigits
            | Rule::NoSuchDate
            | Rule::NoSuchTime
            | Rule::TooFine
            | Rule::HasZone
            | Rule::NoSuchZone
            | Rule::TooLong => None,
        }
    }
}

impl FieldRules {
    /// The field's bytes, or `None` for NULL.
    pub fn read<'a>(&self, raw: &'a [u8]) -> Result<Option<Cow<'a, [u8]>>, FieldError> {
        let text = match self.quote {
            Some(quote) if raw.first() == Some(&quote) => {
                let text = self.unquote(raw, quote).ok_or(FieldError::Quote)?;
                if self.nulls_are == NullsAre::AlsoQuoted && self.is_null(&text) {
                    return Ok(None);
                }
                text
            }
            _ if self.is_null(raw) => return Ok(None),
            _ if self.has_escape(raw) => {
                let escape = self.escape.unwrap_or_default();
                unescape(raw, escape, self.escapes).ok_or(FieldError::Escape)?
            }
            _ => Cow::Borrowed(raw),
        };
        Ok((!self.is_typed_null(&text)).then_some(text))
    }

    /// Whether a text stands for NULL in any column.
    fn is_null(&self, text: &[u8]) -> bool {
        if text.is_empty() {
            return self.empty_is_null();
        }
        self.nulls.iter().any(|null| null == text)
    }

    /// Whether a field without a byte stands for NULL in any column. No bytes are compared: comparing empty texts with each
    /// other took half of the time of a table that is mostly NULL.
    pub fn empty_is_null(&self) -> bool {
        self.nulls.iter().any(Vec::is_empty)
    }

    /// Whether a field without quotes is not the text it stands for.
    pub fn has_escape(&self, raw: &[u8]) -> bool {
        let escape = self.escape.filter(|_| self.escapes != Escapes::Quoted);
        escape.is_some_and(|escape| memchr::memchr(escape, raw).is_some())
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
        self.unquote_onto(inner, quote, &mut out)?;
        Some(Cow::Owned(out))
    }

    /// Appends what stands for the bytes between the quotes of a field; `None` where they are not those of one field.
    #[inline]
    pub(crate) fn unquote_onto(&self, inner: &[u8], quote: u8, out: &mut Vec<u8>) -> Option<()> {
        let escape = self.escape.unwrap_or(quote);
        let mut rest = inner;
        while let Some(at) = memchr::memchr2(quote, escape, rest) {
            out.extend_from_slice(&rest[..at]);
            let (byte, behind) = (rest[at], &rest[at + 1..]);
            // A doubled quote must be followed by one; an escape keeps whatever follows. Both conventions may be in one
            // file: a doubled quote stands for one.
            let next = *behind.first()?;
            if (byte == quote || escape == quote) && next != quote {
                return None;
            }
            let length = match byte == quote {
                true => {
                    out.push(quote);
                    1
                }
                false => push_escaped(behind, self.escapes, out),
            };
            rest = &behind[length..];
        }
        out.extend_from_slice(rest);
        Some(())
    }
}

/// The text of a field without quotes; `None` where nothing follows an escape. `\\N` by itself stays as it is.
pub fn unescape(raw: &[u8], escape: u8, escapes: Escapes) -> Option<Cow<'_, [u8]>> {
    if escapes == Escapes::Letters && matches!(raw, [first, b'N'] if *first == escape) {
        return Some(Cow::Borrowed(raw));
    }
    let mut out = Vec::with_capacity(raw.len());
    let mut rest = raw;
    while let Some(at) = memchr::memchr(escape, rest) {
        out.extend_from_slice(&rest[..at]);
        rest = &rest[at + 1..];
        if rest.is_empty() {
            return None;
        }
        rest = &rest[push_escaped(rest, escapes, &mut out)..];
    }
    out.extend_from_slice(rest);
    Some(Cow::Owned(out))
}

/// Appends what an escape before `text`, which is not empty, makes of it; the bytes that it took.
pub fn push_escaped(text: &[u8], escapes: Escapes, out: &mut Vec<u8>) -> usize {
    let (byte, length) = match (escapes, text) {
        (Escapes::Letters, [b'x', digits @ ..]) => digits_value(digits, 16, 2)
            .map_or((b'x', 1), |(value, length)| (value as u8, 1 + length)),
        (Escapes::Letters, [b'0'..=b'7', ..]) => {
            digits_value(text, 8, 3).map_or((text[0], 1), |(value, length)| (value as u8, length))
        }
        (Escapes::Letters, [letter, ..]) => (letter_value(*letter), 1),
        (_, [byte, ..]) => (*byte, 1),
        (_, []) => return 0,
    };
    out.push(byte);
    length
}

/// What a letter means behind an escape to MySQL and PostgreSQL.
fn letter_value(letter: u8) -> u8 {
    match letter {
        b'b' => 8,
        b't' => b'\t',
        b'n' => b'\n',
        b'v' => 11,
        b'f' => 12,
        b'r' => b'\r',
        b'Z' => 26,
        other => other,
    }
}

/// The number of at most `most` digits, and how many there are; `None` for none.
fn digits_value(text: &[u8], radix: u32, most: usize) -> Option<(u32, usize)> {
    let digits = text.iter().take(most).map_while(|byte| char::from(*byte).to_digit(radix));
    let (value, count) = digits.fold((0, 0), |(value, count), d| (value * radix + d, count + 1));
    (count > 0).then_some((value, count))
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
        assert_eq!(escaped.read(b"a\\tb").unwrap().unwrap(), &b"a\\tb"[..]);
    }

    /// [`FieldRules::unquote`] byte by byte.
    fn unquote_slowly(rules: &FieldRules, raw: &[u8], quote: u8) -> Option<Vec<u8>> {
        let inner = raw.get(1..)?.strip_suffix(&[quote])?;
        let escape = rules.escape.unwrap_or(quote);
        let mut out = Vec::new();
        let mut rest = inner.iter();
        while let Some(byte) = rest.next() {
            if *byte == escape {
                let next = rest.as_slice().first()?;
                if escape == quote && *next != quote {
                    return None;
                }
                let length = push_escaped(rest.as_slice(), rules.escapes, &mut out);
                rest = rest.as_slice()[length..].iter();
            } else if *byte == quote {
                if rest.next() != Some(&quote) {
                    return None;
                }
                out.push(quote);
            } else {
                out.push(*byte);
            }
        }
        Some(out)
    }

    #[test]
    fn quotes_are_removed_as_byte_by_byte() {
        let alphabet = b"\"\\an1x";
        for escape in [None, Some(b'\\'), Some(b'"')] {
            for escapes in [Escapes::Quoted, Escapes::Letters] {
                let rules =
                    FieldRules { quote: Some(b'"'), escape, escapes, ..FieldRules::default() };
                for number in 0..6_usize.pow(6) {
                    let digits = (0..6).map(|place| number / 6_usize.pow(place) % 6);
                    let mut raw = vec![b'"'];
                    raw.extend(digits.map(|digit| alphabet[digit]).take(number % 7));
                    raw.push(b'"');
                    let fast = rules.unquote(&raw, b'"').map(Cow::into_owned);
                    assert_eq!(fast, unquote_slowly(&rules, &raw, b'"'), "{raw:?} {escape:?}");
                }
            }
        }
    }

    #[test]
    fn escapes_outside_quotes_are_taken_off() {
        let of = |escapes| FieldRules {
            escape: Some(b'\\'),
            escapes,
            nulls: vec![b"\\N".to_vec()],
            ..FieldRules::default()
        };
        let (anywhere, letters) = (of(Escapes::Anywhere), of(Escapes::Letters));
        for (raw, any, letter) in [
            ("a\\,b", Some("a,b"), Some("a,b")),
            ("a\\tb\\\\n", Some("atb\\n"), Some("a\tb\\n")),
            ("\\x41\\101\\0", Some("x411010"), Some("AA\0")),
            ("\\xyz\\8", Some("xyz8"), Some("xyz8")),
            ("\\N", None, None),
            ("\\Na", Some("Na"), Some("Na")),
        ] {
            for (rules, expected) in [(&anywhere, any), (&letters, letter)] {
                let found = rules.read(raw.as_bytes()).unwrap();
                assert_eq!(
                    found.as_deref(),
                    expected.map(str::as_bytes),
                    "{raw} {:?}",
                    rules.escapes
                );
            }
        }
        assert_eq!(letters.read(b"a\\").unwrap_err(), FieldError::Escape);
        let kept = FieldRules { nulls: Vec::new(), ..letters };
        assert_eq!(kept.read(b"\\N").unwrap().unwrap(), &b"\\N"[..]);
    }

    #[test]
    fn quoted_texts_are_null_where_that_is_said() {
        let mut rules =
            FieldRules { quote: Some(b'"'), nulls: vec![b"NA".to_vec()], ..FieldRules::default() };
        assert_eq!(rules.read(b"\"NA\"").unwrap().unwrap(), &b"NA"[..]);
        rules.nulls_are = NullsAre::AlsoQuoted;
        assert_eq!(rules.read(b"\"NA\"").unwrap(), None);
        assert_eq!(rules.read(b"NA").unwrap(), None);
    }
}
