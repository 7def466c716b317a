//! Tables with a PRIMARY KEY at a server: what becomes of keys that are there is what becomes of them in a store of this machine, for all
//! placements, whoever is killed meanwhile.

use std::collections::BTreeMap;
use std::path::Path;
use std::sync::Arc;
use std::time::Duration;

use coload_ddl::{Key, KeyKind, parse_columns};
use coload_load::{RemoteOptions, RemoteWork, SharedLoad, SplitRules, plan_splits};
use coload_receive::{Need, Permission, ReceiveOptions};
use coload_store::{KeyCounts, LoadId, OnConflict, Store, VerifyOptions, verify};
use coload_types::{Error, Plain, Value};
use coload_wire::{PlanPrint, RejectLimit};

use crate::faults::{Process, rounds, seed};
use crate::setup::{ADAPTIVE, ALL, NONE, Options, SIZE, Server, load, load_remote, mix, options};

const WORKS: [RemoteWork; 6] = [ALL, NONE, SIZE, ADAPTIVE, RemoteWork::Pipe, RemoteWork::Seq];

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
    let mut rows = BTreeMap::new();
    for [key, v, t] in in_order(store, table) {
        assert_eq!(rows.insert(key.unwrap(), (v, t)), None, "a key is there twice");
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
            remote.work = WORKS[((round + number as u64) % 6) as usize];
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

/// Orders in which records come.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Come {
    InOrder,
    Shuffled,
    Backwards,
    /// Runs that overlap.
    InRuns,
}

/// Records of keys of which each comes `times`, in some order; the text of each is another.
fn write_in(path: &Path, count: u64, times: u64, come: Come) {
    let keys = count / times;
    let key = |i: u64| match come {
        Come::InOrder => i / times,
        // 7,919 and the number of keys have no factor in common.
        Come::Shuffled => i * 7919 % keys,
        Come::Backwards => keys - 1 - i / times,
        Come::InRuns => i % (keys / 3 + 1) * 3 % keys,
    };
    let line = |i| {
        let v = mix(i) % 50;
        let v = if v == 7 { String::new() } else { v.to_string() };
        format!("{},{v},a longer text so that partitions are several {i}\n", key(i))
    };
    std::fs::write(path, (0..count).map(line).collect::<String>()).unwrap();
}

/// All rows that are not deleted, as they stand.
fn in_order(store: &Store, table: &str) -> Vec<[Option<Value>; 3]> {
    let snapshot = store.snapshot().unwrap();
    let mut rows = Vec::new();
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
        let rows_there = (0..segment.rows).filter(is_there);
        rows.extend(rows_there.map(|row| [0, 1, 2].map(|c| columns[c].get(row as usize))));
    }
    rows
}

/// What a load into a server is, beside its inputs.
#[derive(Debug, Clone, Copy)]
struct How {
    kind: KeyKind,
    columns: &'static [usize],
    rule: OnConflict,
}

fn keyed_as(file: &Path, table: &str, how: How) -> Options {
    let mut options = keyed(file, table, how.rule);
    let key = Key::new(how.kind, how.columns.to_vec()).unwrap();
    let schema = parse_columns(match how.columns {
        [0] => "k BIGINT NOT NULL, v BIGINT, t VARCHAR",
        _ => "k BIGINT NOT NULL, v BIGINT, t VARCHAR NOT NULL",
    });
    options.request.schema = schema.unwrap().with_key(Some(key)).unwrap();
    options
}

#[test]
fn rows_are_the_same_in_the_same_order_whoever_sorts() {
    let folder = tempfile::tempdir().unwrap();
    let server = Server::start(&folder.path().join("server"), ReceiveOptions::default());
    let embedded = Store::create_or_open(folder.path().join("embedded")).unwrap();
    let primary = |columns, rule| How { kind: KeyKind::Primary, columns, rule };
    let cluster = |columns| How { kind: KeyKind::Cluster, columns, rule: OnConflict::Error };
    let ways = [
        (1, primary(&[0], OnConflict::Error)),
        (1, primary(&[2, 0], OnConflict::Error)),
        (3, primary(&[0], OnConflict::Ignore)),
        (3, primary(&[0], OnConflict::Replace)),
        (3, primary(&[0], OnConflict::Newest(1))),
        (3, cluster(&[0])),
        (3, cluster(&[1])),
    ];
    let (mut number, mut sorted_here) = (0, [0_u64; 2]);
    for come in [Come::InOrder, Come::Shuffled, Come::Backwards, Come::InRuns] {
        for (times, how) in ways {
            let file = folder.path().join(format!("{come:?}{times}.csv"));
            let count = 3_900;
            write_in(&file, count, if come == Come::InRuns { 3 } else { times }, come);
            let how = match (come, how) {
                // Runs have each key several times.
                (Come::InRuns, How { kind: KeyKind::Primary, columns: [0], .. }) => {
                    How { rule: OnConflict::Replace, ..how }
                }
                _ => how,
            };
            number += 1;
            let table = format!("t{number}");
            load(&embedded, &keyed_as(&file, &table, how)).unwrap();
            let wanted = in_order(&embedded, &table);
            for (place, work) in WORKS.into_iter().enumerate() {
                let (threads, text_share) = [(1, None), (3, None), (2, Some(0.4))][number % 3];
                let table = format!("t{number}_{place}");
                let mut remote = server.remote();
                (remote.work, remote.text_share) = (work, text_share);
                let mut options = keyed_as(&file, &table, how);
                options.resources.threads = threads;
                let report = load_remote(&options, &remote).unwrap();
                let what = format!("{come:?} {how:?} {work:?} {threads}");
                assert_eq!(report.rows, wanted.len() as u64, "{what}");
                assert!(in_order(&server.store, &table) == wanted, "{what}");
                let Some(sorting) = report.placement.as_ref().unwrap().sorting else {
                    assert!(matches!(work, RemoteWork::Pipe | RemoteWork::Seq));
                    continue;
                };
                let all = sorting.fragments.iter().sum::<u64>();
                assert!(all >= report.partitions[0] as u64 && all > 2, "{what}: {all}");
                let here = match text_share {
                    Some(_) => 0,
                    None if work == NONE => 0,
                    None if work == ALL || work == SIZE => all,
                    None => sorting.fragments[0],
                };
                assert_eq!(sorting.fragments[0], here, "{what}");
                sorted_here[0] += here;
                sorted_here[1] += all - here;
            }
        }
    }
    assert!(sorted_here[0] > 60 && sorted_here[1] > 60, "{sorted_here:?}");
    let path = folder.path().join("server");
    let report = verify(&path, &VerifyOptions { threads: 2, progress: None }).unwrap();
    assert_eq!(report.damages, Vec::new());
}

/// What a file of rejects has, and the first of the report.
fn rejects_of(file: &Path, report: &coload_load::LoadReport) -> (String, Vec<String>) {
    let first = report.rejects.iter().map(|reject| format!("{reject:?}")).collect();
    (std::fs::read_to_string(file).unwrap(), first)
}

#[test]
fn records_whose_keys_are_there_are_rejects_at_a_server_as_in_a_store_of_this_machine() {
    let folder = tempfile::tempdir().unwrap();
    let files = [0, 1].map(|n| folder.path().join(format!("{n}.csv")));
    files.iter().zip([1, 2]).for_each(|(file, salt)| write_records(file, 6_000, salt));
    // Records that are none, too.
    let mut text = std::fs::read_to_string(&files[1]).unwrap();
    text.insert_str(text.len() / 2 / 10 * 10, "\nnone,1,x\n");
    std::fs::write(&files[1], text).unwrap();
    let out = folder.path().join("rejects.csv");
    let rejecting = |file: &Path, table: &str| {
        let mut options = keyed(file, table, OnConflict::Reject);
        options.request.max_rejects = RejectLimit::Percent(100.0);
        options.request.rejects_file = Some(out.clone());
        options
    };
    let embedded = Store::create_or_open(folder.path().join("embedded")).unwrap();
    let wanted: Vec<_> = files
        .iter()
        .map(|file| {
            let report = load(&embedded, &rejecting(file, "t")).unwrap();
            (report.keys, report.reject_count(), rejects_of(&out, &report))
        })
        .collect();
    assert!(wanted.iter().all(|(keys, ..)| keys.unwrap().rejected > 1000));
    let rows = live(&embedded, "t");
    let server = Server::start(&folder.path().join("server"), ReceiveOptions::default());
    for (number, work) in WORKS.into_iter().enumerate() {
        for text_share in [None, Some(0.5)] {
            let table = format!("t{number}{}", text_share.is_some());
            for (file, (keys, rejects, told)) in files.iter().zip(&wanted) {
                let mut remote = server.remote();
                (remote.work, remote.text_share) = (work, text_share);
                let report = load_remote(&rejecting(file, &table), &remote).unwrap();
                assert_eq!((&report.keys, report.rejects), (keys, *rejects), "{work:?}");
                assert_eq!(report.rows, keys.unwrap().kept(), "{work:?}");
                assert!(rejects_of(&out, &report) == *told, "{work:?} {text_share:?}");
            }
            assert!(live(&server.store, &table) == rows, "{work:?}");
        }
    }
    // Over the limit nothing is there, and nothing stays of it.
    let mut few = rejecting(&files[0], "few");
    few.request.max_rejects = RejectLimit::Count(10);
    for work in [ALL, RemoteWork::Seq] {
        let mut remote = server.remote();
        remote.work = work;
        let error = load_remote(&few, &remote).unwrap_err().to_string();
        assert!(error.contains("that came before in the load"), "{error}");
        assert!(live(&server.store, "few").is_empty());
    }
    assert!(server.store.list_journals().unwrap().is_empty());
}

#[test]
fn a_server_that_is_killed_while_records_are_told_tells_them_again() {
    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join("t.csv");
    write_records(&file, 12_000, 3);
    let out = folder.path().join("rejects.csv");
    let rejecting = |table: &str| {
        let mut options = keyed(&file, table, OnConflict::Reject);
        options.request.max_rejects = RejectLimit::Percent(100.0);
        options.request.rejects_file = Some(out.clone());
        options
    };
    let embedded = Store::create_or_open(folder.path().join("embedded")).unwrap();
    load(&embedded, &rejecting("t")).unwrap();
    let (rows, told) = (live(&embedded, "t"), std::fs::read_to_string(&out).unwrap());
    let path = folder.path().join("server");
    let seed = seed();
    for round in 0..rounds(4) {
        let mut server = Process::start(&path, "127.0.0.1:0");
        let table = format!("t{round}");
        let mut remote = RemoteOptions::new(server.address.clone());
        remote.work = WORKS[(round % 4) as usize];
        remote.patience = Duration::from_secs(20);
        let options = rejecting(&table);
        let loading = std::thread::spawn(move || load_remote(&options, &remote));
        for kill in 0..3 {
            let random = mix(seed ^ mix(round * 23 + kill));
            std::thread::sleep(Duration::from_millis(random % 400));
            let address = server.kill();
            server = Process::start(&path, &address);
        }
        let report = loading.join().unwrap().unwrap();
        drop(server);
        let store = Store::open(&path).unwrap();
        assert!(live(&store, &table) == rows, "{table}");
        if !report.already {
            assert!(std::fs::read_to_string(&out).unwrap() == told, "{table}");
        }
        assert!(store.list_journals().unwrap().is_empty());
    }
}

/// The load of several workers of which all have these options, each with a file of rejects of its own.
fn shared(options: &Options, workers: usize, id: u128) -> SharedLoad {
    let rules = SplitRules { explicit_max: 100, split_bytes_min: 1 };
    let plan = plan_splits(&options.request, workers, rules).unwrap();
    let (print, id) = (PlanPrint::default(), LoadId::from_u128(id));
    SharedLoad::new(options.request.clone(), plan, print, id).unwrap()
}

#[test]
fn records_of_shares_at_a_server_are_rejects_for_their_keys_as_those_of_one_process() {
    let folder = tempfile::tempdir().unwrap();
    let files = [0, 1].map(|n| folder.path().join(format!("{n}.csv")));
    files.iter().zip([1, 2]).for_each(|(file, salt)| write_records(file, 3_000, salt));
    let out = folder.path().join("rejects.csv");
    let rejecting = |file: &Path, table: &str| {
        let mut options = keyed(file, table, OnConflict::Reject);
        options.request.max_rejects = RejectLimit::Percent(100.0);
        options.request.rejects_file = Some(out.clone());
        options
    };
    let embedded = Store::create_or_open(folder.path().join("embedded")).unwrap();
    let wanted: Vec<_> = files
        .iter()
        .map(|file| {
            let report = load(&embedded, &rejecting(file, "t")).unwrap();
            (report.keys, report.reject_count(), rejects_of(&out, &report))
        })
        .collect();
    let rows = live(&embedded, "t");
    let server = Server::start(&folder.path().join("server"), ReceiveOptions::default());
    let of_load = folder.path().join("rejects.csv.load");
    let mut id = 0;
    for (number, (work, text_share)) in
        [(ALL, None), (NONE, None), (SIZE, Some(0.5)), (ADAPTIVE, None)].into_iter().enumerate()
    {
        let table = format!("t{number}");
        for (file, (keys, rejects, told)) in files.iter().zip(&wanted) {
            let mut remote = server.remote();
            (remote.work, remote.text_share) = (work, text_share);
            let options = rejecting(file, &table);
            let workers = number + 1;
            id += 1;
            let shared = shared(&options, workers, id);
            let mut last = None;
            for worker in (1..=workers as u32).rev() {
                let (resources, hooks) = (&options.resources, &options.hooks);
                last = Some(shared.load(worker, resources, hooks, &remote).unwrap());
            }
            let report = last.unwrap();
            let done = report.shares.as_ref().unwrap();
            assert_eq!((done.keys, done.rejects), (*keys, *rejects), "{work:?}");
            assert!(rejects_of(&of_load, &report) == *told, "{work:?}");
            std::fs::remove_file(&of_load).unwrap();
            // Whoever comes again is told that it is done.
            let again = shared.load(1, &options.resources, &options.hooks, &remote).unwrap();
            assert!(again.earlier.is_some() && !of_load.exists());
        }
        assert!(live(&server.store, &table) == rows, "{work:?}");
    }
    assert!(server.store.list_journals().unwrap().is_empty());
}

/// A server that starts publishes shares that are all complete, but for those whose records have to be told.
#[test]
fn a_server_that_is_killed_while_records_of_shares_are_told_is_told_them_again() {
    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join("t.csv");
    write_records(&file, 8_000, 3);
    let out = folder.path().join("rejects.csv");
    let of_load = folder.path().join("rejects.csv.load");
    let rejecting = |table: &str| {
        let mut options = keyed(&file, table, OnConflict::Reject);
        options.request.max_rejects = RejectLimit::Percent(100.0);
        options.request.rejects_file = Some(out.clone());
        options
    };
    let embedded = Store::create_or_open(folder.path().join("embedded")).unwrap();
    load(&embedded, &rejecting("t")).unwrap();
    let (rows, told) = (live(&embedded, "t"), std::fs::read_to_string(&out).unwrap());
    let path = folder.path().join("server");
    let seed = seed();
    for round in 0..rounds(4) {
        let mut server = Process::start(&path, "127.0.0.1:0");
        let table = format!("t{round}");
        let mut remote = RemoteOptions::new(server.address.clone());
        (remote.work, remote.patience) = (WORKS[(round % 4) as usize], Duration::from_secs(20));
        let options = rejecting(&table);
        let shared = shared(&options, 2, 70 + u128::from(round));
        let loading = std::thread::spawn(move || {
            [2, 1].map(|worker| shared.load(worker, &options.resources, &options.hooks, &remote))
        });
        for kill in 0..4 {
            let random = mix(seed ^ mix(round * 23 + kill));
            std::thread::sleep(Duration::from_millis(random % 400));
            let address = server.kill();
            server = Process::start(&path, &address);
        }
        let [first, last] = loading.join().unwrap();
        first.unwrap();
        last.unwrap();
        drop(server);
        let store = Store::open(&path).unwrap();
        assert!(live(&store, &table) == rows, "{table}");
        assert!(std::fs::read_to_string(&of_load).unwrap() == told, "{table}");
        assert!(store.list_journals().unwrap().is_empty());
    }
}

#[test]
fn records_that_delete_take_rows_of_a_server_away_as_of_a_store_of_this_machine() {
    let folder = tempfile::tempdir().unwrap();
    let files = [0, 1].map(|n| folder.path().join(format!("{n}.csv")));
    files.iter().zip([1, 2]).for_each(|(file, salt)| write_records(file, 6_000, salt));
    let server = Server::start(&folder.path().join("server"), ReceiveOptions::default());
    let embedded = Store::create_or_open(folder.path().join("embedded")).unwrap();
    let deleting = |file: &Path, table: &str, rule| {
        let mut options = keyed(file, table, rule);
        options.request.delete_where = Some((1, "96".into()));
        options
    };
    for rule in [OnConflict::Replace, OnConflict::Newest(1)] {
        let name = format!("{rule:?}").replace(['(', ')'], "");
        let counts = files
            .each_ref()
            .map(|file| load(&embedded, &deleting(file, &name, rule)).unwrap().keys);
        let of_rule = counts[1].unwrap();
        assert!(of_rule.deleting > 0 && of_rule.deleted > 0, "{of_rule:?}");
        for (number, work) in WORKS.into_iter().enumerate() {
            let table = format!("{name}{number}");
            let mut remote = server.remote();
            remote.work = work;
            for (file, counts) in files.iter().zip(&counts) {
                let report = load_remote(&deleting(file, &table, rule), &remote).unwrap();
                assert_eq!(&report.keys, counts, "{rule:?} {work:?}");
            }
            assert!(live(&server.store, &table) == live(&embedded, &name), "{rule:?} {work:?}");
        }
    }
    let error = load_remote(&deleting(&files[0], "e", OnConflict::Ignore), &server.remote());
    let error = error.unwrap_err().to_string();
    assert!(error.contains("rows of the table stay where their key comes again"), "{error}");
}

/// Segments that a server merged, of loads that are not visible.
fn is_merging(path: &Path) -> bool {
    let Ok(works) = std::fs::read_dir(path.join("tmp")) else { return false };
    let files = works.flatten().filter_map(|work| std::fs::read_dir(work.path()).ok());
    // Partitions have second names there before they are merged.
    let merged = |name: &str| {
        let number = name.rsplit_once('-').and_then(|(_, number)| number.strip_suffix(".seg"));
        number.and_then(|number| number.parse::<u32>().ok()).is_some_and(|number| number >= 40)
    };
    files.flatten().flatten().any(|file| merged(&file.file_name().to_string_lossy()))
}

#[test]
fn a_server_that_is_killed_while_it_merges_merges_again() {
    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join("t.csv");
    write_in(&file, 120_000, 2, Come::Shuffled);
    let how = How { kind: KeyKind::Primary, columns: &[0], rule: OnConflict::Replace };
    let embedded = Store::create_or_open(folder.path().join("embedded")).unwrap();
    load(&embedded, &keyed_as(&file, "t", how)).unwrap();
    let wanted = in_order(&embedded, "t");
    let path = folder.path().join("server");
    let mut merging = 0;
    for work in [ALL, NONE] {
        let mut server = Process::start(&path, "127.0.0.1:0");
        let table = format!("t{}", work == ALL);
        let mut remote = RemoteOptions::new(server.address.clone());
        (remote.work, remote.patience) = (work, Duration::from_secs(60));
        let options = keyed_as(&file, &table, how);
        let loading = std::thread::spawn(move || load_remote(&options, &remote));
        for _ in 0..2 {
            while !is_merging(&path) && !loading.is_finished() {
                std::thread::sleep(Duration::from_millis(1));
            }
            merging += u32::from(!loading.is_finished());
            let address = server.kill();
            server = Process::start(&path, &address);
        }
        let report = loading.join().unwrap().unwrap();
        assert!(report.attempts > 1, "{work:?}");
        drop(server);
        let store = Store::open(&path).unwrap();
        assert!(in_order(&store, &table) == wanted, "{work:?}");
        assert!(store.list_journals().unwrap().is_empty());
        assert_eq!(std::fs::read_dir(path.join("tmp")).unwrap().count(), 0);
    }
    assert!(merging > 1, "nothing was killed while it merged");
}

#[test]
fn who_may_only_add_rows_replaces_and_deletes_none() {
    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join("t.csv");
    write_records(&file, 300, 1);
    let adds: Permission = Arc::new(|table: &str, need: Need| match need {
        Need::Replace => Err(Error::Refused(format!("ann may not change rows of {table}"))),
        Need::See | Need::Add => Ok(()),
    });
    let path = folder.path().join("server");
    let server = Server::start_with(&path, ReceiveOptions::default(), adds);
    for work in [ALL, RemoteWork::Seq] {
        let mut remote = server.remote();
        remote.work = work;
        load_remote(&keyed(&file, "t", OnConflict::Ignore), &remote).unwrap();
        for rule in [OnConflict::Replace, OnConflict::Newest(1)] {
            let error = load_remote(&keyed(&file, "t", rule), &remote).unwrap_err();
            assert!(error.to_string().contains("may not change rows of t"), "{rule:?}: {error}");
        }
    }
}
