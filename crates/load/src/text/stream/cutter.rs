//! Cuts text that comes in order into chunks.

use std::collections::VecDeque;

use coload_input::{BLOCK_BYTES, Block, End, Inputs, Taken, TextEncoding, TextQueue, ToUtf8};
use coload_source::{Between, without_end_mark};
use coload_types::{Error, Result};
use coload_wire::FieldsByInput;

use super::{FRAME_BYTES, PieceText, SMALL_SHARE, STREAM_PIECE_BYTES, StreamChunk, StreamPiece};
use crate::format::Reached;
use crate::grain::{RECORD_BYTES_MAX, record_too_long};
use crate::text::head::{HEAD_BYTES_MAX, Head};

/// What became of a cut.
pub(super) enum Cut {
    Chunk(StreamChunk),
    /// The next text is not there yet.
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
pub(super) struct Cutter {
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
    /// What an earlier attempt read of the first input, which is dropped.
    behind: Option<Reached>,
    /// Lines before the first record behind that.
    line_behind: Option<u64>,
    /// More text than a chunk, as long as a record is longer.
    target: usize,
    /// What stands before `rest`, of documents of JSON.
    between: Between,
    pieces: Vec<StreamPiece>,
    /// Chunks that were handed out before.
    pub(super) returned: VecDeque<StreamChunk>,
    /// What came and is not handed out, in order.
    arrived: VecDeque<Arrived>,
    /// Stored bytes of what is handed out with the next chunk.
    source_bytes: Vec<(usize, u64)>,
    pub(super) ends: Vec<(usize, u64)>,
    /// Text to be handed out still.
    pub(super) left: u64,
    pub(super) record_bytes_max: usize,
    /// Pieces of more bytes of text stand as windows have it.
    pub(super) framed_bytes: usize,
    pub(super) fragments_per_partition: usize,
}

impl Cutter {
    pub(super) fn new(
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
            behind: None,
            line_behind: None,
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

    /// Begins with an input of which an earlier attempt read some; nothing was cut yet.
    pub(super) fn begin_behind(&mut self, reached: Reached) {
        self.file = reached.file;
        self.head = self.head.clone().with_fields(self.fields.of(reached.file).count);
        self.behind = Some(reached);
    }

    /// The next whole records, about a chunk of them.
    pub(super) fn next_chunk(&mut self, queue: &TextQueue) -> Result<Cut> {
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
        (self.data_line, self.behind, self.line_behind) = (None, None, None);
    }

    /// Drops records that an earlier attempt read.
    fn drop_known(&mut self, end: usize, known: Reached) {
        self.rest.drain(..end);
        self.hand_out(end as u64);
        self.offset += end as u64;
        // They were told of then.
        if let Some(lines) = self.data_line.take() {
            self.line_behind = Some(lines + known.lines);
        }
    }

    /// Takes records off `rest`; a chunk if it is full.
    fn cut(&mut self) -> Result<Option<Cut>> {
        let known = self.behind.filter(|known| self.offset < known.end);
        // What was read ends at the end of a record.
        let most = known.map_or(u64::MAX, |known| known.end - self.offset);
        let most = usize::try_from(most).unwrap_or(usize::MAX);
        let whole = self.ended && self.rest.len() <= self.target.min(most);
        let between = self.between;
        let end = match whole {
            true => self.rest.len(),
            false => {
                let end = self.target.min(self.rest.len()).min(most);
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
        if let Some(known) = known.filter(|_| end > 0) {
            self.drop_known(end, known);
            self.target = self.chunk_bytes;
            if whole {
                self.between = Between::default();
            }
            return Ok(None);
        }
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
                data_line: self.data_line.take().or_else(|| self.line_behind.take()),
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
            let place = format!("{} (byte {})", self.inputs.name(self.file), self.offset);
            return Err(record_too_long(&place, self.target, self.head.is_json()));
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
    pub(super) fn take_last(&mut self) -> Vec<(usize, u64)> {
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
