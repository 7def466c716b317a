//! Reads a piece of an input window by window and hands the windows to the parser.

use std::ops::Range;

use coload_format::{Error, Result};
use coload_source::{
    ChunkParser, LastWindow, LineEnd, Mended, RejectedRecord, TEXT_PADDING, Window,
};

use crate::chunks::{OpenInput, Piece, Start};
use crate::clock::{Step, StepClock};
use crate::stream::Part;

/// Bytes of a window: it stays in the second-level cache while its columns are read.
const WINDOW_BYTES: usize = 384 << 10;
/// Longest record: positions in a window are 32 bits.
pub const RECORD_BYTES_MAX: usize = 1 << 30;

/// Is told the bytes and the rows of each window that was parsed; its error ends the task.
pub type Tick<'a> = dyn Fn(u64, u64) -> Result<()> + 'a;

/// What became of a piece: where its records really started and ended, and how many there were.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct PieceSpan {
    /// Input.
    pub file: usize,
    /// First byte of the first record.
    pub start: u64,
    /// Byte after the last record.
    pub end: u64,
    /// Rows parsed, and kept.
    pub rows: u64,
    /// Rows parsed that a filter left out.
    pub filtered: u64,
    /// Newlines from `start` to `end`.
    pub lines: u64,
    /// Records rejected, in order.
    pub rejects: Vec<RejectedRecord>,
    /// Records that were mended, their lines counted from `start` on.
    pub mended: Mended,
    /// Whether all of its records were read.
    pub whole: Whole,
}

/// Whether a piece was read to its end.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Whole {
    /// To its end.
    Yes,
    /// Only to a record so long that its start, which was speculated, is in doubt.
    InDoubt,
}

/// Text that holds whole records of one input.
#[derive(Debug, Clone, Copy)]
pub struct TextPart<'a> {
    /// Number of the input.
    pub file: usize,
    /// The text; the last record may lack its newline.
    pub text: &'a [u8],
    /// Where the records end that are read.
    pub end: usize,
    /// Where it stands in the text of the input.
    pub offset: u64,
}

/// A worker's window.
#[derive(Debug)]
pub struct WindowReader {
    buffer: Vec<u8>,
}

impl Default for WindowReader {
    fn default() -> Self {
        WindowReader { buffer: vec![b'\n'; 1 + WINDOW_BYTES + TEXT_PADDING] }
    }
}

impl WindowReader {
    /// Parses the records of a piece.
    ///
    /// # Errors
    /// `Unavailable` when the input cannot be read, `Limit` when a record is too long; those of `tick`.
    pub fn parse_piece(
        &mut self,
        input: &OpenInput,
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
        let mut whole = Whole::Yes;
        // `have` bytes of text stand at buffer[1..], from `offset` of the input on.
        let (mut offset, mut have) = (start, 0);
        let mut end = start;
        while end < piece.end {
            self.buffer.resize((1 + window + TEXT_PADDING).max(self.buffer.len()), 0);
            let target = &mut self.buffer[1 + have..1 + window];
            let read = clock.time(Step::Read, || input.read_at(target, offset + have as u64))?;
            have += read;
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
                window *= 2;
                if piece.start_is == Start::Speculated && window / 2 > piece_bytes {
                    whole = Whole::InDoubt;
                    break;
                }
                if window > RECORD_BYTES_MAX {
                    return Err(Error::Limit(format!(
                        "{} (byte {end}): a record is over {RECORD_BYTES_MAX} bytes; is a quote \
                         left open? (try --quote none)",
                        input.name()
                    )));
                }
            }
            self.buffer.copy_within(consumed.end..1 + have, 1);
            have -= used;
            offset += used as u64;
        }
        Ok(end_piece(parser, rows, piece.file, start..end, whole))
    }

    /// The byte after the first newline that stands before the piece's start or later.
    ///
    /// # Errors
    /// `Unavailable` when the input cannot be read.
    pub fn first_record(
        &mut self,
        input: &OpenInput,
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

    /// Parses a part of a stream, which holds whole records.
    ///
    /// # Errors
    /// Those of `tick`.
    pub fn parse_bytes(
        &mut self,
        part: &Part,
        parser: &mut ChunkParser,
        tick: &Tick<'_>,
    ) -> Result<PieceSpan> {
        let Part { file, text, end, offset, .. } = part;
        let part = TextPart { file: *file, text, end: *end, offset: *offset };
        self.parse_text(&part, parser, tick)
    }

    /// Parses text that holds whole records.
    ///
    /// # Errors
    /// Those of `tick`.
    pub fn parse_text(
        &mut self,
        part: &TextPart<'_>,
        parser: &mut ChunkParser,
        tick: &Tick<'_>,
    ) -> Result<PieceSpan> {
        let TextPart { file, text: bytes, end, offset } = *part;
        let rows = parser.rows() as u64;
        let mut window = WINDOW_BYTES;
        let (mut at, mut short) = (0, false);
        loop {
            let mut have = window.min(bytes.len() - at);
            let all = at + have == bytes.len();
            let last = all && (end == bytes.len() || short);
            self.buffer.resize((2 + have + TEXT_PADDING).max(self.buffer.len()), 0);
            self.buffer[1..1 + have].copy_from_slice(&bytes[at..at + have]);
            if last && self.buffer[have] != b'\n' {
                self.buffer[1 + have] = b'\n';
                have += 1;
            }
            let before = parser.rows() as u64;
            let consumed = parser.parse_window(&Window {
                text: &self.buffer[..1 + have + TEXT_PADDING],
                start: 1,
                end: 1 + have,
                offset: offset + at as u64,
                limit: if end == bytes.len() { usize::MAX } else { end - at + 1 },
                last: if last { LastWindow::Yes } else { LastWindow::No },
            });
            let used = consumed.end - 1;
            tick(used as u64, parser.rows() as u64 - before)?;
            at += used;
            if consumed.done {
                break;
            }
            if consumed.short {
                window *= 2;
                // As the chunk was cut after whole records, this does not happen.
                short = all;
            }
        }
        Ok(end_piece(parser, rows, file, offset..offset + end as u64, Whole::Yes))
    }
}

/// What became of the piece of these bytes, before which the parser had `rows_before` rows.
fn end_piece(
    parser: &mut ChunkParser,
    rows_before: u64,
    file: usize,
    bytes: Range<u64>,
    whole: Whole,
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
        whole,
    }
}
