//! No key of a PRIMARY KEY comes twice: what a writer adds is compared with itself and with the version that it adds to.
//!
//! Writers publish beside each other, so this is asked again when another one was faster; segments that were compared
//! before are not compared again.
//!
//! Cost: a search for each new key in each segment whose range of keys overlaps, with steps that grow; the keys of two
//! segments in memory.

use std::cmp::Ordering;
use std::collections::HashSet;
use std::sync::Arc;

use coload_ddl::{Key, Schema};
use coload_transform::compare_keys;
use coload_types::{Error, Plain, Result};

use super::keys::float;
use super::{key_text, read_keys};
use crate::deleted::read_set;
use crate::manifest::{SegmentEntry, TableEntry};
use crate::snapshot::open_shared;
use crate::{SegmentFile, Store};

/// Compares what a writer adds with what is there.
pub(crate) struct UniqueKeys {
    store: Store,
    table: String,
    schema: Schema,
    key: Key,
    new: Vec<SegmentEntry>,
    /// Segments of the table that have none of the new keys.
    compared: HashSet<String>,
    is_unique_itself: bool,
}

impl UniqueKeys {
    /// For segments that are in place, in the order of their keys, to be added to a table.
    pub fn new(
        store: &Store,
        table: &str,
        schema: &Schema,
        key: &Key,
        new: &[SegmentEntry],
    ) -> Self {
        UniqueKeys {
            store: store.clone(),
            table: table.to_owned(),
            schema: schema.clone(),
            key: key.clone(),
            new: new.to_vec(),
            compared: HashSet::new(),
            is_unique_itself: false,
        }
    }

    /// Checks that no key comes twice when the segments are added to `there`, if they are added to something.
    ///
    /// # Errors
    /// `Invalid` with the key that comes twice; `Corrupt` when a segment is not what was written.
    pub fn check(&mut self, there: Option<&TableEntry>) -> Result<()> {
        if !self.key.is_unique() {
            return Ok(());
        }
        for (number, new) in self.new.iter().enumerate() {
            let before = if self.is_unique_itself { &[] } else { &self.new[..number] };
            let there = there.map_or(&[][..], |table| &table.segments);
            let there = there.iter().filter(|old| !self.compared.contains(&old.file));
            let own = before.iter().map(|old| (old, Twice::InLoad));
            let all = own.chain(there.map(|old| (old, Twice::InTable)));
            let mut keys: Option<Vec<Plain>> = None;
            for (old, twice) in all.filter(|(old, _)| self.overlap(old, new)) {
                if keys.is_none() {
                    keys = Some(read_keys(&[self.open_own(new)?], &self.schema, &self.key)?);
                }
                let Some(keys) = &keys else { continue };
                let file = match twice {
                    Twice::InLoad => self.open_own(old)?,
                    Twice::InTable => open_shared(&self.store, &self.schema, old)?,
                };
                let old_keys = read_keys(&[file], &self.schema, &self.key)?;
                let deleted = match &old.deleted {
                    Some(entry) => Some(read_set(self.store.layout(), old, entry)?),
                    None => None,
                };
                let is_there = |row: usize| {
                    deleted.as_ref().is_none_or(|deleted| !deleted.contains(row as u32))
                };
                if let Some(row) = first_common(keys, &old_keys, is_there) {
                    let of = (&*self.table, &self.schema, &self.key);
                    return Err(duplicate_key(of, keys, row, twice));
                }
            }
        }
        self.is_unique_itself = true;
        self.compared
            .extend(there.iter().flat_map(|table| &table.segments).map(|s| s.file.clone()));
        Ok(())
    }

    /// Opens a segment that is not published: nobody else may get it.
    fn open_own(&self, segment: &SegmentEntry) -> Result<Arc<SegmentFile>> {
        SegmentFile::open(&self.store.layout().segment(&segment.file)).map(Arc::new)
    }

    /// Whether the ranges of the first column of the key have something in common, as far as is known.
    fn overlap(&self, a: &SegmentEntry, b: &SegmentEntry) -> bool {
        let column = self.key.columns()[0];
        if float(&self.schema, column).is_some() {
            // Bounds are those of the floats that are stored, among them -0 and NaN of any sign.
            return true;
        }
        let (a, b) = (&a.columns[column], &b.columns[column]);
        let is_below = |low: &crate::ColumnStats, high: &crate::ColumnStats| {
            low.max.as_ref().zip(high.min.as_ref()).is_some_and(|(max, min)| max < min)
        };
        !is_below(a, b) && !is_below(b, a)
    }
}

/// Where the other row with a key is.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Twice {
    /// Among the rows that are added.
    InLoad,
    /// In the table.
    InTable,
}

/// The error for a key that comes twice.
pub(crate) fn duplicate_key(
    (table, schema, key): (&str, &Schema, &Key),
    keys: &[Plain],
    row: usize,
    twice: Twice,
) -> Error {
    let what = match twice {
        Twice::InLoad => "comes twice among them",
        Twice::InTable => "is in the table already",
    };
    Error::Invalid(format!(
        "cannot add rows to table {table}: the key {} of {} {what}; nothing was added",
        key_text(keys, row, schema, key),
        key.sql(schema.columns())
    ))
}

/// The first row of sorted keys whose key is also that of an old row that is there; old keys are sorted too, and come once.
fn first_common(new: &[Plain], old: &[Plain], is_there: impl Fn(usize) -> bool) -> Option<usize> {
    let rows = |keys: &[Plain]| keys.first().map_or(0, Plain::len);
    let (count, end) = (rows(new), rows(old));
    let mut at = 0;
    for row in 0..count {
        at = first_not_below(at..end, |old_row| compare_keys(old, old_row, new, row));
        if at == end {
            return None;
        }
        if compare_keys(old, at, new, row).is_eq() && is_there(at) {
            return Some(row);
        }
    }
    None
}

/// The first row of a range that is not below something; steps grow from its start, as what is looked for is often near.
fn first_not_below(range: std::ops::Range<usize>, compare: impl Fn(usize) -> Ordering) -> usize {
    let (mut low, mut step) = (range.start, 1);
    while low + step <= range.end && compare(low + step - 1).is_lt() {
        low += step;
        step *= 2;
    }
    let mut high = range.end.min(low + step);
    while low < high {
        let middle = low + (high - low) / 2;
        if compare(middle).is_lt() { low = middle + 1 } else { high = middle }
    }
    low
}
