//! One process loads: what is visible when, and what is refused.

use coload_ddl::Schema;
use coload_store::{LOADS_KEPT_MAX, LoadKind, LoadMode, LoadRecord, LoadTarget, OnMissing, Store};
use coload_types::{Column, DataType, Error, Result};

use crate::support::{check_content, check_no_leftovers, fill, load, schema, target};

fn store() -> (tempfile::TempDir, Store) {
    let dir = tempfile::tempdir().unwrap();
    let store = Store::create_or_open(dir.path().join("s")).unwrap();
    (dir, store)
}

fn message<T: std::fmt::Debug>(result: Result<T>) -> String {
    match result.unwrap_err() {
        Error::Invalid(text) => text,
        other => panic!("{other:?}"),
    }
}

#[test]
fn a_load_is_invisible_until_it_is_published_whole() {
    let (_dir, store) = store();
    let begun = store.begin_load(target("t", LoadMode::Append)).unwrap();
    let (segments, record) = fill(&begun);
    assert!(store.snapshot().unwrap().tables().is_empty());
    let version = begun.publish(segments.clone(), record.clone()).unwrap();
    let snapshot = store.snapshot().unwrap();
    assert_eq!(snapshot.version(), version);
    let table = snapshot.require_table("T").unwrap();
    assert_eq!(table.segments, segments);
    assert_eq!(table.loads, [LoadRecord { version, ..record }]);
    assert_eq!((table.loads_count, table.rows()), (1, 20));
    drop(snapshot);
    check_content(&store);
    check_no_leftovers(&store);
}

#[test]
fn a_load_that_is_dropped_leaves_nothing() {
    let (_dir, store) = store();
    let before = store.snapshot().unwrap().version();
    let begun = store.begin_load(target("t", LoadMode::Append)).unwrap();
    fill(&begun);
    drop(begun);
    assert_eq!(store.snapshot().unwrap().version(), before);
    check_no_leftovers(&store);
}

#[test]
fn two_loads_become_visible_in_one_version_or_not_at_all() {
    let (_dir, store) = store();
    let begin = |name: &str, mode| {
        let begun = store.begin_load(target(name, mode)).unwrap();
        let (segments, record) = fill(&begun);
        begun.ready(segments, record).unwrap()
    };
    let before = store.snapshot().unwrap().version();
    let (rows, rejects) = (begin("t", LoadMode::Append), begin("bad", LoadMode::Append));
    assert_eq!(store.snapshot().unwrap().version(), before);
    assert_eq!(rows.publish(Some(rejects)).unwrap().version, before + 1);
    let names = |store: &Store| -> Vec<String> {
        store.snapshot().unwrap().tables().iter().map(|t| t.name.clone()).collect()
    };
    assert_eq!(names(&store), ["t", "bad"]);
    check_content(&store);
    check_no_leftovers(&store);
    // The second does not fit any more.
    let (rows, rejects) = (begin("u", LoadMode::Append), begin("bad", LoadMode::Append));
    store.drop_table("bad", OnMissing::Fail).unwrap();
    let text = message(rows.publish(Some(rejects)));
    assert!(text.contains("table bad was dropped"), "{text}");
    drop((begin("u", LoadMode::Append), begin("v", LoadMode::Append)));
    assert_eq!(names(&store), ["t"]);
    check_no_leftovers(&store);
}

#[test]
fn the_modes_append_replace_and_create() {
    let (_dir, store) = store();
    let first = load(&store, "t", LoadMode::Create).unwrap();
    let second = load(&store, "t", LoadMode::Append).unwrap();
    let ids = |s: &Store| -> Vec<_> {
        s.snapshot().unwrap().table("t").unwrap().segments.iter().map(|s| s.load).collect()
    };
    assert_eq!(ids(&store), [first, first, second, second]);
    let text = message(load(&store, "t", LoadMode::Create));
    assert!(text.contains("table t exists already") && text.contains("--replace"), "{text}");
    let third = load(&store, "t", LoadMode::Replace).unwrap();
    assert_eq!(ids(&store), [third, third]);
    assert_eq!(store.snapshot().unwrap().table("t").unwrap().loads_count, 3);
    check_no_leftovers(&store);
}

#[test]
fn a_load_of_other_columns_is_refused_by_name() {
    let (_dir, store) = store();
    load(&store, "t", LoadMode::Append).unwrap();
    let begin = |columns: Vec<Column>, mode| {
        let schema = Schema::new(columns).unwrap();
        store.begin_load(LoadTarget { name: "t".into(), schema, mode }).map(drop)
    };
    let columns = schema().columns().to_vec();

    let mut other_type = columns.clone();
    other_type[1].data_type = DataType::Date;
    let text = message(begin(other_type.clone(), LoadMode::Append));
    assert!(text.contains("column 2 is note VARCHAR in the table and note DATE"), "{text}");

    let mut looser = columns.clone();
    looser[0].nullable = true;
    let text = message(begin(looser, LoadMode::Append));
    assert!(text.contains("id BIGINT NOT NULL in the table and id BIGINT in the load"), "{text}");

    let text = message(begin(columns[..1].to_vec(), LoadMode::Append));
    assert!(text.contains("column note VARCHAR is only in the table"), "{text}");

    let mut stricter = columns.clone();
    stricter[1].nullable = false;
    stricter[0].name = "ID".into();
    begin(stricter, LoadMode::Append).unwrap();
    begin(other_type, LoadMode::Replace).unwrap();
}

#[test]
fn a_replacing_load_brings_its_schema() {
    let (_dir, store) = store();
    load(&store, "t", LoadMode::Append).unwrap();
    let mut columns = schema().columns().to_vec();
    columns[1].name = "remark".into();
    let renamed = Schema::new(columns).unwrap();
    let mode = LoadMode::Replace;
    let begun =
        store.begin_load(LoadTarget { name: "t".into(), schema: renamed.clone(), mode }).unwrap();
    let (segments, record) = fill(&begun);
    begun.publish(segments, record).unwrap();
    assert_eq!(store.snapshot().unwrap().table("t").unwrap().schema, renamed);
}

/// Begins a load, lets `meanwhile` happen, and publishes.
fn publish_after(store: &Store, mode: LoadMode, meanwhile: impl FnOnce()) -> Result<u64> {
    let begun = store.begin_load(target("t", mode)).unwrap();
    let (segments, record) = fill(&begun);
    meanwhile();
    begun.publish(segments, record)
}

#[test]
fn what_happens_to_the_table_meanwhile_is_noticed() {
    let (_dir, store) = store();
    load(&store, "t", LoadMode::Append).unwrap();
    let append = || load(&store, "t", LoadMode::Append).map(drop).unwrap();
    let drop_it = || {
        store.drop_table("t", OnMissing::Fail).unwrap();
    };

    publish_after(&store, LoadMode::Append, append).unwrap();
    let rows = store.snapshot().unwrap().table("t").unwrap().rows();
    assert_eq!(rows, 60, "both appends are there");

    let text = message(publish_after(&store, LoadMode::Append, drop_it));
    assert!(text.contains("table t was dropped while"), "{text}");

    publish_after(&store, LoadMode::Append, append).unwrap();
    assert_eq!(store.snapshot().unwrap().table("t").unwrap().rows(), 40, "both made the table");

    let remake = || {
        drop_it();
        append();
    };
    let text = message(publish_after(&store, LoadMode::Append, remake));
    assert!(text.contains("dropped and made again"), "{text}");

    publish_after(&store, LoadMode::Replace, drop_it).unwrap();
    drop_it();
    let text = message(publish_after(&store, LoadMode::Create, append));
    assert!(text.contains("exists already"), "{text}");
    check_content(&store);
    check_no_leftovers(&store);
}

#[test]
fn segments_and_record_must_agree() {
    let (_dir, store) = store();
    let publish = |spoil: &dyn Fn(&mut Vec<coload_store::SegmentEntry>, &mut LoadRecord)| {
        let begun = store.begin_load(target("t", LoadMode::Append)).unwrap();
        let (mut segments, mut record) = fill(&begun);
        spoil(&mut segments, &mut record);
        message(begun.publish(segments, record))
    };
    assert!(publish(&|_, r| r.rows += 1).contains("21 rows"));
    assert!(publish(&|s, _| s[1].bytes += 1).contains("bytes, its entry says"));
    assert!(publish(&|s, _| s[1].file = s[0].file.clone()).contains("twice"));
    assert!(publish(&|s, _| s[1].file = "other.seg".into()).contains("not one of load"));
    assert!(publish(&|s, _| drop(s[1].columns.pop())).contains("statistics of 1 columns"));
    assert!(publish(&|s, _| s[0].columns.swap(0, 1)).contains("read back"));
    assert!(publish(&|_, r| r.inputs = vec![String::new(); 99]).contains("read back"));
    check_no_leftovers(&store);
}

#[test]
fn load_records_are_kept_up_to_a_limit_and_counted_beyond() {
    let (_dir, store) = store();
    for _ in 0..LOADS_KEPT_MAX + 3 {
        let begun = store.begin_load(target("t", LoadMode::Append)).unwrap();
        let record = LoadRecord::new(begun.id(), LoadKind::Insert);
        begun.publish(Vec::new(), record).unwrap();
    }
    let snapshot = store.snapshot().unwrap();
    let table = snapshot.table("t").unwrap();
    assert!((LOADS_KEPT_MAX / 2..=LOADS_KEPT_MAX).contains(&table.loads.len()));
    assert_eq!(table.loads_count, LOADS_KEPT_MAX as u64 + 3);
}

#[test]
fn stores_snapshots_and_loads_go_from_thread_to_thread() {
    fn check<T: Send + Sync>() {}
    check::<Store>();
    check::<coload_store::Snapshot>();
    check::<coload_store::LoadDir>();
    check::<coload_store::MergeDir>();
}
