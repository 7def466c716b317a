//! SQL on a store, on DataFusion.
//!
//! ```text
//!   Database --statement--> plan over StoreTable --> StoreScanExec --> batches
//!                                 |                       |
//!                             snapshot             pages, tests on codes
//! ```
//!
//! A statement sees one version of the store from its start to its end. Filters that can be said
//! exactly as tests on stored values are made by the scan, on packed codes; all others by DataFusion.
//!
//! Invariant: this is the only crate that names DataFusion.

mod aggregate;
mod answer_rows;
mod arrays;
mod catalog;
mod cluster;
mod database;
mod decode;
mod equalities;
mod error;
mod export;
mod external;
mod filter;
mod flight;
mod formats;
mod functions;
mod information_schema;
mod key_order;
mod lanes;
mod lists;
mod literal;
mod memory;
mod names;
pub mod output;
mod physical_rules;
mod places;
mod planning;
mod postgres;
mod remote;
mod rights;
mod row_program;
mod rows;
mod rules;
mod scan;
mod scan_stream;
mod selectivity;
mod statement;
mod table;
mod through;
mod types;
mod views;
mod write;
mod yielding;

pub use aggregate::AggregateOnCodesExec;
pub use answer_rows::{AnswerRows, Canceller};
pub use catalog::{CATALOG, SCHEMA};
pub use cluster::Cluster;
pub use coload_receive::{Keep, LoadPriority, ReceiveOptions};
pub use database::{Answer, Database, DatabaseOptions, STACK_BYTES};
pub use datafusion::arrow;
pub use external::{
    Allowed, ExternalInputs, ExternalOption, ExternalPlace, ExternalPlaces, ExternalReference,
    OptionValue, ReadAs,
};
pub use flight::{
    Metrics, ServeLimits, ServeOptions, Server, TlsFiles, Users, hash_password,
    hash_password_with_verifier,
};
pub use functions::function_names;
pub use memory::{MemoryGauge, SpillOptions, measure_memory};
pub use remote::{Address, Credentials, Remote};
pub use rights::{Grant, Rights, Role};
pub use row_program::plan_row_program;
pub use scan::StoreScanExec;
pub use statement::{
    Parameters, Planned, StatementLimits, Statements, parse_columns, parse_create_table,
    split_statements,
};
pub use table::StoreTable;
pub use types::{arrow_schema, arrow_type, sql_type};
