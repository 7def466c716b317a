//! `coload load --into parquet:DIR`.

use std::ffi::OsStr;
use std::path::Path;

use coload::{Error, LoadPlan, PlanRequest, plan_with};
use coload_load::{FRAGMENTS_PER_ROW_GROUP, dry_run_parquet, load_parquet, parquet_schema};
use coload_source::expand_inputs;

use crate::args::{LoadArgs, RejectsTo, ReportForm};
use crate::command::load::{self, Prepared};
use crate::output::{Done, Failure, print};
use crate::report;

/// Loads into Parquet files of a folder, and prints the report.
///
/// # Errors
/// `Usage` when flags contradict each other, `Failed` when nothing was loaded.
pub fn run(args: &LoadArgs, folder: &OsStr, mut request: PlanRequest) -> Done {
    let folder = Path::new(folder);
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
    request.found = Some(expand_inputs(&args.inputs)?);
    let Some(mut plan) = plan_with(&request, |_| parquet_schema(folder))? else {
        return load::tell_nothing(args);
    };
    let mut prepared =
        load::prepare(args, &mut plan, &format!("the files in {}", folder.display()))?;
    prepared.resources.fragments_per_partition =
        args.pipeline.fragments_per_partition.unwrap_or(FRAGMENTS_PER_ROW_GROUP);
    match args.dry_run {
        true => dry_run(args, folder, plan, prepared),
        false => {
            let Prepared { resources, hooks, bar } = prepared;
            let loaded = load_parquet(folder, &plan.request, &resources, &hooks);
            bar.clear();
            let report = loaded?;
            match args.report {
                ReportForm::Text => print(&report::parquet_text(&report)),
                ReportForm::Json => print(&report::parquet_json(&report, &plan.request.dialect)),
            }
        }
    }
}

fn dry_run(args: &LoadArgs, folder: &Path, mut plan: LoadPlan, prepared: Prepared) -> Done {
    load::set_sample(args, &mut plan);
    let Prepared { resources, hooks, bar } = prepared;
    let run = dry_run_parquet(folder, &plan.request, &resources, &hooks);
    bar.clear();
    load::tell_dry_run(args, &run?, &plan.request.dialect, "as Parquet")
}
