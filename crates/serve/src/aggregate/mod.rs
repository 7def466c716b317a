//! Aggregates on codes: the optimizer rule that finds them, and the operator that runs them.
//!
//! ```text
//!   AggregateExec (final)                        AggregateOnCodesExec
//!     AggregateExec (partial)         --rule-->    query for coload_scan::aggregate,
//!       ProjectionExec (arithmetic)                what to make of its numbers
//!         StoreScanExec
//! ```
//!
//! The rule takes the place of an aggregate only when every part of it can be said exactly: grouping
//! columns whose pages hold codes, COUNT, SUM, AVG, MIN and MAX of `+ - *` over columns and literals.
//! Everything else stays as DataFusion planned it. Result types are DataFusion's. Where DataFusion
//! wraps a number that does not fit, this is an error.

mod answer;
mod exec;
mod inputs;
mod lower;
mod rule;

pub use exec::AggregateOnCodesExec;
pub(crate) use exec::groups_on_codes;
pub(crate) use rule::aggregate_on_codes;
