//! Changes of a table's columns and name, which rewrite no segment.
//!
//! ```text
//!   table      a  b  c      DROP COLUMN b    a  c        ADD COLUMN d DEFAULT 7    a  c  d
//!   segment    0  1  2                       0  2                                  0  2  =7
//! ```
//!
//! A segment's entry in the manifest says where its file has each column of the table, or which value all its rows have
//! ([`StoredColumn`]). Who opens the segment sees the table's columns ([`SegmentFile`](crate::SegmentFile)); older versions have their own
//! entries, and read as they did. What was loading meanwhile no longer fits the table, and is refused when it is published; a merge of
//! segments is thrown away.

use std::sync::Arc;

use coload_ddl::{Check, Key, Schema};
use coload_types::{Column, Error, Result};

use crate::change::{Outcome, check_no_view, missing_table, position};
use crate::manifest::{
    ColumnStats, Manifest, SegmentEntry, StoredColumn, TableEntry, check_table_name,
};

/// A change of a table that leaves its rows where they are.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Alteration {
    /// Gives it another name.
    Rename(String),
    /// Gives a column another name.
    RenameColumn {
        /// Its name.
        from: String,
        /// The name that it gets.
        to: String,
    },
    /// Adds a column after all others; rows that are there have its default, or NULL.
    AddColumn(Column),
    /// Takes a column out.
    DropColumn(String),
}

/// Changes a table.
///
/// # Errors
/// `Invalid` when the table or a column is not there, a name is taken, or a key or a rule needs a column.
pub(crate) fn alter_table(
    manifest: &mut Manifest,
    name: &str,
    alteration: &Alteration,
) -> Result<Outcome> {
    let Some(index) = position(manifest, name) else { return Err(missing_table(manifest, name)) };
    let table = &mut manifest.tables[index];
    match alteration {
        Alteration::Rename(to) => return rename(manifest, index, to),
        Alteration::RenameColumn { from, to } => rename_column(table, from, to)?,
        Alteration::AddColumn(column) => add_column(table, column)?,
        Alteration::DropColumn(column) => drop_column(table, column)?,
    }
    Ok(Outcome::Changed)
}

fn rename(manifest: &mut Manifest, index: usize, to: &str) -> Result<Outcome> {
    check_table_name(to)?;
    check_no_view(manifest, to)?;
    if position(manifest, to).is_some_and(|taken| taken != index) {
        return Err(Error::Invalid(format!("table {to} exists already")));
    }
    let table = &mut manifest.tables[index];
    if table.name == to {
        return Ok(Outcome::Unchanged);
    }
    to.clone_into(&mut table.name);
    Ok(Outcome::Changed)
}

fn rename_column(table: &mut TableEntry, from: &str, to: &str) -> Result<()> {
    let index = column_of(table, from)?;
    refuse_ruled(table, index, "renamed")?;
    let mut columns = table.schema.columns().to_vec();
    to.clone_into(&mut columns[index].name);
    table.schema = Schema::new(columns)?.with_rules_of(&table.schema)?;
    Ok(())
}

fn add_column(table: &mut TableEntry, column: &Column) -> Result<()> {
    if table.schema.position(&column.name).is_some() {
        let (table, name) = (&table.name, &column.name);
        return Err(Error::Invalid(format!("table {table} has a column {name} already")));
    }
    if !column.nullable && column.default.is_none() && !table.segments.is_empty() {
        return Err(Error::Invalid(format!(
            "column {} is NOT NULL, and the rows that table {} has would have NULL in it: give it a DEFAULT",
            column.name, table.name
        )));
    }
    let width = table.schema.len();
    let mut columns = table.schema.columns().to_vec();
    columns.push(column.clone());
    table.schema = Schema::new(columns)?.with_rules_of(&table.schema)?;
    for segment in &mut table.segments {
        let value = column.default.clone();
        let nulls = if value.is_none() { segment.rows } else { 0 };
        segment.columns.push(ColumnStats::new(value.clone(), value.clone(), nulls));
        change_stored(segment, width, |stored| stored.push(StoredColumn::Constant(value)));
    }
    Ok(())
}

fn drop_column(table: &mut TableEntry, name: &str) -> Result<()> {
    let index = column_of(table, name)?;
    refuse_ruled(table, index, "dropped")?;
    if table.schema.len() == 1 {
        return Err(Error::Invalid(format!(
            "column {name} is the only one of table {}: DROP TABLE instead",
            table.name
        )));
    }
    let key = match table.schema.key() {
        Some(key) if key.columns().contains(&index) => {
            return Err(Error::Invalid(format!(
                "column {name} cannot be dropped: {} of table {} orders its rows",
                key.sql(table.schema.columns()),
                table.name
            )));
        }
        Some(key) => {
            let columns = key.columns().iter().map(|column| column - usize::from(*column > index));
            Some(Key::new(key.kind(), columns.collect())?)
        }
        None => None,
    };
    let known = table.schema.indexes().iter();
    if let Some(known) = known.clone().find(|known| known.columns().contains(&index)) {
        return Err(Error::Invalid(format!(
            "column {name} cannot be dropped: index {} of table {} names it (DROP INDEX first)",
            known.name, table.name
        )));
    }
    let after = |column: usize| column - usize::from(column > index);
    let indexes = known.map(|known| known.with_columns(after)).collect();
    let width = table.schema.len();
    let mut columns = table.schema.columns().to_vec();
    columns.remove(index);
    let checks = table.schema.checks().iter();
    let checks: Vec<Check> = checks
        .map(|check| Check::parse(check.name.clone(), check.text(), &columns))
        .collect::<Result<_>>()?;
    table.schema =
        Schema::new(columns)?.with_checks(checks)?.with_key(key)?.with_indexes(indexes)?;
    for segment in &mut table.segments {
        segment.columns.remove(index);
        segment.trees.iter_mut().flat_map(|tree| &mut tree.columns).for_each(|c| *c = after(*c));
        change_stored(segment, width, |stored| drop(stored.remove(index)));
    }
    Ok(())
}

/// Says anew where a segment has the columns of its table, of which there were so many.
fn change_stored(
    segment: &mut SegmentEntry,
    width: usize,
    change: impl FnOnce(&mut Vec<StoredColumn>),
) {
    let mut stored = match &segment.stored {
        Some(stored) => stored.to_vec(),
        None => (0..width as u32).map(StoredColumn::At).collect(),
    };
    change(&mut stored);
    segment.stored = Some(Arc::from(stored));
}

fn column_of(table: &TableEntry, name: &str) -> Result<usize> {
    table.schema.position(name).ok_or_else(|| {
        let columns = table.schema.columns().iter();
        let names: Vec<&str> = columns.map(|column| column.name.as_str()).collect();
        Error::Invalid(format!(
            "table {} has no column {name} (it has {})",
            table.name,
            names.join(", ")
        ))
    })
}

/// Refuses what a rule names.
fn refuse_ruled(table: &TableEntry, column: usize, what: &str) -> Result<()> {
    match table.schema.checks().iter().find(|check| check.columns().contains(&column)) {
        None => Ok(()),
        Some(check) => Err(Error::Invalid(format!(
            "column {} of table {} cannot be {what}: {} names it",
            table.schema.columns()[column].name,
            table.name,
            check.sql()
        ))),
    }
}

#[cfg(test)]
mod tests;
