//! `--on-conflict`: keys that are in the table, and keys that come twice.

use serde_json::{Value, json};

use crate::support::{Run, Sandbox, files_below};

fn load(sandbox: &Sandbox, text: &str, flags: &[&str]) -> Run {
    sandbox.write("t.csv", text);
    let target = ["load", "t.csv", "--into", "store", "--table", "t"];
    sandbox.run(&[&target[..], flags].concat())
}

fn rows(sandbox: &Sandbox) -> Vec<String> {
    let out = sandbox.run(&["export", "store", "t", "--quote", "needed"]).ok().out;
    let mut rows: Vec<String> = out.lines().skip(1).map(str::to_owned).collect();
    rows.sort();
    rows
}

#[test]
fn rows_give_way_by_the_order_of_the_input_and_are_counted() {
    let sandbox = Sandbox::new();
    let keys = |run: Run| -> Value {
        let report: Value = serde_json::from_str(&run.ok().out).unwrap();
        assert_eq!(
            report["rows"],
            json!(
                report["keys"]["added"].as_u64().unwrap()
                    + report["keys"]["replaced"].as_u64().unwrap()
            )
        );
        report["keys"].clone()
    };
    let json_report = ["--report", "json"];
    let first = ["--primary-key", "id", "--on-conflict", "ignore", "--report", "json"];
    let found = keys(load(&sandbox, "id,v\n1,a\n2,b\n1,c\n", &first));
    assert_eq!(
        found,
        json!({ "added": 2, "replaced": 0, "ignored": 0, "twice": 1, "rejected": 0, "deleting": 0, "deleted": 0 })
    );
    assert_eq!(rows(&sandbox), ["1,a", "2,b"]);
    let replace = [&["--on-conflict", "replace"], &json_report[..]].concat();
    let found = keys(load(&sandbox, "id,v\n3,x\n2,y\n3,z\n", &replace));
    assert_eq!(
        found,
        json!({ "added": 1, "replaced": 1, "ignored": 0, "twice": 1, "rejected": 0, "deleting": 0, "deleted": 0 })
    );
    assert_eq!(rows(&sandbox), ["1,a", "2,y", "3,z"]);
    let newest = [&["--on-conflict", "newest:V"], &json_report[..]].concat();
    let found = keys(load(&sandbox, "id,v\n3,y\n2,y2\n1,\n4,q\n4,p\n", &newest));
    assert_eq!(
        found,
        json!({ "added": 1, "replaced": 1, "ignored": 2, "twice": 1, "rejected": 0, "deleting": 0, "deleted": 0 })
    );
    assert_eq!(rows(&sandbox), ["1,a", "2,y2", "3,z", "4,q"]);
    let text = load(&sandbox, "id,v\n1,b\n5,c\n", &["--on-conflict", "ignore"]).ok().out;
    assert!(text.contains("loaded 1 rows into t"), "{text}");
    let line = "by their keys 1 rows are new and 0 replaced a row of the table, 1 were left out for one of the table\n";
    assert!(text.contains(line), "{text}");
}

#[test]
fn an_error_names_the_key_and_leaves_the_table_as_it_was() {
    let sandbox = Sandbox::new();
    load(&sandbox, "id,v\n1,a\n2,b\n", &["--primary-key", "id"]).ok();
    let there =
        ["the key (2) of PRIMARY KEY (id) is in the table already (row 3 of the input has it"];
    load(&sandbox, "id,v\n7,a\n8,b\n2,c\n", &[]).fails(1, &there);
    let twice =
        ["the key (7) of PRIMARY KEY (id) comes twice among them (rows 1 and 3 of the input)"];
    load(&sandbox, "id,v\n7,a\n8,b\n7,c\n", &["--on-conflict", "error"]).fails(1, &twice);
    assert_eq!(rows(&sandbox), ["1,a", "2,b"]);
}

#[test]
fn what_cannot_be_done_is_said_before_anything_is_read() {
    let sandbox = Sandbox::new();
    let text = "id,v\n1,a\n";
    load(&sandbox, text, &["--on-conflict", "replace"]).fails(1, &["it has no PRIMARY KEY"]);
    let keyed = ["--primary-key", "id", "--on-conflict"];
    let with = |rule: &'static str| [&keyed[..], &[rule]].concat();
    load(&sandbox, text, &with("newest:w"))
        .fails(1, &["newest:w: table t has no such column (it has id, v)"]);
    load(&sandbox, text, &with("upsert"))
        .fails(2, &["none of error, reject, ignore, replace and newest:COLUMN"]);
    let parquet = ["load", "t.csv", "--into", "parquet:out", "--on-conflict", "replace"];
    sandbox
        .run(&parquet)
        .fails(1, &["for a store of this machine", "leave --on-conflict and --delete-where out"]);
}

#[test]
fn records_of_a_change_feed_delete() {
    let sandbox = Sandbox::new();
    load(&sandbox, "id,op\n1,I\n2,I\n3,I\n", &["--primary-key", "id"]).ok();
    let feed = "id,op\n1,D\n2,U\n4,I\n5,D\n3,D\n3,I\n4,D\n";
    let flags = ["--delete-where", "OP=D", "--report", "json"];
    let report: Value = serde_json::from_str(&load(&sandbox, feed, &flags).ok().out).unwrap();
    let counts = json!({
        "added": 0, "replaced": 2, "ignored": 0, "twice": 2, "rejected": 0, "deleting": 3, "deleted": 1
    });
    assert_eq!((&report["keys"], &report["rows"]), (&counts, &json!(2)));
    assert_eq!(rows(&sandbox), ["2,U", "3,I"]);
    let text = load(&sandbox, "id,op\n2,D\n", &["--delete-where", "op=D"]).ok().out;
    assert!(text.contains("1 say that their keys go, 1 rows of the table went by these"), "{text}");
    assert_eq!(rows(&sandbox), ["3,I"]);
    let with = |flags: &[&str]| load(&sandbox, "id,op\n3,D\n", flags);
    with(&["--delete-where", "op"]).fails(1, &["is not COLUMN=VALUE"]);
    with(&["--delete-where", "x=D"]).fails(1, &["table t has no such column (it has id, op)"]);
    with(&["--delete-where", "id=D"]).fails(1, &["\"D\" is not BIGINT"]);
    with(&["--delete-where", "op=D", "--on-conflict", "ignore"])
        .fails(1, &["rows of the table stay"]);
    assert_eq!(rows(&sandbox), ["3,I"]);
}

#[test]
fn records_whose_keys_are_there_are_rejects_with_their_places() {
    let sandbox = Sandbox::new();
    load(&sandbox, "id,v\n1,a\n2,b\n", &["--primary-key", "id"]).ok();
    let reject = ["--on-conflict", "reject"];
    let with = |flags: &[&'static str]| [&reject[..], flags].concat();
    // Lines are those of the input, though a record has several and another is a reject for itself.
    let text = "id,v\n7,\"x\ny\"\nno,z\n2,c\n8,d\n7,e\n1,f\n";
    load(&sandbox, text, &reject).fails(1, &["t.csv:4:1 (byte 13): \"no\" is not BIGINT"]);
    let few = load(&sandbox, text, &with(&["--max-rejects", "1"]));
    few.fails(
        1,
        &["t.csv:5 (byte 18): \"2\" is a key of PRIMARY KEY (id) that is in the table already (column id"],
    );
    assert_eq!(rows(&sandbox), ["1,a", "2,b"]);
    let flags = with(&["--max-rejects", "9", "--rejects", "rejects.csv", "--report", "json"]);
    let report: Value = serde_json::from_str(&load(&sandbox, text, &flags).ok().out).unwrap();
    assert_eq!((&report["rows"], &report["rejects"]), (&json!(2), &json!(4)));
    assert_eq!(report["keys"]["rejected"], json!(3));
    assert_eq!(rows(&sandbox), ["1,a", "2,b", "7,\"x", "8,d", "y\""]);
    let rejects = std::fs::read_to_string(sandbox.path("rejects.csv")).unwrap();
    let wanted = [
        "t.csv,4,13,id,no,is not BIGINT: not a number,\"no,z\"",
        "t.csv,5,18,id,2,is a key of PRIMARY KEY (id) that is in the table already,\"2,c\"",
        "t.csv,7,26,id,7,is a key of PRIMARY KEY (id) that came before in the load,\"7,e\"",
        "t.csv,8,30,id,1,is a key of PRIMARY KEY (id) that is in the table already,\"1,f\"",
    ];
    assert_eq!(rejects.lines().skip(1).collect::<Vec<_>>(), wanted);
}

#[test]
fn rejects_of_keys_are_told_of_streams_and_of_typed_files() {
    let sandbox = Sandbox::new();
    load(&sandbox, "id,v\n1,a\n2,b\n", &["--primary-key", "id"]).ok();
    let text = "id,v\n3,c\n2,x\n3,y\n";
    let flags =
        ["--on-conflict", "reject", "--max-rejects", "2", "--report", "json", "--rejects", "r.csv"];
    let target = ["--into", "store", "--table", "t"];
    let places = |sandbox: &Sandbox| -> Vec<String> {
        let rejects = std::fs::read_to_string(sandbox.path("r.csv")).unwrap();
        rejects
            .lines()
            .skip(1)
            .map(|l| l.split(',').take(2).collect::<Vec<_>>().join(","))
            .collect()
    };
    let stdin = [&["load", "-"], &target[..], &flags[..]].concat();
    sandbox.run_with_input(&stdin, text.as_bytes()).ok();
    assert_eq!(places(&sandbox), ["-,3", "-,4"]);
    assert_eq!(rows(&sandbox), ["1,a", "2,b", "3,c"]);
    sandbox.write("u.csv", "id,v\n4,d\n2,x\n4,y\n");
    sandbox.run(&["load", "u.csv", "--into", "parquet:made"]).ok();
    let mut made = files_below(&sandbox.path("made")).into_iter();
    let made = made.find(|path| path.extension().is_some_and(|e| e == "parquet")).unwrap();
    std::fs::copy(made, sandbox.path("u.parquet")).unwrap();
    let lines = r#"{"id":5,"v":"d"}{"id":2,"v":"x"}{"id":5,"v":"y"}"#.replace("}{", "}\n{");
    sandbox.write("u.jsonl", lines);
    for file in ["u.parquet", "u.jsonl"] {
        let args = [&["load", file], &target[..], &flags[..]].concat();
        let report: Value = serde_json::from_str(&sandbox.run(&args).ok().out).unwrap();
        assert_eq!((&report["rows"], &report["rejects"]), (&json!(1), &json!(2)), "{file}");
        assert_eq!(places(&sandbox), [format!("{file},2"), format!("{file},3")], "{file}");
    }
}

#[test]
fn floats_and_keys_of_several_columns_are_rejects_as_they_are_equal() {
    let sandbox = Sandbox::new();
    let columns = "x DOUBLE, y VARCHAR, n BIGINT";
    let text = "0,a,1\nNaN,a,2\n-0,a,3\n-0,b,4\nnan,a,5\n";
    let flags = ["--columns", columns, "--primary-key", "x,y", "--on-conflict", "reject"];
    let more = ["--no-header", "--max-rejects", "5", "--rejects", "r.csv"];
    load(&sandbox, text, &[&flags[..], &more].concat()).ok();
    let rejects = std::fs::read_to_string(sandbox.path("r.csv")).unwrap();
    let what = "is a key of PRIMARY KEY (x, y) that came before in the load";
    let wanted = [
        format!("t.csv,3,14,\"x, y\",\"-0.0, a\",\"{what}\",\"-0,a,3\""),
        format!("t.csv,5,28,\"x, y\",\"NaN, a\",\"{what}\",\"nan,a,5\""),
    ];
    assert_eq!(rejects.lines().skip(1).collect::<Vec<_>>(), wanted);
    assert_eq!(rows(&sandbox).len(), 3);
}
