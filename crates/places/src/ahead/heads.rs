//! The ends of objects, which are looked at before they are loaded, and parts that were looked at last.
//!
//! ```text
//!   object   | head |   ...   | a page's head |   ...   | tail |
//! ```
//!
//! Who looks at one object mostly looks at the next, so that the ends of those behind it come with its own.

use std::collections::{BTreeMap, VecDeque};
use std::ops::Range;
use std::sync::Arc;

use coload_types::{Error, Result};

use super::Way;
use crate::object::{Object, ObjectRef};

/// Objects whose ends are fetched ahead of the one that is looked at.
const ENDS_AHEAD: u32 = 32;
/// Objects whose heads have room at once.
const HEADS: u64 = 64;
/// Bytes of ends that are kept: of small objects all are looked at once, however often that is.
pub const ENDS_BYTES_MAX: u64 = 16 << 20;
/// Fewest and most bytes of a head: what is looked at to infer types, if there are few objects.
const HEAD_BYTES: (u64, u64) = (64 << 10, 1 << 20);
/// Bytes of a tail: footers of files with some row groups.
const TAIL_BYTES: u64 = 256 << 10;
/// Most bytes of parts that are kept.
const PARTS_BYTES_MAX: usize = 4 << 20;

/// A side of an object.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum Side {
    /// Its first bytes.
    Head,
    /// Its last bytes.
    Tail,
}

/// An end of an object.
pub type End = (Side, u32);

/// What was looked at.
#[derive(Default)]
pub struct Heads {
    ends: BTreeMap<End, Filling>,
    /// Bytes of these, those that come included.
    ends_bytes: u64,
    parts: VecDeque<(u32, u64, Vec<u8>)>,
    parts_bytes: usize,
}

enum Filling {
    Coming,
    There(Arc<Vec<u8>>),
    Failed(Error),
}

/// Bytes of the head of an object.
fn head_bytes(of: &ObjectRef) -> u64 {
    let each = ENDS_BYTES_MAX / (of.all.objects.len() as u64).clamp(1, HEADS);
    of.bytes().min(each.clamp(HEAD_BYTES.0, HEAD_BYTES.1))
}

/// Where an end stands in its object.
pub fn range(of: &ObjectRef, side: Side) -> Range<u64> {
    match side {
        Side::Head => 0..head_bytes(of),
        Side::Tail => of.bytes().saturating_sub(TAIL_BYTES).max(head_bytes(of))..of.bytes(),
    }
}

fn end_bytes(of: &ObjectRef, (side, number): End) -> u64 {
    let range = range(&of.all.at(number as usize), side);
    range.end - range.start
}

impl Heads {
    /// The end that has a byte.
    pub fn side(of: &ObjectRef, at: u64) -> Option<Side> {
        [Side::Head, Side::Tail].into_iter().find(|side| range(of, *side).contains(&at))
    }

    /// Whether all of an object is there.
    pub fn has_whole(&self, number: u32, bytes: u64) -> bool {
        let head = self.ends.get(&(Side::Head, number));
        matches!(head, Some(Filling::There(head)) if head.len() as u64 == bytes)
    }

    /// Keeps heads that are all of their objects, as long as they are so few bytes, and nothing else.
    pub fn keep_whole(&mut self, objects: &[Object], bytes_max: u64) {
        self.ends_bytes = 0;
        self.ends.retain(|(side, number), end| {
            let (Side::Head, Filling::There(head)) = (side, end) else { return false };
            let (bytes, held) = (head.len() as u64, self.ends_bytes);
            let keeps = bytes == objects[*number as usize].bytes && held + bytes <= bytes_max;
            self.ends_bytes += if keeps { bytes } else { 0 };
            keeps
        });
        self.parts.clear();
        self.parts_bytes = 0;
    }

    /// Bytes of ends.
    pub fn bytes(&self) -> u64 {
        self.ends_bytes
    }

    /// Ends that are to be fetched: that of an object, and of those behind it.
    pub fn missing(&mut self, of: &ObjectRef, side: Side) -> Vec<End> {
        let is_there = !matches!(self.ends.get(&(side, of.number)), None | Some(Filling::Coming));
        let count = of.all.objects.len() as u32;
        let last = count.min(of.number.saturating_add(ENDS_AHEAD));
        // Half of them at once, not one with each look.
        let half = last.min(of.number.saturating_add(ENDS_AHEAD / 2));
        if is_there && (of.number..half).all(|number| self.ends.contains_key(&(side, number))) {
            return Vec::new();
        }
        let missing: Vec<End> = (of.number..last)
            .map(|number| (side, number))
            .filter(|end| {
                let of = of.all.at(end.1 as usize);
                !self.ends.contains_key(end) && !range(&of, side).is_empty()
            })
            .collect();
        for end in &missing {
            self.ends.insert(*end, Filling::Coming);
            self.ends_bytes += end_bytes(of, *end);
        }
        self.forget_others(of);
        missing
    }

    /// Leaves out ends that are far from the object that is looked at, while all are too many bytes.
    fn forget_others(&mut self, of: &ObjectRef) {
        let near = of.number..of.number.saturating_add(ENDS_AHEAD);
        while self.ends_bytes > ENDS_BYTES_MAX {
            let is_free = |(end, filling): &(&End, &Filling)| {
                !matches!(filling, Filling::Coming) && !near.contains(&end.1)
            };
            let Some(far) = self.ends.iter().find(is_free).map(|(end, _)| *end) else { return };
            self.ends.remove(&far);
            self.ends_bytes -= end_bytes(of, far);
        }
    }

    /// Takes an end that has come.
    pub fn arrived(&mut self, end: End, bytes: Result<Vec<u8>>) {
        // One that nobody waits for any more is not kept.
        if let Some(coming) = self.ends.get_mut(&end) {
            *coming = match bytes {
                Ok(bytes) => Filling::There(Arc::new(bytes)),
                Err(error) => Filling::Failed(error),
            };
        }
    }

    /// What is known of an end, which begins at `start`.
    pub fn get(&self, end: End, start: u64) -> Way {
        match self.ends.get(&end) {
            Some(Filling::There(bytes)) => Way::There(Arc::clone(bytes), start, None),
            Some(Filling::Failed(error)) => Way::Failed(error.clone()),
            Some(Filling::Coming) => Way::Wait,
            None => Way::Alone,
        }
    }

    /// Keeps a part that was looked at; the oldest go.
    pub fn keep_part(&mut self, number: u32, start: u64, bytes: Vec<u8>) {
        self.parts_bytes += bytes.len();
        self.parts.push_back((number, start, bytes));
        while self.parts_bytes > PARTS_BYTES_MAX
            && let Some((.., bytes)) = self.parts.pop_front()
        {
            self.parts_bytes -= bytes.len();
        }
    }

    /// Fills a buffer from a part that was looked at, if one has all of it.
    pub fn part(&self, number: u32, at: u64, out: &mut [u8]) -> bool {
        let end = at + out.len() as u64;
        let has = |(of, start, bytes): &&(u32, u64, Vec<u8>)| {
            *of == number && *start <= at && end <= start + bytes.len() as u64
        };
        // What comes next is mostly behind what came last.
        let Some((_, start, bytes)) = self.parts.iter().rev().find(has) else { return false };
        let from = (at - start) as usize;
        out.copy_from_slice(&bytes[from..from + out.len()]);
        true
    }
}
