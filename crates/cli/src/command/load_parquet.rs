//! `coload load --into parquet:DIR`.

use std::ffi::OsStr;
use std::path::Path;

use coload::{Error, Nowhere, ParquetFolder, PlanRequest, plan_with};
use coload_load::FRAGMENTS_PER_ROW_GROUP;

use crate::args::RejectsTo;
use crate::command::load::{self, Call, Loaded};
use crate::output::{Done, Failure};

/// Loads into Parquet files of a folder; `None` when there is nothing to load.
///
/// # Errors
/// `Usage` when flags contradict each other, `Failed` when nothing was loaded.
pub fn load_into(
    call: &Call<'_>,
    folder: &OsStr,
    mut request: PlanRequest,
) -> Done<Option<Loaded>> {
    let args = call.args;
    let path = Path::new(folder);
    let refuse = |text: String| Err(Failure::Usage(Error::Invalid(text)));
    if let Some(table) = &args.table {
        return refuse(format!(
            "--table {table}: there are tables in stores; Parquet files of another table go into another directory \
             (leave out --table)"
        ));
    }
    if let Some(RejectsTo::Table(table)) = &args.rejects {
        return refuse(format!(
            "--rejects table:{table}: there are tables in stores; give a file for the rejects"
        ));
    }
    // Looked at first, so that a name that is wrong makes no folder.
    load::find_inputs(&mut request)?;
    let known = |_: &str| ParquetFolder::new(path)?.schema();
    let Some(mut plan) = plan_with(&request, known)? else { return Ok(None) };
    let files = format!("the files in {}", path.display());
    let mut prepared = load::prepare(call, &mut plan, &files)?;
    prepared.resources.fragments_per_partition =
        args.pipeline.fragments_per_partition.unwrap_or(FRAGMENTS_PER_ROW_GROUP);
    let request = plan.request;
    let report = prepared.run(|resources, hooks| match args.dry_run {
        true => coload::load(&request, resources, hooks, &Nowhere::LikeParquet(path)),
        false => coload::load(&request, resources, hooks, &ParquetFolder::new(path)?),
    })?;
    Ok(Some((report, request.dialect_of_text().cloned())))
}
