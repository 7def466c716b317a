//! Snapshots beside writers: they stay as they are, and nobody waits.

use std::fs;
use std::os::unix::fs::PermissionsExt;
use std::path::PathBuf;
use std::time::{Duration, Instant};

use coload_store::{Cleaned, LoadId, LoadMode, OnMissing, Store};
use coload_types::Error;

use crate::child;
use crate::support::{check_content, check_no_leftovers, load, target};

#[test]
fn a_snapshot_keeps_its_files_until_it_is_dropped() {
    let dir = tempfile::tempdir().unwrap();
    let store = Store::create_or_open(dir.path().join("s")).unwrap();
    load(&store, "t", LoadMode::Append).unwrap();
    let snapshot = store.snapshot().unwrap();
    let clone = snapshot.clone();
    let other = Store::open(store.path()).unwrap();
    for _ in 0..3 {
        load(&other, "t", LoadMode::Replace).unwrap();
    }
    other.drop_table("t", OnMissing::Fail).unwrap();
    assert_eq!(store.snapshot().unwrap().tables().len(), 0);
    drop(snapshot);
    let table = clone.require_table("t").unwrap();
    for segment in &table.segments {
        assert!(clone.segment_path(segment).exists());
    }
    // The version that is held and the one after it stay, and the newest.
    assert_eq!(fs::read_dir(store.path().join("manifest")).unwrap().count(), 3);
    drop(clone);
    assert_eq!(other.clean().unwrap(), Cleaned { loads: 0, versions: 2, segments: 4 });
    check_no_leftovers(&store);
}

/// Symptom: rarely, cleaning left versions that nobody read any more, and a journal was still locked when
/// its load had ended. Cause: a child of another thread had the locked files open until it ran its program.
#[test]
fn what_is_dropped_is_free_while_another_thread_starts_a_child() {
    let dir = tempfile::tempdir().unwrap();
    let store = Store::create_or_open(dir.path().join("s")).unwrap();
    load(&store, "t", LoadMode::Append).unwrap();
    let snapshot = store.snapshot().unwrap();
    for _ in 0..3 {
        load(&store, "t", LoadMode::Replace).unwrap();
    }
    let id = LoadId::random().unwrap();
    let journal = store.begin_journal(id, &target("t", LoadMode::Append), Vec::new()).unwrap();
    let half_started = child::HalfStarted::begin();
    drop((snapshot, journal));
    assert_eq!(store.clean().unwrap(), Cleaned { loads: 0, versions: 2, segments: 4 });
    store.open_journal(id).unwrap().unwrap().remove().unwrap();
    drop(half_started);
    check_no_leftovers(&store);
}

/// The points at which a loader stands still while others read and load.
const STANDSTILLS: [&str; 5] = [
    "store::publish::sync_segment",
    "store::publish::sync_segments_dir",
    "store::publish::write_manifest",
    "store::publish::link",
    "store::publish::sync_manifest_dir",
];

/// The loader that stands still at `link` has version n in hand when others have published n+1 to n+4
/// and cleaned: its link must still be refused as n+1, or their loads would be lost.
#[test]
fn nobody_waits_for_a_loader_that_stands_still_and_nothing_is_lost() {
    for point in STANDSTILLS {
        let dir = tempfile::tempdir().unwrap();
        let store = Store::create_or_open(dir.path().join("s")).unwrap();
        load(&store, "t", LoadMode::Append).unwrap();
        let mut stopped = child::start(store.path(), &format!("stop {point}"));
        let mut lines = child::lines(&mut stopped);
        assert_eq!(lines.next().as_deref(), Some("stopped"), "{point}");

        let begun = Instant::now();
        let other = Store::open(store.path()).unwrap();
        other.snapshot().unwrap();
        for _ in 0..4 {
            load(&other, "t", LoadMode::Append).unwrap();
            other.clean().unwrap();
        }
        assert!(begun.elapsed() < Duration::from_secs(5), "{point}: waited");

        // End of input lets it go on.
        drop(stopped.stdin.take());
        assert_eq!(child::published(lines).len(), 1, "{point}");
        assert!(stopped.wait().unwrap().success());
        let table = store.snapshot().unwrap().require_table("t").unwrap().clone();
        assert_eq!((table.loads_count, table.segments.len()), (6, 12), "{point}");
        check_content(&store);
        store.clean().unwrap();
        check_no_leftovers(&store);
    }
}

/// The version that the reader found is gone when it comes to lock it.
#[test]
fn a_reader_that_stands_still_before_its_lock_gets_a_version_that_is_there() {
    let dir = tempfile::tempdir().unwrap();
    let store = Store::create_or_open(dir.path().join("s")).unwrap();
    load(&store, "t", LoadMode::Append).unwrap();
    let mut reader = child::start(store.path(), "stop-reading");
    let mut lines = child::lines(&mut reader);
    assert_eq!(lines.next().as_deref(), Some("stopped"));
    for _ in 0..3 {
        load(&store, "t", LoadMode::Replace).unwrap();
    }
    check_no_leftovers(&store);
    drop(reader.stdin.take());
    assert_eq!(lines.next().as_deref(), Some("version 5"));
    assert!(reader.wait().unwrap().success());
}

fn set_mode(places: &[PathBuf], mode: u32) {
    for place in places {
        fs::set_permissions(place, fs::Permissions::from_mode(mode)).unwrap();
    }
}

#[test]
fn who_may_only_read_can_read() {
    let dir = tempfile::tempdir().unwrap();
    let path = dir.path().join("s");
    let store = Store::create_or_open(&path).unwrap();
    load(&store, "t", LoadMode::Append).unwrap();
    let dead = path.join("tmp").join("0".repeat(32));
    fs::create_dir(&dead).unwrap();
    let program = dir.path().join("program");
    fs::copy(std::env::current_exe().unwrap(), &program).unwrap();
    set_mode(&[dir.path().to_owned()], 0o755);
    let mut places = vec![dir.path().to_owned(), path.clone()];
    places.extend(["manifest", "segments", "tmp"].map(|name| path.join(name)));
    let say_closed = {
        let path = path.clone();
        let mut reader = child::command_as_nobody(&program, &path, "read").spawn().unwrap();
        let said: Vec<String> = child::lines(&mut reader).collect();
        reader.wait().unwrap();
        said
    };
    assert!(say_closed[0].contains("its owner's only"), "{say_closed:?}");
    set_mode(&places, 0o555);
    let mut files = vec![path.join("format")];
    for place in &places[2..] {
        files.extend(fs::read_dir(place).unwrap().map(|entry| entry.unwrap().path()));
    }
    set_mode(&files.into_iter().filter(|file| file.is_file()).collect::<Vec<_>>(), 0o644);
    let say = |task: &str| {
        let mut reader = child::command_as_nobody(&program, &path, task).spawn().unwrap();
        let said: Vec<String> = child::lines(&mut reader).collect();
        reader.wait().unwrap();
        said
    };
    assert_eq!(say("read")[0], "version 2 tables 1");
    let refused = &say("loads t 1")[0];
    assert!(refused.starts_with("failed Invalid cannot make"), "{refused}");
    assert!(refused.contains("Permission denied"), "{refused}");
    assert!(dead.exists());
    set_mode(&places, 0o755);
}

#[test]
fn a_damaged_manifest_is_named_and_nothing_is_removed() {
    let dir = tempfile::tempdir().unwrap();
    let path = dir.path().join("s");
    let store = Store::create_or_open(&path).unwrap();
    load(&store, "t", LoadMode::Append).unwrap();
    drop(store);
    let manifest = path.join("manifest/00000000000000000002.manifest");
    let mut bytes = fs::read(&manifest).unwrap();
    let middle = bytes.len() / 2;
    bytes[middle] ^= 1;
    fs::write(&manifest, &bytes).unwrap();
    for open in [Store::open(&path), Store::create_or_open(&path)] {
        let Err(Error::Corrupt(text)) = open else { panic!("opened") };
        assert!(text.contains("00000000000000000002.manifest"), "{text}");
    }
    assert_eq!(fs::read_dir(path.join("segments")).unwrap().count(), 2);
    bytes[middle] ^= 1;
    fs::rename(&manifest, path.join("manifest/00000000000000000003.manifest")).unwrap();
    fs::write(path.join("manifest/00000000000000000003.manifest"), &bytes).unwrap();
    let Err(Error::Corrupt(text)) = Store::open(&path) else { panic!("opened") };
    assert!(text.contains("holds version 2"), "{text}");
}

#[test]
fn a_segment_that_is_gone_or_cut_is_corrupt() {
    let dir = tempfile::tempdir().unwrap();
    let store = Store::create_or_open(dir.path().join("s")).unwrap();
    load(&store, "t", LoadMode::Append).unwrap();
    let snapshot = store.snapshot().unwrap();
    let table = snapshot.require_table("t").unwrap();
    let cut = fs::OpenOptions::new().write(true).open(snapshot.segment_path(&table.segments[0]));
    cut.unwrap().set_len(10).unwrap();
    fs::remove_file(snapshot.segment_path(&table.segments[1])).unwrap();
    for (segment, why) in table.segments.iter().zip(["10 bytes", "gone"]) {
        let Err(Error::Corrupt(text)) = snapshot.segment(table, segment) else { panic!("opened") };
        assert!(text.contains(&segment.file) && text.contains(why), "{text}");
    }
}
