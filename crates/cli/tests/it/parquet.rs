//! `coload load --into parquet:DIR`: the files as other programs read them.

use std::collections::BTreeMap;
use std::fs;
use std::io::Write;

use tpchgen::generators::LineItemGenerator;

use crate::drivers::{passes, python};
use crate::support::{COLUMNS, Run, Sandbox, rows};

/// Columns of the file that `parquet_files.py` writes.
const ALL_TYPES: &str = "id BIGINT NOT NULL, flag BOOLEAN, small SMALLINT, whole INTEGER, large BIGINT, \
     money DECIMAL(9,2), more DECIMAL(18,0), most DECIMAL(38,10), real REAL, double DOUBLE, day DATE, hour TIME, \
     moment TIMESTAMP, instant TIMESTAMP WITH TIME ZONE, text VARCHAR, code CHAR(3) NOT NULL, bytes BINARY, key UUID";
/// Flags that cut a small file into many chunks and several row groups.
const SMALL: [&str; 4] = ["--chunk-size", "256KiB", "--fragments-per-partition", "3"];

/// The Parquet files of a folder, by name.
pub fn files(sandbox: &Sandbox, folder: &str) -> BTreeMap<String, Vec<u8>> {
    let Ok(entries) = fs::read_dir(sandbox.path(folder)) else { return BTreeMap::new() };
    let entries = entries
        .map(|entry| entry.unwrap())
        .filter(|entry| entry.path().extension().is_some_and(|extension| extension == "parquet"));
    let file = |entry: fs::DirEntry| {
        (entry.file_name().into_string().unwrap(), fs::read(entry.path()).unwrap())
    };
    entries.map(file).collect()
}

/// All names in a folder.
pub fn names(sandbox: &Sandbox, folder: &str) -> Vec<String> {
    let Ok(entries) = fs::read_dir(sandbox.path(folder)) else { return Vec::new() };
    let mut names: Vec<String> =
        entries.map(|entry| entry.unwrap().file_name().into_string().unwrap()).collect();
    names.sort();
    names
}

/// Loads a file with [`COLUMNS`] and more flags.
pub fn load(sandbox: &Sandbox, file: &str, folder: &str, flags: &[&str]) -> Run {
    let into = format!("parquet:{folder}");
    let mut args = vec!["load", file, "--into", &into, "--columns", COLUMNS];
    args.extend(flags);
    sandbox.run(&args)
}

/// What DuckDB answers of the files, cells joined by bars.
fn query(sandbox: &Sandbox, sql: &str) -> Vec<String> {
    let script = format!(
        "import duckdb\nfor row in duckdb.sql(\"\"\"{sql}\"\"\").fetchall(): print('|'.join(map(str, row)))"
    );
    let python = crate::drivers::drivers().join("bin/python");
    let mut command = std::process::Command::new(python);
    let run = command.args(["-c", &script]).current_dir(sandbox.path("."));
    Run::of(run.output().unwrap()).ok().out.lines().map(str::to_owned).collect()
}

#[test]
fn all_types_are_read_by_others_as_they_were() {
    let sandbox = Sandbox::new();
    passes(python("parquet_files.py").arg("write").arg(sandbox.path("all.csv")));
    let mut made = Vec::new();
    for threads in ["1", "4"] {
        let into = format!("parquet:threads{threads}");
        let args =
            ["load", "all.csv", "--into", &into, "--columns", ALL_TYPES, "--threads", threads];
        sandbox.run(&[&args[..], &SMALL].concat()).ok();
        made.push(files(&sandbox, &format!("threads{threads}")).into_values().collect::<Vec<_>>());
    }
    assert!(made[0] == made[1], "the bytes depend on the threads");
    passes(python("parquet_files.py").arg("types").arg(sandbox.path("threads4")));
    // Dictionaries of all columns, and the files of a second load beside those of the first.
    let args = ["load", "all.csv", "--into", "parquet:threads4", "--dictionaries", "always"];
    sandbox.run(&[&args[..], &SMALL].concat()).ok();
    passes(python("parquet_files.py").arg("types").arg(sandbox.path("threads4")).arg("2"));
    // A store that is loaded of the same says the same.
    sandbox.run(&["load", "all.csv", "--into", "store", "--columns", ALL_TYPES]).ok();
    let counts = "SELECT count(*), count(flag), sum(money), min(most), max(day), count(text), min(moment) FROM ";
    let stored = sandbox.query(&format!("{counts} \"all\""));
    let found = query(&sandbox, &format!("{counts} read_parquet('threads1/*.parquet')"));
    assert_eq!(stored[0].replace(',', "|"), found[0]);
}

#[test]
fn lineitem_is_read_by_others_as_it_was() {
    let sandbox = Sandbox::new();
    let mut text = Vec::new();
    for item in LineItemGenerator::new(0.01, 1, 1).iter() {
        writeln!(text, "{item}").unwrap();
    }
    sandbox.write("lineitem.tbl", text);
    sandbox.write("lineitem.sql", include_str!("../../src/command/demo/lineitem.sql"));
    let mut made = Vec::new();
    for threads in ["1", "4"] {
        let into = format!("parquet:t{threads}");
        let args = [
            "load",
            "lineitem.tbl",
            "--into",
            &into,
            "--schema",
            "lineitem.sql",
            "--threads",
            threads,
        ];
        let json = ["--report", "json"];
        let run = sandbox.run(&[&args[..], &SMALL, &json].concat()).ok();
        let report: serde_json::Value = serde_json::from_str(&run.out).unwrap();
        assert_eq!(report["rows"], 60_175);
        let written = &report["written"][0];
        assert!(written["row_groups"].as_u64().unwrap() > 5, "{written}");
        let codec = |n: usize| report["columns"][n]["codec"].as_str().unwrap().to_owned();
        assert_eq!((codec(8).as_str(), codec(15).as_str()), ("dictionary", "plain"));
        made.push(files(&sandbox, &format!("t{threads}")).into_values().collect::<Vec<_>>());
    }
    assert!(made[0] == made[1], "the bytes depend on the threads");
    let mut check = python("parquet_files.py");
    passes(check.arg("table").arg(sandbox.path("t4")).arg(sandbox.path("lineitem.tbl")));
}

#[test]
fn files_are_added_if_their_columns_are_the_same() {
    let sandbox = Sandbox::new();
    sandbox.write("a.csv", rows(1, 100));
    sandbox.write("b.csv", rows(101, 100));
    load(&sandbox, "a.csv", "out", &["--no-header"]).ok();
    let before = files(&sandbox, "out");
    assert_eq!(before.len(), 1);
    // The columns are those of the files: no flag names them.
    let run = sandbox.run(&["load", "b.csv", "--into", "parquet:out", "--no-header"]).ok();
    assert!(run.err.contains("columns are those of the files in out"), "{}", run.err);
    let after = files(&sandbox, "out");
    assert_eq!(after.len(), 2);
    assert!(before.iter().all(|(name, bytes)| after.get(name) == Some(bytes)));
    let ids = query(&sandbox, "SELECT count(*), sum(id) FROM 'out/*.parquet'");
    assert_eq!(ids, ["200|20100"]);
    // In the order of the names, which is that of the loads.
    let first = query(&sandbox, "SELECT id FROM 'out/*.parquet' LIMIT 1 OFFSET 100");
    assert_eq!(first, ["101"]);
    for (columns, parts) in [
        (COLUMNS.replace("(8,2)", "(9,2)"), ["price DECIMAL(8,2)", "price DECIMAL(9,2)"]),
        (COLUMNS.replace(" NOT NULL", ""), ["id BIGINT NOT NULL", "load id BIGINT"]),
        (COLUMNS.replace("day", "date"), ["column day DATE", "load date DATE"]),
        (COLUMNS.replace(", name VARCHAR(10)", ""), ["no column name", ".parquet"]),
    ] {
        let args = ["load", "b.csv", "--into", "parquet:out", "--no-header", "--columns", &columns];
        sandbox.run(&[&args[..], &["--ragged", "truncate"]].concat()).fails(1, &parts);
        sandbox.run(&[&args[..], &["--ragged", "truncate", "--dry-run"]].concat()).fails(1, &parts);
    }
    assert_eq!(files(&sandbox, "out"), after);
    assert_eq!(names(&sandbox, "out").len(), 2, "something is left");
}

#[test]
fn files_are_replaced_if_a_load_wrote_them() {
    let sandbox = Sandbox::new();
    sandbox.write("a.csv", rows(1, 100));
    sandbox.write("b.csv", rows(500, 10));
    load(&sandbox, "a.csv", "out", &["--no-header", "--create"]).ok();
    let run = load(&sandbox, "a.csv", "out", &["--no-header", "--create"]);
    let first = names(&sandbox, "out").remove(0);
    run.fails(1, &["--create", "out has 1 Parquet files", &first, "--append", "--replace"]);
    load(&sandbox, "a.csv", "out", &["--no-header"]).ok();
    let run =
        load(&sandbox, "b.csv", "out", &["--no-header", "--replace", "--report", "json"]).ok();
    let report: serde_json::Value = serde_json::from_str(&run.out).unwrap();
    assert_eq!(report["removed"].as_array().unwrap().len(), 2);
    assert_eq!(report["written"][0]["name"].as_str().unwrap(), names(&sandbox, "out")[0]);
    assert_eq!(query(&sandbox, "SELECT count(*), min(id) FROM 'out/*.parquet'"), ["10|500"]);
    // Other columns may take their place, but not that of a file of another program.
    sandbox.run(&["load", "b.csv", "--into", "parquet:out", "--no-header", "--replace"]).ok();
    let before = files(&sandbox, "out");
    query(&sandbox, "COPY (SELECT 1 AS id) TO 'out/other.parquet'");
    let run = load(&sandbox, "a.csv", "out", &["--no-header", "--replace"]);
    run.fails(1, &["--replace", "other.parquet", "did not write"]);
    fs::remove_file(sandbox.path("out/other.parquet")).unwrap();
    assert_eq!(files(&sandbox, "out"), before);
    assert_eq!(names(&sandbox, "out").len(), 1, "something is left");
}

#[test]
fn files_of_others_are_added_to_if_their_columns_are_the_same() {
    let sandbox = Sandbox::new();
    sandbox.write("a.csv", "id,name\n1,a\n2,\n");
    fs::create_dir(sandbox.path("out")).unwrap();
    query(&sandbox, "COPY (SELECT 7::BIGINT AS id, 'x' AS name) TO 'out/a.parquet'");
    sandbox.run(&["load", "a.csv", "--into", "parquet:out"]).ok();
    let found = query(&sandbox, "SELECT id, name FROM 'out/*.parquet' ORDER BY id");
    assert_eq!(found, ["1|a", "2|", "7|x"]);
    fs::create_dir(sandbox.path("odd")).unwrap();
    query(&sandbox, "COPY (SELECT 7::UINTEGER AS id, 'x' AS name) TO 'odd/a.parquet'");
    let run = sandbox.run(&["load", "a.csv", "--into", "parquet:odd"]);
    run.fails(1, &["column id is INT32", "a load does not write"]);
    sandbox.write("out/a.parquet", "no Parquet");
    let run = sandbox.run(&["load", "a.csv", "--into", "parquet:out"]);
    run.fails(1, &["out/a.parquet", "cannot be read as Parquet"]);
}

#[test]
fn rejects_filters_and_expressions_are_those_of_a_store() {
    let sandbox = Sandbox::new();
    sandbox.write("a.csv", format!("{}x,1.00,2024-02-01,bad\n8,1,2024-02-30,bad\n", rows(1, 50)));
    let flags = ["--no-header", "--max-rejects", "2", "--rejects", "rejects.csv"];
    load(&sandbox, "a.csv", "out", &flags).ok();
    assert_eq!(query(&sandbox, "SELECT count(*) FROM 'out/*.parquet'"), ["50"]);
    let rejects = fs::read_to_string(sandbox.path("rejects.csv")).unwrap();
    assert_eq!(rejects.lines().count(), 3, "{rejects}");
    load(&sandbox, "a.csv", "strict", &["--no-header"]).fails(1, &["a.csv:51", "column id"]);
    assert!(!sandbox.path("strict").exists(), "a load that failed left its folder");
    let run = load(
        &sandbox,
        "a.csv",
        "out",
        &["--no-header", "--max-rejects", "2", "--rejects", "out/r.csv"],
    );
    run.fails(1, &["--rejects out/r.csv", "the folder of the Parquet files"]);
    let args = ["load", "a.csv", "--into", "parquet:some", "--no-header", "--columns", COLUMNS];
    let more = ["--max-rejects", "2", "--where", "id > 40 AND price < 48", "--report", "json"];
    let run = sandbox.run(&[&args[..], &more].concat()).ok();
    let report: serde_json::Value = serde_json::from_str(&run.out).unwrap();
    assert_eq!((&report["rows"], &report["filtered"]), (&7.into(), &43.into()));
    assert_eq!(
        (&report["version"], &report["table"]),
        (&serde_json::Value::Null, &serde_json::Value::Null)
    );
    assert_eq!(query(&sandbox, "SELECT sum(id) FROM 'some/*.parquet'"), ["308"]);
    sandbox.write("b.csv", "a,b\n1,x\n2,y\n");
    let args =
        ["load", "b.csv", "--into", "parquet:made", "--select", "a * 2 AS twice, upper(b) AS b"];
    sandbox.run(&args).ok();
    assert_eq!(query(&sandbox, "SELECT * FROM 'made/*.parquet'"), ["2|X", "4|Y"]);
}

/// Wider types than the sample told: the load starts again, and a stream is read again from what was kept of it.
#[test]
fn columns_become_wider_in_files_and_streams() {
    let sandbox = Sandbox::new();
    let mut text = String::from("a,b,c\n");
    for row in 0..60_000 {
        match row {
            30_000 => text.push_str("1.25,x,1\n"),
            50_000 => text.push_str("7,8,soon\n"),
            _ => text.push_str(&format!("{row},{row},{}\n", row % 9)),
        }
    }
    let flags = [
        "--sample",
        "1KiB",
        "--chunk-size",
        "64KiB",
        "--fragments-per-partition",
        "2",
        "--threads",
        "3",
    ];
    sandbox.write("a.csv", &text);
    sandbox.run(&[&["load", "a.csv", "--into", "parquet:file"], &flags[..]].concat()).ok();
    let args =
        [&["load", "-", "--into", "parquet:stream", "--report", "json"], &flags[..]].concat();
    let run = sandbox.run_with_input(&args, text.as_bytes()).ok();
    let report: serde_json::Value = serde_json::from_str(&run.out).unwrap();
    assert_eq!(report["widened"].as_array().unwrap().len(), 3, "{report}");
    let sum = "SELECT count(*), sum(a), min(b), max(c), typeof(any_value(a)) FROM";
    let ask = |folder| query(&sandbox, &format!("{sum} '{folder}/*.parquet'"));
    assert_eq!(ask("file"), ask("stream"));
    let (count, rest) =
        ask("file")[0].split_once('|').map(|(a, b)| (a.to_owned(), b.to_owned())).unwrap();
    assert!(count == "60000" && rest.contains(".2500|0|soon|DECIMAL("), "{count} {rest}");
    let both = "SELECT * FROM 'file/*.parquet' EXCEPT ALL SELECT * FROM 'stream/*.parquet'";
    assert_eq!(query(&sandbox, both).len(), 0);
    assert_eq!((names(&sandbox, "file").len(), names(&sandbox, "stream").len()), (1, 1));
}

#[test]
fn a_dry_run_tells_and_writes_nothing() {
    let sandbox = Sandbox::new();
    sandbox.write("a.csv", rows(1, 1000));
    let run =
        load(&sandbox, "a.csv", "out", &["--no-header", "--dry-run", "--report", "json"]).ok();
    assert!(!sandbox.path("out").exists());
    let dry: serde_json::Value = serde_json::from_str(&run.out).unwrap();
    let run = load(&sandbox, "a.csv", "out", &["--no-header", "--report", "json"]).ok();
    let wet: serde_json::Value = serde_json::from_str(&run.out).unwrap();
    assert_eq!(dry["rows"], wet["rows"]);
    assert_eq!(dry["bytes_stored"], wet["bytes_stored"]);
    let bytes: usize = files(&sandbox, "out").values().map(Vec::len).sum();
    assert_eq!(wet["bytes_stored"], bytes);
    let run = load(&sandbox, "a.csv", "out", &["--no-header", "--dry-run"]).ok();
    assert!(run.out.contains(" as Parquet;"), "{}", run.out);
}

#[test]
fn what_has_no_rows_has_columns() {
    let sandbox = Sandbox::new();
    sandbox.write("a.csv", "");
    load(&sandbox, "a.csv", "out", &["--no-header"]).ok();
    let found = query(
        &sandbox,
        "SELECT column_name, column_type FROM (DESCRIBE SELECT * FROM 'out/*.parquet')",
    );
    assert_eq!(found, ["id|BIGINT", "price|DECIMAL(8,2)", "day|DATE", "name|VARCHAR"]);
    let run = sandbox.run(&["load", "a.csv", "--into", "parquet:none"]).ok();
    assert!(run.err.contains("nothing to load") && !sandbox.path("none").exists(), "{}", run.err);
}

#[test]
fn what_only_stores_can_do_is_refused() {
    let sandbox = Sandbox::new();
    sandbox.write("a.csv", rows(1, 3));
    load(&sandbox, "a.csv", "out", &["--table", "t"]).fails(2, &["--table t", "tables in stores"]);
    let run = load(&sandbox, "a.csv", "out", &["--rejects", "table:r"]);
    run.fails(2, &["--rejects table:r", "tables in stores", "a file"]);
    sandbox.load("a.csv", &["--no-header"]).ok();
    load(&sandbox, "a.csv", "store", &["--no-header"]).fails(1, &["store is a store", "parquet:"]);
    load(&sandbox, "a.csv", "a.csv", &["--no-header"]).fails(1, &["a.csv is not a directory"]);
    load(&sandbox, "a.csv", "", &["--no-header"]).fails(1, &["parquet:DIR"]);
    load(&sandbox, "a.csv", "no/such/folder", &["--no-header"]).fails(1, &["no/such/folder"]);
    load(&sandbox, "a.csv", "out", &["--no-header"]).ok();
    sandbox.run(&["load", "a.csv", "--into", "out"]).fails(1, &["holds other files"]);
    sandbox.run(&["sql", "--store", "out", "-c", "SELECT 1"]).fails(1, &["out is not a store"]);
}
