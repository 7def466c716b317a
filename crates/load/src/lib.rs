//! The load pipeline: from delimited text to a published version of a store.
//!
//! ```text
//!   plan -> read -> parse -> sort -> compress -> merge -> publish
//! ```
//!
//! Rows keep the order of the input. The same input and options give the same segments whatever the
//! number of threads.

mod account;
mod arrivals;
mod arrow_ipc;
mod arrow_rows;
mod avro_input;
mod checks;
mod derive;
mod file_parts;
mod file_report;
mod format;
mod fragment_values;
mod grain;
mod hooks;
mod into_store;
mod kinds;
mod legs;
mod load;
mod nowhere;
mod opened;
mod output_file;
mod parquet;
mod parquet_input;
mod partition;
mod passes;
mod pipeline;
mod program;
mod projection;
mod read_rows;
mod reject_table;
mod remote;
mod replaced_file;
mod report;
mod request;
mod reread;
mod resources;
mod resume;
mod schedule;
mod settle;
mod share;
mod share_into_store;
mod share_rejects;
mod splits;
mod spool;
mod starts;
mod target;
mod text;
mod text_fragments;
mod typed;
mod typed_source;
mod unfinished;
mod wanted;
mod widen;
mod wider_columns;
mod workers;

pub use arrow_ipc::look_at_arrow;
pub use arrow_rows::{ArrowRows, Batches};
pub use avro_input::look_at_avro;
pub use coload_link::{ClientTls, WireCompression};
pub use derive::check_partition;
pub use file_report::{FileCounts, FileReport, FileReports};
pub use grain::RecordSize;
pub use hooks::{Hooks, OnOpened, OnWritten, PartsRead, Progress, ProgressCallback, RowGroupsRead};
pub use kinds::RejectKind;
pub use load::{Destination, Load, load};
pub use nowhere::Nowhere;
pub use opened::{OpenedStream, sample_end};
pub use output_file::check_output;
pub use parquet::{FRAGMENTS_PER_ROW_GROUP, ParquetFolder};
pub use parquet_input::{look_at_parquet, refuse_damaged_start, rows_told};
pub use passes::{Ran, earlier_load, read_again, run_passes};
pub use program::{RowProgram, RowsMade};
pub use projection::project;
pub use read_rows::{RowsRead, read_rows};
pub use reject_table::check_reject_table;
pub use remote::{
    Address, Gone, Leaves, RemoteOptions, RemoteWork, abort_load, ask_patiently, cluster_map,
    holds_for, list_loads, table_schema,
};
pub use replaced_file::ReplacedFile;
pub use report::{
    ColumnChoice, ColumnReport, DatabaseReport, Distinct, DryRun, LoadReport, Merged,
    NetworkReport, PlacementReport, Published, SendChange, SendEstimate, SentBy, SortReport,
    TextFragmentReport, WrittenFile, WrittenFiles,
};
pub use request::{InputForm, LoadRequest, OpenStream, RefusedColumn};
pub use resources::{MERGE_COLUMNS, Resources, default_memory};
pub use share::SharedLoad;
pub use splits::{
    FoundInputs, Split, SplitMethod, SplitPart, SplitPlan, SplitRules, WorkerShare, plan_splits,
    worker_of_name,
};
pub use target::{
    Ahead, AheadColumn, FragmentRows, InMemory, MadeRows, RowBytes, RowNumbers, TakesRows,
    TakesSegments, Target, Work, Works,
};
pub use text_fragments::{ParsedText, TextFragmentParser, TextFragments};
pub use typed::{Column as TypedColumn, TypedField, TypedInput, TypedKind};
pub use typed_source::{PartBytes, SourceParts, TypedBlock, TypedReader, TypedSource, Wanted};
pub use unfinished::{drop_unfinished, list_unfinished};
pub use wanted::{WantedRows, keep_wanted_inputs};
pub use widen::Widened;
pub use wider_columns::WiderColumns;
