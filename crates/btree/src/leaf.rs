//! A leaf: keys that stand one after the other, without what all of them begin with.
//!
//! ```text
//!   u16 keys, u16 width, u32 bytes of the prefix, the prefix
//!   width 0 to 65,533   each rest has so many bytes: the rests
//!   width 65,534        u16 for each key: where its rest ends; the rests
//!   width 65,535        the same with u32
//! ```
//!
//! Numbers are little-endian.

use std::cmp::Ordering;

use coload_types::bytes::ByteReader;
use coload_types::{Error, Result};

use crate::common;

/// Most keys of a leaf.
pub const LEAF_KEYS_MAX: usize = 512;
/// From so many keys on a leaf ends rather than having a shorter prefix.
pub const LEAF_KEYS_ENOUGH: usize = 64;
/// Bytes of keys from which on a leaf ends.
pub const LEAF_BYTES: usize = 16 << 10;

const WIDTH_MAX: usize = 65_533;
const SHORT_ENDS: u16 = 65_534;
const LONG_ENDS: u16 = 65_535;

/// Appends a leaf of keys, which are sorted and differ; `after` of their bytes are left out, as all keys of the tree begin with them.
pub fn put_leaf<'a>(
    keys: impl ExactSizeIterator<Item = &'a [u8]> + Clone,
    after: usize,
    out: &mut Vec<u8>,
) {
    let mut ends = keys.clone();
    let first = ends.next().unwrap_or_default();
    let last = ends.last().unwrap_or(first);
    let prefix = common(first, last);
    let rest = |key: &'a [u8]| &key[prefix..];
    let width = first.len() - prefix;
    let is_fixed = width <= WIDTH_MAX && keys.clone().all(|key| key.len() == first.len());
    let total: usize = keys.clone().map(|key| rest(key).len()).sum();
    let mode = match (is_fixed, total <= usize::from(u16::MAX)) {
        (true, _) => width as u16,
        (false, true) => SHORT_ENDS,
        (false, false) => LONG_ENDS,
    };
    out.extend_from_slice(&(keys.len() as u16).to_le_bytes());
    out.extend_from_slice(&mode.to_le_bytes());
    out.extend_from_slice(&((prefix - after) as u32).to_le_bytes());
    out.extend_from_slice(&first[after..prefix]);
    let mut end = 0;
    for key in keys.clone().filter(|_| !is_fixed) {
        end += rest(key).len();
        match mode {
            SHORT_ENDS => out.extend_from_slice(&(end as u16).to_le_bytes()),
            _ => out.extend_from_slice(&(end as u32).to_le_bytes()),
        }
    }
    keys.for_each(|key| out.extend_from_slice(rest(key)));
}

/// A leaf, read where it lies.
#[derive(Debug, Clone, Copy)]
pub struct Leaf<'a> {
    /// How many keys it has; at least one.
    pub keys: usize,
    prefix: &'a [u8],
    rests: Rests<'a>,
    bytes: &'a [u8],
}

#[derive(Debug, Clone, Copy)]
enum Rests<'a> {
    Fixed(usize),
    Short(&'a [[u8; 2]]),
    Long(&'a [[u8; 4]]),
}

impl<'a> Leaf<'a> {
    /// Reads a leaf of all of these bytes.
    ///
    /// # Errors
    /// `Corrupt` when they are none.
    pub fn read(bytes: &'a [u8]) -> Result<Self> {
        let mut reader = ByteReader::new(bytes);
        let (keys, mode) = (usize::from(reader.u16()?), reader.u16()?);
        let prefix = reader.u32()? as usize;
        let prefix = reader.take(prefix)?;
        if keys == 0 || keys > LEAF_KEYS_MAX {
            return Err(wrong("keys of a leaf"));
        }
        let rests = match mode {
            SHORT_ENDS => Rests::Short(reader.take(keys * 2)?.as_chunks().0),
            LONG_ENDS => Rests::Long(reader.take(keys * 4)?.as_chunks().0),
            width => Rests::Fixed(usize::from(width)),
        };
        let bytes = reader.take(reader.remaining())?;
        let leaf = Leaf { keys, prefix, rests, bytes };
        match leaf.end(keys - 1) == Some(bytes.len()) {
            true => Ok(leaf),
            false => Err(wrong("bytes of a leaf")),
        }
    }

    fn end(&self, key: usize) -> Option<usize> {
        match self.rests {
            Rests::Fixed(width) => width.checked_mul(key + 1),
            Rests::Short(ends) => ends.get(key).map(|end| u16::from_le_bytes(*end).into()),
            Rests::Long(ends) => ends.get(key).map(|end| u32::from_le_bytes(*end) as usize),
        }
    }

    /// A key without the prefix.
    ///
    /// # Errors
    /// `Corrupt` when it is not within the leaf.
    fn rest(&self, key: usize) -> Result<&'a [u8]> {
        let start = match (key, self.rests) {
            (0, _) => Some(0),
            (_, Rests::Fixed(width)) => width.checked_mul(key),
            _ => self.end(key - 1),
        };
        let range = start.zip(self.end(key));
        range
            .and_then(|(start, end)| self.bytes.get(start..end))
            .ok_or_else(|| wrong("keys of a leaf"))
    }

    /// Appends a key, without what all keys of the tree begin with.
    ///
    /// # Errors
    /// `Corrupt` when it is not within the leaf.
    pub fn put_key(&self, key: usize, out: &mut Vec<u8>) -> Result<()> {
        out.extend_from_slice(self.prefix);
        out.extend_from_slice(self.rest(key)?);
        Ok(())
    }

    /// Compares the first key with another one.
    ///
    /// # Errors
    /// As those of [`Self::put_key`].
    pub fn compare_first(&self, key: &[u8]) -> Result<Ordering> {
        let (head, rest) = key.split_at(key.len().min(self.prefix.len()));
        match self.prefix.cmp(head) {
            Ordering::Equal => Ok(self.rest(0)?.cmp(rest)),
            other => Ok(other),
        }
    }

    /// How many keys are below one, and whether it is there.
    ///
    /// # Errors
    /// As those of [`Self::put_key`].
    pub fn find(&self, key: &[u8]) -> Result<(usize, bool)> {
        let (head, rest) = key.split_at(key.len().min(self.prefix.len()));
        match self.prefix.cmp(head) {
            Ordering::Less => return Ok((self.keys, false)),
            Ordering::Greater => return Ok((0, false)),
            Ordering::Equal => {}
        }
        let (mut low, mut high) = (0, self.keys);
        while low < high {
            let middle = low + (high - low) / 2;
            match self.rest(middle)?.cmp(rest) {
                Ordering::Less => low = middle + 1,
                Ordering::Equal => return Ok((middle, true)),
                Ordering::Greater => high = middle,
            }
        }
        Ok((low, false))
    }
}

pub fn wrong(what: &str) -> Error {
    Error::Corrupt(format!("B+ tree: {what}"))
}
