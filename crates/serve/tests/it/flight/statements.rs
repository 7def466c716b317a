use std::io::{Read, Write};
use std::net::TcpStream;

use coload_serve::output::{OutputFormat, write_answer};
use coload_serve::{Remote, ServeOptions};
use coload_types::Error;
use tonic_health::pb::HealthCheckRequest;
use tonic_health::pb::health_check_response::ServingStatus;
use tonic_health::pb::health_client::HealthClient;

use super::{Running, channel, here};

/// An answer as CSV without its header.
pub fn csv(client: &mut Remote, text: &str) -> String {
    let (schema, batches) = client.query(text).unwrap();
    let mut out = Vec::new();
    write_answer(&schema, &batches, OutputFormat::of_name("csv").unwrap(), &mut out).unwrap();
    let out = String::from_utf8(out).unwrap();
    out.split_once('\n').map_or(String::new(), |(_, rows)| rows.to_owned())
}

/// What Prometheus reads, with the header of HTTP.
pub fn metrics_page(running: &Running) -> String {
    let mut http = TcpStream::connect(running.metrics.unwrap()).unwrap();
    http.write_all(b"GET /metrics HTTP/1.1\r\nHost: x\r\nConnection: close\r\n\r\n").unwrap();
    let mut page = String::new();
    http.read_to_string(&mut page).unwrap();
    page
}

#[test]
fn statements_run_on_the_server() {
    let running = Running::start();
    let mut client = running.client();
    csv(&mut client, "CREATE TABLE t (id BIGINT NOT NULL, name VARCHAR)");
    assert_eq!(csv(&mut client, "INSERT INTO t VALUES (1, 'one'), (2, NULL)"), "2\n");
    assert_eq!(csv(&mut client, "SELECT * FROM t ORDER BY id"), "1,one\n2,\n");
    assert_eq!(csv(&mut client, "SELECT * FROM t WHERE id > 5"), "");
    let here = running.scratch.database.query("SELECT * FROM t").unwrap();
    assert_eq!(here.iter().map(|b| b.num_rows()).sum::<usize>(), 2);
}

#[test]
fn an_empty_answer_has_its_columns() {
    let running = Running::start();
    let (schema, batches) = running.client().query("SELECT 1 AS a, 'x' AS b WHERE false").unwrap();
    let names: Vec<_> = schema.fields().iter().map(|f| f.name().as_str()).collect();
    assert_eq!(names, ["a", "b"]);
    assert_eq!(batches.iter().map(|b| b.num_rows()).sum::<usize>(), 0);
}

#[test]
fn errors_keep_their_kind_over_the_wire() {
    let running = Running::start();
    let mut client = running.client();
    let mut fails = |text: &str| client.query(text).unwrap_err();
    assert!(matches!(fails("SELEC"), Error::Invalid(_)));
    let missing = fails("SELECT * FROM nowhere");
    assert!(matches!(&missing, Error::Invalid(text) if text.contains("nowhere")), "{missing}");
    // Fails after rows were sent.
    let late = "SELECT 1 / (200000 - value) FROM generate_series(1, 300000)";
    let late = fails(late);
    assert!(matches!(&late, Error::Invalid(text) if text.contains("zero")), "{late}");
}

#[test]
fn a_statement_sees_the_version_it_was_planned_on() {
    let running = Running::start();
    let mut client = running.client();
    csv(&mut client, "CREATE TABLE t AS SELECT 1 AS a");
    for round in 0..20 {
        csv(&mut client, &format!("CREATE OR REPLACE TABLE t AS SELECT {round} AS a{round}"));
        assert_eq!(csv(&mut client, "SELECT * FROM t"), format!("{round}\n"));
    }
}

#[test]
fn health_and_metrics_tell_of_the_server() {
    let running =
        Running::start_with(ServeOptions { metrics: Some(here()), ..ServeOptions::new(here()) });
    csv(&mut running.client(), "SELECT value FROM generate_series(1, 5)");
    let runtime = tokio::runtime::Runtime::new().unwrap();
    let status = runtime.block_on(async {
        let mut health = HealthClient::new(channel(running.address).await);
        let service = "arrow.flight.protocol.FlightService".to_owned();
        health.check(HealthCheckRequest { service }).await.unwrap().into_inner().status
    });
    assert_eq!(status, ServingStatus::Serving as i32);
    let page = metrics_page(&running);
    assert!(page.starts_with("HTTP/1.1 200"), "{page}");
    for line in ["coload_statements_total{outcome=\"done\"} 1", "coload_rows_sent_total 5"] {
        assert!(page.contains(line), "{line} in {page}");
    }
}
