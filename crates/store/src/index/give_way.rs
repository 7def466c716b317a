//! Rows of a load whose values of UNIQUE are in the table already, or came before in the load, and that give way: they are deleted rows of the
//! version that shows the load.
//!
//! ```text
//!   rows of the load that have a value of a live row of the table       give way
//!   of the others, in the order of the input:  a row stays if no row before it that stays has one of its values
//! ```
//!
//! Rows that gave way for the PRIMARY KEY are not there any more, and take no value.
//!
//! With several indexes a row may give way to one that itself gives way, and then stays. So rows are settled in rounds: of the rows with one value
//! that no row that stays has, the first one waits for nobody; one that waits for nobody in all indexes stays, and those that share a value with it
//! give way. With one index a round settles all.
//!
//! Memory: sets of rows. Cost of a round: a walk through the trees of each two segments whose ranges of the first column meet.

use std::collections::HashMap;

use coload_ddl::Index;
use coload_types::{Error, Result, same_name};
use roaring::RoaringBitmap;

use super::unique::{Of, Side};
use crate::deleted::Deletions;
use crate::keyed::{NewSegment, OpenOrigin};
use crate::load_record::LoadId;
use crate::manifest::{Manifest, SegmentEntry, TableEntry};
use crate::row_change::{Fit, delete_rows_of};
use crate::store::Store;

/// Rounds after which a load is refused: each row that gives way would wait for the next.
const ROUNDS_MAX: usize = 64;

/// Which rows of a load give way to others with the same values.
#[derive(Debug)]
pub(crate) struct GivingWay {
    table: String,
    load: LoadId,
    /// The columns of the only index that is asked; all are where there are none.
    only: Option<Vec<usize>>,
    new: Vec<NewSegment>,
    lost: Lost,
}

/// How many rows gave way in the last attempt to publish.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub(crate) struct Lost {
    /// To rows of the table.
    pub to_table: u64,
    /// To rows of the load.
    pub to_load: u64,
}

impl GivingWay {
    /// For segments of a load, in the order in which they are published.
    pub fn new(
        (table, load): (&str, LoadId),
        only: Option<Vec<usize>>,
        new: Vec<NewSegment>,
    ) -> Self {
        GivingWay { table: table.to_owned(), load, only, new, lost: Lost::default() }
    }

    /// The rows that gave way.
    pub fn lost(&self) -> Lost {
        self.lost
    }

    /// Takes the rows that give way out of a version that has the load, and the trees of all its segments.
    ///
    /// # Errors
    /// `Invalid` when the index is gone; `Limit` when rows give way one to the next too often; `Corrupt` when a tree is not what was written.
    pub fn apply(&mut self, store: &Store, next: &mut Manifest) -> Result<()> {
        self.lost = Lost::default();
        let Some(table) = next.tables.iter_mut().find(|table| same_name(&table.name, &self.table))
        else {
            return Ok(());
        };
        let indexes = self.indexes_of(table)?;
        if indexes.is_empty() {
            return Ok(());
        }
        let mut rows = Rows::open(store, table, &self.new)?;
        rows.leave_to_table(&indexes)?;
        self.lost.to_table = rows.lost();
        rows.leave_to_load(&indexes)?;
        self.lost.to_load = rows.lost() - self.lost.to_table;
        let deletions = rows.deletions()?;
        if delete_rows_of(store.layout(), table, &deletions)? == Fit::Moved {
            return Err(Error::Refused("internal error: rows that give way are gone".into()));
        }
        if let Some(record) = table.loads.iter_mut().find(|record| record.id == self.load) {
            record.rows -= self.lost.to_table + self.lost.to_load;
        }
        Ok(())
    }

    /// The indexes that are asked.
    fn indexes_of(&self, table: &TableEntry) -> Result<Vec<Index>> {
        let unique = table.schema.indexes().iter().filter(|index| index.is_unique());
        let Some(only) = &self.only else { return Ok(unique.cloned().collect()) };
        let found = unique.filter(|index| index.columns() == only).take(1).cloned();
        match found.collect::<Vec<_>>() {
            none if none.is_empty() => Err(Error::Invalid(format!(
                "the UNIQUE of table {} that ON CONFLICT names was dropped meanwhile",
                table.name
            ))),
            one => Ok(one),
        }
    }
}

/// Rows of the new segments of a table, by numbers of these segments.
struct Rows<'a> {
    store: &'a Store,
    table: &'a TableEntry,
    /// Segments of the table; the new ones with their numbers.
    segments: Vec<(&'a SegmentEntry, Option<usize>)>,
    origins: Vec<OpenOrigin>,
    /// Rows that give way.
    lost: Vec<RoaringBitmap>,
    /// Rows that are known to stay, of those that share a value with others.
    stay: Vec<RoaringBitmap>,
}

/// A row of a new segment, by the number of the segment.
type Place = (usize, u32);

impl<'a> Rows<'a> {
    fn open(store: &'a Store, table: &'a TableEntry, new: &[NewSegment]) -> Result<Self> {
        let numbers: HashMap<&str, usize> = new.iter().map(|n| &*n.entry.file).zip(0..).collect();
        // Segments of which no row is left are not there any more.
        let segments = table.segments.iter().map(|s| (s, numbers.get(&*s.file).copied()));
        let none = vec![RoaringBitmap::new(); new.len()];
        Ok(Rows {
            store,
            table,
            segments: segments.collect(),
            origins: new.iter().map(|new| new.origin.open()).collect::<Result<_>>()?,
            lost: none.clone(),
            stay: none,
        })
    }

    /// How many rows give way.
    fn lost(&self) -> u64 {
        self.lost.iter().map(RoaringBitmap::len).sum()
    }

    fn deletions(&self) -> Result<Deletions> {
        let mut deletions = Deletions::default();
        for (entry, number) in &self.segments {
            if let Some(number) = number {
                deletions.extend(entry, self.lost[*number].iter().map(u64::from))?;
            }
        }
        Ok(deletions)
    }

    /// Has rows give way to those of the table.
    fn leave_to_table(&mut self, indexes: &[Index]) -> Result<()> {
        for index in indexes {
            let of = Of { store: self.store, table: self.table, index };
            let new = self.segments.iter().filter_map(|(entry, number)| Some((*entry, (*number)?)));
            for (entry, number) in new {
                let lost = &mut self.lost[number];
                let mut side = None;
                for (old, _) in self.segments.iter().filter(|(_, number)| number.is_none()) {
                    if !of.overlap(entry, old) {
                        continue;
                    }
                    let side = match &side {
                        Some(side) => side,
                        None => side.insert(of.open(entry)?),
                    };
                    for_each_met(of, (side, &of.open(old)?), |own, others| {
                        if !others.is_empty() {
                            lost.extend(own);
                        }
                        Ok(())
                    })?;
                }
            }
        }
        Ok(())
    }

    /// Has rows give way to others of the load.
    fn leave_to_load(&mut self, indexes: &[Index]) -> Result<()> {
        for _ in 0..ROUNDS_MAX {
            let mut round = Round::of(self);
            for index in indexes {
                round.walk(index)?;
            }
            let Round { mut lost, waiting, seen, .. } = round;
            let waits = waiting.iter().any(|waiting| !waiting.is_empty());
            if indexes.len() == 1 {
                // Who waits does so for a row that stays.
                lost.iter_mut().zip(waiting).for_each(|(lost, waiting)| *lost |= waiting);
                self.lost = lost;
                return Ok(());
            }
            for (number, (mut seen, waiting)) in seen.into_iter().zip(waiting).enumerate() {
                seen -= waiting;
                seen -= &lost[number];
                self.stay[number] |= seen;
            }
            self.lost = lost;
            if !waits {
                return Ok(());
            }
        }
        Err(Error::Limit(format!(
            "cannot add rows to table {}: rows give way to each other for values of several UNIQUE in chains of over {ROUNDS_MAX} (load \
             them in parts); nothing was added",
            self.table.name
        )))
    }
}

/// Tells the rows in both segments of each key that they have in common, with those of the first first.
fn for_each_met(
    of: Of<'_>,
    (a, b): (&Side<'_>, &Side<'_>),
    mut tell: impl FnMut(&[u32], &[u32]) -> Result<()>,
) -> Result<()> {
    match a.keys() <= b.keys() {
        true => of.for_each_met(a, b, tell),
        false => of.for_each_met(b, a, |b, a| tell(a, b)),
    }
}

/// A round in which rows of a load are settled.
struct Round<'a> {
    rows: &'a Rows<'a>,
    lost: Vec<RoaringBitmap>,
    /// Rows that share a value with an earlier row which may stay.
    waiting: Vec<RoaringBitmap>,
    /// All rows that share a value with others.
    seen: Vec<RoaringBitmap>,
}

impl<'a> Round<'a> {
    fn of(rows: &'a Rows<'a>) -> Self {
        let none = vec![RoaringBitmap::new(); rows.lost.len()];
        Round { rows, lost: rows.lost.clone(), waiting: none.clone(), seen: none }
    }

    /// Compares the values of an index of all new segments.
    fn walk(&mut self, index: &Index) -> Result<()> {
        let rows = self.rows;
        let of = Of { store: rows.store, table: rows.table, index };
        let new = || rows.segments.iter().filter_map(|(entry, n)| Some((*entry, (*n)?)));
        for (done, (entry, number)) in new().enumerate() {
            let side = of.open(entry)?;
            let mut group: Vec<Place> = Vec::new();
            of.for_each_repeated(&side, |rows| {
                group.clear();
                group.extend(rows.iter().map(|row| (number, *row)));
                self.settle(&mut group)
            })?;
            for (other, other_number) in new().take(done) {
                if !of.overlap(entry, other) {
                    continue;
                }
                for_each_met(of, (&side, &of.open(other)?), |own, others| {
                    group.clear();
                    group.extend(own.iter().map(|row| (number, *row)));
                    group.extend(others.iter().map(|row| (other_number, *row)));
                    self.settle(&mut group)
                })?;
            }
        }
        Ok(())
    }

    /// Settles rows that have the same value.
    fn settle(&mut self, group: &mut Vec<Place>) -> Result<()> {
        group.retain(|(number, row)| !self.lost[*number].contains(*row));
        if group.len() < 2 {
            return Ok(());
        }
        let stays = |(number, row): &Place| self.rows.stay[*number].contains(*row);
        let stay = group.iter().copied().find(stays);
        let first = match stay {
            Some(stay) => stay,
            None => self.first_of(group)?,
        };
        let others = match stay {
            Some(_) => &mut self.lost,
            None => &mut self.waiting,
        };
        for (number, row) in group.iter().filter(|place| **place != first) {
            others[*number].insert(*row);
        }
        for (number, row) in group.iter() {
            self.seen[*number].insert(*row);
        }
        Ok(())
    }

    /// The row that comes first in the input.
    fn first_of(&self, group: &[Place]) -> Result<Place> {
        let mut first = (u64::MAX, (0, 0));
        for (number, row) in group {
            first = first.min((self.rows.origins[*number].number(*row)?, (*number, *row)));
        }
        Ok(first.1)
    }
}
