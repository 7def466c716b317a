//! `coload load` of files and streams of Arrow, as pyarrow writes them.

use crate::drivers::{passes, python};
use crate::support::Sandbox;

fn written() -> Sandbox {
    let sandbox = Sandbox::new();
    passes(python("arrow_files.py").arg("write").arg(sandbox.path(".")));
    sandbox
}

/// Exports a table, and compares it with the file that it came from.
#[track_caller]
fn check(sandbox: &Sandbox, file: &str, table: &str) {
    sandbox.run(&["export", "store", table, "--output", "export.csv"]).ok();
    let mut check = python("arrow_files.py");
    passes(check.arg("check").arg(sandbox.path(file)).arg(sandbox.path("export.csv")));
}

#[test]
fn all_that_pyarrow_writes_is_loaded_as_it_is() {
    let sandbox = written();
    let files = [
        "plain.feather",
        "lz4.feather",
        "zstd.feather",
        "plain.arrow",
        "zstd.arrow",
        "plain.arrows",
        "lz4.arrows",
        "zstd.arrows",
        "replaced.arrows",
        "grown.arrows",
    ];
    for (number, file) in files.into_iter().enumerate() {
        let table = format!("t{number}");
        let args = ["load", file, "--into", "store", "--table", &table];
        // Many chunks, and several partitions.
        sandbox
            .run(
                &[&args[..], &["--chunk-size", "64KiB", "--fragments-per-partition", "3"]].concat(),
            )
            .ok();
        check(&sandbox, file, &table);
        let bytes = std::fs::read(sandbox.path(file)).unwrap();
        let piped = format!("piped{number}");
        let args = ["load", "-", "--into", "store", "--table", &piped];
        sandbox.run_with_input(&args, &bytes).ok();
        check(&sandbox, file, &piped);
    }
}

#[test]
fn what_no_column_holds_is_refused_by_name_unless_it_is_not_read() {
    let sandbox = written();
    let load = ["load", "nested.arrow", "--into", "store", "--table", "t"];
    sandbox
        .run(&load)
        .fails(1, &["nested.arrow: field took is duration, which no column holds", "--by-name"]);
    let columns = ["--columns", "id BIGINT, name VARCHAR", "--by-name"];
    let run = sandbox.run(&[&load[..], &columns].concat()).ok();
    let others = "fields that are not read: list, struct.a, struct.b, map, took";
    assert!(run.err.contains(others), "{}", run.err);
    let twice = ["--columns", "id BIGINT, other VARCHAR", "--map", "took=other"];
    sandbox
        .run(&[&load[..], &twice, &["--replace"]].concat())
        .fails(1, &["field took is duration"]);
    let nested = "id BIGINT, list VARCHAR, \"struct.a\" BIGINT, \"struct.b\" VARCHAR, map VARCHAR";
    let read =
        ["load", "nested.arrow", "--into", "store", "--table", "n", "--by-name", "--columns"];
    sandbox.run(&[&read[..], &[nested]].concat()).ok();
    let exported = sandbox.run(&["export", "store", "n", "--no-header"]).ok().out;
    let rows = ["1,\"[1, 2]\",1,\"x\",\"{\"\"k\"\": 1}\"", "2,,,,\"{}\"", "3,\"[]\",2,,"];
    assert_eq!(exported.lines().collect::<Vec<_>>(), rows);
    // Into the table that is there, by name or in its order.
    let swapped = ["load", "swapped.arrow", "--into", "store", "--table", "t"];
    sandbox
        .run(&swapped)
        .fails(1, &["field 1 is name, which is the name of column 2", "--by-name"]);
    sandbox.run(&[&swapped[..], &["--by-name"]].concat()).ok();
    let exported = sandbox.run(&["export", "store", "t"]).ok().out;
    assert_eq!(exported, "id,\"name\"\n1,\"a\"\n2,\"b\"\n3,\n4,\"c\"\n");
    let big = ["load", "big.arrow", "--into", "store"];
    sandbox.run(&big).fails(1, &["field huge is decimal256(50, 2), which has 50 digits"]);
    sandbox.run(&[&big[..], &["--types", "huge DECIMAL(9,2)"]].concat()).ok();
}

#[test]
fn flags_of_text_and_inputs_of_other_kinds_are_refused() {
    let sandbox = written();
    let load = ["load", "swapped.arrow", "--into", "store"];
    for flags in [
        &["--delimiter", ";"][..],
        &["--no-header"],
        &["--null", "x"],
        &["--all-text"],
        &["--encoding", "utf-8"],
        &["--ragged", "pad"],
        &["--skip", "1"],
    ] {
        let flag = flags[0];
        sandbox.run(&[&load[..], flags].concat()).fails(1, &["swapped.arrow is Arrow", flag]);
    }
    sandbox.write("a.csv", "name,id\nx,1\n");
    sandbox
        .run(&["load", "swapped.arrow", "a.csv", "--into", "store"])
        .fails(1, &["swapped.arrow is Arrow, and a.csv is not"]);
    sandbox
        .run(&["load", "swapped.arrow", "nested.arrow", "--into", "store"])
        .fails(1, &["nested.arrow has other fields than swapped.arrow"]);
    sandbox
        .run(&["load", "swapped.arrow", "nested.arrow", "--into", "store", "--union-by-name"])
        .fails(1, &["nested.arrow: field took is duration, which no column holds", "--columns"]);
    sandbox.write("old.feather", b"FEA1 and more");
    sandbox
        .run(&["load", "old.feather", "--into", "store"])
        .fails(1, &["first version of Feather"]);
    // A text is a text, whatever its name.
    sandbox.write("text.arrow", "a,b\n1,2\n");
    sandbox.run(&["load", "text.arrow", "--into", "store"]).ok();
}

#[test]
fn files_that_are_cut_off_are_told() {
    let sandbox = written();
    for file in ["plain.feather", "zstd.arrows"] {
        let bytes = std::fs::read(sandbox.path(file)).unwrap();
        for cut in [7, 500, bytes.len() / 2, bytes.len() - 9] {
            let name = format!("cut.{file}");
            sandbox.write(&name, &bytes[..cut]);
            let run = sandbox.run(&["load", &name, "--into", "store", "--table", "t"]);
            run.fails(1, &[&name]);
        }
    }
    sandbox.run(&["inspect", "store", "t"]).fails(1, &["t"]);
}

#[test]
fn sniff_and_dry_runs_tell_of_arrow() {
    let sandbox = written();
    let run = sandbox.run(&["sniff", "swapped.arrow"]).ok();
    assert!(
        run.out.starts_with("Arrow IPC (file), fields: name string, id int64\n"),
        "{}",
        run.out
    );
    assert!(run.out.ends_with("coload load swapped.arrow --into STORE\n"), "{}", run.out);
    let run = sandbox.run(&["sniff", "plain.arrows", "--output", "json"]).ok();
    let json: serde_json::Value = serde_json::from_str(&run.out).unwrap();
    assert_eq!((&json["format"], &json["dialect"]), (&"arrow".into(), &serde_json::Value::Null));
    let types: Vec<_> =
        json["columns"].as_array().unwrap().iter().map(|c| c["type"].as_str().unwrap()).collect();
    assert_eq!(
        types[7..13],
        ["DECIMAL(20,0)", "REAL", "REAL", "DOUBLE", "DECIMAL(7,2)", "DECIMAL(15,3)"]
    );
    let dry = ["load", "plain.feather", "--into", "store", "--dry-run", "--report", "json"];
    let json: serde_json::Value = serde_json::from_str(&sandbox.run(&dry).ok().out).unwrap();
    assert_eq!((&json["rows"], &json["dialect"]), (&4_000.into(), &serde_json::Value::Null));
    assert!(!sandbox.path("store").exists());
    let parquet = ["load", "zstd.feather", "--into", "parquet:files", "--report", "json"];
    let json: serde_json::Value = serde_json::from_str(&sandbox.run(&parquet).ok().out).unwrap();
    assert_eq!(json["rows"], 4_000);
}

/// 80 MB in 64 MiB, from a file and from a pipe; a batch that is read as a whole is too much there, and said so.
#[test]
fn memory_is_bounded() {
    let sandbox = Sandbox::new();
    passes(python("arrow_files.py").arg("large").arg(sandbox.path("large.arrow")).arg("2000000"));
    let load = |memory: &str, input: &str| {
        let args = [
            "load",
            input,
            "--into",
            "store",
            "--table",
            "t",
            "--memory",
            memory,
            "--replace",
            "--report",
            "json",
        ];
        match input {
            "-" => {
                sandbox.run_with_input(&args, &std::fs::read(sandbox.path("large.arrow")).unwrap())
            }
            _ => sandbox.run(&args),
        }
    };
    for (memory, input) in [(64, "large.arrow"), (256, "-")] {
        let run = load(&format!("{memory}MiB"), input).ok();
        let json: serde_json::Value = serde_json::from_str(&run.out).unwrap();
        let peak = json["peak_memory_bytes"].as_u64().unwrap() >> 20;
        assert_eq!(json["rows"], 2_000_000);
        // The program itself takes some 30 MiB.
        assert!(peak < memory + 40, "{peak} MiB of {memory}");
    }
    load("64MiB", "-").fails(1, &["a record batch takes", "--memory"]);
}
