//! The tree of an index of a segment, in a file with others: written at once, read in a map.
//!
//! ```text
//!   file   "COLOIDX" 1, zeros to 64, part, zeros to a multiple of 64, part ..
//!   part   B+ tree of the distinct keys | ends | rows | checksums of blocks of ends and rows | tail
//!   ends   u32 each: how many rows the keys up to this one have; none where each key has one row
//!   rows   u32 each, by key and then by number
//! ```
//!
//! The tail and the checksums before it have a checksum in the manifest; the tree has its own, and blocks are checked when they are
//! first read.

use std::fs::File;
use std::ops::Range;
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicBool, Ordering};

use coload_btree::{Tree, TreeBuilder};
use coload_space::Mapped;
use coload_transform::put_key;
use coload_types::bytes::{ByteReader, checksum};
use coload_types::{Error, Plain, Result, Value};

use crate::deleted::FilePart;

/// What a file of trees begins with.
pub(super) const MAGIC: [u8; 8] = *b"COLOIDX\x01";
/// Parts start at multiples of this, so that nodes of trees are lines of a cache.
pub(super) const ALIGNMENT: u64 = 64;
/// Bytes of ends and rows that have a checksum together.
const BLOCK_BYTES: usize = 16 << 10;
/// Bytes of the tail: tree, its checksum, keys, rows, whether there are ends.
const TAIL_BYTES: usize = 8 + 8 + 8 + 8 + 8;
const NUMBER_BYTES: usize = size_of::<u32>();

/// Where the tree of an index of a segment is.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct IndexTree {
    /// Columns of the table, the most significant first.
    pub columns: Vec<usize>,
    pub(crate) part: FilePart,
}

impl IndexTree {
    /// The file that it is in, below `segments/`.
    pub fn file(&self) -> &str {
        &self.part.file
    }
}

/// Takes the bytes of a tree, part by part.
pub(super) type PutBytes<'p> = &'p mut dyn FnMut(&[u8]) -> Result<()>;

/// Makes the bytes of a tree of keys that come in order, each with its rows.
///
/// Memory: 8 bytes a row, and a MiB of the tree.
pub(super) struct IndexEncoder<'p> {
    /// `None` before the first key.
    builder: Option<TreeBuilder>,
    tree_bytes: u64,
    /// How many rows the keys so far have, one for each key.
    ends: Vec<u32>,
    rows: Vec<u32>,
    put: PutBytes<'p>,
}

impl<'p> IndexEncoder<'p> {
    /// Of so many rows.
    pub fn new(rows: usize, put: PutBytes<'p>) -> Self {
        let (ends, rows) = (Vec::new(), Vec::with_capacity(rows));
        IndexEncoder { builder: None, tree_bytes: 0, ends, rows, put }
    }

    /// Adds the next key with its rows; all keys begin with the same bytes.
    ///
    /// # Errors
    /// `Limit` for over 2^32 keys; those of what takes the bytes.
    pub fn push(&mut self, shared: &[u8], key: &[u8], rows: &[u32]) -> Result<()> {
        let builder = self.builder.get_or_insert_with(|| TreeBuilder::new(shared, shared));
        builder.push(key)?;
        if let Some(part) = builder.take_bytes() {
            self.tree_bytes += part.len() as u64;
            (self.put)(&part)?;
        }
        self.rows.extend_from_slice(rows);
        self.ends.push(self.rows.len() as u32);
        Ok(())
    }

    /// Puts the rest of the bytes; gives their number and the checksum that the manifest has of them.
    ///
    /// # Errors
    /// Those of what takes the bytes.
    pub fn finish(self) -> Result<(u64, u64)> {
        let IndexEncoder { builder, mut tree_bytes, ends, rows, put } = self;
        let (rest, tree_seal) = builder.unwrap_or_else(|| TreeBuilder::new(&[], &[])).finish();
        tree_bytes += rest.len() as u64;
        put(&rest)?;
        let (keys, has_ends) = (ends.len() as u64, ends.len() != rows.len());
        let mut numbers = ends.iter().filter(|_| has_ends).chain(&rows).peekable();
        let (mut bytes, mut tail) = (tree_bytes, Vec::new());
        let mut block = Vec::with_capacity(BLOCK_BYTES);
        while numbers.peek().is_some() {
            block.clear();
            let some = numbers.by_ref().take(BLOCK_BYTES / NUMBER_BYTES);
            some.for_each(|number| block.extend_from_slice(&number.to_le_bytes()));
            tail.extend_from_slice(&(checksum(&block) as u32).to_le_bytes());
            bytes += block.len() as u64;
            put(&block)?;
        }
        for number in [tree_bytes, tree_seal, keys, rows.len() as u64, u64::from(has_ends)] {
            tail.extend_from_slice(&number.to_le_bytes());
        }
        put(&tail)?;
        Ok((bytes + tail.len() as u64, checksum(&tail)))
    }
}

/// The tree of an index of a segment, open for reading.
#[derive(Debug)]
pub struct SegmentIndex {
    path: PathBuf,
    map: Mapped,
    tree: Tree,
    /// Where the parts stand in the file.
    tree_at: Range<usize>,
    ends: Option<Range<usize>>,
    rows: Range<usize>,
    sums: Range<usize>,
    keys: u64,
    verified: Vec<AtomicBool>,
}

/// Keys of an index that are asked for.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct IndexKey(Vec<u8>);

impl IndexKey {
    /// The bytes of the first values of a key.
    pub fn of(values: &[Value]) -> Self {
        let mut bytes = Vec::new();
        values.iter().for_each(|value| put_value(value, &mut bytes));
        IndexKey(bytes)
    }
}

/// What stands before a value that is not NULL.
const VALUE: u8 = 0;

/// Appends a value as keys have it.
fn put_value(value: &Value, out: &mut Vec<u8>) {
    let mut plain = Plain::empty(value.physical());
    plain.push(Some(value));
    put_key(std::slice::from_ref(&plain), &[true], 0, out);
}

impl SegmentIndex {
    /// Opens the tree of a segment of so many rows.
    ///
    /// # Errors
    /// `Corrupt` when it is not what was written, `Unavailable` when it cannot be read.
    pub(crate) fn open(path: &Path, part: &FilePart, rows: u64) -> Result<Self> {
        let file = File::open(path).map_err(|e| match e.kind() {
            std::io::ErrorKind::NotFound => {
                Error::corrupt(path, "the manifest names this file of indexes, and it is gone")
            }
            _ => Error::io("open", path, &e),
        })?;
        let map = Mapped::map(&file).map_err(|e| Error::io("map", path, &e))?;
        let opened = Self::of_map(path, map, part, rows);
        opened.map_err(|e| match e {
            Error::Corrupt(what) => Error::corrupt(path, what),
            other => other,
        })
    }

    fn of_map(path: &Path, map: Mapped, part: &FilePart, segment_rows: u64) -> Result<Self> {
        let wrong = |what: &str| Error::Corrupt(format!("an index: {what}"));
        let number =
            |number: u64| usize::try_from(number).map_err(|_| wrong("its parts do not fit"));
        let (start, bytes) = (number(part.offset)?, number(part.bytes)?);
        let end = start.checked_add(bytes).filter(|end| *end <= map.len());
        let end = end.ok_or_else(|| wrong("it is cut"))?;
        let tail = bytes.checked_sub(TAIL_BYTES).ok_or_else(|| wrong("it is cut"))? + start;
        let mut reader = ByteReader::new(&map[tail..end]);
        let (tree_bytes, tree_seal) = (number(reader.u64()?)?, reader.u64()?);
        let (keys, rows, has_ends) = (reader.u64()?, reader.u64()?, reader.u64()?);
        let fits = keys <= rows
            && rows == segment_rows
            && has_ends <= 1
            && (has_ends == 1) == (keys != rows);
        if !fits || map.is_damaged() {
            return Err(wrong("its parts do not fit"));
        }
        let after_tree = start.checked_add(tree_bytes).filter(|at| *at <= tail);
        let after_tree = after_tree.ok_or_else(|| wrong("its parts do not fit"))?;
        let ends_bytes = number(keys * has_ends)?.checked_mul(NUMBER_BYTES);
        let rows_bytes = number(rows)?.checked_mul(NUMBER_BYTES);
        let (Some(ends_bytes), Some(rows_bytes)) = (ends_bytes, rows_bytes) else {
            return Err(wrong("its parts do not fit"));
        };
        let blocks = (ends_bytes + rows_bytes).div_ceil(BLOCK_BYTES);
        let ends = after_tree..after_tree + ends_bytes;
        let rows = ends.end..ends.end + rows_bytes;
        let sums = rows.end..rows.end + blocks * NUMBER_BYTES;
        if sums.end != tail {
            return Err(wrong("its parts do not fit"));
        }
        if checksum(&map[sums.start..end]) != part.seal {
            return Err(wrong("its tail has another checksum than the manifest says"));
        }
        let tree_at = start..after_tree;
        let tree = Tree::open(&map[tree_at.clone()], tree_seal)?;
        if tree.keys() != keys || map.is_damaged() {
            return Err(wrong("its tree has another number of keys"));
        }
        let verified = (0..blocks).map(|_| AtomicBool::new(false)).collect();
        let ends = (has_ends == 1).then_some(ends);
        let path = path.to_owned();
        Ok(SegmentIndex { path, map, tree, tree_at, ends, rows, sums, keys, verified })
    }

    /// How many distinct keys there are.
    pub fn keys(&self) -> u64 {
        self.keys
    }

    /// All bytes of it.
    pub(super) fn bytes(&self, part: &FilePart) -> Result<&[u8]> {
        let end = self.sums.end + TAIL_BYTES;
        self.checked(Ok(&self.map[part.offset as usize..end]))
    }

    pub(super) fn tree(&self) -> (&Tree, &[u8]) {
        (&self.tree, &self.map[self.tree_at.clone()])
    }

    /// The numbers of keys that begin with these bytes.
    fn keys_of(&self, key: &IndexKey) -> Result<Range<u64>> {
        Ok(self.below(Some(&key.0))?..self.below(after(&key.0).as_deref())?)
    }

    /// How many keys are below some bytes; all where there are none.
    fn below(&self, key: Option<&[u8]>) -> Result<u64> {
        let Some(key) = key else { return Ok(self.keys) };
        let (tree, bytes) = self.tree();
        let found = tree.find(bytes, key);
        self.checked(found).map(|found| found.below)
    }

    /// Which entries have keys that begin as one does; entries are rows in the order of their keys.
    ///
    /// # Errors
    /// `Corrupt` when the index is not what was written.
    pub fn entries_of(&self, key: &IndexKey) -> Result<Range<u64>> {
        let keys = self.keys_of(key)?;
        self.entries(keys)
    }

    /// Which entries come after the keys that begin with `low`, or with them where `low` is among them, and before those of `high`,
    /// or with them; all keys begin with `with`. `None` is no bound.
    ///
    /// # Errors
    /// As [`Self::entries_of`].
    pub fn entries_between(
        &self,
        with: &IndexKey,
        low: Option<(&IndexKey, Within)>,
        high: Option<(&IndexKey, Within)>,
    ) -> Result<Range<u64>> {
        let mut all = self.keys_of(with)?;
        // NULL is no value that is between two.
        let mut null = with.0.clone();
        null.push(VALUE + 1);
        all.end = all.end.min(self.below(Some(&null))?);
        if let Some((key, within)) = low {
            let keys = self.keys_of(key)?;
            all.start =
                all.start.max(if within == Within::Included { keys.start } else { keys.end });
        }
        if let Some((key, within)) = high {
            let keys = self.keys_of(key)?;
            all.end = all.end.min(if within == Within::Included { keys.end } else { keys.start });
        }
        self.entries(all.start..all.end.max(all.start))
    }

    /// The entries of keys by their numbers.
    pub(super) fn entries(&self, keys: Range<u64>) -> Result<Range<u64>> {
        let Some(ends) = &self.ends else { return Ok(keys) };
        let end = |keys: u64| match keys.checked_sub(1) {
            None => Ok(0),
            Some(last) => self.number(ends, last).map(u64::from),
        };
        let (start, end) = (end(keys.start)?, end(keys.end)?);
        Ok(start..end.max(start))
    }

    /// The rows of entries.
    ///
    /// # Errors
    /// As [`Self::entries_of`].
    pub fn rows(&self, entries: Range<u64>) -> Result<Vec<u32>> {
        entries.map(|entry| self.number(&self.rows, entry)).collect()
    }

    /// A number of the ends or of the rows.
    fn number(&self, of: &Range<usize>, index: u64) -> Result<u32> {
        let wrong = |what: &str| Error::corrupt(&self.path, format!("an index: {what}"));
        let at = usize::try_from(index).ok().and_then(|index| index.checked_mul(NUMBER_BYTES));
        let at = at.and_then(|at| at.checked_add(of.start)).filter(|at| *at < of.end);
        let at = at.ok_or_else(|| wrong("an entry that is not there"))?;
        let first = self.ends.as_ref().map_or(self.rows.start, |ends| ends.start);
        let block = (at - first) / BLOCK_BYTES;
        if !self.verified[block].load(Ordering::Relaxed) {
            let start = first + block * BLOCK_BYTES;
            let bytes = &self.map[start..self.rows.end.min(start + BLOCK_BYTES)];
            let sum = self.sums.start + block * NUMBER_BYTES;
            if (checksum(bytes) as u32).to_le_bytes() != self.map[sum..sum + NUMBER_BYTES] {
                return Err(wrong("a block has another checksum"));
            }
            self.verified[block].store(true, Ordering::Relaxed);
        }
        let mut number = [0; NUMBER_BYTES];
        number.copy_from_slice(&self.map[at..at + NUMBER_BYTES]);
        self.checked(Ok(u32::from_le_bytes(number)))
    }

    /// What was read, if it could be.
    pub(super) fn checked<T>(&self, made: Result<T>) -> Result<T> {
        if self.map.is_damaged() {
            return Err(Error::corrupt(&self.path, "a part of it cannot be read"));
        }
        made.map_err(|e| match e {
            Error::Corrupt(what) => Error::corrupt(&self.path, what),
            other => other,
        })
    }
}

/// Whether a bound is among what it bounds.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Within {
    /// It is.
    Included,
    /// It is not.
    Excluded,
}

/// The least bytes that are greater than all that begin with some; `None` when there are none.
fn after(bytes: &[u8]) -> Option<Vec<u8>> {
    let last = bytes.iter().rposition(|byte| *byte < u8::MAX)?;
    let mut after = bytes[..=last].to_vec();
    after[last] += 1;
    Some(after)
}
