//! What a load into a server tells of the link and the server.

use std::time::Duration;

use coload_link::LinkStats;

/// What went over the link, and what the server's process took.
#[derive(Debug, Clone, Default)]
pub struct NetworkReport {
    /// Connections to the server begun.
    pub attempts: usize,
    /// Partitions that an earlier attempt had sent.
    pub partitions_known: usize,
    /// What went over the link, in all attempts.
    pub link: LinkStats,
    /// CPU time of the server's process meanwhile.
    pub server_cpu: Duration,
    /// Most memory that the server's process has held.
    pub server_peak_memory: u64,
}
