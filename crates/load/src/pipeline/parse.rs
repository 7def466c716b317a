//! Chunks to fragments, delivered in any order and told in that of the input.

use std::cell::Cell;
use std::sync::{Arc, atomic::Ordering};

use coload_source::{ColumnForm, ColumnPlan, LeftOut, RejectedRecord};
use coload_threads::{Step, lock, thread_cpu_ns};
use coload_transform::{Fragment, Placement, TemporaryDictionary};
use coload_types::{Error, Result};
use coload_wire::InputShare;

use super::{ParserOf, Pipeline, WorkerOf};
use crate::arrivals::{Arrivals, Counted, ParsedChunk, Verified};
use crate::format::{Format, Parser, PieceSpan, Read, Reading, Tick, Turn};
use crate::fragment_values::FragmentValues;
use crate::partition::{PartitionPlan, Waiting};
use crate::program::{Made, run_program};
use crate::target::{AheadColumn, FragmentRows, MadeRows, RowNumbers, TakesRows, add_left_out};
use crate::widen::{Way, unfit_column};
use crate::workers::Shared;

impl<'a, F: Format> Pipeline<'a, F> {
    /// Parses a chunk that was cut beforehand, or lets it go as text.
    pub(super) fn parse_chunk(&self, chunk: usize, worker: &mut WorkerOf<'a, F>) -> Result<()> {
        let plan = self.plan_cut(chunk)?;
        if self.leave_chunk(chunk, &plan, worker)? {
            return Ok(());
        }
        self.parse(chunk, None, &plan, worker)
    }

    /// Parses a chunk again, from where the one before it ended. It had quotes, or was no row, so that it does not go as
    /// text.
    pub(super) fn parse_again(&self, chunk: usize, worker: &mut WorkerOf<'a, F>) -> Result<()> {
        let start = self.workers.lock().tasks.end();
        let plan = self.plan_cut(chunk)?;
        self.parse(chunk, Some(start), &plan, worker)
    }

    /// The plan of the partition of a chunk that was cut beforehand.
    fn plan_cut(&self, chunk: usize) -> Result<Arc<PartitionPlan>> {
        let first = self.partitions.first_beside(chunk);
        self.plan(chunk, || self.reading.plan(first))
    }

    /// Parses the next chunk where they come one by one, or helps it to come.
    pub(super) fn take_chunk(&self, worker: &mut WorkerOf<'a, F>) -> Result<()> {
        let mut taken = None;
        let turn = self.clock.time(Step::Read, || {
            self.reading.take(&mut |arrival, make| {
                let number = self.workers.lock().tasks.schedule.number_chunk();
                lock(&self.books.account).start_chunk(arrival);
                let bytes = arrival.source_bytes.iter().map(|(_, bytes)| bytes).sum::<u64>();
                taken = Some((self.plan(number, make), bytes));
                Ok(number)
            })
        })?;
        match turn {
            Turn::Parse(chunk) => {
                let Some((plan, bytes)) = taken else { return Ok(()) };
                self.parse(chunk, None, &plan?, worker)?;
                self.books.progress.add(bytes, 0);
                Ok(())
            }
            Turn::Again => Ok(()),
            Turn::End(rest) => {
                self.books.progress.add(rest.source_bytes.iter().map(|(_, bytes)| bytes).sum(), 0);
                lock(&self.books.account).start_chunk(&rest);
                self.workers.lock().tasks.end_chunks();
                Ok(())
            }
        }
    }

    /// The plan of a chunk's partition; the first who asks makes it.
    fn plan(
        &self,
        chunk: usize,
        make: impl FnOnce() -> Result<PartitionPlan>,
    ) -> Result<Arc<PartitionPlan>> {
        let cell = Arc::clone(&self.workers.lock().tasks.arriving(chunk).plan);
        let started = thread_cpu_ns();
        let derived = |plan: PartitionPlan| match &self.table.deriver {
            Some(deriver) => plan.with_derived(deriver),
            None => plan,
        };
        let plan = cell.get_or_init(|| make().map(derived).map(Arc::new));
        self.clock.add(Step::Sort, thread_cpu_ns() - started);
        plan.clone()
    }

    /// Parses a chunk with a parser of its partition and delivers its fragment.
    fn parse(
        &self,
        chunk: usize,
        start: Option<u64>,
        plan: &Arc<PartitionPlan>,
        worker: &mut WorkerOf<'a, F>,
    ) -> Result<()> {
        let (number, parser, plain) = {
            let mut shared = self.workers.lock();
            let arriving = shared.tasks.arriving(chunk);
            let (number, parser) = arriving.take_parser();
            (number, parser, arriving.plain_columns.clone())
        };
        let mut parser = parser.unwrap_or_else(|| self.reading.parser(plan));
        for column in plain {
            parser.leave_codes(column);
        }
        let placements = self.target.sharing().map(|sharing| {
            let partition = self.partitions.of(chunk);
            sharing.place(partition, plan, &self.row_costs())
        });
        for (column, placement) in placements.iter().flat_map(|p| p.iter()).enumerate() {
            let Some(read) = plan.read_of(column) else { continue };
            let form = match placement {
                Placement::Client => ColumnForm::Planned,
                Placement::Server => ColumnForm::Plain,
            };
            parser.read_as(read, form);
        }
        let takes_rows = self.target.takes_rows();
        if takes_rows.is_some() {
            read_without_pages(&mut parser, plan);
        }
        let mut left_out = takes_rows.map_or_else(Vec::new, |takes| takes.left_out(chunk));
        if !left_out.is_empty() {
            parser.leave_out(left_out.clone());
        }
        let counted = [Cell::new(0), Cell::new(0)];
        let tick = |bytes: u64, rows: u64| {
            self.books.progress.add(bytes, rows);
            counted[0].set(counted[0].get() + bytes);
            counted[1].set(counted[1].get() + rows);
            self.go_on()
        };
        let mut read = |parser: &mut ParserOf<'a, F>, tick: &Tick<'_>| {
            self.reading.parse(Read { chunk, start, worker, parser }, &self.clock, tick)
        };
        let mut spans = read(&mut parser, &tick)?;
        // Rows are refused as they stand when all others that are none were left out.
        let mut refuses = takes_rows;
        let (fragment, kept) = loop {
            match self.make_rows(&mut parser, number, plan, &mut spans)? {
                Made::Rows(fragment, kept) => {
                    let Some(takes) = refuses.take() else { break (fragment, kept) };
                    let mut refused = refused_of(takes, (chunk, &fragment), &parser, plan)?;
                    if refused.is_empty() {
                        break (fragment, kept);
                    }
                    rows_before_filter(&mut refused, kept.as_deref());
                    add_left_out(&mut left_out, refused);
                }
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
        self.books.filtered.fetch_add(filtered, Ordering::Relaxed);
        self.books.progress.take_back(0, counted[1].get());
        self.books.progress.add(0, rows);
        let rejects = spans.iter().map(|span| span.rejects.len() as u64).sum();
        self.books.progress.rejects.fetch_add(rejects, Ordering::Relaxed);
        let counted = Counted { bytes: counted[0].get(), rows, rejects };
        self.reading.parsed(chunk);
        let placements = placements.as_deref();
        let (waiting, ahead) = self.clock.time(Step::Compress, || match takes_rows {
            None => self.divide(placements, plan, fragment),
            Some(takes) => {
                let numbers = RowNumbers { kept, left_out };
                rows_of(takes, (chunk, &fragment), &parser, plan)
                    .map(|rows| ahead_rows(FragmentRows { chunk, rows, numbers }))
            }
        })?;
        let unfit = self.way == Way::GoOn
            && spans.iter().flat_map(|span| &span.rejects).any(|record| self.is_unfit(record));
        let speculated = start.is_none() && self.reading.is_speculated(chunk);
        let parsed = ParsedChunk { spans, speculated, waiting, ahead, counted, unfit, text: None };
        self.deliver(chunk, number, parser, parsed)
    }

    /// The rows of the table of the chunk that was read, or those that must be left out.
    fn make_rows(
        &self,
        parser: &mut ParserOf<'a, F>,
        number: u32,
        plan: &PartitionPlan,
        spans: &mut [PieceSpan],
    ) -> Result<Made> {
        let read = parser.finish(number)?;
        let made = match &self.request.program {
            Some(program) => {
                let started = thread_cpu_ns();
                let made = run_program(&**program, read, parser, plan, spans);
                self.books.program_ns.fetch_add(thread_cpu_ns() - started, Ordering::Relaxed);
                made?
            }
            None => Made::Rows(read, None),
        };
        let Made::Rows(mut fragment, kept) = made else { return Ok(made) };
        if let Some(deriver) = &self.table.deriver {
            fragment = deriver.derive(fragment, spans);
        }
        let Some(checks) = &self.table.checks else { return Ok(Made::Rows(fragment, kept)) };
        let mut broken = checks.broken(
            &fragment,
            |column| dictionary(parser, plan, column),
            |column| plan.encoder(column).map(Arc::as_ref),
        )?;
        if broken.is_empty() {
            return Ok(Made::Rows(fragment, kept));
        }
        rows_before_filter(&mut broken, kept.as_deref());
        Ok(Made::Failed(broken))
    }

    /// Whether a record is no row because the type of a column is too narrow.
    fn is_unfit(&self, record: &RejectedRecord) -> bool {
        unfit_column(record, |column| self.request.inferred_type(column)).is_some()
    }

    fn deliver(
        &self,
        chunk: usize,
        number: u32,
        mut parser: ParserOf<'a, F>,
        parsed: ParsedChunk,
    ) -> Result<()> {
        let plain_now = parser.take_plain_now();
        let mut shared = self.workers.lock();
        let arriving = shared.tasks.arriving(chunk);
        arriving.plain_columns.extend(plain_now);
        arriving.return_parser(number, parser);
        let verified = shared.tasks.deliver(chunk, parsed);
        self.reading.verified(shared.tasks.schedule.frontier());
        self.account(&mut shared, verified);
        Ok(())
    }

    /// Accounts for what was verified.
    pub(super) fn account(
        &self,
        shared: &mut Shared<Arrivals<ParserOf<'a, F>>>,
        verified: Verified,
    ) {
        let Counted { bytes, rows, rejects } = verified.in_vain;
        self.books.progress.take_back(bytes, rows);
        self.books.progress.rejects.fetch_sub(rejects, Ordering::Relaxed);
        // The account follows the order of the input, so it is kept under the same lock.
        let mut account = lock(&self.books.account);
        account.add_chunks(&verified.chunk_rows);
        for (partition, span) in verified.spans {
            let mut part = InputShare {
                file: span.file as u32,
                rows: span.rows,
                rejects: 0,
                filtered: span.filtered,
                lines: span.lines,
                end: span.end,
            };
            let mut receipts = lock(&self.books.receipts);
            let receipt =
                self.target.wants_accounts().then(|| receipts.entry(partition).or_default());
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
                shared.error.get_or_insert(error);
                return;
            }
        }
        account.note_unfit(&verified.unfit);
    }
}

/// The dictionary of a column of the table.
fn dictionary<'p, P: Parser>(
    parser: &'p P,
    plan: &'p PartitionPlan,
    column: usize,
) -> Option<&'p TemporaryDictionary> {
    match plan.read_of(column) {
        Some(read) => parser.dictionary(read),
        None => plan.derived_dictionary(column),
    }
}

/// Has columns that get no codes read as plain values: no page of them is wanted.
fn read_without_pages<P: Parser>(parser: &mut P, plan: &PartitionPlan) {
    for (column, planned) in plan.read.iter().enumerate() {
        if matches!(planned, ColumnPlan::Text { .. } | ColumnPlan::Numbers { .. }) {
            parser.read_as(column, ColumnForm::Plain);
        }
    }
}

/// Counts rows of the table as those that were read, of which a filter kept some.
fn rows_before_filter(rows: &mut [LeftOut], kept: Option<&[u32]>) {
    if let Some(kept) = kept {
        rows.iter_mut().for_each(|row| row.row = u64::from(kept[row.row as usize]));
    }
}

/// The rows of a fragment that a target refuses, which takes rows.
fn refused_of<P: Parser>(
    takes: &dyn TakesRows,
    (chunk, fragment): (usize, &Fragment),
    parser: &P,
    plan: &PartitionPlan,
) -> Result<Vec<LeftOut>> {
    let Some(used) = takes.refuses_by(chunk) else { return Ok(Vec::new()) };
    let encoder = |column| plan.encoder(column).map(Arc::as_ref);
    let values =
        FragmentValues::new(fragment, used, |column| dictionary(parser, plan, column), encoder)?;
    takes.refuse(chunk, fragment.rows, &values.views())
}

/// The rows of a fragment, as a target has them that takes rows.
fn rows_of<P: Parser>(
    takes: &dyn TakesRows,
    (chunk, fragment): (usize, &Fragment),
    parser: &P,
    plan: &PartitionPlan,
) -> Result<Box<dyn MadeRows>> {
    let all: Vec<usize> = (0..fragment.columns.len()).collect();
    let encoder = |column| plan.encoder(column).map(Arc::as_ref);
    let values =
        FragmentValues::new(fragment, &all, |column| dictionary(parser, plan, column), encoder)?;
    let columns: Vec<_> = values.views().into_iter().flatten().collect();
    let rows = fragment.rows as usize;
    if columns.len() != all.len() {
        return Err(Error::Corrupt("codes of a column without dictionary".into()));
    }
    let made = takes.make_rows_of(chunk, &columns, rows)?;
    match made.count() == rows {
        true => Ok(made),
        false => Err(Error::Corrupt(format!("{} rows were made of {rows}", made.count()))),
    }
}

/// Rows that go ahead: nothing of them waits for the partition.
fn ahead_rows(rows: FragmentRows) -> (Waiting, Vec<AheadColumn>) {
    let waiting = Waiting { rows: rows.rows.count() as u32, columns: Vec::new() };
    (waiting, vec![AheadColumn::Rows(rows)])
}
