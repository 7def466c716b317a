//! Blocks that are there or coming, and which comes next.
//!
//! A block goes when all its bytes were read. Which were is known, and not only how many: who looks for the head of a page
//! reads what is behind it, too, and so twice.

use std::collections::{BTreeMap, BTreeSet, HashMap, VecDeque};
use std::ops::Range;
use std::sync::Arc;
use std::time::Instant;

use coload_types::Result;

use super::flow::Flow;
use super::seen::Seen;
use super::{Filling, Way};
use crate::blocks::{Blocks, Wanted, without};
use crate::object::{Object, ObjectRef, Objects};

/// An object and a block of it, by their numbers: in the order in which they are fetched.
pub type Key = (u32, u32);

/// A block to be fetched.
#[derive(Debug)]
pub struct ToFetch {
    /// Which it is.
    pub key: Key,
    /// Where it stands in its object.
    pub range: Range<u64>,
    /// Where its bytes may go.
    pub buffer: Vec<u8>,
    /// Which start of reading ahead it is for.
    pub start: u32,
}

/// Blocks that are fetched at once at most for who reads again what was read.
const TRAIL_MAX: usize = 15;
/// Objects between the block that is next and one that is wanted, at most, for that to be waited for.
const NEAR_OBJECTS: u32 = 256;
/// How often a block may go before all of it was read, and come again as a whole: heads of pages are looked at first.
const LEFT_MAX: u8 = 1;
/// Buffers that are kept for blocks to come.
const FREE_MAX: usize = 4;
/// Trails that are followed: more than threads read at once.
const TRAILS_MAX: usize = 64;
/// A block that was begun and not asked for again while so many others were gives room to the next.
const FORGOTTEN_AFTER: u64 = 4096;

/// The blocks of some objects.
#[derive(Default)]
pub struct Slots {
    /// Bytes that may be there and coming; 0 before objects are read ahead.
    bytes_max: usize,
    block_bytes: u64,
    /// What will be read of objects that said so.
    announced: BTreeMap<u32, Vec<Wanted>>,
    /// Blocks of these, and of objects of which something is there.
    parts: BTreeMap<u32, Arc<Blocks>>,
    slots: HashMap<Key, Slot>,
    /// Blocks that went before all of them was read, and how often.
    left: HashMap<Key, u8>,
    next: Key,
    /// Who reads again what was read before, those last at the back.
    trails: VecDeque<Trail>,
    held: usize,
    coming: usize,
    coming_bytes: usize,
    flow: Flow,
    /// Buffers that are not used.
    free: Vec<Vec<u8>>,
    asked: u64,
    /// Number of the start: blocks that come for an earlier one are others.
    start: u32,
}

/// Blocks that are read behind those which are fetched ahead: text is read twice where it is measured first.
#[derive(Debug, Clone, Copy)]
struct Trail {
    /// The block behind the last that was fetched.
    next: Key,
    /// How many are fetched at once: the more, the longer it goes on.
    at_once: usize,
}

struct Slot {
    filling: Filling,
    bytes: usize,
    seen: Seen,
    /// When it was asked for last, counted in what was asked for; 0 if it was not.
    asked: u64,
}

impl Slots {
    /// Whether objects are read ahead.
    pub fn is_started(&self) -> bool {
        self.bytes_max > 0
    }

    /// Says what will be read of an object.
    pub fn announce(&mut self, number: u32, parts: Vec<Wanted>) {
        self.announced.insert(number, parts);
    }

    /// Nothing is fetched ahead, and what was is given up.
    pub fn stop(&mut self) {
        self.bytes_max = 0;
        self.start += 1;
        self.slots.clear();
        self.free.clear();
        (self.held, self.coming, self.coming_bytes) = (0, 0, 0);
    }

    /// Whether something of a part will be read.
    pub fn is_wanted(&self, number: u32, part: &Range<u64>) -> bool {
        self.announced.get(&number).is_none_or(|wanted| {
            wanted.iter().any(|of| of.range.start < part.end && part.start < of.range.end)
        })
    }

    /// Begins at an object; so many bytes may be there, in blocks of a size. What is there of objects is not fetched.
    pub fn start(
        &mut self,
        all: &Objects,
        (bytes_max, block_bytes): (usize, u64),
        first: u32,
        there: &BTreeMap<u32, Vec<Range<u64>>>,
    ) {
        self.stop();
        self.left.clear();
        self.trails.clear();
        self.next = (first, 0);
        self.bytes_max = bytes_max.max(2 * block_bytes as usize);
        self.block_bytes = block_bytes;
        let numbers: BTreeSet<u32> = self.announced.keys().chain(there.keys()).copied().collect();
        let blocks = |number: u32| {
            let whole = || vec![Wanted::from(0..all.objects[number as usize].bytes)];
            let wanted = self.announced.get(&number).cloned().unwrap_or_else(whole);
            let there = there.get(&number).into_iter().flatten();
            let missing = there.fold(wanted, without);
            (number, Arc::new(Blocks::of_parts(missing, block_bytes)))
        };
        self.parts = numbers.into_iter().map(blocks).collect();
    }

    fn blocks(&self, number: u32, bytes: u64) -> Arc<Blocks> {
        match self.parts.get(&number) {
            Some(parts) => Arc::clone(parts),
            None => Arc::new(Blocks::Whole { bytes, each: self.block_bytes }),
        }
    }

    /// The next block to be fetched ahead, if there is room for it.
    pub fn next(&mut self, objects: &[Object]) -> Option<ToFetch> {
        if !self.is_started() {
            return None;
        }
        let range = self.pass(objects)?;
        let bytes = (range.end - range.start) as usize;
        if !self.flow.may_come(self.coming, self.coming_bytes + bytes, self.block_bytes as usize)
            || !self.has_room(bytes)
        {
            return None;
        }
        let key = self.next;
        self.next.1 += 1;
        Some(self.fetch(key, range, 0))
    }

    /// Goes on to the next block that is neither there nor coming, and says where it stands; `None` at the end.
    fn pass(&mut self, objects: &[Object]) -> Option<Range<u64>> {
        loop {
            let (number, block) = self.next;
            let object = objects.get(number as usize)?;
            let blocks = self.blocks(number, object.bytes);
            if block as usize >= blocks.len() {
                self.next = (number + 1, 0);
            } else if self.slots.contains_key(&self.next) {
                self.next.1 += 1;
            } else {
                return Some(blocks.range(block as usize));
            }
        }
    }

    /// Whether a block may come; one that nobody goes on with goes for it.
    fn has_room(&mut self, bytes: usize) -> bool {
        while self.held + bytes > self.bytes_max {
            let now = self.asked;
            let is_forgotten = |slot: &Slot| {
                matches!(slot.filling, Filling::There(_))
                    && slot.asked > 0
                    && slot.asked + FORGOTTEN_AFTER < now
            };
            let found = self.slots.iter().filter(|(_, slot)| is_forgotten(slot));
            let Some(key) = found.min_by_key(|(_, slot)| slot.asked).map(|(key, _)| *key) else {
                return false;
            };
            self.leave(key);
        }
        true
    }

    /// Takes a block away of which not all was read.
    fn leave(&mut self, key: Key) {
        self.remove(key);
        let times = self.left.entry(key).or_default();
        *times = times.saturating_add(1);
    }

    fn fetch(&mut self, key: Key, range: Range<u64>, asked: u64) -> ToFetch {
        let bytes = (range.end - range.start) as usize;
        let mut seen = Seen::default();
        if let Some(parts) = self.parts.get(&key.0) {
            parts.unwanted(key.1 as usize).into_iter().for_each(|unwanted| seen.add(unwanted));
        }
        self.slots.insert(key, Slot { filling: Filling::Coming, bytes, seen, asked });
        self.held += bytes;
        self.coming += 1;
        self.coming_bytes += bytes;
        ToFetch { key, range, buffer: self.free.pop().unwrap_or_default(), start: self.start }
    }

    /// How to get what stands at a place of an object, and what is to be fetched for it.
    pub fn way(&mut self, of: &ObjectRef, at: u64) -> (Way, Vec<ToFetch>) {
        let blocks = self.blocks(of.number, of.bytes());
        let Some(block) = blocks.find(at) else { return (Way::Alone, Vec::new()) };
        let key = (of.number, block as u32);
        let range = blocks.range(block);
        self.asked += 1;
        let now = self.asked;
        if let Some(slot) = self.slots.get_mut(&key) {
            slot.asked = now;
            let way = match slot.filling.way(range.start) {
                Way::There(bytes, start, _) => Way::There(bytes, start, Some(key)),
                way => way,
            };
            return (way, Vec::new());
        }
        if self.comes_soon(key, &range, &of.all.objects) {
            return (Way::Wait, Vec::new());
        }
        let bytes = (range.end - range.start) as usize;
        // What went more than once is read here and there: of it comes what is asked for.
        let goes_again = self.left.get(&key).is_some_and(|times| *times > LEFT_MAX);
        if goes_again || !(self.has_room(bytes) || self.make_room(bytes, key)) {
            return (Way::Alone, Vec::new());
        }
        let first = self.fetch(key, range, now);
        if key >= self.next {
            self.next = (key.0, key.1 + 1);
            return (Way::Wait, vec![first]);
        }
        let mut fetched = vec![first];
        fetched.extend(self.follow(key, &of.all.objects));
        (Way::Wait, fetched)
    }

    /// Whether a block is one of those that come next, with room for all before it: then who wants it waits, for they are
    /// wanted, too.
    fn comes_soon(&self, key: Key, range: &Range<u64>, objects: &[Object]) -> bool {
        let (number, block) = self.next;
        if self.coming == 0 || key < self.next || key.0 - number > NEAR_OBJECTS {
            return false;
        }
        // What is before it, of each object from the next block on.
        let mut taken = self.held as u64 + (range.end - range.start);
        for at in number..=key.0 {
            let blocks = self.blocks(at, objects[at as usize].bytes);
            let first = if at == number { block as usize } else { 0 };
            let end = if at == key.0 { key.1 as usize } else { blocks.len() };
            for range in (first..end).map(|block| blocks.range(block)) {
                taken += range.end - range.start;
                if taken > self.bytes_max as u64 {
                    return false;
                }
            }
        }
        taken <= self.bytes_max as u64
    }

    /// Blocks behind one that is read again, if those before it were, too.
    fn follow(&mut self, key: Key, objects: &[Object]) -> Vec<ToFetch> {
        let known = self.trails.iter().position(|trail| trail.next == key);
        let known = known.and_then(|at| self.trails.remove(at));
        let at_once = known.map_or(0, |trail| (2 * trail.at_once).clamp(1, TRAIL_MAX));
        let end = self.next;
        let mut fetched = Vec::new();
        self.next = (key.0, key.1 + 1);
        while fetched.len() < at_once
            && let Some(block) = self.next(objects)
        {
            fetched.push(block);
        }
        self.pass(objects);
        if self.trails.len() == TRAILS_MAX {
            self.trails.pop_front();
        }
        self.trails.push_back(Trail { next: self.next, at_once });
        self.next = self.next.max(end);
        fetched
    }

    /// Makes room for a block that somebody waits for: those that are farthest ahead go, and then those that were
    /// asked for longest ago.
    fn make_room(&mut self, bytes: usize, wanted: Key) -> bool {
        while self.held + bytes > self.bytes_max {
            let there = self.slots.iter().filter(|(_, s)| matches!(s.filling, Filling::There(_)));
            let ahead = there.clone().filter(|(key, slot)| slot.asked == 0 && **key > wanted);
            let found = ahead.map(|(key, _)| *key).max();
            let Some(key) =
                found.or_else(|| there.min_by_key(|(_, slot)| slot.asked).map(|(key, _)| *key))
            else {
                return false;
            };
            match found {
                Some(_) => self.next = self.next.min(key),
                None => {
                    self.leave(key);
                    continue;
                }
            }
            self.remove(key);
        }
        true
    }

    /// Takes a block that has come.
    pub fn arrived(&mut self, key: Key, start: u32, bytes: Result<Vec<u8>>) {
        if start != self.start {
            return;
        }
        self.coming -= 1;
        if let Some(slot) = self.slots.get(&key) {
            self.coming_bytes = self.coming_bytes.saturating_sub(slot.bytes);
        }
        if let Ok(bytes) = &bytes {
            self.flow.arrived(bytes.len(), Instant::now());
        }
        if let Some(slot) = self.slots.get_mut(&key) {
            slot.filling = match bytes {
                Ok(bytes) => Filling::There(Arc::new(bytes)),
                Err(error) => Filling::Failed(error),
            };
        }
    }

    /// Notes that bytes of a block were read: one that was read goes.
    pub fn was_read(&mut self, key: Key, range: Range<usize>) {
        let Some(slot) = self.slots.get_mut(&key) else { return };
        slot.seen.add(range);
        if slot.seen.bytes() == slot.bytes {
            self.remove(key);
        }
    }

    fn remove(&mut self, key: Key) {
        let Some(slot) = self.slots.remove(&key) else { return };
        self.held -= slot.bytes;
        if let Filling::There(bytes) = slot.filling
            && let Some(buffer) = Arc::into_inner(bytes)
            && self.free.len() < FREE_MAX
        {
            self.free.push(buffer);
        }
    }
}
