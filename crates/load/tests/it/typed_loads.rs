//! Loads of typed inputs, whatever their format: what they are compared with, and what becomes of damaged ones.

use std::path::{Path, PathBuf};

use coload_load::{InputForm, LoadReport};
use coload_source::Dialect;
use coload_store::Store;
use proptest::prelude::*;
use proptest::test_runner::TestCaseError;
use tempfile::TempDir;

use crate::support::{Options, dry_run, load, options, rows, segment_bytes, write};
use crate::text::Random;
use crate::typed_values::NULL;

/// Types of columns, whatever the kind of their fields. Between floats values are compared, not texts.
const TYPES: [&str; 15] = [
    "BIGINT",
    "SMALLINT",
    "INTEGER NOT NULL",
    "DECIMAL(5,2)",
    "DECIMAL(12,3)",
    "DECIMAL(30,3)",
    "DOUBLE",
    "BOOLEAN",
    "VARCHAR",
    "VARCHAR(9) NOT NULL",
    "CHAR(4)",
    "DATE",
    "TIMESTAMP",
    "TIME",
    "UUID",
];

/// Some of so many kinds.
pub fn draw_kinds(count: usize, random: &mut Random) -> Vec<usize> {
    (0..random.below(4) + 1).map(|_| random.below(count)).collect()
}

/// So many columns `c0`, `c1`, ... of any types; with a rule that leaves rows out when they are rows, if `is_checked`.
pub fn draw_columns(count: usize, is_checked: bool, random: &mut Random) -> String {
    let column = |number| format!("c{number} {}", random.of(&TYPES));
    let mut columns: Vec<String> = (0..count).map(column).collect();
    if is_checked {
        columns.push("CHECK (c0 IS NOT NULL)".to_owned());
    }
    columns.join(", ")
}

/// A load of files of a form.
pub fn typed_options(form: InputForm, paths: &[PathBuf], columns: &str) -> Options {
    let mut options = options(paths, columns, Dialect::default());
    options.form = form;
    options
}

/// A load of the text that the generators write.
fn text_options(path: &Path, columns: &str) -> Options {
    let dialect = Dialect { nulls: vec![NULL.as_bytes().to_vec()], ..Dialect::default() };
    options(&[path.to_owned()], columns, dialect)
}

pub fn store(dir: &TempDir, name: &str) -> Store {
    Store::create_or_open(dir.path().join(name)).unwrap()
}

/// What is told of rejects whatever the form of the input.
fn rejects(report: &LoadReport) -> Vec<String> {
    let told = report.rejects.iter().map(|r| {
        // NULL has no text of its own.
        let value = if r.value() == NULL.as_bytes() { Vec::new() } else { r.value().to_vec() };
        format!("{}:{} {:?} {value:?} {}", r.place.line, r.place.field, r.column, r.reason)
    });
    told.collect()
}

/// Loads a file by one thread and by several, and compares with the load of the text of its values.
pub fn check_as_text(
    dir: &TempDir,
    (form, file): (InputForm, PathBuf),
    (text, columns): (&str, &str),
) -> Result<(), TestCaseError> {
    let stores = [store(dir, "text"), store(dir, "one"), store(dir, "many")];
    let mut expected = text_options(&write(dir, "in.csv", text.as_bytes()), columns);
    expected.resources.chunk_bytes = 1000;
    let expected = load(&stores[0], &expected).unwrap();
    let mut options = typed_options(form, &[file], columns);
    options.resources.chunk_bytes = 1000;
    for (store, threads) in stores[1..].iter().zip([1, 4]) {
        options.resources.threads = threads;
        let report = load(store, &options).unwrap();
        prop_assert_eq!(rows(store, "t"), rows(&stores[0], "t"));
        prop_assert_eq!(rejects(&report), rejects(&expected));
        prop_assert_eq!(report.rows(), expected.rows());
        prop_assert_eq!(report.reject_count(), expected.reject_count());
    }
    prop_assert!(segment_bytes(&stores[1], "t") == segment_bytes(&stores[2], "t"));
    let dry = dry_run(None, &options).unwrap();
    prop_assert_eq!(dry.rows(), expected.rows());
    Ok(())
}

/// Loads damaged bytes as text columns: an error that names the file and leaves nothing, or rows.
#[track_caller]
pub fn check_damaged(
    dir: &TempDir,
    (form, name): (InputForm, &str),
    bytes: &[u8],
    columns: usize,
) -> Option<u64> {
    let path = write(dir, name, bytes);
    let columns: Vec<String> = (0..columns).map(|n| format!("c{n} VARCHAR")).collect();
    let mut options = typed_options(form, &[path], &columns.join(", "));
    options.resources.memory = 64 << 20;
    options.resources.threads = 1;
    match dry_run(None, &options) {
        Ok(report) => {
            assert!(report.rows() < 1 << 24);
            Some(report.rows())
        }
        Err(error) => {
            let text = error.to_string();
            assert!(text.contains(name) && !text.contains("panicked"), "{text}");
            None
        }
    }
}
