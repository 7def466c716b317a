//! Loaders that are killed: at random moments, and at every failpoint.

use std::collections::BTreeSet;
use std::os::unix::process::ExitStatusExt;
use std::path::Path;
use std::process::Child;
use std::thread::sleep;
use std::time::{Duration, Instant};

use coload_store::failpoints::{POINTS, WRITE_LOADS};
use coload_store::{LOADS_KEPT_MAX, LoadId, LoadMode, Store};

use crate::child;
use crate::remembered;
use crate::support::{Random, check_content, check_no_leftovers, load, scratch};

const SIGABRT: i32 = 6;
const SIGKILL: i32 = 9;

/// Opens what a crash left and checks that everything told to be published is there.
fn check_after_crash(path: &Path, published: &[String]) {
    let store = Store::create_or_open(path).unwrap();
    check_content(&store);
    check_no_leftovers(&store);
    let snapshot = store.snapshot().unwrap();
    let loads: BTreeSet<String> = snapshot
        .table("t")
        .map(|t| t.loads.iter().map(|l| l.id.to_string()).collect())
        .unwrap_or_default();
    for id in published {
        assert!(loads.contains(id), "load {id} was published and is lost");
    }
    drop(snapshot);
    load(&store, "after", LoadMode::Append).unwrap();
}

/// How long a load takes here: the moments of death are spread over a few loads. The least of some, as a test that
/// was stopped meanwhile would let children do more loads than a table remembers.
fn time_of_a_load() -> Duration {
    const LOADS: u32 = 10;
    let dir = tempfile::tempdir().unwrap();
    let store = Store::create_or_open(dir.path().join("s")).unwrap();
    let once = |_| {
        let begun = Instant::now();
        load(&store, "t", LoadMode::Append).unwrap();
        begun.elapsed()
    };
    (0..LOADS).map(once).min().unwrap()
}

/// Lets a child do up to some five loads and kills it. Returns the loads that it said are published.
fn kill_at_random(random: &mut Random, load_time: Duration, churn: &mut Child) -> Vec<String> {
    let mut lines = child::lines(churn);
    assert_eq!(lines.next().as_deref(), Some("begun"));
    sleep(Duration::from_nanos(random.below(5 * load_time.as_nanos() as u64)));
    churn.kill().unwrap();
    let published = child::published(lines);
    assert_eq!(churn.wait().unwrap().signal(), Some(SIGKILL), "it ended by itself");
    published
}

#[test]
fn a_loader_killed_at_random_moments_loses_nothing() {
    let (mut random, mut load_time) = (Random::new(), time_of_a_load());
    let dir = tempfile::tempdir().unwrap();
    let path = dir.path().join("s");
    let mut published_count = 0;
    for round in 0..300 {
        if round % 10 == 0 {
            // Creation is killed too.
            let _ = std::fs::remove_dir_all(&path);
            // What else the machine does changes with time.
            load_time = time_of_a_load();
        }
        let mut churn = child::start(&path, "churn");
        let published = kill_at_random(&mut random, load_time, &mut churn);
        check_after_crash(&path, &published);
        published_count += published.len();
    }
    assert!(published_count > 30, "killed too early: {published_count} loads in 300 rounds");
    println!("{published_count} loads were published in 300 rounds");
}

#[test]
fn two_loaders_killed_beside_a_third_lose_nothing() {
    let (mut random, load_time) = (Random::new(), time_of_a_load());
    let dir = tempfile::tempdir().unwrap();
    let path = dir.path().join("s");
    for _ in 0..30 {
        let mut survivor = child::start(&path, "loads t 5");
        let mut killed = [child::start(&path, "churn"), child::start(&path, "churn")];
        let mut published = Vec::new();
        for churn in &mut killed {
            published.extend(kill_at_random(&mut random, load_time, churn));
        }
        let survived = child::published(child::lines(&mut survivor));
        assert_eq!(survived.len(), 5);
        assert!(survivor.wait().unwrap().success());
        published.extend(survived);
        check_after_crash(&path, &published);
    }
}

#[test]
fn a_loader_that_dies_at_any_failpoint_loses_nothing() {
    for point in POINTS {
        for nth in 1.. {
            let dir = tempfile::tempdir().unwrap();
            let path = dir.path().join("s");
            let mut child = child::start(&path, &format!("abort {point} {nth}"));
            let published = child::published(child::lines(&mut child));
            let status = child.wait().unwrap();
            check_after_crash(&path, &published);
            if status.success() {
                assert!(nth > 1, "{point} is not passed");
                break;
            }
            assert_eq!(status.signal(), Some(SIGABRT), "{point} {nth}: {status}");
        }
    }
}

/// Copies the files of a store, which nobody writes.
pub fn copy(from: &Path, to: &Path) {
    std::fs::create_dir(to).unwrap();
    for entry in std::fs::read_dir(from).unwrap().map(Result::unwrap) {
        let place = to.join(entry.file_name());
        match entry.file_type().unwrap().is_dir() {
            true => copy(&entry.path(), &place),
            false => drop(std::fs::copy(entry.path(), place).unwrap()),
        }
    }
}

#[test]
fn a_loader_that_dies_while_loads_leave_the_manifest_forgets_none() {
    let dir = scratch();
    let full = dir.path().join("full");
    let store = Store::create_or_open(&full).unwrap();
    for key in 0..LOADS_KEPT_MAX as u128 {
        remembered::load_nothing(&store, key);
    }
    drop(store);
    let points = [WRITE_LOADS, "store::publish::write_manifest", "store::publish::link"];
    for (round, point) in points.into_iter().enumerate() {
        let path = dir.path().join(round.to_string());
        copy(&full, &path);
        let mut child = child::start(&path, &format!("abort {point} 1"));
        assert!(child::published(child::lines(&mut child)).is_empty(), "{point} is not passed");
        assert_eq!(child.wait().unwrap().signal(), Some(SIGABRT), "{point}");
        let store = Store::open(&path).unwrap();
        check_no_leftovers(&store);
        load(&store, "t", LoadMode::Append).unwrap();
        let snapshot = store.snapshot().unwrap();
        assert_eq!(snapshot.table("t").unwrap().older.len(), 1, "{point}");
        for key in [0, 499, 500, LOADS_KEPT_MAX as u128 - 1] {
            let found = snapshot.published("t", LoadId::from_u128(key)).unwrap();
            assert!(found.is_some(), "{point}: {key}");
        }
    }
}
