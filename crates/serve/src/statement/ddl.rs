//! CREATE, DROP and TRUNCATE TABLE: changes of the catalog only.

use coload_format::{Error, Result};
use coload_store::{OnExisting, OnMissing, Store};
use datafusion::sql::sqlparser::ast::{CreateTable, ObjectType, Statement, Truncate};

use super::columns::{schema_of, table_name};
use super::{done, unsupported};
use crate::Answer;

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
pub(crate) fn create_table(store: &Store, table: &CreateTable) -> Result<Answer> {
    check_kind(table)?;
    store.create_table(&table_name(&table.name)?, &schema_of(table)?, on_existing(table)?)?;
    Ok(done())
}

/// DROP TABLE.
pub(crate) fn drop(store: &Store, statement: &Statement) -> Result<Answer> {
    let Statement::Drop { object_type, if_exists, names, .. } = statement else {
        return Err(unsupported("DROP", "use DROP TABLE"));
    };
    if *object_type != ObjectType::Table {
        return Err(unsupported(&format!("DROP {object_type}"), "there are tables only"));
    }
    let on_missing = if *if_exists { OnMissing::Ignore } else { OnMissing::Fail };
    for name in names {
        store.drop_table(&table_name(name)?, on_missing)?;
    }
    Ok(done())
}

/// TRUNCATE TABLE.
pub(crate) fn truncate(store: &Store, truncate: &Truncate) -> Result<Answer> {
    if truncate.partitions.is_some() {
        return Err(unsupported("TRUNCATE of partitions", "tables have none"));
    }
    for target in &truncate.table_names {
        let name = table_name(&target.name)?;
        if truncate.if_exists && store.snapshot()?.table(&name).is_none() {
            continue;
        }
        store.truncate_table(&name)?;
    }
    Ok(done())
}
