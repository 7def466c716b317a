//! The server: Arrow Flight SQL on a database.
//!
//! ```text
//!   ADBC, JDBC, coload sql --gRPC--> service --plan, run--> Database (its own threads)
//!                                      |  users, rights         |
//!                                      |                  batches, a bounded channel
//!                                      +<------ encode <--------+
//! ```
//!
//! The network has threads of its own, and statements run on those of the database. What lies between
//! has a limit: batches on their way out, plans that nobody fetches, prepared statements and their
//! parameters, connections.
//!
//! Deliberately not here: transactions (each statement is one), Substrait plans.

mod answer;
mod arrow_message;
mod body;
mod calls;
mod cancel;
mod connections;
mod door;
mod gate;
mod held;
mod inbound;
mod ingest;
mod kept;
mod limits;
mod logins;
mod metadata;
mod metrics;
mod metrics_port;
mod outgoing;
mod prepared;
mod running;
mod schemas;
mod server;
mod service;
pub(crate) mod status;
mod tickets;
mod turns;
mod users;
mod wire_types;

pub(crate) use answer::Running;
pub(crate) use body::Room;
pub(crate) use connections::{Connection, accept};
pub(crate) use door::{Door, Visit};
pub(crate) use held::HeldBytes;
pub(crate) use kept::random_bytes;
pub use limits::ServeLimits;
pub use metrics::Metrics;
pub(crate) use outgoing::{Outgoing, Receiver};
pub(crate) use server::read_pem;
pub use server::{ServeOptions, Server, TlsFiles};
pub(crate) use service::Service;
pub(crate) use status::cancelled;
pub(crate) use users::PasswordCheck;
pub use users::{Users, hash_password, hash_password_with_verifier};
pub(crate) use wire_types::{wire_parts, wire_schema};

/// Largest share of the memory budget that one message may take.
pub(crate) const MESSAGE_BYTES_DEFAULT: usize = 64 << 20;
