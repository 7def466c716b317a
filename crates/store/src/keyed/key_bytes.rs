//! Keys of a segment as bytes that are ordered as they are, for its B+ tree.
//!
//! ```text
//!   number   its distance from the least of the segment, big-endian, in as many bytes as the greatest distance takes
//!   text     its bytes; where another column follows, zero bytes as 00 ff, and 00 00 at the end
//! ```
//!
//! A number that is less than all of the segment, or greater, has no bytes: what is asked of it is answered by where it would be.

use coload_page::{KeyForm, KeyPart};
use coload_transform::put_text;
use coload_types::Value;

/// A key, or its first columns, as a tree is asked for it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum AskedKey {
    /// These bytes.
    Bytes(Vec<u8>),
    /// It is below all keys that begin with these bytes, and above those before them.
    Before(Vec<u8>),
    /// It is above all keys that begin with these bytes, and below those after them.
    After(Vec<u8>),
}

/// The bytes of the first values of a key in a segment whose keys have these parts. `None` when a value is of another shape.
pub(crate) fn ask(parts: &[KeyPart], values: &[Value]) -> Option<AskedKey> {
    let mut bytes = Vec::new();
    for (index, (part, value)) in parts.iter().zip(values).enumerate() {
        let number = match (&part.form, value) {
            (KeyForm::Text, Value::Bytes(text)) => {
                match index + 1 == parts.len() {
                    true => bytes.extend_from_slice(text),
                    false => put_text(text, &mut bytes),
                }
                continue;
            }
            (KeyForm::Number { .. }, Value::Int(value)) => i128::from(*value),
            (KeyForm::Number { .. }, Value::Wide(value)) => *value,
            _ => return None,
        };
        let KeyForm::Number { least, width } = part.form else { return None };
        if number < least {
            return Some(AskedKey::Before(bytes));
        }
        let distance = number.wrapping_sub(least) as u128;
        let is_within = width >= 16 || distance >> (8 * u32::from(width)) == 0;
        if !is_within {
            return Some(AskedKey::After(bytes));
        }
        put_number(distance, width, &mut bytes);
    }
    Some(AskedKey::Bytes(bytes))
}

/// Appends a distance.
#[inline]
pub(crate) fn put_number(distance: u128, width: u8, out: &mut Vec<u8>) {
    let bytes = distance.to_be_bytes();
    let width = usize::from(width).min(bytes.len());
    out.extend_from_slice(&bytes[bytes.len() - width..]);
}

/// Bytes that a distance takes.
pub(crate) fn width_of(distance: u128) -> u8 {
    (u128::BITS - distance.leading_zeros()).div_ceil(8) as u8
}

/// The least bytes that are greater than all that begin with some; `None` when there are none.
pub(crate) fn after(mut bytes: Vec<u8>) -> Option<Vec<u8>> {
    while let Some(last) = bytes.pop() {
        if last < u8::MAX {
            bytes.push(last + 1);
            return Some(bytes);
        }
    }
    None
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]
    use super::*;

    fn number(least: i128, width: u8) -> KeyPart {
        KeyPart { column: 0, form: KeyForm::Number { least, width } }
    }

    #[test]
    fn numbers_take_the_bytes_that_their_range_needs() {
        let parts = [number(-3, 1), number(1, 0)];
        let ask = |a, b| ask(&parts, &[Value::Int(a), Value::Int(b)]).unwrap();
        assert_eq!(ask(-3, 1), AskedKey::Bytes(vec![0]));
        assert_eq!(ask(252, 1), AskedKey::Bytes(vec![255]));
        assert_eq!(ask(-4, 1), AskedKey::Before(vec![]));
        assert_eq!(ask(253, 1), AskedKey::After(vec![]));
        assert_eq!(ask(0, 0), AskedKey::Before(vec![3]));
        assert_eq!(ask(0, 2), AskedKey::After(vec![3]));
        assert_eq!((width_of(0), width_of(255), width_of(256), width_of(u128::MAX)), (0, 1, 2, 16));
        let wide = [number(i128::MIN, 16)];
        let asked = super::ask(&wide, &[Value::Wide(i128::MAX)]).unwrap();
        assert_eq!(asked, AskedKey::Bytes(vec![255; 16]));
    }

    #[test]
    fn the_bytes_after_all_that_begin_with_some_are_found() {
        assert_eq!(after(vec![1, 2]), Some(vec![1, 3]));
        assert_eq!(after(vec![1, 255, 255]), Some(vec![2]));
        assert_eq!(after(vec![255]), None);
        assert_eq!(after(vec![]), None);
    }
}
