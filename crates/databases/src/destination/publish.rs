//! What makes the rows of a load those of the table, whatever becomes of the answer.

use coload_types::{Error, Result};

use coload_store::LoadId;

use super::{Begun, Database};
use crate::engine::Connection;
use crate::journal::Journal;
use crate::names::TableName;
use crate::rebuild::{Ddl, has_rows};
use crate::staging::{PREFIX, drop_table, exchange_sql};

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

/// Runs the statement by which a table beside it becomes the table. Where it is no matter of a transaction and its answer is
/// lost, the names of the tables tell what happened.
///
/// # Errors
/// `Refused` when the server does not do it, `Unavailable` when nobody knows, or it is known that it did not.
pub fn run_switch(
    database: &Database,
    begun: &mut Begun,
    sql: &str,
    staging: &TableName,
) -> Result<()> {
    let engine = &*database.engine;
    let error = match begun.control(engine)?.run(sql, &[]) {
        Ok(_) => return Ok(()),
        Err(error @ Error::Unavailable(_)) if engine.ddl() == Ddl::CommitsAtOnce => error,
        Err(error) => return Err(error),
    };
    let Again(mut on) = connect_again(database)?;
    let is_done = on.describe(staging)?.is_none() && on.describe(&database.table)?.is_some();
    begun.control = Some(on);
    match is_done {
        true => Ok(()),
        false => Err(Error::Unavailable(format!("{error}; nothing was loaded"))),
    }
}

/// Has a table beside it, whose indexes are built now, take the place of the table. The rows that others wrote into that one
/// meanwhile go over, unless they were to go anyway.
///
/// # Errors
/// Those of [`run_switch`]; what the server says of the indexes.
pub fn exchange(
    database: &Database,
    begun: &mut Begun,
    (staging, replaces): (&TableName, bool),
    rows: u64,
) -> Result<()> {
    let engine = &*database.engine;
    let taken = begun.taken_off.clone();
    let took = taken.restore(begun.control(engine)?)?;
    begun.notes.extend(taken.told(took));
    // What a load leaves that dies here: rows that were to go are removed by the next load, others by nobody.
    let old = match replaces {
        true => format!("{PREFIX}{}", LoadId::random()?),
        false => format!("{PREFIX}old_{}", begun.id),
    };
    let old = database.table.beside(old);
    run_switch(database, begun, &exchange_sql(engine, (staging, &database.table), &old), staging)?;
    // The rows are there, whatever becomes of the rest.
    if let Err(error) = after_exchange(database, begun, (&old, replaces), rows) {
        begun.notes.push(format!(
            "the rows are there, and table {old}, which was {}, too: {error}",
            database.table
        ));
    }
    Ok(())
}

fn after_exchange(
    database: &Database,
    begun: &mut Begun,
    (old, replaces): (&TableName, bool),
    rows: u64,
) -> Result<()> {
    let engine = &*database.engine;
    let (journal, quotes) = (begun.journal.clone(), engine.quotes());
    let control = begun.control(engine)?;
    control.run(engine.begin_sql(), &[])?;
    if !replaces && has_rows(engine, control, old)? {
        let columns = control.describe(old)?.unwrap_or_default();
        let given = columns.iter().filter(|column| !column.is_generated);
        let list = quotes.list(given.map(|column| column.name.as_str()));
        let (table, old) = (quotes.table(&database.table), quotes.table(old));
        control.run(&format!("INSERT INTO {table} ({list}) SELECT {list} FROM {old}"), &[])?;
    }
    commit(database, control, journal.as_ref(), rows)?;
    drop_table(engine, control, old)
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
