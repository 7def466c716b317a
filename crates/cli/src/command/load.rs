//! `coload load`.

mod rejects;

use std::ffi::OsStr;
use std::os::unix::ffi::OsStrExt;
use std::sync::Arc;

use coload::{
    Coload, Dialect, DryRun, EncodingPolicy, Error, Hooks, Joined, LoadMode, LoadPlan, LoadReport,
    LoadRequest, Mapping, PlanRequest, Resources, SAMPLE_BYTES, Schema, SchemaOrigin,
    parse_columns, parse_create_table,
};
use coload_ddl::column_sql;
use coload_source::expand_inputs;

use crate::args::{Dictionaries, Encoding, LoadArgs, ModeArgs, RejectsTo, ReportForm};
use crate::command::{load_parquet, load_remote};
use crate::given::{check_given, given_dialect};
use crate::interrupt::cancel_on_signal;
use crate::output::{Done, Failure, print, say};
use crate::progress::ProgressBar;
use crate::report;
use rejects::Rejects;

/// Loads into a target, and prints the report: the flags, what follows the target's prefix, and what is asked for.
type RunInto = fn(&LoadArgs, &OsStr, PlanRequest) -> Done;

/// Targets that `--into` tells by how it begins. Anything else is the directory of a store.
const TARGETS: [(&str, RunInto); 3] = [
    ("coload://", load_remote::run),
    ("coloads://", load_remote::run),
    ("parquet:", load_parquet::run),
];

/// Loads, and prints the report.
///
/// # Errors
/// `Usage` when flags contradict each other, `Failed` when nothing was loaded.
pub fn run(args: &LoadArgs) -> Done {
    let request = request(args)?;
    let into = args.into.as_os_str().as_bytes();
    for (prefix, run) in TARGETS {
        if let Some(rest) = into.strip_prefix(prefix.as_bytes()) {
            return run(args, OsStr::from_bytes(rest), request);
        }
    }
    if args.dry_run {
        return dry_run(args, &request);
    }
    let Some((report, dialect)) = load(args, request)? else { return tell_nothing(args) };
    match args.report {
        ReportForm::Text => print(&report::text(&report)),
        ReportForm::Json => print(&report::json(&report, &dialect)),
    }
}

/// Says that the inputs hold nothing that could be loaded.
pub fn tell_nothing(args: &LoadArgs) -> Done {
    say(&format!(
        "nothing to load, and nothing made: {} holds no record that tells the columns; give --columns or --schema \
         to load it all the same",
        args.inputs.join(", ")
    ));
    print(match args.report {
        ReportForm::Text => "",
        ReportForm::Json => report::JSON_OF_NOTHING,
    })
}

/// Says what a load would do.
fn dry_run(args: &LoadArgs, request: &PlanRequest) -> Done {
    let Some(mut plan) = Coload::plan_dry_run(&args.into, request)? else {
        return tell_nothing(args);
    };
    let table = format!("table {}", plan.request.table);
    let Prepared { resources, hooks, bar } = prepare(args, &mut plan, &table)?;
    set_sample(args, &mut plan);
    let run = Coload::dry_run(&args.into, &plan.request, &resources, &hooks);
    bar.clear();
    tell_dry_run(args, &run?, &plan.request.dialect, "in the store")
}

/// Sets how much of the inputs a dry run reads.
pub fn set_sample(args: &LoadArgs, plan: &mut LoadPlan) {
    let all = |bytes: &usize| *bytes == usize::MAX;
    plan.request.sample_bytes = args.sample.filter(|bytes| !all(bytes)).map(|bytes| bytes as u64);
}

/// Prints what a load would do; `place` is where its rows would be.
///
/// # Errors
/// `Failed` when it would fail.
pub fn tell_dry_run(args: &LoadArgs, run: &DryRun, dialect: &Dialect, place: &str) -> Done {
    match args.report {
        ReportForm::Text => print(&report::dry_run_text(run, place)),
        ReportForm::Json => print(&report::dry_run_json(run, dialect)),
    }?;
    match args.max_rejects.is_over(run.reject_count(), run.rows() + run.reject_count()) {
        false => Ok(()),
        true => Err(Failure::Failed(Error::Invalid(format!(
            "the load would fail: {} records would be rejected (--max-rejects allows more)",
            run.reject_count()
        )))),
    }
}

fn load(args: &LoadArgs, mut request: PlanRequest) -> Done<Option<(LoadReport, Dialect)>> {
    // Looked at first, so that a name that is wrong makes no store.
    request.found = Some(expand_inputs(&args.inputs)?);
    let store = Coload::create_or_open(&args.into)?;
    let Some(mut plan) = store.plan_unless_empty(&request)? else { return Ok(None) };
    let table = plan.request.table.clone();
    let Prepared { resources, hooks, bar } = prepare(args, &mut plan, &format!("table {table}"))?;
    let rejects = Rejects::prepare(args.rejects.as_ref(), store.store(), &table)?;
    plan.request.rejects_file = rejects.file.clone();
    plan.request.rejects_table = rejects.table.map(str::to_owned);
    let loaded = store.load(&plan.request, &resources, &hooks);
    bar.clear();
    let report = loaded?;
    drop(rejects);
    Ok(Some((report, plan.request.dialect)))
}

/// What a load may use, and who is told of it.
pub struct Prepared {
    /// As flags say.
    pub resources: Resources,
    /// Signals stop the load, and the bar shows how far it is.
    pub hooks: Hooks,
    /// To be cleared when the load has ended.
    pub bar: ProgressBar,
}

/// Tells what was found out for what is loaded, and sets what flags say.
///
/// # Errors
/// `Failed` when signals cannot be waited for.
pub fn prepare(args: &LoadArgs, plan: &mut LoadPlan, what: &str) -> Done<Prepared> {
    tell_inferred(plan, what);
    set_request(&mut plan.request, args);
    let bar = ProgressBar::on_terminal();
    let hooks = Hooks { progress: bar.callback(), ..Hooks::default() };
    cancel_on_signal(Arc::clone(&hooks.cancel))?;
    Ok(Prepared { resources: resources(args), hooks, bar })
}

fn request(args: &LoadArgs) -> Done<PlanRequest> {
    check_given(&args.dialect)?;
    Ok(PlanRequest {
        inputs: args.inputs.clone(),
        found: None,
        table: args.table.clone(),
        schema: schema(args)?,
        dialect: given_dialect(&args.dialect),
        mapping: mapping(args)?,
        joined: if args.union_by_name { Joined::ByName } else { Joined::ByPosition },
        set: args.set.clone(),
        filter: args.filter.clone(),
        select: args.select.clone(),
        mode: mode(&args.mode),
        sample_bytes: args.sample.unwrap_or(SAMPLE_BYTES),
    })
}

fn mapping(args: &LoadArgs) -> Done<Option<Mapping>> {
    let mut mapping = Mapping::default();
    for pair in &args.map {
        mapping.add(pair).map_err(Failure::Usage)?;
    }
    Ok((args.by_name || !args.map.is_empty()).then_some(mapping))
}

fn schema(args: &LoadArgs) -> Done<Option<Schema>> {
    if let Some(list) = &args.columns {
        let schema = parse_columns(list).map_err(|e| flag_error("--columns", &e))?;
        return Ok(Some(schema));
    }
    let Some(path) = &args.schema else { return Ok(None) };
    let sql = std::fs::read_to_string(path).map_err(|e| Error::io("read --schema", path, &e))?;
    let flag = format!("--schema {}", path.display());
    let (_, schema) = parse_create_table(&sql).map_err(|e| flag_error(&flag, &e))?;
    Ok(Some(schema))
}

fn flag_error(flag: &str, error: &Error) -> Failure {
    Failure::Usage(Error::Invalid(format!("{flag}: {error}")))
}

fn mode(args: &ModeArgs) -> LoadMode {
    match args {
        ModeArgs { replace: true, .. } => LoadMode::Replace,
        ModeArgs { create: true, .. } => LoadMode::Create,
        _ => LoadMode::Append,
    }
}

/// Sets what flags say of what is loaded besides the rows.
fn set_request(request: &mut LoadRequest, args: &LoadArgs) {
    request.max_rejects = args.max_rejects;
    if let Some(RejectsTo::File(path)) = &args.rejects {
        request.rejects_file = Some(path.clone());
    }
    request.protected.extend(args.schema.clone().map(|path| (path, "the file of --schema")));
    request.count_distinct = args.count_distinct || args.dry_run;
}

/// What flags say that a load may use.
fn resources(args: &LoadArgs) -> Resources {
    let given = &args.pipeline;
    let forced = given.dictionaries == Dictionaries::Always
        || args.dialect.encoding == Some(Encoding::Dictionary);
    let usual = Resources::default();
    Resources {
        threads: given.threads.unwrap_or(usual.threads),
        memory: given.memory.unwrap_or(usual.memory),
        chunk_bytes: given.chunk_size.unwrap_or(usual.chunk_bytes),
        fragments_per_partition: given
            .fragments_per_partition
            .unwrap_or(usual.fragments_per_partition),
        merge_columns: given.merge_columns.unwrap_or(usual.merge_columns),
        encoding: if forced { EncodingPolicy::Dictionary } else { EncodingPolicy::Auto },
    }
}

/// Says on standard error what was guessed for a table or other `what`, and how to say otherwise.
fn tell_inferred(plan: &LoadPlan, what: &str) {
    let name = plan.request.inputs.first().map_or_else(|| "-".to_owned(), |first| first.name);
    for line in &plan.evidence {
        say(&format!("{name}: {line}"));
    }
    match plan.schema_from {
        SchemaOrigin::Given => {}
        SchemaOrigin::Table => say(&format!("{name}: columns are those of {what}")),
        SchemaOrigin::Inferred => {
            let list: Vec<String> = plan.request.schema.columns().iter().map(column_sql).collect();
            say(&format!("{name}: columns inferred for {what}; to say otherwise:"));
            say(&format!("  --columns '{}'", list.join(", ")));
        }
    }
}
