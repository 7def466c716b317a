//! Costs out of measured times: least squares without negative costs.

use super::{Costs, MethodCosts, Sharing};
use crate::options::Method;

/// A load that was measured, in one transaction over each connection.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Cell {
    /// How its rows were sent.
    pub method: Method,
    /// Over so many connections.
    pub connections: usize,
    /// Rows of a statement, of methods that have batches; 0 of others.
    pub batch_rows: usize,
    /// Rows of all connections.
    pub rows: u64,
    /// Columns of a row.
    pub columns: usize,
    /// Bytes of a row as it was sent.
    pub row_bytes: f64,
    /// Time from BEGIN to the answer to COMMIT.
    pub time_us: f64,
}

impl Cell {
    fn statements(&self) -> f64 {
        let rows = self.rows as f64;
        match self.method {
            method if method.is_bulk() => 1.0,
            method if method.has_batches() => (rows / self.batch_rows.max(1) as f64).ceil(),
            _ => rows,
        }
    }

    /// The time without what is known: round trips, and commits.
    fn work_us(&self, of: &Costs) -> f64 {
        let commits = if self.method == Method::InsertAutocommit { self.rows as f64 } else { 1.0 };
        let trips = self.statements() * self.method.trips() + 2.0;
        let known = trips * of.round_trip_us + commits * of.commit_us;
        // What is known was measured apart, and may be more than the whole by the noise of it.
        (self.time_us - known).max(self.time_us * 0.02)
    }
}

/// Rounds of the descent: each unknown is set in turn to what is best for it, and few are there.
const ROUNDS: usize = 4000;

/// The costs of a method by cells of it over one connection; `None` when there are none.
pub fn fit_method(method: Method, cells: &[Cell], of: &Costs) -> Option<MethodCosts> {
    let own = cells.iter().filter(|cell| cell.method == method && cell.connections == 1);
    let rows: Vec<(Vec<f64>, f64)> = own
        .map(|cell| {
            let rows = cell.rows as f64;
            let factors =
                [1.0, cell.statements(), rows, rows * cell.columns as f64, rows * cell.row_bytes];
            let time = cell.work_us(of);
            // Relative to the whole time: small loads count as much as large ones.
            (factors.iter().map(|factor| factor / cell.time_us).collect(), time / cell.time_us)
        })
        .collect();
    if rows.is_empty() {
        return None;
    }
    let found = least_squares::<5>(&rows);
    let [first_us, statement_us, row_us, cell_us, byte_us] = found;
    let sharing = fit_sharing(method, cells)?;
    Some(MethodCosts { method, first_us, statement_us, row_us, cell_us, byte_us, sharing })
}

/// How connections share the server, by loads of the same rows over one and over more; `None` when there is no load.
fn fit_sharing(method: Method, cells: &[Cell]) -> Option<Sharing> {
    let own: Vec<&Cell> = cells.iter().filter(|cell| cell.method == method).collect();
    own.first()?;
    let mut rows = Vec::new();
    for cell in own.iter().filter(|cell| cell.connections > 1) {
        let alike = |one: &&&Cell| {
            one.connections == 1
                && (one.rows, one.columns, one.batch_rows)
                    == (cell.rows, cell.columns, cell.batch_rows)
        };
        let Some(one) = own.iter().find(alike) else { continue };
        let n = cell.connections as f64;
        let speedup = one.time_us / cell.time_us;
        rows.push((vec![n - 1.0, n * (n - 1.0)], (n / speedup - 1.0).max(0.0)));
    }
    let [waits, talk] = least_squares::<2>(&rows);
    Some(Sharing { waits, talk })
}

/// The factors, none below 0, by which rows of unknowns come nearest to their sums; 0 for what nothing tells of.
fn least_squares<const N: usize>(rows: &[(Vec<f64>, f64)]) -> [f64; N] {
    // Unknowns of one size, or the small ones would need many more rounds.
    let scales: Vec<f64> = (0..N)
        .map(|at| rows.iter().map(|(row, _)| row[at] * row[at]).sum::<f64>().sqrt())
        .collect();
    let mut found = [0.0; N];
    let mut left: Vec<f64> = rows.iter().map(|(_, sum)| *sum).collect();
    for _ in 0..ROUNDS {
        for at in (0..N).filter(|at| scales[*at] > 0.0) {
            let column = |row: usize| rows[row].0[at] / scales[at];
            let step: f64 = left.iter().enumerate().map(|(row, left)| column(row) * left).sum();
            let next = (found[at] + step).max(0.0);
            let moved = next - found[at];
            found[at] = next;
            left.iter_mut().enumerate().for_each(|(row, left)| *left -= moved * column(row));
        }
    }
    for (found, scale) in found.iter_mut().zip(scales) {
        *found = if scale > 0.0 { *found / scale } else { 0.0 };
    }
    found
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::costs::{Allowed, CostModel, Policy, Unit, Work};

    #[test]
    fn costs_are_found_again_in_the_times_that_they_give() {
        let sharing = Sharing { waits: 0.3, talk: 0.02 };
        let truth = MethodCosts {
            method: Method::Values,
            first_us: 150.0,
            statement_us: 90.0,
            row_us: 3.0,
            cell_us: 0.8,
            byte_us: 0.004,
            sharing,
        };
        let costs =
            Costs { connect_us: 0.0, round_trip_us: 40.0, commit_us: 1500.0, methods: vec![truth] };
        let model = CostModel { costs: costs.clone() };
        let mut cells = Vec::new();
        for (columns, row_bytes) in [(1, 14.0), (2, 320.0), (16, 160.0)] {
            for rows in [1, 100, 1000, 20_000] {
                for connections in [1, 2, 4, 8] {
                    for batch in [100, 1000] {
                        let work = Work {
                            rows,
                            columns,
                            row_bytes,
                            chunks: connections as u64,
                            unit: Unit::Load,
                            commits_wait: true,
                        };
                        let allowed = Allowed {
                            methods: vec![Method::Values],
                            connections: vec![connections],
                            batches: vec![batch],
                        };
                        let estimate = model.estimates(&work, &allowed)[0];
                        cells.push(Cell {
                            method: Method::Values,
                            connections,
                            batch_rows: batch,
                            rows,
                            columns,
                            row_bytes,
                            // The model has one round trip for what is prepared.
                            time_us: estimate.time_us - 40.0,
                        });
                    }
                }
            }
        }
        let found = fit_method(Method::Values, &cells, &costs).expect("cells");
        let near = |found: f64, truth: f64, by: f64| (found / truth - 1.0).abs() < by;
        let large: f64 = found.row_us + 2.0 * found.cell_us + 320.0 * found.byte_us;
        assert!(near(large, 3.0 + 1.6 + 1.28, 0.05), "{found:?}");
        assert!(near(found.first_us + found.statement_us, 240.0, 0.15), "{found:?}");
        assert!(near(found.sharing.speedup(4), sharing.speedup(4), 0.1), "{found:?}");
    }

    #[test]
    fn nothing_is_found_in_no_cells_and_no_cost_is_negative() {
        let costs =
            Costs { connect_us: 1.0, round_trip_us: 1e9, commit_us: 1.0, methods: Vec::new() };
        assert_eq!(fit_method(Method::Values, &[], &costs), None);
        let cell = Cell {
            method: Method::Values,
            connections: 1,
            batch_rows: 1,
            rows: 1,
            columns: 1,
            row_bytes: 1.0,
            time_us: 10.0,
        };
        let found = fit_method(Method::Values, &[cell], &costs).expect("a cell");
        for part in [found.first_us, found.statement_us, found.row_us, found.byte_us] {
            assert!(part >= 0.0, "{found:?}");
        }
        assert_eq!(found.sharing, Sharing { waits: 0.0, talk: 0.0 });
    }
}
