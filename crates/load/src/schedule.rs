//! What is to be done next, by whomever: the tasks of a load, by numbers.
//!
//! ```text
//!   chunks --read by anybody--> verified in order --> partition complete --> its columns --> sealed, in order --> end
//! ```
//!
//! Workers take the task nearest to the end first, which empties memory before it is filled. At most two partitions are
//! being filled or compressed at once. What is done depends on the input and the request; only who does it, and when,
//! depends on the workers.
//!
//! What a chunk is, what a job does, where a partition goes, and who waits for a task is known elsewhere: this is tested
//! with jobs that do nothing.

mod partitions;

use std::collections::{BTreeMap, VecDeque};

pub use partitions::Partitions;

/// Partitions that may be filled or compressed at once: one is filled while one is compressed.
const PARTITIONS_IN_FLIGHT: usize = 2;

/// Chunks, besides those that are read, that may be ahead of the first that is not verified, where they are of the next partition.
pub const CHUNKS_AHEAD: usize = 2;

/// How many jobs of a kind may be done at once.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Lane {
    /// As many as there are workers.
    Any,
    /// As many columns as the load merges at once: each takes memory.
    Merge,
}

/// Something to be done that is not looked into here.
pub trait Job {
    /// How many of its kind may be done at once.
    fn lane(&self) -> Lane {
        Lane::Any
    }
}

/// Something a worker can do.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Task<J> {
    /// Read a chunk that was cut beforehand.
    Chunk(usize),
    /// Read a chunk again: its start was speculated on, and that was wrong.
    ChunkAgain(usize),
    /// Take the next chunk, where they come one by one, and read it.
    TakeChunk,
    /// Do a job.
    Job(J),
    /// Tell the target that a partition is complete.
    Seal(usize),
    /// Tell the target that all are.
    End,
}

/// What waits for a job.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Before {
    /// The seal of a partition.
    Seal(usize),
    /// That the target is told of the end.
    End,
    /// That the load is finished.
    Finish,
}

/// What a load is like.
#[derive(Debug, Clone)]
pub struct Shape {
    /// Chunks in all; `None` where they come one by one.
    pub chunks: Option<usize>,
    /// Chunks that come one by one may be so many ahead of the first that is not verified.
    pub ahead_max: usize,
    /// Which chunks make a partition.
    pub partitions: Partitions,
    /// Chunks that are read at once.
    pub readers: usize,
    /// While a partition of more bytes is compressed, no other chunk is read.
    pub large_bytes: usize,
    /// Jobs of [`Lane::Merge`] that are done at once.
    pub merges: usize,
    /// Whether a partition that a cut would make short is left to the next leg.
    pub keeps_partitions: bool,
}

/// A partition of which all chunks are verified.
#[derive(Debug)]
struct Complete {
    /// Its jobs that are not done; `None` before they are known.
    jobs: Option<usize>,
    /// What they hold.
    bytes: usize,
}

/// What is done, what is being done, and what comes next.
#[derive(Debug)]
pub struct Schedule<J> {
    shape: Shape,
    /// Chunks in all; known from the start where they are cut beforehand, else at the end.
    chunks: Option<usize>,
    next_chunk: usize,
    again: Vec<usize>,
    /// Chunks that workers have and did not return yet.
    reading: usize,
    /// Set when a chunk did not fit: the leg ends before it.
    is_cut: bool,
    /// Next chunk to verify.
    frontier: usize,
    tasks: VecDeque<Task<J>>,
    merging: usize,
    /// Partitions of which all chunks are verified, and that are not sealed.
    complete: BTreeMap<usize, Complete>,
    completed: usize,
    /// What the seals of partitions wait for besides their jobs.
    before_seal: BTreeMap<usize, usize>,
    sealed: usize,
    /// Those of the sealed that the target is not told of yet.
    sealing: usize,
    before_end: usize,
    before_finish: usize,
    has_ended: bool,
}

impl<J: Job> Schedule<J> {
    /// Nothing is done yet.
    pub fn new(shape: Shape) -> Self {
        Schedule {
            chunks: shape.chunks,
            shape,
            next_chunk: 0,
            again: Vec::new(),
            reading: 0,
            is_cut: false,
            frontier: 0,
            tasks: VecDeque::new(),
            merging: 0,
            complete: BTreeMap::new(),
            completed: 0,
            before_seal: BTreeMap::new(),
            sealed: 0,
            sealing: 0,
            before_end: 0,
            before_finish: 0,
            has_ended: false,
        }
    }

    /// Begins after the first partitions, which are done.
    pub fn skip(&mut self, partitions: usize) {
        let first = self.shape.partitions.chunks_before(partitions);
        self.frontier = self.chunks.map_or(first, |chunks| chunks.min(first));
        self.next_chunk = self.frontier;
        (self.completed, self.sealed) = (partitions, partitions);
    }

    /// The partition of a chunk.
    pub fn partition_of(&self, chunk: usize) -> usize {
        self.shape.partitions.of(chunk)
    }

    /// Chunks that are verified.
    pub fn frontier(&self) -> usize {
        self.frontier
    }

    /// Partitions that were sealed, or are to be next.
    pub fn sealed(&self) -> usize {
        self.sealed
    }

    /// Whether the leg ended before the input did.
    pub fn is_cut(&self) -> bool {
        self.is_cut
    }

    /// Whether workers have chunks that they did not return yet.
    pub fn is_reading(&self) -> bool {
        self.reading > 0
    }

    /// Whether there is nothing more to do, ever.
    pub fn is_finished(&self) -> bool {
        self.has_ended && self.before_finish == 0
    }

    /// Whether all chunks are verified, and no worker has one that comes after the end of a leg.
    fn is_at_end(&self) -> bool {
        self.chunks == Some(self.frontier) && (!self.is_cut || self.reading == 0)
    }

    /// The next task, if one can be done now.
    pub fn take_task(&mut self) -> Option<Task<J>> {
        let is_merge = |task: &Task<J>| matches!(task, Task::Job(job) if job.lane() == Lane::Merge);
        let full = self.merging >= self.shape.merges;
        if let Some(at) = self.tasks.iter().position(|task| !(full && is_merge(task))) {
            let task = self.tasks.remove(at);
            self.merging += usize::from(task.as_ref().is_some_and(is_merge));
            return task;
        }
        if self.is_at_end() && self.complete.is_empty() && self.before_end == 0 && !self.has_ended {
            self.has_ended = true;
            self.before_finish += 1;
            return Some(Task::End);
        }
        let large = |partition: &Complete| {
            partition.jobs != Some(0) && partition.bytes > self.shape.large_bytes
        };
        if self.reading >= self.shape.readers || self.complete.values().any(large) {
            return None;
        }
        if let Some(chunk) = self.again.pop() {
            self.reading += 1;
            return Some(Task::ChunkAgain(chunk));
        }
        // One may still be told to the target, which may take long with it.
        let sealed = self.sealed - self.sealing.saturating_sub(1);
        if self.partition_of(self.next_chunk) >= sealed + PARTITIONS_IN_FLIGHT {
            return None;
        }
        match self.chunks {
            Some(chunks) if self.next_chunk >= chunks => None,
            Some(_) if self.is_far_ahead() => None,
            Some(_) => Some(Task::Chunk(self.number_chunk())),
            None => {
                (self.next_chunk - self.frontier < self.shape.ahead_max).then_some(Task::TakeChunk)
            }
        }
    }

    /// Whether the next chunk is of a partition after one that is not complete, and others wait for this one: how many bytes it holds is
    /// known when it is complete.
    fn is_far_ahead(&self) -> bool {
        self.partition_of(self.next_chunk) > self.completed
            && self.next_chunk - self.frontier >= self.shape.readers + CHUNKS_AHEAD
    }

    /// Gives the next chunk its number; a worker has it.
    pub fn number_chunk(&mut self) -> usize {
        self.next_chunk += 1;
        self.reading += 1;
        self.next_chunk - 1
    }

    /// Notes that no chunk comes any more.
    pub fn end_chunks(&mut self) {
        self.chunks.get_or_insert(self.next_chunk);
    }

    /// Notes that a worker has read a chunk.
    pub fn read(&mut self) {
        self.reading -= 1;
    }

    /// Lets the next chunk be read again.
    pub fn read_again(&mut self) {
        self.again.push(self.frontier);
    }

    /// Notes that the next chunk is verified.
    pub fn verify(&mut self) {
        self.frontier += 1;
    }

    /// Ends the leg before the next chunk.
    pub fn cut(&mut self) {
        self.is_cut = true;
        self.chunks = Some(self.frontier);
        self.again.clear();
    }

    /// A partition whose chunks have all been verified since this was asked last; its jobs are to be given.
    pub fn take_complete(&mut self) -> Option<usize> {
        let at_boundary = self.shape.partitions.ends_before(self.frontier);
        if self.frontier == 0 || !(self.is_at_end() || at_boundary) {
            return None;
        }
        let partition = self.partition_of(self.frontier - 1);
        let is_left = self.shape.keeps_partitions && self.is_cut && !at_boundary;
        if partition < self.completed || is_left {
            return None;
        }
        self.completed = partition + 1;
        self.complete.insert(partition, Complete { jobs: None, bytes: 0 });
        Some(partition)
    }

    /// Gives the jobs of a complete partition, whose chunks hold so many bytes until they are done.
    pub fn begin(&mut self, partition: usize, bytes: usize, jobs: Vec<J>) {
        if let Some(complete) = self.complete.get_mut(&partition) {
            *complete = Complete { jobs: Some(jobs.len()), bytes };
        }
        self.tasks.extend(jobs.into_iter().map(Task::Job));
        self.seal();
    }

    /// Notes that a job of a complete partition is done.
    pub fn done_of(&mut self, partition: usize) {
        if let Some(Complete { jobs: Some(jobs), .. }) = self.complete.get_mut(&partition) {
            *jobs -= 1;
        }
        self.seal();
    }

    /// Adds a job.
    pub fn add(&mut self, before: Before, job: J) {
        self.wait_for(before);
        self.tasks.push_back(Task::Job(job));
    }

    /// Lets something wait, until [`Self::done`], for what nobody here does.
    pub fn wait_for(&mut self, before: Before) {
        *self.count(before) += 1;
    }

    /// Notes that a job is done, or what was waited for.
    pub fn done(&mut self, before: Before, lane: Lane) {
        self.merging -= usize::from(lane == Lane::Merge);
        *self.count(before) -= 1;
        if let Before::Seal(partition) = before {
            if self.before_seal.get(&partition) == Some(&0) {
                self.before_seal.remove(&partition);
            }
            self.seal();
        }
    }

    fn count(&mut self, before: Before) -> &mut usize {
        match before {
            Before::Seal(partition) => self.before_seal.entry(partition).or_default(),
            Before::End => &mut self.before_end,
            Before::Finish => &mut self.before_finish,
        }
    }

    /// Notes that the target was told that a partition is complete.
    pub fn told_sealed(&mut self) {
        self.sealing -= 1;
        self.done(Before::End, Lane::Any);
    }

    /// Seals partitions that nothing is to be done for any more, in order.
    fn seal(&mut self) {
        while let Some(entry) = self.complete.first_entry()
            && *entry.key() == self.sealed
            && entry.get().jobs == Some(0)
            && !self.before_seal.contains_key(&self.sealed)
        {
            entry.remove();
            self.tasks.push_back(Task::Seal(self.sealed));
            self.sealed += 1;
            self.sealing += 1;
            self.before_end += 1;
        }
    }
}

#[cfg(test)]
mod tests;
