//! One load from its request to its report.

use std::borrow::Cow;

use coload_page::ColumnIndex;
use coload_store::{
    LoadDir, LoadKind, LoadMode, LoadRecord, LoadTarget, ReadyLoad, Store, merge_small_within,
};
use coload_threads::{Started, Step, StepClock, epoch_us, peak_memory_bytes, process_cpu_ns};
use coload_types::{Error, Result};
use coload_wire::{CHUNK_BYTES_MIN, RejectLimit};

use crate::hooks::Hooks;
use crate::legs::{Whole, run_legs};
use crate::load::Load;
use crate::pipeline::{Loaded, Stop};
use crate::reject_table::ready_rejects;
use crate::report::{ColumnReport, DryRun, LoadReport};
use crate::request::LoadRequest;
use crate::resources::Resources;
use crate::target::DoneSegment;
use crate::widen::Widened;

/// Loads the inputs into a table of the store: all of it or nothing.
///
/// # Errors
/// `Input` when a record cannot be a row and no reject is left, `Invalid` when the request does not fit
/// the store or the inputs, `Unavailable` when the system fails. The store is as it was then.
pub fn load(
    store: &Store,
    request: &LoadRequest,
    resources: &Resources,
    hooks: &Hooks,
) -> Result<LoadReport> {
    let started = Started::now();
    let load = Load { request, resources, hooks };
    load.check()?;
    let request = with_rules_of_table(store, request)?;
    let pass =
        |request: &LoadRequest, pass| load_once(store, load.with_request(request), &started, pass);
    let (mut report, mut widened) = with_wider_types(&request, pass)?;
    widened.append(&mut report.widened);
    Ok(LoadReport { widened, ..report })
}

/// Reads, parses and compresses the inputs as a load does, and writes nothing: what a load into the
/// store would report. `None` for a store that is not there yet.
///
/// # Errors
/// As [`load`], but for rejects: they are counted, however many.
pub fn dry_run(
    store: Option<&Store>,
    request: &LoadRequest,
    resources: &Resources,
    hooks: &Hooks,
) -> Result<DryRun> {
    let started = Started::now();
    Load { request, resources, hooks }.check()?;
    let (mut request, resources) = dry(request, resources);
    if let Some(store) = store {
        request = with_rules_of_table(store, &request)?.into_owned();
        store.check_target(&target(&request))?;
    }
    let load = Load { request: &request, resources: &resources, hooks };
    let pass = |request: &LoadRequest, pass| {
        let whole = run_legs(load.with_request(request), None, pass)?;
        let columns = report_columns(&whole.request, &whole.segments, &whole.loaded.distinct);
        let bytes: u64 = whole.segments.iter().map(|s| s.summary.bytes).sum();
        Ok(((columns, bytes), whole.loaded, whole.clock, whole.widened))
    };
    let (((columns, bytes_stored), loaded, clock, mut last), mut widened) =
        with_wider_types(&request, pass)?;
    widened.append(&mut last);
    let Loaded { account, share, .. } = loaded;
    let (files, rejects) = account.into_files();
    Ok(DryRun {
        table: request.table,
        files,
        columns,
        bytes_stored,
        share,
        wall: started.wall.elapsed(),
        cpu: std::time::Duration::from_nanos(process_cpu_ns() - started.cpu_ns),
        steps: steps(&clock),
        peak_memory: peak_memory_bytes(),
        rejects,
        widened,
    })
}

/// A load that is not to be: rejects are counted, and chunks are no longer than what is read.
pub fn dry(request: &LoadRequest, resources: &Resources) -> (LoadRequest, Resources) {
    let (mut request, mut resources) = (request.clone(), resources.clone());
    request.max_rejects = RejectLimit::Count(u64::MAX);
    request.rejects_file = None;
    if let Some(bytes) = request.sample_bytes {
        let least = CHUNK_BYTES_MIN.max(64 << 10);
        resources.chunk_bytes = resources.chunk_bytes.min((bytes as usize).max(least));
    }
    (request, resources)
}

/// Runs passes until the types of inferred columns are wide enough.
fn with_wider_types<T>(
    request: &LoadRequest,
    mut run: impl FnMut(&LoadRequest, usize) -> std::result::Result<T, Stop>,
) -> Result<(T, Vec<Widened>)> {
    let mut wider = Cow::Borrowed(request);
    let mut widened = Vec::new();
    for pass in 0.. {
        match run(&wider, pass) {
            Ok(done) => return Ok((done, widened)),
            Err(Stop::Failed(error)) => return Err(error),
            Err(Stop::Widen(widening)) => widened.extend(widening.widen(wider.to_mut(), &[])?),
        }
    }
    Err(Error::Limit("the columns' types do not end to become wider: give --columns".to_owned()))
}

/// The request, with the rules of the table that rows are added to.
fn with_rules_of_table<'a>(
    store: &Store,
    request: &'a LoadRequest,
) -> Result<Cow<'a, LoadRequest>> {
    let snapshot = store.snapshot()?;
    let table = match request.mode {
        LoadMode::Append => snapshot.table(&request.table),
        LoadMode::Replace | LoadMode::Create => None,
    };
    let rules = table.map_or(&[][..], |table| table.schema.checks());
    let own = request.schema.checks();
    if rules.iter().all(|rule| own.contains(rule)) {
        return Ok(Cow::Borrowed(request));
    }
    let schema = request.schema.clone().with_more_checks(rules)?;
    Ok(Cow::Owned(LoadRequest { schema, ..request.clone() }))
}

fn target(request: &LoadRequest) -> LoadTarget {
    LoadTarget { name: request.table.clone(), schema: request.schema.clone(), mode: request.mode }
}

/// A load that is written and not visible yet.
struct Written<'a> {
    dir: LoadDir,
    record: LoadRecord,
    whole: Whole<'a>,
}

fn write_once<'a>(
    store: &Store,
    load: Load<'a>,
    started: &Started,
    pass: usize,
) -> std::result::Result<Written<'a>, Stop> {
    let mut dir = store.begin_load(target(load.request))?;
    let whole = run_legs(load, Some(&dir), pass)?;
    if !whole.widened.is_empty() {
        dir.set_schema(whole.request.schema.clone())?;
    }
    let mut record = LoadRecord::new(dir.id(), kind(whole.request.mode));
    record.key = whole.request.key.unwrap_or(record.id);
    let files = whole.loaded.account.files();
    record.started_us = started.epoch_us;
    record.finished_us = epoch_us();
    record.set_inputs(whole.request.inputs.names().iter());
    record.rows = files.iter().map(|f| f.rows).sum();
    record.rejects = files.iter().map(|f| f.rejects).sum();
    record.bytes = files.iter().map(|f| f.bytes).sum();
    Ok(Written { dir, record, whole })
}

impl Written<'_> {
    /// The load, ready to become visible.
    fn ready(dir: LoadDir, segments: &[DoneSegment], record: LoadRecord) -> Result<ReadyLoad> {
        let id = dir.id();
        let entries = segments.iter().map(|s| s.summary.clone().entry(id, s.number)).collect();
        dir.ready(entries, record)
    }
}

/// Writes the rows of one small input, to become visible with another load.
///
/// # Errors
/// Those of a load.
pub fn write_ready(store: &Store, load: Load<'_>) -> Result<ReadyLoad> {
    load.check()?;
    match write_once(store, load, &Started::now(), 0) {
        Ok(Written { dir, record, whole }) => Written::ready(dir, &whole.segments, record),
        Err(Stop::Failed(error)) => Err(error),
        Err(Stop::Widen(_)) => Err(Error::Invalid("the columns of rejects are given".into())),
    }
}

fn load_once(
    store: &Store,
    load: Load<'_>,
    started: &Started,
    pass: usize,
) -> std::result::Result<LoadReport, Stop> {
    let Written { dir, record, whole } = write_once(store, load, started, pass)?;
    let Whole { loaded, segments, clock, request, widened } = whole;
    let Loaded { partitions, mut account, distinct, .. } = loaded;
    let reject_kinds = account.take_kinds();
    let output = account.take_output();
    let (files, rejects) = account.into_files();
    let rejected = match (&request.rejects_table, &output) {
        (Some(table), Some(output)) if record.rejects > 0 => {
            Some(ready_rejects(store, output.written_path(), table, load)?)
        }
        _ => None,
    };
    if let Some(confirm) = &load.hooks.confirm {
        confirm()?;
    }
    let id = dir.id();
    let version = clock
        .time(Step::Write, || Written::ready(dir, &segments, record.clone())?.publish(rejected))?;
    if let Some(output) = output {
        output.commit().map_err(|error| published_without_rejects(version, &error))?;
    }
    let (wall, cpu_ns) = (started.wall.elapsed(), process_cpu_ns() - started.cpu_ns);
    // The rows are published: whatever becomes of the merges, the load has not failed.
    let merge = merge_small_within(store, &request.table, load.resources.memory);
    if let Some(table) = &request.rejects_table {
        let _ = merge_small_within(store, table, load.resources.memory);
    }
    Ok(LoadReport {
        id,
        table: request.table.clone(),
        version,
        record,
        files,
        columns: report_columns(&request, &segments, &distinct),
        segments: segments.len(),
        partitions,
        bytes_stored: segments.iter().map(|s| s.summary.bytes).sum(),
        wall,
        cpu: std::time::Duration::from_nanos(cpu_ns),
        steps: steps(&clock),
        peak_memory: peak_memory_bytes(),
        rejects,
        reject_kinds,
        widened,
        merge,
    })
}

/// The rows are there, and the file of rejects is not.
pub fn published_without_rejects(version: u64, error: &Error) -> Error {
    // No attempt more helps: that would find the load published, and say nothing of the file.
    Error::Invalid(format!(
        "the load is published as version {version}, but its file of rejects is not there: {error}; the rows need not \
         be loaded again"
    ))
}

fn kind(mode: LoadMode) -> LoadKind {
    match mode {
        LoadMode::Append => LoadKind::Append,
        LoadMode::Replace => LoadKind::Replace,
        LoadMode::Create => LoadKind::Create,
    }
}

/// CPU time by step.
pub fn steps(clock: &StepClock) -> Vec<(Step, std::time::Duration)> {
    Step::ALL.into_iter().map(|s| (s, clock.get(s))).collect()
}

/// The columns over all segments of the load.
fn report_columns(
    request: &LoadRequest,
    segments: &[DoneSegment],
    distinct: &[Option<f64>],
) -> Vec<ColumnReport> {
    let rows: u64 = segments.iter().map(|s| s.summary.rows).sum();
    let columns = request.schema.columns().iter().enumerate();
    columns
        .map(|(i, column)| {
            let indexes: Vec<&ColumnIndex> = segments.iter().map(|s| &s.columns[i].index).collect();
            let estimate = distinct.get(i).copied().flatten();
            ColumnReport::new(column, rows, &indexes).with_estimate(rows, estimate)
        })
        .collect()
}
