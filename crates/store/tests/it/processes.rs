//! Several processes load into one store at once.

use std::collections::BTreeSet;
use std::process::Child;

use coload_store::Store;

use crate::child;
use crate::support::{SEGMENTS, check_content, check_no_leftovers};

const LOADS: usize = 50;

fn all_succeed(processes: usize, table_of: impl Fn(usize) -> String) {
    let dir = tempfile::tempdir().unwrap();
    // The store is not there yet: making it is a race too.
    let path = dir.path().join("s");
    let task = |i| format!("loads {} {LOADS}", table_of(i));
    let mut children: Vec<Child> = (0..processes).map(|i| child::start(&path, &task(i))).collect();
    let mut published = BTreeSet::new();
    for process in &mut children {
        let ids = child::published(child::lines(process));
        assert_eq!(ids.len(), LOADS);
        published.extend(ids);
        assert!(process.wait().unwrap().success());
    }
    let store = Store::open(&path).unwrap();
    let snapshot = store.snapshot().unwrap();
    let loads = snapshot.tables().iter().flat_map(|t| &t.loads).map(|l| l.id.to_string());
    assert_eq!(loads.collect::<BTreeSet<_>>(), published);
    let segments: usize = snapshot.tables().iter().map(|t| t.segments.len()).sum();
    assert_eq!(segments, processes * LOADS * SEGMENTS as usize);
    assert_eq!(snapshot.version(), (processes * LOADS + 1) as u64);
    check_content(&store);
    check_no_leftovers(&store);
}

#[test]
fn two_processes_load_into_one_table() {
    all_succeed(2, |_| "t".into());
}

#[test]
fn four_processes_load_into_two_tables() {
    all_succeed(4, |i| format!("t{}", i % 2));
}
