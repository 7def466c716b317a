//! How the rows of a load were put in the order of a key.

use std::time::Duration;

use coload_space::Space;
use coload_store::{SortSpaces, SortTimes};

/// How the rows of a load were put in the order of a key, by the steps of seed 002.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct SortReport {
    /// Time by the clock in which inputs were read and interpreted.
    pub read: Duration,
    /// Time in which rows were sorted, and stored as runs or, if there was but one, as the segment.
    pub sort: Duration,
    /// Time in which runs were merged into segments.
    pub merge: Duration,
    /// Time in which the B+ trees of segments were built.
    pub nodes: Duration,
    /// Runs that were merged; none when a segment was enough, or all were in order.
    pub runs: u64,
    /// Where the sort buffer was.
    pub sort_space: String,
    /// Where runs were, or those that memory did not hold.
    pub run_space: String,
    /// What spaces are that are not what their names say.
    pub notes: Vec<String>,
}

impl SortReport {
    pub(crate) fn new(read: Duration, times: SortTimes, spaces: &SortSpaces) -> Self {
        let SortTimes { sort, merge, nodes, runs } = times;
        let name = |space: &dyn Space| space.name().to_owned();
        let mut notes: Vec<String> = [&spaces.sort, &spaces.runs]
            .into_iter()
            .filter_map(|space| space.note().map(str::to_owned))
            .collect();
        notes.dedup();
        let (sort_space, run_space) = (name(&*spaces.sort), name(&*spaces.runs));
        SortReport { read, sort, merge, nodes, runs, sort_space, run_space, notes }
    }
}
