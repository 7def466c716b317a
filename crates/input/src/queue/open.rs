//! An input that is being read: its decoder, and the units ahead of it.

use std::collections::{BTreeMap, VecDeque};
use std::sync::{Arc, Mutex};
use std::thread::{self, ThreadId};

use coload_threads::lock;
use coload_types::{Error, Place, Result};

use super::unit::{Unit, UnitStep};
use super::{Block, Job, Kind, SEGMENT_BYTES};
use crate::archive::Check;
use crate::compression::Compression;
use crate::decoder::{Decoder, Filled, Start};
use crate::open::TextInput;
use crate::raw::{Raw, RawFile};
use crate::windows::{HeldWindow, Windows};

/// An input that is being read.
pub struct Open {
    pub file: usize,
    input: Arc<Shared>,
    decoder: Slot,
    /// Number of the next segment to begin a unit in.
    next_segment: u64,
    segments: u64,
    units: BTreeMap<u64, Unit>,
    pub ready: VecDeque<Result<Block>>,
    /// Bytes of text in `ready` and `units`.
    pub held: usize,
    /// Stored bytes told in blocks.
    told: u64,
    checking: Option<Checking>,
    /// What the input holds beside its decoder.
    _held_by_input: Option<HeldWindow>,
}

/// What the text must be, and what it was so far.
struct Checking {
    expected: Check,
    bytes: u64,
    crc: libdeflater::Crc,
}

/// What jobs need to know of an input.
pub struct Shared {
    pub name: String,
    pub format: Option<Compression>,
    pub file: Option<Arc<RawFile>>,
    /// Decoders that are not needed any more, and who ran them last: a new one has to get memory and touch it,
    /// and one of another thread has its window in the wrong cache.
    spare: Mutex<Vec<(Box<Decoder>, ThreadId)>>,
    windows: Arc<Windows>,
}

/// A decoder, or why there is none.
pub enum Slot {
    /// It can go on, best with the thread that ran it last, which has its window in the cache.
    Idle(Box<Decoder>, ThreadId),
    Busy,
    /// It has ended here; another goes on.
    Ended(u64),
    /// There is nothing more to decode.
    Finished,
}

/// Who may go on with a decoder.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum By {
    /// This thread, if it ran it last.
    Same,
    /// This thread, whoever ran it.
    Anyone,
}

impl Slot {
    /// A decoder that this thread ran.
    fn idle(decoder: Box<Decoder>) -> Self {
        Slot::Idle(decoder, thread::current().id())
    }

    /// The decoder, if it can go on now, and with whom `by` says.
    fn take_idle(&mut self, by: By) -> Option<Box<Decoder>> {
        match std::mem::replace(self, Slot::Busy) {
            Slot::Idle(decoder, last) if by == By::Anyone || last == thread::current().id() => {
                Some(decoder)
            }
            other => {
                *self = other;
                None
            }
        }
    }
}

impl Shared {
    /// A decoder at a place where `start` may be, for members that start before `stop`.
    ///
    /// # Errors
    /// `Unavailable` when there is no memory for it.
    pub fn decoder(&self, raw: Raw, at: u64, stop: u64, start: Start) -> Result<Box<Decoder>> {
        let spare = {
            let mut spare = lock(&self.spare);
            let own = spare.iter().rposition(|(_, last)| *last == thread::current().id());
            own.map(|own| spare.swap_remove(own)).or_else(|| spare.pop())
        };
        let mut decoder = match spare {
            Some((decoder, _)) => decoder,
            None => {
                let new = Decoder::new(&self.name, Raw::empty(), self.format, at, stop)?;
                Box::new(new.counted_in(&self.windows)?)
            }
        };
        decoder.go_to(raw, at, stop, start);
        Ok(decoder)
    }

    /// Keeps a decoder that this thread ran, and that has ended or not begun, unless its window is wanted elsewhere.
    pub fn keep(&self, decoder: Box<Decoder>) {
        if !self.windows.have_room() {
            return;
        }
        let mut spare = lock(&self.spare);
        spare.push((decoder, thread::current().id()));
    }

    /// The decoder goes on, or others may have it.
    pub fn slot(&self, decoder: Box<Decoder>, state: Filled) -> Slot {
        match state {
            Filled::More => Slot::idle(decoder),
            Filled::Done => {
                let at = decoder.at();
                self.keep(decoder);
                Slot::Ended(at)
            }
        }
    }
}

impl Open {
    pub fn new(file: usize, input: TextInput, windows: &Arc<Windows>) -> Result<Self> {
        let TextInput { name, format, raw, check, held_bytes, .. } = input;
        let held_by_input = (held_bytes > 0).then(|| HeldWindow::of_bytes(windows, held_bytes));
        let stored = match &raw {
            Raw::File { file, at: 0 } if format.is_some_and(Compression::has_members) => {
                Some(Arc::clone(file))
            }
            _ => None,
        };
        let segments = stored.as_ref().map_or(0, |f| f.bytes().div_ceil(SEGMENT_BYTES));
        let stop = if segments > 1 { SEGMENT_BYTES } else { u64::MAX };
        let decoder = Decoder::new(&name, raw, format, 0, stop)?.counted_in(windows)?;
        Ok(Open {
            file,
            input: Arc::new(Shared {
                name,
                format,
                file: stored,
                spare: Mutex::default(),
                windows: Arc::clone(windows),
            }),
            decoder: Slot::idle(Box::new(decoder)),
            next_segment: 1,
            segments,
            units: BTreeMap::new(),
            ready: VecDeque::new(),
            held: 0,
            told: 0,
            _held_by_input: held_by_input,
            checking: check.map(|expected| Checking {
                expected,
                bytes: 0,
                crc: libdeflater::Crc::new(),
            }),
        })
    }

    pub fn ready_bytes(&self) -> usize {
        self.ready.iter().flatten().map(|b| b.text.len()).sum()
    }

    /// The next step of the decoder.
    pub fn next_job(&mut self, by: By) -> Option<Job> {
        let decoder = self.decoder.take_idle(by)?;
        Some(self.job(Kind::Next(decoder)))
    }

    fn job(&self, kind: Kind) -> Job {
        Job { file: self.file, input: Arc::clone(&self.input), kind }
    }

    /// A step of the first unit that can go on and has less than `bytes_max`.
    pub fn unit_job(&mut self, bytes_max: usize, by: By) -> Option<Job> {
        let mut units = self.units.iter_mut().filter(|(_, unit)| unit.held < bytes_max);
        let (segment, decoder) =
            units.find_map(|(segment, unit)| Some((*segment, unit.decoder.take_idle(by)?)))?;
        Some(self.job(Kind::Unit { segment, decoder: Some(decoder) }))
    }

    /// The first step of a unit in the next segment.
    pub fn new_unit_job(&mut self) -> Option<Job> {
        if self.next_segment >= self.segments || matches!(self.decoder, Slot::Finished) {
            return None;
        }
        let segment = self.next_segment;
        self.next_segment += 1;
        self.units.insert(segment, Unit::begun());
        Some(self.job(Kind::Unit { segment, decoder: None }))
    }

    /// Takes what the decoder made.
    pub fn decoded(&mut self, decoder: Box<Decoder>, made: Result<(Block, Filled)>) {
        match made {
            Err(error) => {
                self.ready.push_back(Err(error));
                self.decoder = Slot::Finished;
            }
            Ok((block, state)) => {
                self.push(block);
                self.decoder = self.input.slot(decoder, state);
                self.settle();
            }
        }
    }

    /// Takes a step of a unit; without one there is none in its segment.
    pub fn unit_decoded(&mut self, segment: u64, step: Option<UnitStep>) {
        // Units behind the decoder were thrown away.
        let Some(unit) = self.units.get_mut(&segment) else { return };
        match step {
            Some(step) => self.held += unit.push(step, &self.input),
            None => {
                self.held -= unit.held;
                *unit = Unit { decoder: Slot::Finished, ..Unit::begun() };
            }
        }
        self.settle();
    }

    /// Takes a block that ends at `source_bytes` of the stored bytes.
    fn push(&mut self, block: Block) {
        self.held += block.text.len();
        if let Some(checking) = &mut self.checking {
            checking.bytes += block.text.len() as u64;
            checking.crc.update(&block.text);
        }
        let source_bytes = block.source_bytes.saturating_sub(self.told);
        self.told += source_bytes;
        self.ready.push_back(Ok(Block { file: self.file, source_bytes, ..block }));
    }

    /// Goes on where the decoder has ended: with a unit, with another decoder, or to the input's end.
    fn settle(&mut self) {
        while let Slot::Ended(at) = self.decoder {
            let Some(file) = self.input.file.clone().filter(|file| at < file.bytes()) else {
                self.finish();
                return;
            };
            let segment = at / SEGMENT_BYTES;
            self.drop_units_before(segment);
            match self.units.get(&segment) {
                Some(Unit { decoder: Slot::Busy, .. }) => return,
                Some(unit) if unit.start == Some(at) => self.accept(segment),
                _ => self.restart(file.reader(at), at, segment),
            }
        }
    }

    /// Goes on with a decoder to the end of a segment.
    fn restart(&mut self, raw: Raw, at: u64, segment: u64) {
        self.drop_units_before(segment + 1);
        self.next_segment = self.next_segment.max(segment + 1);
        let stop = (segment + 1).saturating_mul(SEGMENT_BYTES);
        self.decoder = match self.input.decoder(raw, at, stop, Start::AfterMember) {
            Ok(decoder) => Slot::idle(decoder),
            Err(error) => {
                self.ready.push_back(Err(error));
                Slot::Finished
            }
        };
    }

    fn drop_units_before(&mut self, segment: u64) {
        let later = self.units.split_off(&segment);
        let dropped = std::mem::replace(&mut self.units, later);
        self.held -= dropped.into_values().map(|unit| unit.held).sum::<usize>();
    }

    /// Takes the unit of a segment over.
    fn accept(&mut self, segment: u64) {
        let Some(unit) = self.units.remove(&segment) else { return };
        self.held -= unit.held;
        for block in unit.blocks {
            self.push(block);
        }
        self.decoder = unit.decoder;
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
        self.push(Block { last: true, source_bytes: self.told, ..Block::default() });
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
