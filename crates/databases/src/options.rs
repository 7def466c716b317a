//! How a load goes into a database.

use std::time::Duration;

use crate::costs::Tuning;

/// How rows are sent.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Method {
    /// One INSERT a row, each its own transaction.
    InsertAutocommit,
    /// One INSERT a row, in the transaction of its chunk.
    Insert,
    /// One INSERT that is prepared once, and run for each row.
    Prepared,
    /// INSERT with a list of VALUES for many rows.
    Values,
    /// INSERT of arrays, one a column, for many rows (PostgreSQL).
    Unnest,
    /// COPY FROM STDIN in the format text (PostgreSQL).
    CopyText,
    /// COPY FROM STDIN in the format binary (PostgreSQL).
    CopyBinary,
    /// LOAD DATA LOCAL INFILE of bytes in memory (MySQL, MariaDB).
    LoadData,
    /// INSERT BULK of the protocol (SQL Server).
    InsertBulk,
}

impl Method {
    /// All methods.
    pub const ALL: [Method; 9] = [
        Method::InsertAutocommit,
        Method::Insert,
        Method::Prepared,
        Method::Values,
        Method::Unnest,
        Method::CopyText,
        Method::CopyBinary,
        Method::LoadData,
        Method::InsertBulk,
    ];

    /// Name, as `--method` has it.
    pub fn name(self) -> &'static str {
        self.about().0
    }

    /// Name, and what it does.
    pub fn about(self) -> (&'static str, &'static str) {
        match self {
            Method::InsertAutocommit => {
                ("insert-autocommit", "One INSERT a row, each a transaction")
            }
            Method::Insert => ("insert", "One INSERT a row, in one transaction"),
            Method::Prepared => ("prepared", "One INSERT a row, prepared once"),
            Method::Values => ("values", "INSERT with VALUES for many rows"),
            Method::Unnest => ("unnest", "INSERT of an array a column (PostgreSQL)"),
            Method::CopyText => ("copy-text", "COPY in the format text (PostgreSQL)"),
            Method::CopyBinary => ("copy-binary", "COPY in the format binary (PostgreSQL)"),
            Method::LoadData => ("load-data", "LOAD DATA LOCAL INFILE from memory (MySQL)"),
            Method::InsertBulk => ("insert-bulk", "INSERT BULK of the protocol (SQL Server)"),
        }
    }

    /// The method of a name.
    pub fn of_name(name: &str) -> Option<Self> {
        Method::ALL.into_iter().find(|method| method.name() == name)
    }

    /// Whether a statement has some rows of a chunk, as many as a batch has.
    pub fn has_batches(self) -> bool {
        matches!(self, Method::Values | Method::Unnest)
    }
}

/// What holds for the rows of a load that ends early.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Guarantee {
    /// All rows or none.
    Atomic,
    /// Chunks stay, each with a line in the journal: the same load goes on behind them.
    Resumable,
}

/// How a load goes into a database; what is `None` is chosen.
#[derive(Debug, Clone)]
pub struct DatabaseOptions {
    /// How rows are sent.
    pub method: Option<Method>,
    /// Connections over which rows are sent.
    pub connections: Option<usize>,
    /// Rows of a statement, of methods that have batches.
    pub batch_rows: Option<usize>,
    /// What is known of the server, in place of what is shipped and a probe.
    pub tuning: Option<Tuning>,
    /// What holds if the load is killed.
    pub guarantee: Guarantee,
    /// Whether a resumable load that is done is loaded once more.
    pub again: bool,
    /// How long to try again when a server is away, without getting on.
    pub patience: Duration,
    /// Whether indexes and constraints of a table without rows are built after its rows: a row that breaks one fails the
    /// load, and is no reject.
    pub rebuild_indexes: bool,
}

impl Default for DatabaseOptions {
    fn default() -> Self {
        DatabaseOptions {
            method: None,
            connections: None,
            batch_rows: None,
            tuning: None,
            guarantee: Guarantee::Atomic,
            again: false,
            patience: Duration::from_secs(120),
            rebuild_indexes: false,
        }
    }
}
