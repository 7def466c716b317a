//! `coload load --into coload://...`.

use std::ffi::OsStr;

use coload::{Error, LoadMode, LoadRequest, PlanRequest, Schema, plan_with};
use coload_load::{Address, ask_patiently, table_schema};

use crate::args::RejectsTo;
use crate::command::load::{self, Call, Loaded};
use crate::command::share::{Whole, find_shared};
use crate::output::{Done, Failure};
use crate::remote_args::remote_options;

/// Loads into a server; `None` when there is nothing to load.
///
/// # Errors
/// `Usage` when flags contradict each other, `Failed` when nothing was loaded.
pub fn load_into(call: &Call<'_>, _: &OsStr, mut request: PlanRequest) -> Done<Option<Loaded>> {
    let args = call.args;
    let server: &Address = &args.into.to_string_lossy().parse().map_err(Failure::Usage)?;
    if let Some(RejectsTo::Table(table)) = &args.rejects {
        return Err(Failure::Usage(Error::Invalid(format!(
            "--rejects table:{table}: name a directory in --into, or a file for the rejects"
        ))));
    }
    if args.dry_run {
        return Err(Failure::Usage(Error::Invalid(
            "--dry-run: name a directory in --into; what a server would do is not known".into(),
        )));
    }
    if server.table.is_some() && request.table.is_some() && server.table != request.table {
        return Err(Failure::Usage(Error::Invalid(
            "--table and the table in --into differ: give one".into(),
        )));
    }
    request.table = request.table.or_else(|| server.table.clone());
    let mut remote = remote_options(server, &call.identity)?;
    args.remote.apply(&mut remote);
    let found = find_shared(args, &mut request)?;
    // The server may be away for some time, at the start as well as later.
    let cancel = call.attendant.cancel();
    let described = |table: &str| ask_patiently(&remote, &cancel, || table_schema(&remote, table));
    let plan = plan_with(&request, described)?;
    let Some(mut plan) = plan else { return Ok(None) };
    if request.schema.is_some() && request.mode == LoadMode::Append {
        match described(&plan.request.table) {
            Ok(table) => add_rules(&mut plan.request, table.as_ref())?,
            // Who may load into a table need not be allowed to see it; the server asks its rules.
            Err(Error::Refused(_)) => {}
            Err(error) => return Err(error.into()),
        }
    }
    let table = format!("table {}", plan.request.table);
    let prepared = load::prepare(call, &mut plan, &table)?;
    let dialect = plan.request.dialect_of_text().cloned();
    let whole = Whole::new(args, found, plan.request)?;
    let report = prepared.run(|resources, hooks| whole.load(resources, hooks, &remote))?;
    Ok(Some((report, dialect)))
}

/// Adds the rules of the table, so that records which break one are rejects. The server refuses other columns.
fn add_rules(request: &mut LoadRequest, table: Option<&Schema>) -> Done {
    let Some(table) = table else { return Ok(()) };
    let names = |schema: &Schema| -> Vec<String> {
        schema.columns().iter().map(|column| column.name.to_lowercase()).collect()
    };
    if names(table) == names(&request.schema) {
        request.schema = request.schema.clone().with_more_checks(table.checks())?;
    }
    Ok(())
}
