//! The Ctrl-Z (0x1A) with which DOS, and CP/M before it, ended files: it is no text, and no row.
//!
//! It stands at the very end, or alone in the last line, where an editor ended that too.

/// Ctrl-Z, with which DOS ended files.
const END_MARK: u8 = 0x1a;
/// Bytes at the end of a file in which the marks of its end stand, with the byte before them; more of them are text.
pub const END_MARKS_MAX: usize = 4096;

/// The text without the marks of its end. Of a long text the last [`END_MARKS_MAX`] bytes will do.
pub fn without_end_mark(text: &[u8]) -> &[u8] {
    let line = text.strip_suffix(b"\n").unwrap_or(text);
    let line = line.strip_suffix(b"\r").unwrap_or(line);
    let marks = line.iter().rev().take_while(|byte| **byte == END_MARK).count();
    let (before, end) = (&line[..line.len() - marks], &line[line.len() - marks..]);
    let alone = matches!(before.last(), None | Some(b'\n' | b'\r'));
    let ends_text = line.len() == text.len();
    let is_mark = !end.is_empty() && (ends_text || alone);
    if is_mark && text.len() - before.len() < END_MARKS_MAX { before } else { text }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn marks_stand_at_the_end_or_alone_in_the_last_line() {
        for (text, expected) in [
            ("a\n\x1a", "a\n"),
            ("a\x1a\x1a", "a"),
            ("a\n\x1a\n", "a\n"),
            ("a\r\n\x1a\x1a\r\n", "a\r\n"),
            ("a\r\x1a\r", "a\r"),
            ("\x1a\n", ""),
            ("\x1a", ""),
            // These are text.
            ("a\x1a\n", "a\x1a\n"),
            ("a,\x1a\n", "a,\x1a\n"),
            ("a\n\"\x1a\"\n", "a\n\"\x1a\"\n"),
            ("a\n\x1a\n\n", "a\n\x1a\n\n"),
            ("a\n\n", "a\n\n"),
            ("", ""),
        ] {
            assert_eq!(without_end_mark(text.as_bytes()), expected.as_bytes(), "{text:?}");
        }
    }

    #[test]
    fn the_last_bytes_of_a_text_say_the_same_as_all_of_it() {
        for marks in END_MARKS_MAX - 5..END_MARKS_MAX + 5 {
            for (before, after) in [("a", ""), ("ab\n", ""), ("ab\n", "\n"), ("ab\r\n", "\r\n")] {
                let text = format!("{before}{}{after}", "\x1a".repeat(marks)).into_bytes();
                let tail = &text[text.len().saturating_sub(END_MARKS_MAX)..];
                let cut = text.len() - without_end_mark(&text).len();
                assert_eq!(tail.len() - without_end_mark(tail).len(), cut, "{marks} {after:?}");
            }
        }
    }
}
