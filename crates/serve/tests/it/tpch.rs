//! The 22 queries of TPC-H at scale factor 0.1 against DuckDB's answers (tests/tpch/answers.py).

use std::path::{Path, PathBuf};
use std::sync::OnceLock;

use coload_serve::arrow::array::RecordBatch;
use coload_serve::arrow::datatypes::DataType;
use coload_serve::arrow::util::display::{ArrayFormatter, FormatOptions};

use crate::support::Scratch;

/// What an average or quotient may differ by: DuckDB's are floats, ours decimals of six digits and
/// more after the point.
const TOLERANCE: f64 = 1e-6;
/// Digits after the point of the exact answer that has most of them.
const EXACT_DIGITS_MAX: usize = 6;

fn dir() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/tpch")
}

/// The loaded database, made once for all queries.
fn loaded() -> &'static Scratch {
    static LOADED: OnceLock<Scratch> = OnceLock::new();
    LOADED.get_or_init(|| {
        let scratch = Scratch::new();
        crate::tpch_data::load(&scratch);
        scratch
    })
}

fn rows(batches: &[RecordBatch]) -> Vec<Vec<String>> {
    let options = FormatOptions::new();
    let mut rows = Vec::new();
    for batch in batches {
        let columns: Vec<_> =
            batch.columns().iter().map(|c| ArrayFormatter::try_new(c, &options).unwrap()).collect();
        for row in 0..batch.num_rows() {
            rows.push(columns.iter().map(|c| c.value(row).to_string()).collect());
        }
    }
    rows
}

/// The answer's rows: a comment, a line of names, rows. Fields of these answers have no newlines.
fn read_answer(path: &Path) -> Vec<Vec<String>> {
    let text = std::fs::read_to_string(path).unwrap();
    text.lines().skip(2).map(read_line).collect()
}

fn read_line(line: &str) -> Vec<String> {
    let mut fields = vec![String::new()];
    let mut in_quotes = false;
    let mut chars = line.chars().peekable();
    while let Some(c) = chars.next() {
        match c {
            '"' if in_quotes && chars.peek() == Some(&'"') => {
                chars.next();
                fields.last_mut().unwrap().push('"');
            }
            '"' => in_quotes = !in_quotes,
            ',' if !in_quotes => fields.push(String::new()),
            other => fields.last_mut().unwrap().push(other),
        }
    }
    fields
}

fn is_same(ours: &str, theirs: &str, arrow: &DataType) -> bool {
    if ours == theirs {
        return true;
    }
    let is_float = theirs.split_once('.').is_some_and(|(_, f)| f.len() > EXACT_DIGITS_MAX);
    let tolerance = if is_float { TOLERANCE } else { 0.0 };
    match (ours.parse::<f64>(), theirs.parse::<f64>()) {
        (Ok(a), Ok(b)) if arrow.is_numeric() => (a - b).abs() <= tolerance * b.abs().max(1.0),
        _ => false,
    }
}

fn check(number: usize) {
    let database = &loaded().database;
    let sql = std::fs::read_to_string(dir().join(format!("q{number:02}.sql"))).unwrap();
    let batches = database.query(sql.trim().trim_end_matches(';')).unwrap();
    let expected = read_answer(&dir().join(format!("q{number:02}.csv")));
    let ours = rows(&batches);
    assert_eq!(ours.len(), expected.len(), "rows of query {number}");
    let types: Vec<DataType> = match batches.first() {
        Some(batch) => batch.schema().fields().iter().map(|f| f.data_type().clone()).collect(),
        None => return,
    };
    for (row, (ours, theirs)) in ours.iter().zip(&expected).enumerate() {
        let same = ours.len() == theirs.len()
            && ours.iter().zip(theirs).zip(&types).all(|((a, b), t)| is_same(a, b, t));
        assert!(same, "query {number}, row {row}: {ours:?}, DuckDB: {theirs:?}");
    }
}

macro_rules! queries {
    ($($name:ident $number:literal)*) => {$(
        #[test]
        fn $name() {
            check($number);
        }
    )*};
}

queries! {
    q01 1 q02 2 q03 3 q04 4 q05 5 q06 6 q07 7 q08 8 q09 9 q10 10 q11 11 q12 12 q13 13 q14 14
    q15 15 q16 16 q17 17 q18 18 q19 19 q20 20 q21 21 q22 22
}
