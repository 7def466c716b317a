//! The delimiter: what splits most records alike, into many fields.

use coload_ddl::Schema;

use super::attempt::{
    Attempt, SURE_SHARE, UNUSUAL_FIELDS_MIN, score, share_of_usual, usual_field_count,
};
use super::drawn::{aligned_candidates, is_laid_out};
use super::head::without_titles;
use super::quotes::choose_quote;
use super::signs::{delimiters_beside_odd_quotes, runs_of_signs, unusual_delimiters};
use super::{SCHEMA_SAMPLE_BYTES, SPLIT_SAMPLE_BYTES, describe_delimiter};
use crate::aligned::Aligned;
use crate::dialect::{GivenDialect, LineEnd, LongDelimiter, describe_byte};
use crate::infer::has_form;
use crate::sample::{Field, Records, SampleEnd, Split};

/// Delimiters that are tried, the likelier first.
pub(super) const DELIMITERS: [u8; 4] = [b',', b';', b'\t', b'|'];

/// What cuts records, as it is tried.
#[derive(Clone, Copy)]
enum Cut<'b> {
    Bytes(&'b [u8]),
    Aligned(Aligned),
}

/// The delimiter, and the quotes that go with it.
pub(super) fn choose_split(
    body: &[u8],
    end: SampleEnd,
    given: &GivenDialect,
    line_end: LineEnd,
    schema: Option<&Schema>,
    evidence: &mut Vec<String>,
) -> Split {
    let bytes = if schema.is_some() { SCHEMA_SAMPLE_BYTES } else { SPLIT_SAMPLE_BYTES };
    let (head, end) = match body.get(..bytes) {
        Some(head) => (head, SampleEnd::Cut),
        None => (body, end),
    };
    // Comments and titles are no lines of the table.
    let titleless;
    let head = match given.comment {
        None => {
            titleless = without_titles(head, end, line_end);
            &titleless[..]
        }
        Some(_) => head,
    };
    let attempt = |cut: Cut<'_>| {
        let (delimiter, aligned) = match cut {
            Cut::Bytes(bytes) => (bytes, None),
            Cut::Aligned(aligned) => (&[u8::MAX][..], Some(aligned)),
        };
        let base = Split {
            delimiter: delimiter.first().copied().unwrap_or(b','),
            long_delimiter: LongDelimiter::new(delimiter),
            aligned,
            comment: given.comment.flatten(),
            line_end,
            ..Split::CSV
        };
        let (split, records) = choose_quote(head, end, base, given);
        let score = score(&records, schema);
        Attempt { split, records, score }
    };
    let best = match (&given.delimiter, given.aligned) {
        (_, Some(aligned)) => attempt(Cut::Aligned(aligned)),
        (Some(delimiter), _) => attempt(Cut::Bytes(delimiter)),
        _ => {
            let best = best_attempt(head, attempt);
            match one_column_delimiter(head, &best).filter(|_| schema.is_none()) {
                Some(delimiter) => {
                    evidence.push(
                        "one column, a guess: no delimiter splits the lines alike (--delimiter says otherwise)"
                            .to_owned(),
                    );
                    attempt(Cut::Bytes(&[delimiter]))
                }
                None => best,
            }
        }
    };
    evidence.push(split_evidence(best.split, &best.records));
    best.split
}

fn best_attempt<'a>(head: &[u8], attempt: impl Fn(Cut<'_>) -> Attempt<'a>) -> Attempt<'a> {
    let bytes = |delimiter: &[u8]| attempt(Cut::Bytes(delimiter));
    let mut best = bytes(&DELIMITERS[..1]);
    for delimiter in &DELIMITERS[1..] {
        let next = bytes(&[*delimiter]);
        // Between words a comma has a blank behind it, and cuts the text as often as a delimiter may.
        let same = next.score == best.score
            && (next.fields_with_form() > best.fields_with_form()
                || best.cuts_before_blanks() && !next.cuts_before_blanks());
        if next.closes_where_others_stray(&best)
            || !best.closes_where_others_stray(&next) && (next.score > best.score || same)
        {
            best = next;
        }
    }
    if best.split.delimiter == b',' && best.fields() > 1 && commas_are_of_numbers(head) {
        let others = DELIMITERS[1..].iter().map(|delimiter| vec![*delimiter]);
        let others = others.chain(unusual_delimiters(head).into_iter().filter(|d| d != b" "));
        let others = others.filter_map(|delimiter| {
            let next = bytes(&delimiter);
            let splits = share_of_usual(&next.records.records, 2) >= SURE_SHARE
                && next.holds_numbers_with_commas()
                && !is_inside_values(head, &next, &delimiter);
            splits.then_some(next)
        });
        if let Some(next) = others.max_by(|a, b| a.score.total_cmp(&b.score)) {
            best = next;
        }
    }
    // With a space around it, if that splits the records as well.
    for delimiter in DELIMITERS {
        for long in [vec![delimiter, b' '], vec![b' ', delimiter, b' ']] {
            if memchr::memmem::find(head, &long).is_some() {
                let next = bytes(&long);
                // Beside another delimiter, or within quotes, it is part of the text.
                let own = best.split.delimiter_bytes().contains(&delimiter)
                    && next.records.quoted >= best.records.quoted
                    && next.score >= best.score;
                if next.fields() > 1 && (own || !best.is_usual() && next.score > best.score) {
                    best = next;
                }
            }
        }
    }
    if let Some(doubled) = best.doubled() {
        return bytes(&doubled);
    }
    for aligned in aligned_candidates(head).into_iter().filter(|aligned| aligned.has_bars()) {
        let next = attempt(Cut::Aligned(aligned));
        // Lines that are drawn are no records here, and may look like one there.
        if next.fields() > 1 && next.others() <= best.others() {
            return next;
        }
    }
    let usual = best.is_usual();
    for delimiter in delimiters_beside_odd_quotes(head) {
        let next = bytes(&[delimiter]);
        if next.has_odd_quotes() && next.fields() > 1 && next.score > best.score {
            return next;
        }
    }
    for run in runs_of_signs(head) {
        // Text in tildes between carets: the tildes are quotes.
        let inner = match run[..] {
            [quote, delimiter, other] if quote == other => Some(bytes(&[delimiter])),
            _ => None,
        };
        if let Some(inner) = inner.filter(Attempt::has_odd_quotes) {
            return inner;
        }
        let next = bytes(&run);
        // One that holds the delimiter leaves no fields of signs.
        let within = run.iter().filter(|byte| **byte == best.split.delimiter).count();
        let holds = best.split.delimiter_bytes().len() == 1
            && within > 0
            && best.fields() == (next.fields().max(1) - 1) * within + 1;
        // A sign that values end with, as in 5%^6%, is none of the delimiter's.
        let is_finer = |byte: &u8| {
            if run.iter().all(|other| other == byte) {
                return false;
            }
            let one = bytes(&[*byte]);
            let within = run.iter().filter(|other| *other == byte).count();
            share_of_usual(&one.records.records, 2) >= SURE_SHARE
                && one.fields() > (next.fields().max(1) - 1) * within + 1
        };
        if share_of_usual(&next.records.records, 2) >= SURE_SHARE
            && !next.leaves_strays()
            && !run.iter().any(is_finer)
            && (!usual
                || (holds || next.fields() >= best.fields()) && next.others() <= best.others())
        {
            return next;
        }
    }
    if usual && !best.leaves_quotes(head) {
        return best;
    }
    for delimiter in unusual_delimiters(head) {
        let next = bytes(&delimiter);
        let records = &next.records.records;
        // Two words are no table, but two numbers are; those that a colon or a space joins may be one value.
        let numbers = next.fields_with_form() + 2 >= 2 * records.len()
            && records.len() > if delimiter == b"=" { 1 } else { 2 }
            && !matches!(delimiter[..], [b':' | b' ']);
        let least = if numbers || next.names_numbers() { 2 } else { UNUSUAL_FIELDS_MIN };
        let share = share_of_usual(records, least);
        let usual_share = share_of_usual(&best.records.records, 2);
        // A few quotes are of the text.
        let encloses_most = next.records.quoted * 2 >= records.len();
        let closes = next.fields() > 1
            && (next.closes_where_others_stray(&best) || next.has_odd_quotes())
            && (!usual || share >= usual_share);
        let splits_better = share >= SURE_SHARE
            && next.score > best.score
            && (!usual || next.encloses_all() && (share > usual_share || encloses_most))
            && !best.closes_where_others_stray(&next)
            && !(delimiter == b" " && best.fields() > next.fields() && best.ends_alike())
            && !is_inside_values(head, &next, &delimiter);
        if closes || splits_better {
            best = next;
        }
    }
    if let Some(doubled) = best.doubled() {
        return bytes(&doubled);
    }
    // Blanks that are one of the other delimiters' values are none.
    let splits = best.split.delimiter != b' ' && best.is_usual();
    if !usual && is_laid_out(head) {
        let next = attempt(Cut::Aligned(Aligned::WideSpaces));
        if next.is_table_of_blanks() && !best.closes_where_others_stray(&next) {
            return next;
        }
    }
    for aligned in aligned_candidates(head).into_iter().filter(|a| !a.has_bars() && !splits) {
        let next = attempt(Cut::Aligned(aligned));
        if next.is_table_of_blanks()
            && !best.closes_where_others_stray(&next)
            && next.rank_of_blanks() > best.rank_of_blanks()
        {
            best = next;
        }
    }
    best
}

/// For a text of one column in which the delimiter stands here and there, one that it has not.
fn one_column_delimiter(head: &[u8], best: &Attempt<'_>) -> Option<u8> {
    let stands = |delimiter: &u8| memchr::memchr(*delimiter, head).is_some();
    let one_column = best.fields() == 1 && best.split.aligned.is_none()
        || is_column_of_decimals(&best.records.records, best.split);
    let is_cut = best.split.delimiter_bytes().iter().any(stands);
    let mut absent = DELIMITERS.into_iter().chain([0x1f]).filter(|delimiter| !stands(delimiter));
    absent.next().filter(|_| one_column && is_cut)
}

/// Whether one name stands above numbers with decimal commas: `Preis` above `12,50` and `3,99`. Rows that are counted are those that R
/// names so.
fn is_column_of_decimals(records: &[Vec<Field<'_>>], split: Split) -> bool {
    let Some(([name], rows)) = records.split_first().map(|(first, rows)| (&first[..], rows)) else {
        return false;
    };
    let digits = |field: &Field<'_>| {
        let text = field.text.strip_prefix(b"-").unwrap_or(&field.text);
        !field.quoted && !text.is_empty() && text.iter().all(u8::is_ascii_digit)
    };
    let is_number = |row: &Vec<Field<'_>>| matches!(row.len(), 1 | 2) && row.iter().all(digits);
    let fractions = rows.iter().filter(|row| row.len() == 2).count();
    let whole = |row: &Vec<Field<'_>>| -> Option<i64> {
        std::str::from_utf8(&row.first()?.text).ok()?.parse().ok()
    };
    let counts = |pair: &[Vec<Field<'_>>]| match (whole(&pair[0]), whole(&pair[1])) {
        (Some(a), Some(b)) => b.checked_sub(a) == Some(1),
        _ => false,
    };
    split.delimiter_bytes() == b","
        && split.aligned.is_none()
        && !has_form(name.text.trim_ascii())
        && fractions > 1
        && rows.iter().all(is_number)
        && !rows.windows(2).all(counts)
}

/// Whether each comma stands between two digits.
fn commas_are_of_numbers(head: &[u8]) -> bool {
    let digit = |at: Option<usize>| at.and_then(|at| head.get(at)).is_some_and(u8::is_ascii_digit);
    memchr::memchr_iter(b',', head).all(|at| digit(at.checked_sub(1)) && digit(Some(at + 1)))
}

/// Whether the delimiter stands inside values, such as times and URLs.
fn is_inside_values(head: &[u8], attempt: &Attempt<'_>, delimiter: &[u8]) -> bool {
    let joined = |record: &Vec<Field<'_>>| {
        record.iter().map(|field| field.text.as_ref()).collect::<Vec<_>>().join(delimiter)
    };
    let records = &attempt.records.records;
    let values = records.iter().filter(|r| has_form(&joined(r))).count();
    if values * 2 > records.len() {
        return true;
    }
    if delimiter != b":" {
        return false;
    }
    let (mut all, mut inside) = (0, 0);
    for at in memchr::memchr_iter(b':', head) {
        // Hours have one digit or two, minutes two.
        let digits = |bytes: &mut dyn Iterator<Item = &u8>| {
            bytes.take(3).take_while(|byte| byte.is_ascii_digit()).count()
        };
        let in_time = matches!(digits(&mut head[..at].iter().rev()), 1 | 2)
            && digits(&mut head[at + 1..].iter()) == 2;
        all += 1;
        inside += usize::from(in_time || head[at + 1..].starts_with(b"//"));
    }
    inside * 2 > all
}

fn split_evidence(split: Split, records: &Records<'_>) -> String {
    let fields = usual_field_count(&records.records).unwrap_or(0);
    let same = records.records.iter().filter(|r| r.len() == fields).count();
    let quote = match (split.quote, split.escape) {
        (None, _) => "no quotes".to_owned(),
        (Some(quote), None) => format!("quote {}", describe_byte(quote)),
        (Some(quote), Some(escape)) => {
            format!("quote {}, escape {}", describe_byte(quote), describe_byte(escape))
        }
    };
    format!(
        "{}, {quote}: {same} of the first {} records have {fields} field{}",
        match split.aligned {
            Some(aligned) => format!("columns set apart by {aligned} (--delimiter)"),
            None => format!("delimiter {}", describe_delimiter(split.delimiter_bytes())),
        },
        records.records.len(),
        if fields == 1 { "" } else { "s" },
    )
}
