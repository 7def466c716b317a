//! Chunks to fragments, delivered in any order and told in that of the input.

use std::cell::Cell;
use std::sync::{Arc, atomic::Ordering};

use coload_source::{ColumnForm, LeftOut, RejectedRecord};
use coload_threads::{Step, lock, thread_cpu_ns};
use coload_transform::Placement;
use coload_types::Result;
use coload_wire::FilePart;

use super::{ParserOf, Pipeline, WorkerOf};
use crate::format::{Format, Parser, PieceSpan, Read, Reading, Tick, Turn};
use crate::partition::PartitionPlan;
use crate::program::{Made, run_program};
use crate::schedule::{Counted, ParsedChunk, State, Verified};
use crate::widen::{Way, unfit_column};

impl<'a, F: Format> Pipeline<'a, F> {
    /// Parses a chunk that was cut beforehand; with a start when it is parsed again.
    pub(super) fn parse_chunk(
        &self,
        chunk: usize,
        start: Option<u64>,
        worker: &mut WorkerOf<'a, F>,
    ) -> Result<()> {
        let first = chunk - chunk % lock(&self.state).fragments_per_partition();
        let plan = self.plan(chunk, || self.reading.plan(first))?;
        // A chunk that is parsed again had quotes, or was no row.
        if start.is_none() && self.leave_chunk(chunk, &plan, worker)? {
            return Ok(());
        }
        self.parse(chunk, start, &plan, worker)
    }

    /// Parses the next chunk where they come one by one, or helps it to come.
    pub(super) fn take_chunk(&self, worker: &mut WorkerOf<'a, F>) -> Result<()> {
        let mut taken = None;
        let turn = self.clock.time(Step::Read, || {
            self.reading.take(&mut |arrival, make| {
                let number = lock(&self.state).number_taken_chunk();
                lock(&self.account).start_chunk(arrival);
                let bytes = arrival.source_bytes.iter().map(|(_, bytes)| bytes).sum::<u64>();
                taken = Some((self.plan(number, || Ok(make())), bytes));
                Ok(number)
            })
        })?;
        match turn {
            Turn::Parse(chunk) => {
                let Some((plan, bytes)) = taken else { return Ok(()) };
                self.parse(chunk, None, &plan?, worker)?;
                self.progress.add(bytes, 0);
                Ok(())
            }
            Turn::Again => Ok(()),
            Turn::End(rest) => {
                self.progress.add(rest.source_bytes.iter().map(|(_, bytes)| bytes).sum(), 0);
                lock(&self.account).start_chunk(&rest);
                let mut state = lock(&self.state);
                state.end_chunks();
                state.seal_partitions();
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

    /// Parses a chunk with a parser of its partition and delivers its fragment.
    fn parse(
        &self,
        chunk: usize,
        start: Option<u64>,
        plan: &Arc<PartitionPlan>,
        worker: &mut WorkerOf<'a, F>,
    ) -> Result<()> {
        let (number, parser, plain) = {
            let mut state = lock(&self.state);
            let arriving = state.arriving(chunk);
            let (number, parser) = arriving.take_parser();
            (number, parser, arriving.plain_columns.clone())
        };
        let mut parser = parser.unwrap_or_else(|| self.reading.parser(plan));
        for column in plain {
            parser.leave_codes(column);
        }
        let placements = self.target.sharing().map(|sharing| {
            let partition = chunk / lock(&self.state).fragments_per_partition();
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
        let counted = [Cell::new(0), Cell::new(0)];
        let tick = |bytes: u64, rows: u64| {
            self.progress.add(bytes, rows);
            counted[0].set(counted[0].get() + bytes);
            counted[1].set(counted[1].get() + rows);
            self.go_on()
        };
        let mut read = |parser: &mut ParserOf<'a, F>, tick: &Tick<'_>| {
            self.reading.parse(Read { chunk, start, worker, parser }, &self.clock, tick)
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
        self.reading.parsed(chunk);
        let placements = placements.as_deref();
        let (waiting, ahead) =
            self.clock.time(Step::Compress, || self.divide(placements, plan, fragment))?;
        let unfit = self.way == Way::GoOn
            && spans.iter().flat_map(|span| &span.rejects).any(|record| self.is_unfit(record));
        let speculated = start.is_none() && self.reading.is_speculated(chunk);
        let parsed = ParsedChunk { spans, speculated, waiting, ahead, counted, unfit, raw: None };
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
            Some(read) => parser.dictionary(read),
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
        let mut state = lock(&self.state);
        let arriving = state.arriving(chunk);
        arriving.plain_columns.extend(plain_now);
        arriving.return_parser(number, parser);
        let verified = state.deliver(chunk, parsed);
        self.reading.verified(state.frontier());
        self.account(&mut state, verified)
    }

    /// Accounts for what was verified.
    ///
    /// # Errors
    /// `Unavailable` when a segment cannot be made.
    pub(super) fn account(
        &self,
        state: &mut State<ParserOf<'a, F>>,
        verified: Verified,
    ) -> Result<()> {
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
