//! Rows go, what was refused is settled, and all is published.

use std::cell::RefCell;
use std::collections::BTreeMap;
use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::time::Duration;

use coload_load::{
    DatabaseReport, Load, LoadReport, LoadRequest, Ran, SendChange, SendEstimate, SentBy,
    read_again, run_passes,
};
use coload_store::LoadMode;
use coload_threads::{Started, lock};
use coload_types::{Error, Place, Result};
use coload_wire::RejectLimit;

use super::{Begun, Database, publish};
use crate::choice::{Choice, Known, Question, choose};
use crate::costs::{Estimate, Unit, Way};
use crate::crew::{Crew, Start};
use crate::engine::{Connection, RowTable, TableColumn};
use crate::journal::Line;
use crate::names::TableName;
use crate::queue::Queue;
use crate::sender::{Counts, Refused, Sending};
use crate::staging::{Route, Switch, drop_table, switch_sql};
use crate::steering::{Batches, Change, Steering};
use crate::target::{Rows, Settled};

/// What the last pass was.
#[derive(Default)]
struct LastPass {
    passes: usize,
    request: Option<LoadRequest>,
    refused: Arc<Refused>,
    because: Vec<String>,
    estimates: Vec<SendEstimate>,
}

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
            begin_pass(database, (load, known), request, (&mut begun.borrow_mut(), &mut last.borrow_mut()))
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

/// Makes what rows go into, and begins to send.
fn begin_pass(
    database: &Database,
    (load, of_rows): (Load<'_>, Known),
    request: &LoadRequest,
    (begun, last): (&mut Begun, &mut LastPass),
) -> Result<Rows> {
    let engine = &database.engine;
    let (name, columns, known) = make_table(database, request, begun, last.passes)?;
    last.passes += 1;
    let unit = match &begun.route {
        Route::Direct { .. } => Unit::Load,
        Route::Beside { .. } | Route::Chunks { .. } => Unit::Chunk,
    };
    let question = Question {
        engine: &**engine,
        options: &database.options,
        table: &database.table,
        columns: &columns,
        known: of_rows,
        unit,
    };
    let connect_us = begun.connect_us;
    let choice = choose(question, begun.control(&**engine)?, connect_us)?;
    let first = first_connection(database, begun, &choice)?;
    let allowed = match request.max_rejects {
        RejectLimit::Count(count) => Some(count),
        RejectLimit::Percent(_) => None,
    };
    let refused = Arc::new(Refused { allowed, ..Refused::default() });
    last.request = Some(request.clone());
    last.refused = Arc::clone(&refused);
    last.because.clone_from(&choice.because);
    last.estimates = estimates(&choice);
    let Way { method, connections, batch_rows } = choice.way;
    let is_chunks = matches!(begun.route, Route::Chunks { .. });
    let sending = Sending {
        engine: Arc::clone(engine),
        table: RowTable { name, columns, method, batch_rows },
        queue: Queue::new(connections, Arc::clone(&load.hooks.cancel)),
        unit,
        journal: begun.journal.clone().filter(|_| is_chunks),
        known,
        patience: database.options.patience,
        refused,
        counts: Counts::default(),
    };
    let steers = database.options.connections.is_none() && choice.connections_most > 1;
    let start = Start {
        connections,
        steering: steers.then(|| Steering::new(connections, choice.connections_most)),
        batches: Batches::new(batch_rows, database.options.batch_rows.is_some()),
        is_fresh: begun.route == Route::Direct { replaces: false },
    };
    Ok(Rows::new(choice.form, Crew::begin(sending, first, start)?))
}

/// The table that rows go into, its columns, and the chunks that are in it already.
fn make_table(
    database: &Database,
    request: &LoadRequest,
    begun: &mut Begun,
    passes: usize,
) -> Result<(TableName, Vec<TableColumn>, BTreeMap<usize, Line>)> {
    let engine = &*database.engine;
    let route = begun.route.clone();
    let (journal, columns) = (begun.journal.clone(), begun.into.columns.clone());
    let control = begun.control(engine)?;
    let mut known = BTreeMap::new();
    if let Route::Beside { staging, .. } = &route
        && passes > 0
    {
        drop_table(engine, control, staging)?;
    }
    let (name, columns) = match route {
        Route::Direct { .. } => (database.table.clone(), columns),
        Route::Beside { staging, switch: Switch::Rename } => {
            let columns = database.make(control, &staging, &request.schema)?;
            (staging, columns)
        }
        Route::Beside { staging, switch: Switch::Move { .. } } => {
            control.run(&engine.like_sql(&staging, &database.table), &[])?;
            (staging, columns)
        }
        Route::Chunks { makes } => {
            if passes > 0 {
                return Err(Error::Invalid(
                    "--resumable: a column needs a wider type than was inferred, and chunks are committed already (give \
                     --columns; the table has the narrower type)"
                        .into(),
                ));
            }
            if let Some(journal) = &journal {
                known = journal.read(engine, control)?.0;
            }
            let table = database.table.clone();
            if makes {
                let columns = database.make(control, &table, &request.schema)?;
                (table, columns)
            } else if request.mode == LoadMode::Create && known.is_empty() {
                return Err(Error::Invalid(format!("--create: table {table} is there")));
            } else {
                (table, columns)
            }
        }
    };
    Ok((name, columns, known))
}

/// The connection over which rows go first: the one that there is, where nothing else is asked while they go.
fn first_connection(
    database: &Database,
    begun: &mut Begun,
    choice: &Choice,
) -> Result<Box<dyn Connection>> {
    let engine = &*database.engine;
    let alone = match &begun.route {
        Route::Direct { .. } => true,
        Route::Beside { .. } => choice.way.connections == 1 && choice.connections_most == 1,
        // It holds the lock of the load, and one with rows may be lost and made again.
        Route::Chunks { .. } => false,
    };
    let kept = begun.control.take_if(|_| alone);
    let mut on = match kept {
        Some(on) => on,
        None => engine.connect()?,
    };
    if let Route::Direct { replaces } = begun.route {
        on.run(engine.begin_sql(), &[])?;
        if replaces {
            on.run(&engine.empty_sql(&database.table), &[])?;
        }
    }
    Ok(on)
}

fn estimates(choice: &Choice) -> Vec<SendEstimate> {
    let told = |estimate: &Estimate| {
        let Way { method, connections, batch_rows } = estimate.way;
        SendEstimate {
            method: method.name().to_owned(),
            connections,
            batch_rows,
            time: Duration::from_secs_f64(estimate.time_us.clamp(0.0, 1e15) / 1e6),
            chosen: estimate.way == choice.way,
        }
    };
    choice.estimates.iter().map(told).collect()
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
            let control = begun.control(engine)?;
            control.run(engine.begin_sql(), &[])?;
            for sql in switch_sql(engine, *switch, (staging, &database.table), &columns) {
                control.run(&sql, &[])?;
            }
            publish::commit(database, control, journal.as_ref(), rows)?;
            if matches!(switch, Switch::Move { .. }) {
                // The rows are there: what cannot be removed now, the next load removes.
                let _ = drop_table(engine, control, staging);
            }
            Ok(())
        }
        Route::Chunks { .. } => {
            let control = begun.control(engine)?;
            control.run(engine.begin_sql(), &[])?;
            publish::commit(database, control, journal.as_ref(), rows)
        }
    }
}

fn report(
    begun: &Begun,
    ran: Ran<Rows>,
    last: LastPass,
    started: &Started,
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
