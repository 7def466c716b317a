//! SQL on a store: `.slt` files, the 22 queries of TPC-H, what neither can say, and the server.
#![allow(clippy::unwrap_used)]

mod aggregate_arguments;
mod aggregates;
mod allowed;
mod alters;
mod changes;
mod conditions;
mod damage;
mod flight;
mod limits;
mod memory;
mod names;
mod ordered;
mod pivot;
mod postgres;
mod postgres_copy;
mod slt;
mod sql;
mod sql_words;
mod support;
mod tpch;
mod tpch_data;
mod views;
