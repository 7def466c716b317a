//! Loads that are killed, at random moments and at every failpoint, and loads on full disks: the store
//! opens, holds whole loads only, and every load that was published.

use std::os::unix::process::ExitStatusExt;
use std::process::Command;
use std::thread::sleep;
use std::time::{Duration, Instant, SystemTime, UNIX_EPOCH};

use coload_store::failpoints::POINTS;

use crate::child::{self, LoadKey};
use crate::support::scratch;
use crate::text::Random;

const SIGABRT: i32 = 6;
const SIGKILL: i32 = 9;
/// Loads, of several segments each, so that small segments are merged and removed more than once.
const LOADS: i64 = 12;

/// Random moments; the seed is printed, and taken from `COLOAD_SEED` if set.
fn random() -> Random {
    let clock = || SystemTime::now().duration_since(UNIX_EPOCH).unwrap().as_nanos() as u64;
    let seed = std::env::var("COLOAD_SEED").map_or_else(|_| clock(), |s| s.parse().unwrap());
    println!("COLOAD_SEED={seed}");
    Random::new(seed)
}

/// How long a load takes here: the moments of death are spread over a few loads.
fn load_time() -> Duration {
    let dir = scratch();
    let began = Instant::now();
    let mut child = child::start(dir.path(), "loads 10");
    assert_eq!(child::published(child::lines(&mut child)).len(), 10);
    child.wait().unwrap();
    began.elapsed() / 10
}

#[test]
fn loads_killed_at_random_moments_are_there_whole_or_not_at_all() {
    const ROUNDS: usize = 200;
    let (mut random, load_time) = (random(), load_time());
    let mut total = 0;
    let mut dir = scratch();
    let mut known: Vec<LoadKey> = Vec::new();
    for round in 0..ROUNDS {
        if round % 20 == 0 {
            // Creation is killed too, and stores stay small.
            (dir, known) = (scratch(), Vec::new());
        }
        let mut children: Vec<_> =
            (0..1 + round % 2).map(|_| child::start(dir.path(), "loads 1000000")).collect();
        for child in &mut children {
            let mut lines = child::lines(child);
            assert_eq!(lines.next().as_deref(), Some("begun"));
            sleep(load_time.mul_f64(random.below(4_000) as f64 / 1_000.0));
            child.kill().unwrap();
            known.extend(child::published(lines));
            assert_eq!(child.wait().unwrap().signal(), Some(SIGKILL), "it ended by itself");
        }
        let found = child::check(dir.path(), &known);
        total += found.len() - known.len().min(found.len());
        known = found;
    }
    println!("{total} loads were published that did not come to say so");
}

#[test]
fn two_processes_load_and_merge_at_once() {
    let dir = scratch();
    let mut children: Vec<_> = (0..2).map(|_| child::start(dir.path(), "loads 40")).collect();
    let mut known = Vec::new();
    for child in &mut children {
        let said: Vec<String> = child::lines(child).collect();
        assert!(said.iter().any(|l| l == "done"), "{:?}", said.last());
        known.extend(child::published(said.into_iter()));
        assert!(child.wait().unwrap().success());
    }
    assert_eq!(child::check(dir.path(), &known).len(), 80);
    let store = coload_store::Store::open(dir.path().join("s")).unwrap();
    let segments = store.snapshot().unwrap().table("t").unwrap().segments.len();
    assert!(segments <= 30, "{segments} segments");
}

/// Points that are passed in other ways than by loads: these are the store's own tests.
const OTHERS: [&str; 1] = ["store::clean::remove_tmp"];

#[test]
fn a_load_that_dies_at_any_failpoint_loses_nothing() {
    for point in POINTS.into_iter().filter(|p| !OTHERS.contains(p)) {
        let mut nth = 1;
        loop {
            let dir = scratch();
            let mut child = child::start(dir.path(), &format!("abort {point} {nth} {LOADS}"));
            let known = child::published(child::lines(&mut child));
            let status = child.wait().unwrap();
            child::check(dir.path(), &known);
            if status.success() {
                assert!(nth > 1, "{point} is not passed");
                break;
            }
            assert_eq!(status.signal(), Some(SIGABRT), "{point} {nth}: {status}");
            // The first times one by one, then in larger steps.
            nth += 1 + nth / 4;
        }
    }
}

#[test]
fn a_full_disk_at_any_failpoint_is_said_and_changes_nothing() {
    for point in POINTS.into_iter().filter(|p| !OTHERS.contains(p)) {
        let dir = scratch();
        let mut child = child::start(dir.path(), &format!("fail {point} ENOSPC {LOADS}"));
        let said: Vec<String> = child::lines(&mut child).collect();
        assert!(child.wait().unwrap().success());
        let failed = said.iter().find(|l| l.starts_with("failed")).cloned();
        let known = child::published(said.into_iter());
        let found = child::check(dir.path(), &known);
        match failed {
            Some(error) => {
                assert!(error.contains("No space left on device"), "{point}: {error}");
                // Only what follows the publishing may fail with the load there.
                let late = point == "store::publish::sync_manifest_dir";
                let unsaid = found.len() - known.len();
                assert!(unsaid <= usize::from(late), "{point}: {unsaid} {error}");
            }
            None => assert_eq!(found.len() as i64, LOADS, "{point}"),
        }
    }
}

/// Where the disk ends: a small file system, mounted in a name space that ends with the process, or,
/// for who may not mount, a limit on the size of a file.
const MOUNT: &str = r#"mount -t tmpfs -o size=300k tmpfs "$1" && exec "$2" "$3" "$4" "$5""#;
const LIMIT: &str = r#"trap '' XFSZ; ulimit -f 64; exec "$2" "$3" "$4" "$5""#;

#[test]
fn a_full_disk_leaves_the_store_as_it_was() {
    let (dir, inputs) = (scratch(), scratch());
    let run = |words: &[&str], script: &str| {
        let mut command = Command::new(words[0]);
        command.args(&words[1..]).args(["sh", "-c", script, "sh"]).arg(dir.path());
        command.arg(std::env::current_exe().unwrap());
        command.args(["--exact", "crash::fill_the_disk", "--nocapture"]);
        command.env("COLOAD_SMALL_DISK", dir.path()).env("COLOAD_CHILD_INPUTS", inputs.path());
        command.output().unwrap()
    };
    let may_mount = |words: &[&str]| {
        let mut probe = Command::new(words[0]);
        probe.args(&words[1..]).args(["mount", "-t", "tmpfs", "tmpfs"]).arg(dir.path());
        probe.output().is_ok_and(|o| o.status.success())
    };
    let ways: [&[&str]; 2] = [&["unshare", "--mount"], &["unshare", "--mount", "--map-root-user"]];
    let output = match ways.into_iter().find(|w| may_mount(w)) {
        Some(way) => run(way, MOUNT),
        None => run(&["env"], LIMIT),
    };
    let said = String::from_utf8_lossy(&output.stdout);
    assert!(output.status.success() && said.contains("the disk is full"), "{output:?}");
}

/// Not a test: what the process with the small disk does.
#[test]
fn fill_the_disk() {
    let Ok(disk) = std::env::var("COLOAD_SMALL_DISK") else { return };
    let disk = std::path::Path::new(&disk);
    let mut known = Vec::new();
    let error = loop {
        let mut child = child::start(disk, "loads 1");
        let said: Vec<String> = child::lines(&mut child).collect();
        let _ = child.wait();
        let failed = said.iter().find_map(|l| l.strip_prefix("failed ").map(str::to_owned));
        let published = child::published(said.into_iter());
        known.extend(published.iter().copied());
        match failed {
            // The rows may be there although the merge after the load found no room.
            Some(error) => break error,
            None => assert_eq!(published.len(), 1),
        }
    };
    let full = ["No space left on device", "File too large"].iter().any(|e| error.contains(e));
    assert!(full, "{error}");
    assert!(known.len() > 1);
    child::check(disk, &known);
    println!("the disk is full after {} loads: {error}", known.len());
}
