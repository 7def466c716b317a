//! What a ticket of a statement holds.
//!
//! ```text
//!   0, handle of the plan (16 bytes), text    a query: fetching runs it
//!   1, rows written (8 bytes)                 a statement that wrote, and is done
//!   1                                         a statement that changed something else, and is done
//! ```
//!
//! Looking at a statement and fetching its answer are two calls. The plan of a query waits between them,
//! so that both see one version of the store; should it be gone, the text is planned again. A statement
//! that writes is done in the first call: some drivers do not fetch what they take for empty, and none
//! may do it twice.

use std::sync::Arc;
use std::time::Duration;

use bytes::Bytes;
use coload_format::{Error, Result};

use super::kept::{Handle, Kept};
use crate::rights::Rights;
use crate::statement::Planned;

/// Most plans that wait.
const PLANS_MAX: usize = 256;
/// How long a plan waits; it holds a version of the store.
const PLAN_IDLE_MAX: Duration = Duration::from_secs(30);
/// Stands in a ticket for a plan that was not kept.
const NO_PLAN: Handle = [0; 16];
const QUERY: u8 = 0;
const WRITTEN: u8 = 1;

/// What a ticket says.
#[derive(Debug)]
pub(crate) enum Ticket {
    /// A query: its plan if that is still there, and its text.
    Query(Option<Box<Planned>>, String),
    /// What was done: rows written, if it counts them.
    Written(Option<u64>),
}

/// The ticket of a statement that is done.
pub(crate) fn written(rows: Option<u64>) -> Bytes {
    let mut ticket = vec![WRITTEN];
    ticket.extend(rows.map(u64::to_le_bytes).into_iter().flatten());
    ticket.into()
}

/// Plans whose answers were not asked for yet.
#[derive(Debug)]
pub(crate) struct Plans {
    kept: Kept<(Arc<str>, Planned)>,
}

impl Plans {
    pub fn new() -> Self {
        Plans { kept: Kept::new(PLANS_MAX, PLAN_IDLE_MAX) }
    }

    /// Keeps the plan of a query and makes its ticket.
    pub fn put(&self, rights: &Rights, text: &str, planned: Planned) -> Result<Bytes> {
        let handle = self.kept.put((rights.user().into(), planned))?.unwrap_or(NO_PLAN);
        Ok([&[QUERY], &handle[..], text.as_bytes()].concat().into())
    }

    /// Reads a ticket, and takes its plan if it is there and the caller's.
    ///
    /// # Errors
    /// `Invalid` when it is none.
    pub fn take(&self, rights: &Rights, ticket: &[u8]) -> Result<Ticket> {
        let no_ticket = || Error::Invalid("not a ticket of a statement".into());
        match ticket.split_first() {
            Some((&WRITTEN, [])) => Ok(Ticket::Written(None)),
            Some((&WRITTEN, rows)) => {
                let rows = rows.try_into().map_err(|_| no_ticket())?;
                Ok(Ticket::Written(Some(u64::from_le_bytes(rows))))
            }
            Some((&QUERY, rest)) => {
                let (handle, text) = rest.split_at_checked(NO_PLAN.len()).ok_or_else(no_ticket)?;
                let text = std::str::from_utf8(text).map_err(|_| no_ticket())?;
                let planned = self.kept.take(handle, |(user, _)| **user == *rights.user());
                let planned = planned.map(|(_, planned)| Box::new(planned));
                Ok(Ticket::Query(planned, text.to_owned()))
            }
            _ => Err(no_ticket()),
        }
    }

    /// Drops plans that nobody came for.
    pub fn sweep(&self) {
        self.kept.sweep();
    }
}
