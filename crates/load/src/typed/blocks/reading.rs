//! Reads the chunks of blocks with the types of a leg.

use std::ops::Range;
use std::sync::Arc;

use coload_threads::StepClock;
use coload_types::{Error, Result};

use super::{BlockForm, BlockInputs, StreamBlock};
use crate::format::{Arrival, Leg, Number, PieceSpan, Read, Reading, Taken, Tick, Turn, WorkAhead};
use crate::grain::Grain;
use crate::partition::{KnownSymbols, PartitionPlan};
use crate::typed::{
    Asked, Column, Gate, Rows, RowsRead, StreamRows, StreamTurn, TypedParser, TypedPlans,
    TypedWorker, add_rows, add_span, batch_bytes_max, first_rows, parser_of, plan_of,
};

/// Reads the chunks of a leg.
pub struct BlockReading<'a, F: BlockForm> {
    source: &'a BlockInputs<F>,
    leg: Leg<'a>,
    grain: Grain,
    kept: F::Kept,
    gate: Arc<Gate>,
    plans: TypedPlans,
    /// Chunks of a stream that may have to be read, or read again.
    taken: Taken<Vec<StreamRows<StreamBlock<F>>>>,
}

/// A chunk that is being read.
pub struct ChunkRead<'a, F: BlockForm> {
    /// What is loaded, and what may be used for it.
    pub asked: Asked<'a>,
    /// What is kept for all chunks of the leg.
    pub kept: &'a F::Kept,
    /// What is used again from block to block.
    pub scratch: F::Scratch,
    /// Measures where time goes.
    pub clock: &'a StepClock,
    /// Where what takes much memory waits for its turn.
    pub room: Room<'a>,
    parser: &'a mut TypedParser,
    tick: &'a Tick<'a>,
    spans: Vec<PieceSpan>,
}

/// Memory of a worker: one at a time takes a large share.
pub struct Room<'a> {
    worker: &'a mut TypedWorker,
    large_bytes: u64,
}

impl Room<'_> {
    /// So many bytes will be held at once.
    pub fn take(&mut self, bytes: u64) {
        if bytes > self.large_bytes {
            self.worker.enter();
        }
    }
}

impl<F: BlockForm> ChunkRead<'_, F> {
    /// Makes rows of columns, those of a block that starts at `start` of an input.
    ///
    /// # Errors
    /// `Limit` when their values take more than they may.
    pub fn add_rows(
        &mut self,
        columns: Vec<Column<'_>>,
        rows: u64,
        (file, start): (usize, u64),
        span: Range<u64>,
    ) -> Result<PieceSpan> {
        let read = RowsRead {
            columns,
            rows: rows as usize,
            offset: start,
            // Records are counted within the span.
            before: 0,
            bytes_max: batch_bytes_max(self.asked),
        };
        add_rows(self.parser, &read, file, span)
    }

    /// Rows were read, of so many bytes of the input.
    ///
    /// # Errors
    /// Those of who is told of progress.
    pub fn done(&mut self, span: PieceSpan, bytes: u64) -> Result<()> {
        (self.tick)(bytes, span.rows)?;
        add_span(&mut self.spans, span);
        Ok(())
    }
}

impl<'a, F: BlockForm> BlockReading<'a, F> {
    /// Nothing is read yet.
    pub fn new(source: &'a BlockInputs<F>, leg: Leg<'a>) -> Self {
        BlockReading {
            source,
            grain: Grain::of(leg.request, leg.resources),
            taken: Taken::new(leg.way),
            leg,
            kept: F::Kept::default(),
            gate: Arc::default(),
            plans: TypedPlans::default(),
        }
    }

    /// The plan of a partition whose first rows have these fields; `read_first` reads them.
    fn plan_of(
        &self,
        known: &KnownSymbols,
        fields: Option<&F::Fields>,
        read_first: impl FnOnce(&mut ChunkRead<'_, F>) -> Result<()>,
    ) -> Result<PartitionPlan> {
        let asked = Asked::of(&self.leg);
        let is_coded = |column: usize| {
            fields.is_some_and(|fields| F::is_coded(fields, column, asked, &self.grain))
        };
        plan_of(&self.leg, &self.grain, known, is_coded, |parser| {
            // What is read to plan is read again, and counted then.
            let (clock, mut worker) = (StepClock::default(), TypedWorker::new(&self.gate));
            read_first(&mut self.chunk_read(&mut worker, parser, &clock, &|_, _| Ok(())))
        })
    }

    /// The plan of a partition whose first rows came so.
    fn plan_streamed(
        &self,
        first: Option<&StreamRows<StreamBlock<F>>>,
        known: &KnownSymbols,
    ) -> Result<PartitionPlan> {
        let fields = first.map(|rows| F::fields_of_block(&rows.block));
        self.plan_of(known, fields, |chunk| {
            let Some(first) = first else { return Ok(()) };
            let rows = first_rows(&first.rows, &first.span);
            F::read_streamed(&StreamRows { rows, ..first.clone() }, chunk).map(|_| ())
        })
    }

    fn chunk_read<'r>(
        &'r self,
        worker: &'r mut TypedWorker,
        parser: &'r mut TypedParser,
        clock: &'r StepClock,
        tick: &'r Tick<'r>,
    ) -> ChunkRead<'r, F> {
        ChunkRead {
            asked: Asked::of(&self.leg),
            kept: &self.kept,
            scratch: F::Scratch::default(),
            clock,
            room: Room { worker, large_bytes: self.grain.large_bytes as u64 },
            parser,
            tick,
            spans: Vec::new(),
        }
    }
}

impl<F: BlockForm> Reading for BlockReading<'_, F> {
    type Worker = TypedWorker;
    type Parser = TypedParser;

    fn worker(&self) -> TypedWorker {
        TypedWorker::new(&self.gate)
    }

    fn end_task(&self, worker: &mut TypedWorker) {
        worker.leave();
    }

    fn plan(&self, first: usize) -> Result<PartitionPlan> {
        let BlockInputs::Files(files) = self.source else {
            return Err(Error::Corrupt("a chunk of a stream that was planned without it".into()));
        };
        self.plans.plan(first, |first, known| {
            let rows = files.rows(self.leg.from.chunks + first);
            let place = rows.first().map(|rows| &files.places[rows.block]);
            let fields = place.map(|place| F::fields_of_file(&files.file_at(place).is));
            self.plan_of(known, fields, |chunk| match (rows.first(), place) {
                (Some(rows), Some(place)) => {
                    let first = Rows { rows: first_rows(&rows.rows, &rows.span), ..rows.clone() };
                    F::read_place(files.file_at(place), place, first, chunk)
                }
                _ => Ok(()),
            })
        })
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
        let mut chunk = self.chunk_read(read.worker, read.parser, clock, tick);
        match self.source {
            BlockInputs::Files(files) => {
                for rows in files.rows(self.leg.from.chunks + read.chunk) {
                    let place = &files.places[rows.block];
                    F::read_place(files.file_at(place), place, rows, &mut chunk)?;
                }
            }
            BlockInputs::Stream(..) => {
                for rows in self.taken.get(read.chunk)?.iter() {
                    let span = F::read_streamed(rows, &mut chunk)?;
                    // Progress counts stored bytes, not those of the stream.
                    chunk.done(span, 0)?;
                }
            }
        }
        Ok(chunk.spans)
    }

    fn take(&self, number: Number<'_>) -> Result<Turn> {
        let BlockInputs::Stream(stream, _) = self.source else {
            return Ok(Turn::End(Arrival::default()));
        };
        let mut numbered = 0;
        let turn = stream.turn(|chunk| {
            let plan = |_, known: &KnownSymbols| self.plan_streamed(chunk.rows.first(), known);
            numbered = number(&chunk.arrival, &mut || self.plans.plan(0, plan))?;
            self.taken.keep(numbered, Arc::new(chunk.rows));
            Ok(())
        })?;
        Ok(match turn {
            StreamTurn::Parse => Turn::Parse(numbered),
            StreamTurn::Again => Turn::Again,
            StreamTurn::End => Turn::End(stream.take_rest()),
        })
    }

    fn parsed(&self, chunk: usize) {
        self.taken.parsed(chunk);
    }

    fn verified(&self, before: usize) {
        self.taken.verified(before);
    }

    fn give_back(&self, from: usize) {
        if let BlockInputs::Stream(stream, _) = self.source {
            stream.give_back(self.taken.split_off(from).map(Arc::unwrap_or_clone));
        }
    }

    fn ahead(&self) -> Option<&dyn WorkAhead> {
        match self.source {
            BlockInputs::Files(_) => None,
            BlockInputs::Stream(stream, _) => Some(&**stream),
        }
    }
}
