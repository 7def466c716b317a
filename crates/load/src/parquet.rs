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
//! without a name that kept it ([`crate::passes`]).
//!
//! Memory: up to three partitions, one of which is being filled, as codes and pages of ours; the column chunks of
//! one or two row groups; the index of the pages of the file that is open.
//!
//! See decision 0042.

mod columns;
mod files;
mod folder;
mod publish;
mod row_groups;

use std::path::Path;

use coload_threads::{Started, Step};
use coload_types::{Error, Result};

use crate::load::{Destination, Load};
use crate::output_file::check_output;
use crate::passes::{Ran, run_passes};
use crate::pipeline::Loaded;
use crate::report::{LoadReport, WrittenFiles};
use crate::request::LoadRequest;
use files::Written;
use publish::remove_unfinished;
use row_groups::RowGroups;

pub use folder::ParquetFolder;

/// Default fragments of a partition, and so of a row group: some 100 MiB of text. Readers share a file out by row groups,
/// and hold one in memory.
pub const FRAGMENTS_PER_ROW_GROUP: usize = 10;

impl Destination for ParquetFolder {
    fn take(&self, load: Load<'_>) -> Result<LoadReport> {
        let started = Started::now();
        let asked = load.request;
        asked.refuse_key(
            "in Parquet files",
            "leave it out; rows of files keep the order of the input",
        )?;
        if let Some(path) = &asked.rejects_file {
            let folder = [(self.path().to_owned(), "the folder of the Parquet files")];
            check_output("--rejects", path, &asked.inputs, &folder)?;
        }
        let mut begun = self.begin(asked.mode, &asked.schema, asked.began_us)?;
        let scratch = begun.scratch_path("stream");
        let RanIntoFiles { ran, written } = run(load, &scratch, Some(begun.path()))?;
        let Ran { loaded, request, widened, clock, .. } = ran;
        let Loaded { partitions, mut account, distinct, .. } = loaded;
        let reject_kinds = account.take_kinds();
        let output = account.take_output();
        let names = clock.time(Step::Write, || {
            begun.publish(request.mode, &request.schema, written.files.len())
        })?;
        if let Some(output) = output {
            output.commit().map_err(|error| self.without_rejects(&names.added, &error))?;
        }
        let (files, rejects) = account.into_files();
        let columns = written.columns(&request.schema, &distinct);
        let written = WrittenFiles { files: written.files(&names.added), removed: names.removed };
        let mut report = LoadReport {
            id: Some(begun.id()),
            files,
            columns,
            partitions,
            bytes_stored: written.files.iter().map(|file| file.bytes).sum(),
            rejects,
            reject_kinds,
            widened,
            written: Some(written),
            ..LoadReport::new(self.path().display().to_string())
        };
        report.set_steps(&clock);
        report.set_costs(&started);
        Ok(report)
    }
}

impl ParquetFolder {
    /// Does what a load does, and writes nothing but the text of a stream, at `scratch`.
    ///
    /// # Errors
    /// Those of a load.
    pub(crate) fn dry_run(&self, load: Load<'_>, scratch: &Path) -> Result<RanIntoFiles> {
        self.check(load.request.mode, &load.request.schema)?;
        run(load, scratch, None)
    }

    /// The rows are there, and the file of rejects is not.
    fn without_rejects(&self, added: &[String], error: &Error) -> Error {
        Error::Invalid(format!(
            "the load is published as {} in {}, but its file of rejects is not there: {error}; the rows need not \
             be loaded again",
            added.join(", "),
            self.path().display()
        ))
    }
}

/// A load whose files are written.
pub struct RanIntoFiles {
    /// The load.
    pub ran: Ran<()>,
    /// The files.
    pub written: Written,
}

/// Runs passes until the types are wide enough. `scratch` is a name for the text of a stream; the files go into a folder,
/// or nowhere.
fn run(load: Load<'_>, scratch: &Path, into: Option<&Path>) -> Result<RanIntoFiles> {
    let begin = |request: &LoadRequest| {
        into.map(remove_unfinished).transpose()?;
        RowGroups::new(&request.schema, into)
    };
    let Ran { loaded, target, request, widened, clock } = run_passes(load, scratch, begin)?;
    let written = target.into_written()?;
    Ok(RanIntoFiles { ran: Ran { loaded, target: (), request, widened, clock }, written })
}
