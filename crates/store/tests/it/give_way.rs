//! Rows that give way for values of UNIQUE, against what a list of rows says: random loads of some segments into tables with any key; two
//! writers of the same values.

use coload_ddl::{Index, IndexKind, Key, KeyKind, Schema};
use coload_store::{KeyCounts, OnConflict, OnExisting, Store, VerifyOptions, merge_small, verify};
use coload_types::Value;

use crate::conflicts::{Row, found, load_into, schema, target_of, values};
use crate::support::{Random, check_no_leftovers, scratch};

/// The values of some columns, unless one is NULL.
fn values_of(row: &Row, columns: &[usize]) -> Option<Vec<Value>> {
    columns.iter().map(|column| values(row)[*column].clone()).collect()
}

fn shares(a: &Row, b: &Row, columns: &[usize]) -> bool {
    let value = values_of(a, columns);
    value.is_some() && value == values_of(b, columns)
}

/// What is left of `rows` when each gives way to one of `there` and to one before it with the same values of some columns; how many
/// gave way to either.
fn settled(there: &[Row], rows: &[Row], keys: &[&[usize]]) -> (Vec<Row>, u64, u64) {
    let meets = |row: &Row, others: &[Row]| {
        keys.iter().any(|key| others.iter().any(|other| shares(row, other, key)))
    };
    let (mut left, mut to_table, mut to_load) = (Vec::new(), 0, 0);
    for row in rows {
        match (meets(row, there), meets(row, &left)) {
            (true, _) => to_table += 1,
            (_, true) => to_load += 1,
            _ => left.push(row.clone()),
        }
    }
    (left, to_table, to_load)
}

/// What a load makes of the rows that are there; `None` when it fails.
fn model_load(
    there: &[Row],
    rows: &[Row],
    (key, unique): (Option<&[usize]>, &[&[usize]]),
    rule: OnConflict,
) -> Option<(Vec<Row>, KeyCounts)> {
    let mut counts = KeyCounts::default();
    let mut left = rows.to_vec();
    if let (Some(key), true) = (key, rule == OnConflict::Ignore || rule == OnConflict::IgnoreKey) {
        // Of the records with a key one is chosen before it meets the table.
        let (chosen, _, twice) = settled(&[], &left, &[key]);
        let (new, ignored, _) = settled(there, &chosen, &[key]);
        (left, counts.twice, counts.ignored) = (new, twice, ignored);
    }
    let gives: Vec<&[usize]> = match rule {
        OnConflict::Ignore => unique.to_vec(),
        OnConflict::IgnoreUnique(index) => vec![unique[index]],
        _ => Vec::new(),
    };
    // With IgnoreUnique a key that comes twice fails before rows give way.
    if key.is_some_and(|key| settled(there, &left, &[key]).0.len() < left.len()) {
        return None;
    }
    let (left, to_table, to_load) = settled(there, &left, &gives);
    if settled(there, &left, unique).0.len() < left.len() {
        return None;
    }
    (counts.ignored, counts.twice) = (counts.ignored + to_table, counts.twice + to_load);
    counts.added = left.len() as u64;
    Some((there.iter().cloned().chain(left).collect(), counts))
}

fn small_row(random: &mut Random) -> Row {
    let keys = [3, 8, 40][random.below(3) as usize];
    let value = (random.below(6) > 0).then(|| random.below(keys) as i64);
    (random.below(4 * keys) as i64, format!("{}", random.below(keys)), value)
}

fn sorted(mut rows: Vec<Row>) -> Vec<Row> {
    rows.sort();
    rows
}

fn unique(schema: Schema, indexes: &[&[usize]]) -> Schema {
    let index = |columns: &&[usize]| Index::new("", IndexKind::Unique, columns.to_vec()).unwrap();
    schema.with_indexes(indexes.iter().map(index).collect()).unwrap()
}

#[test]
fn rows_with_values_of_unique_that_are_there_give_way_as_a_list_says() {
    let mut random = Random::new();
    let all: [&[&[usize]]; 5] =
        [&[&[2]], &[&[1]], &[&[2, 1]], &[&[2], &[1]], &[&[1, 2], &[0], &[2]]];
    let (mut added, mut failed) = (0, 0);
    for round in 0..60 {
        let indexes = all[round % all.len()];
        let kind = [None, Some(KeyKind::Primary), Some(KeyKind::Cluster)][round % 3];
        let columns: &[usize] = if round % 2 == 0 { &[0] } else { &[1, 0] };
        let key = kind.map(|kind| Key::new(kind, columns.to_vec()).unwrap());
        let of = unique(schema(&[0]).with_key(key).unwrap(), indexes);
        let primary = (kind == Some(KeyKind::Primary)).then_some(columns);
        let dir = scratch();
        let store = Store::create_or_open(dir.path().join("s")).unwrap();
        store.create_table("t", &of, OnExisting::Fail).unwrap();
        let mut model = Vec::new();
        for _ in 0..8 {
            let segments: Vec<Vec<Row>> = (0..random.below(4))
                .map(|_| (0..random.below(25)).map(|_| small_row(&mut random)).collect())
                .collect();
            let rule = match random.below(4) {
                0 => OnConflict::IgnoreUnique(random.below(indexes.len() as u64) as usize),
                1 if primary.is_some() => OnConflict::IgnoreKey,
                _ => OnConflict::Ignore,
            };
            let rows: Vec<Row> = segments.concat();
            let wanted = model_load(&model, &rows, (primary, indexes), rule);
            let before = store.snapshot().unwrap().version();
            match (load_into(&store, target_of(of.clone()), &segments, rule), wanted) {
                (Ok(shown), Some((next, counts))) => {
                    let keys = shown.keys.unwrap();
                    assert_eq!(keys, counts, "{rule:?} {indexes:?} {kind:?}");
                    assert_eq!(keys.kept(), (next.len() - model.len()) as u64);
                    let snapshot = store.snapshot().unwrap();
                    let record = snapshot.table("t").unwrap().loads.last().unwrap().rows;
                    assert_eq!(record, keys.kept());
                    added += keys.kept();
                    model = next;
                }
                (Err(_), None) => {
                    assert_eq!(store.snapshot().unwrap().version(), before);
                    failed += 1;
                }
                (shown, wanted) => {
                    panic!("{shown:?}, not {wanted:?} {rule:?} {indexes:?} {kind:?}")
                }
            }
            let snapshot = store.snapshot().unwrap();
            let rows = found(&snapshot).into_iter().map(|(.., row)| row).collect();
            assert_eq!(sorted(rows), sorted(model.clone()), "{rule:?} {indexes:?} {kind:?}");
            if random.below(3) == 0 {
                merge_small(&store, "t").unwrap();
            }
        }
        store.clean().unwrap();
        check_no_leftovers(&store);
        let report = verify(store.path(), &VerifyOptions { threads: 1, progress: None }).unwrap();
        assert_eq!(report.damages, Vec::new());
    }
    assert!(added > 500 && failed > 20, "{added} {failed}");
}

#[test]
fn of_two_writers_of_a_value_with_ignore_both_succeed_and_it_is_there_once() {
    let dir = scratch();
    let store = Store::create_or_open(dir.path().join("s")).unwrap();
    let of = unique(schema(&[0]).with_key(None).unwrap(), &[&[2]]);
    store.create_table("t", &of, OnExisting::Fail).unwrap();
    let writer = |number: i64| {
        let (store, of) = (store.clone(), of.clone());
        move || {
            let mut kept = 0;
            for load in 0..15_i64 {
                let rows =
                    (0..8).map(|v| (number, format!("{load}"), Some(load * 5 + v))).collect();
                let target = target_of(of.clone());
                let shown = load_into(&store, target, &[rows], OnConflict::Ignore).unwrap();
                kept += shown.keys.unwrap().kept();
            }
            kept
        }
    };
    let threads: Vec<_> = (0..3).map(|number| std::thread::spawn(writer(number))).collect();
    let kept: u64 = threads.into_iter().map(|thread| thread.join().unwrap()).sum();
    let mut values: Vec<_> =
        found(&store.snapshot().unwrap()).into_iter().map(|(.., row)| row.2).collect();
    values.sort_unstable();
    assert_eq!(values, (0..78).map(Some).collect::<Vec<_>>());
    assert_eq!(kept, 78);
}

#[test]
fn rows_that_wait_for_each_other_in_a_long_chain_are_refused() {
    let dir = scratch();
    let store = Store::create_or_open(dir.path().join("s")).unwrap();
    let of = unique(schema(&[0]).with_key(None).unwrap(), &[&[1], &[2]]);
    let chain = |count: i64| -> Vec<Row> {
        // Each row has a value in common with the one before, in one column or the other by turns.
        (0..count).map(|n| (n, format!("{}", n / 2), Some((n + 1) / 2))).collect()
    };
    let load =
        |count| load_into(&store, target_of(of.clone()), &[chain(count)], OnConflict::Ignore);
    let error = load(400).unwrap_err().to_string();
    assert!(error.contains("in chains of over 64"), "{error}");
    assert!(store.snapshot().unwrap().table("t").is_none());
    let keys = load(100).unwrap().keys.unwrap();
    assert_eq!((keys.added, keys.twice), (50, 50));
}
