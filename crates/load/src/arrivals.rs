//! Fragments become partitions: chunks are verified in order, whoever read them, and what they need next is scheduled.
//!
//! The start of a chunk is speculated on where it was cut beforehand: it is right if the chunk before ended there. A chunk
//! that the types are too narrow for ends the leg.

mod arriving;
mod job;
mod texts_sent;

use std::collections::BTreeMap;
use std::sync::Arc;

use coload_types::Result;
use coload_wire::TextIs;

use crate::format::{Parser, PieceSpan, ReadTo};
use crate::partition::{PartitionPlan, SealedPartition, Waiting};
use crate::schedule::{Before, Lane, Schedule, Shape};
use crate::target::{Ahead, AheadColumn, Works};

pub use arriving::{Arriving, ChunkText, Counted, ParsedChunk};
pub use job::{Job, Sealing};
pub use texts_sent::HandedBack;
use texts_sent::{Answered, TextsSent};

/// The chunks of a leg that were read, and what is to be done next.
#[derive(Debug)]
pub struct Arrivals<P> {
    /// What is to be done next.
    pub schedule: Schedule<Job>,
    arriving: BTreeMap<usize, Arriving<P>>,
    /// Where the last verified chunk ended.
    end: u64,
    texts: TextsSent,
    /// The ends of complete partitions.
    sealings: BTreeMap<usize, Sealing>,
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
    /// Rows of each chunk, in order.
    pub chunk_rows: Vec<u32>,
    /// The pieces of the chunk after these, if the types are too narrow for it.
    pub unfit: Vec<PieceSpan>,
    /// What was counted of chunks that will be parsed again.
    pub in_vain: Counted,
}

impl<P: Parser> Arrivals<P> {
    /// Nothing has arrived; the chunk before the first ended at `end`.
    pub fn new(shape: Shape, end: u64) -> Self {
        Arrivals {
            schedule: Schedule::new(shape),
            arriving: BTreeMap::new(),
            end,
            texts: TextsSent::default(),
            sealings: BTreeMap::new(),
        }
    }

    /// Begins after the first partitions, which are done; their last record ends at `end`.
    pub fn skip(&mut self, partitions: usize, end: u64) {
        self.schedule.skip(partitions);
        self.end = end;
    }

    /// Where the last verified chunk ended, which is where one that is read again starts.
    pub fn end(&self) -> u64 {
        self.end
    }

    /// Notes that no chunk comes any more.
    pub fn end_chunks(&mut self) {
        self.schedule.end_chunks();
        self.seal_if_complete();
    }

    /// The partition of a chunk, while its fragments arrive.
    pub fn arriving(&mut self, chunk: usize) -> &mut Arriving<P> {
        self.arriving.entry(self.schedule.partition_of(chunk)).or_default()
    }

    /// Takes a parsed chunk and verifies all that can be verified.
    pub fn deliver(&mut self, chunk: usize, parsed: ParsedChunk) -> Verified {
        self.schedule.read();
        let mut verified = Verified::default();
        if self.schedule.is_cut() {
            verified.in_vain.add(parsed.counted);
            self.end_leg();
            return verified;
        }
        self.arriving(chunk).fragments.insert(chunk, parsed);
        loop {
            let (next, end) = (self.schedule.frontier(), self.end);
            let number = self.schedule.partition_of(next);
            let Some(arriving) = self.arriving.get_mut(&number) else { return verified };
            let Some(parsed) = arriving.fragments.remove(&next) else { return verified };
            let proven = |s: &PieceSpan| s.start == end && s.read_to == ReadTo::End;
            if parsed.speculated && !parsed.spans.first().is_some_and(proven) {
                // A quoted newline was taken for the end of a record: parse the chunk again from
                // where the one before it ended.
                arriving.stale = true;
                self.schedule.read_again();
                verified.in_vain = parsed.counted;
                return verified;
            }
            if parsed.unfit {
                self.cut_before(parsed, &mut verified);
                return verified;
            }
            self.end = parsed.spans.last().map_or(end, |s| s.end);
            self.schedule.verify();
            self.take(next, parsed, &mut verified);
            self.seal_if_complete();
        }
    }

    /// Takes a verified chunk.
    fn take(&mut self, chunk: usize, parsed: ParsedChunk, verified: &mut Verified) {
        let partition = self.schedule.partition_of(chunk);
        let ParsedChunk { waiting, ahead, spans, text, .. } = parsed;
        verified.chunk_rows.push(waiting.rows);
        let arriving = self.arriving.entry(partition).or_default();
        if let Some(text) = text {
            let (fragment, plan) = arriving.take_text(partition, waiting.rows, text);
            arriving.verified.push(waiting);
            self.texts.send(chunk, &fragment, spans, plan);
            // Until it is answered.
            self.schedule.wait_for(Before::Seal(partition));
            self.schedule.add(Before::Finish, Job::SendText(fragment));
            return;
        }
        let ahead = arriving.take_ahead(partition, waiting.rows, ahead);
        arriving.verified.push(waiting);
        if let Some(ahead) = ahead {
            self.schedule.add(Before::End, Job::Ahead(ahead));
        }
        self.texts.account(chunk, partition, spans, verified);
    }

    /// Ends the leg before a chunk that its types are too narrow for. What was parsed from there on was
    /// in vain.
    fn cut_before(&mut self, mut parsed: ParsedChunk, verified: &mut Verified) {
        verified.unfit = std::mem::take(&mut parsed.spans);
        self.schedule.cut();
        verified.in_vain.add(parsed.counted);
        for arriving in self.arriving.values_mut() {
            let later = std::mem::take(&mut arriving.fragments).into_values();
            later.for_each(|parsed| verified.in_vain.add(parsed.counted));
        }
        self.end_leg();
    }

    /// Seals what there is when the last chunk that comes after the end is delivered.
    fn end_leg(&mut self) {
        if self.schedule.is_reading() {
            return;
        }
        // Dictionaries have values of chunks that are left to the next leg.
        self.arriving.values_mut().for_each(|arriving| arriving.stale = true);
        self.arriving.retain(|_, arriving| !arriving.verified.is_empty());
        self.seal_if_complete();
    }

    /// Where the next leg begins, if this one ended before the input did.
    pub fn next_leg(&self) -> Option<NextLeg> {
        let next = NextLeg { chunk: self.schedule.frontier(), end: self.end };
        self.schedule.is_cut().then_some(next)
    }

    /// Turns a partition whose chunks are all verified into jobs, one for each column that waits.
    fn seal_if_complete(&mut self) {
        let Some(number) = self.schedule.take_complete() else { return };
        let mut arriving = self.arriving.remove(&number).unwrap_or_default();
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
        let columns = (0..sealed.width()).filter(|column| sealed.waits(*column));
        let compress = |column| Job::Compress { partition: Arc::clone(&sealed), column };
        let jobs: Vec<Job> = columns.map(compress).collect();
        let blocks = arriving.flown + jobs.len() as u64;
        self.sealings.insert(number, Sealing { blocks, page_rows: sealed.page_rows.clone() });
        self.schedule.begin(number, bytes, jobs);
    }

    /// The end of a partition that nothing is to be done for any more.
    pub fn take_sealing(&mut self, partition: usize) -> Sealing {
        let mut sealing = self.sealings.remove(&partition).unwrap_or_default();
        self.texts.correct(partition, &mut sealing.blocks, &mut sealing.page_rows);
        sealing
    }

    /// Notes that the target has taken a fragment, and takes the work that it left.
    pub fn delivered(&mut self, works: Works) {
        self.add_works(works);
        self.schedule.done(Before::End, Lane::Any);
    }

    /// The same of the end of a partition.
    pub fn sealed(&mut self, works: Works) {
        self.add_works(works);
        self.schedule.told_sealed();
    }

    /// Notes that work of the target is done, or that it was told of the end; takes the work that this left.
    pub fn worked(&mut self, lane: Lane, works: Works) {
        self.add_works(works);
        self.schedule.done(Before::Finish, lane);
    }

    fn add_works(&mut self, works: Works) {
        works.into_iter().for_each(|work| self.schedule.add(Before::Finish, Job::Work(work)));
    }

    /// Notes that a text is sent.
    pub fn sent_text(&mut self) {
        self.schedule.done(Before::Finish, Lane::Any);
    }

    /// Takes the answer to a text.
    ///
    /// # Errors
    /// `Corrupt` when none is awaited.
    pub fn answered(&mut self, key: (usize, u32), is: TextIs) -> Result<Verified> {
        let partition = key.0;
        let verified = match self.texts.answer(key, is)? {
            Answered::Taken(verified) => verified,
            Answered::HandedBack(back) => {
                self.schedule.add(Before::Seal(partition), Job::ParseBack(back));
                Verified::default()
            }
        };
        self.schedule.done(Before::Seal(partition), Lane::Any);
        Ok(verified)
    }

    /// Takes what became of a chunk that was handed back: its rows, and their columns.
    pub fn parsed_back(
        &mut self,
        back: &HandedBack,
        rows: u32,
        columns: Vec<AheadColumn>,
        spans: Vec<PieceSpan>,
    ) -> Verified {
        let (partition, fragment) = back.key;
        let verified = self.texts.take_back(back, rows, columns.len() as u64, spans);
        if !columns.is_empty() {
            self.schedule.add(Before::End, Job::Ahead(Ahead { partition, fragment, columns }));
        }
        self.schedule.done(Before::Seal(partition), Lane::Any);
        verified
    }
}
