//! Records that could not become rows, as told to the user.

use std::fmt;
use std::io::{self, Write};

use coload_types::{DataType, Error, Place};

use crate::chunk::{BadRecord, RejectedRecord, RejectedValue, told_bytes};
use crate::field::FieldError;

/// Characters of a value that a message shows.
const VALUE_CHARACTERS_MAX: usize = 64;
/// The first line of a file of rejects, but what [`RejectColumns`] adds.
const HEADER: &str = "file,line,byte,column,value,reason,raw";

/// A part of a file that has rows of its own; its number counts from 1.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum FilePart {
    /// A row group of Parquet.
    RowGroup(u32),
    /// A record batch of Arrow.
    RecordBatch(u32),
}

impl fmt::Display for FilePart {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            FilePart::RowGroup(number) => write!(f, "row group {number}"),
            FilePart::RecordBatch(number) => write!(f, "record batch {number}"),
        }
    }
}

/// A record that could not become a row.
#[derive(Debug, Clone)]
pub struct Reject {
    /// Where the record starts, and the field at fault.
    pub place: Place,
    /// The part of the file that has the record, if it has parts: the one that starts at the byte of the place.
    pub part: Option<FilePart>,
    /// The column at fault; none when it is the record as a whole.
    pub column: Option<String>,
    /// The field at fault, as it stands in the input without its quotes.
    pub value: RejectedValue,
    /// What is wrong, to follow the value: `is not DATE: no such date`.
    pub reason: String,
    /// What helps: a flag of `coload load`.
    pub advice: String,
    /// The record without its newline.
    pub raw: Vec<u8>,
}

/// Wherever their values stand.
impl PartialEq for Reject {
    fn eq(&self, other: &Self) -> bool {
        let Reject { place, part, column, reason, advice, raw, .. } = self;
        (place, part, column, reason, advice, raw, self.value())
            == (
                &other.place,
                &other.part,
                &other.column,
                &other.reason,
                &other.advice,
                &other.raw,
                other.value(),
            )
    }
}

impl Eq for Reject {}

impl Reject {
    /// The field at fault.
    pub fn value(&self) -> &[u8] {
        self.value.of(&self.raw)
    }

    /// Tells a rejected record with the name of its input, the 1-based line it starts on, and the
    /// table's columns.
    pub fn new(
        record: RejectedRecord,
        file: &str,
        line: u64,
        columns: &[(String, DataType)],
    ) -> Self {
        let (field, reason, mut advice) = explain(&record.reason, columns);
        if let Some(better) = advice_of_value(&record, columns) {
            advice = better.to_owned();
        }
        let told = match &record.reason {
            BadRecord::Told(told) => told.column.clone(),
            _ => None,
        };
        Reject {
            place: Place { file: file.to_owned(), line, byte: record.offset, field },
            part: None,
            column: told.or_else(|| (field > 0).then(|| columns[field as usize - 1].0.clone())),
            value: record.value,
            reason,
            advice,
            raw: record.raw,
        }
    }

    /// The error that ends a strict load.
    ///
    /// ```text
    ///   orders.csv:1834:7: "12,50" is not DECIMAL(15,2): not a number (column o_totalprice; try ...)
    /// ```
    pub fn to_error(&self) -> Error {
        Error::Input { place: Box::new(self.place.clone()), text: self.text() }
    }

    /// What is wrong, without the place; the part of the file, if it has parts.
    pub fn text(&self) -> String {
        let part = self.part.map_or_else(String::new, |part| format!("{part}: "));
        match &self.column {
            Some(column) => format!(
                "{part}\"{}\" {} (column {column}; try {})",
                shorten(self.value()),
                self.reason,
                self.advice
            ),
            None => format!("{part}{} (try {})", self.reason, self.advice),
        }
    }
}

/// Signs of amounts and shares.
const AMOUNT_SIGNS: [char; 8] = ['$', '€', '£', '¥', '₹', '₽', '₩', '%'];

/// What helps with a value that is written in another way than its type is by default.
fn advice_of_value(
    record: &RejectedRecord,
    columns: &[(String, DataType)],
) -> Option<&'static str> {
    let BadRecord::Field { column, error: FieldError::Rule(_) } = &record.reason else {
        return None;
    };
    let (value, data_type) = (record.value().trim_ascii(), columns[*column].1);
    let digit = |byte: &u8| byte.is_ascii_digit();
    // No flag reads over a sign of a currency.
    let is_amount = || String::from_utf8_lossy(value).contains(AMOUNT_SIGNS);
    if data_type.is_number() && value.iter().any(digit) && is_amount() {
        return Some("VARCHAR for it in --columns or --types, and replace() and CAST in SQL");
    }
    if data_type.is_number() && value.contains(&b',') && value.iter().any(digit) {
        return Some("--decimal-separator , or --thousands-separator ,");
    }
    let date = matches!(data_type, DataType::Date | DataType::Timestamp | DataType::TimestampTz);
    let separated = value.iter().any(|byte| matches!(byte, b'.' | b'/' | b'-' | b' '));
    (date && separated && value.len() >= 8 && value.iter().filter(|b| digit(b)).count() >= 3)
        .then_some("--date-format such as %d.%m.%Y, or --null TEXT if it stands for NULL")
}

/// The 1-based field at fault or 0, what is wrong, and what helps.
fn explain(reason: &BadRecord, columns: &[(String, DataType)]) -> (u32, String, String) {
    match reason {
        BadRecord::Field { column, error } | BadRecord::Value { column, error } => {
            let (text, mut advice) = error.texts();
            if let BadRecord::Value { .. } = reason {
                advice = error.typed_advice().unwrap_or(advice);
            }
            let data_type = columns[*column].1;
            let reason = match error {
                FieldError::Rule(_) => format!("is not {data_type}: {text}"),
                FieldError::Null => format!("is {text}"),
                FieldError::Quote | FieldError::Escape => text.to_owned(),
            };
            (*column as u32 + 1, reason, advice.to_owned())
        }
        BadRecord::FieldCount { found } => {
            let reason = format!(
                "the record has {found} field{} and the table {} column{}",
                if *found == 1 { "" } else { "s" },
                columns.len(),
                if columns.len() == 1 { "" } else { "s" },
            );
            // What would not make a row of this record is not named.
            let mends = match *found < columns.len() {
                true => "--ragged pad to mend such records",
                false => "--ragged truncate to leave out the fields too many",
            };
            let advice = format!(
                "--delimiter, --quote or --columns; --by-name or --set if columns are not in the input; --skip N if a \
                 preamble comes first; {mends}, --max-rejects N to set them aside"
            );
            (0, reason, advice)
        }
        BadRecord::Told(told) => (0, told.reason.clone(), told.advice.clone()),
        BadRecord::OpenQuote => (
            0,
            "a quote is opened in the record and not closed".to_owned(),
            "--quote none or --quotes lenient if quotes are text, or --escape".to_owned(),
        ),
    }
}

/// The value for a message: one line, at most 64 characters, bytes that are not UTF-8 escaped.
pub fn shorten(value: &[u8]) -> String {
    let mut text = String::new();
    let mut characters = 0;
    for chunk in value.utf8_chunks() {
        for character in chunk.valid().chars() {
            if characters == VALUE_CHARACTERS_MAX {
                text.push_str("...");
                return text;
            }
            characters += 1;
            match character {
                '\n' => text.push_str("\\n"),
                '\r' => text.push_str("\\r"),
                '\t' => text.push_str("\\t"),
                c if c.is_control() => text.push_str(&c.escape_unicode().to_string()),
                c => text.push(c),
            }
        }
        for byte in chunk.invalid() {
            if characters == VALUE_CHARACTERS_MAX {
                text.push_str("...");
                return text;
            }
            characters += 1;
            text.push_str(&format!("\\x{byte:02x}"));
        }
    }
    text
}

/// The columns of a file of rejects.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum RejectColumns {
    /// `file,line,byte,column,value,reason,raw`.
    Plain,
    /// The same, and `part` behind them: of inputs that have parts.
    WithPart,
}

/// Writes rejects as CSV.
#[derive(Debug)]
pub struct RejectWriter<W> {
    out: W,
    columns: RejectColumns,
}

impl<W: Write> RejectWriter<W> {
    /// Writes the header.
    ///
    /// # Errors
    /// Those of writing.
    pub fn new(mut out: W, columns: RejectColumns) -> io::Result<Self> {
        out.write_all(HEADER.as_bytes())?;
        out.write_all(match columns {
            RejectColumns::Plain => b"\n",
            RejectColumns::WithPart => b",part\n",
        })?;
        Ok(RejectWriter { out, columns })
    }

    /// Writes one reject. Value and raw record are kept byte by byte, whatever their encoding; of a value over
    /// [`VALUE_BYTES_MAX`](crate::VALUE_BYTES_MAX) bytes those are in the raw record only that come after them.
    ///
    /// # Errors
    /// Those of writing.
    pub fn write(&mut self, reject: &Reject) -> io::Result<()> {
        let column = reject.column.as_deref().unwrap_or("");
        write_field(&mut self.out, reject.place.file.as_bytes())?;
        write!(self.out, ",{},{},", reject.place.line, reject.place.byte)?;
        write_field(&mut self.out, column.as_bytes())?;
        for field in [told_bytes(reject.value()), reject.reason.as_bytes(), &reject.raw] {
            self.out.write_all(b",")?;
            write_field(&mut self.out, field)?;
        }
        match (self.columns, reject.part) {
            (RejectColumns::Plain, _) => {}
            (RejectColumns::WithPart, None) => self.out.write_all(b",")?,
            (RejectColumns::WithPart, Some(part)) => write!(self.out, ",{part}")?,
        }
        self.out.write_all(b"\n")
    }

    /// Flushes, and gives the writer back.
    ///
    /// # Errors
    /// Those of writing.
    pub fn finish(mut self) -> io::Result<W> {
        self.out.flush()?;
        Ok(self.out)
    }
}

/// A field of CSV, in quotes if it needs them. It goes out piece by piece: a long one is not there twice.
fn write_field(out: &mut impl Write, field: &[u8]) -> io::Result<()> {
    if !field.iter().any(|byte| matches!(byte, b',' | b'"' | b'\n' | b'\r')) {
        return out.write_all(field);
    }
    out.write_all(b"\"")?;
    // Each piece ends with its quote, which the next one begins with again.
    let mut from = 0;
    for quote in memchr::memchr_iter(b'"', field) {
        out.write_all(&field[from..=quote])?;
        from = quote;
    }
    out.write_all(&field[from..])?;
    out.write_all(b"\"")
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]
    use coload_types::Rule;
    use proptest::prelude::*;

    use super::*;
    use crate::sample::{SampleEnd, Split, split_records};

    fn reject(reason: BadRecord, value: &[u8]) -> Reject {
        let columns = [
            ("o_orderkey".to_owned(), DataType::BigInt),
            ("o_totalprice".to_owned(), DataType::Decimal { precision: 15, scale: 2 }),
        ];
        let record = RejectedRecord {
            reason,
            line: 1833,
            offset: 99,
            value: RejectedValue::Apart(value.into()),
            raw: b"7;x".into(),
        };
        Reject::new(record, "orders.csv", 1834, &columns)
    }

    #[test]
    fn errors_name_place_value_rule_and_flag() {
        let rule = |rule| BadRecord::Field { column: 1, error: FieldError::Rule(rule) };
        for (reason, value, expected) in [
            (
                rule(Rule::NotANumber),
                &b"12,50"[..],
                "orders.csv:1834:2 (byte 99): \"12,50\" is not DECIMAL(15,2): not a number (column \
                 o_totalprice; try --decimal-separator , or --thousands-separator ,)",
            ),
            (
                rule(Rule::NotANumber),
                "£25,000.00".as_bytes(),
                "orders.csv:1834:2 (byte 99): \"£25,000.00\" is not DECIMAL(15,2): not a number (column o_totalprice; \
                 try VARCHAR for it in --columns or --types, and replace() and CAST in SQL)",
            ),
            (
                BadRecord::Field { column: 0, error: FieldError::Null },
                b"",
                "orders.csv:1834:1 (byte 99): \"\" is NULL in a NOT NULL column (column o_orderkey; \
                 try no NOT NULL in --columns, or another --null)",
            ),
            (
                BadRecord::FieldCount { found: 1 },
                b"",
                "orders.csv:1834 (byte 99): the record has 1 field and the table 2 columns (try \
                 --delimiter, --quote or --columns; --by-name or --set if columns are not in the \
                 input; --skip N if a preamble comes first; \
                 --ragged pad to mend such records, --max-rejects N to set them aside)",
            ),
            (
                BadRecord::FieldCount { found: 3 },
                b"",
                "orders.csv:1834 (byte 99): the record has 3 fields and the table 2 columns (try \
                 --delimiter, --quote or --columns; --by-name or --set if columns are not in the \
                 input; --skip N if a preamble comes first; --ragged truncate to leave out the fields too many, \
                 --max-rejects N to set them aside)",
            ),
            (
                BadRecord::OpenQuote,
                b"",
                "orders.csv:1834 (byte 99): a quote is opened in the record and not closed (try \
                 --quote none or --quotes lenient if quotes are text, or --escape)",
            ),
        ] {
            assert_eq!(reject(reason, value).to_error().to_string(), expected);
        }
    }

    #[test]
    fn long_and_odd_values_are_shortened_and_escaped() {
        assert_eq!(shorten(b"caf\xe9\n\0\t\xc3\xa9"), "caf\\xe9\\n\\u{0}\\t\u{e9}");
        assert_eq!(shorten(&[b'x'; 64]), "x".repeat(64));
        assert_eq!(shorten(&[b'x'; 65]), format!("{}...", "x".repeat(64)));
        assert_eq!(shorten(&[0xff; 70]), format!("{}...", "\\xff".repeat(64)));
    }

    /// The value and the record of 64 MiB were there, on the wire and in the file, both whole.
    #[test]
    fn of_a_long_value_the_first_mebibyte_is_told_and_its_record_is_whole() {
        let most = crate::VALUE_BYTES_MAX;
        let within = vec![b'x'; most + 7];
        let apart = [&vec![b'x'; most - 2][..], "€ and more".as_bytes()].concat();
        for (value, raw, told) in [
            (RejectedValue::Within(0..within.len()), &within, &within[..most]),
            (RejectedValue::apart(&apart), &apart, &apart[..most - 2]),
        ] {
            let mut writer = RejectWriter::new(Vec::new(), RejectColumns::Plain).unwrap();
            writer
                .write(&Reject { value, raw: raw.clone(), ..reject(BadRecord::OpenQuote, b"") })
                .unwrap();
            let text = writer.finish().unwrap();
            let records = split_records(&text, SampleEnd::Whole, Split::CSV, 9).records;
            assert!(*records[1][4].text == *told && *records[1][6].text == **raw);
        }
    }

    proptest! {
        #[test]
        fn what_is_written_reads_back(
            value in prop::collection::vec(prop::sample::select(b"a,\"\n\r\xff1".to_vec()), 0..9),
            raw in prop::collection::vec(prop::sample::select(b"a,\"\n\r\xff1".to_vec()), 0..9),
        ) {
            let mut reject = reject(BadRecord::OpenQuote, &value);
            reject.raw = raw.clone();
            let mut writer = RejectWriter::new(Vec::new(), RejectColumns::Plain).unwrap();
            writer.write(&reject).unwrap();
            let text = writer.finish().unwrap();
            let records = split_records(&text, SampleEnd::Whole, Split::CSV, 9).records;
            prop_assert_eq!(records.len(), 2);
            let fields: Vec<Vec<u8>> = records[1].iter().map(|f| f.text.to_vec()).collect();
            prop_assert_eq!(fields.len(), 7);
            prop_assert_eq!(&fields[0], b"orders.csv");
            prop_assert_eq!(&fields[1], b"1834");
            prop_assert_eq!(&fields[2], b"99");
            prop_assert_eq!(&fields[4], &value);
            prop_assert_eq!(&fields[6], &raw);
        }
    }
}
