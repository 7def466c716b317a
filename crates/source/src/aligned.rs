//! Tables drawn with blanks: columns set apart by runs of them, or by bars with blanks around.
//!
//! ```text
//!   PID  USER     CPU      spaces, wide-spaces        | id | name |     framed-bars       id | name       bars
//!   1    root     0.5                                 |----|------|                      ----+------
//!   23   daemon   1.25                                |  1 | Ann  |                        1 | Ann
//! ```
//!
//! A record is a line. Blanks are spaces and tabs; those around a field, and around the line, are padding. With bars, lines that are
//! drawn are no records, and no character is a quote.

use std::fmt;

use crate::careful::{CarefulField, CarefulRecord, FieldForm};

/// Fewest dashes of a cell that is drawn.
const DASHES_MIN: usize = 3;

/// What sets columns apart that are drawn with blanks.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Aligned {
    /// One blank or more.
    Spaces,
    /// Two spaces or more, or a tab: a field may have single spaces inside.
    WideSpaces,
    /// A bar (`|`), with blanks around it or without.
    Bars,
    /// A bar, with one before the first field and one behind the last.
    FramedBars,
}

impl Aligned {
    /// All ways of drawing columns that there are.
    pub const ALL: [Aligned; 4] =
        [Aligned::Spaces, Aligned::WideSpaces, Aligned::Bars, Aligned::FramedBars];

    /// The word of the flag.
    pub fn name(self) -> &'static str {
        match self {
            Aligned::Spaces => "spaces",
            Aligned::WideSpaces => "wide-spaces",
            Aligned::Bars => "bars",
            Aligned::FramedBars => "framed-bars",
        }
    }

    /// What a word of the flag means.
    pub fn of_name(name: &str) -> Option<Self> {
        Aligned::ALL.into_iter().find(|aligned| aligned.name() == name)
    }

    /// Whether bars set the columns apart.
    pub fn has_bars(self) -> bool {
        matches!(self, Aligned::Bars | Aligned::FramedBars)
    }

    /// Whether a line is drawn, and no record.
    pub(crate) fn is_drawn(self, line: &[u8]) -> bool {
        if !self.has_bars() {
            return false;
        }
        let line = line.trim_ascii();
        let line = line.strip_prefix(b"|").unwrap_or(line);
        let line = line.strip_suffix(b"|").unwrap_or(line);
        // Under a name of one or two letters stand as many dashes, if the line has longer ones.
        let narrow =
            [&b"---"[..], b"==="].iter().any(|dashes| memchr::memmem::find(line, dashes).is_some());
        let drawn = |cell: &[u8]| {
            let cell = cell.trim_ascii();
            let bare = cell.strip_prefix(b":").unwrap_or(cell);
            let bare = bare.strip_suffix(b":").unwrap_or(bare);
            let long = bare.len() >= DASHES_MIN || bare.len() < cell.len() && !bare.is_empty();
            cell.is_empty()
                || (long || narrow) && bare.iter().all(|byte| matches!(byte, b'-' | b'='))
        };
        line.contains(&b'-') | line.contains(&b'=')
            && line.split(|byte| matches!(byte, b'|' | b'+')).all(drawn)
    }

    /// Finds the fields of a line, which stands at `start..end` of `text`.
    pub(crate) fn split(
        self,
        text: &[u8],
        start: usize,
        end: usize,
        quote: Option<u8>,
        out: &mut CarefulRecord,
    ) {
        let line = Line { text, quote, aligned: self };
        let (mut at, mut end) = line.trimmed(start, end);
        if self == Aligned::FramedBars {
            at += usize::from(at < end && text[at] == b'|');
            end -= usize::from(at < end && text[end - 1] == b'|');
        }
        loop {
            let (field, next) = line.field(at, end);
            out.fields.push(field);
            match next {
                Some(next) => at = next,
                None => return,
            }
        }
    }
}

impl fmt::Display for Aligned {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.name())
    }
}

fn is_blank(byte: u8) -> bool {
    matches!(byte, b' ' | b'\t')
}

struct Line<'a> {
    text: &'a [u8],
    quote: Option<u8>,
    aligned: Aligned,
}

impl Line<'_> {
    fn trimmed(&self, mut start: usize, mut end: usize) -> (usize, usize) {
        while start < end && is_blank(self.text[start]) {
            start += 1;
        }
        while start < end && is_blank(self.text[end - 1]) {
            end -= 1;
        }
        (start, end)
    }

    /// The field at `at`, and where the next starts, if there is one.
    fn field(&self, at: usize, end: usize) -> (CarefulField, Option<usize>) {
        if self.aligned.has_bars() {
            let bar = memchr::memchr(b'|', &self.text[at..end]).map(|found| at + found);
            let (from, to) = self.trimmed(at, bar.unwrap_or(end));
            let field = CarefulField { start: from, end: to, form: FieldForm::Regular };
            return (field, bar.map(|bar| bar + 1));
        }
        let quoted = self.quote.filter(|quote| self.text[at..end].first() == Some(quote));
        let (to, form) = match quoted.and_then(|quote| self.closing(at, end, quote)) {
            Some(close) => (close, FieldForm::Regular),
            None => (
                self.gap(at, end),
                if quoted.is_some() { FieldForm::Literal } else { FieldForm::Regular },
            ),
        };
        let field = CarefulField { start: at, end: to, form };
        let (next, _) = self.trimmed(to, end);
        (field, (next < end).then_some(next))
    }

    /// Where the gap begins that ends a field, or the line.
    fn gap(&self, at: usize, end: usize) -> usize {
        let ends = |place: &usize| match self.aligned {
            Aligned::WideSpaces => {
                let next = self.text.get(place + 1).filter(|_| place + 1 < end);
                self.text[*place] == b'\t'
                    || self.text[*place] == b' ' && next.is_some_and(|next| is_blank(*next))
            }
            _ => is_blank(self.text[*place]),
        };
        (at..end).find(ends).unwrap_or(end)
    }

    /// The place behind the quote that closes a field before a blank, or the end.
    fn closing(&self, at: usize, end: usize, quote: u8) -> Option<usize> {
        let mut place = at + 1;
        while place < end {
            let next = (place + 1 < end).then(|| self.text[place + 1]);
            match (self.text[place] == quote, next) {
                (true, Some(next)) if next == quote => place += 2,
                (true, None) => return Some(place + 1),
                (true, Some(next)) => return is_blank(next).then_some(place + 1),
                _ => place += 1,
            }
        }
        None
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn fields(aligned: Aligned, line: &str) -> Vec<String> {
        let mut record = CarefulRecord::default();
        aligned.split(line.as_bytes(), 0, line.len(), Some(b'"'), &mut record);
        record.fields.iter().map(|f| line[f.start..f.end].to_owned()).collect()
    }

    #[test]
    fn lines_are_cut_at_blanks_and_bars() {
        for (aligned, line, expected) in [
            (Aligned::Spaces, "  1 \t 23  x ", &["1", "23", "x"][..]),
            (Aligned::Spaces, "\"a b\"  \"c\"\"d\" \"e\"f", &["\"a b\"", "\"c\"\"d\"", "\"e\"f"]),
            (Aligned::WideSpaces, "Ann Lee  2.5\tnew", &["Ann Lee", "2.5", "new"]),
            (Aligned::Bars, " 1 | Ann |", &["1", "Ann", ""]),
            (Aligned::Bars, "| x", &["", "x"]),
            (Aligned::FramedBars, " | 1 | Ann |  | ", &["1", "Ann", ""]),
            (Aligned::FramedBars, "|", &[""]),
            (Aligned::Spaces, "", &[""]),
        ] {
            assert_eq!(fields(aligned, line), expected, "{line}");
        }
    }

    #[test]
    fn drawn_lines_are_no_records() {
        for line in [
            "|---|:-:|--:|",
            "+----+------+",
            "----+---",
            "| --- | --- |",
            "=====",
            "|------------|",
        ] {
            assert!(Aligned::Bars.is_drawn(line.as_bytes()), "{line}");
        }
        for line in ["", "|", "| - | - |", "| -1 | --- |", "|  |  |", "a | ---", "--"] {
            assert!(!Aligned::Bars.is_drawn(line.as_bytes()), "{line}");
        }
        assert!(!Aligned::Spaces.is_drawn(b"-----"));
    }
}
