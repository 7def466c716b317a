//! How the codes of a column become numbers.

use coload_types::{Dictionary, Values};

/// Dictionaries up to this size get a table of 32-bit differences.
const TABLE_MAX: usize = 65_536;

/// The numbers of a dictionary's codes.
#[derive(Debug, Clone)]
pub enum CodeValues {
    /// Code `c` is `first + step * c`, as for quantities, dates without holes, and percentages.
    Line { first: i64, step: i64 },
    /// Code `c` is `min + offsets[c]`.
    Offsets { min: i64, offsets: Vec<u32> },
    /// Looked up in the dictionary.
    Lookup,
    /// The dictionary holds no numbers.
    None,
}

impl CodeValues {
    /// Looks at a dictionary; a large one is only looked at until it is seen to be no line.
    pub fn new(dictionary: &Dictionary) -> Self {
        let Values::Int(values) = dictionary.values() else {
            return match dictionary.values() {
                Values::Wide(_) => CodeValues::Lookup,
                _ => CodeValues::None,
            };
        };
        let (Some(first), Some(last)) = (values.first(), values.last()) else {
            return CodeValues::Line { first: 0, step: 0 };
        };
        let step = values.get(1).map_or(0, |second| second.wrapping_sub(*first));
        let is_line = last.checked_sub(*first).is_some()
            && values.windows(2).all(|pair| pair[1].wrapping_sub(pair[0]) == step);
        if is_line {
            return CodeValues::Line { first: *first, step };
        }
        let range = last.wrapping_sub(*first) as u64;
        if values.len() <= TABLE_MAX && range <= u64::from(u32::MAX) {
            let offsets = values.iter().map(|v| v.wrapping_sub(*first) as u32).collect();
            return CodeValues::Offsets { min: *first, offsets };
        }
        CodeValues::Lookup
    }
}
