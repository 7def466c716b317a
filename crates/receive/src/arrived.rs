//! How far the inputs of a load have arrived, and how far they have been read.
//!
//! Chunks come over several connections, in no order. A load that reads while they arrive holds the client back:
//! no chunk is taken that lies more than [`AHEAD_BYTES`] before what was read, all inputs one after the other.

use std::collections::BTreeMap;
use std::fs::File;
use std::io::{self, Read};
use std::os::unix::fs::FileExt;
use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use coload_types::{Error, Result};

use coload_threads::lock;

/// How far a client may be before the reader.
const AHEAD_BYTES: u64 = 256 << 20;
/// Most parts of an input behind a gap: a client sends in order, over a few connections.
const PARTS_MAX: usize = 4096;
/// How often a waiting thread looks whether the client is gone.
const POLL: Duration = Duration::from_millis(100);

/// How far each input has arrived.
#[derive(Debug)]
pub struct Arrived {
    ranges: Mutex<Ranges>,
    changed: Condvar,
    /// Where each input ends when they stand one after the other.
    ends: Vec<u64>,
    reading: Reading,
}

/// When inputs are read.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Reading {
    /// Each is read while it arrives.
    Meanwhile,
    /// When all have arrived.
    Afterwards,
}

#[derive(Debug)]
struct Ranges {
    /// Bytes of each input that are there from its start on.
    to: Vec<u64>,
    /// Parts behind a gap: input and start, to the end. Of many inputs few are on their way at once.
    parts: BTreeMap<(usize, u64), u64>,
    /// Bytes of each input that were read.
    read: Vec<u64>,
    /// The first input that is not wholly read.
    reads: usize,
    finished: bool,
    ended: bool,
}

impl Arrived {
    /// Inputs of `totals` bytes, of which the first `to` are there.
    pub fn new(totals: &[u64], to: Vec<u64>, reading: Reading) -> Self {
        let ends = totals.iter().scan(0u64, |sum, total| {
            *sum = sum.saturating_add(*total);
            Some(*sum)
        });
        let ranges = Ranges {
            parts: BTreeMap::new(),
            read: vec![0; to.len()],
            to,
            reads: 0,
            finished: false,
            ended: false,
        };
        Arrived {
            ends: ends.collect(),
            ranges: Mutex::new(ranges),
            changed: Condvar::new(),
            reading,
        }
    }

    /// Waits until bytes that begin at `offset` may be taken.
    ///
    /// # Errors
    /// `Unavailable` when the client is gone.
    pub fn make_room(&self, file: usize, offset: u64) -> Result<()> {
        let position = self.start(file).saturating_add(offset);
        let mut ranges = lock(&self.ranges);
        // The first bytes of each input are read before the others: they tell how it is compressed.
        while self.reading == Reading::Meanwhile
            && offset > 0
            && position > self.read_position(&mut ranges).saturating_add(AHEAD_BYTES)
        {
            if ranges.ended {
                return Err(Error::Unavailable("the client is gone".into()));
            }
            ranges = self.wait_for_change(ranges);
        }
        Ok(())
    }

    fn read_position(&self, ranges: &mut Ranges) -> u64 {
        while ranges.reads < self.ends.len()
            && ranges.read[ranges.reads] >= self.total(ranges.reads)
        {
            ranges.reads += 1;
        }
        match ranges.read.get(ranges.reads) {
            Some(read) => self.start(ranges.reads) + read,
            None => u64::MAX,
        }
    }

    fn wait_for_change<'a>(&self, ranges: MutexGuard<'a, Ranges>) -> MutexGuard<'a, Ranges> {
        self.changed.wait_timeout(ranges, POLL).unwrap_or_else(PoisonError::into_inner).0
    }

    /// Notes bytes that are there.
    ///
    /// # Errors
    /// `Limit` when too many parts have gaps between them.
    pub fn add(&self, file: usize, start: u64, end: u64) -> Result<()> {
        let mut ranges = lock(&self.ranges);
        let ranges = &mut *ranges;
        let part = ranges.parts.entry((file, start)).or_insert(end);
        *part = end.max(*part);
        let of_file = (file, 0)..=(file, u64::MAX);
        while let Some((&key, &end)) = ranges.parts.range(of_file.clone()).next() {
            if key.1 > ranges.to[file] {
                break;
            }
            ranges.parts.remove(&key);
            ranges.to[file] = ranges.to[file].max(end);
        }
        if ranges.parts.len() > PARTS_MAX && ranges.parts.range(of_file).count() > PARTS_MAX {
            return Err(Error::Limit(format!(
                "input {file} comes in more than {PARTS_MAX} parts with gaps between them"
            )));
        }
        self.changed.notify_all();
        Ok(())
    }

    /// Waits until more than `offset` bytes of an input are there; says how many, or that it ends.
    ///
    /// # Errors
    /// When the client is gone.
    pub fn wait(&self, file: usize, offset: u64) -> io::Result<u64> {
        let mut ranges = lock(&self.ranges);
        loop {
            if ranges.to[file] > offset || ranges.to[file] == self.total(file) {
                return Ok(ranges.to[file]);
            }
            if ranges.ended {
                return Err(io::Error::other("the client is gone"));
            }
            ranges = self.wait_for_change(ranges);
        }
    }

    /// Waits until the client has said that it has sent all.
    ///
    /// # Errors
    /// `Unavailable` when it is gone.
    pub fn confirm(&self) -> Result<()> {
        let mut ranges = lock(&self.ranges);
        while !ranges.finished {
            if ranges.ended {
                return Err(Error::Unavailable("the client is gone".into()));
            }
            ranges = self.wait_for_change(ranges);
        }
        Ok(())
    }

    /// Bytes of each input that are there from its start on.
    pub fn to(&self) -> Vec<u64> {
        lock(&self.ranges).to.clone()
    }

    /// Bytes that were read of all inputs, one after the other, up to the first gap.
    pub fn read_to(&self) -> u64 {
        let position = self.read_position(&mut lock(&self.ranges));
        position.min(self.ends.last().copied().unwrap_or(0))
    }

    /// Where an input begins when they stand one after the other.
    pub fn start(&self, file: usize) -> u64 {
        file.checked_sub(1).map_or(0, |before| self.ends[before])
    }

    /// Where each input ends when they stand one after the other.
    pub fn ends(&self) -> Vec<u64> {
        self.ends.clone()
    }

    /// Bytes of an input in all.
    pub fn total(&self, file: usize) -> u64 {
        self.ends[file] - self.start(file)
    }

    fn note_read(&self, file: usize, to: u64) {
        lock(&self.ranges).read[file] = to;
        self.changed.notify_all();
    }

    /// Notes whether the client has sent all, and its files did not change.
    pub fn set_finished(&self, finished: bool) {
        lock(&self.ranges).finished = finished;
        self.changed.notify_all();
    }

    /// Whether the client has sent all, and its files did not change.
    pub fn is_finished(&self) -> bool {
        lock(&self.ranges).finished
    }

    /// The client is gone: nobody waits any more.
    pub fn end(&self) {
        lock(&self.ranges).ended = true;
        self.changed.notify_all();
    }

    /// Whether the client is gone.
    pub fn is_ended(&self) -> bool {
        lock(&self.ranges).ended
    }
}

/// Reads an input while it arrives.
pub struct ArrivingReader {
    arrived: Arc<Arrived>,
    number: usize,
    file: Arc<File>,
    offset: u64,
}

impl ArrivingReader {
    /// A reader of an input that arrives in `file`, where it has its place among the others.
    pub fn new(arrived: Arc<Arrived>, number: usize, file: Arc<File>) -> Self {
        ArrivingReader { arrived, number, file, offset: 0 }
    }
}

impl Read for ArrivingReader {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        let to = self.arrived.wait(self.number, self.offset)?;
        let length = buffer.len().min((to - self.offset.min(to)) as usize);
        let place = self.arrived.start(self.number) + self.offset;
        let read = self.file.read_at(&mut buffer[..length], place)?;
        self.offset += read as u64;
        self.arrived.note_read(self.number, self.offset);
        Ok(read)
    }
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]
    use super::*;

    #[test]
    fn parts_in_any_order_come_together_and_a_shorter_repetition_changes_nothing() {
        let arrived = Arrived::new(&[100], vec![0], Reading::Meanwhile);
        arrived.add(0, 50, 100).unwrap();
        arrived.add(0, 50, 60).unwrap();
        assert_eq!(arrived.to(), [0]);
        arrived.add(0, 0, 50).unwrap();
        assert_eq!(arrived.to(), [100]);
        assert_eq!(arrived.wait(0, 100).unwrap(), 100);
    }

    #[test]
    fn too_many_gaps_are_refused() {
        let arrived = Arrived::new(&[1 << 20], vec![0], Reading::Meanwhile);
        let mut parts = (0..=PARTS_MAX as u64).map(|n| arrived.add(0, 2 * n + 1, 2 * n + 2));
        assert!(matches!(parts.find(Result::is_err).unwrap(), Err(Error::Limit(_))));
    }

    #[test]
    fn a_client_far_before_the_reader_waits_for_it_or_for_the_end() {
        let totals = vec![10, 4 * AHEAD_BYTES];
        let arrived = Arrived::new(&totals, vec![0, 0], Reading::Meanwhile);
        arrived.make_room(1, 0).unwrap();
        arrived.make_room(1, AHEAD_BYTES - 10).unwrap();
        std::thread::scope(|scope| {
            let waits = scope.spawn(|| arrived.make_room(1, AHEAD_BYTES + 5));
            arrived.note_read(0, 10);
            arrived.note_read(1, 5);
            waits.join().unwrap().unwrap();
            let waits = scope.spawn(|| arrived.make_room(1, 3 * AHEAD_BYTES));
            arrived.end();
            assert!(waits.join().unwrap().is_err());
        });
        let afterwards = Arrived::new(&[4 * AHEAD_BYTES], vec![0], Reading::Afterwards);
        afterwards.make_room(0, 3 * AHEAD_BYTES).unwrap();
    }
}
