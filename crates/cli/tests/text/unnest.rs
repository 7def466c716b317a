//! `--unnest` and `--mapping`: items of lists as rows, and which values the columns are.

use crate::support::Sandbox;

const ORDERS: &str = r#"{"id": 1, "who": {"name": "Ann"}, "items": [{"sku": "a", "n": 2}, {"sku": "b", "n": 1.5}], "tags": ["x"]}
{"id": 2, "who": {"name": "Bob"}, "items": [], "tags": null}
{"id": 3, "items": [{"sku": "c", "n": 7, "at": {"day": "2026-01-31"}}, null], "tags": ["y", "z"]}
"#;

fn exported(sandbox: &Sandbox, table: &str) -> String {
    sandbox.run(&["export", "store", table]).ok().out.replace('\r', "")
}

#[test]
fn items_are_rows_with_the_values_beside_them() {
    let sandbox = Sandbox::new();
    sandbox.write("orders.jsonl", ORDERS);
    let load = ["load", "orders.jsonl", "--into", "store"];
    let run = sandbox.run(&[&load[..], &["--unnest", "items"]].concat()).ok();
    assert!(
        run.err.contains("rows are the items of items: 4 in the first 3 records (--unnest)"),
        "{}",
        run.err
    );
    let rows = "id,\"who.name\",\"items.sku\",\"items.n\",\"items.at.day\",tags\n\
                1,\"Ann\",\"a\",2.0,,\"[\"\"x\"\"]\"\n1,\"Ann\",\"b\",1.5,,\"[\"\"x\"\"]\"\n\
                3,,\"c\",7.0,2026-01-31,\"[\"\"y\"\", \"\"z\"\"]\"\n3,,,,,\"[\"\"y\"\", \"\"z\"\"]\"\n";
    assert_eq!(exported(&sandbox, "orders"), rows);
    // Values that are no objects are a column of the name of the list; a filter and a choice of columns hold.
    let tags =
        ["--unnest", "tags", "--table", "tags", "--select", "id, tags", "--where", "tags <> 'y'"];
    sandbox.run(&[&load[..], &tags].concat()).ok();
    assert_eq!(exported(&sandbox, "tags"), "id,\"tags\"\n1,\"x\"\n3,\"z\"\n");
    // Documents on many lines are the same.
    sandbox.write(
        "orders.json",
        format!("[{}]", ORDERS.trim_end().replace('\n', ",\n").replace(", \"", ",\n\"")),
    );
    sandbox
        .run(&["load", "orders.json", "--into", "store", "--table", "docs", "--unnest", "items"])
        .ok();
    let docs = exported(&sandbox, "docs").replace(",\n\"\"z", ", \"\"z");
    assert_eq!(docs, rows);
}

#[test]
fn items_that_are_no_rows_are_rejects_with_their_path() {
    let sandbox = Sandbox::new();
    let bad = "{\"id\": 4, \"items\": [{\"sku\": \"d\", \"n\": 1}, 5, {\"sku\": \"e\", \"n\": \"no\"}, {\"x\": 1}]}\n{\"id\": 5, \"items\": {}}\n";
    sandbox.write("orders.jsonl", format!("{ORDERS}{bad}"));
    let columns = [
        "--columns",
        "id BIGINT, \"items.sku\" VARCHAR, \"items.n\" DECIMAL(9,2)",
        "--unknown-keys",
        "ignore",
    ];
    let load = [
        "load",
        "orders.jsonl",
        "--into",
        "store",
        "--unnest",
        "items",
        "--max-rejects",
        "9",
        "--rejects",
        "r.csv",
    ];
    let run = sandbox.run(&[&load[..], &columns].concat()).ok();
    assert!(run.out.contains("loaded 6 rows"), "{}", run.out);
    let rejects = std::fs::read_to_string(sandbox.path("r.csv")).unwrap();
    let lines: Vec<&str> = rejects.lines().skip(1).collect();
    assert_eq!(lines.len(), 3, "{rejects}");
    assert!(
        lines[0].contains(",4,")
            && lines[0].contains(",items[1],5,\"is no object, and other records have one here\""),
        "{rejects}"
    );
    // The record, with the item in the place of the list.
    assert!(lines[1].contains("no,") && lines[1].contains("\"{\"\"id\"\": 4, \"\"items\"\": {\"\"sku\"\": \"\"e\"\", \"\"n\"\": \"\"no\"\"}}\""), "{rejects}");
    assert!(
        lines[2].contains(",5,") && lines[2].contains("is no list, and --unnest takes one here"),
        "{rejects}"
    );
    // Another field than the columns is told.
    let strict = [
        "load",
        "orders.jsonl",
        "--into",
        "store",
        "--unnest",
        "items",
        "--table",
        "s",
        "--max-rejects",
        "9",
    ];
    let run = sandbox.run(&[&strict[..], &columns[..2]].concat()).ok();
    assert!(run.out.contains("is a key of no column"), "{}", run.out);
}

#[test]
fn many_rows_of_a_record_go_through_windows_and_wider_types() {
    let sandbox = Sandbox::new();
    let long = "x".repeat(1000);
    let record = |id: usize| {
        let items: Vec<String> = (0..5000).map(|n| format!("{}", id * 5000 + n)).collect();
        format!("{{\"id\": {id}, \"note\": \"{long}\", \"n\": [{}]}}\n", items.join(", "))
    };
    let text: String = (0..40).map(record).collect();
    sandbox.write(
        "a.jsonl",
        format!("{text}{{\"id\": 40, \"note\": \"\", \"n\": [\"200000\", 0.5]}}\n"),
    );
    let load = [
        "load",
        "a.jsonl",
        "--into",
        "store",
        "--unnest",
        "n",
        "--chunk-size",
        "64KiB",
        "--sample",
        "64KiB",
    ];
    let run = sandbox.run(&load).ok();
    assert!(run.out.contains("loaded 200,002 rows"), "{}", run.out);
    let rows = exported(&sandbox, "a");
    let numbers: Vec<&str> =
        rows.lines().skip(1).map(|row| row.rsplit(',').next().unwrap().trim_matches('"')).collect();
    assert!(numbers[..200_001].iter().enumerate().all(|(n, text)| *text == n.to_string()));
    assert_eq!(numbers[200_001], "0.5");
}

#[test]
fn the_mapping_that_is_sniffed_is_taken_back() {
    let sandbox = Sandbox::new();
    sandbox.write("orders.jsonl", ORDERS);
    let sniffed = sandbox
        .run(&["sniff", "orders.jsonl", "--unnest", "items", "--output", "mapping"])
        .ok()
        .out;
    assert!(
        sniffed.contains("\"unnest\": \"items\"") && sniffed.contains("\"path\": \"items.at.day\""),
        "{sniffed}"
    );
    sandbox.write("mapping.json", &sniffed);
    let load = ["load", "orders.jsonl", "--into", "store"];
    sandbox.run(&[&load[..], &["--unnest", "items", "--table", "a"]].concat()).ok();
    sandbox.run(&[&load[..], &["--mapping", "mapping.json", "--table", "b"]].concat()).ok();
    assert_eq!(exported(&sandbox, "a"), exported(&sandbox, "b"));
    // Some values, under other names.
    let some = r#"{"columns": [{"path": "who.name", "column": "who", "type": "VARCHAR(3)"}, {"path": "items"}]}"#;
    let args = ["--mapping", some, "--table", "c", "--unknown-keys", "ignore"];
    sandbox.run(&[&load[..], &args].concat()).ok();
    let rows = exported(&sandbox, "c");
    assert!(rows.starts_with("who,\"items\"\n\"Ann\",\"[{\"\"sku\"\": \"\"a\"\""), "{rows}");
    assert!(rows.ends_with("}}, null]\"\n") && rows.contains("\n\"Bob\",\"[]\"\n,"), "{rows}");
    sandbox.run(&[&load[..], &["--mapping", some]].concat()).fails(1, &["is a key of no column"]);
    // What is no JSON has no paths.
    sandbox.write("a.csv", "a,b\n1,2\n");
    sandbox
        .run(&["load", "a.csv", "--into", "store", "--unnest", "a"])
        .fails(1, &["--unnest: a.csv is not JSON"]);
    sandbox.run(&["sniff", "a.csv", "--output", "mapping"]).fails(2, &["a.csv is not JSON"]);
    sandbox.run(&[&load[..], &["--mapping", "{}"]].concat()).fails(2, &["no list \"columns\""]);
}

/// Symptom: a key that was not there became the empty text in a column that is NOT NULL.
#[test]
fn a_null_of_json_is_never_an_empty_text() {
    let sandbox = Sandbox::new();
    let line = |i: u32| match i {
        700 => "{\"id\": 700, \"few\": null, \"many\": \"x\"}\n".to_owned(),
        800 => "{\"id\": 800, \"few\": \"a\"}\n".to_owned(),
        900 => "{\"id\": 900, \"few\": \"\", \"many\": \"\"}\n".to_owned(),
        _ => format!("{{\"id\": {i}, \"few\": \"w{}\", \"many\": \"text number {i}\"}}\n", i % 3),
    };
    sandbox.write("rows.jsonl", (0..1_000).map(line).collect::<String>());
    let load = |columns: &str, flags: &[&str]| {
        let load = ["load", "rows.jsonl", "--into", "store", "--replace", "--columns", columns];
        sandbox.run(&[&load[..], flags].concat())
    };
    let strict = "id INTEGER, few VARCHAR NOT NULL, many VARCHAR NOT NULL";
    load(strict, &[]).fails(1, &["rows.jsonl:701", "NULL"]);
    load(strict, &["--max-rejects", "2"]).ok();
    let rows = exported(&sandbox, "rows");
    assert_eq!(rows.lines().count(), 999);
    assert!(
        rows.contains("\n900,\"\",\"\"\n") && !rows.contains("\n700,") && !rows.contains("\n800,")
    );
    load("id INTEGER, few VARCHAR, many VARCHAR", &[]).ok();
    let rows = exported(&sandbox, "rows");
    assert!(rows.contains("\n700,,\"x\"\n") && rows.contains("\n800,\"a\",\n"), "{rows}");
}

const TABLES: &str = r#"{"columns": [{"path": "id", "type": "BIGINT NOT NULL"}, {"path": "who.name", "column": "who"}],
 "tables": [
  {"table": "items", "unnest": "items", "columns": [{"path": "id", "column": "order_id"}, {"path": "items.sku", "column": "sku"},
     {"path": "items.n", "column": "n", "type": "DECIMAL(9,2)"}, {"path": "items.at.day", "column": "day"}]},
  {"table": "tags", "unnest": "tags", "columns": [{"path": "id"}, {"path": "tags", "column": "tag"}]}]}"#;

#[test]
fn a_list_to_a_table_each_in_one_version() {
    let sandbox = Sandbox::new();
    sandbox.write("orders.jsonl", ORDERS);
    sandbox.write("tables.json", TABLES);
    let load = ["load", "orders.jsonl", "--into", "store", "--mapping", "tables.json"];
    let dry = sandbox.run(&[&load[..], &["--dry-run"]].concat()).ok().out;
    for told in
        ["3 rows would go into orders", "4 rows would go into items", "3 rows would go into tags"]
    {
        assert!(dry.contains(told), "{dry}");
    }
    let run = sandbox.run(&load).ok();
    for told in ["loaded 3 rows into orders", "loaded 4 rows into items", "loaded 3 rows into tags"]
    {
        assert!(run.out.contains(told), "{}", run.out);
    }
    // One version shows all of them.
    assert_eq!(run.out.matches("version 2,").count(), 3, "{}", run.out);
    assert_eq!(exported(&sandbox, "orders"), "id,\"who\"\n1,\"Ann\"\n2,\"Bob\"\n3,\n");
    assert_eq!(
        exported(&sandbox, "items"),
        "order_id,\"sku\",n,day\n1,\"a\",2.00,\n1,\"b\",1.50,\n3,\"c\",7.00,2026-01-31\n3,,,\n"
    );
    assert_eq!(exported(&sandbox, "tags"), "id,\"tag\"\n1,\"x\"\n3,\"y\"\n3,\"z\"\n");
    // What is printed is taken back, and rows are added to tables that are there.
    let sniff = ["sniff", "orders.jsonl", "--mapping", "tables.json", "--output", "mapping"];
    let sniffed = sandbox.run(&sniff).ok().out;
    sandbox.write("again.json", &sniffed);
    let again =
        ["load", "orders.jsonl", "--into", "store", "--mapping", "again.json", "--report", "json"];
    let report = sandbox.run(&again).ok().out;
    let report: serde_json::Value = serde_json::from_str(&report).unwrap();
    assert_eq!((&report["rows"], &report["version"]), (&3.into(), &3.into()));
    let rows: Vec<_> = report["beside"].as_array().unwrap().iter().map(|t| &t["rows"]).collect();
    assert_eq!(rows, [4, 3]);
    assert_eq!(exported(&sandbox, "tags").lines().count(), 7);
}

#[test]
fn tables_of_a_mapping_are_loaded_all_or_none() {
    let sandbox = Sandbox::new();
    // An item, a key of nobody, a tag of another type behind the sample.
    let many: String =
        (10..3000).map(|id| format!("{{\"id\": {id}, \"tags\": [1, 2]}}\n")).collect();
    let bad =
        "{\"id\": 4, \"items\": [{\"sku\": \"d\", \"n\": \"no\"}]}\n{\"id\": 5, \"odd\": 1}\n";
    sandbox.write("orders.jsonl", format!("{many}{bad}{{\"id\": 6, \"tags\": [\"t\"]}}\n"));
    sandbox.write("tables.json", TABLES);
    let load = [
        "load",
        "orders.jsonl",
        "--into",
        "store",
        "--mapping",
        "tables.json",
        "--sample",
        "4KiB",
        "--chunk-size",
        "4KiB",
    ];
    sandbox.run(&load).fails(1, &["odd"]);
    assert!(
        !sandbox.run(&["sql", "--store", "store", "-c", "SHOW TABLES"]).ok().out.contains("tags")
    );
    // Each table has its rejects, in files of its own.
    let rejects = ["--max-rejects", "2", "--rejects", "bad.csv"];
    let run = sandbox.run(&[&load[..], &rejects].concat()).ok();
    assert!(run.out.contains("loaded 2,992 rows into orders"), "{}", run.out);
    let lines =
        |name: &str| std::fs::read_to_string(sandbox.path(name)).unwrap().lines().count() - 1;
    assert_eq!([lines("bad.csv"), lines("bad.csv.items"), lines("bad.csv.tags")], [1, 2, 1]);
    let tags = exported(&sandbox, "tags");
    assert_eq!((tags.lines().count(), tags.lines().last()), (1 + 2990 * 2 + 1, Some("6,\"t\"")));
    // What they cannot go with is said.
    let share = ["--worker", "1/2", "--load-id", "00000000000000000000000000000001"];
    for (flags, status, told) in [
        (&["--where", "id > 1"][..], 1, "--where is for loads of one table"),
        (&["--rejects", "table:bad"], 2, "--rejects table:"),
        (&["--table", "tags"], 1, "table tags is there twice"),
        (&share, 1, "shares are of one table"),
    ] {
        sandbox.run(&[&load[..], flags].concat()).fails(status, &[told]);
    }
    let load = ["load", "orders.jsonl", "--into", "parquet:folder", "--mapping", "tables.json"];
    sandbox.run(&load).fails(1, &["several tables are loaded together into a store"]);
    let sql = format!(
        "SELECT * FROM read_json('orders.jsonl', mapping => '{}')",
        TABLES.replace('\n', " ")
    );
    sandbox.run(&["sql", "-c", &sql]).fails(1, &["several tables"]);
}
