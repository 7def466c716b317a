//! Text of XML and of cells with what is written for characters in their place.

/// Appends text of XML, with entities resolved and line ends as newlines.
///
/// # Errors
/// What is wrong with it.
pub fn append_text(raw: &[u8], out: &mut Vec<u8>) -> Result<(), String> {
    if std::str::from_utf8(raw).is_err() {
        return Err("text is not UTF-8".to_owned());
    }
    let mut rest = raw;
    while let Some(at) = memchr::memchr2(b'&', b'\r', rest) {
        out.extend_from_slice(&rest[..at]);
        if rest[at] == b'\r' {
            out.push(b'\n');
            let skipped = 1 + usize::from(rest.get(at + 1) == Some(&b'\n'));
            rest = &rest[at + skipped..];
            continue;
        }
        // The longest reference, with zeros before its number, is shorter.
        let window = &rest[at..rest.len().min(at + 32)];
        let end = memchr::memchr(b';', window).ok_or_else(|| shown("&", window))?;
        let character = reference(&window[1..end]).ok_or_else(|| shown("&", window))?;
        out.extend_from_slice(character.encode_utf8(&mut [0; 4]).as_bytes());
        rest = &rest[at + end + 1..];
    }
    out.extend_from_slice(rest);
    Ok(())
}

fn shown(what: &str, window: &[u8]) -> String {
    let text: String = String::from_utf8_lossy(window).chars().take(12).collect();
    format!("{what} begins no character of XML in {text:?}")
}

/// The character of a reference without `&` and `;`.
fn reference(name: &[u8]) -> Option<char> {
    let number = |digits: &[u8], radix: u32| {
        let digits = std::str::from_utf8(digits).ok()?;
        let is_plain = digits.bytes().all(|byte| byte.is_ascii_hexdigit());
        let code = u32::from_str_radix(digits, radix).ok().filter(|_| is_plain)?;
        char::from_u32(code)
    };
    match name {
        b"lt" => Some('<'),
        b"gt" => Some('>'),
        b"amp" => Some('&'),
        b"quot" => Some('"'),
        b"apos" => Some('\''),
        [b'#', b'x', digits @ ..] => number(digits, 16),
        [b'#', digits @ ..] => number(digits, 10),
        _ => None,
    }
}

/// Resolves `_xHHHH_`, which stands in texts of cells for characters that XML has none for, from a place on.
///
/// Source: ECMA-376-1, 22.9.2.19 (ST_Xstring).
pub fn resolve_escapes(text: &mut Vec<u8>, from: usize) {
    if memchr::memmem::find(&text[from..], b"_x").is_none() {
        return;
    }
    let old = text.split_off(from);
    let mut rest = &old[..];
    let mut units: Vec<u16> = Vec::new();
    while let Some(at) = memchr::memmem::find(rest, b"_x") {
        let unit = escape(&rest[at..]);
        if unit.is_none() || at > 0 {
            flush(&mut units, text);
        }
        match unit {
            Some(unit) => {
                text.extend_from_slice(&rest[..at]);
                units.push(unit);
                rest = &rest[at + 7..];
            }
            None => {
                text.extend_from_slice(&rest[..at + 2]);
                rest = &rest[at + 2..];
            }
        }
    }
    flush(&mut units, text);
    text.extend_from_slice(rest);
}

/// The unit of UTF-16 that an escape at the start of a text stands for.
fn escape(text: &[u8]) -> Option<u16> {
    let [b'_', b'x', digits @ .., b'_'] = text.get(..7)? else { return None };
    let digits = std::str::from_utf8(digits).ok()?;
    let is_plain = digits.bytes().all(|byte| byte.is_ascii_hexdigit());
    u16::from_str_radix(digits, 16).ok().filter(|_| is_plain)
}

/// Appends units of UTF-16; halves of pairs are written as they stood.
fn flush(units: &mut Vec<u16>, out: &mut Vec<u8>) {
    for unit in char::decode_utf16(units.drain(..)) {
        match unit {
            Ok(character) => {
                out.extend_from_slice(character.encode_utf8(&mut [0; 4]).as_bytes());
            }
            Err(half) => {
                out.extend_from_slice(format!("_x{:04X}_", half.unpaired_surrogate()).as_bytes());
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn text(raw: &str) -> Result<String, String> {
        let mut out = Vec::new();
        append_text(raw.as_bytes(), &mut out)?;
        Ok(String::from_utf8(out).unwrap_or_default())
    }

    #[test]
    fn references_are_characters() {
        assert_eq!(text("a &lt;&#98;&#x63;&amp; d").as_deref(), Ok("a <bc& d"));
        assert_eq!(text("a\r\nb\rc\n").as_deref(), Ok("a\nb\nc\n"));
        for wrong in ["&", "&;", "&nbsp;", "&#xd800;", "&#x110000;", "&#+5;", "&lt"] {
            assert!(text(wrong).is_err(), "{wrong}");
        }
    }

    #[test]
    fn escapes_of_cells_are_characters() {
        for (raw, expected) in [
            ("a_x000D_\nb", "a\r\nb"),
            ("_x005F_x000D_", "_x000D_"),
            ("_xD83D__xDE00_", "😀"),
            ("_xD83D_!", "_xD83D_!"),
            ("_x00g0_ _x", "_x00g0_ _x"),
            ("_x+041_", "_x+041_"),
        ] {
            let mut text = format!(">{raw}").into_bytes();
            resolve_escapes(&mut text, 1);
            assert_eq!(String::from_utf8_lossy(&text), format!(">{expected}"));
        }
    }
}
