//! The server by PostgreSQL's protocol, version 3.
//!
//! ```text
//!   psql, psycopg, pgjdbc, Grafana --> startup (TLS, login) --> session --> the same plans, turns, limits and rights as Flight SQL
//!                                                                 |
//!                                          wire <-- reply, rows --+-- copy, feed: COPY .. FROM STDIN is a load
//! ```
//!
//! `catalog` has the tables that tools ask for. Not here: transactions of several statements, LISTEN, replication,
//! prepared statements by SQL.
//!
//! Source: the manual of PostgreSQL, "Frontend/Backend Protocol".

mod catalog;
mod command;
mod copy;
mod copy_binary;
mod fault;
mod feed;
mod gathered;
mod kinds;
mod message;
mod parameters;
mod questions;
mod reply;
mod rows;
mod scram;
mod server;
mod session;
mod settings;
mod startup;
mod values;
mod wire;

pub(crate) use catalog::PgCatalog;
pub(crate) use scram::{MECHANISM, Verifier};
pub(crate) use server::PostgresDoor;
