//! Disks that are full or broken: a message, and a store as it was.

use std::path::Path;
use std::process::Command;

use coload_store::failpoints::POINTS;
use coload_store::{LoadMode, Store};

use crate::child;
use crate::support::{check_content, check_no_leftovers, load};

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

/// Loads into a small file system until it is full. It is mounted in a name space of its own, which
/// ends with the process.
#[test]
fn a_full_disk_leaves_the_store_as_it_was() {
    const SCRIPT: &str = r#"mount -t tmpfs -o size=256k tmpfs "$1" && exec "$2" --exact faults::fill_the_disk --nocapture"#;
    let dir = tempfile::tempdir().unwrap();
    let test = std::env::current_exe().unwrap();
    let run = |unshare: &[&str]| {
        let mut command = Command::new("unshare");
        command.args(unshare).args(["sh", "-c", SCRIPT, "sh"]).arg(dir.path()).arg(&test);
        command.env("COLOAD_SMALL_DISK", dir.path()).output()
    };
    let mountable = |unshare: &[&str]| {
        let script = r#"mount -t tmpfs tmpfs "$1""#;
        let mut command = Command::new("unshare");
        command.args(unshare).args(["sh", "-c", script, "sh"]).arg(dir.path());
        command.output().is_ok_and(|o| o.status.success())
    };
    let ways: [&[&str]; 2] = [&["--mount"], &["--mount", "--map-root-user"]];
    let Some(way) = ways.into_iter().find(|w| mountable(w)) else {
        // The failpoints above test the same; here the kernel would.
        println!("SKIPPED: this user cannot mount a small file system to fill");
        return;
    };
    let output = run(way).unwrap();
    let said = String::from_utf8_lossy(&output.stdout);
    assert!(output.status.success() && said.contains("the disk is full"), "{output:?}");
}

/// Not a test: what the process with the small disk does.
#[test]
fn fill_the_disk() {
    let Ok(disk) = std::env::var("COLOAD_SMALL_DISK") else { return };
    let path = Path::new(&disk).join("s");
    let store = Store::create_or_open(&path).unwrap();
    // Leaves room for manifests, not for many segments, then for less and less.
    let mut loads = 0;
    let error = loop {
        let begun = store.begin_load(crate::support::target("t", LoadMode::Append)).unwrap_or_else(
            |e| panic!("begin after {loads} loads: {e}"),
        );
        let mut segments = Vec::new();
        for number in 0..crate::support::SEGMENTS {
            let content = crate::support::segment_content(begun.id(), number);
            if std::fs::write(begun.segment_path(number), &content).is_err() {
                // The segment writer's own failure; here the manifest's is wanted.
                std::fs::write(begun.segment_path(number), b"").unwrap();
            }
            segments.push(crate::support::entry(
                begun.id(),
                begun.segment_name(number),
                std::fs::metadata(begun.segment_path(number)).unwrap().len(),
            ));
        }
        let mut record = coload_store::LoadRecord::new(begun.id(), coload_store::LoadKind::Append);
        record.rows = segments.iter().map(|s| s.rows).sum();
        match begun.publish(segments, record) {
            Ok(_) => loads += 1,
            Err(e) => break e,
        }
    };
    let text = error.to_string();
    assert!(text.contains("No space left on device") && text.contains(&disk), "{text}");
    let store = Store::open(&path).unwrap();
    assert_eq!(store.snapshot().unwrap().table("t").unwrap().loads_count, loads);
    check_no_leftovers(&store);
    println!("the disk is full after {loads} loads: {text}");
}
