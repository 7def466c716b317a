//! A line while it is typed: keys change it, lines of before come back.

use std::ops::Range;

use console::{Key, measure_text_width};

use super::Typed;

/// A line being typed, and the lines that the arrow keys bring back.
#[derive(Debug)]
pub(super) struct LineBuffer<'a> {
    pub characters: Vec<char>,
    /// Characters before the cursor.
    pub cursor: usize,
    history: &'a [String],
    /// The line of history that is shown; the history's length for the new one.
    shown: usize,
    /// The new line while an older one is shown.
    draft: Vec<char>,
}

impl<'a> LineBuffer<'a> {
    pub fn new(history: &'a [String]) -> Self {
        let shown = history.len();
        LineBuffer { characters: Vec::new(), cursor: 0, history, shown, draft: Vec::new() }
    }

    pub fn text(&self) -> String {
        self.characters.iter().collect()
    }

    /// Takes a key; tells when it ends the line.
    pub fn press(&mut self, key: &Key) -> Option<Typed> {
        match key {
            Key::Enter => return Some(Typed::Line(self.text())),
            Key::CtrlC => return Some(Typed::Dropped),
            Key::Char('\x04') if self.characters.is_empty() => return Some(Typed::End),
            Key::Char('\x04') | Key::Del => self.delete(),
            Key::Backspace if self.cursor > 0 => {
                self.cursor -= 1;
                self.delete();
            }
            Key::ArrowLeft | Key::Char('\x02') => self.cursor = self.cursor.saturating_sub(1),
            Key::ArrowRight | Key::Char('\x06') => {
                self.cursor = (self.cursor + 1).min(self.characters.len());
            }
            Key::Home => self.cursor = 0,
            Key::End => self.cursor = self.characters.len(),
            Key::ArrowUp | Key::Char('\x10') => self.show(self.shown.saturating_sub(1)),
            Key::ArrowDown | Key::Char('\x0e') => self.show(self.shown + 1),
            Key::Char('\x0b') => self.characters.truncate(self.cursor),
            Key::Char('\x15') => {
                self.characters.drain(..self.cursor);
                self.cursor = 0;
            }
            Key::Char('\x17') => self.delete_word(),
            // Completion has let it through, as there is no word before it.
            Key::Tab => self.insert(' '),
            Key::Char(c) if !c.is_control() => self.insert(*c),
            _ => {}
        }
        None
    }

    pub fn insert(&mut self, character: char) {
        self.characters.insert(self.cursor, character);
        self.cursor += 1;
    }

    fn delete(&mut self) {
        if self.cursor < self.characters.len() {
            self.characters.remove(self.cursor);
        }
    }

    fn delete_word(&mut self) {
        let before = &self.characters[..self.cursor];
        let word_end = before.iter().rposition(|c| !c.is_whitespace()).map_or(0, |p| p + 1);
        let start = before[..word_end].iter().rposition(|c| c.is_whitespace()).map_or(0, |p| p + 1);
        self.characters.drain(start..self.cursor);
        self.cursor = start;
    }

    fn show(&mut self, index: usize) {
        let index = index.min(self.history.len());
        if index == self.shown {
            return;
        }
        if self.shown == self.history.len() {
            self.draft = std::mem::take(&mut self.characters);
        }
        self.characters = match self.history.get(index) {
            Some(line) => line.chars().collect(),
            None => std::mem::take(&mut self.draft),
        };
        self.shown = index;
        self.cursor = self.characters.len();
    }

    /// Puts a text in the place of the characters from `start` to the cursor.
    pub fn replace(&mut self, start: usize, text: &str) {
        let start = start.min(self.cursor);
        let new: Vec<char> = text.chars().collect();
        let end = start + new.len();
        self.characters.splice(start..self.cursor, new);
        self.cursor = end;
    }

    /// The part of the line that fits `width` columns, as positions of characters, and the column of the cursor in it.
    pub fn window(&self, width: usize) -> (Range<usize>, usize) {
        let wide = |characters: &[char]| measure_text_width(&characters.iter().collect::<String>());
        let mut start = 0;
        while wide(&self.characters[start..self.cursor]) >= width.max(1) {
            start += 1;
        }
        let mut end = self.characters.len();
        while end > self.cursor && wide(&self.characters[start..end]) > width {
            end -= 1;
        }
        (start..end, wide(&self.characters[start..self.cursor]))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn type_keys(history: &[String], keys: &[Key]) -> (String, usize) {
        let mut line = LineBuffer::new(history);
        for key in keys {
            assert_eq!(line.press(key), None);
        }
        (line.text(), line.cursor)
    }

    fn chars(text: &str) -> Vec<Key> {
        text.chars().map(Key::Char).collect()
    }

    #[test]
    fn keys_edit_where_the_cursor_is() {
        let mut keys = chars("selct 1");
        keys.extend([Key::Home, Key::ArrowRight, Key::ArrowRight, Key::ArrowRight]);
        keys.push(Key::Char('e'));
        assert_eq!(type_keys(&[], &keys), ("select 1".to_owned(), 4));
        keys.extend([Key::Backspace, Key::Del, Key::Char('\x0b')]);
        assert_eq!(type_keys(&[], &keys), ("sel".to_owned(), 3));
        let mut keys = chars("a bc  ");
        keys.push(Key::Char('\x17'));
        assert_eq!(type_keys(&[], &keys), ("a ".to_owned(), 2));
        keys.push(Key::Char('\x15'));
        assert_eq!(type_keys(&[], &keys), (String::new(), 0));
    }

    #[test]
    fn arrows_bring_back_lines_and_the_draft() {
        let history = ["one".to_owned(), "two".to_owned()];
        let mut keys = chars("new");
        keys.extend([Key::ArrowUp, Key::ArrowUp, Key::ArrowUp]);
        assert_eq!(type_keys(&history, &keys).0, "one");
        keys.push(Key::ArrowDown);
        assert_eq!(type_keys(&history, &keys).0, "two");
        keys.extend([Key::ArrowDown, Key::ArrowDown]);
        assert_eq!(type_keys(&history, &keys), ("new".to_owned(), 3));
    }

    #[test]
    fn lines_end_by_enter_or_control_keys() {
        let mut line = LineBuffer::new(&[]);
        assert_eq!(line.press(&Key::Char('\x04')), Some(Typed::End));
        line.insert('x');
        assert_eq!(line.press(&Key::Char('\x04')), None);
        assert_eq!(line.press(&Key::CtrlC), Some(Typed::Dropped));
        assert_eq!(line.press(&Key::Enter), Some(Typed::Line("x".to_owned())));
    }

    #[test]
    fn a_long_line_is_shown_around_the_cursor() {
        let mut line = LineBuffer::new(&[]);
        "0123456789".chars().for_each(|c| line.insert(c));
        assert_eq!(line.window(4), (7..10, 3));
        line.cursor = 0;
        assert_eq!(line.window(4), (0..4, 0));
        assert_eq!(line.window(20), (0..10, 0));
    }
}
