#![allow(clippy::unwrap_used)]
use coload_ddl::parse_columns;
use tempfile::TempDir;

use super::*;
use crate::target::{Target, Work};

const BEGAN_US: i64 = 1_700_000_000_123_456;

fn schema() -> Schema {
    parse_columns("a BIGINT").unwrap()
}

/// Writes unfinished files, whole and without rows.
fn write(load: &FolderLoad, count: usize) {
    let scratch = load.scratch_path("made");
    fs::create_dir(&scratch).unwrap();
    let files = super::super::row_groups::RowGroups::new(&schema(), Some(&scratch)).unwrap();
    let mut works: Vec<Box<dyn Work>> = files.end().unwrap();
    while let Some(work) = works.pop() {
        works.extend(work.run(&coload_threads::StepClock::default()).unwrap());
    }
    for number in 0..count {
        fs::copy(scratch.join(unfinished_name(0)), load.path().join(unfinished_name(number)))
            .unwrap();
    }
    fs::remove_dir_all(&scratch).unwrap();
}

fn names(folder: &TempDir) -> Vec<String> {
    let entries = fs::read_dir(folder.path()).unwrap();
    let mut names: Vec<String> =
        entries.map(|entry| entry.unwrap().file_name().into_string().unwrap()).collect();
    names.sort();
    names
}

fn publish(folder: &ParquetFolder, mode: LoadMode, count: usize) -> Names {
    let mut load = folder.begin(mode, &schema(), BEGAN_US).unwrap();
    write(&load, count);
    load.publish(mode, &schema(), count).unwrap()
}

/// A process that dies: its lock is free, and nothing is cleared.
fn die(load: FolderLoad) {
    let _ = load._lock.file().unlock();
    std::mem::forget(load);
}

/// Gives the first files their names, as a load that dies then.
fn name_some(folder: &ParquetFolder, load: &FolderLoad, count: usize, replaces: &[String]) {
    let lines: String = replaces.iter().map(|name| format!("{name}\n")).collect();
    fs::write(load.path().join(RECORD_NAME), lines).unwrap();
    for number in 0..count {
        let name = file_name(load.began_us, load.id, number);
        fs::rename(load.path().join(unfinished_name(number)), folder.path().join(name)).unwrap();
    }
}

#[test]
fn files_get_names_in_the_order_of_the_input() {
    let dir = TempDir::new().unwrap();
    let folder = ParquetFolder::new(dir.path()).unwrap();
    let added = publish(&folder, LoadMode::Append, 12).added;
    assert_eq!(names(&dir), added);
    assert!(added.is_sorted() && added[11].starts_with("20231114-221320-123456-"), "{added:?}");
    let load = folder.begin(LoadMode::Append, &schema(), BEGAN_US + 1_000_000).unwrap();
    assert!(file_name(load.began_us, load.id, 0) > added[11]);
    drop(load);
    assert_eq!(names(&dir), added);
}

#[test]
fn what_a_dead_load_left_is_cleared_or_finished() {
    // Files of the dead load, those of them that have names, and whether it replaces what was there.
    for (count, named, replaces) in
        [(3, 0, false), (3, 2, false), (3, 3, false), (3, 0, true), (3, 2, true), (3, 3, true)]
    {
        let dir = TempDir::new().unwrap();
        let folder = ParquetFolder::new(dir.path()).unwrap();
        let before = publish(&folder, LoadMode::Append, 2).added;
        let dead = folder.begin(LoadMode::Append, &schema(), BEGAN_US + 1).unwrap();
        write(&dead, count);
        let lost = if replaces { &before[..] } else { &[] };
        name_some(&folder, &dead, named, lost);
        let own: Vec<String> =
            (0..count).map(|number| file_name(dead.began_us, dead.id, number)).collect();
        die(dead);
        let next = folder.begin(LoadMode::Append, &schema(), BEGAN_US + 2).unwrap();
        let is_whole = named == count;
        let mut expected = if is_whole && replaces { Vec::new() } else { before };
        expected.extend(own.into_iter().filter(|_| is_whole));
        drop(next);
        assert_eq!(names(&dir), expected, "{count} {named} {replaces}");
    }
}

/// It died before it had made its lock.
#[test]
fn a_folder_without_a_lock_is_cleared() {
    let dir = TempDir::new().unwrap();
    let folder = ParquetFolder::new(dir.path()).unwrap();
    let id = LoadId::random().unwrap();
    fs::create_dir(dir.path().join(format!("{WORK_PREFIX}{id}"))).unwrap();
    fs::create_dir(dir.path().join("_coload-mine")).unwrap();
    fs::write(dir.path().join(format!("x-{id}.parquet.txt")), "mine").unwrap();
    drop(folder.begin(LoadMode::Append, &schema(), BEGAN_US).unwrap());
    assert_eq!(names(&dir), ["_coload-mine".to_owned(), format!("x-{id}.parquet.txt")]);
}

#[test]
fn a_live_load_is_left_alone() {
    let dir = TempDir::new().unwrap();
    let folder = ParquetFolder::new(dir.path()).unwrap();
    let mut slow = folder.begin(LoadMode::Append, &schema(), BEGAN_US).unwrap();
    write(&slow, 2);
    let fast = publish(&folder, LoadMode::Replace, 1).added;
    slow.publish(LoadMode::Append, &schema(), 2).unwrap();
    drop(slow);
    assert_eq!(names(&dir).len(), 3);
    assert!(names(&dir).contains(&fast[0]));
}

#[test]
fn a_load_that_no_longer_fits_leaves_nothing() {
    let dir = TempDir::new().unwrap();
    let folder = ParquetFolder::new(dir.path()).unwrap();
    let mut late = folder.begin(LoadMode::Create, &schema(), BEGAN_US).unwrap();
    write(&late, 2);
    let added = publish(&folder, LoadMode::Create, 1).added;
    let error = late.publish(LoadMode::Create, &schema(), 2).unwrap_err();
    assert!(matches!(&error, Error::Invalid(text) if text.contains("--create")), "{error}");
    drop(late);
    let other = parse_columns("a INTEGER").unwrap();
    let mut other_load = ParquetFolder::new(&dir.path().join("new"))
        .unwrap()
        .begin(LoadMode::Append, &other, 0)
        .unwrap();
    // A name is taken: the files before it lose theirs.
    write(&other_load, 2);
    let taken = dir.path().join("new").join(file_name(0, other_load.id, 1));
    fs::create_dir(&taken).unwrap();
    let error = other_load.publish(LoadMode::Append, &other, 2).unwrap_err();
    assert!(error.to_string().contains("000001.parquet"), "{error}");
    drop(other_load);
    fs::remove_dir(&taken).unwrap();
    assert_eq!(fs::read_dir(dir.path().join("new")).unwrap().count(), 0);
    fs::remove_dir(dir.path().join("new")).unwrap();
    assert_eq!(names(&dir), added);
}
