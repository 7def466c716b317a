//! Which load it is, and whether it is published.

use coload_format::Result;
use coload_link::Message;
use coload_load::wire::{Again, ColumnsAre, DONE, Done, LoadDescription, WIDENED, Widen};
use coload_store::{LoadId, LoadRecord, Snapshot};

use super::Inner;
use crate::active::Active;
use crate::lock;

/// Which load it is.
pub(super) enum Identity {
    /// One that is not published.
    New(LoadId),
    /// It is: what its client is told.
    Published(Message),
}

fn already(snapshot: &Snapshot, record: &LoadRecord) -> Message {
    let done = Done {
        id: record.id.as_u128(),
        already: true,
        version: snapshot.version(),
        rows: record.rows,
        rejects: record.rejects,
        ..Done::default()
    };
    Message::new(DONE, done.encode())
}

/// The record of a load that is published.
pub(super) fn published<'a>(
    snapshot: &'a Snapshot,
    table: &str,
    id: LoadId,
) -> Option<&'a LoadRecord> {
    snapshot.table(table)?.loads.iter().find(|l| l.id == id)
}

impl Inner {
    /// The id of a load, if it is not published; with inferred columns it may be with the types of the table.
    pub(super) fn id_of(&self, description: &LoadDescription) -> Result<Identity> {
        let snapshot = self.store.snapshot()?;
        let table = snapshot.table(&description.table);
        let wider = match description.columns_are {
            ColumnsAre::Inferred => table.map(|table| description.with_types(&table.schema)),
            ColumnsAre::Given => None,
        };
        let mut nth = 0;
        loop {
            let id = description.id(nth);
            let found = |id| published(&snapshot, &description.table, id);
            let record = found(id).or_else(|| found(wider.as_ref()?.id(nth)));
            match (record, description.again) {
                (None, _) => return Ok(Identity::New(id)),
                (Some(record), Again::No) => {
                    return Ok(Identity::Published(already(&snapshot, record)));
                }
                (Some(_), Again::Yes) => nth += 1,
            }
        }
    }

    /// Ends a load that was published with wider types before its journal was removed.
    pub(super) fn ends_published(&self, load: &Active) -> Result<Option<Message>> {
        let snapshot = self.store.snapshot()?;
        let record = published(&snapshot, &load.description.table, load.published_as());
        let Some(record) = record else { return Ok(None) };
        if let Some(journal) = lock(&load.journal).take() {
            journal.remove()?;
        }
        Ok(Some(already(&snapshot, record)))
    }

    /// Goes on with wider types; or says that the load of these is published.
    pub fn widen(&self, load: &Active, attempt: u64, widen: Widen) -> Result<Message> {
        match self.id_of(&load.description.with_types(&widen.schema))? {
            Identity::Published(done) => Ok(done),
            Identity::New(id) => {
                load.widen(attempt, widen, id)?;
                Ok(Message::new(WIDENED, Vec::new()))
            }
        }
    }
}
