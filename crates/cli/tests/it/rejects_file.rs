//! `--rejects FILE`: what is there is not destroyed, and nothing of it is lost on the way from a server.

use std::fs;
use std::os::unix::fs::symlink;

use crate::serve::Server;
use crate::support::{COLUMNS, Sandbox, rows};

const HEADER: &str = "file,line,byte,column,value,reason,raw\n";

/// `File::create` made the input empty before it was read: the load was of nothing, and the data were gone.
#[test]
fn a_rejects_file_that_is_an_input_is_refused_under_any_name() {
    let sandbox = Sandbox::new();
    let text = rows(0, 10) + "bad\n";
    let input = sandbox.write("t.csv", &text);
    sandbox.write("u.csv", rows(10, 10));
    symlink("t.csv", sandbox.path("symbolic.csv")).unwrap();
    fs::hard_link(&input, sandbox.path("hard.csv")).unwrap();
    let schema = format!("CREATE TABLE t ({COLUMNS})");
    sandbox.write("schema.sql", &schema);
    let server = Server::start(&sandbox, &[]);
    let absolute = input.to_string_lossy().into_owned();
    for rejects in ["t.csv", "./t.csv", &absolute, "symbolic.csv", "hard.csv", "schema.sql"] {
        let to = |into: &str, placement: Option<&str>| {
            let mut args = vec!["load", "u.csv", "t.csv", "--into", into, "--table", "t"];
            args.extend(["--schema", "schema.sql", "--rejects", rejects, "--max-rejects", "9"]);
            args.extend(placement.iter().flat_map(|placement| ["--placement", placement]));
            sandbox.run(&args).fails(1, &[rejects, "would be written over"]);
        };
        to("store2", None);
        for placement in ["adaptive", "pipe", "seq"] {
            to(&server.url(), Some(placement));
        }
        assert_eq!(fs::read_to_string(&input).unwrap(), text, "{rejects}");
        assert_eq!(fs::read_to_string(sandbox.path("schema.sql")).unwrap(), schema, "{rejects}");
    }
    let inside = ["load", "t.csv", "--into", "store2", "--rejects", "store2/format"];
    sandbox.run(&inside).fails(1, &["the store", "would be written over"]);
}

#[test]
fn standard_input_that_is_the_rejects_file_is_refused() {
    let sandbox = Sandbox::new();
    let text = rows(0, 10) + "bad\n";
    let path = sandbox.write("t.csv", &text);
    let mut command = sandbox.command(&["load", "-", "--into", "store", "--table", "t"]);
    command.args(["--columns", COLUMNS, "--rejects", "t.csv", "--max-rejects", "9"]);
    let output = command.stdin(fs::File::open(&path).unwrap()).output().unwrap();
    assert_eq!(output.status.code(), Some(1), "{output:?}");
    assert_eq!(fs::read_to_string(&path).unwrap(), text);
}

#[test]
fn an_earlier_rejects_file_survives_a_load_that_fails_and_a_link_stays_one() {
    let sandbox = Sandbox::new();
    let earlier = "what an earlier load set aside";
    sandbox.write("rejects.csv", earlier);
    symlink("rejects.csv", sandbox.path("link.csv")).unwrap();
    sandbox.write("bad.csv", rows(0, 1_000) + "x,,,\ny,,,\n");
    let files = || {
        let names = fs::read_dir(sandbox.path("")).unwrap();
        names
            .filter(|name| name.as_ref().unwrap().file_name().to_string_lossy().contains(".tmp"))
            .count()
    };
    for flags in [&["--max-rejects", "1"][..], &["--max-rejects", "0"]] {
        let flags = [&["--rejects", "link.csv"][..], flags].concat();
        sandbox.load("bad.csv", &flags).fails(1, &["bad.csv:"]);
        assert_eq!(fs::read_to_string(sandbox.path("rejects.csv")).unwrap(), earlier);
        assert_eq!(files(), 0);
    }
    sandbox.load("bad.csv", &["--rejects", "link.csv", "--max-rejects", "2"]).ok();
    let now = fs::read_to_string(sandbox.path("rejects.csv")).unwrap();
    assert!(now.starts_with(HEADER) && now.lines().count() == 3, "{now}");
    assert!(sandbox.path("link.csv").is_symlink());
    // A device is written as it is, not replaced.
    sandbox.load("bad.csv", &["--rejects", "/dev/null", "--max-rejects", "2"]).ok();
    assert!(!fs::metadata("/dev/null").unwrap().is_file());
}

#[test]
fn two_loads_that_write_one_rejects_file_do_not_mix() {
    let sandbox = Sandbox::new();
    for name in ["a", "b"] {
        let bad: String = (0..20_000).map(|line| format!("{name} {line},,,\n")).collect();
        sandbox.write(&format!("{name}.csv"), bad);
    }
    let load = |name: &str| {
        let file = format!("{name}.csv");
        let args = ["load", &file, "--into", "store", "--table", name, "--columns", COLUMNS];
        let flags = ["--rejects", "rejects.csv", "--max-rejects", "100%", "--no-header"];
        sandbox.run(&[&args[..], &flags[..]].concat()).ok();
    };
    std::thread::scope(|scope| {
        scope.spawn(|| load("a"));
        scope.spawn(|| load("b"));
    });
    let text = fs::read_to_string(sandbox.path("rejects.csv")).unwrap();
    let from = |name: &str| text.lines().filter(|line| line.starts_with(name)).count();
    assert!(matches!((from("a.csv"), from("b.csv")), (20_000, 0) | (0, 20_000)));
}

/// The server cut the file of rejects at 64 MiB and said nothing, and forgot what it had mended.
#[test]
fn rejects_and_mended_records_come_from_the_server_whole() {
    let sandbox = Sandbox::new();
    let filler = "x".repeat(70_000);
    let mut text = String::new();
    for number in 0..1_000 {
        text.push_str(&format!("{number},1,2024-01-01,ok\nbad {number},1,2024-01-01,{filler}\n"));
    }
    text.push_str("5000,1,2024-01-01\n");
    sandbox.write("t.csv", text);
    let server = Server::start(&sandbox, &[]);
    let mut files = Vec::new();
    for placement in ["none", "pipe", "seq"] {
        let (url, rejects) = (format!("{}/{placement}", server.url()), format!("{placement}.csv"));
        let args =
            ["load", "t.csv", "--into", &url, "--placement", placement, "--columns", COLUMNS];
        let flags = ["--rejects", &rejects, "--max-rejects", "1000", "--report", "json"];
        let more = ["--ragged", "pad", "--no-header"];
        let run = sandbox.run(&[&args[..], &flags[..], &more[..]].concat()).ok();
        let report: serde_json::Value = serde_json::from_str(&run.out).unwrap();
        assert_eq!(report["rejects"], 1_000, "{placement}");
        files.push((
            fs::read(sandbox.path(&rejects)).unwrap(),
            report["files"][0]["mended"].clone(),
        ));
    }
    assert!(files[0].0.len() > 65 << 20);
    assert!(!files[0].1.as_object().unwrap().is_empty(), "{}", files[0].1);
    for (rejects, mended) in &files[1..] {
        assert!(*rejects == files[0].0, "{} bytes of {}", rejects.len(), files[0].0.len());
        assert_eq!(*mended, files[0].1);
    }
}
