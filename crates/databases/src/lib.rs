//! Loads into databases: PostgreSQL, MySQL and MariaDB, SQL Server.
//!
//! ```text
//!   pipeline: fragment -> rows in the engine's form -> queue -> connections -> table, or one beside it
//!                                                       refused rows -> read again, and left out as rejects
//!                                                       all there    -> published: one transaction, with a line in the journal
//! ```
//!
//! An engine is a folder that implements [`engine::Engine`], [`engine::Connection`] and [`engine::RowForm`]; what a load
//! does with them does not depend on it. No value is ever part of a statement's text.
//!
//! Memory: a chunk of rows for each connection, and one more.
//!
//! See decisions 0060 and 0061.

mod choice;
mod costs;
mod crew;
mod destination;
mod engine;
mod journal;
mod mysql;
mod names;
mod options;
mod postgres;
mod probe;
mod queue;
mod read;
mod rebuild;
mod refusals;
mod row_maker;
mod sender;
mod sqlserver;
mod staging;
mod steering;
mod target;
mod tls;
mod trial;
mod tune;
mod url;
mod watch;

pub use costs::{
    Allowed, Cell as MeasuredLoad, CostModel, Costs, Estimate, MethodCosts, Policy, Sharing,
    Tuning, Unit, Way, Work, cheapest,
};
pub use destination::{Database, tuning_name};
pub use names::TableName;
pub use options::{DatabaseOptions, Guarantee, Method};
pub use read::{DatabaseRows, ReadOptions};
pub use tune::{TuneOptions, tune};
pub use url::is_database_url;
