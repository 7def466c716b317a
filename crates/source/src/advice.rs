//! What helps with a record that could not become a row: flags that were tried on it, and on the head of its text.
//!
//! A cure is named only if the record becomes rows by it, and no fewer records of the head do. So a delimiter that cuts one
//! record better and all others worse is not named, and a format of dates is the one that the value has.

use coload_format::{Column, DataType, parse_value};

use crate::chunk::{BadRecord, RejectedRecord};
use crate::dialect::{Dialect, Escapes, InvalidBytes, Quotes, Ragged, describe_byte};
use crate::field::FieldError;
use crate::formats::{DateFormat, TimestampFormat};
use crate::infer::is_null;
use crate::sample::{Field, SampleEnd, split_as_loaded};
use crate::sniff::{DATES, NUMBERS};

/// Bytes of the head that cures are tried on.
pub const HEAD_BYTES: usize = 64 << 10;
/// What always helps.
pub const SET_ASIDE: &str = "--max-rejects N to set such records aside";
/// Longest record that cures are tried on; longer ones are hardly ever meant.
const RECORD_BYTES_MAX: usize = 64 << 10;
/// Cures that a message names.
const CURES_MAX: usize = 3;
/// Longest value that may stand for NULL.
const NULL_BYTES_MAX: usize = 24;
/// Delimiters that are tried.
const DELIMITERS: [u8; 9] = *b",;\t|:~^ \x01";
/// What may begin a comment.
const COMMENTS: [u8; 4] = *b"#%;!";
/// Timestamps that are tried, besides those of SQL and those whose dates have a form.
const TIMESTAMPS: [&str; 4] =
    ["%m/%d/%Y %I:%M:%S %p", "%m/%d/%Y %I:%M %p", "%Y%m%d%H%M%S", "%d/%b/%Y:%H:%M:%S %z"];

/// How a text is read, and the beginning of it.
#[derive(Debug, Clone)]
pub struct Trial {
    /// How it is read.
    pub dialect: Dialect,
    /// The columns that the fields are, in the order of the fields.
    pub columns: Vec<Column>,
    /// The head of the text: what stands before the first record, and records.
    pub heading: Vec<u8>,
    /// Records, the last of which may be cut.
    pub head: Vec<u8>,
}

/// How a text may be read otherwise: a flag, and what it does.
struct Cure {
    flag: String,
    dialect: Dialect,
    columns: Option<Vec<Column>>,
}

impl Trial {
    /// The flags that help with a record, to follow "try"; always one at least.
    pub fn advice(&self, record: &RejectedRecord) -> String {
        let mut told: Vec<String> = match record.raw.len() <= RECORD_BYTES_MAX {
            true => self.helpful(record),
            false => Vec::new(),
        };
        told.push(SET_ASIDE.to_owned());
        told.join("; ")
    }

    fn helpful(&self, record: &RejectedRecord) -> Vec<String> {
        let before = fitting(&self.head, SampleEnd::Cut, &self.dialect, &self.columns).0;
        let helps = |cure: &Cure| {
            let columns = cure.columns.as_deref().unwrap_or(&self.columns);
            let (fit, all) = fitting(&record.raw, SampleEnd::Whole, &cure.dialect, columns);
            fit == all
                && (all > 0 || cure.dialect.comment != self.dialect.comment)
                && fitting(&self.head, SampleEnd::Cut, &cure.dialect, columns).0 >= before
        };
        let mut flags: Vec<String> = match self.names_fit(record) {
            true => vec!["--by-name, as the names are those of columns".to_owned()],
            false => Vec::new(),
        };
        let mut has_type = false;
        let mut first_type = |cure: &Cure| {
            // The narrowest type that helps is enough.
            let again = cure.columns.is_some() && has_type;
            has_type |= cure.columns.is_some();
            !again
        };
        let cures = self.cures(record).into_iter().filter(helps).filter(|cure| first_type(cure));
        flags.extend(cures.map(|cure| cure.flag).take(CURES_MAX - flags.len()));
        flags
    }

    /// Whether the header names some of the columns, as many as the record has fields.
    fn names_fit(&self, record: &RejectedRecord) -> bool {
        let BadRecord::FieldCount { found } = record.reason else { return false };
        let rules = self.dialect.record_rules(found);
        let records = split_as_loaded(&self.heading, SampleEnd::Whole, &rules).records;
        let is_name = |field: &Field<'_>| {
            let name = String::from_utf8_lossy(&field.text).trim().to_lowercase();
            self.columns.iter().any(|column| column.name.to_lowercase() == name)
        };
        let names = records.last().filter(|_| self.dialect.header_records() == 1);
        names.is_some_and(|names| names.len() == found && names.iter().all(is_name))
    }

    /// What may help, the likelier first.
    fn cures(&self, record: &RejectedRecord) -> Vec<Cure> {
        let mut cures = Vec::new();
        let mut otherwise = |flag: String, change: &dyn Fn(&mut Dialect)| {
            let mut dialect = self.dialect.clone();
            change(&mut dialect);
            if dialect != self.dialect {
                cures.push(Cure { flag, dialect, columns: None });
            }
        };
        match &record.reason {
            BadRecord::FieldCount { found } => {
                for delimiter in DELIMITERS {
                    let flag = format!("--delimiter {}", describe_byte(delimiter));
                    otherwise(flag, &|dialect| {
                        dialect.delimiter = delimiter;
                        (dialect.long_delimiter, dialect.aligned) = (None, None);
                    });
                }
                cure_quotes(&record.raw, &mut otherwise);
                for comment in COMMENTS.into_iter().filter(|c| record.raw.first() == Some(c)) {
                    let flag = format!("--comment {}", describe_byte(comment));
                    otherwise(flag, &|dialect| dialect.comment = Some(comment));
                }
                let (flag, ragged) = match *found < self.columns.len() {
                    true => ("--ragged pad to fill what such records lack", Ragged::Pad),
                    false => {
                        ("--ragged truncate to leave out the fields too many", Ragged::Truncate)
                    }
                };
                otherwise(flag.to_owned(), &|dialect| dialect.policies.ragged = ragged);
            }
            BadRecord::OpenQuote => cure_quotes(&record.raw, &mut otherwise),
            BadRecord::Field { error: FieldError::Quote | FieldError::Escape, .. } => {
                cure_quotes(&record.raw, &mut otherwise);
                otherwise("--escapes quoted".to_owned(), &|d| d.escapes = Escapes::Quoted);
            }
            BadRecord::Field { column, .. } => {
                for (decimal, thousands) in NUMBERS {
                    let mut flag = String::new();
                    if decimal != b'.' {
                        flag = format!("--decimal-separator {} ", char::from(decimal));
                    }
                    if let Some(thousands) = thousands {
                        flag += &format!("--thousands-separator {}", describe_byte(thousands));
                    }
                    otherwise(flag.trim_end().to_owned(), &|dialect| {
                        (dialect.formats.decimal, dialect.formats.thousands) = (decimal, thousands);
                    });
                }
                for form in DATES {
                    let Some(date) = DateFormat::parse(form).ok() else { continue };
                    otherwise(format!("--date-format '{form}'"), &|d| d.formats.date = Some(date));
                }
                for form in TIMESTAMPS {
                    let Some(stamp) = TimestampFormat::parse(form).ok() else { continue };
                    otherwise(format!("--timestamp-format '{form}'"), &|dialect| {
                        dialect.formats.timestamp = Some(stamp);
                    });
                }
                let value = record.value.trim_ascii();
                let shown = std::str::from_utf8(value).ok().filter(|text| {
                    text.len() <= NULL_BYTES_MAX
                        && !text.contains('\'')
                        && !text.contains(char::is_control)
                });
                if let Some(shown) = shown.filter(|_| !has_digit(value)) {
                    otherwise(format!("--null '{shown}' if it stands for NULL"), &|dialect| {
                        dialect.nulls.push(value.to_vec());
                    });
                }
                otherwise("--invalid-bytes replace".to_owned(), &|dialect| {
                    dialect.policies.invalid_bytes = InvalidBytes::Replace;
                });
                cures.extend(self.wider(*column));
            }
            BadRecord::Told(_) => {}
        }
        cures
    }

    /// Types of a column that hold more, the narrowest first.
    fn wider(&self, column: usize) -> Vec<Cure> {
        use DataType::{BigInt, Decimal, Double, Timestamp, TimestampTz, Varchar};
        let Some(own) = self.columns.get(column) else { return Vec::new() };
        let scales = [2, 4, 6, 9, 12, 18].map(|scale| Decimal { precision: 38, scale });
        let numbers = [BigInt].into_iter().chain(scales).chain([Double]);
        let types: Vec<DataType> = match own.data_type {
            number if number.is_number() => numbers.chain([Varchar(None)]).collect(),
            DataType::Date => vec![Timestamp, TimestampTz, Varchar(None)],
            Timestamp => vec![TimestampTz, Varchar(None)],
            Varchar(None) => Vec::new(),
            _ => vec![Varchar(None)],
        };
        let with = |data_type: DataType, nullable: bool| {
            let mut columns = self.columns.clone();
            columns[column] = Column { data_type, nullable, ..own.clone() };
            columns
        };
        let nullable = (!own.nullable).then(|| Cure {
            flag: format!("column {} without NOT NULL", own.name),
            dialect: self.dialect.clone(),
            columns: Some(with(own.data_type, true)),
        });
        let wider = types.into_iter().filter(|other| *other != own.data_type).map(|other| Cure {
            flag: format!("type {other} for column {}", own.name),
            dialect: self.dialect.clone(),
            columns: Some(with(other, own.nullable)),
        });
        nullable.into_iter().chain(wider).collect()
    }
}

/// Other quotes and escapes.
fn cure_quotes(raw: &[u8], otherwise: &mut impl FnMut(String, &dyn Fn(&mut Dialect))) {
    otherwise("--quote none".to_owned(), &|dialect| dialect.quote = None);
    otherwise("--quotes lenient".to_owned(), &|d| d.policies.quotes = Quotes::Lenient);
    for (byte, flag) in [(b'\'', "--quote \"'\""), (b'"', "--quote '\"'")] {
        if raw.contains(&byte) {
            otherwise(flag.to_owned(), &|dialect| dialect.quote = Some(byte));
        }
    }
    if raw.contains(&b'\\') {
        otherwise("--escape '\\'".to_owned(), &|dialect| dialect.escape = Some(b'\\'));
    }
}

fn has_digit(value: &[u8]) -> bool {
    value.iter().any(u8::is_ascii_digit)
}

/// How many records become rows, and how many there are.
fn fitting(text: &[u8], end: SampleEnd, dialect: &Dialect, columns: &[Column]) -> (usize, usize) {
    let rules = dialect.record_rules(columns.len());
    let records = split_as_loaded(text, end, &rules);
    // A quote that is open at the end leaves bytes over, which are no row.
    let fit = records.records.iter().filter(|record| fits(record, dialect, columns)).count();
    let strict = dialect.policies.quotes == Quotes::Strict && records.faults > 0;
    (if strict { fit.saturating_sub(records.faults) } else { fit }, records.records.len())
}

fn fits(record: &[Field<'_>], dialect: &Dialect, columns: &[Column]) -> bool {
    let width = record.len().cmp(&columns.len());
    let rest = &record[record.len().min(columns.len())..];
    let counted = match dialect.policies.ragged {
        Ragged::Reject => width.is_eq(),
        Ragged::Pad => rest.iter().all(|field| field.text.is_empty()),
        Ragged::Truncate => width.is_ge(),
    };
    let lacking = columns.get(record.len()..).unwrap_or_default();
    counted
        && lacking.iter().all(|column| column.nullable)
        && record.iter().zip(columns).all(|(field, column)| holds(field, dialect, column))
}

fn holds(field: &Field<'_>, dialect: &Dialect, column: &Column) -> bool {
    let rules = dialect.field_rules().of(column.data_type);
    if is_null(field, &rules) {
        return column.nullable;
    }
    let text = match dialect.policies.invalid_bytes {
        InvalidBytes::Replace => String::from_utf8_lossy(&field.text).into_owned().into_bytes(),
        InvalidBytes::Reject => field.text.to_vec(),
    };
    let plain = rules.formats.rewrite(&text, column.data_type);
    plain.is_some_and(|plain| parse_value(&plain, column.data_type).is_ok())
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]
    use coload_format::Rule;

    use super::*;

    const HEAD: &str = "1,2.50,2024-05-01,a\n2,3.50,2024-05-02,b\n3,4.50,2024-05-03,c\n";

    fn advice(head: &str, raw: &str, reason: BadRecord, value: &str) -> String {
        let number = Column::new("price", DataType::Decimal { precision: 8, scale: 2 });
        let columns = vec![
            Column { nullable: false, ..Column::new("id", DataType::Integer) },
            number,
            Column::new("day", DataType::Date),
            Column::new("note", DataType::Varchar(Some(9))),
        ];
        let trial = Trial {
            dialect: Dialect { header: crate::Header::Present, ..Dialect::default() },
            columns,
            heading: b"id,day,price\n".to_vec(),
            head: head.into(),
        };
        let record =
            RejectedRecord { reason, line: 0, offset: 0, value: value.into(), raw: raw.into() };
        trial.advice(&record).trim_end_matches(SET_ASIDE).trim_end_matches("; ").to_owned()
    }

    fn rule(column: usize, rule: Rule) -> BadRecord {
        BadRecord::Field { column, error: FieldError::Rule(rule) }
    }

    #[test]
    fn what_helps_is_named_and_nothing_else() {
        let count = |found| BadRecord::FieldCount { found };
        for (raw, reason, value, expected) in [
            // The names say which fields there are.
            ("4,2024-05-01,7", count(3), "", "--by-name, as the names are those of columns"),
            // Another delimiter would make rows of no other record.
            ("4;2.50;2024-05-01;a", count(1), "", ""),
            (
                "4,2.50,2024-05-01,a,b",
                count(5),
                "",
                "--ragged truncate to leave out the fields too many",
            ),
            ("# end", count(1), "", "--comment '#'"),
            (
                "4,2.50,01.05.2024,a",
                rule(2, Rule::NotADate),
                "01.05.2024",
                "type VARCHAR for column day",
            ),
            (
                "4,n/a,2024-05-01,a",
                rule(1, Rule::NotANumber),
                "n/a",
                "--null 'n/a' if it stands for NULL; type VARCHAR for column price",
            ),
            (
                "4,2.505,2024-05-01,a",
                rule(1, Rule::TooManyFractionDigits),
                "2.505",
                "type DECIMAL(38,4) for column price",
            ),
            (
                ",2.50,2024-05-01,a",
                BadRecord::Field { column: 0, error: FieldError::Null },
                "",
                "column id without NOT NULL",
            ),
            ("4,2.50,2024-05-01,\"a", BadRecord::OpenQuote, "", "--quote none; --quotes lenient"),
            // Nothing does.
            ("4,x,y", rule(1, Rule::NotANumber), "x", ""),
        ] {
            assert_eq!(advice(HEAD, raw, reason, value), expected, "{raw}");
        }
    }

    #[test]
    fn a_form_that_the_head_has_too_is_named() {
        let head = "1,2.50,01.05.2024,a\n2,3.50,02.05.2024,b\n";
        let reason = rule(2, Rule::NotADate);
        assert_eq!(
            advice(head, "3,4.50,31.05.2024,c", reason, "31.05.2024"),
            "--date-format '%d.%m.%Y'; type VARCHAR for column day"
        );
        let head = "1;2.50;2024-05-01;a\n2;3.50;2024-05-02;b\n";
        let reason = BadRecord::FieldCount { found: 1 };
        assert_eq!(advice(head, "1;2.50;2024-05-01;a", reason, ""), "--delimiter ';'");
    }
}
