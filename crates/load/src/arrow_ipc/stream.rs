//! Streams of Arrow: messages that come in order, from pipes and from what must be decompressed.
//!
//! A worker takes the next batches if their bytes are there, else it decompresses some. A file whose footer cannot be asked
//! is read so, too: its messages are a stream, behind its magic.

mod reader;

use std::collections::HashMap;
use std::ops::Range;
use std::sync::{
    Arc, Mutex,
    atomic::{AtomicUsize, Ordering},
};
use std::time::Duration;

use coload_arrow::Batch;
use coload_input::{TextQueue, Waiting, Who};
use coload_threads::lock;
use coload_types::Result;

use super::input::FieldsRead;
use crate::format::Arrival;
use crate::grain::Grain;
use crate::typed::{Asked, Cutting, Dictionary};
use reader::{Next, Reader};

/// Share of the memory that bytes waiting to be read may take.
const AHEAD_SHARE: usize = 8;
/// How long a worker waits for bytes before it looks for other work.
const WAIT: Duration = Duration::from_millis(5);

/// Dictionaries by their numbers.
pub type Known = HashMap<i64, Arc<Dictionary>>;

/// A batch that came.
#[derive(Debug)]
pub struct StreamBatch {
    /// Number of the input.
    pub file: usize,
    /// Where its message starts.
    pub start: u64,
    /// Its fields.
    pub fields: Arc<FieldsRead>,
    /// The dictionaries that it sees.
    pub dictionaries: Arc<Known>,
    /// What its metadata say.
    pub batch: Batch,
    /// Its buffers.
    pub body: Vec<u8>,
    /// Where it stands in the account: from the end of the one before.
    span: Range<u64>,
    _held: Held,
}

/// Bytes that are counted until they are dropped.
#[derive(Debug)]
struct Held {
    bytes: usize,
    of: Arc<AtomicUsize>,
}

impl Drop for Held {
    fn drop(&mut self) {
        self.of.fetch_sub(self.bytes, Ordering::AcqRel);
    }
}

/// Rows of a batch that came.
#[derive(Debug, Clone)]
pub struct StreamRows {
    /// The batch.
    pub batch: Arc<StreamBatch>,
    /// Its rows that are read.
    pub rows: Range<u64>,
    /// Where they stand in the account.
    pub span: Range<u64>,
}

/// A chunk that came.
#[derive(Debug, Default)]
pub struct StreamChunk {
    /// Its rows.
    pub rows: Vec<StreamRows>,
    /// What came with it.
    pub arrival: Arrival,
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
pub struct StreamSource {
    queue: TextQueue,
    reader: Mutex<Reader>,
    /// Bytes of batches that were handed out and are still held, and how many these may be.
    held: Arc<AtomicUsize>,
    held_max: usize,
}

impl StreamSource {
    /// A source of inputs.
    pub fn new(
        inputs: impl IntoIterator<
            Item: Into<Waiting> + 'static,
            IntoIter: ExactSizeIterator + Send + 'static,
        >,
        asked: Asked<'_>,
        cutting: Cutting,
    ) -> Self {
        let grain = Grain::of(asked.request, asked.resources);
        let held = Arc::<AtomicUsize>::default();
        StreamSource {
            queue: TextQueue::new(
                inputs,
                asked.resources.memory / AHEAD_SHARE,
                asked.resources.threads,
            )
            .with_windows(grain.windows_bytes),
            reader: Mutex::new(Reader::new(asked, cutting, &held)),
            held,
            held_max: grain.text_bytes,
        }
    }

    /// The queue of bytes, for a thread that decompresses ahead.
    pub fn queue(&self) -> &TextQueue {
        &self.queue
    }

    /// Takes the next chunk; where none is there yet, decompresses some bytes or waits a moment. `take` is called under the
    /// lock for each chunk, in order.
    ///
    /// # Errors
    /// `Input` when an input is damaged, `Unavailable` when it cannot be read, `Limit` when a batch is too large; those of
    /// `take`.
    pub fn turn(&self, take: impl FnOnce(StreamChunk) -> Result<()>) -> Result<StreamTurn> {
        {
            let mut reader = lock(&self.reader);
            // What waits for its chunk to be full holds nothing up.
            let held = self.held.load(Ordering::Acquire).saturating_sub(reader.open_bytes());
            if held == 0 || held < self.held_max || reader.has_ready() {
                match reader.next(&self.queue)? {
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
    pub fn give_back(&self, chunks: impl DoubleEndedIterator<Item = Vec<StreamRows>>) {
        let mut reader = lock(&self.reader);
        chunks.rev().for_each(|rows| reader.give_back(rows));
    }

    /// Stored bytes and ends of inputs since the last chunk, at the end.
    pub fn take_rest(&self) -> Arrival {
        lock(&self.reader).take_arrival()
    }
}
