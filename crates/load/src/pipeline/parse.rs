//! Chunks to fragments, delivered in any order and told in that of the input.

use std::borrow::Cow;
use std::cell::Cell;
use std::sync::{Arc, atomic::Ordering};

use coload_source::{
    ChunkParser, ColumnForm, ColumnParser, ColumnRules, InputFields, LeftOut, Lexicon, RecordRules,
    RejectedRecord, TypeOrigin,
};
use coload_threads::{Step, lock, thread_cpu_ns};
use coload_transform::Placement;
use coload_types::Result;
use coload_wire::FilePart;

use super::Pipeline;
use crate::chunks::{Piece, Source, Start};
use crate::grain::Grain;
use crate::partition::PartitionPlan;
use crate::program::{Made, run_program};
use crate::reader::{PieceSpan, Tick, WindowReader};
use crate::sample::{Measure, sample_bytes, sample_partition};
use crate::schedule::{Counted, ParsedChunk, State, Verified};
use crate::stream::{Part, StreamChunk, Turn};
use crate::widen::{Way, unfit_column};

/// A chunk to be parsed.
struct Unparsed {
    chunk: usize,
    /// Whether its start is.
    speculated: bool,
    /// Its text, if it may be needed again.
    text: Option<Arc<StreamChunk>>,
}

impl Pipeline<'_> {
    /// Parses a chunk of files; with a start when it is parsed again.
    pub(super) fn parse_files(
        &self,
        chunk: usize,
        start: Option<u64>,
        reader: &mut WindowReader<'_>,
    ) -> Result<()> {
        let Source::Files { inputs, chunks } = self.source else { return Ok(()) };
        let mut pieces = Source::pieces(inputs, chunks, self.from, chunk);
        // Only the first of a chunk was speculated on.
        if let (Some(start), Some(first)) = (start, pieces.first_mut()) {
            *first = Piece { start, start_is: Start::Record, ..*first };
        }
        let plan = self.plan(chunk, || {
            let first = self.first_chunk_of_partition(chunk);
            let mut first = Source::pieces(inputs, chunks, self.from, first);
            let file = first.first().map_or(0, |piece| piece.file);
            first.retain(|piece| self.fields.way(piece.file) == self.fields.way(file));
            let (rules, columns) = self.rules_of(file);
            let room = self.grain.column_room();
            sample_partition(inputs, &first, rules, &columns, room, self.measure())
        })?;
        // A chunk that is parsed again had quotes, or was no row.
        if start.is_none() && self.leave_chunk(chunk, &pieces, &plan, reader)? {
            return Ok(());
        }
        let speculated = pieces.iter().any(|p| p.start_is == Start::Speculated);
        self.parse(Unparsed { chunk, speculated, text: None }, &plan, |parser, tick| {
            let parse = |p: &Piece| {
                self.choose_fields(parser, p.file);
                reader.parse_piece(&inputs.at(p.file), p, parser, &self.clock, tick)
            };
            pieces.iter().map(parse).collect()
        })
    }

    fn first_chunk_of_partition(&self, chunk: usize) -> usize {
        chunk - chunk % lock(&self.state).fragments_per_partition()
    }

    /// Parses the next chunk of a stream, or decompresses some of it.
    pub(super) fn parse_stream(&self, reader: &mut WindowReader<'_>) -> Result<()> {
        let Source::Stream(stream) = self.source else { return Ok(()) };
        // Under the lock of the stream, so that the first chunk of a partition plans it.
        let mut planned = None;
        let turn = self.clock.time(Step::Read, || {
            stream.turn(|chunk| {
                let number = lock(&self.state).number_stream_chunk();
                lock(&self.account).start_chunk(chunk);
                planned = Some((
                    number,
                    self.plan(number, || {
                        let first = chunk.parts.first();
                        let (rules, columns) = self.rules_of(first.map_or(0, |part| part.file));
                        let text = first.map_or(&[][..], |part| part.text.as_slice());
                        let room = self.grain.column_room();
                        Ok(sample_bytes(text, rules, &columns, room, self.measure()))
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
            Turn::Decode(job) => {
                self.clock.time(Step::Read, || stream.queue().run(*job));
                Ok(())
            }
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
                state.seal_partitions();
                Ok(())
            }
        }
    }

    fn parse_chunk(
        &self,
        number: usize,
        plan: &Arc<PartitionPlan>,
        chunk: &Arc<StreamChunk>,
        reader: &mut WindowReader<'_>,
    ) -> Result<()> {
        let text = (self.way == Way::GoOn).then(|| Arc::clone(chunk));
        self.parse(Unparsed { chunk: number, speculated: false, text }, plan, |parser, tick| {
            // Progress counts stored bytes, not those of the text.
            let rows = |_, rows| tick(0, rows);
            let parse = |part: &Part| {
                self.choose_fields(parser, part.file);
                reader.parse_bytes(part, parser, &rows)
            };
            chunk.parts.iter().map(parse).collect()
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

    /// How the records of an input are read.
    fn rules_of(&self, file: usize) -> (RecordRules, Cow<'_, [ColumnRules]>) {
        let InputFields { count, of_column } = self.fields.of(file);
        let rules = RecordRules { fields: *count, ..self.rules };
        if !self.fields.differ() {
            return (rules, Cow::Borrowed(&self.columns));
        }
        let columns = self.columns.iter().zip(of_column);
        let columns = columns.map(|(rules, field)| ColumnRules { field: *field, ..rules.clone() });
        (rules, columns.collect())
    }

    /// Tells the parser which input comes.
    fn choose_fields(&self, parser: &mut ChunkParser, file: usize) {
        if self.fields.differ() {
            parser.read_fields(self.fields.of(file));
        }
    }

    fn measure(&self) -> Measure<'_> {
        if self.target.sharing().is_none() {
            return Measure::No;
        }
        let Grain { fragments_per_partition, chunk_bytes, .. } = self.grain;
        let bytes = (fragments_per_partition * chunk_bytes) as f64;
        Measure::Partition { bytes, measured: &self.measured }
    }

    /// Parses a chunk with a parser of its partition and delivers its fragment.
    fn parse(
        &self,
        Unparsed { chunk, speculated, text }: Unparsed,
        plan: &Arc<PartitionPlan>,
        mut read: impl FnMut(&mut ChunkParser, &Tick<'_>) -> Result<Vec<PieceSpan>>,
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
        let placements = self.target.sharing().map(|sharing| {
            let partition = chunk / lock(&self.state).fragments_per_partition();
            sharing.place(partition, plan, &self.row_costs())
        });
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
            self.go_on()
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
            spans = read(&mut parser, &|_, _| self.go_on())?;
        };
        let time = parser.take_time();
        self.clock.add(Step::Tokenise, time.tokenise);
        self.clock.add(Step::Convert, time.convert);
        // Rows that were left out afterwards are none.
        let rows = spans.iter().map(|span| span.rows + span.filtered).sum();
        let filtered = spans.iter().map(|span| span.filtered).sum();
        self.filtered.fetch_add(filtered, Ordering::Relaxed);
        self.progress.take_back(0, counted[1].get());
        self.progress.add(0, rows);
        let rejects = spans.iter().map(|span| span.rejects.len() as u64).sum();
        self.progress.rejects.fetch_add(rejects, Ordering::Relaxed);
        let counted = Counted { bytes: counted[0].get(), rows, rejects };
        let placements = placements.as_deref();
        let (waiting, ahead) =
            self.clock.time(Step::Compress, || self.divide(placements, plan, fragment))?;
        let unfit = self.way == Way::GoOn
            && spans.iter().flat_map(|span| &span.rejects).any(|record| self.is_unfit(record));
        let parsed =
            ParsedChunk { spans, speculated, waiting, ahead, counted, unfit, raw: None, text };
        self.deliver(chunk, number, parser, parsed)
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
            Some(program) => {
                let started = thread_cpu_ns();
                let made = run_program(&**program, read, parser, plan, spans);
                self.program_ns.fetch_add(thread_cpu_ns() - started, Ordering::Relaxed);
                made?
            }
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
        let mut broken =
            checks.broken(&fragment, dictionary, |column| plan.encoder(column).map(Arc::as_ref))?;
        if broken.is_empty() {
            return Ok(Made::Rows(fragment, kept));
        }
        if let Some(kept) = kept {
            broken.iter_mut().for_each(|row| row.row = u64::from(kept[row.row as usize]));
        }
        Ok(Made::Failed(broken))
    }

    /// Whether a record is no row because the type of a column is too narrow.
    fn is_unfit(&self, record: &RejectedRecord) -> bool {
        let inferred = |column: usize| {
            let rules = &self.columns[column];
            (rules.origin == TypeOrigin::Inferred).then_some(rules.data_type)
        };
        unfit_column(record, inferred).is_some()
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
        self.account(&mut state, verified)
    }

    /// Accounts for what was verified.
    ///
    /// # Errors
    /// `Unavailable` when a segment cannot be made.
    pub(super) fn account(&self, state: &mut State, verified: Verified) -> Result<()> {
        let Counted { bytes, rows, rejects } = verified.in_vain;
        self.progress.take_back(bytes, rows);
        self.progress.rejects.fetch_sub(rejects, Ordering::Relaxed);
        // The account follows the order of the input, so it is kept under the same lock.
        let mut account = lock(&self.account);
        for (partition, span) in verified.spans {
            let mut part = FilePart {
                file: span.file as u32,
                rows: span.rows,
                rejects: 0,
                filtered: span.filtered,
                lines: span.lines,
                end: span.end,
            };
            let mut receipts = lock(&self.receipts);
            let receipt =
                self.target.keeps_partitions().then(|| receipts.entry(partition).or_default());
            let added = match receipt {
                None => account.add(span, None),
                Some(receipt) => {
                    let before = receipt.rejects.len();
                    account.add(span, Some(&mut receipt.rejects)).map(|()| {
                        part.rejects = receipt.rejects.len() - before;
                        receipt.add(part);
                    })
                }
            };
            if let Err(error) = added {
                // Kept under the lock too, so that no later chunk's error comes first.
                state.error.get_or_insert(error);
                return Ok(());
            }
        }
        account.note_unfit(&verified.unfit);
        drop(account);
        state.seal_partitions();
        Ok(())
    }

    pub(super) fn new_parser(&self, plan: &PartitionPlan) -> ChunkParser {
        let columns = self
            .columns
            .iter()
            .zip(&plan.read)
            .enumerate()
            .map(|(column, (rules, plan))| {
                let lexicon = Lexicon::new(rules.data_type.physical())
                    .with_limit(self.grain.dictionary_limit());
                ColumnParser::new(rules.clone(), plan.clone(), lexicon)
                    .counting(self.distinct.get(column).cloned())
            })
            .collect();
        ChunkParser::new(self.rules, columns, thread_cpu_ns)
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
