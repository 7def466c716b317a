//! The rows of a segment that predicates on the key of its table can leave, by its B+ tree.
//!
//! ```text
//!   key (a, b)    a = 7 AND b < 3    rows from the first of (7) to the first of (7, 3)
//!                 a > 7              rows after the last of (7)
//!                 b < 3              all: the first column is not bound
//! ```
//!
//! The predicates stay: what is within the rows is tested all the same.

use std::cmp::Ordering;
use std::ops::{Bound, Range};

use coload_page::{KeyForm, KeyPart};
use coload_store::{KeySide, SegmentFile};
use coload_types::{Result, Value};

use crate::filter::after_prefix;
use crate::predicate::{Predicate, Test};

/// What predicates say of a column of a key.
pub(crate) enum Said {
    Equal(Value),
    Between(Bound<Value>, Bound<Value>),
}

/// How many columns of a key, from the first on, predicates bind.
pub fn bound_columns(key: &[usize], predicates: &[Predicate]) -> usize {
    let mut count = 0;
    for column in key {
        match said(*column, predicates) {
            Some(Said::Equal(_)) => count += 1,
            Some(Said::Between(..)) => return count + 1,
            None => return count,
        }
    }
    count
}

/// Columns of which all rows that pass predicates have one value.
pub fn equal_columns(predicates: &[Predicate]) -> Vec<usize> {
    let mut columns: Vec<usize> = predicates.iter().map(|predicate| predicate.column).collect();
    columns.sort_unstable();
    columns.dedup();
    columns.retain(|column| matches!(said(*column, predicates), Some(Said::Equal(_))));
    columns
}

/// The rows that may pass predicates; `None` for all, as these do not bind the key or the segment has no tree of it.
///
/// # Errors
/// `Corrupt` when the tree is not what was written.
pub fn key_rows(segment: &SegmentFile, predicates: &[Predicate]) -> Result<Option<Range<u64>>> {
    let Some(parts) = segment.tree_parts() else { return Ok(None) };
    let mut values = Vec::new();
    let mut bounds = (Bound::Unbounded, Bound::Unbounded);
    for part in parts.iter().take_while(|part| !may_be_float(part)) {
        match said(part.column as usize, predicates) {
            Some(Said::Equal(value)) => values.push(value),
            Some(Said::Between(low, high)) => {
                bounds = (low, high);
                break;
            }
            None => break,
        }
    }
    if values.is_empty() && matches!(bounds, (Bound::Unbounded, Bound::Unbounded)) {
        return Ok(None);
    }
    let (low, high) = bounds;
    let at = |bound: Bound<Value>, (included, excluded, open): (KeySide, KeySide, KeySide)| {
        let (value, side) = match bound {
            Bound::Included(value) => (Some(value), included),
            Bound::Excluded(value) => (Some(value), excluded),
            Bound::Unbounded => (None, open),
        };
        let key: Vec<Value> = values.iter().cloned().chain(value).collect();
        match (key.is_empty(), open) {
            (true, KeySide::Before) => Ok(Some(0)),
            (true, KeySide::After) => Ok(Some(segment.rows())),
            (false, _) => segment.rows_before(&key, side),
        }
    };
    let start = at(low, (KeySide::Before, KeySide::After, KeySide::Before))?;
    let end = at(high, (KeySide::After, KeySide::Before, KeySide::After))?;
    Ok(start.zip(end).map(|(start, end)| start..end.max(start)))
}

/// Whether a column may hold floats, of which several are equal.
fn may_be_float(part: &KeyPart) -> bool {
    matches!(part.form, KeyForm::Number { least, .. } if least == i128::from(i64::MIN))
}

/// What the predicates on a column say of its values, together.
pub(crate) fn said(column: usize, predicates: &[Predicate]) -> Option<Said> {
    let mut bounds: Option<(Bound<Value>, Bound<Value>)> = None;
    for predicate in predicates.iter().filter(|predicate| predicate.column == column) {
        let (low, high) = match &predicate.test {
            Test::Range { low, high } => (low.clone(), high.clone()),
            Test::In(values) => match &values[..] {
                [value] => return Some(Said::Equal(value.clone())),
                values => {
                    let (Some(min), Some(max)) = (values.iter().min(), values.iter().max()) else {
                        continue;
                    };
                    (Bound::Included(min.clone()), Bound::Included(max.clone()))
                }
            },
            Test::Prefix(prefix) => {
                let high = after_prefix(prefix);
                let high = high.map_or(Bound::Unbounded, |end| Bound::Excluded(Value::Bytes(end)));
                (Bound::Included(Value::Bytes(prefix.clone())), high)
            }
            Test::NotIn(_) | Test::Accepts(_) | Test::IsNull | Test::IsNotNull => continue,
        };
        let (known_low, known_high) = bounds.take().unwrap_or((Bound::Unbounded, Bound::Unbounded));
        bounds = Some((
            tighter(known_low, low, Ordering::Less),
            tighter(known_high, high, Ordering::Greater),
        ));
    }
    let (low, high) = bounds?;
    match (&low, &high) {
        (Bound::Unbounded, Bound::Unbounded) => None,
        (Bound::Included(a), Bound::Included(b)) if a == b => Some(Said::Equal(a.clone())),
        _ => Some(Said::Between(low, high)),
    }
}

/// The first bound, but the second if the first is on a side of it: of low ones below, of high ones above.
fn tighter(a: Bound<Value>, b: Bound<Value>, loose: Ordering) -> Bound<Value> {
    let value = |bound: &Bound<Value>| match bound {
        Bound::Included(value) | Bound::Excluded(value) => Some(value.clone()),
        Bound::Unbounded => None,
    };
    match (value(&a), value(&b)) {
        (_, None) => a,
        (None, _) => b,
        (Some(first), Some(second)) if first.cmp(&second) == loose => b,
        (Some(_), Some(_)) => a,
    }
}
