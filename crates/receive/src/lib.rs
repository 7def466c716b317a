//! The server's part of a load: what a client sends is verified, journalled, transformed where the client
//! left that to it, and published whole.
//!
//! ```text
//!   connection -> block -> verify -> sort -> column -> segment -> journal -> acknowledge
//!                                                                    |
//!                                              all partitions  ->  publish
//! ```
//!
//! Invariants: no byte of a client is believed; nothing is acknowledged before it is durable; nothing is
//! visible before everything is there. There is no SQL here.

mod active;
mod arrived;
mod busy;
mod connection;
mod core_share;
mod costs;
mod duty;
mod guard;
mod legs;
mod loads;
mod member;
mod options;
mod part;
mod partition;
mod pending;
mod pool;
mod rules;
mod service;
mod text_fragments;
mod whole_inputs;

pub use loads::{Loads, Need, Permission};
pub use member::{At, HeldTable, Member};
pub use options::{
    EXPIRE, Keep, LoadPriority, MERGE_COLUMNS, QueryGauge, QueryLoad, ReceiveOptions,
};
pub use service::{listen, serve_loads};
