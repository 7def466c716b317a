//! Clients of others at any node: COPY of PostgreSQL's protocol, and batches as a driver of ADBC sends them.

use std::io::{Read, Write};
use std::net::TcpStream;
use std::sync::Arc;

use arrow_array::{ArrayRef, Int64Array, RecordBatch, StringArray};
use arrow_flight::sql::client::FlightSqlServiceClient;
use arrow_flight::sql::{CommandStatementIngest, TableDefinitionOptions};
use futures::StreamExt;
use tonic::transport::Endpoint;

use crate::nodes::Nodes;

/// A connection that speaks PostgreSQL's protocol.
struct Postgres(TcpStream);

impl Postgres {
    fn connect(nodes: &Nodes, node: usize) -> Self {
        let mut stream = TcpStream::connect(("127.0.0.1", nodes.postgres(node))).unwrap();
        let parameters = b"user\0anybody\0database\0coload\0\0";
        let mut start = (8 + parameters.len() as u32).to_be_bytes().to_vec();
        start.extend(196_608_u32.to_be_bytes());
        start.extend(parameters);
        stream.write_all(&start).unwrap();
        let mut connection = Postgres(stream);
        connection.until(b'Z');
        connection
    }

    fn send(&mut self, kind: u8, bytes: &[u8]) {
        let mut message = vec![kind];
        message.extend((4 + bytes.len() as u32).to_be_bytes());
        message.extend(bytes);
        self.0.write_all(&message).unwrap();
    }

    /// Messages up to one of this kind, which is the last.
    fn until(&mut self, kind: u8) -> Vec<(u8, String)> {
        let mut messages: Vec<(u8, String)> = Vec::new();
        while messages.last().is_none_or(|(last, _)| *last != kind) {
            let mut head = [0; 5];
            self.0.read_exact(&mut head).unwrap();
            let length = u32::from_be_bytes([head[1], head[2], head[3], head[4]]) as usize;
            let mut bytes = vec![0; length - 4];
            self.0.read_exact(&mut bytes).unwrap();
            messages.push((head[0], String::from_utf8_lossy(&bytes).into_owned()));
        }
        messages
    }

    /// Copies rows; the answer is a tag, or an error.
    fn copy(&mut self, text: &str, rows: &[String], end: u8) -> Result<String, String> {
        self.send(b'Q', format!("{text}\0").as_bytes());
        self.until(b'G');
        rows.iter().for_each(|row| self.send(b'd', row.as_bytes()));
        self.send(end, if end == b'f' { b"given up\0" } else { b"" });
        let messages = self.until(b'Z');
        let find = |kind| messages.iter().find(|(of, _)| *of == kind).map(|(_, text)| text.clone());
        match find(b'E') {
            Some(error) => Err(error),
            None => Ok(find(b'C').unwrap()),
        }
    }
}

#[test]
fn copy_at_any_node_adds_all_rows_or_none() {
    let nodes = Nodes::start_with_postgres(3);
    nodes.sql(0, "CREATE TABLE t (k BIGINT NOT NULL, v VARCHAR) SHARD BY (k) SHARDS 9").done();
    let rows =
        |keys: std::ops::Range<u64>| keys.map(|k| format!("{k}\tvalue {k}\n")).collect::<Vec<_>>();
    let mut client = Postgres::connect(&nodes, 1);
    let told = client.copy("COPY t FROM STDIN", &rows(0..20_000), b'c').unwrap();
    assert!(told.contains("COPY 20000"), "{told}");
    let query = "SELECT count(*), count(DISTINCT k), sum(k), max(v) FROM t";
    let expected = ["20000,20000,199990000,value 9999"];
    (0..3).for_each(|node| assert_eq!(nodes.query(node, query), expected));
    // What the client gives up, and what is no row, leaves nothing, and the connection goes on.
    let given_up = client.copy("COPY t FROM STDIN", &rows(50_000..60_000), b'f').unwrap_err();
    assert!(given_up.contains("given up"), "{given_up}");
    let mut bad = rows(70_000..80_000);
    bad.push("no number\tx\n".to_owned());
    let failed = client.copy("COPY t FROM STDIN", &bad, b'c').unwrap_err();
    assert!(failed.contains("no number"), "{failed}");
    let told = client.copy("COPY t (k) FROM STDIN", &["20000\n".to_owned()], b'c').unwrap();
    assert!(told.contains("COPY 1"), "{told}");
    // A client that ends within its rows.
    let mut gone = Postgres::connect(&nodes, 2);
    gone.send(b'Q', b"COPY t FROM STDIN\0");
    gone.until(b'G');
    rows(90_000..95_000).iter().for_each(|row| gone.send(b'd', row.as_bytes()));
    drop(gone);
    let expected = ["20001,20001,200010000,value 9999"];
    (0..3).for_each(|node| assert_eq!(nodes.query(node, query), expected));
    crate::aggregator::wait_for_none(&nodes, "COPY");
    (0..3).for_each(|node| assert_eq!(nodes.query(node, query), expected));
}

/// Sends batches of 1,000 rows to a node, and tells how many it took.
fn ingest(
    nodes: &Nodes,
    node: usize,
    table: &str,
    options: (i32, i32),
    batches: i64,
) -> Result<i64, String> {
    let batch = |number: i64| {
        let keys = number * 1_000..(number + 1) * 1_000;
        let names = keys.clone().map(|k| format!("value {k}")).collect::<Vec<_>>();
        let columns: [(&str, ArrayRef); 2] = [
            ("v", Arc::new(StringArray::from(names))),
            ("k", Arc::new(Int64Array::from_iter_values(keys))),
        ];
        RecordBatch::try_from_iter(columns).unwrap()
    };
    let (if_not_exist, if_exists) = options;
    let command = CommandStatementIngest {
        table: table.to_owned(),
        table_definition_options: Some(TableDefinitionOptions { if_not_exist, if_exists }),
        ..CommandStatementIngest::default()
    };
    let address = format!("http://127.0.0.1:{}", nodes.port(node));
    let runtime =
        tokio::runtime::Builder::new_multi_thread().worker_threads(1).enable_all().build().unwrap();
    runtime.block_on(async {
        let channel = Endpoint::from_shared(address).unwrap().connect().await.unwrap();
        let mut client = FlightSqlServiceClient::new(channel);
        let rows = futures::stream::iter(0..batches).map(move |number| Ok(batch(number)));
        client.execute_ingest(command, rows).await.map_err(|e| e.to_string())
    })
}

#[test]
fn batches_of_a_driver_go_to_all_leaves() {
    /// As ADBC says it: create 1, fail 2; and fail 1, append 2, replace 3.
    const CREATE: (i32, i32) = (1, 1);
    const APPEND: (i32, i32) = (2, 2);
    const REPLACE: (i32, i32) = (1, 3);
    let nodes = Nodes::start(3);
    assert_eq!(ingest(&nodes, 0, "t", CREATE, 60), Ok(60_000));
    let query = "SELECT count(*), count(DISTINCT k), sum(k), max(v) FROM t";
    let expected = ["60000,60000,1799970000,value 9999"];
    (0..3).for_each(|node| assert_eq!(nodes.query(node, query), expected));
    let again = ingest(&nodes, 1, "t", CREATE, 1).unwrap_err();
    assert!(again.contains("exists already"), "{again}");
    let replaced = ingest(&nodes, 1, "t", REPLACE, 1).unwrap_err();
    assert!(replaced.contains("not for a cluster"), "{replaced}");
    assert_eq!(ingest(&nodes, 2, "t", APPEND, 1), Ok(1_000));
    nodes
        .sql(0, "CREATE TABLE u (k BIGINT, v VARCHAR, w INTEGER DEFAULT 7) SHARD BY (k) SHARDS 5")
        .done();
    assert_eq!(ingest(&nodes, 1, "U", APPEND, 3), Ok(3_000));
    assert_eq!(nodes.query(2, "SELECT count(*), sum(k), sum(w) FROM u"), ["3000,4498500,21000"]);
    assert_eq!(nodes.query(0, "SELECT count(*) FROM t"), ["61000"]);
    crate::aggregator::wait_for_none(&nodes, "ingest");
}
