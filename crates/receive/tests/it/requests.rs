//! Rejects, changed inputs, lists, aborts, tables that change: each with its message.

use coload_load::{RemoteWork, abort_load, list_loads, table_schema};
use coload_receive::{Need, ReceiveOptions};
use coload_store::{LoadId, OnMissing};
use coload_types::Error;
use coload_wire::{Again, LoadStage, RejectLimit};

use crate::setup::{ALL, Options, Server, load_remote, options, records, rows};

#[test]
fn rejects_come_back_with_file_and_line_whoever_parses() {
    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join("t.csv");
    let mut text = records(1_000);
    text.insert_str(0, "x,Rom,1.00,2001-01-01,n,1.0,true,\n");
    text.push_str("2000,Rom,no price,2001-01-01,n,1.0,true,\n");
    std::fs::write(&file, &text).unwrap();
    let server = Server::start(&folder.path().join("server"), ReceiveOptions::default());
    let last = text.lines().count() as u64;
    for (number, placement) in [ALL, RemoteWork::Pipe, RemoteWork::Seq].into_iter().enumerate() {
        let table = format!("t{number}");
        let mut strict = options(&file, &table);
        let mut remote = server.remote();
        remote.work = placement;
        let error = load_remote(&strict, &remote).unwrap_err();
        let Error::Input { place, .. } = &error else { panic!("{placement:?}: {error:?}") };
        assert_eq!((place.line, place.field), (1, 1), "{placement:?}");
        assert!(server.store.list_journals().unwrap().is_empty(), "{placement:?}");
        strict.max_rejects = RejectLimit::Count(2);
        let rejects = folder.path().join(format!("rejects{number}.csv"));
        strict.rejects_file = Some(rejects.clone());
        let report = load_remote(&strict, &remote).unwrap();
        assert_eq!((report.rows, report.rejects), (1_000, 2), "{placement:?}");
        let lines: Vec<u64> = report.first_rejects.iter().map(|r| r.place.line).collect();
        assert_eq!(lines, [1, last], "{placement:?}");
        assert!(report.first_rejects[0].place.file.ends_with("t.csv"));
        assert!(std::fs::read_to_string(rejects).unwrap().contains("no price"), "{placement:?}");
        assert_eq!(rows(&server.store, &table)[0].len(), 1_000);
    }
}

#[test]
fn an_unfinished_load_is_listed_and_refuses_changed_inputs_until_it_is_dropped() {
    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join("t.csv");
    std::fs::write(&file, records(3_000)).unwrap();
    let server = Server::start(&folder.path().join("server"), ReceiveOptions::default());
    let stopped = options(&file, "t");
    let cancel = std::sync::Arc::clone(&stopped.hooks.cancel);
    let mut stopped = stopped;
    stopped.hooks.progress = Some(std::sync::Arc::new(move |progress| {
        if progress.rows() > 500 {
            cancel.store(true, std::sync::atomic::Ordering::Relaxed);
        }
    }));
    let remote = server.remote();
    let error = load_remote(&stopped, &remote).unwrap_err();
    assert!(error.to_string().contains("stopped"), "{error}");
    let unfinished = list_loads(&remote).unwrap();
    assert_eq!(unfinished.len(), 1);
    assert_eq!((unfinished[0].table.as_str(), rows(&server.store, "t").len()), ("t", 0));
    std::fs::write(&file, records(3_001)).unwrap();
    let error = load_remote(&options(&file, "t"), &remote).unwrap_err();
    assert!(matches!(error, Error::Refused(_)), "{error:?}");
    assert!(error.to_string().contains("bytes and had"), "{error}");
    let left = abort_load(&remote, unfinished[0].id).unwrap();
    assert!(left.is_empty());
    assert!(abort_load(&remote, LoadId::from_u128(1)).is_err());
    load_remote(&options(&file, "t"), &remote).unwrap();
    let listed = list_loads(&remote).unwrap();
    assert_eq!((listed.len(), listed[0].state), (1, LoadStage::Published));
    assert_eq!(listed[0].rows, 3_001);
}

/// Symptom: a load whose client was told that it failed was unfinished for the next one, which was refused. Cause: a connection that
/// ended gave the journal free for the next attempt, after the load was dropped and before the journal was taken.
#[test]
fn a_load_that_failed_is_gone_when_its_client_is_told() {
    const CLIENTS: usize = 8;
    const ROUNDS: usize = 12;
    let folder = tempfile::tempdir().unwrap();
    let server = Server::start(&folder.path().join("server"), ReceiveOptions::default());
    let text = format!("x,Rom,1.00,2001-01-01,n,1.0,true,\n{}", records(50));
    let fail_again_and_again = |client: usize| {
        // A name that no other bytes of a description are by accident.
        let table = format!("table_of_client_{client}");
        let file = folder.path().join(format!("{table}.csv"));
        std::fs::write(&file, &text).unwrap();
        for round in 0..ROUNDS {
            let mut remote = server.remote();
            remote.work = match round % 3 {
                0 => RemoteWork::Pipe,
                1 => ALL,
                _ => RemoteWork::Seq,
            };
            let mut load = options(&file, &table);
            if round % 2 == 1 {
                // What the client finds out by itself, when the server has begun.
                load.rejects_file = Some(folder.path().join("none/rejects.csv"));
                load.max_rejects = RejectLimit::Count(9);
            }
            let error = load_remote(&load, &remote).unwrap_err();
            assert!(!error.to_string().contains("unfinished"), "round {round}: {error}");
            let journals = server.store.list_journals().unwrap();
            let name = table.as_bytes();
            let mine = journals
                .iter()
                .filter(|entry| entry.description.windows(name.len()).any(|part| part == name));
            assert_eq!(mine.count(), 0, "round {round}: {error}");
        }
    };
    std::thread::scope(|scope| {
        for client in 0..CLIENTS {
            let fail_again_and_again = &fail_again_and_again;
            scope.spawn(move || fail_again_and_again(client));
        }
    });
}

/// Options of a load that stops itself before it is published.
fn stopping(file: &std::path::Path) -> Options {
    let mut stopped = options(file, "t");
    let cancel = std::sync::Arc::clone(&stopped.hooks.cancel);
    stopped.hooks.progress = Some(std::sync::Arc::new(move |progress| {
        if progress.rows() > 500 {
            cancel.store(true, std::sync::atomic::Ordering::Relaxed);
        }
    }));
    stopped
}

/// Whoever could add rows to a table dropped a load that would have replaced it.
#[test]
fn who_drops_a_load_needs_what_its_kind_needs() {
    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join("t.csv");
    std::fs::write(&file, records(3_000)).unwrap();
    let is_admin = std::sync::Arc::new(std::sync::atomic::AtomicBool::new(true));
    let asked = std::sync::Arc::clone(&is_admin);
    let permission = std::sync::Arc::new(move |_: &str, need| {
        match need == Need::Replace && !asked.load(std::sync::atomic::Ordering::Relaxed) {
            true => Err(Error::Refused("lou has no right admin".into())),
            false => Ok(()),
        }
    });
    let path = folder.path().join("server");
    let server = Server::start_with(&path, ReceiveOptions::default(), permission);
    let remote = server.remote();
    let mut replacing = stopping(&file);
    replacing.mode = coload_store::LoadMode::Replace;
    load_remote(&replacing, &remote).unwrap_err();
    let unfinished = list_loads(&remote).unwrap();
    is_admin.store(false, std::sync::atomic::Ordering::Relaxed);
    let refused = abort_load(&remote, unfinished[0].id).unwrap_err();
    assert!(refused.to_string().contains("no right admin"), "{refused}");
    assert_eq!(list_loads(&remote).unwrap().len(), 1);
    is_admin.store(true, std::sync::atomic::Ordering::Relaxed);
    assert!(abort_load(&remote, unfinished[0].id).unwrap().is_empty());
}

#[test]
fn a_table_of_other_columns_is_refused_before_anything_is_sent() {
    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join("t.csv");
    std::fs::write(&file, records(100)).unwrap();
    let server = Server::start(&folder.path().join("server"), ReceiveOptions::default());
    let remote = server.remote();
    assert!(table_schema(&remote, "t").unwrap().is_none());
    load_remote(&options(&file, "t"), &remote).unwrap();
    let schema = table_schema(&remote, "T").unwrap().unwrap();
    assert_eq!(schema, options(&file, "t").schema);
    let mut other = options(&file, "t");
    other.schema = coload_ddl::parse_columns("a BIGINT").unwrap();
    let error = load_remote(&other, &remote).unwrap_err();
    assert!(error.to_string().contains("cannot append to table t"), "{error}");
}

#[test]
fn a_table_dropped_during_a_load_is_not_made_anew() {
    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join("t.csv");
    std::fs::write(&file, records(2_000)).unwrap();
    let server = Server::start(&folder.path().join("server"), ReceiveOptions::default());
    let mut remote = server.remote();
    load_remote(&options(&file, "t"), &remote).unwrap();
    remote.again = Again::Yes;
    let mut second = options(&file, "t");
    let (store, once) = (server.store.clone(), std::sync::Once::new());
    second.hooks.progress = Some(std::sync::Arc::new(move |progress| {
        if progress.rows() > 0 {
            once.call_once(|| drop(store.drop_table("t", OnMissing::Ignore)));
        }
    }));
    let error = load_remote(&second, &remote).unwrap_err();
    assert!(error.to_string().contains("was dropped while the load"), "{error}");
    assert!(server.store.snapshot().unwrap().table("t").is_none());
}

#[test]
fn two_loads_into_one_table_both_arrive() {
    let folder = tempfile::tempdir().unwrap();
    let server = Server::start(&folder.path().join("server"), ReceiveOptions::default());
    std::thread::scope(|scope| {
        for number in 0..2 {
            let file = folder.path().join(format!("t{number}.csv"));
            std::fs::write(&file, records(2_000 + number)).unwrap();
            let remote = server.remote();
            scope.spawn(move || load_remote(&options(&file, "t"), &remote).unwrap());
        }
    });
    assert_eq!(rows(&server.store, "t")[0].len(), 4_001);
}

#[test]
fn nobody_without_permission_loads_or_looks() {
    // The permission is asked by `Loads::exchange`; here by a service that refuses all.
    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join("t.csv");
    std::fs::write(&file, records(10)).unwrap();
    let server = Server::refusing(&folder.path().join("server"));
    let error = load_remote(&options(&file, "t"), &server.remote()).unwrap_err();
    assert!(error.to_string().contains("may not load into t"), "{error}");
    assert!(table_schema(&server.remote(), "t").is_err());
    assert!(server.store.snapshot().unwrap().table("t").is_none());
}
