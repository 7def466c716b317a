//! A file that was exported loads again as the same table: same names, same values, with nothing given.

use proptest::prelude::*;

use crate::exported_tables::{columns_of, difference, load_into, table};
use crate::support::Sandbox;

proptest! {
    #![proptest_config(ProptestConfig {
        cases: std::env::var("PROPTEST_CASES").ok().and_then(|n| n.parse().ok()).unwrap_or(64),
        ..ProptestConfig::default()
    })]

    #[test]
    fn an_exported_table_loads_again_as_it_was(table in table(), ending in prop::sample::select(&["csv", "tsv"][..])) {
        let sandbox = Sandbox::new();
        load_into(&sandbox, "a", &table);
        let file = format!("t.{ending}");
        sandbox.run(&["export", "a", "t", "--output", &file]).ok();
        let exported = std::fs::read_to_string(sandbox.path(&file)).unwrap();
        // Into a table that is there, and into one whose columns are found out.
        let columns = columns_of(&table);
        let same = ["load", &file, "--into", "b", "--table", "t", "--columns", &columns];
        sandbox.run(&same).ok();
        sandbox.run(&["export", "b", "t", "--output", &format!("b.{ending}")]).ok();
        let again = std::fs::read_to_string(sandbox.path(&format!("b.{ending}"))).unwrap();
        prop_assert_eq!(&again, &exported);
        let run = sandbox.run(&["load", &file, "--into", "c", "--table", "t"]).ok();
        let found = sandbox.run(&["export", "c", "t"]).ok().out;
        let wrong = difference(&table, &found);
        prop_assert!(wrong.is_none(), "{wrong:?}: {exported:?} {found:?} {}", run.err);
    }
}

/// Symptom: 139 tables of one text column lost their name, which became a row.
#[test]
fn a_table_of_one_text_column_keeps_its_name() {
    let sandbox = Sandbox::new();
    sandbox.write("in.csv", "it was late\nand 007 was tired\n1.50\n");
    sandbox
        .run(&[
            "load",
            "in.csv",
            "--into",
            "a",
            "--columns",
            "line VARCHAR",
            "--no-header",
            "--quote",
            "none",
        ])
        .ok();
    sandbox.run(&["export", "a", "in", "--output", "t.csv"]).ok();
    sandbox.run(&["load", "t.csv", "--into", "a"]).ok();
    let rows = sandbox.run(&["export", "a", "t", "--quote", "needed"]).ok().out;
    assert_eq!(rows, "line\nit was late\nand 007 was tired\n1.50\n");
}

/// Symptom: `--output x.parquet` wrote CSV.
#[test]
fn an_ending_that_is_not_written_is_refused() {
    let sandbox = Sandbox::new();
    sandbox.write("in.csv", "a,b\n1,x\n");
    sandbox.run(&["load", "in.csv", "--into", "a", "--table", "t"]).ok();
    sandbox.run(&["export", "a", "t", "--output", "t.xlsx"]).fails(2, &["t.xlsx", ".parquet"]);
    sandbox.run(&["export", "a", "t", "--output", "t.csv.gz"]).fails(2, &["| gzip"]);
    assert!(!sandbox.path("t.xlsx").exists());
    sandbox.run(&["export", "a", "t", "--output", "t.tsv"]).ok();
    assert_eq!(std::fs::read_to_string(sandbox.path("t.tsv")).unwrap(), "a\t\"b\"\n1\t\"x\"\n");
}
