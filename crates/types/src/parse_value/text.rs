//! Text, bytes, UUIDs and truth values.

use std::borrow::Cow;

use super::Rule;
use super::swar::{eight_hex, is_plain_ascii};
use crate::wide_from_uuid;

/// The field without spaces and tabs around it.
///
/// # Errors
/// `Empty` when nothing is left.
#[inline]
pub fn trim(field: &[u8]) -> Result<&[u8], Rule> {
    let mut field = field;
    while let [b' ' | b'\t', rest @ ..] | [rest @ .., b' ' | b'\t'] = field {
        field = rest;
    }
    if field.is_empty() { Err(Rule::Empty) } else { Ok(field) }
}

/// Text of at most `limit` characters.
#[inline]
pub fn check_text(field: &[u8], limit: Option<u32>) -> Result<(), Rule> {
    if !is_plain_ascii(field) {
        return check_utf8(field, limit);
    }
    match limit {
        Some(limit) if field.len() > limit as usize => Err(Rule::TooLong),
        _ => Ok(()),
    }
}

/// [`check_text`] for text that is not ASCII.
#[inline(never)]
pub fn check_utf8(field: &[u8], limit: Option<u32>) -> Result<(), Rule> {
    let text = std::str::from_utf8(field).map_err(|_| Rule::NotUtf8)?;
    if field.contains(&0) {
        return Err(Rule::NulByte);
    }
    match limit {
        Some(limit) if field.len() > limit as usize && text.chars().count() > limit as usize => {
            Err(Rule::TooLong)
        }
        _ => Ok(()),
    }
}

/// Bytes as they are, or from hexadecimal after `\x`; at most `limit`.
#[inline]
pub fn check_binary(field: &[u8], limit: Option<u32>) -> Result<Cow<'_, [u8]>, Rule> {
    let bytes = match field {
        [b'\\', b'x' | b'X', hex @ ..] => Cow::Owned(decode_hex(hex)?),
        _ => Cow::Borrowed(field),
    };
    match limit {
        Some(limit) if bytes.len() > limit as usize => Err(Rule::TooLong),
        _ => Ok(bytes),
    }
}

fn decode_hex(hex: &[u8]) -> Result<Vec<u8>, Rule> {
    let (pairs, rest) = hex.as_chunks::<2>();
    if !rest.is_empty() {
        return Err(Rule::NotHex);
    }
    pairs
        .iter()
        .map(|[high, low]| Some(nibble(*high)? << 4 | nibble(*low)?))
        .collect::<Option<_>>()
        .ok_or(Rule::NotHex)
}

fn nibble(byte: u8) -> Option<u8> {
    (byte as char).to_digit(16).map(|digit| digit as u8)
}

/// UUID: its ordered number.
#[inline]
pub fn parse_uuid(field: &[u8]) -> Result<i128, Rule> {
    let word = |at: usize| field.get(at..at + 8)?.as_array().map(|w| u64::from_le_bytes(*w));
    // 8-4-4-4-12: the second and third word leave the hyphen out.
    if field.len() == 36
        && (field[8], field[13], field[18], field[23]) == (b'-', b'-', b'-', b'-')
        && let (Some(a), Some(b), Some(c), Some(d)) = (word(0), word(9), word(19), word(28))
    {
        // word(9) is "bbbb-cccc" without its last character, and so on: take the hyphens out.
        let b = (b & 0xffff_ffff) | (b >> 40 << 32) | u64::from(field[17]) << 56;
        let c = (c & 0xffff_ffff) | (c >> 40 << 32) | u64::from(field[27]) << 56;
        if let (Some(a), Some(b), Some(c), Some(d)) =
            (eight_hex(a), eight_hex(b), eight_hex(c), eight_hex(d))
        {
            return Ok(join_uuid([a, b, c, d]));
        }
    }
    slow_uuid(field)
}

fn join_uuid(words: [u32; 4]) -> i128 {
    let mut bytes = [0; 16];
    for (bytes, word) in bytes.as_chunks_mut::<4>().0.iter_mut().zip(words) {
        *bytes = word.to_le_bytes();
    }
    wide_from_uuid(bytes)
}

/// [`parse_uuid`] in full: hyphens are optional, all or none, and so are braces.
#[cold]
#[inline(never)]
pub fn slow_uuid(field: &[u8]) -> Result<i128, Rule> {
    let mut field = trim(field)?;
    if let [b'{', inner @ .., b'}'] = field {
        field = inner;
    }
    let hyphens: &[usize] = if field.len() == 36 { &[8, 13, 18, 23] } else { &[] };
    if field.len() != 32 + hyphens.len() {
        return Err(Rule::NotAUuid);
    }
    let mut number = 0u128;
    for (index, byte) in field.iter().enumerate() {
        if hyphens.contains(&index) {
            if *byte != b'-' {
                return Err(Rule::NotAUuid);
            }
            continue;
        }
        number = number << 4 | u128::from(nibble(*byte).ok_or(Rule::NotAUuid)?);
    }
    Ok(wide_from_uuid(number.to_be_bytes()))
}

/// BOOLEAN: 0 or 1.
pub fn parse_boolean(field: &[u8]) -> Result<i64, Rule> {
    let field = trim(field)?;
    let mut lower = [0u8; 5];
    let lower = lower.get_mut(..field.len()).ok_or(Rule::NotABoolean)?;
    lower.copy_from_slice(field);
    lower.make_ascii_lowercase();
    match &*lower {
        b"1" | b"t" | b"true" | b"y" | b"yes" | b"on" => Ok(1),
        b"0" | b"f" | b"false" | b"n" | b"no" | b"off" => Ok(0),
        _ => Err(Rule::NotABoolean),
    }
}
