//! What makes the rows of a load those of the table, whatever becomes of the answer.

use coload_types::{Error, Result};

use super::Database;
use crate::engine::Connection;
use crate::journal::Journal;

/// Commits the transaction that is open, with the line of the end. If the answer is lost, the journal tells what happened.
///
/// # Errors
/// `Refused` when the server does not commit, `Unavailable` when nobody knows, or it is known that it did not.
pub fn commit(
    database: &Database,
    on: &mut dyn Connection,
    journal: Option<&Journal>,
    rows: u64,
) -> Result<()> {
    let engine = &*database.engine;
    if let Some(journal) = journal {
        journal.put_end(engine, on, rows)?;
    }
    let Err(error) = on.run("COMMIT", &[]) else { return Ok(()) };
    if !matches!(error, Error::Unavailable(_)) {
        return Err(error);
    }
    let Some(journal) = journal else {
        return Err(Error::Unavailable(format!(
            "{error}: the answer to COMMIT is lost and there is no journal: look whether the rows are in {}",
            database.table
        )));
    };
    match connect_again(database)?.has_end(database, journal)? {
        true => Ok(()),
        false => Err(Error::Unavailable(format!("{error}; nothing was loaded"))),
    }
}

/// A new connection, when the one before was lost.
struct Again(Box<dyn Connection>);

impl Again {
    fn has_end(mut self, database: &Database, journal: &Journal) -> Result<bool> {
        journal.has(&*database.engine, &mut *self.0, None)
    }
}

/// Connects as long as patience lasts: the server may be starting.
fn connect_again(database: &Database) -> Result<Again> {
    let began = std::time::Instant::now();
    let pause = std::time::Duration::from_millis(200);
    loop {
        match database.engine.connect() {
            Ok(connection) => return Ok(Again(connection)),
            Err(Error::Unavailable(_)) if began.elapsed() < database.options.patience => {
                std::thread::sleep(pause);
            }
            Err(error) => {
                return Err(Error::Unavailable(format!(
                    "the answer to COMMIT is lost, and the server is away ({error}): its table coload_loads tells \
                     whether the rows are there"
                )));
            }
        }
    }
}
