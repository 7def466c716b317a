//! More inputs than a process may have open files, and inputs that change between planning and reading.

use std::process::Stdio;

use crate::serve::Server;
use crate::support::{Run, Sandbox};

/// Descriptors that the command may have, as `ulimit -n` says it: far fewer than there are inputs.
const DESCRIPTORS: usize = 200;
const INPUTS: usize = 1_000;

/// Runs the command with few descriptors.
fn run_with_few(sandbox: &Sandbox, args: &[&str]) -> Run {
    let command = sandbox.command(args);
    let mut limited = std::process::Command::new("sh");
    limited.args(["-c", &format!("ulimit -n {DESCRIPTORS}; exec \"$@\""), "sh"]);
    limited.arg(command.get_program()).args(command.get_args());
    let dir = command.get_current_dir().unwrap();
    Run::of(limited.current_dir(dir).stdin(Stdio::null()).output().unwrap())
}

/// Inputs of one record each, and the sum of their numbers.
fn write_inputs(sandbox: &Sandbox) -> u64 {
    for number in 0..INPUTS {
        sandbox.write(&format!("in/{number:04}.csv"), format!("{number},text {}\n", number % 7));
    }
    (0..INPUTS as u64).sum()
}

/// A load of more inputs than descriptors failed with `Too many open files`: each input kept one.
#[test]
fn a_load_opens_inputs_when_it_reads_them() {
    let sandbox = Sandbox::new();
    let sum = write_inputs(&sandbox);
    for (table, flags) in [("given", &["--columns", "a BIGINT, b VARCHAR"][..]), ("inferred", &[])]
    {
        let mut args = vec!["load", "in/*.csv", "--into", "store", "--table", table, "--no-header"];
        args.extend(flags);
        run_with_few(&sandbox, &args).ok();
        let answer = sandbox.query(&format!("SELECT count(*), sum({}) FROM {table}", first(table)));
        assert_eq!(answer, [format!("{INPUTS},{sum}")]);
    }
}

fn first(table: &str) -> &str {
    if table == "given" { "a" } else { "c1" }
}

#[test]
fn members_of_an_archive_and_compressed_inputs_are_opened_when_they_are_read() {
    let sandbox = Sandbox::new();
    let sum = write_inputs(&sandbox);
    for (make, input) in [
        ("gzip -k in/*.csv", "in/*.csv.gz"),
        ("tar cf all.tar in/*.csv", "all.tar!in/*.csv"),
        ("python3 -m zipfile -c all.zip in/0*.csv", "all.zip!*.csv"),
    ] {
        let made = std::process::Command::new("sh")
            .args(["-c", make])
            .current_dir(sandbox.path(""))
            .status()
            .unwrap();
        assert!(made.success(), "{make}");
        let args = ["load", input, "--into", "store", "--table", "t", "--replace"];
        let flags = ["--columns", "a BIGINT, b VARCHAR", "--no-header"];
        run_with_few(&sandbox, &[&args[..], &flags[..]].concat()).ok();
        let answer = sandbox.query("SELECT count(*), sum(a) FROM t");
        assert_eq!(answer, [format!("{INPUTS},{sum}")], "{input}");
    }
}

/// Client and server had a file open for each input with `--placement pipe` and `seq`; 1,500 were too many.
#[test]
fn a_load_into_a_server_has_few_files_open_wherever_it_is_parsed() {
    let sandbox = Sandbox::new();
    let sum = write_inputs(&sandbox);
    let server = Server::start_with_few(&sandbox, DESCRIPTORS);
    for placement in ["all", "none", "adaptive", "pipe", "seq"] {
        let url = format!("{}/{placement}", server.url());
        let args = ["load", "in/*.csv", "--into", &url, "--placement", placement, "--no-header"];
        let flags = ["--columns", "a BIGINT, b VARCHAR"];
        run_with_few(&sandbox, &[&args[..], &flags[..]].concat()).ok();
    }
    drop(server);
    for placement in ["\"all\"", "none", "adaptive", "pipe", "seq"] {
        let answer = sandbox.query(&format!("SELECT count(*), sum(a) FROM {placement}"));
        assert_eq!(answer, [format!("{INPUTS},{sum}")], "{placement}");
    }
}
