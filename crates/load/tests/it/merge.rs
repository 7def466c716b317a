//! Small loads and what merging leaves of them: the same rows in the same order, in few segments.

use std::time::{Duration, Instant};

use coload_source::Dialect;
use coload_store::Store;
use coload_store::merge_small;
use coload_transform::DictionaryPolicy;
use coload_types::Value;
use proptest::prelude::*;

use crate::model::{Model, Row};
use crate::support::{load, merged, options, rows, scratch, write};
use crate::text::{self, Random};

/// Most segments that small loads may leave.
const SEGMENTS_MAX: usize = 30;

fn segment_count(store: &Store) -> usize {
    store.snapshot().unwrap().table("t").map_or(0, |t| t.segments.len())
}

proptest! {
    #![proptest_config(ProptestConfig { failure_persistence: None, ..ProptestConfig::with_cases(60) })]

    #[test]
    fn merged_segments_hold_the_rows_of_their_loads(seed: u64, loads in 8usize..40) {
        let mut random = Random::new(seed);
        let dir = scratch();
        let (dialect, columns) = (text::dialect(&mut random), text::columns(&mut random));
        let store = Store::create_or_open(dir.path().join("s")).unwrap();
        let mut expected: Vec<Row> = Vec::new();
        for number in 0..loads {
            let count = random.of(&[0, 1, 5, 40, 400]);
            let text = text::text(&mut random, &dialect, &columns, count);
            let path = write(&dir, &format!("{number}.csv"), &text);
            let mut options = options(&[path], &columns.sql, dialect.clone());
            options.resources.chunk_bytes = random.of(&[500, 10 << 20]);
            options.resources.memory = random.of(&[1, 1 << 30]);
            options.resources.dictionaries = random.of(&[DictionaryPolicy::Auto, DictionaryPolicy::Always]);
            merged(load(&store, &options).unwrap()).unwrap();
            expected.extend(Model::read(&text, &dialect, &options.schema).rows);
        }
        prop_assert_eq!(rows(&store, "t"), expected);
        prop_assert!(segment_count(&store) <= SEGMENTS_MAX);
    }
}

#[test]
fn a_thousand_small_loads_leave_few_segments_and_every_row() {
    const LOADS: usize = 1_000;
    let dir = scratch();
    let store = Store::create_or_open(dir.path().join("s")).unwrap();
    let path = dir.path().join("in.csv");
    let mut merged = 0;
    for load_number in 0..LOADS {
        // Ids that are all different, few-valued codes, and text of many values.
        let line = |row: usize| {
            let id = load_number * 10 + row;
            format!("{id},{},note {} of {load_number}\n", id % 3, id * 7919)
        };
        std::fs::write(&path, (0..10).map(line).collect::<String>()).unwrap();
        let columns = "id BIGINT NOT NULL, code SMALLINT, note VARCHAR";
        let mut options = options(std::slice::from_ref(&path), columns, Dialect::default());
        options.resources.threads = 1;
        let merge = crate::support::merged(load(&store, &options).unwrap()).unwrap();
        merged += merge.rows;
        assert!(segment_count(&store) <= SEGMENTS_MAX, "{}", segment_count(&store));
        assert_eq!(merge.segments_after, segment_count(&store));
    }
    // A row is rewritten about once a level. Levels are of bytes: merged pages have codecs that take less, so that more
    // rows are merged before they reach the next (8.2 times a row).
    assert!(merged < 10 * LOADS as u64 * 9, "{merged} rows were rewritten");
    let began = Instant::now();
    let found = rows(&Store::open(store.path()).unwrap(), "t");
    assert!(began.elapsed() < Duration::from_secs(5), "reading took {:?}", began.elapsed());
    assert_eq!(found.len(), LOADS * 10);
    for (id, row) in found.iter().enumerate() {
        let note = format!("note {} of {}", id * 7919, id / 10);
        let expected = [
            Some(Value::Int(id as i64)),
            Some(Value::Int(id as i64 % 3)),
            Some(Value::Bytes(note.into_bytes().into())),
        ];
        assert_eq!(row[..], expected);
    }
    // Ids have no dictionary that is larger than they are.
    let snapshot = store.snapshot().unwrap();
    let table = snapshot.table("t").unwrap();
    let largest = table.segments.iter().max_by_key(|s| s.rows).unwrap();
    assert!(largest.rows >= 1_000);
    let segment = snapshot.segment(table, largest).unwrap();
    assert!(segment.dictionary(0).unwrap().is_none() && segment.dictionary(1).unwrap().is_some());
    let bytes: u64 = table.segments.iter().map(|s| s.bytes).sum();
    assert!(bytes < 400_000, "{bytes} bytes");
}

#[test]
fn a_merge_of_a_table_that_is_not_there_does_nothing() {
    let dir = scratch();
    let store = Store::create_or_open(dir.path().join("s")).unwrap();
    assert_eq!(merge_small(&store, "absent").unwrap().merges, 0);
}

#[test]
fn a_merge_that_fails_does_not_fail_the_load() {
    let dir = scratch();
    let store = Store::create_or_open(dir.path().join("s")).unwrap();
    let path = write(&dir, "in.csv", b"1\n2\n");
    let options = options(&[path], "a INTEGER", Dialect::default());
    for _ in 0..3 {
        load(&store, &options).unwrap();
    }
    // A segment that is damaged fails the merge that reads it, each time, and no load.
    let snapshot = store.snapshot().unwrap();
    let first = snapshot.segment_path(&snapshot.table("t").unwrap().segments[0]);
    let mut bytes = std::fs::read(&first).unwrap();
    bytes[8] ^= 1;
    std::fs::write(&first, bytes).unwrap();
    let store = Store::open(store.path()).unwrap();
    for number in 4..=9 {
        let merge = merged(load(&store, &options).unwrap());
        assert_eq!(merge.is_err(), number >= 8, "{merge:?}");
        if let Err(error) = merge {
            assert!(error.to_string().contains(".seg"), "{error}");
        }
    }
    assert_eq!(segment_count(&store), 9);
}
