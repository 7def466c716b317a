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

use std::time::Duration;

use bytes::Bytes;
use coload_types::{Error, Result};

use super::held::{Held, HeldBytes};
use super::kept::{Handle, Kept, KeptLimits, WhenFull, new_handle};
use crate::rights::Rights;
use crate::statement::Planned;

/// Most plans that wait.
const PLANS_MAX: usize = 256;
/// Of these, those of one user; an older one makes room, and is made again should it be fetched.
const PLANS_OF_USER_MAX: usize = 64;
/// Bytes that a plan is taken to hold beside its text, for each byte of it.
const PLAN_BYTES_PER_BYTE: usize = 16;
/// How long a plan waits; it holds a version of the store.
const PLAN_IDLE_MAX: Duration = Duration::from_secs(30);
const HANDLE_BYTES: usize = size_of::<Handle>();
const QUERY: u8 = 0;
const WRITTEN: u8 = 1;

/// What a ticket says.
#[derive(Debug)]
pub(crate) enum Ticket {
    /// A query: its plan if that is still there, and its text.
    Query(Option<Box<Planned>>, String),
    /// A query that was cancelled before it ran.
    Cancelled,
    /// What was done: rows written, if it counts them.
    Written(Option<u64>),
}

/// What is kept for a ticket.
#[derive(Debug)]
enum Waiting {
    Plan(Box<Planned>, #[allow(dead_code)] HeldBytes),
    Cancelled,
}

/// The ticket of a statement that is done.
pub(crate) fn written(rows: Option<u64>) -> Bytes {
    let mut ticket = vec![WRITTEN];
    ticket.extend(rows.map(u64::to_le_bytes).into_iter().flatten());
    ticket.into()
}

/// Whether a ticket is that of a statement that is done.
pub(crate) fn is_written(ticket: &[u8]) -> bool {
    ticket.first() == Some(&WRITTEN)
}

/// Handle and text in the ticket of a query.
fn query(ticket: &[u8]) -> Result<(&[u8], &str)> {
    let parts = ticket.strip_prefix(&[QUERY]).and_then(|t| t.split_at_checked(HANDLE_BYTES));
    let parts = parts.and_then(|(handle, text)| Some((handle, std::str::from_utf8(text).ok()?)));
    parts.ok_or_else(no_ticket)
}

fn no_ticket() -> Error {
    Error::Invalid("not a ticket of a statement".into())
}

/// Plans whose answers were not asked for yet.
#[derive(Debug)]
pub(crate) struct Plans {
    kept: Kept<Waiting>,
    held: Held,
}

impl Plans {
    pub fn new(held: Held) -> Self {
        let limits = KeptLimits {
            total: PLANS_MAX,
            per_user: PLANS_OF_USER_MAX,
            idle_max: PLAN_IDLE_MAX,
            full: WhenFull::DropOldest,
        };
        Plans { kept: Kept::new(limits), held }
    }

    /// Keeps the plan of a query and makes its ticket.
    pub fn put(&self, rights: &Rights, text: &str, planned: Planned) -> Result<Bytes> {
        let mut held = self.held.of(rights.user());
        // A plan that finds no room has a handle too, by which the query can be cancelled once it runs.
        let handle = match held.add(text.len().saturating_mul(PLAN_BYTES_PER_BYTE)) {
            Ok(()) => {
                let waiting = Waiting::Plan(Box::new(planned), held);
                self.kept.put(rights.user(), waiting)?.or_else(|_| new_handle())?
            }
            Err(_) => new_handle()?,
        };
        Ok([&[QUERY], &handle[..], text.as_bytes()].concat().into())
    }

    /// Reads a ticket, and takes its plan if it is there and the caller's.
    ///
    /// # Errors
    /// `Invalid` when it is none.
    pub fn take(&self, rights: &Rights, ticket: &[u8]) -> Result<Ticket> {
        match ticket.split_first() {
            Some((&WRITTEN, [])) => Ok(Ticket::Written(None)),
            Some((&WRITTEN, rows)) => {
                let rows = rows.try_into().map_err(|_| no_ticket())?;
                Ok(Ticket::Written(Some(u64::from_le_bytes(rows))))
            }
            Some((&QUERY, _)) => {
                let (handle, text) = query(ticket)?;
                let is_plan = |waiting: &Waiting| matches!(waiting, Waiting::Plan(..));
                match self.kept.take(rights.user(), handle, is_plan) {
                    Some(Waiting::Plan(planned, _)) => {
                        Ok(Ticket::Query(Some(planned), text.to_owned()))
                    }
                    _ if self.of(rights, handle, |_| ()).is_some() => Ok(Ticket::Cancelled),
                    _ => Ok(Ticket::Query(None, text.to_owned())),
                }
            }
            _ => Err(no_ticket()),
        }
    }

    /// Drops the plan of a ticket, if it waits, and refuses the ticket for as long as it would have.
    ///
    /// # Errors
    /// `Invalid` when it is not the ticket of a query.
    pub fn cancel(&self, rights: &Rights, ticket: &[u8]) -> Result<bool> {
        let (handle, _) = query(ticket)?;
        let cancelled = self.of(rights, handle, |waiting| *waiting = Waiting::Cancelled);
        Ok(cancelled.is_some())
    }

    /// What waits for a ticket of the caller.
    fn of<R>(
        &self,
        rights: &Rights,
        handle: &[u8],
        work: impl FnOnce(&mut Waiting) -> R,
    ) -> Option<R> {
        self.kept.with_of(rights.user(), handle, work)
    }

    /// Drops plans that nobody came for.
    pub fn sweep(&self) {
        self.kept.sweep();
    }
}
