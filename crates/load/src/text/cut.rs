//! Cuts the records of a chunk out of its inputs, without parsing them.

use std::ops::Range;

use coload_source::{ChunkParser, Mended, RecordRules};
use coload_threads::StepClock;
use coload_types::Result;
use coload_wire::{FRAGMENT_ROWS_MAX, TEXT_HEAD_BYTES};

use super::chunks::{Piece, Start};
use super::open_inputs::{OpenInput, OpenInputs};
use super::reader::WindowReader;
use crate::format::{Cut, PieceSpan, ReadTo};

/// Bytes of a chunk read at once: they stay in the second-level cache while they are looked at.
const STEP_BYTES: u64 = 256 << 10;
/// Bytes read at once behind it, to the end of its last record.
const TAIL_BYTES: usize = 4096;
/// Longest line behind a chunk that is looked for.
const LINE_BYTES_MAX: usize = 1 << 20;

/// Cuts the records of a chunk out of its inputs, and counts them; `None` when some are none, or too many.
pub fn cut_chunk(
    inputs: &OpenInputs,
    pieces: &[Piece],
    rules: &RecordRules,
    reader: &mut WindowReader,
) -> Result<Option<Cut>> {
    let mut cut = Cut { message: vec![0; TEXT_HEAD_BYTES], spans: Vec::new() };
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
    rules: &RecordRules,
    reader: &mut WindowReader,
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
/// long. Each step is looked at while it is in the cache.
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
        let wanted = limit.saturating_sub(end).clamp(TAIL_BYTES as u64, STEP_BYTES) as usize;
        out.resize(at + wanted, 0);
        let read = input.read_at(&mut out[at..], end)?;
        out.truncate(at + read);
        let from = last.max(at);
        let newline = out.get(from..).and_then(|text| memchr::memchr(b'\n', text));
        if let Some(newline) = newline {
            out.truncate(from + newline + 1);
        }
        let step = &out[at..];
        if quote.is_some_and(|quote| memchr::memchr(quote, step).is_some()) {
            return Ok(None);
        }
        count += memchr::memchr_iter(b'\n', step).count() as u64;
        end += step.len() as u64;
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
    rules: &RecordRules,
    reader: &mut WindowReader,
    out: &mut Vec<u8>,
) -> Result<Option<PieceSpan>> {
    let mut parser = ChunkParser::new(rules.clone(), Vec::new(), || 0);
    let clock = StepClock::default();
    let span = reader.parse_piece(input, piece, &mut parser, &clock, &|_, _| Ok(()))?;
    if span.read_to != ReadTo::End || !span.rejects.is_empty() || span.mended != Mended::default() {
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

fn span(piece: &Piece, bytes: Range<u64>, rows: u64, lines: u64) -> PieceSpan {
    PieceSpan {
        file: piece.file,
        start: bytes.start,
        end: bytes.end,
        rows,
        filtered: 0,
        lines,
        rejects: Vec::new(),
        mended: Mended::default(),
        read_to: ReadTo::End,
    }
}
