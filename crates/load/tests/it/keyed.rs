//! Loads into tables with keys, beside a map: rows are in the order of the key, and no key is there twice.

use std::collections::BTreeMap;

use coload_ddl::{Key, KeyKind};
use coload_source::Dialect;
use coload_store::{LoadMode, Store};
use coload_types::Value;
use proptest::prelude::*;

use crate::model::Row;
use crate::support::*;

const COLUMNS: &str = "k VARCHAR NOT NULL, n INTEGER, v BIGINT, t VARCHAR";

/// Text of rows, with NULL for a number below 0.
fn text(rows: &[(String, i32, i64)]) -> Vec<u8> {
    let line = |(k, n, v): &(String, i32, i64)| {
        let n = if *n < 0 { String::new() } else { n.to_string() };
        format!("{k},{n},{v},text {v}\n")
    };
    rows.iter().map(line).collect::<String>().into_bytes()
}

fn row((k, n, v): &(String, i32, i64)) -> Row {
    let text = |text: &str| Some(Value::Bytes(text.as_bytes().into()));
    let n = (*n >= 0).then_some(Value::Int(i64::from(*n)));
    vec![text(k), n, Some(Value::Int(*v)), text(&format!("text {v}"))]
}

/// The key of a row in its order: NULL is last.
fn order_of(row: &Row, key: &Key) -> Vec<(bool, Option<Value>)> {
    key.columns().iter().map(|c| (row[*c].is_none(), row[*c].clone())).collect()
}

fn check_order(store: &Store, key: &Key) {
    let snapshot = store.snapshot().unwrap();
    let Some(table) = snapshot.table("t") else { return };
    assert_eq!(table.schema.key(), Some(key));
    let all = rows(store, "t");
    let mut from = 0;
    for segment in &table.segments {
        let to = from + segment.rows as usize;
        let keys: Vec<_> = all[from..to].iter().map(|row| order_of(row, key)).collect();
        assert!(keys.is_sorted(), "{} is not in order", segment.file);
        from = to;
    }
}

fn sorted(mut rows: Vec<Row>) -> Vec<Row> {
    rows.sort();
    rows
}

type Rows = Vec<(String, i32, i64)>;

fn load_rows(
    store: &Store,
    dir: &tempfile::TempDir,
    given: &Rows,
    key: &Key,
    threads: usize,
) -> coload_types::Result<()> {
    let path = write(dir, "a.csv", &text(given));
    let mut options = options(&[path], COLUMNS, Dialect::default());
    options.request.schema = options.request.schema.clone().with_key(Some(key.clone())).unwrap();
    options.resources.threads = threads;
    options.resources.chunk_bytes = 64;
    options.resources.fragments_per_partition = 2;
    load(store, &options).map(|_| ())
}

fn drawn_rows() -> impl Strategy<Value = Rows> {
    let key = prop_oneof![Just(String::new()), "[ab]{1,2}", Just("x".repeat(40))];
    proptest::collection::vec((key, -1..3i32, 0..1000i64), 0..30)
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(48))]

    #[test]
    fn keys_come_once_and_rows_are_in_order(
        loads in proptest::collection::vec((drawn_rows(), 1..4usize), 1..5),
        kind in prop_oneof![Just(KeyKind::Primary), Just(KeyKind::Cluster)],
        columns in prop_oneof![Just(vec![0]), Just(vec![1, 0]), Just(vec![2]), Just(vec![0, 1, 2])],
    ) {
        // NULL is no key of a PRIMARY KEY, and such records are rejects.
        let key = Key::new(kind, columns).unwrap();
        let dir = scratch();
        let store = Store::create_or_open(dir.path().join("s")).unwrap();
        let mut model: BTreeMap<Vec<(bool, Option<Value>)>, Vec<Row>> = BTreeMap::new();
        for (given, threads) in &loads {
            let rows_given = given.iter().map(row).filter(|row| {
                !key.is_unique() || key.columns().iter().all(|c| row[*c].is_some())
            });
            let mut next = model.clone();
            let mut is_twice = false;
            for row in rows_given {
                let rows = next.entry(order_of(&row, &key)).or_default();
                is_twice |= key.is_unique() && !rows.is_empty();
                rows.push(row);
            }
            let loaded = load_rows(&store, &dir, given, &key, *threads);
            match loaded {
                Ok(()) => {
                    prop_assert!(!is_twice);
                    model = next;
                }
                Err(error) => prop_assert!(is_twice && error.to_string().contains("PRIMARY KEY"), "{error}"),
            }
            let wanted = sorted(model.values().flatten().cloned().collect());
            prop_assert_eq!(sorted(rows(&store, "t")), wanted);
            check_order(&store, &key);
        }
    }
}

#[test]
fn segments_are_the_same_for_any_number_of_threads() {
    let key = Key::new(KeyKind::Primary, vec![2]).unwrap();
    let given: Rows = (0..3000).map(|i| ("k".into(), 1, i * 7919 % 3001)).collect();
    let made = [1, 2, 5].map(|threads| {
        let dir = scratch();
        let store = Store::create_or_open(dir.path().join("s")).unwrap();
        load_rows(&store, &dir, &given, &key, threads).unwrap();
        check_order(&store, &key);
        segment_bytes(&store, "t")
    });
    assert!(!made[0].is_empty() && made.iter().all(|bytes| *bytes == made[0]));
}

#[test]
fn input_in_order_is_left_as_it_was_written() {
    let given: Rows = (0..500).map(|i| (format!("k{i:04}"), 1, i)).collect();
    let with_key = |columns: Option<Vec<usize>>| {
        let dir = scratch();
        let store = Store::create_or_open(dir.path().join("s")).unwrap();
        let path = write(&dir, "a.csv", &text(&given));
        let mut options = options(&[path], COLUMNS, Dialect::default());
        let key = columns.map(|columns| Key::new(KeyKind::Cluster, columns).unwrap());
        options.request.schema = options.request.schema.clone().with_key(key).unwrap();
        load(&store, &options).unwrap();
        segment_bytes(&store, "t")
    };
    assert_eq!(with_key(Some(vec![0])), with_key(None));
    assert_eq!(with_key(Some(vec![2, 1])), with_key(None));
}

#[test]
fn keys_at_the_edges_are_in_order() {
    let key = Key::new(KeyKind::Primary, vec![0]).unwrap();
    let dir = scratch();
    let store = Store::create_or_open(dir.path().join("s")).unwrap();
    let like = |tail: &str| (format!("{}{tail}", "p".repeat(4096)), 1, 1);
    let given: Rows = vec![
        like("b"),
        ("z".repeat(64 << 10), 1, 2),
        like(""),
        (String::new(), 1, 3),
        like("a"),
        ("é".into(), 1, 4),
    ];
    let path = write(&dir, "a.csv", &text(&given));
    let mut options = options(&[path], COLUMNS, Dialect::default());
    options.request.schema = options.request.schema.clone().with_key(Some(key.clone())).unwrap();
    load(&store, &options).unwrap();
    check_order(&store, &key);
    let floats = write(&dir, "f.csv", b"nan\n1.5\n-0.0\n0.0\n-inf\ninf\n-1e300\n");
    let mut options = crate::support::options(&[floats], "f DOUBLE", Dialect::default());
    options.request.table = "f".into();
    options.request.schema = options.request.schema.clone().with_key(Some(key)).unwrap();
    let error = load(&store, &options).map(|_| ()).unwrap_err().to_string();
    // SQL's -0.0 is 0.0: one key.
    assert!(error.contains("the key ('0.0') of PRIMARY KEY (f) comes twice"), "{error}");
}

#[test]
fn a_load_that_says_another_key_is_refused() {
    let dir = scratch();
    let store = Store::create_or_open(dir.path().join("s")).unwrap();
    let given: Rows = vec![("b".into(), 1, 1), ("a".into(), 2, 2)];
    let key = |columns| Key::new(KeyKind::Primary, columns).unwrap();
    load_rows(&store, &dir, &given, &key(vec![0]), 1).unwrap();
    let more: Rows = vec![("d".into(), 1, 1), ("c".into(), 2, 2)];
    let error = load_rows(&store, &dir, &more, &key(vec![0, 1]), 1).unwrap_err().to_string();
    assert!(error.contains("PRIMARY KEY (k, n): it has PRIMARY KEY (k)"), "{error}");
    // A load that says nothing keeps the table's.
    let path = write(&dir, "b.csv", &text(&more));
    let options = options(&[path], COLUMNS, Dialect::default());
    assert_eq!(options.request.mode, LoadMode::Append);
    load(&store, &options).unwrap();
    check_order(&store, &key(vec![0]));
    assert_eq!(rows(&store, "t").len(), 4);
}
