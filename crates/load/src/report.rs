//! What a load did.

use std::time::Duration;

use coload_format::DataType;
use coload_source::Reject;
use coload_store::{LoadId, LoadRecord};

use crate::clock::Step;

/// Rejects that a report keeps; all are counted, and all go to the rejects file.
pub const REJECTS_KEPT_MAX: usize = 10;

/// What became of one input.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct FileReport {
    /// Name as given.
    pub name: String,
    /// Bytes read.
    pub bytes: u64,
    /// Records read: loaded and rejected.
    pub records: u64,
    /// Rows loaded.
    pub rows: u64,
    /// Records rejected.
    pub rejects: u64,
}

/// What became of one column.
#[derive(Debug, Clone, PartialEq)]
pub struct ColumnReport {
    /// Name.
    pub name: String,
    /// Type.
    pub data_type: DataType,
    /// `dictionary`, `frame of reference`, `symbols`, ..., with shares if mixed.
    pub encoding: String,
    /// Distinct values: exact where there is a dictionary, else not known.
    pub distinct: Option<u64>,
    /// NULL rows.
    pub nulls: u64,
    /// Bytes of pages, dictionaries and symbols.
    pub bytes: u64,
    /// Bits of `bytes` per row.
    pub bits_per_value: f64,
}

/// What a load did.
#[derive(Debug, Clone)]
pub struct LoadReport {
    /// The load.
    pub id: LoadId,
    /// Table.
    pub table: String,
    /// Version of the store that shows the rows.
    pub version: u64,
    /// As the store remembers it.
    pub record: LoadRecord,
    /// Each input.
    pub files: Vec<FileReport>,
    /// Each column.
    pub columns: Vec<ColumnReport>,
    /// Segments written.
    pub segments: usize,
    /// Partitions they were merged from.
    pub partitions: usize,
    /// Bytes on disk.
    pub bytes_stored: u64,
    /// Time from start to durable publish.
    pub wall: Duration,
    /// CPU time of the process meanwhile.
    pub cpu: Duration,
    /// CPU time by step.
    pub steps: Vec<(Step, Duration)>,
    /// Most memory the process has held.
    pub peak_memory: u64,
    /// The first rejects.
    pub rejects: Vec<Reject>,
}

impl LoadReport {
    /// Rows loaded.
    pub fn rows(&self) -> u64 {
        self.files.iter().map(|f| f.rows).sum()
    }

    /// Records rejected.
    pub fn reject_count(&self) -> u64 {
        self.files.iter().map(|f| f.rejects).sum()
    }

    /// Input bytes read.
    pub fn bytes_read(&self) -> u64 {
        self.files.iter().map(|f| f.bytes).sum()
    }
}
