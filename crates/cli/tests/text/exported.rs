//! A file that was exported loads again as the same table: same names, same values, with nothing given.

use coload_format::delimited::{is_plain_name, names_in_quotes};
use proptest::prelude::*;

use crate::support::Sandbox;

/// Names of columns: of all kinds but those that no table has.
const NAMES: [&str; 17] = [
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
type Table = (Vec<(String, &'static str)>, Vec<Vec<Option<&'static str>>>);

fn table() -> impl Strategy<Value = Table> {
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

/// All but tables in which no name can be bare, or no quote says anything, and those without rows or values that have
/// nothing else to tell names by. Floats that have an exponent and no point may be codes, such as `1e16`.
fn tells_itself((columns, rows): &Table) -> bool {
    let is_text = |kind: &str| kind == "VARCHAR";
    let has_text = columns.iter().any(|(_, kind)| is_text(kind));
    let any_plain = columns.iter().any(|(name, _)| is_plain_name(name.as_bytes()));
    let is_code = |text: &str| text.contains('e') && !text.contains('.');
    let tells_type = |column: usize| {
        let may_be_code = matches!(columns[column].1, "DOUBLE" | "REAL");
        rows.iter().any(|row| row[column].is_some_and(|text| !(may_be_code && is_code(text))))
    };
    let has_values = (0..columns.len()).all(tells_type);
    let in_quotes = names_in_quotes(columns.iter().map(|(name, kind)| (&**name, is_text(kind))));
    let is_needless = |text: &str| !text.contains([',', ';', '|', '\t', '"', '\r', '\n']);
    let names = columns.iter().zip(&in_quotes);
    let needless_name =
        names.filter(|(_, quoted)| **quoted).any(|((name, _), _)| is_needless(name));
    let values = rows.iter().flat_map(|row| row.iter().zip(columns));
    let mut texts = values.filter(|(_, (_, kind))| is_text(kind)).filter_map(|(value, _)| *value);
    let needless = needless_name || texts.any(is_needless);
    let some_bare = in_quotes.contains(&false);
    match (columns.len(), rows.is_empty()) {
        (1, _) => has_values && (some_bare && needless || !has_text),
        (_, true) => any_plain && needless,
        (_, false) => some_bare && needless || has_values && !has_text,
    }
}

fn quoted(text: &str) -> String {
    format!("\"{}\"", text.replace('"', "\"\""))
}

/// The table as a file that leaves nothing open.
fn written((columns, rows): &Table) -> (String, String) {
    let sql: Vec<String> =
        columns.iter().map(|(name, data_type)| format!("{} {data_type}", quoted(name))).collect();
    let mut text = String::new();
    for row in rows {
        let fields: Vec<String> = row.iter().map(|v| v.map_or(String::new(), quoted)).collect();
        text.push_str(&fields.join(","));
        text.push('\n');
    }
    (sql.join(", "), text)
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 64, ..ProptestConfig::default() })]

    #[test]
    fn an_exported_table_loads_again_as_it_was(table in table().prop_filter("tells itself", tells_itself)) {
        let sandbox = Sandbox::new();
        let (columns, text) = written(&table);
        sandbox.write("in.csv", &text);
        let load = ["load", "in.csv", "--into", "a", "--table", "t", "--columns", &columns, "--no-header"];
        sandbox.run(&[&load[..], &["--delimiter", ",", "--quote", "\"", "--comment", "none"]].concat()).ok();
        sandbox.run(&["export", "a", "t", "--output", "t.csv"]).ok();
        let exported = std::fs::read_to_string(sandbox.path("t.csv")).unwrap();
        // Into a table that is there, and into one whose columns are found out.
        let same = ["load", "t.csv", "--into", "b", "--table", "t", "--columns", &columns];
        sandbox.run(&same).ok();
        let again = sandbox.run(&["export", "b", "t"]).ok().out;
        prop_assert_eq!(&again, &exported);
        let run = sandbox.run(&["load", "t.csv", "--into", "c", "--table", "t"]).ok();
        let found = sandbox.run(&["export", "c", "t", "--quote", "needed"]).ok().out;
        let plain = sandbox.run(&["export", "a", "t", "--quote", "needed"]).ok().out;
        if columns.contains("DOUBLE") || columns.contains("REAL") {
            // They may be DECIMAL: the same numbers, with zeros behind them.
            prop_assert_eq!(found.lines().count(), plain.lines().count());
        } else {
            prop_assert_eq!(found, plain, "{} {}", exported, run.err);
        }
    }
}

/// Symptom: 139 tables of one text column lost their name, which became a row.
#[test]
fn a_table_of_one_text_column_keeps_its_name() {
    let sandbox = Sandbox::new();
    sandbox.write("in.csv", "it was late\nand 007 was tired\n1.50\n");
    sandbox
        .run(&[
            "load",
            "in.csv",
            "--into",
            "a",
            "--columns",
            "line VARCHAR",
            "--no-header",
            "--quote",
            "none",
        ])
        .ok();
    sandbox.run(&["export", "a", "in", "--output", "t.csv"]).ok();
    sandbox.run(&["load", "t.csv", "--into", "a"]).ok();
    let rows = sandbox.run(&["export", "a", "t", "--quote", "needed"]).ok().out;
    assert_eq!(rows, "line\nit was late\nand 007 was tired\n1.50\n");
}

/// Symptom: `--output x.parquet` wrote CSV.
#[test]
fn an_ending_that_is_not_written_is_refused() {
    let sandbox = Sandbox::new();
    sandbox.write("in.csv", "a,b\n1,x\n");
    sandbox.run(&["load", "in.csv", "--into", "a", "--table", "t"]).ok();
    sandbox.run(&["export", "a", "t", "--output", "t.xlsx"]).fails(2, &["t.xlsx", ".parquet"]);
    sandbox.run(&["export", "a", "t", "--output", "t.csv.gz"]).fails(2, &["| gzip"]);
    assert!(!sandbox.path("t.xlsx").exists());
    sandbox.run(&["export", "a", "t", "--output", "t.tsv"]).ok();
    assert_eq!(std::fs::read_to_string(sandbox.path("t.tsv")).unwrap(), "a\t\"b\"\n1\t\"x\"\n");
}
