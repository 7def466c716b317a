//! What loads cost on MariaDB, measured.
//!
//! The methods by the least times of `coload tune --times 7` on a server whose data are in memory, so that no disk is in them,
//! for bytes of rows as text, which are known before they are sent; how connections
//! share the server by lineitem over 1 and 2 connections (docs/databases.md), and of methods that send a row at a time by the
//! same measurement as their costs. Client and server had the same two cores.

use crate::costs::{Costs, Figures, MethodCosts};
use crate::options::Method;

/// The methods of MariaDB 10.11.
const METHODS: [Figures; 5] = [
    (Method::LoadData, [10.0, 0.0, 0.735, 0.052, 0.0072, 0.5, 0.055]),
    (Method::Values, [20.0, 30.0, 0.65, 0.2, 0.003, 0.5, 0.055]),
    (Method::Prepared, [3.5, 0.3, 0.0, 0.188, 0.004, 0.5, 0.055]),
    (Method::Insert, [5.6, 27.1, 0.0, 0.947, 0.0045, 0.38, 0.053]),
    // Commits at the same time are one write of the log.
    (Method::InsertAutocommit, [0.0, 0.4, 0.0, 0.158, 0.0015, 0.04, 0.0]),
];

/// Costs that hold until something else is known of a server.
pub fn priors() -> Costs {
    Costs {
        connect_us: 260.0,
        round_trip_us: 18.0,
        commit_us: 1500.0,
        methods: METHODS.iter().map(MethodCosts::of_figures).collect(),
    }
}
