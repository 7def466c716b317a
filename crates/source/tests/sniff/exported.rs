//! Whatever a table holds, the text that Coload writes of it is read again as that table: names, values, NULL, and which columns
//! are text.
//!
//! `PROPTEST_CASES` is how many tables are tried.

use coload_types::delimited::{NamesLine, push_quoted};
use coload_types::{DataType, parse_value};
use proptest::prelude::*;
use proptest::sample::select;

use crate::read::{Table, read};

/// Tables that are tried if nothing else is asked for.
const TABLES: u32 = 3000;

/// What names and texts are made of: what readers of text look for, and what looks like a value.
const PARTS: [&str; 69] = [
    "a",
    "b",
    "Z",
    "id",
    "_",
    "x y",
    "7",
    "0",
    "1.5",
    ".",
    "-",
    "+",
    "1e5",
    "1E16",
    "NaN",
    "NULL",
    "\\N",
    "NA",
    "true",
    "2024-01-02",
    "12:30",
    "é",
    "ß",
    "数",
    "\u{feff}",
    "\u{a0}",
    " ",
    "  ",
    ",",
    ";",
    "\t",
    "|",
    "\"",
    "\"\"",
    "'",
    "`",
    "\n",
    "\r",
    "\r\n",
    "\n\n",
    "\u{1a}",
    "\u{1b}$B",
    "#",
    "# x",
    "//",
    "--",
    "%",
    "$",
    "€",
    "\\",
    "\\x61",
    "sep=",
    "sep=;",
    "PAR1",
    "BZh9",
    "Obj\u{1}",
    "PK\u{3}\u{4}",
    "{\"a\":",
    "[1,",
    "<html>",
    "CREATE TABLE t",
    "insert into t",
    "=1+1",
    "::",
    "~",
    "^",
    "\u{1}",
    "\u{7f}",
    "total",
];

/// Values of types other than text, as they are written.
const TYPED: [(DataType, &[&str]); 17] = [
    (DataType::Boolean, &["true", "false"]),
    (DataType::SmallInt, &["0", "-7", "32767"]),
    (DataType::BigInt, &["9223372036854775807", "-9223372036854775808", "5", "2024"]),
    (DataType::Decimal { precision: 18, scale: 2 }, &["1.50", "-0.05", "9999999999999999.99"]),
    (DataType::Decimal { precision: 38, scale: 38 }, &["0.00000000000000000000000000000000000001"]),
    (
        DataType::Decimal { precision: 38, scale: 0 },
        &["99999999999999999999999999999999999999", "1"],
    ),
    (DataType::Decimal { precision: 38, scale: 20 }, &["123456789012345678.12345678901234567890"]),
    (
        DataType::Double,
        &["0.1", "1e16", "2.0", "5e-324", "1.7976931348623157e308", "NaN", "inf", "-inf", "-0.0"],
    ),
    (DataType::Double, &["1e16", "1e300"]),
    (DataType::Double, &["NaN"]),
    (DataType::Date, &["2024-02-29", "0001-01-01", "9999-12-31"]),
    (DataType::Time, &["00:00:00", "23:59:59.999999", "12:30:00.5"]),
    (DataType::Timestamp, &["2024-02-29 00:00:00", "1969-12-31 23:59:59.5", "0001-01-01 00:00:00"]),
    (DataType::TimestampTz, &["2024-02-29 00:00:00+00", "1999-12-31 23:59:59.999999+00"]),
    (DataType::TimestampTz, &["2024-02-29 00:00:00+00:00"]),
    (
        DataType::Uuid,
        &["01234567-89ab-cdef-0123-456789abcdef", "00000000-0000-0000-0000-000000000000"],
    ),
    (DataType::Binary(None), &["\\x", "\\x61ff"]),
];

#[derive(Debug, Clone)]
struct Column {
    name: String,
    /// `None` is text.
    data_type: Option<DataType>,
    values: Vec<Option<String>>,
}

fn text() -> impl Strategy<Value = String> {
    prop_oneof![
        4 => prop::collection::vec(select(&PARTS[..]), 0..4).prop_map(|parts| parts.concat()),
        1 => Just("name".to_owned()),
        1 => Just("1,5".to_owned()),
        1 => Just("007".to_owned()),
    ]
}

fn column(rows: usize) -> impl Strategy<Value = Column> {
    let texts =
        prop::collection::vec(prop_oneof![1 => Just(None), 4 => text().prop_map(Some)], rows);
    let numbers = prop::collection::vec(any::<u8>(), rows);
    let share = prop_oneof![1 => Just(0_u8), 3 => Just(200), 2 => Just(255)];
    // No table has a column without a name.
    let name = text().prop_filter("a name", |name| !name.is_empty());
    (name, prop_oneof![Just(usize::MAX), 0..TYPED.len()], texts, numbers, share).prop_map(
        |(name, kind, texts, numbers, share)| match TYPED.get(kind) {
            None if share == 0 => {
                Column { name, data_type: None, values: vec![None; numbers.len()] }
            }
            None => Column { name, data_type: None, values: texts },
            Some((data_type, of)) => {
                let value =
                    |n: &u8| (*n < share).then(|| of[usize::from(*n) % of.len()].to_owned());
                Column {
                    name,
                    data_type: Some(*data_type),
                    values: numbers.iter().map(value).collect(),
                }
            }
        },
    )
}

fn table() -> impl Strategy<Value = Vec<Column>> {
    (0_usize..5).prop_flat_map(|rows| prop::collection::vec(column(rows), 1..5)).prop_map(
        |columns| {
            let mut table: Vec<Column> = Vec::new();
            for column in columns {
                let is_known =
                    |known: &Column| known.name.to_lowercase() == column.name.to_lowercase();
                if !table.iter().any(is_known) {
                    table.push(column);
                }
            }
            table
        },
    )
}

/// The text that is written of a table.
fn written(table: &[Column], delimiter: u8) -> Vec<u8> {
    let named = table.iter().map(|c| (c.name.clone(), c.data_type.is_none())).collect();
    let mut names = NamesLine::new(named, delimiter);
    for row in 0..table[0].values.len() {
        let mut line = Vec::new();
        for (index, column) in table.iter().enumerate() {
            if index > 0 {
                line.push(delimiter);
            }
            let Some(value) = &column.values[row] else { continue };
            names.note_value(index, value.as_bytes());
            match column.data_type {
                None => push_quoted(&mut line, value.as_bytes(), b'"'),
                Some(_) => line.extend_from_slice(value.as_bytes()),
            }
        }
        line.push(b'\n');
        assert!(names.push_row(&line).is_none(), "the table is small");
    }
    names.take()
}

/// What is not the same.
fn difference(table: &[Column], found: &Table) -> Option<String> {
    let names: Vec<&str> = table.iter().map(|column| &*column.name).collect();
    if found.names != names || found.rejects > 0 {
        return Some(format!("names {:?}, {} rejects", found.names, found.rejects));
    }
    if found.rows.len() != table[0].values.len() {
        return Some(format!("{} rows", found.rows.len()));
    }
    for (index, column) in table.iter().enumerate() {
        let has_values = column.values.iter().any(Option::is_some);
        let is_text = matches!(found.types[index], DataType::Varchar(_));
        if is_text != (column.data_type.is_none() || !has_values) {
            return Some(format!("column {index} is {}", found.types[index]));
        }
        for (row, value) in column.values.iter().enumerate() {
            let again = &found.rows[row][index];
            let number = |text: &Option<String>| {
                parse_value(text.as_ref()?.as_bytes(), column.data_type?).ok()
            };
            if value != again && (number(value).is_none() || number(value) != number(again)) {
                return Some(format!("row {row} column {index}: {again:?}"));
            }
        }
    }
    None
}

proptest! {
    #![proptest_config(ProptestConfig {
        cases: std::env::var("PROPTEST_CASES").ok().and_then(|n| n.parse().ok()).unwrap_or(TABLES),
        failure_persistence: None,
        ..ProptestConfig::default()
    })]

    #[test]
    fn what_is_written_is_read_again_as_it_was(table in table(), delimiter in select(&b",,\t;|"[..])) {
        let text = written(&table, delimiter);
        let shown = String::from_utf8_lossy(&text).into_owned();
        let found = match read(&text) {
            Ok(found) => found,
            Err(error) => return Err(TestCaseError::fail(format!("{shown:?}: {error}"))),
        };
        let wrong = difference(&table, &found);
        prop_assert!(wrong.is_none(), "{}: {shown:?} {:?}", wrong.unwrap_or_default(), found.evidence);
    }
}
