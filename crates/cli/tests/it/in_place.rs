//! Statements over files and objects, where they are.

use std::fs;
use std::os::unix::fs::symlink;

use crate::serve::Server;
use crate::support::{Run, Sandbox};

/// The answer to a query without a store, as lines of CSV without the header.
fn answer(sandbox: &Sandbox, sql: &str) -> Vec<String> {
    let run = sandbox.run(&["sql", "--output", "csv", "-c", sql]).ok();
    run.out.lines().skip(1).map(str::to_owned).collect()
}

fn wrong(sandbox: &Sandbox, sql: &str, parts: &[&str]) {
    sandbox.run(&["sql", "-c", sql]).fails(1, parts);
}

/// Lines `n,2n` from one number to before another.
fn pairs(from: u64, to: u64) -> String {
    (from..to).map(|n| format!("{n},{}\n", 2 * n)).collect()
}

#[test]
fn files_are_tables_with_the_types_of_a_load() {
    let sandbox = Sandbox::new();
    sandbox.write("a.csv", "id;Name;day\n1;Ada;10.12.1815\n2;\"Alan; T\";23.06.1912\n3;;\n");
    assert_eq!(
        answer(&sandbox, "SELECT * FROM 'a.csv'"),
        ["1,Ada,1815-12-10", "2,Alan; T,1912-06-23", "3,,"]
    );
    assert_eq!(answer(&sandbox, "SELECT a.name FROM 'a.csv' WHERE ID = 2"), ["Alan; T"]);
    assert_eq!(answer(&sandbox, "SELECT count(*), count(name) FROM 'a.csv'"), ["3,2"]);
    assert_eq!(
        answer(&sandbox, "SELECT y.id FROM 'a.csv' x JOIN 'a.csv' y ON x.id = y.id + 1 ORDER BY 1"),
        ["1", "2"]
    );
    assert_eq!(
        answer(&sandbox, "DESCRIBE 'a.csv'"),
        ["id,BIGINT,YES", "Name,VARCHAR,YES", "day,DATE,YES"]
    );
    let summary = answer(&sandbox, "SUMMARIZE 'a.csv'");
    assert!(summary[0].starts_with("id,BIGINT,1,3,3,2"), "{summary:?}");
    let outer = "SELECT * FROM 'a.csv' x RIGHT JOIN 'a.csv' y USING (id) WHERE id = 3";
    assert_eq!(answer(&sandbox, outer), ["3,,,,"]);
    let explained = answer(&sandbox, "EXPLAIN SELECT name FROM 'a.csv'").join("\n");
    assert!(explained.contains("columns=[Name]"), "{explained}");
    let all = sandbox.run(&["sql", "--output", "csv", "-c", "SELECT * FROM 'a.csv' LIMIT 0"]).ok();
    assert_eq!(all.out.trim(), "id,Name,day");
}

#[test]
fn all_formats_and_many_files_are_read() {
    let sandbox = Sandbox::new();
    sandbox.write("y/year=2024/a.csv", "v,w\n1,x\n");
    sandbox.write("y/year=2025/b.csv", "v,w\n2,y\n");
    sandbox.write("j.jsonl", "{\"v\":1,\"o\":{\"w\":\"x\"}}\n{\"v\":2,\"o\":{\"w\":\"y\"}}\n");
    let both = "SELECT sum(v) FROM 'y/*/*.csv'";
    assert_eq!(answer(&sandbox, both), ["3"]);
    let parts =
        "SELECT v, year FROM read_csv('y/*/*.csv', hive_partitioning => true) WHERE year > 2024";
    assert_eq!(answer(&sandbox, parts), ["2,2025"]);
    let count = "SELECT count(*), min(year) FROM read_csv('y/*/*.csv', partitions => true)";
    assert_eq!(answer(&sandbox, count), ["2,2024"]);
    assert_eq!(answer(&sandbox, "SELECT * FROM 'y/*/*.csv' WHERE year = 2025"), ["2,y,2025"]);
    let without = "SELECT * FROM read_csv('y/*/*.csv', hive_partitioning => false) WHERE v = 2";
    assert_eq!(answer(&sandbox, without), ["2,y"]);
    let listed = "SELECT w FROM read_csv(['y/year=2025/b.csv', 'y/year=2024/a.csv'])";
    assert_eq!(answer(&sandbox, listed), ["y", "x"]);
    assert_eq!(answer(&sandbox, "SELECT \"o.w\" FROM read_json('j.jsonl') WHERE v = 2"), ["y"]);
    sandbox.run(&["load", "y/year=2024/a.csv", "--into", "parquet:p"]).ok();
    assert_eq!(answer(&sandbox, "SELECT w FROM read_parquet('p/*.parquet')"), ["x"]);
    let sorted = "SELECT v, w FROM 'y/*/*.csv' ORDER BY v";
    sandbox.run(&["sql", "-o", "out.arrow", "-c", sorted]).ok();
    assert_eq!(answer(&sandbox, "SELECT * FROM 'out.arrow'"), ["1,x", "2,y"]);
    sandbox.write("b.csv", "w,v\nz,3\n");
    let named = "SELECT v, w FROM read_csv(['y/year=2024/a.csv', 'b.csv'], union_by_name => true)";
    assert_eq!(answer(&sandbox, named), ["1,x", "3,z"]);
}

#[test]
fn sheets_of_books_are_tables() {
    let sandbox = Sandbox::new();
    let books = std::path::Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/text/books");
    sandbox.write("book.xlsx", fs::read(books.join("openpyxl.xlsx")).unwrap());
    let count = "SELECT count(*), min(at), sum(amount) FROM 'book.xlsx'";
    assert_eq!(answer(&sandbox, count), ["7,2026-01-01 08:30:15,2.625"]);
    let more = "SELECT sum(n) FROM read_xlsx('book.xlsx', sheet := 'More', range => 'C5:D7')";
    assert_eq!(answer(&sandbox, more), ["10"]);
    assert_eq!(answer(&sandbox, "SELECT max(id) FROM 'book.xlsx!More'"), ["4"]);
    sandbox.write("a.csv", "a\n1\n");
    wrong(&sandbox, "SELECT * FROM read_xlsx('a.csv')", &["this is no workbook"]);
    wrong(
        &sandbox,
        "SELECT * FROM read_csv('book.xlsx')",
        &["--format says how delimited text is written"],
    );
    wrong(
        &sandbox,
        "SELECT * FROM read_xlsx('book.xlsx', range => 'x-')",
        &["give cells such as A1:F200"],
    );
}

#[test]
fn options_are_the_flags_of_loads() {
    let sandbox = Sandbox::new();
    sandbox.write("a.txt", "# head\n01|NA|2,5\n02|x|3,5\n");
    let sql = "SELECT * FROM read_csv('a.txt', delim = '|', header = false, comment => '#', nullstr => 'NA', types => 'c1 VARCHAR', \
               decimal_separator => ',')";
    assert_eq!(answer(&sandbox, sql), ["01,,2.5", "02,x,3.5"]);
    let columns =
        "SELECT b FROM read_csv('a.txt', columns => 'a BIGINT, b VARCHAR, c VARCHAR', skip => 1)";
    assert_eq!(answer(&sandbox, columns), ["NA", "x"]);
    for (option, parts) in [
        ("colour => 1", &["colour"][..]),
        ("delim => '|', delimiter => ';'", &["delimiter"]),
        ("delim => '|', delim => ';'", &["given twice"]),
        ("ignore_errors => true", &["--max-rejects"]),
        ("skip => 'x'", &["skip"]),
        ("columns => 'a NOTYPE'", &["NOTYPE"]),
        ("header => abs(1)", &["literals"]),
        ("null => ['a', 1]", &["literals"]),
    ] {
        wrong(&sandbox, &format!("SELECT * FROM read_csv('a.txt', {option})"), parts);
    }
    wrong(&sandbox, "SELECT * FROM read_parquet('a.txt')", &["no Parquet"]);
    wrong(&sandbox, "SELECT * FROM read_csv()", &["name a file"]);
    wrong(&sandbox, "SELECT * FROM read_csv('a.txt', 'b.txt')", &["several inputs"]);
    wrong(&sandbox, "SELECT * FROM 'none.csv'", &["none.csv"]);
    wrong(&sandbox, "SELECT * FROM '-'", &["only once"]);
    wrong(&sandbox, "SELECT * FROM 'postgres://h/d/t'", &["coload load"]);
    wrong(&sandbox, "SELECT x FROM read_csv('a.txt')", &["no field named"]);
    wrong(&sandbox, "INSERT INTO 'a.txt' VALUES (1)", &[]);
    wrong(&sandbox, "DELETE FROM 'a.txt'", &[]);
    wrong(&sandbox, "DROP TABLE 'a.txt'", &[]);
    sandbox.write("empty.csv", "");
    wrong(&sandbox, "SELECT * FROM 'empty.csv'", &["columns =>"]);
}

#[test]
fn rows_come_in_the_order_of_the_inputs() {
    let sandbox = Sandbox::new();
    // Several chunks each.
    sandbox.write("1.csv", format!("n,m\n{}", pairs(0, 1_500_000)));
    sandbox.write("2.csv", format!("n,m\n{}", pairs(1_500_000, 1_600_000)));
    assert_eq!(answer(&sandbox, "SELECT n FROM '*.csv' LIMIT 2"), ["0", "1"]);
    let run = sandbox.run(&["sql", "--output", "csv", "-c", "SELECT n FROM '*.csv'"]).ok();
    let numbers = run.out.lines().skip(1).map(|line| line.parse::<u64>().unwrap());
    assert!(numbers.eq(0..1_600_000));
    sandbox.run(&["load", "1.csv", "--into", "parquet:p"]).ok();
    assert_eq!(answer(&sandbox, "SELECT n FROM 'p/*.parquet' LIMIT 2"), ["0", "1"]);
    let made = "CREATE TABLE t AS SELECT * FROM 'p/*.parquet'";
    let renamed = "CREATE OR REPLACE TABLE u AS SELECT m AS \"Double\", n FROM '2.csv'";
    sandbox.run(&["load", "2.csv", "--into", "store", "--table", "u"]).ok();
    sandbox.run(&["sql", "--store", "store", "-c", renamed]).ok();
    assert_eq!(sandbox.query("SELECT min(\"Double\"), max(n) FROM u"), ["3000000,1599999"]);
    let kept = "CREATE TABLE IF NOT EXISTS u AS SELECT * FROM '1.csv'";
    sandbox.run(&["sql", "--store", "store", "-c", kept]).ok();
    assert_eq!(sandbox.query("SELECT count(*) FROM u"), ["100000"]);
    let again = "CREATE TABLE u AS SELECT * FROM '1.csv'";
    sandbox.run(&["sql", "--store", "store", "-c", again]).fails(1, &["exists already"]);
    let some = "CREATE TABLE v AS SELECT n + 1 AS n, m AS x, m AS y FROM '2.csv' WHERE n < 1500002";
    sandbox.run(&["sql", "--store", "store", "-c", some]).ok();
    assert_eq!(
        sandbox.query("SELECT * FROM v"),
        ["1500001,3000000,3000000", "1500002,3000002,3000002"]
    );
    sandbox.run(&["load", "2.csv", "--into", "store", "--table", "other"]).ok();
    sandbox.run(&["sql", "--store", "store", "-c", made]).ok();
    let sums = ["1500000,1124999250000,2249998500000"];
    assert_eq!(sandbox.query("SELECT count(*), sum(n), sum(m) FROM t"), sums);
    let joined = "SELECT count(*) FROM t JOIN '1.csv' f ON t.n = f.n AND t.m = f.m";
    assert_eq!(sandbox.query(joined), ["1500000"]);
}

#[test]
fn a_statement_that_has_answered_nothing_goes_on_with_wider_types() {
    let sandbox = Sandbox::new();
    let text = format!("n,m\n{}800000,1.5\n{}", pairs(0, 400_000), pairs(400_000, 700_000));
    sandbox.write("a.csv", format!("{text}1,none\n"));
    sandbox.write("b.csv", &text);
    assert_eq!(answer(&sandbox, "SELECT max(m) = 1399998 FROM 'b.csv'"), ["true"]);
    assert_eq!(answer(&sandbox, "SELECT count(*), max(m) FROM 'a.csv'"), ["700002,none"]);
    // Columns that are not read may be what they like.
    assert_eq!(answer(&sandbox, "SELECT max(n) FROM 'a.csv'"), ["800000"]);
    sandbox.run(&["load", "b.csv", "--into", "store"]).ok();
    sandbox.run(&["sql", "--store", "store", "-c", "CREATE TABLE t AS SELECT * FROM 'a.csv'"]).ok();
    assert_eq!(sandbox.query("SELECT count(*), max(m) FROM t"), ["700002,none"]);
    // Behind what is read before the first rows are answered.
    sandbox.write("late.csv", format!("n,m\n{}0,1.5\n", pairs(0, 1_500_000)));
    let late = sandbox.run(&["sql", "--output", "csv", "-c", "SELECT * FROM 'late.csv'"]);
    let parts = ["late.csv:1500002", "column m was taken for BIGINT", "\"1.5\"", "types => 'm "];
    late.fails(1, &parts);
    let told = "SELECT m FROM read_csv('a.csv', types => 'm VARCHAR') WHERE n = 800000";
    assert_eq!(answer(&sandbox, told), ["1.5"]);
    // More than is looked at otherwise.
    sandbox.write("c.csv", format!("n,m\n{}1,some words\n", pairs(0, 120_000)));
    let looked = "SELECT m FROM read_csv('c.csv', sample => 'all')";
    assert_eq!(answer(&sandbox, looked).last().unwrap(), "some words");
}

#[test]
fn records_that_are_no_rows_end_the_statement_with_their_place() {
    let sandbox = Sandbox::new();
    sandbox.write("a.csv", "a,b\n1,2\n3\n4,5\n");
    wrong(&sandbox, "SELECT * FROM read_csv('a.csv', ragged => 'reject')", &["a.csv:3"]);
    let padded = "SELECT count(b) FROM read_csv('a.csv', ragged => 'pad')";
    assert_eq!(answer(&sandbox, padded), ["2"]);
    sandbox.write("p.parquet", "PAR1 and nothing of it PAR1");
    wrong(&sandbox, "SELECT * FROM 'p.parquet'", &["p.parquet"]);
}

#[test]
fn a_server_reads_its_places_only_for_who_may() {
    let sandbox = Sandbox::new();
    sandbox.write("open/a.csv", "a\n1\n");
    sandbox.write("open/deep/b.csv", "a\n2\n");
    sandbox.write("open2/c.csv", "a\n3\n");
    sandbox.write("secret.csv", "a\n4\n");
    symlink(sandbox.path("secret.csv"), sandbox.path("open/link.csv")).unwrap();
    symlink(sandbox.path(""), sandbox.path("open/up")).unwrap();
    sandbox.write("empty", "");
    sandbox.run(&["load", "open/a.csv", "--into", "store", "--table", "t"]).ok();
    let hashed = sandbox.run_with_input(&["hash-password"], b"secret");
    let hash = hashed.out.trim();
    let deep = sandbox.path("open/deep");
    let users = format!(
        "ada {hash} admin:* external:*\nbob {hash} read:* external:{}\neve {hash} admin:*\n",
        deep.display()
    );
    sandbox.write("users", users);
    let ask = |server: &Server, user: &str, sql: &str| -> Run {
        let url = server.url().replace("://", &format!("://{user}@"));
        let mut command = sandbox.command(&["sql", "--store", &url, "--output", "csv", "-c", sql]);
        command.env("COLOAD_PASSWORD", "secret");
        Run::of(command.output().unwrap())
    };
    let server = Server::start(&sandbox, &["--users", "users", "--external", "open"]);
    assert_eq!(ask(&server, "ada", "SELECT * FROM 'open/a.csv'").ok().out, "a\n1\n");
    assert_eq!(ask(&server, "ada", "SELECT sum(a) AS s FROM 'open/deep/*.csv'").ok().out, "s\n2\n");
    assert_eq!(ask(&server, "bob", "SELECT * FROM 'open/deep/b.csv'").ok().out, "a\n2\n");
    ask(&server, "bob", "SELECT * FROM 'open/a.csv'").fails(1, &["no right external"]);
    ask(&server, "eve", "SELECT * FROM 'open/a.csv'").fails(1, &["no right external"]);
    let elsewhere = [
        "secret.csv",
        "open2/c.csv",
        "open/../secret.csv",
        "open/link.csv",
        "open/l*.csv",
        "open/up/secret.csv",
        "open/up/*.csv",
        "/etc/passwd",
        "/etc/no/such/file",
        "/proc/self/environ",
        "store/format",
        "*/a.csv",
        "s3://bucket/key.csv",
        "http://127.0.0.1:1/x.csv",
        "-",
        "",
    ];
    for name in elsewhere {
        for from in
            [format!("'{name}'"), format!("read_csv('{name}')"), format!("read_file(['{name}'])")]
        {
            let sql = format!("SELECT * FROM {from}");
            ask(&server, "ada", &sql).fails(1, &["in no place that may be read"]);
        }
    }
    for sql in [
        "INSERT INTO t SELECT * FROM 'secret.csv'",
        "CREATE TABLE u AS SELECT * FROM 'secret.csv'",
        "SELECT * FROM t WHERE a IN (SELECT a FROM 'secret.csv')",
        "WITH c AS (SELECT * FROM 'secret.csv') SELECT * FROM c",
        "UPDATE t SET a = (SELECT max(a) FROM 'secret.csv')",
        "DELETE FROM t WHERE a = (SELECT max(a) FROM 'secret.csv')",
        "COPY (SELECT * FROM 'secret.csv') TO 'x.csv'",
        "DESCRIBE 'secret.csv'",
        "SUMMARIZE 'secret.csv'",
        "EXPLAIN SELECT * FROM 'secret.csv'",
        "EXPLAIN ANALYZE SELECT * FROM 'secret.csv'",
    ] {
        ask(&server, "ada", sql).fails(1, &["in no place that may be read"]);
    }
    assert!(!sandbox.path("x.csv").exists());
    // What a server remembers of types helps the next statement.
    fs::write(sandbox.path("open/w.csv"), format!("n,m\n{}1,x\n", pairs(0, 400_000))).unwrap();
    ask(&server, "ada", "SELECT max(m) AS m FROM 'open/w.csv'").fails(1, &["run again"]);
    assert_eq!(ask(&server, "ada", "SELECT max(m) AS m FROM 'open/w.csv'").ok().out, "m\nx\n");
    drop(server);
    let closed = Server::start(&sandbox, &["--users", "users"]);
    ask(&closed, "ada", "SELECT * FROM 'open/a.csv'").fails(1, &["in no place that may be read"]);
    let flags = ["serve", "--store", "store", "--external", "no/such/place"];
    sandbox.run(&flags).fails(2, &["--external", "no/such/place"]);
}

#[test]
fn memory_does_not_grow_with_the_input() {
    let sandbox = Sandbox::new();
    let row = "some words that take room,and more of them in the next field,".repeat(3);
    let mut text = String::from("n,a,b,c,d,e,f,g\n");
    for n in 0..500_000 {
        text.push_str(&format!("{n},{row}{n}\n"));
    }
    sandbox.write("a.csv", &text);
    let sql = "SELECT a, count(*), max(g) FROM 'a.csv' GROUP BY a";
    let mut command = sandbox.command(&["sql", "--memory", "128MiB", "--output", "csv", "-c", sql]);
    let out = Run::of(command.output().unwrap()).ok();
    assert!(out.out.ends_with(",500000,499999\n"), "{}", out.out);
}

#[test]
fn an_external_table_is_a_view_of_files() {
    let sandbox = Sandbox::new();
    sandbox.write("f/year=2024/a.txt", "1;x\n");
    sandbox.write("f/year=2025/b.txt", "2;NA\n");
    sandbox.write("g.csv", "v,w\n5,z\n");
    sandbox.run(&["load", "g.csv", "--into", "store"]).ok();
    let run = |sql: &str| sandbox.run(&["sql", "--store", "store", "-c", sql]);
    run("CREATE EXTERNAL TABLE e (v BIGINT, w VARCHAR, year BIGINT) STORED AS CSV PARTITIONED BY (year) LOCATION 'f/*/*.txt' OPTIONS \
         ('format.delimiter' ';', format.has_header false, null 'NA')")
    .ok();
    assert_eq!(sandbox.query("SELECT * FROM e"), ["1,x,2024", "2,,2025"]);
    assert_eq!(sandbox.query("SELECT e.w FROM e JOIN g ON e.v + 4 = g.v"), ["x"]);
    // What is there is read each time.
    sandbox.write("f/year=2026/c.txt", "3;y\n");
    assert_eq!(sandbox.query("SELECT sum(v), max(year) FROM e"), ["6,2026"]);
    run("CREATE EXTERNAL TABLE e LOCATION 'g.csv'").fails(1, &["exists already"]);
    run("CREATE OR REPLACE EXTERNAL TABLE e LOCATION 'g.csv'").ok();
    assert_eq!(sandbox.query("SELECT w FROM e"), ["z"]);
    let listed = sandbox.run(&["inspect", "store"]).ok();
    assert!(
        listed.out.contains("view e: SELECT * FROM 'g.csv'")
            || listed.out.contains("view e: SELECT * FROM read_file"),
        "{}",
        listed.out
    );
    run("DROP VIEW e").ok();
    run("CREATE EXTERNAL TABLE e LOCATION 'none.csv'").fails(1, &["none.csv"]);
}

#[test]
fn what_no_row_can_pass_is_not_read() {
    let sandbox = Sandbox::new();
    let made = "SELECT value AS n, CAST(value AS DECIMAL(12,2)) AS m, to_timestamp(value * 1000) AS d, \
                CASE WHEN value % 2 = 0 THEN value END AS e FROM range(400000) ORDER BY n";
    sandbox.run(&["sql", "-o", "a.parquet", "-c", made]).ok();
    let count = |condition: &str| {
        answer(&sandbox, &format!("SELECT count(*) FROM 'a.parquet' WHERE {condition}"))
    };
    let conditions = [
        ("n >= 200000", "200000"),
        ("m > 299999.5", "100000"),
        ("n BETWEEN 150000 AND 150009 AND m <> 150001", "9"),
        ("n IN (399999, 131072, 300001, 300002)", "4"),
        ("e > 390000", "4999"),
        ("d >= TIMESTAMP '1979-01-01 00:00:00'", ""),
    ];
    let before: Vec<_> = conditions.iter().map(|(condition, _)| count(condition)).collect();
    for ((condition, rows), found) in conditions.iter().zip(&before) {
        assert!(rows.is_empty() || *found == [*rows], "{condition}: {found:?}");
    }
    assert_eq!(count("n < 0"), ["0"]);
    assert_eq!(count("e IS NULL"), ["200000"]);
    // The first row group is damaged, and nobody looks at it.
    let path = sandbox.path("a.parquet");
    let mut bytes = fs::read(&path).unwrap();
    bytes[4..4_000].fill(0xff);
    fs::write(&path, bytes).unwrap();
    for ((condition, _), found) in conditions.iter().zip(&before) {
        assert_eq!(count(condition), *found, "{condition}");
    }
    wrong(&sandbox, "SELECT sum(n) FROM 'a.parquet'", &["a.parquet"]);
    wrong(&sandbox, "SELECT sum(n) FROM 'a.parquet' WHERE n > 100000", &["a.parquet"]);
    sandbox.write("y/year=1999/a.csv", "v,w\n1,x,y\n");
    sandbox.write("y/year=2024/b.csv", "v,w\n2,x\n");
    sandbox.write("y/year=2025/c.csv", "v,w\n3,x\n");
    let from = "FROM read_csv('y/*/*.csv', partitions => true, columns => 'v BIGINT, w VARCHAR, year BIGINT', ragged => 'reject')";
    wrong(&sandbox, &format!("SELECT sum(v) {from}"), &["year=1999/a.csv"]);
    assert_eq!(answer(&sandbox, &format!("SELECT sum(v) {from} WHERE year > 2000")), ["5"]);
    assert_eq!(answer(&sandbox, &format!("SELECT v, year {from} WHERE year = 2025")), ["3,2025"]);
    assert_eq!(
        answer(&sandbox, &format!("SELECT count(*) {from} WHERE year IN (2024, 2030, 2031, 2032)")),
        ["1"]
    );
    let plan = answer(&sandbox, &format!("EXPLAIN SELECT v {from} WHERE year > 2000")).join("\n");
    assert!(plan.contains("files=2 of 3") && plan.contains("filter=[year > 2000]"), "{plan}");
}

#[test]
fn aggregates_over_files_are_those_over_their_table() {
    let sandbox = Sandbox::new();
    let made = "SELECT value AS n, value % 7 AS k, CASE WHEN value % 5 > 0 THEN concat('w', value % 11) END AS w, \
                CAST(value % 1000 AS DECIMAL(12,2)) * 1.25 AS m, value % 3 = 0 AS b, \
                CASE WHEN value % 4 > 0 THEN value % 100 END AS e FROM range(250000) ORDER BY n";
    let grouped = "SELECT k, count(*), sum(m), avg(m), min(n), max(n), count(w), sum(e) FROM {t} GROUP BY k ORDER BY k";
    let statements = [
        grouped,
        "SELECT w, b, sum(m * (1 - k)), avg(e) FROM {t} WHERE n >= 100000 AND w <> 'w3' GROUP BY w, b ORDER BY w, b",
        "SELECT w, count(*) FROM {t} GROUP BY w ORDER BY w",
        "SELECT count(*), sum(n), min(m) FROM {t} WHERE n < 0",
        "SELECT k, sum(n) FROM {t} WHERE n < 0 GROUP BY k",
        "SELECT count(*) FROM {t} WHERE w IS NULL AND e IS NOT NULL",
        "SELECT max(w), min(w), count(DISTINCT k), sum(m) FROM {t} WHERE k IN (1, 3, 5)",
        "SELECT sum(s) FROM (SELECT k, sum(m) AS s FROM {t} GROUP BY k HAVING count(*) > 35714)",
        // Of too many values for codes: the plan that stands below is run.
        "SELECT n, count(*), sum(m) FROM {t} WHERE n % 2 = 1 GROUP BY n ORDER BY n LIMIT 3",
        "SELECT n, sum(m) FROM {t} GROUP BY n ORDER BY n DESC LIMIT 3",
    ];
    for file in ["a.csv", "a.parquet", "a.jsonl"] {
        sandbox.run(&["sql", "-o", file, "-c", made]).ok();
        sandbox.run(&["load", file, "--into", "store", "--table", "t", "--replace"]).ok();
        for statement in statements {
            let over_table = statement.replace("{t}", "t");
            let stored = sandbox
                .run(&["sql", "--store", "store", "--output", "csv", "-c", &over_table])
                .ok();
            let stored: Vec<&str> = stored.out.lines().skip(1).collect();
            let over_file = statement.replace("{t}", &format!("'{file}'"));
            assert_eq!(answer(&sandbox, &over_file), stored, "{over_file}");
        }
        let plan = format!("EXPLAIN {}", grouped.replace("{t}", &format!("'{file}'")));
        let plan = answer(&sandbox, &plan).join("\n");
        assert!(plan.contains("AggregateOnCodesExec: gby=[k]"), "{plan}");
    }
    // A field that its column does not hold: the statement begins again with a wider type.
    let late = format!("k,v\n{}1,2.5\n", "1,2\n".repeat(700_000));
    sandbox.write("late.csv", &late);
    let sums = answer(&sandbox, "SELECT k, sum(v), count(*) FROM 'late.csv' GROUP BY k");
    assert_eq!(sums, ["1,1400002.500,700001"]);
    // A record that is none ends it with its place.
    sandbox.write("bad.csv", late.replace("1,2.5", "1,2,3"));
    wrong(
        &sandbox,
        "SELECT sum(v) FROM read_csv('bad.csv', ragged => 'reject')",
        &["bad.csv:700002"],
    );
}

/// A file of those beside the tests.
fn file(sandbox: &Sandbox, name: &str) {
    let files = std::path::Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/it/files");
    sandbox.write(name, fs::read(files.join(name)).unwrap());
}

#[test]
fn fields_that_no_column_holds_are_refused_only_where_they_are_read() {
    let sandbox = Sandbox::new();
    // Fields a INTEGER, iv INTERVAL, s VARCHAR; and s STRUCT(a), id BIGINT, l list, huge of 50 digits, name VARCHAR.
    file(&sandbox, "interval.parquet");
    file(&sandbox, "nested.arrow");
    let of_parquet = [
        ("SELECT a FROM 'interval.parquet'", &["1", "2", "3"][..]),
        ("SELECT s FROM read_parquet('interval.parquet') WHERE a > 2", &["x3"]),
        ("SELECT count(*) FROM 'interval.parquet'", &["3"]),
        ("SELECT count(*) FROM 'interval.parquet' WHERE a <> 2", &["2"]),
        ("SELECT s, sum(a) FROM 'interval.parquet' GROUP BY s ORDER BY s LIMIT 1", &["x1,1"]),
        ("SELECT * EXCLUDE (iv) FROM 'interval.parquet' LIMIT 1", &["1,x1"]),
        ("SELECT a FROM (SELECT * FROM 'interval.parquet') WHERE a = 1", &["1"]),
        ("DESCRIBE 'interval.parquet'", &["a,INTEGER,YES", "iv,*,YES", "s,VARCHAR,YES"]),
    ];
    let of_arrow = [
        ("SELECT count(*) FROM 'nested.arrow'", &["3"][..]),
        ("SELECT sum(id), max(name) FROM 'nested.arrow'", &["6,b"]),
        (
            "SELECT huge FROM read_arrow('nested.arrow', types => 'huge DECIMAL(9,2)') WHERE id <> 2",
            &["1.25", "3.50"],
        ),
    ];
    for (sql, rows) in of_parquet.iter().chain(&of_arrow) {
        let found = answer(&sandbox, sql);
        assert_eq!(found.len(), rows.len(), "{sql}: {found:?}");
        for (found, wanted) in found.iter().zip(*rows) {
            let is_same = match wanted.split_once('*') {
                Some((head, tail)) => found.starts_with(head) && found.ends_with(tail),
                None => found == wanted,
            };
            assert!(is_same, "{sql}: {found}");
        }
    }
    assert!(answer(&sandbox, "DESCRIBE 'interval.parquet'")[1].contains("INTERVAL"));
    let told = ["interval.parquet: field iv is", "INTERVAL", "EXCLUDE (iv)"];
    for sql in [
        "SELECT * FROM 'interval.parquet'",
        "SELECT iv FROM 'interval.parquet'",
        "SELECT count(iv) FROM 'interval.parquet'",
        "SELECT a FROM 'interval.parquet' WHERE iv IS NULL",
        "SELECT a FROM 'interval.parquet' WHERE iv > INTERVAL '1 day'",
        "SELECT a FROM 'interval.parquet' ORDER BY iv",
        "SELECT iv, count(*) FROM 'interval.parquet' GROUP BY iv",
        "CREATE TABLE t AS SELECT * FROM 'interval.parquet'",
    ] {
        wrong(&sandbox, sql, &told);
    }
    wrong(&sandbox, "SELECT s FROM 'nested.arrow'", &["no field named s", "\"s.a\""]);
    let digits = ["field huge is decimal256(50, 2), which has 50 digits", "types => 'huge"];
    wrong(&sandbox, "SELECT max(huge) FROM 'nested.arrow'", &digits);
    let summary = answer(&sandbox, "SUMMARIZE 'interval.parquet'");
    assert!(summary[0].starts_with("a,INTEGER,1,3,3"), "{summary:?}");
    assert!(summary[1].starts_with("iv,") && summary[1].contains("INTERVAL"), "{summary:?}");
    let made = "CREATE TABLE t AS SELECT a, s FROM 'interval.parquet'";
    sandbox.run(&["load", "interval.parquet", "--into", "store"]).fails(
        1,
        &["field iv is", "which no column holds", "--by-name --columns 'a INTEGER, s VARCHAR'"],
    );
    sandbox.write("g.csv", "v\n1\n");
    sandbox.run(&["load", "g.csv", "--into", "store"]).ok();
    let run = |sql: &str| sandbox.run(&["sql", "--store", "store", "-c", sql]);
    run(made).ok();
    assert_eq!(sandbox.query("SELECT sum(a), max(s) FROM t"), ["6,x3"]);
    run("CREATE EXTERNAL TABLE e STORED AS PARQUET LOCATION 'interval.parquet'").ok();
    assert_eq!(sandbox.query("SELECT max(a) FROM e"), ["3"]);
    run("SELECT * FROM e").fails(1, &told);
}

#[test]
fn sniff_tells_which_fields_cannot_be_read_and_how_the_others_are_loaded() {
    let sandbox = Sandbox::new();
    file(&sandbox, "interval.parquet");
    file(&sandbox, "nested.arrow");
    let found = sandbox.run(&["sniff", "interval.parquet"]).ok().out;
    assert!(found.contains("field iv is"), "{found}");
    let flags = "--by-name --columns='a INTEGER, s VARCHAR'";
    assert!(found.contains(flags), "{found}");
    let load = ["load", "interval.parquet", "--into", "store", "--table", "t", "--by-name"];
    sandbox.run(&[&load[..], &["--columns", "a INTEGER, s VARCHAR"]].concat()).ok();
    assert_eq!(sandbox.query("SELECT count(*), max(s) FROM t"), ["3,x3"]);
    let found = sandbox.run(&["sniff", "nested.arrow"]).ok().out;
    for part in
        ["s.a int64", "l list<int64>", "field huge is", "id BIGINT, l BIGINT[], \"name\" VARCHAR"]
    {
        assert!(found.contains(part) || found.contains(&part.replace('"', "")), "{part}: {found}");
    }
}

#[test]
fn columns_of_an_external_table_are_fields_of_their_names() {
    let sandbox = Sandbox::new();
    let made = "SELECT 1 AS a, 'x' AS b, CAST(2 AS BIGINT) AS c";
    for name in ["ab.parquet", "ab.arrow", "ab.jsonl"] {
        sandbox.run(&["sql", "-o", name, "-c", made]).ok();
    }
    sandbox.write("g.csv", "v,w\n5,z\n");
    sandbox.run(&["load", "g.csv", "--into", "store"]).ok();
    let run = |sql: &str| sandbox.run(&["sql", "--store", "store", "-c", sql]);
    let external = |columns: &str, file: &str, options: &str| {
        run(&format!("CREATE OR REPLACE EXTERNAL TABLE f ({columns}) LOCATION '{file}' {options}"))
    };
    for file in ["ab.parquet", "ab.arrow"] {
        external("c BIGINT", file, "").ok();
        assert_eq!(sandbox.query("SELECT * FROM f"), ["2"]);
        external("C VARCHAR, A BIGINT", file, "").ok();
        assert_eq!(sandbox.query("SELECT c, a + 1 FROM f"), ["2,2"]);
        let lacks = ["has no field x, z", "it has a, b, c", "by_position"];
        external("x VARCHAR, b VARCHAR, z BIGINT", file, "").fails(1, &lacks);
        let columns = "x BIGINT, y VARCHAR, z BIGINT";
        external(columns, file, "OPTIONS (by_position true)").ok();
        assert_eq!(sandbox.query("SELECT x, y, z FROM f"), ["1,x,2"]);
        external("x BIGINT", file, "OPTIONS (by_position true)").fails(1, &["has 3 fields"]);
        external("c BIGINT, x VARCHAR", file, "OPTIONS ('by-name' true)").ok();
        assert_eq!(sandbox.query("SELECT c, x FROM f"), ["2,"]);
        external("c BIGINT", file, "OPTIONS (by_name true, by_position true)")
            .fails(1, &["by-position"]);
    }
    external("c BIGINT", "ab.jsonl", "").ok();
    assert_eq!(sandbox.query("SELECT * FROM f"), ["2"]);
    external("c BIGINT", "ab.jsonl", "OPTIONS (unknown_keys reject)").ok();
    run("SELECT * FROM f").fails(1, &["ab.jsonl:1", "key"]);
    let read = "SELECT b FROM read_parquet('ab.parquet', columns => 'b VARCHAR')";
    assert_eq!(answer(&sandbox, read), ["x"]);
    // Text is read by position, and by name if that is said.
    external("x BIGINT, y VARCHAR", "g.csv", "").ok();
    assert_eq!(sandbox.query("SELECT x, y FROM f"), ["5,z"]);
    external("w VARCHAR", "g.csv", "OPTIONS (by_name true)").ok();
    assert_eq!(sandbox.query("SELECT * FROM f"), ["z"]);
    // Folders are columns beside the fields.
    fs::create_dir_all(sandbox.path("y/year=2025")).unwrap();
    fs::copy(sandbox.path("ab.parquet"), sandbox.path("y/year=2025/a.parquet")).unwrap();
    run("CREATE OR REPLACE EXTERNAL TABLE f (b VARCHAR, year BIGINT) PARTITIONED BY (year) LOCATION 'y/*/*.parquet'").ok();
    assert_eq!(sandbox.query("SELECT b, year FROM f"), ["x,2025"]);
}

#[test]
fn a_condition_that_a_wider_type_breaks_names_the_column_and_its_place() {
    let sandbox = Sandbox::new();
    let rows = "{\"i\":1,\"b\":true}\n".repeat(200_001);
    sandbox.write("w.jsonl", format!("{rows}{{\"i\":2,\"b\":\"maybe\"}}\n"));
    let told =
        ["w.jsonl:200002", "column b was taken for BOOLEAN", "\"maybe\"", "VARCHAR", "b BOOLEAN"];
    let load = ["load", "w.jsonl", "--into", "store", "--table", "t"];
    let breaks = sandbox.run(&[&load[..], &["--where", "i < 10 and b"]].concat());
    breaks.fails(1, &[&told[..], &["--where", "--types 'b BOOLEAN'"]].concat());
    let breaks = sandbox.run(&[&load[..], &["--select", "not b as c"]].concat());
    breaks.fails(1, &told);
    let typed = ["--where", "i < 10 and b", "--types", "b BOOLEAN", "--max-rejects", "1"];
    sandbox.run(&[&load[..], &typed].concat()).ok();
    assert_eq!(sandbox.query("SELECT count(*) FROM t"), ["200001"]);
    let cast = ["--where", "i < 10 and TRY_CAST(b AS BOOLEAN)", "--replace"];
    sandbox.run(&[&load[..], &cast].concat()).ok();
    assert_eq!(sandbox.query("SELECT count(*) FROM t"), ["200001"]);
    let sql = "SELECT count(*) FROM 'w.jsonl' WHERE b";
    wrong(&sandbox, sql, &[&told[..], &["types => 'b BOOLEAN'", "TRY_CAST"]].concat());
    // What is known of the inputs breaks the next statement, too; other mistakes are told as they are.
    let again = ["sql", "-c", "SELECT max(b) FROM 'w.jsonl'", "-c", sql];
    sandbox.run(&again).fails(1, &told);
    let other = "SELECT nothing FROM 'w.jsonl'";
    let run = sandbox.run(&["sql", "-c", "SELECT max(b) FROM 'w.jsonl'", "-c", other]);
    assert!(!run.fails(1, &["nothing"]).err.contains("maybe"));
    let cast = "SELECT count(*) FROM 'w.jsonl' WHERE TRY_CAST(b AS BOOLEAN)";
    assert_eq!(answer(&sandbox, cast), ["200001"]);
}

#[test]
fn drop_table_drops_an_external_table_and_no_other_view() {
    let sandbox = Sandbox::new();
    sandbox.write("g.csv", "v,w\n5,z\n");
    sandbox.run(&["load", "g.csv", "--into", "store"]).ok();
    let run = |sql: &str| sandbox.run(&["sql", "--store", "store", "-c", sql]);
    run("CREATE EXTERNAL TABLE e STORED AS CSV LOCATION 'g.csv' OPTIONS (delim ',')").ok();
    run("DROP TABLE e").ok();
    run("SELECT * FROM e").fails(1, &["e"]);
    run("CREATE EXTERNAL TABLE e LOCATION 'g.csv'").ok();
    run("DROP TABLE IF EXISTS e").ok();
    run("SELECT * FROM e").fails(1, &["e"]);
    run("CREATE VIEW n AS SELECT v FROM 'g.csv'").ok();
    run("DROP TABLE n").fails(1, &["n is a view: write DROP VIEW n"]);
    assert_eq!(sandbox.query("SELECT v FROM n"), ["5"]);
}

#[test]
fn explain_analyze_tells_what_is_read_of_inputs() {
    let sandbox = Sandbox::new();
    let made = "SELECT value AS n, concat('word ', value) AS w FROM range(400000) ORDER BY n";
    sandbox.run(&["sql", "-o", "a.parquet", "-c", made]).ok();
    for sql in
        ["SELECT n FROM 'a.parquet' WHERE n < 10", "SELECT max(n) FROM 'a.parquet' WHERE n < 10"]
    {
        let plan = answer(&sandbox, &format!("EXPLAIN ANALYZE {sql}")).join("\n");
        for part in ["row_groups_read=1", "row_groups_pruned=", "rows_pruned=", "bytes_read="] {
            assert!(plan.contains(part), "{part}: {plan}");
        }
    }
    sandbox.write("g.csv", "v,w\n5,z\n");
    let plan = answer(&sandbox, "EXPLAIN ANALYZE SELECT v FROM 'g.csv'").join("\n");
    assert!(plan.contains("bytes_read=8") && !plan.contains("row_groups"), "{plan}");
}
