//! A file of the right name and size that is not the segment which the manifest names; files that break while they are
//! read; who may read a store.

use std::fs::{self, OpenOptions, Permissions};
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};

use coload_store::{LoadMode, OnMissing, SegmentFile, Store};
use coload_types::{Error, Physical, Plain, Result};

use crate::support::{load, write_segment};

fn store() -> (tempfile::TempDir, Store) {
    let dir = tempfile::tempdir().unwrap();
    let store = Store::create_or_open(dir.path().join("s")).unwrap();
    (dir, store)
}

/// Where the segments of a table lie.
fn paths(store: &Store, table: &str) -> Vec<PathBuf> {
    let snapshot = store.snapshot().unwrap();
    let segments = &snapshot.table(table).unwrap().segments;
    segments.iter().map(|s| snapshot.segment_path(s)).collect()
}

/// Opens all segments of a table as a process does that comes anew.
fn open_all(path: &Path, table: &str) -> Result<()> {
    let store = Store::open(path)?;
    let snapshot = store.snapshot()?;
    let table = snapshot.require_table(table)?;
    table.segments.iter().try_for_each(|s| snapshot.segment(table, s).map(drop))
}

fn corrupt(result: Result<()>) -> String {
    match result {
        Err(Error::Corrupt(text)) => text,
        other => panic!("{other:?}"),
    }
}

/// Symptom: after two files of equal size were exchanged, queries answered with the rows of the other. Cause: nothing in a
/// segment or its entry said which it is.
#[test]
fn two_segments_of_equal_size_that_are_exchanged_are_noticed() {
    let (_dir, store) = store();
    load(&store, "t", LoadMode::Append).unwrap();
    load(&store, "u", LoadMode::Append).unwrap();
    let (t, u) = (paths(&store, "t"), paths(&store, "u"));
    for (a, b) in [(&t[0], &t[1]), (&t[0], &u[0])] {
        assert_eq!(fs::metadata(a).unwrap().len(), fs::metadata(b).unwrap().len());
        let aside = store.path().join("aside");
        let exchange = || {
            fs::rename(a, &aside).unwrap();
            fs::rename(b, a).unwrap();
            fs::rename(&aside, b).unwrap();
        };
        exchange();
        let text = corrupt(open_all(store.path(), "t"));
        let (a, b) = (a.file_name().unwrap(), b.file_name().unwrap());
        let (a, b) = (a.to_string_lossy(), b.to_string_lossy());
        assert!(text.contains(&*a) && text.contains(&format!("written as {b}")), "{text}");
        exchange();
        open_all(store.path(), "t").unwrap();
    }
}

#[test]
fn files_that_are_whole_segments_and_others_are_noticed() {
    let (dir, store) = store();
    let id = load(&store, "t", LoadMode::Append).unwrap();
    let path = paths(&store, "t").remove(0);
    let good = fs::read(&path).unwrap();
    // Of the same name, written before: with other rows in as many bytes.
    let earlier = dir.path().join(path.file_name().unwrap());
    write_segment(&earlier, id, 1, 10).unwrap();
    let earlier = fs::read(earlier).unwrap();
    assert_eq!(earlier.len(), good.len());
    let longer = [&good[..], &[0]].concat();
    let twice = [&good[..], &good[..]].concat();
    for bad in [&earlier[..], &good[..good.len() - 1], &longer, &twice, &[]] {
        fs::write(&path, bad).unwrap();
        corrupt(open_all(store.path(), "t"));
    }
    fs::write(&path, good).unwrap();
    open_all(store.path(), "t").unwrap();
}

fn read(segment: &SegmentFile) -> Result<Plain> {
    let mut plain = Plain::empty(Physical::Int);
    segment.decode_page(0, 0, &mut plain)?;
    Ok(plain)
}

/// Symptom: the process ended with SIGBUS. Cause: a read of a map behind the end of its file.
#[test]
fn a_segment_that_is_cut_while_it_is_read_fails_its_reader_and_nobody_else() {
    let (_dir, store) = store();
    load(&store, "t", LoadMode::Append).unwrap();
    let snapshot = store.snapshot().unwrap();
    let table = snapshot.table("t").unwrap();
    let open = |n: usize| snapshot.segment(table, &table.segments[n]).unwrap();
    let (cut, whole) = (open(0), open(1));
    let rows = read(&cut).unwrap();
    let good = fs::read(cut.path()).unwrap();
    OpenOptions::new().write(true).open(cut.path()).unwrap().set_len(0).unwrap();
    let text = corrupt(read(&cut).map(drop));
    assert!(text.contains("cannot be read") && text.contains(".seg"), "{text}");
    assert!(cut.check().is_err() && whole.check().is_ok());
    read(&whole).unwrap();
    assert!(snapshot.segment(table, &table.segments[0]).is_err());
    // A copy of the file in its place is used at once.
    fs::write(cut.path(), good).unwrap();
    assert_eq!(read(&open(0)).unwrap(), rows);
}

fn access(path: &Path) -> u32 {
    fs::metadata(path).unwrap().permissions().mode() & 0o777
}

/// All files and directories below one.
fn tree(path: &Path) -> Vec<PathBuf> {
    let mut found = vec![path.to_owned()];
    for entry in fs::read_dir(path).unwrap().map(std::result::Result::unwrap) {
        match entry.file_type().unwrap().is_dir() {
            true => found.extend(tree(&entry.path())),
            false => found.push(entry.path()),
        }
    }
    found
}

#[test]
fn a_new_store_is_its_owners_only() {
    let (_dir, store) = store();
    load(&store, "t", LoadMode::Append).unwrap();
    let target = crate::support::target("t", LoadMode::Append);
    let journal =
        store.begin_journal(coload_store::LoadId::from_u128(9), &target, Vec::new()).unwrap();
    journal.put_part(0, b"part".to_vec()).unwrap();
    drop(journal.open_input(0).unwrap());
    let begun = store.begin_load(target).unwrap();
    write_segment(&begun.segment_path(0), begun.id(), 0, 3).unwrap();
    let found = tree(store.path());
    assert!(found.len() > 12, "{found:?}");
    for path in found {
        let wanted = if path.is_dir() { 0o700 } else { 0o600 };
        assert_eq!(access(&path), wanted, "{}", path.display());
    }
}

#[test]
fn a_store_that_was_opened_to_others_stays_so() {
    let (_dir, store) = store();
    for path in tree(store.path()).into_iter().filter(|path| path.is_dir()) {
        fs::set_permissions(path, Permissions::from_mode(0o755)).unwrap();
    }
    load(&store, "t", LoadMode::Append).unwrap();
    assert!(paths(&store, "t").iter().all(|path| access(path) & 0o400 == 0o400));
    let umask_forbids = access(&paths(&store, "t")[0]) & 0o044 == 0;
    let made = store.path().join("made");
    fs::write(&made, "").unwrap();
    assert_eq!(umask_forbids, access(&made) & 0o044 == 0, "as the umask says");
    fs::remove_file(made).unwrap();
    store.drop_table("t", OnMissing::Fail).unwrap();
}
