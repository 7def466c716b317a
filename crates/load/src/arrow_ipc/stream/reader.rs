//! Messages out of blocks of bytes, and chunks of their batches.

use std::collections::VecDeque;
use std::sync::{
    Arc,
    atomic::{AtomicUsize, Ordering},
};

use coload_arrow::{Batch, Buffers, FILE_MAGIC, Fault, Message, PREFIX_BYTES, Prefix};
use coload_input::{Block, Taken, TextQueue};
use coload_transform::CODES_PROVISIONAL_MAX;
use coload_types::Result;

use super::{Held, Known, StreamBatch, StreamChunk, StreamRows};
use crate::arrow_ipc::cache::read_dictionary;
use crate::arrow_ipc::input::{FieldsRead, fault};
use crate::format::Arrival;
use crate::request::LoadRequest;
use crate::resources::Resources;
use crate::typed::{Asked, Cutting, Dictionary, batch_bytes_max, part_of};

/// Bytes of the magic of a file, padded.
const MAGIC_BYTES: usize = 8;

/// Reads messages out of blocks.
pub struct Reader {
    request: LoadRequest,
    resources: Resources,
    cutting: Cutting,
    /// The input that is read, and where its next message starts.
    file: usize,
    at: u64,
    /// Bytes from there on that are there.
    rest: Vec<u8>,
    ended: bool,
    state: State,
    fields: Option<Arc<FieldsRead>>,
    dictionaries: Arc<Known>,
    /// Where the batches so far end in the account.
    covered: u64,
    /// Rows of a chunk that is not full.
    open: Vec<StreamRows>,
    open_weight: u64,
    /// Chunks that are full.
    ready: VecDeque<StreamChunk>,
    source_bytes: Vec<(usize, u64)>,
    ends: Vec<(usize, u64)>,
    /// Bytes to be handed out still.
    left: u64,
    held: Arc<AtomicUsize>,
}

/// What comes next.
enum State {
    /// The first bytes of an input.
    Start,
    /// Zeros behind the magic of a file: some writers put its first message at byte 64.
    Padding,
    /// A message.
    Message { is_file: bool },
    /// The body of a message, as it comes.
    Body { is_file: bool, message: Message, head_bytes: u64, body: Vec<u8>, bytes: usize },
    /// The footer, which is not read, and the magic behind it.
    Footer,
    /// Nothing.
    Behind,
}

/// What could be done with what is there.
enum Step {
    Done,
    /// More bytes are needed.
    More,
    /// The input has ended.
    Ended,
}

/// What comes of asking for a chunk.
pub enum Next {
    /// The next chunk.
    Chunk(StreamChunk),
    /// More bytes are needed, and on their way.
    Wait,
    /// Nothing comes, ever.
    End,
}

impl Reader {
    fn asked(&self) -> Asked<'_> {
        Asked { request: &self.request, resources: &self.resources }
    }

    /// Nothing is read yet; what chunks hold is counted in `held`.
    pub fn new(asked: Asked<'_>, cutting: Cutting, held: &Arc<AtomicUsize>) -> Self {
        Reader {
            request: asked.request.clone(),
            resources: asked.resources.clone(),
            cutting,
            file: 0,
            at: 0,
            rest: Vec::new(),
            ended: false,
            state: State::Start,
            fields: None,
            dictionaries: Arc::default(),
            covered: 0,
            open: Vec::new(),
            open_weight: 0,
            ready: VecDeque::new(),
            source_bytes: Vec::new(),
            ends: Vec::new(),
            left: cutting.sample_bytes,
            held: Arc::clone(held),
        }
    }

    /// Bytes of batches whose chunk is not full.
    pub fn open_bytes(&self) -> usize {
        self.open.iter().map(|rows| rows.batch.body.capacity()).sum()
    }

    /// Whether a chunk is there.
    pub fn has_ready(&self) -> bool {
        !self.ready.is_empty()
    }

    /// Takes a chunk back, which comes first.
    pub fn give_back(&mut self, rows: Vec<StreamRows>) {
        self.ready.push_front(StreamChunk { rows, arrival: Arrival::default() });
    }

    /// What came since the last chunk. Inputs begin at their first byte: nothing is to be told of that.
    pub fn take_arrival(&mut self) -> Arrival {
        Arrival {
            begins: Vec::new(),
            source_bytes: std::mem::take(&mut self.source_bytes),
            ends: std::mem::take(&mut self.ends),
        }
    }

    /// The next chunk, as far as its bytes are there.
    ///
    /// # Errors
    /// `Input` when an input is damaged, `Unavailable` when it cannot be read, `Limit` when a batch is too large.
    pub fn next(&mut self, queue: &TextQueue) -> Result<Next> {
        loop {
            if let Some(chunk) = self.ready.pop_front() {
                return Ok(Next::Chunk(chunk));
            }
            if self.file == self.request.inputs.len() || self.left == 0 {
                return match self.open.is_empty() {
                    true => Ok(Next::End),
                    false => {
                        self.close_chunk();
                        continue;
                    }
                };
            }
            let at = self.at;
            match self.step().map_err(|error| fault(self.asked(), self.file, at, error))? {
                Step::Done => {}
                Step::Ended => self.next_file(),
                Step::More => match queue.take()? {
                    Taken::Block(block) => queue.recycle(self.push(block)),
                    Taken::Wait => return Ok(Next::Wait),
                    Taken::End => self.ended = true,
                },
            }
        }
    }

    /// Takes the bytes of a block, and gives the block back.
    fn push(&mut self, block: Block) -> Block {
        self.ended = block.last;
        match &mut self.state {
            State::Body { body, bytes, .. } => {
                let taken = block.text.len().min(*bytes - body.len());
                body.extend_from_slice(&block.text[..taken]);
                self.rest.extend_from_slice(&block.text[taken..]);
            }
            _ => self.rest.extend_from_slice(&block.text),
        }
        match self.source_bytes.last_mut() {
            Some((file, bytes)) if *file == block.file => *bytes += block.source_bytes,
            _ => self.source_bytes.push((block.file, block.source_bytes)),
        }
        block
    }

    fn next_file(&mut self) {
        self.ends.push((self.file, self.covered));
        self.file += 1;
        (self.at, self.covered, self.ended) = (0, 0, false);
        (self.state, self.fields) = (State::Start, None);
        self.rest.clear();
        self.dictionaries = Arc::default();
    }

    /// Whether so many bytes are there; fewer are an error where the input has ended.
    fn has(&self, bytes: usize) -> std::result::Result<bool, Fault> {
        match self.rest.len() >= bytes {
            true => Ok(true),
            false if self.ended => {
                Err(Fault::Damaged("they end in the middle of a message".to_owned()))
            }
            false => Ok(false),
        }
    }

    /// Does what can be done with what is there.
    fn step(&mut self) -> std::result::Result<Step, Fault> {
        match std::mem::replace(&mut self.state, State::Behind) {
            State::Start => {
                if self.rest.len() < MAGIC_BYTES && !self.ended {
                    self.state = State::Start;
                    return Ok(Step::More);
                }
                self.state = match self.rest.starts_with(FILE_MAGIC) {
                    true => State::Padding,
                    false => State::Message { is_file: false },
                };
                Ok(Step::Done)
            }
            State::Padding => {
                let word = self.rest.first_chunk::<MAGIC_BYTES>();
                self.state = match word {
                    Some(word) if self.at == 0 || *word == [0; MAGIC_BYTES] => State::Padding,
                    None if !self.ended => State::Padding,
                    _ => State::Message { is_file: true },
                };
                match self.state {
                    State::Padding if word.is_none() => return Ok(Step::More),
                    State::Padding => self.skip(MAGIC_BYTES),
                    _ => {}
                }
                Ok(Step::Done)
            }
            State::Message { is_file } => self.message(is_file),
            State::Body { is_file, message, head_bytes, mut body, bytes } => {
                let taken = self.rest.len().min(bytes - body.len());
                body.extend(self.rest.drain(..taken));
                if body.len() < bytes && self.ended {
                    return Err(Fault::Damaged("they end in the middle of a message".to_owned()));
                }
                if body.len() < bytes {
                    self.state = State::Body { is_file, message, head_bytes, body, bytes };
                    return Ok(Step::More);
                }
                self.state = State::Message { is_file };
                let start = self.at;
                self.at += head_bytes + bytes as u64;
                self.take(message, body, start)?;
                Ok(Step::Done)
            }
            State::Footer => {
                self.state = State::Footer;
                if !self.ended {
                    let behind = self.rest.len().saturating_sub(FILE_MAGIC.len());
                    self.skip(behind);
                    return Ok(Step::More);
                }
                match self.rest.ends_with(FILE_MAGIC) {
                    true => Ok(Step::Ended),
                    false => Err(Fault::Damaged("the file does not end with its footer".to_owned())),
                }
            }
            State::Behind if !self.rest.is_empty() => Err(Fault::Damaged(
                "bytes behind the end of the stream, which may be another one (load each by itself)"
                    .to_owned(),
            )),
            State::Behind if self.ended => Ok(Step::Ended),
            State::Behind => Ok(Step::More),
        }
    }

    fn skip(&mut self, bytes: usize) {
        self.rest.drain(..bytes);
        self.at += bytes as u64;
    }

    /// The prefix and the metadata of a message.
    fn message(&mut self, is_file: bool) -> std::result::Result<Step, Fault> {
        self.state = State::Message { is_file };
        if self.rest.len() < PREFIX_BYTES && !self.ended {
            return Ok(Step::More);
        }
        if self.rest.is_empty() && !is_file && self.fields.is_some() {
            // A stream may end so, as the format has it.
            self.state = State::Behind;
            return Ok(Step::Done);
        }
        match Prefix::decode(&self.rest[..self.rest.len().min(PREFIX_BYTES)])? {
            Prefix::End(_) if self.fields.is_none() => {
                Err(Fault::Damaged("there is no schema".to_owned()))
            }
            Prefix::End(prefix) => {
                self.skip(prefix);
                self.state = if is_file { State::Footer } else { State::Behind };
                Ok(Step::Done)
            }
            Prefix::Metadata { prefix, bytes } => {
                let head_bytes = prefix + bytes;
                if !self.has(head_bytes)? {
                    return Ok(Step::More);
                }
                let (message, body_bytes) = Message::decode(&self.rest[prefix..head_bytes])?;
                let bytes = usize::try_from(body_bytes)
                    .ok()
                    .filter(|bytes| *bytes as u64 <= batch_bytes_max(self.asked()))
                    .ok_or(Fault::TooLarge(body_bytes))?;
                self.rest.drain(..head_bytes);
                let body = Vec::with_capacity(bytes);
                let head_bytes = head_bytes as u64;
                self.state = State::Body { is_file, message, head_bytes, body, bytes };
                Ok(Step::Done)
            }
        }
    }

    /// Takes a message whose body is there.
    fn take(
        &mut self,
        message: Message,
        body: Vec<u8>,
        start: u64,
    ) -> std::result::Result<(), Fault> {
        match (message, &self.fields) {
            (Message::Schema(schema), None) => {
                let fields = FieldsRead::new(schema, self.file, self.asked())?;
                self.fields = Some(Arc::new(fields));
            }
            (Message::Schema(_), Some(_)) => {
                return Err(Fault::Damaged("a second schema".to_owned()));
            }
            (_, None) => return Err(Fault::Damaged("a message before the schema".to_owned())),
            (Message::Dictionary(dictionary), Some(fields)) => {
                let id = dictionary.id;
                let Some(field) = fields.schema.field_of_dictionary(id) else {
                    return Err(Fault::Damaged(format!("dictionary {id} of no field")));
                };
                let read = fields
                    .of_column
                    .iter()
                    .any(|read| fields.schema.fields[*read].dictionary() == Some(id));
                if !read {
                    return Ok(());
                }
                let known = self.dictionaries.get(&id).filter(|_| dictionary.is_delta).cloned();
                let others = self.dictionaries.values().map(|known| known.bytes() as u64);
                let bytes_max = batch_bytes_max(self.asked()).saturating_sub(others.sum::<u64>());
                let part = read_dictionary(&field, &dictionary, &body, bytes_max)?;
                let made = match known {
                    Some(known) => known.with(part),
                    None => Dictionary::new(field.values, part),
                };
                Arc::make_mut(&mut self.dictionaries).insert(id, Arc::new(made));
            }
            (Message::Batch(batch), Some(fields)) => {
                let fields = Arc::clone(fields);
                self.take_batch(fields, batch, body, start)?;
            }
        }
        Ok(())
    }

    /// Bytes of a row's texts in dictionaries of more values than codes have.
    fn key_bytes(&self, fields: &FieldsRead) -> u64 {
        let of = |field: &usize| {
            let known = self.dictionaries.get(&fields.schema.fields[*field].dictionary()?)?;
            let rows = known.len();
            (rows > CODES_PROVISIONAL_MAX).then(|| (known.bytes() / rows) as u64)
        };
        fields.of_column.iter().filter_map(of).sum()
    }

    fn take_batch(
        &mut self,
        fields: Arc<FieldsRead>,
        batch: Batch,
        body: Vec<u8>,
        start: u64,
    ) -> std::result::Result<(), Fault> {
        let bytes_max = batch_bytes_max(self.asked());
        let is_compressed = batch.codec.is_some();
        let bytes = Buffers::new(&batch, &body, bytes_max).total_bytes()?;
        if bytes > bytes_max {
            return Err(Fault::TooLarge(bytes));
        }
        let keys = batch.rows.saturating_mul(self.key_bytes(&fields));
        let weight = self.cutting.weight(batch.rows, bytes.saturating_add(keys));
        let span = self.covered..self.at;
        self.covered = self.at;
        self.left = self.left.saturating_sub(weight);
        let held = Held { bytes: body.capacity(), of: Arc::clone(&self.held) };
        self.held.fetch_add(held.bytes, Ordering::AcqRel);
        let rows = batch.rows;
        let batch = Arc::new(StreamBatch {
            file: self.file,
            start,
            fields,
            dictionaries: Arc::clone(&self.dictionaries),
            batch,
            body,
            span,
            _held: held,
        });
        let chunks = self.cutting.chunks_of(weight, rows, is_compressed);
        if chunks > 1 || self.open_weight.saturating_add(weight) > self.cutting.chunk_bytes {
            self.close_chunk();
        }
        for part in 0..chunks {
            let cut = part_of(part, chunks, rows, is_compressed, batch.span.clone());
            self.open.extend(cut.map(|(rows, span)| StreamRows {
                batch: Arc::clone(&batch),
                rows,
                span,
            }));
            if chunks > 1 {
                self.push_chunk();
            }
        }
        self.open_weight = if chunks > 1 { 0 } else { self.open_weight + weight };
        Ok(())
    }

    /// Ends a chunk that has rows.
    fn close_chunk(&mut self) {
        if !self.open.is_empty() {
            self.push_chunk();
        }
        self.open_weight = 0;
    }

    /// Ends a chunk, be it one without rows.
    fn push_chunk(&mut self) {
        let rows = std::mem::take(&mut self.open);
        let arrival = self.take_arrival();
        self.ready.push_back(StreamChunk { rows, arrival });
    }
}
