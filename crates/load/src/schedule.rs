//! What is to be done next, and by whom: the pipeline as a set of tasks over one lock.
//!
//! ```text
//!   chunks --parse--> fragments --verify in order--> partition --compress, a column a task-->
//!   segment --merge, a column a task--> finish
//! ```
//!
//! Workers take the task nearest to the end of the pipeline first, which empties memory before it is
//! filled. At most two partitions are being filled or compressed at once. What is done depends on the
//! input and the options; only who does it, and when, depends on the threads.

mod arriving;
mod raw;
mod task;

use std::collections::{BTreeMap, VecDeque};
use std::sync::Arc;

use coload_source::ChunkParser;
use coload_store::{FinishedColumn, OpenSegment, SegmentSummary};
use coload_transform::{FinalPage, PartitionColumn};
use coload_types::{Error, Result};

use crate::partition::{PartitionPlan, SealedPartition, Waiting};
use crate::reader::{PieceSpan, Whole};
use crate::stream::StreamChunk;

pub use arriving::{Ahead, Arriving, Counted, ParsedChunk, RawText};
use raw::RawChunks;
pub use raw::{HandedBack, RawFlow};
pub use task::{Flow, Sealing, Task};

/// Partitions that may be filled or compressed at once: one is filled while one is compressed.
const PARTITIONS_IN_FLIGHT: usize = 2;

/// Where partitions go.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Output {
    /// Into segments of a store.
    Segments,
    /// To a sink.
    Sink,
}

/// A partition being compressed.
#[derive(Debug)]
struct Compressing {
    page_rows: Vec<u32>,
    /// For a sink: what the partition has in all.
    blocks: u64,
    columns: Vec<Option<PartitionColumn>>,
    remaining: usize,
    /// What its fragments took.
    bytes: usize,
    /// Pages that go before the columns.
    early: Vec<Vec<FinalPage>>,
}

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

/// What a load is like.
#[derive(Debug)]
pub struct Shape {
    /// Where partitions go.
    pub output: Output,
    /// Chunks in all; `None` for a stream.
    pub chunks: Option<usize>,
    /// Where the chunk before the first ended.
    pub end_before: u64,
    /// Chunks that a stream may be ahead of the first that is not delivered.
    pub ahead_max: usize,
    /// Fragments of a partition.
    pub fragments_per_partition: usize,
    /// Chunks that are parsed at once.
    pub parsers: usize,
    /// While a partition of more bytes is compressed, nothing else is parsed.
    pub large_bytes: usize,
    /// Columns merged at once.
    pub merge_columns: usize,
    /// A segment is closed when so many bytes wait for its merge.
    pub segment_bytes: usize,
    /// Segments that the load has already.
    pub segments_before: u32,
    /// Columns of the table.
    pub width: usize,
}

impl DoneSegment {
    /// Rows of each page.
    pub fn page_rows(&self) -> Vec<u32> {
        let first = self.columns.first();
        first.map_or(Vec::new(), |column| column.index.pages.iter().map(|p| p.rows).collect())
    }
}

/// Everything the workers share and change.
#[derive(Debug)]
pub struct State {
    output: Output,
    fragments_per_partition: usize,
    parsers: usize,
    large_bytes: usize,
    merge_columns: usize,
    segment_bytes: usize,
    width: usize,
    next_chunk: usize,
    /// Chunks in all; known from the start for files, at the end for a stream.
    chunks: Option<usize>,
    redo: Vec<(usize, u64)>,
    /// Chunks that workers have and did not deliver yet.
    parsing: usize,
    /// Chunks that a stream may be ahead of the frontier.
    ahead_max: usize,
    /// Set when a chunk did not fit: the leg ends before it. Chunks of a stream from that one on, by number.
    cut: Option<BTreeMap<usize, Arc<StreamChunk>>>,
    arriving: BTreeMap<usize, Arriving>,
    /// Next chunk to verify, and where the one before it ended.
    frontier: usize,
    frontier_end: u64,
    tasks: VecDeque<Task>,
    raw: RawChunks,
    merges_running: usize,
    compressing: BTreeMap<usize, Compressing>,
    /// Partitions that have gone into segments.
    pub partitions_done: usize,
    open: Option<OpenSegment>,
    segments_started: u32,
    unfinished: usize,
    /// Durable segments.
    pub done: Vec<DoneSegment>,
    /// The first thing that went wrong.
    pub error: Option<Error>,
}

/// Where the next leg begins.
#[derive(Debug)]
pub struct NextLeg {
    /// The first chunk of this leg that is not part of it.
    pub chunk: usize,
    /// Where the chunk before it ended.
    pub end: u64,
    /// Text that was taken from a stream, in order.
    pub texts: Vec<Arc<StreamChunk>>,
}

/// What the verified chunks add to the account of the load.
#[derive(Debug, Default)]
pub struct Verified {
    /// Pieces, in order, with the numbers of their partitions.
    pub spans: Vec<(usize, PieceSpan)>,
    /// The pieces of the chunk after these, if the types are too narrow for it.
    pub unfit: Vec<PieceSpan>,
    /// What was counted of chunks that will be parsed again.
    pub in_vain: Counted,
}

impl State {
    /// Nothing done yet.
    pub fn new(shape: Shape) -> Self {
        let Shape {
            output,
            chunks,
            end_before,
            ahead_max,
            fragments_per_partition,
            parsers,
            large_bytes,
            merge_columns,
            segment_bytes,
            segments_before,
            width,
        } = shape;
        State {
            output,
            fragments_per_partition,
            parsers,
            large_bytes,
            merge_columns,
            segment_bytes,
            width,
            next_chunk: 0,
            chunks,
            redo: Vec::new(),
            parsing: 0,
            ahead_max,
            cut: None,
            arriving: BTreeMap::new(),
            frontier: 0,
            frontier_end: end_before,
            tasks: VecDeque::new(),
            raw: RawChunks::default(),
            merges_running: 0,
            compressing: BTreeMap::new(),
            partitions_done: 0,
            open: None,
            segments_started: segments_before,
            unfinished: 0,
            done: Vec::new(),
            error: None,
        }
    }

    /// Begins after the first partitions, which are done; their last record ends at `end`.
    pub fn skip(&mut self, partitions: usize, end: u64) {
        let first = partitions * self.fragments_per_partition;
        self.frontier = self.chunks.map_or(first, |chunks| chunks.min(first));
        self.next_chunk = self.frontier;
        self.frontier_end = end;
        self.partitions_done = partitions;
    }

    /// Whether there is nothing more to do, ever.
    pub fn is_finished(&self) -> bool {
        self.is_at_end()
            && self.arriving.is_empty()
            && self.compressing.is_empty()
            && self.open.is_none()
            && self.unfinished == 0
            && self.tasks.is_empty()
    }

    /// Whether all chunks are verified, and no worker has one that comes after the end of a leg.
    fn is_at_end(&self) -> bool {
        self.chunks == Some(self.frontier) && (self.cut.is_none() || self.parsing == 0)
    }

    /// The next task, if one can be done now.
    pub fn take_task(&mut self) -> Option<Task> {
        let merging = self.merges_running >= self.merge_columns;
        let runnable = |t: &Task| !(merging && matches!(t, Task::Merge { .. }));
        if let Some(at) = self.tasks.iter().position(runnable) {
            let task = self.tasks.remove(at);
            if matches!(task, Some(Task::Merge { .. })) {
                self.merges_running += 1;
            }
            return task;
        }
        let large =
            |partition: &Compressing| partition.remaining > 0 && partition.bytes > self.large_bytes;
        if self.parsing >= self.parsers || self.compressing.values().any(large) {
            return None;
        }
        if let Some((chunk, start)) = self.redo.pop() {
            self.parsing += 1;
            return Some(Task::Parse { chunk, start: Some(start) });
        }
        let partition = self.next_chunk / self.fragments_per_partition;
        if partition >= self.partitions_done + PARTITIONS_IN_FLIGHT {
            return None;
        }
        match self.chunks {
            Some(chunks) if self.next_chunk >= chunks => None,
            Some(_) => {
                self.next_chunk += 1;
                self.parsing += 1;
                Some(Task::Parse { chunk: self.next_chunk - 1, start: None })
            }
            None => (self.next_chunk - self.frontier < self.ahead_max).then_some(Task::ParseStream),
        }
    }

    /// Gives the next chunk of a stream its number.
    pub fn number_stream_chunk(&mut self) -> usize {
        self.next_chunk += 1;
        self.parsing += 1;
        self.next_chunk - 1
    }

    /// Fragments of a partition.
    pub fn fragments_per_partition(&self) -> usize {
        self.fragments_per_partition
    }

    /// Notes that the stream has ended.
    pub fn end_stream(&mut self) {
        if self.chunks.is_none() {
            self.chunks = Some(self.next_chunk);
            self.seal_if_complete();
        }
    }

    /// The partition of a chunk, while its fragments arrive.
    pub fn arriving(&mut self, chunk: usize) -> &mut Arriving {
        self.arriving.entry(chunk / self.fragments_per_partition).or_default()
    }

    /// Takes a parsed chunk and verifies all that can be verified.
    pub fn deliver(&mut self, chunk: usize, parsed: ParsedChunk) -> Verified {
        self.parsing -= 1;
        let mut verified = Verified::default();
        if self.cut.is_some() {
            self.leave(chunk, parsed, &mut verified);
            self.end_leg();
            return verified;
        }
        self.arriving(chunk).fragments.insert(chunk, parsed);
        loop {
            let (next, end) = (self.frontier, self.frontier_end);
            let Some(arriving) = self.arriving.get_mut(&(next / self.fragments_per_partition))
            else {
                return verified;
            };
            let Some(parsed) = arriving.fragments.remove(&next) else { return verified };
            let proven = |s: &PieceSpan| s.start == end && s.whole == Whole::Yes;
            if parsed.speculated && !parsed.spans.first().is_some_and(proven) {
                // A quoted newline was taken for the end of a record: parse the chunk again from
                // where the one before it ended.
                arriving.stale = true;
                self.redo.push((next, end));
                verified.in_vain = parsed.counted;
                return verified;
            }
            if parsed.unfit {
                self.cut_before(next, parsed, &mut verified);
                return verified;
            }
            self.frontier_end = parsed.spans.last().map_or(end, |s| s.end);
            self.frontier += 1;
            let number = next / self.fragments_per_partition;
            let ParsedChunk { waiting, ahead, spans, raw, .. } = parsed;
            if let Some(raw) = raw {
                let (flow, plan) = arriving.take_raw(number, waiting.rows, raw);
                arriving.verified.push(waiting);
                self.send_raw(next, flow, spans, plan);
                self.seal_if_complete();
                continue;
            }
            let flow = arriving.take_ahead(number, waiting.rows, ahead);
            arriving.verified.push(waiting);
            if let Some(flow) = flow {
                self.unfinished += 1;
                self.tasks.push_back(Task::Flow(flow));
            }
            self.account(next, number, spans, &mut verified);
            self.seal_if_complete();
        }
    }

    /// Ends the leg before a chunk that its types are too narrow for. What was parsed from there on was
    /// in vain.
    fn cut_before(&mut self, chunk: usize, mut parsed: ParsedChunk, verified: &mut Verified) {
        verified.unfit = std::mem::take(&mut parsed.spans);
        self.cut = Some(BTreeMap::new());
        self.chunks = Some(self.frontier);
        self.redo.clear();
        let mut later = vec![(chunk, parsed)];
        for arriving in self.arriving.values_mut() {
            later.extend(std::mem::take(&mut arriving.fragments));
        }
        for (chunk, parsed) in later {
            self.leave(chunk, parsed, verified);
        }
        self.end_leg();
    }

    /// Leaves a chunk to the next leg.
    fn leave(&mut self, chunk: usize, parsed: ParsedChunk, verified: &mut Verified) {
        verified.in_vain.add(parsed.counted);
        if let (Some(cut), Some(text)) = (&mut self.cut, parsed.text) {
            cut.insert(chunk, text);
        }
    }

    /// Seals what there is when the last chunk that comes after the end is delivered.
    fn end_leg(&mut self) {
        if self.parsing > 0 {
            return;
        }
        // Dictionaries have values of chunks that are left to the next leg.
        self.arriving.values_mut().for_each(|arriving| arriving.stale = true);
        self.arriving.retain(|_, arriving| !arriving.verified.is_empty());
        self.seal_if_complete();
    }

    /// Segments of the load.
    pub fn segments_started(&self) -> u32 {
        self.segments_started
    }

    /// Where the next leg begins, if this one ended before the input did.
    pub fn take_next_leg(&mut self) -> Option<NextLeg> {
        let texts = self.cut.take()?.into_values().collect();
        Some(NextLeg { chunk: self.frontier, end: self.frontier_end, texts })
    }

    /// Turns the partition behind the frontier into compress tasks if all its chunks are verified.
    fn seal_if_complete(&mut self) {
        let at_end = self.is_at_end();
        let at_boundary = self.frontier.is_multiple_of(self.fragments_per_partition);
        if self.frontier == 0 || !(at_end || at_boundary) {
            return;
        }
        if self.output == Output::Sink && self.cut.is_some() && !at_boundary {
            // Partitions begin at the same chunks in all attempts: the next makes this one anew.
            self.arriving.clear();
            return;
        }
        let number = (self.frontier - 1) / self.fragments_per_partition;
        let Some(mut arriving) = self.arriving.remove(&number) else { return };
        let fragments: Vec<Waiting> =
            arriving.verified.drain(..).filter(|fragment| fragment.rows > 0).collect();
        let mut parsers: Vec<ChunkParser> = arriving.parsers.into_iter().flatten().collect();
        if arriving.stale {
            for column in parsers.iter_mut().flat_map(|p| p.columns_mut().iter_mut()) {
                column.mark_stale();
            }
        }
        let columns = fragments.iter().flat_map(|fragment| &fragment.columns);
        let bytes = columns.map(|(_, column)| column.bytes()).sum();
        let early = std::mem::take(&mut arriving.early);
        let plan = match arriving.plan.get() {
            Some(Ok(plan)) if !fragments.is_empty() => Arc::clone(plan),
            _ => Arc::new(PartitionPlan::new(Vec::new(), Vec::new())),
        };
        let sealed = Arc::new(SealedPartition::new(number, plan, fragments, parsers));
        let width = sealed.width();
        let columns: Vec<usize> = (0..width).filter(|c| sealed.waits(*c)).collect();
        self.compressing.insert(
            number,
            Compressing {
                page_rows: sealed.page_rows.clone(),
                blocks: arriving.flown + columns.len() as u64,
                columns: (0..width).map(|_| None).collect(),
                remaining: columns.len(),
                bytes,
                early,
            },
        );
        for column in columns {
            self.tasks.push_back(Task::Compress { partition: Arc::clone(&sealed), column });
        }
    }

    /// Takes a compressed column.
    pub fn compressed(&mut self, partition: usize, column: usize, result: PartitionColumn) {
        if let Some(compressing) = self.compressing.get_mut(&partition) {
            compressing.columns[column] = Some(result);
            compressing.remaining -= 1;
        }
    }

    /// Puts whole partitions into segments, in order, and closes the last segment at the end.
    ///
    /// # Errors
    /// `Unavailable` when a segment cannot be made.
    pub fn push_partitions(&mut self, create: &CreateSegment<'_>) -> Result<()> {
        self.push_early(create)?;
        while let Some(entry) = self.compressing.first_entry() {
            if *entry.key() != self.partitions_done
                || entry.get().remaining > 0
                || self.raw.awaits(self.partitions_done)
            {
                break;
            }
            let mut partition = entry.remove();
            let Compressing { blocks, page_rows, .. } = &mut partition;
            self.raw.correct(self.partitions_done, blocks, page_rows);
            self.partitions_done += 1;
            if self.output == Output::Sink {
                self.unfinished += 1;
                self.tasks.push_back(Task::Seal(Sealing {
                    partition: self.partitions_done - 1,
                    blocks: partition.blocks,
                    page_rows: partition.page_rows,
                }));
            } else if !partition.page_rows.is_empty() {
                self.push_partition(partition, create)?;
            }
            self.push_early(create)?;
        }
        let at_end = self.is_at_end();
        if at_end && self.arriving.is_empty() && self.compressing.is_empty() {
            self.close_segment();
        }
        Ok(())
    }

    /// Puts pages that need not wait into the segment of their partition, which is known when the one before
    /// has gone.
    fn push_early(&mut self, create: &CreateSegment<'_>) -> Result<()> {
        let number = self.partitions_done;
        let early = match (self.arriving.get_mut(&number), self.compressing.get_mut(&number)) {
            (Some(arriving), _) => std::mem::take(&mut arriving.early),
            (None, Some(compressing)) => std::mem::take(&mut compressing.early),
            (None, None) => return Ok(()),
        };
        for pages in early {
            let write = self.open_segment(create)?.push_early(number, pages);
            self.tasks.push_back(Task::Write(write));
        }
        Ok(())
    }

    /// The segment that takes the next partition.
    fn open_segment(&mut self, create: &CreateSegment<'_>) -> Result<&mut OpenSegment> {
        match &mut self.open {
            Some(open) => Ok(open),
            none => {
                let number = self.segments_started;
                self.segments_started += 1;
                Ok(none.insert(OpenSegment::new(number, create(number)?, self.width)))
            }
        }
    }

    fn push_partition(&mut self, partition: Compressing, create: &CreateSegment<'_>) -> Result<()> {
        let number = self.partitions_done - 1;
        let open = self.open_segment(create)?;
        let writes = open.push(number, &partition.page_rows, partition.columns);
        let full = open.waiting_bytes() >= self.segment_bytes;
        self.tasks.extend(writes.into_iter().map(Task::Write));
        if full {
            self.close_segment();
        }
        Ok(())
    }

    fn close_segment(&mut self) {
        let Some(open) = self.open.take() else { return };
        let segment = Arc::new(open.close());
        self.unfinished += 1;
        for column in 0..segment.width() {
            self.tasks.push_back(Task::Merge { segment: Arc::clone(&segment), column });
        }
    }

    /// Notes that a flow or a seal is sent.
    pub fn sent(&mut self) {
        self.unfinished -= 1;
    }

    /// Notes that a merge task has ended.
    pub fn merged(&mut self) {
        self.merges_running -= 1;
    }

    /// Takes a durable segment.
    pub fn segment_done(&mut self, segment: DoneSegment) {
        self.unfinished -= 1;
        self.done.push(segment);
    }
}

/// Makes the writer of a segment by its number.
pub type CreateSegment<'a> = dyn Fn(u32) -> Result<coload_store::SegmentWriter> + 'a;
