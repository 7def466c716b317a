//! Text that comes in order, cut into chunks at record boundaries: streams, and inputs that must be
//! decompressed.
//!
//! A worker takes the next chunk if its text is there, else it decompresses some. Where chunks are cut
//! depends on the text only. Offsets and lines are those of the text, not of the stored bytes.

mod cutter;

use std::sync::{
    Arc, Mutex,
    atomic::{AtomicUsize, Ordering},
};
use std::time::Duration;

use coload_input::{InputSource, Inputs, Stored, TextQueue, Waiting, Who};
use coload_source::{Between, TEXT_PADDING};
use coload_threads::lock;
use coload_types::Result;
use cutter::{Cut, Cutter};

use super::chunks::PIECE_BYTES;
use super::head::Head;
use crate::format::{Arrival, Reached};
use crate::grain::Grain;
use crate::request::LoadRequest;
use crate::resources::Resources;

/// Share of the memory that text waiting to be parsed may take.
const AHEAD_SHARE: usize = 8;
/// Share of it where the inputs come from elsewhere, and wait there: they are mostly text as it is.
const AHEAD_SHARE_ARRIVING: usize = 64;
/// Bytes of a frame of text: a newline on either side, and padding.
const FRAME_BYTES: usize = 2 + TEXT_PADDING;
/// Share of a buffer from which on text keeps it.
const SMALL_SHARE: usize = 4;
/// Bytes that the piece of an input takes beside its text.
const STREAM_PIECE_BYTES: usize = PIECE_BYTES as usize;
/// How long a worker waits for text before it looks for other work.
const WAIT: Duration = Duration::from_millis(5);

/// The inputs of a load that come in order.
pub struct StreamSource {
    /// Stored bytes of all, 0 if not known.
    pub bytes: u64,
    /// The inputs of the load, in their order.
    pub inputs: Inputs,
    queue: TextQueue,
    cutter: Mutex<Cutter>,
    /// Bytes of chunks that were handed out and are still held, and how many these may be.
    text_bytes: Arc<AtomicUsize>,
    text_bytes_max: usize,
}

/// What became of a worker's turn.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum StreamTurn {
    /// It has a chunk to parse.
    Parse,
    /// It decompressed, or waited for others.
    Again,
    /// Nothing comes, ever.
    End,
}

/// Whole records of one or more inputs.
#[derive(Debug, Default, Clone)]
pub struct StreamChunk {
    /// Pieces of the chunk, one an input.
    pub pieces: Vec<StreamPiece>,
    /// Stored bytes since the chunk before, with those of inputs without records.
    pub source_bytes: Vec<(usize, u64)>,
    /// Inputs that have ended since, and where in their text.
    pub ends: Vec<(usize, u64)>,
    /// Counts its bytes as long as it is there.
    held: Option<Arc<Held>>,
}

/// Bytes of text that are counted until it is dropped.
#[derive(Debug)]
struct Held {
    bytes: usize,
    of: Arc<AtomicUsize>,
}

impl Held {
    fn new(chunk: &StreamChunk, of: &Arc<AtomicUsize>) -> Arc<Self> {
        let bytes = chunk.pieces.iter().map(|piece| piece.text.as_slice().len()).sum();
        of.fetch_add(bytes, Ordering::AcqRel);
        Arc::new(Held { bytes, of: Arc::clone(of) })
    }
}

impl Drop for Held {
    fn drop(&mut self) {
        self.of.fetch_sub(self.bytes, Ordering::AcqRel);
    }
}

/// Text of a piece. A long one stands as a window has it, so that it is parsed where it is: a copy of a record that takes a
/// quarter of the memory would take another.
#[derive(Debug, Clone)]
pub struct PieceText {
    bytes: Vec<u8>,
    form: TextForm,
}

/// How text stands in its bytes.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum TextForm {
    /// Alone, from the first byte to the last.
    Alone,
    /// Behind a newline, and with a newline and padding behind it.
    Framed,
}

impl PieceText {
    fn alone(bytes: Vec<u8>) -> Self {
        PieceText { bytes, form: TextForm::Alone }
    }

    fn framed(mut bytes: Vec<u8>) -> Self {
        bytes.reserve_exact(FRAME_BYTES);
        bytes.insert(0, b'\n');
        bytes.push(b'\n');
        bytes.resize(bytes.len() + TEXT_PADDING, 0);
        PieceText { bytes, form: TextForm::Framed }
    }

    /// The text, without what stands around it.
    pub fn as_slice(&self) -> &[u8] {
        match self.form {
            TextForm::Alone => &self.bytes,
            TextForm::Framed => &self.bytes[1..self.bytes.len() - (FRAME_BYTES - 1)],
        }
    }

    /// The text with a byte before it, and a newline and padding behind it, if it stands so.
    pub fn frame(&self) -> Option<&[u8]> {
        (self.form == TextForm::Framed).then_some(&self.bytes)
    }
}

/// Whole records of one input.
#[derive(Debug, Clone)]
pub struct StreamPiece {
    /// Number of the input.
    pub file: usize,
    /// The text; the last record of an input may lack its newline.
    pub text: PieceText,
    /// Where its records end. What follows tells how the last of them are read, and comes again.
    pub end: usize,
    /// Where it stands in the text of the input.
    pub offset: u64,
    /// Lines before the first record, if these are the first records of the input.
    pub data_line: Option<u64>,
    /// What stands before it, of documents of JSON.
    pub between: Between,
    /// Whether the input ends with it.
    pub is_last: bool,
}

impl StreamSource {
    /// A source of open inputs.
    pub fn new(
        inputs: impl IntoIterator<
            Item: Into<Waiting> + 'static,
            IntoIter: ExactSizeIterator + Send + 'static,
        >,
        request: &LoadRequest,
        resources: &Resources,
    ) -> Self {
        let grain = Grain::of(request, resources);
        let ahead_share = match &request.streams {
            Some(_) => AHEAD_SHARE_ARRIVING,
            None => AHEAD_SHARE,
        };
        let mut cutter = Cutter::new(
            request.inputs.clone(),
            Head::new(request),
            request.fields_of_inputs(),
            request.dialect.encoding,
            grain.chunk_bytes,
        );
        cutter.left = request.sample_bytes.unwrap_or(u64::MAX);
        cutter.record_bytes_max = grain.record_bytes_max;
        cutter.framed_bytes = grain.large_bytes;
        cutter.fragments_per_partition = grain.fragments_per_partition;
        StreamSource {
            bytes: stored_bytes(&request.inputs),
            inputs: request.inputs.clone(),
            queue: TextQueue::new(inputs, resources.memory / ahead_share, resources.threads)
                .with_windows(grain.windows_bytes),
            cutter: Mutex::new(cutter),
            text_bytes_max: grain.text_bytes,
            text_bytes: Arc::default(),
        }
    }

    /// Whether each input can be read from its start, whatever was read of those before it.
    pub fn can_begin_behind(&self) -> bool {
        let is_alone = |number| {
            self.inputs.is_file(number)
                || matches!(self.inputs.at(number).source, InputSource::Object(_))
        };
        (0..self.inputs.len()).all(is_alone)
    }

    /// Leaves out what an earlier attempt read: of the last input that it read the text is read again, and dropped.
    pub fn begin_behind(&self, reached: Reached) {
        self.queue.skip(reached.file);
        lock(&self.cutter).begin_behind(reached);
    }

    /// The queue of text, for a thread that decompresses ahead.
    pub fn queue(&self) -> &TextQueue {
        &self.queue
    }

    /// Takes the next chunk; where none is there yet, decompresses some text or waits a moment. `take` is called under the
    /// lock for each chunk, in order.
    ///
    /// # Errors
    /// `Input` when an input is damaged, `Unavailable` when it cannot be read, `Limit` when a record is
    /// too long; those of `take`.
    pub fn turn(&self, take: impl FnOnce(&Arc<StreamChunk>) -> Result<()>) -> Result<StreamTurn> {
        {
            let mut cutter = lock(&self.cutter);
            let held = self.text_bytes.load(Ordering::Acquire);
            let cut = match held == 0 || held < self.text_bytes_max {
                true => cutter.next_chunk(&self.queue)?,
                false => Cut::Wait,
            };
            match cut {
                Cut::Chunk(mut chunk) => {
                    chunk.held = Some(Held::new(&chunk, &self.text_bytes));
                    take(&Arc::new(chunk))?;
                    return Ok(StreamTurn::Parse);
                }
                Cut::End => return Ok(StreamTurn::End),
                Cut::Wait => {}
            }
        }
        match self.queue.claim(Who::Worker)? {
            Some(job) => self.queue.run(job),
            None => self.queue.wait(WAIT),
        }
        Ok(StreamTurn::Again)
    }

    /// Takes chunks back, which come first the next time. What was counted of them is not counted again.
    pub fn give_back(&self, chunks: impl DoubleEndedIterator<Item = Arc<StreamChunk>>) {
        let mut cutter = lock(&self.cutter);
        for chunk in chunks.rev() {
            let mut pieces = Arc::unwrap_or_clone(chunk).pieces;
            pieces.iter_mut().for_each(|piece| piece.data_line = None);
            cutter.returned.push_front(StreamChunk { pieces, ..StreamChunk::default() });
        }
    }

    /// Stored bytes and ends of inputs since the last chunk, at the end.
    pub fn take_rest(&self) -> Arrival {
        let mut cutter = lock(&self.cutter);
        Arrival {
            begins: Vec::new(),
            source_bytes: cutter.take_last(),
            ends: std::mem::take(&mut cutter.ends),
        }
    }
}

impl StreamChunk {
    /// What comes with it.
    pub fn arrival(&self) -> Arrival {
        let begins = |piece: &StreamPiece| Some((piece.file, piece.offset, piece.data_line?));
        Arrival {
            begins: self.pieces.iter().filter_map(begins).collect(),
            source_bytes: self.source_bytes.clone(),
            ends: self.ends.clone(),
        }
    }
}

/// Bytes of inputs that are told as their text is read; of a member of a compressed archive they are not known.
fn stored_bytes(inputs: &Inputs) -> u64 {
    let of = |number| {
        if inputs.is_file(number) {
            return inputs.bytes(number);
        }
        let input = inputs.at(number);
        match &input.source {
            InputSource::Member { member, .. }
                if matches!(member.stored, Stored::CompressedTar | Stored::Sheet(_)) =>
            {
                None
            }
            _ => input.bytes(),
        }
    };
    (0..inputs.len()).filter_map(of).sum()
}
