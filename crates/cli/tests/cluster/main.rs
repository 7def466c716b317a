//! Clusters of real processes: loads, statements, and processes that are killed at every step of a load.
#![allow(clippy::unwrap_used, clippy::print_stdout, missing_docs)]

mod aggregator;
mod changes;
mod clients;
mod faults;
mod loads;
mod moves;
mod nodes;
#[path = "../it/random.rs"]
mod random;
mod readers;
mod refused;
mod users;
