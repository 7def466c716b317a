//! Where the records of an input start and end: skipped lines and headers before them, a footer after
//! them.

use coload_source::{
    Between, CarefulRecord, Item, JsonForm, LineEnd, Reading, RecordRules, Splitter, TEXT_PADDING,
    first_line, read_record, tokenise,
};
use coload_types::Error;

use crate::request::LoadRequest;

/// Bytes in which skipped lines and header must end, and a footer must start.
pub const HEAD_BYTES_MAX: usize = 4 << 20;

/// What stands before the first record, and after the last.
#[derive(Debug, Clone)]
pub struct Head {
    skip: u64,
    header_records: u64,
    /// Lines at the end that are not read.
    footer: u64,
    rules: RecordRules,
}

/// Whether records of a load are those of documents of JSON, which cannot be cut at any byte.
pub fn has_documents(request: &LoadRequest) -> bool {
    Head::new(request).has_documents()
}

impl Head {
    /// The head of an input of this request.
    pub fn new(request: &LoadRequest) -> Self {
        let dialect = &request.dialect;
        Head {
            skip: dialect.skip,
            header_records: dialect.header_records(),
            footer: dialect.footer,
            rules: dialect.record_rules(request.field_count()),
        }
    }

    /// The same for records of so many fields.
    #[must_use]
    pub fn with_fields(mut self, fields: usize) -> Self {
        self.rules.fields = fields;
        self
    }

    /// Whether records are those of JSON.
    pub fn is_json(&self) -> bool {
        self.rules.json.is_some()
    }

    /// Whether records are those of documents of JSON, which no line ends.
    pub fn has_documents(&self) -> bool {
        self.rules.json.as_ref().is_some_and(|json| json.form == JsonForm::Documents)
    }

    /// What ends a line.
    pub fn line_end(&self) -> LineEnd {
        self.rules.line_end
    }

    /// Whether anything stands before the first record.
    pub fn has_lines(&self) -> bool {
        self.skip > 0 || self.header_records > 0
    }

    /// Bytes and lines before the first record: skipped lines, comments and blank lines before the
    /// header, the header.
    ///
    /// # Errors
    /// What to say when they do not end in `text`, which is not the whole of it.
    pub fn data_start(&self, text: &[u8], whole: bool) -> Result<(usize, u64), String> {
        let too_long = || format!("no first record within {HEAD_BYTES_MAX} bytes");
        let (mut at, mut lines) = (0, 0);
        for _ in 0..self.skip {
            if at == text.len() {
                break;
            }
            at += first_line(&text[at..], whole, &self.rules).ok_or_else(too_long)?;
            lines += 1;
        }
        let mut record = CarefulRecord::default();
        let mut wanted = self.header_records;
        while wanted > 0 && at < text.len() {
            if read_record(text, at, whole, &self.rules, &mut record) == Reading::NeedsMore {
                return Err(too_long());
            }
            let blank = record.comment || record.end == at;
            wanted -= u64::from(!blank);
            lines += record.lines;
            at = record.next;
        }
        Ok((at, lines))
    }

    /// Whether how a record is read may depend on what follows it.
    pub fn looks_ahead(&self) -> bool {
        self.rules.is_exotic() || self.rules.is_forgiving() || self.rules.outside_escape.is_some()
    }

    /// Whether lines at the end are not read.
    pub fn has_footer(&self) -> bool {
        self.footer > 0
    }

    /// Where the footer starts if the input ends where `text` ends; what is before it is none, however
    /// the input goes on. `None` when it starts before `text`.
    pub fn footer_start(&self, text: &[u8]) -> Option<usize> {
        let mut end = text.len();
        for _ in 0..self.footer {
            let line = strip_line_end(&text[..end], self.rules.line_end);
            let before = match self.rules.line_end {
                LineEnd::Newline | LineEnd::Returns => memchr::memrchr(b'\n', line),
                LineEnd::Any => memchr::memrchr2(b'\n', b'\r', line),
            };
            end = before? + 1;
        }
        Some(end)
    }

    /// What to say of a footer that does not start in the bytes that are looked at.
    pub fn footer_too_long(&self, name: &str) -> Error {
        Error::Invalid(format!(
            "{name}: the last {} lines are over {HEAD_BYTES_MAX} bytes (is --footer right?)",
            self.footer
        ))
    }

    /// End of the last whole record of documents of JSON in `text`, and what stands before the next; `between` stands
    /// before the first.
    pub fn last_document_end(text: &[u8], between: Between) -> (usize, Between) {
        let mut records = Splitter { text, end: text.len(), is_last: false, at: 0, between };
        let mut last = (0, between);
        while let Item::Record { .. } | Item::Bad { .. } = records.next_item() {
            last = (records.at, records.between);
        }
        last
    }

    /// End of the last whole record in the first `end` bytes of `text`, which starts at a record.
    pub fn last_record_end(&self, text: &mut Vec<u8>, end: usize) -> usize {
        if self.looks_ahead() {
            return self.last_careful_record_end(&text[..end]);
        }
        let separators = self.rules.separators;
        if separators.quote.is_none_or(|q| memchr::memchr(q, &text[..end]).is_none()) {
            return memchr::memrchr(b'\n', &text[..end]).map_or(0, |p| p + 1);
        }
        let have = text.len();
        text.extend([0; TEXT_PADDING]);
        let mut ends = Vec::new();
        tokenise(text, 0, end, separators, &mut ends);
        text.truncate(have);
        let last = ends.iter().rev().find(|p| text[**p as usize] == b'\n');
        last.map_or(0, |p| *p as usize + 1)
    }

    fn last_careful_record_end(&self, text: &[u8]) -> usize {
        let mut record = CarefulRecord::default();
        let mut at = 0;
        while at < text.len()
            && read_record(text, at, false, &self.rules, &mut record) == Reading::Whole
        {
            at = record.next;
        }
        at
    }
}

fn strip_line_end(text: &[u8], line_end: LineEnd) -> &[u8] {
    let line = text.strip_suffix(b"\n").unwrap_or(text);
    match line_end {
        LineEnd::Newline | LineEnd::Returns => line,
        LineEnd::Any => line.strip_suffix(b"\r").unwrap_or(line),
    }
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]
    use coload_source::Dialect;

    use super::*;

    fn head(dialect: &Dialect, skip: u64, header_records: u64, footer: u64) -> Head {
        Head { skip, header_records, footer, rules: dialect.record_rules(2) }
    }

    #[test]
    fn skipped_lines_comments_and_header_come_before_the_data() {
        let dialect = Dialect { comment: Some(b'#'), ..Dialect::default() };
        let one = head(&dialect, 1, 1, 0);
        let text = b"title\n# note\n\"a\nb\",c\n1,2\n";
        assert_eq!(one.data_start(text, true).unwrap(), (21, 4));
        assert_eq!(one.data_start(b"title\na,b", true).unwrap(), (9, 1));
        assert!(one.data_start(b"title\na,b", false).is_err());
        let two = head(&dialect, 1, 2, 0);
        assert_eq!(two.data_start(b"title\na,b\r\n\r\nc,d\r\n1,2\r\n", true).unwrap(), (18, 4));
    }

    #[test]
    fn a_footer_is_the_last_lines() {
        let any = Dialect { line_end: LineEnd::Any, ..Dialect::default() };
        for (text, footer, expected) in [
            ("1,2\r\n3,4\r\ntotal", 1, Some(10)),
            ("1,2\n3,4\ntotal\n\n", 2, Some(8)),
            ("1,2\n", 1, None),
            ("1,2\n", 0, Some(4)),
        ] {
            let found = head(&Dialect::default(), 0, 0, footer).footer_start(text.as_bytes());
            assert_eq!(found, expected, "{text:?}");
        }
        assert_eq!(head(&any, 0, 0, 1).footer_start(b"1\r2\rend\r"), Some(4));
    }
}
