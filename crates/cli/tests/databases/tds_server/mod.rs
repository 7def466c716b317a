//! A small server of TDS and of a little T-SQL, in memory: what loads send, and what proves them. It takes nothing that it
//! does not check. Clients of others (python-tds, FreeTDS) prove it in turn.
//!
//! It is no SQL Server: rows that are not committed are seen by others, and statements are those of its `run` only.

mod calls;
mod catalogue;
mod define;
mod expression;
mod rows;
mod run;
mod select;
mod store;
mod tokens;
mod types;
mod values;
mod wire;

use std::collections::HashMap;
use std::net::{Shutdown, TcpListener, TcpStream};
use std::sync::atomic::{AtomicBool, AtomicU32, Ordering};
use std::sync::{Arc, Mutex};

pub use store::Db;
use wire::{Answer, Message};

/// User and password that it takes.
pub const USER: &str = "loader";
pub const PASSWORD: &str = "p{w}D é;1";

/// What sessions have in common.
pub struct Shared {
    pub db: Mutex<Db>,
    /// Connections, by the numbers of their sessions.
    lines: Mutex<HashMap<u32, TcpStream>>,
    next: AtomicU32,
    /// Whether it encrypts.
    pub encrypts: bool,
    tls: Arc<tokio_rustls::rustls::ServerConfig>,
    /// An error that the next INSERT BULK ends with, and how often.
    pub trouble: Mutex<Vec<i32>>,
    /// Requests with INSERT BULK, and of procedures.
    pub seen: Mutex<Vec<String>>,
}

/// A server, ended when it is dropped.
pub struct TdsServer {
    pub shared: Arc<Shared>,
    pub port: u16,
    /// Its certificate, in PEM.
    pub certificate: String,
    ends: Arc<AtomicBool>,
}

impl TdsServer {
    pub fn start(encrypts: bool) -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let port = listener.local_addr().unwrap().port();
        let key = rcgen::generate_simple_self_signed(["localhost".to_owned()]).unwrap();
        let tls = wire::server_config(&key);
        let shared = Arc::new(Shared {
            db: Mutex::default(),
            lines: Mutex::default(),
            next: AtomicU32::new(51),
            encrypts,
            tls,
            trouble: Mutex::default(),
            seen: Mutex::default(),
        });
        let ends = Arc::new(AtomicBool::new(false));
        let (for_thread, ended) = (Arc::clone(&shared), Arc::clone(&ends));
        std::thread::spawn(move || {
            for stream in listener.incoming().flatten() {
                if ended.load(Ordering::Relaxed) {
                    return;
                }
                let shared = Arc::clone(&for_thread);
                std::thread::spawn(move || serve(&shared, stream));
            }
        });
        TdsServer { shared, port, certificate: key.cert.pem(), ends }
    }

    /// Breaks connections off, but for the first so many.
    pub fn kill_connections(&self, but: usize) {
        let lines = self.shared.lines.lock().unwrap();
        let mut numbers: Vec<_> = lines.keys().copied().collect();
        numbers.sort_unstable();
        for number in numbers.into_iter().skip(but) {
            let _ = lines[&number].shutdown(Shutdown::Both);
        }
    }
}

impl Drop for TdsServer {
    fn drop(&mut self) {
        self.ends.store(true, Ordering::Relaxed);
        let _ = TcpStream::connect(("127.0.0.1", self.port));
        self.kill_connections(0);
    }
}

/// A session, until its connection ends.
fn serve(shared: &Arc<Shared>, stream: TcpStream) {
    let number = shared.next.fetch_add(1, Ordering::Relaxed);
    stream.set_nodelay(true).unwrap();
    shared.lines.lock().unwrap().insert(number, stream.try_clone().unwrap());
    let mut session = store::Session::new(number);
    // Who breaks off what was begun is told of, for the tests.
    if talk(shared, stream, &mut session).is_none() && session.is_busy {
        println!("session {number} sent what is none of the protocol, or broke off");
    }
    shared.db.lock().unwrap().rollback(&mut session, None);
    shared.db.lock().unwrap().forget(number);
    if let Some(stream) = shared.lines.lock().unwrap().remove(&number) {
        let _ = stream.shutdown(Shutdown::Both);
    }
}

impl Shared {
    /// Ends a session, as KILL does.
    pub fn kill(&self, number: u32) {
        if let Some(stream) = self.lines.lock().unwrap().get(&number) {
            let _ = stream.shutdown(Shutdown::Both);
        }
    }
}

fn talk(shared: &Arc<Shared>, stream: TcpStream, session: &mut store::Session) -> Option<()> {
    let mut line = wire::login(shared, stream, session)?;
    let mut bulk = None;
    loop {
        session.is_busy = false;
        let Message { kind, bytes } = line.read()?;
        session.is_busy = true;
        let mut answer = Answer::default();
        match kind {
            wire::BATCH => {
                let sql = wire::text(wire::after_headers(&bytes, session, &mut answer)?);
                if answer.is_empty() {
                    bulk = calls::run_batch(shared, session, &sql, &mut answer);
                }
            }
            wire::CALL => {
                let rest = wire::after_headers(&bytes, session, &mut answer)?;
                if answer.is_empty()
                    && calls::run_call(shared, session, rest, &mut answer).is_none()
                {
                    println!("a call that is none: {:?}", &rest[..rest.len().min(200)]);
                    return None;
                }
            }
            wire::BULK => match bulk.take() {
                Some(target) => calls::run_bulk(shared, session, &target, &bytes, &mut answer),
                None => answer.error(
                    4002,
                    16,
                    "The incoming tabular data stream (TDS) protocol stream is incorrect.",
                ),
            },
            wire::TRANSACTION => {
                let rest = wire::after_headers(&bytes, session, &mut answer)?;
                calls::run_transaction(shared, session, rest, &mut answer)?;
            }
            // What was asked for is over: it is said that nothing is done any more.
            wire::ATTENTION => answer.done_with(wire::Done::Batch, 0x20, None),
            _ => return None,
        }
        line.write(wire::ANSWER, &answer.bytes)?;
    }
}
