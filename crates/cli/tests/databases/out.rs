//! Rows out of databases: into a store, and from one database into another.

use std::process::Command;

use crate::servers::{Engine, Server};

#[test]
fn rows_of_databases_are_loaded_as_they_are() {
    let postgres = &Server::start(Engine::Postgres);
    let folder = &tempfile::tempdir().unwrap();
    let store = &folder.path().join("store").display().to_string();
    every_type_comes_out_of_postgresql(postgres, store);
    one_snapshot_is_read_over_all_connections(postgres, store);
    what_no_column_holds_is_a_reject_with_its_value(postgres, store);
    queries_views_and_partitions_are_read(postgres, store);
    what_is_asked_for_wrongly_is_refused(postgres, store);
    let mariadb = &Server::start(Engine::Mariadb);
    every_type_comes_out_of_mariadb(mariadb, store);
    a_table_moves_between_databases(mariadb, postgres);
}

/// Runs the command; what it said, and whether it succeeded.
fn coload(arguments: &[&str]) -> (bool, String) {
    let mut command = Command::new(env!("CARGO_BIN_EXE_coload"));
    let output = command.args(arguments).output().unwrap();
    let text = String::from_utf8_lossy(&output.stdout).into_owned();
    (output.status.success(), text + &String::from_utf8_lossy(&output.stderr))
}

fn succeed(arguments: &[&str]) -> String {
    let (succeeded, text) = coload(arguments);
    assert!(succeeded, "{arguments:?}: {text}");
    text
}

fn fail(arguments: &[&str]) -> String {
    let (succeeded, text) = coload(arguments);
    assert!(!succeeded, "{arguments:?}: {text}");
    text
}

/// What a store answers, as lines of cells with commas between them, without names.
fn ask(store: &str, sql: &str) -> String {
    let mut command = Command::new(env!("CARGO_BIN_EXE_coload"));
    let output =
        command.args(["sql", "--store", store, "-c", sql, "--output", "csv"]).output().unwrap();
    assert!(output.status.success(), "{sql}: {}", String::from_utf8_lossy(&output.stderr));
    let text = String::from_utf8_lossy(&output.stdout).into_owned();
    text.split_once('\n').map_or("", |(_, rows)| rows).trim_end().to_owned()
}

fn every_type_comes_out_of_postgresql(server: &Server, store: &str) {
    server.sql(
        "CREATE TYPE mood AS ENUM ('sad', 'ok'); CREATE DOMAIN digits AS numeric(6,2);
         CREATE TABLE \"Every type\" (b boolean, s smallint, i int, l bigint, d numeric(15,2), w numeric(38,10), n numeric, r real,
           f double precision, da date, ti time, ts timestamp, tz timestamptz, c char(3), v varchar(5), t text, x bytea, u uuid,
           j jsonb, a int[], iv interval, m mood, dd digits, \"Sel\"\"ect\" text NOT NULL);
         INSERT INTO \"Every type\" VALUES
         (true, -32768, -2147483648, -9223372036854775808, -9999999999999.99, -9999999999999999999999999999.9999999999, 1e50, 'NaN',
          '-Infinity', '0001-01-01', '00:00', '0001-01-01', '0001-01-01 00:00+00', 'a', 'héllo', E'tab\\tand \\\\N', '\\x00ff10',
          '00000000-0000-0000-0000-000000000000', '{\"a\": [1, null]}', '{1,NULL}', '1 day 2 hours', 'sad', 1.5, ''),
         (false, 32767, 2147483647, 9223372036854775807, 9999999999999.99, 9999999999999999999999999999.9999999999, 0.00, 1e-45, 5e-324,
          '9999-12-31', '23:59:59.999999', '9999-12-31 23:59:59.999999', '9999-12-31 23:59:59.999999+00', '', '', '', '', 
          'ffffffff-ffff-ffff-ffff-ffffffffffff', '0', '{}', '-1 mon', 'ok', -1.25, '😀'),
         (NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL,
          NULL, NULL, NULL, 'none')",
    );
    let url = table_url(server, "%22Every%20type%22");
    // Into another table of the same server: what comes out is what goes in.
    succeed(&["load", &url, "--into", &server.url(), "--table", "copy"]);
    let cast = "(SELECT b, s, i, l, d, w, n::text, r, f, da, ti, ts, tz, c::text, v, t, x, u, j::text, a::text, iv::text, m::text, \
                dd, \"Sel\"\"ect\" FROM \"Every type\")";
    let copy = "(SELECT b, s, i, l, d, w, n::text, r, f, da, ti, ts, tz, rtrim(c), v, t, x, u, j::text, a::text, iv::text, m::text, \
                dd, \"Sel\"\"ect\" FROM copy)";
    let differ = format!(
        "SELECT count(*) FROM (({cast} EXCEPT ALL {copy}) UNION ALL ({copy} EXCEPT ALL {cast})) AS q"
    );
    assert_eq!(server.sql(&differ), "0");
    assert_eq!(
        server.sql(
            "SELECT string_agg(format_type(atttypid, atttypmod), ',' ORDER BY attnum) FROM pg_attribute \
             WHERE attrelid = 'copy'::regclass AND attnum > 0"
        ),
        "boolean,smallint,integer,bigint,numeric(15,2),numeric(38,10),text,real,double precision,date,time without time zone,\
         timestamp without time zone,timestamp with time zone,character varying(3),character varying(5),text,bytea,uuid,\
         text,integer[],text,text,numeric(6,2),text"
    );
    // And into a store.
    succeed(&["load", &url, "--into", store, "--table", "every"]);
    assert_eq!(
        ask(store, "SELECT l, d, w, n, da, ts, v, x, u, a, iv, dd FROM every WHERE b"),
        "-9223372036854775808,-9999999999999.99,-9999999999999999999999999999.9999999999,\
         100000000000000000000000000000000000000000000000000,0001-01-01,0001-01-01 00:00:00,héllo,\\x00ff10,\
         00000000-0000-0000-0000-000000000000,\"[1, null]\",1 day 02:00:00,1.50"
    );
    // Only some columns, in another order.
    succeed(&[
        "load",
        &url,
        "--into",
        store,
        "--table",
        "some",
        "--by-name",
        "--columns",
        "u UUID, i BIGINT",
    ]);
    assert_eq!(ask(store, "SELECT i FROM some WHERE u < '1'"), "-2147483648");
    let sniffed = succeed(&["sniff", &url]);
    assert!(sniffed.contains("PostgreSQL") && sniffed.contains("d DECIMAL(15,2)"), "{sniffed}");
}

/// The URL of a table.
fn table_url(server: &Server, table: &str) -> String {
    let url = server.url();
    match url.split_once('?') {
        Some((place, parameters)) => format!("{place}/{table}?{parameters}"),
        None => format!("{url}/{table}"),
    }
}

fn one_snapshot_is_read_over_all_connections(server: &Server, store: &str) {
    server.sql(
        "CREATE TABLE many (id bigint, t text); ALTER TABLE many SET (autovacuum_enabled = off);
         INSERT INTO many SELECT n, repeat('x', 60) || n FROM generate_series(1, 60000) n",
    );
    let url = table_url(server, "public.many");
    std::thread::scope(|scope| {
        // Rows move to other pages meanwhile, and come and go.
        let writer = scope.spawn(|| {
            for _ in 0..12 {
                server.sql(
                    "UPDATE many SET t = t || 'y' WHERE id % 7 = 3; DELETE FROM many WHERE id > 60000; \
                     INSERT INTO many SELECT n, 'new' FROM generate_series(60001, 61000) n",
                );
            }
        });
        for number in 0..3 {
            let table = format!("many{number}");
            let flags = ["--connections", "3", "--threads", "3", "--chunk-size", "64KiB"];
            succeed(&[&["load", &url, "--into", store, "--table", &table], &flags[..]].concat());
            let seen = ask(
                store,
                &format!(
                    "SELECT count(*), count(DISTINCT id), sum(id) - 1800030000, count(DISTINCT length(t) - length(replace(t, 'y', ''))) \
                 FROM {table}"
                ),
            );
            // All of one moment: none of the new rows or all, and no more than two lengths.
            let whole = ["60000,60000,0", "61000,61000,60500500"];
            assert!(whole.iter().any(|start| seen.starts_with(start)), "{seen}");
        }
        writer.join().unwrap();
    });
    server.sql("CREATE TABLE empty (id int NOT NULL)");
    succeed(&["load", &table_url(server, "empty"), "--into", store, "--table", "empty"]);
    assert_eq!(ask(store, "SELECT count(*) FROM empty"), "0");
}

fn what_no_column_holds_is_a_reject_with_its_value(server: &Server, store: &str) {
    server.sql(
        "CREATE TABLE odd (id int, day date, d numeric(6,2), t time);
         INSERT INTO odd VALUES (1, '2020-02-29', 1.25, '10:00'), (2, 'infinity', 0, '10:00'), (3, NULL, 'NaN', '10:00'),
           (4, '0044-03-15 BC', 1, '10:00'), (5, NULL, NULL, '24:00'), (6, '1970-01-01', -3.5, '23:59:59.5')",
    );
    let url = table_url(server, "odd");
    let text = fail(&["load", &url, "--into", store, "--table", "odd"]);
    assert!(text.contains("infinity") && text.contains("day"), "{text}");
    let text = succeed(&["load", &url, "--into", store, "--table", "odd", "--max-rejects", "4"]);
    assert!(text.contains("NaN") && text.contains("24:00:00"), "{text}");
    let rows = ask(store, "SELECT * FROM odd ORDER BY id");
    assert_eq!(rows, "1,2020-02-29,1.25,10:00:00\n6,1970-01-01,-3.50,23:59:59.500");
    // As texts all of them are held.
    let columns = "id INTEGER, day VARCHAR, d VARCHAR, t VARCHAR";
    succeed(&["load", &url, "--into", store, "--table", "odd_texts", "--columns", columns]);
    assert_eq!(
        ask(store, "SELECT day, d FROM odd_texts WHERE id IN (2, 3) ORDER BY id"),
        "infinity,0.00\n,NaN"
    );
    assert_eq!(ask(store, "SELECT day FROM odd_texts WHERE id = 4"), "0044-03-15 BC");
    // A target that refuses rows has them read again, of the same snapshot.
    server.sql("CREATE TABLE checked (id int, day text, d text, t text CHECK (t <> '24:00:00'))");
    let flags = ["--table", "checked", "--max-rejects", "1"];
    let text = succeed(&[&["load", &url, "--into", &server.url()], &flags[..]].concat());
    assert!(text.contains("checked_t_check"), "{text}");
    assert_eq!(server.sql("SELECT count(*) FROM checked"), "5");
    let dry = succeed(&[
        "load",
        &url,
        "--into",
        store,
        "--table",
        "none",
        "--dry-run",
        "--max-rejects",
        "4",
    ]);
    assert!(dry.contains('4'), "{dry}");
}

fn queries_views_and_partitions_are_read(server: &Server, store: &str) {
    server.sql(
        "CREATE TABLE parts (day date, v int) PARTITION BY RANGE (day);
         CREATE TABLE parts_1 PARTITION OF parts FOR VALUES FROM ('2020-01-01') TO ('2021-01-01');
         CREATE TABLE parts_2 (v int, day date); ALTER TABLE parts ATTACH PARTITION parts_2 DEFAULT;
         INSERT INTO parts SELECT date '2020-12-01' + n, n FROM generate_series(0, 999) n;
         CREATE VIEW seen AS SELECT v * 2 AS twice FROM parts;
         CREATE TABLE parent (a int); CREATE TABLE child (b int) INHERITS (parent);
         INSERT INTO parent VALUES (1); INSERT INTO child VALUES (2, 3)",
    );
    for (table, sum) in [("parts", "sum(v)"), ("seen", "sum(twice) / 2")] {
        succeed(&["load", &table_url(server, table), "--into", store, "--table", table]);
        assert_eq!(
            ask(store, &format!("SELECT count(*), CAST({sum} AS BIGINT) FROM {table}")),
            "1000,499500"
        );
    }
    succeed(&["load", &table_url(server, "parent"), "--into", store, "--table", "parent"]);
    assert_eq!(ask(store, "SELECT sum(a) FROM parent"), "3");
    let query = "WITH x AS (SELECT v, day FROM parts WHERE v < 500) SELECT v, v::text || ';' AS \"v\", day FROM x ORDER BY x.v DESC -- all";
    succeed(&[
        "load",
        &server.url(),
        "--query",
        query,
        "--into",
        store,
        "--table",
        "asked",
        "--chunk-size",
        "4KiB",
    ]);
    assert_eq!(ask(store, "SELECT count(*), sum(v), max(v_2) FROM asked"), "500,124750,9;");
    let text = fail(&[
        "load",
        &server.url(),
        "--query",
        "DELETE FROM parts RETURNING v",
        "--into",
        store,
        "--table",
        "gone",
    ]);
    assert!(text.contains("PostgreSQL"), "{text}");
    assert_eq!(server.sql("SELECT count(*) FROM parts"), "1000");
}

fn what_is_asked_for_wrongly_is_refused(server: &Server, store: &str) {
    let text = fail(&["load", &server.url(), "--into", store]);
    assert!(text.contains("--query"), "{text}");
    let text = fail(&["load", &table_url(server, "nothing"), "--into", store]);
    assert!(text.contains("no table nothing"), "{text}");
    let text = fail(&["load", &table_url(server, "odd"), "--query", "SELECT 1", "--into", store]);
    assert!(text.contains("leave one of them out"), "{text}");
    let text =
        fail(&["load", &table_url(server, "odd"), &table_url(server, "many"), "--into", store]);
    assert!(text.contains("loaded alone"), "{text}");
    let text = fail(&["load", &table_url(server, "odd"), "--delimiter", ";", "--into", store]);
    assert!(text.contains("rows of a database") && text.contains("--delimiter"), "{text}");
    let secret = "postgres://eve:secret@127.0.0.1:1/d/t?sslmode=disable";
    let text = fail(&["load", secret, "--into", store]);
    assert!(!text.contains("secret"), "{text}");
}

fn every_type_comes_out_of_mariadb(server: &Server, store: &str) {
    server.sql(
        "SET SESSION sql_mode = ''; SET time_zone = '+00:00';
         CREATE TABLE `every type` (b tinyint(1), s smallint, us smallint unsigned, i int, ui int unsigned, l bigint, ul bigint unsigned,
           me mediumint, d decimal(15,2), w decimal(38,10), big decimal(65,0), r float, f double, da date, ti time(6), ts datetime(6),
           tz timestamp(3) NULL, y year, c char(3), v varchar(5), t longtext, x varbinary(9), e enum('a','b'), j json);
         INSERT INTO `every type` VALUES
         (1, -32768, 65535, -2147483648, 4294967295, -9223372036854775808, 18446744073709551615, -8388608, -9999999999999.99,
          -9999999999999999999999999999.9999999999, repeat('9', 65), 0.5, 1e300, '0001-01-01', '23:59:59.999999',
          '9999-12-31 23:59:59.999999', '2037-01-01 00:00:00.125', 2155, 'abc', 'héllo', 'text', X'00ff', 'b', '[1]'),
         (NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL,
          NULL, NULL, NULL);
         CREATE TABLE odd (id int, b tinyint(1), da date, ti time);
         INSERT INTO odd VALUES (1, 1, '2020-02-29', '10:00:00'), (2, 5, NULL, NULL), (3, NULL, '0000-00-00', NULL),
           (4, NULL, NULL, '-30:00:00'), (5, NULL, '2020-00-00', NULL)",
    );
    succeed(&[
        "load",
        &table_url(server, "%22every%20type%22"),
        "--into",
        store,
        "--table",
        "maria",
    ]);
    assert_eq!(
        ask(store, "SELECT * FROM maria WHERE b"),
        "true,-32768,65535,-2147483648,4294967295,-9223372036854775808,18446744073709551615,-8388608,-9999999999999.99,\
         -9999999999999999999999999999.9999999999,99999999999999999999999999999999999999999999999999999999999999999,0.5,1e300,\
         0001-01-01,23:59:59.999999,9999-12-31 23:59:59.999999,2037-01-01 00:00:00.125+00:00,2155,abc,héllo,text,\\x00ff,b,[1]"
    );
    assert_eq!(
        ask(store, "SELECT count(*) FROM maria WHERE b IS NULL AND ul IS NULL AND j IS NULL"),
        "1"
    );
    let text = succeed(&[
        "load",
        &table_url(server, "odd"),
        "--into",
        store,
        "--table",
        "maria_odd",
        "--max-rejects",
        "4",
    ]);
    for value in ["0000-00-00", "2020-00-00", "\"5\""] {
        assert!(text.contains(value), "{value}: {text}");
    }
    assert_eq!(ask(store, "SELECT * FROM maria_odd"), "1,true,2020-02-29,10:00:00");
    let query = "SELECT id, count(*) AS n FROM odd GROUP BY id";
    succeed(&["load", &server.url(), "--query", query, "--into", store, "--table", "maria_asked"]);
    assert_eq!(ask(store, "SELECT count(*), sum(n) FROM maria_asked"), "5,5");
}

fn a_table_moves_between_databases(mariadb: &Server, postgres: &Server) {
    postgres.sql("CREATE TABLE moved AS SELECT id, t FROM many ORDER BY id LIMIT 30000");
    let sum = "SELECT count(*), sum(id), md5(string_agg(t, ',' ORDER BY id)) FROM";
    let before = postgres.sql(&format!("{sum} moved"));
    let there = ["--into", &mariadb.url(), "--table", "moved"];
    succeed(&[&["load", &table_url(postgres, "moved")], &there[..]].concat());
    assert_eq!(
        mariadb.sql("SELECT count(*), sum(id) FROM moved"),
        before.rsplit_once('|').unwrap().0
    );
    let back = ["--into", &postgres.url(), "--table", "returned", "--memory", "256MiB"];
    succeed(&[&["load", &table_url(mariadb, "moved")], &back[..]].concat());
    assert_eq!(postgres.sql(&format!("{sum} returned")), before);
}
