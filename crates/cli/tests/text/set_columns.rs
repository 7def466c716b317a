//! Columns that are not read from the input: set by a flag, or by their defaults.

use crate::support::Sandbox;

const FLAGS: &[&str] = &["--into", "store", "--table", "t"];

fn load(sandbox: &Sandbox, inputs: &[&str], flags: &[&str]) -> crate::support::Run {
    sandbox.run(&[&["load"], inputs, FLAGS, flags].concat())
}

fn export(sandbox: &Sandbox) -> String {
    sandbox.run(&["export", "store", "t", "--quote", "needed"]).ok().out
}

#[test]
fn columns_are_set_to_values_and_names_of_inputs() {
    let sandbox = Sandbox::new();
    sandbox.write("1.csv", "a,b\n1,x\n2,y\n");
    sandbox.write("2.csv", "a,b\n");
    sandbox.write("3.csv", "a,b\n3,\"x\nz\"\n");
    let set =
        ["--set", "source=@file", "--set", "batch=7", "--set", "note=@null", "--set", "at=@@x"];
    for threads in ["1", "4"] {
        let small = ["--threads", threads, "--chunk-size", "16", "--replace"];
        load(&sandbox, &["1.csv", "2.csv", "3.csv"], &[&set[..], &small].concat()).ok();
        let rows =
            "a,b,source,batch,note,at\n1,x,1.csv,7,,@x\n2,y,1.csv,7,,@x\n3,\"x\nz\",3.csv,7,,@x\n";
        assert_eq!(export(&sandbox), rows);
    }
    // Into the table that is there: by position the fields are the other columns.
    load(&sandbox, &["3.csv"], &[&set[..], &["--quote", "\""]].concat()).ok();
    assert_eq!(export(&sandbox).lines().count(), 1 + 2 + 2 + 2);
}

#[test]
fn the_name_of_an_input_must_fit_its_column() {
    let sandbox = Sandbox::new();
    sandbox.write("1.csv", "1\n2\n");
    let fits = ["--columns", "a BIGINT, f VARCHAR(5)", "--set", "f=@file", "--no-header"];
    load(&sandbox, &["1.csv"], &fits).ok();
    assert_eq!(export(&sandbox), "a,f\n1,1.csv\n2,1.csv\n");
    let short = ["--columns", "a BIGINT, f VARCHAR(4)", "--set", "f=@file", "--no-header"];
    load(&sandbox, &["1.csv"], &short).fails(1, &["--set f", "1.csv", "VARCHAR(4)"]);
}

#[test]
fn columns_that_the_input_lacks_get_their_defaults_by_name() {
    let sandbox = Sandbox::new();
    let table =
        "CREATE TABLE t (a BIGINT, n DATE, d DECIMAL(5,2) NOT NULL DEFAULT 1.5, b VARCHAR);";
    sandbox.write("t.sql", table);
    sandbox.write("1.csv", "b,a\nx,1\ny,2\n");
    let run = load(&sandbox, &["1.csv"], &["--schema", "t.sql", "--by-name"]).ok();
    assert!(run.err.contains("the input lacks: n (NULL), d (DEFAULT 1.50)"), "{run:?}");
    load(&sandbox, &["1.csv"], &["--map", "1=b", "--set", "d=7", "--set", "n=2024-02-29"]).ok();
    let rows = "a,n,d,b\n1,,1.50,x\n2,,1.50,y\n1,2024-02-29,7.00,x\n2,2024-02-29,7.00,y\n";
    assert_eq!(export(&sandbox), rows);
}

#[test]
fn inferred_types_become_wider_beside_columns_that_are_set() {
    let sandbox = Sandbox::new();
    let text: String =
        (0..2000).map(|i| format!("{i},k\n")).chain(["1.5,k\n".to_owned()]).collect();
    sandbox.write("1.csv", text);
    load(&sandbox, &["1.csv"], &["--set", "s=5", "--sample", "1KiB", "--no-header"]).ok();
    let rows = export(&sandbox);
    assert_eq!(rows.lines().last(), Some("1.500,k,5"));
}

#[test]
fn rejects_beside_columns_that_are_set_name_the_right_column() {
    let sandbox = Sandbox::new();
    sandbox.write("1.csv", "1,x\n2,y\n?,z\n");
    let columns = "s VARCHAR, a BIGINT, b VARCHAR";
    load(&sandbox, &["1.csv"], &["--columns", columns, "--set", "s=k", "--no-header"])
        .fails(1, &["1.csv:3", "column a"]);
}

#[test]
fn what_cannot_be_set_is_told_with_the_flag() {
    let sandbox = Sandbox::new();
    sandbox.write("1.csv", "a,b\n1,x\n");
    let columns = ["--columns", "a BIGINT, b VARCHAR, c DATE NOT NULL", "--by-name"];
    let cases: [(&[&str], &str); 8] = [
        (&[], "--set c=VALUE"),
        (&["--set", "c=@file"], "only text holds it"),
        (&["--set", "c=@null"], "NOT NULL"),
        (&["--set", "c=2024-02-30"], "no such date"),
        (&["--set", "x=1"], "no column x"),
        (&["--set", "c=2024-01-01", "--set", "C=2024-01-02"], "set twice"),
        (&["--set", "a=1", "--set", "b=1", "--set", "c=2024-01-01"], "no column that is read"),
        (&["--map", "a=d", "--set", "c=2024-01-01"], "no column d"),
    ];
    for (flags, part) in cases {
        load(&sandbox, &["1.csv"], &[&columns[..], flags].concat()).fails(1, &[part]);
    }
    load(&sandbox, &["1.csv"], &["--set", "b=1"]).fails(1, &["has a field of that name"]);
    load(&sandbox, &["1.csv"], &["--set", "b=@when"]).fails(2, &["@load-time"]);
}

#[test]
fn the_load_time_is_one_instant() {
    let sandbox = Sandbox::new();
    sandbox.write("1.csv", "1\n2\n");
    let columns = "a BIGINT, t TIMESTAMP WITH TIME ZONE, d DATE, s VARCHAR";
    let set = ["--set", "t=@load-time", "--set", "d=@load-time", "--set", "s=@load-time"];
    let flags = [&["--columns", columns, "--no-header"][..], &set].concat();
    load(&sandbox, &["1.csv"], &flags).ok();
    let rows = export(&sandbox);
    let rows: Vec<Vec<&str>> = rows.lines().skip(1).map(|line| line.split(',').collect()).collect();
    assert_eq!(rows[0][1..], rows[1][1..]);
    assert!(rows[0][2].starts_with("20") && rows[0][1].starts_with(rows[0][2]), "{rows:?}");
}

#[test]
fn folders_of_paths_are_columns() {
    let sandbox = Sandbox::new();
    for (path, rows) in [
        ("d/year=2026/month=01/a.csv", "a\n1\n2\n"),
        ("d/year=2026/month=__HIVE_DEFAULT_PARTITION__/a.csv", "a\n3\n"),
        ("d/year=2027/month=a%3Ab/b.csv", "a\n4\n"),
    ] {
        sandbox.write(path, rows);
    }
    let all = "d/*/*/*.csv";
    for threads in ["1", "4"] {
        let flags = ["--partitions", "--threads", threads, "--chunk-size", "16", "--replace"];
        load(&sandbox, &[all], &flags).ok();
        assert_eq!(export(&sandbox), "a,year,month\n1,2026,01\n2,2026,01\n3,2026,\n4,2027,a:b\n");
    }
    // Into the table that is there; what is set comes before the path, and one may be asked for by itself.
    load(&sandbox, &[all], &["--partitions", "--set", "month=x"]).ok();
    assert!(export(&sandbox).ends_with("4,2027,x\n"), "{}", export(&sandbox));
    load(&sandbox, &[all], &["--set", "year=@path", "--replace"]).ok();
    assert_eq!(export(&sandbox), "a,year\n1,2026\n2,2026\n3,2026\n4,2027\n");
    // Types are inferred from all paths, or given.
    let types = ["--columns", "a BIGINT, year SMALLINT, month INTEGER", "--partitions"];
    load(&sandbox, &[all], &[&types[..], &["--replace"]].concat())
        .fails(1, &["month=a%3Ab", "month=a:b is not INTEGER"]);
    let not_null = ["--columns", "a BIGINT, month VARCHAR NOT NULL", "--set", "month=@path"];
    load(&sandbox, &[all], &[&not_null[..], &["--replace"]].concat())
        .fails(1, &["__HIVE_DEFAULT_PARTITION__", "NOT NULL"]);
}

#[test]
fn folders_are_columns_where_that_is_clear() {
    let sandbox = Sandbox::new();
    for (path, rows) in [
        ("d/year=2026/a.csv", "a\n1\n"),
        ("d/year=2027/b.csv", "a\n2\n"),
        ("e/year=2028/c.csv", "a\n3\n"),
        ("own/year=1/a.csv", "a,year\n1,2030\n"),
        ("other/x=1/a.csv", "a\n1\n"),
        ("no word/2 x=1/a.csv", "a\n1\n"),
    ] {
        sandbox.write(path, rows);
    }
    let all = "d/*/*.csv";
    let run = load(&sandbox, &[all], &[]).ok();
    assert!(run.err.contains("columns from the paths: year (--no-partitions"), "{}", run.err);
    assert_eq!(export(&sandbox), "a,year\n1,2026\n2,2027\n");
    // The table that is there has the column, and other inputs for it; a field of that name is the column.
    load(&sandbox, &["e/*/*.csv"], &[]).ok();
    load(&sandbox, &["own/*/*.csv"], &[]).ok();
    load(&sandbox, &["own/*/*.csv"], &["--by-name"]).ok();
    assert_eq!(export(&sandbox), "a,year\n1,2026\n2,2027\n3,2028\n1,2030\n1,2030\n");
    load(&sandbox, &["own/*/*.csv"], &["--replace"]).ok();
    assert_eq!(export(&sandbox), "a,year\n1,2030\n");
    // A table without it stays as it is; and who says otherwise.
    load(&sandbox, &[all], &["--no-partitions", "--replace"]).ok();
    assert_eq!(export(&sandbox), "a\n1\n2\n");
    load(&sandbox, &[all], &[]).ok();
    assert_eq!(export(&sandbox), "a\n1\n2\n1\n2\n");
    load(&sandbox, &[all], &["--select", "a * 2 AS a", "--replace"]).ok();
    assert_eq!(export(&sandbox), "a\n2\n4\n");
    load(&sandbox, &[all], &["--select", "a * 2 AS a", "--partitions", "--replace"]).ok();
    assert_eq!(export(&sandbox), "a,year\n2,2026\n4,2027\n");
    load(&sandbox, &[all], &["--columns", "a BIGINT, year SMALLINT", "--replace"]).ok();
    assert_eq!(export(&sandbox), "a,year\n1,2026\n2,2027\n");
    // Inputs that have not the same, and keys that are no words.
    load(&sandbox, &["d/year=2026/a.csv", "other/x=1/a.csv"], &["--replace"]).ok();
    assert_eq!(export(&sandbox), "a\n1\n1\n");
    load(&sandbox, &["no word/2 x=1/a.csv"], &["--replace"]).ok();
    assert_eq!(export(&sandbox), "a\n1\n");
}

#[test]
fn paths_with_other_folders_are_told() {
    let sandbox = Sandbox::new();
    for path in ["d/year=1/a.csv", "d/year=2/b.csv", "d/c.csv", "d/x=1/x=2/d.csv", "d/y=1/e.csv"] {
        sandbox.write(path, "a\n1\n");
    }
    let new = ["--partitions", "--replace"];
    load(&sandbox, &["d/c.csv"], &new).fails(1, &["d/c.csv has no folder such as year=2026"]);
    load(&sandbox, &["d/x=1/x=2/d.csv"], &new).fails(1, &["x= twice"]);
    load(&sandbox, &["d/year=1/a.csv", "d/y=1/e.csv"], &new)
        .fails(1, &["d/year=1/a.csv has year=", "d/y=1/e.csv has y="]);
    load(&sandbox, &["d/year=1/a.csv", "d/c.csv"], &new).fails(1, &["d/c.csv has none"]);
    load(&sandbox, &["d/year=1/a.csv"], &["--set", "z=@path", "--replace"])
        .fails(1, &["d/year=1/a.csv has no z= in its path"]);
    sandbox.write("d/a=7/f.csv", "a\n1\n");
    load(&sandbox, &["d/a=7/f.csv"], &new).fails(1, &["the input has a field of that name"]);
}
