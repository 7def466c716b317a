//! What a cluster cannot do yet is refused with words, and changes nothing.

use crate::nodes::Nodes;

#[test]
fn what_a_cluster_cannot_do_is_said() {
    let mut nodes = Nodes::start(2);
    nodes.sql(0, "CREATE TABLE t (k BIGINT, v VARCHAR) SHARD BY (k) SHARDS 4").done();
    nodes.write("a.csv", "1,a\n2,b\n");
    let flags = ["a.csv", "--no-header", "--columns", "k BIGINT, v VARCHAR"];
    for (more, said) in [
        (&["--replace"][..], "--replace and --create are not for a cluster"),
        (&["--create"], "--replace and --create are not for a cluster"),
        (&["--placement", "pipe", "--create"], "--replace and --create are not for a cluster"),
        (
            &["--worker", "1/2", "--load-id", "000000000000000000000000000000aa"],
            "takes no shares of a load",
        ),
        (&["--columns", "k BIGINT, v VARCHAR, w INTEGER"], "cannot append to table t"),
    ] {
        let mut all = flags.to_vec();
        if more[0] == "--columns" {
            all.truncate(2);
        }
        let run = nodes.load(1, "t", &[&all[..], more].concat());
        assert!(run.status == Some(1) && run.err.contains(said), "{more:?}: {run:?}");
    }
    let run = nodes.load(1, "u", &flags);
    assert!(
        run.status == Some(1) && run.err.contains("table u does not exist in the cluster"),
        "{run:?}"
    );
    for (text, said) in [
        ("ALTER TABLE t ADD COLUMN w INTEGER", "ALTER TABLE is not for a cluster"),
        ("CREATE INDEX i ON t (v)", "CREATE INDEX is not for a cluster"),
        ("CREATE VIEW w AS SELECT k FROM t", "CREATE VIEW is not for a cluster"),
        ("CREATE OR REPLACE TABLE t AS SELECT 1 AS k", "is not for a cluster"),
        ("CREATE OR REPLACE TABLE t (k BIGINT)", "is not for a cluster"),
        ("CREATE TABLE T (k BIGINT)", "exists already"),
        ("CREATE TABLE u (k BIGINT) SHARD BY (l)", "no such column"),
        ("CREATE TABLE u (k BIGINT) SHARD BY (k) SHARDS 0", "1 to 4096"),
        (
            "CREATE TABLE u (k BIGINT, l BIGINT, PRIMARY KEY (k)) SHARD BY (l)",
            "SHARD BY needs columns of",
        ),
        ("DROP TABLE u", "does not exist"),
    ] {
        let run = nodes.sql(0, text);
        assert!(run.status != Some(0) && run.err.contains(said), "{text}: {run:?}");
    }
    nodes.sql(0, "CREATE TABLE IF NOT EXISTS t (z BIGINT)").done();
    assert_eq!(nodes.query(1, "SELECT count(*) FROM t"), ["0"]);
    // The store of a node is not changed or read alone.
    nodes.kill(0);
    let alone = nodes.run(&[
        "load",
        "a.csv",
        "--into",
        "store0",
        "--table",
        "t",
        "--no-header",
        "--columns",
        "k BIGINT, v VARCHAR",
    ]);
    assert!(alone.status == Some(1) && alone.err.contains("a node of a cluster"), "{alone:?}");
    let alone = nodes.run(&["sql", "--store", "store0", "-c", "SELECT count(*) FROM t"]);
    assert!(alone.status == Some(1) && alone.err.contains("a node of a cluster"), "{alone:?}");
    let alone = nodes.run(&["serve", "--store", "store0", "--listen", "127.0.0.1:0"]);
    assert!(alone.status == Some(1) && alone.err.contains("a node of a cluster"), "{alone:?}");
    // Nor does it join another one, and a store that has tables joins none.
    let listen = ["--listen", "127.0.0.1:1"];
    let run =
        nodes.run(&[&["serve", "--store", "store0", "--cluster", "other"][..], &listen].concat());
    assert!(run.status == Some(1) && run.err.contains("of another cluster"), "{run:?}");
    nodes
        .run(&[
            "load",
            "a.csv",
            "--into",
            "alone",
            "--table",
            "t",
            "--no-header",
            "--columns",
            "k BIGINT, v VARCHAR",
        ])
        .done();
    let run =
        nodes.run(&[&["serve", "--store", "alone", "--cluster", "place"][..], &listen].concat());
    assert!(run.status == Some(1) && run.err.contains("has tables already"), "{run:?}");
    let run =
        nodes.run(&["sql", "--store", "alone", "-c", "CREATE TABLE u (k BIGINT) SHARD BY (k)"]);
    assert!(run.status == Some(1) && run.err.contains("SHARD BY is for a cluster"), "{run:?}");
}
