//! Reads one record at a time, byte by byte: any delimiter, any line end, quotes that went astray.
//!
//! A record is read strictly first. With [`Quotes::Lenient`], one whose quotes do not enclose its
//! fields is read again as the readings that its bytes allow, all of them side by side, and the one
//! that gives the table's number of fields with the least violence is taken (see `mend`).
//!
//! Invariant: what is read depends on the text from the record's start on, never on where a window
//! or a chunk ends; where the text may go on, and that matters, more of it is asked for.
//!
//! Cost: about 2 ns a byte. The tokeniser has all that is regular: lineitem SF1 takes 1.13 CPU seconds on one thread with this
//! reader behind it, and 1.16 without.

mod mend;

use std::borrow::Cow;

use crate::dialect::{LineEnd, Quotes};
use crate::field::{push_escaped, unescape};
use crate::rules::RecordRules;
use mend::{HeadEnd, Outcome, Strict};

/// Longest record of lenient quotes, in bytes: a quote that is open for longer is text.
pub const LENIENT_BYTES_MAX: usize = 4 << 20;

/// How the bytes of a field are to be taken.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum FieldForm {
    /// As they stand: quoted well, or not at all.
    Regular,
    /// Text, though it starts with a quote.
    Literal,
    /// Quoted, with quotes inside that are neither doubled nor escaped.
    Loose,
}

/// Where a field stands, its quotes included.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct CarefulField {
    /// Offset of the field's first byte.
    pub start: usize,
    /// Byte after the last.
    pub end: usize,
    /// How it is taken.
    pub form: FieldForm,
}

/// A record and what is wrong with it.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct CarefulRecord {
    /// Fields of the record; none for a comment.
    pub fields: Vec<CarefulField>,
    /// Byte after its last, without the line end, be it LF or CRLF.
    pub end: usize,
    /// First byte of the next record.
    pub next: usize,
    /// Line ends from its start to `next`.
    pub lines: u64,
    /// Whether a quote was closed and text followed, or was left open.
    pub fault: Fault,
    /// Whether the record is a comment.
    pub comment: bool,
}

impl CarefulField {
    /// Whether it is taken as it stands.
    pub fn is_regular(&self) -> bool {
        self.form == FieldForm::Regular
    }
}

impl CarefulRecord {
    /// Whether its quotes went astray, and were not taken for text.
    pub fn is_faulty(&self) -> bool {
        self.fault != Fault::None
    }
}

/// What is wrong with the quotes of a record.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub enum Fault {
    /// The quotes of the record are as they should be.
    #[default]
    None,
    /// Text after a closing quote.
    Stray,
    /// A quote that is never closed.
    Open,
}

/// Whether a record could be read.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Reading {
    /// The record was read to its end.
    Whole,
    /// The text ends before that is known.
    NeedsMore,
}

/// A text and what its bytes mean.
#[derive(Debug, Clone, Copy)]
struct Scan<'a> {
    text: &'a [u8],
    /// Whether the input ends where the text ends.
    last: bool,
    rules: &'a RecordRules,
}

/// What stands at a place.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Mark {
    /// A byte of a field.
    Field,
    /// A delimiter of this many bytes.
    Delimiter(usize),
    /// A line end of this many bytes.
    LineEnd(usize),
    /// The text ends before that is known.
    NeedsMore,
}

impl Scan<'_> {
    #[inline]
    fn mark(&self, at: usize) -> Mark {
        let byte = self.text[at];
        if byte == b'\n' {
            return Mark::LineEnd(1);
        }
        if byte == b'\r' && self.rules.line_end == LineEnd::Any {
            return match self.text.get(at + 1) {
                Some(b'\n') => Mark::LineEnd(2),
                None if !self.last => Mark::NeedsMore,
                _ => Mark::LineEnd(1),
            };
        }
        match &self.rules.long_delimiter {
            None if byte == self.rules.separators.delimiter => Mark::Delimiter(1),
            None => Mark::Field,
            Some(long) => {
                let (long, rest) = (long.bytes(), &self.text[at..]);
                if rest.starts_with(long) {
                    Mark::Delimiter(long.len())
                } else if !self.last && long.starts_with(rest) {
                    Mark::NeedsMore
                } else {
                    Mark::Field
                }
            }
        }
    }

    /// Whether a field may end at `at`; `None` where more text decides.
    fn ends_field(&self, at: usize) -> Option<bool> {
        match self.text.get(at) {
            None => self.last.then_some(true),
            Some(b'\r') if self.rules.line_end == LineEnd::Newline => match self.text.get(at + 1) {
                Some(next) => Some(*next == b'\n'),
                None => self.last.then_some(true),
            },
            Some(b'\r') if self.rules.line_end == LineEnd::Returns => {
                let rest = &self.text[at..];
                match rest.iter().find(|byte| **byte != b'\r') {
                    Some(next) => Some(*next == b'\n'),
                    None => self.last.then_some(true),
                }
            }
            Some(_) => match self.mark(at) {
                Mark::NeedsMore => None,
                mark => Some(mark != Mark::Field),
            },
        }
    }

    /// Whether text follows a closing quote; the carriage return of a line end is none.
    fn strays(&self, closed: usize, end: usize, ends_line: bool) -> bool {
        let returns = &self.text[closed..end];
        let are_of_line = match self.rules.line_end {
            LineEnd::Newline | LineEnd::Any => returns == b"\r",
            LineEnd::Returns => returns.iter().all(|byte| *byte == b'\r'),
        };
        closed != end && !(ends_line && are_of_line)
    }

    fn read_strictly(&self, start: usize, out: &mut CarefulRecord) -> Reading {
        let separators = self.rules.separators;
        let (mut at, mut field) = (start, start);
        let (mut quoted, mut closed) = (false, None);
        while at < self.text.len() {
            let byte = self.text[at];
            if quoted {
                if separators.escape == Some(byte) {
                    at += 1;
                    if at == self.text.len() && !self.last {
                        return Reading::NeedsMore;
                    }
                } else if separators.quote == Some(byte) {
                    match self.text.get(at + 1) {
                        Some(next) if *next == byte => at += 1,
                        None if !self.last => return Reading::NeedsMore,
                        _ => {
                            quoted = false;
                            closed = Some(at + 1);
                        }
                    }
                }
                at += 1;
                continue;
            }
            if self.rules.outside_escape == Some(byte) {
                let behind = self.text.get(at + 1..).unwrap_or_default();
                match behind {
                    [] | [b'\n'] if !self.last => return Reading::NeedsMore,
                    // The input ends here: what reads the field says so.
                    [] | [b'\n'] => at += 1,
                    _ => at += 2,
                }
                continue;
            }
            if at == field && separators.quote == Some(byte) {
                quoted = true;
                at += 1;
                continue;
            }
            let length = match self.mark(at) {
                Mark::Field => {
                    at += 1;
                    continue;
                }
                Mark::NeedsMore => return Reading::NeedsMore,
                Mark::Delimiter(length) | Mark::LineEnd(length) => length,
            };
            let ends_line = matches!(self.mark(at), Mark::LineEnd(_));
            if closed.take().is_some_and(|end| self.strays(end, at, ends_line)) {
                out.fault = Fault::Stray;
            }
            out.fields.push(CarefulField { start: field, end: at, form: FieldForm::Regular });
            at += length;
            field = at;
            if ends_line {
                (out.end, out.next) = (at - length, at);
                return Reading::Whole;
            }
        }
        if !self.last {
            return Reading::NeedsMore;
        }
        let stray = closed.is_some_and(|end| self.strays(end, self.text.len(), true));
        out.fault = match out.fault {
            _ if quoted => Fault::Open,
            _ if stray => Fault::Stray,
            fault => fault,
        };
        let end = self.text.len();
        out.fields.push(CarefulField { start: field, end, form: FieldForm::Regular });
        (out.end, out.next) = (end, end);
        Reading::Whole
    }

    /// Strictly, unless quotes went astray. What is decided hangs on the record's first
    /// [`LENIENT_BYTES_MAX`] bytes, however many more there are.
    fn read_leniently(&self, start: usize, out: &mut CarefulRecord) -> Reading {
        let head = match self.text.get(..start.saturating_add(LENIENT_BYTES_MAX)) {
            Some(text) if text.len() < self.text.len() => Scan { text, last: false, ..*self },
            _ => *self,
        };
        let is_cut = head.text.len() < self.text.len();
        let strict = match head.read_strictly(start, out) {
            Reading::NeedsMore if !is_cut => return Reading::NeedsMore,
            Reading::NeedsMore => Strict::Broken,
            Reading::Whole if out.fault != Fault::None => Strict::Broken,
            Reading::Whole => {
                let one_line = self.count_line_ends(start, out.end) == 0;
                if one_line || self.rules.takes(out.fields.len()) {
                    return Reading::Whole;
                }
                Strict::WrongCount
            }
        };
        let end = if is_cut { HeadEnd::Cut } else { HeadEnd::OfText };
        match head.mend(start, strict, end, out) {
            Outcome::Read => Reading::Whole,
            Outcome::NeedsMore => Reading::NeedsMore,
            Outcome::NothingFits => self.read_line(start, out),
        }
    }

    fn count_line_ends(&self, start: usize, end: usize) -> u64 {
        count_line_ends(&self.text[start..end], self.rules.line_end)
    }

    /// The first line from `start` on: where it ends, and where the next starts.
    fn line(&self, start: usize) -> Option<(usize, usize)> {
        let from = &self.text[start..];
        let found = match self.rules.line_end {
            LineEnd::Newline | LineEnd::Returns => memchr::memchr(b'\n', from),
            LineEnd::Any => memchr::memchr2(b'\n', b'\r', from),
        };
        match found.map(|at| (start + at, self.mark(start + at))) {
            Some((at, Mark::LineEnd(length))) => Some((at, at + length)),
            _ => self.last.then_some((self.text.len(), self.text.len())),
        }
    }
}

/// Line ends of a text.
pub fn count_line_ends(text: &[u8], line_end: LineEnd) -> u64 {
    let newlines = memchr::memchr_iter(b'\n', text).count();
    let returns = match line_end {
        LineEnd::Newline | LineEnd::Returns => 0,
        LineEnd::Any => {
            memchr::memchr_iter(b'\r', text).filter(|at| text.get(at + 1) != Some(&b'\n')).count()
        }
    };
    (newlines + returns) as u64
}

/// Bytes of the first line of a text that goes on as `last` says, with its end; `None` where more
/// text is needed.
pub fn first_line(text: &[u8], last: bool, rules: &RecordRules) -> Option<usize> {
    Scan { text, last, rules }.line(0).map(|(_, next)| next)
}

/// Reads the record that starts at `start`; `last` says that the input ends where `text` ends.
pub fn read_record(
    text: &[u8],
    start: usize,
    last: bool,
    rules: &RecordRules,
    out: &mut CarefulRecord,
) -> Reading {
    let scan = Scan { text, last, rules };
    out.fields.clear();
    (out.fault, out.comment) = (Fault::None, false);
    if rules.comment.is_some() && rules.comment == text.get(start).copied() {
        let Some((end, next)) = scan.line(start) else { return Reading::NeedsMore };
        (out.end, out.next, out.lines, out.comment) = (end, next, 1, true);
        return Reading::Whole;
    }
    if let Some(fixed) = &rules.fixed {
        let Some((end, next)) = scan.line(start) else { return Reading::NeedsMore };
        (out.end, out.next, out.lines) = (end, next, scan.count_line_ends(start, next));
        strip_return(text, start, rules.line_end, out);
        fixed.split(text, start, out.end, out);
        return Reading::Whole;
    }
    if let Some(aligned) = rules.aligned {
        let Some((end, next)) = scan.line(start) else { return Reading::NeedsMore };
        (out.end, out.next, out.lines) = (end, next, scan.count_line_ends(start, next));
        strip_return(text, start, rules.line_end, out);
        let line = &text[start..out.end];
        out.comment = aligned.is_drawn(line) || line.trim_ascii().is_empty();
        if !out.comment {
            aligned.split(text, start, out.end, rules.separators.quote, out);
        }
        return Reading::Whole;
    }
    let lenient = rules.policies.quotes == Quotes::Lenient && rules.separators.quote.is_some();
    let reading =
        if lenient { scan.read_leniently(start, out) } else { scan.read_strictly(start, out) };
    if reading == Reading::Whole {
        out.lines = scan.count_line_ends(start, out.next);
        strip_return(text, start, rules.line_end, out);
    }
    reading
}

/// Carriage returns at the end of a line that belong to its end.
fn returns_of_end(line: &[u8], line_end: LineEnd) -> usize {
    let returns = line.iter().rev().take_while(|byte| **byte == b'\r').count();
    match line_end {
        LineEnd::Newline => returns.min(1),
        LineEnd::Returns => returns,
        LineEnd::Any => 0,
    }
}

/// Leaves the carriage return of CRLF out of the record and its last field.
fn strip_return(text: &[u8], start: usize, line_end: LineEnd, out: &mut CarefulRecord) {
    let stripped = returns_of_end(&text[start..out.end], line_end);
    if stripped > 0 {
        out.end -= stripped;
        if let Some(last) = out.fields.last_mut() {
            last.end = last.end.min(out.end).max(last.start);
        }
    }
}

/// The text of a field as it is meant: without quotes; quotes inside that are not doubled stay.
pub fn field_text<'a>(text: &'a [u8], field: CarefulField, rules: &RecordRules) -> Cow<'a, [u8]> {
    let raw = &text[field.start..field.end];
    let separators = rules.separators;
    let is_quoted = |quote: &u8| field.form != FieldForm::Literal && raw.first() == Some(quote);
    let Some(quote) = separators.quote.filter(is_quoted) else {
        let text = rules.outside_escape.and_then(|escape| unescape(raw, escape, rules.escapes));
        return text.unwrap_or(Cow::Borrowed(raw));
    };
    let inner = &raw[1..];
    let inner = inner.strip_suffix(&[quote]).unwrap_or(inner);
    let special = |byte: &u8| *byte == quote || Some(*byte) == separators.escape;
    if !inner.iter().any(special) {
        return Cow::Borrowed(inner);
    }
    let mut out = Vec::with_capacity(inner.len());
    let mut rest = inner;
    while let [byte, behind @ ..] = rest {
        rest = behind;
        match behind {
            [_, ..] if Some(*byte) == separators.escape => {
                rest = &behind[push_escaped(behind, rules.escapes, &mut out)..];
            }
            [next, ..] if *byte == quote && *next == quote => {
                out.push(quote);
                rest = &behind[1..];
            }
            _ => out.push(*byte),
        }
    }
    Cow::Owned(out)
}

#[cfg(test)]
mod tests;
