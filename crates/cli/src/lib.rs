//! Loads delimited text into a compressed, read-optimised store, and queries it with SQL.
//!
//! What the command `coload` does, as a library: open a store, plan a load, run it, query.
//!
//! ```
//! use coload::{Coload, Hooks, PlanRequest, Resources};
//!
//! # fn main() -> coload::Result<()> {
//! # let folder = tempfile::tempdir().map_err(|e| coload::Error::Unavailable(e.to_string()))?;
//! # let file = folder.path().join("people.csv");
//! # std::fs::write(&file, "name,born\nAda,1815-12-10\nAlan,1912-06-23\n").ok();
//! # let file = file.to_string_lossy().into_owned();
//! let store = Coload::create_or_open(folder.path().join("store"))?;
//! let plan = store.plan(&PlanRequest::new([file]))?;
//! let report = store.load(&plan.request, &Resources::default(), &Hooks::default())?;
//! assert_eq!(report.rows(), 2);
//!
//! let batches = store.query("SELECT name FROM people WHERE born < DATE '1900-01-01'")?;
//! assert_eq!(batches[0].num_rows(), 1);
//! # Ok(())
//! # }
//! ```
//!
//! A [`LoadPlan`] tells what was decided from the input ([`LoadPlan::evidence`]), and its
//! [`LoadRequest`] can be changed before the load. [`Resources`] are threads, memory and sizes, [`Hooks`] a
//! progress callback and a flag that cancels. A load is published whole or not at all.
//!
//! Invariant: no logic of storage or SQL is here.

// What is made of the library names it as other programs do.
extern crate self as coload;

mod args;
mod command;
pub mod command_line;
#[cfg(feature = "sql")]
mod config;
mod conflict_rule;
pub mod dal;
mod database;
mod database_args;
mod examples;
mod folders;
mod given;
mod heads;
#[cfg(feature = "sql")]
mod in_place;
mod interrupt;
mod json_inputs;
mod json_mapping;
mod mapping;
mod origin;
mod output;
mod place_args;
mod plan;
mod progress;
mod remote_args;
mod report;
mod set_columns;
mod several_tables;
mod share_args;
mod sheet_args;
mod sheet_inputs;
mod size;
mod typed_inputs;
mod typed_union;
mod union;

pub use coload_databases::{
    Allowed, CostModel, Costs, Database as DatabaseTable, DatabaseOptions as DatabaseLoadOptions,
    DatabaseRows, Estimate, Guarantee, Method, MethodCosts, Policy, ReadOptions, Sharing,
    TuneOptions, Tuning, Unit, Way, Work, cheapest, is_database_url, tune, tuning_name,
};
pub use coload_ddl::{Key, KeyKind, Schema, parse_columns, parse_create_table};
pub use coload_input::{Area, SheetChoice};
pub use coload_load::{
    ArrowRows, Batches, ColumnReport, DatabaseReport, Destination, Distinct, DryRun, FileCounts,
    FileReport, FileReports, Hooks, InputForm, LoadReport, LoadRequest, Merged, NetworkReport,
    Nowhere, OnWritten, ParquetFolder, PlacementReport, Progress, ProgressCallback, Published,
    RejectKind, Resources, SendChange, SendEstimate, SentBy, SortReport, Widened, WrittenFile,
    WrittenFiles, check_reject_table, default_memory, load,
};
pub use coload_scan::{KeyRange, KeyTable, Row};
#[cfg(feature = "sql")]
pub use coload_serve::{AnswerRows, Canceller, Database, DatabaseOptions, arrow};
pub use coload_source::{
    Dialect, GivenDialect, GivenPolicies, Header, Inputs, InvalidBytes, LineEnd, Mending,
    PlaceOptions, Quotes, Ragged, Reject, expand_inputs_with,
};
pub use coload_store::MergeReport;
pub use coload_store::{KeyCounts, LoadMode, OnConflict, Snapshot, Store};
pub use coload_threads::Step;
pub use coload_transform::DictionaryPolicy;
pub use coload_types::{Column, DataType, Error, Result, Value};
pub use coload_wire::RejectLimit;
pub use conflict_rule::ConflictRule;
pub use database::Coload;
pub use folders::Partitions;
#[cfg(feature = "sql")]
pub use in_place::InPlace;
pub use mapping::Mapping;
pub use origin::{Origin, Rows};
pub use plan::{
    LoadPlan, PlanRequest, Reader, SAMPLE_BYTES, SchemaOrigin, TEXT_ROOM, plan_with, sniff_input,
};
pub use remote_args::Identity;
pub use set_columns::{SetColumn, SetValue};
pub use typed_inputs::{SniffedInput, sniff_rows};
pub use union::Joined;
