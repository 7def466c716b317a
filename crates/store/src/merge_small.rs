//! Background merge: small segments that stand one after the other become one, so that a thousand
//! small loads do not make queries slow.
//!
//! ```text
//!   segments   [1] [1] [1] [1] [1] [1] [1] [1]          8 of a level become one of the next
//!              [8] [8] [8] [8] [8] [8] [8] [1] [1]
//! ```
//!
//! Segments have levels by their bytes, a factor of 8 apart, as the runs of a log-structured merge tree.
//! A row is therefore rewritten once a level, which is what a load pays for its merges in the end, and
//! there are fewer than 8 segments of each level besides those over [`SMALL_BYTES_MAX`], which are left
//! as they are. The order of rows stays; in a table with a key it is that of the key ([`crate::keyed`]). Deleted rows are left out,
//! and a segment of which half is deleted is written anew without them, so that a table takes at most the double of what its rows
//! need.
//!
//! Nothing waits for a merge: readers keep what they read, loads append beside it, and a merge whose
//! segments another process merged meanwhile is thrown away.
//!
//! Memory: one column of at most [`RUN_BYTES_MAX`] of segments.
//!
//! Source: O'Neil et al., "The Log-Structured Merge-Tree", Acta Informatica 33(4), 1996.

use std::ops::Range;
use std::path::Path;
use std::sync::Arc;

use coload_ddl::{Key, Schema};
use coload_page::shrink_page;
use coload_space::Dram;
use coload_transform::{MEMORY_MIN, PartitionColumn, compare_keys, sort_keys};
use coload_types::{Error, Physical, Result};

use crate::join::{Source, group_pages, join_column};
use crate::keyed::{SortWith, TreeKey, read_keys, write_in_order};
use crate::retype::drop_unused;
use crate::{
    ColumnStats, FinishedColumn, MergeOutcome, SegmentEntry, SegmentFile, SegmentSummary,
    SegmentWriter, Snapshot, Store, TableEntry,
};

/// Adjacent segments of a level that are worth a merge.
const SEGMENTS_MIN: usize = 8;
/// Most segments of one merge: each joins its dictionaries with all others.
const SEGMENTS_MAX: usize = 64;
/// Segments of this size and more are left as they are.
const SMALL_BYTES_MAX: u64 = 64 << 20;
/// A segment is rewritten by itself when one of so many of its rows is deleted.
const DELETED_SHARE: u64 = 2;
/// Smaller ones wait for a merge with others: they take no room, and a statement that changes a few rows is not followed by a
/// merge.
const EMPTIED_BYTES_MIN: u64 = 64 << 10;
/// Most bytes of segments that one merge reads.
const RUN_BYTES_MAX: u64 = 256 << 20;
/// Share of a load's memory that one merge may read: the files are mapped, and a column of them is there decoded.
const RUN_SHARE: usize = 8;
/// Segments up to this size are of the lowest level.
const LEVEL_BYTES: u64 = 1 << 10;
/// Bits of the factor between levels.
const LEVEL_BITS: u32 = 3;

/// What merging the small segments of a table did.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct MergeReport {
    /// Merges that were published, each of a run of segments.
    pub merges: usize,
    /// Segments of the table before.
    pub segments_before: usize,
    /// Segments of the table after the last merge.
    pub segments_after: usize,
    /// Rows that were written once more.
    pub rows: u64,
    /// Bytes of the segments written.
    pub bytes: u64,
}

/// Merges runs of small adjacent segments of a table until there are none.
///
/// Looks at the manifest only when there is nothing to do. A table that does not exist has nothing
/// to merge. Called at the end of each load; whoever else adds small segments calls it too.
///
/// # Errors
/// `Corrupt` when a segment is not what was written, `Unavailable` when the disk fails. The table has
/// the same rows all the same.
pub fn merge_small(store: &Store, table: &str) -> Result<MergeReport> {
    merge_small_within(store, table, usize::MAX)
}

/// Merges as [`merge_small`] does, with runs that fit into so much memory.
///
/// # Errors
/// As [`merge_small`].
pub fn merge_small_within(store: &Store, table: &str, memory: usize) -> Result<MergeReport> {
    let run_bytes_max = RUN_BYTES_MAX.min((memory.max(MEMORY_MIN) / RUN_SHARE) as u64);
    let mut report = MergeReport::default();
    loop {
        let snapshot = store.snapshot()?;
        let Some(entry) = snapshot.table(table) else { return Ok(report) };
        if report.merges == 0 {
            report.segments_before = entry.segments.len();
        }
        report.segments_after = entry.segments.len();
        let Some(run) = choose_run(&entry.segments, run_bytes_max) else { return Ok(report) };
        let (outcome, merged) = merge_run(&snapshot, entry, run)?;
        if outcome == MergeOutcome::Superseded {
            // Another process changed these segments; what is left to merge is its business.
            return Ok(report);
        }
        report.merges += 1;
        report.rows += merged.rows;
        report.bytes += merged.bytes;
    }
}

/// The level of a segment; `None` for one that is left as it is.
fn level_of(bytes: u64) -> Option<u32> {
    (bytes < SMALL_BYTES_MAX).then(|| (bytes / LEVEL_BYTES).max(1).ilog2() / LEVEL_BITS)
}

/// The first run worth a merge: a segment of which much is deleted, or segments of the lowest level that has enough.
fn choose_run(segments: &[SegmentEntry], run_bytes_max: u64) -> Option<Range<usize>> {
    let is_emptied = |s: &SegmentEntry| {
        (EMPTIED_BYTES_MIN..=run_bytes_max).contains(&s.bytes)
            && s.deleted_rows() >= s.rows.div_ceil(DELETED_SHARE)
    };
    if let Some(index) = segments.iter().position(is_emptied) {
        return Some(index..index + 1);
    }
    let top = level_of(SMALL_BYTES_MAX - 1)?;
    (0..=top).find_map(|level| {
        let is_in = |s: &SegmentEntry| level_of(s.bytes).is_some_and(|l| l <= level);
        let mut start = 0;
        while start < segments.len() {
            let length = segments[start..].iter().take_while(|s| is_in(s)).count();
            if let Some(run) = cut_run(&segments[start..start + length], run_bytes_max) {
                return Some(start..start + run);
            }
            start += length + 1;
        }
        None
    })
}

/// How many segments from the first on to merge, if the run is long enough and not one large segment
/// that would be rewritten for the sake of a few small ones.
fn cut_run(run: &[SegmentEntry], run_bytes_max: u64) -> Option<usize> {
    let (mut bytes, mut largest, mut count) = (0, 0, 0);
    for segment in run.iter().take(SEGMENTS_MAX) {
        if bytes + segment.bytes > run_bytes_max {
            break;
        }
        bytes += segment.bytes;
        largest = largest.max(segment.bytes);
        count += 1;
    }
    let long = count >= SEGMENTS_MIN || count > 1 && count < run.len().min(SEGMENTS_MAX);
    (long && bytes >= 2 * largest).then_some(count)
}

/// Merges the segments of a run into one and publishes it in their place.
fn merge_run(
    snapshot: &Snapshot,
    table: &TableEntry,
    run: Range<usize>,
) -> Result<(MergeOutcome, SegmentEntry)> {
    let old = &table.segments[run];
    let source = |s| Ok(Source::new(snapshot.segment(table, s)?, snapshot.deleted_rows(s)?));
    let sources: Vec<Source> = old.iter().map(source).collect::<Result<_>>()?;
    let drops = sources.iter().any(Source::has_deleted);
    let dir = snapshot.store().begin_merge(table.id)?;
    let path = dir.segment_path(0);
    let (summary, columns) = match table.schema.key() {
        Some(key) => merge_in_order(&sources, (&table.schema, key), &path)?,
        None => join_segments(&sources, (&path, None))?,
    };
    let mut entry = summary.entry(dir.id(), 0);
    for (number, (stats, column)) in entry.columns.iter_mut().zip(columns).enumerate() {
        let known = join_stats(old.iter().map(|s| &s.columns[number]));
        *stats = match (drops, column.physical) {
            // Pages of plain text keep no bounds, and those of the segments may be known.
            (false, _) => known,
            (true, Physical::Bytes) => ColumnStats { nulls: column.stats.nulls, ..known },
            (true, Physical::Int | Physical::Wide) => column.stats,
        };
    }
    sources.iter().try_for_each(|source| source.file.check())?;
    Ok((dir.publish(old, vec![entry.clone()])?, entry))
}

/// What a merge wrote.
type Written = (SegmentSummary, Vec<FinishedColumn>);

/// Merges segments whose rows are in the order of a key, and keeps it.
fn merge_in_order(
    sources: &[Source],
    (schema, key): (&Schema, &Key),
    path: &Path,
) -> Result<Written> {
    let files: Vec<Arc<SegmentFile>> = sources.iter().map(|s| Arc::clone(&s.file)).collect();
    let tree_key = TreeKey::of(schema, Some(key));
    let keys = read_keys(&files, schema, key)?;
    let order = sort_keys(&keys)?;
    let drops = sources.iter().any(Source::has_deleted);
    let is_fine = !key.is_unique() || order.repeated.is_empty();
    if order.rows.is_none() && !drops && is_fine {
        return join_segments(sources, (path, tree_key));
    }
    let count = keys.first().map_or(0, |column| column.len());
    let mut rows = order.rows.unwrap_or_else(|| (0..count as u32).collect());
    if drops {
        let mut before = 0;
        let mut deleted = vec![false; count];
        for source in sources {
            source.for_deleted(|row| deleted[before + row as usize] = true);
            before += source.file.rows() as usize;
        }
        rows.retain(|row| !deleted[*row as usize]);
    }
    let is_same =
        |pair: &[u32]| compare_keys(&keys, pair[0] as usize, &keys, pair[1] as usize).is_eq();
    if key.is_unique() && rows.windows(2).any(is_same) {
        return Err(Error::corrupt(files[0].path(), "a key that is in another segment too"));
    }
    let writer = SegmentWriter::create(path)?.with_key(tree_key);
    let with = SortWith { threads: 1, memory: u64::MAX };
    write_in_order(&files, &rows, &writer, (&Dram::new("dram", u64::MAX), with))
}

/// Writes segments one after the other as one.
fn join_segments(sources: &[Source], (path, key): (&Path, Option<TreeKey>)) -> Result<Written> {
    let drops = sources.iter().any(Source::has_deleted);
    let writer = SegmentWriter::create(path)?.with_key(key);
    let groups = group_pages(sources)?;
    let width = sources[0].file.column_count();
    let mut columns = Vec::with_capacity(width);
    for column in 0..width {
        let mut joined = join_column(sources, &groups, column)?;
        if drops {
            // A value that only deleted rows had is none of the column.
            joined = drop_unused(joined)?;
        }
        let pages = joined.pages.into_iter().map(shrink_page).collect::<Result<_>>()?;
        let joined = PartitionColumn { pages, ..joined };
        columns.push(writer.write_column(joined, sources[0].file.physical(column))?);
    }
    let summary = writer.finish(columns.clone(), groups.iter().map(|g| g.rows).collect())?;
    Ok((summary, columns))
}

/// The statistics of segments taken together: bounds of all are bounds of each.
pub(crate) fn join_stats<'a>(all: impl Iterator<Item = &'a ColumnStats> + Clone) -> ColumnStats {
    let nulls = all.clone().map(|s| s.nulls).sum();
    // Without a minimum a segment has no values, and says nothing of the maximum.
    let valued = all.filter(|s| s.min.is_some());
    let min = valued.clone().filter_map(|s| s.min.clone()).min();
    let max =
        valued.clone().all(|s| s.max.is_some()).then(|| valued.filter_map(|s| s.max.clone()).max());
    ColumnStats { min, max: max.flatten(), nulls }
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]
    use super::*;
    use crate::LoadId;

    fn segments(bytes: &[u64]) -> Vec<SegmentEntry> {
        let entry = |bytes: &u64| SegmentEntry {
            file: String::new(),
            rows: 1,
            deleted: None,
            bytes: *bytes,
            load: LoadId::from_u128(1),
            seal: None,
            stored: None,
            trees: Vec::new(),
            columns: Vec::new(),
        };
        bytes.iter().map(entry).collect()
    }

    #[test]
    fn eight_of_a_level_are_merged_and_large_ones_left() {
        const K: u64 = 1 << 10;
        const M: u64 = 1 << 20;
        let choose = |bytes: &[u64]| choose_run(&segments(bytes), RUN_BYTES_MAX);
        assert_eq!(choose(&[K; 7]), None);
        assert_eq!(choose(&[K; 9]), Some(0..9));
        assert_eq!(choose(&[&[9 * K; 7][..], &[K; 8]].concat()), Some(7..15));
        assert_eq!(choose(&[&[9 * K; 7][..], &[K; 7]].concat()), Some(0..14));
        // Seven small ones are not worth rewriting a large one.
        assert_eq!(choose(&[&[M][..], &[K; 7]].concat()), None);
        assert_eq!(choose(&[K, K, K, K, 100 * M, K, K, K, K]), None);
        assert_eq!(choose(&[64 * M; 20]), None);
        assert_eq!(choose(&[60 * M; 20]), Some(0..4));
        assert_eq!(choose(&[K; 1_000]), Some(0..SEGMENTS_MAX));
    }

    #[test]
    fn a_thousand_equal_loads_leave_few_segments_and_rewrite_each_few_times() {
        let (mut table, mut written) = (Vec::new(), 0);
        for _ in 0..1_000 {
            table.extend(segments(&[3_000]));
            while let Some(run) = choose_run(&table, RUN_BYTES_MAX) {
                let bytes = table[run.clone()].iter().map(|s| s.bytes).sum();
                written += bytes;
                table.splice(run, segments(&[bytes]));
            }
            assert!(table.len() <= 30, "{}", table.len());
        }
        assert!(written < 3_000 * 1_000 * 5, "{written}");
    }

    #[test]
    fn joined_bounds_hold_for_each() {
        let value = |v: i64| Some(coload_types::Value::Int(v));
        let stats = |min, max, nulls| ColumnStats { min, max, nulls };
        let join = |all: &[ColumnStats]| join_stats(all.iter());
        let bounded =
            [stats(value(3), value(5), 0), stats(None, None, 4), stats(value(-1), value(2), 1)];
        assert_eq!(join(&bounded), stats(value(-1), value(5), 5));
        assert_eq!(
            join(&[stats(value(3), None, 0), bounded[2].clone()]),
            stats(value(-1), None, 1)
        );
        assert_eq!(join(&[stats(None, None, 4)]), stats(None, None, 4));
    }
}
