//! Cuts inputs into chunks: ranges of one big file, or several small files together.
//!
//! A chunk's range starts anywhere; the records that start in it are its own. Where the first of them
//! starts is speculated on (after the first newline) and verified against the end of the chunk before
//! it; see `schedule`.

use std::ops::Range;
use std::sync::Arc;

use coload_input::{Raw, TextInput, Waiting};
use coload_types::{Error, Result};

use crate::account::Account;
use crate::grain::Grain;
use crate::head::Head;
use crate::open_inputs::OpenInputs;
use crate::options::LoadOptions;
use crate::pipeline::Position;
use crate::spool::Spool;
use crate::stream::StreamSource;

/// Bytes that a piece takes in a chunk, with what became of it, however little text it is.
pub const PIECE_BYTES: u64 = 512;

/// A part of one input.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Piece {
    /// Number of the input.
    pub file: usize,
    /// First byte of the piece in the text of its input.
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

/// Where chunks come from.
pub enum Source {
    /// Files of known length, cut beforehand.
    Files {
        /// Files of which any byte can be read.
        inputs: OpenInputs,
        /// Their pieces, some together.
        chunks: Vec<ChunkPieces>,
    },
    /// Text that comes in order: streams, and what must be decompressed.
    Stream(Box<StreamSource>),
}

impl Source {
    /// Opens the inputs and cuts files into chunks; what a stream gives goes into `spool`.
    ///
    /// # Errors
    /// `Invalid` when an input cannot be opened.
    pub fn open(options: &LoadOptions, spool: Option<&Arc<Spool>>) -> Result<Self> {
        let head = Head::new(options);
        let inputs = options.inputs.clone();
        let numbers = 0..inputs.len();
        let stream = if let Some(open) = options.streams.clone() {
            let stream = move |number: usize| {
                let name = inputs.name(number);
                Waiting::Stream { name, reader: open(number) }
            };
            StreamSource::new(numbers.map(stream), options)
        } else if let Some(opened) = open_once(options, spool)? {
            StreamSource::new([opened], options)
        } else if let Some(inputs) = open_files(options, &head)? {
            return Ok(Source::of_files(inputs, options));
        } else {
            let named = move |number: usize| Waiting::Named(inputs.at(number));
            StreamSource::new(numbers.map(named), options)
        };
        Ok(Source::Stream(Box::new(stream)))
    }

    fn of_files(inputs: OpenInputs, options: &LoadOptions) -> Self {
        let mut chunks = cut_files(&inputs, Grain::of(options).chunk_bytes as u64);
        if let Some(sample_bytes) = options.sample_bytes {
            keep_first(&inputs, &mut chunks, sample_bytes);
        }
        Source::Files { inputs, chunks }
    }
}

impl Source {
    /// Chunks in all; `None` for a stream.
    pub fn chunks(&self) -> Option<usize> {
        match self {
            Source::Files { chunks, .. } => Some(chunks.len()),
            Source::Stream(_) => None,
        }
    }

    /// The pieces of a chunk after `from`, by its number from there on.
    pub fn pieces(
        inputs: &OpenInputs,
        chunks: &[ChunkPieces],
        from: Position,
        chunk: usize,
    ) -> Vec<Piece> {
        let mut pieces = inputs.pieces(&chunks[from.chunks + chunk]);
        // Where the first leg ended is known.
        if chunk == 0
            && from.chunks > 0
            && let Some(first) = pieces.first_mut()
            && first.start_is == Start::Speculated
        {
            *first = Piece { start: from.end, start_is: Start::Record, ..*first };
        }
        pieces
    }

    /// What `sample_bytes` must be to read what comes before a place; `records` are the bytes of its records.
    pub fn bytes_before(&self, place: Position, records: u64) -> u64 {
        match self {
            Source::Files { inputs, chunks } => {
                chunks[..place.chunks].iter().map(|chunk| inputs.chunk_bytes(chunk)).sum()
            }
            Source::Stream(_) => records,
        }
    }

    /// Stored bytes of all inputs; 0 where they are not known.
    pub fn stored_bytes(&self) -> u64 {
        match self {
            Source::Files { inputs, .. } => inputs.bytes(),
            Source::Stream(stream) => stream.bytes,
        }
    }

    /// Bytes before the first records of files.
    pub fn head_bytes(&self) -> u64 {
        match self {
            Source::Files { inputs, .. } => inputs.iter().map(|i| i.data_start).sum(),
            Source::Stream(_) => 0,
        }
    }

    /// Checks that nobody wrote to the inputs meanwhile.
    ///
    /// # Errors
    /// `Unavailable` when somebody did.
    pub fn check_unchanged(&self) -> Result<()> {
        match self {
            Source::Files { inputs, .. } => {
                inputs.iter().try_for_each(|input| input.check_unchanged())
            }
            Source::Stream(stream) => {
                stream.inputs.iter().try_for_each(|input| input.check_unchanged())
            }
        }
    }

    /// Checks that the inputs are those that were opened before; those of a stream are checked when they are
    /// opened.
    ///
    /// # Errors
    /// `Unavailable` when one is another.
    pub fn check_same(&self, before: &Source) -> Result<()> {
        match (self, before) {
            (Source::Files { inputs, .. }, Source::Files { inputs: before, .. }) => {
                inputs.check_same(before)
            }
            _ => Ok(()),
        }
    }

    /// Share of the inputs that was read; 1 where the whole is not known.
    pub fn share(&self, account: &Account) -> f64 {
        let (read, all) = match self {
            Source::Files { inputs, .. } => (account.text_bytes() as f64, inputs.bytes()),
            Source::Stream(stream) => (account.stored_bytes() as f64, stream.bytes),
        };
        if all == 0 { 1.0 } else { (read / all as f64).min(1.0) }
    }
}

/// An input that is read once; `None` when all are files. It may have been opened before.
fn open_once(options: &LoadOptions, spool: Option<&Arc<Spool>>) -> Result<Option<TextInput>> {
    let inputs = &options.inputs;
    let Some(once) = inputs.read_once() else { return Ok(None) };
    if inputs.len() == 1 {
        let mut opened = match &options.stream {
            Some(stream) => stream.take()?,
            None => TextInput::open(&once)?,
        };
        if let Some(spool) = spool
            && let Raw::Stream(stream) = opened.raw
        {
            opened.raw = Raw::Stream(spool.keep(stream));
        }
        return Ok(Some(opened));
    }
    Err(Error::Invalid(format!(
        "{}: standard input or a pipe is loaded alone, not together with other inputs",
        once.name
    )))
}

/// The inputs, if all are text as it is.
fn open_files(options: &LoadOptions, head: &Head) -> Result<Option<OpenInputs>> {
    let mut files = OpenInputs::new(&options.inputs, head.line_end());
    let fields = options.fields_of_inputs();
    for (number, input) in options.inputs.iter().enumerate() {
        let text = TextInput::open(&input)?;
        if !(text.is_plain_file() && options.dialect.encoding.is_utf8(&text.start()?)) {
            return Ok(None);
        }
        let Raw::File { file, .. } = text.raw else { return Ok(None) };
        files.push(file, &head.with_fields(fields.of(number).count))?;
    }
    Ok(Some(files))
}

/// Leaves out chunks after the first so many bytes.
fn keep_first(inputs: &OpenInputs, chunks: &mut Vec<ChunkPieces>, sample_bytes: u64) {
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
fn cut_files(inputs: &OpenInputs, chunk_bytes: u64) -> Vec<ChunkPieces> {
    let mut chunks: Vec<ChunkPieces> = Vec::new();
    let mut room = 0;
    for (file, input) in inputs.iter().enumerate() {
        let bytes = input.bytes - input.data_start;
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
        while start < input.bytes {
            let end = (start + chunk_bytes).min(input.bytes);
            let start_is =
                if start == input.data_start { Start::Record } else { Start::Speculated };
            chunks.push(ChunkPieces::One(Piece { file, start, end, start_is }));
            start = end;
        }
        room = 0;
    }
    chunks
}
