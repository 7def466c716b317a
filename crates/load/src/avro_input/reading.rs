//! Reads the chunks of Avro with the types of a leg.

use std::ops::Range;
use std::sync::Arc;

use coload_arrow::Fault;
use coload_avro::{BlockHead, Decompressor, MARKER_BYTES, read_rows};
use coload_threads::{Step, StepClock};
use coload_types::{DataType, Error, Result};

use super::input::{FieldsRead, HeadRead, cut_off, fault, wrong_marker};
use super::stream::StreamBlock;
use super::{Avro, Files};
use crate::format::{Arrival, Leg, Number, PieceSpan, Read, Reading, Taken, Tick, Turn, WorkAhead};
use crate::grain::Grain;
use crate::partition::PartitionPlan;
use crate::typed::{
    Asked, Column, Gate, RowsRead, StreamRows, StreamTurn, TypedParser, TypedWorker, add_rows,
    add_span, batch_bytes_max, parser_of, plan_of, read_at,
};

/// Reads the chunks of a leg.
pub struct AvroReading<'a> {
    source: &'a Avro,
    leg: Leg<'a>,
    grain: Grain,
    gate: Arc<Gate>,
    /// Chunks of a stream that may have to be read, or read again.
    taken: Taken<Vec<StreamRows<StreamBlock>>>,
}

/// A block to be read, wherever it is.
struct Piece<'a> {
    file: usize,
    /// Its number in the input, and where it starts.
    number: u64,
    start: u64,
    head_of: &'a HeadRead,
    rows: u64,
    stored: &'a [u8],
    span: Range<u64>,
}

impl<'a> AvroReading<'a> {
    /// Nothing is read yet.
    pub fn new(source: &'a Avro, leg: Leg<'a>) -> Self {
        AvroReading {
            source,
            grain: Grain::of(leg.request, leg.resources),
            taken: Taken::new(leg.way),
            leg,
            gate: Arc::default(),
        }
    }

    /// The plan of a partition whose first rows have these fields: truths and enums of few symbols have codes.
    fn plan_of(&self, fields: Option<&FieldsRead>) -> PartitionPlan {
        let Some(fields) = fields else { return plan_of(&self.leg, |_| false) };
        let columns = self.leg.request.read_schema().columns();
        let limit = self.grain.dictionary_limit();
        plan_of(&self.leg, |column| {
            let few = |dictionary: &crate::typed::Dictionary| {
                limit.holds(dictionary.len(), dictionary.bytes())
            };
            columns[column].data_type == DataType::Boolean
                || fields.dictionaries[column].as_deref().is_some_and(few)
        })
    }

    /// Reads a chunk of files.
    fn parse_files(
        &self,
        files: &Files,
        mut read: Read<'_, Self>,
        clock: &StepClock,
        tick: &Tick<'_>,
    ) -> Result<Vec<PieceSpan>> {
        let mut spans = Vec::new();
        let mut decompressor = Decompressor::default();
        let chunk = self.leg.from.chunks + read.chunk;
        for rows in files.chunks.rows(|run| files.block(run), chunk) {
            let run = &files.runs[rows.block];
            let file = &files.files[run.file as usize];
            if run.bytes > self.grain.large_bytes as u64 {
                read.worker.enter();
            }
            let bytes =
                clock.time(Step::Read, || read_at(&file.file, run.start, run.bytes as usize))?;
            let mut at = 0;
            for number in run.first_block.. {
                if at == bytes.len() {
                    break;
                }
                let start = run.start + at as u64;
                let spot = (run.file as usize, start);
                let (head, stored) = block_at(&bytes[at..], &file.head_of)
                    .map_err(|error| fault(Asked::of(&self.leg), spot, Some(number), error))?;
                at += head.total_bytes() as usize;
                let piece = Piece {
                    file: run.file as usize,
                    number,
                    start,
                    head_of: &file.head_of,
                    rows: head.rows,
                    stored,
                    span: start..run.start + at as u64,
                };
                let span = self.parse_piece(&piece, &mut decompressor, &mut read, clock)?;
                tick(head.total_bytes(), span.rows)?;
                add_span(&mut spans, span);
            }
        }
        Ok(spans)
    }

    /// Reads a chunk of a stream.
    fn parse_stream(
        &self,
        chunk: &[StreamRows<StreamBlock>],
        mut read: Read<'_, Self>,
        clock: &StepClock,
        tick: &Tick<'_>,
    ) -> Result<Vec<PieceSpan>> {
        let mut spans = Vec::new();
        let mut decompressor = Decompressor::default();
        for StreamRows { block, span, .. } in chunk {
            let piece = Piece {
                file: block.file,
                number: block.number,
                start: block.start,
                head_of: &block.head_of,
                rows: block.rows,
                stored: &block.stored,
                span: span.clone(),
            };
            let span = self.parse_piece(&piece, &mut decompressor, &mut read, clock)?;
            // Progress counts stored bytes, not those of the stream.
            tick(0, span.rows)?;
            add_span(&mut spans, span);
        }
        Ok(spans)
    }

    /// Reads a block.
    fn parse_piece(
        &self,
        piece: &Piece<'_>,
        decompressor: &mut Decompressor,
        read: &mut Read<'_, Self>,
        clock: &StepClock,
    ) -> Result<PieceSpan> {
        let asked = Asked::of(&self.leg);
        let bytes_max = batch_bytes_max(asked);
        let HeadRead { fields, codec, .. } = piece.head_of;
        let columns = clock.time(Step::Read, || {
            let raw = decompressor.decompress(*codec, piece.stored, bytes_max)?;
            if raw.len() > self.grain.large_bytes {
                read.worker.enter();
            }
            read_rows(&fields.layout, &fields.is_read, (raw, piece.rows), bytes_max)
        });
        let mut columns = columns
            .map_err(|error| fault(asked, (piece.file, piece.start), Some(piece.number), error))?;
        let mut of_columns: Vec<Column<'_>> = Vec::with_capacity(fields.of_column.len());
        for (field, dictionary) in fields.of_column.iter().zip(&fields.dictionaries) {
            let column = match columns.get_mut(*field).and_then(Option::take) {
                Some(read) => (read.values, read.slice),
                // A field may be several columns.
                None => {
                    let same = fields.of_column.iter().position(|other| other == field);
                    let Some(same) = same.and_then(|same| of_columns.get(same)) else { continue };
                    (same.values.clone(), same.slice.clone())
                }
            };
            let (values, slice) = column;
            of_columns.push(Column { values, slice, dictionary: dictionary.clone() });
        }
        let rows = RowsRead {
            columns: of_columns,
            rows: piece.rows as usize,
            offset: piece.start,
            // Records are counted within the span.
            before: 0,
            bytes_max,
        };
        add_rows(read.parser, &rows, piece.file, piece.span.clone())
    }
}

/// The block at the start of some bytes: its head, and what is stored.
fn block_at<'b>(
    bytes: &'b [u8],
    head_of: &HeadRead,
) -> std::result::Result<(BlockHead, &'b [u8]), Fault> {
    let head = BlockHead::decode(bytes)?.ok_or_else(cut_off)?;
    let behind = usize::try_from(head.total_bytes()).ok().filter(|behind| *behind <= bytes.len());
    let behind = behind.ok_or_else(cut_off)?;
    let (stored, marker) = bytes[head.head_bytes..behind].split_at(head.bytes as usize);
    match marker == &head_of.marker[..MARKER_BYTES] {
        true => Ok((head, stored)),
        false => Err(wrong_marker()),
    }
}

impl Reading for AvroReading<'_> {
    type Worker = TypedWorker;
    type Parser = TypedParser;

    fn worker(&self) -> TypedWorker {
        TypedWorker::new(&self.gate)
    }

    fn end_task(&self, worker: &mut TypedWorker) {
        worker.leave();
    }

    fn plan(&self, first: usize) -> Result<PartitionPlan> {
        let Avro::Files(files) = self.source else {
            return Err(Error::Corrupt("a chunk of a stream that was planned without it".into()));
        };
        let rows = files.chunks.rows(|run| files.block(run), self.leg.from.chunks + first);
        let file = rows.first().map(|rows| files.runs[rows.block].file as usize);
        Ok(self.plan_of(file.map(|file| &*files.files[file].head_of.fields)))
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
            Avro::Files(files) => self.parse_files(files, read, clock, tick),
            Avro::Stream(..) => {
                let rows = self.taken.get(read.chunk)?;
                self.parse_stream(&rows, read, clock, tick)
            }
        }
    }

    fn take(&self, number: Number<'_>) -> Result<Turn> {
        let Avro::Stream(stream, _) = self.source else {
            return Ok(Turn::End(Arrival::default()));
        };
        let mut numbered = 0;
        let turn = stream.turn(|chunk| {
            let first = chunk.rows.first().map(|rows| Arc::clone(&rows.block.head_of.fields));
            numbered = number(&chunk.arrival, &mut || self.plan_of(first.as_deref()))?;
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
        if let Avro::Stream(stream, _) = self.source {
            stream.give_back(self.taken.split_off(from).map(Arc::unwrap_or_clone));
        }
    }

    fn ahead(&self) -> Option<&dyn WorkAhead> {
        match self.source {
            Avro::Files(_) => None,
            Avro::Stream(stream, _) => Some(&**stream),
        }
    }
}
