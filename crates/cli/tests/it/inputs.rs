//! Where input comes from: files, globs, standard input, pipes.

use std::process::Stdio;

use coload::{Hooks, PlanRequest, Resources};

use crate::support::{COLUMNS, Run, Sandbox, rows};

#[test]
fn globs_and_many_files_go_into_one_table() {
    let sandbox = Sandbox::new();
    for part in 0..7 {
        sandbox.write(&format!("in/part-{part}.csv"), rows(part * 100, 100));
    }
    sandbox.write("other.csv", rows(700, 50));
    let mut args = vec!["load", "in/part-*.csv", "other.csv", "--into", "store"];
    args.extend(["--columns", COLUMNS, "--report", "json"]);
    let run = sandbox.run(&args).ok();
    let report: serde_json::Value = serde_json::from_str(&run.out).unwrap();
    let files = report["files"].as_array().unwrap();
    assert_eq!(files.len(), 8);
    assert_eq!(files[3]["name"], "in/part-3.csv");
    assert_eq!(files[7]["records"], 50);
    assert_eq!(report["table"], "part_0");
    assert_eq!(sandbox.query("SELECT count(*), sum(id) FROM part_0"), ["750,280875"]);
}

#[test]
fn each_file_has_its_header() {
    let sandbox = Sandbox::new();
    for part in 0..3 {
        sandbox.write(&format!("h{part}.csv"), format!("id,name\n{part},x\n"));
    }
    sandbox.run(&["load", "h*.csv", "--into", "store", "--table", "t"]).ok();
    assert_eq!(sandbox.query("SELECT sum(id) FROM t"), ["3"]);
}

#[test]
fn a_reject_of_a_later_small_file_names_that_file_and_its_line() {
    let sandbox = Sandbox::new();
    sandbox.write("p0.csv", rows(1, 5));
    sandbox.write("p1.csv", rows(6, 3) + "x,,,\n");
    let run =
        sandbox.run(&["load", "p*.csv", "--into", "store", "--columns", COLUMNS, "--no-header"]);
    run.fails(1, &["p1.csv:4:1"]);
    assert_eq!(sandbox.run(&["sql", "--store", "store", "-c", "SELECT * FROM p0"]).status, Some(1));
}

#[test]
fn inputs_that_are_not_there_are_told() {
    let sandbox = Sandbox::new();
    sandbox.write("dir/a.csv", rows(1, 1));
    for (input, part) in [
        ("none.csv", "cannot open none.csv"),
        ("none-*.csv", "no file matches none-*.csv"),
        ("dir", "dir is a directory"),
    ] {
        sandbox.run(&["load", input, "--into", "store"]).fails(1, &[part]);
        assert!(!sandbox.path("store").exists(), "{input} made a store");
    }
    let twice = sandbox.run(&["load", "dir/a.csv", "dir/*.csv", "--into", "store"]);
    twice.fails(1, &["is named twice"]);
}

#[test]
fn standard_input_is_loaded_whole_with_and_without_columns() {
    let sandbox = Sandbox::new();
    // More than the sample of 1 MiB, so that both its bytes and those after it must arrive.
    let text = rows(0, 60_000);
    assert!(text.len() > 1_500_000);
    let args = ["load", "-", "--into", "store", "--table", "t", "--columns", COLUMNS];
    sandbox.run_with_input(&args, text.as_bytes()).ok();
    assert_eq!(sandbox.query("SELECT count(*), sum(id) FROM t"), ["60000,1799970000"]);

    let head = format!("id,price,day,name\n{text}");
    let args = ["load", "-", "--into", "store", "--report", "json"];
    let run = sandbox.run_with_input(&args, head.as_bytes()).ok();
    let report: serde_json::Value = serde_json::from_str(&run.out).unwrap();
    assert_eq!((&report["table"], &report["rows"]), (&"stdin".into(), &60_000.into()));
    assert_eq!(report["bytes_read"], head.len());
    assert_eq!(sandbox.query("SELECT count(*), sum(id) FROM stdin"), ["60000,1799970000"]);
}

#[test]
fn rejects_of_standard_input_have_their_places() {
    let sandbox = Sandbox::new();
    let text = rows(0, 50_000) + "x,1.00,2024-01-01,a\n";
    let place = format!("-:50001:1 (byte {})", rows(0, 50_000).len());
    let args = ["load", "-", "--into", "store", "--columns", COLUMNS, "--chunk-size", "4096"];
    sandbox.run_with_input(&args, text.as_bytes()).fails(1, &[&place, "is not BIGINT"]);
}

#[test]
fn standard_input_is_loaded_alone() {
    let sandbox = Sandbox::new();
    sandbox.write("a.csv", rows(1, 3));
    let args = ["load", "a.csv", "-", "--into", "store"];
    sandbox.run_with_input(&args, b"").fails(1, &["-: standard input or a pipe is loaded alone"]);
}

#[test]
fn a_named_pipe_is_read_once() {
    let sandbox = Sandbox::new();
    let fifo = sandbox.path("pipe.csv");
    let made = std::process::Command::new("mkfifo").arg(&fifo).status().unwrap();
    assert!(made.success());
    let child = sandbox
        .command(&["load", "pipe.csv", "--into", "store"])
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn()
        .unwrap();
    std::fs::write(&fifo, "id,price,day,name\n".to_owned() + &rows(0, 60_000)).unwrap();
    let output = child.wait_with_output().unwrap();
    assert!(output.status.success(), "{output:?}");
    assert_eq!(sandbox.query("SELECT count(*), sum(id) FROM pipe"), ["60000,1799970000"]);
}

#[test]
fn the_library_refuses_a_stream_that_was_loaded() {
    let stream = coload_load::OpenedStream::new("s", Box::new(&b"1\n"[..]));
    let sandbox = Sandbox::new();
    let store = coload::Coload::create_or_open(sandbox.path("store")).unwrap();
    let file = sandbox.write("a.csv", "1\n");
    let mut plan = store.plan(&PlanRequest::new([file.to_string_lossy()])).unwrap();
    let mut inputs = plan.request.inputs.iter().collect::<Vec<_>>();
    inputs[0].source = coload_source::InputSource::Stdin;
    plan.request.inputs = inputs.into();
    plan.request.stream = Some(stream);
    let load = || store.load(&plan.request, &Resources::default(), &Hooks::default());
    assert_eq!(load().unwrap().rows(), 1);
    let again = load().unwrap_err().to_string();
    assert!(again.contains("was read by another load"), "{again}");
}

#[test]
fn no_record_of_another_input_is_taken_for_names() {
    let sandbox = Sandbox::new();
    sandbox.write("named.csv", "Id,name\n1,a\n2,b\n");
    sandbox.write("part.csv", "3,c\n4,d\n");
    sandbox.write("again.csv", "\"id\",NAME\n5,e\n");
    sandbox.write("titled.csv", "A report\n\nid,name,v\n6,f,1\n");
    sandbox.write("empty.csv", "");
    let load = |inputs: &[&str], flags: &[&str]| {
        let to = ["--into", "store", "--table", "t", "--replace"];
        sandbox.run(&[&["load"], inputs, &to, flags].concat())
    };
    let told = [
        "named.csv names its columns, and part.csv begins otherwise, with \"3,c\"",
        "--no-header",
        "cat FILE",
    ];
    load(&["named.csv", "part.csv"], &[]).fails(1, &told);
    load(&["named.csv", "again.csv", "empty.csv"], &[]).ok();
    assert_eq!(
        sandbox.run(&["export", "store", "t", "--quote", "needed"]).ok().out,
        "Id,name\n1,a\n2,b\n5,e\n"
    );
    // Whoever says how it is, is believed.
    load(&["named.csv", "part.csv"], &["--header"]).ok();
    load(&["part.csv", "named.csv"], &["--all-text"]).ok();
    assert_eq!(
        sandbox.run(&["export", "store", "t", "--quote", "needed"]).ok().out,
        "c1,c2\n3,c\n4,d\nId,name\n1,a\n2,b\n"
    );
    // Lines before the table of the first are records of another.
    sandbox.write("long.csv", "1,a,b\n2,a,b\n3,a,b\n4,a,b\n");
    load(&["titled.csv", "long.csv"], &[])
        .fails(1, &["titled.csv names", "long.csv begins otherwise"]);
    let flags = ["--no-header", "--columns", "id BIGINT, name VARCHAR, v BIGINT"];
    sandbox.write("titled.csv", "A report\n\n6,f,1\n7,f,1\n");
    load(&["titled.csv", "long.csv"], &flags).fails(1, &["has lines before its table", "--skip N"]);
    // Comments before the names, alike or not, are no names; among the rows, somebody has to say what they are.
    let (july, june) = ("# july\n# two\nid,name,v\n1,a,1\n", "# june\n# three\nid,name,v\n2,b,2\n");
    sandbox.write("july.csv", july);
    sandbox.write("june.csv", june);
    let out = |run: Run| {
        run.ok();
        sandbox.run(&["export", "store", "t", "--quote", "needed"]).ok().out
    };
    assert_eq!(out(load(&["july.csv", "june.csv"], &[])), "id,name,v\n1,a,1\n2,b,2\n");
    let hashes = "id,name,v\n1,a,1\n# note\n2,b,2\n3,c,3\n";
    sandbox.write("hashes.csv", hashes);
    sandbox.write("rows.csv", "id,name,v\n#1,a,4\n");
    load(&["hashes.csv", "rows.csv"], &[])
        .fails(1, &["hashes.csv has lines that begin with #", "--comment '#'", "--comment none"]);
    let rows = out(load(&["hashes.csv", "rows.csv"], &["--comment", "#"]));
    assert_eq!(rows, "id,name,v\n1,a,1\n2,b,2\n3,c,3\n");
    // A note after the table of one is not looked for in several.
    sandbox.write("noted.csv", "id,name,v\n1,a,1\n2,b,2\n3,c,3\n\nSource: somebody\n");
    sandbox.write("plain.csv", "id,name,v\n7,a,1\n8,b,2\n");
    load(&["noted.csv"], &[]).ok();
    let both = load(&["noted.csv", "plain.csv"], &[]).ok();
    assert!(both.out.contains("missing fields were filled (--ragged): noted.csv:6"), "{both:?}");
}

/// A file that comes every day made its table once, and must be read alike when the table is there: numbers, dates, NULLs and dirty
/// records were read by the rules of SQL then, so that all of them were rejects.
#[test]
fn a_file_is_read_alike_when_its_table_is_there() {
    let records = |make: &dyn Fn(u32) -> String| (1..=40).map(make).collect::<String>();
    let files = [
        ("commas", format!("id;price\n{}", records(&|n| format!("{n};1.{n:03},5\n")))),
        ("days", format!("id,day\n{}", records(&|n| format!("{n},{:02}/01/2026\n", n % 28 + 1)))),
        (
            "months",
            format!("id,day\n{}", records(&|n| format!("{n},{:02}-Mar-2026\n", n % 28 + 1))),
        ),
        (
            "absent",
            format!(
                "id,v\n{}",
                records(&|n| if n == 7 { "7,n/a\n".into() } else { format!("{n},{n}\n") })
            ),
        ),
        (
            "quotes",
            format!(
                "id,note\n{}",
                records(&|n| {
                    if n == 30 { "30,\"a\"b\"\n".into() } else { format!("{n},\"a, {n}\"\n") }
                })
            ),
        ),
        (
            "ragged",
            format!(
                "id,v,w\n{}",
                records(&|n| if n == 9 { "9,1\n".into() } else { format!("{n},1,x\n") })
            ),
        ),
        ("titled", format!("Report of sales\n\nid,v\n{}", records(&|n| format!("{n},{n}\n")))),
        ("remarks", format!("# made today\nid,v\n{}", records(&|n| format!("{n},{n}\n")))),
        (
            "underlined",
            format!(
                "SQL> select * from t;\n\n  id name\n---- ------\n{}\n40 rows selected.\n",
                records(&|n| format!("{n:>4} a{n}\n"))
            ),
        ),
        (
            "below",
            format!(
                "Bank;First\nAccount;12345\nFrom;2026-01-01\n\nid;name;amount;purpose\n{}",
                (1..=4).map(|n| format!("{n};a{n};{n},50;none\n")).collect::<String>()
            ),
        ),
        ("total", format!("id,v\n{}\nTotal: 40 rows\n", records(&|n| format!("{n},{n}\n")))),
        (
            "late",
            format!(
                "id,v\n{}",
                (1..=9_000)
                    .map(|n| if n == 8_900 {
                        "8900,\"1,5\"\n".to_owned()
                    } else {
                        format!("{n},\"{n},25\"\n")
                    })
                    .collect::<String>()
            ),
        ),
    ];
    for (name, text) in files {
        let sandbox = Sandbox::new();
        sandbox.write(&format!("{name}.csv"), &text);
        let load = ["load", &format!("{name}.csv"), "--into", "store"];
        sandbox.run(&load).ok();
        let once = sandbox.query(&format!("SELECT * FROM {name} ORDER BY id"));
        let again = sandbox.run(&load);
        assert_eq!(again.status, Some(0), "{name}: {}", again.err);
        let twice = sandbox.query(&format!("SELECT DISTINCT * FROM {name} ORDER BY id"));
        assert_eq!(once, twice, "{name}");
        let rows = sandbox.query(&format!("SELECT count(*) FROM {name}"));
        assert_eq!(rows, [(2 * once.len()).to_string()], "{name}");
    }
}
