//! `coload load` of files of Parquet, as pyarrow and DuckDB write them.

use crate::drivers::{passes, python};
use crate::support::Sandbox;

fn written() -> Sandbox {
    let sandbox = Sandbox::new();
    passes(python("arrow_files.py").arg("parquet").arg(sandbox.path(".")));
    sandbox
}

/// Exports a table, and compares it with what pyarrow reads of the file that it came from.
#[track_caller]
fn check(sandbox: &Sandbox, file: &str, table: &str) {
    sandbox.run(&["export", "store", table, "--output", "export.csv"]).ok();
    let mut check = python("arrow_files.py");
    passes(check.arg("check").arg(sandbox.path(file)).arg(sandbox.path("export.csv")));
}

#[test]
fn all_that_pyarrow_and_duckdb_write_is_loaded_as_it_is() {
    let sandbox = written();
    let files =
        ["snappy", "zstd", "gzip", "lz4", "deltas", "integers", "int96", "duckdb", "duckdb2"];
    for (number, name) in files.into_iter().enumerate() {
        let (file, table) = (format!("{name}.parquet"), format!("t{number}"));
        let args = ["load", &file, "--into", "store", "--table", &table];
        // Many chunks, and several partitions.
        sandbox
            .run(
                &[&args[..], &["--chunk-size", "64KiB", "--fragments-per-partition", "3"]].concat(),
            )
            .ok();
        // pyarrow does not read the deltas of DuckDB, whose rows are those of its other file.
        let same = if name == "duckdb2" { "duckdb.parquet" } else { &file };
        check(&sandbox, same, &table);
    }
}

#[test]
fn what_no_column_holds_is_refused_by_path_and_type_unless_it_is_not_read() {
    let sandbox = written();
    let load = ["load", "nested.parquet", "--into", "store", "--table", "t"];
    let all = ["load", "nested.parquet", "--into", "store", "--table", "all"];
    sandbox.run(&all).ok();
    let exported = sandbox.run(&["export", "store", "all"]).ok().out;
    let rows = "list,id,\"struct.a\",\"struct.b\",\"map\",\"name\"\n\"[1, 2]\",1,1,\"x\",\"{\"\"k\"\": 1}\",\"a\"\n\
                ,2,,,\"{}\",\"b\"\n[],3,2,,,\n";
    assert_eq!(exported, rows);
    let columns = ["--columns", "id BIGINT, name VARCHAR", "--by-name"];
    let run = sandbox.run(&[&load[..], &columns].concat()).ok();
    assert!(
        run.err.contains("fields that are not read: list, struct.a, struct.b, map"),
        "{}",
        run.err
    );
    // Into the table that is there, by name or in its order.
    let swapped = ["load", "swapped.parquet", "--into", "store", "--table", "t"];
    sandbox
        .run(&swapped)
        .fails(1, &["field 1 is name, which is the name of column 2", "--by-name"]);
    sandbox.run(&[&swapped[..], &["--by-name"]].concat()).ok();
    let exported = sandbox.run(&["export", "store", "t"]).ok().out;
    assert_eq!(exported, "id,\"name\"\n1,\"a\"\n2,\"b\"\n3,\n4,\"c\"\n");
    let big = ["load", "big.parquet", "--into", "store"];
    sandbox.run(&big).fails(1, &["field huge is", "DECIMAL(50, 2)", "which has 50 digits"]);
    sandbox.run(&[&big[..], &["--types", "huge DECIMAL(9,2)"]].concat()).ok();
    sandbox
        .run(&["load", "brotli.parquet", "--into", "store"])
        .fails(1, &["brotli.parquet: row group 1, column id", "Brotli, which is not read"]);
}

#[test]
fn lists_maps_and_groups_are_read_as_they_are() {
    let sandbox = Sandbox::new();
    passes(python("arrow_files.py").arg("nested").arg(sandbox.path(".")));
    for (number, name) in ["one", "two", "coded", "duckdb"].into_iter().enumerate() {
        let (file, table) = (format!("nested_{name}.parquet"), format!("t{number}"));
        let load = ["load", &file, "--into", "store", "--table", &table];
        // Many chunks of a row group, each of which begins in the middle of a page.
        let grain = ["--chunk-size", "64KiB", "--fragments-per-partition", "3"];
        sandbox.run(&[&load[..], &grain].concat()).ok();
        sandbox.run(&["export", "store", &table, "--output", "export.csv"]).ok();
        let mut check = python("arrow_files.py");
        passes(check.arg("check_nested").arg(sandbox.path(&file)).arg(sandbox.path("export.csv")));
    }
}

#[test]
fn a_time_that_is_finer_than_a_microsecond_is_told_and_can_be_set_aside() {
    let sandbox = written();
    let load = ["load", "finer.parquet", "--into", "store"];
    sandbox.run(&load).fails(
        1,
        &["finer.parquet:2:1 (byte 4)", "1970-01-01 00:00:00.0000015", "column ts", "try "],
    );
    let run = sandbox.run(&[&load[..], &["--max-rejects", "1", "--report", "json"]].concat()).ok();
    let json: serde_json::Value = serde_json::from_str(&run.out).unwrap();
    assert_eq!((&json["rows"], &json["rejects"]), (&2.into(), &1.into()));
}

#[test]
fn flags_of_text_and_inputs_of_other_kinds_are_refused() {
    let sandbox = written();
    let load = ["load", "swapped.parquet", "--into", "store"];
    for flags in [&["--delimiter", ";"][..], &["--no-header"], &["--all-text"], &["--skip", "1"]] {
        let flag = flags[0];
        sandbox.run(&[&load[..], flags].concat()).fails(1, &["swapped.parquet is Parquet", flag]);
    }
    sandbox.write("a.csv", "name,id\nx,1\n");
    sandbox
        .run(&["load", "swapped.parquet", "a.csv", "--into", "store"])
        .fails(1, &["swapped.parquet is Parquet, and a.csv is not"]);
    sandbox
        .run(&["load", "swapped.parquet", "nested.parquet", "--into", "store"])
        .fails(1, &["nested.parquet has other fields than swapped.parquet"]);
    let bytes = std::fs::read(sandbox.path("swapped.parquet")).unwrap();
    sandbox
        .run_with_input(&["load", "-", "--into", "store", "--table", "t"], &bytes)
        .fails(1, &["is Parquet, which is read from its end", "write it to a file"]);
    for cut in [5, 40, bytes.len() - 1] {
        sandbox.write("cut.parquet", &bytes[..cut]);
        sandbox.run(&["load", "cut.parquet", "--into", "store"]).fails(1, &["cut.parquet"]);
    }
    // A text is a text, whatever it begins with.
    sandbox.write("text.csv", "PAR1,b\n1,2\n");
    sandbox.run(&["load", "text.csv", "--into", "store"]).ok();
}

#[test]
fn sniff_and_dry_runs_tell_of_parquet() {
    let sandbox = written();
    let run = sandbox.run(&["sniff", "swapped.parquet"]).ok();
    let told = "Parquet, fields: name BYTE_ARRAY (STRING), id INT64\n";
    assert!(run.out.starts_with(told), "{}", run.out);
    assert!(run.out.ends_with("coload load swapped.parquet --into STORE\n"), "{}", run.out);
    let run = sandbox.run(&["sniff", "snappy.parquet", "--output", "json"]).ok();
    let json: serde_json::Value = serde_json::from_str(&run.out).unwrap();
    assert_eq!((&json["format"], &json["dialect"]), (&"parquet".into(), &serde_json::Value::Null));
    let dry = ["load", "zstd.parquet", "--into", "store", "--dry-run", "--report", "json"];
    let json: serde_json::Value = serde_json::from_str(&sandbox.run(&dry).ok().out).unwrap();
    assert_eq!((&json["rows"], &json["dialect"]), (&4_000.into(), &serde_json::Value::Null));
    assert!(!sandbox.path("store").exists());
    let files = ["load", "zstd.parquet", "--into", "parquet:files", "--report", "json"];
    let json: serde_json::Value = serde_json::from_str(&sandbox.run(&files).ok().out).unwrap();
    assert_eq!(json["rows"], 4_000);
    // What a load wrote, it reads.
    let back =
        ["load", "files/*.parquet", "--into", "store", "--table", "back", "--report", "json"];
    let json: serde_json::Value = serde_json::from_str(&sandbox.run(&back).ok().out).unwrap();
    assert_eq!(json["rows"], 4_000);
}

/// 80 MB in one row group, in 64 MiB.
#[test]
fn memory_is_bounded() {
    let sandbox = Sandbox::new();
    let mut large = python("arrow_files.py");
    passes(large.arg("large_parquet").arg(sandbox.path("large.parquet")).arg("2000000"));
    let args =
        ["load", "large.parquet", "--into", "store", "--memory", "64MiB", "--report", "json"];
    let run = sandbox.run(&args).ok();
    let json: serde_json::Value = serde_json::from_str(&run.out).unwrap();
    let peak = json["peak_memory_bytes"].as_u64().unwrap() >> 20;
    assert_eq!(json["rows"], 2_000_000);
    // The program itself takes some 30 MiB.
    assert!(peak < 104, "{peak} MiB of 64");
}
