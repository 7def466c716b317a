//! Which lines of a text are looked at: what is skipped is none, and comments and titles tell no delimiter.

use std::borrow::Cow;

use crate::dialect::{GivenDialect, LineEnd};
use crate::sample::{SampleEnd, line_len};

/// What comments before a table begin with.
const COMMENTS: [&[u8]; 4] = [b"#", b"//", b"--", b"%"];
/// Lines, at least, of a table whose notes are set apart.
const NOTES_BEHIND_MIN: usize = 2;
/// Lines before a table that may be titles.
const TITLES_MAX: usize = 10;

/// The part of a text in which the delimiter is sought.
pub(super) fn without_titles(head: &[u8], end: SampleEnd, line_end: LineEnd) -> Cow<'_, [u8]> {
    let head = &head[leading_comments(head, line_end)..];
    let head = &head[title_block(head, line_end)..];
    let head = match end {
        SampleEnd::Whole => without_notes(head, line_end),
        SampleEnd::Cut => head,
    };
    without_comments(head, line_end)
}

/// The text without the line behind a table that a blank line sets apart from it, as in `3 rows`, if the table is longer.
fn without_notes(head: &[u8], line_end: LineEnd) -> &[u8] {
    let (mut at, mut lines) = (0, 0);
    // Where the last line with words begins, and whether the one before it has none.
    let (mut last, mut is_apart, mut blank_before) = (0, false, false);
    while at < head.len() {
        let line = &head[at..at + line_len(&head[at..], line_end)];
        let blank = line.trim_ascii().is_empty();
        if !blank {
            (last, is_apart) = (at, blank_before);
            lines += 1;
        }
        blank_before = blank;
        at += line.len();
    }
    let table = &head[..last];
    let quotes = memchr::memchr_iter(b'"', table).count();
    match is_apart && lines > NOTES_BEHIND_MIN && quotes.is_multiple_of(2) {
        true => table,
        false => head,
    }
}

/// Bytes of the lines of comments that a text begins with, if others follow them. A line without a word is drawn.
fn leading_comments(head: &[u8], line_end: LineEnd) -> usize {
    let mut at = 0;
    while COMMENTS.iter().any(|mark| head[at..].starts_with(mark)) {
        let line = line_len(&head[at..], line_end);
        if head[at..].starts_with(b"--")
            && !head[at..at + line].iter().any(u8::is_ascii_alphanumeric)
        {
            break;
        }
        at += line;
    }
    if head[at..].trim_ascii().is_empty() { 0 } else { at }
}

/// Bytes of lines before the table that a blank line sets apart from it.
fn title_block(head: &[u8], line_end: LineEnd) -> usize {
    let (mut at, mut lines) = (0, 0);
    let blank = |line: &[u8]| line.trim_ascii().is_empty();
    while at < head.len() && lines < TITLES_MAX {
        let line = &head[at..at + line_len(&head[at..], line_end)];
        at += line.len();
        if blank(line) {
            let rest = &head[at..];
            let ends = |byte: &u8| matches!(byte, b'\n' | b'\r');
            let others = rest.split(ends).filter(|line| !blank(line)).count();
            let quotes = memchr::memchr_iter(b'"', &head[..at]).count();
            // A field of several lines may have a blank one.
            return if lines > 0 && others > lines && quotes.is_multiple_of(2) { at } else { 0 };
        }
        lines += 1;
    }
    0
}

/// The text without lines of `#`, if few lines begin so.
fn without_comments(head: &[u8], line_end: LineEnd) -> Cow<'_, [u8]> {
    let mut rest = head;
    let (mut kept, mut comments, mut lines) = (Vec::new(), 0, 0);
    if memchr::memmem::find(head, b"\n#").is_none() && memchr::memmem::find(head, b"\r#").is_none()
    {
        return Cow::Borrowed(head);
    }
    while !rest.is_empty() {
        let (line, after) = rest.split_at(line_len(rest, line_end));
        let is_comment = line.starts_with(b"# ") || line.trim_ascii() == b"#";
        if !is_comment {
            kept.extend_from_slice(line);
        }
        comments += usize::from(is_comment);
        lines += 1;
        rest = after;
    }
    match comments > 0 && comments * 2 < lines {
        true => Cow::Owned(kept),
        false => Cow::Borrowed(head),
    }
}

/// The text after `skip` lines.
pub(super) fn after_skipped(mut text: &[u8], skip: u64, line_end: LineEnd) -> &[u8] {
    for _ in 0..skip {
        if text.is_empty() {
            break;
        }
        text = &text[line_len(text, line_end)..];
    }
    text
}

/// The text without its last `lines` lines, the very last of which needs no end.
pub(super) fn without_last(text: &[u8], lines: u64, line_end: LineEnd) -> &[u8] {
    let mut starts = Vec::new();
    let mut at = 0;
    while at < text.len() {
        starts.push(at);
        at += line_len(&text[at..], line_end);
    }
    let kept = starts.len().saturating_sub(usize::try_from(lines).unwrap_or(usize::MAX));
    &text[..starts.get(kept).copied().unwrap_or(text.len())]
}

/// The delimiter that a first line of Excel tells: `sep=;`.
pub(super) fn separator_line(text: &[u8], given: &GivenDialect) -> Option<u8> {
    if given.delimiter.is_some()
        || given.fixed.is_some()
        || given.aligned.is_some()
        || given.skip.is_some()
    {
        return None;
    }
    let line = &text[..memchr::memchr2(b'\n', b'\r', text)?];
    let line =
        line.strip_prefix(b"\"").map_or(line, |inner| inner.strip_suffix(b"\"").unwrap_or(inner));
    match line.split_at_checked(4) {
        Some((word, [byte]))
            if word.eq_ignore_ascii_case(b"sep=") && !byte.is_ascii_alphanumeric() =>
        {
            Some(*byte)
        }
        _ => None,
    }
}
