//! What workers do.

use std::sync::Arc;

use super::raw::HandedBack;
use crate::partition::SealedPartition;
use crate::target::{Ahead, RawFlow, Work};

/// Something a worker can do.
#[derive(Debug)]
pub enum Task {
    /// Parse a chunk; with a start if speculation was wrong.
    Parse { chunk: usize, start: Option<u64> },
    /// Take the next chunk, where they come one by one, and parse it.
    TakeChunk,
    /// Compress a column of a partition.
    Compress { partition: Arc<SealedPartition>, column: usize },
    /// Give the target the columns of a fragment that are final.
    Ahead(Ahead),
    /// Do work that the target left.
    Work(Box<dyn Work>),
    /// Send a fragment as text.
    SendRaw(RawFlow),
    /// Parse a chunk whose text was handed back.
    ParseBack(HandedBack),
    /// Tell the target that a partition is complete.
    Seal(Sealing),
    /// Tell the target that all are.
    End,
}

/// The end of a partition.
#[derive(Debug)]
pub struct Sealing {
    /// Number of the partition.
    pub partition: usize,
    /// Columns of fragments, and columns of the partition, that the target was given.
    pub blocks: u64,
    /// Rows of each fragment.
    pub page_rows: Vec<u32>,
}
