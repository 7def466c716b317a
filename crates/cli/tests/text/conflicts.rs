//! `--on-conflict`: keys that are in the table, and keys that come twice.

use serde_json::{Value, json};

use crate::support::{Run, Sandbox};

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
        json!({ "added": 2, "replaced": 0, "ignored": 0, "twice": 1, "deleting": 0, "deleted": 0 })
    );
    assert_eq!(rows(&sandbox), ["1,a", "2,b"]);
    let replace = [&["--on-conflict", "replace"], &json_report[..]].concat();
    let found = keys(load(&sandbox, "id,v\n3,x\n2,y\n3,z\n", &replace));
    assert_eq!(
        found,
        json!({ "added": 1, "replaced": 1, "ignored": 0, "twice": 1, "deleting": 0, "deleted": 0 })
    );
    assert_eq!(rows(&sandbox), ["1,a", "2,y", "3,z"]);
    let newest = [&["--on-conflict", "newest:V"], &json_report[..]].concat();
    let found = keys(load(&sandbox, "id,v\n3,y\n2,y2\n1,\n4,q\n4,p\n", &newest));
    assert_eq!(
        found,
        json!({ "added": 1, "replaced": 1, "ignored": 2, "twice": 1, "deleting": 0, "deleted": 0 })
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
    load(&sandbox, text, &with("reject")).fails(2, &["there is no reject"]);
    load(&sandbox, text, &with("upsert"))
        .fails(2, &["none of error, ignore, replace and newest:COLUMN"]);
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
        "added": 0, "replaced": 2, "ignored": 0, "twice": 2, "deleting": 3, "deleted": 1
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
