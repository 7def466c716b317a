//! Splits a sample into records, slowly and forgivingly: what the sniffer looks at.

use std::borrow::Cow;

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
    /// Between two fields.
    pub delimiter: u8,
    /// Around a field.
    pub quote: Option<u8>,
    /// Before a quote inside a quoted field.
    pub escape: Option<u8>,
    /// First byte of a line to read over.
    pub comment: Option<u8>,
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
    /// Fields whose quotes enclose them.
    pub quoted: usize,
    /// Fields with text after the closing quote, or without a closing quote.
    pub faults: usize,
}

/// Splits the sample into at most `records_max` records.
pub fn split_records<'a>(
    sample: &'a [u8],
    end: SampleEnd,
    split: Split,
    records_max: usize,
) -> Records<'a> {
    let mut out = Records::default();
    let mut at = 0;
    while at < sample.len() && out.records.len() < records_max {
        if split.comment == Some(sample[at]) {
            at += line_len(&sample[at..]);
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
            out.records.push(record);
        }
    }
    out
}

/// Bytes of the first line with its end.
pub fn line_len(text: &[u8]) -> usize {
    memchr::memchr(b'\n', text).map_or(text.len(), |end| end + 1)
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
    let Some(at) = memchr::memchr2(split.delimiter, b'\n', text) else {
        return (text.strip_suffix(b"\r").unwrap_or(text), text.len(), Stop::End);
    };
    let raw = &text[..at];
    if text[at] == b'\n' {
        (raw.strip_suffix(b"\r").unwrap_or(raw), at + 1, Stop::Newline)
    } else {
        (raw, at + 1, Stop::Delimiter)
    }
}

fn split_quoted(text: &[u8], quote: u8, split: Split) -> (Field<'_>, Outcome) {
    let escape = split.escape.unwrap_or(quote);
    let mut inner = Cow::Borrowed(&text[..0]);
    let (mut from, mut at) = (1, 1);
    loop {
        let Some(found) = text.get(at..).and_then(|rest| memchr::memchr2(quote, escape, rest))
        else {
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
        } else if text[at] == quote {
            append(&mut inner, &text[from..at]);
            break;
        } else {
            at += 1;
        }
    }
    let (stray, len, stop) = until_separator(&text[at + 1..], split);
    append(&mut inner, stray);
    let fault = !stray.is_empty();
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

    const CSV: Split =
        Split { delimiter: b',', quote: Some(b'"'), escape: None, comment: Some(b'#') };

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
