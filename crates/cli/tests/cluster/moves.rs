//! Shards that move while loads and statements go on, and processes that end at any step of it.

use std::process::Stdio;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::time::{Duration, Instant};

use crate::aggregator::wait_for_none;
use crate::nodes::{Nodes, Run};
use crate::random::{Random, seed};

/// Tables of each kind, and a query of each whose answer does not change.
const TABLES: [(&str, &str); 4] = [
    ("t", "CREATE TABLE t (k BIGINT, v VARCHAR, w BIGINT) SHARD BY (k, v) SHARDS 24"),
    ("u", "CREATE TABLE u (k BIGINT, v VARCHAR, w BIGINT, PRIMARY KEY (k))"),
    ("d", "CREATE TABLE d (k BIGINT, v VARCHAR, w BIGINT)"),
    ("r", "CREATE REFERENCE TABLE r (k BIGINT, v VARCHAR, w BIGINT)"),
];
const ROWS: u64 = 5_000;

fn make(nodes: &Nodes) {
    let rows = (0..ROWS).map(|k| format!("{k},value {},{}\n", k % 40, k * 3));
    nodes.write("a.csv", rows.collect::<String>());
    for (table, create) in TABLES {
        nodes.sql(0, create).done();
        nodes.load(0, table, &flags(table)).done();
    }
}

fn flags(table: &str) -> Vec<&'static str> {
    let columns = match table {
        "u" => "k BIGINT, v VARCHAR, w BIGINT, PRIMARY KEY (k)",
        _ => "k BIGINT, v VARCHAR, w BIGINT",
    };
    let mut flags = vec!["a.csv", "--no-header", "--columns", columns, "--patience", "60"];
    if table == "u" {
        flags.extend(["--on-conflict", "ignore"]);
    }
    flags
}

/// Checks that these nodes see each row once.
fn check(nodes: &Nodes, at: &str, asked: &[usize]) {
    let sum = ROWS * (ROWS - 1) / 2;
    let whole = format!("{ROWS},{ROWS},{sum},{},40", sum * 3);
    for (table, _) in TABLES {
        let query = format!(
            "SELECT count(*), count(DISTINCT k), sum(k), sum(w), count(DISTINCT v) FROM {table}"
        );
        for node in asked {
            assert_eq!(nodes.query(*node, &query), [&*whole], "{at}: table {table} at node {node}");
        }
    }
    for key in [0, 17, 4_999] {
        let query = format!("SELECT w FROM u WHERE k = {key}");
        asked.iter().for_each(|node| {
            assert_eq!(nodes.query(*node, &query), [(key * 3).to_string()], "{at}")
        });
    }
}

fn cluster(nodes: &Nodes, what: &str, asked: usize, node: Option<usize>) -> Run {
    let asked = nodes.address(asked);
    let node = node.map(|node| nodes.address(node));
    let args = ["cluster", what, &asked].into_iter().chain(node.as_deref());
    nodes.run(&args.collect::<Vec<_>>())
}

#[test]
fn a_node_that_comes_takes_its_share_and_one_that_goes_leaves_its_rows() {
    let mut nodes = Nodes::start_some(4, 3);
    make(&nodes);
    let nothing = cluster(&nodes, "rebalance", 1, None).done();
    assert!(!nothing.out.contains("moved"), "{nothing:?}");
    nodes.serve(3, None);
    let added = cluster(&nodes, "add", 1, Some(3)).done();
    assert!(added.out.contains("t: ") && added.out.contains("u: 8 shards moved"), "{added:?}");
    check(&nodes, "added", &[0, 1, 2, 3]);
    // Each of four has a quarter, and rows of no other shards: pruned look-ups find them.
    let status = nodes.run(&["cluster", "status", "place"]).done().out;
    assert_eq!(status.matches("16 coload://").count(), 8, "{status}");
    assert_eq!(status.matches("6 coload://").count(), 8 + 4, "{status}");
    let load = nodes.load(2, "t", &flags("t")).done();
    assert!(load.err.contains("nothing was loaded"), "{load:?}");
    let own = cluster(&nodes, "remove", 0, Some(0));
    assert!(own.err.contains("ask another one"), "{own:?}");
    let removed = cluster(&nodes, "remove", 1, Some(0)).done();
    assert!(removed.out.contains("none of the cluster any more"), "{removed:?}");
    check(&nodes, "removed", &[1, 2, 3]);
    let gone = nodes.sql(0, "SELECT count(*) FROM t");
    assert!(gone.status != Some(0) && gone.err.contains("was removed"), "{gone:?}");
    nodes.kill(0);
    check(&nodes, "removed and gone", &[1, 2, 3]);
    let status = nodes.run(&["cluster", "status", "place"]).done().out;
    assert!(!status.contains(&nodes.address(0)), "{status}");
    // What is new goes to those that are there, and the same load is known.
    nodes.sql(3, "INSERT INTO d VALUES (1, 'x', 3)").done();
    assert_eq!(nodes.query(1, "SELECT count(*) FROM d"), ["5001"]);
    let load = nodes.load(2, "u", &flags("u")).done();
    assert!(load.err.contains("nothing was loaded"), "{load:?}");
    // It may come back as one that is new, also with what it had before its shards went.
    for is_old in [false, true] {
        nodes.kill(0);
        if is_old {
            std::fs::remove_dir_all(nodes.path("store0")).unwrap();
            std::fs::rename(nodes.path("old"), nodes.path("store0")).unwrap();
        }
        nodes.serve(0, None);
        cluster(&nodes, "add", 3, Some(0)).done();
        for table in ["t", "u"] {
            let query = format!("SELECT count(*), count(DISTINCT k) FROM {table}");
            assert_eq!(nodes.query(0, &query), ["5000,5000"], "{table}");
        }
        nodes.kill(0);
        let copy = ["-r", "store0", "old"].map(|path| match path {
            "-r" => std::path::PathBuf::from(path),
            _ => nodes.path(path),
        });
        assert!(std::process::Command::new("cp").args(copy).status().unwrap().success());
        nodes.serve(0, None);
        cluster(&nodes, "remove", 1, Some(0)).done();
    }
    wait_for_none(&nodes, "the end");
}

#[test]
fn loads_and_statements_go_on_while_shards_move() {
    let mut nodes = Nodes::start_some(4, 3);
    nodes.sql(0, "CREATE TABLE t (load BIGINT, k BIGINT, v VARCHAR) SHARD BY (k) SHARDS 48").done();
    let rows = |load: u64| (0..2_000).map(|k| format!("{load},{k},value\n")).collect::<String>();
    (0..40).for_each(|load| drop(nodes.write(&format!("{load}.csv"), rows(load))));
    nodes.serve(3, None);
    let (ended, loaded) = (AtomicBool::new(false), AtomicU64::new(0));
    let nodes = &nodes;
    std::thread::scope(|scope| {
        let loads = scope.spawn(|| {
            let mut load = 0;
            // Some, however fast shards move.
            while load < 4 || !ended.load(Ordering::Acquire) && load < 40 {
                let file = format!("{load}.csv");
                let flags = ["--no-header", "--columns", "load BIGINT, k BIGINT, v VARCHAR", &file];
                nodes.load(load % 3, "t", &flags).done();
                load += 1;
                loaded.store(load as u64, Ordering::Release);
            }
        });
        let reads = scope.spawn(|| {
            let mut answers = 0;
            while !ended.load(Ordering::Acquire) {
                let before = loaded.load(Ordering::Acquire);
                let query =
                    "SELECT load, count(*), count(DISTINCT k) FROM t GROUP BY load ORDER BY load";
                let found = nodes.query(answers % 3, query);
                assert!(found.len() as u64 >= before, "a load that succeeded is gone: {found:?}");
                for line in &found {
                    assert!(
                        line.ends_with(",2000,2000"),
                        "part of a load, or a row twice: {found:?}"
                    );
                }
                answers += 1;
            }
            answers
        });
        std::thread::sleep(Duration::from_millis(300));
        let moved = cluster(nodes, "add", 2, Some(3)).done();
        assert!(moved.out.contains("t: "), "{moved:?}");
        let moved = cluster(nodes, "remove", 2, Some(3)).done();
        assert!(moved.out.contains("t: "), "{moved:?}");
        ended.store(true, Ordering::Release);
        loads.join().unwrap();
        assert!(reads.join().unwrap() > 3);
    });
    let count = loaded.load(Ordering::Acquire);
    assert_eq!(
        nodes.query(0, "SELECT count(*), count(DISTINCT load) FROM t"),
        [format!("{},{count}", count * 2_000)]
    );
}

#[test]
fn a_process_that_ends_at_any_step_of_a_move_loses_and_doubles_nothing() {
    let mut nodes = Nodes::start_some(4, 3);
    make(&nodes);
    nodes.serve(3, None);
    let points = [
        ("client::begun", 1),
        ("client::prepared", 1),
        ("commit::before", 1),
        ("commit::after", 1),
        ("leaf::finished", 3),
        ("leaf::prepared", 3),
        ("leaf::published", 3),
    ];
    for (point, node) in points {
        let point = format!("cluster::{point}");
        nodes.kill(node);
        nodes.serve(node, Some(&point));
        // What fails is said; the next one goes on.
        let _ = cluster(&nodes, "rebalance", 1, None);
        assert!(nodes.has_ended(node, Duration::from_secs(30)), "{point} was not passed");
        nodes.serve(node, None);
        check(&nodes, &point, &[0, 1, 2, 3]);
        nodes.sql(2, "INSERT INTO d VALUES (-1, 'x', 0)").done();
        nodes.sql(2, "DROP TABLE IF EXISTS e").done();
        // All is as it was, but for d, which is made anew.
        nodes.sql(0, "DROP TABLE d").done();
        nodes.sql(0, TABLES[2].1).done();
        nodes.load(0, "d", &flags("d")).done();
    }
    cluster(&nodes, "rebalance", 0, None).done();
    check(&nodes, "all moved", &[0, 1, 2, 3]);
    wait_for_none(&nodes, "the end");
}

/// Kills in one run of the test; more with `COLOAD_KILLS`.
const KILLS: u64 = 12;

#[test]
fn random_kills_while_shards_move_lose_and_double_nothing() {
    let seed = seed();
    println!("COLOAD_SEED={seed}");
    let mut random = Random(seed);
    let kills = std::env::var("COLOAD_KILLS").ok().and_then(|s| s.parse().ok()).unwrap_or(KILLS);
    let mut nodes = Nodes::start_some(4, 4);
    make(&nodes);
    for kill in 0..kills {
        // Node 3 goes and comes in turn; node 0 is asked.
        let what = if kill % 2 == 0 { "remove" } else { "add" };
        let (asked, node) = (nodes.address(0), nodes.address(3));
        let mut command = nodes.command(&["cluster", what, &asked, &node]);
        let child = command.stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().unwrap();
        std::thread::sleep(Duration::from_millis(random.below(1_500)));
        let down = random.below(4) as usize;
        nodes.kill(down);
        std::thread::sleep(Duration::from_millis(random.below(200)));
        nodes.serve(down, None);
        let told = Run::of(child.wait_with_output().unwrap());
        let at = format!("kill {kill} of COLOAD_SEED={seed}: {told:?}");
        check(&nodes, &at, &[0, 1, 2]);
        // It ends when it is asked again.
        let until = Instant::now() + Duration::from_secs(60);
        while cluster(&nodes, what, 0, Some(3)).status != Some(0) {
            let there = nodes.run(&["cluster", "status", "place"]).done().out.contains(&node);
            if what == "remove" && !there {
                break;
            }
            assert!(Instant::now() < until, "{at}");
        }
        check(&nodes, &at, &[0, 1, 2]);
        if what == "remove" {
            // One that is removed joins when it starts again.
            nodes.kill(3);
            nodes.serve(3, None);
        }
    }
    wait_for_none(&nodes, &format!("COLOAD_SEED={seed}"));
}
