//! `coload sniff`, `coload export`, and rejects as a table.

use crate::support::Sandbox;

const DIRTY: &str = "# made by hand\nid;price;day\n1;1,50;31.12.2024\n2;2,75;01.01.2025\n3;;\n";

#[test]
fn what_is_sniffed_loads_the_same_way() {
    let sandbox = Sandbox::new();
    sandbox.write("a b.csv", DIRTY);
    let text = sandbox.run(&["sniff", "a b.csv"]).ok().out;
    for part in
        ["delimiter ';'", "CREATE TABLE", "price DECIMAL(", "day DATE", "--decimal-separator=,"]
    {
        assert!(text.contains(part), "{part}: {text}");
    }
    let json = sandbox.run(&["sniff", "a b.csv", "--output", "json"]).ok().out;
    let flags = json.lines().find_map(|line| line.trim().strip_prefix("\"flags\": \"")).unwrap();
    let flags = flags.trim_end_matches(',').trim_end_matches('"').replace("\\\"", "\"");
    let flags: Vec<&str> = flags.split(' ').map(|flag| flag.trim_matches('\'')).collect();
    let flags: Vec<String> = flags.iter().map(|flag| flag.replace("='", "=")).collect();
    let flags: Vec<&str> = flags.iter().map(String::as_str).collect();
    sandbox.run(&["load", "a b.csv", "--into", "guessed", "--table", "t"]).ok();
    let told = [&["load", "a b.csv", "--into", "told", "--table", "t"][..], &flags].concat();
    let run = sandbox.run(&told).ok();
    assert!(!run.err.contains("says otherwise"), "all was given: {run:?}");
    let rows = |store: &str| sandbox.run(&["export", store, "t", "--quote", "needed"]).ok().out;
    assert_eq!(rows("guessed"), rows("told"));
    assert!(rows("told").contains("1,1.50,2024-12-31"), "{}", rows("told"));
}

#[test]
fn a_sniffed_schema_is_a_schema_file() {
    let sandbox = Sandbox::new();
    sandbox.write("a.csv", "Id,\"odd \"\"name\"\n1,x\n2,y\n");
    let sql = sandbox.run(&["sniff", "a.csv", "--output", "sql"]).ok().out;
    assert!(sql.lines().next().unwrap().starts_with("-- "), "{sql}");
    sandbox.write("t.sql", &sql);
    sandbox.run(&["load", "a.csv", "--into", "store", "--schema", "t.sql"]).ok();
    assert_eq!(
        sandbox.run(&["export", "store", "a", "--quote", "needed"]).ok().out,
        "Id,\"odd \"\"name\"\n1,x\n2,y\n"
    );
}

#[test]
fn what_cannot_be_sniffed_is_told() {
    let sandbox = Sandbox::new();
    sandbox.write("binary", [0u8, 1, 2, 0, 0, 0]);
    sandbox.write("empty.csv", "");
    sandbox.run(&["sniff", "binary"]).fails(1, &["binary"]);
    sandbox.run(&["sniff", "empty.csv"]).fails(1, &["empty.csv", "holds no record"]);
    sandbox.run(&["sniff", "none.csv"]).fails(1, &["none.csv"]);
    sandbox.run(&["sniff", "empty.csv", "--output", "xml"]).fails(2, &["sql"]);
}

#[test]
fn standard_input_is_sniffed() {
    let sandbox = Sandbox::new();
    let run = sandbox.run_with_input(&["sniff", "-"], b"a\tb\n1\t2\n");
    assert!(run.ok().out.contains("--delimiter=tab"));
}

#[test]
fn an_export_is_what_was_loaded() {
    let sandbox = Sandbox::new();
    // NULL and the empty text, quotes, delimiters and line ends in fields, each type.
    let text = "a,b,c,d,e\n1,\"x,y\",1.50,2024-02-29,\n,\"\",-0.01,,\"a \"\"b\"\"\n c\"\n9,,,1999-12-31,\" z\"\n";
    sandbox.write("a.csv", text);
    let columns = "a BIGINT, b VARCHAR, c DECIMAL(5,2), d DATE, e VARCHAR";
    let load = ["load", "a.csv", "--into", "store", "--columns", columns, "--header"];
    sandbox.run(&load).ok();
    let out = sandbox.run(&["export", "store", "a", "--quote", "needed"]).ok().out;
    sandbox.write("b.csv", &out);
    sandbox.run(&["load", "b.csv", "--into", "store", "--columns", columns, "--header"]).ok();
    assert_eq!(sandbox.run(&["export", "store", "b", "--quote", "needed"]).ok().out, out);
    assert_eq!(out, text.replace("\" z\"", " z"));
    sandbox.run(&["export", "store", "a", "--output", "c.csv", "--quote", "needed"]).ok();
    assert_eq!(std::fs::read_to_string(sandbox.path("c.csv")).unwrap(), out);
    let rows = sandbox.run(&["export", "store", "a", "--no-header", "--quote", "needed"]).ok().out;
    assert_eq!(rows, out.split_once('\n').unwrap().1);
    sandbox.run(&["export", "store", "nothing", "--quote", "needed"]).fails(1, &["nothing"]);
    sandbox
        .run(&["export", "store", "a", "--output", "no/such/folder.csv"])
        .fails(1, &["folder.csv"]);
    assert!(!sandbox.path("no").exists());
}

#[test]
fn rejects_are_rows_of_a_table() {
    let sandbox = Sandbox::new();
    sandbox.write("a.csv", b"1,x\nzwei,\"y\nz\"\n3\n4,\xff\x00\n");
    let flags = ["--columns", "a BIGINT, b VARCHAR", "--no-header"];
    let load = [&["load", "a.csv", "--into", "store", "--table", "t"][..], &flags].concat();
    let into =
        |table: &'static str| [&load[..], &["--max-rejects", "9", "--rejects", table]].concat();
    sandbox.run(&into("table:bad")).ok();
    assert_eq!(sandbox.run(&["export", "store", "t", "--quote", "needed"]).ok().out, "a,b\n1,x\n");
    let bad = sandbox.run(&["export", "store", "bad", "--quote", "needed"]).ok().out;
    let expected = "file,line,byte,column,value,reason,raw\n\
        a.csv,2,4,a,zwei,is not BIGINT: not a number,\"zwei,\"\"y\nz\"\"\"\n\
        a.csv,4,15,,,the record has 1 field and the table 2 columns,3\n";
    assert!(bad.starts_with(expected), "{bad}");
    assert!(bad.lines().last().unwrap().starts_with("a.csv,5,17,b,\u{fffd}\u{fffd},"), "{bad}");
    // Rows and rejects are of one version.
    let inspected = sandbox.run(&["inspect", "store"]).ok().out;
    assert!(inspected.contains("version 2"), "{inspected}");
    // Appended, and only if there are some.
    sandbox.run(&into("table:bad")).ok();
    assert_eq!(
        sandbox.run(&["export", "store", "bad", "--quote", "needed"]).ok().out.lines().count(),
        1 + 2 * 5 - 1 - 1
    );
    sandbox.write("a.csv", "1,x\n");
    sandbox.run(&into("table:none")).ok();
    sandbox.run(&["export", "store", "none", "--quote", "needed"]).fails(1, &["none"]);
    // A table of another kind, the table itself, and a load that fails.
    sandbox.run(&into("table:T")).fails(1, &["is the table that is loaded"]);
    sandbox.write("c.csv", "1\n");
    sandbox.run(&["load", "c.csv", "--into", "store"]).ok();
    sandbox.run(&into("table:c")).fails(1, &["has other columns"]);
    sandbox.write("a.csv", "x,x\nx,x\n");
    let strict = [&load[..], &["--rejects", "table:strict", "--max-rejects", "1"]].concat();
    sandbox.run(&strict).fails(1, &["is not BIGINT"]);
    sandbox.run(&["export", "store", "strict", "--quote", "needed"]).fails(1, &["strict"]);
}
