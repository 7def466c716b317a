//! DELETE, UPDATE, MERGE and TRUNCATE, and keys that must not be there: on all leaves or on none, whoever ends.

use std::process::Stdio;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::time::{Duration, Instant};

use crate::nodes::{Nodes, Run};
use crate::random::{Random, seed};

/// Runs a statement in a store that is no cluster.
fn alone(nodes: &Nodes, text: &str) -> Run {
    nodes.run(&["sql", "--store", "alone", "--output", "csv", "-c", text])
}

/// What a statement answers at all nodes.
fn answer(nodes: &Nodes, text: &str) -> Vec<String> {
    let first = nodes.query(0, text);
    for node in 1..nodes.count() {
        assert_eq!(nodes.query(node, text), first, "{text}, node {node}");
    }
    first
}

const VALUES: &str = "(1, 'a', 10), (2, 'b', 20), (3, NULL, 30), (4, 'd', 40), (5, 'e', 50), (6, 'f', 60), (7, 'a', 70), (8, 'b', 80)";

#[test]
fn rows_are_changed_as_in_one_store() {
    let nodes = Nodes::start(3);
    nodes.write("seed.csv", "0,z,0\n");
    let columns = "k BIGINT, v VARCHAR, n BIGINT";
    let seed =
        ["load", "seed.csv", "--into", "alone", "--table", "seed", "--no-header", "--columns"];
    nodes.run(&[&seed[..], &[columns]].concat()).done();
    for (table, kind, tail, key) in [
        ("t", "TABLE", "SHARD BY (k) SHARDS 8", ""),
        ("u", "TABLE", "", ""),
        ("w", "TABLE", "", ", PRIMARY KEY (k)"),
        ("r", "REFERENCE TABLE", "", ""),
        ("q", "REFERENCE TABLE", "", ", PRIMARY KEY (k)"),
    ] {
        nodes.sql(0, &format!("CREATE {kind} {table} ({columns}{key}) {tail}")).done();
        alone(&nodes, &format!("CREATE TABLE {table} ({columns}{key})")).done();
        let insert = format!("INSERT INTO {table} VALUES {VALUES}");
        nodes.sql(1, &insert).done();
        alone(&nodes, &insert).done();
        let all = format!("SELECT k, v, n FROM {table} ORDER BY k, v, n");
        for (number, text) in [
            "DELETE FROM # WHERE k = 2",
            "DELETE FROM # WHERE v = 'a' AND n > 50",
            "UPDATE # SET n = n + 1, v = upper(v) WHERE k > 3",
            // Rows go to other shards.
            "UPDATE # SET k = k + 100 WHERE n > 30",
            "DELETE FROM # WHERE k IN (SELECT max(k) FROM #)",
            "UPDATE # SET v = (SELECT count(*) FROM #) WHERE v IS NULL",
            "MERGE INTO # USING (SELECT column1 AS k, column2 AS v FROM (VALUES (1, 'one'), (104, 'gone'), (500, 'new'))) s ON #.k = s.k \
             WHEN MATCHED AND s.v = 'gone' THEN DELETE WHEN MATCHED THEN UPDATE SET v = s.v \
             WHEN NOT MATCHED THEN INSERT (k, v, n) VALUES (s.k, s.v, 7)",
            "DELETE FROM # WHERE k = 12345",
            "UPDATE # SET n = 0 WHERE k = 12345",
            "UPDATE # SET n = n * 2",
            "DELETE FROM #",
            "INSERT INTO # VALUES (1, 'again', 1)",
            "TRUNCATE TABLE #",
            "INSERT INTO # VALUES (2, 'after', 2)",
        ]
        .into_iter()
        .enumerate()
        {
            let text = text.replace('#', table);
            let told = nodes.sql(number % 3, &text).done();
            assert_eq!(told.out, alone(&nodes, &text).done().out, "{text}");
            let expected = alone(&nodes, &all).done().out;
            let expected: Vec<_> = expected.lines().skip(1).map(str::to_owned).collect();
            assert_eq!(answer(&nodes, &all), expected, "{text}");
        }
    }
    let random = nodes.sql(0, "UPDATE r SET n = CAST(random() * 10 AS BIGINT)");
    assert!(random.status != Some(0) && random.err.contains("random"), "{random:?}");
    let rows = "SELECT k, v, n FROM t";
    nodes.sql(0, "UPDATE t SET n = 1 / (k - 2)").err.contains("zero");
    assert_eq!(answer(&nodes, rows), ["2,after,2"], "a statement that fails changes nothing");
    // Nothing is held, and shards move.
    nodes.run(&["cluster", "rebalance", &nodes.address(0)]).done();
}

#[test]
fn a_key_that_is_there_fails_the_statement_and_the_load_and_nothing_is_added() {
    let nodes = Nodes::start(3);
    let columns = "k BIGINT, v VARCHAR, PRIMARY KEY (k)";
    nodes.sql(0, &format!("CREATE TABLE t ({columns})")).done();
    nodes.write("a.csv", (0..1_000).map(|k| format!("{k},a\n")).collect::<String>());
    nodes.write("b.csv", (999..2_000).map(|k| format!("{k},b\n")).collect::<String>());
    nodes.write("c.csv", (1_000..2_000).map(|k| format!("{k},c\n")).collect::<String>());
    let load = |node, file| nodes.load(node, "t", &["--no-header", "--columns", columns, file]);
    let seen = || answer(&nodes, "SELECT v, count(*), min(k), max(k) FROM t GROUP BY v ORDER BY v");
    load(0, "a.csv").done();
    let failed = load(1, "b.csv");
    assert!(failed.status == Some(1) && failed.err.contains("999"), "{failed:?}");
    assert_eq!(seen(), ["a,1000,0,999"]);
    load(2, "c.csv").done();
    assert!(load(1, "c.csv").done().err.contains("nothing was loaded"), "the same load again");
    for (text, said) in [
        ("INSERT INTO t VALUES (5000, 'x'), (7, 'x')", "7"),
        ("INSERT INTO t VALUES (5000, 'x'), (5000, 'y')", "5000"),
        ("UPDATE t SET k = k + 1 WHERE k = 10", "11"),
        ("UPDATE t SET k = 77 WHERE k IN (3, 4)", "77"),
    ] {
        let failed = nodes.sql(1, text);
        assert!(failed.status != Some(0) && failed.err.contains(said), "{text}: {failed:?}");
        assert_eq!(seen(), ["a,1000,0,999", "c,1000,1000,1999"], "{text}");
    }
    // Keys that go make room in the same version.
    nodes.sql(2, "UPDATE t SET k = k + 1").done();
    assert_eq!(seen(), ["a,1000,1,1000", "c,1000,1001,2000"]);
    nodes.sql(0, "DELETE FROM t WHERE k = 7").done();
    nodes.sql(0, "INSERT INTO t VALUES (7, 'back')").done();
    assert_eq!(answer(&nodes, "SELECT v FROM t WHERE k = 7"), ["back"]);
    // Of those that add one key at once, one does.
    let done = AtomicU64::new(0);
    std::thread::scope(|scope| {
        for node in 0..3 {
            let (nodes, done) = (&nodes, &done);
            scope.spawn(move || {
                for key in 10_000..10_008 {
                    let told = nodes.sql(node, &format!("INSERT INTO t VALUES ({key}, 'n{node}')"));
                    match told.status {
                        Some(0) => drop(done.fetch_add(1, Ordering::Relaxed)),
                        _ => assert!(told.err.contains(&key.to_string()), "{told:?}"),
                    }
                }
            });
        }
    });
    assert_eq!(done.into_inner(), 8);
    assert_eq!(
        answer(&nodes, "SELECT count(*), count(DISTINCT k) FROM t WHERE k >= 10000"),
        ["8,8"]
    );
    let refused = nodes.load(0, "t", &["--no-header", "--on-conflict", "reject", "a.csv"]);
    assert!(refused.err.contains("reject"), "{refused:?}");
}

#[test]
fn a_load_that_may_fail_for_its_keys_is_there_once_whoever_ends_while_its_table_is_held() {
    let mut nodes = Nodes::start(3);
    let columns = "k BIGINT, v VARCHAR, PRIMARY KEY (k)";
    nodes.sql(0, &format!("CREATE TABLE t ({columns})")).done();
    for (number, (point, ends)) in [
        ("leaf::fits", 2),
        ("leaf::published", 2),
        ("commit::before", 1),
        ("commit::held", 1),
        ("leaf::fits", 1),
        ("commit::after", 1),
    ]
    .into_iter()
    .enumerate()
    {
        let at = format!("{point} at node {ends}");
        let keys = number * 1_000..number * 1_000 + 1_000;
        nodes.write("t.csv", keys.map(|k| format!("{k},{number}\n")).collect::<String>());
        nodes.kill(ends);
        nodes.serve(ends, Some(&format!("cluster::{point}")));
        let flags = ["t.csv", "--no-header", "--columns", columns, "--patience", "60"];
        let mut client = nodes.load_command(1, "t", &flags);
        let mut client = client.stdout(Stdio::null()).stderr(Stdio::null()).spawn().unwrap();
        assert!(nodes.has_ended(ends, Duration::from_secs(60)), "{at} was not passed");
        nodes.serve(ends, None);
        assert!(client.wait().unwrap().success(), "{at}");
        let rows = (number + 1) * 1_000;
        let found = answer(&nodes, "SELECT count(*), count(DISTINCT k) FROM t");
        assert_eq!(found, [format!("{rows},{rows}")], "{at}");
        let failed = nodes.sql(0, &format!("INSERT INTO t VALUES ({}, 'x')", rows - 1));
        assert!(failed.err.contains(&(rows - 1).to_string()), "{at}: {failed:?}");
    }
}

const ROWS: u64 = 400;

fn counters(count: usize) -> Nodes {
    let nodes = Nodes::start(count);
    nodes.sql(0, "CREATE TABLE t (k BIGINT, n BIGINT) SHARD BY (k) SHARDS 16").done();
    nodes.write("t.csv", (0..ROWS).map(|k| format!("{k},0\n")).collect::<String>());
    nodes.load(0, "t", &["t.csv", "--no-header", "--columns", "k BIGINT, n BIGINT"]).done();
    nodes
}

/// The value that all rows have.
fn value(nodes: &Nodes, node: usize, at: &str) -> u64 {
    let rows = "SELECT count(*), count(DISTINCT k), min(n), max(n) FROM t";
    let found = nodes.query(node, rows);
    let of: Vec<u64> = found[0].split(',').map(|text| text.parse().unwrap()).collect();
    assert_eq!((of[0], of[1]), (ROWS, ROWS), "{at}: {found:?}");
    assert_eq!(of[2], of[3], "{at}: a part of a statement is seen: {found:?}");
    of[2]
}

#[test]
fn statements_of_the_same_rows_come_one_after_the_other_and_are_seen_whole() {
    let nodes = counters(3);
    let (ended, looked) = (AtomicBool::new(false), AtomicU64::new(0));
    std::thread::scope(|scope| {
        let writers: Vec<_> = (0..3)
            .map(|node| {
                let nodes = &nodes;
                scope.spawn(move || {
                    for _ in 0..4 {
                        nodes.sql(node, "UPDATE t SET n = n + 1").done();
                    }
                    // Loads wait for them, and they for loads.
                    let insert = format!("INSERT INTO t VALUES ({}, -1)", 1_000 + node);
                    nodes.sql(node, &insert).done();
                    nodes.sql(node, &format!("DELETE FROM t WHERE k = {}", 1_000 + node)).done();
                })
            })
            .collect();
        let (nodes, ended, looked) = (&nodes, &ended, &looked);
        scope.spawn(move || {
            let mut before = 0;
            while !ended.load(Ordering::Relaxed) {
                let found = nodes.query(1, "SELECT min(n), max(n), count(*) FROM t WHERE k < 1000");
                let of: Vec<u64> = found[0].split(',').map(|text| text.parse().unwrap()).collect();
                assert!(of[0] == of[1] && of[2] == ROWS && of[0] >= before, "{found:?}");
                before = of[0];
                looked.fetch_add(1, Ordering::Relaxed);
            }
        });
        let ran: Vec<_> = writers.into_iter().map(|writer| writer.join()).collect();
        ended.store(true, Ordering::Relaxed);
        assert!(ran.into_iter().all(|ran| ran.is_ok()));
    });
    assert!(looked.into_inner() > 3);
    (0..3).for_each(|node| assert_eq!(value(&nodes, node, "all"), 12));
}

#[test]
fn nodes_that_end_at_any_step_of_a_statement_leave_all_of_it_or_nothing() {
    let mut nodes = counters(3);
    let mut now = 0;
    for (point, ends) in [
        ("leaf::finished", 2),
        ("leaf::prepared", 2),
        ("leaf::fits", 2),
        ("leaf::published", 2),
        ("leaf::fits", 1),
        ("commit::before", 1),
        ("commit::held", 1),
        ("commit::after", 1),
        ("client::begun", 1),
        ("client::sent", 1),
        ("client::prepared", 1),
    ] {
        let at = format!("{point} at node {ends}");
        nodes.kill(ends);
        nodes.serve(ends, Some(&format!("cluster::{point}")));
        let command = ["sql", "--store", &nodes.address(1), "-c", "UPDATE t SET n = n + 1"];
        let mut client = nodes.command(&command);
        let mut client = client.stdout(Stdio::null()).stderr(Stdio::null()).spawn().unwrap();
        assert!(nodes.has_ended(ends, Duration::from_secs(60)), "{at} was not passed");
        nodes.serve(ends, None);
        let told = client.wait().unwrap().success();
        let found = value(&nodes, 0, &at);
        assert!(found == now + 1 || found == now && !told, "{at}: {found} after {now}, {told}");
        // The table is free.
        let again = Instant::now();
        nodes.sql(2, "UPDATE t SET n = n + 1").done();
        assert!(again.elapsed() < Duration::from_secs(30), "{at}: {:?}", again.elapsed());
        now = value(&nodes, 1, &at);
        assert_eq!(now, found + 1, "{at}");
    }
}

#[test]
fn a_table_is_free_when_the_node_that_held_it_has_gone_for_good() {
    let mut nodes = counters(3);
    nodes.sql(0, "CREATE REFERENCE TABLE r (k BIGINT, n BIGINT)").done();
    // The rows of t that it has are away with it, and those of r are everywhere but there.
    nodes.kill(2);
    nodes.serve(2, Some("cluster::commit::held"));
    let failed = nodes.sql(2, "UPDATE t SET n = n + 1");
    assert!(failed.status != Some(0), "{failed:?}");
    assert!(nodes.has_ended(2, Duration::from_secs(30)));
    let began = Instant::now();
    let failed = nodes.sql(0, "UPDATE t SET n = n + 1");
    assert!(failed.err.contains("shards of table t"), "the leaf is away: {failed:?}");
    assert!(began.elapsed() < Duration::from_secs(40), "{:?}", began.elapsed());
    let status = nodes.run(&["cluster", "status", "place"]).done();
    assert!(!status.out.contains("held"), "{status:?}");
    nodes.serve(2, None);
    nodes.sql(0, "UPDATE t SET n = n + 1").done();
    assert_eq!(value(&nodes, 2, "back"), 1);
}

/// Kills in one run of the test; more with `COLOAD_KILLS`.
const KILLS: u64 = 12;

#[test]
fn random_kills_leave_all_of_a_statement_or_nothing() {
    let seed = seed();
    println!("COLOAD_SEED={seed}");
    let mut random = Random(seed);
    let kills = std::env::var("COLOAD_KILLS").ok().and_then(|s| s.parse().ok()).unwrap_or(KILLS);
    let mut nodes = counters(3);
    let started = Instant::now();
    nodes.sql(0, "UPDATE t SET n = n + 1").done();
    let longest = started.elapsed().as_micros() as u64 * 5 / 4;
    let mut now = 1;
    for kill in 0..kills {
        let at = format!("kill {kill} of COLOAD_SEED={seed}");
        let asked = random.below(3) as usize;
        let command = ["sql", "--store", &nodes.address(asked), "-c", "UPDATE t SET n = n + 1"];
        let mut client = nodes.command(&command);
        let mut client = client.stdout(Stdio::null()).stderr(Stdio::null()).spawn().unwrap();
        std::thread::sleep(Duration::from_micros(random.below(longest)));
        let mut down = vec![random.below(3) as usize];
        if random.below(3) == 0 {
            down.push(random.below(3) as usize);
        }
        down.sort_unstable();
        down.dedup();
        down.iter().for_each(|node| nodes.kill(*node));
        std::thread::sleep(Duration::from_millis(random.below(300)));
        down.into_iter().for_each(|node| nodes.serve(node, None));
        let told = client.wait().unwrap().success();
        let found = value(&nodes, random.below(3) as usize, &at);
        assert!(found == now + 1 || found == now && !told, "{at}: {found} after {now}, {told}");
        nodes.sql(random.below(3) as usize, "UPDATE t SET n = n + 1").done();
        now = value(&nodes, 0, &at);
        assert_eq!(now, found + 1, "{at}");
    }
}
