//! Answers that come as they are made: their memory, their end, their forms.

use std::io::{BufRead, BufReader, Read};
use std::process::{Child, Stdio};
use std::time::{Duration, Instant};

use crate::serve::Server;
use crate::support::{Run, Sandbox};

/// An answer of ten million rows, some 190 MB as CSV.
const LARGE: &str =
    "SELECT value AS id, value % 1000 AS few, 'some text' AS t FROM range(10000000)";
/// Most KiB that who asks may have held: the engine and its threads, some batches.
const PEAK_KIB_MAX: u64 = 200 << 10;

/// What the kernel counted of a child that has ended, and may still be waited for.
fn peak_kib(child: &Child) -> Option<u64> {
    let status = std::fs::read_to_string(format!("/proc/{}/status", child.id())).ok()?;
    let line = status.lines().find(|line| line.starts_with("VmHWM:"))?;
    line.split_whitespace().nth(1)?.parse().ok()
}

/// Reads all of an answer; the bytes, and the most KiB that who made it held.
fn read_all(sandbox: &Sandbox, store: &str, form: &str) -> (u64, u64) {
    let args = ["sql", "--store", store, "-c", LARGE, "--output", form];
    let mut child = sandbox.command(&args).stdout(Stdio::piped()).spawn().unwrap();
    let mut out = child.stdout.take().unwrap();
    let (mut bytes, mut peak, mut part) = (0, 0, vec![0; 1 << 20]);
    loop {
        let count = out.read(&mut part).unwrap();
        if count == 0 {
            break;
        }
        bytes += count as u64;
        peak = peak.max(peak_kib(&child).unwrap_or(0));
    }
    assert!(child.wait().unwrap().success());
    (bytes, peak)
}

/// Reads a line of an answer and goes away, as `head -n 1` does; the line, how long it took, and the most KiB.
fn read_one(sandbox: &Sandbox, store: &str, form: &str) -> (String, Duration, u64) {
    let started = Instant::now();
    let args = ["sql", "--store", store, "-c", LARGE, "--output", form];
    let mut command = sandbox.command(&args);
    let mut child = command.stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().unwrap();
    let mut line = String::new();
    BufReader::new(child.stdout.take().unwrap()).read_line(&mut line).unwrap();
    let mut peak = 0;
    let status = loop {
        peak = peak.max(peak_kib(&child).unwrap_or(0));
        match child.try_wait().unwrap() {
            Some(status) => break status,
            None => std::thread::sleep(Duration::from_millis(5)),
        }
    };
    let mut said = String::new();
    child.stderr.take().unwrap().read_to_string(&mut said).unwrap();
    assert!(status.success() && said.is_empty(), "{status}: {said}");
    (line, started.elapsed(), peak)
}

fn with_store() -> Sandbox {
    let sandbox = Sandbox::new();
    sandbox.write("t.csv", "a,b\n1,x\n2,\n");
    sandbox.run(&["load", "t.csv", "--into", "store"]).ok();
    sandbox
}

/// 1.5 million rows as a table took 4.5 GB, and their first line 16.8 s.
#[test]
fn memory_does_not_depend_on_the_size_of_an_answer() {
    let sandbox = with_store();
    for form in ["csv", "table"] {
        let (bytes, peak) = read_all(&sandbox, "store", form);
        println!("{form}: {bytes} bytes, {peak} KiB");
        assert!(bytes > 150_000_000 && peak < PEAK_KIB_MAX, "{form}: {bytes} bytes, {peak} KiB");
        let (line, took, peak) = read_one(&sandbox, "store", form);
        println!("{form}, one line: {took:?}, {peak} KiB");
        assert!(line.starts_with(if form == "csv" { "id,few,t\n" } else { "+-" }), "{line}");
        assert!(took < Duration::from_secs(10) && peak < PEAK_KIB_MAX, "{took:?}, {peak} KiB");
    }
}

#[test]
fn memory_does_not_depend_on_the_size_of_a_servers_answer() {
    let sandbox = with_store();
    let server = Server::start(&sandbox, &[]);
    let (bytes, peak) = read_all(&sandbox, &server.url(), "csv");
    println!("client: {bytes} bytes, {peak} KiB; server: {} KiB", server.peak_kib());
    assert!(bytes > 150_000_000 && peak < PEAK_KIB_MAX, "{bytes} bytes, {peak} KiB");
    let (line, took, peak) = read_one(&sandbox, &server.url(), "csv");
    println!("one line: {took:?}, {peak} KiB");
    assert!(line == "id,few,t\n" && took < Duration::from_secs(10), "{line}: {took:?}");
    assert!(peak < PEAK_KIB_MAX && server.peak_kib() < PEAK_KIB_MAX, "{peak} KiB");
    assert!(server.rests(), "the server still makes rows");
}

/// The reader has gone, and no row comes that would find out.
#[test]
fn a_statement_ends_with_its_reader_also_while_it_makes_no_rows() {
    let sandbox = with_store();
    let slow =
        "SELECT value AS v FROM range(1000000000) WHERE value = 3 OR value % 7 + value % 11 > 100";
    let args = ["sql", "--store", "store", "-c", slow, "--output", "csv"];
    let mut child = sandbox.command(&args).stdout(Stdio::piped()).spawn().unwrap();
    let mut line = String::new();
    BufReader::new(child.stdout.take().unwrap()).read_line(&mut line).unwrap();
    let started = Instant::now();
    assert!(child.wait().unwrap().success());
    assert!(line == "v\n" && started.elapsed() < Duration::from_secs(5), "{:?}", started.elapsed());
}

#[test]
fn an_interrupt_ends_the_command_and_leaves_no_file() {
    let sandbox = with_store();
    let args = ["sql", "--store", "store", "-c", LARGE, "-c", LARGE, "-o", "x.csv"];
    let mut child = sandbox.command(&args).stderr(Stdio::piped()).spawn().unwrap();
    let begun = || std::fs::read_dir(sandbox.path("")).unwrap().flatten().count() > 2;
    while !begun() {
        std::thread::sleep(Duration::from_millis(10));
    }
    std::thread::sleep(Duration::from_millis(300));
    let pid = rustix::process::Pid::from_raw(child.id().cast_signed()).unwrap();
    rustix::process::kill_process(pid, rustix::process::Signal::INT).unwrap();
    assert_eq!(child.wait().unwrap().code(), Some(130));
    let mut said = String::new();
    child.stderr.take().unwrap().read_to_string(&mut said).unwrap();
    assert!(said.contains("cancelled"), "{said}");
    assert!(!begun(), "a file is left");
}

#[test]
fn files_have_the_form_of_their_ending() {
    let sandbox = with_store();
    let sql = |flags: &[&str]| {
        let args = ["sql", "--store", "store", "-c", "SELECT a, b FROM t ORDER BY a"];
        sandbox.run(&[&args[..], flags].concat())
    };
    let text = |name: &str| std::fs::read_to_string(sandbox.path(name)).unwrap();
    for (name, expected) in [
        ("x.csv", "a,b\n1,x\n2,\n"),
        ("x.tsv", "a\tb\n1\tx\n2\t\\N\n"),
        ("x.json", "[{\"a\":1,\"b\":\"x\"},\n{\"a\":2,\"b\":null}]\n"),
        ("x.jsonl", "{\"a\":1,\"b\":\"x\"}\n{\"a\":2,\"b\":null}\n"),
        ("x.md", "| a | b |\n|---:|---|\n| 1 | x |\n| 2 |  |\n"),
    ] {
        assert_eq!(sql(&["-o", name]).ok().out, "");
        assert_eq!(text(name), expected);
    }
    sql(&["-o", "x.txt", "--output", "csv"]).ok();
    assert_eq!(text("x.txt"), "a,b\n1,x\n2,\n");
    sql(&["-o", "x.xls"]).fails(1, &["x.xls", ".parquet", "--output"]);
    // Files of Arrow and Parquet load as what they were made of; a load of Arrow proves its types.
    sql(&["-o", "x.arrow"]).ok();
    sandbox.run(&["load", "x.arrow", "--into", "store", "--table", "again"]).ok();
    assert_eq!(sandbox.query("SELECT * FROM again ORDER BY a"), ["1,x", "2,"]);
    sql(&["-o", "x.parquet"]).ok();
    assert!(std::fs::read(sandbox.path("x.parquet")).unwrap().starts_with(b"PAR1"));
    sandbox
        .run(&["sql", "--store", "store", "-c", "SELECT 1; SELECT 2", "-o", "y.parquet"])
        .fails(1, &["y.parquet", "holds one"]);
    assert!(!sandbox.path("y.parquet").exists());
    sandbox
        .run(&["sql", "--store", "store", "-c", "SELECT 1 AS a; SELECT 2 AS b", "-o", "y.csv"])
        .ok();
    assert_eq!(text("y.csv"), "a\n1\nb\n2\n");
}

/// What TSV writes is what a load of PostgreSQL's text reads.
#[test]
fn tsv_loads_as_the_same_rows() {
    let sandbox = with_store();
    let rows = "SELECT 1 AS n, 'a' || chr(9) || 'b' || chr(10) || '\\x' AS t \
                UNION ALL SELECT 2, NULL UNION ALL SELECT 3, ''";
    sandbox.run(&["sql", "--store", "store", "-c", rows, "-o", "x.tsv"]).ok();
    let flags = [
        "--delimiter",
        "tab",
        "--null",
        "\\N",
        "--escape",
        "\\",
        "--escapes",
        "letters",
        "--quote",
        "none",
    ];
    let args = ["load", "x.tsv", "--into", "store", "--table", "u"];
    sandbox.run(&[&args[..], &flags].concat()).ok();
    let same = "SELECT count(*) FROM u WHERE (n = 1 AND t = 'a' || chr(9) || 'b' || chr(10) || '\\x') OR (n = 2 AND t IS NULL) OR (n = 3 AND t = '')";
    assert_eq!(sandbox.query(same), ["3"]);
}

#[test]
fn scripts_say_which_statement_failed_and_where() {
    let sandbox = with_store();
    sandbox.write(
        "a.sql",
        "-- one\nSELECT 1 AS a;\n\nSELECT 2 AS b;\n\n\nSELECT nothing\nFROM t;\nSELECT 3 AS c;",
    );
    sandbox.write("b.sql", "\\output csv\nSELECT 5 AS a; \\i c.sql\nSELECT 6 AS b");
    sandbox.write("c.sql", "SELECT 7 AS c");
    let run = |flags: &[&str]| sandbox.run(&[&["sql", "--store", "store"][..], flags].concat());
    let failed = run(&["-f", "a.sql", "--output", "csv"]);
    assert_eq!(failed.out, "a\n1\nb\n2\n");
    failed.fails(1, &["error: a.sql:7: statement 3: ", "nothing"]);
    assert_eq!(run(&["-f", "b.sql"]).ok().out, "a\n5\nc\n7\nb\n6\n");
    run(&["-f", "none.sql"]).fails(1, &["none.sql"]);
    sandbox.write("d.sql", "\\i d.sql\n");
    run(&["-f", "d.sql"]).fails(1, &["run one another"]);
    let script = sandbox.run_with_input(&["sql", "--store", "store"], b"SELECT 1;\nSELECT x");
    script.fails(1, &["standard input:2: statement 2: "]);
}

#[test]
fn a_store_is_named_by_a_word_a_variable_or_a_file() {
    let sandbox = with_store();
    let answer = |words: &[&str], variables: &[(&str, &str)]| {
        let mut command = sandbox.command(words);
        command.env_remove("COLOAD_STORE").env("XDG_CONFIG_HOME", sandbox.path("config"));
        command.envs(variables.iter().copied());
        Run::of(command.output().unwrap())
    };
    let query = ["-c", "SELECT sum(a) AS s FROM t"];
    let csv = "s\n3\n";
    let words = [&["store"][..], &query, &["--output", "csv"]].concat();
    assert_eq!(answer(&words, &[]).ok().out, csv);
    let words = [&["sql", "--output", "csv"][..], &query].concat();
    assert_eq!(answer(&words, &[("COLOAD_STORE", "store")]).ok().out, csv);
    // Without a store there is one for the time of the command, to query files.
    answer(&words, &[]).fails(1, &["table t not found"]);
    sandbox.write("config/coload/config.toml", "store = \"store\"\noutput = \"json\"\n");
    assert_eq!(answer(&words, &[]).ok().out, csv);
    let words = [&["sql"][..], &query].concat();
    assert_eq!(answer(&words, &[]).ok().out, "[{\"s\":3}]\n");
    sandbox.write("config/coload/config.toml", "stor = \"store\"\n");
    answer(&words, &[]).fails(1, &["config.toml", "stor is not understood"]);
}
