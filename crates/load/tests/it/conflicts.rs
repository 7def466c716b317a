//! Loads of keys that are there already, beside a map: the order of the input decides, for any number of threads.

use std::collections::BTreeMap;

use coload_ddl::{Key, KeyKind};
use coload_load::LoadReport;
use coload_source::Dialect;
use coload_store::{KeyCounts, OnConflict, Store};
use coload_types::{Plain, Result, Value};
use proptest::prelude::*;

use crate::support::*;

const COLUMNS: &str = "k VARCHAR NOT NULL, v BIGINT, t VARCHAR";

type Given = (String, Option<i64>);

/// What happens to keys that are there, and the value of records that delete.
type Rule = (OnConflict, Option<i64>);

fn load_rows(
    store: &Store,
    dir: &tempfile::TempDir,
    inputs: &[Vec<Given>],
    (on_conflict, deletes): Rule,
    threads: usize,
) -> Result<LoadReport> {
    let line = |(k, v): &Given| match v {
        Some(v) => format!("{k},{v},text {v}\n"),
        None => format!("{k},,\n"),
    };
    let paths: Vec<_> = inputs
        .iter()
        .enumerate()
        .map(|(number, rows)| {
            let text: String = rows.iter().map(line).collect();
            write(dir, &format!("{number}.csv"), text.as_bytes())
        })
        .collect();
    let mut options = options(&paths, COLUMNS, Dialect::default());
    let key = Key::new(KeyKind::Primary, vec![0]).unwrap();
    options.request.schema = options.request.schema.clone().with_key(Some(key)).unwrap();
    options.request.on_conflict = on_conflict;
    options.request.delete_where = deletes.map(|value| (1, value.to_string()));
    options.resources.threads = threads;
    options.resources.chunk_bytes = 64;
    options.resources.fragments_per_partition = 2;
    load(store, &options)
}

/// The rows that are not deleted, by their keys.
fn live_rows(store: &Store) -> BTreeMap<String, Option<i64>> {
    let snapshot = store.snapshot().unwrap();
    let mut rows = BTreeMap::new();
    let Some(table) = snapshot.table("t") else { return rows };
    for entry in &table.segments {
        let file = snapshot.segment(table, entry).unwrap();
        let deleted = snapshot.deleted_rows(entry).unwrap();
        let columns = [0, 1].map(|column| {
            let mut plain = Plain::empty(file.physical(column));
            (0..file.page_rows().len())
                .for_each(|page| file.decode_page(column, page, &mut plain).unwrap());
            plain
        });
        for row in (0..entry.rows).filter(|row| !deleted.as_ref().is_some_and(|d| d.contains(*row)))
        {
            let Some(Value::Bytes(key)) = columns[0].get(row as usize) else { panic!("no key") };
            let value = columns[1].get(row as usize).map(|v| match v {
                Value::Int(v) => v,
                other => panic!("{other:?}"),
            });
            let before = rows.insert(String::from_utf8(key.to_vec()).unwrap(), value);
            assert_eq!(before, None, "a key is there twice");
        }
    }
    assert_eq!(table.rows(), rows.len() as u64);
    rows
}

/// What a load makes of a map; `None` when it fails.
fn model(
    there: &BTreeMap<String, Option<i64>>,
    given: &[Given],
    (on_conflict, deletes): Rule,
) -> Option<(BTreeMap<String, Option<i64>>, KeyCounts)> {
    let (mut own, mut counts) = (BTreeMap::new(), KeyCounts::default());
    // Of the row that is there and the one that comes the latter wins.
    let wins = |there: &Option<i64>, comes: &Option<i64>| match on_conflict {
        OnConflict::Error => None,
        OnConflict::Ignore => Some(false),
        OnConflict::Replace | OnConflict::ReplaceOnce => Some(true),
        OnConflict::Newest(_) => Some(comes >= there),
    };
    for (key, value) in given {
        let Some(before) = own.get(key) else {
            own.insert(key.clone(), *value);
            continue;
        };
        counts.twice += 1;
        if wins(before, value)? {
            own.insert(key.clone(), *value);
        }
    }
    let mut next = there.clone();
    for (key, value) in own {
        let goes = deletes.is_some() && value == deletes;
        match next.get(&key).map(|there| wins(there, &value)) {
            None | Some(Some(true)) if goes => {
                counts.deleting += 1;
                counts.deleted += u64::from(next.remove(&key).is_some());
                continue;
            }
            None => counts.added += 1,
            Some(None) => return None,
            Some(Some(true)) => counts.replaced += 1,
            Some(Some(false)) => {
                counts.ignored += 1;
                continue;
            }
        }
        next.insert(key, value);
    }
    Some((next, counts))
}

fn drawn_inputs() -> impl Strategy<Value = Vec<Vec<Given>>> {
    let key = prop_oneof![Just(String::new()), "[ab]{1,3}", Just("x".repeat(40))];
    let value = proptest::option::of(0..9i64);
    let rows = proptest::collection::vec((key, value), 1..25);
    proptest::collection::vec(rows, 1..4)
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(40))]

    #[test]
    fn the_order_of_the_input_decides(
        loads in proptest::collection::vec(
            (drawn_inputs(), prop_oneof![
                Just((OnConflict::Error, None)), Just((OnConflict::Ignore, None)),
                Just((OnConflict::Replace, None)), Just((OnConflict::Newest(1), None)),
                Just((OnConflict::Replace, Some(4))), Just((OnConflict::Newest(1), Some(4))),
            ], 1..4usize),
            1..6,
        ),
    ) {
        let dir = scratch();
        let store = Store::create_or_open(dir.path().join("s")).unwrap();
        let mut there = BTreeMap::new();
        for (inputs, rule, threads) in &loads {
            let given: Vec<Given> = inputs.concat();
            let loaded = load_rows(&store, &dir, inputs, *rule, *threads);
            match (model(&there, &given, *rule), loaded) {
                (Some((next, counts)), Ok(report)) => {
                    prop_assert_eq!(report.keys, Some(counts));
                    prop_assert_eq!(report.rows(), counts.kept());
                    there = next;
                }
                (None, Err(error)) => prop_assert!(error.to_string().contains("PRIMARY KEY (k)"), "{error}"),
                (wanted, loaded) => prop_assert!(false, "{wanted:?} {loaded:?}"),
            }
            prop_assert_eq!(&live_rows(&store), &there);
        }
    }
}

#[test]
fn conflicts_are_settled_alike_by_any_number_of_threads() {
    let rows =
        |seed: i64| (0..1500).map(move |i| (format!("k{}", i * 7919 % 700), Some(i * seed % 97)));
    let first: Vec<Given> = rows(3).step_by(2).collect();
    let second: Vec<Given> = rows(5).collect();
    for rule in [
        (OnConflict::Ignore, None),
        (OnConflict::Replace, None),
        (OnConflict::Newest(1), None),
        (OnConflict::Replace, Some(4)),
    ] {
        let made = [1, 2, 5].map(|threads| {
            let dir = scratch();
            let store = Store::create_or_open(dir.path().join("s")).unwrap();
            load_rows(&store, &dir, std::slice::from_ref(&first), rule, threads).unwrap();
            let report =
                load_rows(&store, &dir, std::slice::from_ref(&second), rule, threads).unwrap();
            (live_rows(&store), report.keys, segment_bytes(&store, "t"))
        });
        assert!(made[1..].iter().all(|other| *other == made[0]), "{rule:?}");
    }
}

/// The bits of -0 and of NaNs of either sign were compared, so that `--delete-where v=0` left the record of -0 a row of the table.
#[test]
fn floats_that_delete_are_compared_as_sql_does() {
    for (value, gone) in [("0", ["a", "b"]), ("-0", ["a", "b"]), ("nan", ["d", "e"])] {
        for columns in ["k VARCHAR NOT NULL, v DOUBLE", "k VARCHAR NOT NULL, v REAL"] {
            let dir = tempfile::tempdir().unwrap();
            let input = write(&dir, "a.csv", b"a,-0\nb,0\nc,1\nd,nan\ne,-nan\nf,\n");
            let store = Store::create_or_open(dir.path().join("store")).unwrap();
            let mut options = options(&[input], columns, Dialect::default());
            let key = Key::new(KeyKind::Primary, vec![0]).unwrap();
            options.request.schema = options.request.schema.clone().with_key(Some(key)).unwrap();
            options.request.on_conflict = OnConflict::Replace;
            options.request.delete_where = Some((1, value.to_owned()));
            load(&store, &options).unwrap();
            let snapshot = store.snapshot().unwrap();
            let table = snapshot.table("t").unwrap();
            let mut left = Vec::new();
            for entry in &table.segments {
                let file = snapshot.segment(table, entry).unwrap();
                let deleted = snapshot.deleted_rows(entry).unwrap();
                let mut keys = Plain::empty(file.physical(0));
                (0..file.page_rows().len())
                    .for_each(|page| file.decode_page(0, page, &mut keys).unwrap());
                let is_left = |row: &u64| !deleted.as_ref().is_some_and(|d| d.contains(*row));
                for row in (0..entry.rows).filter(is_left) {
                    let Some(Value::Bytes(key)) = keys.get(row as usize) else { panic!("no key") };
                    left.push(String::from_utf8(key.to_vec()).unwrap());
                }
            }
            left.sort();
            let expected: Vec<_> =
                ["a", "b", "c", "d", "e", "f"].into_iter().filter(|k| !gone.contains(k)).collect();
            assert_eq!(left, expected, "{columns}: {value}");
        }
    }
}
