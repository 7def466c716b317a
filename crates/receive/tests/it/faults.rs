//! Networks that are cut, processes that are killed: after all of it each row is there once.
//!
//! The seed of a run is printed; `COLOAD_SEED` gives one, `COLOAD_ROUNDS` the number of rounds.

use std::io::{BufRead, BufReader, Read, Write};
use std::net::{TcpListener, TcpStream};
use std::path::Path;
use std::process::{Child, Command, Stdio};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::time::Duration;

use coload_load::{RemoteOptions, RemoteWork};
use coload_receive::ReceiveOptions;
use coload_store::Store;

use crate::setup::{ALL, NONE, Server, load, load_remote, mix, options, records, rows};

pub fn seed() -> u64 {
    let given = std::env::var("COLOAD_SEED").ok().and_then(|s| s.parse().ok());
    let seed = given.unwrap_or_else(|| {
        let now = std::time::SystemTime::now().duration_since(std::time::UNIX_EPOCH).unwrap();
        now.as_nanos() as u64
    });
    println!("COLOAD_SEED={seed}");
    seed
}

pub fn rounds(default: u64) -> u64 {
    std::env::var("COLOAD_ROUNDS").ok().and_then(|s| s.parse().ok()).unwrap_or(default)
}

/// Passes connections on to a server until it cuts them.
pub struct Proxy {
    pub address: String,
    ended: Arc<AtomicBool>,
    pub cuts: Arc<AtomicU64>,
}

impl Proxy {
    /// Cuts each connection after a number of bytes from the client: the n-th cut comes after `bytes(n)` bytes; `None`
    /// cuts no more.
    pub fn start(
        server: String,
        bytes: impl Fn(u64) -> Option<u64> + Send + Sync + 'static,
    ) -> Self {
        Proxy::start_with(server, move |from, to, cuts| match bytes(cuts.load(Ordering::SeqCst)) {
            None => drop(std::io::copy(from, to)),
            Some(limit) => {
                if std::io::copy(&mut from.take(limit), to).is_ok_and(|n| n == limit) {
                    cuts.fetch_add(1, Ordering::SeqCst);
                }
            }
        })
    }

    /// Passes nothing of the client on from when `over` says so.
    pub fn start_until(server: String, over: impl Fn() -> bool + Send + Sync + 'static) -> Self {
        Proxy::start_with(server, move |from, to, cuts| {
            let mut piece = vec![0; 4 << 10];
            while let Ok(bytes @ 1..) = from.read(&mut piece) {
                if over() {
                    cuts.fetch_add(1, Ordering::SeqCst);
                    return;
                }
                if to.write_all(&piece[..bytes]).is_err() {
                    return;
                }
            }
        })
    }

    fn start_with(
        server: String,
        pass: impl Fn(&mut TcpStream, &mut TcpStream, &AtomicU64) + Send + Sync + 'static,
    ) -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let address = listener.local_addr().unwrap().to_string();
        let (ended, cuts) = (Arc::new(AtomicBool::new(false)), Arc::new(AtomicU64::new(0)));
        let (end, count, pass) = (Arc::clone(&ended), Arc::clone(&cuts), Arc::new(pass));
        std::thread::spawn(move || {
            for client in listener.incoming() {
                if end.load(Ordering::Relaxed) {
                    return;
                }
                let (Ok(client), Ok(server)) = (client, TcpStream::connect(&server)) else {
                    continue;
                };
                let (pass, count) = (Arc::clone(&pass), Arc::clone(&count));
                pass_on(client, server, move |from, to| pass(from, to, &count));
            }
        });
        Proxy { address, ended, cuts }
    }
}

impl Drop for Proxy {
    fn drop(&mut self) {
        self.ended.store(true, Ordering::Relaxed);
        let _ = TcpStream::connect(&self.address);
    }
}

fn pass_on(
    client: TcpStream,
    server: TcpStream,
    pass: impl FnOnce(&mut TcpStream, &mut TcpStream) + Send + 'static,
) {
    let (mut back_from, mut back_to) = (server.try_clone().unwrap(), client.try_clone().unwrap());
    std::thread::spawn(move || {
        let _ = std::io::copy(&mut back_from, &mut back_to);
        let _ = back_to.shutdown(std::net::Shutdown::Both);
    });
    std::thread::spawn(move || {
        let (mut from, mut to) = (client, server);
        pass(&mut from, &mut to);
        let _ = to.shutdown(std::net::Shutdown::Both);
        let _ = from.shutdown(std::net::Shutdown::Both);
    });
}

fn expected(folder: &Path, file: &Path) -> Vec<Vec<Option<coload_types::Value>>> {
    let store = Store::create_or_open(folder.join("embedded")).unwrap();
    load(&store, &options(file, "t")).unwrap();
    rows(&store, "t")
}

#[test]
fn a_network_that_is_cut_loses_nothing_and_doubles_nothing() {
    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join("t.csv");
    std::fs::write(&file, records(8_000)).unwrap();
    let expected = expected(folder.path(), &file);
    let server = Server::start(&folder.path().join("server"), ReceiveOptions::default());
    let seed = seed();
    for round in 0..rounds(6) {
        let placement = [ALL, NONE, RemoteWork::Pipe, RemoteWork::Seq][(round % 4) as usize];
        let table = format!("t{round}");
        let proxy = Proxy::start(server.address.clone(), move |n| {
            let random = mix(seed ^ mix(round * 31 + n));
            (n < 5).then_some(200 + random % 150_000)
        });
        let mut remote = RemoteOptions::new(proxy.address.clone());
        remote.work = placement;
        remote.connections = 1 + (round % 3) as usize;
        remote.text_share = (round % 4 < 2).then_some((mix(seed ^ round) % 5) as f64 / 4.0);
        let report = load_remote(&options(&file, &table), &remote).unwrap();
        let cuts = proxy.cuts.load(Ordering::SeqCst);
        assert!(rows(&server.store, &table) == expected, "{table} {placement:?}, {cuts} cuts");
        println!("{placement:?}: {} attempts, {cuts} cuts", report.attempts);
    }
    assert!(server.store.list_journals().unwrap().is_empty());
}

/// A server as a process of its own.
pub struct Process {
    child: Child,
    pub address: String,
}

impl Process {
    pub fn start(store: &Path, listen: &str) -> Self {
        Process::start_by(&[], store, listen)
    }

    /// Starts it by a command that gets the server's as arguments.
    pub fn start_by(by: &[&str], store: &Path, listen: &str) -> Self {
        let server = [env!("CARGO_BIN_EXE_coload-receive"), store.to_str().unwrap()];
        let command = [by, &server, &["--listen", listen]].concat();
        for _ in 0..200 {
            let mut child = Command::new(command[0])
                .args(&command[1..])
                .stdout(Stdio::piped())
                .stderr(Stdio::null())
                .spawn()
                .unwrap();
            let mut line = String::new();
            BufReader::new(child.stdout.take().unwrap()).read_line(&mut line).unwrap();
            if let Some(address) = line.trim().strip_prefix("listening on ") {
                return Process { address: address.to_owned(), child };
            }
            // The port of the one that was killed is not free yet.
            child.wait().unwrap();
            std::thread::sleep(Duration::from_millis(20));
        }
        panic!("the server does not start");
    }

    pub fn kill(mut self) -> String {
        self.child.kill().unwrap();
        self.child.wait().unwrap();
        std::mem::take(&mut self.address)
    }
}

impl Drop for Process {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

#[test]
fn a_server_that_is_killed_goes_on_where_its_journal_ends() {
    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join("t.csv");
    std::fs::write(&file, records(8_000)).unwrap();
    let expected = expected(folder.path(), &file);
    let path = folder.path().join("server");
    let seed = seed();
    let mut attempts = 0;
    for round in 0..rounds(6) {
        let mut server = Process::start(&path, "127.0.0.1:0");
        let placement = [ALL, NONE, RemoteWork::Pipe][(round % 3) as usize];
        let mut remote = RemoteOptions::new(server.address.clone());
        remote.work = placement;
        remote.text_share = (round % 3 < 2).then_some((mix(seed ^ round) % 5) as f64 / 4.0);
        let table = format!("t{round}");
        let load = options(&file, &table);
        let loading = std::thread::spawn(move || load_remote(&load, &remote));
        for kill in 0..3 {
            let random = mix(seed ^ mix(round * 17 + kill));
            std::thread::sleep(Duration::from_millis(random % 300));
            let address = server.kill();
            server = Process::start(&path, &address);
        }
        let report = loading.join().unwrap().unwrap();
        attempts += report.attempts;
        drop(server);
        let store = Store::open(&path).unwrap();
        assert!(rows(&store, &table) == expected, "{table} {placement:?}");
    }
    println!("{attempts} attempts");
}

/// Not a test of its own: what the next one starts and kills.
#[test]
fn client_process() {
    let (Ok(address), Ok(file), Ok(table)) = (
        std::env::var("COLOAD_TEST_ADDRESS"),
        std::env::var("COLOAD_TEST_FILE"),
        std::env::var("COLOAD_TEST_TABLE"),
    ) else {
        return;
    };
    let mut remote = RemoteOptions::new(address);
    remote.text_share = Some(0.5);
    if table.contains("pipe") {
        remote.work = RemoteWork::Pipe;
    }
    load_remote(&options(Path::new(&file), &table), &remote).unwrap();
}

#[test]
fn a_client_that_is_killed_goes_on_where_the_journal_ends() {
    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join("t.csv");
    std::fs::write(&file, records(8_000)).unwrap();
    let expected = expected(folder.path(), &file);
    let server = Server::start(&folder.path().join("server"), ReceiveOptions::default());
    let seed = seed();
    let mut known = 0;
    for round in 0..rounds(6) {
        let table = format!("t{round}{}", if round % 3 == 2 { "pipe" } else { "" });
        for kill in 0..3 {
            let mut client = Command::new(std::env::current_exe().unwrap())
                .args(["--exact", "faults::client_process"])
                .env("COLOAD_TEST_ADDRESS", &server.address)
                .env("COLOAD_TEST_FILE", &file)
                .env("COLOAD_TEST_TABLE", &table)
                .stdout(Stdio::null())
                .spawn()
                .unwrap();
            let random = mix(seed ^ mix(round * 13 + kill));
            std::thread::sleep(Duration::from_millis(random % 500));
            client.kill().unwrap();
            client.wait().unwrap();
        }
        let mut remote = server.remote();
        if table.contains("pipe") {
            remote.work = RemoteWork::Pipe;
        }
        let report = load_remote(&options(&file, &table), &remote).unwrap();
        known += report.partitions[1] + usize::from(report.already);
        assert!(rows(&server.store, &table) == expected, "{table}");
    }
    println!("{known} partitions or loads were there already");
    assert!(server.store.list_journals().unwrap().is_empty());
}

#[test]
fn a_server_that_is_not_there_is_given_up() {
    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join("t.csv");
    std::fs::write(&file, records(10)).unwrap();
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let mut remote = RemoteOptions::new(listener.local_addr().unwrap().to_string());
    drop(listener);
    remote.patience = Duration::from_millis(500);
    let error = load_remote(&options(&file, "t"), &remote).unwrap_err();
    assert!(error.to_string().contains("cannot connect"), "{error}");
    assert!(error.to_string().contains("gave up after"), "{error}");
}
