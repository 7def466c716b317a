//! What a load did.

use std::time::Duration;

use coload_page::{ColumnIndex, PageMeta};
use coload_source::{Mending, Reject};
use coload_store::{LoadId, LoadRecord, MergeReport};
use coload_threads::Step;
use coload_types::{Column, DataType};

use crate::file_report::FileReports;
use crate::kinds::RejectKind;
use crate::widen::Widened;

/// Rejects that a report keeps; all are counted, and all go to the rejects file.
pub const REJECTS_KEPT_MAX: usize = 10;

/// What is known of the number of distinct values.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Distinct {
    /// One dictionary has all values.
    Exact(u64),
    /// Each of several segments has a dictionary of its own, or some pages have none; this is the
    /// largest dictionary.
    AtLeast(u64),
    /// About so many; the standard error is 1.6 %.
    About(u64),
    /// No segment has a dictionary of the column, and nothing was estimated.
    Unknown,
}

/// What became of one column.
#[derive(Debug, Clone, PartialEq)]
pub struct ColumnReport {
    /// Name of the column.
    pub name: String,
    /// Type that the column has in the table.
    pub data_type: DataType,
    /// `dictionary`, `frame of reference`, `symbols`, ..., with shares if mixed.
    pub encoding: String,
    /// Distinct values that are not NULL.
    pub distinct: Distinct,
    /// Rows that are NULL.
    pub nulls: u64,
    /// Bytes of pages, dictionaries and symbols.
    pub bytes: u64,
    /// Bits of `bytes` per row.
    pub bits_per_value: f64,
}

impl ColumnReport {
    /// What the indexes of a column, one a segment, tell; `rows` are those of all segments.
    pub fn new(column: &Column, rows: u64, indexes: &[&ColumnIndex]) -> Self {
        let bytes: u64 = indexes.iter().map(|x| x.data_bytes()).sum();
        ColumnReport {
            name: column.name.clone(),
            data_type: column.data_type,
            encoding: encoding(indexes),
            distinct: distinct(indexes),
            nulls: indexes.iter().map(|x| x.nulls()).sum(),
            bytes,
            bits_per_value: if rows == 0 { 0.0 } else { bytes as f64 * 8.0 / rows as f64 },
        }
    }
}

impl ColumnReport {
    /// The report with an estimate of the distinct values among `rows`, where no dictionary has all.
    pub fn with_estimate(mut self, rows: u64, estimate: Option<f64>) -> Self {
        let Some(estimate) = estimate else { return self };
        let most = rows - self.nulls;
        self.distinct = match self.distinct {
            Distinct::Exact(count) => Distinct::Exact(count),
            Distinct::AtLeast(least) => {
                Distinct::About((estimate as u64).clamp(least, most.max(least)))
            }
            Distinct::About(_) | Distinct::Unknown => Distinct::About((estimate as u64).min(most)),
        };
        self
    }
}

fn is_coded(page: &PageMeta) -> bool {
    page.detail.is_codes()
}

fn encoding(indexes: &[&ColumnIndex]) -> String {
    let pages = || indexes.iter().flat_map(|x| &x.pages);
    let coded = pages().filter(|p| is_coded(p)).count();
    let plain = pages().find(|p| !is_coded(p)).map_or("empty", PageMeta::codec_name);
    match (coded, pages().count()) {
        (0, _) => plain.to_owned(),
        (coded, count) if coded == count => "dictionary".to_owned(),
        (coded, count) => format!("dictionary {} %, {plain}", coded * 100 / count),
    }
}

fn distinct(indexes: &[&ColumnIndex]) -> Distinct {
    let largest =
        indexes.iter().filter_map(|x| x.dictionary.as_ref()).map(|d| u64::from(d.rows)).max();
    match (largest, indexes) {
        (None, _) => Distinct::Unknown,
        (Some(count), [only]) if only.pages.iter().all(is_coded) => Distinct::Exact(count),
        (Some(count), _) => Distinct::AtLeast(count),
    }
}

/// What a load did.
#[derive(Debug, Clone)]
pub struct LoadReport {
    /// Id of the load, by which its segments are named.
    pub id: LoadId,
    /// Name of the table.
    pub table: String,
    /// Version of the store that shows the rows.
    pub version: u64,
    /// The record that the store keeps of the load.
    pub record: LoadRecord,
    /// What became of each input, in their order.
    pub files: FileReports,
    /// What became of each column, in the table's order.
    pub columns: Vec<ColumnReport>,
    /// Number of segments that were written.
    pub segments: usize,
    /// Partitions they were merged from.
    pub partitions: usize,
    /// Bytes of the segments on the disk.
    pub bytes_stored: u64,
    /// Time from start to durable publish.
    pub wall: Duration,
    /// CPU time of the process meanwhile.
    pub cpu: Duration,
    /// CPU time by step.
    pub steps: Vec<(Step, Duration)>,
    /// Most memory the process has held.
    pub peak_memory: u64,
    /// The first rejects, at most [`REJECTS_KEPT_MAX`].
    pub rejects: Vec<Reject>,
    /// Rejects by kind, in the order in which they were met.
    pub reject_kinds: Vec<RejectKind>,
    /// Columns whose inferred types became wider, in the order in which that was found.
    pub widened: Vec<Widened>,
    /// What merging the table's small segments after the load did, or why it failed; the load is
    /// published all the same.
    pub merge: coload_types::Result<MergeReport>,
}

/// What a load would do.
#[derive(Debug, Clone)]
pub struct DryRun {
    /// Name that the table would have.
    pub table: String,
    /// What was read of each input, in their order.
    pub files: FileReports,
    /// What each column of the text that was read would take.
    pub columns: Vec<ColumnReport>,
    /// Bytes of the segments of what was read.
    pub bytes_stored: u64,
    /// Share of the inputs that was read, from 0 to 1; 1 where the whole is not known.
    pub share: f64,
    /// Time from the start to the end of the run.
    pub wall: Duration,
    /// CPU time of the process meanwhile.
    pub cpu: Duration,
    /// CPU time by step.
    pub steps: Vec<(Step, Duration)>,
    /// Most memory the process has held.
    pub peak_memory: u64,
    /// The first rejects, at most [`REJECTS_KEPT_MAX`].
    pub rejects: Vec<Reject>,
    /// Types of inferred columns that became wider.
    pub widened: Vec<Widened>,
}

impl DryRun {
    /// An amount of what was read, for all of the inputs. Dictionaries grow slower than their rows,
    /// so that of bytes it is rather too much.
    pub fn of_all(&self, amount: f64) -> f64 {
        amount / self.share.max(1e-9)
    }

    /// Rows that would be loaded.
    pub fn rows(&self) -> u64 {
        self.files.rows()
    }

    /// Records left out by a filter.
    pub fn filtered(&self) -> u64 {
        self.files.filtered()
    }

    /// Records that would be rejected.
    pub fn reject_count(&self) -> u64 {
        self.files.rejects()
    }
}

impl LoadReport {
    /// Rows that the load brought into the table.
    pub fn rows(&self) -> u64 {
        self.files.rows()
    }

    /// Records left out by a filter.
    pub fn filtered(&self) -> u64 {
        self.files.filtered()
    }

    /// Number of records that were set aside.
    pub fn reject_count(&self) -> u64 {
        self.files.rejects()
    }

    /// Rows that were mended in one way.
    pub fn mended(&self, mending: Mending) -> u64 {
        self.files.mended(mending)
    }

    /// Bytes of all inputs that were read, as they are stored.
    pub fn bytes_read(&self) -> u64 {
        self.files.bytes()
    }
}
