//! The first bytes of objects, which are looked at before they are loaded, and parts that were looked at last.

use std::collections::{BTreeMap, VecDeque};
use std::ops::Range;
use std::sync::Arc;

use coload_types::{Error, Result};

use super::Way;
use crate::object::{Object, ObjectRef};

/// Objects whose heads are fetched ahead of the one that is looked at.
const HEADS_AHEAD: u32 = 32;
/// Heads that are kept.
const HEADS_MAX: usize = 64;
/// Most bytes of heads together.
pub const HEADS_BYTES_MAX: u64 = 16 << 20;
/// Fewest and most bytes of a head: what is looked at to infer types, if there are few objects.
const HEAD_BYTES: (u64, u64) = (64 << 10, 1 << 20);
/// Parts that are kept that were looked at last.
const RECENT_MAX: usize = 64;

/// What was looked at.
#[derive(Default)]
pub struct Heads {
    heads: BTreeMap<u32, Head>,
    recent: VecDeque<(u32, u64, Vec<u8>)>,
}

enum Head {
    Coming,
    There(Arc<Vec<u8>>),
    Failed(Error),
}

/// Bytes of the head of an object.
pub fn head_bytes(of: &ObjectRef) -> u64 {
    let each = HEADS_BYTES_MAX / (of.all.objects.len() as u64).min(HEADS_MAX as u64);
    of.bytes().min(each.clamp(HEAD_BYTES.0, HEAD_BYTES.1))
}

impl Heads {
    /// Whether a byte is, or would be, in the head of its object. While objects are read ahead only a head that is
    /// there, and all of its object, is worth something.
    pub fn may_have(&self, of: &ObjectRef, at: u64, is_ahead: bool) -> bool {
        let head = head_bytes(of);
        match is_ahead {
            false => at < head,
            true => {
                head == of.bytes() && matches!(self.heads.get(&of.number), Some(Head::There(_)))
            }
        }
    }

    /// Whether all of an object is there.
    pub fn has_whole(&self, number: u32, bytes: u64) -> bool {
        matches!(self.heads.get(&number), Some(Head::There(head)) if head.len() as u64 == bytes)
    }

    /// Keeps those that are all of their objects, as long as they are so few bytes.
    pub fn keep_whole(&mut self, objects: &[Object], bytes_max: usize) {
        let mut room = bytes_max;
        self.heads.retain(|number, head| {
            let Head::There(head) = head else { return false };
            let bytes = objects[*number as usize].bytes;
            let keeps = head.len() as u64 == bytes && head.len() <= room;
            room -= if keeps { head.len() } else { 0 };
            keeps
        });
    }

    /// Bytes of those that are there.
    pub fn bytes(&self) -> usize {
        let bytes = |head: &Head| if let Head::There(bytes) = head { bytes.len() } else { 0 };
        self.heads.values().map(bytes).sum()
    }

    /// Heads that are to be fetched: that of an object, and of those behind it.
    pub fn missing(&mut self, of: &ObjectRef) -> Vec<u32> {
        if matches!(self.heads.get(&of.number), Some(Head::There(_) | Head::Failed(_)))
            && self.heads.contains_key(&(of.number + HEADS_AHEAD / 2))
        {
            return Vec::new();
        }
        let count = of.all.objects.len() as u32;
        let wanted: Range<u32> = of.number..count.min(of.number.saturating_add(HEADS_AHEAD));
        let missing: Vec<u32> = wanted.filter(|n| !self.heads.contains_key(n)).collect();
        for number in &missing {
            self.heads.insert(*number, Head::Coming);
        }
        self.forget_others(of.number);
        missing
    }

    /// Leaves out heads that are far from the one that is looked at.
    fn forget_others(&mut self, number: u32) {
        while self.heads.len() > HEADS_MAX {
            let is_free = |(of, head): &(&u32, &Head)| {
                !matches!(head, Head::Coming)
                    && !(number..number.saturating_add(HEADS_AHEAD)).contains(*of)
            };
            let Some(farthest) = self.heads.iter().find(is_free).map(|(of, _)| *of) else { return };
            self.heads.remove(&farthest);
        }
    }

    /// Takes a head that has come.
    pub fn arrived(&mut self, number: u32, bytes: Result<Vec<u8>>) {
        let head = match bytes {
            Ok(bytes) => Head::There(Arc::new(bytes)),
            Err(error) => Head::Failed(error),
        };
        // One that nobody waits for any more is none.
        if let Some(coming) = self.heads.get_mut(&number) {
            *coming = head;
        }
    }

    /// What is known of a head.
    pub fn get(&self, number: u32) -> Way {
        match self.heads.get(&number) {
            Some(Head::There(bytes)) => Way::There(Arc::clone(bytes), 0, None),
            Some(Head::Failed(error)) => Way::Failed(error.clone()),
            Some(Head::Coming) => Way::Wait,
            None => Way::Alone,
        }
    }

    /// Keeps a part that was looked at.
    pub fn keep_recent(&mut self, number: u32, start: u64, bytes: Vec<u8>) {
        if self.recent.len() == RECENT_MAX {
            self.recent.pop_front();
        }
        self.recent.push_back((number, start, bytes));
    }

    /// Fills a buffer from a part that was looked at, if one has all of it.
    pub fn recent(&self, number: u32, at: u64, out: &mut [u8]) -> Option<usize> {
        let end = at + out.len() as u64;
        let has = |(of, start, bytes): &&(u32, u64, Vec<u8>)| {
            *of == number && *start <= at && end <= start + bytes.len() as u64
        };
        let (_, start, bytes) = self.recent.iter().find(has)?;
        let from = (at - start) as usize;
        out.copy_from_slice(&bytes[from..from + out.len()]);
        Some(out.len())
    }
}
