//! ALTER TABLE: other names and other columns for the rows that are there; no segment is rewritten.
//!
//! Needs the role admin on the table, and on the name that it gets.

use std::ops::ControlFlow;

use coload_ddl::Index;
use coload_store::{Alteration, OnExisting, OnMissing, Store, ViewEntry};
use coload_types::{Error, Result, same_name};
use datafusion::sql::sqlparser::ast::{
    AlterTable, AlterTableOperation, ColumnDef, ColumnOption, Expr, RenameTableNameKind,
    visit_relations,
};

use super::columns::{column, table_name};
use super::index;
use super::limits::StatementLimits;
use super::text::parse_statement;
use super::tree::check_depth;
use super::{done, unsupported};
use crate::Answer;
use crate::names::{find_table, fold, missing_table, quote};
use crate::rights::{Rights, Role};

/// Runs an ALTER TABLE.
///
/// # Errors
/// `Invalid` for what tables cannot do, or when a view reads what would go; `Refused` without the right.
pub(crate) fn run(
    store: &Store,
    rights: &Rights,
    alter: &AlterTable,
    limits: &StatementLimits,
) -> Result<Answer> {
    let AlterTable {
        name,
        if_exists,
        only,
        operations,
        location,
        on_cluster,
        table_type,
        end_token: _,
    } = alter;
    if *only || location.is_some() || on_cluster.is_some() || table_type.is_some() {
        return Err(unsupported("ALTER TABLE with options", INSTEAD));
    }
    let [operation] = &operations[..] else {
        return Err(unsupported(
            "ALTER TABLE with several changes",
            "write a statement for each: each is a version",
        ));
    };
    let name = table_name(name)?;
    rights.require(Role::Admin, &name)?;
    let snapshot = store.snapshot()?;
    let Some(index) = find_table(&snapshot, &name) else {
        return match if_exists {
            true => Ok(done()),
            false => Err(missing_table(&snapshot, rights, &name)),
        };
    };
    let schema = &snapshot.tables()[index].schema;
    let is_there = |column: &str| schema.position(column).is_some();
    let (alteration, is_done) = match operation {
        AlterTableOperation::RenameTable { table_name: new } => {
            let (RenameTableNameKind::As(new) | RenameTableNameKind::To(new)) = new;
            let new = table_name(new)?;
            rights.require(Role::Admin, &new)?;
            (Alteration::Rename(new), false)
        }
        AlterTableOperation::RenameColumn { old_column_name, new_column_name } => {
            let (from, to) = (old_column_name.value.clone(), new_column_name.value.clone());
            crate::types::check_name(&to)?;
            (Alteration::RenameColumn { from, to }, false)
        }
        AlterTableOperation::AddColumn {
            column_keyword: _,
            if_not_exists,
            column_def,
            column_position,
        } => {
            if column_position.is_some() {
                return Err(unsupported("ADD COLUMN with FIRST or AFTER", "a column is the last"));
            }
            check_added(column_def, limits)?;
            let added = column(column_def)?;
            let is_done = *if_not_exists && is_there(&added.name);
            (Alteration::AddColumn(added), is_done)
        }
        AlterTableOperation::DropColumn {
            has_column_keyword: _,
            column_names,
            if_exists,
            drop_behavior,
        } => {
            let [column] = &column_names[..] else {
                return Err(unsupported("DROP of several columns", "write a statement for each"));
            };
            if drop_behavior.is_some() {
                return Err(unsupported("DROP COLUMN with CASCADE or RESTRICT", "leave it out"));
            }
            let is_done = *if_exists && !is_there(&column.value);
            (Alteration::DropColumn(column.value.clone()), is_done)
        }
        AlterTableOperation::AddConstraint { constraint, not_valid } => {
            if *not_valid {
                return Err(unsupported("ADD CONSTRAINT with NOT VALID", "leave it out"));
            }
            let added = index::added(constraint, schema.columns())?;
            store.create_index(&name, &added, OnExisting::Fail)?;
            return Ok(done());
        }
        AlterTableOperation::DropConstraint { if_exists, name: constraint, drop_behavior } => {
            if drop_behavior.is_some() {
                return Err(unsupported(
                    "DROP CONSTRAINT with CASCADE or RESTRICT",
                    "leave it out",
                ));
            }
            let is_named = |index: &&Index| same_name(&index.name, &constraint.value);
            match schema.indexes().iter().filter(|index| index.is_unique()).find(is_named) {
                Some(known) => store.drop_index(&known.name, OnMissing::Ignore).map(|_| ())?,
                None if *if_exists => {}
                None => {
                    return Err(Error::Invalid(format!(
                        "table {name} has no UNIQUE of the name {constraint}"
                    )));
                }
            }
            return Ok(done());
        }
        other => return Err(unsupported(&format!("ALTER TABLE .. {other}"), INSTEAD)),
    };
    if !is_done {
        let stays = matches!(alteration, Alteration::AddColumn(_));
        let check = |views: &[ViewEntry]| match stays {
            true => Ok(()),
            false => refuse_named(&name, views, rights),
        };
        store.alter_table(&name, &alteration, check)?;
    }
    Ok(done())
}

const INSTEAD: &str = "there is RENAME TO, RENAME COLUMN a TO b, ADD COLUMN a TYPE [NOT NULL] [DEFAULT literal], DROP COLUMN a, ADD [CONSTRAINT name] UNIQUE (a, ..) and DROP CONSTRAINT name";

/// Refuses what a column that is added cannot have.
fn check_added(definition: &ColumnDef, limits: &StatementLimits) -> Result<()> {
    for option in &definition.options {
        match &option.option {
            ColumnOption::Default(expr) => {
                let mut expr: Expr = expr.clone();
                check_depth(&mut expr, limits)?;
            }
            ColumnOption::NotNull | ColumnOption::Null => {}
            other => {
                return Err(unsupported(
                    &format!("ADD COLUMN with {other}"),
                    "make another table with CREATE TABLE, and INSERT the rows",
                ));
            }
        }
    }
    Ok(())
}

/// Refuses a change of a table that a view names.
fn refuse_named(table: &str, views: &[ViewEntry], rights: &Rights) -> Result<()> {
    let names_it = |view: &&ViewEntry| {
        // One that cannot be read is broken already.
        let Ok(query) = parse_statement(&view.sql, &StatementLimits::default()) else {
            return false;
        };
        let found = visit_relations(&query, |name| match table_name(name) {
            Ok(known) if fold(&known) == fold(table) => ControlFlow::Break(()),
            _ => ControlFlow::Continue(()),
        });
        found.is_break()
    };
    match views.iter().find(names_it) {
        None => Ok(()),
        Some(view) => {
            let view = match rights.may_read(&view.name) {
                true => format!("view {}", quote(&view.name)),
                false => "a view".to_owned(),
            };
            Err(Error::Invalid(format!(
                "table {table} cannot be changed so: {view} reads it (DROP VIEW, and make it again)"
            )))
        }
    }
}
