//! Rows of a table by their keys, without SQL: `get`, `get_many`, `range`.
//!
//! ```text
//!   key --bounds of the manifest--> segments --B+ tree, or a search in pages--> row --deleted?--> its values
//! ```
//!
//! Invariant: what is answered is that of one version. A key is there once at most, in one segment.
//!
//! Cost: a look-up in each segment whose range has the key, and a block of each column.

use std::cmp::Reverse;
use std::collections::{BinaryHeap, VecDeque};
use std::ops::{Bound, Range};
use std::sync::Arc;

use coload_ddl::{Key, Schema};
use coload_store::{
    DeletedRows, KeySide, SegmentEntry, SegmentFile, Snapshot, TableEntry, key_values,
    may_have_keys, row_of_key, rows_before_key,
};
use coload_types::{Error, Result, Value};

use crate::read_rows::{Row, read_rows};

/// Rows of a segment that a range reads at once.
const BATCH_ROWS: usize = 256;

/// A table with a PRIMARY KEY in one version of its store.
///
/// Keys and rows have values as they are stored: a DECIMAL without its point, a DATE in days since 1970, a TIMESTAMP in microseconds,
/// floats as [`coload_types::ordinal_from_f64`] makes them.
#[derive(Debug, Clone)]
pub struct KeyTable {
    snapshot: Snapshot,
    table: usize,
    key: Key,
}

impl KeyTable {
    /// The table of a name.
    ///
    /// # Errors
    /// `Invalid` when there is none, or it has no PRIMARY KEY.
    pub fn new(snapshot: Snapshot, name: &str) -> Result<Self> {
        let id = snapshot.require_table(name)?.id;
        let table = snapshot.tables().iter().position(|table| table.id == id).unwrap_or_default();
        let key = snapshot.tables()[table].schema.key().filter(|key| key.is_unique()).cloned();
        let key = key.ok_or_else(|| {
            Error::Invalid(format!("table {name} has no PRIMARY KEY, by which rows could be found"))
        })?;
        Ok(KeyTable { snapshot, table, key })
    }

    fn entry(&self) -> &TableEntry {
        &self.snapshot.tables()[self.table]
    }

    /// Its columns.
    pub fn schema(&self) -> &Schema {
        &self.entry().schema
    }

    /// Its key.
    pub fn key(&self) -> &Key {
        &self.key
    }

    fn of(&self) -> (&Schema, &Key) {
        (self.schema(), &self.key)
    }

    /// The row with a key, whose values are in the order of the key's columns.
    ///
    /// # Errors
    /// `Invalid` when the key has other columns, `Corrupt` when a segment is not what was written.
    pub fn get(&self, key: &[Value]) -> Result<Option<Row>> {
        Ok(self.get_many(&[key])?.pop().flatten())
    }

    /// The rows with some keys, in their order.
    ///
    /// # Errors
    /// As [`Self::get`].
    pub fn get_many<K: AsRef<[Value]>>(&self, keys: &[K]) -> Result<Vec<Option<Row>>> {
        let asked = keys.iter().map(|key| self.whole_key(key.as_ref()));
        let asked: Vec<Vec<Value>> = asked.collect::<Result<_>>()?;
        let mut rows: Vec<Option<Row>> = asked.iter().map(|_| None).collect();
        for entry in &self.entry().segments {
            let may_have =
                |key: &[Value]| may_have_keys(entry, self.of(), (key.first(), key.first()));
            if !asked.iter().any(|key| may_have(key)) {
                continue;
            }
            let (file, deleted) = self.open(entry)?;
            let mut found = Vec::new();
            for (number, key) in asked.iter().enumerate() {
                if rows[number].is_some() || !may_have(key) {
                    continue;
                }
                if let Some(row) = row_of_key(&file, self.of(), key)?
                    && !deleted.as_ref().is_some_and(|deleted| deleted.contains(row))
                {
                    found.push((row, number));
                }
            }
            found.sort_unstable();
            let mut numbers: Vec<u64> = found.iter().map(|(row, _)| *row).collect();
            numbers.dedup();
            let read = read_rows(&file, &numbers)?;
            for (row, number) in found {
                let at = numbers.partition_point(|other| *other < row);
                rows[number] = read.get(at).cloned();
            }
        }
        Ok(rows)
    }

    /// The rows whose keys are between two bounds, in the order of the key. A bound has values for the key's first columns, one or more:
    /// it stands for all keys that begin with them.
    ///
    /// # Errors
    /// As [`Self::get`].
    pub fn range(&self, low: Bound<&[Value]>, high: Bound<&[Value]>) -> Result<KeyRange<'_>> {
        let (low, high) = (self.bound(low)?, self.bound(high)?);
        let first = |bound: &Option<(Vec<Value>, Bound<()>)>| {
            bound.as_ref().and_then(|(values, _)| values.first().cloned())
        };
        let ends = (first(&low), first(&high));
        let mut parts = Vec::new();
        for entry in &self.entry().segments {
            if !may_have_keys(entry, self.of(), (ends.0.as_ref(), ends.1.as_ref())) {
                continue;
            }
            let (file, deleted) = self.open(entry)?;
            let start = match &low {
                None => 0,
                Some((values, Bound::Excluded(()))) => {
                    rows_before_key(&file, self.of(), values, KeySide::After)?
                }
                Some((values, _)) => rows_before_key(&file, self.of(), values, KeySide::Before)?,
            };
            let end = match &high {
                None => file.rows(),
                Some((values, Bound::Excluded(()))) => {
                    rows_before_key(&file, self.of(), values, KeySide::Before)?
                }
                Some((values, _)) => rows_before_key(&file, self.of(), values, KeySide::After)?,
            };
            parts.push(RangePart { file, deleted, rows: start..end, read: VecDeque::new() });
        }
        KeyRange::new(self, parts)
    }

    fn open(&self, entry: &SegmentEntry) -> Result<(Arc<SegmentFile>, Option<Arc<DeletedRows>>)> {
        let file = self.snapshot.segment(self.entry(), entry)?;
        Ok((file, self.snapshot.deleted_rows(entry)?))
    }

    /// The values of a whole key, as they are compared.
    fn whole_key(&self, values: &[Value]) -> Result<Vec<Value>> {
        if values.len() != self.key.columns().len() {
            return Err(self.other_key(values));
        }
        self.compared(values)
    }

    fn compared(&self, values: &[Value]) -> Result<Vec<Value>> {
        let columns = self.schema().columns();
        let mut pairs = values.iter().zip(self.key.columns());
        match pairs.all(|(value, column)| value.physical() == columns[*column].data_type.physical())
        {
            true => Ok(key_values(self.schema(), &self.key, values)),
            false => Err(self.other_key(values)),
        }
    }

    fn other_key(&self, values: &[Value]) -> Error {
        Error::Invalid(format!(
            "{} values, or of other types, are no key of table {}, which has {}",
            values.len(),
            self.entry().name,
            self.key.sql(self.schema().columns())
        ))
    }

    /// The first values of a key, and whether those that begin with them are within.
    fn bound(&self, bound: Bound<&[Value]>) -> Result<Option<(Vec<Value>, Bound<()>)>> {
        let (values, kind) = match bound {
            Bound::Unbounded => return Ok(None),
            Bound::Included(values) => (values, Bound::Included(())),
            Bound::Excluded(values) => (values, Bound::Excluded(())),
        };
        if values.is_empty() || values.len() > self.key.columns().len() {
            return Err(self.other_key(values));
        }
        Ok(Some((self.compared(values)?, kind)))
    }

    /// The key of a row, as it is compared.
    fn key_of(&self, row: &Row) -> Result<Vec<Value>> {
        let values = self.key.columns().iter().map(|column| row[*column].clone());
        let values = values.collect::<Option<Vec<Value>>>().ok_or_else(|| {
            Error::Corrupt(format!("table {}: NULL in a PRIMARY KEY", self.entry().name))
        })?;
        Ok(key_values(self.schema(), &self.key, &values))
    }
}

/// The rows of a segment that a range has not read, and those that it has.
struct RangePart {
    file: Arc<SegmentFile>,
    deleted: Option<Arc<DeletedRows>>,
    rows: Range<u64>,
    read: VecDeque<Row>,
}

impl RangePart {
    /// The next row that is not deleted.
    fn next(&mut self) -> Result<Option<Row>> {
        while self.read.is_empty() && self.rows.start < self.rows.end {
            let is_left =
                |row: &u64| !self.deleted.as_ref().is_some_and(|deleted| deleted.contains(*row));
            let end = self.rows.end.min(self.rows.start + BATCH_ROWS as u64);
            let numbers: Vec<u64> = (self.rows.start..end).filter(is_left).collect();
            self.rows.start = end;
            self.read = read_rows(&self.file, &numbers)?.into();
        }
        Ok(self.read.pop_front())
    }
}

/// Rows between two keys, in the order of the key.
pub struct KeyRange<'a> {
    table: &'a KeyTable,
    parts: Vec<RangePart>,
    /// The next row of each segment, by its key.
    next: BinaryHeap<Reverse<(Vec<Value>, usize, Row)>>,
}

impl<'a> KeyRange<'a> {
    fn new(table: &'a KeyTable, parts: Vec<RangePart>) -> Result<Self> {
        let count = parts.len();
        let mut range = KeyRange { table, parts, next: BinaryHeap::with_capacity(count) };
        (0..count).try_for_each(|part| range.fill(part))?;
        Ok(range)
    }

    fn fill(&mut self, part: usize) -> Result<()> {
        if let Some(row) = self.parts[part].next()? {
            self.next.push(Reverse((self.table.key_of(&row)?, part, row)));
        }
        Ok(())
    }
}

impl Iterator for KeyRange<'_> {
    type Item = Result<Row>;

    fn next(&mut self) -> Option<Result<Row>> {
        let Reverse((_, part, row)) = self.next.pop()?;
        match self.fill(part) {
            Ok(()) => Some(Ok(row)),
            Err(error) => {
                self.next.clear();
                Some(Err(error))
            }
        }
    }
}
