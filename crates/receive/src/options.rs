//! What a server gives to loads.

use std::sync::Arc;
use std::time::Duration;

use coload_store::SortWith;

use crate::member::Member;

/// Default columns merged at once (seed 000, section 4.4).
pub const MERGE_COLUMNS: usize = 2;
/// Default time after which a load that nobody continues is dropped.
pub const EXPIRE: Duration = Duration::from_secs(7 * 24 * 3600);

/// Default for the inputs that are kept of a load.
pub const SPOOL_BYTES: u64 = 16 << 30;

/// What becomes of partitions.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum Keep {
    /// They are stored and published.
    #[default]
    All,
    /// They are verified and dropped: measures everything but storing (seed 001, load without inserts).
    Nothing,
}

/// The queries of a server, as loads see them.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct QueryLoad {
    /// Number of queries that run now.
    pub running: u32,
    /// Their latency of late, microseconds; 0 when not known.
    pub latency_us: u64,
    /// The latency without loads, microseconds; 0 when not known.
    pub latency_idle_us: u64,
}

/// Tells the load of queries.
pub type QueryGauge = Arc<dyn Fn() -> QueryLoad + Send + Sync>;

/// Whether queries go before loads.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum LoadPriority {
    /// Queries go before loads: the threads of loads have a lower priority, and rest when queries are slow.
    #[default]
    Low,
    /// Loads compete with queries for the cores.
    Normal,
}

/// What a server gives to loads.
#[derive(Clone)]
pub struct ReceiveOptions {
    /// Cores that loads may use; a part of one too.
    pub load_cpu: f64,
    /// Whether queries go before loads.
    pub priority: LoadPriority,
    /// Bytes that loads may hold.
    pub load_memory: usize,
    /// Columns that are compressed and merged at once.
    pub merge_columns: usize,
    /// What becomes of partitions.
    pub keep: Keep,
    /// Inputs of a `pipe` load that are kept on disk, so that it goes on after a crash; of larger ones, what was
    /// read is given back.
    pub spool_bytes: u64,
    /// Loads that nobody continued for so long are dropped.
    pub expire: Duration,
    /// How the queries do.
    pub queries: Option<QueryGauge>,
    /// The cluster that the store is in.
    pub cluster: Option<Arc<Member>>,
}

impl std::fmt::Debug for ReceiveOptions {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("ReceiveOptions")
            .field("load_cpu", &self.load_cpu)
            .field("priority", &self.priority)
            .field("load_memory", &self.load_memory)
            .field("merge_columns", &self.merge_columns)
            .field("keep", &self.keep)
            .finish_non_exhaustive()
    }
}

impl Default for ReceiveOptions {
    fn default() -> Self {
        ReceiveOptions {
            load_cpu: std::thread::available_parallelism().map_or(1.0, |n| n.get() as f64),
            priority: LoadPriority::Low,
            load_memory: coload_load::default_memory(),
            merge_columns: MERGE_COLUMNS,
            keep: Keep::All,
            spool_bytes: SPOOL_BYTES,
            expire: EXPIRE,
            queries: None,
            cluster: None,
        }
    }
}

impl ReceiveOptions {
    /// Threads that work on loads: one for each core that is begun.
    pub(crate) fn load_threads(&self) -> usize {
        (self.load_cpu.ceil() as usize).max(1)
    }

    /// What rows of loads are put in order with.
    pub fn sort_with(&self) -> SortWith {
        SortWith { threads: self.load_threads(), memory: self.load_memory as u64 }
    }
}
