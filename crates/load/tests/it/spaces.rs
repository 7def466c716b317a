//! Sorted loads through spaces, with little memory and small sort buffers, beside a map: one order over all segments of a load,
//! whatever the space and the number of threads.

use std::collections::BTreeMap;
use std::os::unix::fs::FileExt;
use std::os::unix::process::ExitStatusExt;
use std::path::Path;
use std::sync::Arc;

use coload_ddl::{Key, KeyKind};
use coload_load::LoadReport;
use coload_source::Dialect;
use coload_space::SpaceSpec;
use coload_store::{OnConflict, Store, VerifyOptions, verify};
use coload_types::{Error, Result, Value};
use proptest::prelude::*;

use crate::child;
use crate::model::Row;
use crate::support::*;

const COLUMNS: &str = "k VARCHAR NOT NULL, n INTEGER, v BIGINT, d DECIMAL(30,2), t VARCHAR";

/// A space of each kind, some in a directory.
const KINDS: [&str; 5] = ["dram", "map:DIR", "pmem:DIR", "disk:DIR", "emulated:1,1000,1000"];

type Given = (String, Option<i32>, i64);

fn space(text: &str) -> SpaceSpec {
    SpaceSpec::parse(text, |size| size.parse().map_err(|_| "no number".to_owned())).unwrap()
}

/// How a load is sorted.
#[derive(Debug, Clone)]
struct How {
    key: Key,
    on_conflict: OnConflict,
    threads: usize,
    sort: Option<String>,
    runs: Option<String>,
}

impl How {
    fn new(kind: KeyKind, columns: Vec<usize>) -> Self {
        let key = Key::new(kind, columns).unwrap();
        How { key, on_conflict: OnConflict::Error, threads: 2, sort: None, runs: None }
    }
}

fn options_of(dir: &Path, given: &[Given], how: &How) -> Options {
    let line = |(k, n, v): &Given| {
        let n = n.map_or_else(String::new, |n| n.to_string());
        format!("{k},{n},{v},{}.5,text {}\n", i128::from(*v) * 1_000_000_000_000_000_000, v % 11)
    };
    let path = dir.join("a.csv");
    std::fs::write(&path, given.iter().map(line).collect::<String>()).unwrap();
    let mut options = options(&[path], COLUMNS, Dialect::default());
    let schema = options.request.schema.clone().with_key(Some(how.key.clone())).unwrap();
    options.request.schema = schema;
    options.request.on_conflict = how.on_conflict;
    options.resources.threads = how.threads;
    options.resources.chunk_bytes = 256;
    options.resources.fragments_per_partition = 2;
    options.resources.memory = 8_000;
    options.resources.sort_space = how.sort.as_deref().map(space);
    options.resources.run_space = how.runs.as_deref().map(space);
    options
}

fn load_rows(store: &Store, dir: &Path, given: &[Given], how: &How) -> Result<LoadReport> {
    load(store, &options_of(dir, given, how))
}

fn row((k, n, v): &Given) -> Row {
    let text = |text: &str| Some(Value::Bytes(text.as_bytes().into()));
    let wide = i128::from(*v) * 100_000_000_000_000_000_000 + if *v < 0 { -50 } else { 50 };
    let n = n.map(|n| Value::Int(i64::from(n)));
    vec![
        text(k),
        n,
        Some(Value::Int(*v)),
        Some(Value::Wide(wide)),
        text(&format!("text {}", v % 11)),
    ]
}

/// The key of a row in its order: NULL is last.
fn key_of(row: &Row, key: &Key) -> Vec<(bool, Option<Value>)> {
    key.columns().iter().map(|c| (row[*c].is_none(), row[*c].clone())).collect()
}

/// The rows that a load leaves of those given, in order; `None` when it fails.
fn model(given: &[Given], how: &How) -> Option<Vec<Row>> {
    let mut groups: BTreeMap<Vec<(bool, Option<Value>)>, Vec<Row>> = BTreeMap::new();
    for row in given.iter().map(row) {
        if how.key.is_unique() && how.key.columns().iter().any(|c| row[*c].is_none()) {
            // A reject.
            continue;
        }
        let group = groups.entry(key_of(&row, &how.key)).or_default();
        match (group.last_mut().filter(|_| how.key.is_unique()), how.on_conflict) {
            (None, _) => group.push(row),
            (
                Some(_),
                OnConflict::Error | OnConflict::ReplaceOnce | OnConflict::IgnoreUnique(_),
            ) => return None,
            (Some(_), OnConflict::Ignore | OnConflict::IgnoreKey | OnConflict::Reject) => {}
            (Some(last), OnConflict::Replace) => *last = row,
            (Some(last), OnConflict::Newest(column)) if row[column] >= last[column] => *last = row,
            (Some(_), OnConflict::Newest(_)) => {}
        }
    }
    Some(groups.into_values().flatten().collect())
}

fn drawn() -> impl Strategy<Value = Vec<Given>> {
    let key = prop_oneof![Just(String::new()), "[ab]{1,3}", "[ab]p{40}[ab]{1,9}", "[a-z]{3}"];
    let number = prop_oneof![proptest::option::of(-1..3i32), Just(None), Just(None)];
    proptest::collection::vec((key, number, -400..400i64), 0..120)
}

fn some_spaces() -> impl Strategy<Value = (Option<String>, Option<String>)> {
    let kinds = |size: &'static str| KINDS.map(|kind| Some(format!("{kind}{size}")));
    let sort = [&kinds(",size=9000000")[..], &kinds(",size=4000")[..], &[None]].concat();
    let runs = [&kinds(",size=9000000")[..], &[None]].concat();
    (proptest::sample::select(sort), proptest::sample::select(runs))
}

fn in_dir(space: Option<String>, dir: &Path) -> Option<String> {
    space.map(|space| space.replace("DIR", &dir.display().to_string()))
}

fn left_in(dir: &Path) -> usize {
    std::fs::read_dir(dir).unwrap().count()
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(96))]

    #[test]
    fn segments_of_a_load_are_one_order(
        given in drawn(),
        kind in prop_oneof![Just(KeyKind::Primary), Just(KeyKind::Cluster)],
        columns in prop_oneof![Just(vec![0]), Just(vec![1, 0]), Just(vec![2]), Just(vec![0, 1, 2]), Just(vec![3])],
        on_conflict in prop_oneof![
            Just(OnConflict::Error), Just(OnConflict::Ignore), Just(OnConflict::Replace), Just(OnConflict::Newest(1)),
        ],
        (sort, runs) in some_spaces(),
        threads in 1..4usize,
    ) {
        let (dir, disk) = (scratch(), scratch());
        let mut how = How::new(kind, columns);
        if how.key.is_unique() {
            how.on_conflict = on_conflict;
        }
        (how.sort, how.runs, how.threads) = (in_dir(sort, disk.path()), in_dir(runs, disk.path()), threads);
        let store = Store::create_or_open(dir.path().join("s")).unwrap();
        let loaded = load_rows(&store, dir.path(), &given, &how);
        match (model(&given, &how), loaded) {
            (Some(wanted), Ok(report)) => {
                prop_assert_eq!(report.rows(), wanted.len() as u64);
                prop_assert_eq!(rows(&store, "t"), wanted);
            }
            (None, Err(error)) => prop_assert!(error.to_string().contains("comes twice among them (rows "), "{error}"),
            (wanted, loaded) => prop_assert!(false, "{wanted:?} {loaded:?}"),
        }
        prop_assert_eq!(left_in(disk.path()), 0);
        child::check_no_leftovers(&store);
        let checked = verify(store.path(), &VerifyOptions { threads: 1, progress: None }).unwrap();
        prop_assert_eq!(checked.damages, Vec::new());
    }
}

/// Rows in no order, each key once.
fn shuffled(count: i64) -> Vec<Given> {
    (0..count).map(|i| i * 7919 % count).map(|i| (format!("k{i:05}"), Some(1), i)).collect()
}

#[test]
fn any_number_of_threads_and_any_space_give_the_same_segments() {
    let (given, disk) = (shuffled(701), scratch());
    let mut made = Vec::new();
    let spaces = KINDS.map(|kind| in_dir(Some(format!("{kind},size=9000000")), disk.path()));
    for (number, runs) in spaces.iter().chain([&None]).enumerate() {
        for threads in 1..4 {
            let dir = scratch();
            let mut how = How::new(KeyKind::Primary, vec![2, 0]);
            (how.threads, how.runs) = (threads, runs.clone());
            how.sort = spaces[(number + threads) % spaces.len()].clone();
            let store = Store::create_or_open(dir.path().join("s")).unwrap();
            let report = load_rows(&store, dir.path(), &given, &how).unwrap();
            let sorted = report.sorted.unwrap();
            assert!(sorted.runs > 3, "{sorted:?}");
            let not_dax = |space: &Option<String>| space.iter().any(|s| s.starts_with("pmem"));
            assert_eq!(
                sorted.notes.iter().any(|n| n.contains("DAX")),
                not_dax(&how.sort) || not_dax(&how.runs)
            );
            made.push(segment_bytes(&store, "t"));
            assert_eq!(left_in(disk.path()), 0);
        }
    }
    assert!(made.iter().all(|segments| *segments == made[0]));
}

#[test]
fn segments_that_are_in_order_are_not_merged() {
    let dir = scratch();
    let store = Store::create_or_open(dir.path().join("s")).unwrap();
    let mut given = shuffled(2000);
    given.sort();
    let how = How::new(KeyKind::Primary, vec![0]);
    let report = load_rows(&store, dir.path(), &given, &how).unwrap();
    assert_eq!(report.sorted.unwrap().runs, 0);
    // Of keys that may come twice a segment begins with the one that the segment before ends with.
    let same: Vec<Given> = (0..2000).map(|i| (format!("k{}", i / 700), Some(1), i)).collect();
    let mut how = How::new(KeyKind::Cluster, vec![0]);
    how.threads = 1;
    let other = scratch();
    let store = Store::create_or_open(other.path().join("s")).unwrap();
    let report = load_rows(&store, other.path(), &same, &how).unwrap();
    assert_eq!(report.sorted.unwrap().runs, 0);
    assert_eq!(rows(&store, "t"), same.iter().map(row).collect::<Vec<_>>());
}

#[test]
fn one_value_of_many_rows_is_cut_in_the_order_of_the_input() {
    let dir = scratch();
    let store = Store::create_or_open(dir.path().join("s")).unwrap();
    let given: Vec<Given> =
        (0..3000).map(|i| (if i % 50 == 7 { "a" } else { "x" }.into(), Some(1), i)).collect();
    let how = How::new(KeyKind::Cluster, vec![0]);
    let report = load_rows(&store, dir.path(), &given, &how).unwrap();
    let sorted = report.sorted.unwrap();
    assert!(sorted.runs > 2 && report.published.unwrap().segments > 2, "{sorted:?}");
    assert_eq!(rows(&store, "t"), model(&given, &how).unwrap());
}

#[test]
fn long_keys_that_begin_alike_are_merged() {
    let dir = scratch();
    let store = Store::create_or_open(dir.path().join("s")).unwrap();
    let long = |i: i64| (format!("{}{:03}", "p".repeat(9000), i * 37 % 101), Some(1), i);
    let mut given: Vec<Given> = (0..101).map(long).collect();
    given.push(("z".repeat(64 << 10), Some(1), 5));
    let how = How::new(KeyKind::Primary, vec![0]);
    let mut options = options_of(dir.path(), &given, &how);
    (options.resources.memory, options.resources.chunk_bytes) = (4 << 20, 80_000);
    options.resources.sort_space = Some(space("dram,size=1000000"));
    let report = load(&store, &options).unwrap();
    assert!(report.sorted.unwrap().runs > 1);
    assert_eq!(rows(&store, "t"), model(&given, &how).unwrap());
}

#[test]
fn a_space_that_is_full_or_not_there_leaves_the_table_as_it_was() {
    let (dir, disk) = (scratch(), scratch());
    let store = Store::create_or_open(dir.path().join("s")).unwrap();
    let mut how = How::new(KeyKind::Primary, vec![0]);
    let before: Vec<Given> = vec![("b".into(), None, 1), ("a".into(), None, 2)];
    load_rows(&store, dir.path(), &before, &how).unwrap();
    let there = rows(&store, "t");
    for kind in KINDS {
        how.runs = in_dir(Some(format!("{kind},size=30000")), disk.path());
        let error = load_rows(&store, dir.path(), &shuffled(900), &how).unwrap_err();
        let name = how.runs.as_deref().unwrap().trim_end_matches(",size=30000");
        let text = error.to_string();
        assert!(matches!(error, Error::Limit(_)) && text.contains(name), "{text}");
        assert_eq!((rows(&store, "t"), left_in(disk.path())), (there.clone(), 0));
        child::check_no_leftovers(&store);
    }
    how.runs = Some("map:/not/there".into());
    let error = load_rows(&store, dir.path(), &shuffled(900), &how).unwrap_err().to_string();
    assert!(error.contains("space map:/not/there"), "{error}");
    assert_eq!(rows(&store, "t"), there);
}

#[test]
fn spaces_are_for_tables_with_keys() {
    let dir = scratch();
    let store = Store::create_or_open(dir.path().join("s")).unwrap();
    let path = write(&dir, "b.csv", b"1\n");
    let mut options = options(&[path], "a INTEGER", Dialect::default());
    options.resources.run_space = Some(space("dram"));
    let error = load(&store, &options).unwrap_err().to_string();
    assert!(error.contains("--run-space dram") && error.contains("table t has no key"), "{error}");
}

/// Rows that are in the table before the loads of children.
const ROWS_BEFORE: i64 = 10;

/// What a child does: a sorted load, during which something happens.
pub fn child(dir: &Path, what: &str, space: &str) -> Result<()> {
    let disk = dir.join("disk");
    match what {
        "abort-write" => abort_at("store::run::write", 20),
        "abort-merge" => abort_at("store::run::merge", 2),
        "full" => fail::cfg("store::run::write", "20*off->return(ENOSPC)").unwrap(),
        "damage" => {
            // A file that is mapped is not open any more when it is read.
            for point in ["store::run::write", "store::run::merge"] {
                let disk = disk.clone();
                fail::cfg_callback(point, move || damage_files(&disk)).unwrap();
            }
        }
        "vanish" => {
            let disk = disk.clone();
            fail::cfg_callback("store::run::write", move || {
                let _ = std::fs::remove_dir_all(&disk);
            })
            .unwrap();
        }
        "abort-told" => {}
        _ => panic!("what is {what}?"),
    }
    let store = Store::create_or_open(dir.join("s"))?;
    let mut how = How::new(KeyKind::Primary, vec![0]);
    how.runs = in_dir(Some(space.to_owned()), &disk);
    let mut given = shuffled(900);
    if what == "abort-told" {
        // Records were told that are rejects, and nothing is published yet.
        how.on_conflict = OnConflict::Reject;
        given.extend(shuffled(900));
    }
    let mut options = options_of(dir, &given, &how);
    if what == "abort-told" {
        options.hooks.confirm = Some(Arc::new(|| std::process::abort()));
    }
    load(&store, &options).map(|_| ())
}

fn abort_at(point: &'static str, nth: usize) {
    let hits = std::sync::atomic::AtomicUsize::new(0);
    fail::cfg_callback(point, move || {
        if hits.fetch_add(1, std::sync::atomic::Ordering::SeqCst) + 1 == nth {
            std::process::abort();
        }
    })
    .unwrap();
}

/// Changes the first bytes in each file without a name that this process has open below a directory.
fn damage_files(disk: &Path) {
    for entry in std::fs::read_dir("/proc/self/fd").unwrap().flatten() {
        let Ok(target) = std::fs::read_link(entry.path()) else { continue };
        if target.starts_with(disk) && target.to_string_lossy().ends_with(" (deleted)") {
            let file = std::fs::File::options().read(true).write(true).open(entry.path()).unwrap();
            let mut bytes = [0; 4096];
            if file.read_exact_at(&mut bytes[..1], 0).is_ok() {
                let _ = file.read_at(&mut bytes, 0);
                bytes[..8].copy_from_slice(b"damaged!");
                file.write_all_at(&bytes, 0).unwrap();
            }
        }
    }
}

#[test]
fn who_dies_or_finds_a_run_damaged_leaves_nothing() {
    for kind in ["map:DIR", "disk:DIR"] {
        for (what, wanted) in [
            ("abort-write", None),
            ("abort-merge", None),
            ("abort-told", None),
            ("full", Some("No space left on device")),
            ("damage", Some("corrupt: space ")),
            ("vanish", Some("space ")),
        ] {
            let dir = scratch();
            let disk = dir.path().join("disk");
            std::fs::create_dir(&disk).unwrap();
            let path = dir.path().join("s");
            let store = Store::create_or_open(&path).unwrap();
            let how = How::new(KeyKind::Primary, vec![0]);
            let before: Vec<Given> = (0..ROWS_BEFORE).map(|i| (format!("a{i}"), None, i)).collect();
            load_rows(&store, dir.path(), &before, &how).unwrap();
            let there = rows(&store, "t");
            let mut process = child::start(dir.path(), &format!("sorted {what} {kind}"));
            let said: Vec<String> = child::lines(&mut process).collect();
            let status = process.wait().unwrap();
            match wanted {
                None => assert_eq!(status.signal(), Some(6), "{what} {kind}: {said:?}"),
                Some(wanted) => {
                    let failed = said.iter().find(|line| line.starts_with("failed "));
                    let failed = failed.unwrap_or_else(|| panic!("{what} {kind}: {said:?}"));
                    let name = in_dir(Some(kind.into()), &disk).unwrap();
                    assert!(failed.contains(wanted) && failed.contains(&name), "{failed}");
                }
            }
            let store = Store::open(&path).unwrap();
            assert_eq!(rows(&store, "t"), there);
            child::check_no_leftovers(&store);
            assert!(!disk.exists() || left_in(&disk) == 0, "{what} {kind}");
        }
    }
}

/// Symptom: a shuffled load without flags of sorting, of three segments' worth of rows, became 245 segments of 16,000 rows, which were merged again
/// at once. Cause: the size of a segment was taken to be no bytes where no sort buffer has one, so that runs were cut at each mark.
#[test]
fn runs_become_no_more_segments_than_they_were() {
    let folder = tempfile::tempdir().unwrap();
    let store = Store::create_or_open(folder.path().join("store")).unwrap();
    let given: Vec<Given> =
        (0..40_000_i64).map(|i| (format!("{:06}", i * 7919 % 40_000), Some(3), i % 400)).collect();
    let mut options = options_of(folder.path(), &given, &How::new(KeyKind::Primary, vec![0]));
    options.resources.chunk_bytes = 16 << 10;
    options.resources.memory = 600_000;
    let sorted = load(&store, &options).unwrap();
    options.request.schema = options.request.schema.clone().with_key(None).unwrap();
    options.request.table = "plain".into();
    let plain = load(&store, &options).unwrap();
    let segments = |report: &LoadReport| report.published.as_ref().unwrap().segments;
    assert!(segments(&plain) > 1, "{}", segments(&plain));
    assert!(segments(&sorted) <= segments(&plain), "{} of {}", segments(&sorted), segments(&plain));
}
