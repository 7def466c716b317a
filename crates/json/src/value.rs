//! Checks a value of any kind, and says where it ends.

use std::collections::HashSet;

use foldhash::fast::RandomState;

use crate::fault::{Fault, Rule};
use crate::number::number_end;
use crate::space::{LineBreaks, byte_at, skip_space};
use crate::string::{Found, find_end, unescape};

/// Most lists and objects in each other.
pub const DEPTH_MAX: usize = 512;
/// Keys that are compared each with each; more are looked up.
const KEYS_COMPARED_MAX: usize = 16;

/// Room that is used again from value to value.
#[derive(Debug, Default)]
pub struct Scratch {
    /// Keys of the objects that are open: where they stand between their quotes, and whether they have escapes.
    keys: Vec<(usize, usize, bool)>,
    /// The brackets that close what is open, and where the keys begin of each object.
    open: Vec<(u8, usize)>,
    /// Escapes are checked here.
    text: Vec<u8>,
}

/// Checks the value that begins at `at`, which is no white space; its end.
///
/// # Errors
/// What is wrong with it.
pub fn check_value(text: &[u8], at: usize, breaks: LineBreaks) -> Result<usize, Fault> {
    Scratch::default().check(text, (at, 0), breaks)
}

impl Scratch {
    /// As [`check_value`], of a value that is within so many lists and objects.
    pub fn check(
        &mut self,
        text: &[u8],
        (mut at, around): (usize, usize),
        breaks: LineBreaks,
    ) -> Result<usize, Fault> {
        self.keys.clear();
        self.open.clear();
        loop {
            at = match byte_at(text, at) {
                bracket @ (b'{' | b'[') => {
                    if around + self.open.len() >= DEPTH_MAX {
                        return Err(Fault::new(Rule::TooDeep, at));
                    }
                    // The closing one is the second behind the opening one.
                    self.open.push((bracket + 2, self.keys.len()));
                    let first = skip_space(text, at + 1, breaks);
                    if byte_at(text, first) == bracket + 2 {
                        first
                    } else {
                        at = self.begin_item(text, first, breaks)?;
                        continue;
                    }
                }
                _ => self.check_scalar(text, at)?,
            };
            loop {
                let Some((close, _)) = self.open.last().copied() else { return Ok(at) };
                at = skip_space(text, at, breaks);
                match byte_at(text, at) {
                    b',' => {
                        let next = skip_space(text, at + 1, breaks);
                        if byte_at(text, next) == close {
                            return Err(Fault::new(Rule::TrailingComma, at));
                        }
                        at = self.begin_item(text, next, breaks)?;
                        break;
                    }
                    byte if byte == close => {
                        self.close(text)?;
                        at += 1;
                    }
                    _ => return Err(Fault::new(Rule::NoComma, at)),
                }
            }
        }
    }

    /// Where the value begins of an item that begins at `at`: behind the key in an object.
    fn begin_item(&mut self, text: &[u8], at: usize, breaks: LineBreaks) -> Result<usize, Fault> {
        if self.open.last().is_some_and(|(close, _)| *close == b']') {
            return Ok(at);
        }
        if byte_at(text, at) != b'"' {
            return Err(Fault::new(Rule::NoKey, at));
        }
        let Found { end, is_escaped } = find_end(text, at + 1)?;
        self.keys.push((at + 1, end, is_escaped));
        let colon = skip_space(text, end + 1, breaks);
        if byte_at(text, colon) != b':' {
            return Err(Fault::new(Rule::NoColon, colon));
        }
        Ok(skip_space(text, colon + 1, breaks))
    }

    /// Ends the innermost list or object.
    fn close(&mut self, text: &[u8]) -> Result<(), Fault> {
        let Some((close, first)) = self.open.pop() else { return Ok(()) };
        if close == b'}' {
            check_keys(text, &self.keys[first..])?;
            self.keys.truncate(first);
        }
        Ok(())
    }

    /// Checks a string, a number or a word; its end.
    #[inline(always)]
    pub fn check_scalar(&mut self, text: &[u8], at: usize) -> Result<usize, Fault> {
        match byte_at(text, at) {
            b'"' => {
                let Found { end, is_escaped } = find_end(text, at + 1)?;
                if is_escaped {
                    self.text.clear();
                    crate::string::unescape_onto(&text[at + 1..end], at + 1, &mut self.text)?;
                }
                Ok(end + 1)
            }
            b'-' | b'0'..=b'9' => number_end(text, at),
            _ => word_end(text, at),
        }
    }
}

/// The end of `true`, `false` or `null`.
#[inline(always)]
pub fn word_end(text: &[u8], at: usize) -> Result<usize, Fault> {
    let rest = text.get(at..).unwrap_or_default();
    let word = [&b"true"[..], b"false", b"null"].into_iter().find(|word| rest.starts_with(word));
    word.map(|word| at + word.len()).ok_or(Fault::new(Rule::NoValue, at))
}

/// Checks that no key comes twice.
fn check_keys(text: &[u8], keys: &[(usize, usize, bool)]) -> Result<(), Fault> {
    let plain = keys.iter().all(|(.., is_escaped)| !is_escaped);
    let twice = |start: usize| Fault::new(Rule::TwiceTheKey, start - 1);
    if plain && keys.len() <= KEYS_COMPARED_MAX {
        for (number, (start, end, _)) in keys.iter().enumerate() {
            let same = |(s, e, _): &(usize, usize, bool)| text[*s..*e] == text[*start..*end];
            if keys[..number].iter().any(same) {
                return Err(twice(*start));
            }
        }
        return Ok(());
    }
    let mut seen = HashSet::with_capacity_and_hasher(keys.len(), RandomState::default());
    for (start, end, is_escaped) in keys {
        if !seen.insert(unescape(&text[*start..*end], *start, *is_escaped)?) {
            return Err(twice(*start));
        }
    }
    Ok(())
}
