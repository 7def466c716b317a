//! Runs a load: workers take tasks until all is published.

use std::cell::Cell;
use std::collections::BTreeMap;
use std::sync::atomic::{AtomicBool, AtomicU64, AtomicUsize, Ordering};
use std::sync::{Arc, Condvar, Mutex};
use std::time::{Duration, Instant};

use coload_format::runs::shrink_to_runs;
use coload_format::{DataType, Error, Physical, Result};
use coload_source::{
    ChunkParser, ColumnForm, ColumnParser, ColumnPlan, ColumnRules, LeftOut, Lexicon, RecordRules,
    TypeOrigin, plan_column,
};
use coload_store::{LoadDir, SegmentWriter, encode_dictionary};
use coload_transform::{EncodingPolicy, Fragment, FragmentColumn, PartitionColumn, Placement};

use crate::account::Account;
use crate::checks::Checks;
use crate::chunks::{Piece, Source, Start};
use crate::clock::{Step, StepClock, thread_cpu_ns};
use crate::derive::Deriver;
use crate::options::{LoadOptions, Progress};
use crate::partition::{PartitionPlan, SealedPartition};
use crate::program::{Made, run_program};
use crate::reader::{PieceSpan, WindowReader};
use crate::sample::{Measure, sample_bytes, sample_partition};
use crate::schedule::{Counted, DoneSegment, Flow, Output, ParsedChunk, Sealing, State, Task};
use crate::segments::{ClosedSegment, lock};
use crate::stream::{StreamChunk, Turn};
use crate::widen::Widening;
use crate::wire::{BlockContent, FilePart, PartitionAccount, Seal};

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

/// Where a load's partitions go.
#[derive(Clone, Copy)]
pub enum Destination<'a> {
    /// Into segments in the directory of a load.
    Store(&'a LoadDir),
    /// Nowhere: a dry run.
    Nowhere,
    /// To a sink, after the partitions that it has from an earlier attempt.
    Sink(&'a dyn Sink, &'a [PartitionAccount]),
}

/// Takes fragments and partitions instead of the segments of a store. Called by all workers.
pub trait Sink: Sync {
    /// Where the columns of the next fragment of a partition are transformed. `base_ns` is what a row took so far
    /// that no placement changes; `None` before the first.
    fn place(
        &self,
        partition: usize,
        plan: &PartitionPlan,
        base_ns: Option<f64>,
    ) -> Arc<[Placement]>;

    /// Takes values of a column.
    ///
    /// # Errors
    /// What ends the load.
    fn send(&self, partition: usize, column: usize, content: BlockContent) -> Result<()>;

    /// Takes the end of a partition.
    ///
    /// # Errors
    /// What ends the load.
    fn seal(&self, seal: Seal) -> Result<()>;
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
            sample_partition(inputs, &chunks[first], self.rules, &self.columns, self.measure())
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
                        Ok(sample_bytes(text, self.rules, &self.columns, self.measure()))
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
                let rest = stream.take_rest();
                self.progress.add(rest.source_bytes.iter().map(|(_, bytes)| bytes).sum(), 0);
                lock(&self.account).start_chunk(&rest);
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
        make: impl FnOnce() -> Result<PartitionPlan>,
    ) -> Result<Arc<PartitionPlan>> {
        let cell = Arc::clone(&lock(&self.state).arriving(chunk).plan);
        let started = thread_cpu_ns();
        let derived = |plan: PartitionPlan| match &self.deriver {
            Some(deriver) => plan.with_derived(deriver),
            None => plan,
        };
        let plan = cell.get_or_init(|| make().map(derived).map(Arc::new));
        self.clock.add(Step::Sort, thread_cpu_ns() - started);
        plan.clone()
    }

    fn measure(&self) -> Measure {
        match self.output {
            Destination::Store(_) | Destination::Nowhere => Measure::No,
            Destination::Sink(..) => {
                let fragments = fragments_per_partition(self.options);
                Measure::Partition { bytes: (fragments * self.options.chunk_bytes) as f64 }
            }
        }
    }

    /// Parses a chunk with a parser of its partition and delivers its fragment.
    fn parse(
        &self,
        chunk: usize,
        plan: &PartitionPlan,
        mut read: impl FnMut(&mut ChunkParser, &dyn Fn(u64, u64)) -> Result<Vec<PieceSpan>>,
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
        let placements = match self.output {
            Destination::Store(_) | Destination::Nowhere => None,
            Destination::Sink(sink, _) => {
                let partition = chunk / lock(&self.state).fragments_per_partition();
                Some(sink.place(partition, plan, self.base_ns()))
            }
        };
        for (column, placement) in placements.iter().flat_map(|p| p.iter()).enumerate() {
            let Some(read) = plan.read_of(column) else { continue };
            parser.columns_mut()[read].read_as(match placement {
                Placement::Client => ColumnForm::Planned,
                Placement::Server => ColumnForm::Plain,
            });
        }
        let counted = [Cell::new(0), Cell::new(0)];
        let tick = |bytes: u64, rows: u64| {
            self.progress.add(bytes, rows);
            counted[0].set(counted[0].get() + bytes);
            counted[1].set(counted[1].get() + rows);
        };
        let mut spans = read(&mut parser, &tick)?;
        let mut left_out = Vec::new();
        let fragment = loop {
            match self.make_rows(&mut parser, number, plan, &mut spans)? {
                Made::Rows(fragment, _) => break fragment,
                Made::Failed(rows) => add_left_out(&mut left_out, rows),
            }
            parser.leave_out(left_out.clone());
            // What was counted is not counted again.
            spans = read(&mut parser, &|_, _| {})?;
        };
        let time = parser.take_time();
        self.clock.add(Step::Tokenise, time.tokenise);
        self.clock.add(Step::Convert, time.convert);
        // Rows that were left out afterwards are none.
        let rows = spans.iter().map(|span| span.rows + span.filtered).sum();
        self.progress.take_back(0, counted[1].get());
        self.progress.add(0, rows);
        let rejects = spans.iter().map(|span| span.rejects.len() as u64).sum();
        self.progress.rejects.fetch_add(rejects, Ordering::Relaxed);
        let counted = Counted { bytes: counted[0].get(), rows, rejects };
        let flows = match placements {
            None => Vec::new(),
            Some(placements) => self.flows(&placements, plan, &fragment),
        };
        let speculated = self.is_speculated(chunk);
        let parsed = ParsedChunk { spans, speculated, fragment, flows, counted };
        self.deliver(chunk, number, parser, parsed)
    }

    /// CPU nanoseconds of a row to read it and find its fields.
    fn base_ns(&self) -> Option<f64> {
        let rows = self.progress.rows.load(Ordering::Relaxed);
        let spent = self.clock.get(Step::Read) + self.clock.get(Step::Tokenise);
        (rows > 0).then(|| spent.as_nanos() as f64 / rows as f64)
    }

    /// The rows of the table of the chunk that was read, or those that must be left out.
    fn make_rows(
        &self,
        parser: &mut ChunkParser,
        number: u32,
        plan: &PartitionPlan,
        spans: &mut [PieceSpan],
    ) -> Result<Made> {
        let read = parser.finish(number)?;
        let made = match &self.options.program {
            Some(program) => run_program(&**program, read, parser, plan, spans)?,
            None => Made::Rows(read, None),
        };
        let Made::Rows(mut fragment, kept) = made else { return Ok(made) };
        if let Some(deriver) = &self.deriver {
            fragment = deriver.derive(fragment, spans);
        }
        let Some(checks) = &self.checks else { return Ok(Made::Rows(fragment, kept)) };
        let dictionary = |column| match plan.read_of(column) {
            Some(read) => Some(parser.dictionary(read)),
            None => plan.derived_dictionary(column),
        };
        let mut broken = checks.broken(&fragment, dictionary, |column| plan.encoder(column))?;
        if broken.is_empty() {
            return Ok(Made::Rows(fragment, kept));
        }
        if let Some(kept) = kept {
            broken.iter_mut().for_each(|row| row.row = u64::from(kept[row.row as usize]));
        }
        Ok(Made::Failed(broken))
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
        let Counted { bytes, rows, rejects } = verified.in_vain;
        self.progress.take_back(bytes, rows);
        self.progress.rejects.fetch_sub(rejects, Ordering::Relaxed);
        // The account follows the order of the input, so it is kept under the same lock.
        let mut account = lock(&self.account);
        for (partition, span) in verified.spans {
            let (file, rows, lines, end) = (span.file as u32, span.rows, span.lines, span.end);
            if let Err(error) = account.add(span) {
                // Kept under the lock too, so that no later chunk's error comes first.
                state.error.get_or_insert(error);
                return Ok(());
            }
            if matches!(self.output, Destination::Sink(..)) {
                let mut taken = account.take_rejects();
                let mut receipts = lock(&self.receipts);
                let receipt = receipts.entry(partition).or_default();
                let rejects = taken.len() as u64;
                receipt.add(FilePart { file, rows, rejects, lines, end });
                receipt.rejects.append(&mut taken);
            }
        }
        state.push_partitions(&|n| self.create_segment(n))
    }

    fn new_parser(&self, plan: &PartitionPlan) -> ChunkParser {
        let columns = self
            .columns
            .iter()
            .zip(&plan.read)
            .map(|(rules, plan)| {
                let lexicon = Lexicon::new(rules.data_type.physical());
                ColumnParser::new(rules.clone(), plan.clone(), lexicon)
            })
            .collect();
        ChunkParser::new(self.rules, columns, thread_cpu_ns)
    }

    fn create_segment(&self, number: u32) -> Result<SegmentWriter> {
        match self.output {
            Destination::Store(dir) => SegmentWriter::create(&dir.segment_path(number)),
            Destination::Nowhere => Ok(SegmentWriter::to_nowhere()),
            Destination::Sink(..) => {
                Err(Error::Invalid("a load to a server writes no segments".into()))
            }
        }
    }

    /// Which columns of a fragment are final: the values of those that the server transforms, and
    /// pages of those that were never meant to have codes.
    fn flows(&self, placements: &[Placement], plan: &PartitionPlan, of: &Fragment) -> Vec<bool> {
        let auto = self.options.encoding == EncodingPolicy::Auto;
        (placements.iter().zip(&plan.columns).zip(&of.columns).enumerate())
            .map(|(index, ((placement, column_plan), column))| {
                match (placement, column_plan, column) {
                    _ if plan.read_of(index).is_none() => false,
                    (Placement::Server, ..) => true,
                    (_, ColumnPlan::Codes, _) => false,
                    (.., FragmentColumn::Page(_)) => auto,
                    _ => false,
                }
            })
            .collect()
    }

    fn flow(&self, flow: Flow) -> Result<()> {
        let Flow { partition, fragment, columns, plan } = flow;
        if let Destination::Sink(sink, _) = self.output {
            for (column, values) in columns {
                let content = self.clock.time(Step::Compress, || match values {
                    FragmentColumn::Plain(values) => Ok(BlockContent::Plain { fragment, values }),
                    FragmentColumn::Page(page) => Ok(BlockContent::Pages {
                        dictionary: None,
                        symbols: plan.encoder(column).map(|e| e.table()).into_iter().collect(),
                        pages: vec![(fragment, shrink_to_runs(page)?)],
                    }),
                    FragmentColumn::Codes { .. } => {
                        Err(Error::Corrupt("codes left before their dictionary".into()))
                    }
                })?;
                sink.send(partition, column, content)?;
            }
        }
        lock(&self.state).sent();
        Ok(())
    }

    fn seal(&self, sealing: Sealing) -> Result<()> {
        let Sealing { partition, blocks, page_rows } = sealing;
        if let Destination::Sink(sink, _) = self.output {
            let account = lock(&self.receipts).remove(&partition).unwrap_or_default();
            let rows = account.rows();
            sink.seal(Seal { partition: partition as u32, blocks, page_rows, account })?;
            self.rows_sealed.fetch_add(rows, Ordering::AcqRel);
        }
        lock(&self.state).sent();
        Ok(())
    }

    fn compress(&self, partition: &SealedPartition, column: usize) -> Result<()> {
        let physical = self.physicals[column];
        let policy = self.options.encoding;
        let mut result = partition.compress(column, physical, policy, &self.clock)?;
        if let Destination::Sink(sink, _) = self.output {
            let PartitionColumn { dictionary, symbols, pages } = result;
            let dictionary = dictionary.map(|d| encode_dictionary(&d)).transpose()?;
            let pages = partition.waiting(column).iter().copied().zip(pages).collect();
            sink.send(
                partition.number,
                column,
                BlockContent::Pages { dictionary, symbols, pages },
            )?;
            result = PartitionColumn { dictionary: None, symbols: Vec::new(), pages: Vec::new() };
        }
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

/// Adds rows of a chunk that was parsed without those that are known already.
fn add_left_out(known: &mut Vec<LeftOut>, rows: Vec<LeftOut>) {
    let (mut at, mut all) = (0, Vec::with_capacity(known.len() + rows.len()));
    for mut row in rows {
        // As many stood before it as were left out before it.
        row.row += at as u64;
        while let Some(before) = known.get(at)
            && before.row <= row.row
        {
            all.push(before.clone());
            (at, row.row) = (at + 1, row.row + 1);
        }
        all.push(row);
    }
    all.extend_from_slice(&known[at..]);
    *known = all;
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

#[cfg(test)]
mod tests;
