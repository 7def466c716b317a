//! Rows that come in order: one worker at a time takes as many as are a chunk, while the others parse those before.

use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex, TryLockError};
use std::time::Duration;

use coload_types::Result;

use super::TypedReader;
use super::reading::StreamChunk;
use crate::grain::Grain;
use crate::typed::{Asked, Cutting};

/// How long a worker waits while another one takes rows, or many are not parsed, before it looks for other work.
const WAIT: Duration = Duration::from_millis(2);

/// Bytes that are counted until they are dropped.
#[derive(Debug)]
pub struct Held {
    bytes: usize,
    of: Arc<AtomicUsize>,
}

impl Drop for Held {
    fn drop(&mut self) {
        self.of.fetch_sub(self.bytes, Ordering::AcqRel);
    }
}

/// What became of a worker's turn.
pub enum StreamTurn {
    /// It has a chunk to parse.
    Parse,
    /// It waited for others.
    Again,
    /// Nothing comes, ever; where the rows end, for the first who is told.
    End(Option<u64>),
}

/// Rows that come in order.
pub struct SourceStream {
    taking: Mutex<Taking>,
    chunk_bytes: u64,
    sample_bytes: u64,
    /// Bytes of chunks that were taken and are still held, and how many these may be.
    held: Arc<AtomicUsize>,
    held_max: usize,
}

/// How far rows were taken.
enum Taking {
    Begin,
    At(u64, Box<dyn TypedReader>),
    Ended(Option<u64>),
}

impl SourceStream {
    /// Nothing is taken yet.
    pub fn new(cutting: Cutting, asked: Asked<'_>) -> Self {
        SourceStream {
            taking: Mutex::new(Taking::Begin),
            chunk_bytes: cutting.chunk_bytes,
            sample_bytes: cutting.sample_bytes,
            held: Arc::default(),
            held_max: Grain::of(asked.request, asked.resources).text_bytes,
        }
    }

    /// Takes the next chunk, unless somebody else does. `take` is called under the lock for each chunk, in order; `open`
    /// begins to read the rows.
    ///
    /// # Errors
    /// Those of reading, and of `take`.
    pub fn turn(
        &self,
        open: impl FnOnce() -> Result<Box<dyn TypedReader>>,
        take: impl FnOnce(StreamChunk) -> Result<()>,
    ) -> Result<StreamTurn> {
        let held = self.held.load(Ordering::Acquire);
        let mut taking = match self.taking.try_lock() {
            Ok(taking) if held == 0 || held < self.held_max => taking,
            // Another worker failed, and says so.
            Ok(_) | Err(TryLockError::WouldBlock | TryLockError::Poisoned(_)) => {
                std::thread::sleep(WAIT);
                return Ok(StreamTurn::Again);
            }
        };
        let (start, mut reader) = match std::mem::replace(&mut *taking, Taking::Ended(None)) {
            Taking::Begin => (0, open()?),
            Taking::At(start, reader) => (start, reader),
            Taking::Ended(end) => return Ok(StreamTurn::End(end)),
        };
        let mut blocks = Vec::new();
        let mut end = start;
        let mut is_over = start >= self.sample_bytes;
        while !is_over && end - start < self.chunk_bytes {
            match reader.next()? {
                Some(block) => {
                    end += block.bytes() as u64;
                    blocks.push(block);
                }
                None => is_over = true,
            }
        }
        *taking = if is_over { Taking::Ended(Some(end)) } else { Taking::At(end, reader) };
        if blocks.is_empty() {
            let Taking::Ended(end) = std::mem::replace(&mut *taking, Taking::Ended(None)) else {
                return Ok(StreamTurn::Again);
            };
            return Ok(StreamTurn::End(end));
        }
        let bytes = (end - start) as usize;
        self.held.fetch_add(bytes, Ordering::AcqRel);
        let held = Held { bytes, of: Arc::clone(&self.held) };
        take(StreamChunk { blocks, span: start..end, _held: held })?;
        Ok(StreamTurn::Parse)
    }
}
