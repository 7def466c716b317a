//! Loads of Arrow, Parquet and Avro into a server.

use std::io::Cursor;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::Ordering;

use arrow_array::types::Int32Type;
use arrow_array::{ArrayRef, DictionaryArray, Float64Array, Int64Array, RecordBatch, StringArray};
use arrow_ipc::writer::StreamWriter;
use coload_ddl::parse_columns;
use coload_load::{InputForm, OpenedStream, ParquetFolder, RemoteWork};
use coload_receive::ReceiveOptions;
use coload_source::{InputFile, InputSource};
use coload_store::Store;
use coload_types::Error;
use coload_wire::RejectLimit;

use crate::setup::{
    ADAPTIVE, ALL, NONE, Options, SIZE, Server, load, load_remote, mix, options, rows,
};

const ROWS: u64 = 20_000;

fn city(n: u64) -> Option<&'static str> {
    (!n.is_multiple_of(9)).then(|| ["Rom", "Köln", "Oslo", "a,b"][(mix(n) % 4) as usize])
}

fn note(n: u64) -> Option<String> {
    (!n.is_multiple_of(7)).then(|| format!("note {:x}", mix(n)))
}

/// Every 1,000th does not fit.
fn small(n: u64) -> i64 {
    if n % 1000 == 999 { 1 << 40 } else { n as i64 % 50 }
}

/// A stream of batches, of whose last column some values do not fit.
fn stream() -> Vec<u8> {
    let batch = |from: u64| {
        let numbers = || from..from + 500;
        let coded: DictionaryArray<Int32Type> = numbers().map(city).collect();
        let columns: Vec<(&str, ArrayRef)> = vec![
            ("id", Arc::new(Int64Array::from_iter_values(numbers().map(|n| n as i64)))),
            ("city", Arc::new(coded)),
            ("note", Arc::new(StringArray::from_iter(numbers().map(note)))),
            ("x", Arc::new(Float64Array::from_iter_values(numbers().map(|n| n as f64 / 8.0)))),
            ("small", Arc::new(Int64Array::from_iter_values(numbers().map(small)))),
        ];
        RecordBatch::try_from_iter(columns).unwrap()
    };
    let mut out = Vec::new();
    let mut writer = StreamWriter::try_new(&mut out, &batch(0).schema()).unwrap();
    (0..ROWS / 500).for_each(|n| writer.write(&batch(n * 500)).unwrap());
    writer.finish().unwrap();
    out
}

fn write(folder: &Path) -> PathBuf {
    let file = folder.join("t.arrows");
    std::fs::write(&file, stream()).unwrap();
    file
}

fn arrow_options(file: &Path, table: &str) -> Options {
    let mut options = options(file, table);
    options.form = InputForm::Arrow;
    options.schema = parse_columns(
        "id BIGINT NOT NULL, city VARCHAR(20), note VARCHAR, x DOUBLE, small INTEGER",
    )
    .unwrap();
    options.max_rejects = RejectLimit::Count(100);
    options
}

#[test]
fn arrow_into_a_server_has_the_rows_of_arrow_into_a_store() {
    let folder = tempfile::tempdir().unwrap();
    let file = write(folder.path());
    let embedded = Store::create_or_open(folder.path().join("embedded")).unwrap();
    let expected = load(&embedded, &arrow_options(&file, "t")).unwrap();
    assert_eq!((expected.rows(), expected.reject_count()), (ROWS - 20, 20));
    let server = Server::start(&folder.path().join("server"), ReceiveOptions::default());
    for (number, work) in [ALL, NONE, SIZE, ADAPTIVE].into_iter().enumerate() {
        let table = format!("t{number}");
        let mut remote = server.remote();
        remote.work = work;
        let report = load_remote(&arrow_options(&file, &table), &remote).unwrap();
        assert_eq!((report.rows, report.rejects), (ROWS - 20, 20), "{work:?}");
        assert!(report.partitions[0] > 3, "{:?}", report.partitions);
        assert!(rows(&server.store, &table) == rows(&embedded, "t"), "{work:?}");
        assert_eq!(report.first_rejects[0].place.line, 1000);
        assert!(report.first_rejects == expected.rejects, "{work:?}");
        assert!(expected.rejects[0].part.is_some());
    }
    for work in [RemoteWork::Pipe, RemoteWork::Seq] {
        let mut remote = server.remote();
        remote.work = work;
        let error = load_remote(&arrow_options(&file, "never"), &remote).unwrap_err();
        assert!(matches!(&error, Error::Invalid(text) if text.contains("Arrow")), "{error}");
    }
}

/// Standard input, and a load that was stopped: partitions that are durable are not sent again.
#[test]
fn a_pipe_is_loaded_and_a_file_goes_on_where_it_was() {
    let folder = tempfile::tempdir().unwrap();
    let file = write(folder.path());
    let embedded = Store::create_or_open(folder.path().join("embedded")).unwrap();
    load(&embedded, &arrow_options(&file, "t")).unwrap();
    let server = Server::start(&folder.path().join("server"), ReceiveOptions::default());

    let mut piped = arrow_options(&file, "piped");
    piped.inputs = vec![InputFile { name: "-".to_owned(), source: InputSource::Stdin }].into();
    piped.stream = Some(OpenedStream::new("-", Box::new(Cursor::new(stream()))));
    load_remote(&piped, &server.remote()).unwrap();
    assert!(rows(&server.store, "piped") == rows(&embedded, "t"));

    let mut stopped = arrow_options(&file, "t");
    let cancel = Arc::clone(&stopped.hooks.cancel);
    stopped.hooks.after_task =
        Some(Arc::new(|_| std::thread::sleep(std::time::Duration::from_millis(5))));
    stopped.hooks.progress = Some(Arc::new(move |progress| {
        if progress.rows() > ROWS / 2 {
            cancel.store(true, Ordering::Relaxed);
        }
    }));
    load_remote(&stopped, &server.remote()).unwrap_err();
    assert!(rows(&server.store, "t").is_empty());
    let report = load_remote(&arrow_options(&file, "t"), &server.remote()).unwrap();
    assert_eq!((report.rows, report.rejects), (ROWS - 20, 20));
    assert!(rows(&server.store, "t") == rows(&embedded, "t"));
}

/// The same rows, in a file of Parquet.
fn parquet(folder: &Path) -> PathBuf {
    let mut options = arrow_options(&write(folder), "t");
    options.schema =
        parse_columns("id BIGINT NOT NULL, city VARCHAR(20), note VARCHAR, x DOUBLE, small BIGINT")
            .unwrap();
    let files = folder.join("files");
    let Options { request, resources, hooks } = &options;
    coload_load::load(request, resources, hooks, &ParquetFolder::new(&files).unwrap()).unwrap();
    let mut paths = files.read_dir().unwrap().map(|entry| entry.unwrap().path());
    paths.find(|path| path.extension().is_some_and(|ending| ending == "parquet")).unwrap()
}

/// Appends a number in the binary encoding of Avro.
fn long(value: i64, out: &mut Vec<u8>) {
    let mut word = (value << 1 ^ value >> 63) as u64;
    while word >= 0x80 {
        out.push(word as u8 | 0x80);
        word >>= 7;
    }
    out.push(word as u8);
}

fn sized(bytes: &[u8], out: &mut Vec<u8>) {
    long(bytes.len() as i64, out);
    out.extend_from_slice(bytes);
}

/// The same rows, in a file of Avro of blocks of 500.
fn avro(folder: &Path) -> PathBuf {
    const MARKER: &[u8; 16] = b"between blocks..";
    let fields = [
        r#""id", "type": "long""#,
        r#""city", "type": ["null", "string"]"#,
        r#""note", "type": ["null", "string"]"#,
        r#""x", "type": "double""#,
        r#""small", "type": "long""#,
    ];
    let fields = fields.map(|field| format!(r#"{{"name": {field}}}"#)).join(", ");
    let schema = format!(r#"{{"type": "record", "name": "r", "fields": [{fields}]}}"#);
    let mut out = b"Obj\x01".to_vec();
    long(1, &mut out);
    sized(b"avro.schema", &mut out);
    sized(schema.as_bytes(), &mut out);
    out.push(0);
    out.extend(MARKER);
    for from in (0..ROWS).step_by(500) {
        let mut raw = Vec::new();
        for n in from..from + 500 {
            long(n as i64, &mut raw);
            for text in [city(n).map(str::to_owned), note(n)] {
                long(i64::from(text.is_some()), &mut raw);
                text.iter().for_each(|text| sized(text.as_bytes(), &mut raw));
            }
            raw.extend((n as f64 / 8.0).to_le_bytes());
            long(small(n), &mut raw);
        }
        long(500, &mut out);
        sized(&raw, &mut out);
        out.extend(MARKER);
    }
    let file = folder.join("t.avro");
    std::fs::write(&file, out).unwrap();
    file
}

/// A load of a file that is stopped goes on where it was, and `--placement pipe` names the form that it refuses.
#[track_caller]
fn check_goes_on(file: &Path, form: InputForm, name: &str) {
    let folder = tempfile::tempdir().unwrap();
    let options = |table: &str| {
        let mut options = arrow_options(file, table);
        options.form = form;
        options
    };
    let embedded = Store::create_or_open(folder.path().join("embedded")).unwrap();
    let expected = load(&embedded, &options("t")).unwrap();
    assert_eq!((expected.rows(), expected.reject_count()), (ROWS - 20, 20));
    let server = Server::start(&folder.path().join("server"), ReceiveOptions::default());
    let mut stopped = options("t");
    let cancel = Arc::clone(&stopped.hooks.cancel);
    stopped.hooks.after_task =
        Some(Arc::new(|_| std::thread::sleep(std::time::Duration::from_millis(5))));
    stopped.hooks.progress = Some(Arc::new(move |progress| {
        if progress.rows() > ROWS / 2 {
            cancel.store(true, Ordering::Relaxed);
        }
    }));
    load_remote(&stopped, &server.remote()).unwrap_err();
    assert!(rows(&server.store, "t").is_empty());
    let report = load_remote(&options("t"), &server.remote()).unwrap();
    assert_eq!((report.rows, report.rejects), (ROWS - 20, 20));
    assert!(rows(&server.store, "t") == rows(&embedded, "t"));
    let mut remote = server.remote();
    remote.work = RemoteWork::Pipe;
    let error = load_remote(&options("never"), &remote).unwrap_err();
    assert!(matches!(&error, Error::Invalid(text) if text.contains(name)), "{error}");
}

#[test]
fn parquet_and_avro_into_a_server_go_on_where_they_were() {
    let folder = tempfile::tempdir().unwrap();
    check_goes_on(&parquet(folder.path()), InputForm::Parquet, "Parquet");
    check_goes_on(&avro(folder.path()), InputForm::Avro, "Avro");
}
