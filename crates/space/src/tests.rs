#![allow(clippy::unwrap_used)]
use std::time::{Duration, Instant};

use coload_types::Error;

use super::*;

fn size(text: &str) -> Result<usize, String> {
    text.trim_end_matches("MiB").parse().map_err(|_| "no number".to_owned())
}

fn spec(text: &str) -> coload_types::Result<SpaceSpec> {
    SpaceSpec::parse(text, size)
}

/// Every kind, in a directory.
fn kinds(dir: &std::path::Path) -> Vec<SpaceSpec> {
    let dir = dir.display();
    ["dram".into(), format!("map:{dir}"), format!("pmem:{dir}"), format!("disk:{dir}")]
        .into_iter()
        .chain(["emulated:10,100,100".into()])
        .map(|text: String| spec(&text).unwrap())
        .collect()
}

/// Lengths around those of blocks and sectors.
const LENGTHS: [usize; 11] = [0, 1, 4095, 4096, 4097, 0, 70_000, 4 << 20, 3, 9 << 20, 12];

fn part(number: usize, bytes: usize) -> Vec<u8> {
    (0..bytes).map(|i| (i * 31 + number * 7 + i / 251) as u8).collect()
}

fn check(space: &dyn Space) {
    let mut writer = space.create().unwrap();
    for (number, bytes) in LENGTHS.into_iter().enumerate() {
        writer.append(part(number, bytes)).unwrap();
    }
    let extent = writer.finish().unwrap();
    let mut start = 0;
    for (number, bytes) in LENGTHS.into_iter().enumerate() {
        let piece = extent.read(start, bytes as u64).unwrap();
        assert!(*piece == part(number, bytes), "{}: part {number}", space.name());
        start += bytes as u64;
    }
    extent.check().unwrap();
    assert!(matches!(extent.read(start, 1), Err(Error::Corrupt(_))), "{}", space.name());
    assert!(matches!(extent.read(u64::MAX, 2), Err(Error::Corrupt(_))), "{}", space.name());
    let empty = space.create().unwrap().finish().unwrap();
    assert!(empty.read(0, 1).is_err());
}

#[test]
fn parts_are_read_as_they_were_appended_and_leave_no_file() {
    let dir = tempfile::tempdir().unwrap();
    for kind in kinds(dir.path()) {
        let space = kind.open(1 << 30).unwrap();
        check(&*space);
        assert_eq!(std::fs::read_dir(dir.path()).unwrap().count(), 0, "{kind}");
    }
    let beyond = spec(&format!("map:{}", dir.path().display())).unwrap().open(0).unwrap();
    for dram_bytes in [0, 100, 70_000, 5 << 20, 1 << 30] {
        check(&Tiered::new(dram_bytes, std::sync::Arc::clone(&beyond)));
    }
}

#[test]
fn a_space_holds_its_size_and_is_free_again() {
    let dir = tempfile::tempdir().unwrap();
    for kind in kinds(dir.path()) {
        let space = spec(&format!("{kind},size=1000")).unwrap().open(1 << 30).unwrap();
        let mut writer = space.create().unwrap();
        writer.append(vec![1; 600]).unwrap();
        let mut other = space.create().unwrap();
        let full = other.append(vec![2; 401]).unwrap_err();
        let text = full.to_string();
        assert!(matches!(full, Error::Limit(_)) && text.contains(space.name()), "{text}");
        other.append(vec![2; 400]).unwrap();
        drop((writer.finish().unwrap(), other));
        space.create().unwrap().append(vec![3; 1000]).unwrap();
    }
}

#[test]
fn options_are_read_and_what_is_wrong_is_said() {
    let shown = spec("disk:/a,b,size=7").unwrap();
    assert_eq!((shown.size(), shown.to_string().as_str()), (Some(7), "disk:/a,b,size=7"));
    for (text, wanted) in [
        ("", "no such kind"),
        ("ram", "no such kind"),
        ("dram:x", "nothing stands behind"),
        ("map", "needs a directory"),
        ("disk:", "needs a directory"),
        ("disk:/x,size=big", "no number"),
        ("disk:sp,16MiB", "disk:sp,size=16MiB"),
        ("emulated", "305,39.4,13.9"),
        ("emulated:1,2", "305,39.4,13.9"),
        ("emulated:1,0,2", "305,39.4,13.9"),
        ("emulated:nan,1,2", "305,39.4,13.9"),
        ("emulated:1,2,3,x", "305,39.4,13.9"),
    ] {
        let error = spec(text).unwrap_err().to_string();
        assert!(error.contains(wanted), "{text}: {error}");
    }
    for kind in ["map", "pmem", "disk"] {
        let error = spec(&format!("{kind}:/not/there")).unwrap().open(1).unwrap_err().to_string();
        assert!(error.contains(&format!("space {kind}:/not/there")), "{error}");
    }
}

#[test]
fn a_space_that_vanishes_and_files_of_the_dead() {
    let dir = tempfile::tempdir().unwrap();
    let inner = dir.path().join("x");
    std::fs::create_dir(&inner).unwrap();
    std::fs::write(inner.join("coload-1-0.run"), "").unwrap();
    std::fs::write(inner.join("coload-mine.txt"), "").unwrap();
    let spaces: Vec<_> = kinds(&inner).iter().skip(1).take(3).map(|k| k.open(1).unwrap()).collect();
    assert_eq!(std::fs::read_dir(&inner).unwrap().count(), 1);
    std::fs::remove_dir_all(&inner).unwrap();
    for space in spaces {
        let error = space.create().unwrap_err().to_string();
        assert!(error.contains(space.name()), "{error}");
    }
}

#[test]
fn an_emulated_device_takes_its_time() {
    let space = spec("emulated:1000000,1,0.1").unwrap().open(1 << 30).unwrap();
    let timed = |work: &mut dyn FnMut()| {
        let began = Instant::now();
        work();
        began.elapsed()
    };
    let mut writer = space.create().unwrap();
    let written = timed(&mut || writer.append(vec![0; 1 << 20]).unwrap());
    let extent = writer.finish().unwrap();
    let read = timed(&mut || drop(extent.read(0, 1 << 20).unwrap()));
    let touched = timed(&mut || space.touch(100));
    assert!(written >= Duration::from_millis(10), "{written:?}");
    assert!(read >= Duration::from_millis(2), "{read:?}");
    assert!(touched >= Duration::from_millis(10), "{touched:?}");
}
