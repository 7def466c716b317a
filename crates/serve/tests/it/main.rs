//! SQL on a store: `.slt` files, the 22 queries of TPC-H, and what neither can say.
#![allow(clippy::unwrap_used)]

mod aggregates;
mod slt;
mod sql;
mod support;
mod tpch;
mod tpch_data;
