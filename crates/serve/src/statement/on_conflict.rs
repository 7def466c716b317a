//! ON CONFLICT of an INSERT: what happens to keys that are there already.
//!
//! ```text
//!   ON CONFLICT [(key)] DO NOTHING                      the row of the table stays
//!   ON CONFLICT (key) DO UPDATE SET a = excluded.a, ..  the new row takes its place, whole: each column that is not of the
//!                                                       key is set to that of the new row
//!   INSERT OR IGNORE, INSERT OR REPLACE                 the same
//! ```
//!
//! The clause is taken out of the statement before that is planned as any INSERT.

use coload_ddl::{Key, Schema};
use coload_store::OnConflict;
use coload_types::{Error, Result};
use datafusion::sql::sqlparser::ast::{
    Assignment, AssignmentTarget, ConflictTarget, DoUpdate, Expr, Ident,
    OnConflict as ConflictClause, OnConflictAction, OnInsert, SqliteOnConflict,
    Statement as SqlStatement,
};

use super::unsupported;
use crate::names::{fold, quote};

/// What an INSERT says of conflicts.
#[derive(Debug, Clone)]
pub(super) enum Said {
    Nothing,
    Clause(Box<ConflictClause>),
    Or(SqliteOnConflict),
}

/// Takes what an INSERT says of conflicts out of it.
///
/// # Errors
/// `Invalid` for MySQL's ON DUPLICATE KEY.
pub(super) fn take_said(statement: &mut SqlStatement) -> Result<Said> {
    let SqlStatement::Insert(insert) = statement else { return Ok(Said::Nothing) };
    match (insert.on.take(), insert.or.take()) {
        (None, None) => Ok(Said::Nothing),
        (Some(OnInsert::OnConflict(clause)), None) => Ok(Said::Clause(Box::new(clause))),
        (None, Some(or)) => Ok(Said::Or(or)),
        (Some(_), Some(_)) => Err(Error::Invalid("an INSERT OR .. with ON CONFLICT".into())),
        _ => Err(unsupported("ON DUPLICATE KEY UPDATE", INSTEAD)),
    }
}

const INSTEAD: &str = "write ON CONFLICT (key) DO UPDATE SET a = excluded.a, .. for all columns";

impl Said {
    /// What it means for a table.
    ///
    /// # Errors
    /// `Invalid` when the table has no such key, or a clause does not replace whole rows.
    pub fn for_table(&self, table: &str, schema: &Schema) -> Result<OnConflict> {
        let on_conflict = match self {
            Said::Nothing => return Ok(OnConflict::Error),
            Said::Or(SqliteOnConflict::Ignore) => OnConflict::Ignore,
            Said::Or(SqliteOnConflict::Replace) => OnConflict::ReplaceOnce,
            Said::Or(other) => {
                return Err(unsupported(
                    &format!("INSERT {other}"),
                    "write OR IGNORE or OR REPLACE",
                ));
            }
            Said::Clause(clause) => return of_clause(clause, table, schema),
        };
        key_of(table, schema).map(|_| on_conflict)
    }
}

fn key_of<'a>(table: &str, schema: &'a Schema) -> Result<&'a Key> {
    schema.key().filter(|key| key.is_unique()).ok_or_else(|| {
        Error::Invalid(format!(
            "ON CONFLICT: table {table} has no PRIMARY KEY, so that no row is there already"
        ))
    })
}

fn of_clause(clause: &ConflictClause, table: &str, schema: &Schema) -> Result<OnConflict> {
    let key = key_of(table, schema)?;
    let ConflictClause { conflict_target, action } = clause;
    match conflict_target {
        None => {}
        Some(ConflictTarget::Columns(columns)) => check_target(columns, key, schema)?,
        Some(ConflictTarget::OnConstraint(_)) => {
            return Err(unsupported("ON CONFLICT ON CONSTRAINT", "name the columns of the key"));
        }
    }
    match action {
        OnConflictAction::DoNothing => Ok(OnConflict::Ignore),
        OnConflictAction::DoUpdate(update) => {
            if conflict_target.is_none() {
                return Err(Error::Invalid(format!(
                    "ON CONFLICT DO UPDATE names the columns of the key: ON CONFLICT {}",
                    key.sql(schema.columns()).trim_start_matches("PRIMARY KEY ")
                )));
            }
            check_update(update, key, schema)?;
            Ok(OnConflict::ReplaceOnce)
        }
    }
}

/// Checks that columns are those of the key, in any order.
fn check_target(columns: &[Ident], key: &Key, schema: &Schema) -> Result<()> {
    let mut named: Vec<usize> =
        columns.iter().map(|column| position(column, schema)).collect::<Result<_>>()?;
    let mut wanted = key.columns().to_vec();
    named.sort_unstable();
    wanted.sort_unstable();
    match named == wanted {
        true => Ok(()),
        false => Err(Error::Invalid(format!(
            "ON CONFLICT names other columns than {} of the table has",
            key.sql(schema.columns())
        ))),
    }
}

fn position(column: &Ident, schema: &Schema) -> Result<usize> {
    let is_it = |name: &str| fold(name) == fold(&column.value);
    schema.columns().iter().position(|known| is_it(&known.name)).ok_or_else(|| {
        let there: Vec<String> = schema.columns().iter().map(|c| quote(&c.name)).collect();
        Error::Invalid(format!(
            "ON CONFLICT: no field named {}; there is {}",
            quote(&column.value),
            there.join(", ")
        ))
    })
}

/// Checks that an update replaces whole rows.
fn check_update(update: &DoUpdate, key: &Key, schema: &Schema) -> Result<()> {
    let DoUpdate { assignments, selection } = update;
    if selection.is_some() {
        return Err(unsupported(
            "ON CONFLICT DO UPDATE with WHERE",
            "put the condition on the rows that are inserted",
        ));
    }
    let mut is_set = vec![false; schema.len()];
    for Assignment { target, value } in assignments {
        let AssignmentTarget::ColumnName(name) = target else {
            return Err(unsupported(
                "ON CONFLICT DO UPDATE SET (a, b) = ..",
                "write SET a = excluded.a, b = excluded.b",
            ));
        };
        let column = match &name.0[..] {
            [part] => part.as_ident(),
            _ => None,
        };
        let Some(column) = column else {
            return Err(unsupported(
                &format!("ON CONFLICT DO UPDATE SET {name}"),
                "name a column of the table alone",
            ));
        };
        let index = position(column, schema)?;
        if std::mem::replace(&mut is_set[index], true) {
            let name = quote(&column.value);
            return Err(Error::Invalid(format!("ON CONFLICT DO UPDATE sets column {name} twice")));
        }
        if !is_excluded(value, index, schema) {
            let name = &schema.columns()[index].name;
            return Err(unsupported(
                &format!("ON CONFLICT DO UPDATE SET {name} = {value}"),
                &format!("a row is replaced whole: write {name} = excluded.{name}"),
            ));
        }
    }
    let kept = |index: &usize| !is_set[*index] && !key.columns().contains(index);
    match (0..schema.len()).find(kept) {
        None => Ok(()),
        Some(index) => {
            let name = &schema.columns()[index].name;
            Err(unsupported(
                &format!("ON CONFLICT DO UPDATE that leaves column {name} as it is"),
                &format!("a row is replaced whole: add {name} = excluded.{name}"),
            ))
        }
    }
}

/// Whether an expression is a column of the new row.
fn is_excluded(value: &Expr, column: usize, schema: &Schema) -> bool {
    let Expr::CompoundIdentifier(parts) = value else { return false };
    let [row, name] = &parts[..] else { return false };
    fold(&row.value) == "excluded" && position(name, schema).is_ok_and(|index| index == column)
}
