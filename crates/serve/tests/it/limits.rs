//! Large statements end in an answer or in an error that names the limit.
#![allow(clippy::print_stdout)]

use std::time::{Duration, Instant};

use coload_serve::{Database, DatabaseOptions, StatementLimits};
use coload_store::Store;
use coload_types::Error;

use crate::support::Scratch;

fn rows(database: &Database, sql: &str) -> Result<usize, Error> {
    database.query(sql).map(|batches| batches.iter().map(|b| b.num_rows()).sum())
}

/// Common table expressions that name the one before twice: 2^levels tables.
fn doubled(levels: usize) -> String {
    let mut text = "WITH c0 AS (SELECT 1 AS x)".to_owned();
    for level in 1..=levels {
        let before = level - 1;
        text +=
            &format!(", c{level} AS (SELECT * FROM c{before} UNION ALL SELECT * FROM c{before})");
    }
    text + &format!(" SELECT count(*) FROM c{levels}")
}

/// At a1bdeed `1=1 AND ...` of 20,000 terms ended the process with an overflow of its stack, and so did the others.
#[test]
fn long_and_deep_statements_answer_or_name_the_limit() {
    let scratch = Scratch::new();
    let (store, defaults) = (scratch.database.store().clone(), scratch.database.options());
    let options = DatabaseOptions { statements: StatementLimits::default(), ..defaults.clone() };
    let database = &Database::open(store, options).unwrap();
    database.query("CREATE TABLE t AS SELECT value AS a FROM range(10)").unwrap();
    let many = |text: &str, count: usize| text.repeat(count);
    for (name, sql) in [
        ("AND", format!("SELECT 1 WHERE 1=1{}", many(" AND 1=1", 20_000))),
        ("OR", format!("SELECT a FROM t WHERE a=1{}", many(" OR a=2", 20_000))),
        ("mixed", format!("SELECT a FROM t WHERE a=1{}", many(" OR a=2 AND a=3", 8_000))),
        ("+", format!("SELECT 1{}", many("+1", 20_000))),
        ("::", format!("SELECT 1{}", many("::INT", 20_000))),
        ("IS NULL", format!("SELECT 1{}", many(" IS NULL", 20_000))),
        ("NOT", format!("SELECT {} true", many("NOT ", 20_000))),
        ("-", format!("SELECT {}1", many("- ", 20_000))),
        ("parentheses", format!("SELECT {}1{}", many("(", 20_000), many(")", 20_000))),
        ("open", format!("SELECT {}1", many("(", 20_000))),
        ("subqueries", format!("SELECT {}1{}", many("(SELECT ", 2_000), many(")", 2_000))),
        ("tables", format!("SELECT * FROM {}t{}", many("(", 2_000), many(")", 2_000))),
        ("calls", format!("SELECT {}1{}", many("abs(", 2_000), many(")", 2_000))),
        (
            "CASE",
            format!("SELECT {} 1 {}", many("CASE WHEN true THEN ", 2_000), many(" END", 2_000)),
        ),
        ("UNION", format!("SELECT 1{}", many(" UNION ALL SELECT 1", 3_000))),
        ("types", format!("SELECT CAST(1 AS {}INT{})", many("ARRAY<", 5_000), many(">", 5_000))),
        ("interval", format!("SELECT {}'1 day'", many("INTERVAL ", 5_000))),
        ("explain", format!("{} SELECT 1", many("EXPLAIN ", 5_000))),
        ("wrong", format!("SELECT 1{} )", many("+1", 60_000))),
        ("SHOW", format!("SHOW FUNCTIONS LIKE 'x'' OR 1{}=1 OR ''a''=''a'", many("+1", 60_000))),
        ("tables of a FROM", format!("SELECT 1 FROM t{}", many(", t", 2_000))),
        ("CTEs", doubled(40)),
        ("CUBE", format!("SELECT 1 FROM t GROUP BY CUBE (a{})", many(", a", 30))),
        ("*", format!("SELECT *{} FROM t", many(", *", 5_000))),
        ("chains", format!("SELECT {}1", many(&format!("1{}, ", many("+1", 400)), 200))),
        ("parameters", format!("SELECT ?{}", many(", ?", 20_000))),
        ("exponents", format!("SELECT count(*) FROM t WHERE a IN (1e0{})", many(", 1e0", 20_000))),
    ] {
        let began = Instant::now();
        let answer = rows(database, &sql);
        println!("{name}: {answer:?} after {:?}", began.elapsed());
        assert!(
            matches!(answer, Ok(_) | Err(Error::Limit(_) | Error::Invalid(_))),
            "{name}: {answer:?}"
        );
    }
    assert_eq!(rows(&scratch.database, "SELECT 1").unwrap(), 1);
}

/// What everyday tools send works.
#[test]
fn large_statements_of_tools_work() {
    let scratch = Scratch::new();
    let database = &scratch.database;
    database.query("CREATE TABLE t (a BIGINT, b TEXT)").unwrap();
    let values: Vec<String> = (0..20_000).map(|i| format!("({i}, 'text of row {i}')")).collect();
    database.query(&format!("INSERT INTO t VALUES {}", values.join(", "))).unwrap();
    let list: Vec<String> = (0..20_000).map(|i| i.to_string()).collect();
    let sql = format!("SELECT a FROM t WHERE a IN ({})", list.join(","));
    assert_eq!(rows(database, &sql).unwrap(), 20_000);
    let sum: Vec<String> = (0..100).map(|_| "a".to_owned()).collect();
    assert_eq!(rows(database, &format!("SELECT {} FROM t LIMIT 1", sum.join("+"))).unwrap(), 1);
    let unions = vec!["SELECT 1"; 100].join(" UNION ALL ");
    assert_eq!(rows(database, &unions).unwrap(), 100);
}

/// Symptom: a sum of 300 terms, a chain of 300 `||` and a list of 10,000 numbers such as `1e0` were not planned in ten seconds. Causes: the type of
/// checked arithmetic was asked for at each level, which names all that is below it; and the guard of types wrote the
/// list for each of its values. Now each takes a second or two, without optimisation.
#[test]
fn long_sums_and_lists_of_any_numbers_are_planned_soon() {
    let scratch = Scratch::new();
    let database = &scratch.database;
    database.query("CREATE TABLE t AS SELECT value AS a FROM range(10)").unwrap();
    for (sql, count) in [
        (format!("SELECT {} FROM t", ["a"; 350].join("+")), 10),
        (format!("SELECT {} FROM t", ["a * 2 - 1.5"; 100].join(" + ")), 10),
        (format!("SELECT '' || {} FROM t", ["a"; 400].join(" || ")), 10),
        (format!("SELECT a FROM t WHERE a IN ({})", ["1e0"; 40_000].join(",")), 1),
        (format!("SELECT CASE {} END FROM t", ["WHEN a = 3 THEN a"; 2_000].join(" ")), 10),
    ] {
        let began = Instant::now();
        assert_eq!(rows(database, &sql).unwrap(), count);
        let took = began.elapsed();
        // What grows with the square of a statement takes seconds here, and on a slow machine a minute; more is worse.
        assert!(took < Duration::from_secs(300), "{took:?}: {}..", &sql[..60]);
    }
}

#[test]
fn each_limit_is_named() {
    let scratch = tempfile::TempDir::new().unwrap();
    let store = Store::create_or_open(scratch.path().join("store")).unwrap();
    let statements = StatementLimits {
        text_bytes: 2_000,
        terms: 300,
        depth: 20,
        planning: Duration::from_secs(20),
        plannings: 2,
    };
    let options =
        DatabaseOptions { threads: 1, memory: 64 << 20, statements, ..DatabaseOptions::default() };
    let database = Database::open(store, options).unwrap();
    for (sql, flag) in [
        (format!("SELECT '{}'", "x".repeat(2_000)), "--max-statement-text"),
        (format!("SELECT 1{}", ",1".repeat(200)), "--max-statement-terms"),
        (format!("SELECT {}1{}", "(".repeat(30), ")".repeat(30)), "--max-statement-depth"),
        (format!("SELECT 1{}", "+1".repeat(30)), "--max-statement-depth"),
        (format!("SELECT 1{}", " UNION SELECT 1".repeat(30)), "--max-statement-depth"),
    ] {
        match database.query(&sql) {
            Err(Error::Limit(text)) => assert!(text.contains(flag), "{text}"),
            other => panic!("{sql}: {other:?}"),
        }
    }
}
