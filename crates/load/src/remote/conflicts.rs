//! Tells the records of rows that a server leaves out for their keys.
//!
//! The server knows these rows by their numbers in the order of the input. The inputs are read again, as for a store of this machine
//! ([`crate::target::Rejecting`]), and the load has their account then. Rows of chunks that an earlier attempt had sent, or that went as text,
//! were not counted here, so that such inputs are read once more to count them.

use coload_ddl::Key;
use coload_store::{ConflictingRow, MeetsKey};
use coload_types::{Error, Result};
use coload_wire::{Conflicts, RowIs};

use super::{RemoteOptions, session};
use crate::account::Account;
use crate::legs::read_again;
use crate::load::Load;
use crate::request::LoadRequest;
use crate::share_rejects::tell_of_load;
use crate::target::Rejecting;

/// Whether the rows of each chunk were counted when it was parsed.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum ChunksAre {
    /// All were.
    Counted,
    /// Some were not.
    Unknown,
}

/// The account of a load of which some rows are rejects, `before` being that without these.
///
/// # Errors
/// Those of a load; `Input` with the place of the first record that is over the limit of rejects.
pub fn tell(
    load: Load<'_>,
    remote: &RemoteOptions,
    conflicts: &Conflicts,
    (before, chunks): (&Account, ChunksAre),
) -> Result<Account> {
    let rows = rows_of(conflicts);
    let (schema, key) = (&load.request.schema, key_of(load.request, remote)?);
    let counted;
    let chunk_rows = match chunks {
        ChunksAre::Counted => before.chunk_rows(),
        ChunksAre::Unknown => {
            // The pass that tells writes the rejects.
            let request = LoadRequest { rejects_file: None, ..load.request.clone() };
            let nothing = Rejecting::new(&[], &[], (schema, &key));
            counted = read_again(load.with_request(&request), &nothing)?.account;
            counted.chunk_rows()
        }
    };
    let target = Rejecting::new(&rows, chunk_rows, (schema, &key));
    let told = read_again(load, &target)?.account;
    let count = |account: &Account| account.files().iter().map(|file| file.rows).sum::<u64>();
    if count(&told) + rows.len() as u64 != count(before) {
        return Err(Error::Corrupt(
            "inputs have other records when they are read again; nothing was loaded".into(),
        ));
    }
    Ok(told)
}

/// The account of all of the load of a share, of which some rows are rejects.
///
/// # Errors
/// Those of [`tell_of_load`].
pub fn tell_shares(
    load: Load<'_>,
    remote: &RemoteOptions,
    conflicts: &Conflicts,
) -> Result<Account> {
    let key = key_of(load.request, remote)?;
    tell_of_load(load, (&rows_of(conflicts), &key), conflicts.of())
}

fn rows_of(conflicts: &Conflicts) -> Vec<ConflictingRow> {
    let row = |(number, is)| ConflictingRow {
        number,
        meets: match is {
            RowIs::InTable => MeetsKey::InTable,
            RowIs::Earlier => MeetsKey::Earlier,
        },
    };
    conflicts.rows().map(row).collect()
}

/// The key of the table.
fn key_of(request: &LoadRequest, remote: &RemoteOptions) -> Result<Key> {
    if let Some(key) = request.schema.key() {
        return Ok(key.clone());
    }
    let there = session::table_schema(remote, &request.table)?;
    let key = there.as_ref().and_then(|schema| schema.key()).cloned();
    key.ok_or_else(|| Error::Corrupt(format!("keys of table {}, which has none", request.table)))
}
