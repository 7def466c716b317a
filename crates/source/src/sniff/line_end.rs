//! What ends a line.

use super::SPLIT_SAMPLE_BYTES;
use super::attempt::usual_field_count;
use crate::dialect::LineEnd;
use crate::sample::{SampleEnd, Split, split_records};

/// Line ends: CR alone where more stand alone than there are newlines. The last may end the only line.
pub(super) fn detect_line_end(text: &[u8]) -> LineEnd {
    if has_returns(text) {
        return LineEnd::Returns;
    }
    let returns = memchr::memchr_iter(b'\r', text);
    let alone = returns.filter(|at| text.get(at + 1) != Some(&b'\n'));
    match alone.count() > memchr::memchr_iter(b'\n', text).count() {
        true => LineEnd::Any,
        false => LineEnd::Newline,
    }
}

/// Whether two carriage returns at least stand before most newlines: LF became CRLF twice.
fn has_returns(text: &[u8]) -> bool {
    let head = &text[..text.len().min(SPLIT_SAMPLE_BYTES)];
    let lines = memchr::memchr_iter(b'\n', head).count();
    let doubled = memchr::memmem::find_iter(head, b"\r\r\n").count();
    doubled > 0 && doubled * 2 > lines
}

/// Carriage returns among newlines end lines too if more records agree then.
pub(super) fn confirm_line_end(
    body: &[u8],
    end: SampleEnd,
    split: Split,
    evidence: &mut Vec<String>,
) -> LineEnd {
    let head = &body[..body.len().min(SPLIT_SAMPLE_BYTES)];
    if split.line_end == LineEnd::Returns {
        evidence.push(
            "lines end with several carriage returns and a newline (--line-end lf says otherwise)"
                .to_owned(),
        );
        return split.line_end;
    }
    let lone = memchr::memchr_iter(b'\r', head)
        .filter(|at| !matches!(head.get(at + 1), Some(b'\n') | None))
        .count();
    if lone == 0 {
        return split.line_end;
    }
    let share = |line_end: LineEnd| {
        let split = Split { line_end, ..split };
        let records = split_records(head, end, split, usize::MAX).records;
        let fields = usual_field_count(&records).filter(|fields| *fields > 1)?;
        let same = records.iter().filter(|record| record.len() == fields).count();
        Some(same as f64 / records.len() as f64)
    };
    let (newline, any) = (share(LineEnd::Newline), share(LineEnd::Any));
    if split.line_end == LineEnd::Any || any.is_some() && any > newline {
        evidence.push(format!(
            "carriage returns end lines: {lone} stand without a newline (--line-end lf says otherwise)"
        ));
        return LineEnd::Any;
    }
    LineEnd::Newline
}
