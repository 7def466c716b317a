//! `coload load` and `coload sniff` of objects, by a server in this process.

use std::fs;
use std::sync::atomic::{AtomicUsize, Ordering};

use coload_object_server::{Fault, ObjectServer};

use crate::drivers::{passes, python};
use crate::support::{Run, Sandbox};

/// A table in several files, and a server that has them too.
struct Setup {
    sandbox: Sandbox,
    server: ObjectServer,
}

const ROWS: usize = 60_000;

impl Setup {
    fn new() -> Self {
        let setup = Setup { sandbox: Sandbox::new(), server: ObjectServer::start().unwrap() };
        for file in 0..3 {
            let row = |n: usize| format!("{n},\"name {}\",{}.25\n", n % 97, n % 1000);
            let rows: String = (file * ROWS..(file + 1) * ROWS).map(row).collect();
            setup.put(&format!("f{file}.csv"), format!("id,name,price\n{rows}").as_bytes());
        }
        setup
    }

    fn put(&self, name: &str, bytes: &[u8]) {
        self.sandbox.write(name, bytes);
        self.server.put(&format!("bucket/data/{name}"), bytes);
    }

    fn run(&self, args: &[&str]) -> Run {
        let places = ["--s3-endpoint", &self.server.url(), "--no-sign-request", "--retry", "2"];
        self.sandbox.run(&[args, &places[..]].concat())
    }

    fn load(&self, input: &str, table: &str, more: &[&str]) -> Run {
        let args = ["load", input, "--into", "store", "--table", table, "--chunk-size", "64KiB"];
        self.run(&[&args[..], more].concat())
    }

    fn exported(&self, table: &str) -> String {
        self.sandbox.run(&["export", "store", table]).ok().out
    }
}

#[test]
fn a_table_of_objects_is_that_of_their_files() {
    let setup = Setup::new();
    setup.load("f*.csv", "files", &[]).ok();
    let url = setup.server.url();
    let run = setup.load("s3://bucket/data/f*.csv", "glob", &[]).ok();
    assert!(run.out.contains("s3://bucket/data/f2.csv"), "{}", run.out);
    setup.load("s3://bucket/data/", "prefix", &[]).ok();
    setup.load(&format!("{url}/bucket/data/f0.csv"), "http", &[]).ok();
    setup.load(&format!("{url}/bucket/data/f1.csv"), "http", &[]).ok();
    setup.load(&format!("{url}/bucket/data/f2.csv"), "http", &[]).ok();
    let expected = setup.exported("files");
    assert_eq!(expected.lines().count(), 3 * ROWS + 1);
    for table in ["glob", "prefix", "http"] {
        assert!(setup.exported(table) == expected, "{table}");
    }
}

#[test]
fn all_formats_are_loaded_from_objects() {
    let setup = Setup::new();
    setup.load("f0.csv", "files", &[]).ok();
    let expected = setup.exported("files");
    let gzip = |name: &str| {
        let packed = std::process::Command::new("gzip")
            .args(["-c", name])
            .current_dir(setup.sandbox.path("."))
            .output();
        packed.unwrap().stdout
    };
    setup.server.put("bucket/f0.csv.gz", gzip("f0.csv"));
    setup.sandbox.run(&["load", "f0.csv", "--into", "parquet:pq"]).ok();
    let file = fs::read_dir(setup.sandbox.path("pq")).unwrap().flatten().map(|entry| entry.path());
    let is_parquet = |path: &std::path::PathBuf| path.extension().is_some_and(|e| e == "parquet");
    let file = file.filter(is_parquet).last().unwrap();
    setup.server.put("bucket/f0.parquet", fs::read(file).unwrap());
    let lines = expected.lines().skip(1).map(|line| {
        let fields: Vec<&str> = line.split(',').map(|field| field.trim_matches('"')).collect();
        format!("{{\"id\":{},\"name\":\"{}\",\"price\":{}}}\n", fields[0], fields[1], fields[2])
    });
    setup.server.put("bucket/f0.jsonl", lines.collect::<String>());
    for name in ["f0.csv.gz", "f0.parquet", "f0.jsonl"] {
        let table = name.replace('.', "_");
        setup.load(&format!("s3://bucket/{name}"), &table, &[]).ok();
        assert!(setup.exported(&table) == expected, "{name}");
    }
    let sniffed = setup.run(&["sniff", "s3://bucket/f0.parquet"]).ok();
    assert!(sniffed.out.contains("id BIGINT"), "{}", sniffed.out);
}

/// Blocks of objects are found as these come, and are the rows of the same files.
#[test]
fn avro_comes_as_a_stream_of_blocks() {
    let setup = Setup::new();
    let mut written = python("avro_files.py");
    passes(written.arg("write").arg(setup.sandbox.path(".")));
    for name in ["null", "snappy"] {
        let file = format!("{name}.avro");
        setup.server.put(&format!("bucket/{file}"), fs::read(setup.sandbox.path(&file)).unwrap());
        setup.load(&file, &format!("{name}_file"), &["--threads", "1"]).ok();
        setup.load(&format!("s3://bucket/{file}"), name, &["--threads", "2"]).ok();
        assert!(setup.exported(name) == setup.exported(&format!("{name}_file")), "{name}");
    }
    setup.load("s3://bucket/*.avro", "both", &[]).ok();
    assert_eq!(
        setup.exported("both").lines().count(),
        setup.exported("null").lines().count() * 2 - 1
    );
}

/// Sheets of workbooks and members of archives are those of the same files.
#[test]
fn workbooks_and_archives_are_read_where_they_are() {
    let setup = Setup::new();
    let path = std::path::Path::new(env!("CARGO_MANIFEST_DIR"));
    let book = fs::read(path.join("tests/text/books/openpyxl.xlsx")).unwrap();
    setup.put("book.xlsx", &book);
    setup.load("book.xlsx", "file", &[]).ok();
    let run = setup.load("s3://bucket/data/book.xlsx", "object", &[]).ok();
    assert!(run.err.contains("cells A1:H10 of s3://bucket/data/book.xlsx!Orders"), "{}", run.err);
    assert!(setup.exported("object") == setup.exported("file"));
    let url = setup.server.url();
    setup.load(&format!("{url}/bucket/data/book.xlsx"), "http", &[]).ok();
    assert!(setup.exported("http") == setup.exported("file"));
    setup.load("book.xlsx!More", "part", &["--range", "C5:D7"]).ok();
    setup.load("s3://bucket/data/book.xlsx!More", "more", &["--range", "C5:D7"]).ok();
    assert!(setup.exported("more") == setup.exported("part"));
    let sniffed = setup.run(&["sniff", "s3://bucket/data/book.xlsx", "--sheet", "2"]).ok();
    assert!(sniffed.out.contains("cells C5:D9 of"), "{}", sniffed.out);
    setup.sandbox.write("notes.txt", "none");
    let packed = std::process::Command::new("python3")
        .args(["-m", "zipfile", "-c", "all.zip", "f0.csv", "f1.csv", "notes.txt"])
        .current_dir(setup.sandbox.path("."))
        .status();
    assert!(packed.unwrap().success());
    let packed = fs::read(setup.sandbox.path("all.zip")).unwrap();
    setup.put("all.zip", &packed);
    setup.load("all.zip!*.csv", "members", &[]).ok();
    let run = setup.load("s3://bucket/data/all.zip!*.csv", "far", &[]).ok();
    assert!(run.out.contains("s3://bucket/data/all.zip!f1.csv"), "{}", run.out);
    assert!(setup.exported("far") == setup.exported("members"));
    setup
        .load("s3://bucket/data/all.zip", "none", &[])
        .fails(1, &["s3://bucket/data/all.zip has 3 members: name one"]);
    setup
        .load("s3://bucket/data/all.zip!x.csv", "none", &[])
        .fails(1, &["has no member x.csv", "notes.txt"]);
    // What its name does not tell is told, and not taken for text.
    setup.put("archive", &packed);
    setup
        .load("s3://bucket/data/archive", "none", &[])
        .fails(1, &["s3://bucket/data/archive is an archive or a workbook", "name must tell"]);
    setup.put("cut.zip", &packed[..1000]);
    setup.load("s3://bucket/data/cut.zip", "none", &[]).fails(1, &["cut.zip", "truncated"]);
}

#[test]
fn rejects_name_the_object_and_a_dry_run_makes_no_store() {
    let setup = Setup::new();
    setup.put("bad.csv", b"id,name\n1,a\nx,b\n3,c\n");
    let columns = ["--columns", "id BIGINT, name VARCHAR"];
    let allowed = [&columns[..], &["--max-rejects", "5"]].concat();
    let more = [&allowed[..], &["--rejects", "rejects.csv"]].concat();
    let dry = [&allowed[..], &["--dry-run"]].concat();
    let run = setup.load("s3://bucket/data/bad.csv", "t", &dry).ok();
    assert!(run.out.contains('2'), "{}", run.out);
    assert!(!setup.sandbox.path("store").exists());
    setup.load("s3://bucket/data/bad.csv", "t", &more).ok();
    let rejects = fs::read_to_string(setup.sandbox.path("rejects.csv")).unwrap();
    assert!(rejects.contains("s3://bucket/data/bad.csv"), "{rejects}");
    assert_eq!(setup.exported("t").replace('"', ""), "id,name\n1,a\n3,c\n");
}

#[test]
fn an_object_that_changes_during_a_load_fails_it_with_both_versions() {
    let setup = Setup::new();
    let server = std::sync::Arc::new(setup.server);
    let (changing, so_far) = (std::sync::Arc::downgrade(&server), AtomicUsize::new(0));
    server.faults().set(move |request| {
        let is_part = request.method == "GET" && request.path.ends_with("f1.csv");
        (is_part && so_far.fetch_add(1, Ordering::Relaxed) == 1).then(|| {
            let changing = changing.clone();
            Fault::Then(std::sync::Arc::new(move || {
                if let Some(server) = changing.upgrade() {
                    server.put("bucket/data/f1.csv", "id,name,price\n1,x,2.25\n");
                }
            }))
        })
    });
    let args = ["load", "s3://bucket/data/f*.csv", "--into", "store", "--table", "t"];
    let places = ["--s3-endpoint", &server.url(), "--no-sign-request"];
    let run = setup.sandbox.run(&[&args[..], &places].concat());
    run.fails(1, &["s3://bucket/data/f1.csv", "changed", "\"v2\"", "\"v4\"", "nothing was loaded"]);
    let held = setup.sandbox.run(&["inspect", "store"]).ok().out;
    assert!(!held.contains("f1"), "{held}");
}

#[test]
fn what_a_server_refuses_for_the_moment_is_loaded_all_the_same() {
    let setup = Setup::new();
    let so_far = AtomicUsize::new(0);
    setup.server.faults().set(move |_| match so_far.fetch_add(1, Ordering::Relaxed) % 3 {
        0 => Some(Fault::Status(503)),
        1 => Some(Fault::Cut(70)),
        _ => None,
    });
    setup.load("f*.csv", "files", &[]).ok();
    setup.load("s3://bucket/data/f*.csv", "t", &[]).ok();
    assert!(setup.exported("t") == setup.exported("files"));
}

#[test]
fn folders_of_keys_are_columns() {
    let setup = Setup::new();
    for (year, rows) in [(2026, "a\n1\n"), (2027, "a\n2\n")] {
        setup.server.put(&format!("bucket/t/year={year}/p.csv"), rows);
    }
    setup.load("s3://bucket/t/", "t", &["--partitions"]).ok();
    assert_eq!(setup.exported("t"), "a,\"year\"\n1,2026\n2,2027\n");
}

/// Columns of codes are written when their segment ends. That of what comes from afar ends where the last partitions begin, so that
/// only these are left when the last byte has come.
#[test]
fn what_is_before_the_last_partitions_of_an_object_is_a_segment() {
    let setup = Setup::new();
    let row = |n: u64| {
        let code = |by: u64| n.wrapping_mul(2_654_435_761).wrapping_mul(by) >> 7;
        format!("{},t{},u{}\n", code(1) % 900, code(3) % 700, code(5) % 800)
    };
    let rows: String = (0..400_000).map(row).collect();
    setup.sandbox.write("codes.csv", format!("a,b,c\n{rows}"));
    setup.sandbox.run(&["load", "codes.csv", "--into", "parquet:codes"]).ok();
    let file = fs::read_dir(setup.sandbox.path("codes")).unwrap().flatten().next().unwrap().path();
    setup.put("codes.parquet", &fs::read(file).unwrap());
    let small = ["--memory", "64MiB", "--fragments-per-partition", "24", "--report", "json"];
    let segments = |input: &str, table: &str| {
        let run = setup.load(input, table, &small).ok();
        let report: serde_json::Value = serde_json::from_str(&run.out).unwrap();
        assert_eq!(report["rows"], 400_000);
        report["segments"].as_u64().unwrap()
    };
    assert_eq!(segments("codes.parquet", "disk"), 1);
    assert_eq!(segments("s3://bucket/data/codes.parquet", "afar"), 2);
    assert_eq!(setup.exported("afar"), setup.exported("disk"));
}
