//! ON CONFLICT of an INSERT: what happens to keys that are there already.
//!
//! ```text
//!   ON CONFLICT [(key)] DO NOTHING                      the row of the table stays; without a key, that of any PRIMARY KEY or UNIQUE
//!   ON CONFLICT (key) DO UPDATE SET a = excluded.a, ..  the new row takes its place, whole: each column that is not of the
//!                                                       key is set to that of the new row
//!   INSERT OR IGNORE, INSERT OR REPLACE                 the same
//! ```
//!
//! The clause is taken out of the statement before that is planned as any INSERT. One that changes a row in another way is
//! planned as a MERGE ([`super::change`]).

use coload_ddl::{Index, Key, Schema};
use coload_store::{OnConflict, Snapshot, TableEntry};
use coload_types::{Error, Result};
use datafusion::sql::sqlparser::ast::{
    Assignment, AssignmentTarget, ConflictTarget, DoUpdate, Expr, Ident, Insert, ObjectName,
    OnConflict as ConflictClause, OnConflictAction, OnInsert, SqliteOnConflict,
    Statement as SqlStatement, TableObject,
};

use super::columns::table_name;
use super::unsupported;
use crate::names::{find_table, fold, missing_field};
use crate::rights::Rights;

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
#[derive(Debug, Clone, Copy)]
pub(super) struct Upsert<'a> {
    /// Name of its table.
    pub table: &'a ObjectName,
    pub insert: &'a Insert,
    clause: &'a ConflictClause,
    pub update: &'a DoUpdate,
}

/// An INSERT that is one of these. It is not looked at whether the clause fits the table, whose right is asked first; a table that
/// the caller may not read is one that is not there.
pub(super) fn upsert_of<'a>(
    statement: &'a SqlStatement,
    snapshot: &Snapshot,
    rights: &Rights,
) -> Option<Upsert<'a>> {
    let SqlStatement::Insert(insert) = statement else { return None };
    let Some(OnInsert::OnConflict(clause)) = &insert.on else { return None };
    let OnConflictAction::DoUpdate(update) = &clause.action else { return None };
    let TableObject::TableName(table) = &insert.table else { return None };
    // Who plans the INSERT says that the table is not there, or has no key.
    let index = find_table(snapshot, &table_name(table).ok()?)?;
    let TableEntry { name, schema, .. } = &snapshot.tables()[index];
    let key = schema.key().filter(|key| key.is_unique());
    if key.is_none() && unique(schema).next().is_none() || !rights.may_read(name) {
        return None;
    }
    let names_unique =
        matches!(arbiter(clause.conflict_target.as_ref(), schema), Ok(Arbiter::Unique(_)));
    let is_whole = !names_unique && key.is_some_and(|key| replaces_rows(update, key, schema));
    let is_one = insert.or.is_none() && !is_whole;
    is_one.then_some(Upsert { table, insert, clause, update })
}

impl Upsert<'_> {
    /// Columns of the key by which its rows find those of the table.
    ///
    /// # Errors
    /// `Invalid` when the clause names another key than the table has.
    pub fn key_of(&self, table: &str, schema: &Schema) -> Result<Vec<usize>> {
        has_key(table, schema)?;
        match arbiter(self.clause.conflict_target.as_ref(), schema)? {
            Arbiter::Any => Err(unnamed(schema)),
            Arbiter::Key(key) => Ok(key.columns().to_vec()),
            Arbiter::Unique(index) => Ok(schema.indexes()[index].columns().to_vec()),
        }
    }
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
            Said::Or(SqliteOnConflict::Ignore) => {
                has_key(table, schema)?;
                return Ok(OnConflict::Ignore);
            }
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
            "INSERT OR REPLACE: table {table} has no PRIMARY KEY, whose rows it is about (for UNIQUE write {INSTEAD})"
        ))
    })
}

/// Checks that a table has keys that a row may have in common with another.
fn has_key(table: &str, schema: &Schema) -> Result<()> {
    match schema.key().is_some_and(Key::is_unique) || unique(schema).next().is_some() {
        true => Ok(()),
        false => Err(Error::Invalid(format!(
            "ON CONFLICT: table {table} has no PRIMARY KEY and no UNIQUE, whose rows it is about (MERGE .. WHEN NOT MATCHED THEN INSERT, or \
             WHERE NOT EXISTS, leaves rows out)"
        ))),
    }
}

/// The indexes of UNIQUE with their numbers among all of the table.
fn unique(schema: &Schema) -> impl Iterator<Item = (usize, &Index)> {
    schema.indexes().iter().enumerate().filter(|(_, index)| index.is_unique())
}

/// The key that a clause is about.
enum Arbiter<'a> {
    /// All that the table has.
    Any,
    Key(&'a Key),
    /// That of an index, by its number.
    Unique(usize),
}

/// Finds the key whose columns a clause names, in any order.
fn arbiter<'a>(target: Option<&ConflictTarget>, schema: &'a Schema) -> Result<Arbiter<'a>> {
    let columns = match target {
        None => return Ok(Arbiter::Any),
        Some(ConflictTarget::Columns(columns)) => columns,
        Some(ConflictTarget::OnConstraint(_)) => {
            return Err(unsupported("ON CONFLICT ON CONSTRAINT", "name the columns of the key"));
        }
    };
    let sorted = |columns: &[usize]| {
        let mut columns = columns.to_vec();
        columns.sort_unstable();
        columns
    };
    let named: Vec<usize> =
        columns.iter().map(|column| position(column, schema)).collect::<Result<_>>()?;
    let mut named = sorted(&named);
    named.dedup();
    let key = schema.key().filter(|key| key.is_unique());
    if let Some(key) = key.filter(|key| sorted(key.columns()) == named) {
        return Ok(Arbiter::Key(key));
    }
    let mut all = unique(schema);
    let found = all.find(|(_, index)| sorted(index.columns()) == named);
    found.map(|(number, _)| Arbiter::Unique(number)).ok_or_else(|| {
        Error::Invalid(format!(
            "ON CONFLICT names other columns than {} of the table has",
            keys_sql(schema)
        ))
    })
}

/// The keys of a table: `PRIMARY KEY (a), UNIQUE (b)`.
fn keys_sql(schema: &Schema) -> String {
    let key = schema.key().filter(|key| key.is_unique()).map(|key| key.sql(schema.columns()));
    let unique = unique(schema).map(|(_, index)| index.sql(schema.columns()));
    key.into_iter().chain(unique).collect::<Vec<_>>().join(" or ")
}

/// The error for an update without columns.
fn unnamed(schema: &Schema) -> Error {
    let key = schema.key().filter(|key| key.is_unique()).map(|key| key.sql(schema.columns()));
    let all = key.into_iter().chain(unique(schema).map(|(_, index)| index.sql(schema.columns())));
    let first = all.map(|sql| sql[sql.find('(').unwrap_or(0)..].to_owned()).next();
    Error::Invalid(format!(
        "ON CONFLICT DO UPDATE names the columns of the key: ON CONFLICT {}",
        first.unwrap_or_default()
    ))
}

fn of_clause(clause: &ConflictClause, table: &str, schema: &Schema) -> Result<OnConflict> {
    has_key(table, schema)?;
    let arbiter = arbiter(clause.conflict_target.as_ref(), schema)?;
    match (&clause.action, arbiter) {
        (OnConflictAction::DoNothing, Arbiter::Any) => Ok(OnConflict::Ignore),
        (OnConflictAction::DoNothing, Arbiter::Unique(index)) => {
            Ok(OnConflict::IgnoreUnique(index))
        }
        // Where there is no UNIQUE the two are one, which clusters know.
        (OnConflictAction::DoNothing, Arbiter::Key(_)) => match unique(schema).next() {
            Some(_) => Ok(OnConflict::IgnoreKey),
            None => Ok(OnConflict::Ignore),
        },
        (OnConflictAction::DoUpdate(_), Arbiter::Any) => Err(unnamed(schema)),
        (OnConflictAction::DoUpdate(_), _) => Ok(OnConflict::ReplaceOnce),
    }
}

fn position(column: &Ident, schema: &Schema) -> Result<usize> {
    let found = schema.position(&column.value);
    found.ok_or_else(|| missing_field("ON CONFLICT: ", column, schema))
}

/// Whether an update sets each column that is not of the key to that of the new row.
fn replaces_rows(update: &DoUpdate, key: &Key, schema: &Schema) -> bool {
    let DoUpdate { assignments, selection } = update;
    let mut is_set = vec![false; schema.len()];
    for Assignment { target, value } in assignments {
        let AssignmentTarget::ColumnName(name) = target else { return false };
        let [part] = &name.0[..] else { return false };
        let Some(index) = part.as_ident().and_then(|column| schema.position(&column.value)) else {
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
    fold(&row.value) == "excluded" && schema.position(&name.value) == Some(column)
}
