//! COPY by PostgreSQL's protocol: as text and in binary, both ways, whole or not at all.

use std::time::Duration;

use bytes::Bytes;
use futures::{SinkExt, StreamExt, pin_mut};
use tokio_postgres::error::SqlState;

use crate::postgres::{Guest, HandMade, start};

#[test]
fn a_copy_is_a_load_and_all_or_nothing() {
    let running = start();
    let guest = Guest::new(&running);
    guest.simple("CREATE TABLE t (i INTEGER NOT NULL, v VARCHAR DEFAULT 'none')");
    let copy = |text: &str, rows: &'static [u8]| {
        guest.runtime.block_on(async {
            let sink = guest.client.copy_in::<_, Bytes>(text).await?;
            pin_mut!(sink);
            for piece in rows.chunks(7) {
                sink.send(Bytes::from_static(piece)).await?;
            }
            sink.finish().await
        })
    };
    assert_eq!(copy("COPY t FROM STDIN", b"1\ta\\tb\n2\t\\N\n\\.\n").unwrap(), 2);
    assert_eq!(
        copy("COPY t (v, i) FROM STDIN WITH (FORMAT csv, HEADER)", b"v,i\n\"x,\ny\",3\n").unwrap(),
        1
    );
    assert_eq!(copy("COPY t (i) FROM STDIN CSV", b"4\n").unwrap(), 1);
    let expected = ["1|a\tb", "2|NULL", "3|x,\ny", "4|none"];
    assert_eq!(guest.simple("SELECT i, v FROM t ORDER BY i"), expected);
    let error = copy("COPY t FROM STDIN", b"5\tx\nsix\ty\n").unwrap_err();
    let text = error.as_db_error().unwrap().message();
    assert!(text.contains("STDIN:2:1") && text.contains("six"), "{text}");
    assert_eq!(
        copy("COPY nowhere FROM STDIN", b"").unwrap_err().code(),
        Some(&SqlState::UNDEFINED_TABLE)
    );
    // That client is out of step after a COPY that did not begin, whatever the server.
    let guest = Guest::new(&running);
    // A client that gives up in the middle.
    guest.runtime.block_on(async {
        let sink = guest.client.copy_in::<_, Bytes>("COPY t FROM STDIN").await.unwrap();
        pin_mut!(sink);
        sink.send(Bytes::from_static(b"7\tseven\n8")).await.unwrap();
    });
    assert_eq!(guest.simple("SELECT count(*) FROM t"), ["4"]);
    let out = guest.runtime.block_on(async {
        let rows =
            guest.client.copy_out("COPY (SELECT i, v FROM t ORDER BY i) TO STDOUT").await.unwrap();
        pin_mut!(rows);
        let mut all = Vec::new();
        while let Some(piece) = rows.next().await {
            all.extend(piece.unwrap());
        }
        String::from_utf8(all).unwrap()
    });
    assert_eq!(out, "1\ta\\tb\n2\t\\N\n3\tx,\\ny\n4\tnone\n");
}

/// Rows of one COPY in binary are what another one takes.
#[test]
fn a_copy_in_binary_goes_both_ways() {
    let running = start();
    let guest = Guest::new(&running);
    let columns = "b BOOLEAN, s SMALLINT, i INTEGER, l BIGINT, n DECIMAL(9, 2), r REAL, x DOUBLE, d DATE, t TIME, ts TIMESTAMP, tz \
                   TIMESTAMPTZ, v VARCHAR, u UUID, y BINARY";
    guest.simple(&format!("CREATE TABLE a ({columns})"));
    guest.simple(&format!("CREATE TABLE c ({columns})"));
    guest.simple(
        "INSERT INTO a VALUES (true, -2, 3, 4, -1234.50, 0.5, -1e300, '0001-01-01', '23:59:59.999999', '2024-02-29 12:00:00.000001', \
         '9999-12-31 00:00:00Z', 'a\tb\\N', 'a0eebc99-9c0b-4ef8-bb6d-6bb9bd380a11', X'00ff5c'), (NULL, NULL, NULL, NULL, NULL, NULL, \
         NULL, NULL, NULL, NULL, NULL, '', NULL, NULL)",
    );
    let messages_of = |query: &str| {
        guest.runtime.block_on(async {
            let rows = guest.client.copy_out(query).await.unwrap();
            pin_mut!(rows);
            let mut all = Vec::new();
            while let Some(piece) = rows.next().await {
                all.push(piece.unwrap());
            }
            all
        })
    };
    // The header is in the message of the first row, or of the end.
    let messages = messages_of("COPY a TO STDOUT (FORMAT binary)");
    assert_eq!(messages.len(), 3);
    let none = messages_of("COPY (SELECT * FROM a WHERE false) TO STDOUT (FORMAT binary)");
    assert_eq!(none.concat().len(), 19 + 2);
    let rows = messages.concat();
    assert!(rows.starts_with(b"PGCOPY\n\xff\r\n\0") && rows.ends_with(&[0xff, 0xff]));
    let put = |pieces: Vec<Vec<u8>>| {
        guest.runtime.block_on(async {
            let sink = guest.client.copy_in::<_, Bytes>("COPY c FROM STDIN WITH BINARY").await?;
            pin_mut!(sink);
            for piece in pieces {
                sink.send(Bytes::from(piece)).await?;
            }
            sink.finish().await
        })
    };
    assert_eq!(put(rows.chunks(7).map(<[u8]>::to_vec).collect()).unwrap(), 2);
    assert_eq!(guest.simple("SELECT * FROM c"), guest.simple("SELECT * FROM a"));
    // Nothing is there of rows that are not whole.
    let error = put(vec![rows[..rows.len() - 9].to_vec()]).unwrap_err();
    assert_eq!(error.code(), Some(&SqlState::INVALID_BINARY_REPRESENTATION));
    let error = put(vec![b"1\ttext\n".to_vec()]).unwrap_err();
    assert!(error.to_string().contains("db error") && error.code().is_some(), "{error}");
    assert_eq!(guest.simple("SELECT count(*) FROM c"), ["2"]);
}

#[test]
fn a_connection_that_breaks_within_a_copy_leaves_nothing() {
    let running = start();
    let guest = Guest::new(&running);
    guest.simple("CREATE TABLE t (i INTEGER)");
    let mut wire = HandMade::connect(running.postgres.unwrap());
    wire.send(b'Q', b"COPY t FROM STDIN\0");
    wire.send(b'd', b"1\n2\n");
    assert_eq!(wire.read().0, b'G');
    drop(wire);
    std::thread::sleep(Duration::from_millis(500));
    assert_eq!(guest.simple("SELECT count(*) FROM t"), ["0"]);
}
