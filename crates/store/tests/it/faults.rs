//! Disks that are full or broken: a message, and a store as it was.

use std::path::Path;
use std::process::Command;

use coload_store::failpoints::POINTS;
use coload_store::{LoadKind, LoadMode, LoadRecord, Store};
use coload_types::Error;

use crate::child;
use crate::support::{check_content, check_no_leftovers, load, target};

/// Points whose failure comes after the load is visible, or in cleaning, which is tried again later.
const HARMLESS: [&str; 5] = [
    "store::publish::remove_tmp",
    "store::clean::remove_tmp",
    "store::clean::sync_manifest_dir",
    "store::clean::remove_manifest",
    "store::clean::remove_segment",
];

#[test]
fn a_full_disk_at_any_failpoint_is_said_and_changes_nothing() {
    for point in POINTS {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("s");
        let created = !point.starts_with("store::create");
        if created {
            load(&Store::create_or_open(&path).unwrap(), "t", LoadMode::Append).unwrap();
        }
        let mut child = child::start(&path, &format!("fail {point} ENOSPC"));
        let said: Vec<String> = child::lines(&mut child).collect();
        assert!(child.wait().unwrap().success());
        let failed = said.iter().find(|l| l.starts_with("failed")).cloned().unwrap_or_default();
        let published = child::published(said.into_iter()).len() as u64;

        let store = Store::create_or_open(&path).unwrap();
        store.clean().unwrap();
        check_content(&store);
        check_no_leftovers(&store);
        let loads = store.snapshot().unwrap().table("t").map_or(0, |t| t.loads_count);
        if HARMLESS.contains(&point) {
            // The scenario ends with a cleaning that says what it could not do.
            assert_eq!(published, 3, "{point}: {failed}");
            assert_eq!(loads, 1 + 3, "{point}");
            continue;
        }
        assert!(failed.starts_with("failed Unavailable"), "{point}: {failed}");
        assert!(failed.contains(&*path.to_string_lossy()), "{point}: {failed}");
        assert!(failed.contains("No space left on device"), "{point}: {failed}");
        let visible = point == "store::publish::sync_manifest_dir";
        assert_eq!(failed.contains("is published, but may not outlive"), visible, "{failed}");
        assert_eq!(loads, u64::from(created) + u64::from(visible), "{point}");
    }
}

/// Where the disk ends: a small file system, mounted in a name space that ends with the process, or,
/// for who may not mount, a limit on the size of a file.
const MOUNT: &str = r#"mount -t tmpfs -o size=256k tmpfs "$1" && exec "$2" "$3" "$4" "$5""#;
const LIMIT: &str = r#"trap '' XFSZ; ulimit -f 64; exec "$2" "$3" "$4" "$5""#;

#[test]
fn a_full_disk_leaves_the_store_as_it_was() {
    let dir = tempfile::tempdir().unwrap();
    let run = |words: &[&str], script: &str, cause: &str| {
        let mut command = Command::new(words[0]);
        command.args(&words[1..]).args(["sh", "-c", script, "sh"]).arg(dir.path());
        command.arg(std::env::current_exe().unwrap());
        command.args(["--exact", "faults::fill_the_disk", "--nocapture"]);
        command.env("COLOAD_SMALL_DISK", dir.path()).env("COLOAD_SMALL_DISK_CAUSE", cause);
        command.output().unwrap()
    };
    let may_mount = |words: &[&str]| {
        let probe = Command::new(words[0])
            .args(&words[1..])
            .args(["mount", "-t", "tmpfs", "tmpfs"])
            .arg(dir.path())
            .output();
        probe.is_ok_and(|o| o.status.success())
    };
    let ways: [&[&str]; 2] = [&["unshare", "--mount"], &["unshare", "--mount", "--map-root-user"]];
    let output = match ways.into_iter().find(|w| may_mount(w)) {
        Some(way) => run(way, MOUNT, "No space left on device"),
        None => run(&["env"], LIMIT, "File too large"),
    };
    let said = String::from_utf8_lossy(&output.stdout);
    assert!(output.status.success() && said.contains("the disk is full"), "{output:?}");
}

/// Not a test: what the process with the small disk does.
#[test]
fn fill_the_disk() {
    let Ok(disk) = std::env::var("COLOAD_SMALL_DISK") else { return };
    let cause = std::env::var("COLOAD_SMALL_DISK_CAUSE").unwrap();
    let path = Path::new(&disk).join("s");
    let store = Store::create_or_open(&path).unwrap();
    let mut loads = 0;
    let error = loop {
        match load(&store, "t", LoadMode::Append) {
            Ok(_) => loads += 1,
            Err(e) => break e,
        }
    };
    check_full(&error, &cause, &disk);
    // Segments no longer fit; loads without any do, until the manifest does not either.
    let error = loop {
        let load = store.begin_load(target("t", LoadMode::Append)).unwrap();
        let record = LoadRecord::new(load.id(), LoadKind::Append);
        match load.publish(Vec::new(), record) {
            Ok(_) => loads += 1,
            Err(e) => break e,
        }
    };
    check_full(&error, &cause, &disk);
    let store = Store::open(&path).unwrap();
    assert_eq!(store.snapshot().unwrap().table("t").unwrap().loads_count, loads);
    check_content(&store);
    check_no_leftovers(&store);
    println!("the disk is full after {loads} loads: {error}");
}

fn check_full(error: &Error, cause: &str, disk: &str) {
    let text = error.to_string();
    assert!(matches!(error, Error::Unavailable(_)), "{error:?}");
    assert!(text.contains(cause) && text.contains(disk), "{text}");
}
