//! What workers do for partitions and targets.

use std::sync::Arc;

use super::texts_sent::HandedBack;
use crate::partition::SealedPartition;
use crate::schedule::{self, Lane};
use crate::target::{Ahead, TextFragment, Work};

/// Something to be done for a partition or a target.
#[derive(Debug)]
pub enum Job {
    /// Compress a column of a partition.
    Compress {
        /// The partition.
        partition: Arc<SealedPartition>,
        /// The column of the table.
        column: usize,
    },
    /// Give the target the columns of a fragment that are final.
    Ahead(Ahead),
    /// Do work that the target left.
    Work(Box<dyn Work>),
    /// Send a fragment as text.
    SendText(TextFragment),
    /// Parse a chunk whose text was handed back.
    ParseBack(HandedBack),
}

impl schedule::Job for Job {
    fn lane(&self) -> Lane {
        match self {
            Job::Work(work) => work.lane(),
            _ => Lane::Any,
        }
    }
}

/// The end of a partition.
#[derive(Debug, Default)]
pub struct Sealing {
    /// Columns of fragments, and columns of the partition, that the target was given.
    pub blocks: u64,
    /// Rows of each fragment.
    pub page_rows: Vec<u32>,
}
