//! Reads the chunks of rows that somebody else has.

use std::ops::Range;
use std::sync::Arc;

use coload_source::SAMPLE_ROWS;
use coload_threads::{Step, StepClock};
use coload_types::{Error, Result};

use super::stream::{Held, StreamTurn};
use super::{Cut, SourceRows, TypedBlock};
use crate::format::{Arrival, Leg, Number, PieceSpan, Read, Reading, Taken, Tick, Turn};
use crate::grain::Grain;
use crate::partition::{KnownSymbols, PartitionPlan};
use crate::typed::{
    BATCH_SHARE, Gate, RowsRead, TypedParser, TypedPlans, TypedWorker, add_rows, parser_of, plan_of,
};

/// Reads the chunks of a leg.
pub struct SourceReading<'a> {
    source: &'a SourceRows,
    leg: Leg<'a>,
    grain: Grain,
    gate: Arc<Gate>,
    plans: TypedPlans,
    /// Chunks of a stream that may have to be read, or read again.
    taken: Taken<StreamChunk>,
}

/// Blocks that came, and where they stand in the account.
#[derive(Debug)]
pub struct StreamChunk {
    /// The blocks, in order.
    pub blocks: Vec<Box<dyn TypedBlock>>,
    /// Where they stand.
    pub span: Range<u64>,
    /// Counts their bytes until they are dropped.
    pub _held: Held,
}

/// Rows of a chunk that were read so far.
#[derive(Default)]
struct SoFar {
    rows: u64,
    lines: u64,
    bytes: u64,
    span: Option<PieceSpan>,
}

impl<'a> SourceReading<'a> {
    /// Nothing is read yet.
    pub fn new(source: &'a SourceRows, leg: Leg<'a>) -> Self {
        SourceReading {
            source,
            grain: Grain::of(leg.request, leg.resources),
            taken: Taken::new(leg.way),
            leg,
            gate: Arc::default(),
            plans: TypedPlans::default(),
        }
    }

    /// The plan of a partition: fields with dictionaries have codes. Of what comes in order its first rows are there; parts
    /// of what somebody else has may take a query each, and are read once.
    fn plan_of(&self, known: &KnownSymbols, first: Option<&StreamChunk>) -> Result<PartitionPlan> {
        let SourceRows { source, wanted, .. } = self.source;
        let is_coded = |column: usize| source.has_dictionary(wanted.fields[column]);
        plan_of(&self.leg, &self.grain, known, is_coded, |parser| {
            let Some((chunk, block)) = first.and_then(|chunk| Some((chunk, chunk.blocks.first()?)))
            else {
                return Ok(());
            };
            let (clock, mut worker) = (StepClock::default(), TypedWorker::new(&self.gate));
            let tools = (&mut worker, parser);
            self.add(&mut SoFar::default(), (&**block, SAMPLE_ROWS), &chunk.span, tools, &clock)
        })
    }

    /// Adds the first rows of a block, as many as are wanted, to those of a chunk, which stands at `span`.
    fn add(
        &self,
        so_far: &mut SoFar,
        (block, wanted): (&dyn TypedBlock, usize),
        span: &Range<u64>,
        (worker, parser): (&mut TypedWorker, &mut TypedParser),
        clock: &StepClock,
    ) -> Result<()> {
        let (rows, columns) = clock.time(Step::Read, || block.columns(wanted))?;
        let bytes = columns.iter().map(|column| column.slice.bytes() as u64).sum::<u64>();
        so_far.bytes += bytes;
        if so_far.bytes > self.source.wanted.bytes_max {
            return Err(self.too_large(so_far.bytes));
        }
        if so_far.bytes > self.grain.large_bytes as u64 {
            worker.enter();
        }
        let bytes_max = self.source.wanted.bytes_max;
        let read = RowsRead { columns, rows, offset: span.start, before: so_far.lines, bytes_max };
        let mut added = add_rows(parser, &read, 0, span.clone())?;
        so_far.rows += added.rows;
        so_far.lines += added.lines;
        match &mut so_far.span {
            None => so_far.span = Some(added),
            Some(first) => {
                first.rejects.append(&mut added.rejects);
                (first.rows, first.lines) = (so_far.rows, so_far.lines);
            }
        }
        Ok(())
    }

    fn too_large(&self, bytes: u64) -> Error {
        let bytes_max = self.source.wanted.bytes_max;
        Error::Limit(format!(
            "{}: rows that are read at once take {bytes} bytes, and {bytes_max} of what --memory gives may be (try a \
             smaller --chunk-size, or --memory {}MiB)",
            self.source.name,
            bytes.saturating_mul(BATCH_SHARE as u64).div_ceil(1 << 20)
        ))
    }

    /// What became of a chunk that stands at `span`.
    fn spans(so_far: SoFar, span: Range<u64>) -> Vec<PieceSpan> {
        vec![so_far.span.unwrap_or_else(|| PieceSpan::empty(0, span))]
    }

    fn parse_part(
        &self,
        starts: &[u64],
        read: Read<'_, Self>,
        clock: &StepClock,
        tick: &Tick<'_>,
    ) -> Result<Vec<PieceSpan>> {
        let part = self.leg.from.chunks + read.chunk;
        let none = || Error::Corrupt(format!("part {part} of {}", self.source.name));
        let span = match (starts.get(part), starts.get(part + 1)) {
            (Some(start), Some(end)) => *start..*end,
            _ => return Err(none()),
        };
        let mut so_far = SoFar::default();
        let mut reader = clock.time(Step::Read, || self.source.open_part(part))?;
        while let Some(block) = clock.time(Step::Read, || reader.next())? {
            let before = so_far.rows;
            let tools = (&mut *read.worker, &mut *read.parser);
            self.add(&mut so_far, (&*block, usize::MAX), &span, tools, clock)?;
            tick(0, so_far.rows - before)?;
        }
        tick(span.end - span.start, 0)?;
        Ok(Self::spans(so_far, span))
    }

    fn parse_taken(
        &self,
        read: Read<'_, Self>,
        clock: &StepClock,
        tick: &Tick<'_>,
    ) -> Result<Vec<PieceSpan>> {
        let chunk = self.taken.get(read.chunk)?;
        let mut so_far = SoFar::default();
        for block in &chunk.blocks {
            let before = so_far.rows;
            let tools = (&mut *read.worker, &mut *read.parser);
            self.add(&mut so_far, (&**block, usize::MAX), &chunk.span, tools, clock)?;
            // Progress counts the bytes when the chunk is taken.
            tick(0, so_far.rows - before)?;
        }
        Ok(Self::spans(so_far, chunk.span.clone()))
    }
}

impl Reading for SourceReading<'_> {
    type Worker = TypedWorker;
    type Parser = TypedParser;

    fn worker(&self) -> TypedWorker {
        TypedWorker::new(&self.gate)
    }

    fn end_task(&self, worker: &mut TypedWorker) {
        worker.leave();
    }

    fn plan(&self, _first: usize) -> Result<PartitionPlan> {
        self.plan_of(&[], None)
    }

    fn parser(&self, plan: &PartitionPlan) -> TypedParser {
        parser_of(&self.leg, &self.grain, plan)
    }

    fn parse(
        &self,
        read: Read<'_, Self>,
        clock: &StepClock,
        tick: &Tick<'_>,
    ) -> Result<Vec<PieceSpan>> {
        match &self.source.how {
            Cut::Parts(starts) => self.parse_part(starts, read, clock, tick),
            Cut::Stream(_) => self.parse_taken(read, clock, tick),
        }
    }

    fn take(&self, number: Number<'_>) -> Result<Turn> {
        let Cut::Stream(stream) = &self.source.how else {
            return Ok(Turn::End(Arrival::default()));
        };
        let mut numbered = 0;
        let take = |chunk: StreamChunk| {
            let bytes = chunk.span.end - chunk.span.start;
            let arrival = Arrival { source_bytes: vec![(0, bytes)], ..Arrival::default() };
            numbered = number(&arrival, &mut || {
                self.plans.plan(0, |_, known| self.plan_of(known, Some(&chunk)))
            })?;
            self.taken.keep(numbered, Arc::new(chunk));
            Ok(())
        };
        match stream.turn(|| self.source.open_part(0), take)? {
            StreamTurn::Parse => Ok(Turn::Parse(numbered)),
            StreamTurn::Again => Ok(Turn::Again),
            StreamTurn::End(end) => {
                let ends = end.map(|end| (0, end)).into_iter().collect();
                Ok(Turn::End(Arrival { ends, ..Arrival::default() }))
            }
        }
    }

    fn parsed(&self, chunk: usize) {
        self.taken.parsed(chunk);
    }

    fn verified(&self, before: usize) {
        self.taken.verified(before);
    }
}
