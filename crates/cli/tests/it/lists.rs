//! Columns of lists, from files to SQL and back.

use crate::support::Sandbox;

const RECORDS: &str = r#"{"id":1,"tags":["a","b, c"],"n":[1,2,null],"d":["2024-01-02"],"m":[1,"x"]}
{"id":2,"tags":[],"n":null,"d":[],"m":[]}
{"id":3,"tags":["\"q\"",null],"n":[5],"d":[null],"m":["y"]}
"#;

/// The rows of the table that is made of [`RECORDS`], as CSV has them.
const ROWS: [&str; 3] = [
    r#"1,"[""a"", ""b, c""]","[1, 2, null]","[""2024-01-02""]""#,
    "2,[],,[]",
    r#"3,"[""\""q\"""", null]",[5],[null]"#,
];

fn loaded() -> Sandbox {
    let sandbox = Sandbox::new();
    sandbox.write("a.jsonl", RECORDS);
    load(&sandbox, "a.jsonl", &[]);
    sandbox
}

fn load(sandbox: &Sandbox, file: &str, flags: &[&str]) {
    let args = [&["load", file, "--into", "store", "--table", "t"], flags].concat();
    sandbox.run(&args).ok();
}

#[test]
fn lists_of_json_are_columns_of_lists() {
    let sandbox = loaded();
    assert_eq!(sandbox.query("SELECT id, tags, n, d FROM t ORDER BY id"), ROWS);
    assert_eq!(
        sandbox.query(
            "SELECT column_name, data_type FROM information_schema.columns WHERE table_name = 't'"
        ),
        ["id,BIGINT", "tags,VARCHAR[]", "n,BIGINT[]", "d,DATE[]", "m,VARCHAR"]
    );
    assert_eq!(sandbox.query("SELECT id, tags, n, d FROM 'a.jsonl' ORDER BY id"), ROWS);
}

#[test]
fn statements_read_lists_and_their_elements() {
    let sandbox = loaded();
    for (sql, expected) in [
        (
            "SELECT tags[1], n[-1], n[2:3] FROM t ORDER BY id",
            &["a,,\"[2, null]\"", ",,", "\"\"\"q\"\"\",5,[]"][..],
        ),
        ("SELECT id, unnest(n) FROM t", &["1,1", "1,2", "1,", "3,5"]),
        ("SELECT id FROM t WHERE array_has(tags, 'b, c')", &["1"]),
        ("SELECT id FROM t WHERE n = [5]", &["3"]),
        ("SELECT id FROM t WHERE n IS NULL", &["2"]),
        ("SELECT cardinality(tags), array_length(n) FROM t ORDER BY id", &["2,3", "0,", "2,1"]),
        ("SELECT count(*) FROM (SELECT DISTINCT tags FROM t)", &["3"]),
        (
            "SELECT n, count(*) FROM t WHERE n IS NOT NULL GROUP BY n ORDER BY n",
            &["\"[1, 2, null]\",1", "[5],1"],
        ),
        (
            "SELECT '[1, null]'::BIGINT[], CAST(['a'] AS VARCHAR), [1, NULL]::VARCHAR",
            &["\"[1, null]\",\"[\"\"a\"\"]\",\"[1, null]\""],
        ),
        ("SELECT TRY_CAST('[x]' AS BIGINT[]), '{1,NULL}'::INTEGER[]", &[",\"[1, null]\""]),
    ] {
        assert_eq!(sandbox.query(sql), expected, "{sql}");
    }
    // NULL elements are behind all others, wherever lists are compared.
    let many = "(SELECT CASE WHEN value < 20000 THEN [value] ELSE [NULL::BIGINT] END AS x FROM range(20003)) AS q";
    for (sql, expected) in [
        (format!("SELECT x FROM {many} ORDER BY x DESC LIMIT 4"), &["[null]", "[null]", "[null]", "[19999]"][..]),
        (format!("SELECT count(*) FROM {many} WHERE x > [19990]"), &["12"]),
        (format!("SELECT count(DISTINCT x), count(DISTINCT x[1]) FROM {many}"), &["20001,20000"]),
        ("SELECT [NULL] < [1], [1] < [1, 0], [1, NULL] BETWEEN [1, 5] AND [2], [NULL] = [NULL]".to_owned(), &["false,true,true,true"]),
        ("SELECT [0.0::DOUBLE] = ['-0'::DOUBLE], [1] IN ([2], [1]), [1] IS DISTINCT FROM NULL".to_owned(), &["true,true,true"]),
        ("SELECT [1.5, -2.5]::BIGINT[], [1, 2]::DECIMAL(9,2)[], [1]::VARCHAR[]".to_owned(), &["\"[2, -3]\",\"[1.00, 2.00]\",\"[\"\"1\"\"]\""]),
        // A decimal literal beside a float is one.
        ("SELECT [1e-20::DOUBLE, 0.5], [1e300, 0.25]".to_owned(), &["\"[1e-20, 0.5]\",\"[1e300, 0.25]\""]),
        ("SELECT CASE WHEN true THEN 1e-20 ELSE 0.5 END, CASE 1e-20 WHEN 0.0 THEN 1 ELSE 2 END".to_owned(), &["1e-20,2"]),
        ("SELECT a.x FROM (SELECT [1, NULL] AS x) AS a JOIN (SELECT [1, NULL] AS x) AS b ON a.x = b.x".to_owned(), &["\"[1, null]\""]),
    ] {
        assert_eq!(sandbox.query(&sql), expected, "{sql}");
    }
    for (sql, part) in [
        ("SELECT [1] || [2]", "two lists are not joined"),
        ("SELECT [1, 2] @> [1]", "the operator @> is not supported"),
        ("SELECT [n, n] FROM t", "a list of lists is not made"),
        ("SELECT max(n) FROM t", "max of lists is not supported"),
        ("SELECT greatest(n, [1]) FROM t", "greatest of lists is not supported"),
        ("SELECT array_to_string(tags, ',') FROM t", "no function named array_to_string"),
        ("SELECT [1e39::DOUBLE]::REAL[]", "REAL"),
        ("SELECT [5]::DATE[]", "a number is not cast to DATE"),
        ("INSERT INTO t (d) VALUES ([5])", "a number is not cast to DATE"),
        ("SELECT '[x]'::BIGINT[]", "cannot cast '[x]' to BIGINT[]: neither a list of JSON"),
        ("SELECT array_repeat('x', 1000000000)", "no function named array_repeat"),
        ("CREATE TABLE x (a BINARY[])", "BINARY[], the type of column a, is not stored"),
        ("CREATE TABLE x (a BIGINT[][])", "BIGINT[][], the type of column a, is not stored"),
        ("CREATE TABLE x (a VARCHAR(3)[])", "VARCHAR(3)[], the type of column a, is not stored"),
    ] {
        sandbox.run(&["sql", "--store", "store", "-c", sql]).fails(1, &[part]);
    }
}

#[test]
fn statements_write_lists() {
    let sandbox = loaded();
    let run = |sql: &str| sandbox.query(sql);
    run("CREATE TABLE w (a BIGINT[] DEFAULT '[1,2]', b VARCHAR[] NOT NULL)");
    run("INSERT INTO w (b) VALUES (['z'])");
    run("INSERT INTO w VALUES (NULL, []), ([3.0], '[\"x\"]')");
    assert_eq!(
        run("SELECT a, b FROM w"),
        ["\"[1, 2]\",\"[\"\"z\"\"]\"", ",[]", "[3],\"[\"\"x\"\"]\""]
    );
    run("UPDATE w SET a = array_append(a, 9) WHERE b = ['z']");
    assert_eq!(run("SELECT a FROM w WHERE array_has(a, 9)"), ["\"[1, 2, 9]\""]);
    run("DELETE FROM w WHERE b = []");
    assert_eq!(run("SELECT count(*) FROM w"), ["2"]);
    run("CREATE TABLE c AS SELECT id, tags, n, array_append(n, 3) AS more FROM t");
    assert_eq!(run("SELECT more FROM c ORDER BY id"), ["\"[1, 2, null, 3]\"", "[3]", "\"[5, 3]\""]);
}

#[test]
fn lists_come_back_from_files() {
    let sandbox = loaded();
    let read = "SELECT id, tags, n, d FROM t ORDER BY id";
    let lines = sandbox.run(&["sql", "--store", "store", "-c", read, "--output", "jsonl"]).ok();
    sandbox.write("o.jsonl", lines.out);
    for file in ["o.parquet", "o.csv", "o.jsonl"] {
        if !file.ends_with("jsonl") {
            sandbox.query(&format!("COPY ({read}) TO '{}'", sandbox.path(file).display()));
        }
        let flags: &[&str] = match file {
            "o.csv" => &["--replace", "--types", "tags VARCHAR[], n BIGINT[], d DATE[]"],
            _ => &["--replace"],
        };
        load(&sandbox, file, flags);
        assert_eq!(sandbox.query(read), ROWS, "{file}");
    }
    // What a load writes into files of Parquet.
    sandbox.run(&["load", "a.jsonl", "--into", "parquet:dir"]).ok();
    assert_eq!(sandbox.query("SELECT id, tags, n, d FROM 'dir/*.parquet' ORDER BY id"), ROWS);
}
