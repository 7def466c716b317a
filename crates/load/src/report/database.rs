//! How rows were brought into a database.

use std::time::Duration;

/// How a database took the rows of a load.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct DatabaseReport {
    /// The engine and its version, as the server says it.
    pub server: String,
    /// How rows were sent.
    pub sent: SentBy,
    /// Why so, a line each.
    pub because: Vec<String>,
    /// What the ways to send them would take, as it was estimated.
    pub estimates: Vec<SendEstimate>,
    /// What changed while they were sent.
    pub changes: Vec<SendChange>,
    /// What holds for the rows if the load is killed, in words.
    pub guarantee: String,
    /// Rows of chunks that an earlier attempt had committed, which were not sent again.
    pub committed_before: u64,
    /// Rows that the server refused.
    pub refused: u64,
}

/// What a way to send rows would take.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct SendEstimate {
    /// Name of the method.
    pub method: String,
    /// Connections.
    pub connections: usize,
    /// Rows of a statement, of methods that have such; 0 of others.
    pub batch_rows: usize,
    /// The time.
    pub time: Duration,
    /// Whether it was taken.
    pub chosen: bool,
}

/// A change while rows were sent.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct SendChange {
    /// When, after the first rows.
    pub after: Duration,
    /// Connections from then on.
    pub connections: usize,
    /// Why.
    pub why: String,
}

/// How rows were sent.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct SentBy {
    /// Name of the method.
    pub method: String,
    /// Most connections over which they went at once.
    pub connections: usize,
    /// Rows of a statement, of methods that have such; 0 where a chunk is one.
    pub batch_rows: usize,
    /// Bytes that were sent as rows.
    pub bytes: u64,
}
