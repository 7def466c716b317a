//! Where the partitions of a load go.

use std::sync::Arc;

use coload_format::Result;
use coload_store::LoadDir;
use coload_transform::Placement;

use crate::partition::PartitionPlan;
use crate::wire::{BlockContent, PartitionAccount, Seal};

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

/// Takes fragments and partitions instead of the segments of a store. Called by all workers.
pub trait Sink: Sync {
    /// Where the columns of the next fragment of a partition are transformed. `base_ns` is what a row took so far
    /// that no placement changes; `None` before the first.
    fn place(
        &self,
        partition: usize,
        plan: &PartitionPlan,
        base_ns: Option<f64>,
    ) -> Arc<[Placement]>;

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
