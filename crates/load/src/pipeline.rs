//! Runs a load: workers take tasks until all is published.

use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Condvar, Mutex};
use std::time::{Duration, Instant};

use coload_format::{DataType, Error, Physical, Result};
use coload_source::{
    ChunkParser, ColumnParser, ColumnPlan, ColumnRules, Lexicon, RecordRules, TypeOrigin,
    plan_column,
};
use coload_store::{LoadDir, SegmentWriter};

use crate::account::Account;
use crate::chunks::{Piece, Source, Start};
use crate::clock::{Step, StepClock, thread_cpu_ns};
use crate::options::{LoadOptions, Progress};
use crate::partition::{PartitionPlan, SealedPartition};
use crate::reader::{PieceSpan, WindowReader};
use crate::sample::sample_partition;
use crate::schedule::{DoneSegment, ParsedChunk, State, Task};
use crate::segments::{ClosedSegment, lock};
use crate::stream::{StreamChunk, Turn};
use crate::widen::Widening;

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
    dir: &'a LoadDir,
    rules: RecordRules,
    columns: Vec<ColumnRules>,
    physicals: Vec<Physical>,
    state: Mutex<State>,
    wake: Condvar,
    account: Mutex<Account>,
    /// CPU time by step.
    pub clock: StepClock,
    progress: Progress,
    ended: AtomicBool,
}

/// What the workers made.
pub struct Loaded {
    /// Durable segments in order.
    pub segments: Vec<DoneSegment>,
    /// Partitions they came from.
    pub partitions: usize,
    /// Rows, rejects and bytes of each input.
    pub account: Account,
}

impl<'a> Pipeline<'a> {
    /// Opens the inputs for the first pass, or one with wider types.
    ///
    /// # Errors
    /// `Invalid` when an input cannot be opened or the rejects file not be made.
    pub fn open(options: &'a LoadOptions, dir: &'a LoadDir, pass: usize) -> Result<Self> {
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
        let rules = options.dialect.record_rules(options.schema.len());
        let columns = column_rules(options);
        let physicals: Vec<Physical> = columns.iter().map(|c| c.data_type.physical()).collect();
        // Two partitions are in memory at once, and hold about as many bytes as their text.
        let fragments =
            options.fragments_per_partition.min(options.memory / (2 * options.chunk_bytes)).max(1);
        let state = State::new(
            chunks,
            fragments,
            options.merge_columns,
            options.memory / 4,
            physicals.len(),
        );
        let account = Account::new(options, &source, pass)?;
        Ok(Pipeline {
            options,
            source,
            dir,
            rules,
            columns,
            physicals,
            state: Mutex::new(state),
            wake: Condvar::new(),
            account: Mutex::new(account),
            clock: StepClock::default(),
            progress,
            ended: AtomicBool::new(false),
        })
    }

    /// Runs the workers to the end.
    ///
    /// # Errors
    /// The first thing that went wrong, in the order of the input where that is the data's fault.
    pub fn run(self) -> std::result::Result<(Loaded, StepClock), Stop> {
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
        if let Some(progress) = &self.options.progress {
            progress(&self.progress);
        }
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
        let stored = state.done.iter().map(|s| s.summary.rows).sum();
        if let Err(error) = account.finish(stored) {
            return Err(stop(&mut account, error));
        }
        let loaded = Loaded { segments: state.done, partitions: state.partitions_done, account };
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
            if self.options.cancel.load(Ordering::Relaxed) && state.error.is_none() {
                state.error = Some(cancelled());
                self.wake.notify_all();
            }
            state = self
                .wake
                .wait_timeout(state, WAIT)
                .map_or_else(|e| e.into_inner().0, |(state, _)| state);
            if let Some(progress) = &self.options.progress {
                progress(&self.progress);
            }
            if state.is_finished() || state.error.is_some() {
                return;
            }
        }
    }

    fn fail(&self, error: Error) {
        lock(&self.state).error.get_or_insert(error);
        self.wake.notify_all();
    }

    fn work(&self) {
        let mut reader = WindowReader::default();
        while let Some(task) = self.next_task() {
            let result = match task {
                Task::Parse { chunk, start } => self.parse_files(chunk, start, &mut reader),
                Task::ParseStream => self.parse_stream(&mut reader),
                Task::Compress { partition, column } => self.compress(&partition, column),
                Task::Write(write) => write.run(&self.clock),
                Task::Merge { segment, column } => self.merge(&segment, column),
            };
            if let Err(error) = result {
                self.fail(error);
                return;
            }
            self.wake.notify_all();
        }
    }

    fn next_task(&self) -> Option<Task> {
        let mut state = lock(&self.state);
        loop {
            if state.error.is_some() || state.is_finished() {
                self.wake.notify_all();
                return None;
            }
            if let Some(task) = state.take_task() {
                return Some(task);
            }
            state = self
                .wake
                .wait_timeout(state, WAIT)
                .map_or_else(|e| e.into_inner().0, |(state, _)| state);
        }
    }

    /// Parses a chunk of files; with a start when it is parsed again.
    fn parse_files(
        &self,
        chunk: usize,
        start: Option<u64>,
        reader: &mut WindowReader,
    ) -> Result<()> {
        let Source::Files { inputs, chunks } = &self.source else { return Ok(()) };
        let mut pieces: Vec<Piece> = chunks[chunk].clone();
        // Only the first of a chunk was speculated on.
        if let (Some(start), Some(first)) = (start, pieces.first_mut()) {
            *first = Piece { start, start_is: Start::Record, ..*first };
        }
        let plan = self.plan(chunk, || {
            let first = self.first_chunk_of_partition(chunk);
            sample_partition(inputs, &chunks[first], self.rules, &self.columns)
        })?;
        self.parse(chunk, &plan, |parser, tick| {
            let parse =
                |p: &Piece| reader.parse_piece(&inputs[p.file], p, parser, &self.clock, tick);
            pieces.iter().map(parse).collect()
        })
    }

    fn first_chunk_of_partition(&self, chunk: usize) -> usize {
        chunk - chunk % lock(&self.state).fragments_per_partition()
    }

    /// Parses the next chunk of a stream, or decompresses some of it.
    fn parse_stream(&self, reader: &mut WindowReader) -> Result<()> {
        let Source::Stream(stream) = &self.source else { return Ok(()) };
        // Under the lock of the stream, so that the first chunk of a partition plans it.
        let mut planned = None;
        let turn = self.clock.time(Step::Read, || {
            stream.turn(|chunk| {
                let number = lock(&self.state).number_stream_chunk();
                lock(&self.account).start_chunk(chunk);
                planned = Some((
                    number,
                    self.plan(number, || {
                        let text = chunk.parts.first().map_or(&[][..], |part| &part.text);
                        Ok(crate::sample::sample_bytes(text, self.rules, &self.columns))
                    }),
                ));
            })
        })?;
        match turn {
            Turn::Parse(chunk) => match planned {
                Some((number, plan)) => {
                    let plan = plan?;
                    self.parse_chunk(number, &plan, &chunk, reader)
                }
                None => Ok(()),
            },
            Turn::Decode(job) => self.clock.time(Step::Read, || stream.queue().run(*job)),
            Turn::Wait => {
                stream.wait();
                Ok(())
            }
            Turn::End => {
                lock(&self.account).start_chunk(&stream.take_rest());
                let mut state = lock(&self.state);
                state.end_stream();
                state.push_partitions(&|n| self.create_segment(n))
            }
        }
    }

    fn parse_chunk(
        &self,
        number: usize,
        plan: &PartitionPlan,
        chunk: &StreamChunk,
        reader: &mut WindowReader,
    ) -> Result<()> {
        self.parse(number, plan, |parser, tick| {
            // Progress counts stored bytes, not those of the text.
            let rows = |_, rows| tick(0, rows);
            Ok(chunk.parts.iter().map(|p| reader.parse_bytes(p, parser, &rows)).collect())
        })?;
        let bytes = chunk.source_bytes.iter().map(|(_, bytes)| bytes).sum();
        self.progress.bytes.fetch_add(bytes, Ordering::Relaxed);
        Ok(())
    }

    /// The plan of a chunk's partition; the first who asks makes it.
    fn plan(
        &self,
        chunk: usize,
        make: impl FnOnce() -> Result<Vec<ColumnPlan>>,
    ) -> Result<Arc<PartitionPlan>> {
        let cell = Arc::clone(&lock(&self.state).arriving(chunk).plan);
        let started = thread_cpu_ns();
        let plan = cell.get_or_init(|| make().map(|columns| Arc::new(PartitionPlan { columns })));
        self.clock.add(Step::Sort, thread_cpu_ns() - started);
        plan.clone()
    }

    /// Parses a chunk with a parser of its partition and delivers its fragment.
    fn parse(
        &self,
        chunk: usize,
        plan: &PartitionPlan,
        read: impl FnOnce(&mut ChunkParser, &dyn Fn(u64, u64)) -> Result<Vec<PieceSpan>>,
    ) -> Result<()> {
        let (number, parser, plain) = {
            let mut state = lock(&self.state);
            let arriving = state.arriving(chunk);
            let (number, parser) = arriving.take_parser();
            (number, parser, arriving.plain_columns.clone())
        };
        let mut parser = parser.unwrap_or_else(|| self.new_parser(plan));
        for column in plain {
            parser.columns_mut()[column].leave_codes();
        }
        let tick = |bytes: u64, rows: u64| {
            self.progress.bytes.fetch_add(bytes, Ordering::Relaxed);
            self.progress.rows.fetch_add(rows, Ordering::Relaxed);
        };
        let spans = read(&mut parser, &tick)?;
        let fragment = parser.finish(number)?;
        let time = parser.take_time();
        self.clock.add(Step::Tokenise, time.tokenise);
        self.clock.add(Step::Convert, time.convert);
        let rejects: usize = spans.iter().map(|s| s.rejects.len()).sum();
        self.progress.rejects.fetch_add(rejects as u64, Ordering::Relaxed);
        let parsed = ParsedChunk { spans, speculated: self.is_speculated(chunk), fragment };
        self.deliver(chunk, number, parser, parsed)
    }

    fn is_speculated(&self, chunk: usize) -> bool {
        match &self.source {
            Source::Files { chunks, .. } => {
                chunks[chunk].iter().any(|p| p.start_is == Start::Speculated)
            }
            Source::Stream(_) => false,
        }
    }

    fn deliver(
        &self,
        chunk: usize,
        number: u32,
        mut parser: ChunkParser,
        parsed: ParsedChunk,
    ) -> Result<()> {
        let plain_now = parser.take_plain_now();
        let mut state = lock(&self.state);
        let arriving = state.arriving(chunk);
        arriving.plain_columns.extend(plain_now);
        arriving.return_parser(number, parser);
        let verified = state.deliver(chunk, parsed);
        // The account follows the order of the input, so it is kept under the same lock.
        let mut account = lock(&self.account);
        for span in verified.spans {
            if let Err(error) = account.add(span) {
                // Kept under the lock too, so that no later chunk's error comes first.
                state.error.get_or_insert(error);
                return Ok(());
            }
        }
        state.push_partitions(&|n| self.create_segment(n))
    }

    fn new_parser(&self, plan: &PartitionPlan) -> ChunkParser {
        let columns = self
            .columns
            .iter()
            .zip(&plan.columns)
            .map(|(rules, plan)| {
                let lexicon = Lexicon::new(rules.data_type.physical());
                ColumnParser::new(rules.clone(), plan.clone(), lexicon)
            })
            .collect();
        ChunkParser::new(self.rules, columns, thread_cpu_ns)
    }

    fn create_segment(&self, number: u32) -> Result<SegmentWriter> {
        SegmentWriter::create(&self.dir.segment_path(number))
    }

    fn compress(&self, partition: &SealedPartition, column: usize) -> Result<()> {
        let physical = self.physicals[column];
        let policy = self.options.encoding;
        let result = partition.compress(column, physical, policy, &self.clock)?;
        let mut state = lock(&self.state);
        state.compressed(partition.number, column, result);
        state.push_partitions(&|n| self.create_segment(n))
    }

    fn merge(&self, segment: &ClosedSegment, column: usize) -> Result<()> {
        let last = segment.merge(column, self.physicals[column], &self.clock);
        lock(&self.state).merged();
        if last? {
            let (summary, columns) = segment.finish(&self.clock)?;
            let done = DoneSegment { number: segment.number, summary, columns };
            lock(&self.state).segment_done(done);
        }
        Ok(())
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
        .schema
        .columns()
        .iter()
        .map(|c| ColumnRules {
            data_type: c.data_type,
            nullable: c.nullable,
            fields: fields.clone(),
            origin,
        })
        .collect()
}

/// Plans the columns from a sample's records.
pub fn plan_columns(rows: &coload_source::Rows<'_>, columns: &[ColumnRules]) -> Vec<ColumnPlan> {
    let plan = |(i, c): (usize, &ColumnRules)| plan_column(rows, i, c.data_type);
    columns.iter().enumerate().map(plan).collect()
}

/// Names and types, for messages about rejects.
pub fn column_names(options: &LoadOptions) -> Vec<(String, DataType)> {
    options.schema.columns().iter().map(|c| (c.name.clone(), c.data_type)).collect()
}

/// When a load began, by both clocks.
#[derive(Debug, Clone, Copy)]
pub struct Started {
    /// Wall clock, monotonic.
    pub wall: Instant,
    /// CPU time of the process.
    pub cpu_ns: u64,
    /// Microseconds since the epoch.
    pub epoch_us: i64,
}

impl Started {
    /// Now.
    pub fn now() -> Self {
        Started {
            wall: Instant::now(),
            cpu_ns: crate::clock::process_cpu_ns(),
            epoch_us: epoch_us(),
        }
    }
}

/// Microseconds since the epoch.
pub fn epoch_us() -> i64 {
    let since = std::time::SystemTime::now().duration_since(std::time::UNIX_EPOCH);
    since.map_or(0, |d| d.as_micros() as i64)
}
