//! The B+ tree of a segment: built from its key columns before its footer is written, and asked where keys are.
//!
//! The number of a key in the tree is the number of its row, as rows are in the order of the key.

use coload_btree::TreeBuilder;
use coload_ddl::{Key, Schema};
use coload_page::{KeyForm, KeyPart};
use coload_types::{Error, Physical, Result, Value};

use super::key_bytes::{AskedKey, after, ask, width_of};
use super::keys::{Float, float, value_of_row};
use super::pages::KeyPages;
use crate::{ColumnStats, SegmentFile};

/// The columns of a PRIMARY KEY that segments get trees of.
#[derive(Debug, Clone)]
pub struct TreeKey {
    columns: Vec<(usize, Option<Float>)>,
}

impl TreeKey {
    /// For segments of these columns; `None` where the key may come twice, so that rows have no place of their own.
    pub fn of(schema: &Schema, key: Option<&Key>) -> Option<Self> {
        let key = key.filter(|key| key.is_unique())?;
        let columns = key.columns().iter().map(|column| (*column, float(schema, *column)));
        Some(TreeKey { columns: columns.collect() })
    }
}

/// Whether a segment has a tree of this key.
pub(super) fn parts_are_of(segment: &SegmentFile, key: &Key) -> bool {
    let is_of = |part: (&KeyPart, &usize)| part.0.column as usize == *part.1;
    segment.tree_parts().is_some_and(|parts| {
        parts.len() == key.columns().len() && parts.iter().zip(key.columns()).all(is_of)
    })
}

/// A tree that was written.
pub(crate) struct BuiltTree {
    pub bytes: u64,
    pub seal: u64,
    pub parts: Vec<KeyPart>,
}

/// Builds the tree of a segment of which all but the footer is written, and gives its bytes to `put` one after the other. `None` when
/// its rows are not in the order of the key, or a key comes twice: what was put is nothing then.
///
/// # Errors
/// `Corrupt` when a column is not what was written; those of `put`.
pub(crate) fn build_tree(
    segment: &SegmentFile,
    key: &TreeKey,
    stats: &[ColumnStats],
    mut put: impl FnMut(&[u8]) -> Result<()>,
) -> Result<Option<BuiltTree>> {
    let Some(last_row) = segment.rows().checked_sub(1) else { return Ok(None) };
    let parts = key.columns.iter().map(|column| part_of(segment, *column, stats));
    let Some(parts) = parts.collect::<Option<Vec<KeyPart>>>() else { return Ok(None) };
    let ends = (key_of(segment, key, &parts, 0)?, key_of(segment, key, &parts, last_row)?);
    let (Some(first), Some(last)) = ends else { return Ok(None) };
    let mut builder = TreeBuilder::new(&first, &last);
    let mut pages = KeyPages::of_columns(segment, key.columns.clone());
    let (mut bytes, mut written) = (Vec::new(), 0);
    let mut give = |part: &[u8]| {
        written += part.len() as u64;
        put(part)
    };
    let width = numbers_width(&parts);
    let mut numbers = Vec::new();
    while pages.advance(None)? {
        pages.leave_read();
        if let Some(width) = width
            && pages.put_numbers(&parts, &mut numbers)
        {
            match builder.push_numbers(&numbers, width) {
                Ok(()) => {}
                Err(Error::Invalid(_)) => return Ok(None),
                Err(other) => return Err(other),
            }
            if let Some(part) = builder.take_bytes() {
                give(&part)?;
            }
            continue;
        }
        for row in 0..pages.rows() {
            bytes.clear();
            pages.put_key(row, &parts, &mut bytes);
            match builder.push(&bytes) {
                Ok(()) => {}
                Err(Error::Invalid(_)) => return Ok(None),
                Err(other) => return Err(other),
            }
        }
        if let Some(part) = builder.take_bytes() {
            give(&part)?;
        }
    }
    let (rest, seal) = builder.finish();
    give(&rest)?;
    Ok(Some(BuiltTree { bytes: written, seal, parts }))
}

/// Bytes of keys that are numbers, if these are few enough to be one number.
fn numbers_width(parts: &[KeyPart]) -> Option<usize> {
    let mut bytes = 0;
    for part in parts {
        let KeyForm::Number { width, .. } = part.form else { return None };
        bytes += usize::from(width);
    }
    (bytes <= size_of::<u64>()).then_some(bytes)
}

/// How values of a column become bytes; `None` when it has NULLs.
fn part_of(
    segment: &SegmentFile,
    (column, float): (usize, Option<Float>),
    stats: &[ColumnStats],
) -> Option<KeyPart> {
    let known = stats.get(column).filter(|stats| stats.nulls == 0)?;
    let number = |value: &Option<Value>| match value {
        Some(Value::Int(value)) => Some(i128::from(*value)),
        Some(Value::Wide(value)) => Some(*value),
        _ => None,
    };
    let form = match (segment.physical(column), float) {
        (Physical::Bytes, _) => KeyForm::Text,
        // What stands for a float may be none that is stored.
        (_, Some(_)) => KeyForm::Number { least: i64::MIN.into(), width: 8 },
        (_, None) => {
            let (least, greatest) = (number(&known.min)?, number(&known.max)?);
            KeyForm::Number { least, width: width_of(greatest.wrapping_sub(least) as u128) }
        }
    };
    Some(KeyPart { column: u32::try_from(column).ok()?, form })
}

/// The key of a row as bytes.
fn key_of(
    segment: &SegmentFile,
    key: &TreeKey,
    parts: &[KeyPart],
    row: u64,
) -> Result<Option<Vec<u8>>> {
    let mut values = Vec::with_capacity(parts.len());
    for (column, float) in &key.columns {
        let Some(value) = value_of_row(segment, *column, row)? else { return Ok(None) };
        values.push(canonical(value, *float));
    }
    Ok(match ask(parts, &values) {
        Some(AskedKey::Bytes(bytes)) => Some(bytes),
        _ => None,
    })
}

fn canonical(value: Value, float: Option<Float>) -> Value {
    match (value, float) {
        (Value::Int(stored), Some(float)) => Value::Int(float.key_of(stored)),
        (value, _) => value,
    }
}

/// The values of a key as they are compared: of floats what stands for all that are equal.
pub fn key_values(schema: &Schema, key: &Key, values: &[Value]) -> Vec<Value> {
    let pairs = values.iter().zip(key.columns());
    pairs.map(|(value, column)| canonical(value.clone(), float(schema, *column))).collect()
}

/// Which side of all keys that begin with some values is meant.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum KeySide {
    /// Before the first of them.
    Before,
    /// After the last.
    After,
}

impl SegmentFile {
    /// The row whose key has these values ([`key_values`]), deleted or not; `None` when there is none, or no tree.
    ///
    /// # Errors
    /// `Corrupt` when the tree is not what was written.
    pub fn row_of_key(&self, values: &[Value]) -> Result<Option<u64>> {
        let Some((parts, tree, bytes)) = self.tree()? else { return Ok(None) };
        match ask(parts, values) {
            Some(AskedKey::Bytes(key)) if values.len() == parts.len() => {
                let found = tree.find(bytes, &key);
                let found = self.checked_result(found)?;
                Ok(found.is_there.then_some(found.below))
            }
            _ => Ok(None),
        }
    }

    /// How many rows come before a side of the keys that begin with these values, at most as many as the key has columns. `None` when
    /// there is no tree, or a value is of another shape.
    ///
    /// # Errors
    /// `Corrupt` when the tree is not what was written.
    pub fn rows_before(&self, values: &[Value], side: KeySide) -> Result<Option<u64>> {
        let Some((parts, tree, bytes)) = self.tree()? else { return Ok(None) };
        let before = |key: Option<Vec<u8>>| match key {
            Some(key) => self.checked_result(tree.find(bytes, &key)).map(|found| found.below),
            None => Ok(tree.keys()),
        };
        match (ask(parts, values), side) {
            (None, _) => Ok(None),
            (Some(AskedKey::Bytes(key)), KeySide::After) if values.len() == parts.len() => {
                let found = self.checked_result(tree.find(bytes, &key))?;
                Ok(Some(found.below + u64::from(found.is_there)))
            }
            (Some(AskedKey::Bytes(key)), KeySide::After) => before(after(key)).map(Some),
            (Some(AskedKey::Bytes(key)), KeySide::Before) => before(Some(key)).map(Some),
            (Some(AskedKey::Before(key)), _) => before(Some(key)).map(Some),
            (Some(AskedKey::After(key)), _) => before(after(key)).map(Some),
        }
    }

    /// Compares the tree, if there is one, with the columns of the key.
    ///
    /// # Errors
    /// `Corrupt` when it is damaged, or has other keys than the rows.
    pub(crate) fn verify_tree(&self, schema: &Schema) -> Result<()> {
        let Some((parts, tree, bytes)) = self.tree()? else { return Ok(()) };
        let other = || Err(Error::corrupt(self.path(), "its B+ tree has other keys than its rows"));
        if tree.keys() != self.rows() {
            return other();
        }
        let columns = parts.iter().map(|part| part.column as usize);
        let columns = columns.map(|column| (column, float(schema, column))).collect();
        let mut pages = KeyPages::of_columns(self, columns);
        let (mut row, mut wanted) = (0, Vec::new());
        let checked = tree.for_each_key(bytes, |key| {
            if row == pages.rows() {
                row = 0;
                if !pages.advance(None)? {
                    return other();
                }
            }
            wanted.clear();
            pages.put_key(row, parts, &mut wanted);
            row += 1;
            if wanted == key { Ok(()) } else { other() }
        });
        self.checked_result(checked)
    }
}
