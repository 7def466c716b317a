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
//! Memory: blocks that wait are at most `ahead_bytes`, but for one block a job.

use std::collections::{BTreeMap, VecDeque};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use coload_format::{Error, Place, Result};

use crate::archive::Check;
use crate::compression::Compression;
use crate::decoder::{Decoder, State};
use crate::open::TextInput;
use crate::raw::{Raw, RawFile};

/// Bytes of text in a block.
pub const BLOCK_BYTES: usize = 1 << 20;
/// Compressed bytes of a segment.
const SEGMENT_BYTES: u64 = 1 << 20;
/// Bytes looked at once for the start of a member, and bytes a magic may go on after them.
const SEARCH_BYTES: usize = 256 << 10;
const MAGIC_BYTES: usize = 16;
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
}

/// What there is to take.
#[derive(Debug)]
pub enum Taken {
    /// The next text.
    Block(Block),
    /// Nothing yet.
    Wait,
    /// Nothing more.
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
    /// Buffers of blocks that were read, of `BLOCK_BYTES` each: a new one would have to be zeroed.
    buffers: Mutex<Vec<Vec<u8>>>,
}

struct Inner {
    waiting: VecDeque<(usize, TextInput)>,
    open: VecDeque<Open>,
}

/// An input that is being read.
struct Open {
    file: usize,
    input: Arc<Shared>,
    decoder: Slot,
    /// Number of the next segment to begin a unit in.
    next_segment: u64,
    segments: u64,
    units: BTreeMap<u64, Option<Unit>>,
    ready: VecDeque<Result<Block>>,
    /// Bytes of text in `ready` and `units`.
    held: usize,
    /// Stored bytes told in blocks.
    told: u64,
    checking: Option<Checking>,
}

/// What the text must be, and what it was so far.
struct Checking {
    expected: Check,
    bytes: u64,
    crc: libdeflater::Crc,
}

/// What jobs need to know of an input.
struct Shared {
    name: String,
    format: Option<Compression>,
    file: Option<Arc<RawFile>>,
}

enum Slot {
    Idle(Box<Decoder>),
    Busy,
    /// The decoder has ended here.
    Ended(u64),
    /// All text is in `ready`.
    Finished,
}

/// Text that was decompressed before it was known to be needed.
#[derive(Default)]
struct Unit {
    /// Where its first member starts; `None` if none does in the segment.
    start: Option<u64>,
    blocks: Vec<Block>,
    held: usize,
    /// `None` when the unit has come to its end.
    decoder: Option<Box<Decoder>>,
    end: u64,
}

/// Work for one thread.
pub struct Job {
    file: usize,
    input: Arc<Shared>,
    kind: Kind,
}

enum Kind {
    Next(Box<Decoder>),
    Unit { segment: u64, bytes_max: usize },
}

impl TextQueue {
    /// A queue of inputs, read in their order by `threads` threads.
    pub fn new(inputs: Vec<TextInput>, ahead_bytes: usize, threads: usize) -> Self {
        let waiting = inputs.into_iter().enumerate().collect();
        TextQueue {
            inner: Mutex::new(Inner { waiting, open: VecDeque::new() }),
            changed: Condvar::new(),
            ahead_bytes: ahead_bytes.max(2 * BLOCK_BYTES),
            threads,
            buffers: Mutex::default(),
        }
    }

    /// The next text in the order of the inputs.
    ///
    /// # Errors
    /// `Input` when an input is damaged, `Unavailable` when it cannot be read; after all text before.
    pub fn take(&self) -> Result<Taken> {
        let mut inner = self.lock();
        let Some(first) = inner.open.front_mut() else {
            return Ok(if inner.waiting.is_empty() { Taken::End } else { Taken::Wait });
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
                let Some((file, input)) = inner.waiting.pop_front() else { break };
                inner.open.push_back(Open::new(file, input)?);
            }
            let open = &mut inner.open[at];
            // What comes first may always go on, so that what waits is always taken some day.
            let room = match at {
                0 => open.ready_bytes() < self.ahead_bytes,
                _ => held < self.ahead_bytes,
            };
            if room && let Some(job) = open.next_job()? {
                return Ok(Some(job));
            }
            if who == Who::Worker
                && self.threads > 1
                && held < self.ahead_bytes
                && let Some(job) = open.unit_job(self.ahead_bytes / 4)
            {
                return Ok(Some(job));
            }
            held += BLOCK_BYTES;
            at += 1;
        }
        Ok(None)
    }

    /// Does the work and puts what comes of it in its place.
    ///
    /// # Errors
    /// As [`TextQueue::take`], when a decoder cannot be made.
    pub fn run(&self, job: Job) -> Result<()> {
        let Job { file, input, kind } = job;
        match kind {
            Kind::Next(mut decoder) => {
                let mut text = self.buffer();
                let filled = decoder.fill_slice(&mut text);
                text.truncate(filled.as_ref().map_or(0, |(filled, _)| *filled));
                let state = filled.map(|(_, state)| state);
                self.with(file, |open| open.decoded(decoder, text, state))
            }
            Kind::Unit { segment, bytes_max } => {
                // What is wrong with a unit the decoder tells when it comes there.
                let unit = Unit::decode(&input, segment, bytes_max, &|| self.buffer());
                let unit = unit.unwrap_or_default();
                self.with(file, |open| {
                    open.held += unit.held;
                    if let Some(slot) = open.units.get_mut(&segment) {
                        *slot = Some(unit);
                    } else {
                        open.held -= unit.held;
                    }
                    open.settle()
                })
            }
        }
    }

    /// Gives the buffer of a block back.
    pub fn recycle(&self, mut text: Vec<u8>) {
        let mut buffers = self.buffers.lock().unwrap_or_else(PoisonError::into_inner);
        if text.capacity() >= BLOCK_BYTES && buffers.len() < self.ahead_bytes / BLOCK_BYTES {
            text.resize(BLOCK_BYTES, 0);
            buffers.push(text);
        }
    }

    /// A buffer for a block.
    fn buffer(&self) -> Vec<u8> {
        let mut buffers = self.buffers.lock().unwrap_or_else(PoisonError::into_inner);
        buffers.pop().unwrap_or_else(|| vec![0; BLOCK_BYTES])
    }

    fn with(&self, file: usize, change: impl FnOnce(&mut Open) -> Result<()>) -> Result<()> {
        let mut inner = self.lock();
        let changed = match inner.open.iter_mut().find(|o| o.file == file) {
            Some(open) => change(open),
            None => Ok(()),
        };
        drop(inner);
        self.changed.notify_all();
        changed
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
                if inner.open.is_empty() && inner.waiting.is_empty() {
                    return;
                }
            }
            match self.claim(Who::Ahead) {
                Ok(Some(job)) => {
                    if self.run(job).is_err() {
                        return;
                    }
                }
                Ok(None) => self.wait(Duration::from_millis(100)),
                // A worker that claims meets it too, and tells.
                Err(_) => return,
            }
        }
    }

    /// Wakes whoever waits.
    pub fn wake(&self) {
        self.changed.notify_all();
    }

    fn lock(&self) -> MutexGuard<'_, Inner> {
        self.inner.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Open {
    fn new(file: usize, input: TextInput) -> Result<Self> {
        let TextInput { name, format, raw, check } = input;
        let stored = match &raw {
            Raw::File { file, at: 0 } if format.is_some_and(Compression::has_members) => {
                Some(Arc::clone(file))
            }
            _ => None,
        };
        let segments = stored.as_ref().map_or(0, |f| f.bytes().div_ceil(SEGMENT_BYTES));
        let stop = if segments > 1 { SEGMENT_BYTES } else { u64::MAX };
        let decoder = Decoder::new(&name, raw, format, 0, stop)?;
        Ok(Open {
            file,
            input: Arc::new(Shared { name, format, file: stored }),
            decoder: Slot::Idle(Box::new(decoder)),
            next_segment: 1,
            segments,
            units: BTreeMap::new(),
            ready: VecDeque::new(),
            held: 0,
            told: 0,
            checking: check.map(|expected| Checking {
                expected,
                bytes: 0,
                crc: libdeflater::Crc::new(),
            }),
        })
    }

    fn ready_bytes(&self) -> usize {
        self.ready.iter().flatten().map(|b| b.text.len()).sum()
    }

    /// The next step of the decoder.
    fn next_job(&mut self) -> Result<Option<Job>> {
        self.settle()?;
        match std::mem::replace(&mut self.decoder, Slot::Busy) {
            Slot::Idle(decoder) => Ok(Some(self.job(Kind::Next(decoder)))),
            other => {
                self.decoder = other;
                Ok(None)
            }
        }
    }

    fn job(&self, kind: Kind) -> Job {
        Job { file: self.file, input: Arc::clone(&self.input), kind }
    }

    /// A unit in the next segment.
    fn unit_job(&mut self, bytes_max: usize) -> Option<Job> {
        if self.next_segment >= self.segments || matches!(self.decoder, Slot::Finished) {
            return None;
        }
        let segment = self.next_segment;
        self.next_segment += 1;
        self.units.insert(segment, None);
        Some(self.job(Kind::Unit { segment, bytes_max }))
    }

    /// Takes what the decoder made.
    fn decoded(
        &mut self,
        decoder: Box<Decoder>,
        text: Vec<u8>,
        state: Result<State>,
    ) -> Result<()> {
        match state {
            Err(error) => {
                self.ready.push_back(Err(error));
                self.decoder = Slot::Finished;
                return Ok(());
            }
            Ok(State::More) => {
                self.push(text, decoder.at());
                self.decoder = Slot::Idle(decoder);
            }
            Ok(State::Done) => {
                self.push(text, decoder.at());
                self.decoder = Slot::Ended(decoder.at());
            }
        }
        self.settle()
    }

    fn push(&mut self, text: Vec<u8>, at: u64) {
        self.held += text.len();
        if let Some(checking) = &mut self.checking {
            checking.bytes += text.len() as u64;
            checking.crc.update(&text);
        }
        let source_bytes = at.saturating_sub(self.told);
        self.told = self.told.max(at);
        self.ready.push_back(Ok(Block { file: self.file, text, source_bytes, last: false }));
    }

    /// Goes on where the decoder has ended: with a unit, with a new decoder, or to the input's end.
    fn settle(&mut self) -> Result<()> {
        while let Slot::Ended(at) = self.decoder {
            let Some(file) = self.input.file.clone().filter(|f| at < f.bytes()) else {
                self.finish();
                return Ok(());
            };
            let segment = at / SEGMENT_BYTES;
            self.drop_units_before(segment);
            match self.units.remove(&segment) {
                Some(None) => {
                    self.units.insert(segment, None);
                    return Ok(());
                }
                Some(Some(unit)) if unit.start == Some(at) => self.accept(unit),
                other => {
                    self.held -= other.flatten().map_or(0, |unit| unit.held);
                    self.next_segment = self.next_segment.max(segment + 1);
                    let decoder = decoder_at(&self.input, &file, at, segment)?;
                    self.decoder = Slot::Idle(Box::new(decoder));
                }
            }
        }
        Ok(())
    }

    fn drop_units_before(&mut self, segment: u64) {
        let later = self.units.split_off(&segment);
        let dropped = std::mem::replace(&mut self.units, later);
        self.held -= dropped.into_values().flatten().map(|unit| unit.held).sum::<usize>();
    }

    fn accept(&mut self, unit: Unit) {
        self.held -= unit.held;
        for block in unit.blocks {
            self.push(block.text, block.source_bytes);
        }
        self.decoder = match unit.decoder {
            Some(decoder) => Slot::Idle(decoder),
            None => Slot::Ended(unit.end),
        };
    }

    fn finish(&mut self) {
        self.drop_units_before(u64::MAX);
        self.decoder = Slot::Finished;
        if let Some(Checking { expected, bytes, crc }) = &self.checking
            && (expected.bytes != *bytes || expected.crc != crc.sum())
        {
            self.ready.push_back(Err(self.not_as_told(*expected, *bytes)));
            return;
        }
        self.push(Vec::new(), self.told);
        if let Some(Ok(block)) = self.ready.back_mut() {
            block.last = true;
        }
    }

    fn not_as_told(&self, expected: Check, bytes: u64) -> Error {
        let text = match expected.bytes == bytes {
            true => "its checksum is not what the archive tells".to_owned(),
            false => {
                format!("it has {bytes} bytes and the archive tells of {}", expected.bytes)
            }
        };
        let place = Place { file: self.input.name.clone(), line: 0, byte: self.told, field: 0 };
        let text = format!("{text}: the archive is damaged; nothing was loaded");
        Error::Input { place: Box::new(place), text }
    }
}

fn decoder_at(input: &Shared, file: &Arc<RawFile>, at: u64, segment: u64) -> Result<Decoder> {
    let raw = Raw::File { file: Arc::clone(file), at };
    let stop = (segment + 1).saturating_mul(SEGMENT_BYTES);
    Decoder::new(&input.name, raw, input.format, at, stop)
}

impl Unit {
    /// Begins a unit in a segment and decodes it to its end, or until `bytes_max` are there.
    fn decode(
        input: &Shared,
        segment: u64,
        bytes_max: usize,
        buffer: &dyn Fn() -> Vec<u8>,
    ) -> Result<Self> {
        let (Some(file), Some(format)) = (&input.file, input.format) else {
            return Ok(Unit::default());
        };
        let Some(start) = find_member(file, format, segment)? else { return Ok(Unit::default()) };
        let mut decoder = Box::new(decoder_at(input, file, start, segment)?);
        let mut unit = Unit { start: Some(start), ..Unit::default() };
        loop {
            let mut text = buffer();
            let (filled, state) = decoder.fill_slice(&mut text)?;
            text.truncate(filled);
            unit.held += text.len();
            // Where the block ends; what it took is told when it is taken over.
            let at = decoder.at();
            unit.blocks.push(Block { file: 0, text, source_bytes: at, last: false });
            unit.end = at;
            if state == State::Done {
                return Ok(unit);
            }
            if unit.held >= bytes_max {
                unit.decoder = Some(decoder);
                return Ok(unit);
            }
        }
    }
}

/// The first place in a segment that looks like the start of a member.
fn find_member(file: &RawFile, format: Compression, segment: u64) -> Result<Option<u64>> {
    let end = ((segment + 1) * SEGMENT_BYTES).min(file.bytes());
    let mut at = segment * SEGMENT_BYTES;
    let mut buffer = vec![0; SEARCH_BYTES + MAGIC_BYTES];
    while at < end {
        let read = file.read_at(&mut buffer, at)?;
        let here = SEARCH_BYTES.min((end - at) as usize);
        if let Some(found) = format.find_start(&buffer[..read], 0, here) {
            return Ok(Some(at + found as u64));
        }
        at += here as u64;
    }
    Ok(None)
}
