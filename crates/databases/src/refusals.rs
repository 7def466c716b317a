//! Rows go, but for those that the server refuses.
//!
//! ```text
//!   try rows 0..n -> refused, the server says that row k is at fault:  try 0..k, leave k out, go on behind it
//!                 -> refused, it does not say which:                   try the first half, and so on to one row
//! ```
//!
//! How many rows are tried at once behind a refusal follows from how far apart refusals are ([`Distance`]): bad rows far
//! from each other cost little, and many together do not make all others go twice.

use std::ops::Range;

use coload_load::RowBytes;
use coload_source::LeftOut;
use coload_types::{Error, Result};

use crate::engine::{Connection, Engine, Refusal, RowTable};
use crate::journal::refused_row;
use crate::options::Method;

/// What a try costs beside its rows (a statement, a savepoint, their round trips), as rows of a bulk method.
const ROWS_OF_A_TRY: f64 = 64.0;

/// How far refused rows are apart, and so how many rows to try at once.
///
/// A try of b rows costs as much as [`ROWS_OF_A_TRY`] more, and is in vain for half of its rows each time that one of them
/// is refused. Where refusals are d rows apart, a row costs `ROWS_OF_A_TRY / b + b / 2d` beside itself, which is least at
/// `b = sqrt(2 d ROWS_OF_A_TRY)`.
#[derive(Debug, Default)]
pub struct Distance {
    /// Mean distance of refusals, the last ones counted more; `None` before the first.
    mean: Option<f64>,
    /// Rows that were taken since the last one.
    since: usize,
}

impl Distance {
    fn taken(&mut self, rows: usize) {
        self.since += rows;
    }

    fn refused(&mut self) {
        let last = self.since as f64 + 1.0;
        self.mean = Some(self.mean.map_or(last, |mean| (3.0 * mean + last) / 4.0));
        self.since = 0;
    }

    /// Rows to try at once.
    fn rows(&self) -> usize {
        // Rows that are taken one after the other are a distance, too, though its end is not known yet.
        self.mean.map_or(usize::MAX, |mean| {
            (2.0 * ROWS_OF_A_TRY * mean.max(self.since as f64)).sqrt().max(1.0) as usize
        })
    }
}

/// How a try is undone that was refused.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Undo {
    /// The transaction has nothing but these rows: it begins again.
    Transaction {
        /// The statements that begin it.
        begin: &'static str,
    },
    /// What was before them in the transaction stays.
    Savepoint,
    /// It is not: the load ends at the first row that is refused, and its transaction with it.
    Nothing,
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
    (undo, distance): (Undo, &mut Distance),
) -> Result<Vec<LeftOut>> {
    let mut sending =
        Sending { engine, on, table, rows, undo, taken: Vec::new(), has_savepoint: false };
    let mut refused = Vec::new();
    let mut at = 0;
    // Rows of which one is at fault, though the server does not say which: they end here.
    let mut suspects: Option<usize> = None;
    while at < rows.len() {
        let end = match suspects {
            Some(end) => at + (end - at).div_ceil(2),
            None if table.method == Method::InsertAutocommit => at + 1,
            None => rows.len().min(at.saturating_add(distance.rows())),
        };
        match sending.send(at..end) {
            Err(Refusal::Row { row, column, reason, detail }) if undo == Undo::Nothing => {
                return match row.map(|row| at + row).filter(|row| *row < end) {
                    Some(row) => Ok(vec![refused_row(row as u64, column, reason, detail)]),
                    None => Err(Error::Refused(format!("{reason}: {detail}"))),
                };
            }
            Ok(()) => {
                distance.taken(end - at);
                at = end;
                suspects = suspects.filter(|suspects| *suspects > at);
            }
            Err(Refusal::Failed(error)) => return Err(error),
            Err(Refusal::Row { row, column, reason, detail }) => {
                let named = row.map(|row| at + row).filter(|row| *row < end);
                match named.or_else(|| (end - at == 1).then_some(at)) {
                    Some(row) => {
                        // Those before it were not tried without it.
                        if row > at
                            && let Err(refusal) = sending.send(at..row)
                        {
                            match refusal {
                                Refusal::Failed(error) => return Err(error),
                                // What the server takes depends on what it had before: it is asked again, with fewer.
                                Refusal::Row { .. } => suspects = Some(row),
                            }
                            continue;
                        }
                        distance.taken(row - at);
                        distance.refused();
                        refused.push(refused_row(row as u64, column, reason, detail));
                        at = row + 1;
                        suspects = None;
                    }
                    None => suspects = Some(end),
                }
            }
        }
    }
    if sending.has_savepoint
        && let Some(sql) = engine.release_savepoint_sql()
    {
        sending.on.run(sql, &[])?;
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
    /// Those of these rows that are in the transaction.
    taken: Vec<Range<usize>>,
    /// Whether a savepoint is open, with nothing behind it.
    has_savepoint: bool,
}

impl Sending<'_> {
    fn send(&mut self, range: Range<usize>) -> std::result::Result<(), Refusal> {
        if self.table.method == Method::InsertAutocommit || self.undo == Undo::Nothing {
            return self.on.send(self.table, self.rows, range);
        }
        let begin = match self.undo {
            Undo::Transaction { begin } if self.taken.is_empty() => Some(begin),
            _ => None,
        };
        let whole = begin.is_some();
        if !whole && !self.has_savepoint {
            self.on.run(self.engine.savepoint_sql(), &[])?;
            self.has_savepoint = true;
        }
        match self.on.send(self.table, self.rows, range.clone()) {
            Ok(()) => {
                if !whole {
                    // One round trip: a savepoint within another one would keep locks.
                    self.on.run(self.engine.renew_savepoint_sql(), &[])?;
                }
                match self.taken.last_mut() {
                    Some(last) if last.end == range.start => last.end = range.end,
                    _ => self.taken.push(range),
                }
                Ok(())
            }
            Err(refusal @ Refusal::Row { .. }) => {
                self.undo(begin, &refusal)?;
                Err(refusal)
            }
            Err(failed) => Err(failed),
        }
    }

    /// Undoes a try; `begin` if there was nothing before it in the transaction.
    fn undo(&mut self, begin: Option<&str>, refusal: &Refusal) -> Result<()> {
        if let Some(begin) = begin {
            self.on.run(self.engine.rollback_sql(), &[])?;
            return self.on.run(begin, &[]).map(drop);
        }
        if !self.on.has_lost_transaction() {
            // The savepoint stays open.
            return self.on.run(self.engine.undo_savepoint_sql(), &[]).map(drop);
        }
        let Undo::Transaction { begin } = self.undo else {
            let why = match refusal {
                Refusal::Row { reason, detail, .. } => format!("{reason}: {detail}"),
                Refusal::Failed(error) => error.to_string(),
            };
            return Err(Error::Refused(format!(
                "the server ended the transaction of the load at a row that it refused ({why}), so nothing was loaded; \
                 --resumable loads the others"
            )));
        };
        // A trigger's error ends the transaction: what it had goes again.
        self.has_savepoint = false;
        self.on.run(begin, &[])?;
        for range in self.taken.clone() {
            match self.on.send(self.table, self.rows, range) {
                Ok(()) => {}
                Err(Refusal::Failed(error)) => return Err(error),
                Err(Refusal::Row { reason, .. }) => {
                    return Err(Error::Unavailable(format!(
                        "rows that the server had taken are refused now: {reason}"
                    )));
                }
            }
        }
        Ok(())
    }
}

/// More rows were refused than may be rejects: nobody needs to know the others.
pub fn too_many(count: u64, allowed: u64) -> Error {
    Error::Limit(format!("the server refused {count} rows, over --max-rejects {allowed}"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn tries_are_as_long_as_refusals_are_far_apart() {
        let mut distance = Distance::default();
        distance.taken(5000);
        assert_eq!(distance.rows(), usize::MAX, "all rows, while none was refused");
        for _ in 0..40 {
            distance.refused();
            distance.taken(999);
        }
        let far = distance.rows();
        assert!((300..420).contains(&far), "{far}");
        // Nothing was refused for long.
        distance.taken(100_000);
        assert!(distance.rows() > 3000);
        for _ in 0..40 {
            distance.refused();
        }
        assert!(distance.rows() < 20, "each row is refused");
    }
}
