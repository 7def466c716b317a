//! Stores and tables: made, opened, dropped, emptied, merged.

use std::fs;

use coload_store::{
    LoadMode, MergeDir, MergeOutcome, OnExisting, OnMissing, SegmentEntry, Store, TableEntry,
};
use coload_types::Error;

use crate::support::{ROWS, check_no_leftovers, load, schema, target, write_segment};

fn store() -> (tempfile::TempDir, Store) {
    let dir = tempfile::tempdir().unwrap();
    let store = Store::create_or_open(dir.path().join("s")).unwrap();
    (dir, store)
}

fn table(store: &Store) -> TableEntry {
    store.snapshot().unwrap().require_table("t").unwrap().clone()
}

#[test]
fn a_directory_with_other_files_is_not_made_a_store() {
    let dir = tempfile::tempdir().unwrap();
    fs::write(dir.path().join("thesis.tex"), "x").unwrap();
    let text = Store::create_or_open(dir.path()).unwrap_err().to_string();
    assert!(text.contains("holds other files, such as thesis.tex"), "{text}");
    assert_eq!(fs::read_dir(dir.path()).unwrap().count(), 1);
    let text = Store::create_or_open(dir.path().join("thesis.tex")).unwrap_err().to_string();
    assert!(text.contains("not a directory"), "{text}");
    let text = Store::open(dir.path()).unwrap_err().to_string();
    assert!(text.contains("has no file `format`"), "{text}");
    let text = Store::open(dir.path().join("absent")).unwrap_err().to_string();
    assert!(text.contains("there is no store") && text.contains("--into"), "{text}");
}

#[test]
fn a_store_is_opened_as_it_was_left() {
    let (dir, store) = store();
    assert_eq!(store.snapshot().unwrap().version(), 1);
    load(&store, "t", LoadMode::Append).unwrap();
    let before = table(&store);
    drop(store);
    for open in [Store::open(dir.path().join("s")), Store::create_or_open(dir.path().join("s"))] {
        assert_eq!(table(&open.unwrap()), before);
    }
}

#[test]
fn an_unknown_format_is_not_opened() {
    let (_dir, store) = store();
    let format = store.path().join("format");
    fs::write(&format, "coload store 2\n").unwrap();
    assert!(matches!(Store::open(store.path()), Err(Error::Invalid(t)) if t.contains("newer")));
    fs::write(&format, "").unwrap();
    assert!(matches!(Store::open(store.path()), Err(Error::Corrupt(_))));
}

#[test]
fn tables_are_made_dropped_and_emptied() {
    let (_dir, store) = store();
    let fail = OnExisting::Fail;
    assert_eq!(store.create_table("t", &schema(), fail).unwrap(), Some(2));
    assert!(store.create_table("T", &schema(), fail).is_err());
    assert_eq!(store.create_table("t", &schema(), OnExisting::Keep).unwrap(), None);
    let first = table(&store);
    assert_eq!(store.truncate_table("t").unwrap(), None, "it is empty");
    load(&store, "t", LoadMode::Append).unwrap();
    store.truncate_table("t").unwrap().unwrap();
    assert_eq!((table(&store).rows(), table(&store).loads_count), (0, 1));
    check_no_leftovers(&store);
    load(&store, "t", LoadMode::Append).unwrap();
    store.create_table("t", &schema(), OnExisting::Replace).unwrap().unwrap();
    assert!(table(&store).id > first.id && table(&store).segments.is_empty());
    store.drop_table("t", OnMissing::Fail).unwrap().unwrap();
    assert_eq!(store.drop_table("t", OnMissing::Ignore).unwrap(), None);
    let text = store.drop_table("t", OnMissing::Fail).unwrap_err().to_string();
    assert!(text.contains("table t does not exist (the store has no tables)"), "{text}");
    assert!(store.create_table("", &schema(), fail).is_err());
    assert!(store.create_table("a\nb", &schema(), fail).is_err());
    check_no_leftovers(&store);
}

/// Writes one segment in the place of several.
fn merged(merge: &MergeDir, rows: u64) -> SegmentEntry {
    write_segment(&merge.segment_path(0), merge.id(), 0, rows).unwrap()
}

#[test]
fn a_merge_keeps_the_order_beside_appends() {
    let (_dir, store) = store();
    for _ in 0..3 {
        load(&store, "t", LoadMode::Append).unwrap();
    }
    let before = table(&store);
    let old = &before.segments[1..4];
    let merge = store.begin_merge(before.id).unwrap();
    let new = merged(&merge, 3 * ROWS);
    load(&store, "t", LoadMode::Append).unwrap();
    assert!(matches!(merge.publish(old, vec![new.clone()]), Ok(MergeOutcome::Published(_))));
    let after = table(&store);
    assert_eq!(after.segments[0], before.segments[0]);
    assert_eq!(after.segments[1], new);
    assert_eq!(after.segments[2..4], before.segments[4..]);
    assert_eq!((after.segments.len(), after.rows()), (6, 8 * ROWS));
    check_no_leftovers(&store);
}

#[test]
fn a_merge_of_segments_that_are_gone_is_thrown_away() {
    let (_dir, store) = store();
    load(&store, "t", LoadMode::Append).unwrap();
    load(&store, "t", LoadMode::Append).unwrap();
    let before = table(&store);
    let files = before.segments.clone();
    let publish = |old: &[SegmentEntry], rows| {
        let merge = store.begin_merge(before.id).unwrap();
        let new = merged(&merge, rows);
        merge.publish(old, vec![new])
    };
    let apart = [files[0].clone(), files[2].clone()];
    assert_eq!(publish(&apart, 2 * ROWS).unwrap(), MergeOutcome::Superseded);
    assert_eq!(publish(&[], 0).unwrap(), MergeOutcome::Superseded);
    let text = publish(&files[..2], ROWS).unwrap_err().to_string();
    assert!(text.contains("20 rows, the merged ones 10"), "{text}");
    load(&store, "t", LoadMode::Replace).unwrap();
    assert_eq!(publish(&files[..2], 2 * ROWS).unwrap(), MergeOutcome::Superseded);
    store.drop_table("t", OnMissing::Fail).unwrap();
    assert_eq!(publish(&files[..2], 2 * ROWS).unwrap(), MergeOutcome::Superseded);
    check_no_leftovers(&store);
}

#[test]
fn a_load_that_lives_is_not_cleaned_away() {
    let (_dir, store) = store();
    let begun = store.begin_load(target("t", LoadMode::Append)).unwrap();
    let (segments, record) = crate::support::fill(&begun);
    let other = Store::open(store.path()).unwrap();
    load(&other, "u", LoadMode::Append).unwrap();
    assert_eq!(other.clean().unwrap(), coload_store::Cleaned::default());
    begun.publish(segments, record).unwrap();
    check_no_leftovers(&store);
}
