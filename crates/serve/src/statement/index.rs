//! CREATE INDEX, DROP INDEX and UNIQUE: columns that rows are found by, and whose values come once.
//!
//! Need the role admin on the table.

use coload_ddl::{Index, IndexKind};
use coload_store::{OnExisting, OnMissing, Store};
use coload_types::{Column, Error, Result, same_name};
use datafusion::sql::sqlparser::ast::{
    ColumnOption, CreateIndex, CreateTable, Expr, Ident, IndexColumn, IndexType, KeyOrIndexDisplay,
    NullsDistinctOption, ObjectName, OrderByOptions, TableConstraint, UniqueConstraint,
};

use super::columns::table_name;
use super::{done, unsupported};
use crate::Answer;
use crate::names::missing_table;
use crate::rights::{Rights, Role};
use crate::types::check_name;

/// Runs a CREATE INDEX.
///
/// # Errors
/// `Invalid` for what no index can be, or when a key of a UNIQUE index comes twice; `Refused` without the right.
pub(super) fn create(store: &Store, rights: &Rights, statement: &CreateIndex) -> Result<Answer> {
    let CreateIndex {
        name,
        table_name: table,
        using,
        columns,
        unique,
        concurrently: _,
        if_not_exists,
        include,
        nulls_distinct,
        with,
        predicate,
        index_options,
        alter_options,
    } = statement;
    let refused = [
        (!matches!(using, None | Some(IndexType::BTree)), "USING anything but BTREE"),
        (!include.is_empty(), "INCLUDE"),
        (*nulls_distinct == Some(false), "NULLS NOT DISTINCT"),
        (!with.is_empty() || !index_options.is_empty() || !alter_options.is_empty(), "options"),
        (predicate.is_some(), "WHERE"),
    ];
    if let Some((_, what)) = refused.iter().find(|(is, _)| *is) {
        return Err(unsupported(&format!("CREATE INDEX with {what}"), CREATE_INSTEAD));
    }
    let table = table_name(table)?;
    rights.require(Role::Admin, &table)?;
    let snapshot = store.snapshot()?;
    let Some(entry) = snapshot.table(&table) else {
        return Err(missing_table(&snapshot, rights, &table));
    };
    let kind = if *unique { IndexKind::Unique } else { IndexKind::Plain };
    let name = match name {
        Some(name) => index_name(name)?,
        None => return Err(unsupported("CREATE INDEX without a name", CREATE_INSTEAD)),
    };
    check_name(&name)?;
    let index = Index::of_names(name, kind, (&column_names(columns)?, entry.schema.columns()))?;
    let on_existing = if *if_not_exists { OnExisting::Keep } else { OnExisting::Fail };
    store.create_index(&table, &index, on_existing)?;
    Ok(done())
}

const CREATE_INSTEAD: &str = "write CREATE [UNIQUE] INDEX name ON table (column, ..)";

/// Runs a DROP INDEX.
///
/// # Errors
/// `Invalid` when there is no such index, `Refused` without the right.
pub(super) fn drop(
    store: &Store,
    rights: &Rights,
    names: &[ObjectName],
    on_missing: OnMissing,
) -> Result<()> {
    for name in names {
        let name = index_name(name)?;
        let snapshot = store.snapshot()?;
        let has = |index: &Index| same_name(&index.name, &name);
        let owner = snapshot.tables().iter().find(|table| table.schema.indexes().iter().any(has));
        // Of a table that the caller may not see an index does not exist.
        match owner.filter(|table| rights.may_read(&table.name)) {
            Some(table) => rights.require(Role::Admin, &table.name)?,
            None if on_missing == OnMissing::Ignore => continue,
            None => return Err(Error::Invalid(format!("index {name} does not exist"))),
        }
        store.drop_index(&name, on_missing)?;
    }
    Ok(())
}

/// The index of an ALTER TABLE .. ADD UNIQUE.
///
/// # Errors
/// `Invalid` for any other constraint.
pub(super) fn added(constraint: &TableConstraint, columns: &[Column]) -> Result<Index> {
    let TableConstraint::Unique(unique) = constraint else {
        return Err(unsupported(
            &format!("ALTER TABLE .. ADD {constraint}"),
            "there is ADD [CONSTRAINT name] UNIQUE (column, ..)",
        ));
    };
    of_constraint(unique, columns)
}

/// The indexes of a CREATE TABLE: what UNIQUE is said of.
///
/// # Errors
/// `Invalid` for what no index can be.
pub(super) fn of_table(table: &CreateTable, columns: &[Column]) -> Result<Vec<Index>> {
    let mut indexes = Vec::new();
    for definition in &table.columns {
        for option in &definition.options {
            if let ColumnOption::Unique(unique) = &option.option {
                check_plain(unique)?;
                let name = option.name.as_ref().or(unique.name.as_ref());
                let names = [definition.name.value.as_str()];
                indexes.push(named(name, (&names, columns))?);
            }
        }
    }
    for constraint in &table.constraints {
        if let TableConstraint::Unique(unique) = constraint {
            indexes.push(of_constraint(unique, columns)?);
        }
    }
    Ok(indexes)
}

fn of_constraint(unique: &UniqueConstraint, columns: &[Column]) -> Result<Index> {
    check_plain(unique)?;
    let name = unique.name.as_ref().or(unique.index_name.as_ref());
    named(name, (&column_names(&unique.columns)?, columns))
}

fn named<S: AsRef<str>>(name: Option<&Ident>, of: (&[S], &[Column])) -> Result<Index> {
    let name = name.map_or("", |name| &name.value);
    if !name.is_empty() {
        check_name(name)?;
    }
    Index::of_names(name, IndexKind::Unique, of)
}

/// Refuses what UNIQUE cannot say here. Every field is named, so that none is dropped silently.
fn check_plain(unique: &UniqueConstraint) -> Result<()> {
    let UniqueConstraint {
        name: _,
        index_name: _,
        index_type_display,
        index_type,
        columns: _,
        index_options,
        characteristics,
        nulls_distinct,
    } = unique;
    let refused = [
        (!matches!(index_type_display, KeyOrIndexDisplay::None | KeyOrIndexDisplay::Key), "INDEX"),
        (!matches!(index_type, None | Some(IndexType::BTree)), "USING anything but BTREE"),
        (!index_options.is_empty() || characteristics.is_some(), "options"),
        (*nulls_distinct == NullsDistinctOption::NotDistinct, "NULLS NOT DISTINCT"),
    ];
    match refused.iter().find(|(is, _)| *is) {
        None => Ok(()),
        Some((_, what)) => {
            Err(unsupported(&format!("UNIQUE with {what}"), "write UNIQUE (column, ..)"))
        }
    }
}

/// The names of columns; values are in their order, and expressions have none.
fn column_names(columns: &[IndexColumn]) -> Result<Vec<String>> {
    let name = |column: &IndexColumn| {
        let OrderByOptions { asc, nulls_first } = &column.column.options;
        let is_plain = column.operator_class.is_none()
            && *asc != Some(false)
            && nulls_first.is_none()
            && column.column.with_fill.is_none();
        match &column.column.expr {
            Expr::Identifier(name) if is_plain => Ok(name.value.clone()),
            _ => Err(unsupported(
                "an index of anything but columns in the order of their values",
                "name the columns only",
            )),
        }
    };
    columns.iter().map(name).collect()
}

/// The name of an index, which has no schema of its own.
fn index_name(name: &ObjectName) -> Result<String> {
    table_name(name)
}
