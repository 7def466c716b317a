//! PIVOT and UNPIVOT beside the queries that they stand for, columns and rows.

use coload_serve::arrow::util::pretty::pretty_format_batches;
use coload_serve::{Database, Grant, Parameters, Rights};

use crate::support::Scratch;

fn cities() -> Scratch {
    let scratch = Scratch::new();
    for sql in [
        "CREATE TABLE cities (country VARCHAR, name VARCHAR, \"Year\" INTEGER, population INTEGER)",
        "INSERT INTO cities VALUES ('NL', 'Amsterdam', 2000, 1005), ('NL', 'Amsterdam', 2010, 1065), \
         ('US', 'Seattle', 2000, 564), ('US', 'Seattle', 2010, 608), ('US', 'New York', 2000, 8015), (NULL, 'Atlantis', NULL, 7)",
        "CREATE TABLE sales (shop VARCHAR, jan DECIMAL(9, 2), \"Feb\" DECIMAL(9, 2), mar INTEGER)",
        "INSERT INTO sales VALUES ('a', 1.5, 2, 3), ('b', NULL, 4.25, NULL)",
    ] {
        scratch.database.query(sql).unwrap();
    }
    scratch
}

fn told(database: &Database, sql: &str) -> String {
    let rows = database.query(sql).unwrap_or_else(|e| panic!("{sql}: {e}"));
    pretty_format_batches(&rows).unwrap().to_string()
}

#[test]
fn a_pivot_is_its_query_with_filters() {
    let scratch = cities();
    for (pivot, query) in [
        (
            "PIVOT cities ON year USING sum(population) GROUP BY country ORDER BY country",
            "SELECT country, sum(population) FILTER (WHERE year = 2000) AS \"2000\", sum(population) FILTER (WHERE year = 2010) AS \
             \"2010\" FROM cities GROUP BY country ORDER BY country",
        ),
        // The groups are what neither ON nor USING names.
        (
            "pivot cities on Year using max(Population) order by name limit 3;",
            "SELECT country, name, max(population) FILTER (WHERE year = 2000) AS \"2000\", max(population) FILTER (WHERE year = \
             2010) AS \"2010\" FROM cities GROUP BY country, name ORDER BY name LIMIT 3",
        ),
        // Without USING rows are counted.
        (
            "PIVOT (SELECT country, name FROM cities WHERE year = 2000) ON country IN ('US', 'NL', NULL) ORDER BY name",
            "SELECT name, count(*) FILTER (WHERE country = 'US') AS \"US\", count(*) FILTER (WHERE country = 'NL') AS \"NL\", \
             count(*) FILTER (WHERE country IS NULL) AS \"NULL\" FROM cities WHERE year = 2000 GROUP BY name ORDER BY name",
        ),
        (
            "PIVOT cities ON year IN (2000, -1) USING sum(population) AS total, max(population) AS \"Most\" GROUP BY country ORDER BY \
             country",
            "SELECT country, sum(population) FILTER (WHERE year = 2000) AS \"2000_total\", max(population) FILTER (WHERE year = 2000) \
             AS \"2000_Most\", sum(population) FILTER (WHERE year = -1) AS \"-1_total\", max(population) FILTER (WHERE year = -1) AS \
             \"-1_Most\" FROM cities GROUP BY country ORDER BY country",
        ),
        (
            "PIVOT cities ON country, year IN (2000) USING sum(population), count(*) FILTER (WHERE name <> 'Seattle') GROUP BY \
             name ORDER BY name",
            "SELECT name, sum(population) FILTER (WHERE country = 'NL' AND year = 2000) AS \"NL_2000_sum(population)\", count(*) \
             FILTER (WHERE name <> 'Seattle' AND country = 'NL' AND year = 2000) AS \"NL_2000_count(*) FILTER (WHERE name <> \
             'Seattle')\", sum(population) FILTER (WHERE country = 'US' AND year = 2000) AS \"US_2000_sum(population)\", count(*) \
             FILTER (WHERE name <> 'Seattle' AND country = 'US' AND year = 2000) AS \"US_2000_count(*) FILTER (WHERE name <> \
             'Seattle')\" FROM cities GROUP BY name ORDER BY name",
        ),
        // Of an expression, behind common table expressions.
        (
            "WITH c AS (SELECT * FROM cities WHERE country IS NOT NULL), d AS (SELECT * FROM c) PIVOT d ON country || '_' || (year % \
             100) USING sum(population) GROUP BY lower(country) ORDER BY 1",
            "SELECT lower(country), sum(population) FILTER (WHERE country = 'NL' AND year = 2000) AS \"NL_0\", sum(population) \
             FILTER (WHERE country = 'NL' AND year = 2010) AS \"NL_10\", sum(population) FILTER (WHERE country = 'US' AND year = \
             2000) AS \"US_0\", sum(population) FILTER (WHERE country = 'US' AND year = 2010) AS \"US_10\" FROM cities WHERE country \
             IS NOT NULL GROUP BY lower(country) ORDER BY 1",
        ),
        // In brackets, and one in another.
        (
            "SELECT p.\"2000\" + 1 AS more FROM (PIVOT (FROM_CITIES) ON year USING sum(population) GROUP BY country) AS p WHERE \
             country = 'NL'",
            "SELECT sum(population) + 1 AS more FROM cities WHERE country = 'NL' AND year = 2000",
        ),
        (
            "SELECT count(*) AS n FROM (PIVOT cities ON year) AS p JOIN (PIVOT cities ON country) AS q ON p.name = q.name",
            "SELECT CAST(10 AS BIGINT) AS n",
        ),
        // No values: the groups alone.
        (
            "PIVOT (SELECT * FROM cities WHERE false) ON year GROUP BY country",
            "SELECT country FROM cities WHERE false GROUP BY country",
        ),
    ] {
        let pivot = pivot.replace("FROM_CITIES", "SELECT * FROM cities");
        assert_eq!(told(&scratch.database, &pivot), told(&scratch.database, query), "{pivot}");
    }
}

/// The values of each type are compared as that type.
#[test]
fn columns_of_every_type_have_their_rows() {
    let scratch = Scratch::new();
    let database = &scratch.database;
    for (data_type, values) in [
        ("BOOLEAN", ["true", "false"]),
        ("BIGINT", ["-5", "9223372036854775807"]),
        ("DECIMAL(9, 2)", ["1.50", "-0.25"]),
        ("DOUBLE", ["0.1", "1e300"]),
        ("DATE", ["DATE '2024-02-29'", "DATE '0001-01-01'"]),
        ("TIME", ["TIME '12:30:00'", "TIME '23:59:59.999999'"]),
        (
            "TIMESTAMP",
            ["TIMESTAMP '2024-02-29 12:00:00.000001'", "TIMESTAMP '1999-12-31 00:00:00'"],
        ),
        (
            "TIMESTAMPTZ",
            ["TIMESTAMPTZ '2024-02-29 12:00:00Z'", "TIMESTAMPTZ '1999-12-31 00:00:00Z'"],
        ),
        ("VARCHAR", ["''", "'it''s \"é\"'"]),
        (
            "UUID",
            ["'a0eebc99-9c0b-4ef8-bb6d-6bb9bd380a11'", "'b0eebc99-9c0b-4ef8-bb6d-6bb9bd380a11'"],
        ),
    ] {
        database.query(&format!("CREATE OR REPLACE TABLE t (c {data_type}, x INTEGER)")).unwrap();
        let [a, b] = values;
        database
            .query(&format!("INSERT INTO t VALUES ({a}, 1), ({b}, 2), ({a}, 4), (NULL, 8)"))
            .unwrap();
        let sql = "PIVOT (SELECT c, x, 'all' AS g FROM t) ON c USING sum(x) GROUP BY g";
        let rows = told(database, sql);
        let line = rows.lines().nth(3).unwrap().replace(' ', "");
        assert!(line == "|all|5|2|" || line == "|all|2|5|", "{data_type}: {rows}");
    }
}

#[test]
fn an_unpivot_is_a_row_for_each_column() {
    let scratch = cities();
    for (unpivot, query) in [
        (
            "UNPIVOT sales ON jan, feb, mar INTO NAME month VALUE amount ORDER BY shop, month",
            "SELECT * FROM (VALUES ('a', 'Feb', 2.00), ('a', 'jan', 1.50), ('a', 'mar', 3.00), ('b', 'Feb', 4.25)) AS v (shop, month, amount) \
             ORDER BY shop, month",
        ),
        (
            "UNPIVOT sales INCLUDE NULLS ON COLUMNS(* EXCLUDE (shop, mar)) INTO NAME \"Month\" VALUE v ORDER BY shop, \"Month\"",
            "SELECT shop, CAST(mar AS INTEGER) AS mar, \"Month\", v FROM (VALUES ('a', 3, 'Feb', 2.00), ('a', 3, 'jan', 1.50), ('b', NULL, \
             'Feb', 4.25), ('b', NULL, 'jan', NULL)) AS x (shop, mar, \"Month\", v) ORDER BY shop, \"Month\"",
        ),
        (
            "SELECT name, sum(value) AS s FROM (UNPIVOT (SELECT jan, mar FROM sales) ON *) GROUP BY name ORDER BY name",
            "SELECT 'jan' AS name, 1.50 AS s UNION ALL SELECT 'mar', 3.00 ORDER BY 1",
        ),
    ] {
        let plain = |sql: &str| told(&scratch.database, sql).replace([' ', '-'], "");
        assert_eq!(plain(unpivot), plain(query), "{unpivot}");
    }
}

#[test]
fn tables_and_files_are_made_of_them_and_views_of_named_values() {
    let scratch = cities();
    let database = &scratch.database;
    let sql = "CREATE TABLE wide AS PIVOT cities ON year USING sum(population) GROUP BY country";
    assert!(told(database, sql).contains("| 3     |"));
    assert!(told(database, "SELECT \"2010\" FROM wide WHERE country = 'NL'").contains("1065"));
    let file = scratch.dir.path().join("long.csv");
    let sql = format!("COPY (UNPIVOT sales ON jan, feb) TO '{}'", file.display());
    database.query(&sql).unwrap();
    assert_eq!(std::fs::read_to_string(&file).unwrap().lines().count(), 4);
    database.query("CREATE VIEW v AS PIVOT cities ON year IN (2000) USING sum(population) GROUP BY country").unwrap();
    database.query("INSERT INTO cities VALUES ('NL', 'Utrecht', 2000, 1)").unwrap();
    assert!(told(database, "SELECT * FROM v WHERE country = 'NL'").contains("1006"));
    assert!(told(database, "EXPLAIN PIVOT cities ON year").contains("AggregateExec"));
}

#[test]
fn what_cannot_be_is_told() {
    let scratch = cities();
    let database = &scratch.database;
    for (sql, message) in [
        ("CREATE VIEW v AS PIVOT cities ON year", "name the values of year, as in ON year IN"),
        ("PIVOT nowhere ON year", "table nowhere not found"),
        ("PIVOT cities ON nothing", "no field named nothing"),
        ("PIVOT cities ON year IN (population)", "IN takes literals, and not population"),
        ("PIVOT cities ON year USING sum(population) + 1", "USING takes aggregates"),
        ("PIVOT cities ON year USING", "write PIVOT t ON c"),
        ("PIVOT (SELECT 'a' AS c UNION ALL SELECT 'A') ON c", "two columns"),
        ("PIVOT (SELECT value AS c FROM generate_series(1, 1001)) ON c", "over 1000 values"),
        (
            "PIVOT (SELECT value AS c, value % 40 AS d, value / 25 AS e FROM generate_series(1, 1000)) ON d, e",
            "over 1000 columns",
        ),
        ("UNPIVOT sales ON jan, april", "no field named april; there is shop, jan, Feb, mar"),
        ("UNPIVOT sales ON COLUMNS(* EXCLUDE (shop, jan, feb, mar))", "UNPIVOT of no column"),
        ("SELECT * FROM cities PIVOT (sum(population) FOR year IN (2000))", "FROM (PIVOT t ON c"),
        ("PIVOT cities ON year + ? GROUP BY country", "a parameter"),
    ] {
        let error = database.query(sql).unwrap_err().to_string();
        assert!(error.contains(message), "{sql}: {error}");
    }
    // The queries for what is not said have the rights of who asks.
    let rights = Rights::of("rob", vec!["read:sales".parse::<Grant>().unwrap()]);
    for sql in
        ["PIVOT cities ON year", "UNPIVOT cities ON population", "PIVOT cities ON year IN (1)"]
    {
        let planned = database.block_on(database.plan(&rights, sql, Parameters::default()));
        let error = planned.unwrap_err().to_string();
        assert!(error.contains("no right read on table cities"), "{sql}: {error}");
    }
}
