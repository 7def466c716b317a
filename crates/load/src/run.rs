//! One load from its options to its report.

use std::borrow::Cow;

use coload_format::{ColumnIndex, Error, Result};
use coload_store::{LoadId, LoadKind, LoadMode, LoadRecord, LoadTarget, SegmentEntry, Store};

use crate::background::merge_small;
use crate::clock::{Step, StepClock, peak_memory_bytes, process_cpu_ns};
use crate::options::LoadOptions;
use crate::pipeline::{Destination, Loaded, Pipeline, Started, Stop, epoch_us};
use crate::report::{ColumnReport, LoadReport};
use crate::schedule::DoneSegment;

/// Loads the inputs into a table of the store: all of it or nothing.
///
/// # Errors
/// `Input` when a record cannot be a row and no reject is left, `Invalid` when the request does not fit
/// the store or the inputs, `Unavailable` when the system fails. The store is as it was then.
pub fn load(store: &Store, options: &LoadOptions) -> Result<LoadReport> {
    let started = Started::now();
    options.check()?;
    let mut wider = Cow::Borrowed(options);
    let mut widened = Vec::new();
    for pass in 0.. {
        match load_once(store, &wider, &started, pass) {
            Ok(report) => return Ok(LoadReport { widened, ..report }),
            Err(Stop::Failed(error)) => return Err(error),
            Err(Stop::Widen(widening)) => widened.extend(widening.widen(wider.to_mut())?),
        }
    }
    Err(Error::Limit("the columns' types do not end to become wider: give --columns".to_owned()))
}

fn load_once(
    store: &Store,
    options: &LoadOptions,
    started: &Started,
    pass: usize,
) -> std::result::Result<LoadReport, Stop> {
    let target = LoadTarget {
        name: options.table.clone(),
        schema: options.schema.clone(),
        mode: options.mode,
    };
    let dir = match options.id {
        Some(id) => store.begin_load_as(target, id)?,
        None => store.begin_load(target)?,
    };
    let pipeline = Pipeline::open(options, Destination::Store(&dir), pass)?;
    let (loaded, clock) = pipeline.run()?;
    let Loaded { segments, partitions, account } = loaded;
    let (files, rejects) = account.into_files();
    let mut record = LoadRecord::new(dir.id(), kind(options.mode));
    record.started_us = started.epoch_us;
    record.finished_us = epoch_us();
    record.set_inputs(&files.iter().map(|f| f.name.as_str()).collect::<Vec<_>>());
    record.rows = files.iter().map(|f| f.rows).sum();
    record.rejects = files.iter().map(|f| f.rejects).sum();
    record.bytes = files.iter().map(|f| f.bytes).sum();
    if let Some(confirm) = &options.confirm {
        confirm()?;
    }
    let id = dir.id();
    let entries = segments.iter().map(|s| entry(s, id, dir.segment_name(s.number))).collect();
    let version = clock.time(Step::Write, || dir.publish(entries, record.clone()))?;
    let (wall, cpu_ns) = (started.wall.elapsed(), process_cpu_ns() - started.cpu_ns);
    // The rows are published: whatever becomes of the merge, the load has not failed.
    let merge = merge_small(store, &options.table);
    Ok(LoadReport {
        id,
        table: options.table.clone(),
        version,
        record,
        files,
        columns: report_columns(options, &segments),
        segments: segments.len(),
        partitions,
        bytes_stored: segments.iter().map(|s| s.summary.bytes).sum(),
        wall,
        cpu: std::time::Duration::from_nanos(cpu_ns),
        steps: steps(&clock),
        peak_memory: peak_memory_bytes(),
        rejects,
        widened: Vec::new(),
        merge,
    })
}

fn kind(mode: LoadMode) -> LoadKind {
    match mode {
        LoadMode::Append => LoadKind::Append,
        LoadMode::Replace => LoadKind::Replace,
        LoadMode::Create => LoadKind::Create,
    }
}

fn entry(segment: &DoneSegment, load: LoadId, file: String) -> SegmentEntry {
    SegmentEntry {
        file,
        rows: segment.summary.rows,
        bytes: segment.summary.bytes,
        load,
        columns: segment.summary.columns.clone(),
    }
}

fn steps(clock: &StepClock) -> Vec<(Step, std::time::Duration)> {
    Step::ALL.into_iter().map(|s| (s, clock.get(s))).collect()
}

/// The columns over all segments of the load.
fn report_columns(options: &LoadOptions, segments: &[DoneSegment]) -> Vec<ColumnReport> {
    let rows: u64 = segments.iter().map(|s| s.summary.rows).sum();
    let columns = options.schema.columns().iter().enumerate();
    columns
        .map(|(i, column)| {
            let indexes: Vec<&ColumnIndex> = segments.iter().map(|s| &s.columns[i].index).collect();
            ColumnReport::new(column, rows, &indexes)
        })
        .collect()
}
