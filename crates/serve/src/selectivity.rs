//! Guesses of how many rows pass a test, from the bounds in the manifest: they order joins.

use std::ops::Bound;

use coload_scan::{Predicate, Test};
use coload_store::TableEntry;
use coload_types::Value;

/// Share of rows that are taken to equal one value.
const EQUAL: f64 = 0.02;
/// Share that is taken to fit a pattern.
const PATTERN: f64 = 0.1;
/// Share that is taken to lie in a range whose ends say nothing.
const RANGE: f64 = 0.3;

/// The share of a table's rows that are expected to pass.
pub(crate) fn selectivity(predicate: &Predicate, table: &TableEntry) -> f64 {
    let rows = table.rows().max(1) as f64;
    let stats = || table.segments.iter().filter_map(|s| s.columns.get(predicate.column));
    // Of deleted rows too.
    let nulls = (stats().map(|s| s.nulls).sum::<u64>() as f64 / rows).min(1.0);
    let bounds = || {
        let min = stats().filter_map(|s| s.min.as_ref()).min().and_then(number)?;
        let max = stats().filter_map(|s| s.max.as_ref()).max().and_then(number)?;
        Some((min, max))
    };
    match &predicate.test {
        Test::IsNull => nulls,
        Test::IsNotNull => 1.0 - nulls,
        Test::In(values) => {
            let one = match bounds() {
                // A whole number of a narrow range.
                Some((min, max)) => (1.0 / (max - min + 1.0)).max(1.0 / rows),
                None => EQUAL,
            };
            (one * values.len() as f64).min(1.0)
        }
        Test::NotIn(_) => 1.0 - EQUAL,
        Test::Prefix(_) | Test::Accepts(_) => PATTERN,
        Test::Range { low, high } => match bounds() {
            Some((min, max)) => {
                let low = end(low).unwrap_or(min).max(min);
                let high = end(high).unwrap_or(max).min(max);
                ((high - low + 1.0) / (max - min + 1.0)).clamp(1.0 / rows, 1.0)
            }
            None => RANGE,
        },
    }
}

fn number(value: &Value) -> Option<f64> {
    match value {
        Value::Int(v) => Some(*v as f64),
        Value::Wide(v) => Some(*v as f64),
        Value::Bytes(_) => None,
    }
}

fn end(bound: &Bound<Value>) -> Option<f64> {
    match bound {
        Bound::Included(v) | Bound::Excluded(v) => number(v),
        Bound::Unbounded => None,
    }
}
