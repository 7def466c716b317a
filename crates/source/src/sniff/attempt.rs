//! A way to split a text, and what comes of it: how many records agree, and what quotes and delimiters it leaves in the fields.

use coload_ddl::Schema;
use coload_types::{DataType, parse_value};

use super::quotes::ODD_QUOTES;
use super::shape::detect_trailing;
use crate::infer::has_form;
use crate::rules::Trailing;
use crate::sample::{Field, Records, Split};

/// What a text that no delimiter splits scores; two columns in nearly half of the records beat it.
const ONE_COLUMN_SCORE: f64 = 0.35;
/// Share of records that agree, from which a usual delimiter needs no rival.
pub(super) const SURE_SHARE: f64 = 0.9;
/// Unusual delimiters split each record into this many fields at least: two words are no table.
pub(super) const UNUSUAL_FIELDS_MIN: usize = 3;
/// Rows of a name and a number, at least, that a space may set apart, and other signs.
const NAMED_BY_SPACE_MIN: usize = 3;
const NAMED_MIN: usize = 2;
/// Signs that two of another delimiter may enclose, to be one with them: `|~|`.
const INNER_SIGNS: &[u8] = b"~^|@#%&=:";
/// Share of records that agree where quotes close, so that ways to split which leave quotes astray are no rivals.
const CLOSED_SHARE: f64 = 0.5;

/// A way to split, and what comes of it.
pub(super) struct Attempt<'a> {
    pub(super) split: Split,
    pub(super) records: Records<'a>,
    pub(super) score: f64,
}

impl Attempt<'_> {
    /// Whether all records have two fields, of which the second is a number in all but the first. Behind keys, `=` and a colon need no names above.
    pub(super) fn names_numbers(&self) -> bool {
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
    pub(super) fn fields_with_form(&self) -> usize {
        self.records.records.iter().flatten().filter(|f| has_form(f.text.trim_ascii())).count()
    }

    /// Whether it splits nearly all records alike, with the first among them, which may be names.
    pub(super) fn is_usual(&self) -> bool {
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

    pub(super) fn fields(&self) -> usize {
        usual_field_count(&self.records.records).unwrap_or(0)
    }

    /// Whether most records, up to the last, have as many fields: a table below lines of another form.
    pub(super) fn ends_alike(&self) -> bool {
        let records = &self.records.records;
        let fields = self.fields();
        let alike = records.iter().rev().take_while(|record| record.len() == fields).count();
        fields >= UNUSUAL_FIELDS_MIN && alike > UNUSUAL_FIELDS_MIN && alike * 2 > records.len()
    }

    /// Records that have not as many fields as most.
    pub(super) fn others(&self) -> usize {
        let fields = self.fields();
        self.records.records.iter().filter(|record| record.len() != fields).count()
    }

    /// Whether a blank stands behind each delimiter.
    pub(super) fn cuts_before_blanks(&self) -> bool {
        let mut cut =
            self.records.records.iter().flat_map(|record| record.iter().skip(1)).peekable();
        cut.peek().is_some() && cut.all(|field| !field.quoted && field.text.starts_with(b" "))
    }

    /// Whether fields that are not quoted begin or end with a quote.
    pub(super) fn leaves_strays(&self) -> bool {
        let stray = |field: &Field<'_>| {
            !field.quoted && (field.text.first() == Some(&b'"') || field.text.last() == Some(&b'"'))
        };
        let records = &self.records.records;
        let strays = records.iter().filter(|record| record.iter().any(stray)).count();
        strays > 0 && (self.records.quoted == 0 || strays * 10 > records.len())
            || self.records.faults > self.records.quoted
    }

    /// Whether the quotes of this way close, and the other leaves them astray.
    pub(super) fn closes_where_others_stray(&self, other: &Attempt<'_>) -> bool {
        self.encloses_all()
            && !self.leaves_strays()
            && share_of_usual(&self.records.records, 2) >= CLOSED_SHARE
            && other.leaves_strays()
    }

    /// Whether blanks split nearly all records alike, into more than two words.
    pub(super) fn is_table_of_blanks(&self) -> bool {
        let records = &self.records.records;
        // The first may be names.
        let typed = self.fields_with_form() + 1 >= records.len();
        share_of_usual(records, 2) >= SURE_SHARE
            && records.len() > 1
            && (self.fields() >= UNUSUAL_FIELDS_MIN || typed)
            && self.score > ONE_COLUMN_SCORE
    }

    /// How well a way splits that is compared with others of blanks: as many alike, the first among them.
    pub(super) fn rank_of_blanks(&self) -> f64 {
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
    pub(super) fn holds_numbers_with_commas(&self) -> bool {
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
    pub(super) fn leaves_quotes(&self, head: &[u8]) -> bool {
        self.records.quoted == 0 && memchr::memchr(b'"', head).is_some()
    }

    /// Whether there are quotes, and all enclose fields.
    pub(super) fn encloses_all(&self) -> bool {
        self.records.quoted > 0 && self.records.faults == 0
    }

    /// Whether all quotes enclose fields, and are none of the usual ones.
    pub(super) fn has_odd_quotes(&self) -> bool {
        self.encloses_all() && self.split.quote.is_some_and(|quote| ODD_QUOTES.contains(&quote))
    }

    /// The delimiter twice, if it stands so between all fields: every other field is empty, or one sign.
    pub(super) fn doubled(&self) -> Option<Vec<u8>> {
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

/// Share of records with the usual number of fields, or 0 if that is under `fields_min`.
pub(super) fn share_of_usual(records: &[Vec<Field<'_>>], fields_min: usize) -> f64 {
    match usual_field_count(records) {
        Some(fields) if fields >= fields_min => {
            let same = records.iter().filter(|record| record.len() == fields).count();
            same as f64 / records.len() as f64
        }
        _ => 0.0,
    }
}

/// How well a delimiter splits the records: by how many agree, and into how many fields.
pub(super) fn score(records: &Records<'_>, schema: Option<&Schema>) -> f64 {
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
