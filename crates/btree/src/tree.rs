//! A tree, read where it lies.

use std::ops::Range;

use coload_types::bytes::{ByteReader, checksum};
use coload_types::{Error, Result};

use crate::leaf::{Leaf, wrong};
use crate::nodes::Levels;
use crate::{LINE_BYTES, start_of};

/// Bytes at the end: of all leaves, keys, leaves, bytes of what all keys begin with.
const TAIL_BYTES: usize = 8 + 8 + 4 + 4;
/// Bytes of the place of a leaf: where it stands, its first key, its checksum.
const PLACE_BYTES: usize = 8 + 4 + 4;

/// Where the parts of a tree stand. The bytes are given to each look-up anew, so that they may lie in a map.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Tree {
    bytes: usize,
    keys: u64,
    leaves: u32,
    leaf_bytes: usize,
    levels: Levels,
    nodes: Range<usize>,
    places: Range<usize>,
    prefix: Range<usize>,
}

/// Where a key is, or would be.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Position {
    /// How many keys are below it.
    pub below: u64,
    /// Whether it is there.
    pub is_there: bool,
}

impl Tree {
    /// Opens a tree of all of these bytes, which has the checksum that its builder gave.
    ///
    /// # Errors
    /// `Corrupt` when they are none, or have another checksum.
    pub fn open(bytes: &[u8], seal: u64) -> Result<Self> {
        let tail = bytes.len().checked_sub(TAIL_BYTES).ok_or_else(|| wrong("it is cut"))?;
        let mut reader = ByteReader::new(&bytes[tail..]);
        let (leaf_bytes, keys) = (reader.u64()?, reader.u64()?);
        let (leaves, prefix) = (reader.u32()?, reader.u32()? as usize);
        let leaf_bytes = usize::try_from(leaf_bytes).map_err(|_| wrong("bytes of leaves"))?;
        let head = bytes.get(leaf_bytes..).ok_or_else(|| wrong("bytes of leaves"))?;
        if checksum(head) != seal {
            return Err(wrong("its nodes have another checksum"));
        }
        let levels = Levels::over(leaves);
        let nodes = leaf_bytes.next_multiple_of(LINE_BYTES);
        let nodes = nodes..nodes + levels.bytes();
        let places = nodes.end..nodes.end + leaves as usize * PLACE_BYTES;
        let prefix = places.end..places.end + prefix;
        if prefix.end != tail || keys < u64::from(leaves) || (keys == 0) != (leaves == 0) {
            return Err(wrong("its parts do not fit"));
        }
        let bytes = bytes.len();
        Ok(Tree { bytes, keys, leaves, leaf_bytes, levels, nodes, places, prefix })
    }

    /// How many keys there are.
    pub fn keys(&self) -> u64 {
        self.keys
    }

    /// Bytes of the tree.
    pub fn bytes(&self) -> usize {
        self.bytes
    }

    /// How many keys are below one, and whether it is there. `bytes` are those that the tree was opened with.
    ///
    /// # Errors
    /// `Corrupt` when a leaf is not what was written.
    pub fn find(&self, bytes: &[u8], key: &[u8]) -> Result<Position> {
        let prefix = self.part(bytes, &self.prefix)?;
        let (head, rest) = key.split_at(key.len().min(prefix.len()));
        match prefix.cmp(head) {
            std::cmp::Ordering::Less => return Ok(Position { below: self.keys, is_there: false }),
            std::cmp::Ordering::Greater => return Ok(Position { below: 0, is_there: false }),
            std::cmp::Ordering::Equal => {}
        }
        let Some(leaf) = self.leaf_of(bytes, rest)? else {
            return Ok(Position { below: 0, is_there: false });
        };
        let (first, leaf) = self.leaf(bytes, leaf)?;
        let (below, is_there) = leaf.find(rest)?;
        Ok(Position { below: first + below as u64, is_there })
    }

    /// The last leaf whose first key is not above one; `None` when there is none.
    fn leaf_of(&self, bytes: &[u8], key: &[u8]) -> Result<Option<usize>> {
        let nodes = self.part(bytes, &self.nodes)?;
        let start = start_of(key);
        let (mut low, mut high) = (0, self.levels.count_to(nodes, start));
        // Those that start alike are told apart by their first keys, and others are not looked at.
        let Some(last) = high.checked_sub(1) else { return Ok(None) };
        if self.levels.start(nodes, last) < start {
            return Ok(Some(last));
        }
        let is_below = |leaf: usize| self.levels.start(nodes, leaf) < start;
        if last.checked_sub(1).is_none_or(is_below) {
            low = last;
        } else {
            let mut end = last;
            while low < end {
                let middle = low + (end - low) / 2;
                if is_below(middle) { low = middle + 1 } else { end = middle }
            }
        }
        while low < high {
            let middle = low + (high - low) / 2;
            match self.leaf(bytes, middle)?.1.compare_first(key)? {
                std::cmp::Ordering::Greater => high = middle,
                _ => low = middle + 1,
            }
        }
        Ok(low.checked_sub(1))
    }

    /// A leaf, and the number of its first key.
    fn leaf<'a>(&self, bytes: &'a [u8], leaf: usize) -> Result<(u64, Leaf<'a>)> {
        let (start, first, seal) = self.place(bytes, leaf)?;
        let (end, next) = match leaf + 1 < self.leaves as usize {
            true => {
                let (end, next, _) = self.place(bytes, leaf + 1)?;
                (end, next)
            }
            false => (self.leaf_bytes, self.keys),
        };
        let part = start..end;
        let found = bytes.get(part).filter(|_| end <= self.leaf_bytes);
        let found = found.ok_or_else(|| wrong("the place of a leaf"))?;
        if checksum(found) as u32 != seal {
            return Err(wrong("a leaf has another checksum"));
        }
        let found = Leaf::read(found)?;
        match first.checked_add(found.keys as u64) == Some(next) {
            true => Ok((first, found)),
            false => Err(wrong("keys of a leaf")),
        }
    }

    fn place(&self, bytes: &[u8], leaf: usize) -> Result<(usize, u64, u32)> {
        let places = self.part(bytes, &self.places)?;
        let at = leaf * PLACE_BYTES;
        let place = places.get(at..at + PLACE_BYTES).ok_or_else(|| wrong("the place of a leaf"))?;
        let mut reader = ByteReader::new(place);
        let (offset, first, seal) = (reader.u64()?, reader.u32()?, reader.u32()?);
        let offset = usize::try_from(offset).map_err(|_| wrong("the place of a leaf"))?;
        Ok((offset, u64::from(first), seal))
    }

    fn part<'a>(&self, bytes: &'a [u8], part: &Range<usize>) -> Result<&'a [u8]> {
        bytes.get(part.clone()).filter(|_| bytes.len() == self.bytes).ok_or_else(|| {
            Error::Refused("internal error: other bytes than a tree was opened with".into())
        })
    }

    /// The keys of a leaf, one after the other, and their ends; none and `false` after the last leaf.
    pub(crate) fn keys_of_leaf(
        &self,
        bytes: &[u8],
        leaf: usize,
        keys: &mut Vec<u8>,
        ends: &mut Vec<usize>,
    ) -> Result<bool> {
        keys.clear();
        ends.clear();
        if leaf >= self.leaves as usize {
            return Ok(false);
        }
        let prefix = self.part(bytes, &self.prefix)?;
        let (_, found) = self.leaf(bytes, leaf)?;
        for number in 0..found.keys {
            keys.extend_from_slice(prefix);
            found.put_key(number, keys)?;
            ends.push(keys.len());
        }
        Ok(true)
    }

    /// Calls with each key, in order, and checks all of the tree.
    ///
    /// # Errors
    /// `Corrupt` when something is not what was written; those of the call.
    pub fn for_each_key(
        &self,
        bytes: &[u8],
        mut take: impl FnMut(&[u8]) -> Result<()>,
    ) -> Result<()> {
        let (nodes, prefix) = (self.part(bytes, &self.nodes)?, self.part(bytes, &self.prefix)?);
        let (mut key, mut last) = (Vec::new(), None);
        for leaf in 0..self.leaves as usize {
            let (_, found) = self.leaf(bytes, leaf)?;
            for number in 0..found.keys {
                key.clear();
                key.extend_from_slice(prefix);
                found.put_key(number, &mut key)?;
                if number == 0 && self.levels.start(nodes, leaf) != start_of(&key[prefix.len()..]) {
                    return Err(wrong("a node has another start than its leaf"));
                }
                if last.as_ref().is_some_and(|last: &Vec<u8>| *last >= key) {
                    return Err(wrong("keys that are not in order"));
                }
                take(&key)?;
                let last = last.get_or_insert_with(Vec::new);
                last.clear();
                last.extend_from_slice(&key);
            }
        }
        Ok(())
    }
}
