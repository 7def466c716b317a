//! Loads into a folder of Parquet files.
//!
//! ```text
//!   partition -> row group: a column chunk for each column, made by any worker
//!             -> file, in the order of the input                           _coload-<load>/000000.unfinished
//!             -> all whole and durable: renamed, one after the other       <time>-<load>-000000.parquet
//! ```
//!
//! The dictionaries of a partition are those of its row group, as they are. What is in the files depends on the input and
//! the request only; their names on the time and the load.
//!
//! A file holds what it holds: where a column becomes wider, the load starts again, and a stream is read again from a file
//! without a name that kept it ([`passes`]).
//!
//! Memory: up to three partitions, one of which is being filled, as codes and pages of ours; the column chunks of
//! one or two row groups; the index of the pages of the file that is open.
//!
//! See decision 0042.

mod columns;
mod files;
mod folder;
mod passes;
mod publish;
mod report;
mod row_groups;

use std::path::Path;
use std::time::Duration;

use coload_ddl::Schema;
use coload_threads::{Started, Step, peak_memory_bytes, process_cpu_ns};
use coload_types::{Error, Result};

use crate::hooks::Hooks;
use crate::legs::run_once;
use crate::load::Load;
use crate::output_file::check_output;
use crate::pipeline::{Loaded, Stop};
use crate::report::DryRun;
use crate::request::LoadRequest;
use crate::resources::Resources;
use crate::run::{dry, steps};
use crate::widen::Widened;
use files::Written;
use folder::Folder;
use passes::Passes;
use publish::remove_unfinished;
use row_groups::RowGroups;

pub use report::{ParquetReport, WrittenFile};

/// Default fragments of a partition, and so of a row group: some 100 MiB of text. Readers share a file out by row groups,
/// and hold one in memory.
pub const FRAGMENTS_PER_ROW_GROUP: usize = 10;

/// Loads the inputs into files of a folder: all of it or nothing.
///
/// # Errors
/// `Input` when a record cannot be a row and no reject is left, `Invalid` when the request does not fit the folder or
/// the inputs, `Unavailable` when the system fails. The files are those that were there then, unless the message says
/// otherwise.
pub fn load_parquet(
    folder: &Path,
    request: &LoadRequest,
    resources: &Resources,
    hooks: &Hooks,
) -> Result<ParquetReport> {
    let started = Started::now();
    let of = Load { request, resources, hooks };
    of.check()?;
    if let Some(path) = &request.rejects_file {
        let folder = [(folder.to_owned(), "the folder of the Parquet files")];
        check_output("--rejects", path, &request.inputs, &folder)?;
    }
    let folder = Folder::new(folder)?;
    let mut load = folder.begin(request.mode, &request.schema, request.began_us)?;
    let scratch = load.scratch_path("stream");
    let Ran { loaded, written, request, widened, clock } = run(of, &scratch, Some(load.path()))?;
    let Loaded { partitions, mut account, distinct, .. } = loaded;
    let reject_kinds = account.take_kinds();
    let output = account.take_output();
    let names = clock
        .time(Step::Write, || load.publish(request.mode, &request.schema, written.files.len()))?;
    if let Some(output) = output {
        output.commit().map_err(|error| {
            Error::Invalid(format!(
                "the load is published as {} in {}, but its file of rejects is not there: {error}; the rows need not \
                 be loaded again",
                names.added.join(", "),
                folder.path().display()
            ))
        })?;
    }
    let (files, rejects) = account.into_files();
    Ok(ParquetReport {
        id: load.id(),
        folder: folder.path().to_owned(),
        files,
        columns: written.columns(&request.schema, &distinct),
        written: written.files(&names.added),
        removed: names.removed,
        partitions,
        wall: started.wall.elapsed(),
        cpu: Duration::from_nanos(process_cpu_ns() - started.cpu_ns),
        steps: steps(&clock),
        peak_memory: peak_memory_bytes(),
        rejects,
        reject_kinds,
        widened,
    })
}

/// Reads, parses and compresses the inputs as [`load_parquet`] does, and writes nothing.
///
/// # Errors
/// As [`load_parquet`], but for rejects: they are counted, however many.
pub fn dry_run_parquet(
    folder: &Path,
    request: &LoadRequest,
    resources: &Resources,
    hooks: &Hooks,
) -> Result<DryRun> {
    let started = Started::now();
    Load { request, resources, hooks }.check()?;
    let folder = Folder::new(folder)?;
    let (request, resources) = dry(request, resources);
    folder.check(request.mode, &request.schema)?;
    let name = format!("coload-stream-{}-{}", std::process::id(), request.began_us);
    let load = Load { request: &request, resources: &resources, hooks };
    let Ran { loaded, written, request, widened, clock } =
        run(load, &std::env::temp_dir().join(name), None)?;
    let Loaded { account, share, distinct, .. } = loaded;
    let (files, rejects) = account.into_files();
    Ok(DryRun {
        table: folder.path().display().to_string(),
        files,
        columns: written.columns(&request.schema, &distinct),
        bytes_stored: written.files.iter().map(|file| file.bytes).sum(),
        share,
        wall: started.wall.elapsed(),
        cpu: Duration::from_nanos(process_cpu_ns() - started.cpu_ns),
        steps: steps(&clock),
        peak_memory: peak_memory_bytes(),
        rejects,
        widened,
    })
}

/// The columns of the files in a folder; `None` when there are none.
///
/// # Errors
/// `Invalid` when a column is of a type that a load does not write, `Corrupt` when a file is no Parquet.
pub fn parquet_schema(folder: &Path) -> Result<Option<Schema>> {
    Folder::new(folder)?.schema()
}

/// A load whose files are written.
struct Ran {
    loaded: Loaded,
    written: Written,
    /// The request with the last types.
    request: LoadRequest,
    widened: Vec<Widened>,
    clock: coload_threads::StepClock,
}

/// Runs passes until the types are wide enough. `scratch` is a name for the text of a stream; the files go into a folder,
/// or nowhere.
fn run(load: Load<'_>, scratch: &Path, into: Option<&Path>) -> Result<Ran> {
    let mut request = load.request.clone();
    let mut passes = Passes::new(&request, scratch)?;
    let mut widened = Vec::new();
    loop {
        let way = passes.begin(&mut request, &widened)?;
        into.map(remove_unfinished).transpose()?;
        let target = RowGroups::new(&request.schema, into)?;
        match run_once(load.with_request(&request), &target, way) {
            Ok((loaded, clock)) => {
                let written = target.into_written()?;
                return Ok(Ran { loaded, written, request, widened, clock });
            }
            Err(Stop::Failed(error)) => return Err(error),
            Err(Stop::Widen(widening)) => widened.extend(widening.widen(&mut request, &[])?),
        }
    }
}
