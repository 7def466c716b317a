//! Targets that do part of the work: a server near the data.

use std::collections::VecDeque;
use std::sync::{Arc, Condvar, Mutex, PoisonError};

use coload_threads::lock;
use coload_transform::Placement;
use coload_types::Result;
use coload_wire::Parsed;

use crate::partition::PartitionPlan;

/// What a row costs, whatever becomes of its columns; nothing before the first.
#[derive(Debug, Clone, Copy, Default, PartialEq)]
pub struct RowCosts {
    /// CPU nanoseconds of a row that is parsed for what no placement changes.
    pub base_ns: Option<f64>,
    /// CPU nanoseconds of a row that goes as text, without sending it.
    pub text_ns: Option<f64>,
    /// Bytes of its text.
    pub text_bytes: f64,
}

/// A fragment on its way as text.
#[derive(Debug)]
pub struct TextFragment {
    /// Number of the partition.
    pub partition: usize,
    /// Number of the fragment among those of the partition that have rows.
    pub fragment: u32,
    /// Its rows.
    pub rows: u32,
    /// Room for a head, and the text.
    pub message: Vec<u8>,
}

/// Does part of the work of a load. Called by all workers.
pub trait Sharing: Sync {
    /// Where the columns of the next fragment of a partition are transformed.
    fn place(&self, partition: usize, plan: &PartitionPlan, costs: &RowCosts) -> Arc<[Placement]>;

    /// The most bytes of text of the next fragment of a partition, if it is to go as text.
    fn leave_text(&self, partition: usize, plan: &PartitionPlan, costs: &RowCosts)
    -> Option<usize>;

    /// Takes the text of a fragment, behind room for its head.
    ///
    /// # Errors
    /// What ends the load.
    fn send_text(&self, text: TextFragment) -> Result<()>;

    /// What became of texts.
    fn answers(&self) -> &Answers;
}

/// What the server says of texts, to be taken by the pipeline.
#[derive(Debug, Default)]
pub struct Answers {
    told: Mutex<(VecDeque<Parsed>, bool)>,
    changed: Condvar,
}

impl Answers {
    /// Adds one.
    pub fn push(&self, parsed: Parsed) {
        lock(&self.told).0.push_back(parsed);
        self.changed.notify_all();
    }

    /// The next one; waits for it. `None` when the load has ended.
    pub fn next(&self) -> Option<Parsed> {
        let mut told = lock(&self.told);
        loop {
            if let Some(parsed) = told.0.pop_front() {
                return Some(parsed);
            }
            if told.1 {
                return None;
            }
            told = self.changed.wait(told).unwrap_or_else(PoisonError::into_inner);
        }
    }

    /// The load has ended: nobody waits any more.
    pub fn end(&self) {
        lock(&self.told).1 = true;
        self.changed.notify_all();
    }
}
