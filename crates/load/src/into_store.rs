//! Loads into a store of this process.

use std::borrow::Cow;
use std::collections::HashMap;
use std::path::Path;
use std::sync::Arc;

use coload_page::ColumnIndex;
use coload_store::{
    LoadDir, LoadId, LoadKind, LoadMode, LoadRecord, LoadTarget, MergeReport, OnConflict,
    OrderedSegment, ReadyLoad, RememberedLoad, SegmentEntry, SegmentSummary, Shown, SortSpaces,
    SortWith, Sorting, Store, merge_small_within,
};
use coload_threads::{Started, Step, StepClock, epoch_us};
use coload_types::display::display_value;
use coload_types::{DataType, Error, Result, Value};

use crate::account::Account;
use crate::grain::Grain;
use crate::hooks::Hooks;
use crate::legs::{AllLegs, ReadInputs, run_legs};
use crate::load::{Destination, Load};
use crate::pipeline::{Loaded, Stop};
use crate::reject_table::request_of_rejects;
use crate::report::{
    ColumnReport, Earlier, LoadReport, Merged, Published, SortReport, published_without_rejects,
};
use crate::request::{InputForm, LoadRequest};
use crate::resources::Resources;
use crate::resume::{Begins, ResumeJournal, begin, end};
use crate::settle::publish_settled;
use crate::share_into_store::take_share;
use crate::target::DoneSegment;
use crate::widen::Widened;

impl Destination for Store {
    fn sorts(&self) -> bool {
        true
    }

    fn takes_several_tables(&self) -> bool {
        true
    }

    fn take(&self, load: Load<'_>) -> Result<LoadReport> {
        let started = Started::now();
        let request = with_rules_of_table(self, load.request)?;
        if let Some(share) = &load.request.share {
            if let Some(beside) = load.request.beside.first() {
                return Err(Error::Invalid(format!(
                    "shares are of one table, and table {} is loaded beside: load it by itself",
                    beside.table
                )));
            }
            return take_share(self, load.with_request(&request), share, &started);
        }
        let mut journal = match begin(self, load.with_request(&request))? {
            Begins::Plain => None,
            Begins::Kept(journal) => Some(journal),
            Begins::Published(id, known) => {
                return Ok(report_known(&request.table, id, &known, &started));
            }
        };
        let mut request = request;
        if let Some(began_us) = journal.as_ref().map(|journal| journal.began_us())
            && began_us != request.began_us
        {
            request.to_mut().begin_at(began_us)?;
        }
        let pass = |request: &LoadRequest, pass| {
            let journal = journal.take();
            let load = load.with_request(request);
            let loaded = load_once(self, load, &started, (pass, journal.as_ref()));
            match journal {
                Some(journal) => end(self, journal, loaded),
                None => loaded,
            }
        };
        let (mut report, mut widened) = with_wider_types(&request, pass)?;
        widened.append(&mut report.widened);
        Ok(LoadReport { widened, ..report })
    }
}

/// The report of a load that was published when its process ended.
fn report_known(table: &str, id: LoadId, known: &RememberedLoad, started: &Started) -> LoadReport {
    let time = display_value(&Value::Int(known.finished_us), DataType::Timestamp);
    let time = time.split('.').next().unwrap_or_default();
    let held = format!(
        "it was published at {time} UTC, before the process could say so: to load it once more, run the command again"
    );
    let mut report = LoadReport {
        id: Some(id),
        earlier: Some(Earlier { rows: known.rows, rejects: known.rejects, held }),
        ..LoadReport::new(table.to_owned())
    };
    report.set_costs(started);
    report
}

/// Runs passes until the types of inferred columns are wide enough.
pub fn with_wider_types<T>(
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
pub fn with_rules_of_table<'a>(
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

/// Where a load goes.
pub fn target(request: &LoadRequest) -> LoadTarget {
    LoadTarget { name: request.table.clone(), schema: request.schema.clone(), mode: request.mode }
}

/// A load that is written and not visible yet.
pub struct Written<'a> {
    /// Its folder.
    pub dir: LoadDir,
    /// What is remembered of it.
    pub record: LoadRecord,
    /// What became of the inputs.
    pub whole: AllLegs<'a>,
    /// The segments as the manifest names them.
    pub entries: Vec<SegmentEntry>,
    /// How rows were put in order, if the table has a key.
    pub sorted: Option<SortReport>,
    /// Rows that an earlier attempt left.
    pub known_rows: u64,
}

/// Writes the rows of a load.
///
/// # Errors
/// Those of a load. `Stop::Widen` where it has to start again.
pub fn write_once<'a>(
    store: &Store,
    load: Load<'a>,
    started: &Started,
    (pass, journal): (usize, Option<&Arc<ResumeJournal>>),
) -> std::result::Result<Written<'a>, Stop> {
    let mut dir = store.sorting_with(sort_with(load.resources)).begin_load(target(load.request))?;
    // Looked at before the inputs are read, too.
    dir.set_on_conflict(load.request.on_conflict)?;
    check_read_again(load.request)?;
    if let Some(delete_where) = load.request.delete_where()? {
        dir.set_delete_where(delete_where)?;
    }
    if dir.key().is_none() {
        load.resources.refuse_spaces(&format!("table {} has no key", load.request.table))?;
    }
    let is_told = load.request.share.is_some() && load.request.on_conflict == OnConflict::Reject;
    if is_told {
        load.resources
            .refuse_spaces("those of shares with --on-conflict reject are when all are there")?;
    }
    // A space that is not there is told before the inputs are read. Rows that are told by their numbers stay as they came until all
    // shares are there.
    let sorting = dir.key().filter(|_| !is_told).map(|_| sorting(&dir, load)).transpose()?;
    let mut whole = run_legs(load, Some(&dir), journal, pass)?;
    if !whole.widened.is_empty() {
        dir.set_schema(whole.request.schema.clone())?;
    }
    let mut record = LoadRecord::new(dir.id(), kind(whole.request.mode));
    let journalled = journal.and_then(|journal| journal.id());
    record.key = whole.request.key.or(journalled).unwrap_or(record.id);
    let known_rows = whole.known_rows;
    let files = whole.loaded.account.files();
    record.started_us = started.epoch_us;
    record.finished_us = epoch_us();
    record.set_inputs(whole.request.inputs.names().iter());
    record.rows = files.iter().map(|f| f.rows).sum();
    record.rejects = files.iter().map(|f| f.rejects).sum();
    record.bytes = files.iter().map(|f| f.bytes).sum();
    dir.set_on_conflict(whole.request.on_conflict)?;
    if let Some(delete_where) = whole.request.delete_where()? {
        dir.set_delete_where(delete_where)?;
    }
    let read = started.wall.elapsed();
    let entries = put_in_order(&mut dir, &mut whole, sorting.as_ref())?;
    let sorted = sorting.map(|sorting| SortReport::new(read, dir.sort_times(), &sorting.spaces));
    Ok(Written { dir, record, whole, entries, sorted, known_rows })
}

/// Refuses to tell records of what can be read only once, and is not kept.
fn check_read_again(request: &LoadRequest) -> Result<()> {
    let is_kept = matches!(request.form, InputForm::Text | InputForm::Arrow | InputForm::Avro);
    let once = request.inputs.read_once().filter(|_| !is_kept || request.streams.is_some());
    match once {
        Some(input) if request.on_conflict == OnConflict::Reject => Err(Error::Invalid(format!(
            "{}: --on-conflict reject reads the records again whose keys are there, and these can be read only once (ignore leaves \
             them out and counts them)",
            input.name
        ))),
        _ => Ok(()),
    }
}

/// What rows are put in order and indexes are built with.
fn sort_with(Resources { threads, memory, .. }: &Resources) -> SortWith {
    SortWith { threads: *threads, memory: *memory as u64 }
}

/// How rows are put in the order of the table's key.
fn sorting(dir: &LoadDir, load: Load<'_>) -> Result<Sorting> {
    let Resources { memory, sort_space, run_space, .. } = load.resources;
    let (sort, runs) = (sort_space.as_ref(), run_space.as_ref());
    let spaces = SortSpaces::open(sort, runs, *memory as u64, &dir.scratch_path(""))?;
    // A small sort buffer makes small runs, not small segments.
    let segment_bytes = Grain::of(load.request, &load.resources.without_sort_space()).segment_bytes;
    let with = sort_with(load.resources);
    Ok(Sorting { spaces, with, segment_bytes: Some(segment_bytes as u64) })
}

/// Puts the rows of segments in the order of the table's key, if it has one; the segments are then those in order.
fn put_in_order(
    dir: &mut LoadDir,
    whole: &mut AllLegs<'_>,
    sorting: Option<&Sorting>,
) -> Result<Vec<SegmentEntry>> {
    let id = dir.id();
    let segments = std::mem::take(&mut whole.segments);
    let entries = segments.iter().map(|s| s.summary.clone().entry(id, s.number)).collect();
    let Some(sorting) = sorting else {
        whole.segments = segments;
        return Ok(entries);
    };
    let ordered = whole.clock.time(Step::Sort, || dir.put_in_order(entries, sorting))?;
    let mut old: HashMap<String, DoneSegment> =
        segments.into_iter().map(|segment| (dir.segment_name(segment.number), segment)).collect();
    let mut entries = Vec::with_capacity(ordered.len());
    for OrderedSegment { entry, columns } in ordered {
        whole.segments.push(match (columns, old.remove(&entry.file)) {
            (None, Some(stayed)) => stayed,
            (columns, _) => {
                let SegmentEntry { rows, bytes, seal, columns: stats, .. } = entry.clone();
                let summary =
                    SegmentSummary { rows, bytes, seal: seal.unwrap_or(0), columns: stats };
                let number = whole.segments.len() as u32;
                DoneSegment { number, summary, columns: columns.unwrap_or_default() }
            }
        });
        entries.push(entry);
    }
    Ok(entries)
}

/// Writes the rejects of a file for a table, with the memory and threads of the load that rejected them; they become
/// visible with it.
pub(crate) fn ready_rejects(
    store: &Store,
    file: &Path,
    table: &str,
    load: Load<'_>,
) -> Result<ReadyLoad> {
    let columns = load.request.reject_columns();
    let request = request_of_rejects((file, columns), (store, table))?;
    let Resources { memory, threads, .. } = *load.resources;
    let resources = Resources { memory, threads, ..Resources::default() };
    let hooks = Hooks { cancel: Arc::clone(&load.hooks.cancel), ..Hooks::default() };
    let load = Load { request: &request, resources: &resources, hooks: &hooks };
    load.check()?;
    match write_once(store, load, &Started::now(), (0, None)) {
        Ok(Written { dir, record, entries, .. }) => dir.ready(entries, record),
        Err(Stop::Failed(error)) => Err(error),
        Err(Stop::Widen(_)) => Err(Error::Invalid("the columns of rejects are given".into())),
    }
}

fn load_once(
    store: &Store,
    load: Load<'_>,
    started: &Started,
    pass: (usize, Option<&Arc<ResumeJournal>>),
) -> std::result::Result<LoadReport, Stop> {
    let unpublished = Unpublished::write(store, load, started, pass)?;
    let beside = load.request.beside.iter().map(|beside| write_beside(store, load, beside));
    let beside = beside.collect::<Result<Vec<_>>>()?;
    let Unpublished { ready, mut account, clock, request, mut report, inputs } = unpublished;
    let load_of = load.with_request(&request);
    if let Some(written) = &load.hooks.written {
        written();
    }
    let (of_others, others): (Vec<_>, Vec<_>) =
        beside.into_iter().map(|(report, account, ready)| ((report, account), ready)).unzip();
    let readies = (ready, others);
    let Shown { version, keys } =
        publish_settled(store, load_of, readies, inputs.as_deref(), (&mut account, &clock))?;
    report.keys = keys;
    for (other, account) in of_others {
        report.beside.push(published(store, (other, version), account, load)?);
    }
    let mut report = published(store, (report, version), account, load)?;
    if let Some(table) = &request.rejects_table {
        let _ = merge_small_within(store, table, load.resources.memory);
    }
    report.set_steps(&clock);
    report.set_costs(started);
    Ok(report)
}

/// A load that is written, and ready to become visible.
struct Unpublished<'a> {
    ready: ReadyLoad,
    account: Account,
    clock: StepClock,
    /// With the last types.
    request: Cow<'a, LoadRequest>,
    /// But for what the account tells, and the version.
    report: LoadReport,
    inputs: Option<Box<dyn ReadInputs>>,
}

impl<'a> Unpublished<'a> {
    fn write(
        store: &Store,
        load: Load<'a>,
        started: &Started,
        pass: (usize, Option<&Arc<ResumeJournal>>),
    ) -> std::result::Result<Self, Stop> {
        let Written { dir, record, whole, entries, sorted, known_rows } =
            write_once(store, load, started, pass)?;
        let AllLegs { loaded, segments, clock, request, widened, inputs, .. } = whole;
        let Loaded { partitions, account, distinct, .. } = loaded;
        let (id, bytes_stored) = (dir.id(), entries.iter().map(|entry| entry.bytes).sum());
        let ready = clock.time(Step::Write, || dir.ready(entries, record))?;
        let published = Published {
            version: 0,
            segments: segments.len() as u64,
            merge: Merged::Here(Ok(MergeReport::default())),
        };
        let report = LoadReport {
            id: Some(id),
            columns: report_columns(&request, &segments, &distinct),
            partitions,
            bytes_stored,
            widened,
            known_rows,
            sorted,
            published: Some(published),
            ..LoadReport::new(request.table.clone())
        };
        Ok(Unpublished { ready, account, clock, request, report, inputs })
    }
}

/// Writes a load that becomes visible with another one.
fn write_beside(
    store: &Store,
    load: Load<'_>,
    request: &LoadRequest,
) -> Result<(LoadReport, Account, ReadyLoad)> {
    let started = Started::now();
    let hooks = load.hooks.of_part();
    let load = Load { request, hooks: &hooks, ..load };
    load.check()?;
    let request = with_rules_of_table(store, request)?;
    let ((report, account, ready), mut widened) = with_wider_types(&request, |request, pass| {
        let load = load.with_request(request);
        let Unpublished { ready, account, clock, mut report, .. } =
            Unpublished::write(store, load, &started, (pass, None))?;
        report.set_steps(&clock);
        report.set_costs(&started);
        Ok((report, account, ready))
    })?;
    let mut report = report;
    widened.append(&mut report.widened);
    report.widened = widened;
    Ok((report, account, ready))
}

/// The report of a load that everybody sees in a version.
fn published(
    store: &Store,
    (mut report, version): (LoadReport, u64),
    mut account: Account,
    load: Load<'_>,
) -> Result<LoadReport> {
    report.reject_kinds = account.take_kinds();
    let output = account.take_output();
    (report.files, report.rejects) = account.into_files();
    if let Some(output) = output {
        output.commit().map_err(|error| published_without_rejects(version, &error))?;
    }
    // The rows are published: whatever becomes of the merges, the load has not failed.
    let merged = merge_small_within(store, &report.table, load.resources.memory);
    if let Some(published) = &mut report.published {
        (published.version, published.merge) = (version, Merged::Here(merged));
    }
    Ok(report)
}

fn kind(mode: LoadMode) -> LoadKind {
    match mode {
        LoadMode::Append => LoadKind::Append,
        LoadMode::Replace => LoadKind::Replace,
        LoadMode::Create => LoadKind::Create,
    }
}

/// The columns over all segments of the load.
pub fn report_columns(
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
