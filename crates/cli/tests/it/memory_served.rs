//! `--memory` and `--load-memory` bound what both sides of a load into a server hold, and many small inputs.

use crate::memory::{MEMORY, PEAK_KIB_MAX, long_values};
use crate::serve::Server;
use crate::support::Sandbox;

/// Most KiB that loads may add to what a server held before them, of which pages of the program are the most, more or fewer as
/// the system has them at hand: the budget and a quarter more.
const SERVER_KIB_MAX: u64 = (64 + 16) << 10;

/// Loads `input` into a server of its own, and checks what both sides held, and the rows and rejects.
fn load(sandbox: &Sandbox, input: &str, placement: &str, flags: &[&str], expected: [u64; 2]) {
    let server = Server::start(sandbox, &["--load-memory", MEMORY, "--memory", MEMORY]);
    let idle = server.peak_kib();
    let url = format!("{}/t", server.url());
    let mut args = vec!["load", input, "--into", &url, "--placement", placement, "--replace"];
    args.extend(["--memory", MEMORY, "--threads", "2", "--no-header", "--report", "json"]);
    args.extend(flags);
    let run = sandbox.run(&args).ok();
    let report: serde_json::Value = serde_json::from_str(&run.out).unwrap();
    let number = |name: &str| report[name].as_u64().unwrap();
    assert_eq!([number("rows"), number("rejects")], expected, "{input} {placement}");
    let client = number("peak_memory_bytes") >> 10;
    let added = server.peak_kib() - idle;
    let told =
        format!("{input} {placement}: {client} KiB, and {added} at the server beside {idle}");
    assert!(client < PEAK_KIB_MAX && added < SERVER_KIB_MAX, "{told}");
}

/// A seal had the rejects of its partition, 450 bytes for each record of two bytes. It came without credit, was decoded,
/// and copied to be journalled: where all is rejected, a server with 256 MiB held 1.3 GB, and the client 421 MiB.
#[test]
fn rejects_on_the_way_to_a_server_stay_within_the_budget() {
    let sandbox = Sandbox::new();
    let count = 700_000u64;
    sandbox.write("t.csv", "x\n".repeat(count as usize));
    let flags =
        ["--columns", "a BIGINT, b BIGINT", "--max-rejects", "100%", "--rejects", "rejects.csv"];
    for placement in ["all", "none"] {
        load(&sandbox, "t.csv", placement, &flags, [0, count]);
        let told = std::fs::read_to_string(sandbox.path("rejects.csv")).unwrap();
        assert_eq!(told.lines().count() as u64, count + 1);
        let last = format!("t.csv,{count},{},", 2 * (count - 1));
        assert!(told.lines().last().unwrap().starts_with(&last), "{last}");
    }
}

/// Each of four connections let a message of 64 MiB through, and its values were there beside it: 438 MiB at a server that
/// has 256.
#[test]
fn long_values_on_the_way_to_a_server_stay_within_the_budget() {
    let sandbox = Sandbox::new();
    let count = 5;
    sandbox.write("t.csv", long_values(count, 14 << 20, ",end\n"));
    for placement in ["all", "none"] {
        load(&sandbox, "t.csv", placement, &[], [count as u64, 0]);
    }
}

/// Of an input that comes in order each part had the room of a chunk: 16 GB for 10,000 inputs of a line.
#[test]
fn many_inputs_of_a_line_stay_within_the_budget() {
    let sandbox = Sandbox::new();
    let count = 3_000;
    for number in 0..count {
        sandbox.write(&format!("in/{number:05}.csv"), format!("{number},text\n"));
    }
    let flags = ["--columns", "a BIGINT, b VARCHAR"];
    load(&sandbox, "in/*.csv", "pipe", &flags, [count, 0]);
    let args = ["load", "in/*.csv", "--into", "store", "--table", "u", "--memory", MEMORY];
    let more = ["--encoding", "iso-8859-1", "--no-header", "--report", "json"];
    let run = sandbox.run(&[&args[..], &flags, &more].concat()).ok();
    let report: serde_json::Value = serde_json::from_str(&run.out).unwrap();
    assert_eq!(report["rows"].as_u64(), Some(count));
    let peak = report["peak_memory_bytes"].as_u64().unwrap() >> 10;
    assert!(peak < PEAK_KIB_MAX, "{peak} KiB");
}
