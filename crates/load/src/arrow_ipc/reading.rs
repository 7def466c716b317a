//! Reads the chunks of Arrow with the types of a leg.

use std::ops::Range;
use std::sync::Arc;

use coload_arrow::{Batch, BatchLayout, Body, Buffers, Encoding, Fault, SliceValues, read_slice};
use coload_threads::{Step, StepClock};
use coload_types::{Error, Result};

use super::cache::Dictionaries;
use super::files::batch_at;
use super::input::{FieldsRead, fault};
use super::stream::StreamBatch;
use super::{Arrow, Files};
use crate::format::{Arrival, Leg, Number, PieceSpan, Read, Reading, Taken, Tick, Turn, WorkAhead};
use crate::grain::Grain;
use crate::partition::PartitionPlan;
use crate::typed::{
    Asked, Column, Dictionary, FileBody, Gate, RowsRead, StreamRows, StreamTurn, TypedParser,
    TypedWorker, add_rows, add_span, batch_bytes_max, parser_of, plan_of,
};

/// Reads the chunks of a leg.
pub struct ArrowReading<'a> {
    source: &'a Arrow,
    leg: Leg<'a>,
    grain: Grain,
    dictionaries: Dictionaries,
    gate: Arc<Gate>,
    /// Chunks of a stream that may have to be read, or read again.
    taken: Taken<Vec<StreamRows<StreamBatch>>>,
}

/// Rows to be read, wherever their batch is.
struct Piece<'a> {
    file: usize,
    /// Where the message starts.
    start: u64,
    fields: &'a FieldsRead,
    batch: &'a Batch,
    body: &'a dyn Body,
    rows: Range<u64>,
    span: Range<u64>,
}

impl<'a> ArrowReading<'a> {
    /// Nothing is read yet.
    pub fn new(source: &'a Arrow, leg: Leg<'a>) -> Self {
        ArrowReading {
            source,
            grain: Grain::of(leg.request, leg.resources),
            taken: Taken::new(leg.way),
            leg,
            dictionaries: Dictionaries::default(),
            gate: Arc::default(),
        }
    }

    /// The plan of a partition whose first rows have these fields: those with dictionaries or runs have codes.
    fn plan_of(&self, fields: Option<&FieldsRead>) -> PartitionPlan {
        let has_dictionary = |column: usize| {
            fields.is_some_and(|fields| {
                fields.schema.fields[fields.of_column[column]].encoding != Encoding::Plain
            })
        };
        plan_of(&self.leg, has_dictionary)
    }

    /// Reads a chunk of files.
    fn parse_files(
        &self,
        files: &Files,
        read: Read<'_, Self>,
        clock: &StepClock,
        tick: &Tick<'_>,
    ) -> Result<Vec<PieceSpan>> {
        let asked = Asked::of(&self.leg);
        let mut spans = Vec::new();
        for rows in files.chunks.rows(|batch| files.block(batch), self.leg.from.chunks + read.chunk)
        {
            let at = &files.batches[rows.block];
            let (number, start) = (at.file as usize, at.place.start);
            let file = &files.files[number];
            let batch = clock.time(Step::Read, || batch_at(&file.file, &at.place));
            let batch = batch.map_err(|error| fault(asked, number, start, error))?;
            let body = FileBody { file: &file.file, start: at.place.body() };
            let piece = Piece {
                file: number,
                start,
                fields: &file.fields,
                batch: &batch,
                body: &body,
                rows: rows.rows,
                span: rows.span,
            };
            let dictionary = |id| self.dictionaries.get(file, at, id, asked);
            let bytes = piece.span.end - piece.span.start;
            let span = self.parse_piece(&piece, &dictionary, (read.worker, read.parser), clock)?;
            tick(bytes, span.rows)?;
            add_span(&mut spans, span);
        }
        Ok(spans)
    }

    /// Reads a chunk of a stream.
    fn parse_stream(
        &self,
        chunk: &[StreamRows<StreamBatch>],
        read: Read<'_, Self>,
        clock: &StepClock,
        tick: &Tick<'_>,
    ) -> Result<Vec<PieceSpan>> {
        let mut spans = Vec::new();
        for StreamRows { block: batch, rows, span } in chunk {
            let piece = Piece {
                file: batch.file,
                start: batch.start,
                fields: &batch.fields,
                batch: &batch.batch,
                body: &batch.body,
                rows: rows.clone(),
                span: span.clone(),
            };
            let dictionary = |id| {
                batch.dictionaries.get(&id).cloned().ok_or_else(|| {
                    let text = format!(
                        "dictionary {id} does not come before the rows that need it (a file may have it later: \
                         decompress it, and load it as a file)"
                    );
                    fault(Asked::of(&self.leg), batch.file, batch.start, Fault::Damaged(text))
                })
            };
            let span = self.parse_piece(&piece, &dictionary, (read.worker, read.parser), clock)?;
            // Progress counts stored bytes, not those of the stream.
            tick(0, span.rows)?;
            add_span(&mut spans, span);
        }
        Ok(spans)
    }

    /// Reads rows of a batch.
    fn parse_piece(
        &self,
        piece: &Piece<'_>,
        dictionary: &dyn Fn(i64) -> Result<Arc<Dictionary>>,
        (worker, parser): (&mut TypedWorker, &mut TypedParser),
        clock: &StepClock,
    ) -> Result<PieceSpan> {
        let asked = Asked::of(&self.leg);
        let Piece { file, start, fields, batch, body, ref rows, ref span } = *piece;
        if batch.body_bytes.min(span.end - span.start) > self.grain.large_bytes as u64 {
            worker.enter();
        }
        let bytes_max = batch_bytes_max(asked);
        let columns = clock.time(Step::Read, || {
            let layout = BatchLayout::new(&fields.schema.fields, batch)
                .map_err(|error| fault(asked, file, start, error))?;
            let buffers = Buffers::new(batch, body, bytes_max);
            let column = |index: &usize| {
                let field = &fields.schema.fields[*index];
                let slice = read_slice(field, &layout.fields[*index], &buffers, rows.clone())
                    .map_err(|error| fault(asked, file, start, error))?;
                let found = match &slice.values {
                    SliceValues::Keys(_, id) => Some(dictionary(*id)?),
                    _ => None,
                };
                let column = Column { values: field.values.clone(), slice, dictionary: found };
                match column.has_all_keys() {
                    true => Ok(column),
                    false => {
                        let text =
                            format!("field {}: keys that its dictionary has not", field.name);
                        Err(fault(asked, file, start, Fault::Damaged(text)))
                    }
                }
            };
            fields.of_column.iter().map(column).collect::<Result<Vec<_>>>()
        })?;
        let count = (rows.end - rows.start) as usize;
        let read = RowsRead {
            columns,
            rows: count,
            offset: start,
            // Records are counted within the span.
            before: 0,
            bytes_max,
        };
        add_rows(parser, &read, file, span.clone())
    }
}

impl Reading for ArrowReading<'_> {
    type Worker = TypedWorker;
    type Parser = TypedParser;

    fn worker(&self) -> TypedWorker {
        TypedWorker::new(&self.gate)
    }

    fn end_task(&self, worker: &mut TypedWorker) {
        worker.leave();
    }

    fn plan(&self, first: usize) -> Result<PartitionPlan> {
        let Arrow::Files(files) = self.source else {
            return Err(Error::Corrupt("a chunk of a stream that was planned without it".into()));
        };
        let rows = files.chunks.rows(|batch| files.block(batch), self.leg.from.chunks + first);
        let file = rows.first().map(|rows| files.batches[rows.block].file as usize);
        Ok(self.plan_of(file.map(|file| &*files.files[file].fields)))
    }

    fn parser(&self, plan: &PartitionPlan) -> TypedParser {
        parser_of(&self.leg, &self.grain, plan)
    }

    fn is_speculated(&self, _chunk: usize) -> bool {
        false
    }

    fn parse(
        &self,
        read: Read<'_, Self>,
        clock: &StepClock,
        tick: &Tick<'_>,
    ) -> Result<Vec<PieceSpan>> {
        match self.source {
            Arrow::Files(files) => self.parse_files(files, read, clock, tick),
            Arrow::Stream(..) => {
                let rows = self.taken.get(read.chunk)?;
                self.parse_stream(&rows, read, clock, tick)
            }
        }
    }

    fn take(&self, number: Number<'_>) -> Result<Turn> {
        let Arrow::Stream(stream, _) = self.source else {
            return Ok(Turn::End(Arrival::default()));
        };
        let mut numbered = 0;
        let turn = stream.turn(|chunk| {
            let fields = chunk.rows.first().map(|rows| Arc::clone(&rows.block.fields));
            numbered = number(&chunk.arrival, &mut || self.plan_of(fields.as_deref()))?;
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
        if let Arrow::Stream(stream, _) = self.source {
            stream.give_back(self.taken.split_off(from).map(Arc::unwrap_or_clone));
        }
    }

    fn ahead(&self) -> Option<&dyn WorkAhead> {
        match self.source {
            Arrow::Files(_) => None,
            Arrow::Stream(stream, _) => Some(&**stream),
        }
    }
}
