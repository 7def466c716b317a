//! A record as a tree: for samples and tests, where speed does not matter.

use std::borrow::Cow;

use crate::fault::{Fault, Rule};
use crate::number::number_end;
use crate::space::{LineBreaks, byte_at, skip_space};
use crate::string::{Found, find_end, unescape};
use crate::value::{check_value, word_end};

/// A value.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Json<'a> {
    /// `null`.
    Null,
    /// `true` or `false`.
    Bool(bool),
    /// A number as it is written.
    Number(&'a [u8]),
    /// What a string stands for.
    Text(Cow<'a, [u8]>),
    /// A list as it is written.
    List(&'a [u8]),
    /// Keys and values of an object, in their order; and the object as it is written.
    Object(Vec<(Cow<'a, [u8]>, Json<'a>)>, &'a [u8]),
}

/// The value that begins at `at`, and its end.
///
/// # Errors
/// What is wrong with it.
pub fn parse_tree(text: &[u8], at: usize, breaks: LineBreaks) -> Result<(Json<'_>, usize), Fault> {
    let end = check_value(text, at, breaks)?;
    Ok((tree(text, at)?.0, end))
}

/// A value that was checked.
fn tree(text: &[u8], at: usize) -> Result<(Json<'_>, usize), Fault> {
    let breaks = LineBreaks::AreSpace;
    match byte_at(text, at) {
        b'"' => {
            let Found { end, is_escaped } = find_end(text, at + 1)?;
            Ok((Json::Text(unescape(&text[at + 1..end], at + 1, is_escaped)?), end + 1))
        }
        b'[' => {
            let end = check_value(text, at, breaks)?;
            Ok((Json::List(&text[at..end]), end))
        }
        b'{' => {
            let mut entries = Vec::new();
            let mut next = skip_space(text, at + 1, breaks);
            while byte_at(text, next) == b'"' {
                let Found { end, is_escaped } = find_end(text, next + 1)?;
                let key = unescape(&text[next + 1..end], next + 1, is_escaped)?;
                let colon = skip_space(text, end + 1, breaks);
                let (value, end) = tree(text, skip_space(text, colon + 1, breaks))?;
                entries.push((key, value));
                next = skip_space(text, end, breaks);
                if byte_at(text, next) == b',' {
                    next = skip_space(text, next + 1, breaks);
                }
            }
            Ok((Json::Object(entries, &text[at..=next]), next + 1))
        }
        b'-' | b'0'..=b'9' => {
            let end = number_end(text, at)?;
            Ok((Json::Number(&text[at..end]), end))
        }
        first => {
            let end = word_end(text, at)?;
            let value = match first {
                b't' => Json::Bool(true),
                b'f' => Json::Bool(false),
                b'n' => Json::Null,
                _ => return Err(Fault::new(Rule::NoValue, at)),
            };
            Ok((value, end))
        }
    }
}
