//! What loads cost on PostgreSQL, measured.
//!
//! The methods by the least times of `coload tune --times 7` on a server whose data are in memory, so that no disk is in them,
//! for bytes of rows as text, which are known before they are sent; how connections
//! share the server by lineitem over 1, 2 and 3 connections (decision 0062), and of methods that send a row at a time by the
//! same measurement as their costs. Client and server had the same two cores.

use crate::costs::{Costs, Figures, MethodCosts};
use crate::options::Method;

/// The methods of PostgreSQL 15.
const METHODS: [Figures; 7] = [
    (Method::CopyBinary, [0.0, 0.0, 0.17, 0.05, 0.0021, 0.17, 0.1]),
    (Method::CopyText, [0.0, 0.0, 0.11, 0.054, 0.0031, 0.17, 0.1]),
    (Method::Unnest, [0.0, 2.0, 0.22, 0.097, 0.0027, 0.17, 0.1]),
    (Method::Values, [0.0, 2.0, 0.36, 0.19, 0.0027, 0.17, 0.1]),
    (Method::Prepared, [0.0, 2.4, 0.0, 0.089, 0.001, 0.43, 0.0]),
    (Method::Insert, [0.0, 4.7, 0.0, 0.76, 0.001, 0.41, 0.0]),
    // Commits at the same time are one write of the log.
    (Method::InsertAutocommit, [0.0, 4.4, 0.0, 0.5, 0.001, 0.04, 0.0]),
];

/// Costs that hold until something else is known of a server.
pub fn priors() -> Costs {
    Costs {
        connect_us: 2400.0,
        round_trip_us: 21.0,
        commit_us: 1500.0,
        methods: METHODS.iter().map(MethodCosts::of_figures).collect(),
    }
}
