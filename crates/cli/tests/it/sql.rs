//! `coload sql`: flags, scripts on standard input, output forms.

use crate::serve::Server;
use crate::support::{Sandbox, rows};

fn loaded() -> Sandbox {
    let sandbox = Sandbox::new();
    sandbox.write("a.csv", rows(1, 10));
    sandbox.load("a.csv", &[]).ok();
    sandbox
}

#[test]
fn queries_of_flags_run_in_order_and_stop_at_the_first_error() {
    let sandbox = loaded();
    let sql = |queries: &[&str]| {
        let mut args = vec!["sql", "--store", "store", "--output", "csv"];
        queries.iter().for_each(|q| args.extend(["-c", q]));
        sandbox.run(&args)
    };
    assert_eq!(
        sql(&["SELECT 1 AS a; SELECT 2 AS b", "SELECT 3 AS c"]).ok().out,
        "a\n1\nb\n2\nc\n3\n"
    );
    let run = sql(&["SELECT 1 AS a", "SELECT nothing FROM t", "SELECT 3 AS c"]);
    assert_eq!(run.out, "a\n1\n");
    run.fails(1, &["error: ", "nothing"]);
    sql(&["SELECT * FROM u"]).fails(1, &["u"]);
}

#[test]
fn a_script_on_standard_input_runs() {
    let sandbox = loaded();
    let script = b"-- totals\nCREATE TABLE u (a BIGINT);\nINSERT INTO u VALUES (1), (2);\nSELECT sum(a) AS s\nFROM u";
    let run = sandbox.run_with_input(&["sql", "--store", "store", "--output", "csv"], script).ok();
    assert!(run.out.ends_with("s\n3\n"), "{}", run.out);
    assert_eq!(sandbox.query("SELECT count(*) FROM u"), ["2"]);
}

#[test]
fn answers_come_as_table_csv_and_json() {
    let sandbox = loaded();
    let sql = |form: &str| {
        let query = "SELECT id, name FROM t WHERE id < 3 ORDER BY id";
        sandbox.run(&["sql", "--store", "store", "-c", query, "--output", form]).ok().out
    };
    assert_eq!(sql("csv"), "id,name\n1,name 1\n2,name 2\n");
    let json: serde_json::Value = serde_json::from_str(&sql("json")).unwrap();
    assert_eq!(json[1]["name"], "name 2");
    let table = sql("table");
    assert!(table.contains("| id | name") && table.contains("(2 rows)"), "{table}");
}

/// Of a store and of a server alike.
#[test]
fn a_table_is_described_with_its_key_rows_and_size() {
    let sandbox = loaded();
    for sql in [
        "CREATE TABLE \"Odd.Name\" (a INTEGER, b DECIMAL(9, 2) DEFAULT 1.5, \"c d\" VARCHAR(5) NOT NULL CHECK (\"c d\" <> ''), \
         PRIMARY KEY (a))",
        "INSERT INTO \"Odd.Name\" SELECT value, value, 'x' FROM generate_series(1, 12345)",
        "CREATE VIEW v AS SELECT a, \"c d\" || 'y' AS text FROM \"Odd.Name\"",
    ] {
        sandbox.run(&["sql", "--store", "store", "-c", sql]).ok();
    }
    let server = Server::start(&sandbox, &[]);
    for store in ["store", &server.url()] {
        let shown =
            |name: &str| sandbox.run(&["sql", "--store", store, "-c", &format!("\\d {name}")]);
        let out = shown("\"odd.name\"").ok().out;
        let (head, rest) = out.split_once("\n\n").unwrap();
        assert!(head.starts_with("table \"Odd.Name\"  12,345 rows  "), "{head}");
        assert_eq!(
            rest,
            "column  type          null      default\n\
             a       INTEGER       NOT NULL\n\
             b       DECIMAL(9,2)            1.50\n\
             \"c d\"   VARCHAR(5)    NOT NULL\n\n\
             PRIMARY KEY (a)\n\
             CHECK (\"c d\" <> '')\n",
            "{store}"
        );
        let view = shown("public.V").ok().out;
        assert!(view.starts_with("view v\n\ncolumn  type"), "{view}");
        assert!(
            view.contains("\ntext    VARCHAR") && view.contains("CREATE VIEW v AS SELECT"),
            "{view}"
        );
        assert!(shown("t").ok().out.starts_with("table t  10 rows  "));
        shown("nowhere").fails(1, &["table nowhere not found"]);
        shown("t u").fails(1, &["table t u not found"]);
    }
}

#[test]
fn output_that_nobody_reads_ends_the_command_quietly() {
    let sandbox = loaded();
    let binary = env!("CARGO_BIN_EXE_coload");
    let script = format!(
        "'{binary}' sql --store store --output csv -c 'SELECT a.id FROM t a, t b, t c, t d, t e, t f' | head -n 1; \
         echo \"${{PIPESTATUS[0]}}\""
    );
    let output = std::process::Command::new("bash")
        .args(["-c", &script])
        .current_dir(sandbox.path("."))
        .output()
        .unwrap();
    assert_eq!(String::from_utf8_lossy(&output.stdout), "id\n0\n");
    assert_eq!(String::from_utf8_lossy(&output.stderr), "");
}

#[test]
fn the_demo_shows_its_commands_and_removes_its_folder() {
    let sandbox = Sandbox::new();
    let demo = |args: &[&str]| {
        let mut command = sandbox.command(args);
        let output = command.env("TMPDIR", sandbox.path(".")).output().unwrap();
        assert!(output.status.success(), "{output:?}");
        String::from_utf8(output.stdout).unwrap()
    };
    let out = demo(&["demo", "--scale", "0.01"]);
    for part in [" load ", " sql --store ", "loaded 60,175 rows", "is removed", "TPC-H query 6"] {
        assert!(out.contains(part), "{part}: {out}");
    }
    assert_eq!(std::fs::read_dir(sandbox.path(".")).unwrap().count(), 0);
    let out = demo(&["demo", "--scale", "0.01", "--keep"]);
    assert!(out.contains("The folder is kept"), "{out}");
    assert_eq!(std::fs::read_dir(sandbox.path(".")).unwrap().count(), 1);
}
