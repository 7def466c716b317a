//! Partitions into segments of a store, or nowhere, to know what they would be.
//!
//! Segments of a load that may go on later are kept in its journal, too, as soon as they are whole.
//!
//! Fragments and partitions are put into segments in their order, whoever brings them first, so that the files depend on
//! the input and the options only.

use std::collections::BTreeMap;
use std::path::PathBuf;
use std::sync::{Arc, Mutex};

use coload_ddl::Schema;
use coload_page::{Page, PageDetail, PageMeta};
use coload_store::{
    ClosedSegment, FinishedColumn, LoadDir, OpenSegment, PlainWrite, SegmentSummary, SegmentWriter,
};
use coload_threads::{Step, StepClock, lock};
use coload_transform::PartitionColumn;
use coload_types::{Physical, Result};
use coload_wire::{PartitionAccount, Seal};

use super::arriving::{Arriving, final_pages};
use super::{Ahead, Lane, Target, Work, Works};
use crate::grain::Grain;
use crate::resume::{ResumeJournal, ResumedLeg};

/// A segment that is durable.
#[derive(Debug)]
pub struct DoneSegment {
    /// Number in the load.
    pub number: u32,
    /// Rows, bytes, statistics.
    pub summary: SegmentSummary,
    /// Its columns.
    pub columns: Vec<FinishedColumn>,
}

impl DoneSegment {
    /// Rows of each page.
    pub fn page_rows(&self) -> Vec<u32> {
        let rows = |column: &FinishedColumn| {
            column.index.pages.iter().map(|page: &PageMeta| page.rows).collect()
        };
        self.columns.first().map_or_else(Vec::new, rows)
    }
}

/// Makes segments of partitions.
#[derive(Debug)]
pub struct Segments<'a> {
    /// Where they go; nowhere if there is none.
    dir: Option<&'a LoadDir>,
    schema: Schema,
    /// A segment is closed when so many bytes wait for its merge,
    segment_bytes: usize,
    /// or when it has so many rows, which are sorted at once,
    sorted_rows: u64,
    /// or so many bytes of them in the file, whatever was expected of rows.
    sorted_bytes: u64,
    /// or so many with those that wait, if it is kept as soon as it is whole.
    kept_bytes: u64,
    /// or so many wait when the last partitions begin, which come slowly.
    slow_bytes: usize,
    filling: Mutex<Filling>,
    done: Arc<Mutex<Vec<DoneSegment>>>,
    /// Where segments are kept, if the load may go on later.
    journal: Option<Arc<ResumeJournal>>,
    /// What an earlier attempt kept of the leg.
    kept: Vec<DoneSegment>,
    known: Vec<PartitionAccount>,
}

#[derive(Debug, Default)]
struct Filling {
    open: Option<OpenSegment>,
    /// Segments of the load so far.
    started: u32,
    /// The partition that goes into a segment next, and its fragment whose pages do.
    partition: usize,
    fragment: u32,
    /// The first of the last partitions, if these come slowly.
    last: Option<usize>,
    /// What came of partitions from that one on.
    partitions: BTreeMap<usize, Arriving>,
    /// What became of the records of partitions, in order, since a segment was closed.
    accounts: Vec<PartitionAccount>,
    order: SeenOrder,
}

/// What pages tell of the order of rows by the first column of the table's key. It changes nothing that is stored: segments that
/// are not in order are written anew, so that the disk need not begin to write them.
#[derive(Debug, Default)]
struct SeenOrder {
    /// That column.
    first: Option<usize>,
    /// The greatest number of the page that came last.
    last: Option<i64>,
    is_broken: bool,
}

impl SeenOrder {
    /// Looks at a page of a column.
    fn see(&mut self, column: usize, detail: &PageDetail) {
        let (min, max) = match detail {
            _ if self.first != Some(column) => return,
            PageDetail::Int { min, max } => (*min, *max),
            PageDetail::Codes { base, max, .. } => (i64::from(*base), i64::from(*max)),
            PageDetail::Wide { .. } | PageDetail::Text { .. } => return,
        };
        self.is_broken |= self.last.is_some_and(|last| min < last);
        self.last = Some(max);
    }

    /// Looks at a column of a partition.
    fn see_column(&mut self, column: usize, pages: &[Page]) {
        // Codes are of the dictionary of the partition.
        self.last = None;
        pages.iter().for_each(|page| self.see(column, &page.detail));
        self.last = None;
    }
}

impl<'a> Segments<'a> {
    /// Segments from a number on, of these columns.
    pub fn new(dir: Option<&'a LoadDir>, first: u32, schema: &Schema, grain: &Grain) -> Self {
        let key = dir.and_then(LoadDir::key);
        let sorts = key.is_some();
        let order = SeenOrder { first: key.map(|key| key.columns()[0]), ..SeenOrder::default() };
        let filling = Mutex::new(Filling { started: first, order, ..Filling::default() });
        Segments {
            dir,
            schema: schema.clone(),
            segment_bytes: grain.segment_bytes,
            sorted_rows: if sorts { grain.sorted_rows } else { u64::MAX },
            sorted_bytes: if sorts { grain.sorted_bytes } else { u64::MAX },
            kept_bytes: grain.kept_bytes as u64,
            // Rows of a table with a key are put in order later, and take a segment more to merge.
            slow_bytes: if sorts { usize::MAX } else { grain.slow_bytes },
            filling,
            done: Arc::default(),
            journal: None,
            kept: Vec::new(),
            known: Vec::new(),
        }
    }

    /// The same, behind what an earlier attempt kept of the leg; what is whole is kept in its journal.
    pub fn kept_in(mut self, journal: Arc<ResumeJournal>, leg: ResumedLeg) -> Self {
        let filling = self.filling.get_mut().unwrap_or_else(|e| e.into_inner());
        filling.started += leg.segments.len() as u32;
        filling.partition = leg.accounts.len();
        self.journal = Some(journal);
        (self.kept, self.known) = (leg.segments, leg.accounts);
        self
    }

    /// Segments that were begun, those before the first included.
    pub fn started(&self) -> u32 {
        lock(&self.filling).started
    }

    /// What became of the records of partitions behind the last segment, when all work is done: they have no rows.
    pub fn take_rest(&self) -> Vec<PartitionAccount> {
        std::mem::take(&mut lock(&self.filling).accounts)
    }

    /// The segments, in order, when all work is done.
    pub fn into_done(self) -> Vec<DoneSegment> {
        let mut done = self.kept;
        done.append(&mut lock(&self.done));
        done.sort_by_key(|segment| segment.number);
        done
    }

    /// Puts into segments what can be, in order.
    fn advance(&self, filling: &mut Filling) -> Result<Works> {
        let mut works = Works::new();
        loop {
            let number = filling.partition;
            let Some(partition) = filling.partitions.get_mut(&number) else { return Ok(works) };
            while let Some(pages) = partition.ahead.remove(&filling.fragment) {
                filling.fragment += 1;
                if !pages.is_empty() {
                    let open = open_segment(&mut filling.open, &mut filling.started, self)?;
                    pages.iter().for_each(|page| filling.order.see(page.column, &page.page.detail));
                    if filling.order.is_broken {
                        open.will_go();
                    }
                    works.push(Box::new(WritePages(open.push_early(number, pages))));
                }
            }
            let is_whole = |rows: &mut Vec<u32>| rows.len() == filling.fragment as usize;
            let Some(page_rows) = partition.page_rows.take_if(is_whole) else { return Ok(works) };
            let columns = std::mem::take(&mut partition.columns);
            filling.accounts.extend(partition.account.take());
            filling.partitions.remove(&number);
            (filling.partition, filling.fragment) = (number + 1, 0);
            if page_rows.is_empty() {
                continue;
            }
            let open = open_segment(&mut filling.open, &mut filling.started, self)?;
            if let Some(first) = filling.order.first
                && let Some(Some(column)) = columns.get(first)
            {
                filling.order.see_column(first, &column.pages);
            }
            if filling.order.is_broken {
                open.will_go();
            }
            for write in open.push(number, &page_rows, columns) {
                works.push(Box::new(WritePages(write)));
            }
            let is_sorted_alone =
                open.rows() >= self.sorted_rows || open.plain_bytes() >= self.sorted_bytes;
            let is_kept = self.journal.is_some()
                && open.plain_bytes() + open.waiting_bytes() as u64 >= self.kept_bytes;
            let is_before_last =
                filling.last == Some(filling.partition) && open.waiting_bytes() >= self.slow_bytes;
            let is_full = open.waiting_bytes() >= self.segment_bytes;
            if is_sorted_alone || is_kept || is_before_last || is_full {
                works.extend(self.close(filling, false));
            }
        }
    }

    /// Closes the segment that takes partitions, if there is one: its columns are to be merged.
    fn close(&self, filling: &mut Filling, is_last: bool) -> Vec<Box<dyn Work>> {
        let Some(open) = filling.open.take() else { return Works::new() };
        let segment = Arc::new(open.close());
        let keep = match (&self.journal, self.dir) {
            (Some(journal), Some(dir)) => Some(Arc::new(Keep {
                journal: Arc::clone(journal),
                path: dir.segment_path(segment.number),
                accounts: Mutex::new(std::mem::take(&mut filling.accounts)),
                is_last,
            })),
            _ => None,
        };
        let merge = |column| -> Box<dyn Work> {
            Box::new(MergeColumn {
                segment: Arc::clone(&segment),
                column,
                physical: self.schema.columns()[column].data_type.physical(),
                done: Arc::clone(&self.done),
                keep: keep.clone(),
            })
        };
        (0..segment.width()).map(merge).collect()
    }
}

/// The segment that takes the next partition.
fn open_segment<'s>(
    open: &'s mut Option<OpenSegment>,
    started: &mut u32,
    of: &Segments<'_>,
) -> Result<&'s mut OpenSegment> {
    match open {
        Some(open) => Ok(open),
        none => {
            let writer = match of.dir {
                Some(dir) => dir.segment_writer(*started, &of.schema)?,
                None => SegmentWriter::to_nowhere(),
            };
            let segment = OpenSegment::new(*started, writer, of.schema.len());
            *started += 1;
            Ok(none.insert(segment))
        }
    }
}

impl Target for Segments<'_> {
    fn known(&self) -> &[PartitionAccount] {
        &self.known
    }

    fn wants_accounts(&self) -> bool {
        self.journal.is_some()
    }

    fn ends_slowly_from(&self, partition: usize) {
        lock(&self.filling).last = Some(partition);
    }

    fn take_ahead(&self, ahead: Ahead) -> Result<Works> {
        let Ahead { partition, fragment, columns } = ahead;
        let pages = final_pages(columns)?;
        let mut filling = lock(&self.filling);
        filling.partitions.entry(partition).or_default().ahead.insert(fragment, pages);
        self.advance(&mut filling)
    }

    fn take_column(
        &self,
        partition: usize,
        column: usize,
        _: &[u32],
        compressed: PartitionColumn,
    ) -> Result<()> {
        let mut filling = lock(&self.filling);
        let arriving = filling.partitions.entry(partition).or_default();
        arriving.take_column(column, self.schema.len(), compressed);
        Ok(())
    }

    fn seal(&self, seal: Seal) -> Result<Works> {
        let mut filling = lock(&self.filling);
        let partition = filling.partitions.entry(seal.partition as usize).or_default();
        partition.page_rows = Some(seal.page_rows);
        partition.account = self.journal.is_some().then_some(seal.account);
        self.advance(&mut filling)
    }

    fn end(&self) -> Result<Works> {
        Ok(self.close(&mut lock(&self.filling), true))
    }

    fn rows(&self) -> u64 {
        lock(&self.done).iter().map(|segment| segment.summary.rows).sum()
    }
}

/// Plain pages on their way to their place in the file.
#[derive(Debug)]
struct WritePages(Arc<PlainWrite>);

impl Work for WritePages {
    fn run(self: Box<Self>, clock: &StepClock) -> Result<Works> {
        self.0.run(clock)?;
        Ok(Works::new())
    }
}

/// A column of a closed segment.
#[derive(Debug)]
struct MergeColumn {
    segment: Arc<ClosedSegment>,
    column: usize,
    physical: Physical,
    done: Arc<Mutex<Vec<DoneSegment>>>,
    keep: Option<Arc<Keep>>,
}

/// Keeps a segment when it is whole.
#[derive(Debug)]
struct Keep {
    journal: Arc<ResumeJournal>,
    path: PathBuf,
    accounts: Mutex<Vec<PartitionAccount>>,
    /// Whether nothing comes behind it, unless the leg was cut.
    is_last: bool,
}

impl Keep {
    fn run(&self, number: u32, summary: &SegmentSummary) -> Result<()> {
        let accounts = std::mem::take(&mut *lock(&self.accounts));
        if self.is_last {
            self.journal.wait(number, accounts);
            return Ok(());
        }
        self.journal.keep(&self.path, (number, summary), accounts)
    }
}

impl Work for MergeColumn {
    fn run(self: Box<Self>, clock: &StepClock) -> Result<Works> {
        if self.segment.merge(self.column, self.physical, clock)? {
            let (summary, columns) = self.segment.finish(clock)?;
            if let Some(keep) = &self.keep {
                clock.time(Step::Write, || keep.run(self.segment.number, &summary))?;
            }
            let done = DoneSegment { number: self.segment.number, summary, columns };
            lock(&self.done).push(done);
        }
        Ok(Works::new())
    }

    fn lane(&self) -> Lane {
        Lane::Merge
    }
}
