//! What a scan may ask of a row.

use std::fmt;
use std::ops::Bound;
use std::sync::Arc;

use coload_types::{Error, Physical, Result, Value};

/// A test on one column. A scan takes a list of them, and a row must pass them all.
#[derive(Debug, Clone)]
pub struct Predicate {
    /// Index of the column in the table.
    pub column: usize,
    /// What its value must be.
    pub test: Test,
}

/// A function that accepts or refuses a byte string.
pub type Accept = Arc<dyn Fn(&[u8]) -> bool + Send + Sync>;

/// A test on a value. NULL passes [`Test::IsNull`] only.
#[derive(Clone)]
pub enum Test {
    /// Between two bounds, in the order of physical values.
    Range {
        /// Least value that passes, or the one above which values pass.
        low: Bound<Value>,
        /// Largest value that passes, or the one below which values pass.
        high: Bound<Value>,
    },
    /// One of these values; none of them for an empty list.
    In(Vec<Value>),
    /// Neither NULL nor one of these values.
    NotIn(Vec<Value>),
    /// A byte string that starts with these bytes.
    Prefix(Box<[u8]>),
    /// A byte string that a function accepts. It is called once for each value of a dictionary,
    /// once for each row of a page without.
    Accepts(Accept),
    /// Only NULL passes.
    IsNull,
    /// Any value passes, and NULL does not.
    IsNotNull,
}

impl fmt::Debug for Test {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Test::Range { low, high } => {
                f.debug_struct("Range").field("low", low).field("high", high).finish()
            }
            Test::In(values) => f.debug_tuple("In").field(values).finish(),
            Test::NotIn(values) => f.debug_tuple("NotIn").field(values).finish(),
            Test::Prefix(bytes) => f.debug_tuple("Prefix").field(bytes).finish(),
            Test::Accepts(_) => f.write_str("Accepts"),
            Test::IsNull => f.write_str("IsNull"),
            Test::IsNotNull => f.write_str("IsNotNull"),
        }
    }
}

impl Test {
    /// Passes values that are equal to `value`; NULL does not pass.
    pub fn equal(value: Value) -> Self {
        Test::In(vec![value])
    }

    /// Neither NULL nor equal to `value`.
    pub fn not_equal(value: Value) -> Self {
        Test::NotIn(vec![value])
    }

    /// Whether a value passes; `None` is NULL. The slow obvious way.
    pub fn matches(&self, value: Option<&Value>) -> bool {
        let Some(value) = value else {
            return matches!(self, Test::IsNull);
        };
        match self {
            Test::Range { low, high } => {
                (match low {
                    Bound::Included(l) => l <= value,
                    Bound::Excluded(l) => l < value,
                    Bound::Unbounded => true,
                }) && match high {
                    Bound::Included(h) => value <= h,
                    Bound::Excluded(h) => value < h,
                    Bound::Unbounded => true,
                }
            }
            Test::In(values) => values.contains(value),
            Test::NotIn(values) => !values.contains(value),
            Test::Prefix(prefix) => matches!(value, Value::Bytes(b) if b.starts_with(prefix)),
            Test::Accepts(accepts) => matches!(value, Value::Bytes(b) if accepts(b)),
            Test::IsNull => false,
            Test::IsNotNull => true,
        }
    }

    /// Checks that the values have the column's shape.
    ///
    /// # Errors
    /// `Invalid` when one has not.
    pub fn check(&self, physical: Physical) -> Result<()> {
        let of_bound = |bound: &Bound<Value>| match bound {
            Bound::Included(v) | Bound::Excluded(v) => v.physical() == physical,
            Bound::Unbounded => true,
        };
        let good = match self {
            Test::Range { low, high } => of_bound(low) && of_bound(high),
            Test::In(values) | Test::NotIn(values) => {
                values.iter().all(|v| v.physical() == physical)
            }
            Test::Prefix(_) | Test::Accepts(_) => physical == Physical::Bytes,
            Test::IsNull | Test::IsNotNull => true,
        };
        if good {
            Ok(())
        } else {
            Err(Error::Invalid(format!("test {self:?} does not fit a column of {physical:?}")))
        }
    }
}

/// Whether rows of a segment (or page) can pass, by the column's statistics there: `rows`, `nulls`,
/// and the smallest and largest value, where they are known.
pub fn may_match(
    test: &Test,
    rows: u64,
    nulls: u64,
    min: Option<&Value>,
    max: Option<&Value>,
) -> bool {
    if matches!(test, Test::IsNull) {
        return nulls > 0;
    }
    if nulls >= rows {
        return false;
    }
    match test {
        Test::Range { low, high } => {
            let above = |max: &Value| match low {
                Bound::Included(l) => l <= max,
                Bound::Excluded(l) => l < max,
                Bound::Unbounded => true,
            };
            let below = |min: &Value| match high {
                Bound::Included(h) => min <= h,
                Bound::Excluded(h) => min < h,
                Bound::Unbounded => true,
            };
            max.is_none_or(above) && min.is_none_or(below)
        }
        Test::In(values) => {
            values.iter().any(|v| min.is_none_or(|m| m <= v) && max.is_none_or(|m| v <= m))
        }
        Test::NotIn(values) => min != max || min.is_none_or(|m| !values.contains(m)),
        Test::Prefix(prefix) => {
            let after = |b: &Value| matches!(b, Value::Bytes(b) if b[..b.len().min(prefix.len())] < prefix[..b.len().min(prefix.len())]);
            let before = |b: &Value| matches!(b, Value::Bytes(b) if b[..b.len().min(prefix.len())] > prefix[..b.len().min(prefix.len())]);
            !max.is_some_and(after) && !min.is_some_and(before)
        }
        Test::Accepts(_) | Test::IsNull | Test::IsNotNull => true,
    }
}
