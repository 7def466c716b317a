//! The columns of a load, from which partition on: they become wider while it runs.
//!
//! ```text
//!   partitions  0 1 2 | 3 4 5        a BIGINT | DECIMAL
//!   published   0'1'2'  3 4 5        segments of the legs before are written again with the last types
//! ```
//!
//! Of columns that became text the client sends the text of the partitions before, under numbers of their own.
//!
//! The journal has each leg before its first partition is taken, so that whoever goes on knows the types of all. What is
//! published is the load of the last types: its id is that which a client has who begins with these, as one does when the
//! table is there.

use std::path::PathBuf;

use coload_ddl::Schema;
use coload_store::{
    ColumnStats, LoadId, LoadJournal, Reread, SegmentEntry, SegmentFile, SegmentWriter, TypeChange,
    converts, text_columns, write_reordered,
};
use coload_types::bytes::ByteReader;
use coload_types::{Error, Result, Value};
use coload_wire::{LoadDescription, REREAD_FROM, Ranges, Widen};

/// The legs of a load.
#[derive(Debug, Clone)]
pub struct Legs {
    /// The first partition of each, and its columns; at least one.
    legs: Vec<(u32, Schema)>,
    /// What the load that is published is known by, if that is another than was begun.
    pub published_as: Option<LoadId>,
}

impl Legs {
    /// Those of a journal.
    ///
    /// # Errors
    /// `Corrupt` when it is damaged.
    pub fn open(description: &LoadDescription, journal: &LoadJournal) -> Result<Self> {
        let mut legs = vec![(0, description.schema.clone())];
        let mut published_as = None;
        for (number, bytes) in journal.legs()? {
            let mut reader = ByteReader::new(&bytes);
            published_as = Some(LoadId::from_u128(reader.i128()? as u128));
            let schema = Widen::decode(reader.take(reader.remaining())?)?.schema;
            legs.push((number, schema.with_rules_of(&description.schema)?));
        }
        Ok(Legs { legs, published_as })
    }

    /// The first partition of the last types.
    pub fn first_of_last(&self) -> u32 {
        self.legs.last().map_or(0, |(first, _)| *first)
    }

    /// Types of the last leg, which the load has now.
    pub fn last(&self) -> &Schema {
        // There is at least one.
        &self.legs[self.legs.len() - 1].1
    }

    /// Whether the types became wider.
    pub fn is_wider(&self) -> bool {
        self.legs.len() > 1
    }

    fn of(&self, partition: u32) -> &Schema {
        let after = self.legs.partition_point(|(first, _)| *first <= partition);
        &self.legs[after.max(1) - 1].1
    }

    /// Adds a leg, of a load that is published as `id`: durable when this returns.
    ///
    /// # Errors
    /// `Corrupt` when its columns are others, `Unavailable` when the disk fails.
    pub fn add(&mut self, widen: Widen, id: LoadId, journal: &LoadJournal) -> Result<()> {
        if widen.partitions < self.first_of_last() || !converts(self.last(), &widen.schema) {
            return Err(Error::Corrupt("columns that are none of the load, and wider".into()));
        }
        let mut bytes = id.as_u128().to_le_bytes().to_vec();
        bytes.extend(widen.encode());
        journal.put_leg(widen.partitions, bytes)?;
        self.published_as = Some(id);
        self.legs.retain(|(first, _)| *first != widen.partitions);
        self.legs.push((widen.partitions, widen.schema));
        Ok(())
    }

    /// The columns that became text.
    pub fn text_columns(&self) -> Vec<usize> {
        text_columns(&self.legs[0].1, self.last())
    }

    /// Partitions of which the text of those is wanted: all before the last of them became text.
    pub fn reread_partitions(&self) -> u32 {
        let legs = self.legs.windows(2);
        let mut texts = legs.filter(|leg| !text_columns(&leg[0].1, &leg[1].1).is_empty());
        texts.next_back().map_or(0, |leg| leg[1].0)
    }

    /// How the segment of a partition is published: with the last types, and named after `load`, the id of the load
    /// that is published.
    ///
    /// # Errors
    /// `Corrupt` when the journal is damaged, `Unavailable` when the disk fails.
    pub fn publishable(
        &self,
        journal: &LoadJournal,
        partition: u32,
        entry: SegmentEntry,
        load: LoadId,
    ) -> Result<Publishable> {
        let (from, to) = (self.of(partition), self.last());
        if from.columns().iter().map(|c| c.data_type).eq(to.columns().iter().map(|c| c.data_type)) {
            let file = journal.name_segment_as(load, partition)?;
            return Ok(Publishable::As(SegmentEntry { file, load, ..entry }));
        }
        let path = journal.segment_path_as(load, partition)?;
        let name = path.file_name().map(|name| name.to_string_lossy().into_owned());
        let file = name.unwrap_or_default();
        let has_text = partition < self.reread_partitions();
        let texts = self.text_columns();
        Ok(Publishable::Converted(Box::new(Conversion {
            old: journal.existing_segment_path(partition),
            texts: has_text.then(|| journal.existing_segment_path(REREAD_FROM + partition)),
            // The text comes in the order of the input.
            rows: match journal.rows(partition)? {
                Some(rows) if has_text => {
                    Some((rows, journal.segment_path_as(load, REREAD_FROM + partition)?))
                }
                _ => None,
            },
            change: TypeChange::new(
                from.columns(),
                to.columns(),
                if has_text { &texts } else { &[] },
            )?,
            text_columns: texts.len(),
            path,
            entry: SegmentEntry { file, load, ..entry },
        })))
    }
}

/// A segment that is to be published.
pub enum Publishable {
    /// Its columns have the types of the last leg.
    As(SegmentEntry),
    /// Its columns become wider.
    Converted(Box<Conversion>),
}

/// A segment whose columns become wider.
pub struct Conversion {
    old: PathBuf,
    /// The segment with the text of its rows.
    texts: Option<PathBuf>,
    /// Which of these its rows are, if they were sorted before they came, and where their text may be sorted, too.
    rows: Option<(Vec<u32>, PathBuf)>,
    text_columns: usize,
    change: TypeChange,
    path: PathBuf,
    entry: SegmentEntry,
}

impl Conversion {
    /// Writes the segment.
    ///
    /// # Errors
    /// `Corrupt` when the last types do not hold its values, or its text is of other rows; `Unavailable` when the disk
    /// fails.
    pub fn run(self) -> Result<SegmentEntry> {
        let old = SegmentFile::open(&self.old)?;
        let (mut reread, mut pages) = (Reread::default(), Vec::new());
        if let Some(path) = &self.texts {
            let mut texts = SegmentFile::open(path)?;
            if let Some((rows, sorted)) = &self.rows {
                write_reordered(&texts, rows, &SegmentWriter::create(sorted)?)?;
                texts = SegmentFile::open(sorted)?;
                // It is open as long as it is needed.
                std::fs::remove_file(sorted).map_err(|e| Error::io("remove", sorted, &e))?;
            }
            reread = Reread::of_segment(texts, self.text_columns)?;
            pages = reread.take(old.page_rows())?;
        }
        let (new, _) = self.change.write(&old, (&reread, &pages), &self.path)?;
        let (seal, columns) = (Some(new.seal), new.columns);
        Ok(SegmentEntry { bytes: new.bytes, seal, columns, ..self.entry })
    }
}

/// The ranges of columns over some segments.
pub fn ranges<'a>(width: usize, segments: impl Iterator<Item = &'a [ColumnStats]>) -> Ranges {
    let mut columns: Vec<Option<(Value, Value)>> = vec![None; width];
    for stats in segments {
        for (column, stats) in columns.iter_mut().zip(stats) {
            let (Some(least), Some(largest)) = (&stats.min, &stats.max) else { continue };
            *column = Some(match column.take() {
                None => (least.clone(), largest.clone()),
                Some((low, high)) => (low.min(least.clone()), high.max(largest.clone())),
            });
        }
    }
    Ranges { columns }
}
