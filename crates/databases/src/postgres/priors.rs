//! What loads cost on PostgreSQL, as `coload tune` measured it.

use crate::costs::{Costs, Figures, MethodCosts};
use crate::options::Method;

/// The methods of PostgreSQL 15, client and server on the same two cores.
const METHODS: [Figures; 7] = [
    (Method::CopyBinary, [100.0, 60.0, 0.4, 0.05, 0.003, 0.2, 0.02]),
    (Method::CopyText, [100.0, 60.0, 0.5, 0.07, 0.003, 0.2, 0.02]),
    (Method::Unnest, [200.0, 100.0, 1.2, 0.2, 0.004, 0.2, 0.02]),
    (Method::Values, [200.0, 200.0, 3.0, 0.8, 0.004, 0.2, 0.02]),
    (Method::Prepared, [100.0, 20.0, 10.0, 0.5, 0.005, 0.3, 0.02]),
    (Method::Insert, [100.0, 40.0, 20.0, 1.0, 0.005, 0.3, 0.02]),
    (Method::InsertAutocommit, [100.0, 60.0, 20.0, 1.0, 0.005, 0.3, 0.02]),
];

/// Costs that hold until something else is known of a server.
pub fn priors() -> Costs {
    Costs {
        connect_us: 3000.0,
        round_trip_us: 60.0,
        commit_us: 1000.0,
        methods: METHODS.iter().map(MethodCosts::of_figures).collect(),
    }
}
