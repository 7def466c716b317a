//! Estimates of every way to send a load, and the cheapest.

use std::fmt::Debug;

use super::{Costs, MethodCosts};
use crate::options::Method;

/// What is to be sent.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Work {
    /// Rows.
    pub rows: u64,
    /// Columns of a row.
    pub columns: usize,
    /// Bytes of a row as it is sent.
    pub row_bytes: f64,
    /// Chunks into which the rows are cut: no more connections than these have work.
    pub chunks: u64,
    /// What is one transaction.
    pub unit: Unit,
    /// Whether each commit waits until it is durable, and not only the last.
    pub commits_wait: bool,
}

/// What is one transaction.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Unit {
    /// The whole load, over one connection.
    Load,
    /// A chunk of rows.
    Chunk,
}

/// A way to send rows.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Way {
    /// How they are sent.
    pub method: Method,
    /// Over so many connections.
    pub connections: usize,
    /// Rows of a statement, of methods that have batches; 0 of others.
    pub batch_rows: usize,
}

/// What may be chosen.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Allowed {
    /// Methods that the columns and the server allow.
    pub methods: Vec<Method>,
    /// Numbers of connections.
    pub connections: Vec<usize>,
    /// Rows of a statement.
    pub batches: Vec<usize>,
}

/// What a way would take.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Estimate {
    /// The way.
    pub way: Way,
    /// Time from the first connection to the last commit.
    pub time_us: f64,
}

/// Says what ways to send a load would take.
pub trait Policy: Debug + Send + Sync {
    /// An estimate of each way that is allowed, in the order of methods and connections, each with the best of the batches.
    fn estimates(&self, work: &Work, allowed: &Allowed) -> Vec<Estimate>;
}

/// A policy by the costs of a server.
#[derive(Debug, Clone, PartialEq)]
pub struct CostModel {
    /// What was measured.
    pub costs: Costs,
}

/// Share by which another way must be faster: more connections take of what others need.
const WORTH_IT: f64 = 0.03;
/// Microseconds by which it must be faster: less is nothing to who waits, and estimates are not so exact.
const WORTH_IT_US: f64 = 100.0;

/// The cheapest of estimates; of those that are as good, the one with the fewest connections, and of these the first: methods
/// that are good for many rows come first, and there may be more rows than was thought. `None` of none.
pub fn cheapest(estimates: &[Estimate]) -> Option<Estimate> {
    let least = estimates.iter().map(|estimate| estimate.time_us).min_by(f64::total_cmp)?;
    let limit = least * (1.0 + WORTH_IT) + WORTH_IT_US;
    let good = estimates.iter().filter(|e| e.time_us <= limit);
    good.min_by_key(|estimate| estimate.way.connections).copied()
}

impl Policy for CostModel {
    fn estimates(&self, work: &Work, allowed: &Allowed) -> Vec<Estimate> {
        let mut estimates = Vec::new();
        for method in &allowed.methods {
            let Some(costs) = self.costs.of(*method) else { continue };
            for connections in &allowed.connections {
                let way = |batch_rows| Way {
                    method: *method,
                    connections: *connections,
                    batch_rows: if method.has_batches() { batch_rows } else { 0 },
                };
                let best = allowed
                    .batches
                    .iter()
                    .map(|batch| {
                        let way = way((*batch).min(work.rows.max(1) as usize));
                        Estimate { way, time_us: self.time_us(costs, work, way) }
                    })
                    .min_by(|a, b| a.time_us.total_cmp(&b.time_us));
                estimates.extend(best);
            }
        }
        estimates
    }
}

impl CostModel {
    fn time_us(&self, costs: &MethodCosts, work: &Work, way: Way) -> f64 {
        let Costs { connect_us, round_trip_us, commit_us, .. } = self.costs;
        let rows = work.rows as f64;
        let chunks = work.chunks.max(1) as f64;
        let autocommit = way.method == Method::InsertAutocommit;
        let statements = match way.method {
            method if method.is_bulk() => chunks,
            method if method.has_batches() => (rows / way.batch_rows.max(1) as f64).ceil(),
            _ => rows,
        };
        let commits = match (autocommit, work.unit) {
            (true, _) => rows,
            (false, Unit::Chunk) => chunks,
            (false, Unit::Load) => 1.0,
        };
        let row_us =
            costs.row_us + work.columns as f64 * costs.cell_us + work.row_bytes * costs.byte_us;
        let sent = statements * (costs.statement_us + way.method.trips() * round_trip_us)
            + rows * row_us
            // BEGIN and COMMIT are a round trip each.
            + commits * if autocommit { 0.0 } else { 2.0 * round_trip_us };
        let durable_us = commit_us * if work.commits_wait { commits } else { 1.0 };
        // Connections that have no chunk do nothing, and the last chunk of each ends when it ends.
        let busy = (way.connections as f64).min(chunks);
        let rounds = (chunks / busy).ceil() * busy / chunks;
        let speedup = costs.sharing.speedup(busy as usize);
        let preparing = costs.first_us + round_trip_us;
        connect_us * way.connections as f64 + preparing + (sent + durable_us) * rounds / speedup
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::costs::Sharing;

    fn costs() -> Costs {
        let method = |method, statement_us, row_us| MethodCosts {
            method,
            first_us: 100.0,
            statement_us,
            row_us,
            cell_us: 0.1,
            byte_us: 0.002,
            sharing: Sharing { waits: 0.2, talk: 0.01 },
        };
        Costs {
            connect_us: 3000.0,
            round_trip_us: 50.0,
            commit_us: 2000.0,
            methods: vec![
                method(Method::CopyBinary, 80.0, 0.7),
                method(Method::Values, 60.0, 5.0),
                method(Method::Insert, 60.0, 10.0),
            ],
        }
    }

    fn allowed() -> Allowed {
        Allowed {
            methods: vec![Method::CopyBinary, Method::Values, Method::Insert],
            connections: vec![1, 2, 4, 8],
            batches: vec![100, 1000],
        }
    }

    fn work(rows: u64) -> Work {
        let chunks = (rows / 10_000).max(1);
        Work { rows, columns: 2, row_bytes: 320.0, chunks, unit: Unit::Chunk, commits_wait: true }
    }

    fn chosen(rows: u64, of: Costs) -> Way {
        let estimates = CostModel { costs: of }.estimates(&work(rows), &allowed());
        cheapest(&estimates).expect("an estimate").way
    }

    #[test]
    fn few_rows_are_one_statement_over_one_connection() {
        for rows in [0, 1, 100] {
            let way = chosen(rows, costs());
            assert_eq!(way.connections, 1, "{rows}");
        }
        assert!(matches!(chosen(100, costs()).method, Method::CopyBinary | Method::Values));
        assert_eq!(chosen(1_000, costs()).method, Method::CopyBinary);
    }

    #[test]
    fn many_rows_take_connections_until_these_wait_for_each_other() {
        assert_eq!(chosen(10_000, costs()).connections, 1);
        assert_eq!(chosen(10_000_000, costs()).connections, 8);
        let mut waiting = costs();
        waiting.methods.iter_mut().for_each(|m| m.sharing = Sharing { waits: 1.0, talk: 0.0 });
        assert_eq!(chosen(10_000_000, waiting).connections, 1);
        let mut talking = costs();
        talking.methods.iter_mut().for_each(|m| m.sharing = Sharing { waits: 0.1, talk: 0.2 });
        assert_eq!(chosen(10_000_000, talking).connections, 2);
    }

    #[test]
    fn a_slow_network_makes_round_trips_dear() {
        let far = Costs { round_trip_us: 50_000.0, connect_us: 200_000.0, ..costs() };
        assert_eq!(chosen(1, far.clone()).method, Method::Values);
        assert_eq!(chosen(1_000_000, far.clone()).method, Method::CopyBinary);
        let estimates = CostModel { costs: far }.estimates(&work(1_000), &allowed());
        let of = |method, connections| {
            let found = estimates
                .iter()
                .find(|e| (e.way.method, e.way.connections) == (method, connections));
            found.expect("an estimate").time_us
        };
        assert!(of(Method::Insert, 1) > 1_000.0 * 50_000.0);
        assert!(of(Method::Values, 1) < 2_000_000.0);
        assert_eq!(estimates.len(), 3 * 4);
    }

    #[test]
    fn a_batch_is_as_large_as_it_helps_and_no_larger_than_the_rows() {
        let estimates = CostModel { costs: costs() }.estimates(&work(50), &allowed());
        let values = estimates.iter().find(|e| e.way.method == Method::Values).expect("values");
        assert_eq!(values.way.batch_rows, 50);
        let estimates = CostModel { costs: costs() }.estimates(&work(100_000), &allowed());
        let values = estimates.iter().find(|e| e.way.method == Method::Values).expect("values");
        assert_eq!(values.way.batch_rows, 1000);
        let copy = estimates.iter().find(|e| e.way.method == Method::CopyBinary).expect("copy");
        assert_eq!(copy.way.batch_rows, 0);
    }

    #[test]
    fn of_ways_that_are_as_good_the_first_with_fewest_connections_is_taken() {
        let way = |connections| Way { method: Method::Values, connections, batch_rows: 1 };
        let estimate = |connections, ms| Estimate { way: way(connections), time_us: ms * 1e3 };
        let all = [estimate(1, 102.0), estimate(2, 101.0), estimate(4, 100.0)];
        assert_eq!(cheapest(&all).map(|e| e.way.connections), Some(1));
        let all = [estimate(1, 120.0), estimate(2, 101.0), estimate(4, 100.0)];
        assert_eq!(cheapest(&all).map(|e| e.way.connections), Some(2));
        let all = [estimate(1, 0.29), estimate(2, 0.2), estimate(1, 0.25)];
        assert_eq!(cheapest(&all), Some(all[0]));
        assert_eq!(cheapest(&[]), None);
    }
}
