//! Which parts of a filter are tests that inputs can answer by what they say of their values.
#![allow(clippy::unwrap_used)]

use coload_ddl::parse_columns;

use super::*;
use crate::filter::describe;

fn tests(filter: &str) -> Vec<String> {
    let read =
        parse_columns("a INTEGER, d DATE, p DECIMAL(12,2), t VARCHAR, \"Up\" BIGINT").unwrap();
    let sql = RowSql { filter: Some(filter.to_owned()), select: Some("t, a".to_owned()) };
    let planned = plan_row_program(&sql, &read, None, 1_700_000_000_000_000).unwrap();
    planned.tests().iter().map(|test| describe(test, &read)).collect()
}

#[test]
fn parts_of_a_filter_that_are_joined_by_and_are_tests() {
    assert_eq!(tests("a > 5").len(), 1);
    assert_eq!(tests("5 < a AND d BETWEEN DATE '2024-01-01' AND DATE '2024-01-31'").len(), 3);
    assert_eq!(tests("p >= 0.05 AND t = 'x' AND up = 7").len(), 3);
    assert_eq!(tests("t LIKE 'ab%' AND a IN (1, 2, 3)").len(), 2);
    // Others say nothing, and those beside them do.
    assert_eq!(tests("a > 5 AND upper(t) = 'X'"), tests("a > 5"));
    assert_eq!(tests("a > 5 AND (t = 'x' OR d IS NULL)"), tests("a > 5"));
    for nothing in ["a > 5 OR t = 'x'", "a + 1 > 5", "abs(a) > 5", "true"] {
        assert_eq!(tests(nothing), Vec::<String>::new(), "{nothing}");
    }
}

/// A load that goes on has the time of the one before, which is known when its inputs were looked at.
#[test]
fn a_filter_that_asks_the_time_is_no_test() {
    for filter in ["d < current_date()", "a > 5 AND d < now()"] {
        assert_eq!(tests(filter), Vec::<String>::new(), "{filter}");
    }
}
