//! What workers do.

use std::sync::Arc;

use coload_store::{ClosedSegment, PlainWrite};
use coload_transform::FragmentColumn;

use super::raw::{HandedBack, RawFlow};
use crate::partition::{PartitionPlan, SealedPartition};

/// Something a worker can do.
#[derive(Debug)]
pub enum Task {
    /// Parse a chunk; with a start if speculation was wrong.
    Parse { chunk: usize, start: Option<u64> },
    /// Read the next chunk of a stream and parse it.
    ParseStream,
    /// Compress a column of a partition.
    Compress { partition: Arc<SealedPartition>, column: usize },
    /// Write plain pages.
    Write(Arc<PlainWrite>),
    /// Merge a column of a segment.
    Merge { segment: Arc<ClosedSegment>, column: usize },
    /// Send the columns of a fragment that are final.
    Flow(Flow),
    /// Send a fragment as text.
    SendRaw(RawFlow),
    /// Parse a chunk whose text was handed back.
    ParseBack(HandedBack),
    /// Send the end of a partition.
    Seal(Sealing),
}

/// Columns of a fragment that need not wait for their partition.
#[derive(Debug)]
pub struct Flow {
    /// Number of the partition.
    pub partition: usize,
    /// Number of the fragment among those of the partition that have rows.
    pub fragment: u32,
    /// The columns, with their numbers.
    pub columns: Vec<(usize, FragmentColumn)>,
    /// The plan that text was encoded by.
    pub plan: Arc<PartitionPlan>,
}

/// The end of a partition.
#[derive(Debug)]
pub struct Sealing {
    /// Number of the partition.
    pub partition: usize,
    /// Columns of fragments, and columns of the partition, that were sent.
    pub blocks: u64,
    /// Rows of each fragment.
    pub page_rows: Vec<u32>,
}
