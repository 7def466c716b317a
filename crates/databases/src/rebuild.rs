//! Indexes and constraints that are taken off a table, and built when its rows are there (`--rebuild-indexes`).
//!
//! ```text
//!   PostgreSQL, SQL Server   BEGIN; take off; rows (or their move from a table beside); build; COMMIT
//!   MySQL                    a table beside, LIKE the other; take off that; rows; build; RENAME both at once
//! ```
//!
//! Invariant: at every moment the table that others see has all its indexes. What is taken off is so in a transaction that
//! also has the rows, or is of a table that nobody sees: whoever is killed, there is nothing to be put back.
//!
//! Only what can be built again exactly as it was is taken off; what stays is told, with the reason. Decision 0102.

use std::time::{Duration, Instant};

use coload_types::{Error, Result};

use crate::engine::{Connection, Engine};
use crate::names::TableName;

/// What becomes of statements that make and alter tables.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Ddl {
    /// They are undone with their transaction: indexes are taken off the table itself.
    InTransactions,
    /// Each commits at once: indexes are taken off a table beside it, which then takes its place.
    CommitsAtOnce,
}

/// Whether a table that is made as another is has its indexes.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Indexes {
    /// It has those of the other one.
    Copied,
    /// It has none.
    LeftOut,
}

/// What was taken off a table.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct TakenOff {
    /// Names of the indexes and constraints.
    pub names: Vec<String>,
    /// The statements that build them, in order.
    pub restore: Vec<String>,
    /// Names of those that stay, and why.
    pub kept: Vec<(String, String)>,
}

impl TakenOff {
    /// Builds what was taken off; how long that took.
    ///
    /// # Errors
    /// What the server says, such as of a key that comes twice.
    pub fn restore(&self, on: &mut dyn Connection) -> Result<Duration> {
        let began = Instant::now();
        for sql in &self.restore {
            on.run(sql, &[]).map_err(|error| match error {
                Error::Refused(text) => Error::Refused(format!(
                    "{text}: what --rebuild-indexes took off cannot be built with these rows; nothing was loaded, and the \
                     table has its indexes as before (without --rebuild-indexes such rows are rejects)"
                )),
                other => other,
            })?;
        }
        Ok(began.elapsed())
    }

    /// What is to be said of it.
    pub fn told(&self, took: Duration) -> Vec<String> {
        let mut told = Vec::new();
        match self.names.is_empty() {
            true => told.push("--rebuild-indexes: no index or constraint was taken off".to_owned()),
            false => told.push(format!(
                "--rebuild-indexes: built after the rows, in {:.1} s: {}",
                took.as_secs_f64(),
                self.names.join(", ")
            )),
        }
        let kept = self.kept.iter();
        told.extend(kept.map(|(name, why)| format!("--rebuild-indexes: {name} stayed, for {why}")));
        told
    }
}

/// Whether a table has rows.
///
/// # Errors
/// What the server says.
pub fn has_rows(engine: &dyn Engine, on: &mut dyn Connection, table: &TableName) -> Result<bool> {
    Ok(!on.ask(&engine.any_row_sql(table), &[])?.is_empty())
}

/// Takes off what a table has, in the transaction that is open: others wait for its end. Nothing where rows are there.
///
/// # Errors
/// What the server says, such as that the table is another user's.
pub fn take_off_in_transaction(
    engine: &dyn Engine,
    on: &mut dyn Connection,
    table: &TableName,
) -> Result<std::result::Result<TakenOff, String>> {
    if let Some(sql) = engine.lock_table_sql(table) {
        on.run(&sql, &[])?;
    }
    match has_rows(engine, on, table)? {
        true => Ok(Err(HAS_ROWS.to_owned())),
        false => engine.take_off(on, table).map(Ok),
    }
}

/// Why indexes of a table stay that has rows: to build them anew may take longer than to add to them.
pub const HAS_ROWS: &str = "--rebuild-indexes: indexes stayed, for the table has rows (it is for empty tables, and for \
                            --replace)";

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_was_taken_off_and_what_stayed_is_told() {
        let taken = TakenOff {
            names: vec!["t_pkey".to_owned(), "t_v".to_owned()],
            restore: Vec::new(),
            kept: vec![("t_w".to_owned(), "a view needs it".to_owned())],
        };
        assert_eq!(
            taken.told(Duration::from_millis(1500)),
            [
                "--rebuild-indexes: built after the rows, in 1.5 s: t_pkey, t_v",
                "--rebuild-indexes: t_w stayed, for a view needs it"
            ]
        );
        assert!(TakenOff::default().told(Duration::ZERO)[0].contains("no index"));
    }
}
