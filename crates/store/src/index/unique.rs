//! No key of a UNIQUE index comes twice: trees of new segments are walked beside those of all others.
//!
//! Keys with a NULL differ from all others, and deleted rows of the version have none.
//!
//! Cost: a step through the keys of each two segments whose ranges of the first column meet; of a few keys beside many a look-up each.

use std::collections::HashSet;
use std::sync::Arc;

use coload_btree::Walk;
use coload_ddl::{Index, Key, KeyKind, Schema};
use coload_types::{Error, Physical, Result};
use roaring::RoaringBitmap;

use super::complete::open_index;
use super::file::SegmentIndex;
use crate::deleted::read_set;
use crate::keyed::key_of_row;
use crate::manifest::{SegmentEntry, TableEntry};
use crate::snapshot::open_shared;
use crate::{ColumnStats, Store};

/// A tree is asked key by key where it has so many for each.
const ASKED_SHARE: u64 = 64;

/// A segment of which keys are compared.
pub(super) struct Side<'a> {
    entry: &'a SegmentEntry,
    index: Arc<SegmentIndex>,
    deleted: RoaringBitmap,
}

/// Checks that no key of an index comes twice among live rows of a table, of which some segments are new.
///
/// # Errors
/// `Invalid` that names a key that does and where it is, `Corrupt` when a tree is not what was written.
pub(super) fn check_unique(
    store: &Store,
    table: &TableEntry,
    index: &Index,
    new: &HashSet<&str>,
) -> Result<()> {
    let of = Of { store, table, index };
    let segments: Vec<&SegmentEntry> = table.segments.iter().collect();
    for (number, entry) in segments.iter().enumerate() {
        if !new.contains(entry.file.as_str()) {
            continue;
        }
        let side = of.open(entry)?;
        of.check_alone(&side)?;
        for (other_number, other) in segments.iter().enumerate() {
            // Of two new ones the later is compared with the earlier.
            let is_done = new.contains(other.file.as_str()) && other_number > number;
            if other_number == number || is_done || !of.overlap(entry, other) {
                continue;
            }
            let other = of.open(other)?;
            match side.index.keys() <= other.index.keys() {
                true => of.compare(&side, &other)?,
                false => of.compare(&other, &side)?,
            }
        }
    }
    Ok(())
}

/// An index of a table.
#[derive(Clone, Copy)]
pub(super) struct Of<'a> {
    pub store: &'a Store,
    pub table: &'a TableEntry,
    pub index: &'a Index,
}

impl<'a> Of<'a> {
    fn schema(&self) -> &Schema {
        &self.table.schema
    }

    /// Opens a segment of the table.
    ///
    /// # Errors
    /// `Corrupt` when its tree or its deleted rows are not what was written.
    pub fn open(&self, entry: &'a SegmentEntry) -> Result<Side<'a>> {
        let tree = entry.trees.iter().find(|tree| tree.columns == self.index.columns());
        let tree = tree.ok_or_else(|| {
            Error::Refused(format!("internal error: segment {} without a tree", entry.file))
        })?;
        let index = open_index(self.store.layout(), entry, tree)?;
        let deleted = match &entry.deleted {
            Some(deleted) => read_set(self.store.layout(), entry, deleted)?,
            None => RoaringBitmap::new(),
        };
        Ok(Side { entry, index: Arc::new(index), deleted })
    }

    /// Whether the first column may have a value in both, as far as bounds tell.
    pub fn overlap(&self, a: &SegmentEntry, b: &SegmentEntry) -> bool {
        let column = self.index.columns()[0];
        if self.is_float(column) {
            return true;
        }
        let (Some(a), Some(b)) = (a.columns.get(column), b.columns.get(column)) else {
            return true;
        };
        let is_below = |low: &ColumnStats, high: &ColumnStats| {
            low.max.as_ref().zip(high.min.as_ref()).is_some_and(|(max, min)| max < min)
        };
        !is_below(a, b) && !is_below(b, a)
    }

    fn is_float(&self, column: usize) -> bool {
        use coload_types::DataType;
        matches!(self.schema().columns()[column].data_type, DataType::Real | DataType::Double)
    }

    /// Compares the rows of a segment with each other.
    fn check_alone(&self, side: &Side<'_>) -> Result<()> {
        self.for_each_repeated(side, |rows| match rows {
            [a, b, ..] => Err(self.twice((side, *a), (side, *b))?),
            _ => Ok(()),
        })
    }

    /// Looks for the keys of the first among those of the second.
    fn compare(&self, few: &Side<'_>, many: &Side<'_>) -> Result<()> {
        self.for_each_met(few, many, |own, others| match (own.first(), others.first()) {
            (Some(a), Some(b)) => Err(self.twice((few, *a), (many, *b))?),
            _ => Ok(()),
        })
    }

    /// Tells the rows of each key that several rows of a segment have, but for those that are deleted.
    ///
    /// # Errors
    /// `Corrupt` when the tree is not what was written; those of `tell`.
    pub fn for_each_repeated(
        &self,
        side: &Side<'_>,
        mut tell: impl FnMut(&[u32]) -> Result<()>,
    ) -> Result<()> {
        let (tree, bytes) = side.index.tree();
        if tree.keys() == side.entry.rows {
            return Ok(());
        }
        let mut number = 0;
        let walked = tree.for_each_key(bytes, |key| {
            let keys = number..number + 1;
            number += 1;
            let entries = side.index.entries(keys)?;
            if entries.end - entries.start < 2 || self.has_null(key) {
                return Ok(());
            }
            tell(&side.live(entries)?)
        });
        side.index.checked(walked)
    }

    /// Tells the rows in both segments of each key that they have in common, but for those that are deleted; of the first, which should have fewer
    /// keys, each is looked for in the second.
    ///
    /// # Errors
    /// As [`Self::for_each_repeated`].
    pub fn for_each_met(
        &self,
        few: &Side<'_>,
        many: &Side<'_>,
        mut tell: impl FnMut(&[u32], &[u32]) -> Result<()>,
    ) -> Result<()> {
        let (tree, bytes) = few.index.tree();
        let (other, other_bytes) = many.index.tree();
        let asks = few.index.keys().saturating_mul(ASKED_SHARE) < many.index.keys();
        let mut walk = Walk::default();
        let mut number = 0;
        let walked = tree.for_each_key(bytes, |key| {
            let own = number..number + 1;
            number += 1;
            let found = match asks {
                true => {
                    let found = other.find(other_bytes, key)?;
                    found.is_there.then_some(found.below)
                }
                false => walk.find_next(other, other_bytes, key)?,
            };
            let Some(found) = found.filter(|_| !self.has_null(key)) else { return Ok(()) };
            let own = few.live(few.index.entries(own)?)?;
            let others = many.live(many.index.entries(found..found + 1)?)?;
            tell(&own, &others)
        });
        few.index.checked(walked)
    }

    /// Whether a column of a key is NULL.
    fn has_null(&self, mut key: &[u8]) -> bool {
        for column in self.index.columns() {
            let Some((mark, rest)) = key.split_first() else { return false };
            if *mark != 0 {
                return true;
            }
            let bytes = match self.schema().columns()[*column].data_type.physical() {
                Physical::Int => 8,
                Physical::Wide => 16,
                Physical::Bytes => text_end(rest),
            };
            key = rest.get(bytes..).unwrap_or_default();
        }
        false
    }

    fn twice(&self, a: (&Side<'_>, u32), b: (&Side<'_>, u32)) -> Result<Error> {
        let schema = self.schema();
        let key = Key::new(KeyKind::Cluster, self.index.columns().to_vec())?;
        let file = open_shared(self.store, schema, a.0.entry)?;
        let text = key_of_row(&file, (schema, &key), u64::from(a.1))?;
        let place = |(side, row): (&Side<'_>, u32)| {
            format!("row {} of segment {}", row + 1, side.entry.file)
        };
        Ok(Error::Invalid(format!(
            "cannot change table {}: the key {text} of {} ({}) would be there twice ({} and {}); nothing was changed",
            self.table.name,
            self.index.sql(schema.columns()),
            self.index.name,
            place(a),
            place(b),
        )))
    }
}

impl Side<'_> {
    /// How many keys it has.
    pub fn keys(&self) -> u64 {
        self.index.keys()
    }

    /// The rows of entries that are not deleted.
    fn live(&self, entries: std::ops::Range<u64>) -> Result<Vec<u32>> {
        let mut rows = self.index.rows(entries)?;
        rows.retain(|row| !self.deleted.contains(*row));
        Ok(rows)
    }
}

/// Bytes of a text with its end: 00 ff stands for a zero byte, and 00 00 is the end.
fn text_end(bytes: &[u8]) -> usize {
    let mut at = 0;
    while let Some(zero) = bytes[at..].iter().position(|byte| *byte == 0) {
        at += zero + 2;
        if bytes.get(at - 1).is_none_or(|next| *next == 0) {
            return at.min(bytes.len());
        }
    }
    bytes.len()
}
