//! Text that comes in order, cut into chunks at record boundaries: streams, and inputs that must be
//! decompressed.
//!
//! A worker takes the next chunk if its text is there, else it decompresses some. Where chunks are cut
//! depends on the text only. Offsets and lines are those of the text, not of the stored bytes.

use std::collections::VecDeque;
use std::sync::{
    Arc, Mutex,
    atomic::{AtomicUsize, Ordering},
};
use std::time::Duration;

use coload_input::{
    BLOCK_BYTES, Block, End, InputSource, Inputs, Stored, Taken, TextEncoding, TextQueue, ToUtf8,
    Waiting, Who,
};
use coload_source::{Between, TEXT_PADDING, without_end_mark};
use coload_threads::lock;
use coload_types::{Error, Result};
use coload_wire::FieldsByInput;

use super::chunks::PIECE_BYTES;
use super::head::{HEAD_BYTES_MAX, Head};
use crate::format::Arrival;
use crate::grain::{Grain, RECORD_BYTES_MAX};
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

enum Cut {
    Chunk(StreamChunk),
    Wait,
    End,
}

/// Text that came, and how many bytes it takes as it is stored.
#[derive(Debug)]
struct Arrived {
    file: usize,
    text: u64,
    source: u64,
}

/// Cuts text into chunks.
struct Cutter {
    /// Of the input that `rest` is of.
    head: Head,
    fields: FieldsByInput,
    inputs: Inputs,
    chunk_bytes: usize,
    encoding: TextEncoding,
    to_utf8: ToUtf8,
    /// Text that is not handed out.
    rest: Vec<u8>,
    /// Text that follows, and may be the footer.
    held: Vec<u8>,
    /// The input that `rest` is of, and where it stands there.
    file: usize,
    offset: u64,
    /// Whether `rest` has all text of the input.
    ended: bool,
    /// Whether skipped lines and header are taken off.
    started: bool,
    data_line: Option<u64>,
    /// More text than a chunk, as long as a record is longer.
    target: usize,
    /// What stands before `rest`, of documents of JSON.
    between: Between,
    pieces: Vec<StreamPiece>,
    /// Chunks that were handed out before.
    returned: VecDeque<StreamChunk>,
    /// What came and is not handed out, in order.
    arrived: VecDeque<Arrived>,
    /// Stored bytes of what is handed out with the next chunk.
    source_bytes: Vec<(usize, u64)>,
    ends: Vec<(usize, u64)>,
    /// Text to be handed out still.
    left: u64,
    record_bytes_max: usize,
    /// Pieces of more bytes of text stand as windows have it.
    framed_bytes: usize,
    fragments_per_partition: usize,
}

impl Cutter {
    fn new(
        inputs: Inputs,
        head: Head,
        fields: FieldsByInput,
        encoding: TextEncoding,
        chunk_bytes: usize,
    ) -> Self {
        Cutter {
            head: head.with_fields(fields.of(0).count),
            fields,
            inputs,
            chunk_bytes,
            encoding,
            to_utf8: ToUtf8::new(encoding),
            rest: Vec::new(),
            held: Vec::new(),
            file: 0,
            offset: 0,
            ended: false,
            started: false,
            data_line: None,
            target: chunk_bytes,
            between: Between::default(),
            pieces: Vec::new(),
            returned: VecDeque::new(),
            arrived: VecDeque::new(),
            source_bytes: Vec::new(),
            ends: Vec::new(),
            left: u64::MAX,
            record_bytes_max: RECORD_BYTES_MAX,
            framed_bytes: usize::MAX,
            fragments_per_partition: 1,
        }
    }

    /// The next whole records, about a chunk of them.
    fn next_chunk(&mut self, queue: &TextQueue) -> Result<Cut> {
        if let Some(chunk) = self.returned.pop_front() {
            return Ok(Cut::Chunk(chunk));
        }
        loop {
            if self.file == self.inputs.len() || self.left == 0 {
                return Ok(if self.pieces.is_empty() { Cut::End } else { self.emit() });
            }
            // One byte more than the target tells whether the input ends there.
            let wanted = if self.started { self.target } else { HEAD_BYTES_MAX.max(self.target) };
            if self.rest.len() <= wanted && !self.ended {
                match queue.take()? {
                    Taken::Block(block) => queue.recycle(self.push(block)?),
                    Taken::Wait => return Ok(Cut::Wait),
                    Taken::End => self.ended = true,
                }
                continue;
            }
            if !self.started {
                self.start()?;
                continue;
            }
            if self.rest.is_empty() {
                self.check_closed()?;
                self.next_file();
                continue;
            }
            if let Some(chunk) = self.cut()? {
                return Ok(chunk);
            }
        }
    }

    /// Takes the text of a block, and gives the block back.
    fn push(&mut self, block: Block) -> Result<Block> {
        self.ended = block.last;
        if self.rest.is_empty() && block.text.len() >= BLOCK_BYTES {
            self.rest.reserve(self.chunk_bytes.min(16 * BLOCK_BYTES) + BLOCK_BYTES);
        }
        self.rest.append(&mut self.held);
        let end = if block.last { End::Here } else { End::NotYet };
        let before = self.rest.len();
        self.to_utf8.append(&block.text, end, &mut self.rest);
        let (text, source) = ((self.rest.len() - before) as u64, block.source_bytes);
        self.arrived.push_back(Arrived { file: block.file, text, source });
        if block.last {
            self.rest.truncate(without_end_mark(&self.rest).len());
        }
        if self.head.has_footer() {
            self.hold_footer_back()?;
        }
        Ok(block)
    }

    /// Takes lines that may be the footer off `rest`.
    fn hold_footer_back(&mut self) -> Result<()> {
        let start = self.head.footer_start(&self.rest).unwrap_or(0);
        self.held = self.rest.split_off(start);
        if self.ended {
            self.held.clear();
        } else if self.held.len() > HEAD_BYTES_MAX {
            return Err(self.head.footer_too_long(&self.inputs.name(self.file)));
        }
        Ok(())
    }

    fn start(&mut self) -> Result<()> {
        self.started = true;
        let mark = coload_source::bom_len(&self.rest);
        let whole = self.ended;
        let (bytes, lines) = self
            .head
            .data_start(&self.rest[mark..], whole)
            .map_err(|text| Error::Invalid(format!("{}: {text}", self.inputs.name(self.file))))?;
        self.rest.drain(..mark + bytes);
        self.hand_out((mark + bytes) as u64);
        self.offset = (mark + bytes) as u64;
        self.data_line = Some(lines + self.inputs.at(self.file).lines_before());
        Ok(())
    }

    /// Checks that no list of records is open where an input ends behind one of them.
    fn check_closed(&self) -> Result<()> {
        if self.between == Between::default() {
            return Ok(());
        }
        Err(Error::Invalid(format!(
            "{} (byte {}): the input ends within a list of records: was it cut short?",
            self.inputs.name(self.file),
            self.offset
        )))
    }

    fn next_file(&mut self) {
        // Of an input without records nothing is read.
        let end = if self.data_line.is_none() { self.offset } else { 0 };
        self.ends.push((self.file, end));
        self.hand_out_to(self.file);
        self.file += 1;
        self.head = self.head.clone().with_fields(self.fields.of(self.file).count);
        self.to_utf8 = ToUtf8::new(self.encoding);
        (self.offset, self.ended, self.started) = (0, false, false);
        self.data_line = None;
    }

    /// Takes records off `rest`; a chunk if it is full.
    fn cut(&mut self) -> Result<Option<Cut>> {
        let whole = self.ended && self.rest.len() <= self.target;
        let between = self.between;
        let end = match whole {
            true => self.rest.len(),
            false => {
                let end = self.target.min(self.rest.len());
                match self.head.has_documents() {
                    true => {
                        let (end, after) = Head::last_document_end(&self.rest[..end], between);
                        self.between = after;
                        end
                    }
                    false => self.head.last_record_end(&mut self.rest, end),
                }
            }
        };
        if end > 0 {
            let text = self.take_text(end);
            self.hand_out(end as u64);
            let (file, offset) = (self.file, self.offset);
            self.offset += end as u64;
            self.left = self.left.saturating_sub(end as u64);
            self.target = self.target.saturating_sub(end.max(STREAM_PIECE_BYTES));
            self.pieces.push(StreamPiece {
                file,
                text,
                end,
                offset,
                data_line: self.data_line.take(),
                between,
                is_last: whole,
            });
            if whole {
                // What is open is told by who reads it.
                self.between = Between::default();
            }
            return Ok((!whole || self.target == 0).then(|| self.emit()));
        }
        if !self.pieces.is_empty() {
            // The next record starts a chunk of its own.
            return Ok(Some(self.emit()));
        }
        if self.target >= self.record_bytes_max {
            return Err(Error::Limit(format!(
                "{} (byte {}): a record is over {} bytes, which is what one may take of --memory; is a quote \
                 left open? (try --quote none, or a larger --memory)",
                self.inputs.name(self.file),
                self.offset,
                self.target
            )));
        }
        // What is read behind a record is held beside it: of the longest by no more than a sixteenth.
        let more = match self.target < self.record_bytes_max / 2 {
            true => self.target,
            false => self.target / 16,
        };
        self.target = (self.target + more).min(self.record_bytes_max);
        if self.target > self.framed_bytes {
            // Room that is not written takes no memory; to grow step by step takes that of both at each step.
            let room =
                (self.record_bytes_max + BLOCK_BYTES + FRAME_BYTES).saturating_sub(self.rest.len());
            // Where there is none it grows as it must.
            let _ = self.rest.try_reserve_exact(room);
        }
        Ok(None)
    }

    /// Takes records off `rest` that end at a place, with what follows if that is looked at. Of little text the room that
    /// there is for a chunk stays: each of many small inputs would have as much.
    fn take_text(&mut self, end: usize) -> PieceText {
        let taken = if self.head.looks_ahead() { self.rest.len() } else { end };
        if taken <= self.rest.capacity() / SMALL_SHARE {
            let text = self.rest[..taken].to_vec();
            self.rest.drain(..end);
            return PieceText::alone(text);
        }
        let mut tail = Vec::new();
        if end < self.rest.len() {
            tail.reserve(self.chunk_bytes.min(16 * BLOCK_BYTES) + BLOCK_BYTES);
            tail.extend_from_slice(&self.rest[end..]);
        }
        self.rest.truncate(taken);
        let text = std::mem::replace(&mut self.rest, tail);
        match taken == end && end > self.framed_bytes {
            true => PieceText::framed(text),
            false => PieceText::alone(text),
        }
    }

    /// Counts the stored bytes of text that is handed out: of a block that goes with several chunks, a
    /// share with each.
    fn hand_out(&mut self, mut text: u64) {
        while text > 0
            && let Some(first) = self.arrived.front_mut()
        {
            let taken = first.text.min(text);
            let share =
                u128::from(first.source) * u128::from(taken) / u128::from(first.text.max(1));
            let source = if taken == first.text { first.source } else { share as u64 };
            let file = first.file;
            (first.text, first.source) = (first.text - taken, first.source - source);
            if first.text == 0 {
                self.arrived.pop_front();
            }
            text -= taken;
            self.tell(file, source);
        }
    }

    /// Counts all that came of inputs up to one.
    fn hand_out_to(&mut self, file: usize) {
        while let Some(first) = self.arrived.pop_front_if(|first| first.file <= file) {
            self.tell(first.file, first.source);
        }
    }

    fn tell(&mut self, file: usize, source: u64) {
        match self.source_bytes.last_mut() {
            Some((last, bytes)) if *last == file => *bytes += source,
            _ => self.source_bytes.push((file, source)),
        }
    }

    /// Stored bytes that no chunk had. Where only a part of the inputs is read, the rest does not count.
    fn take_last(&mut self) -> Vec<(usize, u64)> {
        if self.left > 0 {
            self.hand_out_to(usize::MAX);
        }
        std::mem::take(&mut self.source_bytes)
    }

    fn emit(&mut self) -> Cut {
        self.target = self.chunk_bytes;
        let bytes: usize = self.pieces.iter().map(|piece| piece.end).sum();
        // A chunk that is as long as several counts as so many of its partition, which is bounded in bytes.
        let more = (bytes / self.chunk_bytes).saturating_sub(1).min(self.fragments_per_partition);
        self.returned.extend((0..more).map(|_| StreamChunk::default()));
        Cut::Chunk(StreamChunk {
            pieces: std::mem::take(&mut self.pieces),
            source_bytes: std::mem::take(&mut self.source_bytes),
            ends: std::mem::take(&mut self.ends),
            held: None,
        })
    }
}
