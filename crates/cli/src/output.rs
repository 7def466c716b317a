//! Standard output and standard error, and how a command can fail.

use std::borrow::Cow;
use std::io::{self, IsTerminal, Write};

use coload::Error;

/// Why a command did not do what was asked.
#[derive(Debug)]
pub enum Failure {
    /// The request is wrong in itself: exit status 2.
    Usage(Error),
    /// It failed: exit status 1.
    Failed(Error),
    /// Nobody reads the output any more.
    OutputClosed,
}

impl From<Error> for Failure {
    fn from(error: Error) -> Self {
        Failure::Failed(error)
    }
}

/// What a command gives back.
pub type Done<T = ()> = Result<T, Failure>;

/// Whether a terminal obeys a character, or shows what follows it in another order than it is written.
fn commands_a_terminal(character: char) -> bool {
    match character {
        '\n' | '\t' => false,
        // Marks and overrides of direction, and isolates; separators of lines and paragraphs.
        '\u{61c}' | '\u{200e}' | '\u{200f}' | '\u{2028}'..='\u{202e}' | '\u{2066}'..='\u{2069}' => {
            true
        }
        // C0, DEL and C1.
        other => other.is_control(),
    }
}

/// A text as a terminal may have it: what commands the terminal is written as an escape, such as \u{1b}.
pub fn visible(text: &str) -> Cow<'_, str> {
    if !text.contains(commands_a_terminal) {
        return Cow::Borrowed(text);
    }
    let mut shown = String::with_capacity(text.len() + 16);
    for character in text.chars() {
        match commands_a_terminal(character) {
            true => shown.extend(character.escape_default()),
            false => shown.push(character),
        }
    }
    Cow::Owned(shown)
}

/// Bytes as a terminal may have them, see [`visible`]; those that are no UTF-8 become U+FFFD.
fn visible_bytes(bytes: &[u8]) -> Cow<'_, [u8]> {
    let text = String::from_utf8_lossy(bytes);
    match (visible(&text), &text) {
        (Cow::Borrowed(_), Cow::Borrowed(_)) => Cow::Borrowed(bytes),
        (shown, _) => Cow::Owned(shown.into_owned().into_bytes()),
    }
}

/// Writes lines without what commands a terminal, see [`visible`]. A character that two writes cut becomes U+FFFD.
pub struct Visible<W: Write>(pub W);

impl<W: Write> Write for Visible<W> {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        self.0.write_all(&visible_bytes(bytes))?;
        Ok(bytes.len())
    }

    fn flush(&mut self) -> io::Result<()> {
        self.0.flush()
    }
}

/// Writes text to standard output.
///
/// # Errors
/// `OutputClosed` when nobody reads it, `Failed` when it cannot be written.
pub fn print(text: &str) -> Done {
    print_bytes(text.as_bytes())
}

/// Writes bytes to standard output: as they are to a file or another program, and without what commands it to a
/// terminal.
///
/// # Errors
/// As [`print`].
pub fn print_bytes(bytes: &[u8]) -> Done {
    let mut out = io::stdout().lock();
    let shown = if out.is_terminal() { visible_bytes(bytes) } else { Cow::Borrowed(bytes) };
    let bytes = &*shown;
    match out.write_all(bytes).and_then(|()| out.flush()) {
        Ok(()) => Ok(()),
        Err(e) if e.kind() == io::ErrorKind::BrokenPipe => Err(Failure::OutputClosed),
        Err(e) => Err(Failure::Failed(Error::Unavailable(format!("cannot write the output: {e}")))),
    }
}

/// Writes a line to standard error, without what commands a terminal. If that fails there is nobody left to tell.
pub fn say(text: &str) {
    let _ = writeln!(io::stderr(), "{}", visible(text));
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_commands_a_terminal_is_shown_and_the_rest_stays() {
        for (text, shown) in [
            ("a\tb\n", "a\tb\n"),
            ("naïve 数 🦀", "naïve 数 🦀"),
            ("\u{1b}]0;title\u{7}", "\\u{1b}]0;title\\u{7}"),
            ("\u{9b}2J", "\\u{9b}2J"),
            ("a\rb\u{8}\u{7f}", "a\\rb\\u{8}\\u{7f}"),
            ("abc\u{202e}fed\u{2066}", "abc\\u{202e}fed\\u{2066}"),
        ] {
            assert_eq!(visible(text), shown);
            assert_eq!(&*visible_bytes(text.as_bytes()), shown.as_bytes());
        }
        assert_eq!(&*visible_bytes(b"\xff\x1b"), "\u{fffd}\\u{1b}".as_bytes());
    }
}
