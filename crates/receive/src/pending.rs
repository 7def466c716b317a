//! A load that is ready to be published, and waits until its client has told the records that are left out for their keys.
//!
//! ```text
//!   FINISH     rows are put in order and compared with the table
//!              some are left out, and their records are to be rejects:   CONFLICTS -> the client reads its inputs again
//!   SETTLE     published, if the table leaves the same rows out          else CONFLICTS once more
//! ```
//!
//! Nothing of this is in the journal: who comes back after a crash says FINISH again. Shares of a load wait in the same way when all are
//! complete, for the client of the last one, or for one that comes again (HELLO).

use coload_link::Message;
use coload_store::{ConflictingRow, MeetsKey, ReadyLoad};
use coload_threads::lock;
use coload_types::{Error, Result};
use coload_wire::{CONFLICTS, Conflicts, Done, RowIs};

use crate::active::Active;
use crate::loads::PendingShares;

/// A load that is ready to be published.
#[derive(Debug)]
pub struct Pending {
    /// Its rows in order.
    pub ready: ReadyLoad,
    /// Records that its client had set aside before.
    pub sent: u64,
    /// What the client is told in the end.
    pub done: Done,
}

impl Pending {
    /// Looks which rows are left out in the newest version, and are to be rejects.
    ///
    /// # Errors
    /// Those of [`ReadyLoad::find_rejects`].
    pub fn look(mut self) -> Result<(Self, Vec<ConflictingRow>)> {
        let rows = self.ready.find_rejects()?;
        self.done.rejects = self.sent + rows.len() as u64;
        self.ready.set_rejects(self.done.rejects);
        Ok((self, rows))
    }
}

/// What is ready to be published, and waits for a client.
#[derive(Debug)]
pub enum Waits {
    /// A load.
    Load(Box<Pending>),
    /// All shares of a load, whose last one the client did.
    Shares(Box<PendingShares>),
}

/// What a client is asked of rows that are left out, of so many.
pub(crate) fn ask_for(rows: &[ConflictingRow], of: u64) -> Message {
    let mut conflicts = Conflicts::new(of);
    for ConflictingRow { number, meets } in rows {
        conflicts.push(
            *number,
            match meets {
                MeetsKey::InTable => RowIs::InTable,
                MeetsKey::Earlier => RowIs::Earlier,
            },
        );
    }
    Message::new(CONFLICTS, conflicts.encode())
}

impl Active {
    /// Keeps a load until its client has told these rows; what the client is asked.
    pub(crate) fn wait_for_client(&self, pending: Pending, rows: &[ConflictingRow]) -> Message {
        let question = ask_for(rows, pending.done.rows);
        *lock(&self.pending) = Some(Waits::Load(Box::new(pending)));
        question
    }

    /// What waits for the client of an attempt.
    ///
    /// # Errors
    /// `Corrupt` when none does, `Refused` when it is another attempt's.
    pub(crate) fn take_pending(&self, attempt: u64) -> Result<Waits> {
        self.check_attempt(attempt)?;
        let pending = lock(&self.pending).take();
        pending.ok_or_else(|| Error::Corrupt("a load that is settled and not finished".into()))
    }
}
