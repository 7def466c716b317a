//! Inputs as blocks of text in order, decompressed by whoever has time, ahead of those who parse.
//!
//! ```text
//!   segment    0          1          2          3       of 1 MiB of compressed bytes
//!   members  |--|---|------|--|--|-----|---|-----------|
//!   decoder  0 ======>  unit 1 =======>  unit 2 =======>
//! ```
//!
//! An input has one decoder that goes through it in order. A format of members is also begun at the
//! first place in each later segment that looks like the start of a member: such a unit goes on until
//! a member starts in another segment. When the decoder ends exactly where a unit began, the unit's
//! text is taken over, and its decoder goes on; a unit that began elsewhere is thrown away. So the
//! text is that of one decoder, whatever the threads do.
//!
//! Each step makes one block, so that what comes first can be taken while units are on their way. Decoders and
//! buffers go back to the thread that had them last, in whose cache they are: with those of others, two threads
//! lost 8 to 12 % to each other.
//!
//! Memory: blocks that wait are at most `ahead_bytes`, but for one block a job; and the windows of decoders.

mod open;
mod unit;

use std::collections::VecDeque;
use std::sync::{
    Arc, Condvar, Mutex, MutexGuard,
    atomic::{AtomicBool, Ordering},
};
use std::thread::{self, ThreadId};
use std::time::Duration;

use coload_threads::lock;
use coload_types::Result;
use open::{By, Open, Shared};

use crate::decoder::{Decoder, Filled};
use crate::open::Waiting;
use crate::windows::Windows;

/// Bytes of text in a block. Larger ones are out of the cache when they are parsed: with frames of 4 MiB as blocks a load
/// of them took 5 % longer and 160 MB more. For Zstandard on two threads, 256 KiB and 8 MiB were no better.
pub const BLOCK_BYTES: usize = 1 << 20;
/// A block of less text gets a buffer of its size.
const SMALL_BYTES: usize = BLOCK_BYTES / 16;
/// Compressed bytes of a segment.
const SEGMENT_BYTES: u64 = 1 << 20;
/// Inputs that are decompressed at once, beside one a thread.
const INPUTS_AHEAD: usize = 1;

/// Some text of an input.
#[derive(Debug, Default)]
pub struct Block {
    /// Number of the input.
    pub file: usize,
    /// UTF-8, or what stands there in its place.
    pub text: Vec<u8>,
    /// Stored bytes it was made of.
    pub source_bytes: u64,
    /// Whether it is the last of its input.
    pub last: bool,
    /// Who made it, and has its buffer in the cache.
    maker: Option<ThreadId>,
}

/// What there is to take.
#[derive(Debug)]
pub enum Taken {
    /// The next block of text.
    Block(Block),
    /// Nothing yet: the caller waits until it is woken.
    Wait,
    /// Nothing more: all inputs have ended.
    End,
}

/// Who asks for work.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Who {
    /// A thread that does nothing but to keep the first input's decoder going.
    Ahead,
    /// A thread that also parses.
    Worker,
}

/// The inputs of a load.
pub struct TextQueue {
    inner: Mutex<Inner>,
    changed: Condvar,
    ahead_bytes: usize,
    threads: usize,
    windows: Arc<Windows>,
    /// Buffers of blocks that were read, of `BLOCK_BYTES` or more: a new one would have to be zeroed.
    buffers: Mutex<Vec<(Vec<u8>, Option<ThreadId>)>>,
}

struct Inner {
    /// What is not open yet. Each is made when its turn comes: there may be a million.
    waiting: Box<dyn ExactSizeIterator<Item = (usize, Waiting)> + Send>,
    open: VecDeque<Open>,
}

/// Work for one thread.
pub struct Job {
    file: usize,
    input: Arc<Shared>,
    kind: Kind,
}

enum Kind {
    Next(Box<Decoder>),
    /// Without a decoder the unit is to be begun.
    Unit {
        segment: u64,
        decoder: Option<Box<Decoder>>,
    },
}

impl TextQueue {
    /// A queue of inputs, read in their order by `threads` threads.
    pub fn new(
        inputs: impl IntoIterator<
            Item: Into<Waiting> + 'static,
            IntoIter: ExactSizeIterator + Send + 'static,
        >,
        ahead_bytes: usize,
        threads: usize,
    ) -> Self {
        let waiting = Box::new(inputs.into_iter().map(Into::into).enumerate());
        TextQueue {
            inner: Mutex::new(Inner { waiting, open: VecDeque::new() }),
            changed: Condvar::new(),
            ahead_bytes: ahead_bytes.max(2 * BLOCK_BYTES),
            threads,
            windows: Arc::new(Windows::new(usize::MAX)),
            buffers: Mutex::default(),
        }
    }

    /// The queue with decoders whose windows take so many bytes in all. An input that needs more is refused; while there
    /// is no room for another decoder, those that are there go on.
    pub fn with_windows(self, bytes: usize) -> Self {
        TextQueue { windows: Arc::new(Windows::new(bytes)), ..self }
    }

    /// Leaves the first inputs out; the others keep their numbers. Before anything is taken.
    pub fn skip(&self, inputs: usize) {
        let mut inner = self.lock();
        // They are opened when they are taken out here.
        (0..inputs).for_each(|_| drop(inner.waiting.next()));
    }

    /// The next text in the order of the inputs.
    ///
    /// # Errors
    /// `Input` when an input is damaged, `Unavailable` when it cannot be read; after all text before.
    pub fn take(&self) -> Result<Taken> {
        let mut inner = self.lock();
        let Some(first) = inner.open.front_mut() else {
            return Ok(if inner.waiting.len() == 0 { Taken::End } else { Taken::Wait });
        };
        let Some(block) = first.ready.pop_front() else { return Ok(Taken::Wait) };
        let block = block.inspect(|b| first.held -= b.text.len());
        if block.as_ref().is_ok_and(|b| b.last) {
            inner.open.pop_front();
        }
        drop(inner);
        self.changed.notify_all();
        block.map(Taken::Block)
    }

    /// Work that can be done now.
    ///
    /// # Errors
    /// As [`TextQueue::take`].
    pub fn claim(&self, who: Who) -> Result<Option<Job>> {
        let mut inner = self.lock();
        let inner = &mut *inner;
        let mut held: usize = inner.open.iter().map(|o| o.held).sum();
        let inputs_max =
            if who == Who::Worker && self.threads > 1 { self.threads + INPUTS_AHEAD } else { 1 };
        let mut at = 0;
        while at < inputs_max {
            if at == inner.open.len() {
                if at > 0 && !self.windows.have_room() {
                    break;
                }
                let Some((file, input)) = inner.waiting.next() else { break };
                inner.open.push_back(Open::new(file, input.open()?, &self.windows)?);
            }
            let open = &mut inner.open[at];
            // What comes first may always go on, so that what waits is always taken some day.
            let room = match at {
                0 => open.ready_bytes() < self.ahead_bytes,
                _ => held < self.ahead_bytes,
            };
            let units = who == Who::Worker && self.threads > 1 && held < self.ahead_bytes;
            if let Some(job) = self.job_of(open, room, units) {
                return Ok(Some(job));
            }
            held += BLOCK_BYTES;
            at += 1;
        }
        Ok(None)
    }

    /// Work of an input, first what this thread did last.
    fn job_of(&self, open: &mut Open, room: bool, units: bool) -> Option<Job> {
        for by in [By::Same, By::Anyone] {
            let next = if room { open.next_job(by) } else { None };
            let unit = || units.then(|| open.unit_job(self.ahead_bytes / 4, by)).flatten();
            if let Some(job) = next.or_else(unit) {
                return Some(job);
            }
        }
        (units && self.windows.have_room()).then(|| open.new_unit_job()).flatten()
    }

    /// Does the work and puts what comes of it in its place.
    pub fn run(&self, job: Job) {
        let Job { file, input, kind } = job;
        match kind {
            Kind::Next(mut decoder) => {
                let filled = self.fill(&mut decoder);
                self.with(file, |open| open.decoded(decoder, filled));
            }
            Kind::Unit { segment, decoder } => {
                // What is wrong with a unit the decoder tells when it comes there.
                let step = unit::decode(&input, segment, decoder, |decoder| self.fill(decoder));
                self.with(file, |open| open.unit_decoded(segment, step.ok().flatten()));
            }
        }
    }

    /// The next block of a decoder. Its `source_bytes` is where it ends in the stored bytes, as what it took is
    /// known when all before it is there.
    fn fill(&self, decoder: &mut Decoder) -> Result<(Block, Filled)> {
        // Without the copy from its window, if a member fits.
        decoder.read_member(BLOCK_BYTES)?;
        let mut text = self.buffer();
        let (filled, state) = decoder.fill_slice(&mut text[..BLOCK_BYTES])?;
        if filled < SMALL_BYTES {
            // The buffer is as good as new: many small inputs would each zero another.
            let small = text[..filled].to_vec();
            self.give_back(std::mem::replace(&mut text, small));
        }
        text.truncate(filled);
        let (source_bytes, maker) = (decoder.at(), Some(thread::current().id()));
        Ok((Block { file: 0, text, source_bytes, last: false, maker }, state))
    }

    /// Gives the buffer of a block back.
    pub fn recycle(&self, block: Block) {
        let Block { mut text, maker, .. } = block;
        if text.capacity() >= BLOCK_BYTES {
            text.resize(text.capacity(), 0);
            self.give_back_of(text, maker);
        }
    }

    /// Gives back a buffer of this thread, all of which has been written.
    fn give_back(&self, buffer: Vec<u8>) {
        self.give_back_of(buffer, Some(thread::current().id()));
    }

    fn give_back_of(&self, buffer: Vec<u8>, maker: Option<ThreadId>) {
        let mut buffers = lock(&self.buffers);
        let held: usize = buffers.iter().map(|(buffer, _)| buffer.len()).sum();
        if held + buffer.len() <= self.ahead_bytes {
            buffers.push((buffer, maker));
        }
    }

    /// A buffer for a block: the last of this thread's that was given back, another, or a new one.
    fn buffer(&self) -> Vec<u8> {
        let own = Some(thread::current().id());
        let mut buffers = lock(&self.buffers);
        match buffers.iter().rposition(|(_, maker)| *maker == own) {
            Some(found) => buffers.remove(found).0,
            None => buffers.pop().map_or_else(|| vec![0; BLOCK_BYTES], |(buffer, _)| buffer),
        }
    }

    fn with(&self, file: usize, change: impl FnOnce(&mut Open)) {
        if let Some(open) = self.lock().open.iter_mut().find(|open| open.file == file) {
            change(open);
        }
        self.changed.notify_all();
    }

    /// Waits until something may have changed.
    pub fn wait(&self, most: Duration) {
        drop(self.changed.wait_timeout(self.lock(), most));
    }

    /// Decompresses ahead until all is done, or `ended` is set; who sets it wakes the thread.
    pub fn run_ahead(&self, ended: &AtomicBool) {
        while !ended.load(Ordering::Acquire) {
            {
                let inner = self.lock();
                if inner.open.is_empty() && inner.waiting.len() == 0 {
                    return;
                }
            }
            match self.claim(Who::Ahead) {
                Ok(Some(job)) => self.run(job),
                Ok(None) => self.wait(Duration::from_millis(100)),
                // A worker that claims meets it too, and tells.
                Err(_) => return,
            }
        }
    }

    /// Wakes all threads that wait for a change of the queue.
    pub fn wake(&self) {
        self.changed.notify_all();
    }

    fn lock(&self) -> MutexGuard<'_, Inner> {
        lock(&self.inner)
    }
}
