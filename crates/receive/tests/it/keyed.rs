//! Tables with a PRIMARY KEY at a server: what becomes of keys that are there is what becomes of them in a store of this machine, for all
//! placements, whoever is killed meanwhile.

use std::collections::BTreeMap;
use std::path::Path;
use std::time::Duration;

use coload_ddl::{Key, KeyKind, parse_columns};
use coload_load::{RemoteOptions, RemoteWork};
use coload_receive::ReceiveOptions;
use coload_store::{KeyCounts, OnConflict, Store, VerifyOptions, verify};
use coload_types::{Plain, Value};

use crate::faults::{Process, rounds, seed};
use crate::setup::{ADAPTIVE, ALL, NONE, Options, Server, load, load_remote, mix, options};

const WORKS: [RemoteWork; 5] = [ALL, NONE, ADAPTIVE, RemoteWork::Pipe, RemoteWork::Seq];

/// Records of keys that come again and again, in no order.
fn write_records(path: &Path, count: u64, salt: u64) {
    let line = |i| {
        let r = mix(i * 7 + salt);
        format!(
            "{},{},text {i}\n",
            r % (count / 2 + 1),
            if r.is_multiple_of(9) { String::new() } else { (r % 97).to_string() }
        )
    };
    std::fs::write(path, (0..count).map(line).collect::<String>()).unwrap();
}

fn keyed(file: &Path, table: &str, on_conflict: OnConflict) -> Options {
    let mut options = options(file, table);
    let schema = parse_columns("k BIGINT NOT NULL, v BIGINT, t VARCHAR").unwrap();
    let key = Key::new(KeyKind::Primary, vec![0]).unwrap();
    options.request.schema = schema.with_key(Some(key)).unwrap();
    options.request.on_conflict = on_conflict;
    options
}

/// Rows by their keys.
type Rows = BTreeMap<Value, (Option<Value>, Option<Value>)>;

/// The rows that are not deleted, by their keys.
fn live(store: &Store, table: &str) -> Rows {
    let snapshot = store.snapshot().unwrap();
    let mut rows = BTreeMap::new();
    let Some(entry) = snapshot.table(table) else { return rows };
    for segment in &entry.segments {
        let file = snapshot.segment(entry, segment).unwrap();
        let deleted = snapshot.deleted_rows(segment).unwrap();
        let columns = [0, 1, 2].map(|column| {
            let mut plain = Plain::empty(file.physical(column));
            let pages = 0..file.page_rows().len();
            pages.for_each(|page| file.decode_page(column, page, &mut plain).unwrap());
            plain
        });
        let is_there = |row: &u64| !deleted.as_ref().is_some_and(|deleted| deleted.contains(*row));
        for row in (0..segment.rows).filter(is_there) {
            let [key, v, t] = [0, 1, 2].map(|column| columns[column].get(row as usize));
            assert_eq!(rows.insert(key.unwrap(), (v, t)), None, "a key is there twice");
        }
    }
    rows
}

/// What two loads make of a store of this machine.
fn expected(folder: &Path, files: [&Path; 2], rule: OnConflict) -> (Rows, [Option<KeyCounts>; 2]) {
    let store = Store::create_or_open(folder.join(format!("{rule:?}"))).unwrap();
    let counts = files.map(|file| load(&store, &keyed(file, "t", rule)).unwrap().keys);
    (live(&store, "t"), counts)
}

#[test]
fn keys_give_way_as_in_a_store_of_this_machine_for_all_placements() {
    let folder = tempfile::tempdir().unwrap();
    let files = [0, 1].map(|n| folder.path().join(format!("{n}.csv")));
    files.iter().zip([1, 2]).for_each(|(file, salt)| write_records(file, 6_000, salt));
    let server = Server::start(&folder.path().join("server"), ReceiveOptions::default());
    for rule in [OnConflict::Ignore, OnConflict::Replace, OnConflict::Newest(1)] {
        let (wanted, counts) = expected(folder.path(), [&files[0], &files[1]], rule);
        for (number, work) in WORKS.into_iter().enumerate() {
            let table = format!("t{number}{rule:?}").replace(['(', ')'], "");
            let mut remote = server.remote();
            remote.work = work;
            for (file, counts) in files.iter().zip(&counts) {
                let report = load_remote(&keyed(file, &table, rule), &remote).unwrap();
                assert_eq!(&report.keys, counts, "{rule:?} {work:?}");
                assert_eq!(report.rows, counts.unwrap().kept());
                // The same again is a no-op.
                let again = load_remote(&keyed(file, &table, rule), &remote).unwrap();
                assert!(again.already, "{rule:?} {work:?}");
            }
            assert!(live(&server.store, &table) == wanted, "{rule:?} {work:?}");
        }
    }
    let error = load_remote(&keyed(&files[0], "e", OnConflict::Error), &server.remote());
    let error = error.unwrap_err().to_string();
    assert!(error.contains("of PRIMARY KEY (k) comes twice among them"), "{error}");
    assert!(live(&server.store, "e").is_empty());
    let error = load_remote(&keyed(&files[0], "e", OnConflict::Reject), &server.remote());
    assert!(error.unwrap_err().to_string().contains("for a store of this machine"));
    let mut none = keyed(&files[0], "none", OnConflict::Replace);
    none.request.schema = none.request.schema.clone().with_key(None).unwrap();
    let error = load_remote(&none, &server.remote()).unwrap_err().to_string();
    assert!(error.contains("it has no PRIMARY KEY"), "{error}");
    let path = folder.path().join("server");
    let report = verify(&path, &VerifyOptions { threads: 1, progress: None }).unwrap();
    assert_eq!(report.damages, Vec::new());
}

#[test]
fn a_server_that_is_killed_replaces_each_key_once() {
    let folder = tempfile::tempdir().unwrap();
    let files = [0, 1].map(|n| folder.path().join(format!("{n}.csv")));
    files.iter().zip([1, 2]).for_each(|(file, salt)| write_records(file, 12_000, salt));
    let (wanted, _) = expected(folder.path(), [&files[0], &files[1]], OnConflict::Replace);
    let path = folder.path().join("server");
    let seed = seed();
    for round in 0..rounds(4) {
        let mut server = Process::start(&path, "127.0.0.1:0");
        let table = format!("t{round}");
        for (number, file) in files.iter().enumerate() {
            let mut remote = RemoteOptions::new(server.address.clone());
            remote.work = WORKS[((round + number as u64) % 5) as usize];
            remote.patience = Duration::from_secs(20);
            let options = keyed(file, &table, OnConflict::Replace);
            let loading = std::thread::spawn(move || load_remote(&options, &remote));
            for kill in 0..3 {
                let random = mix(seed ^ mix(round * 17 + kill + number as u64 * 5));
                std::thread::sleep(Duration::from_millis(random % 250));
                let address = server.kill();
                server = Process::start(&path, &address);
            }
            loading.join().unwrap().unwrap();
        }
        drop(server);
        let store = Store::open(&path).unwrap();
        assert!(live(&store, &table) == wanted, "{table}");
        assert!(store.list_journals().unwrap().is_empty());
    }
}
