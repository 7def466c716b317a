//! Aggregates on codes give what DataFusion gives.

use coload_serve::arrow::util::pretty::pretty_format_batches;

use crate::support::Scratch;

/// Columns of all kinds: few values, many values, NULLs, no rows that pass.
const TABLE: &str = "
CREATE TABLE t AS SELECT
    value AS id,
    CAST(value % 7 AS SMALLINT) AS few,
    CASE WHEN value % 5 = 0 THEN NULL ELSE CAST(value % 11 AS INT) END AS holes,
    'name ' || (value % 23) AS name,
    CASE WHEN value % 3 = 0 THEN NULL ELSE 'x' || (value % 4) END AS label,
    CAST(value % 1000 AS DECIMAL(15,2)) * 0.01 AS ratio,
    CAST(value * 37 % 100000 AS DECIMAL(15,2)) AS price,
    CAST(value % 10 AS DECIMAL(4,2)) * 0.01 AS discount,
    CAST(value AS DECIMAL(30,3)) AS wide,
    CAST(value % 97 AS DOUBLE) / 8 AS number,
    DATE '2024-01-01' + CAST(value % 400 AS INT) AS day,
    value % 2 = 0 AS even
FROM range(150000)";

fn rows(scratch: &Scratch, sql: &str) -> Vec<String> {
    let batches = scratch.database.query(sql).unwrap();
    let text = pretty_format_batches(&batches).unwrap().to_string();
    let mut lines: Vec<String> = text.lines().map(String::from).collect();
    lines.sort();
    lines
}

fn plan(scratch: &Scratch, sql: &str) -> String {
    let batches = scratch.database.query(&format!("EXPLAIN {sql}")).unwrap();
    pretty_format_batches(&batches).unwrap().to_string()
}

/// Both ways: on codes, and over a limit, which the rule leaves alone.
fn check(scratch: &Scratch, select: &str, rest: &str) {
    let fast = format!("SELECT {select} FROM t {rest}");
    let slow = format!("SELECT {select} FROM (SELECT * FROM t LIMIT 1000000) AS t {rest}");
    let shown = plan(scratch, &fast);
    assert!(shown.contains("AggregateOnCodesExec"), "{fast}\n{shown}");
    assert!(!plan(scratch, &slow).contains("AggregateOnCodesExec"), "{slow}");
    assert_eq!(rows(scratch, &fast), rows(scratch, &slow), "{fast}");
}

#[test]
fn on_codes_and_on_rows_the_answers_are_the_same() {
    let scratch = Scratch::new();
    scratch.database.query(TABLE).unwrap();
    let selects = [
        "count(*), count(holes), count(label), count(1)",
        "sum(id), sum(few), sum(holes), sum(price), sum(wide)",
        "avg(few), avg(holes), avg(price), avg(id)",
        "min(few), max(holes), min(price), max(day), min(wide), max(id)",
        "sum(price * (1 - discount)), sum(price * (1 - discount) * (1 + ratio))",
        "sum(price + wide), avg(price * discount), sum(2 * few - holes), max(price - ratio)",
        "sum(number), avg(number), sum(number * 2 + 1)",
    ];
    let rests = [
        "",
        "WHERE day < DATE '2024-03-01' AND label = 'x1'",
        "WHERE holes IS NULL",
        "WHERE price > 1000000",
        "WHERE id BETWEEN 60000 AND 60010",
    ];
    for select in selects {
        for rest in rests {
            // Counts and bounds of all rows come from the manifest.
            if !(rest.is_empty() && (select.starts_with("count") || select.starts_with("min"))) {
                check(&scratch, select, rest);
            }
        }
        check(&scratch, &format!("label, even, {select}"), "GROUP BY label, even");
        check(&scratch, &format!("name, {select}"), "WHERE few > 2 GROUP BY name");
        check(&scratch, &format!("day, few, {select}"), "GROUP BY day, few");
    }
    check(&scratch, "DISTINCT label", "");
    check(&scratch, "count(DISTINCT few)", "");
    check(&scratch, "few", "WHERE number > 3 GROUP BY few HAVING count(*) > 10");
}

#[test]
fn what_cannot_be_said_on_codes_stays_with_datafusion() {
    let scratch = Scratch::new();
    scratch.database.query(TABLE).unwrap();
    for sql in [
        "SELECT count(DISTINCT few), sum(DISTINCT id) FROM t",
        "SELECT sum(id) FILTER (WHERE even) FROM t",
        "SELECT max(name) FROM t WHERE few = 1",
        "SELECT id, count(*) FROM t GROUP BY id",
        "SELECT few + 1, count(*) FROM t GROUP BY few + 1",
        "SELECT sum(id) FROM t WHERE id + few > 3",
        "SELECT stddev(id) FROM t WHERE few = 1",
        "SELECT few, holes, sum(id) FROM t GROUP BY ROLLUP (few, holes)",
    ] {
        assert!(!plan(&scratch, sql).contains("AggregateOnCodesExec"), "{sql}");
        scratch.database.query(sql).unwrap();
    }
}

#[test]
fn aggregates_on_codes_stand_below_joins_and_sorts() {
    let scratch = Scratch::new();
    scratch.database.query(TABLE).unwrap();
    let sql = "SELECT a.few, a.n, b.s FROM
        (SELECT few, count(*) AS n FROM t WHERE even GROUP BY few) AS a
        JOIN (SELECT few, sum(price) AS s FROM t GROUP BY few) AS b ON a.few = b.few
        ORDER BY a.n DESC, a.few LIMIT 3";
    assert_eq!(plan(&scratch, sql).matches("AggregateOnCodesExec").count(), 2);
    let limited = sql.replace("FROM t", "FROM (SELECT * FROM t LIMIT 1000000) AS t");
    assert_eq!(rows(&scratch, sql), rows(&scratch, &limited));
}

#[test]
fn a_sum_that_does_not_fit_its_type_is_an_error() {
    let scratch = Scratch::new();
    scratch
        .database
        .query(
            "CREATE TABLE big AS SELECT CAST(15e34 AS DECIMAL(38,0)) - value AS v FROM range(1000)",
        )
        .unwrap();
    let sql = "SELECT sum(v) FROM big WHERE v > 0";
    assert!(plan(&scratch, sql).contains("AggregateOnCodesExec"));
    let error = scratch.database.query(sql).unwrap_err().to_string();
    assert!(error.contains("too large for Decimal128(38, 0)"), "{error}");
}
