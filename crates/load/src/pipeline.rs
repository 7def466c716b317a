//! Runs a load: workers take tasks until the target has all.

mod emit;
mod parse;
mod raw;

use std::collections::BTreeMap;
use std::sync::{
    Arc, Condvar, Mutex,
    atomic::{AtomicBool, AtomicU64, AtomicUsize, Ordering},
};
use std::time::Duration;

use coload_transform::DistinctSketch;
use coload_types::{DataType, Error, Physical, Result};

pub use emit::final_page;

use crate::account::Account;
use crate::checks::Checks;
use crate::derive::Deriver;
use crate::format::{Costs, Format, Leg, Position, Reading};
use crate::grain::Grain;
use crate::hooks::{Hooks, Progress};
use crate::load::Load;
use crate::raw::takes_raw;
use crate::request::LoadRequest;
use crate::resources::Resources;
use crate::schedule::{Shape, State, Task};
use crate::target::Target;
use crate::widen::{Way, Widening};
use coload_threads::lock;
use coload_threads::{StepClock, thread_cpu_ns};
use coload_wire::PartitionAccount;

/// How long a worker waits before it looks at the cancel flag again.
const WAIT: Duration = Duration::from_millis(100);

/// Why a pass did not load.
pub enum Stop {
    /// Something is wrong, and the load ends with it.
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

/// What reads the chunks of a partition.
type ParserOf<'a, F> = <<F as Format>::Reading<'a> as Reading>::Parser;
/// What a worker keeps.
type WorkerOf<'a, F> = <<F as Format>::Reading<'a> as Reading>::Worker;

/// What all workers of a load share.
pub struct Pipeline<'a, F: Format + 'a> {
    request: &'a LoadRequest,
    resources: &'a Resources,
    hooks: &'a Hooks,
    source: &'a F,
    reading: F::Reading<'a>,
    /// Where the leg begins.
    from: Position,
    target: &'a dyn Target,
    /// Whether a chunk that the types are too narrow for ends the leg.
    way: Way,
    deriver: Option<Arc<Deriver>>,
    checks: Option<Checks>,
    /// Of the columns of the table.
    physicals: Vec<Physical>,
    grain: Grain,
    /// Of the columns that are read, where their values are those that are loaded.
    distinct: Vec<Arc<DistinctSketch>>,
    state: Mutex<State<ParserOf<'a, F>>>,
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
    /// Rows that a filter left out, and the CPU nanoseconds of the program that does.
    filtered: AtomicU64,
    program_ns: AtomicU64,
    ended: AtomicBool,
    /// For a target that keeps partitions: what became of the records of those that are not sealed yet.
    receipts: Mutex<BTreeMap<usize, PartitionAccount>>,
    /// Whether chunks may go as text, and those that did.
    takes_raw: bool,
    raw: raw::RawWork,
    /// Of the legs before.
    partitions_before: usize,
    rows_before: u64,
}

/// What a load has when a leg of it begins.
pub struct Begun {
    /// Place in the inputs where the leg begins.
    pub from: Position,
    /// Partitions they came from.
    pub partitions: usize,
    /// Rows in the segments that are there.
    pub rows: u64,
    /// Rows, rejects and bytes of each input.
    pub account: Account,
    /// CPU time by step.
    pub clock: StepClock,
    /// How far the load is.
    pub progress: Progress,
}

impl Begun {
    /// Nothing; makes the rejects file.
    ///
    /// # Errors
    /// `Invalid` when the rejects file cannot be made.
    pub fn new<F: Format>(request: &LoadRequest, source: &F, way: Way) -> Result<Self> {
        let progress = Progress::default();
        progress.bytes_total.store(source.stored_bytes(), Ordering::Relaxed);
        progress.bytes.store(source.head_bytes(), Ordering::Relaxed);
        Ok(Begun {
            from: Position::default(),
            partitions: 0,
            rows: 0,
            account: Account::new(request, source, way)?,
            clock: StepClock::default(),
            progress,
        })
    }
}

/// What the workers made.
pub struct Loaded {
    /// Partitions that the target has.
    pub partitions: usize,
    /// Rows, rejects and bytes of each input.
    pub account: Account,
    /// Share of the inputs that was read.
    pub share: f64,
    /// For each column of the table: an estimate of its distinct values, where there is one.
    pub distinct: Vec<Option<f64>>,
}

/// How a leg ended.
pub enum Ended {
    /// All inputs are loaded.
    Whole(Loaded, StepClock),
    /// The types are too narrow for the next chunk.
    Cut {
        /// What the types lack.
        widening: Box<Widening>,
        /// For the next leg.
        begun: Begun,
    },
}

impl<'a, F: Format> Pipeline<'a, F> {
    /// A pipeline for what comes after `begun`.
    ///
    /// # Errors
    /// `Corrupt` when what the target has is not of these inputs.
    pub fn new(
        load: Load<'a>,
        source: &'a F,
        target: &'a dyn Target,
        way: Way,
        begun: Begun,
    ) -> Result<Self> {
        let Load { request, resources, hooks } = load;
        let Begun { from, partitions, rows, mut account, clock, progress } = begun;
        let table = request.schema.columns();
        let physicals: Vec<Physical> = table.iter().map(|c| c.data_type.physical()).collect();
        let grain = Grain::of(request, resources);
        let chunks = source.chunks().map(|chunks| chunks - from.chunks);
        let mut state = State::new(Shape {
            keeps_partitions: target.keeps_partitions(),
            chunks,
            end_before: from.end,
            ahead_max: match way {
                // The text of chunks is kept until they are verified.
                Way::GoOn => 2 * grain.parsers + 2,
                Way::StartAgain { .. } => usize::MAX,
            },
            fragments_per_partition: grain.fragments_per_partition,
            parsers: grain.parsers,
            large_bytes: grain.large_partition_bytes,
            merge_columns: resources.merge_columns,
        });
        let mut rows_before = rows;
        if target.keeps_partitions() && chunks.is_some() {
            let known = target.known();
            known.iter().try_for_each(|k| account.add_known(k))?;
            let end = known.iter().rev().find_map(|k| k.files.last()).map_or(0, |f| f.end);
            state.skip(known.len(), end);
            rows_before = known.iter().map(PartitionAccount::rows).sum();
        }
        let distinct = sketches(request, target, from);
        let costs = match target.sharing() {
            Some(_) => Costs::Measured,
            None => Costs::Unknown,
        };
        let leg = Leg { request, resources, from, way, costs, distinct: distinct.clone() };
        Ok(Pipeline {
            request,
            resources,
            hooks,
            source,
            reading: source.read(leg),
            from,
            target,
            way,
            deriver: Deriver::new(request)?.map(Arc::new),
            checks: Checks::new(&request.schema),
            physicals,
            grain,
            distinct,
            state: Mutex::new(state),
            wake: Condvar::new(),
            idle: AtomicUsize::new(0),
            end: Condvar::new(),
            account: Mutex::new(account),
            clock,
            progress,
            filtered: AtomicU64::new(0),
            program_ns: AtomicU64::new(0),
            ended: AtomicBool::new(false),
            receipts: Mutex::default(),
            takes_raw: takes_raw(request),
            raw: raw::RawWork::default(),
            partitions_before: partitions,
            rows_before,
        })
    }

    /// Runs the workers to the end, or to a chunk that the types are too narrow for.
    ///
    /// # Errors
    /// The first thing that went wrong, in the order of the input where that is the data's fault.
    pub fn run(self) -> std::result::Result<Ended, Stop> {
        self.tell_progress();
        std::thread::scope(|scope| {
            for number in 0..self.resources.threads {
                let worker = || {
                    // A worker that dies takes the others with it instead of leaving them waiting.
                    let bell = EndBell(&self);
                    self.work();
                    drop(bell);
                };
                self.spawn(scope, format!("coload-{number}"), worker);
            }
            if let Some(ahead) = self.reading.ahead()
                && self.resources.threads > 1
            {
                let ahead = || ahead.run(&self.ended);
                self.spawn(scope, "coload-ahead".to_owned(), ahead);
            }
            if let Some(sharing) = self.takes_text() {
                let take = || {
                    let bell = EndBell(&self);
                    self.take_answers(sharing);
                    drop(bell);
                };
                self.spawn(scope, "coload-answers".to_owned(), take);
            }
            self.watch();
            self.ended.store(true, Ordering::Release);
            if let Some(sharing) = self.takes_text() {
                sharing.answers().end();
            }
            if let Some(ahead) = self.reading.ahead() {
                ahead.wake();
            }
        });
        self.tell_progress();
        let estimate = |column| self.distinct(column).map(DistinctSketch::estimate);
        let distinct = (0..self.physicals.len()).map(estimate).collect();
        let mut state = self.state.into_inner().unwrap_or_else(|e| e.into_inner());
        let mut account = self.account.into_inner().unwrap_or_else(|e| e.into_inner());
        if let Some(error) = state.error.take() {
            return Err(stop(&mut account, error));
        }
        let partitions = self.partitions_before + state.partitions_done;
        let rows = self.rows_before + self.target.rows();
        if let Some(next) = state.take_next_leg()
            && let Some(widening) = account.take_widening()
        {
            self.reading.give_back(next.chunk);
            let begun = Begun {
                from: Position { chunks: self.from.chunks + next.chunk, end: next.end },
                partitions,
                rows,
                account,
                clock: self.clock,
                progress: self.progress,
            };
            return Ok(Ended::Cut { widening: Box::new(widening), begun });
        }
        self.source.check_unchanged()?;
        if let Err(error) = account.finish(rows) {
            return Err(stop(&mut account, error));
        }
        let share = self.source.share(&account);
        Ok(Ended::Whole(Loaded { partitions, share, distinct, account }, self.clock))
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

    /// What counts the distinct values of a column of the table.
    fn distinct(&self, column: usize) -> Option<&DistinctSketch> {
        let read = self.deriver.as_ref().map_or(Some(column), |deriver| deriver.read(column))?;
        self.distinct.get(read).map(Arc::as_ref)
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
        if let Some(progress) = &self.hooks.progress {
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
        let mut worker = self.reading.worker();
        while let Some(task) = self.next_task() {
            let after = self.hooks.after_task.as_ref().map(|after| (after, thread_cpu_ns()));
            if let Err(error) = self.run_task(task, &mut worker) {
                self.fail(error);
                return;
            }
            self.reading.end_task(&mut worker);
            self.wake_idle();
            if let Some((after, began)) = after {
                after(thread_cpu_ns() - began);
            }
        }
    }

    fn run_task(&self, task: Task, worker: &mut WorkerOf<'a, F>) -> Result<()> {
        match task {
            Task::Parse { chunk, start } => self.parse_chunk(chunk, start, worker),
            Task::TakeChunk => self.take_chunk(worker),
            Task::Compress { partition, column } => self.compress(&partition, column),
            Task::Ahead(ahead) => self.give_ahead(ahead),
            Task::Work(work) => self.run_work(work),
            Task::SendRaw(flow) => self.send_raw(flow),
            Task::ParseBack(back) => self.parse_back(back, worker),
            Task::Seal(sealing) => self.seal(sealing),
            Task::End => self.end_target(),
        }
    }

    /// Whether the load goes on. A chunk may take seconds where the machine is busy, so this is asked after each window too.
    fn go_on(&self) -> Result<()> {
        if self.hooks.is_cancelled() { Err(cancelled()) } else { Ok(()) }
    }

    fn next_task(&self) -> Option<Task> {
        let mut state = lock(&self.state);
        loop {
            if let Err(error) = self.go_on() {
                state.error.get_or_insert(error);
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
struct EndBell<'a, 'b, F: Format>(&'a Pipeline<'b, F>);

impl<F: Format> Drop for EndBell<'_, '_, F> {
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
    Error::Unavailable("the load was stopped; what was there is as it was".into())
}

/// A sketch for each column that is read, if they are wanted. There is none when another has the report, when
/// a filter leaves values out, and when legs before had other types.
fn sketches(
    request: &LoadRequest,
    target: &dyn Target,
    from: Position,
) -> Vec<Arc<DistinctSketch>> {
    let all = request.count_distinct
        && target.sharing().is_none()
        && request.program.is_none()
        && from == Position::default();
    let count = if all { request.read_schema().columns().len() } else { 0 };
    (0..count).map(|_| Arc::default()).collect()
}

/// Names and types of the columns that are read, for messages about rejects.
pub fn column_names(request: &LoadRequest) -> Vec<(String, DataType)> {
    let read = request.read_schema().columns();
    read.iter().map(|c| (c.name.clone(), c.data_type)).collect()
}

#[cfg(test)]
mod tests;
