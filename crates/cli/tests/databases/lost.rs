//! The answer to a COMMIT is lost, or the COMMIT itself: the journal tells which, and every row is there once or none is.
//!
//! A proxy stands between the load and the server. It passes on what both say until the load says COMMIT, and then breaks the
//! connection off, before the server has it or behind its answer.

use std::io::{Read, Write};
use std::net::{Shutdown, TcpListener, TcpStream};
use std::path::Path;
use std::process::Command;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex};
use std::time::Duration;

use crate::rows::numbered;
use crate::servers::{Engine, Server};
use crate::sqlserver::Target;

/// What is lost of a statement.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Lost {
    /// It does not come to the server.
    Statement,
    /// The server runs it, and what it answers does not come to the client.
    Answer,
}

/// What a proxy does.
struct Plan {
    /// Bytes of the statement.
    statement: Vec<u8>,
    lost: Lost,
    /// Statements that come through before it.
    before: AtomicUsize,
    /// How often a connection was broken off.
    cuts: AtomicUsize,
    to: String,
}

/// A proxy before a server, at a port of its own; what it does changes by [`Proxy::plan`].
struct Proxy {
    port: u16,
    plan: Arc<Mutex<Arc<Plan>>>,
}

impl Proxy {
    fn start(plan: Plan) -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let port = listener.local_addr().unwrap().port();
        let plan = Arc::new(Mutex::new(Arc::new(plan)));
        let plans = Arc::clone(&plan);
        std::thread::spawn(move || {
            for client in listener.incoming().flatten() {
                let plan = Arc::clone(&plans.lock().unwrap());
                std::thread::spawn(move || pass(&client, &plan));
            }
        });
        Proxy { port, plan }
    }

    fn plan(&self, statement: &[u8], lost: Lost, before: usize) {
        let mut plan = self.plan.lock().unwrap();
        *plan = Arc::new(Plan {
            statement: statement.to_vec(),
            lost,
            before: AtomicUsize::new(before),
            cuts: AtomicUsize::new(0),
            to: plan.to.clone(),
        });
    }

    fn cuts(&self) -> usize {
        self.plan.lock().unwrap().cuts.load(Ordering::SeqCst)
    }
}

/// Passes on what both say, until the statement comes for the first time behind those before.
fn pass(client: &TcpStream, plan: &Plan) -> Option<()> {
    let server = TcpStream::connect(&plan.to).ok()?;
    let (mut from_client, mut to_server) = (client.try_clone().ok()?, server.try_clone().ok()?);
    let is_cut = Arc::new(AtomicUsize::new(0));
    let (mut from_server, mut to_client) = (server.try_clone().ok()?, client.try_clone().ok()?);
    let for_answers = Arc::clone(&is_cut);
    let answers = std::thread::spawn(move || {
        let mut bytes = vec![0; 64 << 10];
        while let Ok(count @ 1..) = from_server.read(&mut bytes) {
            if for_answers.load(Ordering::SeqCst) == 1 {
                // The server has answered, and nobody is told.
                break;
            }
            if to_client.write_all(&bytes[..count]).is_err() {
                break;
            }
        }
        let _ = to_client.shutdown(Shutdown::Both);
        let _ = from_server.shutdown(Shutdown::Both);
    });
    let mut bytes = vec![0; 64 << 10];
    while let Ok(count @ 1..) = from_client.read(&mut bytes) {
        let has = bytes[..count].windows(plan.statement.len()).any(|part| part == plan.statement);
        let is_it = has
            && plan
                .before
                .fetch_update(Ordering::SeqCst, Ordering::SeqCst, |n| n.checked_sub(1))
                .is_err()
            && plan.cuts.fetch_add(1, Ordering::SeqCst) == 0;
        if is_it && plan.lost == Lost::Statement {
            break;
        }
        if is_it {
            is_cut.store(1, Ordering::SeqCst);
        }
        if to_server.write_all(&bytes[..count]).is_err() {
            break;
        }
        if is_it {
            let _ = answers.join();
            break;
        }
    }
    let _ = client.shutdown(Shutdown::Both);
    let _ = server.shutdown(Shutdown::Both);
    Some(())
}

/// A load by way of the proxy; whether it said that it succeeded, and what it said.
fn load(url: &str, file: &Path, flags: &str) -> (bool, String) {
    let output = Command::new(env!("CARGO_BIN_EXE_coload"))
        .arg("load")
        .arg(file)
        .args(["--into", url, "--patience", "60"])
        .args(flags.split_whitespace())
        .output()
        .unwrap();
    let text = |bytes: &[u8]| String::from_utf8_lossy(bytes).into_owned();
    (output.status.success(), text(&output.stdout) + &text(&output.stderr))
}

const ROWS: usize = 5_000;

/// A server, how it is asked, and what COMMIT and a change of a name look like on their way to it.
struct Side<'a> {
    url: &'a dyn Fn(u16) -> String,
    to: String,
    sql: &'a dyn Fn(&str) -> String,
    commit: Vec<u8>,
    /// Where a table gets its name by a statement that is no matter of a transaction.
    rename: Option<Vec<u8>>,
    file: &'a Path,
}

fn answers_are_lost(side: &Side<'_>) {
    let proxy = Proxy::start(Plan {
        statement: side.commit.clone(),
        lost: Lost::Answer,
        before: AtomicUsize::new(0),
        cuts: AtomicUsize::new(0),
        to: side.to.clone(),
    });
    let url = (side.url)(proxy.port);
    let whole = format!("{ROWS}|{ROWS}");
    let count =
        |table: &str| (side.sql)(&format!("SELECT count(*), count(DISTINCT id) FROM {table}"));
    // The journal is there before, so that its own COMMIT is none of those that are lost.
    let (loaded, text) = load(&(side.url)(port_of(&side.to)), side.file, "--table first");
    assert!(loaded, "{text}");
    // One transaction: what it did is told by the line that it wrote.
    for (lost, rows) in [(Lost::Answer, &*whole), (Lost::Statement, "0|0")] {
        let table = format!("direct_{lost:?}").to_lowercase();
        (side.sql)(&format!("CREATE TABLE {table} (id bigint PRIMARY KEY, v int, t varchar(100))"));
        proxy.plan(&side.commit, lost, 0);
        let (loaded, text) = load(&url, side.file, &format!("--table {table}"));
        assert!(proxy.cuts() > 0, "nothing was cut: {text}");
        assert_eq!(loaded, lost == Lost::Answer, "{table}: {text}");
        assert_eq!(loaded, !text.contains("nothing was loaded"), "{table}: {text}");
        assert_eq!(arrives(&|| count(&table), rows), rows, "{table}: {text}");
    }
    // Chunk by chunk: one whose answer was lost is not sent again, one that was not committed is.
    for lost in [Lost::Answer, Lost::Statement] {
        for before in [0, 2] {
            let table = format!("chunks_{lost:?}_{before}").to_lowercase();
            (side.sql)(&format!(
                "CREATE TABLE {table} (id bigint PRIMARY KEY, v int, t varchar(100))"
            ));
            proxy.plan(&side.commit, lost, before);
            let flags = format!("--table {table} --resumable --chunk-size 16KiB --connections 2");
            let (loaded, text) = load(&url, side.file, &flags);
            assert!(loaded && proxy.cuts() > 0, "{table}: {text}");
            assert_eq!(count(&table), whole, "{table}");
        }
    }
    // A table that gets its name.
    if let Some(rename) = &side.rename {
        for lost in [Lost::Answer, Lost::Statement] {
            let table = format!("named_{lost:?}").to_lowercase();
            proxy.plan(rename, lost, 0);
            let (loaded, text) = load(&url, side.file, &format!("--table {table}"));
            assert!(proxy.cuts() > 0, "nothing was cut: {text}");
            assert_eq!(loaded, lost == Lost::Answer, "{table}: {text}");
            if loaded {
                assert_eq!(count(&table), whole, "{table}");
            } else {
                assert!(text.contains("nothing was loaded"), "{text}");
                let (loaded, text) = load(&url, side.file, &format!("--table {table} --create"));
                assert!(loaded, "{text}");
            }
        }
    }
}

/// What is found, when the server has seen that its client is gone.
fn arrives(found: &dyn Fn() -> String, expected: &str) -> String {
    for _ in 0..100 {
        if found() == expected {
            break;
        }
        std::thread::sleep(Duration::from_millis(50));
    }
    found()
}

fn port_of(to: &str) -> u16 {
    to.rsplit_once(':').unwrap().1.parse().unwrap()
}

#[test]
fn a_lost_commit_of_postgresql_is_told_by_the_journal() {
    let server = Server::start(Engine::Postgres);
    let file = server.file("lost.csv", &numbered(ROWS));
    answers_are_lost(&Side {
        url: &|port| format!("postgres://postgres@127.0.0.1:{port}/postgres?sslmode=disable"),
        to: format!("127.0.0.1:{}", server.port()),
        sql: &|sql| server.sql(sql),
        commit: b"COMMIT\0".to_vec(),
        rename: None,
        file: &file,
    });
}

#[test]
fn a_lost_commit_of_mariadb_is_told_by_the_journal() {
    let server = Server::start(Engine::Mariadb);
    let file = server.file("lost.csv", &numbered(ROWS));
    answers_are_lost(&Side {
        url: &|port| format!("mysql://u:p%20w@127.0.0.1:{port}/d"),
        to: format!("127.0.0.1:{}", server.port()),
        sql: &|sql| server.sql(sql),
        commit: b"\x03COMMIT".to_vec(),
        rename: Some(b"\x03RENAME TABLE".to_vec()),
        file: &file,
    });
}

#[test]
fn a_lost_commit_of_sql_server_is_told_by_the_journal() {
    // The small server only: its connections are not encrypted, so that a proxy can read them.
    let target = Target::plain();
    let file = target.file("lost.csv", &numbered(ROWS));
    let port = target.server.as_ref().unwrap().port;
    answers_are_lost(&Side {
        url: &|port| Target::plain_url(port),
        to: format!("127.0.0.1:{port}"),
        sql: &|sql| target.sql(&sql.replace("count", "COUNT").replace("varchar", "nvarchar")),
        commit: "COMMIT".encode_utf16().flat_map(u16::to_le_bytes).collect(),
        rename: None,
        file: &file,
    });
}
