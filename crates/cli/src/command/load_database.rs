//! `coload load --into postgres://...`, `mysql://...` and `sqlserver://...`.

use std::ffi::OsStr;

use coload::{DatabaseTable, Error, LoadMode, PlanRequest, plan_with};

use crate::args::RejectsTo;
use crate::command::load::{self, Call, Loaded};
use crate::output::{Done, Failure};

/// Loads into a table of a database; `None` when there is nothing to load.
///
/// # Errors
/// `Usage` when flags contradict each other, `Failed` when nothing was loaded.
pub fn load_into(call: &Call<'_>, _: &OsStr, mut request: PlanRequest) -> Done<Option<Loaded>> {
    let args = call.args;
    let url = args.into.to_string_lossy();
    let refuse = |text: String| Err(Failure::Usage(Error::Invalid(text)));
    if let Some(RejectsTo::Table(table)) = &args.rejects {
        return refuse(format!(
            "--rejects table:{table}: there are such tables in stores; give a file for the rejects"
        ));
    }
    if args.dry_run {
        return refuse(
            "--dry-run: name a directory in --into; what a database would refuse is not known"
                .to_owned(),
        );
    }
    // Looked at first, so that a name that is wrong connects to nobody.
    load::find_inputs(&mut request)?;
    let first = request.origin.inputs(&request.places, &request.sheets, 0)?.first();
    let name = match (&request.table, first) {
        (Some(table), _) => table.clone(),
        // A file's name is one name, dots or not.
        (None, Some(first)) => format!("\"{}\"", first.table_name().replace('"', "\"\"")),
        (None, None) => return refuse("no input: name a file, a glob, or -".to_owned()),
    };
    let options = args.database.options(&args.remote, &url)?;
    let table = DatabaseTable::new(&url, &name, options)?;
    // What replaces rows has the columns of the table, too, which stays.
    let mode = std::mem::replace(&mut request.mode, LoadMode::Append);
    let Some(mut plan) = plan_with(&request, |_| table.schema())? else { return Ok(None) };
    plan.request.mode = mode;
    plan.request.table = name.clone();
    let prepared = load::prepare(call, &mut plan, &format!("table {name}"))?;
    let request = plan.request;
    let report =
        prepared.run(|resources, hooks| coload::load(&request, resources, hooks, &table))?;
    Ok(Some((report, request.dialect_of_text().cloned())))
}
