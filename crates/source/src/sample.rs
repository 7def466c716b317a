//! Splits a sample into records, slowly and forgivingly: what the sniffer looks at.

use std::borrow::Cow;

use crate::aligned::Aligned;
use crate::careful::{
    CarefulRecord, Fault, FieldForm, Reading, count_line_ends, field_text, read_record,
};
use crate::dialect::{Dialect, LineEnd, LongDelimiter};
use crate::rules::RecordRules;

/// Whether a sample is all of the input.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum SampleEnd {
    /// The input ends where the sample ends.
    Whole,
    /// The input goes on; the last record may be cut.
    Cut,
}

/// The bytes with a meaning while records are split.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Split {
    /// Byte between two fields.
    pub delimiter: u8,
    /// In its place, if it has several bytes.
    pub long_delimiter: Option<LongDelimiter>,
    /// In its place, where columns are drawn with blanks.
    pub aligned: Option<Aligned>,
    /// Byte around fields that are quoted; `None` when no byte is a quote.
    pub quote: Option<u8>,
    /// Before a quote inside a quoted field.
    pub escape: Option<u8>,
    /// First byte of a line to read over.
    pub comment: Option<u8>,
    /// What ends a line.
    pub line_end: LineEnd,
}

impl Split {
    /// Commas, double quotes, newlines.
    pub const CSV: Split = Split {
        delimiter: b',',
        long_delimiter: None,
        aligned: None,
        quote: Some(b'"'),
        escape: None,
        comment: None,
        line_end: LineEnd::Newline,
    };

    /// Bytes between two fields, be it one or several.
    pub fn delimiter_bytes(&self) -> &[u8] {
        match &self.long_delimiter {
            Some(long) => long.bytes(),
            None => std::slice::from_ref(&self.delimiter),
        }
    }
}

/// A field of the sample.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Field<'a> {
    /// The bytes without quotes.
    pub text: Cow<'a, [u8]>,
    /// Whether there were quotes.
    pub quoted: bool,
}

/// What a sample splits into.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Records<'a> {
    /// Records that are whole; blank lines are left out.
    pub records: Vec<Vec<Field<'a>>>,
    /// The line that each starts on, from 0.
    pub lines: Vec<u64>,
    /// Fields whose quotes enclose them.
    pub quoted: usize,
    /// Fields with text after the closing quote, or without a closing quote.
    pub faults: usize,
}

impl Records<'_> {
    /// The first record that starts on this line, or behind it. What one reading of a text tells of its lines holds for another
    /// reading of it too: a count of records does not.
    pub fn at_line(&self, line: u64) -> usize {
        self.lines.partition_point(|start| *start < line).min(self.records.len())
    }

    /// Leaves out the records from `count` on.
    pub fn truncate(&mut self, count: usize) {
        self.records.truncate(count);
        self.lines.truncate(count);
    }
}

/// Splits the sample into at most `records_max` records.
pub fn split_records<'a>(
    sample: &'a [u8],
    end: SampleEnd,
    split: Split,
    records_max: usize,
) -> Records<'a> {
    if let Some(aligned) = split.aligned {
        let Split { quote, comment, line_end, .. } = split;
        let aligned = Some(aligned);
        let dialect = Dialect { aligned, quote, comment, line_end, ..Dialect::default() };
        return split_as_loaded(sample, end, &dialect.record_rules(0), records_max);
    }
    let mut out = Records::default();
    let (mut at, mut line, mut counted) = (0, 0, 0);
    while at < sample.len() && out.records.len() < records_max {
        if split.comment == Some(sample[at]) {
            at += line_len(&sample[at..], split.line_end);
            continue;
        }
        let mut record = Vec::new();
        let (start, faults_before) = (at, out.faults);
        let ended = loop {
            let (field, outcome) = split_field(&sample[at..], split);
            at += outcome.len;
            out.quoted += usize::from(field.quoted && !outcome.fault);
            out.faults += usize::from(outcome.fault);
            record.push(field);
            match outcome.stop {
                Stop::Delimiter => {}
                Stop::Newline => break true,
                Stop::End => break end == SampleEnd::Whole,
            }
        };
        if !ended {
            // A cut record is nothing, unless its quote swallows most of the sample.
            let swallowed = sample.len() - start;
            let open = record.last().is_some_and(|field| field.quoted);
            out.faults = faults_before + usize::from(open && swallowed > sample.len() / 2);
            break;
        }
        let blank = matches!(record.as_slice(), [f] if f.text.is_empty() && !f.quoted);
        if !blank {
            line += count_line_ends(&sample[counted..start], split.line_end);
            counted = start;
            out.lines.push(line);
            out.records.push(record);
        }
    }
    out
}

/// Splits the sample as the load will, dirty records too, into at most `records_max` records. Blank lines and comments are left out.
pub fn split_as_loaded<'a>(
    sample: &'a [u8],
    end: SampleEnd,
    rules: &RecordRules,
    records_max: usize,
) -> Records<'a> {
    let mut out = Records::default();
    let mut record = CarefulRecord::default();
    let (mut at, mut line) = (0, 0);
    let whole = end == SampleEnd::Whole;
    while at < sample.len()
        && out.records.len() < records_max
        && read_record(sample, at, whole, rules, &mut record) == Reading::Whole
    {
        let blank = record.comment || record.end == at;
        if !blank {
            let quote = rules.separators.quote;
            let field = |f: &crate::careful::CarefulField| Field {
                text: field_text(sample, *f, rules),
                quoted: f.form != FieldForm::Literal
                    && quote.is_some()
                    && sample[f.start..f.end].first() == quote.as_ref(),
            };
            let fields: Vec<Field<'_>> = record.fields.iter().map(field).collect();
            out.quoted += fields.iter().filter(|field| field.quoted).count();
            out.records.push(fields);
            out.lines.push(line);
            let mended = record.fields.iter().any(|f| f.form != FieldForm::Regular);
            out.faults += usize::from(mended || record.fault != Fault::None);
        }
        line += record.lines;
        at = record.next;
    }
    out
}

/// Bytes of the first line with its end.
pub fn line_len(text: &[u8], line_end: LineEnd) -> usize {
    let found = match line_end {
        LineEnd::Newline | LineEnd::Returns => memchr::memchr(b'\n', text),
        LineEnd::Any => memchr::memchr2(b'\n', b'\r', text),
    };
    match found {
        Some(at) if text[at..].starts_with(b"\r\n") => at + 2,
        Some(at) => at + 1,
        None => text.len(),
    }
}

enum Stop {
    Delimiter,
    Newline,
    End,
}

struct Outcome {
    /// Bytes read, with the separator.
    len: usize,
    stop: Stop,
    fault: bool,
}

/// The first field of `text`.
fn split_field(text: &[u8], split: Split) -> (Field<'_>, Outcome) {
    match split.quote {
        Some(quote) if text.first() == Some(&quote) => split_quoted(text, quote, split),
        _ => {
            let (raw, len, stop) = until_separator(text, split);
            let field = Field { text: Cow::Borrowed(raw), quoted: false };
            (field, Outcome { len, stop, fault: false })
        }
    }
}

/// The bytes before the first separator, without a carriage return; what was read; and why.
fn until_separator(text: &[u8], split: Split) -> (&[u8], usize, Stop) {
    let mut from = 0;
    loop {
        let rest = &text[from..];
        let first = split.delimiter_bytes()[0];
        let found = match split.line_end {
            LineEnd::Newline | LineEnd::Returns => memchr::memchr2(first, b'\n', rest),
            LineEnd::Any => memchr::memchr3(first, b'\n', b'\r', rest),
        };
        let Some(at) = found.map(|at| from + at) else {
            return (without_returns(text, split.line_end), text.len(), Stop::End);
        };
        let raw = &text[..at];
        match text[at] {
            b'\n' => return (without_returns(raw, split.line_end), at + 1, Stop::Newline),
            b'\r' if split.line_end == LineEnd::Any => {
                let pair = text.get(at + 1) == Some(&b'\n');
                return (raw, at + 1 + usize::from(pair), Stop::Newline);
            }
            _ if text[at..].starts_with(split.delimiter_bytes()) => {
                return (raw, at + split.delimiter_bytes().len(), Stop::Delimiter);
            }
            _ => from = at + 1,
        }
    }
}

/// A line without the carriage returns of its end.
fn without_returns(line: &[u8], line_end: LineEnd) -> &[u8] {
    let returns = line.iter().rev().take_while(|byte| **byte == b'\r').count();
    let of_end = if line_end == LineEnd::Returns { returns } else { returns.min(1) };
    &line[..line.len() - of_end]
}

/// Whether a separator stands at the start of the text, or nothing.
fn at_separator(text: &[u8], split: Split) -> bool {
    text.is_empty()
        || text.starts_with(b"\n")
        || text.starts_with(b"\r\n")
        || text.starts_with(split.delimiter_bytes())
        || split.line_end == LineEnd::Any && text.starts_with(b"\r")
        || split.line_end == LineEnd::Returns
            && text.iter().find(|byte| **byte != b'\r') == Some(&b'\n')
}

/// A quoted field. A quote inside that is neither doubled nor escaped is a fault; the field ends at
/// one that a separator follows, if its line has one.
fn split_quoted(text: &[u8], quote: u8, split: Split) -> (Field<'_>, Outcome) {
    let escape = split.escape.unwrap_or(quote);
    let mut inner = Cow::Borrowed(&text[..0]);
    let (mut from, mut at) = (1, 1);
    // Where the first stray quote stands, and the text before it.
    let mut stray: Option<(usize, Cow<'_, [u8]>)> = None;
    loop {
        let found = text.get(at..).and_then(|rest| memchr::memchr2(quote, escape, rest));
        let lost = stray.as_ref().is_some_and(|(stray, _)| {
            memchr::memchr(b'\n', &text[*stray..found.map_or(text.len(), |f| at + f)]).is_some()
        });
        if (found.is_none() || lost)
            && let Some((stray, before)) = stray
        {
            // No quote of the line ends the field: it ended at the first.
            let (rest, len, stop) = until_separator(&text[stray + 1..], split);
            let mut inner = before;
            append(&mut inner, rest);
            let field = Field { text: inner, quoted: true };
            return (field, Outcome { len: stray + 1 + len, stop, fault: true });
        }
        let Some(found) = found else {
            // No closing quote.
            append(&mut inner, &text[from.min(text.len())..]);
            let field = Field { text: inner, quoted: true };
            return (field, Outcome { len: text.len(), stop: Stop::End, fault: true });
        };
        at += found;
        let next = text.get(at + 1);
        if text[at] == escape && next.is_some_and(|b| *b == quote || *b == escape) {
            append(&mut inner, &text[from..at]);
            (from, at) = (at + 1, at + 2);
        } else if text[at] == quote && at_separator(&text[at + 1..], split) {
            append(&mut inner, &text[from..at]);
            break;
        } else if text[at] == quote {
            if stray.is_none() {
                let mut before = inner.clone();
                append(&mut before, &text[from..at]);
                stray = Some((at, before));
            }
            at += 1;
        } else {
            at += 1;
        }
    }
    let (_, len, stop) = until_separator(&text[at + 1..], split);
    let fault = stray.is_some();
    (Field { text: inner, quoted: true }, Outcome { len: at + 1 + len, stop, fault })
}

/// Joins without copying as long as there is one part.
fn append<'a>(text: &mut Cow<'a, [u8]>, part: &'a [u8]) {
    if text.is_empty() {
        *text = Cow::Borrowed(part);
    } else if !part.is_empty() {
        text.to_mut().extend_from_slice(part);
    }
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]
    use super::*;

    const CSV: Split = Split { comment: Some(b'#'), ..Split::CSV };

    fn check(sample: &str, end: SampleEnd, split: Split, expected: &[&[&str]], faults: usize) {
        let records = split_records(sample.as_bytes(), end, split, usize::MAX);
        let found: Vec<Vec<String>> = records
            .records
            .iter()
            .map(|r| r.iter().map(|f| String::from_utf8(f.text.to_vec()).unwrap()).collect())
            .collect();
        assert_eq!(found, expected, "{sample:?}");
        assert_eq!(records.faults, faults, "{sample:?}");
    }

    #[test]
    fn records_end_at_newlines_outside_quotes() {
        let whole = SampleEnd::Whole;
        check("a,b\r\n1,\n", whole, CSV, &[&["a", "b"], &["1", ""]], 0);
        check("\"a\nb\",\"\"\"c\"\"\"\n\nd", whole, CSV, &[&["a\nb", "\"c\""], &["d"]], 0);
        check("# no\n1,2\n#3", whole, CSV, &[&["1", "2"]], 0);
        check("\"\"\n", whole, CSV, &[&[""]], 0);
        check("a,b", whole, CSV, &[&["a", "b"]], 0);
        check("1,2\n3,4", SampleEnd::Cut, CSV, &[&["1", "2"]], 0);
        check("1,2\n3,4\n5,\"6", SampleEnd::Cut, CSV, &[&["1", "2"], &["3", "4"]], 0);
        let escaped = Split { escape: Some(b'\\'), ..CSV };
        check("\"a\\\"b\\\\\",\"\\n\"", whole, escaped, &[&["a\"b\\", "\\n"]], 0);
    }

    #[test]
    fn faults_are_counted() {
        check("\"a\"b,c\n", SampleEnd::Whole, CSV, &[&["ab", "c"]], 1);
        check("a,\"b", SampleEnd::Whole, CSV, &[&["a", "b"]], 1);
        check("\"", SampleEnd::Whole, CSV, &[&[""]], 1);
        check("1\n\"2,3,4,5", SampleEnd::Cut, CSV, &[&["1"]], 1);
    }
}
