//! SQL on a store: `.slt` files, the 22 queries of TPC-H, what neither can say, and the server.
#![allow(clippy::unwrap_used)]

mod aggregates;
mod conditions;
mod flight;
mod slt;
mod sql;
mod support;
mod tpch;
mod tpch_data;
