//! Files that break while they are read: inputs, and segments that are merged.

use std::fs::OpenOptions;
use std::sync::Arc;

use coload_source::Dialect;
use coload_store::Store;
use coload_store::merge_small;

use crate::support::{load, merged, options, scratch, write};

#[test]
fn an_input_that_is_cut_while_it_is_loaded_fails_the_load() {
    let dir = scratch();
    let store = Store::create_or_open(dir.path().join("s")).unwrap();
    let text: String = (0..400_000).map(|i| format!("{i}\n")).collect();
    let path = write(&dir, "in.csv", text.as_bytes());
    let mut options = options(std::slice::from_ref(&path), "a INTEGER", Dialect::default());
    options.resources.chunk_bytes = 64 << 10;
    let cut = path.clone();
    let once = std::sync::Once::new();
    options.hooks.progress = Some(Arc::new(move |progress| {
        if progress.rows() > 0 {
            once.call_once(|| {
                OpenOptions::new().write(true).open(&cut).unwrap().set_len(300_000).unwrap();
            });
        }
    }));
    let error = load(&store, &options).unwrap_err().to_string();
    assert!(error.contains("in.csv"), "{error}");
    assert!(store.snapshot().unwrap().tables().is_empty());
}

/// Symptom: the process ended with SIGBUS, after its load was published.
#[test]
fn a_merge_whose_segment_is_cut_fails_and_publishes_nothing() {
    let dir = scratch();
    let store = Store::create_or_open(dir.path().join("s")).unwrap();
    let text: String = (0..50_000).map(|i| format!("{i},{}\n", i * 7919 % 1000)).collect();
    let path = write(&dir, "in.csv", text.as_bytes());
    let options = options(&[path], "a INTEGER, b INTEGER", Dialect::default());
    for _ in 0..7 {
        load(&store, &options).unwrap();
    }
    // Open, as a server has it.
    let snapshot = store.snapshot().unwrap();
    let table = snapshot.table("t").unwrap();
    let open = snapshot.segment(table, &table.segments[3]).unwrap();
    open.column(0).unwrap();
    OpenOptions::new().write(true).open(open.path()).unwrap().set_len(100).unwrap();
    let merge = merged(load(&store, &options).unwrap());
    let error = merge.unwrap_err().to_string();
    assert!(error.contains(".seg"), "{error}");
    assert!(merge_small(&store, "t").is_err());
    assert_eq!(store.snapshot().unwrap().table("t").unwrap().segments.len(), 8);
}
