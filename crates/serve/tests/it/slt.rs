//! Runs tests/slt/*.slt.
//!
//! `$DIR` in a file is a directory of its own, for COPY.

use std::path::Path;

use coload_serve::Database;
use coload_serve::arrow::array::{Array, RecordBatch};
use coload_serve::arrow::datatypes::DataType;
use coload_serve::arrow::util::display::{ArrayFormatter, FormatOptions};
use coload_types::Error;
use sqllogictest::{DBOutput, DefaultColumnType, Runner};

use crate::support::Scratch;

/// The driver of one file.
struct Driver(Database);

impl sqllogictest::DB for Driver {
    type Error = Error;
    type ColumnType = DefaultColumnType;

    fn run(&mut self, sql: &str) -> Result<DBOutput<DefaultColumnType>, Error> {
        let batches = self.0.query(sql)?;
        let Some(first) = batches.first() else {
            return Ok(DBOutput::StatementComplete(0));
        };
        let types = first.schema().fields().iter().map(|f| column_type(f.data_type())).collect();
        let options = FormatOptions::new()
            .with_null("NULL")
            .with_timestamp_format(Some("%Y-%m-%d %H:%M:%S%.f"))
            .with_timestamp_tz_format(Some("%Y-%m-%d %H:%M:%S%.f%:z"));
        if first.schema().field(0).name() == "plan_type" {
            return Ok(DBOutput::Rows { types, rows: plan_lines(&batches) });
        }
        let mut rows = Vec::new();
        for batch in &batches {
            let columns: Vec<_> = batch
                .columns()
                .iter()
                .map(|c| ArrayFormatter::try_new(c, &options).unwrap())
                .collect();
            for row in 0..batch.num_rows() {
                let value = |(i, c): (usize, &ArrayFormatter<'_>)| {
                    let text = c.value(row).to_string();
                    let is_empty = text.is_empty() && !batch.column(i).is_null(row);
                    if is_empty { "(empty)".to_owned() } else { text }
                };
                rows.push(columns.iter().enumerate().map(value).collect());
            }
        }
        Ok(DBOutput::Rows { types, rows })
    }

    fn engine_name(&self) -> &str {
        "coload"
    }
}

/// A line for each line of a plan, numbered, its indentation as dashes.
fn plan_lines(batches: &[RecordBatch]) -> Vec<Vec<String>> {
    let options = FormatOptions::new();
    let mut lines = Vec::new();
    for batch in batches {
        let text = |column: usize, row| {
            ArrayFormatter::try_new(batch.column(column), &options).unwrap().value(row).to_string()
        };
        for row in 0..batch.num_rows() {
            lines.push(vec![text(0, row)]);
            for (number, line) in text(1, row).trim_end().lines().enumerate() {
                let name = line.trim_start();
                let dashes = "-".repeat(line.len() - name.len());
                lines.push(vec![format!("{:02}){dashes}{name}", number + 1)]);
            }
        }
    }
    lines
}

fn column_type(arrow: &DataType) -> DefaultColumnType {
    match arrow {
        DataType::Utf8 | DataType::Utf8View | DataType::LargeUtf8 => DefaultColumnType::Text,
        t if t.is_integer() => DefaultColumnType::Integer,
        t if t.is_floating() || t.is_decimal() => DefaultColumnType::FloatingPoint,
        _ => DefaultColumnType::Any,
    }
}

fn run_file(path: &Path) {
    let scratch = Scratch::new();
    let database = &scratch.database;
    let mut runner = Runner::new(|| async { Ok(Driver(database.clone())) });
    let text = std::fs::read_to_string(path).unwrap();
    let text = text.replace("$DIR", &scratch.dir.path().display().to_string());
    if let Err(error) = runner.run_script_with_name(&text, path.display().to_string()) {
        panic!("{}", error.display(false));
    }
}

/// A test for each file, so that one failing file hides no other.
macro_rules! files {
    ($($name:ident)*) => {$(
        #[test]
        fn $name() {
            let dir = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/slt");
            run_file(&dir.join(concat!(stringify!($name), ".slt")));
        }
    )*};
}

files! {
    aggregates alter answers catalog changes checks copy ddl indexes insert keys lists merge names nulls pg_catalog predicates schemas spoken subqueries syntax types unsupported views years
}

#[test]
fn every_file_is_run() {
    let dir = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/slt");
    let source = include_str!("slt.rs");
    for entry in std::fs::read_dir(dir).unwrap() {
        let path = entry.unwrap().path();
        let name = path.file_stem().unwrap().to_string_lossy().into_owned();
        let listed = source.split("\nfiles! {").nth(1).unwrap();
        assert!(listed.split_whitespace().any(|w| w == name), "{name}.slt is not in the list");
    }
}
