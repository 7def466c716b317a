//! Delimiter and quotes: what splits most records alike, into many fields.

use super::drawn::{aligned_candidates, is_laid_out};
use super::head::without_titles;
use super::shape::detect_trailing;
use super::signs::{delimiters_beside_odd_quotes, runs_of_signs, unusual_delimiters};
use super::{SCHEMA_SAMPLE_BYTES, SPLIT_SAMPLE_BYTES, describe_delimiter};
use crate::aligned::Aligned;
use crate::dialect::{GivenDialect, LineEnd, LongDelimiter, describe_byte};
use crate::infer::has_form;
use crate::rules::Trailing;
use crate::sample::{Field, Records, SampleEnd, Split, split_records};
use coload_format::{DataType, Schema, parse_value};

/// Delimiters that are tried, the likelier first.
pub(super) const DELIMITERS: [u8; 4] = [b',', b';', b'\t', b'|'];
/// What a text that no delimiter splits scores; two columns in nearly half of the records beat it.
const ONE_COLUMN_SCORE: f64 = 0.35;
/// Share of records that agree, from which a usual delimiter needs no rival.
pub(super) const SURE_SHARE: f64 = 0.9;
/// Unusual delimiters split each record into this many fields at least: two words are no table.
const UNUSUAL_FIELDS_MIN: usize = 3;
/// Rows of a name and a number, at least, that a space may set apart, and other signs.
const NAMED_BY_SPACE_MIN: usize = 3;
const NAMED_MIN: usize = 2;
/// Signs that two of another delimiter may enclose, to be one with them: `|~|`.
const INNER_SIGNS: &[u8] = b"~^|@#%&=:";

/// What encloses text in files of some makers, besides quotes.
pub(super) const ODD_QUOTES: [u8; 3] = *b"~|^";
/// Share of records that agree where quotes close, so that ways to split which leave quotes astray are no rivals.
const CLOSED_SHARE: f64 = 0.5;

/// What cuts records, as it is tried.
#[derive(Clone, Copy)]
enum Cut<'b> {
    Bytes(&'b [u8]),
    Aligned(Aligned),
}

/// A way to split, and what comes of it.
struct Attempt<'a> {
    split: Split,
    records: Records<'a>,
    score: f64,
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
    let one_column = best.fields() == 1 && best.split.aligned.is_none();
    let is_cut = best.split.delimiter_bytes().iter().any(stands);
    let mut absent = DELIMITERS.into_iter().chain([0x1f]).filter(|delimiter| !stands(delimiter));
    absent.next().filter(|_| one_column && is_cut)
}

impl Attempt<'_> {
    /// Whether all records have two fields, of which the second is a number in all but the first. Behind keys, `=` and a colon need no names above.
    fn names_numbers(&self) -> bool {
        let second =
            |record: &Vec<Field<'_>>| record.len() == 2 && has_form(record[1].text.trim_ascii());
        let (delimiter, keys) = (self.split.delimiter, || {
            let first = self.records.records.iter().filter_map(|record| record.first());
            first.map(|field| field.text.trim_ascii())
        });
        // Behind hosts and paths a colon is of the value.
        let is_key = |key: &[u8]| {
            let is_host = delimiter == b':' && key.iter().any(|byte| b"./@-".contains(byte));
            !key.is_empty() && !has_form(key) && !is_host
        };
        let assigns = matches!(delimiter, b'=' | b':') && keys().all(is_key);
        let (least, least_assigned) = match delimiter {
            b' ' => (NAMED_BY_SPACE_MIN, usize::MAX),
            b'=' => (NAMED_MIN, NAMED_MIN - 1),
            _ => (NAMED_MIN, NAMED_MIN),
        };
        let is_number =
            |record: &Vec<Field<'_>>| second(record) && !record[1].text.starts_with(b" ");
        self.records.records.split_first().is_some_and(|(names, rows)| {
            names.len() == 2
                && (!second(names) && rows.len() >= least
                    || assigns && rows.len() >= least_assigned)
                && rows.iter().all(is_number)
        })
    }

    /// Fields that have the form of a number, a date or a truth value.
    fn fields_with_form(&self) -> usize {
        self.records.records.iter().flatten().filter(|f| has_form(f.text.trim_ascii())).count()
    }

    /// Whether it splits nearly all records alike, with the first among them, which may be names.
    fn is_usual(&self) -> bool {
        let records = &self.records.records;
        let usual = usual_field_count(records);
        let is_first = |first: &Vec<Field<'_>>| {
            // Names may end with one delimiter more.
            let named = match first.split_last() {
                Some((last, names)) if last.text.is_empty() => Some(names.len()),
                _ => None,
            };
            usual == Some(first.len()) || usual == named
        };
        share_of_usual(records, 2) >= SURE_SHARE && records.first().is_some_and(is_first)
    }

    fn fields(&self) -> usize {
        usual_field_count(&self.records.records).unwrap_or(0)
    }

    /// Whether most records, up to the last, have as many fields: a table below lines of another form.
    fn ends_alike(&self) -> bool {
        let records = &self.records.records;
        let fields = self.fields();
        let alike = records.iter().rev().take_while(|record| record.len() == fields).count();
        fields >= UNUSUAL_FIELDS_MIN && alike > UNUSUAL_FIELDS_MIN && alike * 2 > records.len()
    }

    /// Records that have not as many fields as most.
    fn others(&self) -> usize {
        let fields = self.fields();
        self.records.records.iter().filter(|record| record.len() != fields).count()
    }

    /// Whether a blank stands behind each delimiter.
    fn cuts_before_blanks(&self) -> bool {
        let mut cut =
            self.records.records.iter().flat_map(|record| record.iter().skip(1)).peekable();
        cut.peek().is_some() && cut.all(|field| !field.quoted && field.text.starts_with(b" "))
    }

    /// Whether fields that are not quoted begin or end with a quote.
    fn leaves_strays(&self) -> bool {
        let stray = |field: &Field<'_>| {
            !field.quoted && (field.text.first() == Some(&b'"') || field.text.last() == Some(&b'"'))
        };
        let records = &self.records.records;
        let strays = records.iter().filter(|record| record.iter().any(stray)).count();
        strays > 0 && (self.records.quoted == 0 || strays * 10 > records.len())
            || self.records.faults > self.records.quoted
    }

    /// Whether the quotes of this way close, and the other leaves them astray.
    fn closes_where_others_stray(&self, other: &Attempt<'_>) -> bool {
        self.encloses_all()
            && !self.leaves_strays()
            && share_of_usual(&self.records.records, 2) >= CLOSED_SHARE
            && other.leaves_strays()
    }

    /// Whether blanks split nearly all records alike, into more than two words.
    fn is_table_of_blanks(&self) -> bool {
        let records = &self.records.records;
        // The first may be names.
        let typed = self.fields_with_form() + 1 >= records.len();
        share_of_usual(records, 2) >= SURE_SHARE
            && records.len() > 1
            && (self.fields() >= UNUSUAL_FIELDS_MIN || typed)
            && self.score > ONE_COLUMN_SCORE
    }

    /// How well a way splits that is compared with others of blanks: as many alike, the first among them.
    fn rank_of_blanks(&self) -> f64 {
        let records = &self.records.records;
        let share = share_of_usual(records, 2);
        let first = records.first().map(Vec::len) == usual_field_count(records);
        let empty = records.iter().flatten().filter(|field| field.text.is_empty()).count();
        let all: usize = records.iter().map(Vec::len).sum();
        let filled = 1.0 - empty as f64 / all.max(1) as f64;
        share
            * share
            * filled
            * (1.0 + (self.fields().max(1) as f64).ln())
            * if first { 1.6 } else { 1.0 }
    }

    /// Whether each field with a comma is one number, whose fraction it sets apart, and no column is empty.
    fn holds_numbers_with_commas(&self) -> bool {
        let records = &self.records.records;
        let usual = records.iter().filter(|record| record.len() == self.fields());
        let mut filled = vec![false; self.fields()];
        let (mut numbers, mut others) = (0, 0);
        for (column, field) in usual.flat_map(|record| record.iter().enumerate()) {
            filled[column] |= !field.text.is_empty();
            if field.text.contains(&b',') {
                let plain: Vec<u8> =
                    field.text.iter().map(|b| if *b == b',' { b'.' } else { *b }).collect();
                let is_number = parse_value(plain.trim_ascii(), DataType::Double).is_ok();
                *if is_number { &mut numbers } else { &mut others } += 1;
            }
        }
        numbers > 0 && others == 0 && filled.iter().all(|filled| *filled)
    }

    /// Whether there are quotes, and none encloses a field.
    fn leaves_quotes(&self, head: &[u8]) -> bool {
        self.records.quoted == 0 && memchr::memchr(b'"', head).is_some()
    }

    /// Whether there are quotes, and all enclose fields.
    fn encloses_all(&self) -> bool {
        self.records.quoted > 0 && self.records.faults == 0
    }

    /// Whether all quotes enclose fields, and are none of the usual ones.
    fn has_odd_quotes(&self) -> bool {
        self.encloses_all() && self.split.quote.is_some_and(|quote| ODD_QUOTES.contains(&quote))
    }

    /// The delimiter twice, if it stands so between all fields: every other field is empty, or one sign.
    fn doubled(&self) -> Option<Vec<u8>> {
        let records = &self.records.records;
        let delimiter = self.split.delimiter_bytes();
        let fields = usual_field_count(records)?;
        let usual = || records.iter().filter(|record| record.len() == fields);
        let inner = usual().next()?.get(1)?.text.to_vec();
        let is_inner = |field: &Field<'_>| *field.text == *inner && !field.quoted;
        let every_other = |record: &Vec<Field<'_>>| {
            record.iter().skip(1).step_by(2).all(is_inner)
                && !record.iter().step_by(2).all(|field| field.text.is_empty() || is_inner(field))
        };
        let all_quoted = |record: &Vec<Field<'_>>| record.iter().step_by(2).all(|f| f.quoted);
        // In the only record it may be a value that stands once, and an empty one several times where others than bars are seldom doubled.
        let enough = match inner.as_slice() {
            [] => {
                usual().count() > 1 || fields > 3 && (delimiter == b"|" || usual().all(all_quoted))
            }
            [sign] => INNER_SIGNS.contains(sign) && (usual().count() > 1 || fields > 3),
            _ => false,
        };
        // Two blanks are columns that are laid out with blanks, where a wide field leaves two.
        let doubled = delimiter.len() == 1
            && delimiter != b" "
            && fields >= 3
            && fields % 2 == 1
            && enough
            && usual().all(every_other);
        doubled.then(|| [delimiter, &inner, delimiter].concat())
    }
}

/// Whether each comma stands between two digits.
fn commas_are_of_numbers(head: &[u8]) -> bool {
    let digit = |at: Option<usize>| at.and_then(|at| head.get(at)).is_some_and(u8::is_ascii_digit);
    memchr::memchr_iter(b',', head).all(|at| digit(at.checked_sub(1)) && digit(Some(at + 1)))
}

/// Share of records with the usual number of fields, or 0 if that is under `fields_min`.
fn share_of_usual(records: &[Vec<Field<'_>>], fields_min: usize) -> f64 {
    match usual_field_count(records) {
        Some(fields) if fields >= fields_min => {
            let same = records.iter().filter(|record| record.len() == fields).count();
            same as f64 / records.len() as f64
        }
        _ => 0.0,
    }
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

/// The quotes that enclose fields if they are cut as `base` says.
fn choose_quote<'a>(
    head: &'a [u8],
    end: SampleEnd,
    base: Split,
    given: &GivenDialect,
) -> (Split, Records<'a>) {
    let given_escape = given.escape.flatten();
    let base = if base.aligned.is_some() { Split { delimiter: u8::MAX, ..base } } else { base };
    let attempt = |quote: Option<u8>, escape: Option<u8>| {
        let split = Split { quote, escape, ..base };
        (split, split_records(head, end, split, usize::MAX))
    };
    if let Some(quote) = given.quote {
        return attempt(quote, given_escape);
    }
    let bars = base.aligned.is_some_and(Aligned::has_bars);
    if bars || base.delimiter_bytes().contains(&b'"') {
        return attempt(None, given_escape);
    }
    let double = attempt(Some(b'"'), given_escape);
    let may_be_single = double.1.quoted == 0 && !base.delimiter_bytes().contains(&b'\'');
    if may_be_single && memchr::memchr(b'\'', head).is_some() {
        let mut single = attempt(Some(b'\''), given_escape);
        if single.1.faults > 0
            && given.escape.is_none()
            && memchr::memmem::find(head, b"\\'").is_some()
        {
            let escaped = attempt(Some(b'\''), Some(b'\\'));
            if escaped.1.faults == 0 {
                single = escaped;
            }
        }
        let many = single.1.quoted + single.1.faults >= single.1.records.len().max(1);
        let better = share_of_usual(&single.1.records, 2) > share_of_usual(&double.1.records, 2);
        // A few that enclose delimiters, and make the records agree, are quotes too.
        let few = single.1.faults == 0 && better && single.1.quoted > 0;
        if many && (single.1.faults == 0 || better) || few {
            return single;
        }
    }
    if given.escape.is_none() && memchr::memmem::find(head, b"\\\"").is_some() {
        let escaped = attempt(Some(b'"'), Some(b'\\'));
        // A quote inside that a delimiter follows ends the field, and no fault tells.
        let alike = |way: &(Split, Records<'_>)| share_of_usual(&way.1.records, 2);
        if escaped.1.faults == 0 && (double.1.faults > 0 || alike(&escaped) > alike(&double)) {
            return escaped;
        }
    }
    if double.1.faults > 0 {
        // Quotes that enclose nothing, as in inches, are text.
        return if double.1.faults > double.1.quoted {
            attempt(None, given_escape)
        } else {
            double
        };
    }
    if double.1.quoted == 0 && base.aligned.is_none() {
        for quote in ODD_QUOTES.into_iter().filter(|quote| !base.delimiter_bytes().contains(quote))
        {
            if memchr::memchr(quote, head).is_none() {
                continue;
            }
            let odd = attempt(Some(quote), given_escape);
            let names = odd.1.records.first().is_some_and(|first| first.iter().all(|f| f.quoted));
            let many = odd.1.quoted > 1 && (names || odd.1.quoted * 2 >= odd.1.records.len());
            let delimiter = base.delimiter_bytes();
            let whole = |field: &Field<'_>| {
                let inside = field.text.starts_with(delimiter) || field.text.ends_with(delimiter);
                !field.quoted || !inside
            };
            let sound = odd.1.faults == 0 && odd.1.records.iter().flatten().all(whole);
            if many && sound && share_of_usual(&odd.1.records, 2) >= SURE_SHARE {
                return odd;
            }
        }
    }
    double
}

/// How well a delimiter splits the records: by how many agree, and into how many fields.
fn score(records: &Records<'_>, schema: Option<&Schema>) -> f64 {
    let Some(fields) = usual_field_count(&records.records) else {
        return 0.0;
    };
    let count = records.records.len() as f64;
    let same = records.records.iter().filter(|r| r.len() == fields).count() as f64 / count;
    let fits = schema.is_some_and(|schema| {
        fields == schema.len()
            || (fields == schema.len() + 1
                && detect_trailing(&records.records, fields, b'|', Some(schema))
                    == Trailing::Delimiter)
    });
    let sound = 1.0 - (records.faults as f64 / count).min(1.0) / 2.0;
    let agreement = match fields {
        1 => ONE_COLUMN_SCORE,
        _ => same * same * (1.0 + (fields as f64).ln()),
    };
    // With the number of columns known, nothing else counts for as much.
    agreement * sound + if fits { 100.0 * same } else { 0.0 }
}

/// The number of fields that most records have; of two, the larger one: lines around a table have fewer.
pub(super) fn usual_field_count(records: &[Vec<Field<'_>>]) -> Option<usize> {
    let mut counts: Vec<(usize, usize)> = Vec::new();
    for record in records {
        match counts.iter_mut().find(|(fields, _)| *fields == record.len()) {
            Some((_, count)) => *count += 1,
            None => counts.push((record.len(), 1)),
        }
    }
    let most = counts.iter().map(|(_, count)| *count).max()?;
    counts.iter().filter(|(_, count)| *count == most).map(|(fields, _)| *fields).max()
}
