//! Indexes come and go: changes of the catalog only. Trees follow where the version is published ([`super::complete`]).

use coload_ddl::{Index, Schema};
use coload_types::{Error, Result, same_name};

use crate::change::{OnExisting, OnMissing, Outcome, missing_table, position};
use crate::manifest::{Manifest, TableEntry};

/// Adds an index to a table.
///
/// # Errors
/// `Invalid` when the table is not there, or an index has the name and must not.
pub(crate) fn create_index(
    manifest: &mut Manifest,
    table: &str,
    index: &Index,
    on_existing: OnExisting,
) -> Result<Outcome> {
    let Some(at) = position(manifest, table) else { return Err(missing_table(manifest, table)) };
    if !index.name.is_empty() && owner_of(manifest, &index.name).is_some() {
        return match on_existing {
            OnExisting::Keep => Ok(Outcome::Unchanged),
            OnExisting::Fail | OnExisting::Replace => Err(taken(&index.name)),
        };
    }
    let entry = &manifest.tables[at];
    let mut indexes = entry.schema.indexes().to_vec();
    indexes.push(index.clone());
    let schema = entry.schema.clone().with_indexes(indexes)?;
    let schema = with_names(manifest, &manifest.tables[at].name, schema)?;
    manifest.tables[at].schema = schema;
    Ok(Outcome::Changed)
}

/// Takes an index away.
///
/// # Errors
/// `Invalid` when there is none and must be.
pub(crate) fn drop_index(
    manifest: &mut Manifest,
    name: &str,
    on_missing: OnMissing,
) -> Result<Outcome> {
    let has = |table: &TableEntry| table.schema.indexes().iter().any(|i| same_name(&i.name, name));
    let Some(at) = manifest.tables.iter().position(has) else {
        return match on_missing {
            OnMissing::Ignore => Ok(Outcome::Unchanged),
            OnMissing::Fail => Err(Error::Invalid(format!("index {name} does not exist"))),
        };
    };
    let entry = &mut manifest.tables[at];
    let left = entry.schema.indexes().iter().filter(|index| !same_name(&index.name, name));
    entry.schema = entry.schema.clone().with_indexes(left.cloned().collect())?;
    Ok(Outcome::Changed)
}

/// The schema of a table with names for the indexes that have none.
///
/// # Errors
/// `Invalid` when an index of another table has a name.
pub(crate) fn with_names(manifest: &Manifest, table: &str, schema: Schema) -> Result<Schema> {
    let mut indexes = schema.indexes().to_vec();
    let is_taken = |name: &str, own: &[Index]| {
        let other = owner_of(manifest, name).filter(|owner| !same_name(&owner.name, table));
        other.is_some() || own.iter().any(|index| same_name(&index.name, name))
    };
    for number in 0..indexes.len() {
        if !indexes[number].name.is_empty() {
            let name = &indexes[number].name;
            match owner_of(manifest, name).filter(|owner| !same_name(&owner.name, table)) {
                Some(_) => return Err(taken(name)),
                None => continue,
            }
        }
        let usual = indexes[number].usual_name(table, schema.columns());
        let more = (1..).map(|number: u32| format!("{usual}{number}"));
        let mut names = std::iter::once(usual.clone()).chain(more);
        if let Some(name) = names.find(|name| !is_taken(name, &indexes)) {
            indexes[number].name = name;
        }
    }
    schema.with_indexes(indexes)
}

/// The table that has an index.
fn owner_of<'a>(manifest: &'a Manifest, name: &str) -> Option<&'a TableEntry> {
    let has = |table: &&TableEntry| table.schema.indexes().iter().any(|i| same_name(&i.name, name));
    manifest.tables.iter().find(has)
}

fn taken(name: &str) -> Error {
    // Its table may be one that the caller may not see.
    Error::Invalid(format!("index {name} exists already"))
}
