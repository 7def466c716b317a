//! Rows that a node is asked to add: it routes them to the leaves, all or none, whoever is killed.

use std::process::Stdio;
use std::time::{Duration, Instant};

use crate::nodes::{Nodes, Run};
use crate::random::{Random, seed};

const TYPES: &str = "k BIGINT NOT NULL, a SMALLINT, b INTEGER, c DECIMAL(12,2), d DECIMAL(30,4), e REAL, f DOUBLE, g BOOLEAN, h DATE, \
                     i TIME, j TIMESTAMP, l TIMESTAMP WITH TIME ZONE, m VARCHAR(20), n CHAR(5), o UUID, p BINARY";

fn values(k: u32) -> String {
    format!(
        "({k}, {}, -{k}, {k}.25, 12345678901234567890.{:04}, {k}.5, -{k}.125, {}, DATE '2024-02-28', TIME '23:59:59.999999', \
         TIMESTAMP '1969-12-31 23:59:59.999999', TIMESTAMP WITH TIME ZONE '2024-02-29 12:00:00+02:00', 'größe {k}', 'x', \
         '00000000-0000-0000-0000-{k:012}', X'00ff{:02x}')",
        k % 100,
        k % 10_000,
        k.is_multiple_of(2),
        k % 256,
    )
}

/// Waits until no node has anything of a load that is not published, and no mark is left.
pub fn wait_for_none(nodes: &Nodes, at: &str) {
    let until = Instant::now() + Duration::from_secs(30);
    for node in 0..nodes.count() {
        let unfinished = || {
            let listed = nodes.run(&["loads", "--server", &nodes.address(node)]).out;
            listed.contains("arriving") || listed.contains("waiting") || listed.contains("complete")
        };
        while unfinished() {
            assert!(Instant::now() < until, "{at}: node {node} keeps a load");
            std::thread::sleep(Duration::from_millis(100));
        }
    }
    while std::fs::read_dir(nodes.path("place/prepared")).unwrap().count() > 0 {
        assert!(Instant::now() < until, "{at}: marks are left");
        std::thread::sleep(Duration::from_millis(100));
    }
}

/// What all nodes answer, which must be the same.
fn answer(nodes: &Nodes, query: &str) -> Vec<String> {
    let first = nodes.query(0, query);
    (1..nodes.count()).for_each(|node| assert_eq!(nodes.query(node, query), first, "{query}"));
    first
}

#[test]
fn insert_and_create_as_at_any_node_add_the_rows_that_a_store_would() {
    let nodes = Nodes::start(3);
    let table = format!("CREATE TABLE t ({TYPES})");
    nodes.sql(0, &format!("{table} SHARD BY (k) SHARDS 9")).done();
    let rows: Vec<String> = (0..300).map(values).collect();
    let insert = format!("INSERT INTO t VALUES {}", rows.join(", "));
    let told = nodes.sql(1, &insert).done();
    assert!(told.out.contains("300"), "{told:?}");
    let part = "INSERT INTO t (m, k) VALUES ('', 1000), (NULL, 1001)";
    nodes.sql(2, part).done();
    nodes.write("a.csv", "1\n");
    let other = [
        "load",
        "a.csv",
        "--no-header",
        "--columns",
        "x BIGINT",
        "--into",
        "store",
        "--table",
        "x",
    ];
    nodes.run(&other).done();
    for text in [&table, &insert, part] {
        nodes.run(&["sql", "--store", "store", "-c", text]).done();
    }
    let expected = |query: &str| {
        let run = nodes.run(&["sql", "--store", "store", "--output", "csv", "-c", query]).done();
        run.out.lines().skip(1).map(str::to_owned).collect::<Vec<_>>()
    };
    let all = "SELECT * FROM t ORDER BY k";
    assert_eq!(answer(&nodes, all), expected(all));
    // Rows are on all leaves, and none is anywhere else than its shard says.
    let plan = nodes.sql(0, "EXPLAIN SELECT count(*) FROM t").done().out;
    assert!(plan.contains("leaves=3"), "{plan}");
    assert_eq!(answer(&nodes, "SELECT b FROM t WHERE k = 77"), ["-77"]);
    let made =
        nodes.sql(2, "CREATE TABLE u AS SELECT k, m, c * 2 AS c2 FROM t WHERE k < 200").done();
    assert!(made.out.contains("200"), "{made:?}");
    assert_eq!(
        answer(&nodes, "SELECT count(*), sum(k), sum(c2), max(m) FROM u"),
        expected("SELECT count(*), sum(k), sum(c * 2), max(m) FROM t WHERE k < 200")
    );
    nodes.sql(0, "INSERT INTO u SELECT k + 1000, m, c2 FROM u").done();
    assert_eq!(answer(&nodes, "SELECT count(*), count(DISTINCT k) FROM u"), ["400,400"]);
    let again = nodes.sql(1, "CREATE TABLE u AS SELECT 1 AS x");
    assert!(again.status != Some(0) && again.err.contains("exists already"), "{again:?}");
    nodes.sql(1, "CREATE TABLE IF NOT EXISTS u AS SELECT 1 AS x").done();
    wait_for_none(&nodes, "the end");
}

#[test]
fn many_rows_go_to_the_leaves_while_they_are_made() {
    let nodes = Nodes::start(3);
    nodes.write(
        "a.csv",
        (0..200_000).map(|k| format!("{k},some text of row {k}\n")).collect::<String>(),
    );
    nodes.sql(0, "CREATE TABLE t (k BIGINT, v VARCHAR) SHARD BY (k) SHARDS 12").done();
    nodes.load(0, "t", &["a.csv", "--no-header", "--columns", "k BIGINT, v VARCHAR"]).done();
    nodes.sql(1, "CREATE TABLE u AS SELECT k, v, k % 7 AS g FROM t").done();
    nodes.sql(2, "INSERT INTO u SELECT k + 200000, v || '!', g FROM u").done();
    let query = "SELECT count(*), count(DISTINCT k), sum(k), sum(length(v)) FROM";
    let once = &nodes.query(0, "SELECT sum(length(v)) FROM t")[0];
    let length: u64 = once.parse().unwrap();
    let sum = 400_000_u64 * 399_999 / 2;
    let expected = format!("400000,400000,{sum},{}", 2 * length + 200_000);
    assert_eq!(answer(&nodes, &format!("{query} u")), [expected]);
}

#[test]
fn a_statement_that_fails_leaves_nothing() {
    let nodes = Nodes::start(3);
    nodes.sql(0, "CREATE TABLE t (k BIGINT NOT NULL, v VARCHAR(3), CHECK (k >= 0)) SHARD BY (k) SHARDS 9").done();
    nodes.sql(0, "CREATE TABLE many (k BIGINT)").done();
    nodes.write("a.csv", (0..150_000).map(|k| format!("{k}\n")).collect::<String>());
    nodes.load(0, "many", &["a.csv", "--no-header", "--columns", "k BIGINT"]).done();
    for (text, said) in [
        ("INSERT INTO t VALUES (1, 'a'), (-1, 'b')", "k >= 0"),
        ("INSERT INTO t VALUES (1, 'a'), (2, 'much too long')", "v"),
        ("INSERT INTO t SELECT CASE WHEN k = 149999 THEN NULL ELSE k END, 'x' FROM many", "k"),
        ("INSERT INTO t SELECT 10 / (k - 149000), 'x' FROM many WHERE k > 148990", "zero"),
        ("CREATE TABLE u AS SELECT 10 / (k - 149000) AS q FROM many", "zero"),
        ("CREATE OR REPLACE TABLE many AS SELECT 1 AS k", "is not for a cluster"),
    ] {
        let failed = nodes.sql(1, text);
        assert!(failed.status != Some(0) && failed.err.contains(said), "{text}: {failed:?}");
        assert_eq!(answer(&nodes, "SELECT count(*) FROM t"), ["0"], "{text}");
    }
    wait_for_none(&nodes, "failed statements");
    for node in 0..3 {
        let missing = nodes.sql(node, "SELECT * FROM u");
        assert!(missing.status != Some(0), "{missing:?}");
        let tables = nodes.query(node, "SELECT table_name FROM information_schema.tables WHERE table_schema = 'public' ORDER BY 1");
        assert_eq!(tables, ["many", "t"]);
    }
    // The name is free.
    nodes.sql(2, "CREATE TABLE u AS SELECT k FROM many WHERE k < 5").done();
    assert_eq!(answer(&nodes, "SELECT count(*) FROM u"), ["5"]);
}

#[test]
fn rows_of_a_primary_key_give_way_as_the_insert_says() {
    let nodes = Nodes::start(3);
    nodes.sql(0, "CREATE TABLE t (k BIGINT, v VARCHAR, PRIMARY KEY (k))").done();
    nodes.sql(0, "INSERT INTO t VALUES (1, 'a'), (2, 'a') ON CONFLICT DO NOTHING").done();
    nodes.sql(1, "INSERT OR IGNORE INTO t VALUES (2, 'b'), (3, 'b')").done();
    nodes
        .sql(
            2,
            "INSERT INTO t VALUES (3, 'c'), (4, 'c') ON CONFLICT (k) DO UPDATE SET v = excluded.v",
        )
        .done();
    assert_eq!(answer(&nodes, "SELECT k, v FROM t ORDER BY k"), ["1,a", "2,a", "3,c", "4,c"]);
}

#[test]
fn a_reference_table_is_whole_on_each_leaf() {
    let mut nodes = Nodes::start(3);
    nodes.sql(0, "CREATE REFERENCE TABLE r (g BIGINT, name VARCHAR, PRIMARY KEY (g))").done();
    nodes.sql(1, "CREATE TABLE t (k BIGINT, g BIGINT) SHARD BY (k) SHARDS 9").done();
    nodes.write("r.csv", (0..100).map(|g| format!("{g},group {}\n", g % 10)).collect::<String>());
    nodes.write("t.csv", (0..5_000).map(|k| format!("{k},{}\n", k % 100)).collect::<String>());
    let load = |node, table: &str, columns: &str, more: &[&str]| {
        let file = format!("{table}.csv");
        let flags = [&file, "--no-header", "--columns", columns, "--on-conflict", "ignore"];
        let flags = if more.is_empty() { &flags[..] } else { more };
        nodes.load(node, table, flags).done()
    };
    let told = load(1, "r", "g BIGINT, name VARCHAR, PRIMARY KEY (g)", &[]);
    assert!(told.out.contains("loaded 100 rows"), "{told:?}");
    load(2, "t", "", &["t.csv", "--no-header", "--columns", "k BIGINT, g BIGINT"]);
    nodes.sql(2, "INSERT INTO r VALUES (7, 'seven'), (100, 'group 0') ON CONFLICT (g) DO UPDATE SET name = excluded.name").done();
    assert_eq!(
        answer(&nodes, "SELECT count(*), count(DISTINCT g), sum(g) FROM r"),
        ["101,101,5050"]
    );
    assert_eq!(answer(&nodes, "SELECT name FROM r WHERE g = 7"), ["seven"]);
    let join = "SELECT r.name, count(*), sum(t.k) FROM t JOIN r ON t.g = r.g GROUP BY r.name ORDER BY r.name LIMIT 2";
    assert_eq!(answer(&nodes, join), ["group 0,500,1247500", "group 1,500,1248000"]);
    let status = nodes.run(&["cluster", "status", "place"]).done().out;
    assert!(status.contains("everywhere"), "{status}");
    // Each node has it: nobody else is asked.
    (0..2).for_each(|node| nodes.kill(node));
    assert_eq!(nodes.query(2, "SELECT count(*), max(name) FROM r"), ["101,seven"]);
    (0..2).for_each(|node| nodes.serve(node, None));
    // All leaves have a load, or none: one that was away has it when it is back.
    nodes.kill(1);
    nodes.serve(1, Some("cluster::leaf::published"));
    nodes.sql(0, "INSERT INTO r VALUES (101, 'later') ON CONFLICT DO NOTHING").done();
    assert!(nodes.has_ended(1, Duration::from_secs(30)));
    nodes.serve(1, None);
    assert_eq!(answer(&nodes, "SELECT g FROM r WHERE name = 'later'"), ["101"]);
    nodes.sql(0, "DROP TABLE r").done();
}

const LOAD: [&str; 6] = [
    "--no-header",
    "--columns",
    "load BIGINT, k BIGINT, v VARCHAR",
    "--chunk-size",
    "5000",
    "--placement",
];
const ROWS: u64 = 3_000;

fn write(nodes: &Nodes, load: u64) -> String {
    let name = format!("{load}.csv");
    let rows = (0..ROWS).map(|k| format!("{load},{k},value {}\n", k % 97));
    nodes.write(&name, rows.collect::<String>());
    name
}

/// Loads that all nodes see, each whole.
fn seen(nodes: &Nodes, at: &str) -> Vec<u64> {
    let query =
        "SELECT load, count(*), count(DISTINCT k), sum(k) FROM t GROUP BY load ORDER BY load";
    let whole = format!("{ROWS},{ROWS},{}", ROWS * (ROWS - 1) / 2);
    let load = |line: &String| {
        let (load, rest) = line.split_once(',').unwrap();
        assert_eq!(rest, whole, "{at}: part of a load, or a row twice");
        load.parse().unwrap()
    };
    answer(nodes, query).iter().map(load).collect()
}

#[test]
fn a_thin_client_leaves_parsing_and_routing_to_the_node() {
    let nodes = Nodes::start(3);
    for (number, by) in ["SHARD BY (k) SHARDS 8", ""].into_iter().enumerate() {
        nodes.sql(0, &format!("CREATE TABLE t (load BIGINT, k BIGINT, v VARCHAR) {by}")).done();
        let (first, second) = (write(&nodes, 0), write(&nodes, 1));
        for (placement, file) in [("pipe", &first), ("seq", &second)] {
            let flags = [&LOAD[..], &[placement, file]].concat();
            let load = nodes.load(number, "t", &flags).done();
            assert!(load.out.contains("3,000 rows"), "{load:?}");
            // The same load is a no-op at any node.
            let again = nodes.load(2, "t", &flags).done();
            assert!(again.err.contains("nothing was loaded"), "{again:?}");
        }
        assert_eq!(seen(&nodes, by), [0, 1]);
        // Rejects come back to the client.
        nodes.write("bad.csv", "2,1,a\n2,x,b\n2,2,c\n");
        let flags = [&LOAD[..], &["aggregator", "bad.csv"]].concat();
        let failed = nodes.load(1, "t", &flags);
        assert!(failed.status == Some(1) && failed.err.contains("bad.csv:2"), "{failed:?}");
        let more = ["--max-rejects", "1", "--rejects", "rejects.csv"];
        nodes.load(1, "t", &[&flags[..], &more].concat()).done();
        let rejects = std::fs::read_to_string(nodes.path("rejects.csv")).unwrap();
        assert!(rejects.contains("2,x,b"), "{rejects}");
        assert_eq!(answer(&nodes, "SELECT count(*) FROM t WHERE load = 2"), ["2"]);
        nodes.sql(0, "DROP TABLE t").done();
    }
    wait_for_none(&nodes, "the end");
}

#[test]
fn a_node_that_ends_at_any_step_of_a_statement_leaves_all_or_nothing() {
    let mut nodes = Nodes::start(3);
    nodes.sql(0, "CREATE TABLE s (load BIGINT, k BIGINT, v VARCHAR)").done();
    nodes.sql(0, "CREATE TABLE t (load BIGINT, k BIGINT, v VARCHAR) SHARD BY (k) SHARDS 9").done();
    let file = write(&nodes, 0);
    nodes.load(0, "s", &[&LOAD[..], &["adaptive", &file]].concat()).done();
    let points =
        ["client::begun", "client::sent", "client::prepared", "commit::before", "commit::after"];
    let mut expected = Vec::new();
    for (number, point) in (0_u64..).zip(points) {
        let point = format!("cluster::{point}");
        for (text, made) in [
            (format!("INSERT INTO t SELECT {number}, k, v FROM s"), None),
            (
                format!("CREATE TABLE made{number} AS SELECT {number} AS load, k, v FROM s"),
                Some(number),
            ),
        ] {
            nodes.kill(1);
            nodes.serve(1, Some(&point));
            let failed = nodes.sql(1, &text);
            assert!(failed.status != Some(0), "{point} was not passed: {failed:?}");
            assert!(nodes.has_ended(1, Duration::from_secs(30)), "{point}");
            let is_committed = point.ends_with("after");
            // Others give it up while the node is away.
            nodes.serve(1, None);
            if is_committed && made.is_none() {
                expected.push(number);
            }
            assert_eq!(seen(&nodes, &point), expected, "{point}");
            wait_for_none(&nodes, &point);
            assert_eq!(seen(&nodes, &point), expected, "{point}");
            if let Some(number) = made {
                let table = format!("SELECT count(*) FROM made{number}");
                let there = nodes.sql(2, &table).status == Some(0);
                assert_eq!(there, is_committed, "{point}");
                if is_committed {
                    assert_eq!(answer(&nodes, &table), [ROWS.to_string()]);
                }
            }
        }
    }
    // What was given up can be said again.
    nodes.sql(1, "CREATE TABLE made0 AS SELECT k FROM s").done();
    assert_eq!(answer(&nodes, "SELECT count(*) FROM made0"), [ROWS.to_string()]);
}

#[test]
fn a_node_that_is_gone_for_good_has_its_statement_given_up_by_the_leaves() {
    let mut nodes = Nodes::start(3);
    nodes.sql(0, "CREATE TABLE t (k BIGINT, v VARCHAR) SHARD BY (k) SHARDS 9").done();
    nodes.kill(1);
    nodes.serve(1, Some("cluster::commit::before"));
    let rows: Vec<String> = (0..200).map(|k| format!("({k}, 'v')")).collect();
    let failed = nodes.sql(
        1,
        &format!("CREATE TABLE u AS SELECT * FROM (VALUES {}) AS r (k, v)", rows.join(", ")),
    );
    assert!(failed.status != Some(0) && nodes.has_ended(1, Duration::from_secs(30)), "{failed:?}");
    // The node does not come back; its name of a table is free again.
    let until = Instant::now() + Duration::from_secs(40);
    loop {
        let made = nodes.sql(0, "CREATE TABLE u (k BIGINT)");
        if made.status == Some(0) {
            break;
        }
        assert!(made.err.contains("being made") && Instant::now() < until, "{made:?}");
        std::thread::sleep(Duration::from_millis(200));
    }
    nodes.serve(1, None);
    assert_eq!(answer(&nodes, "SELECT count(*) FROM u"), ["0"]);
    wait_for_none(&nodes, "gone");
}

/// Kills in one run of the test; more with `COLOAD_KILLS`.
const KILLS: u64 = 15;

#[test]
fn random_kills_leave_statements_and_thin_loads_whole_or_absent() {
    let seed = seed();
    println!("COLOAD_SEED={seed}");
    let mut random = Random(seed);
    let kills = std::env::var("COLOAD_KILLS").ok().and_then(|s| s.parse().ok()).unwrap_or(KILLS);
    let mut nodes = Nodes::start(3);
    nodes.sql(0, "CREATE TABLE s (load BIGINT, k BIGINT, v VARCHAR)").done();
    nodes.sql(0, "CREATE TABLE t (load BIGINT, k BIGINT, v VARCHAR) SHARD BY (k) SHARDS 9").done();
    let file = write(&nodes, 0);
    nodes.load(0, "s", &[&LOAD[..], &["adaptive", &file]].concat()).done();
    let started = Instant::now();
    nodes.sql(0, "INSERT INTO t SELECT 0, k, v FROM s").done();
    let longest = started.elapsed().as_micros() as u64 * 5 / 4;
    let mut expected = vec![0];
    for load in 1..=kills {
        let (asked, is_thin) = (random.below(3) as usize, random.below(2) == 0);
        let file = write(&nodes, load);
        let placement = if random.below(2) == 0 { "pipe" } else { "seq" };
        let flags = [&LOAD[..], &[placement, &file, "--patience", "30"]].concat();
        let mut command = match is_thin {
            true => nodes.load_command(asked, "t", &flags),
            false => {
                let text = format!("INSERT INTO t SELECT {load}, k, v FROM s");
                nodes.command(&["sql", "--store", &nodes.address(asked), "-c", &text])
            }
        };
        let child = command.stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().unwrap();
        std::thread::sleep(Duration::from_micros(random.below(longest)));
        let mut down = vec![random.below(3) as usize, asked];
        down.truncate(1 + random.below(2) as usize);
        down.dedup();
        down.iter().for_each(|node| nodes.kill(*node));
        std::thread::sleep(Duration::from_millis(random.below(300)));
        down.into_iter().for_each(|node| nodes.serve(node, None));
        let told = Run::of(child.wait_with_output().unwrap());
        let at = format!("kill {load} of COLOAD_SEED={seed}: {told:?}");
        let found = seen(&nodes, &at);
        let without: Vec<u64> = found.iter().copied().filter(|of| *of != load).collect();
        assert_eq!(without, expected, "{at}: another load is gone, or there");
        assert!(told.status != Some(0) || found.contains(&load), "{at}: it succeeded and is gone");
        if is_thin && !found.contains(&load) {
            // The same load goes on, or begins anew.
            nodes.load(random.below(3) as usize, "t", &flags).done();
        }
        expected = seen(&nodes, &at);
        assert!(!is_thin || expected.contains(&load), "{at}");
    }
    wait_for_none(&nodes, &format!("COLOAD_SEED={seed}"));
    assert_eq!(seen(&nodes, "the end"), expected);
}
