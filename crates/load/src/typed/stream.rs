//! Blocks of rows that come in order, from pipes and from what must be decompressed.
//!
//! A worker takes the next blocks if their bytes are there, else it decompresses some.

use std::collections::VecDeque;
use std::ops::Range;
use std::sync::{
    Arc, Mutex,
    atomic::{AtomicBool, AtomicUsize, Ordering},
};
use std::time::Duration;

use coload_input::{Taken, TextQueue, Waiting, Who};
use coload_threads::lock;
use coload_types::Result;

use super::chunks::{Cutting, part_of};
use super::input::Asked;
use crate::format::{Arrival, WorkAhead};
use crate::grain::Grain;

/// Share of the memory that bytes waiting to be read may take.
const AHEAD_SHARE: usize = 8;
/// How long a worker waits for bytes before it looks for other work.
const WAIT: Duration = Duration::from_millis(5);

/// Finds blocks in the bytes of inputs, one after the other.
pub trait BlockReader: Send {
    /// Rows that came together.
    type Block: HeldBlock;

    /// Does what can be done with what is there.
    ///
    /// # Errors
    /// `Input` when the input is damaged, `Limit` when a block is too large.
    fn step(&mut self, chunks: &mut StreamChunks<Self::Block>) -> Result<Step>;

    /// Takes bytes of the input; whether they are its last.
    fn push(&mut self, text: &[u8], is_last: bool);

    /// The input has ended, and nothing of it comes any more.
    fn has_ended(&mut self);

    /// Begins with the next input; where the rows of this one end in the account.
    fn next_input(&mut self) -> u64;
}

/// What could be done with what is there.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Step {
    /// Something.
    Done,
    /// More bytes are needed.
    More,
    /// The input has ended.
    Ended,
}

/// A block that holds bytes.
pub trait HeldBlock: Send + Sync {
    /// How many.
    fn bytes(&self) -> usize;
}

/// Bytes that are counted until they are dropped.
#[derive(Debug)]
pub struct Held {
    bytes: usize,
    of: Arc<AtomicUsize>,
}

impl Held {
    /// Counts bytes.
    pub fn new(bytes: usize, of: &Arc<AtomicUsize>) -> Self {
        of.fetch_add(bytes, Ordering::AcqRel);
        Held { bytes, of: Arc::clone(of) }
    }
}

impl Drop for Held {
    fn drop(&mut self) {
        self.of.fetch_sub(self.bytes, Ordering::AcqRel);
    }
}

/// Rows of a block that came.
#[derive(Debug)]
pub struct StreamRows<B> {
    /// The block.
    pub block: Arc<B>,
    /// Its rows that are read.
    pub rows: Range<u64>,
    /// Where they stand in the account.
    pub span: Range<u64>,
}

impl<B> Clone for StreamRows<B> {
    fn clone(&self) -> Self {
        let StreamRows { block, rows, span } = self;
        StreamRows { block: Arc::clone(block), rows: rows.clone(), span: span.clone() }
    }
}

/// A chunk that came.
#[derive(Debug)]
pub struct StreamChunk<B> {
    /// Its rows.
    pub rows: Vec<StreamRows<B>>,
    /// What came with it.
    pub arrival: Arrival,
}

/// Chunks of blocks that come in order.
#[derive(Debug)]
pub struct StreamChunks<B> {
    cutting: Cutting,
    /// Rows of a chunk that is not full.
    open: Vec<StreamRows<B>>,
    open_weight: u64,
    /// Chunks that are full.
    ready: VecDeque<StreamChunk<B>>,
    source_bytes: Vec<(usize, u64)>,
    ends: Vec<(usize, u64)>,
    /// Bytes to be handed out still.
    left: u64,
}

impl<B: HeldBlock> StreamChunks<B> {
    fn new(cutting: Cutting) -> Self {
        StreamChunks {
            cutting,
            open: Vec::new(),
            open_weight: 0,
            ready: VecDeque::new(),
            source_bytes: Vec::new(),
            ends: Vec::new(),
            left: cutting.sample_bytes,
        }
    }

    /// Bytes of blocks whose chunk is not full.
    fn open_bytes(&self) -> usize {
        self.open.iter().map(|rows| rows.block.bytes()).sum()
    }

    /// Counts stored bytes of an input.
    fn add_source(&mut self, file: usize, bytes: u64) {
        match self.source_bytes.last_mut() {
            Some((last, sum)) if *last == file => *sum += bytes,
            _ => self.source_bytes.push((file, bytes)),
        }
    }

    /// What came since the last chunk. Inputs begin at their first byte: nothing is to be told of that.
    fn take_arrival(&mut self) -> Arrival {
        Arrival {
            begins: Vec::new(),
            source_bytes: std::mem::take(&mut self.source_bytes),
            ends: std::mem::take(&mut self.ends),
        }
    }

    /// Adds the rows of a block, which take so many bytes in memory, to the chunk that is not full, or cuts them. `is_whole` says
    /// that a part of them cannot be read without the rest.
    pub fn add(&mut self, block: B, (rows, bytes): (u64, u64), is_whole: bool, span: Range<u64>) {
        let weight = self.cutting.weight(rows, bytes);
        self.left = self.left.saturating_sub(weight);
        let block = Arc::new(block);
        let chunks = self.cutting.chunks_of(weight, rows, is_whole);
        if chunks > 1 || self.open_weight.saturating_add(weight) > self.cutting.chunk_bytes {
            self.close_chunk();
        }
        for part in 0..chunks {
            let cut = part_of(part, chunks, rows, is_whole, span.clone());
            let block = &block;
            self.open.extend(cut.map(|(rows, span)| StreamRows {
                block: Arc::clone(block),
                rows,
                span,
            }));
            if chunks > 1 {
                self.push_chunk();
            }
        }
        self.open_weight = if chunks > 1 { 0 } else { self.open_weight + weight };
    }

    /// Ends a chunk that has rows.
    fn close_chunk(&mut self) {
        if !self.open.is_empty() {
            self.push_chunk();
        }
        self.open_weight = 0;
    }

    /// Ends a chunk, be it one without rows.
    fn push_chunk(&mut self) {
        let rows = std::mem::take(&mut self.open);
        let arrival = self.take_arrival();
        self.ready.push_back(StreamChunk { rows, arrival });
    }
}

/// What comes of asking for a chunk.
enum Next<B> {
    /// The next chunk.
    Chunk(StreamChunk<B>),
    /// More bytes are needed, and on their way.
    Wait,
    /// Nothing comes, ever.
    End,
}

/// What reads, and what it has read.
struct Incoming<R: BlockReader> {
    reader: R,
    chunks: StreamChunks<R::Block>,
    /// The input that is read, and how many there are.
    file: usize,
    files: usize,
}

impl<R: BlockReader> Incoming<R> {
    /// The next chunk, as far as its bytes are there.
    fn next(&mut self, queue: &TextQueue) -> Result<Next<R::Block>> {
        loop {
            if let Some(chunk) = self.chunks.ready.pop_front() {
                return Ok(Next::Chunk(chunk));
            }
            if self.file == self.files || self.chunks.left == 0 {
                if self.chunks.open.is_empty() {
                    return Ok(Next::End);
                }
                self.chunks.close_chunk();
                continue;
            }
            match self.reader.step(&mut self.chunks)? {
                Step::Done => {}
                Step::Ended => {
                    let end = self.reader.next_input();
                    self.chunks.ends.push((self.file, end));
                    self.file += 1;
                }
                Step::More => match queue.take()? {
                    Taken::Block(block) => {
                        self.reader.push(&block.text, block.last);
                        self.chunks.add_source(block.file, block.source_bytes);
                        queue.recycle(block);
                    }
                    Taken::Wait => return Ok(Next::Wait),
                    Taken::End => self.reader.has_ended(),
                },
            }
        }
    }
}

/// What became of a worker's turn.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum StreamTurn {
    /// It has a chunk to parse.
    Parse,
    /// It decompressed, or waited for others.
    Again,
    /// Nothing comes, ever.
    End,
}

/// The inputs of a load that come in order.
pub struct StreamSource<R: BlockReader> {
    queue: TextQueue,
    incoming: Mutex<Incoming<R>>,
    /// Bytes of blocks that were handed out and are still held, and how many these may be.
    held: Arc<AtomicUsize>,
    held_max: usize,
}

impl<R: BlockReader> StreamSource<R> {
    /// A source of inputs. `reader` makes what reads them, and counts in what it is given the bytes that blocks hold.
    pub fn new(
        inputs: impl IntoIterator<
            Item: Into<Waiting> + 'static,
            IntoIter: ExactSizeIterator + Send + 'static,
        >,
        asked: Asked<'_>,
        cutting: Cutting,
        reader: impl FnOnce(&Arc<AtomicUsize>) -> R,
    ) -> Self {
        let grain = Grain::of(asked.request, asked.resources);
        let held = Arc::<AtomicUsize>::default();
        let incoming = Incoming {
            reader: reader(&held),
            chunks: StreamChunks::new(cutting),
            file: 0,
            files: asked.request.inputs.len(),
        };
        StreamSource {
            queue: TextQueue::new(
                inputs,
                asked.resources.memory / AHEAD_SHARE,
                asked.resources.threads,
            )
            .with_windows(grain.windows_bytes),
            incoming: Mutex::new(incoming),
            held,
            held_max: grain.text_bytes,
        }
    }

    /// Takes the next chunk; where none is there yet, decompresses some bytes or waits a moment. `take` is called under the
    /// lock for each chunk, in order.
    ///
    /// # Errors
    /// `Input` when an input is damaged, `Unavailable` when it cannot be read, `Limit` when a block is too large; those of
    /// `take`.
    pub fn turn(
        &self,
        take: impl FnOnce(StreamChunk<R::Block>) -> Result<()>,
    ) -> Result<StreamTurn> {
        {
            let mut incoming = lock(&self.incoming);
            // What waits for its chunk to be full holds nothing up.
            let held = self.held.load(Ordering::Acquire);
            let held = held.saturating_sub(incoming.chunks.open_bytes());
            if held == 0 || held < self.held_max || !incoming.chunks.ready.is_empty() {
                match incoming.next(&self.queue)? {
                    Next::Chunk(chunk) => {
                        take(chunk)?;
                        return Ok(StreamTurn::Parse);
                    }
                    Next::End => return Ok(StreamTurn::End),
                    Next::Wait => {}
                }
            }
        }
        match self.queue.claim(Who::Worker)? {
            Some(job) => self.queue.run(job),
            None => self.queue.wait(WAIT),
        }
        Ok(StreamTurn::Again)
    }

    /// Chunks that are to be read again come first the next time; what came with them is not counted again.
    pub fn give_back(&self, chunks: impl DoubleEndedIterator<Item = Vec<StreamRows<R::Block>>>) {
        let mut incoming = lock(&self.incoming);
        for rows in chunks.rev() {
            let arrival = Arrival::default();
            incoming.chunks.ready.push_front(StreamChunk { rows, arrival });
        }
    }

    /// Stored bytes and ends of inputs since the last chunk, at the end.
    pub fn take_rest(&self) -> Arrival {
        lock(&self.incoming).chunks.take_arrival()
    }
}

impl<R: BlockReader> WorkAhead for StreamSource<R> {
    fn run(&self, ended: &AtomicBool) {
        self.queue.run_ahead(ended);
    }

    fn wake(&self) {
        self.queue.wake();
    }
}
