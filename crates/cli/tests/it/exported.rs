//! Files that COPY wrote load again as the same table, here and at a server.

use std::cell::Cell;

use proptest::test_runner::{Config, TestCaseError, TestRunner};

use crate::exported_tables::{difference, load_into, table};
use crate::serve::Server;
use crate::support::Sandbox;

/// Tables that are tried if nothing else is asked for.
const TABLES: u32 = 24;

#[test]
fn what_copy_writes_loads_again_here_and_at_a_server() {
    let served = Sandbox::new();
    let server = Server::start(&served, &[]);
    let cases = std::env::var("PROPTEST_CASES").ok().and_then(|n| n.parse().ok()).unwrap_or(TABLES);
    let mut runner =
        TestRunner::new(Config { cases, failure_persistence: None, ..Config::default() });
    let count = Cell::new(0);
    let round_trip = |table| {
        let (own, name) = (Sandbox::new(), format!("t{}", count.get()));
        count.set(count.get() + 1);
        load_into(&own, "a", &table);
        let copy = "COPY t TO 't.csv' (FORMAT csv, HEADER true)";
        own.run(&["sql", "--store", "a", "-c", copy]).ok();
        let written = std::fs::read_to_string(own.path("t.csv")).unwrap();
        own.run(&["load", "t.csv", "--into", "b", "--table", "t"]).ok();
        let here = own.run(&["export", "b", "t"]).ok().out;
        let args = ["load", "t.csv", "--into", &server.url(), "--table", &name];
        own.run(&args).ok();
        let there = served.run(&["export", "store", &name]).ok().out;
        for found in [here, there] {
            if let Some(wrong) = difference(&table, &found) {
                return Err(TestCaseError::fail(format!("{wrong}: {written:?} {found:?}")));
            }
        }
        Ok(())
    };
    runner.run(&table(), round_trip).unwrap();
}
