//! Disks that are full, loads that are abandoned, tables that change, inputs larger than the server keeps.

use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::time::Duration;

use coload_ddl::parse_columns;
use coload_load::{OpenedStream, RemoteOptions, RemoteWork, list_loads};
use coload_receive::ReceiveOptions;
use coload_source::{InputFile, InputSource};
use coload_store::{OnExisting, OnMissing, Store};
use coload_types::Error;
use coload_wire::RejectLimit;

use crate::faults::Process;
use crate::setup::{ALL, NONE, Options, Server, load_remote, options, records, rows};

/// Makes a load stop itself after some rows.
fn stop_after(options: &mut Options, rows: u64) {
    let cancel = Arc::clone(&options.hooks.cancel);
    options.hooks.progress = Some(Arc::new(move |progress| {
        if progress.rows() > rows {
            cancel.store(true, Ordering::Relaxed);
        }
    }));
}

#[test]
fn a_server_whose_disk_is_full_says_so_and_the_load_goes_on_when_there_is_room() {
    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join("t.csv");
    std::fs::write(&file, records(20_000)).unwrap();
    let store = folder.path().join("server");
    for placement in [ALL, NONE, RemoteWork::Pipe] {
        let table = format!("{placement:?}");
        let mut load = options(&file, &table);
        load.resources.fragments_per_partition = 50;
        // No file may have more than 64 blocks of 512 bytes or 1 KiB: the system refuses to write, as when the disk
        // is full.
        let by = ["sh", "-c", "ulimit -f 64; trap '' XFSZ; exec \"$@\"", "sh"];
        let small = Process::start_by(&by, &store, "127.0.0.1:0");
        let mut remote = RemoteOptions::new(small.address.clone());
        remote.work = placement;
        remote.patience = Duration::from_millis(500);
        let error = load_remote(&load, &remote).unwrap_err();
        assert!(matches!(error, Error::Unavailable(_)), "{placement:?}: {error:?}");
        assert!(error.to_string().contains("cannot write"), "{placement:?}: {error}");
        assert!(rows(&Store::open(&store).unwrap(), &table).is_empty(), "{placement:?}");
        drop(small);
        let roomy = Process::start_by(&[], &store, "127.0.0.1:0");
        remote.address.clone_from(&roomy.address);
        let report = load_remote(&load, &remote).unwrap();
        assert_eq!((report.rows, report.already), (20_000, false), "{placement:?}");
        assert_eq!(rows(&Store::open(&store).unwrap(), &table)[0].len(), 20_000);
    }
}

#[test]
fn an_abandoned_load_expires() {
    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join("t.csv");
    std::fs::write(&file, records(3_000)).unwrap();
    let path = folder.path().join("server");
    let server = Server::start(&path, ReceiveOptions::default());
    let mut abandoned = options(&file, "t");
    stop_after(&mut abandoned, 500);
    load_remote(&abandoned, &server.remote()).unwrap_err();
    assert_eq!(list_loads(&server.remote()).unwrap().len(), 1);
    drop(server);
    let patient = Server::start(&path, ReceiveOptions::default());
    assert_eq!(list_loads(&patient.remote()).unwrap().len(), 1, "it waits for days");
    drop(patient);
    let expire = Duration::ZERO;
    let server = Server::start(&path, ReceiveOptions { expire, ..ReceiveOptions::default() });
    assert!(list_loads(&server.remote()).unwrap().is_empty());
    load_remote(&options(&file, "t"), &server.remote()).unwrap();
    assert_eq!(rows(&server.store, "t")[0].len(), 3_000);
}

#[test]
fn a_table_that_got_other_columns_during_a_load_is_left_as_it_is() {
    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join("t.csv");
    std::fs::write(&file, records(2_000)).unwrap();
    let server = Server::start(&folder.path().join("server"), ReceiveOptions::default());
    let schema = options(&file, "t").request.schema;
    server.store.create_table("t", &schema, OnExisting::Fail).unwrap();
    for placement in [ALL, RemoteWork::Pipe] {
        let mut remote = server.remote();
        remote.work = placement;
        let mut load = options(&file, "t");
        let (store, once) = (server.store.clone(), std::sync::Once::new());
        let other = parse_columns("id BIGINT, extra INTEGER").unwrap();
        load.hooks.progress = Some(Arc::new(move |_| {
            once.call_once(|| {
                store.drop_table("t", OnMissing::Ignore).unwrap();
                store.create_table("t", &other, OnExisting::Fail).unwrap();
            });
        }));
        if placement == RemoteWork::Pipe {
            // Nothing tells the progress of a load that the server makes: the table is another from the start.
            load.hooks.progress = None;
        }
        let error = load_remote(&load, &remote).unwrap_err();
        assert!(error.to_string().contains("table t"), "{placement:?}: {error}");
        let snapshot = server.store.snapshot().unwrap();
        let table = snapshot.table("t").unwrap();
        assert_eq!((table.schema.len(), table.segments.len()), (2, 0), "{placement:?}");
    }
}

#[test]
fn inputs_larger_than_the_server_keeps_are_loaded_whole_and_begin_anew_after_a_stop() {
    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join("t.csv");
    std::fs::write(&file, records(40_000)).unwrap();
    let keeps_little = ReceiveOptions { spool_bytes: 1 << 10, ..ReceiveOptions::default() };
    let server = Server::start(&folder.path().join("server"), keeps_little);
    let mut remote = server.remote();
    remote.work = RemoteWork::Pipe;
    for table in ["t", "u"] {
        let stopped = options(&file, table);
        stopped.hooks.cancel.store(table == "u", Ordering::Relaxed);
        let loaded = load_remote(&stopped, &remote);
        assert_eq!(loaded.is_ok(), table == "t", "{loaded:?}");
        let report = load_remote(&options(&file, table), &remote).unwrap();
        assert_eq!((report.rows, report.already), (40_000, table == "t"));
        assert_eq!(rows(&server.store, table)[0].len(), 40_000);
    }
}

#[test]
fn inferred_types_that_the_server_would_not_widen_are_told_and_lose_nothing() {
    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join("t.csv");
    std::fs::write(&file, "1\n2\nthree\n").unwrap();
    let server = Server::start(&folder.path().join("server"), ReceiveOptions::default());
    for placement in [RemoteWork::Pipe, RemoteWork::Seq, ALL] {
        let mut load = options(&file, "t");
        load.schema = parse_columns("a BIGINT").unwrap();
        load.inferred = Some(vec![coload_source::ColumnForms::default()]);
        let mut remote = server.remote();
        remote.work = placement;
        if placement == ALL {
            assert_eq!(load_remote(&load, &remote).unwrap().rows, 3);
            continue;
        }
        let error = load_remote(&load, &remote).unwrap_err();
        assert!(matches!(error, Error::Input { .. }), "{placement:?}: {error:?}");
        assert!(error.to_string().contains("do not widen"), "{placement:?}: {error}");
        load.max_rejects = RejectLimit::Count(5);
        let error = load_remote(&load, &remote).unwrap_err();
        assert!(matches!(error, Error::Invalid(_)), "{placement:?}: {error:?}");
        assert!(server.store.snapshot().unwrap().table("t").is_none(), "{placement:?}");
    }
}

/// A stream cannot be sent again with wider types: no record is rejected for a guess, and the message says what to do.
/// One that was sampled whole has no surprises.
#[test]
fn a_stream_into_a_server_rejects_nothing_for_a_guess() {
    let folder = tempfile::tempdir().unwrap();
    let server = Server::start(&folder.path().join("server"), ReceiveOptions::default());
    let file = folder.path().join("t.csv");
    std::fs::write(&file, "").unwrap();
    let load_stream = |sampled: usize, rejects: u64| {
        let stream = OpenedStream::new("-", Box::new(&b"1\n2\nthree\n"[..]));
        stream.sample(sampled).unwrap();
        let mut load = options(&file, "t");
        load.inputs = vec![InputFile { name: "-".to_owned(), source: InputSource::Stdin }].into();
        load.stream = Some(stream);
        load.schema = parse_columns("a BIGINT").unwrap();
        load.inferred = Some(vec![coload_source::ColumnForms::default()]);
        load.max_rejects = RejectLimit::Count(rejects);
        load_remote(&load, &server.remote())
    };
    let error = load_stream(4, 0).unwrap_err();
    assert!(matches!(error, Error::Input { .. }), "{error:?}");
    assert!(error.to_string().contains("the types were inferred, and a stream"), "{error}");
    let error = load_stream(4, 5).unwrap_err();
    assert!(matches!(error, Error::Invalid(_)), "{error:?}");
    assert!(error.to_string().contains("give --columns"), "{error}");
    assert!(server.store.snapshot().unwrap().table("t").is_none());
    assert_eq!(load_stream(100, 5).unwrap().rows, 2);
}

/// Symptom: a thread of a load panicked, and the client waited for its server for ever.
#[test]
fn a_client_whose_thread_panics_ends_with_an_error() {
    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join("t.csv");
    std::fs::write(&file, records(2_000)).unwrap();
    let server = Server::start(&folder.path().join("server"), ReceiveOptions::default());
    for placement in [ALL, NONE] {
        let mut load = options(&file, "t");
        load.hooks.after_task = Some(Arc::new(|_| panic!("a test wants it")));
        let mut remote = server.remote();
        remote.work = placement;
        let error = load_remote(&load, &remote).unwrap_err();
        assert!(matches!(&error, Error::Refused(text) if text.contains("panicked")), "{error:?}");
        assert!(rows(&server.store, "t").is_empty());
    }
    load_remote(&options(&file, "t"), &server.remote()).unwrap();
}
