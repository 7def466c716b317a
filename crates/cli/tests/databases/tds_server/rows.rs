//! Rows into tables, with all that is asked of them.

use std::time::{Duration, Instant};

use super::Shared;
use super::expression::{Scope, evaluate_all};
use super::store::{Db, Session};
use super::types::{SqlError, Type, Val, Value, error, store};
use super::wire::Answer;

/// A value for a column.
pub enum Given<'a> {
    Typed(Value, &'a Type),
    Val(Val),
}

pub fn lock_for_writing<'a>(
    shared: &'a Shared,
    session: &Session,
    key: &str,
) -> Result<std::sync::MutexGuard<'a, Db>, SqlError> {
    let began = Instant::now();
    loop {
        let db = shared.db.lock().unwrap();
        let owner = db.tables.get(key).and_then(|table| table.locked);
        if owner.is_none_or(|owner| owner == session.number) {
            return Ok(db);
        }
        drop(db);
        if began.elapsed() > Duration::from_secs(20) {
            return error(1222, "Lock request time out period exceeded.");
        }
        std::thread::sleep(Duration::from_millis(2));
    }
}

/// Adds a row of these columns; whether it was added.
pub fn insert_row(
    db: &mut Db,
    session: &mut Session,
    key: &str,
    cells: Vec<(String, Given<'_>)>,
    answer: &mut Answer,
) -> Result<bool, SqlError> {
    let Some(table) = db.tables.get_mut(key) else { return error(208, "Invalid object name.") };
    let mut row: Vec<Option<Value>> = vec![None; table.columns.len()];
    for (name, given) in cells {
        let Some(at) = table.columns.iter().position(|c| c.name.eq_ignore_ascii_case(&name)) else {
            return error(207, format!("Invalid column name '{name}'."));
        };
        let column = &table.columns[at];
        if column.identity {
            return error(
                544,
                "Cannot insert explicit value for identity column in table when IDENTITY_INSERT is set to OFF.",
            );
        }
        if column.computed.is_some() {
            return error(
                271,
                format!(
                    "The column \"{name}\" cannot be modified because it is either a computed column or is the result of a UNION operator."
                ),
            );
        }
        row[at] = Some(match given {
            Given::Typed(value, of)
                if of.kind == column.of.kind
                    && of.size == column.of.size
                    && of.scale == column.of.scale
                    && of.precision == column.of.precision
                    && of.kind != 0xef
                    && of.kind != 0xad =>
            {
                value
            }
            Given::Typed(value, of) => match (of.kind, value) {
                (_, None) => None,
                (0xa5 | 0xad, Some(bytes)) => store(&Val::Bytes(bytes), &column.of, &name)?,
                (_, value) => store(&Val::of(&value, of), &column.of, &name)?,
            },
            Given::Val(value) => store(&value, &column.of, &name)?,
        });
    }
    let columns = table.columns.clone();
    for (at, column) in columns.iter().enumerate() {
        if row[at].is_some() {
            continue;
        }
        row[at] = Some(match (&column.default, column.identity) {
            (_, true) => {
                table.next_identity += 1;
                store(&Val::Int(table.next_identity), &column.of, &column.name)?
            }
            (Some(default), _) => {
                let value = evaluate_all(default, &Scope::default())?;
                store(&value, &column.of, &column.name)?
            }
            _ => None,
        });
    }
    let mut row: Vec<Value> = row.into_iter().map(Option::flatten).collect();
    for (at, column) in columns.iter().enumerate() {
        if let Some(computed) = &column.computed {
            let scope = Scope { columns: &columns, row: &row, ..Scope::default() };
            let value = evaluate_all(computed, &scope)?;
            row[at] = store(&value, &column.of, &column.name)?;
        }
        if row[at].is_none() && !column.nullable {
            return error(
                515,
                format!(
                    "Cannot insert the value NULL into column '{}', table 'd.{}'; column does not allow nulls. INSERT fails.",
                    column.name,
                    key.replace('\u{1}', ".")
                ),
            );
        }
    }
    for (name, check) in table.checks.clone() {
        let scope = Scope { columns: &columns, row: &row, ..Scope::default() };
        if evaluate_all(&check, &scope)? == Val::Int(0) {
            return error(
                547,
                format!(
                    "The INSERT statement conflicted with the CHECK constraint \"{name}\". The conflict occurred in database \"d\", table \"{}\".",
                    key.replace('\u{1}', ".")
                ),
            );
        }
    }
    // As a trigger of it, which takes no row with a 13 in it, and ends the transaction.
    if key.ends_with("_triggered")
        && row.iter().flatten().any(|value| *value == 13_i32.to_le_bytes())
    {
        return error(50_000, "The trigger takes no 13.");
    }
    let added = db.insert(session, key, row)?;
    if !added {
        answer.info(3604, "Duplicate key was ignored.");
    }
    Ok(added)
}
