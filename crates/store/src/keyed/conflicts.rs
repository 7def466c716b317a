//! No key of a PRIMARY KEY comes twice: what a writer adds is compared with itself and with the version that it adds to.
//!
//! ```text
//!   segments of the load    have each key once, as they were merged
//!   segments of the table   compared with those of the load, in the version that the load becomes part of
//!   rows that give way      are deleted rows of their segments, in the same version
//! ```
//!
//! Writers publish beside each other, so this is asked again when another one was faster; segments that are as they were
//! are not compared again. So of two writers of one key the second sees what the first has done.
//!
//! Memory: a page of the keys of two segments, and sets of rows. Cost: a walk through the keys of each two segments whose
//! ranges overlap.

use std::collections::HashMap;
use std::sync::Arc;

use coload_ddl::{Key, Schema};
use coload_types::{Error, Plain, Result, Value, Values};
use roaring::RoaringBitmap;

use super::keys::{Float, float, key_of_row};
use super::newest::NewestColumn;
use super::origin::Origin;
use super::pages::{KeyPages, for_each_met};
use crate::deleted::{DeletedEntry, Deletions, read_set};
use crate::manifest::{SegmentEntry, TableEntry};
use crate::on_conflict::{DeleteWhere, KeyCounts, OnConflict};
use crate::snapshot::open_shared;
use crate::{SegmentFile, Store};

/// The tree of a segment is asked for keys one by one where it has so many rows for each of them: a look-up takes as long as a walk
/// through about as many.
const ASKED_SHARE: u64 = 64;

/// The table that rows are added to, and what is to happen to keys that are there.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Keyed<'a> {
    pub table: &'a str,
    pub schema: &'a Schema,
    pub key: &'a Key,
    pub on_conflict: OnConflict,
    /// Whether it is asked which rows of the load rows of its segments are.
    pub tells_rows: bool,
}

/// A segment that is added.
#[derive(Debug, Clone)]
pub(crate) struct NewSegment {
    pub entry: SegmentEntry,
    pub origin: Origin,
}

/// Compares what a writer adds with what is there.
#[derive(Debug)]
pub(crate) struct KeyConflicts {
    store: Store,
    table: String,
    schema: Schema,
    key: Key,
    on_conflict: OnConflict,
    new: Vec<NewSegment>,
    /// Which new rows say that their keys go, and these rows of each new segment.
    delete_where: Option<DeleteWhere>,
    deleting: Option<Arc<[RoaringBitmap]>>,
    /// What was found in segments of the table.
    met: HashMap<String, Met>,
    /// Rows of each new segment that were told to be rejects.
    told: Option<Vec<RoaringBitmap>>,
}

/// Rows of a segment of the table and of new ones that have the same keys.
#[derive(Debug)]
struct Met {
    /// The rows that were deleted then.
    was_deleted: Option<DeletedEntry>,
    /// Those of the table that give way.
    old: RoaringBitmap,
    /// Those of each new segment that do.
    new: Vec<RoaringBitmap>,
    /// How many of those of the table go for a row that says so.
    deleted: u64,
}

/// The rows that give way in a version.
pub(crate) struct Resolved {
    pub deletions: Deletions,
    /// Rows of each new segment that are not of the table.
    pub lost: Vec<RoaringBitmap>,
    /// Rows that gave way before segments were written are not among them.
    pub counts: KeyCounts,
}

impl KeyConflicts {
    /// For segments that are in place and in the order of their keys, each of which comes once among all of them, to be added to a table.
    pub fn new(store: &Store, of: Keyed<'_>, new: Vec<NewSegment>) -> Self {
        KeyConflicts {
            store: store.clone(),
            table: of.table.to_owned(),
            schema: of.schema.clone(),
            key: of.key.clone(),
            on_conflict: of.on_conflict,
            new,
            delete_where: None,
            deleting: None,
            met: HashMap::new(),
            told: None,
        }
    }

    /// Which rows of each new segment are left out when these are added to `there`, and remembers that they are told to be rejects.
    ///
    /// # Errors
    /// As [`Self::resolve`].
    pub fn tell_lost(&mut self, there: Option<&TableEntry>) -> Result<&[RoaringBitmap]> {
        let lost = self.resolve(there)?.lost;
        Ok(self.told.insert(lost))
    }

    /// Whether the rows that are left out, when the segments are added to `there`, are those that were told to be rejects.
    ///
    /// # Errors
    /// As [`Self::resolve`].
    pub fn is_as_told(&mut self, there: Option<&TableEntry>) -> Result<bool> {
        if self.on_conflict != OnConflict::Reject {
            return Ok(true);
        }
        let lost = self.resolve(there)?.lost;
        Ok(self.told.as_ref() == Some(&lost))
    }

    /// The same where some rows say that their keys go.
    pub fn with_deletes(self, delete_where: Option<DeleteWhere>) -> Self {
        KeyConflicts { delete_where, ..self }
    }

    /// Tells which rows give way when the segments are added to `there`, if they are added to something.
    ///
    /// # Errors
    /// `Invalid` with a key that comes twice and may not; `Corrupt` when a segment is not what was written.
    pub fn resolve(&mut self, there: Option<&TableEntry>) -> Result<Resolved> {
        let mut lost = vec![RoaringBitmap::new(); self.new.len()];
        let deleting = self.deleting()?;
        let segments = there.map_or(&[][..], |table| &table.segments);
        let mut known = std::mem::take(&mut self.met);
        let mut deletions = Deletions::default();
        let (mut gone, mut deleted) = (0_u64, 0_u64);
        for old in segments {
            let met = match known.remove(&old.file).filter(|met| met.was_deleted == old.deleted) {
                Some(met) => met,
                None => self.compare_with(old, &deleting)?,
            };
            deleted += met.deleted;
            gone += deletions.extend(old, met.old.iter().map(u64::from))?;
            lost.iter_mut().zip(&met.new).for_each(|(lost, met)| *lost |= met);
            self.met.insert(old.file.clone(), met);
        }
        let ignored = lost.iter().map(RoaringBitmap::len).sum::<u64>();
        let mut marks = 0;
        for (lost, deleting) in lost.iter_mut().zip(deleting.iter()) {
            marks += deleting.len() - deleting.intersection_len(lost);
            *lost |= deleting;
        }
        for (new, lost) in self.new.iter().zip(&lost) {
            deletions.extend(&new.entry, lost.iter().map(u64::from))?;
        }
        let rows: u64 = self.new.iter().map(|new| new.entry.rows).sum();
        let replaced = gone - deleted;
        let added = (rows - ignored - marks).saturating_sub(replaced);
        let (deleting, rejected, twice) = (marks, 0, 0);
        let mut counts = KeyCounts { added, replaced, ignored, twice, rejected, deleting, deleted };
        if self.on_conflict == OnConflict::Reject {
            counts = KeyCounts { ignored: 0, rejected: ignored, ..counts };
        }
        Ok(Resolved { deletions, lost, counts })
    }

    /// The rows of each new segment that say that their keys go.
    fn deleting(&mut self) -> Result<Arc<[RoaringBitmap]>> {
        if let Some(known) = &self.deleting {
            return Ok(Arc::clone(known));
        }
        let mut found = vec![RoaringBitmap::new(); self.new.len()];
        if let Some(DeleteWhere { column, value }) = &self.delete_where {
            let float = float(&self.schema, *column);
            for (new, found) in self.new.iter().zip(&mut found) {
                let segment = self.open_own(&new.entry)?;
                let mut before = 0;
                for (page, rows) in segment.page_rows().iter().enumerate() {
                    let mut plain = Plain::empty(segment.physical(*column));
                    segment.decode_page(*column, page, &mut plain)?;
                    segment.check()?;
                    rows_with(&plain, value, float, |row| {
                        found.insert(row_number(before + row as u64)?);
                        Ok(())
                    })?;
                    before += u64::from(*rows);
                }
            }
        }
        let found: Arc<[RoaringBitmap]> = found.into();
        self.deleting = Some(Arc::clone(&found));
        Ok(found)
    }

    /// Compares a segment of the table with the new ones.
    fn compare_with(&self, old: &SegmentEntry, deleting: &[RoaringBitmap]) -> Result<Met> {
        let none = || vec![RoaringBitmap::new(); self.new.len()];
        let (was_deleted, none_old) = (old.deleted.clone(), RoaringBitmap::new());
        let mut met = Met { was_deleted, old: none_old, new: none(), deleted: 0 };
        let overlaps = |new: &&NewSegment| self.overlap(old, &new.entry);
        if !self.new.iter().any(|new| overlaps(&new)) {
            return Ok(met);
        }
        let file = open_shared(&self.store, &self.schema, old)?;
        let deleted = match &old.deleted {
            Some(entry) => read_set(self.store.layout(), old, entry)?,
            None => RoaringBitmap::new(),
        };
        for (number, new) in self.new.iter().enumerate().filter(|(_, new)| overlaps(new)) {
            let own = self.open_own(&new.entry)?;
            let mut winner = Winner::new(self, &file, &own);
            self.meet(&file, &own, |row, new_row| {
                let (old_row, own_row) = (row_number(row)?, row_number(new_row)?);
                if deleted.contains(old_row) {
                    return Ok(());
                }
                let stays = match self.on_conflict {
                    OnConflict::Error | OnConflict::IgnoreUnique(_) => {
                        let place = (row, new.origin.number(new_row));
                        return Err(self.in_table(&own, new_row, &old.file, place)?);
                    }
                    OnConflict::Ignore | OnConflict::IgnoreKey | OnConflict::Reject => true,
                    OnConflict::Replace | OnConflict::ReplaceOnce => false,
                    OnConflict::Newest(_) => winner.is_first_newer(row, new_row)?,
                };
                match stays {
                    true => met.new[number].insert(own_row),
                    false => {
                        met.deleted += u64::from(deleting[number].contains(own_row));
                        met.old.insert(old_row)
                    }
                };
                Ok(())
            })?;
        }
        Ok(met)
    }

    /// As [`Self::walk`]; where a few new keys meet many of the table its tree is asked.
    fn meet(
        &self,
        old: &SegmentFile,
        new: &SegmentFile,
        mut met: impl FnMut(u64, u64) -> Result<()>,
    ) -> Result<()> {
        if old.tree_parts().is_none() || new.rows().saturating_mul(ASKED_SHARE) > old.rows() {
            return self.walk(old, new, met);
        }
        let mut pages = KeyPages::new(new, &self.schema, &self.key);
        while pages.advance(None)? {
            for row in 0..pages.rows() {
                if let Some(old_row) = old.row_of_key(&pages.values(row))? {
                    met(old_row, pages.first_row() + row as u64)?;
                }
            }
        }
        Ok(())
    }

    fn walk(
        &self,
        a: &SegmentFile,
        b: &SegmentFile,
        met: impl FnMut(u64, u64) -> Result<()>,
    ) -> Result<()> {
        let pages = |segment| KeyPages::new(segment, &self.schema, &self.key);
        for_each_met(pages(a), pages(b), met)
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

    /// The error for a key that is in the table, in a row of a file.
    fn in_table(
        &self,
        own: &SegmentFile,
        new_row: u64,
        file: &str,
        (row, number): (u64, Option<u64>),
    ) -> Result<Error> {
        let key = key_of_row(own, (&self.schema, &self.key), new_row)?;
        let by = number
            .map_or_else(String::new, |number| format!("row {number} of the input has it, and "));
        Ok(Error::Invalid(format!(
            "cannot add rows to table {}: the key {key} of {} is in the table already ({by}row {} of segment {file}); nothing \
             was added",
            self.table,
            self.key.sql(self.schema.columns()),
            row + 1,
        )))
    }
}

/// The error for a key that comes twice among the rows that are added, at these numbers.
pub(crate) fn twice_among(
    (table, schema, key): (&str, &Schema, &Key),
    text: &str,
    numbers: (Option<u64>, Option<u64>),
) -> Error {
    let places = match numbers {
        (Some(a), Some(b)) => format!(" (rows {} and {} of the input)", a.min(b), a.max(b)),
        _ => String::new(),
    };
    Error::Invalid(format!(
        "cannot add rows to table {table}: the key {text} of {} comes twice among them{places}; nothing was added",
        key.sql(schema.columns())
    ))
}

/// Tells which of two rows is newer, where that is asked.
struct Winner<'a>(Option<(NewestColumn<'a>, NewestColumn<'a>)>);

impl<'a> Winner<'a> {
    fn new(of: &KeyConflicts, first: &'a SegmentFile, second: &'a SegmentFile) -> Self {
        let OnConflict::Newest(column) = of.on_conflict else { return Winner(None) };
        let open = |segment| NewestColumn::new(segment, &of.schema, column);
        Winner(Some((open(first), open(second))))
    }

    /// Whether the row of the first segment is newer; of equal ones that of the second is.
    fn is_first_newer(&mut self, row: u64, other: u64) -> Result<bool> {
        match &mut self.0 {
            Some((first, second)) => Ok(first.get(row)? > second.get(other)?),
            None => Ok(false),
        }
    }
}

/// Tells the rows that have a value, as SQL compares it: of floats -0 is 0, and a NaN is each other.
fn rows_with(
    plain: &Plain,
    value: &Value,
    float: Option<Float>,
    found: impl FnMut(usize) -> Result<()>,
) -> Result<()> {
    let same = |stored: i64| float.map_or(stored, |float| float.key_of(stored));
    let mut rows = (0..plain.len()).filter(|row| !plain.is_null(*row));
    match (&plain.values, value) {
        (Values::Int(values), Value::Int(value)) => {
            let value = same(*value);
            rows.filter(|row| same(values[*row]) == value).try_for_each(found)
        }
        (Values::Wide(values), Value::Wide(value)) => {
            rows.filter(|row| values[*row] == *value).try_for_each(found)
        }
        (Values::Bytes(values), Value::Bytes(value)) => {
            rows.filter(|row| *values.get(*row) == **value).try_for_each(found)
        }
        // `DeleteWhere::check` has compared the shapes.
        _ => rows.try_for_each(|_| {
            Err(Error::Refused("internal error: a value of another type than its column".into()))
        }),
    }
}

fn row_number(row: u64) -> Result<u32> {
    u32::try_from(row).map_err(|_| {
        Error::Limit(format!("a segment of a table with a PRIMARY KEY has over {row} rows"))
    })
}
