//! The rows of a segment that predicates can leave, by the trees of indexes.
//!
//! ```text
//!   index (a, b)    a = 7 AND b < 3        entries of the keys from (7) to before (7, 3)
//!                   a IN (1, 5) AND b = 2  entries of (1, 2) and of (5, 2)
//!                   b < 3                  all: the first column is not bound
//! ```
//!
//! Of several indexes that one is taken whose keys have fewest rows. Where these are many, the codes of all rows are tested faster, and
//! none is taken. The predicates stay: the rows are tested all the same.

use std::ops::{Bound, Range};
use std::sync::Arc;

use coload_store::{IndexKey, SegmentFile, SegmentIndex, Within};
use coload_types::{Result, Value};

use crate::key_range::{Said, said};
use crate::predicate::{Predicate, Test};

/// Of so many rows of a segment an index may find one: of more, a test of each row's codes is faster than bringing the rows in order.
const ROWS_SHARE: u64 = 16;
/// Keys that are looked up at most.
const KEYS_MAX: usize = 1_024;

/// What predicates say of the columns of an index.
struct Asked {
    /// The values of its first columns.
    keys: Vec<Vec<Value>>,
    /// The bounds of the next.
    between: Option<(Bound<Value>, Bound<Value>)>,
    /// How many columns are bound.
    columns: usize,
}

/// How many columns of an index, from the first on, predicates bind.
pub fn bound_by_index(columns: &[usize], predicates: &[Predicate]) -> usize {
    asked(columns, predicates).columns
}

/// The rows that may pass predicates, ascending; `None` for all, as no index tells fewer.
///
/// # Errors
/// `Corrupt` when the tree of an index is not what was written.
pub fn index_rows(segment: &SegmentFile, predicates: &[Predicate]) -> Result<Option<Arc<[u32]>>> {
    let mut best: Option<(u64, usize, Vec<Range<u64>>)> = None;
    for (number, columns) in segment.indexed_columns().enumerate() {
        let asked = asked(columns, predicates);
        if asked.columns == 0 {
            continue;
        }
        let entries = entries(segment.index(number)?, &asked)?;
        let count = entries.iter().map(|entries| entries.end - entries.start).sum();
        if best.as_ref().is_none_or(|(least, ..)| count < *least) {
            best = Some((count, number, entries));
        }
    }
    let is_few = |count: u64| count.saturating_mul(ROWS_SHARE) <= segment.rows();
    let Some((count, number, entries)) = best.filter(|(count, ..)| is_few(*count)) else {
        return Ok(None);
    };
    let index = segment.index(number)?;
    let mut rows = Vec::with_capacity(count as usize);
    for entries in entries {
        rows.append(&mut index.rows(entries)?);
    }
    rows.sort_unstable();
    rows.dedup();
    Ok(Some(rows.into()))
}

/// The entries of the keys that are asked for.
fn entries(index: &SegmentIndex, asked: &Asked) -> Result<Vec<Range<u64>>> {
    let of_key = |values: &Vec<Value>| -> Result<Range<u64>> {
        let with = IndexKey::of(values);
        let Some((low, high)) = &asked.between else { return index.entries_of(&with) };
        let bound = |bound: &Bound<Value>| {
            let key = |value: &Value| {
                let all: Vec<Value> = values.iter().chain([value]).cloned().collect();
                IndexKey::of(&all)
            };
            match bound {
                Bound::Included(value) => Some((key(value), Within::Included)),
                Bound::Excluded(value) => Some((key(value), Within::Excluded)),
                Bound::Unbounded => None,
            }
        };
        let (low, high) = (bound(low), bound(high));
        let low = low.as_ref().map(|(key, within)| (key, *within));
        let high = high.as_ref().map(|(key, within)| (key, *within));
        index.entries_between(&with, low, high)
    };
    asked.keys.iter().map(of_key).collect()
}

/// What predicates say of the first columns of an index.
fn asked(columns: &[usize], predicates: &[Predicate]) -> Asked {
    let mut asked = Asked { keys: vec![Vec::new()], between: None, columns: 0 };
    for column in columns {
        let values = match said(*column, predicates) {
            Some(Said::Equal(value)) => vec![value],
            Some(Said::Between(low, high)) => match listed(*column, predicates) {
                Some(values) if values.len() * asked.keys.len() <= KEYS_MAX => values,
                _ => {
                    asked.between = Some((low, high));
                    asked.columns += 1;
                    return asked;
                }
            },
            None => return asked,
        };
        asked.columns += 1;
        let with = |key: &Vec<Value>| {
            let key = key.clone();
            values.iter().map(move |value| key.iter().chain([value]).cloned().collect())
        };
        asked.keys = asked.keys.iter().flat_map(with).collect();
    }
    asked
}

/// The values of a column that IN lists.
fn listed(column: usize, predicates: &[Predicate]) -> Option<Vec<Value>> {
    let of_column = predicates.iter().filter(|predicate| predicate.column == column);
    let lists = of_column.filter_map(|predicate| match &predicate.test {
        Test::In(values) => Some(values),
        _ => None,
    });
    let mut values = lists.min_by_key(|values| values.len())?.clone();
    values.sort_unstable();
    values.dedup();
    Some(values)
}
