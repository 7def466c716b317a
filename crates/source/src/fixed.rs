//! Fixed-width text: a field is what stands between two positions of its line.
//!
//! ```text
//!   --fixed-width 10,5,8          widths, one after the other
//!   --fixed-width 1-10,12-16,20-  positions of characters from 1, the last to the end of the line
//! ```
//!
//! Positions count characters, not bytes. Spaces around a field are padding. A line that ends before a field
//! starts lacks it; what stands after the last of several widths is a field too many. What no range covers is
//! not looked at.

use std::fmt;
use std::sync::Mutex;

use coload_ddl::COLUMNS_MAX;
use coload_threads::lock;
use coload_types::{Error, Result};

use crate::careful::{CarefulField, CarefulRecord, FieldForm};

/// Most layouts that a process may read: they are kept for good.
const LAYOUTS_MAX: usize = 1024;

static LAYOUTS: Mutex<Vec<&'static Layout>> = Mutex::new(Vec::new());

/// Where the fields of fixed-width text stand.
#[derive(Clone, Copy, PartialEq, Eq)]
pub struct FixedWidths(&'static Layout);

#[derive(Debug, Clone, PartialEq, Eq)]
struct Layout {
    /// First character of each field, and the one after its last; `u32::MAX` is the end of the line.
    spans: Vec<(u32, u32)>,
    form: Form,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Form {
    Widths,
    Ranges,
}

impl FixedWidths {
    /// Reads widths or ranges.
    ///
    /// # Errors
    /// `Invalid` when they are neither, or overlap.
    pub fn parse(text: &str) -> Result<Self> {
        let wrong = |why: &str| {
            Error::Invalid(format!(
                "--fixed-width \"{text}\": {why}: expected widths such as 10,5,8, or ranges of characters \
                 such as 1-10,11-15,20-"
            ))
        };
        let form = if text.contains('-') { Form::Ranges } else { Form::Widths };
        let number =
            |part: &str| part.trim().parse::<u32>().ok().filter(|n| (1..1 << 30).contains(n));
        let mut spans: Vec<(u32, u32)> = Vec::new();
        for part in text.split(',') {
            let before = spans.last().map_or(0, |(_, end)| *end);
            let span = match (form, part.split_once('-')) {
                (Form::Widths, _) => {
                    number(part).map(|width| (before, before.saturating_add(width)))
                }
                (Form::Ranges, Some((first, last))) => {
                    let end = if last.trim().is_empty() { Some(u32::MAX) } else { number(last) };
                    number(first).zip(end).map(|(first, end)| (first - 1, end))
                }
                (Form::Ranges, None) => number(part).map(|only| (only - 1, only)),
            };
            let (start, end) = span.ok_or_else(|| wrong(&format!("\"{part}\" is none")))?;
            if start < before || end <= start {
                return Err(wrong(&format!("\"{part}\" overlaps what is before it")));
            }
            spans.push((start, end));
        }
        if spans.len() > COLUMNS_MAX {
            return Err(wrong(&format!("more than {COLUMNS_MAX} fields")));
        }
        intern(Layout { spans, form })
    }

    /// Fields of a line.
    pub fn fields(&self) -> usize {
        self.0.spans.len()
    }

    /// Finds the fields of a line, which stands at `start..end` of `text`.
    pub(crate) fn split(&self, text: &[u8], start: usize, end: usize, out: &mut CarefulRecord) {
        let line = &text[start..end];
        let mut walk = Walk { line, ascii: line.is_ascii(), at: 0, character: 0 };
        for (first, last) in &self.0.spans {
            let Some(from) = walk.to(*first).filter(|from| *from < line.len()) else { return };
            let to = walk.to(*last).unwrap_or(line.len());
            out.fields.push(trimmed(line, from, to, start));
        }
        let rest = walk.at;
        if self.0.form == Form::Widths && line[rest..].iter().any(|byte| *byte != b' ') {
            out.fields.push(trimmed(line, rest, line.len(), start));
        }
    }
}

/// Goes through the characters of a line.
struct Walk<'a> {
    line: &'a [u8],
    ascii: bool,
    at: usize,
    character: u32,
}

impl Walk<'_> {
    /// The byte of a character; `None` after the end of the line.
    fn to(&mut self, character: u32) -> Option<usize> {
        if self.ascii {
            self.at = self.line.len().min(character as usize);
            return (self.at == character as usize).then_some(self.at);
        }
        while self.character < character && self.at < self.line.len() {
            self.at += 1;
            while self.line.get(self.at).is_some_and(|byte| byte & 0xc0 == 0x80) {
                self.at += 1;
            }
            self.character += 1;
        }
        (self.character == character).then_some(self.at)
    }
}

/// A field without its padding.
fn trimmed(line: &[u8], from: usize, to: usize, start: usize) -> CarefulField {
    let field = &line[from..to];
    let left = field.iter().take_while(|byte| **byte == b' ').count();
    let right = field[left..].iter().rev().take_while(|byte| **byte == b' ').count();
    let (start, end) = (start + from + left, start + to - right);
    CarefulField { start, end, form: FieldForm::Regular }
}

fn intern(layout: Layout) -> Result<FixedWidths> {
    let mut layouts = lock(&LAYOUTS);
    if let Some(known) = layouts.iter().find(|known| ***known == layout) {
        return Ok(FixedWidths(known));
    }
    if layouts.len() == LAYOUTS_MAX {
        return Err(Error::Limit(format!(
            "--fixed-width: this program has read {LAYOUTS_MAX} layouts; start it again"
        )));
    }
    let layout: &'static Layout = Box::leak(Box::new(layout));
    layouts.push(layout);
    Ok(FixedWidths(layout))
}

impl fmt::Display for FixedWidths {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        for (index, (start, end)) in self.0.spans.iter().enumerate() {
            let comma = if index == 0 { "" } else { "," };
            match (self.0.form, *end) {
                (Form::Widths, end) => write!(f, "{comma}{}", end - start)?,
                (Form::Ranges, u32::MAX) => write!(f, "{comma}{}-", start + 1)?,
                (Form::Ranges, end) => write!(f, "{comma}{}-{end}", start + 1)?,
            }
        }
        Ok(())
    }
}

impl fmt::Debug for FixedWidths {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{self}")
    }
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]
    use super::*;

    fn split(widths: &str, line: &str) -> Vec<String> {
        let mut record = CarefulRecord::default();
        let text = format!("..{line}");
        FixedWidths::parse(widths).unwrap().split(text.as_bytes(), 2, text.len(), &mut record);
        record.fields.iter().map(|f| text[f.start..f.end].to_owned()).collect()
    }

    #[test]
    fn fields_are_cut_by_characters_and_trimmed() {
        for (widths, line, expected) in [
            ("3,2,4", "abcde  fg", &["abc", "de", "fg"][..]),
            ("3,2,4", " a b    f", &["a", "b", "f"]),
            ("3,2,4", "äöüßéf", &["äöü", "ßé", "f"]),
            ("3,2,4", "abcde", &["abc", "de"]),
            ("3,2,4", "ab", &["ab"]),
            ("3,2,4", "", &[]),
            ("3,2", "abcde   ", &["abc", "de"]),
            ("3,2", "abcde  x", &["abc", "de", "x"]),
            ("3,2", "äbcde  é", &["äbc", "de", "é"]),
            ("1-3,5-6", "abcXde  x", &["abc", "de"]),
            ("1-3,5-", "äbcX de  x ", &["äbc", "de  x"]),
            ("2", "ab", &["ab"]),
            ("2-2,4", "abcd", &["b", "d"]),
        ] {
            assert_eq!(split(widths, line), expected, "{widths} {line:?}");
        }
    }

    #[test]
    fn layouts_are_shown_as_they_are_read() {
        for text in ["10,5,8", "1-10,12-16,20-", "7"] {
            let widths = FixedWidths::parse(text).unwrap();
            assert_eq!(widths.to_string(), text);
            assert_eq!(FixedWidths::parse(text).unwrap(), widths);
        }
        for text in ["", "0", "a", "5,,5", "5-3", "1-5,5-8", "4-,6-8", "-", "4294967296", "0-3"] {
            assert!(FixedWidths::parse(text).is_err(), "{text}");
        }
    }
}
