//! Reads a piece of an input window by window and hands the windows to the parser.

use std::ops::Range;
use std::sync::{Arc, Condvar, Mutex, PoisonError};

use coload_source::{ChunkParser, LastWindow, LineEnd, TEXT_PADDING, Window};
use coload_threads::{Step, StepClock, lock};
use coload_types::{Error, Result};

use super::chunks::{Piece, Start};
use super::open_inputs::OpenInput;
use super::stream::StreamPiece;
use crate::format::{PieceSpan, ReadTo, Tick};
use crate::grain::{Grain, RECORD_BYTES_MAX, record_too_long};

/// Bytes of a window: it stays in the second-level cache while its columns are read.
const WINDOW_BYTES: usize = 384 << 10;

/// Text that holds whole records of one input.
#[derive(Debug, Clone, Copy)]
pub struct TextPiece<'a> {
    /// Number of the input.
    pub file: usize,
    /// The text; the last record may lack its newline.
    pub text: &'a [u8],
    /// Where the records end that are read.
    pub end: usize,
    /// Where it stands in the text of the input.
    pub offset: u64,
    /// The text with a byte before it, and a newline and padding behind it, if it stands so.
    pub frame: Option<&'a [u8]>,
}

/// Lets one worker at a time read records that take a large share of the memory.
#[derive(Debug, Default)]
pub struct Gate {
    taken: Mutex<bool>,
    changed: Condvar,
}

/// Reads pieces of inputs window by window; a worker has one, and keeps its buffer.
#[derive(Debug)]
pub struct WindowReader {
    buffer: Vec<u8>,
    gate: Arc<Gate>,
    /// Whether this worker went through the gate.
    inside: bool,
    large_bytes: usize,
    record_bytes_max: usize,
}

impl Drop for WindowReader {
    fn drop(&mut self) {
        self.end_task();
    }
}

impl WindowReader {
    /// A small window. Workers that read large records wait for each other at `gate`.
    pub fn new(gate: &Arc<Gate>, grain: &Grain) -> Self {
        WindowReader {
            buffer: vec![b'\n'; 1 + WINDOW_BYTES + TEXT_PADDING],
            gate: Arc::clone(gate),
            inside: false,
            large_bytes: grain.large_bytes.max(WINDOW_BYTES),
            record_bytes_max: grain.record_bytes_max,
        }
    }

    /// A small window for text that is there, in a frame of the wire.
    pub fn of_frame() -> Self {
        WindowReader {
            buffer: vec![b'\n'; 1 + WINDOW_BYTES + TEXT_PADDING],
            gate: Arc::default(),
            inside: false,
            large_bytes: usize::MAX,
            record_bytes_max: RECORD_BYTES_MAX,
        }
    }

    /// Gives back what a large record took, when nothing of it is needed any more.
    pub fn end_task(&mut self) {
        if self.inside {
            self.shrink();
            *lock(&self.gate.taken) = false;
            self.inside = false;
            self.gate.changed.notify_one();
        }
    }

    /// Waits until no other worker reads a large record, if this window is large.
    fn enter_if_large(&mut self, bytes: usize) {
        if bytes <= self.large_bytes || self.inside {
            return;
        }
        let mut taken = lock(&self.gate.taken);
        while *taken {
            taken = self.gate.changed.wait(taken).unwrap_or_else(PoisonError::into_inner);
        }
        *taken = true;
        self.inside = true;
    }

    /// Makes room for a window of so many bytes. What is there of a large one is lost.
    fn make_room(&mut self, bytes: usize) {
        self.enter_if_large(bytes);
        let needed = 2 + bytes + TEXT_PADDING;
        if self.buffer.len() >= needed {
            return;
        }
        if bytes > self.large_bytes {
            // Not both at once.
            self.buffer = Vec::new();
            self.buffer = vec![0; needed];
            self.buffer[0] = b'\n';
        } else {
            self.buffer.resize(needed, 0);
        }
    }

    fn shrink(&mut self) {
        if self.buffer.len() > self.large_bytes {
            self.buffer = vec![b'\n'; 1 + WINDOW_BYTES + TEXT_PADDING];
        }
    }

    /// The error of a record that begins at a byte and is longer than one may be.
    fn too_long(&mut self, input: &OpenInput<'_>, byte: u64, is_json: bool) -> Error {
        let place = match input.line_at(byte, &mut self.buffer) {
            Ok(Some(line)) => format!("{}:{line} (byte {byte})", input.name()),
            _ => format!("{} (byte {byte})", input.name()),
        };
        record_too_long(&place, self.record_bytes_max, is_json)
    }

    /// Parses the records of a piece.
    ///
    /// # Errors
    /// `Unavailable` when the input cannot be read, `Limit` when a record is too long; those of `tick`.
    pub fn parse_piece(
        &mut self,
        input: &OpenInput<'_>,
        piece: &Piece,
        parser: &mut ChunkParser,
        clock: &StepClock,
        tick: &Tick<'_>,
    ) -> Result<PieceSpan> {
        let start = match piece.start_is {
            Start::Record => piece.start,
            Start::Speculated => self.first_record(input, piece, clock)?,
        };
        let rows = parser.rows() as u64;
        let piece_bytes =
            usize::try_from(piece.end.saturating_sub(piece.start)).unwrap_or(usize::MAX);
        // A small piece needs no more.
        let mut window = WINDOW_BYTES.min(piece_bytes.max(1));
        let mut read_to = ReadTo::End;
        // `have` bytes of text stand at buffer[1..], from `offset` of the input on.
        let (mut offset, mut have) = (start, 0);
        let mut end = start;
        while end < piece.end {
            self.make_room(window);
            let target = &mut self.buffer[1 + have..1 + window];
            let mut read = || input.read_at(target, offset + have as u64);
            // To look at the clock costs more than to copy a small text.
            have += if input.is_kept() { read()? } else { clock.time(Step::Read, read)? };
            let last = offset + have as u64 >= input.bytes;
            if last && self.buffer[have] != b'\n' {
                self.buffer[1 + have] = b'\n';
                have += 1;
            }
            let before = parser.rows() as u64;
            let consumed = parser.parse_window(&Window {
                text: &self.buffer[..1 + have + TEXT_PADDING],
                start: 1,
                end: 1 + have,
                offset,
                limit: usize::try_from(piece.end - offset)
                    .map_or(usize::MAX, |l| l.saturating_add(1)),
                last: if last { LastWindow::Yes } else { LastWindow::No },
            });
            let used = consumed.end - 1;
            tick(used as u64, parser.rows() as u64 - before)?;
            end = (offset + used as u64).min(input.bytes);
            if consumed.done {
                break;
            }
            if consumed.short {
                let rest = usize::try_from(input.bytes - offset).unwrap_or(usize::MAX);
                let needed = window + 1;
                // What a large window has too much is missing elsewhere.
                let more = if window > self.large_bytes { window / 4 } else { window };
                window = (window + more).min(rest.saturating_add(1)).max(needed);
                if piece.start_is == Start::Speculated && window / 2 > piece_bytes {
                    read_to = ReadTo::InDoubt;
                    break;
                }
                if needed > self.record_bytes_max {
                    return Err(self.too_long(input, end, parser.is_json()));
                }
                window = window.min(self.record_bytes_max.max(needed));
                if window > self.large_bytes {
                    // It is read again, into a window that is not there beside this one.
                    have = 0;
                    continue;
                }
            }
            self.buffer.copy_within(consumed.end..1 + have, 1);
            have -= used;
            offset += used as u64;
        }
        self.shrink();
        Ok(end_piece(parser, rows, piece.file, start..end, read_to))
    }

    /// The byte after the first newline that stands before the piece's start or later.
    ///
    /// # Errors
    /// `Unavailable` when the input cannot be read.
    pub fn first_record(
        &mut self,
        input: &OpenInput<'_>,
        piece: &Piece,
        clock: &StepClock,
    ) -> Result<u64> {
        let mut offset = piece.start - 1;
        let mut length = 4096;
        while offset < input.bytes {
            let target = &mut self.buffer[1..1 + length];
            let read = clock.time(Step::Read, || input.read_at(target, offset))?;
            let bytes = &self.buffer[1..1 + read];
            let found = match input.line_end {
                LineEnd::Newline | LineEnd::Returns => memchr::memchr(b'\n', bytes),
                LineEnd::Any => memchr::memchr2(b'\n', b'\r', bytes),
            };
            if let Some(at) = found {
                let pair = bytes[at] == b'\r' && bytes.get(at + 1) == Some(&b'\n');
                return Ok(offset + at as u64 + 1 + u64::from(pair));
            }
            offset += read as u64;
            length = WINDOW_BYTES;
        }
        Ok(input.bytes)
    }

    /// Parses a piece of a stream, which holds whole records.
    ///
    /// # Errors
    /// Those of `tick`.
    pub fn parse_bytes(
        &mut self,
        piece: &StreamPiece,
        parser: &mut ChunkParser,
        tick: &Tick<'_>,
    ) -> Result<PieceSpan> {
        let StreamPiece { file, text, end, offset, between, is_last, .. } = piece;
        parser.begin_between(*between, *is_last);
        let frame = text.frame();
        let text = text.as_slice();
        let piece = TextPiece { file: *file, text, end: *end, offset: *offset, frame };
        self.parse_text(&piece, parser, tick)
    }

    /// Parses text that holds whole records.
    ///
    /// # Errors
    /// Those of `tick`.
    pub fn parse_text(
        &mut self,
        piece: &TextPiece<'_>,
        parser: &mut ChunkParser,
        tick: &Tick<'_>,
    ) -> Result<PieceSpan> {
        let TextPiece { file, text: bytes, end, offset, frame } = *piece;
        let rows = parser.rows() as u64;
        let mut window = WINDOW_BYTES;
        let (mut at, mut short) = (0, false);
        loop {
            let mut have = window.min(bytes.len() - at);
            let all = at + have == bytes.len();
            let last = all && (end == bytes.len() || short);
            let begins = at == 0 || bytes[at - 1] == b'\n';
            // A large window is where its text is, if it can be.
            let framed = frame.filter(|_| all && begins && have > self.large_bytes);
            let (text, start) = match framed {
                Some(frame) => {
                    self.enter_if_large(have);
                    have += usize::from(last && bytes.last() != Some(&b'\n'));
                    (frame, 1 + at)
                }
                None => {
                    self.make_room(have);
                    self.buffer[1..1 + have].copy_from_slice(&bytes[at..at + have]);
                    if last && self.buffer[have] != b'\n' {
                        self.buffer[1 + have] = b'\n';
                        have += 1;
                    }
                    (&self.buffer[..], 1)
                }
            };
            let before = parser.rows() as u64;
            let consumed = parser.parse_window(&Window {
                text: &text[..start + have + TEXT_PADDING],
                start,
                end: start + have,
                offset: offset + at as u64,
                limit: if end == bytes.len() { usize::MAX } else { end - at + 1 },
                last: if last { LastWindow::Yes } else { LastWindow::No },
            });
            let used = consumed.end - start;
            tick(used as u64, parser.rows() as u64 - before)?;
            at += used;
            if consumed.done {
                break;
            }
            if consumed.short {
                // Whole records are there, so one of them is as long as this at most.
                window = bytes.len() - at;
                // As the chunk was cut after whole records, this does not happen.
                short = all;
            }
        }
        self.shrink();
        Ok(end_piece(parser, rows, file, offset..offset + end as u64, ReadTo::End))
    }
}

/// What became of the piece of these bytes, before which the parser had `rows_before` rows.
fn end_piece(
    parser: &mut ChunkParser,
    rows_before: u64,
    file: usize,
    bytes: Range<u64>,
    read_to: ReadTo,
) -> PieceSpan {
    let mended = parser.take_mended();
    let (rejects, lines) = parser.end_piece();
    PieceSpan {
        file,
        start: bytes.start,
        end: bytes.end,
        rows: parser.rows() as u64 - rows_before,
        filtered: 0,
        lines,
        rejects,
        mended,
        read_to,
    }
}
