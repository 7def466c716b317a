//! Text that commands no terminal.

use std::borrow::Cow;

/// Whether a terminal obeys a character, or shows what follows it in another order than it is written.
pub fn commands_a_terminal(character: char) -> bool {
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
        }
    }
}
