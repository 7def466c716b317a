//! Lines that are no records: comments, drawn lines, notes after the table.

use std::borrow::Cow;

use super::attempt::usual_field_count;
use crate::dialect::{GivenDialect, LineEnd};
use crate::infer::has_form;
use crate::sample::{Field, Records, line_len};

/// What begins a comment.
const MARKS: [&[u8]; 4] = [b"#", b"//", b"%", b"--"];
/// Comments that are one, though they are more than the rows.
const MARKED_MAX: usize = 64;
/// Records after a table that are looked for.
const FOOTER_MAX: usize = 8;

/// Columns, at least, that a comment names: a sentence may have one comma.
const NAMED_COLUMNS_MIN: usize = 3;
/// Words of such a name, at most: more are a part of a sentence.
const NAME_WORDS_MAX: usize = 3;
/// Signs of a drawn line, at least.
const DRAWN_MIN: usize = 5;

/// Lines that begin with a mark of comments.
pub(super) struct Comments {
    /// The mark, if such lines stand among the rows, and none is like a row: they are read over wherever they stand.
    pub mark: Option<u8>,
    /// How many such lines the text begins with, if they are no names.
    pub leading: usize,
}

/// Finds lines of `#`, `//` or `%` that are no rows. `is_header` tells whether a record names the columns of those below it.
pub(super) fn find_comments(
    records: &[Vec<Field<'_>>],
    given: &GivenDialect,
    is_header: &dyn Fn(&[Vec<Field<'_>>], usize) -> bool,
) -> Comments {
    let none = Comments { mark: None, leading: 0 };
    if given.comment.is_some() {
        return none;
    }
    let found = MARKS.iter().map(|mark| comments_of(records, mark, is_header));
    found.into_iter().find(|found| found.mark.is_some() || found.leading > 0).unwrap_or(none)
}

fn comments_of(
    records: &[Vec<Field<'_>>],
    mark: &[u8],
    is_header: &dyn Fn(&[Vec<Field<'_>>], usize) -> bool,
) -> Comments {
    let none = Comments { mark: None, leading: 0 };
    let begins = |record: &Vec<Field<'_>>, mark: &[u8]| {
        record.first().is_some_and(|field| !field.quoted && field.text.starts_with(mark))
    };
    let is_comment = |record: &Vec<Field<'_>>| begins(record, mark);
    if !records.iter().any(is_comment) {
        return none;
    }
    let others: Vec<Vec<Field<'_>>> =
        records.iter().filter(|record| !is_comment(record)).cloned().collect();
    let Some(fields) = usual_field_count(&others).filter(|fields| *fields > 1) else {
        return none;
    };
    let leading = records.iter().take_while(|record| is_comment(record)).count();
    let among = || records[leading..].iter().filter(|record| is_comment(record));
    // Rows may begin with the mark, and so may names.
    let strange = others.iter().any(|record| begins(record, &mark[..1]));
    let like_rows = among()
        .any(|record| record.len() == fields && (!has_space(record, mark) || is_overflow(record)));
    // Beside lines that are sure to be comments it is one that was a row.
    let below = others.get(1..).unwrap_or_default();
    let all_like_rows = leading == 0
        && among().all(|record| record.len() == fields && is_beside_values(record, below));
    let like_rows = like_rows || all_like_rows;
    if others.len() < 2 || strange || like_rows {
        return none;
    }
    let names_itself =
        leading > 0 && records[leading - 1].len() == fields && !is_header(&others, fields);
    // A dash begins numbers too, and no comment of the dialect has two characters.
    if among().count() > 0
        && mark != b"--"
        && !names_itself
        && among().count() + leading <= others.len().max(MARKED_MAX)
    {
        return Comments { mark: Some(mark[0]), leading: 0 };
    }
    Comments { mark: None, leading: leading - usize::from(names_itself) }
}

/// Whether a record begins with `####`, as spreadsheets show what is wider than its column, and has other values.
fn is_overflow(record: &[Field<'_>]) -> bool {
    let Some((first, others)) = record.split_first() else { return false };
    first.text.len() > 3
        && first.text.iter().all(|byte| *byte == b'#')
        && others.iter().any(|field| !field.text.is_empty())
}

/// Whether a value stands behind the first field where all rows have one, and the first column is text: `# 1 Main St,5`.
fn is_beside_values(record: &[Field<'_>], rows: &[Vec<Field<'_>>]) -> bool {
    let is_value = |field: &Field<'_>| has_form(field.text.trim_ascii());
    let all = |column: usize| {
        let fields = rows.iter().filter_map(|row| row.get(column));
        let mut written = fields.filter(|field| !field.text.is_empty()).peekable();
        written.peek().is_some() && written.all(is_value)
    };
    !rows.is_empty()
        && !all(0)
        && (1..record.len()).any(|column| is_value(&record[column]) && all(column))
}

/// Whether a space follows the mark, as in a sentence.
fn has_space(record: &[Field<'_>], mark: &[u8]) -> bool {
    let text = record.first().and_then(|field| field.text.strip_prefix(mark));
    text.is_some_and(|rest| rest.first().is_none_or(|byte| *byte == b' ' || *byte == mark[0]))
}

/// Lines after the table: the last records, if they have another number of fields and stand after a blank line, or are notes.
pub(super) fn find_footer(
    body: &[u8],
    line_end: LineEnd,
    reading: &Records<'_>,
    fields: usize,
) -> Option<(usize, u64)> {
    let Records { records, lines, .. } = reading;
    let other = |record: &Vec<Field<'_>>| record.len() < fields;
    let tail = records.iter().rev().take_while(|record| other(record)).count();
    let start = records.len() - tail.min(FOOTER_MAX);
    let one_line = |record: &[Field<'_>]| {
        record.iter().all(|f| memchr::memchr2(b'\n', b'\r', &f.text).is_none())
    };
    let after_blank = |at: &usize| one_line(&records[at - 1]) && lines[*at] > lines[at - 1] + 1;
    let counts = |at: &usize| {
        let Some(first) = records[*at].first() else { return false };
        let text = first.text.trim_ascii();
        let written = records[*at].iter().filter(|field| !field.text.is_empty()).count();
        let in_parentheses =
            text.starts_with(b"(") && (text.ends_with(b" rows)") || text.ends_with(b" row)"));
        let said = [&b" rows in set"[..], b" row in set", b" rows affected", b" rows selected"];
        written == 1
            && (in_parentheses
                || said.iter().any(|said| memchr::memmem::find(text, said).is_some()))
    };
    let notes = |at: &usize| {
        // Anything may stand below a drawn line.
        let is_drawn = records[*at].first().is_some_and(is_drawn);
        let are_notes = records[*at..].iter().all(|record| {
            record.len() * 2 <= fields && (is_drawn || record.first().is_some_and(is_note))
        });
        are_notes && records[..*at].iter().rev().take(2).all(|record| record.len() == fields)
    };
    // What a cut file ends with has no end of its line.
    let ends = matches!(body.last(), Some(b'\n' | b'\r'));
    let is_first = |at: &usize| counts(at) || after_blank(at) || ends && notes(at);
    let table = (start.max(1)..records.len()).find(is_first)?;
    if fields < 2 || table < 2 {
        return None;
    }
    Some((table, count_lines(body, line_end).saturating_sub(lines[table])))
}

/// Whether a line is a note about a table and none of its rows: `Source: ...`, `* estimated`, `--- end of report ---`, `10 rows`.
fn is_note(field: &Field<'_>) -> bool {
    let text = String::from_utf8_lossy(&field.text);
    let text = text.trim();
    let words: Vec<&str> = text.split_whitespace().collect();
    let counted = words.len() > 1
        && words[0].chars().all(|c| c.is_ascii_digit())
        && words[1..]
            .iter()
            .all(|word| word.trim_end_matches('.').chars().all(char::is_alphabetic));
    let labelled = text.split_once([':', '：']).is_some_and(|(label, rest)| {
        label.chars().any(char::is_alphabetic) && (rest.starts_with(' ') || text.contains('：'))
    });
    let signs = ["--", "==", "**", "* ", "© ", "† ", "(c) "];
    counted || labelled || words.len() > 1 && signs.iter().any(|sign| text.starts_with(sign))
}

/// Whether a line is drawn across: five signs alike, or more, and nothing else.
fn is_drawn(field: &Field<'_>) -> bool {
    let text = field.text.trim_ascii();
    let sign = text.first().copied().unwrap_or(b' ');
    text.len() >= DRAWN_MIN && b"-=*_".contains(&sign) && text.iter().all(|byte| *byte == sign)
}

/// Lines, the last of which need no end.
pub(super) fn count_lines(mut text: &[u8], line_end: LineEnd) -> u64 {
    let mut lines = 0;
    while !text.is_empty() {
        text = &text[line_len(text, line_end)..];
        lines += 1;
    }
    lines
}

/// The names in a comment before the rows, if there is one for each column, and what says so: of web servers' logs `#Fields: date time cs-uri`;
/// else the last comment that has words, as the delimiter splits it.
pub(super) fn named_in_comments<'a>(
    text: &'a [u8],
    columns: usize,
    delimiter: &[u8],
) -> Option<(Vec<Field<'a>>, &'static str)> {
    let lines = || text.split(|byte| *byte == b'\n').take_while(|line| line.starts_with(b"#"));
    let field = |text| Field { text: Cow::Borrowed(text), quoted: false };
    if let Some(names) = lines().filter_map(|line| line.strip_prefix(b"#Fields:")).last() {
        let words = names.split(u8::is_ascii_whitespace).filter(|word| !word.is_empty());
        let fields: Vec<Field<'_>> = words.map(field).collect();
        let why = "the columns are named in the comment that begins with #Fields:";
        return (fields.len() == columns).then_some((fields, why));
    }
    // A blank sets words of sentences apart.
    let [delimiter @ (b',' | b';' | b'\t' | b'|')] = delimiter else { return None };
    let words = |line: &&[u8]| line.iter().any(u8::is_ascii_alphabetic);
    let names = lines().filter(words).last()?.trim_ascii_start();
    let fields: Vec<Field<'_>> =
        names[1..].split(|byte| byte == delimiter).map(|name| field(name.trim_ascii())).collect();
    let is_name = |name: &Field<'_>| {
        name.text.iter().any(u8::is_ascii_alphabetic)
            && name.text.split(u8::is_ascii_whitespace).count() <= NAME_WORDS_MAX
            && !name.text.contains(&b'"')
            && !has_form(&name.text)
    };
    let mut texts: Vec<&[u8]> = fields.iter().map(|name| name.text.as_ref()).collect();
    texts.sort_unstable();
    let unlike = texts.windows(2).all(|pair| pair[0] != pair[1]);
    let is_header = columns >= NAMED_COLUMNS_MIN && fields.len() == columns && unlike;
    (is_header && fields.iter().all(is_name)).then_some((
        fields,
        "the columns are named in the last comment above the rows (--no-header says otherwise)",
    ))
}
