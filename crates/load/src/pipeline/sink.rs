//! Where the partitions of a load go.

use std::collections::VecDeque;
use std::sync::{Arc, Condvar, Mutex, PoisonError};

use coload_store::LoadDir;
use coload_threads::lock;
use coload_transform::Placement;
use coload_types::Result;
use coload_wire::{BlockContent, Parsed, PartitionAccount, Seal};

use crate::partition::PartitionPlan;
use crate::schedule::RawFlow;

/// Where a load's partitions go.
#[derive(Clone, Copy)]
pub enum Destination<'a> {
    /// Into segments in the directory of a load.
    Store(&'a LoadDir),
    /// Nowhere: a dry run.
    Nowhere,
    /// To a sink, after the partitions that it has from an earlier attempt.
    Sink(&'a dyn Sink, &'a [PartitionAccount]),
}

/// What a row costs, whatever becomes of its columns; nothing before the first.
#[derive(Debug, Clone, Copy, Default, PartialEq)]
pub struct RowCosts {
    /// CPU nanoseconds of a row that is parsed for what no placement changes.
    pub base_ns: Option<f64>,
    /// CPU nanoseconds of a row that goes as text, without sending it.
    pub raw_ns: Option<f64>,
    /// Bytes of its text.
    pub text_bytes: f64,
}

/// What the server says of texts, to be taken by the pipeline.
#[derive(Debug, Default)]
pub struct Answers {
    state: Mutex<(VecDeque<Parsed>, bool)>,
    changed: Condvar,
}

impl Answers {
    /// Adds one.
    pub fn push(&self, parsed: Parsed) {
        lock(&self.state).0.push_back(parsed);
        self.changed.notify_all();
    }

    /// The next one; waits for it. `None` when the load has ended.
    pub fn next(&self) -> Option<Parsed> {
        let mut state = lock(&self.state);
        loop {
            if let Some(parsed) = state.0.pop_front() {
                return Some(parsed);
            }
            if state.1 {
                return None;
            }
            state = self.changed.wait(state).unwrap_or_else(PoisonError::into_inner);
        }
    }

    /// The load has ended: nobody waits any more.
    pub fn end(&self) {
        lock(&self.state).1 = true;
        self.changed.notify_all();
    }
}

/// Takes fragments and partitions instead of the segments of a store. Called by all workers.
pub trait Sink: Sync {
    /// Where the columns of the next fragment of a partition are transformed.
    fn place(&self, partition: usize, plan: &PartitionPlan, costs: &RowCosts) -> Arc<[Placement]>;

    /// The most bytes of text of the next fragment of a partition, if it is to go as text.
    fn leave_raw(&self, partition: usize, plan: &PartitionPlan, costs: &RowCosts) -> Option<usize>;

    /// Takes the text of a fragment, behind room for its head.
    ///
    /// # Errors
    /// What ends the load.
    fn send_raw(&self, raw: RawFlow) -> Result<()>;

    /// What became of texts.
    fn answers(&self) -> &Answers;

    /// Takes values of a column.
    ///
    /// # Errors
    /// What ends the load.
    fn send(&self, partition: usize, column: usize, content: BlockContent) -> Result<()>;

    /// Whether the partitions so far may stay when columns become wider: then a leg ends before the first partition
    /// with a field that does not fit.
    fn takes_wider(&self) -> bool;

    /// Takes the end of a partition.
    ///
    /// # Errors
    /// What ends the load.
    fn seal(&self, seal: Seal) -> Result<()>;
}
