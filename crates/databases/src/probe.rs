//! A probe of a server: some hundred milliseconds that correct what is known of it, before a load that is long enough.

use std::time::{Duration, Instant};

use coload_types::Result;

use crate::costs::{Allowed, CostModel, Costs, Policy, Unit, Way, Work};
use crate::engine::{Connection, Engine};
use crate::names::TableName;
use crate::options::Method;
use crate::trial::{Shape, Trial, micros};

/// A load that is estimated to last longer is worth a probe, which then is a twentieth of it.
pub const WORTH_IT_US: f64 = 5e6;
/// What a probe may take.
const BUDGET: Duration = Duration::from_millis(250);
/// Rows that are sent at a time: some ten to some hundred KiB.
const ROWS: usize = 1000;
/// By what a method may be slower than the best as it is known, and still be probed.
const CLOSE: f64 = 3.0;
/// Bounds of a correction: what is beyond is an accident of the moment.
const FACTORS: (f64, f64) = (0.1, 20.0);

/// Corrects the costs of the methods that are close to the best, and of the others by the same factor as the best. Says
/// what was found.
///
/// # Errors
/// What the server says, such as that it lets us make no table: the costs are then as they were.
pub fn probe(
    engine: &dyn Engine,
    on: &mut dyn Connection,
    beside: &TableName,
    (methods, work): (&[Method], &Work),
    costs: &mut Costs,
) -> Result<String> {
    let began = Instant::now();
    let shape = Shape::nearest(work.columns, work.row_bytes);
    let trial = Trial::make(engine, on, beside, shape)?;
    let found = measure(engine, on, &trial, (methods, costs), began);
    let removed = trial.remove(engine, on);
    let found = found?;
    removed?;
    let Some((_, of_best)) = found.first() else {
        return Ok("a probe: it could measure nothing".to_owned());
    };
    for method in methods {
        let own = found.iter().find(|(known, _)| known == method);
        costs.slow_down(*method, own.map_or(*of_best, |(_, factor)| *factor));
    }
    let told: Vec<String> = found
        .iter()
        .map(|(method, factor)| format!("{} takes {factor:.2} of what was known", method.name()))
        .collect();
    Ok(format!("a probe of {:.0} ms: {}", micros(began) / 1000.0, told.join(", ")))
}

/// The factors of the methods that are close to the best, the best first.
fn measure(
    engine: &dyn Engine,
    on: &mut dyn Connection,
    trial: &Trial,
    (methods, costs): (&[Method], &Costs),
    began: Instant,
) -> Result<Vec<(Method, f64)>> {
    let columns = trial.columns();
    let mut expected = estimates(methods, costs, columns, trial.row_bytes());
    expected.sort_by(|a, b| a.1.total_cmp(&b.1));
    let least = expected.first().map_or(0.0, |(_, time)| *time);
    let close = expected.iter().filter(|(_, time)| *time <= least * CLOSE).map(|(way, _)| *way);
    let mut found = Vec::new();
    for way in close {
        let rows = trial.rows(engine, way.method, ROWS, 1)?;
        let row_bytes = rows.bytes.len() as f64 / ROWS as f64;
        let mut least = f64::MAX;
        // The first one prepares, and so on.
        for _ in 0..3 {
            if began.elapsed() > BUDGET && least < f64::MAX {
                break;
            }
            least = least.min(trial.send(engine, on, (way.method, way.batch_rows), &rows)?);
        }
        let known = estimates(&[way.method], costs, columns, row_bytes);
        let known = known.first().map_or(least, |(_, time)| *time);
        // Round trips and the commit are known: the work is what is corrected.
        let apart = costs.commit_us + 4.0 * costs.round_trip_us;
        let factor = (least - apart).max(least * 0.1) / (known - apart).max(known * 0.1);
        found.push((way.method, factor.clamp(FACTORS.0, FACTORS.1)));
        if began.elapsed() > BUDGET {
            break;
        }
    }
    Ok(found)
}

/// What [`ROWS`] rows would take by each of the methods.
fn estimates(methods: &[Method], costs: &Costs, columns: usize, row_bytes: f64) -> Vec<(Way, f64)> {
    let (rows, unit) = (ROWS as u64, Unit::Load);
    let work = Work { rows, columns, row_bytes, chunks: 1, unit, commits_wait: true };
    let allowed = Allowed { methods: methods.to_vec(), connections: vec![1], batches: vec![ROWS] };
    // It is connected already.
    let costs = Costs { connect_us: 0.0, ..costs.clone() };
    let estimates = CostModel { costs }.estimates(&work, &allowed);
    estimates.into_iter().map(|estimate| (estimate.way, estimate.time_us)).collect()
}
