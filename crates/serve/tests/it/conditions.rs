//! Conditions at random, asked in several ways that must agree (TLP and NoREC of SQLancer).
//!
//! Rows for which a condition is true, false and NULL are all rows; and those that a filter lets through, in the scan or
//! above it, are those for which the condition as a value is true.

use coload_serve::arrow::util::display::array_value_to_string;

use crate::support::Scratch;

const TABLE: &str = "CREATE TABLE t (id INTEGER, i INTEGER, b BIGINT, d DECIMAL(9,2), x DOUBLE, r REAL, v VARCHAR, day DATE, ts TIMESTAMP)";

/// Two INSERTs, so that there are two segments.
const ROWS: [&str; 2] = [
    "INSERT INTO t VALUES
        (1, 2147483647, 9223372036854775807, 9999999.99, 0.0, 0.0, 'a', DATE '9999-12-31', TIMESTAMP '9999-12-31 23:59:59.999999'),
        (2, -2147483648, -9223372036854775808, -9999999.99, -0.0, -0.0, '', DATE '0001-01-01', TIMESTAMP '0001-01-01 00:00:00'),
        (3, NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL)",
    "INSERT INTO t VALUES
        (4, 0, 1, 0.50, CAST('nan' AS DOUBLE), CAST('nan' AS REAL), 'a%', DATE '1970-01-01', TIMESTAMP '1969-12-31 23:59:59'),
        (5, 1, 0, -0.50, 0.5, 0.5, 'B', DATE '2024-02-29', TIMESTAMP '2262-04-11 23:47:17'),
        (6, NULL, 1, 1.00, 1.0, -1.5, 'a', NULL, TIMESTAMP '2024-02-29 00:00:00')",
];

/// Operands of one kind each, and literals of it.
const KINDS: [(&[&str], &[&str]); 5] = [
    (&["i", "b", "i % 7", "id", "d", "CAST(d AS INT)"], &["0", "1", "-2147483648", "0.5", "NULL"]),
    (
        &["x", "r", "x * 0.0e0", "-x", "r / 2e0"],
        &["0.0e0", "-0.0e0", "CAST('nan' AS DOUBLE)", "0.5"],
    ),
    (&["v", "v || 'a'", "upper(v)"], &["'a'", "''", "'A'", "NULL"]),
    (
        &["day", "ts", "day + interval '1 hour'", "date_trunc('month', ts)"],
        &["DATE '0001-01-01'", "TIMESTAMP '2024-02-29 00:00:00'", "DATE '2024-02-29'", "now()"],
    ),
    (
        &["ts - TIMESTAMP '2024-01-01 00:00:00'", "interval '30 hours'"],
        &["interval '1 day'", "interval '1 month'", "interval '30 days'"],
    ),
];

/// A generator of its own, so that a seed is one set of conditions for ever.
struct Random(u64);

impl Random {
    fn below(&mut self, count: usize) -> usize {
        self.0 =
            self.0.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        ((self.0 >> 33) % count as u64) as usize
    }

    fn of<'a>(&mut self, from: &[&'a str]) -> &'a str {
        from[self.below(from.len())]
    }

    fn condition(&mut self, depth: usize) -> String {
        if depth > 0 {
            return match self.below(5) {
                0 => format!("({} AND {})", self.condition(depth - 1), self.condition(depth - 1)),
                1 => format!("({} OR {})", self.condition(depth - 1), self.condition(depth - 1)),
                2 => format!("(NOT {})", self.condition(depth - 1)),
                3 => format!("(({}) IS NULL)", self.condition(depth - 1)),
                _ => self.condition(0),
            };
        }
        let (operands, literals) = KINDS[self.below(KINDS.len())];
        let left = self.of(operands);
        let right = if self.below(3) == 0 { self.of(operands) } else { self.of(literals) };
        let op = self.of(&["=", "<>", "<", "<=", ">", ">="]);
        match self.below(6) {
            0 => format!("({left} BETWEEN {} AND {right})", self.of(literals)),
            1 => format!("({left} IN ({}, {right}))", self.of(literals)),
            2 => format!("({left} IS DISTINCT FROM {right})"),
            _ => format!("({left} {op} {right})"),
        }
    }
}

fn ids(scratch: &Scratch, sql: &str) -> Vec<String> {
    let batches = scratch.database.query(sql).unwrap_or_else(|e| panic!("{sql}\n{e}"));
    let mut ids: Vec<String> = batches
        .iter()
        .flat_map(|b| (0..b.num_rows()).map(|row| array_value_to_string(b.column(0), row).unwrap()))
        .collect();
    ids.sort();
    ids
}

#[test]
fn a_condition_is_true_false_or_null_for_each_row() {
    const SEED: u64 = 14;
    const CONDITIONS: usize = 150;
    let scratch = Scratch::new();
    scratch.database.query(TABLE).unwrap();
    ROWS.iter().for_each(|rows| drop(scratch.database.query(rows).unwrap()));
    let mut random = Random(SEED);
    for _ in 0..CONDITIONS {
        let condition = random.condition(2);
        let parts: Vec<String> = [
            format!("SELECT id FROM t WHERE {condition}"),
            format!("SELECT id FROM t WHERE NOT ({condition})"),
            format!("SELECT id FROM t WHERE ({condition}) IS NULL"),
        ]
        .into();
        let mut all: Vec<String> = parts.iter().flat_map(|sql| ids(&scratch, sql)).collect();
        all.sort();
        assert_eq!(all, ["1", "2", "3", "4", "5", "6"], "{condition}");
        let as_value = format!(
            "SELECT id FROM (SELECT id, CASE WHEN {condition} THEN 1 ELSE 0 END AS c FROM t LIMIT 100) q WHERE c = 1"
        );
        assert_eq!(ids(&scratch, &parts[0]), ids(&scratch, &as_value), "{condition}");
    }
}
