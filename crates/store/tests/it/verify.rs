//! `verify` finds each damage that changes what is read, and nothing in a store that is whole; `repair` leaves a store that
//! opens, with all rows of the other segments.

use std::collections::BTreeSet;
use std::fs;
use std::os::unix::process::ExitStatusExt;
use std::path::{Path, PathBuf};

use coload_store::failpoints::REPAIR_POINTS;
use coload_store::{
    LOADS_KEPT_MAX, LoadId, LoadMode, Part, Store, VerifyOptions, VerifyReport, repair, verify,
};
use coload_types::Error;

use crate::child;
use crate::crash::copy;
use crate::remembered;
use crate::support::{ROWS, Random, load, names, scratch, target, write_segment};

const OPTIONS: VerifyOptions = VerifyOptions { threads: 2, progress: None };

/// A store with each kind of file: two tables, older loads, a journal with a part.
fn whole() -> (tempfile::TempDir, PathBuf) {
    let dir = scratch();
    let path = dir.path().join("whole");
    let store = Store::create_or_open(&path).unwrap();
    for key in 0..=LOADS_KEPT_MAX as u128 {
        remembered::load_nothing(&store, key);
    }
    for _ in 0..3 {
        load(&store, "t", LoadMode::Append).unwrap();
    }
    load(&store, "u", LoadMode::Append).unwrap();
    let id = LoadId::from_u128(77);
    let journal =
        store.begin_journal(id, &target("t", LoadMode::Append), b"what".to_vec()).unwrap();
    write_segment(&journal.segment_path(0).unwrap(), id, 0, ROWS).unwrap();
    journal.put_part(0, b"part".to_vec()).unwrap();
    journal.put_leg(0, b"leg".to_vec()).unwrap();
    drop((journal, store));
    (dir, path)
}

/// All files below a directory.
fn files(dir: &Path) -> Vec<PathBuf> {
    let mut found = Vec::new();
    for entry in fs::read_dir(dir).unwrap().map(Result::unwrap) {
        match entry.file_type().unwrap().is_dir() {
            true => found.extend(files(&entry.path())),
            false => found.push(entry.path()),
        }
    }
    found.sort();
    found
}

fn found(report: &VerifyReport) -> Vec<(Part, String)> {
    report.damages.iter().map(|damage| (damage.part, damage.what.clone())).collect()
}

#[test]
fn nothing_is_wrong_with_a_store_that_is_whole() {
    let (_dir, path) = whole();
    let before = files(&path);
    let report = verify(&path, &OPTIONS).unwrap();
    assert_eq!(found(&report), []);
    assert_eq!((report.tables, report.segments, report.rows), (2, 8, 80));
    assert_eq!((report.pages, report.journals), (16, 1));
    assert_eq!(report.notes, [] as [String; 0]);
    assert_eq!(repair(&path, &OPTIONS, None).unwrap().repaired, None);
    assert_eq!(files(&path), before, "nothing was changed");
    let text = verify(&path.join("segments"), &OPTIONS).unwrap_err().to_string();
    assert!(text.contains("is no store"), "{text}");
}

/// Each byte of each file but the locks, changed in one bit: found, and named, unless it fills a page up.
#[test]
fn every_byte_that_matters_is_looked_at() {
    let (_dir, path) = whole();
    let mut random = Random::new();
    for file in files(&path).into_iter().filter(|file| !file.ends_with("lock")) {
        let good = fs::read(&file).unwrap();
        let is_segment = file.extension().is_some_and(|e| e == "seg");
        let (mut harmless, mut at) = (0, 0);
        while at < good.len() {
            let mut bad = good.clone();
            bad[at] ^= 1 << random.below(8);
            fs::write(&file, &bad).unwrap();
            let report = verify(&path, &OPTIONS).unwrap();
            match &report.damages[..] {
                [] if is_segment && good[at] == 0 => harmless += 1,
                [damage] => assert!(
                    file.starts_with(&damage.path)
                        && damage.what.contains(&*file.to_string_lossy())
                        || damage.part == Part::Format,
                    "{}: {damage:?}",
                    file.display()
                ),
                // What the manifest named is not known any more.
                other => panic!("{} byte {at}: {other:?}", file.display()),
            }
            at += 1 + random.below(1 + good.len() as u64 / 40) as usize;
        }
        assert!(harmless <= 8, "{}: {harmless} bytes mean nothing", file.display());
        for cut in [0, good.len() / 2, good.len() - 1] {
            fs::write(&file, &good[..cut]).unwrap();
            assert_eq!(verify(&path, &OPTIONS).unwrap().damages.len(), 1, "{} cut", file.display());
        }
        fs::write(&file, [&good[..], b"x"].concat()).unwrap();
        assert_eq!(verify(&path, &OPTIONS).unwrap().damages.len(), 1, "{} longer", file.display());
        fs::write(&file, &good).unwrap();
    }
    assert_eq!(found(&verify(&path, &OPTIONS).unwrap()), []);
}

/// Statistics that are not those of the values are found, though every checksum is right.
#[test]
fn what_the_manifest_claims_of_values_is_checked() {
    let dir = tempfile::tempdir().unwrap();
    let store = Store::create_or_open(dir.path().join("s")).unwrap();
    let begun = store.begin_load(target("t", LoadMode::Append)).unwrap();
    let (mut segments, record) = crate::support::fill(&begun);
    segments[1].columns[0].max = Some(coload_types::Value::Int(1_000));
    begun.publish(segments, record).unwrap();
    let report = verify(store.path(), &OPTIONS).unwrap();
    let [damage] = &report.damages[..] else { panic!("{report:?}") };
    assert!(damage.what.contains("column id: the manifest has other bounds"), "{}", damage.what);
}

/// The rows of each load that a table holds, and which of its loads it remembers.
fn content(path: &Path, table: &str) -> (u64, BTreeSet<String>) {
    let store = Store::open(path).unwrap();
    let snapshot = store.snapshot().unwrap();
    let table = snapshot.table(table).unwrap();
    for segment in &table.segments {
        snapshot.segment(table, segment).unwrap().stored_page(0, 0).unwrap();
    }
    let held = table.loads.iter().filter(|load| load.held).map(|load| load.id.to_string());
    (table.rows(), held.collect())
}

#[test]
fn a_repair_sets_damaged_segments_aside_and_says_what_is_lost() {
    let (dir, whole) = whole();
    let path = dir.path().join("s");
    copy(&whole, &path);
    let segments: Vec<PathBuf> = {
        let store = Store::open(&path).unwrap();
        let snapshot = store.snapshot().unwrap();
        let segments = &snapshot.table("t").unwrap().segments;
        segments.iter().map(|segment| snapshot.segment_path(segment)).collect()
    };
    let (rows_before, held_before) = content(&path, "t");
    // All of the first load, half of the second: one changed, one cut, one gone.
    let bytes = fs::read(&segments[0]).unwrap();
    let mut changed = bytes.clone();
    changed[20] ^= 4;
    fs::write(&segments[0], &changed).unwrap();
    fs::write(&segments[1], &bytes[..100]).unwrap();
    fs::remove_file(&segments[2]).unwrap();
    let report = repair(&path, &OPTIONS, None).unwrap();
    assert_eq!(report.damages.len(), 3);
    let repaired = report.repaired.unwrap();
    assert_eq!(repaired.moved, segments[..2]);
    assert_eq!(fs::read(repaired.folder.join(segments[0].file_name().unwrap())).unwrap(), changed);
    let lost: Vec<(u64, u64)> =
        repaired.lost.iter().map(|l| (l.rows, l.record.as_ref().unwrap().rows)).collect();
    assert_eq!(lost, [(10, 20), (10, 20), (10, 20)]);
    assert_eq!(repaired.lost[0].record.as_ref().unwrap().inputs, ["a.csv"]);
    let (rows, held) = content(&path, "t");
    assert_eq!(rows, rows_before - 30);
    let forgotten: Vec<&String> = held_before.difference(&held).collect();
    assert_eq!(forgotten, [&repaired.lost[0].load.to_string()], "the one of which nothing is left");
    assert_eq!(found(&verify(&path, &OPTIONS).unwrap()), []);
    assert_eq!(content(&path, "u").0, 20);
}

#[test]
fn every_kind_of_file_is_set_aside() {
    let (dir, whole) = whole();
    for (round, file) in files(&whole).iter().filter(|file| !file.ends_with("lock")).enumerate() {
        let path = dir.path().join(round.to_string());
        copy(&whole, &path);
        let file = path.join(file.strip_prefix(&whole).unwrap());
        let mut bytes = fs::read(&file).unwrap();
        // The first bytes of any file matter.
        bytes[3] ^= 1;
        fs::write(&file, &bytes).unwrap();
        let repaired = repair(&path, &OPTIONS, None);
        if file.extension().is_some_and(|e| e == "manifest") {
            let text = repaired.unwrap_err().to_string();
            assert!(text.contains("no version of"), "{text}");
            assert!(!path.join("damaged").exists());
            continue;
        }
        let repaired = repaired.unwrap().repaired.unwrap();
        assert_eq!((repaired.moved.len(), repaired.left.len()), (1, 0), "{}", file.display());
        let aside = files(&repaired.folder);
        assert!(aside.iter().any(|aside| fs::read(aside).unwrap() == bytes), "{}", file.display());
        assert_eq!(found(&verify(&path, &OPTIONS).unwrap()), [], "{}", file.display());
        load(&Store::open(&path).unwrap(), "t", LoadMode::Append).unwrap();
    }
}

#[test]
fn an_older_version_that_a_reader_holds_is_gone_back_to_when_asked() {
    let dir = tempfile::tempdir().unwrap();
    let path = dir.path().join("s");
    let store = Store::create_or_open(&path).unwrap();
    load(&store, "t", LoadMode::Append).unwrap();
    let reader = store.snapshot().unwrap();
    load(&store, "t", LoadMode::Append).unwrap();
    let newest = path.join("manifest").join(names(&path.join("manifest")).pop_last().unwrap());
    let mut bytes = fs::read(&newest).unwrap();
    bytes[30] ^= 1;
    fs::write(&newest, &bytes).unwrap();
    let report = verify(&path, &OPTIONS).unwrap();
    assert_eq!((report.version, report.newest), (Some(2), Some(3)));
    let refused = repair(&path, &OPTIONS, None);
    assert!(
        matches!(&refused, Err(Error::Invalid(t)) if t.contains("--to-version 2")),
        "{refused:?}"
    );
    assert!(repair(&path, &OPTIONS, Some(1)).is_err());
    let lost = {
        let snapshot = reader.clone();
        let held: BTreeSet<String> =
            snapshot.table("t").unwrap().segments.iter().map(|s| s.file.clone()).collect();
        names(&path.join("segments")).difference(&held).cloned().collect::<BTreeSet<_>>()
    };
    let repaired = repair(&path, &OPTIONS, Some(2)).unwrap().repaired.unwrap();
    assert_eq!((lost.len(), repaired.version), (2, None));
    assert!(lost.is_subset(&names(&repaired.folder)), "what came after is kept");
    drop(reader);
    assert_eq!(content(&path, "t").0, 20);
    assert_eq!(found(&verify(&path, &OPTIONS).unwrap()), []);
}

#[test]
fn stores_are_verified_beside_those_who_change_them() {
    let dir = tempfile::tempdir().unwrap();
    let path = dir.path().join("s");
    let mut churn = child::start(&path, "churn");
    let mut lines = child::lines(&mut churn);
    assert!(lines.next().is_some() && lines.next().is_some());
    for _ in 0..50 {
        let report = verify(&path, &OPTIONS).unwrap();
        assert_eq!(found(&report), []);
        assert!(report.version.is_some());
    }
    churn.kill().unwrap();
    churn.wait().unwrap();
}

#[test]
fn a_repair_that_is_killed_is_done_again() {
    const SIGABRT: i32 = 6;
    let (dir, whole) = whole();
    let points =
        REPAIR_POINTS.into_iter().chain(["store::publish::link", "store::clean::remove_segment"]);
    for (round, point) in points.enumerate() {
        for nth in 1..20 {
            let path = dir.path().join(format!("{round}-{nth}"));
            copy(&whole, &path);
            let segments = names(&path.join("segments"));
            let broken = segments.iter().filter(|name| name.ends_with(".seg")).take(2);
            for file in broken.map(|name| path.join("segments").join(name)) {
                fs::write(file, b"nothing").unwrap();
            }
            fs::write(path.join("format"), b"nothing").unwrap();
            fs::write(path.join("loads").join(format!("{:032x}", 77)).join("load"), b"x").unwrap();
            let mut child = child::start(&path, &format!("repair {point} {nth}"));
            let said: Vec<String> = child::lines(&mut child).collect();
            let status = child.wait().unwrap();
            if status.success() {
                assert!(nth > 1, "{point} is not passed: {said:?}");
                break;
            }
            assert_eq!(status.signal(), Some(SIGABRT), "{point} {nth}: {status}");
            repair(&path, &OPTIONS, None).unwrap();
            assert_eq!(found(&verify(&path, &OPTIONS).unwrap()), [], "{point} {nth}");
            let rows = content(&path, "t").0 + content(&path, "u").0;
            assert_eq!(rows, 60, "{point} {nth}");
            let aside = files(&path.join("damaged"));
            let of_ours =
                |end: &str| aside.iter().filter(|a| a.to_string_lossy().ends_with(end)).count();
            assert!(of_ours(".seg") >= 2 && of_ours("format") >= 1, "{point} {nth}: {aside:?}");
            fs::remove_dir_all(&path).unwrap();
        }
    }
}
