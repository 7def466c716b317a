//! One load from its options to its report.

use std::borrow::Cow;

use coload_page::ColumnIndex;
use coload_store::{
    LoadDir, LoadKind, LoadMode, LoadRecord, LoadTarget, ReadyLoad, Store, merge_small_within,
};
use coload_threads::{Started, Step, StepClock, epoch_us, peak_memory_bytes, process_cpu_ns};
use coload_types::{Error, Result};
use coload_wire::{CHUNK_BYTES_MIN, RejectLimit};

use crate::legs::{Whole, run_legs};
use crate::options::LoadOptions;
use crate::pipeline::{Loaded, Stop};
use crate::reject_table::ready_rejects;
use crate::report::{ColumnReport, DryRun, LoadReport};
use crate::target::DoneSegment;
use crate::widen::Widened;

/// Loads the inputs into a table of the store: all of it or nothing.
///
/// # Errors
/// `Input` when a record cannot be a row and no reject is left, `Invalid` when the request does not fit
/// the store or the inputs, `Unavailable` when the system fails. The store is as it was then.
pub fn load(store: &Store, options: &LoadOptions) -> Result<LoadReport> {
    let started = Started::now();
    options.check()?;
    let options = &*with_rules_of_table(store, options)?;
    let pass = |options: &LoadOptions, pass| load_once(store, options, &started, pass);
    let (mut report, mut widened) = with_wider_types(options, pass)?;
    widened.append(&mut report.widened);
    Ok(LoadReport { widened, ..report })
}

/// Reads, parses and compresses the inputs as a load does, and writes nothing: what a load into the
/// store would report. `None` for a store that is not there yet.
///
/// # Errors
/// As [`load`], but for rejects: they are counted, however many.
pub fn dry_run(store: Option<&Store>, options: &LoadOptions) -> Result<DryRun> {
    let started = Started::now();
    options.check()?;
    let mut options = dry_options(options);
    if let Some(store) = store {
        options = with_rules_of_table(store, &options)?.into_owned();
        store.check_target(&target(&options))?;
    }
    let pass = |options: &LoadOptions, pass| {
        let whole = run_legs(options, None, pass)?;
        let columns = report_columns(&whole.options, &whole.segments, &whole.loaded.distinct);
        let bytes: u64 = whole.segments.iter().map(|s| s.summary.bytes).sum();
        Ok(((columns, bytes), whole.loaded, whole.clock, whole.widened))
    };
    let (((columns, bytes_stored), loaded, clock, mut last), mut widened) =
        with_wider_types(&options, pass)?;
    widened.append(&mut last);
    let Loaded { account, share, .. } = loaded;
    let (files, rejects) = account.into_files();
    Ok(DryRun {
        table: options.table,
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

/// The options of a load that is not to be: rejects are counted, and chunks are no longer than what is read.
pub fn dry_options(options: &LoadOptions) -> LoadOptions {
    let mut options = options.clone();
    options.max_rejects = RejectLimit::Count(u64::MAX);
    options.rejects_file = None;
    if let Some(bytes) = options.sample_bytes {
        let least = CHUNK_BYTES_MIN.max(64 << 10);
        options.chunk_bytes = options.chunk_bytes.min((bytes as usize).max(least));
    }
    options
}

/// Runs passes until the types of inferred columns are wide enough.
fn with_wider_types<T>(
    options: &LoadOptions,
    mut run: impl FnMut(&LoadOptions, usize) -> std::result::Result<T, Stop>,
) -> Result<(T, Vec<Widened>)> {
    let mut wider = Cow::Borrowed(options);
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

/// The options, with the rules of the table that rows are added to.
fn with_rules_of_table<'a>(
    store: &Store,
    options: &'a LoadOptions,
) -> Result<Cow<'a, LoadOptions>> {
    let snapshot = store.snapshot()?;
    let table = match options.mode {
        LoadMode::Append => snapshot.table(&options.table),
        LoadMode::Replace | LoadMode::Create => None,
    };
    let rules = table.map_or(&[][..], |table| table.schema.checks());
    let own = options.schema.checks();
    if rules.iter().all(|rule| own.contains(rule)) {
        return Ok(Cow::Borrowed(options));
    }
    let schema = options.schema.clone().with_more_checks(rules)?;
    Ok(Cow::Owned(LoadOptions { schema, ..options.clone() }))
}

fn target(options: &LoadOptions) -> LoadTarget {
    LoadTarget { name: options.table.clone(), schema: options.schema.clone(), mode: options.mode }
}

/// A load that is written and not visible yet.
struct Written<'a> {
    dir: LoadDir,
    record: LoadRecord,
    whole: Whole<'a>,
}

fn write_once<'a>(
    store: &Store,
    options: &'a LoadOptions,
    started: &Started,
    pass: usize,
) -> std::result::Result<Written<'a>, Stop> {
    let mut dir = store.begin_load(target(options))?;
    let whole = run_legs(options, Some(&dir), pass)?;
    if !whole.widened.is_empty() {
        dir.set_schema(whole.options.schema.clone())?;
    }
    let mut record = LoadRecord::new(dir.id(), kind(options.mode));
    record.key = options.key.unwrap_or(record.id);
    let files = whole.loaded.account.files();
    record.started_us = started.epoch_us;
    record.finished_us = epoch_us();
    record.set_inputs(options.inputs.names().iter());
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
pub fn write_ready(store: &Store, options: &LoadOptions) -> Result<ReadyLoad> {
    options.check()?;
    match write_once(store, options, &Started::now(), 0) {
        Ok(Written { dir, record, whole }) => Written::ready(dir, &whole.segments, record),
        Err(Stop::Failed(error)) => Err(error),
        Err(Stop::Widen(_)) => Err(Error::Invalid("the columns of rejects are given".into())),
    }
}

fn load_once(
    store: &Store,
    options: &LoadOptions,
    started: &Started,
    pass: usize,
) -> std::result::Result<LoadReport, Stop> {
    let Written { dir, record, whole } = write_once(store, options, started, pass)?;
    let Whole { loaded, segments, clock, options, widened } = whole;
    let Loaded { partitions, mut account, distinct, .. } = loaded;
    let reject_kinds = account.take_kinds();
    let output = account.take_output();
    let (files, rejects) = account.into_files();
    let rejected = match (&options.rejects_table, &output) {
        (Some(table), Some(output)) if record.rejects > 0 => {
            Some(ready_rejects(store, output.written_path(), table, &options)?)
        }
        _ => None,
    };
    if let Some(confirm) = &options.confirm {
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
    let merge = merge_small_within(store, &options.table, options.memory);
    if let Some(table) = &options.rejects_table {
        let _ = merge_small_within(store, table, options.memory);
    }
    Ok(LoadReport {
        id,
        table: options.table.clone(),
        version,
        record,
        files,
        columns: report_columns(&options, &segments, &distinct),
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
    options: &LoadOptions,
    segments: &[DoneSegment],
    distinct: &[Option<f64>],
) -> Vec<ColumnReport> {
    let rows: u64 = segments.iter().map(|s| s.summary.rows).sum();
    let columns = options.schema.columns().iter().enumerate();
    columns
        .map(|(i, column)| {
            let indexes: Vec<&ColumnIndex> = segments.iter().map(|s| &s.columns[i].index).collect();
            let estimate = distinct.get(i).copied().flatten();
            ColumnReport::new(column, rows, &indexes).with_estimate(rows, estimate)
        })
        .collect()
}
