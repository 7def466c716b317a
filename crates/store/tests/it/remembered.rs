//! Which loads a table remembers: those whose rows it holds, for a time, however many there are.

use std::fs;

use coload_store::{
    LOADS_KEPT_MAX, LoadId, LoadKind, LoadMode, LoadRecord, OnMissing, REMEMBER_DAYS, Store,
};
use coload_types::Error;

use crate::support::{check_no_leftovers, fill, names, scratch, target};

const DAY_US: i64 = 86_400_000_000;

fn store() -> (tempfile::TempDir, Store) {
    let dir = scratch();
    let store = Store::create_or_open(dir.path().join("s")).unwrap();
    (dir, store)
}

fn now_us() -> i64 {
    let now = std::time::SystemTime::now().duration_since(std::time::UNIX_EPOCH).unwrap();
    now.as_micros() as i64
}

/// A load that is known by `key`, and finished `days` ago.
fn load_as(store: &Store, mode: LoadMode, key: u128, days: i64) -> LoadId {
    let begun = store.begin_load(target("t", mode)).unwrap();
    let (segments, mut record) = fill(&begun);
    (record.key, record.finished_us) = (LoadId::from_u128(key), now_us() - days * DAY_US);
    let id = begun.id();
    begun.publish(segments, record).unwrap();
    id
}

/// A load without rows, which costs little.
pub fn load_nothing(store: &Store, key: u128) {
    let begun = store.begin_load(target("t", LoadMode::Append)).unwrap();
    let mut record = LoadRecord::new(begun.id(), LoadKind::Append);
    (record.key, record.finished_us) = (LoadId::from_u128(key), now_us());
    begun.publish(Vec::new(), record).unwrap();
}

fn knows(store: &Store, key: u128) -> Option<LoadId> {
    let found = store.snapshot().unwrap().published("t", LoadId::from_u128(key)).unwrap();
    found.map(|load| load.id)
}

/// Symptom: load A; TRUNCATE; load A: "published already", and the table is empty.
#[test]
fn a_load_is_remembered_as_long_as_its_table_holds_it() {
    let (_dir, store) = store();
    let id = load_as(&store, LoadMode::Append, 1, 0);
    assert_eq!(knows(&store, 1), Some(id));
    assert_eq!(knows(&store, 2), None);
    store.truncate_table("t").unwrap().unwrap();
    assert_eq!(knows(&store, 1), None);
    assert_ne!(load_as(&store, LoadMode::Append, 1, 0), id, "ids are never used again");
    assert!(knows(&store, 1).is_some());
    store.drop_table("t", OnMissing::Fail).unwrap();
    assert_eq!(knows(&store, 1), None);
    load_as(&store, LoadMode::Append, 1, 0);
    let replaced = load_as(&store, LoadMode::Replace, 2, 0);
    assert_eq!((knows(&store, 1), knows(&store, 2)), (None, Some(replaced)));
    load_as(&store, LoadMode::Replace, 1, 0);
    assert!(knows(&store, 1).is_some() && knows(&store, 2).is_none());
    let snapshot = store.snapshot().unwrap();
    let shown = &snapshot.table("t").unwrap().loads;
    assert_eq!(shown.len(), 3, "what was forgotten is still shown");
}

#[test]
fn a_load_is_forgotten_after_as_many_days_as_the_store_says() {
    let (_dir, store) = store();
    load_as(&store, LoadMode::Append, 1, i64::from(REMEMBER_DAYS) - 1);
    load_as(&store, LoadMode::Append, 2, i64::from(REMEMBER_DAYS) + 1);
    assert!(knows(&store, 1).is_some() && knows(&store, 2).is_none());
    store.set_remember_days(REMEMBER_DAYS + 9).unwrap().unwrap();
    assert_eq!(store.set_remember_days(REMEMBER_DAYS + 9).unwrap(), None);
    assert!(knows(&store, 2).is_some());
    store.set_remember_days(1).unwrap().unwrap();
    assert!(knows(&store, 1).is_none());
}

/// Symptom: after 1,000 other loads the same load ran twice. Cause: a table kept the records of its last 1,000 loads.
#[test]
fn a_load_is_remembered_however_many_come_after_it() {
    let (_dir, store) = store();
    let id = load_as(&store, LoadMode::Append, 1, 0);
    for key in 2..2 * LOADS_KEPT_MAX as u128 {
        load_nothing(&store, key);
    }
    assert_eq!(knows(&store, 1), Some(id));
    assert!(knows(&store, 700).is_some() && knows(&store, 1_900).is_some());
    let snapshot = store.snapshot().unwrap();
    let table = snapshot.table("t").unwrap().clone();
    assert!(table.loads.len() <= LOADS_KEPT_MAX && table.older.len() >= 2);
    drop(snapshot);
    // A file of loads that is damaged or gone is an error, not a load that runs twice.
    let path = store.path().join("segments").join(&table.older[0].file);
    let good = fs::read(&path).unwrap();
    for at in [0, 9, good.len() / 2, good.len() - 1] {
        let mut bad = good.clone();
        bad[at] ^= 1;
        fs::write(&path, bad).unwrap();
        let found = store.snapshot().unwrap().published("t", LoadId::from_u128(1));
        assert!(matches!(found, Err(Error::Corrupt(_))), "byte {at}: {found:?}");
    }
    fs::remove_file(&path).unwrap();
    let found = store.snapshot().unwrap().published("t", LoadId::from_u128(1));
    assert!(matches!(found, Err(Error::Corrupt(_))), "{found:?}");
    fs::write(&path, good).unwrap();
    // They go with what they tell of.
    store.truncate_table("t").unwrap().unwrap();
    assert_eq!(knows(&store, 1), None);
    check_no_leftovers(&store);
    assert!(names(&store.path().join("segments")).is_empty());
}

/// Of 100,000 loads a manifest keeps what 1,000 take, and 35 bytes for each 500 before.
#[test]
fn a_manifest_does_not_grow_with_the_number_of_loads() {
    let (_dir, store) = store();
    let bytes = || {
        let dir = store.path().join("manifest");
        let name = names(&dir).pop_last().unwrap();
        fs::metadata(dir.join(name)).unwrap().len()
    };
    for key in 0..LOADS_KEPT_MAX as u128 {
        load_nothing(&store, key);
    }
    let of_thousand = bytes();
    for key in 0..2 * LOADS_KEPT_MAX as u128 {
        load_nothing(&store, key);
    }
    let of_many = bytes();
    println!("{of_thousand} bytes of 1,000 loads, {of_many} of 3,000");
    assert!(of_many < of_thousand + 5 * 40, "{of_thousand}, {of_many}");
}
