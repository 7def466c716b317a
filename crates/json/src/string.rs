//! Strings: where they end, and what they stand for.

use std::borrow::Cow;

use coload_types::unescape_json_onto;

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
    unescape_json_onto(inner, out).map_err(|bad| {
        let rule = if bad.is_surrogate { Rule::Surrogate } else { Rule::Escape };
        Fault::new(rule, at + bad.at)
    })
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
