//! Indexes against what the rows say: random loads, deletes and merges; values that come twice; writers that die; damage.

use std::collections::BTreeMap;
use std::os::unix::process::ExitStatusExt;
use std::path::Path;

use coload_ddl::{Index, IndexKind};
use coload_store::failpoints::WRITE_INDEX;
use coload_store::{
    IndexKey, OnConflict, OnExisting, OnMissing, Store, VerifyOptions, Within, merge_small, repair,
    verify,
};
use coload_types::{Plain, Result, Value};

use crate::child;
use crate::conflicts::{Row, delete, found, load, random_row};
use crate::support::{Random, check_no_leftovers, scratch};

const INDEXES: [&[usize]; 3] = [&[1], &[2], &[2, 1]];

fn index(name: &str, kind: IndexKind, columns: &[usize]) -> Index {
    Index::new(name, kind, columns.to_vec()).unwrap()
}

fn create(store: &Store, name: &str, kind: IndexKind, columns: &[usize]) -> Result<Option<u64>> {
    store.create_index("t", &index(name, kind, columns), OnExisting::Fail)
}

fn verified(store: &Store) {
    let report = verify(store.path(), &VerifyOptions { threads: 1, progress: None }).unwrap();
    assert_eq!(report.damages, Vec::new());
}

/// Compares what each tree says of values, and of what is between two, with the rows of its segment.
fn check_trees(store: &Store) {
    let snapshot = store.snapshot().unwrap();
    let Some(table) = snapshot.table("t") else { return };
    let wanted: Vec<&[usize]> = table.schema.indexes().iter().map(Index::columns).collect();
    for entry in &table.segments {
        let file = snapshot.segment(table, entry).unwrap();
        let has: Vec<&[usize]> = file.indexed_columns().collect();
        assert!(wanted.iter().all(|columns| has.contains(columns)), "{has:?} of {wanted:?}");
        assert_eq!(has.len(), entry.trees.len());
        let columns: Vec<Plain> = (0..3)
            .map(|column| {
                let mut plain = Plain::empty(file.physical(column));
                (0..file.page_rows().len())
                    .for_each(|page| file.decode_page(column, page, &mut plain).unwrap());
                plain
            })
            .collect();
        for (number, indexed) in has.iter().enumerate() {
            let tree = file.index(number).unwrap();
            let mut rows: BTreeMap<Vec<Option<Value>>, Vec<u32>> = BTreeMap::new();
            for row in 0..entry.rows as u32 {
                let key = indexed.iter().map(|column| columns[*column].get(row as usize)).collect();
                rows.entry(key).or_default().push(row);
            }
            assert_eq!(tree.keys(), rows.len() as u64);
            for (key, wanted) in &rows {
                let Some(key) = key.iter().cloned().collect::<Option<Vec<Value>>>() else {
                    continue;
                };
                let entries = tree.entries_of(&IndexKey::of(&key)).unwrap();
                assert_eq!(&tree.rows(entries).unwrap(), wanted, "{key:?}");
            }
            // Of the first column: a value and all that follow, and what is between two.
            let firsts: Vec<Value> = rows.keys().filter_map(|key| key[0].clone()).collect();
            for low in firsts.iter().step_by(5) {
                for high in firsts.iter().step_by(7) {
                    let within = |value: &Value| low < value && value <= high;
                    let mut wanted: Vec<u32> = rows
                        .iter()
                        .filter(|(key, _)| key[0].as_ref().is_some_and(within))
                        .flat_map(|(_, rows)| rows.clone())
                        .collect();
                    let [low, high] =
                        [low, high].map(|value| IndexKey::of(std::slice::from_ref(value)));
                    let entries = tree.entries_between(
                        &IndexKey::of(&[]),
                        Some((&low, Within::Excluded)),
                        Some((&high, Within::Included)),
                    );
                    let mut found = tree.rows(entries.unwrap()).unwrap();
                    wanted.sort_unstable();
                    found.sort_unstable();
                    assert_eq!(found, wanted);
                }
            }
            let all = tree.entries_between(&IndexKey::of(&[]), None, None).unwrap();
            let nulls = rows.iter().filter(|(key, _)| key[0].is_none()).map(|(_, rows)| rows.len());
            assert_eq!(all.end - all.start + nulls.sum::<usize>() as u64, entry.rows);
            let none = IndexKey::of(&[Value::Bytes(b"not there".as_slice().into())]);
            assert!(tree.entries_of(&none).unwrap().is_empty());
        }
    }
}

#[test]
fn trees_say_what_rows_say_through_loads_deletes_and_merges() {
    let mut random = Random::new();
    for _ in 0..5 {
        let dir = scratch();
        let store = Store::create_or_open(dir.path().join("s")).unwrap();
        for step in 0..12 {
            let keys = [4, 12, 60][random.below(3) as usize];
            let mut segments: Vec<Vec<Row>> = Vec::new();
            for _ in 0..random.below(3) {
                let count = random.below(40);
                segments.push((0..count).map(|_| random_row(&mut random, keys)).collect());
            }
            load(&store, &[0, 1], &segments, OnConflict::Replace).unwrap();
            if step == 3 {
                // Of segments that are there.
                for (number, columns) in INDEXES.iter().enumerate() {
                    create(&store, &format!("i{number}"), IndexKind::Plain, columns).unwrap();
                }
            }
            check_trees(&store);
            if random.below(3) == 0 {
                delete(&store, &store.snapshot().unwrap(), |row| row.0 % 3 == 1);
                check_trees(&store);
            }
            if random.below(3) == 0 {
                merge_small(&store, "t").unwrap();
                check_trees(&store);
            }
        }
        store.drop_index("I1", OnMissing::Fail).unwrap();
        check_trees(&store);
        store.clean().unwrap();
        check_no_leftovers(&store);
        verified(&store);
        let error = store.drop_index("i1", OnMissing::Fail).unwrap_err().to_string();
        assert!(error.contains("index i1 does not exist"), "{error}");
        assert_eq!(store.drop_index("i1", OnMissing::Ignore).unwrap(), None);
    }
}

fn row(a: i64, text: &str, v: Option<i64>) -> Row {
    (a, text.to_owned(), v)
}

#[test]
fn a_value_of_a_unique_index_comes_once_among_the_rows_that_are_there() {
    let dir = scratch();
    let store = Store::create_or_open(dir.path().join("s")).unwrap();
    let add = |rows: &[Row], how| load(&store, &[0], &[rows.to_vec()], how);
    let fails = |rows: &[Row], what: &str| {
        let before = store.snapshot().unwrap().version();
        let error = add(rows, OnConflict::Replace).unwrap_err().to_string();
        assert!(error.contains(what), "{error}");
        assert_eq!(store.snapshot().unwrap().version(), before);
        store.clean().unwrap();
        check_no_leftovers(&store);
    };
    add(&[row(1, "a", Some(1)), row(2, "b", None), row(3, "c", None)], OnConflict::Error).unwrap();
    create(&store, "u", IndexKind::Unique, &[2]).unwrap();
    // Others, NULL again, and the same value in the row that gives way.
    add(&[row(4, "d", None), row(5, "e", Some(2))], OnConflict::Error).unwrap();
    add(&[row(5, "f", Some(2)), row(1, "g", Some(1))], OnConflict::Replace).unwrap();
    fails(&[row(6, "h", Some(2))], "the key (2) of UNIQUE (v) (u) would be there twice");
    fails(&[row(7, "h", Some(8)), row(8, "h", Some(8))], "the key (8)");
    let two = [vec![row(7, "h", Some(8))], vec![row(8, "h", Some(8))]];
    let error = load(&store, &[0], &two, OnConflict::Error).unwrap_err().to_string();
    assert!(error.contains("the key (8)"), "{error}");
    // A row that is deleted has no value.
    delete(&store, &store.snapshot().unwrap(), |row| row.0 == 5);
    add(&[row(6, "h", Some(2))], OnConflict::Error).unwrap();
    merge_small(&store, "t").unwrap();
    fails(&[row(9, "h", Some(2))], "the key (2)");
    // What comes twice is no UNIQUE index, and the name is free then.
    add(&[row(10, "h", None)], OnConflict::Error).unwrap();
    let error = create(&store, "w", IndexKind::Unique, &[1]).unwrap_err().to_string();
    assert!(error.contains("the key ('h') of UNIQUE (b) (w) would be there twice"), "{error}");
    create(&store, "w", IndexKind::Unique, &[1, 0]).unwrap();
    let error = create(&store, "W", IndexKind::Plain, &[0]).unwrap_err().to_string();
    assert!(error.contains("index W exists already"), "{error}");
    check_trees(&store);
    verified(&store);
}

#[test]
fn one_value_many_times_and_long_texts_are_found() {
    let dir = scratch();
    let store = Store::create_or_open(dir.path().join("s")).unwrap();
    let long = "y".repeat(64 << 10);
    let mut rows: Vec<Row> = (0..30_000).map(|a| row(a, "same", Some(7))).collect();
    rows.extend([row(-1, "", None), row(-2, &long, Some(7)), row(-3, &(long.clone() + "y"), None)]);
    load(&store, &[0], &[rows], OnConflict::Error).unwrap();
    create(&store, "b", IndexKind::Plain, &[1]).unwrap();
    create(&store, "v", IndexKind::Plain, &[2, 1]).unwrap();
    assert!(create(&store, "u", IndexKind::Unique, &[2]).is_err());
    let snapshot = store.snapshot().unwrap();
    let table = snapshot.table("t").unwrap();
    let file = snapshot.segment(table, &table.segments[0]).unwrap();
    let count = |number: usize, key: &[Value]| {
        let entries = file.index(number).unwrap().entries_of(&IndexKey::of(key)).unwrap();
        entries.end - entries.start
    };
    let text = |text: &str| Value::Bytes(text.as_bytes().into());
    assert_eq!([count(0, &[text("same")]), count(0, &[text("")])], [30_000, 1]);
    assert_eq!([count(0, &[text(&long)]), count(0, &[text("yy")])], [1, 0]);
    assert_eq!(
        [count(1, &[Value::Int(7)]), count(1, &[Value::Int(7), text("same")])],
        [30_001, 30_000]
    );
    verified(&store);
}

/// What a child does: loads and CREATE INDEX, with an index that grows.
pub fn scenario(path: &Path) -> Result<()> {
    let store = Store::create_or_open(path)?;
    child::say("begun");
    let rows =
        |from: i64| -> Vec<Row> { (from..from + 40).map(|a| row(a, "b", Some(a))).collect() };
    load(&store, &[0], &[rows(0)], OnConflict::Replace)?;
    create(&store, "u", IndexKind::Unique, &[2])?;
    for round in 1..4 {
        load(&store, &[0], &[rows(round * 30)], OnConflict::Replace)?;
    }
    merge_small(&store, "t").map(|_| ())
}

#[test]
fn a_writer_that_dies_while_it_writes_trees_leaves_the_table_as_it_was() {
    for nth in 1.. {
        let dir = scratch();
        let path = dir.path().join("s");
        let mut process = child::start(&path, &format!("index {WRITE_INDEX} {nth}"));
        let said: Vec<String> = child::lines(&mut process).collect();
        let status = process.wait().unwrap();
        let store = Store::create_or_open(&path).unwrap();
        check_trees(&store);
        let rows = found(&store.snapshot().unwrap());
        assert!(rows.iter().all(|(.., row)| row.2 == Some(row.0)), "{said:?}");
        store.clean().unwrap();
        check_no_leftovers(&store);
        verified(&store);
        if status.success() {
            assert!(nth > 3 && rows.len() == 130, "{nth} {}", rows.len());
            break;
        }
        assert_eq!(status.signal(), Some(6), "{said:?}");
    }
}

#[test]
fn damaged_trees_are_found_and_built_anew() {
    let dir = scratch();
    let path = dir.path().join("s");
    let store = Store::create_or_open(&path).unwrap();
    load(&store, &[0], &[(0..200).map(|a| row(a, "b", Some(a / 2))).collect()], OnConflict::Error)
        .unwrap();
    create(&store, "v", IndexKind::Plain, &[2]).unwrap();
    let file = std::fs::read_dir(path.join("segments")).unwrap().flatten().map(|e| e.path());
    let file = file.into_iter().find(|p| p.extension().is_some_and(|e| e == "index")).unwrap();
    let good = std::fs::read(&file).unwrap();
    // Every byte behind the head and the padding is under some checksum.
    for at in (64..good.len()).step_by(7) {
        let mut bad = good.clone();
        bad[at] ^= 1 << (at % 8);
        std::fs::write(&file, &bad).unwrap();
        let report = verify(&path, &VerifyOptions { threads: 1, progress: None }).unwrap();
        assert_eq!(report.damages.len(), 1, "byte {at}");
        assert_eq!(report.damages[0].part.to_string(), "index");
    }
    let report = repair(&path, &VerifyOptions { threads: 1, progress: None }, None).unwrap();
    assert!(report.repaired.is_some());
    let store = Store::open(&path).unwrap();
    check_trees(&store);
    assert_eq!(found(&store.snapshot().unwrap()).len(), 200);
    verified(&store);
}
