//! The pipeline against the model: the same rows and rejects, whatever the chunks, and the same bytes,
//! whatever the threads.

use std::io::Write;
use std::path::PathBuf;
use std::sync::{Arc, Mutex};

use coload_load::Distinct;
use coload_source::{Dialect, InputFile, InputSource};
use coload_store::Store;
use coload_threads::process_cpu_ns;
use coload_transform::DictionaryPolicy;
use coload_types::Error;
use coload_wire::RejectLimit;
use proptest::prelude::*;
use tempfile::TempDir;

use crate::drawn;
use crate::model::{self, Model, Row};
use crate::support::{Options, load, options, rows, scratch, segment_bytes, write};
use crate::text::{self, Random};

const CHUNK_BYTES: [usize; 8] = [16, 17, 33, 64, 128, 1_000, 65_536, 10 << 20];
/// Bytes of texts that are drawn.
const DRAWN: &[u8] = b"\n\n\n\r,|,|\"\\  #1102357.-:Tabxyz\xc3\xa9N";

/// How a load is cut and by how many it is done: nothing of it may be seen in the rows.
fn vary(random: &mut Random, options: &mut Options) {
    options.resources.chunk_bytes = random.of(&CHUNK_BYTES);
    options.resources.fragments_per_partition = 1 + random.below(3);
    options.resources.merge_columns = 1 + random.below(2);
    options.resources.memory = random.of(&[1, 1 << 12, 1 << 30]);
    options.resources.dictionaries = random.of(&[DictionaryPolicy::Auto, DictionaryPolicy::Always]);
}

/// Loads with a number of threads into a new store, and checks rows and rejects. Gives the segments.
fn check(dir: &TempDir, options: &Options, models: &[Model], threads: usize) -> Vec<Vec<u8>> {
    let rejects_path = dir.path().join(format!("rejects{threads}"));
    let mut options = options.clone();
    options.resources.threads = threads;
    options.rejects_file = Some(rejects_path.clone());
    let store = Store::create_or_open(dir.path().join(format!("store{threads}"))).unwrap();
    let report = load(&store, &options).unwrap();
    let expected: Vec<&Row> = models.iter().flat_map(|m| &m.rows).collect();
    let found = rows(&store, "t");
    assert_eq!(found.iter().collect::<Vec<_>>(), expected, "rows with {threads} threads");
    let rejects = model::rejects(models, &options);
    assert_eq!(report.rejects, rejects[..rejects.len().min(10)]);
    let written = std::fs::read(rejects_path).unwrap();
    assert_eq!(
        String::from_utf8_lossy(&written),
        String::from_utf8_lossy(&model::rejects_file(&rejects))
    );
    assert!(written == model::rejects_file(&rejects));
    for ((file, model), input) in report.files.iter().zip(models).zip(options.inputs.iter()) {
        assert_eq!(
            (file.rows, file.rejects),
            (model.rows.len() as u64, model.rejects.len() as u64)
        );
        assert_eq!(file.records, file.rows + file.rejects);
        assert_eq!(file.name, input.name);
    }
    segment_bytes(&store, "t")
}

/// The strict load of an input with rejects says the first one and leaves the store as it was.
fn check_strict(dir: &TempDir, options: &Options, models: &[Model]) {
    let rejects = model::rejects(models, options);
    let mut strict = options.clone().with_threads(3);
    strict.max_rejects = RejectLimit::Count(0);
    let store = Store::create_or_open(dir.path().join("strict")).unwrap();
    match (load(&store, &strict), rejects.first()) {
        (Ok(report), None) => assert_eq!(report.reject_count(), 0),
        (Err(error), Some(first)) => {
            assert_eq!(error, first.to_error());
            assert!(store.snapshot().unwrap().tables().is_empty());
        }
        (result, first) => panic!("{result:?} although the first reject is {first:?}"),
    }
}

fn models(texts: &[Vec<u8>], options: &Options) -> Vec<Model> {
    texts.iter().map(|t| Model::read(t, &options.dialect, &options.schema)).collect()
}

fn check_all(seed: u64, counts: &[usize], as_stream: AsStream) {
    let mut random = Random::new(seed);
    let dir = scratch();
    let (dialect, columns) = (text::dialect(&mut random), text::columns(&mut random));
    let texts: Vec<Vec<u8>> =
        counts.iter().map(|n| text::text(&mut random, &dialect, &columns, *n)).collect();
    let stored = |random: &mut Random, text: &[u8]| match as_stream {
        AsStream::Compressed => compress(random, text),
        _ => text.to_vec(),
    };
    let paths: Vec<PathBuf> = texts
        .iter()
        .enumerate()
        .map(|(i, t)| write(&dir, &format!("{i}.csv"), &stored(&mut random, t)))
        .collect();
    let mut options = options(&paths, &columns.sql, dialect);
    vary(&mut random, &mut options);
    if as_stream == AsStream::Yes {
        options.inputs = vec![InputFile {
            name: "-".into(),
            source: InputSource::Stream { path: paths[0].clone() },
        }]
        .into();
    }
    let models = models(&texts, &options);
    let first = check(&dir, &options, &models, 1);
    let threads = 2 + random.below(7);
    let others = check(&dir, &options, &models, threads);
    assert!(first == others, "1 and {threads} threads make other segments");
    if random.one_in(3) {
        check_strict(&dir, &options, &models);
    }
}

#[derive(Clone, Copy, PartialEq, Eq)]
enum AsStream {
    No,
    Yes,
    Compressed,
}

/// The text in members of gzip, in frames of Zstandard, or as it is.
fn compress(random: &mut Random, text: &[u8]) -> Vec<u8> {
    let member = 1 + random.below(text.len() + 1);
    match random.below(3) {
        0 => text.to_vec(),
        1 => text.chunks(member).flat_map(gzip).collect(),
        _ => text.chunks(member).flat_map(zstd).collect(),
    }
}

fn gzip(text: &[u8]) -> Vec<u8> {
    let mut out = flate2::write::GzEncoder::new(Vec::new(), flate2::Compression::fast());
    out.write_all(text).unwrap();
    out.finish().unwrap()
}

fn zstd(text: &[u8]) -> Vec<u8> {
    let mut out = Vec::with_capacity(zstd_safe::compress_bound(text.len()));
    zstd_safe::compress(&mut out, text, 1).unwrap();
    out
}

/// Few records, or more than are looked up, or read column by column, at once.
fn counts() -> impl Strategy<Value = usize> {
    prop_oneof![5 => 0usize..120, 1 => 500usize..1_300]
}

proptest! {
    #![proptest_config(ProptestConfig { failure_persistence: None, ..ProptestConfig::with_cases(300) })]

    #[test]
    fn compressed_files_give_the_rows_and_rejects_of_the_model(
        seed: u64, few in counts(), more in prop::collection::vec(0usize..30, 0..6),
    ) {
        check_all(seed, &[&[few][..], &more].concat(), AsStream::Compressed);
    }

    #[test]
    fn a_file_gives_the_rows_and_rejects_of_the_model(seed: u64, count in counts()) {
        check_all(seed, &[count], AsStream::No);
    }

    #[test]
    fn many_files_give_the_rows_and_rejects_of_the_model(
        seed: u64,
        counts in prop::collection::vec(0usize..30, 1..6),
    ) {
        check_all(seed, &counts, AsStream::No);
    }

    #[test]
    fn a_stream_gives_the_rows_and_rejects_of_the_model(seed: u64, count in counts()) {
        check_all(seed, &[count], AsStream::Yes);
    }

    #[test]
    fn rules_derived_columns_and_fixed_widths_give_the_rows_of_the_model(
        options: [u8; 4],
        text in prop::collection::vec(prop::sample::select(DRAWN), 0..200),
    ) {
        let dir = scratch();
        let store = Store::create_or_open(dir.path().join("store")).unwrap();
        drawn::check(&dir, &store, &[&options[..], &text].concat());
    }
}

/// Symptom: a bad field became NULL. Cause: it was equal to the field before, which was bad too and the
/// last of a batch of fields that mostly differed.
#[test]
fn equal_bad_fields_are_all_rejected() {
    check_all(8_912_938_572_479_106_728, &[69], AsStream::Yes);
    for good in 0..70 {
        let dir = scratch();
        let mut text: String = (0..good).map(|i| format!("{i}\n")).collect();
        text.push_str("x\nx\nx\n");
        text.push_str(&"7\n".repeat(80));
        let path = write(&dir, "in.csv", text.as_bytes());
        let options = options(&[path], "a INTEGER", Dialect::default());
        let models = models(&[text.into_bytes()], &options);
        check(&dir, &options, &models, 1);
    }
}

/// Rows enough for several workers to fill their dictionaries, or for one only.
#[test]
fn columns_over_the_limit_of_a_dictionary_are_the_same_whoever_saw_what() {
    const ROWS: usize = 60_000;
    // The sample sees few values in each column. Then: more values than a dictionary may hold, as many
    // as it may, and nearly as many, which are too many for one worker together with those of rejects.
    let distinct = [36_000, 32_768, 32_500];
    let mut text = Vec::new();
    let mut random = Random::new(7);
    for row in 0..ROWS {
        let mut field = |i: usize| {
            let value = if row < 9_000 { row % 10 } else { row * 31 % distinct[i] };
            match i {
                _ if random.one_in(50) => String::new(),
                2 => format!("value {value}"),
                _ => value.to_string(),
            }
        };
        let fields: Vec<String> = (0..distinct.len()).map(&mut field).collect();
        text.extend(fields.join(",").bytes().chain([b'\n']));
        if row % 2_000 == 1_999 {
            // Values of rejects are in a worker's dictionary and in no row.
            text.extend((0..40).flat_map(|i| format!("{},x,r{}\n", row + i, row + i).into_bytes()));
        }
    }
    for encoding in [DictionaryPolicy::Auto, DictionaryPolicy::Always] {
        let dir = scratch();
        let path = write(&dir, "big.csv", &text);
        let mut options = options(&[path], "a BIGINT, b INTEGER, c VARCHAR", Dialect::default());
        options.resources.chunk_bytes = text.len() / 9;
        options.resources.fragments_per_partition = 10;
        options.resources.dictionaries = encoding;
        let models = models(std::slice::from_ref(&text), &options);
        let first = check(&dir, &options, &models, 1);
        for threads in [2, 3, 8] {
            let store = Store::create_or_open(dir.path().join(format!("s{threads}"))).unwrap();
            load(&store, &options.clone().with_threads(threads)).unwrap();
            assert!(segment_bytes(&store, "t") == first, "{threads} threads");
        }
    }
}

/// Columns of each kind whose values are no codes, one of codes with a dictionary in each of several segments, and
/// rejects.
#[test]
fn distinct_values_are_estimated_where_no_dictionary_has_all() {
    const ROWS: usize = 60_000;
    let mut text = Vec::new();
    for row in 0..ROWS {
        let (wide, few) = (row / 2 + 1_000_000, row * 20 / ROWS);
        text.extend(format!("{row},{wide}00000000000000000000,text {row},{few}\n").into_bytes());
        if row % 100 == 0 {
            text.extend(format!("{},x,reject,1\n", row + ROWS).into_bytes());
        }
    }
    let dir = scratch();
    let path = write(&dir, "a.csv", &text);
    let columns = "a BIGINT, b DECIMAL(38,0), c VARCHAR, d INTEGER NOT NULL";
    let mut options = options(&[path], columns, Dialect::default());
    options.max_rejects = RejectLimit::Count(u64::MAX);
    options.resources.chunk_bytes = text.len() / 12;
    options.resources.fragments_per_partition = 3;
    options.resources.memory = 2 << 20;
    options.count_distinct = true;
    let of_threads = |threads: usize| {
        let store = Store::create_or_open(dir.path().join(format!("s{threads}"))).unwrap();
        let report = load(&store, &options.clone().with_threads(threads)).unwrap();
        assert_eq!(report.rows(), ROWS as u64);
        report.columns.into_iter().map(|column| column.distinct).collect::<Vec<_>>()
    };
    let found = of_threads(1);
    for (distinct, exact) in found.iter().zip([60_000.0, 30_000.0, 60_000.0]) {
        let Distinct::About(count) = *distinct else { panic!("{found:?}") };
        assert!((count as f64 - exact).abs() / exact < 0.06, "{found:?}");
    }
    let last = found[3];
    assert!(matches!(last, Distinct::About(20) | Distinct::Exact(20)), "{last:?}");
    for threads in [2, 5] {
        assert_eq!(of_threads(threads), found, "{threads} threads");
    }
}

#[test]
fn too_large_a_share_of_rejects_fails_at_the_end() {
    let dir = scratch();
    let path = write(&dir, "a.csv", b"1\nx\n3\ny\n5\n6\n7\n8\n9\n10\n");
    let mut options = options(&[path], "a INTEGER", Dialect::default());
    let store = Store::create_or_open(dir.path().join("s")).unwrap();
    options.max_rejects = RejectLimit::Percent(19.9);
    let error = load(&store, &options).unwrap_err();
    let Error::Input { place, text } = &error else { panic!("{error:?}") };
    assert_eq!((place.line, place.byte, place.field), (2, 2, 1));
    assert!(text.contains("2 of 10 records were rejected, over --max-rejects 19.9%"), "{text}");
    assert!(store.snapshot().unwrap().tables().is_empty());
    options.max_rejects = RejectLimit::Percent(20.0);
    assert_eq!(load(&store, &options).unwrap().rows(), 8);
    options.max_rejects = RejectLimit::Count(1);
    let error = load(&store, &options).unwrap_err().to_string();
    assert!(error.contains("a.csv:4:1 (byte 6)") && error.contains("--max-rejects 1"), "{error}");
}

#[test]
fn every_task_is_told_and_takes_no_longer_than_the_thread_ran() {
    let dir = scratch();
    let path = write(&dir, "t.csv", &b"abcdefghijkl,1\n".repeat(8));
    let mut options = options(&[path], "a TEXT, b INT", Dialect::default());
    options.resources.chunk_bytes = 16;
    let told = Arc::new(Mutex::new(Vec::new()));
    let tasks = Arc::clone(&told);
    options.hooks.after_task = Some(Arc::new(move |spent_ns| tasks.lock().unwrap().push(spent_ns)));
    load(&Store::create_or_open(dir.path().join("store")).unwrap(), &options).unwrap();
    let told = told.lock().unwrap();
    assert!(told.len() >= 4, "a task for each chunk at least, not {told:?}");
    assert!(told.iter().sum::<u64>() <= process_cpu_ns(), "{told:?}");
}

/// Symptom: a thread of a load panicked, and the command ended by a panic of its own, or not at all.
#[test]
fn a_thread_that_panics_ends_the_load_with_an_error() {
    let dir = scratch();
    let path = write(&dir, "t.csv", &b"abcdefghijkl,1\n".repeat(64));
    let mut options = options(&[path], "a TEXT, b INT", Dialect::default());
    options.resources.chunk_bytes = 16;
    options.hooks.after_task = Some(Arc::new(|_| panic!("a test wants it")));
    let store = Store::create_or_open(dir.path().join("store")).unwrap();
    let error = load(&store, &options).unwrap_err();
    assert!(matches!(&error, Error::Refused(text) if text.contains("panicked")), "{error:?}");
    assert!(store.snapshot().unwrap().tables().is_empty());
}
