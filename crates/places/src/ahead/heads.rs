//! The ends of objects, which are looked at before they are loaded.
//!
//! ```text
//!   object   | head |   ...   | tail |
//! ```
//!
//! Who looks at one object mostly looks at the next, so that the ends of those behind it come with its own. What has come is
//! not fetched again when objects are read ahead, as far as there is room for it.

use std::collections::BTreeMap;
use std::ops::Range;
use std::sync::Arc;

use coload_types::Result;

use super::{Filling, Way};
use crate::object::{ObjectRef, Objects};

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

    /// The end that has a byte, if it is there.
    pub fn there(&self, of: &ObjectRef, at: u64) -> Option<Way> {
        let side = Self::side(of, at)?;
        let end = self.ends.get(&(side, of.number))?;
        matches!(end, Filling::There(_)).then(|| end.way(range(of, side).start))
    }

    /// Keeps ends of which somebody will read something, of objects from one on, as long as they are so few bytes, and
    /// nothing else. Gives the objects, and what is there of each.
    pub fn keep_read(
        &mut self,
        all: &Arc<Objects>,
        (first, bytes_max): (u32, u64),
        is_read: impl Fn(u32, &Range<u64>) -> bool,
    ) -> BTreeMap<u32, Vec<Range<u64>>> {
        self.ends_bytes = 0;
        let mut kept: BTreeMap<u32, Vec<Range<u64>>> = BTreeMap::new();
        self.ends.retain(|(side, number), end| {
            if *number < first || !matches!(end, Filling::There(_)) {
                return false;
            }
            let range = range(&all.at(*number as usize), *side);
            let bytes = range.end - range.start;
            let keeps = self.ends_bytes + bytes <= bytes_max && is_read(*number, &range);
            if keeps {
                self.ends_bytes += bytes;
                kept.entry(*number).or_default().push(range);
            }
            keeps
        });
        kept
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
        self.ends.get(&end).map_or(Way::Alone, |end| end.way(start))
    }
}
