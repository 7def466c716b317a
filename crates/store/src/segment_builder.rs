//! Partitions become segments: plain pages are written at once, dictionaries and their codes wait
//! until the segment's partitions are merged.
//!
//! ```text
//!   partition 0   plain pages, fragment by fragment -> file
//!                 dictionary + codes --+
//!   partition 1   plain pages ---------|-----------> file
//!                 dictionary + codes --+-- merge ----> file, then indexes, footer, fsync
//! ```
//!
//! Pages of columns that were never meant to have codes are written as soon as their fragment is verified and the
//! partition before has gone into a segment: they are most of what a partition would hold in memory.
//!
//! A segment is closed when what waits reaches its share of the memory budget, which depends on the
//! data and the options only.

use std::collections::BTreeMap;
use std::ops::Range;
use std::sync::{
    Arc, Mutex,
    atomic::{AtomicUsize, Ordering},
};

use coload_page::{Page, PageMeta};
use coload_threads::{Step, StepClock, lock};
use coload_transform::{FinalPage, PartitionColumn, merge_column};
use coload_types::{Error, Physical, Result};

use crate::{FinishedColumn, SegmentSummary, SegmentWriter};

/// A segment that still takes partitions.
#[derive(Debug)]
pub struct OpenSegment {
    /// Number in the load.
    pub number: u32,
    writer: Arc<SegmentWriter>,
    page_rows: Vec<u32>,
    columns: Vec<OpenColumn>,
    waiting_bytes: usize,
    plain_bytes: u64,
    /// Partitions that the segment has taken so far.
    pub partitions: usize,
}

/// A column of an open segment: a part for each partition.
#[derive(Debug, Default)]
struct OpenColumn {
    parts: Vec<Part>,
}

/// What one partition gave to a column.
#[derive(Debug)]
enum Part {
    /// Waits for the merge.
    Coded(PartitionColumn),
    /// Being written, or written.
    Plain(PlainPart),
}

/// Plain pages of a column in a partition.
#[derive(Debug)]
struct PlainPart {
    partition: usize,
    symbols: Vec<Vec<u8>>,
    /// Writes, and which of their pages are the column's.
    writes: Vec<(Arc<PlainWrite>, Range<usize>)>,
}

/// Plain pages on their way to their place in the file.
#[derive(Debug)]
pub struct PlainWrite {
    writer: Arc<SegmentWriter>,
    offset: u64,
    state: Mutex<WriteState>,
}

#[derive(Debug)]
enum WriteState {
    Pending(Vec<Page>),
    Written(Vec<PageMeta>),
    Failed(Error),
}

impl PlainWrite {
    /// Writes the pages, unless that was done; whoever needs the places next may call it.
    ///
    /// # Errors
    /// `Unavailable` when the disk is full or broken.
    pub fn run(&self, clock: &StepClock) -> Result<()> {
        let mut state = lock(&self.state);
        if let WriteState::Pending(pages) = &*state {
            let write = || self.writer.write_pages(self.offset, pages);
            *state = match clock.time(Step::Write, write) {
                Ok(metas) => WriteState::Written(metas),
                Err(error) => WriteState::Failed(error),
            };
        }
        match &*state {
            WriteState::Failed(error) => Err(error.clone()),
            WriteState::Pending(_) | WriteState::Written(_) => Ok(()),
        }
    }

    fn metas(&self, pages: &Range<usize>) -> Vec<PageMeta> {
        match &*lock(&self.state) {
            WriteState::Written(metas) => metas[pages.clone()].to_vec(),
            WriteState::Pending(_) | WriteState::Failed(_) => Vec::new(),
        }
    }
}

impl OpenSegment {
    /// A segment without partitions.
    pub fn new(number: u32, writer: SegmentWriter, width: usize) -> Self {
        OpenSegment {
            number,
            writer: Arc::new(writer),
            page_rows: Vec::new(),
            columns: (0..width).map(|_| OpenColumn::default()).collect(),
            waiting_bytes: 0,
            plain_bytes: 0,
            partitions: 0,
        }
    }

    /// Takes pages of a fragment before its partition; gives their write, to be run by anyone.
    pub fn push_early(&mut self, partition: usize, early: Vec<FinalPage>) -> Arc<PlainWrite> {
        let columns: Vec<_> = early.iter().map(|f| (f.column, f.symbols.clone())).collect();
        let write = self.write(early.into_iter().map(|f| f.page).collect());
        for (index, (column, encoder)) in columns.into_iter().enumerate() {
            let parts = &mut self.columns[column].parts;
            let page = (Arc::clone(&write), index..index + 1);
            match parts.last_mut() {
                Some(Part::Plain(part)) if part.partition == partition => part.writes.push(page),
                _ => {
                    let symbols = encoder.map(|e| e.table()).into_iter().collect();
                    parts.push(Part::Plain(PlainPart { partition, symbols, writes: vec![page] }));
                }
            }
        }
        write
    }

    fn write(&mut self, pages: Vec<Page>) -> Arc<PlainWrite> {
        self.plain_bytes += pages.iter().map(|page| page.bytes.len() as u64).sum::<u64>();
        Arc::new(PlainWrite {
            writer: Arc::clone(&self.writer),
            offset: self.writer.reserve(&pages),
            state: Mutex::new(WriteState::Pending(pages)),
        })
    }

    /// Takes the other columns of a partition; gives the writes of its plain ones, to be run by anyone.
    pub fn push(
        &mut self,
        partition: usize,
        page_rows: &[u32],
        columns: Vec<Option<PartitionColumn>>,
    ) -> Vec<Arc<PlainWrite>> {
        self.page_rows.extend_from_slice(page_rows);
        self.partitions += 1;
        let mut writes = Vec::new();
        for (index, column) in columns.into_iter().enumerate() {
            let Some(column) = column else { continue };
            if let Some(dictionary) = &column.dictionary {
                self.waiting_bytes += dictionary.bytes();
                self.waiting_bytes += column.pages.iter().map(|p| p.bytes.len()).sum::<usize>();
                self.columns[index].parts.push(Part::Coded(column));
                continue;
            }
            let pages = 0..column.pages.len();
            let write = self.write(column.pages);
            let part = PlainPart {
                partition,
                symbols: column.symbols,
                writes: vec![(Arc::clone(&write), pages)],
            };
            self.columns[index].parts.push(Part::Plain(part));
            writes.push(write);
        }
        writes
    }

    /// Says that its rows are not in the order of the table's key: it is written anew, and goes.
    pub fn will_go(&self) {
        self.writer.will_go();
    }

    /// Bytes that wait in memory for the merge.
    pub fn waiting_bytes(&self) -> usize {
        self.waiting_bytes
    }

    /// Bytes of plain pages, which are in the file or on their way there.
    pub fn plain_bytes(&self) -> u64 {
        self.plain_bytes
    }

    /// Rows so far.
    pub fn rows(&self) -> u64 {
        self.page_rows.iter().map(|rows| u64::from(*rows)).sum()
    }

    /// Takes no more partitions.
    pub fn close(self) -> ClosedSegment {
        let width = self.columns.len();
        ClosedSegment {
            number: self.number,
            writer: self.writer,
            page_rows: self.page_rows,
            columns: self.columns.into_iter().map(|c| Mutex::new(Some(c))).collect(),
            order: Mutex::new(Order::default()),
            remaining: AtomicUsize::new(width),
        }
    }
}

/// A segment whose columns are being merged.
#[derive(Debug)]
pub struct ClosedSegment {
    /// Number in the load.
    pub number: u32,
    writer: Arc<SegmentWriter>,
    page_rows: Vec<u32>,
    columns: Vec<Mutex<Option<OpenColumn>>>,
    order: Mutex<Order>,
    remaining: AtomicUsize,
}

/// Merged columns get their places in the file in column order, whoever merged them.
#[derive(Debug, Default)]
struct Order {
    next: usize,
    ready: BTreeMap<usize, MergedColumn>,
    finished: BTreeMap<usize, FinishedColumn>,
}

#[derive(Debug)]
struct MergedColumn {
    coded: PartitionColumn,
    /// For each partition: whether its pages are the next ones of `coded`, or those written before.
    parts: Vec<MergedPart>,
    physical: Physical,
}

/// A merged column's number, the column, and where its pages and its dictionary stand.
type PlacedColumn = (usize, MergedColumn, u64, Option<PageMeta>);

#[derive(Debug)]
enum MergedPart {
    Coded(usize),
    Plain(PlainPart),
}

impl ClosedSegment {
    /// Number of columns of the segment.
    pub fn width(&self) -> usize {
        self.columns.len()
    }

    /// Merges one column, once, and writes all columns whose turn it is. Says whether the segment's
    /// last column is written.
    ///
    /// # Errors
    /// `Limit` when a dictionary is too large, `Unavailable` when the disk is full or broken.
    pub fn merge(&self, column: usize, physical: Physical, clock: &StepClock) -> Result<bool> {
        let open = lock(&self.columns[column]).take().unwrap_or_default();
        for part in &open.parts {
            if let Part::Plain(part) = part {
                part.writes.iter().try_for_each(|(write, _)| write.run(clock))?;
            }
        }
        let merged = clock.time(Step::Merge, || merge_parts(open, physical))?;
        lock(&self.order).ready.insert(column, merged);
        let mut written = 0;
        while let Some((column, merged, offset, dictionary)) = self.take_next()? {
            let finished =
                clock.time(Step::Write, || self.write_column(merged, offset, dictionary))?;
            lock(&self.order).finished.insert(column, finished);
            written += 1;
        }
        Ok(written > 0 && self.remaining.fetch_sub(written, Ordering::AcqRel) == written)
    }

    /// The next column in order, if it is merged, with its place in the file.
    fn take_next(&self) -> Result<Option<PlacedColumn>> {
        let mut order = lock(&self.order);
        let next = order.next;
        let Some(merged) = order.ready.remove(&next) else { return Ok(None) };
        order.next += 1;
        // Places are given under the lock, so that they follow the order of columns.
        let dictionary = match &merged.coded.dictionary {
            Some(dictionary) => Some(self.writer.write_dictionary(dictionary)?),
            None => None,
        };
        let offset = self.writer.reserve(&merged.coded.pages);
        Ok(Some((next, merged, offset, dictionary)))
    }

    fn write_column(
        &self,
        merged: MergedColumn,
        offset: u64,
        dictionary: Option<PageMeta>,
    ) -> Result<FinishedColumn> {
        let mut coded = self.writer.write_pages(offset, &merged.coded.pages)?.into_iter();
        let (mut symbols, mut pages) = (Vec::new(), Vec::new());
        for part in merged.parts {
            match part {
                MergedPart::Coded(count) => pages.extend(coded.by_ref().take(count)),
                MergedPart::Plain(part) => {
                    let before = symbols.len() as u32;
                    symbols.extend(part.symbols);
                    for mut meta in part.writes.iter().flat_map(|(write, range)| write.metas(range))
                    {
                        meta.detail.shift_symbols(before);
                        pages.push(meta);
                    }
                }
            }
        }
        let dictionary = merged.coded.dictionary.as_ref().zip(dictionary);
        Ok(FinishedColumn::new(merged.physical, dictionary, symbols, pages))
    }

    /// Writes indexes and footer and makes the segment durable; all columns are merged, and all
    /// plain writes have run.
    ///
    /// # Errors
    /// `Unavailable` when the disk is full or broken.
    pub fn finish(&self, clock: &StepClock) -> Result<(SegmentSummary, Vec<FinishedColumn>)> {
        let finished = std::mem::take(&mut lock(&self.order).finished);
        let columns: Vec<FinishedColumn> = finished.into_values().collect();
        let summary = clock
            .time(Step::Write, || self.writer.finish(columns.clone(), self.page_rows.clone()))?;
        Ok((summary, columns))
    }
}

fn merge_parts(open: OpenColumn, physical: Physical) -> Result<MergedColumn> {
    let mut parts = Vec::with_capacity(open.parts.len());
    let mut coded = Vec::new();
    for part in open.parts {
        match part {
            Part::Coded(column) => {
                parts.push(MergedPart::Coded(column.pages.len()));
                coded.push(column);
            }
            Part::Plain(part) => parts.push(MergedPart::Plain(part)),
        }
    }
    let coded = merge_column(coded, physical)?;
    Ok(MergedColumn { coded, parts, physical })
}
