//! The tree of an index from the columns of a segment.
//!
//! ```text
//!   keys of the columns -> buckets, sorted by all threads -> tree, as it grows to its file    rows of all keys behind it
//! ```
//!
//! Memory: a share of what may be taken for keys ([`crate::keyed`]), and 8 bytes a row.

use std::convert::Infallible;

use coload_ddl::Schema;
use coload_transform::SortedKeys;
use coload_types::{Error, Result};

use super::complete::open_index;
use super::file::{IndexEncoder, IndexTree, PutBytes};
use crate::SegmentFile;
use crate::directory::Layout;
use crate::held::HeldBytes;
use crate::keyed::{SegmentKeys, SortWith, key_bytes_held, sort_by_bytes};
use crate::manifest::SegmentEntry;
use crate::snapshot::open_segment;

/// Distinct keys in order, each with its rows.
#[derive(Default)]
struct KeyRun {
    keys: Vec<u8>,
    /// Where each key ends, and where its rows do.
    ends: Vec<(usize, usize)>,
    rows: Vec<u32>,
}

impl KeyRun {
    fn of(sorted: &SortedKeys<'_>) -> Self {
        let mut run = KeyRun::default();
        let mut last = 0..0;
        let Ok(()) = sorted.for_each(|key, row| {
            if run.ends.is_empty() || run.keys[last.clone()] != *key {
                last = run.keys.len()..run.keys.len() + key.len();
                run.keys.extend_from_slice(key);
                run.ends.push((last.end, 0));
            }
            run.rows.push(row);
            let rows = run.rows.len();
            run.ends.iter_mut().last().into_iter().for_each(|(_, end)| *end = rows);
            Ok::<(), Infallible>(())
        });
        run
    }
}

/// Bytes of a row while an index is built: its number twice, and at most one of the rows of each key.
const ROW_BYTES: u64 = 12;

/// Bytes that are in memory at most while an index is built.
///
/// # Errors
/// `Corrupt` when an index of the segment is damaged.
pub(super) fn bytes_held(segment: &SegmentFile, columns: &[usize], with: SortWith) -> Result<u64> {
    let mut stored = 0;
    for column in columns {
        let index = segment.column(*column)?.index();
        let values = index.dictionary.as_ref().map_or(0, |dictionary| dictionary.bytes);
        stored += values + index.pages.iter().map(|page| page.bytes).sum::<u64>();
    }
    Ok(segment.rows() * ROW_BYTES + key_bytes_held(segment.rows(), (columns.len(), stored), with))
}

/// Builds the tree of some columns of a segment, and gives its bytes to `put` one after the other. Gives their number, and the checksum
/// that the manifest has of them.
///
/// # Errors
/// `Corrupt` when the segment is not what was written, `Limit` when it has too many rows; those of `put`.
pub(super) fn build_index(
    segment: &SegmentFile,
    (schema, columns): (&Schema, &[usize]),
    with: SortWith,
    put: PutBytes<'_>,
) -> Result<(u64, u64)> {
    let rows = u32::try_from(segment.rows());
    let rows = rows.map_err(|_| Error::Limit("a segment of over 2^32 rows".into()))? as usize;
    let keys = SegmentKeys::of_index(segment, schema, columns)?;
    let mut encoder = IndexEncoder::new(rows, put);
    sort_by_bytes(&keys, with, KeyRun::of, |shared, run| {
        let (mut start, mut first) = (0, 0);
        for (end, last) in run.ends {
            encoder.push(shared, &run.keys[start..end], &run.rows[first..last])?;
            (start, first) = (end, last);
        }
        Ok(())
    })?;
    encoder.finish()
}

/// Compares the tree of an index with one that is built of its segment. A segment that cannot be read is said of itself.
///
/// # Errors
/// `Corrupt` when the tree is another.
pub(crate) fn verify_index(
    layout: &Layout,
    schema: &Schema,
    segment: &SegmentEntry,
    tree: &IndexTree,
) -> Result<()> {
    let path = layout.segment(&tree.part.file);
    let index = open_index(layout, segment, tree)?;
    let mut rest = index.bytes(&tree.part)?;
    let mut is_same = true;
    let mut compare = |part: &[u8]| {
        match rest.split_at_checked(part.len()).filter(|(same, _)| *same == part) {
            Some((_, after)) => rest = after,
            None => is_same = false,
        }
        Ok(())
    };
    let source = layout.segment(&segment.file);
    let built = open_segment(&source, schema, segment, HeldBytes::new(0)).and_then(|file| {
        build_index(&file, (schema, &tree.columns), SortWith::usual(), &mut compare)
    });
    match built {
        Ok(_) if !is_same || !rest.is_empty() => {
            let what = format!("an index of segment {} has other keys than its rows", segment.file);
            Err(Error::corrupt(&path, what))
        }
        Ok(_) | Err(Error::Corrupt(_)) => Ok(()),
        Err(other) => Err(other),
    }
}
