//! Strings: where they end, and what they stand for.

use std::borrow::Cow;

use crate::fault::{Fault, Rule};
use crate::masks::{STEP, special_in_string, step_at};
use crate::space::byte_at;

/// A string that was found.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Found {
    /// Where its closing quote stands.
    pub end: usize,
    /// Whether it has escapes.
    pub is_escaped: bool,
}

/// Finds the end of the string whose first byte behind the quote is at `at`. What its escapes are is not looked at.
#[inline(always)]
pub fn find_end(text: &[u8], at: usize) -> Result<Found, Fault> {
    if let Some(bytes) = step_at(text, at) {
        let special = special_in_string(bytes);
        if special != 0 {
            let end = at + special.trailing_zeros() as usize;
            if text[end] == b'"' {
                return Ok(Found { end, is_escaped: false });
            }
        }
    }
    find_far_end(text, at)
}

/// [`find_end`] of a long string, or one with escapes.
fn find_far_end(text: &[u8], start: usize) -> Result<Found, Fault> {
    let (mut at, mut is_escaped) = (start, false);
    loop {
        let Some(bytes) = step_at(text, at) else {
            return Err(Fault::new(Rule::Open, start.saturating_sub(1)));
        };
        let special = special_in_string(bytes);
        if special == 0 {
            at += STEP;
            continue;
        }
        at += special.trailing_zeros() as usize;
        match text[at] {
            b'"' => return Ok(Found { end: at, is_escaped }),
            b'\\' if byte_at(text, at + 1) >= b' ' => {
                is_escaped = true;
                at += 2;
            }
            b'\\' => return Err(Fault::new(Rule::Escape, at)),
            _ => return Err(Fault::new(Rule::Control, at)),
        }
    }
}

/// Appends what the bytes of a string between its quotes stand for; `at` is where they stand.
///
/// # Errors
/// `Escape` and `Surrogate`.
pub fn unescape_onto(inner: &[u8], at: usize, out: &mut Vec<u8>) -> Result<(), Fault> {
    let mut done = 0;
    while let Some(next) = memchr::memchr(b'\\', &inner[done..]) {
        let escape = done + next;
        out.extend_from_slice(&inner[done..escape]);
        let plain = match inner.get(escape + 1) {
            Some(byte @ (b'"' | b'\\' | b'/')) => *byte,
            Some(b'b') => 8,
            Some(b'f') => 12,
            Some(b'n') => b'\n',
            Some(b'r') => b'\r',
            Some(b't') => b'\t',
            Some(b'u') => {
                let (character, length) =
                    character(&inner[escape..]).map_err(|rule| Fault::new(rule, at + escape))?;
                let mut bytes = [0; 4];
                out.extend_from_slice(character.encode_utf8(&mut bytes).as_bytes());
                done = escape + length;
                continue;
            }
            _ => return Err(Fault::new(Rule::Escape, at + escape)),
        };
        out.push(plain);
        done = escape + 2;
    }
    out.extend_from_slice(&inner[done..]);
    Ok(())
}

/// What the bytes of a string between its quotes stand for.
///
/// # Errors
/// As [`unescape_onto`].
pub fn unescape(inner: &[u8], at: usize, is_escaped: bool) -> Result<Cow<'_, [u8]>, Fault> {
    if !is_escaped {
        return Ok(Cow::Borrowed(inner));
    }
    let mut out = Vec::with_capacity(inner.len());
    unescape_onto(inner, at, &mut out)?;
    Ok(Cow::Owned(out))
}

/// The character of `\uXXXX`, or of two of them, and their bytes.
fn character(text: &[u8]) -> Result<(char, usize), Rule> {
    let first = unit(text).ok_or(Rule::Escape)?;
    if let Some(character) = char::from_u32(first) {
        return Ok((character, 6));
    }
    let second = text.get(6..).and_then(unit).ok_or(Rule::Surrogate)?;
    let high = (0xd800..0xdc00).contains(&first);
    if !high || !(0xdc00..0xe000).contains(&second) {
        return Err(Rule::Surrogate);
    }
    let code = 0x1_0000 + ((first - 0xd800) << 10) + (second - 0xdc00);
    char::from_u32(code).map(|character| (character, 12)).ok_or(Rule::Surrogate)
}

/// The unit of UTF-16 that `\uXXXX` stands for.
fn unit(text: &[u8]) -> Option<u32> {
    let digits = text.strip_prefix(b"\\u")?.get(..4)?;
    digits.iter().try_fold(0, |all, digit| Some(all << 4 | char::from(*digit).to_digit(16)?))
}
