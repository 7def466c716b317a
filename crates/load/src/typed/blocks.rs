//! Inputs that are blocks of rows: files whose blocks are found and cut into chunks when they are opened, and streams of
//! which blocks are taken as they come.
//!
//! ```text
//!   files     head | place 0 | place 1 | place 2 ...      a place: a block, or some that are read together
//!   chunks         |         0         |   1 ...          by their bytes in memory
//!   streams   bytes -> reader -> blocks -> chunks
//! ```
//!
//! Of a file that several workers read, each has the blocks of its part. A [`BlockForm`] knows the bytes of a format; what is here knows files, places and chunks.

mod reading;

use std::fmt::Debug;
use std::ops::Range;
use std::sync::{Arc, atomic::AtomicUsize};

use coload_input::{InputFile, Inputs, Raw, RawFile, TextInput, Waiting};
use coload_types::{Error, Result};

use super::{Asked, Block, BlockReader, Chunks, Cutting, Rows, StreamRows, StreamSource, cutting};
use crate::account::Account;
use crate::file_parts::FileParts;
use crate::format::{Format, InputBounds, Leg, PieceSpan, Position};
use crate::grain::Grain;
use crate::request::LoadRequest;
use crate::resources::Resources;
use crate::spool::Spool;
use crate::text::open_once;

pub use reading::{BlockReading, ChunkRead};

/// A format whose rows stand in blocks.
pub trait BlockForm: Sized + 'static {
    /// Which fields are read.
    type Fields;
    /// What is known of a file when its blocks are.
    type File: Debug + Send + Sync;
    /// Where rows of a file stand that are read together.
    type Place: Debug + Send + Sync;
    /// Finds blocks in streams.
    type Reader: BlockReader;
    /// What is kept for all chunks of a leg.
    type Kept: Default + Send + Sync;
    /// What is used again from block to block of a chunk.
    type Scratch: Default;

    /// Whether blocks of an input that is a file are found beforehand; else it is read as a stream.
    fn is_indexed(input: &InputFile) -> bool;

    /// Looks at a file, by its number: its blocks are added to `places`. `before` is the file before, which mostly has the
    /// same fields.
    ///
    /// # Errors
    /// `Input` when it is damaged, `Invalid` when its fields are not those that are read, `Unavailable` when it cannot be
    /// read.
    fn index(
        file: Arc<RawFile>,
        number: usize,
        before: Option<&Self::File>,
        asked: Asked<'_>,
        cutting: Cutting,
        places: &mut Vec<Self::Place>,
    ) -> Result<BlockFile<Self::File>>;

    /// What reads streams; what blocks hold is counted in `held`.
    fn reader(asked: Asked<'_>, held: &Arc<AtomicUsize>) -> Self::Reader;

    /// The input that a place is in.
    fn file_of(place: &Self::Place) -> usize;

    /// The rows of a place, as they are cut.
    fn block_of(place: &Self::Place) -> Block;

    /// Parts of files with rows of their own, if places are such.
    fn file_parts(_places: &[Self::Place]) -> FileParts {
        FileParts::default()
    }

    /// The fields of a file.
    fn fields_of_file(file: &Self::File) -> &Self::Fields;

    /// The fields of a block that came.
    fn fields_of_block(block: &StreamBlock<Self>) -> &Self::Fields;

    /// Whether a column has codes in a partition whose first rows have these fields.
    fn is_coded(fields: &Self::Fields, column: usize, asked: Asked<'_>, grain: &Grain) -> bool;

    /// Reads rows of a place.
    ///
    /// # Errors
    /// `Input` when they are damaged, `Limit` when they take too much, `Unavailable` when they cannot be read.
    fn read_place(
        file: &BlockFile<Self::File>,
        place: &Self::Place,
        rows: Rows,
        read: &mut ChunkRead<'_, Self>,
    ) -> Result<()>;

    /// Reads rows of a block that came.
    ///
    /// # Errors
    /// `Input` when they are damaged, `Limit` when they take too much.
    fn read_streamed(
        rows: &StreamRows<StreamBlock<Self>>,
        read: &mut ChunkRead<'_, Self>,
    ) -> Result<PieceSpan>;
}

/// A block of a stream.
pub type StreamBlock<F> = <<F as BlockForm>::Reader as BlockReader>::Block;

/// A file, looked at.
#[derive(Debug)]
pub struct BlockFile<F> {
    /// Its bytes.
    pub file: Arc<RawFile>,
    /// What is known of it.
    pub is: F,
    /// Where the blocks that are read stand in the account: behind what is no block, and blocks that others read.
    pub span: Range<u64>,
    /// Whether another worker reads other blocks of the file.
    pub is_part: bool,
    /// Bytes of a part that are read beside what was read when it was looked at.
    pub reads: Vec<Range<u64>>,
}

impl<F> BlockFile<F> {
    /// Bytes before a part of a file, which are not counted; 0 of a whole one.
    fn skipped(&self) -> u64 {
        if self.is_part { self.span.start } else { 0 }
    }
}

/// Inputs of a form.
pub enum BlockInputs<F: BlockForm> {
    /// Files of known length, cut beforehand.
    Files(BlockFiles<F>),
    /// Blocks that come in order; and how many inputs there are, and their stored bytes.
    Stream(Box<StreamSource<F::Reader>>, StreamInputs),
}

/// Files, looked at.
pub struct BlockFiles<F: BlockForm> {
    files: Vec<BlockFile<F::File>>,
    /// Blocks of all files, in order.
    places: Vec<F::Place>,
    chunks: Chunks,
}

/// What is known of inputs that come in order.
#[derive(Debug)]
pub struct StreamInputs {
    inputs: Inputs,
    bytes: u64,
}

impl<F: BlockForm> BlockFiles<F> {
    /// The inputs, if all are files that are stored as they are.
    fn open(asked: Asked<'_>, cutting: Cutting) -> Result<Option<Self>> {
        let mut files: Vec<BlockFile<F::File>> = Vec::new();
        let mut places = Vec::new();
        for (number, input) in asked.request.inputs.iter().enumerate() {
            if !F::is_indexed(&input) {
                return Ok(None);
            }
            let input = TextInput::open(&input)?;
            if !input.is_plain_file() {
                return Ok(None);
            }
            let Raw::File { file, .. } = input.raw else { return Ok(None) };
            let before = files.last().map(|last| &last.is);
            files.push(F::index(file, number, before, asked, cutting, &mut places)?);
        }
        say_what_is_read(&files);
        let chunks = Chunks::new(places.iter().map(F::block_of), cutting);
        Ok(Some(BlockFiles { files, places, chunks }))
    }

    /// What a chunk has, in order.
    fn rows(&self, chunk: usize) -> Vec<Rows> {
        self.chunks.rows(|place| F::block_of(&self.places[place]), chunk)
    }

    /// The file of a place.
    fn file_at(&self, place: &F::Place) -> &BlockFile<F::File> {
        &self.files[F::file_of(place)]
    }
}

/// Says which bytes of parts of files are read: others need not come from afar.
fn say_what_is_read<F>(files: &[BlockFile<F>]) {
    // Parts of one file follow each other.
    for parts in files.chunk_by(|a, b| a.file.name() == b.file.name()) {
        if !parts.iter().all(|part| part.is_part) {
            continue;
        }
        let mut ranges: Vec<Range<u64>> =
            parts.iter().flat_map(|part| part.reads.iter().cloned()).collect();
        // Dictionaries are read for each of them.
        ranges.sort_unstable_by_key(|range| (range.start, range.end));
        ranges.dedup();
        parts.iter().for_each(|part| part.file.will_read(ranges.iter().cloned()));
    }
}

impl<F: BlockForm> Format for BlockInputs<F> {
    type Reading<'a> = BlockReading<'a, F>;

    fn open(
        request: &LoadRequest,
        resources: &Resources,
        spool: Option<&Arc<Spool>>,
    ) -> Result<Self> {
        let asked = Asked { request, resources };
        let inputs = request.inputs.clone();
        let numbers = 0..inputs.len();
        let cutting = cutting(asked);
        let reader = |held: &_| F::reader(asked, held);
        let stream = if let Some(open) = request.streams.clone() {
            let stream = move |number: usize| {
                let name = inputs.name(number);
                Waiting::Stream { name, reader: open(number) }
            };
            StreamSource::new(numbers.map(stream), asked, cutting, reader)
        } else if let Some(opened) = open_once(request, spool)? {
            StreamSource::new([opened], asked, cutting, reader)
        } else if let Some(files) = BlockFiles::open(asked, cutting)? {
            return Ok(BlockInputs::Files(files));
        } else if request.share.as_ref().is_some_and(|share| !share.parts.is_empty()) {
            return Err(Error::Invalid(format!(
                "{}: parts are read of files only, and an input is none",
                inputs.name(0)
            )));
        } else {
            let named = move |number: usize| Waiting::Named(inputs.at(number));
            StreamSource::new(numbers.map(named), asked, cutting, reader)
        };
        let inputs = StreamInputs {
            bytes: request.inputs.iter().filter_map(|input| input.bytes()).sum(),
            inputs: request.inputs.clone(),
        };
        Ok(BlockInputs::Stream(Box::new(stream), inputs))
    }

    fn read<'a>(&'a self, leg: Leg<'a>) -> BlockReading<'a, F> {
        BlockReading::new(self, leg)
    }

    fn chunks(&self) -> Option<usize> {
        match self {
            BlockInputs::Files(files) => Some(files.chunks.count()),
            BlockInputs::Stream(..) => None,
        }
    }

    fn bounds(&self) -> Vec<InputBounds> {
        match self {
            BlockInputs::Files(files) => {
                let of = |file: &BlockFile<F::File>| InputBounds {
                    start: file.span.start,
                    lines: 0,
                    end: Some(file.span.end),
                    part: file.is_part.then_some(file.span.end),
                };
                files.files.iter().map(of).collect()
            }
            BlockInputs::Stream(_, stream) => {
                let of = InputBounds { start: 0, lines: 0, end: None, part: None };
                vec![of; stream.inputs.len()]
            }
        }
    }

    fn stored_bytes(&self) -> u64 {
        match self {
            BlockInputs::Files(files) => {
                files.files.iter().map(|file| file.span.end - file.skipped()).sum()
            }
            BlockInputs::Stream(_, stream) => stream.bytes,
        }
    }

    fn file_parts(&self) -> FileParts {
        match self {
            BlockInputs::Files(files) => F::file_parts(&files.places),
            BlockInputs::Stream(..) => FileParts::default(),
        }
    }

    fn head_bytes(&self) -> u64 {
        match self {
            BlockInputs::Files(files) => {
                files.files.iter().map(|file| file.span.start - file.skipped()).sum()
            }
            BlockInputs::Stream(..) => 0,
        }
    }

    fn bytes_before(&self, place: Position, records: u64) -> u64 {
        match self {
            BlockInputs::Files(files) => {
                let chunks = (0..place.chunks).flat_map(|chunk| files.rows(chunk));
                chunks.map(|rows| rows.span.end - rows.span.start).sum()
            }
            BlockInputs::Stream(..) => records,
        }
    }

    fn check_unchanged(&self) -> Result<()> {
        match self {
            BlockInputs::Files(files) => {
                files.files.iter().try_for_each(|file| file.file.check_unchanged())
            }
            BlockInputs::Stream(_, stream) => {
                stream.inputs.iter().try_for_each(|input| input.check_unchanged())
            }
        }
    }

    fn check_same(&self, before: &Self) -> Result<()> {
        let (BlockInputs::Files(files), BlockInputs::Files(before)) = (self, before) else {
            return Ok(());
        };
        let mut pairs = files.files.iter().zip(&before.files);
        pairs.try_for_each(|(now, before)| now.file.check_same(&before.file))
    }

    fn share(&self, account: &Account) -> f64 {
        let (read, all) = match self {
            BlockInputs::Files(_) => (account.text_bytes(), self.stored_bytes()),
            BlockInputs::Stream(_, stream) => (account.stored_bytes(), stream.bytes),
        };
        if all == 0 { 1.0 } else { (read as f64 / all as f64).min(1.0) }
    }
}
