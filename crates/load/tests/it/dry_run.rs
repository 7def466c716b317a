//! A dry run tells what a load does, and writes nothing.

use coload_source::Dialect;
use coload_store::{LoadMode, Store};
use coload_wire::RejectLimit;
use proptest::prelude::*;

use crate::support::{Options, dry_run, load, options, scratch, write};
use crate::text::{self, Random};

/// Names of everything in a directory, and when it was written.
fn listing(dir: &std::path::Path) -> Vec<(String, std::time::SystemTime)> {
    let mut found = Vec::new();
    for entry in std::fs::read_dir(dir).unwrap() {
        let entry = entry.unwrap();
        let written = entry.metadata().unwrap().modified().unwrap();
        found.push((entry.path().display().to_string(), written));
        if entry.path().is_dir() {
            found.extend(listing(&entry.path()));
        }
    }
    found.sort();
    found
}

proptest! {
    #![proptest_config(ProptestConfig { failure_persistence: None, ..ProptestConfig::with_cases(40) })]

    #[test]
    fn a_dry_run_tells_what_the_load_reports(seed: u64, count in 0usize..400) {
        let dir = scratch();
        let mut random = Random::new(seed);
        let (dialect, columns) = (text::dialect(&mut random), text::columns(&mut random));
        let path = write(&dir, "in.csv", &text::text(&mut random, &dialect, &columns, count));
        let mut options = options(&[path], &columns.sql, dialect);
        options.resources.chunk_bytes = 1_000;
        options.count_distinct = true;
        let store = Store::create_or_open(dir.path().join("s")).unwrap();
        let before = listing(&dir.path().join("s"));
        let dry = dry_run(Some(&store), &options).unwrap();
        prop_assert_eq!(before, listing(&dir.path().join("s")));
        let loaded = load(&store, &options).unwrap();
        prop_assert_eq!(&dry.columns, &loaded.columns);
        prop_assert_eq!(&dry.files, &loaded.files);
        prop_assert_eq!(&dry.rejects, &loaded.rejects);
        prop_assert_eq!(dry.bytes_stored, loaded.bytes_stored);
        prop_assert!((dry.dry_run.unwrap().share - 1.0).abs() < 1e-9);
    }
}

/// 200,000 records of 10 bytes.
fn numbers() -> Vec<u8> {
    (0..200_000).flat_map(|i| format!("{i:06},{}\n", i % 90 + 10).into_bytes()).collect()
}

fn check_sample(options: &Options) {
    let mut sampled = options.clone();
    sampled.sample_bytes = Some(500_000);
    let dry = dry_run(None, &sampled).unwrap();
    assert!((50_000..60_000).contains(&dry.rows()), "{}", dry.rows());
    let estimated = dry.dry_run.unwrap().of_all(dry.rows() as f64);
    assert!((180_000.0..220_000.0).contains(&estimated), "{estimated}");
    assert_eq!(dry.reject_count(), 0);
}

#[test]
fn a_sample_tells_of_the_whole() {
    let dir = scratch();
    let plain = write(&dir, "in.csv", &numbers());
    check_sample(&options(&[plain], "a INTEGER, b INTEGER", Dialect::default()));
    let members: Vec<u8> = numbers().chunks(100_000).flat_map(zstd).collect();
    let compressed = write(&dir, "in.csv.zst", &members);
    check_sample(&options(&[compressed], "a INTEGER, b INTEGER", Dialect::default()));
}

fn zstd(text: &[u8]) -> Vec<u8> {
    let mut out = Vec::with_capacity(zstd_safe::compress_bound(text.len()));
    zstd_safe::compress(&mut out, text, 1).unwrap();
    out
}

#[test]
fn rejects_are_counted_however_many_and_a_target_that_does_not_fit_is_told() {
    let dir = scratch();
    let path = write(&dir, "in.csv", b"1,2\nx,y\nz\n3,4\n");
    let mut options = options(&[path], "a INTEGER, b INTEGER", Dialect::default());
    options.max_rejects = RejectLimit::Count(0);
    let dry = dry_run(None, &options).unwrap();
    assert_eq!((dry.rows(), dry.reject_count(), dry.rejects.len()), (2, 2, 2));
    let store = Store::create_or_open(dir.path().join("s")).unwrap();
    options.max_rejects = RejectLimit::Count(2);
    load(&store, &options).unwrap();
    options.mode = LoadMode::Create;
    assert!(dry_run(Some(&store), &options).is_err());
}
