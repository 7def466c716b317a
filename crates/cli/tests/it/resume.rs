//! Loads into a store that are interrupted go on where they were: whoever is killed when, each row is there once, and what was
//! loaded is not read again.

use std::fs;
use std::io::Write;
use std::path::PathBuf;
use std::process::{Child, Stdio};
use std::time::{Duration, Instant};

use coload_object_server::ObjectServer;
use flate2::{Compression, write::GzEncoder};

use crate::random::{Random, seed};
use crate::support::{Run, Sandbox, files_below};

/// Rows of a load.
const ROWS: u64 = 200_000;
/// Kills of a load before it may come to its end.
const KILLS: u32 = 8;
/// Sizes that give a load of this test many segments.
const SMALL: [&str; 6] =
    ["--memory", "16MiB", "--chunk-size", "100000", "--fragments-per-partition", "2"];

/// Rows from one on: numbers that become wider than the first of them show, text with newlines, records that are none.
fn csv(from: u64, to: u64) -> String {
    let mut text = String::from("id,cat,n,x,note,hash\n");
    for id in from..to {
        let n = match id {
            0..80_000 => format!("{}", id % 1000),
            80_000..150_000 => format!("{}.{:02}", id % 1000, id % 100),
            _ => format!("{}.{:05}", id % 100_000, id % 100_000),
        };
        let note = match id % 97 {
            0 => format!("\"a\nb {}\"", id % 500),
            _ => format!("note {}", id % 5000),
        };
        match id % 20_011 {
            7 => text.push_str(&format!("{id},one,field,more,than,there,are\n")),
            _ => {
                let hash = hash(id);
                text.push_str(&format!("{id},c{},{n},{},{note},{hash}\n", id % 300, id % 7));
            }
        }
    }
    text
}

/// Text that does not compress well.
fn hash(id: u64) -> String {
    let mut random = Random(id.wrapping_mul(0x9e37_79b9_7f4a_7c15) | 1);
    (0..4).map(|_| format!("{:016x}", random.below(u64::MAX))).collect()
}

fn json(from: u64, to: u64) -> String {
    let line = |id: u64| {
        let (cat, hash) = (id % 300, hash(id));
        format!("{{\"id\":{id},\"cat\":\"c{cat}\",\"n\":{},\"hash\":\"{hash}\"}}\n", id % 7000)
    };
    (from..to).map(line).collect()
}

/// What a table of these rows is told by.
const TELLS: &str = "SELECT count(*), count(DISTINCT id), sum(CAST(id AS BIGINT)), sum(CAST(n AS DECIMAL(30, 6))), count(DISTINCT cat), min(hash) FROM t";

/// Flags of loads that are killed and looked at.
const RESUMABLE: [&str; 6] =
    ["--max-rejects", "100", "--ragged", "reject", "--resumable", "--all-text"];

fn args<'a>(input: &'a str, into: &'a str, flags: &[&'a str]) -> Vec<&'a str> {
    let mut args = vec!["load", input, "--into", into, "--table", "t", "--report", "json"];
    args.extend(SMALL);
    args.extend(flags);
    args
}

fn spawn(sandbox: &Sandbox, args: &[&str]) -> Child {
    let mut command = sandbox.command(args);
    command.stdout(Stdio::null()).stderr(Stdio::null()).spawn().unwrap()
}

fn told(sandbox: &Sandbox, store: &str) -> String {
    sandbox.run(&["sql", "--store", store, "-c", TELLS, "--output", "csv"]).ok().out
}

/// Segments that journals keep.
fn kept(sandbox: &Sandbox) -> Vec<PathBuf> {
    let mut parts = files_below(&sandbox.path("store/loads"));
    parts.retain(|path| path.extension().is_some_and(|extension| extension == "part"));
    parts
}

/// Kills a load when it has kept so many segments more, and a random time later.
fn kill_when_kept(sandbox: &Sandbox, args: &[&str], more: usize, random: &mut Random) -> bool {
    let before = kept(sandbox).len();
    let mut child = spawn(sandbox, args);
    let started = Instant::now();
    while kept(sandbox).len() < before + more {
        if child.try_wait().unwrap().is_some() || started.elapsed() > Duration::from_secs(120) {
            break;
        }
        std::thread::sleep(Duration::from_millis(2));
    }
    std::thread::sleep(Duration::from_micros(random.below(30_000)));
    child.kill().unwrap();
    child.wait().unwrap().success()
}

/// Kills a load again and again, lets it come to its end, and compares its table with that of one which nobody interrupted.
fn check(sandbox: &Sandbox, input: &str, flags: &[&str], random: &mut Random) {
    let whole = sandbox.run(&args(input, "whole", flags)).ok();
    let resumable = [flags, &["--resumable"]].concat();
    let args = args(input, "store", &resumable);
    let mut ended = false;
    for kill in 0..KILLS {
        let more = if kill == 0 { 1 } else { random.below(3) as usize };
        ended = kill_when_kept(sandbox, &args, more, random);
        assert!(kill > 0 || !ended, "it was killed too late");
        if ended {
            break;
        }
    }
    if !ended {
        let listed = sandbox.run(&["loads", "--store", "store"]).ok().out;
        let run = sandbox.run(&args).ok();
        let known = run.out.contains("\"rows_known\"");
        assert_eq!(known, listed.contains("unfinished"), "{listed}\n{run:?}");
        for part in ["\"rows\": ", "\"rejects\": "] {
            let line =
                |run: &Run| run.out.lines().find(|line| line.contains(part)).map(str::to_owned);
            assert_eq!(line(&run), line(&whole), "{run:?}");
        }
    }
    assert_eq!(told(sandbox, "store"), told(sandbox, "whole"));
    // Nothing is left of it.
    sandbox.run(&["sql", "--store", "store", "-c", "SELECT 1"]).ok();
    assert_eq!(files_below(&sandbox.path("store/loads")), Vec::<PathBuf>::new());
    assert!(sandbox.run(&["verify", "store"]).ok().err.is_empty());
}

fn random() -> Random {
    let seed = seed();
    println!("COLOAD_SEED={seed}");
    Random(seed)
}

#[test]
fn text_whose_columns_become_wider() {
    let (mut random, sandbox) = (random(), Sandbox::new());
    sandbox.write("t.csv", csv(0, ROWS));
    let flags = [
        "--max-rejects",
        "100",
        "--ragged",
        "reject",
        "--rejects",
        "rejects.csv",
        "--sample",
        "200000",
    ];
    check(&sandbox, "t.csv", &flags, &mut random);
    let rejects = fs::read_to_string(sandbox.path("rejects.csv")).unwrap();
    assert!(rejects.lines().count() >= (ROWS / 20_011) as usize, "{rejects}");
}

#[test]
fn tables_with_a_key() {
    let (mut random, sandbox) = (random(), Sandbox::new());
    sandbox.write("a.csv", csv(0, ROWS / 2));
    sandbox.write("b.csv", csv(ROWS / 3, ROWS));
    let flags = [
        "--max-rejects",
        "100",
        "--ragged",
        "reject",
        "--primary-key",
        "id",
        "--on-conflict",
        "replace",
    ];
    check(&sandbox, "*.csv", &flags, &mut random);
}

#[test]
fn compressed_text_and_json() {
    let (mut random, sandbox) = (random(), Sandbox::new());
    for part in 0..6 {
        let (from, to) = (part * ROWS / 6, (part + 1) * ROWS / 6);
        let mut gzip = GzEncoder::new(Vec::new(), Compression::fast());
        gzip.write_all(csv(from, to).as_bytes()).unwrap();
        sandbox.write(&format!("z/{part}.csv.gz"), gzip.finish().unwrap());
        let mut gzip = GzEncoder::new(Vec::new(), Compression::fast());
        let objects = json(from, to);
        let array = format!("[{}]", objects.trim_end().replace('\n', ",\n"));
        gzip.write_all(array.as_bytes()).unwrap();
        sandbox.write(&format!("j/{part}.json.gz"), gzip.finish().unwrap());
    }
    check(
        &sandbox,
        "z/*.csv.gz",
        &["--max-rejects", "100", "--ragged", "reject", "--all-text"],
        &mut random,
    );
    fs::remove_dir_all(sandbox.path("store")).unwrap();
    fs::remove_dir_all(sandbox.path("whole")).unwrap();
    check(&sandbox, "j/*.json.gz", &[], &mut random);
}

#[test]
fn files_of_parquet() {
    let (mut random, sandbox) = (random(), Sandbox::new());
    sandbox.write("t.json", json(0, ROWS));
    sandbox.run(&["load", "t.json", "--into", "parquet:p", "--chunk-size", "100000"]).ok();
    check(&sandbox, "p/*.parquet", &[], &mut random);
}

/// What the journal has of rejects is without their row groups; and rows that a filter left unread are counted once.
#[test]
fn files_of_parquet_with_a_filter_and_rejects() {
    let (mut random, sandbox) = (random(), Sandbox::new());
    sandbox.write("t.json", json(0, ROWS));
    sandbox.run(&["load", "t.json", "--into", "parquet:p", "--chunk-size", "100000"]).ok();
    let filter = ["--where", "id >= 30000", "--select", "*, 1 / (id % 20011 - 7) AS x"];
    let flags = [&["--max-rejects", "100", "--rejects", "r.csv"], &filter[..]].concat();
    sandbox.run(&args("p/*.parquet", "other", &flags)).ok();
    let expected = fs::read_to_string(sandbox.path("r.csv")).unwrap();
    assert!(expected.lines().count() > 6, "{expected}");
    assert!(expected.lines().skip(1).all(|line| line.contains(",row group ")), "{expected}");
    check(&sandbox, "p/*.parquet", &flags, &mut random);
    assert_eq!(fs::read_to_string(sandbox.path("r.csv")).unwrap(), expected);
}

/// A server of objects, and flags with which it is asked.
fn objects(sandbox: &Sandbox, name: &str, parts: u64, gzip: bool) -> ObjectServer {
    let server = ObjectServer::start().unwrap();
    for part in 0..parts {
        let text = csv(part * ROWS / parts, (part + 1) * ROWS / parts);
        let bytes = if gzip {
            let mut gzip = GzEncoder::new(Vec::new(), Compression::fast());
            gzip.write_all(text.as_bytes()).unwrap();
            gzip.finish().unwrap()
        } else {
            text.into_bytes()
        };
        server.put(&format!("bucket/{name}{part:02}.csv{}", if gzip { ".gz" } else { "" }), bytes);
    }
    fs::create_dir_all(sandbox.path("home")).unwrap();
    server
}

#[test]
fn objects_that_were_loaded_are_not_read_again() {
    let mut random = random();
    for gzip in [false, true] {
        let sandbox = Sandbox::new();
        let server = objects(&sandbox, "o", 5, gzip);
        let url = server.url();
        let flags =
            ["--max-rejects", "100", "--ragged", "reject", "--all-text", "--s3-endpoint", &url];
        let load = args("s3://bucket/o*", "store", &flags);
        let sign = |command: &mut std::process::Command| {
            command
                .env("AWS_REGION", "us-east-1")
                .env("AWS_ACCESS_KEY_ID", "test")
                .env("AWS_SECRET_ACCESS_KEY", "test");
        };
        let mut command = sandbox.command(&load);
        sign(&mut command);
        let mut child = command.stdout(Stdio::null()).stderr(Stdio::null()).spawn().unwrap();
        while kept(&sandbox).len() < 2 && child.try_wait().unwrap().is_none() {
            std::thread::sleep(Duration::from_millis(2));
        }
        std::thread::sleep(Duration::from_micros(random.below(10_000)));
        child.kill().unwrap();
        assert!(!child.wait().unwrap().success(), "it was killed too late");
        let asked = server.seen().len();
        let mut command = sandbox.command(&load);
        sign(&mut command);
        let run = Run::of(command.output().unwrap()).ok();
        assert!(run.out.contains("\"rows_known\""), "{run:?}");
        // Both ends of the first ones are looked at.
        let ends = (1 << 20) + (256 << 10) + (64 << 10);
        let seen = server.seen();
        let bytes_of = |part: u64| -> u64 {
            let name = format!("o{part:02}.csv");
            let of = seen[asked..].iter().filter(|seen| seen.path.contains(&name));
            of.filter_map(|seen| seen.range(u64::MAX)).map(|range| range.end - range.start).sum()
        };
        assert!(bytes_of(1) <= ends, "{gzip}: {} bytes of a loaded object", bytes_of(1));
        assert!(bytes_of(4) > ends, "{gzip}: {} bytes of one that was not", bytes_of(4));
        let rejects = (0..ROWS).filter(|id| id % 20_011 == 7).count() as u64;
        assert_eq!(
            sandbox.query("SELECT count(*), count(DISTINCT id) FROM t"),
            [format!("{0},{0}", ROWS - rejects)]
        );
    }
}

#[test]
fn what_an_interrupted_load_left_is_shown_and_dropped() {
    let (mut random, sandbox) = (random(), Sandbox::new());
    sandbox.write("t.csv", csv(0, ROWS));
    let load = args("t.csv", "store", &RESUMABLE);
    assert!(!kill_when_kept(&sandbox, &load, 2, &mut random), "it was killed too late");
    let listed = sandbox.run(&["loads", "--store", "store"]).ok().out;
    let line = listed.lines().nth(1).unwrap();
    assert!(line.contains("unfinished") && line.contains("t.csv"), "{listed}");
    let id = line.split_whitespace().next().unwrap();
    // Other inputs, and other flags, are other loads.
    let other = args(
        "t.csv",
        "store",
        &["--max-rejects", "101", "--ragged", "reject", "--resumable", "--all-text"],
    );
    let run = sandbox.run(&other).ok();
    assert!(!run.out.contains("rows_known"), "{run:?}");
    assert!(sandbox.run(&["loads", "--store", "store"]).ok().out.contains(id));
    sandbox.run(&["loads", "--store", "store", "--abort", id]).ok();
    assert!(!sandbox.run(&["loads", "--store", "store"]).ok().out.contains(id));
    sandbox
        .run(&["loads", "--store", "store", "--abort", id])
        .fails(1, &["no load", "is unfinished"]);
    let run = sandbox.run(&load).ok();
    assert!(!run.out.contains("rows_known"), "{run:?}");
    assert_eq!(files_below(&sandbox.path("store/loads")), Vec::<PathBuf>::new());
}

#[test]
fn a_journal_that_is_damaged_is_told_with_its_cure() {
    let (mut random, sandbox) = (random(), Sandbox::new());
    sandbox.write("t.csv", csv(0, ROWS));
    let load = args("t.csv", "store", &RESUMABLE);
    assert!(!kill_when_kept(&sandbox, &load, 2, &mut random), "it was killed too late");
    let part = kept(&sandbox).remove(0);
    let mut bytes = fs::read(&part).unwrap();
    bytes[0] ^= 1;
    fs::write(&part, bytes).unwrap();
    sandbox.run(&load).fails(1, &["another checksum", "coload loads --store", "--abort"]);
}

#[test]
fn changed_inputs_are_another_load() {
    let (mut random, sandbox) = (random(), Sandbox::new());
    sandbox.write("t.csv", csv(0, ROWS));
    let load = args("t.csv", "store", &RESUMABLE);
    assert!(!kill_when_kept(&sandbox, &load, 2, &mut random), "it was killed too late");
    sandbox.write("t.csv", csv(1, ROWS));
    let run = sandbox.run(&load).ok();
    assert!(!run.out.contains("rows_known"), "{run:?}");
    assert_eq!(sandbox.query("SELECT min(CAST(id AS BIGINT)) FROM t"), ["1"]);
}
