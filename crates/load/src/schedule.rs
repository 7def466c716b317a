//! What is to be done next, and by whom: the pipeline as a set of tasks over one lock.
//!
//! ```text
//!   chunks --parse--> fragments --verify in order--> partition --compress, a column a task-->
//!   target --its own work--> finish
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

use coload_types::Error;

use crate::format::{Parser, PieceSpan, Whole};
use crate::partition::{PartitionPlan, SealedPartition, Waiting};
use crate::target::{Lane, Works};

pub use arriving::{Arriving, Counted, ParsedChunk, RawText};
pub use raw::HandedBack;
use raw::RawChunks;
pub use task::{Sealing, Task};

/// Partitions that may be filled or compressed at once: one is filled while one is compressed.
const PARTITIONS_IN_FLIGHT: usize = 2;

/// A partition being compressed.
#[derive(Debug)]
struct Compressing {
    page_rows: Vec<u32>,
    /// What the target gets of the partition in all.
    blocks: u64,
    remaining: usize,
    /// What its fragments took.
    bytes: usize,
}

/// What a load is like.
#[derive(Debug)]
pub struct Shape {
    /// Whether partitions stay when an attempt ends early.
    pub keeps_partitions: bool,
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
}

/// Everything the workers share and change.
#[derive(Debug)]
pub struct State<P> {
    keeps_partitions: bool,
    fragments_per_partition: usize,
    parsers: usize,
    large_bytes: usize,
    merge_columns: usize,
    next_chunk: usize,
    /// Chunks in all; known from the start where they are cut beforehand, else at the end.
    chunks: Option<usize>,
    redo: Vec<(usize, u64)>,
    /// Chunks that workers have and did not deliver yet.
    parsing: usize,
    /// Chunks that come one by one may be so many ahead of the frontier.
    ahead_max: usize,
    /// Set when a chunk did not fit: the leg ends before it.
    is_cut: bool,
    arriving: BTreeMap<usize, Arriving<P>>,
    /// Next chunk to verify, and where the one before it ended.
    frontier: usize,
    frontier_end: u64,
    tasks: VecDeque<Task>,
    raw: RawChunks,
    merges_running: usize,
    compressing: BTreeMap<usize, Compressing>,
    /// Partitions that the target was given.
    pub partitions_done: usize,
    /// Fragments and ends of partitions that the target has not taken yet.
    delivering: usize,
    /// Texts and work of the target that are not done.
    unfinished: usize,
    /// Whether the target was told that no partition comes any more.
    has_ended: bool,
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

impl<P: Parser> State<P> {
    /// The state of a load of which nothing is done yet.
    pub fn new(shape: Shape) -> Self {
        let Shape {
            keeps_partitions,
            chunks,
            end_before,
            ahead_max,
            fragments_per_partition,
            parsers,
            large_bytes,
            merge_columns,
        } = shape;
        State {
            keeps_partitions,
            fragments_per_partition,
            parsers,
            large_bytes,
            merge_columns,
            next_chunk: 0,
            chunks,
            redo: Vec::new(),
            parsing: 0,
            ahead_max,
            is_cut: false,
            arriving: BTreeMap::new(),
            frontier: 0,
            frontier_end: end_before,
            tasks: VecDeque::new(),
            raw: RawChunks::default(),
            merges_running: 0,
            compressing: BTreeMap::new(),
            partitions_done: 0,
            delivering: 0,
            unfinished: 0,
            has_ended: false,
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
        self.has_ended && self.unfinished == 0
    }

    /// Whether the target was given all partitions.
    fn has_delivered_all(&self) -> bool {
        self.is_at_end()
            && self.arriving.is_empty()
            && self.compressing.is_empty()
            && self.delivering == 0
    }

    /// Whether all chunks are verified, and no worker has one that comes after the end of a leg.
    fn is_at_end(&self) -> bool {
        self.chunks == Some(self.frontier) && (!self.is_cut || self.parsing == 0)
    }

    /// Chunks that are verified.
    pub fn frontier(&self) -> usize {
        self.frontier
    }

    /// The next task, if one can be done now.
    pub fn take_task(&mut self) -> Option<Task> {
        let is_merge = |task: &Task| matches!(task, Task::Work(work) if work.lane() == Lane::Merge);
        let merging = self.merges_running >= self.merge_columns;
        if let Some(at) = self.tasks.iter().position(|task| !(merging && is_merge(task))) {
            let task = self.tasks.remove(at);
            self.merges_running += usize::from(task.as_ref().is_some_and(is_merge));
            return task;
        }
        if self.has_delivered_all() && !self.has_ended {
            self.has_ended = true;
            self.unfinished += 1;
            return Some(Task::End);
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
            None => (self.next_chunk - self.frontier < self.ahead_max).then_some(Task::TakeChunk),
        }
    }

    /// Gives the next chunk its number, where they come one by one.
    pub fn number_taken_chunk(&mut self) -> usize {
        self.next_chunk += 1;
        self.parsing += 1;
        self.next_chunk - 1
    }

    /// Fragments of a partition.
    pub fn fragments_per_partition(&self) -> usize {
        self.fragments_per_partition
    }

    /// Notes that no chunk comes any more.
    pub fn end_chunks(&mut self) {
        if self.chunks.is_none() {
            self.chunks = Some(self.next_chunk);
            self.seal_if_complete();
        }
    }

    /// The partition of a chunk, while its fragments arrive.
    pub fn arriving(&mut self, chunk: usize) -> &mut Arriving<P> {
        self.arriving.entry(chunk / self.fragments_per_partition).or_default()
    }

    /// Takes a parsed chunk and verifies all that can be verified.
    pub fn deliver(&mut self, chunk: usize, parsed: ParsedChunk) -> Verified {
        self.parsing -= 1;
        let mut verified = Verified::default();
        if self.is_cut {
            verified.in_vain.add(parsed.counted);
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
                self.cut_before(parsed, &mut verified);
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
            let ahead = arriving.take_ahead(number, waiting.rows, ahead);
            arriving.verified.push(waiting);
            if let Some(ahead) = ahead {
                self.delivering += 1;
                self.tasks.push_back(Task::Ahead(ahead));
            }
            self.account(next, number, spans, &mut verified);
            self.seal_if_complete();
        }
    }

    /// Ends the leg before a chunk that its types are too narrow for. What was parsed from there on was
    /// in vain.
    fn cut_before(&mut self, mut parsed: ParsedChunk, verified: &mut Verified) {
        verified.unfit = std::mem::take(&mut parsed.spans);
        self.is_cut = true;
        self.chunks = Some(self.frontier);
        self.redo.clear();
        verified.in_vain.add(parsed.counted);
        for arriving in self.arriving.values_mut() {
            let later = std::mem::take(&mut arriving.fragments).into_values();
            later.for_each(|parsed| verified.in_vain.add(parsed.counted));
        }
        self.end_leg();
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

    /// Where the next leg begins, if this one ended before the input did.
    pub fn take_next_leg(&mut self) -> Option<NextLeg> {
        let next = NextLeg { chunk: self.frontier, end: self.frontier_end };
        std::mem::take(&mut self.is_cut).then_some(next)
    }

    /// Turns the partition behind the frontier into compress tasks if all its chunks are verified.
    fn seal_if_complete(&mut self) {
        let at_end = self.is_at_end();
        let at_boundary = self.frontier.is_multiple_of(self.fragments_per_partition);
        if self.frontier == 0 || !(at_end || at_boundary) {
            return;
        }
        if self.keeps_partitions && self.is_cut && !at_boundary {
            // Partitions begin at the same chunks in all attempts: the next makes this one anew.
            self.arriving.clear();
            return;
        }
        let number = (self.frontier - 1) / self.fragments_per_partition;
        let Some(mut arriving) = self.arriving.remove(&number) else { return };
        let fragments: Vec<Waiting> =
            arriving.verified.drain(..).filter(|fragment| fragment.rows > 0).collect();
        let mut parsers: Vec<P> = arriving.parsers.into_iter().flatten().collect();
        if arriving.stale {
            parsers.iter_mut().for_each(P::mark_stale);
        }
        let columns = fragments.iter().flat_map(|fragment| &fragment.columns);
        let bytes = columns.map(|(_, column)| column.bytes()).sum();
        let plan = match arriving.plan.get() {
            Some(Ok(plan)) if !fragments.is_empty() => Arc::clone(plan),
            _ => Arc::new(PartitionPlan::new(Vec::new(), Vec::new())),
        };
        let dictionaries = parsers.into_iter().map(P::into_dictionaries).collect();
        let sealed = Arc::new(SealedPartition::new(number, plan, fragments, dictionaries));
        let width = sealed.width();
        let columns: Vec<usize> = (0..width).filter(|c| sealed.waits(*c)).collect();
        self.compressing.insert(
            number,
            Compressing {
                page_rows: sealed.page_rows.clone(),
                blocks: arriving.flown + columns.len() as u64,
                remaining: columns.len(),
                bytes,
            },
        );
        for column in columns {
            self.tasks.push_back(Task::Compress { partition: Arc::clone(&sealed), column });
        }
    }

    /// Notes that the target has a column of a partition.
    pub fn compressed(&mut self, partition: usize) {
        if let Some(compressing) = self.compressing.get_mut(&partition) {
            compressing.remaining -= 1;
        }
        self.seal_partitions();
    }

    /// Ends whole partitions, in order.
    pub fn seal_partitions(&mut self) {
        while let Some(entry) = self.compressing.first_entry() {
            if *entry.key() != self.partitions_done
                || entry.get().remaining > 0
                || self.raw.awaits(self.partitions_done)
            {
                return;
            }
            let partition = self.partitions_done;
            let Compressing { mut blocks, mut page_rows, .. } = entry.remove();
            self.raw.correct(partition, &mut blocks, &mut page_rows);
            self.partitions_done += 1;
            self.delivering += 1;
            self.tasks.push_back(Task::Seal(Sealing { partition, blocks, page_rows }));
        }
    }

    /// Notes that the target has taken a fragment or the end of a partition, and takes the work that it left.
    pub fn delivered(&mut self, works: Works) {
        self.delivering -= 1;
        self.add_works(works);
    }

    /// Notes that work of the target is done, or that it was told of the end; takes the work that this left.
    pub fn worked(&mut self, lane: Lane, works: Works) {
        self.merges_running -= usize::from(lane == Lane::Merge);
        self.unfinished -= 1;
        self.add_works(works);
    }

    fn add_works(&mut self, works: Works) {
        self.unfinished += works.len();
        self.tasks.extend(works.into_iter().map(Task::Work));
    }

    /// Notes that a text is sent.
    pub fn sent_raw(&mut self) {
        self.unfinished -= 1;
    }
}
