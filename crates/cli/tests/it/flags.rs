//! Flags and exit statuses.

use crate::support::{Sandbox, rows};

#[test]
fn wrong_usage_is_exit_status_2() {
    let sandbox = Sandbox::new();
    sandbox.write("a.csv", rows(1, 3));
    for (args, part) in [
        (&["load", "a.csv"][..], "--into"),
        (&["load", "--into", "store"], "<INPUT>"),
        (&["load", "a.csv", "--into", "store", "--threads", "0"], "at least 1"),
        (&["load", "a.csv", "--into", "store", "--memory", "lots"], "expected a size"),
        (&["load", "a.csv", "--into", "store", "--chunk-size", "2TiB"], "--chunk-size"),
        (
            &["load", "a.csv", "--into", "store", "--delimiter", "nine bytes"],
            "2 to 8 bytes of text",
        ),
        (&["load", "a.csv", "--into", "store", "--max-rejects=-1"], "--max-rejects"),
        (&["load", "a.csv", "--into", "store", "--max-rejects", "101%"], "--max-rejects"),
        (&["load", "a.csv", "--into", "store", "--columns", "a BIGNUM"], "--columns"),
        (&["load", "a.csv", "--into", "store", "--append", "--replace"], "cannot be used with"),
        (&["load", "a.csv", "--into", "store", "--header", "--no-header"], "cannot be used with"),
        (&["load", "a.csv", "--into", "store", "--encoding", "zip"], "windows-1252"),
        (&["load", "a.csv", "--into", "store", "--encoding", "dictionary"], "windows-1252"),
        (&["load", "a.csv", "--into", "store", "--delimiter", "\"", "--quote", "\""], "both"),
        (&["sql", "--store", "store", "--output", "xml"], "csv"),
        (&["lode"], "unrecognized subcommand"),
        (&[], "Usage"),
    ] {
        let run = sandbox.run(args).fails(2, &[part]);
        assert!(run.out.is_empty(), "{run:?}");
    }
}

#[test]
fn help_and_version_are_exit_status_0() {
    let sandbox = Sandbox::new();
    assert!(sandbox.run(&["--version"]).ok().out.starts_with("coload 0."));
    let help = sandbox.run(&["load", "--help"]).ok().out;
    for flag in [
        "--into",
        "--table",
        "--schema",
        "--columns",
        "--append",
        "--replace",
        "--create",
        "--delimiter",
        "--quote",
        "--escape",
        "--header",
        "--no-header",
        "--null",
        "--skip",
        "--comment",
        "--max-rejects",
        "--rejects",
        "--threads",
        "--memory",
        "--chunk-size",
        "--fragments-per-partition",
        "--merge-columns",
        "--encoding",
        "--dictionaries",
        "--report",
    ] {
        assert!(help.contains(flag), "{flag}");
    }
}

#[test]
fn append_replace_and_create_do_what_they_say() {
    let sandbox = Sandbox::new();
    sandbox.write("a.csv", rows(1, 10));
    sandbox.load("a.csv", &["--create"]).ok();
    sandbox.load("a.csv", &["--create"]).fails(1, &["table t exists already", "--replace"]);
    sandbox.load("a.csv", &[]).ok();
    sandbox.load("a.csv", &["--append"]).ok();
    assert_eq!(sandbox.query("SELECT count(*), sum(id) FROM t"), ["30,165"]);
    sandbox.load("a.csv", &["--replace"]).ok();
    assert_eq!(sandbox.query("SELECT count(*), sum(id) FROM t"), ["10,55"]);
}

#[test]
fn a_table_that_exists_gives_the_columns() {
    let sandbox = Sandbox::new();
    sandbox.write("a.csv", rows(1, 10));
    sandbox.load("a.csv", &[]).ok();
    sandbox.write("t.csv", rows(11, 10));
    let run = sandbox.run(&["load", "t.csv", "--into", "store"]).ok();
    assert!(run.err.contains("columns are those of table t"), "{}", run.err);
    assert_eq!(sandbox.query("SELECT count(*), sum(id) FROM t"), ["20,210"]);
    sandbox.write("u.csv", "1,2\n");
    let run = sandbox.run(&["load", "u.csv", "--into", "store", "--table", "t"]);
    run.fails(1, &["the record has 2 fields and the table 4 columns"]);
}

#[test]
fn what_is_inferred_is_told_with_the_way_to_override_it() {
    let sandbox = Sandbox::new();
    sandbox
        .write("data/people.csv", "name;born;height\nAda;1815-12-10;1.60\nAlan;1912-06-23;1.79\n");
    let run = sandbox.run(&["load", "data/people.csv", "--into", "store"]).ok();
    for part in
        ["delimiter ';'", "--no-header says otherwise", "--columns 'name VARCHAR", "born DATE"]
    {
        assert!(run.err.contains(part), "{part}: {}", run.err);
    }
    let answer = sandbox.query("SELECT name FROM people WHERE born < DATE '1900-01-01'");
    assert_eq!(answer, ["Ada"]);
}

#[test]
fn a_schema_file_gives_the_columns() {
    let sandbox = Sandbox::new();
    sandbox.write("s.sql", "-- columns\nCREATE TABLE x (a SMALLINT NOT NULL, b TEXT);");
    sandbox.write("a.tbl", "1|one|\n2|two|\n");
    sandbox.run(&["load", "a.tbl", "--into", "store", "--schema", "s.sql"]).ok();
    assert_eq!(sandbox.query("SELECT b FROM a WHERE a = 2"), ["two"]);
    sandbox.write("bad.sql", "CREATE TABLE x (a SMALLINT");
    let bad = sandbox.run(&["load", "a.tbl", "--into", "store", "--schema", "bad.sql"]);
    bad.fails(2, &["--schema bad.sql"]);
    let missing = sandbox.run(&["load", "a.tbl", "--into", "store", "--schema", "no.sql"]);
    missing.fails(1, &["no.sql"]);
}

#[test]
fn dialect_flags_are_obeyed() {
    let sandbox = Sandbox::new();
    sandbox.write("odd.txt", "junk\n# note\n1;'a;\\'b'\n# more\n2;NA\n3;-\n4;-1\n");
    let args = ["load", "odd.txt", "--into", "store", "--columns", "id BIGINT, s VARCHAR"];
    let dialect = [
        "--skip",
        "1",
        "--comment",
        "#",
        "--delimiter",
        ";",
        "--quote",
        "'",
        "--escape",
        "\\",
        "--no-header",
        "--null",
        "NA",
        "--null",
        "-",
        "--null",
        "-1",
    ];
    sandbox.run(&[&args[..], &dialect[..]].concat()).ok();
    assert_eq!(sandbox.query("SELECT s FROM odd WHERE s IS NOT NULL"), ["a;'b"]);
    assert_eq!(sandbox.query("SELECT count(*) FROM odd WHERE s IS NULL"), ["3"]);
}

#[test]
fn segments_do_not_depend_on_threads() {
    let sandbox = Sandbox::new();
    sandbox.write("a.csv", rows(1, 20_000));
    let mut reports = Vec::new();
    for threads in ["1", "2", "5"] {
        let flags =
            ["--threads", threads, "--replace", "--chunk-size", "20000", "--report", "json"];
        let run =
            sandbox.load("a.csv", &[&flags[..], &["--fragments-per-partition", "7"]].concat()).ok();
        let report: serde_json::Value = serde_json::from_str(&run.out).unwrap();
        reports.push((report["columns"].clone(), report["bytes_stored"].clone()));
    }
    assert_eq!(reports[0], reports[1]);
    assert_eq!(reports[0], reports[2]);
}

#[test]
fn dictionaries_can_be_forced() {
    let sandbox = Sandbox::new();
    sandbox.write("a.csv", rows(1, 20_000));
    let run = sandbox.load("a.csv", &["--dictionaries", "always", "--report", "json"]).ok();
    let report: serde_json::Value = serde_json::from_str(&run.out).unwrap();
    for column in report["columns"].as_array().unwrap() {
        assert_eq!(column["codec"], "dictionary", "{column}");
    }
    assert_eq!(report["columns"][0]["distinct"], 20_000);
    assert_eq!(sandbox.query("SELECT sum(id) FROM t"), ["200010000"]);
}

#[test]
fn null_may_be_a_number_in_columns_of_many_values_too() {
    let sandbox = Sandbox::new();
    let record = |i: u64| match i % 3 {
        0 => format!("{i},-999,NA\n"),
        _ => format!("{i},{},{}\n", i * 7, i % 5),
    };
    let text = "id,n,code\n".to_owned() + &(0..60_000).map(record).collect::<String>();
    sandbox.write("t.csv", &text);
    let count = "SELECT count(*), count(n), count(code) FROM t";
    let load = |flags: &[&str]| {
        sandbox.run(&[&["load", "t.csv", "--into", "store", "--replace"][..], flags].concat()).ok()
    };
    // NA is found out, as the column has nothing but numbers else.
    let found = load(&[]);
    assert!(found.err.contains("'NA' is NULL among numbers and dates"), "{found:?}");
    assert_eq!(sandbox.query(count), ["60000,60000,40000"]);
    load(&["--null", "-999"]);
    assert_eq!(sandbox.query(count), ["60000,40000,60000"]);
    load(&["--typed-null", "-999", "--typed-null", "NA"]);
    assert_eq!(sandbox.query(count), ["60000,40000,40000"]);
    let columns = ["--columns", "id BIGINT, n VARCHAR, code VARCHAR", "--typed-null=NA"];
    load(&columns);
    assert_eq!(sandbox.query(count), ["60000,60000,60000"]);
    // A column that becomes text has it as text.
    sandbox.write("t.csv", text + "60001,1,Namibia\n");
    load(&["--sample", "64KiB"]);
    assert_eq!(sandbox.query(count), ["60001,60001,60001"]);
    assert_eq!(sandbox.query("SELECT count(*) FROM t WHERE code = 'NA'"), ["20000"]);
}

#[test]
fn the_command_that_sniff_prints_loads_the_file_as_it_says() {
    let sandbox = Sandbox::new();
    let record = |i: u64| match i {
        2 => "2;\"two\nlines\";-\n".to_owned(),
        i => format!("{i};\"a;{i}\";{i},5\n"),
    };
    let rows: String = (1..=20).map(record).collect();
    let text = format!("A report of things\n\nid;it's;v\n{rows}\n(20 rows)\n");
    sandbox.write("t.csv", text);
    for output in ["text", "sql"] {
        let printed = sandbox.run(&["sniff", "t.csv", "--output", output]).ok().out;
        let command = printed.lines().find(|line| line.contains("coload load")).unwrap();
        let command = command.trim_start_matches("-- ");
        for flag in
            ["--skip=2", "--footer=1", "--typed-null=-", "--decimal-separator=,", "--quote="]
        {
            assert!(command.contains(flag), "{printed}");
        }
        let run = command.replacen("coload", env!("CARGO_BIN_EXE_coload"), 1);
        let run = format!("{} --table t --replace", run.replace("STORE", "store"));
        let done = std::process::Command::new("sh")
            .args(["-c", &run])
            .current_dir(sandbox.path("."))
            .output()
            .unwrap();
        assert!(done.status.success(), "{run}: {done:?}");
        let rows = sandbox.query("SELECT count(*), sum(v), min(\"it's\") FROM t");
        assert_eq!(rows, ["20,217.5,a;1"], "{run}");
    }
}

#[test]
fn completions_and_pages_of_the_manual_are_made_of_the_flags() {
    let sandbox = Sandbox::new();
    for shell in ["bash", "zsh", "fish"] {
        let made = sandbox.run(&["completions", shell]).ok().out;
        assert!(made.contains("max-rejects") && made.contains("output-file"), "{shell}");
    }
    let checked = std::process::Command::new("bash")
        .args(["-n", "-c", &sandbox.run(&["completions", "bash"]).ok().out])
        .status();
    assert!(checked.unwrap().success(), "bash takes its completions");
    sandbox.run(&["man", "pages"]).ok();
    let page = |name: &str| std::fs::read_to_string(sandbox.path("pages").join(name)).unwrap();
    assert!(page("coload.1").contains("coload\\-sql") && page("coload-load.1").contains("rejects"));
}
