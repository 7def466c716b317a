//! The sorted distinct values of one column in one scope; a code is a position in it.

use std::cmp::Ordering;

use crate::{Error, Physical, Result, Strings, Value, Values};

/// Position in a dictionary; the order of codes is the order of values.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Default)]
pub struct Code(pub u32);

/// Most values in a dictionary; NULL is the code that follows the last.
pub const CODES_MAX: usize = u32::MAX as usize - 1;

/// Sorted distinct values. NULL is not in it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Dictionary {
    values: Values,
}

impl Dictionary {
    /// Takes values that are strictly increasing.
    ///
    /// # Errors
    /// `Corrupt` when they are not, `Limit` over [`CODES_MAX`].
    pub fn new(values: Values) -> Result<Self> {
        if values.len() > CODES_MAX {
            return Err(Error::Limit(format!(
                "a dictionary of {} values is over the limit of {CODES_MAX}",
                values.len()
            )));
        }
        let sorted = match &values {
            Values::Int(v) => v.windows(2).all(|w| w[0] < w[1]),
            Values::Wide(v) => v.windows(2).all(|w| w[0] < w[1]),
            Values::Bytes(v) => (1..v.len()).all(|i| v.get(i - 1) < v.get(i)),
        };
        if sorted {
            Ok(Dictionary { values })
        } else {
            Err(Error::Corrupt("dictionary is not sorted".into()))
        }
    }

    /// A dictionary without values.
    pub fn empty(physical: Physical) -> Self {
        Dictionary { values: Values::empty(physical) }
    }

    /// Bytes of the values in memory.
    pub fn bytes(&self) -> usize {
        match &self.values {
            Values::Int(values) => values.len() * 8,
            Values::Wide(values) => values.len() * 16,
            Values::Bytes(strings) => strings.bytes.len() + strings.ends.len() * 4,
        }
    }

    /// Number of values; codes are below it, and the code of NULL is equal to it.
    pub fn len(&self) -> usize {
        self.values.len()
    }

    /// Whether it has no values.
    pub fn is_empty(&self) -> bool {
        self.values.is_empty()
    }

    /// The values in order.
    pub fn values(&self) -> &Values {
        &self.values
    }

    /// The value of a code; `None` past the last, which is NULL.
    pub fn get(&self, code: Code) -> Option<Value> {
        ((code.0 as usize) < self.len()).then(|| self.values.get(code.0 as usize))
    }

    /// The code that stands for NULL.
    pub fn null_code(&self) -> Code {
        Code(self.len() as u32)
    }

    /// The first code whose value is not below `value`; the null code if all are below.
    ///
    /// # Panics
    /// When `value` has another shape: a bug of the caller.
    pub fn lower_bound(&self, value: &Value) -> Code {
        self.partition_point(value, Ordering::is_lt)
    }

    /// The first code whose value is above `value`; the null code if none is.
    ///
    /// # Panics
    /// As [`Self::lower_bound`].
    pub fn upper_bound(&self, value: &Value) -> Code {
        self.partition_point(value, Ordering::is_le)
    }

    /// The code of `value`, if it is in the dictionary.
    pub fn find(&self, value: &Value) -> Option<Code> {
        let code = self.lower_bound(value);
        (self.get(code).as_ref() == Some(value)).then_some(code)
    }

    fn partition_point(&self, value: &Value, below: fn(Ordering) -> bool) -> Code {
        let at = match (&self.values, value) {
            (Values::Int(v), Value::Int(x)) => v.partition_point(|y| below(y.cmp(x))),
            (Values::Wide(v), Value::Wide(x)) => v.partition_point(|y| below(y.cmp(x))),
            (Values::Bytes(v), Value::Bytes(x)) => partition_strings(v, |y| below(y.cmp(x))),
            _ => panic!("value of another shape"),
        };
        Code(at as u32)
    }
}

fn partition_strings(strings: &Strings, below: impl Fn(&[u8]) -> bool) -> usize {
    let (mut low, mut high) = (0, strings.len());
    while low < high {
        let middle = (low + high) / 2;
        if below(strings.get(middle)) {
            low = middle + 1;
        } else {
            high = middle;
        }
    }
    low
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]
    use super::*;

    #[test]
    fn bounds_enclose_equal_values() {
        let d = Dictionary::new(Values::Int(vec![10, 20, 30])).unwrap();
        assert_eq!(d.lower_bound(&Value::Int(20)), Code(1));
        assert_eq!(d.upper_bound(&Value::Int(20)), Code(2));
        assert_eq!(d.lower_bound(&Value::Int(31)), d.null_code());
        assert_eq!(d.find(&Value::Int(21)), None);
        assert_eq!(d.find(&Value::Int(30)), Some(Code(2)));
    }

    #[test]
    fn unsorted_values_are_refused() {
        assert!(Dictionary::new(Values::Int(vec![1, 1])).is_err());
        let mut s = Strings::default();
        s.push(b"b");
        s.push(b"a");
        assert!(Dictionary::new(Values::Bytes(s)).is_err());
    }
}
