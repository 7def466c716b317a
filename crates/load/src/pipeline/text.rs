//! Chunks that go to the server as text: cut here, parsed there, or here if the server hands them back.

use std::sync::{
    Arc,
    atomic::{AtomicU64, Ordering},
};

use coload_source::ColumnForm;
use coload_threads::{Step, thread_cpu_ns};
use coload_types::Result;

use super::emit::ahead_column;
use super::{Pipeline, WorkerOf};
use crate::arrivals::{ChunkText, Counted, HandedBack, ParsedChunk};
use crate::format::{Cut, Format, Parser, Read, Reading};
use crate::partition::{PartitionPlan, Waiting};
use crate::target::{RowCosts, Sharing, TextFragment};

/// Rows that went as text, and what that took without sending them.
#[derive(Debug, Default)]
pub struct TextWork {
    rows: AtomicU64,
    cpu_ns: AtomicU64,
}

impl<'a, F: Format> Pipeline<'a, F> {
    /// Who may be given text.
    pub(super) fn takes_text(&self) -> Option<&dyn Sharing> {
        self.target.sharing().filter(|_| self.may_go_as_text && self.reading.can_cut())
    }

    /// Sends a chunk as text if that is wanted and it can be; else it is to be parsed.
    pub(super) fn leave_chunk(
        &self,
        chunk: usize,
        plan: &Arc<PartitionPlan>,
        worker: &mut WorkerOf<'a, F>,
    ) -> Result<bool> {
        let Some(sharing) = self.takes_text() else { return Ok(false) };
        let partition = self.partitions.of(chunk);
        let Some(bytes_max) = sharing.leave_text(partition, plan, &self.row_costs()) else {
            return Ok(false);
        };
        let started = thread_cpu_ns();
        let cut = self.reading.cut(chunk, worker)?;
        let spent = thread_cpu_ns() - started;
        self.clock.add(Step::Read, spent);
        self.texts.cpu_ns.fetch_add(spent, Ordering::Relaxed);
        let Some(Cut { message, spans }) = cut.filter(|cut| cut.message.len() <= bytes_max) else {
            return Ok(false);
        };
        let rows = spans.iter().map(|span| span.rows).sum();
        let bytes = spans.iter().map(|span| span.end - span.start).sum();
        self.texts.rows.fetch_add(rows, Ordering::Relaxed);
        self.books.progress.add(bytes, rows);
        let parsed = ParsedChunk {
            speculated: self.reading.is_speculated(chunk),
            waiting: Waiting { rows: rows as u32, columns: Vec::new() },
            ahead: Vec::new(),
            counted: Counted { bytes, rows, rejects: 0 },
            unfit: false,
            text: Some(ChunkText { message, plan: Arc::clone(plan) }),
            spans,
        };
        let mut shared = self.workers.lock();
        let verified = shared.tasks.deliver(chunk, parsed);
        self.account(&mut shared, verified);
        Ok(true)
    }

    pub(super) fn send_text(&self, text: TextFragment) -> Result<()> {
        if let Some(sharing) = self.takes_text() {
            sharing.send_text(text)?;
        }
        self.workers.lock().tasks.sent_text();
        Ok(())
    }

    /// Takes what the server says of texts, until the load has ended.
    pub(super) fn take_answers(&self, sharing: &dyn Sharing) {
        while let Some(parsed) = sharing.answers().next() {
            let key = (parsed.partition as usize, parsed.fragment);
            let mut shared = self.workers.lock();
            let taken = shared.tasks.answered(key, parsed.is);
            let taken = taken.map(|verified| self.account(&mut shared, verified));
            drop(shared);
            match taken {
                Ok(()) => self.workers.wake_all(),
                Err(error) => self.workers.fail(error),
            }
        }
    }

    /// Parses a chunk that the server handed back, and sends it plain: its partition may be complete but for it.
    pub(super) fn parse_back(&self, back: HandedBack, worker: &mut WorkerOf<'a, F>) -> Result<()> {
        let mut parser = self.reading.parser(&back.plan);
        (0..back.plan.read.len()).for_each(|column| parser.read_as(column, ColumnForm::Plain));
        let (chunk, start) = (back.chunk, Some(back.start));
        let read = Read { chunk, start, worker, parser: &mut parser };
        let spans = self.reading.parse(read, &self.clock, &|_, _| self.go_on())?;
        let fragment = parser.finish(0)?;
        let time = parser.take_time();
        self.clock.add(Step::Tokenise, time.tokenise);
        self.clock.add(Step::Convert, time.convert);
        let rejects = spans.iter().map(|span| span.rejects.len() as u64).sum();
        self.books.progress.take_back(0, back.rows);
        self.books.progress.add(0, u64::from(fragment.rows));
        self.books.progress.rejects.fetch_add(rejects, Ordering::Relaxed);
        let rows = fragment.rows;
        let columns = fragment.columns.into_iter().enumerate().filter(|_| rows > 0);
        let columns = columns.map(|(index, column)| ahead_column(&back.plan, index, column));
        let columns = columns.collect::<Result<Vec<_>>>()?;
        let mut shared = self.workers.lock();
        let verified = shared.tasks.parsed_back(&back, rows, columns, spans);
        self.account(&mut shared, verified);
        Ok(())
    }

    /// What a row cost so far.
    pub(super) fn row_costs(&self) -> RowCosts {
        let [text_rows, text_ns] =
            [&self.texts.rows, &self.texts.cpu_ns].map(|number| number.load(Ordering::Relaxed));
        let filtered = self.books.filtered.load(Ordering::Relaxed);
        let all = self.books.progress.rows.load(Ordering::Relaxed);
        let rows = all.saturating_sub(filtered).saturating_sub(text_rows);
        let spent = self.clock.get(Step::Read) + self.clock.get(Step::Tokenise);
        let spent = (spent.as_nanos() as u64).saturating_sub(text_ns)
            + self.books.program_ns.load(Ordering::Relaxed);
        let bytes = self.books.progress.bytes.load(Ordering::Relaxed);
        RowCosts {
            base_ns: (rows > 0).then(|| spent as f64 / rows as f64),
            text_ns: (text_rows > 0).then(|| text_ns as f64 / text_rows as f64),
            text_bytes: bytes as f64 / all.max(1) as f64,
        }
    }
}
