//! What loads cost on a server, and so how a load is sent: by which method, over how many connections, how many rows a
//! statement.
//!
//! ```text
//!   priors of the engine, or a file of `coload tune` -> corrected by a probe -> Policy: estimates of every way -> the cheapest
//! ```
//!
//! Invariant: nothing here does I/O or looks at a clock. Times are microseconds.
//!
//! Source: seed 004, which measures what is modelled here; Gunther's law of scalability for connections that share a server.

mod file;
mod fit;
mod policy;

pub use file::Tuning;
pub use fit::{Cell, fit_method};
pub use policy::{Allowed, CostModel, Estimate, Policy, Unit, Way, Work, cheapest};

use crate::options::Method;

/// What loads cost on a server.
#[derive(Debug, Clone, PartialEq)]
pub struct Costs {
    /// A connection that takes statements, from nothing.
    pub connect_us: f64,
    /// A message and its answer.
    pub round_trip_us: f64,
    /// What COMMIT takes beside its round trip until it is durable.
    pub commit_us: f64,
    /// Methods that were measured.
    pub methods: Vec<MethodCosts>,
}

/// What a method costs, beside its round trips.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct MethodCosts {
    /// The method.
    pub method: Method,
    /// Once for each connection: what it prepares.
    pub first_us: f64,
    /// A statement.
    pub statement_us: f64,
    /// A row.
    pub row_us: f64,
    /// A column of a row.
    pub cell_us: f64,
    /// A byte of a row, as it is sent.
    pub byte_us: f64,
    /// How connections share the server.
    pub sharing: Sharing,
}

/// How connections share the server's cores, locks and log.
///
/// n connections do n / (1 + waits (n - 1) + talk n (n - 1)) times the work of one.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Sharing {
    /// Share of the work during which others wait.
    pub waits: f64,
    /// What each adds to the work of each other.
    pub talk: f64,
}

impl Sharing {
    /// How many times the work of one connection so many do.
    pub fn speedup(self, connections: usize) -> f64 {
        let n = connections.max(1) as f64;
        n / (1.0 + self.waits * (n - 1.0) + self.talk * n * (n - 1.0))
    }
}

/// A row of a table of measured figures: the method; microseconds once a connection, a statement, a row, a cell, a byte; the
/// shares of its [`Sharing`].
pub type Figures = (Method, [f64; 7]);

impl MethodCosts {
    /// The costs that a row of figures says.
    pub fn of_figures(&(method, figures): &Figures) -> Self {
        let [first_us, statement_us, row_us, cell_us, byte_us, waits, talk] = figures;
        let sharing = Sharing { waits, talk };
        MethodCosts { method, first_us, statement_us, row_us, cell_us, byte_us, sharing }
    }
}

impl Costs {
    /// The costs of a method, if it was measured.
    pub fn of(&self, method: Method) -> Option<&MethodCosts> {
        self.methods.iter().find(|costs| costs.method == method)
    }

    /// The same on a server that takes so many times as long for the work of a method.
    pub fn slow_down(&mut self, method: Method, factor: f64) {
        for costs in self.methods.iter_mut().filter(|costs| costs.method == method) {
            for part in [
                &mut costs.first_us,
                &mut costs.statement_us,
                &mut costs.row_us,
                &mut costs.cell_us,
                &mut costs.byte_us,
            ] {
                *part *= factor;
            }
        }
    }
}

impl Method {
    /// Round trips of a statement.
    pub fn trips(self) -> f64 {
        match self {
            // The server says that it takes rows, and then that it has them.
            _ if self.is_bulk() => 2.0,
            _ => 1.0,
        }
    }

    /// Whether all rows of a chunk are one statement.
    pub fn is_bulk(self) -> bool {
        matches!(
            self,
            Method::CopyText | Method::CopyBinary | Method::LoadData | Method::InsertBulk
        )
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn connections_that_wait_for_each_other_do_less_than_their_number() {
        let alone = Sharing { waits: 0.0, talk: 0.0 };
        assert!((alone.speedup(8) - 8.0).abs() < 1e-9);
        let half = Sharing { waits: 0.5, talk: 0.0 };
        assert!((half.speedup(2) - 4.0 / 3.0).abs() < 1e-9);
        let talking = Sharing { waits: 0.1, talk: 0.1 };
        assert!(talking.speedup(8) < talking.speedup(2));
        for sharing in [alone, half, talking] {
            assert!((sharing.speedup(1) - 1.0).abs() < 1e-9);
            assert!((sharing.speedup(0) - 1.0).abs() < 1e-9);
        }
    }
}
