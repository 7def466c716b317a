//! Rows that are deleted and replaced, against a plain list of rows: random changes, merges, snapshots that are held, writers
//! that come too late, and writers that die.

use std::collections::BTreeMap;
use std::os::unix::process::ExitStatusExt;
use std::path::Path;
use std::thread::sleep;
use std::time::{Duration, Instant};

use coload_page::{ColumnIndex, encode_plain};
use coload_store::failpoints::WRITE_DELETED;
use coload_store::{
    Basis, Changed, Deletions, FinishedColumn, LoadKind, LoadMode, LoadRecord, ReadyLoad,
    SegmentEntry, SegmentWriter, Snapshot, Store, TableEntry, VerifyOptions, column_stats,
    merge_small, repair, verify,
};
use coload_types::{Error, Plain, Result, Value};

use crate::child;
use crate::support::{Random, check_no_leftovers, schema, scratch, target};

/// Rows of a page.
const PAGE_ROWS: usize = 700;

/// Writes a segment with these ids; the text says the id too, so that rows that get mixed up are seen.
fn write_ids(path: &Path, ids: &[i64]) -> Result<coload_store::SegmentSummary> {
    let writer = SegmentWriter::create(path)?;
    let page_rows: Vec<u32> = ids.chunks(PAGE_ROWS).map(|page| page.len() as u32).collect();
    let mut finished = Vec::new();
    for (index, column) in schema().columns().iter().enumerate() {
        let physical = column.data_type.physical();
        let page = |ids: &[i64]| {
            let mut plain = Plain::empty(physical);
            for id in ids {
                plain.push(value(*id, index).as_ref());
            }
            encode_plain(&plain)
        };
        let pages = ids.chunks(PAGE_ROWS).map(page).collect::<Result<Vec<_>>>()?;
        let pages = writer.write_pages(writer.reserve(&pages), &pages)?;
        let stats = column_stats(&pages, None);
        let index = ColumnIndex { pages, dictionary: None, symbols: Vec::new() };
        finished.push(FinishedColumn { physical, index, stats });
    }
    writer.finish(finished, page_rows)
}

/// A column of the row with this id; NULL in some.
fn value(id: i64, column: usize) -> Option<Value> {
    match column {
        0 => Some(Value::Int(id)),
        _ => (id % 5 != 0).then(|| Value::Bytes(format!("row {id}").into_bytes().into())),
    }
}

/// A load of these ids that is ready, into `t`.
fn ready(store: &Store, ids: &[i64], kind: LoadKind) -> Result<ReadyLoad> {
    let load = store.begin_load(target("t", LoadMode::Append))?;
    let mut segments = Vec::new();
    if !ids.is_empty() {
        segments.push(write_ids(&load.segment_path(0), ids)?.entry(load.id(), 0));
    }
    let mut record = LoadRecord::new(load.id(), kind);
    record.rows = ids.len() as u64;
    load.ready(segments, record)
}

fn append(store: &Store, ids: &[i64]) {
    ready(store, ids, LoadKind::Insert).unwrap().publish(None).unwrap();
}

/// Where each row is: its segment, its number there, its id.
fn rows(snapshot: &Snapshot) -> Vec<(SegmentEntry, u64, i64)> {
    let Some(table) = snapshot.table("t") else { return Vec::new() };
    let mut rows = Vec::new();
    for segment in &table.segments {
        let deleted = snapshot.deleted_rows(segment).unwrap();
        assert_eq!(deleted.as_ref().map_or(0, |d| d.count()), segment.deleted_rows());
        let file = snapshot.segment(table, segment).unwrap();
        let mut columns: Vec<Plain> =
            schema().columns().iter().map(|c| Plain::empty(c.data_type.physical())).collect();
        for (index, column) in columns.iter_mut().enumerate() {
            (0..file.page_rows().len())
                .for_each(|page| file.decode_page(index, page, column).unwrap());
        }
        for row in 0..segment.rows {
            if deleted.as_ref().is_some_and(|deleted| deleted.contains(row)) {
                continue;
            }
            let Some(Value::Int(id)) = columns[0].get(row as usize) else { panic!("no id") };
            assert_eq!(columns[1].get(row as usize), value(id, 1), "row {row} of {}", segment.file);
            rows.push((segment.clone(), row, id));
        }
    }
    assert_eq!(table.rows(), rows.len() as u64);
    rows
}

fn ids(snapshot: &Snapshot) -> Vec<i64> {
    rows(snapshot).into_iter().map(|(_, _, id)| id).collect()
}

/// The rows of a snapshot whose ids are wanted.
fn find(snapshot: &Snapshot, wanted: impl Fn(i64) -> bool) -> Deletions {
    let mut found = Deletions::default();
    for (segment, row, id) in rows(snapshot) {
        if wanted(id) {
            assert!(found.insert(&segment, row).unwrap());
        }
    }
    found
}

fn table(snapshot: &Snapshot) -> &TableEntry {
    snapshot.table("t").unwrap()
}

fn check_verified(path: &Path) {
    let report = verify(path, &VerifyOptions { threads: 1, progress: None }).unwrap();
    assert_eq!(report.damages, Vec::new());
}

#[test]
fn random_changes_leave_what_a_list_of_rows_has() {
    let mut random = Random::new();
    for _ in 0..4 {
        let dir = scratch();
        let store = Store::create_or_open(dir.path().join("s")).unwrap();
        append(&store, &[0]);
        let (mut model, mut next) = (vec![0], 1);
        let mut held: Vec<(Snapshot, Vec<i64>)> = Vec::new();
        for step in 0..50 {
            match random.below(8) {
                0 | 1 => {
                    // Some are large, so that their deleted rows go to a file.
                    let count =
                        if random.below(4) == 0 { 1_200 } else { 1 + random.below(30) as i64 };
                    let new: Vec<i64> = (next..next + count).collect();
                    next += count;
                    append(&store, &new);
                    model.extend(new);
                }
                2 | 3 => {
                    let (of, rest) = (2 + random.below(9) as i64, random.below(9) as i64);
                    let snapshot = store.snapshot().unwrap();
                    let gone = find(&snapshot, |id| id % of == rest);
                    let changed = store.delete_rows(Basis::Rows(table(&snapshot)), &gone).unwrap();
                    assert_eq!(matches!(changed, Changed::Nothing), gone.is_empty());
                    model.retain(|id| id % of != rest);
                }
                4 => {
                    let (of, rest) = (2 + random.below(9) as i64, random.below(9) as i64);
                    let snapshot = store.snapshot().unwrap();
                    let gone = find(&snapshot, |id| id % of == rest);
                    let new: Vec<i64> = (next..next + gone.rows() as i64).collect();
                    next += new.len() as i64;
                    let load = ready(&store, &new, LoadKind::Update).unwrap();
                    let changed = load.publish_deleting(Basis::Table(table(&snapshot)), &gone);
                    assert!(matches!(changed, Ok(Changed::Published(_))));
                    model.retain(|id| id % of != rest);
                    model.extend(new);
                }
                5 => drop(merge_small(&store, "t").unwrap()),
                6 => held.push((store.snapshot().unwrap(), model.clone())),
                _ => drop(held.pop()),
            }
            assert_eq!(ids(&store.snapshot().unwrap()), model);
            if step % 5 > 0 {
                continue;
            }
            // Readers of older versions see what they saw.
            for (snapshot, was) in &held {
                assert_eq!(ids(snapshot), *was);
            }
            let again = Store::open(store.path()).unwrap();
            assert_eq!(ids(&again.snapshot().unwrap()), model);
        }
        held.clear();
        store.clean().unwrap();
        check_no_leftovers(&store);
        check_verified(store.path());
    }
}

#[test]
fn of_two_writers_of_one_row_the_first_wins_and_the_other_is_told() {
    let dir = scratch();
    let store = Store::create_or_open(dir.path().join("s")).unwrap();
    append(&store, &(0..20).collect::<Vec<_>>());
    let before = store.snapshot().unwrap();
    let both = |range: std::ops::Range<i64>| find(&before, |id| range.contains(&id));
    // Another row of the same segment is no conflict, nor are rows that came.
    assert!(matches!(
        store.delete_rows(Basis::Rows(table(&before)), &both(0..5)),
        Ok(Changed::Published(_))
    ));
    append(&store, &[20]);
    assert!(matches!(
        store.delete_rows(Basis::Rows(table(&before)), &both(5..10)),
        Ok(Changed::Published(_))
    ));
    assert!(matches!(
        store.delete_rows(Basis::Rows(table(&before)), &both(9..12)),
        Ok(Changed::Moved(()))
    ));
    assert_eq!(ids(&store.snapshot().unwrap()), (10..=20).collect::<Vec<_>>());
    // Who read the table is told of any change, and publishes the same rows on a new basis.
    let load = ready(&store, &[110, 111], LoadKind::Update).unwrap();
    let load = match load.publish_deleting(Basis::Table(table(&before)), &both(10..12)).unwrap() {
        Changed::Moved(load) => load,
        other => panic!("{other:?}"),
    };
    assert_eq!(store.snapshot().unwrap().table("t").unwrap().rows(), 11);
    let now = store.snapshot().unwrap();
    let gone = find(&now, |id| id == 10 || id == 11);
    assert!(matches!(
        load.publish_deleting(Basis::Table(table(&now)), &gone),
        Ok(Changed::Published(_))
    ));
    let expected: Vec<i64> = (12..=20).chain([110, 111]).collect();
    assert_eq!(ids(&store.snapshot().unwrap()), expected);
    // What a dropped load left, and the files of versions that are read no more, go.
    let load = ready(&store, &[7], LoadKind::Update).unwrap();
    assert!(matches!(
        load.publish_deleting(Basis::Table(table(&before)), &Deletions::default()),
        Ok(Changed::Moved(_))
    ));
    drop((before, now));
    store.clean().unwrap();
    check_no_leftovers(&store);
}

#[test]
fn a_table_that_is_gone_or_empty_is_told() {
    let dir = scratch();
    let store = Store::create_or_open(dir.path().join("s")).unwrap();
    append(&store, &[1, 2, 3]);
    let before = store.snapshot().unwrap();
    let all = find(&before, |_| true);
    store.truncate_table("t").unwrap();
    assert!(matches!(store.delete_rows(Basis::Rows(table(&before)), &all), Ok(Changed::Moved(()))));
    store.drop_table("t", coload_store::OnMissing::Fail).unwrap();
    append(&store, &[1, 2, 3]);
    let error = store.delete_rows(Basis::Rows(table(&before)), &all).unwrap_err();
    assert!(matches!(&error, Error::Invalid(t) if t.contains("was dropped")), "{error}");
    // The last row takes its segment with it, and what was loaded may come again.
    let now = store.snapshot().unwrap();
    let all = find(&now, |_| true);
    store.delete_rows(Basis::Rows(table(&now)), &all).unwrap();
    let after = store.snapshot().unwrap();
    assert!(table(&after).segments.is_empty() && !table(&after).loads[0].held);
    let too_far = Deletions::default().insert(&table(&now).segments[0], 3).unwrap_err();
    assert!(matches!(too_far, Error::Limit(_)));
}

#[test]
fn a_merge_keeps_what_was_deleted_while_it_ran() {
    let dir = scratch();
    let store = Store::create_or_open(dir.path().join("s")).unwrap();
    for start in [0, 1_000, 2_000] {
        append(&store, &(start..start + 1_000).collect::<Vec<_>>());
    }
    let first = store.snapshot().unwrap();
    let thirds = find(&first, |id| id % 3 == 0);
    store.delete_rows(Basis::Rows(table(&first)), &thirds).unwrap();
    // The merge reads what is left, and meanwhile more goes: some of each, and one segment whole.
    let read = store.snapshot().unwrap();
    let merge = store.begin_merge(table(&read).id).unwrap();
    let left = ids(&read);
    let new = [&left[..700], &left[700..]].map(<[i64]>::to_vec);
    let new: Vec<SegmentEntry> = (0..2)
        .map(|n| {
            let path = merge.segment_path(n);
            write_ids(&path, &new[n as usize]).unwrap().entry(merge.id(), n)
        })
        .collect();
    let more = find(&read, |id| id % 3 == 1 || (1_000..2_000).contains(&id));
    store.delete_rows(Basis::Rows(table(&read)), &more).unwrap();
    let now = store.snapshot().unwrap();
    // One of the segments is gone, so the merge is too.
    assert_eq!(table(&now).segments.len(), 2);
    assert!(matches!(
        merge.publish(&table(&read).segments, new),
        Ok(coload_store::MergeOutcome::Superseded)
    ));
    let merge = store.begin_merge(table(&now).id).unwrap();
    let left = ids(&now);
    let (a, b) = left.split_at(left.len() / 3);
    let new: Vec<SegmentEntry> = [a, b]
        .iter()
        .zip(0..)
        .map(|(ids, n)| write_ids(&merge.segment_path(n), ids).unwrap().entry(merge.id(), n))
        .collect();
    let more = find(&now, |id| id % 7 == 2 || a.contains(&id) || id > 2_900);
    store.delete_rows(Basis::Rows(table(&now)), &more).unwrap();
    let expected = ids(&store.snapshot().unwrap());
    assert!(matches!(
        merge.publish(&table(&now).segments, new),
        Ok(coload_store::MergeOutcome::Published(_))
    ));
    let after = store.snapshot().unwrap();
    assert_eq!((ids(&after), table(&after).segments.len()), (expected, 1));
    drop((first, read, now, after));
    store.clean().unwrap();
    check_no_leftovers(&store);
    check_verified(store.path());
}

/// Deletes enough at random to need a file.
fn with_a_file(store: &Store) -> String {
    append(store, &(0..4_000).collect::<Vec<_>>());
    append(store, &(4_000..8_000).collect::<Vec<_>>());
    let snapshot = store.snapshot().unwrap();
    let gone = find(&snapshot, |id| id * 7_919 % 101 < 20);
    store.delete_rows(Basis::Rows(table(&snapshot)), &gone).unwrap();
    let snapshot = store.snapshot().unwrap();
    let files: Vec<_> =
        table(&snapshot).segments.iter().map(|s| s.deleted.as_ref().unwrap().file()).collect();
    assert_eq!(files[0], files[1]);
    files[0].unwrap().to_owned()
}

#[test]
fn damaged_deletions_are_noticed_and_a_repair_says_which_rows_are_back() {
    let dir = scratch();
    let path = dir.path().join("s");
    let store = Store::create_or_open(&path).unwrap();
    let file = path.join("segments").join(with_a_file(&store));
    let snapshot = store.snapshot().unwrap();
    let (first, second) = (&table(&snapshot).segments[0], &table(&snapshot).segments[1]);
    let counts = [first.deleted_rows(), second.deleted_rows()];
    let left = table(&snapshot).rows();
    let good = std::fs::read(&file).unwrap();
    let mut bad = good.clone();
    // In the first of two sets.
    bad[40] ^= 4;
    for (bytes, damaged) in [(bad.clone(), 1), (Vec::new(), 2), (good[..60].to_vec(), 2)] {
        std::fs::write(&file, &bytes).unwrap();
        let fresh = Store::open(&path).unwrap().snapshot().unwrap();
        let error = fresh.deleted_rows(first).unwrap_err();
        assert!(matches!(&error, Error::Corrupt(t) if t.contains(".deleted")), "{error}");
        let report = verify(&path, &VerifyOptions { threads: 1, progress: None }).unwrap();
        assert_eq!(report.damages.len(), damaged, "{:?}", report.damages);
    }
    std::fs::write(&file, &bad).unwrap();
    drop(snapshot);
    drop(store);
    let report = repair(&path, &VerifyOptions { threads: 1, progress: None }, None).unwrap();
    let repaired = report.repaired.unwrap();
    assert_eq!((repaired.restored.len(), repaired.restored[0].rows), (1, counts[0]));
    assert!(repaired.lost.is_empty() && repaired.moved == [file]);
    let store = Store::open(&path).unwrap();
    let snapshot = store.snapshot().unwrap();
    assert_eq!(ids(&snapshot).len() as u64, left + counts[0]);
    check_verified(&path);
}

/// Rows of the table that children change: each is replaced by one that is a generation older.
const CHANGED: i64 = 1_500;

/// What a child does: replaces rows again and again, and merges.
pub fn change(path: &Path, rounds: i64) -> Result<()> {
    child::say("begun");
    for round in 0..rounds {
        let store = Store::open(path)?;
        let snapshot = store.snapshot()?;
        let (of, rest) = (3 + round % 5, round % 3);
        let gone = find(&snapshot, |id| id % CHANGED % of == rest);
        let new: Vec<i64> = rows(&snapshot)
            .into_iter()
            .filter(|(segment, row, _)| gone.contains(segment, *row))
            .map(|(_, _, id)| id + CHANGED)
            .collect();
        let load = ready(&store, &new, LoadKind::Update)?;
        match load.publish_deleting(Basis::Rows(table(&snapshot)), &gone)? {
            Changed::Published(version) => child::say(&format!("published {version}")),
            other => panic!("{other:?}"),
        }
        drop(snapshot);
        merge_small(&store, "t")?;
    }
    Ok(())
}

fn prepare(path: &Path) {
    let store = Store::create_or_open(path).unwrap();
    append(&store, &(0..CHANGED).collect::<Vec<_>>());
}

/// Each row is there once, whatever its generation, and what was published is there.
fn check_changed(path: &Path, published: &[String]) {
    let store = Store::open(path).unwrap();
    let snapshot = store.snapshot().unwrap();
    let mut counts = BTreeMap::new();
    ids(&snapshot).into_iter().for_each(|id| *counts.entry(id % CHANGED).or_insert(0) += 1);
    assert_eq!(counts.len() as i64, CHANGED);
    assert!(counts.values().all(|count| *count == 1), "a row is there twice");
    let last = published.last().map_or(0, |version| version.parse().unwrap());
    assert!(snapshot.version() >= last, "version {last} was published and is lost");
    drop(snapshot);
    check_no_leftovers(&store);
    check_verified(path);
}

#[test]
fn a_writer_that_dies_while_it_replaces_rows_loses_and_doubles_none() {
    let points = [
        WRITE_DELETED,
        "store::publish::sync_segment",
        "store::publish::rename",
        "store::publish::sync_segments_dir",
        "store::publish::write_manifest",
        "store::publish::link",
        "store::publish::sync_manifest_dir",
        "store::publish::remove_tmp",
        "store::clean::remove_segment",
    ];
    for point in points {
        for nth in [1, 2, 5] {
            let dir = scratch();
            let path = dir.path().join("s");
            prepare(&path);
            let mut child = child::start(&path, &format!("change 12 {point} {nth}"));
            let published = child::published(child::lines(&mut child));
            assert_eq!(child.wait().unwrap().signal(), Some(6), "{point} {nth} is not passed");
            check_changed(&path, &published);
        }
    }
}

#[test]
fn a_writer_killed_at_random_moments_loses_and_doubles_no_row() {
    let mut random = Random::new();
    let dir = scratch();
    let path = dir.path().join("s");
    prepare(&path);
    // The moments of death are spread over a few changes.
    let begun = Instant::now();
    change(&path, 3).unwrap();
    let three_changes = begun.elapsed().as_micros() as u64;
    let mut count = 0;
    for _ in 0..30 {
        let mut child = child::start(&path, "change 1000");
        let mut lines = child::lines(&mut child);
        assert_eq!(lines.next().as_deref(), Some("begun"));
        sleep(Duration::from_micros(random.below(three_changes)));
        child.kill().unwrap();
        let published = child::published(lines);
        child.wait().unwrap();
        check_changed(&path, &published);
        count += published.len();
    }
    assert!(count > 5, "killed too early: {count} changes");
}
