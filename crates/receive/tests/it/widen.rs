//! Loads whose inferred columns become wider go on.

use std::fmt::Write;
use std::fs::File;
use std::io::ErrorKind;
use std::io::Write as _;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::sync::atomic::Ordering;
use std::time::Duration;

use coload_ddl::{Key, KeyKind};
use coload_input::expand_inputs;
use coload_load::{RemoteOptions, table_schema};
use coload_receive::ReceiveOptions;
use coload_source::{GivenDialect, SampleEnd, sniff};
use coload_store::{LoadMode, Store};
use coload_types::{DataType, Error, Value};
use coload_wire::RejectLimit;
use flate2::Compression;
use flate2::write::GzEncoder;

use crate::faults::{Process, Proxy, rounds, seed};
use crate::setup::{
    ADAPTIVE, ALL, NONE, Options, RemoteReport, SIZE, Server, load, load_remote, mix, rows,
};

/// Records of the input.
const RECORDS: u64 = 12_000;
/// Bytes that types are inferred from.
const SAMPLE_BYTES: usize = 4 << 10;

/// Longer than any stop of the machine.
const PATIENCE: Duration = Duration::from_secs(3600);

/// Records whose columns become wider at 60, 75, 80 and 90 of a hundred.
fn text_of_numbers() -> String {
    let mut text = "id,n,day,few,note\n".to_owned();
    for i in 0..RECORDS {
        let at = |percent: u64| i == RECORDS * percent / 100;
        let n = match i {
            _ if at(60) => "-0.5".to_owned(),
            _ if at(80) => "12345678901234567890.25".to_owned(),
            _ => ((mix(i) % 1_000_000_000) >> (i % 30)).to_string(),
        };
        let time = if at(75) { " 12:30:00" } else { "" };
        let few = if at(90) { "2.125".to_owned() } else { (mix(i) % 4).to_string() };
        let _ = writeln!(text, "{i},{n},20{:02}-03-04{time},{few},note {}", i % 30, mix(i) % 999);
    }
    text
}

fn inferred(file: &Path, table: &str) -> Options {
    let text = std::fs::read(file).unwrap();
    let given = GivenDialect::default();
    let sample = &text[..SAMPLE_BYTES.min(text.len())];
    let found = sniff("t.csv", sample, SampleEnd::Cut, &given, None).unwrap();
    let inputs = expand_inputs(&[file.to_string_lossy().into_owned()]).unwrap();
    let mut options = Options::new(inputs, table, found.schema, found.dialect);
    options.inferred = Some(found.forms);
    options.resources.chunk_bytes = 16 << 10;
    options.resources.fragments_per_partition = 1;
    options.resources.threads = 2;
    options
}

/// What the command does: columns are those of the table, if it is there.
fn planned(file: &Path, table: &str, remote: &RemoteOptions) -> Options {
    let mut options = inferred(file, table);
    if let Some(schema) = table_schema(remote, table).unwrap() {
        (options.schema, options.inferred) = (schema, None);
    }
    options
}

type Table = (Vec<DataType>, Vec<Vec<Option<Value>>>);

/// Types and rows of a table.
fn table(store: &Store, table: &str) -> Table {
    let snapshot = store.snapshot().unwrap();
    let schema = &snapshot.table(table).unwrap().schema;
    (schema.columns().iter().map(|column| column.data_type).collect(), rows(store, table))
}

fn expected(folder: &Path, file: &Path) -> Table {
    let store = Store::create_or_open(folder.join("embedded")).unwrap();
    let name = file.file_stem().unwrap().to_string_lossy();
    load(&store, &inferred(file, &name)).unwrap();
    table(&store, &name)
}

/// Inputs whose columns become wider, without text and with it, and what they are as tables.
fn both(folder: &Path) -> [(PathBuf, Table); 2] {
    let texts = [("numbers.csv", text_of_numbers()), ("texts.csv", text_with_text(false))];
    texts.map(|(name, text)| {
        let file = folder.join(name);
        std::fs::write(&file, text).unwrap();
        let expected = expected(folder, &file);
        (file, expected)
    })
}

/// Loads, and loses the server when so many partitions are durable: nothing that a client says later arrives.
fn stop_after(server: &Server, file: &Path, parts: usize) {
    let store = server.store.clone();
    let proxy = Proxy::start_until(server.address.clone(), move || {
        let journals = store.list_journals();
        journals.is_ok_and(|found| found.iter().any(|journal| journal.parts >= parts))
    });
    let mut remote = server.remote();
    (remote.address, remote.patience) = (proxy.address.clone(), Duration::ZERO);
    let error = load_remote(&inferred(file, "t"), &remote).unwrap_err();
    assert!(matches!(error, Error::Unavailable(_)), "{error}");
}

fn widened(report: &RemoteReport) -> Vec<(&str, u64)> {
    report.widened.iter().map(|w| (w.column.as_str(), w.place.line)).collect()
}

#[test]
fn numbers_and_dates_become_wider_while_the_load_goes_on() {
    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join("t.csv");
    std::fs::write(&file, text_of_numbers()).unwrap();
    let expected = expected(folder.path(), &file);
    let server = Server::start(&folder.path().join("server"), ReceiveOptions::default());
    let policies = [ALL, NONE, SIZE, ADAPTIVE];
    for (number, placement) in policies.into_iter().enumerate() {
        let name = format!("t{number}");
        let mut remote = server.remote();
        remote.work = placement;
        let mut options = inferred(&file, &name);
        options.resources.threads = number + 1;
        let report = load_remote(&options, &remote).unwrap();
        let lines = [("n", 7_202), ("day", 9_002), ("n", 9_602), ("few", 10_802)];
        assert_eq!(widened(&report), lines, "{placement:?}");
        // One attempt more for each, and nearly all was there when the last began.
        assert!(report.attempts >= 5, "{}", report.attempts);
        let [all, known] = report.partitions;
        assert!(known * 100 >= all * 80, "{known} of {all} partitions were kept");
        assert!(table(&server.store, &name) == expected, "{placement:?}");
        // A client that did not hear that it was done asks once more.
        assert!(load_remote(&options, &remote).unwrap().already);
        // The same once more: with the table's types, or as one that does not know them.
        for again in [planned(&file, &name, &remote), options] {
            let replaces = LoadMode::Replace;
            let mut again = again;
            again.mode = replaces;
            let first = load_remote(&again, &remote).unwrap();
            assert!(load_remote(&again, &remote).unwrap().already, "{:?}", first.id);
        }
        assert!(table(&server.store, &name) == expected, "{placement:?}");
        // The first load was replaced: the table no longer holds it, so that it is none that was done already.
        let report = load_remote(&planned(&file, &name, &remote), &remote).unwrap();
        assert!(!report.already);
    }
    assert!(server.store.list_journals().unwrap().is_empty());
}

/// The same, and two columns become text: one at 85 of a hundred, and one behind it that was DECIMAL then.
fn text_with_text(rejects: bool) -> String {
    let mut text = String::new();
    for (i, line) in (0..=RECORDS).zip(text_of_numbers().lines()) {
        let fields: Vec<&str> = line.split(',').collect();
        let [id, n, day, few, note] = fields[..] else { panic!("{line}") };
        let few = if i == RECORDS * 85 / 100 { "007" } else { few };
        let n = if i == RECORDS * 95 / 100 { "none" } else { n };
        let _ = writeln!(text, "{id},{n},{day},{few},{note}");
        if rejects && i % 700 == 690 {
            text.push_str("a,record,of,too,many,fields\n");
        }
    }
    text
}

#[test]
fn of_columns_that_become_text_the_text_is_sent() {
    for rejects in [false, true] {
        let folder = tempfile::tempdir().unwrap();
        let file = folder.path().join("t.csv");
        std::fs::write(&file, text_with_text(rejects)).unwrap();
        let with_rejects = |table: &str| {
            let max_rejects = RejectLimit::Count(u64::MAX);
            let mut options = inferred(&file, table);
            options.max_rejects = max_rejects;
            options
        };
        let store = Store::create_or_open(folder.path().join("embedded")).unwrap();
        load(&store, &with_rejects("t")).unwrap();
        let expected = table(&store, "t");
        assert_eq!([expected.0[1], expected.0[3]], [DataType::Varchar(None); 2]);
        let server = Server::start(&folder.path().join("server"), ReceiveOptions::default());
        let policies = [ALL, NONE, ADAPTIVE];
        for (number, placement) in policies.into_iter().enumerate() {
            let name = format!("t{number}");
            let remote = RemoteOptions { work: placement, ..server.remote() };
            let mut options = with_rejects(&name);
            options.resources.fragments_per_partition = 1 + number;
            let report = load_remote(&options, &remote).unwrap();
            assert_eq!(report.rejects > 0, rejects);
            let [all, known] = report.partitions;
            assert!(known * 100 >= all * 80, "{known} of {all} partitions were kept");
            assert!(table(&server.store, &name) == expected, "{placement:?}");
            assert!(load_remote(&options, &remote).unwrap().already);
        }
        assert!(server.store.list_journals().unwrap().is_empty());
    }
}

/// With a small memory chunks are as long as the types let them be. They were cut anew for the wider types of the next
/// attempt, which went on in the middle of one, and for the columns that are read again as text.
#[test]
fn a_small_memory_cuts_the_same_chunks_whatever_the_types_become() {
    let folder = tempfile::tempdir().unwrap();
    let server = Server::start(&folder.path().join("server"), ReceiveOptions::default());
    for (number, (file, expected)) in both(folder.path()).into_iter().enumerate() {
        for placement in [ALL, NONE] {
            let name = format!("t{number}{placement:?}");
            let mut options = inferred(&file, &name);
            (options.resources.chunk_bytes, options.resources.memory) = (10 << 20, 16 << 20);
            let report =
                load_remote(&options, &RemoteOptions { work: placement, ..server.remote() });
            let report = report.unwrap();
            assert!(report.partitions[0] > 1 && report.attempts > 1, "{}", report.attempts);
            assert!(table(&server.store, &name) == expected, "{name}");
        }
    }
}

#[test]
fn compressed_input_whose_types_become_wider_is_read_from_the_start() {
    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join("t.csv");
    std::fs::write(&file, text_with_text(false)).unwrap();
    let expected = expected(folder.path(), &file);
    let packed = folder.path().join("t.csv.gz");
    let mut gzip = GzEncoder::new(File::create(&packed).unwrap(), Compression::fast());
    gzip.write_all(text_with_text(false).as_bytes()).unwrap();
    gzip.finish().unwrap();
    let server = Server::start(&folder.path().join("server"), ReceiveOptions::default());
    let mut options = inferred(&file, "t");
    options.inputs = expand_inputs(&[packed.to_string_lossy().into_owned()]).unwrap();
    let report = load_remote(&options, &server.remote()).unwrap();
    assert_eq!(report.partitions[1], 0);
    assert!(table(&server.store, "t") == expected);
    assert!(server.store.list_journals().unwrap().is_empty());
}

#[test]
fn what_became_wider_stays_so_when_another_client_and_server_go_on() {
    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join("t.csv");
    std::fs::write(&file, text_of_numbers()).unwrap();
    let expected = expected(folder.path(), &file);
    let path = folder.path().join("server");
    let partitions = {
        let server = Server::start(&folder.path().join("count"), ReceiveOptions::default());
        load_remote(&inferred(&file, "t"), &server.remote()).unwrap().partitions[0]
    };
    // Behind the last column that became wider: the types come from the journal.
    let server = Server::start(&path, ReceiveOptions::default());
    stop_after(&server, &file, partitions * 93 / 100);
    drop(server);
    let server = Server::start(&path, ReceiveOptions::default());
    let report = load_remote(&inferred(&file, "t"), &server.remote()).unwrap();
    // One of two in flight may have become durable before the other.
    assert!(report.partitions[1] + 2 >= partitions * 93 / 100, "{:?}", report.partitions);
    assert!(report.widened.is_empty(), "{:?}", widened(&report));
    assert!(table(&server.store, "t") == expected);
    drop(server);
    // Between two of them: what earlier fields were is not known, so the next starts again.
    let server = Server::start(&folder.path().join("between"), ReceiveOptions::default());
    stop_after(&server, &file, partitions * 70 / 100);
    let report = load_remote(&inferred(&file, "t"), &server.remote()).unwrap();
    assert!(report.widened.len() >= 3, "{:?}", widened(&report));
    assert!(table(&server.store, "t") == expected);
    assert!(server.store.list_journals().unwrap().is_empty());
}

/// Copies a folder; again if a file of it was renamed meanwhile, as a server that ends may still do.
fn copy(from: &Path, to: &Path) {
    for _ in 0..100 {
        match try_copy(from, to) {
            Err(error) if error.kind() == ErrorKind::NotFound => {
                std::thread::sleep(Duration::from_millis(20));
            }
            copied => return copied.unwrap(),
        }
    }
    panic!("{} does not come to rest", from.display());
}

fn try_copy(from: &Path, to: &Path) -> std::io::Result<()> {
    std::fs::create_dir_all(to)?;
    for entry in std::fs::read_dir(from)? {
        let entry = entry?;
        let target = to.join(entry.file_name());
        match entry.file_type()?.is_dir() {
            true => try_copy(&entry.path(), &target)?,
            false => drop(std::fs::copy(entry.path(), target)?),
        }
    }
    Ok(())
}

#[test]
fn a_journal_that_outlived_its_load_is_not_loaded_again() {
    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join("t.csv");
    std::fs::write(&file, text_of_numbers()).unwrap();
    let path = folder.path().join("server");
    let journals = |name: &str| folder.path().join(name).join("loads");
    let server = Server::start(&path, ReceiveOptions::default());
    stop_after(&server, &file, 22);
    drop(server);
    copy(&journals("server"), &journals("kept"));
    let server = Server::start(&path, ReceiveOptions::default());
    load_remote(&inferred(&file, "t"), &server.remote()).unwrap();
    let published = table(&server.store, "t");
    // As if the server had been killed before it removed the journal; first while it runs.
    copy(&journals("kept"), &journals("server"));
    assert_eq!(server.store.list_journals().unwrap().len(), 1);
    assert!(load_remote(&inferred(&file, "t"), &server.remote()).unwrap().already);
    drop(server);
    copy(&journals("kept"), &journals("server"));
    let server = Server::start(&path, ReceiveOptions::default());
    assert!(server.store.list_journals().unwrap().is_empty());
    assert!(table(&server.store, "t") == published);
}

#[test]
fn cuts_while_columns_become_wider_lose_nothing() {
    let folder = tempfile::tempdir().unwrap();
    let both = both(folder.path());
    let server = Server::start(&folder.path().join("server"), ReceiveOptions::default());
    let seed = seed();
    for round in 0..rounds(4) {
        let (file, expected) = &both[(round % 2) as usize];
        let name = format!("t{round}");
        let proxy = Proxy::start(server.address.clone(), move |n| {
            let random = mix(seed ^ mix(round * 31 + n));
            (n < 8).then_some(200 + random % 120_000)
        });
        let mut remote = RemoteOptions::new(proxy.address.clone());
        remote.work = [ALL, NONE][(round % 2) as usize];
        remote.connections = 1 + (round % 3) as usize;
        // The cuts end; how long that takes is the machine's affair.
        remote.patience = PATIENCE;
        let report = load_remote(&inferred(file, &name), &remote).unwrap();
        let cuts = proxy.cuts.load(Ordering::SeqCst);
        println!("{} attempts, {cuts} cuts", report.attempts);
        assert!(table(&server.store, &name) == *expected, "{name}, {cuts} cuts");
    }
}

#[test]
fn a_killed_server_knows_what_became_wider() {
    let folder = tempfile::tempdir().unwrap();
    let both = both(folder.path());
    let path = folder.path().join("server");
    let seed = seed();
    for round in 0..rounds(2) {
        let mut server = Process::start(&path, "127.0.0.1:0");
        let remote = RemoteOptions { patience: PATIENCE, ..RemoteOptions::new(&server.address) };
        let (file, expected) = &both[(round % 2) as usize];
        let name = format!("t{round}");
        let options = inferred(file, &name);
        let loading = std::thread::spawn(move || load_remote(&options, &remote));
        for kill in 0..4 {
            let random = mix(seed ^ mix(round * 17 + kill));
            std::thread::sleep(Duration::from_millis(random % 400));
            let address = server.kill();
            server = Process::start(&path, &address);
        }
        let report = loading.join().unwrap().unwrap();
        println!("{} attempts", report.attempts);
        drop(server);
        assert!(table(&Store::open(&path).unwrap(), &name) == *expected, "{name}");
    }
}

/// Not a test of its own: what the next one starts and kills.
#[test]
fn client_process() {
    let (Ok(address), Ok(file), Ok(table)) = (
        std::env::var("COLOAD_TEST_ADDRESS"),
        std::env::var("COLOAD_TEST_WIDER"),
        std::env::var("COLOAD_TEST_TABLE"),
    ) else {
        return;
    };
    let remote = RemoteOptions::new(address);
    load_remote(&planned(Path::new(&file), &table, &remote), &remote).unwrap();
}

#[test]
fn killed_clients_load_each_row_once() {
    let folder = tempfile::tempdir().unwrap();
    let both = both(folder.path());
    let server = Server::start(&folder.path().join("server"), ReceiveOptions::default());
    let seed = seed();
    for round in 0..rounds(2) {
        let (file, expected) = &both[(round % 2) as usize];
        let name = format!("t{round}");
        for kill in 0..4 {
            let mut client = Command::new(std::env::current_exe().unwrap())
                .args(["--exact", "widen::client_process"])
                .env("COLOAD_TEST_ADDRESS", &server.address)
                .env("COLOAD_TEST_WIDER", file)
                .env("COLOAD_TEST_TABLE", &name)
                .stdout(Stdio::null())
                .spawn()
                .unwrap();
            let random = mix(seed ^ mix(round * 13 + kill));
            std::thread::sleep(Duration::from_millis(random % 900));
            client.kill().unwrap();
            client.wait().unwrap();
        }
        let load = planned(file, &name, &server.remote());
        let report = load_remote(&load, &server.remote()).unwrap();
        println!("{:?} partitions, already {}", report.partitions, report.already);
        assert!(table(&server.store, &name) == *expected, "{name}");
    }
    assert!(server.store.list_journals().unwrap().is_empty());
}

/// Rows that the client sorted, by columns that become wider and text meanwhile: they are those of a store of this machine, in its order.
///
/// Symptom: a table that was made at a server had no key when a column became wider. Cause: wider columns were told without it.
#[test]
fn rows_that_were_sorted_become_wider_and_get_their_text() {
    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join("t.csv");
    std::fs::write(&file, text_with_text(true)).unwrap();
    let server = Server::start(&folder.path().join("server"), ReceiveOptions::default());
    let embedded = Store::create_or_open(folder.path().join("embedded")).unwrap();
    let keyed = |table: &str, key: &[usize]| {
        let mut options = inferred(&file, table);
        options.max_rejects = RejectLimit::Count(u64::MAX);
        options.resources.fragments_per_partition = 2;
        let kind = if key == [0] { KeyKind::Primary } else { KeyKind::Cluster };
        let key = Key::new(kind, key.to_vec()).unwrap();
        options.schema = options.schema.clone().with_key(Some(key)).unwrap();
        options
    };
    for (number, key) in [&[0][..], &[1], &[4, 3], &[2]].into_iter().enumerate() {
        load(&embedded, &keyed(&format!("t{number}"), key)).unwrap();
        let wanted = table(&embedded, &format!("t{number}"));
        for (place, work) in [ALL, NONE, SIZE].into_iter().enumerate() {
            let name = format!("t{number}_{place}");
            let remote = RemoteOptions { work, ..server.remote() };
            let report = load_remote(&keyed(&name, key), &remote).unwrap();
            assert!(report.attempts > 3, "{}", report.attempts);
            assert!(table(&server.store, &name) == wanted, "{key:?} {work:?}");
            // A client that begins with the columns of the table finds the load there.
            let schema = table_schema(&remote, &name).unwrap().unwrap();
            assert_eq!(schema.key(), keyed(&name, key).schema.key());
            let mut again = keyed(&name, key);
            (again.schema, again.inferred) = (schema, None);
            assert!(load_remote(&again, &remote).unwrap().already, "{key:?} {work:?}");
        }
    }
}
