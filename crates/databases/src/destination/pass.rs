//! The beginning of a pass of a load: what rows go into, how they are sent, and by whom.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::Duration;

use coload_load::{Load, LoadRequest, SendEstimate};
use coload_store::LoadMode;
use coload_types::{Error, Result};
use coload_wire::RejectLimit;

use super::{Begun, Database};
use crate::choice::{Choice, Known, Question, choose};
use crate::costs::{Estimate, Unit, Way};
use crate::crew::{Crew, Start};
use crate::engine::{Connection, RowTable, TableColumn};
use crate::journal::Line;
use crate::names::TableName;
use crate::options::Method;
use crate::queue::Queue;
use crate::rebuild::{Indexes, take_off_in_transaction};
use crate::sender::{Counts, Refused, Sending};
use crate::staging::{Route, Switch, drop_table};
use crate::steering::{Batches, Steering};
use crate::target::Rows;

/// What the last pass was.
#[derive(Default)]
pub struct LastPass {
    /// Passes that have begun.
    pub passes: usize,
    /// The request with the types of the last.
    pub request: Option<LoadRequest>,
    /// Rows that the server refused in it.
    pub refused: Arc<Refused>,
    /// Why rows were sent as they were.
    pub because: Vec<String>,
    /// What was estimated.
    pub estimates: Vec<SendEstimate>,
}

/// Makes what rows go into, and begins to send.
///
/// # Errors
/// What the server says, `Invalid` when no method takes the columns.
pub fn begin_pass(
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
        goes_on: matches!(begun.route, Route::Chunks { .. }),
        commits_wait: engine.beside_waits() || !matches!(begun.route, Route::Beside { .. }),
    };
    let connect_us = begun.connect_us;
    let mut choice = choose(question, begun.control(&**engine)?, connect_us)?;
    let freezes = freezes(database, (request, begun, &choice), (of_rows, &name))?;
    if freezes {
        choice.because.push(
            "rows come frozen (COPY FREEZE): their transaction is that which made or emptied the table".to_owned(),
        );
    }
    let unit = if freezes { Unit::Load } else { unit };
    let first = first_connection(database, begun, &choice, freezes)?;
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
        table: RowTable { name, columns, method, batch_rows, freezes },
        queue: Queue::new(connections, Arc::clone(&load.hooks.cancel)),
        unit,
        begin: match begun.route {
            Route::Beside { .. } => engine.begin_beside_sql(),
            Route::Direct { .. } | Route::Chunks { .. } => engine.begin_sql(),
        },
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
        is_fresh: begun.route == Route::Direct { replaces: false } && begun.rebuild.is_none(),
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
    let rebuild = begun.rebuild;
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
            // Those of the table itself are built when the rows go over.
            let indexes = match rebuild {
                Some(_) => Indexes::LeftOut,
                None => Indexes::Copied,
            };
            engine.make_like(control, (&staging, &database.table), indexes)?;
            (staging, columns)
        }
        Route::Beside { staging, switch: Switch::Exchange { .. } } => {
            engine.make_like(control, (&staging, &database.table), Indexes::Copied)?;
            begun.taken_off = engine.take_off(control, &staging)?;
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
    freezes: bool,
) -> Result<Box<dyn Connection>> {
    let engine = &*database.engine;
    let alone = is_alone(&begun.route, choice);
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
        if begun.rebuild.is_some() {
            match take_off_in_transaction(engine, &mut *on, &database.table)? {
                Ok(taken) => begun.taken_off = taken,
                Err(why) => {
                    begun.rebuild = None;
                    begun.notes.push(why);
                }
            }
        }
    }
    if let (Route::Beside { staging, .. }, true) = (&begun.route, freezes) {
        // That it is emptied makes it the transaction's own, whose commit is the last and waits until it is durable.
        on.run(engine.begin_sql(), &[])?;
        on.run(&engine.empty_sql(staging), &[])?;
    }
    begun.is_open = freezes;
    Ok(on)
}

/// Whether rows go over the connection that looked at the table, and no other.
fn is_alone(route: &Route, choice: &Choice) -> bool {
    match route {
        Route::Direct { .. } => true,
        Route::Beside { .. } => choice.way.connections == 1 && choice.connections_most == 1,
        // It holds the lock of the load, and one with rows may be lost and made again.
        Route::Chunks { .. } => false,
    }
}

/// Whether rows come frozen: in one transaction, which made the table or emptied it, and which ends with the first row that is
/// refused. A savepoint to undo a row by would be another transaction to the server.
fn freezes(
    database: &Database,
    (request, begun, choice): (&LoadRequest, &mut Begun, &Choice),
    (of_rows, table): (Known, &TableName),
) -> Result<bool> {
    let is_copy = matches!(choice.way.method, Method::CopyBinary | Method::CopyText);
    let is_own = match &begun.route {
        Route::Direct { replaces } => *replaces,
        // Of few rows nobody has to freeze any later.
        Route::Beside { switch: Switch::Rename, .. } => {
            is_alone(&begun.route, choice) && of_rows.has_chunks()
        }
        Route::Beside { .. } | Route::Chunks { .. } => false,
    };
    let ends = matches!(request.max_rejects, RejectLimit::Count(0));
    match is_copy && is_own && ends {
        true => database.engine.may_freeze(begun.control(&*database.engine)?, table),
        false => Ok(false),
    }
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
