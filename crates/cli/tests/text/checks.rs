//! CHECK: records that break a rule of their table are rejects.

use crate::support::{Run, Sandbox};

const COLUMNS: &str = "id BIGINT, price DECIMAL(9,2) CHECK (price >= 0), name VARCHAR, day DATE, \
     CONSTRAINT whole CHECK (length(name) BETWEEN 1 AND 6 OR day IS NULL)";

fn load(sandbox: &Sandbox, flags: &[&str]) -> Run {
    let base = ["load", "a.csv", "--into", "store", "--table", "t", "--no-header"];
    sandbox.run(&[&base[..], flags].concat())
}

/// 3,000 records, of which those with a number that 700 divides have a bad price, and one a bad name.
fn write_input(sandbox: &Sandbox) {
    let record = |i: u64| {
        let price = if i.is_multiple_of(700) { "-0.01" } else { "1.50" };
        let name = if i == 1234 { "\"much\ntoo long\"" } else { "abc" };
        format!("{i},{price},{name},2024-01-0{}\n", i % 9 + 1)
    };
    sandbox.write("a.csv", (0..3000).map(record).collect::<String>());
}

#[test]
fn records_that_break_a_rule_are_rejects_with_place_column_value_and_rule() {
    let sandbox = Sandbox::new();
    write_input(&sandbox);
    load(&sandbox, &["--columns", COLUMNS])
        .fails(1, &["a.csv:1 (byte 0)", "\"-0.01\" breaks CHECK (price >= 0.00) (column price"]);
    let flags = ["--columns", COLUMNS, "--max-rejects", "9", "--rejects", "r.csv"];
    let mut seen = Vec::new();
    for (threads, chunk) in [("1", "1MiB"), ("1", "64"), ("4", "300"), ("3", "9000")] {
        let more = ["--threads", threads, "--chunk-size", chunk, "--replace"];
        let run = load(&sandbox, &[&flags[..], &more].concat()).ok();
        assert!(run.out.starts_with("loaded 2,994 rows"), "{run:?}");
        let rejects = std::fs::read_to_string(sandbox.path("r.csv")).unwrap();
        seen.push((rejects, sandbox.run(&["export", "store", "t", "--quote", "needed"]).ok().out));
    }
    assert!(seen.windows(2).all(|pair| pair[0] == pair[1]));
    let (rejects, rows) = &seen[0];
    assert_eq!(rejects.matches("-0.01,breaks CHECK").count(), 5);
    assert!(rejects.contains("a.csv,1235,"), "{rejects}");
    assert!(rejects.contains("name,\"much\ntoo long\",breaks CONSTRAINT whole CHECK"), "{rejects}");
    assert_eq!(rows.lines().count(), 1 + 2994);
}

#[test]
fn the_rules_of_a_table_count_for_all_loads_into_it() {
    let sandbox = Sandbox::new();
    write_input(&sandbox);
    let columns = "id BIGINT, price DECIMAL(9,2), name VARCHAR, day DATE";
    let flags = ["--columns", COLUMNS, "--max-rejects", "9"];
    load(&sandbox, &flags).ok();
    for columns in [&[][..], &["--columns", columns]] {
        let run = load(&sandbox, &[columns, &["--max-rejects", "9"]].concat()).ok();
        assert!(run.out.starts_with("loaded 2,994 rows"), "{run:?}");
    }
    let dry = load(&sandbox, &["--columns", columns, "--dry-run", "--max-rejects", "9"]).ok();
    assert!(dry.out.contains("breaks CHECK"), "{dry:?}");
    // A load may be stricter than its table.
    let strict = format!("{columns}, CHECK (id < 2000)");
    load(&sandbox, &["--columns", &strict, "--max-rejects", "9"])
        .fails(1, &["breaks CHECK (id < 2000)"]);
    let shown = sandbox.run(&["inspect", "store", "t"]).ok().out;
    assert!(
        shown.contains("CHECK (price >= 0.00)") && shown.contains("CONSTRAINT whole CHECK"),
        "{shown}"
    );
}

#[test]
fn rules_hold_for_columns_that_are_not_read() {
    let sandbox = Sandbox::new();
    sandbox.write("a.csv", "1\n2\n");
    let columns = ["--columns", "a INT, b INT DEFAULT 7, CHECK (b > a + 0)"];
    load(&sandbox, &columns).fails(2, &["after the condition"]);
    let columns = ["--columns", "a INT, b INT, CHECK (b > a)"];
    load(&sandbox, &[&columns[..], &["--set", "b=2"]].concat())
        .fails(1, &["a.csv:2", "\"2\" breaks"]);
    load(&sandbox, &[&columns[..], &["--set", "b=3"]].concat()).ok();
}

#[test]
fn bad_fields_and_broken_rules_are_told_together_in_order() {
    let sandbox = Sandbox::new();
    sandbox.write("a.csv", "1,1\nx,1\n3,-1\n4\n5,-1\n6,z\n7,1\n");
    let flags =
        ["--columns", "a INT, b INT CHECK (b > 0)", "--max-rejects", "9", "--rejects", "r.csv"];
    load(&sandbox, &flags).ok();
    let rejects = std::fs::read_to_string(sandbox.path("r.csv")).unwrap();
    let lines: Vec<&str> = rejects.lines().skip(1).map(|line| &line[..8]).collect();
    assert_eq!(lines, ["a.csv,2,", "a.csv,3,", "a.csv,4,", "a.csv,5,", "a.csv,6,"]);
    let rows = sandbox.run(&["export", "store", "t", "--quote", "needed"]).ok().out;
    assert_eq!(rows, "a,b\n1,1\n7,1\n");
}
