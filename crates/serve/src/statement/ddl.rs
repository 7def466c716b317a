//! CREATE, DROP and TRUNCATE TABLE: changes of the catalog only.
//!
//! Making a table that is not there needs the role load on its name, everything else the role admin.

use coload_format::{Error, Result};
use coload_store::{OnExisting, OnMissing, Store};
use datafusion::sql::sqlparser::ast::{CreateTable, ObjectType, Statement, Truncate};

use super::columns::{schema_of, table_name};
use super::{done, unsupported};
use crate::Answer;
use crate::rights::{Rights, Role};

/// Runs one of them.
pub(crate) fn run(store: &Store, rights: &Rights, statement: &Statement) -> Result<Answer> {
    match statement {
        Statement::CreateTable(table) => create_table(store, rights, table),
        Statement::Drop { .. } => drop(store, rights, statement),
        Statement::Truncate(truncate) => truncate_tables(store, rights, truncate),
        _ => Err(Error::Invalid("not a change of the catalog".into())),
    }
}

/// Asks for the right to make a table.
pub(crate) fn require_create(rights: &Rights, on_existing: OnExisting, name: &str) -> Result<()> {
    let role = if on_existing == OnExisting::Replace { Role::Admin } else { Role::Load };
    rights.require(role, name)
}

/// What an existing table of the name means to a CREATE TABLE.
pub(crate) fn on_existing(table: &CreateTable) -> Result<OnExisting> {
    match (table.or_replace, table.if_not_exists) {
        (true, true) => {
            Err(Error::Invalid("OR REPLACE and IF NOT EXISTS exclude each other".into()))
        }
        (true, false) => Ok(OnExisting::Replace),
        (false, true) => Ok(OnExisting::Keep),
        (false, false) => Ok(OnExisting::Fail),
    }
}

/// Refuses kinds of tables that there are not.
pub(crate) fn check_kind(table: &CreateTable) -> Result<()> {
    let kinds = [
        (table.temporary, "CREATE TEMPORARY TABLE"),
        (table.external, "CREATE EXTERNAL TABLE"),
        (table.like.is_some(), "CREATE TABLE .. LIKE"),
        (table.clone.is_some(), "CREATE TABLE .. CLONE"),
    ];
    match kinds.iter().find(|(is, _)| *is) {
        Some((_, kind)) => Err(unsupported(kind, "use CREATE TABLE, or CREATE TABLE .. AS SELECT")),
        None => Ok(()),
    }
}

/// CREATE TABLE with columns.
fn create_table(store: &Store, rights: &Rights, table: &CreateTable) -> Result<Answer> {
    check_kind(table)?;
    let (name, on_existing) = (table_name(&table.name)?, on_existing(table)?);
    require_create(rights, on_existing, &name)?;
    store.create_table(&name, &schema_of(table)?, on_existing)?;
    Ok(done())
}

/// DROP TABLE.
fn drop(store: &Store, rights: &Rights, statement: &Statement) -> Result<Answer> {
    let Statement::Drop { object_type, if_exists, names, .. } = statement else {
        return Err(unsupported("DROP", "use DROP TABLE"));
    };
    if *object_type != ObjectType::Table {
        return Err(unsupported(&format!("DROP {object_type}"), "there are tables only"));
    }
    let on_missing = if *if_exists { OnMissing::Ignore } else { OnMissing::Fail };
    let names: Vec<String> = names.iter().map(table_name).collect::<Result<_>>()?;
    names.iter().try_for_each(|name| rights.require(Role::Admin, name))?;
    for name in names {
        store.drop_table(&name, on_missing)?;
    }
    Ok(done())
}

/// TRUNCATE TABLE.
fn truncate_tables(store: &Store, rights: &Rights, truncate: &Truncate) -> Result<Answer> {
    if truncate.partitions.is_some() {
        return Err(unsupported("TRUNCATE of partitions", "tables have none"));
    }
    for target in &truncate.table_names {
        let name = table_name(&target.name)?;
        rights.require(Role::Admin, &name)?;
        if truncate.if_exists && store.snapshot()?.table(&name).is_none() {
            continue;
        }
        store.truncate_table(&name)?;
    }
    Ok(done())
}
