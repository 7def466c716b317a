//! Documents of JSON, among them those without records, and what is told of those that are none.

use crate::support::Sandbox;

#[test]
fn a_record_that_is_too_long_is_told_with_its_line() {
    let sandbox = Sandbox::new();
    let text = format!("{{\"a\":\"x\"}}\n{{\"a\":\"{}\"}}\n", "y".repeat(40 << 20));
    sandbox.write("long.jsonl", text);
    let load = ["load", "long.jsonl", "--into", "store", "--memory", "64MiB"];
    let run = sandbox.run(&load).fails(1, &["long.jsonl:2 (byte 10)", "a third of --memory"]);
    assert!(!run.err.contains("--quote"), "{run:?}");
}
