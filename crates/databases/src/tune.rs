//! Measures a server over the whole grid: methods, connections, rows, shapes.
//!
//! ```text
//!   connect, round trip, commit -> each shape: a table of our own -> each method: rows x connections -> costs that fit
//! ```
//!
//! The tables are removed at the end, whatever it is; those of a measurement that was killed, by the next load.

use std::sync::Barrier;
use std::time::Instant;

use coload_load::RowBytes;
use coload_types::{Error, Result};

use crate::costs::{Cell, Costs, Tuning, fit_method};
use crate::destination::engine_of_url;
use crate::engine::{Connection, Engine};
use crate::names::TableName;
use crate::options::Method;
use crate::staging::remove_dead;
use crate::trial::{Shape, Trial, micros};

/// What is measured.
#[derive(Debug, Clone)]
pub struct TuneOptions {
    /// Methods; all of the engine if none is named.
    pub methods: Vec<Method>,
    /// Numbers of connections over which the same rows are sent.
    pub connections: Vec<usize>,
    /// Most rows of a load that is measured.
    pub rows_max: usize,
    /// How often each load is measured; the least time counts, for what else a machine does only adds to it.
    pub times: usize,
}

impl Default for TuneOptions {
    fn default() -> Self {
        TuneOptions {
            methods: Vec::new(),
            connections: vec![1, 2, 4, 8],
            rows_max: 20_000,
            times: 3,
        }
    }
}

/// Rows of the loads that are measured over one connection.
const ROWS: [usize; 6] = [1, 10, 100, 1000, 10_000, 20_000];
/// Rows of a statement, of methods that have batches.
const BATCHES: [usize; 2] = [100, 1000];
/// A method is not measured with more rows than take so long.
const LONG_US: f64 = 1.5e6;
/// How often a round trip is measured.
const TRIPS: usize = 31;
/// How often a commit is.
const COMMITS: usize = 15;

/// Measures the server of a URL. `told` is told what is done, a line at a time.
///
/// # Errors
/// `Invalid` when the URL is none, `Unavailable` when the server cannot be reached, `Refused` when it does not let us make
/// a table.
pub fn tune(url: &str, options: &TuneOptions, told: &dyn Fn(&str)) -> Result<Tuning> {
    let engine = &*engine_of_url(url)?;
    let beside = TableName { schema: None, name: String::new() };
    let connects = (0..5).map(|_| {
        let began = Instant::now();
        engine.connect().map(|on| (micros(began), on))
    });
    let mut connects = connects.collect::<Result<Vec<_>>>()?;
    let connect_us = median(connects.iter().map(|(time, _)| *time).collect());
    let Some((_, mut on)) = connects.pop() else {
        return Err(Error::Unavailable("no connection".into()));
    };
    drop(connects);
    let on = &mut *on;
    remove_dead(engine, on, &beside)?;
    let round_trip_us = round_trip(on)?;
    let server = on.server();
    told(&format!(
        "{server}: {connect_us:.0} us to connect, {round_trip_us:.0} us for a round trip"
    ));
    let methods = methods(engine, on, options, told)?;
    let mut costs = Costs { connect_us, round_trip_us, commit_us: 0.0, methods: Vec::new() };
    let mut cells = Vec::new();
    for shape in Shape::ALL {
        let trial = Trial::make(engine, on, &beside, shape).map_err(|error| {
            Error::Refused(format!(
                "tune sends its rows into a table of its own, which the server does not let it make: {error}"
            ))
        })?;
        let grid = Grid { engine, trial: &trial, options, told };
        let measured = grid.measure(on, &methods, &mut costs, shape);
        let removed = trial.remove(engine, on);
        cells.extend(measured?);
        removed?;
    }
    costs.methods =
        methods.iter().filter_map(|method| fit_method(*method, &cells, &costs)).collect();
    Ok(Tuning { server, costs, cells })
}

/// The methods that the server takes.
fn methods(
    engine: &dyn Engine,
    on: &mut dyn Connection,
    options: &TuneOptions,
    told: &dyn Fn(&str),
) -> Result<Vec<Method>> {
    let mut methods = Vec::new();
    let lacks = on.lacks();
    for method in engine.methods() {
        if !options.methods.is_empty() && !options.methods.contains(method) {
            continue;
        }
        match &lacks {
            Some((lacking, why)) if lacking == method => {
                told(&format!("{} is left out: {why}", method.name()));
            }
            _ => methods.push(*method),
        }
    }
    if let Err(error) = on.others(&[]) {
        told(&format!(
            "what others on the server wait for is not told, so that loads cannot mind it: {error}"
        ));
    }
    match methods.is_empty() {
        false => Ok(methods),
        true => Err(Error::Invalid("none of these methods is one of the server".into())),
    }
}

fn round_trip(on: &mut dyn Connection) -> Result<f64> {
    let times = (0..TRIPS).map(|_| {
        let began = Instant::now();
        on.run("SELECT 1", &[]).map(|_| micros(began))
    });
    times.collect::<Result<_>>().map(median)
}

fn least(times: Vec<f64>) -> f64 {
    times.into_iter().fold(f64::MAX, f64::min)
}

fn median(mut times: Vec<f64>) -> f64 {
    times.sort_by(f64::total_cmp);
    times.get(times.len() / 2).copied().unwrap_or(0.0)
}

/// The loads of a table.
struct Grid<'a> {
    engine: &'a dyn Engine,
    trial: &'a Trial,
    options: &'a TuneOptions,
    told: &'a dyn Fn(&str),
}

impl Grid<'_> {
    fn measure(
        &self,
        on: &mut dyn Connection,
        methods: &[Method],
        costs: &mut Costs,
        shape: Shape,
    ) -> Result<Vec<Cell>> {
        if costs.commit_us == 0.0 {
            costs.commit_us = self.commit(on, methods, costs.round_trip_us)?;
            (self.told)(&format!("{:.0} us for a commit", costs.commit_us));
        }
        let mut cells = Vec::new();
        for method in methods {
            let batches: &[usize] = if method.has_batches() { &BATCHES } else { &[0] };
            for batch in batches {
                let own = self.alone(on, shape, (*method, *batch))?;
                let largest = own.last().copied();
                cells.extend(own);
                // How connections share the server hardly depends on the shape.
                if let Some(largest) = largest.filter(|_| shape == Shape::Text) {
                    cells.extend(self.together(on, largest)?);
                }
            }
            let last = cells.last().map_or(0.0, |cell| cell.time_us / cell.rows as f64);
            (self.told)(&format!("{shape:?} {}: {last:.2} us a row at last", method.name()));
        }
        Ok(cells)
    }

    /// What COMMIT takes behind one row, beside its round trip.
    fn commit(&self, on: &mut dyn Connection, methods: &[Method], trip_us: f64) -> Result<f64> {
        let Some(method) = methods.iter().find(|method| **method != Method::InsertAutocommit)
        else {
            return Ok(0.0);
        };
        let rows = self.trial.rows(self.engine, *method, 1, 1)?;
        let mut times = Vec::new();
        for _ in 0..COMMITS {
            let (_, commit_us) =
                self.trial.send_and_commit(self.engine, on, (*method, 1), &rows)?;
            times.push((commit_us - trip_us).max(0.0));
        }
        Ok(median(times))
    }

    /// Loads over one connection, of ever more rows.
    fn alone(
        &self,
        on: &mut dyn Connection,
        shape: Shape,
        (method, batch_rows): (Method, usize),
    ) -> Result<Vec<Cell>> {
        let mut cells = Vec::new();
        for count in ROWS.into_iter().filter(|count| *count <= self.options.rows_max) {
            let rows = self.trial.rows(self.engine, method, count, count as u64)?;
            let mut times = Vec::new();
            for _ in 0..self.options.times.max(1) {
                times.push(self.trial.send(self.engine, on, (method, batch_rows), &rows)?);
            }
            self.trial.empty(self.engine, on)?;
            let time_us = least(times);
            cells.push(Cell {
                method,
                connections: 1,
                batch_rows,
                rows: count as u64,
                columns: shape.columns(),
                row_bytes: rows.bytes.len() as f64 / count as f64,
                time_us,
            });
            if time_us > LONG_US / 5.0 {
                break;
            }
        }
        Ok(cells)
    }

    /// The same rows as those of a load over one connection, over more.
    fn together(&self, on: &mut dyn Connection, one: Cell) -> Result<Vec<Cell>> {
        let mut cells = Vec::new();
        let wanted = self.options.connections.iter().copied();
        for connections in wanted.filter(|n| *n > 1 && *n as u64 <= one.rows) {
            let mut lines = match self.connect(connections) {
                Ok(lines) => lines,
                Err(error) => {
                    (self.told)(&format!("{connections} connections are left out: {error}"));
                    break;
                }
            };
            let each = one.rows as usize / connections;
            let rows = self.trial.rows(self.engine, one.method, each, connections as u64)?;
            let mut times = Vec::new();
            for _ in 0..self.options.times.max(1) {
                times.push(self.at_once(&mut lines, &rows, one)?);
            }
            self.trial.empty(self.engine, on)?;
            cells.push(Cell { connections, time_us: least(times), ..one });
        }
        Ok(cells)
    }

    fn connect(&self, connections: usize) -> Result<Vec<Box<dyn Connection>>> {
        (0..connections).map(|_| self.engine.connect()).collect()
    }

    /// Sends the rows over each of the connections at the same time.
    fn at_once(
        &self,
        lines: &mut [Box<dyn Connection>],
        rows: &RowBytes,
        one: Cell,
    ) -> Result<f64> {
        let barrier = Barrier::new(lines.len() + 1);
        let Grid { engine, trial, .. } = *self;
        std::thread::scope(|scope| {
            let threads: Vec<_> = lines
                .iter_mut()
                .map(|on| {
                    let barrier = &barrier;
                    scope.spawn(move || {
                        barrier.wait();
                        let how = (one.method, one.batch_rows);
                        trial.send(engine, &mut **on, how, rows)
                    })
                })
                .collect();
            barrier.wait();
            let began = Instant::now();
            for thread in threads {
                let sent = thread.join();
                sent.map_err(|_| Error::Unavailable("a thread that sends panicked".into()))??;
            }
            Ok(micros(began))
        })
    }
}
