//! Memory of statements: what they may hold, what goes to disk, and what ends one that takes too much.
//!
//! ```text
//!   reservations   sorts, groups, joins, answers  --full--> spill folder, sort-merge joins   (pool, spill, joins)
//!   results        of functions, before they are made --too large--> an error               (results)
//!   long texts     few rows at once                                                         (narrow, concat)
//!   windows        no texts of rows that are gone                                         (windows)
//!   sorted rows    their texts copied together; many first rows  --all sorted--> spill folder   (sorts)
//!   the rest       what a statement really takes  --process over its budget--> it is ended  (watch)
//! ```
//!
//! The query engine counts what it expects to hold for long. What it does not count, and what grows while it is made,
//! is seen by the watch, which asks the allocator.

mod concat;
mod held;
mod joins;
mod narrow;
mod pool;
mod results;
mod sorts;
mod spill;
mod watch;
mod windows;

use std::sync::Arc;

use datafusion::execution::memory_pool::MemoryPool;
use datafusion::prelude::SessionConfig;

pub(crate) use concat::{batch_rows, texts_of_values};
pub(crate) use held::{held_bytes, sliced_bytes};
pub(crate) use joins::execute;
pub(crate) use narrow::{narrow_inputs, text_bytes};
pub(crate) use results::bound_results;
pub(crate) use sorts::fit_sort;
pub(crate) use spill::SpillFolder;
pub use spill::SpillOptions;
pub(crate) use watch::{Elsewhere, Watch, taken_over};
pub use watch::{MemoryGauge, measure_memory};
pub(crate) use windows::fit_window;

/// Share of the budget that reservations may take, in parts of 8: the rest is for what nobody reserves.
const RESERVED_EIGHTHS: usize = 5;
/// Memory for each partition of a plan, at least: sorts and groups of several would have too little else.
const PARTITION_BYTES_MIN: usize = 40 << 20;
/// Share of the memory for each row of a batch: a sort that has written many parts has several batches of each that it merges.
const BATCH_ROWS_SHARE: usize = 128 << 10;
/// Memory for each part of what a sort has written, while they are merged: what is not merged at once is merged in turns.
const MERGED_PART_BYTES: usize = 64 << 20;
/// Parts that are merged at once, at least; with small batches they fit into little memory.
const MERGED_PARTS_MIN: usize = 16;
/// Share of a partition's memory that a sort keeps for merging what it has written.
const MERGE_SHARE: usize = 8;
/// The most that it keeps, which is the engine's default.
const MERGE_BYTES_MAX: usize = 10 << 20;

/// Share of the memory for the texts of rows that functions work on at once.
const ROWS_SHARE: usize = 64;
/// Bytes of these, at least.
const ROWS_BYTES_MIN: usize = 64 << 10;

/// Bytes of the texts of rows that functions work on at once.
pub(crate) fn rows_share(memory: usize) -> usize {
    (memory / ROWS_SHARE).max(ROWS_BYTES_MIN)
}

/// What the reservations of all statements come from.
pub(crate) fn pool(memory: usize) -> Arc<dyn MemoryPool> {
    Arc::new(pool::StatementPool::new(memory / 8 * RESERVED_EIGHTHS))
}

/// Parts that a sort merges at once.
pub(crate) fn merged_parts(memory: usize) -> usize {
    (memory / MERGED_PART_BYTES).max(MERGED_PARTS_MIN)
}

/// Fits partitions and sorts into the memory.
pub(crate) fn fit(config: &mut SessionConfig, threads: usize, memory: usize) {
    let partitions = threads.min(memory / PARTITION_BYTES_MIN).max(1);
    let rows = (memory / BATCH_ROWS_SHARE).clamp(1, config.batch_size());
    *config = std::mem::take(config).with_batch_size(rows);
    let options = config.options_mut();
    options.execution.target_partitions = partitions;
    let merge = memory / partitions / MERGE_SHARE;
    options.execution.sort_spill_reservation_bytes = merge.min(MERGE_BYTES_MAX);
}
