//! A load that goes on with wider types.

use std::sync::{Arc, mpsc::channel};

use coload_store::{LoadId, LoadTarget, SegmentEntry};
use coload_threads::lock;
use coload_types::{Column, Error, Result};
use coload_wire::{ColumnsAre, PARTITIONS_MAX, REREAD_FROM, Ranges, Widen};

use super::{Active, Received};
use crate::legs::{self, Legs, Publishable};
use crate::options::Keep;
use crate::part::Part;
use crate::pool::{Class, Pool};

/// Columns of the partitions that are taken now.
#[derive(Debug)]
pub(super) struct Types {
    rows: Arc<[Column]>,
    texts: Arc<[Column]>,
}

impl Types {
    pub(super) fn new(legs: &Legs) -> Self {
        let rows: Arc<[Column]> = legs.last().columns().into();
        let texts = legs.text_columns().into_iter().map(|column| rows[column].clone()).collect();
        Types { rows, texts }
    }

    /// Those of a partition.
    pub(super) fn of(&self, number: u32) -> Arc<[Column]> {
        Arc::clone(if number < PARTITIONS_MAX { &self.rows } else { &self.texts })
    }
}

impl Received {
    /// Checks that all texts are there that are wanted.
    pub(super) fn check_reread(&self) -> Result<()> {
        let texts = self.parts.range(REREAD_FROM..).map(|(number, _)| number - REREAD_FROM);
        if texts.eq(0..self.legs.reread_partitions()) {
            return Ok(());
        }
        Err(Error::Corrupt("the text of columns that became text lacks; nothing was loaded".into()))
    }
}

/// Makes segments as they are published, on the threads for loads.
pub(super) fn convert_all(segments: Vec<Publishable>, pool: &Pool) -> Result<Vec<SegmentEntry>> {
    let (tell, told) = channel();
    let mut entries: Vec<Option<SegmentEntry>> = Vec::with_capacity(segments.len());
    for (index, segment) in segments.into_iter().enumerate() {
        entries.push(match segment {
            Publishable::As(entry) => Some(entry),
            Publishable::Converted(conversion) => {
                let tell = tell.clone();
                // Nobody listens any more when another failed.
                pool.submit(Class::Block, move || drop(tell.send((index, conversion.run()))));
                None
            }
        });
    }
    drop(tell);
    for (index, converted) in told {
        entries[index] = Some(converted?);
    }
    let whole: Option<Vec<SegmentEntry>> = entries.into_iter().collect();
    // A job that panics tells nothing.
    whole.ok_or_else(super::panicked)
}

impl Active {
    /// Where it goes, with the last types.
    pub fn target(&self) -> LoadTarget {
        LoadTarget { schema: lock(&self.received).legs.last().clone(), ..self.target.clone() }
    }

    /// The ranges of columns over the partitions of the last types.
    ///
    /// # Errors
    /// `Refused` when it is another attempt's, `Corrupt` when the journal is damaged.
    pub fn ranges(&self, attempt: u64) -> Result<Ranges> {
        let received = lock(&self.received);
        self.check_attempt(attempt)?;
        let width = received.legs.last().len();
        let parts = received
            .parts
            .range(received.legs.first_of_last()..PARTITIONS_MAX)
            .filter(|(_, p)| p.rows > 0);
        let parts: Vec<(u32, Part)> = parts.map(|(n, p)| (*n, p.clone())).collect();
        drop(received);
        if self.keep == Keep::Nothing {
            return Ok(Ranges { columns: vec![None; width] });
        }
        let journal = lock(&self.journal);
        let journal = journal.as_ref().ok_or_else(|| self.is_over())?;
        let entries = parts.iter().map(|(number, part)| part.entry_in(journal, *number));
        let entries = entries.collect::<Result<Vec<_>>>()?;
        Ok(legs::ranges(width, entries.iter().map(|entry| &entry.columns[..])))
    }

    /// The load that is published.
    pub fn published_as(&self) -> LoadId {
        lock(&self.received).legs.published_as.unwrap_or(self.id)
    }

    /// Takes wider types for the partitions that are not durable; the load is published as `id`. Ends the attempt: what is under way of it has the
    /// types before.
    ///
    /// # Errors
    /// `Refused` when it is another attempt's, `Corrupt` when the types are none of this load, or not all partitions
    /// before are durable, `Unavailable` when the disk fails.
    pub fn widen(&self, attempt: u64, widen: Widen, id: LoadId) -> Result<()> {
        let mut received = lock(&self.received);
        self.check_attempt(attempt)?;
        let given = self.description.columns_are == ColumnsAre::Given
            || self.description.rows.program.is_some()
            || !self.target.schema.checks().is_empty();
        if given || !received.parts.keys().copied().eq(0..widen.partitions) {
            return Err(Error::Corrupt(format!(
                "wider columns after {} partitions of load {}",
                widen.partitions, self.id
            )));
        }
        let journal = lock(&self.journal);
        received.legs.add(widen, id, journal.as_ref().ok_or_else(|| self.is_over())?)?;
        *lock(&self.types) = Types::new(&received.legs);
        received.under_way.clear();
        let over = format!("load {} goes on with wider types in the next attempt", self.id);
        received.failed = Some(Error::Unavailable(over));
        Ok(())
    }
}
