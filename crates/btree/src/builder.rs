//! Sorted keys into the bytes of a tree, leaf by leaf.

use coload_types::bytes::checksum;
use coload_types::{Error, Result};

use crate::leaf::{LEAF_BYTES, LEAF_KEYS_ENOUGH, LEAF_KEYS_MAX, put_leaf};
use crate::nodes::put_nodes;
use crate::numbers::{NumberLeaf, WIDTH_MAX, alike, head};
use crate::{LINE_BYTES, common, start_of};

/// Builds a tree of keys that come in their order.
///
/// Memory: the keys of a leaf, the bytes that were not taken, and 24 bytes a leaf.
#[derive(Debug)]
pub struct TreeBuilder {
    /// What all keys begin with.
    prefix: Vec<u8>,
    /// The keys of the leaf that is being filled, one after the other, and their ends.
    leaf: Vec<u8>,
    ends: Vec<usize>,
    /// What they have in common.
    common: usize,
    /// The same for keys that are numbers.
    numbers: NumberLeaf,
    out: Vec<u8>,
    /// Bytes that were taken.
    taken: u64,
    starts: Vec<u64>,
    places: Vec<u8>,
    keys: u64,
}

impl TreeBuilder {
    /// For keys from the first to the last of these, both included.
    pub fn new(first: &[u8], last: &[u8]) -> Self {
        TreeBuilder {
            prefix: first[..common(first, last)].to_vec(),
            leaf: Vec::new(),
            ends: Vec::new(),
            common: 0,
            numbers: NumberLeaf::default(),
            out: Vec::new(),
            taken: 0,
            starts: Vec::new(),
            places: Vec::new(),
            keys: 0,
        }
    }

    /// Adds the next key.
    ///
    /// # Errors
    /// `Invalid` when it is not greater than the one before, or does not begin as all were to; `Limit` for over 2^32 keys, and for a key
    /// of 4 GiB.
    pub fn push(&mut self, key: &[u8]) -> Result<()> {
        let count = self.ends.len();
        if count == 0 {
            if !self.numbers.keys.is_empty() {
                return Err(not_next());
            }
            if !key.starts_with(&self.prefix) || key.len() >= u32::MAX as usize {
                return Err(not_next());
            }
            self.common = key.len();
        } else {
            let last = &self.leaf[count.checked_sub(2).map_or(0, |at| self.ends[at])..];
            if key <= last || !key.starts_with(&self.prefix) {
                return Err(not_next());
            }
            let is_shorter = !key.starts_with(&self.leaf[..self.common]);
            if count == LEAF_KEYS_MAX
                || self.leaf.len() + key.len() > LEAF_BYTES
                || is_shorter && count >= LEAF_KEYS_ENOUGH
            {
                self.end_leaf();
                return self.push(key);
            }
            if is_shorter {
                self.common = common(&self.leaf[..self.common], key);
            }
        }
        if self.keys > u64::from(u32::MAX) {
            return Err(Error::Limit("over 2^32 keys in one B+ tree".into()));
        }
        self.keys += 1;
        self.leaf.extend_from_slice(key);
        self.ends.push(self.leaf.len());
        Ok(())
    }

    /// Adds keys that are numbers of so many bytes, at most 8, and of a tree of such keys: as [`Self::push`] of their last bytes, the most
    /// significant first.
    ///
    /// # Errors
    /// As [`Self::push`].
    pub fn push_numbers(&mut self, keys: &[u64], width: usize) -> Result<()> {
        let after = self.prefix.len();
        if width > WIDTH_MAX || after > width || !self.ends.is_empty() {
            return Err(not_next());
        }
        let prefix = self.prefix.iter().fold(0, |number, byte| number << 8 | u64::from(*byte));
        if self.keys + keys.len() as u64 > u64::from(u32::MAX) + 1 {
            return Err(Error::Limit("over 2^32 keys in one B+ tree".into()));
        }
        self.numbers.width = width;
        for key in keys {
            let leaf = &self.numbers.keys;
            if let (Some(first), Some(last)) = (leaf.first(), leaf.last()) {
                if key <= last {
                    return Err(not_next());
                }
                let common = alike(*first, *key, width);
                let is_shorter = common < self.numbers.common;
                if leaf.len() == LEAF_KEYS_MAX || is_shorter && leaf.len() >= LEAF_KEYS_ENOUGH {
                    self.end_leaf();
                } else if is_shorter {
                    self.numbers.common = common;
                }
            }
            if self.numbers.keys.is_empty() {
                self.numbers.common = width;
            }
            if head(*key, after, width) != prefix {
                return Err(not_next());
            }
            self.numbers.keys.push(*key);
            self.keys += 1;
        }
        Ok(())
    }

    /// Ends the leaf; the next key, which was not counted, begins another.
    fn end_leaf(&mut self) {
        let count = self.ends.len() + self.numbers.keys.len();
        if count == 0 {
            return;
        }
        let before = self.out.len();
        if self.ends.is_empty() {
            self.numbers.put(self.prefix.len(), &mut self.out);
            let start = self.numbers.start(self.prefix.len());
            self.numbers.keys.clear();
            return self.place_leaf(before, count, start);
        }
        let keys = (0..count).map(|key| {
            let start = key.checked_sub(1).map_or(0, |key| self.ends[key]);
            &self.leaf[start..self.ends[key]]
        });
        put_leaf(keys, self.prefix.len(), &mut self.out);
        let start = start_of(&self.leaf[self.prefix.len()..self.ends[0]]);
        self.leaf.clear();
        self.ends.clear();
        self.place_leaf(before, count, start);
    }

    /// Notes where the last leaf stands, of how many keys, and how it starts.
    fn place_leaf(&mut self, before: usize, count: usize, start: u64) {
        let leaf = &self.out[before..];
        self.places.extend_from_slice(&(self.taken + before as u64).to_le_bytes());
        self.places.extend_from_slice(&((self.keys - count as u64) as u32).to_le_bytes());
        self.places.extend_from_slice(&(checksum(leaf) as u32).to_le_bytes());
        self.starts.push(start);
    }

    /// The bytes that are done so far, if there are many; those of all calls and of [`Self::finish`], one after the other, are the tree.
    pub fn take_bytes(&mut self) -> Option<Vec<u8>> {
        const MANY: usize = 1 << 20;
        (self.out.len() >= MANY).then(|| {
            self.taken += self.out.len() as u64;
            std::mem::take(&mut self.out)
        })
    }

    /// The last bytes of the tree, and the checksum that it is opened with.
    pub fn finish(mut self) -> (Vec<u8>, u64) {
        self.end_leaf();
        let leaf_bytes = self.taken + self.out.len() as u64;
        let head = self.out.len();
        let padding = leaf_bytes.next_multiple_of(LINE_BYTES as u64) - leaf_bytes;
        self.out.resize(head + padding as usize, 0);
        put_nodes(&self.starts, &mut self.out);
        self.out.append(&mut self.places);
        self.out.extend_from_slice(&self.prefix);
        self.out.extend_from_slice(&leaf_bytes.to_le_bytes());
        self.out.extend_from_slice(&self.keys.to_le_bytes());
        self.out.extend_from_slice(&(self.starts.len() as u32).to_le_bytes());
        self.out.extend_from_slice(&(self.prefix.len() as u32).to_le_bytes());
        let seal = checksum(&self.out[head..]);
        (self.out, seal)
    }
}

fn not_next() -> Error {
    Error::Invalid("a key of a B+ tree that is not after the one before".into())
}
