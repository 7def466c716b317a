//! All segments of a load in one order of the table's key.
//!
//! ```text
//!   segment of the input   in order already: it stays
//!                          else: sorted in the sort space, a run in the run space; its file goes
//!   ranges of the key      a segment that meets no other in its range stays as it is
//!                          those that meet are runs, and are merged into segments ([`super::merge_runs`])
//! ```
//!
//! A load of one segment needs no run: it is written in order where it is to be. Afterwards no key is in two segments of the load,
//! so that a look-up asks one of them.
//!
//! Source: seed 002.

use std::panic::resume_unwind;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::thread::ScopedJoinHandle;
use std::time::Instant;

use coload_threads::in_order;
use coload_types::{Error, Physical, Plain, Result};

use super::conflicts::Keyed;
use super::entry::{numbers_of, put_entry_in_order, set_first_stats};
use super::keys::{float, value_of_row};
use super::merge_runs::{Merged, Runs, merge_segment};
use super::order::{sort_segment, write_run_in_order};
use super::ranges::cut_runs;
use super::run::{Run, canonical, key_bytes};
use super::run_writer::RunWriter;
use super::sorting::{SortTimes, Sorting};
use super::{OrderedSegment, Origin};
use crate::directory::sync_file;
use crate::merge_small::join_stats;
use crate::retype::copy_column;
use crate::{ColumnStats, SegmentEntry, SegmentFile, SegmentWriter};

/// Where the files of a load are.
pub(crate) trait LoadFiles {
    /// Where the file of a segment is.
    fn path(&self, file: &str) -> PathBuf;

    /// The name of a segment that is not there yet, and what writes it.
    ///
    /// # Errors
    /// `Unavailable` when the disk fails.
    fn next(&mut self) -> (String, PathBuf);

    /// What writes a segment of the load.
    ///
    /// # Errors
    /// `Unavailable` when the disk fails.
    fn writer(&self, path: &Path) -> Result<SegmentWriter>;
}

/// Segments of a load in order.
pub(crate) struct OrderedLoad {
    pub segments: Vec<OrderedSegment>,
    /// Where the rows of each come from.
    pub origins: Vec<Origin>,
    pub times: SortTimes,
}

/// Puts the segments of a load, which come in the order of the input, into one order.
///
/// # Errors
/// `Invalid` when a key of a PRIMARY KEY comes twice and may not, `Limit` when a space is too small or a segment has too many rows,
/// `Corrupt` when a run is not what was written, `Unavailable` when a disk fails.
pub(crate) fn order_load(
    of: Keyed<'_>,
    segments: Vec<SegmentEntry>,
    files: &mut impl LoadFiles,
    sorting: &Sorting,
) -> Result<OrderedLoad> {
    let began = Instant::now();
    if segments.len() < 2 {
        return order_alone(of, segments, files, sorting);
    }
    let (mut pieces, mut before) = (Vec::with_capacity(segments.len()), 0);
    for entry in segments {
        let rows = entry.rows;
        pieces.push(sort_piece(of, entry, before, (files, sorting))?);
        before += rows;
    }
    let sort = began.elapsed();
    let mut ordered = Vec::new();
    let mut runs = 0;
    for group in group(pieces, of.key.is_unique()) {
        match <[Piece; 1]>::try_from(group) {
            Ok([Piece { sorted: Sorted::Stays, entry, before, .. }]) => {
                let origin = Origin::of_file(before, &files.path(&entry.file));
                ordered.push((OrderedSegment { entry, columns: None }, origin));
            }
            Ok([piece]) => {
                runs += 1;
                ordered.append(&mut merge_group(of, vec![piece], files, sorting)?);
            }
            Err(group) => {
                runs += group.len() as u64;
                ordered.append(&mut merge_group(of, group, files, sorting)?);
            }
        }
    }
    // The disk wrote while others were merged.
    let path = |(segment, _): &(OrderedSegment, Origin)| files.path(&segment.entry.file);
    let paths: Vec<PathBuf> = ordered.iter().map(path).collect();
    in_order(paths.len(), sorting.with.threads, |number| keep(&paths[number]), |_, ()| Ok(()))?;
    let (segments, origins) = ordered.into_iter().unzip();
    let times = SortTimes { sort, merge: began.elapsed() - sort, runs, ..SortTimes::default() };
    Ok(OrderedLoad { segments, origins, times })
}

/// Puts one segment in order, if there is one.
fn order_alone(
    of: Keyed<'_>,
    segments: Vec<SegmentEntry>,
    files: &mut impl LoadFiles,
    sorting: &Sorting,
) -> Result<OrderedLoad> {
    let began = Instant::now();
    let (mut ordered, mut origins) = (Vec::new(), Vec::new());
    for entry in segments {
        let (from, (name, to)) = (files.path(&entry.file), files.next());
        let mut origin = Origin::of_file(0, &from);
        let writer = || Ok((files.writer(&to)?, to.clone()));
        let how = (&mut origin, &*sorting.spaces.sort, sorting.with);
        let segment = put_entry_in_order(of, entry, &from, (name, writer), how)?;
        match &segment.columns {
            Some(_) => remove(&from)?,
            None => keep(&from)?,
        }
        origins.push(origin);
        ordered.push(segment);
    }
    let times = SortTimes { sort: began.elapsed(), ..SortTimes::default() };
    Ok(OrderedLoad { segments: ordered, origins, times })
}

/// Makes a segment durable that stays: its writer left that open.
fn keep(path: &Path) -> Result<()> {
    sync_file("store::segment::sync", path).map(drop)
}

fn remove(path: &Path) -> Result<()> {
    std::fs::remove_file(path).map_err(|e| Error::io("remove", path, &e))
}

/// A segment of the input that is sorted.
struct Piece {
    entry: SegmentEntry,
    /// Rows of the load before it.
    before: u64,
    /// The keys of its first row and its last one.
    ends: (Vec<u8>, Vec<u8>),
    sorted: Sorted,
}

enum Sorted {
    /// In its file, which was in order.
    Stays,
    Run(Box<Run>),
}

/// Sorts a segment.
fn sort_piece(
    of: Keyed<'_>,
    mut entry: SegmentEntry,
    before: u64,
    (files, sorting): (&impl LoadFiles, &Sorting),
) -> Result<Piece> {
    let path = files.path(&entry.file);
    let segment = Arc::new(SegmentFile::open(&path)?);
    let origin = Origin::of_file(before, &path);
    let order = sort_segment(&segment, of, (&origin, sorting.with))?;
    let Some(rows) = order.rows else {
        set_first_stats(&mut entry, of, order.first_stats);
        let ends = ends_of(&segment, of)?;
        return Ok(Piece { entry, before, ends, sorted: Sorted::Stays });
    };
    let mut run = write_run_in_order(&segment, &rows, (of.schema, of.key), sorting)?;
    if of.tells_rows {
        run.put_numbers(&numbers_of(&origin, &segment, &rows)?)?;
    }
    drop((segment, rows));
    remove(&path)?;
    let mut run = run.finish()?;
    let ends = std::mem::take(&mut run.ends);
    Ok(Piece { entry, before, ends, sorted: Sorted::Run(Box::new(run)) })
}

/// The keys of the first row of a segment and of its last one.
fn ends_of(segment: &SegmentFile, of: Keyed<'_>) -> Result<(Vec<u8>, Vec<u8>)> {
    let Some(last) = segment.rows().checked_sub(1) else { return Ok(Default::default()) };
    let key = |row: u64| -> Result<Vec<u8>> {
        let mut columns = Vec::with_capacity(of.key.columns().len());
        for column in of.key.columns() {
            let mut plain = Plain::empty(segment.physical(*column));
            plain.push(value_of_row(segment, *column, row)?.as_ref());
            canonical(&mut plain, float(of.schema, *column));
            columns.push(plain);
        }
        Ok(key_bytes(&columns, 0))
    };
    Ok((key(0)?, key(last)?))
}

/// Groups of pieces whose ranges have keys in common, in the order of the keys; pieces of a group are in the order of the input.
///
/// Of a key that may come twice a piece may begin with the key that the one before ends with, as they stand in the input.
fn group(mut pieces: Vec<Piece>, is_unique: bool) -> Vec<Vec<Piece>> {
    pieces.sort_by(|a, b| a.ends.cmp(&b.ends).then(a.before.cmp(&b.before)));
    let mut groups: Vec<(Vec<Piece>, Vec<u8>, u64)> = Vec::new();
    for piece in pieces {
        let (first, last) = &piece.ends;
        let meets = groups.last().is_some_and(|(_, end, before)| {
            first < end || first == end && (is_unique || piece.before < *before)
        });
        match groups.last_mut().filter(|_| meets) {
            Some((group, end, before)) => {
                if last > end {
                    end.clone_from(last);
                }
                *before = piece.before.max(*before);
                group.push(piece);
            }
            None => groups.push({
                let (end, before) = (last.clone(), piece.before);
                (vec![piece], end, before)
            }),
        }
    }
    let sorted = |(mut group, ..): (Vec<Piece>, Vec<u8>, u64)| {
        group.sort_by_key(|piece| piece.before);
        group
    };
    groups.into_iter().map(sorted).collect()
}

/// A segment that was in order as a run.
fn copy_run(segment: &Arc<SegmentFile>, of: Keyed<'_>, sorting: &Sorting) -> Result<Run> {
    let spaces = &sorting.spaces;
    let key = (of.schema, of.key);
    let mut run = RunWriter::create(&*spaces.runs, key, segment.page_rows())?;
    for column in 0..segment.column_count() {
        run.put_part(column, copy_column(segment, column)?, segment.physical(column))?;
    }
    segment.check()?;
    if let Some(numbers) = Origin::of_file(0, segment.path()).numbers(segment.rows())? {
        run.put_numbers(&numbers)?;
    }
    run.finish()
}

/// Merges pieces into segments.
fn merge_group(
    of: Keyed<'_>,
    group: Vec<Piece>,
    files: &mut impl LoadFiles,
    sorting: &Sorting,
) -> Result<Vec<(OrderedSegment, Origin)>> {
    let (mut runs, mut before, mut entries) = (Vec::new(), Vec::new(), Vec::new());
    for piece in group {
        runs.push(match piece.sorted {
            Sorted::Run(run) => *run,
            Sorted::Stays => {
                let path = files.path(&piece.entry.file);
                let run = copy_run(&Arc::new(SegmentFile::open(&path)?), of, sorting)?;
                remove(&path)?;
                run
            }
        });
        before.push(piece.before);
        entries.push(piece.entry);
    }
    let bytes: u64 = entries.iter().map(|entry| entry.bytes).sum();
    let rows: u64 = runs.iter().map(Run::rows).sum();
    let segment_bytes =
        sorting.segment_bytes.unwrap_or(bytes.div_ceil(entries.len().max(1) as u64));
    let count = bytes.div_ceil(segment_bytes.max(1)).clamp(1, rows.max(1)) as usize;
    let with = sorting.with;
    let cuts = cut_runs(&runs, count, (of.key.is_unique(), with.threads))?;
    let runs = Runs { runs: &runs, before: &before };
    let mut made = Vec::with_capacity(count);
    std::thread::scope(|scope| {
        let mut finishing: Option<(String, ScopedJoinHandle<'_, Result<Merged>>)> = None;
        for ends in cuts.windows(2) {
            let (name, path) = files.next();
            let open = || Ok(files.writer(&path)?.synced_later());
            let Some(columns) = merge_segment(&runs, ends, of, open, with)? else {
                continue;
            };
            if with.threads < 2 {
                made.push(merged_entry(columns.finish(of, &path)?, of, name, &entries));
                continue;
            }
            // Its tree is built while the next one is merged.
            let finish = scope.spawn(move || columns.finish(of, &path));
            if let Some((name, before)) = finishing.replace((name, finish)) {
                made.push(merged_entry(joined(before)?, of, name, &entries));
            }
        }
        if let Some((name, last)) = finishing {
            made.push(merged_entry(joined(last)?, of, name, &entries));
        }
        Ok::<(), Error>(())
    })?;
    Ok(made)
}

fn joined<T>(thread: ScopedJoinHandle<'_, Result<T>>) -> Result<T> {
    thread.join().unwrap_or_else(|panic| resume_unwind(panic))
}

/// A merged segment, for the manifest.
fn merged_entry(
    merged: Merged,
    of: Keyed<'_>,
    file: String,
    entries: &[SegmentEntry],
) -> (OrderedSegment, Origin) {
    let Merged { summary, columns, first_stats, origin } = merged;
    let stats = |(number, own): (usize, &ColumnStats)| {
        let is_text = columns[number].physical == Physical::Bytes;
        let has_values = own.nulls < summary.rows;
        if !is_text || !has_values || own.min.is_some() && own.max.is_some() {
            return own.clone();
        }
        // Pages of plain text keep no bounds, and those of the segments may be known.
        let known = join_stats(entries.iter().map(|entry| &entry.columns[number]));
        ColumnStats { nulls: own.nulls, ..known }
    };
    let mut entry = SegmentEntry {
        file,
        rows: summary.rows,
        deleted: None,
        bytes: summary.bytes,
        load: entries[0].load,
        seal: Some(summary.seal),
        stored: None,
        trees: Vec::new(),
        columns: summary.columns.iter().enumerate().map(stats).collect(),
    };
    set_first_stats(&mut entry, of, first_stats);
    (OrderedSegment { entry, columns: Some(columns) }, origin)
}
