//! Runs a load: workers take tasks until all is published.

mod emit;
mod parse;
mod sink;

use std::collections::BTreeMap;
use std::sync::atomic::{AtomicBool, AtomicU64, AtomicUsize, Ordering};
use std::sync::{Arc, Condvar, Mutex};
use std::time::Duration;

use coload_format::{DataType, Error, Physical, Result};
use coload_source::{ColumnPlan, ColumnRules, RecordRules, TypeOrigin, plan_column};

pub use sink::{Destination, Sink};

use crate::account::Account;
use crate::checks::Checks;
use crate::chunks::Source;
use crate::clock::StepClock;
use crate::derive::Deriver;
use crate::options::{LoadOptions, Progress};
use crate::reader::WindowReader;
use crate::schedule::{DoneSegment, Output, State, Task};
use crate::segments::lock;
use crate::widen::Widening;
use crate::wire::PartitionAccount;

/// How long a worker waits before it looks at the cancel flag again.
const WAIT: Duration = Duration::from_millis(100);

/// Why a pass did not load.
pub enum Stop {
    /// Something is wrong.
    Failed(Error),
    /// Inferred columns need wider types.
    Widen(Box<Widening>),
}

/// A pass that ends early ends for wider types, or because something failed.
fn stop(account: &mut Account, error: Error) -> Stop {
    match account.take_widening() {
        Some(widening) => Stop::Widen(Box::new(widening)),
        None => Stop::Failed(error),
    }
}

impl From<Error> for Stop {
    fn from(error: Error) -> Self {
        Stop::Failed(error)
    }
}

/// What all workers of a load share.
pub struct Pipeline<'a> {
    options: &'a LoadOptions,
    source: Source,
    output: Destination<'a>,
    rules: RecordRules,
    /// Of the columns that are read.
    columns: Vec<ColumnRules>,
    deriver: Option<Arc<Deriver>>,
    checks: Option<Checks>,
    /// Of the columns of the table.
    physicals: Vec<Physical>,
    state: Mutex<State>,
    /// For workers that wait for a task.
    wake: Condvar,
    /// Workers that wait, or are about to.
    idle: AtomicUsize,
    /// For who watches the workers.
    end: Condvar,
    account: Mutex<Account>,
    /// CPU time by step.
    pub clock: StepClock,
    progress: Progress,
    ended: AtomicBool,
    /// For a sink: what became of the records of partitions that are not sealed yet.
    receipts: Mutex<BTreeMap<usize, PartitionAccount>>,
    /// For a sink: rows sealed.
    rows_sealed: AtomicU64,
}

/// The fragments of a partition of this load.
pub fn fragments_per_partition(options: &LoadOptions) -> usize {
    // Two partitions are in memory at once, and hold about as many bytes as their text.
    options.fragments_per_partition.min(options.memory / (2 * options.chunk_bytes)).max(1)
}

/// What the workers made.
pub struct Loaded {
    /// Durable segments in order.
    pub segments: Vec<DoneSegment>,
    /// Partitions they came from.
    pub partitions: usize,
    /// Rows, rejects and bytes of each input.
    pub account: Account,
    /// Share of the inputs that was read.
    pub share: f64,
}

impl<'a> Pipeline<'a> {
    /// Opens the inputs for the first pass, or one with wider types.
    ///
    /// # Errors
    /// `Invalid` when an input cannot be opened or the rejects file not be made.
    pub fn open(options: &'a LoadOptions, output: Destination<'a>, pass: usize) -> Result<Self> {
        let source = Source::open(options)?;
        let progress = Progress::default();
        let chunks = match &source {
            Source::Files { inputs, chunks } => {
                let total = inputs.iter().map(|i| i.bytes).sum();
                progress.bytes_total.store(total, Ordering::Relaxed);
                progress.bytes.store(inputs.iter().map(|i| i.data_start).sum(), Ordering::Relaxed);
                Some(chunks.len())
            }
            Source::Stream(stream) => {
                progress.bytes_total.store(stream.bytes, Ordering::Relaxed);
                None
            }
        };
        let rules = options.dialect.record_rules(options.field_count());
        let columns = column_rules(options);
        let table = options.schema.columns();
        let physicals: Vec<Physical> = table.iter().map(|c| c.data_type.physical()).collect();
        let kind = match output {
            Destination::Store(_) | Destination::Nowhere => Output::Segments,
            Destination::Sink(..) => Output::Sink,
        };
        let mut state = State::new(
            kind,
            chunks,
            fragments_per_partition(options),
            options.merge_columns,
            options.memory / 4,
            physicals.len(),
        );
        let mut account = Account::new(options, &source, pass)?;
        let mut rows_sealed = 0;
        if let Destination::Sink(_, known) = output {
            account.keep_all();
            if chunks.is_some() {
                known.iter().try_for_each(|k| account.add_known(k))?;
                let end = known.iter().rev().find_map(|k| k.files.last()).map_or(0, |f| f.end);
                state.skip(known.len(), end);
                rows_sealed = known.iter().map(PartitionAccount::rows).sum();
            }
        }
        Ok(Pipeline {
            options,
            source,
            output,
            rules,
            columns,
            deriver: Deriver::new(options).map(Arc::new),
            checks: Checks::new(&options.schema),
            physicals,
            state: Mutex::new(state),
            wake: Condvar::new(),
            idle: AtomicUsize::new(0),
            end: Condvar::new(),
            account: Mutex::new(account),
            clock: StepClock::default(),
            progress,
            ended: AtomicBool::new(false),
            receipts: Mutex::default(),
            rows_sealed: AtomicU64::new(rows_sealed),
        })
    }

    /// Runs the workers to the end.
    ///
    /// # Errors
    /// The first thing that went wrong, in the order of the input where that is the data's fault.
    pub fn run(self) -> std::result::Result<(Loaded, StepClock), Stop> {
        self.tell_progress();
        std::thread::scope(|scope| {
            for number in 0..self.options.threads {
                let worker = || {
                    // A worker that dies takes the others with it instead of leaving them waiting.
                    let bell = EndBell(&self);
                    self.work();
                    drop(bell);
                };
                self.spawn(scope, format!("coload-{number}"), worker);
            }
            if let Source::Stream(stream) = &self.source {
                if self.options.threads > 1 {
                    self.spawn(scope, "coload-ahead".to_owned(), || stream.queue().run_ahead());
                }
                self.watch();
                stream.queue().close();
            } else {
                self.watch();
            }
        });
        self.tell_progress();
        let mut state = self.state.into_inner().unwrap_or_else(|e| e.into_inner());
        let mut account = self.account.into_inner().unwrap_or_else(|e| e.into_inner());
        if let Some(error) = state.error.take() {
            return Err(stop(&mut account, error));
        }
        match &self.source {
            Source::Files { inputs, .. } => {
                inputs.iter().try_for_each(crate::chunks::OpenInput::check_unchanged)?;
            }
            Source::Stream(stream) => stream.check_unchanged()?,
        }
        state.done.sort_by_key(|s| s.number);
        let stored = match self.output {
            Destination::Store(_) | Destination::Nowhere => {
                state.done.iter().map(|s| s.summary.rows).sum()
            }
            Destination::Sink(..) => self.rows_sealed.load(Ordering::Acquire),
        };
        if let Err(error) = account.finish(stored) {
            return Err(stop(&mut account, error));
        }
        let loaded = Loaded {
            segments: state.done,
            partitions: state.partitions_done,
            share: self.source.share(&account),
            account,
        };
        Ok((loaded, self.clock))
    }

    fn spawn<'s>(
        &self,
        scope: &'s std::thread::Scope<'s, '_>,
        name: String,
        work: impl FnOnce() + Send + 's,
    ) {
        if let Err(e) = std::thread::Builder::new().name(name).spawn_scoped(scope, work) {
            self.fail(Error::Unavailable(format!("cannot start a thread: {e}")));
        }
    }

    /// Tells the progress until the workers are done.
    fn watch(&self) {
        let mut state = lock(&self.state);
        while !self.ended.load(Ordering::Acquire) {
            state = self
                .end
                .wait_timeout(state, WAIT)
                .map_or_else(|e| e.into_inner().0, |(state, _)| state);
            self.tell_progress();
            if state.is_finished() || state.error.is_some() {
                return;
            }
        }
    }

    fn tell_progress(&self) {
        if let Some(progress) = &self.options.progress {
            progress(&self.progress);
        }
    }

    fn fail(&self, error: Error) {
        lock(&self.state).error.get_or_insert(error);
        self.wake.notify_all();
        self.end.notify_all();
    }

    /// Tells workers that wait that there may be something to do. Who waits said so under the lock under
    /// which tasks are made.
    fn wake_idle(&self) {
        if self.idle.load(Ordering::Acquire) > 0 {
            self.wake.notify_all();
        }
    }

    fn work(&self) {
        let mut reader = WindowReader::default();
        while let Some(task) = self.next_task() {
            if let Err(error) = self.run_task(task, &mut reader) {
                self.fail(error);
                return;
            }
            self.wake_idle();
        }
    }

    fn run_task(&self, task: Task, reader: &mut WindowReader) -> Result<()> {
        match task {
            Task::Parse { chunk, start } => self.parse_files(chunk, start, reader),
            Task::ParseStream => self.parse_stream(reader),
            Task::Compress { partition, column } => self.compress(&partition, column),
            Task::Write(write) => write.run(&self.clock),
            Task::Merge { segment, column } => self.merge(&segment, column),
            Task::Flow(flow) => self.flow(flow),
            Task::Seal(sealing) => self.seal(sealing),
        }
    }

    fn next_task(&self) -> Option<Task> {
        let mut state = lock(&self.state);
        loop {
            if self.options.cancel.load(Ordering::Relaxed) {
                state.error.get_or_insert_with(cancelled);
            }
            if state.error.is_some() || state.is_finished() {
                self.wake.notify_all();
                self.end.notify_all();
                return None;
            }
            if let Some(task) = state.take_task() {
                return Some(task);
            }
            self.idle.fetch_add(1, Ordering::AcqRel);
            state = self
                .wake
                .wait_timeout(state, WAIT)
                .map_or_else(|e| e.into_inner().0, |(state, _)| state);
            self.idle.fetch_sub(1, Ordering::AcqRel);
        }
    }
}

/// Ends the load when a worker ends, also by a panic.
struct EndBell<'a, 'b>(&'a Pipeline<'b>);

impl Drop for EndBell<'_, '_> {
    fn drop(&mut self) {
        if std::thread::panicking() {
            self.0.fail(Error::Unavailable("a worker failed; see the message above".into()));
        }
        if self.0.state.lock().is_ok_and(|s| s.is_finished() || s.error.is_some()) {
            self.0.ended.store(true, Ordering::Release);
        }
        self.0.wake.notify_all();
        self.0.end.notify_all();
    }
}

fn cancelled() -> Error {
    Error::Unavailable("the load was stopped; the store is as it was".into())
}

fn column_rules(options: &LoadOptions) -> Vec<ColumnRules> {
    let fields = options.dialect.field_rules();
    let origin = match options.inferred {
        Some(_) => TypeOrigin::Inferred,
        None => TypeOrigin::Declared,
    };
    options
        .read_schema()
        .columns()
        .iter()
        .enumerate()
        .map(|(column, c)| ColumnRules {
            field: options.field_of(column),
            data_type: c.data_type,
            nullable: c.nullable,
            fields: fields.clone(),
            origin,
        })
        .collect()
}

/// Plans the columns from a sample's records.
pub fn plan_columns(rows: &coload_source::Rows<'_>, columns: &[ColumnRules]) -> Vec<ColumnPlan> {
    columns.iter().map(|c| plan_column(rows, c.field, c.data_type)).collect()
}

/// Names and types of the columns that are read, for messages about rejects.
pub fn column_names(options: &LoadOptions) -> Vec<(String, DataType)> {
    let read = options.read_schema().columns();
    read.iter().map(|c| (c.name.clone(), c.data_type)).collect()
}

#[cfg(test)]
mod tests;
