//! What loads cost on MariaDB, as `coload tune` measured it.

use crate::costs::{Costs, Figures, MethodCosts};
use crate::options::Method;

/// The methods of MariaDB 10.11, client and server on the same two cores.
const METHODS: [Figures; 5] = [
    (Method::LoadData, [50.0, 100.0, 2.0, 0.1, 0.01, 0.5, 0.02]),
    (Method::Values, [100.0, 100.0, 3.0, 0.3, 0.01, 0.5, 0.02]),
    (Method::Prepared, [50.0, 20.0, 20.0, 0.5, 0.01, 0.5, 0.02]),
    (Method::Insert, [50.0, 60.0, 20.0, 0.5, 0.01, 0.5, 0.02]),
    (Method::InsertAutocommit, [50.0, 60.0, 20.0, 0.5, 0.01, 0.5, 0.02]),
];

/// Costs that hold until something else is known of a server.
pub fn priors() -> Costs {
    Costs {
        connect_us: 1500.0,
        round_trip_us: 60.0,
        commit_us: 1000.0,
        methods: METHODS.iter().map(MethodCosts::of_figures).collect(),
    }
}
