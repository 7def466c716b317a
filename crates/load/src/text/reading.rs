//! Reads the chunks of text with the types of a leg.

use std::borrow::Cow;
use std::collections::VecDeque;
use std::sync::{Arc, Mutex, atomic::AtomicBool};

use coload_source::{
    ChunkParser, ColumnForm, ColumnParser, ColumnPlan, ColumnRules, InputFields, JsonForm, LeftOut,
    Lexicon, ParseTime, RecordRules,
};
use coload_threads::{StepClock, lock, thread_cpu_ns};
use coload_transform::{Fragment, TemporaryDictionary};
use coload_types::{Error, Result};
use coload_wire::FieldsByInput;

use super::chunks::{Piece, Start};
use super::columns::column_rules;
use super::cut::cut_chunk;
use super::measure::Measured;
use super::reader::{Gate, WindowReader};
use super::sample::{Measure, sample_bytes, sample_partition};
use super::stream::{StreamChunk, StreamPiece, StreamSource, StreamTurn};
use super::{Text, pieces_of};
use crate::format::{
    Arrival, Costs, Cut, Leg, Number, Parser, PieceSpan, Read, Reading, Taken, Tick, Turn,
    WorkAhead,
};
use crate::grain::Grain;
use crate::partition::{KnownSymbols, PartitionPlan};

/// Text that is planned at once, if partitions are smaller.
const PLANNED_BYTES: usize = 64 << 20;

/// Plans that other partitions have, too.
#[derive(Debug, Default)]
struct Plans {
    /// The symbols of the first partition, which others have where they suit them.
    symbols: Option<Arc<KnownSymbols>>,
    /// The plan of a partition that is the first of some, by its number and the way in which its input has the fields: that of the
    /// last, and of those whose partitions may still be read.
    kept: VecDeque<(usize, usize, Vec<ColumnPlan>)>,
    /// Partitions of a stream so far.
    streamed: usize,
}

/// Plans that are kept; partitions are read nearly in their order, and a plan that went is made anew.
const KEPT_MAX: usize = 4;

impl Plans {
    fn of(&self, start: usize, way: usize) -> Option<PartitionPlan> {
        let kept = self.kept.iter().find(|kept| (kept.0, kept.1) == (start, way))?;
        Some(PartitionPlan::new(kept.2.clone(), Vec::new()))
    }

    fn keep(&mut self, start: usize, way: usize, plan: &PartitionPlan) {
        self.symbols.get_or_insert_with(|| plan.symbols());
        self.kept.push_back((start, way, plan.read.clone()));
        if self.kept.len() > KEPT_MAX {
            self.kept.pop_front();
        }
    }
}

/// Reads the chunks of a leg.
pub struct TextReading<'a> {
    source: &'a Text,
    leg: Leg<'a>,
    rules: RecordRules,
    /// Of the columns that are read, as the first inputs have them.
    columns: Vec<ColumnRules>,
    /// Which fields the columns are.
    fields: FieldsByInput,
    grain: Grain,
    gate: Arc<Gate>,
    measured: Measured,
    plans: Mutex<Plans>,
    /// Chunks of a stream that may have to be read, or read again.
    taken: Taken<StreamChunk>,
}

impl<'a> TextReading<'a> {
    /// Nothing is read yet.
    pub fn new(source: &'a Text, leg: Leg<'a>) -> Self {
        let Leg { request, resources, way, .. } = leg;
        TextReading {
            source,
            leg,
            rules: request.dialect.record_rules(request.field_count()),
            columns: column_rules(request),
            fields: request.fields_of_inputs(),
            grain: Grain::of(request, resources),
            gate: Arc::default(),
            measured: Measured::default(),
            plans: Mutex::default(),
            taken: Taken::new(way),
        }
    }

    fn pieces(&self, chunk: usize) -> Vec<Piece> {
        match self.source {
            Text::Files { inputs, chunks } => pieces_of(inputs, chunks, self.leg.from, chunk),
            Text::Stream(_) => Vec::new(),
        }
    }

    /// How the records of an input are read.
    fn rules_of(&self, file: usize) -> (RecordRules, Cow<'_, [ColumnRules]>) {
        let InputFields { count, of_column } = self.fields.of(file);
        let rules = RecordRules { fields: *count, ..self.rules.clone() };
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

    /// Whether records are those of documents of JSON.
    fn has_documents(&self) -> bool {
        self.rules.json.as_ref().is_some_and(|json| json.form == JsonForm::Documents)
    }

    fn measure(&self) -> Measure<'_> {
        if self.leg.costs == Costs::Unknown {
            return Measure::No;
        }
        let Grain { fragments_per_partition, chunk_bytes, .. } = self.grain;
        let bytes = (fragments_per_partition * chunk_bytes) as f64;
        Measure::Partition { bytes, measured: &self.measured }
    }

    /// The plan of a partition whose first chunk is of a stream.
    fn plan_of(&self, chunk: &StreamChunk) -> PartitionPlan {
        let first = chunk.pieces.first();
        let (rules, columns) = self.rules_of(first.map_or(0, |piece| piece.file));
        let text = first.map_or(&[][..], |piece| piece.text.as_slice());
        let way = self.fields.way(first.map_or(0, |piece| piece.file));
        // Partitions of a stream are planned one after the other.
        let mut plans = lock(&self.plans);
        let number = plans.streamed;
        plans.streamed += 1;
        let start = number - number % self.partitions_of_plan();
        if let Some(plan) = plans.of(start, way).filter(|_| start != number) {
            return plan;
        }
        let symbols = plans.symbols.clone().unwrap_or_default();
        let of = (self.grain.column_room(), &*symbols);
        let plan = sample_bytes(text, rules, &columns, of, self.measure());
        plans.keep(start, way, &plan);
        plan
    }

    /// Partitions that have the plan of the first of them: small ones would be planned for longer than they are read.
    fn partitions_of_plan(&self) -> usize {
        let Grain { fragments_per_partition, chunk_bytes, .. } = self.grain;
        match self.leg.costs {
            Costs::Unknown => (PLANNED_BYTES / (fragments_per_partition * chunk_bytes)).max(1),
            Costs::Measured => 1,
        }
    }

    /// The plan of a partition whose first chunk was cut beforehand.
    fn plan_cut(&self, first: usize, known: &KnownSymbols) -> Result<PartitionPlan> {
        let Text::Files { inputs, .. } = self.source else {
            return Err(Error::Corrupt("a chunk of a stream that was planned without it".into()));
        };
        let mut pieces = self.pieces(first);
        let file = pieces.first().map_or(0, |piece| piece.file);
        pieces.retain(|piece| self.fields.way(piece.file) == self.fields.way(file));
        let (rules, columns) = self.rules_of(file);
        let of = (self.grain.column_room(), known);
        sample_partition(inputs, &pieces, rules, &columns, of, self.measure())
    }
}

impl Reading for TextReading<'_> {
    type Worker = WindowReader;
    type Parser = ChunkParser;

    fn worker(&self) -> WindowReader {
        WindowReader::new(&self.gate, &self.grain)
    }

    fn end_task(&self, worker: &mut WindowReader) {
        worker.end_task();
    }

    fn plan(&self, first: usize) -> Result<PartitionPlan> {
        let way = |first: usize| self.fields.way(self.pieces(first).first().map_or(0, |p| p.file));
        let partition = first / self.grain.fragments_per_partition;
        let start = partition - partition % self.partitions_of_plan();
        let start_chunk = start * self.grain.fragments_per_partition;
        let mut plans = lock(&self.plans);
        // Whoever comes first plans the first partition, so that it does not depend on the threads which symbols are known.
        if plans.symbols.is_none() {
            let plan = self.plan_cut(0, &[])?;
            plans.keep(0, way(0), &plan);
        }
        let symbols = plans.symbols.clone().unwrap_or_default();
        if way(start_chunk) != way(first) {
            drop(plans);
            return self.plan_cut(first, &symbols);
        }
        if let Some(plan) = plans.of(start, way(first)) {
            return Ok(plan);
        }
        if self.partitions_of_plan() == 1 {
            drop(plans);
            return self.plan_cut(first, &symbols);
        }
        let plan = self.plan_cut(start_chunk, &symbols)?;
        plans.keep(start, way(first), &plan);
        Ok(plan)
    }

    fn parser(&self, plan: &PartitionPlan) -> ChunkParser {
        let column = |(column, (rules, plan)): (usize, (&ColumnRules, &_))| {
            let limit = self.grain.dictionary_limit();
            let lexicon = Lexicon::new(rules.data_type.physical()).with_limit(limit);
            let distinct = self.leg.distinct.get(column).cloned();
            ColumnParser::new(rules.clone(), Clone::clone(plan), lexicon).counting(distinct)
        };
        let columns = self.columns.iter().zip(&plan.read).enumerate().map(column).collect();
        ChunkParser::new(self.rules.clone(), columns, thread_cpu_ns)
    }

    fn is_speculated(&self, chunk: usize) -> bool {
        self.pieces(chunk).iter().any(|piece| piece.start_is == Start::Speculated)
    }

    fn parse(
        &self,
        read: Read<'_, Self>,
        clock: &StepClock,
        tick: &Tick<'_>,
    ) -> Result<Vec<PieceSpan>> {
        let Read { chunk, start, worker, parser } = read;
        match self.source {
            Text::Files { inputs, .. } => {
                let mut pieces = self.pieces(chunk);
                // Only the first of a chunk was speculated on.
                if let (Some(start), Some(first)) = (start, pieces.first_mut()) {
                    *first = Piece { start, start_is: Start::Record, ..*first };
                }
                let parse = |piece: &Piece| {
                    self.choose_fields(parser, piece.file);
                    worker.parse_piece(&inputs.at(piece.file), piece, parser, clock, tick)
                };
                pieces.iter().map(parse).collect()
            }
            Text::Stream(_) => {
                let chunk = self.taken.get(chunk)?;
                // Progress counts stored bytes, not those of the text.
                let rows = |_, rows| tick(0, rows);
                let parse = |piece: &StreamPiece| {
                    self.choose_fields(parser, piece.file);
                    worker.parse_bytes(piece, parser, &rows)
                };
                chunk.pieces.iter().map(parse).collect()
            }
        }
    }

    fn take(&self, number: Number<'_>) -> Result<Turn> {
        let Text::Stream(stream) = self.source else { return Ok(Turn::End(Arrival::default())) };
        let mut numbered = 0;
        let turn = stream.turn(|chunk| {
            // Under the lock of the stream, so that the first chunk of a partition plans it.
            numbered = number(&chunk.arrival(), &mut || Ok(self.plan_of(chunk)))?;
            self.taken.keep(numbered, Arc::clone(chunk));
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
        if let Text::Stream(stream) = self.source {
            stream.give_back(self.taken.split_off(from));
        }
    }

    fn can_cut(&self) -> bool {
        // Documents of JSON are no lines.
        matches!(self.source, Text::Files { .. }) && !self.has_documents()
    }

    fn cut(&self, chunk: usize, worker: &mut WindowReader) -> Result<Option<Cut>> {
        let Text::Files { inputs, .. } = self.source else { return Ok(None) };
        cut_chunk(inputs, &self.pieces(chunk), &self.rules, worker)
    }

    fn ahead(&self) -> Option<&dyn WorkAhead> {
        match self.source {
            Text::Files { .. } => None,
            Text::Stream(stream) => Some(&**stream),
        }
    }
}

impl WorkAhead for StreamSource {
    fn run(&self, ended: &AtomicBool) {
        self.queue().run_ahead(ended);
    }

    fn wake(&self) {
        self.queue().wake();
    }
}

impl Parser for ChunkParser {
    fn read_as(&mut self, column: usize, form: ColumnForm) {
        self.columns_mut()[column].read_as(form);
    }

    fn leave_codes(&mut self, column: usize) {
        self.columns_mut()[column].leave_codes();
    }

    fn take_plain_now(&mut self) -> Vec<usize> {
        ChunkParser::take_plain_now(self)
    }

    fn leave_out(&mut self, rows: Vec<LeftOut>) {
        ChunkParser::leave_out(self, rows);
    }

    fn finish(&mut self, number: u32) -> Result<Fragment> {
        ChunkParser::finish(self, number)
    }

    fn take_time(&mut self) -> ParseTime {
        ChunkParser::take_time(self)
    }

    fn dictionary(&self, column: usize) -> Option<&TemporaryDictionary> {
        Some(ChunkParser::dictionary(self, column))
    }

    fn mark_stale(&mut self) {
        self.columns_mut().iter_mut().for_each(ColumnParser::mark_stale);
    }

    fn into_dictionaries(mut self) -> Vec<TemporaryDictionary> {
        let columns = self.columns_mut().drain(..);
        columns.map(|column| Lexicon::into_dictionary(column.into_lexicon())).collect()
    }
}
