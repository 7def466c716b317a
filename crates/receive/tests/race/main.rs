//! A retry that comes while the first attempt is being published. In a program of its own: failpoints are of the process.
#![allow(clippy::unwrap_used)]

#[path = "../it/setup.rs"]
#[allow(dead_code)]
mod setup;

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use coload_load::RemoteWork;
use coload_receive::ReceiveOptions;
use coload_transform::Adaptive;

use setup::{Server, load_remote, options, records, rows};

const ADAPTIVE: RemoteWork = RemoteWork::Shared(&Adaptive);

/// Symptom: rows loaded twice. Cause: that a load was not published was looked at before its journal was locked, and with
/// `pipe` and `seq` not again after that: the first attempt was published, and its journal removed, in between.
#[test]
fn a_retry_that_comes_while_the_first_attempt_is_published_loads_nothing() {
    const ROWS: u64 = 2_000;
    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join("t.csv");
    std::fs::write(&file, records(ROWS)).unwrap();
    let server = Server::start(&folder.path().join("server"), ReceiveOptions::default());
    let policies = [RemoteWork::Seq, RemoteWork::Pipe, ADAPTIVE];
    for (number, placement) in policies.into_iter().enumerate() {
        let table = format!("t{number}");
        let mut remote = server.remote();
        remote.work = placement;
        let (first, of_first) = (options(&file, &table), remote.clone());
        let is_first = Arc::new(AtomicBool::new(true));
        // The second attempt found that the load is not published, and is about to make its journal.
        fail::cfg_callback("store::begin::mkdir", move || {
            if is_first.swap(false, Ordering::SeqCst) {
                let (first, remote) = (first.clone(), of_first.clone());
                let whole = std::thread::spawn(move || load_remote(&first, &remote).unwrap());
                // Of partitions one attempt at a time comes so far: there is no first one to wait for.
                if placement != ADAPTIVE {
                    assert!(!whole.join().unwrap().already);
                }
            }
        })
        .unwrap();
        let second = load_remote(&options(&file, &table), &remote);
        fail::remove("store::begin::mkdir");
        if placement != ADAPTIVE {
            assert!(second.unwrap().already, "{placement:?}");
        }
        // Whoever of two came first.
        load_remote(&options(&file, &table), &remote).unwrap();
        assert_eq!(rows(&server.store, &table)[0].len() as u64, ROWS, "{placement:?}");
    }
    assert!(server.store.list_journals().unwrap().is_empty());
}
