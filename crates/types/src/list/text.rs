//! Lists as text.

use super::{Element, ElementType, elements, put_element};
use crate::display::{write_int, write_wide};
use crate::{
    Physical, Rule, TextForm, check_bytes, parse_int, parse_wide, unescape_json_onto,
    write_json_string,
};

/// The list that a text means.
///
/// # Errors
/// The rule that it, or the first element that does, breaks.
pub fn parse_list(field: &[u8], element: ElementType) -> Result<Vec<u8>, Rule> {
    parse_checked_list(field, element, |_, _, _| Ok(()))
}

/// The same, where `check` is asked about each element: its text, whether JSON has it as a string, and what was read of it.
///
/// # Errors
/// The rule that it, or the first element that does, breaks, or that `check` gives.
pub fn parse_checked_list(
    field: &[u8],
    element: ElementType,
    check: impl Fn(&[u8], bool, &Element<'_>) -> Result<(), Rule>,
) -> Result<Vec<u8>, Rule> {
    let mut items = Items { element, notation: JSON, check, list: Vec::with_capacity(field.len()) };
    match field.trim_ascii() {
        [b'[', inner @ .., b']'] => items.parse(inner)?,
        [b'{', inner @ .., b'}'] => {
            items.notation = POSTGRES;
            items.parse(inner)?;
        }
        [] => return Err(Rule::Empty),
        _ => return Err(Rule::NotAList),
    }
    Ok(items.list)
}

/// How lists are written: who ends a bare element, and what a backslash in quotes means.
#[derive(Clone, Copy, PartialEq, Eq)]
struct Notation {
    is_json: bool,
}

const JSON: Notation = Notation { is_json: true };
const POSTGRES: Notation = Notation { is_json: false };

/// The elements that are read of a text.
struct Items<C> {
    element: ElementType,
    notation: Notation,
    check: C,
    list: Vec<u8>,
}

impl<C: Fn(&[u8], bool, &Element<'_>) -> Result<(), Rule>> Items<C> {
    /// Reads what stands between the brackets.
    fn parse(&mut self, inner: &[u8]) -> Result<(), Rule> {
        let mut rest = inner.trim_ascii_start();
        if rest.is_empty() {
            return Ok(());
        }
        let mut text = Vec::new();
        loop {
            let after = match rest {
                [b'"', quoted @ ..] => {
                    let end = string_end(quoted).ok_or(Rule::NotAList)?;
                    text.clear();
                    self.notation.unquote(&quoted[..end], &mut text)?;
                    self.put(&text, Written::InQuotes)?;
                    quoted[end + 1..].trim_ascii_start()
                }
                [b'{', ..] => return Err(Rule::ListInList),
                [b'[', ..] if self.notation.is_json => return Err(Rule::ListInList),
                _ => {
                    let end = memchr::memchr(b',', rest).unwrap_or(rest.len());
                    self.put_bare(rest[..end].trim_ascii_end())?;
                    &rest[end..]
                }
            };
            match after {
                [] => return Ok(()),
                [b',', next @ ..] => rest = next.trim_ascii_start(),
                _ => return Err(Rule::NotAList),
            }
        }
    }

    fn put_bare(&mut self, bare: &[u8]) -> Result<(), Rule> {
        if bare.eq_ignore_ascii_case(b"null") {
            put_element(&mut self.list, None);
            return Ok(());
        }
        let is_bare = match self.notation.is_json {
            true => is_bare(bare),
            false => !bare.is_empty() && !bare.iter().any(|byte| b"\"\\{}".contains(byte)),
        };
        match is_bare {
            true => self.put(bare, Written::Bare),
            false => Err(Rule::NotAList),
        }
    }

    /// Appends an element that is written so. What JSON has in quotes is no number: lists of numbers stay lists of numbers, and
    /// `["1"]` is told.
    fn put(&mut self, text: &[u8], written: Written) -> Result<(), Rule> {
        let data_type = self.element.data_type();
        let is_string = self.notation.is_json && written == Written::InQuotes;
        let is_number = match data_type.facts().text {
            TextForm::Word | TextForm::ExactNumber => true,
            // JSON has no form for floats that are no numbers.
            TextForm::Float => text.iter().any(u8::is_ascii_digit),
            TextForm::Moment | TextForm::Characters | TextForm::Hex | TextForm::List => false,
        };
        if is_string && is_number {
            return Err(Rule::ElementInQuotes);
        }
        let value = match data_type.physical() {
            Physical::Int => Element::Int(parse_int(text, data_type)?),
            Physical::Wide => Element::Wide(parse_wide(text, data_type)?),
            Physical::Bytes => Element::Bytes(check_bytes(text, data_type)?),
        };
        (self.check)(text, is_string, &value)?;
        put_element(&mut self.list, Some(&value));
        Ok(())
    }
}

/// Where the closing quote is of what stands behind the opening one.
fn string_end(quoted: &[u8]) -> Option<usize> {
    let mut at = 0;
    loop {
        at += memchr::memchr2(b'"', b'\\', quoted.get(at..)?)?;
        if quoted[at] == b'"' {
            return Some(at);
        }
        at += 2;
    }
}

/// Whether JSON has it without quotes: a number, or a truth.
fn is_bare(bare: &[u8]) -> bool {
    matches!(bare, b"true" | b"false")
        || matches!(bare, [b'-' | b'0'..=b'9', rest @ ..]
            if rest.iter().all(|byte| matches!(byte, b'0'..=b'9' | b'+' | b'-' | b'.' | b'e' | b'E')))
}

impl Notation {
    /// Appends what stands between quotes.
    fn unquote(self, inner: &[u8], text: &mut Vec<u8>) -> Result<(), Rule> {
        if self.is_json {
            return unescape_json_onto(inner, text).map_err(|_| Rule::NotAList);
        }
        let mut bytes = inner.iter();
        while let Some(byte) = bytes.next() {
            let byte = if *byte == b'\\' { bytes.next().ok_or(Rule::NotAList)? } else { byte };
            text.push(*byte);
        }
        Ok(())
    }
}

/// How an element stands in a list.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Written {
    Bare,
    InQuotes,
}

/// Appends a list as JSON. Bytes that are no such list, which only a bug or a damaged file makes, are written in quotes.
pub fn write_list(list: &[u8], element: ElementType, out: &mut Vec<u8>) {
    let data_type = element.data_type();
    let start = out.len();
    out.push(b'[');
    let mut text = Vec::new();
    for (index, element) in elements(list, element).enumerate() {
        if index > 0 {
            out.extend_from_slice(b", ");
        }
        text.clear();
        match element {
            Ok(Some(Element::Int(value))) => write_int(value, data_type, &mut text),
            Ok(Some(Element::Wide(value))) => write_wide(value, data_type, &mut text),
            Ok(Some(Element::Bytes(value))) => text.extend_from_slice(&value),
            Ok(None) => {
                out.extend_from_slice(b"null");
                continue;
            }
            Err(_) => {
                out.truncate(start);
                return write_json_string(list, out);
            }
        }
        let is_bare = match data_type.facts().text {
            TextForm::Word | TextForm::ExactNumber => true,
            // NaN and inf are letters.
            TextForm::Float => text.last().is_some_and(u8::is_ascii_digit),
            TextForm::Moment | TextForm::Characters | TextForm::Hex | TextForm::List => false,
        };
        match is_bare {
            true => out.extend_from_slice(&text),
            false => write_json_string(&text, out),
        }
    }
    out.push(b']');
}

/// Appends a list as PostgreSQL writes it: `{1,NULL}`. Bytes that are no such list are written in quotes, which PostgreSQL takes
/// for none.
pub fn write_postgres_list(list: &[u8], element: ElementType, out: &mut Vec<u8>) {
    let data_type = element.data_type();
    let start = out.len();
    out.push(b'{');
    let mut text = Vec::new();
    for (index, element) in elements(list, element).enumerate() {
        if index > 0 {
            out.push(b',');
        }
        text.clear();
        match element {
            Ok(Some(Element::Int(value))) => write_int(value, data_type, &mut text),
            Ok(Some(Element::Wide(value))) => write_wide(value, data_type, &mut text),
            Ok(Some(Element::Bytes(value))) => text.extend_from_slice(&value),
            Ok(None) => {
                out.extend_from_slice(b"NULL");
                continue;
            }
            Err(_) => {
                out.truncate(start);
                return write_json_string(list, out);
            }
        }
        write_postgres_element(&text, out);
    }
    out.push(b'}');
}

/// Appends the text of an element of such a list, in quotes where it would be read as something else.
pub fn write_postgres_element(text: &[u8], out: &mut Vec<u8>) {
    let is_plain = |byte: &u8| !byte.is_ascii_whitespace() && !b"\"\\{},\x0b".contains(byte);
    if !text.is_empty() && text.iter().all(is_plain) && !text.eq_ignore_ascii_case(b"null") {
        return out.extend_from_slice(text);
    }
    out.push(b'"');
    for byte in text {
        if matches!(byte, b'"' | b'\\') {
            out.push(b'\\');
        }
        out.push(*byte);
    }
    out.push(b'"');
}
