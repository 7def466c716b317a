//! Loads of Parquet are the loads of the text of the same values: the same rows, the same rejects.

use std::path::PathBuf;

use ::parquet::basic::Compression;
use coload_load::InputForm;
use coload_types::{Error, Value};
use coload_wire::RejectLimit;
use proptest::prelude::*;

use crate::parquet_files::{KINDS, Shape, bytes, text};
use crate::support::{Options, load, rows, scratch, segment_bytes, write};
use crate::text::Random;
use crate::typed_loads::{check_as_text, draw_columns, draw_kinds, store, typed_options};
use crate::typed_values::{Seeds, seeds};

pub fn parquet_options(paths: &[PathBuf], columns: &str) -> Options {
    typed_options(InputForm::Parquet, paths, columns)
}

proptest! {
    #![proptest_config(ProptestConfig { failure_persistence: None, ..ProptestConfig::with_cases(
        std::env::var("PROPTEST_CASES").ok().and_then(|n| n.parse().ok()).unwrap_or(96)
    ) })]

    #[test]
    fn parquet_is_loaded_as_its_text_is(seed: u64, is_checked: bool) {
        let dir = scratch();
        let mut random = Random::new(seed);
        let kinds = draw_kinds(KINDS.len(), &mut random);
        let columns = draw_columns(kinds.len(), is_checked, &mut random);
        let (mut csv, mut groups) = (String::new(), Vec::new());
        for _ in 0..random.below(3) + 1 {
            let rows = random.below(80);
            let group: Vec<Seeds> = kinds.iter().map(|_| seeds(rows, &mut random)).collect();
            for row in 0..rows {
                let fields: Vec<String> =
                    kinds.iter().zip(&group).map(|(kind, seeds)| text(*kind, seeds[row])).collect();
                csv.push_str(&fields.join(","));
                csv.push('\n');
            }
            groups.push(group);
        }
        let shape = Shape::draw(&mut random);
        let file = write(&dir, "in.parquet", &bytes(&kinds, &groups, shape, &mut random));
        check_as_text(&dir, (InputForm::Parquet, file), (&csv, &columns))?;
    }
}

const SHAPE: Shape = Shape {
    version: 1,
    compression: Compression::SNAPPY,
    page_rows: 1000,
    dictionary_bytes: 1 << 20,
};

/// A row group is longer than a chunk, and row groups are shorter: rows keep their order, whatever is cut or put together.
#[test]
fn row_groups_are_cut_and_put_together() {
    let dir = scratch();
    let mut random = Random::new(7);
    let run = |from: u32, to: u32| vec![(from..to).map(Some).collect::<Seeds>()];
    let mut groups = vec![run(0, 30_000)];
    groups.extend((0..300).map(|n| run(30_000 + n * 10, 30_010 + n * 10)));
    groups.push(run(0, 0));
    let path = write(&dir, "in.parquet", &bytes(&[0], &groups, SHAPE, &mut random));
    for threads in [1, 3] {
        let store = store(&dir, &format!("s{threads}"));
        let paths = [path.clone(), write(&dir, "more.parquet", &std::fs::read(&path).unwrap())];
        let mut options = parquet_options(&paths, "c0 BIGINT");
        options.resources.chunk_bytes = 16 << 10;
        options.resources.threads = threads;
        let report = load(&store, &options).unwrap();
        assert_eq!(report.rows(), 66_000);
        let found = rows(&store, "t");
        let expected = |row: i64| [Some(Value::Int(row % 33_000 - 35_000))];
        assert!((0..66_000).all(|row| found[row as usize] == expected(row)));
    }
}

/// The symbols of texts are chosen for the first rows of a partition, or are those of the first partition, whoever reads which first.
#[test]
fn any_number_of_threads_gives_the_same_segments() {
    let dir = scratch();
    let mut random = Random::new(7);
    // Texts that are alike, then others: symbols of the first partition suit some of those behind it.
    let groups = [0..20_000, 0..15_000, 300_000..330_000, 0..9]
        .map(|run| vec![run.map(Some).collect::<Seeds>(); 3]);
    let shape = Shape { dictionary_bytes: 1, ..SHAPE };
    let path = write(&dir, "in.parquet", &bytes(&[9, 0, 11], &groups, shape, &mut random));
    let mut all = Vec::new();
    for threads in [1, 2, 4] {
        let store = store(&dir, &format!("s{threads}"));
        let mut options =
            parquet_options(std::slice::from_ref(&path), "c0 VARCHAR, c1 BIGINT, c2 DATE");
        options.resources.chunk_bytes = 32 << 10;
        options.resources.fragments_per_partition = 5;
        options.resources.threads = threads;
        assert_eq!(load(&store, &options).unwrap().rows(), 65_009);
        let found = rows(&store, "t");
        assert_eq!(found[20_001], found[1]);
        all.push(segment_bytes(&store, "t"));
    }
    assert!(all[0] == all[1] && all[0] == all[2]);
}

/// A strict load ends with the first record that is none, and says where it is.
#[test]
fn a_strict_load_tells_the_first_record_that_is_none() {
    let dir = scratch();
    let mut random = Random::new(7);
    let groups = [vec![vec![Some(35_001), None]], vec![vec![Some(35_300), Some(0), Some(1)]]];
    let path = write(&dir, "in.parquet", &bytes(&[0], &groups, SHAPE, &mut random));
    let mut options = parquet_options(&[path], "c0 SMALLINT");
    options.max_rejects = RejectLimit::Count(0);
    let error = load(&store(&dir, "s"), &options).unwrap_err().to_string();
    assert!(
        error.contains("in.parquet:4:1 (byte ") && error.contains("\"-35000\" is not SMALLINT"),
        "{error}"
    );
}

/// Dictionaries stand for long texts: what they would take is told before it is taken.
#[test]
fn what_memory_does_not_hold_is_a_limit() {
    let dir = scratch();
    let mut random = Random::new(7);
    let groups = [vec![(0..400_000).map(Some).collect::<Seeds>()]];
    let shape = Shape { page_rows: 1 << 20, ..SHAPE };
    let path = write(&dir, "in.parquet", &bytes(&[9], &groups, shape, &mut random));
    let mut options = parquet_options(&[path], "c0 VARCHAR");
    options.resources.memory = 3 << 20;
    match load(&store(&dir, "s"), &options) {
        Err(Error::Limit(text)) => {
            assert!(text.contains("--memory") && text.contains("row group 1"), "{text}");
        }
        other => panic!("{:?}", other.map(|report| report.rows())),
    }
    options.resources.memory = 64 << 20;
    assert_eq!(load(&store(&dir, "s"), &options).unwrap().rows(), 400_000);
}
