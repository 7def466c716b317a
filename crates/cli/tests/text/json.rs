//! Documents of JSON, among them those without records, and what is told of those that are none.

use crate::support::Sandbox;

fn exported(sandbox: &Sandbox, table: &str) -> String {
    sandbox.run(&["export", "store", table]).ok().out.replace('\r', "")
}

/// Symptom: with an empty list first, the others were read as delimited text; with an empty object, or `--format`, the load
/// failed. The first input alone told what all are, and the columns.
#[test]
fn documents_without_records_tell_nothing_of_the_others() {
    for empty in ["[]\n", "[ ]", "{}\n", "[{}]", "[\n  {},\n  {}\n]\n", "\n"] {
        let sandbox = Sandbox::new();
        for (number, text) in
            [empty, "[{\"a\":1}]\n", empty, "[{\"a\":2,\n \"b\":\"x\"}]\n"].iter().enumerate()
        {
            sandbox.write(&format!("d/{number}.json"), text);
        }
        for (table, flags) in
            [("plain", &[][..]), ("said", &["--format", "json"]), ("again", &["--replace"])]
        {
            let load = ["load", "d/*.json", "--into", "store", "--table", table];
            sandbox.run(&[&load[..], flags].concat()).ok();
            let rows = exported(&sandbox, table);
            let (head, rows) = rows.split_once('\n').unwrap();
            assert_eq!(head, "a,\"b\"", "{empty:?} {table}");
            // An object without keys is a row.
            let with_keys: Vec<&str> = rows.lines().filter(|line| *line != ",").collect();
            assert_eq!(with_keys, ["1,", "2,\"x\""], "{empty:?} {table}");
            let objects = empty.matches("{}").count();
            assert_eq!(rows.lines().count(), 2 + 2 * objects, "{empty:?} {table}");
        }
        // Columns that are known make nothing else of them.
        sandbox.run(&["load", "d/*.json", "--into", "store", "--table", "plain"]).ok();
        let one = ["load", "d/0.json", "--into", "store", "--table", "plain"];
        sandbox.run(&one).ok();
    }
}

#[test]
fn a_word_in_place_of_a_document_is_a_reject() {
    let sandbox = Sandbox::new();
    sandbox.write("d/1.json", "null\n");
    sandbox.write("d/2.json", "[{\"a\":1}]\n");
    let load = ["load", "d/*.json", "--into", "store", "--table", "t", "--format", "json"];
    sandbox.run(&load).fails(1, &["1.json:1 (byte 0): \"null\" is a record that is no object"]);
    sandbox.run(&[&load[..], &["--max-rejects", "1"]].concat()).ok();
    assert_eq!(exported(&sandbox, "t"), "\"a\"\n1\n");
}

#[test]
fn documents_that_tell_no_columns_say_so() {
    let sandbox = Sandbox::new();
    let load = ["load", "x.json", "--into", "store", "--table", "t"];
    for empty in ["[]", "[ ]\n"] {
        sandbox.write("x.json", empty);
        let run = sandbox.run(&load).ok();
        assert!(run.err.contains("nothing to load"), "{run:?}");
        sandbox.run(&["sniff", "x.json"]).fails(1, &["x.json holds no record", "--columns"]);
    }
    for empty in ["{}", "[{}]", "{}\n{}\n"] {
        sandbox.write("x.json", empty);
        sandbox
            .run(&load)
            .fails(1, &["x.json looks like JSON", "no record has a value", "--columns"]);
    }
}

/// Symptom: `"c.json looks like JSON, and its first record is a key that its object has twice"`.
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

/// Symptom: the first record alone told that each stands on its line, and a later one that goes over lines was no JSON.
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

/// Symptom: `--quote none` was advised, which is refused for JSON, and a `--memory` that did not do.
#[test]
fn a_record_that_is_too_long_is_told_with_its_line() {
    let sandbox = Sandbox::new();
    let text = format!("{{\"a\":\"x\"}}\n{{\"a\":\"{}\"}}\n", "y".repeat(40 << 20));
    sandbox.write("long.jsonl", text);
    let load = ["load", "long.jsonl", "--into", "store", "--memory", "64MiB"];
    let run = sandbox.run(&load).fails(1, &["long.jsonl:2 (byte 10)", "a third of --memory"]);
    assert!(!run.err.contains("--quote"), "{run:?}");
}
