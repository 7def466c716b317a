//! Documents of JSON, among them those without records, and what is told of those that are none.

use crate::support::Sandbox;

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
