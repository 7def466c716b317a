//! Cuts inputs into chunks: ranges of one big file, or several small files together.
//!
//! A chunk's range starts anywhere; the records that start in it are its own. Where the first of them
//! starts is speculated on (after the first newline) and verified against the end of the chunk before
//! it; see `schedule`.

use std::ops::Range;

use super::open_inputs::OpenInputs;

/// Bytes that a piece takes in a chunk, with what became of it, however little text it is.
pub const PIECE_BYTES: u64 = 512;

/// A part of one input.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Piece {
    /// Number of the input.
    pub file: usize,
    /// First byte.
    pub start: u64,
    /// Records that start here or later are not in it.
    pub end: u64,
    /// Whether a record is known to start at `start`.
    pub start_is: Start,
}

/// What is known of the start of a piece.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Start {
    /// A record starts here.
    Record,
    /// Maybe in the middle of one: the first newline decides, and the piece before verifies.
    Speculated,
}

/// The pieces of a chunk.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum ChunkPieces {
    /// A part of an input.
    One(Piece),
    /// Inputs that follow each other, whole: of a million, none has a piece of its own until it is read.
    Whole(Range<usize>),
}

/// Leaves out chunks after the first so many bytes.
pub fn keep_first(inputs: &OpenInputs, chunks: &mut Vec<ChunkPieces>, sample_bytes: u64) {
    let mut bytes = 0;
    let count = chunks.iter().take_while(|pieces| {
        let before = bytes;
        bytes += inputs.chunk_bytes(pieces);
        before < sample_bytes
    });
    let count = count.count();
    chunks.truncate(count);
}

/// Pieces of big files, and small files together until a chunk is full.
pub fn cut_files(inputs: &OpenInputs, chunk_bytes: u64) -> Vec<ChunkPieces> {
    let mut chunks: Vec<ChunkPieces> = Vec::new();
    let mut room = 0;
    for (file, input) in inputs.iter().enumerate() {
        let bytes = input.to - input.data_start;
        let held = bytes.max(PIECE_BYTES);
        if held <= room
            && let Some(ChunkPieces::Whole(files)) = chunks.last_mut()
        {
            files.end = file + 1;
            room -= held;
            continue;
        }
        if bytes <= chunk_bytes {
            chunks.push(ChunkPieces::Whole(file..file + 1));
            room = chunk_bytes.saturating_sub(held);
            continue;
        }
        let mut start = input.data_start;
        while start < input.to {
            let end = (start + chunk_bytes).min(input.to);
            let start_is =
                if start == input.data_start { Start::Record } else { Start::Speculated };
            chunks.push(ChunkPieces::One(Piece { file, start, end, start_is }));
            start = end;
        }
        room = 0;
    }
    chunks
}
