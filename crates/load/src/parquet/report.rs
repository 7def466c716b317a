//! What a load into Parquet files did.

use std::path::PathBuf;
use std::time::Duration;

use coload_source::Reject;
use coload_store::LoadId;
use coload_threads::Step;

use crate::file_report::FileReports;
use crate::kinds::RejectKind;
use crate::report::ColumnReport;
use crate::widen::Widened;

/// A file of a load.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct WrittenFile {
    /// Its name in the folder.
    pub name: String,
    /// Rows.
    pub rows: u64,
    /// Bytes.
    pub bytes: u64,
    /// Row groups.
    pub row_groups: usize,
}

/// What a load did. A folder has no versions, and nothing is merged in it.
#[derive(Debug, Clone)]
pub struct ParquetReport {
    /// The load: part of the names of its files.
    pub id: LoadId,
    /// Where the files are.
    pub folder: PathBuf,
    /// Each input.
    pub files: FileReports,
    /// Each column.
    pub columns: Vec<ColumnReport>,
    /// The files, in the order of the input.
    pub written: Vec<WrittenFile>,
    /// Names of the files that these replaced.
    pub removed: Vec<String>,
    /// Partitions that the row groups were made of.
    pub partitions: usize,
    /// Time from start to durable files.
    pub wall: Duration,
    /// CPU time of the process meanwhile.
    pub cpu: Duration,
    /// CPU time by step.
    pub steps: Vec<(Step, Duration)>,
    /// Most memory the process has held.
    pub peak_memory: u64,
    /// The first rejects.
    pub rejects: Vec<Reject>,
    /// Rejects by kind, in the order in which they were met.
    pub reject_kinds: Vec<RejectKind>,
    /// Columns whose inferred types became wider, in the order in which that was found.
    pub widened: Vec<Widened>,
}

impl ParquetReport {
    /// Rows loaded.
    pub fn rows(&self) -> u64 {
        self.files.rows()
    }

    /// Records left out by a filter.
    pub fn filtered(&self) -> u64 {
        self.files.filtered()
    }

    /// Records rejected.
    pub fn reject_count(&self) -> u64 {
        self.files.rejects()
    }

    /// Input bytes read.
    pub fn bytes_read(&self) -> u64 {
        self.files.bytes()
    }

    /// Bytes of the files.
    pub fn bytes_written(&self) -> u64 {
        self.written.iter().map(|file| file.bytes).sum()
    }

    /// Row groups of the files.
    pub fn row_groups(&self) -> usize {
        self.written.iter().map(|file| file.row_groups).sum()
    }
}
