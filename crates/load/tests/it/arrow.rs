//! Loads of Arrow are the loads of the text of the same values: the same rows, the same rejects.

use std::path::PathBuf;
use std::sync::Arc;

use arrow_array::builder::StringViewBuilder;
use arrow_array::types::Int32Type;
use arrow_array::{ArrayRef, DictionaryArray, Int32Array, Int64Array, RunArray, StringArray};
use coload_load::InputForm;
use coload_types::{Error, Value};
use coload_wire::RejectLimit;
use proptest::prelude::*;

use crate::arrow_files::{Form, KINDS, batch, bytes as ipc, column, gzip_of, seconds};
use crate::support::{Options, load, rows, scratch, write};
use crate::text::Random;
use crate::typed_loads::{check_as_text, draw_columns, draw_kinds, store, typed_options};

fn arrow_options(paths: &[PathBuf], columns: &str) -> Options {
    typed_options(InputForm::Arrow, paths, columns)
}

proptest! {
    #![proptest_config(ProptestConfig { failure_persistence: None, ..ProptestConfig::with_cases(
        std::env::var("PROPTEST_CASES").ok().and_then(|n| n.parse().ok()).unwrap_or(96)
    ) })]

    #[test]
    fn arrow_is_loaded_as_its_text_is(seed: u64, form in prop::sample::select(&Form::ALL[..]), is_checked: bool) {
        let dir = scratch();
        let mut random = Random::new(seed);
        let kinds = draw_kinds(KINDS, &mut random);
        let columns = draw_columns(kinds.len(), is_checked, &mut random);
        let (mut text, mut batches) = (String::new(), Vec::new());
        // Dictionaries that change from batch to batch are for streams only.
        let count = if kinds.contains(&9) && !matches!(form, Form::Stream | Form::Gzip) { 1 } else { 3 };
        for _ in 0..count {
            let rows = random.below(60);
            let made: Vec<(ArrayRef, Vec<String>)> =
                kinds.iter().map(|kind| column(*kind, rows, &mut random)).collect();
            for row in 0..rows {
                let fields: Vec<&str> = made.iter().map(|(_, texts)| texts[row].as_str()).collect();
                text.push_str(&fields.join(","));
                text.push('\n');
            }
            batches.push(batch(made.into_iter().map(|(array, _)| array).collect()));
        }
        let file = write(&dir, "in.arrow", &ipc(form, &batches));
        check_as_text(&dir, (InputForm::Arrow, file), (&text, &columns))?;
    }
}

fn numbers(from: i64, to: i64) -> ArrayRef {
    Arc::new(Int64Array::from_iter_values(from..to))
}

/// A batch is longer than a chunk, and batches are shorter: rows keep their order, whatever is cut or put together.
#[test]
fn batches_are_cut_and_put_together() {
    let dir = scratch();
    for form in Form::ALL {
        let store = store(&dir, &format!("{form:?}"));
        let mut batches = vec![batch(vec![numbers(0, 50_000)])];
        batches.extend((0..500).map(|n| batch(vec![numbers(50_000 + n * 10, 50_010 + n * 10)])));
        batches.push(batch(vec![numbers(55_000, 55_000)]));
        let path = write(&dir, "in.arrow", &ipc(form, &batches));
        let mut options = arrow_options(&[path], "c0 BIGINT");
        options.resources.chunk_bytes = 16 << 10;
        let report = load(&store, &options).unwrap();
        assert_eq!(report.rows(), 55_000);
        let found = rows(&store, "t");
        assert!((0..55_000).all(|n| found[n as usize] == [Some(Value::Int(n))]), "{form:?}");
    }
}

/// Several inputs, in which a column is a dictionary here and text there; the dictionary has more values than codes.
#[test]
fn inputs_follow_one_another_and_dictionaries_may_be_too_large_for_codes() {
    let dir = scratch();
    let words: Vec<String> = (0..40_000).map(|n| format!("word {n}")).collect();
    let coded: DictionaryArray<Int32Type> = words.iter().map(|word| Some(word.as_str())).collect();
    let plain = StringArray::from_iter_values(["a", "b"]);
    let first = write(&dir, "a.arrow", &ipc(Form::File, &[batch(vec![Arc::new(coded)])]));
    let second = write(&dir, "b.arrows", &ipc(Form::Stream, &[batch(vec![Arc::new(plain)])]));
    for threads in [1, 3] {
        let store = store(&dir, &format!("s{threads}"));
        let mut options = arrow_options(&[first.clone(), second.clone()], "c0 VARCHAR NOT NULL");
        options.resources.threads = threads;
        let report = load(&store, &options).unwrap();
        assert_eq!(report.rows(), 40_002);
        let found = rows(&store, "t");
        let text = |row: usize| match &found[row][0] {
            Some(Value::Bytes(bytes)) => String::from_utf8(bytes.to_vec()).unwrap(),
            other => panic!("{other:?}"),
        };
        assert!((0..40_000).all(|n| text(n) == words[n]));
        assert_eq!((text(40_000), text(40_001)), ("a".to_owned(), "b".to_owned()));
    }
}

/// Keys stand for long texts: what they would take is told before it is taken.
#[test]
fn keys_of_long_texts_are_codes_and_too_many_of_them_are_a_limit() {
    let dir = scratch();
    let load = |values: usize, bytes: usize, is_runs: bool| {
        let long: Vec<String> = (0..values).map(|n| format!("{n:02}").repeat(bytes / 2)).collect();
        let long = StringArray::from(long);
        let array: ArrayRef = match is_runs {
            false => {
                let keys =
                    Int32Array::from_iter_values((0..100_000).map(|row| row % values as i32));
                Arc::new(DictionaryArray::new(keys, Arc::new(long)))
            }
            true => {
                let ends: Int32Array = (1..=values as i32).map(|n| n * 10_000).collect();
                Arc::new(RunArray::<Int32Type>::try_new(&ends, &long).unwrap())
            }
        };
        let path = write(&dir, "in.arrow", &ipc(Form::File, &[batch(vec![array])]));
        let mut options = arrow_options(&[path], "c0 VARCHAR");
        options.resources.memory = 256 << 20;
        options.mode = coload_store::LoadMode::Replace;
        load(&store(&dir, "s"), &options)
    };
    // 10 GB of text, were they values of their own.
    assert_eq!(load(10, 100_000, false).unwrap().rows(), 100_000);
    assert_eq!(load(10, 100_000, true).unwrap().rows(), 100_000);
    for is_runs in [false, true] {
        match load(60, 1 << 20, is_runs).unwrap_err() {
            Error::Limit(text) => assert!(text.contains("--memory"), "{text}"),
            other => panic!("{other}"),
        }
    }
}

/// Views may tell the same bytes for each row. They were texts of over 4 GiB then, before anybody had counted them.
#[test]
fn views_of_the_same_long_text_are_a_limit() {
    let dir = scratch();
    let load = |rows: usize| {
        let mut views = StringViewBuilder::new().with_deduplicate_strings();
        let text = "x".repeat(1 << 20);
        (0..rows).for_each(|_| views.append_value(&text));
        let path =
            write(&dir, "in.arrow", &ipc(Form::File, &[batch(vec![Arc::new(views.finish())])]));
        assert!(std::fs::metadata(&path).unwrap().len() < 2 << 20);
        let mut options = arrow_options(&[path], "c0 VARCHAR");
        options.resources.memory = 256 << 20;
        load(&store(&dir, &format!("s{rows}")), &options)
    };
    assert_eq!(load(20).unwrap().rows(), 20);
    match load(5000).unwrap_err() {
        Error::Limit(text) => assert!(text.contains("--memory"), "{text}"),
        other => panic!("{other}"),
    }
}

/// 1 KB of a file, compressed, that are 1,000,000 rows: a run and one more, bits, NULLs. They were read at once, whatever memory
/// there was. Made by `pyarrow` 26: values 7 and 8, bits that change, and `write_table` with `compression="zstd"`.
#[test]
fn a_compressed_batch_of_more_rows_than_memory_holds_is_read_in_parts() {
    const ROWS: u64 = 1_000_000;
    let bytes = include_bytes!("../examples/many_rows.arrow");
    let dir = scratch();
    let file = write(&dir, "in.arrow", bytes);
    let gzip = write(&dir, "in.arrow.gz", &gzip_of(bytes));
    for path in [file, gzip] {
        let store = store(&dir, &format!("{}", path.extension() == Some("gz".as_ref())));
        let mut options = arrow_options(&[path], "c0 BIGINT, c1 BOOLEAN, c2 VARCHAR");
        options.resources.memory = 64 << 20;
        options.resources.chunk_bytes = 1 << 20;
        let report = load(&store, &options).unwrap();
        assert_eq!(report.rows(), ROWS);
        let found = rows(&store, "t");
        for (row, found) in found.iter().enumerate() {
            let first = if row as u64 + 1 == ROWS { 8 } else { 7 };
            let bit = i64::from(row % 2 == 0);
            assert_eq!(*found, [Some(Value::Int(first)), Some(Value::Int(bit)), None]);
        }
    }
}

#[test]
fn a_batch_of_a_stream_that_memory_does_not_hold_is_a_limit() {
    let dir = scratch();
    let batches = [batch(vec![numbers(0, 2_000_000)])];
    for form in [Form::Gzip, Form::GzipFile, Form::Stream] {
        let path = write(&dir, "in.arrow", &ipc(form, &batches));
        let mut options = arrow_options(&[path], "c0 BIGINT");
        options.resources.memory = 64 << 20;
        let loaded = load(&store(&dir, &format!("{form:?}")), &options);
        match (form, loaded) {
            // Of a file a part of a batch is read at once.
            (Form::Stream, loaded) => assert_eq!(loaded.unwrap().rows(), 2_000_000),
            (_, Err(Error::Limit(text))) => {
                assert!(
                    text.contains("16000000 bytes") && text.contains("--memory 92MiB"),
                    "{text}"
                );
            }
            (_, other) => panic!("{other:?}"),
        }
    }
}

/// A strict load ends with the first record that is none, and says where it is.
#[test]
fn a_strict_load_tells_the_first_record_that_is_none() {
    let dir = scratch();
    let values = Int64Array::from(vec![Some(1), None, Some(300), Some(40_000), Some(50_000)]);
    let halves = [Arc::new(values.slice(0, 2)) as ArrayRef, Arc::new(values.slice(2, 3))];
    let batches = halves.map(|half| batch(vec![half]));
    let path = write(&dir, "in.arrow", &ipc(Form::File, &batches));
    let mut options = arrow_options(&[path], "c0 SMALLINT");
    options.max_rejects = RejectLimit::Count(0);
    let error = load(&store(&dir, "s"), &options).unwrap_err().to_string();
    assert!(
        error.contains("in.arrow:4:1 (byte ") && error.contains("\"40000\" is not SMALLINT"),
        "{error}"
    );
}

#[test]
fn times_of_other_units_are_exact_or_rejected() {
    let dir = scratch();
    let values =
        seconds(vec![Some(0), Some(253_402_300_799), Some(253_402_300_800), Some(i64::MAX)]);
    let path = write(&dir, "in.arrow", &ipc(Form::Stream, &[batch(vec![values])]));
    let store = store(&dir, "s");
    let report = load(&store, &arrow_options(&[path], "c0 TIMESTAMP")).unwrap();
    let last = 253_402_300_799_000_000;
    assert_eq!(rows(&store, "t"), [[Some(Value::Int(0))], [Some(Value::Int(last))]]);
    let told: Vec<u64> = report.rejects.iter().map(|reject| reject.place.line).collect();
    assert_eq!(told, [3, 4]);
}
