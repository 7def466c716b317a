//! ON CONFLICT of an INSERT: what happens to keys that are there already.
//!
//! ```text
//!   ON CONFLICT [(key)] DO NOTHING                      the row of the table stays
//!   ON CONFLICT (key) DO UPDATE SET a = excluded.a, ..  the new row takes its place, whole: each column that is not of the
//!                                                       key is set to that of the new row
//!   INSERT OR IGNORE, INSERT OR REPLACE                 the same
//! ```
//!
//! The clause is taken out of the statement before that is planned as any INSERT. One that changes a row in another way is
//! planned as a MERGE ([`super::change`]).

use coload_ddl::{Key, Schema};
use coload_store::{OnConflict, Snapshot, TableEntry};
use coload_types::{Error, Result};
use datafusion::sql::sqlparser::ast::{
    Assignment, AssignmentTarget, ConflictTarget, DoUpdate, Expr, Ident, ObjectNamePart,
    OnConflict as ConflictClause, OnConflictAction, OnInsert, SqliteOnConflict,
    Statement as SqlStatement, TableObject,
};

use super::unsupported;
use crate::names::{find_table, fold, quote};

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

/// An INSERT whose clause changes rows that are there, in another way than to replace them whole.
#[derive(Debug)]
pub(super) struct Upsert {
    /// The INSERT without the clause.
    pub insert: SqlStatement,
    pub update: DoUpdate,
    /// Columns of the table, and which of them are the key.
    pub schema: Schema,
    pub key: Vec<usize>,
}

/// Tells whether an INSERT is one of these.
///
/// # Errors
/// `Invalid` when its clause names another key than the table has.
pub(super) fn upsert_of(statement: &SqlStatement, snapshot: &Snapshot) -> Result<Option<Upsert>> {
    let SqlStatement::Insert(insert) = statement else { return Ok(None) };
    let Some(OnInsert::OnConflict(clause)) = &insert.on else { return Ok(None) };
    let OnConflictAction::DoUpdate(update) = &clause.action else { return Ok(None) };
    let TableObject::TableName(name) = &insert.table else { return Ok(None) };
    let Some(last) = name.0.last().and_then(ObjectNamePart::as_ident) else { return Ok(None) };
    // A table that is not there is told by who plans the INSERT.
    let Some(index) = find_table(snapshot, &last.value) else { return Ok(None) };
    let TableEntry { name, schema, .. } = &snapshot.tables()[index];
    let Some(key) = schema.key().filter(|key| key.is_unique()) else { return Ok(None) };
    if insert.or.is_some() || replaces_rows(update, key, schema) {
        return Ok(None);
    }
    of_clause(clause, name, schema)?;
    let mut rest = insert.clone();
    rest.on = None;
    let (insert, key) = (SqlStatement::Insert(rest), key.columns().to_vec());
    Ok(Some(Upsert { insert, update: update.clone(), schema: schema.clone(), key }))
}

const INSTEAD: &str = "write ON CONFLICT (key) DO UPDATE SET a = excluded.a, .. for all columns";

impl Said {
    /// What it means for a table.
    ///
    /// # Errors
    /// `Invalid` when the table has no such key. A clause of an update replaces whole rows: others are a [`Upsert`].
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
        OnConflictAction::DoUpdate(_) => {
            if conflict_target.is_none() {
                return Err(Error::Invalid(format!(
                    "ON CONFLICT DO UPDATE names the columns of the key: ON CONFLICT {}",
                    key.sql(schema.columns()).trim_start_matches("PRIMARY KEY ")
                )));
            }
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

/// Whether an update sets each column that is not of the key to that of the new row.
fn replaces_rows(update: &DoUpdate, key: &Key, schema: &Schema) -> bool {
    let DoUpdate { assignments, selection } = update;
    let mut is_set = vec![false; schema.len()];
    for Assignment { target, value } in assignments {
        let AssignmentTarget::ColumnName(name) = target else { return false };
        let [part] = &name.0[..] else { return false };
        let Some(index) = part.as_ident().and_then(|column| position(column, schema).ok()) else {
            return false;
        };
        let is_again = std::mem::replace(&mut is_set[index], true);
        if is_again || !is_excluded(value, index, schema) {
            return false;
        }
    }
    let is_left = |index: usize| !is_set[index] && !key.columns().contains(&index);
    selection.is_none() && !(0..schema.len()).any(is_left)
}

/// Whether an expression is a column of the new row.
fn is_excluded(value: &Expr, column: usize, schema: &Schema) -> bool {
    let Expr::CompoundIdentifier(parts) = value else { return false };
    let [row, name] = &parts[..] else { return false };
    fold(&row.value) == "excluded" && position(name, schema).is_ok_and(|index| index == column)
}
