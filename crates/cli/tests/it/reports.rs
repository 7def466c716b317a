//! The reports of loads, and `inspect`.

use serde_json::Value;

use crate::support::{Sandbox, rows};

/// Fields that programs rely on; docs/loading.md lists them.
const FIELDS: [&str; 20] = [
    "load_id",
    "table",
    "version",
    "records",
    "rows",
    "rejects",
    "bytes_read",
    "bytes_stored",
    "segments",
    "partitions",
    "wall_s",
    "mb_per_s",
    "rows_per_s",
    "cpu_s",
    "cpu_by_step_s",
    "peak_memory_bytes",
    "files",
    "columns",
    "first_rejects",
    "merge",
];

#[test]
fn the_json_report_has_its_fields() {
    let sandbox = Sandbox::new();
    sandbox.write("a.csv", rows(1, 5000) + "bad\n");
    let run = sandbox.load("a.csv", &["--report", "json", "--max-rejects", "1"]).ok();
    let report: Value = serde_json::from_str(&run.out).unwrap();
    for field in FIELDS {
        assert!(!report[field].is_null(), "{field}");
    }
    for step in ["read", "tokenise", "convert", "sort", "compress", "merge", "write"] {
        assert!(report["cpu_by_step_s"][step].is_f64(), "{step}");
    }
    assert_eq!(report["records"], 5001);
    assert_eq!(report["columns"].as_array().unwrap().len(), 4);
    let name = &report["columns"][3];
    assert_eq!((&name["name"], &name["type"]), (&"name".into(), &"VARCHAR(10)".into()));
    assert_eq!((&name["codec"], &name["distinct"]), (&"dictionary".into(), &100.into()));
    assert_eq!(name["distinct_known"], "exact");
    assert_eq!(report["first_rejects"][0]["line"], 5001);
    let page = include_str!("../../../../docs/loading.md");
    for field in FIELDS {
        assert!(page.contains(&format!("`{field}`")), "{field} is not in docs/loading.md");
    }
}

#[test]
fn the_text_report_says_the_same_to_people() {
    let sandbox = Sandbox::new();
    sandbox.write("a.csv", rows(1, 5000) + "bad\n");
    let run = sandbox.load("a.csv", &["--max-rejects", "1"]).ok();
    for part in [
        "loaded 5,000 rows into t",
        "a.csv",
        "5,001",
        "distinct",
        "dictionary",
        "CPU",
        "tokenise",
        "peak memory",
        "rejected records",
        "a.csv:5001",
    ] {
        assert!(run.out.contains(part), "{part}: {}", run.out);
    }
}

#[test]
fn many_small_loads_are_merged_and_the_report_says_so() {
    let sandbox = Sandbox::new();
    sandbox.write("a.csv", rows(1, 10));
    let reports: Vec<String> = (0..10).map(|_| sandbox.load("a.csv", &[]).ok().out).collect();
    assert!(reports.iter().any(|r| r.contains("then merged small segments")), "{reports:?}");
    assert_eq!(sandbox.query("SELECT count(*), sum(id) FROM t"), ["100,550"]);
    let listed = sandbox.run(&["inspect", "store", "t"]).ok().out;
    assert!(!listed.contains("segments: 10") && listed.contains("loads: 10"), "{listed}");
}

#[test]
fn inspect_shows_tables_columns_segments_and_loads() {
    let sandbox = Sandbox::new();
    sandbox.write("a.csv", rows(1, 5000));
    sandbox.load("a.csv", &[]).ok();
    sandbox.load("a.csv", &[]).ok();
    let store = sandbox.run(&["inspect", "store"]).ok().out;
    assert!(store.contains("version ") && store.contains("10,000"), "{store}");
    let table = sandbox.run(&["inspect", "store", "T"]).ok().out;
    for part in [
        "CREATE TABLE t (",
        "day DATE",
        "dictionary",
        ">= 100",
        "2024-02-01",
        ".seg",
        "segments: 2",
        "loads: 2",
        "append",
        "a.csv",
    ] {
        assert!(table.contains(part), "{part}: {table}");
    }
    let none = sandbox.run(&["inspect", "store", "u"]);
    none.fails(1, &["table u does not exist (there is t)"]);
}

#[test]
fn a_flipped_bit_is_told_with_the_name_of_the_file() {
    let sandbox = Sandbox::new();
    sandbox.write("a.csv", rows(1, 5000));
    sandbox.load("a.csv", &[]).ok();
    let segment = crate::support::files_below(&sandbox.path("store/segments")).pop().unwrap();
    let name = segment.file_name().unwrap().to_string_lossy().into_owned();
    let mut bytes = std::fs::read(&segment).unwrap();
    for position in (8..bytes.len()).step_by(bytes.len() / 40) {
        bytes[position] ^= 16;
        std::fs::write(&segment, &bytes).unwrap();
        let query = "SELECT count(id), sum(id), sum(price), max(day), max(name) FROM t";
        let run = sandbox.run(&["sql", "--store", "store", "-c", query, "--output", "csv"]);
        if run.status == Some(0) {
            // Padding between pages belongs to nobody.
            assert!(run.out.contains("5000,12502500,2500000.00,2024-02-28,name 99"), "{run:?}");
        } else {
            run.fails(1, &["corrupt", &name]);
        }
        bytes[position] ^= 16;
    }
}
