//! What a sorted load may use.

use std::fmt;
use std::path::Path;
use std::sync::Arc;
use std::time::Duration;

use coload_space::{Dram, Space, SpaceSpec, Tiered};
use coload_types::Result;

/// Share of the memory of a load that its runs may take, where nobody says where they are to be.
const RUNS_SHARE: u64 = 8;

/// What rows are put in order with.
#[derive(Debug, Clone, Copy)]
pub struct SortWith {
    /// Threads that sort and merge.
    pub threads: usize,
    /// Bytes of memory that this may take.
    pub memory: u64,
}

/// What is taken for the memory of a writer that does not say it, such as a statement.
const USUAL_MEMORY: u64 = 256 << 20;

impl SortWith {
    /// What is used where nobody says more: one thread.
    pub fn usual() -> Self {
        SortWith { threads: 1, memory: USUAL_MEMORY }
    }
}

/// Where the two buffers of a sorted load live.
#[derive(Debug, Clone)]
pub struct SortSpaces {
    /// Columns of a segment while its rows are put in order.
    pub sort: Arc<dyn Space>,
    /// Runs until they are merged.
    pub runs: Arc<dyn Space>,
}

impl SortSpaces {
    /// Opens the spaces of a load that may use so much memory. Runs for which nobody named a space are in memory, and beyond an
    /// eighth of it in files of a directory.
    ///
    /// # Errors
    /// `Invalid` or `Unavailable` when a space is not there.
    pub fn open(
        sort: Option<&SpaceSpec>,
        runs: Option<&SpaceSpec>,
        memory: u64,
        dir: &Path,
    ) -> Result<Self> {
        let sort: Arc<dyn Space> = match sort {
            Some(sort) => sort.open(memory)?,
            None => Arc::new(Dram::new("dram", u64::MAX)),
        };
        let runs: Arc<dyn Space> = match runs {
            Some(runs) => runs.open(memory)?,
            None => {
                let beyond = SpaceSpec::map(&dir.to_string_lossy()).open(memory)?;
                Arc::new(Tiered::new(memory / RUNS_SHARE, beyond))
            }
        };
        Ok(SortSpaces { sort, runs })
    }
}

/// How the segments of a load become one order.
#[derive(Debug, Clone)]
pub struct Sorting {
    /// Where buffers live.
    pub spaces: SortSpaces,
    /// Threads that work, and the memory that they may take.
    pub with: SortWith,
    /// Bytes of unsorted segments that become one segment in order; as many as each of them has, if nobody says it.
    pub segment_bytes: Option<u64>,
}

/// How long the steps of a sorted load took by the clock, and what they made.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct SortTimes {
    /// Segments were sorted, and stored as runs.
    pub sort: Duration,
    /// Runs were merged into segments.
    pub merge: Duration,
    /// B+ trees of the segments were built.
    pub nodes: Duration,
    /// Runs that were merged.
    pub runs: u64,
}

impl fmt::Display for SortTimes {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let SortTimes { sort, merge, nodes, runs } = self;
        let (sort, merge, nodes) = (sort.as_secs_f64(), merge.as_secs_f64(), nodes.as_secs_f64());
        write!(f, "sort {sort:.2} s, merge of {runs} runs {merge:.2} s, trees {nodes:.2} s")
    }
}
