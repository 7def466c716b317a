//! What a load into a server did.

use std::time::Duration;

use coload_link::LinkStats;
use coload_source::Reject;
use coload_store::LoadId;
use coload_threads::Step;
use coload_types::Column;

use super::choose::{Change, ColumnChoice};
use super::texts::RawReport;
use crate::file_report::FileReports;
use crate::widen::Widened;

/// What a load into a server did.
#[derive(Debug, Clone)]
pub struct RemoteReport {
    /// Id under which the load is published.
    pub id: LoadId,
    /// Name of the table.
    pub table: String,
    /// Set when the load was published before: nothing was loaded now.
    pub already: bool,
    /// Then: when it was published, and what the table holds, in words.
    pub held: String,
    /// Version of the store that shows the rows.
    pub version: u64,
    /// Rows that the load brought into the table.
    pub rows: u64,
    /// Records that were set aside.
    pub rejects: u64,
    /// Each input; empty when nothing was loaded now.
    pub files: FileReports,
    /// The first rejects, at most [`crate::REJECTS_KEPT_MAX`].
    pub first_rejects: Vec<Reject>,
    /// Partitions, and how many of them an earlier attempt had sent.
    pub partitions: [usize; 2],
    /// Connections to the server begun.
    pub attempts: usize,
    /// Time from start to durable publish.
    pub wall: Duration,
    /// CPU time of this process meanwhile.
    pub cpu: Duration,
    /// CPU time by step.
    pub steps: Vec<(Step, Duration)>,
    /// Most memory that this process has held.
    pub peak_memory: u64,
    /// CPU time of the server's process meanwhile.
    pub server_cpu: Duration,
    /// Most memory that the server's process has held.
    pub server_peak_memory: u64,
    /// Bytes of the segments.
    pub bytes_stored: u64,
    /// Number of segments that were published.
    pub segments: u64,
    /// What merging small segments did, in words.
    pub merged: String,
    /// What went over the link, in all attempts.
    pub link: LinkStats,
    /// Columns whose inferred types became wider.
    pub widened: Vec<Widened>,
    /// Columns of the table.
    pub columns: Vec<Column>,
    /// What was estimated and chosen for each.
    pub choices: Vec<ColumnChoice>,
    /// Changes of the placements while the load ran, in their order.
    pub changes: Vec<Change>,
    /// What went as text.
    pub raw: RawReport,
}

impl RemoteReport {
    /// Records that a filter left out.
    pub fn filtered(&self) -> u64 {
        self.files.filtered()
    }

    /// Records of all inputs that were read.
    pub fn records(&self) -> u64 {
        self.files.records()
    }

    /// Bytes of all inputs that were read, as they are stored.
    pub fn bytes_read(&self) -> u64 {
        self.files.bytes()
    }
}
