//! The lines that a person types: keys change them, Tab completes, Ctrl-R searches in those of before.
//!
//! ```text
//!   key --> search, completion, or LineBuffer --> line on the terminal, painted --> Typed
//! ```
//!
//! Ours, as the editors of others bring features into crates below the query engine, which would be compiled again
//! (docs/decisions/0050-our-own-line-editor.md).

mod buffer;
mod search;

use std::io;
use std::ops::Range;

use console::{Key, Term, measure_text_width};

use self::buffer::LineBuffer;
use self::search::Search;

/// Columns that stay free at the right edge, where terminals differ in when they wrap.
const MARGIN: usize = 1;
/// Candidates of a completion that are listed.
const LISTED_MAX: usize = 200;
/// Has a terminal say where a text is pasted, and end that.
const MARK_PASTES: &str = "\u{1b}[?2004h";
const MARK_NO_PASTES: &str = "\u{1b}[?2004l";

/// How the typing of a line ended.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Typed {
    /// Enter: the line is done.
    Line(String),
    /// Ctrl-C: the line is dropped.
    Dropped,
    /// Ctrl-D on an empty line.
    End,
}

/// What may stand at the cursor.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Completion {
    /// The character at which the word begins that is completed.
    pub start: usize,
    /// Words that it may become, without duplicates.
    pub candidates: Vec<String>,
}

/// Knows the language of the lines.
pub trait Language {
    /// What the word that ends at the cursor may become.
    fn complete(&mut self, line: &[char], cursor: usize) -> Completion;

    /// A part of a line with colours, or as it is.
    fn paint(&self, line: &[char], part: Range<usize>) -> String;
}

/// Reads lines from a terminal.
#[derive(Debug)]
pub struct Editor {
    term: Term,
    /// Whether what comes is pasted: Tab is a blank there.
    is_pasting: bool,
}

impl Editor {
    /// On standard output's terminal.
    pub fn new() -> Self {
        Editor { term: Term::stdout(), is_pasting: false }
    }

    /// Reads a line.
    ///
    /// # Errors
    /// When the terminal goes away.
    pub fn read_line(
        &mut self,
        prompt: &str,
        history: &[String],
        language: &mut dyn Language,
    ) -> io::Result<Typed> {
        self.term.write_str(MARK_PASTES)?;
        let typed = self.edit(prompt, history, language);
        self.term.write_str(MARK_NO_PASTES)?;
        typed
    }

    fn edit(
        &mut self,
        prompt: &str,
        history: &[String],
        language: &mut dyn Language,
    ) -> io::Result<Typed> {
        let mut line = LineBuffer::new(history);
        loop {
            self.draw(prompt, &line, language)?;
            let key = match self.read_key()? {
                Some(Key::Char('\x12')) => match self.search(history, &mut line)? {
                    Some(key) => key,
                    None => continue,
                },
                Some(Key::Tab) if !self.is_pasting && self.complete(&mut line, language)? => {
                    continue;
                }
                Some(key) => key,
                None => return Ok(Typed::End),
            };
            if let Some(typed) = line.press(&key) {
                self.term.write_line("")?;
                return Ok(typed);
            }
        }
    }

    /// The next key; `None` when the terminal has ended.
    fn read_key(&mut self) -> io::Result<Option<Key>> {
        loop {
            match self.term.read_key_raw() {
                Err(e) if e.kind() == io::ErrorKind::UnexpectedEof => return Ok(None),
                // `ESC [ 2 0` is followed by `0 ~` where a paste begins, and `1 ~` where it ends.
                Ok(Key::UnknownEscSeq(keys)) if keys == ['[', '2', '0'] => {
                    self.is_pasting = self.term.read_key_raw()? == Key::Char('0');
                    self.term.read_key_raw()?;
                }
                key => return key.map(Some),
            }
        }
    }

    fn draw(&self, prompt: &str, line: &LineBuffer, language: &dyn Language) -> io::Result<()> {
        let columns = usize::from(self.term.size().1);
        let width = columns.saturating_sub(prompt.chars().count() + MARGIN);
        let (part, column) = line.window(width);
        let text: String = line.characters[part.clone()].iter().collect();
        self.term.clear_line()?;
        self.term.write_str(&format!("\r{prompt}{}", language.paint(&line.characters, part)))?;
        match measure_text_width(&text).saturating_sub(column) {
            0 => Ok(()),
            behind => self.term.move_cursor_left(behind),
        }
    }

    /// Completes the word at the cursor as far as it is certain, or lists what it may become; false when there is no word.
    fn complete(&self, line: &mut LineBuffer, language: &mut dyn Language) -> io::Result<bool> {
        let Completion { start, candidates } = language.complete(&line.characters, line.cursor);
        let typed: String = line.characters[start.min(line.cursor)..line.cursor].iter().collect();
        let Some(first) = candidates.first() else { return Ok(!typed.is_empty()) };
        if candidates.len() == 1 {
            let blank = if first.ends_with(['(', '/', '.']) { "" } else { " " };
            line.replace(start, &format!("{first}{blank}"));
            return Ok(true);
        }
        let common = candidates.iter().fold(first.clone(), |common, next| {
            let same = common.chars().zip(next.chars()).take_while(|(a, b)| a == b);
            same.map(|(a, _)| a).collect()
        });
        if common.chars().count() > typed.chars().count() {
            line.replace(start, &common);
            return Ok(true);
        }
        self.list(&candidates)?;
        Ok(true)
    }

    fn list(&self, candidates: &[String]) -> io::Result<()> {
        let shown = &candidates[..candidates.len().min(LISTED_MAX)];
        let widest = shown.iter().map(|text| measure_text_width(text)).max().unwrap_or(0) + 2;
        let per_line = (usize::from(self.term.size().1) / widest).max(1);
        self.term.write_line("")?;
        for row in shown.chunks(per_line) {
            let pad = |text: &String| " ".repeat(widest - measure_text_width(text));
            let row: String = row.iter().map(|text| text.clone() + &pad(text)).collect();
            self.term.write_line(row.trim_end())?;
        }
        match candidates.len() - shown.len() {
            0 => Ok(()),
            more => self.term.write_line(&format!("... and {more} more")),
        }
    }

    /// Searches in the history while its text is typed; gives the key that ends it, if that means something else too.
    fn search(&mut self, history: &[String], line: &mut LineBuffer) -> io::Result<Option<Key>> {
        let mut search = Search::new(history);
        loop {
            let columns = usize::from(self.term.size().1).saturating_sub(MARGIN);
            self.term.clear_line()?;
            let shown: String = search.shown().chars().take(columns).collect();
            self.term.write_str(&format!("\r{shown}"))?;
            match self.read_key()? {
                Some(Key::Char('\x12')) => search.older(),
                Some(Key::Backspace) => search.shorten(),
                Some(Key::Char(c)) if !c.is_control() => search.add(c),
                Some(Key::CtrlC | Key::Escape | Key::Char('\x07')) => return Ok(None),
                key => {
                    if let Some(found) = search.found() {
                        line.characters = found.chars().collect();
                        line.cursor = line.characters.len();
                    }
                    return Ok(key.filter(|key| *key != Key::Tab));
                }
            }
        }
    }
}
