//! The sort step: temporary dictionaries become sorted ones.
//!
//! Source: seed 000, section 4.1.

use coload_types::{Dictionary, Plain, Result, Strings, Value, Values};

use crate::TemporaryDictionary;

/// A sorted dictionary, and where every provisional code went.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct SortedDictionary {
    /// The values in order.
    pub dictionary: Dictionary,
    /// Provisional code to position in `dictionary`; 0 where the value was dropped as unused.
    pub positions: Vec<u32>,
}

/// Sorts the values of a temporary dictionary; `used`, if given, drops the values no row has.
///
/// Cost: n log n comparisons for n distinct values.
pub fn sort_dictionary(
    temporary: &TemporaryDictionary,
    used: Option<&[bool]>,
) -> Result<SortedDictionary> {
    let count = temporary.values.len();
    let mut order: Vec<u32> =
        (0..count as u32).filter(|i| used.is_none_or(|u| u[*i as usize])).collect();
    match &temporary.values {
        Values::Int(v) => order.sort_unstable_by_key(|i| v[*i as usize]),
        Values::Wide(v) => order.sort_unstable_by_key(|i| v[*i as usize]),
        Values::Bytes(v) => {
            order.sort_unstable_by(|a, b| v.get(*a as usize).cmp(v.get(*b as usize)))
        }
    }
    let mut positions = vec![0; count];
    let mut values = Values::empty(temporary.values.physical());
    for (position, index) in order.iter().enumerate() {
        positions[*index as usize] = position as u32;
        push_from(&mut values, &temporary.values, *index as usize);
    }
    Ok(SortedDictionary { dictionary: Dictionary::new(values)?, positions })
}

/// Appends value `index` of `from`, which has the same shape.
pub(crate) fn push_from(to: &mut Values, from: &Values, index: usize) {
    match (to, from) {
        (Values::Int(to), Values::Int(from)) => to.push(from[index]),
        (Values::Wide(to), Values::Wide(from)) => to.push(from[index]),
        (Values::Bytes(to), Values::Bytes(from)) => to.push(from.get(index)),
        _ => panic!("values of another shape"),
    }
}

/// A plain column after the sort step: its own dictionary and a code for each row.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct SortedColumn {
    /// The sorted distinct values.
    pub dictionary: Dictionary,
    /// A position for each row; NULL is the dictionary's length.
    pub codes: Vec<u32>,
}

/// Sorts a copy of a plain column without duplicates and gives each row its position.
///
/// Cost: n log n comparisons for n rows; 4 bytes a row besides the column.
pub fn sort_column(column: &Plain) -> Result<SortedColumn> {
    let rows = column.len();
    let mut order: Vec<u32> = (0..rows as u32).filter(|i| !column.is_null(*i as usize)).collect();
    let mut values = Values::empty(column.values.physical());
    let mut codes = vec![u32::MAX; rows];
    match &column.values {
        Values::Int(v) => order.sort_unstable_by_key(|i| v[*i as usize]),
        Values::Wide(v) => order.sort_unstable_by_key(|i| v[*i as usize]),
        Values::Bytes(v) => sort_strings(v, &mut order),
    }
    let mut previous: Option<u32> = None;
    for index in order {
        if previous.is_none_or(|p| !same(&column.values, p as usize, index as usize)) {
            push_from(&mut values, &column.values, index as usize);
        }
        codes[index as usize] = values.len() as u32 - 1;
        previous = Some(index);
    }
    let dictionary = Dictionary::new(values)?;
    for code in &mut codes {
        *code = (*code).min(dictionary.len() as u32);
    }
    Ok(SortedColumn { dictionary, codes })
}

/// Sorts by the first 8 bytes where these decide, which they mostly do.
fn sort_strings(strings: &Strings, order: &mut [u32]) {
    let head = |i: u32| {
        let s = strings.get(i as usize);
        let mut raw = [0; 8];
        let n = s.len().min(8);
        raw[..n].copy_from_slice(&s[..n]);
        u64::from_be_bytes(raw)
    };
    let mut keyed: Vec<(u64, u32)> = order.iter().map(|i| (head(*i), *i)).collect();
    keyed.sort_unstable_by(|(a, i), (b, j)| {
        a.cmp(b).then_with(|| strings.get(*i as usize).cmp(strings.get(*j as usize)))
    });
    for (o, (_, i)) in order.iter_mut().zip(keyed) {
        *o = i;
    }
}

fn same(values: &Values, a: usize, b: usize) -> bool {
    match values {
        Values::Int(v) => v[a] == v[b],
        Values::Wide(v) => v[a] == v[b],
        Values::Bytes(v) => v.get(a) == v.get(b),
    }
}

/// The value at a code of a sorted column, for tests and messages.
impl SortedColumn {
    /// Row `row`; `None` is NULL.
    pub fn get(&self, row: usize) -> Option<Value> {
        self.dictionary.get(coload_types::Code(self.codes[row]))
    }
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]
    use super::*;

    #[test]
    fn a_sorted_column_gives_its_rows_back() {
        let mut plain = Plain::empty(coload_types::Physical::Bytes);
        for s in ["b", "a", "", "abcdefghij", "abcdefghii", "b"] {
            plain.push(Some(&Value::Bytes(s.as_bytes().into())));
        }
        plain.push(None);
        let sorted = sort_column(&plain).unwrap();
        assert_eq!(sorted.dictionary.len(), 5);
        for row in 0..plain.len() {
            assert_eq!(sorted.get(row), plain.get(row));
        }
    }

    #[test]
    fn unused_values_are_dropped() {
        let temporary = TemporaryDictionary { values: Values::Int(vec![9, 3, 5]), stale: true };
        let sorted = sort_dictionary(&temporary, Some(&[true, false, true])).unwrap();
        assert_eq!(sorted.dictionary.values(), &Values::Int(vec![5, 9]));
        assert_eq!(sorted.positions, [1, 0, 0]);
    }
}
