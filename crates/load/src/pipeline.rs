//! Runs a load: workers take tasks until the target has all.

mod books;
mod emit;
mod parse;
mod table;
mod text;

use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::thread::ScopedJoinHandle;

use coload_threads::{StepClock, thread_cpu_ns};
use coload_transform::DistinctSketch;
use coload_types::{Error, Result};
use coload_wire::PartitionAccount;

use crate::account::Account;
use crate::arrivals::{Arrivals, Job, NextLeg};
use crate::format::{Costs, Format, Leg, Parser, Position, Reading};
use crate::grain::Grain;
use crate::hooks::{Hooks, Progress};
use crate::load::Load;
use crate::request::LoadRequest;
use crate::resources::Resources;
use crate::schedule::{Partitions, Shape, Task};
use crate::target::Target;
use crate::widen::{Way, Widening};
use crate::workers::{Shared, Tasks, Workers};
use books::Books;
use table::Table;

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
    target: &'a dyn Target,
    /// Whether a chunk that the types are too narrow for ends the leg.
    way: Way,
    grain: Grain,
    partitions: Partitions,
    table: Table,
    workers: Workers<Arrivals<ParserOf<'a, F>>>,
    books: Books,
    /// CPU time by step.
    pub clock: StepClock,
    /// Whether chunks may go as text, and those that did.
    may_go_as_text: bool,
    texts: text::TextWork,
    before: Before,
}

/// What there was before the leg.
struct Before {
    /// Where the leg begins.
    from: Position,
    partitions: usize,
    rows: u64,
}

impl<P: Parser> Tasks for Arrivals<P> {
    type Task = Task<Job>;

    fn take_task(&mut self) -> Option<Task<Job>> {
        self.schedule.take_task()
    }

    fn is_finished(&self) -> bool {
        self.schedule.is_finished()
    }
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
        let Begun { from, partitions, mut rows, mut account, clock, progress } = begun;
        let grain = Grain::of(request, resources);
        let chunks = source.chunks().map(|chunks| chunks - from.chunks);
        let each = grain.fragments_per_partition;
        let put = match chunks.filter(|_| source.comes_from_afar()) {
            Some(chunks) => Partitions::with_small_ones_at_the_end(each, chunks),
            None => Partitions::of_chunks(each),
        };
        let shape = Shape {
            chunks,
            ahead_max: match way {
                // The text of chunks is kept until they are verified.
                Way::GoOn => 2 * grain.parsers + 2,
                Way::StartAgain { .. } => usize::MAX,
            },
            partitions: put,
            readers: grain.parsers,
            large_bytes: grain.large_partition_bytes,
            merges: resources.merge_columns,
            keeps_partitions: target.keeps_partitions(),
        };
        let mut arrivals = Arrivals::new(shape, from.end);
        let known = target.known();
        if !known.is_empty() && (chunks.is_some() || source.can_begin_behind()) {
            let before = account.text_bytes();
            known.iter().try_for_each(|k| account.add_known(k))?;
            let end = known.iter().rev().find_map(|k| k.files.last()).map_or(from.end, |f| f.end);
            arrivals.skip(known.len(), end);
            let known_rows = known.iter().map(PartitionAccount::rows).sum();
            progress.add(account.text_bytes() - before, known_rows);
            rows += known_rows;
        }
        if let Some(last) = put.first_of_last() {
            target.ends_slowly_from(last);
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
            target,
            way,
            grain,
            partitions: put,
            table: Table::new(request, distinct)?,
            workers: Workers::new(arrivals),
            books: Books::new(account, progress),
            clock,
            may_go_as_text: request.may_go_as_text(),
            texts: text::TextWork::default(),
            before: Before { from, partitions, rows },
        })
    }

    /// Runs the workers to the end, or to a chunk that the types are too narrow for.
    ///
    /// # Errors
    /// The first thing that went wrong, in the order of the input where that is the data's fault.
    pub fn run(self) -> std::result::Result<Ended, Stop> {
        self.tell_progress();
        std::thread::scope(|scope| {
            let mut threads = Vec::new();
            for number in 0..self.resources.threads {
                threads.extend(self.spawn(scope, format!("coload-{number}"), || self.work()));
            }
            if let Some(ahead) = self.reading.ahead()
                && self.resources.threads > 1
            {
                let ahead = || self.workers.beside(|| ahead.run(self.workers.ended()));
                threads.extend(self.spawn(scope, "coload-ahead".to_owned(), ahead));
            }
            if let Some(sharing) = self.takes_text() {
                let take = || self.workers.beside(|| self.take_answers(sharing));
                threads.extend(self.spawn(scope, "coload-answers".to_owned(), take));
            }
            self.workers.watch(|| self.tell_progress());
            if let Some(sharing) = self.takes_text() {
                sharing.answers().end();
            }
            if let Some(ahead) = self.reading.ahead() {
                ahead.wake();
            }
            // One that panicked has ended the load with an error, which is told as any.
            for thread in threads {
                let _ = thread.join();
            }
        });
        self.tell_progress();
        self.finish()
    }

    /// How the leg ended, when no worker does anything any more.
    fn finish(self) -> std::result::Result<Ended, Stop> {
        let Before { from, partitions, rows } = self.before;
        let Shared { tasks: arrivals, error } = self.workers.into_shared();
        let (mut account, progress) = self.books.into_parts();
        if let Some(error) = error {
            return Err(stop(&mut account, error));
        }
        let partitions = partitions + arrivals.schedule.sealed();
        let rows = rows + self.target.rows();
        if let Some(NextLeg { chunk, end }) = arrivals.next_leg()
            && let Some(widening) = account.take_widening()
        {
            self.reading.give_back(chunk);
            let from = Position { chunks: from.chunks + chunk, end };
            let begun = Begun { from, partitions, rows, account, clock: self.clock, progress };
            return Ok(Ended::Cut { widening: Box::new(widening), begun });
        }
        self.source.check_unchanged()?;
        if let Err(error) = account.finish(rows) {
            return Err(stop(&mut account, error));
        }
        let share = self.source.share(&account);
        let distinct = self.table.distinct_estimates();
        Ok(Ended::Whole(Loaded { partitions, share, distinct, account }, self.clock))
    }

    fn spawn<'s>(
        &self,
        scope: &'s std::thread::Scope<'s, '_>,
        name: String,
        work: impl FnOnce() + Send + 's,
    ) -> Option<ScopedJoinHandle<'s, ()>> {
        let failed = |e| Error::Unavailable(format!("cannot start a thread: {e}"));
        let thread = std::thread::Builder::new().name(name).spawn_scoped(scope, work);
        thread.map_err(|e| self.workers.fail(failed(e))).ok()
    }

    fn tell_progress(&self) {
        if let Some(progress) = &self.hooks.progress {
            progress(&self.books.progress);
        }
    }

    fn work(&self) {
        let mut worker = self.reading.worker();
        let run = |task| {
            let after = self.hooks.after_task.as_ref().map(|after| (after, thread_cpu_ns()));
            self.run_task(task, &mut worker)?;
            self.reading.end_task(&mut worker);
            self.workers.wake_idle();
            if let Some((after, began)) = after {
                after(thread_cpu_ns() - began);
            }
            Ok(())
        };
        self.workers.work(|| self.go_on(), run);
    }

    fn run_task(&self, task: Task<Job>, worker: &mut WorkerOf<'a, F>) -> Result<()> {
        match task {
            Task::Chunk(chunk) => self.parse_chunk(chunk, worker),
            Task::ChunkAgain(chunk) => self.parse_again(chunk, worker),
            Task::TakeChunk => self.take_chunk(worker),
            Task::Job(Job::Compress { partition, column }) => self.compress(&partition, column),
            Task::Job(Job::Ahead(ahead)) => self.give_ahead(ahead),
            Task::Job(Job::Work(work)) => self.run_work(work),
            Task::Job(Job::SendText(text)) => self.send_text(text),
            Task::Job(Job::ParseBack(back)) => self.parse_back(back, worker),
            Task::Seal(partition) => self.seal(partition),
            Task::End => self.end_target(),
        }
    }

    /// Whether the load goes on. A chunk may take seconds where the machine is busy, so this is asked after each window too.
    fn go_on(&self) -> Result<()> {
        if self.hooks.is_cancelled() { Err(cancelled()) } else { Ok(()) }
    }
}

fn cancelled() -> Error {
    Error::Unavailable("the load was stopped; what was there is as it was".into())
}

/// A sketch for each column that is read, if they are wanted. There is none when another has the report, when
/// a filter leaves values out, when an earlier attempt read some, and when legs before had other types.
fn sketches(
    request: &LoadRequest,
    target: &dyn Target,
    from: Position,
) -> Vec<Arc<DistinctSketch>> {
    let all = request.count_distinct
        && target.sharing().is_none()
        && request.program.is_none()
        && target.known().is_empty()
        && from == Position::default();
    let count = if all { request.read_schema().columns().len() } else { 0 };
    (0..count).map(|_| Arc::default()).collect()
}

#[cfg(test)]
mod tests;
