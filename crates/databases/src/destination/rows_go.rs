//! Rows go, what was refused is settled, and all is published.

use std::cell::RefCell;
use std::collections::BTreeMap;
use std::sync::Arc;
use std::sync::atomic::Ordering;

use coload_load::{
    DatabaseReport, Load, LoadReport, LoadRequest, Ran, SentBy, read_again, run_passes,
};
use coload_store::LoadMode;
use coload_threads::{Started, lock};
use coload_types::{Error, Place, Result};
use coload_wire::RejectLimit;

use super::{Begun, Database, chunks_of, publish};
use crate::engine::{Connection, RowTable};
use crate::queue::Queue;
use crate::sender::{Counts, Refused, Sending, Unit};
use crate::staging::{Route, Switch, drop_table, switch_sql};
use crate::target::{Rows, Settled};

/// Rows of a statement that has many, if nothing is given.
const BATCH_ROWS: usize = 1000;
/// Fragments that wait for a connection.
const WAITING: usize = 1;

/// What the last pass was.
#[derive(Default)]
struct LastPass {
    passes: usize,
    request: Option<LoadRequest>,
    refused: Arc<Refused>,
    because: Vec<String>,
}

/// Loads the rows, and publishes them.
///
/// # Errors
/// Those of a load.
pub fn run(
    database: &Database,
    load: Load<'_>,
    begun: &mut Begun,
    started: &Started,
) -> Result<LoadReport> {
    let last = RefCell::new(LastPass::default());
    let scratch = std::env::temp_dir().join(format!("coload-stream-{}", begun.id));
    let ran = {
        let begun = RefCell::new(&mut *begun);
        run_passes(load, &scratch, |request| {
            begin_pass(database, load, request, (&mut begun.borrow_mut(), &mut last.borrow_mut()))
        })
    };
    let last = last.into_inner();
    let ran = settle(load, ran, &last)?;
    let mut connections = ran.target.take_connections();
    let rows = {
        let sending = ran.target.sending();
        sending.counts.rows.load(Ordering::Relaxed) - last.refused.count.load(Ordering::Relaxed)
    };
    publish_rows(database, begun, &ran, (&mut connections, rows))?;
    report(begun, ran, last, (connections.len(), started))
}

/// Makes what rows go into, and begins to send.
fn begin_pass(
    database: &Database,
    load: Load<'_>,
    request: &LoadRequest,
    (begun, last): (&mut Begun, &mut LastPass),
) -> Result<Rows> {
    let engine = &database.engine;
    let is_first = last.passes == 0;
    last.passes += 1;
    let control = &mut *begun.control;
    let mut known = BTreeMap::new();
    let (name, columns) = match &begun.route {
        Route::Direct { .. } => (database.table.clone(), begun.into.columns.clone()),
        Route::Beside { staging, switch: Switch::Rename } => {
            drop_table(&**engine, control, staging)?;
            (staging.clone(), database.make(control, staging, &request.schema)?)
        }
        Route::Beside { staging, switch: Switch::Move { .. } } => {
            drop_table(&**engine, control, staging)?;
            control.run(&engine.like_sql(staging, &database.table), &[])?;
            (staging.clone(), begun.into.columns.clone())
        }
        Route::Chunks { makes } => {
            if !is_first {
                return Err(Error::Invalid(
                    "--resumable: a column needs a wider type than was inferred, and chunks are committed already (give \
                     --columns; the table has the narrower type)"
                        .into(),
                ));
            }
            if let Some(journal) = &begun.journal {
                known = journal.read(&**engine, control)?.0;
            }
            if *makes {
                (database.table.clone(), database.make(control, &database.table, &request.schema)?)
            } else if request.mode == LoadMode::Create && known.is_empty() {
                return Err(Error::Invalid(format!("--create: table {} is there", database.table)));
            } else {
                (database.table.clone(), begun.into.columns.clone())
            }
        }
    };
    let (method, why, form) = database.method(&columns)?;
    let (count, why_connections) = database.connections(&begun.route, chunks_of(load));
    let mut connections = vec![engine.connect()?];
    while connections.len() < count {
        match engine.connect() {
            Ok(connection) => connections.push(connection),
            // Fewer will do.
            Err(error) => {
                begun.notes.push(format!("{} of {count} connections: {error}", connections.len()));
                break;
            }
        }
    }
    let unit = match &begun.route {
        Route::Direct { replaces } => {
            let on = &mut *connections[0];
            on.run(engine.begin_sql(), &[])?;
            if *replaces {
                on.run(&engine.empty_sql(&database.table), &[])?;
            }
            Unit::Load
        }
        Route::Beside { .. } | Route::Chunks { .. } => Unit::Chunk,
    };
    let allowed = match request.max_rejects {
        RejectLimit::Count(count) => Some(count),
        RejectLimit::Percent(_) => None,
    };
    let batch_rows = database.options.batch_rows.unwrap_or(BATCH_ROWS);
    let refused = Arc::new(Refused { allowed, ..Refused::default() });
    last.request = Some(request.clone());
    last.refused = Arc::clone(&refused);
    last.because = vec![why, why_connections];
    let is_chunks = matches!(begun.route, Route::Chunks { .. });
    let sending = Sending {
        engine: Arc::clone(engine),
        table: RowTable { name, columns, method, batch_rows },
        queue: Queue::new(connections.len() * WAITING, Arc::clone(&load.hooks.cancel)),
        unit,
        journal: begun.journal.clone().filter(|_| is_chunks),
        known,
        patience: database.options.patience,
        refused,
        counts: Counts::default(),
    };
    Rows::begin(form, sending, connections)
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
    let Begun { control, route, journal, .. } = begun;
    match route {
        Route::Direct { .. } => {
            let Some(on) = connections.first_mut() else {
                return Err(Error::Unavailable("the connection with the rows is gone".into()));
            };
            publish::commit(database, &mut **on, journal.as_ref(), rows)
        }
        Route::Beside { staging, switch } => {
            let columns: Vec<&str> = ran
                .target
                .sending()
                .table
                .columns
                .iter()
                .map(|column| column.name.as_str())
                .collect();
            control.run(engine.begin_sql(), &[])?;
            for sql in switch_sql(engine, *switch, (staging, &database.table), &columns) {
                control.run(&sql, &[])?;
            }
            publish::commit(database, &mut **control, journal.as_ref(), rows)?;
            if matches!(switch, Switch::Move { .. }) {
                // The rows are there: what cannot be removed now, the next load removes.
                let _ = drop_table(engine, &mut **control, staging);
            }
            Ok(())
        }
        Route::Chunks { .. } => {
            control.run(engine.begin_sql(), &[])?;
            publish::commit(database, &mut **control, journal.as_ref(), rows)
        }
    }
}

fn report(
    begun: &Begun,
    ran: Ran<Rows>,
    last: LastPass,
    (connections, started): (usize, &Started),
) -> Result<LoadReport> {
    let (mut report, target) = ran.into_report(begun.id, started)?;
    let Sending { table, counts, .. } = target.sending();
    let guarantee = match &begun.route {
        Route::Direct { .. } => "atomic: one transaction",
        Route::Beside { switch: Switch::Rename, .. } => {
            "atomic: a table beside it, which got the name"
        }
        Route::Beside { .. } => {
            "atomic: a table beside it, whose rows went over in one transaction"
        }
        Route::Chunks { .. } => "resumable: each chunk is committed with a line in coload_loads",
    };
    let mut because = last.because;
    because.extend(begun.notes.iter().cloned());
    let batch_rows = if table.method.has_batches() { table.batch_rows } else { 0 };
    report.database = Some(DatabaseReport {
        server: begun.control.server(),
        sent: SentBy {
            method: table.method.name().to_owned(),
            connections,
            batch_rows,
            bytes: counts.bytes.load(Ordering::Relaxed),
        },
        because,
        guarantee: guarantee.to_owned(),
        committed_before: counts.before.load(Ordering::Relaxed),
        refused: last.refused.count.load(Ordering::Relaxed),
    });
    Ok(report)
}
