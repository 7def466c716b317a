//! Segments: each byte that is read, and each claim that a scan believes without looking.

use std::path::Path;
use std::sync::{
    Arc, Mutex,
    atomic::{AtomicU64, AtomicUsize, Ordering},
};

use coload_page::{PageRules, verify_dictionary, verify_page};
use coload_threads::{join_all, lock};
use coload_types::{Column, Error, Physical, Plain, Result, Value};

use super::{Damage, Part, VerifyOptions, VerifyReport};
use crate::directory::Layout;
use crate::held::{HELD_BYTES_MAX, HeldBytes};
use crate::manifest::{ColumnStats, SegmentEntry, TableEntry};
use crate::segment::SegmentFile;
use crate::segment_writer::column_stats;
use crate::snapshot::open_segment;

/// What the threads share.
struct Work<'a> {
    layout: &'a Layout,
    segments: &'a [(&'a TableEntry, &'a SegmentEntry)],
    options: &'a VerifyOptions,
    next: AtomicUsize,
    bytes_done: AtomicU64,
    bytes_total: u64,
    pages: AtomicU64,
    damages: Mutex<Vec<Damage>>,
    /// The first error that is no damage.
    failed: Mutex<Option<Error>>,
}

/// Verifies segments on several threads.
pub(super) fn verify_all(
    layout: &Layout,
    segments: &[(&TableEntry, &SegmentEntry)],
    options: &VerifyOptions,
    report: &mut VerifyReport,
) -> Result<()> {
    let work = Work {
        layout,
        segments,
        options,
        next: AtomicUsize::new(0),
        bytes_done: AtomicU64::new(0),
        bytes_total: segments.iter().map(|(_, s)| s.bytes).fold(0, u64::saturating_add),
        pages: AtomicU64::new(0),
        damages: Mutex::default(),
        failed: Mutex::default(),
    };
    std::thread::scope(|scope| {
        // Fewer threads do it too.
        let start = |_| std::thread::Builder::new().spawn_scoped(scope, || work.run()).ok();
        let others: Vec<_> = (1..options.threads.min(segments.len())).filter_map(start).collect();
        work.run();
        join_all(others);
    });
    if let Some(error) = lock(&work.failed).take() {
        return Err(error);
    }
    report.segments = segments.len();
    report.pages = work.pages.into_inner();
    report.rows = segments.iter().map(|(_, s)| s.rows).fold(0, u64::saturating_add);
    report.bytes = work.bytes_total;
    report.damages.append(&mut lock(&work.damages));
    Ok(())
}

impl Work<'_> {
    fn run(&self) {
        while let Some((table, entry)) =
            self.segments.get(self.next.fetch_add(1, Ordering::Relaxed))
        {
            let path = self.layout.segment(&entry.file);
            match self.verify(&path, table, entry) {
                Ok(()) => {}
                Err(error @ (Error::Corrupt(_) | Error::Limit(_))) => {
                    let (part, what) = (Part::Segment, error.to_string());
                    let (table, rows) = (Some(table.name.clone()), entry.rows);
                    lock(&self.damages).push(Damage { part, path, what, table, rows });
                }
                Err(error) => {
                    lock(&self.failed).get_or_insert(error);
                    return;
                }
            }
        }
    }

    fn verify(&self, path: &Path, table: &TableEntry, entry: &SegmentEntry) -> Result<()> {
        let held = HeldBytes::new(HELD_BYTES_MAX);
        let width = table.schema.len().max(1) as u64;
        for (index, column) in table.schema.columns().iter().enumerate() {
            // Opened for each column: what one keeps goes before the next.
            let file = open_segment(path, &table.schema, entry, Arc::clone(&held))?;
            let pages = verify_column(&file, index, column, entry.columns.get(index))
                .map_err(|error| in_column(path, column, error))?;
            file.check()?;
            self.pages.fetch_add(pages, Ordering::Relaxed);
            let share = entry.bytes / width;
            let done = self.bytes_done.fetch_add(share, Ordering::Relaxed) + share;
            if let Some(progress) = &self.options.progress {
                progress(done, self.bytes_total);
            }
        }
        if table.schema.key().is_some() {
            let file = open_segment(path, &table.schema, entry, Arc::clone(&held))?;
            file.verify_tree(&table.schema)?;
            file.check()?;
        }
        Ok(())
    }
}

/// The error, with the name of the column.
fn in_column(path: &Path, column: &Column, error: Error) -> Error {
    match error {
        Error::Corrupt(what) => {
            let file = format!("{}: ", path.display());
            let what = what.strip_prefix(&file).unwrap_or(&what);
            Error::corrupt(path, format!("column {}: {what}", column.name))
        }
        other => other,
    }
}

/// Checks a column and returns how many pages it has, with its dictionary.
fn verify_column(
    file: &SegmentFile,
    index: usize,
    column: &Column,
    stats: Option<&ColumnStats>,
) -> Result<u64> {
    let open = file.column(index)?;
    let dictionary = file.dictionary(index)?;
    if let Some(dictionary) = dictionary {
        verify_dictionary(dictionary, column.data_type)?;
    }
    let rules = PageRules {
        data_type: column.data_type,
        nullable: column.nullable,
        dictionary: dictionary.map(|dictionary| dictionary.len() as u32),
        decoders: open.decoders(),
    };
    let pages = file.page_rows().len();
    for page in 0..pages {
        let stored = file.stored_page(index, page)?;
        verify_page(&stored, &rules)
            .map_err(|error| Error::Corrupt(format!("page {page}: {error}")))?;
    }
    let mut found = column_stats(&open.index().pages, dictionary);
    if let Some(stats) = stats.filter(|stats| says_more(stats, &found)) {
        found = ColumnStats { nulls: found.nulls, ..text_bounds(file, index, stats)? };
    }
    match stats {
        Some(stats) if hold(stats, &found, column.data_type.physical()) => {}
        _ => {
            let what = "the manifest has other bounds or NULLs than its values";
            return Err(Error::Corrupt(what.to_owned()));
        }
    }
    Ok(pages as u64 + u64::from(dictionary.is_some()))
}

/// Whether statistics have bounds that pages of plain text do not tell, as those of a key have.
fn says_more(stats: &ColumnStats, found: &ColumnStats) -> bool {
    let is_text = matches!((&found.min, &found.max), (Some(Value::Bytes(_)), None));
    is_text
        && (stats.max.is_some()
            || stats.min.as_ref().is_some_and(|min| Some(min) > found.min.as_ref()))
}

/// Bounds of the texts of a column: those that are given where they hold, and else values that are beyond them.
fn text_bounds(file: &SegmentFile, column: usize, given: &ColumnStats) -> Result<ColumnStats> {
    let mut bounds = given.clone();
    for page in 0..file.page_rows().len() {
        let mut plain = Plain::empty(Physical::Bytes);
        file.decode_page(column, page, &mut plain)?;
        for value in (0..plain.len()).filter_map(|row| plain.get(row)) {
            if bounds.min.as_ref().is_some_and(|min| value < *min) {
                bounds.min = Some(value.clone());
            }
            if bounds.max.as_ref().is_some_and(|max| value > *max) {
                bounds.max = Some(value);
            }
        }
    }
    Ok(bounds)
}

/// Whether statistics are true of a column: exact for numbers, bounds for text.
fn hold(stats: &ColumnStats, found: &ColumnStats, physical: Physical) -> bool {
    if physical != Physical::Bytes {
        return stats == found;
    }
    let low = match (&stats.min, &found.min) {
        (Some(stats), Some(found)) => stats <= found,
        (None, found) => found.is_none(),
        (Some(_), None) => true,
    };
    let high = match (&stats.max, &found.max) {
        (Some(stats), Some(found)) => stats >= found,
        // Without a largest value there is no bound to be had, or no value at all.
        (Some(_), None) => found.min.is_none(),
        (None, _) => true,
    };
    low && high && stats.nulls == found.nulls
}
