//! What clients may have: connections, turns, time, answers.

use std::io::{Read, Write};
use std::net::TcpStream;
use std::time::{Duration, Instant};

use arrow_flight::FlightDescriptor;
use arrow_flight::flight_service_client::FlightServiceClient;
use arrow_flight::sql::client::FlightSqlServiceClient;
use arrow_flight::sql::{CommandStatementQuery, ProstMessageExt};
use coload_serve::ServeLimits;
use coload_types::Error;
use futures::{StreamExt, TryStreamExt};
use prost::Message;
use tokio::runtime::Runtime;
use tonic::{Code, Request};

use super::cancel::until_running;
use super::statements::{csv, metrics_page};
use super::{Running, channel, limited, limited_users};

/// Rows without end.
const ROWS: &str =
    "SELECT a.value FROM generate_series(1, 2000000) a, generate_series(1, 2000000) b";
/// Does not end by itself while a test runs, and gives no row.
const ENDLESS: &str = "SELECT count(*) FROM generate_series(1, 2000000) a, generate_series(1, 2000000) b \
                       WHERE (a.value * b.value) % 7 = 3";
/// Longer than any of these tests may take.
const LONG: Duration = Duration::from_secs(600);

/// Whether the other end closes a connection within some time.
fn is_closed_within(stream: &mut TcpStream, time: Duration) -> bool {
    stream.set_read_timeout(Some(time)).unwrap();
    let mut byte = [0; 64];
    loop {
        match stream.read(&mut byte) {
            Ok(0) => return true,
            Ok(_) => {}
            Err(error) => return error.kind() == std::io::ErrorKind::ConnectionReset,
        }
    }
}

#[track_caller]
fn until(what: &str, mut is_so: impl FnMut() -> bool) {
    let end = Instant::now() + Duration::from_secs(20);
    while !is_so() {
        assert!(Instant::now() < end, "not within 20 s: {what}");
        std::thread::sleep(Duration::from_millis(20));
    }
}

fn has_line(running: &Running, line: &str) -> bool {
    metrics_page(running).lines().any(|l| l == line)
}

/// 256 idle connections without credentials kept everybody out, for as long as they liked.
#[test]
fn connections_without_login_keep_nobody_out_and_are_closed() {
    let limits = ServeLimits {
        connections: 16,
        login_time: Duration::from_secs(12),
        ..ServeLimits::default()
    };
    let running = limited_users(limits);
    let mut inside = running.client_of("ada", "ada").unwrap();
    let mut idle: Vec<_> = (0..100).map(|_| TcpStream::connect(running.address).unwrap()).collect();
    // Halves of a preface, and of a TLS hello, are no login either.
    for (number, stream) in idle.iter_mut().enumerate() {
        let _ = stream.write_all(&b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n"[..number % 24]);
    }
    assert_eq!(csv(&mut inside, "SELECT 1"), "1\n");
    assert_eq!(csv(&mut running.client_of("rob", "rob").unwrap(), "SELECT 2"), "2\n");
    for stream in &mut idle {
        assert!(is_closed_within(stream, Duration::from_secs(60)));
    }
    assert_eq!(csv(&mut inside, "SELECT 3"), "3\n");
}

#[test]
fn a_peer_has_so_many_connections_and_is_told_so() {
    let limits =
        ServeLimits { connections: 16, connections_per_peer: Some(2), ..ServeLimits::default() };
    let running = limited(limits);
    let mut clients: Vec<_> = (0..2).map(|_| running.client()).collect();
    for client in &mut clients {
        csv(client, "SELECT 1");
    }
    let refused = running.client().query("SELECT 1").unwrap_err();
    assert!(matches!(&refused, Error::Limit(t) if t.contains("-per-peer")), "{refused}");
    clients.pop();
    until("a place", || running.client().query("SELECT 1").is_ok());
}

#[test]
fn a_connection_without_calls_is_closed() {
    let limits = ServeLimits { idle_time: Duration::from_millis(300), ..ServeLimits::default() };
    let running = limited(limits);
    let runtime = Runtime::new().unwrap();
    // A statement that runs is no idleness.
    let mut busy = running.client();
    let started = Instant::now();
    busy.query(super::faults::SLOW).unwrap();
    assert!(started.elapsed() > Duration::from_millis(300), "the statement is too fast");
    runtime.block_on(async {
        let mut idle = FlightSqlServiceClient::new(channel(running.address).await);
        idle.execute("SELECT 1".into(), None).await.unwrap();
        tokio::time::sleep(Duration::from_millis(400)).await;
    });
    until("closed", || has_line(&running, "coload_connections 0"));
}

#[test]
fn the_page_of_metrics_cannot_be_locked() {
    let running = limited(ServeLimits::default());
    let idle: Vec<_> =
        (0..100).map(|_| TcpStream::connect(running.metrics.unwrap()).unwrap()).collect();
    assert!(metrics_page(&running).starts_with("HTTP/1.1 200"));
    let mut endless = TcpStream::connect(running.metrics.unwrap()).unwrap();
    endless.write_all(b"GET /metrics HTTP/1.1\r\n").unwrap();
    let header = format!("X: {}\r\n", "x".repeat(1_000));
    while endless.write_all(header.as_bytes()).is_ok() {}
    assert!(metrics_page(&running).starts_with("HTTP/1.1 200"));
    drop(idle);
}

/// Runs a statement of a user whose rows nobody reads.
async fn unread(running: &Running, user: &str) -> impl Sized {
    let mut sql = FlightSqlServiceClient::new(channel(running.address).await);
    sql.handshake(user, user).await.unwrap();
    let info = sql.execute(ROWS.into(), None).await.unwrap();
    let rows = sql.do_get(info.endpoint[0].ticket.clone().unwrap()).await.unwrap();
    (sql, rows)
}

/// 64 queries of one user whose rows were not read stopped the statements of all.
#[test]
fn a_user_who_does_not_read_stops_nobody_else_and_is_ended() {
    let limits = ServeLimits {
        statements: 4,
        statements_per_user: Some(2),
        queue_time: Duration::from_millis(200),
        stall_time: Duration::from_secs(8),
        ..ServeLimits::default()
    };
    let running = limited_users(limits);
    let runtime = Runtime::new().unwrap();
    let held: Vec<_> = (0..2).map(|_| runtime.block_on(unread(&running, "ada"))).collect();
    until_running(&running, 2);
    let refused = running.client_of("ada", "ada").unwrap().query("SELECT 1").unwrap_err();
    assert!(matches!(&refused, Error::Limit(t) if t.contains("-per-user")), "{refused}");
    assert_eq!(csv(&mut running.client_of("rob", "rob").unwrap(), "SELECT 1"), "1\n");
    until_running(&running, 0);
    assert_eq!(csv(&mut running.client_of("ada", "ada").unwrap(), "SELECT 1"), "1\n");
    drop(held);
}

#[test]
fn an_ingest_that_sends_nothing_is_ended() {
    let limits = ServeLimits { stall_time: Duration::from_millis(300), ..ServeLimits::default() };
    let running = limited(limits);
    let runtime = Runtime::new().unwrap();
    let sent = super::faults::messages(&runtime, vec![super::faults::batch(10)]);
    let refused = runtime.block_on(async {
        let mut flight = FlightServiceClient::new(channel(running.address).await);
        let never = futures::stream::iter(sent).chain(futures::stream::pending());
        tokio::time::timeout(LONG, flight.do_put(Request::new(never))).await.unwrap().unwrap_err()
    });
    assert!(refused.message().contains("--stall-time"), "{refused}");
    until_running(&running, 0);
}

#[test]
fn a_statement_ends_when_its_time_is_over() {
    let limits =
        ServeLimits { statement_time: Some(Duration::from_millis(300)), ..ServeLimits::default() };
    let running = limited(limits);
    for text in [ENDLESS.to_owned(), format!("CREATE TABLE t AS {ENDLESS}")] {
        let ended = running.client().query(&text).unwrap_err();
        assert!(matches!(&ended, Error::Limit(t) if t.contains("--statement-time")), "{ended}");
    }
    assert!(running.client().query("SELECT * FROM t").is_err());
}

#[test]
fn answers_have_so_many_rows_and_bytes() {
    let limits = ServeLimits {
        answer_rows: Some(10),
        answer_bytes: Some(1 << 20),
        ..ServeLimits::default()
    };
    let running = limited(limits);
    let mut client = running.client();
    assert_eq!(csv(&mut client, "SELECT value FROM generate_series(1, 10)").lines().count(), 10);
    let rows = client.query("SELECT value FROM generate_series(1, 11)").unwrap_err();
    assert!(matches!(&rows, Error::Limit(t) if t.contains("--max-answer-rows")), "{rows}");
    let bytes = "SELECT repeat('x', 200000) FROM generate_series(1, 10)";
    let bytes = client.query(bytes).unwrap_err();
    assert!(matches!(&bytes, Error::Limit(t) if t.contains("(--max-answer ")), "{bytes}");
}

#[test]
fn a_user_has_so_many_prepared_statements() {
    let limits = ServeLimits { prepared_per_user: 3, ..ServeLimits::default() };
    let running = limited_users(limits);
    Runtime::new().unwrap().block_on(async {
        let mut sql = FlightSqlServiceClient::new(channel(running.address).await);
        sql.handshake("rob", "rob").await.unwrap();
        let mut held = Vec::new();
        for _ in 0..3 {
            held.push(sql.prepare("SELECT 1".into(), None).await.unwrap());
        }
        let refused = sql.prepare("SELECT 1".into(), None).await.unwrap_err().to_string();
        assert!(refused.contains("--max-prepared"), "{refused}");
        let mut other = FlightSqlServiceClient::new(channel(running.address).await);
        other.handshake("ada", "ada").await.unwrap();
        other.prepare("SELECT 1".into(), None).await.unwrap();
        held.pop().unwrap().close().await.unwrap();
        sql.prepare("SELECT 1".into(), None).await.unwrap();
    });
}

/// A head of five bytes made the server take 64 MiB, before it asked who sends it.
#[test]
fn what_a_stranger_sends_is_not_read() {
    let running = limited_users(ServeLimits::default());
    let refused = Runtime::new().unwrap().block_on(async {
        let mut flight = FlightServiceClient::new(channel(running.address).await);
        let command = CommandStatementQuery { query: "x".repeat(1 << 20), transaction_id: None };
        let descriptor = FlightDescriptor::new_cmd(command.as_any().encode_to_vec());
        flight.get_flight_info(descriptor).await.unwrap_err()
    });
    assert_eq!(refused.code(), Code::Unauthenticated, "{refused}");
    let refused = Runtime::new().unwrap().block_on(async {
        let mut flight = FlightServiceClient::new(channel(running.address).await);
        let large = arrow_flight::HandshakeRequest {
            protocol_version: 0,
            payload: vec![0; 1 << 20].into(),
        };
        match flight.handshake(futures::stream::iter([large])).await {
            Ok(answer) => answer.into_inner().try_collect::<Vec<_>>().await.unwrap_err(),
            Err(status) => status,
        }
    });
    assert_ne!(refused.code(), Code::Ok, "{refused}");
}
