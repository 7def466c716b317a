//! What loads cost on SQL Server, at a guess.
//!
//! Nobody measured them on a real server: none can be had from the registries. They are PostgreSQL's figures by the methods
//! that do the same (INSERT BULK as COPY, INSERT as INSERT), with what a thousand parameters cost to bind. A probe and
//! `coload tune` correct them.

use crate::costs::{Costs, Figures, MethodCosts};
use crate::options::Method;

const METHODS: [Figures; 5] = [
    (Method::InsertBulk, [0.0, 0.0, 0.3, 0.06, 0.0025, 0.17, 0.1]),
    (Method::Values, [0.0, 60.0, 2.0, 1.0, 0.003, 0.17, 0.1]),
    (Method::Prepared, [100.0, 20.0, 0.0, 0.2, 0.001, 0.43, 0.0]),
    (Method::Insert, [0.0, 30.0, 0.0, 0.8, 0.001, 0.41, 0.0]),
    (Method::InsertAutocommit, [0.0, 30.0, 0.0, 0.8, 0.001, 0.04, 0.0]),
];

/// Costs that hold until something else is known of a server.
pub fn priors() -> Costs {
    Costs {
        connect_us: 10_000.0,
        round_trip_us: 60.0,
        commit_us: 1500.0,
        methods: METHODS.iter().map(MethodCosts::of_figures).collect(),
    }
}
