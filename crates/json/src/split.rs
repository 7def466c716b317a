//! Cuts documents into records.
//!
//! ```text
//!   [ {..}, {..} ]  {..} {..}  [ {..} ]
//!     ^^^^  ^^^^    ^^^^ ^^^^    ^^^^      records: documents that are objects, and objects of documents that are lists
//! ```
//!
//! Only brackets and strings are looked at: what is wrong within a record does not hide the next one.

use crate::close::find_close;
use crate::fault::{Fault, Rule};
use crate::space::{LineBreaks, skip_space};

/// What stands before a place between two records.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum Between {
    /// No list is open.
    #[default]
    Documents,
    /// The bracket that opens a list.
    First,
    /// A record of a list.
    Record,
    /// A comma in a list.
    Comma,
}

/// What comes next.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Item {
    /// A record.
    Record {
        /// First byte.
        start: usize,
        /// Byte after the last.
        end: usize,
    },
    /// Bytes that are none.
    Bad {
        /// First byte.
        start: usize,
        /// Byte after the last; the same where something is missing.
        end: usize,
        /// What is wrong.
        fault: Fault,
    },
    /// Only white space up to the end.
    End,
    /// More text is needed.
    More,
}

/// Finds records one after the other.
#[derive(Debug, Clone, Copy)]
pub struct Splitter<'a> {
    /// The text, which may go on behind its end.
    pub text: &'a [u8],
    /// Where the text ends.
    pub end: usize,
    /// Whether the input ends there.
    pub is_last: bool,
    /// What was read up to.
    pub at: usize,
    /// What stands before.
    pub between: Between,
}

impl Splitter<'_> {
    /// The next record; where more text is needed, what was read up to stays before it.
    pub fn next_item(&mut self) -> Item {
        let text = &self.text[..self.end];
        loop {
            let at = skip_space(text, self.at, LineBreaks::AreSpace);
            let Some(byte) = text.get(at).copied() else {
                self.at = self.end;
                return self.end_item();
            };
            match (self.between, byte) {
                (Between::Documents, b'[') => self.go(at + 1, Between::First),
                (Between::Record, b',') => self.go(at + 1, Between::Comma),
                (Between::Record | Between::First, b']') => self.go(at + 1, Between::Documents),
                (Between::Record, _) => {
                    self.go(at, Between::Comma);
                    let fault = Fault::new(Rule::NoCommaBetween, at);
                    return Item::Bad { start: at, end: at, fault };
                }
                (Between::Comma, b']') => {
                    self.go(at + 1, Between::Documents);
                    let fault = Fault::new(Rule::TrailingComma, at);
                    return Item::Bad { start: at, end: at + 1, fault };
                }
                (_, b'{' | b'[') => return self.record(at, byte),
                _ => return self.other(at),
            }
        }
    }

    fn go(&mut self, at: usize, between: Between) {
        (self.at, self.between) = (at, between);
    }

    fn behind_record(&self) -> Between {
        match self.between {
            Between::Documents => Between::Documents,
            _ => Between::Record,
        }
    }

    /// At the end of the text.
    fn end_item(&mut self) -> Item {
        if !self.is_last || self.between == Between::Documents {
            return Item::End;
        }
        self.between = Between::Documents;
        let fault = Fault::new(Rule::OpenList, self.end);
        Item::Bad { start: self.end, end: self.end, fault }
    }

    fn record(&mut self, start: usize, bracket: u8) -> Item {
        let Some(end) = find_close(self.text, start, self.end) else {
            if !self.is_last {
                self.at = start;
                return Item::More;
            }
            self.go(self.end, Between::Documents);
            return Item::Bad { start, end: self.end, fault: Fault::new(Rule::Open, start) };
        };
        self.go(end, self.behind_record());
        match bracket {
            b'{' => Item::Record { start, end },
            _ => Item::Bad { start, end, fault: Fault::new(Rule::NoObject, start) },
        }
    }

    /// A string, a number, a word or anything else that begins no record: up to what may separate it from the next.
    fn other(&mut self, start: usize) -> Item {
        let text = &self.text[..self.end];
        let end = match text[start] {
            b'"' => string_close(text, start + 1),
            // What closes nothing, or separates nothing, stands alone.
            b',' | b']' | b'}' | b':' => Some(start + 1),
            _ => {
                let is_end = |byte: &u8| b" \t\r\n,]}[{\"".contains(byte);
                text[start..].iter().position(is_end).map(|length| start + length)
            }
        };
        let Some(end) = end.or(self.is_last.then_some(self.end)) else {
            self.at = start;
            return Item::More;
        };
        let rule = match crate::value::check_value(
            &padded(&text[start..end]),
            0,
            LineBreaks::EndRecords,
        ) {
            Ok(_) => Rule::NoObject,
            Err(fault) => fault.rule,
        };
        // A comma in place of a record has one before it.
        let between = if text[start] == b',' { self.between } else { self.behind_record() };
        self.go(end, between);
        Item::Bad { start, end, fault: Fault::new(rule, start) }
    }
}

/// Bytes with room behind them to look at.
fn padded(text: &[u8]) -> Vec<u8> {
    let mut padded = Vec::with_capacity(text.len() + crate::PADDING);
    padded.extend_from_slice(text);
    padded.extend([0; crate::PADDING]);
    padded
}

/// The byte behind the quote that closes a string.
fn string_close(text: &[u8], mut at: usize) -> Option<usize> {
    while let Some(next) = memchr::memchr2(b'"', b'\\', text.get(at..)?) {
        if text[at + next] == b'"' {
            return Some(at + next + 1);
        }
        at += next + 2;
    }
    None
}
