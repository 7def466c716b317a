//! Rows go, what was refused is settled, and all is published.

use std::cell::RefCell;
use std::sync::atomic::Ordering;

use coload_load::{
    DatabaseReport, Load, LoadReport, Ran, SendChange, SentBy, read_again, run_passes,
};
use coload_threads::{Started, lock};
use coload_types::{Error, Place, Result};

use super::pass::{LastPass, begin_pass};
use super::{Begun, Database, publish};
use crate::choice::Known;
use crate::engine::Connection;
use crate::names::TableName;
use crate::rebuild::take_off_in_transaction;
use crate::sender::Sending;
use crate::staging::{Route, Switch, drop_table, switch_sql};
use crate::steering::Change;
use crate::target::{Rows, Settled};

/// Loads the rows, and publishes them.
///
/// # Errors
/// Those of a load.
pub fn run(
    database: &Database,
    (load, known): (Load<'_>, Known),
    begun: &mut Begun,
    started: &Started,
) -> Result<LoadReport> {
    let last = RefCell::new(LastPass::default());
    let scratch = std::env::temp_dir().join(format!("coload-stream-{}", begun.id));
    let ran = {
        let begun = RefCell::new(&mut *begun);
        run_passes(load, &scratch, |request| {
            begin_pass(
                database,
                (load, known),
                request,
                (&mut begun.borrow_mut(), &mut last.borrow_mut()),
            )
        })
    };
    let last = last.into_inner();
    let ran = settle(load, ran, &last)?;
    let mut connections = ran.target.take_connections();
    if begun.control.is_none() && !matches!(begun.route, Route::Direct { .. }) {
        begun.control = connections.pop();
    }
    let rows = {
        let sending = ran.target.sending();
        sending.counts.rows.load(Ordering::Relaxed) - last.refused.count.load(Ordering::Relaxed)
    };
    publish_rows(database, begun, &ran, (&mut connections, rows))?;
    report(begun, ran, last, started)
}

/// Makes rejects of the rows that the server refused, and so an account that agrees.
fn settle(load: Load<'_>, ran: Result<Ran<Rows>>, last: &LastPass) -> Result<Ran<Rows>> {
    let refused = std::mem::take(&mut *lock(&last.refused.by_chunk));
    let Some(first) = refused.values().flatten().next().cloned() else { return ran };
    let Some(request) = &last.request else { return ran };
    if let Err(error) = &ran
        && !matches!(error, Error::Limit(_))
    {
        return ran;
    }
    if let Some(input) = request.inputs.read_once() {
        return Err(Error::Input {
            place: Box::new(Place { file: input.name, ..Place::default() }),
            text: format!(
                "the server refused {} rows, the first for {}; of what can be read only once they cannot be told or set \
                 aside (load a file)",
                last.refused.count.load(Ordering::Relaxed),
                first.told.reason
            ),
        });
    }
    let target = Settled::new(refused);
    let loaded = read_again(Load { request, ..load }, &target)?;
    ran.map(|ran| Ran { loaded, ..ran })
}

fn publish_rows(
    database: &Database,
    begun: &mut Begun,
    ran: &Ran<Rows>,
    (connections, rows): (&mut [Box<dyn Connection>], u64),
) -> Result<()> {
    let engine = &*database.engine;
    let (route, journal) = (begun.route.clone(), begun.journal.clone());
    match &route {
        Route::Direct { .. } => {
            let Some(on) = connections.first_mut() else {
                return Err(Error::Unavailable("the connection with the rows is gone".into()));
            };
            if begun.rebuild.is_some() {
                let took = begun.taken_off.restore(&mut **on)?;
                begun.notes.extend(begun.taken_off.told(took));
            }
            publish::commit(database, &mut **on, journal.as_ref(), rows)
        }
        Route::Beside { staging, switch: Switch::Exchange { replaces } } => {
            publish::exchange(database, begun, (staging, *replaces), rows)
        }
        Route::Beside { staging, switch } => {
            publish_beside(database, begun, ran, (staging, *switch), rows)
        }
        Route::Chunks { .. } => {
            let control = begun.control(engine)?;
            control.run(engine.begin_sql(), &[])?;
            publish::commit(database, control, journal.as_ref(), rows)
        }
    }
}

/// Makes the rows of a table beside it those of the table, in one transaction.
fn publish_beside(
    database: &Database,
    begun: &mut Begun,
    ran: &Ran<Rows>,
    (staging, switch): (&TableName, Switch),
    rows: u64,
) -> Result<()> {
    let engine = &*database.engine;
    let loaded = &ran.target.sending().table.columns;
    let columns: Vec<&str> = loaded.iter().map(|column| column.name.as_str()).collect();
    match (begun.is_open, &begun.control) {
        (true, None) => {
            return Err(Error::Unavailable("the connection with the rows is gone".into()));
        }
        (true, Some(_)) => {}
        (false, _) => drop(begun.control(engine)?.run(engine.begin_sql(), &[])?),
    }
    let rebuilds = begun.rebuild.is_some();
    let control = begun.control(engine)?;
    let mut statements = switch_sql(engine, switch, (staging, &database.table), &columns);
    let last = statements.pop();
    for sql in statements {
        control.run(&sql, &[])?;
    }
    let taken = match rebuilds {
        true => Some(take_off_in_transaction(engine, control, &database.table)?),
        false => None,
    };
    if let Some(sql) = last {
        publish::run_switch(database, begun, &sql, staging)?;
    }
    match taken {
        Some(Ok(taken)) => {
            let took = taken.restore(begun.control(engine)?)?;
            begun.notes.extend(taken.told(took));
        }
        Some(Err(why)) => begun.notes.push(why),
        None => {}
    }
    let journal = begun.journal.clone();
    let control = begun.control(engine)?;
    publish::commit(database, control, journal.as_ref(), rows)?;
    if matches!(switch, Switch::Move { .. }) {
        // The rows are there: what cannot be removed now, the next load removes.
        let _ = drop_table(engine, control, staging);
    }
    Ok(())
}

fn report(begun: &Begun, ran: Ran<Rows>, last: LastPass, started: &Started) -> Result<LoadReport> {
    let (mut report, target) = ran.into_report(begun.id, started)?;
    let Sending { table, counts, .. } = target.sending();
    let guarantee = match &begun.route {
        Route::Direct { .. } => "atomic: one transaction",
        Route::Beside { switch: Switch::Rename, .. } => {
            "atomic: a table beside it, which got the name"
        }
        Route::Beside { switch: Switch::Exchange { .. }, .. } => {
            "atomic: a table beside it, which took its place"
        }
        Route::Beside { .. } => {
            "atomic: a table beside it, whose rows went over in one transaction"
        }
        Route::Chunks { .. } => "resumable: each chunk is committed with a line in coload_loads",
    };
    let (connections, batch_rows, changes, notes) = target.crew().told();
    let mut because = last.because;
    because.extend(begun.notes.iter().cloned());
    because.extend(notes);
    let batch_rows = if table.method.has_batches() { batch_rows } else { 0 };
    let change = |change: Change| SendChange {
        after: change.at,
        connections: change.connections,
        why: change.why,
    };
    report.database = Some(DatabaseReport {
        server: begun.server.clone(),
        sent: SentBy {
            method: table.method.name().to_owned(),
            connections,
            batch_rows,
            bytes: counts.bytes.load(Ordering::Relaxed),
        },
        because,
        estimates: last.estimates,
        changes: changes.into_iter().map(change).collect(),
        guarantee: guarantee.to_owned(),
        committed_before: counts.before.load(Ordering::Relaxed),
        refused: last.refused.count.load(Ordering::Relaxed),
    });
    Ok(report)
}
