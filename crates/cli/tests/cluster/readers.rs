//! Statements while loads go on: each sees whole loads.

use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};

use crate::nodes::Nodes;

const ROWS: u64 = 2_000;
const LOADS: u64 = 12;

#[test]
fn a_statement_sees_all_rows_of_a_load_or_none_while_loads_go_on() {
    let nodes = Nodes::start(4);
    nodes.sql(0, "CREATE TABLE t (load BIGINT, k BIGINT) SHARD BY (k) SHARDS 16").done();
    let (ended, seen) = (AtomicBool::new(false), AtomicU64::new(0));
    std::thread::scope(|scope| {
        for node in 0..2 {
            let (nodes, ended, seen) = (&nodes, &ended, &seen);
            scope.spawn(move || {
                let mut before = 0;
                let mut queries = [
                    "SELECT count(*), count(*) FROM t",
                    "SELECT count(*), count(DISTINCT load) * 2000 FROM t",
                    "SELECT count(*), sum(CASE WHEN k < 1000 THEN 2 ELSE 0 END) FROM t",
                ]
                .into_iter()
                .cycle();
                while !ended.load(Ordering::Relaxed) {
                    let answer = nodes.query(node + 1, queries.next().unwrap());
                    let (rows, same) = answer[0].split_once(',').unwrap();
                    let rows: u64 = rows.parse().unwrap();
                    assert_eq!(rows % ROWS, 0, "part of a load: {answer:?}");
                    assert!(rows == 0 || same.parse::<u64>().unwrap() == rows, "{answer:?}");
                    assert!(rows >= before, "a load is gone: {rows} after {before}");
                    before = rows;
                    seen.fetch_add(1, Ordering::Relaxed);
                }
            });
        }
        // Two clients at once.
        let clients = (0..2_u64).map(|client| {
            let nodes = &nodes;
            scope.spawn(move || {
                for load in (0..LOADS).filter(|load| load % 2 == client) {
                    let name = format!("{load}.csv");
                    nodes.write(
                        &name,
                        (0..ROWS).map(|k| format!("{load},{k}\n")).collect::<String>(),
                    );
                    let flags = ["--no-header", "--columns", "load BIGINT, k BIGINT", &name];
                    nodes.load(client as usize, "t", &flags).done();
                    // Who loaded sees it at once, at any node.
                    let query = format!("SELECT count(*) FROM t WHERE load = {load}");
                    assert_eq!(nodes.query(3, &query), [ROWS.to_string()]);
                }
            })
        });
        let clients: Vec<_> = clients.collect();
        let ran: Vec<_> = clients.into_iter().map(|client| client.join()).collect();
        ended.store(true, Ordering::Relaxed);
        assert!(ran.into_iter().all(|ran| ran.is_ok()));
    });
    let answer = nodes.query(0, "SELECT count(*), count(DISTINCT load) FROM t");
    assert_eq!(answer, [format!("{},{LOADS}", ROWS * LOADS)]);
    assert!(seen.into_inner() > 5);
}
