//! Deleted rows of segments: a set for each segment, beside its file, which never changes.
//!
//! ```text
//!   segment entry of the manifest  --none--     no row is deleted
//!                                  --here-->    a few bytes in the manifest itself
//!                                  --file-->    part of segments/<writer>-<table>.deleted, with its checksum
//!
//!   file   "COLODEL\x01"  set  set  ..          all larger sets that one change of a table made
//! ```
//!
//! A set is in the standard format of Roaring. A change writes the sets of the segments that it touches anew, and names
//! those of the others as they were, so that a file stays as long as one segment of some version names a part of it.
//!
//! Memory: what is open holds the rows by bits too, 8 KiB for each 65,536 rows of which some are deleted; counted
//! as what segments hold. Cost of a scan: nothing for segments without a set, two words read for each 64 rows with one.
//!
//! Source: Lemire et al., "Roaring bitmaps: implementation of an optimized software library", SPE 48(4), 2018.

mod placed;

use std::collections::BTreeMap;
use std::fs::File;
use std::io;
use std::ops::Range;
use std::os::unix::fs::FileExt;
use std::path::Path;
use std::sync::Arc;

use coload_types::bytes::checksum;
use coload_types::{Error, Result};
use roaring::RoaringBitmap;

use crate::directory::{Layout, deleted_name, sync_dir, write_new};
use crate::failpoints;
use crate::held::{HeldBytes, Share};
use crate::manifest::{Manifest, SegmentEntry};
use crate::work_dir::WorkDir;

pub use placed::PlacedRows;

const MAGIC: &[u8; 8] = b"COLODEL\x01";
/// Bytes of a set that stands in the manifest: a small delete needs no file of its own, and a manifest of many segments
/// does not double.
pub(crate) const HERE_BYTES_MAX: usize = 256;
/// Rows of a set that are kept together as bits.
const CHUNK_ROWS: usize = 1 << 16;
const CHUNK_WORDS: usize = CHUNK_ROWS / 64;
/// Most rows of a segment that can have deleted ones: their numbers have 32 bits.
const ROWS_MAX: u64 = 1 << 32;

/// The deleted rows of a segment, as its entry in the manifest tells them.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct DeletedEntry {
    /// How many there are: at least one, and fewer than the segment has.
    pub(crate) rows: u64,
    pub(crate) place: Place,
}

/// Where a set stands.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum Place {
    /// Its bytes are in the manifest.
    Here(Arc<[u8]>),
    /// They are in a file of sets.
    File(FilePart),
    /// It was made for a version that is not written yet.
    Unwritten(Arc<RoaringBitmap>),
}

/// A set in a file.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct FilePart {
    /// File name below `segments/`.
    pub file: String,
    /// Where the set begins.
    pub offset: u64,
    /// Its bytes.
    pub bytes: u64,
    /// XXH3 of them.
    pub seal: u64,
}

impl DeletedEntry {
    /// How many rows of the segment are deleted.
    pub fn rows(&self) -> u64 {
        self.rows
    }

    /// The file that has the set, unless the manifest has it.
    pub fn file(&self) -> Option<&str> {
        match &self.place {
            Place::File(part) => Some(&part.file),
            Place::Here(_) | Place::Unwritten(_) => None,
        }
    }
}

/// The deleted rows of an open segment.
#[derive(Debug)]
pub struct DeletedRows {
    rows: RoaringBitmap,
    /// Bits of each [`CHUNK_ROWS`] rows; `None` where no row is deleted.
    chunks: Vec<Option<Box<[u64; CHUNK_WORDS]>>>,
    _held: Option<Share>,
}

impl DeletedRows {
    /// These rows.
    pub fn of(rows: impl IntoIterator<Item = u32>) -> Self {
        Self::new(rows.into_iter().collect())
    }

    /// Of a set of row numbers.
    fn new(rows: RoaringBitmap) -> Self {
        let count = rows.max().map_or(0, |last| last as usize / CHUNK_ROWS + 1);
        let mut chunks: Vec<Option<Box<[u64; CHUNK_WORDS]>>> = Vec::new();
        chunks.resize_with(count, || None);
        for row in &rows {
            let (chunk, bit) = (row as usize / CHUNK_ROWS, row as usize % CHUNK_ROWS);
            let words = chunks[chunk].get_or_insert_with(|| Box::new([0; CHUNK_WORDS]));
            words[bit / 64] |= 1 << (bit % 64);
        }
        DeletedRows { rows, chunks, _held: None }
    }

    /// As [`Self::new`], counted in `held`.
    fn held(rows: RoaringBitmap, held: &Arc<HeldBytes>) -> Self {
        let mut deleted = Self::new(rows);
        let chunks = deleted.chunks.iter().flatten().count() * size_of::<[u64; CHUNK_WORDS]>();
        let share = Share::new(Arc::clone(held));
        share.add((chunks + deleted.rows.serialized_size()) as u64);
        deleted._held = Some(share);
        deleted
    }

    /// How many there are.
    pub fn count(&self) -> u64 {
        self.rows.len()
    }

    /// How many there are among these rows.
    pub fn count_in(&self, rows: Range<u64>) -> u64 {
        let within = |row: u64| u32::try_from(row).ok();
        match (within(rows.start), within(rows.end)) {
            _ if rows.is_empty() => 0,
            (Some(start), Some(end)) => self.rows.range_cardinality(start..end),
            (Some(start), None) => self.rows.range_cardinality(start..),
            (None, _) => 0,
        }
    }

    /// Whether a row is deleted.
    pub fn contains(&self, row: u64) -> bool {
        u32::try_from(row).is_ok_and(|row| self.rows.contains(row))
    }

    /// Sets a bit for each row from `start` on that is deleted, and clears all others of `words`.
    pub fn fill_words(&self, start: u64, words: &mut [u64]) {
        let shift = (start % 64) as u32;
        let first = (start / 64) as usize;
        let mut low = self.word(first);
        for (index, word) in words.iter_mut().enumerate() {
            *word = match shift {
                0 => self.word(first + index),
                _ => {
                    let high = self.word(first + index + 1);
                    let both = low >> shift | high << (64 - shift);
                    low = high;
                    both
                }
            };
        }
    }

    /// 64 rows of the segment.
    fn word(&self, index: usize) -> u64 {
        let chunk = self.chunks.get(index / CHUNK_WORDS).and_then(Option::as_ref);
        chunk.map_or(0, |words| words[index % CHUNK_WORDS])
    }

    /// The row numbers, ascending.
    pub fn iter(&self) -> impl Iterator<Item = u64> + '_ {
        self.rows.iter().map(u64::from)
    }

    pub(crate) fn set(&self) -> &RoaringBitmap {
        &self.rows
    }
}

/// Rows of a table that a change deletes.
///
/// Rows are named by the file of their segment and their number in it, counted from 0; deleted ones count.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Deletions {
    segments: BTreeMap<String, RoaringBitmap>,
}

impl Deletions {
    /// Adds a row of a segment. `false` if it was there already.
    ///
    /// # Errors
    /// `Limit` when the segment has no such row, or more than 2^32.
    pub fn insert(&mut self, segment: &SegmentEntry, row: u64) -> Result<bool> {
        let row = row_number(segment, row)?;
        // Looking a name up for each row would be most of the work.
        if let Some(rows) = self.segments.get_mut(&segment.file) {
            return Ok(rows.insert(row));
        }
        Ok(self.segments.entry(segment.file.clone()).or_default().insert(row))
    }

    /// Adds rows of a segment, ascending; how many of them were not there.
    ///
    /// # Errors
    /// As [`Self::insert`].
    pub fn extend(
        &mut self,
        segment: &SegmentEntry,
        rows: impl IntoIterator<Item = u64>,
    ) -> Result<u64> {
        let set = self.segments.entry(segment.file.clone()).or_default();
        let before = set.len();
        for row in rows {
            set.insert(row_number(segment, row)?);
        }
        let added = set.len() - before;
        self.segments.retain(|_, rows| !rows.is_empty());
        Ok(added)
    }

    /// Adds all rows of a segment that are not deleted.
    ///
    /// # Errors
    /// `Limit` when it has more than 2^32 rows.
    pub fn insert_all(
        &mut self,
        segment: &SegmentEntry,
        deleted: Option<&DeletedRows>,
    ) -> Result<()> {
        let mut all = RoaringBitmap::new();
        all.insert_range(0..=row_number(segment, segment.rows.saturating_sub(1))?);
        if let Some(deleted) = deleted {
            all -= deleted.set();
        }
        *self.segments.entry(segment.file.clone()).or_default() |= all;
        Ok(())
    }

    /// Adds those of `other`; how many of them were not there.
    pub fn append(&mut self, other: Deletions) -> u64 {
        let before = self.rows();
        for (file, rows) in other.segments {
            *self.segments.entry(file).or_default() |= rows;
        }
        self.rows() - before
    }

    /// How many rows there are.
    pub fn rows(&self) -> u64 {
        self.segments.values().map(RoaringBitmap::len).sum()
    }

    /// Whether a row of a segment is among them.
    pub fn contains(&self, segment: &SegmentEntry, row: u64) -> bool {
        let rows = self.segments.get(&segment.file);
        rows.zip(u32::try_from(row).ok()).is_some_and(|(rows, row)| rows.contains(row))
    }

    /// Whether there is none.
    pub fn is_empty(&self) -> bool {
        self.segments.is_empty()
    }

    /// Bytes that they take in memory, about.
    pub fn bytes(&self) -> usize {
        self.segments.values().map(RoaringBitmap::serialized_size).sum()
    }

    pub(crate) fn by_segment(&self) -> impl Iterator<Item = (&str, &RoaringBitmap)> {
        self.segments.iter().map(|(file, rows)| (file.as_str(), rows))
    }
}

fn row_number(segment: &SegmentEntry, row: u64) -> Result<u32> {
    match u32::try_from(row) {
        Ok(number) if row < segment.rows && segment.rows <= ROWS_MAX => Ok(number),
        _ => Err(Error::Limit(format!(
            "cannot delete row {row} of segment {}, which has {} rows: only segments of at most {ROWS_MAX} rows can have \
             deleted ones (load with a smaller --segment-rows)",
            segment.file, segment.rows
        ))),
    }
}

/// The set that an entry tells, which is checked.
pub(crate) fn read_set(
    layout: &Layout,
    segment: &SegmentEntry,
    entry: &DeletedEntry,
) -> Result<RoaringBitmap> {
    let of = |what: &str| format!("the deleted rows of segment {}: {what}", segment.file);
    let set = match &entry.place {
        Place::Unwritten(set) => return Ok(RoaringBitmap::clone(set)),
        Place::Here(bytes) => decode(bytes)
            .ok_or_else(|| Error::Corrupt(format!("manifest: {}", of("not a set of rows"))))?,
        Place::File(part) => {
            let path = layout.segment(&part.file);
            let bytes = read_part(&path, part)?;
            decode(&bytes).ok_or_else(|| Error::corrupt(&path, of("not a set of rows")))?
        }
    };
    if !holds(&set, entry.rows, segment.rows) {
        let what = format!(
            "there are {} of {} rows, and the manifest says {}",
            set.len(),
            segment.rows,
            entry.rows
        );
        return Err(match entry.file() {
            Some(file) => Error::corrupt(&layout.segment(file), of(&what)),
            None => Error::Corrupt(format!("manifest: {}", of(&what))),
        });
    }
    Ok(set)
}

/// As [`read_set`], for scans.
pub(crate) fn read_rows(
    layout: &Layout,
    segment: &SegmentEntry,
    entry: &DeletedEntry,
    held: &Arc<HeldBytes>,
) -> Result<DeletedRows> {
    Ok(DeletedRows::held(read_set(layout, segment, entry)?, held))
}

/// Whether a set has so many rows, all of them of a segment of so many.
pub(crate) fn holds(set: &RoaringBitmap, rows: u64, segment_rows: u64) -> bool {
    set.len() == rows && set.max().is_some_and(|last| u64::from(last) < segment_rows)
}

/// A set from all of these bytes.
pub(crate) fn decode(mut bytes: &[u8]) -> Option<RoaringBitmap> {
    let set = RoaringBitmap::deserialize_from(&mut bytes).ok()?;
    bytes.is_empty().then_some(set)
}

fn encode(set: &RoaringBitmap) -> Result<Vec<u8>> {
    let mut set = set.clone();
    set.optimize();
    let mut bytes = Vec::with_capacity(set.serialized_size());
    let written = set.serialize_into(&mut bytes);
    written.map_err(|e| Error::Refused(format!("internal error: a set of rows: {e}")))?;
    Ok(bytes)
}

fn read_part(path: &Path, part: &FilePart) -> Result<Vec<u8>> {
    let file = File::open(path).map_err(|e| match e.kind() {
        io::ErrorKind::NotFound => {
            Error::corrupt(path, "the manifest names this file of deleted rows, and it is gone")
        }
        _ => Error::io("open", path, &e),
    })?;
    let there = file.metadata().map_err(|e| Error::io("read", path, &e))?.len();
    // Nothing is reserved before it is known that it is there.
    if part.offset.checked_add(part.bytes).is_none_or(|end| end > there) {
        let what = format!("{there} bytes, and the manifest names some after them");
        return Err(Error::corrupt(path, what));
    }
    let mut bytes = vec![0; part.bytes as usize];
    file.read_exact_at(&mut bytes, part.offset).map_err(|e| Error::io("read", path, &e))?;
    if checksum(&bytes) != part.seal {
        return Err(Error::corrupt(path, "deleted rows: another checksum than the manifest says"));
    }
    Ok(bytes)
}

/// Gives the sets that a change made their place: in the manifest, or in a file of `work` for each table, durable.
///
/// Done anew for each version that a change is applied to: what the file held for the one before nobody names.
pub(crate) fn settle(layout: &Layout, work: &mut WorkDir, manifest: &mut Manifest) -> Result<()> {
    let mut made = false;
    for table in &mut manifest.tables {
        let mut bytes = MAGIC.to_vec();
        let file = deleted_name(work.id(), table.id);
        for entry in table.segments.iter_mut().filter_map(|s| s.deleted.as_mut()) {
            let Place::Unwritten(set) = &entry.place else { continue };
            let set = encode(set)?;
            entry.place = match set.len() <= HERE_BYTES_MAX {
                true => Place::Here(set.into()),
                false => {
                    let (offset, seal) = (bytes.len() as u64, checksum(&set));
                    bytes.extend_from_slice(&set);
                    let part =
                        FilePart { file: file.clone(), offset, bytes: set.len() as u64, seal };
                    Place::File(part)
                }
            };
        }
        if bytes.len() > MAGIC.len() {
            let path = layout.segment(&file);
            work.note_installed(path.clone());
            write_new(failpoints::WRITE_DELETED, &path, &bytes)?;
            made = true;
        }
    }
    match made {
        true => sync_dir("store::publish::sync_segments_dir", &layout.segments),
        false => Ok(()),
    }
}

#[cfg(test)]
mod tests;
