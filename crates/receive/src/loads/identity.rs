//! Which load it is, and whether its table holds it already.
//!
//! A load is known by a **key**, the hash of its description; its journal is named after it, so that two attempts find
//! each other. What is published gets an id of its own, which names its segments and is never used again: the same load
//! may be published again once its table no longer holds it (TRUNCATE, DROP, `--replace`).
//!
//! Source of the rule: docs/decisions/0024-what-a-table-holds.md.

use coload_link::Message;
use coload_store::{LoadId, LoadJournal, LoadTarget, RememberedLoad, SharesAre, Snapshot};
use coload_types::display::display_value;
use coload_types::{DataType, Result, Value};
use coload_wire::{Again, ColumnsAre, DONE, Done, LoadDescription, SharesDone, WIDENED, Widen};

use super::Inner;
use crate::active::Active;
use crate::legs::Legs;

/// Which load it is.
pub(super) enum Identity {
    /// One that its table does not hold.
    New(LoadId),
    /// It does: what its client is told.
    Published(Message),
}

fn already(snapshot: &Snapshot, description: &LoadDescription, load: &RememberedLoad) -> Message {
    let table = &description.table;
    let shares = description.share.as_ref();
    let done = Done {
        shares: shares.map(|share| SharesDone::new(share.of, &SharesAre::Known(load.clone()))),
        id: load.id.as_u128(),
        already: true,
        version: snapshot.version(),
        rows: load.rows,
        rejects: load.rejects,
        note: describe(snapshot, table, load),
        ..Done::default()
    };
    Message::new(DONE, done.encode())
}

/// When a load was published, and what its table holds now.
fn describe(snapshot: &Snapshot, table: &str, load: &RememberedLoad) -> String {
    let time = display_value(&Value::Int(load.finished_us), DataType::Timestamp);
    let time = time.split('.').next().unwrap_or_default();
    let version = match load.version {
        0 => String::new(),
        version => format!(" as version {version}"),
    };
    let holds = snapshot.table(table).map_or(0, |table| table.rows());
    format!(
        "it was published at {time} UTC{version} with {} rows, and table {table} still holds them ({holds} rows at \
         version {})",
        load.rows,
        snapshot.version()
    )
}

/// What the load of a journal is known by when it is published: that of its last types.
pub(super) fn key_of(description: &LoadDescription, journal: &LoadJournal) -> Result<LoadId> {
    if let Some(share) = &description.share {
        return Ok(share.of.load);
    }
    let legs = Legs::open(description, journal)?;
    Ok(legs.published_as.unwrap_or_else(|| journal.id()))
}

impl Inner {
    /// The key of a load, if its table does not hold it; with inferred columns it may with the types of the table.
    pub(super) fn id_of(&self, description: &LoadDescription) -> Result<Identity> {
        let snapshot = self.store.snapshot()?;
        let name = &description.table;
        if let Some(share) = &description.share {
            return Ok(match snapshot.published(name, share.of.load)? {
                Some(load) => Identity::Published(already(&snapshot, description, &load)),
                None => Identity::New(description.id(0)),
            });
        }
        let wider = match (description.columns_are, snapshot.table(name)) {
            (ColumnsAre::Inferred, Some(table)) => Some(description.with_types(&table.schema)),
            _ => None,
        };
        let mut nth = 0;
        loop {
            let key = description.id(nth);
            let mut found = snapshot.published(name, key)?;
            if let (None, Some(wider)) = (&found, &wider) {
                found = snapshot.published(name, wider.id(nth))?;
            }
            match (found, description.again) {
                (None, _) => return Ok(Identity::New(key)),
                (Some(load), Again::No) => {
                    return Ok(Identity::Published(already(&snapshot, description, &load)));
                }
                (Some(_), Again::Yes) => nth += 1,
            }
        }
    }

    /// What the client of a journal is told if its load was published before the journal was locked: by an attempt that
    /// ended without removing it, or by one that was publishing while this one looked. Nobody can publish it from now on.
    pub(super) fn published_meanwhile(
        &self,
        description: &LoadDescription,
        journal: &LoadJournal,
    ) -> Result<Option<Message>> {
        let snapshot = self.store.snapshot()?;
        let table = &description.table;
        let load = snapshot.published(table, key_of(description, journal)?)?;
        Ok(load.map(|load| already(&snapshot, description, &load)))
    }

    /// Goes on with wider types; or says that the table holds the load of these.
    pub fn widen(&self, load: &Active, attempt: u64, widen: Widen) -> Result<Message> {
        // Columns come without the key and the rules of the table, which stay.
        let schema = widen.schema.with_rules_of(&load.description.schema)?;
        let widen = Widen { schema, ..widen };
        match self.id_of(&load.description.with_types(&widen.schema))? {
            Identity::Published(done) => Ok(done),
            Identity::New(id) => {
                load.widen(attempt, widen, id)?;
                Ok(Message::new(WIDENED, Vec::new()))
            }
        }
    }
}

/// Where a load goes.
pub(super) fn target_of(description: &LoadDescription) -> LoadTarget {
    LoadTarget {
        name: description.table.clone(),
        schema: description.schema.clone(),
        mode: description.mode,
    }
}
