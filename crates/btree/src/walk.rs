//! Through the keys of a tree forwards, as another ordered list of keys is gone through.

use coload_types::Result;

use crate::Tree;

/// Where one is in the keys of a tree. Of a leaf all keys are decoded once.
#[derive(Debug, Default)]
pub struct Walk {
    /// The next leaf.
    leaf: usize,
    /// The keys of the leaf that one is in, one after the other, their ends, and the number of the first.
    keys: Vec<u8>,
    ends: Vec<usize>,
    first: u64,
    /// The key of the leaf that one is at.
    at: usize,
}

impl Walk {
    /// Goes on to a key that is not less than those before; its number, if it is there. `bytes` are those of the tree.
    ///
    /// # Errors
    /// `Corrupt` when a leaf is not what was written.
    pub fn find_next(&mut self, tree: &Tree, bytes: &[u8], key: &[u8]) -> Result<Option<u64>> {
        loop {
            while self.at < self.ends.len() {
                let start = self.at.checked_sub(1).map_or(0, |before| self.ends[before]);
                match self.keys[start..self.ends[self.at]].cmp(key) {
                    std::cmp::Ordering::Less => self.at += 1,
                    std::cmp::Ordering::Equal => return Ok(Some(self.first + self.at as u64)),
                    std::cmp::Ordering::Greater => return Ok(None),
                }
            }
            (self.at, self.first) = (0, self.first + self.ends.len() as u64);
            if !tree.keys_of_leaf(bytes, self.leaf, &mut self.keys, &mut self.ends)? {
                return Ok(None);
            }
            self.leaf += 1;
        }
    }
}
