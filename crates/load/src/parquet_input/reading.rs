//! Reads the chunks of Parquet with the types of a leg.

use std::ops::Range;
use std::slice;
use std::sync::Arc;

use coload_arrow::Fault;
use coload_parquet::{ColumnAt, ColumnMap, LeafRead, Stored, read_lists, read_page, read_rows};
use coload_threads::{Step, StepClock};
use coload_types::{DataType, Physical, Result};

use super::Parquet;
use super::cache::{Cache, ColumnRead};
use super::files::GroupAt;
use super::input::{FieldRead, FieldsRead, NestedRead, Spot, fault};
use super::prune::intersection;
use crate::format::{Leg, PieceSpan, Read, Reading, Tick};
use crate::grain::Grain;
use crate::partition::{KnownSymbols, PartitionPlan};
use crate::typed::{
    Asked, Column, FileBody, Gate, Rows, RowsRead, TypedParser, TypedPlans, TypedWorker, add_rows,
    add_span, batch_bytes_max, first_rows, lacking_rows, parser_of, plan_of,
};

/// Share of the memory that dictionaries may take which are kept.
const DICTIONARIES_SHARE: usize = 24;
/// Share of the memory that pages may take which are kept: one of each column, or each chunk decompresses them anew.
const PAGES_SHARE: usize = 8;
/// Most distinct numbers that are worth codes.
const NUMBERS_MAX: usize = 8192;
/// Least rows that each value of a dictionary stands for which is worth codes: writers begin with dictionaries whatever
/// they are worth, and to look up a long text costs more than to copy it.
const ROWS_PER_VALUE_MIN: u64 = 2;
/// Bytes of the heads of the first pages of a column chunk.
const HEADS_BYTES: u64 = 4096;

/// Reads the chunks of a leg.
pub struct ParquetReading<'a> {
    source: &'a Parquet,
    leg: Leg<'a>,
    grain: Grain,
    cache: Cache,
    gate: Arc<Gate>,
    plans: TypedPlans,
}

/// A row group that is being read.
#[derive(Clone, Copy)]
struct Group<'a> {
    index: usize,
    at: &'a GroupAt,
    body: &'a FileBody<'a>,
    /// Whether its rows are read to plan a partition: a chunk has them, too.
    to_plan: bool,
}

impl Group<'_> {
    /// Rows of a page that are used up when `rows` were read, and those that it has.
    fn rows_used(&self, page: &Range<u64>, rows: &Range<u64>) -> (u64, u64) {
        let here = rows.end.min(page.end).saturating_sub(rows.start.max(page.start));
        (if self.to_plan { 0 } else { here }, page.end - page.start)
    }
}

impl<'a> ParquetReading<'a> {
    /// Nothing is read yet.
    pub fn new(source: &'a Parquet, leg: Leg<'a>) -> Self {
        let memory = leg.resources.memory;
        ParquetReading {
            source,
            grain: Grain::of(leg.request, leg.resources),
            leg,
            cache: Cache::new(memory / DICTIONARIES_SHARE, memory / PAGES_SHARE),
            gate: Arc::default(),
            plans: TypedPlans::default(),
        }
    }

    /// What is told of a column of a row group.
    fn fault(&self, group: &GroupAt, column: usize, error: Fault) -> coload_types::Error {
        let spot = Spot {
            file: group.file as usize,
            byte: group.start,
            group: Some(group.number),
            column: Some(&self.leg.request.read_schema().columns()[column].name),
        };
        fault(Asked::of(&self.leg), spot, error)
    }

    /// The fields of the file of a row group.
    fn fields_of(&self, group: &GroupAt) -> &'a FieldsRead {
        &self.source.files[group.file as usize].fields
    }

    /// The column chunk of a column.
    fn column_of(
        &self,
        group: Group<'_>,
        (column, field): (usize, &FieldRead),
    ) -> std::result::Result<Arc<ColumnRead>, Fault> {
        let at = (&group.at.columns[field.chunk], group.at.rows);
        let bytes_max = batch_bytes_max(Asked::of(&self.leg));
        self.cache.column((group.index, column), at, &field.stored, group.body, bytes_max)
    }

    /// Whether the values of a column's dictionary are few enough for codes; it stands for so many rows.
    fn has_few_values(&self, read: &ColumnRead, rows: u64, data_type: DataType) -> bool {
        let Some(dictionary) = &read.dictionary else { return false };
        let limit = self.grain.dictionary_limit();
        let few = match data_type.physical() {
            Physical::Bytes => limit.holds(dictionary.len(), dictionary.bytes()),
            Physical::Int | Physical::Wide => {
                dictionary.len() <= NUMBERS_MAX && limit.holds(dictionary.len(), 0)
            }
        };
        let repeats = dictionary.len() as u64 * ROWS_PER_VALUE_MIN <= rows;
        few && repeats
    }

    /// Reads rows of a list or a map of a row group.
    fn read_nested(
        &self,
        group: Group<'_>,
        (stored_as, nested): (&Stored, &NestedRead),
        rows: &Range<u64>,
        worker: &mut TypedWorker,
        bytes_max: u64,
    ) -> std::result::Result<Column<'static>, Fault> {
        // Leaves have numbers of their own behind those of columns.
        let number_of = |chunk: usize| self.leg.request.read_schema().len() + chunk;
        let pages_max = batch_bytes_max(Asked::of(&self.leg));
        let mut found = Vec::with_capacity(nested.chunks.len());
        for (stored, chunk) in nested.nested.leaves.iter().zip(&nested.chunks) {
            let key = (group.index, number_of(*chunk));
            let at = (&group.at.columns[*chunk], group.at.rows);
            found.push((key, *chunk, self.cache.column(key, at, stored, group.body, pages_max)?));
        }
        let all_rows = 0..group.at.rows;
        let mut maps = Vec::with_capacity(found.len());
        for (key, _, read) in &found {
            maps.push(self.cache.pages_of(key, read, &all_rows, (group.body, pages_max))?);
        }
        if maps.iter().any(|map| map.bytes_of_largest() > self.grain.large_bytes) {
            worker.enter();
        }
        let page = |(key, chunk, _): &(_, usize, Arc<ColumnRead>), map: &ColumnMap, number| {
            let page = map.page(number);
            self.cache.page(*key, number, group.rows_used(&page.row_range(), rows), || {
                read_page(&group.at.columns[*chunk], page, group.body, bytes_max)
            })
        };
        let of_leaf = |(leaf, map)| move |number: usize| page(leaf, map, number);
        let mut pages: Vec<_> =
            found.iter().zip(maps.iter().map(|map| &**map)).map(of_leaf).collect();
        let mut leaves: Vec<LeafRead<'_>> = found
            .iter()
            .zip(&maps)
            .zip(&mut pages)
            .map(|(((.., read), map), page)| LeafRead {
                map,
                dictionary: read.dictionary.as_ref(),
                page,
            })
            .collect();
        let slice = read_lists(&nested.nested, &mut leaves, rows.clone(), bytes_max)?;
        Ok(Column { values: stored_as.values.clone(), slice, dictionary: None })
    }

    /// Plans the partition that starts with a chunk of the leg.
    fn plan_from(&self, first: usize, known: &KnownSymbols) -> Result<PartitionPlan> {
        let chunk = self.leg.from.chunks + first;
        let rows = self.source.rows_of(chunk);
        let has_rows = |rows: &&Rows| !rows.rows.is_empty();
        let Some(rows) = rows.iter().find(has_rows) else {
            return plan_of(&self.leg, &self.grain, known, |_| false, |_| Ok(()));
        };
        let at = &self.source.groups[rows.block];
        let body = FileBody { file: &self.source.files[at.file as usize].file, start: 0 };
        let group = Group { index: rows.block, at, body: &body, to_plan: true };
        let columns = self.leg.request.read_schema().columns();
        let mut coded = Vec::with_capacity(columns.len());
        let fields = columns.iter().zip(&self.fields_of(at).of_column).enumerate();
        for (number, (column, field)) in fields {
            coded.push(match field {
                // One value in each row, or none.
                None => true,
                Some(FieldRead { nested: Some(_), .. }) => false,
                Some(field) => {
                    let read = self.column_of(group, (number, field));
                    let read = read.map_err(|error| self.fault(at, number, error))?;
                    column.data_type == DataType::Boolean
                        || self.has_few_values(&read, at.rows, column.data_type)
                            && seems_coded(&at.columns[field.chunk], &read, at.rows)
                }
            });
        }
        let read_first = |parser: &mut TypedParser| {
            let rows_read = (first_rows(&rows.rows, &rows.span), rows.span.clone());
            let tools = (&mut TypedWorker::new(&self.gate), parser);
            self.parse_rows((group, chunk), rows_read, tools, &StepClock::default())?;
            Ok(())
        };
        plan_of(&self.leg, &self.grain, known, |column| coded[column], read_first)
    }

    /// Reads rows of a column of a row group.
    fn read_column(
        &self,
        group: Group<'_>,
        column: usize,
        rows: &Range<u64>,
        (worker, parser): (&mut TypedWorker, &TypedParser),
        bytes_max: u64,
    ) -> std::result::Result<Column<'static>, Fault> {
        let of_table = &self.leg.request.read_schema().columns()[column];
        let Some(field) = &self.fields_of(group.at).of_column[column] else {
            return Ok(lacking_rows(of_table, (rows.end - rows.start) as usize));
        };
        let stored = &field.stored;
        if let Some(nested) = &field.nested {
            return self.read_nested(group, (stored, nested), rows, worker, bytes_max);
        }
        let read = self.column_of(group, (column, field))?;
        let data_type = of_table.data_type;
        let at = &group.at.columns[field.chunk];
        let body = (group.body, batch_bytes_max(Asked::of(&self.leg)));
        let map = self.cache.pages_of(&(group.index, column), &read, rows, body)?;
        let keyed = parser.makes_codes(column)
            && self.has_few_values(&read, group.at.rows, data_type)
            && map.is_coded();
        let large = self.grain.large_bytes;
        let mut page = |number: usize| {
            let page = map.page(number);
            if page.bytes() > large {
                worker.enter();
            }
            let used = group.rows_used(&page.row_range(), rows);
            self.cache.page((group.index, column), number, used, || {
                read_page(at, page, group.body, bytes_max)
            })
        };
        let dictionary = (read.dictionary.as_ref(), keyed);
        let slice = read_rows(stored, &map, rows.clone(), dictionary, &mut page, bytes_max)?;
        let dictionary = if keyed { read.typed(stored)? } else { None };
        Ok(Column { values: stored.values.clone(), slice, dictionary })
    }

    /// Reads rows of a row group.
    fn parse_rows(
        &self,
        (group, chunk): (Group<'_>, usize),
        (rows, span): (Range<u64>, Range<u64>),
        (worker, parser): (&mut TypedWorker, &mut TypedParser),
        clock: &StepClock,
    ) -> Result<PieceSpan> {
        let bytes_max = batch_bytes_max(Asked::of(&self.leg));
        let mut left = bytes_max;
        let columns = clock.time(Step::Read, || {
            let count = self.leg.request.read_schema().len();
            // Chunks of one row group are read at once and share its pages: each worker begins with other columns, so that a page
            // which one decompresses is mostly there when another wants it.
            let step = (count / self.leg.resources.threads.max(1)).max(1);
            let first = chunk * step % count.max(1);
            let mut column = |column: usize| {
                let tools = (&mut *worker, &*parser);
                let read = self.read_column(group, column, &rows, tools, left);
                let read = read.map_err(|error| {
                    let error = match error {
                        // What the columns before have is needed, too.
                        Fault::TooLarge(bytes) => Fault::TooLarge(bytes + (bytes_max - left)),
                        other => other,
                    };
                    self.fault(group.at, column, error)
                })?;
                left = left.saturating_sub(read.slice.bytes() as u64);
                Ok(read)
            };
            let ahead = (first..count).map(&mut column).collect::<Result<Vec<_>>>()?;
            let mut columns = (0..first).map(&mut column).collect::<Result<Vec<_>>>()?;
            columns.extend(ahead);
            Ok(columns)
        })?;
        let read = RowsRead {
            columns,
            rows: (rows.end - rows.start) as usize,
            offset: group.at.start,
            // Records are counted within the span.
            before: 0,
            bytes_max,
        };
        add_rows(parser, &read, group.at.file as usize, span)
    }
}

/// Whether a column chunk seems to have nothing but places in its dictionary, which stands for so many rows: writers go over to
/// values where a dictionary becomes large, and to find all pages takes all bytes.
fn seems_coded(at: &ColumnAt, read: &ColumnRead, rows: u64) -> bool {
    let Some((bytes, values)) = read.dictionary_bytes else { return false };
    let bits = u64::from(u32::BITS - values.saturating_sub(1).leading_zeros());
    // Places, whether there is one, and heads of pages.
    let places = rows * bits / 8 + rows / 8;
    at.raw_bytes <= bytes + places + places / 16 + rows / 64 + HEADS_BYTES
}

/// Rows of a row group that are not read, as no filter keeps them: the account has them, and places of those that come next are right.
fn not_read(at: &GroupAt, rows: u64, span: Range<u64>) -> PieceSpan {
    PieceSpan { lines: rows, filtered: rows, ..PieceSpan::empty(at.file as usize, span) }
}

/// Rows of a row group in pieces that are read or left out, with their shares of its bytes.
fn pieces_of(at: &GroupAt, all: &Rows) -> Vec<(Range<u64>, Range<u64>, bool)> {
    let Some(wanted) = &at.wanted else {
        return vec![(all.rows.clone(), all.span.clone(), true)];
    };
    let count = all.rows.end - all.rows.start;
    let place = |row: u64| {
        let bytes = u128::from(all.span.end - all.span.start);
        let share = bytes * u128::from(row - all.rows.start) / u128::from(count.max(1));
        all.span.start + share as u64
    };
    let mut pieces = Vec::new();
    let mut next = all.rows.start;
    let end = all.rows.end..all.rows.end;
    for rows in intersection(wanted, slice::from_ref(&all.rows)).into_iter().chain([end]) {
        for (piece, is_wanted) in [(next..rows.start, false), (rows.clone(), true)] {
            if !piece.is_empty() {
                pieces.push((piece.clone(), place(piece.start)..place(piece.end), is_wanted));
            }
        }
        next = rows.end;
    }
    pieces
}

impl Reading for ParquetReading<'_> {
    type Worker = TypedWorker;
    type Parser = TypedParser;

    fn worker(&self) -> TypedWorker {
        TypedWorker::new(&self.gate)
    }

    fn end_task(&self, worker: &mut TypedWorker) {
        worker.leave();
    }

    fn plan(&self, first: usize) -> Result<PartitionPlan> {
        self.plans.plan(first, |first, known| self.plan_from(first, known))
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
        let mut spans = Vec::new();
        let chunk = self.leg.from.chunks + read.chunk;
        for rows in self.source.rows_of(chunk) {
            let at = &self.source.groups[rows.block];
            let body = FileBody { file: &self.source.files[at.file as usize].file, start: 0 };
            let group = Group { index: rows.block, at, body: &body, to_plan: false };
            let bytes = rows.span.end - rows.span.start;
            if !at.is_read() {
                tick(bytes, 0)?;
                add_span(&mut spans, not_read(at, at.rows, rows.span));
                continue;
            }
            let mut read_rows = 0;
            for (piece, span, is_wanted) in pieces_of(at, &rows) {
                let span = match is_wanted {
                    true => {
                        let tools = (&mut *read.worker, &mut *read.parser);
                        self.parse_rows((group, chunk), (piece, span), tools, clock)?
                    }
                    false => not_read(at, piece.end - piece.start, span),
                };
                read_rows += span.rows;
                add_span(&mut spans, span);
            }
            tick(bytes, read_rows)?;
        }
        Ok(spans)
    }
}
