//! Strings of JSON (RFC 8259): what stands between their quotes, and back.

/// What is wrong with an escape, and where it stands.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct BadEscape {
    /// Bytes before it.
    pub at: usize,
    /// Whether it is half of a pair of UTF-16; else it is none of JSON's.
    pub is_surrogate: bool,
}

/// Appends a string with its quotes. Bytes that are not UTF-8 stay what they are: who takes the text tells them.
pub fn write_json_string(text: &[u8], out: &mut Vec<u8>) {
    out.push(b'"');
    for byte in text {
        match byte {
            b'"' => out.extend_from_slice(b"\\\""),
            b'\\' => out.extend_from_slice(b"\\\\"),
            b'\n' => out.extend_from_slice(b"\\n"),
            b'\r' => out.extend_from_slice(b"\\r"),
            b'\t' => out.extend_from_slice(b"\\t"),
            0..=0x1f => out.extend_from_slice(format!("\\u{byte:04x}").as_bytes()),
            byte => out.push(*byte),
        }
    }
    out.push(b'"');
}

/// Appends what the bytes of a string between its quotes stand for.
///
/// # Errors
/// An escape that JSON does not have.
pub fn unescape_json_onto(inner: &[u8], out: &mut Vec<u8>) -> Result<(), BadEscape> {
    let mut done = 0;
    while let Some(next) = memchr::memchr(b'\\', &inner[done..]) {
        let at = done + next;
        out.extend_from_slice(&inner[done..at]);
        let plain = match inner.get(at + 1) {
            Some(byte @ (b'"' | b'\\' | b'/')) => *byte,
            Some(b'b') => 8,
            Some(b'f') => 12,
            Some(b'n') => b'\n',
            Some(b'r') => b'\r',
            Some(b't') => b'\t',
            Some(b'u') => {
                let (character, length) = character(&inner[at..])
                    .map_err(|is_surrogate| BadEscape { at, is_surrogate })?;
                let mut bytes = [0; 4];
                out.extend_from_slice(character.encode_utf8(&mut bytes).as_bytes());
                done = at + length;
                continue;
            }
            _ => return Err(BadEscape { at, is_surrogate: false }),
        };
        out.push(plain);
        done = at + 2;
    }
    out.extend_from_slice(&inner[done..]);
    Ok(())
}

/// The character of `\uXXXX`, or of two of them, and their bytes; what is wrong is whether half of a pair is missing.
fn character(text: &[u8]) -> Result<(char, usize), bool> {
    let first = unit(text).ok_or(false)?;
    if let Some(character) = char::from_u32(first) {
        return Ok((character, 6));
    }
    let second = text.get(6..).and_then(unit).ok_or(true)?;
    let high = (0xd800..0xdc00).contains(&first);
    if !high || !(0xdc00..0xe000).contains(&second) {
        return Err(true);
    }
    let code = 0x1_0000 + ((first - 0xd800) << 10) + (second - 0xdc00);
    char::from_u32(code).map(|character| (character, 12)).ok_or(true)
}

/// The unit of UTF-16 that `\uXXXX` stands for.
fn unit(text: &[u8]) -> Option<u32> {
    let digits = text.strip_prefix(b"\\u")?.get(..4)?;
    digits.iter().try_fold(0, |all, digit| Some(all << 4 | char::from(*digit).to_digit(16)?))
}
