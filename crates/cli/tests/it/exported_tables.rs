//! Tables of all kinds of names, types and values, and whether a file that was exported of one is still the same table.

use proptest::prelude::*;

use crate::support::Sandbox;

/// Names of columns: of all kinds but those that no table has.
const NAMES: [&str; 27] = [
    "id",
    "name",
    "1",
    " a ",
    "a,b",
    "say \"x\"",
    "line\nend",
    "NULL",
    "2024-01-01",
    "#x",
    "café",
    "PAR1",
    "-",
    "BZh9",
    "max temp",
    "größe",
    "a'b",
    "\u{feff}x",
    "e ",
    "cr\r\n",
    "\"",
    "sep=;",
    "insert into t",
    "1,5",
    "\t",
    "\u{1b}$B",
    "true",
];
/// Types, and values of them as they are exported.
const TYPED: [(&str, &[&str]); 13] = [
    ("SMALLINT", &["0", "-7", "12"]),
    ("BIGINT", &["9223372036854775807", "0", "-1"]),
    ("DECIMAL(18,2)", &["1.50", "-0.05", "1234567890123456.78"]),
    ("DECIMAL(38,20)", &["0.12345678901234567890", "1.00000000000000000000"]),
    ("DOUBLE", &["0.1", "-1e-300", "NaN", "inf", "1e16", "2.0"]),
    ("REAL", &["0.1", "3.0"]),
    ("BOOLEAN", &["true", "false"]),
    ("DATE", &["2024-02-29", "0001-01-01", "9999-12-31"]),
    ("TIME", &["00:00:00", "23:59:59.999999"]),
    ("TIMESTAMP", &["2024-02-29 00:00:00", "1969-12-31 23:59:59.5"]),
    ("TIMESTAMP WITH TIME ZONE", &["2024-02-29 00:00:00+00"]),
    ("UUID", &["01234567-89ab-cdef-0123-456789abcdef"]),
    ("BINARY", &["\\x", "\\x61ff"]),
];
/// Texts that look like something else.
const TEXTS: [&str; 26] = [
    "",
    " ",
    "a",
    "NA",
    "\\N",
    "NULL",
    "007",
    "1.50",
    "2.5",
    "1E5",
    "true",
    "2024/1/2",
    "12:30:00",
    " x ",
    "a,b",
    "say \"x\"",
    "\"",
    "two\nlines",
    "cr\r",
    "\r\n",
    "# note",
    "id",
    "-",
    "1.234,5",
    "\u{1a}",
    "total,5\t",
];

/// A table as SQL columns, and its rows as they are exported: `None` is NULL.
pub type Table = (Vec<(String, &'static str)>, Vec<Vec<Option<&'static str>>>);

pub fn table() -> impl Strategy<Value = Table> {
    let column = (0..NAMES.len(), prop_oneof![1 => Just(usize::MAX), 1 => 0..TYPED.len()]);
    (prop::collection::vec(column, 1..5), prop::collection::vec(any::<[u8; 4]>(), 0..6)).prop_map(
        |(columns, seeds)| {
            let mut named: Vec<(String, &'static str)> = Vec::new();
            let mut values: Vec<&'static [&'static str]> = Vec::new();
            for (name, kind) in columns {
                if named.iter().any(|(known, _)| known == NAMES[name]) {
                    continue;
                }
                let (data_type, of) = TYPED.get(kind).copied().unwrap_or(("VARCHAR", &TEXTS));
                named.push((NAMES[name].to_owned(), data_type));
                values.push(of);
            }
            let value = |(of, seed): (&&'static [&'static str], u8)| match seed % 5 {
                0 => None,
                _ => Some(of[usize::from(seed) / 5 % of.len()]),
            };
            let row = |seeds: &[u8; 4]| values.iter().zip(*seeds).map(value).collect();
            (named, seeds.iter().map(row).collect())
        },
    )
}

fn quoted(text: &str) -> String {
    format!("\"{}\"", text.replace('"', "\"\""))
}

/// The columns as SQL.
pub fn columns_of((columns, _): &Table) -> String {
    let sql = columns.iter().map(|(name, data_type)| format!("{} {data_type}", quoted(name)));
    sql.collect::<Vec<_>>().join(", ")
}

/// Loads a table `t` from a file that leaves nothing open.
pub fn load_into(sandbox: &Sandbox, into: &str, table: &Table) {
    let mut text = String::new();
    for row in &table.1 {
        let fields: Vec<String> = row.iter().map(|v| v.map_or(String::new(), quoted)).collect();
        text.push_str(&fields.join(","));
        text.push('\n');
    }
    sandbox.write("in.csv", &text);
    let columns = columns_of(table);
    let load = ["load", "in.csv", "--into", into, "--table", "t", "--columns", &columns];
    let form = ["--no-header", "--delimiter", ",", "--quote", "\"", "--comment", "none"];
    sandbox.run(&[&load[..], &form].concat()).ok();
}

/// How the table that a file is exported of differs from another: numbers may have zeros behind them.
pub fn difference((columns, rows): &Table, exported: &str) -> Option<String> {
    let mut records = records(exported);
    if rows.is_empty() && records.last().is_some_and(|record| record == &[None]) {
        records.pop();
    }
    let names: Vec<Option<String>> = columns.iter().map(|(name, _)| Some(name.clone())).collect();
    if records.first() != Some(&names) || records.len() != rows.len() + 1 {
        return Some(format!("{} records, names {:?}", records.len(), records.first()));
    }
    for (row, found) in rows.iter().zip(&records[1..]) {
        for (((name, kind), value), found) in columns.iter().zip(row).zip(found) {
            let number = |text: Option<&str>| match *kind {
                "DOUBLE" | "REAL" => text?.parse::<f64>().ok().map(|n| n.to_string()),
                _ => None,
            };
            let found = found.as_deref();
            if *value != found && (number(*value).is_none() || number(*value) != number(found)) {
                return Some(format!("{name:?} {kind}: {value:?} became {found:?}"));
            }
        }
    }
    None
}

/// The fields of a file with commas; those that are empty and in no quotes are NULL.
fn records(text: &str) -> Vec<Vec<Option<String>>> {
    let (mut records, mut record, mut field) = (Vec::new(), Vec::new(), None::<String>);
    let mut chars = text.chars().peekable();
    while let Some(c) = chars.next() {
        match c {
            '"' => {
                let text = field.get_or_insert_default();
                while let Some(inner) = chars.next() {
                    if inner == '"' && chars.next_if_eq(&'"').is_none() {
                        break;
                    }
                    text.push(inner);
                }
            }
            ',' => record.push(field.take()),
            '\r' if chars.peek() == Some(&'\n') => {}
            '\n' => {
                record.push(field.take());
                records.push(std::mem::take(&mut record));
            }
            other => field.get_or_insert_default().push(other),
        }
    }
    records
}
