//! What a server lets its clients have, each with a default. `docs/threats.md` says what each is for.

use std::time::Duration;

/// Limits of a server.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct ServeLimits {
    /// Connections of clients that have shown who they are.
    pub connections: usize,
    /// Of these, those of one peer; half of all if `None`.
    pub connections_per_peer: Option<usize>,
    /// How long a connection may take until a call with credentials.
    pub login_time: Duration,
    /// A connection without a call for so long is closed.
    pub idle_time: Duration,
    /// Bytes of a message that is taken.
    pub message_bytes: usize,
    /// Statements at once; more wait.
    pub statements: usize,
    /// Of these, those of one user; a quarter of all if `None`.
    pub statements_per_user: Option<usize>,
    /// How long a statement waits for its turn.
    pub queue_time: Duration,
    /// A statement whose client neither reads nor sends for so long is ended.
    pub stall_time: Duration,
    /// How long a statement may run; `None` for as long as it takes.
    pub statement_time: Option<Duration>,
    /// Rows of an answer; `None` for any number.
    pub answer_rows: Option<u64>,
    /// Bytes of an answer; `None` for any number.
    pub answer_bytes: Option<u64>,
    /// Prepared statements of one user.
    pub prepared_per_user: usize,
    /// Tokens of one user; the oldest makes room for a new one.
    pub tokens_per_user: usize,
}

impl Default for ServeLimits {
    fn default() -> Self {
        ServeLimits {
            connections: 256,
            connections_per_peer: None,
            login_time: Duration::from_secs(10),
            idle_time: Duration::from_secs(600),
            message_bytes: super::MESSAGE_BYTES_DEFAULT,
            statements: 64,
            statements_per_user: None,
            queue_time: Duration::from_secs(60),
            stall_time: Duration::from_secs(60),
            statement_time: Some(Duration::from_secs(3600)),
            answer_rows: None,
            answer_bytes: None,
            prepared_per_user: 1_024,
            tokens_per_user: 256,
        }
    }
}

impl ServeLimits {
    /// Connections of one peer.
    pub(crate) fn of_peer(&self) -> usize {
        self.connections_per_peer.unwrap_or(self.connections.div_ceil(2))
    }

    /// Statements of one user. Whoever is the only user has all of them.
    pub(crate) fn of_user(&self, users: UserCount) -> usize {
        self.statements_per_user.unwrap_or(match users {
            UserCount::One => self.statements,
            UserCount::Several => self.statements.div_ceil(4),
        })
    }
}

/// How many users a server knows.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum UserCount {
    /// One, or nobody is asked.
    One,
    Several,
}
