//! Rows by their keys, beside a map: `get`, `get_many`, `range`, whatever segments, conflicts and deletions there are.

use std::collections::BTreeMap;
use std::ops::Bound;

use coload_ddl::{Key, KeyKind};
use coload_scan::{KeyTable, Row};
use coload_source::Dialect;
use coload_store::{Basis, Deletions, OnConflict, Store, VerifyOptions, merge_small, verify};
use coload_types::{Error, Value, ordinal_from_f64};
use proptest::prelude::*;

use crate::support::*;

const COLUMNS: &str =
    "a BIGINT NOT NULL, t VARCHAR NOT NULL, v BIGINT, f DOUBLE NOT NULL, d DECIMAL(30,2) NOT NULL";

type Given = (i64, String, Option<i64>);

fn row_of((a, t, v): &Given) -> Row {
    vec![
        Some(Value::Int(*a)),
        Some(Value::Bytes(t.as_bytes().into())),
        v.map(Value::Int),
        Some(Value::Int(ordinal_from_f64(*a as f64 / 2.0))),
        Some(Value::Wide(i128::from(*a) * 100_000_000_000_000_000_000)),
    ]
}

fn load_rows(store: &Store, rows: &[Given], key: &Key) {
    let dir = scratch();
    let line = |(a, t, v): &Given| {
        let v = v.map(|v| v.to_string()).unwrap_or_default();
        format!("{a},{t},{v},{},{a}000000000000000000.00\n", *a as f64 / 2.0)
    };
    let text: String = rows.iter().map(line).collect();
    let path = write(&dir, "a.csv", text.as_bytes());
    let mut options = options(&[path], COLUMNS, Dialect::default());
    options.request.schema = options.request.schema.clone().with_key(Some(key.clone())).unwrap();
    options.request.on_conflict = OnConflict::Replace;
    options.resources.chunk_bytes = 64;
    options.resources.fragments_per_partition = 3;
    load(store, &options).unwrap();
}

fn key_of(row: &Row, key: &Key) -> Vec<Value> {
    key.columns().iter().map(|column| row[*column].clone().unwrap()).collect()
}

type Model = BTreeMap<Vec<Value>, Row>;

fn check(store: &Store, key: &Key, model: &Model, others: &[Given]) {
    let table = KeyTable::new(store.snapshot().unwrap(), "T").unwrap();
    assert_eq!(table.key(), key);
    let keys: Vec<Vec<Value>> =
        model.keys().cloned().chain(others.iter().map(|row| key_of(&row_of(row), key))).collect();
    for key in &keys {
        assert_eq!(table.get(key).unwrap().as_ref(), model.get(key), "{key:?}");
    }
    let wanted: Vec<Option<Row>> = keys.iter().map(|key| model.get(key).cloned()).collect();
    assert_eq!(table.get_many(&keys).unwrap(), wanted);
    // Bounds of all keys and of their first columns.
    for pair in keys.chunks(2) {
        let (low, high) = (&pair[0], &pair[pair.len() - 1]);
        for count in 1..=low.len() {
            let (low, high) = (&low[..count], &high[..count]);
            for (low, high) in [
                (Bound::Included(low), Bound::Included(high)),
                (Bound::Excluded(low), Bound::Unbounded),
                (Bound::Unbounded, Bound::Excluded(high)),
            ] {
                let is_in = |key: &&Vec<Value>| {
                    let start = &key[..count];
                    (match low {
                        Bound::Included(low) => start >= low,
                        Bound::Excluded(low) => start > low,
                        Bound::Unbounded => true,
                    }) && match high {
                        Bound::Included(high) => start <= high,
                        Bound::Excluded(high) => start < high,
                        Bound::Unbounded => true,
                    }
                };
                let wanted: Vec<Row> =
                    model.keys().filter(is_in).map(|key| model[key].clone()).collect();
                let found: Vec<Row> = table.range(low, high).unwrap().map(Result::unwrap).collect();
                assert_eq!(found, wanted, "{low:?} {high:?}");
            }
        }
    }
}

fn drawn_rows() -> impl Strategy<Value = Vec<Given>> {
    let text = prop_oneof![Just("x".repeat(50)), "[ab]{1,3}"];
    let number = prop_oneof![4 => -9..30i64, 1 => Just(40_000), 1 => Just(-70_000_000)];
    proptest::collection::vec((number, text, proptest::option::of(0..9i64)), 1..40)
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(24))]

    #[test]
    fn rows_are_found_by_their_keys(
        loads in proptest::collection::vec((drawn_rows(), any::<bool>()), 1..5),
        columns in prop_oneof![
            Just(vec![0]), Just(vec![1]), Just(vec![0, 1]), Just(vec![1, 0]), Just(vec![3, 1]), Just(vec![4]),
        ],
        others in drawn_rows(),
    ) {
        let key = Key::new(KeyKind::Primary, columns).unwrap();
        let dir = scratch();
        let store = Store::create_or_open(dir.path().join("s")).unwrap();
        let mut model = Model::new();
        for (mut rows, is_sorted) in loads {
            if is_sorted {
                rows.sort_by_key(|row| key_of(&row_of(row), &key));
            }
            load_rows(&store, &rows, &key);
            model.extend(rows.iter().map(|row| (key_of(&row_of(row), &key), row_of(row))));
            check(&store, &key, &model, &others);
        }
        let snapshot = store.snapshot().unwrap();
        let table = snapshot.table("t").unwrap();
        // Each segment has a tree, whether it came in order or not.
        let has_tree = |entry| snapshot.segment(table, entry).unwrap().tree_parts().is_some();
        prop_assert!(table.segments.iter().all(has_tree));
        let mut gone = Deletions::default();
        for entry in &table.segments {
            let deleted = snapshot.deleted_rows(entry).unwrap();
            let is_there = |row: &u64| !deleted.as_ref().is_some_and(|d| d.contains(*row));
            gone.extend(entry, (0..entry.rows).step_by(3).filter(is_there)).unwrap();
        }
        store.delete_rows(Basis::Rows(table), &gone).unwrap();
        let kept: Model = KeyTable::new(store.snapshot().unwrap(), "t")
            .unwrap()
            .range(Bound::Unbounded, Bound::Unbounded)
            .unwrap()
            .map(|row| row.map(|row| (key_of(&row, &key), row)).unwrap())
            .collect();
        prop_assert_eq!(kept.len() as u64, model.len() as u64 - gone.rows());
        model.retain(|key, _| kept.contains_key(key));
        prop_assert_eq!(&kept, &model);
        check(&store, &key, &model, &others);
        for _ in 0..8 {
            load_rows(&store, &others[..1], &key);
        }
        model.insert(key_of(&row_of(&others[0]), &key), row_of(&others[0]));
        merge_small(&store, "t").unwrap();
        check(&store, &key, &model, &others);
        let report = verify(store.path(), &VerifyOptions { threads: 1, progress: None }).unwrap();
        prop_assert_eq!(report.damages, Vec::new());
    }
}

#[test]
fn other_keys_and_tables_are_refused() {
    let dir = scratch();
    let store = Store::create_or_open(dir.path().join("s")).unwrap();
    let key = Key::new(KeyKind::Primary, vec![0, 1]).unwrap();
    load_rows(&store, &[(1, "a".into(), None)], &key);
    let table = KeyTable::new(store.snapshot().unwrap(), "t").unwrap();
    let (number, text) = (Value::Int(1), Value::Bytes((*b"a").into()));
    assert!(table.get(&[number.clone(), text.clone()]).unwrap().is_some());
    for other in [vec![number.clone()], vec![], vec![text.clone(), number.clone()]] {
        let error = table.get(&other).unwrap_err();
        assert!(matches!(&error, Error::Invalid(t) if t.contains("PRIMARY KEY (a, t)")), "{error}");
    }
    assert!(table.range(Bound::Included(&[text]), Bound::Unbounded).is_err());
    let path = write(&dir, "b.csv", b"1\n");
    let mut options = options(&[path], "x BIGINT", Dialect::default());
    options.request.table = "u".into();
    load(&store, &options).unwrap();
    let error = KeyTable::new(store.snapshot().unwrap(), "u").unwrap_err().to_string();
    assert!(error.contains("table u has no PRIMARY KEY"), "{error}");
}
