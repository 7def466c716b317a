//! Loads drawn from bytes: options, then the text. Delimited or of fixed width, with rules of the table, with
//! columns that are not read. The fuzz target `load` draws from what the fuzzer makes.

use coload_ddl::{Check, Schema};
use coload_source::{Dialect, FixedWidths, Header, Said, TextEncoding, Trailing};
use coload_store::Store;
use coload_types::{Column, DataType, Value};
use coload_wire::{ColumnFrom, Derivation};
use tempfile::TempDir;

use crate::model::{self, Model, RowRule};
use crate::support::{self, Options, load};

/// Bytes before the text.
const OPTION_BYTES: usize = 4;

/// Columns of a table.
const COLUMNS: [&str; 8] = [
    "a VARCHAR",
    "a INTEGER NOT NULL",
    "a DOUBLE, b VARCHAR(3)",
    "a DECIMAL(5,2), b BOOLEAN",
    "a DECIMAL(30,5), b UUID",
    "a DATE, b TIME, c TIMESTAMP WITH TIME ZONE",
    "a BIGINT, b BINARY, c CHAR(2) NOT NULL, d VARCHAR",
    "a SMALLINT, b REAL, c TIMESTAMP",
];

/// Layouts of one to four fields.
const LAYOUTS: [[&str; 2]; 4] =
    [["4", "2-"], ["3,2", "1-2,4-6"], ["2,1,3", "1-1,2-3,5-"], ["1,2,1,2", "1-1,2-2,3-4,6-"]];

/// A rule in SQL, and whether a row that was read keeps it.
type Rule = (&'static str, RowRule);

/// Two rules for each of `COLUMNS`.
const RULES: [[Rule; 2]; 8] = [
    [
        ("length(a) < 3", |r| text(&r[0]).map(|a| a.chars().count() < 3)),
        ("a LIKE '%1%'", |r| text(&r[0]).map(|a| a.contains('1'))),
    ],
    [
        ("a > 5", |r| int(&r[0]).map(|a| a > 5)),
        ("a NOT BETWEEN -1 AND 10", |r| int(&r[0]).map(|a| !(-1..=10).contains(&a))),
    ],
    [
        ("b IS NULL OR a IS NOT NULL", |r| Some(r[1].is_none() || r[0].is_some())),
        ("b < 'b' OR b IN ('x', 'yz')", |r| {
            text(&r[1]).map(|b| b.as_str() < "b" || b == "x" || b == "yz")
        }),
    ],
    [
        ("b", |r| int(&r[1]).map(|b| b == 1)),
        ("a >= 1.5 OR NOT b", |r| or(int(&r[0]).map(|a| a >= 150), int(&r[1]).map(|b| b == 0))),
    ],
    [
        ("a < 1", |r| match r[0] {
            Some(Value::Wide(a)) => Some(a < 100_000),
            _ => None,
        }),
        ("a IS NULL AND b IS NULL", |r| Some(r[0].is_none() && r[1].is_none())),
    ],
    [
        ("a < '2024-01-01'", |r| int(&r[0]).map(|a| a < 19_723)),
        ("NOT (b > '12:00:00' AND c IS NULL)", |r| {
            or(int(&r[1]).map(|b| b <= 43_200_000_000), Some(r[2].is_some()))
        }),
    ],
    [
        ("c < d", |r| bytes(&r[2]).zip(bytes(&r[3])).map(|(c, d)| c < d)),
        ("a <> 1 OR c = d", |r| {
            or(int(&r[0]).map(|a| a != 1), bytes(&r[2]).zip(bytes(&r[3])).map(|(c, d)| c == d))
        }),
    ],
    [("a <= 7", |r| int(&r[0]).map(|a| a <= 7)), ("c IS NOT NULL", |r| Some(r[2].is_some()))],
];

fn int(value: &Option<Value>) -> Option<i64> {
    match value {
        Some(Value::Int(value)) => Some(*value),
        _ => None,
    }
}

fn bytes(value: &Option<Value>) -> Option<&[u8]> {
    match value {
        Some(Value::Bytes(value)) => Some(value),
        _ => None,
    }
}

fn text(value: &Option<Value>) -> Option<String> {
    bytes(value).map(|text| String::from_utf8(text.to_vec()).expect("text is UTF-8"))
}

/// OR of SQL.
fn or(left: Option<bool>, right: Option<bool>) -> Option<bool> {
    match (left, right) {
        (Some(true), _) | (_, Some(true)) => Some(true),
        (Some(false), Some(false)) => Some(false),
        _ => None,
    }
}

/// Loads what is drawn into table `t` of a store, and compares its rows and rejects with those of the model.
pub fn check(dir: &TempDir, store: &Store, drawn: &[u8]) {
    let Some(([a, b, c, d], text)) = drawn.split_first_chunk::<OPTION_BYTES>() else { return };
    if support::may_be_compressed(text) {
        return;
    }
    let columns = *a as usize % COLUMNS.len();
    let dialect = fixed(d & 3, COLUMNS[columns], dialect(*a, *b));
    let path = support::write(dir, "in.csv", text);
    let mut options = support::options(&[path], COLUMNS[columns], dialect);
    options.mode = coload_store::LoadMode::Replace;
    options.resources.threads = 1 + *c as usize % 3;
    options.resources.chunk_bytes = [16, 21, 64, 1 << 20][*c as usize / 4 % 4];
    options.resources.fragments_per_partition = 1 + *c as usize / 16 % 3;
    options.resources.memory = if c & 64 == 0 { 1 } else { 1 << 30 };
    if c & 128 != 0 {
        options.resources.dictionaries = coload_transform::DictionaryPolicy::Always;
    }
    let rules = chosen(&RULES[columns], d >> 2 & 3);
    let rules = add_columns(&mut options, d >> 4 & 3, rules);
    let holds = add_rules(&mut options, &rules);
    let mut model = Model::read(text, &options.dialect, options.read_schema());
    model.finish(&options, &holds);
    let report = load(store, &options).expect("rejects are allowed");
    assert_eq!(support::rows(store, "t"), model.rows);
    let rejects = model::rejects(&[model], &options);
    assert_eq!(report.rejects[..], rejects[..rejects.len().min(10)]);
}

fn dialect(a: u8, b: u8) -> Dialect {
    let bit = |n: u8| b >> n & 1 == 1;
    let quote = (!bit(0)).then_some(b'"');
    let nulls: [&[&[u8]]; 4] = [&[b""], &[], &[b"N", b""], &[b"N"]];
    Dialect {
        // A field may begin with what looks like a mark of UTF-16.
        encoding: TextEncoding { said: Said::User, ..TextEncoding::default() },
        delimiter: [b',', b'|'][usize::from(bit(1))],
        quote,
        escape: quote.and(bit(2).then_some(b'\\')),
        header: if bit(3) { Header::Present } else { Header::Absent },
        nulls: nulls[a as usize / 8 % 4].iter().map(|n| n.to_vec()).collect(),
        skip: u64::from(bit(4)),
        comment: bit(5).then_some(b'#'),
        trailing: if bit(6) { Trailing::Delimiter } else { Trailing::Newline },
        ..Dialect::default()
    }
}

/// With fields by their place, for two of four choices.
fn fixed(choice: u8, columns: &str, dialect: Dialect) -> Dialect {
    let layouts = LAYOUTS[columns.matches(", ").count()];
    let Some(layout) = layouts.get(usize::from(choice)) else { return dialect };
    let fixed = Some(FixedWidths::parse(layout).expect("a layout"));
    Dialect { fixed, delimiter: 0, quote: None, escape: None, ..dialect }
}

/// None of two rules, the first, the second, or both.
fn chosen(rules: &[Rule], choice: u8) -> Vec<Rule> {
    let rules = rules.iter().enumerate();
    rules.filter(|(number, _)| choice >> number & 1 == 1).map(|(_, rule)| *rule).collect()
}

/// Gives the table columns that are not read and a rule for them, for three of four choices.
fn add_columns(options: &mut Options, choice: u8, mut rules: Vec<Rule>) -> Vec<Rule> {
    let read = options.schema.clone();
    let mut columns: Vec<_> =
        read.columns().iter().cloned().zip((0..).map(ColumnFrom::Read)).collect();
    match choice {
        0 => return rules,
        1 => {
            columns
                .insert(0, (Column::new("file", DataType::Varchar(None)), ColumnFrom::InputName));
            rules.push(("file LIKE '%.csv'", |_| Some(true)));
        }
        2 => {
            columns.reverse();
            columns.push((Column::new("n", DataType::Integer), ColumnFrom::Constant(None)));
            rules.push(("n > 7", |_| None));
        }
        _ => {
            let seven = ColumnFrom::Constant(Some(Value::Int(7)));
            columns.insert(1, (Column::new("k", DataType::Integer), seven));
            rules.push(("k <> 7 OR a IS NULL", |r| Some(r[0].is_none())));
        }
    }
    let (columns, from) = columns.into_iter().unzip();
    options.schema = Schema::new(columns).expect("names that differ");
    options.derivation = Some(Derivation { read, columns: from });
    rules
}

/// Gives the table rules.
fn add_rules(options: &mut Options, rules: &[Rule]) -> Vec<RowRule> {
    let columns = options.schema.columns();
    let checks = rules.iter().map(|(sql, _)| Check::parse(None, sql, columns).expect(sql));
    let checks = checks.collect();
    options.schema = options.schema.clone().with_checks(checks).expect("few rules");
    rules.iter().map(|(_, holds)| *holds).collect()
}
