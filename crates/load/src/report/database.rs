//! How rows were brought into a database.

/// How a database took the rows of a load.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct DatabaseReport {
    /// The engine and its version, as the server says it.
    pub server: String,
    /// How rows were sent.
    pub sent: SentBy,
    /// Why so, a line each.
    pub because: Vec<String>,
    /// What holds for the rows if the load is killed, in words.
    pub guarantee: String,
    /// Rows of chunks that an earlier attempt had committed, which were not sent again.
    pub committed_before: u64,
    /// Rows that the server refused.
    pub refused: u64,
}

/// How rows were sent.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct SentBy {
    /// Name of the method.
    pub method: String,
    /// Connections over which they went.
    pub connections: usize,
    /// Rows of a statement, of methods that have such; 0 where a chunk is one.
    pub batch_rows: usize,
    /// Bytes that were sent as rows.
    pub bytes: u64,
}
