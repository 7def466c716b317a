#![allow(clippy::unwrap_used)]
use coload_types::{Plain, Values, parse_value};

use super::*;
use crate::{Schema, parse_columns, parse_create_table};

const COLUMNS: &str = "i INTEGER, j BIGINT, d DECIMAL(9,2), w DECIMAL(30,4), r REAL, x DOUBLE, \
     day DATE, t TIMESTAMP, s VARCHAR, u CHAR(3), ok BOOLEAN, \"Odd name\" INTEGER";

/// The rows that break a condition, each value read as a field; `-` is NULL.
fn broken(condition: &str, columns: &[(&str, &[&str])]) -> Vec<u32> {
    let schema = parse_columns(COLUMNS).unwrap();
    let check = Check::parse(None, condition, schema.columns()).unwrap();
    // What is shown means the same.
    let again = Check::parse(None, check.text(), schema.columns()).unwrap();
    assert_eq!(again, check, "{}", check.text());
    let rows = columns[0].1.len();
    let plain = |fields: &[&str], data_type: DataType| {
        let mut plain = Plain::empty(data_type.physical());
        for field in fields {
            let value = (*field != "-").then(|| parse_value(field.as_bytes(), data_type).unwrap());
            plain.push(value.as_ref());
        }
        plain
    };
    let mut plains = vec![None; schema.len()];
    for (name, fields) in columns {
        let at = schema.position(name).unwrap();
        plains[at] = Some(plain(fields, schema.columns()[at].data_type));
    }
    let given: Vec<_> = plains.iter().map(|p| p.as_ref().map(CheckedColumn::Plain)).collect();
    let found = check.broken(&given, rows);
    assert_eq!(check.broken(&coded(&plains), rows), found, "{condition} on codes");
    found
}

/// The same values as codes.
fn coded(plains: &[Option<Plain>]) -> Vec<Option<CheckedColumn<'static>>> {
    let code = |plain: &Plain| {
        let mut values = Values::empty(plain.values.physical());
        let mut codes = Vec::new();
        for row in 0..plain.len() {
            match plain.get(row) {
                None => codes.push(u16::MAX),
                Some(value) => {
                    codes.push(values.len() as u16);
                    values.push(&value);
                }
            }
        }
        CheckedColumn::Coded { codes: Vec::leak(codes), values: Box::leak(Box::new(values)) }
    };
    plains.iter().map(|plain| plain.as_ref().map(code)).collect()
}

#[test]
fn a_rule_is_broken_where_it_is_false_and_null_breaks_none() {
    let i: (&str, &[&str]) = ("i", &["-1", "0", "5", "-"]);
    for (condition, expected) in [
        ("i > 0", &[0, 1][..]),
        ("0 < i", &[0, 1]),
        ("i >= 0", &[0]),
        ("i <> 5", &[2]),
        ("i != 5", &[2]),
        ("NOT i = 5", &[2]),
        ("i BETWEEN 0 AND 4", &[0, 2]),
        ("i NOT BETWEEN 0 AND 4", &[1]),
        ("i IN (0, 5)", &[0]),
        ("i NOT IN (0, 5)", &[1, 2]),
        ("i IS NOT NULL", &[3]),
        ("i IS NULL", &[0, 1, 2]),
        ("i > 0 OR i IS NULL AND i < 3", &[0, 1]),
        ("NOT (i > 0 AND i < 9)", &[2]),
        ("(i = -1) OR ((i = 0) OR (i = 5))", &[]),
        ("i < -2147483648", &[0, 1, 2]),
    ] {
        assert_eq!(broken(condition, &[i]), expected, "{condition}");
    }
}

#[test]
fn values_of_each_type_are_compared() {
    let cases: [(&str, &str, &[&str], &[u32]); 14] = [
        ("d < 1.50", "d", &["1.49", "1.5", "2"], &[1, 2]),
        (
            "w >= 12345678901234567890.5",
            "w",
            &["12345678901234567890.4999", "99999999999999999999999999"],
            &[0],
        ),
        ("r >= 0", "r", &["-0.0", "0", "-1e-30", "NaN"], &[2]),
        ("x = 0", "x", &["-0.0", "0.0", "1"], &[2]),
        ("day >= DATE '2024-02-29'", "day", &["2024-02-28", "2024-02-29"], &[0]),
        ("day < '2024-02-29'", "day", &["2024-02-28", "2024-02-29"], &[1]),
        (
            "t > TIMESTAMP '2024-01-01 00:00:00'",
            "t",
            &["2024-01-01T00:00:00.000001", "2023-01-01T00:00:00"],
            &[1],
        ),
        ("s LIKE 'a_%'", "s", &["ab", "a", "äb", "aé"], &[1, 2]),
        ("s NOT LIKE '%''%'", "s", &["it's", "it"], &[0]),
        ("length(s) <= 2", "s", &["ab", "äöü", ""], &[1]),
        ("u IN ('EUR', 'USD')", "u", &["EUR", "eur"], &[1]),
        ("s > 'b'", "s", &["a", "b", "ba"], &[0, 1]),
        ("ok", "ok", &["true", "false", "-"], &[1]),
        ("NOT ok OR ok IS NULL", "ok", &["true", "false", "-"], &[0]),
    ];
    for (condition, column, fields, expected) in cases {
        assert_eq!(broken(condition, &[(column, fields)]), expected, "{condition}");
    }
}

#[test]
fn columns_are_compared_with_each_other() {
    let i: (&str, &[&str]) = ("i", &["1", "2", "-", "3"]);
    let d: (&str, &[&str]) = ("d", &["1.00", "1.99", "1.00", "3.01"]);
    assert_eq!(broken("i <= d", &[i, d]), [1]);
    assert_eq!(broken("i BETWEEN d AND j", &[i, d, ("j", &["9", "9", "9", "9"])]), [3]);
    assert_eq!(broken("w <> d", &[("w", &["1", "1.9900", "0", "3.0101"]), d]), [0, 1]);
    assert_eq!(broken("length(s) = i", &[("s", &["a", "a", "a", "äöü"]), i]), [1]);
    assert_eq!(broken("r < x", &[("r", &["0.5", "1"]), ("x", &["0.5", "2"])]), [0]);
    assert_eq!(broken("s = u", &[("s", &["a", "b"]), ("u", &["a", "c"])]), [1]);
    assert_eq!(broken("\"odd NAME\" > i", &[("Odd name", &["1", "2"]), ("i", &["1", "1"])]), [0]);
}

#[test]
fn what_would_not_be_checked_is_refused() {
    let schema = parse_columns(COLUMNS).unwrap();
    let deep = format!("{}i > 0{}", "(".repeat(40), ")".repeat(40));
    for (condition, expected) in [
        ("", "expected a comparison"),
        ("i", "expected a comparison"),
        ("i >", "found the end"),
        ("i > 0 i", "AND, OR or the end"),
        ("i + 1 > 0", "expected a comparison"),
        ("i > 0.5", "0.5 is not INTEGER"),
        ("y > 0", "no column y"),
        ("upper(s) = 'A'", "no column upper"),
        ("1 = 1", "not with a literal"),
        ("i = NULL", "use IS NULL"),
        ("i = s", "INTEGER and VARCHAR are not compared"),
        ("i = x", "are not compared"),
        ("day = t", "are not compared"),
        ("i LIKE '1%'", "column of text"),
        ("s LIKE u", "a text after LIKE"),
        ("i IN ()", "expected a comparison"),
        ("i IN (j)", "literals"),
        ("length(i) > 0", "column of text"),
        ("day > '2024-02-30'", "no such date"),
        ("i NOT > 0", "BETWEEN, IN or LIKE"),
        (&deep, "within each other"),
    ] {
        let error = Check::parse(None, condition, schema.columns()).unwrap_err().to_string();
        assert!(error.contains(expected), "{condition:?}: {error}");
    }
}

#[test]
fn rules_of_a_table_are_read_and_written() {
    let sql = "CREATE TABLE t (a INT CHECK (a < b) NOT NULL, CONSTRAINT \"Sum up\" CHECK (a > 0 or b>0), \
               b INT DEFAULT 5 CONSTRAINT few CHECK (b IN (1,2)), check INT, CHECK (\"check\" = 1))";
    let (name, schema) = parse_create_table(sql).unwrap();
    let rules: Vec<String> = schema.checks().iter().map(Check::sql).collect();
    assert_eq!(
        rules,
        [
            "CHECK (a < b)",
            "CONSTRAINT \"Sum up\" CHECK (a > 0 OR b > 0)",
            "CONSTRAINT few CHECK (b IN (1, 2))",
            "CHECK (\"check\" = 1)"
        ]
    );
    let again = parse_create_table(&crate::create_table_sql(&name, &schema)).unwrap().1;
    assert_eq!(again, schema);
    for (sql, expected) in [
        ("a INT, CHECK (a > 0", ") after the condition"),
        ("a INT, CHECK a > 0", "the type of column CHECK"),
        ("a INT, CHECK (a > 0) b INT", "comma"),
        ("a INT CONSTRAINT x CHECK (a > 0), CONSTRAINT X CHECK (a > 1)", "named twice"),
        ("a INT, CHECK (a > 0)), CHECK (a > 1)", "comma"),
        ("CHECK (a > 0)", "no column a"),
    ] {
        let error = parse_columns(sql).unwrap_err().to_string();
        assert!(error.contains(expected), "{sql:?}: {error}");
    }
    assert_eq!(Schema::new(schema.columns().to_vec()).unwrap().checks(), []);
}
