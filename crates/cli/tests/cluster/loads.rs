//! Loads and statements of four nodes, compared with those of a store.

use std::fmt::Write;

use crate::nodes::Nodes;

const COLUMNS: &str = "k BIGINT NOT NULL, g INTEGER, name VARCHAR, price DECIMAL(12,2), x DOUBLE, day DATE, at TIMESTAMP, ok BOOLEAN";

/// Rows of many and of few values, with NULL in each column but the first.
fn rows(range: std::ops::Range<u64>) -> String {
    let mut text = String::new();
    for k in range {
        let some = |every: u64, value: String| if k % every == 3 { String::new() } else { value };
        writeln!(
            text,
            "{k},{},{},{},{},{},{},{}",
            some(11, format!("{}", k % 7)),
            some(13, format!("name {}", k % 5000)),
            some(17, format!("{}.{:02}", k % 1000, k % 100)),
            some(19, format!("{}.5", k % 333)),
            some(23, format!("2024-02-{:02}", k % 28 + 1)),
            some(29, format!("2024-02-01 10:{:02}:00.000{:03}", k % 60, k % 1000)),
            some(31, format!("{}", k % 2 == 0)),
        )
        .unwrap();
    }
    text
}

const QUERIES: [&str; 18] = [
    "SELECT count(*), count(x), sum(g), avg(g), min(at), max(price), sum(price * (1 - price) + k) FROM t",
    "SELECT ok, day, count(*), sum(price * 2), avg(price), min(k), max(at) FROM t WHERE k > 100 GROUP BY ok, day ORDER BY ok, day",
    "SELECT g, count(*) FROM t WHERE k = 77 GROUP BY g",
    "SELECT count(*), sum(k), min(day) FROM t WHERE k = -1",
    "SELECT count(*), count(name), sum(k), sum(price), min(day), max(at), min(name), max(name) FROM t",
    "SELECT g, count(*), sum(price), avg(price), min(k), max(k) FROM t GROUP BY g ORDER BY g",
    "SELECT name, count(*) AS n FROM t GROUP BY name ORDER BY n DESC, name LIMIT 7",
    "SELECT count(DISTINCT k), count(DISTINCT name), count(DISTINCT day) FROM t",
    "SELECT * FROM t WHERE k = 4711",
    "SELECT * FROM t WHERE k IN (1, 2, 17, 40000) ORDER BY k",
    "SELECT count(*) FROM t WHERE name LIKE 'name 4%' AND price > 500.5",
    "SELECT count(*) FROM t WHERE name LIKE '%77%'",
    "SELECT count(*) FROM t WHERE day BETWEEN DATE '2024-02-03' AND DATE '2024-02-09' AND ok",
    "SELECT count(*) FROM t WHERE name IS NULL OR x < 10",
    "SELECT k, name FROM t WHERE name IS NULL ORDER BY k LIMIT 5",
    "SELECT a.g, count(*) FROM t a JOIN t b ON a.k = b.k + 1 WHERE b.g = 3 GROUP BY a.g ORDER BY a.g",
    "SELECT k, sum(k) OVER (ORDER BY k) FROM t WHERE k < 10 ORDER BY k",
    "SELECT sum(x), avg(x) FROM t WHERE x IS NOT NULL AND k % 2 = 0",
];

#[test]
fn statements_at_any_node_answer_as_a_store_does() {
    let nodes = Nodes::start(4);
    nodes.write("a.csv", rows(0..30_000));
    nodes.write("b.csv", rows(30_000..50_000));
    for shard_by in ["SHARD BY (k) SHARDS 16", "SHARD BY (name, g)", ""] {
        nodes.sql(1, &format!("CREATE TABLE t ({COLUMNS}) {shard_by}")).done();
        let flags =
            ["a.csv", "b.csv", "--no-header", "--columns", COLUMNS, "--chunk-size", "100000"];
        let load = nodes.load(2, "t", &flags).done();
        assert!(load.out.contains("loaded 50,000 rows into t"), "{load:?}");
        if !nodes.path("store").exists() {
            let into = ["--into", "store", "--table", "t"];
            nodes.run(&[&["load"][..], &flags, &into].concat()).done();
        }
        for (number, query) in QUERIES.iter().enumerate() {
            let run =
                nodes.run(&["sql", "--store", "store", "--output", "csv", "-c", query]).done();
            let expected: Vec<&str> = run.out.lines().skip(1).collect();
            assert_eq!(nodes.query(number % 4, query), expected, "{shard_by}: {query}");
        }
        let plan = nodes.sql(0, "EXPLAIN SELECT g, sum(price) FROM t GROUP BY g").done().out;
        assert!(plan.contains("AggregateOnCodesExec") && plan.contains("leaves=4"), "{plan}");
        // It is a no-op the second time, from any node, and loaded again if that is wanted.
        let again = nodes.load(3, "t", &flags).done();
        assert!(again.err.contains("nothing was loaded"), "{again:?}");
        let more = nodes.load(0, "t", &[&flags[..], &["--again"]].concat()).done();
        assert!(more.out.contains("loaded 50,000 rows"), "{more:?}");
        assert_eq!(nodes.query(1, "SELECT count(*), count(DISTINCT k) FROM t"), ["100000,50000"]);
        // A table that is made anew is another one.
        nodes.sql(3, "DROP TABLE t").done();
        assert!(nodes.sql(0, "SELECT * FROM t").status != Some(0));
    }
}

#[test]
fn groups_of_leaves_whose_rows_have_no_codes_are_made_of_their_rows() {
    let nodes = Nodes::start(2);
    let columns = "k BIGINT, v BIGINT";
    nodes.sql(0, &format!("CREATE TABLE t ({columns}) SHARD BY (k) SHARDS 2")).done();
    // Few values of v at the leaf of one key, many at that of the other.
    let mut at = [0, 1].map(|node| (0..20).find(|k| asks(&nodes, node, *k)).unwrap());
    for _ in 0..2 {
        let [few, many] = at;
        let few = (0..3_000).map(|_| format!("{few},7\n"));
        let many = (0..3_000_u64).map(|v| format!("{many},{}\n", v * 1_000_003));
        nodes.write("a.csv", few.chain(many).collect::<String>());
        let flags = ["a.csv", "--no-header", "--columns", columns];
        nodes.load(0, "t", &flags).done();
        at.reverse();
        for node in 0..2 {
            let query =
                "SELECT v, count(*), sum(k) FROM t GROUP BY v ORDER BY count(*) DESC, v LIMIT 3";
            let answer = nodes.query(node, query);
            assert!(answer.len() == 3 && answer[0].starts_with("7,"), "{answer:?}");
        }
    }
    let counts = nodes
        .query(0, "SELECT sum(n), count(*) FROM (SELECT v, count(*) AS n FROM t GROUP BY v) AS s");
    assert_eq!(counts, ["12000,3001"]);
}

/// Whether a key is at another leaf than the node that is asked.
fn asks(nodes: &Nodes, node: usize, key: u64) -> bool {
    let before = nodes.log(1 - node).matches("rows for another node").count();
    nodes.query(node, &format!("SELECT k FROM t WHERE k = {key}"));
    nodes.log(1 - node).matches("rows for another node").count() > before
}

#[test]
fn rejects_filters_and_rules_are_those_of_one_load() {
    let nodes = Nodes::start(3);
    let mut text = rows(0..5_000);
    text.push_str("not a number,1,a,1,1,2024-01-01,2024-01-01 00:00:00,true\n");
    text.push_str("7000,2,b,-5,1,2024-01-01,2024-01-01 00:00:00,true\n");
    text.push_str(&rows(7_001..7_010));
    nodes.write("a.csv", text);
    let columns = format!("{COLUMNS}, CHECK (price >= 0)");
    nodes.sql(0, &format!("CREATE TABLE t ({columns}) SHARD BY (k)")).done();
    let flags = [
        "a.csv",
        "--no-header",
        "--columns",
        &columns,
        "--chunk-size",
        "20000",
        "--fragments-per-partition",
        "4",
    ];
    let failed = nodes.load(1, "t", &flags);
    assert_eq!(failed.status, Some(1), "{failed:?}");
    assert!(failed.err.contains("a.csv:5001"), "{failed:?}");
    assert_eq!(nodes.query(2, "SELECT count(*) FROM t"), ["0"]);
    let more = ["--max-rejects", "2", "--rejects", "rejects.csv", "--where", "k <> 4999"];
    let load = nodes.load(1, "t", &[&flags[..], &more].concat()).done();
    assert!(load.out.contains("5,008 rows"), "{load:?}");
    let rejects = std::fs::read_to_string(nodes.path("rejects.csv")).unwrap();
    assert!(rejects.contains("not a number") && rejects.contains("7000"), "{rejects}");
    let answer = nodes.query(0, "SELECT count(*), max(k), count(DISTINCT k) FROM t");
    assert_eq!(answer, ["5008,7009,5008"]);
}

#[test]
fn rows_of_a_primary_key_give_way_as_at_one_server() {
    let nodes = Nodes::start(4);
    let columns = "k BIGINT, v VARCHAR, PRIMARY KEY (k)";
    nodes.sql(0, &format!("CREATE TABLE t ({columns})")).done();
    let file = |name: &str, keys: std::ops::Range<u64>, value: &str| {
        nodes.write(name, keys.map(|k| format!("{k},{value}\n")).collect::<String>());
    };
    file("a.csv", 0..1_000, "a");
    file("b.csv", 500..1_500, "b");
    file("c.csv", 900..2_000, "c");
    let flags = |file| ["--no-header", "--columns", columns, file, "--on-conflict"];
    let load = |file, rule| nodes.load(1, "t", &[&flags(file)[..], &[rule]].concat()).done();
    load("a.csv", "ignore");
    load("b.csv", "replace");
    load("c.csv", "ignore");
    let answer = nodes.query(2, "SELECT v, count(*), min(k), max(k) FROM t GROUP BY v ORDER BY v");
    assert_eq!(answer, ["a,500,0,499", "b,1000,500,1499", "c,500,1500,1999"]);
    assert_eq!(nodes.query(3, "SELECT v FROM t WHERE k = 1200"), ["b"]);
}

#[test]
fn a_node_more_serves_all_tables_and_has_shards_of_those_made_then() {
    let mut nodes = Nodes::start(3);
    nodes.kill(2);
    // It is in the map, and a table that is made now has shards there too.
    nodes.sql(0, "CREATE TABLE t (k BIGINT) SHARD BY (k) SHARDS 12").done();
    nodes.write("a.csv", (0..1_000).map(|k| format!("{k}\n")).collect::<String>());
    let flags = ["a.csv", "--no-header", "--columns", "k BIGINT", "--patience", "1"];
    let load = nodes.load(0, "t", &flags);
    assert_eq!(load.status, Some(1), "{load:?}");
    assert!(load.err.contains("leaf coload://127.0.0.1"), "{load:?}");
    nodes.serve(2, None);
    nodes.load(0, "t", &flags).done();
    assert_eq!(nodes.query(2, "SELECT count(*), sum(k) FROM t"), ["1000,499500"]);
    let status = nodes.run(&["cluster", "status", "place"]).done().out;
    assert_eq!(status.matches("4 coload://").count(), 3, "{status}");
    let asked = nodes.run(&["cluster", "status", &nodes.address(1)]).done().out;
    assert!(asked.contains("4 coload://"), "{asked}");
    // A leaf that is away is named, and those that are pruned do not miss it.
    nodes.kill(1);
    let failed = nodes.sql(0, "SELECT count(*) FROM t");
    assert!(failed.status != Some(0) && failed.err.contains("4 shards of table t"), "{failed:?}");
    let found = (0..40)
        .filter(|k| nodes.sql(0, &format!("SELECT k FROM t WHERE k = {k}")).status == Some(0));
    let found = found.count();
    assert!((10..40).contains(&found), "{found} of 40 keys are on two of three leaves");
}
