//! The load pipeline: from delimited text to a published version of a store.
//!
//! ```text
//!   plan -> read -> parse -> sort -> compress -> merge -> publish
//! ```
//!
//! Rows keep the order of the input. The same input and options give the same segments whatever the
//! number of threads.

mod account;
mod arrow_ipc;
mod checks;
mod derive;
mod file_report;
mod format;
mod fragment_values;
mod grain;
mod kinds;
mod legs;
mod opened;
mod options;
mod output_file;
mod parquet;
mod partition;
mod pipeline;
mod program;
mod raw;
mod reject_table;
mod remote;
mod report;
mod run;
mod schedule;
mod spool;
mod target;
mod text;
mod texts;
mod whole_file;
mod widen;

pub use arrow_ipc::{ArrowForm, ArrowInput, look_at_arrow};
pub use coload_link::{ClientTls, WireCompression};
pub use file_report::{FileCounts, FileReport, FileReports};
pub use grain::RecordSize;
pub use kinds::RejectKind;
pub use opened::{OpenedStream, sample_end};
pub use options::{
    AfterTask, CHUNK_BYTES, Confirm, FRAGMENTS_PER_PARTITION, InputForm, LoadOptions,
    MERGE_COLUMNS, OpenStream, Progress, ProgressCallback, default_memory,
};
pub use output_file::{OutputFile, check_output};
pub use parquet::{
    FRAGMENTS_PER_ROW_GROUP, ParquetReport, WrittenFile, dry_run_parquet, load_parquet,
    parquet_schema,
};
pub use program::{RowProgram, RowsMade};
pub use raw::{RawParser, RawPartition, RawRows};
pub use reject_table::check_reject_table;
pub use remote::{
    Address, Change, ColumnChoice, LoadList, RawReport, RemoteOptions, RemoteReport, RemoteWork,
    abort_load, ask_patiently, list_loads, load_remote, table_schema,
};
pub use report::{ColumnReport, Distinct, DryRun, LoadReport, REJECTS_KEPT_MAX};
pub use run::{dry_run, load};
pub use whole_file::WholeFile;
pub use widen::Widened;
