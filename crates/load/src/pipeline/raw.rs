//! Chunks that go to the server as text: cut here, parsed there, or here if the server hands them back.

use std::sync::{
    Arc,
    atomic::{AtomicU64, Ordering},
};

use coload_source::{ChunkParser, ColumnForm, Mended, RecordRules};
use coload_threads::{Step, StepClock, lock, thread_cpu_ns};
use coload_types::Result;
use coload_wire::{FRAGMENT_ROWS_MAX, RAW_HEAD_BYTES};

use super::Pipeline;
use super::emit::ahead_column;
use crate::chunks::{Piece, Source, Start};
use crate::open_inputs::{OpenInput, OpenInputs};
use crate::partition::{PartitionPlan, Waiting};
use crate::reader::{PieceSpan, Whole, WindowReader};
use crate::schedule::{Counted, HandedBack, ParsedChunk, RawText};
use crate::target::{RawFlow, RowCosts, Sharing};

/// Bytes of a chunk read at once: they stay in the second-level cache while they are looked at.
const PART_BYTES: u64 = 256 << 10;
/// Bytes read at once behind it, to the end of its last record.
const TAIL_BYTES: usize = 4096;
/// Longest line behind a chunk that is looked for.
const LINE_BYTES_MAX: usize = 1 << 20;

/// Rows that went as text, and what that took without sending them.
#[derive(Debug, Default)]
pub struct RawWork {
    rows: AtomicU64,
    cpu_ns: AtomicU64,
}

/// The records of a chunk, not parsed.
struct Cut {
    message: Vec<u8>,
    spans: Vec<PieceSpan>,
}

impl Pipeline<'_> {
    /// Who may be given text.
    pub(super) fn takes_text(&self) -> Option<&dyn Sharing> {
        match self.source {
            Source::Files { .. } if self.takes_raw => self.target.sharing(),
            _ => None,
        }
    }

    /// Sends a chunk as text if that is wanted and it can be; else it is to be parsed.
    pub(super) fn leave_chunk(
        &self,
        chunk: usize,
        pieces: &[Piece],
        plan: &Arc<PartitionPlan>,
        reader: &mut WindowReader<'_>,
    ) -> Result<bool> {
        let (Some(sharing), Source::Files { inputs, .. }) = (self.takes_text(), self.source) else {
            return Ok(false);
        };
        let partition = chunk / lock(&self.state).fragments_per_partition();
        let Some(bytes_max) = sharing.leave_raw(partition, plan, &self.row_costs()) else {
            return Ok(false);
        };
        let started = thread_cpu_ns();
        let cut = cut_chunk(inputs, pieces, self.rules, reader)?;
        let spent = thread_cpu_ns() - started;
        self.clock.add(Step::Read, spent);
        self.raw.cpu_ns.fetch_add(spent, Ordering::Relaxed);
        let Some(Cut { message, spans }) = cut.filter(|cut| cut.message.len() <= bytes_max) else {
            return Ok(false);
        };
        let rows = spans.iter().map(|span| span.rows).sum();
        let bytes = spans.iter().map(|span| span.end - span.start).sum();
        self.raw.rows.fetch_add(rows, Ordering::Relaxed);
        self.progress.add(bytes, rows);
        let parsed = ParsedChunk {
            speculated: pieces.iter().any(|p| p.start_is == Start::Speculated),
            waiting: Waiting { rows: rows as u32, columns: Vec::new() },
            ahead: Vec::new(),
            counted: Counted { bytes, rows, rejects: 0 },
            unfit: false,
            raw: Some(RawText { message, plan: Arc::clone(plan) }),
            text: None,
            spans,
        };
        let mut state = lock(&self.state);
        let verified = state.deliver(chunk, parsed);
        self.account(&mut state, verified)?;
        Ok(true)
    }

    pub(super) fn send_raw(&self, flow: RawFlow) -> Result<()> {
        if let Some(sharing) = self.takes_text() {
            sharing.send_raw(flow)?;
        }
        lock(&self.state).sent_raw();
        Ok(())
    }

    /// Takes what the server says of texts, until the load has ended.
    pub(super) fn take_answers(&self, sharing: &dyn Sharing) {
        while let Some(parsed) = sharing.answers().next() {
            let key = (parsed.partition as usize, parsed.fragment);
            let mut state = lock(&self.state);
            let taken = state.answered(key, parsed.is);
            let taken = taken.and_then(|verified| self.account(&mut state, verified));
            drop(state);
            match taken {
                Ok(()) => self.wake.notify_all(),
                Err(error) => self.fail(error),
            }
        }
    }

    /// Parses a chunk that the server handed back, and sends it plain: its partition may be complete but for it.
    pub(super) fn parse_back(&self, back: HandedBack, reader: &mut WindowReader<'_>) -> Result<()> {
        let Source::Files { inputs, chunks } = self.source else { return Ok(()) };
        let mut pieces = Source::pieces(inputs, chunks, self.from, back.chunk);
        if let Some(first) = pieces.first_mut() {
            *first = Piece { start: back.start, start_is: Start::Record, ..*first };
        }
        let mut parser = self.new_parser(&back.plan);
        parser.columns_mut().iter_mut().for_each(|column| column.read_as(ColumnForm::Plain));
        let parse = |p: &Piece| {
            let input = inputs.at(p.file);
            reader.parse_piece(&input, p, &mut parser, &self.clock, &|_, _| self.go_on())
        };
        let spans = pieces.iter().map(parse).collect::<Result<Vec<_>>>()?;
        let fragment = parser.finish(0)?;
        let time = parser.take_time();
        self.clock.add(Step::Tokenise, time.tokenise);
        self.clock.add(Step::Convert, time.convert);
        let rejects = spans.iter().map(|span| span.rejects.len() as u64).sum();
        self.progress.take_back(0, back.rows);
        self.progress.add(0, u64::from(fragment.rows));
        self.progress.rejects.fetch_add(rejects, Ordering::Relaxed);
        let rows = fragment.rows;
        let columns = fragment.columns.into_iter().enumerate().filter(|_| rows > 0);
        let columns = columns.map(|(index, column)| ahead_column(&back.plan, index, column));
        let columns = columns.collect::<Result<Vec<_>>>()?;
        let mut state = lock(&self.state);
        let verified = state.parsed_back(back, rows, columns, spans);
        self.account(&mut state, verified)
    }

    /// What a row cost so far.
    pub(super) fn row_costs(&self) -> RowCosts {
        let [raw_rows, raw_ns] =
            [&self.raw.rows, &self.raw.cpu_ns].map(|number| number.load(Ordering::Relaxed));
        let filtered = self.filtered.load(Ordering::Relaxed);
        let all = self.progress.rows.load(Ordering::Relaxed);
        let rows = all.saturating_sub(filtered).saturating_sub(raw_rows);
        let spent = self.clock.get(Step::Read) + self.clock.get(Step::Tokenise);
        let spent = (spent.as_nanos() as u64).saturating_sub(raw_ns)
            + self.program_ns.load(Ordering::Relaxed);
        let bytes = self.progress.bytes.load(Ordering::Relaxed);
        RowCosts {
            base_ns: (rows > 0).then(|| spent as f64 / rows as f64),
            raw_ns: (raw_rows > 0).then(|| raw_ns as f64 / raw_rows as f64),
            text_bytes: bytes as f64 / all.max(1) as f64,
        }
    }
}

/// Cuts the records of a chunk out of its inputs, and counts them; `None` when some are none, or too many.
fn cut_chunk(
    inputs: &OpenInputs,
    pieces: &[Piece],
    rules: RecordRules,
    reader: &mut WindowReader<'_>,
) -> Result<Option<Cut>> {
    let mut cut = Cut { message: vec![0; RAW_HEAD_BYTES], spans: Vec::new() };
    for piece in pieces {
        let input = &inputs.at(piece.file);
        let at = cut.message.len();
        let span = match cut_lines(input, piece, rules, reader, &mut cut.message)? {
            Some(span) => span,
            None => {
                cut.message.truncate(at);
                let Some(span) = cut_records(input, piece, rules, reader, &mut cut.message)? else {
                    return Ok(None);
                };
                span
            }
        };
        cut.spans.push(span);
    }
    let rows: u64 = cut.spans.iter().map(|span| span.rows).sum();
    Ok((1..=FRAGMENT_ROWS_MAX as u64).contains(&rows).then_some(cut))
}

/// Cuts a piece in which every line is a record; `None` when it may be otherwise.
fn cut_lines(
    input: &OpenInput<'_>,
    piece: &Piece,
    rules: RecordRules,
    reader: &mut WindowReader<'_>,
    out: &mut Vec<u8>,
) -> Result<Option<PieceSpan>> {
    if rules.is_exotic() || rules.comment.is_some() {
        return Ok(None);
    }
    let clock = StepClock::default();
    let start = match piece.start_is {
        Start::Record => piece.start,
        Start::Speculated => reader.first_record(input, piece, &clock)?,
    };
    let lines = read_lines(input, start, piece.end, rules.separators.quote, out)?;
    Ok(lines.map(|Lines { end, count }| span(piece, start..end, count, count)))
}

/// Lines that were read.
struct Lines {
    /// Where the last of them ends in its input.
    end: u64,
    count: u64,
}

/// Appends the lines that start from `start` to before `limit`; `None` when there is a quote, or the last of them is
/// long. Each part is looked at while it is in the cache.
fn read_lines(
    input: &OpenInput<'_>,
    start: u64,
    limit: u64,
    quote: Option<u8>,
    out: &mut Vec<u8>,
) -> Result<Option<Lines>> {
    if start >= limit {
        return Ok(Some(Lines { end: start, count: 0 }));
    }
    // The line that has the byte before the limit is the last.
    let last = out.len() + (limit - start) as usize - 1;
    out.reserve((limit - start) as usize + TAIL_BYTES);
    let (mut end, mut count) = (start, 0);
    while out.len() <= last + LINE_BYTES_MAX {
        let at = out.len();
        let wanted = limit.saturating_sub(end).clamp(TAIL_BYTES as u64, PART_BYTES) as usize;
        out.resize(at + wanted, 0);
        let read = input.read_at(&mut out[at..], end)?;
        out.truncate(at + read);
        let from = last.max(at);
        let newline = out.get(from..).and_then(|text| memchr::memchr(b'\n', text));
        if let Some(newline) = newline {
            out.truncate(from + newline + 1);
        }
        let part = &out[at..];
        if quote.is_some_and(|quote| memchr::memchr(quote, part).is_some()) {
            return Ok(None);
        }
        count += memchr::memchr_iter(b'\n', part).count() as u64;
        end += part.len() as u64;
        if newline.is_none() && end >= input.bytes {
            out.push(b'\n');
            count += 1;
        } else if newline.is_none() {
            continue;
        }
        return Ok(Some(Lines { end, count }));
    }
    Ok(None)
}

/// Cuts a piece where its records end; `None` when there are some that are none.
fn cut_records(
    input: &OpenInput<'_>,
    piece: &Piece,
    rules: RecordRules,
    reader: &mut WindowReader<'_>,
    out: &mut Vec<u8>,
) -> Result<Option<PieceSpan>> {
    let mut parser = ChunkParser::new(rules, Vec::new(), || 0);
    let clock = StepClock::default();
    let span = reader.parse_piece(input, piece, &mut parser, &clock, &|_, _| Ok(()))?;
    if span.whole != Whole::Yes || !span.rejects.is_empty() || span.mended != Mended::default() {
        return Ok(None);
    }
    let at = out.len();
    out.resize(at + (span.end - span.start) as usize, 0);
    let read = input.read_at(&mut out[at..], span.start)?;
    out.truncate(at + read);
    if read > 0 && out.last() != Some(&b'\n') {
        out.push(b'\n');
    }
    Ok(Some(span))
}

fn span(piece: &Piece, bytes: std::ops::Range<u64>, rows: u64, lines: u64) -> PieceSpan {
    PieceSpan {
        file: piece.file,
        start: bytes.start,
        end: bytes.end,
        rows,
        filtered: 0,
        lines,
        rejects: Vec::new(),
        mended: Mended::default(),
        whole: Whole::Yes,
    }
}
