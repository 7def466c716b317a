//! Documents of JSON, among them those without records, and what is told of those that are none.

use crate::support::Sandbox;

fn exported(sandbox: &Sandbox, table: &str) -> String {
    sandbox.run(&["export", "store", table]).ok().out.replace('\r', "")
}

#[test]
fn a_bad_record_that_is_the_only_one_is_told_with_its_place() {
    let sandbox = Sandbox::new();
    let load = ["load", "c.json", "--into", "store", "--table", "t"];
    for (text, told) in [
        (
            "\n{\"a\":1,\"a\":2}\n",
            "c.json:2 (byte 1): \"a\" is a key that its object has twice (column a)",
        ),
        (
            "[{\"a\":{\"b\":01}}]",
            "c.json:1 (byte 1): \"01\" is no JSON: no number is written so (column a.b)",
        ),
        ("[{\"a\":}]", "c.json:1 (byte 1): \"}\" is no JSON: no value begins so (column a)"),
    ] {
        sandbox.write("c.json", text);
        sandbox.run(&load).fails(1, &[told, "--max-rejects", "--columns"]);
        let known =
            ["--columns", "a BIGINT", "--format", "json", "--max-rejects", "1", "--replace"];
        sandbox.run(&[&["load", "c.json", "--into", "known"], &known[..]].concat()).ok();
    }
}

#[test]
fn a_record_over_lines_behind_one_on_a_line_is_read() {
    let sandbox = Sandbox::new();
    sandbox.write("x.json", "{\"a\":1}\n{\"a\":[1,\n 2]}\n");
    let run = sandbox.run(&["load", "x.json", "--into", "store"]).ok();
    assert!(run.err.contains("documents or lists"), "{run:?}");
    assert_eq!(exported(&sandbox, "x").lines().count(), 4);
    // A line that is cut short is none with the next.
    sandbox.write("cut.json", "{\"a\":1}\n{\"a\":[1,\n{\"a\":2}\n");
    let load = ["load", "cut.json", "--into", "store"];
    let told = "cut.json:2 (byte 8): \"{\"a\":[1,\" begins a record that does not end on its line";
    sandbox.run(&load).fails(1, &[told, "--format json"]);
    sandbox.run(&[&load[..], &["--max-rejects", "1"]].concat()).ok();
    assert_eq!(exported(&sandbox, "cut").lines().count(), 3);
}

#[test]
fn a_key_is_told_in_one_pair_of_quotes() {
    let sandbox = Sandbox::new();
    sandbox.write("x.jsonl", "{\"a\":1}\n{\"c d\":2}\n");
    let load = ["load", "x.jsonl", "--into", "store", "--columns", "a BIGINT"];
    sandbox
        .run(&load)
        .fails(1, &["x.jsonl:2 (byte 8): \"c d\" is a key of no column (column c d;"]);
}

#[test]
fn too_many_columns_are_told_with_the_file() {
    let sandbox = Sandbox::new();
    let keys: Vec<String> = (0..5000).map(|n| format!("\"k{n}\":1")).collect();
    sandbox.write("many.json", format!("{{{}}}\n", keys.join(",")));
    sandbox.write("many.csv", format!("{}\n", vec!["1"; 5000].join(",")));
    for name in ["many.json", "many.csv"] {
        let told = format!("{name}: a table has 1 to 4096 columns, not 5000");
        sandbox.run(&["load", name, "--into", "store"]).fails(1, &[&told]);
    }
}

#[test]
fn a_record_that_is_too_long_is_told_with_its_line() {
    let sandbox = Sandbox::new();
    let text = format!("{{\"a\":\"x\"}}\n{{\"a\":\"{}\"}}\n", "y".repeat(40 << 20));
    sandbox.write("long.jsonl", text);
    let load = ["load", "long.jsonl", "--into", "store", "--memory", "64MiB"];
    let run = sandbox.run(&load).fails(1, &["long.jsonl:2 (byte 10)", "a third of --memory"]);
    assert!(!run.err.contains("--quote"), "{run:?}");
}
