//! Rejects of files that have parts say which: in messages, reports, files and tables.

use std::path::PathBuf;
use std::sync::Arc;

use ::parquet::basic::Compression;
use arrow_array::{ArrayRef, Int64Array};
use coload_load::{InputForm, check_reject_table};
use coload_source::Dialect;
use coload_store::Store;
use coload_types::Value;
use coload_wire::RejectLimit;

use crate::arrow_files::{Form, batch, bytes as ipc};
use crate::parquet_files::{Shape, bytes};
use crate::support::{Options, load, options, rows, scratch, write};
use crate::text::Random;
use crate::typed_loads::{store, typed_options};

/// Rows of two row groups; row 1 of the first and rows 2 and 3 of the second are no SMALLINT.
fn parquet(dir: &tempfile::TempDir) -> PathBuf {
    let shape = Shape {
        version: 1,
        compression: Compression::SNAPPY,
        page_rows: 1000,
        dictionary_bytes: 1 << 20,
    };
    let groups = [vec![vec![Some(0), None]], vec![vec![Some(35_300), Some(0), Some(1)]]];
    write(dir, "in.parquet", &bytes(&[0], &groups, shape, &mut Random::new(7)))
}

fn lines(options: &Options, store: &Store) -> Vec<String> {
    let report = load(store, options).unwrap();
    let file = options.rejects_file.as_ref().unwrap();
    let text = std::fs::read_to_string(file).unwrap();
    std::fs::remove_file(file).unwrap();
    let lines: Vec<String> = text.lines().map(str::to_owned).collect();
    assert_eq!(lines.len() as u64, report.reject_count() + 1);
    // What the report has, the file has.
    for (reject, line) in report.rejects.iter().zip(&lines[1..]) {
        if let Some(part) = reject.part {
            assert!(line.ends_with(&format!(",{part}")), "{line}");
            let error = reject.to_error().to_string();
            assert!(error.contains(&format!("): {part}: \"")), "{error}");
        }
    }
    lines
}

#[test]
fn rejects_have_their_row_group_or_record_batch() {
    let dir = scratch();
    let mut of_parquet = typed_options(InputForm::Parquet, &[parquet(&dir)], "c0 SMALLINT");
    of_parquet.rejects_file = Some(dir.path().join("rejects.csv"));
    let found = lines(&of_parquet, &store(&dir, "parquet"));
    assert_eq!(found[0], "file,line,byte,column,value,reason,raw,part");
    let part = |line: &String| line.rsplit(',').next().unwrap_or_default().to_owned();
    let parts: Vec<String> = found[1..].iter().map(part).collect();
    assert_eq!(parts, ["row group 1", "row group 2", "row group 2"]);
    of_parquet.max_rejects = RejectLimit::Count(2);
    let error = load(&store(&dir, "strict"), &of_parquet).unwrap_err().to_string();
    assert!(error.contains("in.parquet:5:1 (byte ") && error.contains("row group 2: "), "{error}");

    let numbers = |numbers: Vec<i64>| batch(vec![Arc::new(Int64Array::from(numbers)) as ArrayRef]);
    let batches = [numbers(vec![1, 2]), numbers(vec![70_000, 3, 80_000]), numbers(vec![4])];
    for (form, expected) in [
        (Form::File, ["record batch 2"; 2]),
        (Form::Stream, ["record batch 2"; 2]),
        (Form::Bare, ["record batch 2"; 2]),
        // Batches of a pipe are told by their byte alone.
        (Form::Gzip, [""; 2]),
    ] {
        let path = write(&dir, "in.arrow", &ipc(form, &batches));
        let mut options = typed_options(InputForm::Arrow, &[path], "c0 SMALLINT");
        options.rejects_file = Some(dir.path().join("rejects.csv"));
        let found = lines(&options, &store(&dir, &format!("{form:?}")));
        let parts: Vec<String> = found[1..].iter().map(part).collect();
        assert_eq!(parts, expected, "{form:?}");
    }
}

/// A table of rejects takes those of any input, whichever made it.
#[test]
fn tables_of_rejects_are_those_of_all_forms() {
    let dir = scratch();
    let store = store(&dir, "s");
    let file = dir.path().join("rejects.csv");
    let text = write(&dir, "in.csv", b"x\n1\n");
    let load_both = |table: &str, is_text_first: bool| {
        for is_text in [is_text_first, !is_text_first] {
            let mut options = match is_text {
                true => options(std::slice::from_ref(&text), "c0 SMALLINT", Dialect::default()),
                false => typed_options(InputForm::Parquet, &[parquet(&dir)], "c0 SMALLINT"),
            };
            options.table = if is_text { "a".to_owned() } else { "b".to_owned() };
            options.rejects_file = Some(file.clone());
            options.rejects_table = Some(table.to_owned());
            check_reject_table(&store, table).unwrap();
            load(&store, &options).unwrap();
        }
        rows(&store, table)
    };
    let part = |row: &Vec<Option<Value>>| match row.get(7) {
        Some(Some(Value::Bytes(part))) => Some(String::from_utf8_lossy(part).into_owned()),
        _ => None,
    };
    let found = load_both("old", true);
    assert!(found.len() == 4 && found.iter().all(|row| row.len() == 7));
    let found = load_both("new", false);
    let some = |part: &str| Some(part.to_owned());
    let parts: Vec<Option<String>> = found.iter().map(part).collect();
    assert_eq!(parts, [some("row group 1"), some("row group 2"), some("row group 2"), None]);
}
