//! Rows go, but for those that the server refuses.
//!
//! ```text
//!   try rows 0..n -> refused, the server says that row k is at fault:  try 0..k, leave k out, go on behind it
//!                 -> refused, it does not say which:                   try the first half, and so on to one row
//! ```
//!
//! After a refusal fewer rows are tried at once, and twice as many each time that they are taken, so that bad rows far from
//! each other cost little, and many together do not make all others go twice.

use std::ops::Range;

use coload_load::RowBytes;
use coload_source::LeftOut;
use coload_types::{Error, Result};

use crate::engine::{Connection, Engine, Refusal, RowTable};
use crate::journal::refused_row;
use crate::options::Method;

/// Rows that are tried at most behind one that the server named: those behind the next one at fault only cost to be sent.
const ROWS_AFTER_REFUSAL: usize = 4096;

/// How a try is undone that was refused.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Undo {
    /// The transaction has nothing but these rows: it begins again.
    Transaction,
    /// What was before them in the transaction stays.
    Savepoint,
}

/// Sends rows within the transaction that is open, and gives those that the server refused.
///
/// # Errors
/// `Limit` when more are refused than may be; what ends the load, or has the chunk tried again.
pub fn send_but_refused(
    engine: &dyn Engine,
    on: &mut dyn Connection,
    table: &RowTable,
    rows: &RowBytes,
    undo: Undo,
) -> Result<Vec<LeftOut>> {
    let mut sending =
        Sending { engine, on, table, rows, undo, is_first: true, has_savepoint: false };
    let mut refused = Vec::new();
    let (mut at, mut step) = (0, rows.len());
    // A row that the server named; those before it were not tried without it.
    let mut named: Option<(usize, LeftOut)> = None;
    if table.method == Method::InsertAutocommit {
        step = 1;
    }
    while at < rows.len() {
        let end = rows.len().min(at.saturating_add(step.max(1)));
        let end = named.as_ref().map_or(end, |(row, _)| *row);
        let tried = if end > at { sending.send(at..end) } else { Ok(()) };
        match tried {
            Ok(()) => {
                at = end;
                match named.take() {
                    Some((row, left_out)) => {
                        refused.push(left_out);
                        at = row + 1;
                    }
                    None if table.method != Method::InsertAutocommit => {
                        step = step.saturating_mul(2)
                    }
                    None => {}
                }
            }
            Err(Refusal::Failed(error)) => return Err(error),
            Err(Refusal::Row { row, column, reason, detail }) => {
                let row = row.map(|row| at + row).filter(|row| *row < end);
                step = match row {
                    Some(_) => step.min(ROWS_AFTER_REFUSAL),
                    None => (end - at) / 2,
                };
                named = None;
                if let Some(row) = row.or_else(|| (end - at == 1).then_some(at)) {
                    named = Some((row, refused_row(row as u64, column, reason, detail)));
                }
            }
        }
    }
    if sending.has_savepoint {
        sending.on.run("RELEASE SAVEPOINT coload_rows", &[])?;
    }
    Ok(refused)
}

/// Rows that are being sent.
struct Sending<'a> {
    engine: &'a dyn Engine,
    on: &'a mut dyn Connection,
    table: &'a RowTable,
    rows: &'a RowBytes,
    undo: Undo,
    /// Whether nothing of these rows is in the transaction.
    is_first: bool,
    /// Whether a savepoint is open, with nothing behind it.
    has_savepoint: bool,
}

impl Sending<'_> {
    fn send(&mut self, range: Range<usize>) -> std::result::Result<(), Refusal> {
        if self.table.method == Method::InsertAutocommit {
            return self.on.send(self.table, self.rows, range);
        }
        let whole = self.is_first && self.undo == Undo::Transaction;
        if !whole && !self.has_savepoint {
            self.on.run("SAVEPOINT coload_rows", &[])?;
            self.has_savepoint = true;
        }
        match self.on.send(self.table, self.rows, range) {
            Ok(()) => {
                if !whole {
                    // One round trip: a savepoint within another one would keep locks.
                    self.on.run(self.engine.renew_savepoint_sql(), &[])?;
                }
                self.is_first = false;
                Ok(())
            }
            Err(refusal @ Refusal::Row { .. }) => {
                if whole {
                    self.on.run("ROLLBACK", &[])?;
                    self.on.run(self.engine.begin_sql(), &[])?;
                } else {
                    // It stays open.
                    self.on.run("ROLLBACK TO SAVEPOINT coload_rows", &[])?;
                }
                Err(refusal)
            }
            Err(failed) => Err(failed),
        }
    }
}

/// More rows were refused than may be rejects: nobody needs to know the others.
pub fn too_many(count: u64, allowed: u64) -> Error {
    Error::Limit(format!("the server refused {count} rows, over --max-rejects {allowed}"))
}
