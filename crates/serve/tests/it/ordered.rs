//! Tables with keys in the order of these: answers are those of tables without order, and nothing is sorted.

use coload_serve::arrow::array::{Array, AsArray, RecordBatch};
use coload_serve::arrow::util::pretty::pretty_format_batches;

use crate::support::{Random, Scratch};

fn text(batches: &[RecordBatch]) -> String {
    pretty_format_batches(batches).unwrap().to_string()
}

fn plan(scratch: &Scratch, sql: &str) -> String {
    let rows = scratch.database.query(&format!("EXPLAIN {sql}")).unwrap();
    let plans: Vec<String> = rows
        .iter()
        .flat_map(|batch| {
            let column = batch.column(1).as_string::<i32>();
            (0..column.len()).map(|row| column.value(row).to_owned()).collect::<Vec<_>>()
        })
        .collect();
    plans.join("\n")
}

#[track_caller]
fn same(scratch: &Scratch, sql: &str, is_sorted: bool) {
    let found = scratch.database.query(&sql.replace("TABLE", "k")).unwrap();
    let expected = scratch.database.query(&sql.replace("TABLE", "plain")).unwrap();
    assert_eq!(text(&found), text(&expected), "{sql}");
    let plan = plan(scratch, &sql.replace("TABLE", "k"));
    assert_eq!(plan.contains("SortExec"), is_sorted, "{sql}: {plan}");
}

const SORTED: bool = true;
const NOT_SORTED: bool = false;

/// Some columns are of the key, some statements are in its order, some are not.
#[test]
fn answers_of_ordered_tables_are_those_of_others() {
    for seed in 0..4 {
        let mut random = Random(seed);
        let scratch = Scratch::new();
        let database = &scratch.database;
        let key = match seed % 2 {
            0 => "PRIMARY KEY (a, b)",
            _ => "",
        };
        let cluster = if seed % 2 == 1 { " CLUSTER BY (a, b)" } else { "" };
        let null = if seed % 2 == 0 { " NOT NULL" } else { "" };
        let key = if key.is_empty() { String::new() } else { format!(", {key}") };
        database
            .query(&format!(
                "CREATE TABLE k (b VARCHAR{null}, n BIGINT NOT NULL, a INTEGER{null}{key}){cluster}"
            ))
            .unwrap();
        database.query("CREATE TABLE plain (b VARCHAR, n BIGINT NOT NULL, a INTEGER)").unwrap();
        let mut n = 0;
        for round in 0..8 {
            // Rows of a range of its own, or of all.
            let (low, width) = if random.below(2) == 0 { (round * 10, 10) } else { (0, 80) };
            let mut values = Vec::new();
            for _ in 0..1 + random.below(60) {
                n += 1;
                let a = (low + random.below(width)) as i64 - 20;
                let (a, b) = match (seed % 2, random.below(8)) {
                    (1, 0) => ("NULL".into(), format!("'x{n}'")),
                    (1, 1) => (a.to_string(), "NULL".into()),
                    _ => (
                        a.to_string(),
                        format!("'{}{n}'", ["", "é", "Z", "a"][random.below(4) as usize]),
                    ),
                };
                values.push(format!("({b}, {n}, {a})"));
            }
            for table in ["k", "plain"] {
                let values = values.join(", ");
                database.query(&format!("INSERT INTO {table} VALUES {values}")).unwrap();
            }
            if random.below(3) == 0 {
                let m = random.below(7);
                for table in ["k", "plain"] {
                    database.query(&format!("DELETE FROM {table} WHERE n % 7 = {m}")).unwrap();
                }
            }
            for sql in [
                "SELECT a, count(*) FROM (SELECT a FROM TABLE ORDER BY a) GROUP BY a ORDER BY a",
                "SELECT * FROM TABLE ORDER BY a, b, n",
                "SELECT a FROM TABLE ORDER BY a DESC",
                "SELECT a FROM TABLE ORDER BY a NULLS FIRST",
                "SELECT b FROM TABLE ORDER BY b",
                "SELECT a, b, n FROM TABLE ORDER BY a + 1, b, n",
            ] {
                let found = database.query(&sql.replace("TABLE", "k")).unwrap();
                let expected = database.query(&sql.replace("TABLE", "plain")).unwrap();
                assert_eq!(text(&found), text(&expected), "{sql}");
            }
            for (sql, is_sorted) in [
                ("SELECT a FROM TABLE ORDER BY a", NOT_SORTED),
                ("SELECT a, b FROM TABLE ORDER BY a, b", NOT_SORTED),
                ("SELECT a AS x, b AS y FROM TABLE WHERE n % 3 > 0 ORDER BY x, y", NOT_SORTED),
                ("SELECT b FROM TABLE WHERE a = 7 ORDER BY b", NOT_SORTED),
                (
                    "SELECT a, b FROM TABLE WHERE a BETWEEN -5 AND 30 ORDER BY a, b LIMIT 7",
                    NOT_SORTED,
                ),
                ("SELECT a, b FROM TABLE ORDER BY a, b LIMIT 3 OFFSET 4", NOT_SORTED),
                ("SELECT a, b FROM TABLE ORDER BY b, a", SORTED),
                ("SELECT a, b FROM TABLE ORDER BY a, b DESC", SORTED),
                ("SELECT a, min(b) FROM TABLE GROUP BY a ORDER BY a", SORTED),
            ] {
                same(&scratch, sql, is_sorted);
            }
            let nulls = if seed % 2 == 0 { NOT_SORTED } else { SORTED };
            if seed % 2 == 0 {
                same(
                    &scratch,
                    "SELECT a, b, row_number() OVER (PARTITION BY a ORDER BY b) AS r FROM TABLE ORDER BY a, b",
                    nulls,
                );
            }
            same(
                &scratch,
                "SELECT a, b, lag(n) OVER (ORDER BY a, b) AS l FROM TABLE WHERE a > 2 AND b > 'a' ORDER BY a, b",
                NOT_SORTED,
            );
        }
    }
}

/// Several pages and segments, which threads take in turn.
#[test]
fn large_tables_come_in_order_from_several_threads() {
    let scratch = Scratch::new();
    let database = &scratch.database;
    database.query("CREATE TABLE k (a BIGINT PRIMARY KEY, v BIGINT)").unwrap();
    // Two that follow each other, and one between both.
    for (from, step) in [(0, 2), (400_000, 2), (1, 4)] {
        database
            .query(&format!(
                "INSERT INTO k SELECT {from} + value * {step}, value FROM generate_series(0, 199999)"
            ))
            .unwrap();
        let plan = plan(&scratch, "SELECT a, v FROM k ORDER BY a");
        assert!(!plan.contains("SortExec"), "{plan}");
        assert_eq!(plan.contains("runs=2"), from == 1, "{plan}");
        database.query("DELETE FROM k WHERE v % 1000 = 17").unwrap();
        let rows = database.query("SELECT a, v FROM k ORDER BY a").unwrap();
        let numbers: Vec<i64> = rows
            .iter()
            .flat_map(|batch| {
                batch
                    .column(0)
                    .as_primitive::<coload_serve::arrow::datatypes::Int64Type>()
                    .values()
                    .to_vec()
            })
            .collect();
        assert!(numbers.is_sorted() && numbers.len().is_multiple_of(199_800), "{}", numbers.len());
        let file = scratch.dir.path().join("ordered.csv");
        let copy =
            format!("COPY (SELECT a FROM k ORDER BY a) TO '{}' (HEADER false)", file.display());
        database.query(&copy).unwrap();
        let written: Vec<i64> = std::fs::read_to_string(&file)
            .unwrap()
            .lines()
            .map(|line| line.parse().unwrap())
            .collect();
        assert!(written == numbers, "the file has another order");
    }
}

/// What the store takes for equal and the engine does not is in no order that is said.
#[test]
fn floats_are_sorted() {
    let scratch = Scratch::new();
    let database = &scratch.database;
    database.query("CREATE TABLE k (x DOUBLE, y INTEGER) CLUSTER BY (x, y)").unwrap();
    database
        .query("INSERT INTO k VALUES (0, 1), (-0e0, 2), (0, 3), (CAST('NaN' AS DOUBLE), 4), (NULL, 5), (-1, 6)")
        .unwrap();
    let plan = plan(&scratch, "SELECT x, y FROM k ORDER BY x, y");
    assert!(plan.contains("SortExec"), "{plan}");
    let rows = database.query("SELECT y FROM k ORDER BY x, y").unwrap();
    assert!(text(&rows).contains("| 6 |\n| 1 |\n| 2 |\n| 3 |\n| 4 |\n| 5 |"), "{}", text(&rows));
}

/// The engine says of a cast of a time to a time, and of some functions, that they keep the order; a cast to TIME does not. What
/// comes of a key in order is the columns as they are stored, and nothing that is computed of them.
#[test]
fn what_is_computed_of_a_key_is_sorted() {
    let scratch = Scratch::new();
    let database = &scratch.database;
    let columns = "ts TIMESTAMP NOT NULL, z TIMESTAMPTZ NOT NULL, n INTEGER NOT NULL, d DECIMAL(9, 2) NOT NULL";
    let of_times = [
        "CAST(KEY AS TIME)",
        "TRY_CAST(KEY AS TIME)",
        "CAST(KEY AS DATE)",
        "CAST(KEY AS VARCHAR)",
        "date_trunc('day', KEY)",
        "hour(KEY)",
        "KEY + INTERVAL '1 day'",
    ];
    let of_numbers = [
        "-KEY",
        "KEY + 1",
        "KEY % 7",
        "KEY * 2",
        "abs(KEY)",
        "round(KEY)",
        "CAST(KEY AS VARCHAR)",
        "CAST(KEY AS BIGINT)",
        "CAST(KEY AS DOUBLE)",
    ];
    for key in ["ts", "z", "n", "d"] {
        database.query(&format!("CREATE OR REPLACE TABLE plain ({columns})")).unwrap();
        database
            .query(&format!("CREATE OR REPLACE TABLE k ({columns}, PRIMARY KEY ({key}))"))
            .unwrap();
        for part in 0..3 {
            // Seven hours from one to the next, from before 2024-02-29 on.
            let second = "to_timestamp_seconds(1709000000 + (value - 20) * 25200)";
            let rows = format!(
                "SELECT CAST({second} AS TIMESTAMP), CAST({second} AS TIMESTAMPTZ), value - 20, (value - 20) / 4.0 \
                 FROM generate_series({}, {})",
                part * 20,
                part * 20 + 19
            );
            for table in ["k", "plain"] {
                database.query(&format!("INSERT INTO {table} {rows}")).unwrap();
            }
        }
        let exprs = if matches!(key, "ts" | "z") { &of_times[..] } else { &of_numbers };
        for expr in exprs {
            let e = expr.replace("KEY", key);
            let limited = format!("(SELECT * FROM TABLE ORDER BY {key} LIMIT 50)");
            for sql in [
                format!("SELECT {e} AS e, {key} FROM TABLE ORDER BY {e}, {key}"),
                format!("SELECT e, x FROM (SELECT {e} AS e, {key} AS x FROM TABLE) ORDER BY e, x"),
                format!("SELECT {e} AS e, {key} FROM TABLE ORDER BY e DESC NULLS FIRST, {key}"),
                format!(
                    "SELECT e, count(*) FROM (SELECT {e} AS e FROM TABLE) GROUP BY e ORDER BY e"
                ),
            ] {
                same(&scratch, &sql, SORTED);
            }
            // A sort that is there says its order too.
            for sql in [
                format!("SELECT e FROM (SELECT {e} AS e FROM {limited}) ORDER BY e"),
                format!(
                    "SELECT e, count(*) FROM (SELECT {e} AS e FROM {limited}) GROUP BY e ORDER BY e"
                ),
            ] {
                let found = database.query(&sql.replace("TABLE", "k")).unwrap();
                let expected = database.query(&sql.replace("TABLE", "plain")).unwrap();
                assert_eq!(text(&found), text(&expected), "{sql}");
            }
        }
        same(&scratch, &format!("SELECT {key} FROM TABLE ORDER BY {key} DESC"), SORTED);
        same(&scratch, &format!("SELECT {key} FROM TABLE ORDER BY {key} NULLS FIRST"), NOT_SORTED);
        let nested = format!("SELECT {key} AS x, n AS y FROM TABLE");
        let sql = format!("SELECT y + 1 AS m, x FROM ({nested}) WHERE y > 3 ORDER BY x");
        same(&scratch, &sql, NOT_SORTED);
    }
}
